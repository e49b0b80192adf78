package cpu

import (
	"runtime"
	"unsafe"

	"github.com/pt2go/pt2/internal/pool"
)

// Float is what the matrix product computes in.
type Float interface{ float32 | float64 }

// nrOf is how many elements 64 bytes hold.
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

func roundUp(n, m int) int { return (n + m - 1) / m * m }

// Gemm computes C = A*B + beta*C for A [M, K] and B [K, N], C row-major with step ldc (beta is 0 or 1), then the epilogue.
// With beta 0 the old C is not read. Accumulation is in float32 with fused multiply-add where the CPU has it. C overlaps neither A
// nor B.
func Gemm(p *pool.Pool, m, n, k int, a, b Matrix, c []float32, ldc int, beta bool, ep *Epilogue) {
	switch {
	case m == 0 || n == 0:
	case k == 0:
		ep, beta, buf := ep.separate(c, beta)
		defer buf.free()
		emptyProduct(m, n, c, ldc, beta, ep.over(c, ldc))
	case m <= smallRows && (b.Col == 1 || b.Row == 1 && a.Col == 1):
		ep, beta, buf := ep.separate(c, beta)
		defer buf.free()
		gemmSmall(p, m, n, k, a, b, c, ldc, beta, ep.over(c, ldc))
	default:
		gemmUnpacked(p, m, n, k, a, b, c, ldc, beta, ep)
	}
}

// GemmF64 is [Gemm] in float64, without an epilogue.
func GemmF64(p *pool.Pool, m, n, k int, a, b MatrixOf[float64], c []float64, ldc int, beta bool) {
	switch {
	case m == 0 || n == 0:
	case k == 0:
		emptyProduct(m, n, c, ldc, beta, nil)
	default:
		gemmUnpacked(p, m, n, k, a, b, c, ldc, beta, nil)
	}
}

// GemmPacked is [Gemm] with B packed before.
func GemmPacked(p *pool.Pool, m int, a Matrix, b *PackedB, c []float32, ldc int, beta bool, ep *Epilogue) {
	if m == 0 || b.N == 0 {
		return
	}
	if b.K == 0 {
		ep, beta, buf := ep.separate(c, beta)
		defer buf.free()
		emptyProduct(m, b.N, c, ldc, beta, ep.over(c, ldc))
		return
	}
	defer runtime.KeepAlive(b) // whose memory is not Go's
	w := &product[float32]{set: b.set, m: m, n: b.N, segments: 1, length: b.K, packed: b.data, c: c, ldc: ldc, beta: beta, ep: ep}
	defer w.readA(p, a).free()
	w.run(p)
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

// packedElements is how much of B is packed at once.
const packedElements = 4 << 20

// gemmUnpacked packs B, a block of columns at a time.
func gemmUnpacked[T Float](p *pool.Pool, m, n, k int, a, b MatrixOf[T], c []T, ldc int, beta bool, ep *Epilogue) {
	set := tileSetOf[T]()
	wide := max(packedElements/k/set.nr, 1) * set.nr
	buf := scratchOf[T](k * set.packedWidth(min(n, wide)))
	defer buf.free()
	w := &product[T]{set: set, m: m, segments: 1, length: k, packed: buf.data, ldc: ldc, beta: beta}
	defer w.readA(p, a).free()
	for j0 := 0; j0 < n; j0 += wide {
		w.n, w.c, w.ep = min(wide, n-j0), c[j0:], ep.from(j0)
		set.packB(p, buf.data, MatrixOf[T]{b.Data[j0*b.Col:], b.Row, b.Col}, k, w.n)
		w.run(p)
	}
}

// readA sets where the rows of A are read: in place, if their elements lie side by side, else in a copy.
func (w *product[T]) readA(p *pool.Pool, a MatrixOf[T]) *buffer[T] {
	if a.Col == 1 || w.length == 1 {
		w.x, w.lda = a.Data, a.Row
		return nil
	}
	buf := scratchOf[T](w.m * w.length)
	p.ParallelFor(w.m, max(1, 16384/w.length), func(lo, hi int) {
		if a.Row == 1 {
			Transpose(buf.data[lo*w.length:], a.Data[lo:], w.length, hi-lo, w.length, a.Col)
			return
		}
		for i := lo; i < hi; i++ {
			row := buf.data[i*w.length:][:w.length]
			for j := range row {
				row[j] = a.Data[i*a.Row+j*a.Col]
			}
		}
	})
	w.x, w.lda = buf.data, w.length
	return buf
}
