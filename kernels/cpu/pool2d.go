package cpu

import (
	"math"

	"github.com/pt2go/pt2/internal/pool"
)

// Pool2d describes a sliding window over planes [Planes, H, W]; the result is [Planes, OutH, OutW]. Windows reach Pad beyond the
// borders. Dilation is for the maximum only.
type Pool2d struct {
	Planes, H, W, OutH, OutW int
	KernelH, KernelW         int
	StrideH, StrideW         int
	PadH, PadW               int
	DilationH, DilationW     int
	CountPad                 bool // the average counts the padding
	Divisor                  int  // what the average divides by; 0: the window's size
}

// span is the part of a window that lies inside: positions from + i*dilation for i in [lo, hi).
func span(out, stride, pad, kernel, dilation, size int) (from, lo, hi int) {
	from = out*stride - pad
	if from < 0 {
		lo = (-from + dilation - 1) / dilation
	}
	hi = kernel
	if last := from + (kernel-1)*dilation; last >= size {
		hi = max(lo, (size-from+dilation-1)/dilation)
	}
	return from, lo, hi
}

// MaxF32 computes the largest element of each window, NaN if there is one. index, if not nil, receives its place in the plane, the
// first of equal ones.
func (c *Pool2d) MaxF32(p *pool.Pool, x, out []float32, index []int64) {
	plane, outPlane := c.H*c.W, c.OutH*c.OutW
	p.ParallelFor(c.Planes, max(1, 16384/(outPlane*c.KernelH*c.KernelW+1)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			src, dst := x[i*plane:(i+1)*plane], out[i*outPlane:(i+1)*outPlane]
			if index != nil {
				c.maxIndexed(src, dst, index[i*outPlane:(i+1)*outPlane])
				continue
			}
			row := scratch(c.W)
			for oy := range c.OutH {
				c.maxRow(src, row.data, dst[oy*c.OutW:(oy+1)*c.OutW], oy)
			}
			row.free()
		}
	})
}

// maxRow takes the maximum down the columns first, whole rows at a time, then along the row.
func (c *Pool2d) maxRow(src, row, dst []float32, oy int) {
	y, lo, hi := span(oy, c.StrideH, c.PadH, c.KernelH, c.DilationH, c.H)
	if lo >= hi {
		FillF32(dst, float32(math.Inf(-1)))
		return
	}
	copy(row, src[(y+lo*c.DilationH)*c.W:][:c.W])
	for k := lo + 1; k < hi; k++ {
		MaximumF32(row, row, src[(y+k*c.DilationH)*c.W:][:c.W])
	}
	for ox := range dst {
		x, lo, hi := span(ox, c.StrideW, c.PadW, c.KernelW, c.DilationW, c.W)
		m := float32(math.Inf(-1))
		for k := lo; k < hi; k++ {
			m = larger(row[x+k*c.DilationW], m)
			if m != m {
				break
			}
		}
		dst[ox] = m
	}
}

func (c *Pool2d) maxIndexed(src, dst []float32, index []int64) {
	for oy := range c.OutH {
		y, ylo, yhi := span(oy, c.StrideH, c.PadH, c.KernelH, c.DilationH, c.H)
		for ox := range c.OutW {
			x, xlo, xhi := span(ox, c.StrideW, c.PadW, c.KernelW, c.DilationW, c.W)
			m, at := float32(math.Inf(-1)), (y+ylo*c.DilationH)*c.W+x+xlo*c.DilationW
			for ky := ylo; ky < yhi; ky++ {
				for kx := xlo; kx < xhi; kx++ {
					i := (y+ky*c.DilationH)*c.W + x + kx*c.DilationW
					if v := src[i]; v > m || v != v {
						m, at = v, i
					}
				}
			}
			dst[oy*c.OutW+ox], index[oy*c.OutW+ox] = m, int64(at)
		}
	}
}

// AvgF32 computes the mean of each window.
func (c *Pool2d) AvgF32(p *pool.Pool, x, out []float32) {
	plane, outPlane := c.H*c.W, c.OutH*c.OutW
	p.ParallelFor(c.Planes, max(1, 16384/(outPlane*c.KernelH*c.KernelW+1)), func(lo, hi int) {
		row := scratch(c.W)
		defer row.free()
		for i := lo; i < hi; i++ {
			for oy := range c.OutH {
				c.avgRow(x[i*plane:(i+1)*plane], row.data, out[i*outPlane+oy*c.OutW:i*outPlane+(oy+1)*c.OutW], oy)
			}
		}
	})
}

func (c *Pool2d) avgRow(src, row, dst []float32, oy int) {
	y, lo, hi := span(oy, c.StrideH, c.PadH, c.KernelH, 1, c.H)
	clear(row)
	for k := lo; k < hi; k++ {
		AddF32(row, row, src[(y+k)*c.W:][:c.W])
	}
	// The window's size with padding ends at the padding's end.
	tall := min(y+c.KernelH, c.H+c.PadH) - y
	for ox := range dst {
		x, xlo, xhi := span(ox, c.StrideW, c.PadW, c.KernelW, 1, c.W)
		s := float32(0)
		for k := xlo; k < xhi; k++ {
			s += row[x+k]
		}
		n := (hi - lo) * (xhi - xlo)
		if c.CountPad {
			n = tall * (min(x+c.KernelW, c.W+c.PadW) - x)
		}
		if c.Divisor != 0 {
			n = c.Divisor
		}
		dst[ox] = s / float32(n)
	}
}
