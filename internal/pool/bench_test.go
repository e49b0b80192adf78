package pool

import (
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkHandOff splits work of some microseconds over two goroutines: what is above half the serial time is the hand-off.
func BenchmarkHandOff(b *testing.B) {
	for _, w := range []time.Duration{0, 2 * time.Microsecond, 10 * time.Microsecond, 50 * time.Microsecond} {
		b.Run(w.String(), func(b *testing.B) {
			p := New(2)
			defer p.Close()
			var n atomic.Int64
			for b.Loop() {
				p.ParallelFor(2, 1, func(lo, hi int) {
					for range hi - lo {
						for t := time.Now(); time.Since(t) < w/2; {
						}
					}
					n.Add(int64(hi - lo))
				})
			}
		})
	}
}
