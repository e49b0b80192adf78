package tracer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
)

// branch is the recording of a function that a control flow operator calls: a session of its own, whose inputs are whatever it uses of
// the session around.
type branch struct {
	s    *session
	outs []*Tensor
	keys map[*export.Value]string // of lifted values: what orders them
}

// now is the session that records calls on tensors of s: the innermost function of control flow under way.
func (s *session) now() *session {
	if s.ended {
		panic(&UserError{Kind: DynamicControlFlow, Msg: "a tensor made inside of a control flow operator's function is used outside of it: return it from the function"})
	}
	for s.inner != nil {
		s = s.inner
	}
	return s
}

// record runs fn as the function of a control flow operator. Operands are the tensors of s that it is called with; carried gives
// instead tensors like which it gets inputs of its own.
func (s *session) record(fn func(x ...*Tensor) []*Tensor, operands, carried []*Tensor) *branch {
	rec := s.rec.Inner()
	in := &session{build: rec.Build(), rec: rec, parent: s, state: map[any]*Tensor{}, names: s.names, calls: map[string]int{}, fqns: s.fqns, noGrad: s.noGrad}
	in.cast(s.autocast)
	b := &branch{s: in, keys: map[*export.Value]string{}}
	in.key = func(outer *export.Value, key string) {
		if _, ok := b.keys[outer]; !ok {
			b.keys[outer] = key
		}
	}
	args := slices.Clone(operands)
	for i, x := range operands {
		in.key(s.rec.Node(s.lower(x).(*aten.Value)), fmt.Sprintf("l_args_3_%d_", i))
	}
	for i, x := range carried {
		v := rec.Input(fmt.Sprintf("arg%d_1", i), *s.rec.Node(x.v).Tensor)
		args = append(args, &Tensor{v: v, s: in})
	}
	s.inner = in
	defer func() { s.inner, in.ended = nil, true }()
	b.outs = fn(args...)
	for i, x := range b.outs {
		if x == nil {
			panic(&UserError{Kind: DynamicControlFlow, Msg: fmt.Sprintf("result %d of a control flow operator's function is nil", i)})
		}
		in.lower(x)
	}
	return b
}

// lift gives this session's input for a value of the session around.
func (s *session) lift(v *aten.Value, key string) *aten.Value {
	s.key(s.parent.rec.Node(v), key)
	return s.rec.Lift(v)
}

// captured gives this session's value for a tensor of a session further out.
func (s *session) captured(t *Tensor) *aten.Value {
	v := t.v
	if t.s != s.parent {
		v = s.parent.captured(t)
	}
	return s.lift(v, fmt.Sprintf("l_args_1_closure_1_cell_contents_%06d", len(s.rec.Lifted())))
}

// within reports that o is a session around s.
func (s *session) within(o *session) bool {
	for p := s.parent; p != nil; p = p.parent {
		if p == o {
			return true
		}
	}
	return false
}

// stateKey orders a parameter or buffer among what a function takes from outside, as PyTorch's names of these do.
func stateKey(fqn string, parameter bool) string {
	parts := strings.Split(fqn, ".")
	key := "l_args_1_closure_0_cell_contents"
	for _, m := range parts[:len(parts)-1] {
		key += "_modules_" + m
	}
	if parameter {
		return key + "_parameters_" + parts[len(parts)-1] + "_"
	}
	return key + "_buffers_" + parts[len(parts)-1] + "_"
}

// merge orders what two functions take from outside, as PyTorch does: what both take, then what only one does, each sorted by name.
func merge(a, b *branch) []*export.Value {
	var both, first, second []*export.Value
	for _, v := range a.s.rec.Lifted() {
		if b.s.rec.Inside(v) != nil {
			both = append(both, v)
		} else {
			first = append(first, v)
		}
	}
	for _, v := range b.s.rec.Lifted() {
		if a.s.rec.Inside(v) == nil {
			second = append(second, v)
		}
	}
	key := func(v *export.Value) string {
		if k, ok := a.keys[v]; ok {
			return k
		}
		if k, ok := b.keys[v]; ok {
			return k
		}
		return "l_args_1_closure_1_cell_contents" // a size
	}
	for _, list := range [][]*export.Value{both, first, second} {
		slices.SortStableFunc(list, func(x, y *export.Value) int { return strings.Compare(key(x), key(y)) })
	}
	return slices.Concat(both, first, second)
}

