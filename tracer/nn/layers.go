package nn

import (
	"strconv"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tensor"
	"github.com/pt2go/pt2/tracer"
)

// Linear is x W^T + b: x is [..., in], Weight [out, in], Bias [out] or nil.
type Linear struct {
	Weight *tracer.Parameter
	Bias   *tracer.Parameter
}

// NewLinear makes a layer from in to out features, with a bias.
func NewLinear(g *aten.Generator, in, out int64) *Linear {
	w := uniform(g, kaimingBound(in), out, in)
	return &Linear{Weight: w, Bias: uniform(g, invSqrt(in), out)}
}

// Forward implements [tracer.Module].
func (l *Linear) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return one(x[0].Op("linear", l.Weight, l.Bias))
}

// TypeName is PyTorch's.
func (l *Linear) TypeName() string { return "torch.nn.modules.linear.Linear" }

// Conv2d is a convolution over [N, C, H, W]. Weight is [out, in/Groups, kernel, kernel].
type Conv2d struct {
	Weight                    *tracer.Parameter
	Bias                      *tracer.Parameter
	Stride, Padding, Dilation [2]int64
	Groups                    int64
}

// NewConv2d makes a convolution with a square kernel, stride 1, no padding, a bias. Change its fields before the first call, but
// Groups by [NewGroupedConv2d].
func NewConv2d(g *aten.Generator, in, out, kernel int64) *Conv2d {
	return NewGroupedConv2d(g, in, out, kernel, 1)
}

// NewGroupedConv2d is [NewConv2d] in groups of channels.
func NewGroupedConv2d(g *aten.Generator, in, out, kernel, groups int64) *Conv2d {
	fan := in / groups * kernel * kernel
	w := uniform(g, kaimingBound(fan), out, in/groups, kernel, kernel)
	return &Conv2d{Weight: w, Bias: uniform(g, invSqrt(fan), out), Stride: [2]int64{1, 1}, Dilation: [2]int64{1, 1}, Groups: groups}
}

// Forward implements [tracer.Module].
func (c *Conv2d) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return one(x[0].Op("conv2d", c.Weight, c.Bias, c.Stride[:], c.Padding[:], c.Dilation[:], c.Groups))
}

// TypeName is PyTorch's.
func (c *Conv2d) TypeName() string { return "torch.nn.modules.conv.Conv2d" }

// BatchNorm normalises channels: x is [N, C] or [N, C, ...]. With Training it takes the batch's statistics and updates the running ones.
type BatchNorm struct {
	Weight            *tracer.Parameter
	Bias              *tracer.Parameter
	RunningMean       *tracer.Buffer
	RunningVar        *tracer.Buffer
	NumBatchesTracked *tracer.Buffer
	Momentum, Eps     float64
	Training          bool
	dims              int
}

// NewBatchNorm1d normalises [N, C] or [N, C, L].
func NewBatchNorm1d(features int64) *BatchNorm { return batchNorm(features, 1) }

// NewBatchNorm2d normalises [N, C, H, W].
func NewBatchNorm2d(features int64) *BatchNorm { return batchNorm(features, 2) }

func batchNorm(n int64, dims int) *BatchNorm {
	count := tensor.New(tensor.Int64)
	return &BatchNorm{Weight: weight(1, n), Bias: weight(0, n), RunningMean: &tracer.Buffer{T: constant(0, n), Persistent: true},
		RunningVar: &tracer.Buffer{T: constant(1, n), Persistent: true}, NumBatchesTracked: &tracer.Buffer{T: count, Persistent: true},
		Momentum: 0.1, Eps: 1e-5, dims: dims}
}

// Forward implements [tracer.Module].
func (m *BatchNorm) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	if m.Training {
		x[0].Add(m.NumBatchesTracked, 1)
	}
	return one(x[0].Op("batch_norm", m.Weight, m.Bias, m.RunningMean, m.RunningVar, m.Training, m.Momentum, m.Eps, true))
}

// TypeName is PyTorch's.
func (m *BatchNorm) TypeName() string {
	return "torch.nn.modules.batchnorm.BatchNorm" + strconv.Itoa(m.dims) + "d"
}

// LayerNorm normalises the last dimensions, which have the sizes Shape.
type LayerNorm struct {
	Weight *tracer.Parameter
	Bias   *tracer.Parameter
	Shape  []int64
	Eps    float64
}

