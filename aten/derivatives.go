package aten

import (
	"math"
	"slices"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// derivativeOps are derivatives that PyTorch has as operators of their own: of scans, segments, gates and older convolutions.
var derivativeOps = []Op{
	{Schema: "trace_backward(Tensor grad, SymInt[] sizes) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		g, sizes := a.Tensor(0), a.Ints(1)
		Check(len(sizes) == 2, "expected matrix input")
		zero := b.Call("zeros", sizes, Kw("dtype", g.DType))
		return One(b.Call("diagonal_scatter", zero, b.Call("expand", g, b.Call("diagonal", zero).Sizes)))
	}},
	{Schema: "cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(1)
		if x.empty() {
			return One(x)
		}
		return One(b.Call("scatter_add", b.Call("zeros", x.Sizes, Kw("dtype", x.DType)), a.V[3], a.V[2], a.V[0]))
	}},
	{Schema: "cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor", Shape: func(a *Args) []Meta {
		x := a.Tensor(1)
		WrapDim(a.I64(2), x.Dim())
		Check(SameSizes(a.Tensor(0).Sizes, x.Sizes), "cumprod_backward: gradient of sizes %s for an input of sizes %s", sizesText(a.Tensor(0).Sizes), sizesText(x.Sizes))
		return []Meta{LikeMeta(x, x.DType, PreserveFormat)}
	}, CPU: cumprodBackward},
	{Schema: "affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor", Decomp: affineGridBackward},
	{Schema: "glu_jvp(Tensor glu, Tensor x, Tensor dx, int dim) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		_, s := gluHalves(b, a.Tensor(1), a.I64(3))
		dx := b.CallN("chunk", a.Tensor(2), 2, a.I64(3))
		keep := b.Call("mul.Tensor", a.Tensor(0), b.Call("rsub.Scalar", s, 1))
		return One(b.Call("add.Tensor", b.Call("mul.Tensor", dx[0], s), b.Call("mul.Tensor", keep, dx[1])))
	}},
	{Schema: "glu_backward_jvp(Tensor grad_x, Tensor grad_glu, Tensor x, Tensor dgrad_glu, Tensor dx, int dim) -> Tensor", Decomp: gluBackwardJVP},
	{Schema: "conv_tbc_backward(Tensor self, Tensor input, Tensor weight, Tensor bias, int pad) -> (Tensor, Tensor, Tensor)", Decomp: convTBCBackward},
	{Schema: "_slow_conv2d_backward.output_mask(Tensor grad_output, Tensor self, Tensor weight, SymInt[2] kernel_size, SymInt[2] stride, SymInt[2] padding, bool[3] output_mask) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)", Decomp: func(b *Build, a *Args) []*Value {
		return b.CallN("convolution_backward", a.V[0], a.V[1], a.V[2], nil, a.V[4], a.V[5], []int{1, 1}, false, []int{0, 0}, 1, a.V[6])
	}},
	{Schema: "_compute_linear_combination(Tensor input, Tensor coefficients) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("tensordot", a.Tensor(1), a.Tensor(0), []int{1}, []int{0}))
	}},
	{Schema: "_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor", Shape: func(a *Args) []Meta {
		d := a.Tensor(2)
		WrapDim(a.I64(6), d.Dim())
		Check(a.Has(4) || a.Has(5), "segment_reduce(): Either lengths or offsets must be defined.")
		Check(SameSizes(a.Tensor(0).Sizes, a.Tensor(1).Sizes), "_segment_reduce_backward: gradient of sizes %s for an output of sizes %s", sizesText(a.Tensor(0).Sizes), sizesText(a.Tensor(1).Sizes))
		combinerOf("segment_reduce", a.Str(3))
		return []Meta{Contig(d.DType, d.Sizes...)}
	}, CPU: segmentBackward},
}

// cumprodBackward: element i gets, from every output at or after it, the gradient times the product of the other factors.
func cumprodBackward(k *Kernel) {
	x, g := k.T(1), k.T(0)
	xs := tensor.Contiguous[complex128](k.as(x, tensor.Complex128))
	gs := tensor.Contiguous[complex128](k.as(g, tensor.Complex128))
	res := make([]complex128, len(xs))
	d := WrapDim(k.I64(2), x.Dim())
	n, inner := int64(1), int64(1)
	if x.Dim() > 0 {
		n = x.Sizes()[d]
		for _, s := range x.Sizes()[d+1:] {
			inner *= s
		}
	}
	for start := int64(0); n > 0 && start < int64(len(xs)); start += n * inner {
		for c := start; c < start+inner; c++ {
			before := complex128(1)
			for i := range n {
				p, sum := before, complex128(0)
				for j := i; j < n; j++ {
					if j > i {
						p *= xs[c+j*inner]
					}
					sum += gs[c+j*inner] * conj(p)
				}
				res[c+i*inner] = sum
				before *= xs[c+i*inner]
			}
		}
	}
	t, _ := tensor.FromSlice(res, k.Out[0].Sizes()...)
	Copy(k.Pool, k.Out[0], t)
}

