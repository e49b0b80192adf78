package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// distanceBackwardOps are the gradients of p-norm distances.
var distanceBackwardOps = []Op{
	{Schema: "_cdist_backward(Tensor grad_output, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor", Shape: func(a *Args) []Meta {
		g, x, y, c := a.Tensor(0), a.Tensor(1), a.Tensor(2), a.Tensor(4)
		Check(x.Dim() >= 2 && y.Dim() >= 2, "_cdist_backward requires at least 2D tensors, X1 got: %dD", x.Dim())
		Check(x.Size(-1).Eq(y.Size(-1)), "X1 and X2 must have the same number of columns. X1: %v X2: %v", x.Size(-1), y.Size(-1))
		lead := BroadcastSizes(&Value{Meta: Contig(x.DType, x.Sizes[:x.Dim()-2]...)}, &Value{Meta: Contig(y.DType, y.Sizes[:y.Dim()-2]...)})
		want := append(cloneInts(lead), x.Size(-2), y.Size(-2))
		Check(SameSizes(g.Sizes, want) && SameSizes(c.Sizes, want), "_cdist_backward: gradient %v and distances %v do not fit %v", g.Sizes, c.Sizes, want)
		if !x.DType.IsFloat() || x.DType.IsReduced() {
			failKernel("cdist_backward", x.DType)
		}
		return []Meta{Contig(x.DType, append(lead, x.Sizes[x.Dim()-2:]...)...)}
	}, CPU: cdistBackward},
	{Schema: "_pdist_backward(Tensor grad_output, Tensor self, float p, Tensor pdist) -> Tensor", Shape: func(a *Args) []Meta {
		x := a.Tensor(1)
		Check(x.Dim() == 2, "_pdist_backward requires a 2D tensor, got %dD", x.Dim())
		n := x.Sizes[0]
		pairs := symbolic.N(n.Int64() * max(n.Int64()-1, 0) / 2)
		Check(a.Tensor(0).Numel().Eq(pairs) && a.Tensor(3).Numel().Eq(pairs), "_pdist_backward: gradient %v and distances %v do not fit %v rows", a.Tensor(0).Sizes, a.Tensor(3).Sizes, n)
		if !x.DType.IsFloat() || x.DType.IsReduced() {
			failKernel("pdist_backward", x.DType)
		}
		return []Meta{Contig(x.DType, x.Sizes...)}
	}, CPU: pdistBackward},
}

// distanceSlope gives the derivative of the p-norm of a difference with respect to one of its components, times the gradient. The
// greatest component is found by its distance, which was rounded to dt.
func distanceSlope(p float64, dt tensor.DType) func(diff, grad, dist float64) float64 {
	sign := func(v float64) float64 {
		switch {
		case v > 0:
			return 1
		case v < 0:
			return -1
		}
		return 0
	}
	switch {
	case p == 0:
		return func(diff, grad, dist float64) float64 { return 0 }
	case p == 1:
		return func(diff, grad, dist float64) float64 { return grad * sign(diff) }
	case p == 2:
		return func(diff, grad, dist float64) float64 {
			if dist == 0 {
				return 0
			}
			return grad * diff / dist
		}
	case math.IsInf(p, 1):
		return func(diff, grad, dist float64) float64 {
			if dist == math.Abs(castTo(dt, diff)) {
				return grad * sign(diff)
			}
			return 0
		}
	}
	return func(diff, grad, dist float64) float64 {
		if dist == 0 || diff == 0 && p < 1 {
			return 0
		}
		return sign(diff) * math.Pow(math.Abs(diff), p-1) * grad / math.Pow(dist, p-1)
	}
}

// cdistBackward sums over the second set the slopes of distances, batch by batch.
func cdistBackward(k *Kernel) {
	out := k.Out[0]
	lead := out.Sizes()[:out.Dim()-2]
	batched := func(i int) []float64 {
		t := k.T(i)
		sizes := append(append([]int64{}, lead...), t.Sizes()[t.Dim()-2:]...)
		strides := make([]int64, len(sizes))
		for d := range t.Dim() {
			if t.Sizes()[d] != 1 {
				strides[len(sizes)-t.Dim()+d] = t.Strides()[d]
			}
		}
		return k.floats(t.WithView(sizes, strides, t.Offset()))
	}
	x, y, grad, dist := batched(1), batched(2), k.floats(k.T(0)), k.floats(k.T(4))
	n, m := out.Sizes()[out.Dim()-2], k.T(2).Sizes()[k.T(2).Dim()-2]
	d := out.Sizes()[out.Dim()-1]
	slope := distanceSlope(k.Float(3), out.DType())
	res := make([]float64, out.Numel())
	rows := int64(len(res)) / max(d, 1)
	if d == 0 {
		return
	}
	k.Pool.ParallelFor(int(rows), max(1, int(4096/max(m*d, 1))), func(lo, hi int) {
		for r := int64(lo); r < int64(hi); r++ {
			xr, to := x[r*d:(r+1)*d], res[r*d:(r+1)*d]
			for j := range m {
				yr := y[(r/n*m+j)*d : (r/n*m+j+1)*d]
				g, c := grad[r*m+j], dist[r*m+j]
				for i, v := range xr {
					to[i] += slope(v-yr[i], g, c)
				}
			}
		}
	})
	k.storeFloats(out, res)
}

// pdistBackward adds each pair's slopes to its first row and takes them from its second.
func pdistBackward(k *Kernel) {
	x, grad, dist := k.floats(k.T(1)), k.floats(k.T(0)), k.floats(k.T(3))
	n, d := k.T(1).Sizes()[0], k.T(1).Sizes()[1]
	slope := distanceSlope(k.Float(2), k.Out[0].DType())
	res := make([]float64, len(x))
	pair := 0
	for i := range n {
		for j := i + 1; j < n; j++ {
			for c := range d {
				s := slope(x[i*d+c]-x[j*d+c], grad[pair], dist[pair])
				res[i*d+c] += s
				res[j*d+c] -= s
			}
			pair++
		}
	}
	k.storeFloats(k.Out[0], res)
}
