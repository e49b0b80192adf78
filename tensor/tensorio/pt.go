// Package tensorio reads and writes tensors in the files that people have: .pt (torch.save), .npy, .npz, .safetensors and .json.
package tensorio

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unsafe"

	"github.com/pt2go/pt2/archive"
	"github.com/pt2go/pt2/internal/pickle"
	"github.com/pt2go/pt2/tensor"
)

// Tuple is a Python tuple in a .pt file; a list is []any.
type Tuple []any

// Dict is a Python dict with its order.
type Dict struct {
	Keys, Values []any
}

// Get finds a string key.
func (d *Dict) Get(key string) (any, bool) {
	for i, k := range d.Keys {
		if k == key {
			return d.Values[i], true
		}
	}
	return nil, false
}

// LoadPT reads a torch.save file: nil, bool, int64, float64, complex128, string, []any, Tuple, *Dict and *tensor.Tensor, nested.
// Tensors that share a storage in the file share it afterwards. Classes other than tensors and plain containers are refused;
// nothing in the file is executed.
func LoadPT(path string) (any, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("tensorio: %w", err)
	}
	return ParsePT(b)
}

// ParsePT is [LoadPT] for a file in memory. Tensors may point into b.
func ParsePT(b []byte) (any, error) {
	if !bytes.HasPrefix(b, []byte("PK")) {
		return nil, fmt.Errorf("tensorio: not a torch.save file: %s", archive.Sniff(b).Advice())
	}
	r, err := archive.NewBytes(b, archive.Options{})
	if err != nil {
		return nil, err
	}
	return ReadPT(r, false)
}

// ReadPT reads the torch.save file that r holds. With readOnly the tensors' memory must not be written.
func ReadPT(r *archive.Reader, readOnly bool) (any, error) {
	if order, err := r.ReadString("byteorder"); err == nil && order != "little" {
		return nil, fmt.Errorf("tensorio: byte order %q is not supported", order)
	}
	p, err := r.ReadBytes("data.pkl")
	if err != nil {
		return nil, fmt.Errorf("tensorio: not a torch.save file: %s: %w", r.Describe(), err)
	}
	v, err := pickle.Load(p)
	if err != nil {
		return nil, err
	}
	d := &decoder{r: r, readOnly: readOnly, storages: map[string]*tensor.Storage{}}
	return d.value(v)
}

type decoder struct {
	r        *archive.Reader
	readOnly bool
	storages map[string]*tensor.Storage
}

func (d *decoder) list(in []any) ([]any, error) {
	out := make([]any, len(in))
	for i, x := range in {
		y, err := d.value(x)
		if err != nil {
			return nil, err
		}
		out[i] = y
	}
	return out, nil
}

func (d *decoder) value(v any) (any, error) {
	switch v := v.(type) {
	case pickle.List:
		return d.list(v)
	case pickle.Tuple:
		l, err := d.list(v)
		return Tuple(l), err
	case *pickle.Dict:
		keys, err := d.list(v.Keys)
		if err != nil {
			return nil, err
		}
		vals, err := d.list(v.Values)
		return &Dict{keys, vals}, err
	case *pickle.TensorRef:
		return d.tensor(v)
	case pickle.DType:
		return tensor.ParseDType(string(v))
	case pickle.Device:
		return string(v), nil
	case *pickle.StorageRef:
		return nil, fmt.Errorf("tensorio: a bare storage is not supported")
	}
	return v, nil
}

func (d *decoder) tensor(t *pickle.TensorRef) (*tensor.Tensor, error) {
	dt, err := tensor.ParseDType(t.DType)
	if err != nil {
		return nil, fmt.Errorf("tensorio: %w", err)
	}
	st := d.storages[t.Storage.Key]
	if st == nil {
		b, err := d.r.ReadBytes("data/" + t.Storage.Key)
		if err != nil {
			return nil, err
		}
		st = Wrap(b, dt, d.readOnly)
		d.storages[t.Storage.Key] = st
	}
	v, err := tensor.View(st, dt, t.Size, t.Stride, t.Offset)
	if err == nil && (t.Conj || t.Neg) {
		v = v.WithBits(t.Conj, t.Neg)
	}
	return v, err
}

