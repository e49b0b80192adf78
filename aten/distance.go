package aten

import (
	"github.com/pt2go/pt2/symbolic"
)

// distanceOps measure how far vectors are apart.
var distanceOps = []Op{
	{Schema: "_euclidean_dist(Tensor x1, Tensor x2) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("cdist", a.Tensor(0), a.Tensor(1), 2.0)) }},
	{Schema: "cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("_cdist_forward", a.Tensor(0), a.Tensor(1), a.Float(2), nil))
	}},
	{Schema: "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor", Tags: Core, Decomp: func(b *Build, a *Args) []*Value {
		x, y := a.Tensor(0), a.Tensor(1)
		if x.Dim() < 2 || y.Dim() < 2 {
			Fail("cdist only supports at least 2D tensors, X1 got: %dD", x.Dim())
		}
		if !lastSize(x).Eq(lastSize(y)) {
			Fail("X1 and X2 must have the same number of columns. X1: %v X2: %v", lastSize(x), lastSize(y))
		}
		d := b.Call("sub.Tensor", b.Call("unsqueeze", x, -2), b.Call("unsqueeze", y, -3))
		return One(b.Call("linalg_vector_norm", d, FloatS(a.Float(2)), []int{-1}))
	}},
	{Schema: "pdist(Tensor self, float p=2) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("_pdist_forward", a.Tensor(0), a.Float(1)))
	}},
	{Schema: "_pdist_forward(Tensor self, float p=2) -> Tensor", Tags: Core, Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		n := x.Sizes[0].Int64()
		all := b.Call("_cdist_forward", x, x, a.Float(1), nil)
		flat := b.Call("reshape", all, []int{-1})
		var parts []*Value
		for r := range n - 1 {
			parts = append(parts, b.Call("slice.Tensor", flat, 0, r*n+r+1, (r+1)*n))
		}
		if len(parts) == 0 {
			return One(b.Call("new_empty", x, []int{0}))
		}
		return One(b.Call("cat", parts, 0))
	}},
	{Schema: "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		d := b.Call("add.Scalar", b.Call("sub.Tensor", a.Tensor(0), a.Tensor(1)), FloatS(a.Float(3)))
		return One(b.Call("linalg_vector_norm", d, FloatS(a.Float(2)), []int{-1}, a.V[4]))
	}},
	{Schema: "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, y := a.Tensor(0), a.Tensor(1)
		dt := ResultType(x, y)
		s := BroadcastSizes(x, y)
		x = b.Call("expand", b.Call("to.dtype", x, dt), s)
		y = b.Call("expand", b.Call("to.dtype", y, dt), s)
		d := []symbolic.Int{a.Int(2)}
		nx := b.Call("clamp_min", b.Call("linalg_vector_norm", x, 2, d, true), FloatS(a.Float(3)))
		ny := b.Call("clamp_min", b.Call("linalg_vector_norm", y, 2, d, true), FloatS(a.Float(3)))
		return One(b.Call("sum.dim_IntList", b.Call("mul.Tensor", b.Call("div.Tensor", x, nx), b.Call("div.Tensor", y, ny)), d))
	}},
	{Schema: "cross(Tensor self, Tensor other, int? dim=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		d := -1
		if v, ok := a.OptInt(2); ok {
			d = int(v.Int64())
		} else {
			for i, s := range x.Sizes {
				if s.Int64() == 3 {
					d = i
					break
				}
			}
		}
		return One(crossOf(b, x, a.Tensor(1), d))
	}},
	{Schema: "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(crossOf(b, a.Tensor(0), a.Tensor(1), int(a.I64(2))))
	}},
}

func crossOf(b *Build, x, y *Value, d int) *Value {
	Check(x.Dim() == y.Dim(), "linalg.cross: inputs must have the same number of dimensions.")
	s := BroadcastSizes(x, y)
	if x.Size(d).Ne(symbolic.N(3)) || y.Size(d).Ne(symbolic.N(3)) {
		Fail("linalg.cross: inputs dimension %d must have length 3. Got %v and %v", d, x.Size(d), y.Size(d))
	}
	x, y = b.Call("expand", x, s), b.Call("expand", y, s)
	roll := func(v *Value, n int) *Value { return b.Call("roll", v, []int{n}, []int{d}) }
	return b.Call("sub.Tensor", b.Call("mul.Tensor", roll(x, -1), roll(y, -2)), b.Call("mul.Tensor", roll(x, -2), roll(y, -1)))
}
