// Package tensorio reads and writes tensors in the files that people have: .pt (torch.save), .npy, .npz, .safetensors and .json.
package tensorio

import (
	"bytes"
	"io"
	"os"
	"unsafe"

	"github.com/pt2go/pt2/archive"
	"github.com/pt2go/pt2/internal/newfile"
	"github.com/pt2go/pt2/internal/pickle"
	"github.com/pt2go/pt2/tensor"
)

// Tuple is a Python tuple in a .pt file; a list is []any.
type Tuple []any

// Set is a Python set or frozenset in a .pt file.
type Set []any

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

// Tensors is a state dict as a map: string keys and tensors only.
func (d *Dict) Tensors() (map[string]*tensor.Tensor, error) {
	m := make(map[string]*tensor.Tensor, len(d.Keys))
	for i, k := range d.Keys {
		name, ok := k.(string)
		if !ok {
			return nil, errorf("the key %v is a %T, not a string", k, k)
		}
		if m[name], ok = d.Values[i].(*tensor.Tensor); !ok {
			return nil, errorf("%q is a %T, not a tensor", name, d.Values[i])
		}
	}
	return m, nil
}

// LoadPT reads a torch.save file: nil, bool, int64, *big.Int, float64, complex128, string, []byte, []any, Tuple, Set, *Dict,
// tensor.DType and *tensor.Tensor, nested; a torch.device gives its name.
// Tensors that share a storage in the file share it afterwards. Classes other than tensors and plain containers are refused;
// nothing in the file is executed.
func LoadPT(path string) (any, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, errorf("%w", err)
	}
	return ParsePT(b)
}

// ParsePT is [LoadPT] for a file in memory. Tensors may point into b.
func ParsePT(b []byte) (any, error) {
	if !bytes.HasPrefix(b, []byte("PK")) {
		return nil, notPT(b)
	}
	r, err := archive.NewBytes(b, archive.Options{})
	if err != nil {
		return nil, err
	}
	return ReadPT(r, false)
}

// notPT says what a file is that is no zip.
func notPT(b []byte) error {
	kind := archive.Sniff(b)
	if kind == archive.KindPickle {
		return errorf("the file is %s: load it in PyTorch and torch.save it again, which writes a zip", kind)
	}
	return errorf("not a torch.save file: it is %s", kind)
}

// ReadPT reads the torch.save file that r holds. With readOnly the tensors' memory must not be written.
func ReadPT(r *archive.Reader, readOnly bool) (any, error) {
	if order, err := r.ReadString("byteorder"); err == nil && order != "little" {
		return nil, errorf("byte order %q is not supported", order)
	}
	p, err := r.ReadBytes("data.pkl")
	if err != nil {
		return nil, errorf("not a torch.save file: %s: %w", r.Describe(), err)
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
	case pickle.Set:
		l, err := d.list(v)
		return Set(l), err
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
		return nil, errorf("a bare storage is not supported")
	}
	return v, nil
}

func (d *decoder) tensor(t *pickle.TensorRef) (*tensor.Tensor, error) {
	dt, err := tensor.ParseDType(t.DType)
	if err != nil {
		return nil, errorf("%w", err)
	}
	st, err := d.storage(&t.Storage)
	if err != nil {
		return nil, err
	}
	out, err := tensor.View(st, dt, t.Size, t.Stride, t.Offset)
	if err != nil {
		return nil, errorf("tensor of %v with sizes %v, strides %v, offset %d over storage %q of %d bytes: %w", dt, t.Size, t.Stride, t.Offset, t.Storage.Key, len(st.Bytes()), err)
	}
	if t.Conj || t.Neg {
		out = out.WithBits(t.Conj, t.Neg)
	}
	return out, nil
}

