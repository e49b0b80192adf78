package aten

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// MemoryFormat is PyTorch's memory format; the zero value means that none was given.
type MemoryFormat uint8

// The memory formats, numbered as in the serialized schema.
const (
	NoFormat MemoryFormat = iota
	ContiguousFormat
	ChannelsLast
	ChannelsLast3d
	PreserveFormat
)

// Layout is PyTorch's tensor layout, numbered as in the serialized schema; only strided tensors can run.
type Layout uint8

// StridedLayout is the only layout that operators run on.
const StridedLayout Layout = 7

// Device names a device. Everything runs on the CPU; the name is kept for messages and checks.
type Device struct {
	Type  string
	Index int // -1: not given
}

// KwArg is a keyword argument for [Build.Call]; make it with [Kw].
type KwArg struct {
	Name  string
	Value any
}

// Kw makes a keyword argument.
func Kw(name string, value any) KwArg { return KwArg{name, value} }

// Args are the arguments of one operator call, one for each parameter of its schema in order, defaults filled in.
//
// The Go types behind them: Tensor is *Value, Tensor[] is []*Value (with nil for None in Tensor?[]), int and SymInt are
// symbolic.Int, int[] is []symbolic.Int, float is float64, float[] is []float64, bool is bool, bool[] is []bool, str is
// string, Scalar is Scalar, Scalar[] is []Scalar, ScalarType is tensor.DType, MemoryFormat, Layout and Device are the types
// of this package; nil stands for None.
type Args struct {
	Op *Op
	V  []any
}

// Has reports that argument i is not None.
func (a *Args) Has(i int) bool { return a.V[i] != nil }

// Tensor is a Tensor argument; the executor has refused None.
func (a *Args) Tensor(i int) *Value { return a.V[i].(*Value) }

// OptTensor is a Tensor? argument, nil for None.
func (a *Args) OptTensor(i int) *Value {
	v, _ := a.V[i].(*Value)
	return v
}

// Tensors is a Tensor[] or Tensor?[] argument; the latter may hold nil.
func (a *Args) Tensors(i int) []*Value {
	v, _ := a.V[i].([]*Value)
	return v
}

// Int is an int or SymInt argument.
func (a *Args) Int(i int) symbolic.Int { return a.V[i].(symbolic.Int) }

// I64 is the constant (or hint) of an int argument.
func (a *Args) I64(i int) int64 { return a.Int(i).Int64() }

// OptInt is an int? argument.
func (a *Args) OptInt(i int) (symbolic.Int, bool) {
	v, ok := a.V[i].(symbolic.Int)
	return v, ok
}

// Ints is an int[] argument, nil for None.
func (a *Args) Ints(i int) []symbolic.Int {
	v, _ := a.V[i].([]symbolic.Int)
	return v
}

// I64s gives the constants (or hints) of an int[] argument, nil for None.
func (a *Args) I64s(i int) []int64 {
	v, ok := a.V[i].([]symbolic.Int)
	if !ok {
		return nil
	}
	return Int64s(v)
}

// Float is a float argument.
func (a *Args) Float(i int) float64 { return a.V[i].(float64) }

// OptFloat is a float? argument.
func (a *Args) OptFloat(i int) (float64, bool) {
	v, ok := a.V[i].(float64)
	return v, ok
}

// Floats is a float[] argument, nil for None.
func (a *Args) Floats(i int) []float64 {
	v, _ := a.V[i].([]float64)
	return v
}

// Scalar is a Scalar argument.
func (a *Args) Scalar(i int) Scalar { return a.V[i].(Scalar) }

// OptScalar is a Scalar? argument.
func (a *Args) OptScalar(i int) (Scalar, bool) {
	v, ok := a.V[i].(Scalar)
	return v, ok
}

// Bool is a bool argument; None counts as false.
func (a *Args) Bool(i int) bool {
	v, _ := a.V[i].(bool)
	return v
}

