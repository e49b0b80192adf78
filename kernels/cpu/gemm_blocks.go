package cpu

import "github.com/pt2go/pt2/internal/pool"

// product is a matrix product C = A*B with packed B. Rows of A are given by offsets: segments of them for each tile.
type product[T Float] struct {
	set              *tileSet[T]
	m, n             int
	x                []T
	lda              int      // step of the rows of A, which has one segment,
	windows          *windows // or where they are
	segments, length int
	zeros            []T // see tile
	outside          int
	packed           []T   // panels, each of segments*length rows
	groups           [][]T // instead of packed: each is multiplied with columns of its own of A, and gives columns of its own of C
	more             bool  // what follows packed in memory will be needed next
	c                []T
	ldc              int
	beta             bool
	ep               *Epilogue // nil but for float32
}

// blockElements is how much of packed B is used by all rows of A before the next is. Small blocks leave room in the second-level cache
// for what is fetched ahead, the more so where a single tile goes by; where rows have many segments, going through the rows again costs
// more.
const (
	blockElements        = 64 << 10
	blockElementsTile    = 32 << 10
	blockElementsWindows = 192 << 10
)

// depth is how many rows of a panel one pass takes: the rows of A in the tile stay in the first-level cache. Beyond that another pass,
// which reads and writes C again, costs less than reading A from the second-level cache.
const depth = 768

// fewRows is how many rows can be multiplied with B in the time that it takes to read it from the last-level cache.
const fewRows = 8

// taskWork is how many multiplications are worth handing to another thread: some microseconds.
const taskWork = 1 << 18

// run computes the product on the pool's threads.
func (w *product[T]) run(p *pool.Pool) {
	if c, ok := any(w.c).([]float32); ok {
		ep, beta := w.ep, w.beta
		var buf *buffer[float32]
		w.ep, w.beta, buf = ep.separate(c, beta)
		defer func() {
			buf.free()
			w.ep, w.beta = ep, beta
		}()
	}
	k := w.segments * w.length
	panels := (w.n + w.set.nr - 1) / w.set.nr
	rows, cols := w.split(p.Size(), panels, k)
	if rows*cols == 1 {
		w.part(0, w.m, 0, panels)
		return
	}
	p.ParallelFor(rows*cols, 1, func(lo, hi int) {
		for t := lo; t < hi; t++ {
			i, j := t/cols, t%cols
			w.part(w.m*i/rows, w.m*(i+1)/rows, panels*j/cols, panels*(j+1)/cols)
		}
	})
}

// sharedElements is how much of packed B all threads may read, each for rows of its own.
const sharedElements = 256 << 10

// partRows is how many rows a part has at least where a thread has several.
const partRows = 96

// split chooses into how many parts rows and panels are cut. Rows are preferred: instruction after instruction, a thread then finds what
// it reads in the cache that it wrote it to. But a large B is better read by one thread each.
func (w *product[T]) split(threads, panels, k int) (rows, cols int) {
	if threads == 1 {
		return 1, 1
	}
	parts := min(4*threads, max(w.m, fewRows)*w.n*max(1, len(w.groups))*k/taskWork)
	if parts < 2 {
		return 1, 1
	}
	tiles := (w.m + w.set.mr - 1) / w.set.mr
	if tiles >= 2*threads && k*w.n <= sharedElements {
		return threads * max(1, min(4, w.m/(threads*partRows))), 1
	}
	if w.groups != nil {
		return min(parts, tiles), 1
	}
	if w.m >= w.n {
		rows = min(parts, tiles)
		return rows, min((parts+rows-1)/rows, panels)
	}
	cols = min(parts, panels)
	return min((parts+cols-1)/cols, tiles), cols
}

// part computes rows [i0, i1) of panels [j0, j1).
func (w *product[T]) part(i0, i1, j0, j1 int) {
	if i0 == i1 || j0 == j1 {
		return
	}
	t := newTile[T]()
	defer t.free()
	t.ldc, t.zeros = w.ldc, w.zeros
	s := steps[T]{w: w, t: t}
	s.plan()
	strips := 1
	if s.depth < s.k {
		strips = (i1 - i0 + stripRows - 1) / stripRows
	}
	for i := range strips {
		s.strip(i0+(i1-i0)*i/strips, i0+(i1-i0)*(i+1)/strips, j0, j1)
	}
}

// stripRows is how many rows go through all panels and passes before the next rows do, where there are several passes: the rows of A stay
// in the second-level cache from block to block, and their part of C from pass to pass.
const stripRows = 96

// strip computes rows [i0, i1) of panels [j0, j1).
func (s *steps[T]) strip(i0, i1, j0, j1 int) {
	mr := s.w.set.mr
	tiles := (i1 - i0 + mr - 1) / mr
	for j := j0; j < j1; j += s.panels {
		jn := min(j1, j+s.panels)
		for k := 0; k < s.k; k += s.depth {
			s.from(k)
			for i := range tiles {
				a, b := i0+(i1-i0)*i/tiles, i0+(i1-i0)*(i+1)/tiles
				s.turn = i % fetchTurns
				s.tile(a, b-a, j, jn)
			}
		}
	}
}

// steps is a part's way through its blocks.
type steps[T Float] struct {
	w       *product[T]
	t       *tile[T]
	k       int
	depth   int  // of a pass
	panels  int  // of a block
	at      int  // first row of the panels in this pass
	last    bool // pass
	flags   int  // of the last pass
	after   bool // the epilogue, or its activation, is not done by the kernel
	actOnly bool
	run     []int // offsets of windows side by side
	turn    int   // which lines to fetch ahead
}

