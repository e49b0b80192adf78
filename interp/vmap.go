package interp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// The training IR keeps torch.vmap as calls around the operators of the mapped function: _add_batch_dim hides a dimension of
// a tensor, the operators between see what is left, and _remove_batch_dim shows the dimension again. Here an operator runs
// once an element of the hidden dimension, which needs no batching rules; pointwise ones run once over everything.

// batched is a tensor with hidden dimensions, one a level of nested vmaps, outermost first.
type batched struct {
	levels []int64
	// all holds every element: the hidden dimensions in the order of levels, then the visible ones. It is nil if the elements
	// are apart; levels has one entry then.
	all   *aten.Value
	items []any
}

func (b *batched) len() int64 {
	if b.all != nil {
		return b.all.Sizes[0].Int64()
	}
	return int64(len(b.items))
}

// item is element i of the outermost hidden dimension, a view of b's memory.
func (r *runner) item(b *batched, i int64) (any, error) {
	if b.all == nil {
		return b.items[i], nil
	}
	v, err := r.do("aten.select.int", b.all, int64(0), i)
	if err != nil || len(b.levels) == 1 {
		return v, err
	}
	return &batched{levels: b.levels[1:], all: v}, nil
}

// vmapStep runs a step that may read tensors with hidden dimensions.
func (r *runner) vmapStep(s *step, f frame) error {
	reads := s.reads(f)
	if len(reads) == 0 {
		return r.plainStep(s, f)
	}
	if s.batch != nil {
		out, done, err := s.batch(r, s, f)
		if err != nil {
			return err
		}
		if done {
			return r.store(s, f, []any{out})
		}
	} else if r.mergeable(s, f, reads) {
		return r.mergedStep(s, f, reads)
	}
	return r.eachItem(s, f, reads)
}

// reads lists the values with hidden dimensions among what a step reads.
func (s *step) reads(f frame) []int {
	var ids []int
	var visit func(a ref)
	visit = func(a ref) {
		if a.kind == valueRef {
			if _, ok := f[a.id].(*batched); ok && !slices.Contains(ids, a.id) {
				ids = append(ids, a.id)
			}
		}
		for _, x := range a.list {
			visit(x)
		}
		if d, ok := a.val.(*dictRef); ok {
			for _, x := range d.vals {
				visit(x)
			}
		}
	}
	for _, a := range s.args {
		visit(a)
	}
	for _, k := range s.kw {
		visit(k.ref)
	}
	return ids
}

// eachItem runs a step for each element of the outermost dimension that its reads hide.
func (r *runner) eachItem(s *step, f frame, reads []int) error {
	saved := make([]*batched, len(reads))
	level, n := int64(-1), int64(0)
	for i, id := range reads {
		saved[i] = f[id].(*batched)
		if l := saved[i].levels[0]; level < 0 || l < level {
			level, n = l, saved[i].len()
		}
	}
	if n == 0 {
		return errors.New("vmap over a dimension of size 0")
	}
	defer func() {
		for i, id := range reads {
			f[id] = saved[i]
		}
	}()
	outs := map[int][]any{}
	for i := range n {
		for j, id := range reads {
			b := saved[j]
			if b.levels[0] != level {
				continue
			}
			if b.len() != n {
				return fmt.Errorf("vmap: expected all tensors to have the same size in the mapped dimension, got sizes %d and %d", n, b.len())
			}
			v, err := r.item(b, i)
			if err != nil {
				return err
			}
			f[id] = v
		}
		if err := r.vmapStep(s, f); err != nil {
			return err
		}
		for _, o := range s.node.Outputs {
			export.EachValue(o, func(v *export.Value) { outs[v.ID] = append(outs[v.ID], f[v.ID]) })
		}
	}
	for id, items := range outs {
		f[id] = &batched{levels: []int64{level}, items: items}
		if same, ok := alike(items); ok {
			f[id] = same
		}
	}
	return nil
}

