package cpu

import (
	"fmt"
	"math"
	"math/rand"
	"testing"
)

// specials are the numbers that formulas get wrong.
var specials = []float32{0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-126, -0x1p-126, 1e-40, -1e-40,
	88.7, 88.8, 89.5, -87.4, -88, -103.9, -104.1, 0.5, 1.5, 2.5, -0.5, -2.5, 3.9999, 4.0001, -4, 3, -3, 20.1, 0x1p23 + 1, 0.6, 0.59999}

// ulpsApart is the number of float32 steps between got and the exact value.
func ulpsApart(got float32, want float64) float64 {
	w := float32(want)
	switch {
	case got != got || w != w:
		if got != got && w != w {
			return 0
		}
		return math.Inf(1)
	case got == w:
		return 0
	case math.IsInf(float64(w), 0) || math.IsInf(float64(got), 0):
		if math.Abs(want) > math.MaxFloat32*0.9999999 && math.Abs(float64(got)) > math.MaxFloat32*0.9999999 {
			return 1
		}
		return math.Inf(1)
	}
	step := float64(math.Nextafter32(float32(math.Abs(want)), math.MaxFloat32)) - math.Abs(float64(float32(math.Abs(want))))
	return math.Abs(float64(got)-want) / step
}

func signsDiffer(a, b float32) bool {
	return a == 0 && b == 0 && math.Signbit(float64(a)) != math.Signbit(float64(b))
}

// inputs are the special numbers, and numbers of every size.
func inputs(n int) []float32 {
	rng := rand.New(rand.NewSource(1))
	x := append([]float32{}, specials...)
	for len(x) < n {
		switch len(x) % 3 {
		case 0:
			x = append(x, float32(rng.NormFloat64()*3))
		case 1:
			x = append(x, float32(rng.NormFloat64()*40))
		default:
			x = append(x, math.Float32frombits(rng.Uint32()))
		}
	}
	return x
}

// maxUlps is what the assembly is allowed: error against float64, in ulp. The absolute term is for functions that cancel, and for
// those whose e^-x overflows where the result would still be a denormal.
var maxUlps = map[string]struct{ ulps, abs float64 }{
	"rsqrt": {1.5, 0}, "exp": {1.1, 0}, "log": {1.1, 0}, "tanh": {2, 0}, "sigmoid": {2.5, 3e-39}, "silu": {3, 3e-37}, "erf": {1.5, 0},
	"gelu": {8, 1e-7}, "gelu_tanh": {8, 1e-7}, "mish": {5, 1e-42}, "sin": {2, 2e-7}, "cos": {2, 2e-7}, "hardswish": {2, 1e-6}, "hardsigmoid": {1.5, 1e-7},
	"expm1": {2, 0}, "log1p": {2, 0},
}

var exact = map[string]func(x float64) float64{
	"neg": func(x float64) float64 { return -x }, "abs": math.Abs, "sqrt": math.Sqrt, "rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
	"relu": func(x float64) float64 {
		if x < 0 {
			return 0
		}
		return x
	},
	"cube":  func(x float64) float64 { return float64(float32(x)*float32(x)) * x },
	"floor": math.Floor, "ceil": math.Ceil, "round": math.RoundToEven, "trunc": math.Trunc, "exp": math.Exp, "expm1": math.Expm1,
	"log": math.Log, "log1p": math.Log1p, "tanh": math.Tanh, "sigmoid": sigmoid64, "erf": math.Erf, "gelu": gelu64, "gelu_tanh": geluTanh64,
	"sin": math.Sin, "cos": math.Cos, "silu": func(x float64) float64 { return x / (1 + math.Exp(-x)) }, "mish": mish64,
	"hardswish":   func(x float64) float64 { return x * min(max(x+3, 0), 6) / 6 },
	"hardsigmoid": func(x float64) float64 { return min(max(x+3, 0), 6) / 6 },
}

func TestUnaryAgainstFloat64(t *testing.T) {
	x := inputs(100_000)
	variants(t, func(t *testing.T) {
		for _, r := range unaryRows {
			x := x
			if r.limit != 0 { // a part without numbers beyond the limit, so that the assembly runs
				x = append(x[:len(x):len(x)], randoms(rand.New(rand.NewSource(2)), 4096)...)
				MulScalarF32(x[len(x)-3000:], x[len(x)-3000:], 1000)
			}
			got := make([]float32, len(x))
			r.run(got, x)
			limit, f := maxUlps[r.name], exact[r.name]
			worst, at := 0.0, float32(0)
			for i, v := range x {
				want := f(float64(v))
				if r.name == "hardswish" && v*6 > math.MaxFloat32 { // 6x overflows, in PyTorch too
					want = math.Inf(1)
				}
				u := ulpsApart(got[i], want)
				if u > limit.ulps && math.Abs(float64(got[i])-want) <= limit.abs {
					continue
				}
				if u > worst {
					worst, at = u, v
				}
				if signsDiffer(got[i], float32(want)) && v == 0 {
					t.Errorf("%s(%v) is %v, want %v", r.name, v, got[i], want)
				}
			}
			t.Logf("%-12s %.2f ulp, at %v", r.name, worst, at)
			if worst > limit.ulps {
				t.Errorf("%s(%v): %.2f ulp, want at most %v", r.name, at, worst, limit.ulps)
			}
		}
	})
}

