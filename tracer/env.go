package tracer

import (
	"math"

	"github.com/pt2go/pt2/export/passes"
	"github.com/pt2go/pt2/symbolic"
)

// symbol is a size, or an integer, that stays free while a model is traced.
type symbol struct {
	name     string
	example  int64
	known    symbolic.Interval // what reasoning may assume
	declared symbolic.Interval // what the user said, and the program's range
	dim      *Dim              // the named Dim that it stands for, nil for a hint
	dynamic  bool              // of a hint: that it may not be fixed
	integer  bool              // an integer input, not a size
	unbacked bool              // data decides
	sources  []source          // where inputs hold it
}

// source is a place of the inputs that is a*symbol + b.
type source struct {
	text string // PyTorch's name of the place, such as L['x'].size()[0]
	a, b int64
}

// guard is an answer to a comparison that does not hold for all sizes.
type guard struct {
	op    symbolic.Op // "Equality", "Unequality", "LessThan", "StrictLessThan"
	a, b  *symbolic.Expr
	where string
}

// env decides comparisons of sizes: by ranges, by what was assumed before, and last by the examples, which it remembers as a guard.
type env struct {
	symbols  map[string]*symbol
	order    []string
	guards   []guard
	replace  map[string]*symbolic.Expr // symbols that guards tie to others or to a number
	refined  map[string]symbolic.Interval
	zero     []*symbolic.Expr // known to be 0
	nonzero  []*symbolic.Expr
	atLeast  []*symbolic.Expr          // known to be at least 0
	residue  map[string]residue        // by symbol
	subst    map[string]*symbolic.Expr // what equations make of symbols in questions
	closed   bool                      // after the trace only hints answer
	rec      *passes.Recorder
	session  *session
	unbacked unbacked
	deferred bool   // what the code asks of sizes is checked by the program
	draft    *draft // of a draft export
	inputs   []passes.InputSymbol
	places   []varPlace // of inputs
}

type residue struct{ k, r int64 }

func newEnv(symbols []*symbol) *env {
	e := &env{symbols: map[string]*symbol{}, replace: map[string]*symbolic.Expr{}, refined: map[string]symbolic.Interval{}, residue: map[string]residue{}, subst: map[string]*symbolic.Expr{}}
	for _, s := range symbols {
		e.add(s)
	}
	return e
}

func (e *env) add(s *symbol) {
	e.symbols[s.name] = s
	e.order = append(e.order, s.name)
}

// bounds is what is known of a symbol.
func (e *env) bounds(name string) (r symbolic.Interval) {
	r = symbolic.Unbounded
	if s := e.symbols[name]; s != nil {
		r = s.known
	}
	if x, ok := e.refined[name]; ok {
		r = r.Intersect(x)
	}
	defer func() { r.Min = e.raise(name, r.Min) }()
	if len(name) > 2 && name[:2] == "t:" { // the quotient of a symbol with a known remainder
		if s, ok := e.residue[name[2:]]; ok {
			of := e.bounds(name[2:])
			r = symbolic.Interval{Min: math.MinInt64, Max: math.MaxInt64}
			if of.Min != math.MinInt64 {
				r.Min = -floorDiv(-(of.Min - s.r), s.k)
			}
			if of.Max != math.MaxInt64 {
				r.Max = floorDiv(of.Max-s.r, s.k)
			}
		}
	}
	return r
}

// raise moves a lower bound past values that are known not to be taken.
func (e *env) raise(name string, lo int64) int64 {
	for again := true; again && lo != math.MinInt64; {
		again = false
		for _, f := range e.nonzero {
			if n, a, b, ok := e.reduce(f).Linear(); ok && n == name && a*lo+b == 0 {
				lo, again = lo+1, true
			}
		}
	}
	return lo
}

func floorDiv(x, y int64) int64 { return symbolic.N(x).FloorDiv(symbolic.N(y)).Hint() }

// reduce writes an expression over as few symbols as the known equations leave.
func (e *env) reduce(x *symbolic.Expr) *symbolic.Expr {
	x = x.Simplify()
	if len(e.subst) > 0 {
		for range 4 {
			y := x.Substitute(func(name string) *symbolic.Expr { return e.subst[name] })
			if y == x {
				break
			}
			x = y.Simplify()
		}
	}
	if len(e.residue) > 0 {
		x = x.Substitute(func(name string) *symbolic.Expr {
			if r, ok := e.residue[name]; ok {
				return sum(scaled(r.k, symbolic.Symbol("t:"+name, false)), symbolic.Const(r.r))
			}
			return nil
		}).Simplify()
	}
	return x
}

func sum(a ...*symbolic.Expr) *symbolic.Expr { return &symbolic.Expr{Op: "Add", Args: a} }

