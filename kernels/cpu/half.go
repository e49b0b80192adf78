package cpu

import (
	"math"

	"github.com/pt2go/pt2/internal/pool"
)

// HalfFormat is a 16-bit floating point format.
type HalfFormat uint8

// The formats.
const (
	BF16 HalfFormat = iota // the upper half of a float32
	F16                    // IEEE half precision
)

// Widen is dst = src in float32.
func (f HalfFormat) Widen(dst []float32, src []uint16) {
	if f == BF16 {
		BF16ToF32(dst, src)
	} else {
		F16ToF32(dst, src)
	}
}

// Round is dst = src, rounded to nearest even.
func (f HalfFormat) Round(dst []uint16, src []float32) {
	if f == BF16 {
		F32ToBF16(dst, src)
	} else {
		F32ToF16(dst, src)
	}
}

// HalfMatrix is a strided view of 16-bit floats: element (i, j) is Data[i*Row + j*Col].
type HalfMatrix struct {
	Data     []uint16
	Row, Col int
}

// halfRows is up to how many rows of A the product widens B in registers, once for each row; with more it widens blocks of B in memory.
const halfRows = 8

// GemmHalf computes C = A*B for 16-bit floats of one format: A [M, K], B [K, N], C row-major with step ldc. Products are summed in
// float32, the epilogue (float32, too) is added to the sums, and the result is rounded once, as PyTorch does. B stays as it is in
// memory: nothing needs to be packed, and few rows of A take as long as B takes to be read. C overlaps neither A nor B.
func GemmHalf(p *pool.Pool, f HalfFormat, m, n, k int, a, b HalfMatrix, c []uint16, ldc int, ep *Epilogue) {
	gemmHalf(p, f, m, n, k, a, b, func(row []float32, i, j int) {
		if ep != nil {
			ep.row(row, i, j)
		}
		f.Round(c[i*ldc+j:i*ldc+j+len(row)], row)
	})
}

// GemmHalfF32 is [GemmHalf] without rounding: C is float32.
func GemmHalfF32(p *pool.Pool, f HalfFormat, m, n, k int, a, b HalfMatrix, c []float32, ldc int) {
	gemmHalf(p, f, m, n, k, a, b, func(row []float32, i, j int) { copy(c[i*ldc+j:], row) })
}

// gemmHalf gives put the sums of row i from column j on.
func gemmHalf(p *pool.Pool, f HalfFormat, m, n, k int, a, b HalfMatrix, put func(row []float32, i, j int)) {
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		a, b = HalfMatrix{}, HalfMatrix{} // there may be no memory
	}
	wide := scratch(m * k)
	defer wide.free()
	x := Matrix{wide.data, k, 1}
	f.widenMatrix(x, a, m, k)
	per := halfColumns(m, n, k, p.Size())
	p.ParallelFor((n+per-1)/per, 1, func(lo, hi int) {
		sums := scratch(m * per)
		defer sums.free()
		for t := lo; t < hi; t++ {
			j, w := t*per, min(per, n-t*per)
			halfBlock(f, m, w, k, x, HalfMatrix{b.Data[min(j*b.Col, len(b.Data)):], b.Row, b.Col}, sums.data, w)
			for i := range m {
				put(sums.data[i*w:(i+1)*w], i, j)
			}
		}
	})
}

// halfColumns is how many columns of B are taken at once: as many as stay in the second-level cache when widened, and enough parts for
// all workers.
func halfColumns(m, n, k, workers int) int {
	per := max(64, 128<<10/max(k, 1))
	if m <= halfRows {
		per = max(32, 64<<10/max(k*m, 1)) // a hand-off's worth
	}
	return min(roundUp(per, 16), max(16, roundUp((n+workers-1)/workers, 16)))
}

// widenMatrix is dst = src [rows, cols] in float32, dst row-major.
func (f HalfFormat) widenMatrix(dst Matrix, src HalfMatrix, rows, cols int) {
	switch {
	case cols == 0:
		return
	case src.Col == 1:
		for i := range rows {
			f.Widen(dst.Data[i*dst.Row:i*dst.Row+cols], src.Data[i*src.Row:i*src.Row+cols])
		}
		return
	}
	for i := range rows {
		d := dst.Data[i*dst.Row : i*dst.Row+cols]
		for j := range d {
			v := src.Data[i*src.Row+j*src.Col]
			if f == BF16 {
				d[j] = bf16ToFloat(v)
			} else {
				d[j] = halfToFloat(v)
			}
		}
	}
}

