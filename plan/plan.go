// Package plan compiles the calls of a program, for the input sizes of one call, into a flat list of kernels over one arena.
//
// A [Recorder] is an executor that computes nothing: operators called through it become instructions, views become other
// looks at the same buffer, and whatever depends on constants alone is computed at once. [Recorder.Finish] drops what nobody
// needs and places the temporary buffers in an arena. A [Plan] is immutable; each run has a [Frame].
package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/internal/pool"
	"github.com/pt2go/pt2/tensor"
)

// Kind tells where a buffer's memory comes from.
type Kind uint8

// The kinds of buffers.
const (
	Temp   Kind = iota // in the arena
	Input              // the caller's
	State              // the module instance's
	Output             // fresh for each run, given to the caller
)

// Buffer is the memory of a value and of all views of it.
type Buffer struct {
	Kind   Kind
	Index  int   // of the input or state tensor
	Bytes  int64 // size; not used for inputs and states
	Offset int64 // in the arena
	id     int
	first  int // instruction that writes it first
	last   int // instruction that uses it last
	needed bool
}

// Instr is one kernel call.
type Instr struct {
	Op   *aten.Op
	Args *aten.Args
	Outs []*aten.Value // nil for undefined results
	zero bool          // the kernel wants zeroed outputs
}

// Unplannable is the panic value of a recording that meets something whose shape or number depends on data.
type Unplannable struct{ Why string }

// Error says why.
func (u *Unplannable) Error() string { return "plan: " + u.Why }

// foldedWrite is the panic value of a recording that would write into a folded constant.
type foldedWrite struct{}

// maxFolded bounds the bytes of constants that one plan computes ahead.
const maxFolded = 256 << 20

// Recorder is the executor that records. It is used once.
type Recorder struct {
	Pool    *pool.Pool
	NoFold  bool
	instrs  []Instr
	buffers []*Buffer
	folded  int64
}

func bufferOf(v *aten.Value) *Buffer {
	b, _ := v.Ref.(*Buffer)
	return b
}

// SameMemory reports whether v may look at b's memory. (aten asks this of values without elements.)
func (b *Buffer) SameMemory(v *aten.Value) bool {
	if v.T != nil {
		return false // a constant
	}
	o := bufferOf(v)
	// Different inputs, and different state tensors, may share memory.
	return o == b || (b.Kind != Temp && o.Kind != Temp)
}

func (r *Recorder) buffer(kind Kind, index int, bytes int64) *Buffer {
	b := &Buffer{Kind: kind, Index: index, Bytes: bytes, id: len(r.buffers), first: -1, last: -1}
	r.buffers = append(r.buffers, b)
	return b
}

// External makes the value of an input or state tensor, which looks like t.
func (r *Recorder) External(kind Kind, index int, t *tensor.Tensor) *aten.Value {
	m := aten.MetaOf(t)
	m.Offset = aten.Ints(0)[0]
	return &aten.Value{Meta: m, Ref: r.buffer(kind, index, 0)}
}

// View implements [aten.Executor].
func (r *Recorder) View(m *aten.Meta) *aten.Value {
	if m.View.T != nil {
		return &aten.Value{Meta: *m, T: m.Realize()}
	}
	return &aten.Value{Meta: *m, Ref: m.View.Ref}
}

// Alloc implements [aten.Executor].
func (r *Recorder) Alloc(m *aten.Meta) *aten.Value {
	v := &aten.Value{Meta: *m}
	v.Offset = aten.Ints(0)[0]
	v.Ref = r.buffer(Temp, -1, byteSize(m))
	return v
}

func byteSize(m *aten.Meta) int64 {
	last := int64(0)
	for i, s := range m.Sizes {
		n := s.Int64()
		if n == 0 {
			return 0
		}
		last += (n - 1) * m.Strides[i].Int64()
	}
	n := (last + 1) * int64(m.DType.Size())
	if n < 0 || n > 1<<40 {
		aten.Fail("cannot allocate a tensor of sizes %v and dtype %v", m.Sizes, m.DType)
	}
	return n
}

// Run implements [aten.Executor].
func (r *Recorder) Run(op *aten.Op, a *aten.Args, outs []*aten.Value) {
	if op.Tags&aten.Random != 0 {
		panic(&Unplannable{op.Name() + " draws random numbers"})
	}
	in := Instr{Op: op, Args: a, Outs: slices.Clone(outs)} // the caller may reuse its slice
	fresh := true
	bytes := int64(0)
	for _, o := range outs {
		if o == nil {
			continue
		}
		b := bufferOf(o)
		if b == nil {
			panic(foldedWrite{})
		}
		in.zero = in.zero || o.Zero
		fresh = fresh && b.Kind == Temp && b.first < 0
		bytes += b.Bytes
	}
	if fresh && !r.NoFold && r.folded+bytes < maxFolded && constant(a) {
		r.fold(&in)
		r.folded += bytes
		return
	}
	for _, o := range outs {
		if o != nil {
			if b := bufferOf(o); b.first < 0 {
				b.first = len(r.instrs)
			}
		}
	}
	r.instrs = append(r.instrs, in.frozen())
}

