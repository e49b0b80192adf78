// Package symbolic has the integer, float and boolean expressions over symbols that sizes, strides and guards are made of:
// parsing of both serialized forms (sympy's srepr and str), evaluation with Python's integer rules, and printing.
package symbolic

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"sort"
	"strconv"
	"strings"
)

// Op is the class of an expression node, by sympy's class name.
type Op string

// Leaves; every other Op is a function of its arguments.
const (
	OpSymbol Op = "Symbol"
	OpInt    Op = "Integer"
	OpFloat  Op = "Float"
	OpBool   Op = "Bool"
	// OpString is a name inside an expression, such as a Python string literal.
	OpString Op = "String"
)

// Expr is an immutable expression.
type Expr struct {
	Op       Op
	Args     []*Expr
	Name     string  // of a symbol or string
	I        int64   // of an Integer
	F        float64 // of a Float
	Positive bool    // assumption of a symbol
	by       Decider // who answers comparisons, nil for hints alone
}

// Symbol makes a symbol.
func Symbol(name string, positive bool) *Expr {
	return &Expr{Op: OpSymbol, Name: name, Positive: positive}
}

// Const makes an integer.
func Const(v int64) *Expr { return &Expr{Op: OpInt, I: v} }

// ErrUnbound is the kind of error for a symbol without a value; ErrUndefined for a function this package does not know.
var (
	ErrUnbound   = errors.New("symbol has no value")
	ErrUndefined = errors.New("undefined function")
	ErrOverflow  = errors.New("integer overflow")
	ErrZero      = errors.New("ZeroDivisionError: division by zero")
)

// Env gives values to symbols: int64, float64 or bool.
type Env func(name string) (any, bool)

// Eval computes the value of e: int64, float64 or bool.
func (e *Expr) Eval(env Env) (any, error) {
	switch e.Op {
	case OpInt:
		return e.I, nil
	case OpFloat:
		return e.F, nil
	case OpBool:
		return e.I != 0, nil
	case OpString:
		return e.Name, nil
	case OpSymbol:
		if v, ok := env(e.Name); ok {
			return v, nil
		}
		return nil, fmt.Errorf("symbolic: %s: %w", e.Name, ErrUnbound)
	case "And", "Or":
		for _, a := range e.Args {
			v, err := a.Eval(env)
			if err != nil {
				return nil, err
			}
			if truth(v) != (e.Op == "And") {
				return e.Op == "Or", nil
			}
		}
		return e.Op == "And", nil
	case "Where":
		return e.evalWhere(env)
	case "Piecewise":
		return e.evalPiecewise(env)
	}
	args := make([]any, len(e.Args))
	for i, a := range e.Args {
		v, err := a.Eval(env)
		if err != nil {
			return nil, err
		}
		args[i] = v
	}
	f, ok := functions[e.Op]
	if !ok {
		return nil, fmt.Errorf("symbolic: %s: %w", e.Op, ErrUndefined)
	}
	if len(args) < f.min || (f.max >= 0 && len(args) > f.max) {
		return nil, fmt.Errorf("symbolic: %s takes %d arguments, got %d", e.Op, f.min, len(args))
	}
	return f.f(args)
}

func (e *Expr) evalWhere(env Env) (any, error) {
	if len(e.Args) != 3 {
		return nil, fmt.Errorf("symbolic: Where takes 3 arguments, got %d", len(e.Args))
	}
	c, err := e.Args[0].Eval(env)
	if err != nil {
		return nil, err
	}
	if truth(c) {
		return e.Args[1].Eval(env)
	}
	return e.Args[2].Eval(env)
}

func (e *Expr) evalPiecewise(env Env) (any, error) {
	for _, p := range e.Args {
		if p.Op != "ExprCondPair" || len(p.Args) != 2 {
			return nil, fmt.Errorf("symbolic: Piecewise wants ExprCondPair arguments")
		}
		c, err := p.Args[1].Eval(env)
		if err != nil {
			return nil, err
		}
		if truth(c) {
			return p.Args[0].Eval(env)
		}
	}
	return nil, fmt.Errorf("symbolic: no condition of a Piecewise holds")
}

