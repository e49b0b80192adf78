package tracer_test

import (
	"context"
	"fmt"

	"github.com/pt2go/pt2/interp"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tracer"
)

// halving halves positive inputs until their sum is below one; others it squares.
type halving struct{}

func (halving) InputNames() []string { return []string{"x"} }

func (halving) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	positive := x[0].Op("sum").Op("gt.Scalar", 0)
	return tracer.Cond(positive,
		func(x ...*tracer.Tensor) []*tracer.Tensor {
			return tracer.WhileLoop(
				func(x ...*tracer.Tensor) *tracer.Tensor { return x[0].Op("sum").Op("ge.Scalar", 1) },
				func(x ...*tracer.Tensor) []*tracer.Tensor { return []*tracer.Tensor{x[0].Op("mul.Tensor", 0.5)} },
				x...)
		},
		func(x ...*tracer.Tensor) []*tracer.Tensor { return []*tracer.Tensor{x[0].Op("square")} },
		x[0])
}

// Control flow that depends on data goes through Cond and WhileLoop; the program keeps both branches and the loop.
func ExampleCond() {
	example, _ := tensor.FromSlice([]float32{4, 8}, 2)
	program, err := tracer.Export(halving{}, []*tensor.Tensor{example})
	if err != nil {
		panic(err)
	}
	m, err := interp.New(program, interp.Options{})
	if err != nil {
		panic(err)
	}
	for _, in := range [][]float32{{4, 8}, {-1, -3}} {
		x, _ := tensor.FromSlice(in, 2)
		out, err := m.Run(context.Background(), x)
		if err != nil {
			panic(err)
		}
		fmt.Println(tensor.Data[float32](out[0].(*tensor.Tensor)))
	}
	// Output:
	// [0.25 0.5]
	// [1 9]
}
