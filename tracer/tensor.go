package tracer

import (
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/export/passes"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// Tensor is a tensor on its way through a model: elements in an eager run, dtype and sizes while the model is exported. It belongs to
// one run and is not safe for concurrent use.
type Tensor struct {
	v       *aten.Value
	s       *session
	example *tensor.Tensor // what [Example] was given
}

// session is one run of a model.
type session struct {
	build *aten.Build
	rec   *passes.Recorder // nil in an eager run
	state map[any]*Tensor  // lifted parameters and buffers
	names map[any]string
	stack []frame
	calls map[string]int

	// Of functions that control flow operators call:
	parent, inner *session                               // the session around, and that of a function under way
	autocast      tensor.DType                           // within Autocast, else Invalid
	noGrad        bool                                   // within NoGrad
	ended         bool                                   // the function has returned
	key           func(outer *export.Value, text string) // orders what the function takes from outside
	fqns          map[any]string                         // the order of parameters and buffers
	env           *env                                   // of an export

	preserve []string      // paths of modules whose calls are noted
	noted    []*moduleCall // these calls, in the order in which they began

	origin   origin
	assigned map[*Buffer]*Tensor // what buffers were before they were assigned
	order    []*Buffer           // in which they were first assigned
}

// frame is a module call under way.
type frame struct {
	key, path, kind string
	n               int // earlier calls of the module
}

// DType is the element type.
func (t *Tensor) DType() tensor.DType { return t.v.DType }

// Dim is the number of dimensions.
func (t *Tensor) Dim() int { return t.v.Dim() }

// Size is the size of dimension d, which may be negative. While a model is exported it may be symbolic: hand it on to operators.
func (t *Tensor) Size(d int) symbolic.Int { return t.v.Size(d) }

// Sizes are those of all dimensions.
func (t *Tensor) Sizes() []symbolic.Int { return t.v.Sizes }

// Value gives the elements in an eager run, nil while a model is exported.
func (t *Tensor) Value() *tensor.Tensor { return t.v.T }

// Of is a parameter or buffer as a tensor of the run that t belongs to.
func (t *Tensor) Of(o Operand) *Tensor {
	s := t.s.now()
	return &Tensor{v: s.lower(o).(*aten.Value), s: s}
}

// Op calls an operator of ATen with t as its first argument, "add.Tensor" or "relu", and gives its one result. Arguments are *Tensor,
// *Parameter, *Buffer, lists of tensors, Go numbers, slices and strings; [aten.Kw] makes keyword arguments. It refuses input by
// panicking, which [Run] and [Export] turn into errors.
func (t *Tensor) Op(name string, args ...any) *Tensor { return t.Ops(name, args...)[0] }

// Ops is [Tensor.Op] for operators with several results.
func (t *Tensor) Ops(name string, args ...any) []*Tensor {
	return t.s.ops(name, append([]any{t}, args...))
}

// Operand is what operators take for a tensor: a *[Tensor], *[Parameter] or *[Buffer].
type Operand interface{ operand() }

func (*Tensor) operand()    {}
func (*Parameter) operand() {}
func (*Buffer) operand()    {}

// Operands is a list of tensors as one argument of an operator.
type Operands []Operand

// Invoke calls an operator of ATen; the run is that of the first tensor among the arguments. See [Tensor.Op].
func Invoke(name string, args ...any) []*Tensor {
	for _, a := range args {
		switch a := a.(type) {
		case *Tensor:
			if a != nil {
				return a.s.ops(name, args)
			}
		case Operands:
			for _, o := range a {
				if t, ok := o.(*Tensor); ok && t != nil {
					return t.s.ops(name, args)
				}
			}
		}
	}
	panic(&UserError{Kind: InvalidInput, Msg: name + ": one of the arguments must be a tensor of the run; x.Of(parameter) makes one of a parameter or buffer"})
}

// On calls an operator whose first argument is not t: all arguments are given. t only tells the run.
func (t *Tensor) On(name string, args ...any) *Tensor { return t.OnN(name, args...)[0] }

// OnN is [Tensor.On] for operators with several results.
func (t *Tensor) OnN(name string, args ...any) []*Tensor { return t.s.ops(name, args) }

// Add adds a number to a buffer in place, such as a count of calls. t only tells the run.
func (t *Tensor) Add(b *Buffer, n int64) { t.s.ops("add_.Tensor", []any{b, n}) }

// Assign makes v the value of a buffer from here on, as self.buffer = v in PyTorch: at the end of the call it is copied into the buffer,
// whose sizes and dtype it must have.
func (t *Tensor) Assign(b *Buffer, v Operand) {
	s := t.s
	if s.rec != nil && s != s.now() || s.parent != nil {
		panic(&UserError{Kind: DynamicControlFlow, Msg: "a buffer is assigned inside of a control flow operator's function: return the new value, and assign it outside"})
	}
	old := s.lifted(b, b.T)
	x := &Tensor{v: s.lower(v).(*aten.Value), s: s}
	if x.DType() != b.T.DType() || len(x.Sizes()) != b.T.Dim() {
		panic(invalid("a buffer of dtype %v and sizes %v is assigned a tensor of dtype %v and sizes %v", b.T.DType(), b.T.Sizes(), x.DType(), x.Sizes()))
	}
	if s.assigned == nil {
		s.assigned = map[*Buffer]*Tensor{}
	}
	if s.assigned[b] == nil {
		s.order = append(s.order, b)
		s.assigned[b] = &Tensor{v: old, s: s}
	}
	s.state[b] = x
}

// settle copies assigned values into their buffers at the end of a call.
func (s *session) settle() {
	for _, b := range s.order {
		old, now := s.assigned[b], s.state[b]
		s.state[b] = old
		if old.v == now.v {
			continue
		}
		out := s.ops("copy_", []any{old, now})[0]
		if s.rec != nil {
			s.rec.Rename(out.v, "copy__default")
		}
	}
}

// Cat joins tensors along a dimension.
func Cat(dim int, x ...*Tensor) *Tensor { return x[0].s.ops("cat", []any{x, dim})[0] }

// Stack joins tensors along a new dimension.
func Stack(dim int, x ...*Tensor) *Tensor { return x[0].s.ops("stack", []any{x, dim})[0] }

func (s *session) ops(name string, args []any) []*Tensor {
	s = s.now()
	name = s.operator(name)
	for i, a := range args {
		args[i] = s.lower(a)
	}
	if s.rec != nil {
		s.rec.SetMetadata(s.metadata(name))
	}
	draft := s.env.drafting()
	if draft != nil {
		draft.run(name, args)
	}
	outs := s.build.CallN(name, args...)
	if draft != nil {
		draft.note(outs)
	}
	res := make([]*Tensor, len(outs))
	for i, v := range outs {
		if v != nil {
			res[i] = &Tensor{v: v, s: s}
		}
	}
	return res
}

// lower gives an argument in the form that operators take.
func (s *session) lower(a any) any {
	switch a := a.(type) {
	case *Tensor:
		if a == nil {
			return nil
		}
		if a.s != s {
			if s.within(a.s) {
				return s.captured(a)
			}
			panic(&UserError{Kind: InvalidInput, Msg: "a tensor of another run is used; a model must not keep tensors from one call to the next"})
		}
		return a.v
	case *Parameter:
		if a == nil {
			return nil
		}
		return s.lifted(a, a.T)
	case *Buffer:
		if a == nil {
			return nil
		}
		return s.lifted(a, a.T)
	case []*Tensor:
		out := make([]*aten.Value, len(a))
		for i, t := range a {
			out[i], _ = s.lower(t).(*aten.Value)
		}
		return out
	case Operands:
		out := make([]*aten.Value, len(a))
		for i, t := range a {
			out[i], _ = s.lower(t).(*aten.Value)
		}
		return out
	case Float:
		return a.scalar()
	case Bool:
		return a.Value()
	case aten.KwArg:
		return aten.Kw(a.Name, s.lower(a.Value))
	case *tensor.Tensor:
		if s.rec != nil {
			panic(&UserError{Kind: InvalidInput, Msg: "a tensor that is neither input, parameter nor buffer is used; make it a *tracer.Buffer of the model"})
		}
	}
	return a
}

// lifted is a parameter or buffer as an operand.
func (s *session) lifted(key any, t *tensor.Tensor) *aten.Value {
	if x := s.state[key]; x != nil {
		return x.v
	}
	if s.parent != nil {
		return s.lift(s.parent.lifted(key, t), s.fqns[key])
	}
	if s.rec != nil {
		panic(&UserError{Kind: InvalidInput, Msg: fmt.Sprintf("a %T is used that no exported field of the model holds", key)})
	}
	x := &Tensor{v: aten.FromTensor(t), s: s}
	s.state[key] = x
	return x.v
}

// Call calls a sub-module, so that exported programs know which nodes are its own.
func Call(m Module, x ...*Tensor) []*Tensor {
	if len(x) == 0 {
		panic(&UserError{Kind: InvalidInput, Msg: "a module is called without tensors"})
	}
	s := x[0].s.now()
	s.enter(m)
	defer s.leave()
	c := s.begin(x)
	out := m.Forward(x...)
	c.end(out)
	return out
}

// Within calls the code of a sub-module that is no [Module], so that exported programs know which nodes are its own: body calls its
// Forward. x tells the run.
func Within(x *Tensor, m any, body func()) {
	s := x.s.now()
	s.enter(m)
	defer s.leave()
	body()
}

// Call1 is [Call] for a module with one result.
func Call1(m Module, x ...*Tensor) *Tensor { return Call(m, x...)[0] }

func (s *session) enter(m any) {
	path := ""
	if reflect.TypeOf(m).Comparable() {
		path = s.names[m]
	}
	n := s.calls[path]
	s.calls[path]++
	key := "L__self__"
	if path != "" {
		key += path
	}
	if n > 0 && path != "" {
		key = fmt.Sprintf("%s@%d", key, n)
	}
	s.stack = append(s.stack, frame{key, path, typeName(m), n})
}

func (s *session) leave() { s.stack = s.stack[:len(s.stack)-1] }

// typeName is the type of a module as metadata has it.
func typeName(m any) string {
	if t, ok := m.(Typed); ok {
		return t.TypeName()
	}
	t := reflect.TypeOf(m)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return strings.ReplaceAll(t.PkgPath(), "/", ".") + "." + t.Name()
}

// ownPackages are those whose lines say nothing of the user's code.
var ownPackages = []string{"github.com/pt2go/pt2/tracer.", "github.com/pt2go/pt2/tracer/nn.", "github.com/pt2go/pt2/tracer/functional.", "github.com/pt2go/pt2/symbolic.", "github.com/pt2go/pt2/export/", "github.com/pt2go/pt2/aten.", "runtime.", "reflect."}

// caller is the innermost line of the user's code.
func caller() (file string, line int, fn string) {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		own := slices.ContainsFunc(ownPackages, func(p string) bool { return strings.HasPrefix(f.Function, p) })
		if f.Function != "" && !own {
			name := f.Function[strings.LastIndexByte(f.Function, '.')+1:]
			return filepath.Base(f.File), f.Line, name
		}
		if !more {
			return "", 0, ""
		}
	}
}
