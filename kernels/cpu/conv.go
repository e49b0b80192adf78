package cpu

import (
	"github.com/pt2go/pt2/internal/pool"
)

// Conv describes a convolution over up to three spatial dimensions (depth, height, width; those not used have size 1).
// Tensors are contiguous: input [N, In, Size...], weight [Out, In/Groups, Kernel...] (transposed: [In, Out/Groups, Kernel...]),
// output [N, Out, OutSize...]; with channels last, input [N, Size..., In] and output [N, OutSize..., Out]. Pad is the number of zeros
// before the input along each dimension; OutSize says how many there are behind.
type Conv struct {
	N, In, Out, Groups    int
	Size, Kernel, OutSize [3]int
	Stride, Pad, Dilation [3]int
	// Planar says that the input's channels are planes, [N, In, Size...], where [Conv.TakesPlanar].
	Planar bool
}

func volume(s [3]int) int { return s[0] * s[1] * s[2] }

// ForwardF32 computes the convolution of tensors with channels first.
func (c *Conv) ForwardF32(p *pool.Pool, x, w, bias, out []float32) {
	c.throughLast(p, x, out, func(x, out []float32) {
		ConvNHWC(p, c, PackConv(c, w, nil, false), x, out, &Epilogue{ColBias: bias})
	})
}

// TransposedF32 computes the transposed convolution of tensors with channels first.
func (c *Conv) TransposedF32(p *pool.Pool, x, w, bias, out []float32) {
	c.throughLast(p, x, out, func(x, out []float32) {
		TransposedNHWC(p, c, PackTransposed(c, w, false), x, out, &Epilogue{ColBias: bias})
	})
}

// throughLast runs f on tensors with channels last.
func (c *Conv) throughLast(p *pool.Pool, x, out []float32, f func(x, out []float32)) {
	in, pos := volume(c.Size), volume(c.OutSize)
	if c.N*c.Out*pos == 0 {
		return
	}
	last, result := x, out
	if in > 1 && c.In > 1 {
		buf := scratch(c.N * c.In * in)
		defer buf.free()
		last = buf.data
		channelsLast(p, last, x, c.N, c.In, in)
	}
	if pos > 1 && c.Out > 1 {
		buf := scratch(c.N * c.Out * pos)
		defer buf.free()
		result = buf.data
	}
	f(last, result)
	if pos > 1 && c.Out > 1 {
		channelsLast(p, out, result, c.N, pos, c.Out)
	}
}

// channelsLast turns [n, rows, cols] into [n, cols, rows].
func channelsLast(p *pool.Pool, dst, x []float32, n, rows, cols int) {
	const strip = 64
	strips := (cols + strip - 1) / strip
	p.ParallelFor(n*strips, max(1, 32768/(rows*strip)), func(lo, hi int) {
		for t := lo; t < hi; t++ {
			i, j := t/strips*rows*cols, t%strips*strip
			TransposeF32(dst[i+j*rows:], x[i+j:], rows, min(strip, cols-j), rows, cols)
		}
	})
}
