package tracer

import (
	"slices"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/tensor"
)

// Autocast calls f where products and the like compute in dt, usually tensor.BFloat16, as torch.autocast("cpu", dt, enabled): floating-point
// arguments are converted as they are used, and parameters stay as they are. Enabled is false for a part within that computes as
// written. A program holds the calls in a subgraph of wrap_with_autocast.
func Autocast(dt tensor.DType, enabled bool, f func(x ...*Tensor) []*Tensor, x ...*Tensor) []*Tensor {
	if dt != tensor.BFloat16 && dt != tensor.Float16 {
		panic(invalid("Autocast: the dtype is %v; on the CPU it is tensor.BFloat16 or tensor.Float16", dt))
	}
	if len(x) == 0 {
		panic(invalid("Autocast: at least one tensor must be given, which tells the run"))
	}
	s := x[0].s.now()
	to := dt
	if !enabled {
		to = tensor.Invalid
	}
	if s.rec == nil {
		old := s.autocast
		s.cast(to)
		defer s.cast(old)
		return f(x...)
	}
	b := s.record(func(x ...*Tensor) []*Tensor {
		s.inner.cast(to)
		return f(x...)
	}, x, nil)
	lifted := b.s.rec.Lifted()
	args := []export.Argument{"cpu", dt, enabled, false, b.finish("submod", lifted, nil, false)}
	for _, v := range lifted {
		args = append(args, v)
	}
	return s.higherOrder("wrap_with_autocast", "WrapWithAutocast", b.values(), args...)
}

// cast begins or ends autocast.
func (s *session) cast(dt tensor.DType) {
	s.autocast = dt
	if s.rec != nil {
		s.rec.SetAutocast(nil)
		if dt != tensor.Invalid {
			s.rec.SetAutocast(func(op *aten.Op, a *aten.Args) *aten.Args {
				return castArgs(op, a, dt, func(v *aten.Value, to tensor.DType) *aten.Value {
					return &aten.Value{Meta: aten.Meta{DType: to, Sizes: v.Sizes, Strides: v.Strides, Offset: v.Offset}}
				})
			})
		}
		return
	}
	s.build.Intercept = nil
	if dt == tensor.Invalid {
		return
	}
	within := false // the operators that another is made of compute as they are
	s.build.Intercept = func(op *aten.Op, a *aten.Args) ([]*aten.Value, bool) {
		if within {
			return nil, false
		}
		within = true
		defer func() { within = false }()
		a = castArgs(op, a, dt, func(v *aten.Value, to tensor.DType) *aten.Value {
			return s.build.Call("_to_copy", v, aten.Kw("dtype", to))
		})
		return s.build.CallN(op.Name(), a.V...), true
	}
}

// castArgs are the arguments that a call computes with.
func castArgs(op *aten.Op, a *aten.Args, dt tensor.DType, convert func(v *aten.Value, to tensor.DType) *aten.Value) *aten.Args {
	to, ok := interp.AutocastDType(op, &aten.Args{Op: op, V: slices.Clone(a.V)}, dt)
	if !ok {
		return a
	}
	fit := func(v *aten.Value) *aten.Value {
		if v == nil || v.Wrapped || v.DType == to || !(v.DType == tensor.Float32 || v.DType.IsReduced()) {
			return v
		}
		return convert(v, to)
	}
	out := &aten.Args{Op: op, V: slices.Clone(a.V)}
	for i, x := range out.V {
		switch x := x.(type) {
		case *aten.Value:
			out.V[i] = fit(x)
		case []*aten.Value:
			list := make([]*aten.Value, len(x))
			for j, v := range x {
				list[j] = fit(v)
			}
			out.V[i] = list
		}
	}
	return out
}
