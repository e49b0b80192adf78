package pytree

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

type pair struct{ A, B any }

// blob stands for a tensor: a type that pytree does not know.
type blob struct{ _ []float32 }

// callSpec is the in_spec of forward(x, d, *, n, p): d is {"k": leaf, "q": [leaf, leaf]}, p a named tuple.
func callSpec(t *testing.T) *Spec {
	t.Helper()
	const leaf = `{"type": null, "context": null, "children_spec": []}`
	list := `{"type": "builtins.list", "context": "null", "children_spec": [` + leaf + `, ` + leaf + `]}`
	d := `{"type": "builtins.dict", "context": "[\"k\", \"q\"]", "children_spec": [` + leaf + `, ` + list + `]}`
	p := `{"type": "collections.namedtuple", "context": "my.P", "children_spec": [` + leaf + `, ` + leaf + `]}`
	args := `{"type": "builtins.tuple", "context": "null", "children_spec": [` + leaf + `, ` + d + `]}`
	kwargs := `{"type": "builtins.dict", "context": "[\"n\", \"p\"]", "children_spec": [` + leaf + `, ` + p + `]}`
	s, err := Parse(`[1, {"type": "builtins.tuple", "context": "null", "children_spec": [`+args+`, `+kwargs+`]}]`, map[string][]string{"my.P": {"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCallInManyForms(t *testing.T) {
	s := callSpec(t)
	x := &blob{}
	want := []any{x, int64(1), 2.5, "s", int64(7), true, nil}
	names := []string{"x", "d"}
	type inner struct {
		K int32
		Q []any
	}
	type request struct {
		Input *blob `pt2:"x"`
		D     inner
		N     uint8
		P     map[string]any
		Note  string `pt2:"-"`
	}
	forms := map[string]func() ([]any, error){
		"kwargs in another order": func() ([]any, error) {
			return s.FlattenCall([]any{x, Dict{{"q", List{2.5, "s"}}, {"k", 1}}}, Dict{{"p", NamedTuple{"my.P", []string{"a", "b"}, []any{true, nil}}}, {"n", 7}})
		},
		"maps": func() ([]any, error) {
			return s.FlattenCall([]any{x, map[string]any{"k": 1, "q": []any{float32(2.5), "s"}}}, map[string]any{"n": int8(7), "p": []any{true, nil}})
		},
		"a struct": func() ([]any, error) {
			return s.FlattenRequest(request{x, inner{1, []any{2.5, "s"}}, 7, map[string]any{"a": true, "b": nil}, "not sent"}, names)
		},
		"a pointer to a struct": func() ([]any, error) {
			return s.FlattenRequest(&request{x, inner{1, []any{2.5, "s"}}, 7, map[string]any{"a": true, "b": nil}, ""}, names)
		},
		"a map of parameters": func() ([]any, error) {
			return s.FlattenRequest(map[string]any{"x": x, "d": inner{1, []any{2.5, "s"}}, "n": 7, "p": pair{true, nil}}, names)
		},
		"a whole value": func() ([]any, error) {
			return s.Flatten(Tuple{Tuple{x, Dict{{"k", 1}, {"q", List{2.5, "s"}}}}, Dict{{"n", 7}, {"p", pair{true, nil}}}})
		},
	}
	for name, f := range forms {
		got, err := f()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n got %v\nwant %v", name, err, got, want)
		}
	}
}

func TestMismatch(t *testing.T) {
	s := callSpec(t)
	d := Dict{{"k", 1}, {"q", List{2.5, "s"}}}
	p := pair{1, 2}
	for name, c := range map[string]struct {
		args   []any
		kwargs any
		path   string
		reason string
	}{
		"too few":       {[]any{1}, Dict{{"n", 1}, {"p", p}}, "", "want a tuple of 2, got 1 elements"},
		"missing key":   {[]any{1, Dict{{"k", 1}}}, Dict{{"n", 1}, {"p", p}}, "[1]", "['q'] is missing"},
		"more keys":     {[]any{1, append(d, Entry{"z", 1})}, Dict{{"n", 1}, {"p", p}}, "[1]", "want a dict with the keys ['k', 'q'], got 3 keys"},
		"tuple as list": {[]any{1, Dict{{"k", 1}, {"q", Tuple{1, 2}}}}, Dict{{"n", 1}, {"p", p}}, "[1]['q']", "want a list, got a tuple"},
		"list as leaf":  {[]any{List{}, d}, Dict{{"n", 1}, {"p", p}}, "[0]", "want a leaf, got a list"},
		"nil":           {[]any{1, nil}, Dict{{"n", 1}, {"p", p}}, "[1]", "want a dict, got nil"},
		"keyword": {[]any{1, d}, Dict{{"p", p}, {"m", 1}}, "",
			"Ran into a kwarg keyword mismatch: Got the following keywords ['p', 'm'] but expected ['n', 'p']"},
		"huge": {[]any{uint64(1) << 63, d}, Dict{{"n", 1}, {"p", p}}, "[0]", "want a leaf, got uint64"},
	} {
		_, err := s.FlattenCall(c.args, c.kwargs)
		var m *MismatchError
		if !errors.As(err, &m) || m.Path != c.path || m.Reason != c.reason {
			t.Errorf("%s: got %v, want %s: %s", name, err, c.path, c.reason)
		}
	}
}

// The text is what PyTorch 2.15 says.
func TestMismatchText(t *testing.T) {
	var r *Registry
	_, s, err := r.Flatten(Tuple{Tuple{1, 2}, Dict{}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.FlattenCall([]any{List{1}, 2}, nil)
	want := `Trying to flatten user inputs with exported input tree spec: 
TreeSpec(tuple, None, [TreeSpec(tuple, None, [*,
    *]),
  TreeSpec(dict, [], [])])
but actually got inputs with tree spec of: 
TreeSpec(tuple, None, [TreeSpec(tuple, None, [TreeSpec(list, None, [*]),
    *]),
  TreeSpec(dict, [], [])]).
Please check that the inputs have the same number and type of args and kwargs as the ones you used when tracing.`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

func TestSingleArgument(t *testing.T) {
	var r *Registry
	_, s, _ := r.Flatten(Tuple{Tuple{1}, Dict{}})
	x := &blob{}
	for _, req := range []any{x, []any{x}[0], struct{ X *blob }{x}, map[string]*blob{"x": x}} {
		got, err := s.FlattenRequest(req, []string{"x"})
		if err != nil || !reflect.DeepEqual(got, []any{x}) {
			t.Errorf("%T: %v %v", req, got, err)
		}
	}
	_, s, _ = r.Flatten(Tuple{Tuple{1, 2, 3}, Dict{}})
	got, err := s.FlattenRequest(struct {
		X    int
		Args []float64
	}{1, []float64{2, 3}}, []string{"x", "args_0", "args_1"})
	if err != nil || !reflect.DeepEqual(got, []any{int64(1), 2.0, 3.0}) {
		t.Errorf("*args: %v %v", got, err)
	}
	if _, err := s.FlattenRequest(map[string]any{"x": 1, "y": 2}, []string{"x", "y", "z"}); err == nil || !strings.Contains(err.Error(), `the parameter "z" is missing`) {
		t.Errorf("missing parameter: %v", err)
	}
	_, s, _ = r.Flatten(Tuple{Tuple{1}, Dict{}})
	if _, err := s.FlattenRequest(map[string]any{"x": 1, "y": 2}, []string{"x"}); err == nil || !strings.Contains(err.Error(), "got 2 parameters") {
		t.Errorf("unknown parameter: %v", err)
	}
}

func TestBind(t *testing.T) {
	var r *Registry
	x := &blob{}
	_, s, err := r.Flatten(Tuple{x, Dict{{"scores", List{1, 2}}, {"label_id", "cat"}}, 3})
	if err != nil {
		t.Fatal(err)
	}
	leaves := []any{x, int64(1), int64(2), "cat", int64(3)}
	type inner struct {
		Scores  []float32
		LabelID string
		Extra   int
	}
	var resp struct {
		Out   *blob
		Inner inner
		N     *uint16
	}
	if err := s.Bind(leaves, &resp); err != nil {
		t.Fatal(err)
	}
	if resp.Out != x || !reflect.DeepEqual(resp.Inner, inner{[]float32{1, 2}, "cat", 0}) || *resp.N != 3 {
		t.Errorf("got %+v", resp)
	}
	var list []any
	if err := s.Bind(leaves, &list); err != nil || !reflect.DeepEqual(list, []any{x, Dict{{"scores", List{int64(1), int64(2)}}, {"label_id", "cat"}}, int64(3)}) {
		t.Errorf("[]any: %v %v", list, err)
	}
	var m []map[string]any
	if err := s.Bind(leaves, &m); err == nil || !strings.Contains(err.Error(), "[0]: ") {
		t.Errorf("a blob in a map: %v", err)
	}
	for name, dst := range map[string]any{
		"too few fields": &struct{ A *blob }{},
		"no pointer":     resp,
		"wrong type": &struct {
			A int
			B inner
			C int
		}{},
		"field missing": &struct {
			A *blob
			B struct{ Scores []int }
			C int
		}{},
	} {
		var e *MismatchError
		if err := s.Bind(leaves, dst); !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBindLeaf(t *testing.T) {
	leaf := &Spec{leaves: 1}
	x := &blob{}
	var p *blob
	if err := leaf.Bind([]any{x}, &p); err != nil || p != x {
		t.Errorf("pointer: %v", err)
	}
	var one struct{ Out *blob }
	if err := leaf.Bind([]any{x}, &one); err != nil || one.Out != x {
		t.Errorf("struct of one field: %v", err)
	}
	if err := leaf.Bind([]any{nil}, &p); err != nil || p != nil {
		t.Errorf("None: %v %v", p, err)
	}
	var i8 int8
	if err := leaf.Bind([]any{int64(300)}, &i8); err == nil {
		t.Errorf("300 became the int8 %d", i8)
	}
	if err := leaf.Bind([]any{2.5}, &i8); err == nil {
		t.Errorf("2.5 became the int8 %d", i8)
	}
}

func TestRegisterStruct(t *testing.T) {
	type data struct {
		X any `pt2:"x"`
		Y any `pt2:"y"`
		Z any `pt2:"z"`
	}
	r := &Registry{}
	if err := RegisterStruct[data](r, "my.D"); err != nil {
		t.Fatal(err)
	}
	leaves, s, err := r.Flatten(data{1, nil, List{2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, row := range golden(t) {
		found = found || row.Text == s.Encode()
	}
	if !found {
		t.Errorf("PyTorch does not write %s", s.Encode())
	}
	if !reflect.DeepEqual(leaves, []any{int64(1), int64(2), int64(3)}) {
		t.Errorf("leaves %v", leaves)
	}
	if _, err := s.Flatten(data{1, 5, List{2, 3}}); err == nil || !strings.Contains(err.Error(), "field y was None") {
		t.Errorf("another pattern of None: %v", err)
	}
	if _, err := s.Flatten(data{nil, nil, List{2, 3}}); err == nil || !strings.Contains(err.Error(), "field x was not None") {
		t.Errorf("another pattern of None: %v", err)
	}
	var back data
	if err := s.Bind(leaves, &back); err != nil || back.X != int64(1) || back.Y != nil {
		t.Errorf("%+v %v", back, err)
	}
	if err := RegisterStruct[int](r, "my.I"); err == nil {
		t.Error("an int was registered")
	}
	if err := RegisterStruct[data](r, ""); err == nil || !strings.Contains(err.Error(), "No registered serialization name") {
		t.Errorf("no name: %v", err)
	}
}

// Results of transformers are OrderedDicts of a class of their own, with the names that are there as context.
func TestModelOutput(t *testing.T) {
	const leaf = `{"type": null, "context": null, "children_spec": []}`
	s, err := Parse(`[1, {"type": "transformers.modeling_outputs.BaseModelOutputWithPooling", "context": "[\"last_hidden_state\", \"pooler_output\"]", "children_spec": [`+leaf+`, `+leaf+`]}]`, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Pooled int `pt2:"pooler_output"`
		Last   int `pt2:"last_hidden_state"`
	}
	if err := s.Bind([]any{int64(1), int64(2)}, &out); err != nil || out.Last != 1 || out.Pooled != 2 {
		t.Errorf("%+v %v", out, err)
	}
	m := map[string]int{}
	if err := s.Bind([]any{int64(1), int64(2)}, &m); err != nil || m["pooler_output"] != 2 {
		t.Errorf("%v %v", m, err)
	}
	var list []int
	if err := s.Bind([]any{int64(1), int64(2)}, &list); err != nil || len(list) != 2 {
		t.Errorf("%v %v", list, err)
	}
}
