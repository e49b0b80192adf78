// Package guards checks the inputs of a call against what a program assumed while it was exported: sizes, ranges, constants,
// and the recorded guard expressions. Everything is parsed when the program is loaded; what cannot be understood fails then.
package guards

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// Input describes one user input.
type Input struct {
	Name string // Python's path: x, args[0], d['k']
	// Sizes and DType are set for tensors.
	Tensor bool
	Sizes  []symbolic.Int
	DType  tensor.DType
	// Sym is set for dynamic ints, floats and bools.
	Sym *symbolic.Expr
	// Constant is the value that the program was specialised for, if IsConstant.
	Constant   any
	IsConstant bool
}

// Range bounds an expression over symbols.
type Range struct {
	Expr     string
	Min, Max *int64
}

// Spec is what a program assumes.
type Spec struct {
	Inputs []Input
	Ranges []Range
	Guards []string // Python expressions
	// NoUnbacked leaves out ranges of symbols that no input binds.
	NoUnbacked bool
}

// Error is a guard that an input violates.
type Error struct {
	Path string // of the input, "" if the guard is about several
	Expr string
	Got  string
}

// Error is PyTorch's text, then the value seen.
func (e *Error) Error() string {
	s := "Guard failed: " + e.Expr
	if e.Got != "" {
		s += " (got " + e.Got + ")"
	}
	return s
}

// InputError is an input of the wrong kind, rank or dtype.
type InputError struct {
	Path, Want, Got string
}

// Error names the input.
func (e *InputError) Error() string {
	return fmt.Sprintf("guards: input %s: want %s, got %s", e.Path, e.Want, e.Got)
}

// Set is a compiled Spec.
type Set struct {
	inputs []Input
	ranges []compiled
	guards []guard
	solve  []equation
}

type compiled struct {
	expr     *symbolic.Expr
	text     string
	min, max *int64
}

type guard struct {
	expr    *symbolic.Expr
	text    string
	sources []source
}

// source is a leaf of a guard expression: a size, stride, offset or number of an input.
type source struct {
	input int
	what  byte // 's' size, 't' stride, 'o' offset, 'v' value
	dim   int
}

// equation says that dimension dim of an input equals expr.
type equation struct {
	input, dim int // dim -1: the input itself is the number
	expr       *symbolic.Expr
}

// Compile parses and resolves everything.
func Compile(s Spec) (*Set, error) {
	set := &Set{inputs: s.Inputs}
	bound := map[string]bool{}
	for i, in := range s.Inputs {
		if in.Sym != nil {
			set.solve = append(set.solve, equation{i, -1, in.Sym})
			in.Sym.Symbols(func(n string) { bound[n] = true })
		}
		for d, size := range in.Sizes {
			if !size.IsConst() {
				set.solve = append(set.solve, equation{i, d, size.Expr()})
				size.Expr().Symbols(func(n string) { bound[n] = true })
			}
		}
	}
	for i, r := range s.Ranges {
		e, err := symbolic.Parse(r.Expr)
		if err != nil {
			return nil, fmt.Errorf("guards: range constraint %d (%s): %w", i, r.Expr, err)
		}
		all := true
		e.Symbols(func(n string) { all = all && bound[n] })
		if all {
			set.ranges = append(set.ranges, compiled{e, r.Expr, r.Min, r.Max})
		}
	}
	paths := map[string]int{}
	for i, in := range s.Inputs {
		addPaths(paths, in.Name, i)
	}
	for i, text := range s.Guards {
		g := guard{text: text}
		e, err := symbolic.ParseSource(text, func(name, rest string) (*symbolic.Expr, int, error) {
			src, n, err := resolve(paths, name, rest)
			if err != nil {
				return nil, 0, err
			}
			g.sources = append(g.sources, src)
			return symbolic.Symbol("#"+strconv.Itoa(len(g.sources)-1), false), n, nil
		})
		if err != nil {
			return nil, fmt.Errorf("guards: guard %d (%s): %w", i, text, err)
		}
		g.expr = e
		set.guards = append(set.guards, g)
	}
	return set, nil
}

// addPaths files an input under its path, and under the form that guards use for *args (args[0] for args_0).
func addPaths(paths map[string]int, name string, i int) {
	paths[name] = i
	paths["flat_args["+strconv.Itoa(i)+"]"] = i
	root, rest := name, ""
	if j := strings.IndexAny(name, "[."); j >= 0 {
		root, rest = name[:j], name[j:]
	}
	if j := strings.LastIndexByte(root, '_'); j > 0 {
		if _, err := strconv.Atoi(root[j+1:]); err == nil {
			if alias := root[:j] + "[" + root[j+1:] + "]" + rest; paths[alias] == 0 {
				paths[alias] = i
			}
		}
	}
	paths["*['"+root+"']"+rest] = i // a member of **kwargs, whatever that is called
}

