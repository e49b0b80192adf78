package symbolic

import (
	"fmt"
)

// Int is a size, stride or other integer that may depend on symbols. The zero value is the constant 0. Constants cost
// little more than an int64. A constant that overflows becomes an invalid Int, which stays invalid: see [Int.Err].
type Int struct {
	v int64
	e *Expr // nil for a constant
}

// invalid marks an overflow; it is compared by address.
var invalid = &Expr{Op: "Overflow"}

// N is the constant v.
func N(v int64) Int { return Int{v: v} }

// FromExpr makes an Int of an expression; integers become constants. hint is the value to assume where one is needed.
func FromExpr(e *Expr, hint int64) Int {
	if e.Op == OpInt {
		return N(e.I)
	}
	return Int{v: hint, e: e}
}

// Const gives the value of a constant.
func (a Int) Const() (int64, bool) { return a.v, a.e == nil }

// IsConst reports a constant.
func (a Int) IsConst() bool { return a.e == nil }

// Int64 is the value of a constant, or the hint of an expression. An expression under a [Decider] is fixed to its hint by that.
func (a Int) Int64() int64 {
	if a.e != nil && a.e.by != nil {
		return a.e.by.Fix(a)
	}
	return a.v
}

// Hint is [Int.Int64] without any effect.
func (a Int) Hint() int64 { return a.v }

// Expr is a as an expression.
func (a Int) Expr() *Expr {
	if a.e == nil {
		return Const(a.v)
	}
	return a.e
}

// Err is ErrOverflow for an Int that came from an overflow.
func (a Int) Err() error {
	if a.e == invalid {
		return fmt.Errorf("symbolic: a size overflows 64 bits: %w", ErrOverflow)
	}
	return nil
}

// String prints the value or the expression.
func (a Int) String() string {
	if a.e == invalid {
		return "overflow"
	}
	return a.Expr().String()
}

var overflow = Int{e: invalid}

func (a Int) binary(b Int, op Op, hint func(x, y int64) (int64, bool)) Int {
	v, ok := hint(a.v, b.v)
	if a.e == invalid || b.e == invalid || !ok {
		return overflow
	}
	if a.e == nil && b.e == nil {
		return N(v)
	}
	return Int{v: v, e: &Expr{Op: op, Args: []*Expr{a.Expr(), b.Expr()}, by: a.decider(b)}}
}

func addOK(x, y int64) (int64, bool) {
	s := x + y
	return s, (s > x) == (y > 0) || y == 0
}

// Add is a + b.
func (a Int) Add(b Int) Int {
	if b.e == nil && b.v == 0 {
		return a
	}
	return a.binary(b, "Add", addOK)
}

// Sub is a - b.
func (a Int) Sub(b Int) Int { return a.Add(b.Neg()) }

// Neg is -a.
func (a Int) Neg() Int {
	if a.e == nil && a.v != -a.v {
		return N(-a.v)
	}
	return a.Mul(N(-1))
}

// Mul is a * b.
func (a Int) Mul(b Int) Int {
	if a.e == nil && b.e == nil {
		if x, y := uint64(a.v), uint64(b.v); x|y < 1<<31 {
			return N(a.v * b.v)
		}
	}
	if b.e == nil && b.v == 1 {
		return a
	}
	if a.e == nil && a.v == 1 {
		return b
	}
	return a.binary(b, "Mul", mulInt)
}

// FloorDiv is Python's a // b; division by zero gives an invalid Int.
func (a Int) FloorDiv(b Int) Int {
	return a.binary(b, "FloorDiv", func(x, y int64) (int64, bool) { q, err := floorDivInt(x, y); return q, err == nil })
}

// CeilDiv is the ceiling of a / b.
func (a Int) CeilDiv(b Int) Int { return a.Add(b.SubN(1)).FloorDiv(b) }

// Mod is Python's a % b.
func (a Int) Mod(b Int) Int {
	return a.binary(b, "PythonMod", func(x, y int64) (int64, bool) { m, err := modInt(x, y); return m, err == nil })
}

// Max is the larger of a and b.
func (a Int) Max(b Int) Int {
	return a.binary(b, "Max", func(x, y int64) (int64, bool) { return max(x, y), true })
}

// Min is the smaller of a and b.
func (a Int) Min(b Int) Int {
	return a.binary(b, "Min", func(x, y int64) (int64, bool) { return min(x, y), true })
}

// AddN is a + n.
func (a Int) AddN(n int64) Int { return a.Add(N(n)) }

// SubN is a - n.
func (a Int) SubN(n int64) Int { return a.Sub(N(n)) }

// MulN is a * n.
func (a Int) MulN(n int64) Int { return a.Mul(N(n)) }

// DivN is a // n.
func (a Int) DivN(n int64) Int { return a.FloorDiv(N(n)) }

// Sum adds.
func Sum(xs ...Int) Int {
	s := Int{}
	for _, x := range xs {
		s = s.Add(x)
	}
	return s
}

// Prod multiplies; a factor of 0 wins over an overflow.
func Prod(xs ...Int) Int {
	p := N(1)
	for _, x := range xs {
		if x.e == nil && x.v == 0 {
			return N(0)
		}
	}
	for _, x := range xs {
		p = p.Mul(x)
	}
	return p
}

// Comparisons decide by value: by the hint where an operand is symbolic, or as its [Decider] says.

// Eq is a == b.
func (a Int) Eq(b Int) bool {
	if a.e == nil && b.e == nil {
		return a.v == b.v
	}
	return a.decide("Equality", b)
}

// Ne is a != b.
func (a Int) Ne(b Int) bool { return !a.Eq(b) }

// Lt is a < b.
func (a Int) Lt(b Int) bool {
	if a.e == nil && b.e == nil {
		return a.v < b.v
	}
	return a.decide("StrictLessThan", b)
}

// Le is a <= b.
func (a Int) Le(b Int) bool {
	if a.e == nil && b.e == nil {
		return a.v <= b.v
	}
	return a.decide("LessThan", b)
}

// Gt is a > b.
func (a Int) Gt(b Int) bool { return b.Lt(a) }

// Ge is a >= b.
func (a Int) Ge(b Int) bool { return b.Le(a) }

// Same reports structural equality, without regard to hints.
func (a Int) Same(b Int) bool {
	if a.e == nil || b.e == nil {
		return a.e == b.e && a.v == b.v
	}
	return a.e == b.e || a.e.Srepr() == b.e.Srepr()
}
