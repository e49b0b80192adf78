package loader

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/schema"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// scalarTypes maps the serializer's numbers to dtypes.
var scalarTypes = map[int]tensor.DType{1: tensor.Uint8, 2: tensor.Int8, 3: tensor.Int16, 4: tensor.Int32, 5: tensor.Int64, 6: tensor.Float16,
	7: tensor.Float32, 8: tensor.Float64, 9: tensor.Complex32, 10: tensor.Complex64, 11: tensor.Complex128, 12: tensor.Bool,
	13: tensor.BFloat16, 28: tensor.Uint16, 29: tensor.Float8E4M3FN, 30: tensor.Float8E5M2, 31: tensor.Float8E4M3FNUZ,
	32: tensor.Float8E5M2FNUZ, 33: tensor.Float8E8M0FNU, 34: tensor.Uint32, 35: tensor.Uint64}

// ProgramError is a program that contradicts itself.
type ProgramError struct {
	Where string // "graph.nodes[3] (add_1)"
	Msg   string
}

// Error gives the place.
func (e *ProgramError) Error() string { return fmt.Sprintf("loader: %s: %s", e.Where, e.Msg) }

// converter turns one program's JSON into the program model.
type converter struct {
	reg   *aten.Registry
	depth int
	exprs map[string]*symbolic.Expr
	// customs are custom objects of the constants, which nodes may name without an input.
	customs map[string]bool
}

// scope is one graph under construction.
type scope struct {
	c     *converter
	src   *schema.Graph
	g     *export.Graph
	names map[string]*export.Value
	where string
}

func (s *scope) fail(format string, args ...any) error {
	return &ProgramError{s.where, fmt.Sprintf(format, args...)}
}

// graph converts g; specs (nil for subgraphs) name constant inputs.
func (c *converter) graph(src *schema.Graph, specs []schema.InputSpec) (*export.Graph, error) {
	if c.depth++; c.depth > 64 {
		return nil, &ProgramError{"graph", "subgraphs are nested more than 64 deep"}
	}
	defer func() { c.depth-- }()
	s := &scope{c: c, src: src, g: &export.Graph{SingleReturn: src.Single}, names: map[string]*export.Value{}, where: "graph.inputs"}
	for i, in := range src.Inputs {
		gi, err := s.input(i, in, specs)
		if err != nil {
			return nil, err
		}
		s.g.Inputs = append(s.g.Inputs, gi)
	}
	for i := range src.Nodes {
		n, err := s.node(i, &src.Nodes[i])
		if err != nil {
			return nil, err
		}
		s.g.Nodes = append(s.g.Nodes, n)
	}
	s.where = "graph.outputs"
	for i := range src.Outputs {
		a, err := s.argument(&src.Outputs[i])
		if err != nil {
			return nil, err
		}
		s.g.Outputs = append(s.g.Outputs, a)
	}
	return s.g, nil
}

func (s *scope) input(i int, in schema.Argument, specs []schema.InputSpec) (export.GraphInput, error) {
	name, kind := "", export.TensorKind
	switch {
	case in.Tensor != nil:
		name = in.Tensor.Name
		if i < len(specs) && specs[i].Token != nil {
			kind = export.TokenKind
		}
	case in.SymInt != nil && in.SymInt.Name != nil:
		name, kind = *in.SymInt.Name, export.SymIntKind
	case in.SymFloat != nil && in.SymFloat.Name != nil:
		name, kind = *in.SymFloat.Name, export.SymFloatKind
	case in.SymBool != nil && in.SymBool.Name != nil:
		name, kind = *in.SymBool.Name, export.SymBoolKind
	case in.CustomObj != nil:
		name, kind = in.CustomObj.Name, export.CustomObjKind
	default:
		a, err := s.argument(&in)
		if err != nil {
			return export.GraphInput{}, err
		}
		name = fmt.Sprintf("arg%d", i)
		if i < len(specs) && specs[i].Constant != nil {
			if specs[i].Constant.Name != "" {
				name = specs[i].Constant.Name
			}
			if a, err = constant(&specs[i].Constant.Value); err != nil {
				return export.GraphInput{}, err
			}
		}
		return export.GraphInput{Name: name, Constant: a}, nil
	}
	if s.names[name] != nil {
		return export.GraphInput{}, s.fail("input %d: the name %q is taken", i, name)
	}
	v, err := s.define(name, kind)
	return export.GraphInput{Name: name, Value: v}, err
}