// alike gives the number that all items are, such as a size.
func alike(items []any) (any, bool) {
	for _, x := range items {
		switch x.(type) {
		case int64, float64, bool, string, nil:
		default:
			return nil, false
		}
		if x != items[0] {
			return nil, false
		}
	}
	return items[0], true
}

// mergeable reports a pointwise operator whose result does not depend on how many dimensions are hidden.
func (r *runner) mergeable(s *step, f frame, reads []int) bool {
	if s.op == nil || s.op.Tags&aten.Pointwise == 0 || s.op.Mutates() || s.op.IsView() || r.autocast != tensor.Invalid {
		return false
	}
	for _, id := range reads {
		if f[id].(*batched).all == nil {
			return false
		}
	}
	dt := tensor.Bool
	for i, a := range s.args {
		if a.kind != valueRef || s.op.Signature().Params[i].Type.Base != "Tensor" {
			if a.kind == listRef || a.kind == tensorRef {
				return false
			}
			continue
		}
		v := hidden(f[a.id])
		if v == nil {
			return false
		}
		if v.DType != tensor.Bool { // with several dtypes the ranks matter for the result's
			if dt != tensor.Bool && v.DType != dt {
				return false
			}
			dt = v.DType
		}
	}
	return true
}

// hidden is the memory of a tensor, hidden dimensions included; nil for what is no tensor.
func hidden(x any) *aten.Value {
	switch x := x.(type) {
	case *batched:
		return x.all
	case *aten.Value:
		return x
	}
	return nil
}