// resolve reads a source: L['x'][0].a.size()[1].
func resolve(paths map[string]int, name, rest string) (source, int, error) {
	if name != "L" {
		return source{}, 0, fmt.Errorf("unknown name %s", name)
	}
	// The path reaches to the longest prefix of steps that names an input.
	pos, path := 0, ""
	first := true
	for pos < len(rest) && (rest[pos] == '[' || (rest[pos] == '.' && !method(rest[pos:]))) {
		step, n := nextStep(rest[pos:])
		if n == 0 {
			return source{}, 0, fmt.Errorf("malformed path %s", rest)
		}
		if first {
			step = strings.Trim(step, "[]'\"")
			first = false
		}
		path += step
		pos += n
	}
	i, ok := paths[path]
	if !ok {
		if j := strings.IndexByte(path, '['); j > 0 {
			i, ok = paths["*"+path[j:]]
		}
	}
	if !ok {
		return source{}, 0, fmt.Errorf("no input is called %s", path)
	}
	tail := rest[pos:]
	for prefix, what := range map[string]byte{".size()[": 's', ".stride()[": 't', ".shape[": 's'} {
		if t, ok := strings.CutPrefix(tail, prefix); ok {
			num, _, found := strings.Cut(t, "]")
			d, err := strconv.Atoi(num)
			if !found || err != nil || d < 0 {
				return source{}, 0, fmt.Errorf("malformed dimension in %s", tail)
			}
			return source{i, what, d}, pos + len(prefix) + len(num) + 1, nil
		}
	}
	if strings.HasPrefix(tail, ".storage_offset()") {
		return source{i, 'o', 0}, pos + len(".storage_offset()"), nil
	}
	return source{i, 'v', 0}, pos, nil
}

func method(s string) bool {
	return strings.HasPrefix(s, ".size()") || strings.HasPrefix(s, ".stride()") || strings.HasPrefix(s, ".storage_offset()") || strings.HasPrefix(s, ".shape[")
}

// nextStep reads [0], ['k'] or .name; double quotes are normalised.
func nextStep(s string) (string, int) {
	if s[0] == '.' {
		n := 1
		for n < len(s) && (s[n] == '_' || s[n] >= '0' && s[n] <= '9' || s[n] >= 'a' && s[n] <= 'z' || s[n] >= 'A' && s[n] <= 'Z') {
			n++
		}
		return s[:n], n
	}
	if len(s) > 1 && (s[1] == '\'' || s[1] == '"') {
		end := strings.Index(s[2:], string(s[1])+"]")
		if end < 0 {
			return "", 0
		}
		return "['" + s[2:2+end] + "']", end + 4
	}
	end := strings.IndexByte(s, ']')
	return s[:end+1], end + 1
}

// Check holds a call's leaves against the spec and gives the values of the symbols. withGuards includes the guard expressions.
func (s *Set) Check(leaves []any, withGuards bool) (map[string]int64, error) {
	if len(leaves) != len(s.inputs) {
		return nil, &InputError{"(all)", fmt.Sprintf("%d inputs", len(s.inputs)), fmt.Sprint(len(leaves))}
	}
	for i := range s.inputs {
		if err := s.checkInput(&s.inputs[i], leaves[i]); err != nil {
			return nil, err
		}
	}
	syms, err := s.bind(leaves)
	if err != nil {
		return nil, err
	}
	env := func(n string) (any, bool) { v, ok := syms[n]; return v, ok }
	for _, r := range s.ranges {
		v, err := r.expr.EvalInt(env)
		if err != nil {
			continue
		}
		// A lower bound of 2 only says that sizes 0 and 1 were not traced: PyTorch does not enforce it.
		if r.min != nil && *r.min > 2 && v < *r.min {
			return nil, &Error{"", fmt.Sprintf("%s >= %d", s.describe(r), *r.min), strconv.FormatInt(v, 10)}
		}
		if r.max != nil && v > *r.max {
			return nil, &Error{"", fmt.Sprintf("%s <= %d", s.describe(r), *r.max), strconv.FormatInt(v, 10)}
		}
	}
	if withGuards {
		for i := range s.guards {
			if err := s.checkGuard(&s.guards[i], leaves); err != nil {
				return nil, err
			}
		}
	}
	return syms, nil
}

// describe names the input dimension that an expression came from.
func (s *Set) describe(r compiled) string {
	for _, q := range s.solve {
		if q.expr.String() == r.expr.String() {
			if q.dim < 0 {
				return s.inputs[q.input].Name
			}
			return fmt.Sprintf("%s.size()[%d]", s.inputs[q.input].Name, q.dim)
		}
	}
	return r.text
}

