package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// inferSizes replaces the one -1 that a shape may have, and refuses shapes that do not hold numel elements.
func inferSizes(shape []symbolic.Int, numel symbolic.Int) []symbolic.Int {
	zero, minus := symbolic.N(0), symbolic.N(-1)
	infer, rest := -1, symbolic.N(1)
	for i, s := range shape {
		switch {
		case s.Eq(minus):
			Check(infer < 0, "only one dimension can be inferred")
			infer = i
		case s.Lt(zero):
			Fail("invalid shape dimension %v", s)
		default:
			rest = rest.Mul(s)
		}
	}
	for i, s := range shape {
		if i != infer && s.Eq(zero) {
			rest = zero
		}
	}
	if infer < 0 {
		if rest.Ne(numel) {
			Fail("shape '%s' is invalid for input of size %v", sizesText(shape), numel)
		}
		return shape
	}
	if rest.Eq(zero) {
		Check(numel.Ne(zero), "cannot reshape tensor of 0 elements into shape %s because the unspecified dimension size -1 can be any value and is ambiguous", sizesText(shape))
		Fail("shape '%s' is invalid for input of size %v", sizesText(shape), numel)
	}
	if rest.Err() != nil || numel.Mod(rest).Ne(zero) {
		Fail("shape '%s' is invalid for input of size %v", sizesText(shape), numel)
	}
	out := cloneInts(shape)
	out[infer] = numel.FloorDiv(rest)
	return out
}

// viewStrides gives the strides with which x's memory has another shape of equally many elements, if there are such.
func viewStrides(x *Value, shape []symbolic.Int) ([]symbolic.Int, bool) {
	n := len(x.Sizes)
	zero, one := symbolic.N(0), symbolic.N(1)
	out := make([]symbolic.Int, len(shape))
	if n == 0 {
		for i := range out {
			out[i] = one
		}
		return out, true
	}
	if x.empty() {
		if SameSizes(x.Sizes, shape) {
			return x.Strides, true
		}
		return ContiguousStrides(shape), true
	}
	for _, s := range shape {
		if s.Eq(zero) {
			return nil, false
		}
	}
	// Runs of dimensions of x that lie evenly in memory, from the inside, must each be a product of dimensions of the shape.
	v := len(shape) - 1
	base := x.Strides[n-1]
	have, got := one, one
	for d := n - 1; d >= 0; d-- {
		have = have.Mul(x.Sizes[d])
		if d > 0 && (x.Sizes[d-1].Eq(one) || x.Strides[d-1].Eq(have.Mul(base))) {
			continue
		}
		for v >= 0 && (got.Lt(have) || shape[v].Eq(one)) {
			out[v] = got.Mul(base)
			got = got.Mul(shape[v])
			v--
		}
		if got.Ne(have) {
			return nil, false
		}
		if d > 0 {
			base, have, got = x.Strides[d-1], one, one
		}
	}
	return out, v < 0
}

// viewed is x in another shape, which may have one -1.
func viewed(x *Value, shape []symbolic.Int) Meta {
	shape = inferSizes(shape, x.Numel())
	st, ok := viewStrides(x, shape)
	Check(ok, "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead.")
	return x.ViewMeta(shape, st, x.Offset)
}

// viewedAs looks at x's bytes as another dtype; the last dimension grows or shrinks where element sizes differ.
func viewedAs(x *Value, dt tensor.DType) Meta {
	from, to := int64(x.DType.Size()), int64(dt.Size())
	if x.DType == dt {
		return x.AliasMeta()
	}
	Check(!x.Conj, "torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype.")
	Check(!x.Neg, "torch.Tensor.view is not supported for tensors with negative bit set when converting to a different dtype.")
	m := x.AliasMeta()
	m.DType = dt
	if from == to {
		return m
	}
	n := x.Dim()
	Check(n > 0, "self.dim() cannot be 0 to view %s as %s (different element sizes)", x.DType.CPPName(), dt.CPPName())
	Check(x.Strides[n-1].Eq(symbolic.N(1)), "self.stride(-1) must be 1 to view %s as %s (different element sizes), but got %v", x.DType.CPPName(), dt.CPPName(), x.Strides[n-1])
	m.Sizes, m.Strides = cloneInts(x.Sizes), cloneInts(x.Strides)
	if from > to {
		r := symbolic.N(from / to)
		m.Sizes[n-1] = m.Sizes[n-1].Mul(r)
		for d := range n - 1 {
			m.Strides[d] = m.Strides[d].Mul(r)
		}
		m.Offset = x.Offset.Mul(r)
		return m
	}
	r, zero := symbolic.N(to/from), symbolic.N(0)
	Check(x.Sizes[n-1].Mod(r).Eq(zero), "self.size(-1) must be divisible by %v to view %s as %s (different element sizes), but got %v", r, x.DType.CPPName(), dt.CPPName(), x.Sizes[n-1])
	Check(x.Offset.Mod(r).Eq(zero), "self.storage_offset() must be divisible by %v to view %s as %s (different element sizes), but got %v", r, x.DType.CPPName(), dt.CPPName(), x.Offset)
	m.Sizes[n-1] = m.Sizes[n-1].FloorDiv(r)
	for d := range n - 1 {
		Check(x.Strides[d].Mod(r).Eq(zero), "self.stride(%d) must be divisible by %v to view %s as %s (different element sizes), but got %v", d, r, x.DType.CPPName(), dt.CPPName(), x.Strides[d])
		m.Strides[d] = m.Strides[d].FloorDiv(r)
	}
	m.Offset = x.Offset.FloorDiv(r)
	return m
}