// define makes a value with what the graph's tables say of it.
func (s *scope) define(name string, kind export.ValueKind) (*export.Value, error) {
	if name == "" {
		return nil, s.fail("a value has no name")
	}
	if s.names[name] != nil {
		return nil, s.fail("%q is defined twice", name)
	}
	v := &export.Value{Name: name, Kind: kind, ID: len(s.g.Values)}
	var err error
	switch kind {
	case export.TensorKind:
		if m := s.src.TensorValues.Get(name); m != nil {
			v.Tensor, err = s.c.meta(m)
		}
	case export.SymIntKind:
		if m := s.src.SymIntValues.Get(name); m != nil {
			v.Sym, v.Hint, err = s.c.sym(m.Expr, m.Int)
		}
	case export.SymFloatKind:
		if m := s.src.SymFloatValues.Get(name); m != nil && m.Expr != nil {
			v.Sym, v.Hint, err = s.c.sym(m.Expr, nil)
		}
	case export.SymBoolKind:
		if m := s.src.SymBoolValues.Get(name); m != nil && m.Expr != nil {
			v.Sym, v.Hint, err = s.c.sym(m.Expr, nil)
		}
	case export.CustomObjKind:
		if m := s.src.CustomObjValues.Get(name); m != nil {
			v.Class = m.Class
		}
	}
	if err != nil {
		return nil, s.fail("value %s: %v", name, err)
	}
	s.names[name] = v
	s.g.Values = append(s.g.Values, v)
	return v, nil
}

func (c *converter) expr(text string) (*symbolic.Expr, error) {
	if e := c.exprs[text]; e != nil {
		return e, nil
	}
	e, err := symbolic.Parse(text)
	if err == nil {
		c.exprs[text] = e
	}
	return e, err
}

func (c *converter) sym(e *schema.SymExpr, i *int64) (*symbolic.Expr, any, error) {
	if e == nil {
		if i == nil {
			return nil, nil, nil
		}
		return symbolic.Const(*i), *i, nil
	}
	x, err := c.expr(e.Expr)
	if err != nil {
		return nil, nil, err
	}
	var hint any
	if h := e.Hint; h != nil {
		switch {
		case h.Int != nil:
			hint = *h.Int
		case h.Float != nil:
			hint = *h.Float
		case h.Bool != nil:
			hint = *h.Bool
		}
	}
	return x, hint, nil
}

func (c *converter) symInt(s schema.SymInt) (symbolic.Int, error) {
	e, hint, err := c.sym(s.Expr, s.Int)
	if err != nil || e == nil {
		return symbolic.Int{}, err
	}
	h, _ := hint.(int64)
	return symbolic.FromExpr(e, h), nil
}

