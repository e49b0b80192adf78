package tensor

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"unsafe"

	"github.com/x448/float16"
)

// Align is the alignment in bytes of memory that this package allocates, and that kernels like best.
const Align = 64

// Storage is the memory that one or more tensors look at. Its bytes may be swapped by [Storage.Reset], which every tensor
// that shares it then sees; only the owner may do that, between runs.
type Storage struct {
	buf      []byte
	readOnly bool
}

// CheckBytes refuses n bytes that the machine does not have, with an error that wraps [ErrMemory].
func CheckBytes(n int64) error {
	if n > 1<<28 {
		if most := MachineMemory(); most > 0 && n > most {
			return fmt.Errorf("%w: you tried to allocate %d bytes", ErrMemory, n)
		}
	}
	return nil
}

// AlignedBytes returns n zero bytes that begin at a multiple of [Align]. More than the machine has is a panic with an error that wraps
// [ErrMemory], because what the runtime does then cannot be recovered from.
func AlignedBytes(n int) []byte {
	if n == 0 {
		return nil
	}
	if err := CheckBytes(int64(n)); err != nil {
		panic(err)
	}
	b := make([]byte, n+Align-1)
	k := int(-uintptr(unsafe.Pointer(&b[0])) & (Align - 1))
	return b[k : k+n : k+n]
}

// NewStorage allocates n zero bytes.
func NewStorage(n int) *Storage { return &Storage{buf: AlignedBytes(n)} }

// WrapStorage makes a storage over b without copying. A read-only storage (mapped memory) must not be written: operators
// that would do so get a copy from the layer above.
func WrapStorage(b []byte, readOnly bool) *Storage { return &Storage{buf: b, readOnly: readOnly} }

// Bytes is the whole memory.
func (s *Storage) Bytes() []byte { return s.buf }

// ReadOnly reports whether the memory must not be written.
func (s *Storage) ReadOnly() bool { return s.readOnly }

// Reset replaces the memory. Tensors that share s must still fit into b.
func (s *Storage) Reset(b []byte) { s.buf = b }

// Tensor is a strided view of a storage. A Tensor is immutable but for the elements; methods that change the view return
// a new Tensor.
type Tensor struct {
	storage *Storage
	sizes   []int64
	strides []int64
	offset  int64
	dtype   DType
	conj    bool
	neg     bool
}

// ErrBounds is the kind of error for a view that leaves its storage.
var ErrBounds = errors.New("view leaves its storage")

// ErrMemory is the kind of error for memory that the machine does not have.
var ErrMemory = errors.New("tensor: can't allocate memory")

// ErrSize is the kind of error for sizes that are negative or whose product overflows.
var ErrSize = errors.New("invalid size")

// Numel multiplies sizes; it fails on negative sizes and on a product that does not fit.
func Numel(sizes []int64) (int64, error) {
	n := int64(1)
	zero := false
	for _, s := range sizes {
		if s < 0 {
			return 0, fmt.Errorf("tensor: size %d in %v: %w", s, sizes, ErrSize)
		}
		if s == 0 {
			zero = true
			continue
		}
		hi, lo := bits.Mul64(uint64(n), uint64(s))
		if hi != 0 || lo > 1<<62 {
			if zero {
				continue
			}
			for _, r := range sizes {
				zero = zero || r == 0
			}
			if zero {
				return 0, nil
			}
			return 0, fmt.Errorf("tensor: %v has too many elements: %w", sizes, ErrSize)
		}
		n = int64(lo)
	}
	if zero {
		return 0, nil
	}
	return n, nil
}

// ContiguousStrides gives the row-major strides of sizes. As in PyTorch a dimension of size 0 counts as 1.
func ContiguousStrides(sizes []int64) []int64 {
	st := make([]int64, len(sizes))
	n := int64(1)
	for i := len(sizes) - 1; i >= 0; i-- {
		st[i] = n
		n *= max(sizes[i], 1)
	}
	return st
}

// New allocates a contiguous tensor of zeros. It panics on sizes that [Numel] refuses; check sizes that come from outside.
func New(dt DType, sizes ...int64) *Tensor {
	return NewStrided(dt, sizes, ContiguousStrides(sizes))
}

