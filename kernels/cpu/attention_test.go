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
	if m.Bool[at] != 0 {
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
			{Batch: 2, Heads: 6, KVHeads: 2, L: 2, S: 259, D: 40, Ev: 17},
			{Batch: 1, Heads: 3, KVHeads: 1, L: 50, S: 70, D: 33, Ev: 18, Causal: true},
			{Batch: 1, Heads: 1, L: 130, S: 530, D: 9, Ev: 5, Causal: true},
			{Batch: 1, Heads: 1, L: 600, S: 30, D: 4, Ev: 5, Causal: true},
		} {
			a.Scale = 1 / float32(math.Sqrt(float64(a.D)))
			kv := max(a.KVHeads, a.Heads*(1-min(1, a.KVHeads)))
			heads := func(n, rows, d int) Heads { // [batch, rows, heads, d], as a transposed view
				return Heads{Data: randoms(rng, a.Batch*rows*n*d), Batch: rows * n * d, Head: d, Row: n * d}
			}
			q, k, v := heads(a.Heads, a.L, a.D), heads(kv, a.S, a.D), heads(kv, a.S, a.Ev)
			add, keep := randoms(rng, a.Heads*a.L*a.S), make([]uint8, a.L*a.S)
			for i := range keep {
				if rng.Intn(3) > 0 && i >= a.S { // the first query sees nothing
					keep[i] = 1
				}
			}
			for i, m := range []*Mask{nil, {Add: add, Head: a.L * a.S, Row: a.S, Col: 1}, {Add: add, Row: 1}, {Bool: keep, Row: a.S, Col: 1}} {
				a.Mask = m
				got := make([]float32, a.Batch*a.Heads*a.L*a.Ev)
				a.Forward(p, q, k, v, Heads{Data: got, Batch: a.Heads * a.L * a.Ev, Head: a.L * a.Ev, Row: a.Ev})
				want := attend(&a, q, k, v)
				closeTo(t, fmt.Sprintf("%+v, mask %d", a, i), got, want, 2e-5)
				checkHalfAttention(t, p, a, q, k, v)
			}
		}
	})
}

// checkHalfAttention computes the same in 16 bits.
func checkHalfAttention(t *testing.T, p *pool.Pool, a Attention, q, k, v Heads) {
	t.Helper()
	for _, f := range []HalfFormat{BF16, F16} {
		half := func(x Heads) (Heads, Heads) {
			wide := append([]float32(nil), x.Data...)
			h := x
			h.Data, h.Half, h.Format = nil, halves(f, wide), f
			x.Data = wide
			return h, x
		}
		q16, q := half(q)
		k16, k := half(k)
		v16, v := half(v)
		n := a.Batch * a.Heads * a.L * a.Ev
		bits, got := make([]uint16, n), make([]float32, n)
		a.LogSumExp = make([]float32, a.Batch*a.L*a.Heads)
		a.Forward(p, q16, k16, v16, Heads{Half: bits, Format: f, Batch: a.Heads * a.L * a.Ev, Head: a.L * a.Ev, Row: a.Ev})
		f.Widen(got, bits)
		tol := map[HalfFormat]float64{BF16: 1.0 / 250, F16: 1.0 / 2000}[f]
		closeTo(t, fmt.Sprintf("%+v in format %d", a, f), got, attend(&a, q, k, v), tol)
		checkLogSumExp(t, &a, q, k)
	}
}

func checkLogSumExp(t *testing.T, a *Attention, q, k Heads) {
	t.Helper()
	want := make([]float64, len(a.LogSumExp))
	group := max(1, a.Heads/max(1, a.KVHeads)*min(1, a.KVHeads))
	for b := range a.Batch {
		for h := range a.Heads {
			for l := range a.L {
				row := make([]float64, 0, a.S)
				for j := range a.S {
					s := 0.0
					for d := range a.D {
						s += float64(q.at(b, h, l)[d]) * float64(k.at(b, h/group, j)[d])
					}
					if s = s*float64(a.Scale) + seen(a, b, h, l, j); !math.IsInf(s, -1) {
						row = append(row, s)
					}
				}
				if len(row) > 0 {
					want[(b*a.L+l)*a.Heads+h] = logSumExp(row)
				}
			}
		}
	}
	closeTo(t, "log-sum-exp", a.LogSumExp, want, 2e-5)
}

func BenchmarkAttention(b *testing.B) {
	rng := rand.New(rand.NewSource(1))
	a := Attention{Batch: 1, Heads: 12, L: 512, S: 512, D: 64, Ev: 64, Scale: 0.125}
	n := a.Heads * a.L * a.D
	view := func(x []float32) Heads { return Heads{Data: x, Batch: n, Head: a.L * a.D, Row: a.D} }
	q, k, v, out := view(randoms(rng, n)), view(randoms(rng, n)), view(randoms(rng, n)), view(make([]float32, n))
	for b.Loop() {
		a.Forward(nil, q, k, v, out)
	}
	b.ReportMetric(4*float64(n)*float64(a.S)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
