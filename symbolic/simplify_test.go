package symbolic

import "testing"

func TestSimplify(t *testing.T) {
	for text, want := range map[string]string{
		"(s0 + 1)*(s0 + 1)":      "s0**2 + 2*s0 + 1",
		"s0 - s0 + 3":            "3",
		"(4*s0 + 8)//4":          "s0 + 2",
		"(4*s0 + 7)//4":          "s0 + 1",
		"Mod(6*s0, 3)":           "0",
		"Max(1, 2*s0)":           "Max(1, 2*s0)",
		"2*(s0*s1)//(s1*s0)":     "2",
		"s0*s1 + s1*s0":          "2*s0*s1",
		"9223372036854775807*s0": "9223372036854775807*s0",
	} {
		e, err := Parse(text)
		if err != nil {
			continue
		}
		got := e.Simplify()
		if got.String() != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		for _, env := range []map[string]int64{{"s0": 2, "s1": 3}, {"s0": 7, "s1": 5}} {
			look := func(n string) (any, bool) { v, ok := env[n]; return v, ok }
			x, err1 := e.EvalInt(look)
			y, err2 := got.EvalInt(look)
			if err1 == nil && (err2 != nil || x != y) {
				t.Errorf("%s: %d became %d (%v)", text, x, y, err2)
			}
		}
	}
}

// A maximum with what is positive by assumption goes away.
func TestSimplifyPositive(t *testing.T) {
	s := Symbol("s0", true)
	e := call("Max", Const(1), call("Mul", Const(2), s))
	if got := e.Simplify().String(); got != "2*s0" {
		t.Error(got)
	}
	u := call("Max", Const(1), Symbol("u0", false))
	if got := u.Simplify().String(); got != "Max(1, u0)" {
		t.Error(got)
	}
}
