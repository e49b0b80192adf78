package cpu

import (
	"fmt"
	"math/rand"
	"testing"
)

func TestBagSums(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	variants(t, func(t *testing.T) {
		for _, d := range append(upTo(40), 63, 64, 65, 128, 200) {
			const rows = 50
			table := randoms(rng, rows*d)
			for _, n := range []int{0, 1, 2, 20} {
				idx, scale := make([]int64, n+5), randoms(rng, n)
				for i := range idx {
					idx[i] = rng.Int63n(rows)
				}
				for _, scale := range [][]float32{nil, scale} {
					buf := make([]float32, d+8)
					FillF32(buf, canary)
					want := make([]float64, d)
					for i, r := range idx[:n] {
						s := 1.0
						if scale != nil {
							s = float64(scale[i])
						}
						for j := range want {
							want[j] += s * float64(table[int(r)*d+j])
						}
					}
					BagSumF32(buf[4:4+d], table, idx, n, scale)
					closeTo(t, fmt.Sprint("bag of ", n, " rows of ", d), buf[4:4+d], want, 1e-5)
					for i, v := range buf {
						if (i < 4 || i >= 4+d) && v != canary {
							t.Fatalf("a bag of rows of %d wrote beside its output", d)
						}
					}
				}
			}
		}
	})
}

func BenchmarkBagSum(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	const rows, d, n = 50_000, 64, 20
	table, dst, idx := randoms(rng, rows*d), make([]float32, d), make([]int64, 4096)
	for i := range idx {
		idx[i] = rng.Int63n(rows)
	}
	b.SetBytes(4 * d * n)
	at := 0
	for b.Loop() {
		BagSumF32(dst, table, idx[at:], n, nil)
		at = (at + n) % (len(idx) - n)
	}
}
