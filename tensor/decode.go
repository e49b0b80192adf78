package tensor

import "reflect"

// Decode stores the elements into what dst points to, the reverse of [FromGo]:
//
//   - a number or bool takes a tensor of one element;
//   - a slice takes all elements in row-major order, whatever the sizes;
//   - slices of slices take a tensor of as many dimensions as they are nested; arrays must have the size of their dimension.
//
// Elements are converted as by [Values]; slices share the memory of a contiguous tensor whose elements need no conversion.
func (t *Tensor) Decode(dst any) error {
	p := reflect.ValueOf(dst)
	if p.Kind() != reflect.Pointer || p.IsNil() || !IsArrayType(p.Type().Elem()) {
		return convertError("tensor: %v%v does not go into a %T", t.dtype, t.sizes, dst)
	}
	v := p.Elem()
	elem, depth := v.Type(), 0
	for ; elem.Kind() == reflect.Slice || elem.Kind() == reflect.Array; elem = elem.Elem() {
		depth++
	}
	switch {
	case depth == 0 && t.Numel() != 1, depth > 1 && depth != len(t.sizes), depth == 1 && v.Kind() == reflect.Array && int64(v.Len()) != t.Numel():
		return convertError("tensor: %v%v does not go into a %v", t.dtype, t.sizes, v.Type())
	}
	flat, err := t.flat(elem)
	if err != nil {
		return err
	}
	switch {
	case depth == 0:
		v.Set(flat.Index(0))
		return nil
	case depth == 1:
		return t.nest(v, flat, []int64{t.Numel()})
	}
	return t.nest(v, flat, t.sizes)
}

// flat gives the elements in row-major order as a slice of elem.
func (t *Tensor) flat(elem reflect.Type) (reflect.Value, error) {
	if n := int(t.Numel()); n > 0 && t.liesAs(elem) {
		return reflect.SliceAt(elem, t.first(), n), nil
	}
	var v any
	var err error
	switch elem.Kind() {
	case reflect.Bool:
		v, err = Values[bool](t)
	case reflect.Int:
		v, err = Values[int](t)
	case reflect.Int8:
		v, err = Values[int8](t)
	case reflect.Int16:
		v, err = Values[int16](t)
	case reflect.Int32:
		v, err = Values[int32](t)
	case reflect.Int64:
		v, err = Values[int64](t)
	case reflect.Uint:
		v, err = Values[uint](t)
	case reflect.Uint8:
		v, err = Values[uint8](t)
	case reflect.Uint16:
		v, err = Values[uint16](t)
	case reflect.Uint32:
		v, err = Values[uint32](t)
	case reflect.Uint64:
		v, err = Values[uint64](t)
	case reflect.Float32:
		v, err = Values[float32](t)
	case reflect.Float64:
		v, err = Values[float64](t)
	case reflect.Complex64:
		v, err = Values[complex64](t)
	default:
		v, err = Values[complex128](t)
	}
	if err != nil {
		return reflect.Value{}, err
	}
	s := reflect.ValueOf(v)
	if elem != s.Type().Elem() { // a named type over the same memory
		s = reflect.SliceAt(elem, s.UnsafePointer(), s.Len())
	}
	return s, nil
}

// nest spreads flat over slices and arrays of the given sizes.
func (t *Tensor) nest(dst, flat reflect.Value, sizes []int64) error {
	n := int(sizes[0])
	if dst.Kind() == reflect.Array && dst.Len() != n {
		return convertError("tensor: %v%v does not go into a %v", t.dtype, t.sizes, dst.Type())
	}
	if len(sizes) == 1 {
		if dst.Kind() == reflect.Array {
			reflect.Copy(dst, flat)
			return nil
		}
		dst.Set(flat.Slice3(0, n, n).Convert(dst.Type()))
		return nil
	}
	if dst.Kind() == reflect.Slice {
		dst.Set(reflect.MakeSlice(dst.Type(), n, n))
	}
	step := 0
	if n > 0 {
		step = flat.Len() / n
	}
	for i := range n {
		if err := t.nest(dst.Index(i), flat.Slice3(i*step, (i+1)*step, (i+1)*step), sizes[1:]); err != nil {
			return err
		}
	}
	return nil
}
