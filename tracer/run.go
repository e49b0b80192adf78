package tracer

import (
	"errors"
	"fmt"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/internal/pool"
	"github.com/pt2go/pt2/tensor"
)

// Run calls a model eagerly, operator by operator. Rand serves dropout and the like; nil starts a generator as torch.manual_seed(0)
// does.
func Run(m Module, rand *aten.Generator, inputs ...*tensor.Tensor) (out []*tensor.Tensor, err error) {
	if rand == nil {
		rand = aten.NewGenerator(0)
	}
	s := &session{build: aten.NewBuild(&aten.Eager{Pool: pool.Default(), Rand: rand}, nil), state: map[any]*Tensor{}, names: map[Module]string{}, calls: map[string]int{}}
	x := make([]*Tensor, len(inputs))
	for i, t := range inputs {
		x[i] = &Tensor{aten.FromTensor(t), s}
	}
	outs, err := s.forward(m, x)
	for _, t := range outs {
		out = append(out, t.v.T)
	}
	return out, err
}

// forward runs the model's code; what it panics with becomes an error.
func (s *session) forward(m Module, x []*Tensor) (out []*Tensor, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = s.recovered(r)
		}
	}()
	s.enter(m)
	defer s.leave()
	out = m.Forward(x...)
	for i, t := range out {
		if t == nil {
			return nil, &UserError{Kind: InvalidInput, Msg: fmt.Sprintf("Forward gives nil for output %d", i)}
		}
	}
	return out, nil
}

func (s *session) recovered(r any) error {
	where := ""
	if file, line, fn := caller(); file != "" {
		where = fmt.Sprintf("%s:%d, in %s", file, line, fn)
	}
	var user *UserError
	cause, isErr := r.(error)
	if isErr && errors.As(cause, &user) {
		if user.Where == "" {
			user.Where = where
		}
		return user
	}
	if !isErr {
		cause = fmt.Errorf("%v", r)
	}
	return &UserError{Kind: InvalidInput, Msg: "Forward failed: " + cause.Error(), Where: where, Err: cause}
}
