package cpu

import "math"

// each makes a slice function of a function of one number.
func each(f func(x float32) float32) unarySlice {
	return func(dst, x []float32) {
		for i, v := range x {
			dst[i] = f(v)
		}
	}
}

// each64 computes in float64 and rounds once.
func each64(f func(x float64) float64) unarySlice {
	return func(dst, x []float32) {
		for i, v := range x {
			dst[i] = float32(f(float64(v)))
		}
	}
}

func addGeneric(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func subGeneric(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

func mulGeneric(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func divGeneric(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

// larger is the larger number, or the NaN; of two zeros the second, as PyTorch's vector code and the CPU's instruction have it.
func larger(a, b float32) float32 {
	if a > b || a != a {
		return a
	}
	return b
}

func smaller(a, b float32) float32 {
	if a < b || a != a {
		return a
	}
	return b
}

func maximumGeneric(dst, a, b []float32) {
	for i := range dst {
		dst[i] = larger(a[i], b[i])
	}
}

func minimumGeneric(dst, a, b []float32) {
	for i := range dst {
		dst[i] = smaller(a[i], b[i])
	}
}

func preluGeneric(dst, a, b []float32) {
	for i := range dst {
		if a[i] > 0 {
			dst[i] = a[i]
		} else {
			dst[i] = a[i] * b[i]
		}
	}
}

func addScalarGeneric(dst, a []float32, s float32) {
	for i, v := range a {
		dst[i] = v + s
	}
}

func rsubScalarGeneric(dst, a []float32, s float32) {
	for i, v := range a {
		dst[i] = s - v
	}
}

func mulScalarGeneric(dst, a []float32, s float32) {
	for i, v := range a {
		dst[i] = v * s
	}
}

func divScalarGeneric(dst, a []float32, s float32) {
	for i, v := range a {
		dst[i] = v / s
	}
}

func rdivScalarGeneric(dst, a []float32, s float32) {
	for i, v := range a {
		dst[i] = s / v
	}
}

func maximumScalarGeneric(dst, a []float32, s float32) {
	for i, v := range a {
		dst[i] = larger(v, s)
	}
}

func minimumScalarGeneric(dst, a []float32, s float32) {
	for i, v := range a {
		dst[i] = smaller(v, s)
	}
}

func leakyReLUGeneric(dst, a []float32, s float32) {
	for i, v := range a {
		if !(v > 0) {
			v *= s
		}
		dst[i] = v
	}
}

func relu(x float32) float32 {
	if x < 0 {
		return 0
	}
	return x
}

func rsqrt(x float32) float32 { return 1 / float32(math.Sqrt(float64(x))) }

func sigmoid64(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func gelu64(x float64) float64 {
	if math.IsInf(x, -1) {
		return math.NaN() // -Inf * 0, as the formula gives it
	}
	return 0.5 * x * math.Erfc(-x*math.Sqrt2/2)
}

func geluTanh64(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(math.Sqrt2*math.Sqrt(1/math.Pi)*(x+0.044715*x*x*x)))
}

func clamp6(x float32) float32 {
	return smaller(larger(x+3, 0), 6)
}

func mish64(x float64) float64 { return x * math.Tanh(softplus64(x)) }

// softplus64 is log(1 + e^x).
func softplus64(x float64) float64 {
	if x > 40 {
		return x
	}
	return math.Log1p(math.Exp(x))
}

func repeatGeneric(dst, src []float32, each int) {
	for i, v := range src {
		row := dst[i*each : (i+1)*each]
		for j := range row {
			row[j] = v
		}
	}
}
