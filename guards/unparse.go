package guards

import (
	"errors"
	"strconv"
	"strings"
)

// Precedences, weakest first, as Python's own printer of expressions (ast.unparse) has them.
const (
	precTest = iota
	precOr
	precAnd
	precNot
	precCompare
	precBitOr
	precBitXor
	precBitAnd
	precShift
	precSum
	precTerm
	precFactor
	precPower
	precAwait
	precAtom
)

// node is a Python expression as it was written; the symbolic form loses the order and grouping that a message must show.
type node struct {
	op   string // "" for an atom, "(" for a call, "if" for a conditional, else the operator; "u-" for a unary minus
	text string // of an atom, or the name of the called function
	kids []*node
	ops  []string // of a comparison
}

var errUnparse = errors.New("not a Python expression")

// unparse writes a guard with spaces round its operators and without redundant parentheses, and each source under the name
// that leaf gives it. What it does not understand it returns as it is.
func unparse(text string, leaf func(rest string) (name string, used int, err error)) string {
	u := &unparser{text: text, leaf: leaf}
	n, err := u.test()
	if u.space(); err != nil || u.pos != len(text) {
		return text
	}
	var b strings.Builder
	n.print(&b, precTest)
	return b.String()
}

type unparser struct {
	text  string
	pos   int
	depth int
	leaf  func(rest string) (string, int, error)
}

func (u *unparser) space() {
	for u.pos < len(u.text) && strings.IndexByte(" \t\n", u.text[u.pos]) >= 0 {
		u.pos++
	}
}

// eat takes the first of the tokens that is next.
func (u *unparser) eat(toks ...string) string {
	u.space()
	for _, t := range toks {
		if !strings.HasPrefix(u.text[u.pos:], t) {
			continue
		}
		if end := u.pos + len(t); isWord(t[0]) && end < len(u.text) && isWord(u.text[end]) {
			continue
		}
		u.pos += len(t)
		return t
	}
	return ""
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (u *unparser) test() (*node, error) {
	if u.depth++; u.depth > 200 {
		return nil, errUnparse
	}
	defer func() { u.depth-- }()
	body, err := u.logic("or")
	if err != nil || u.eat("if") == "" {
		return body, err
	}
	cond, err := u.logic("or")
	if err != nil || u.eat("else") == "" {
		return nil, errUnparse
	}
	other, err := u.test()
	return &node{op: "if", kids: []*node{body, cond, other}}, err
}

func (u *unparser) logic(op string) (*node, error) {
	next := u.not
	if op == "or" {
		next = func() (*node, error) { return u.logic("and") }
	}
	first, err := next()
	kids := []*node{first}
	for err == nil && u.eat(op) != "" {
		var n *node
		n, err = next()
		kids = append(kids, n)
	}
	if err != nil || len(kids) == 1 {
		return first, err
	}
	return &node{op: op, kids: kids}, nil
}

func (u *unparser) not() (*node, error) {
	if u.eat("not") == "" {
		return u.compare()
	}
	if u.depth++; u.depth > 200 {
		return nil, errUnparse
	}
	defer func() { u.depth-- }()
	n, err := u.not()
	return &node{op: "not", kids: []*node{n}}, err
}

func (u *unparser) compare() (*node, error) {
	first, err := u.binary(0)
	n := &node{op: "==", kids: []*node{first}}
	for err == nil {
		op := u.eat("==", "!=", "<=", ">=", "<", ">")
		if op == "" {
			break
		}
		var k *node
		k, err = u.binary(0)
		n.kids, n.ops = append(n.kids, k), append(n.ops, op)
	}
	if err != nil || len(n.ops) == 0 {
		return first, err
	}
	return n, nil
}

// binaries are the left-associative operators, weakest first.
var binaries = [][]string{{"+", "-"}, {"*", "//", "/", "%"}}

func (u *unparser) binary(level int) (*node, error) {
	if level == len(binaries) {
		return u.unary()
	}
	left, err := u.binary(level + 1)
	for err == nil {
		u.space()
		if strings.HasPrefix(u.text[u.pos:], "**") {
			break
		}
		op := u.eat(binaries[level]...)
		if op == "" {
			break
		}
		var right *node
		right, err = u.binary(level + 1)
		left = &node{op: op, kids: []*node{left, right}}
	}
	return left, err
}

func (u *unparser) unary() (*node, error) {
	if u.depth++; u.depth > 200 {
		return nil, errUnparse
	}
	defer func() { u.depth-- }()
	if op := u.eat("-", "+"); op != "" {
		n, err := u.unary()
		return &node{op: "u" + op, kids: []*node{n}}, err
	}
	base, err := u.atom()
	if err != nil || u.eat("**") == "" {
		return base, err
	}
	exp, err := u.unary()
	return &node{op: "**", kids: []*node{base, exp}}, err
}

func (u *unparser) atom() (*node, error) {
	u.space()
	if u.pos >= len(u.text) {
		return nil, errUnparse
	}
	rest := u.text[u.pos:]
	switch c := rest[0]; {
	case c == '(':
		u.pos++
		n, err := u.test()
		if err != nil || u.eat(")") == "" {
			return nil, errUnparse
		}
		return n, nil
	case c == '\'' || c == '"':
		s, n, err := pyString(rest)
		u.pos += n
		return &node{text: pyRepr(s)}, err
	case c >= '0' && c <= '9' || c == '.':
		return u.number()
	case strings.HasPrefix(rest, "L["):
		name, n, err := u.leaf(rest[1:])
		u.pos += 1 + n
		return &node{text: name}, err
	case isWord(c):
		return u.name()
	}
	return nil, errUnparse
}

func (u *unparser) number() (*node, error) {
	start := u.pos
	for u.pos < len(u.text) {
		c := u.text[u.pos]
		exp := u.pos > start && (u.text[u.pos-1] == 'e' || u.text[u.pos-1] == 'E')
		if !(c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || exp && (c == '-' || c == '+')) {
			break
		}
		u.pos++
	}
	s := u.text[start:u.pos]
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		return &node{text: pyRepr(f)}, err
	}
	return &node{text: s}, nil
}

