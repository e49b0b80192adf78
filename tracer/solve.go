package tracer

import "github.com/pt2go/pt2/symbolic"

// linear is a sum of symbols with coefficients and a constant.
type linear struct {
	names  []string
	coef   map[string]int64
	offset int64
}

// linearOf takes apart a simplified sum; ok is false if it is no linear one.
func linearOf(x *symbolic.Expr) (l linear, ok bool) {
	l.coef = map[string]int64{}
	terms := []*symbolic.Expr{x}
	if x.Op == "Add" {
		terms = x.Args
	}
	for _, t := range terms {
		c := int64(1)
		if t.Op == "Mul" && len(t.Args) == 2 && t.Args[0].Op == symbolic.OpInt {
			c, t = t.Args[0].I, t.Args[1]
		}
		switch t.Op {
		case symbolic.OpInt:
			l.offset += c * t.I
		case symbolic.OpSymbol:
			l.names = append(l.names, t.Name)
			l.coef[t.Name] += c
		default:
			return l, false
		}
	}
	return l, true
}

// solve finds a symbol that d == 0 ties to the others: hints before named Dims, later ones before earlier ones, and so that the
// others come with positive coefficients where that is possible.
func (e *env) solve(d *symbolic.Expr) (name string, x *symbolic.Expr) {
	l, ok := linearOf(d)
	if !ok {
		return "", nil
	}
	best := -1
	for _, s := range l.names {
		c := l.coef[s]
		rest := l.without(s)
		if c == 0 || !rest.divisible(c) {
			continue
		}
		if score := e.preference(s, l, c); score > best {
			best, name = score, s
			x = rest.over(-c)
		}
	}
	return name, x
}

func (e *env) preference(name string, l linear, c int64) int {
	score := 0
	if s := e.symbols[name]; s != nil {
		switch {
		case s.dim == nil && !s.dynamic:
			score += 20000
		case s.dim == nil:
			score += 10000
		}
	}
	if l.offset*-c >= 0 { // name = ... + positive
		score += 2000
	}
	for i, n := range e.order {
		if n == name {
			score += i
		}
	}
	return score
}

func (l linear) without(name string) linear {
	out := linear{coef: l.coef, offset: l.offset}
	for _, n := range l.names {
		if n != name {
			out.names = append(out.names, n)
		}
	}
	return out
}

func (l linear) divisible(c int64) bool {
	if l.offset%c != 0 {
		return false
	}
	for _, n := range l.names {
		if l.coef[n]%c != 0 {
			return false
		}
	}
	return true
}

// over is the sum divided by c, which divides it.
func (l linear) over(c int64) *symbolic.Expr {
	terms := []*symbolic.Expr{symbolic.Const(l.offset / c)}
	for _, n := range l.names {
		terms = append(terms, scaled(l.coef[n]/c, symbolic.Symbol(n, true)))
	}
	return sum(terms...).Simplify()
}
