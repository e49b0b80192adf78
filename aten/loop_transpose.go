package aten

import (
	"unsafe"

	"github.com/pt2go/pt2/internal/pool"
	"github.com/pt2go/pt2/kernels/cpu"
)

// transposed finds the dimension along which the second operand is contiguous while the first is so along dimension 0; 0 if there is
// none, or if it is not worth the while.
func (it *Iter) transposed() int {
	if it.Strides[0][0] != 1 || it.Strides[1][0] <= 1 || it.Sizes[0] < 4 {
		return 0
	}
	for d := 1; d < len(it.Sizes); d++ {
		if it.Strides[1][d] == 1 && it.Sizes[d] >= 4 && it.Strides[0][d] >= 1 {
			return d
		}
	}
	return 0
}

// copyTransposed copies matrices of dimensions 0 and t, tile by tile.
func copyTransposed(p *pool.Pool, it *Iter, t int, dst, src unsafe.Pointer, size int) {
	const strip = 64 // of dimension t: a task's share
	rows, cols := int(it.Sizes[0]), int(it.Sizes[t])
	strips := (cols + strip - 1) / strip
	tasks := int(it.N) / (rows * cols) * strips
	p.ParallelFor(tasks, max(1, grain/(rows*min(cols, strip))), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			from := i % strips * strip
			d, s := int64(from)*it.Strides[0][t], int64(from)
			rest := int64(i / strips)
			for k := 1; k < len(it.Sizes); k++ {
				if k == t {
					continue
				}
				at := rest % it.Sizes[k]
				rest /= it.Sizes[k]
				d += at * it.Strides[0][k]
				s += at * it.Strides[1][k]
			}
			transposeBytes(unsafe.Add(dst, d*int64(size)), unsafe.Add(src, s*int64(size)), rows, min(strip, cols-from), int(it.Strides[0][t]), int(it.Strides[1][0]), size)
		}
	})
}

// transposeBytes is dst[j*ldd+i] = src[i*lds+j] for elements of some size.
func transposeBytes(dst, src unsafe.Pointer, rows, cols, ldd, lds, size int) {
	switch size {
	case 1:
		transposeAs[uint8](dst, src, rows, cols, ldd, lds)
	case 2:
		transposeAs[uint16](dst, src, rows, cols, ldd, lds)
	case 4: // the bits are moved, not looked at
		cpu.TransposeF32(matrix[float32](dst, cols, rows, ldd), matrix[float32](src, rows, cols, lds), rows, cols, ldd, lds)
	case 8:
		transposeAs[uint64](dst, src, rows, cols, ldd, lds)
	default:
		transposeAs[[2]uint64](dst, src, rows, cols, ldd, lds)
	}
}

func transposeAs[T any](dst, src unsafe.Pointer, rows, cols, ldd, lds int) {
	cpu.Transpose(matrix[T](dst, cols, rows, ldd), matrix[T](src, rows, cols, lds), rows, cols, ldd, lds)
}

// matrix is the memory of a row-major matrix.
func matrix[T any](p unsafe.Pointer, rows, cols, step int) []T {
	return unsafe.Slice((*T)(p), (rows-1)*step+cols)
}
