package cpu

import (
	"runtime"
	"unsafe"

	"github.com/pt2go/pt2/internal/pool"
)

// PackedConv is a convolution's weight in the order in which [ConvNHWC] reads it, and what else does not change between runs: made
// once, shared by all runs.
type PackedConv struct {
	set       *tileSet[float32]
	groups    [][]float32 // packed [kernel * In/Groups, Out/Groups] for each group
	depthwise []float32   // [kernel, In/Groups, Out]
	winograd  *winogradWeight
	apart     bool      // transposed: a matrix for each row of the kernel, see [Conv.apart]
	phases    []phase   // transposed: convolutions whose results interleave
	zeros     []float32 // what taps beyond the input's edge read
}

// depthwise reports groups of one channel in, or of so few in and out that vectors are better filled with channels of several groups.
func (c *Conv) depthwise() bool {
	if c.Groups == 1 {
		return false
	}
	if c.In != c.Out {
		return c.In == c.Groups
	}
	group := c.In / c.Groups
	return group == 1 || group == 2 || group == 4 || group == 8
}

// PackConv packs w, a contiguous weight [Out, In/Groups, Kernel...], for the convolution c, times scale, a number for each output channel
// (nil: 1). The result serves any N, Size and OutSize; those of c decide which algorithm is faster. w must not change as long as the result
// is used. What is lasting, as a model's weights are, lies outside of Go's heap.
func PackConv(c *Conv, w, scale []float32, lasting bool) *PackedConv {
	taps, inG, outG := volume(c.Kernel), c.In/c.Groups, c.Out/c.Groups
	if c.depthwise() {
		pw := &PackedConv{depthwise: make([]float32, taps*inG*c.Out), zeros: make([]float32, c.Out)}
		for o := range c.Out { // [Out, In/Groups, kernel] becomes [kernel, In/Groups, Out]
			f := float32(1)
			if scale != nil {
				f = scale[o]
			}
			for q := range inG {
				for t := range taps {
					pw.depthwise[(t*inG+q)*c.Out+o] = w[(o*inG+q)*taps+t] * f
				}
			}
		}
		return pw
	}
	k := taps * inG
	pw := &PackedConv{set: tileSetOf[float32](), zeros: make([]float32, max(c.Out, c.In, inG*c.Kernel[2]))}
	if kernels, ok := winogradKernelsOf(); ok && c.winogradWins() {
		pw.packWinograd(c, w, scale, kernels, lasting)
		return pw
	}
	for g := range c.Groups {
		packed := packedFor[float32](pw, k*pw.set.packedWidth(outG), lasting)
		f := scale
		if f != nil {
			f = f[g*outG:]
		}
		pw.packFilters(packed, w[g*outG*k:(g+1)*outG*k], f, inG, taps, outG)
		pw.groups = append(pw.groups, packed)
	}
	return pw
}

// packFilters packs w [Out, In, kernel], panel by panel, so that little memory is needed for filters whose order is changed.
func (pw *PackedConv) packFilters(dst, w, scale []float32, in, taps, out int) {
	k := in * taps
	if k == 0 {
		return
	}
	changed := taps > 1 && in > 1 || scale != nil
	var buf *buffer[float32]
	if changed {
		buf = scratch(min(out, pw.set.nr) * k)
		defer buf.free()
	}
	for j := 0; j < out; j += pw.set.nr {
		width := pw.set.panelWidth(j, out)
		n := min(width, out-j)
		src := w[j*k : (j+n)*k]
		if changed {
			for o := range n { // [In, kernel] becomes [kernel, In]
				row := buf.data[o*k : (o+1)*k]
				TransposeF32(row, src[o*k:], in, taps, in, taps)
				if scale != nil {
					MulScalarF32(row, row, scale[j+o])
				}
			}
			src = buf.data
		}
		packPanel(dst[j*k:][:k*width], src, Matrix{src, 1, k}, k, n, width)
	}
}

