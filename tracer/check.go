package tracer

import (
	"fmt"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
)

// Bool is a condition over sizes and numbers of a run. It decides nothing until somebody asks: [Check] hands it to the program.
type Bool struct {
	v   bool
	e   *symbolic.Expr // nil for a constant
	env *env
}

// Eq is a == b. Operands of comparisons are integers, [symbolic.Int], floats and [Float].
func Eq(a, b any) Bool { return compare("Equality", a, b) }

// Ne is a != b.
func Ne(a, b any) Bool { return compare("Unequality", a, b) }

// Lt is a < b.
func Lt(a, b any) Bool { return compare("StrictLessThan", a, b) }

// Le is a <= b.
func Le(a, b any) Bool { return compare("LessThan", a, b) }

// Gt is a > b.
func Gt(a, b any) Bool { return compare("StrictGreaterThan", a, b) }

// Ge is a >= b.
func Ge(a, b any) Bool { return compare("GreaterThan", a, b) }

func compare(op symbolic.Op, a, b any) Bool {
	x, env1 := comparand(a)
	y, env2 := comparand(b)
	e := &symbolic.Expr{Op: op, Args: []*symbolic.Expr{x, y}}
	env := env1
	if env == nil {
		env = env2
	}
	if v, err := e.EvalBool(func(string) (any, bool) { return nil, false }); err == nil {
		return Bool{v: v}
	}
	if env == nil {
		panic(invalid("the comparison %v is of no run", e))
	}
	return Bool{e: e, env: env}
}

func comparand(x any) (*symbolic.Expr, *env) {
	switch x := x.(type) {
	case symbolic.Int:
		env, _ := x.Decider().(*env)
		return x.Expr().Simplify(), env
	case int:
		return symbolic.Const(int64(x)), nil
	case int64:
		return symbolic.Const(x), nil
	}
	f := floatOf(x)
	return f.expr(), f.env
}

// And holds where both do.
func (b Bool) And(o Bool) Bool { return b.combine("And", o) }

// Or holds where one does.
func (b Bool) Or(o Bool) Bool { return b.combine("Or", o) }

func (b Bool) combine(op symbolic.Op, o Bool) Bool {
	switch {
	case b.e == nil && o.e == nil:
		return Bool{v: op == "And" && b.v && o.v || op == "Or" && (b.v || o.v)}
	case b.e == nil:
		return o.combine(op, b)
	case o.e == nil && o.v == (op == "And"):
		return b
	case o.e == nil:
		return o
	}
	return Bool{e: &symbolic.Expr{Op: op, Args: []*symbolic.Expr{b.e, o.e}}, env: b.env}
}

var opposite = map[symbolic.Op]symbolic.Op{"Equality": "Unequality", "Unequality": "Equality", "LessThan": "StrictGreaterThan", "StrictGreaterThan": "LessThan",
	"StrictLessThan": "GreaterThan", "GreaterThan": "StrictLessThan"}

// Not is the contrary.
func (b Bool) Not() Bool {
	switch {
	case b.e == nil:
		return Bool{v: !b.v}
	case opposite[b.e.Op] != "":
		return Bool{e: &symbolic.Expr{Op: opposite[b.e.Op], Args: b.e.Args}, env: b.env}
	case b.e.Op == "Not":
		return Bool{e: b.e.Args[0], env: b.env}
	}
	op := symbolic.Op("And")
	if b.e.Op == "And" {
		op = "Or"
	}
	x, y := Bool{e: b.e.Args[0], env: b.env}.Not(), Bool{e: b.e.Args[1], env: b.env}.Not()
	return x.combine(op, y)
}

// Value decides: by what is known, else by the examples, which becomes a guard of the program. What data decides is a
// [DataDependentError] while a model is exported.
func (b Bool) Value() bool {
	if v, known := b.known(); known {
		return v
	}
	switch b.e.Op {
	case "And":
		return b.part(0).Value() && b.part(1).Value()
	case "Or":
		return b.part(0).Value() || b.part(1).Value()
	}
	if data := b.env.hasUnbacked(b.e); hasFloat(b.e) || data && b.env.draft == nil {
		panic(&DataDependentError{Expr: b.e.String(), Where: place()})
	}
	x, y := b.side(0), b.side(1)
	switch b.e.Op {
	case "Equality":
		return x.Eq(y)
	case "Unequality":
		return x.Ne(y)
	case "LessThan":
		return x.Le(y)
	case "StrictLessThan":
		return x.Lt(y)
	case "GreaterThan":
		return x.Ge(y)
	}
	return x.Gt(y)
}