func scaled(k int64, x *symbolic.Expr) *symbolic.Expr {
	return &symbolic.Expr{Op: "Mul", Args: []*symbolic.Expr{symbolic.Const(k), x}}
}

func minus(a, b *symbolic.Expr) *symbolic.Expr { return sum(a, scaled(-1, b)).Simplify() }

// isZero tells whether x is 0 always or never; known is false if neither.
func (e *env) isZero(x *symbolic.Expr) (yes, known bool) {
	x = e.reduce(x)
	if x.Op == symbolic.OpInt {
		return x.I == 0, true
	}
	if !x.Bounds(e.bounds).Has(0) {
		return false, true
	}
	for _, f := range e.zero {
		if c := minus(x, e.reduce(f)); c.Op == symbolic.OpInt {
			return c.I == 0, true
		}
	}
	for _, f := range e.nonzero {
		f = e.reduce(f)
		if same(x, f) || same(scaled(-1, x).Simplify(), f) {
			return false, true
		}
	}
	for _, y := range []*symbolic.Expr{sum(x, symbolic.Const(-1)), sum(scaled(-1, x), symbolic.Const(-1))} {
		if yes, known := e.isAtLeastZero(y); known && yes {
			return false, true
		}
	}
	return false, false
}

func same(a, b *symbolic.Expr) bool { return a == b || a.Srepr() == b.Srepr() }

// isAtLeastZero is the question x >= 0.
func (e *env) isAtLeastZero(x *symbolic.Expr) (yes, known bool) {
	x = e.reduce(x)
	b := x.Bounds(e.bounds)
	switch {
	case b.Min >= 0:
		return true, true
	case b.Max < 0:
		return false, true
	}
	not := sum(scaled(-1, x), symbolic.Const(-1)).Simplify()
	if e.positive(x) {
		return true, true
	}
	if e.positive(not) {
		return false, true
	}
	for _, f := range e.atLeast {
		f = e.reduce(f)
		if d := minus(x, f); d.Bounds(e.bounds).Min >= 0 {
			return true, true
		}
		if d := minus(not, f); d.Bounds(e.bounds).Min >= 0 {
			return false, true
		}
	}
	return false, false
}

// positive proves x >= 0 by writing each symbol as its least value and a rest that is not negative: then all terms may have one sign,
// as in s*t - s.
func (e *env) positive(x *symbolic.Expr) bool {
	least := map[string]bool{}
	y := x.Substitute(func(name string) *symbolic.Expr {
		r := e.bounds(name)
		if r.Min == math.MinInt64 || r.Min == r.Max {
			return nil
		}
		least["+"+name] = true
		return sum(symbolic.Symbol("+"+name, false), symbolic.Const(r.Min))
	}).Simplify()
	return len(least) > 0 && y.Bounds(func(name string) symbolic.Interval {
		if least[name] {
			return symbolic.Interval{Min: 0, Max: math.MaxInt64}
		}
		return e.bounds(name)
	}).Min >= 0
}

// ask decides a op b without assuming anything.
func (e *env) ask(op symbolic.Op, a, b *symbolic.Expr) (yes, known bool) {
	endless := func(x *symbolic.Expr) bool { return x.Op == symbolic.OpInt && x.I == math.MaxInt64 }
	if endless(a) != endless(b) { // no size is so large
		return op != "Equality" && endless(b), true
	}
	switch op {
	case "Equality":
		return e.isZero(minus(a, b))
	case "LessThan":
		return e.isAtLeastZero(minus(b, a))
	}
	return e.isAtLeastZero(sum(minus(b, a), symbolic.Const(-1)))
}

// Decide implements [symbolic.Decider].
func (e *env) Decide(op symbolic.Op, a, b symbolic.Int) bool {
	byHint := holds(op, a.Hint(), b.Hint())
	if e.closed {
		return byHint
	}
	x, y := a.Expr(), b.Expr()
	if yes, known := e.ask(op, x, y); known {
		return yes
	}
	if e.hasUnbacked(x) || e.hasUnbacked(y) {
		return e.unknown(op, x, y)
	}
	g := newGuard(op, x, y, byHint)
	g.where = place()
	if e.draft != nil {
		e.draft.guarded(e, g)
	}
	if name, _ := e.solve(minus(g.a, g.b)); e.deferred && (g.op != "Equality" || name == "") {
		e.require(&symbolic.Expr{Op: g.op, Args: []*symbolic.Expr{g.a, g.b}})
		return byHint
	}
	e.assume(g)
	return byHint
}

func holds(op symbolic.Op, a, b int64) bool {
	switch op {
	case "Equality":
		return a == b
	case "LessThan":
		return a <= b
	}
	return a < b
}

