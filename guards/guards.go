// Package guards checks the inputs of a call against what a program assumed while it was exported: sizes, ranges, constants,
// and the recorded guard expressions. Everything is parsed when the program is loaded; what cannot be understood fails then.
package guards

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// Input describes one user input.
type Input struct {
	Name string // by the names of forward's parameters: x, args_0, d['k']
	// KeyPath is the place in the call, such as *args[0]['k'] or 'n' for a keyword; Name stands for it if it is empty.
	KeyPath string
	// Sizes and DType are set for tensors.
	Tensor bool
	Sizes  []symbolic.Int
	DType  tensor.DType
	// Sym is set for dynamic ints, floats and bools.
	Sym *symbolic.Expr
	// Constant is the value that the program was specialised for, if IsConstant. None takes any value, as in PyTorch.
	Constant   any
	IsConstant bool
}

func (in *Input) keyPath() string {
	if in.KeyPath != "" {
		return in.KeyPath
	}
	return in.Name
}

// Range bounds an expression over symbols. Only ranges of expressions that are an input's size or value are checked.
type Range struct {
	Expr     string
	Min, Max *int64 // inclusive, nil for no bound
}

// Spec is what a program assumes.
type Spec struct {
	Inputs []Input
	Ranges []Range
	Guards []string // Python expressions
}

// Set is a compiled Spec. It is safe for concurrent use.
type Set struct {
	inputs  []Input
	derived []check
	hook    []check
	linear  []check // relations to symbols that an input binds, which older programs do not record as guards
	guards  []guard
	paths   map[string]int
	sources []source // of all guards
	binds   []binding
}

// binding gives a symbol its value: (value of src - b) / a.
type binding struct {
	symbol string
	src    source
	a, b   int64
}

// Compile parses and resolves everything. What is not understood is a *[CompileError].
func Compile(s Spec) (*Set, error) {
	set := &Set{inputs: s.Inputs, paths: inputPaths(s.Inputs)}
	ranges := make(map[string]Range, len(s.Ranges))
	for i, r := range s.Ranges {
		e, err := symbolic.Parse(r.Expr)
		if err != nil {
			return nil, &CompileError{"range constraint", i, r.Expr, err}
		}
		ranges[e.String()] = r
	}
	d := deriver{set: set, ranges: ranges}
	d.run()
	slots := map[source]int{}
	for i, text := range s.Guards {
		if err := set.addGuard(text, slots); err != nil {
			return nil, &CompileError{"guard", i, text, err}
		}
	}
	return set, nil
}

// Check holds a call's leaves against the spec and gives the values of the symbols that inputs bind. With guards a violation
// is an *[Error] and the recorded guards are checked too; without them, sizes and values are checked as PyTorch does it then,
// and a violation is an *[InputError]. Inputs of the wrong kind, rank or dtype are an *[InputError] in both.
func (s *Set) Check(leaves []any, withGuards bool) (map[string]int64, error) {
	if len(leaves) != len(s.inputs) {
		return nil, &InputError{Path: "*args", Want: fmt.Sprint(len(s.inputs)), Got: fmt.Sprint(len(leaves)),
			text: fmt.Sprintf("Unexpected number of inputs (expected %d, got %d)", len(s.inputs), len(leaves))}
	}
	for i := range s.inputs {
		if err := s.checkKind(&s.inputs[i], leaves[i]); err != nil {
			return nil, err
		}
	}
	checks := s.derived
	if !withGuards {
		checks = s.hook
	}
	for i := range checks {
		if !checks[i].holds(leaves) {
			return nil, s.failed(&checks[i], leaves, withGuards)
		}
	}
	if withGuards {
		if err := s.checkGuards(leaves); err != nil {
			return nil, err
		}
		for i := range s.linear {
			if !s.linear[i].holds(leaves) {
				return nil, s.failed(&s.linear[i], leaves, true)
			}
		}
	}
	return s.bind(leaves), nil
}

func (s *Set) bind(leaves []any) map[string]int64 {
	if len(s.binds) == 0 {
		return nil
	}
	syms := make(map[string]int64, len(s.binds))
	for _, b := range s.binds {
		if v, ok := b.src.integer(leaves); ok && (v-b.b)%b.a == 0 {
			syms[b.symbol] = (v - b.b) / b.a
		}
	}
	return syms
}

// checkKind refuses what no kernel could work with.
func (s *Set) checkKind(in *Input, x any) error {
	switch {
	case in.Tensor:
		t, ok := x.(*tensor.Tensor)
		if !ok || t == nil {
			return &InputError{Path: in.keyPath(), Want: "a tensor", Got: pyType(x)}
		}
		if t.Dim() != len(in.Sizes) {
			want, got := sizeText(in.Sizes), sizeText(t.Sizes())
			return &InputError{Path: in.keyPath() + ".shape", Want: want, Got: got,
				text: fmt.Sprintf("Unexpected number of dimensions in input at %s.shape (expected %s, got %s)", in.keyPath(), want, got)}
		}
		if in.DType != tensor.Invalid && t.DType() != in.DType && !(t.DType().IsInt() && in.DType.IsInt()) {
			return &InputError{Path: in.keyPath(), Want: "a tensor of dtype torch." + in.DType.String(), Got: "torch." + t.DType().String()}
		}
	case in.Sym != nil:
		switch x.(type) {
		case int64, float64, bool:
		default:
			return &InputError{Path: in.keyPath(), Want: "a number", Got: pyType(x)}
		}
	}
	return nil
}

func sizeText[T any](sizes []T) string {
	parts := make([]string, len(sizes))
	for i, n := range sizes {
		parts[i] = fmt.Sprint(n)
	}
	return "torch.Size([" + strings.Join(parts, ", ") + "])"
}

// integer reads a source; ok is false if it is no integer or not there.
func (s source) integer(leaves []any) (int64, bool) {
	if s.what == 'v' {
		return asInt(leaves[s.input])
	}
	t, ok := leaves[s.input].(*tensor.Tensor)
	if !ok || s.dim >= t.Dim() && s.what != 'o' {
		return 0, false
	}
	switch s.what {
	case 's':
		return t.Sizes()[s.dim], true
	case 't':
		return t.Strides()[s.dim], true
	}
	return t.Offset(), true
}

func asInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// value reads a source as a leaf for a message.
func (s source) value(leaves []any) any {
	if s.what == 'v' {
		return leaves[s.input]
	}
	if n, ok := s.integer(leaves); ok {
		return n
	}
	return nil
}

// text names a source by the parameters of forward.
func (s *Set) text(src source) string {
	name := s.inputs[src.input].Name
	switch src.what {
	case 's':
		return name + ".size()[" + strconv.Itoa(src.dim) + "]"
	case 't':
		return name + ".stride()[" + strconv.Itoa(src.dim) + "]"
	case 'o':
		return name + ".storage_offset()"
	}
	return name
}

// place names a source by its place in the call.
func (s *Set) place(src source) string {
	p := s.inputs[src.input].keyPath()
	if src.what == 's' {
		p += ".shape[" + strconv.Itoa(src.dim) + "]"
	}
	return p
}