func (b Bool) part(i int) Bool { return Bool{e: b.e.Args[i], env: b.env} }

func (b Bool) side(i int) symbolic.Int {
	return b.env.rec.Size(symbolic.FromExpr(b.e.Args[i], 0))
}

// known tells what holds for all data and sizes that may come.
func (b Bool) known() (yes, known bool) {
	if b.e == nil {
		return b.v, true
	}
	switch b.e.Op {
	case "And", "Or":
		x, kx := b.part(0).known()
		y, ky := b.part(1).known()
		end := b.e.Op == "Or"
		if kx && x == end || ky && y == end {
			return end, true
		}
		return !end, kx && ky
	}
	if hasFloat(b.e) {
		return false, false
	}
	c := canonical(b.e)
	if c.Op == "Unequality" {
		yes, known = b.env.ask("Equality", c.Args[0], c.Args[1])
		return !yes, known
	}
	return b.env.ask(c.Op, c.Args[0], c.Args[1])
}

// StaticallyKnownTrue reports that b holds whatever data and sizes come; it guards on nothing.
func StaticallyKnownTrue(b Bool) bool {
	yes, known := b.known()
	return yes && known
}

// GuardOrFalse is [Bool.Value], and false where only data knows.
func GuardOrFalse(b Bool) bool { return b.or(false) }

// GuardOrTrue is [Bool.Value], and true where only data knows.
func GuardOrTrue(b Bool) bool { return b.or(true) }

func (b Bool) or(otherwise bool) bool {
	if yes, known := b.known(); known {
		return yes
	}
	if b.env.hasUnbacked(b.e) || hasFloat(b.e) {
		return otherwise
	}
	return b.Value()
}

// Check makes sure that a condition holds, as torch._check: an eager run fails with the message where it does not, and an exported program
// checks it and knows it from here on.
func Check(b Bool, msg ...any) { b.check("RuntimeError", msg) }

// CheckValue is [Check] whose failure is a ValueError, as torch._check_value.
func CheckValue(b Bool, msg ...any) { b.check("ValueError", msg) }

// CheckIndex is [Check] whose failure is an IndexError, as torch._check_index.
func CheckIndex(b Bool, msg ...any) { b.check("IndexError", msg) }

// CheckIsSize makes sure that n can be a size, as torch._check_is_size; with max, that it is at most max.
func CheckIsSize(n symbolic.Int, max ...int64) {
	Check(Ge(n, 0), fmt.Sprintf("Expected cond to be True, but got %v < 0", n))
	for _, m := range max {
		Check(Le(n, m), fmt.Sprintf("Expected cond to be True, but got %v > %d", n, m))
	}
}

func (b Bool) check(kind string, msg []any) {
	if b.e != nil { // Python's comparison is a node of its own
		s := b.env.session
		s.rec.SetMetadata(s.metadata("check"))
		s.rec.Condition(b.e)
	}
	yes, known := b.known()
	switch {
	case known && yes:
		return
	case known:
		text := "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement request to PyTorch.)"
		if len(msg) > 0 {
			text = fmt.Sprint(msg...)
		}
		panic(&aten.Error{Kind: kind, Msg: text})
	case b.e.Op == "And":
		b.part(0).check(kind, msg)
		b.part(1).check(kind, msg)
		return
	}
	if !b.env.deferred && !b.env.hasUnbacked(b.e) && !hasFloat(b.e) {
		if !b.Value() {
			panic(&aten.Error{Kind: kind, Msg: fmt.Sprintf("the example does not meet %v: %s", b.e, fmt.Sprint(msg...))})
		}
		return
	}
	b.env.require(b.e)
}

// require makes the program check a condition that data decides.
func (e *env) require(x *symbolic.Expr) {
	c := canonical(x)
	if len(c.Args) == 2 && c.Op != "Or" && !hasFloat(c) {
		e.assert(guard{op: c.Op, a: c.Args[0], b: c.Args[1]})
		return
	}
	e.unbacked.asserts = append(e.unbacked.asserts, c)
}
