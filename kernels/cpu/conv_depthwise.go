package cpu

import (
	"runtime"
	"unsafe"

	"github.com/pt2go/pt2/internal/pool"
)

// depthwise is a run of tiles: some columns of a row of the output each, all channels. The value of column i is the sum over the taps
// t of w[t*channels:] * x[offsets[t*depthwiseColumns+i]:]. With groups of several channels, as many in as out, a tap has as many rows
// of w: row q is multiplied with channel q of each group.
//
// The assembly knows the order of the fields up to hi.
type depthwise struct {
	xAt      moving
	offsets  []int
	w        []float32
	dstAt    moving
	bias     []float32
	channels int
	step     int // from column to column of dst
	taps     int
	advance  int // of x from tile to tile
	tiles    int
	permute  []int32 // for each channel of a group, the lanes of a vector it is spread from
	group    int     // channels of a group
	lo, hi   float32
	x, dst   []float32
	columns  int
	table    []int     // where offsets begin
	zeros    []float32 // what taps at offset outside read
	outside  int
}

// moving is an address that a kernel moves as it goes, at last behind the end of its slice: so it must not be a pointer, which the garbage
// collector would look at. It takes a slice's place.
type moving struct {
	at uintptr
	_  [2]int
}

func movingFrom(x []float32) moving { return moving{at: uintptr(unsafe.Pointer(unsafe.SliceData(x)))} }

// depthwiseColumns is how many columns a tile has at most.
const depthwiseColumns = 4

// run computes the tiles. The kernels leave their number at 0.
func (d *depthwise) run(kernels []tileFunc, lanes int) {
	if kernels == nil {
		d.portable(0)
		return
	}
	rest := d.channels / lanes * lanes
	if rest < d.channels {
		d.portable(rest)
	}
	if rest > 0 {
		d.xAt, d.dstAt = movingFrom(d.x), movingFrom(d.dst)
		kernels[d.columns-1]((*byte)(unsafe.Pointer(d)))
		runtime.KeepAlive(d)
	}
}

// portable computes channels from first on.
func (d *depthwise) portable(first int) {
	for tile := range d.tiles {
		for i := range d.columns {
			dst := d.dst[(tile*d.columns+i)*d.step:][first:d.channels]
			copy(dst, d.bias[first:])
			for t := range d.taps {
				src := d.zeros
				if at := d.offsets[t*depthwiseColumns+i]; at != d.outside {
					src = d.x[at+tile*d.advance:]
				}
				src = src[first:][:len(dst)]
				for q := range d.group {
					f := d.w[(t*d.group+q)*d.channels+first:][:len(dst)]
					if d.group == 1 {
						for j, v := range src {
							dst[j] += v * f[j]
						}
						continue
					}
					for j := range dst {
						dst[j] += src[j/d.group*d.group+q] * f[j]
					}
				}
			}
			for j, v := range dst {
				if v < d.lo {
					dst[j] = d.lo
				} else if v > d.hi {
					dst[j] = d.hi
				}
			}
		}
	}
}

// depthwiseConv is a depthwise convolution on its way through the rows of the output.
type depthwiseConv struct {
	c       *Conv
	pw      *PackedConv
	windows *windows
	x, out  []float32
	ep      *Epilogue
	bias    []float32
	lo, hi  float32
	rest    rest
	outside int
	inner   [2]int // columns whose windows are inside the input along the width
	kernels []tileFunc
	lanes   int
}

// depthwiseNHWC convolves each channel, or each group of few, with its own filters.
func depthwiseNHWC(p *pool.Pool, c *Conv, pw *PackedConv, x, out []float32, ep *Epilogue) {
	if s := newSlide(c, pw, x, out, ep); s != nil {
		s.run(p)
		return
	}
	group := c.In / c.Groups
	w := &depthwiseConv{c: c, pw: pw, windows: c.windows(c.In, false), x: x, out: out, ep: ep, outside: distance(x, pw.zeros)}
	w.bias, w.lo, w.hi, w.rest = ep.biasAndClamp(pw.zeros)
	w.kernels, w.lanes = depthwiseKernels(group > 1)
	permute := permutation(group)
	stride, span := c.Stride[2], (c.Kernel[2]-1)*c.Dilation[2]
	w.inner[0] = min(c.OutSize[2], (c.Pad[2]+stride-1)/stride)
	w.inner[1] = max(w.inner[0], min(c.OutSize[2], (c.Size[2]-1-span+c.Pad[2]+stride)/stride))
	if c.Size[2]-1-span+c.Pad[2] < 0 {
		w.inner[1] = w.inner[0]
	}
	row := c.OutSize[2] * c.Out
	p.ParallelFor(c.N*c.OutSize[0]*c.OutSize[1], max(1, 1<<18/(row*volume(c.Kernel)*group)), func(lo, hi int) {
		d := depthwise{channels: c.Out, group: group, permute: permute, step: c.Out, bias: w.bias, lo: w.lo, hi: w.hi, zeros: pw.zeros, outside: w.outside}
		for t := lo; t < hi; t++ {
			w.row(&d, t)
		}
	})
}

