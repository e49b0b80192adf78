package cpu

import (
	"github.com/pt2go/pt2/internal/pool"
)

// Conv describes a convolution over up to three spatial dimensions (depth, height, width; those not used have size 1).
// Tensors are contiguous: input [N, In, Size...], weight [Out, In/Groups, Kernel...] (transposed: [In, Out/Groups, Kernel...]),
// output [N, Out, OutSize...]. Pad is the number of zeros at both ends.
type Conv struct {
	N, In, Out, Groups    int
	Size, Kernel, OutSize [3]int
	Stride, Pad, Dilation [3]int
}

func volume(s [3]int) int { return s[0] * s[1] * s[2] }

// ForwardF32 computes the convolution. act, if given, is applied to the output.
func (c *Conv) ForwardF32(p *pool.Pool, x, w, bias, out []float32, act func(d, x []float32)) {
	inG, outG := c.In/c.Groups, c.Out/c.Groups
	switch {
	case c.depthwise2D():
		c.depthwiseF32(p, x, w, bias, out, act)
	case inG*volume(c.Kernel) < 4 && outG < 4:
		ConvDirect(c, x, w, bias, out)
		if act != nil {
			act(out, out)
		}
	default:
		c.gemmF32(p, x, w, bias, out, act)
	}
}

// depthwise2D reports one input channel for each group, in two dimensions.
func (c *Conv) depthwise2D() bool {
	return c.In == c.Groups && c.Kernel[0] == 1 && c.Size[0] == 1 && c.Pad[0] == 0
}

// gemmF32 multiplies the weight [outG, inG*kernel] with the unfolded input [inG*kernel, positions], a strip of positions at a
// time so that the unfolded part stays in the cache.
func (c *Conv) gemmF32(p *pool.Pool, x, w, bias, out []float32, act func(d, x []float32)) {
	inG, outG := c.In/c.Groups, c.Out/c.Groups
	k := inG * volume(c.Kernel)
	pos := volume(c.OutSize)
	in := volume(c.Size)
	pointwise := volume(c.Kernel) == 1 && c.Stride == [3]int{1, 1, 1} && c.Pad == [3]int{}
	strip := min(pos, roundUp(max(nr*4, min(nc, (1<<18)/max(k, 1))), nr))
	if s := p.Size(); s > 1 && c.N*c.Groups < s {
		strip = min(strip, roundUp(max(nr, (pos+s-1)/s), nr))
	}
	strips := (pos + strip - 1) / strip
	p.ParallelFor(c.N*c.Groups*strips, 1, func(lo, hi int) {
		var col *[]float32
		if !pointwise {
			col = scratch(k * strip)
			defer packPool.Put(col)
		}
		for t := lo; t < hi; t++ {
			s, ng := t%strips, t/strips
			n, g := ng/c.Groups, ng%c.Groups
			p0 := s * strip
			width := min(strip, pos-p0)
			src := x[(n*c.In+g*inG)*in:]
			b := Matrix{Row: pos, Col: 1}
			if pointwise {
				b.Data = src[p0:]
			} else {
				c.unfold(src, *col, inG, p0, width)
				b = Matrix{Data: *col, Row: width, Col: 1}
			}
			ep := &Epilogue{Act: act}
			if bias != nil {
				ep.RowBias = bias[g*outG : (g+1)*outG]
			}
			Gemm(nil, outG, width, k, Matrix{w[g*outG*k:], k, 1}, b, out[(n*c.Out+g*outG)*pos+p0:], pos, false, ep)
		}
	})
}

// unfold writes columns [p0, p0+width) of the unfolded input: row (channel, kernel position), column output position.
func (c *Conv) unfold(src, col []float32, inG, p0, width int) {
	in := volume(c.Size)
	row := 0
	for ch := range inG {
		plane := src[ch*in : ch*in+in]
		for kd := range c.Kernel[0] {
			for kh := range c.Kernel[1] {
				for kw := range c.Kernel[2] {
					c.unfoldRow(plane, col[row*width:row*width+width], p0, kd, kh, kw)
					row++
				}
			}
		}
	}
}