// NewStrided allocates zeros for the given sizes and strides (not negative), with offset 0. It panics as [New] does.
func NewStrided(dt DType, sizes, strides []int64) *Tensor {
	n, err := extent(sizes, strides)
	if err != nil {
		panic(err)
	}
	if n > (1<<62)/16 {
		panic(fmt.Errorf("tensor: %v has too many elements: %w", sizes, ErrSize))
	}
	return &Tensor{storage: NewStorage(int(n) * dt.Size()), dtype: dt, sizes: sizes, strides: strides}
}

// extent is the number of elements from the first to the last one that a view reaches, 0 for an empty view.
func extent(sizes, strides []int64) (int64, error) {
	if len(sizes) != len(strides) {
		return 0, fmt.Errorf("tensor: %d sizes but %d strides: %w", len(sizes), len(strides), ErrSize)
	}
	if n, err := Numel(sizes); err != nil || n == 0 {
		return 0, err
	}
	last := uint64(0)
	for i, s := range sizes {
		if strides[i] < 0 {
			return 0, fmt.Errorf("tensor: negative stride %d: %w", strides[i], ErrSize)
		}
		hi, lo := bits.Mul64(uint64(s-1), uint64(strides[i]))
		sum, carry := bits.Add64(last, lo, 0)
		if hi != 0 || carry != 0 || sum > 1<<61 {
			return 0, fmt.Errorf("tensor: strides %v overflow: %w", strides, ErrSize)
		}
		last = sum
	}
	return int64(last) + 1, nil
}

// View makes a tensor over st after checking that every element lies inside it. Sizes and strides are kept, not copied.
func View(st *Storage, dt DType, sizes, strides []int64, offset int64) (*Tensor, error) {
	n, err := extent(sizes, strides)
	if err != nil {
		return nil, err
	}
	if !dt.Valid() {
		return nil, fmt.Errorf("tensor: view with dtype %v", dt)
	}
	have := int64(len(st.buf) / dt.Size())
	if offset < 0 || (n > 0 && (offset > have || n > have-offset)) {
		return nil, fmt.Errorf("tensor: sizes %v, strides %v, offset %d need %d elements of %v, the storage has %d: %w",
			sizes, strides, offset, offset+n, dt, have, ErrBounds)
	}
	return &Tensor{storage: st, dtype: dt, sizes: sizes, strides: strides, offset: offset}, nil
}

// DType is the element type.
func (t *Tensor) DType() DType { return t.dtype }

// Sizes are the dimensions. The slice must not be changed.
func (t *Tensor) Sizes() []int64 { return t.sizes }

// Strides are in elements. The slice must not be changed.
func (t *Tensor) Strides() []int64 { return t.strides }

// Offset is the position of the first element in the storage, in elements.
func (t *Tensor) Offset() int64 { return t.offset }

// Storage is the memory behind t.
func (t *Tensor) Storage() *Storage { return t.storage }

// Dim is the number of dimensions.
func (t *Tensor) Dim() int { return len(t.sizes) }

// IsConj reports PyTorch's lazy conjugation: the elements stand for their conjugates.
func (t *Tensor) IsConj() bool { return t.conj }

// IsNeg reports PyTorch's lazy negation.
func (t *Tensor) IsNeg() bool { return t.neg }

// Numel is the number of elements.
func (t *Tensor) Numel() int64 {
	n := int64(1)
	for _, s := range t.sizes {
		n *= s
	}
	return n
}

// IsContiguous reports row-major order without gaps; strides of dimensions of size 1 do not count.
func (t *Tensor) IsContiguous() bool {
	n := int64(1)
	for i := len(t.sizes) - 1; i >= 0; i-- {
		if t.sizes[i] == 0 {
			return true
		}
		if t.sizes[i] != 1 && t.strides[i] != n {
			return contiguousEmpty(t.sizes)
		}
		n *= t.sizes[i]
	}
	return true
}

func contiguousEmpty(sizes []int64) bool {
	for _, s := range sizes {
		if s == 0 {
			return true
		}
	}
	return false
}

