package symbolic

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

type row struct {
	Str, Srepr string
	Values     [][2]json.RawMessage
}

// golden reads testdata/expressions.jsonl, which testdata/make.py made with PyTorch.
func golden(t testing.TB) (rows []row) {
	t.Helper()
	f, err := os.Open("testdata/expressions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var r row
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	if len(rows) < 100 {
		t.Fatalf("only %d rows", len(rows))
	}
	return rows
}

// matches compares a value with PyTorch's; "error" stands for an exception or for what 64 bits cannot hold.
func matches(got any, err error, want any) bool {
	if want == "error" {
		return err != nil
	}
	if err != nil {
		return false
	}
	if b, ok := want.(bool); ok {
		return got == b
	}
	f, ok := asFloat(got)
	return ok && f == want
}

func TestValuesAsInPyTorch(t *testing.T) {
	for _, r := range golden(t) {
		for _, text := range []string{r.Str, r.Srepr} {
			e, err := Parse(text)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			if err := e.Known(); err != nil {
				t.Errorf("%s: %v", text, err)
			}
			names := []string{"s0", "s1", "u0", "u1"}
			slot := func(name string) (int, bool) {
				for i, n := range names {
					if n == name {
						return i, true
					}
				}
				return 0, false
			}
			fast := CompileInt(e, slot)
			for _, v := range r.Values {
				env := map[string]int64{}
				var want any
				if err := json.Unmarshal(v[0], &env); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(v[1], &want); err != nil {
					t.Fatal(err)
				}
				got, err := e.Eval(func(n string) (any, bool) { x, ok := env[n]; return x, ok })
				if !matches(got, err, want) {
					t.Errorf("%s with %v: %v %v, want %v", text, env, got, err, want)
				}
				checkCompiled(t, text, fast, names, env, want)
			}
		}
	}
}

// checkCompiled holds the compiled form, where there is one, against the same value.
func checkCompiled(t *testing.T, text string, f IntFunc, names []string, env map[string]int64, want any) {
	t.Helper()
	if f == nil {
		return
	}
	vals := make([]int64, len(names))
	for i, n := range names {
		vals[i] = env[n]
	}
	got, ok := f(vals)
	if b, isBool := want.(bool); isBool {
		want = float64(truthInt(b))
	}
	if ok != (want != "error") || ok && float64(got) != want {
		t.Errorf("%s compiled, with %v: %d %v, want %v", text, env, got, ok, want)
	}
}

// The archive's form prints as sympy prints it; the other form means the same.
func TestPrintedAsInSympy(t *testing.T) {
	for _, r := range golden(t) {
		e, err := Parse(r.Srepr)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Srepr(); got != r.Srepr {
			t.Errorf("srepr\n got %s\nwant %s", got, r.Srepr)
		}
		again, err := Parse(e.String())
		if err != nil {
			t.Errorf("%s does not parse: %v", e, err)
			continue
		}
		for _, v := range r.Values {
			env := map[string]int64{}
			var want any
			if err := errors.Join(json.Unmarshal(v[0], &env), json.Unmarshal(v[1], &want)); err != nil {
				t.Fatal(err)
			}
			got, err := again.Eval(func(n string) (any, bool) { x, ok := env[n]; return x, ok })
			if !matches(got, err, want) {
				t.Errorf("%s, printed as %s, with %v: %v %v, want %v", r.Str, e, env, got, err, want)
			}
		}
	}
}

// Python's rules, written out.
func TestPythonsIntegers(t *testing.T) {
	for _, c := range []struct{ x, y, div, mod int64 }{
		{7, 2, 3, 1}, {-7, 2, -4, 1}, {7, -2, -4, -1}, {-7, -2, 3, -1}, {6, 3, 2, 0}, {-6, 3, -2, 0}, {0, 5, 0, 0}, {1, -5, -1, -4},
	} {
		env := func(n string) (any, bool) {
			v, ok := map[string]int64{"x": c.x, "y": c.y}[n]
			return v, ok
		}
		for text, want := range map[string]int64{"x//y": c.div, "x % y": c.mod, "FloorDiv(x, y)": c.div, "PythonMod(x, y)": c.mod} {
			e, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := e.EvalInt(env); err != nil || got != want {
				t.Errorf("%s with x=%d y=%d: %d %v, want %d", text, c.x, c.y, got, err, want)
			}
		}
		if got := N(c.x).FloorDiv(N(c.y)); got.Int64() != c.div {
			t.Errorf("FloorDiv(%d, %d) is %v", c.x, c.y, got)
		}
		if got := N(c.x).Mod(N(c.y)); got.Int64() != c.mod {
			t.Errorf("Mod(%d, %d) is %v", c.x, c.y, got)
		}
	}
}

func TestErrors(t *testing.T) {
	none := func(string) (any, bool) { return nil, false }
	for text, want := range map[string]error{
		"x + 1": ErrUnbound, "1//0": ErrZero, "1 % 0": ErrZero, "IntTrueDiv(1, 0)": ErrZero, "9223372036854775807 + 1": ErrOverflow,
		"9223372036854775807*2": ErrOverflow, "-9223372036854775807 - 2": ErrOverflow, "2**100": ErrOverflow, "LShift(1, 80)": ErrOverflow,
		"f(1)": ErrUndefined, "FloorDiv(-9223372036854775807 - 1, -1)": ErrOverflow,
	} {
		e, err := Parse(text)
		if err == nil {
			_, err = e.Eval(none)
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	for _, text := range []string{"", "(", "1 +", "x y", "f(", "f(1", "'a", "1..2", "x[", "@", "Symbol(", "Integer('x')", strings.Repeat("(", 100000),
		strings.Repeat("-", 100000) + "1", strings.Repeat("f(", 100000), strings.Repeat("not ", 100000) + "x"} {
		var syntax *SyntaxError
		if e, err := Parse(text); !errors.As(err, &syntax) {
			t.Errorf("%.20q: %v %v", text, e, err)
		}
	}
}

// Sizes that overflow say so instead of wrapping around.
func TestIntOverflow(t *testing.T) {
	huge := N(1 << 62)
	for name, v := range map[string]Int{"sum": huge.Add(huge), "product": huge.Mul(N(4)), "of many": Prod(huge, huge, huge), "sum of many": Sum(huge, huge, huge),
		"difference": huge.Neg().Sub(huge).Sub(huge), "by zero": N(1).FloorDiv(N(0)), "modulo zero": N(1).Mod(N(0)), "carried on": huge.Add(huge).Mul(N(0)).AddN(1)} {
		if v.Err() == nil {
			t.Errorf("%s: %v has no error", name, v)
		}
	}
	if v := huge.Mul(N(0)); v.Err() != nil || v.Int64() != 0 {
		t.Errorf("times 0: %v", v)
	}
}

func FuzzParse(f *testing.F) {
	for _, r := range golden(f) {
		f.Add(r.Str)
		f.Add(r.Srepr)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			return
		}
		env := func(string) (any, bool) { return int64(3), true }
		v, err := e.Eval(env)
		if fast := CompileInt(e, func(string) (int, bool) { return 0, true }); fast != nil {
			n, ok := fast([]int64{3})
			if want, isInt := asInt(v); err == nil && isInt && (!ok || n != want) {
				t.Fatalf("%s: %v, compiled %d %v", text, v, n, ok)
			}
		}
		again, err2 := Parse(e.String())
		if err2 != nil {
			return // not every text that is understood is one that sympy prints
		}
		w, err3 := again.Eval(env)
		if _, isBool := v.(bool); isBool && err3 == nil {
			w = truth(w) // And(0) prints as 0
		}
		if err == nil && err3 == nil && v == v && w == w && v != w {
			t.Fatalf("%q means %v, printed as %q it means %v", text, v, e, w)
		}
	})
}
