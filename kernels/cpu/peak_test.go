package cpu

import (
	"runtime"
	"testing"
	"time"

	"github.com/pt2go/pt2/internal/pool"
)

// peakOf gives the loop of multiply-adds on registers that belongs to the kernels in use, and how many operations each of its n steps has;
// nil if there is none.
func peakOf() (loop func(n int), each float64) {
	switch {
	case hasAVX512:
		return peakF32AVX512, 24 * 16 * 2
	case hasAVX2 && runtime.GOARCH == "arm64":
		return peakF32AVX2, 24 * 4 * 2
	case hasAVX2:
		return peakF32AVX2, 24 * 8 * 2
	}
	return nil, 1
}

// benchFlops times calls of f, of so many operations each, on p's threads: the best of b.N rounds of at least fifty microseconds. In each
// round the same threads run the peak's loop for about as long, so that both meet the same frequencies and the same other work of the
// machine; the ratio is that of the best rates.
func benchFlops(b *testing.B, p *pool.Pool, operations float64, f func()) {
	loop, each := peakOf()
	rate := func(operations float64, f func()) float64 {
		start := time.Now()
		f()
		return operations / time.Since(start).Seconds()
	}
	f()
	calls := 1 + int(50e-6*rate(operations, f)/operations)
	steps := int(float64(calls)*operations/each) / p.Size()
	best, peak := 0.0, 0.0
	for b.Loop() {
		best = max(best, rate(float64(calls)*operations, func() {
			for range calls {
				f()
			}
		}))
		if loop == nil {
			continue
		}
		peak = max(peak, rate(float64(steps*p.Size())*each, func() {
			p.ParallelFor(p.Size(), 1, func(lo, hi int) {
				for range hi - lo {
					loop(steps)
				}
			})
		}))
	}
	b.ReportMetric(0, "ns/op") // would have the peak's loops in it
	b.ReportMetric(best/1e9, "GFLOP/s")
	if loop != nil {
		b.ReportMetric(100*best/peak, "%-of-peak")
	}
}
