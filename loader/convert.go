package loader

import (
	"fmt"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/schema"
	"github.com/pt2go/pt2/symbolic"
)

// maxNesting bounds subgraphs within subgraphs.
const maxNesting = 64

// converter turns one program's serialized form into the program model.
type converter struct {
	reg   *aten.Registry
	depth int
	exprs map[string]*symbolic.Expr
	// customs are custom objects of the constants, which nodes may name without an input.
	customs map[string]bool
}

func newConverter(reg *aten.Registry) *converter {
	return &converter{reg: reg, exprs: map[string]*symbolic.Expr{}, customs: map[string]bool{}}
}

// scope is one graph under construction.
type scope struct {
	c       *converter
	g       *export.Graph
	names   map[string]*export.Value
	tensors map[string]*schema.TensorMeta
	ints    map[string]*schema.SymInt
	floats  map[string]*schema.SymFloat
	bools   map[string]*schema.SymBool
	customs map[string]*schema.CustomObjArgument
	nodes   map[string]bool // names made for nodes that have none
	where   string
}

// index finds the entries of a table by name.
func index[V any](m schema.Map[V]) map[string]*V {
	out := make(map[string]*V, len(m))
	for i := range m {
		out[m[i].Key] = &m[i].Value
	}
	return out
}

func (s *scope) fail(format string, args ...any) error {
	return &ProgramError{s.where, fmt.Sprintf(format, args...)}
}

