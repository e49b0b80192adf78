package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// bagBackwardOps are the gradients of embedding bags. Without the bag of each index (a sum need not have made them) the offsets say it.
var bagBackwardOps = []Op{
	{Schema: "_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor", Shape: func(a *Args) []Meta {
		Check(!a.Bool(9), "_embedding_bag_backward: sparse gradients are not supported")
		return bagGradientMeta(a, 6)
	}, CPU: func(k *Kernel) {
		g := bagGradient{k: k, bags: bagOfEach(k, k.T(1), k.T(2), k.T(3)), indices: k.T(1), sizes: k.T(4), maxima: k.T(5), byFreq: k.Bool(7), mode: k.I64(8), scale: k.OptT(10), pad: k.I64(11)}
		g.run()
	}},
	{Schema: "_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor", Shape: func(a *Args) []Meta {
		return bagGradientMeta(a, 5)
	}, CPU: func(k *Kernel) {
		g := bagGradient{k: k, bags: bagOfEach(k, k.T(1), nil, k.T(2)), indices: k.T(1), sizes: k.T(3), maxima: k.T(4), byFreq: k.Bool(6), mode: k.I64(7), scale: k.OptT(8), pad: k.I64(9)}
		g.run()
	}},
	{Schema: "_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor", Shape: func(a *Args) []Meta {
		Check(a.I64(5) == bagSum, "embedding_bag_backward: per_sample_weights only supported for mode='sum'")
		Check(a.Tensor(0).Dim() == 2 && a.Tensor(1).Dim() == 2 && a.Tensor(2).Dim() == 1 && a.Tensor(0).Sizes[1].Eq(a.Tensor(1).Sizes[1]), "embedding_bag_backward: gradient %s, weight %s and indices %s do not fit", sizesText(a.Tensor(0).Sizes), sizesText(a.Tensor(1).Sizes), sizesText(a.Tensor(2).Sizes))
		return []Meta{Contig(a.Tensor(0).DType, a.Tensor(2).Sizes[0])}
	}, CPU: func(k *Kernel) {
		grad, w, idx := k.floats(k.T(0)), k.floats(k.T(1)), tensor.Contiguous[int64](k.as(k.T(2), tensor.Int64))
		bags, d, n := bagOfEach(k, k.T(2), k.T(3), k.T(4)), k.T(0).Sizes()[1], k.T(1).Sizes()[0]
		res := make([]float64, len(idx))
		for i, r := range idx {
			if r == k.I64(6) {
				continue
			}
			r = indexRow(r, n)
			bag := indexRow(bags[i], k.T(0).Sizes()[0])
			for j := range d {
				res[i] += grad[bag*d+j] * w[r*d+j]
			}
		}
		k.storeFloats(k.Out[0], res)
	}},
}

func bagGradientMeta(a *Args, weights int) []Meta {
	g := a.Tensor(0)
	Check(g.Dim() == 2 && a.Tensor(1).Dim() == 1, "embedding_bag_backward: expected a gradient of 2 dimensions and indices of 1, got sizes %s and %s", sizesText(g.Sizes), sizesText(a.Tensor(1).Sizes))
	Check(a.Int(weights).Ge(symbolic.N(0)), "embedding_bag_backward: num_weights must not be negative")
	mustFloat("embedding_bag_backward", g.DType)
	return []Meta{Contig(g.DType, a.Int(weights), g.Sizes[1])}
}

// bagOfEach gives the bag of each index.
func bagOfEach(k *Kernel, indices, offsets, of *tensor.Tensor) []int64 {
	n := indices.Numel()
	if of.Numel() == n {
		return tensor.Contiguous[int64](k.as(of, tensor.Int64))
	}
	Check(offsets != nil, "embedding_bag_backward: expected the bag of each of %d indices, got %d", n, of.Numel())
	out := make([]int64, n)
	off := tensor.Contiguous[int64](k.as(offsets, tensor.Int64))
	for b, o := range off {
		for i := max(o, 0); i < n; i++ {
			out[i] = int64(b)
		}
	}
	return out
}

// bagGradient is the gradient of the table of embeddings.
type bagGradient struct {
	k                      *Kernel
	bags                   []int64
	indices, sizes, maxima *tensor.Tensor
	byFreq                 bool // each row divides by how often it occurs
	mode, pad              int64
	scale                  *tensor.Tensor
}

func (g *bagGradient) run() {
	k := g.k
	grad := k.floats(k.T(0))
	rows, d := k.Out[0].Sizes()[0], k.Out[0].Sizes()[1]
	count := k.T(0).Sizes()[0]
	res := make([]float64, rows*d)
	sizes := tensor.Contiguous[int64](k.as(g.sizes, tensor.Int64))
	if g.mode == bagMax {
		for i, r := range tensor.Contiguous[int64](k.as(g.maxima, tensor.Int64)) {
			if b := int64(i) / max(d, 1); b < int64(len(sizes)) && sizes[b] > 0 && b < count {
				res[indexRow(r, rows)*d+int64(i)%d] += grad[i]
			}
		}
		k.storeFloats(k.Out[0], res)
		return
	}
	idx := tensor.Contiguous[int64](k.as(g.indices, tensor.Int64))
	times := make([]int64, rows)
	for _, r := range idx {
		times[indexRow(r, rows)]++
	}
	var weights []float64
	if g.scale != nil {
		weights = k.floats(g.scale)
	}
	for i, r := range idx {
		if r == g.pad {
			continue
		}
		b := indexRow(g.bags[i], count)
		f := weightAt(weights, i)
		if g.byFreq {
			f /= float64(times[r])
		}
		if g.mode == bagMean && sizes[b] > 0 {
			f /= float64(sizes[b])
		}
		for j := range d {
			res[r*d+j] += f * grad[b*d+j]
		}
	}
	k.storeFloats(k.Out[0], res)
}
