package cpu

import "math"

// FFTLanes is how many sequences an [FFT] transforms at a time.
const FFTLanes = 16

// FFT is a discrete Fourier transform of one length, for 16 sequences of float32 at a time: their numbers lie side by side as [n, 2, 16],
// real parts before imaginary ones, so that a step of the algorithm is the same for all lanes of a vector. It takes Stockham's form of the
// mixed-radix algorithm, with radices up to 5. The error is that of float32, some 1e-7 of the largest result for each radix.
type FFT struct {
	n      int
	stages []fftStage
}

type fftStage struct {
	run     func(dst, src, w *float32, m, done, im int)
	m, done int
	w       []float32 // [done, radix-1, 2]
}

// NewFFT plans transforms of n numbers; nil if this CPU has no kernels for them: where n has a prime factor over 5, or without AVX-512.
func NewFFT(n int) *FFT {
	kernels := fftKernels()
	if kernels == nil || n < 2 {
		return nil
	}
	f, done := &FFT{n: n}, 1
	for _, r := range [...]int{4, 2, 3, 5} {
		for (n/done)%r == 0 && done < n {
			s := fftStage{run: kernels[r], m: n / done / r, done: done, w: make([]float32, 0, done*(r-1)*2)}
			for k := range done {
				for q := 1; q < r; q++ {
					sin, cos := math.Sincos(-2 * math.Pi * float64(k*q) / float64(done*r))
					s.w = append(s.w, float32(cos), float32(sin))
				}
			}
			f.stages = append(f.stages, s)
			done *= r
		}
	}
	if done != n {
		return nil
	}
	return f
}

// Transform computes sum over j of x[j] * exp(-2*pi*i*j*k/n) for all k, or with plus in the exponent. x and work have room for
// [n, 2, 16]; the result is in the one that is returned, the other's content is lost.
func (f *FFT) Transform(x, work []float32, forward bool) []float32 {
	im, first := 64, 0
	if !forward { // real and imaginary parts change places
		im, first = -64, 16
	}
	size := f.n * 2 * FFTLanes
	x, work = x[:size], work[:size]
	for _, s := range f.stages {
		s.run(&work[first], &x[first], &s.w[0], s.m, s.done, im)
		x, work = work, x
	}
	return x
}

// RealFFT is the transform of an even number n of real numbers into the n/2+1 complex ones that are not mirrored, and the way back.
type RealFFT struct {
	half     *FFT
	n        int
	forward  []float32 // [n/4+1, 2]
	backward []float32
}

// NewRealFFT plans transforms of n numbers; nil if n is odd or this CPU has no kernels.
func NewRealFFT(n int) *RealFFT {
	if n%2 != 0 {
		return nil
	}
	half := NewFFT(n / 2)
	if half == nil {
		return nil
	}
	f := &RealFFT{half: half, n: n}
	for k := range n/4 + 1 {
		sin, cos := math.Sincos(2 * math.Pi * float64(k) / float64(n))
		f.forward = append(f.forward, float32(-sin), float32(-cos)) // -i * exp(-2*pi*i*k/n)
		f.backward = append(f.backward, float32(-sin), float32(cos))
	}
	return f
}

// Forward transforms x [n, 16]; x and work have room for [n/2+1, 2, 16]. The result, twice the transform, is in the one that is returned.
func (f *RealFFT) Forward(x, work []float32) []float32 {
	h := f.n / 2
	size := (h + 1) * 2 * FFTLanes
	y := f.half.Transform(x, work, true)[:size]
	copy(y[h*2*FFTLanes:], y[:2*FFTLanes])
	fftFoldF32AVX512(&y[0], &f.forward[0], h, h/2+1)
	return y
}

// Backward transforms x [n/2+1, 2, 16], of whose first and last numbers only the real parts count, to [n, 16].
func (f *RealFFT) Backward(x, work []float32) []float32 {
	h := f.n / 2
	x = x[:(h+1)*2*FFTLanes]
	clear(x[FFTLanes : 2*FFTLanes])
	clear(x[(h*2+1)*FFTLanes:])
	fftFoldF32AVX512(&x[0], &f.backward[0], h, h/2+1)
	return f.half.Transform(x, work, false)
}

// SplitComplex is dst [n, 2, 16] from n rows of 16 complex numbers in src, step numbers apart, on a CPU with [NewFFT]'s kernels.
func SplitComplex(dst, src []float32, n, step int) {
	fftSplitF32AVX512(&dst[:n*2*FFTLanes][0], &src[:2*((n-1)*step+FFTLanes)][0], n, 8*step)
}

// JoinComplex is SplitComplex's way back.
func JoinComplex(dst, src []float32, n, step int) {
	fftJoinF32AVX512(&dst[:2*((n-1)*step+FFTLanes)][0], &src[:n*2*FFTLanes][0], n, 8*step)
}
