package interp

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
)

// scalarFunc is a Python function over symbolic scalars; arguments and result are int64, float64 or bool.
type scalarFunc func(a []any) (any, error)

// scalarFuncs are the plain Python callables that occur in graphs, with Python's semantics.
var scalarFuncs = map[string]scalarFunc{
	"_operator.add":      pyAdd,
	"_operator.sub":      arith(subInt, func(x, y float64) (float64, error) { return x - y, nil }),
	"_operator.mul":      arith(mulInt, func(x, y float64) (float64, error) { return x * y, nil }),
	"_operator.floordiv": arith(floorDivInt, floorDivFloat),
	"_operator.mod":      arith(modInt, modFloat),
	"_operator.truediv":  trueDiv,
	"_operator.pow":      pow,
	"_operator.neg":      neg,
	"_operator.pos":      unary(func(x any) (any, error) { return x, nil }),
	"_operator.abs":      abs,
	"_operator.lshift":   intFunc(func(x, y int64) (int64, error) { return shift(x, y) }),
	"_operator.rshift":   intFunc(func(x, y int64) (int64, error) { return shiftRight(x, y) }),
	"_operator.and_":     logic(func(x, y int64) int64 { return x & y }),
	"_operator.or_":      logic(func(x, y int64) int64 { return x | y }),
	"_operator.xor":      logic(func(x, y int64) int64 { return x ^ y }),
	"_operator.not_":     unary(func(x any) (any, error) { return !truth(x), nil }),
	"_operator.eq":       compare(func(c int, nan bool) bool { return c == 0 && !nan }),
	"_operator.ne":       compare(func(c int, nan bool) bool { return c != 0 || nan }),
	"_operator.lt":       compare(func(c int, nan bool) bool { return c < 0 && !nan }),
	"_operator.le":       compare(func(c int, nan bool) bool { return c <= 0 && !nan }),
	"_operator.gt":       compare(func(c int, nan bool) bool { return c > 0 && !nan }),
	"_operator.ge":       compare(func(c int, nan bool) bool { return c >= 0 && !nan }),
	"torch.sym_int":      toInt(math.Trunc),
	"math.trunc":         toInt(math.Trunc),
	"math.floor":         toInt(math.Floor),
	"math.ceil":          toInt(math.Ceil),
	"round":              toInt(math.RoundToEven),
	"torch.sym_float":    unary(func(x any) (any, error) { return wrap(toFloat(x)) }),
	"torch.sym_not":      unary(func(x any) (any, error) { return !truth(x), nil }),
	"torch.sym_max":      extremum(1),
	"torch.sym_min":      extremum(-1),
	"torch.sym_ite": func(a []any) (any, error) {
		if err := arity(a, 3); err != nil {
			return nil, err
		}
		if truth(a[0]) {
			return a[1], nil
		}
		return a[2], nil
	},
	"torch.sym_sum":    symSum,
	"torch._sym_sqrt":  floatFunc(math.Sqrt),
	"torch.sym_sqrt":   floatFunc(math.Sqrt),
	"torch._sym_cos":   floatFunc(math.Cos),
	"torch._sym_cosh":  floatFunc(math.Cosh),
	"torch._sym_sin":   floatFunc(math.Sin),
	"torch._sym_sinh":  floatFunc(math.Sinh),
	"torch._sym_tan":   floatFunc(math.Tan),
	"torch._sym_tanh":  floatFunc(math.Tanh),
	"torch._sym_asin":  floatFunc(math.Asin),
	"torch._sym_acos":  floatFunc(math.Acos),
	"torch._sym_atan":  floatFunc(math.Atan),
	"torch._sym_exp":   floatFunc(math.Exp),
	"torch._sym_log":   floatFunc(math.Log),
	"torch._sym_log2":  floatFunc(math.Log2),
	"torch._sym_asinh": floatFunc(math.Asinh),
}

// IsScalarFunc reports a graph target that is a Python function over numbers.
func IsScalarFunc(target string) bool { _, ok := scalarFuncs[target]; return ok }

// unary is a function of one argument.
func unary(f func(x any) (any, error)) scalarFunc {
	return func(a []any) (any, error) {
		if err := arity(a, 1); err != nil {
			return nil, err
		}
		return f(a[0])
	}
}

func arity(a []any, n int) error {
	if len(a) != n {
		return fmt.Errorf("got %d arguments, want %d", len(a), n)
	}
	return nil
}

var errOverflow = fmt.Errorf("integer overflow: the result does not fit 64 bits")

func addInt(x, y int64) (int64, error) {
	s := x + y
	if (s > x) == (y > 0) || y == 0 {
		return s, nil
	}
	return 0, errOverflow
}

