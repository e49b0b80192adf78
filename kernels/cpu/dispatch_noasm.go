//go:build purego || !amd64

package cpu

func microKernel(kb int, a, b, c []float32, ldc int, beta bool) { microGeneric(kb, a, b, c, ldc, beta) }

func axpy(y, x []float32, s float32) { axpyGeneric(y, x, s) }

func dot(x, y []float32) float32 { return dotGeneric(x, y) }
