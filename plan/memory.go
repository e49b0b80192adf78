package plan

import (
	"fmt"
	"slices"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tensor"
)

// liveness finds for each buffer the first and the last instruction that uses it.
func (p *Plan) liveness() {
	for _, b := range p.buffers {
		b.first, b.last, b.alias = -1, -1, nil
	}
	for i, in := range p.instrs {
		touch := func(v *aten.Value) {
			if b := bufferOf(v); b != nil && v.T == nil {
				if b.first < 0 {
					b.first = i
				}
				b.last = i
			}
		}
		eachValue(in.Args, touch)
		for _, o := range in.Outs {
			if o != nil {
				touch(o)
			}
		}
	}
}

// overwritable lists the arguments whose memory an instruction's first output may take over, element for element: the first of
// element-by-element operators, whose kernels serve the in-place forms too, and what fused operators say.
func overwritable(in *Instr) []*aten.Value {
	if len(in.Outs) != 1 || in.Outs[0] == nil || len(in.Args.V) == 0 {
		return nil
	}
	if f := fusedOps[in.Op]; f != nil {
		return f.overwritable(in.Args)
	}
	if v, ok := in.Args.V[0].(*aten.Value); ok && in.Op.Tags&aten.Pointwise != 0 {
		return []*aten.Value{v}
	}
	return nil
}

// fused is what the planner knows of an operator of its own.
type fused struct {
	// overwritable lists arguments that the kernel reads, at each place, before it writes the output there.
	overwritable func(a *aten.Args) []*aten.Value
}

// fusedOps has the planner's own operators that are more than their kernel.
var fusedOps = map[*aten.Op]*fused{}

// canOverwrite reports that in may write its output over the argument's memory: both have one layout, and no other argument looks at
// that memory in another way.
func canOverwrite(in *Instr, arg *aten.Value) bool {
	out := in.Outs[0]
	if arg == nil || arg.T != nil || out.DType != arg.DType || !sameLayout(out, arg) || !covers(out) || !covers(arg) {
		return false
	}
	for _, v := range reads(in, bufferOf(arg)) {
		if !sameLayout(v, arg) || !covers(v) || v.DType != arg.DType || !slices.Contains(overwritable(in), v) {
			return false
		}
	}
	return true
}

// inPlace lets outputs take over the memory of arguments that nobody needs any more.
func (p *Plan) inPlace() {
	for i, in := range p.instrs {
		if len(in.Outs) != 1 || in.Outs[0] == nil || in.zero {
			continue
		}
		out := bufferOf(in.Outs[0])
		if out.Kind != Temp || out.first != i || out.alias != nil {
			continue
		}
		for _, v := range overwritable(in) {
			if v == nil || v.T != nil {
				continue
			}
			if b := bufferOf(v); b.Kind == Temp && b.last == i && b != out && canOverwrite(in, v) {
				out.alias = b
				break
			}
		}
	}
}

// root is the buffer whose memory b uses.
func (b *Buffer) root() *Buffer {
	for b.alias != nil {
		b = b.alias
	}
	return b
}

// span is a place in the arena while the buffers that share it live.
type span struct {
	*Buffer
	from, to int
	bytes    int64
}

// place gives each temporary buffer a place in the arena: largest first, where it is free for its lifetime. Goroutines work on the same
// part of each buffer, the first one on its begin, and a core that writes where another one wrote last has to fetch every line from it.
// So with several threads a buffer shares its middle with a larger one if it can, and else gets the lowest offset.
func (p *Plan) place(threads int) {
	spans := map[*Buffer]*span{}
	var temps []*span
	for _, b := range p.buffers {
		if b.Kind != Temp || b.first < 0 || b.Bytes == 0 {
			continue
		}
		r := b.root()
		s := spans[r]
		if s == nil {
			s = &span{r, b.first, b.last, b.Bytes}
			spans[r] = s
			temps = append(temps, s)
		}
		s.from, s.to, s.bytes = min(s.from, b.first), max(s.to, b.last), max(s.bytes, b.Bytes)
	}
	slices.SortStableFunc(temps, func(a, b *span) int { return int(min(max(b.bytes-a.bytes, -1), 1)) })
	var placed []*span
	for _, s := range temps {
		s.Offset = s.free(placed, threads > 1 && s.bytes >= sharedBytes)
		p.arena = max(p.arena, s.Offset+s.bytes)
		placed = append(placed, s)
	}
	for _, b := range p.buffers {
		if b.alias != nil {
			b.Offset = b.root().Offset
		}
	}
}

// sharedBytes is from what size on several goroutines work on a buffer.
const sharedBytes = 32 << 10

// free finds an offset for s beside those placed before, which are as large or larger.
func (s *span) free(placed []*span, middle bool) int64 {
	var busy []*span
	for _, q := range placed {
		if q.from <= s.to && s.from <= q.to {
			busy = append(busy, q)
		}
	}
	for _, q := range placed {
		if !middle {
			break
		}
		off := q.Offset + (q.bytes-s.bytes)/2/tensor.Align*tensor.Align
		if !slices.ContainsFunc(busy, func(b *span) bool { return off < b.Offset+b.bytes && b.Offset < off+s.bytes }) {
			return off
		}
	}
	slices.SortFunc(busy, func(x, y *span) int { return int(min(max(x.Offset-y.Offset, -1), 1)) })
	off := int64(0)
	for _, q := range busy {
		if q.Offset >= off+s.bytes {
			break
		}
		off = max(off, (q.Offset+q.bytes+tensor.Align-1)/tensor.Align*tensor.Align)
	}
	return off
}

// Verify checks, without regard to how the plan was made, that nothing is read before it is written, and that buffers alive at the
// same time share no byte unless one takes over the other's memory in place at its last use.
func (p *Plan) Verify() error {
	g := &graph{instrs: p.instrs, buffers: p.buffers, outputs: p.outputs}
	if err := g.check(); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	live := func(b *Buffer) bool { return b.Kind == Temp && b.first >= 0 && b.Bytes > 0 }
	for i, a := range p.buffers {
		if !live(a) {
			continue
		}
		if a.Offset < 0 || a.Offset+a.Bytes > p.arena {
			return fmt.Errorf("plan: buffer %d leaves the arena", a.id)
		}
		for _, b := range p.buffers[:i] {
			if !live(b) || a.first > b.last || b.first > a.last || a.Offset >= b.Offset+b.Bytes || b.Offset >= a.Offset+a.Bytes {
				continue
			}
			if !p.takesOver(a, b) && !p.takesOver(b, a) {
				return fmt.Errorf("plan: buffers %d and %d overlap in the arena", b.id, a.id)
			}
		}
	}
	return nil
}

// takesOver reports that to is written in place of from by the last instruction that uses from.
func (p *Plan) takesOver(to, from *Buffer) bool {
	if from.last != to.first || from.Offset != to.Offset || from.Bytes != to.Bytes {
		return false
	}
	in := p.instrs[to.first]
	if len(in.Outs) != 1 || bufferOf(in.Outs[0]) != to {
		return false
	}
	for _, v := range overwritable(in) {
		if v != nil && v.T == nil && bufferOf(v) == from {
			return canOverwrite(in, v)
		}
	}
	return false
}
