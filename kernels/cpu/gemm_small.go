package cpu

import "github.com/pt2go/pt2/internal/pool"

// smallRows is up to how many rows of A the product reads B as it lies: packing B costs as much as multiplying that many rows.
const smallRows = 8

// gemmSmall serves few rows.
func gemmSmall(p *pool.Pool, m, n, k int, a, b Matrix, c []float32, ldc int, beta bool, finish func(rows, cols [2]int)) {
	p.ParallelFor(n, roundUp(max(16, 32768/(k*m)), 16), func(lo, hi int) {
		if b.Col == 1 {
			smallByRows(m, k, lo, hi, a, b, c, ldc, beta)
		} else {
			smallByDots(m, k, lo, hi, a, b, c, ldc, beta)
		}
		if finish != nil {
			finish([2]int{0, m}, [2]int{lo, hi})
		}
	})
}

// smallByRows adds up rows of B, four at once, in blocks that stay in the cache for all rows of A.
func smallByRows(m, k, lo, hi int, a, b Matrix, c []float32, ldc int, beta bool) {
	const depth = 32
	if !beta {
		for i := range m {
			clear(c[i*ldc+lo : i*ldc+hi])
		}
	}
	for q0 := 0; q0 < k; q0 += depth {
		q1 := min(k, q0+depth)
		for i := range m {
			row, ai := c[i*ldc+lo:i*ldc+hi], a.Data[i*a.Row:]
			q := q0
			for ; q+4 <= q1; q += 4 {
				s := [4]float32{ai[q*a.Col], ai[(q+1)*a.Col], ai[(q+2)*a.Col], ai[(q+3)*a.Col]}
				axpy4(row, b.Data[q*b.Row+lo:], b.Row, &s)
			}
			for ; q < q1; q++ {
				axpy(row, b.Data[q*b.Row+lo:q*b.Row+hi], ai[q*a.Col])
			}
		}
	}
}

// smallByDots takes inner products of rows of A with contiguous columns of B, four columns at once.
func smallByDots(m, k, lo, hi int, a, b Matrix, c []float32, ldc int, beta bool) {
	var s [4]float32
	for j := lo; j < hi; j += 4 {
		w := min(4, hi-j)
		for i := range m {
			x := a.Data[i*a.Row : i*a.Row+k]
			if w == 4 {
				dot4(x, b.Data[j*b.Col:], b.Col, &s)
			} else {
				for r := range w {
					s[r] = dot(x, b.Data[(j+r)*b.Col:(j+r)*b.Col+k])
				}
			}
			d := c[i*ldc+j : i*ldc+j+w]
			for r := range d {
				if beta {
					d[r] += s[r]
				} else {
					d[r] = s[r]
				}
			}
		}
	}
}

// axpy is y += s*x.
func axpy(y, x []float32, s float32) {
	if hasAVX2 && len(y) > 0 {
		axpyF32AVX2(&y[0], &x[0], len(y), s)
		return
	}
	axpyGeneric(y, x, s)
}

// axpy4 is y += s[0]*x + s[1]*x[step:] + ...
func axpy4(y, x []float32, step int, s *[4]float32) {
	if hasAVX2 && len(y) > 0 {
		axpy4F32AVX2(&y[0], &x[0], step, len(y), &s[0])
		return
	}
	for i, f := range s {
		axpyGeneric(y, x[i*step:], f)
	}
}

// dot is the inner product.
func dot(x, y []float32) float32 {
	if hasAVX2 && len(x) > 0 {
		return dotF32AVX2(&x[0], &y[0], len(x))
	}
	return dotGeneric(x, y)
}

// dot4 is four inner products, with vectors step elements apart.
func dot4(x, y []float32, step int, out *[4]float32) {
	if hasAVX2 && len(x) > 0 {
		dot4F32AVX2(&x[0], &y[0], step, len(x), &out[0])
		return
	}
	for i := range out {
		out[i] = dotGeneric(x, y[i*step:])
	}
}
