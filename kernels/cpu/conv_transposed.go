package cpu

import (
	"runtime"

	"github.com/pt2go/pt2/internal/pool"
)

// PackTransposed packs w, a contiguous weight [In, Out/Groups, Kernel...], for the transposed convolution c. The result
// serves any N and Size, with the output that belongs to them. What is lasting lies outside of Go's heap.
func PackTransposed(c *Conv, w []float32, lasting bool) *PackedConv {
	taps, inG, outG := volume(c.Kernel), c.In/c.Groups, c.Out/c.Groups
	pw := &PackedConv{set: tileSetOf[float32]()}
	if c.apart() {
		pw.apart = true
		pw.packApart(c, w, lasting)
		return pw
	}
	if c.phasesWin() {
		if list := c.phases(); list != nil {
			pw.packPhases(c, w, list, lasting)
			return pw
		}
	}
	for g := range c.Groups {
		last := make([]float32, inG*taps*outG) // [In/Groups, kernel, Out/Groups]
		for i := range inG {
			TransposeF32(last[i*taps*outG:], w[(g*inG+i)*outG*taps:], outG, taps, outG, taps)
		}
		packed := packedFor[float32](pw, inG*pw.set.packedWidth(taps*outG), lasting)
		pw.set.packB(nil, packed, Matrix{last, taps * outG, 1}, inG, taps*outG)
		pw.groups = append(pw.groups, packed)
	}
	return pw
}

// TransposedNHWC is [ConvNHWC] for the transposed convolution: what each input position gives to its window is computed as one
// product, then each output row gathers what falls on it.
func TransposedNHWC(p *pool.Pool, c *Conv, w *PackedConv, x, out []float32, ep *Epilogue) {
	inG, outG := c.In/c.Groups, c.Out/c.Groups
	width := volume(c.Kernel) * outG
	positions := c.N * volume(c.Size)
	if c.N*volume(c.OutSize)*c.Out == 0 {
		return
	}
	defer runtime.KeepAlive(w) // whose memory is not Go's
	if w.phases != nil {
		transposedPhases(p, c, w, x, out, ep)
		return
	}
	if w.apart && inG > 0 {
		transposedApart(p, c, w, x, out, ep)
		return
	}
	ep, residual := ep.apartFrom(out)
	defer residual.free()
	col := scratch(positions * width * c.Groups) // [groups, N * positions, kernel, Out/Groups]
	defer col.free()
	if inG == 0 {
		clear(col.data)
	} else {
		for g := range c.Groups {
			m := product[float32]{set: w.set, m: positions, n: width, segments: 1, length: inG, x: x[g*inG:], lda: c.In,
				packed: w.groups[g], c: col.data[g*positions*width:], ldc: width}
			m.run(p)
		}
	}
	finish := ep.over(out, c.Out)
	p.ParallelFor(c.N*c.OutSize[0]*c.OutSize[1], max(1, 65536/(c.OutSize[2]*c.Out*c.Kernel[2])), func(lo, hi int) {
		for t := lo; t < hi; t++ {
			row := out[t*c.OutSize[2]*c.Out : (t+1)*c.OutSize[2]*c.Out]
			clear(row)
			for g := range c.Groups {
				c.gather(row[g*outG:], col.data[g*positions*width:], t)
			}
			if finish != nil {
				finish([2]int{t * c.OutSize[2], (t + 1) * c.OutSize[2]}, [2]int{0, c.Out})
			}
		}
	})
}

// gather adds to row t of the output, [OutSize[2], Out] of which a group's channels are written, what the input's windows give to it.
func (c *Conv) gather(row, col []float32, t int) {
	n, z, y := t/c.OutSize[1]/c.OutSize[0], t/c.OutSize[1]%c.OutSize[0], t%c.OutSize[1]
	outG := c.Out / c.Groups
	for kz := range c.Kernel[0] {
		iz, ok := c.source(0, z, kz)
		if !ok {
			continue
		}
		for ky := range c.Kernel[1] {
			iy, ok := c.source(1, y, ky)
			if !ok {
				continue
			}
			line := ((n*c.Size[0]+iz)*c.Size[1] + iy) * c.Size[2]
			for kx := range c.Kernel[2] {
				at := ((kz*c.Kernel[1]+ky)*c.Kernel[2] + kx) * outG
				for ix := range c.Size[2] {
					ox := ix*c.Stride[2] - c.Pad[2] + kx*c.Dilation[2]
					if ox < 0 || ox >= c.OutSize[2] {
						continue
					}
					d := row[ox*c.Out:][:outG]
					AddF32(d, d, col[(line+ix)*volume(c.Kernel)*outG+at:])
				}
			}
		}
	}
}

// source is the input's coordinate that reaches the output's through element k of the kernel.
func (c *Conv) source(d, o, k int) (int, bool) {
	i := o + c.Pad[d] - k*c.Dilation[d]
	if i < 0 || i%c.Stride[d] != 0 || i/c.Stride[d] >= c.Size[d] {
		return 0, false
	}
	return i / c.Stride[d], true
}

// apart reports windows that touch without overlap and fill the output: an input row gives whole output rows.
func (c *Conv) apart() bool {
	for d, s := range c.Size {
		if c.Kernel[d] != c.Stride[d] || c.Pad[d] != 0 || c.Dilation[d] != 1 && c.Kernel[d] != 1 || c.OutSize[d] != s*c.Stride[d] {
			return false
		}
	}
	return c.Groups == 1
}

// packApart packs a matrix [In, width of the kernel * Out] for each row of the kernel.
func (pw *PackedConv) packApart(c *Conv, w []float32, lasting bool) {
	taps, width := volume(c.Kernel), c.Kernel[2]*c.Out
	last := make([]float32, c.In*width)
	for r := range c.Kernel[0] * c.Kernel[1] {
		for i := range c.In {
			TransposeF32(last[i*width:], w[i*c.Out*taps+r*c.Kernel[2]:], c.Out, c.Kernel[2], c.Out, taps)
		}
		packed := packedFor[float32](pw, c.In*pw.set.packedWidth(width), lasting)
		pw.set.packB(nil, packed, Matrix{last, width, 1}, c.In, width)
		pw.groups = append(pw.groups, packed)
	}
}

// transposedApart computes each output row as the product of an input row with a row of the kernel: [Size[2], In] times
// [In, Kernel[2]*Out] is [OutSize[2], Out].
func transposedApart(p *pool.Pool, c *Conv, w *PackedConv, x, out []float32, ep *Epilogue) {
	row, width := c.OutSize[2]*c.Out, c.Kernel[2]*c.Out
	rows := c.N * c.OutSize[0] * c.OutSize[1]
	inner := ep.repeated(c.Kernel[2], c.Out)
	p.ParallelFor(rows, max(1, taskWork/(row*c.In)), func(lo, hi int) {
		for t := lo; t < hi; t++ {
			y, z := t%c.OutSize[1], t/c.OutSize[1] // z counts all images' slices
			kernel := z%c.Kernel[0]*c.Kernel[1] + y%c.Kernel[1]
			src := (z/c.Kernel[0]*c.Size[1] + y/c.Kernel[1]) * c.Size[2] * c.In
			m := product[float32]{set: w.set, m: c.Size[2], n: width, segments: 1, length: c.In, x: x[src:], lda: c.In,
				packed: w.groups[kernel], c: out[t*row:], ldc: width, ep: inner.at(t * row)}
			m.run(nil)
		}
	})
}
