package tensor

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/x448/float16"
)

// ErrConvert is the kind of error for Go values that do not become a tensor, or elements that do not become Go values.
var ErrConvert = errors.New("cannot be converted")

func convertError(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrConvert)
}

// Number is any Go number or bool.
type Number interface {
	~bool | ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~complex64 | ~complex128
}

// naturalDType is the dtype whose elements lie in memory as values of t do, Invalid if there is none.
func naturalDType(t reflect.Type) DType {
	if t == reflect.TypeFor[float16.Float16]() {
		return Float16
	}
	switch t.Kind() {
	case reflect.Bool:
		return Bool
	case reflect.Int8:
		return Int8
	case reflect.Int16:
		return Int16
	case reflect.Int32:
		return Int32
	case reflect.Int64:
		return Int64
	case reflect.Int:
		return map[uintptr]DType{4: Int32, 8: Int64}[t.Size()]
	case reflect.Uint8:
		return Uint8
	case reflect.Uint16:
		return Uint16
	case reflect.Uint32:
		return Uint32
	case reflect.Uint64:
		return Uint64
	case reflect.Uint:
		return map[uintptr]DType{4: Uint32, 8: Uint64}[t.Size()]
	case reflect.Float32:
		return Float32
	case reflect.Float64:
		return Float64
	case reflect.Complex64:
		return Complex64
	case reflect.Complex128:
		return Complex128
	}
	return Invalid
}

// IsArrayType reports whether values of t can become tensors by [FromGo]: numbers, bools, and slices or arrays of such, nested
// to any depth.
func IsArrayType(t reflect.Type) bool {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	return naturalDType(t) != Invalid
}

// FromGo makes a tensor of dtype dt from a number or bool (0-d), a slice or array (1-d), or slices of slices, which must be
// of equal lengths. With [Invalid] the dtype is that of the Go type, with int as int64.
//
// A slice whose elements lie in memory as dt wants them is not copied: the tensor sees later changes. Otherwise floats go into
// any float type, rounded; integers into any integer type that holds them, and into floats; bools only into Bool. What does
// not fit is an error of kind [ErrConvert].
func FromGo(v any, dt DType) (*Tensor, error) {
	src := reflect.ValueOf(v)
	if !src.IsValid() || !IsArrayType(src.Type()) {
		return nil, convertError("tensor: a %T", v)
	}
	sizes, err := nestedSizes(src)
	if err != nil {
		return nil, err
	}
	elem := src.Type()
	for range sizes {
		elem = elem.Elem()
	}
	n, err := Numel(sizes)
	if err != nil {
		return nil, err
	}
	flat := src
	if len(sizes) != 1 || src.Kind() != reflect.Slice {
		flat = reflect.MakeSlice(reflect.SliceOf(elem), int(n), int(n))
		rest := flat
		flatten(src, len(sizes), &rest)
	}
	t := &Tensor{storage: WrapStorage(sliceBytes(flat), false), dtype: naturalDType(elem), sizes: sizes, strides: ContiguousStrides(sizes)}
	if dt == Invalid || dt == t.dtype {
		return t, nil
	}
	return t.as(dt)
}

// sliceBytes is the memory of a slice of numbers.
func sliceBytes(s reflect.Value) []byte {
	if s.Len() == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(s.UnsafePointer()), s.Len()*int(s.Type().Elem().Size()))
}

// nestedSizes measures slices of slices; the lengths at one level must be equal.
func nestedSizes(v reflect.Value) ([]int64, error) {
	sizes := []int64{}
	level := []reflect.Value{v}
	for t := v.Type(); t.Kind() == reflect.Slice || t.Kind() == reflect.Array; t = t.Elem() {
		n := int64(0)
		var next []reflect.Value
		deeper := t.Elem().Kind() == reflect.Slice || t.Elem().Kind() == reflect.Array
		for i, x := range level {
			if i == 0 {
				n = int64(x.Len())
			}
			if int64(x.Len()) != n {
				return nil, convertError("tensor: slices of %d and %d elements at the same depth", n, x.Len())
			}
			for j := 0; deeper && j < x.Len(); j++ {
				next = append(next, x.Index(j))
			}
		}
		sizes = append(sizes, n)
		level = next
	}
	return sizes, nil
}

// flatten copies v, nested depth deep, to the front of rest and moves rest on.
func flatten(v reflect.Value, depth int, rest *reflect.Value) {
	switch depth {
	case 0:
		rest.Index(0).Set(v)
		*rest = rest.Slice(1, rest.Len())
	case 1:
		n := reflect.Copy(*rest, v)
		*rest = rest.Slice(n, rest.Len())
	default:
		for i := range v.Len() {
			flatten(v.Index(i), depth-1, rest)
		}
	}
}

