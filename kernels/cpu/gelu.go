package cpu

import "math"

// The exact gelu in the three forms that differ at the end of float32's range. Between, they are one function.

// GELUF32 is (x/2) * (1 + erf(x/sqrt 2)): what is in the range stays there, +Inf is +Inf.
func GELUF32(dst, x []float32) { rowGELU.run(dst, x) }

// GELUHalfLastF32 is (x * (1 + erf(x/sqrt 2))) / 2: +Inf from half the largest number on.
func GELUHalfLastF32(dst, x []float32) { halfLast(dst, x, GELUF32, inf32) }

// GELUOneDNNF32 is gelu as oneDNN computes it: [GELUHalfLastF32], and NaN of +Inf.
func GELUOneDNNF32(dst, x []float32) { halfLast(dst, x, GELUF32, nan32) }

// GELUTanhF32 is the approximation (x/2) * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))).
func GELUTanhF32(dst, x []float32) { rowGELUTanh.run(dst, x) }

// GELUTanhHalfLastF32 is [GELUTanhF32] with the half applied last: +Inf from half the largest number on.
func GELUTanhHalfLastF32(dst, x []float32) { halfLast(dst, x, GELUTanhF32, inf32) }

var inf32, nan32 = float32(math.Inf(1)), float32(math.NaN())

// halfLast is f, which for large x is x, but what is above half the largest number becomes +Inf, and +Inf becomes atInf.
func halfLast(dst, x []float32, f func(dst, x []float32), atInf float32) {
	if len(x) == 0 {
		return
	}
	if MaxF32(x) <= math.MaxFloat32/2 {
		f(dst, x)
		return
	}
	var block [64]float32 // dst may be x
	for i := 0; i < len(x); i += len(block) {
		n := copy(block[:], x[i:])
		f(dst[i:i+n], x[i:i+n])
		for j, v := range block[:n] {
			switch {
			case v > math.MaxFloat32:
				dst[i+j] = atInf
			case v > math.MaxFloat32/2:
				dst[i+j] = inf32
			}
		}
	}
}
