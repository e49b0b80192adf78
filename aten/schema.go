package aten

import (
	"fmt"
	"strconv"
	"strings"
)

// Type is the type of an argument or a return in an operator schema.
type Type struct {
	Base  string // "Tensor", "int", "SymInt", "float", "bool", "str", "Scalar", "ScalarType", "Device", "Layout", "MemoryFormat", "Generator", ...
	List  bool   // "int[]", "Tensor[]"
	Size  int    // N of "int[N]", 0 if open
	Opt   bool   // "int?" or "int[]?"
	ElOpt bool   // "Tensor?[]"
	Alias string // what stands in "(a!)", without parentheses
}

// Mutable reports an alias mark with "!": the operator writes to the argument.
func (t Type) Mutable() bool { return strings.Contains(t.Alias, "!") }

// Param is one argument of a schema.
type Param struct {
	Name       string
	Type       Type
	Default    string // as written; HasDefault tells whether there is one
	HasDefault bool
	KwOnly     bool
}

// FuncSchema is a parsed operator schema.
type FuncSchema struct {
	Namespace string
	Base      string // "add" or "add_"
	Overload  string // "Tensor", or "" for the default one
	Params    []Param
	Returns   []Type
	text      string
}

// String is the schema text, with the namespace.
func (s *FuncSchema) String() string { return s.text }

// Name is "namespace.base.overload", with "default" for the unnamed overload, as torch.ops spells it.
func (s *FuncSchema) Name() string {
	o := s.Overload
	if o == "" {
		o = "default"
	}
	return s.Namespace + "." + s.Base + "." + o
}

// ParseSchema reads an operator schema in PyTorch's notation, such as
// "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor". Without "ns::" the namespace is aten.
func ParseSchema(text string) (*FuncSchema, error) {
	s := &FuncSchema{Namespace: "aten", text: text}
	open := strings.IndexByte(text, '(')
	arrow := strings.LastIndex(text, ") -> ")
	if open < 0 || arrow < open {
		return nil, fmt.Errorf("aten: schema %q: want NAME(ARGUMENTS) -> RETURNS", text)
	}
	name := text[:open]
	if ns, rest, ok := strings.Cut(name, "::"); ok {
		s.Namespace, name = ns, rest
	} else {
		s.text = "aten::" + text
	}
	s.Base, s.Overload, _ = strings.Cut(name, ".")
	kw := false
	for _, part := range splitTop(text[open+1 : arrow]) {
		if part == "*" {
			kw = true
			continue
		}
		p, err := parseParam(part)
		if err != nil {
			return nil, fmt.Errorf("aten: schema %q: %w", text, err)
		}
		p.KwOnly = kw
		s.Params = append(s.Params, p)
	}
	ret := strings.TrimSpace(text[arrow+len(") -> "):])
	if strings.HasPrefix(ret, "(") && strings.HasSuffix(ret, ")") {
		ret = ret[1 : len(ret)-1]
	}
	for _, part := range splitTop(ret) {
		// A return may have a name: "Tensor values".
		words := splitWords(part)
		s.Returns = append(s.Returns, parseType(words[0]))
	}
	return s, nil
}

func splitTop(s string) []string {
	var out []string
	depth, start := 0, 0
	inStr := byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case inStr != 0:
			if c == inStr {
				inStr = 0
			}
		case c == '"' || c == '\'':
			inStr = c
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == ',' && depth == 0:
			out = append(out, strings.TrimSpace(s[start:i]))
			start = i + 1
		}
	}
	if last := strings.TrimSpace(s[start:]); last != "" {
		out = append(out, last)
	}
	return out
}

// splitWords splits at spaces outside parentheses: "Tensor(a -> *) x" has two words.
func splitWords(s string) []string {
	var out []string
	depth, start := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ' ':
			if depth == 0 {
				out = append(out, s[start:i])
				start = i + 1
			}
		}
	}
	return append(out, s[start:])
}

func parseParam(s string) (Param, error) {
	decl, def, has := strings.Cut(s, "=")
	words := splitWords(strings.TrimSpace(decl))
	if len(words) != 2 {
		return Param{}, fmt.Errorf("argument %q: want TYPE NAME", s)
	}
	return Param{Name: words[1], Type: parseType(words[0]), Default: def, HasDefault: has}, nil
}

func parseType(s string) Type {
	var t Type
	if i := strings.IndexByte(s, '('); i >= 0 {
		if j := strings.IndexByte(s, ')'); j > i {
			t.Alias = s[i+1 : j]
			s = s[:i] + s[j+1:]
		}
	}
	if strings.HasSuffix(s, "?") {
		t.Opt = true
		s = s[:len(s)-1]
	}
	if strings.HasSuffix(s, "]") {
		i := strings.LastIndexByte(s, '[')
		t.List = true
		t.Size, _ = strconv.Atoi(s[i+1 : len(s)-1])
		s = s[:i]
		if strings.HasSuffix(s, "?") {
			t.ElOpt = true
			s = s[:len(s)-1]
		}
	}
	t.Base = s
	return t
}
