package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// ctcOps are the connectionist temporal classification loss (Graves et al., 2006).
var ctcOps = []Op{
	{Schema: "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		lengths := make([]float64, len(a.I64s(3)))
		for i, n := range a.I64s(3) {
			lengths[i] = float64(n)
		}
		return ctcReduced(b, a, func(like *Value) *Value {
			parts := make([]*Value, len(lengths))
			for i, n := range lengths {
				parts[i] = b.Call("full", []int{1}, FloatS(n), Kw("dtype", like.DType))
			}
			return b.Call("cat", parts)
		})
	}},
	{Schema: "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return ctcReduced(b, a, func(like *Value) *Value { return b.Call("to.dtype", a.Tensor(3), like.DType) })
	}},
	{Schema: "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
		Shape: func(a *Args) []Meta { return ctcMetas(a, a.I64s(2), a.I64s(3)) },
		CPU:   func(k *Kernel) { ctcKernel(k, k.I64s(2), k.I64s(3)) }},
	{Schema: "_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)", Tags: DataDependent,
		Dynamic: func(k *Kernel) []*tensor.Tensor {
			for i := 2; i < 4; i++ {
				Check(k.T(i).DType().IsInt(), "input_lengths and target_lengths must be integral")
			}
			in, tg := tensor.Contiguous[int64](k.as(k.T(2), tensor.Int64)), tensor.Contiguous[int64](k.as(k.T(3), tensor.Int64))
			for _, m := range ctcMetas(k.Args, in, tg) {
				k.Out = append(k.Out, Alloc(&m))
			}
			ctcKernel(k, in, tg)
			return k.Out
		}},
}

// ctcReduced is the loss with its reduction: the mean divides each sample by its target's length.
func ctcReduced(b *Build, a *Args, lengths func(like *Value) *Value) []*Value {
	op := "_ctc_loss"
	if _, ok := a.V[2].(*Value); ok {
		op = "_ctc_loss.Tensor"
	}
	batched := a.Tensor(0).Dim() == 3
	x, t := a.Tensor(0), a.Tensor(1)
	if !batched {
		x = b.Call("unsqueeze", x, 1)
	}
	loss := b.CallN(op, x, t, a.V[2], a.V[3], a.V[4], a.V[6])[0]
	if a.Bool(6) {
		loss = b.Call("where.ScalarSelf", b.Call("eq.Scalar", loss, FloatS(math.Inf(1))), 0, loss)
	}
	switch a.I64(5) {
	case reduceMean:
		loss = b.Call("mean", b.Call("div.Tensor", loss, b.Call("clamp_min", lengths(loss), 1)))
	case reduceSum:
		loss = b.Call("sum", loss)
	default:
		if !batched {
			loss = b.Call("squeeze.dim", loss, 0)
		}
	}
	return One(loss)
}

// ctcMetas checks the lengths. log_probs is [T, N, C], targets [N, S] or all one after the other; the results are the loss
// [N] and the forward variables [N, T, 2*longest+1].
func ctcMetas(a *Args, in, tg []int64) []Meta {
	x, t := a.Tensor(0), a.Tensor(1)
	Check(x.Dim() == 3, "Expected 3-dimensional log_probs, got sizes %s", sizesText(x.Sizes))
	Check(x.DType == tensor.Float32 || x.DType == tensor.Float64, "\"ctc_loss_cpu\" not implemented for '%s'", x.DType.CPPName())
	Check(t.DType == tensor.Int64 || t.DType == tensor.Int32, "targets must be Int or Long, got %s", t.DType.CPPName())
	n := x.Sizes[1].Int64()
	Check(a.I64(4) >= 0 && a.I64(4) < x.Sizes[2].Int64(), "blank must be in label range")
	Check(int64(len(in)) == n, "input_lengths must be of size batch_size")
	Check(int64(len(tg)) == n, "target_lengths must be of size batch_size")
	longest, total := int64(0), int64(0)
	for i := range tg {
		Check(tg[i] >= 0, "Expected target_lengths to have value at least 0, but got value %d", tg[i])
		Check(in[i] >= 0 && in[i] <= x.Sizes[0].Int64(), "Expected input_lengths to have value at most %v, but got value %d", x.Sizes[0], in[i])
		longest, total = max(longest, tg[i]), total+tg[i]
	}
	switch t.Dim() {
	case 1:
		Check(t.Numel().Int64() == total, "Expected tensor for argument #2 'targets' to have size %d at dimension 0, but got size %v", total, t.Sizes[0])
	case 2:
		Check(t.Sizes[0].Int64() == n && t.Sizes[1].Int64() >= longest, "Expected tensor to have size at least %d at dimension 1, but got size %v", longest, t.Sizes[1])
	default:
		Fail("targets must be 1- or 2-dimensional, got sizes %s", sizesText(t.Sizes))
	}
	return []Meta{Contig(x.DType, x.Sizes[1]), Contig(x.DType, x.Sizes[1], x.Sizes[0], symbolic.N(2*longest+1))}
}