// as converts a contiguous tensor of a natural dtype without losing more than rounding of floats.
func (t *Tensor) as(dt DType) (*Tensor, error) {
	out := New(dt, t.sizes...)
	var err error
	switch {
	case t.dtype == Bool || dt == Bool || t.dtype.IsComplex() != dt.IsComplex() && t.dtype.IsComplex():
		err = convertError("tensor: %v elements to %v", t.dtype, dt)
	case dt.IsInt() && t.dtype.IsInt():
		var v []int64
		if v, err = gather[int64](t); err == nil {
			err = storeInts(out, v)
		}
	case dt.IsInt():
		err = convertError("tensor: %v elements to %v", t.dtype, dt)
	case dt.IsComplex():
		var v []complex128
		if v, err = gather[complex128](t); err == nil {
			err = storeComplex(out, v)
		}
	default:
		var v []float64
		if v, err = gather[float64](t); err == nil {
			err = storeFloats(out, v)
		}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func storeInts(t *Tensor, v []int64) error {
	switch t.dtype {
	case Int8:
		return narrow(Data[int8](t), v)
	case Int16:
		return narrow(Data[int16](t), v)
	case Int32:
		return narrow(Data[int32](t), v)
	case Int64:
		return narrow(Data[int64](t), v)
	case Uint8:
		return narrow(Data[uint8](t), v)
	case Uint16:
		return narrow(Data[uint16](t), v)
	case Uint32:
		return narrow(Data[uint32](t), v)
	}
	return narrow(Data[uint64](t), v)
}

func narrow[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](dst []T, src []int64) error {
	for i, x := range src {
		if dst[i] = T(x); int64(dst[i]) != x || (x < 0) != (dst[i] < 0) {
			return convertError("tensor: the value %d to %T", x, dst[i])
		}
	}
	return nil
}

func storeFloats(t *Tensor, v []float64) error {
	switch t.dtype {
	case Float64:
		copy(Data[float64](t), v)
	case Float32:
		d := Data[float32](t)
		for i, x := range v {
			d[i] = float32(x)
		}
	case Float16, BFloat16:
		round := F32ToF16
		if t.dtype == BFloat16 {
			round = F32ToBF16
		}
		d := Data[uint16](t)
		for i, x := range v {
			d[i] = round(float32(x))
		}
	default:
		return convertError("tensor: numbers to %v", t.dtype)
	}
	return nil
}

func storeComplex(t *Tensor, v []complex128) error {
	switch t.dtype {
	case Complex64:
		d := Data[complex64](t)
		for i, x := range v {
			d[i] = complex64(x)
		}
	case Complex128:
		copy(Data[complex128](t), v)
	default:
		return convertError("tensor: numbers to %v", t.dtype)
	}
	return nil
}

// Values gives the elements in row-major order as values of T. It shares the memory of a contiguous tensor whose elements
// are values of T; otherwise floats go into any float type, rounded; integers into any integer type that holds them, and into
// floats that are exact; Bool only into bool; real numbers also into complex ones.
func Values[T Number](t *Tensor) ([]T, error) {
	rt := reflect.TypeFor[T]()
	if t.liesAs(rt) {
		n := int(t.Numel())
		if n == 0 {
			return []T{}, nil
		}
		return unsafe.Slice((*T)(t.first()), n), nil
	}
	return gather[T](t)
}

// liesAs reports that the elements are values of a Go type, in row-major order without gaps.
func (t *Tensor) liesAs(elem reflect.Type) bool {
	return naturalDType(elem) == t.dtype && t.IsContiguous() && !t.conj && !t.neg
}

// first is the address of the first element of a tensor that is not empty.
func (t *Tensor) first() unsafe.Pointer {
	return unsafe.Pointer(&t.storage.buf[int(t.offset)*t.dtype.Size()])
}

// gather converts the elements in row-major order into a new slice.
func gather[T Number](t *Tensor) ([]T, error) {
	out := make([]T, t.Numel())
	dst := reflect.TypeFor[T]()
	put := setter(unsafe.Pointer(unsafe.SliceData(out)), dst)
	exact := t.dtype == Int64 || t.dtype == Uint64
	same := naturalDType(dst) == t.dtype && !t.conj && !t.neg
	for i := range out {
		off := t.elementOffset(int64(i))
		if same {
			out[i] = *(*T)(unsafe.Pointer(&t.storage.buf[int(off)*t.dtype.Size()]))
			continue
		}
		p := &Tensor{storage: t.storage, dtype: t.dtype, offset: off}
		var ok bool
		switch re, im := 0.0, 0.0; {
		case exact && t.dtype == Int64:
			x := Data[int64](p)[0]
			ok = put(i, x, 0, 0, t.dtype)
		case exact:
			x := Data[uint64](p)[0]
			if x > math.MaxInt64 && dst.Kind() == reflect.Uint64 {
				*(*uint64)(unsafe.Pointer(&out[i])) = x
				ok = true
				break
			}
			ok = x <= math.MaxInt64 && put(i, int64(x), 0, 0, t.dtype)
		default:
			re, im = t.element(off)
			ok = put(i, int64(re), re, im, t.dtype)
		}
		if !ok {
			return nil, convertError("tensor: the %v element %s to %v", t.dtype, t.elementText(off), dst)
		}
	}
	return out, nil
}

// setter stores element i of a slice of dst's: n for integers and bools, re and im for floats and complex numbers.
func setter(base unsafe.Pointer, dst reflect.Type) func(i int, n int64, re, im float64, from DType) bool {
	size := dst.Size()
	return func(i int, n int64, re, im float64, from DType) bool {
		v := reflect.NewAt(dst, unsafe.Add(base, uintptr(i)*size)).Elem()
		switch {
		case from == Bool || dst.Kind() == reflect.Bool:
			if from != Bool || dst.Kind() != reflect.Bool {
				return false
			}
			v.SetBool(n != 0)
		case from.IsInt() && v.CanInt():
			v.SetInt(n)
			return v.Int() == n
		case from.IsInt() && v.CanUint():
			v.SetUint(uint64(n))
			return n >= 0 && v.Uint() == uint64(n)
		case from.IsInt() && v.CanFloat():
			v.SetFloat(float64(n))
			return int64(v.Float()) == n
		case from.IsFloat() && v.CanFloat():
			v.SetFloat(re)
		case v.CanComplex() && from.IsInt():
			v.SetComplex(complex(float64(n), 0))
		case v.CanComplex():
			v.SetComplex(complex(re, im))
		default:
			return false
		}
		return true
	}
}
