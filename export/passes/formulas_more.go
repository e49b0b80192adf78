package passes

import (
	"math"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tensor"
)

// simpleFormulas are short ones of all kinds.
var simpleFormulas = map[string]Decomp{
	"aten.mH.default":         adjoint,
	"aten.adjoint.default":    adjoint,
	"aten.matrix_H.default":   adjoint,
	"aten.atleast_1d.default": atLeast(1),
	"aten.atleast_2d.default": atLeast(2),
	"aten.atleast_3d.default": atLeast(3),
	"aten.conj.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		if !a.Tensor(0).DType.IsComplex() {
			return one(a.Tensor(0))
		}
		return one(b.Call("_conj", a.Tensor(0)))
	},
	"aten.broadcast_tensors.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		list := a.Tensors(0)
		shape := aten.BroadcastSizes(list...)
		out := make([]*aten.Value, len(list))
		for i, x := range list {
			if out[i] = x; !sameSizes(x.Sizes, shape) {
				out[i] = b.Call("expand", x, shape)
			}
		}
		return out
	},
	"aten.addcdiv.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		q := b.Call("div.Tensor", scaled(b, a.Tensor(1), a.Scalar(3)), a.V[2])
		return one(b.Call("add.Tensor", a.V[0], q))
	},
	"aten.deg2rad.default": degrees(math.Pi / 180),
	"aten.rad2deg.default": degrees(180 / math.Pi),
	"aten.threshold.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		low := b.Call("le.Scalar", x, a.V[1])
		return one(b.Call("where.self", low, b.Call("scalar_tensor", a.Scalar(2), aten.Kw("dtype", x.DType)), x))
	},
	"aten.soft_margin_loss.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		z := b.Call("log1p", b.Call("exp", b.Call("mul.Tensor", b.Call("neg", a.Tensor(0)), a.V[1])))
		return one(reduced(b, z, a.I64(2)))
	},
	"aten.pixel_shuffle.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("clone", pixels(b, a.Tensor(0), a.I64(1), true), aten.Kw("memory_format", aten.ContiguousFormat)))
	},
	"aten.pixel_unshuffle.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("clone", pixels(b, a.Tensor(0), a.I64(1), false), aten.Kw("memory_format", aten.ContiguousFormat)))
	},
	"aten.channel_shuffle.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x, g := a.Tensor(0), a.Int(1)
		shape := append(sizes(x.Sizes[0], g, x.Sizes[1].FloorDiv(g)), x.Sizes[2:]...)
		y := b.Call("permute", viewOrCopy(b, x, shape), exchange(len(shape), 1, 2))
		return one(viewOrCopy(b, y, x.Sizes))
	},
	"aten.unsafe_split.Tensor": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return parts(b, a.Tensor(0), a.I64(2), a.Int(1))
	},
	"aten.unsafe_chunk.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		d := aten.WrapDim(a.I64(2), x.Dim())
		return parts(b, x, a.I64(2), x.Sizes[d].CeilDiv(a.Int(1)))
	},
	"aten.isneginf.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		if x.DType.IsIntegral() {
			return one(b.Call("full_like", x, false, aten.Kw("dtype", tensor.Bool)))
		}
		return one(b.Call("eq.Scalar", opmath(b, x), math.Inf(-1)))
	},
	"aten.isposinf.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		if x.DType.IsIntegral() {
			return one(b.Call("full_like", x, false, aten.Kw("dtype", tensor.Bool)))
		}
		return one(b.Call("eq.Scalar", opmath(b, x), math.Inf(1)))
	},
	"aten.isfinite.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		if x.DType.IsIntegral() {
			return one(b.Call("full_like", x, true, aten.Kw("dtype", tensor.Bool)))
		}
		if x.DType.IsComplex() {
			panic(&unrecordable{"isfinite of complex numbers"})
		}
		return one(b.Call("logical_and", b.Call("ne.Scalar", b.Call("abs", x), math.Inf(1)), b.Call("eq.Tensor", x, x)))
	},
	"aten.std.correction": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("sqrt", b.Call("var.correction", a.V[0], a.V[1], aten.Kw("correction", a.V[2]), aten.Kw("keepdim", a.V[3]))))
	},
	"aten.logaddexp.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x, y := a.Tensor(0), a.Tensor(1)
		if x.DType.IsComplex() || y.DType.IsComplex() {
			panic(&unrecordable{"logaddexp of complex numbers"})
		}
		if shape := aten.BroadcastSizes(x, y); !sameSizes(x.Sizes, shape) || !sameSizes(y.Sizes, shape) {
			x, y = b.Call("expand", x, shape), b.Call("expand", y, shape)
		}
		above := b.Call("ge.Tensor", x, y)
		hi, lo := b.Call("where.self", above, x, y), b.Call("where.self", above, y, x)
		inf := b.Call("logical_not", finite(b, x))
		inf = b.Call("logical_and", inf, b.Call("eq.Tensor", x, y))
		sum := b.Call("add.Tensor", hi, b.Call("log1p", b.Call("exp", b.Call("sub.Tensor", lo, hi))))
		return one(b.Call("where.self", inf, x, sum))
	},
}

