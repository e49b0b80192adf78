package export

import (
	"strings"

	"github.com/pt2go/pt2/symbolic"
)

// String is the text that PyTorch's print(ep) gives: the graph as code, the signature and the range constraints.
func (p *Program) String() string {
	var b strings.Builder
	b.WriteString("ExportedProgram:\n    ")
	b.WriteString(indent(p.p.Graph.Code("GraphModule"), true))
	b.WriteString("\nGraph signature:")
	b.WriteString(indent(p.p.Signature.String(), true))
	b.WriteString("\nRange constraints: ")
	b.WriteString(p.rangesText())
	b.WriteString("\n")
	return b.String()
}

// Code is the graph as a Python module class, in the form of PyTorch's print_readable: types as annotations, one line a call,
// values set to None after their last use, subgraphs as nested classes.
func (g *Graph) Code(class string) string {
	f := flatten(g)
	var b strings.Builder
	b.WriteString("class " + class + "(torch.nn.Module):\n")
	b.WriteString("    " + indent(f.text(), false) + "\n")
	seen := map[string]bool{}
	for i := len(f.subgraphs) - 1; i >= 0; i-- { // a later module of the same name replaces an earlier one
		s := f.subgraphs[i]
		if seen[s.Name] {
			f.subgraphs = append(f.subgraphs[:i], f.subgraphs[i+1:]...)
		}
		seen[s.Name] = true
	}
	for _, s := range f.subgraphs {
		b.WriteString("\n    " + indent(s.Graph.Code(s.Name), false))
	}
	return b.String()
}