// frozen is the instruction over copies of its values: an operator such as unsqueeze_ changes a value after instructions have
// used it, and those mean what it was.
func (in Instr) frozen() Instr {
	one := func(v *aten.Value) *aten.Value {
		if v == nil || v.T != nil {
			return v
		}
		c := *v
		return &c
	}
	a := &aten.Args{Op: in.Args.Op, V: slices.Clone(in.Args.V)}
	for i, x := range a.V {
		switch x := x.(type) {
		case *aten.Value:
			a.V[i] = one(x)
		case []*aten.Value:
			l := slices.Clone(x)
			for j := range l {
				l[j] = one(l[j])
			}
			a.V[i] = l
		}
	}
	in.Args = a
	for i := range in.Outs {
		in.Outs[i] = one(in.Outs[i])
	}
	return in
}

// constant reports that every tensor among the arguments has its elements already.
func constant(a *aten.Args) bool {
	ok := true
	eachValue(a, func(v *aten.Value) { ok = ok && v.T != nil })
	return ok
}

func eachValue(a *aten.Args, f func(v *aten.Value)) {
	for _, x := range a.V {
		switch x := x.(type) {
		case *aten.Value:
			if x != nil {
				f(x)
			}
		case []*aten.Value:
			for _, v := range x {
				if v != nil {
					f(v)
				}
			}
		}
	}
}

// fold computes an instruction now; its outputs become constants.
func (r *Recorder) fold(in *Instr) {
	for _, o := range in.Outs {
		if o != nil {
			o.T, o.Ref = aten.Alloc(&o.Meta), nil
		}
	}
	(&aten.Eager{Pool: r.Pool}).Run(in.Op, in.Args, in.Outs)
}

// Dynamic implements [aten.Executor].
func (r *Recorder) Dynamic(op *aten.Op, a *aten.Args) []*aten.Value {
	if constant(a) && op.Tags&aten.Random == 0 && !r.NoFold {
		return (&aten.Eager{Pool: r.Pool}).Dynamic(op, a)
	}
	panic(&Unplannable{op.Name() + " sizes its result by data"})
}

// Result implements [aten.Executor].
func (r *Recorder) Result(op *aten.Op, a *aten.Args) any {
	if op.Tags&aten.DataDependent != 0 && !constant(a) {
		panic(&Unplannable{op.Name() + " reads data"})
	}
	return op.Result(a)
}

// Record calls f and turns the panics of a recording into results: planned is false if f met something unplannable.
func Record(f func(r *Recorder) error, p *pool.Pool) (r *Recorder, planned bool, err error) {
	for _, noFold := range []bool{false, true} {
		r = &Recorder{Pool: p, NoFold: noFold}
		again := false
		planned, again, err = record(r, f)
		if !again {
			break
		}
	}
	return r, planned, err
}

func record(r *Recorder, f func(r *Recorder) error) (planned, again bool, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *Unplannable:
			planned = false
		case foldedWrite:
			again = true
		default:
			panic(p)
		}
	}()
	err = f(r)
	if inner := unwrapPanic(err); inner != nil {
		panic(inner)
	}
	return err == nil, false, err
}

// unwrapPanic finds a recording's own panic value in the internal error that an entry point of aten made of it.
func unwrapPanic(err error) any {
	for err != nil {
		if e, ok := err.(*Unplannable); ok {
			return e
		}
		if e, ok := err.(*aten.InternalError); ok {
			switch e.Value.(type) {
			case *Unplannable, foldedWrite:
				return e.Value
			}
			return nil
		}
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return nil
		}
		err = u.Unwrap()
	}
	return nil
}

// Plan is a compiled program for one set of input sizes.
type Plan struct {
	instrs  []Instr
	buffers []*Buffer
	outputs []*aten.Value // nil for outputs that are no tensors
	arena   int64
}

// Finish completes a recording: outputs are the tensors that the run gives to its caller.
func (r *Recorder) Finish(outputs []*aten.Value) (*Plan, error) {
	p := &Plan{instrs: r.instrs, buffers: r.buffers, outputs: outputs}
	for _, o := range outputs {
		if o == nil || o.T != nil {
			continue
		}
		b := bufferOf(o)
		b.needed = true
		if b.Kind == Temp {
			b.Kind = Output
		}
	}
	p.dropDead()
	p.liveness()
	p.place()
	return p, p.Verify()
}

