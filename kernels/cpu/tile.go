package cpu

import (
	"sync"
	"unsafe"
)

// tile is a piece of a matrix product: up to the set's height of rows of A by one panel of packed B.
//
// The sum over k is cut into segments of equal length. In segment s, row r of A is x[offsets[s*mr+r]:] up to length; so A is read
// where it lies, be it a matrix (one segment) or the windows of an image (one segment a tap of the kernel). B goes on from segment
// to segment.
//
// The assembly knows the order of the fields up to hi.
type tile[T Float] struct {
	x                    []T
	offsets              []int
	b, c, bias, residual []T
	ldc, ldr             int
	segments, length     int
	flags                int
	mask                 uint64 // columns that exist: 16 bits for each vector
	left, next           int    // the assembly's own
	ahead                int    // bytes from the panel to what will be needed later, which is fetched into the second-level cache
	lo, hi               T
	rows, width          int
	zeros                []T // what rows at offset outside read
	outside              int
	edge                 []T
	table                []int
}

// What a kernel does to its sums before it stores them, in this order.
const (
	tileBeta       = 1 << iota // add C
	tileBias                   // add bias, a number a column
	tileClampFirst             // between lo and hi
	tileResidual               // add residual, rows ldr apart
	tileClamp                  // between lo and hi
)

type tileFunc = func(t *byte)

// tileSet is a set of kernels: one for each height up to mr, for panels of nr columns and for half panels.
type tileSet[T Float] struct {
	name   string
	mr, nr int
	masked bool       // kernels obey the mask; others write all columns
	full   []tileFunc // by height less one; nil for portable Go
	half   []tileFunc // for a last panel of up to nr/2 columns, packed as narrow; nil if there are none
}

// run computes the tile: C = A*B, with what the flags say.
func (v *tileSet[T]) run(t *tile[T], narrow bool) {
	switch {
	case v.full == nil:
		tileGeneric(t, v.mr, v.nr)
	case narrow:
		v.half[t.rows-1]((*byte)(unsafe.Pointer(t)))
	default:
		v.full[t.rows-1]((*byte)(unsafe.Pointer(t)))
	}
}

// panelWidth is how wide the panel that begins at column j of n is packed.
func (v *tileSet[T]) panelWidth(j, n int) int {
	if v.half != nil && n-j <= v.nr/2 {
		return v.nr / 2
	}
	return v.nr
}

// packedWidth is how many columns n columns take when packed.
func (v *tileSet[T]) packedWidth(n int) int {
	last := n / v.nr * v.nr
	if last == n {
		return n
	}
	return last + v.panelWidth(last, n)
}

// tileGeneric is the portable kernel.
func tileGeneric[T Float](t *tile[T], mr, nr int) {
	var acc [genericRows * genericCols]T
	b := t.b
	for s := range t.segments {
		var rows [genericRows][]T
		for r := range t.rows {
			if at := t.offsets[s*mr+r]; at == t.outside && t.zeros != nil {
				rows[r] = t.zeros[:t.length]
			} else {
				rows[r] = t.x[at : at+t.length]
			}
		}
		for q := range t.length {
			bv := b[q*nr : q*nr+nr]
			for r := range t.rows {
				x, sum := rows[r][q], acc[r*nr:][:len(bv)]
				for j, y := range bv {
					sum[j] += x * y
				}
			}
		}
		b = b[t.length*nr:]
	}
	for r := range t.rows {
		d, sum := t.c[r*t.ldc:][:t.width], acc[r*nr:]
		for j := range d {
			d[j] = t.finish(sum[j], d[j], r, j)
		}
	}
}

// finish is what becomes of a sum; c is the old element of C.
func (t *tile[T]) finish(s, c T, r, j int) T {
	if t.flags&tileBeta != 0 {
		s += c
	}
	if t.flags&tileBias != 0 {
		s += t.bias[j]
	}
	if t.flags&tileClampFirst != 0 {
		s = t.clamp(s)
	}
	if t.flags&tileResidual != 0 {
		s += t.residual[r*t.ldr+j]
	}
	if t.flags&tileClamp != 0 {
		s = t.clamp(s)
	}
	return s
}

// clamp keeps NaN.
func (t *tile[T]) clamp(s T) T {
	if s < t.lo {
		s = t.lo
	}
	if s > t.hi {
		s = t.hi
	}
	return s
}

// fits computes the tile, also where the kernel would write beyond its columns.
func (v *tileSet[T]) fits(t *tile[T], narrow bool) {
	if v.masked || v.full == nil || t.width == v.nr {
		v.run(t, narrow)
		return
	}
	c, ldc, flags := t.c, t.ldc, t.flags
	if t.edge == nil {
		t.edge = make([]T, v.mr*v.nr)
	}
	t.c, t.ldc, t.flags = t.edge, v.nr, 0
	v.run(t, narrow)
	t.c, t.ldc, t.flags = c, ldc, flags
	for r := range t.rows {
		d, sum := c[r*ldc:][:t.width], t.edge[r*v.nr:]
		for j := range d {
			d[j] = t.finish(sum[j], d[j], r, j)
		}
	}
}

var tiles32, tiles64 = sync.Pool{New: func() any { return new(tile[float32]) }}, sync.Pool{New: func() any { return new(tile[float64]) }}

func newTile[T Float]() *tile[T] {
	if nrOf[T]() == 8 {
		return tiles64.Get().(*tile[T])
	}
	return tiles32.Get().(*tile[T])
}

func (t *tile[T]) free() {
	*t = tile[T]{edge: t.edge, table: t.table}
	if nrOf[T]() == 8 {
		tiles64.Put(t)
	} else {
		tiles32.Put(t)
	}
}

// The portable tile.
const (
	genericRows = 4
	genericCols = 16
)

func genericTiles[T Float]() *tileSet[T] {
	return &tileSet[T]{name: "portable", mr: genericRows, nr: genericCols}
}

// tileSetOf is the set of kernels in use.
func tileSetOf[T Float]() *tileSet[T] {
	if nrOf[T]() == 8 {
		return any(tileSets64[levelOf()]).(*tileSet[T])
	}
	return any(tileSets32[levelOf()]).(*tileSet[T])
}