// plan chooses the blocks and what the kernel does of the epilogue.
func (s *steps[T]) plan() {
	w, t := s.w, s.t
	s.k = w.segments * w.length
	s.depth = s.k
	t.segments, t.length = w.segments, w.length
	if w.segments == 1 && s.k > depth && w.m > w.set.mr {
		passes := (s.k + depth - 1) / depth
		s.depth = roundUp((s.k+passes-1)/passes, 4)
	}
	block := blockElements
	if w.segments > 1 {
		block = blockElementsWindows
	} else if w.m <= w.set.mr {
		block = blockElementsTile
	}
	s.panels = max(1, block/(s.depth*w.set.nr))
	ep := w.ep
	if ep == nil {
		return
	}
	flags, lo, hi, rest := ep.inKernel()
	s.flags, s.after, s.actOnly = flags, rest != restNone, rest == restAct
	t.lo, t.hi = T(lo), T(hi)
	t.ldr = ep.ResidualStep
}

// from begins the pass at depth k.
func (s *steps[T]) from(k int) {
	w, t := s.w, s.t
	s.at = k
	s.last = k+s.depth >= s.k
	if w.segments == 1 {
		t.length = min(s.depth, s.k-k)
	}
	t.flags = 0
	if k > 0 || w.beta {
		t.flags |= tileBeta
	}
	if s.last {
		t.flags |= s.flags
	}
}

// rows says where rows [i, i+h) of A are.
func (s *steps[T]) rows(i, h int) {
	w, t := s.w, s.t
	t.x, t.outside = w.x, w.outside
	if w.segments == 1 {
		t.x, t.outside = w.x[s.at:], w.outside-s.at
	}
	if w.windows == nil {
		t.table = t.table[:0]
		for r := i; r < i+h; r++ {
			t.table = append(t.table, r*w.lda)
		}
		t.offsets = t.table
		return
	}
	at, ok := w.windows.run(i, h)
	if !ok {
		t.table = w.windows.offsets(t.table[:0], i, h, w.set.mr, t.outside)
		t.offsets = t.table
		return
	}
	if s.run == nil { // windows side by side have the same distances everywhere
		s.run = w.windows.runOffsets(w.set.mr)
	}
	t.x, t.offsets = t.x[at:], s.run
}

// fetchTurns is how many tiles it takes to fetch all lines of the next block: each kernel asks for every fourth one, so that memory
// keeps up while the kernels compute.
const fetchTurns = 4

// ahead is how many bytes after the rows of panel j in this pass what is needed next begins; 0 if nothing is known.
func (s *steps[T]) ahead(j, width int) int {
	size := 64 / nrOf[T]()
	if !s.last {
		return s.depth*width*size + 64*s.turn
	}
	if next := j + s.panels*s.w.set.nr; next < s.w.n || s.w.more {
		return (next-j)*s.k*size - s.at*width*size + 64*s.turn
	}
	return 0
}

// tile multiplies h rows from row i with panels [j0, j1).
func (s *steps[T]) tile(i, h, j0, j1 int) {
	w, t := s.w, s.t
	t.rows = h
	s.rows(i, h)
	if w.groups == nil {
		s.columns(i, h, j0, j1, w.packed, 0)
		return
	}
	x := t.x
	for g, packed := range w.groups {
		t.x = x[g*w.length:] // what is outside is zero there too
		s.columns(i, h, j0, j1, packed, g*w.n)
	}
}

// columns multiplies the rows of the tile, h from row i, with panels [j0, j1) of packed, to columns of C from first on.
func (s *steps[T]) columns(i, h, j0, j1 int, packed []T, first int) {
	w, t, nr := s.w, s.t, s.w.set.nr
	ep := w.ep
	for j := j0 * nr; j < j1*nr; j += nr {
		width := w.set.panelWidth(j, w.n)
		t.width = min(width, w.n-j)
		t.mask = columnMask[T](t.width)
		t.b = packed[j*s.k+s.at*width:]
		t.c = w.c[i*w.ldc+first+j:]
		t.ahead = s.ahead(j, width)
		if t.flags&tileBias != 0 {
			t.bias = any(ep.ColBias[first+j:]).([]T)
		}
		if t.flags&tileResidual != 0 {
			t.residual = any(ep.Residual[i*ep.ResidualStep+first+j:]).([]T)
		}
		w.set.fits(t, width < nr)
	}
	if s.last && s.after {
		s.finish(i, h, first+j0*nr, first+min(w.n, j1*nr))
	}
}

// finish does what the kernels left of the epilogue, for columns [lo, hi) of C.
func (s *steps[T]) finish(i, h, lo, hi int) {
	w, ep := s.w, s.w.ep
	c := any(w.c).([]float32)
	if s.actOnly && lo == 0 && hi == w.ldc { // one run of elements
		all := c[i*w.ldc : (i+h)*w.ldc]
		ep.Act.Apply(all, all)
		return
	}
	for r := i; r < i+h; r++ {
		row := c[r*w.ldc+lo : r*w.ldc+hi]
		if s.actOnly {
			ep.Act.Apply(row, row)
		} else {
			ep.row(row, r, lo)
		}
	}
}

// columnMask has the lanes of the first n columns, 16 bits for each vector of 64 bytes.
func columnMask[T Float](n int) uint64 {
	lanes := nrOf[T]()
	first := min(n, lanes)
	return 1<<first - 1 | (1<<(n-first)-1)<<16
}
