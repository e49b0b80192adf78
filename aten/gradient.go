package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// gradientOps are numerical derivatives and the clipping of norms.
var gradientOps = []Op{
	{Schema: "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", Decomp: renorm},
	{Schema: "gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]", Decomp: func(b *Build, a *Args) []*Value {
		h, ok := a.OptScalar(1)
		if !ok {
			h = FloatS(1)
		}
		return gradients(b, a, gradDims(a, 2), func(int) any { return h })
	}},
	{Schema: "gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]", Decomp: func(b *Build, a *Args) []*Value {
		return gradients(b, a, WrapDims(a.I64s(2), a.Tensor(0).Dim()), func(int) any { return a.Scalar(1) })
	}},
	{Schema: "gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]", Decomp: func(b *Build, a *Args) []*Value {
		return gradients(b, a, WrapDims(a.I64s(1), a.Tensor(0).Dim()), func(int) any { return FloatS(1) })
	}},
	{Schema: "gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]", Decomp: func(b *Build, a *Args) []*Value {
		return gradients(b, a, gradDims(a, 2), scalarSpacing(a))
	}},
	{Schema: "gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]", Decomp: func(b *Build, a *Args) []*Value {
		return gradients(b, a, WrapDims(a.I64s(2), a.Tensor(0).Dim()), scalarSpacing(a))
	}},
	{Schema: "gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]", Decomp: func(b *Build, a *Args) []*Value {
		return gradients(b, a, gradDims(a, 2), tensorSpacing(a))
	}},
	{Schema: "gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]", Decomp: func(b *Build, a *Args) []*Value {
		return gradients(b, a, WrapDims(a.I64s(2), a.Tensor(0).Dim()), tensorSpacing(a))
	}},
}

// renorm scales the slices along a dimension whose p-norm exceeds maxnorm.
func renorm(b *Build, a *Args) []*Value {
	x, p, limit := a.Tensor(0), a.Scalar(1), a.Scalar(3)
	Check(p.Kind != ComplexScalar, "renorm: p must be real-valued")
	Check(p.Float64() > 0, "renorm: non-positive norm not supported")
	Check(limit.Kind != ComplexScalar, "renorm: maxnorm must be real-valued")
	Check(limit.Float64() >= 0, "renorm: expected maxnorm to be >= 0 but got %v", limit.Float64())
	Check(x.Dim() > 1, "renorm: input needs at least 2 dimensions, got %d dimensions", x.Dim())
	d := WrapDim(a.I64(2), x.Dim())
	var rest []int
	for i := range x.Dim() {
		if i != d {
			rest = append(rest, i)
		}
	}
	wide := x.DType
	switch x.DType {
	case tensor.Float16, tensor.BFloat16:
		wide = tensor.Float32
	case tensor.Float32:
		wide = tensor.Float64
	case tensor.Complex64:
		wide = tensor.Complex128
	}
	norm := b.Call("linalg_vector_norm", x, p, rest, true, Kw("dtype", wide))
	small := b.Call("reciprocal", b.Call("add.Scalar", norm, 1e-7))
	small = b.Call("mul.Scalar", small, limit)
	factor := b.Call("where.ScalarOther", b.Call("gt.Scalar", norm, limit), small, 1)
	real := x.DType
	if real.IsComplex() {
		real = real.Real()
	}
	return One(b.Call("mul.Tensor", x, b.Call("to.dtype", factor, real)))
}

// gradDims is an int? argument: one dimension or all of them.
func gradDims(a *Args, i int) []int {
	n := a.Tensor(0).Dim()
	if d, ok := a.OptInt(i); ok {
		return []int{WrapDim(d.Int64(), n)}
	}
	return WrapDims(nil, n)
}

func scalarSpacing(a *Args) func(i int) any {
	v, _ := a.V[1].([]Scalar)
	return func(i int) any {
		if i >= len(v) {
			return nil
		}
		return v[i]
	}
}

func tensorSpacing(a *Args) func(i int) any {
	v := a.Tensors(1)
	return func(i int) any {
		if i >= len(v) {
			return nil
		}
		return v[i]
	}
}

// gradients are the central differences along each of dims; spacing gives a number, or a tensor of coordinates, a dimension.
func gradients(b *Build, a *Args, dims []int, spacing func(i int) any) []*Value {
	x, order := a.Tensor(0), a.I64(len(a.V)-1)
	Check(x.DType != tensor.Uint8, "torch.gradient does not support uint8 input.")
	Check(order == 1 || order == 2, "torch.gradient only supports edge_order=1 and edge_order=2.")
	out := make([]*Value, len(dims))
	for i, d := range dims {
		h := spacing(i)
		Check(h != nil && spacing(len(dims)) == nil || i == 0 && len(dims) == 1 && h != nil || isScalar(h), "torch.gradient expected spacing to be unspecified, a scalar or a list of length %d", len(dims))
		Check(x.Sizes[d].Ge(symbolic.N(order+1)), "torch.gradient expects each dimension size to be at least edge_order+1")
		g := gradientAlong{b: b, x: x, d: d}
		if t, ok := h.(*Value); ok {
			Check(t.Dim() == 1 && t.Sizes[0].Eq(x.Sizes[d]), "torch.gradient expected each element of the spacing tensor list to have the same size as the input along its dimension")
			out[i] = g.uneven(t, order)
		} else {
			out[i] = g.even(h.(Scalar), order)
		}
	}
	return out
}

