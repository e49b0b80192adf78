// Package plan compiles the calls of a program, for the input sizes of one call, into a flat list of kernels over one arena.
//
// A [Recorder] is an executor that computes nothing: operators called through it become instructions, views become other
// looks at the same buffer, and whatever depends on constants alone is computed at once. [Recorder.Finish] runs the passes over the
// recorded instructions (see [Passes]), places the temporary buffers in an arena and verifies the result. A [Plan] is immutable; each
// run has a [Frame].
package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pt2go/pt2/aten"
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
	first  int     // instruction that uses it first
	last   int     // instruction that uses it last
	alias  *Buffer // the buffer whose memory this one takes over in place
	// written is set while recording, once an instruction writes the buffer.
	written bool
	// What passes know: the instructions that write and read it (one entry an argument), and whether the caller gets it.
	writers, readers []int
	given            bool
}

// Instr is one kernel call.
type Instr struct {
	Op   *aten.Op
	Args *aten.Args
	Outs []*aten.Value // nil for undefined results
	zero bool          // the kernel wants zeroed outputs
}

func bufferOf(v *aten.Value) *Buffer {
	b, _ := v.Ref.(*Buffer)
	return b
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

// Options configure the passes.
type Options struct {
	// Without names passes to leave out.
	Without []string
	// Cache keeps what passes make of constants for other plans of the same weights; nil keeps nothing.
	Cache *Cache
}

// Plan is a compiled program for one set of input sizes.
type Plan struct {
	instrs  []*Instr
	buffers []*Buffer
	outputs []*aten.Value // nil for outputs that are no tensors
	arena   int64
}

// Relaxed reports that the recorder chose layouts that are not PyTorch's.
func (r *Recorder) Relaxed() bool { return r.relaxed }

// Finish completes a recording: outputs are the tensors that the run gives to its caller. exact, if not nil, are values whose strides
// the outputs shall have.
func (r *Recorder) Finish(outputs, exact []*aten.Value, opts Options) (*Plan, error) {
	for i, o := range outputs {
		if o == nil || o.T != nil || exact == nil || exact[i] == nil {
			continue
		}
		if h := handleOf(o); h.cur.Kind == Temp && !sameLayout(o, exact[i]) {
			outputs[i] = r.copyLike(o, exact[i])
		}
	}
	g := &graph{instrs: r.instrs, buffers: r.buffers, opts: opts, pool: r.Pool, outputs: make([]*aten.Value, len(outputs))}
	for i, o := range outputs {
		g.outputs[i] = freeze(o)
	}
	if err := g.optimize(); err != nil {
		return nil, err
	}
	p := &Plan{instrs: g.instrs, buffers: g.buffers, outputs: g.outputs}
	p.liveness()
	if g.enabled(inPlacePass) {
		p.inPlace()
	}
	p.place(r.Pool.Size())
	return p, p.Verify()
}

// copyLike records a copy of v with the strides of like.
func (r *Recorder) copyLike(v, like *aten.Value) *aten.Value {
	m := v.Meta
	m.Strides = like.Strides
	c := r.Alloc(&m)
	r.record(&Instr{Op: copyOp, Args: &aten.Args{Op: copyOp, V: []any{v}}, Outs: []*aten.Value{c}})
	return c
}

// sameLayout reports equal sizes, and equal strides where the size is above 1.
func sameLayout(a, b *aten.Value) bool {
	if !aten.SameSizes(a.Sizes, b.Sizes) {
		return false
	}
	for i, s := range a.Sizes {
		if s.Int64() > 1 && !a.Strides[i].Eq(b.Strides[i]) {
			return false
		}
	}
	return true
}

// Arena is the number of bytes that a frame's temporaries take.
func (p *Plan) Arena() int64 { return p.arena }

// Len is the number of instructions.
func (p *Plan) Len() int { return len(p.instrs) }

// String lists the instructions. Temporaries are printed with their place in the arena.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d instructions, arena of %d bytes\n", len(p.instrs), p.arena)
	for i, in := range p.instrs {
		fmt.Fprintf(&b, "%4d %s\n", i, in)
	}
	b.WriteString("outputs:")
	for _, o := range p.outputs {
		fmt.Fprintf(&b, " %s", valueText(o))
	}
	b.WriteByte('\n')
	return b.String()
}

// String is the instruction as a call: results = operator(arguments).
func (in *Instr) String() string {
	var outs, args []string
	for _, o := range in.Outs {
		outs = append(outs, valueText(o))
	}
	params := in.Op.Signature().Params
	for i, x := range in.Args.V {
		switch x := x.(type) {
		case *aten.Value:
			args = append(args, valueText(x))
		case []*aten.Value:
			var l []string
			for _, v := range x {
				l = append(l, valueText(v))
			}
			args = append(args, "["+strings.Join(l, ", ")+"]")
		case nil:
			args = append(args, "none")
		default:
			args = append(args, fmt.Sprintf("%s=%v", params[i].Name, x))
		}
	}
	// Trailing arguments that are left at None say nothing.
	for len(args) > 0 && args[len(args)-1] == "none" {
		args = args[:len(args)-1]
	}
	return strings.Join(outs, ", ") + " = " + strings.TrimSuffix(in.Op.Name(), ".default") + "(" + strings.Join(args, ", ") + ")"
}

func valueText(v *aten.Value) string {
	if v == nil {
		return "none"
	}
	if v.T != nil {
		if v.T.Numel() == 1 && !v.DType.IsComplex() {
			return fmt.Sprintf("const %v", v.T.Float(0))
		}
		return fmt.Sprintf("const %v%v", v.DType, v.Sizes)
	}
	buf := bufferOf(v)
	s := [...]string{"t", "in", "state", "out"}[buf.Kind]
	switch buf.Kind {
	case Temp:
		s += fmt.Sprintf("%d@%d", buf.id, buf.Offset)
	case Output:
		s += fmt.Sprint(buf.id)
	default:
		s += fmt.Sprint(buf.Index)
	}
	if off := v.Offset.Int64(); off != 0 {
		s += fmt.Sprintf("+%d", off)
	}
	s += fmt.Sprintf(" %v%v", v.DType, v.Sizes)
	if !v.IsContiguous() {
		s += fmt.Sprintf("/%v", v.Strides)
	}
	return s
}

// memoryOf gives the bytes of an input or state tensor from its first element on.
func memoryOf(t *tensor.Tensor) []byte {
	b := t.Storage().Bytes()
	off := min(t.Offset()*int64(t.DType().Size()), int64(len(b)))
	return slices.Clip(b[off:])
}
