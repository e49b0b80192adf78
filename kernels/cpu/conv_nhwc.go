package cpu

import "github.com/pt2go/pt2/internal/pool"

// PackedConv is a convolution's weight in the order in which [ConvNHWC] reads it: made once, shared by all runs.
type PackedConv struct {
	weight     *ConvWeight
	transposed []float32
}

// PackConv packs w, a contiguous weight [Out, In/Groups, Kernel...], for the convolution c. Neither N, Size nor OutSize matter for
// the result's use: they are hints for the choice of the algorithm.
func PackConv(c *Conv, w []float32) *PackedConv {
	return &PackedConv{weight: c.PackWeight(w)}
}

// PackTransposed packs w, a contiguous weight [In, Out/Groups, Kernel...], for the transposed convolution c.
func PackTransposed(c *Conv, w []float32) *PackedConv {
	return &PackedConv{transposed: w}
}

// ConvNHWC computes the convolution of x [N, Size..., In] to out [N, OutSize..., Out], both dense with channels last, then the
// epilogue (ColBias has one number an output channel, Residual has out's layout and may be out; RowBias is not used).
func ConvNHWC(p *pool.Pool, c *Conv, w *PackedConv, x, out []float32, ep *Epilogue) {
	c.throughPlanes(p, x, out, ep, func(x, out []float32) {
		c.PackedF32(p, x, w.weight, &ConvEpilogue{}, out)
	})
}

// TransposedNHWC is [ConvNHWC] for the transposed convolution.
func TransposedNHWC(p *pool.Pool, c *Conv, w *PackedConv, x, out []float32, ep *Epilogue) {
	c.throughPlanes(p, x, out, ep, func(x, out []float32) { c.TransposedF32(p, x, w.transposed, nil, out) })
}

// throughPlanes runs f on tensors with channels first.
func (c *Conv) throughPlanes(p *pool.Pool, x, out []float32, ep *Epilogue, f func(x, out []float32)) {
	in, pos := volume(c.Size), volume(c.OutSize)
	planes, result := scratch(c.N*c.In*in), scratch(c.N*c.Out*pos)
	defer planes.free()
	defer result.free()
	for n := range c.N {
		TransposeF32(planes.data[n*c.In*in:], x[n*c.In*in:], in, c.In, in, c.In)
	}
	f(planes.data, result.data)
	for n := range c.N {
		TransposeF32(out[n*c.Out*pos:], result.data[n*c.Out*pos:], c.Out, pos, c.Out, pos)
	}
	if ep != nil {
		ep.over(out, c.Out)([2]int{0, c.N * pos}, [2]int{0, c.Out})
	}
}
