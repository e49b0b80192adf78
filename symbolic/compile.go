package symbolic

import "math"

// IntFunc computes an integer expression from the values of its symbols, by slot; conditions give 0 or 1. ok is false where
// [Expr.Eval] would give an error.
type IntFunc func(vals []int64) (v int64, ok bool)

// CompileInt turns e into an IntFunc. slot gives the place of each symbol's value. It returns nil for an expression that is
// not made of integers and conditions alone, or that has a symbol without a slot; such an expression must be evaluated.
func CompileInt(e *Expr, slot func(name string) (int, bool)) IntFunc {
	switch e.Op {
	case OpInt, OpBool:
		c := e.I
		return func([]int64) (int64, bool) { return c, true }
	case OpSymbol:
		i, ok := slot(e.Name)
		if !ok {
			return nil
		}
		return func(v []int64) (int64, bool) { return v[i], true }
	}
	args := make([]IntFunc, len(e.Args))
	for i, a := range e.Args {
		if args[i] = CompileInt(a, slot); args[i] == nil {
			return nil
		}
	}
	if f, ok := intBinary[e.Op]; ok && len(args) == 2 {
		a, b := args[0], args[1]
		return func(v []int64) (int64, bool) {
			x, ok1 := a(v)
			y, ok2 := b(v)
			r, ok := f(x, y)
			return r, ok && ok1 && ok2
		}
	}
	if f, ok := intFold[e.Op]; ok && len(args) > 0 {
		return func(v []int64) (int64, bool) {
			acc, ok := args[0](v)
			for _, a := range args[1:] {
				x, ok1 := a(v)
				r, ok2 := f(acc, x)
				acc, ok = r, ok && ok1 && ok2
			}
			return acc, ok
		}
	}
	return compileLogic(e.Op, args)
}

// compileLogic compiles the operators that need not look at all their arguments.
func compileLogic(op Op, args []IntFunc) IntFunc {
	switch {
	case (op == "And" || op == "Or") && len(args) > 0:
		stop := op == "Or"
		return func(v []int64) (int64, bool) {
			for _, a := range args {
				if x, ok := a(v); !ok {
					return 0, false
				} else if (x != 0) == stop {
					return truthInt(stop), true
				}
			}
			return truthInt(!stop), true
		}
	case op == "Not" && len(args) == 1:
		return func(v []int64) (int64, bool) {
			x, ok := args[0](v)
			return truthInt(x == 0), ok
		}
	case op == "Where" && len(args) == 3:
		return func(v []int64) (int64, bool) {
			c, ok := args[0](v)
			if !ok {
				return 0, false
			}
			if c != 0 {
				return args[1](v)
			}
			return args[2](v)
		}
	case op == "Identity" && len(args) == 1:
		return args[0]
	case op == "Abs" && len(args) == 1:
		return func(v []int64) (int64, bool) {
			x, ok := args[0](v)
			return max(x, -x), ok && x != math.MinInt64
		}
	}
	return nil
}

func truthInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

var intFold = map[Op]func(x, y int64) (int64, bool){
	"Add": addOK,
	"Mul": mulInt,
	"Max": func(x, y int64) (int64, bool) { return max(x, y), true },
	"Min": func(x, y int64) (int64, bool) { return min(x, y), true },
}

var intBinary = map[Op]func(x, y int64) (int64, bool){
	"FloorDiv":          func(x, y int64) (int64, bool) { q, err := floorDivInt(x, y); return q, err == nil },
	"Mod":               func(x, y int64) (int64, bool) { m, err := modInt(x, y); return m, err == nil },
	"PythonMod":         func(x, y int64) (int64, bool) { m, err := modInt(x, y); return m, err == nil },
	"Equality":          func(x, y int64) (int64, bool) { return truthInt(x == y), true },
	"Unequality":        func(x, y int64) (int64, bool) { return truthInt(x != y), true },
	"LessThan":          func(x, y int64) (int64, bool) { return truthInt(x <= y), true },
	"StrictLessThan":    func(x, y int64) (int64, bool) { return truthInt(x < y), true },
	"GreaterThan":       func(x, y int64) (int64, bool) { return truthInt(x >= y), true },
	"StrictGreaterThan": func(x, y int64) (int64, bool) { return truthInt(x > y), true },
}
