package cpu

import "math"

// The conversions write len(dst) numbers. Rounding is to nearest even; NaN stays NaN.

// F16ToF32 widens IEEE half precision.
func F16ToF32(dst []float32, src []uint16) {
	n := 0
	if hasAVX2 && len(dst) >= 8 {
		n = len(dst) &^ 7
		f16ToF32AVX2(&dst[0], &src[0], n)
	}
	for i, h := range src[n:len(dst)] {
		dst[n+i] = halfToFloat(h)
	}
}

// F32ToF16 rounds to IEEE half precision; what is too large becomes infinite.
func F32ToF16(dst []uint16, src []float32) {
	n := 0
	if hasAVX2 && len(dst) >= 8 {
		n = len(dst) &^ 7
		f32ToF16AVX2(&dst[0], &src[0], n)
	}
	for i, v := range src[n:len(dst)] {
		dst[n+i] = floatToHalf(v)
	}
}

// BF16ToF32 widens bfloat16.
func BF16ToF32(dst []float32, src []uint16) {
	n := 0
	if hasAVX2 && len(dst) >= 8 {
		n = len(dst) &^ 7
		bf16ToF32AVX2(&dst[0], &src[0], n)
	}
	for i, h := range src[n:len(dst)] {
		dst[n+i] = math.Float32frombits(uint32(h) << 16)
	}
}

// F32ToBF16 rounds to bfloat16; NaN becomes 0x7fc0, as PyTorch has it.
func F32ToBF16(dst []uint16, src []float32) {
	n := 0
	if hasAVX2 && len(dst) >= 8 {
		n = len(dst) &^ 7
		f32ToBF16AVX2(&dst[0], &src[0], n)
	}
	for i, v := range src[n:len(dst)] {
		dst[n+i] = floatToBF16(v)
	}
}

// I32ToF32 converts integers.
func I32ToF32(dst []float32, src []int32) {
	n := 0
	if hasAVX2 && len(dst) >= 8 {
		n = len(dst) &^ 7
		i32ToF32AVX2(&dst[0], &src[0], n)
	}
	for i, v := range src[n:len(dst)] {
		dst[n+i] = float32(v)
	}
}

// I64ToF32 converts integers.
func I64ToF32(dst []float32, src []int64) {
	for i, v := range src[:len(dst)] {
		dst[i] = float32(v)
	}
}

// U8ToF32 converts integers.
func U8ToF32(dst []float32, src []uint8) {
	n := 0
	if hasAVX2 && len(dst) >= 8 {
		n = len(dst) &^ 7
		u8ToF32AVX2(&dst[0], &src[0], n)
	}
	for i, v := range src[n:len(dst)] {
		dst[n+i] = float32(v)
	}
}

// F32ToF64 widens.
func F32ToF64(dst []float64, src []float32) {
	n := 0
	if hasAVX2 && len(dst) >= 8 {
		n = len(dst) &^ 7
		f32ToF64AVX2(&dst[0], &src[0], n)
	}
	for i, v := range src[n:len(dst)] {
		dst[n+i] = float64(v)
	}
}

// F64ToF32 rounds.
func F64ToF32(dst []float32, src []float64) {
	n := 0
	if hasAVX2 && len(dst) >= 8 {
		n = len(dst) &^ 7
		f64ToF32AVX2(&dst[0], &src[0], n)
	}
	for i, v := range src[n:len(dst)] {
		dst[n+i] = float32(v)
	}
}

func halfToFloat(h uint16) float32 {
	sign, mag := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	if mag >= 0x7c00 { // Inf, NaN: made quiet
		bits := sign | mag<<13 | 0x7f800000
		if mag > 0x7c00 {
			bits |= 1 << 22
		}
		return math.Float32frombits(bits)
	}
	// The bits of a half, moved to float32's place, are the number times 2^-112; this makes denormals right too.
	v := math.Float32frombits(mag<<13) * 0x1p112
	return math.Float32frombits(math.Float32bits(v) | sign)
}

func floatToHalf(v float32) uint16 {
	b := math.Float32bits(v)
	sign, mag := uint16(b>>16&0x8000), b&0x7fffffff
	switch {
	case mag > 0x7f800000:
		return sign | 0x7e00 | uint16(mag>>13&0x1ff)
	case mag >= 0x477ff000: // rounds to 65536 or more
		return sign | 0x7c00
	case mag < 0x38800000: // denormal: adding 1/2 moves the last bit kept to the last place
		return sign | uint16(math.Float32bits(math.Float32frombits(mag)+0.5)-0x3f000000)
	}
	mag += 0xfff + mag>>13&1
	return sign | uint16((mag-0x38000000)>>13)
}

func floatToBF16(v float32) uint16 {
	if v != v {
		return 0x7fc0
	}
	b := math.Float32bits(v)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
