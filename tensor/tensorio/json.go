package tensorio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

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
		return nil, errorf("%w", err)
	}
	list, ok := v.([]any)
	if !ok {
		return nil, errorf("the JSON holds a %T, want a list of leaves", v)
	}
	out := make([]any, len(list))
	for i, x := range list {
		y, err := leafOf(x)
		if err != nil {
			return nil, errorf("leaf %d: %w", i, err)
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
		var flat []json.Number
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

func nested(x []any, depth int, flat *[]json.Number, isInt *bool) ([]int64, error) {
	if depth > 32 {
		return nil, fmt.Errorf("nested too deeply")
	}
	var inner []int64
	for i, e := range x {
		switch e := e.(type) {
		case json.Number:
			if _, err := e.Int64(); err != nil {
				*isInt = false
			}
			*flat = append(*flat, e)
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
	var flat []json.Number
	for _, e := range anyList(m["data"]) {
		switch e := e.(type) {
		case json.Number:
			flat = append(flat, e)
		case bool:
			flat = append(flat, map[bool]json.Number{false: "0", true: "1"}[e])
		case string:
			if _, ok := map[string]bool{"NaN": true, "Infinity": true, "-Infinity": true}[e]; !ok {
				return nil, fmt.Errorf("%q among numbers", e)
			}
			flat = append(flat, json.Number(e))
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

// fill makes a tensor of real numbers; integers are read as such, exact to 64 bits.
func fill(dt tensor.DType, sizes []int64, v []json.Number) (*tensor.Tensor, error) {
	n, err := tensor.Numel(sizes)
	if err != nil || n != int64(len(v)) {
		return nil, fmt.Errorf("shape %v for %d numbers", sizes, len(v))
	}
	t := tensor.New(dt, sizes...)
	for i, x := range v {
		if err := setNumber(t, int64(i), x); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func setNumber(t *tensor.Tensor, i int64, x json.Number) error {
	switch t.DType() {
	case tensor.Int64:
		n, err := strconv.ParseInt(string(x), 10, 64)
		if err == nil {
			tensor.Data[int64](t)[i] = n
		}
		return err
	case tensor.Uint64:
		n, err := strconv.ParseUint(string(x), 10, 64)
		if err == nil {
			tensor.Data[uint64](t)[i] = n
		}
		return err
	}
	f, err := strconv.ParseFloat(string(x), 64)
	if err != nil {
		return err
	}
	return t.SetFloat(i, f)
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
		if ints := exactInts(t); ints != nil {
			out[i] = map[string]any{"dtype": t.DType().String(), "shape": t.Sizes(), "data": ints}
			continue
		}
		vals, err := t.Floats()
		if err != nil {
			return nil, errorf("leaf %d: %w", i, err)
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
			case t.DType() != tensor.Float64:
				data[j] = float32(f) // no more digits than the element has
			default:
				data[j] = f
			}
		}
		out[i] = map[string]any{"dtype": t.DType().String(), "shape": t.Sizes(), "data": data}
	}
	return json.Marshal(out)
}

// exactInts gives the elements of the 64-bit integer dtypes, which a float64 cannot hold; nil for others.
func exactInts(t *tensor.Tensor) any {
	switch t.DType() {
	case tensor.Int64:
		c, err := fromRaw(t.DType(), t.Sizes(), raw(t))
		if err != nil || c.Numel() == 0 {
			return []int64{}
		}
		return tensor.Contiguous[int64](c)
	case tensor.Uint64:
		c, err := fromRaw(t.DType(), t.Sizes(), raw(t))
		if err != nil || c.Numel() == 0 {
			return []uint64{}
		}
		return tensor.Contiguous[uint64](c)
	}
	return nil
}
