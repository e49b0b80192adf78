package tracer

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/internal/pool"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// Run calls a model eagerly, operator by operator, on tensors. Rand serves dropout and the like; nil starts a generator as
// torch.manual_seed(0) does. [RunCall] takes other inputs.
func Run(m Module, rand *aten.Generator, inputs ...*tensor.Tensor) (out []*tensor.Tensor, err error) {
	s := eager(rand, nil)
	x := make([]*Tensor, len(inputs))
	for i, t := range inputs {
		x[i] = &Tensor{v: aten.FromTensor(t), s: s}
	}
	outs, err := s.forward(m, func() any { return m.Forward(x...) })
	if err != nil {
		return nil, err
	}
	for i, t := range outs.([]*Tensor) {
		if t == nil {
			return nil, invalid("Forward gives nil for output %d", i)
		}
		out = append(out, t.v.T)
	}
	return out, nil
}

func eager(rand *aten.Generator, ops *aten.Registry) *session {
	if rand == nil {
		rand = aten.NewGenerator(0)
	}
	return &session{build: aten.NewBuild(&aten.Eager{Pool: pool.Default(), Rand: rand}, ops), state: map[any]*Tensor{}, names: map[any]string{}, calls: map[string]int{}}
}

// RunCall calls a model eagerly with the arguments that [Export] takes. The leaves of the result are *[tensor.Tensor], int64, float64,
// bool, string and nil, in containers of package pytree. Options other than [WithKwargs], [WithRegistry] and [WithOps] mean nothing.
func RunCall[A any](m any, rand *aten.Generator, args []A, opts ...Option) (any, error) {
	e, err := newExporter(m, args, opts)
	if err != nil {
		return nil, err
	}
	c := e.call
	s := eager(rand, e.operators)
	leaves := make([]any, len(c.leaves))
	for i, l := range c.leaves {
		leaves[i] = l
		if t, ok := l.(*tensor.Tensor); ok {
			leaves[i] = &Tensor{v: aten.FromTensor(t), s: s}
		}
	}
	out, err := s.forward(m, func() any { return c.invoke(leaves) })
	if err != nil {
		return nil, err
	}
	flat, spec, err := c.reg.Flatten(out)
	if err != nil {
		return nil, &UserError{Kind: InvalidInput, Msg: "Forward's result: " + err.Error(), Err: err}
	}
	for i, l := range flat {
		switch l := l.(type) {
		case *Tensor:
			flat[i] = l.v.T
		case symbolic.Int:
			flat[i] = l.Int64()
		case Float:
			flat[i] = l.Value()
		case Bool:
			flat[i] = l.Value()
		}
	}
	return spec.Unflatten(flat)
}

// forward runs the model's code; what it panics with becomes an error.
func (s *session) forward(m any, f func() any) (out any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = s.recovered(r)
		}
	}()
	s.enter(m)
	defer s.leave()
	out = f()
	s.settle()
	return out, nil
}

// place is the user's line under way.
func place() string {
	if file, line, fn := caller(); file != "" {
		return fmt.Sprintf("%s:%d, in %s", file, line, fn)
	}
	return ""
}

func (s *session) recovered(r any) error {
	where := place()
	var user *UserError
	cause, isErr := r.(error)
	if isErr && errors.As(cause, &user) {
		if user.Where == "" {
			user.Where = where
		}
		return user
	}
	var data *DataDependentError
	if isErr && errors.As(cause, &data) {
		return data
	}
	if !isErr {
		cause = fmt.Errorf("%v", r)
	}
	return &UserError{Kind: InvalidInput, Msg: "Forward failed: " + cause.Error(), Where: where, Err: cause}
}

// names are those of the modules that can be told apart.
func (t *tree) names() map[any]string {
	names := map[any]string{}
	for _, c := range t.modules {
		if reflect.TypeOf(c.m).Comparable() {
			if _, twice := names[c.m]; !twice {
				names[c.m] = c.name
			}
		}
	}
	return names
}
