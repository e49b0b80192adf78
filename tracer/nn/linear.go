package nn

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tracer"
)

// Linear is x W^T + b: x is [..., in], Weight [out, in], Bias [out] or nil.
type Linear struct {
	layer
	Weight *tracer.Parameter
	Bias   *tracer.Parameter
}

// NewLinear makes a layer from in to out features. Options: [NoBias].
func NewLinear(g *aten.Generator, in, out int64, opts ...Option) *Linear {
	l := &Linear{layer: layer{class: "linear.Linear"}}
	o := l.collect(options{}, opts, "NoBias")
	l.Weight = uniform(g, kaimingBound(in), out, in)
	if !o.noBias {
		l.Bias = uniform(g, invSqrt(in), out)
	}
	return l
}

// Forward implements [tracer.Module].
func (l *Linear) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	l.check()
	return one(x[0].Op("linear", l.Weight, l.Bias))
}

// Bilinear is x1^T W x2 + b for each output: x1 is [..., in1], x2 [..., in2], Weight [out, in1, in2].
type Bilinear struct {
	layer
	Weight *tracer.Parameter
	Bias   *tracer.Parameter
}

// NewBilinear makes a layer of two inputs. Options: [NoBias].
func NewBilinear(g *aten.Generator, in1, in2, out int64, opts ...Option) *Bilinear {
	l := &Bilinear{layer: layer{class: "linear.Bilinear"}}
	o := l.collect(options{}, opts, "NoBias")
	l.Weight = uniform(g, invSqrt(in1), out, in1, in2)
	if !o.noBias {
		l.Bias = uniform(g, invSqrt(in1), out)
	}
	return l
}

// Forward implements [tracer.Module].
func (l *Bilinear) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	l.check()
	return one(x[0].Op("bilinear", x[1], l.Weight, l.Bias))
}

// Identity gives its input.
type Identity struct{ layer }

// NewIdentity makes the layer.
func NewIdentity() *Identity { return &Identity{layer{class: "linear.Identity"}} }

// Forward implements [tracer.Module].
func (l *Identity) Forward(x ...*tracer.Tensor) []*tracer.Tensor { return x[:1] }