// ConvNHWC computes the convolution of x [N, Size..., In] to out [N, OutSize..., Out], both dense with channels last, then the
// epilogue (ColBias has one number an output channel, Residual has out's layout and may be out; RowBias is not used).
func ConvNHWC(p *pool.Pool, c *Conv, w *PackedConv, x, out []float32, ep *Epilogue) {
	positions := c.N * volume(c.OutSize)
	if positions*c.Out == 0 {
		return
	}
	defer runtime.KeepAlive(w) // whose memory is not Go's
	if w.winograd != nil || w.depthwise != nil {
		var buf *buffer[float32]
		ep, buf = ep.apartFrom(out)
		defer buf.free()
	}
	if w.winograd != nil {
		winogradNHWC(p, c, w, []ConvPart{{x, c.In}}, out, ep)
		return
	}
	if w.depthwise != nil {
		if c.Out != c.In {
			wide, buf := c.spread(p, x)
			defer buf.free()
			depthwiseNHWC(p, wide, w, buf.data, out, ep)
			return
		}
		depthwiseNHWC(p, c, w, x, out, ep)
		return
	}
	inG, outG := c.In/c.Groups, c.Out/c.Groups
	if c.stems() {
		ep, buf := ep.apartFrom(out)
		defer buf.free()
		stemNHWC(p, c, w, x, out, ep)
		return
	}
	if c.Planar {
		buf := c.planesLast(p, x)
		defer buf.free()
		x = buf.data
	}
	if inG == 0 {
		emptyProduct(positions, c.Out, out, c.Out, false, ep.over(out, c.Out))
		return
	}
	m := product[float32]{set: w.set, m: positions, n: outG, segments: 1, length: inG, ldc: c.Out, zeros: w.zeros}
	switch {
	case c.pointwise():
		m.lda = c.In
	case c.mergesTaps():
		padded, buf := c.padded(p, x)
		defer buf.free()
		x = buf.data
		m.windows = padded.windows(c.In, true)
		m.length = inG * c.Kernel[2]
	default:
		m.windows = c.windows(c.In, false)
	}
	if m.windows != nil {
		m.segments = len(m.windows.taps)
	}
	m.packed, m.x, m.c, m.ep = w.groups[0], x, out, ep
	if c.Groups > 1 {
		m.groups = w.groups
	}
	m.outside = distance(m.x, w.zeros)
	m.run(p)
}

// spread repeats each channel of x for the outputs that are made of it. The description of the convolution over the copy comes with it.
func (c *Conv) spread(p *pool.Pool, x []float32) (*Conv, *buffer[float32]) {
	to := *c
	to.In, to.Groups = c.Out, c.Out
	times := c.Out / c.In
	n := c.N * volume(c.Size) * c.In
	buf := scratch(n * times)
	p.ParallelFor(n, 1<<14, func(lo, hi int) {
		dst := buf.data[lo*times : hi*times]
		for _, v := range x[lo:hi] {
			d := dst[:times]
			for i := range d {
				d[i] = v
			}
			dst = dst[times:]
		}
	})
	return &to, buf
}

// distance is from a's first element to b's, in elements; both are aligned as float32 are.
func distance(a, b []float32) int {
	return (int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) - int(uintptr(unsafe.Pointer(unsafe.SliceData(a))))) / 4
}

// pointwise reports a kernel of one element that goes over all positions.
func (c *Conv) pointwise() bool {
	return volume(c.Kernel) == 1 && c.Stride == [3]int{1, 1, 1} && c.Pad == [3]int{} && c.OutSize == c.Size
}

// mergesTaps reports so few channels that the taps of a row are better read as one run, which takes a padded copy of the input.
func (c *Conv) mergesTaps() bool {
	return c.Groups == 1 && c.In < 16 && c.Kernel[2] > 1 && c.Dilation[2] == 1
}

// padded copies x with its padding. The description of the convolution over the copy comes with it.
func (c *Conv) padded(p *pool.Pool, x []float32) (*Conv, *buffer[float32]) {
	to := *c
	to.Pad = [3]int{}
	for d := range to.Size {
		to.Size[d] = (c.OutSize[d]-1)*c.Stride[d] + (c.Kernel[d]-1)*c.Dilation[d] + 1
	}
	row, size := to.Size[2]*c.In, c.Size[2]*c.In
	buf := scratch(c.N * to.Size[0] * to.Size[1] * row)
	p.ParallelFor(c.N*to.Size[0]*to.Size[1], max(1, 16384/row), func(lo, hi int) {
		for t := lo; t < hi; t++ {
			y, z, n := t%to.Size[1]-c.Pad[1], t/to.Size[1]%to.Size[0]-c.Pad[0], t/to.Size[1]/to.Size[0]
			dst := buf.data[t*row : (t+1)*row]
			if y < 0 || y >= c.Size[1] || z < 0 || z >= c.Size[0] {
				clear(dst)
				continue
			}
			src := x[((n*c.Size[0]+z)*c.Size[1]+y)*size:][:size]
			left := min(c.Pad[2]*c.In, row)
			clear(dst[:left])
			copied := copy(dst[left:], src)
			clear(dst[left+copied:])
		}
	})
	return &to, buf
}
