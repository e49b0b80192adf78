package plan

import (
	"fmt"
	"math"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// normConstants is a batch norm with constant statistics as y = x*scale + shift by channel; ok is false for other instructions.
func normConstants(in *Instr) (scale, shift []float32, ok bool) {
	if in.Op.Name() != "aten._native_batch_norm_legit_no_training.default" {
		return nil, nil, false
	}
	a := in.Args
	weight, bias, mean, variance := a.OptTensor(1), a.OptTensor(2), a.Tensor(3), a.Tensor(4)
	for _, v := range []*aten.Value{weight, bias, mean, variance} {
		if v != nil && v.T == nil {
			return nil, nil, false
		}
	}
	if a.Tensor(0).DType != tensor.Float32 {
		return nil, nil, false
	}
	n := int(mean.T.Numel())
	scale, shift = make([]float32, n), make([]float32, n)
	for i := range n {
		s, b := 1/math.Sqrt(variance.T.Float(int64(i))+a.Float(6)), 0.0
		if weight != nil {
			s *= weight.T.Float(int64(i))
		}
		if bias != nil {
			b = bias.T.Float(int64(i))
		}
		scale[i], shift[i] = float32(s), float32(b-mean.T.Float(int64(i))*s)
	}
	return scale, shift, true
}

// foldBatchNorm is the pass that puts batch norms with constant statistics into the weights of the product before them, and makes the
// others one multiply-add by channel.
func (g *graph) foldBatchNorm() {
	for j, in := range g.instrs {
		if in == nil {
			continue
		}
		scale, shift, ok := normConstants(in)
		if !ok || bufferOf(in.Outs[0]) == nil || g.statsUsed(in) {
			continue
		}
		x, out := in.Args.Tensor(0), in.Outs[0]
		i, y := g.producer(x)
		if i >= 0 && aligned(x, out) && g.onlyUse(y) == j && covers(out) {
			if e := productOf(g.instrs[i]); e != nil && e.plain() && e.cols == len(scale) && innermostIs(out, 1, e.cols) && g.movable(i, j) {
				e.affine(scale, shift)
				e.consts = append(e.consts, in.Args.Tensor(3), in.Args.Tensor(4))
				if w := in.Args.OptTensor(1); w != nil {
					e.consts = append(e.consts, w)
				}
				e.how += fmt.Sprintf("bn %t %g", in.Args.Has(1), in.Args.Float(6))
				p := g.instrs[i]
				g.remove(i)
				g.set(j, &Instr{Op: p.Op, Args: p.Args, Outs: []*aten.Value{out}})
				continue
			}
		}
		body := &aten.Body{Kind: "mul_add", Ins: []*aten.Value{x, channelVector(scale, out), channelVector(shift, out)},
			Run: func(d []float32, in [][]float32) { cpu.MulAddF32(d, in[0], in[1], in[2]) }}
		if covers(out) {
			if e := newExpression(body, out); e != nil {
				g.set(j, pointwiseInstr(e, out))
			}
		}
	}
	if !g.enabled("pointwise") {
		g.lowerPointwise()
	}
}

// statsUsed reports that somebody reads the empty statistics that the operator also gives.
func (g *graph) statsUsed(in *Instr) bool {
	for _, o := range in.Outs[1:] {
		if o != nil && (len(bufferOf(o).readers) > 0 || bufferOf(o).given) {
			return true
		}
	}
	return false
}

// innermostIs reports that dimension d of v, with n elements, lies innermost in memory.
func innermostIs(v *aten.Value, d, n int) bool {
	return n == 1 || int(v.Sizes[d].Int64()) == n && v.Strides[d].Int64() == 1
}

// channelVector is a constant with one number for each channel, [C, 1, ...] beside out [N, C, ...].
func channelVector(c []float32, out *aten.Value) *aten.Value {
	sizes := make([]int64, out.Dim()-1)
	for i := range sizes {
		sizes[i] = 1
	}
	sizes[0] = int64(len(c))
	t, err := tensor.FromSlice(c, sizes...)
	if err != nil {
		panic(err)
	}
	return aten.FromTensor(t)
}
