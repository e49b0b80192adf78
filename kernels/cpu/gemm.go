package cpu

import (
	"unsafe"

	"github.com/pt2go/pt2/internal/pool"
)

// Block sizes of the packed product, in elements. A micro-kernel computes an mr x nr tile of C from packed panels of A (mr rows,
// k-major) and B (nr columns, k-major); nr is 16 for float32 and 8 for float64.
const (
	mr = 6
	mc = 120  // rows of A packed at once: mc*kc elements stay in the second-level cache
	kc = 256  // depth: kc*nr elements stay in the first-level cache
	nc = 3072 // columns of B packed at once
	nr = 16   // of float32
)

// Float is what the matrix product computes in.
type Float interface{ float32 | float64 }

// nrOf is the width of a micro-kernel's tile.
func nrOf[T Float]() int {
	var x T
	return 64 / int(unsafe.Sizeof(x))
}

// MatrixOf is a strided view: element (i, j) is Data[i*Row + j*Col].
type MatrixOf[T Float] struct {
	Data     []T
	Row, Col int
}

// Matrix is a strided view of float32.
type Matrix = MatrixOf[float32]

// Epilogue is what happens to a tile of C when its last products are in: C = act(C + Bias + Residual), or with ActFirst
// C = act(C + Bias) + Residual.
type Epilogue struct {
	// ColBias has one number a column, RowBias one a row; nil for none.
	ColBias, RowBias []float32
	// Residual is added, element by element, rows ResidualStep apart; nil for none. It may be C itself.
	Residual     []float32
	ResidualStep int
	Act          Activation
	ActFirst     bool
}

// PackedB is a matrix B [K, N] in the order in which the kernel reads it: made once for weights, shared by all runs.
type PackedB struct {
	K, N int
	data []float32 // panels of nr columns for each block of kc rows
}

// PackB packs b, a [K, N] matrix.
func PackB(b Matrix, k, n int) *PackedB {
	p := &PackedB{K: k, N: n, data: make([]float32, k*roundUp(n, nr))}
	off := 0
	for k0 := 0; k0 < k; k0 += kc {
		kb := min(kc, k-k0)
		packB(p.data[off:], b, k0, kb, 0, n)
		off += kb * roundUp(n, nr)
	}
	return p
}

func roundUp(n, m int) int { return (n + m - 1) / m * m }

// product is one matrix product on its way through the blocks.
type product[T Float] struct {
	pool   *pool.Pool
	m, n   int
	a      MatrixOf[T]
	packed *PackedA // a, if packed before
	c      []T
	ldc    int
	finish func(rows [2]int, cols [2]int) // the epilogue of a part of C
}

// Gemm computes C = A*B + beta*C for A [M, K] and B [K, N], C row-major with step ldc (beta is 0 or 1), then the epilogue.
// With beta 0 the old C is not read. Accumulation is in float32 with fused multiply-add where the CPU has it. C overlaps neither A
// nor B.
func Gemm(p *pool.Pool, m, n, k int, a, b Matrix, c []float32, ldc int, beta bool, ep *Epilogue) {
	if m == 0 || n == 0 {
		return
	}
	finish := ep.over(c, ldc)
	switch {
	case k == 0:
		emptyProduct(m, n, c, ldc, beta, finish)
	case m <= smallRows && (b.Col == 1 || b.Row == 1 && a.Col == 1):
		gemmSmall(p, m, n, k, a, b, c, ldc, beta, finish)
	default:
		(&product[float32]{pool: p, m: m, n: n, a: a, c: c, ldc: ldc, finish: finish}).run(k, b, beta)
	}
}

// GemmF64 is [Gemm] in float64, without an epilogue.
func GemmF64(p *pool.Pool, m, n, k int, a, b MatrixOf[float64], c []float64, ldc int, beta bool) {
	switch {
	case m == 0 || n == 0:
	case k == 0:
		emptyProduct(m, n, c, ldc, beta, nil)
	default:
		(&product[float64]{pool: p, m: m, n: n, a: a, c: c, ldc: ldc}).run(k, b, beta)
	}
}

// GemmPacked is [Gemm] with B packed before.
func GemmPacked(p *pool.Pool, m int, a Matrix, b *PackedB, c []float32, ldc int, beta bool, ep *Epilogue) {
	if m == 0 || b.N == 0 {
		return
	}
	finish := ep.over(c, ldc)
	if b.K == 0 {
		emptyProduct(m, b.N, c, ldc, beta, finish)
		return
	}
	if m <= packedRows && a.Col == 1 {
		gemmPackedSmall(p, m, a, b, c, ldc, beta, finish)
		return
	}
	w := &product[float32]{pool: p, m: m, n: b.N, a: a, c: c, ldc: ldc, finish: finish}
	off := 0
	for k0 := 0; k0 < b.K; k0 += kc {
		kb := min(kc, b.K-k0)
		size := kb * roundUp(b.N, nr)
		w.rows(k0, kb, 0, b.N, b.data[off:off+size], beta || k0 > 0, k0+kb == b.K)
		off += size
	}
}

func emptyProduct[T Float](m, n int, c []T, ldc int, beta bool, finish func(rows, cols [2]int)) {
	if !beta {
		for i := range m {
			clear(c[i*ldc : i*ldc+n])
		}
	}
	if finish != nil {
		finish([2]int{0, m}, [2]int{0, n})
	}
}

