package plan

import (
	"errors"
	"slices"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/internal/pool"
	"github.com/pt2go/pt2/tensor"
)

// Unplannable is the panic value of a recording that meets something whose shape or number depends on data.
type Unplannable struct{ Why string }

// Error says why.
func (u *Unplannable) Error() string { return "plan: " + u.Why }

// The panic values of a recording that has to be made again in another mode: foldedWrite without folding instruction number run (or any,
// if that is negative), because it would write into the constant; needStrides with the strides that PyTorch gives, because something looks at them.
type (
	foldedWrite struct{ run int }
	needStrides struct{ why string }
)

// Bounds of folding: the bytes of constants that one plan computes ahead, and of one constant that is only made of sizes, as zeros are;
// and how many instructions are tried not to be folded before none is.
const (
	maxFolded  = 256 << 20
	maxOfSizes = 1 << 20
	maxKept    = 16
)

// handle is the memory of a value and of its views while recording. When an instruction writes all of it anew, the handle goes
// over to a new buffer: instructions that are recorded later, through whatever view, read that one. So what a program does in
// place becomes functional where it can.
type handle struct {
	cur   *Buffer
	split bool // a copy stands where PyTorch has a view of it, so it must not be written
}

// SameMemory reports whether v may look at h's memory. (aten asks this of values without elements.)
func (h *handle) SameMemory(v *aten.Value) bool {
	if v.T != nil {
		return false // a constant
	}
	o := handleOf(v)
	// Different inputs, and different state tensors, may share memory.
	return o == h || (h.cur.Kind != Temp && o.cur.Kind != Temp)
}

func handleOf(v *aten.Value) *handle {
	h, _ := v.Ref.(*handle)
	return h
}

// Recorder is the executor that records. It is used once.
type Recorder struct {
	Pool *pool.Pool
	// NoFold leaves computations on constants in the plan.
	NoFold bool
	// Exact keeps PyTorch's strides for every value. Without it the recorder chooses layouts, see [Recorder.layout].
	Exact   bool
	relaxed bool // a layout differs from PyTorch's
	// kept numbers the instructions that are not folded because their results are written later; runs counts instructions.
	kept []int
	runs int
	// made has the memory of folded constants that no instruction reads yet, with the number of the instruction that was folded: what is
	// written there from constants alone can be written at once. read has the memory that instructions do read.
	made, read map[*tensor.Storage]int
	instrs     []*Instr
	gelus      []*Instr // those of the operator gelu, whose form depends on the layout that PyTorch has
	buffers    []*Buffer
	folded     int64
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
	return &aten.Value{Meta: m, Ref: &handle{cur: r.buffer(kind, index, 0)}}
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
	v.Ref = &handle{cur: r.buffer(Temp, -1, byteSize(m))}
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
	in := &Instr{Op: op, Args: a, Outs: slices.Clone(outs)} // the caller may reuse its slice
	r.runs++
	if r.writeConstants(in) {
		return
	}
	fresh := true
	bytes := int64(0)
	for _, o := range outs {
		if o == nil {
			continue
		}
		h := handleOf(o)
		if h == nil {
			panic(foldedWrite{r.foldedAt(o)})
		}
		in.zero = in.zero || o.Zero
		fresh = fresh && h.cur.Kind == Temp && !h.cur.written
		bytes += h.cur.Bytes
	}
	// Dequantized weights are for [graph.foldLate]. Control flow may depend on few numbers, so those are computed at once.
	late := op.Tags&aten.Dequantize != 0 && bytes >= 256
	ofSizes := op.Tags&aten.SizesOnly != 0 && bytes <= maxOfSizes
	if fresh && !r.NoFold && !late && r.folded+bytes < maxFolded && (ofSizes || constant(a)) && !slices.Contains(r.kept, r.runs) {
		if ofSizes {
			in.Args = withoutElements(a)
		}
		r.fold(in)
		r.folded += bytes
		return
	}
	if fresh {
		r.layout(op, a, outs)
	}
	r.record(in)
}