func subInt(x, y int64) (int64, error) {
	s := x - y
	if (s < x) == (y > 0) || y == 0 {
		return s, nil
	}
	return 0, errOverflow
}

func mulInt(x, y int64) (int64, error) {
	if x == 0 || y == 0 {
		return 0, nil
	}
	p := x * y
	if p/y != x || (x == -1 && y == math.MinInt64) || (y == -1 && x == math.MinInt64) {
		return 0, errOverflow
	}
	return p, nil
}

func floorDivInt(x, y int64) (int64, error) {
	if y == 0 {
		return 0, fmt.Errorf("ZeroDivisionError: integer division or modulo by zero")
	}
	if x == math.MinInt64 && y == -1 {
		return 0, errOverflow
	}
	q := x / y
	if x%y != 0 && (x < 0) != (y < 0) {
		q--
	}
	return q, nil
}

func modInt(x, y int64) (int64, error) {
	if y == 0 {
		return 0, fmt.Errorf("ZeroDivisionError: integer division or modulo by zero")
	}
	if y == -1 {
		return 0, nil
	}
	m := x % y
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	}
	return m, nil
}

func floorDivFloat(x, y float64) (float64, error) {
	if y == 0 {
		return 0, fmt.Errorf("ZeroDivisionError: float floor division by zero")
	}
	m, _ := modFloat(x, y)
	return math.Round((x - m) / y), nil
}

func modFloat(x, y float64) (float64, error) {
	if y == 0 {
		return 0, fmt.Errorf("ZeroDivisionError: float modulo by zero")
	}
	m := math.Mod(x, y)
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	} else if m == 0 {
		m = math.Copysign(0, y)
	}
	return m, nil
}

// arith applies an integer or a float form, as Python picks them; a bool counts as an int.
func arith(fi func(x, y int64) (int64, error), ff func(x, y float64) (float64, error)) scalarFunc {
	return func(a []any) (any, error) {
		if err := arity(a, 2); err != nil {
			return nil, err
		}
		if x, ok := asInt(a[0]); ok {
			if y, ok := asInt(a[1]); ok {
				return wrap(fi(x, y))
			}
		}
		x, err := toFloat(a[0])
		if err != nil {
			return nil, err
		}
		y, err := toFloat(a[1])
		if err != nil {
			return nil, err
		}
		return wrap(ff(x, y))
	}
}

func wrap[T any](v T, err error) (any, error) { return v, err }

func asInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func toFloat(v any) (float64, error) {
	if f, ok := v.(float64); ok {
		return f, nil
	}
	if i, ok := asInt(v); ok {
		return float64(i), nil
	}
	return 0, fmt.Errorf("want a number, got %T", v)
}

func truth(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	}
	return v != nil
}

// trueDiv is Python's /: for ints the correctly rounded quotient.
func trueDiv(a []any) (any, error) {
	if err := arity(a, 2); err != nil {
		return nil, err
	}
	x, okx := asInt(a[0])
	y, oky := asInt(a[1])
	if okx && oky {
		if y == 0 {
			return nil, fmt.Errorf("ZeroDivisionError: division by zero")
		}
		f, _ := new(big.Rat).SetFrac64(x, y).Float64()
		return f, nil
	}
	fx, err := toFloat(a[0])
	if err != nil {
		return nil, err
	}
	fy, err := toFloat(a[1])
	if err != nil {
		return nil, err
	}
	if fy == 0 {
		return nil, fmt.Errorf("ZeroDivisionError: float division by zero")
	}
	return fx / fy, nil
}

func pow(a []any) (any, error) {
	if err := arity(a, 2); err != nil {
		return nil, err
	}
	x, okx := asInt(a[0])
	y, oky := asInt(a[1])
	if okx && oky && y >= 0 {
		r := int64(1)
		if x == 0 || x == 1 || x == -1 {
			if y == 0 {
				return int64(1), nil
			}
			if x == -1 && y%2 == 0 {
				return int64(1), nil
			}
			return x, nil
		}
		if y > int64(bits.UintSize) {
			return nil, errOverflow
		}
		for range y {
			var err error
			if r, err = mulInt(r, x); err != nil {
				return nil, err
			}
		}
		return r, nil
	}
	fx, err := toFloat(a[0])
	if err != nil {
		return nil, err
	}
	fy, err := toFloat(a[1])
	if err != nil {
		return nil, err
	}
	return math.Pow(fx, fy), nil
}

func neg(a []any) (any, error) {
	if err := arity(a, 1); err != nil {
		return nil, err
	}
	if i, ok := asInt(a[0]); ok {
		return wrap(subInt(0, i))
	}
	f, err := toFloat(a[0])
	return -f, err
}

func abs(a []any) (any, error) {
	if err := arity(a, 1); err != nil {
		return nil, err
	}
	if i, ok := asInt(a[0]); ok {
		if i < 0 {
			return wrap(subInt(0, i))
		}
		return i, nil
	}
	f, err := toFloat(a[0])
	return math.Abs(f), err
}

