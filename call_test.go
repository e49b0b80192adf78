package pt2_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pt2go/pt2"
	"github.com/pt2go/pt2/guards"
	"github.com/pt2go/pt2/pytree"
	"github.com/pt2go/pt2/tensor"
)

// scorer takes forward(features, options, *, temperature) and gives a dataclass of probs and best.
const scorer = "examples/embed/scorer.pt2"

func open(t *testing.T, path string, opts ...pt2.Option) *pt2.Model {
	t.Helper()
	m, err := pt2.Load(path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// round gives values as PyTorch prints them.
func round(v any) string {
	switch v := v.(type) {
	case *tensor.Tensor:
		f, _ := v.Floats()
		return round(f)
	case []float32:
		f := make([]float64, len(v))
		for i := range v {
			f[i] = float64(v[i])
		}
		return round(f)
	case []float64:
		s := make([]string, len(v))
		for i := range v {
			s[i] = fmt.Sprintf("%.4f", v[i])
		}
		return strings.Join(s, " ")
	}
	return fmt.Sprint(v)
}

func ExampleModel_Call() {
	m, err := pt2.Load("examples/embed/scorer.pt2")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()

	// forward(features, options, *, temperature) -> Ranking(probs, best)
	type Request struct {
		Features    [][]float32
		Options     map[string][]float32
		Temperature float32
	}
	var resp struct {
		Probs [][]float32
		Best  []int
	}
	err = m.Call(context.Background(), &resp, Request{
		Features:    [][]float32{{1, 0, 0, 1}, {-1, 2, 0, -2}},
		Options:     map[string][]float32{"bias": {0, 0.5, 0}},
		Temperature: 2,
	})
	fmt.Printf("%.4f %v %v\n", resp.Probs, resp.Best, err)
	// Output: [[0.1945 0.3726 0.4329] [0.3674 0.3863 0.2463]] [2 1] <nil>
}

func ExampleModel_Call_positional() {
	m, err := pt2.Load("examples/embed/scorer.pt2")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	features, _ := tensor.FromSlice([]float32{1, 0, 0, 1, -1, 2, 0, -2}, 2, 4)
	options := struct{ Bias []float64 }{[]float64{0, 0.5, 0}}
	var best struct {
		Probs any
		Best  []int64
	}
	err = m.Call(context.Background(), &best, features, options, pt2.Kwargs{"temperature": 2})
	fmt.Println(best.Best, err)
	// Output: [2 1] <nil>
}

func ExampleFunc() {
	m, err := pt2.Load("examples/embed/scorer.pt2")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	type request struct {
		Input       [1][4]float32 `pt2:"features"`
		Options     map[string]any
		Temperature float64
	}
	score := pt2.Func[request, map[string]*tensor.Tensor](m)
	out, err := score(context.Background(), request{Input: [1][4]float32{{-1, 2, 0, -2}}, Options: map[string]any{"bias": [3]float32{0, 0.5}}, Temperature: 2})
	fmt.Println(out["best"], err)
	// Output: tensor([1]) <nil>
}

// The numbers are what PyTorch printed when examples/embed/scorer.py made the archive.
func TestCallForms(t *testing.T) {
	m := open(t, scorer)
	x, _ := tensor.FromSlice([]float32{1, 0, 0, 1, -1, 2, 0, -2}, 2, 4)
	bias := []float32{0, 0.5, 0}
	temperature := float32(2)
	for name, args := range map[string][]any{
		"whole request as pytree": {pytree.Dict{{Key: "features", Value: x}, {Key: "options", Value: pytree.Dict{{Key: "bias", Value: bias}}}, {Key: "temperature", Value: 2}}},
		"map of anything":         {map[string]any{"features": x, "options": map[string]any{"bias": bias}, "temperature": &temperature}},
		"pointer to a struct": {&struct {
			X       [2][4]float64 `pt2:"features"`
			Options struct{ Bias [3]float32 }
			T       float64 `pt2:"temperature"`
			Comment string  `pt2:"-"`
		}{X: [2][4]float64{{1, 0, 0, 1}, {-1, 2, 0, -2}}, Options: struct{ Bias [3]float32 }{[3]float32{0, 0.5, 0}}, T: 2}},
		"positional and keywords": {x, map[string][]float32{"bias": bias}, pt2.Kwargs{"temperature": tensor0(2)}},
	} {
		for form, read := range map[string]func() (string, string, error){
			"struct": func() (string, string, error) {
				var r struct {
					Probs []float32
					Best  []int
				}
				err := m.Call(context.Background(), &r, args...)
				return round(r.Probs), fmt.Sprint(r.Best), err
			},
			"map": func() (string, string, error) {
				r, err := pt2.Call[map[string]*tensor.Tensor](context.Background(), m, args...)
				if err != nil {
					return "", "", err
				}
				best, err := tensor.Values[int](r["best"])
				return round(r["probs"]), fmt.Sprint(best), err
			},
			"any": func() (string, string, error) {
				r, err := pt2.Call[any](context.Background(), m, args...)
				n, ok := r.(*pytree.Node)
				if !ok || n.Type != "example.Ranking" {
					return "", "", fmt.Errorf("got %T: %w", r, err)
				}
				best, err := tensor.Values[int](n.Children[1].(*tensor.Tensor))
				return round(n.Children[0]), fmt.Sprint(best), err
			},
			"slice": func() (string, string, error) {
				r, err := pt2.Call[[]any](context.Background(), m, args...)
				if err != nil {
					return "", "", err
				}
				best, err := tensor.Values[int](r[1].(*tensor.Tensor))
				return round(r[0]), fmt.Sprint(best), err
			},
		} {
			probs, best, err := read()
			if err != nil || probs != "0.1945 0.3726 0.4329 0.3674 0.3863 0.2463" || best != "[2 1]" {
				t.Errorf("%s into a %s: %s %s %v", name, form, probs, best, err)
			}
		}
	}
}

func tensor0(v float32) *tensor.Tensor {
	t := tensor.New(tensor.Float32)
	tensor.Data[float32](t)[0] = v
	return t
}

// Dicts, lists, tuples, keywords, named tuples, scalars and None, against PyTorch's outputs.
func TestCallStructures(t *testing.T) {
	type point struct{ X, Y []float32 }
	var tree struct {
		Sum  []float64
		Pair struct {
			Difference []float32
			Rest       [][]float32
		}
	}
	var named struct {
		First  []float32
		Second point
	}
	var doubled []float32
	var outs struct {
		Sum  []float32
		Same *tensor.Tensor
		N    int8
		None *float32
		W    [2]float64
		Pair struct {
			F float32
			B bool
		}
	}
	in := func(id string) []any { return calls(t, oldCase(t, id))[0].Inputs }
	treeIn, ntIn, scalIn, outsIn := in("v2.15.0-tree"), in("v2.15.0-nt"), in("v2.15.0-scal"), in("v2.15.0-outs")
	for id, c := range map[string]struct {
		args []any
		resp any
		got  func() string
		want string
	}{
		"tree": {[]any{map[string]any{"d": map[string]any{"a": treeIn[0], "b": []any{treeIn[1]}}, "t": treeIn[2:4], "k": treeIn[4]}}, &tree,
			func() string { return fmt.Sprintf("%.4f", tree) }, "{[-0.0830 -0.9259 -1.2644] {[0.0797 -1.6559] [[-1.1694 -1.7182]]}}"},
		"nt": {[]any{struct{ P point }{point{floats(ntIn[0]), floats(ntIn[1])}}}, &named,
			func() string { return fmt.Sprintf("%.4f", named) }, "{[-1.2583 -0.7694 -0.2669] {[-1.1694 -1.7182 -1.6772] [-1.6736 -0.9103 -0.4283]}}"},
		"scal": {[]any{scalIn[0], 3, float32(0.5), true, pt2.Kwargs{"mode": "twice", "n": nil}}, &doubled,
			func() string { return fmt.Sprintf("%.4f", doubled) }, "[-2.5081 -4.1546 -4.0316]"},
		"outs": {[]any{floats(outsIn[0]), floats(outsIn[1])}, &outs,
			func() string {
				return fmt.Sprintf("%.4f %s %d %v %.4f %v", outs.Sum, round(outs.Same), outs.N, outs.None, outs.W, outs.Pair)
			}, "[-1.2583 -0.7694] -0.5847 -0.8591 3 <nil> [0.3661 0.1137] {2.5 true}"},
	} {
		m := open(t, oldCase(t, "v2.15.0-"+id)+"/model.pt2")
		if err := m.Call(context.Background(), c.resp, c.args...); err != nil {
			t.Errorf("%s: %v", id, err)
		} else if got := c.got(); got != c.want {
			t.Errorf("%s: got %s\nwant %s", id, got, c.want)
		}
	}
}

func floats(x any) []float32 {
	f, err := tensor.Values[float32](x.(*tensor.Tensor))
	if err != nil {
		panic(err)
	}
	return f
}

func TestCallErrors(t *testing.T) {
	m := open(t, scorer)
	x := [][]float32{{1, 0, 0, 1}}
	bias := map[string]any{"bias": []float32{0, 0, 0}}
	request := func(features, options, temperature any) map[string]any {
		return map[string]any{"features": features, "options": options, "temperature": temperature}
	}
	for name, c := range map[string]struct {
		args []any
		want string
	}{
		"text for a tensor":  {[]any{request([]string{"a"}, bias, 1)}, "features: want a float32 tensor of sizes [s97, 4], got a []string"},
		"nil for a tensor":   {[]any{request(nil, bias, 1)}, "features: want a float32 tensor of sizes [s97, 4], got nil"},
		"ragged":             {[]any{request([][]float32{{1, 2, 3, 4}, {1}}, bias, 1)}, "features: want a float32 tensor of sizes [s97, 4]: tensor: slices of 4 and 1 elements at the same depth"},
		"bools":              {[]any{request([][]bool{{true}}, bias, 1)}, "features: want a float32 tensor of sizes [s97, 4]: tensor: bool elements to float32"},
		"deep":               {[]any{request(x, map[string]any{"bias": "no"}, 1)}, "options['bias']: want a float32 tensor of sizes [3], got a string"},
		"a key is missing":   {[]any{request(x, map[string]any{"bios": bias}, 1)}, "options: ['bias'] is missing"},
		"a list for a dict":  {[]any{request(x, []float32{1, 2, 3}, 1)}, "options: want a dict, map or struct, got []float32"},
		"a keyword missing":  {[]any{map[string]any{"features": x, "options": bias}}, `the keyword parameter "temperature" is missing`},
		"a parameter missed": {[]any{map[string]any{"features": x, "temperature": 1}}, `the parameter "options" is missing`},
		"unknown keyword":    {[]any{x, bias, pt2.Kwargs{"heat": 1}}, "Got the following keywords ['heat'] but expected ['temperature']"},
		"too few":            {[]any{x, pt2.Kwargs{"temperature": 1}}, "want a tuple of 2, got 1 elements"},
		"nothing":            {nil, "want a tuple of 2, got 0 elements"},
	} {
		err := m.Call(context.Background(), nil, c.args...)
		var mismatch *pytree.MismatchError
		if !errors.As(err, &mismatch) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v\nwant %s", name, err, c.want)
		}
	}
	for name, resp := range map[string]any{
		"probs: tensor: float32[1 3] does not go into a int": &struct{ Probs, Best int }{},
		".best: tensor: the int64 element 2 to bool": &struct {
			Probs any
			Best  []bool
		}{},
		"no field for .best": &struct{ Probs []float32 }{},
		"the destination must be a pointer that is not nil":      struct{}{},
		"example.Ranking does not go into a string":              new(string),
		".probs: tensor: float32[1 3] does not go into a [][][]": &[]([][][]float32){},
	} {
		err := m.Call(context.Background(), resp, request(x, bias, 1))
		var mismatch *pytree.MismatchError
		if !errors.As(err, &mismatch) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := m.Call(context.Background(), nil, request([][]string{}, bias, 1)); !strings.Contains(err.Error(), "got a [][]string") {
		t.Error(err)
	}
	var convert *pytree.MismatchError
	if err := m.Call(context.Background(), nil, request([][]float32{{1}, {}}, bias, 1)); !errors.Is(err, tensor.ErrConvert) || !errors.As(err, &convert) {
		t.Error(err)
	}
	// What a tensor must be like is checked by the guards, in PyTorch's words.
	var guard *guards.Error
	if err := m.Call(context.Background(), nil, request([][]float32{{1, 2}}, bias, 1)); !errors.As(err, &guard) {
		t.Error(err)
	}
}

func TestCallConstants(t *testing.T) {
	m := open(t, oldCase(t, "v2.15.0-scal")+"/model.pt2")
	x := []float32{1, 2, 3}
	var guard *guards.Error
	if err := m.Call(context.Background(), nil, x, 4, 0.5, true, pt2.Kwargs{"mode": "twice", "n": nil}); !errors.As(err, &guard) {
		t.Errorf("another int: %v", err)
	}
	err := m.Call(context.Background(), nil, x, []string{"3"}, 0.5, true, pt2.Kwargs{"mode": "twice", "n": nil})
	if err == nil || !strings.Contains(err.Error(), "want the constant 3 that the program was exported with, got a []string") {
		t.Errorf("a slice for an int: %v", err)
	}
}

// Slices go in and out without a copy where dtype and layout allow.
func TestCallSharesMemory(t *testing.T) {
	m := open(t, oldCase(t, "v2.15.0-outs")+"/model.pt2")
	x, y := []float32{1, 2}, []float32{3, 4}
	out, err := pt2.Call[[]any](context.Background(), m, x, y)
	if err != nil {
		t.Fatal(err)
	}
	same := out[1].(*tensor.Tensor) // forward returns x itself
	if &tensor.Data[float32](same)[0] != &x[0] {
		t.Error("x was copied on its way in or out")
	}
}