// mergedStep runs a pointwise step once, with the hidden dimensions in front of all others.
func (r *runner) mergedStep(s *step, f frame, reads []int) error {
	var levels []int64
	rank := 0
	for i, a := range s.args {
		if a.kind != valueRef || s.op.Signature().Params[i].Type.Base != "Tensor" {
			continue
		}
		n := hidden(f[a.id]).Dim()
		if b, ok := f[a.id].(*batched); ok {
			n -= len(b.levels)
			levels = append(levels, b.levels...)
		}
		rank = max(rank, n)
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	saved := make([]*batched, len(reads))
	for i, id := range reads {
		saved[i] = f[id].(*batched)
	}
	seen := r.onValue
	r.onValue = nil // what the archive records of the results hides dimensions
	defer func() {
		r.onValue = seen
		for i, id := range reads {
			f[id] = saved[i]
		}
	}()
	for i, id := range reads {
		v, err := r.spread(saved[i], levels, rank)
		if err != nil {
			return err
		}
		f[id] = v
	}
	if err := r.plainStep(s, f); err != nil {
		return err
	}
	for _, o := range s.node.Outputs {
		export.EachValue(o, func(v *export.Value) {
			if t, ok := f[v.ID].(*aten.Value); ok && t != nil {
				f[v.ID] = &batched{levels: levels, all: t}
			}
		})
	}
	return nil
}

// spread gives b's memory as [size or 1 of each level..., 1..., visible dimensions], with rank dimensions after the levels.
func (r *runner) spread(b *batched, levels []int64, rank int) (*aten.Value, error) {
	v := b.all
	var err error
	for i, l := range levels {
		if !slices.Contains(b.levels, l) {
			if v, err = r.do("aten.unsqueeze.default", v, int64(i)); err != nil {
				return nil, err
			}
		}
	}
	for v.Dim() < len(levels)+rank {
		if v, err = r.do("aten.unsqueeze.default", v, int64(len(levels))); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// batchFunc is one of vmap's own calls on a tensor that has hidden dimensions already; done is false if it has to be made
// for each element of the outermost one.
type batchFunc func(r *runner, s *step, f frame) (out any, done bool, err error)

var batchFuncs = map[string]batchFunc{
	"torch._functorch.predispatch._add_batch_dim":    hideMore,
	"torch._functorch.predispatch._remove_batch_dim": show,
}

// batchArgs gives the tensor, then the integers that follow it.
func (r *runner) batchArgs(s *step, f frame, n int) (any, []int64, error) {
	v, err := r.values(s, f)
	if err != nil {
		return nil, nil, err
	}
	if err := s.need(n+1, v); err != nil {
		return nil, nil, err
	}
	ints := make([]int64, n)
	for i := range ints {
		x, err := number(v[i+1])
		if err != nil {
			return nil, nil, err
		}
		k, ok := x.(int64)
		if !ok {
			return nil, nil, fmt.Errorf("argument %d is a %T, want an integer", i+1, x)
		}
		ints[i] = k
	}
	return v[0], ints, nil
}

// runAddBatchDim: (tensor, dimension, level) hides a dimension.
func runAddBatchDim(r *runner, s *step, f frame) ([]any, error) {
	x, n, err := r.batchArgs(s, f, 2)
	if err != nil {
		return nil, err
	}
	t, err := r.tensorOf(x)
	if err != nil {
		return nil, err
	}
	if t.Dim() == 0 {
		return nil, errors.New("vmap: a tensor without dimensions has none to map over")
	}
	v, err := r.do("aten.movedim.int", t, n[0], int64(0))
	if err != nil {
		return nil, err
	}
	r.batching = true
	return []any{&batched{levels: []int64{n[1]}, all: v}}, nil
}

func hideMore(r *runner, s *step, f frame) (any, bool, error) {
	x, n, err := r.batchArgs(s, f, 2)
	if err != nil {
		return nil, false, err
	}
	b, ok := x.(*batched)
	if !ok || b.all == nil || n[1] <= b.levels[len(b.levels)-1] {
		return nil, false, nil
	}
	k := int64(len(b.levels))
	dim := n[0]
	if dim < 0 {
		dim += int64(b.all.Dim()) - k
	}
	if dim < 0 {
		return nil, false, fmt.Errorf("dimension %d to map over is out of range", n[0])
	}
	v, err := r.do("aten.movedim.int", b.all, k+dim, k)
	return &batched{levels: append(slices.Clone(b.levels), n[1]), all: v}, true, err
}

// show makes the dimension of a level visible again.
func show(r *runner, s *step, f frame) (any, bool, error) {
	x, n, err := r.batchArgs(s, f, 3)
	if err != nil {
		return nil, false, err
	}
	b, ok := x.(*batched)
	if !ok {
		return nil, false, nil
	}
	j := slices.Index(b.levels, n[0])
	if j < 0 {
		return nil, false, nil
	}
	if b.all == nil {
		v, err := r.stackItems(b.items, n[2])
		return v, true, err
	}
	k := int64(len(b.levels)) - 1
	dim := n[2]
	if dim < 0 {
		dim += int64(b.all.Dim()) - k
	}
	if dim < 0 {
		return nil, false, fmt.Errorf("dimension %d for the results is out of range", n[2])
	}
	v, err := r.do("aten.movedim.int", b.all, int64(j), k+dim)
	if err != nil || k == 0 {
		return v, true, err
	}
	return &batched{levels: slices.Delete(slices.Clone(b.levels), j, j+1), all: v}, true, nil
}

func (r *runner) stackItems(items []any, dim int64) (*aten.Value, error) {
	list := make([]*aten.Value, len(items))
	for i, x := range items {
		v, err := r.tensorOf(x)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return r.do("aten.stack.default", list, dim)
}

// runRemoveBatchDim: (tensor, level, size, dimension) of a tensor that does not hide the level: it is the same for all.
func runRemoveBatchDim(r *runner, s *step, f frame) ([]any, error) {
	x, n, err := r.batchArgs(s, f, 3)
	if err != nil {
		return nil, err
	}
	t, err := r.tensorOf(x)
	if err != nil {
		return nil, err
	}
	v, err := r.do("aten.unsqueeze.default", t, n[2])
	if err != nil {
		return nil, err
	}
	dim := n[2]
	if dim < 0 {
		dim += int64(v.Dim())
	}
	sizes := slices.Clone(v.Sizes)
	sizes[dim] = symbolic.N(n[1])
	w, err := r.do("aten.expand.default", v, sizes)
	return []any{w}, err
}

// runNesting is the beginning or the end of a vmap: the levels are told by the other calls.
func runNesting(*runner, *step, frame) ([]any, error) { return nil, nil }