// newGuard is what holds when a op b is answered so.
func newGuard(op symbolic.Op, a, b *symbolic.Expr, yes bool) guard {
	a, b = a.Simplify(), b.Simplify()
	if yes {
		return guard{op: op, a: a, b: b}
	}
	switch op {
	case "Equality":
		return guard{op: "Unequality", a: a, b: b}
	case "LessThan":
		return guard{op: "StrictLessThan", a: b, b: a}
	}
	return guard{op: "LessThan", a: b, b: a}
}

// Fix implements [symbolic.Decider]: whoever takes a size as a number fixes it.
func (e *env) Fix(a symbolic.Int) int64 {
	if e.closed {
		return a.Hint()
	}
	if c := e.reduce(a.Expr()); c.Op == symbolic.OpInt {
		return c.I
	}
	if e.hasUnbacked(a.Expr()) {
		if e.draft != nil && !e.unbacked.inside {
			e.draft.answer(e, "Equality", a.Expr().Simplify(), symbolic.Const(a.Hint()))
			return a.Hint()
		}
		panic(&DataDependentError{Expr: a.Expr().Simplify().String(), Extract: true, Where: place()})
	}
	e.Decide("Equality", a, symbolic.N(a.Hint()))
	return a.Hint()
}

// assume takes an answer as true from now on, and remembers it for the program.
func (e *env) assume(g guard) {
	if name, r, ok := e.dividesOf(g); ok {
		g.a, g.b = &symbolic.Expr{Op: "Mod", Args: []*symbolic.Expr{symbolic.Symbol(name, true), symbolic.Const(r.k)}}, symbolic.Const(0)
	}
	e.learn(g)
	e.guards = append(e.guards, g)
	if g.op == "Equality" {
		if name, x := e.solve(minus(g.a, g.b)); name != "" {
			if _, done := e.replace[name]; !done {
				e.replace[name] = x
			}
		}
	}
}

// learn makes facts of a guard.
func (e *env) learn(g guard) {
	d := minus(g.b, g.a)
	switch g.op {
	case "Equality":
		e.zero = append(e.zero, d)
		if name, x := e.solve(d); name != "" {
			if _, done := e.subst[name]; !done && !mentions(x, name) {
				e.subst[name] = x
			}
		}
		if name, r, ok := residueOf(g); ok {
			e.residue[name] = r
		}
	case "Unequality":
		e.nonzero = append(e.nonzero, d)
	case "StrictLessThan":
		e.bound(sum(d, symbolic.Const(-1)).Simplify())
	default:
		e.bound(d)
	}
}

// bound learns d >= 0; for one symbol that is a range.
func (e *env) bound(d *symbolic.Expr) {
	name, a, b, ok := d.Linear()
	if !ok {
		e.atLeast = append(e.atLeast, d)
		return
	}
	r := symbolic.Unbounded
	if a > 0 {
		r.Min = -floorDiv(b, a)
	} else {
		r.Max = floorDiv(b, -a)
	}
	old, ok := e.refined[name]
	if !ok {
		old = symbolic.Unbounded
	}
	e.refined[name] = old.Intersect(r)
}

// residueOf recognises s % k == r.
func residueOf(g guard) (name string, r residue, ok bool) {
	a, b := g.a, g.b
	if a.Op == symbolic.OpInt {
		a, b = b, a
	}
	if (a.Op != "Mod" && a.Op != "PythonMod") || b.Op != symbolic.OpInt || a.Args[0].Op != symbolic.OpSymbol || a.Args[1].Op != symbolic.OpInt || a.Args[1].I < 1 {
		return "", residue{}, false
	}
	return a.Args[0].Name, residue{a.Args[1].I, b.I}, true
}

// dividesOf recognises k*(s//k) == s, and multiples of that.
func (e *env) dividesOf(g guard) (name string, r residue, ok bool) {
	d := minus(g.a, g.b)
	if g.op != "Equality" || d.Op != "Add" || len(d.Args) != 2 {
		return "", residue{}, false
	}
	part := func(t *symbolic.Expr) (int64, *symbolic.Expr) {
		if t.Op == "Mul" && len(t.Args) == 2 && t.Args[0].Op == symbolic.OpInt {
			return t.Args[0].I, t.Args[1]
		}
		return 1, t
	}
	c1, x := part(d.Args[0])
	c2, y := part(d.Args[1])
	if x.Op == symbolic.OpSymbol {
		c1, x, c2, y = c2, y, c1, x
	}
	if (x.Op != "FloorDiv" && x.Op != "CleanDiv") || y.Op != symbolic.OpSymbol || x.Args[1].Op != symbolic.OpInt || !same(x.Args[0], y) || c1 != -c2*x.Args[1].I || x.Args[1].I < 2 {
		return "", residue{}, false
	}
	return y.Name, residue{x.Args[1].I, 0}, true
}

func mentions(x *symbolic.Expr, name string) bool {
	found := false
	x.Symbols(func(s string) { found = found || s == name })
	return found
}