func (c *converter) symInts(in []schema.SymInt) ([]symbolic.Int, error) {
	out := make([]symbolic.Int, len(in))
	for i := range in {
		var err error
		if out[i], err = c.symInt(in[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *converter) meta(m *schema.TensorMeta) (*export.TensorMeta, error) {
	dt, ok := scalarTypes[m.DType]
	if !ok {
		return nil, fmt.Errorf("scalar type %d is unknown", m.DType)
	}
	sizes, err := c.symInts(m.Sizes)
	if err != nil {
		return nil, err
	}
	strides, err := c.symInts(m.Strides)
	if err != nil {
		return nil, err
	}
	off, err := c.symInt(m.Offset)
	if err != nil {
		return nil, err
	}
	if len(sizes) != len(strides) {
		return nil, fmt.Errorf("%d sizes but %d strides", len(sizes), len(strides))
	}
	return &export.TensorMeta{DType: dt, Sizes: sizes, Strides: strides, Offset: off, RequiresGrad: m.RequiresGrad,
		Device: device(m.Device), Layout: aten.Layout(m.Layout)}, nil
}

func device(d schema.Device) aten.Device {
	out := aten.Device{Type: d.Type, Index: -1}
	if d.Index != nil {
		out.Index = *d.Index
	}
	return out
}

func (s *scope) node(i int, src *schema.Node) (*export.Node, error) {
	n := &export.Node{Target: canonicalTarget(src.Target), Metadata: src.Metadata, SingleTensor: src.Single}
	if src.Name != nil {
		n.Name = *src.Name
	} else {
		n.Name = nodeName(src, i)
	}
	s.where = fmt.Sprintf("graph.nodes[%d] (%s)", i, n.Name)
	n.Op = s.c.reg.Lookup(n.Target)
	for j := range src.Inputs {
		a, err := s.argument(&src.Inputs[j].Arg)
		if err != nil {
			return nil, err
		}
		arg := export.NamedArg{Name: src.Inputs[j].Name, Value: a, Kind: export.Positional}
		if k := src.Inputs[j].Kind; k != nil && *k == 2 {
			arg.Kind = export.Keyword
		}
		n.Args = append(n.Args, arg)
	}
	for j := range src.Outputs {
		o, err := s.output(&src.Outputs[j])
		if err != nil {
			return nil, err
		}
		export.EachValue(o, func(v *export.Value) { v.Def = n })
		n.Outputs = append(n.Outputs, o)
	}
	return n, nil
}

// nodeName is the name of a node in files that record none: that of its only output.
func nodeName(src *schema.Node, i int) string {
	if len(src.Outputs) == 1 && src.Outputs[0].Tensor != nil {
		return src.Outputs[0].Tensor.Name
	}
	return fmt.Sprintf("node_%d", i)
}

// canonicalTarget gives today's name of targets that older versions spelled otherwise.
func canonicalTarget(t string) string {
	switch t {
	case "torch.ops.map_impl":
		return "torch.ops.higher_order.map_impl"
	case "torch._higher_order_ops.wrap.wrap_with_set_grad_enabled":
		return "torch.ops.higher_order.wrap_with_set_grad_enabled"
	}
	if rest, ok := strings.CutPrefix(t, "#"); ok {
		return rest
	}
	return t
}

func (s *scope) output(a *schema.Argument) (export.Argument, error) {
	sym := func(x *schema.SymArgument, kind export.ValueKind) (export.Argument, error) {
		if x.Name == nil {
			return nil, nil
		}
		return s.define(*x.Name, kind)
	}
	switch {
	case a.Tensor != nil:
		return s.defineTensor(a.Tensor.Name)
	case a.Tensors != nil:
		out := make([]*export.Value, len(*a.Tensors))
		for i, t := range *a.Tensors {
			v, err := s.defineTensor(t.Name)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case a.SymInt != nil:
		return sym(a.SymInt, export.SymIntKind)
	case a.SymFloat != nil:
		return sym(a.SymFloat, export.SymFloatKind)
	case a.SymBool != nil:
		return sym(a.SymBool, export.SymBoolKind)
	case a.CustomObj != nil:
		return s.define(a.CustomObj.Name, export.CustomObjKind)
	case a.OptionalTensors != nil:
		out := make([]*export.Value, len(*a.OptionalTensors))
		for i, t := range *a.OptionalTensors {
			if t.Tensor == nil {
				continue
			}
			v, err := s.defineTensor(t.Tensor.Name)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	}
	return nil, nil // as_none, or a number that became constant
}

// defineTensor defines a value that is written as a tensor; what the tables list as a symbolic scalar is one.
func (s *scope) defineTensor(name string) (*export.Value, error) {
	switch {
	case s.src.TensorValues.Get(name) != nil:
	case s.src.SymIntValues.Get(name) != nil:
		return s.define(name, export.SymIntKind)
	case s.src.SymFloatValues.Get(name) != nil:
		return s.define(name, export.SymFloatKind)
	case s.src.SymBoolValues.Get(name) != nil:
		return s.define(name, export.SymBoolKind)
	default:
		return s.define(name, export.TokenKind)
	}
	return s.define(name, export.TensorKind)
}

func (s *scope) use(name string) (*export.Value, error) {
	if v := s.names[name]; v != nil {
		return v, nil
	}
	if s.c.customs[name] {
		return s.define(name, export.CustomObjKind)
	}
	return nil, s.fail("%q is used but nothing before it defines it", name)
}

func (s *scope) uses(names []schema.TensorArgument) ([]*export.Value, error) {
	out := make([]*export.Value, len(names))
	for i, t := range names {
		v, err := s.use(t.Name)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (s *scope) symArgument(a *schema.SymArgument) (export.Argument, error) {
	switch {
	case a.Name != nil:
		return s.use(*a.Name)
	case a.Int != nil:
		return *a.Int, nil
	case a.Float != nil:
		return float64(*a.Float), nil
	case a.Bool != nil:
		return *a.Bool, nil
	}
	return nil, s.fail("a symbolic argument without a value")
}

func (s *scope) symArguments(list []schema.SymArgument) (export.Argument, error) {
	out := make([]any, len(list))
	for i := range list {
		v, err := s.symArgument(&list[i])
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func floats(in []schema.Float) []float64 {
	out := make([]float64, len(in))
	for i, f := range in {
		out[i] = float64(f)
	}
	return out
}

// argument converts one argument; exactly one member of the union must be there.
func (s *scope) argument(a *schema.Argument) (export.Argument, error) {
	switch {
	case a.Tensor != nil:
		return s.use(a.Tensor.Name)
	case a.Tensors != nil:
		return s.uses(*a.Tensors)
	case a.Int != nil:
		return *a.Int, nil
	case a.Ints != nil:
		return *a.Ints, nil
	case a.Float != nil:
		return float64(*a.Float), nil
	case a.Floats != nil:
		return floats(*a.Floats), nil
	case a.String != nil:
		return *a.String, nil
	case a.Strings != nil:
		return *a.Strings, nil
	case a.SymInt != nil:
		return s.symArgument(a.SymInt)
	case a.SymInts != nil:
		return s.symArguments(*a.SymInts)
	case a.ScalarType != nil:
		dt, ok := scalarTypes[*a.ScalarType]
		if !ok {
			return nil, s.fail("scalar type %d is unknown", *a.ScalarType)
		}
		return dt, nil
	case a.MemoryFormat != nil:
		if *a.MemoryFormat < 0 || *a.MemoryFormat > int(aten.PreserveFormat) {
			return nil, s.fail("memory format %d is unknown", *a.MemoryFormat)
		}
		return aten.MemoryFormat(*a.MemoryFormat), nil
	case a.Layout != nil:
		return aten.Layout(*a.Layout), nil
	case a.Device != nil:
		return device(*a.Device), nil
	case a.Bool != nil:
		return *a.Bool, nil
	case a.Bools != nil:
		return *a.Bools, nil
	case a.SymBool != nil:
		return s.symArgument(a.SymBool)
	case a.SymBools != nil:
		return s.symArguments(*a.SymBools)
	case a.SymFloat != nil:
		return s.symArgument(a.SymFloat)
	case a.SymFloats != nil:
		return s.symArguments(*a.SymFloats)
	case a.CustomObj != nil:
		return s.use(a.CustomObj.Name)
	case a.Operator != nil:
		return export.Operator(*a.Operator), nil
	case a.Complex != nil:
		return complex(float64(a.Complex.Real), float64(a.Complex.Imag)), nil
	case a.IntLists != nil:
		return *a.IntLists, nil
	}
	return s.nested(a)
}

func (s *scope) nested(a *schema.Argument) (export.Argument, error) {
	switch {
	case a.Graph != nil:
		if a.Graph.Graph == nil {
			return nil, s.fail("subgraph %q is empty", a.Graph.Name)
		}
		where := s.where
		g, err := s.c.graph(a.Graph.Graph, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: subgraph %s: %w", where, a.Graph.Name, err)
		}
		return &export.Subgraph{Name: a.Graph.Name, Graph: g}, nil
	case a.OptionalTensors != nil:
		out := make([]*export.Value, len(*a.OptionalTensors))
		for i, t := range *a.OptionalTensors {
			if t.Tensor == nil {
				continue
			}
			v, err := s.use(t.Tensor.Name)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case a.OptionalTensor != nil:
		if a.OptionalTensor.Tensor == nil {
			return nil, nil
		}
		return s.use(a.OptionalTensor.Tensor.Name)
	case a.NestedTensors != nil:
		out := make([][]*export.Value, len(*a.NestedTensors))
		for i, l := range *a.NestedTensors {
			v, err := s.uses(l)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case a.FloatLists != nil:
		out := make([][]float64, len(*a.FloatLists))
		for i, l := range *a.FloatLists {
			out[i] = floats(l)
		}
		return out, nil
	case a.Dict != nil:
		d := &export.Dict{}
		for _, k := range a.Dict.Keys {
			v, err := s.argument(a.Dict.Get(k))
			if err != nil {
				return nil, err
			}
			d.Keys = append(d.Keys, k)
			d.Values = append(d.Values, v)
		}
		return d, nil
	}
	return nil, nil
}

// constant is the value of a constant input.
func constant(v *schema.ConstantValue) (any, error) {
	switch {
	case v.Int != nil:
		var x any
		d := json.NewDecoder(strings.NewReader(string(*v.Int)))
		d.UseNumber()
		if err := d.Decode(&x); err != nil {
			return nil, err
		}
		if n, ok := x.(json.Number); ok {
			return n.Int64()
		}
		if b, ok := x.(bool); ok {
			return b, nil
		}
		return nil, fmt.Errorf("loader: a constant input of kind %T", x)
	case v.Float != nil:
		return float64(*v.Float), nil
	case v.String != nil:
		return *v.String, nil
	case v.Bool != nil:
		return *v.Bool, nil
	}
	return nil, nil
}
