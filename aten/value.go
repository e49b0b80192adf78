package aten

import (
	"math"
	"math/bits"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// Meta is what is known of a tensor without its elements: the result of a shape function.
type Meta struct {
	DType   tensor.DType // Invalid: an undefined tensor (None)
	Sizes   []symbolic.Int
	Strides []symbolic.Int

	// View is the tensor whose storage the result shares, nil for fresh memory. Offset (in elements of DType) and the bits
	// have meaning only then.
	View      *Value
	Offset    symbolic.Int
	Conj, Neg bool
	// Zero asks the caller for zeroed memory; without it an output's elements are arbitrary before the kernel runs.
	Zero bool
}

// Undefined is the Meta of a result that the operator does not give.
var Undefined = Meta{}

// Value is a tensor on its way through operators: always its Meta, and its elements when it is concrete.
type Value struct {
	Meta
	T       *tensor.Tensor // nil while only the shape is known
	Wrapped bool           // a Python number that became a 0-d tensor: weakest in type promotion
	Ref     any            // for whoever builds graphs or plans
}

// FromTensor makes a concrete value of t.
func FromTensor(t *tensor.Tensor) *Value {
	return &Value{Meta: MetaOf(t), T: t}
}

// MetaOf describes t.
func MetaOf(t *tensor.Tensor) Meta {
	n := t.Dim()
	both := make([]symbolic.Int, 2*n)
	for i, s := range t.Sizes() {
		both[i] = symbolic.N(s)
		both[n+i] = symbolic.N(t.Strides()[i])
	}
	return Meta{DType: t.DType(), Sizes: both[:n:n], Strides: both[n:], Offset: symbolic.N(t.Offset()), Conj: t.IsConj(), Neg: t.IsNeg()}
}

// Dim is the number of dimensions.
func (m *Meta) Dim() int { return len(m.Sizes) }

// Size is the size of dimension d, which may be negative (from the end).
func (m *Meta) Size(d int) symbolic.Int {
	return m.Sizes[WrapDim(int64(d), m.Dim())]
}

// Numel is the number of elements.
func (m *Meta) Numel() symbolic.Int { return symbolic.Prod(m.Sizes...) }

// Contig is the Meta of fresh row-major memory.
func Contig(dt tensor.DType, sizes ...symbolic.Int) Meta {
	return Meta{DType: dt, Sizes: sizes, Strides: ContiguousStrides(sizes)}
}

// Strided is the Meta of fresh memory with the given strides.
func Strided(dt tensor.DType, sizes, strides []symbolic.Int) Meta {
	return Meta{DType: dt, Sizes: sizes, Strides: strides}
}

// ViewMeta is the Meta of a view of v with v's dtype and bits.
func (v *Value) ViewMeta(sizes, strides []symbolic.Int, offset symbolic.Int) Meta {
	return Meta{DType: v.DType, Sizes: sizes, Strides: strides, Offset: offset, View: v, Conj: v.Conj, Neg: v.Neg}
}

// AliasMeta is the Meta of a view that is all of v.
func (v *Value) AliasMeta() Meta { return v.ViewMeta(v.Sizes, v.Strides, v.Offset) }

// ContiguousStrides gives the row-major strides of sizes; a dimension of size 0 counts as 1.
func ContiguousStrides(sizes []symbolic.Int) []symbolic.Int {
	st := make([]symbolic.Int, len(sizes))
	n := symbolic.N(1)
	for i := len(sizes) - 1; i >= 0; i-- {
		st[i] = n
		if i > 0 {
			n = n.Mul(atLeast1(sizes[i]))
		}
	}
	return st
}

func atLeast1(s symbolic.Int) symbolic.Int {
	if c, ok := s.Const(); ok {
		if c < 1 {
			return symbolic.N(1)
		}
		return s
	}
	return s.Max(symbolic.N(1))
}

// IsContiguous reports row-major order without gaps, as PyTorch's is_contiguous().
func (m *Meta) IsContiguous() bool {
	n := symbolic.N(1)
	for i := len(m.Sizes) - 1; i >= 0; i-- {
		if !m.Sizes[i].Eq(symbolic.N(1)) {
			if !m.Strides[i].Eq(n) {
				return m.empty()
			}
			n = n.Mul(m.Sizes[i])
		}
	}
	return true
}

// empty reports that a dimension has size 0.
func (m *Meta) empty() bool {
	for _, s := range m.Sizes {
		if s.Eq(symbolic.N(0)) {
			return true
		}
	}
	return false
}

// WrapDim turns a dimension that may be negative into an index; a 0-d tensor accepts -1 and 0. It refuses with PyTorch's
// IndexError.
func WrapDim(d int64, ndim int) int {
	n := int64(max(ndim, 1))
	if d < -n || d >= n {
		FailIndex("Dimension out of range (expected to be in range of [%d, %d], but got %d)", -n, n-1, d)
	}
	if d < 0 {
		d += n
	}
	return int(d)
}

// WrapDims wraps each of dims and refuses duplicates. With none it gives all dimensions.
func WrapDims(dims []int64, ndim int) []int {
	if len(dims) == 0 {
		out := make([]int, ndim)
		for i := range out {
			out[i] = i
		}
		return out
	}
	out := make([]int, 0, len(dims))
	seen := make([]bool, max(ndim, 1))
	for _, d := range dims {
		w := WrapDim(d, ndim)
		if seen[w] {
			Fail("dim %d appears multiple times in the list of dims", w)
		}
		seen[w] = true
		if w < ndim {
			out = append(out, w)
		}
	}
	return out
}

// Ints makes symbolic constants.
func Ints(v ...int64) []symbolic.Int {
	out := make([]symbolic.Int, len(v))
	for i, x := range v {
		out[i] = symbolic.N(x)
	}
	return out
}

// Int64s gives the constants (or hints) of v.
func Int64s(v []symbolic.Int) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = x.Int64()
	}
	return out
}