// record appends in with its values as they are now.
func (r *Recorder) record(in *Instr) {
	if in.Op.Name() == "aten.copy_.default" && coversAll(in.Outs[0]) {
		// All of it is written, so what was there before is not read.
		in.Op, in.Args = copyOp, &aten.Args{Op: copyOp, V: []any{in.Args.V[1]}}
	}
	args := freezeArgs(in.Args)
	eachValue(args, r.reads)
	functional := in.Op == copyOp || (in.Op.Tags&aten.Pointwise != 0 && !in.Op.Mutates())
	for _, o := range in.Outs {
		if o == nil {
			continue
		}
		h := handleOf(o)
		if h.cur.written || h.cur.Kind != Temp {
			if h.split {
				panic(needStrides{"a value is written of which PyTorch has a view"})
			}
			if functional && h.cur.Kind == Temp && coversAll(o) {
				h.cur = r.buffer(Temp, -1, h.cur.Bytes)
			}
		}
		h.cur.written = true
	}
	outs := make([]*aten.Value, len(in.Outs))
	for i, o := range in.Outs {
		outs[i] = freeze(o)
	}
	r.instrs = append(r.instrs, &Instr{Op: in.Op, Args: args, Outs: outs, zero: in.zero})
	if in.Op == aten.Builtin().Lookup("aten.gelu.default") {
		in = r.instrs[len(r.instrs)-1]
		in.Op = aten.GELU(aten.GELUFormOf(in.Args))
		r.gelus = append(r.gelus, in)
	}
}

// Follow corrects what depends on layouts that r chose, by a recording of the same program with PyTorch's.
func (r *Recorder) Follow(exact *Recorder) {
	if len(r.gelus) != len(exact.gelus) {
		return // one folded what the other did not: rare, and about infinities only
	}
	for i, in := range r.gelus {
		in.Op = exact.gelus[i].Op
	}
}

// coversAll reports that v is all of its memory, without gaps.
func coversAll(v *aten.Value) bool {
	h := handleOf(v)
	return v.T == nil && h.cur.Kind == Temp && v.Offset.Int64() == 0 && v.IsDense() && v.Numel().Int64()*int64(v.DType.Size()) == h.cur.Bytes
}

// freeze copies a value with the buffer that it looks at now: an operator such as unsqueeze_ changes a value after instructions
// have used it, and those mean what it was.
func freeze(v *aten.Value) *aten.Value {
	if v == nil || v.T != nil {
		return v
	}
	c := *v
	if h := handleOf(v); h != nil {
		c.Ref = h.cur
	}
	c.View = nil
	return &c
}

func freezeArgs(a *aten.Args) *aten.Args {
	c := &aten.Args{Op: a.Op, V: slices.Clone(a.V)}
	for i, x := range c.V {
		switch x := x.(type) {
		case *aten.Value:
			c.V[i] = freeze(x)
		case []*aten.Value:
			l := slices.Clone(x)
			for j := range l {
				l[j] = freeze(l[j])
			}
			c.V[i] = l
		}
	}
	return c
}

// constant reports that every tensor among the arguments has its elements already.
func constant(a *aten.Args) bool {
	ok := true
	eachValue(a, func(v *aten.Value) { ok = ok && v.T != nil })
	return ok
}

// withoutElements replaces the tensors among the arguments of an operator that does not read them.
func withoutElements(a *aten.Args) *aten.Args {
	c := &aten.Args{Op: a.Op, V: slices.Clone(a.V)}
	for i, x := range c.V {
		if v, ok := x.(*aten.Value); ok && v != nil && v.T == nil {
			c.V[i] = aten.FromTensor(tensor.New(v.DType, 0))
		}
	}
	return c
}

// writeConstants writes at once what is written into folded constants that no instruction has read, from constants alone. It reports
// whether it did.
func (r *Recorder) writeConstants(in *Instr) bool {
	if len(in.Outs) == 0 || !constant(in.Args) {
		return false
	}
	for _, o := range in.Outs {
		if o == nil || o.T == nil {
			return false
		}
		if _, ok := r.made[o.T.Storage()]; !ok {
			return false
		}
	}
	(&aten.Eager{Pool: r.Pool}).Run(in.Op, in.Args, in.Outs)
	return true
}