func (c *Conv) unfoldRow(plane, dst []float32, p0, kd, kh, kw int) {
	ow := c.OutSize[2]
	for i := 0; i < len(dst); {
		q := p0 + i
		x0 := q % ow
		y := q / ow % c.OutSize[1]
		z := q / ow / c.OutSize[1]
		n := min(ow-x0, len(dst)-i)
		d := dst[i : i+n]
		i += n
		iz, iy := z*c.Stride[0]-c.Pad[0]+kd*c.Dilation[0], y*c.Stride[1]-c.Pad[1]+kh*c.Dilation[1]
		if iz < 0 || iz >= c.Size[0] || iy < 0 || iy >= c.Size[1] {
			clear(d)
			continue
		}
		line := plane[(iz*c.Size[1]+iy)*c.Size[2]:]
		line = line[:c.Size[2]]
		ix := x0*c.Stride[2] - c.Pad[2] + kw*c.Dilation[2]
		if c.Stride[2] == 1 {
			lo := min(max(0, -ix), n)
			hi := max(lo, min(n, c.Size[2]-ix))
			clear(d[:lo])
			if hi > lo {
				copy(d[lo:hi], line[ix+lo:ix+hi])
			}
			clear(d[hi:])
			continue
		}
		for j := range d {
			if ix >= 0 && ix < len(line) {
				d[j] = line[ix]
			} else {
				d[j] = 0
			}
			ix += c.Stride[2]
		}
	}
}

// depthwiseF32 convolves each channel with its own filters, row by row: one kernel element at a time over a whole row.
func (c *Conv) depthwiseF32(p *pool.Pool, x, w, bias, out []float32, act func(d, x []float32)) {
	mult := c.Out / c.In
	in, pos, taps := volume(c.Size), volume(c.OutSize), volume(c.Kernel)
	p.ParallelFor(c.N*c.Out, max(1, 65536/(pos*taps+1)), func(lo, hi int) {
		for t := lo; t < hi; t++ {
			n, o := t/c.Out, t%c.Out
			plane := x[(n*c.In+o/mult)*in:]
			plane = plane[:in]
			f := w[o*taps : o*taps+taps]
			dst := out[t*pos : t*pos+pos]
			b := float32(0)
			if bias != nil {
				b = bias[o]
			}
			for y := range c.OutSize[1] {
				row := dst[y*c.OutSize[2] : (y+1)*c.OutSize[2]]
				for i := range row {
					row[i] = b
				}
				for kh := range c.Kernel[1] {
					iy := y*c.Stride[1] - c.Pad[1] + kh*c.Dilation[1]
					if iy < 0 || iy >= c.Size[1] {
						continue
					}
					line := plane[iy*c.Size[2] : (iy+1)*c.Size[2]]
					for kw := range c.Kernel[2] {
						c.tap(row, line, f[kh*c.Kernel[2]+kw], kw*c.Dilation[2]-c.Pad[2])
					}
				}
				if act != nil {
					act(row, row)
				}
			}
		}
	})
}

// tap adds f*line, shifted by off and taken every stride, to row.
func (c *Conv) tap(row, line []float32, f float32, off int) {
	s := c.Stride[2]
	if s == 1 {
		lo := max(0, -off)
		hi := min(len(row), len(line)-off)
		if hi > lo {
			axpy(row[lo:hi], line[off+lo:off+hi], f)
		}
		return
	}
	lo := 0
	if off < 0 {
		lo = (-off + s - 1) / s
	}
	hi := min(len(row), (len(line)-off+s-1)/s)
	ix := off + lo*s
	for i := lo; i < hi; i++ {
		row[i] += f * line[ix]
		ix += s
	}
}

// TransposedF32 computes the transposed convolution: products of weight and input are scattered over the output.
func (c *Conv) TransposedF32(p *pool.Pool, x, w, bias, out []float32) {
	inG, outG := c.In/c.Groups, c.Out/c.Groups
	k := outG * volume(c.Kernel)
	in, pos := volume(c.Size), volume(c.OutSize)
	p.ParallelFor(c.N*c.Groups, 1, func(lo, hi int) {
		col := scratch(k * in)
		defer packPool.Put(col)
		for t := lo; t < hi; t++ {
			n, g := t/c.Groups, t%c.Groups
			// w is [inG, k] for this group: col = w^T * x.
			Gemm(nil, k, in, inG, Matrix{w[g*inG*k:], 1, k}, Matrix{x[(n*c.In+g*inG)*in:], in, 1}, *col, in, false, nil)
			dst := out[(n*c.Out+g*outG)*pos : (n*c.Out+(g+1)*outG)*pos]
			for o := range outG {
				plane := dst[o*pos : (o+1)*pos]
				b := float32(0)
				if bias != nil {
					b = bias[g*outG+o]
				}
				for i := range plane {
					plane[i] = b
				}
				c.fold(plane, (*col)[o*volume(c.Kernel)*in:])
			}
		}
	})
}

