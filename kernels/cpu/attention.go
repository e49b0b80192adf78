package cpu

import (
	"math"

	"github.com/pt2go/pt2/internal/pool"
)

// Heads is a strided view of rows of numbers: row i of head h of batch b starts at element b*Batch + h*Head + i*Row; the elements of
// a row lie side by side. They are float32 in Data, or 16-bit floats of a format in Half.
type Heads struct {
	Data             []float32
	Batch, Head, Row int
	Half             []uint16
	Format           HalfFormat
}

func (v *Heads) offset(b, h, row int) int { return b*v.Batch + h*v.Head + row*v.Row }

func (v *Heads) at(b, h, row int) []float32 { return v.Data[v.offset(b, h, row):] }

// read is dst = a row.
func (v *Heads) read(dst []float32, b, h, row int) {
	if at := v.offset(b, h, row); v.Half != nil {
		v.Format.Widen(dst, v.Half[at:])
	} else {
		copy(dst, v.Data[at:])
	}
}

// Mask says which keys a query sees: element (b, h, query, key) is at b*Batch + h*Head + query*Row + key*Col, where a stride of 0
// broadcasts. One of the slices is set: Add is added to the scores, so is Half, widened; -Inf is added where Bool is 0.
type Mask struct {
	Add                   []float32
	Bool                  []uint8
	Half                  []uint16
	Format                HalfFormat
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
	// LogSumExp receives log sum e^score of each query, element (b, h, l) at (b*L + l)*Heads + h; nil for none. It is 0 for a query
	// that sees no key.
	LogSumExp []float32
}

// Blocks of queries and keys: scores of one pair stay in the second-level cache.
const (
	queryBlock = 64
	keyBlock   = 256
)

// attentionRows is up to how many queries read keys and values as they lie; for more these are packed first.
const attentionRows = 8

// Forward computes the attention. Scores are never held in whole: keys are taken block by block, with the running maximum and sum of
// each query's softmax (FlashAttention, arXiv:2205.14135). All numbers are float32 inside, and results of 16 bits are rounded once.
// Keys and values are read where they lie, whatever their strides. out must not overlap the inputs.
func (a *Attention) Forward(p *pool.Pool, q, k, v, out Heads) {
	if a.Batch*a.Heads*a.L*a.Ev == 0 {
		return
	}
	w := &attentionRun{Attention: a, q: q, k: k, v: v, out: out, group: 1}
	if a.KVHeads > 0 {
		w.group = a.Heads / a.KVHeads
	}
	heads, rows := a.Batch*a.Heads/w.group, w.group*a.L
	// All queries of the heads that share keys go together, unless that leaves workers idle.
	split := min((rows+queryBlock-1)/queryBlock, (p.Size()+heads-1)/heads)
	per := roundUp((rows+split-1)/split, queryBlock)
	p.ParallelFor(heads*split, max(1, 65536/(min(rows, per)*a.S*(a.D+a.Ev)+1)), func(lo, hi int) {
		s := newAttentionWork(w, min(rows, per))
		defer s.buf.free()
		for t := lo; t < hi; t++ {
			if from := t % split * per; from < rows {
				s.queries(t/split, from, min(rows, from+per))
			}
		}
	})
}

type attentionRun struct {
	*Attention
	q, k, v, out Heads
	group        int // heads that share keys
}

// attentionWork is one worker's memory.
type attentionWork struct {
	*attentionRun
	buf          *buffer[float32]
	q            []float32 // [queryBlock, D], scaled
	scores       []float32 // [queryBlock, keyBlock]
	acc          []float32 // [queryBlock, Ev]
	wide         []float32 // keys or values of 16 bits, widened
	packed       []float32
	keys, values []PackedB // a block of keys each
	highest, sum [queryBlock]float32
}

func newAttentionWork(w *attentionRun, rows int) *attentionWork {
	s := &attentionWork{attentionRun: w}
	block := min(rows, queryBlock)
	sizes := []int{block * w.D, block * keyBlock, block * w.Ev, 0, 0}
	if rows > attentionRows {
		sizes[3] = min(w.S, keyBlock) * max(w.D, w.Ev)
		for s0 := 0; s0 < w.S; s0 += keyBlock {
			n := min(keyBlock, w.S-s0)
			sizes[4] += packedSize(w.D, n) + packedSize(n, w.Ev)
		}
	}
	total := 0
	for _, n := range sizes {
		total += n
	}
	s.buf = scratch(total)
	rest := s.buf.data
	for i, part := range []*[]float32{&s.q, &s.scores, &s.acc, &s.wide, &s.packed} {
		*part, rest = rest[:sizes[i]:sizes[i]], rest[sizes[i]:]
	}
	return s
}