// EvalInt is Eval for expressions that must be integers.
func (e *Expr) EvalInt(env Env) (int64, error) {
	v, err := e.Eval(env)
	if err != nil {
		return 0, err
	}
	if i, ok := asInt(v); ok {
		return i, nil
	}
	return 0, fmt.Errorf("symbolic: %v is %v, not an integer", e, v)
}

// EvalBool is Eval for conditions.
func (e *Expr) EvalBool(env Env) (bool, error) {
	v, err := e.Eval(env)
	if err != nil {
		return false, err
	}
	return truth(v), nil
}

// Symbols calls f for each symbol in e, repeated ones too.
func (e *Expr) Symbols(f func(name string)) {
	if e.Op == OpSymbol {
		f(e.Name)
	}
	for _, a := range e.Args {
		a.Symbols(f)
	}
}

// Linear writes e as a*symbol + b with one symbol; ok is false for any other form.
func (e *Expr) Linear() (symbol string, a, b int64, ok bool) {
	at := func(v int64) (int64, bool) {
		r, err := e.EvalInt(func(string) (any, bool) { return v, true })
		return r, err == nil
	}
	n := 0
	e.Symbols(func(s string) {
		if n == 0 || symbol == s {
			symbol, n = s, 1
		} else {
			n = 2
		}
	})
	if n != 1 || !e.linearForm() {
		return "", 0, 0, false
	}
	b, ok0 := at(0)
	one, ok1 := at(1)
	if !ok0 || !ok1 || one == b {
		return "", 0, 0, false
	}
	return symbol, one - b, b, true
}

// linearForm reports that e is built of sums, and of products with at most one factor that is no constant.
func (e *Expr) linearForm() bool {
	switch e.Op {
	case OpSymbol, OpInt:
		return true
	case "Add":
		for _, a := range e.Args {
			if !a.linearForm() {
				return false
			}
		}
		return true
	case "Mul":
		vars := 0
		for _, a := range e.Args {
			if a.Op != OpInt {
				vars++
			}
			if !a.linearForm() {
				return false
			}
		}
		return vars <= 1
	}
	return false
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
	return false
}

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

func asFloat(v any) (float64, bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	i, ok := asInt(v)
	return float64(i), ok
}

type function struct {
	min, max int
	f        func(a []any) (any, error)
}

var functions map[Op]function

