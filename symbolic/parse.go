package symbolic

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// SyntaxError is a text that is no expression.
type SyntaxError struct {
	Text   string
	Offset int
	Msg    string
}

// Error gives the place.
func (e *SyntaxError) Error() string {
	t := e.Text
	if len(t) > 80 {
		t = t[:80] + "..."
	}
	return fmt.Sprintf("symbolic: %q, offset %d: %s", t, e.Offset, e.Msg)
}

// Limits against hostile files.
const (
	maxText  = 1 << 16
	maxDepth = 200
)

// Source turns a name with its suffixes, such as L['x'].size()[0], into a leaf. It gets the text after the name and returns
// how much of it belongs to the leaf.
type Source func(name, rest string) (leaf *Expr, used int, err error)

// Parse reads an expression in either serialized form: sympy's srepr (Add(Symbol('s0', integer=True), Integer(1))) or
// Python-like text (s0 + 1, 2*s0 // 3, Max(1, u0), s0**2, Eq(u0, 4), x < 3 and not y).
func Parse(text string) (*Expr, error) { return ParseSource(text, nil) }

// ParseSource is Parse with names resolved by src (nil makes each a symbol).
func ParseSource(text string, src Source) (*Expr, error) {
	if len(text) > maxText {
		return nil, &SyntaxError{text, maxText, "longer than 64 KiB"}
	}
	p := &parser{text: text, src: src}
	e, err := p.ternary()
	if err != nil {
		return nil, err
	}
	if p.space(); p.pos != len(text) {
		return nil, p.fail("unexpected %q", text[p.pos:min(len(text), p.pos+10)])
	}
	return e, nil
}

type parser struct {
	text  string
	pos   int
	depth int
	src   Source
}

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{p.text, p.pos, fmt.Sprintf(format, args...)}
}

func (p *parser) space() {
	for p.pos < len(p.text) && (p.text[p.pos] == ' ' || p.text[p.pos] == '\n' || p.text[p.pos] == '\t') {
		p.pos++
	}
}

