package cpu

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/pt2go/pt2/internal/pool"
)

// Winograd's F(4x4, 3x3): a tile of 4x4 outputs of a 3x3 convolution takes 36 multiplications a channel pair, not 144. Input tiles of
// 6x6 and the filters are transformed, multiplied element by element, which is 36 matrix products over the channels, and transformed
// back. Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015. Results are off by some
// 1e-6 of their scale.
//
// Where a result is not finite its tile is computed again by the definition: the transforms spread one infinity over all outputs of
// a tile, and can overflow where the sum does not.

// winogradTile is one tile of one image, all channels.
//
// The assembly knows the order of the fields up to hi.
type winogradTile struct {
	x        []float32 // the input; for the transform back, the products
	offsets  []int     // of the tile's elements in x; for the transform back, in dst
	dst      []float32
	bias     []float32
	scratch  []float32
	plane    int // from one of the 36 matrices to the next
	channels int
	bad      int // not zero if a result is not finite
	lo, hi   float32
}

// winogradKernels transform tiles.
type winogradKernels struct{ in, out tileFunc }

// winogradWeight is a transformed filter.
type winogradWeight struct {
	kernels winogradKernels
	packed  []float32 // 36 times [In, Out]
	plain   []float32 // as it was given,
	scale   []float32 // and what it is multiplied with; nil: 1
}

const (
	winogradOut = 4 // outputs along each side of a tile
	winogradIn  = 6
)

// winogradG is the transform of a filter, row by row, for the points 0, ±a, ±b and infinity. These keep the rounding errors to twice
// those of the direct sum; with the usual 1 and 2 they would be four times as large.
func winogradG() [winogradIn][3]float64 {
	const (
		a, b   = 3. / 4, 3. / 2
		na, nb = 2 * a * a * (a*a - b*b), 2 * b * b * (b*b - a*a)
	)
	return [winogradIn][3]float64{{1 / (a * a * b * b), 0, 0}, {1 / na, a / na, a * a / na}, {1 / na, -a / na, a * a / na},
		{1 / nb, b / nb, b * b / nb}, {1 / nb, -b / nb, b * b / nb}, {0, 0, 1}}
}

// winogradWins tells whether the transform pays: with few channels it takes longer than what it saves, and with few tiles reading the
// filters, four times as large, does.
func (c *Conv) winogradWins() bool {
	one := [3]int{1, 1, 1}
	return c.Kernel == [3]int{1, 3, 3} && c.Stride == one && c.Dilation == one && c.Groups == 1 && c.OutSize[0] == c.Size[0] && c.Pad[0] == 0 &&
		c.In%16 == 0 && c.Out%16 == 0 && c.In >= 32 && c.Out >= 32 && c.winogradTiles() >= 12
}

func (c *Conv) winogradTiles() int {
	return c.N * c.Size[0] * ((c.OutSize[1] + 3) / 4) * ((c.OutSize[2] + 3) / 4)
}

// packWinograd transforms the filters w [Out, In, 3, 3], times scale, a panel at a time.
func (pw *PackedConv) packWinograd(c *Conv, w, scale []float32, kernels winogradKernels, lasting bool) {
	g := winogradG()
	var both [9 * 36]float32
	for i := range 6 {
		for j := range 6 {
			for a := range 3 {
				for b := range 3 {
					both[(3*a+b)*36+6*i+j] = float32(g[i][a] * g[j][b])
				}
			}
		}
	}
	size := c.In * pw.set.packedWidth(c.Out)
	pw.winograd = &winogradWeight{kernels: kernels, plain: w, scale: scale, packed: packedFor[float32](pw, 36*size, lasting)}
	nr := pw.set.nr
	all := scratch(36 * nr * c.In) // of the filters of a panel
	defer all.free()
	for j := 0; j < c.Out; j += nr {
		width := pw.set.panelWidth(j, c.Out)
		n := min(width, c.Out-j)
		pairs := n * c.In
		Gemm(nil, 36, pairs, 9, Matrix{both[:], 1, 36}, Matrix{w[j*c.In*9:], 1, 9}, all.data, pairs, false, nil)
		for p := range 36 {
			from := all.data[p*pairs : (p+1)*pairs]
			if scale != nil {
				for o := range n {
					row := from[o*c.In : (o+1)*c.In]
					MulScalarF32(row, row, scale[j+o])
				}
			}
			packPanel(pw.winograd.packed[p*size+j*c.In:][:c.In*width], from, Matrix{from, 1, c.In}, c.In, n, width)
		}
	}
}