func intFunc(f func(x, y int64) (int64, error)) scalarFunc {
	return func(a []any) (any, error) {
		if err := arity(a, 2); err != nil {
			return nil, err
		}
		x, okx := asInt(a[0])
		y, oky := asInt(a[1])
		if !okx || !oky {
			return nil, fmt.Errorf("want integers, got %T and %T", a[0], a[1])
		}
		return wrap(f(x, y))
	}
}

func shift(x, y int64) (int64, error) {
	if y < 0 {
		return 0, fmt.Errorf("ValueError: negative shift count")
	}
	if x == 0 {
		return 0, nil
	}
	if y > 62 || (x<<y)>>y != x {
		return 0, errOverflow
	}
	return x << y, nil
}

func shiftRight(x, y int64) (int64, error) {
	if y < 0 {
		return 0, fmt.Errorf("ValueError: negative shift count")
	}
	return x >> min(y, 63), nil
}

// logic is a bitwise operator, which on two bools gives a bool.
func logic(f func(x, y int64) int64) scalarFunc {
	return func(a []any) (any, error) {
		if err := arity(a, 2); err != nil {
			return nil, err
		}
		x, okx := asInt(a[0])
		y, oky := asInt(a[1])
		if !okx || !oky {
			return nil, fmt.Errorf("want integers or bools, got %T and %T", a[0], a[1])
		}
		_, bx := a[0].(bool)
		_, by := a[1].(bool)
		if bx && by {
			return f(x, y) != 0, nil
		}
		return f(x, y), nil
	}
}

// order compares two numbers exactly, also an int with a float.
func order(a, b any) (c int, nan bool, err error) {
	x, okx := asInt(a)
	y, oky := asInt(b)
	if okx && oky {
		switch {
		case x < y:
			return -1, false, nil
		case x > y:
			return 1, false, nil
		}
		return 0, false, nil
	}
	fx, err := toFloat(a)
	if err != nil {
		return 0, false, err
	}
	fy, err := toFloat(b)
	if err != nil {
		return 0, false, err
	}
	if fx != fx || fy != fy {
		return 0, true, nil
	}
	bx, by := exact(x, okx, fx), exact(y, oky, fy)
	if bx == nil || by == nil { // an infinity
		switch {
		case fx < fy:
			return -1, false, nil
		case fx > fy:
			return 1, false, nil
		}
		return 0, false, nil
	}
	return bx.Cmp(by), false, nil
}

func exact(i int64, isInt bool, f float64) *big.Float {
	if isInt {
		return new(big.Float).SetInt64(i)
	}
	if math.IsInf(f, 0) {
		return nil
	}
	return big.NewFloat(f)
}

func compare(f func(c int, nan bool) bool) scalarFunc {
	return func(a []any) (any, error) {
		if err := arity(a, 2); err != nil {
			return nil, err
		}
		c, nan, err := order(a[0], a[1])
		return f(c, nan), err
	}
}

func extremum(sign int) scalarFunc {
	return func(a []any) (any, error) {
		if err := arity(a, 2); err != nil {
			return nil, err
		}
		c, nan, err := order(a[0], a[1])
		if err != nil {
			return nil, err
		}
		r := a[0]
		if nan || c*sign < 0 {
			r = a[1]
		}
		// One float among the two makes the result a float.
		_, f0 := a[0].(float64)
		_, f1 := a[1].(float64)
		if f0 || f1 {
			return wrap(toFloat(r))
		}
		return r, nil
	}
}

func toInt(round func(float64) float64) scalarFunc {
	return func(a []any) (any, error) {
		if err := arity(a, 1); err != nil {
			return nil, err
		}
		if i, ok := asInt(a[0]); ok {
			return i, nil
		}
		f, err := toFloat(a[0])
		if err != nil {
			return nil, err
		}
		f = round(f)
		if f != f || f >= 1<<63 || f < -1<<63 {
			return nil, fmt.Errorf("cannot convert float %v to an integer", f)
		}
		return int64(f), nil
	}
}

func floatFunc(f func(float64) float64) scalarFunc {
	return func(a []any) (any, error) {
		if err := arity(a, 1); err != nil {
			return nil, err
		}
		x, err := toFloat(a[0])
		return f(x), err
	}
}

func symSum(a []any) (any, error) {
	if err := arity(a, 1); err != nil {
		return nil, err
	}
	list, _ := a[0].([]any)
	var sum any = int64(0)
	for _, x := range list {
		var err error
		if sum, err = pyAdd([]any{sum, x}); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

var pyAdd = arith(addInt, func(x, y float64) (float64, error) { return x + y, nil })
