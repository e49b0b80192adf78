package passes

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// lossFormulas are losses, activations, norms and paddings as torch/_decomp has them.
var lossFormulas = map[string]Decomp{
	"aten.binary_cross_entropy.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x, y := a.Tensor(0), a.Tensor(1)
		floor := func(v *aten.Value) *aten.Value {
			return b.Call("maximum", v, b.Call("full", []int64{}, -100, aten.Kw("dtype", x.DType)))
		}
		less := b.Call("sub.Tensor", y, 1)
		no := b.Call("mul.Tensor", less, floor(b.Call("log1p", b.Call("neg", x))))
		yes := b.Call("mul.Tensor", y, floor(b.Call("log", x)))
		return one(reduced(b, weighted(b, b.Call("sub.Tensor", no, yes), a.OptTensor(2)), a.I64(3)))
	},
	"aten.binary_cross_entropy_with_logits.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x, y := a.Tensor(0), a.Tensor(1)
		var loss *aten.Value
		if pos := a.OptTensor(3); pos != nil {
			factor := b.Call("add.Tensor", b.Call("mul.Tensor", b.Call("sub.Tensor", pos, 1), y), 1)
			no := b.Call("mul.Tensor", b.Call("sub.Tensor", 1, y), x)
			loss = b.Call("sub.Tensor", no, b.Call("mul.Tensor", factor, logSigmoid(b, x)))
		} else {
			no := b.Call("mul.Tensor", b.Call("sub.Tensor", 1, y), x)
			loss = b.Call("sub.Tensor", no, logSigmoid(b, x))
		}
		return one(reduced(b, weighted(b, loss, a.OptTensor(2)), a.I64(4)))
	},
	"aten.margin_ranking_loss.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		d := b.Call("sub.Tensor", a.V[0], a.V[1])
		l := b.Call("add.Scalar", b.Call("mul.Tensor", b.Call("neg", a.V[2]), d), a.V[3])
		return one(reduced(b, b.Call("clamp", l, 0), a.I64(4)))
	},
	"aten.huber_loss.default": wideReduced(2, func(b *aten.Build, a *aten.Args) *aten.Value {
		d, delta := b.Call("abs", b.Call("sub.Tensor", a.V[0], a.V[1])), a.Float(3)
		near := b.Call("lt.Scalar", d, delta)
		square := b.Call("mul.Tensor", b.Call("mul.Tensor", d, 0.5), d)
		linear := b.Call("mul.Tensor", b.Call("sub.Tensor", d, 0.5*delta), delta)
		return b.Call("where.self", near, square, linear)
	}),
	"aten.smooth_l1_loss.default": wideReduced(2, func(b *aten.Build, a *aten.Args) *aten.Value {
		d, beta := b.Call("abs", b.Call("sub.Tensor", a.V[0], a.V[1])), a.Float(3)
		if beta == 0 {
			return d
		}
		near := b.Call("lt.Scalar", d, beta)
		square := b.Call("div.Tensor", b.Call("mul.Tensor", b.Call("pow.Tensor_Scalar", d, 2), 0.5), beta)
		return b.Call("where.self", near, square, b.Call("sub.Tensor", d, 0.5*beta))
	}),
	"aten.kl_div.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		if a.Bool(3) {
			return registered(b, a)
		}
		p := b.Call("mul.Tensor", a.V[1], a.V[0])
		return one(reduced(b, b.Call("sub.Tensor", b.Call("xlogy.Tensor", a.V[1], a.V[1]), p), a.I64(2)))
	},
	"aten.hinge_embedding_loss.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x, y := a.Tensor(0), a.Tensor(1)
		zeros := b.Call("full_like", x, number(0, x.DType), aten.Kw("memory_format", aten.ContiguousFormat))
		order := make([]int64, x.Dim())
		for i := range order {
			order[i] = int64(i)
		}
		margin := b.Call("full_like", b.Call("empty_permuted", x.Sizes, order, aten.Kw("dtype", x.DType)), a.V[2])
		far := b.Call("clamp", b.Call("sub.Tensor", margin, x), 0)
		no := b.Call("where.self", b.Call("ne.Scalar", y, 1), far, zeros)
		yes := b.Call("where.self", b.Call("ne.Scalar", y, -1), x, zeros)
		return one(reduced(b, b.Call("add.Tensor", no, yes), a.I64(3)))
	},
	"aten.nll_loss_forward.default":   nllLoss,
	"aten.nll_loss2d_forward.default": nllLoss,
	"aten.cosine_similarity.default":  cosineSimilarity,
	"aten.celu.default": wide(func(b *aten.Build, a *aten.Args) *aten.Value {
		x, alpha := a.Tensor(0), a.Scalar(1).Float64()
		var low *aten.Value
		if alpha != 1 {
			low = b.Call("mul.Tensor", b.Call("expm1", b.Call("div.Tensor", x, alpha)), alpha)
		} else {
			low = b.Call("expm1", x)
		}
		return b.Call("where.self", b.Call("gt.Scalar", x, 0), x, low)
	}),
	"aten.selu.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("elu", a.V[0], 1.6732632423543772848170429916717, 1.0507009873554804934193349852946))
	},
	"aten.hardshrink.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		return one(b.Call("where.self", b.Call("le.Scalar", b.Call("abs", x), a.V[1]), filledAs(b, 0, x.DType), x))
	},
	"aten.softshrink.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		outside := b.Call("gt.Scalar", b.Call("abs", x), a.V[1])
		nearer := b.Call("sub.Tensor", x, b.Call("mul.Tensor", b.Call("sign", x), a.V[1]))
		return one(b.Call("where.self", outside, nearer, b.Call("mul.Tensor", x, 0)))
	},
	"aten.rms_norm.default": rmsNorm,
	"aten.lerp.Scalar": wide(func(b *aten.Build, a *aten.Args) *aten.Value {
		x := a.Tensor(0)
		return lerp(b, x, a.Tensor(1), b.Call("full", []int64{}, a.V[2], aten.Kw("dtype", x.DType)))
	}),
	"aten.lerp.Tensor": wide(func(b *aten.Build, a *aten.Args) *aten.Value { return lerp(b, a.Tensor(0), a.Tensor(1), a.Tensor(2)) }),
	"aten.addr.default": wide(func(b *aten.Build, a *aten.Args) *aten.Value {
		x, u, v := a.Tensor(0), a.Tensor(1), a.Tensor(2)
		if !u.DType.IsFloat() || a.Scalar(3).Float64() == 0 {
			panic(&unrecordable{"addr of this kind"})
		}
		shape := sizes(u.Sizes[0], v.Sizes[0])
		base := b.Call("mul.Tensor", b.Call("expand", x, shape), a.V[3])
		outer := b.Call("mul.Tensor", b.Call("view", u, sizes(u.Sizes[0], symbolic.N(1))), v)
		return b.Call("add.Tensor", base, b.Call("mul.Tensor", outer, a.V[4]))
	}),
	"aten.reflection_pad1d.default": padding(false, 1), "aten.reflection_pad2d.default": padding(false, 2), "aten.reflection_pad3d.default": padding(false, 3),
	"aten.replication_pad1d.default": padding(true, 1), "aten.replication_pad2d.default": padding(true, 2), "aten.replication_pad3d.default": padding(true, 3),
	"aten.max_unpool2d.default": maxUnpool(2), "aten.max_unpool3d.default": maxUnpool(3),
	"aten.im2col.default":                              im2col,
	"aten._unsafe_masked_index_put_accumulate.default": unsafeMaskedPut,
	"aten.embedding_bag.padding_idx": func(b *aten.Build, a *aten.Args) []*aten.Value {
		name := "_embedding_bag_forward_only"
		if w, ok := a.Tensor(0).Ref.(*ref); ok && w.grad {
			name = "_embedding_bag"
		}
		pad := a.V[8]
		if pad == nil {
			pad = -1
		}
		return b.CallN(name, a.V[0], a.V[1], a.V[2], a.V[3], a.V[4], a.V[5], a.V[6], a.V[7], pad)
	},
}

