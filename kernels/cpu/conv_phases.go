package cpu

import "github.com/pt2go/pt2/internal/pool"

// A transposed convolution of stride s gives every s-th output from the same elements of the kernel, in each direction. So it is as many
// ordinary convolutions of stride 1 as there are such phases, whose kernels are parts of the whole one, mirrored, and whose results
// interleave.

// phase is one of these convolutions. Its sizes are those of a call.
type phase struct {
	conv  Conv
	first [3]int // output
	step  [3]int // between outputs
	w     *PackedConv
}

// phaseWork is how many multiplications a transposed convolution has at least, times its groups, that is worth it. For less the products of
// positions are added up as PyTorch does, tap by tap, with its rounding errors. (A variable for the tests.)
var phaseWork = 1 << 20

// phasesWin tells whether the phases are faster.
func (c *Conv) phasesWin() bool {
	return c.In > 0 && c.N*volume(c.Size)*c.In*c.Out*volume(c.Kernel) >= phaseWork
}

// phases lists the convolutions, without their weights; nil if one of them is none, as with dilation or with a stride above the kernel.
func (c *Conv) phases() []phase {
	list := []phase{{conv: Conv{N: c.N, In: c.In, Out: c.Out, Groups: c.Groups, Size: c.Size, Stride: [3]int{1, 1, 1}, Dilation: [3]int{1, 1, 1}}}}
	for d := range 3 {
		if c.Dilation[d] != 1 && c.Kernel[d] != 1 {
			return nil
		}
		var next []phase
		for _, ph := range list {
			for a := range c.Stride[d] { // outputs o with (o + pad) % stride = a
				taps := (c.Kernel[d] - a + c.Stride[d] - 1) / c.Stride[d]
				first := ((a-c.Pad[d])%c.Stride[d] + c.Stride[d]) % c.Stride[d]
				ph.first[d], ph.step[d] = first, c.Stride[d]
				ph.conv.Kernel[d], ph.conv.Pad[d] = taps, taps-1-(first+c.Pad[d]-a)/c.Stride[d]
				ph.conv.OutSize[d] = max(0, (c.OutSize[d]-first+c.Stride[d]-1)/c.Stride[d])
				if taps < 1 || ph.conv.Pad[d] < 0 {
					return nil
				}
				next = append(next, ph)
			}
		}
		list = next
	}
	return list
}

// packPhases packs the phases' kernels of w [In, Out/Groups, Kernel...].
func (pw *PackedConv) packPhases(c *Conv, w []float32, list []phase, lasting bool) {
	inG, outG, taps := c.In/c.Groups, c.Out/c.Groups, volume(c.Kernel)
	for _, ph := range list {
		k := ph.conv.Kernel
		sub := make([]float32, 0, c.Out*inG*volume(k)) // [Out, In/Groups, kernel]
		for o := range c.Out {
			for i := range inG {
				filter := w[((o/outG*inG+i)*outG+o%outG)*taps:][:taps]
				for z := range k[0] {
					for y := range k[1] {
						for x := range k[2] {
							sub = append(sub, filter[(c.tap(&ph, 0, z)*c.Kernel[1]+c.tap(&ph, 1, y))*c.Kernel[2]+c.tap(&ph, 2, x)])
						}
					}
				}
			}
		}
		ph.w = PackConv(&ph.conv, sub, nil, lasting)
		pw.phases = append(pw.phases, ph)
	}
}

// tap is the element of the kernel that is element t of a phase's.
func (c *Conv) tap(ph *phase, d, t int) int {
	a := (ph.first[d] + c.Pad[d]) % c.Stride[d]
	return a + c.Stride[d]*(ph.conv.Kernel[d]-1-t)
}

// transposedPhases computes phase after phase and puts the results between each other.
func transposedPhases(p *pool.Pool, c *Conv, w *PackedConv, x, out []float32, ep *Epilogue) {
	list := c.phases()
	ep, residual := ep.apartFrom(out)
	defer residual.free()
	inner := ep
	if ep != nil && ep.Residual != nil {
		inner = nil
	}
	if len(list) == 1 {
		ConvNHWC(p, &list[0].conv, w.phases[0].w, x, out, ep)
		return
	}
	for i := range list {
		ph := &list[i]
		o := ph.conv.OutSize
		buf := scratch(c.N * volume(o) * c.Out)
		ConvNHWC(p, &ph.conv, w.phases[i].w, x, buf.data, inner)
		row := max(o[2]*c.Out, 1)
		p.ParallelFor(c.N*o[0]*o[1], max(1, 16384/row), func(lo, hi int) {
			for t := lo; t < hi; t++ {
				n, z, y := t/o[1]/o[0], t/o[1]%o[0]*ph.step[0]+ph.first[0], t%o[1]*ph.step[1]+ph.first[1]
				at := ((n*c.OutSize[0]+z)*c.OutSize[1]+y)*c.OutSize[2] + ph.first[2]
				for src := buf.data[t*o[2]*c.Out : (t+1)*o[2]*c.Out]; len(src) > 0; src = src[c.Out:] {
					dst := out[at*c.Out : (at+1)*c.Out]
					copy(dst, src)
					if ep != inner {
						ep.row(dst, at, 0)
					}
					at += ph.step[2]
				}
			}
		})
		buf.free()
	}
}