// affineGridBackward is the gradient of the matrices: the base grid, transposed, times that of the grid.
func affineGridBackward(b *Build, a *Args) []*Value {
	g, size := a.Tensor(0), a.Ints(1)
	n := len(size) - 2
	Check(n == 2 || n == 3, "AffineGridGenerator needs 4d or 5d size, got %v", size)
	one := symbolic.N(1)
	var axes []*Value
	for i := range n { // x comes first, then y, then z
		d := n - 1 - i
		steps := size[2+d]
		line := b.Call("linspace", -1.0, 1.0, steps, Kw("dtype", g.DType))
		if steps.Eq(one) {
			line = b.Call("zeros", []symbolic.Int{one}, Kw("dtype", g.DType))
		} else if !a.Bool(2) {
			line = b.Call("mul.Scalar", line, float64(steps.Int64()-1)/float64(steps.Int64()))
		}
		shape := make([]symbolic.Int, n)
		for j := range shape {
			shape[j] = one
		}
		shape[d] = steps
		axes = append(axes, b.Call("expand", b.Call("reshape", line, shape), size[2:]))
	}
	axes = append(axes, b.Call("ones", size[2:], Kw("dtype", g.DType)))
	base := b.Call("reshape", b.Call("stack", axes, -1), []symbolic.Int{one, symbolic.Prod(size[2:]...), symbolic.N(int64(n + 1))})
	flat := b.Call("reshape", g, []symbolic.Int{size[0], symbolic.Prod(size[2:]...), symbolic.N(int64(n))})
	base = b.Call("transpose.int", b.Call("expand", base, []symbolic.Int{size[0], base.Sizes[1], base.Sizes[2]}), 1, 2)
	return One(b.Call("transpose.int", b.Call("bmm", base, flat), 1, 2))
}

// gluHalves gives the first half of x and the sigmoid of the second.
func gluHalves(b *Build, x *Value, dim int64) (first, gate *Value) {
	h := b.CallN("chunk", x, 2, dim)
	return h[0], b.Call("sigmoid", h[1])
}

// gluBackwardJVP differentiates (u, u*(x - x*s)), the gradient of a gated linear unit, where s is the gate's sigmoid and u the first
// half of the gradient as it was given.
func gluBackwardJVP(b *Build, a *Args) []*Value {
	mul := func(x, y *Value) *Value { return b.Call("mul.Tensor", x, y) }
	add := func(x, y *Value) *Value { return b.Call("add.Tensor", x, y) }
	rest := func(x, s *Value) *Value { return b.Call("sub.Tensor", x, mul(x, s)) }
	dim := a.I64(5)
	u := b.CallN("chunk", a.Tensor(0), 2, dim)[0]
	x, s := gluHalves(b, a.Tensor(2), dim)
	d := b.CallN("chunk", a.Tensor(4), 2, dim)
	gate := rest(d[1], s)
	first := add(mul(a.Tensor(3), s), mul(u, gate))
	second := add(mul(first, rest(x, s)), mul(u, b.Call("sub.Tensor", rest(d[0], s), mul(mul(x, s), gate))))
	return One(b.Call("cat", []*Value{first, second}, dim))
}

// convTBCBackward: [T, B, C] is a convolution over T with weights [taps, in, out].
func convTBCBackward(b *Build, a *Args) []*Value {
	order := []int{1, 2, 0}
	g, x := b.Call("permute", a.Tensor(0), order), b.Call("permute", a.Tensor(1), order)
	w := b.Call("permute", a.Tensor(2), []int{2, 1, 0})
	r := b.CallN("convolution_backward", g, x, w, nil, []int{1}, []symbolic.Int{a.Int(4)}, []int{1}, false, []int{0}, 1, []bool{true, true, true})
	plain := func(v *Value, order ...int) *Value { return b.Call("contiguous", b.Call("permute", v, order)) }
	return []*Value{plain(r[0], 2, 0, 1), plain(r[1], 2, 1, 0), r[2]}
}

// segmentBackward gives each element its share of its segment's gradient. Where several elements are the extreme, PyTorch divides
// among them only what is positive.
func segmentBackward(k *Kernel) {
	data := k.T(2)
	axis := WrapDim(k.I64(6), data.Dim())
	size := data.Sizes()[axis]
	fwd := &Kernel{Args: &Args{V: []any{k.V[2], k.V[3], k.V[4], nil, k.V[5], k.V[6], false}}}
	lengths := segmentLengths(fwd, size)
	inner := int64(1)
	for _, s := range data.Sizes()[axis+1:] {
		inner *= s
	}
	initial := 1.0
	if s, ok := k.OptScalar(7); ok {
		initial = s.Float64()
	}
	x, grad, out := k.floats(data), k.floats(k.T(0)), k.floats(k.T(1))
	segs := k.T(0).Sizes()[axis]
	res := make([]float64, len(x))
	for r := range int64(len(lengths)) / max(segs, 1) {
		at := int64(0)
		for s := range segs {
			n := lengths[r*segs+s]
			for i := range inner {
				o := (r*segs+s)*inner + i
				seg := segment{x: x, to: res, from: (r*size+at)*inner + i, step: inner, n: n}
				seg.backward(k.Str(3), grad[o], out[o], initial)
			}
			at += n
		}
	}
	k.storeFloats(k.Out[0], res)
}

