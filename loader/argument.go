package loader

import (
	"fmt"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/schema"
)

// argument converts one argument of a node, or an output of a graph.
func (s *scope) argument(a *schema.Argument) (export.Argument, error) {
	switch x := a.Value.(type) {
	case schema.TensorArgument:
		return s.use(x.Name)
	case []schema.TensorArgument:
		return s.uses(x)
	case int64, float64, []int64, []float64, []string, []bool, [][]int64, [][]float64:
		return x, nil
	case bool:
		if a.Tag == schema.AsNone {
			return nil, nil
		}
		return x, nil
	case string:
		if a.Tag == schema.AsOperator {
			return export.Operator(x), nil
		}
		return x, nil
	case schema.SymIntArgument, schema.SymFloatArgument, schema.SymBoolArgument:
		return s.scalar(x)
	case []schema.SymIntArgument:
		return scalars(s, x)
	case []schema.SymFloatArgument:
		return scalars(s, x)
	case []schema.SymBoolArgument:
		return scalars(s, x)
	case schema.ScalarType:
		d, err := dtypeOf(x)
		if err != nil {
			return nil, s.fail("%v", err)
		}
		return d, nil
	case schema.MemoryFormat:
		return aten.MemoryFormat(x), nil
	case schema.Layout:
		return aten.Layout(x), nil
	case schema.Device:
		return deviceOf(x), nil
	case schema.CustomObjArgument:
		return s.use(x.Name)
	case schema.ComplexValue:
		return complex(x.Real, x.Imag), nil
	}
	return s.nested(a)
}

// scalar is a symbolic scalar: a value of the graph or a constant.
func (s *scope) scalar(a any) (export.Argument, error) {
	switch x := a.(type) {
	case schema.SymIntArgument:
		if x.Name == "" {
			return x.Int, nil
		}
		return s.use(x.Name)
	case schema.SymFloatArgument:
		if x.Name == "" {
			return x.Float, nil
		}
		return s.use(x.Name)
	case schema.SymBoolArgument:
		if x.Name == "" {
			return x.Bool, nil
		}
		return s.use(x.Name)
	}
	return nil, s.fail("a %T is no symbolic scalar", a)
}

func scalars[T any](s *scope, list []T) (export.Argument, error) {
	out := make([]any, len(list))
	for i := range list {
		v, err := s.scalar(list[i])
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// nested converts arguments that hold others.
func (s *scope) nested(a *schema.Argument) (export.Argument, error) {
	switch x := a.Value.(type) {
	case *schema.GraphArgument:
		where := s.where
		g, err := s.c.graph(&x.Graph, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: subgraph %s: %w", where, x.Name, err)
		}
		return &export.Subgraph{Name: x.Name, Graph: g}, nil
	case []schema.OptionalTensorArgument:
		out := make([]*export.Value, len(x))
		for i := range x {
			if x[i].Tensor == nil {
				continue
			}
			v, err := s.use(x[i].Tensor.Name)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case schema.OptionalTensorArgument:
		if x.Tensor == nil {
			return nil, nil
		}
		return s.use(x.Tensor.Name)
	case [][]schema.TensorArgument:
		out := make([][]*export.Value, len(x))
		for i := range x {
			l, err := s.uses(x[i])
			if err != nil {
				return nil, err
			}
			out[i] = l
		}
		return out, nil
	case schema.Map[schema.Argument]:
		d := &export.Dict{}
		for i := range x {
			v, err := s.argument(&x[i].Value)
			if err != nil {
				return nil, err
			}
			d.Keys = append(d.Keys, x[i].Key)
			d.Values = append(d.Values, v)
		}
		return d, nil
	}
	return nil, s.fail("an argument of the unknown kind %q", a.Tag)
}
