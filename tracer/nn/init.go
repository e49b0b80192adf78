package nn

import (
	"math"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tracer"
)

// uniform is a parameter drawn from [-bound, bound), as Tensor.uniform_ draws it.
func uniform(g *aten.Generator, bound float64, sizes ...int64) *tracer.Parameter {
	t := tensor.New(tensor.Float32, sizes...)
	draw(g, "uniform_", t, -bound, bound)
	return &tracer.Parameter{T: t, RequiresGrad: true}
}

func normal(g *aten.Generator, std float64, sizes ...int64) *tracer.Parameter {
	t := tensor.New(tensor.Float32, sizes...)
	draw(g, "normal_", t, 0.0, std)
	return &tracer.Parameter{T: t, RequiresGrad: true}
}

func draw(g *aten.Generator, op string, t *tensor.Tensor, a, b float64) {
	if t.Numel() == 0 {
		return
	}
	aten.NewBuild(&aten.Eager{Rand: g}, nil).Call(op, aten.FromTensor(t), a, b)
}

// xavier is a matrix [out, in] from xavier_uniform_, or a list of rows of it.
func xavier(g *aten.Generator, out, in int64, sizes ...int64) *tracer.Parameter {
	std := math.Sqrt(2.0 / float64(in+out))
	return uniform(g, math.Sqrt(3.0)*std, sizes...)
}

// constant is a tensor of equal elements.
func constant(v float32, sizes ...int64) *tensor.Tensor {
	t := tensor.New(tensor.Float32, sizes...)
	for i := range tensor.Data[float32](t) {
		tensor.Data[float32](t)[i] = v
	}
	return t
}

func weight(v float32, sizes ...int64) *tracer.Parameter {
	return &tracer.Parameter{T: constant(v, sizes...), RequiresGrad: true}
}

// invSqrt is 1/sqrt(n), 0 for none.
func invSqrt(n int64) float64 {
	if n <= 0 {
		return 0
	}
	return 1 / math.Sqrt(float64(n))
}

// kaimingBound is the bound of kaiming_uniform_ with a = sqrt(5), computed in PyTorch's steps.
func kaimingBound(fanIn int64) float64 {
	if fanIn <= 0 {
		return 0
	}
	gain := math.Sqrt(2.0 / (1 + math.Pow(math.Sqrt(5), 2)))
	return math.Sqrt(3.0) * (gain / math.Sqrt(float64(fanIn)))
}
