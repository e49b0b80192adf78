package cpu

import (
	"unsafe"

	"github.com/pt2go/pt2/internal/pool"
)

// stem is a run of tiles of a convolution of few channels, such as those that read an image: some columns each of a row of the output, up to
// two vectors of channels. The input is padded, so that a window's row is one run of numbers.
//
// The assembly knows the order of the fields, and leaves at, to and tiles changed.
type stem struct {
	x, w, bias, dst []float32
	at              int // of x: the first column's window
	row             int // elements between rows of x
	column          int // elements between windows
	length          int // of a run
	taps            int // rows of the kernel
	out             int // elements between columns of dst
	to              int // of dst: where the first column begins
	tiles           int
	mask            uint64
	act             int // as slide's
	lo, hi          float32
}

// TakesPlanar tells whether [Conv.Planar] may be set: for the convolutions of few channels that read an image.
func (c *Conv) TakesPlanar() bool {
	return c.mergesTaps() && c.In >= 1 && c.In <= 4 && c.Kernel[0] == 1 && c.Stride[0] == 1 && c.Pad[0] == 0 && c.Size[0] == c.OutSize[0] &&
		c.Dilation == [3]int{1, 1, 1} && c.Pad[1] >= 0 && c.Pad[2] >= 0
}

// stems tells whether there are kernels of that kind for a convolution.
func (c *Conv) stems() bool { return stemSetOf() != nil && c.TakesPlanar() }

// planesLast copies a planar x with channels last.
func (c *Conv) planesLast(p *pool.Pool, x []float32) *buffer[float32] {
	size := volume(c.Size)
	buf := scratch(c.N * c.In * size)
	p.ParallelFor(c.N, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			TransposeF32(buf.data[i*c.In*size:], x[i*c.In*size:], c.In, size, c.In, size)
		}
	})
	return buf
}

// stemSet has the kernels by vectors less one and columns less one; nil where there are none.
type stemSet [2][14]tileFunc

// stemConv is such a convolution on its way through the rows of the output.
type stemConv struct {
	c      *Conv
	x, out []float32
	packed []float32
	ep     *Epilogue
	stem   stem // what all tiles have in common
	rest   rest
	set    *stemSet
	width  int // elements of a padded row
}

// stemNHWC computes the convolution, a band of rows after the other.
func stemNHWC(p *pool.Pool, c *Conv, pw *PackedConv, x, out []float32, ep *Epilogue) {
	w := &stemConv{c: c, x: x, out: out, packed: pw.groups[0], ep: ep, set: stemSetOf()}
	w.width = ((c.OutSize[2]-1)*c.Stride[2] + c.Kernel[2]) * c.In
	s := &w.stem
	s.bias, s.lo, s.hi, w.rest = ep.biasAndClamp(pw.zeros)
	s.act, w.rest = slideAct(ep, w.rest)
	s.dst, s.row, s.column, s.length, s.taps, s.out = out, w.width, c.Stride[2]*c.In, c.Kernel[2]*c.In, c.Kernel[1], c.Out
	rows := c.N * c.Size[0] * c.OutSize[1]
	per := (rows + p.Size() - 1) / p.Size()
	work := c.OutSize[2] * c.Out * c.Kernel[1] * c.Kernel[2] * c.In // of a row
	p.ParallelFor(rows, max((per+per/(2*slideRows))/(1+per/(2*slideRows)), slideWork/work), w.part)
}

// stemRows is how many rows of the output a band has.
const stemRows = 4

// part computes rows [lo, hi) of the output, of all images.
func (w *stemConv) part(lo, hi int) {
	c := w.c
	buf := scratch(((stemRows-1)*c.Stride[1] + c.Kernel[1]) * w.width)
	defer buf.free()
	s := w.stem
	s.x = buf.data
	for lo < hi {
		image, y := lo/c.OutSize[1], lo%c.OutSize[1]
		n := min(stemRows, hi-lo, c.OutSize[1]-y)
		first := y*c.Stride[1] - c.Pad[1]
		for r := range (n-1)*c.Stride[1] + c.Kernel[1] {
			w.padRow(buf.data[r*w.width:(r+1)*w.width], image, first+r)
		}
		for j := 0; j < c.Out; j += 32 {
			w.columns(&s, lo, n, j)
		}
		if w.rest != restNone {
			for i := lo * c.OutSize[2]; i < (lo+n)*c.OutSize[2]; i++ {
				row := w.out[i*c.Out : (i+1)*c.Out]
				if w.rest == restAct {
					w.ep.Act.Apply(row, row)
				} else {
					w.ep.row(row, i, 0)
				}
			}
		}
		lo += n
	}
}

// padRow copies row y of an image, zeros around it.
func (w *stemConv) padRow(dst []float32, image, y int) {
	c := w.c
	if y < 0 || y >= c.Size[1] {
		clear(dst)
		return
	}
	left := min(c.Pad[2]*c.In, len(dst))
	clear(dst[:left])
	n := min(c.Size[2]*c.In, len(dst)-left)
	if c.Planar && c.In > 1 {
		plane := c.Size[0] * c.Size[1] * c.Size[2]
		src := w.x[image/c.Size[0]*c.In*plane+(image%c.Size[0]*c.Size[1]+y)*c.Size[2]:]
		TransposeF32(dst[left:], src, c.In, n/c.In, c.In, plane)
	} else {
		copy(dst[left:left+n], w.x[(image*c.Size[1]+y)*c.Size[2]*c.In:])
	}
	clear(dst[left+n:])
}

// columns computes n rows from row r of the output on, channels of the panel that begins at j.
func (w *stemConv) columns(s *stem, r, n, j int) {
	c := w.c
	left := min(32, c.Out-j)
	v := (left + 15) / 16
	k := c.Kernel[1] * c.Kernel[2] * c.In
	s.w, s.bias, s.mask = w.packed[j*k:], w.stem.bias[j:], columnMask[float32](left)
	for i := range n {
		s.at, s.to = i*c.Stride[1]*w.width, (r+i)*c.OutSize[2]*c.Out+j
		for x := 0; x < c.OutSize[2]; {
			columns := 14
			for columns > c.OutSize[2]-x {
				columns /= 2 // 7, 3
				if columns == 3 && c.OutSize[2]-x >= 4 {
					columns = 4
				} else if columns == 3 {
					columns = min(2, c.OutSize[2]-x)
				}
			}
			s.tiles = (c.OutSize[2] - x) / columns
			x += s.tiles * columns
			w.set[v-1][columns-1]((*byte)(unsafe.Pointer(s)))
		}
	}
}