func isScalar(v any) bool { _, ok := v.(Scalar); return ok }

// gradientAlong differentiates x along dimension d.
type gradientAlong struct {
	b *Build
	x *Value
	d int
}

// part is x from index lo to hi, which may count from the end.
func (g *gradientAlong) part(lo, hi int64) *Value {
	return g.b.Call("slice.Tensor", g.x, g.d, lo, hi)
}

const toEnd = math.MaxInt64

func (g *gradientAlong) even(h Scalar, order int64) *Value {
	b := g.b
	div := func(v *Value) *Value { return b.Call("div.Scalar", v, h) }
	first, last := div(b.Call("sub.Tensor", g.part(1, 2), g.part(0, 1))), div(b.Call("sub.Tensor", g.part(-1, toEnd), g.part(-2, -1)))
	if order == 2 {
		first = div(g.blend([3]any{-1.5, 2, -0.5}, g.part(0, 1), g.part(1, 2), g.part(2, 3)))
		last = div(g.blend([3]any{0.5, -2, 1.5}, g.part(-3, -2), g.part(-2, -1), g.part(-1, toEnd)))
	}
	center := b.Call("div.Scalar", div(b.Call("sub.Tensor", g.part(2, toEnd), g.part(0, -2))), 2)
	return b.Call("cat", []*Value{first, center, last}, g.d)
}

// blend is the sum of three parts with weights, numbers or tensors.
func (g *gradientAlong) blend(w [3]any, parts ...*Value) *Value {
	var s *Value
	for i, p := range parts {
		op := "mul.Scalar"
		if _, ok := w[i].(*Value); ok {
			op = "mul.Tensor"
		}
		if p = g.b.Call(op, p, w[i]); i > 0 {
			p = g.b.Call("add.Tensor", s, p)
		}
		s = p
	}
	return s
}

// uneven takes coordinates: parabolas through three neighbours.
func (g *gradientAlong) uneven(at *Value, order int64) *Value {
	b := g.b
	dx := b.Call("sub.Tensor", b.Call("slice.Tensor", at, 0, 1, toEnd), b.Call("slice.Tensor", at, 0, 0, -1))
	gap := func(lo, hi int64) *Value { return b.Call("slice.Tensor", dx, 0, lo, hi) }
	add := func(x, y *Value) *Value { return b.Call("add.Tensor", x, y) }
	mul := func(x, y *Value) *Value { return b.Call("mul.Tensor", x, y) }
	neg := func(x *Value) *Value { return b.Call("neg", x) }
	double := func(x *Value) *Value { return b.Call("mul.Scalar", x, 2) }
	// quotient lies along dimension d of x.
	quotient := func(x, y *Value) any {
		shape := make([]symbolic.Int, g.x.Dim())
		for i := range shape {
			shape[i] = symbolic.N(1)
		}
		shape[g.d] = x.Sizes[0]
		return b.Call("reshape", b.Call("div.Tensor", x, y), shape)
	}
	p, q := gap(0, -1), gap(1, toEnd)
	center := g.blend([3]any{
		quotient(neg(q), mul(p, add(p, q))), quotient(b.Call("sub.Tensor", q, p), mul(p, q)), quotient(p, mul(q, add(p, q))),
	}, g.part(0, -2), g.part(1, -1), g.part(2, toEnd))
	first := b.Call("div.Tensor", b.Call("sub.Tensor", g.part(1, 2), g.part(0, 1)), gap(0, 1))
	last := b.Call("div.Tensor", b.Call("sub.Tensor", g.part(-1, toEnd), g.part(-2, -1)), gap(-1, toEnd))
	if order == 2 {
		p, q = gap(0, 1), gap(1, 2)
		first = g.blend([3]any{
			quotient(neg(add(double(p), q)), mul(p, add(p, q))), quotient(add(p, q), mul(p, q)), quotient(neg(p), mul(q, add(p, q))),
		}, g.part(0, 1), g.part(1, 2), g.part(2, 3))
		p, q = gap(-2, -1), gap(-1, toEnd)
		last = g.blend([3]any{
			quotient(q, mul(p, add(p, q))), quotient(neg(add(p, q)), mul(p, q)), quotient(add(double(q), p), mul(q, add(p, q))),
		}, g.part(-3, -2), g.part(-2, -1), g.part(-1, toEnd))
	}
	return b.Call("cat", []*Value{first, center, last}, g.d)
}
