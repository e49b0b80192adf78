package nn

import (
	"fmt"

	"github.com/pt2go/pt2/tracer"
)

// Pool takes the maximum or the average of windows: x is [N, C, ...] or [C, ...].
type Pool struct {
	layer
	op   string
	args []any
	both bool // and so does the layer
}

// Forward implements [tracer.Module]. The result is one tensor, or with [ReturnIndices] two.
func (p *Pool) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	p.check()
	out := x[0].Ops(p.op, append([]any(nil), p.args...)...)
	if !p.both {
		out = out[:1]
	}
	return out
}

// NewMaxPool1d makes a pooling of [N, C, L]. Options: [Stride] (by default the kernel), [Padding], [Dilation], [CeilMode], [ReturnIndices].
func NewMaxPool1d(kernel int64, opts ...Option) *Pool { return newMaxPool(1, kernel, opts) }

// NewMaxPool2d makes a pooling of [N, C, H, W]. Options as [NewMaxPool1d].
func NewMaxPool2d(kernel int64, opts ...Option) *Pool { return newMaxPool(2, kernel, opts) }

// NewMaxPool3d makes a pooling of [N, C, D, H, W]. Options as [NewMaxPool1d].
func NewMaxPool3d(kernel int64, opts ...Option) *Pool { return newMaxPool(3, kernel, opts) }

func newMaxPool(dims int, kernel int64, opts []Option) *Pool {
	p := &Pool{layer: layer{class: fmt.Sprintf("pooling.MaxPool%dd", dims)}, op: fmt.Sprintf("max_pool%dd", dims)}
	o := p.collect(options{}, opts, "Stride", "Padding", "Dilation", "CeilMode", "ReturnIndices")
	if p.both = o.returnIndices; p.both {
		p.op += "_with_indices"
	}
	p.args = []any{p.perDim("kernel", []int64{kernel}, dims, 1), p.perDim("Stride", o.stride, dims, kernel), p.perDim("Padding", o.padding, dims, 0),
		p.perDim("Dilation", o.dilation, dims, 1), o.ceilMode}
	return p
}

// NewAvgPool1d makes a pooling of [N, C, L]. Options: [Stride] (by default the kernel), [Padding], [CeilMode], [ExcludePadding].
func NewAvgPool1d(kernel int64, opts ...Option) *Pool { return newAvgPool(1, kernel, opts) }

// NewAvgPool2d makes a pooling of [N, C, H, W]. Options as [NewAvgPool1d], and [Divisor].
func NewAvgPool2d(kernel int64, opts ...Option) *Pool { return newAvgPool(2, kernel, opts) }

// NewAvgPool3d makes a pooling of [N, C, D, H, W]. Options as [NewAvgPool2d].
func NewAvgPool3d(kernel int64, opts ...Option) *Pool { return newAvgPool(3, kernel, opts) }

func newAvgPool(dims int, kernel int64, opts []Option) *Pool {
	p := &Pool{layer: layer{class: fmt.Sprintf("pooling.AvgPool%dd", dims)}, op: fmt.Sprintf("avg_pool%dd", dims)}
	known := []string{"Stride", "Padding", "CeilMode", "ExcludePadding", "Divisor"}
	if dims == 1 {
		known = known[:4]
	}
	o := p.collect(options{}, opts, known...)
	p.args = []any{p.perDim("kernel", []int64{kernel}, dims, 1), p.perDim("Stride", o.stride, dims, kernel), p.perDim("Padding", o.padding, dims, 0), o.ceilMode, !o.noCountPad}
	if dims > 1 {
		p.args = append(p.args, o.divisor)
	}
	return p
}

// NewAdaptiveAvgPool1d averages to a given length.
func NewAdaptiveAvgPool1d(out int64) *Pool { return newAdaptive("avg", "Avg", 1, []int64{out}, nil) }

// NewAdaptiveAvgPool2d averages to a given height and width, one number for both.
func NewAdaptiveAvgPool2d(out ...int64) *Pool { return newAdaptive("avg", "Avg", 2, out, nil) }

// NewAdaptiveAvgPool3d averages to a given depth, height and width, one number for all.
func NewAdaptiveAvgPool3d(out ...int64) *Pool { return newAdaptive("avg", "Avg", 3, out, nil) }

// NewAdaptiveMaxPool1d takes maxima to a given length. Options: [ReturnIndices].
func NewAdaptiveMaxPool1d(out int64, opts ...Option) *Pool {
	return newAdaptive("max", "Max", 1, []int64{out}, opts)
}

// NewAdaptiveMaxPool2d takes maxima to a given height and width. Options: [ReturnIndices].
func NewAdaptiveMaxPool2d(height, width int64, opts ...Option) *Pool {
	return newAdaptive("max", "Max", 2, []int64{height, width}, opts)
}

// NewAdaptiveMaxPool3d takes maxima to a given depth, height and width. Options: [ReturnIndices].
func NewAdaptiveMaxPool3d(depth, height, width int64, opts ...Option) *Pool {
	return newAdaptive("max", "Max", 3, []int64{depth, height, width}, opts)
}

func newAdaptive(kind, class string, dims int, out []int64, opts []Option) *Pool {
	p := &Pool{layer: layer{class: fmt.Sprintf("pooling.Adaptive%sPool%dd", class, dims)}, op: fmt.Sprintf("adaptive_%s_pool%dd", kind, dims)}
	var known []string
	if kind == "max" {
		known = []string{"ReturnIndices"}
	}
	p.both = p.collect(options{}, opts, known...).returnIndices
	p.args = []any{p.perDim("the output's size", out, dims, 1)}
	return p
}

// Pad extends the last dimensions: by sides of the last dimension first, as left, right, top, bottom, front, back.
type Pad struct {
	layer
	sides []int64
	mode  string
	value any
}

// NewZeroPad extends by zeros.
func NewZeroPad(sides ...int64) *Pad { return newPad("ZeroPad", "constant", 0.0, sides) }

// NewConstantPad extends by a value.
func NewConstantPad(value float64, sides ...int64) *Pad {
	return newPad("ConstantPad", "constant", value, sides)
}

// NewReflectionPad extends by what lies inside of the border.
func NewReflectionPad(sides ...int64) *Pad { return newPad("ReflectionPad", "reflect", nil, sides) }

// NewReplicationPad extends by the border.
func NewReplicationPad(sides ...int64) *Pad {
	return newPad("ReplicationPad", "replicate", nil, sides)
}

// NewCircularPad extends by the other side.
func NewCircularPad(sides ...int64) *Pad { return newPad("CircularPad", "circular", nil, sides) }

func newPad(class, mode string, value any, sides []int64) *Pad {
	p := &Pad{layer{class: fmt.Sprintf("padding.%s%dd", class, len(sides)/2)}, sides, mode, value}
	if len(sides) == 0 || len(sides)%2 != 0 || len(sides) > 6 {
		p.refuse(fmt.Sprintf("2, 4 or 6 sides are needed, not %d", len(sides)))
	}
	return p
}

// Forward implements [tracer.Module].
func (p *Pad) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	p.check()
	return one(x[0].Op("pad", p.sides, p.mode, p.value))
}