// queries computes rows [from, to) of the heads that share keys kv (batch and head in one number). Row r is query r%L of the group's
// head r/L.
func (s *attentionWork) queries(kv, from, to int) {
	heads := s.Heads / s.group
	b, h := kv/heads, kv%heads
	direct := to-from <= attentionRows
	if !direct {
		s.pack(b, h)
	}
	for r := from; r < to; r += queryBlock {
		s.block(b, h, r, min(queryBlock, to-r), direct)
	}
}

// pack packs all blocks of the keys and values of a head.
func (s *attentionWork) pack(b, h int) {
	s.keys, s.values = s.keys[:0], s.values[:0]
	rest := s.packed
	take := func(m Matrix, k, n int) PackedB {
		size := packedSize(k, n)
		p := packInto(rest[:size:size], m, k, n)
		rest = rest[size:]
		return p
	}
	for s0 := 0; s0 < s.S; s0 += keyBlock {
		n := min(keyBlock, s.S-s0)
		k := s.rows(&s.k, b, h, s0, n, s.D)
		s.keys = append(s.keys, take(Matrix{k.Data, 1, k.Row}, s.D, n))
		s.values = append(s.values, take(s.rows(&s.v, b, h, s0, n, s.Ev), n, s.Ev))
	}
}

// rows gives n rows of d numbers, widened if need be.
func (s *attentionWork) rows(v *Heads, b, h, at, n, d int) Matrix {
	if v.Half == nil {
		return Matrix{v.at(b, h, at), v.Row, 1}
	}
	for i := range n {
		v.read(s.wide[i*d:(i+1)*d], b, h, at+i)
	}
	return Matrix{s.wide, d, 1}
}

// block computes n rows from r0 on.
func (s *attentionWork) block(b, h, r0, n int, direct bool) {
	end := 0 // of the keys that any row sees
	for i := range n {
		head, l := h*s.group+(r0+i)/s.L, (r0+i)%s.L
		row := s.q[i*s.D : (i+1)*s.D]
		s.attentionRun.q.read(row, b, head, l)
		MulScalarF32(row, row, s.Scale)
		s.highest[i], s.sum[i] = float32(math.Inf(-1)), 0
		end = max(end, l+1)
	}
	if !s.Causal || end > s.S {
		end = s.S
	}
	clear(s.acc[:n*s.Ev])
	for s0 := 0; s0 < end; s0 += keyBlock {
		keys := min(keyBlock, s.S-s0)
		scores := s.scores[:n*keys]
		if direct {
			s.scoreRows(scores, n, keys, b, h, s0)
		} else {
			GemmPacked(nil, n, Matrix{s.q, s.D, 1}, &s.keys[s0/keyBlock], scores, keys, false, nil)
		}
		for i := range n {
			s.softmaxRow(scores[i*keys:(i+1)*keys], i, b, h*s.group+(r0+i)/s.L, (r0+i)%s.L, s0)
		}
		if direct {
			s.addRows(scores, n, keys, b, h, s0)
		} else {
			GemmPacked(nil, n, Matrix{scores, keys, 1}, &s.values[s0/keyBlock], s.acc, s.Ev, true, nil)
		}
	}
	for i := range n {
		s.finish(i, b, h*s.group+(r0+i)/s.L, (r0+i)%s.L)
	}
}

// scoreRows is the product of the queries with keys where they lie.
func (s *attentionWork) scoreRows(scores []float32, n, keys, b, h, s0 int) {
	q := Matrix{s.q, s.D, 1}
	if at := s.k.offset(b, h, s0); s.k.Half != nil {
		halfByDots(s.k.Format, n, keys, s.D, q, HalfMatrix{s.k.Half[at:], 1, s.k.Row}, scores, keys)
	} else {
		smallByDots(n, s.D, 0, keys, q, Matrix{s.k.Data[at:], 1, s.k.Row}, scores, keys, false)
	}
}

