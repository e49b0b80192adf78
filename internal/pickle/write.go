package pickle

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
)

// Marshal writes a value as a protocol 2 pickle that torch.load(weights_only=True) reads. It takes the types that [Load]
// gives, and []any and int. A tensor whose Storage.DType is empty, or differs from its own dtype, is written over an untyped
// storage, whose Numel counts bytes.
func Marshal(v any) ([]byte, error) { return MarshalProtocol(v, 2) }

// MarshalProtocol is [Marshal] with another protocol number, 2 to 5 (0 means 2). What it writes of each protocol is what all of
// them share.
func MarshalProtocol(v any, protocol int) ([]byte, error) {
	if protocol == 0 {
		protocol = 2
	}
	w := &writer{b: []byte{0x80, byte(protocol)}}
	if err := w.value(v, 0); err != nil {
		return nil, err
	}
	return append(w.b, '.'), nil
}

// Typed reports that torch has a storage class for a dtype; tensors of the others lie over untyped storages.
func Typed(dtype string) bool { return storageClasses[dtype] != "" }

var storageClasses = func() map[string]string {
	m := map[string]string{}
	for class, dt := range storageTypes {
		if dt != "" {
			m[dt] = class
		}
	}
	return m
}()

// StorageKey is the name of the i-th storage of a file.
func StorageKey(i int) string { return strconv.Itoa(i) }

type writer struct{ b []byte }

func (w *writer) op(c ...byte) { w.b = append(w.b, c...) }

func (w *writer) str(s string) error {
	if int64(len(s)) > math.MaxUint32 {
		return fmt.Errorf("pickle: a string of %d bytes is longer than protocol 2 can write", len(s))
	}
	w.op('X')
	w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(s)))
	w.b = append(w.b, s...)
	return nil
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

// bigInt writes two's complement, lowest byte first.
func (w *writer) bigInt(v *big.Int) error {
	n := v.BitLen()/8 + 1
	if n > 16 {
		return fmt.Errorf("pickle: an integer of %d bits is longer than 128", v.BitLen())
	}
	if v.Sign() < 0 {
		v = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	b := v.FillBytes(make([]byte, n))
	slices.Reverse(b)
	w.op(0x8a, byte(n))
	w.op(b...)
	return nil
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
	case *big.Int:
		return w.bigInt(v)
	case float64:
		w.float(v)
	case string:
		return w.str(v)
	case []byte:
		return w.bytes(v)
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
		return w.items('(', v, 't', depth)
	case Set:
		w.global("builtins", "set")
		if err := w.list(v, depth); err != nil {
			return err
		}
		w.op(0x85, 'R')
	case *Dict:
		return w.dict(v, depth)
	case DType:
		w.global("torch", string(v))
	case Device:
		w.global("torch", "device")
		err := w.str(string(v))
		w.op(0x85, 'R')
		return err
	case *TensorRef:
		return w.tensor(v)
	default:
		return fmt.Errorf("pickle: cannot write a %T", v)
	}
	return nil
}

// bytes are text of one rune a byte in protocol 2.
func (w *writer) bytes(b []byte) error {
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	w.global("_codecs", "encode")
	if err := w.str(string(r)); err != nil {
		return err
	}
	if err := w.str("latin1"); err != nil {
		return err
	}
	w.op(0x86, 'R')
	return nil
}

// items writes values between two opcodes.
func (w *writer) items(open byte, v []any, end byte, depth int) error {
	w.op(open)
	for _, x := range v {
		if err := w.value(x, depth+1); err != nil {
			return err
		}
	}
	w.op(end)
	return nil
}

func (w *writer) list(v []any, depth int) error {
	w.op(']')
	return w.items('(', v, 'e', depth)
}

func (w *writer) dict(d *Dict, depth int) error {
	w.op('}', '(')
	for i := range d.Keys {
		if err := w.value(d.Keys[i], depth+1); err != nil {
			return err
		}
		if err := w.value(d.Values[i], depth+1); err != nil {
			return err
		}
	}
	w.op('u')
	return nil
}

func (w *writer) tuple(v []int64) {
	w.op('(')
	for _, x := range v {
		w.int(x)
	}
	w.op('t')
}

// tensor writes a call of the function that torch.save names for such a tensor.
func (w *writer) tensor(t *TensorRef) error {
	if !dtypes[t.DType] {
		return fmt.Errorf("pickle: cannot write a tensor of dtype %q", t.DType)
	}
	if t.Parameter {
		w.global("torch._utils", "_rebuild_parameter")
		w.op('(')
	}
	typed := t.Storage.DType == t.DType && Typed(t.DType)
	if typed {
		w.global("torch._utils", "_rebuild_tensor_v2")
	} else {
		w.global("torch._utils", "_rebuild_tensor_v3")
	}
	w.op('(')
	if err := w.storage(t, typed); err != nil {
		return err
	}
	w.int(t.Offset)
	w.tuple(t.Size)
	w.tuple(t.Stride)
	w.bool(t.RequiresGrad && !t.Parameter)
	w.noHooks()
	if !typed {
		w.global("torch", t.DType)
	}
	if t.Conj || t.Neg {
		d := &Dict{}
		if t.Conj {
			d.Keys, d.Values = append(d.Keys, "conj"), append(d.Values, true)
		}
		if t.Neg {
			d.Keys, d.Values = append(d.Keys, "neg"), append(d.Values, true)
		}
		if err := w.dict(d, 0); err != nil {
			return err
		}
	}
	w.op('t', 'R')
	if t.Parameter {
		w.bool(t.RequiresGrad)
		w.noHooks()
		w.op('t', 'R')
	}
	return nil
}

// storage writes the persistent id of a tensor's storage.
func (w *writer) storage(t *TensorRef, typed bool) error {
	w.op('(')
	if err := w.str("storage"); err != nil {
		return err
	}
	if typed {
		w.global("torch", storageClasses[t.DType])
	} else {
		w.global("torch.storage", "UntypedStorage")
	}
	if err := w.str(t.Storage.Key); err != nil {
		return err
	}
	if err := w.str("cpu"); err != nil {
		return err
	}
	w.int(t.Storage.Numel)
	w.op('t', 'Q')
	return nil
}

// noHooks writes the empty dict of backward hooks.
func (w *writer) noHooks() {
	w.global("collections", "OrderedDict")
	w.op(')', 'R')
}
