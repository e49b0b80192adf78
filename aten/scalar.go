package aten

import (
	"fmt"
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// ScalarKind tells what a [Scalar] holds; the order is that of type promotion.
type ScalarKind uint8

// The kinds of a Scalar.
const (
	BoolScalar ScalarKind = iota
	IntScalar
	FloatScalar
	ComplexScalar
)

// Scalar is a Python number given to an operator: bool, int, float or complex. It keeps its kind, which decides type
// promotion. An int may be symbolic.
type Scalar struct {
	Kind ScalarKind
	I    symbolic.Int // Bool (0 or 1) and Int
	F    float64      // Float
	C    complex128   // Complex
	Ref  any          // what a recorder knows of a float or bool that a program computes, else nil
}

// Int64 converts as Python's int(x) does, truncating floats.
func (s Scalar) Int64() int64 {
	switch s.Kind {
	case FloatScalar:
		return int64(s.F)
	case ComplexScalar:
		return int64(real(s.C))
	}
	return s.I.Int64()
}

// Float64 converts to a double; a complex loses its imaginary part.
func (s Scalar) Float64() float64 {
	switch s.Kind {
	case FloatScalar:
		return s.F
	case ComplexScalar:
		return real(s.C)
	}
	return float64(s.I.Int64())
}

// Complex converts to a complex number.
func (s Scalar) Complex() complex128 {
	if s.Kind == ComplexScalar {
		return s.C
	}
	return complex(s.Float64(), 0)
}

// Bool is Python's bool(x).
func (s Scalar) Bool() bool {
	switch s.Kind {
	case FloatScalar:
		return s.F != 0
	case ComplexScalar:
		return s.C != 0
	}
	return s.I.Int64() != 0
}

// DType is the dtype that the scalar stands for in type promotion: bool, int64, float32 (the default float) or complex64.
func (s Scalar) DType() tensor.DType {
	switch s.Kind {
	case BoolScalar:
		return tensor.Bool
	case IntScalar:
		return tensor.Int64
	case FloatScalar:
		return tensor.Float32
	}
	return tensor.Complex64
}

// String prints as Python does.
func (s Scalar) String() string {
	switch s.Kind {
	case BoolScalar:
		if s.Bool() {
			return "True"
		}
		return "False"
	case IntScalar:
		return s.I.String()
	case FloatScalar:
		if s.F == math.Trunc(s.F) && math.Abs(s.F) < 1e16 {
			return fmt.Sprintf("%.1f", s.F)
		}
		return fmt.Sprint(s.F)
	}
	return fmt.Sprint(s.C)
}

// IntS, FloatS, BoolS and ComplexS make scalars.
func IntS(v int64) Scalar { return Scalar{Kind: IntScalar, I: symbolic.N(v)} }

// FloatS makes a float scalar.
func FloatS(v float64) Scalar { return Scalar{Kind: FloatScalar, F: v} }

// BoolS makes a bool scalar.
func BoolS(v bool) Scalar {
	s := Scalar{Kind: BoolScalar}
	if v {
		s.I = symbolic.N(1)
	}
	return s
}

// ComplexS makes a complex scalar.
func ComplexS(v complex128) Scalar { return Scalar{Kind: ComplexScalar, C: v} }

// toScalar accepts the Go forms of a Python number.
func toScalar(v any) (Scalar, bool) {
	switch v := v.(type) {
	case Scalar:
		return v, true
	case int:
		return IntS(int64(v)), true
	case int64:
		return IntS(v), true
	case symbolic.Int:
		return Scalar{Kind: IntScalar, I: v}, true
	case float64:
		return FloatS(v), true
	case bool:
		return BoolS(v), true
	case complex128:
		return ComplexS(v), true
	}
	return Scalar{}, false
}
