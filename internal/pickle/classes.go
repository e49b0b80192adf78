package pickle

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/nlpodyssey/gopickle/types"
)

// callable is a function or class of the allow-list.
type callable struct {
	name string
	call func(args []any) (any, error)
}

// Call implements the library's Callable.
func (c callable) Call(args ...any) (any, error) {
	v, err := c.call(args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	return v, nil
}

// PyNew implements the library's PyNewable.
func (c callable) PyNew(args ...any) (any, error) { return c.Call(args...) }

// setItems are the members of a set in the order of the file.
type setItems []any

// storageClass is the element type of a class such as torch.FloatStorage, which only occurs in persistent ids.
type storageClass string

var storageTypes = map[string]string{"DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
	"BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
	"ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
	"UntypedStorage": ""}

var dtypes = map[string]bool{"bool": true, "uint8": true, "int8": true, "int16": true, "int32": true, "int64": true, "uint16": true,
	"uint32": true, "uint64": true, "float16": true, "bfloat16": true, "float32": true, "float64": true, "complex32": true,
	"complex64": true, "complex128": true, "float8_e4m3fn": true, "float8_e5m2": true, "float8_e4m3fnuz": true,
	"float8_e5m2fnuz": true, "float8_e8m0fnu": true}

// callables are all functions and classes that a pickle may call. Each only makes values.
var callables = map[string]func(args []any) (any, error){
	"torch._utils._rebuild_tensor_v2":            rebuildTensorV2,
	"torch._utils._rebuild_tensor_v3":            rebuildTensorV3,
	"torch._utils._rebuild_parameter":            rebuildParameter,
	"torch._utils._rebuild_parameter_with_state": rebuildParameter,
	"torch._tensor._rebuild_from_type_v2":        rebuildFromType,
	"torch.Tensor":                               refuseBare,
	"torch.nn.parameter.Parameter":               refuseBare,
	"torch.Size":                                 newTuple,
	"torch.device":                               newDevice,
	"torch.serialization._get_layout":            newLayout,
	"builtins.tuple":                             newTuple,
	"builtins.dict":                              newEmptyDict,
	"builtins.set":                               newSet,
	"builtins.frozenset":                         newSet,
	"builtins.complex":                           newComplex,
	"builtins.bytes":                             newEmptyBytes,
}

// session is what one Load keeps.
type session struct {
	encodeLeft int // bytes of text that may still be turned into bytes
}

// findClass resolves the names of the allow-list.
func (s *session) findClass(module, name string) (any, error) {
	full := module + "." + name
	if module == "__builtin__" { // Python 2's name, which protocol 2 writes
		full = "builtins." + name
	}
	if full == "_codecs.encode" {
		return callable{full, s.encode}, nil
	}
	if f := callables[full]; f != nil {
		return callable{full, f}, nil
	}
	if dt, ok := storageTypes[name]; ok && (module == "torch" || module == "torch.storage") {
		return storageClass(dt), nil
	}
	if module == "torch" && dtypes[name] {
		return DType(name), nil
	}
	return nil, &UnsupportedClassError{module, name}
}

var errArgs = errors.New("called with arguments of the wrong number or kind")

// persistentLoad reads ("storage", class, key, location, number of elements).
func persistentLoad(id any) (any, error) {
	t, ok := id.(*types.Tuple)
	if !ok || t.Len() != 5 {
		return nil, errors.New("a persistent id is no tuple of five")
	}
	kind, _ := t.Get(0).(string)
	class, ok1 := t.Get(1).(storageClass)
	key, ok2 := t.Get(2).(string)
	loc, ok3 := t.Get(3).(string)
	n, ok4 := t.Get(4).(int)
	if kind != "storage" || !ok1 || !ok2 || !ok3 || !ok4 || n < 0 {
		return nil, errors.New("a persistent id does not name a storage")
	}
	return &StorageRef{Key: key, DType: string(class), Location: loc, Numel: int64(n)}, nil
}

// rebuildTensorV2 takes storage, offset, size, stride, requires_grad, backward hooks and possibly metadata.
func rebuildTensorV2(a []any) (any, error) {
	t, err := rebuild(a)
	if err != nil {
		return nil, err
	}
	if t.DType = t.Storage.DType; t.DType == "" {
		return nil, errors.New("the storage has no element type")
	}
	return t, t.metadata(a, 6)
}

// rebuildTensorV3 has the dtype before the metadata.
func rebuildTensorV3(a []any) (any, error) {
	t, err := rebuild(a)
	if err != nil {
		return nil, err
	}
	if len(a) < 7 {
		return nil, errArgs
	}
	dt, ok := a[6].(DType)
	if !ok {
		return nil, errArgs
	}
	t.DType = string(dt)
	return t, t.metadata(a, 7)
}

func rebuild(a []any) (*TensorRef, error) {
	if len(a) < 5 {
		return nil, errArgs
	}
	st, ok1 := a[0].(*StorageRef)
	off, ok2 := a[1].(int)
	size, ok3 := ints(a[2])
	stride, ok4 := ints(a[3])
	grad, ok5 := a[4].(bool)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || len(size) != len(stride) {
		return nil, errArgs
	}
	return &TensorRef{Storage: *st, Offset: int64(off), Size: size, Stride: stride, RequiresGrad: grad}, nil
}

// metadata reads the dict {"conj": bool, "neg": bool} at a[i], if there is one. Other entries change the tensor's meaning in
// ways that this reader does not know.
func (t *TensorRef) metadata(a []any, i int) error {
	if i >= len(a) || a[i] == nil {
		return nil
	}
	d, ok := a[i].(*types.Dict)
	if !ok {
		return errArgs
	}
	for _, e := range *d {
		name, ok1 := e.Key.(string)
		v, ok2 := e.Value.(bool)
		switch {
		case !ok1 || !ok2:
			return errArgs
		case name == "conj":
			t.Conj = v
		case name == "neg":
			t.Neg = v
		default:
			return fmt.Errorf("tensor metadata %.40q is not supported", name)
		}
	}
	return nil
}

func ints(v any) ([]int64, bool) {
	t, ok := v.(*types.Tuple)
	if !ok || t.Len() > maxDims {
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

// rebuildParameter takes a tensor, requires_grad, backward hooks and possibly a state, which is dropped.
func rebuildParameter(a []any) (any, error) {
	if len(a) < 2 {
		return nil, errArgs
	}
	t, ok1 := a[0].(*TensorRef)
	grad, ok2 := a[1].(bool)
	if !ok1 || !ok2 {
		return nil, errArgs
	}
	p := *t
	p.Parameter, p.RequiresGrad = true, grad
	return &p, nil
}

// rebuildFromType takes a function, a type, arguments and a state: a plain tensor with attributes, which are dropped. (The
// types of subclasses do not resolve.)
func rebuildFromType(a []any) (any, error) {
	if len(a) < 3 {
		return nil, errArgs
	}
	f, ok1 := a[0].(callable)
	args, ok2 := a[2].(*types.Tuple)
	if !ok1 || !ok2 || !strings.HasPrefix(f.name, "torch._utils._rebuild_") {
		return nil, errArgs
	}
	return f.Call(*args...)
}

func refuseBare([]any) (any, error) { return nil, errors.New("cannot be built without a storage") }

// items gives the members of the single argument, none if there is no argument.
func items(a []any) ([]any, error) {
	if len(a) == 0 {
		return nil, nil
	}
	if len(a) == 1 {
		switch x := a[0].(type) {
		case *types.Tuple:
			return *x, nil
		case *types.List:
			return *x, nil
		}
	}
	return nil, errArgs
}

func newTuple(a []any) (any, error) {
	l, err := items(a)
	return types.NewTupleFromSlice(l), err
}

func newSet(a []any) (any, error) {
	l, err := items(a)
	return setItems(l), err
}

func newEmptyDict(a []any) (any, error) {
	if len(a) > 0 {
		return nil, errArgs
	}
	return types.NewDict(), nil
}

func newEmptyBytes(a []any) (any, error) {
	if len(a) > 0 {
		return nil, errArgs
	}
	return []byte{}, nil
}

// encode makes the bytes that protocol 2 writes as text, one byte a rune. Each text is meant to be used once.
func (s *session) encode(a []any) (any, error) {
	if len(a) != 2 || a[1] != "latin1" {
		return nil, errArgs
	}
	text, ok := a[0].(string)
	if !ok {
		return nil, errArgs
	}
	if s.encodeLeft -= len(text); s.encodeLeft < 0 {
		return nil, errors.New("more bytes than the file has text")
	}
	b := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 0xff {
			return nil, errors.New("text that is not latin1")
		}
		b = append(b, byte(r))
	}
	return b, nil
}

func newDevice(a []any) (any, error) {
	if len(a) == 0 || len(a) > 2 {
		return nil, errArgs
	}
	s, ok := a[0].(string)
	if !ok {
		return nil, errArgs
	}
	if len(a) == 2 {
		n, ok := a[1].(int)
		if !ok {
			return nil, errArgs
		}
		s = fmt.Sprintf("%s:%d", s, n)
	}
	return Device(s), nil
}

func newLayout(a []any) (any, error) {
	if len(a) != 1 {
		return nil, errArgs
	}
	s, ok := a[0].(string)
	if !ok {
		return nil, errArgs
	}
	return s, nil
}

func newComplex(a []any) (any, error) {
	if len(a) != 2 {
		return nil, errArgs
	}
	re, ok1 := a[0].(float64)
	im, ok2 := a[1].(float64)
	if !ok1 || !ok2 {
		return nil, errArgs
	}
	return complex(re, im), nil
}

// sortValues orders members by kind and value, so that equal files give equal results.
func sortValues(v []any) {
	sort.SliceStable(v, func(i, j int) bool {
		a, b := v[i], v[j]
		if ta, tb := fmt.Sprintf("%T", a), fmt.Sprintf("%T", b); ta != tb {
			return ta < tb
		}
		switch a := a.(type) {
		case string:
			return a < b.(string)
		case int64:
			return a < b.(int64)
		case float64:
			return a < b.(float64)
		}
		return false
	})
}
