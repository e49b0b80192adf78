package aten

import (
	"context"
	"fmt"

	"github.com/pt2go/pt2/internal/pool"
	"github.com/pt2go/pt2/tensor"
)

// Executor does what a [Build] asks for. The eager executor computes, the fake one only keeps shapes, a planner records.
type Executor interface {
	// View gives the value that a view's Meta describes.
	View(m *Meta) *Value
	// Alloc gives a value with fresh memory.
	Alloc(m *Meta) *Value
	// Run computes a kernel into outs, which Alloc made or which are the operator's own arguments (in-place).
	Run(op *Op, a *Args, outs []*Value)
	// Dynamic runs an operator that sizes its own outputs.
	Dynamic(op *Op, a *Args) []*Value
	// Result gives the number that an operator returns.
	Result(op *Op, a *Args) any
}

// Computing marks an executor that computes, or plans to. For it decompositions may use operators in ways that PyTorch's own do not
// serve; a graph that is saved keeps to those.
type Computing interface{ Computing() }

// Lowerer is an executor that wants some operators in another form, with the same schema and results.
type Lowerer interface{ Lower(op *Op) *Op }

// Build calls operators through an executor. Decompositions get one; it is what makes a formula run eagerly, propagate
// shapes or record instructions, whatever the executor does.
type Build struct {
	Exec Executor
	Reg  *Registry
	Ctx  context.Context // nil: no cancellation
	// Intercept, if set, sees each call of an operator that yields tensors before it is run. What it gives with true takes the
	// place of the run. It is how graphs are recorded.
	Intercept func(op *Op, a *Args) ([]*Value, bool)

	lower Lowerer // the executor, if it is one
}

// NewBuild makes a Build over the given executor with the operators of reg (nil: the built-in ones).
func NewBuild(x Executor, reg *Registry) *Build {
	if reg == nil {
		reg = Builtin()
	}
	b := &Build{Exec: x, Reg: reg}
	b.lower, _ = x.(Lowerer)
	return b
}

// op finds an operator by a short name: "add.Tensor" and "relu" are in aten, "torchvision.nms.default" is not.
func (b *Build) op(name string) *Op {
	dots := 0
	for i := range len(name) {
		if name[i] == '.' {
			dots++
		}
	}
	full := name
	switch dots {
	case 0:
		full = "aten." + name + ".default"
	case 1:
		full = "aten." + name
	}
	op := b.Reg.Lookup(full)
	if op == nil {
		panic("aten: a decomposition calls " + full + ", which is not in the registry")
	}
	return op
}

// computes reports that nobody saves what is called.
func (b *Build) computes() bool {
	_, ok := b.Exec.(Computing)
	return ok
}

// CallN calls an operator and gives all its tensor results; a Tensor[] result is spread out. Arguments are positional, in
// schema order, as the Go types of [Args] or plain Go numbers and slices of them; [Kw] values are keyword arguments.
func (b *Build) CallN(name string, args ...any) []*Value {
	op := b.op(name)
	return b.call(op, b.bind(op, args))
}

// Call is [Build.CallN] for operators with one tensor result.
func (b *Build) Call(name string, args ...any) *Value { return b.CallN(name, args...)[0] }

// CallResult calls an operator that returns a number.
func (b *Build) CallResult(name string, args ...any) any {
	op := b.op(name)
	return b.Exec.Result(op, b.bind(op, args))
}

// Effect calls an operator without results.
func (b *Build) Effect(name string, args ...any) { b.CallN(name, args...) }

// One wraps a single result, for the return of a decomposition.
func One(v *Value) []*Value { return []*Value{v} }

func (b *Build) bind(op *Op, args []any) *Args {
	var kw []KwArg
	pos := args[:0:0]
	for _, x := range args {
		if k, ok := x.(KwArg); ok {
			kw = append(kw, k)
		} else {
			pos = append(pos, x)
		}
	}
	a, err := op.Bind(pos, kw)
	if err != nil {
		panic(err)
	}
	return a
}

// Do calls an operator with bound arguments and returns its results in the form of its schema: a *Value (nil for an
// undefined tensor) or []*Value or a number for each return. It is the entry point for whoever walks a graph.
func (b *Build) Do(op *Op, a *Args) (out []any, err error) {
	defer guard(op, &err)
	r := op.schema.Returns
	if op.Result != nil {
		return []any{b.Exec.Result(op, a)}, nil
	}
	vals := b.call(op, a)
	out = make([]any, len(r))
	for i := range r {
		switch {
		case r[i].List: // at most one list among the returns: it takes what the others leave
			n := len(vals) - (len(r) - 1 - i)
			if n < 0 {
				n = 0
			}
			out[i], vals = vals[:n:n], vals[n:]
		case len(vals) == 0:
			out[i] = (*Value)(nil)
		default:
			out[i], vals = vals[0], vals[1:]
		}
	}
	return out, nil
}

