//go:build !purego

package cpu

// fftKernels are the stages by radix, nil if the CPU lacks what they need.
func fftKernels() []func(dst, src, w *float32, m, done, im int) {
	if !hasAVX512 {
		return nil
	}
	return []func(dst, src, w *float32, m, done, im int){2: fft2F32AVX512, 3: fft3F32AVX512, 4: fft4F32AVX512, 5: fft5F32AVX512}
}