// segment is a run of n elements that lie step apart, and where their gradients go.
type segment struct {
	x, to         []float64
	from, step, n int64
}

func (s *segment) backward(reduce string, grad, out, initial float64) {
	at := func(j int64) int64 { return s.from + j*s.step }
	switch reduce {
	case "max", "min":
		var ties []int64
		for j := range s.n {
			if v := s.x[at(j)]; math.IsNaN(v) || v == out {
				ties = append(ties, at(j))
				s.to[at(j)] = grad
			}
		}
		for _, t := range ties {
			if len(ties) > 1 && grad > 0 {
				s.to[t] = grad / float64(len(ties))
			}
		}
	case "prod":
		for j := range s.n {
			v := s.x[at(j)]
			if v != 0 && !math.IsNaN(v) {
				s.to[at(j)] = grad * out / v
				continue
			}
			p := initial
			for i := range s.n {
				if i != j {
					p *= s.x[at(i)]
				}
			}
			s.to[at(j)] = grad * p
		}
	default:
		if reduce == "mean" {
			grad /= float64(s.n)
		}
		for j := range s.n {
			s.to[at(j)] = grad
		}
	}
}

// legacyNameOps are operators that only say another's name.
var legacyNameOps = []Op{
	{Schema: "_logcumsumexp(Tensor self, int dim) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("logcumsumexp", a.V...)) }},
	{Schema: "_add_relu.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("relu", b.Call("add.Scalar", a.V...)))
	}},
	{Schema: "_convolution.deprecated(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, int[] output_padding, SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("convolution", a.V[:9]...))
	}},
	{Schema: "convolution_overrideable(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("convolution", a.V...))
	}},
	{Schema: "_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, SymInt[] dilation, SymInt groups) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		n := a.Tensor(1).Dim() - 2
		Check(n >= 1 && n <= 3, "weight should have at least three dimensions")
		return One(b.Call([]string{"conv1d.padding", "conv2d.padding", "conv3d.padding"}[n-1], a.V...))
	}},
	{Schema: "unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]", Decomp: func(b *Build, a *Args) []*Value {
		at := symbolic.N(0)
		var out []*Value
		for _, t := range a.Tensors(1) {
			n := t.Numel()
			part := b.Call("slice.Tensor", a.Tensor(0), 0, at, at.Add(n))
			out = append(out, b.Call("view", part, t.Sizes))
			at = at.Add(n)
		}
		return out
	}},
	{Schema: "to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		if !a.Has(1) {
			return One(a.Tensor(0))
		}
		return One(b.Call("to.dtype", a.Tensor(0), a.V[1]))
	}},
	{Schema: "to_dense_backward(Tensor grad, Tensor input, bool? masked_grad=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(a.Tensor(0)) }},
	numberOp("dense_dim(Tensor self) -> int", SizesOnly, func(a *Args) any { return symbolic.N(int64(a.Tensor(0).Dim())) }),
	{Schema: "resize_as(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, t := a.Tensor(0), a.Tensor(1)
		Check(SameSizes(x.Sizes, t.Sizes), "resize_as: a tensor of sizes %s would have to be resized to %s", sizesText(x.Sizes), sizesText(t.Sizes))
		return One(b.Call("clone", x, Kw("memory_format", a.V[2])))
	}},
	{Schema: "_new_zeros_with_same_feature_meta(Tensor self, Tensor other, *, int self_num_batch_dims=0) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, o := a.Tensor(0), a.Tensor(1)
		n := int(a.I64(2))
		Check(n >= 0 && n <= x.Dim(), "self.dim() >= self_num_batch_dims")
		if n == 0 {
			return One(b.Call("zeros_like", o))
		}
		return One(b.Call("zeros", slices.Concat(x.Sizes[:n], o.Sizes), Kw("dtype", o.DType)))
	}},
	{Schema: "_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value {
		x, heads := a.Tensor(0), a.Int(2)
		Check(x.Dim() == 3 && x.Sizes[2].Mod(symbolic.N(3)).Eq(symbolic.N(0)), "expected a qkv tensor of sizes [B, T, 3*D], got %s", sizesText(x.Sizes))
		d := x.Sizes[2].DivN(3)
		Check(d.Mod(heads).Eq(symbolic.N(0)), "D must be divisible by num_heads")
		per := d.FloorDiv(heads)
		v := b.Call("reshape", b.Call("add.Tensor", x, a.Tensor(1)), []symbolic.Int{x.Sizes[0], x.Sizes[1], symbolic.N(3), heads, per})
		out := b.CallN("unbind.int", b.Call("contiguous", b.Call("permute", v, []int{2, 0, 3, 1, 4})), 0)
		out[0] = b.Call("mul.Scalar", out[0], 1/math.Sqrt(float64(per.Int64())))
		return out
	}},
}
