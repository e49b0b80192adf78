package cpu

import "math"

// Quant says which numbers 8-bit integers q stand for: (q - Zero) * Scale. Signed integers are held in bytes in two's complement.
type Quant struct {
	Scale  float32
	Zero   int32
	Signed bool
}

// flip turns the integers into unsigned ones when exclusive-ored, which adds as much to the zero point.
func (q *Quant) flip() int32 {
	if q.Signed {
		return 0x80
	}
	return 0
}

// QuantTo is a rounding of float32 to 8-bit integers: clamp(round(x * Inv) + Zero, Min, Max), halves to even, as
// quantized_decomposed.quantize_per_tensor has it, with Inv the float32 of 1/scale.
type QuantTo struct {
	Inv            float32
	Zero, Min, Max int32
}

// QuantizeF32 rounds x to 8-bit integers. NaN becomes 0.
func QuantizeF32(dst []uint8, x []float32, q QuantTo) {
	const block = 1024
	params := [4]float32{q.Inv, asFloat(q.Zero), asFloat(q.Min), asFloat(q.Max)}
	for len(x) > 0 {
		part := x[:min(len(x), block)]
		n := 0
		if full := len(part) &^ 15; hasAVX2 && full > 0 && MaxF32(part) == MaxF32(part) {
			n = full
			if hasAVX512 {
				quantizeF32AVX512(&dst[0], &part[0], n, &params[0])
			} else {
				quantizeF32AVX2(&dst[0], &part[0], n, &params[0])
			}
		}
		for j := n; j < len(part); j++ {
			dst[j] = uint8(q.one(part[j]))
		}
		dst, x = dst[len(part):], x[len(part):]
	}
}

// one rounds one number.
func (q *QuantTo) one(x float32) int32 {
	if x != x {
		return 0
	}
	v := float32(math.RoundToEven(float64(x*q.Inv))) + float32(q.Zero)
	return int32(min(max(v, float32(q.Min)), float32(q.Max)))
}

// DequantizeF32 is (x - Zero) * Scale.
func DequantizeF32(dst []float32, x []uint8, q Quant) {
	n, zero := 0, float32(q.Zero+q.flip())
	if full := len(dst) &^ 15; hasAVX2 && full > 0 {
		n = full
		if hasAVX512 {
			dequantizeF32AVX512(&dst[0], &x[0], n, q.flip(), zero, q.Scale)
		} else {
			dequantizeF32AVX2(&dst[0], &x[0], n, q.flip(), zero, q.Scale)
		}
	}
	for i := n; i < len(dst); i++ {
		dst[i] = (float32(int32(x[i])^q.flip()) - zero) * q.Scale
	}
}

func asFloat(i int32) float32 { return math.Float32frombits(uint32(i)) }
