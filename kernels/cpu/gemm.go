package cpu

import (
	"sync"

	"github.com/pt2go/pt2/internal/pool"
)

// Block sizes of the packed product, in elements. A micro-kernel computes an mr x nr tile of C from packed panels of A
// (mr rows, k-major) and B (nr columns, k-major).
const (
	mr = 6
	nr = 16
	mc = 120  // rows of A packed at once: mc*kc floats stay in the second-level cache
	kc = 256  // depth
	nc = 3072 // columns of B packed at once
)

// Matrix is a strided view: element (i, j) is Data[i*Row + j*Col].
type Matrix struct {
	Data     []float32
	Row, Col int
}

// Epilogue is what happens to a tile of C when its last products are in: C = act(C + Bias).
type Epilogue struct {
	// ColBias has one number a column, RowBias one a row; nil for none.
	ColBias, RowBias []float32
	// Act is applied in place to rows of C; nil for none.
	Act func(d, x []float32)
}

// PackedB is a matrix B [K, N] in the order in which the kernel reads it: made once for weights, shared by all runs.
type PackedB struct {
	K, N int
	data []float32 // panels of nr columns for each block of kc rows
}

// PackB packs b, a [K, N] matrix.
func PackB(b Matrix, k, n int) *PackedB {
	p := &PackedB{K: k, N: n, data: make([]float32, packedSize(k, n))}
	off := 0
	for k0 := 0; k0 < k; k0 += kc {
		kb := min(kc, k-k0)
		packB(p.data[off:], b, k0, kb, 0, n)
		off += kb * roundUp(n, nr)
	}
	return p
}

func packedSize(k, n int) int { return k * roundUp(n, nr) }

func roundUp(n, m int) int { return (n + m - 1) / m * m }

// packB packs rows [k0, k0+kb) and columns [j0, j0+nb) into panels of nr columns; the last panel is padded with zeros.
func packB(dst []float32, b Matrix, k0, kb, j0, nb int) {
	for j := 0; j < nb; j += nr {
		w := min(nr, nb-j)
		src := b.Data[k0*b.Row+(j0+j)*b.Col:]
		if w == nr && b.Col == 1 {
			for p := range kb {
				copy(dst[p*nr:p*nr+nr], src[p*b.Row:p*b.Row+nr])
			}
		} else if w == nr && b.Row == 1 {
			for c := range nr {
				col := src[c*b.Col : c*b.Col+kb]
				for p, v := range col {
					dst[p*nr+c] = v
				}
			}
		} else {
			for p := range kb {
				for c := range nr {
					if c < w {
						dst[p*nr+c] = src[p*b.Row+c*b.Col]
					} else {
						dst[p*nr+c] = 0
					}
				}
			}
		}
		dst = dst[kb*nr:]
	}
}

// packA packs rows [i0, i0+mb) and depth [k0, k0+kb) into panels of mr rows, padded with zeros.
func packA(dst []float32, a Matrix, i0, mb, k0, kb int) {
	for i := 0; i < mb; i += mr {
		h := min(mr, mb-i)
		src := a.Data[(i0+i)*a.Row+k0*a.Col:]
		if h < mr {
			clear(dst[:kb*mr])
		}
		for r := range h {
			row := src[r*a.Row:]
			if a.Col == 1 {
				for p, v := range row[:kb] {
					dst[p*mr+r] = v
				}
				continue
			}
			for p := range kb {
				dst[p*mr+r] = row[p*a.Col]
			}
		}
		dst = dst[kb*mr:]
	}
}

var packPool = sync.Pool{New: func() any { return new([]float32) }}

func scratch(n int) *[]float32 {
	p := packPool.Get().(*[]float32)
	if cap(*p) < n {
		*p = make([]float32, n)
	}
	*p = (*p)[:n]
	return p
}

// Gemm computes C = A*B + beta*C for A [M, K] and B [K, N], C row-major with step ldc (beta is 0 or 1), then the epilogue.
// With beta 0 the old C is not read. Accumulation is in float32 with fused multiply-add where the CPU has it.
func Gemm(p *pool.Pool, m, n, k int, a, b Matrix, c []float32, ldc int, beta bool, ep *Epilogue) {
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		emptyProduct(m, n, c, ldc, beta, ep)
		return
	}
	if m <= 4 && b.Col == 1 || m == 1 && b.Row == 1 {
		gemmSmall(p, m, n, k, a, b, c, ldc, beta, ep)
		return
	}
	for j0 := 0; j0 < n; j0 += nc {
		nb := min(nc, n-j0)
		for k0 := 0; k0 < k; k0 += kc {
			kb := min(kc, k-k0)
			bp := scratch(kb * roundUp(nb, nr))
			panels := roundUp(nb, nr) / nr
			p.ParallelFor(panels, max(1, 4096/kb), func(lo, hi int) {
				packB((*bp)[lo*kb*nr:], b, k0, kb, j0+lo*nr, min(nb, hi*nr)-lo*nr)
			})
			blockRows(p, m, nb, kb, a, k0, *bp, c, ldc, j0, beta || k0 > 0, epilogueIf(ep, k0+kb == k))
			packPool.Put(bp)
		}
	}
}

