package aten

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pt2go/pt2/tensor"
)

// goldenCall is one line of testdata/tensor_ops.jsonl or layers.jsonl, which the .py beside each writes.
type goldenCall struct {
	Op   string
	Args []json.RawMessage
	KW   map[string]json.RawMessage
	Seed *uint64
	Out  []json.RawMessage
	Err  string
	Kind string
}

type goldenTensor struct {
	T  string  `json:"t"`
	S  []int64 `json:"s"`
	St []int64 `json:"st"`
	D  []any   `json:"d"`
}

// value reads a tensor, a dtype, or a plain JSON value; numbers without a point are ints.
func goldenValue(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	text := strings.TrimSpace(string(raw))
	switch text[0] {
	case '{':
		var d struct{ DType string }
		if json.Unmarshal(raw, &d); d.DType != "" {
			dt, err := tensor.ParseDType(d.DType)
			if err != nil {
				t.Fatal(err)
			}
			return dt
		}
		return goldenInput(t, raw)
	case '[':
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			t.Fatal(err)
		}
		out := make([]any, len(items))
		for i, it := range items {
			out[i] = goldenValue(t, it)
		}
		return out
	case 'n':
		return nil
	}
	var v any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	if n, ok := v.(json.Number); ok {
		if i, err := n.Int64(); err == nil && !strings.ContainsAny(text, ".e") {
			return i
		}
		f, _ := n.Float64()
		return f
	}
	return v
}

// goldenInput builds a tensor with the recorded strides.
func goldenInput(t *testing.T, raw json.RawMessage) *tensor.Tensor {
	t.Helper()
	g, vals := goldenElements(t, raw)
	dt, err := tensor.ParseDType(g.T)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.NewStrided(dt, g.S, g.St)
	wide, _ := tensor.FromSlice(vals, g.S...)
	if x.Numel() > 0 {
		Copy(nil, x, wide)
	}
	return x
}

func goldenElements(t *testing.T, raw json.RawMessage) (goldenTensor, []float64) {
	t.Helper()
	var g goldenTensor
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	vals := make([]float64, len(g.D))
	for i, v := range g.D {
		switch v := v.(type) {
		case float64:
			vals[i] = v
		case string:
			fmt.Sscan(v, &vals[i])
		}
	}
	return g, vals
}

// TestTensorOps holds the operators that make, view, join, index, write, pad, sort and draw against PyTorch's answers:
// elements, dtypes, sizes, strides, and the text of refusals.
func TestTensorOps(t *testing.T) {
	goldenFile(t, "testdata/tensor_ops.jsonl")
}

// TestLayers holds gradients of convolutions and fused attention layers against PyTorch's answers.
func TestLayers(t *testing.T) { goldenFile(t, "testdata/layers.jsonl") }

func goldenFile(t *testing.T, path string) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var c goldenCall
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("%d_%s", n, c.Op), func(t *testing.T) { checkGolden(t, &c) })
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// qualified is the registry's name for the name of an overload in aten.
func qualified(name string) string {
	if !strings.Contains(name, ".") {
		name += ".default"
	}
	return "aten." + name
}

func checkGolden(t *testing.T, c *goldenCall) {
	var pos []any
	for _, a := range c.Args {
		pos = append(pos, goldenValue(t, a))
	}
	var kw []KwArg
	for k, v := range c.KW {
		kw = append(kw, Kw(k, goldenValue(t, v)))
	}
	op := Builtin().Lookup(qualified(c.Op))
	if op == nil {
		t.Fatalf("%s is not in the registry", c.Op)
	}
	x := &Eager{}
	if c.Seed != nil {
		x.Rand = NewGenerator(*c.Seed)
	}
	b := NewBuild(x, nil)
	a, err := op.Bind(pos, kw)
	var out []any
	if err == nil {
		out, err = b.Do(op, a)
	}
	if c.Err != "" {
		checkRefusal(t, c, err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var got []*tensor.Tensor
	for _, o := range out {
		switch o := o.(type) {
		case *Value:
			if o == nil { // undefined, None for PyTorch
				got = append(got, nil)
				continue
			}
			got = append(got, o.T)
		case []*Value:
			for _, v := range o {
				got = append(got, v.T)
			}
		}
	}
	if len(got) != len(c.Out) {
		t.Fatalf("%d results, want %d", len(got), len(c.Out))
	}
	for i, w := range c.Out {
		checkTensor(t, i, got[i], w)
	}
}

func checkRefusal(t *testing.T, c *goldenCall, err error) {
	t.Helper()
	e, ok := err.(*Error)
	if !ok {
		t.Fatalf("got %v, want the refusal %q", err, c.Err)
	}
	if e.Msg != c.Err || e.Kind != c.Kind {
		t.Errorf("refusal %s: %q\nwant %s: %q", e.Kind, e.Msg, c.Kind, c.Err)
	}
}

func checkTensor(t *testing.T, i int, got *tensor.Tensor, raw json.RawMessage) {
	t.Helper()
	if (got == nil) != (string(raw) == "null") {
		t.Fatalf("result %d is %v, want %s", i, got, raw)
	}
	if got == nil {
		return
	}
	w, want := goldenElements(t, raw)
	if got.DType().String() != w.T || !slices.Equal(got.Sizes(), w.S) || !slices.Equal(got.Strides(), w.St) {
		t.Fatalf("result %d is %v %v strides %v, want %s %v strides %v", i, got.DType(), got.Sizes(), got.Strides(), w.T, w.S, w.St)
	}
	have := tensor.Contiguous[float64]((&Kernel{}).as(got, tensor.Float64))
	for j := range want {
		if d := math.Abs(have[j] - want[j]); !(d <= 1e-6*max(1, math.Abs(want[j]))) && have[j] != want[j] && (have[j] == have[j] || want[j] == want[j]) {
			t.Fatalf("result %d, element %d: %v, want %v", i, j, have[j], want[j])
		}
	}
}
