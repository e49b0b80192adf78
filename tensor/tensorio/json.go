package tensorio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/pt2go/pt2/tensor"
)

// ParseJSON reads inputs written by hand: a list of leaves. A leaf is a number, string, bool or null, or an object
// {"dtype": "float32", "shape": [2, 3], "data": [1, 2, 3, 4, 5, 6]} for a tensor; nested lists of numbers are tensors too,
// float32 if any number has a fraction and int64 otherwise.
func ParseJSON(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("tensorio: %w", err)
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("tensorio: the JSON holds a %T, want a list of leaves", v)
	}
	out := make([]any, len(list))
	for i, x := range list {
		y, err := leafOf(x)
		if err != nil {
			return nil, fmt.Errorf("tensorio: leaf %d: %w", i, err)
		}
		out[i] = y
	}
	return out, nil
}

func leafOf(x any) (any, error) {
	switch x := x.(type) {
	case json.Number:
		if i, err := x.Int64(); err == nil {
			return i, nil
		}
		return x.Float64()
	case []any:
		var flat []float64
		isInt := true
		sizes, err := nested(x, 0, &flat, &isInt)
		if err != nil {
			return nil, err
		}
		dt := tensor.Float32
		if isInt {
			dt = tensor.Int64
		}
		return fill(dt, sizes, flat)
	case map[string]any:
		return objectOf(x)
	}
	return x, nil
}

func nested(x []any, depth int, flat *[]float64, isInt *bool) ([]int64, error) {
	if depth > 32 {
		return nil, fmt.Errorf("nested too deeply")
	}
	var inner []int64
	for i, e := range x {
		switch e := e.(type) {
		case json.Number:
			f, err := e.Float64()
			if err != nil {
				return nil, err
			}
			if _, err := e.Int64(); err != nil {
				*isInt = false
			}
			*flat = append(*flat, f)
		case []any:
			s, err := nested(e, depth+1, flat, isInt)
			if err != nil {
				return nil, err
			}
			if i > 0 && fmt.Sprint(s) != fmt.Sprint(inner) {
				return nil, fmt.Errorf("rows of different lengths")
			}
			inner = s
		default:
			return nil, fmt.Errorf("a %T among numbers", e)
		}
	}
	return append([]int64{int64(len(x))}, inner...), nil
}

func objectOf(m map[string]any) (any, error) {
	name, _ := m["dtype"].(string)
	dt, err := tensor.ParseDType(name)
	if err != nil {
		return nil, err
	}
	var sizes []int64
	for _, s := range anyList(m["shape"]) {
		n, ok := s.(json.Number)
		if !ok {
			return nil, fmt.Errorf("shape %v", m["shape"])
		}
		v, err := n.Int64()
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, v)
	}
	var flat []float64
	for _, e := range anyList(m["data"]) {
		switch e := e.(type) {
		case json.Number:
			f, err := e.Float64()
			if err != nil {
				return nil, err
			}
			flat = append(flat, f)
		case bool:
			f := 0.0
			if e {
				f = 1
			}
			flat = append(flat, f)
		case string:
			f, ok := map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}[e]
			if !ok {
				return nil, fmt.Errorf("%q among numbers", e)
			}
			flat = append(flat, f)
		default:
			return nil, fmt.Errorf("a %T among numbers", e)
		}
	}
	return fill(dt, sizes, flat)
}

func anyList(v any) []any {
	l, _ := v.([]any)
	return l
}

// fill makes a tensor of real numbers.
func fill(dt tensor.DType, sizes []int64, v []float64) (*tensor.Tensor, error) {
	n, err := tensor.Numel(sizes)
	if err != nil || n != int64(len(v)) {
		return nil, fmt.Errorf("shape %v for %d numbers", sizes, len(v))
	}
	t := tensor.New(dt, sizes...)
	for i, x := range v {
		if err := t.SetFloat(int64(i), x); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// EncodeJSON writes leaves in the form that [ParseJSON] reads.
func EncodeJSON(v any) ([]byte, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	out := make([]any, len(list))
	for i, x := range list {
		t, ok := x.(*tensor.Tensor)
		if !ok || t == nil {
			out[i] = x
			continue
		}
		vals, err := t.Floats()
		if err != nil {
			return nil, fmt.Errorf("tensorio: leaf %d: %w", i, err)
		}
		data := make([]any, len(vals))
		for j, f := range vals {
			switch {
			case f != f:
				data[j] = "NaN"
			case math.IsInf(f, 1):
				data[j] = "Infinity"
			case math.IsInf(f, -1):
				data[j] = "-Infinity"
			default:
				data[j] = f
			}
		}
		out[i] = map[string]any{"dtype": t.DType().String(), "shape": t.Sizes(), "data": data}
	}
	return json.Marshal(out)
}
