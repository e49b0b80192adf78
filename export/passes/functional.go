package passes

import (
	"slices"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
)

// store is memory that several values may see. Writing to one of them makes a new value of the whole; the others are made from
// it again when they are used next.
type store struct {
	value *aten.Value // the whole
	gen   int         // counts the writes
	// written is set when calls are recorded as they are and one of them writes.
	written bool
}

// viewStep is how a value is seen from another: the operator with its arguments, of which the first tensor is the other, and which
// of its results it is.
type viewStep struct {
	op    *aten.Op
	args  *aten.Args
	self  int
	index int
	meta  aten.Meta // of the result
}

// MutationError is a write that has no functional form here.
type MutationError struct {
	Op  string
	Why string
}

// Error names the operator.
func (e *MutationError) Error() string {
	return "passes: " + e.Op + " writes to its argument and cannot be made functional: " + e.Why
}

// relate notes that result k of a view sees the memory of the view's argument.
func (r *recorder) relate(op *aten.Op, a *aten.Args, v, shape *aten.Value, k int) {
	if r.literal {
		share(a, v, shape)
		return
	}
	if !op.IsView() && shape.View == nil {
		return
	}
	self := -1
	for i := range a.V {
		x, ok := a.V[i].(*aten.Value)
		if !ok {
			continue
		}
		if _, ok := x.Ref.(*ref); ok && (op.IsView() || x == shape.View) {
			self = i
			break
		}
	}
	if self < 0 {
		return
	}
	base := a.V[self].(*aten.Value).Ref.(*ref)
	p := v.Ref.(*ref)
	p.store, p.gen = base.store, base.store.gen
	p.chain = append(slices.Clone(base.chain), viewStep{op, &aten.Args{Op: op, V: slices.Clone(a.V)}, self, k, v.Meta})
}

// refreshAll brings the tensors among arguments up to date.
func (r *recorder) refreshAll(a *aten.Args) {
	for _, x := range a.V {
		switch x := x.(type) {
		case *aten.Value:
			r.refresh(x)
		case []*aten.Value:
			for _, v := range x {
				r.refresh(v)
			}
		}
	}
}

// refresh makes a value again whose memory was written to through another.
func (r *recorder) refresh(v *aten.Value) {
	if v == nil {
		return
	}
	p, ok := v.Ref.(*ref)
	if !ok || p.gen == p.store.gen {
		return
	}
	orig := r.orig
	r.orig = nil
	x := p.store.value
	for _, step := range p.chain {
		x = r.replay(step, x)
	}
	r.orig = orig
	p.node, p.gen = x.Ref.(*ref).node, p.store.gen
}

// replay sees x as the step does.
func (r *recorder) replay(s viewStep, x *aten.Value) *aten.Value {
	a := &aten.Args{Op: s.op, V: slices.Clone(s.args.V)}
	a.V[s.self] = x
	r.again = &s
	defer func() { r.again = nil }()
	out := r.record(s.op, a)
	if s.index >= len(out) {
		panic(&MutationError{s.op.Name(), "the view has other parts than the program records"})
	}
	return out[s.index]
}

// set makes new the contents of v, and of all that see its memory.
func (r *recorder) set(op *aten.Op, v, new *aten.Value) {
	p := v.Ref.(*ref)
	orig := r.orig
	r.orig = nil
	defer func() { r.orig = orig }()
	bases := []*aten.Value{p.store.value}
	for _, s := range p.chain[:max(0, len(p.chain)-1)] {
		bases = append(bases, r.replay(s, bases[len(bases)-1]))
	}
	whole := new
	for i := len(p.chain) - 1; i >= 0; i-- {
		whole = r.scatter(op, p.chain[i], bases[i], whole)
	}
	r.writes++
	p.store.value = whole
	p.store.gen++
	p.node, p.gen = new.Ref.(*ref).node, p.store.gen
	if len(p.chain) > 0 {
		p.gen = p.store.gen - 1 // seen again through the whole, as PyTorch does
	}
}

