package aten

import "github.com/pt2go/pt2/tensor"

// promoteTable is PyTorch's promote_types over the dtypes of promoteIndex.
var promoteOrder = []tensor.DType{
	tensor.Bool, tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
	tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64, tensor.Complex32, tensor.Complex64, tensor.Complex128,
}

// Promote gives the dtype that a and b have in common. It refuses pairs that PyTorch refuses.
func Promote(a, b tensor.DType) tensor.DType {
	if a == b {
		return a
	}
	if a.IsFloat8() || b.IsFloat8() {
		Fail("Promotion for Float8 Types is not supported, attempted to promote %s and %s", a.CPPName(), b.CPPName())
	}
	ua, ub := wideUnsigned(a), wideUnsigned(b)
	if ua || ub {
		switch {
		case ua && b.IsFloat():
			return b
		case ub && a.IsFloat():
			return a
		}
		Fail("Promotion for uint16, uint32, uint64 types is not supported, attempted to promote %s and %s", a.CPPName(), b.CPPName())
	}
	if rank(a) > rank(b) {
		a, b = b, a
	}
	switch { // a comes before b in promoteOrder
	case a == tensor.Uint8 && b == tensor.Int8:
		return tensor.Int16
	case a == tensor.Float16 && b == tensor.BFloat16:
		return tensor.Float32
	case b == tensor.Complex32 && (a == tensor.BFloat16 || a == tensor.Float32):
		return tensor.Complex64
	case a == tensor.Float64 && b.IsComplex():
		return tensor.Complex128
	}
	return b
}

func wideUnsigned(d tensor.DType) bool {
	return d == tensor.Uint16 || d == tensor.Uint32 || d == tensor.Uint64
}

func rank(d tensor.DType) int {
	for i, x := range promoteOrder {
		if x == d {
			return i
		}
	}
	return -1
}

// ResultType is PyTorch's result_type over tensors: tensors with dimensions count more than 0-d ones, and these more than
// Python numbers, unless the weaker one is of a higher kind (bool < int < float < complex). Nil values are skipped.
func ResultType(vals ...*Value) tensor.DType {
	var class [3]tensor.DType // dims, 0-d, wrapped
	for _, v := range vals {
		if v == nil {
			continue
		}
		dt, c := v.DType, 0
		switch {
		case v.Wrapped:
			c = 2
			switch {
			case dt.IsComplex():
				dt = tensor.Complex64
			case dt.IsFloat():
				dt = tensor.Float32
			}
		case v.Dim() == 0:
			c = 1
		}
		if class[c] == tensor.Invalid {
			class[c] = dt
		} else {
			class[c] = Promote(class[c], dt)
		}
	}
	return combine(combine(class[0], class[1]), class[2])
}

// combine lets a weaker class change the stronger one only by kind.
func combine(strong, weak tensor.DType) tensor.DType {
	switch {
	case strong == tensor.Invalid:
		return weak
	case weak == tensor.Invalid:
		return strong
	}
	if weak.IsComplex() && strong.IsFloat() && !strong.IsFloat8() {
		// The complex type that keeps the float's precision.
		return Promote(strong, weakest(strong, weak))
	}
	if kindOf(weak) > kindOf(strong) {
		return Promote(strong, weak)
	}
	return strong
}

func weakest(strong, weak tensor.DType) tensor.DType {
	if c := strong.Complex(); c != tensor.Invalid {
		return c
	}
	return weak
}

func kindOf(d tensor.DType) ScalarKind {
	switch {
	case d == tensor.Bool:
		return BoolScalar
	case d.IsInt():
		return IntScalar
	case d.IsFloat():
		return FloatScalar
	}
	return ComplexScalar
}

// FloatType is the dtype in which operators such as exp and true division answer: integers and Bool become float32.
func FloatType(d tensor.DType) tensor.DType {
	if d.IsIntegral() {
		return tensor.Float32
	}
	return d
}

// SumType is the dtype in which sum, prod and cumsum answer: Bool and integers become int64.
func SumType(d tensor.DType) tensor.DType {
	if d.IsIntegral() && d != tensor.Uint64 {
		return tensor.Int64
	}
	return d
}
