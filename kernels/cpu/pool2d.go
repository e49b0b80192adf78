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
	l := c.columns(c.DilationW)
	p.ParallelFor(c.Planes, max(1, 16384/(outPlane*c.KernelH*c.KernelW+1)), func(lo, hi int) {
		buf := scratch(c.W + l.row)
		defer buf.free()
		rows := [2][]float32{buf.data[:c.W], buf.data[c.W:]}
		FillF32(rows[1], float32(math.Inf(-1)))
		for i := lo; i < hi; i++ {
			src, dst := x[i*plane:(i+1)*plane], out[i*outPlane:(i+1)*outPlane]
			if index != nil {
				c.maxIndexed(src, dst, index[i*outPlane:(i+1)*outPlane])
				continue
			}
			for oy := range c.OutH {
				c.maxRow(src, rows, l, dst[oy*c.OutW:(oy+1)*c.OutW], oy)
			}
		}
	})
}

// columns lays out a row so that the windows' elements lie side by side.
func (c *Pool2d) columns(dilation int) *columns {
	l := makeColumns((c.OutW-1)*c.StrideW+(c.KernelW-1)*dilation+1, c.StrideW, c.PadW, c.KernelW, dilation)
	return &l
}

// maxRow takes the maximum down the columns first, then along the row, whole rows at a time. rows[1] holds the padding.
func (c *Pool2d) maxRow(src []float32, rows [2][]float32, l *columns, dst []float32, oy int) {
	y, lo, hi := span(oy, c.StrideH, c.PadH, c.KernelH, c.DilationH, c.H)
	if lo >= hi {
		FillF32(dst, float32(math.Inf(-1)))
		return
	}
	line := src[(y+lo*c.DilationH)*c.W:][:c.W]
	for k := lo + 1; k < hi; k++ {
		MaximumF32(rows[0], line, src[(y+k*c.DilationH)*c.W:][:c.W])
		line = rows[0]
	}
	l.copy(rows[1], line)
	copy(dst, rows[1][l.taps[0]:])
	for _, t := range l.taps[1:] {
		MaximumF32(dst, dst, rows[1][t:])
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
	l := c.columns(1)
	p.ParallelFor(c.Planes, max(1, 16384/(outPlane*c.KernelH*c.KernelW+1)), func(lo, hi int) {
		buf := scratch(c.W + l.row)
		defer buf.free()
		rows := [2][]float32{buf.data[:c.W], buf.data[c.W:]}
		clear(rows[1])
		for i := lo; i < hi; i++ {
			for oy := range c.OutH {
				c.avgRow(x[i*plane:(i+1)*plane], rows, l, out[i*outPlane+oy*c.OutW:i*outPlane+(oy+1)*c.OutW], oy)
			}
		}
	})
}

func (c *Pool2d) avgRow(src []float32, rows [2][]float32, l *columns, dst []float32, oy int) {
	y, lo, hi := span(oy, c.StrideH, c.PadH, c.KernelH, 1, c.H)
	clear(rows[0])
	for k := lo; k < hi; k++ {
		AddF32(rows[0], rows[0], src[(y+k)*c.W:][:c.W])
	}
	l.copy(rows[1], rows[0])
	copy(dst, rows[1][l.taps[0]:])
	for _, t := range l.taps[1:] {
		AddF32(dst, dst, rows[1][t:])
	}
	// The window's size with padding ends at the padding's end.
	tall := min(y+c.KernelH, c.H+c.PadH) - y
	for ox := range dst {
		x, xlo, xhi := span(ox, c.StrideW, c.PadW, c.KernelW, 1, c.W)
		n := (hi - lo) * (xhi - xlo)
		if c.CountPad {
			n = tall * (min(x+c.KernelW, c.W+c.PadW) - x)
		}
		if c.Divisor != 0 {
			n = c.Divisor
		}
		dst[ox] /= float32(n)
	}
}