// Bools is a bool[] argument.
func (a *Args) Bools(i int) []bool {
	v, _ := a.V[i].([]bool)
	return v
}

// Str is a str argument, "" for None.
func (a *Args) Str(i int) string {
	v, _ := a.V[i].(string)
	return v
}

// DType is a ScalarType? argument, def for None.
func (a *Args) DType(i int, def tensor.DType) tensor.DType {
	if v, ok := a.V[i].(tensor.DType); ok && v != tensor.Invalid {
		return v
	}
	return def
}

// MemoryFormat is a MemoryFormat? argument, NoFormat for None.
func (a *Args) MemoryFormat(i int) MemoryFormat {
	v, _ := a.V[i].(MemoryFormat)
	return v
}

// Index finds a parameter by name, -1 if the schema has none.
func (a *Args) Index(name string) int {
	for i := range a.Op.schema.Params {
		if a.Op.schema.Params[i].Name == name {
			return i
		}
	}
	return -1
}

// Bind makes the arguments of a call from positional and keyword arguments: it converts, fills defaults, and refuses what
// the schema does not take.
func (op *Op) Bind(pos []any, kw []KwArg) (a *Args, err error) {
	defer guard(op, &err)
	s := op.schema
	a = &Args{Op: op, V: make([]any, len(s.Params))}
	given := make([]bool, len(s.Params))
	if len(pos) > len(s.Params) {
		FailType("%s() takes %d arguments but %d were given", s.Name(), len(s.Params), len(pos))
	}
	for i, v := range pos {
		a.V[i], given[i] = convertArg(&s.Params[i], v), true
	}
	for _, k := range kw {
		i := a.Index(k.Name)
		if i < 0 {
			FailType("%s() got an unexpected keyword argument '%s'", s.Name(), k.Name)
		}
		if given[i] {
			FailType("%s() got multiple values for argument '%s'", s.Name(), k.Name)
		}
		a.V[i], given[i] = convertArg(&s.Params[i], k.Value), true
	}
	for i := range s.Params {
		if given[i] {
			continue
		}
		p := &s.Params[i]
		if !p.HasDefault && !p.Type.Opt {
			FailType("%s() is missing value for argument '%s'", s.Name(), p.Name)
		}
		a.V[i] = op.defaults[i]
	}
	return a, nil
}

func failArg(p *Param, v any) any {
	FailType("argument '%s' must be %s, not %T", p.Name, p.Type.Base, v)
	return nil
}

// convertArg turns v into the Go type that [Args] promises for the parameter.
func convertArg(p *Param, v any) any {
	t := &p.Type
	if v == nil {
		if t.Opt || t.Base == "Generator" || (t.Base == "Tensor" && !t.List && p.HasDefault) {
			return nil
		}
		if t.Base == "Tensor" && !t.List {
			return nil // an undefined tensor; Tensor() of it is a refusal by the executor
		}
		return failArg(p, v)
	}
	if t.List {
		return convertList(p, v)
	}
	switch t.Base {
	case "Tensor":
		return toValue(p, v)
	case "int", "SymInt", "DeviceIndex":
		if s, ok := toScalar(v); ok && s.Kind <= IntScalar {
			return s.I
		}
		if s, ok := toScalar(v); ok && s.Kind == FloatScalar && s.F == float64(int64(s.F)) {
			return symbolic.N(int64(s.F))
		}
	case "float", "SymFloat":
		if s, ok := toScalar(v); ok && s.Kind <= FloatScalar {
			return s.Float64()
		}
	case "bool", "SymBool":
		if s, ok := toScalar(v); ok && s.Kind <= IntScalar {
			return s.Bool()
		}
	case "Scalar":
		if s, ok := toScalar(v); ok {
			return s
		}
		if x, ok := v.(*Value); ok && x.T != nil && x.Dim() == 0 {
			return itemOf(x.T)
		}
	case "str":
		if s, ok := v.(string); ok {
			return s
		}
	case "ScalarType":
		if d, ok := v.(tensor.DType); ok {
			return d
		}
	case "MemoryFormat":
		if m, ok := v.(MemoryFormat); ok {
			return m
		}
	default: // Layout, Device, Generator, Dimname, class types: kept as they are
		return v
	}
	return failArg(p, v)
}