// storage gives the storage of a key, which all tensors that name the key share.
func (d *decoder) storage(s *pickle.StorageRef) (*tensor.Storage, error) {
	if st := d.storages[s.Key]; st != nil {
		return st, nil
	}
	b, err := d.r.ReadBytes("data/" + s.Key)
	if err != nil {
		return nil, errorf("%w", err)
	}
	size := int64(1)
	if s.DType != "" {
		dt, err := tensor.ParseDType(s.DType)
		if err != nil {
			return nil, errorf("%w", err)
		}
		size = int64(dt.Size())
	}
	if s.Numel > int64(len(b))/size {
		return nil, errorf("storage %q has %d bytes, too few for the %d elements of %d bytes that the file says", s.Key, len(b), s.Numel, size)
	}
	// Tensors of several types may share the storage, so it is aligned for the widest.
	st := Wrap(b, tensor.Complex128, d.readOnly)
	d.storages[s.Key] = st
	return st, nil
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
	f, err := newfile.Create(path) // v may share memory with the file that is there
	if err != nil {
		return errorf("%w", err)
	}
	if err := WritePT(f, v); err != nil {
		f.Discard()
		return err
	}
	return f.Commit()
}

// WritePT is [SavePT] to a writer. Each storage is written once and whole, also where tensors see only a part of it.
func WritePT(w io.Writer, v any) error { return WritePTProtocol(w, v, 2) }

// WritePTProtocol is [WritePT] with a pickle protocol from 2 to 5; 0 means 2.
func WritePTProtocol(w io.Writer, v any, protocol int) error {
	e := &encoder{index: map[*tensor.Storage]int{}}
	p, err := e.value(v)
	if err != nil {
		return err
	}
	e.settle()
	b, err := pickle.MarshalProtocol(p, protocol)
	if err != nil {
		return err
	}
	z := archive.NewTorchWriter(w)
	z.WriteBytes("data.pkl", b)
	z.WriteString(".format_version", "1")
	z.WriteString(".storage_alignment", "64")
	z.WriteString("byteorder", "little")
	for i := range e.storages {
		z.WriteBytes("data/"+pickle.StorageKey(i), e.storages[i].bytes)
	}
	return z.Close() // gives the first error of all
}

type encoder struct {
	index    map[*tensor.Storage]int
	storages []encoderStorage
}

// encoderStorage is a storage and the tensors that were written over it.
type encoderStorage struct {
	bytes []byte
	refs  []*pickle.TensorRef
}

// settle decides for each storage whether it is written with an element type: where all its tensors have one type, for which
// torch has a storage class. torch.load would misread tensors of a second type over a typed storage.
func (e *encoder) settle() {
	for i, s := range e.storages {
		dt, n := "", int64(len(s.bytes))
		for _, t := range s.refs {
			if t.DType != s.refs[0].DType || !pickle.Typed(t.DType) {
				dt = ""
				break
			}
			dt = t.DType
		}
		if d, err := tensor.ParseDType(dt); err == nil && n%int64(d.Size()) == 0 {
			n /= int64(d.Size())
		} else {
			dt = ""
		}
		for _, t := range s.refs {
			t.Storage = pickle.StorageRef{Key: pickle.StorageKey(i), DType: dt, Numel: n}
		}
	}
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
	case Set:
		l, err := e.list(v)
		return pickle.Set(l), err
	case tensor.DType:
		return pickle.DType(v.String()), nil
	case map[string]any:
		return nil, errorf("a Go map has no order; use *tensorio.Dict")
	case *tensor.Tensor:
		if v == nil {
			return nil, nil
		}
		return e.tensor(v), nil
	}
	return v, nil
}

func (e *encoder) tensor(t *tensor.Tensor) *pickle.TensorRef {
	st := t.Storage()
	i, ok := e.index[st]
	if !ok {
		i = len(e.storages)
		e.index[st] = i
		e.storages = append(e.storages, encoderStorage{bytes: st.Bytes()})
	}
	ref := &pickle.TensorRef{DType: t.DType().String(), Offset: t.Offset(), Size: t.Sizes(), Stride: t.Strides(), Conj: t.IsConj(), Neg: t.IsNeg()}
	e.storages[i].refs = append(e.storages[i].refs, ref)
	return ref
}
