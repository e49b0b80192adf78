package cpu

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// definition is the transform by its definition, in double precision.
func definition(x []complex128, sign float64) []complex128 {
	out := make([]complex128, len(x))
	for k := range out {
		for j, v := range x {
			out[k] += v * cmplx.Exp(complex(0, sign*2*math.Pi*float64(j*k%len(x))/float64(len(x))))
		}
	}
	return out
}

// lane gives one of the 16 sequences.
func lane(x []float32, n, l int) []complex128 {
	out := make([]complex128, n)
	for i := range out {
		out[i] = complex(float64(x[i*32+l]), float64(x[i*32+16+l]))
	}
	return out
}

func sameSpectrum(t *testing.T, what string, n int, got, want []complex128) {
	t.Helper()
	norm := 0.0
	for _, v := range want {
		norm = max(norm, cmplx.Abs(v))
	}
	for i, v := range want {
		if d := cmplx.Abs(got[i] - v); !(d <= 1e-6*norm) {
			t.Fatalf("%s of %d: number %d is %v, want %v", what, n, i, got[i], v)
		}
	}
}

func TestFFT(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16, 25, 30, 60, 64, 100, 128, 200, 240, 360, 400, 512, 625} {
		f := NewFFT(n)
		if f == nil {
			t.Skip("transforms by lanes need AVX-512")
		}
		x := make([]float32, n*32)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		for _, forward := range []bool{true, false} {
			sign := -1.0
			if !forward {
				sign = 1
			}
			got := f.Transform(append([]float32(nil), x...), make([]float32, n*32), forward)
			for l := range FFTLanes {
				sameSpectrum(t, "transform", n, lane(got, n, l), definition(lane(x, n, l), sign))
			}
		}
		rows, back := make([]float32, n*32), make([]float32, n*32)
		JoinComplex(rows, x, n, 16)
		SplitComplex(back, rows, n, 16)
		for i := range x {
			if rows[i/32*32+i%16*2+i/16%2] != x[i] || back[i] != x[i] {
				t.Fatalf("rows of complex numbers: place %d", i)
			}
		}
	}
	for _, n := range []int{7, 77, 13} {
		if NewFFT(n) != nil {
			t.Errorf("a plan for %d", n)
		}
	}
}

func TestRealFFT(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{4, 6, 8, 10, 12, 18, 20, 24, 30, 64, 100, 128, 400, 480, 512} {
		f := NewRealFFT(n)
		if f == nil {
			t.Skip("transforms by lanes need AVX-512")
		}
		room := (n/2 + 1) * 32
		x := make([]float32, room)
		for i := range n * 16 {
			x[i] = float32(r.NormFloat64())
		}
		got := f.Forward(append([]float32(nil), x...), make([]float32, room))
		for l := range FFTLanes {
			seq := make([]complex128, n)
			for i := range seq {
				seq[i] = complex(2*float64(x[i*16+l]), 0)
			}
			sameSpectrum(t, "real transform", n, lane(got, n/2+1, l), definition(seq, -1)[:n/2+1])
		}
		for i := range got {
			got[i] /= 2 * float32(n)
		}
		got[16], got[n*16+16] = 5, 7 // imaginary parts that do not count
		back := f.Backward(got, make([]float32, room))
		for i := range n * 16 {
			if d := math.Abs(float64(back[i] - x[i])); !(d < 3e-6) {
				t.Fatalf("%d numbers there and back: place %d is %v, want %v", n, i, back[i], x[i])
			}
		}
	}
}
