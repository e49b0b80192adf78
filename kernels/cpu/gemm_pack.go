package cpu

import (
	"sync"

	"github.com/pt2go/pt2/internal/pool"
)

// PackedB is a matrix B [K, N] in the order in which the kernels of this CPU read it: made once for weights, shared by all runs.
type PackedB struct {
	K, N int
	set  *tileSet[float32]
	data []float32
}

// prefetched is how far kernels ask for packed elements ahead of time.
const prefetched = 256

// packedMemory is memory for n packed elements, with more behind them: asking ahead for memory that was never touched would be slow.
func packedMemory[T Float](n int) []T {
	data := make([]T, n+prefetched)
	touch(data)
	return data[:n]
}

// touch asks for large pages and makes those at the end exist.
func touch[T Float](data []T) {
	hugePages(data)
	data[len(data)-prefetched] = 0
	data[len(data)-1] = 0
}

// PackB packs b, a [K, N] matrix. What is lasting, as weights are, lies outside of Go's heap.
func PackB(b Matrix, k, n int, lasting bool) *PackedB {
	set := tileSetOf[float32]()
	p := &PackedB{K: k, N: n, set: set}
	p.data = packedFor[float32](p, k*set.packedWidth(n), lasting)
	set.packB(nil, p.data, b, k, n)
	return p
}

// packB packs a [K, N] matrix: panels of nr columns over the whole depth, the last one padded with zeros, or half as wide.
func (v *tileSet[T]) packB(p *pool.Pool, dst []T, b MatrixOf[T], k, n int) {
	if k == 0 {
		return
	}
	p.ParallelFor((n+v.nr-1)/v.nr, max(1, 8192/k), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			j := i * v.nr
			width := v.panelWidth(j, n)
			packPanel(dst[j*k:][:k*width], b.Data[j*b.Col:], b, k, min(width, n-j), width)
		}
	})
}

// packPanel packs w columns to rows wide elements apart, zeros behind them.
func packPanel[T Float](dst, src []T, b MatrixOf[T], k, w, wide int) {
	done := 0
	if d, ok := any(dst).([]float32); ok && hasAVX2 && (b.Col == 1 || b.Row == 1) {
		s := any(src).([]float32)
		for ; done+16 <= w; done += 16 {
			pack16(d[done:], s[done*b.Col:], b, k, wide)
		}
	}
	for p := range k {
		row := dst[p*wide : (p+1)*wide]
		for c := done; c < w; c++ {
			row[c] = src[p*b.Row+c*b.Col]
		}
		clear(row[w:])
	}
}

// pack16 packs sixteen columns by the assembly.
func pack16[T Float](dst, src []float32, b MatrixOf[T], k, wide int) {
	if b.Col == 1 {
		pack16F32AVX2(&dst[0], &src[0], k, b.Row, wide)
		return
	}
	whole := k &^ 7
	if whole > 0 {
		pack16TF32AVX2(&dst[0], &src[0], whole, b.Col, wide)
	}
	for p := whole; p < k; p++ {
		row := dst[p*wide:][:16]
		for c := range row {
			row[c] = src[p+c*b.Col]
		}
	}
}

// buffer is memory that outlives a call.
type buffer[T Float] struct {
	data []T
	from *sync.Pool
}

var buffers32, buffers64 = sync.Pool{New: func() any { return new(buffer[float32]) }}, sync.Pool{New: func() any { return new(buffer[float64]) }}

func scratchOf[T Float](n int) *buffer[T] {
	from := &buffers32
	if nrOf[T]() == 8 {
		from = &buffers64
	}
	b := from.Get().(*buffer[T])
	b.from = from
	if cap(b.data) < n {
		b.data = packedMemory[T](n + n/4)
	}
	b.data = b.data[:n]
	return b
}

// free gives the memory back; nil is no buffer.
func (b *buffer[T]) free() {
	if b != nil {
		b.from.Put(b)
	}
}

func scratch(n int) *buffer[float32] { return scratchOf[float32](n) }
