package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// formula is an operator written out as others, as run_decompositions and hand-written models have it: the text of the expression over
// x with the constants of [numberText], and operands of commutative functions in alphabetical order.
type formula struct {
	text string
	op   *aten.Op
	args []any // after x
}

var formulas = sync.OnceValue(func() map[string]formula {
	const (
		clamp3 = "clamp[0 6](add_c[3](x))"
		cube   = "add(mul_c[0.0447](cube(x)),x)"
		tanh   = "add_c[1](tanh(mul_c[0.798](" + cube + ")))"
	)
	m := map[string]formula{}
	add := func(op *aten.Op, args []any, texts ...string) {
		for _, t := range texts {
			m[t] = formula{t, op, args}
		}
	}
	builtin := aten.Builtin().Lookup
	add(builtin("aten.silu.default"), nil, "mul(sigmoid(x),x)", "div(x,add_c[1](exp(neg(x))))")
	add(builtin("aten.hardsigmoid.default"), nil, "div_c[6]("+clamp3+")", "mul_c[0.167]("+clamp3+")")
	add(builtin("aten.hardswish.default"), nil, "mul(hardsigmoid(x),x)", "div_c[6](mul("+clamp3+",x))", "mul_c[0.167](mul("+clamp3+",x))",
		"mul(div_c[6]("+clamp3+"),x)", "mul(mul_c[0.167]("+clamp3+"),x)")
	for _, in := range []string{"mul_c[0.707](x)", "div_c[1.41](x)"} {
		erf := "add_c[1](erf(" + in + "))"
		none := []any{"none"}
		add(aten.GELU(aten.GELUHalfFirst), none, "mul("+erf+",mul_c[0.5](x))", "mul(mul_c[0.5]("+erf+"),x)", "mul("+erf+",div_c[2](x))")
		add(aten.GELU(aten.GELUHalfLast), none, "mul_c[0.5](mul("+erf+",x))")
	}
	approximate := []any{"tanh"}
	add(aten.GELU(aten.GELUTanhHalfFirst), approximate, "mul("+tanh+",mul_c[0.5](x))", "mul(mul_c[0.5]("+tanh+"),x)")
	add(aten.GELU(aten.GELUTanhHalfLast), approximate, "mul_c[0.5](mul("+tanh+",x))")
	add(builtin("aten.mish.default"), nil, "mul(tanh(softplus(x)),x)")
	return m
})

// maxFormula bounds the depth of an expression that is read.
const maxFormula = 9

// recognizeActivations is the pass that puts one operator in the place of the formulas that stand for it.
func (g *graph) recognizeActivations() {
	for j := len(g.instrs) - 1; j >= 0; j-- {
		in := g.instrs[j]
		if in == nil || len(in.Outs) != 1 || in.Outs[0] == nil || in.Outs[0].DType != tensor.Float32 || !covers(in.Outs[0]) {
			continue
		}
		b := in.Op.Body(in.Args)
		if b == nil || !strings.HasPrefix(b.Kind, "mul") && !strings.HasPrefix(b.Kind, "div") {
			continue
		}
		for _, x := range g.leaves(b, nil, maxFormula) {
			f, ok := formulas()[g.text(b, x, maxFormula)]
			if !ok || x.DType != tensor.Float32 || !aligned(x, in.Outs[0]) || !g.stable(x, g.firstUse(x), j) {
				continue
			}
			g.set(j, &Instr{Op: f.op, Args: &aten.Args{Op: f.op, V: append([]any{x}, f.args...)}, Outs: in.Outs})
			break
		}
	}
}

// numberText is a number of a formula in three digits. A number that is near to one, but is another, has a text that occurs in no formula.
func numberText(c float32) string {
	const rounding = 1.0 / (1 << 21) // programs spell out constants in seven digits or more
	for _, k := range []float64{0, 0.5, 1, 2, 3, 6, 1. / 6, 0.044715, 1 / math.Sqrt(math.Pi/2), math.Sqrt2, math.Sqrt2 / 2} {
		if math.Abs(float64(c)-k) <= k*rounding {
			return fmt.Sprintf("%.3g", k)
		}
	}
	return fmt.Sprintf("=%g", c)
}

// firstUse is the first instruction that reads what v looks at.
func (g *graph) firstUse(v *aten.Value) int {
	if v.T != nil {
		return 0
	}
	return slices.Min(bufferOf(v).readers)
}

// leaves lists the values that an expression is made of, those nearest to the root first.
func (g *graph) leaves(b *aten.Body, l []*aten.Value, depth int) []*aten.Value {
	if depth == 0 || len(l) > 32 {
		return l
	}
	for _, v := range b.Ins {
		if !slices.ContainsFunc(l, func(x *aten.Value) bool { return sameValue(x, v) }) {
			l = append(l, v)
		}
	}
	for _, v := range b.Ins {
		if c := g.bodyOf(v); c != nil {
			l = g.leaves(c, l, depth-1)
		}
	}
	return l
}

// bodyOf is the element-by-element function that computes v, nil if something else does.
func (g *graph) bodyOf(v *aten.Value) *aten.Body {
	i, out := g.producer(v)
	if i < 0 || !aligned(v, out) {
		return nil
	}
	in := g.instrs[i]
	if len(in.Outs) != 1 || out.DType != tensor.Float32 {
		return nil
	}
	if b := in.Op.Body(in.Args); b != nil {
		return b
	}
	return cubeOf(in)
}