// foldedAt is the number of the instruction that was folded into v's memory; -1 if v is no folded constant.
func (r *Recorder) foldedAt(v *aten.Value) int {
	for _, m := range []map[*tensor.Storage]int{r.made, r.read} {
		if n, ok := m[v.T.Storage()]; ok {
			return n
		}
	}
	return -1
}

// reads marks a constant as read by an instruction.
func (r *Recorder) reads(v *aten.Value) {
	if v == nil || v.T == nil {
		return
	}
	if n, ok := r.made[v.T.Storage()]; ok {
		delete(r.made, v.T.Storage())
		r.read[v.T.Storage()] = n
	}
}

// fold computes an instruction now; its outputs become constants.
func (r *Recorder) fold(in *Instr) {
	if r.made == nil {
		r.made, r.read = map[*tensor.Storage]int{}, map[*tensor.Storage]int{}
	}
	for _, o := range in.Outs {
		if o != nil {
			o.T, o.Ref = aten.Alloc(&o.Meta), nil
			r.made[o.T.Storage()] = r.runs
		}
	}
	(&aten.Eager{Pool: r.Pool}).Run(in.Op, in.Args, in.Outs)
}

// Computing implements [aten.Computing].
func (r *Recorder) Computing() {}

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
	if !r.Exact && ReadsStrides(op) {
		panic(needStrides{op.Name()})
	}
	return op.Result(a)
}

// ReadsStrides reports that an operator's meaning depends on the strides of its arguments, so that a program with it can only be
// recorded exactly.
func ReadsStrides(op *aten.Op) bool {
	n := op.Signature().Base
	return strings.Contains(n, "as_strided") || strings.Contains(n, "stride") || strings.Contains(n, "reshape_alias") ||
		strings.Contains(n, "storage_offset") || strings.HasPrefix(n, "resize") || strings.HasPrefix(n, "set_") || n == "is_contiguous"
}

// Record calls f with recorders until one succeeds: first one that chooses layouts, unless exact is set, then one that keeps
// PyTorch's strides. planned is false if f met something unplannable; a refusal of an operator is f's error.
func Record(f func(r *Recorder) error, p *pool.Pool, exact bool) (r *Recorder, planned bool, err error) {
	r = &Recorder{Pool: p, Exact: exact}
	for {
		var again any
		planned, again, err = record(r, f)
		var refusal *aten.Error
		_, strides := again.(needStrides)
		switch {
		case again == nil && err == nil, again == nil && r.Exact, again == nil && !errors.As(err, &refusal):
			return r, planned, err
		case again == nil, strides:
			r = &Recorder{Pool: p, Exact: true, NoFold: r.NoFold}
		default:
			next := &Recorder{Pool: p, Exact: r.Exact, NoFold: r.NoFold, kept: r.kept}
			if w := again.(foldedWrite); w.run >= 0 && len(r.kept) < maxKept {
				next.kept = append(next.kept, w.run)
			} else {
				next.NoFold = true
			}
			r = next
		}
	}
}

func record(r *Recorder, f func(r *Recorder) error) (planned bool, again any, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *Unplannable:
			planned, err = false, nil
		case foldedWrite, needStrides:
			again = p
		default:
			panic(p)
		}
	}()
	err = f(r)
	if inner := unwrapPanic(err); inner != nil {
		panic(inner)
	}
	return err == nil, nil, err
}

// unwrapPanic finds a recording's own panic value in the internal error that an entry point of aten made of it.
func unwrapPanic(err error) any {
	for err != nil {
		if e, ok := err.(*Unplannable); ok {
			return e
		}
		if e, ok := err.(*aten.InternalError); ok {
			switch e.Value.(type) {
			case *Unplannable, foldedWrite, needStrides:
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