func degrees(factor float64) Decomp {
	return func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		if x.DType.IsIntegral() {
			x = cast(b, x, tensor.Float32)
		}
		return one(b.Call("mul.Tensor", x, factor))
	}
}

// opmath is x in the dtype that PyTorch computes in.
func opmath(b *aten.Build, x *aten.Value) *aten.Value {
	if x.DType.IsReduced() {
		return cast(b, x, tensor.Float32)
	}
	return x
}

func adjoint(b *aten.Build, a *aten.Args) []*aten.Value {
	x := a.Tensor(0)
	if n := x.Dim(); n >= 2 {
		x = b.Call("permute", x, exchange(n, n-2, n-1))
	}
	if x.DType.IsComplex() {
		x = b.Call("_conj", x)
	}
	return one(x)
}

// atLeast gives a tensor with at least n dimensions: new ones before, of three the last behind.
func atLeast(n int) Decomp {
	return func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		switch d := x.Dim(); {
		case d >= n:
			return one(x)
		case d == 0:
			x = b.Call("view", x, []int64{1, 1, 1}[:n])
		case d == 1 && n >= 2:
			if x = b.Call("unsqueeze", x, 0); n == 3 {
				x = b.Call("unsqueeze", x, -1)
			}
		default:
			x = b.Call("unsqueeze", x, -1)
		}
		return one(x)
	}
}

// pixels moves blocks of r*r channels into space, or back.
func pixels(b *aten.Build, x *aten.Value, r int64, shuffle bool) *aten.Value {
	n := x.Dim()
	if n < 3 {
		panic(&unrecordable{"pixels of few dimensions"})
	}
	batch, c, h, w := x.Sizes[:n-3], x.Sizes[n-3], x.Sizes[n-2], x.Sizes[n-1]
	k := len(batch)
	perm := make([]int64, 0, n+2)
	for i := range k {
		perm = append(perm, int64(i))
	}
	at := func(order ...int) {
		for _, i := range order {
			perm = append(perm, int64(k+i))
		}
	}
	inner, outer := append(sizes(batch...), c, h.DivN(r), aten.Ints(r)[0], w.DivN(r), aten.Ints(r)[0]), append(sizes(batch...), c.MulN(r*r), h.DivN(r), w.DivN(r))
	if shuffle { // [c, r, r, h, w] to [c, h, r, w, r]
		inner, outer = append(sizes(batch...), c.DivN(r*r), aten.Ints(r)[0], aten.Ints(r)[0], h, w), append(sizes(batch...), c.DivN(r*r), h.MulN(r), w.MulN(r))
		at(0, 3, 1, 4, 2)
	} else {
		at(0, 2, 4, 1, 3)
	}
	return viewOrCopy(b, b.Call("permute", viewOrCopy(b, x, inner), perm), outer)
}
