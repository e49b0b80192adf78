package pickle

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Marshal writes a value as a protocol 2 pickle that torch.load(weights_only=True) reads. It takes the types that [Load]
// gives, and []any and int.
func Marshal(v any) ([]byte, error) {
	w := &writer{b: []byte{0x80, 2}}
	if err := w.value(v, 0); err != nil {
		return nil, err
	}
	return append(w.b, '.'), nil
}

type writer struct{ b []byte }

func (w *writer) op(c ...byte) { w.b = append(w.b, c...) }

func (w *writer) str(s string) {
	w.op('X')
	w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) global(module, name string) { w.b = append(w.b, "c"+module+"\n"+name+"\n"...) }

func (w *writer) int(v int64) {
	switch {
	case v >= 0 && v < 256:
		w.op('K', byte(v))
	case v >= 0 && v < 65536:
		w.op('M', byte(v), byte(v>>8))
	case v >= math.MinInt32 && v <= math.MaxInt32:
		w.op('J')
		w.b = binary.LittleEndian.AppendUint32(w.b, uint32(int32(v)))
	default:
		w.op(0x8a, 8)
		w.b = binary.LittleEndian.AppendUint64(w.b, uint64(v))
	}
}

func (w *writer) float(f float64) {
	w.op('G')
	w.b = binary.BigEndian.AppendUint64(w.b, math.Float64bits(f))
}

func (w *writer) bool(v bool) {
	if v {
		w.op(0x88)
	} else {
		w.op(0x89)
	}
}

func (w *writer) value(v any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("pickle: nested more than %d deep", maxDepth)
	}
	switch v := v.(type) {
	case nil:
		w.op('N')
	case bool:
		w.bool(v)
	case int:
		w.int(int64(v))
	case int64:
		w.int(v)
	case float64:
		w.float(v)
	case string:
		w.str(v)
	case complex128:
		w.global("builtins", "complex")
		w.float(real(v))
		w.float(imag(v))
		w.op(0x86, 'R')
	case []any:
		return w.list(v, depth)
	case List:
		return w.list(v, depth)
	case Tuple:
		w.op('(')
		for _, x := range v {
			if err := w.value(x, depth+1); err != nil {
				return err
			}
		}
		w.op('t')
	case *Dict:
		w.op('}')
		for i := range v.Keys {
			if err := w.value(v.Keys[i], depth+1); err != nil {
				return err
			}
			if err := w.value(v.Values[i], depth+1); err != nil {
				return err
			}
			w.op('s')
		}
	case *TensorRef:
		return w.tensor(v)
	default:
		return fmt.Errorf("pickle: cannot write a %T", v)
	}
	return nil
}

func (w *writer) list(v []any, depth int) error {
	w.op(']', '(')
	for _, x := range v {
		if err := w.value(x, depth+1); err != nil {
			return err
		}
	}
	w.op('e')
	return nil
}

func (w *writer) tuple(v []int64) {
	w.op('(')
	for _, x := range v {
		w.int(x)
	}
	w.op('t')
}

func (w *writer) tensor(t *TensorRef) error {
	class := ""
	for name, dt := range storageTypes {
		if dt == t.DType && name != "UntypedStorage" {
			class = name
		}
	}
	module, numel := "torch", t.Storage.Numel
	if class == "" {
		if !dtypes[t.DType] {
			return fmt.Errorf("pickle: cannot write a tensor of dtype %q", t.DType)
		}
		w.global("torch._utils", "_rebuild_tensor_v3")
		module, class = "torch.storage", "UntypedStorage"
	} else {
		w.global("torch._utils", "_rebuild_tensor_v2")
	}
	w.op('(', '(')
	w.str("storage")
	w.global(module, class)
	w.str(t.Storage.Key)
	w.str("cpu")
	w.int(numel)
	w.op('t', 'Q')
	w.int(t.Offset)
	w.tuple(t.Size)
	w.tuple(t.Stride)
	w.bool(t.RequiresGrad)
	w.global("collections", "OrderedDict")
	w.op(')', 'R')
	if class == "UntypedStorage" {
		w.global("torch", t.DType)
	}
	w.op('t', 'R')
	return nil
}

// StorageKey is the name of the i-th storage of a file.
func StorageKey(i int) string { return strconv.Itoa(i) }