// run packs B block by block and multiplies all rows of A with each.
func (w *product[T]) run(k int, b MatrixOf[T], beta bool) {
	nr := nrOf[T]()
	for j0 := 0; j0 < w.n; j0 += nc {
		nb := min(nc, w.n-j0)
		for k0 := 0; k0 < k; k0 += kc {
			kb := min(kc, k-k0)
			bp := scratchOf[T](kb * roundUp(nb, nr))
			w.pool.ParallelFor(roundUp(nb, nr)/nr, max(1, 8192/kb), func(lo, hi int) {
				packB(bp.data[lo*kb*nr:], b, k0, kb, j0+lo*nr, min(nb, hi*nr)-lo*nr)
			})
			w.rows(k0, kb, j0, nb, bp.data, beta || k0 > 0, k0+kb == k)
			bp.free()
		}
	}
}

// rows multiplies all rows of A at depth [k0, k0+kb) with one packed block of B. Work is split over rows, and over columns too where
// there are few rows.
func (w *product[T]) rows(k0, kb, j0, nb int, bp []T, beta, last bool) {
	nr, size := nrOf[T](), w.pool.Size()
	// As many blocks as is a multiple of the threads, none above mc rows.
	blocks := roundUp((w.m+mc-1)/mc, size)
	mb := max(mr, roundUp((w.m+blocks-1)/blocks, mr))
	blocks = (w.m + mb - 1) / mb
	panels := roundUp(nb, nr) / nr
	split := 1
	if blocks < size {
		split = min(panels, (size+blocks-1)/blocks)
	}
	per := (panels + split - 1) / split
	grain := max(1, 32768/(mb*per*nr*kb+1)) // a hand-off costs as much as some ten thousand products
	w.pool.ParallelFor(blocks*split, grain, func(lo, hi int) {
		ap := scratchOf[T](mb*kb + slack)
		defer ap.free()
		packed := -1
		for t := lo; t < hi; t++ {
			ib, j := t/split, t%split*per*nr
			if j >= nb {
				continue
			}
			i0, cols := ib*mb, min(nb-j, per*nr)
			rows := min(mb, w.m-i0)
			panel := ap.data
			switch {
			case w.packed != nil:
				panel = any(w.packed.data).([]T)[k0*roundUp(w.m, mr)+i0*kb:]
			case packed != ib:
				packA(ap.data, w.a, i0, rows, k0, kb)
				packed = ib
			}
			tiles(rows, cols, kb, panel, bp[j*kb:], w.c[i0*w.ldc+j0+j:], w.ldc, beta)
			if last && w.finish != nil {
				w.finish([2]int{i0, i0 + rows}, [2]int{j0 + j, j0 + j + cols})
			}
		}
	})
}

// tiles runs the micro-kernel over one packed block of A and consecutive panels of B.
func tiles[T Float](rows, cols, kb int, ap, bp, c []T, ldc int, beta bool) {
	var edge [mr * nr]T
	nr := nrOf[T]()
	for j := 0; j < cols; j += nr {
		w := min(nr, cols-j)
		bpan := bp[j*kb : j*kb+kb*nr]
		for i := 0; i < rows; i += mr {
			h := min(mr, rows-i)
			apan := ap[i*kb : i*kb+kb*mr]
			if h == mr && w == nr {
				microKernel(kb, apan, bpan, c[i*ldc+j:], ldc, beta)
				continue
			}
			microKernel(kb, apan, bpan, edge[:], nr, false)
			for r := range h {
				d := c[(i+r)*ldc+j : (i+r)*ldc+j+w]
				if beta {
					for x := range d {
						d[x] += edge[r*nr+x]
					}
				} else {
					copy(d, edge[r*nr:r*nr+w])
				}
			}
		}
	}
}

// over makes the function that finishes parts of c; nil if there is nothing to do.
func (ep *Epilogue) over(c []float32, ldc int) func(rows, cols [2]int) {
	if ep == nil {
		return nil
	}
	return func(rows, cols [2]int) {
		for i := rows[0]; i < rows[1]; i++ {
			ep.row(c[i*ldc+cols[0]:i*ldc+cols[1]], i, cols[0])
		}
	}
}

// row applies the epilogue to columns [j, j+len(row)) of row i.
func (ep *Epilogue) row(row []float32, i, j int) {
	if ep.ColBias != nil {
		AddF32(row, row, ep.ColBias[j:])
	}
	if ep.RowBias != nil {
		AddScalarF32(row, row, ep.RowBias[i])
	}
	if ep.ActFirst && ep.Residual != nil {
		ep.Act.Apply(row, row)
	}
	if ep.Residual != nil {
		AddF32(row, row, ep.Residual[i*ep.ResidualStep+j:])
	}
	if !ep.ActFirst || ep.Residual == nil {
		ep.Act.Apply(row, row)
	}
}

// microKernel computes an mr x nr tile: c = a*b, or c += a*b with beta. a is [kb, mr], b is [kb, nr].
func microKernel[T Float](kb int, a, b, c []T, ldc int, beta bool) {
	if !hasAVX2 {
		microGeneric(kb, a, b, c, ldc, beta)
		return
	}
	switch x := any(&a[0]).(type) {
	case *float32:
		gemm6x16F32AVX2(kb, x, any(&b[0]).(*float32), any(&c[0]).(*float32), ldc, beta)
	case *float64:
		gemm6x8F64AVX2(kb, x, any(&b[0]).(*float64), any(&c[0]).(*float64), ldc, beta)
	}
}