// call runs one operator by whatever means its entry gives.
func (b *Build) call(op *Op, a *Args) []*Value {
	if b.Ctx != nil {
		if err := b.Ctx.Err(); err != nil {
			panic(&CanceledError{Op: op.Name(), Err: err})
		}
	}
	if b.lower != nil {
		if l := b.lower.Lower(op); l != op {
			op, a = l, &Args{Op: l, V: a.V}
		}
	}
	checkDefined(op, a)
	if b.Intercept != nil {
		if out, ok := b.Intercept(op, a); ok {
			return out
		}
	}
	if op.Tags&LazyBits == 0 {
		a = b.resolveBits(op, a)
	}
	switch {
	case op.Shape != nil:
		return b.kernel(op, a, op.Shape(a))
	case op.Decomp != nil:
		return b.decomp(op, a)
	case op.Dynamic != nil:
		return b.Exec.Dynamic(op, a)
	default:
		b.Exec.Run(op, a, nil)
		return nil
	}
}

// decomp runs a decomposition; a refusal inside it is the operator's own.
func (b *Build) decomp(op *Op, a *Args) []*Value {
	defer func() {
		if r := recover(); r != nil {
			if e, ok := r.(*Error); ok && e.Op == "" {
				e.Op = op.Name()
			}
			panic(r)
		}
	}()
	return op.Decomp(b, a)
}

func (b *Build) kernel(op *Op, a *Args, metas []Meta) []*Value {
	outs := make([]*Value, len(metas))
	run := false
	for i := range metas {
		switch m := &metas[i]; {
		case m.DType == tensor.Invalid:
		case m.View != nil:
			outs[i] = b.Exec.View(m)
		default:
			outs[i] = b.Exec.Alloc(m)
			run = true
		}
	}
	if run {
		b.Exec.Run(op, a, outs)
	}
	return outs
}

func checkDefined(op *Op, a *Args) {
	for i := range op.schema.Params {
		t := &op.schema.Params[i].Type
		if t.Base != "Tensor" || t.Opt || t.List {
			continue
		}
		if v, _ := a.V[i].(*Value); v == nil {
			Fail("Expected a Tensor for argument '%s' but got None", op.schema.Params[i].Name)
		}
	}
}

// resolveBits materializes lazily conjugated and negated arguments.
func (b *Build) resolveBits(op *Op, a *Args) *Args {
	lazy := func(v *Value) bool { return v != nil && (v.Conj || v.Neg) }
	fix := func(v *Value) *Value {
		if v.Conj {
			v = b.Call("resolve_conj", v)
		}
		if v.Neg {
			v = b.Call("resolve_neg", v)
		}
		return v
	}
	var c *Args
	set := func(i int, x any) {
		if c == nil {
			c = &Args{Op: a.Op, V: append([]any(nil), a.V...)}
		}
		c.V[i] = x
	}
	for i := range a.V {
		if op.schema.Params[i].Type.Mutable() {
			continue
		}
		switch v := a.V[i].(type) {
		case *Value:
			if lazy(v) {
				set(i, fix(v))
			}
		case []*Value:
			for j := range v {
				if lazy(v[j]) {
					w := append([]*Value(nil), v...)
					for k := j; k < len(w); k++ {
						if lazy(w[k]) {
							w[k] = fix(w[k])
						}
					}
					set(i, w)
					break
				}
			}
		}
	}
	if c != nil {
		return c
	}
	return a
}

// writeBack runs the in-place form of a functional operator: the result replaces the elements of the first argument.
func (b *Build) writeBack(op *Op, a *Args) *Value {
	self := a.Tensor(0)
	fa := &Args{Op: op, V: a.V}
	if op.Tags&Pointwise != 0 && op.Shape != nil && op.CPU != nil && !self.Conj && !self.Neg {
		fa = b.resolveBits(op, fa)
		m := op.Shape(fa)[0]
		checkInPlace(self, &m)
		if m.View == nil && m.DType == self.DType && !overlapsOthers(fa) {
			b.Exec.Run(op, fa, []*Value{self})
			return self
		}
	}
	r := b.call(op, fa)[0]
	checkInPlace(self, &r.Meta)
	b.CallN("copy_", self, r)
	return self
}

func checkInPlace(self *Value, m *Meta) {
	if !SameSizes(self.Sizes, m.Sizes) {
		Fail("output with shape %v doesn't match the broadcast shape %v", self.Sizes, m.Sizes)
	}
	if !CanCast(m.DType, self.DType) {
		Fail("result type %s can't be cast to the desired output type %s", m.DType.CPPName(), self.DType.CPPName())
	}
}

// overlapsOthers reports that another tensor argument may look at the first one's memory through a different view, so that
// a kernel writing the first one could read its own output.
func overlapsOthers(a *Args) bool {
	self := a.Tensor(0)
	for i := 1; i < len(a.V); i++ {
		v, _ := a.V[i].(*Value)
		if v == nil || v.Wrapped {
			continue
		}
		if mayShare(self, v) {
			return true
		}
	}
	return internalOverlap(self)
}

