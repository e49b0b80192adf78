package interp

import (
	"context"
	"errors"
	"fmt"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/plan"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// NodeError is a failure while a node ran. Err is an *aten.Error for a refusal worded like PyTorch's.
type NodeError struct {
	Node   string
	Target string
	Err    error
}

// Error names the node, then gives the cause, which for a refusal is in PyTorch's words.
func (e *NodeError) Error() string {
	return fmt.Sprintf("interp: node %s (%s): %v", e.Node, e.Target, e.Err)
}

// Unwrap gives the cause.
func (e *NodeError) Unwrap() error { return e.Err }

// runner executes code eagerly. It belongs to one call.
type runner struct {
	ctx   context.Context
	build *aten.Build
	// onValue, if set, sees every value that a node of the top graph yields.
	onValue func(v *export.Value, x any) error
	// autocast is the dtype of an enclosing wrap_with_autocast, Invalid outside.
	autocast tensor.DType
	// batching is set once a vmap has hidden a dimension of a tensor.
	batching bool
	depth    int
	meter    *meter     // nil without a memory limit
	within   *hierarchy // the module that is executed; nil outside of unflattened modules
	turns    map[*InterpreterModuleDispatcher]int
}

// frame holds the values of one run of a graph: *aten.Value, int64, float64, bool, string or nil.
type frame []any

// maxDepth bounds the nesting of subgraphs in a run.
const maxDepth = 200

// run executes k on inputs, one for each graph input, and gives its outputs.
func (r *runner) run(k *code, inputs []any) ([]any, error) {
	if len(inputs) != len(k.graph.Inputs) {
		return nil, fmt.Errorf("interp: the graph takes %d inputs, got %d", len(k.graph.Inputs), len(inputs))
	}
	if r.depth++; r.depth > maxDepth {
		return nil, fmt.Errorf("interp: subgraphs are nested more than %d deep", maxDepth)
	}
	defer func() { r.depth-- }()
	f := make(frame, k.nvals)
	for i, in := range k.graph.Inputs {
		if in.Value != nil {
			f[in.Value.ID] = inputs[i]
			r.meter.add(inputs[i])
		}
	}
	for i := range k.steps {
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
		s := &k.steps[i]
		if err := r.step(s, f); err != nil {
			if inner := (*NodeError)(nil); errors.As(err, &inner) && s.hop != nil {
				return nil, err // the inner node says more
			}
			return nil, &NodeError{Node: s.node.Name, Target: s.node.Target, Err: err}
		}
		if err := r.meter.settle(); err != nil {
			return nil, &NodeError{Node: s.node.Name, Target: s.node.Target, Err: err}
		}
		for _, id := range s.free {
			r.meter.remove(f[id])
			f[id] = nil
		}
	}
	if r.meter != nil {
		defer func() {
			for _, x := range f {
				r.meter.remove(x)
			}
		}()
	}
	out := make([]any, 0, len(k.outputs))
	for _, o := range k.outputs {
		v, err := r.resolve(o, f)
		if err != nil {
			return nil, err
		}
		if _, ok := v.(*batched); ok && r.depth == 1 {
			return nil, errors.New("interp: an output hides a dimension that a vmap mapped over")
		}
		out = append(out, v)
	}
	return out, nil
}

func (r *runner) step(s *step, f frame) error {
	if r.batching {
		return r.vmapStep(s, f)
	}
	return r.plainStep(s, f)
}

// plainStep runs a step whose tensors hide no dimension.
func (r *runner) plainStep(s *step, f frame) error {
	switch {
	case s.op != nil:
		return r.opStep(s, f)
	case s.fn != nil:
		args := make([]any, len(s.args))
		for i := range args {
			v, err := r.resolve(s.args[i], f)
			if err != nil {
				return err
			}
			if args[i], err = number(v); err != nil {
				return err
			}
		}
		v, err := s.fn(args)
		if err != nil {
			return err
		}
		return r.store(s, f, []any{v})
	default:
		out, err := s.hop(r, s, f)
		if err != nil {
			return err
		}
		return r.store(s, f, out)
	}
}

func (r *runner) opStep(s *step, f frame) error {
	a := &aten.Args{Op: s.op, V: make([]any, len(s.args))}
	for i := range s.args {
		v, err := r.argument(s.op, i, &s.args[i], f)
		if err != nil {
			return err
		}
		a.V[i] = v
	}
	if r.autocast != tensor.Invalid {
		if err := r.castArgs(s.op, a); err != nil {
			return err
		}
	}
	out, err := r.build.Do(s.op, a)
	if err != nil {
		return err
	}
	return r.store(s, f, out)
}

// argument gives argument i of an operator in the form that aten.Args wants.
func (r *runner) argument(op *aten.Op, i int, a *ref, f frame) (any, error) {
	switch a.kind {
	case constRef:
		return a.val, nil
	case valueRef:
		if v, ok := f[a.id].(*aten.Value); ok && op.Signature().Params[i].Type.Base == "Tensor" && !op.Signature().Params[i].Type.List {
			return v, nil
		}
	}
	v, err := r.resolve(*a, f)
	if err != nil {
		return nil, err
	}
	return op.ConvertArg(i, v)
}

// resolve gives the value of a reference. Lists of tensors become []*aten.Value, other lists []any.
func (r *runner) resolve(a ref, f frame) (any, error) {
	switch a.kind {
	case constRef:
		return a.val, nil
	case valueRef:
		return f[a.id], nil
	}
	list := make([]any, len(a.list))
	tensors := a.kind == tensorRef
	for i, x := range a.list {
		v, err := r.resolve(x, f)
		if err != nil {
			return nil, err
		}
		list[i] = v
		if _, ok := v.(*aten.Value); !ok && v != nil {
			tensors = false
		}
	}
	if !tensors {
		return list, nil
	}
	out := make([]*aten.Value, len(list))
	for i, v := range list {
		out[i], _ = v.(*aten.Value)
	}
	return out, nil
}

// store assigns results to the node's outputs.
func (r *runner) store(s *step, f frame, results []any) error {
	outs := s.node.Outputs
	if len(outs) < len(results) {
		results = tensorsOnly(results, len(outs))
	}
	for i, o := range outs {
		var x any
		if i < len(results) {
			x = results[i]
		}
		if err := r.assign(f, o, x); err != nil {
			return err
		}
	}
	return nil
}

// tensorsOnly serves PyTorch 2.2, whose archives leave out integer results: what remains are the tensors.
func tensorsOnly(results []any, n int) []any {
	if n == 0 {
		return nil
	}
	var out []any
	for _, x := range results {
		if v, ok := x.(*aten.Value); ok && v != nil {
			out = append(out, x)
		}
	}
	if len(out) < n {
		return results[:n]
	}
	return out
}

func (r *runner) assign(f frame, o export.Argument, x any) error {
	switch o := o.(type) {
	case nil, export.Unused:
		return nil
	case *export.Value:
		if o.Kind == export.PytreeKind {
			f[o.ID] = x
			return nil
		}
		switch v := x.(type) {
		case []*aten.Value: // a tuple of one that the archive records as a bare tensor
			if len(v) != 1 {
				return fmt.Errorf("%d results for the one output %s", len(v), o.Name)
			}
			f[o.ID] = v[0]
		case *aten.Value:
			if v == nil {
				f[o.ID] = nil
				return nil
			}
			if o.Kind != export.TensorKind && o.Kind != export.TokenKind {
				n, err := number(v)
				if err != nil {
					return err
				}
				f[o.ID] = n
				break
			}
			f[o.ID] = v
		default:
			n, err := number(x)
			if err != nil {
				return err
			}
			f[o.ID] = n
			if o.Kind == export.TensorKind {
				if s, ok := n.(int64); ok {
					f[o.ID] = aten.WrapScalar(aten.IntS(s))
				}
			}
		}
		r.meter.add(f[o.ID])
		if r.onValue != nil && r.depth == 1 {
			return r.onValue(o, f[o.ID])
		}
		return nil
	case []*export.Value:
		list, ok := x.([]*aten.Value)
		if !ok {
			if v, one := x.(*aten.Value); one && len(o) == 1 {
				list, ok = []*aten.Value{v}, true
			}
		}
		if !ok {
			return fmt.Errorf("got %T for a list of %d outputs", x, len(o))
		}
		if len(list) != len(o) {
			return fmt.Errorf("%d results for %d outputs", len(list), len(o))
		}
		for i, v := range o {
			if v == nil {
				continue
			}
			if err := r.assign(f, v, list[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("unknown kind of output %T", o)
}

// number gives the Python number behind v: a 0-d tensor is read.
func number(v any) (any, error) {
	switch v := v.(type) {
	case int:
		return int64(v), nil
	case symbolic.Int:
		if err := v.Err(); err != nil {
			return nil, err
		}
		return v.Int64(), nil
	case aten.Scalar:
		switch v.Kind {
		case aten.BoolScalar:
			return v.Bool(), nil
		case aten.IntScalar:
			return v.Int64(), nil
		case aten.FloatScalar:
			return v.Float64(), nil
		}
		return v.Complex(), nil
	case *aten.Value:
		if v.T == nil {
			return nil, &plan.Unplannable{Why: "control flow depends on data"}
		}
		s, err := aten.Item(v.T)
		if err != nil {
			return nil, err
		}
		return number(s)
	}
	return v, nil
}