// WithView returns another view of the same storage; the caller has checked the bounds by [View] or by construction.
func (t *Tensor) WithView(sizes, strides []int64, offset int64) *Tensor {
	return &Tensor{storage: t.storage, dtype: t.dtype, sizes: sizes, strides: strides, offset: offset, conj: t.conj, neg: t.neg}
}

// WithBits returns t with other lazy conjugate and negative bits.
func (t *Tensor) WithBits(conj, neg bool) *Tensor {
	u := *t
	u.conj, u.neg = conj, neg
	return &u
}

// AsStrided is [View] on t's storage with t's dtype and bits.
func (t *Tensor) AsStrided(sizes, strides []int64, offset int64) (*Tensor, error) {
	v, err := View(t.storage, t.dtype, sizes, strides, offset)
	if err != nil {
		return nil, err
	}
	v.conj, v.neg = t.conj, t.neg
	return v, nil
}

// Element is any Go type whose size is that of one element: uint16 stands for the 16-bit floats, uint8 for Bool and the
// 8-bit floats, uint32 for Complex32.
type Element interface {
	~uint8 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | complex64 | complex128
}

// Data returns the storage from t's first element to its end. Element (i0, i1, ...) is at i0*stride0 + i1*stride1 + ...
// It panics if T has another size than t's elements. An empty tensor may give an empty slice.
func Data[T Element](t *Tensor) []T {
	var z T
	size := int(unsafe.Sizeof(z))
	if size != t.dtype.Size() {
		panic(fmt.Sprintf("tensor: %v read as %T", t.dtype, z))
	}
	b := t.storage.buf
	off := int(t.offset) * size
	if off >= len(b) {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[off])), (len(b)-off)/size)
}

// Contiguous returns the elements of a contiguous tensor, exactly Numel of them.
func Contiguous[T Element](t *Tensor) []T {
	return Data[T](t)[:t.Numel()]
}

// FromSlice makes a tensor over data without copying it: the tensor sees later changes of data. The dtype follows from T;
// use [FromBits] for dtypes that have no Go type. It fails if the sizes do not match.
func FromSlice[T Element](data []T, sizes ...int64) (*Tensor, error) {
	dt := dtypeOf[T]()
	return FromBits(dt, data, sizes...)
}

// FromBits is [FromSlice] with a dtype of the same element size, such as BFloat16 over []uint16 or Bool over []uint8.
func FromBits[T Element](dt DType, data []T, sizes ...int64) (*Tensor, error) {
	var z T
	if int(unsafe.Sizeof(z)) != dt.Size() {
		return nil, fmt.Errorf("tensor: elements of %T cannot hold %v", z, dt)
	}
	n, err := Numel(sizes)
	if err != nil {
		return nil, err
	}
	if n != int64(len(data)) {
		return nil, fmt.Errorf("tensor: sizes %v need %d elements, the slice has %d: %w", sizes, n, len(data), ErrSize)
	}
	var b []byte
	if len(data) > 0 {
		b = unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), len(data)*dt.Size())
	}
	sz := append([]int64(nil), sizes...)
	return &Tensor{storage: WrapStorage(b, false), dtype: dt, sizes: sz, strides: ContiguousStrides(sz)}, nil
}

func dtypeOf[T Element]() DType {
	var z T
	if _, ok := any(z).(float16.Float16); ok {
		return Float16
	}
	switch reflect.TypeOf(z).Kind() {
	case reflect.Uint8:
		return Uint8
	case reflect.Int8:
		return Int8
	case reflect.Int16:
		return Int16
	case reflect.Int32:
		return Int32
	case reflect.Int64:
		return Int64
	case reflect.Uint16:
		return Uint16
	case reflect.Uint32:
		return Uint32
	case reflect.Uint64:
		return Uint64
	case reflect.Float32:
		return Float32
	case reflect.Float64:
		return Float64
	case reflect.Complex64:
		return Complex64
	default:
		return Complex128
	}
}

// FromBools makes a Bool tensor; the values are copied.
func FromBools(data []bool, sizes ...int64) (*Tensor, error) {
	b := make([]uint8, len(data))
	for i, v := range data {
		if v {
			b[i] = 1
		}
	}
	return FromBits(Bool, b, sizes...)
}