func toValue(p *Param, v any) any {
	switch v := v.(type) {
	case *Value:
		return v
	case *tensor.Tensor:
		return FromTensor(v)
	}
	if s, ok := toScalar(v); ok {
		return WrapScalar(s)
	}
	return failArg(p, v)
}

// WrapScalar makes the 0-d tensor that a Python number becomes where an operator wants a tensor: bool, int64, float64 or
// complex128, weak in type promotion.
func WrapScalar(s Scalar) *Value {
	if s.Ref != nil {
		return &Value{Meta: Contig(s.DType()), Wrapped: true, Ref: s.Ref}
	}
	var t *tensor.Tensor
	switch s.Kind {
	case BoolScalar:
		t, _ = tensor.FromBools([]bool{s.Bool()})
	case IntScalar:
		if !s.I.IsConst() {
			return &Value{Meta: Contig(tensor.Int64), Wrapped: true, Ref: s.I}
		}
		t, _ = tensor.FromSlice([]int64{s.I.Int64()})
	case FloatScalar:
		t, _ = tensor.FromSlice([]float64{s.F})
	default:
		t, _ = tensor.FromSlice([]complex128{s.C})
	}
	v := FromTensor(t)
	v.Wrapped = true
	return v
}

func convertList(p *Param, v any) any {
	t := &p.Type
	switch t.Base {
	case "Tensor":
		return toValues(p, v)
	case "int", "SymInt":
		return toInts(p, v)
	case "float":
		return toFloats(p, v)
	case "bool":
		switch v := v.(type) {
		case []bool:
			return v
		case []any:
			bools := make([]bool, len(v))
			for i := range v {
				b, ok := v[i].(bool)
				if !ok {
					return failArg(p, v)
				}
				bools[i] = b
			}
			return bools
		}
	case "Scalar":
		return toScalars(p, v)
	default:
		return v
	}
	return failArg(p, v)
}

func toValues(p *Param, v any) any {
	switch v := v.(type) {
	case []*Value:
		if !p.Type.ElOpt {
			for _, x := range v {
				if x == nil {
					return failArg(p, x)
				}
			}
		}
		return v
	case []any:
		out := make([]*Value, len(v))
		for i, x := range v {
			if x == nil && p.Type.ElOpt {
				continue
			}
			out[i], _ = toValue(p, x).(*Value)
		}
		return out
	case []symbolic.Int:
		if len(v) == 0 {
			return []*Value{}
		}
	}
	return failArg(p, v)
}

func toInts(p *Param, v any) any {
	var out []symbolic.Int
	switch v := v.(type) {
	case []symbolic.Int:
		out = v
	case []int64:
		out = Ints(v...)
	case []int:
		out = make([]symbolic.Int, len(v))
		for i, x := range v {
			out[i] = symbolic.N(int64(x))
		}
	case []any:
		out = make([]symbolic.Int, len(v))
		for i, x := range v {
			s, ok := toScalar(x)
			if !ok || s.Kind > IntScalar {
				return failArg(p, x)
			}
			out[i] = s.I
		}
	case []*Value:
		if len(v) != 0 {
			return failArg(p, v)
		}
	case []float64: // an empty list may have been written with any type
		if len(v) != 0 {
			return failArg(p, v)
		}
	case []bool:
		if len(v) != 0 {
			return failArg(p, v)
		}
	default:
		s, ok := toScalar(v)
		if !ok || s.Kind > IntScalar || p.Type.Size == 0 {
			return failArg(p, v)
		}
		// "int[2] stride=1": one number stands for all.
		out = make([]symbolic.Int, p.Type.Size)
		for i := range out {
			out[i] = s.I
		}
	}
	if out == nil {
		out = []symbolic.Int{} // None and the empty list differ
	}
	return out
}