// registered is the registry's own formula.
func registered(b *aten.Build, a *aten.Args) []*aten.Value {
	if a.Op.Decomp == nil {
		panic(&unrecordable{"no formula"})
	}
	return a.Op.Decomp(b, a)
}

func weighted(b *aten.Build, x, w *aten.Value) *aten.Value {
	if w == nil {
		return x
	}
	return b.Call("mul.Tensor", x, w)
}

// wideReduced is wide for a loss whose reduction is argument i, which is computed in float32 too.
func wideReduced(i int, f func(b *aten.Build, a *aten.Args) *aten.Value) Decomp {
	return wide(func(b *aten.Build, a *aten.Args) *aten.Value { return reduced(b, f(b, a), a.I64(i)) })
}

func logSigmoid(b *aten.Build, x *aten.Value) *aten.Value {
	low := b.Call("minimum", b.Call("full", []int64{}, 0, aten.Kw("dtype", x.DType)), x)
	z := b.Call("exp", b.Call("neg", b.Call("abs", x)))
	return b.Call("sub.Tensor", low, b.Call("log1p", z))
}

// nllLoss: x [N, C, ...] or [C], target [N, ...], weight [C] or none.
func nllLoss(b *aten.Build, a *aten.Args) []*aten.Value {
	x, y, w, ignore := a.Tensor(0), a.Tensor(1), a.OptTensor(2), a.V[4]
	d := min(1, x.Dim()-1)
	if w != nil {
		if x.Dim() > 1 {
			shape := make([]symbolic.Int, x.Dim())
			for i := range shape {
				shape[i] = symbolic.N(1)
			}
			shape[d] = w.Sizes[0]
			w = b.Call("view", w, shape)
		}
		x = b.Call("mul.Tensor", x, w)
	}
	pick := func(v, at *aten.Value) *aten.Value {
		return b.Call("squeeze.dims", b.Call("gather", v, d, at), []int64{int64(d)})
	}
	counts := func() *aten.Value { return b.Call("ne.Scalar", y, ignore) }
	at := b.Call("unsqueeze", b.Call("where.self", counts(), y, filledAs(b, 0, y.DType)), d)
	loss := b.Call("neg", pick(x, at))
	loss = b.Call("where.self", counts(), loss, filledAs(b, 0, x.DType))
	if a.I64(3) == 0 && x.Dim() > 1 {
		return []*aten.Value{loss, b.Call("full", []int64{}, 0.0, aten.Kw("dtype", x.DType))}
	}
	var total *aten.Value
	if w != nil {
		ws := pick(b.Call("expand", w, x.Sizes), at)
		ws = b.Call("where.self", counts(), ws, filledAs(b, 0, x.DType))
		total = b.Call("sum.dim_IntList", ws, []int64{})
	} else {
		total = cast(b, b.Call("sum.dim_IntList", counts(), []int64{}), x.DType)
	}
	switch a.I64(3) {
	case 1:
		loss = b.Call("div.Tensor", b.Call("sum.dim_IntList", loss, []int64{}), total)
	case 2:
		loss = b.Call("sum.dim_IntList", loss, []int64{})
	}
	return []*aten.Value{loss, total}
}