// GemmPacked is [Gemm] with B packed before.
func GemmPacked(p *pool.Pool, m int, a Matrix, b *PackedB, c []float32, ldc int, beta bool, ep *Epilogue) {
	if m == 0 || b.N == 0 {
		return
	}
	if b.K == 0 {
		emptyProduct(m, b.N, c, ldc, beta, ep)
		return
	}
	off := 0
	for k0 := 0; k0 < b.K; k0 += kc {
		kb := min(kc, b.K-k0)
		size := kb * roundUp(b.N, nr)
		blockRows(p, m, b.N, kb, a, k0, b.data[off:off+size], c, ldc, 0, beta || k0 > 0, epilogueIf(ep, k0+kb == b.K))
		off += size
	}
}

func epilogueIf(ep *Epilogue, last bool) *Epilogue {
	if last {
		return ep
	}
	return nil
}

func emptyProduct(m, n int, c []float32, ldc int, beta bool, ep *Epilogue) {
	for i := range m {
		row := c[i*ldc : i*ldc+n]
		if !beta {
			clear(row)
		}
		ep.finish(row, i, 0)
	}
}

// blockRows multiplies all rows of A at depth [k0, k0+kb) with one packed block of B. Work is split over rows, and over
// columns too where there are few rows.
func blockRows(p *pool.Pool, m, nb, kb int, a Matrix, k0 int, bp, c []float32, ldc, j0 int, beta bool, ep *Epilogue) {
	mb := mc
	if s := p.Size(); m < s*mc {
		mb = max(mr, roundUp((m+s-1)/s, mr))
		mb = min(mb, mc)
	}
	rowBlocks := (m + mb - 1) / mb
	panels := roundUp(nb, nr) / nr
	split := 1
	if s := p.Size(); rowBlocks < s {
		split = min(panels, (s+rowBlocks-1)/rowBlocks)
	}
	per := (panels + split - 1) / split
	p.ParallelFor(rowBlocks*split, 1, func(lo, hi int) {
		ap := scratch(roundUp(mb, mr) * kb)
		defer packPool.Put(ap)
		packed := -1
		for t := lo; t < hi; t++ {
			ib, part := t/split, t%split
			i0 := ib * mb
			rows := min(mb, m-i0)
			if packed != ib {
				packA(*ap, a, i0, rows, k0, kb)
				packed = ib
			}
			tiles(rows, min(nb, (part+1)*per*nr)-part*per*nr, kb, *ap, bp[part*per*nr*kb:], c[i0*ldc+j0+part*per*nr:], ldc, beta, ep, i0, j0+part*per*nr)
		}
	})
}

// tiles runs the micro-kernel over one packed block of A and consecutive panels of B.
func tiles(rows, cols, kb int, ap, bp, c []float32, ldc int, beta bool, ep *Epilogue, i0, j0 int) {
	var edge [mr * nr]float32
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
	if ep != nil && cols > 0 {
		for r := range rows {
			ep.finish(c[r*ldc:r*ldc+cols], i0+r, j0)
		}
	}
}

// finish applies the epilogue to columns [j, j+len(row)) of row i.
func (ep *Epilogue) finish(row []float32, i, j int) {
	if ep == nil {
		return
	}
	if ep.ColBias != nil {
		b := ep.ColBias[j : j+len(row)]
		for x := range row {
			row[x] += b[x]
		}
	}
	if ep.RowBias != nil {
		b := ep.RowBias[i]
		for x := range row {
			row[x] += b
		}
	}
	if ep.Act != nil {
		ep.Act(row, row)
	}
}

// gemmSmall serves few rows: B is read once, without packing.
func gemmSmall(p *pool.Pool, m, n, k int, a, b Matrix, c []float32, ldc int, beta bool, ep *Epilogue) {
	p.ParallelFor(n, max(16, 65536/(k*m)), func(lo, hi int) {
		for i := range m {
			row := c[i*ldc+lo : i*ldc+hi]
			ai := a.Data[i*a.Row:]
			switch {
			case b.Col == 1:
				if !beta {
					clear(row)
				}
				for q := range k {
					axpy(row, b.Data[q*b.Row+lo:q*b.Row+hi], ai[q*a.Col])
				}
			default:
				for j := range row {
					col := b.Data[(lo+j)*b.Col : (lo+j)*b.Col+k]
					s := float32(0)
					if a.Col == 1 {
						s = dot(ai[:k], col)
					} else {
						for q, v := range col {
							s += ai[q*a.Col] * v
						}
					}
					if beta {
						s += row[j]
					}
					row[j] = s
				}
			}
			ep.finish(row, i, lo)
		}
	})
}

func microKernel(kb int, a, b, c []float32, ldc int, beta bool) {
	if hasAVX2 {
		gemm6x16F32AVX2(kb, &a[0], &b[0], &c[0], ldc, beta)
		return
	}
	microGeneric(kb, a, b, c, ldc, beta)
}

// axpy is y += s*x.
func axpy(y, x []float32, s float32) {
	if hasAVX2 && len(y) > 0 {
		axpyF32AVX2(&y[0], &x[0], len(y), s)
		return
	}
	axpyGeneric(y, x, s)
}

// dot is the inner product.
func dot(x, y []float32) float32 {
	if hasAVX2 && len(x) > 0 {
		return dotF32AVX2(&x[0], &y[0], len(x))
	}
	return dotGeneric(x, y)
}
