package cpu

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/pt2go/pt2/internal/pool"
)

// A pair gives what its parts give one after the other, whatever the bands.
func TestConvPair(t *testing.T) {
	rng := rand.New(rand.NewSource(4))
	p := pool.New(2)
	defer p.Close()
	variants(t, func(t *testing.T) {
		for _, s := range []struct{ n, in, ch, h, w, kernel, stride, pad int }{
			{1, 16, 64, 112, 112, 3, 2, 1}, {2, 8, 40, 30, 70, 5, 1, 2}, {2, 3, 100, 13, 64, 7, 2, 3}, {1, 5, 33, 9, 5, 3, 1, 0}, {3, 4, 17, 3, 400, 5, 2, 1}, {1, 2, 1000, 9, 30, 3, 1, 1},
		} {
			a := conv2d(s.n, s.in, s.ch, 1, s.h, s.w, 1, 1, 1, 0, 1)
			b := conv2d(s.n, s.ch, s.ch, s.ch, s.h, s.w, s.kernel, s.kernel, s.stride, s.pad, 1)
			x, mid, want := randoms(rng, a.N*a.In*volume(a.Size)), make([]float32, a.N*a.Out*volume(a.OutSize)), make([]float32, b.N*b.Out*volume(b.OutSize))
			wa, wb := packConv(&a, randoms(rng, a.In*a.Out)), packConv(&b, randoms(rng, b.Out*volume(b.Kernel)))
			epA := &Epilogue{ColBias: randoms(rng, a.Out), Act: Activation{Kind: ActHardSwish}}
			epB := &Epilogue{ColBias: randoms(rng, b.Out), Act: Activation{Kind: ActSiLU}}
			ConvNHWC(nil, &a, wa, x, mid, epA)
			ConvNHWC(nil, &b, wb, mid, want, epB)
			for _, p := range []*pool.Pool{nil, p} {
				got := make([]float32, len(want))
				ConvPairNHWC(p, Pair{&a, &b}, wa, wb, x, got, epA, epB)
				closeTo(t, fmt.Sprintf("%+v", s), got, widen(want), 1e-6)
			}
		}
	})
}
