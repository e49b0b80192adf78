package tracer

import (
	"fmt"
	"math"
	"slices"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/symbolic"
)

// Cond calls one of two functions on the operands, as torch.cond. Pred is a tensor of one element, a [Bool] such as that of
// [Gt], which stays open where it depends on symbols, or a bool. While a model is exported, both functions are recorded as subgraphs; what they use from outside (tensors, parameters,
// buffers, sizes) becomes their inputs. They must give results of the same number, dtypes and dimensions; sizes that differ are unbacked, see
// [Tensor.Item]. They neither write to nor return what comes from outside.
func Cond(pred any, trueFn, falseFn func(x ...*Tensor) []*Tensor, operands ...*Tensor) []*Tensor {
	choose := func(yes bool) []*Tensor {
		if yes {
			return trueFn(operands...)
		}
		return falseFn(operands...)
	}
	var s *session
	switch p := pred.(type) {
	case bool:
		return choose(p)
	case Bool:
		if p.e == nil {
			return choose(p.v)
		}
		if len(operands) == 0 {
			panic(flowError("Cond: a comparison of sizes needs at least one operand"))
		}
		s = operands[0].s.now()
	case *Tensor:
		s = p.s.now()
		if n := p.v.Numel(); !n.Eq(symbolic.N(1)) {
			panic(flowError("Expected pred to be bool or single-element tensor, but got a tensor of size %v", p.v.Sizes))
		}
		if s.rec == nil {
			return choose(truth(p))
		}
	default:
		panic(flowError("Expected pred to be bool or tensor, but got %T", pred))
	}
	return s.cond(pred, trueFn, falseFn, operands)
}

func flowError(format string, args ...any) *UserError {
	return &UserError{Kind: DynamicControlFlow, Msg: fmt.Sprintf(format, args...)}
}

// truth reads a tensor of one element.
func truth(t *Tensor) bool {
	x, err := aten.Item(t.v.T)
	if err != nil {
		panic(err)
	}
	switch x.Kind {
	case aten.BoolScalar:
		return x.Bool()
	case aten.IntScalar:
		return x.Int64() != 0
	}
	return x.Complex() != 0
}

func (s *session) cond(pred any, trueFn, falseFn func(x ...*Tensor) []*Tensor, operands []*Tensor) []*Tensor {
	var p export.Argument
	switch x := pred.(type) {
	case *Tensor:
		p = s.rec.Node(s.lower(x).(*aten.Value))
	case Bool:
		s.rec.SetMetadata(s.metadata("cond"))
		p = s.rec.Condition(x.e)
	}
	t := s.record(trueFn, operands, nil)
	f := s.record(falseFn, operands, nil)
	if len(t.outs) != len(f.outs) {
		panic(flowError("Unmatched output spec from torch.cond branches: true branch gives %d tensors, false branch %d", len(t.outs), len(f.outs)))
	}
	t.check("torch.cond", nil)
	f.check("torch.cond", nil)
	results := make([]*aten.Value, len(t.outs))
	for i := range t.outs {
		results[i] = s.merged(i, t.outs[i], f.outs[i])
	}
	lifted := merge(t, f)
	yes, no := t.finish("true_graph", lifted, nil, false), f.finish("false_graph", lifted, nil, false)
	return s.higherOrder("cond", "CondOp", results, p, yes, no, operandList(lifted))
}

// merged describes result i of two branches. Sizes that differ are known when the program runs.
func (s *session) merged(i int, a, b *Tensor) *aten.Value {
	if a.DType() != b.DType() {
		panic(flowError("When merging two branches' output in torch.cond, expected same dtype but got %v and %v (result %d)", a.DType(), b.DType(), i))
	}
	if a.Dim() != b.Dim() {
		panic(flowError("When merging two branches' output in torch.cond, expected same number of dimensions but got sizes %v and %v (result %d)", a.Sizes(), b.Sizes(), i))
	}
	sizes, differ := slices.Clone(a.v.Sizes), false
	for d := range sizes {
		if x, y := a.Size(d), b.Size(d); !s.sameSize(x, y) {
			sizes[d], differ = s.eitherSize(i, x, y), true
		}
	}
	if differ {
		if !a.v.IsContiguous() || !b.v.IsContiguous() {
			panic(flowError("the branches of Cond give result %d with the sizes %v and %v, and not contiguous: call contiguous on both", i, a.Sizes(), b.Sizes()))
		}
		return &aten.Value{Meta: aten.Contig(a.DType(), sizes...), Ref: a.v.Ref}
	}
	for d := range a.v.Strides {
		if !s.sameSize(a.v.Strides[d], b.v.Strides[d]) {
			panic(flowError("The sorted order of strides of the two branches' output doesn't match: true branch has stride %v but false branch has stride %v (result %d). Consider using contiguous() to make the two branches have the same contiguousness.", a.v.Strides, b.v.Strides, i))
		}
	}
	return a.v
}

