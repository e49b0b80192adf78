package plan

import (
	"fmt"
	"strings"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// epilogue is what happens to the columns (output channels) of a convolution or product after the sum: y*scale + bias, then a residual
// and an activation. scale goes into the packed weight.
type epilogue struct {
	cols     int
	scale    []float32 // nil: 1
	bias     []float32 // nil: 0
	act      cpu.Activation
	actFirst bool // act(y) + residual rather than act(y + residual)
	residual bool
	// consts and how tell what scale came from, for the cache of packed weights.
	consts []*aten.Value
	how    string
}

// kernel is the epilogue of one call.
func (e *epilogue) kernel(residual *tensor.Tensor) *cpu.Epilogue {
	if e.bias == nil && residual == nil && e.act.Kind == cpu.ActNone {
		return nil
	}
	ep := &cpu.Epilogue{ColBias: e.bias, Act: e.act, ActFirst: e.actFirst}
	if residual != nil {
		ep.Residual, ep.ResidualStep = tensor.Data[float32](residual), e.cols
	}
	return ep
}

// text describes the epilogue in a printed plan.
func (e *epilogue) text() string {
	var parts []string
	if e.scale != nil {
		parts = append(parts, "scale")
	}
	if e.bias != nil {
		parts = append(parts, "bias")
	}
	act := ""
	if e.act.Kind != cpu.ActNone {
		act = actNames[e.act.Kind]
		if e.act.Kind == cpu.ActClamp {
			act = fmt.Sprintf("clamp(%g, %g)", e.act.Lo, e.act.Hi)
		}
	}
	switch {
	case e.residual && e.actFirst:
		parts = append(parts, act, "residual")
	case e.residual:
		parts = append(parts, "residual", act)
	default:
		parts = append(parts, act)
	}
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, " ")
}

var actNames = map[cpu.ActKind]string{
	cpu.ActReLU: "relu", cpu.ActClamp: "clamp", cpu.ActLeakyReLU: "leaky_relu", cpu.ActELU: "elu", cpu.ActHardSwish: "hardswish",
	cpu.ActHardSigmoid: "hardsigmoid", cpu.ActSigmoid: "sigmoid", cpu.ActSiLU: "silu", cpu.ActTanh: "tanh", cpu.ActMish: "mish",
	cpu.ActGELU: "gelu", cpu.ActGELUOneDNN: "gelu", cpu.ActGELUHalfLast: "gelu", cpu.ActGELUTanh: "gelu_tanh", cpu.ActGELUTanhHalfLast: "gelu_tanh",
}

// affine multiplies and shifts the columns of what is there so far; it is only possible before a residual and an activation.
func (e *epilogue) affine(scale, shift []float32) {
	if scale != nil {
		s := make([]float32, e.cols)
		for i := range s {
			s[i] = scale[i]
			if e.scale != nil {
				s[i] *= e.scale[i]
			}
		}
		e.scale = s
	}
	if scale == nil && shift == nil || e.bias == nil && shift == nil {
		return
	}
	b := make([]float32, e.cols)
	for i := range b {
		if e.bias != nil {
			b[i] = e.bias[i]
			if scale != nil {
				b[i] *= scale[i]
			}
		}
		if shift != nil {
			b[i] += shift[i]
		}
	}
	e.bias = b
}

// plain reports that columns are still linear in the sum.
func (e *epilogue) plain() bool { return e.act.Kind == cpu.ActNone && !e.residual }

// product is a convolution or matrix product of the planner's own: its last but one argument is the residual, its last one the
// description that has the epilogue.
type productSpec interface {
	ep() *epilogue
	fmt.Stringer
}

func (e *epilogue) ep() *epilogue { return e }

// productOf gives the description of a convolution or product instruction; nil for other instructions.
func productOf(in *Instr) *epilogue {
	if in == nil || (in.Op != convOp && in.Op != linearOp) {
		return nil
	}
	return in.Args.V[len(in.Args.V)-1].(productSpec).ep()
}

// fuseEpilogues is the pass that takes element-by-element instructions into the products before them.
func (g *graph) fuseEpilogues() {
	for i := range g.instrs {
		at := i
		for at >= 0 {
			at = g.fuseNext(at)
		}
	}
}

