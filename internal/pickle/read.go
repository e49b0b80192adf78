package pickle

import (
	"bytes"
	"fmt"
	"math/big"
	"strings"

	"github.com/nlpodyssey/gopickle/pickle"
	"github.com/nlpodyssey/gopickle/types"
)

const (
	maxNodes = 1 << 22 // values in one pickle after expansion of shared ones
	maxDepth = 200
)

// Load reads a pickle of tensors and plain containers: nil, bool, int64, *big.Int, float64, complex128, string, []byte, *Dict,
// List, Tuple, *TensorRef, *StorageRef, DType and Device.
func Load(b []byte) (v any, err error) {
	defer func() {
		if r := recover(); r != nil { // the library trusts its input in places
			v, err = nil, &FormatError{0, fmt.Sprintf("malformed pickle: %v", r)}
		}
	}()
	if err := check(b); err != nil {
		return nil, err
	}
	u := pickle.NewUnpickler(bytes.NewReader(b))
	u.FindClass = findClass
	u.PersistentLoad = persistentLoad
	raw, err := u.Load()
	if err != nil {
		return nil, err
	}
	c := &converter{}
	return c.convert(raw, 0)
}

// fn is a callable of the allow-list.
type fn func(args []any) (any, error)

func (f fn) Call(args ...any) (any, error)  { return f(args) }
func (f fn) PyNew(args ...any) (any, error) { return f(args) }

// storageClass is a class such as torch.FloatStorage, which only occurs in persistent ids.
type storageClass string

var storageTypes = map[string]string{"DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
	"BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
	"ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
	"UntypedStorage": "uint8"}

var dtypes = map[string]bool{"bool": true, "uint8": true, "int8": true, "int16": true, "int32": true, "int64": true, "uint16": true,
	"uint32": true, "uint64": true, "float16": true, "bfloat16": true, "float32": true, "float64": true, "complex32": true,
	"complex64": true, "complex128": true, "float8_e4m3fn": true, "float8_e5m2": true, "float8_e4m3fnuz": true,
	"float8_e5m2fnuz": true, "float8_e8m0fnu": true}

func findClass(module, name string) (any, error) {
	switch module + "." + name {
	case "torch._utils._rebuild_tensor_v2":
		return fn(func(a []any) (any, error) { return rebuild(a, "") }), nil
	case "torch._utils._rebuild_tensor_v3":
		return fn(func(a []any) (any, error) {
			if len(a) < 7 {
				return nil, fmt.Errorf("pickle: _rebuild_tensor_v3 with %d arguments", len(a))
			}
			dt, ok := a[6].(DType)
			if !ok {
				return nil, fmt.Errorf("pickle: _rebuild_tensor_v3 without a dtype")
			}
			return rebuild(a, string(dt))
		}), nil
	case "torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state":
		return fn(rebuildParameter), nil
	case "torch._tensor._rebuild_from_type_v2":
		return fn(rebuildFromType), nil
	case "torch.Tensor", "torch.nn.parameter.Parameter":
		return fn(func([]any) (any, error) { return nil, fmt.Errorf("pickle: a bare %s cannot be built", name) }), nil
	case "torch.Size", "builtins.tuple", "__builtin__.tuple":
		return fn(func(a []any) (any, error) {
			if len(a) == 1 {
				return a[0], nil
			}
			return types.NewTupleFromSlice(nil), nil
		}), nil
	case "torch.device":
		return fn(func(a []any) (any, error) {
			parts := make([]string, len(a))
			for i, x := range a {
				parts[i] = fmt.Sprint(x)
			}
			return Device(strings.Join(parts, ":")), nil
		}), nil
	case "builtins.complex", "__builtin__.complex":
		return fn(func(a []any) (any, error) {
			if len(a) == 2 {
				re, ok1 := a[0].(float64)
				im, ok2 := a[1].(float64)
				if ok1 && ok2 {
					return complex(re, im), nil
				}
			}
			return nil, fmt.Errorf("pickle: complex of %v", a)
		}), nil
	case "torch.serialization._get_layout":
		return fn(func(a []any) (any, error) { return fmt.Sprint(a...), nil }), nil
	}
	if dt, ok := storageTypes[name]; ok && (module == "torch" || module == "torch.storage") {
		return storageClass(dt), nil
	}
	if module == "torch" && dtypes[name] {
		return DType(name), nil
	}
	return nil, &UnsupportedClassError{module, name}
}

