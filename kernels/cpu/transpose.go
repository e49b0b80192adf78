package cpu

import "encoding/binary"

// TransposeF32 is dst[j*ldd+i] = x[i*ldx+j] for i < rows, j < cols. dst and x must not overlap.
func TransposeF32(dst, x []float32, rows, cols, ldd, ldx int) {
	if rows == 3 && ldd == 3 { // the channels of an image
		a, b, c := x[:cols], x[ldx:ldx+cols], x[2*ldx:2*ldx+cols]
		if n := interleave3(dst, a, b, c); n > 0 {
			dst, a, b, c = dst[3*n:], a[n:], b[n:], c[n:]
		}
		for j := range a {
			d := dst[3*j : 3*j+3 : 3*j+3]
			d[0], d[1], d[2] = a[j], b[j], c[j]
		}
		return
	}
	if !hasAVX2 || rows < 8 || cols < 8 {
		Transpose(dst, x, rows, cols, ldd, ldx)
		return
	}
	r8, c8 := rows&^7, cols&^7
	for j := 0; j < c8; j += 8 { // whole lines of dst, eight at a time
		transpose8F32AVX2(&dst[j*ldd], &x[j], r8, ldd, ldx)
	}
	if c8 < cols {
		Transpose(dst[c8*ldd:], x[c8:], rows, cols-c8, ldd, ldx)
	}
	if r8 < rows {
		Transpose(dst[r8:], x[r8*ldx:], rows-r8, c8, ldd, ldx)
	}
}

// TransposeU8 is TransposeF32 for bytes.
func TransposeU8(dst, x []uint8, rows, cols, ldd, ldx int) {
	done := 0
	if rows == 3 && ldd == 3 { // the channels of an image: three bytes in a store of four, the next store writes over the fourth
		done = max(0, cols-1)
		a, b, c := x[:done], x[ldx:ldx+done], x[2*ldx:2*ldx+done]
		for j := range a {
			binary.LittleEndian.PutUint32(dst[3*j:], uint32(a[j])|uint32(b[j])<<8|uint32(c[j])<<16)
		}
	}
	Transpose(dst[done*ldd:], x[done:], rows, cols-done, ldd, ldx)
}

// Transpose is TransposeF32 for any element: dst[j*ldd+i] = x[i*ldx+j], tile by tile so that both sides stay in the cache.
func Transpose[T any](dst, x []T, rows, cols, ldd, ldx int) {
	const tile = 16
	for i0 := 0; i0 < rows; i0 += tile {
		i1 := min(rows, i0+tile)
		for j0 := 0; j0 < cols; j0 += tile {
			j1 := min(cols, j0+tile)
			for j := j0; j < j1; j++ {
				d := dst[j*ldd+i0 : j*ldd+i1]
				at := i0*ldx + j
				for i := range d {
					d[i] = x[at]
					at += ldx
				}
			}
		}
	}
}