// winogradConv is a convolution on its way through blocks of tiles.
type winogradConv struct {
	c      *Conv
	pw     *PackedConv
	parts  []ConvPart
	out    []float32
	ep     *Epilogue
	bias   []float32
	lo, hi float32
	rest   rest
	high   int // tiles in a column
	wide   int // tiles in a row
}

// ConvPart has some channels of a convolution's input, [N, Size..., Channels]: what a concatenation would put side by side.
type ConvPart struct {
	X        []float32
	Channels int
}

// TakesParts tells whether the packed convolution reads its input from parts, of so many channels each.
func (c *Conv) TakesParts(channels []int) bool {
	for _, n := range channels {
		if n%16 != 0 {
			return false
		}
	}
	_, ok := winogradKernelsOf()
	return ok && c.winogradWins()
}

// ConvPartsNHWC is [ConvNHWC] of the concatenation of parts along the channels, where [Conv.TakesParts].
func ConvPartsNHWC(p *pool.Pool, c *Conv, w *PackedConv, parts []ConvPart, out []float32, ep *Epilogue) {
	defer runtime.KeepAlive(w) // whose memory is not Go's
	if c.N*volume(c.OutSize)*c.Out == 0 {
		return
	}
	ep, buf := ep.apartFrom(out)
	defer buf.free()
	winogradNHWC(p, c, w, parts, out, ep)
}

// winogradShared is how many numbers of the filters all threads may read, each for tiles of its own.
const winogradShared = 1 << 20

// winogradNHWC computes the convolution block by block: the products of a block stay in the second-level cache.
func winogradNHWC(p *pool.Pool, c *Conv, pw *PackedConv, parts []ConvPart, out []float32, ep *Epilogue) {
	w := &winogradConv{c: c, pw: pw, parts: parts, out: out, ep: ep}
	w.high, w.wide = (c.OutSize[1]+3)/4, (c.OutSize[2]+3)/4
	w.bias, w.lo, w.hi, w.rest = ep.biasAndClamp(pw.zeros)
	tiles := c.N * c.Size[0] * w.high * w.wide
	block := min(96, max(24, 3<<17/(36*(c.In+c.Out))/12*12))
	blocks := (tiles + block - 1) / block
	if n := 2 * p.Size(); blocks < n && tiles >= 24*n && n > 2 {
		blocks = n
	}
	if n := p.Size(); blocks < 2*n && 36*c.In*c.Out <= winogradShared && tiles >= 12*n { // a thread each
		blocks = n
	} else if blocks < 2*n {
		for i := range blocks {
			w.block(p, tiles*i/blocks, tiles*(i+1)/blocks)
		}
		return
	}
	p.ParallelFor(blocks, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			w.block(nil, tiles*i/blocks, tiles*(i+1)/blocks)
		}
	})
}

// block computes tiles [t0, t1).
func (w *winogradConv) block(p *pool.Pool, t0, t1 int) {
	c, n := w.c, t1-t0
	inPlane, outPlane := n*c.In+16, n*c.Out+16 // not a multiple of a page, lest the planes share cache sets
	buf := scratch(36 * (inPlane + outPlane))
	defer buf.free()
	in, products := buf.data[:36*inPlane], buf.data[36*inPlane:]
	p.ParallelFor(n, max(1, 512/c.In), func(lo, hi int) {
		t := newWinogradTile(c.Out)
		defer winogradTiles.Put(t)
		t.plane = inPlane
		first := 0
		for _, part := range w.parts {
			t.x, t.channels = part.X, part.Channels
			outside := distance(part.X, w.pw.zeros)
			for i := lo; i < hi; i++ {
				t.dst = in[i*c.In+first:]
				w.inOffsets(t.offsets, t0+i, part.Channels, outside)
				w.pw.winograd.kernels.in((*byte)(unsafe.Pointer(t)))
			}
			first += part.Channels
		}
	})
	size := len(w.pw.winograd.packed) / 36
	p.ParallelFor(36, max(1, taskWork/(n*c.In*c.Out)), func(lo, hi int) {
		for q := lo; q < hi; q++ {
			m := product[float32]{set: w.pw.set, m: n, n: c.Out, x: in[q*inPlane:], lda: c.In, segments: 1, length: c.In,
				packed: w.pw.winograd.packed[q*size:], more: q < 35, c: products[q*outPlane:], ldc: c.Out}
			m.run(nil)
		}
	})
	p.ParallelFor(n, max(1, 512/c.Out), func(lo, hi int) {
		t := newWinogradTile(c.Out)
		defer winogradTiles.Put(t)
		t.plane, t.channels, t.dst, t.bias, t.lo, t.hi = outPlane, c.Out, w.out, w.bias, w.lo, w.hi
		dump := distance(w.out, t.scratch[36*16:])
		for i := lo; i < hi; i++ {
			t.x = products[i*c.Out:]
			w.back(t, t0+i, dump)
		}
	})
}