func (c *Conv) fold(plane, col []float32) {
	in := volume(c.Size)
	r := 0
	for kd := range c.Kernel[0] {
		for kh := range c.Kernel[1] {
			for kw := range c.Kernel[2] {
				src := col[r*in : (r+1)*in]
				r++
				i := 0
				for z := range c.Size[0] {
					oz := z*c.Stride[0] - c.Pad[0] + kd*c.Dilation[0]
					for y := range c.Size[1] {
						oy := y*c.Stride[1] - c.Pad[1] + kh*c.Dilation[1]
						ox := kw*c.Dilation[2] - c.Pad[2]
						ok := oz >= 0 && oz < c.OutSize[0] && oy >= 0 && oy < c.OutSize[1]
						for range c.Size[2] {
							if ok && ox >= 0 && ox < c.OutSize[2] {
								plane[(oz*c.OutSize[1]+oy)*c.OutSize[2]+ox] += src[i]
							}
							ox += c.Stride[2]
							i++
						}
					}
				}
			}
		}
	}
}

// number is what the plain loops below work on.
type number interface {
	~float32 | ~float64 | ~int64 | ~complex128
}

// ConvDirect is the definition of the convolution, for types without a fast path.
func ConvDirect[T number](c *Conv, x, w, bias, out []T) {
	inG, outG := c.In/c.Groups, c.Out/c.Groups
	in, taps := volume(c.Size), volume(c.Kernel)
	i := 0
	for n := range c.N {
		for o := range c.Out {
			src := x[(n*c.In+o/outG*inG)*in:]
			f := w[o*inG*taps:]
			for z := range c.OutSize[0] {
				for y := range c.OutSize[1] {
					for xx := range c.OutSize[2] {
						var s T
						if bias != nil {
							s = bias[o]
						}
						out[i] = s + at(c, src, f, inG, z, y, xx)
						i++
					}
				}
			}
		}
	}
}

func at[T number](c *Conv, src, f []T, inG, z, y, x int) T {
	var s T
	in := volume(c.Size)
	q := 0
	for ch := range inG {
		for kd := range c.Kernel[0] {
			iz := z*c.Stride[0] - c.Pad[0] + kd*c.Dilation[0]
			for kh := range c.Kernel[1] {
				iy := y*c.Stride[1] - c.Pad[1] + kh*c.Dilation[1]
				for kw := range c.Kernel[2] {
					ix := x*c.Stride[2] - c.Pad[2] + kw*c.Dilation[2]
					if iz >= 0 && iz < c.Size[0] && iy >= 0 && iy < c.Size[1] && ix >= 0 && ix < c.Size[2] {
						s += f[q] * src[ch*in+(iz*c.Size[1]+iy)*c.Size[2]+ix]
					}
					q++
				}
			}
		}
	}
	return s
}

// ConvTransposed is the definition of the transposed convolution.
func ConvTransposed[T number](c *Conv, x, w, bias, out []T) {
	inG, outG := c.In/c.Groups, c.Out/c.Groups
	in, pos, taps := volume(c.Size), volume(c.OutSize), volume(c.Kernel)
	for n := range c.N {
		for o := range c.Out {
			plane := out[(n*c.Out+o)*pos : (n*c.Out+o+1)*pos]
			for i := range plane {
				plane[i] = 0
				if bias != nil {
					plane[i] = bias[o]
				}
			}
			g := o / outG
			for ch := range inG {
				src := x[(n*c.In+g*inG+ch)*in:]
				f := w[((g*inG+ch)*outG+o%outG)*taps:]
				scatter(c, plane, src, f)
			}
		}
	}
}

func scatter[T number](c *Conv, plane, src, f []T) {
	i := 0
	for z := range c.Size[0] {
		for y := range c.Size[1] {
			for x := range c.Size[2] {
				v := src[i]
				i++
				q := 0
				for kd := range c.Kernel[0] {
					oz := z*c.Stride[0] - c.Pad[0] + kd*c.Dilation[0]
					for kh := range c.Kernel[1] {
						oy := y*c.Stride[1] - c.Pad[1] + kh*c.Dilation[1]
						for kw := range c.Kernel[2] {
							ox := x*c.Stride[2] - c.Pad[2] + kw*c.Dilation[2]
							if oz >= 0 && oz < c.OutSize[0] && oy >= 0 && oy < c.OutSize[1] && ox >= 0 && ox < c.OutSize[2] {
								plane[(oz*c.OutSize[1]+oy)*c.OutSize[2]+ox] += v * f[q]
							}
							q++
						}
					}
				}
			}
		}
	}
}
