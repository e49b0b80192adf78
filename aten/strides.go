package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// BroadcastSizes gives the common shape of the operands, or refuses with PyTorch's message.
func BroadcastSizes(vals ...*Value) []symbolic.Int {
	var out []symbolic.Int
	first := true
	for _, v := range vals {
		if v == nil {
			continue
		}
		if first {
			out, first = v.Sizes, false
			continue
		}
		out = broadcast2(out, v.Sizes)
	}
	return out
}

func broadcast2(a, b []symbolic.Int) []symbolic.Int {
	if SameSizes(a, b) {
		return a
	}
	n := max(len(a), len(b))
	out := make([]symbolic.Int, n)
	one := symbolic.N(1)
	for i := 1; i <= n; i++ {
		switch {
		case i > len(a):
			out[n-i] = b[len(b)-i]
		case i > len(b):
			out[n-i] = a[len(a)-i]
		default:
			x, y := a[len(a)-i], b[len(b)-i]
			switch {
			case x.Eq(y):
				out[n-i] = x
			case x.Eq(one):
				out[n-i] = y
			case y.Eq(one):
				out[n-i] = x
			default:
				Fail("The size of tensor a (%v) must match the size of tensor b (%v) at non-singleton dimension %d", x, y, n-i)
			}
		}
	}
	return out
}

// PointwiseMeta is the Meta of an element-by-element result over the operands (nil ones are skipped): broadcast sizes, and
// the strides that PyTorch's TensorIterator chooses.
func PointwiseMeta(dt tensor.DType, vals ...*Value) Meta {
	var ops []*Value
	for _, v := range vals {
		if v != nil {
			ops = append(ops, v)
		}
	}
	sizes := BroadcastSizes(ops...)
	return Meta{DType: dt, Sizes: sizes, Strides: pointwiseStrides(sizes, ops)}
}

// pointwiseStrides follows TensorIterator: operands of the output's shape that are all contiguous, or all dense with equal
// strides, keep their strides; otherwise dimensions are sorted by the operands' strides, the first operand that decides
// wins, and the output is dense in that order.
func pointwiseStrides(sizes []symbolic.Int, ops []*Value) []symbolic.Int {
	if st := fastStrides(sizes, ops); st != nil {
		return st
	}
	n := len(sizes)
	if n == 0 {
		return []symbolic.Int{}
	}
	perm := strideOrder(sizes, ops) // innermost first
	out := make([]symbolic.Int, n)
	next := symbolic.N(1)
	for _, d := range perm {
		out[d] = next
		next = next.Mul(sizes[d])
	}
	for _, s := range sizes { // PyTorch: an empty output has contiguous strides
		if s.Eq(symbolic.N(0)) {
			return ContiguousStrides(sizes)
		}
	}
	return out
}

// fastStrides is TensorIterator's fast set-up: all operands have the output's shape and one common dense layout.
func fastStrides(sizes []symbolic.Int, ops []*Value) []symbolic.Int {
	for _, v := range ops {
		if !SameSizes(v.Sizes, sizes) {
			return nil
		}
	}
	all := func(f func(m *Meta) bool) bool {
		for _, v := range ops {
			if !f(&v.Meta) {
				return false
			}
		}
		return true
	}
	switch {
	case all((*Meta).IsContiguous):
		return ContiguousStrides(sizes)
	case all(func(m *Meta) bool { return m.IsChannelsLast() }):
		return ChannelsLastStrides(sizes)
	case len(ops) > 0 && all(func(m *Meta) bool { return m.IsDense() && sameInts(m.Strides, ops[0].Strides) }):
		return ops[0].Strides
	}
	return nil
}