// scatter is base with part in the place that the step sees.
func (r *recorder) scatter(op *aten.Op, s viewStep, base, part *aten.Value) *aten.Value {
	b, a := r.build, s.args
	at := func(name string) any {
		if i := a.Index(name); i >= 0 {
			return a.V[i]
		}
		return nil
	}
	switch s.op.Signature().Base {
	case "alias", "detach", "lift_fresh", "view_as":
		return part
	case "view", "_unsafe_view", "reshape", "squeeze", "flatten", "unflatten", "_reshape_alias":
		return b.Call("view", part, base.Sizes)
	case "unsqueeze":
		return b.Call("squeeze.dim", part, at("dim"))
	case "permute":
		dims := a.I64s(1)
		inverse := make([]int64, len(dims))
		for i, d := range dims {
			inverse[aten.WrapDim(d, len(dims))] = int64(i)
		}
		return b.Call("permute", part, inverse)
	case "transpose", "t", "numpy_T", "mT", "swapaxes", "swapdims":
		x := b.Call(strings.TrimPrefix(s.op.Name(), "aten."), append([]any{part}, a.V[1:]...)...)
		return x
	case "slice":
		return b.Call("slice_scatter", base, part, at("dim"), at("start"), at("end"), at("step"))
	case "select":
		return b.Call("select_scatter", base, part, at("dim"), at("index"))
	case "diagonal":
		return b.Call("diagonal_scatter", base, part, at("offset"), at("dim1"), at("dim2"))
	case "as_strided":
		return b.Call("as_strided_scatter", base, part, part.Sizes, part.Strides, at("storage_offset"))
	case "unbind":
		return b.Call("select_scatter", base, part, at("dim"), symbolic.N(int64(s.index)))
	case "view_as_real":
		return b.Call("view_as_complex", part)
	case "view_as_complex":
		return b.Call("view_as_real", part)
	case "split", "split_with_sizes", "chunk":
		return r.scatterPart(s, base, part)
	case "expand":
		if sameMeta(base, part) {
			return part
		}
	}
	panic(&MutationError{op.Name(), "it writes through " + s.op.Name()})
}

// scatterPart puts one part of a split tensor back.
func (r *recorder) scatterPart(s viewStep, base, part *aten.Value) *aten.Value {
	dim := symbolic.N(0)
	if i := s.args.Index("dim"); i >= 0 {
		dim = s.args.Int(i)
	}
	d := aten.WrapDim(dim.Int64(), base.Dim())
	start := symbolic.N(0)
	for _, w := range r.build.CallN(strings.TrimPrefix(s.op.Name(), "aten."), append([]any{base}, s.args.V[1:]...)...)[:s.index] {
		start = start.Add(w.Sizes[d])
	}
	return r.build.Call("slice_scatter", base, part, dim, start, start.Add(part.Sizes[d]))
}

// mutate makes a call that writes to arguments functional and gives its results.
func (r *recorder) mutate(op *aten.Op, a *aten.Args) []*aten.Value {
	s := op.Signature()
	base, inPlace := strings.CutSuffix(s.Base, "_")
	if s.Base == "detach_" || s.Base == "requires_grad_" {
		return []*aten.Value{a.Tensor(0)}
	}
	if s.Base == "copy_" {
		r.set(op, a.Tensor(0), r.copied(a.Tensor(0), a.Tensor(1)))
		return []*aten.Value{a.Tensor(0)}
	}
	overload := s.Overload
	if overload == "" {
		overload = "default"
	}
	f := r.build.Reg.Lookup(s.Namespace + "." + base + "." + overload)
	if f == nil { // floor_divide_.Tensor is floor_divide
		f = r.build.Reg.Lookup(s.Namespace + "." + base + ".default")
	}
	if s.Base == "zero_" {
		f = r.build.Reg.Lookup("aten.zeros_like.default")
		full := r.call(f, a.Tensor(0))
		r.set(op, a.Tensor(0), full[0])
		return []*aten.Value{a.Tensor(0)}
	}
	if !inPlace || f == nil {
		if s.Namespace != "aten" {
			return r.autoFunctionalized(op, a)
		}
		panic(&MutationError{op.Name(), "no functional form is known"})
	}
	if f.IsView() { // transpose_ and its like: the tensor itself is another view
		v := r.invoke(f, a)[0]
		*a.Tensor(0) = *v
		return []*aten.Value{a.Tensor(0)}
	}
	outs := r.invoke(f, a)
	written := writtenArgs(op, a)
	if len(outs) < len(written) {
		panic(&MutationError{op.Name(), "its functional form gives fewer results"})
	}
	for i, v := range written {
		r.set(op, v, r.fitted(op, v, outs[i]))
	}
	if len(s.Returns) == 0 {
		return nil
	}
	return written
}

