package cpu

import (
	"fmt"
	"math"
	"math/rand"
	"testing"
)

func TestReductionsAtAllLengths(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	variants(t, func(t *testing.T) {
		for _, n := range append(upTo(70), 1023, 1024, 1025, 5000, 100_003) {
			buf := randoms(rng, n+16)
			x, y := buf[8:8+n], randoms(rng, n)
			for i := range 8 { // what lies beside must not count
				buf[i], buf[len(buf)-1-i] = float32(math.NaN()), float32(math.NaN())
			}
			var sum, squares, around, product, size float64
			lo, hi := math.Inf(1), math.Inf(-1)
			for i, v := range x {
				f := float64(v)
				sum += f
				squares += f * f
				around += (f - 0.25) * (f - 0.25)
				product += f * float64(y[i])
				size += math.Abs(f)
				lo, hi = min(lo, f), max(hi, f)
			}
			tol := 1e-6 * (1 + size)
			for name, d := range map[string]float64{
				"sum": float64(SumF32(x)) - sum, "sum of squares": float64(SumSquaresF32(x)) - squares,
				"sum of squares around": float64(SumSquaresAroundF32(x, 0.25)) - around, "dot": float64(DotF32(x, y)) - product,
			} {
				if !(math.Abs(d) <= tol) {
					t.Errorf("%s of %d is off by %v", name, n, d)
				}
			}
			if n > 0 && (float64(MaxF32(x)) != hi || float64(MinF32(x)) != lo || float64(x[ArgMaxF32(x)]) != hi) {
				t.Errorf("extremes of %d are %v, %v, at %d; want %v, %v", n, MinF32(x), MaxF32(x), ArgMaxF32(x), lo, hi)
			}
		}
	})
}

func upTo(n int) (r []int) {
	for i := range n {
		r = append(r, i)
	}
	return r
}

func TestExtremesPreferNaN(t *testing.T) {
	variants(t, func(t *testing.T) {
		for n := 1; n < 70; n++ {
			for at := range n {
				x := make([]float32, n)
				x[at] = float32(math.NaN())
				if a, b := MaxF32(x), MinF32(x); a == a || b == b || ArgMaxF32(x) != at {
					t.Fatalf("NaN at %d of %d: max %v, min %v, argmax %d", at, n, a, b, ArgMaxF32(x))
				}
			}
		}
		inf := float32(math.Inf(1))
		if MaxF32([]float32{-inf}) != -inf || MinF32([]float32{inf}) != inf {
			t.Error("the extreme of one infinity is not itself")
		}
	})
}

// The error of a long sum grows with the logarithm of its length: a million tenths.
func TestSumIsPairwise(t *testing.T) {
	x := make([]float32, 1<<20)
	FillF32(x, 0.1)
	want := float64(float32(0.1)) * float64(len(x))
	variants(t, func(t *testing.T) {
		if d := math.Abs(float64(SumF32(x))-want) / want; d > 1e-6 {
			t.Errorf("the sum is off by a factor of %v", d)
		}
	})
}

func BenchmarkReduce(b *testing.B) {
	x := randoms(rand.New(rand.NewSource(1)), 1<<16)
	y := append([]float32(nil), x...)
	for name, f := range map[string]func(){
		"sum": func() { SumF32(x) }, "max": func() { MaxF32(x) }, "dot": func() { DotF32(x, y) },
		"softmax": func() { SoftmaxF32(nil, y, x, 64, 1024) }, "layer_norm": func() { LayerNormF32(nil, y, x, x[:1024], x[:1024], 64, 1024, 1e-5, nil, nil) },
	} {
		b.Run(fmt.Sprint(name), func(b *testing.B) {
			b.SetBytes(int64(4 * len(x)))
			for b.Loop() {
				f()
			}
		})
	}
}
