package symbolic

import "slices"

// Decider answers what code asks of integers that depend on symbols, and may remember that it was asked.
type Decider interface {
	// Decide tells whether a op b holds. op is "Equality", "LessThan" or "StrictLessThan".
	Decide(op Op, a, b Int) bool
	// Fix gives the value of a for whoever takes it as a plain number.
	Fix(a Int) int64
}

// Under is a with d in charge of it and of all that is computed from it. A constant stays as it is; so does all if d is nil.
func (a Int) Under(d Decider) Int {
	if a.e == nil || a.e == invalid || d == nil {
		return a
	}
	e := *a.e
	e.by = d
	return Int{v: a.v, e: &e}
}

// Decider is who is in charge of a, nil if nobody is.
func (a Int) Decider() Decider { return a.decider(Int{}) }

func (a Int) decider(b Int) Decider {
	if a.e != nil && a.e.by != nil {
		return a.e.by
	}
	if b.e != nil {
		return b.e.by
	}
	return nil
}

// decide compares two of which one at least is symbolic.
func (a Int) decide(op Op, b Int) bool {
	if a.e != invalid && b.e != invalid {
		if d := a.decider(b); d != nil {
			return d.Decide(op, a, b)
		}
	}
	switch op {
	case "Equality":
		return a.v == b.v && a.e != invalid && b.e != invalid
	case "LessThan":
		return a.v <= b.v
	}
	return a.v < b.v
}

// Substitute puts expressions in the place of symbols. What holds none of them stays the same.
func (e *Expr) Substitute(by func(name string) *Expr) *Expr {
	if e.Op == OpSymbol {
		if r := by(e.Name); r != nil {
			return r
		}
		return e
	}
	var args []*Expr
	for i, a := range e.Args {
		if b := a.Substitute(by); b != a {
			if args == nil {
				args = slices.Clone(e.Args)
			}
			args[i] = b
		}
	}
	if args == nil {
		return e
	}
	return &Expr{Op: e.Op, Args: args, Name: e.Name, I: e.I, F: e.F, Positive: e.Positive}
}
