package pytree

import (
	"errors"
	"reflect"
)

// ErrUseDefault is what a [Codec] answers for a leaf that it leaves to this package.
var ErrUseDefault = errors.New("pytree: not a leaf of the codec")

// Codec lets Go types that this package does not know stand for leaves: slices for tensors, for example. The zero Codec takes
// leaves as [Spec.Flatten] and [Spec.Bind] do.
type Codec struct {
	// Encode gives leaf number i (in the order of the spec) for the Go value v, nil for none.
	Encode func(i int, v any) (any, error)
	// Decode stores leaf number i into what dst, a pointer, points to. It may refuse with [ErrUseDefault].
	Decode func(i int, leaf, dst any) error
	// IsLeaf reports that values of a slice or array type may stand for a leaf.
	IsLeaf func(t reflect.Type) bool
}

func (c *Codec) isLeaf(v reflect.Value) bool {
	return v.IsValid() && c.IsLeaf != nil && c.IsLeaf(v.Type())
}

// encode gives the leaf for v.
func (f *flattener) encode(v reflect.Value) (any, *MismatchError) {
	if f.codec.Encode == nil {
		x, ok := leafValue(v)
		if !ok {
			return nil, f.fail("want a leaf, got %s", describe(v))
		}
		return x, nil
	}
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	var x any
	if v.IsValid() && !isNil(v) {
		x = v.Interface()
	}
	x, err := f.codec.Encode(len(f.out), x)
	if err != nil {
		e := f.fail("%v", err)
		e.Err = err
		return nil, e
	}
	return x, nil
}