// mayShare reports that two values may look at the same memory. Of values without elements whoever made them is asked.
func mayShare(a, b *Value) bool {
	if a.T != nil && b.T != nil {
		return a.T.Storage() == b.T.Storage()
	}
	type owner interface{ SameMemory(*Value) bool }
	for _, v := range []*Value{a, b} {
		if v.T == nil {
			o, ok := v.Ref.(owner)
			other := b
			if v == b {
				other = a
			}
			return !ok || o.SameMemory(other)
		}
	}
	return true
}

// internalOverlap reports that two elements of v share memory (an expanded dimension).
func internalOverlap(v *Value) bool {
	for i, s := range v.Strides {
		if c, ok := s.Const(); ok && c == 0 {
			if n, ok := v.Sizes[i].Const(); !ok || n > 1 {
				return true
			}
		}
	}
	return false
}

// CanCast reports whether a result of type from may be stored into a tensor of type to: not from a float to an integer, not
// from a complex to a real, and not from a number to Bool.
func CanCast(from, to tensor.DType) bool {
	if from.IsComplex() && !to.IsComplex() {
		return false
	}
	if from.IsFloat() && to.IsIntegral() {
		return false
	}
	return from == tensor.Bool || to != tensor.Bool
}

// CanceledError is the end of a run whose context was done.
type CanceledError struct {
	Op  string
	Err error
}

// Error names the operator before which the run stopped.
func (e *CanceledError) Error() string { return "aten: canceled before " + e.Op + ": " + e.Err.Error() }

// Unwrap gives the context's error.
func (e *CanceledError) Unwrap() error { return e.Err }

// LimitError is a run that would need more memory than it may have. Nothing was allocated for the step that asked.
type LimitError struct{ Need, Used, Limit int64 } // in bytes

// Error gives the numbers.
func (e *LimitError) Error() string {
	return fmt.Sprintf("aten: memory limit: %d bytes more are needed, %d of at most %d are in use", e.Need, e.Used, e.Limit)
}

// Eager computes each operator at once on concrete tensors.
type Eager struct {
	Pool *pool.Pool
	Rand *Generator
	// Reserve, if set, is asked before memory is allocated; its error ends the run.
	Reserve func(bytes int64) error
}

// View implements [Executor].
func (e *Eager) View(m *Meta) *Value { return &Value{Meta: *m, T: m.Realize()} }

// Alloc implements [Executor].
func (e *Eager) Alloc(m *Meta) *Value {
	if e.Reserve != nil {
		if err := e.Reserve(m.bytes()); err != nil {
			panic(err)
		}
	}
	return &Value{Meta: *m, T: Alloc(m)}
}

// Run implements [Executor].
func (e *Eager) Run(op *Op, a *Args, outs []*Value) {
	if op.CPU == nil {
		panic("aten: " + op.Name() + " has a shape function that gives fresh memory, but no kernel")
	}
	k := Kernel{Args: a, Pool: e.Pool, Rand: e.Rand}
	if len(outs) > 0 {
		k.Out = make([]*tensor.Tensor, len(outs))
	}
	for i, v := range outs {
		if v != nil {
			if v.T.Storage().ReadOnly() {
				Fail("the operator would write to memory that is read-only (a weight mapped from the archive)")
			}
			k.Out[i] = v.T
		}
	}
	op.CPU(&k)
}

// Computing implements [Computing].
func (e *Eager) Computing() {}

// Dynamic implements [Executor].
func (e *Eager) Dynamic(op *Op, a *Args) []*Value {
	ts := op.Dynamic(&Kernel{Args: a, Pool: e.Pool, Rand: e.Rand})
	out := make([]*Value, len(ts))
	for i, t := range ts {
		if t != nil {
			out[i] = FromTensor(t)
		}
	}
	return out
}

// Result implements [Executor].
func (e *Eager) Result(op *Op, a *Args) any { return op.Result(a) }

// Fake propagates shapes without computing. Operators whose results depend on data end in a [*DataError].
type Fake struct{}

// DataError says that a result cannot be known from shapes alone.
type DataError struct{ Op string }

// Error names the operator.
func (e *DataError) Error() string { return "aten: " + e.Op + ": the result depends on data" }

// View implements [Executor].
func (Fake) View(m *Meta) *Value { return &Value{Meta: *m} }

// Alloc implements [Executor].
func (Fake) Alloc(m *Meta) *Value {
	v := &Value{Meta: *m}
	v.Offset = Ints(0)[0]
	return v
}

// Run implements [Executor].
func (Fake) Run(*Op, *Args, []*Value) {}

// Dynamic implements [Executor].
func (Fake) Dynamic(op *Op, _ *Args) []*Value { panic(&DataError{op.Name()}) }

// Result implements [Executor].
func (Fake) Result(op *Op, a *Args) any {
	if op.Tags&DataDependent != 0 {
		panic(&DataError{op.Name()})
	}
	return op.Result(a)
}

// Call runs an operator eagerly on concrete tensors and numbers; it is the convenience for tests and small programs.
func Call(name string, args ...any) (out []any, err error) {
	b := NewBuild(&Eager{}, nil)
	defer guard(nil, &err)
	op := b.op(name)
	out, err = b.Do(op, b.bind(op, args))
	return out, err
}
