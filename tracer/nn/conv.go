package nn

import (
	"fmt"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tracer"
)

// Conv is a convolution, or a transposed one, over one to three dimensions: x is [N, in, ...] or [in, ...]. Weight is
// [out, in/groups, kernel...], transposed [in, out/groups, kernel...].
type Conv struct {
	layer
	Weight *tracer.Parameter
	Bias   *tracer.Parameter

	dims                                     int
	transposed                               bool
	kernel                                   []int64
	stride, padding, dilation, outputPadding []int64
	groups                                   int64
	same                                     bool
	mode                                     string
}

// NewConv1d makes a convolution over [N, C, L]. Options: [Stride], [Padding], [PaddingSame], [PaddingMode], [Dilation], [Groups], [NoBias].
func NewConv1d(g *aten.Generator, in, out, kernel int64, opts ...Option) *Conv {
	return newConv(g, 1, false, in, out, []int64{kernel}, opts)
}

// NewConv2d makes a convolution over [N, C, H, W] with a square kernel; [NewConv2dOf] has others. Options as [NewConv1d].
func NewConv2d(g *aten.Generator, in, out, kernel int64, opts ...Option) *Conv {
	return newConv(g, 2, false, in, out, []int64{kernel}, opts)
}

// NewConv2dOf is [NewConv2d] with a kernel of height and width.
func NewConv2dOf(g *aten.Generator, in, out int64, kernel [2]int64, opts ...Option) *Conv {
	return newConv(g, 2, false, in, out, kernel[:], opts)
}

// NewConv3d makes a convolution over [N, C, D, H, W]. Options as [NewConv1d].
func NewConv3d(g *aten.Generator, in, out, kernel int64, opts ...Option) *Conv {
	return newConv(g, 3, false, in, out, []int64{kernel}, opts)
}

// NewConvTranspose1d makes a transposed convolution over [N, C, L]. Options: [Stride], [Padding], [OutputPadding], [Dilation], [Groups], [NoBias].
func NewConvTranspose1d(g *aten.Generator, in, out, kernel int64, opts ...Option) *Conv {
	return newConv(g, 1, true, in, out, []int64{kernel}, opts)
}

// NewConvTranspose2d makes a transposed convolution over [N, C, H, W]. Options as [NewConvTranspose1d].
func NewConvTranspose2d(g *aten.Generator, in, out, kernel int64, opts ...Option) *Conv {
	return newConv(g, 2, true, in, out, []int64{kernel}, opts)
}

// NewConvTranspose3d makes a transposed convolution over [N, C, D, H, W]. Options as [NewConvTranspose1d].
func NewConvTranspose3d(g *aten.Generator, in, out, kernel int64, opts ...Option) *Conv {
	return newConv(g, 3, true, in, out, []int64{kernel}, opts)
}

func newConv(g *aten.Generator, dims int, transposed bool, in, out int64, kernel []int64, opts []Option) *Conv {
	c := &Conv{layer: layer{class: fmt.Sprintf("conv.Conv%dd", dims)}, dims: dims, transposed: transposed}
	known := []string{"Stride", "Padding", "Dilation", "Groups", "NoBias", "PaddingSame", "PaddingMode"}
	if transposed {
		c.class = fmt.Sprintf("conv.ConvTranspose%dd", dims)
		known = []string{"Stride", "Padding", "Dilation", "Groups", "NoBias", "OutputPadding"}
	}
	o := c.collect(options{groups: 1, paddingMode: "zeros"}, opts, known...)
	c.kernel = c.perDim("kernel", kernel, dims, 1)
	c.stride, c.padding = c.perDim("Stride", o.stride, dims, 1), c.perDim("Padding", o.padding, dims, 0)
	c.dilation, c.outputPadding = c.perDim("Dilation", o.dilation, dims, 1), c.perDim("OutputPadding", o.outputPadding, dims, 0)
	c.groups, c.same, c.mode = o.groups, o.samePadding, o.paddingMode
	switch {
	case o.groups <= 0:
		c.refuse("groups must be a positive integer")
	case in%o.groups != 0:
		c.refuse("in_channels must be divisible by groups")
	case out%o.groups != 0:
		c.refuse("out_channels must be divisible by groups")
	}
	if c.same {
		for i, s := range c.stride {
			if s != 1 {
				c.refuse("padding='same' is not supported for strided convolutions")
			}
			c.padding[i] = c.dilation[i] * (c.kernel[i] - 1) / 2
		}
	}
	switch c.mode {
	case "zeros", "reflect", "replicate", "circular":
	default:
		c.refuse(fmt.Sprintf("padding_mode must be one of zeros, reflect, replicate, circular, but got padding_mode='%s'", c.mode))
	}
	if c.err != nil {
		return c
	}
	first, second := out, in/o.groups
	if transposed {
		first, second = in, out/o.groups
	}
	fan := second
	sizes := []int64{first, second}
	for _, k := range c.kernel {
		fan *= k
		sizes = append(sizes, k)
	}
	c.Weight = uniform(g, kaimingBound(fan), sizes...)
	if !o.noBias {
		c.Bias = uniform(g, invSqrt(fan), out)
	}
	return c
}

// Forward implements [tracer.Module].
func (c *Conv) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	c.check()
	h := x[0]
	if c.transposed {
		op := fmt.Sprintf("conv_transpose%dd", c.dims)
		if c.dims > 1 {
			op += ".input"
		}
		return one(h.Op(op, c.Weight, c.Bias, c.stride, c.padding, c.outputPadding, c.groups, c.dilation))
	}
	op := fmt.Sprintf("conv%dd", c.dims)
	if c.mode != "zeros" {
		var sides []int64 // of the last dimension first
		for i := c.dims - 1; i >= 0; i-- {
			both := 2 * c.padding[i]
			if c.same {
				both = c.dilation[i] * (c.kernel[i] - 1)
			}
			sides = append(sides, both/2, both-both/2)
		}
		h = h.Op("pad", sides, c.mode)
		return one(h.Op(op, c.Weight, c.Bias, c.stride, make([]int64, c.dims), c.dilation, c.groups))
	}
	if c.same {
		return one(h.Op(op+".padding", c.Weight, c.Bias, c.stride, "same", c.dilation, c.groups))
	}
	return one(h.Op(op, c.Weight, c.Bias, c.stride, c.padding, c.dilation, c.groups))
}
