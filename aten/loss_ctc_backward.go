package aten

import (
	"math"

	"github.com/pt2go/pt2/tensor"
)

// ctcBackwardOps are the gradients of the connectionist temporal classification loss with respect to the log-probabilities.
var ctcBackwardOps = []Op{
	{Schema: "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
		Shape: ctcBackwardMeta, CPU: func(k *Kernel) { ctcBackward(k, k.I64s(3), k.I64s(4)) }},
	{Schema: "_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
		Shape: ctcBackwardMeta, CPU: func(k *Kernel) {
			lengths := func(i int) []int64 { return tensor.Contiguous[int64](k.as(k.T(i), tensor.Int64)) }
			ctcBackward(k, lengths(3), lengths(4))
		}},
}

func ctcBackwardMeta(a *Args) []Meta {
	x := a.Tensor(1)
	Check(x.Dim() == 3, "Expected 3-dimensional log_probs, got sizes %s", sizesText(x.Sizes))
	Check(a.Tensor(6).Dim() == 3, "Expected 3-dimensional log_alpha, got sizes %s", sizesText(a.Tensor(6).Sizes))
	Check(a.Tensor(0).Numel().Eq(x.Sizes[1]) && a.Tensor(5).Numel().Eq(x.Sizes[1]), "Expected a gradient and a loss for each of %v samples", x.Sizes[1])
	return []Meta{Contig(x.DType, x.Sizes...)}
}

// ctcBackward runs the backward algorithm for each sample: the gradient of a class at a time is its probability less that of all
// alignments through it.
func ctcBackward(k *Kernel, in, tg []int64) {
	fwd := &Args{V: []any{k.V[1], k.V[2], nil, nil, k.V[7]}}
	ctcMetas(fwd, in, tg)
	s := k.T(1).Sizes()
	steps, batch, classes := s[0], s[1], s[2]
	grad, x, nll, alpha := k.floats(k.T(0)), k.floats(k.T(1)), k.floats(k.T(5)), k.floats(k.T(6))
	targets := tensor.Contiguous[int64](k.as(k.T(2), tensor.Int64))
	width, start := k.T(6).Sizes()[2], int64(0)
	Check(k.T(6).Sizes()[0] == batch && k.T(6).Sizes()[1] == steps, "log_alpha of sizes %v does not fit log_probs of sizes %v", k.T(6).Sizes(), s)
	res := make([]float64, len(x))
	for n := range batch {
		if k.T(2).Dim() == 2 {
			start = n * k.T(2).Sizes()[1]
		}
		c := ctcSample{labels: targets[start : start+tg[n]], blank: k.I64(7), alpha: alpha[n*steps*width : (n+1)*steps*width], width: width,
			prob: func(t, label int64) float64 {
				failUnlessClass(label, classes)
				return x[(t*batch+n)*classes+label]
			}}
		start += tg[n]
		Check(width >= 2*tg[n]+1, "log_alpha of sizes %v is too narrow for %d labels", k.T(6).Sizes(), tg[n])
		if k.Bool(8) && math.IsInf(nll[n], 1) {
			continue
		}
		c.backward(in[n], func(t int64, through []float64) {
			for label, v := range through {
				at := (t*batch+n)*classes + int64(label)
				res[at] = (math.Exp(x[at]) - math.Exp(v+nll[n]-x[at])) * grad[n]
			}
		}, classes)
	}
	k.storeFloats(k.Out[0], res)
}

// backward calls f for each time, last first, with the log-probability of all alignments through each class, the class's own counted
// twice.
func (c *ctcSample) backward(steps int64, f func(t int64, through []float64), classes int64) {
	last := 2 * int64(len(c.labels))
	beta, next := make([]float64, last+1), make([]float64, last+1)
	for t := steps - 1; t >= 0; t-- {
		for s := range last + 1 {
			v := math.Inf(-1)
			switch {
			case t == steps-1 && s >= last-1:
				v = 0
			case t < steps-1:
				v = next[s]
				if s < last {
					v = logAdd(v, next[s+1])
				}
				if s+2 <= last && s%2 == 1 && c.label(s) != c.label(s+2) {
					v = logAdd(v, next[s+2])
				}
			}
			beta[s] = v + c.prob(t, c.label(s))
		}
		through := make([]float64, classes)
		for i := range through {
			through[i] = math.Inf(-1)
		}
		for s := range last + 1 {
			l := c.label(s)
			through[l] = logAdd(through[l], c.alpha[t*c.width+s]+beta[s])
		}
		f(t, through)
		beta, next = next, beta
	}
}
