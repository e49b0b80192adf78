package cpu

import (
	"math"

	"github.com/pt2go/pt2/internal/pool"
)

// MaxPoolNHWC computes the largest element of each window of x [N, Size..., In] into out [N, OutSize..., In], both dense with channels
// last; NaN if there is one. c's Kernel, Stride, Pad and Dilation are the window's.
func MaxPoolNHWC(p *pool.Pool, c *Conv, x, out []float32) {
	c.eachWindowRow(p, func(w *windowRow, dst []float32) {
		w.reduce(x, dst, float32(math.Inf(-1)), MaximumF32)
	}, out)
}

// AvgPoolNHWC computes the mean of each window, as [MaxPoolNHWC] does the maximum. countPad counts the padding too; divisor, if not 0,
// is what sums are divided by.
func AvgPoolNHWC(p *pool.Pool, c *Conv, x, out []float32, countPad bool, divisor int) {
	c.eachWindowRow(p, func(w *windowRow, dst []float32) {
		w.reduce(x, dst, 0, AddF32)
		for ox := range c.OutSize[2] {
			n := divisor
			if n == 0 {
				n = c.windowSize([3]int{w.z, w.y, ox}, countPad)
			}
			d := dst[ox*c.In : (ox+1)*c.In]
			DivScalarF32(d, d, float32(n))
		}
	}, out)
}

// windowSize is how many elements the window at an output position covers; with padding, what lies in the padded input.
func (c *Conv) windowSize(at [3]int, countPad bool) int {
	n := 1
	for d := range at {
		from, lo, hi := span(at[d], c.Stride[d], c.Pad[d], c.Kernel[d], c.Dilation[d], c.Size[d])
		if countPad {
			lo, hi = 0, min(from+c.Kernel[d], c.Size[d]+c.Pad[d])-from
		}
		n *= hi - lo
	}
	return n
}

// windowRow is one row of outputs on its way: output row y in plane z of image n.
type windowRow struct {
	c       *Conv
	n, z, y int
	line    []float32 // a row of the input, reduced over depth and height
}

func (c *Conv) eachWindowRow(p *pool.Pool, f func(w *windowRow, dst []float32), out []float32) {
	row := c.OutSize[2] * c.In
	rows := c.N * c.OutSize[0] * c.OutSize[1]
	p.ParallelFor(rows, max(1, 32768/(row*volume(c.Kernel)+1)), func(lo, hi int) {
		line := scratch(c.Size[2] * c.In)
		defer line.free()
		w := windowRow{c: c, line: line.data}
		for r := lo; r < hi; r++ {
			w.y, w.z, w.n = r%c.OutSize[1], r/c.OutSize[1]%c.OutSize[0], r/c.OutSize[1]/c.OutSize[0]
			f(&w, out[r*row:(r+1)*row])
		}
	})
}

// reduce combines the window's rows first, which are whole vectors, and then the pixels along them.
func (w *windowRow) reduce(x, dst []float32, empty float32, f func(d, a, b []float32)) {
	c := w.c
	z, zlo, zhi := span(w.z, c.Stride[0], c.Pad[0], c.Kernel[0], c.Dilation[0], c.Size[0])
	y, ylo, yhi := span(w.y, c.Stride[1], c.Pad[1], c.Kernel[1], c.Dilation[1], c.Size[1])
	width := c.Size[2] * c.In
	var line []float32
	for kz := zlo; kz < zhi; kz++ {
		for ky := ylo; ky < yhi; ky++ {
			r := (w.n*c.Size[0]+z+kz*c.Dilation[0])*c.Size[1] + y + ky*c.Dilation[1]
			src := x[r*width : (r+1)*width]
			if line == nil {
				line = src
				continue
			}
			f(w.line, line, src)
			line = w.line
		}
	}
	for ox := range c.OutSize[2] {
		d := dst[ox*c.In : (ox+1)*c.In]
		at, lo, hi := span(ox, c.Stride[2], c.Pad[2], c.Kernel[2], c.Dilation[2], c.Size[2])
		if line == nil || lo >= hi {
			FillF32(d, empty)
			continue
		}
		first := line[(at+lo*c.Dilation[2])*c.In:][:c.In]
		if hi-lo == 1 {
			copy(d, first)
			continue
		}
		for k := lo + 1; k < hi; k++ {
			f(d, first, line[(at+k*c.Dilation[2])*c.In:][:c.In])
			first = d
		}
	}
}

// MeanRowsF32 is the mean over the middle dimension of x [outer, rows, cols], out being [outer, cols].
func MeanRowsF32(p *pool.Pool, x, out []float32, outer, rows, cols int) {
	if outer*cols == 0 {
		return
	}
	size := rows * cols
	parts := min(p.Size(), max(1, size/16384), max(1, rows))
	if parts == 1 {
		p.ParallelFor(outer, max(1, 65536/(size+1)), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				d := out[i*cols : (i+1)*cols]
				clear(d)
				sumRows(d, x[i*size:(i+1)*size])
				DivScalarF32(d, d, float32(rows))
			}
		})
		return
	}
	sums := scratch(parts * cols)
	defer sums.free()
	per := (rows + parts - 1) / parts
	for i := range outer {
		p.ParallelFor(parts, 1, func(lo, hi int) {
			for t := lo; t < hi; t++ {
				d := sums.data[t*cols : (t+1)*cols]
				clear(d)
				sumRows(d, x[i*size+min(t*per, rows)*cols:i*size+min((t+1)*per, rows)*cols])
			}
		})
		d := out[i*cols : (i+1)*cols]
		copy(d, sums.data[:cols])
		for t := 1; t < parts; t++ {
			AddF32(d, d, sums.data[t*cols:(t+1)*cols])
		}
		DivScalarF32(d, d, float32(rows))
	}
}

// sumRows adds the rows of x, each as long as dst, to dst. Rows are taken several at a time, so that vectors are long, and their sums
// in groups, so that rounding errors stay small.
func sumRows(dst, x []float32) {
	const width, group = 1024, 32
	cols := len(dst)
	step := max(1, width/cols) * cols
	if len(x) < 2*step {
		for ; len(x) > 0; x = x[cols:] {
			AddF32(dst, dst, x[:cols])
		}
		return
	}
	buf := scratch(2 * step)
	defer buf.free()
	all, part := buf.data[:step], buf.data[step:]
	clear(all)
	for len(x) >= step {
		copy(part, x[:step])
		x = x[step:]
		for k := 1; k < group && len(x) >= step; k++ {
			AddF32(part, part, x[:step])
			x = x[step:]
		}
		AddF32(all, all, part)
	}
	for ; len(all) > 0; all = all[cols:] {
		AddF32(dst, dst, all[:cols])
	}
	for ; len(x) > 0; x = x[cols:] {
		AddF32(dst, dst, x[:cols])
	}
}