// NewLayerNorm makes a layer with weight and bias.
func NewLayerNorm(shape ...int64) *LayerNorm {
	return &LayerNorm{Weight: weight(1, shape...), Bias: weight(0, shape...), Shape: shape, Eps: 1e-5}
}

// Forward implements [tracer.Module].
func (l *LayerNorm) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return one(x[0].Op("layer_norm", l.Shape, l.Weight, l.Bias, l.Eps))
}

// TypeName is PyTorch's.
func (l *LayerNorm) TypeName() string { return "torch.nn.modules.normalization.LayerNorm" }

// Embedding looks up rows of Weight, [entries, features], by an int64 tensor of any sizes.
type Embedding struct{ Weight *tracer.Parameter }

// NewEmbedding makes a table.
func NewEmbedding(g *aten.Generator, entries, features int64) *Embedding {
	return &Embedding{normal(g, entries, features)}
}

// Forward implements [tracer.Module].
func (e *Embedding) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return one(x[0].On("embedding", e.Weight, x[0]))
}

// TypeName is PyTorch's.
func (e *Embedding) TypeName() string { return "torch.nn.modules.sparse.Embedding" }

// Dropout zeroes elements with probability P and scales the others, while Training.
type Dropout struct {
	P        float64
	Training bool
}

// Forward implements [tracer.Module].
func (d *Dropout) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return one(x[0].Op("dropout", d.P, d.Training))
}

// TypeName is PyTorch's.
func (d *Dropout) TypeName() string { return "torch.nn.modules.dropout.Dropout" }

// Activation is an element-wise layer without weights.
type Activation struct {
	op, class string
	args      []any
}

// ReLU is max(x, 0).
func ReLU() *Activation { return &Activation{op: "relu", class: "ReLU"} }

// GELU is x times the normal distribution's cumulative function at x.
func GELU() *Activation { return &Activation{op: "gelu", class: "GELU"} }

// SiLU is x sigmoid(x).
func SiLU() *Activation { return &Activation{op: "silu", class: "SiLU"} }

// Sigmoid is 1/(1+exp(-x)).
func Sigmoid() *Activation { return &Activation{op: "sigmoid", class: "Sigmoid"} }

// Tanh is the hyperbolic tangent.
func Tanh() *Activation { return &Activation{op: "tanh", class: "Tanh"} }

// LeakyReLU is x for positive x, else slope x.
func LeakyReLU(slope float64) *Activation {
	return &Activation{op: "leaky_relu", class: "LeakyReLU", args: []any{slope}}
}

// ELU is x for positive x, else alpha (exp(x) - 1).
func ELU(alpha float64) *Activation {
	return &Activation{op: "elu", class: "ELU", args: []any{alpha}}
}

// Softmax normalises along a dimension.
func Softmax(dim int) *Activation {
	return &Activation{op: "softmax.int", class: "Softmax", args: []any{dim}}
}

// Forward implements [tracer.Module].
func (a *Activation) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return one(x[0].Op(a.op, append([]any(nil), a.args...)...))
}

// TypeName is PyTorch's.
func (a *Activation) TypeName() string { return "torch.nn.modules.activation." + a.class }

// Flatten joins the dimensions from Start to the last.
type Flatten struct{ Start int }

// Forward implements [tracer.Module].
func (f *Flatten) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return one(x[0].Op("flatten.using_ints", f.Start, -1))
}

// TypeName is PyTorch's.
func (f *Flatten) TypeName() string { return "torch.nn.modules.flatten.Flatten" }

// Sequential calls modules one after the other; they are named "0", "1" and so on.
type Sequential struct{ modules []tracer.Module }

// NewSequential chains modules.
func NewSequential(m ...tracer.Module) *Sequential { return &Sequential{m} }

// Children implements [tracer.Container].
func (s *Sequential) Children() []tracer.Child {
	out := make([]tracer.Child, len(s.modules))
	for i, m := range s.modules {
		out[i] = tracer.Child{Name: strconv.Itoa(i), Module: m}
	}
	return out
}

// Forward implements [tracer.Module].
func (s *Sequential) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	for _, m := range s.modules {
		x = tracer.Call(m, x...)
	}
	return x
}

// TypeName is PyTorch's.
func (s *Sequential) TypeName() string { return "torch.nn.modules.container.Sequential" }

// InputNames implements [tracer.Named].
func (s *Sequential) InputNames() []string { return []string{"input"} }
