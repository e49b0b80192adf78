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

// ConvWeight is a convolution's weight in the order in which the kernel reads it: made once, shared by all runs.
type ConvWeight struct {
	plain  []float32  // depthwise
	groups []*PackedA // each [Out/Groups, In/Groups * kernel]
}

// ConvEpilogue is what happens to an output when its last products are in: y = act(y + Bias + Residual).
type ConvEpilogue struct {
	// Bias has one number for each output channel; nil for none.
	Bias []float32
	// Residual has the output's shape; nil for none. It may be the output's own memory.
	Residual []float32
	// Act is applied in place to rows of the output; nil for none.
	Act func(d, x []float32)
}

func volume(s [3]int) int { return s[0] * s[1] * s[2] }

// depthwise reports one input channel for each group.
func (c *Conv) depthwise() bool { return c.In == c.Groups }

// PackWeight packs w for [Conv.PackedF32]. Only In, Out, Groups and Kernel are looked at. A depthwise weight is kept as it is.
func (c *Conv) PackWeight(w []float32) *ConvWeight {
	if c.depthwise() {
		return &ConvWeight{plain: w}
	}
	outG, k := c.Out/c.Groups, c.In/c.Groups*volume(c.Kernel)
	p := &ConvWeight{}
	for g := range c.Groups {
		p.groups = append(p.groups, PackA(Matrix{w[g*outG*k:], k, 1}, outG, k))
	}
	return p
}

// ForwardF32 computes the convolution. act, if given, is applied to the output.
func (c *Conv) ForwardF32(p *pool.Pool, x, w, bias, out []float32, act func(d, x []float32)) {
	c.PackedF32(p, x, c.PackWeight(w), &ConvEpilogue{Bias: bias, Act: act}, out)
}

// PackedF32 is [Conv.ForwardF32] with the weight packed before.
func (c *Conv) PackedF32(p *pool.Pool, x []float32, w *ConvWeight, ep *ConvEpilogue, out []float32) {
	if volume(c.OutSize)*c.N*c.Out == 0 {
		return
	}
	l := c.layout()
	src := x
	if !l.direct {
		padded := scratch(c.N*c.In*l.plane + l.slack())
		defer padded.free()
		src = padded.data
		p.ParallelFor(c.N*c.In, max(1, 16384/l.plane), func(lo, hi int) {
			for ch := lo; ch < hi; ch++ {
				l.copyPlane(src[ch*l.plane+l.before:], x[ch*volume(c.Size):])
			}
		})
	}
	if c.depthwise() {
		c.depthwiseF32(p, l, src, w.plain, ep, out)
		return
	}
	c.gemmF32(p, l, src, w, ep, out)
}

// gemmF32 multiplies the weight [Out/Groups, K] with the unfolded input [K, positions], K being In/Groups times the kernel's volume.
// The input is unfolded a strip of positions and a block of K at a time, straight into the micro-kernel's panels.
func (c *Conv) gemmF32(p *pool.Pool, l *convLayout, src []float32, w *ConvWeight, ep *ConvEpilogue, out []float32) {
	inG, outG, pos := c.In/c.Groups, c.Out/c.Groups, volume(c.OutSize)
	offsets := l.offsets(inG)
	strip, rows := c.split(p.Size())
	strips, parts := (pos+strip-1)/strip, (outG+rows-1)/rows
	work := strip * rows * len(offsets)
	p.ParallelFor(c.N*c.Groups*strips*parts, max(1, 32768/work), func(lo, hi int) {
		panels := scratch(min(kc, len(offsets)) * roundUp(strip, nr))
		defer panels.free()
		for t := lo; t < hi; t++ {
			part, s, ng := t%parts, t/parts%strips, t/parts/strips
			n, g := ng/c.Groups, ng%c.Groups
			u := convPart{
				c: c, l: l, a: w.groups[g], offsets: offsets, panels: panels.data, src: src[(n*c.In+g*inG)*l.plane:],
				p0: s * strip, width: min(strip, pos-s*strip), i0: part * rows, i1: min(outG, (part+1)*rows),
			}
			u.run(out[(n*c.Out+g*outG)*pos : (n*c.Out+(g+1)*outG)*pos])
			ep.finish(out, n*c.Out+g*outG, g*outG, u.i0, u.i1, pos, u.p0, u.width)
		}
	})
}

// stripPanels is how many panels of the unfolded input one task packs at most: with kc rows they fill half the second-level cache.
const stripPanels = 12

