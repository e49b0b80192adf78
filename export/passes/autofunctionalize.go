package passes

import (
	"fmt"
	"maps"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
)

// autoFunctionalized calls an operator that writes to arguments and has no functional form by auto_functionalized_v2, as PyTorch does
// for custom operators: it works on copies of the tensors whose memory is written, its bases, and gives them after its own results.
func (r *recorder) autoFunctionalized(op *aten.Op, a *aten.Args) []*aten.Value {
	f := &functionalizer{r: r, place: map[*store]int{}}
	s := op.Signature()
	for i := range s.Params {
		if p := &s.Params[i]; !p.Type.Mutable() {
			f.keyword(p.Name, r.argument(a.V[i]))
		}
	}
	for i := range s.Params {
		p := &s.Params[i]
		if !p.Type.Mutable() {
			continue
		}
		switch x := a.V[i].(type) {
		case []*aten.Value:
			f.keyword("_"+p.Name+"_length", int64(len(x)))
			for j, v := range x {
				f.written(fmt.Sprintf("_%s_%d", p.Name, j), v)
			}
		default:
			v, _ := x.(*aten.Value)
			f.written("_"+p.Name, v)
		}
	}
	bases := make([]*export.Value, len(f.bases))
	for i, b := range f.bases {
		bases[i] = b.value.Ref.(*ref).node
	}
	f.keyword("_all_bases", bases)
	return f.record(op, a)
}

type functionalizer struct {
	r     *recorder
	args  []export.NamedArg
	bases []*store
	place map[*store]int
}

func (f *functionalizer) keyword(name string, x export.Argument) {
	f.args = append(f.args, export.NamedArg{Name: name, Value: x, Kind: export.Keyword})
}

// written tells how an argument is seen from its base.
func (f *functionalizer) written(key string, v *aten.Value) {
	if v == nil {
		f.keyword(key+"_base_index", nil)
		return
	}
	p := v.Ref.(*ref)
	i, known := f.place[p.store]
	if !known {
		i = len(f.bases)
		f.place[p.store] = i
		f.bases = append(f.bases, p.store)
	}
	f.keyword(key+"_base_index", int64(i))
	if len(p.chain) > 0 {
		f.keyword(key+"_size", f.r.argument(v.Sizes))
		f.keyword(key+"_stride", f.r.argument(v.Strides))
		f.keyword(key+"_storage_offset", f.r.argument(v.Offset))
	}
}

// record writes the node. What is seen of the bases from now on is seen of the results.
func (f *functionalizer) record(op *aten.Op, a *aten.Args) []*aten.Value {
	r := f.r
	outs := r.infer(op, a)
	n := &export.Node{Target: "torch.ops.higher_order.auto_functionalized_v2", Metadata: maps.Clone(r.metadata), SingleTensor: new(bool),
		Args: append([]export.NamedArg{{Value: export.Operator("torch.ops." + op.Name()), Kind: export.Positional}}, f.args...)}
	n.Name = r.names.Create(nodeName(n.Target))
	in := r.firstRef(a)
	var results []*aten.Value
	for _, o := range outs {
		v, arg := r.result(n, o, in, true)
		results, n.Outputs = append(results, v), append(n.Outputs, arg)
	}
	if len(op.Signature().Returns) == 0 {
		r.names.Create("getitem")
		n.Outputs = append(n.Outputs, nil)
	}
	for _, b := range f.bases {
		v, arg := r.result(n, &aten.Value{Meta: b.value.Meta}, b.value.Ref.(*ref), true)
		n.Outputs = append(n.Outputs, arg)
		v.Ref.(*ref).store = b
		b.value = v
		b.gen++
		v.Ref.(*ref).gen = b.gen
	}
	r.writes++
	r.g.Nodes = append(r.g.Nodes, n)
	return results
}
