package tracer

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
)

// NoGrad calls f where no gradients are recorded, as torch.no_grad: a program holds the calls in a subgraph of
// wrap_with_set_grad_enabled. What f uses from outside becomes its inputs; unlike the functions of [Cond] it may write to them. An eager
// run just calls f: it records no gradients anywhere.
func NoGrad(f func(x ...*Tensor) []*Tensor, x ...*Tensor) []*Tensor { return withGrad(false, f, x) }

// EnableGrad is the counterpart of [NoGrad] within it, as torch.enable_grad.
func EnableGrad(f func(x ...*Tensor) []*Tensor, x ...*Tensor) []*Tensor { return withGrad(true, f, x) }

func withGrad(on bool, f func(x ...*Tensor) []*Tensor, x []*Tensor) []*Tensor {
	if len(x) == 0 {
		panic(flowError("NoGrad and EnableGrad: at least one tensor must be given, which tells the run"))
	}
	s := x[0].s.now()
	if s.rec == nil || on == !s.noGrad {
		return f(x...)
	}
	b := s.record(func(x ...*Tensor) []*Tensor {
		x[0].s.now().noGrad = !on
		return f(x...)
	}, x, nil)
	if len(b.outs) == 0 {
		panic(flowError("NoGrad and EnableGrad: the function gives no tensors"))
	}
	results := make([]*aten.Value, len(b.outs))
	for i, v := range b.values() {
		results[i] = b.s.rec.WithGrad(v, on)
	}
	lifted := b.s.rec.Lifted()
	args := []export.Argument{on, b.finish("submod", lifted, nil, false)}
	for _, v := range lifted {
		args = append(args, v)
	}
	return s.higherOrder("wrap_with_set_grad_enabled", "WrapWithSetGradEnabled", results, args...)
}
