package cpu

import (
	"unsafe"

	"github.com/pt2go/pt2/internal/pool"
)

// slide is a column of tiles of a depthwise convolution: some columns of some rows of the output, one or two vectors of channels.
// A row of the filters and the sums of a tile stay in registers, and each number of the input is read once a row of the filter.
//
// The assembly knows the order of the fields, and leaves at, to, y and rows changed.
type slide struct {
	x, w, dst, bias []float32
	at              int // of x: the first tap of the first column's window, which may be outside
	row             int // elements between rows of x
	next            int // elements of x from one row of the output to the next
	column          int // elements between columns of x
	out, outRow     int // elements between columns and rows of dst
	tap             int // elements between taps of w
	taps            int // rows of the filter
	y, height       int // the row of x where the window begins, and the number of rows
	stride          int
	rows            int    // of the output
	masks           uint64 // a bit for each of the outermost columns of x, the left ones first: it is inside
	channels        int    // of a single vector
	act             int
	lo, hi          float32
	to              int // of dst: where the first row begins
}

// What the kernels of slide do at the end.
const (
	slideClamp = iota
	slideHardSwish
	slideSiLU
)

// slideTile is a piece of a row of the output.
type slideTile struct {
	first, columns int
	masks          uint64
}

// slideSet has the kernels for filters of one width and one step: by columns less one, nil where there are none.
type slideSet struct {
	one, two [8]tileFunc // a vector of channels, two
}

// slideConv is a depthwise convolution on its way through its tiles.
type slideConv struct {
	c      *Conv
	x, out []float32
	w      []float32
	slide  slide // what all tiles have in common
	set    *slideSet
	tiles  []slideTile
	ep     *Epilogue
	rest   rest
	shift  int // of x: elements before those of the first row that is there
}

// slides tells whether there are kernels that slide along rows for a convolution.
func (c *Conv) slides() bool {
	return c.depthwise() && c.Groups == c.In && c.Out == c.In && c.Kernel[0] == 1 && c.Stride[0] == 1 && c.Pad[0] == 0 && c.Size[0] == c.OutSize[0] &&
		c.Dilation == [3]int{1, 1, 1} && slideSetOf(c.Kernel[2], c.Stride[2]) != nil && slideTiles(c) != nil
}

// newSlide prepares a depthwise convolution for the kernels that slide along rows; nil if there are none for its filters.
func newSlide(c *Conv, pw *PackedConv, x, out []float32, ep *Epilogue) *slideConv {
	if !c.slides() {
		return nil
	}
	w := &slideConv{c: c, x: x, out: out, w: pw.depthwise, set: slideSetOf(c.Kernel[2], c.Stride[2]), tiles: slideTiles(c), ep: ep}
	s := &w.slide
	s.bias, s.lo, s.hi, w.rest = ep.biasAndClamp(pw.zeros)
	s.act, w.rest = slideAct(ep, w.rest)
	s.dst = out
	s.x, s.row, s.column, s.stride = x, c.Size[2]*c.In, c.In, c.Stride[1]
	s.next = s.row * s.stride
	s.out, s.outRow, s.tap, s.taps, s.height = c.Out, c.OutSize[2]*c.Out, c.Out, c.Kernel[1], c.Size[1]
	return w
}

// slideAct is what a kernel does at the end, and what is left to do then.
func slideAct(ep *Epilogue, r rest) (int, rest) {
	if r == restAct {
		switch ep.Act.Kind {
		case ActHardSwish:
			return slideHardSwish, restNone
		case ActSiLU:
			return slideSiLU, restNone
		}
	}
	return slideClamp, r
}

// slideTiles cuts a row of the output into tiles. Columns of the input that lie outside must be among the outermost of a tile, half
// the filter's width at either end; nil if they are not.
func slideTiles(c *Conv) []slideTile {
	var tiles []slideTile
	edge := c.Kernel[2] / 2
	for x := 0; x < c.OutSize[2]; {
		t := slideTile{first: x, columns: slideColumns(c.OutSize[2] - x)}
		inputs := (t.columns-1)*c.Stride[2] + c.Kernel[2]
		for j := range inputs {
			at := x*c.Stride[2] - c.Pad[2] + j
			inside := at >= 0 && at < c.Size[2]
			bit := j
			if right := j - (inputs - edge); right >= 0 {
				bit = edge + right
			} else if j >= edge {
				if !inside {
					return nil
				}
				continue
			}
			if inside {
				t.masks |= 1 << bit
			}
		}
		tiles = append(tiles, t)
		x += t.columns
	}
	return tiles
}

