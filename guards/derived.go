package guards

import (
	"fmt"
	"math"
	"strconv"

	"github.com/pt2go/pt2/symbolic"
)

// check is one condition that follows from the recorded inputs rather than from a guard.
type check struct {
	kind checkKind
	src  source
	n    int64  // bound or size
	want any    // of a constant
	ref  source // the source that src is compared with
	expr *symbolic.Expr
	// src is (num/den)*ref + (off/den) for a relation
	num, den, off int64
}

type checkKind uint8

const (
	isSize     checkKind = iota // src == n
	isConstant                  // src == want
	isTyped                     // src == want, with the same type
	isMin                       // src >= n
	isMax                       // src <= n
	isSame                      // src == ref
	isLinear                    // den*src == num*ref + off
	isSolvable                  // src == num*k + off for an integer k
)

func (c *check) holds(leaves []any) bool {
	switch c.kind {
	case isConstant:
		return sameConstant(c.want, leaves[c.src.input])
	case isTyped:
		return pyType(c.want) == pyType(leaves[c.src.input]) && sameConstant(c.want, leaves[c.src.input])
	}
	v, ok := c.src.integer(leaves)
	if !ok {
		f, isFloat := leaves[c.src.input].(float64)
		return isFloat && (c.kind == isMin && f >= float64(c.n) || c.kind == isMax && f <= float64(c.n) || c.kind >= isSame)
	}
	switch c.kind {
	case isSize:
		return v == c.n
	case isMin:
		return v >= c.n
	case isMax:
		return v <= c.n
	case isSolvable:
		return (v-c.off)%c.num == 0
	}
	r, ok := c.ref.integer(leaves)
	if !ok {
		return false
	}
	if c.kind == isSame {
		return v == r
	}
	// sizes are below 2^63 and the factors come from a file: products may wrap, so that equal sides stay equal
	return c.den*v == c.num*r+c.off
}

// deriver finds the checks in PyTorch's order: by input; for each size a fixed number, or at its first occurrence a range, or
// later equality with the first; then relations between sizes that share a symbol which is no size itself.
type deriver struct {
	set      *Set
	ranges   map[string]Range
	first    map[string]source // by expression
	deferred []check
	hookRoot map[string]check // by symbol: where the check without guards learns it
}

func (d *deriver) run() {
	d.first, d.hookRoot = map[string]source{}, map[string]check{}
	for i := range d.set.inputs {
		in := &d.set.inputs[i]
		switch {
		case in.IsConstant:
			d.constant(i, in.Constant)
		case in.Sym != nil:
			d.size(source{i, 'v', 0}, in.Sym)
		}
		for dim, n := range in.Sizes {
			src := source{i, 's', dim}
			if v, ok := n.Const(); ok {
				d.add(check{kind: isSize, src: src, n: v})
			} else {
				d.size(src, n.Expr())
			}
		}
	}
	d.relations()
}

func (d *deriver) add(c check) {
	d.set.derived = append(d.set.derived, c)
	d.set.hook = append(d.set.hook, c)
}

func (d *deriver) constant(i int, want any) {
	switch want.(type) {
	case int64, float64, bool, string:
		src := source{i, 'v', 0}
		d.set.derived = append(d.set.derived, check{kind: isConstant, src: src, want: want})
		d.set.hook = append(d.set.hook, check{kind: isTyped, src: src, want: want})
	}
}

// size handles a symbolic size or number.
func (d *deriver) size(src source, e *symbolic.Expr) {
	key := e.String()
	if n, ok := e.EvalInt(func(string) (any, bool) { return nil, false }); ok == nil {
		d.add(check{kind: isSize, src: src, n: n})
		return
	}
	d.hookUnify(src, e)
	d.deferred = append(d.deferred, check{src: src, expr: e})
	if ref, seen := d.first[key]; seen {
		d.set.derived = append(d.set.derived, check{kind: isSame, src: src, ref: ref})
		return
	}
	d.first[key] = src
	r := d.ranges[key]
	// 0 and 1 are let through at run time even if the traced program excluded them
	if r.Min != nil && *r.Min > 2 {
		d.add(check{kind: isMin, src: src, n: *r.Min})
	}
	if r.Max != nil && *r.Max != math.MaxInt64 {
		d.add(check{kind: isMax, src: src, n: *r.Max})
	}
}

// hookUnify adds what the check without guards does before it looks at the range: the first size that holds a symbol gives
// its value, later ones must agree.
func (d *deriver) hookUnify(src source, e *symbolic.Expr) {
	sym, a, b, ok := e.Linear()
	if !ok {
		return
	}
	root, seen := d.hookRoot[sym]
	if !seen {
		d.hookRoot[sym] = check{src: src, num: a, off: b}
		if a != 1 && a != -1 {
			d.set.hook = append(d.set.hook, check{kind: isSolvable, src: src, num: a, off: b, expr: e})
		}
		return
	}
	d.set.hook = append(d.set.hook, relation(root.src, root.num, root.off, src, a, b, e))
}

// relation says that src = a*s + b, where ref = ra*s + rb.
func relation(ref source, ra, rb int64, src source, a, b int64, e *symbolic.Expr) check {
	g := gcd(ra, a)
	if ra < 0 {
		g = -g
	}
	num, den := a/g, ra/g
	return check{kind: isLinear, src: src, ref: ref, num: num, den: den, off: den*b - num*rb, expr: e}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a, 1)
}

