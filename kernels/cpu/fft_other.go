//go:build purego || !amd64

package cpu

func fftKernels() []func(dst, src, w *float32, m, done, im int) { return nil }

var (
	fftFoldF32AVX512  func(x, w *float32, h, n int)
	fftSplitF32AVX512 func(dst, src *float32, n, step int)
	fftJoinF32AVX512  func(dst, src *float32, n, step int)
)
