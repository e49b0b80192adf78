package cpu

import (
	"math/rand"
	"testing"
)

func BenchmarkMicroKernel(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	x, y, z := randoms(rng, 6*256), randoms(rng, 16*256), make([]float32, 6*16)
	for b.Loop() {
		for range 100 {
			microKernel(256, x, y, z, 16, false)
		}
	}
	b.ReportMetric(100*2*6*16*256*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
