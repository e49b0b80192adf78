package aten

import (
	"unsafe"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// combiner is what happens to an element that is written to more than once.
type combiner uint8

const (
	combineCopy combiner = iota
	combineSum
	combineProd
	combineMax
	combineMin
)

// combinerOf reads the "reduce" argument of scatter_reduce and its like.
func combinerOf(op, reduce string) combiner {
	switch reduce {
	case "sum", "add", "mean":
		return combineSum
	case "prod", "multiply":
		return combineProd
	case "amax", "max":
		return combineMax
	case "amin", "min":
		return combineMin
	}
	Fail("%s: reduce argument must be either sum, prod, mean, amax or amin, got %s", op, reduce)
	return combineCopy
}

// element gives the function that stores *s into *d of a dtype in a combiner's way. NaN wins over numbers in max and min.
func (c combiner) element(dt tensor.DType) func(d, s unsafe.Pointer) {
	if c == combineCopy {
		size := uintptr(dt.Size())
		return func(d, s unsafe.Pointer) { copyElement(d, s, size) }
	}
	switch dt {
	case tensor.Bool:
		return c.bools()
	case tensor.Uint8:
		return combineReal[uint8](c)
	case tensor.Int8:
		return combineReal[int8](c)
	case tensor.Int16:
		return combineReal[int16](c)
	case tensor.Int32:
		return combineReal[int32](c)
	case tensor.Int64:
		return combineReal[int64](c)
	case tensor.Uint16:
		return combineReal[uint16](c)
	case tensor.Uint32:
		return combineReal[uint32](c)
	case tensor.Uint64:
		return combineReal[uint64](c)
	case tensor.Float32:
		return combineReal[float32](c)
	case tensor.Float64:
		return combineReal[float64](c)
	case tensor.Complex64:
		return combineComplex[complex64](c)
	case tensor.Complex128:
		return combineComplex[complex128](c)
	case tensor.Complex32:
		return combineComplexHalf(c)
	case tensor.Float16:
		return combineHalf(c, tensor.F16ToF32, tensor.F32ToF16)
	case tensor.BFloat16:
		return combineHalf(c, tensor.BF16ToF32, tensor.F32ToBF16)
	}
	FailAs("NotImplementedError", "accumulation is not implemented for '%s'", dt.CPPName())
	return nil
}

func (c combiner) bools() func(d, s unsafe.Pointer) {
	return func(d, s unsafe.Pointer) {
		x, y := *(*uint8)(d), b2u(*(*uint8)(s) != 0)
		if c == combineSum || c == combineMax {
			*(*uint8)(d) = x | y
		} else {
			*(*uint8)(d) = x & y
		}
	}
}

// combine2 is the combination of two numbers.
func combine2[T number](c combiner, x, y T) T {
	switch c {
	case combineSum:
		return x + y
	case combineProd:
		return x * y
	case combineMax:
		if x != x || x > y {
			return x
		}
		return y
	case combineMin:
		if x != x || x < y {
			return x
		}
		return y
	}
	return y
}

func combineReal[T number](c combiner) func(d, s unsafe.Pointer) {
	if c == combineSum {
		return func(d, s unsafe.Pointer) { *(*T)(d) += *(*T)(s) }
	}
	return func(d, s unsafe.Pointer) { *(*T)(d) = combine2(c, *(*T)(d), *(*T)(s)) }
}

func combineComplex[T complex64 | complex128](c combiner) func(d, s unsafe.Pointer) {
	switch c {
	case combineSum:
		return func(d, s unsafe.Pointer) { *(*T)(d) += *(*T)(s) }
	case combineProd:
		return func(d, s unsafe.Pointer) { *(*T)(d) *= *(*T)(s) }
	}
	Fail("max and min are not defined for complex numbers")
	return nil
}

// combineComplexHalf combines pairs of float16 by way of complex64.
func combineComplexHalf(c combiner) func(d, s unsafe.Pointer) {
	f := combineComplex[complex64](c)
	wide := func(v *[2]uint16) complex64 { return complex(tensor.F16ToF32(v[0]), tensor.F16ToF32(v[1])) }
	return func(d, s unsafe.Pointer) {
		to := (*[2]uint16)(d)
		x, y := wide(to), wide((*[2]uint16)(s))
		f(unsafe.Pointer(&x), unsafe.Pointer(&y))
		to[0], to[1] = tensor.F32ToF16(real(x)), tensor.F32ToF16(imag(x))
	}
}

func combineHalf(c combiner, wide func(uint16) float32, narrow func(float32) uint16) func(d, s unsafe.Pointer) {
	return func(d, s unsafe.Pointer) {
		*(*uint16)(d) = narrow(combine2(c, wide(*(*uint16)(d)), wide(*(*uint16)(s))))
	}
}

// row lifts a combiner to rows of strided elements.
func (c combiner) row(dt tensor.DType) func(d unsafe.Pointer, ds int64, s unsafe.Pointer, ss, n, size int64) {
	if c == combineCopy {
		return copyRow
	}
	if dt == tensor.Float32 {
		return c.rowF32
	}
	f := c.element(dt)
	return func(d unsafe.Pointer, ds int64, s unsafe.Pointer, ss, n, size int64) {
		for i := range n {
			f(unsafe.Add(d, i*ds*size), unsafe.Add(s, i*ss*size))
		}
	}
}

// rowF32 is the row of float32.
func (c combiner) rowF32(d unsafe.Pointer, ds int64, s unsafe.Pointer, ss, n, _ int64) {
	if ds == 1 && ss == 1 && c == combineSum {
		dst := unsafe.Slice((*float32)(d), n)
		cpu.AddF32(dst, dst, unsafe.Slice((*float32)(s), n))
		return
	}
	for i := range n {
		p := (*float32)(unsafe.Add(d, i*ds*4))
		*p = combine2(c, *p, *(*float32)(unsafe.Add(s, i*ss*4)))
	}
}

// identity is the number that a combiner leaves alone.
func (c combiner) identity(dt tensor.DType) Scalar {
	switch c {
	case combineProd:
		return IntS(1)
	case combineMax, combineMin:
		return extremeOf(dt, c == combineMax)
	}
	return IntS(0)
}

// extremeOf is the least (or greatest) number of a dtype, an infinity for floats.
func extremeOf(dt tensor.DType, least bool) Scalar {
	switch {
	case dt == tensor.Bool:
		return BoolS(!least)
	case dt == tensor.Int64 || dt == tensor.Uint64:
		if least {
			if dt == tensor.Uint64 {
				return IntS(0)
			}
			return IntS(-1 << 63)
		}
		return IntS(1<<63 - 1)
	case dt.IsInt():
		lo, hi := intRange(dt)
		if least {
			return IntS(int64(lo))
		}
		return IntS(int64(hi))
	}
	inf := infinity
	if least {
		inf = -inf
	}
	return FloatS(inf)
}
