package cpu

// Reductions over a contiguous slice. Long sums are taken in blocks whose results are added pairwise, so the error grows with the
// logarithm of the length, as PyTorch's does.

const sumBlock = 1024

// pairwise adds f over blocks of x.
func pairwise(x []float32, f func(x []float32) float32) float32 {
	if len(x) <= sumBlock {
		return f(x)
	}
	half := roundUp((len(x)+1)/2, sumBlock)
	return pairwise(x[:half], f) + pairwise(x[half:], f)
}

// SumF32 is the sum; 0 for no elements.
func SumF32(x []float32) float32 { return pairwise(x, sumBlockF32) }

// SumSquaresF32 is the sum of x*x.
func SumSquaresF32(x []float32) float32 { return pairwise(x, sumSquaresBlockF32) }

// SumSquaresAroundF32 is the sum of (x-mean)^2.
func SumSquaresAroundF32(x []float32, mean float32) float32 {
	return pairwise(x, func(x []float32) float32 {
		if hasAVX512 && len(x) > 0 {
			return sumSquaresAroundF32AVX512(&x[0], mean, len(x))
		}
		if hasAVX2 && len(x) > 0 {
			return sumSquaresAroundF32AVX2(&x[0], mean, len(x))
		}
		return sumSquaresAroundGeneric(x, mean)
	})
}

// MeanVarF32 is the mean and the mean square distance from it (the biased variance), in two passes; NaN for no elements.
func MeanVarF32(x []float32) (mean, variance float32) {
	mean = SumF32(x) / float32(len(x))
	return mean, SumSquaresAroundF32(x, mean) / float32(len(x))
}

// MaxF32 is the largest element, NaN if there is one; x is not empty.
func MaxF32(x []float32) float32 {
	if hasAVX512 {
		return maxF32AVX512(&x[0], len(x))
	}
	if hasAVX2 {
		return maxF32AVX2(&x[0], len(x))
	}
	m := x[0]
	for _, v := range x {
		m = larger(v, m)
		if m != m {
			break
		}
	}
	return m
}

// MinF32 is the smallest element, NaN if there is one; x is not empty.
func MinF32(x []float32) float32 {
	if hasAVX512 {
		return minF32AVX512(&x[0], len(x))
	}
	if hasAVX2 {
		return minF32AVX2(&x[0], len(x))
	}
	m := x[0]
	for _, v := range x {
		m = smaller(v, m)
		if m != m {
			break
		}
	}
	return m
}

// ArgMaxF32 is the index of the first largest element, or of the first NaN; x is not empty.
func ArgMaxF32(x []float32) int {
	m := MaxF32(x)
	for i, v := range x {
		if v == m || v != v {
			return i
		}
	}
	return 0
}

// DotF32 is the inner product of x and y, which have one length.
func DotF32(x, y []float32) float32 {
	y = y[:len(x)]
	if len(x) <= sumBlock {
		return dot(x, y)
	}
	half := roundUp((len(x)+1)/2, sumBlock)
	return DotF32(x[:half], y[:half]) + DotF32(x[half:], y[half:])
}

func sumBlockF32(x []float32) float32 {
	if hasAVX512 && len(x) > 0 {
		return sumF32AVX512(&x[0], len(x))
	}
	if hasAVX2 && len(x) > 0 {
		return sumF32AVX2(&x[0], len(x))
	}
	var s [8]float32
	for len(x) >= 8 {
		for i := range s {
			s[i] += x[i]
		}
		x = x[8:]
	}
	for i, v := range x {
		s[i] += v
	}
	return sum8(&s)
}

func sumSquaresBlockF32(x []float32) float32 {
	if hasAVX512 && len(x) > 0 {
		return sumSquaresF32AVX512(&x[0], len(x))
	}
	if hasAVX2 && len(x) > 0 {
		return sumSquaresF32AVX2(&x[0], len(x))
	}
	return dotGeneric(x, x)
}

func sumSquaresAroundGeneric(x []float32, mean float32) float32 {
	var s [8]float32
	for len(x) >= 8 {
		for i := range s {
			d := x[i] - mean
			s[i] += d * d
		}
		x = x[8:]
	}
	for i, v := range x {
		s[i] += (v - mean) * (v - mean)
	}
	return sum8(&s)
}

func sum8(s *[8]float32) float32 {
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
}
