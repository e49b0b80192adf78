package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
)

// lossBackwardOps are the gradients of losses.
var lossBackwardOps = []Op{
	{Schema: "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		d := b.Call("mul.Scalar", b.Call("sub.Tensor", a.Tensor(1), a.Tensor(2)), 2*lossShare(a, 3))
		return One(b.Call("mul.Tensor", d, a.Tensor(0)))
	}},
	{Schema: "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := b.Call("sub.Tensor", a.Tensor(1), a.Tensor(2))
		slope := b.Call("sign", x)
		if beta := a.Float(4); beta > 0 {
			slope = b.Call("clamp", b.Call("div.Scalar", x, beta), -1.0, 1.0)
		}
		return One(b.Call("mul.Tensor", b.Call("mul.Scalar", slope, lossShare(a, 3)), a.Tensor(0)))
	}},
	{Schema: "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := b.Call("clamp", b.Call("sub.Tensor", a.Tensor(1), a.Tensor(2)), -a.Float(4), a.Float(4))
		return One(b.Call("mul.Tensor", b.Call("mul.Scalar", x, lossShare(a, 3)), a.Tensor(0)))
	}},
	{Schema: "soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		t := a.Tensor(2)
		s := b.Call("sub.Scalar", b.Call("sigmoid", b.Call("mul.Tensor", t, a.Tensor(1))), 1)
		return One(b.Call("mul.Scalar", b.Call("mul.Tensor", b.Call("mul.Tensor", t, a.Tensor(0)), s), lossShare(a, 3)))
	}},
	{Schema: "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(1)
		slope := b.Call("clamp_min", b.Call("mul.Tensor", x, b.Call("rsub.Scalar", x, 1)), 1e-12)
		r := b.Call("div.Tensor", b.Call("mul.Tensor", a.Tensor(0), b.Call("sub.Tensor", x, a.Tensor(2))), slope)
		if w := a.OptTensor(3); w != nil {
			r = b.Call("mul.Tensor", r, w)
		}
		if a.I64(4) == reduceMean {
			r = b.Call("div.Scalar", r, x.Numel())
		}
		return One(r)
	}},
	{Schema: "nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor", Decomp: nllBackward},
	{Schema: "nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor", Decomp: nllBackward},
	{Schema: "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? weight=None, int reduction=1) -> Tensor", Decomp: multiMarginBackward},
	{Schema: "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) -> Tensor",
		Shape: func(a *Args) []Meta {
			x := a.Tensor(1)
			Check(x.Dim() <= 2 && SameSizes(a.Tensor(2).Sizes, a.Tensor(4).Sizes) && a.Tensor(2).Numel().Eq(x.Numel()), "inconsistent is_target size")
			rows, _ := lossRows(x)
			n := a.Tensor(0).Numel()
			Check(n.Eq(symbolic.N(1)) || a.I64(3) == reduceNone && n.Eq(rows), "inconsistent grad_output size: %s", sizesText(a.Tensor(0).Sizes))
			return []Meta{Contig(x.DType, x.Sizes...)}
		}, CPU: multiLabelBackward},
}

// lossShare is the weight of one element in a loss whose reduction is argument at: 1/numel for the mean.
func lossShare(a *Args, at int) float64 {
	if a.I64(at) == reduceMean {
		return 1 / float64(a.Tensor(1).Numel().Int64())
	}
	return 1
}

// nllBackward puts the negative weights at the places of the target classes.
func nllBackward(b *Build, a *Args) []*Value {
	g, x, t, w := a.Tensor(0), a.Tensor(1), a.Tensor(2), a.OptTensor(3)
	class := min(1, x.Dim()-1)
	Check(class >= 0, "input tensor should be 1D or 2D")
	if a.I64(4) == reduceMean {
		g = b.Call("div.Tensor", g, a.Tensor(6))
	}
	if x.Dim() == 1 && t.Dim() > 0 {
		t = b.Call("select.int", t, 0, 0)
	}
	t = b.Call("unsqueeze", t, class)
	kept := b.Call("ne.Scalar", t, a.Int(5))
	safe := b.Call("where.ScalarOther", kept, t, 0)
	r := b.Call("scatter.value", b.Call("zeros_like", x), class, safe, -1)
	if g.Dim() > 0 && x.Dim() > g.Dim() {
		g = b.Call("unsqueeze", g, class)
	}
	if w != nil {
		g = b.Call("mul.Tensor", g, classWeight(b, w, x, class))
	}
	return One(b.Call("mul.Tensor", r, b.Call("where.ScalarOther", kept, g, 0)))
}

func multiMarginBackward(b *Build, a *Args) []*Value {
	g, x, w := a.Tensor(0), a.Tensor(1), a.OptTensor(5)
	p := a.Scalar(3).Float64()
	Check(p == 1 || p == 2, "only p == 1 and p == 2 supported")
	rows, cols := lossRows(x)
	m := b.Call("reshape", x, []symbolic.Int{rows, cols})
	t := b.Call("reshape", a.Tensor(2), []symbolic.Int{rows, symbolic.N(1)})
	z := b.Call("add.Scalar", b.Call("sub.Tensor", m, b.Call("gather", m, 1, t)), a.V[4])
	h := b.Call("gt.Scalar", z, 0)
	d := b.Call("to.dtype", h, x.DType)
	if p == 2 {
		d = b.Call("mul.Scalar", b.Call("mul.Tensor", d, z), 2)
	}
	d = b.Call("div.Scalar", d, cols)
	if w != nil {
		d = b.Call("mul.Tensor", d, b.Call("unsqueeze", b.Call("index_select", w, 0, b.Call("flatten.using_ints", t)), 1))
	}
	if a.I64(6) == reduceMean {
		d = b.Call("div.Scalar", d, rows)
	}
	if g.Dim() == 1 {
		g = b.Call("unsqueeze", g, 1)
	}
	d = b.Call("scatter.value", b.Call("mul.Tensor", d, g), 1, t, 0)
	own := b.Call("neg", b.Call("sum.dim_IntList", d, []int{1}, true))
	return One(b.Call("view_as", b.Call("scatter.src", d, 1, t, own), x))
}

func multiLabelBackward(k *Kernel) {
	g, xs, target := k.floats(k.T(0)), k.floats(k.T(1)), k.floats(k.T(2))
	is := k.floats(k.T(4))
	r, c := lossRows(k.Tensor(1))
	rows, cols := int(r.Int64()), int(c.Int64())
	share := 1 / float64(cols)
	if k.I64(3) == reduceMean {
		share /= float64(rows)
	}
	grad := make([]float64, len(xs))
	for i := range rows {
		row, mark, d := xs[i*cols:(i+1)*cols], is[i*cols:(i+1)*cols], grad[i*cols:(i+1)*cols]
		for _, tf := range target[i*cols : (i+1)*cols] {
			if tf < 0 {
				break
			}
			Check(tf < float64(cols), "argument #3 'target' is out of range")
			t := int(math.Floor(tf))
			for j, v := range row {
				if mark[j] == 0 && 1-(row[t]-v) > 0 {
					d[j] += share
					d[t] -= share
				}
			}
		}
		for j := range d {
			d[j] *= g[min(i, len(g)-1)]
		}
	}
	k.storeFloats(k.Out[0], grad)
}
