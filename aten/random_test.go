package aten

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pt2go/pt2/tensor"
)

// drawnCall is a call of testdata/random_numbers.jsonl. An input is filled by a rule, and results are recorded at some places only, which
// keeps the file small.
type drawnCall struct {
	Op   string
	Args []json.RawMessage
	KW   map[string]json.RawMessage
	Tol  float64
	Out  []drawnTensor
}

type drawnTensor struct {
	T    string            `json:"t"`
	S    []int64           `json:"s"`
	St   []int64           `json:"st"`
	Fill string            `json:"fill"`
	At   []int             `json:"at"`
	D    []json.RawMessage `json:"d"` // numbers, or "NaN", "Inf", "-Inf"
}

// TestRandomStreams holds sequences of random operators against what PyTorch's CPU generator yields after torch.manual_seed, over
// sizes, dtypes and layouts. testdata/random_numbers.py writes the file.
func TestRandomStreams(t *testing.T) {
	f, err := os.Open("testdata/random_numbers.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var seq struct {
			Seed  uint64
			Calls []drawnCall
		}
		if err := json.Unmarshal(lines.Bytes(), &seq); err != nil {
			t.Fatal(err)
		}
		x := &Eager{Rand: NewGenerator(seq.Seed)}
		for i := range seq.Calls {
			c := &seq.Calls[i]
			name := fmt.Sprintf("%d/%d_%s", seq.Seed, i, c.Op)
			if len(c.Out) > 0 {
				name += fmt.Sprintf("_%s_%v", c.Out[0].T, c.Out[0].S)
			}
			if !t.Run(name, func(t *testing.T) { checkDrawn(t, x, c) }) {
				break // what follows starts from elsewhere in the stream
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func checkDrawn(t *testing.T, x *Eager, c *drawnCall) {
	var pos []any
	for _, a := range c.Args {
		pos = append(pos, drawnValue(t, a))
	}
	var kw []KwArg
	for k, v := range c.KW {
		kw = append(kw, Kw(k, drawnValue(t, v)))
	}
	op := Builtin().Lookup(qualified(c.Op))
	if op == nil {
		t.Fatalf("%s is not in the registry", c.Op)
	}
	a, err := op.Bind(pos, kw)
	if err != nil {
		t.Fatal(err)
	}
	out, err := NewBuild(x, nil).Do(op, a)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != len(c.Out) {
		t.Fatalf("%d results, want %d", len(out), len(c.Out))
	}
	for i, w := range c.Out {
		checkDrawnTensor(t, out[i].(*Value).T, w, c.Tol)
	}
}

// drawnValue is goldenValue, with inputs filled by their rule.
func drawnValue(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var g drawnTensor
	if json.Unmarshal(raw, &g) != nil || g.Fill == "" {
		return goldenValue(t, raw)
	}
	dt, err := tensor.ParseDType(g.T)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.NewStrided(dt, g.S, g.St)
	vals := make([]float64, x.Numel())
	scale := map[string]float64{"zeros": 0, "eighths": 1. / 8, "minus eighths": -1. / 8}[g.Fill]
	for i := range vals {
		vals[i] = float64(i*3%7+1) * scale
	}
	if wide, _ := tensor.FromSlice(vals, g.S...); len(vals) > 0 {
		Copy(nil, x, wide)
	}
	return x
}

func checkDrawnTensor(t *testing.T, got *tensor.Tensor, w drawnTensor, tol float64) {
	t.Helper()
	if got.DType().String() != w.T || !slices.Equal(got.Sizes(), w.S) || !slices.Equal(got.Strides(), w.St) {
		t.Fatalf("%v %v strides %v, want %s %v strides %v", got.DType(), got.Sizes(), got.Strides(), w.T, w.S, w.St)
	}
	k := &Kernel{}
	if !got.DType().IsFloat() && !got.DType().IsComplex() {
		have := tensor.Contiguous[int64](k.as(got, tensor.Int64))
		for j, i := range w.At {
			if want, err := strconv.ParseInt(string(w.D[j]), 10, 64); err != nil || have[i] != want {
				t.Fatalf("element %d: %v, want %v", i, have[i], string(w.D[j]))
			}
		}
		return
	}
	parts := 1
	var have []float64
	if got.DType().IsComplex() {
		parts = 2
		for _, z := range tensor.Contiguous[complex128](k.as(got, tensor.Complex128)) {
			have = append(have, real(z), imag(z))
		}
	} else {
		have = tensor.Contiguous[float64](k.as(got, tensor.Float64))
	}
	for j, i := range w.At {
		for p := range parts {
			h := have[i*parts+p]
			want, err := strconv.ParseFloat(strings.Trim(string(w.D[j*parts+p]), `"`), 64)
			if err != nil {
				t.Fatal(err)
			}
			if d := math.Abs(h - want); h != want && !(d <= tol*max(1, math.Abs(want))) {
				t.Fatalf("element %d: %v, want %v", i, h, want)
			}
		}
	}
}
