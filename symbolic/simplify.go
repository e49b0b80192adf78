package symbolic

import (
	"math"
	"sort"
	"strings"
)

// Simplify writes an integer expression in a normal form: a sum of products of atoms with integer coefficients, like terms
// together. Quotients and remainders that come out even disappear, and so does the maximum of 1 and what is positive by assumption.
// Equal polynomials get equal forms. An expression with other functions keeps them, with simplified arguments.
func (e *Expr) Simplify() *Expr {
	p, ok := polyOf(e)
	if !ok {
		return e
	}
	return p.expr()
}

// term is a coefficient times a product of atoms, sorted by srepr.
type term struct {
	c     int64
	atoms []*Expr
	key   string
}

// poly is a sum of terms by key.
type poly map[string]term

func constPoly(v int64) poly {
	if v == 0 {
		return poly{}
	}
	return poly{"": {c: v}}
}

func atomPoly(e *Expr) poly { k := e.Srepr(); return poly{k: {1, []*Expr{e}, k}} }

// constant gives the value of a polynomial without atoms.
func (p poly) constant() (int64, bool) {
	if len(p) == 0 {
		return 0, true
	}
	t, ok := p[""]
	return t.c, ok && len(p) == 1
}

func polyOf(e *Expr) (poly, bool) {
	switch e.Op {
	case OpInt:
		return constPoly(e.I), true
	case OpSymbol:
		return atomPoly(e), true
	case OpFloat, OpBool, OpString:
		return nil, false
	case "Add", "Mul":
		return combine(e)
	case "Pow", "PowByNatural":
		if len(e.Args) == 2 && e.Args[1].Op == OpInt && e.Args[1].I >= 0 && e.Args[1].I <= 8 {
			args := make([]*Expr, e.Args[1].I)
			for i := range args {
				args[i] = e.Args[0]
			}
			return combine(&Expr{Op: "Mul", Args: args})
		}
	case "FloorDiv", "CleanDiv", "Mod", "PythonMod":
		if len(e.Args) == 2 {
			return divided(e)
		}
	case "Max":
		if len(e.Args) == 2 {
			return larger(e)
		}
	}
	args := make([]*Expr, len(e.Args))
	for i, a := range e.Args {
		args[i] = a.Simplify()
	}
	return atomPoly(&Expr{Op: e.Op, Args: args, Name: e.Name, I: e.I, F: e.F, Positive: e.Positive}), true
}

// combine adds or multiplies.
func combine(e *Expr) (poly, bool) {
	out := constPoly(0)
	if e.Op == "Mul" {
		out = constPoly(1)
	}
	for _, a := range e.Args {
		p, ok := polyOf(a)
		if !ok {
			return nil, false
		}
		if e.Op == "Mul" {
			out, ok = out.times(p)
		} else {
			ok = out.add(p)
		}
		if !ok {
			return nil, false
		}
	}
	return out, true
}

func (p poly) add(q poly) bool {
	for k, t := range q {
		s, ok := addOK(p[k].c, t.c)
		if !ok {
			return false
		}
		if s == 0 {
			delete(p, k)
			continue
		}
		p[k] = term{s, t.atoms, k}
	}
	return true
}

// maxTerms bounds what products may grow to.
const maxTerms = 200

func (p poly) times(q poly) (poly, bool) {
	if len(p)*len(q) > maxTerms {
		return nil, false
	}
	out := poly{}
	for _, a := range p {
		for _, b := range q {
			c, ok := mulInt(a.c, b.c)
			if !ok {
				return nil, false
			}
			atoms := append(append([]*Expr(nil), a.atoms...), b.atoms...)
			if !out.add(poly{"": newTerm(c, atoms)}.keyed()) {
				return nil, false
			}
		}
	}
	return out, true
}

func newTerm(c int64, atoms []*Expr) term {
	sort.Slice(atoms, func(i, j int) bool { return atoms[i].Srepr() < atoms[j].Srepr() })
	keys := make([]string, len(atoms))
	for i, a := range atoms {
		keys[i] = a.Srepr()
	}
	return term{c, atoms, strings.Join(keys, "*")}
}

// keyed enters terms under their keys.
func (p poly) keyed() poly {
	out := poly{}
	for _, t := range p {
		out[t.key] = t
	}
	return out
}