// relations adds the equations between sizes whose common symbol is hidden, and finds where symbols get their values.
func (d *deriver) relations() {
	roots := map[string]check{}
	for _, q := range d.deferred {
		if q.expr.Op != symbolic.OpSymbol {
			continue
		}
		if _, done := roots[q.expr.Name]; !done {
			roots[q.expr.Name] = check{src: q.src, num: 1}
			d.set.binds = append(d.set.binds, binding{q.expr.Name, q.src, 1, 0})
		}
	}
	direct := len(d.set.binds)
	for _, q := range d.deferred {
		sym, a, b, ok := q.expr.Linear()
		if q.expr.Op == symbolic.OpSymbol || !ok {
			continue
		}
		root, seen := roots[sym]
		switch {
		case !seen:
			roots[sym] = check{src: q.src, num: a, off: b}
			d.set.binds = append(d.set.binds, binding{sym, q.src, a, b})
		case d.isDirect(sym, direct):
			// PyTorch 2.9 and later record these as guards
			d.set.linear = append(d.set.linear, relation(root.src, 1, 0, q.src, a, b, q.expr))
		default:
			d.set.derived = append(d.set.derived, relation(root.src, root.num, root.off, q.src, a, b, q.expr))
		}
	}
}

func (d *deriver) isDirect(sym string, n int) bool {
	for _, b := range d.set.binds[:n] {
		if b.symbol == sym {
			return true
		}
	}
	return false
}

// failed makes the error of a check that does not hold.
func (s *Set) failed(c *check, leaves []any, withGuards bool) error {
	got := c.src.value(leaves)
	if !withGuards {
		return s.hookError(c, leaves, got)
	}
	e := &Error{Path: s.inputs[c.src.input].Name, Expr: s.condition(c), Values: []Value{{s.text(c.src), got}}}
	if c.kind == isSame || c.kind == isLinear {
		e.Values = append(e.Values, Value{s.text(c.ref), c.ref.value(leaves)})
	}
	return e
}

// condition writes a check as PyTorch's guard.
func (s *Set) condition(c *check) string {
	src := s.text(c.src)
	switch c.kind {
	case isConstant:
		if f, ok := c.want.(float64); ok && f != f {
			return "math.isnan(" + src + ")"
		} else if ok && math.IsInf(f, 0) {
			return src + " == " + pyFloat(f)[:len(pyFloat(f))-3] + "math.inf"
		}
		return src + " == " + pyRepr(c.want)
	case isMin:
		return fmt.Sprintf("%s >= %d", src, c.n)
	case isMax:
		return fmt.Sprintf("%s <= %d", src, c.n)
	case isSame:
		return src + " == " + s.text(c.ref)
	case isLinear:
		t := ratio(c.num, c.den)
		if t += " * "; t == "1 * " {
			t = ""
		}
		t += s.text(c.ref)
		if c.off != 0 {
			t = ratio(c.off, c.den) + " + " + t
		}
		return t + " == " + src
	}
	return fmt.Sprintf("%s == %d", src, c.n)
}

// ratio writes a fraction in lowest terms.
func ratio(num, den int64) string {
	g := gcd(num, den)
	if num, den = num/g, den/g; den == 1 {
		return strconv.FormatInt(num, 10)
	}
	return fmt.Sprintf("%d / %d", num, den)
}

// hookError words a check as PyTorch does without guards.
func (s *Set) hookError(c *check, leaves []any, got any) error {
	e := &InputError{Path: s.place(c.src), Got: pyRepr(got)}
	if t, ok := got.(string); ok {
		e.Got = t
	}
	switch c.kind {
	case isTyped:
		e.Want = "equal to " + pyRepr(c.want)
		if t, ok := c.want.(string); ok {
			e.Want = "equal to " + t
		} else if f, ok := c.want.(float64); ok && f != f {
			e.Want = "nan"
		}
	case isMin:
		e.Want = fmt.Sprintf(">= %d", c.n)
	case isMax:
		e.Want = fmt.Sprintf("<= %d", c.n)
	case isLinear:
		ref, _ := c.ref.integer(leaves)
		want := ratio(c.num*ref+c.off, c.den)
		e.Want = "equal to " + want
	case isSolvable:
		sym, _, _, _ := c.expr.Linear()
		e.Want = fmt.Sprintf("of the form %v", c.expr)
		e.text = fmt.Sprintf("Expected input %s = %s to be of the form %v, where %s is an integer", e.Path, e.Got, c.expr, sym)
	default:
		e.Want = fmt.Sprintf("equal to %d", c.n)
		e.text = e.Error() + ". If you meant for this dimension to be dynamic, please re-export and specify dynamic_shapes (e.g. with Dim.DYNAMIC)"
	}
	return e
}

// sameConstant is Python's == on a constant and a leaf.
func sameConstant(want, got any) bool {
	if w, ok := want.(float64); ok {
		switch g := got.(type) {
		case float64:
			return w == g || (w != w && g != g)
		case int64:
			return w == float64(g) && w < 1<<63 && int64(w) == g
		case bool:
			n, _ := asInt(g)
			return w == float64(n)
		}
		return false
	}
	if w, ok := asInt(want); ok {
		if f, ok := got.(float64); ok {
			return sameConstant(f, w)
		}
		g, ok := asInt(got)
		return ok && w == g
	}
	w, ok1 := want.(string)
	g, ok2 := got.(string)
	return ok1 && ok2 && w == g
}
