package cpu

import (
	"sync"
)

// slack is what the packing of A may write beyond its panels.
const slack = 8

// PackedA is a matrix A [M, K] in the order in which the kernel reads it: a convolution's weight, packed once.
type PackedA struct {
	M, K int
	data []float32 // panels of mr rows for each block of kc columns
}

// PackA packs a, an [M, K] matrix.
func PackA(a Matrix, m, k int) *PackedA {
	rows := roundUp(m, mr)
	p := &PackedA{M: m, K: k, data: make([]float32, rows*k+slack)}
	for k0 := 0; k0 < k; k0 += kc {
		packA(p.data[k0*rows:], a, 0, m, k0, min(kc, k-k0))
	}
	return p
}

// packB packs rows [k0, k0+kb) and columns [j0, j0+nb) into panels of nr columns; the last panel is padded with zeros.
func packB[T Float](dst []T, b MatrixOf[T], k0, kb, j0, nb int) {
	nr := nrOf[T]()
	for j := 0; j < nb; j += nr {
		w := min(nr, nb-j)
		packPanelB(dst[:kb*nr], b.Data[k0*b.Row+(j0+j)*b.Col:], b, kb, w)
		dst = dst[kb*nr:]
	}
}

func packPanelB[T Float](dst, src []T, b MatrixOf[T], kb, w int) {
	nr, done := nrOf[T](), 0
	if w == nr {
		if d, ok := any(&dst[0]).(*float32); ok && hasAVX2 {
			s := any(&src[0]).(*float32)
			switch {
			case b.Col == 1:
				pack16F32AVX2(d, s, kb, b.Row)
				return
			case b.Row == 1 && kb >= 8:
				done = kb &^ 7
				pack16TF32AVX2(d, s, done, b.Col)
			}
		}
	}
	for p := done; p < kb; p++ {
		row := dst[p*nr : p*nr+nr]
		for c := range w {
			row[c] = src[p*b.Row+c*b.Col]
		}
		clear(row[w:])
	}
}

// packA packs rows [i0, i0+mb) and columns [k0, k0+kb) into panels of mr rows, padded with zeros. Up to slack elements beyond the
// panels are overwritten.
func packA[T Float](dst []T, a MatrixOf[T], i0, mb, k0, kb int) {
	for i := 0; i < mb; i += mr {
		h := min(mr, mb-i)
		src := a.Data[(i0+i)*a.Row+k0*a.Col:]
		done := 0
		if h == mr && a.Col == 1 && kb >= 8 {
			if d, ok := any(&dst[0]).(*float32); ok && hasAVX2 {
				done = kb &^ 7
				pack6F32AVX2(d, any(&src[0]).(*float32), done, a.Row)
			}
		}
		for p := done; p < kb; p++ {
			col := dst[p*mr : p*mr+mr]
			for r := range h {
				col[r] = src[r*a.Row+p*a.Col]
			}
			clear(col[h:])
		}
		dst = dst[kb*mr:]
	}
}

// buffer is memory for packed panels.
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
		b.data = make([]T, n+n/4)
	}
	b.data = b.data[:n]
	return b
}

func (b *buffer[T]) free() { b.from.Put(b) }

func scratch(n int) *buffer[float32] { return scratchOf[float32](n) }
