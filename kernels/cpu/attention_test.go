package cpu

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/pt2go/pt2/internal/pool"
)

// attend is the definition, in float64.
func attend(a *Attention, q, k, v Heads) []float64 {
	out := make([]float64, 0, a.Batch*a.Heads*a.L*a.Ev)
	group := 1
	if a.KVHeads > 0 {
		group = a.Heads / a.KVHeads
	}
	for b := range a.Batch {
		for h := range a.Heads {
			for l := range a.L {
				s, total := make([]float64, a.S), 0.0
				for j := range s {
					for d := range a.D {
						s[j] += float64(q.at(b, h, l)[d]) * float64(k.at(b, h/group, j)[d])
					}
					s[j] = s[j]*float64(a.Scale) + seen(a, b, h, l, j)
				}
				top := math.Inf(-1)
				for _, x := range s {
					top = max(top, x)
				}
				row := make([]float64, a.Ev)
				for j, x := range s {
					if math.IsInf(x, -1) {
						continue
					}
					e := math.Exp(x - top)
					total += e
					for d := range row {
						row[d] += e * float64(v.at(b, h/group, j)[d])
					}
				}
				for _, x := range row {
					if total > 0 {
						x /= total
					}
					out = append(out, x)
				}
			}
		}
	}
	return out
}

// seen is what is added to a score.
func seen(a *Attention, b, h, l, j int) float64 {
	if a.Causal && j > l {
		return math.Inf(-1)
	}
	m := a.Mask
	if m == nil {
		return 0
	}
	at := b*m.Batch + h*m.Head + l*m.Row + j*m.Col
	if m.Bool == nil {
		return float64(m.Add[at])
	}
	if m.Bool[at] {
		return 0
	}
	return math.Inf(-1)
}

func TestAttentionAgainstDefinition(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	p := pool.New(2)
	defer p.Close()
	variants(t, func(t *testing.T) {
		for _, a := range []Attention{
			{Batch: 1, Heads: 1, L: 1, S: 1, D: 1, Ev: 1},
			{Batch: 2, Heads: 3, L: 5, S: 7, D: 8, Ev: 4},
			{Batch: 1, Heads: 4, KVHeads: 2, L: 70, S: 300, D: 16, Ev: 20},
			{Batch: 1, Heads: 2, L: 1, S: 600, D: 32, Ev: 32},
			{Batch: 1, Heads: 1, L: 130, S: 530, D: 9, Ev: 5, Causal: true},
			{Batch: 1, Heads: 1, L: 600, S: 30, D: 4, Ev: 5, Causal: true},
		} {
			a.Scale = 1 / float32(math.Sqrt(float64(a.D)))
			kv := max(a.KVHeads, a.Heads*(1-min(1, a.KVHeads)))
			heads := func(n, rows, d int) Heads { // [batch, rows, heads, d], as a transposed view
				return Heads{randoms(rng, a.Batch*rows*n*d), rows * n * d, d, n * d}
			}
			q, k, v := heads(a.Heads, a.L, a.D), heads(kv, a.S, a.D), heads(kv, a.S, a.Ev)
			add, keep := randoms(rng, a.Heads*a.L*a.S), make([]bool, a.L*a.S)
			for i := range keep {
				keep[i] = rng.Intn(3) > 0 && i >= a.S // the first query sees nothing
			}
			for i, m := range []*Mask{nil, {Add: add, Head: a.L * a.S, Row: a.S, Col: 1}, {Add: add, Row: 1}, {Bool: keep, Row: a.S, Col: 1}} {
				a.Mask = m
				got := make([]float32, a.Batch*a.Heads*a.L*a.Ev)
				a.ForwardF32(p, q, k, v, Heads{got, a.Heads * a.L * a.Ev, a.L * a.Ev, a.Ev})
				closeTo(t, fmt.Sprintf("%+v, mask %d", a, i), got, attend(&a, q, k, v), 2e-5)
			}
		}
	})
}

func BenchmarkAttention(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	a := Attention{Batch: 1, Heads: 12, L: 512, S: 512, D: 64, Ev: 64, Scale: 0.125}
	n := a.Heads * a.L * a.D
	view := func(x []float32) Heads { return Heads{x, n, a.L * a.D, a.D} }
	q, k, v, out := view(randoms(rng, n)), view(randoms(rng, n)), view(randoms(rng, n)), view(make([]float32, n))
	for b.Loop() {
		a.ForwardF32(nil, q, k, v, out)
	}
	b.ReportMetric(4*float64(n)*float64(a.S)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