// eat consumes a token if it is next.
func (p *parser) eat(tok string) bool {
	p.space()
	if !strings.HasPrefix(p.text[p.pos:], tok) {
		return false
	}
	if end := p.pos + len(tok); isWord(tok[0]) && end < len(p.text) && isWord(p.text[end]) {
		return false
	}
	p.pos += len(tok)
	return true
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func call(op Op, args ...*Expr) *Expr { return &Expr{Op: op, Args: args} }

func (p *parser) ternary() (*Expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	a, err := p.or()
	if err != nil || !p.eat("if") {
		return a, err
	}
	c, err := p.or()
	if err != nil {
		return nil, err
	}
	if !p.eat("else") {
		return nil, p.fail("want else")
	}
	b, err := p.ternary()
	return call("Where", c, a, b), err
}

func (p *parser) or() (*Expr, error) { return p.chain("Or", p.and, "or", "|") }

func (p *parser) and() (*Expr, error) { return p.chain("And", p.not, "and", "&") }

func (p *parser) chain(op Op, next func() (*Expr, error), toks ...string) (*Expr, error) {
	a, err := next()
	if err != nil {
		return nil, err
	}
	args := []*Expr{a}
	for p.eatAny(toks...) != "" {
		if a, err = next(); err != nil {
			return nil, err
		}
		args = append(args, a)
	}
	if len(args) == 1 {
		return args[0], nil
	}
	return call(op, args...), nil
}

func (p *parser) eatAny(toks ...string) string {
	for _, t := range toks {
		if p.eat(t) {
			return t
		}
	}
	return ""
}

func (p *parser) not() (*Expr, error) {
	if p.eat("not") || p.eat("~") {
		if p.depth++; p.depth > maxDepth {
			return nil, p.fail("nested more than %d deep", maxDepth)
		}
		defer func() { p.depth-- }()
		a, err := p.not()
		return call("Not", a), err
	}
	return p.relation()
}

var relations = map[string]Op{"==": "Equality", "!=": "Unequality", "<=": "LessThan", ">=": "GreaterThan", "<": "StrictLessThan", ">": "StrictGreaterThan"}

func (p *parser) relation() (*Expr, error) {
	a, err := p.sum()
	if err != nil {
		return nil, err
	}
	tok := p.eatAny("==", "!=", "<=", ">=", "<", ">")
	if tok == "" {
		return a, nil
	}
	b, err := p.sum()
	return call(relations[tok], a, b), err
}

func (p *parser) sum() (*Expr, error) {
	a, err := p.product()
	if err != nil {
		return nil, err
	}
	args := []*Expr{a}
	for {
		tok := p.eatAny("+", "-")
		if tok == "" {
			break
		}
		b, err := p.product()
		if err != nil {
			return nil, err
		}
		if tok == "-" {
			b = negate(b)
		}
		args = append(args, b)
	}
	if len(args) == 1 {
		return a, nil
	}
	return call("Add", args...), nil
}

func negate(e *Expr) *Expr {
	switch e.Op {
	case OpInt:
		if e.I != math.MinInt64 {
			return Const(-e.I)
		}
	case OpFloat:
		return &Expr{Op: OpFloat, F: -e.F}
	}
	return call("Mul", Const(-1), e)
}

func (p *parser) product() (*Expr, error) {
	a, err := p.unary()
	if err != nil {
		return nil, err
	}
	for {
		p.space()
		if strings.HasPrefix(p.text[p.pos:], "**") {
			return a, nil
		}
		tok := p.eatAny("*", "//", "/", "%")
		if tok == "" {
			return a, nil
		}
		b, err := p.unary()
		if err != nil {
			return nil, err
		}
		switch tok {
		case "*":
			if a.Op == "Mul" {
				a = call("Mul", append(append([]*Expr{}, a.Args...), b)...)
			} else {
				a = call("Mul", a, b)
			}
		case "//":
			a = call("FloorDiv", a, b)
		case "/":
			a = call("FloatTrueDiv", a, b)
		default:
			a = call("PythonMod", a, b)
		}
	}
}

func (p *parser) unary() (*Expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	if p.eat("-") {
		a, err := p.unary()
		if err != nil {
			return nil, err
		}
		return negate(a), nil
	}
	if p.eat("+") {
		return p.unary()
	}
	a, err := p.atom()
	if err != nil || !p.eat("**") {
		return a, err
	}
	b, err := p.unary()
	return call("Pow", a, b), err
}

func (p *parser) atom() (*Expr, error) {
	p.space()
	if p.pos >= len(p.text) {
		return nil, p.fail("the text ends where an expression is wanted")
	}
	switch c := p.text[p.pos]; {
	case c == '(':
		p.pos++
		e, err := p.ternary()
		if err != nil {
			return nil, err
		}
		if !p.eat(")") {
			return nil, p.fail("want )")
		}
		return e, nil
	case c == '\'' || c == '"':
		s, err := p.str()
		return &Expr{Op: OpString, Name: s}, err
	case c >= '0' && c <= '9' || c == '.':
		return p.number()
	case isWord(c):
		return p.name()
	}
	return nil, p.fail("unexpected %q", p.text[p.pos:p.pos+1])
}

func (p *parser) number() (*Expr, error) {
	start := p.pos
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		if c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || ((c == '+' || c == '-') && (p.text[p.pos-1] == 'e' || p.text[p.pos-1] == 'E')) {
			p.pos++
			continue
		}
		break
	}
	s := p.text[start:p.pos]
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return Const(i), nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !strings.ContainsAny(s, ".eE") {
		return nil, p.fail("%q is no number that fits 64 bits", s)
	}
	return &Expr{Op: OpFloat, F: f}, nil
}

