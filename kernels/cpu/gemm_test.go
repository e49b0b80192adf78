package cpu

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/pt2go/pt2/internal/pool"
)

// variants runs f with and without assembly.
func variants(t *testing.T, f func(t *testing.T)) {
	for _, level := range asmLevels() {
		restore := setAsm(level)
		t.Run(level, f)
		restore()
	}
}

func TestGemmAgainstDefinition(t *testing.T) {
	variants(t, func(t *testing.T) {
		rng := rand.New(rand.NewSource(1))
		p := pool.New(2)
		defer p.Close()
		for _, d := range [][3]int{{1, 1, 1}, {1, 40, 9}, {2, 17, 300}, {5, 16, 3}, {6, 16, 256}, {7, 33, 257}, {130, 50, 70}, {13, 100, 1}, {250, 19, 515}, {3, 0, 4}, {4, 5, 0}} {
			for trans := range 4 {
				for _, beta := range []bool{false, true} {
					checkGemm(t, rng, p, d[0], d[1], d[2], trans, beta)
				}
			}
		}
	})
}

func checkGemm(t *testing.T, rng *rand.Rand, p *pool.Pool, m, n, k, trans int, beta bool) {
	t.Helper()
	a, b := Matrix{randoms(rng, m*k), k, 1}, Matrix{randoms(rng, k*n), n, 1}
	if trans&1 != 0 {
		a.Row, a.Col = 1, m
	}
	if trans&2 != 0 {
		b.Row, b.Col = 1, k
	}
	ldc := n + 3 // the columns beyond n must stay as they are
	c := randoms(rng, m*ldc+8)
	want := append([]float32(nil), c...)
	bias := randoms(rng, n)
	for i := range m {
		for j := range n {
			s := 0.0
			for q := range k {
				s += float64(a.Data[i*a.Row+q*a.Col]) * float64(b.Data[q*b.Row+j*b.Col])
			}
			if beta {
				s += float64(c[i*ldc+j])
			}
			want[i*ldc+j] = float32(s + float64(bias[j]))
		}
	}
	packed, own, packedOwn := slices.Clone(c), slices.Clone(c), slices.Clone(c)
	Gemm(p, m, n, k, a, b, c, ldc, beta, &Epilogue{ColBias: bias})
	GemmPacked(p, m, a, PackB(b, k, n, false), packed, ldc, beta, &Epilogue{ColBias: bias})
	results := map[string][]float32{"Gemm": c, "GemmPacked": packed}
	if beta { // the same with C as its own residual
		Gemm(p, m, n, k, a, b, own, ldc, false, &Epilogue{ColBias: bias, Residual: own, ResidualStep: ldc})
		GemmPacked(p, m, a, PackB(b, k, n, false), packedOwn, ldc, false, &Epilogue{ColBias: bias, Residual: packedOwn, ResidualStep: ldc})
		results["Gemm, residual"], results["GemmPacked, residual"] = own, packedOwn
	}
	for name, got := range results {
		for i := range want {
			if d := got[i] - want[i]; d > 1e-3 || d < -1e-3 || d != d {
				t.Fatalf("%s %dx%dx%d trans %d beta %v: element %d is %v, want %v", name, m, n, k, trans, beta, i, got[i], want[i])
			}
		}
	}
}

func randoms(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// gemmShapes are products of known models, [M, K, N]: a square one, BERT's and GPT-2's layers, pointwise convolutions, single rows.
var gemmShapes = [][3]int{
	{1024, 1024, 1024}, {1024, 1040, 1024}, {2048, 2048, 2048}, {1500, 384, 1536}, {1500, 1536, 384}, {1500, 384, 384}, {197, 3072, 768}, {128, 768, 768}, {128, 768, 3072}, {128, 3072, 768}, {512, 768, 2304}, {197, 768, 3072},
	{49, 2048, 512}, {49, 512, 2048}, {196, 1024, 256}, {196, 256, 1024}, {784, 512, 128}, {784, 128, 512}, {3136, 256, 64}, {3136, 64, 256},
	{12544, 16, 64}, {3136, 24, 72}, {784, 40, 240}, {196, 80, 480}, {49, 160, 960}, {1, 1024, 4096}, {4, 1024, 4096}, {12, 1024, 4096},
}

func BenchmarkGemmPacked(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	for _, threads := range []int{1, 2} {
		p := pool.New(threads)
		defer p.Close()
		for _, s := range gemmShapes {
			m, k, n := s[0], s[1], s[2]
			x, w, c := randoms(rng, m*k), PackB(Matrix{randoms(rng, k*n), n, 1}, k, n, false), make([]float32, m*n)
			b.Run(fmt.Sprintf("%dx%dx%d-t%d", m, k, n, threads), func(b *testing.B) {
				benchFlops(b, p, 2*float64(m)*float64(n)*float64(k), func() { GemmPacked(p, m, Matrix{x, k, 1}, w, c, n, false, nil) })
			})
		}
	}
}

// BenchmarkGemmCold goes through more weights than the caches hold, as a model does.
func BenchmarkGemmCold(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	for _, threads := range []int{1, 2} {
		p := pool.New(threads)
		defer p.Close()
		for _, s := range [][3]int{{128, 768, 768}, {128, 768, 3072}, {128, 3072, 768}, {197, 768, 3072}, {49, 2048, 512}, {1, 1024, 4096}} {
			m, k, n := s[0], s[1], s[2]
			x, c := randoms(rng, m*k), make([]float32, m*n)
			var w []*PackedB
			for range 256 << 20 / (4 * k * n) {
				w = append(w, PackB(Matrix{randoms(rng, k*n), n, 1}, k, n, false))
			}
			b.Run(fmt.Sprintf("%dx%dx%d-t%d", m, k, n, threads), func(b *testing.B) {
				i := 0
				benchFlops(b, p, 2*float64(m)*float64(n)*float64(k), func() {
					GemmPacked(p, m, Matrix{x, k, 1}, w[i%len(w)], c, n, false, nil)
					i++
				})
			})
		}
	}
}