// dropDead removes instructions whose results nobody uses.
func (p *Plan) dropDead() {
	keep := make([]bool, len(p.instrs))
	for i := len(p.instrs) - 1; i >= 0; i-- {
		in := &p.instrs[i]
		use := len(in.Outs) == 0
		for _, o := range in.Outs {
			if o != nil {
				b := bufferOf(o)
				use = use || b.needed || b.Kind == Input || b.Kind == State
			}
		}
		if !use {
			continue
		}
		keep[i] = true
		eachValue(in.Args, func(v *aten.Value) {
			if b := bufferOf(v); b != nil && v.T == nil {
				b.needed = true
			}
		})
	}
	var out []Instr
	for i, in := range p.instrs {
		if keep[i] {
			out = append(out, in)
		}
	}
	p.instrs = out
}

func (p *Plan) liveness() {
	for _, b := range p.buffers {
		b.first, b.last = -1, -1
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

// place gives each temporary buffer a place in the arena: largest first, at the lowest offset that is free for its lifetime.
func (p *Plan) place() {
	var temps []*Buffer
	for _, b := range p.buffers {
		if b.Kind == Temp && b.first >= 0 && b.Bytes > 0 {
			temps = append(temps, b)
		}
	}
	slices.SortStableFunc(temps, func(a, b *Buffer) int { return int(min(max(b.Bytes-a.Bytes, -1), 1)) })
	var placed []*Buffer
	for _, b := range temps {
		var busy []*Buffer
		for _, q := range placed {
			if q.first <= b.last && b.first <= q.last {
				busy = append(busy, q)
			}
		}
		slices.SortFunc(busy, func(x, y *Buffer) int { return int(min(max(x.Offset-y.Offset, -1), 1)) })
		off := int64(0)
		for _, q := range busy {
			if q.Offset >= off+b.Bytes {
				break
			}
			off = max(off, (q.Offset+q.Bytes+tensor.Align-1)/tensor.Align*tensor.Align)
		}
		b.Offset = off
		p.arena = max(p.arena, off+b.Bytes)
		placed = append(placed, b)
	}
}

// Verify checks, without regard to how the plan was made, that buffers alive at the same time share no byte and that
// nothing is read before it is written.
func (p *Plan) Verify() error {
	written := map[*Buffer]bool{}
	for i, in := range p.instrs {
		var err error
		eachValue(in.Args, func(v *aten.Value) {
			b := bufferOf(v)
			if v.T == nil && b == nil {
				err = fmt.Errorf("plan: instruction %d (%s) has an argument without memory", i, in.Op.Name())
			} else if v.T == nil && (b.Kind == Temp || b.Kind == Output) && !written[b] && b.Bytes > 0 {
				own := false
				for _, o := range in.Outs {
					own = own || (o != nil && bufferOf(o) == b)
				}
				if !own {
					err = fmt.Errorf("plan: instruction %d (%s) reads a buffer that nothing has written", i, in.Op.Name())
				}
			}
		})
		if err != nil {
			return err
		}
		for _, o := range in.Outs {
			if o != nil {
				written[bufferOf(o)] = true
			}
		}
	}
	for i, a := range p.buffers {
		for _, b := range p.buffers[:i] {
			if a.Kind != Temp || b.Kind != Temp || a.first < 0 || b.first < 0 || a.Bytes == 0 || b.Bytes == 0 {
				continue
			}
			if a.first <= b.last && b.first <= a.last && a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes {
				return fmt.Errorf("plan: buffers %d and %d overlap in the arena", b.id, a.id)
			}
		}
	}
	return nil
}

// Arena is the number of bytes that a frame's temporaries take.
func (p *Plan) Arena() int64 { return p.arena }

// String lists the instructions.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "arena %d bytes, %d instructions\n", p.arena, len(p.instrs))
	text := func(v *aten.Value) string {
		if v == nil {
			return "none"
		}
		if v.T != nil {
			return fmt.Sprintf("const %v%v", v.DType, v.Sizes)
		}
		buf := bufferOf(v)
		return fmt.Sprintf("%s%d %v%v", [...]string{"t", "in", "state", "out"}[buf.Kind], buf.id, v.DType, v.Sizes)
	}
	for i, in := range p.instrs {
		fmt.Fprintf(&b, "%4d %s", i, in.Op.Name())
		eachValue(in.Args, func(v *aten.Value) { fmt.Fprintf(&b, " %s,", text(v)) })
		b.WriteString(" ->")
		for _, o := range in.Outs {
			fmt.Fprintf(&b, " %s", text(o))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
