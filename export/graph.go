package export

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// ValueKind tells what a [Value] carries.
type ValueKind uint8

// The kinds of values that flow through a graph.
const (
	TensorKind ValueKind = iota
	SymIntKind
	SymFloatKind
	SymBoolKind
	CustomObjKind
	TokenKind
	// PytreeKind is a Python container. Only the graphs of unflattened modules have such values: what enters and leaves a call.
	PytreeKind
)

// TensorMeta is what the archive records of a tensor value: the fake tensor that PyTorch saw while tracing.
type TensorMeta struct {
	DType        tensor.DType
	Sizes        []symbolic.Int
	Strides      []symbolic.Int
	Offset       symbolic.Int
	RequiresGrad bool
	Device       aten.Device
	Layout       aten.Layout
}

// Value is one named value of a graph. Its name is unique within the graph.
type Value struct {
	Name   string
	Kind   ValueKind
	Tensor *TensorMeta    // for TensorKind
	Sym    *symbolic.Expr // for the symbolic kinds; nil if the archive records none
	Hint   any            // int64, float64, bool or nil
	Class  string         // for CustomObjKind: the class's qualified name
	Def    *Node          // the node that makes it; nil for a graph input
	ID     int            // dense number within the graph, for tables
}

// Argument is an argument of a node, or an output of a graph. Its Go type tells what it is:
//
//	nil                          None
//	*Value                       a tensor, symbolic scalar, custom object or token
//	[]*Value                     a list of them; nil elements stand for None (Tensor?[])
//	[][]*Value                   nested lists of tensors
//	bool int64 float64 complex128 string
//	[]bool []int64 []float64 []string [][]int64 [][]float64
//	[]any                        a list with at least one symbolic scalar: *Value, int64, float64 or bool elements
//	tensor.DType aten.MemoryFormat aten.Layout aten.Device
//	*Subgraph                    a graph (higher-order operators)
//	Operator                     an operator as an argument
//	*Dict                        a mapping with string keys
//	Tuple                        a tuple, in the graphs of unflattened modules
type Argument = any

// Unused stands, in the graphs of unflattened modules, for a result of a call that nobody takes.
type Unused struct{}

// Tuple is a tuple of arguments.
type Tuple []Argument

// Operator names an operator that is itself an argument, such as "torch.ops.aten.add.Tensor".
type Operator string

// Subgraph is a graph given to a higher-order operator, under its attribute name.
type Subgraph struct {
	Name  string
	Graph *Graph
}

// Dict is an ordered mapping from strings to arguments.
type Dict struct {
	Keys   []string
	Values []Argument
}

// ArgKind tells how a call wrote an argument.
type ArgKind uint8

// The kinds, numbered as in the serialized schema.
const (
	UnknownArg ArgKind = iota
	Positional
	Keyword
)

// NamedArg is one argument of a node.
type NamedArg struct {
	Name  string
	Value Argument
	Kind  ArgKind
}

// NodeKind tells what a node calls.
type NodeKind uint8

// The kinds. Graphs of programs have calls of functions only; the others stand in the graphs of unflattened modules, where Target is
// the path of a submodule or attribute of the module.
const (
	CallFunction NodeKind = iota
	CallModule
	GetAttr
)

// Node is one call in a graph.
type Node struct {
	Kind   NodeKind
	Name   string
	Target string   // "torch.ops.aten.add.Tensor", "_operator.add", "torch.ops.higher_order.cond"
	Op     *aten.Op // nil for higher-order operators and plain functions
	Args   []NamedArg
	// Outputs has one element a return: *Value, []*Value, or nil for an undefined result.
	Outputs  []Argument
	Metadata map[string]string
	// SingleTensor is the archive's is_hop_single_tensor_return: for higher-order operators, whether the result is one bare
	// tensor (true) or a tuple (false); nil if not recorded.
	SingleTensor *bool
}

// Graph is a program's or a subgraph's list of calls in execution order. Values are defined before they are used.
type Graph struct {
	Inputs  []GraphInput
	Nodes   []*Node
	Outputs []Argument
	Values  []*Value // all values, indexed by Value.ID
	// SingleReturn is is_single_tensor_return: a subgraph that returns a bare value instead of a tuple.
	SingleReturn bool
}

// GraphInput is a placeholder: a value, or a constant that the program was specialised for.
type GraphInput struct {
	Name     string
	Value    *Value   // nil for a constant
	Constant Argument // meaningful if Value is nil: nil, bool, int64, float64 or string
}

// EachValue calls f for every value that arg uses, subgraphs' own values excluded.
func EachValue(arg Argument, f func(*Value)) {
	switch a := arg.(type) {
	case *Value:
		if a != nil {
			f(a)
		}
	case []*Value:
		for _, v := range a {
			if v != nil {
				f(v)
			}
		}
	case [][]*Value:
		for _, l := range a {
			EachValue(l, f)
		}
	case []any:
		for _, x := range a {
			EachValue(x, f)
		}
	case Tuple:
		EachValue([]any(a), f)
	case *Dict:
		for _, x := range a.Values {
			EachValue(x, f)
		}
	}
}