// sameSize reports sizes that are equal whatever symbols are, as far as is known.
func (s *session) sameSize(a, b symbolic.Int) bool {
	root := s
	for root.parent != nil {
		root = root.parent
	}
	yes, known := root.env.ask("Equality", a.Expr(), b.Expr())
	return yes && known
}

// eitherSize is one of two sizes, which the branch decides.
func (s *session) eitherSize(i int, a, b symbolic.Int) symbolic.Int {
	if s.parent != nil {
		panic(flowError("the branches of Cond give result %d with the sizes %v and %v: within another control flow operator they must be equal, pad the smaller one", i, a, b))
	}
	r := symbolic.Interval{Min: 0, Max: math.MaxInt64 - 1}
	x, ok1 := a.Const()
	y, ok2 := b.Const()
	if ok1 && ok2 {
		r = symbolic.Interval{Min: min(x, y), Max: max(x, y)}
	}
	return s.env.newUnbacked(r)
}

// WhileLoop calls body on the carried tensors as long as cond gives true for them, as torch.while_loop, and gives the last ones. Cond gives a tensor of one
// element. Body gives new tensors with the dtypes and sizes of the carried ones, and neither writes to nor returns what comes from
// outside or what it is called with.
func WhileLoop(cond func(x ...*Tensor) *Tensor, body func(x ...*Tensor) []*Tensor, carried ...*Tensor) []*Tensor {
	if len(carried) == 0 {
		panic(flowError("WhileLoop: no carried tensors"))
	}
	s := carried[0].s.now()
	if s.rec != nil {
		return s.whileLoop(cond, body, carried)
	}
	for {
		more := cond(carried...)
		if n := more.v.Numel(); !n.Eq(symbolic.N(1)) {
			panic(flowError("Expected cond_fn to return a scalar tensor or a bool but got a tensor of size %v", more.v.Sizes))
		}
		if !truth(more) {
			return carried
		}
		next := body(carried...)
		sameCarry("body_fn_output and carried_inputs", next, carried)
		carried = next
	}
}

// argName names the inputs of functions that PyTorch traces a second time.
func argName(i int) string { return fmt.Sprintf("arg%d_1", i) }

func (s *session) whileLoop(cond func(x ...*Tensor) *Tensor, body func(x ...*Tensor) []*Tensor, carried []*Tensor) []*Tensor {
	in := s.values(carried)
	c := s.record(func(x ...*Tensor) []*Tensor { return []*Tensor{cond(x...)} }, nil, in)
	if x := c.outs[0]; !x.v.Numel().Eq(symbolic.N(1)) {
		panic(flowError("Expected cond_fn to return a scalar tensor or a bool but got a tensor of size %v", x.v.Sizes))
	}
	b := s.record(body, nil, in)
	sameCarry("body_fn_output and carried_inputs", b.outs, in)
	c.check("torch.while_loop", c.s.rec.Inputs())
	b.check("torch.while_loop", b.s.rec.Inputs())
	lifted := merge(c, b)
	cg, bg := c.finish("while_loop_cond_graph", lifted, argName, true), b.finish("while_loop_body_graph", lifted, argName, false)
	return s.higherOrder("while_loop", "WhileLoopOp", b.values(), cg, bg, operandList(s.nodes(in)), operandList(lifted))
}

// values are tensors of s that stand for ones of s or sessions around it.
func (s *session) values(x []*Tensor) []*Tensor {
	out := make([]*Tensor, len(x))
	for i, t := range x {
		out[i] = &Tensor{v: s.lower(t).(*aten.Value), s: s}
	}
	return out
}

// sameCarry refuses new values that are not like the old ones.
func sameCarry(what string, next, old []*Tensor) {
	if len(next) != len(old) {
		panic(flowError("Expected %s to have same number of outputs but got lhs:%v and rhs:%v", what, describe(next), describe(old)))
	}
	for i := range next {
		a, b := next[i], old[i]
		same := a.DType() == b.DType() && a.Dim() == b.Dim()
		for d := 0; same && d < a.Dim(); d++ {
			same = a.Size(d).Eq(b.Size(d))
		}
		if !same {
			panic(flowError("Expected %s to have same metadata but found:\npair[%d] differ in 'shape: %v vs %v', 'dtype: %v vs %v'", what, i, a.Sizes(), b.Sizes(), a.DType(), b.DType()))
		}
	}
}