// permutation lists for each channel q of a group which lane of sixteen each lane is taken from: channel q of its group.
func permutation(group int) []int32 {
	p := make([]int32, 0, 16*group)
	for q := range group {
		for l := range 16 {
			p = append(p, int32(l/group*group+q))
		}
	}
	return p
}

// row computes row t of the output.
func (w *depthwiseConv) row(d *depthwise, t int) {
	w.border(d, t, 0, w.inner[0])
	n := w.inner[1] - w.inner[0]
	if n > 0 {
		w.tiles(d, t, w.inner[0], depthwiseColumns, n/depthwiseColumns)
		w.tiles(d, t, w.inner[1]-n%depthwiseColumns, n%depthwiseColumns, 1)
	}
	w.border(d, t, w.inner[1], w.c.OutSize[2])
	size := w.c.OutSize[2]
	row := w.out[t*size*w.c.Out : (t+1)*size*w.c.Out]
	switch w.rest {
	case restAct:
		w.ep.Act.Apply(row, row)
	case restAll:
		for i := range size {
			w.ep.row(row[i*w.c.Out:(i+1)*w.c.Out], t*size+i, 0)
		}
	}
}

// border computes columns [x0, x1), some of whose taps are outside.
func (w *depthwiseConv) border(d *depthwise, t, x0, x1 int) {
	for x := x0; x < x1; x += depthwiseColumns {
		w.tiles(d, t, x, min(depthwiseColumns, x1-x), 1)
	}
}

// tiles computes n tiles of some columns from column x on. The windows of all but the first tile must be inside along the width.
func (w *depthwiseConv) tiles(d *depthwise, t, x, columns, n int) {
	if columns == 0 || n == 0 {
		return
	}
	c := w.c
	first, last := w.rows(t % c.OutSize[1])
	z := t/c.OutSize[1]%c.OutSize[0]*c.Stride[0] - c.Pad[0]
	inside := z >= 0 && z+(c.Kernel[0]-1)*c.Dilation[0] < c.Size[0] && first < last && (c.Kernel[0] == 1 || last-first == c.Kernel[1])
	if !inside && n > 1 { // what is outside must not move
		for tile := range n {
			w.tiles(d, t, x+tile*columns, columns, 1)
		}
		return
	}
	i := t*c.OutSize[2] + x
	d.table = w.windows.offsets(d.table[:0], i, columns, depthwiseColumns, w.outside)
	d.offsets, d.w, d.taps = d.table, w.pw.depthwise, len(w.windows.taps)
	if c.Kernel[0] == 1 && first < last { // rows of taps outside are left out
		d.offsets = d.table[first*c.Kernel[2]*depthwiseColumns:]
		d.w = d.w[first*c.Kernel[2]*d.group*c.Out:]
		d.taps = (last - first) * c.Kernel[2]
	}
	d.x, d.dst, d.columns, d.tiles, d.advance = w.x, w.out[i*c.Out:], columns, n, columns*c.Stride[2]*c.In
	d.run(w.kernels, w.lanes)
}

// rows is the range of the kernel's rows that are inside the input for a row of the output.
func (w *depthwiseConv) rows(y int) (first, last int) {
	c := w.c
	at := y*c.Stride[1] - c.Pad[1]
	for first < c.Kernel[1] && at+first*c.Dilation[1] < 0 {
		first++
	}
	last = c.Kernel[1]
	for last > first && at+(last-1)*c.Dilation[1] >= c.Size[1] {
		last--
	}
	return first, last
}