// graph converts src; specs (nil for subgraphs) name constant inputs.
func (c *converter) graph(src *schema.Graph, specs []schema.InputSpec) (*export.Graph, error) {
	if c.depth++; c.depth > maxNesting {
		return nil, &ProgramError{"graph", fmt.Sprintf("subgraphs are nested more than %d deep", maxNesting)}
	}
	defer func() { c.depth-- }()
	s := &scope{
		c: c, nodes: map[string]bool{}, g: &export.Graph{SingleReturn: src.IsSingleTensorReturn}, where: "graph.inputs",
		names:   make(map[string]*export.Value, len(src.TensorValues)),
		tensors: index(src.TensorValues), ints: index(src.SymIntValues), floats: index(src.SymFloatValues),
		bools: index(src.SymBoolValues), customs: index(src.CustomObjValues),
	}
	for i := range src.Inputs {
		in, err := s.input(i, &src.Inputs[i], specs)
		if err != nil {
			return nil, err
		}
		s.g.Inputs = append(s.g.Inputs, in)
	}
	s.g.Nodes = make([]*export.Node, 0, len(src.Nodes))
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

func (s *scope) input(i int, in *schema.Argument, specs []schema.InputSpec) (export.GraphInput, error) {
	var name string
	kind := export.TensorKind
	switch a := in.Value.(type) {
	case schema.TensorArgument:
		name = a.Name
		if i < len(specs) {
			if _, ok := specs[i].Value.(*schema.InputTokenSpec); ok {
				kind = export.TokenKind
			}
		}
	case schema.SymIntArgument:
		name, kind = a.Name, export.SymIntKind
	case schema.SymFloatArgument:
		name, kind = a.Name, export.SymFloatKind
	case schema.SymBoolArgument:
		name, kind = a.Name, export.SymBoolKind
	case schema.CustomObjArgument:
		name, kind = a.Name, export.CustomObjKind
	}
	if name == "" {
		return s.constantInput(i, in, specs)
	}
	v, err := s.define(name, kind)
	return export.GraphInput{Name: name, Value: v}, err
}

// constantInput is an input that the program was specialised for. Its name stands in its spec.
func (s *scope) constantInput(i int, in *schema.Argument, specs []schema.InputSpec) (export.GraphInput, error) {
	out := export.GraphInput{Name: fmt.Sprintf("arg%d", i)}
	if i < len(specs) {
		if c, ok := specs[i].Value.(*schema.InputToConstantInputSpec); ok {
			if c.Name != "" {
				out.Name = c.Name
			}
			out.Constant = c.Value.Value
			return out, nil
		}
	}
	a, err := s.argument(in)
	switch a.(type) {
	case nil, bool, int64, float64, string:
	default:
		return out, s.fail("input %d is neither a value nor a plain constant (%s)", i, in.Tag)
	}
	out.Constant = a
	return out, err
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
	case export.TensorKind, export.TokenKind:
		if m := s.tensors[name]; m != nil {
			v.Tensor, err = s.c.meta(m)
		}
	case export.SymIntKind:
		if m := s.ints[name]; m != nil {
			if m.Expr == nil {
				v.Sym, v.Hint = symbolic.Const(m.Int), m.Int
			} else {
				v.Sym, v.Hint, err = s.c.sym(m.Expr)
			}
		}
	case export.SymFloatKind:
		if m := s.floats[name]; m != nil {
			if v.Sym, v.Hint, err = s.c.sym(m.Expr); m.Expr == nil {
				v.Hint = m.Float
			}
		}
	case export.SymBoolKind:
		if m := s.bools[name]; m != nil {
			if v.Sym, v.Hint, err = s.c.sym(m.Expr); m.Expr == nil {
				v.Hint = m.Bool
			}
		}
	case export.CustomObjKind:
		if m := s.customs[name]; m != nil {
			v.Class = m.ClassFQN
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

func (c *converter) sym(e *schema.SymExpr) (*symbolic.Expr, any, error) {
	if e == nil {
		return nil, nil, nil
	}
	x, err := c.expr(e.Expr)
	return x, e.Hint, err
}

func (c *converter) symInt(s *schema.SymInt) (symbolic.Int, error) {
	if s.Expr == nil {
		return symbolic.N(s.Int), nil
	}
	e, err := c.expr(s.Expr.Expr)
	if err != nil {
		return symbolic.Int{}, err
	}
	h, _ := s.Expr.Hint.(int64)
	return symbolic.FromExpr(e, h), nil
}

func (c *converter) symInts(in []schema.SymInt, out []symbolic.Int) (err error) {
	for i := range in {
		if out[i], err = c.symInt(&in[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *converter) meta(m *schema.TensorMeta) (*export.TensorMeta, error) {
	dt, err := dtypeOf(m.DType)
	if err != nil {
		return nil, err
	}
	n := len(m.Sizes)
	if n != len(m.Strides) {
		return nil, fmt.Errorf("%d sizes but %d strides", n, len(m.Strides))
	}
	ints := make([]symbolic.Int, 2*n)
	out := &export.TensorMeta{DType: dt, Sizes: ints[:n:n], Strides: ints[n:], RequiresGrad: m.RequiresGrad,
		Device: deviceOf(m.Device), Layout: aten.Layout(m.Layout)}
	if err := c.symInts(m.Sizes, out.Sizes); err != nil {
		return nil, err
	}
	if err := c.symInts(m.Strides, out.Strides); err != nil {
		return nil, err
	}
	out.Offset, err = c.symInt(&m.StorageOffset)
	return out, err
}

func (s *scope) node(i int, src *schema.Node) (*export.Node, error) {
	n := &export.Node{Name: src.Name, Target: src.Target, Metadata: make(map[string]string, len(src.Metadata)), SingleTensor: src.IsHOPSingleTensorReturn}
	for _, m := range src.Metadata {
		n.Metadata[m.Key] = m.Value
	}
	if rest, ok := strings.CutPrefix(n.Target, "#"); ok {
		n.Target = rest
	}
	if n.Name == "" {
		n.Name = s.nodeName(src)
	}
	s.where = fmt.Sprintf("graph.nodes[%d] (%s)", i, n.Name)
	n.Op = s.c.reg.Lookup(n.Target)
	n.Args = make([]export.NamedArg, 0, len(src.Inputs))
	for j := range src.Inputs {
		in := &src.Inputs[j]
		a, err := s.argument(&in.Arg)
		if err != nil {
			return nil, err
		}
		n.Args = append(n.Args, export.NamedArg{Name: in.Name, Value: a, Kind: argKind(n.Op, in)})
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

// argKind tells how a call wrote an argument. Files before PyTorch 2.7 do not say: there what has a default is a keyword.
func argKind(op *aten.Op, in *schema.NamedArgument) export.ArgKind {
	switch in.Kind {
	case schema.Positional:
		return export.Positional
	case schema.Keyword:
		return export.Keyword
	}
	if op != nil && in.Name != "" {
		for _, p := range op.Signature().Params {
			if p.Name == in.Name && (p.KwOnly || p.HasDefault) {
				return export.Keyword
			}
		}
	}
	return export.Positional
}

// nodeName is the name of a node in files that record none: that of its only output, else one made of its target, as PyTorch does.
func (s *scope) nodeName(src *schema.Node) string {
	hop := strings.HasPrefix(src.Target, "torch.ops.higher_order.")
	tuple := hop && src.IsHOPSingleTensorReturn != nil && !*src.IsHOPSingleTensorReturn
	if len(src.Outputs) == 1 && !tuple {
		switch o := src.Outputs[0].Value.(type) {
		case schema.TensorArgument:
			return o.Name
		case schema.SymIntArgument:
			if o.Name != "" {
				return o.Name
			}
		case schema.SymFloatArgument:
			if o.Name != "" {
				return o.Name
			}
		case schema.SymBoolArgument:
			if o.Name != "" {
				return o.Name
			}
		}
	}
	base := export.TargetName(src.Target)
	name := base
	for i := 1; s.taken(name); i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	s.nodes[name] = true
	return name
}

// taken reports a name that the graph uses anywhere, or that was made for another node.
func (s *scope) taken(name string) bool {
	return s.nodes[name] || s.names[name] != nil || s.tensors[name] != nil || s.ints[name] != nil || s.floats[name] != nil || s.bools[name] != nil
}

// output defines the values of one result.
func (s *scope) output(a *schema.Argument) (export.Argument, error) {
	sym := func(name string, kind export.ValueKind) (export.Argument, error) {
		if name == "" {
			return nil, nil // became constant
		}
		return s.define(name, kind)
	}
	switch x := a.Value.(type) {
	case schema.TensorArgument:
		return s.defineTensor(x.Name)
	case []schema.TensorArgument:
		out := make([]*export.Value, len(x))
		for i := range x {
			v, err := s.defineTensor(x[i].Name)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case []schema.OptionalTensorArgument:
		out := make([]*export.Value, len(x))
		for i := range x {
			if x[i].Tensor == nil {
				continue
			}
			v, err := s.defineTensor(x[i].Tensor.Name)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case schema.OptionalTensorArgument:
		if x.Tensor == nil {
			return nil, nil
		}
		return s.defineTensor(x.Tensor.Name)
	case schema.SymIntArgument:
		return sym(x.Name, export.SymIntKind)
	case schema.SymFloatArgument:
		return sym(x.Name, export.SymFloatKind)
	case schema.SymBoolArgument:
		return sym(x.Name, export.SymBoolKind)
	case schema.CustomObjArgument:
		return s.define(x.Name, export.CustomObjKind)
	}
	return nil, nil // as_none, or a number that became constant
}

// defineTensor defines a value that is written as a tensor; what the tables list as a symbolic scalar is one, and what no table
// lists is a token.
func (s *scope) defineTensor(name string) (*export.Value, error) {
	kind := export.TokenKind
	switch {
	case s.tensors[name] != nil:
		kind = export.TensorKind
	case s.ints[name] != nil:
		kind = export.SymIntKind
	case s.floats[name] != nil:
		kind = export.SymFloatKind
	case s.bools[name] != nil:
		kind = export.SymBoolKind
	}
	return s.define(name, kind)
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
	for i := range names {
		v, err := s.use(names[i].Name)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}
