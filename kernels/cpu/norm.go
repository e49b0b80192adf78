package cpu

import (
	"math"

	"github.com/pt2go/pt2/internal/pool"
)

// rowGrain is how many rows of n elements are worth a hand-off.
func rowGrain(n int) int { return max(1, 16384/max(n, 1)) }

// MulAddF32 is dst = a*b + c, rounded once where the CPU has fused multiply-add.
func MulAddF32(dst, a, b, c []float32) {
	a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
	if hasAVX512 && len(dst) > 0 {
		mulAddF32AVX512(&dst[0], &a[0], &b[0], &c[0], len(dst))
		return
	}
	if hasAVX2 && len(dst) > 0 {
		mulAddF32AVX2(&dst[0], &a[0], &b[0], &c[0], len(dst))
		return
	}
	for i := range dst {
		dst[i] = a[i]*b[i] + c[i]
	}
}

// AffineF32 is dst = x*scale + shift, rounded once where the CPU has fused multiply-add.
func AffineF32(dst, x []float32, scale, shift float32) {
	x = x[:len(dst)]
	if hasAVX512 && len(dst) > 0 {
		affineF32AVX512(&dst[0], &x[0], scale, shift, len(dst))
		return
	}
	if hasAVX2 && len(dst) > 0 {
		affineF32AVX2(&dst[0], &x[0], scale, shift, len(dst))
		return
	}
	for i, v := range x {
		dst[i] = v*scale + shift
	}
}

// center is dst = (x-mean)*scale + shift: the difference first, because the mean may be much larger than the deviation.
func center(dst, x []float32, mean, scale, shift float32) {
	x = x[:len(dst)]
	if hasAVX512 && len(dst) > 0 {
		centerF32AVX512(&dst[0], &x[0], mean, scale, shift, len(dst))
		return
	}
	if hasAVX2 && len(dst) > 0 {
		centerF32AVX2(&dst[0], &x[0], mean, scale, shift, len(dst))
		return
	}
	for i, v := range x {
		dst[i] = (v-mean)*scale + shift
	}
}

// weightSum is dst = e^(x - m), and returns the sum of dst; m is the largest of x. Weights below e^-87 are 0, as in PyTorch: numbers below
// the normal range, which masks make, would slow down this function and what follows a hundredfold.
func weightSum(dst, x []float32, m float32) float32 {
	x = x[:len(dst)]
	if hasAVX512 {
		return weightSumF32AVX512(&dst[0], &x[0], m, len(x))
	}
	if hasAVX2 {
		return weightSumF32AVX2(&dst[0], &x[0], m, len(x))
	}
	sum := float32(0)
	for i, v := range x {
		e := float32(0)
		if !(v-m < -87) {
			e = float32(math.Exp(float64(v - m)))
		}
		dst[i] = e
		sum += e
	}
	return sum
}

// SoftmaxF32 normalizes each of the rows of n elements: e^x / sum e^x. dst may be x. A row of -Inf gives NaN, as in PyTorch.
func SoftmaxF32(p *pool.Pool, dst, x []float32, rows, n int) {
	if n == 0 {
		return
	}
	p.ParallelFor(rows, rowGrain(4*n), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			d, s := dst[r*n:r*n+n], x[r*n:r*n+n]
			sum := weightSum(d, s, MaxF32(s))
			MulScalarF32(d, d, 1/sum)
		}
	})
}

// LogSoftmaxF32 is x - log(sum e^x) in each of the rows of n elements. dst may be x.
func LogSoftmaxF32(p *pool.Pool, dst, x []float32, rows, n int) {
	if n == 0 {
		return
	}
	p.ParallelFor(rows, rowGrain(4*n), func(lo, hi int) {
		var block [256]float32
		for r := lo; r < hi; r++ {
			d, s := dst[r*n:r*n+n], x[r*n:r*n+n]
			m := MaxF32(s)
			sum := 0.0
			for i := 0; i < n; i += len(block) {
				part := s[i:min(n, i+len(block))]
				sum += float64(weightSum(block[:len(part)], part, m))
			}
			// Two steps, because m may be large and the logarithm small.
			AddScalarF32(d, s, -m)
			AddScalarF32(d, d, -float32(math.Log(sum)))
		}
	})
}

// SoftmaxColumnsF32 normalizes each of w columns over n rows that lie step elements apart, as [SoftmaxF32] or, if log is set,
// [LogSoftmaxF32] do rows. w is at most 256. dst may be x.
func SoftmaxColumnsF32(dst, x []float32, n, step, w int, log bool) {
	var maxima, sums, tmp [256]float32
	m, s, t := maxima[:w], sums[:w], tmp[:w]
	copy(m, x[:w])
	for r := 1; r < n; r++ {
		MaximumF32(m, m, x[r*step:r*step+w])
	}
	for r := range n {
		d := dst[r*step : r*step+w]
		e := d
		SubF32(d, x[r*step:r*step+w], m)
		if log {
			e = t
		}
		ExpF32(e, d)
		AddF32(s, s, e)
	}
	if log {
		LogF32(s, s)
	} else {
		RDivScalarF32(s, s, 1)
	}
	for r := range n {
		d := dst[r*step : r*step+w]
		if log {
			SubF32(d, d, s)
		} else {
			MulF32(d, d, s)
		}
	}
}