func (u *unparser) name() (*node, error) {
	start := u.pos
	for u.pos < len(u.text) && (isWord(u.text[u.pos]) || u.text[u.pos] == '.') {
		u.pos++
	}
	n := &node{text: u.text[start:u.pos]}
	if u.pos >= len(u.text) || u.text[u.pos] != '(' {
		return n, nil
	}
	u.pos++
	n.op = "("
	for u.eat(")") == "" {
		if len(n.kids) > 0 && u.eat(",") == "" {
			return nil, errUnparse
		}
		k, err := u.test()
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, k)
	}
	return n, nil
}

func (n *node) print(b *strings.Builder, outer int) {
	prec := n.prec()
	if prec < outer {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	switch n.op {
	case "":
		b.WriteString(n.text)
	case "(":
		b.WriteString(n.text + "(")
		for i, k := range n.kids {
			if i > 0 {
				b.WriteString(", ")
			}
			k.print(b, precTest)
		}
		b.WriteByte(')')
	case "if":
		n.kids[0].print(b, precTest+1)
		b.WriteString(" if ")
		n.kids[1].print(b, precTest+1)
		b.WriteString(" else ")
		n.kids[2].print(b, precTest)
	case "or", "and":
		// Python raises the precedence with each operand, so the third comparison of an "and" stands in parentheses.
		for i, k := range n.kids {
			if i > 0 {
				b.WriteString(" " + n.op + " ")
			}
			k.print(b, min(prec+1+i, precAtom))
		}
	case "not":
		b.WriteString("not ")
		n.kids[0].print(b, precNot)
	case "u-", "u+":
		b.WriteString(n.op[1:])
		n.kids[0].print(b, precFactor)
	case "==":
		n.kids[0].print(b, precCompare+1)
		for i, op := range n.ops {
			b.WriteString(" " + op + " ")
			n.kids[i+1].print(b, precCompare+1)
		}
	case "**":
		n.kids[0].print(b, precPower+1)
		b.WriteString(" ** ")
		n.kids[1].print(b, precPower)
	default:
		n.kids[0].print(b, prec)
		b.WriteString(" " + n.op + " ")
		n.kids[1].print(b, prec+1)
	}
}

func (n *node) prec() int {
	switch n.op {
	case "if":
		return precTest
	case "or":
		return precOr
	case "and":
		return precAnd
	case "not":
		return precNot
	case "==":
		return precCompare
	case "+", "-":
		return precSum
	case "*", "/", "//", "%":
		return precTerm
	case "u-", "u+":
		return precFactor
	case "**":
		return precPower
	}
	return precAtom
}