func toFloats(p *Param, v any) any {
	switch v := v.(type) {
	case []float64:
		return v
	case []any:
		out := make([]float64, len(v))
		for i, x := range v {
			s, ok := toScalar(x)
			if !ok || s.Kind > FloatScalar {
				return failArg(p, x)
			}
			out[i] = s.Float64()
		}
		return out
	case []symbolic.Int:
		out := make([]float64, len(v))
		for i, x := range v {
			out[i] = float64(x.Int64())
		}
		return out
	}
	return failArg(p, v)
}

func toScalars(p *Param, v any) any {
	switch v := v.(type) {
	case []Scalar:
		return v
	case []any:
		out := make([]Scalar, len(v))
		for i, x := range v {
			s, ok := toScalar(x)
			if !ok {
				return failArg(p, x)
			}
			out[i] = s
		}
		return out
	case []float64:
		out := make([]Scalar, len(v))
		for i, x := range v {
			out[i] = FloatS(x)
		}
		return out
	case []symbolic.Int:
		out := make([]Scalar, len(v))
		for i, x := range v {
			out[i] = Scalar{Kind: IntScalar, I: x}
		}
		return out
	}
	return failArg(p, v)
}

// parseDefault reads the default value of a schema parameter.
func parseDefault(p *Param) (any, error) {
	if !p.HasDefault || p.Default == "None" {
		return nil, nil
	}
	d := p.Default
	if strings.HasPrefix(d, "[") {
		items := splitTop(strings.Trim(d, "[]"))
		vals := make([]any, len(items))
		for i, it := range items {
			v, err := parseAtom(it)
			if err != nil {
				return nil, err
			}
			vals[i] = v
		}
		return convertList(p, vals), nil
	}
	switch { // PyTorch prints these by number
	case p.Type.Base == "ScalarType":
		if dt, ok := map[string]tensor.DType{"4": tensor.Int64, "6": tensor.Float32, "24": tensor.Float8E4M3FN}[d]; ok {
			return dt, nil
		}
	case p.Type.Base == "MemoryFormat" && d == "0":
		d = "contiguous_format"
	}
	v, err := parseAtom(d)
	if err != nil {
		return nil, err
	}
	return convertArg(p, v), nil
}

func parseAtom(d string) (any, error) {
	switch d {
	case "True":
		return true, nil
	case "False":
		return false, nil
	case "contiguous_format":
		return ContiguousFormat, nil
	case "Mean":
		return int64(1), nil
	case "strided":
		return StridedLayout, nil
	case "long":
		return tensor.Int64, nil
	case "inf":
		return nil, fmt.Errorf("default %q", d)
	}
	if len(d) >= 2 && (d[0] == '"' || d[0] == '\'') {
		return d[1 : len(d)-1], nil
	}
	if i, err := strconv.ParseInt(d, 10, 64); err == nil {
		return i, nil
	}
	if f, err := strconv.ParseFloat(d, 64); err == nil {
		return f, nil
	}
	if dt, err := tensor.ParseDType(d); err == nil {
		return dt, nil
	}
	return nil, fmt.Errorf("default value %q", d)
}

// ConvertArg turns v into the Go type that [Args] promises for parameter i, or refuses it.
func (op *Op) ConvertArg(i int, v any) (x any, err error) {
	defer guard(op, &err)
	return convertArg(&op.schema.Params[i], v), nil
}

// Default is the default value of parameter i; a parameter without one that is not optional is a refusal.
func (op *Op) Default(i int) (x any, err error) {
	defer guard(op, &err)
	if p := &op.schema.Params[i]; !p.HasDefault && !p.Type.Opt {
		FailType("%s() is missing value for argument '%s'", op.schema.Name(), p.Name)
	}
	return op.defaults[i], nil
}
