package tracer

import (
	"fmt"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/export"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// Float is a float that a run computes: a number in an eager run, symbolic while a model is exported. Hand it on to operators.
type Float struct {
	v    float64
	node *export.Value // nil for a number
	env  *env
}

// N makes a Float of a number.
func N(v float64) Float { return Float{v: v} }

// Item is the one element of a tensor, as Tensor.item() of PyTorch: a [symbolic.Int], [Float] or [Bool] by its dtype. While a model is
// exported it is unbacked: only data knows it, and [Check] says what is known of it.
func (t *Tensor) Item() any {
	switch {
	case t.DType() == tensor.Bool:
		return t.Bool()
	case t.DType().IsFloat():
		return t.Float()
	}
	return t.Int()
}

// Int is the one element of a tensor of integers; see [Tensor.Item].
func (t *Tensor) Int() symbolic.Int {
	t.single(!t.DType().IsFloat() && !t.DType().IsComplex() && t.DType() != tensor.Bool, "Int takes a tensor of integers")
	if t.v.T != nil {
		return symbolic.N(t.element().Int64())
	}
	env := t.exporting()
	key := memo{"item", t.v}
	n, ok := env.unbacked.rows[key]
	if !ok {
		n = int64(env.unbacked.ints)
		env.newUnbacked(symbolic.Unbounded, t.drafted(func(s aten.Scalar) int64 { return s.Int64() })...)
		env.remember(key, n)
	}
	name := fmt.Sprintf("u%d", n)
	t.s.item(t, export.SymIntKind, symbolic.Symbol(name, false))
	return env.unbackedInt(name)
}

// exporting is the export under way, which reads data outside of the functions of control flow alone.
func (t *Tensor) exporting() *env {
	if t.s.env == nil || t.s.inner != nil {
		panic(&UserError{Kind: DynamicControlFlow, Msg: "a number is taken from a tensor inside of a control flow operator's function: take it outside, and hand it in"})
	}
	return t.s.env
}

// drafted is the element in the example of a draft export.
func (t *Tensor) drafted(as func(s aten.Scalar) int64) []int64 {
	if d := t.s.env.draft; d != nil && d.of[t.v] != nil {
		if s, err := aten.Item(d.of[t.v]); err == nil {
			return []int64{as(s)}
		}
	}
	return nil
}

// Float is the one element of a tensor of floats; see [Tensor.Item].
func (t *Tensor) Float() Float {
	t.single(t.DType().IsFloat(), "Float takes a tensor of floats")
	if t.v.T != nil {
		return Float{v: t.element().Float64()}
	}
	env := t.exporting()
	name := fmt.Sprintf("zuf%d", env.unbacked.floats)
	env.unbacked.floats++
	env.unbacked.names = append(env.unbacked.names, name)
	v := 1.0
	if d := env.draft; d != nil && d.of[t.v] != nil {
		if s, err := aten.Item(d.of[t.v]); err == nil {
			v = s.Float64()
		}
	}
	return Float{v: v, node: t.s.item(t, export.SymFloatKind, symbolic.Symbol(name, false)), env: env}
}

// Bool is the one element of a tensor of bools; see [Tensor.Item].
func (t *Tensor) Bool() Bool {
	t.single(t.DType() == tensor.Bool, "Bool takes a tensor of bools")
	if t.v.T != nil {
		return Bool{v: t.element().Bool()}
	}
	env := t.exporting()
	n := env.newUnbacked(symbolic.Interval{Min: 0, Max: 1}, t.drafted(func(s aten.Scalar) int64 {
		if s.Bool() {
			return 1
		}
		return 0
	})...)
	e := &symbolic.Expr{Op: "Equality", Args: []*symbolic.Expr{n.Expr(), symbolic.Const(1)}}
	t.s.item(t, export.SymBoolKind, e)
	return Bool{e: e, env: env}
}

func (t *Tensor) single(ok bool, what string) {
	if !ok {
		panic(invalid("%s, not of %v", what, t.DType()))
	}
	if n := t.v.Numel(); n.Ne(symbolic.N(1)) {
		panic(invalid("a Tensor with %v elements cannot be converted to Scalar", n))
	}
}

func (t *Tensor) element() aten.Scalar {
	s, err := aten.Item(t.v.T)
	if err != nil {
		panic(err)
	}
	return s
}

// item records the reading of an element.
func (s *session) item(t *Tensor, kind export.ValueKind, e *symbolic.Expr) *export.Value {
	s.rec.SetMetadata(s.metadata("item"))
	return s.rec.Number("torch.ops.aten.item.default", kind, e, export.NamedArg{Name: "self", Value: s.rec.Node(t.v), Kind: export.Positional})
}

// Add is f + x; x is a Float, an integer or a float.
func (f Float) Add(x any) Float {
	return f.binary("_operator.add", "Add", x, func(a, b float64) float64 { return a + b })
}

// Sub is f - x.
func (f Float) Sub(x any) Float {
	return f.binary("_operator.sub", "", x, func(a, b float64) float64 { return a - b })
}

// Mul is f * x.
func (f Float) Mul(x any) Float {
	return f.binary("_operator.mul", "Mul", x, func(a, b float64) float64 { return a * b })
}

// Div is f / x.
func (f Float) Div(x any) Float {
	return f.binary("_operator.truediv", "FloatTrueDiv", x, func(a, b float64) float64 { return a / b })
}

func (f Float) binary(target string, op symbolic.Op, x any, compute func(a, b float64) float64) Float {
	g := floatOf(x)
	out := Float{v: compute(f.v, g.v), env: f.env}
	if out.env == nil {
		out.env = g.env
	}
	if f.node == nil && g.node == nil {
		return out
	}
	e := &symbolic.Expr{Op: op, Args: []*symbolic.Expr{f.expr(), g.expr()}}
	switch {
	case op == "": // sympy writes differences as sums
		e = sum(f.expr(), &symbolic.Expr{Op: "Mul", Args: []*symbolic.Expr{{Op: symbolic.OpFloat, F: -1}, g.expr()}})
		if g.node == nil {
			e = sum(f.expr(), &symbolic.Expr{Op: symbolic.OpFloat, F: -g.v})
		}
	case op == "Mul" && g.node == nil:
		e.Args[0], e.Args[1] = e.Args[1], e.Args[0]
	}
	s := out.env.session
	s.rec.SetMetadata(s.metadata(target[len("_operator."):]))
	out.node = s.rec.Number(target, export.SymFloatKind, e, export.NamedArg{Name: "a", Value: f.argument(), Kind: export.Positional}, export.NamedArg{Name: "b", Value: g.argument(), Kind: export.Positional})
	return out
}

// floatOf takes numbers as Python does in float arithmetic.
func floatOf(x any) Float {
	switch x := x.(type) {
	case Float:
		return x
	case float64:
		return Float{v: x}
	case int:
		return Float{v: float64(x)}
	case int64:
		return Float{v: float64(x)}
	case symbolic.Int:
		if v, ok := x.Const(); ok {
			return Float{v: float64(v)}
		}
		env, ok := x.Decider().(*env)
		if !ok {
			break
		}
		s := env.session
		e := &symbolic.Expr{Op: "ToFloat", Args: []*symbolic.Expr{x.Expr()}}
		s.rec.SetMetadata(s.metadata("sym_float"))
		return Float{v: float64(x.Hint()), env: env, node: s.rec.Number("torch.sym_float", export.SymFloatKind, e, export.NamedArg{Name: "a", Value: s.rec.Argument(x), Kind: export.Positional})}
	}
	panic(invalid("a %T is used as a float", x))
}

func (f Float) expr() *symbolic.Expr {
	if f.node == nil {
		return &symbolic.Expr{Op: symbolic.OpFloat, F: f.v}
	}
	return f.node.Sym
}

func (f Float) argument() export.Argument {
	if f.node == nil {
		return f.v
	}
	return f.node
}

func (f Float) scalar() aten.Scalar {
	s := aten.FloatS(f.v)
	if f.node != nil {
		s.Ref = f.node
	}
	return s
}

// Value is the number of an eager run. While a model is exported only data knows it, which is a [DataDependentError].
func (f Float) Value() float64 {
	if f.node != nil {
		is := &symbolic.Expr{Op: "Equality", Args: []*symbolic.Expr{f.node.Sym, {Op: symbolic.OpFloat, F: f.v}}}
		if d := f.env.draft; d != nil {
			d.created(is)
			d.fail(&FailureReport{Type: DataDependentFailure, Expr: is.String(), Result: "True"})
			f.env.require(is)
			return f.v
		}
		panic(&DataDependentError{Expr: f.node.Sym.String(), Where: place()})
	}
	return f.v
}

func (e *env) remember(key memo, n int64) {
	if e.unbacked.rows == nil {
		e.unbacked.rows = map[memo]int64{}
	}
	e.unbacked.rows[key] = n
}