func init() {
	functions = map[Op]function{
		"Add":                               {0, -1, fold(int64(0), add)},
		"Mul":                               {0, -1, fold(int64(1), mul)},
		"Max":                               {1, -1, extremum(1)},
		"Min":                               {1, -1, extremum(-1)},
		"FloorDiv":                          {2, 2, floorDiv},
		"CleanDiv":                          {2, 2, floorDiv},
		"CeilDiv":                           {2, 2, ceilDiv},
		"Mod":                               {2, 2, mod},
		"PythonMod":                         {2, 2, mod},
		"ModularIndexing":                   {3, 3, modularIndexing},
		"Pow":                               {2, 2, pow},
		"PowByNatural":                      {2, 2, pow},
		"FloatPow":                          {2, 2, floats2(math.Pow)},
		"FloatTrueDiv":                      {2, 2, trueDiv},
		"IntTrueDiv":                        {2, 2, trueDiv},
		"Rational":                          {2, 2, trueDiv},
		"LShift":                            {2, 2, shiftLeft},
		"RShift":                            {2, 2, shiftRight},
		"ToFloat":                           {1, 1, floats1(func(x float64) float64 { return x })},
		"TruncToInt":                        {1, 1, toInt(math.Trunc)},
		"FloorToInt":                        {1, 1, toInt(math.Floor)},
		"CeilToInt":                         {1, 1, toInt(math.Ceil)},
		"RoundToInt":                        {1, 1, toInt(math.RoundToEven)},
		"floor":                             {1, 1, toInt(math.Floor)},
		"ceiling":                           {1, 1, toInt(math.Ceil)},
		"TruncToFloat":                      {1, 1, floats1(math.Trunc)},
		"RoundDecimal":                      {1, 2, roundDecimal},
		"Abs":                               {1, 1, abs},
		"Identity":                          {1, 1, func(a []any) (any, error) { return a[0], nil }},
		"Not":                               {1, 1, func(a []any) (any, error) { return !truth(a[0]), nil }},
		"Xor":                               {2, 2, func(a []any) (any, error) { return truth(a[0]) != truth(a[1]), nil }},
		"Equality":                          {2, 2, relation(func(c int) bool { return c == 0 })},
		"Unequality":                        {2, 2, relation(func(c int) bool { return c != 0 })},
		"LessThan":                          {2, 2, relation(func(c int) bool { return c == -1 || c == 0 })},
		"StrictLessThan":                    {2, 2, relation(func(c int) bool { return c == -1 })},
		"GreaterThan":                       {2, 2, relation(func(c int) bool { return c == 1 || c == 0 })},
		"StrictGreaterThan":                 {2, 2, relation(func(c int) bool { return c == 1 })},
		"BitwiseFn_bitwise_and":             {2, 2, bitwise(func(x, y int64) int64 { return x & y })},
		"BitwiseFn_bitwise_or":              {2, 2, bitwise(func(x, y int64) int64 { return x | y })},
		"BitwiseFn_bitwise_xor":             {2, 2, bitwise(func(x, y int64) int64 { return x ^ y })},
		"IsNonOverlappingAndDenseIndicator": {0, -1, denseIndicator},
	}
	for name, f := range map[string]func(float64) float64{"sqrt": math.Sqrt, "cos": math.Cos, "cosh": math.Cosh, "sin": math.Sin,
		"sinh": math.Sinh, "tan": math.Tan, "tanh": math.Tanh, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan,
		"exp": math.Exp, "log": math.Log, "asinh": math.Asinh, "log2": math.Log2} {
		functions[Op("OpaqueUnaryFn_"+name)] = function{1, 1, floats1(f)}
		functions[Op(name)] = function{1, 1, floats1(f)}
	}
}

func fold(zero any, f func(x, y any) (any, error)) func(a []any) (any, error) {
	return func(a []any) (any, error) {
		acc := zero
		for _, x := range a {
			var err error
			if acc, err = f(acc, x); err != nil {
				return nil, err
			}
		}
		return acc, nil
	}
}

func add(x, y any) (any, error) {
	a, ok1 := asInt(x)
	b, ok2 := asInt(y)
	if ok1 && ok2 {
		s := a + b
		if (s > a) != (b > 0) && b != 0 {
			return nil, ErrOverflow
		}
		return s, nil
	}
	return float2(x, y, func(x, y float64) float64 { return x + y })
}

func mul(x, y any) (any, error) {
	a, ok1 := asInt(x)
	b, ok2 := asInt(y)
	if ok1 && ok2 {
		p, ok := mulInt(a, b)
		if !ok {
			return nil, ErrOverflow
		}
		return p, nil
	}
	return float2(x, y, func(x, y float64) float64 { return x * y })
}

func mulInt(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	p := a * b
	if p/b != a || (a == -1 && b == math.MinInt64) || (b == -1 && a == math.MinInt64) {
		return 0, false
	}
	return p, true
}

func float2(x, y any, f func(x, y float64) float64) (any, error) {
	a, ok1 := asFloat(x)
	b, ok2 := asFloat(y)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("symbolic: want numbers, got %T and %T", x, y)
	}
	return f(a, b), nil
}

func floats1(f func(float64) float64) func(a []any) (any, error) {
	return func(a []any) (any, error) {
		x, ok := asFloat(a[0])
		if !ok {
			return nil, fmt.Errorf("symbolic: want a number, got %T", a[0])
		}
		return f(x), nil
	}
}

func floats2(f func(x, y float64) float64) func(a []any) (any, error) {
	return func(a []any) (any, error) { return float2(a[0], a[1], f) }
}

func ints2(a []any) (x, y int64, ok bool) {
	x, ok1 := asInt(a[0])
	y, ok2 := asInt(a[1])
	return x, y, ok1 && ok2
}

