package aten_test

import (
	"math/rand/v2"
	"testing"

	"github.com/pt2go/pt2/tensor"
)

func fftCall(t *testing.T, name string, args ...any) *tensor.Tensor {
	t.Helper()
	return call(t, name, args...)[0]
}

// TestFFTLanes holds transforms of many rows, which go 16 at a time in single precision, against those of the same numbers in double.
func TestFFTLanes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, sizes := range [][]int64{{4, 6, 8}, {5, 20, 12}, {3, 16, 40}, {2, 33, 10}, {40, 2, 4}, {7, 18, 30}} {
		x := tensor.New(tensor.Float32, sizes...)
		for i := range x.Numel() {
			tensor.Data[float32](x)[i] = float32(r.NormFloat64())
		}
		for _, layout := range [][]int64{{0, 1, 2}, {0, 2, 1}, {2, 1, 0}} {
			for _, dims := range [][]int64{{2}, {1}, {0}, {1, 2}, {2, 1}, {0, 1, 2}} {
				for mode := range int64(3) {
					real32 := fftCall(t, "permute", x, layout)
					real64 := fftCall(t, "to.dtype", real32, tensor.Float64)
					for _, onesided := range []bool{true, false} {
						want := fftCall(t, "_fft_r2c", real64, dims, mode, onesided)
						got := fftCall(t, "_fft_r2c", real32, dims, mode, onesided)
						sameFFT(t, "_fft_r2c", got, want)
						for _, forward := range []bool{true, false} {
							sameFFT(t, "_fft_c2c", fftCall(t, "_fft_c2c", got, dims, mode, forward),
								fftCall(t, "_fft_c2c", fftCall(t, "to.dtype", got, tensor.Complex128), dims, mode, forward))
						}
						if onesided {
							n := real32.Sizes()[dims[len(dims)-1]]
							sameFFT(t, "_fft_c2r", fftCall(t, "_fft_c2r", got, dims, mode, n),
								fftCall(t, "_fft_c2r", fftCall(t, "to.dtype", got, tensor.Complex128), dims, mode, n))
						}
					}
				}
			}
		}
	}
}

func sameFFT(t *testing.T, name string, got, want *tensor.Tensor) {
	t.Helper()
	g, w := fftNumbers(t, got), fftNumbers(t, want)
	norm := 0.0
	for _, v := range w {
		norm = max(norm, v, -v)
	}
	for i, v := range w {
		if d := g[i] - v; !(max(d, -d) <= 2e-6*norm) {
			t.Fatalf("%s of %v: number %d is %v, want %v", name, want.Sizes(), i, g[i], v)
		}
	}
}

func fftNumbers(t *testing.T, x *tensor.Tensor) []float64 {
	if x.DType().IsComplex() {
		x = fftCall(t, "view_as_real", x)
	}
	v, err := fftCall(t, "clone", fftCall(t, "to.dtype", x, tensor.Float64)).Floats()
	if err != nil {
		t.Fatal(err)
	}
	return v
}
