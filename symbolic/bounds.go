package symbolic

import "math"

// Interval is an inclusive range of integers; math.MinInt64 and math.MaxInt64 stand for no bound.
type Interval struct{ Min, Max int64 }

// Unbounded is the range of all integers.
var Unbounded = Interval{math.MinInt64, math.MaxInt64}

// Has reports that v lies in the interval.
func (r Interval) Has(v int64) bool { return r.Min <= v && v <= r.Max }

// Intersect is what lies in both; it is empty if Min > Max.
func (r Interval) Intersect(o Interval) Interval {
	return Interval{max(r.Min, o.Min), min(r.Max, o.Max)}
}

// Bounds gives an interval that holds every value of e while each symbol stays in its range. It may be wider than need be.
func (e *Expr) Bounds(of func(name string) Interval) Interval {
	switch e.Op {
	case OpInt:
		return Interval{e.I, e.I}
	case OpSymbol:
		return of(e.Name)
	case "Add", "Mul", "Max", "Min":
		return e.boundsOfMany(of)
	case "FloorDiv", "CleanDiv":
		return quotient(e.Args[0].Bounds(of), e.Args[1].Bounds(of))
	case "Mod", "PythonMod":
		x, y := e.Args[0].Bounds(of), e.Args[1].Bounds(of)
		if y.Min < 1 {
			return Unbounded
		}
		if x.Min >= 0 && x.Max < y.Min {
			return x
		}
		r := Interval{0, math.MaxInt64}
		if y.Max != math.MaxInt64 {
			r.Max = y.Max - 1
		}
		if x.Min >= 0 {
			r.Max = min(r.Max, x.Max)
		}
		return r
	case "Pow", "PowByNatural":
		if n := e.Args[1]; n.Op == OpInt && n.I > 0 && n.I <= 8 {
			x := e.Args[0].Bounds(of)
			if x.Min >= 0 {
				r := x
				for range n.I - 1 {
					r = Interval{satMul(r.Min, x.Min), satMul(r.Max, x.Max)}
				}
				return r
			}
		}
	}
	return Unbounded
}

func (e *Expr) boundsOfMany(of func(name string) Interval) Interval {
	var r Interval
	for i, a := range e.Args {
		x := a.Bounds(of)
		switch {
		case i == 0:
			r = x
		case e.Op == "Add":
			r = Interval{satAdd(r.Min, x.Min, math.MinInt64), satAdd(r.Max, x.Max, math.MaxInt64)}
		case e.Op == "Max":
			r = Interval{max(r.Min, x.Min), max(r.Max, x.Max)}
		case e.Op == "Min":
			r = Interval{min(r.Min, x.Min), min(r.Max, x.Max)}
		default:
			p := [4]int64{satMul(r.Min, x.Min), satMul(r.Min, x.Max), satMul(r.Max, x.Min), satMul(r.Max, x.Max)}
			r = Interval{min(p[0], p[1], p[2], p[3]), max(p[0], p[1], p[2], p[3])}
		}
	}
	return r
}

// satAdd adds; where a summand is infinite or the sum overflows, the result is the infinity of that side.
func satAdd(x, y, inf int64) int64 {
	if x == math.MinInt64 || y == math.MinInt64 {
		if x == math.MaxInt64 || y == math.MaxInt64 {
			return inf
		}
		return math.MinInt64
	}
	if x == math.MaxInt64 || y == math.MaxInt64 {
		return math.MaxInt64
	}
	if s, ok := addOK(x, y); ok {
		return s
	}
	if x > 0 {
		return math.MaxInt64
	}
	return math.MinInt64
}

// satMul multiplies, with infinities.
func satMul(x, y int64) int64 {
	if x == 0 || y == 0 {
		return 0
	}
	infinite := func(v int64) bool { return v == math.MinInt64 || v == math.MaxInt64 }
	if !infinite(x) && !infinite(y) {
		if p, ok := mulInt(x, y); ok {
			return p
		}
	}
	if (x < 0) == (y < 0) {
		return math.MaxInt64
	}
	return math.MinInt64
}

// quotient bounds a floor division by a positive number.
func quotient(x, y Interval) Interval {
	if y.Min < 1 {
		return Unbounded
	}
	div := func(a, b int64) int64 {
		switch {
		case a == math.MinInt64 || a == math.MaxInt64:
			if b == math.MaxInt64 {
				return 0
			}
			return a
		case b == math.MaxInt64:
			if a < 0 {
				return -1
			}
			return 0
		}
		q, err := floorDivInt(a, b)
		if err != nil {
			return a
		}
		return q
	}
	lo := min(div(x.Min, y.Min), div(x.Min, y.Max))
	hi := max(div(x.Max, y.Min), div(x.Max, y.Max))
	return Interval{lo, hi}
}
