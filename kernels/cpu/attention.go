package cpu

import (
	"math"

	"github.com/pt2go/pt2/internal/pool"
)

// Heads is a strided view of rows of numbers: row i of head h of batch b starts at Data[b*Batch + h*Head + i*Row]; the elements of
// a row lie side by side.
type Heads struct {
	Data             []float32
	Batch, Head, Row int
}

func (v *Heads) at(b, h, row int) []float32 { return v.Data[b*v.Batch+h*v.Head+row*v.Row:] }

// Mask says which keys a query sees: element (b, h, query, key) is at b*Batch + h*Head + query*Row + key*Col, where a stride of 0
// broadcasts. One of the two slices is set: Add is added to the scores, Bool keeps where it is true.
type Mask struct {
	Add                   []float32
	Bool                  []bool
	Batch, Head, Row, Col int
}

// Attention is softmax(scale * Q K^T + mask) V for Batch x Heads heads. Q is [L, D], K [S, D], V [S, Ev], the result [L, Ev].
// KVHeads (0: as many as Heads) divides Heads where groups of heads share keys and values. Causal keeps keys up to the query's own
// index. A query that sees no key gives zeros, as PyTorch's scaled_dot_product_attention does.
type Attention struct {
	Batch, Heads, KVHeads int
	L, S, D, Ev           int
	Scale                 float32
	Causal                bool
	Mask                  *Mask
}

// Blocks of queries and keys: scores of one pair stay in the second-level cache.
const (
	queryBlock = 64
	keyBlock   = 256
)

// ForwardF32 computes the attention. Scores are never held in whole: keys are taken block by block, with the running maximum and sum
// of each query's softmax (FlashAttention, arXiv:2205.14135). out must not overlap the inputs.
func (a *Attention) ForwardF32(p *pool.Pool, q, k, v, out Heads) {
	if a.Batch*a.Heads*a.L*a.Ev == 0 {
		return
	}
	blocks := (a.L + queryBlock - 1) / queryBlock
	p.ParallelFor(a.Batch*a.Heads*blocks, max(1, 65536/(min(a.L, queryBlock)*a.S*(a.D+a.Ev)+1)), func(lo, hi int) {
		w := newAttentionWork(a)
		defer w.free()
		for t := lo; t < hi; t++ {
			head := t / blocks
			w.block(head/a.Heads, head%a.Heads, t%blocks*queryBlock, q, k, v, out)
		}
	})
}

// attentionWork is one worker's memory.
type attentionWork struct {
	a            *Attention
	group        int // heads that share keys
	buf          *buffer[float32]
	scores       []float32 // [queryBlock, keyBlock]
	acc          []float32 // [queryBlock, Ev]
	highest, sum [queryBlock]float32
}

func newAttentionWork(a *Attention) *attentionWork {
	w := &attentionWork{a: a, group: 1}
	if a.KVHeads > 0 {
		w.group = a.Heads / a.KVHeads
	}
	rows := min(a.L, queryBlock)
	w.buf = scratch(rows*keyBlock + rows*a.Ev)
	w.scores, w.acc = w.buf.data[:rows*keyBlock], w.buf.data[rows*keyBlock:]
	return w
}

func (w *attentionWork) free() { w.buf.free() }

// block computes queries [l0, l0+queryBlock) of one head.
func (w *attentionWork) block(b, h, l0 int, q, k, v, out Heads) {
	a := w.a
	rows := min(queryBlock, a.L-l0)
	kv := h / w.group
	clear(w.acc)
	for i := range rows {
		w.highest[i], w.sum[i] = float32(math.Inf(-1)), 0
	}
	end := a.S
	if a.Causal {
		end = min(end, l0+rows)
	}
	for s0 := 0; s0 < end; s0 += keyBlock {
		keys := min(keyBlock, end-s0)
		scores := w.scores[:rows*keys]
		// scores is [rows, keys] = Q K^T
		Gemm(nil, rows, keys, a.D, Matrix{q.at(b, h, l0), q.Row, 1}, Matrix{k.at(b, kv, s0), 1, k.Row}, scores, keys, false, nil)
		for i := range rows {
			w.softmaxRow(scores[i*keys:(i+1)*keys], i, b, h, l0+i, s0)
		}
		Gemm(nil, rows, a.Ev, keys, Matrix{scores, keys, 1}, Matrix{v.at(b, kv, s0), v.Row, 1}, w.acc, a.Ev, true, nil)
	}
	for i := range rows {
		r := float32(0)
		if w.sum[i] != 0 {
			r = 1 / w.sum[i]
		}
		MulScalarF32(out.at(b, h, l0+i)[:a.Ev], w.acc[i*a.Ev:], r)
	}
}

// softmaxRow turns the scores of a query into e^(score - highest), and scales what was summed before to the new highest score.
func (w *attentionWork) softmaxRow(row []float32, i, b, h, l, s0 int) {
	a := w.a
	MulScalarF32(row, row, a.Scale)
	if a.Mask != nil {
		a.Mask.apply(row, b, h, l, s0)
	}
	seen := row
	if a.Causal && l+1-s0 < len(row) {
		seen = row[:max(0, l+1-s0)]
		clear(row[len(seen):])
	}
	if len(seen) == 0 {
		return
	}
	m := MaxF32(seen)
	if m <= w.highest[i] {
		m = w.highest[i]
	}
	if math.IsInf(float64(m), -1) { // nothing to see yet
		clear(seen)
		return
	}
	if m != w.highest[i] && w.sum[i] != 0 {
		c := float32(math.Exp(float64(w.highest[i] - m)))
		w.sum[i] *= c
		MulScalarF32(w.acc[i*a.Ev:(i+1)*a.Ev], w.acc[i*a.Ev:], c)
	}
	w.highest[i] = m
	w.sum[i] += ExpSumF32(seen, seen, m)
}

// apply adds the mask to the scores of a query, keys from s0 on.
func (m *Mask) apply(row []float32, b, h, l, s0 int) {
	at := b*m.Batch + h*m.Head + l*m.Row + s0*m.Col
	switch {
	case m.Bool != nil:
		for j := range row {
			if !m.Bool[at+j*m.Col] {
				row[j] = float32(math.Inf(-1))
			}
		}
	case m.Col == 1:
		AddF32(row, row, m.Add[at:])
	default:
		for j := range row {
			row[j] += m.Add[at+j*m.Col]
		}
	}
}