func cosineSimilarity(b *aten.Build, a *aten.Args) []*aten.Value {
	x, y, dims := a.Tensor(0), a.Tensor(1), []int64{a.I64(2)}
	if x.DType != y.DType || !x.DType.IsFloat() {
		panic(&unrecordable{"cosine_similarity of two dtypes"})
	}
	shape := aten.BroadcastSizes(x, y)
	if !sameSizes(x.Sizes, shape) || !sameSizes(y.Sizes, shape) {
		x, y = b.Call("expand", x, shape), b.Call("expand", y, shape)
	}
	norm := func(v *aten.Value) *aten.Value {
		return b.Call("clone", b.Call("linalg_vector_norm", v, 2, dims, true))
	}
	nx, ny := norm(x), norm(y)
	eps := filledAs(b, a.V[3], x.DType)
	nx, ny = b.Call("clamp.Tensor", nx, eps), b.Call("clamp.Tensor", ny, eps)
	y = b.Call("div.Tensor", y, ny)
	return one(b.Call("sum.dim_IntList", b.Call("mul.Tensor", b.Call("div.Tensor", x, nx), y), dims))
}

func rmsNorm(b *aten.Build, a *aten.Args) []*aten.Value {
	x, w := a.Tensor(0), a.OptTensor(2)
	half := x.DType
	if half.IsReduced() {
		x = cast(b, x, tensor.Float32)
	}
	dims := make([]int64, len(a.Ints(1)))
	for i := range dims {
		dims[i] = int64(x.Dim() - 1 - i)
	}
	eps := map[tensor.DType]float64{tensor.Float32: 0x1p-23, tensor.Float64: 0x1p-52}[x.DType]
	if a.V[3] != nil {
		eps = a.Float(3)
	}
	m := b.Call("mean.dim", b.Call("pow.Tensor_Scalar", x, 2), dims, true)
	y := b.Call("mul.Tensor", x, b.Call("rsqrt", b.Call("add.Scalar", m, eps)))
	return one(cast(b, weighted(b, y, w), half))
}

func lerp(b *aten.Build, x, y, w *aten.Value) *aten.Value {
	if !x.DType.IsFloat() {
		panic(&unrecordable{"lerp of this dtype"})
	}
	far := b.Call("ge.Scalar", b.Call("abs", w), 0.5)
	factor := b.Call("where.self", far, b.Call("sub.Tensor", w, 1), w)
	base := b.Call("where.self", far, y, x)
	return b.Call("add.Tensor", b.Call("mul.Tensor", factor, b.Call("sub.Tensor", y, x)), base)
}