// split chooses how many positions and how many output channels one task computes: strips of positions that stay in the cache;
// with too few of them for all threads, fewer channels.
func (c *Conv) split(threads int) (strip, rows int) {
	pos, outG := volume(c.OutSize), c.Out/c.Groups
	strip, rows = min(roundUp(pos, nr), stripPanels*nr), outG
	tasks := func() int { return c.N * c.Groups * ((pos + strip - 1) / strip) * ((outG + rows - 1) / rows) }
	for threads > 1 && tasks() < 2*threads {
		switch {
		case rows > 4*mr && rows >= strip:
			rows = roundUp(rows/2, mr)
		case strip > 2*nr:
			strip = roundUp(strip/2, nr)
		case rows > 4*mr:
			rows = roundUp(rows/2, mr)
		default:
			return strip, rows
		}
	}
	return strip, rows
}

// convPart is a block of the product: output channels [i0, i1) of a group at positions [p0, p0+width).
type convPart struct {
	c         *Conv
	l         *convLayout
	a         *PackedA
	offsets   []int
	panels    []float32
	src       []float32 // the group's channels
	p0, width int
	i0, i1    int
}

func (u *convPart) run(out []float32) {
	k, pos := len(u.offsets), volume(u.c.OutSize)
	all := roundUp(u.a.M, mr)
	var panels [stripPanels]convPanel
	for i := range (u.width + nr - 1) / nr {
		panels[i] = u.l.panel(u.p0+i*nr, min(nr, u.width-i*nr))
	}
	for k0 := 0; k0 < k; k0 += kc {
		kb := min(kc, k-k0)
		for j := 0; j < u.width; j += nr {
			panels[j/nr].pack(u.panels[j*kb:j*kb+nr*kb], u.src, u.offsets[k0:k0+kb])
		}
		for i := u.i0; i < u.i1; i += mc {
			tiles(min(mc, u.i1-i), u.width, kb, u.a.data[k0*all+i*kb:], u.panels, out[i*pos+u.p0:], pos, k0 > 0)
		}
	}
}

// finish applies the epilogue to channels [i0, i1) at positions [p0, p0+width). The first channel's plane of out is base, its bias ch.
func (ep *ConvEpilogue) finish(out []float32, base, ch, i0, i1, pos, p0, width int) {
	if ep.Bias == nil && ep.Residual == nil && ep.Act == nil {
		return
	}
	for i := i0; i < i1; i++ {
		at := (base+i)*pos + p0
		row := out[at : at+width]
		if ep.Bias != nil {
			AddScalarF32(row, row, ep.Bias[ch+i])
		}
		if ep.Residual != nil {
			AddF32(row, row, ep.Residual[at:])
		}
		if ep.Act != nil {
			ep.Act(row, row)
		}
	}
}

// depthwiseF32 convolves each channel with its own filters.
func (c *Conv) depthwiseF32(p *pool.Pool, l *convLayout, src, w []float32, ep *ConvEpilogue, out []float32) {
	mult, pos, taps := c.Out/c.In, volume(c.OutSize), volume(c.Kernel)
	p.ParallelFor(c.N*c.Out, max(1, 65536/(pos*taps)), func(lo, hi int) {
		for t := lo; t < hi; t++ {
			n, o := t/c.Out, t%c.Out
			plane, f := src[(n*c.In+o/mult)*l.plane:], w[o*taps:o*taps+taps]
			bias := float32(0)
			if ep.Bias != nil {
				bias = ep.Bias[o]
			}
			dst := out[t*pos : (t+1)*pos]
			slice := c.OutSize[1] * c.OutSize[2]
			for z := range c.OutSize[0] {
				depthwiseRows(dst[z*slice:(z+1)*slice], plane[l.position(z*slice):], c.OutSize[2], c.Stride[1]*l.columns.row, l.taps, f, bias)
			}
			if ep.Residual != nil {
				AddF32(dst, dst, ep.Residual[t*pos:])
			}
			if ep.Act != nil {
				ep.Act(dst, dst)
			}
		}
	})
}

// depthwiseRows is dst[r*n+i] = bias + sum of w[t]*src[r*step+offsets[t]+i] for all rows of n outputs.
func depthwiseRows(dst, src []float32, n, step int, offsets []int, w []float32, bias float32) {
	if hasAVX2 {
		depthwiseF32AVX2(&dst[0], &src[0], n, len(dst)/n, step, &offsets[0], &w[0], len(w), bias)
		return
	}
	FillF32(dst, bias)
	for r := 0; len(dst) > 0; r++ {
		for t, f := range w {
			axpyGeneric(dst[:n], src[r*step+offsets[t]:], f)
		}
		dst = dst[n:]
	}
}
