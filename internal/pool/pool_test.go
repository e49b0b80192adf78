package pool

import (
	"sync/atomic"
	"testing"
)

func TestParallelForCoversOnce(t *testing.T) {
	for _, p := range []*Pool{nil, New(1), New(2), New(5)} {
		for _, n := range []int{0, 1, 7, 1000, 12345} {
			seen := make([]atomic.Int32, n)
			p.ParallelFor(n, 10, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					seen[i].Add(1)
				}
				p.ParallelFor(3, 1, func(int, int) {}) // nested calls must not deadlock
			})
			for i := range seen {
				if seen[i].Load() != 1 {
					t.Fatalf("size %d, n %d: element %d visited %d times", p.Size(), n, i, seen[i].Load())
				}
			}
		}
		p.Close()
	}
}

func TestPanicReachesCaller(t *testing.T) {
	p := New(3)
	defer p.Close()
	defer func() {
		if recover() == nil {
			t.Error("the panic of a worker was lost")
		}
	}()
	p.ParallelFor(100, 1, func(lo, hi int) {
		if lo <= 50 && 50 < hi {
			panic("x")
		}
	})
}

func BenchmarkParallelFor(b *testing.B) {
	p := New(2)
	defer p.Close()
	var sink [2]int
	for b.Loop() {
		p.ParallelFor(2, 1, func(lo, hi int) { sink[lo] += hi })
	}
}