// slideColumns is how many of the columns that are left a tile takes.
func slideColumns(left int) int {
	switch {
	case left%8 == 0:
		return 8
	case left >= 7:
		return 7
	case left >= 4:
		return 4
	case left >= 2:
		return 2
	}
	return 1
}

// slideLanes is how many channels a kernel computes at once.
const slideLanes = 32

// run computes the convolution on the pool's threads: cut by rows, but where they do not come out even.
func (w *slideConv) run(p *pool.Pool) {
	c := w.c
	rows := c.N * c.Size[0] * c.OutSize[1]
	chunks := (c.Out + slideLanes - 1) / slideLanes
	unit := c.OutSize[2] * volume(c.Kernel) * slideLanes // multiplications for a chunk of a row
	per := (rows*chunks + p.Size() - 1) / p.Size()
	per = (per + per/(slideRows*chunks)) / (1 + per/(slideRows*chunks))
	p.ParallelFor(rows*chunks, max(per, slideWork/unit), func(lo, hi int) {
		first, last := lo/chunks, hi/chunks
		if first == last {
			w.part(first, first+1, lo%chunks, hi%chunks)
			return
		}
		if lo%chunks > 0 {
			w.part(first, first+1, lo%chunks, chunks)
			first++
		}
		w.part(first, last, 0, chunks)
		w.part(last, last+1, 0, hi%chunks)
	})
}

// slideRows is how many rows a part has at most, or nearly so.
const slideRows = 16

// slideWork is how many multiplications are worth handing to another thread.
const slideWork = 1 << 16

// part computes rows [r0, r1) of all images, channels of chunks [c0, c1).
func (w *slideConv) part(r0, r1, c0, c1 int) {
	if r0 == r1 || c0 == c1 {
		return
	}
	s := w.slide
	height := w.c.OutSize[1]
	for r := r0; r < r1; {
		image, y := r/height, r%height
		n := min(r1-r, height-y)
		for chunk := c0; chunk < c1; chunk++ {
			for i := range w.tiles {
				w.column(&s, &w.tiles[i], image, y, n, chunk*slideLanes)
			}
		}
		r += n
	}
	if w.rest == restNone {
		return
	}
	lo, hi := c0*slideLanes, min(c1*slideLanes, w.c.Out)
	for i := r0 * w.c.OutSize[2]; i < r1*w.c.OutSize[2]; i++ {
		row := w.out[i*w.c.Out+lo : i*w.c.Out+hi]
		if w.rest == restAct {
			w.ep.Act.Apply(row, row)
		} else {
			w.ep.row(row, i, lo)
		}
	}
}

// column computes a tile of n rows from row y of an image on, for the channels of a chunk.
func (w *slideConv) column(s *slide, t *slideTile, image, y, n, channel int) {
	c := w.c
	first := y*c.Stride[1] - c.Pad[1]
	at := w.shift + (image*c.Size[1]+first)*s.row + (t.first*c.Stride[2]-c.Pad[2])*c.In
	to := (image*c.OutSize[1]+y)*s.outRow + t.first*c.Out
	s.masks = t.masks
	for left := min(slideLanes, c.Out-channel); left > 0; {
		kernel, width := w.set.one[t.columns-1], min(left, slideLanes/2)
		if left == slideLanes {
			kernel, width = w.set.two[t.columns-1], slideLanes
		}
		s.at, s.to, s.w, s.bias = at+channel, to+channel, w.w[channel:], w.slide.bias[channel:]
		s.y, s.rows, s.channels = first, n, width
		kernel((*byte)(unsafe.Pointer(s)))
		left -= width
		channel += width
	}
}
