package nn

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tracer"
)

// Activation is a layer that calls one operator without weights.
type Activation struct {
	layer
	op   string
	args []any
}

func activation(op, class string, args ...any) *Activation {
	return &Activation{layer{class: "activation." + class}, op, args}
}

// Forward implements [tracer.Module].
func (a *Activation) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	a.check()
	return one(x[0].Op(a.op, append([]any(nil), a.args...)...))
}

// ReLU is max(x, 0).
func ReLU() *Activation { return activation("relu", "ReLU") }

// ReLU6 is x between 0 and 6.
func ReLU6() *Activation { return activation("hardtanh", "ReLU6", 0.0, 6.0) }

// LeakyReLU is x for positive x, else slope x.
func LeakyReLU(slope float64) *Activation { return activation("leaky_relu", "LeakyReLU", slope) }

// ELU is x for positive x, else alpha (exp(x) - 1).
func ELU(alpha float64) *Activation { return activation("elu", "ELU", alpha) }

// SELU is ELU with the constants that keep mean and variance.
func SELU() *Activation { return activation("selu", "SELU") }

// CELU is max(x, 0) + min(0, alpha (exp(x/alpha) - 1)).
func CELU(alpha float64) *Activation { return activation("celu", "CELU", alpha) }

// GELU is x times the normal distribution's cumulative function at x.
func GELU() *Activation { return activation("gelu", "GELU") }

// GELUTanh is GELU's approximation by tanh.
func GELUTanh() *Activation {
	a := activation("gelu", "GELU")
	a.args = []any{aten.Kw("approximate", "tanh")}
	return a
}

// SiLU is x sigmoid(x).
func SiLU() *Activation { return activation("silu", "SiLU") }

// Mish is x tanh(softplus(x)).
func Mish() *Activation { return activation("mish", "Mish") }

// Sigmoid is 1/(1+exp(-x)).
func Sigmoid() *Activation { return activation("sigmoid", "Sigmoid") }

// LogSigmoid is log(sigmoid(x)).
func LogSigmoid() *Activation { return activation("log_sigmoid", "LogSigmoid") }

// Tanh is the hyperbolic tangent.
func Tanh() *Activation { return activation("tanh", "Tanh") }

// Tanhshrink is x - tanh(x).
func Tanhshrink() *Tanhshrinker { return &Tanhshrinker{layer{class: "activation.Tanhshrink"}} }

// Tanhshrinker is the layer of [Tanhshrink].
type Tanhshrinker struct{ layer }

// Forward implements [tracer.Module].
func (*Tanhshrinker) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return one(x[0].Op("sub.Tensor", x[0].Op("tanh")))
}

// Softplus is log(1 + exp(beta x)) / beta, and x where beta x is above the threshold. PyTorch's defaults are 1 and 20.
func Softplus(beta, threshold float64) *Activation {
	return activation("softplus", "Softplus", beta, threshold)
}

// Softsign is x / (1 + |x|).
func Softsign() *Softsigner { return &Softsigner{layer{class: "activation.Softsign"}} }

// Softsigner is the layer of [Softsign].
type Softsigner struct{ layer }

// Forward implements [tracer.Module].
func (*Softsigner) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return one(x[0].Op("div.Tensor", x[0].Op("abs").Op("add.Tensor", 1)))
}

// Hardtanh is x between lo and hi.
func Hardtanh(lo, hi float64) *Activation { return activation("hardtanh", "Hardtanh", lo, hi) }

// Hardswish is x min(max(x+3, 0), 6) / 6.
func Hardswish() *Activation { return activation("hardswish", "Hardswish") }

// Hardsigmoid is min(max(x+3, 0), 6) / 6.
func Hardsigmoid() *Activation { return activation("hardsigmoid", "Hardsigmoid") }

// Hardshrink is 0 for |x| up to lambda, else x.
func Hardshrink(lambda float64) *Activation { return activation("hardshrink", "Hardshrink", lambda) }

// Softshrink moves x towards 0 by lambda.
func Softshrink(lambda float64) *Activation { return activation("softshrink", "Softshrink", lambda) }

// Threshold is x above the threshold, else value.
func Threshold(threshold, value float64) *Activation {
	return activation("threshold", "Threshold", threshold, value)
}

// Softmax normalises exp(x) along a dimension.
func Softmax(dim int) *Activation { return activation("softmax.int", "Softmax", dim) }

// LogSoftmax is the logarithm of softmax along a dimension.
func LogSoftmax(dim int) *Activation { return activation("log_softmax.int", "LogSoftmax", dim) }

// GLU is the first half of a dimension times the sigmoid of the second.
func GLU(dim int) *Activation { return activation("glu", "GLU", dim) }

// Softmin is softmax of -x.
func Softmin(dim int) *Softminimum { return &Softminimum{layer{class: "activation.Softmin"}, dim} }

// Softminimum is the layer of [Softmin].
type Softminimum struct {
	layer
	dim int
}

// Forward implements [tracer.Module].
func (s *Softminimum) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return one(x[0].Op("neg").Op("softmax.int", s.dim))
}

// PReLU is x for positive x, else Weight x; the weight is one number, or one a channel.
type PReLU struct {
	layer
	Weight *tracer.Parameter
}

// NewPReLU makes a layer with n weights of 0.25.
func NewPReLU(n int64) *PReLU { return &PReLU{layer{class: "activation.PReLU"}, weight(0.25, n)} }

// Forward implements [tracer.Module].
func (p *PReLU) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return one(x[0].Op("prelu", p.Weight))
}

// RReLU is LeakyReLU with a slope drawn between lower and upper in training, and their mean otherwise.
type RReLU struct {
	layer
	lower, upper float64
	Training     bool
}

// NewRReLU makes a layer. PyTorch's defaults are 1/8 and 1/3.
func NewRReLU(lower, upper float64) *RReLU {
	return &RReLU{layer: layer{class: "activation.RReLU"}, lower: lower, upper: upper}
}

func (r *RReLU) train(on bool) { r.Training = on }

// Forward implements [tracer.Module].
func (r *RReLU) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	return one(x[0].Op("rrelu", r.lower, r.upper, r.Training))
}

// Dropout zeroes elements with probability P and scales the others, in training.
type Dropout struct {
	layer
	P        float64
	Training bool
	op       string
}

// NewDropout drops elements.
func NewDropout(p float64) *Dropout { return newDropout("dropout", "Dropout", p) }

// NewDropout1d drops whole channels of [N, C, L]; Dropout2d and Dropout3d do so for more dimensions.
func NewDropout1d(p float64) *Dropout { return newDropout("feature_dropout", "Dropout1d", p) }

// NewDropout2d drops whole channels of [N, C, H, W].
func NewDropout2d(p float64) *Dropout { return newDropout("feature_dropout", "Dropout2d", p) }

// NewDropout3d drops whole channels of [N, C, D, H, W].
func NewDropout3d(p float64) *Dropout { return newDropout("feature_dropout", "Dropout3d", p) }

// NewAlphaDropout keeps mean and variance of what SELU gives.
func NewAlphaDropout(p float64) *Dropout { return newDropout("alpha_dropout", "AlphaDropout", p) }

func newDropout(op, class string, p float64) *Dropout {
	d := &Dropout{layer: layer{class: "dropout." + class}, P: p, op: op}
	if !(p >= 0 && p <= 1) {
		d.refuse("dropout probability has to be between 0 and 1")
	}
	return d
}

func (d *Dropout) train(on bool) { d.Training = on }

// Forward implements [tracer.Module].
func (d *Dropout) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	d.check()
	return one(x[0].Op(d.op, d.P, d.Training))
}
