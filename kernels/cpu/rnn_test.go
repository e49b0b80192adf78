package cpu

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/pt2go/pt2/internal/pool"
)

// recurrent is the definition of an LSTM (4 gates) or GRU (3) layer in float64, over x [steps, batch, in]; h and c are updated.
func recurrent(gates, in, hidden int, wih, whh, bih, bhh, x []float32, steps, batch int, h, c []float64, reverse bool) []float64 {
	out := make([]float64, steps*batch*hidden)
	for i := range steps {
		t := i
		if reverse {
			t = steps - 1 - i
		}
		for b := range batch {
			xs, hs := make([]float64, gates*hidden), make([]float64, gates*hidden)
			for r := range xs {
				if bih != nil {
					xs[r], hs[r] = float64(bih[r]), float64(bhh[r])
				}
				for k := range in {
					xs[r] += float64(wih[r*in+k]) * float64(x[(t*batch+b)*in+k])
				}
				for k := range hidden {
					hs[r] += float64(whh[r*hidden+k]) * h[b*hidden+k]
				}
			}
			for u := range hidden {
				g := func(k int) float64 { return xs[k*hidden+u] + hs[k*hidden+u] }
				at := b*hidden + u
				if gates == 4 {
					c[at] = sigmoid64(g(1))*c[at] + sigmoid64(g(0))*math.Tanh(g(2))
					h[at] = sigmoid64(g(3)) * math.Tanh(c[at])
				} else {
					fresh := math.Tanh(xs[2*hidden+u] + sigmoid64(g(0))*hs[2*hidden+u])
					z := sigmoid64(g(1))
					h[at] = (1-z)*fresh + z*h[at]
				}
			}
			copy(out[(t*batch+b)*hidden:], h[b*hidden:(b+1)*hidden])
		}
	}
	return out
}

func TestRecurrentLayersAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	p := pool.New(2)
	defer p.Close()
	variants(t, func(t *testing.T) {
		for _, d := range []struct{ gates, in, hidden, steps, batch int }{
			{4, 1, 1, 1, 1}, {3, 1, 1, 1, 1}, {4, 5, 16, 3, 1}, {3, 5, 16, 3, 2}, {4, 7, 19, 4, 3}, {3, 9, 33, 4, 2}, {4, 3, 21, 5, 9}, {3, 3, 21, 5, 9},
			{4, 20, 130, 6, 1}, {3, 20, 130, 6, 1}, {4, 4, 8, 0, 2},
		} {
			for mode := range 4 { // reverse, batch first
				checkRecurrent(t, rng, p, d.gates, d.in, d.hidden, d.steps, d.batch, mode&1 != 0, mode&2 != 0)
			}
		}
	})
}

func checkRecurrent(t *testing.T, rng *rand.Rand, p *pool.Pool, gates, in, hidden, steps, batch int, reverse, batchFirst bool) {
	t.Helper()
	x := randoms(rng, steps*batch*in)
	wih, whh := randoms(rng, gates*hidden*in), randoms(rng, gates*hidden*hidden)
	MulScalarF32(whh, whh, 0.2)
	var bih, bhh []float32
	if !reverse {
		bih, bhh = randoms(rng, gates*hidden), randoms(rng, gates*hidden)
	}
	h, c := randoms(rng, batch*hidden), randoms(rng, batch*hidden)
	wantH, wantC := widen(h), widen(c)
	want := recurrent(gates, in, hidden, wih, whh, bih, bhh, x, steps, batch, wantH, wantC, reverse)
	s := Sequence{Steps: steps, Batch: batch, X: x, XStep: batch * in, XRow: in, H: h, HN: h, Reverse: reverse,
		Out: make([]float32, steps*batch*hidden), OutStep: batch * hidden, OutRow: hidden}
	if batchFirst {
		s.XStep, s.XRow = in, steps*in
		s.X = make([]float32, len(x))
		for i := range steps * batch {
			copy(s.X[i%batch*s.XRow+i/batch*s.XStep:], x[i*in:(i+1)*in])
		}
	}
	pack := PackGRU
	if gates == 4 {
		pack = PackLSTM
		s.C, s.CN = c, c
	}
	pack(in, hidden, wih, whh, bih, bhh).Forward(p, &s)
	name := fmt.Sprint("gates, in, hidden, steps, batch: ", gates, in, hidden, steps, batch, reverse, batchFirst)
	closeTo(t, name, s.Out, want, 2e-5)
	closeTo(t, name+" state", h, wantH, 2e-5)
	if gates == 4 {
		closeTo(t, name+" cell", c, wantC, 2e-5)
	}
}

func BenchmarkLSTM(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	const in, hidden, steps = 128, 256, 100
	r := PackLSTM(in, hidden, randoms(rng, 4*hidden*in), randoms(rng, 4*hidden*hidden), nil, nil)
	s := Sequence{Steps: steps, Batch: 1, X: randoms(rng, steps*in), XStep: in, XRow: in, Out: make([]float32, steps*hidden), OutStep: hidden, OutRow: hidden,
		H: make([]float32, hidden), C: make([]float32, hidden), HN: make([]float32, hidden), CN: make([]float32, hidden)}
	for b.Loop() {
		r.Forward(nil, &s)
	}
	b.ReportMetric(2*4*hidden*(in+hidden)*steps*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
