package aten

import (
	"math"
	"sync"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// GELUForm is a way to compute gelu. The forms are one function but at the end of float32's range.
type GELUForm uint8

// The forms.
const (
	GELUHalfFirst     GELUForm = iota // (x/2) * (1 + erf(x/sqrt 2)): PyTorch's own kernel
	GELUOneDNN                        // oneDNN's: +Inf from half the largest number on, NaN of +Inf
	GELUHalfLast                      // (x * (1 + erf(x/sqrt 2))) / 2, as it may be written out: +Inf from half the largest number on
	GELUTanhHalfFirst                 // the approximation by tanh
	GELUTanhHalfLast                  // the same, as it may be written out
	numGELUForms
)

var geluRows = [numGELUForms]struct {
	kind string // of the Body
	act  cpu.ActKind
	f    func(d, x []float32)
}{
	{"gelu", cpu.ActGELU, cpu.GELUF32},
	{"gelu", cpu.ActGELUOneDNN, cpu.GELUOneDNNF32},
	{"gelu", cpu.ActGELUHalfLast, cpu.GELUHalfLastF32},
	{"gelu_tanh", cpu.ActGELUTanh, cpu.GELUTanhF32},
	{"gelu_tanh", cpu.ActGELUTanhHalfLast, cpu.GELUTanhHalfLastF32},
}

// geluOps are the declared operator.
var geluOps = []Op{{
	Schema: "gelu(Tensor self, *, str approximate='none') -> Tensor",
	Tags:   Core | Pointwise,
	Shape:  shapeSame,
	CPU:    func(k *Kernel) { geluKernel(k, GELUFormOf(k.Args)) },
	Note:   "one element and what is not contiguous end in +Inf, the rest as oneDNN has it, as in PyTorch",
}}

// GELUFormOf is the form that PyTorch takes for a call of gelu: the exact function of more than one element that lie in a row is
// oneDNN's, but for float64.
func GELUFormOf(a *Args) GELUForm {
	x := a.Tensor(0)
	switch a.Str(1) {
	case "tanh":
		return GELUTanhHalfFirst
	case "none":
	default:
		Fail("approximate argument must be either none or tanh.")
	}
	if x.DType == tensor.Float64 || !x.IsContiguous() || x.Numel().Le(symbolic.N(1)) {
		return GELUHalfFirst
	}
	return GELUOneDNN
}

// GELU is the operator gelu that takes one form, whatever the layout of its argument.
func GELU(form GELUForm) *Op { return geluOfForm()[form] }

var geluOfForm = sync.OnceValue(func() (ops [numGELUForms]*Op) {
	for form := range numGELUForms {
		op := &Op{
			Schema: geluOps[0].Schema, Tags: Pointwise, Shape: shapeSame,
			CPU:  func(k *Kernel) { geluKernel(k, form) },
			body: func(a *Args) *Body { return geluBody(a.Tensor(0), form) },
		}
		if err := op.init(); err != nil {
			panic(err) // the declared entry is malformed: every test finds this
		}
		ops[form] = op
	}
	return ops
})

func geluBody(x *Value, form GELUForm) *Body {
	row := geluRows[form]
	b := body1(row.kind, x, row.f)
	b.Act.Kind = row.act
	return b
}

func geluKernel(k *Kernel, form GELUForm) {
	f := geluErf
	if geluRows[form].act == cpu.ActGELUTanh || geluRows[form].act == cpu.ActGELUTanhHalfLast {
		f = geluTanh
	}
	f.F32 = geluRows[form].f
	k.Map1(f, k.T(0))
}

var geluErf = real1(func(x float64) float64 { return 0.5 * x * (1 + math.Erf(x*math.Sqrt2/2)) })

var geluTanh = real1(func(x float64) float64 {
	const c = 0.7978845608028654 // sqrt(2/pi)
	return 0.5 * x * (1 + math.Tanh(c*(x+0.044715*x*x*x)))
})
