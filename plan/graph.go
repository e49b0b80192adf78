package plan

import (
	"slices"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/internal/pool"
)

// graph is the instruction list while passes work on it. An instruction that a pass removed is nil until the pass ends.
type graph struct {
	instrs  []*Instr
	buffers []*Buffer
	outputs []*aten.Value
	opts    Options
	pool    *pool.Pool
	before  map[int][]*Instr // instructions to be put in before that of the index, when the pass ends
}

func (g *graph) enabled(pass string) bool { return !slices.Contains(g.opts.Without, pass) }

// temp makes a buffer in the arena.
func (g *graph) temp(bytes int64) *Buffer {
	b := &Buffer{Kind: Temp, Index: -1, Bytes: bytes, id: len(g.buffers), first: -1, last: -1}
	g.buffers = append(g.buffers, b)
	return b
}

// fresh makes a value of m in a buffer of its own.
func (g *graph) fresh(m aten.Meta) *aten.Value {
	m.View, m.Conj, m.Neg, m.Zero = nil, false, false, false
	m.Offset = aten.Ints(0)[0]
	return &aten.Value{Meta: m, Ref: g.temp(byteSize(&m))}
}

// analyze finds writers and readers of all buffers.
func (g *graph) analyze() {
	for _, b := range g.buffers {
		b.writers, b.readers, b.given = b.writers[:0], b.readers[:0], false
	}
	for i := range g.instrs {
		g.link(i)
	}
	for _, o := range g.outputs {
		if o != nil && o.T == nil {
			bufferOf(o).given = true
		}
	}
}

func (g *graph) link(i int) {
	in := g.instrs[i]
	eachValue(in.Args, func(v *aten.Value) {
		if v.T == nil {
			b := bufferOf(v)
			b.readers = append(b.readers, i)
		}
	})
	for _, o := range in.Outs {
		if o != nil {
			b := bufferOf(o)
			b.writers = append(b.writers, i)
		}
	}
}

// remove takes instruction i out.
func (g *graph) remove(i int) {
	drop := func(l []int) []int {
		if j := slices.Index(l, i); j >= 0 {
			return slices.Delete(l, j, j+1)
		}
		return l
	}
	in := g.instrs[i]
	eachValue(in.Args, func(v *aten.Value) {
		if v.T == nil {
			b := bufferOf(v)
			b.readers = drop(b.readers)
		}
	})
	for _, o := range in.Outs {
		if o != nil {
			b := bufferOf(o)
			b.writers = drop(b.writers)
		}
	}
	g.instrs[i] = nil
}

// set puts in at place i, instead of what was there.
func (g *graph) set(i int, in *Instr) {
	if g.instrs[i] != nil {
		g.remove(i)
	}
	g.instrs[i] = in
	g.link(i)
}

// insert puts in before instruction i when the pass ends.
func (g *graph) insert(i int, in *Instr) {
	if g.before == nil {
		g.before = map[int][]*Instr{}
	}
	g.before[i] = append(g.before[i], in)
}

// compact ends a pass: removed instructions go, inserted ones come in.
func (g *graph) compact() {
	var out []*Instr
	for i, in := range g.instrs {
		out = append(out, g.before[i]...)
		if in != nil {
			out = append(out, in)
		}
	}
	g.instrs, g.before = out, nil
	g.analyze()
}

// covers reports that v is all of its buffer, without gaps.
func covers(v *aten.Value) bool {
	b := bufferOf(v)
	return v.T == nil && (b.Kind == Temp || b.Kind == Output) && !v.Conj && !v.Neg && v.Offset.Int64() == 0 &&
		v.Numel().Int64()*int64(v.DType.Size()) == b.Bytes && v.IsDense()
}

// producer finds the instruction that computes v, if v is the whole of a buffer that one instruction writes whole. i is -1 if there is
// none.
func (g *graph) producer(v *aten.Value) (i int, out *aten.Value) {
	if v == nil || v.T != nil || !covers(v) {
		return -1, nil
	}
	b := bufferOf(v)
	if len(b.writers) != 1 {
		return -1, nil
	}
	i = b.writers[0]
	for _, o := range g.instrs[i].Outs {
		if o != nil && bufferOf(o) == b && covers(o) && o.DType == v.DType {
			return i, o
		}
	}
	return -1, nil
}

// onlyUse finds the instruction that alone reads v's buffer, and only once. j is -1 if there is none, or if the caller gets v.
func (g *graph) onlyUse(v *aten.Value) (j int) {
	b := bufferOf(v)
	if b.given || len(b.readers) != 1 || b.Kind != Temp {
		return -1
	}
	return b.readers[0]
}

// reads lists where in finds buffer b: argument values that look at it.
func reads(in *Instr, b *Buffer) []*aten.Value {
	var l []*aten.Value
	eachValue(in.Args, func(v *aten.Value) {
		if v.T == nil && bufferOf(v) == b {
			l = append(l, v)
		}
	})
	return l
}

// movable reports that instruction i may run at place j > i instead: nobody writes what it reads in between.
func (g *graph) movable(i, j int) bool {
	ok := true
	eachValue(g.instrs[i].Args, func(v *aten.Value) { ok = ok && g.stable(v, i, j) })
	return ok
}

// stable reports that nobody writes what v looks at from instruction i on and before j.
func (g *graph) stable(v *aten.Value, i, j int) bool {
	if v.T != nil {
		return true
	}
	b := bufferOf(v)
	if b.Kind == Temp || b.Kind == Output {
		return !between(b.writers, i, j)
	}
	for _, o := range g.buffers { // external memory may overlap other external memory
		if (o.Kind == Input || o.Kind == State) && between(o.writers, i, j) {
			return false
		}
	}
	return true
}

func between(l []int, i, j int) bool {
	for _, x := range l {
		if x > i && x < j {
			return true
		}
	}
	return false
}