// padding of n spatial dimensions: the edge repeated, or what lies before it mirrored.
func padding(replicate bool, n int) Decomp {
	f := func(b *aten.Build, a *aten.Args) *aten.Value {
		x, pad := a.Tensor(0), a.Ints(1)
		first := x.Dim() - n
		y := x
		for i := range n {
			left, right, size := pad[2*(n-1-i)], pad[2*(n-1-i)+1], x.Sizes[first+i]
			at := b.Call("arange.start_step", symbolic.N(0).Sub(left), size.Add(right), 1)
			last := size.Sub(symbolic.N(1))
			if replicate {
				at = b.Call("clamp", at, 0, last)
			} else {
				at = b.Call("sub.Tensor", last, b.Call("abs", b.Call("sub.Tensor", last, b.Call("abs", at))))
			}
			places := make([]*aten.Value, x.Dim())
			places[first+i] = at
			y = b.Call("index.Tensor", y, places)
		}
		return y
	}
	if replicate {
		return wide(f)
	}
	return func(b *aten.Build, a *aten.Args) []*aten.Value { return one(f(b, a)) }
}

// maxUnpool puts values back where max pooling found them, in n spatial dimensions.
func maxUnpool(n int) Decomp {
	return func(b *aten.Build, a *aten.Args) []*aten.Value {
		x, at, space := a.Tensor(0), a.Tensor(1), a.Ints(2)
		k := x.Dim() - n
		outer := x.Sizes[:k]
		shape := append(append([]symbolic.Int(nil), outer...), space...)
		if c, ok := symbolic.Prod(shape...).Const(); !ok || c == 0 {
			panic(&unrecordable{"an unpooling into nothing"})
		}
		ones := append([]symbolic.Int(nil), outer...)
		for range n {
			ones = append(ones, symbolic.N(1))
		}
		rows := b.Call("view", counted(b, symbolic.Prod(outer...)), ones)
		at = b.Call("add.Tensor", at, b.Call("mul.Tensor", rows, symbolic.Prod(space...)))
		flat := func(v *aten.Value) *aten.Value {
			if !fits("view.default", v, []int64{-1}) {
				v = b.Call("clone", v, aten.Kw("memory_format", aten.ContiguousFormat))
			}
			return b.Call("view", v, []int64{-1})
		}
		places := flat(at)
		zeros := flat(b.Call("full", shape, number(0, x.DType), aten.Kw("dtype", x.DType)))
		y := b.Call("view", b.Call("index_put", zeros, []*aten.Value{places}, flat(x)), shape)
		if n == 2 && x.Dim() == 4 && !x.IsContiguous() {
			y = b.Call("clone", y, aten.Kw("memory_format", aten.ChannelsLast))
		}
		return one(y)
	}
}

// im2col: x [N, C, H, W] or [C, H, W], kernel, dilation, padding, stride.
func im2col(b *aten.Build, a *aten.Args) []*aten.Value {
	x := a.Tensor(0)
	if x.Dim() != 4 {
		panic(&unrecordable{"im2col without a batch"})
	}
	kernel, dilation, pad, stride := a.I64s(1), a.I64s(2), a.I64s(3), a.I64s(4)
	blocks := make([]symbolic.Int, 2)
	axis := func(i int) *aten.Value {
		n, ok := x.Sizes[2+i].Const()
		if !ok {
			panic(&unrecordable{"im2col of a symbolic size"})
		}
		count := (n+2*pad[i]-dilation[i]*(kernel[i]-1)-1)/stride[i] + 1
		blocks[i] = symbolic.N(count)
		at := b.Call("unsqueeze", b.Call("arange.start_step", 0, count*stride[i], stride[i], aten.Kw("dtype", tensor.Int64)), 0)
		in := b.Call("unsqueeze", b.Call("arange.start_step", 0, kernel[i]*dilation[i], dilation[i], aten.Kw("dtype", tensor.Int64)), -1)
		return b.Call("add.Tensor", at, in)
	}
	rows, columns := axis(0), axis(1)
	padded := b.Call("constant_pad_nd", x, []int64{pad[1], pad[1], pad[0], pad[0]}, 0.0)
	rows = b.Call("unsqueeze", b.Call("unsqueeze", rows, -1), -1)
	y := b.Call("permute", b.Call("index.Tensor", padded, []*aten.Value{nil, nil, rows, columns}), []int64{0, 1, 2, 4, 3, 5})
	return one(viewOrCopy(b, y, sizes(x.Sizes[0], x.Sizes[1].MulN(kernel[0]*kernel[1]), blocks[0].Mul(blocks[1]))))
}

// unsafeMaskedPut adds values at places that may lie outside where the mask is off.
func unsafeMaskedPut(b *aten.Build, a *aten.Args) []*aten.Value {
	x, mask, places, values := a.Tensor(0), a.Tensor(1), a.Tensors(2), a.Tensor(3)
	within := make([]*aten.Value, len(places))
	for i, p := range places {
		if p != nil {
			within[i] = b.Call("clamp", p, symbolic.N(0).Sub(x.Sizes[i]), x.Sizes[i].Sub(symbolic.N(1)))
		}
	}
	off := b.Call("bitwise_not", mask)
	values = b.Call("where.self", off, filledAs(b, number(0, values.DType), values.DType), values)
	return one(b.Call("index_put", x, within, values, true))
}
