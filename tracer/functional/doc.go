// Package functional has a function for each operator of ATen that computes tensors of its arguments, for models written in Go:
//
//	h := functional.Relu(functional.Linear(x, w, functional.Kw("bias", b)))
//
// Names are PyTorch's in Go's spelling, overload included: add.Tensor is AddTensor, _softmax is AtenSoftmax. Arguments without a
// default are parameters; those with one are given by [Kw] under PyTorch's name. Sizes may be Go integers or symbolic ones
// ([tracer.Tensor.Size]), alone or in slices. Operators that take no tensor have a first parameter for any tensor of the run.
//
// As all operators in a model do, they refuse input by panicking, which [tracer.Run] and [tracer.Export] turn into errors.
package functional

//go:generate go run ../../internal/genfunctional operators.go

import "github.com/pt2go/pt2/aten"

// Kw gives an argument by name.
func Kw(name string, value any) aten.KwArg { return aten.Kw(name, value) }

// with joins positional and keyword arguments.
func with(opts []aten.KwArg, args ...any) []any {
	for _, o := range opts {
		args = append(args, o)
	}
	return args
}