func sameInts(a, b []symbolic.Int) bool {
	for i := range a {
		if !a[i].Eq(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// strideOrder sorts the dimensions, innermost first, by insertion as TensorIterator does.
func strideOrder(sizes []symbolic.Int, ops []*Value) []int {
	n := len(sizes)
	perm := make([]int, n)
	for i := range perm {
		perm[i] = n - 1 - i
	}
	// before is positive if dim a must come after dim b (a is further out), negative for the reverse, 0 if undecided.
	before := func(a, b int) int {
		for _, v := range ops {
			sa, sb := opStride(v, a, sizes), opStride(v, b, sizes)
			zero := symbolic.N(0)
			if sa.Eq(zero) || sb.Eq(zero) {
				continue
			}
			switch {
			case sa.Eq(sb):
				if sizes[a].Gt(sizes[b]) {
					return 1
				}
			case sa.Lt(sb):
				return -1
			default:
				return 1
			}
		}
		return 0
	}
	for i := 1; i < n; i++ {
		d1 := i
		for d0 := i - 1; d0 >= 0; d0-- {
			c := before(perm[d0], perm[d1])
			if c > 0 {
				perm[d0], perm[d1] = perm[d1], perm[d0]
				d1 = d0
			} else if c < 0 {
				break
			}
		}
	}
	return perm
}

// opStride is operand v's stride along dimension d of the broadcast shape, 0 where it is broadcast.
func opStride(v *Value, d int, sizes []symbolic.Int) symbolic.Int {
	k := d - (len(sizes) - v.Dim())
	if k < 0 {
		return symbolic.N(0)
	}
	if one := symbolic.N(1); v.Sizes[k].Eq(one) && !sizes[d].Eq(one) {
		return symbolic.N(0)
	}
	return v.Strides[k]
}

// IsDense reports that the elements fill a block of memory without gaps or overlap, in whatever order of dimensions
// (PyTorch's is_non_overlapping_and_dense).
func (m *Meta) IsDense() bool {
	if m.IsContiguous() {
		return true
	}
	one := symbolic.N(1)
	var dims []int
	for i, s := range m.Sizes {
		if !s.Eq(one) {
			dims = append(dims, i)
		}
	}
	for i := 1; i < len(dims); i++ {
		for j := i; j > 0 && m.Strides[dims[j]].Lt(m.Strides[dims[j-1]]); j-- {
			dims[j], dims[j-1] = dims[j-1], dims[j]
		}
	}
	want := one
	for _, d := range dims {
		if !m.Strides[d].Eq(want) {
			return false
		}
		want = want.Mul(m.Sizes[d])
	}
	return true
}

// ChannelsLastStrides gives the strides of [N, C, H, W] or [N, C, D, H, W] stored with C innermost; contiguous strides for
// any other rank.
func ChannelsLastStrides(sizes []symbolic.Int) []symbolic.Int {
	n := len(sizes)
	if n != 4 && n != 5 {
		return ContiguousStrides(sizes)
	}
	st := make([]symbolic.Int, n)
	st[1] = symbolic.N(1)
	next := sizes[1]
	for i := n - 1; i >= 2; i-- {
		st[i] = next
		next = next.Mul(sizes[i])
	}
	st[0] = next
	return st
}

// IsChannelsLast reports PyTorch's is_contiguous(memory_format=channels_last) for rank 4, channels_last_3d for rank 5.
func (m *Meta) IsChannelsLast() bool {
	n := m.Dim()
	if n != 4 && n != 5 {
		return false
	}
	one := symbolic.N(1)
	want := one
	check := func(d int) bool {
		if !m.Sizes[d].Eq(one) {
			if !m.Strides[d].Eq(want) {
				return false
			}
			want = want.Mul(m.Sizes[d])
		}
		return true
	}
	if !check(1) {
		return false
	}
	for d := n - 1; d >= 2; d-- {
		if !check(d) {
			return false
		}
	}
	return check(0)
}

// SuggestChannelsLast is PyTorch's suggest_memory_format: whether an operator that keeps the memory format answers in
// channels-last. Strides decide, those of size-1 dimensions too; contiguous wins for ambiguous [N, 1, H, W].
func (m *Meta) SuggestChannelsLast() bool {
	n := m.Dim()
	if n != 4 && n != 5 {
		return false
	}
	zero := symbolic.N(0)
	if m.Strides[1].Eq(zero) {
		return false
	}
	low := zero
	order := []int{1}
	for d := n - 1; d >= 2; d-- {
		order = append(order, d)
	}
	order = append(order, 0)
	for _, d := range order {
		if m.Sizes[d].Eq(zero) || m.Strides[d].Lt(low) {
			return false
		}
		if d == 0 && low.Eq(m.Strides[1]) {
			return false
		}
		low = m.Strides[d]
		if m.Sizes[d].Gt(symbolic.N(1)) {
			low = low.Mul(m.Sizes[d])
		}
	}
	return true
}

// FormatStrides gives the strides of fresh memory for a memory format; PreserveFormat (and NoFormat) keep the layout of like
// as empty_like does, and mean contiguous without one.
func FormatStrides(f MemoryFormat, sizes []symbolic.Int, like *Value) []symbolic.Int {
	switch f {
	case ChannelsLast:
		Check(len(sizes) == 4, "required rank 4 tensor to use channels_last format")
		return ChannelsLastStrides(sizes)
	case ChannelsLast3d:
		Check(len(sizes) == 5, "required rank 5 tensor to use channels_last_3d format")
		return ChannelsLastStrides(sizes)
	case ContiguousFormat:
		return ContiguousStrides(sizes)
	}
	if like == nil {
		return ContiguousStrides(sizes)
	}
	if like.IsDense() {
		return like.Strides
	}
	return pointwiseStrides(sizes, []*Value{like})
}

// LikeMeta is the Meta of fresh memory with v's shape, in another dtype and memory format (empty_like).
func LikeMeta(v *Value, dt tensor.DType, f MemoryFormat) Meta {
	return Meta{DType: dt, Sizes: v.Sizes, Strides: FormatStrides(f, v.Sizes, v)}
}
