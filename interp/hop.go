package interp

import (
	"fmt"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export/passes"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// hopFunc runs a higher-order operator and gives the results for the node's outputs.
type hopFunc func(r *runner, s *step, f frame) ([]any, error)

// hops are the higher-order operators.
var hops map[string]hopFunc

func init() { // the table refers to functions that look into it
	hops = map[string]hopFunc{
		"torch.ops.higher_order.cond":                       runCond,
		"torch.ops.higher_order.while_loop":                 runWhile,
		"torch.ops.higher_order.while_loop_stack_output":    runWhileStack,
		"torch.ops.higher_order.map_impl":                   runMap,
		"torch.ops.higher_order.scan":                       runScan,
		"torch.ops.higher_order.associative_scan":           runAssociativeScan,
		"torch.ops.higher_order.wrap_with_set_grad_enabled": graphAt(1),
		"torch.ops.higher_order.wrap_with_autocast":         runAutocast,
		"torch.ops.higher_order.wrap":                       graphAt(0),
		"torch.ops.higher_order.wrap_activation_checkpoint": graphAt(0),
		"torch.ops.higher_order.tag_activation_checkpoint":  graphAt(0),
		"torch.ops.higher_order.checkpoint":                 graphAt(0),
		"torch.ops.higher_order.foreach_map":                graphAt(0),
		"torch.ops.higher_order.invoke_quant":               graphAt(0),
		"torch.ops.higher_order.invoke_quant_packed":        graphAt(0),
		"torch.ops.higher_order.flex_gemm":                  runFlexGemm,
		"torch.ops.higher_order.strict_mode":                runListed,
		"torch.ops.higher_order.hints_wrapper":              runListed,
		"torch.ops.higher_order.invoke_subgraph":            runInvoke,
		"torch.ops.higher_order.with_effects":               runWithEffects,
		"torch.ops.higher_order.out_dtype":                  runOutDtype,
		"torch.ops.higher_order.auto_functionalized":        runAutoFunctionalized,
		"torch.ops.higher_order.auto_functionalized_v2":     runAutoFunctionalizedV2,
		"torch.ops.higher_order.print":                      runPrint,
		"_operator.getitem":                                 runGetItem,
		passes.TreeFlattenSpec:                              runTreeFlattenSpec,
		passes.TreeUnflatten:                                runTreeUnflatten,

		"torch._functorch.predispatch._add_batch_dim":          runAddBatchDim,
		"torch._functorch.predispatch._remove_batch_dim":       runRemoveBatchDim,
		"torch._functorch.predispatch._vmap_increment_nesting": runNesting,
		"torch._functorch.predispatch._vmap_decrement_nesting": runNesting,
	}
}

// IsHigherOrder reports a graph target that is a higher-order operator this package runs.
func IsHigherOrder(target string) bool { _, ok := hops[target]; return ok }

// values resolves all positional arguments.
func (r *runner) values(s *step, f frame) ([]any, error) {
	out := make([]any, len(s.args))
	for i := range s.args {
		v, err := r.resolve(s.args[i], f)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (s *step) need(n int, vals []any) error {
	if len(vals) < n {
		return fmt.Errorf("got %d arguments, want at least %d", len(vals), n)
	}
	return nil
}

func asCode(v any) (*code, error) {
	k, ok := v.(*code)
	if !ok {
		return nil, fmt.Errorf("want a subgraph, got %T", v)
	}
	return k, nil
}

// asList spreads a list argument.
func asList(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	case []*aten.Value:
		out := make([]any, len(v))
		for i := range v {
			out[i] = v[i]
		}
		return out
	case []int64:
		out := make([]any, len(v))
		for i := range v {
			out[i] = v[i]
		}
		return out
	}
	return []any{v}
}

// graphAt runs the subgraph that is argument i on the arguments after it.
func graphAt(i int) hopFunc {
	return func(r *runner, s *step, f frame) ([]any, error) {
		v, err := r.values(s, f)
		if err != nil {
			return nil, err
		}
		if err := s.need(i+1, v); err != nil {
			return nil, err
		}
		k, err := asCode(v[i])
		if err != nil {
			return nil, err
		}
		return r.run(k, v[i+1:])
	}
}

func runCond(r *runner, s *step, f frame) ([]any, error) {
	v, err := r.values(s, f)
	if err != nil {
		return nil, err
	}
	if err := s.need(4, v); err != nil {
		return nil, err
	}
	pred, err := number(v[0])
	if err != nil {
		return nil, err
	}
	branch := v[2]
	if truth(pred) {
		branch = v[1]
	}
	k, err := asCode(branch)
	if err != nil {
		return nil, err
	}
	return r.run(k, asList(v[3]))
}

// loop is the common part of the two while loops; each gets the carried values after every iteration.
func (r *runner) loop(s *step, f frame, each func(carry []any)) ([]any, error) {
	v, err := r.values(s, f)
	if err != nil {
		return nil, err
	}
	if err := s.need(3, v); err != nil {
		return nil, err
	}
	cond, err := asCode(v[0])
	if err != nil {
		return nil, err
	}
	body, err := asCode(v[1])
	if err != nil {
		return nil, err
	}
	carry := asList(v[2])
	var extra []any
	if len(v) > 3 {
		extra = asList(v[3])
	}
	for {
		c, err := r.run(cond, append(append([]any{}, carry...), extra...))
		if err != nil {
			return nil, err
		}
		if len(c) != 1 {
			return nil, fmt.Errorf("the condition returns %d values, want 1", len(c))
		}
		more, err := number(c[0])
		if err != nil {
			return nil, err
		}
		if !truth(more) {
			return carry, nil
		}
		next, err := r.run(body, append(append([]any{}, carry...), extra...))
		if err != nil {
			return nil, err
		}
		if len(next) != len(carry) {
			return nil, fmt.Errorf("the body returns %d values for %d carried ones", len(next), len(carry))
		}
		carry = next
		if each != nil {
			each(carry)
		}
	}
}

func runWhile(r *runner, s *step, f frame) ([]any, error) { return r.loop(s, f, nil) }

func runWhileStack(r *runner, s *step, f frame) ([]any, error) {
	var steps [][]any
	last, err := r.loop(s, f, func(c []any) { steps = append(steps, c) })
	if err != nil {
		return nil, err
	}
	return r.stackAll(steps, last)
}

// stackAll stacks column by column; with no rows a column is the shape of like with a leading 0.
func (r *runner) stackAll(rows [][]any, like []any) ([]any, error) {
	out := make([]any, len(like))
	for j := range like {
		var col []*aten.Value
		for _, row := range rows {
			v, err := r.tensorOf(row[j])
			if err != nil {
				return nil, err
			}
			col = append(col, v)
		}
		if len(col) == 0 {
			v, err := r.tensorOf(like[j])
			if err != nil {
				return nil, err
			}
			out[j] = aten.FromTensor(tensor.New(v.DType, append([]int64{0}, aten.Int64s(v.Sizes)...)...))
			continue
		}
		v, err := r.do("aten.stack.default", col)
		if err != nil {
			return nil, err
		}
		out[j] = v
	}
	return out, nil
}

func (r *runner) tensorOf(x any) (*aten.Value, error) {
	switch x := x.(type) {
	case *aten.Value:
		if x != nil {
			return x, nil
		}
	case int64:
		return aten.WrapScalar(aten.IntS(x)), nil
	case float64:
		return aten.WrapScalar(aten.FloatS(x)), nil
	case bool:
		return aten.WrapScalar(aten.BoolS(x)), nil
	}
	return nil, fmt.Errorf("want a tensor, got %T", x)
}

// slice gives x[i] of every tensor in xs.
func (r *runner) slice(xs []any, i int64) ([]any, error) {
	out := make([]any, len(xs))
	for j, x := range xs {
		v, err := r.tensorOf(x)
		if err != nil {
			return nil, err
		}
		if out[j], err = r.do("aten.select.int", v, int64(0), i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// length is the common size of dimension 0.
func (r *runner) length(xs []any) (int64, error) {
	if len(xs) == 0 {
		return 0, fmt.Errorf("no tensors to go over")
	}
	n := int64(-1)
	for _, x := range xs {
		v, err := r.tensorOf(x)
		if err != nil {
			return 0, err
		}
		if v.Dim() == 0 {
			return 0, fmt.Errorf("a 0-d tensor cannot be gone over")
		}
		m := v.Sizes[0].Int64()
		if n >= 0 && m != n {
			return 0, fmt.Errorf("leading dimensions differ: %d and %d", n, m)
		}
		n = m
	}
	return n, nil
}

func runMap(r *runner, s *step, f frame) ([]any, error) {
	v, err := r.values(s, f)
	if err != nil {
		return nil, err
	}
	if err := s.need(2, v); err != nil {
		return nil, err
	}
	k, err := asCode(v[0])
	if err != nil {
		return nil, err
	}
	xs := asList(v[1])
	var extra []any
	if len(v) > 2 {
		extra = asList(v[2])
	}
	n, err := r.length(xs)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, fmt.Errorf("map over a leading dimension of size 0")
	}
	var rows [][]any
	for i := range n {
		in, err := r.slice(xs, i)
		if err != nil {
			return nil, err
		}
		row, err := r.run(k, append(in, extra...))
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return r.stackAll(rows, rows[0])
}

func runScan(r *runner, s *step, f frame) ([]any, error) {
	v, err := r.values(s, f)
	if err != nil {
		return nil, err
	}
	if err := s.need(3, v); err != nil {
		return nil, err
	}
	k, err := asCode(v[0])
	if err != nil {
		return nil, err
	}
	carry, xs := asList(v[1]), asList(v[2])
	var extra []any
	if len(v) > 3 {
		extra = asList(v[3])
	}
	n, err := r.length(xs)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, fmt.Errorf("scan over a leading dimension of size 0")
	}
	var rows [][]any
	nc := len(carry)
	for i := range n {
		x, err := r.slice(xs, i)
		if err != nil {
			return nil, err
		}
		out, err := r.run(k, append(append(append([]any{}, carry...), x...), extra...))
		if err != nil {
			return nil, err
		}
		if len(out) < nc {
			return nil, fmt.Errorf("the combine function returns %d values for %d carried ones", len(out), nc)
		}
		carry = out[:nc]
		rows = append(rows, out[nc:])
	}
	ys, err := r.stackAll(rows, rows[0])
	return append(append([]any{}, carry...), ys...), err
}

// runAssociativeScan computes the inclusive scan from left to right; an associative function gives the same either way.
func runAssociativeScan(r *runner, s *step, f frame) ([]any, error) {
	v, err := r.values(s, f)
	if err != nil {
		return nil, err
	}
	if err := s.need(2, v); err != nil {
		return nil, err
	}
	k, err := asCode(v[0])
	if err != nil {
		return nil, err
	}
	xs := asList(v[1])
	var extra []any
	if len(v) > 2 {
		extra = asList(v[2])
	}
	n, err := r.length(xs)
	if err != nil || n == 0 {
		return xs, err
	}
	acc, err := r.slice(xs, 0)
	if err != nil {
		return nil, err
	}
	rows := [][]any{acc}
	for i := int64(1); i < n; i++ {
		x, err := r.slice(xs, i)
		if err != nil {
			return nil, err
		}
		if acc, err = r.run(k, append(append(append([]any{}, acc...), x...), extra...)); err != nil {
			return nil, err
		}
		rows = append(rows, acc)
	}
	return r.stackAll(rows, rows[0])
}

// runAutocast: (device type, dtype, enabled, cache enabled, graph, operands...).
func runAutocast(r *runner, s *step, f frame) ([]any, error) {
	v, err := r.values(s, f)
	if err != nil {
		return nil, err
	}
	if err := s.need(5, v); err != nil {
		return nil, err
	}
	k, err := asCode(v[4])
	if err != nil {
		return nil, err
	}
	old := r.autocast
	defer func() { r.autocast = old }()
	if dev, _ := v[0].(string); dev == "cpu" || dev == "" {
		r.autocast = tensor.Invalid
		if on, ok := v[2].(bool); !ok || on {
			r.autocast = tensor.BFloat16
			if d, ok := v[1].(tensor.DType); ok {
				r.autocast = d
			}
		}
	}
	return r.run(k, v[5:])
}

// runListed runs (graph, operands list, ...).
func runListed(r *runner, s *step, f frame) ([]any, error) {
	v, err := r.values(s, f)
	if err != nil {
		return nil, err
	}
	if err := s.need(2, v); err != nil {
		return nil, err
	}
	k, err := asCode(v[0])
	if err != nil {
		return nil, err
	}
	return r.run(k, asList(v[1]))
}

// runFlexGemm: (product operator, graph of the product and its epilogue, operands list, options...).
func runFlexGemm(r *runner, s *step, f frame) ([]any, error) {
	v, err := r.values(s, f)
	if err != nil {
		return nil, err
	}
	if err := s.need(3, v); err != nil {
		return nil, err
	}
	k, err := asCode(v[1])
	if err != nil {
		return nil, err
	}
	return r.run(k, asList(v[2]))
}

// runInvoke: (graph, identifier, operands...).
func runInvoke(r *runner, s *step, f frame) ([]any, error) { return graphAtSkip(r, s, f, 0, 2) }

func graphAtSkip(r *runner, s *step, f frame, graph, from int) ([]any, error) {
	v, err := r.values(s, f)
	if err != nil {
		return nil, err
	}
	if err := s.need(from, v); err != nil {
		return nil, err
	}
	k, err := asCode(v[graph])
	if err != nil {
		return nil, err
	}
	return r.run(k, v[from:])
}

// keywords resolves the keyword arguments of a higher-order operator.
func (r *runner) keywords(s *step, f frame) ([]aten.KwArg, error) {
	var kw []aten.KwArg
	for _, k := range s.kw {
		v, err := r.resolve(k.ref, f)
		if err != nil {
			return nil, err
		}
		kw = append(kw, aten.Kw(k.name, v))
	}
	return kw, nil
}

// runWithEffects: (token, operator, its arguments...) gives the token and the operator's results.
func runWithEffects(r *runner, s *step, f frame) ([]any, error) {
	v, err := r.values(s, f)
	if err != nil {
		return nil, err
	}
	if err := s.need(2, v); err != nil {
		return nil, err
	}
	kw, err := r.keywords(s, f)
	if err != nil {
		return nil, err
	}
	var out []any
	switch op := v[1].(type) {
	case *aten.Op:
		a, err := op.Bind(v[2:], kw)
		if err != nil {
			return nil, err
		}
		if out, err = r.build.Do(op, a); err != nil {
			return nil, err
		}
	case hopFunc:
		inner := &step{node: s.node, args: constants(v[2:]), kw: s.kw}
		if out, err = op(r, inner, f); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("want an operator, got %T", v[1])
	}
	return append([]any{v[0]}, out...), nil
}

func constants(v []any) []ref {
	out := make([]ref, len(v))
	for i := range v {
		out[i] = ref{val: v[i]}
	}
	return out
}

// runOutDtype: (operator, dtype, arguments...): products of small integers are exact in the wide dtype.
func runOutDtype(r *runner, s *step, f frame) ([]any, error) {
	v, err := r.values(s, f)
	if err != nil {
		return nil, err
	}
	if err := s.need(2, v); err != nil {
		return nil, err
	}
	op, ok := v[0].(*aten.Op)
	dt, ok2 := v[1].(tensor.DType)
	if !ok || !ok2 {
		return nil, fmt.Errorf("want an operator and a dtype, got %T and %T", v[0], v[1])
	}
	args := append([]any{}, v[2:]...)
	for i, x := range args {
		if t, ok := x.(*aten.Value); ok && t.DType.IsIntegral() && dt.IsIntegral() {
			if args[i], err = r.do("aten._to_copy.default", t, aten.Kw("dtype", dt)); err != nil {
				return nil, err
			}
		}
	}
	a, err := op.Bind(args, nil)
	if err != nil {
		return nil, err
	}
	out, err := r.build.Do(op, a)
	if err != nil {
		return nil, err
	}
	t, ok := out[0].(*aten.Value)
	if !ok {
		return nil, fmt.Errorf("%s gives no tensor", op.Name())
	}
	w, err := r.do("aten.to.dtype", t, dt)
	return []any{w}, err
}

// runAutoFunctionalized: an operator that mutates arguments, called on copies: its results, then the new values.
func runAutoFunctionalized(r *runner, s *step, f frame) ([]any, error) {
	v, err := r.values(s, f)
	if err != nil {
		return nil, err
	}
	if err := s.need(1, v); err != nil {
		return nil, err
	}
	op, ok := v[0].(*aten.Op)
	if !ok {
		return nil, fmt.Errorf("want an operator, got %T", v[0])
	}
	kw, err := r.keywords(s, f)
	if err != nil {
		return nil, err
	}
	var mutated []any
	for i, p := range op.Signature().Params {
		if !p.Type.Mutable() {
			continue
		}
		for j := range kw {
			if kw[j].Name != op.Signature().Params[i].Name {
				continue
			}
			if kw[j].Value, err = r.cloneAll(kw[j].Value); err != nil {
				return nil, err
			}
			mutated = append(mutated, kw[j].Value)
		}
	}
	out, err := r.callMutating(op, kw)
	return append(out, mutated...), err
}

func (r *runner) cloneAll(x any) (any, error) {
	switch x := x.(type) {
	case *aten.Value:
		if x == nil {
			return x, nil
		}
		return r.do("aten.clone.default", x)
	case []*aten.Value:
		out := make([]*aten.Value, len(x))
		for i, v := range x {
			c, err := r.do("aten.clone.default", v)
			if err != nil {
				return nil, err
			}
			out[i] = c
		}
		return out, nil
	}
	return x, nil
}

// callMutating calls op by keywords; without returns it yields one None, as the archive records it.
func (r *runner) callMutating(op *aten.Op, kw []aten.KwArg) ([]any, error) {
	a, err := op.Bind(nil, kw)
	if err != nil {
		return nil, err
	}
	out, err := r.build.Do(op, a)
	if err != nil {
		return nil, err
	}
	if len(op.Signature().Returns) == 0 {
		return []any{nil}, nil
	}
	return out, nil
}

// runAutoFunctionalizedV2 clones the bases, rebuilds the views that the operator mutates, calls it, and gives its results
// and the bases.
func runAutoFunctionalizedV2(r *runner, s *step, f frame) ([]any, error) {
	v, err := r.values(s, f)
	if err != nil {
		return nil, err
	}
	if err := s.need(1, v); err != nil {
		return nil, err
	}
	op, ok := v[0].(*aten.Op)
	if !ok {
		return nil, fmt.Errorf("want an operator, got %T", v[0])
	}
	kw, err := r.keywords(s, f)
	if err != nil {
		return nil, err
	}
	spec := map[string]any{}
	for _, k := range kw {
		spec[k.Name] = k.Value
	}
	var bases []*aten.Value
	for _, x := range asList(spec["_all_bases"]) {
		b, err := r.tensorOf(x)
		if err != nil {
			return nil, err
		}
		c, err := r.do("aten.clone.default", b)
		if err != nil {
			return nil, err
		}
		bases = append(bases, c)
	}
	var call []aten.KwArg
	for _, p := range op.Signature().Params {
		if !p.Type.Mutable() {
			if x, ok := spec[p.Name]; ok {
				call = append(call, aten.Kw(p.Name, x))
			}
			continue
		}
		x, err := r.rebuild(p, spec, bases)
		if err != nil {
			return nil, fmt.Errorf("argument %s: %w", p.Name, err)
		}
		call = append(call, aten.Kw(p.Name, x))
	}
	out, err := r.callMutating(op, call)
	if err != nil {
		return nil, err
	}
	for _, b := range bases {
		out = append(out, b)
	}
	return out, nil
}

// rebuild makes a mutated argument from its base as the "_NAME_..." keywords describe.
func (r *runner) rebuild(p aten.Param, spec map[string]any, bases []*aten.Value) (any, error) {
	if n, ok := spec["_"+p.Name+"_length"]; ok {
		count, _ := n.(int64)
		if count < 0 || count > int64(len(spec)) {
			return nil, fmt.Errorf("length %d", count)
		}
		out := make([]*aten.Value, count)
		for i := range out {
			v, err := r.rebuildOne(fmt.Sprintf("_%s_%d", p.Name, i), spec, bases)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	}
	v, err := r.rebuildOne("_"+p.Name, spec, bases)
	if v == nil {
		return nil, err
	}
	return v, err
}

func (r *runner) rebuildOne(key string, spec map[string]any, bases []*aten.Value) (*aten.Value, error) {
	i, ok := spec[key+"_base_index"].(int64)
	if !ok {
		return nil, nil // None
	}
	if i < 0 || i >= int64(len(bases)) {
		return nil, fmt.Errorf("base %d of %d", i, len(bases))
	}
	base := bases[i]
	if d, ok := spec[key+"_slice_dim"].(int64); ok {
		return r.do("aten.slice.Tensor", base, d, spec[key+"_slice_start"], spec[key+"_slice_end"])
	}
	if size, ok := spec[key+"_size"]; ok {
		return r.do("aten.as_strided.default", base, intList(size), intList(spec[key+"_stride"]), spec[key+"_storage_offset"])
	}
	return base, nil
}

func intList(v any) any {
	if v == nil {
		return []symbolic.Int{}
	}
	return v
}

// runPrint is the print operator: an inference run has nowhere to print to, so it does nothing.
func runPrint(*runner, *step, frame) ([]any, error) { return nil, nil }
