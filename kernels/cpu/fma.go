package cpu

import "math"

// fma32 is x*y + z with one rounding, as the vector instructions compute it. The product is exact in float64; the sum is rounded to odd
// there, so that rounding it again to float32 is right (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums").
func fma32(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	t := s - p
	if e := (p - (s - t)) + (c - t); e != 0 && s-s == 0 {
		if b := math.Float64bits(s); b&1 == 0 {
			if (e > 0) == (s > 0) {
				b++
			} else {
				b--
			}
			s = math.Float64frombits(b)
		}
	}
	return float32(s)
}
