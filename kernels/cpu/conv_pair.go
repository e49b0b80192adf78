package cpu

import (
	"runtime"

	"github.com/pt2go/pt2/internal/pool"
)

// Pair is a convolution of single positions and a depthwise one over its result, which never exists as a whole: it is made a band of
// rows at a time, so that it stays in the cache.
type Pair struct{ First, Second *Conv }

// pairBytes is what a result in between has at least; a smaller one stays in the cache anyway.
const pairBytes = 512 << 10

// bandBytes is about what a band has at most.
const bandBytes = 384 << 10

// Wins tells whether the pair, in the epilogues of which nothing is added, is faster than its parts.
func (c Pair) Wins() bool {
	a, b := c.First, c.Second
	return a.pointwise() && a.Groups == 1 && a.In > 0 && b.slides() && a.N*volume(a.OutSize)*a.Out*4 >= pairBytes
}

// ConvPairNHWC is [ConvNHWC] of First, from x [N, Size..., In] with its epilogue, then of Second to out. The epilogues have no residual.
func ConvPairNHWC(p *pool.Pool, c Pair, wa, wb *PackedConv, x, out []float32, epA, epB *Epilogue) {
	defer runtime.KeepAlive(wa) // whose memory is not Go's
	a, b := c.First, c.Second
	s := newSlide(b, wb, nil, out, epB)
	if s == nil || wa.groups == nil {
		buf := scratch(a.N * volume(a.OutSize) * a.Out)
		defer buf.free()
		ConvNHWC(p, a, wa, x, buf.data, epA)
		ConvNHWC(p, b, wb, buf.data, out, epB)
		return
	}
	w := &convPair{Pair: c, slide: s, x: x}
	w.product = product[float32]{set: wa.set, n: a.Out, segments: 1, length: a.In, lda: a.In, ldc: a.Out, packed: wa.groups[0], ep: epA}
	rows := b.N * b.Size[0] * b.OutSize[1]
	per := (rows + p.Size() - 1) / p.Size()
	p.ParallelFor(rows, (per+per/slideRows)/(1+per/slideRows), w.part)
}

// convPair is a pair on its way through the rows of the output.
type convPair struct {
	Pair
	product product[float32]
	slide   *slideConv
	x       []float32
}

// part computes rows [lo, hi) of the output, of all images.
func (w *convPair) part(lo, hi int) {
	b := w.Second
	row, height := b.Size[2]*b.In, b.OutSize[1]
	rows := max(1, (max(bandBytes/(4*row), b.Kernel[1])-b.Kernel[1])/b.Stride[1]+1) // of the output in a band
	buf := scratch(((rows-1)*b.Stride[1] + b.Kernel[1]) * row)
	defer buf.free()
	slide := *w.slide
	slide.slide.x = buf.data
	chunks := (b.Out + slideLanes - 1) / slideLanes
	image, from, to := -1, 0, 0 // rows of the result in between that are there
	for lo < hi {
		y := lo % height
		n := min(rows, hi-lo, height-y)
		first := max(0, y*b.Stride[1]-b.Pad[1])
		last := max(first, min(b.Size[1], (y+n-1)*b.Stride[1]-b.Pad[1]+b.Kernel[1]))
		if lo/height != image || first >= to {
			image, to = lo/height, first
		} else {
			copy(buf.data, buf.data[(first-from)*row:(to-from)*row])
		}
		from = first
		w.rows(image, to, last, buf.data[(to-from)*row:])
		to = last
		slide.shift = -(image*b.Size[1] + from) * row
		slide.part(lo, lo+n, 0, chunks)
		lo += n
	}
}

// rows computes rows [lo, hi) of the result in between.
func (w *convPair) rows(image, lo, hi int, c []float32) {
	a := w.First
	m := w.product
	width := a.OutSize[2]
	m.m, m.x, m.c = (hi-lo)*width, w.x[(image*a.OutSize[1]+lo)*width*a.In:], c
	m.part(0, m.m, 0, (m.n+m.set.nr-1)/m.set.nr)
}
