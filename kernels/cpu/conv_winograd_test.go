package cpu

import (
	"math"
	"math/rand"
	"testing"
)

// An infinity, a NaN or an overflow spoils only the outputs whose windows hold it.
func TestWinogradKeepsInfinitiesApart(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	variants(t, func(t *testing.T) {
		c := conv2d(1, 32, 32, 1, 17, 18, 3, 3, 1, 1, 1)
		x, w := randoms(rng, c.In*17*18), randoms(rng, c.Out*c.In*9)
		x[2*18+3], x[5*17*18+9*18+9], x[7*17*18+16*18+17] = float32(math.Inf(1)), float32(math.NaN()), 3e38
		x[9*17*18+4*18+14] = 1e-42
		want, got := make([]float32, c.Out*17*18), make([]float32, c.Out*17*18)
		ConvDirect(&c, x, w, nil, want)
		c.ForwardF32(nil, x, w, nil, got)
		for i, v := range want {
			g := got[i]
			if g == v || g != g && v != v || math.Abs(float64(g-v)) <= 1e-4*(1+math.Abs(float64(v))) {
				continue
			}
			t.Fatalf("element %d is %v, want %v", i, g, v)
		}
	})
}

// The results of the transform are as close to the exact sum as its rounding errors allow: within 2e-5 of the outputs' scale.
func TestWinogradError(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	variants(t, func(t *testing.T) {
		for _, channels := range []int{32, 128} {
			c := conv2d(1, channels, channels, 1, 10, 10, 3, 3, 1, 1, 1)
			x, w := randoms(rng, c.In*10*10), randoms(rng, c.Out*c.In*9)
			want, got := make([]float64, c.Out*10*10), make([]float32, c.Out*10*10)
			ConvDirect(&c, widen(x), widen(w), nil, want)
			c.ForwardF32(nil, x, w, nil, got)
			scale, worst := 0.0, 0.0
			for i, v := range want {
				scale += v * v
				worst = max(worst, math.Abs(float64(got[i])-v))
			}
			if scale = math.Sqrt(scale / float64(len(want))); worst > 2e-5*scale {
				t.Errorf("%d channels: off by %g at a scale of %g", channels, worst, scale)
			}
		}
	})
}
