package cpu

import (
	"fmt"
	"math/rand"
	"testing"
)

// BenchmarkTile runs one kernel on operands that stay in the first-level cache: what the loops above it could reach at most.
func BenchmarkTile(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	for _, v := range tileSets32 {
		for _, h := range []int{1, 4, 6, 8, 10, 12} {
			if h > v.mr {
				continue
			}
			const k = 192
			t := &tile[float32]{x: randoms(rng, h*k), b: packedMemory[float32](k * v.nr), c: make([]float32, h*v.nr), ldc: v.nr, segments: 1, length: k, rows: h, width: v.nr, mask: columnMask[float32](v.nr)}
			for r := range h {
				t.offsets = append(t.offsets, r*k)
			}
			b.Run(fmt.Sprintf("%s-%dx%d", v.name, h, v.nr), func(b *testing.B) {
				for b.Loop() {
					for range 100 {
						v.run(t, false)
					}
				}
				b.ReportMetric(100*2*float64(h*v.nr*k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
