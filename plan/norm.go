package plan

import (
	"fmt"
	"sync"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// normOp is a layer norm or RMS norm over rows, without the statistics that PyTorch's operator also gives.
var normOp = internal(&aten.Op{
	Schema: "plan::norm(Tensor x, Tensor? weight, Tensor? bias, Norm norm) -> Tensor",
	Shape:  func(a *aten.Args) []aten.Meta { return nil },
	CPU:    func(k *aten.Kernel) { k.V[3].(*norm).run(k) },
})

func init() {
	fusedOps[normOp] = &fused{overwritable: func(a *aten.Args) []*aten.Value { return []*aten.Value{a.Tensor(0)} }}
}

// norm describes a normalization of rows of n elements.
type norm struct {
	rms     bool
	rows, n int
	eps     float32
}

// String is "layer 128x768".
func (m *norm) String() string {
	name := "layer"
	if m.rms {
		name = "rms"
	}
	return fmt.Sprintf("%s %dx%d", name, m.rows, m.n)
}

func (m *norm) run(k *aten.Kernel) {
	x, out := k.T(0), k.Out[0]
	var weight, bias []float32
	if w := k.OptT(1); w != nil {
		weight = tensor.Data[float32](w)[:m.n]
	}
	if b := k.OptT(2); b != nil {
		bias = tensor.Data[float32](b)[:m.n]
	}
	dt := x.DType()
	if dt == tensor.Float32 {
		m.compute(k, tensor.Data[float32](out), tensor.Data[float32](x), weight, bias, m.rows)
		return
	}
	xs, os := tensor.Data[uint16](x), tensor.Data[uint16](out)
	buf := normRows.Get().(*[]float32)
	defer normRows.Put(buf)
	row := grow(buf, m.n)
	for r := range m.rows {
		widen(dt, row, xs[r*m.n:(r+1)*m.n])
		m.compute(k, row, row, weight, bias, 1)
		narrow(dt, os[r*m.n:(r+1)*m.n], row)
	}
}

var normRows = sync.Pool{New: func() any { return new([]float32) }}

func (m *norm) compute(k *aten.Kernel, dst, x, weight, bias []float32, rows int) {
	if m.rms {
		cpu.RMSNormF32(k.Pool, dst, x, weight, rows, m.n, m.eps)
		return
	}
	cpu.LayerNormF32(k.Pool, dst, x, weight, bias, rows, m.n, m.eps, nil, nil)
}

// lowerNorms is the pass that makes norms of contiguous rows the planner's own.
func (g *graph) lowerNorms() {
	for i, in := range g.instrs {
		m := &norm{}
		a := in.Args
		var bias *aten.Value
		switch in.Op.Name() {
		case "aten.native_layer_norm.default":
			if g.statsUsed(in) {
				continue
			}
			bias, m.eps = a.OptTensor(3), float32(a.Float(4))
		case "aten.rms_norm.default":
			eps, ok := a.OptFloat(3)
			if !ok {
				eps = 1.1920928955078125e-07 // what PyTorch takes for float32
			}
			m.rms, m.eps = true, float32(eps)
		default:
			continue
		}
		x, weight, out := a.Tensor(0), a.OptTensor(2), in.Outs[0]
		m.n = 1
		for _, s := range a.I64s(1) {
			m.n *= int(s)
		}
		if !floatDType(x.DType) || out.DType != x.DType || x.Conj || x.Neg || !covers(out) || !out.IsContiguous() || out.Numel().Int64() == 0 {
			continue
		}
		w, okW := float32Vector(weight, m.n)
		b, okB := float32Vector(bias, m.n)
		if !okW || !okB {
			continue
		}
		if !x.IsContiguous() {
			c := x.Meta
			c.Strides = aten.ContiguousStrides(c.Sizes)
			y := g.fresh(c)
			g.insert(i, &Instr{Op: copyOp, Args: &aten.Args{Op: copyOp, V: []any{x}}, Outs: []*aten.Value{y}})
			x = y
		}
		m.rows = int(out.Numel().Int64()) / m.n
		g.set(i, &Instr{Op: normOp, Args: &aten.Args{Op: normOp, V: []any{x, w, b, m}}, Outs: in.Outs[:1]})
	}
}

// float32Vector gives a weight of n numbers in the form that kernels read: contiguous, float32; constants are converted. ok is false if
// that is not possible.
func float32Vector(v *aten.Value, n int) (f any, ok bool) {
	switch {
	case v == nil:
		return nil, true
	case v.T != nil && floatDType(v.DType):
		t, err := tensor.FromSlice(floats(v), int64(n))
		return aten.FromTensor(t), err == nil
	case v.DType == tensor.Float32 && v.IsContiguous() && !v.Conj && !v.Neg:
		return v, true
	}
	return nil, false
}
