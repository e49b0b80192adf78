package loader

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/schema"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// encodeProgram gives the serialized form of a program, in the current schema.
func encodeProgram(p *export.Program, opset map[string]int) (*schema.ExportedProgram, error) {
	parts := p.Parts()
	out := &schema.ExportedProgram{
		SchemaVersion: schema.Current, Verifiers: parts.Verifiers, TorchVersion: parts.TorchVersion, GuardsCode: parts.GuardsCode,
		OpsetVersion: opsetOf(parts.OpsetVersion, opset),
	}
	gm := &out.GraphModule
	var err error
	if gm.Graph, err = encodeGraph(parts.Graph); err != nil {
		return nil, err
	}
	if gm.Signature, err = encodeSignature(parts.Signature); err != nil {
		return nil, err
	}
	for _, r := range parts.RangeConstraints {
		out.RangeConstraints = append(out.RangeConstraints, schema.Entry[schema.RangeConstraint]{Key: r.Expr, Value: schema.RangeConstraint{Min: r.Min, Max: r.Max}})
	}
	for _, e := range parts.ModuleCallGraph {
		entry := schema.ModuleCallEntry{FQN: e.FQN}
		if s := e.Signature; s != nil {
			sig := &schema.ModuleCallSignature{InSpec: s.InSpec, OutSpec: s.OutSpec, ForwardArgNames: s.ForwardArgNames}
			if sig.Inputs, err = encodeArgs(s.Inputs); err == nil {
				sig.Outputs, err = encodeArgs(s.Outputs)
			}
			if err != nil {
				return nil, err
			}
			entry.Signature = sig
		}
		gm.ModuleCallGraph = append(gm.ModuleCallGraph, entry)
	}
	for _, k := range slices.Sorted(maps.Keys(parts.Metadata)) {
		gm.Metadata = append(gm.Metadata, schema.Entry[string]{Key: k, Value: parts.Metadata[k]})
	}
	for _, k := range slices.Sorted(maps.Keys(parts.NamedTuples)) {
		gm.TreespecNamedtupleFields = append(gm.TreespecNamedtupleFields,
			schema.Entry[schema.NamedTupleDef]{Key: k, Value: schema.NamedTupleDef{FieldNames: parts.NamedTuples[k]}})
	}
	return out, nil
}

// opsetOf merges the recorded operator sets with the caller's.
func opsetOf(have, want map[string]int) schema.Map[int64] {
	all := map[string]int{"aten": knownOpset}
	maps.Copy(all, have)
	maps.Copy(all, want)
	var out schema.Map[int64]
	for _, k := range slices.Sorted(maps.Keys(all)) {
		out = append(out, schema.Entry[int64]{Key: k, Value: int64(all[k])})
	}
	return out
}

// encodeGraph gives the serialized form of a graph; its tables list the values in order of definition.
func encodeGraph(g *export.Graph) (out schema.Graph, err error) {
	out.IsSingleTensorReturn = g.SingleReturn
	for _, v := range g.Values {
		encodeValue(&out, v)
	}
	for i := range g.Inputs {
		in := &g.Inputs[i]
		arg := any(in.Value)
		if in.Value == nil {
			arg = in.Constant
		}
		a, err := encodeArgument(arg)
		if err != nil {
			return out, fmt.Errorf("loader: graph input %s: %w", in.Name, err)
		}
		out.Inputs = append(out.Inputs, a)
	}
	out.Nodes = make([]schema.Node, len(g.Nodes))
	for i, n := range g.Nodes {
		if err := encodeNode(&out.Nodes[i], n); err != nil {
			return out, fmt.Errorf("loader: node %s: %w", n.Name, err)
		}
	}
	out.Outputs, err = encodeArguments(g.Outputs)
	return out, err
}