func describe(x []*Tensor) []string {
	out := make([]string, len(x))
	for i, t := range x {
		if t != nil {
			out[i] = fmt.Sprintf("%v%v", t.DType(), t.Sizes())
		}
	}
	return out
}

// Map calls f on x[i] for each i of the first dimension of the tensors xs, together with the further tensors args, and stacks the
// results along a new first dimension, as torch's map.
func Map(f func(x ...*Tensor) []*Tensor, xs []*Tensor, args ...*Tensor) []*Tensor {
	s, n := leading("Map", xs)
	if s.rec == nil {
		rows := make([][]*Tensor, n.Int64())
		for i := range rows {
			rows[i] = f(append(selectAll(xs, i), args...)...)
		}
		return stackAll(rows)
	}
	in := s.values(xs)
	b := s.record(func(x ...*Tensor) []*Tensor {
		own := x[len(args):]
		return f(append(own[:len(own):len(own)], x[:len(args)]...)...)
	}, args, s.rows(in))
	b.check("map", b.s.rec.Inputs())
	lifted := b.s.rec.Lifted()
	names := s.nodes(in)
	g := b.finish("body_graph", lifted, func(i int) string {
		if i < len(names) {
			return names[i].Name
		}
		return lifted[i-len(names)].Name
	}, false)
	return s.higherOrder("map_impl", "MapImpl", stacked(b.values(), n), g, operandList(names), operandList(lifted))
}

// leading is the session of tensors that are gone over, and the common size of their first dimension.
func leading(op string, xs []*Tensor) (*session, symbolic.Int) {
	if len(xs) == 0 {
		panic(flowError("%s: no tensors to go over", op))
	}
	for _, x := range xs {
		if x.Dim() == 0 {
			panic(flowError("%s: a tensor without dimensions cannot be gone over", op))
		}
		if !x.Size(0).Eq(xs[0].Size(0)) {
			panic(flowError("%s: leading dimensions of mapped xs must be consistent, got sizes %v and %v", op, xs[0].Sizes(), x.Sizes()))
		}
	}
	n := xs[0].Size(0)
	if n.Eq(symbolic.N(0)) {
		panic(flowError("%s: leading dimensions of mapped xs cannot be 0", op))
	}
	return xs[0].s.now(), n
}

func selectAll(xs []*Tensor, i int) []*Tensor {
	out := make([]*Tensor, len(xs))
	for j, x := range xs {
		out[j] = x.Op("select.int", 0, i)
	}
	return out
}

func stackAll(rows [][]*Tensor) []*Tensor {
	out := make([]*Tensor, len(rows[0]))
	for j := range out {
		col := make([]*Tensor, len(rows))
		for i, r := range rows {
			if len(r) != len(out) {
				panic(flowError("the function gives %d tensors, then %d", len(out), len(r)))
			}
			col[i] = r[j]
		}
		out[j] = Stack(0, col...)
	}
	return out
}

// rows are descriptions of x[i].
func (s *session) rows(xs []*Tensor) []*Tensor {
	out := make([]*Tensor, len(xs))
	for i, x := range xs {
		out[i] = &Tensor{v: s.rec.Like(x.v, aten.Meta{DType: x.v.DType, Sizes: x.v.Sizes[1:], Strides: x.v.Strides[1:]}), s: s}
	}
	return out
}

// stacked describes n tensors like v one above the other.
func stacked(v []*aten.Value, n symbolic.Int) []*aten.Value {
	out := make([]*aten.Value, len(v))
	for i, x := range v {
		m := aten.Contig(x.DType, append([]symbolic.Int{n}, x.Sizes...)...)
		out[i] = &aten.Value{Meta: m, Ref: x.Ref}
	}
	return out
}

// Scan goes over dimension dim of the tensors xs, from its end if reverse: combine takes the carried tensors, which begin as init, and
// the slices of xs, and gives new carried tensors and results. Scan gives the last carried tensors and the results stacked along dim,
// as torch's scan.
func Scan(combine func(carry, x []*Tensor) (next, y []*Tensor), init, xs []*Tensor, dim int, reverse bool) (carry, ys []*Tensor) {
	if len(xs) == 0 {
		panic(flowError("Scan: no tensors to go over"))
	}
	s := xs[0].s.now()
	front := make([]*Tensor, len(xs))
	for i, x := range xs {
		if x.Dim() == 0 {
			panic(flowError("Scan: a tensor without dimensions cannot be gone over"))
		}
		front[i] = &Tensor{v: s.lower(x).(*aten.Value), s: s}
		if aten.WrapDim(int64(dim), x.Dim()) != 0 {
			front[i] = front[i].Op("movedim.int", dim, 0)
		}
		if reverse {
			front[i] = front[i].Op("flip", []int{0})
		}
	}
	_, n := leading("Scan", front)
	if s.rec == nil {
		carry, ys = scanEagerly(combine, init, front, int(n.Int64()))
	} else {
		carry, ys = s.scan(combine, s.values(init), front, n)
	}
	for i := range ys {
		if reverse {
			ys[i] = ys[i].Op("flip", []int{0})
		}
		if aten.WrapDim(int64(dim), xs[0].Dim()) != 0 {
			ys[i] = ys[i].Op("movedim.int", 0, dim)
		}
	}
	return carry, ys
}