// halfBlock is c = a*b for one block of columns, c row-major with step ldc.
func halfBlock(f HalfFormat, m, n, k int, a Matrix, b HalfMatrix, c []float32, ldc int) {
	switch {
	case k == 0:
		clear(c[:m*ldc])
	case m <= halfRows && b.Row == 1:
		halfByDots(f, m, n, k, a, b, c, ldc)
	case m <= halfRows && b.Col == 1:
		halfByRows(f, m, n, k, a, b, c, ldc)
	default:
		wide := scratch(n * k)
		defer wide.free()
		if b.Row == 1 { // columns lie side by side: B is widened transposed
			f.widenMatrix(Matrix{wide.data, k, 1}, HalfMatrix{b.Data, b.Col, 1}, n, k)
			Gemm(nil, m, n, k, a, Matrix{wide.data, 1, k}, c, ldc, false, nil)
			return
		}
		f.widenMatrix(Matrix{wide.data, n, 1}, b, k, n)
		Gemm(nil, m, n, k, a, Matrix{wide.data, n, 1}, c, ldc, false, nil)
	}
}

// halfByDots takes inner products with contiguous columns of B, four at once.
func halfByDots(f HalfFormat, m, n, k int, a Matrix, b HalfMatrix, c []float32, ldc int) {
	var s [4]float32
	for j := 0; j < n; j += 4 {
		w := min(4, n-j)
		for i := range m {
			x := a.Data[i*a.Row : i*a.Row+k]
			if w == 4 {
				f.dot4(x, b.Data[j*b.Col:], b.Col, &s)
			} else {
				for r := range w {
					s[r] = f.dot(x, b.Data[(j+r)*b.Col:])
				}
			}
			copy(c[i*ldc+j:i*ldc+j+w], s[:])
		}
	}
}

// halfByRows adds up rows of B.
func halfByRows(f HalfFormat, m, n, k int, a Matrix, b HalfMatrix, c []float32, ldc int) {
	for i := range m {
		row, x := c[i*ldc:i*ldc+n], a.Data[i*a.Row:i*a.Row+k]
		clear(row)
		q := 0
		for ; q+4 <= k; q += 4 {
			f.axpy4(row, b.Data[q*b.Row:], b.Row, (*[4]float32)(x[q:]))
		}
		for ; q < k; q++ {
			f.axpy(row, b.Data[q*b.Row:], x[q])
		}
	}
}

// dot4 is four inner products of x with vectors step elements apart.
func (f HalfFormat) dot4(x []float32, y []uint16, step int, out *[4]float32) {
	n := 0
	*out = [4]float32{}
	if hasAVX2 && len(x) >= 32 {
		n = len(x) &^ 31
		switch {
		case hasAVX512 && f == BF16:
			dot4BF16AVX512(&x[0], &y[0], step, n, &out[0])
		case hasAVX512:
			dot4F16AVX512(&x[0], &y[0], step, n, &out[0])
		case f == BF16:
			dot4BF16AVX2(&x[0], &y[0], step, n, &out[0])
		default:
			dot4F16AVX2(&x[0], &y[0], step, n, &out[0])
		}
	}
	if n < len(x) {
		for i := range out {
			out[i] += f.dot(x[n:], y[i*step+n:])
		}
	}
}

// dot is the inner product of x with the beginning of y.
func (f HalfFormat) dot(x []float32, y []uint16) float32 {
	var block [256]float32
	s := float32(0)
	for i := 0; i < len(x); i += len(block) {
		w := block[:min(len(block), len(x)-i)]
		f.Widen(w, y[i:])
		s += dot(x[i:i+len(w)], w)
	}
	return s
}

// axpy4 is y += s[0]*x + s[1]*x[step:] + ...
func (f HalfFormat) axpy4(y []float32, x []uint16, step int, s *[4]float32) {
	n := 0
	if hasAVX2 && len(y) >= 16 {
		n = len(y) &^ 15
		switch {
		case hasAVX512 && f == BF16:
			axpy4BF16AVX512(&y[0], &x[0], step, n, &s[0])
		case hasAVX512:
			axpy4F16AVX512(&y[0], &x[0], step, n, &s[0])
		case f == BF16:
			axpy4BF16AVX2(&y[0], &x[0], step, n, &s[0])
		default:
			axpy4F16AVX2(&y[0], &x[0], step, n, &s[0])
		}
	}
	if n < len(y) {
		for i, v := range s {
			f.axpy(y[n:], x[i*step+n:], v)
		}
	}
}

// axpy is y += s*x.
func (f HalfFormat) axpy(y []float32, x []uint16, s float32) {
	var block [256]float32
	for i := 0; i < len(y); i += len(block) {
		w := block[:min(len(block), len(y)-i)]
		f.Widen(w, x[i:])
		axpy(y[i:i+len(w)], w, s)
	}
}

func bf16ToFloat(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