// divided is a quotient or remainder by a constant or a product.
func divided(e *Expr) (poly, bool) {
	p, ok1 := polyOf(e.Args[0])
	q, ok2 := polyOf(e.Args[1])
	if !ok1 || !ok2 {
		return nil, false
	}
	quotient := e.Op == "FloorDiv" || e.Op == "CleanDiv"
	if len(q) == 1 {
		for _, d := range q {
			if r, ok := p.over(d); ok {
				if quotient {
					return r, true
				}
				return constPoly(0), true
			}
		}
	}
	x, xc := p.constant()
	y, yc := q.constant()
	if xc && yc && y != 0 {
		v, err := floorDivInt(x, y)
		if !quotient {
			v, err = modInt(x, y)
		}
		return constPoly(v), err == nil
	}
	if k, ok := q.constant(); ok && k > 1 {
		if even, rest, ok := p.split(k); ok {
			return even.partly(e.Op, rest, q, quotient)
		}
	}
	return atomPoly(&Expr{Op: e.Op, Args: []*Expr{p.expr(), q.expr()}}), true
}

// split gives the terms that k divides, divided, and the others; ok is false if there are none of the first.
func (p poly) split(k int64) (even, rest poly, ok bool) {
	even, rest = poly{}, poly{}
	for key, t := range p {
		if t.c%k == 0 {
			even[key] = term{t.c / k, t.atoms, key}
		} else {
			rest[key] = t
		}
	}
	return even, rest, len(even) > 0
}

// partly is (k*even + rest) // k, or its remainder.
func (even poly) partly(op Op, rest, k poly, quotient bool) (poly, bool) {
	tail, ok := divided(&Expr{Op: op, Args: []*Expr{rest.expr(), k.expr()}})
	if !ok || !quotient {
		return tail, ok
	}
	return even, even.add(tail)
}

// over divides each term by d, if all come out even.
func (p poly) over(d term) (poly, bool) {
	if d.c == 0 || d.c == -1 && len(d.atoms) == 0 && hasMin(p) {
		return nil, false
	}
	out := poly{}
	for _, t := range p {
		if t.c%d.c != 0 {
			return nil, false
		}
		rest := append([]*Expr(nil), t.atoms...)
		for _, a := range d.atoms {
			i := 0
			for i < len(rest) && rest[i].Srepr() != a.Srepr() {
				i++
			}
			if i == len(rest) {
				return nil, false
			}
			rest = append(rest[:i], rest[i+1:]...)
		}
		n := newTerm(t.c/d.c, rest)
		out[n.key] = n
	}
	return out, true
}

func hasMin(p poly) bool {
	for _, t := range p {
		if t.c == math.MinInt64 {
			return true
		}
	}
	return false
}

// larger is the maximum of two; of a constant and what is at least as large by the assumptions it is the latter.
func larger(e *Expr) (poly, bool) {
	p, ok1 := polyOf(e.Args[0])
	q, ok2 := polyOf(e.Args[1])
	if !ok1 || !ok2 {
		return nil, false
	}
	if p.expr().Srepr() == q.expr().Srepr() {
		return p, true
	}
	for _, pair := range [][2]poly{{p, q}, {q, p}} {
		if c, ok := pair[0].constant(); ok && pair[1].atLeast(c) {
			return pair[1], true
		}
	}
	return atomPoly(&Expr{Op: "Max", Args: []*Expr{p.expr(), q.expr()}}), true
}

// atLeast reports a sum whose every symbol is positive and whose coefficients are, so that it is no smaller than their sum.
func (p poly) atLeast(c int64) bool {
	sum := int64(0)
	for _, t := range p {
		if t.c < 0 || t.c > 1<<30 {
			return false
		}
		for _, a := range t.atoms {
			if a.Op != OpSymbol || !a.Positive {
				return false
			}
		}
		sum += t.c
	}
	return sum >= c
}

// expr writes a polynomial: terms of more atoms first, then by their text, the constant last.
func (p poly) expr() *Expr {
	terms := make([]term, 0, len(p))
	for _, t := range p {
		terms = append(terms, t)
	}
	sort.Slice(terms, func(i, j int) bool {
		if len(terms[i].atoms) != len(terms[j].atoms) {
			return len(terms[i].atoms) > len(terms[j].atoms)
		}
		return terms[i].key < terms[j].key
	})
	sums := make([]*Expr, len(terms))
	for i, t := range terms {
		sums[i] = t.expr()
	}
	switch len(sums) {
	case 0:
		return Const(0)
	case 1:
		return sums[0]
	}
	return &Expr{Op: "Add", Args: sums}
}

func (t term) expr() *Expr {
	var args []*Expr
	if t.c != 1 || len(t.atoms) == 0 {
		args = append(args, Const(t.c))
	}
	for i := 0; i < len(t.atoms); {
		j := i + 1
		for j < len(t.atoms) && t.atoms[j].Srepr() == t.atoms[i].Srepr() {
			j++
		}
		a := t.atoms[i]
		if j-i > 1 {
			a = &Expr{Op: "Pow", Args: []*Expr{a, Const(int64(j - i))}}
		}
		args = append(args, a)
		i = j
	}
	if len(args) == 1 {
		return args[0]
	}
	return &Expr{Op: "Mul", Args: args}
}