// SameSizes reports equal shapes.
func SameSizes(a, b []symbolic.Int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Eq(b[i]) {
			return false
		}
	}
	return true
}

// Alloc makes a concrete tensor for m, which must not be a view. It refuses sizes that overflow.
func Alloc(m *Meta) *tensor.Tensor {
	sizes, strides := Int64s(m.Sizes), Int64s(m.Strides)
	for _, s := range m.Sizes {
		if err := s.Err(); err != nil {
			Fail("%v", err)
		}
	}
	if n, err := tensor.Numel(sizes); err != nil || n*int64(m.DType.Size()) > mostBytes() {
		Fail("cannot allocate a tensor of sizes %v and dtype %v", sizes, m.DType)
	}
	return tensor.NewStrided(m.DType, sizes, strides)
}

// bytes is what [Alloc] takes for m, the most that there is where that overflows.
func (m *Meta) bytes() int64 {
	last := int64(0)
	for i, s := range m.Sizes {
		n, stride := s.Int64(), m.Strides[i].Int64()
		if n == 0 {
			return 0
		}
		hi, lo := bits.Mul64(uint64(n-1), uint64(stride))
		if hi != 0 || lo > maxAlloc || last > maxAlloc {
			return math.MaxInt64 / 2
		}
		last += int64(lo)
	}
	return (last + 1) * int64(m.DType.Size())
}

// maxAlloc bounds a single tensor, whatever the machine.
const maxAlloc = 1 << 40

// mostBytes is what a single tensor may take: beyond it an allocation could only bring the process down.
func mostBytes() int64 {
	if n := tensor.MachineMemory(); n > 0 {
		return min(n, maxAlloc)
	}
	return maxAlloc
}

// Realize makes the tensor that a view's Meta describes.
func (m *Meta) Realize() *tensor.Tensor {
	base := m.View.T
	sizes, strides := Int64s(m.Sizes), Int64s(m.Strides)
	t, err := tensor.View(base.Storage(), m.DType, sizes, strides, m.Offset.Int64())
	if err != nil {
		Fail("%v", err)
	}
	if m.Conj || m.Neg {
		t = t.WithBits(m.Conj, m.Neg)
	}
	return t
}
