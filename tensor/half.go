package tensor

import (
	"math"

	"github.com/x448/float16"
)

// F16ToF32 widens the bits of an IEEE half.
func F16ToF32(b uint16) float32 { return float16.Frombits(b).Float32() }

// F32ToF16 rounds to the nearest IEEE half, ties to even, and gives its bits.
func F32ToF16(f float32) uint16 { return float16.Fromfloat32(f).Bits() }

// BF16ToF32 widens the bits of a bfloat16.
func BF16ToF32(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// F32ToBF16 rounds to the nearest bfloat16, ties to even; every NaN becomes 0x7fc0, as in PyTorch.
func F32ToBF16(f float32) uint16 {
	u := math.Float32bits(f)
	if f != f {
		return 0x7fc0
	}
	return uint16((u + 0x7fff + (u>>16)&1) >> 16)
}

// float8 describes an 8-bit float with the given fields.
type float8 struct {
	mant, bias int
	fnuz       bool // no infinities, no negative zero, NaN is 0x80
	fn         bool // no infinities, NaN is 0x7f
}

var float8s = map[DType]float8{
	Float8E4M3FN:   {mant: 3, bias: 7, fn: true},
	Float8E5M2:     {mant: 2, bias: 15},
	Float8E4M3FNUZ: {mant: 3, bias: 8, fnuz: true},
	Float8E5M2FNUZ: {mant: 2, bias: 16, fnuz: true},
}

// F8Table gives the float32 value of each of the 256 bit patterns of an 8-bit float type (OCP 8-bit floating point
// specification; the FNUZ forms as in PyTorch; E8M0 is 2^(b-127) with 0xff for NaN). It is nil for other types.
func F8Table(d DType) *[256]float32 {
	if !d.IsFloat8() {
		return nil
	}
	return &f8Tables[d-Float8E4M3FN]
}

var f8Tables = func() (tables [5][256]float32) {
	for d := Float8E4M3FN; d <= Float8E8M0FNU; d++ {
		for b := range 256 {
			tables[d-Float8E4M3FN][b] = decodeF8(d, uint8(b))
		}
	}
	return tables
}()

func decodeF8(d DType, b uint8) float32 {
	nan := float32(math.NaN())
	if d == Float8E8M0FNU {
		if b == 0xff {
			return nan
		}
		return float32(math.Ldexp(1, int(b)-127))
	}
	f := float8s[d]
	exp := int(b&0x7f) >> f.mant
	man := int(b) & (1<<f.mant - 1)
	switch {
	case f.fnuz && b == 0x80, f.fn && b&0x7f == 0x7f:
		return nan
	case !f.fn && !f.fnuz && exp == 0x1f:
		if man != 0 {
			return nan
		}
		return float32(math.Copysign(math.Inf(1), -float64(b>>7)+0.5))
	}
	v := math.Ldexp(float64(man), 1-f.bias-f.mant)
	if exp != 0 {
		v = math.Ldexp(float64(man+1<<f.mant), exp-f.bias-f.mant)
	}
	if b&0x80 != 0 {
		v = math.Copysign(v, -1)
	}
	return float32(v)
}

// F32ToF8 rounds to an 8-bit float as PyTorch's conversion does: nearest, ties to even; E4M3FN saturates only to NaN
// patterns beyond its range as PyTorch defines it.
func F32ToF8(d DType, v float32) uint8 {
	if d == Float8E8M0FNU {
		return f32ToE8M0(v)
	}
	f := float8s[d]
	sign := uint8(math.Float32bits(v) >> 31 << 7)
	nan, over := uint8(0x7f)|sign, uint8(0x7c)|sign
	switch {
	case f.fnuz:
		nan, over = 0x80, 0x80
	case f.fn:
		over = 0x7e | sign // PyTorch 2.15 saturates at 448
	default:
		nan = 0x7f | sign
	}
	if v != v {
		return nan
	}
	a := math.Abs(float64(v))
	table := F8Table(d)
	largest := uint8(0x7f)
	switch {
	case f.fn:
		largest = 0x7e
	case !f.fnuz:
		largest = 0x7b
	}
	top := float64(table[largest])
	step := top - float64(table[largest-1])
	if a >= top+step/2 || math.IsInf(a, 0) {
		return over
	}
	// The patterns are ordered like the values: find the last one not above a, then round between it and the next.
	lo, hi := 0, int(largest)
	for lo < hi {
		if mid := (lo + hi + 1) / 2; float64(table[mid]) <= a {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	if lo < int(largest) {
		down, up := a-float64(table[lo]), float64(table[lo+1])-a
		if up < down || (up == down && lo&1 == 1) {
			lo++
		}
	}
	if lo == 0 && f.fnuz {
		return 0
	}
	return uint8(lo) | sign
}

// f32ToE8M0 rounds to the nearest power of two as PyTorch does: up when the mantissa is above a half, or exactly a half
// with an exponent pattern that is not zero.
func f32ToE8M0(v float32) uint8 {
	u := math.Float32bits(v)
	exp := u >> 23 & 0xff
	if exp == 0xff {
		return 0xff
	}
	if guard := u&0x400000 != 0; guard && (u&0x3fffff != 0 || exp > 0) {
		exp++
	}
	return uint8(exp)
}