func scanEagerly(combine func(carry, x []*Tensor) (next, y []*Tensor), carry, xs []*Tensor, n int) ([]*Tensor, []*Tensor) {
	var rows [][]*Tensor
	for i := range n {
		next, y := combine(carry, selectAll(xs, i))
		sameCarry("init and carry", next, carry)
		carry, rows = next, append(rows, y)
	}
	return carry, stackAll(rows)
}

func (s *session) scan(combine func(carry, x []*Tensor) (next, y []*Tensor), init, xs []*Tensor, n symbolic.Int) ([]*Tensor, []*Tensor) {
	k := 0
	b := s.record(func(x ...*Tensor) []*Tensor {
		next, y := combine(x[:len(init):len(init)], x[len(init):])
		k = len(next)
		return append(next[:k:k], y...)
	}, nil, append(init[:len(init):len(init)], s.rows(xs)...))
	sameCarry("init and carry", b.outs[:k], init)
	b.check("scan", b.s.rec.Inputs())
	lifted := b.s.rec.Lifted()
	g := b.finish("scan_combine_graph", lifted, argName, false)
	v := b.values()
	out := s.higherOrder("scan", "ScanOp", append(v[:k:k], stacked(v[k:], n)...), g, operandList(s.nodes(init)), operandList(s.nodes(xs)), operandList(lifted))
	return out[:k], out[k:]
}

// AssociativeScan combines slices of the tensors xs along dimension dim with all before them (behind them, if reverse), as torch's
// associative_scan with combine_mode="pointwise": combine must be associative and made of pointwise operators.
func AssociativeScan(combine func(a, b []*Tensor) []*Tensor, xs []*Tensor, dim int, reverse bool) []*Tensor {
	if len(xs) == 0 {
		panic(flowError("AssociativeScan: no tensors to go over"))
	}
	s := xs[0].s.now()
	front := make([]*Tensor, len(xs))
	for i, x := range xs {
		front[i] = (&Tensor{v: s.lower(x).(*aten.Value), s: s}).Op("movedim.int", dim, 0)
	}
	flip := func(x []*Tensor) {
		for i := range x {
			if reverse {
				x[i] = x[i].Op("flip", []int{0})
			}
		}
	}
	flip(front)
	_, n := leading("AssociativeScan", front)
	var out []*Tensor
	if s.rec == nil {
		acc := selectAll(front, 0)
		rows := [][]*Tensor{acc}
		for i := 1; i < int(n.Int64()); i++ {
			next := combine(acc, selectAll(front, i))
			sameCarry("combine_fn's results and xs", next, acc)
			acc, rows = next, append(rows, next)
		}
		out = stackAll(rows)
	} else {
		out = s.associativeScan(combine, front, n)
	}
	flip(out)
	for i := range out {
		out[i] = out[i].Op("movedim.int", 0, dim)
	}
	return out
}

func (s *session) associativeScan(combine func(a, b []*Tensor) []*Tensor, xs []*Tensor, n symbolic.Int) []*Tensor {
	k := len(xs)
	rows := s.rows(xs)
	b := s.record(func(x ...*Tensor) []*Tensor { return combine(x[:k:k], x[k:]) }, nil, append(rows[:k:k], rows...))
	sameCarry("combine_fn's results and xs", b.outs, rows)
	if op := b.s.rec.NotPointwise(); op != "" {
		panic(flowError("For combine_mode='pointwise', the combine_fn needs to be pointwise: it calls %s", op))
	}
	b.check("associative_scan", b.s.rec.Inputs())
	lifted := b.s.rec.Lifted()
	g := b.finish("associative_scan_combine_graph", lifted, argName, false)
	return s.higherOrder("associative_scan", "AssociativeScanOp", stacked(b.values(), n), g, operandList(s.nodes(xs)), operandList(lifted))
}