// fuseNext takes the one user of the product at i into it, if it can; it gives the product's new place, or -1.
func (g *graph) fuseNext(i int) int {
	in := g.instrs[i]
	e := productOf(in)
	if e == nil {
		return -1
	}
	y := in.Outs[0]
	j := g.onlyUse(y)
	if j < 0 || len(g.instrs[j].Outs) != 1 || !g.movable(i, j) {
		return -1
	}
	user := g.instrs[j]
	out := user.Outs[0]
	if bufferOf(out).Kind != Temp && bufferOf(out).Kind != Output || !covers(out) || out.DType != tensor.Float32 || user.zero {
		return -1
	}
	b := user.Op.Body(user.Args)
	if b == nil {
		return -1
	}
	self := -1
	for k, v := range b.Ins {
		if v.T == nil && bufferOf(v) == bufferOf(y) {
			if !covers(v) || !aligned(v, out) || self >= 0 {
				return -1
			}
			self = k
		}
	}
	if self < 0 || !e.apply(g, b, self, out, in, i, j) {
		return -1
	}
	g.remove(j)
	g.remove(i)
	g.set(j, &Instr{Op: in.Op, Args: in.Args, Outs: user.Outs})
	return j
}

// apply adds a function of the product's result to the epilogue; false if it does not fit there. in, at place i, is going to run at j.
func (e *epilogue) apply(g *graph, b *aten.Body, self int, out *aten.Value, in *Instr, i, j int) bool {
	switch {
	case len(b.Ins) == 1 && b.Act.Kind != cpu.ActNone:
		if e.act.Kind != cpu.ActNone {
			return false
		}
		e.act = b.Act
		return true
	case len(b.Ins) == 1 && e.plain() && b.Kind == "add_c":
		e.affine(nil, repeat(b.C, e.cols))
		return true
	case len(b.Ins) == 1 && e.plain() && (b.Kind == "mul_c" || b.Kind == "div_c"):
		c := b.C
		if b.Kind == "div_c" {
			c = 1 / c
		}
		e.affine(repeat(c, e.cols), nil)
		e.how += fmt.Sprintf("*%g", c)
		return true
	case len(b.Ins) != 2:
		return false
	}
	other := b.Ins[1-self]
	if col := columnConstant(other, out, e.cols); col != nil && e.plain() {
		switch b.Kind {
		case "add":
			e.affine(nil, col)
			return true
		case "mul":
			e.affine(col, nil)
			e.consts, e.how = append(e.consts, other), e.how+"*"
			return true
		}
	}
	if b.Kind != "add" || e.residual || other.DType != tensor.Float32 || !aligned(other, out) || other.Conj || other.Neg {
		return false
	}
	if !g.ready(other, j) {
		return false
	}
	e.residual, e.actFirst = true, e.act.Kind != cpu.ActNone
	in.Args.V[1] = other
	return true
}

// ready reports that v has its value before instruction j, which always holds for what j itself reads.
func (g *graph) ready(v *aten.Value, j int) bool {
	if v.T != nil {
		return true
	}
	for _, w := range bufferOf(v).writers {
		if w >= j {
			return false
		}
	}
	return true
}

func repeat(c float32, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = c
	}
	return v
}

// columnConstant gives a constant that has one number for each of the n columns of out (its innermost elements in memory), or one for
// all; nil if v is something else.
func columnConstant(v, out *aten.Value, n int) []float32 {
	if v.T == nil || v.DType != tensor.Float32 || v.Conj || v.Neg || v.Dim() > out.Dim() {
		return nil
	}
	if v.Numel().Int64() == 1 {
		return repeat(float32(v.T.Float(0)), n)
	}
	if v.Numel().Int64() != int64(n) {
		return nil
	}
	st := broadcastStrides(v, out)
	size := int64(1)
	for _, d := range memoryOrder(out) {
		if st[d] == 0 {
			break
		}
		if st[d] != size {
			return nil
		}
		size *= out.Sizes[d].Int64()
	}
	if size != int64(n) {
		return nil
	}
	return tensor.Data[float32](v.T)[:n]
}