// FloorDiv is Python's // on integers.
func floorDivInt(x, y int64) (int64, error) {
	switch {
	case y == 0:
		return 0, ErrZero
	case x == math.MinInt64 && y == -1:
		return 0, ErrOverflow
	}
	q := x / y
	if x%y != 0 && (x < 0) != (y < 0) {
		q--
	}
	return q, nil
}

func modInt(x, y int64) (int64, error) {
	switch y {
	case 0:
		return 0, ErrZero
	case -1:
		return 0, nil
	}
	m := x % y
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	}
	return m, nil
}

func floorDiv(a []any) (any, error) {
	if x, y, ok := ints2(a); ok {
		return boxed(floorDivInt(x, y))
	}
	return float2(a[0], a[1], func(x, y float64) float64 { return math.Floor(x / y) })
}

func boxed(v int64, err error) (any, error) { return v, err }

func ceilDiv(a []any) (any, error) {
	x, y, ok := ints2(a)
	if !ok {
		return nil, fmt.Errorf("symbolic: CeilDiv of %T", a[0])
	}
	q, err := floorDivInt(x, y)
	if err == nil && q*y != x {
		q++
	}
	return q, err
}

func mod(a []any) (any, error) {
	if x, y, ok := ints2(a); ok {
		return boxed(modInt(x, y))
	}
	return float2(a[0], a[1], func(x, y float64) float64 {
		m := math.Mod(x, y)
		if m != 0 && (m < 0) != (y < 0) {
			m += y
		}
		return m
	})
}

func modularIndexing(a []any) (any, error) {
	q, err := floorDiv(a[:2])
	if err != nil {
		return nil, err
	}
	return mod([]any{q, a[2]})
}

func pow(a []any) (any, error) {
	x, y, ok := ints2(a)
	if !ok {
		return float2(a[0], a[1], math.Pow)
	}
	if y < 0 {
		if x == 0 {
			return nil, ErrZero
		}
		return math.Pow(float64(x), float64(y)), nil
	}
	if x == 0 || x == 1 || x == -1 {
		if y == 0 || (x == -1 && y%2 == 0) {
			return int64(1), nil
		}
		return x, nil
	}
	r := int64(1)
	for ; y > 0; y-- {
		if r, ok = mulInt(r, x); !ok {
			return nil, ErrOverflow
		}
	}
	return r, nil
}

func trueDiv(a []any) (any, error) {
	if x, y, ok := ints2(a); ok {
		if y == 0 {
			return nil, ErrZero
		}
		f, _ := new(big.Rat).SetFrac64(x, y).Float64()
		return f, nil
	}
	return float2(a[0], a[1], func(x, y float64) float64 { return x / y })
}

func shiftLeft(a []any) (any, error) {
	x, y, ok := ints2(a)
	if !ok || y < 0 {
		return nil, fmt.Errorf("symbolic: shift by %v", a[1])
	}
	if x == 0 {
		return int64(0), nil
	}
	if y > 62 || x<<y>>y != x {
		return nil, ErrOverflow
	}
	return x << y, nil
}

func shiftRight(a []any) (any, error) {
	x, y, ok := ints2(a)
	if !ok || y < 0 {
		return nil, fmt.Errorf("symbolic: shift by %v", a[1])
	}
	return x >> min(y, 63), nil
}

func toInt(round func(float64) float64) func(a []any) (any, error) {
	return func(a []any) (any, error) {
		if i, ok := asInt(a[0]); ok {
			return i, nil
		}
		f, ok := asFloat(a[0])
		if f = round(f); !ok || f != f || f >= 1<<63 || f < -1<<63 {
			return nil, fmt.Errorf("symbolic: cannot make an integer of %v", a[0])
		}
		return int64(f), nil
	}
}

