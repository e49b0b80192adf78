package pickle

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"

	"github.com/nlpodyssey/gopickle/pickle"
	"github.com/nlpodyssey/gopickle/types"
)

const (
	maxOps   = 1 << 22 // opcodes in one pickle
	maxMarks = 1 << 12 // open marks, that is nested containers under construction
	maxDepth = 200     // nesting of values
	maxDims  = 64      // dimensions of a tensor
)

// Load reads a pickle of tensors and plain containers: nil, bool, int64, *big.Int, float64, complex128, string, []byte, *Dict,
// List, Tuple, Set, *TensorRef, *StorageRef, DType and Device. A class that is none of these is an [*UnsupportedClassError],
// whatever else is wrong a [*FormatError].
//
// Values that the pickle shares come back as several, so their number is bounded by that of the opcodes.
func Load(b []byte) (v any, err error) {
	defer func() {
		if r := recover(); r != nil { // the library trusts its input in places
			v, err = nil, &FormatError{0, fmt.Sprintf("malformed pickle: %v", r)}
		}
	}()
	ops, err := check(b)
	if err != nil {
		return nil, err
	}
	u := pickle.NewUnpickler(bytes.NewReader(b))
	u.FindClass = (&session{encodeLeft: len(b)}).findClass
	u.PersistentLoad = persistentLoad
	raw, err := u.Load()
	if err != nil {
		return nil, typed(err)
	}
	c := &converter{left: 4*ops + 1024}
	if v, err = c.convert(raw, 0); err != nil {
		return nil, typed(err)
	}
	return v, nil
}

// typed gives errors of the library a type.
func typed(err error) error {
	var class *UnsupportedClassError
	var format *FormatError
	if errors.As(err, &class) || errors.As(err, &format) {
		return err
	}
	return &FormatError{0, err.Error()}
}

// converter turns the library's values into ours.
type converter struct{ left int }

func (c *converter) convert(v any, depth int) (any, error) {
	if c.left--; c.left < 0 {
		return nil, errors.New("shared values multiply beyond what the file justifies")
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep, or a value holds itself", maxDepth)
	}
	switch v := v.(type) {
	case nil, bool, float64, complex128, string, []byte, *TensorRef, *StorageRef, DType, Device, int64, *big.Int:
		return v, nil
	case int:
		return int64(v), nil
	case *types.List:
		l, err := c.list(*v, depth)
		return List(l), err
	case *types.Tuple:
		l, err := c.list(*v, depth)
		return Tuple(l), err
	case setItems:
		l, err := c.list(v, depth)
		return Set(l), err
	case *types.Set:
		return c.set(len(*v), func(yield func(any)) {
			for k := range *v {
				yield(k)
			}
		}, depth)
	case *types.FrozenSet:
		return c.set(len(*v), func(yield func(any)) {
			for k := range *v {
				yield(k)
			}
		}, depth)
	case *types.Dict:
		d := newDict(len(*v))
		for _, e := range *v {
			if err := c.put(d, e.Key, e.Value, depth); err != nil {
				return nil, err
			}
		}
		return d.Dict, nil
	case *types.OrderedDict:
		d := newDict(v.List.Len())
		for e := v.List.Front(); e != nil; e = e.Next() {
			entry := e.Value.(*types.OrderedDictEntry)
			if err := c.put(d, entry.Key, entry.Value, depth); err != nil {
				return nil, err
			}
		}
		return d.Dict, nil
	case callable, storageClass:
		return nil, errors.New("a class or function stands where a value should")
	}
	return nil, fmt.Errorf("a value of kind %T is not supported", v)
}

func (c *converter) list(in []any, depth int) ([]any, error) {
	if len(in) > c.left {
		return nil, errors.New("shared values multiply beyond what the file justifies")
	}
	out := make([]any, len(in))
	for i, x := range in {
		y, err := c.convert(x, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = y
	}
	return out, nil
}

// set gives the members in an order of their own, because the library does not keep that of the file.
func (c *converter) set(n int, members func(yield func(any)), depth int) (any, error) {
	in := make([]any, 0, n)
	members(func(k any) { in = append(in, k) })
	out, err := c.list(in, depth)
	if err != nil {
		return nil, err
	}
	sortValues(out)
	return Set(out), nil
}

// dict builds a Dict with Python's rule that a later entry of a key replaces the value of the earlier one.
type dict struct {
	*Dict
	at map[any]int
}

func newDict(n int) *dict {
	return &dict{&Dict{Keys: make([]any, 0, n), Values: make([]any, 0, n)}, make(map[any]int, n)}
}

func (c *converter) put(d *dict, k, v any, depth int) error {
	key, err := c.convert(k, depth+1)
	if err != nil {
		return err
	}
	val, err := c.convert(v, depth+1)
	if err != nil {
		return err
	}
	switch key.(type) {
	case string, int64, bool, float64, DType, Device, nil:
		if i, ok := d.at[key]; ok {
			d.Values[i] = val
			return nil
		}
		d.at[key] = len(d.Keys)
	case List, *Dict, Set:
		return errors.New("a key of a dict is a container that can change")
	}
	d.Keys = append(d.Keys, key)
	d.Values = append(d.Values, val)
	return nil
}