// place is the image, row and column at which a tile's outputs begin. Images count slices of depth.
func (w *winogradConv) place(i int) (image, y, x int) {
	return i / w.wide / w.high, i / w.wide % w.high * winogradOut, i % w.wide * winogradOut
}

// inOffsets lists where the elements of a tile are read in a part with so many channels.
func (w *winogradConv) inOffsets(dst []int, i, channels, outside int) {
	c := w.c
	image, y, x := w.place(i)
	y -= c.Pad[1]
	x -= c.Pad[2]
	for a := range winogradIn {
		for b := range winogradIn {
			at := outside
			if uint(y+a) < uint(c.Size[1]) && uint(x+b) < uint(c.Size[2]) {
				at = ((image*c.Size[1]+y+a)*c.Size[2] + x + b) * channels
			}
			dst[a*winogradIn+b] = at
		}
	}
}

// back transforms the products of tile i into outputs; those beyond the output's edge go to dump.
func (w *winogradConv) back(t *winogradTile, i, dump int) {
	c := w.c
	image, y, x := w.place(i)
	rows, cols := min(winogradOut, c.OutSize[1]-y), min(winogradOut, c.OutSize[2]-x)
	for a := range winogradOut {
		for b := range winogradOut {
			at := dump
			if a < rows && b < cols {
				at = ((image*c.OutSize[1]+y+a)*c.OutSize[2] + x + b) * c.Out
			}
			t.offsets[a*winogradOut+b] = at
		}
	}
	w.pw.winograd.kernels.out((*byte)(unsafe.Pointer(t)))
	if t.bad != 0 {
		w.again(t, image, y, x, rows, cols)
	}
	if w.rest == restNone {
		return
	}
	for a := range rows {
		for b := range cols {
			at := t.offsets[a*winogradOut+b]
			row := w.out[at : at+c.Out]
			if w.rest == restAct {
				w.ep.Act.Apply(row, row)
			} else {
				w.ep.row(row, at/c.Out, 0)
			}
		}
	}
}

// again computes a tile by the definition.
func (w *winogradConv) again(t *winogradTile, image, y, x, rows, cols int) {
	c := w.c
	for a := range rows {
		for b := range cols {
			at := t.offsets[a*winogradOut+b]
			for o := range c.Out {
				s := w.bias[o]
				f, scale := w.pw.winograd.plain[o*c.In*9:], float32(1)
				if w.pw.winograd.scale != nil {
					scale = w.pw.winograd.scale[o]
				}
				for k := range 9 {
					iy, ix := y+a-c.Pad[1]+k/3, x+b-c.Pad[2]+k%3
					if iy < 0 || iy >= c.Size[1] || ix < 0 || ix >= c.Size[2] {
						continue
					}
					i := 0
					for _, part := range w.parts {
						for _, v := range part.X[((image*c.Size[1]+iy)*c.Size[2]+ix)*part.Channels:][:part.Channels] {
							s += v * (f[i*9+k] * scale)
							i++
						}
					}
				}
				w.out[at+o] = clampF32(s, w.lo, w.hi)
			}
		}
	}
}

// clampF32 keeps NaN.
func clampF32(v, lo, hi float32) float32 {
	if v < lo {
		v = lo
	}
	if v > hi {
		v = hi
	}
	return v
}

var winogradTiles = sync.Pool{New: func() any { return new(winogradTile) }}

// newWinogradTile has scratch for the transforms and, behind it, for a row of channels nobody wants.
func newWinogradTile(channels int) *winogradTile {
	t := winogradTiles.Get().(*winogradTile)
	if t.offsets == nil {
		t.offsets = make([]int, 36)
	}
	if n := 36*16 + channels; len(t.scratch) < n {
		t.scratch = make([]float32, n)
	}
	return t
}