// str reads a Python string literal.
func (p *parser) str() (string, error) {
	q := p.text[p.pos]
	var b strings.Builder
	for i := p.pos + 1; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == q:
			p.pos = i + 1
			return b.String(), nil
		case c == '\\' && i+1 < len(p.text):
			i++
			switch p.text[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			default:
				b.WriteByte(p.text[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", p.fail("a string does not end")
}

var pyFunctions = map[string]Op{
	"torch.sym_max": "Max", "torch.sym_min": "Min", "max": "Max", "min": "Min", "torch.sym_float": "ToFloat", "float": "ToFloat",
	"torch.sym_int": "TruncToInt", "math.trunc": "TruncToInt", "math.floor": "FloorToInt", "math.ceil": "CeilToInt", "round": "RoundDecimal",
	"abs": "Abs", "torch._sym_sqrt": "OpaqueUnaryFn_sqrt", "torch.sym_sqrt": "OpaqueUnaryFn_sqrt", "cast_symbool_to_symint_guardless": "Identity",
	"Eq": "Equality", "Ne": "Unequality", "Le": "LessThan", "Lt": "StrictLessThan", "Ge": "GreaterThan", "Gt": "StrictGreaterThan",
	"int": "TruncToInt", "torch.sym_ite": "Where", "torch.sym_not": "Not",
}

func (p *parser) name() (*Expr, error) {
	start := p.pos
	for p.pos < len(p.text) && (isWord(p.text[p.pos]) || (p.text[p.pos] == '.' && dotted(p.text[start:p.pos]))) {
		p.pos++
	}
	name := p.text[start:p.pos]
	switch name {
	case "True", "true":
		return &Expr{Op: OpBool, I: 1}, nil
	case "False", "false":
		return &Expr{Op: OpBool}, nil
	case "math.inf", "inf", "Infinity", "oo":
		return &Expr{Op: OpFloat, F: math.Inf(1)}, nil
	case "int_oo":
		return Const(math.MaxInt64), nil
	case "NegativeInfinity":
		return &Expr{Op: OpFloat, F: math.Inf(-1)}, nil
	case "math.nan", "nan", "NaN":
		return &Expr{Op: OpFloat, F: math.NaN()}, nil
	case "None":
		return &Expr{Op: OpString, Name: "None"}, nil
	}
	if p.pos < len(p.text) && p.text[p.pos] == '(' {
		return p.call(name)
	}
	if p.src != nil {
		e, n, err := p.src(name, p.text[p.pos:])
		if err != nil {
			return nil, p.fail("%v", err)
		}
		p.pos += n
		return e, nil
	}
	return Symbol(name, false), nil
}

// dotted reports that a dot after s belongs to the name: torch.sym_max, math.trunc.
func dotted(s string) bool { return s == "torch" || s == "math" || s == "torch._C" || s == "operator" }

func (p *parser) call(name string) (*Expr, error) {
	p.pos++
	switch name {
	case "Symbol":
		return p.symbol()
	}
	var args []*Expr
	for !p.eat(")") {
		if len(args) > 0 && !p.eat(",") {
			return nil, p.fail("want , or )")
		}
		if len(args) > 0 && p.eat(")") {
			break
		}
		if p.keyword() {
			continue
		}
		a, err := p.ternary()
		if err != nil {
			return nil, err
		}
		args = append(args, a)
	}
	switch name {
	case "Integer":
		if len(args) == 1 && args[0].Op == OpInt {
			return args[0], nil
		}
		return nil, p.fail("Integer wants one integer")
	case "Float":
		if len(args) >= 1 && args[0].Op == OpString {
			f, err := strconv.ParseFloat(args[0].Name, 64)
			if err != nil {
				return nil, p.fail("Float(%q)", args[0].Name)
			}
			return &Expr{Op: OpFloat, F: f}, nil
		}
		if len(args) >= 1 {
			return args[0], nil
		}
		return nil, p.fail("Float wants a number")
	}
	op := Op(name)
	if o, ok := pyFunctions[name]; ok {
		op = o
	} else if f, ok := strings.CutPrefix(name, "math."); ok {
		op = Op("OpaqueUnaryFn_" + f)
	} else if f, ok := strings.CutPrefix(name, "torch._sym_"); ok {
		op = Op("OpaqueUnaryFn_" + f)
	}
	return call(op, args...), nil
}

// keyword skips "precision=53" and the like.
func (p *parser) keyword() bool {
	p.space()
	i := p.pos
	for i < len(p.text) && isWord(p.text[i]) {
		i++
	}
	if i == p.pos || i+1 >= len(p.text) || p.text[i] != '=' || p.text[i+1] == '=' {
		return false
	}
	for i++; i < len(p.text) && isWord(p.text[i]); i++ {
	}
	p.pos = i
	return true
}

func (p *parser) symbol() (*Expr, error) {
	p.space()
	if p.pos >= len(p.text) || (p.text[p.pos] != '\'' && p.text[p.pos] != '"') {
		return nil, p.fail("Symbol wants a quoted name")
	}
	name, err := p.str()
	if err != nil {
		return nil, err
	}
	if !identifier(name) {
		return nil, p.fail("the symbol %q has no identifier for a name", name)
	}
	rest, _, ok := strings.Cut(p.text[p.pos:], ")")
	if !ok {
		return nil, p.fail("Symbol( does not end")
	}
	p.pos += len(rest) + 1
	return Symbol(name, strings.Contains(rest, "positive=True")), nil
}

// identifier reports a Python name, so that the symbol can be read again where it is printed.
func identifier(s string) bool {
	for i := range len(s) {
		if !isWord(s[i]) || i == 0 && s[i] >= '0' && s[i] <= '9' {
			return false
		}
	}
	return s != ""
}
