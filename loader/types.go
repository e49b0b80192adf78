package loader

import (
	"fmt"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/schema"
	"github.com/pt2go/pt2/tensor"
)

// scalarTypes maps the serializer's dtypes to this library's.
var scalarTypes = map[schema.ScalarType]tensor.DType{
	schema.Byte: tensor.Uint8, schema.Char: tensor.Int8, schema.Short: tensor.Int16, schema.Int: tensor.Int32, schema.Long: tensor.Int64,
	schema.Half: tensor.Float16, schema.Float: tensor.Float32, schema.Double: tensor.Float64, schema.ComplexHalf: tensor.Complex32,
	schema.ComplexFloat: tensor.Complex64, schema.ComplexDouble: tensor.Complex128, schema.Bool: tensor.Bool, schema.BFloat16: tensor.BFloat16,
	schema.UInt16: tensor.Uint16, schema.Float8E4M3FN: tensor.Float8E4M3FN, schema.Float8E5M2: tensor.Float8E5M2,
	schema.Float8E4M3UZ: tensor.Float8E4M3FNUZ, schema.Float8E5M2UZ: tensor.Float8E5M2FNUZ, schema.Float8E8M0FNU: tensor.Float8E8M0FNU,
	schema.UInt32: tensor.Uint32, schema.UInt64: tensor.Uint64,
}

// dtypes is the way back.
var dtypes = func() map[tensor.DType]schema.ScalarType {
	m := map[tensor.DType]schema.ScalarType{}
	for s, d := range scalarTypes {
		m[d] = s
	}
	return m
}()

func dtypeOf(s schema.ScalarType) (tensor.DType, error) {
	if d, ok := scalarTypes[s]; ok {
		return d, nil
	}
	return tensor.Invalid, fmt.Errorf("scalar type %d has no dtype", s)
}

func deviceOf(d schema.Device) aten.Device {
	out := aten.Device{Type: d.Type, Index: -1}
	if d.Index != nil && *d.Index >= 0 && *d.Index < 1<<16 {
		out.Index = int(*d.Index)
	}
	return out
}

// ProgramError is a program that contradicts itself.
type ProgramError struct {
	Where string // "graph.nodes[3] (add_1)"
	Msg   string
}

// Error gives the place.
func (e *ProgramError) Error() string { return fmt.Sprintf("loader: %s: %s", e.Where, e.Msg) }