func persistentLoad(id any) (any, error) {
	t, ok := id.(*types.Tuple)
	if !ok || t.Len() != 5 {
		return nil, fmt.Errorf("pickle: persistent id %v", id)
	}
	kind, _ := t.Get(0).(string)
	class, ok1 := t.Get(1).(storageClass)
	key, ok2 := t.Get(2).(string)
	loc, ok3 := t.Get(3).(string)
	n, ok4 := t.Get(4).(int)
	if kind != "storage" || !ok1 || !ok2 || !ok3 || !ok4 || n < 0 {
		return nil, fmt.Errorf("pickle: persistent id %v is no storage", *t)
	}
	return &StorageRef{Key: key, DType: string(class), Location: loc, Numel: int64(n)}, nil
}

func rebuild(a []any, dtype string) (any, error) {
	if len(a) < 5 {
		return nil, fmt.Errorf("pickle: _rebuild_tensor with %d arguments", len(a))
	}
	st, ok1 := a[0].(*StorageRef)
	off, ok2 := a[1].(int)
	size, ok3 := ints(a[2])
	stride, ok4 := ints(a[3])
	grad, _ := a[4].(bool)
	if !ok1 || !ok2 || !ok3 || !ok4 || len(size) != len(stride) {
		return nil, fmt.Errorf("pickle: _rebuild_tensor with arguments of the wrong kind")
	}
	if dtype == "" {
		dtype = st.DType
	}
	t := &TensorRef{Storage: *st, DType: dtype, Offset: int64(off), Size: size, Stride: stride, RequiresGrad: grad}
	if len(a) > 6 {
		if meta, ok := a[6].(*types.Dict); ok { // the lazy bits of conjugated and negated tensors
			for _, e := range *meta {
				on, _ := e.Value.(bool)
				t.Conj = t.Conj || on && e.Key == "conj"
				t.Neg = t.Neg || on && e.Key == "neg"
			}
		}
	}
	return t, nil
}

func ints(v any) ([]int64, bool) {
	t, ok := v.(*types.Tuple)
	if !ok {
		return nil, false
	}
	out := make([]int64, t.Len())
	for i := range out {
		n, ok := t.Get(i).(int)
		if !ok {
			return nil, false
		}
		out[i] = int64(n)
	}
	return out, true
}

func rebuildParameter(a []any) (any, error) {
	if len(a) >= 2 {
		if t, ok := a[0].(*TensorRef); ok {
			p := *t
			p.Parameter = true
			p.RequiresGrad, _ = a[1].(bool)
			return &p, nil
		}
	}
	return nil, fmt.Errorf("pickle: _rebuild_parameter without a tensor")
}

// rebuildFromType: (function, type, arguments, state): plain tensors with attributes, which are dropped.
func rebuildFromType(a []any) (any, error) {
	if len(a) >= 3 {
		f, ok := a[0].(fn)
		args, ok2 := a[2].(*types.Tuple)
		if ok && ok2 {
			return f(*args)
		}
	}
	return nil, fmt.Errorf("pickle: _rebuild_from_type_v2 with arguments of the wrong kind")
}

type converter struct{ n int }

func (c *converter) convert(v any, depth int) (any, error) {
	if c.n++; c.n > maxNodes {
		return nil, &FormatError{0, fmt.Sprintf("more than %d values", maxNodes)}
	}
	if depth > maxDepth {
		return nil, &FormatError{0, fmt.Sprintf("nested more than %d deep", maxDepth)}
	}
	list := func(in []any) ([]any, error) {
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
	switch v := v.(type) {
	case nil, bool, float64, complex128, string, []byte, *TensorRef, *StorageRef, DType, Device, int64, *big.Int:
		return v, nil
	case int:
		return int64(v), nil
	case *types.List:
		l, err := list(*v)
		return List(l), err
	case *types.Tuple:
		l, err := list(*v)
		return Tuple(l), err
	case *types.Dict:
		d := &Dict{}
		for _, e := range *v {
			if err := c.put(d, e.Key, e.Value, depth); err != nil {
				return nil, err
			}
		}
		return d, nil
	case *types.OrderedDict:
		d := &Dict{}
		for e := v.List.Front(); e != nil; e = e.Next() {
			entry := e.Value.(*types.OrderedDictEntry)
			if err := c.put(d, entry.Key, entry.Value, depth); err != nil {
				return nil, err
			}
		}
		return d, nil
	}
	return nil, fmt.Errorf("pickle: a value of kind %T is not supported", v)
}

// put keeps Python's rule that a later entry of the same key replaces the earlier one.
func (c *converter) put(d *Dict, k, v any, depth int) error {
	key, err := c.convert(k, depth+1)
	if err != nil {
		return err
	}
	val, err := c.convert(v, depth+1)
	if err != nil {
		return err
	}
	d.Keys = append(d.Keys, key)
	d.Values = append(d.Values, val)
	return nil
}