func roundDecimal(a []any) (any, error) {
	if len(a) == 1 {
		return toInt(math.RoundToEven)(a)
	}
	x, ok1 := asFloat(a[0])
	d, ok2 := asInt(a[1])
	if !ok1 || !ok2 || d > 400 || d < -400 {
		return nil, fmt.Errorf("symbolic: round(%v, %v)", a[0], a[1])
	}
	if d >= 0 {
		return strconv.ParseFloat(strconv.FormatFloat(x, 'f', int(d), 64), 64)
	}
	p := math.Pow(10, float64(-d))
	return math.RoundToEven(x/p) * p, nil
}

func abs(a []any) (any, error) {
	if i, ok := asInt(a[0]); ok {
		if i == math.MinInt64 {
			return nil, ErrOverflow
		}
		return max(i, -i), nil
	}
	return floats1(math.Abs)(a)
}

func extremum(sign int) func(a []any) (any, error) {
	return func(a []any) (any, error) {
		best := a[0]
		for _, x := range a[1:] {
			c, err := order(x, best)
			if err != nil {
				return nil, err
			}
			if c*sign > 0 {
				best = x
			}
		}
		return best, nil
	}
}

// order compares numbers exactly; 2 stands for unordered (NaN).
func order(x, y any) (int, error) {
	if s, ok := x.(string); ok {
		if u, ok := y.(string); ok {
			return strings.Compare(s, u), nil
		}
		return 2, nil
	}
	if a, ok := asInt(x); ok {
		if b, ok := asInt(y); ok {
			switch {
			case a < b:
				return -1, nil
			case a > b:
				return 1, nil
			}
			return 0, nil
		}
	}
	a, ok1 := asFloat(x)
	b, ok2 := asFloat(y)
	if !ok1 || !ok2 {
		return 2, nil
	}
	if a != a || b != b {
		return 2, nil
	}
	if i, ok := asInt(x); ok && !math.IsInf(b, 0) {
		return new(big.Float).SetInt64(i).Cmp(big.NewFloat(b)), nil
	}
	if i, ok := asInt(y); ok && !math.IsInf(a, 0) {
		return big.NewFloat(a).Cmp(new(big.Float).SetInt64(i)), nil
	}
	switch {
	case a < b:
		return -1, nil
	case a > b:
		return 1, nil
	}
	return 0, nil
}

func relation(f func(c int) bool) func(a []any) (any, error) {
	return func(a []any) (any, error) {
		c, err := order(a[0], a[1])
		return f(c), err
	}
}

func bitwise(f func(x, y int64) int64) func(a []any) (any, error) {
	return func(a []any) (any, error) {
		x, y, ok := ints2(a)
		if !ok {
			return nil, fmt.Errorf("symbolic: bitwise operation on %T", a[0])
		}
		_, bx := a[0].(bool)
		_, by := a[1].(bool)
		if bx && by {
			return f(x, y) != 0, nil
		}
		return f(x, y), nil
	}
}

func denseIndicator(a []any) (any, error) {
	n := len(a) / 2
	type dim struct{ size, stride int64 }
	var dims []dim
	for i := range n {
		s, ok1 := asInt(a[i])
		st, ok2 := asInt(a[n+i])
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("symbolic: sizes and strides must be integers")
		}
		if s != 1 {
			dims = append(dims, dim{s, st})
		}
	}
	sort.Slice(dims, func(i, j int) bool { return dims[i].stride < dims[j].stride })
	want := int64(1)
	for _, d := range dims {
		if d.stride != want {
			return int64(0), nil
		}
		want *= d.size
	}
	return int64(1), nil
}

// Known reports whether every function in e can be evaluated; the error names the first that cannot.
func (e *Expr) Known() error {
	switch e.Op {
	case OpSymbol, OpInt, OpFloat, OpBool, OpString, "And", "Or", "Where", "Piecewise", "ExprCondPair":
	default:
		f, ok := functions[e.Op]
		if !ok {
			return fmt.Errorf("symbolic: %s: %w", e.Op, ErrUndefined)
		}
		if len(e.Args) < f.min || f.max >= 0 && len(e.Args) > f.max {
			return fmt.Errorf("symbolic: %s takes %d arguments, got %d", e.Op, f.min, len(e.Args))
		}
	}
	for _, a := range e.Args {
		if err := a.Known(); err != nil {
			return err
		}
	}
	return nil
}