// indent moves all lines but the first by four spaces; empty lines stay empty unless all is set.
func indent(text string, all bool) string {
	lines := strings.Split(text, "\n")
	for i := 1; i < len(lines); i++ {
		if all || lines[i] != "" {
			lines[i] = "    " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// fxNode is a node in PyTorch's sense: there the elements of a tuple result and subgraphs are nodes of their own.
type fxNode struct {
	name       string
	annotation string
	code       string // what stands right of the equals sign
	plain      string // of a placeholder: its name in the graph, where names that code may not use are no fault
	inputs     []*fxNode
	users      int
	metadata   map[string]string
	output     bool

	call  *Node     // for a call
	of    *fxNode   // for the element of a result: the node that has it,
	index int       // and its place there
	attr  *Subgraph // for a subgraph
}

// flat is a graph as PyTorch's list of nodes.
type flat struct {
	g         *Graph
	inputs    []*fxNode
	nodes     []*fxNode
	values    map[*Value]*fxNode
	subgraphs []*Subgraph
	attrs     map[*Subgraph]*fxNode
	names     *Namespace
}

func flatten(g *Graph) *flat {
	f := &flat{g: g, values: map[*Value]*fxNode{}, attrs: map[*Subgraph]*fxNode{}, names: NewNamespace()}
	for _, in := range g.Inputs {
		n := &fxNode{name: in.Name}
		if in.Value != nil {
			n.annotation = annotation(in.Value)
			f.values[in.Value] = n
		}
		n.code, n.plain = in.Name, in.Name
		if in.Value != nil {
			n.plain = in.Value.Name
		}
		n.name = f.names.Create(n.plain)
		f.inputs = append(f.inputs, n)
	}
	for _, n := range g.Nodes {
		f.call(n)
	}
	out := &fxNode{output: true}
	texts := make([]string, len(g.Outputs))
	for i, o := range g.Outputs {
		texts[i] = f.repr(o, out)
	}
	switch {
	case g.SingleReturn && len(texts) == 1:
		out.code = texts[0]
	case len(texts) == 1:
		out.code = "(" + texts[0] + ",)"
	default:
		out.code = "(" + strings.Join(texts, ", ") + ")"
	}
	f.nodes = append(f.nodes, out)
	return f
}

// add appends a node under a name that is free.
func (f *flat) add(n *fxNode) *fxNode {
	n.name = f.names.Create(n.name)
	f.nodes = append(f.nodes, n)
	return n
}

// use notes that user takes n.
func use(user, n *fxNode) {
	for _, x := range user.inputs {
		if x == n {
			return
		}
	}
	user.inputs = append(user.inputs, n)
	n.users++
}

// call adds a node, the subgraphs among its arguments before it, the elements of its results after it.
func (f *flat) call(n *Node) {
	x := &fxNode{name: n.Name, metadata: n.Metadata, call: n}
	var args, named []string
	var order []NamedArg
	for _, a := range n.Args {
		if a.Kind != Keyword {
			order = append(order, a)
		}
	}
	positional := len(order)
	for _, a := range n.Args {
		if a.Kind == Keyword {
			order = append(order, a)
		}
	}
	for i, a := range order {
		text := f.repr(a.Value, x)
		args = append(args, text)
		if i >= positional {
			text = a.Name + " = " + text
		}
		named = append(named, text)
	}
	switch n.Kind {
	case GetAttr:
		x.code = attribute(n.Target)
	case CallModule:
		x.code = attribute(n.Target) + "(" + strings.Join(named, ", ") + ")"
	default:
		x.code = f.callText(n.Target, args, named)
	}
	f.results(n, x)
}

// operators are the functions of Python's operator module that are printed as such.
var operators = map[string]string{
	"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "div": "/", "mod": "%", "pow": "**", "lshift": "<<", "rshift": ">>",
	"and_": "&", "or_": "|", "xor": "^", "matmul": "@", "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=",
}

func (f *flat) callText(target string, args, named []string) string {
	if op, ok := strings.CutPrefix(target, "_operator."); ok {
		switch {
		case operators[op] != "" && len(args) == 2:
			return args[0] + " " + operators[op] + " " + args[1]
		case op == "neg" && len(args) == 1:
			return "-" + args[0]
		case op == "getitem" && len(args) == 2:
			return args[0] + "[" + args[1] + "]"
		}
	}
	if !strings.HasPrefix(target, "torch.") {
		target = strings.ReplaceAll(target, ".", "_")
	}
	return target + "(" + strings.Join(named, ", ") + ")"
}

// results adds the node itself and one for each element of a tuple or list result.
func (f *flat) results(n *Node, x *fxNode) {
	hop := strings.HasPrefix(n.Target, "torch.ops.higher_order.")
	tuple := hop && n.SingleTensor != nil && !*n.SingleTensor
	if len(n.Outputs) == 1 && !tuple {
		switch o := n.Outputs[0].(type) {
		case *Value:
			x.annotation = annotation(o)
			f.values[o] = f.add(x)
			return
		case []*Value:
			f.add(x)
			for i, v := range o {
				f.element(x, i, v)
			}
			return
		case nil:
			if !hop {
				x.name = TargetName(n.Target) + "_unused"
			}
			f.add(x)
			return
		}
	}
	f.add(x)
	for i, o := range n.Outputs {
		switch o := o.(type) {
		case *Value:
			f.element(x, i, o)
		case []*Value:
			list := f.getitem(x, i, "getitem")
			for j, v := range o {
				f.element(list, j, v)
			}
		case nil:
			f.getitem(x, i, "as_none")
		}
	}
}

func (f *flat) element(x *fxNode, i int, v *Value) {
	if v == nil {
		f.getitem(x, i, "as_none")
		return
	}
	e := f.getitem(x, i, v.Name)
	e.annotation = annotation(v)
	f.values[v] = e
}

func (f *flat) getitem(x *fxNode, i int, name string) *fxNode {
	e := &fxNode{name: name, code: x.name + "[" + itoa(i) + "]", metadata: x.metadata, of: x, index: i}
	use(e, x)
	return f.add(e)
}

// text is the body of the class: the forward method.
func (f *flat) text() string {
	var b strings.Builder
	b.WriteString("def forward(self")
	for _, n := range f.inputs {
		b.WriteString(", " + n.code + n.annotation)
	}
	b.WriteString("):\n")
	var body strings.Builder
	for _, n := range f.inputs {
		if n.name != n.code {
			body.WriteString(n.name + " = " + n.code + "\n")
		}
	}
	dead := f.lastUses()
	previous := ""
	for i, n := range f.nodes {
		if n.output {
			body.WriteString("return " + n.code + "\n")
			continue
		}
		if s := summary(n.metadata); s != previous {
			body.WriteString("\n" + s + "\n")
			previous = s
		}
		body.WriteString(n.name + n.annotation + " = " + n.code)
		gone := dead[i]
		if n.users == 0 {
			gone = append(gone, n)
		}
		if len(gone) > 0 {
			body.WriteString(";  ")
			for _, d := range gone {
				body.WriteString(d.name + " = ")
			}
			body.WriteString("None")
		}
		body.WriteString("\n")
	}
	for _, line := range strings.Split(strings.TrimRight(strings.TrimLeft(body.String(), "\n"), "\n"), "\n") {
		if line != "" {
			b.WriteString("    " + line)
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// lastUses finds for each node the values that nobody needs after it.
func (f *flat) lastUses() [][]*fxNode {
	out := make([][]*fxNode, len(f.nodes))
	seen := map[*fxNode]bool{}
	for i := len(f.nodes) - 1; i >= 0; i-- {
		for _, in := range f.nodes[i].inputs {
			if !seen[in] {
				seen[in] = true
				out[i] = append(out[i], in)
			}
		}
	}
	return out
}

// eachExpr calls f for every expression that the graph's and its subgraphs' values record, but for storage offsets, which PyTorch
// does not read back.
func (g *Graph) eachExpr(f func(*symbolic.Expr)) {
	for _, v := range g.Values {
		if v.Sym != nil {
			f(v.Sym)
		}
		if v.Tensor == nil {
			continue
		}
		for _, list := range [][]symbolic.Int{v.Tensor.Sizes, v.Tensor.Strides} {
			for _, n := range list {
				if !n.IsConst() {
					f(n.Expr())
				}
			}
		}
	}
	for _, n := range g.Nodes {
		for _, a := range n.Args {
			if s, ok := a.Value.(*Subgraph); ok {
				s.Graph.eachExpr(f)
			}
		}
	}
}
