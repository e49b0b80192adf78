package aten

import "github.com/pt2go/pt2/symbolic"

// convBackward are the gradients of a convolution; an output that the mask leaves out is undefined.
var convBackward = []Op{
	{
		Schema: "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
		Tags:   Core,
		Decomp: convolutionBackward,
	},
}

func convolutionBackward(b *Build, a *Args) []*Value {
	g, x, w := a.Tensor(0), a.Tensor(1), a.Tensor(2)
	n := w.Dim() - 2
	if x.Dim() != n+2 || g.Dim() != n+2 {
		Fail("Expected %dD input and gradient for %dD weight, but got %v and %v", n+2, n+2, x.Sizes, g.Sizes)
	}
	mask := a.Bools(10)
	if len(mask) != 3 {
		Fail("output_mask should have 3 elements, got %d", len(mask))
	}
	c := convBack{b: b, n: n, stride: nth(a.Ints(4), n), padding: nth(a.Ints(5), n), dilation: nth(a.Ints(6), n), groups: a.Int(9)}
	out := make([]*Value, 3)
	if mask[0] {
		out[0] = c.input(g, x, w, a.Bool(7))
	}
	if mask[1] {
		// A transposed convolution is the gradient of one that goes from its output to its input.
		if a.Bool(7) {
			out[1] = c.weight(x, g, w)
		} else {
			out[1] = c.weight(g, x, w)
		}
	}
	if mask[2] {
		dims := []int{0}
		for i := range n {
			dims = append(dims, 2+i)
		}
		out[2] = b.Call("sum.dim_IntList", g, dims)
	}
	return out
}

// convBack holds what the three gradients have in common.
type convBack struct {
	b                         *Build
	n                         int
	stride, padding, dilation []symbolic.Int
	groups                    symbolic.Int
}

// input is the gradient of the input: the convolution the other way.
func (c *convBack) input(g, x, w *Value, transposed bool) *Value {
	outPad := zeros(c.n)
	if !transposed {
		for i := range outPad {
			// What the forward convolution left over at the end because the stride did not reach it.
			span := g.Sizes[2+i].SubN(1).Mul(c.stride[i]).Sub(c.padding[i]).Sub(c.padding[i]).Add(c.dilation[i].Mul(w.Sizes[2+i].SubN(1)))
			outPad[i] = x.Sizes[2+i].Sub(span).SubN(1)
		}
	}
	y := c.b.Call("convolution", g, w, nil, c.stride, c.padding, c.dilation, !transposed, outPad, c.groups)
	for i := range c.n {
		y = c.b.Call("slice.Tensor", y, 2+i, 0, x.Sizes[2+i])
	}
	return y
}

// weight is the gradient of the weight of a convolution from x to g: x convolved with g, the batch taking the channels' part.
func (c *convBack) weight(g, x, w *Value) *Value {
	groups := c.groups.Int64()
	parts := make([]*Value, groups)
	xs := []*Value{x}
	gs := []*Value{g}
	if groups > 1 {
		xs = c.b.CallN("chunk", x, groups, 1)
		gs = c.b.CallN("chunk", g, groups, 1)
	}
	for i := range parts {
		xt, gt := c.b.Call("transpose.int", xs[i], 0, 1), c.b.Call("transpose.int", gs[i], 0, 1)
		y := c.b.Call("convolution", xt, gt, nil, c.dilation, c.padding, c.stride, false, zeros(c.n), 1)
		for j := range c.n {
			y = c.b.Call("slice.Tensor", y, 2+j, 0, w.Sizes[2+j])
		}
		parts[i] = c.b.Call("transpose.int", y, 0, 1)
	}
	if groups == 1 {
		return c.b.Call("contiguous", parts[0])
	}
	return c.b.Call("cat", parts, 0)
}
