package cpu

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/pt2go/pt2/internal/pool"
)

// halves rounds x in place to what a format holds, and gives its bits.
func halves(f HalfFormat, x []float32) []uint16 {
	h := make([]uint16, len(x))
	f.Round(h, x)
	f.Widen(x, h)
	return h
}

func TestGemmHalfAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	p := pool.New(2)
	defer p.Close()
	variants(t, func(t *testing.T) {
		for _, f := range []HalfFormat{BF16, F16} {
			for _, d := range [][3]int{{1, 1, 1}, {1, 4, 32}, {1, 67, 100}, {2, 5, 31}, {3, 33, 65}, {8, 130, 257}, {9, 18, 40}, {70, 100, 33}, {4, 7, 0}, {1, 1000, 96}} {
				for trans := range 3 { // B row by row, column by column, neither
					checkGemmHalf(t, rng, p, f, d[0], d[1], d[2], trans)
				}
			}
		}
	})
}

func checkGemmHalf(t *testing.T, rng *rand.Rand, p *pool.Pool, f HalfFormat, m, n, k, trans int) {
	t.Helper()
	x, y, bias := randoms(rng, m*k+3), randoms(rng, 2*k*n+3), randoms(rng, n)
	a, b := HalfMatrix{halves(f, x), k, 1}, HalfMatrix{halves(f, y), n, 1}
	if k == 0 {
		a.Data, b.Data = nil, nil
	}
	switch trans {
	case 1:
		b.Row, b.Col = 1, k
	case 2:
		b.Row, b.Col = 2*n, 2
	}
	c := make([]uint16, m*(n+2))
	for i := range c {
		c[i] = 0x1234
	}
	GemmHalf(p, f, m, n, k, a, b, c, n+2, &Epilogue{ColBias: bias})
	got, want := make([]float32, m*n), make([]float64, m*n)
	for i := range m {
		f.Widen(got[i*n:(i+1)*n], c[i*(n+2):])
		for j := range n + 2 {
			if j >= n {
				if c[i*(n+2)+j] != 0x1234 {
					t.Fatalf("%d x %d x %d: wrote beside the output", m, n, k)
				}
				continue
			}
			want[i*n+j] = float64(bias[j])
			for q := range k {
				want[i*n+j] += float64(x[i*k+q]) * float64(y[q*b.Row+j*b.Col])
			}
		}
	}
	tol := map[HalfFormat]float64{BF16: 1.0 / 250, F16: 1.0 / 2000}[f]
	closeTo(t, fmt.Sprint("format, m, n, k, layout: ", f, m, n, k, trans), got, want, tol)
	GemmHalfF32(p, f, m, n, k, a, b, got, n)
	for i := range want {
		want[i] -= float64(bias[i%n])
	}
	closeTo(t, fmt.Sprint("not rounded: ", f, m, n, k, trans), got, want, 2e-5)
}

func BenchmarkGemmHalf(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	for _, m := range []int{1, 4, 64} {
		const n, k = 4096, 4096
		w, x, y := make([]uint16, n*k), make([]uint16, m*k), make([]uint16, m*n)
		BF16.Round(w, randoms(rng, n*k))
		BF16.Round(x, randoms(rng, m*k))
		b.Run(fmt.Sprint(m), func(b *testing.B) {
			b.SetBytes(2 * n * k)
			for b.Loop() {
				GemmHalf(nil, BF16, m, n, k, HalfMatrix{x, k, 1}, HalfMatrix{w, 1, k}, y, n, nil)
			}
			b.ReportMetric(2*float64(m)*n*k*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