// check refuses what PyTorch's control flow does not take: functions that write to inputs or return them.
func (b *branch) check(op string, own []*export.Value) {
	inputs := slices.Clone(own)
	for _, v := range b.s.rec.Lifted() {
		inputs = append(inputs, b.s.rec.Inside(v))
	}
	for _, in := range inputs {
		if in.Kind != export.TensorKind {
			continue
		}
		if b.s.rec.Written(in) {
			panic(&UserError{Kind: DynamicControlFlow, Msg: fmt.Sprintf("Encountered input mutation during higher order op tracing: Higher order ops do not support input mutation. Found in %s, which writes to %s; "+
				"return the new value from the function, and write it outside", op, in.Name)})
		}
		for i, x := range b.outs {
			if b.s.rec.Aliases(b.s.lower(x).(*aten.Value), in) {
				panic(&UserError{Kind: DynamicControlFlow, Msg: fmt.Sprintf("Encountered aliasing during higher order op tracing: Higher order ops do not support aliasing. Found in %s, whose result %d shares the memory of %s; "+
					"return a clone: x.Op(\"clone\")", op, i, in.Name)})
			}
		}
	}
	for i, x := range b.outs {
		for j, y := range b.outs[:i] {
			if b.s.rec.SharesMemory(b.s.lower(x).(*aten.Value), b.s.lower(y).(*aten.Value)) {
				panic(&UserError{Kind: DynamicControlFlow, Msg: fmt.Sprintf("Encountered aliasing during higher order op tracing: Higher order ops do not support aliasing. Found in %s, whose results %d and %d share memory; "+
					"return a clone: x.Op(\"clone\")", op, j, i)})
			}
		}
	}
}

// finish gives the function's graph.
func (b *branch) finish(prefix string, lifted []*export.Value, name func(i int) string, single bool) *export.Subgraph {
	outs := make([]export.Argument, len(b.outs))
	for i, x := range b.outs {
		outs[i] = b.s.rec.Node(b.s.lower(x).(*aten.Value))
	}
	return &export.Subgraph{Name: b.s.parent.rec.SubgraphName(prefix), Graph: b.s.rec.FinishInner(lifted, name, outs, single)}
}

// values are the results as values of the function's graph.
func (b *branch) values() []*aten.Value {
	out := make([]*aten.Value, len(b.outs))
	for i, x := range b.outs {
		out[i] = b.s.lower(x).(*aten.Value)
	}
	return out
}

// nodes are the graph's values of tensors of s.
func (s *session) nodes(x []*Tensor) []*export.Value {
	out := make([]*export.Value, len(x))
	for i, t := range x {
		out[i] = s.rec.Node(s.lower(t).(*aten.Value))
	}
	return out
}

// operandList is a list of outer values as an argument.
func operandList(v []*export.Value) export.Argument {
	symbols := len(v) > 0
	for _, x := range v {
		symbols = symbols && x.Kind == export.SymIntKind
	}
	if !symbols {
		return slices.Concat([]*export.Value{}, v)
	}
	list := make([]any, len(v))
	for i, x := range v {
		list[i] = x
	}
	return list
}

// higherOrder records the operator's call.
func (s *session) higherOrder(name, class string, results []*aten.Value, args ...export.Argument) []*Tensor {
	m := s.metadata(name)
	m["torch_fn"] = name + "_1;" + class + "." + name
	s.rec.SetMetadata(m)
	outs := s.rec.HigherOrder("torch.ops.higher_order."+name, results, args...)
	res := make([]*Tensor, len(outs))
	for i, v := range outs {
		res[i] = &Tensor{v: v, s: s}
	}
	return res
}