// Every length and offset around the vectors' width gives the same numbers, and nothing beside the slice is written.
func TestPointwiseLengths(t *testing.T) {
	x, y := inputs(200), inputs(300)[100:]
	variants(t, func(t *testing.T) {
		for n := range 70 {
			for _, r := range unaryRows {
				lengths(t, r.name, n, func(dst []float32, at int) { r.run(dst, x[at:at+n]) })
			}
			for _, r := range binaryRows {
				lengths(t, r.name, n, func(dst []float32, at int) { r.run(dst, x[at:at+n], y[at:at+n]) })
			}
			for _, r := range scalarRows {
				lengths(t, r.name+" scalar", n, func(dst []float32, at int) { r.run(dst, x[at:at+n], -1.5) })
			}
		}
	})
}

const canary = 12345.5

// lengths compares n results with those computed one by one, in a frame of canaries.
func lengths(t *testing.T, name string, n int, f func(dst []float32, at int)) {
	t.Helper()
	buf := make([]float32, n+18)
	for i := range buf {
		buf[i] = canary
	}
	dst := buf[9 : 9+n : 9+n]
	f(dst, 3)
	for i, v := range buf {
		if (i < 9 || i >= 9+n) && v != canary {
			t.Fatalf("%s of %d wrote %d elements beside its output", name, n, max(9-i, i-8-n))
		}
	}
	if n == 0 {
		return
	}
	all := append([]float32(nil), dst...)
	f(dst, 3) // again over its own result's memory
	for i := range all {
		if !sameBits(all[i], dst[i]) {
			t.Fatalf("%s of %d: element %d is %v, then %v", name, n, i, all[i], dst[i])
		}
	}
}

func sameBits(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

func TestBinaryAgainstGeneric(t *testing.T) {
	var a, b []float32
	for _, x := range specials {
		for _, y := range specials {
			a, b = append(a, x), append(b, y)
		}
	}
	got, want := make([]float32, len(a)), make([]float32, len(a))
	for _, r := range binaryRows {
		r.generic(want, a, b)
		r.run(got, a, b)
		for i := range got {
			if !sameBits(got[i], want[i]) {
				t.Errorf("%s(%v, %v) is %v, want %v", r.name, a[i], b[i], got[i], want[i])
			}
		}
	}
	for _, r := range scalarRows {
		for _, s := range specials {
			r.generic(want, a, s)
			r.run(got, a, s)
			for i := range got {
				if !sameBits(got[i], want[i]) {
					t.Errorf("%s(%v, scalar %v) is %v, want %v", r.name, a[i], s, got[i], want[i])
				}
			}
		}
	}
}

// ELU, softplus and where against float64, special numbers included; dst may be an input.
func TestComposedFunctions(t *testing.T) {
	x := inputs(3000)
	y, c := make([]float32, len(x)), make([]float32, len(x))
	for i := range c {
		c[i] = float32(i % 3)
	}
	check := func(t *testing.T, name string, want func(v float64, i int) float64) {
		t.Helper()
		for i, v := range x {
			if w := want(float64(v), i); ulpsApart(y[i], w) > 4 && math.Abs(float64(y[i])-w) > 1e-37 {
				t.Errorf("%s(%v) is %v, want %v", name, v, y[i], w)
			}
		}
	}
	variants(t, func(t *testing.T) {
		copy(y, x)
		ELUF32(y, y, 1.5, 0.75, 0.5)
		check(t, "elu", func(v float64, _ int) float64 {
			if v > 0 || v != v {
				return v * 0.75
			}
			return math.Expm1(v*0.5) * 1.5 * 0.75
		})
		copy(y, x)
		SoftplusF32(y, y, 2, 15)
		check(t, "softplus", func(v float64, _ int) float64 {
			if v*2 > 15 {
				return v
			}
			return math.Log1p(math.Exp(v*2)) / 2
		})
		copy(y, x)
		WhereF32(y, c, y, c)
		check(t, "where", func(v float64, i int) float64 {
			if c[i] != 0 {
				return v
			}
			return 0
		})
	})
}

func TestRepeat(t *testing.T) {
	src := inputs(70)
	variants(t, func(t *testing.T) {
		for each := 1; each < 70; each++ {
			for m := range 5 {
				buf := make([]float32, m*each+20)
				for i := range buf {
					buf[i] = canary
				}
				RepeatF32(buf[10:10+m*each], src[3:3+m], each)
				for i, v := range buf {
					want := float32(canary)
					if j := i - 10; j >= 0 && j < m*each {
						want = src[3+j/each]
					}
					if !sameBits(v, want) {
						t.Fatalf("%d numbers %d times: element %d is %v, want %v", m, each, i-10, v, want)
					}
				}
			}
		}
	})
}

func BenchmarkUnary(b *testing.B) {
	x := randoms(rand.New(rand.NewSource(1)), 4096)
	y := make([]float32, len(x))
	for _, r := range unaryRows {
		b.Run(fmt.Sprint(r.name), func(b *testing.B) {
			b.SetBytes(int64(8 * len(x)))
			for b.Loop() {
				r.run(y, x)
			}
		})
	}
}
