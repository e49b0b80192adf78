package guards

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

func ones(t testing.TB, sizes ...int64) *tensor.Tensor {
	t.Helper()
	return tensor.New(tensor.Float32, sizes...)
}

// sizes reads "s77 4 2*s9+1".
func sizes(t testing.TB, text string) (out []symbolic.Int) {
	t.Helper()
	for _, f := range strings.Fields(text) {
		e, err := symbolic.Parse(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, symbolic.FromExpr(e, 2))
	}
	return out
}

func in(t testing.TB, name, path, size string) Input {
	return Input{Name: name, KeyPath: path, Tensor: true, Sizes: sizes(t, size), DType: tensor.Float32}
}

func bound(expr string, min, max int64) Range {
	r := Range{Expr: expr}
	if min >= 0 {
		r.Min = &min
	}
	if max >= 0 {
		r.Max = &max
	}
	return r
}

func compile(t testing.TB, s Spec) *Set {
	t.Helper()
	set, err := Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// The texts are those of PyTorch 2.15 for the same programs and inputs, with check_guards=True and False; an empty text means
// that PyTorch accepts the call.
func TestMessages(t *testing.T) {
	one := func(v any) Spec {
		return Spec{Inputs: []Input{{Name: "n", KeyPath: "*args[1]", IsConstant: true, Constant: v}}}
	}
	nested := Spec{Inputs: []Input{in(t, "d['q'][0]", "*args[6]['q'][0]", "3"), {Name: "k", KeyPath: "'k'", IsConstant: true, Constant: int64(7)}}}
	equal := Spec{
		Inputs: []Input{in(t, "x", "*args[0]", "s17 5"), in(t, "y", "*args[1]", "s17 2")},
		Ranges: []Range{bound("s17", 3, 9)},
		Guards: []string{"L['y'].size()[0] == L['x'].size()[0]"},
	}
	hidden := Spec{
		Inputs: []Input{in(t, "x", "*args[0]", "2*s9 5"), in(t, "y", "*args[1]", "2*s9+1 2")},
		Ranges: []Range{bound("2*s9", 0, -1), bound("2*s9 + 1", 1, -1), bound("s9", 2, -1)},
	}
	thirds := Spec{
		Inputs: []Input{in(t, "x", "*args[0]", "3*s9"), in(t, "y", "*args[1]", "2*s9+1"), in(t, "z", "*args[2]", "s9+4")},
		Ranges: []Range{bound("s9 + 4", 4, -1)},
	}
	number := Spec{
		Inputs: []Input{in(t, "x", "*args[0]", "s77"), {Name: "n", KeyPath: "*args[1]", Sym: symbolic.Symbol("s86", true)}},
		Ranges: []Range{bound("s77", 2, 10), bound("s86", 4, -1)},
		Guards: []string{"L['n'] > 3"},
	}
	const advice = ". If you meant for this dimension to be dynamic, please re-export and specify dynamic_shapes (e.g. with Dim.DYNAMIC)"
	for _, c := range []struct {
		spec   Spec
		leaves []any
		guard  string
		hook   string
	}{
		{equal, []any{ones(t, 4, 5), ones(t, 4, 2)}, "", ""},
		{equal, []any{ones(t, 2, 5), ones(t, 2, 2)}, "Guard failed: x.size()[0] >= 3", "Expected input at *args[0].shape[0] to be >= 3, but got 2"},
		{equal, []any{ones(t, 12, 5), ones(t, 12, 2)}, "Guard failed: x.size()[0] <= 9", "Expected input at *args[0].shape[0] to be <= 9, but got 12"},
		{equal, []any{ones(t, 4, 6), ones(t, 4, 2)}, "Guard failed: x.size()[1] == 5", "Expected input at *args[0].shape[1] to be equal to 5, but got 6" + advice},
		{equal, []any{ones(t, 4, 5), ones(t, 5, 2)}, "Guard failed: y.size()[0] == x.size()[0]", "Expected input at *args[1].shape[0] to be equal to 4, but got 5"},
		{nested, []any{ones(t, 4), int64(7)}, "Guard failed: d['q'][0].size()[0] == 3", "Expected input at *args[6]['q'][0].shape[0] to be equal to 3, but got 4" + advice},
		{nested, []any{ones(t, 3), int64(8)}, "Guard failed: k == 7", "Expected input at 'k' to be equal to 7, but got 8"},
		{one(int64(3)), []any{int64(4)}, "Guard failed: n == 3", "Expected input at *args[1] to be equal to 3, but got 4"},
		{one(int64(3)), []any{3.0}, "", "Expected input at *args[1] to be equal to 3, but got 3.0"},
		{one(int64(3)), []any{true}, "Guard failed: n == 3", "Expected input at *args[1] to be equal to 3, but got True"},
		{one(2.5), []any{int64(2)}, "Guard failed: n == 2.5", "Expected input at *args[1] to be equal to 2.5, but got 2"},
		{one(true), []any{int64(1)}, "", "Expected input at *args[1] to be equal to True, but got 1"},
		{one(true), []any{false}, "Guard failed: n == True", "Expected input at *args[1] to be equal to True, but got False"},
		{one("ab"), []any{"x"}, "Guard failed: n == 'ab'", "Expected input at *args[1] to be equal to ab, but got x"},
		{one(nil), []any{int64(1)}, "", ""},
		{one(math.NaN()), []any{1.5}, "Guard failed: math.isnan(n)", "Expected input at *args[1] to be nan, but got 1.5"},
		{one(math.NaN()), []any{math.NaN()}, "", ""},
		{one(math.Inf(-1)), []any{1.5}, "Guard failed: n == -math.inf", "Expected input at *args[1] to be equal to -inf, but got 1.5"},
		{hidden, []any{ones(t, 7, 5), ones(t, 8, 2)}, "", "Expected input *args[0].shape[0] = 7 to be of the form 2*s9, where s9 is an integer"},
		{hidden, []any{ones(t, 8, 5), ones(t, 8, 2)}, "Guard failed: 1 + x.size()[0] == y.size()[0]", "Expected input at *args[1].shape[0] to be equal to 9, but got 8"},
		{thirds, []any{ones(t, 9), ones(t, 8), ones(t, 7)}, "Guard failed: 1 + 2 / 3 * x.size()[0] == y.size()[0]", "Expected input at *args[1].shape[0] to be equal to 7, but got 8"},
		{thirds, []any{ones(t, 9), ones(t, 7), ones(t, 8)}, "Guard failed: 4 + 1 / 3 * x.size()[0] == z.size()[0]", "Expected input at *args[2].shape[0] to be equal to 7, but got 8"},
		{thirds, []any{ones(t, 3), ones(t, 3), ones(t, 3)}, "Guard failed: z.size()[0] >= 4", ""},
		{number, []any{ones(t, 7), int64(2)}, "Guard failed: n >= 4", "Expected input at *args[1] to be >= 4, but got 2"},
		{number, []any{ones(t, 1), int64(7)}, "", ""},
		{number, []any{ones(t, 0), int64(7)}, "", ""},
	} {
		set := compile(t, c.spec)
		_, err := set.Check(c.leaves, true)
		var g *Error
		if c.guard == "" && err != nil || c.guard != "" && (!errors.As(err, &g) || "Guard failed: "+g.Expr != c.guard) {
			t.Errorf("with guards: got %v, want %q", err, c.guard)
		}
		if c.spec.Inputs[0].Sizes != nil && strings.HasPrefix(c.guard, "Guard failed: z") {
			continue // PyTorch sees another violation first there
		}
		_, err = set.Check(c.leaves, false)
		var i *InputError
		if c.hook == "" && err != nil || c.hook != "" && (!errors.As(err, &i) || i.Error() != c.hook) {
			t.Errorf("without guards: got %v, want %q", err, c.hook)
		}
	}
}

func TestKinds(t *testing.T) {
	set := compile(t, Spec{Inputs: []Input{in(t, "x", "*args[0]", "s17 5")}})
	double := tensor.New(tensor.Float64, 4, 5)
	for _, c := range []struct {
		leaves []any
		want   string
	}{
		{[]any{int64(3)}, "Expected input at *args[0] to be a tensor, but got <class 'int'>"},
		{[]any{nil}, "Expected input at *args[0] to be a tensor, but got <class 'NoneType'>"},
		{[]any{(*tensor.Tensor)(nil)}, "Expected input at *args[0] to be a tensor"},
		{[]any{ones(t, 4)}, "Unexpected number of dimensions in input at *args[0].shape (expected torch.Size([s17, 5]), got torch.Size([4]))"},
		{[]any{double}, "Expected input at *args[0] to be a tensor of dtype torch.float32, but got torch.float64"},
		{nil, "Unexpected number of inputs (expected 1, got 0)"},
	} {
		var e *InputError
		if _, err := set.Check(c.leaves, true); !errors.As(err, &e) || !strings.HasPrefix(e.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestBindings(t *testing.T) {
	set := compile(t, Spec{Inputs: []Input{
		in(t, "x", "", "3*s1+1 s2"), in(t, "y", "", "s1+s2 s2"), {Name: "n", Sym: symbolic.Symbol("u3", false)},
	}})
	got, err := set.Check([]any{ones(t, 10, 4), ones(t, 7, 4), int64(-5)}, true)
	if want := map[string]int64{"s1": 3, "s2": 4, "u3": -5}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v %v, want %v", got, err, want)
	}
}

// Programs of older versions record no guards; their sizes still tie inputs together.
func TestRelationWithoutRecordedGuard(t *testing.T) {
	set := compile(t, Spec{Inputs: []Input{in(t, "x", "", "s1"), in(t, "y", "", "2*s1+1")}})
	if _, err := set.Check([]any{ones(t, 3), ones(t, 7)}, true); err != nil {
		t.Error(err)
	}
	var g *Error
	if _, err := set.Check([]any{ones(t, 3), ones(t, 8)}, true); !errors.As(err, &g) || g.Expr != "1 + 2 * x.size()[0] == y.size()[0]" {
		t.Errorf("got %v", err)
	}
}

func TestGuardExpressions(t *testing.T) {
	spec := Spec{Inputs: []Input{
		in(t, "x", "", "s1 s2"), in(t, "args_0", "", "s3"), in(t, "inputs.a['k']", "", "s4"),
		{Name: "n", Sym: symbolic.Symbol("u0", false)}, {Name: "f", Sym: symbolic.Symbol("zuf0", false)}, in(t, "deep", "", "s5"),
	}}
	leaves := []any{ones(t, 6, 4), ones(t, 3), ones(t, 5), int64(-7), 0.5, ones(t, 9)}
	for text, fails := range map[string]string{
		"(L['x'].size()[0] % 2) == 0":                                           "",
		"(L['x'].size()[0] % 4) == 0":                                           "x.size()[0] % 4 == 0",
		"L['x'].size()[0] == (2 + L['x'].size()[1])":                            "",
		"L['x'].size()[0] == ((-1) + L['x'].size()[1])":                         "x.size()[0] == -1 + x.size()[1]",
		"L['args'][0].size()[0] > 4":                                            "args_0.size()[0] > 4",
		"L['flat_args'][1].size()[0] > 4":                                       "args_0.size()[0] > 4",
		"L['inputs'].a['k'].size()[0] <= 4":                                     "inputs.a['k'].size()[0] <= 4",
		"L['inputs'].a[\"k\"].size()[0] <= 5":                                   "",
		"L['kw']['deep'].size()[0] != 9":                                        "deep.size()[0] != 9",
		"L['n'] // 2 == -4 and (L['n'] % 3) == 2":                               "",
		"L['n'] // 2 == -3":                                                     "n // 2 == -3",
		"L['n'] >= 0 and L['n'] <= 6":                                           "n >= 0 and n <= 6",
		"not (L['n'] < 0 or L['x'].size()[0] > 100)":                            "not (n < 0 or x.size()[0] > 100)",
		"math.trunc(L['x'].size()[0] / 4) == 1":                                 "",
		"math.floor(L['n'] / 2) == -3":                                          "math.floor(n / 2) == -3",
		"torch.sym_min(3, L['x'].size()[1]) <= L['x'].size()[1]":                "",
		"torch.sym_max(1, (-2) + L['x'].size()[1])*2 == 5":                      "torch.sym_max(1, -2 + x.size()[1]) * 2 == 5",
		"torch.sym_float(L['x'].size()[0]) < 10.0*torch.sym_float(L['f']) ** 2": "torch.sym_float(x.size()[0]) < 10.0 * torch.sym_float(f) ** 2",
		"(1 if L['n'] > 0 else 2) == 2":                                         "",
		"(1 if L['n'] > 0 else 2) == 1":                                         "(1 if n > 0 else 2) == 1",
		"L['x'].stride()[0] == 4":                                               "",
		"L['x'].storage_offset() == 1":                                          "x.storage_offset() == 1",
		"L['f'] == 0.5 and round(L['f']*10) == 5 and abs(L['n']) == 7":          "",
		"torch._sym_sqrt(torch.sym_float(L['deep'].size()[0])) == 3.0":          "",
		"(L['x'].size()[0] // (L['n'] + 7)) == 1":                               "x.size()[0] // (n + 7) == 1", // division by zero
	} {
		s := spec
		s.Guards = []string{text}
		_, err := compile(t, s).Check(leaves, true)
		var g *Error
		if fails == "" && err != nil || fails != "" && (!errors.As(err, &g) || g.Expr != fails) {
			t.Errorf("%s: got %v, want %q", text, err, fails)
		}
		if _, err := compile(t, s).Check(leaves, false); err != nil {
			t.Errorf("%s is checked although guards are off: %v", text, err)
		}
	}
}

func TestErrorShowsValues(t *testing.T) {
	set := compile(t, Spec{Inputs: []Input{in(t, "x", "", "s1"), in(t, "y", "", "s2")}, Guards: []string{"L['x'].size()[0] == (2*L['y'].size()[0])"}})
	_, err := set.Check([]any{ones(t, 3), ones(t, 4)}, true)
	if want := "Guard failed: x.size()[0] == 2 * y.size()[0], got x.size()[0] = 3, y.size()[0] = 4"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestNotUnderstood(t *testing.T) {
	for text, want := range map[string]string{
		"L['x'].size()[0] ==":                            "guard 1 (L['x'].size()[0] ==) is not understood",
		"L['z'].size()[0] == 3":                          "no input is called z",
		"L['x'].size()[2] == 3":                          "x has 2 dimensions",
		"L['x'] == 3":                                    "x is a tensor, not a number",
		"q == 3":                                         "unknown name q",
		"os.system('x') == 0":                            "unknown name os",
		"unheard_of(L['x'].size()[0]) == 0":              "unheard_of: undefined function",
		"Symbol('s27', integer=True) == 0":               "unknown name s27",
		"torch.sym_float(1, 2) == L['x'].size()[0]":      "takes 1 arguments",
		strings.Repeat("(", 500) + "1":                   "nested more than",
		"L['x'].size()[99999999999999999999] == 3":       "malformed dimension",
		"L['x'].size()[0] == 99999999999999999999999999": "no number that fits 64 bits",
		"L['x": "malformed path",
	} {
		_, err := Compile(Spec{Inputs: []Input{in(t, "x", "", "s1 4")}, Guards: []string{"L['x'].size()[0] > 1", text}})
		var e *CompileError
		if !errors.As(err, &e) || e.Index != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %q", text, err, want)
		}
	}
	var e *CompileError
	if _, err := Compile(Spec{Ranges: []Range{{Expr: "s1 +"}}}); !errors.As(err, &e) || e.What != "range constraint" {
		t.Errorf("a broken range: %v", err)
	}
}

// The right side is what ast.unparse of Python 3.11 makes of the left.
func TestUnparse(t *testing.T) {
	for text, want := range map[string]string{
		"(-1) + a": "-1 + a", "2*a": "2 * a", "(a % 2) == 0": "a % 2 == 0", "(-1)**2": "(-1) ** 2", "2**(-1)": "2 ** (-1)",
		"a or b or not c": "a or b or (not c)", "a>=0 and b<=6 and c>=1": "a >= 0 and b <= 6 and (c >= 1)",
		"a<1 or b<2 or c<3": "a < 1 or b < 2 or c < 3", "a or (b or c)": "a or (b or c)", "(a and b) or c": "a and b or c",
		"a and (b or c)": "a and (b or c)", "not (a and b)": "not (a and b)", "not not a": "not not a", "(not a) == b": "(not a) == b",
		"a if b else (c if d else e)": "a if b else c if d else e", "(a if b else c) if d else e": "(a if b else c) if d else e",
		"(a+b)+c": "a + b + c", "a+(b+c)": "a + (b + c)", "a*(b//c)": "a * (b // c)", "(a*b)//c": "a * b // c", "a - (b - c)": "a - (b - c)",
		"-(a+b)": "-(a + b)", "-(-a)": "--a", "(a**b)**c": "(a ** b) ** c", "a**(b**c)": "a ** b ** c", "-(2**a)": "-2 ** a",
		"10.0*torch.sym_float(x) ** 0.145": "10.0 * torch.sym_float(x) ** 0.145", "torch.sym_max(1, (a+b))": "torch.sym_max(1, a + b)",
		"(a == b) == c": "(a == b) == c", "1e20 < a": "1e+20 < a", "1e-7": "1e-07", "f == 'a\"b'": "f == 'a\"b'", `f == "a"`: "f == 'a'",
		"a == (b and c)": "a == (b and c)", "max(a, -1)": "max(a, -1)", "a +": "a +",
	} {
		if got := unparse(text, nil); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	set := compile(b, Spec{
		Inputs: []Input{in(b, "x", "*args[0]", "s17 5"), in(b, "y", "*args[1]", "s17 2")},
		Ranges: []Range{bound("s17", 3, 9)},
		Guards: []string{"L['y'].size()[0] == L['x'].size()[0]", "(3*L['x'].size()[0] % 2) == 0"},
	})
	leaves := []any{ones(b, 4, 5), ones(b, 4, 2)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := set.Check(leaves, true); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		"(L['x'].size()[0] % 2) == 0", "L['n'] >= 0 and L['n'] <= 6", "math.trunc(L['x'].size()[0] / 2) == 3", "L['args'][0].size()[0] > 4",
		"torch.sym_max(1, torch.sym_max(L['flat_args'][0].size()[1], L['n'])) == L['x'].size()[1]", "L['x'].size()[0]**2 != 4",
		"(1 if L['n'] > 0 else 2) == 2", "not (L['n'] << 2 == 1)", "L['s'] == 'a\\'b'", "L[\"x\"].storage_offset() == 0",
	} {
		f.Add(s)
	}
	inputs := []Input{in(f, "x", "", "s1 s2"), in(f, "args_0", "", "s3"), {Name: "n", Sym: symbolic.Symbol("u0", false)}}
	leaves := []any{ones(f, 6, 4), ones(f, 3), int64(-7)}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := Compile(Spec{Inputs: inputs, Guards: []string{text}})
		if err != nil {
			return
		}
		_, err = set.Check(leaves, true)
		g := set.guards[0]
		if slow := set.evaluate(&g, leaves); (slow == nil) != (err == nil) {
			t.Fatalf("%q: compiled says %v, evaluated says %v", text, err, slow)
		}
	})
}