// encodeValue enters a value into the graph's tables.
func encodeValue(g *schema.Graph, v *export.Value) {
	switch v.Kind {
	case export.TensorKind, export.TokenKind:
		if v.Tensor != nil {
			g.TensorValues = append(g.TensorValues, schema.Entry[schema.TensorMeta]{Key: v.Name, Value: encodeMeta(v.Tensor)})
		}
	case export.SymIntKind:
		s := schema.SymInt{}
		if n, ok := v.Hint.(int64); ok && (v.Sym == nil || v.Sym.Op == symbolic.OpInt) {
			s.Int = n
		} else if v.Sym != nil {
			s.Expr = encodeExpr(v.Sym, v.Hint)
		}
		g.SymIntValues = append(g.SymIntValues, schema.Entry[schema.SymInt]{Key: v.Name, Value: s})
	case export.SymFloatKind:
		s := schema.SymFloat{}
		if v.Sym != nil {
			s.Expr = encodeExpr(v.Sym, v.Hint)
		} else {
			s.Float, _ = v.Hint.(float64)
		}
		g.SymFloatValues = append(g.SymFloatValues, schema.Entry[schema.SymFloat]{Key: v.Name, Value: s})
	case export.SymBoolKind:
		s := schema.SymBool{}
		if v.Sym != nil {
			s.Expr = encodeExpr(v.Sym, v.Hint)
		} else {
			s.Bool, _ = v.Hint.(bool)
		}
		g.SymBoolValues = append(g.SymBoolValues, schema.Entry[schema.SymBool]{Key: v.Name, Value: s})
	case export.CustomObjKind:
		if v.Class != "" {
			g.CustomObjValues = append(g.CustomObjValues, schema.Entry[schema.CustomObjArgument]{Key: v.Name,
				Value: schema.CustomObjArgument{Name: v.Name, ClassFQN: v.Class}})
		}
	}
}

func encodeExpr(e *symbolic.Expr, hint any) *schema.SymExpr {
	return &schema.SymExpr{Expr: e.Srepr(), Hint: hint}
}

func encodeInt(n symbolic.Int, unbacked bool) schema.SymInt {
	if v, ok := n.Const(); ok {
		return schema.SymInt{Int: v}
	}
	var hint any
	if !unbacked {
		hint = n.Int64()
	}
	return schema.SymInt{Expr: encodeExpr(n.Expr(), hint)}
}

func encodeInts(in []symbolic.Int) []schema.SymInt {
	out := make([]schema.SymInt, len(in))
	for i, n := range in {
		out[i] = encodeInt(n, isUnbacked(n))
	}
	return out
}

// isUnbacked reports an expression without a hint: one over a symbol that only the run gives a value, or a product of sizes whose
// hint would be 0, which no traced size is.
func isUnbacked(n symbolic.Int) bool {
	if n.IsConst() {
		return false
	}
	e := n.Expr()
	found := n.Int64() == 0 && (e.Op == symbolic.OpSymbol || e.Op == "Mul")
	e.Symbols(func(name string) { found = found || len(name) > 0 && name[0] != 's' })
	return found
}

func encodeMeta(m *export.TensorMeta) schema.TensorMeta {
	return schema.TensorMeta{DType: dtypes[m.DType], Sizes: encodeInts(m.Sizes), RequiresGrad: m.RequiresGrad, Device: encodeDevice(m.Device),
		Strides: encodeInts(m.Strides), StorageOffset: encodeInt(m.Offset, isUnbacked(m.Offset)), Layout: schema.Layout(m.Layout)}
}

func encodeDevice(d aten.Device) schema.Device {
	out := schema.Device{Type: d.Type}
	if d.Index >= 0 {
		i := int64(d.Index)
		out.Index = &i
	}
	return out
}

