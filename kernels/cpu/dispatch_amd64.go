//go:build !purego

package cpu

import "golang.org/x/sys/cpu"

// hasAVX2 chooses the assembly; tests turn it off to compare.
var hasAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA

func microKernel(kb int, a, b, c []float32, ldc int, beta bool) {
	if hasAVX2 {
		gemm6x16F32AVX2(kb, &a[0], &b[0], &c[0], ldc, beta)
		return
	}
	microGeneric(kb, a, b, c, ldc, beta)
}

func axpy(y, x []float32, s float32) {
	if hasAVX2 && len(y) > 0 {
		axpyF32AVX2(&y[0], &x[0], len(y), s)
		return
	}
	axpyGeneric(y, x, s)
}

func dot(x, y []float32) float32 {
	if hasAVX2 && len(x) > 0 {
		return dotF32AVX2(&x[0], &y[0], len(x))
	}
	return dotGeneric(x, y)
}