// LayerNormF32 normalizes rows of n elements to mean 0 and variance 1 (biased, plus eps), then applies weight and bias [n], each nil
// for none. Where mean and rstd [rows] are not nil they receive the mean and 1/sqrt(variance+eps). dst may be x.
func LayerNormF32(p *pool.Pool, dst, x, weight, bias []float32, rows, n int, eps float32, mean, rstd []float32) {
	p.ParallelFor(rows, rowGrain(2*n), func(lo, hi int) {
		// Some rows at a time, step by step: the steps of one row wait for each other.
		const group = 8
		var m, k [group]float32
		for r := lo; r < hi; r += group {
			g := min(group, hi-r)
			for i := range g {
				m[i] = SumF32(x[(r+i)*n:(r+i+1)*n]) / float32(n)
			}
			for i := range g {
				k[i] = SumSquaresAroundF32(x[(r+i)*n:(r+i+1)*n], m[i])
			}
			for i := range g {
				k[i] = 1 / float32(math.Sqrt(float64(k[i]/float32(n)+eps)))
			}
			for i := range g {
				normRow(dst[(r+i)*n:(r+i+1)*n], x[(r+i)*n:(r+i+1)*n], weight, bias, m[i], k[i])
			}
			if mean != nil {
				copy(mean[r:r+g], m[:g])
			}
			if rstd != nil {
				copy(rstd[r:r+g], k[:g])
			}
		}
	})
}

// normRow is (x-mean)*scale*weight + bias; weight and bias may be nil.
func normRow(d, x, weight, bias []float32, mean, scale float32) {
	switch {
	case hasAVX512 && weight != nil && bias != nil && len(d) > 0:
		normRowF32AVX512(&d[0], &x[0], &weight[0], &bias[0], mean, scale, len(d))
	case hasAVX2 && weight != nil && bias != nil && len(d) > 0:
		normRowF32AVX2(&d[0], &x[0], &weight[0], &bias[0], mean, scale, len(d))
	default:
		center(d, x, mean, scale, 0)
		weigh(d, weight, bias)
	}
}

// weigh is d*weight + bias, each if there is one.
func weigh(d, weight, bias []float32) {
	switch {
	case weight != nil && bias != nil:
		MulAddF32(d, d, weight, bias)
	case weight != nil:
		MulF32(d, d, weight)
	case bias != nil:
		AddF32(d, d, bias)
	}
}

// RMSNormF32 divides rows of n elements by sqrt(mean(x^2) + eps), then multiplies with weight [n] (nil for none). dst may be x.
func RMSNormF32(p *pool.Pool, dst, x, weight []float32, rows, n int, eps float32) {
	p.ParallelFor(rows, rowGrain(2*n), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			d, s := dst[r*n:r*n+n], x[r*n:r*n+n]
			k := 1 / float32(math.Sqrt(float64(SumSquaresF32(s)/float32(n)+eps)))
			MulScalarF32(d, s, k)
			weigh(d, weight, nil)
		}
	})
}

// GroupNormF32 normalizes each group of channels of x [n, c, hw] to mean 0 and variance 1 (biased, plus eps), then applies weight and
// bias [c], each nil for none. Where mean and rstd [n*groups] are not nil they receive the statistics. dst may be x.
func GroupNormF32(p *pool.Pool, dst, x, weight, bias []float32, n, c, hw, groups int, eps float32, mean, rstd []float32) {
	per := c / groups
	p.ParallelFor(n*groups, rowGrain(2*per*hw), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			m, v := MeanVarF32(x[r*per*hw : (r+1)*per*hw])
			k := 1 / float32(math.Sqrt(float64(v+eps)))
			for i := range per {
				at, ch := (r*per+i)*hw, r%groups*per+i
				scale, shift := k, float32(0)
				if weight != nil {
					scale *= weight[ch]
				}
				if bias != nil {
					shift = bias[ch]
				}
				center(dst[at:at+hw], x[at:at+hw], m, scale, shift)
			}
			if mean != nil {
				mean[r] = m
			}
			if rstd != nil {
				rstd[r] = k
			}
		}
	})
}

// ScaleShiftF32 is x*scale[c] + shift[c] for x [n, c, hw]: a batch norm with known statistics. dst may be x.
func ScaleShiftF32(p *pool.Pool, dst, x, scale, shift []float32, n, c, hw int) {
	p.ParallelFor(n*c, rowGrain(hw), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			AffineF32(dst[r*hw:(r+1)*hw], x[r*hw:(r+1)*hw], scale[r%c], shift[r%c])
		}
	})
}

// AddRowF32 adds bias [n] to each of the rows of n elements. dst may be x.
func AddRowF32(p *pool.Pool, dst, x, bias []float32, rows, n int) {
	p.ParallelFor(rows, rowGrain(n), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			AddF32(dst[r*n:(r+1)*n], x[r*n:(r+1)*n], bias)
		}
	})
}