// metadataOrder is the order in which PyTorch writes what it knows of a node; other keys follow by name.
var metadataOrder = []string{"stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "custom", "from_node"}

func encodeNode(out *schema.Node, n *export.Node) error {
	*out = schema.Node{Target: n.Target, Name: n.Name, IsHOPSingleTensorReturn: n.SingleTensor, Inputs: make([]schema.NamedArgument, len(n.Args))}
	if n.SingleTensor == nil && len(n.Outputs) == 1 && strings.HasPrefix(n.Target, "torch.ops.higher_order.") {
		// Files that do not say so mean a bare result; today's PyTorch takes null for a tuple.
		single := true
		out.IsHOPSingleTensorReturn = &single
	}
	for i := range n.Args {
		a, err := encodeArgument(n.Args[i].Value)
		if err != nil {
			return fmt.Errorf("argument %d: %w", i, err)
		}
		out.Inputs[i] = schema.NamedArgument{Name: n.Args[i].Name, Arg: a, Kind: schema.ArgumentKind(n.Args[i].Kind)}
	}
	for _, k := range metadataOrder {
		if v, ok := n.Metadata[k]; ok {
			out.Metadata = append(out.Metadata, schema.Entry[string]{Key: k, Value: v})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(n.Metadata)) {
		if !slices.Contains(metadataOrder, k) {
			out.Metadata = append(out.Metadata, schema.Entry[string]{Key: k, Value: n.Metadata[k]})
		}
	}
	var err error
	out.Outputs, err = encodeArguments(n.Outputs)
	return err
}

func encodeArguments(list []export.Argument) ([]schema.Argument, error) {
	out := make([]schema.Argument, len(list))
	for i := range list {
		a, err := encodeArgument(list[i])
		if err != nil {
			return nil, err
		}
		out[i] = a
	}
	return out, nil
}

// encodeArgument picks the tag that PyTorch writes for an argument.
func encodeArgument(arg export.Argument) (schema.Argument, error) {
	switch a := arg.(type) {
	case nil:
		return schema.Argument{Tag: schema.AsNone, Value: true}, nil
	case *export.Value:
		return encodeUse(a), nil
	case []*export.Value:
		return encodeList(a), nil
	case [][]*export.Value:
		out := make([][]schema.TensorArgument, len(a))
		for i := range a {
			out[i] = tensorNames(a[i])
		}
		return schema.Argument{Tag: schema.AsNestedTensors, Value: out}, nil
	case bool:
		return schema.Argument{Tag: schema.AsBool, Value: a}, nil
	case int64:
		return schema.Argument{Tag: schema.AsInt, Value: a}, nil
	case float64:
		return schema.Argument{Tag: schema.AsFloat, Value: a}, nil
	case complex128:
		return schema.Argument{Tag: schema.AsComplex, Value: schema.ComplexValue{Real: real(a), Imag: imag(a)}}, nil
	case string:
		return schema.Argument{Tag: schema.AsString, Value: a}, nil
	case []bool:
		return schema.Argument{Tag: schema.AsBools, Value: a}, nil
	case []int64:
		return schema.Argument{Tag: schema.AsInts, Value: a}, nil
	case []float64:
		return schema.Argument{Tag: schema.AsFloats, Value: a}, nil
	case []string:
		return schema.Argument{Tag: schema.AsStrings, Value: a}, nil
	case [][]int64:
		return schema.Argument{Tag: schema.AsIntLists, Value: a}, nil
	case [][]float64:
		return schema.Argument{Tag: schema.AsFloatLists, Value: a}, nil
	case []any:
		return encodeScalars(a)
	case tensor.DType:
		return schema.Argument{Tag: schema.AsScalarType, Value: dtypes[a]}, nil
	case aten.MemoryFormat:
		return schema.Argument{Tag: schema.AsMemoryFormat, Value: schema.MemoryFormat(a)}, nil
	case aten.Layout:
		return schema.Argument{Tag: schema.AsLayout, Value: schema.Layout(a)}, nil
	case aten.Device:
		return schema.Argument{Tag: schema.AsDevice, Value: encodeDevice(a)}, nil
	case export.Operator:
		return schema.Argument{Tag: schema.AsOperator, Value: string(a)}, nil
	case *export.Subgraph:
		g, err := encodeGraph(a.Graph)
		return schema.Argument{Tag: schema.AsGraph, Value: &schema.GraphArgument{Name: a.Name, Graph: g}}, err
	case *export.Dict:
		vals, err := encodeArguments(a.Values)
		out := make(schema.Map[schema.Argument], len(vals))
		for i := range vals {
			out[i] = schema.Entry[schema.Argument]{Key: a.Keys[i], Value: vals[i]}
		}
		return schema.Argument{Tag: schema.AsStringToArgument, Value: out}, err
	}
	return schema.Argument{}, fmt.Errorf("an argument of type %T cannot be written", arg)
}

func encodeUse(v *export.Value) schema.Argument {
	switch v.Kind {
	case export.SymIntKind:
		return schema.Argument{Tag: schema.AsSymInt, Value: schema.SymIntArgument{Name: v.Name}}
	case export.SymFloatKind:
		return schema.Argument{Tag: schema.AsSymFloat, Value: schema.SymFloatArgument{Name: v.Name}}
	case export.SymBoolKind:
		return schema.Argument{Tag: schema.AsSymBool, Value: schema.SymBoolArgument{Name: v.Name}}
	case export.CustomObjKind:
		return schema.Argument{Tag: schema.AsCustomObj, Value: schema.CustomObjArgument{Name: v.Name, ClassFQN: v.Class}}
	}
	return schema.Argument{Tag: schema.AsTensor, Value: schema.TensorArgument{Name: v.Name}}
}

func tensorNames(list []*export.Value) []schema.TensorArgument {
	out := make([]schema.TensorArgument, len(list))
	for i, v := range list {
		out[i].Name = v.Name
	}
	return out
}

// encodeList is a list of values, or one with None among them.
func encodeList(list []*export.Value) schema.Argument {
	if !slices.Contains(list, nil) {
		return schema.Argument{Tag: schema.AsTensors, Value: tensorNames(list)}
	}
	out := make([]schema.OptionalTensorArgument, len(list))
	for i, v := range list {
		if v != nil {
			out[i].Tensor = &schema.TensorArgument{Name: v.Name}
		}
	}
	return schema.Argument{Tag: schema.AsOptionalTensors, Value: out}
}

// encodeScalars is a list in which symbolic scalars and constants mix; they are all of one kind.
func encodeScalars(list []any) (schema.Argument, error) {
	kind := export.SymIntKind
	for _, x := range list {
		switch x := x.(type) {
		case *export.Value:
			kind = x.Kind
		case float64:
			kind = export.SymFloatKind
		case bool:
			kind = export.SymBoolKind
		}
	}
	ints := make([]schema.SymIntArgument, len(list))
	floats := make([]schema.SymFloatArgument, len(list))
	bools := make([]schema.SymBoolArgument, len(list))
	for i, x := range list {
		switch x := x.(type) {
		case *export.Value:
			ints[i].Name, floats[i].Name, bools[i].Name = x.Name, x.Name, x.Name
		case int64:
			ints[i].Int, floats[i].Float = x, float64(x)
		case float64:
			floats[i].Float = x
		case bool:
			bools[i].Bool = x
		default:
			return schema.Argument{}, fmt.Errorf("a list that holds a %T cannot be written", x)
		}
	}
	switch kind {
	case export.SymIntKind:
		return schema.Argument{Tag: schema.AsSymInts, Value: ints}, nil
	case export.SymFloatKind:
		return schema.Argument{Tag: schema.AsSymFloats, Value: floats}, nil
	case export.SymBoolKind:
		return schema.Argument{Tag: schema.AsSymBools, Value: bools}, nil
	}
	return schema.Argument{}, fmt.Errorf("a list that mixes tensors and numbers cannot be written")
}