// Wrap makes a storage over b, which is copied only if its elements of type dt would not be aligned.
func Wrap(b []byte, dt tensor.DType, readOnly bool) *tensor.Storage {
	align := min(dt.Size(), 8)
	if len(b) > 0 && uintptr(unsafe.Pointer(&b[0]))%uintptr(align) != 0 {
		c := tensor.AlignedBytes(len(b))
		copy(c, b)
		return tensor.WrapStorage(c, false)
	}
	return tensor.WrapStorage(b, readOnly)
}

// SavePT writes v, nested of the types that [LoadPT] gives, as torch.load(weights_only=True) reads it.
func SavePT(path string, v any) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("tensorio: %w", err)
	}
	if err := WritePT(f, v); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// WritePT is [SavePT] to a writer.
func WritePT(w io.Writer, v any) error {
	e := &encoder{keys: map[*tensor.Storage]string{}}
	p, err := e.value(v)
	if err != nil {
		return err
	}
	b, err := pickle.Marshal(p)
	if err != nil {
		return err
	}
	z := archive.NewTorchWriter(w)
	z.WriteBytes("data.pkl", b)
	z.WriteString(".format_version", "1")
	z.WriteString(".storage_alignment", "64")
	z.WriteString("byteorder", "little")
	for i, st := range e.storages {
		z.WriteBytes("data/"+pickle.StorageKey(i), st)
	}
	return z.Close()
}

type encoder struct {
	keys     map[*tensor.Storage]string
	storages [][]byte
}

func (e *encoder) list(in []any) ([]any, error) {
	out := make([]any, len(in))
	for i, x := range in {
		y, err := e.value(x)
		if err != nil {
			return nil, err
		}
		out[i] = y
	}
	return out, nil
}

func (e *encoder) value(v any) (any, error) {
	switch v := v.(type) {
	case []any:
		return e.list(v)
	case Tuple:
		l, err := e.list(v)
		return pickle.Tuple(l), err
	case *Dict:
		keys, err := e.list(v.Keys)
		if err != nil {
			return nil, err
		}
		vals, err := e.list(v.Values)
		return &pickle.Dict{Keys: keys, Values: vals}, err
	case map[string]any:
		return nil, fmt.Errorf("tensorio: a Go map has no order; use *tensorio.Dict")
	case *tensor.Tensor:
		if v == nil {
			return nil, nil
		}
		return e.tensor(v)
	}
	return v, nil
}

func (e *encoder) tensor(t *tensor.Tensor) (*pickle.TensorRef, error) {
	if t.IsConj() || t.IsNeg() {
		return nil, fmt.Errorf("tensorio: a lazily conjugated or negated tensor must be resolved before it is written")
	}
	st := t.Storage()
	key, ok := e.keys[st]
	if !ok {
		key = pickle.StorageKey(len(e.storages))
		e.keys[st] = key
		e.storages = append(e.storages, st.Bytes())
	}
	n := int64(len(st.Bytes()))
	if !untyped(t.DType()) {
		n /= int64(t.DType().Size())
	}
	return &pickle.TensorRef{Storage: pickle.StorageRef{Key: key, Numel: n}, DType: t.DType().String(), Offset: t.Offset(), Size: t.Sizes(), Stride: t.Strides()}, nil
}

// untyped reports the dtypes that torch.save writes over an untyped storage, which counts bytes.
func untyped(d tensor.DType) bool {
	return d == tensor.Uint16 || d == tensor.Uint32 || d == tensor.Uint64 || d.IsFloat8() || d == tensor.Complex32
}