// addRows adds the values where they lie, times their weights.
func (s *attentionWork) addRows(weights []float32, n, keys, b, h, s0 int) {
	for i := range n {
		acc, w := s.acc[i*s.Ev:(i+1)*s.Ev], weights[i*keys:(i+1)*keys]
		at := s.v.offset(b, h, s0)
		for len(w) >= 4 {
			if s.v.Half != nil {
				s.v.Format.axpy4(acc, s.v.Half[at:], s.v.Row, (*[4]float32)(w))
			} else {
				axpy4(acc, s.v.Data[at:], s.v.Row, (*[4]float32)(w))
			}
			at, w = at+4*s.v.Row, w[4:]
		}
		for _, x := range w {
			if s.v.Half != nil {
				s.v.Format.axpy(acc, s.v.Half[at:], x)
			} else {
				axpy(acc, s.v.Data[at:at+s.Ev], x)
			}
			at += s.v.Row
		}
	}
}

// softmaxRow turns the scores of a query into e^(score - highest), and scales what was summed before to the new highest score.
func (s *attentionWork) softmaxRow(row []float32, i, b, h, l, s0 int) {
	if s.Mask != nil {
		s.Mask.apply(row, b, h, l, s0)
	}
	seen := row
	if s.Causal && l+1-s0 < len(row) {
		seen = row[:max(0, l+1-s0)]
		clear(row[len(seen):])
	}
	if len(seen) == 0 {
		return
	}
	m := MaxF32(seen)
	if m <= s.highest[i] {
		m = s.highest[i]
	}
	if math.IsInf(float64(m), -1) { // nothing to see yet
		clear(seen)
		return
	}
	if m != s.highest[i] && s.sum[i] != 0 {
		c := float32(math.Exp(float64(s.highest[i] - m)))
		if c < 0x1p-126 {
			c = 0
		}
		s.sum[i] *= c
		MulScalarF32(s.acc[i*s.Ev:(i+1)*s.Ev], s.acc[i*s.Ev:], c)
	}
	s.highest[i] = m
	s.sum[i] += weightSum(seen, seen, m)
}

// finish writes a row of the result.
func (s *attentionWork) finish(i, b, h, l int) {
	r, lse := float32(0), float32(0)
	if s.sum[i] != 0 {
		r, lse = 1/s.sum[i], s.highest[i]+float32(math.Log(float64(s.sum[i])))
	}
	acc, at := s.acc[i*s.Ev:(i+1)*s.Ev], s.out.offset(b, h, l)
	if s.out.Half != nil {
		MulScalarF32(acc, acc, r)
		s.out.Format.Round(s.out.Half[at:at+s.Ev], acc)
	} else {
		MulScalarF32(s.out.Data[at:at+s.Ev], acc, r)
	}
	if s.LogSumExp != nil {
		s.LogSumExp[(b*s.L+l)*s.Heads+h] = lse
	}
}

// apply adds the mask to the scores of a query, keys from s0 on.
func (m *Mask) apply(row []float32, b, h, l, s0 int) {
	at := b*m.Batch + h*m.Head + l*m.Row + s0*m.Col
	switch {
	case m.Bool != nil && m.Col == 1:
		hide(row, m.Bool[at:])
	case m.Bool != nil:
		for j := range row {
			if m.Bool[at+j*m.Col] == 0 {
				row[j] += float32(math.Inf(-1))
			}
		}
	case m.Half != nil:
		m.applyHalf(row, at)
	case m.Col == 1:
		AddF32(row, row, m.Add[at:])
	default:
		for j := range row {
			row[j] += m.Add[at+j*m.Col]
		}
	}
}

// hide adds -Inf to x where keep is 0.
func hide(x []float32, keep []uint8) {
	n := 0
	if full := len(x) &^ 15; hasAVX2 && full > 0 {
		n = full
		if hasAVX512 {
			hideF32AVX512(&x[0], &keep[0], n)
		} else {
			hideF32AVX2(&x[0], &keep[0], n)
		}
	}
	for j := n; j < len(x); j++ {
		if keep[j] == 0 {
			x[j] += float32(math.Inf(-1))
		}
	}
}

func (m *Mask) applyHalf(row []float32, at int) {
	var bits [keyBlock]uint16
	var wide [keyBlock]float32
	for j := range row {
		bits[j] = m.Half[at+j*m.Col]
	}
	m.Format.Widen(wide[:len(row)], bits[:])
	AddF32(row, row, wide[:])
}

// packedSize is the length of a packed [k, n] matrix.
func packedSize(k, n int) int { return k * tileSetOf[float32]().packedWidth(n) }

// packInto is [PackB] into given memory.
func packInto(dst []float32, b Matrix, k, n int) PackedB {
	set := tileSetOf[float32]()
	set.packB(nil, dst, b, k, n)
	return PackedB{K: k, N: n, set: set, data: dst}
}