// writtenArgs lists the tensors that a call writes.
func writtenArgs(op *aten.Op, a *aten.Args) []*aten.Value {
	var out []*aten.Value
	for i, p := range op.Signature().Params {
		if !p.Type.Mutable() {
			continue
		}
		switch x := a.V[i].(type) {
		case *aten.Value:
			out = append(out, x)
		case []*aten.Value:
			out = append(out, x...)
		}
	}
	return out
}

// invoke calls the functional form on the arguments of the other, which have the same places.
func (r *recorder) invoke(f *aten.Op, a *aten.Args) []*aten.Value {
	orig := r.orig
	r.orig = nil
	defer func() { r.orig = orig }()
	args := &aten.Args{Op: f, V: slices.Clone(a.V)}
	if n := len(f.Signature().Params); n < len(args.V) {
		args.V = args.V[:n]
	}
	out, _ := r.intercept(f, args)
	return out
}

func (r *recorder) call(f *aten.Op, self *aten.Value) []*aten.Value {
	a, err := f.Bind([]any{self}, nil)
	if err != nil {
		panic(&unrecordable{err.Error()})
	}
	return r.invoke(f, a)
}

// fitted is a result in the dtype of the tensor that it replaces.
func (r *recorder) fitted(op *aten.Op, v, x *aten.Value) *aten.Value {
	if !aten.SameSizes(v.Sizes, x.Sizes) {
		panic(&MutationError{op.Name(), "the result has other sizes"})
	}
	if x.DType != v.DType {
		return r.build.Call("_to_copy", x, aten.Kw("dtype", v.DType))
	}
	return x
}

// copied is what dst holds after src was copied to it.
func (r *recorder) copied(dst, src *aten.Value) *aten.Value {
	if _, ok := src.Ref.(*ref); !ok {
		return r.build.Call("full_like", dst, src)
	}
	if op := r.build.Reg.Lookup("aten.copy.default"); op != nil {
		a, err := op.Bind([]any{dst, src}, nil)
		if err == nil {
			return r.invoke(op, a)[0]
		}
	}
	if src.DType != dst.DType {
		src = r.build.Call("_to_copy", src, aten.Kw("dtype", dst.DType))
	}
	if !aten.SameSizes(dst.Sizes, src.Sizes) {
		src = r.build.Call("expand", src, dst.Sizes)
	}
	return src
}

// share notes that a result looks at an argument's memory, as the shape function says, which knows of views that copy.
func share(a *aten.Args, v, shape *aten.Value) {
	base := shape
	for base.View != nil {
		base = base.View
	}
	for _, x := range a.V {
		if x, ok := x.(*aten.Value); ok && x == base {
			if p, ok := x.Ref.(*ref); ok {
				v.Ref.(*ref).store = p.store
			}
		}
	}
}

// markWritten notes the memory that a call writes to.
func markWritten(op *aten.Op, a *aten.Args) {
	mark := func(v *aten.Value) {
		if v == nil {
			return
		}
		if p, ok := v.Ref.(*ref); ok {
			p.store.written = true
		}
	}
	for i, p := range op.Signature().Params {
		if !p.Type.Mutable() {
			continue
		}
		switch x := a.V[i].(type) {
		case *aten.Value:
			mark(x)
		case []*aten.Value:
			for _, v := range x {
				mark(v)
			}
		}
	}
}
