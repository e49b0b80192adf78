package tensor

import "fmt"

// DType is the type of a tensor's elements. The zero value is [Invalid], which stands for an undefined tensor.
type DType uint8

// The element types of PyTorch that an archive can hold. Bool takes one byte; the complex types hold the real part first.
const (
	Invalid DType = iota
	Bool
	Uint8
	Int8
	Int16
	Int32
	Int64
	Uint16
	Uint32
	Uint64
	Float16
	BFloat16
	Float32
	Float64
	Complex32
	Complex64
	Complex128
	Float8E4M3FN
	Float8E5M2
	Float8E4M3FNUZ
	Float8E5M2FNUZ
	Float8E8M0FNU
	numDTypes
)

type dtypeClass uint8

const (
	classBool dtypeClass = iota
	classInt
	classUint
	classFloat
	classComplex
)

var dtypeInfo = [numDTypes]struct {
	name  string // PyTorch's name after "torch."
	cpp   string // the name in PyTorch's C++ messages ("Float", "Long")
	size  int
	class dtypeClass
}{
	Invalid:        {"invalid", "Undefined", 0, classBool},
	Bool:           {"bool", "Bool", 1, classBool},
	Uint8:          {"uint8", "Byte", 1, classUint},
	Int8:           {"int8", "Char", 1, classInt},
	Int16:          {"int16", "Short", 2, classInt},
	Int32:          {"int32", "Int", 4, classInt},
	Int64:          {"int64", "Long", 8, classInt},
	Uint16:         {"uint16", "UInt16", 2, classUint},
	Uint32:         {"uint32", "UInt32", 4, classUint},
	Uint64:         {"uint64", "UInt64", 8, classUint},
	Float16:        {"float16", "Half", 2, classFloat},
	BFloat16:       {"bfloat16", "BFloat16", 2, classFloat},
	Float32:        {"float32", "Float", 4, classFloat},
	Float64:        {"float64", "Double", 8, classFloat},
	Complex32:      {"complex32", "ComplexHalf", 4, classComplex},
	Complex64:      {"complex64", "ComplexFloat", 8, classComplex},
	Complex128:     {"complex128", "ComplexDouble", 16, classComplex},
	Float8E4M3FN:   {"float8_e4m3fn", "Float8_e4m3fn", 1, classFloat},
	Float8E5M2:     {"float8_e5m2", "Float8_e5m2", 1, classFloat},
	Float8E4M3FNUZ: {"float8_e4m3fnuz", "Float8_e4m3fnuz", 1, classFloat},
	Float8E5M2FNUZ: {"float8_e5m2fnuz", "Float8_e5m2fnuz", 1, classFloat},
	Float8E8M0FNU:  {"float8_e8m0fnu", "Float8_e8m0fnu", 1, classFloat},
}

// DTypes lists all valid element types.
func DTypes() []DType {
	out := make([]DType, 0, numDTypes-1)
	for d := Bool; d < numDTypes; d++ {
		out = append(out, d)
	}
	return out
}

// Valid reports whether d is an element type.
func (d DType) Valid() bool { return d > Invalid && d < numDTypes }

// Size is the number of bytes of one element.
func (d DType) Size() int {
	if d >= numDTypes {
		return 0
	}
	return dtypeInfo[d].size
}

// String gives PyTorch's name without the module, such as "float32".
func (d DType) String() string {
	if d >= numDTypes {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypeInfo[d].name
}

// CPPName gives the name that PyTorch's C++ messages use, such as "Float" for float32 and "Long" for int64.
func (d DType) CPPName() string {
	if d >= numDTypes {
		return d.String()
	}
	return dtypeInfo[d].cpp
}

// ParseDType finds a dtype by PyTorch's name, with or without "torch.".
func ParseDType(name string) (DType, error) {
	s := name
	if len(s) > 6 && s[:6] == "torch." {
		s = s[6:]
	}
	switch s {
	case "half":
		return Float16, nil
	case "float":
		return Float32, nil
	case "double":
		return Float64, nil
	case "short":
		return Int16, nil
	case "int":
		return Int32, nil
	case "long":
		return Int64, nil
	case "chalf":
		return Complex32, nil
	case "cfloat":
		return Complex64, nil
	case "cdouble":
		return Complex128, nil
	}
	for d := Bool; d < numDTypes; d++ {
		if dtypeInfo[d].name == s {
			return d, nil
		}
	}
	return Invalid, fmt.Errorf("tensor: unknown dtype %q", name)
}

// IsFloat reports a real floating-point type, the 8-bit ones included.
func (d DType) IsFloat() bool { return d.Valid() && dtypeInfo[d].class == classFloat }

// IsComplex reports a complex type.
func (d DType) IsComplex() bool { return d.Valid() && dtypeInfo[d].class == classComplex }

// IsInt reports an integer type, signed or not; Bool is none.
func (d DType) IsInt() bool {
	return d.Valid() && (dtypeInfo[d].class == classInt || dtypeInfo[d].class == classUint)
}

// IsIntegral reports an integer type or Bool.
func (d DType) IsIntegral() bool { return d == Bool || d.IsInt() }

// IsUnsigned reports an unsigned integer type; Bool is none.
func (d DType) IsUnsigned() bool { return d.Valid() && dtypeInfo[d].class == classUint }

// IsReduced reports the 16-bit floats, which operators compute in float32.
func (d DType) IsReduced() bool { return d == Float16 || d == BFloat16 }

// IsFloat8 reports the 8-bit floats.
func (d DType) IsFloat8() bool { return d >= Float8E4M3FN && d <= Float8E8M0FNU }

// Real is the type of a complex type's parts, and d itself for every other type.
func (d DType) Real() DType {
	switch d {
	case Complex32:
		return Float16
	case Complex64:
		return Float32
	case Complex128:
		return Float64
	}
	return d
}

// Complex is the complex type whose parts are d; Invalid where PyTorch has none. A complex type gives itself.
func (d DType) Complex() DType {
	switch d {
	case Float16:
		return Complex32
	case Float32:
		return Complex64
	case Float64:
		return Complex128
	case Complex32, Complex64, Complex128:
		return d
	}
	return Invalid
}