// cubeOf is pow(x, 3), and softplus with its usual numbers, which have no body.
func cubeOf(in *Instr) *aten.Body {
	switch {
	case in.Op.Name() == "aten.pow.Tensor_Scalar" && in.Args.Scalar(1).Float64() == 3:
		return &aten.Body{Kind: "cube", Ins: []*aten.Value{in.Args.Tensor(0)}}
	case in.Op.Name() == "aten.softplus.default" && in.Args.Scalar(1).Float64() == 1 && in.Args.Scalar(2).Float64() == 20:
		return &aten.Body{Kind: "softplus", Ins: []*aten.Value{in.Args.Tensor(0)}}
	}
	return nil
}

// text writes an expression over x; "" if it is made of anything else.
func (g *graph) text(b *aten.Body, x *aten.Value, depth int) string {
	if depth == 0 {
		return ""
	}
	var args []string
	for _, v := range b.Ins {
		if sameValue(v, x) {
			args = append(args, "x")
			continue
		}
		c := g.bodyOf(v)
		if c == nil {
			return ""
		}
		t := g.text(c, x, depth-1)
		if t == "" {
			return ""
		}
		args = append(args, t)
	}
	switch {
	case b.Kind == "mul" && len(args) == 2 && (args[0] == "square(x)" && args[1] == "x" || args[0] == "x" && args[1] == "square(x)"):
		return "cube(x)"
	case b.Kind == "mul" && args[0] == "x" && args[1] == "x":
		return "square(x)"
	case b.Kind == "add" || b.Kind == "mul":
		slices.Sort(args)
	}
	name := b.Kind
	switch {
	case name == "clamp":
		name = fmt.Sprintf("clamp[%s %s]", numberText(b.Act.Lo), numberText(b.Act.Hi))
	case strings.HasSuffix(name, "_c"):
		name = fmt.Sprintf("%s[%s]", name, numberText(b.C))
	}
	return name + "(" + strings.Join(args, ",") + ")"
}

// recognizeRMSNorm is the pass that finds x * rsqrt(mean(x^2) + eps), with or without a weight after it.
func (g *graph) recognizeRMSNorm() {
	op := aten.Builtin().Lookup("aten.rms_norm.default")
	for j := range g.instrs {
		in := g.instrs[j]
		if in == nil || len(in.Outs) != 1 || in.Outs[0] == nil || in.Outs[0].DType != tensor.Float32 || !in.Outs[0].IsContiguous() {
			continue
		}
		b := in.Op.Body(in.Args)
		if b == nil || b.Kind != "mul" {
			continue
		}
		for k, x := range b.Ins {
			eps, ok := g.rmsOf(b.Ins[1-k], x)
			if !ok || !aligned(x, in.Outs[0]) || !g.stable(x, g.firstUse(x), j) {
				continue
			}
			last := x.Sizes[x.Dim()-1]
			args := []any{x, []symbolic.Int{last}, nil, eps}
			at, outs := j, in.Outs
			if u, w := g.weightAfter(in.Outs[0], last.Int64()); u >= 0 && g.stable(x, g.firstUse(x), u) {
				args[2], at, outs = w, u, g.instrs[u].Outs
				g.remove(j)
			}
			g.set(at, &Instr{Op: op, Args: &aten.Args{Op: op, V: args}, Outs: outs})
			break
		}
	}
}

// rmsOf reports that r is rsqrt(mean(x^2) + eps) over x's last dimension.
func (g *graph) rmsOf(r, x *aten.Value) (eps float64, ok bool) {
	b := g.bodyOf(r)
	if b == nil || b.Kind != "rsqrt" {
		return 0, false
	}
	if b = g.bodyOf(b.Ins[0]); b == nil || b.Kind != "add_c" {
		return 0, false
	}
	i, out := g.producer(b.Ins[0])
	if i < 0 || !aligned(b.Ins[0], out) || g.instrs[i].Op.Name() != "aten.mean.dim" {
		return 0, false
	}
	a := g.instrs[i].Args
	dims := a.I64s(1)
	sq := a.Tensor(0)
	if len(dims) != 1 || !a.Bool(2) || aten.WrapDim(dims[0], sq.Dim()) != sq.Dim()-1 {
		return 0, false
	}
	s := g.bodyOf(sq)
	if s == nil || !aligned(x, sq) || x.DType != tensor.Float32 {
		return 0, false
	}
	square := s.Kind == "square" || s.Kind == "mul" && sameValue(s.Ins[0], s.Ins[1])
	return float64(b.C), square && sameValue(s.Ins[0], x)
}

// weightAfter finds the one user of y if it multiplies with a constant vector of n numbers.
func (g *graph) weightAfter(y *aten.Value, n int64) (u int, w *aten.Value) {
	u = g.onlyUse(y)
	if u < 0 || len(g.instrs[u].Outs) != 1 {
		return -1, nil
	}
	b := g.instrs[u].Op.Body(g.instrs[u].Args)
	if b == nil || b.Kind != "mul" || !aligned(g.instrs[u].Outs[0], y) {
		return -1, nil
	}
	for k, v := range b.Ins {
		if v.T != nil && v.Dim() == 1 && v.Sizes[0].Int64() == n && v.DType == tensor.Float32 && sameValue(b.Ins[1-k], y) {
			return u, v
		}
	}
	return -1, nil
}
