package export

import (
	"fmt"
	"strings"

	"github.com/pt2go/pt2/aten"
)

// String is the text that PyTorch's print(ep.graph) gives: one line a node with its users, target and arguments. Subgraphs stand
// there by name; see [Graph.Code] for them.
func (g *Graph) String() string {
	f := flatten(g)
	var b strings.Builder
	b.WriteString("graph():\n")
	line := func(n *fxNode, op, target, args string) {
		fmt.Fprintf(&b, "    %%%s : [num_users=%d] = %s[target=%s]%s\n", n.plainName(), n.users, op, target, args)
	}
	for _, n := range f.inputs {
		line(n, "placeholder", n.code, "")
	}
	for _, n := range f.nodes {
		switch {
		case n.output:
			b.WriteString("    return " + f.outputText())
		case n.attr != nil:
			line(n, "get_attr", n.attr.Name, "")
		case n.call != nil && n.call.Kind == GetAttr:
			line(n, "get_attr", n.call.Target, "")
		case n.call != nil && n.call.Kind == CallModule:
			line(n, "call_module", n.call.Target, f.callArgs(n.call))
		case n.of != nil:
			line(n, "call_function", "operator.getitem", fmt.Sprintf("(args = (%%%s, %d), kwargs = {})", n.of.plainName(), n.index))
		default:
			target := n.call.Target
			if op, ok := strings.CutPrefix(target, "_operator."); ok {
				target = "operator." + op
			}
			line(n, "call_function", target, f.callArgs(n.call))
		}
	}
	return b.String()
}

// plainName is a node's name in the graph.
func (n *fxNode) plainName() string {
	if n.plain != "" {
		return n.plain
	}
	return n.name
}

func (f *flat) callArgs(n *Node) string {
	var args, kwargs []string
	for _, a := range n.Args {
		if a.Kind == Keyword {
			kwargs = append(kwargs, a.Name+": "+f.format(a.Value, "%"))
		} else {
			args = append(args, f.format(a.Value, "%"))
		}
	}
	return "(args = " + tuple(args) + ", kwargs = {" + strings.Join(kwargs, ", ") + "})"
}

func tuple(parts []string) string {
	if len(parts) == 1 {
		return "(" + parts[0] + ",)"
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func (f *flat) outputText() string {
	parts := make([]string, len(f.g.Outputs))
	for i, o := range f.g.Outputs {
		parts[i] = f.format(o, "")
	}
	if f.g.SingleReturn && len(parts) == 1 {
		return parts[0]
	}
	return tuple(parts)
}

// format is Python's str of an argument, nodes behind a mark.
func (f *flat) format(arg Argument, mark string) string {
	switch a := arg.(type) {
	case *Value:
		if a == nil {
			return "None"
		}
		if n := f.values[a]; n != nil {
			return mark + n.plainName()
		}
		return mark + a.Name
	case *Subgraph:
		return mark + f.attrs[a].name
	case []*Value:
		return formatList(f, a, mark)
	case [][]*Value:
		return formatList(f, a, mark)
	case []any:
		return formatList(f, a, mark)
	case Tuple:
		parts := make([]string, len(a))
		for i, x := range a {
			parts[i] = f.format(x, mark)
		}
		return tuple(parts)
	case []string:
		return formatList(f, a, mark)
	case string:
		return a
	case Operator:
		return strings.TrimPrefix(string(a), "torch.ops.")
	case aten.Device:
		if a.Index < 0 {
			return a.Type
		}
		return fmt.Sprintf("%s:%d", a.Type, a.Index)
	case complex128:
		return complexText(a)
	case *Dict:
		parts := make([]string, len(a.Keys))
		for i, k := range a.Keys {
			parts[i] = k + ": " + f.format(a.Values[i], mark)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return f.repr(arg, &fxNode{})
}

func formatList[T any](f *flat, list []T, mark string) string {
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = f.format(x, mark)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