func ctcKernel(k *Kernel, in, tg []int64) {
	x := k.floats(k.T(0))
	s := k.T(0).Sizes()
	steps, batch, classes := s[0], s[1], s[2]
	targets := tensor.Contiguous[int64](k.as(k.T(1), tensor.Int64))
	width := k.Out[1].Sizes()[2]
	losses, alpha := make([]float64, batch), make([]float64, batch*steps*width)
	for i := range alpha {
		alpha[i] = math.Inf(-1)
	}
	start := int64(0)
	for n := range batch {
		if k.T(1).Dim() == 2 {
			start = n * k.T(1).Sizes()[1]
		}
		c := ctcSample{labels: targets[start : start+tg[n]], blank: k.I64(4), alpha: alpha[n*steps*width : (n+1)*steps*width], width: width,
			prob: func(t, label int64) float64 {
				failUnlessClass(label, classes)
				return x[(t*batch+n)*classes+label]
			}}
		losses[n] = c.run(in[n])
		start += tg[n]
	}
	k.storeFloats(k.Out[0], losses)
	k.storeFloats(k.Out[1], alpha)
}

// failUnlessClass refuses a label outside of the classes.
func failUnlessClass(label, classes int64) {
	if label < 0 || label >= classes {
		FailIndex("Target %d is out of bounds.", label)
	}
}

// ctcSample is the forward algorithm for one sample. Its states are the labels with a blank around each; alpha is
// [T, width], the log-probability of all prefixes that end in a state at a time.
type ctcSample struct {
	labels []int64
	blank  int64
	alpha  []float64
	width  int64
	prob   func(t, label int64) float64
}

func (c *ctcSample) label(state int64) int64 {
	if state%2 == 0 {
		return c.blank
	}
	return c.labels[state/2]
}

func (c *ctcSample) run(steps int64) float64 {
	last := 2 * int64(len(c.labels))
	if steps == 0 {
		return pick(last == 0, 0, math.Inf(1))
	}
	for s := range min(last+1, 2) {
		c.alpha[s] = c.prob(0, c.label(s))
	}
	for t := int64(1); t < steps; t++ {
		prev, cur := c.alpha[(t-1)*c.width:], c.alpha[t*c.width:]
		for s := range last + 1 {
			v := prev[s]
			if s > 0 {
				v = logAdd(v, prev[s-1])
			}
			if s > 1 && s%2 == 1 && c.label(s) != c.label(s-2) {
				v = logAdd(v, prev[s-2])
			}
			cur[s] = v + c.prob(t, c.label(s))
		}
	}
	end := c.alpha[(steps-1)*c.width:]
	v := end[last]
	if last > 0 {
		v = logAdd(v, end[last-1])
	}
	return -v
}

// logAdd is log(exp(x) + exp(y)).
func logAdd(x, y float64) float64 {
	if x < y {
		x, y = y, x
	}
	if math.IsInf(x, -1) {
		return x
	}
	return x + math.Log1p(math.Exp(y-x))
}