func (s *Set) checkInput(in *Input, x any) error {
	switch {
	case in.IsConstant:
		if !sameConstant(in.Constant, x) {
			return &Error{in.Name, fmt.Sprintf("%s == %s", in.Name, pyRepr(in.Constant)), pyRepr(x)}
		}
	case in.Tensor:
		t, ok := x.(*tensor.Tensor)
		if !ok {
			return &InputError{in.Name, "a tensor", fmt.Sprintf("%T", x)}
		}
		if t.Dim() != len(in.Sizes) {
			return &InputError{in.Name, fmt.Sprintf("%d dimensions", len(in.Sizes)), fmt.Sprint(t.Dim())}
		}
		if in.DType != tensor.Invalid && t.DType() != in.DType {
			return &InputError{in.Name, "dtype " + in.DType.String(), t.DType().String()}
		}
		for d, size := range in.Sizes {
			if n, ok := size.Const(); ok && t.Sizes()[d] != n {
				return &Error{in.Name, fmt.Sprintf("%s.size()[%d] == %d", in.Name, d, n), strconv.FormatInt(t.Sizes()[d], 10)}
			}
		}
	case in.Sym != nil:
		switch x.(type) {
		case int64, float64, bool:
		default:
			return &InputError{in.Name, "a number", fmt.Sprintf("%T", x)}
		}
	}
	return nil
}

// bind finds the symbols' values: a dimension that is one symbol gives it, a linear one is solved, the rest must agree.
func (s *Set) bind(leaves []any) (map[string]int64, error) {
	if len(s.solve) == 0 {
		return nil, nil
	}
	syms := make(map[string]int64, len(s.solve))
	value := func(q *equation) (int64, bool) {
		if q.dim >= 0 {
			return leaves[q.input].(*tensor.Tensor).Sizes()[q.dim], true
		}
		switch v := leaves[q.input].(type) {
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
	for i := range s.solve {
		if q := &s.solve[i]; q.expr.Op == symbolic.OpSymbol {
			if v, ok := value(q); ok {
				if _, done := syms[q.expr.Name]; !done {
					syms[q.expr.Name] = v
				}
			}
		}
	}
	for i := range s.solve {
		q := &s.solve[i]
		if q.expr.Op == symbolic.OpSymbol {
			continue
		}
		name, a, b, ok := q.expr.Linear()
		if !ok {
			continue
		}
		if _, done := syms[name]; done {
			continue
		}
		v, _ := value(q)
		if (v-b)%a != 0 {
			return nil, &Error{s.inputs[q.input].Name, fmt.Sprintf("%s.size()[%d] == %v", s.inputs[q.input].Name, q.dim, q.expr), strconv.FormatInt(v, 10)}
		}
		syms[name] = (v - b) / a
	}
	env := func(n string) (any, bool) { v, ok := syms[n]; return v, ok }
	for i := range s.solve {
		q := &s.solve[i]
		got, ok := value(q)
		if !ok {
			continue
		}
		want, err := q.expr.EvalInt(env)
		if err != nil {
			continue // a symbol that nothing binds
		}
		if want != got {
			name := s.inputs[q.input].Name
			return nil, &Error{name, fmt.Sprintf("%s.size()[%d] == %d", name, q.dim, want), strconv.FormatInt(got, 10)}
		}
	}
	return syms, nil
}

func (s *Set) checkGuard(g *guard, leaves []any) error {
	var fail error
	ok, err := g.expr.EvalBool(func(n string) (any, bool) {
		i, err := strconv.Atoi(n[1:])
		if err != nil || i >= len(g.sources) {
			return nil, false
		}
		src := g.sources[i]
		t, isTensor := leaves[src.input].(*tensor.Tensor)
		switch {
		case src.what == 'v':
			if isTensor || leaves[src.input] == nil {
				return nil, false
			}
			return leaves[src.input], true
		case !isTensor || (src.what != 'o' && src.dim >= t.Dim()):
			fail = &InputError{s.inputs[src.input].Name, fmt.Sprintf("a tensor with more than %d dimensions", src.dim), fmt.Sprintf("%T", leaves[src.input])}
			return nil, false
		case src.what == 's':
			return t.Sizes()[src.dim], true
		case src.what == 't':
			return t.Strides()[src.dim], true
		}
		return t.Offset(), true
	})
	if fail != nil {
		return fail
	}
	if err != nil {
		return fmt.Errorf("guards: %s: %w", g.text, err)
	}
	if !ok {
		return &Error{Expr: userText(g.text)}
	}
	return nil
}

// userText writes L['x'] as x.
func userText(s string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, "L['")
		if i < 0 {
			return b.String() + s
		}
		j := strings.Index(s[i:], "']")
		if j < 0 {
			return b.String() + s
		}
		b.WriteString(s[:i] + s[i+3:i+j])
		s = s[i+j+2:]
	}
}

func sameConstant(want, got any) bool {
	if w, ok := want.(float64); ok {
		switch g := got.(type) {
		case float64:
			return w == g || (w != w && g != g)
		case int64:
			return w == float64(g)
		}
		return false
	}
	if wb, ok := asNumber(want); ok {
		if g, ok := asNumber(got); ok {
			return wb == g
		}
		if f, ok := got.(float64); ok {
			return float64(wb) == f
		}
		return false
	}
	return want == got
}

func asNumber(v any) (int64, bool) {
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

func pyRepr(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return "'" + v + "'"
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e16 {
			return strconv.FormatFloat(v, 'f', 1, 64)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case *tensor.Tensor:
		return "a tensor"
	}
	return fmt.Sprint(v)
}
