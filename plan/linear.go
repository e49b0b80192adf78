package plan

import (
	"fmt"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/internal/mmap"
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// linearOp is a product with a packed constant matrix and an epilogue: out [..., N] = x [..., K] * B.
var linearOp = internal(&aten.Op{
	Schema: "plan::linear(Tensor x, Tensor? residual, Linear linear) -> Tensor",
	Shape:  func(a *aten.Args) []aten.Meta { return nil },
	CPU: func(k *aten.Kernel) {
		l := k.V[2].(*linear)
		a := cpu.Matrix{Data: tensor.Data[float32](k.T(0)), Row: l.step, Col: 1}
		cpu.GemmPacked(k.Pool, l.m, a, l.packed, tensor.Data[float32](k.Out[0]), l.n, false, l.kernel(k.OptT(1)))
	},
})

// linear describes a product instruction.
type linear struct {
	epilogue
	m, k, n int
	step    int         // elements between rows of x
	weight  *aten.Value // [K, N]
	packed  *cpu.PackedB
}

// String is "128x768->3072 bias gelu".
func (l *linear) String() string {
	s := fmt.Sprintf("%dx%d->%d", l.m, l.k, l.n)
	if t := l.text(); t != "" {
		s += " " + t
	}
	return s
}

// matmulForm is a product x*w + bias that an instruction computes.
type matmulForm struct {
	x, w *aten.Value // w is [K, N]
	bias *aten.Value
}

// linearForm recognizes linear, mm and addmm.
func linearForm(in *Instr) *matmulForm {
	a := in.Args
	switch in.Op.Name() {
	case "aten.linear.default":
		w := a.Tensor(1)
		if w.Dim() != 2 || w.T == nil {
			return nil
		}
		t := &aten.Value{T: w.T.WithView([]int64{w.T.Sizes()[1], w.T.Sizes()[0]}, []int64{w.T.Strides()[1], w.T.Strides()[0]}, w.T.Offset())}
		t.Meta = aten.MetaOf(t.T)
		return &matmulForm{a.Tensor(0), t, a.OptTensor(2)}
	case "aten.mm.default":
		return &matmulForm{a.Tensor(0), a.Tensor(1), nil}
	case "aten.addmm.default":
		if a.Scalar(3).Float64() != 1 || a.Scalar(4).Float64() != 1 {
			return nil
		}
		return &matmulForm{a.Tensor(1), a.Tensor(2), a.Tensor(0)}
	}
	return nil
}

// lowerLinear is the pass that makes products with constant float32 matrices the planner's own.
func (g *graph) lowerLinear() {
	for i, in := range g.instrs {
		f := linearForm(in)
		if f == nil || f.w.T == nil || f.w.DType != tensor.Float32 || f.w.Conj || f.w.Neg || f.x.DType != tensor.Float32 {
			continue
		}
		out := in.Outs[0]
		k, n := f.w.Sizes[0].Int64(), f.w.Sizes[1].Int64()
		if k == 0 || out.Numel().Int64() == 0 || !covers(out) || !out.IsContiguous() {
			continue
		}
		l := &linear{k: int(k), n: int(n), m: int(out.Numel().Int64() / n), weight: f.w}
		l.cols = l.n
		if f.bias != nil {
			if l.bias = columnConstant(f.bias, out, l.n); l.bias == nil {
				continue
			}
		}
		x, step, ok := rowsOf(f.x)
		if !ok {
			m := f.x.Meta
			m.Strides = aten.ContiguousStrides(m.Sizes)
			x, step = g.fresh(m), k
			g.insert(i, &Instr{Op: copyOp, Args: &aten.Args{Op: copyOp, V: []any{f.x}}, Outs: []*aten.Value{x}})
		}
		l.step = int(step)
		g.set(i, &Instr{Op: linearOp, Args: &aten.Args{Op: linearOp, V: []any{x, nil, l}}, Outs: in.Outs})
	}
}

// rowsOf reports whether x [..., K] is a matrix of rows that lie evenly in memory, and how far apart.
func rowsOf(x *aten.Value) (v *aten.Value, step int64, ok bool) {
	n := x.Dim()
	if n == 0 || x.Conj || x.Neg {
		return x, 0, false
	}
	k := x.Sizes[n-1].Int64()
	if k > 1 && !x.Strides[n-1].Eq(symbolic.N(1)) {
		return x, 0, false
	}
	step = 0
	rows := int64(1)
	for d := n - 2; d >= 0; d-- {
		s, st := x.Sizes[d].Int64(), x.Strides[d].Int64()
		if s == 1 {
			continue
		}
		switch {
		case step == 0:
			step = st
		case st != step*rows:
			return x, 0, false
		}
		rows *= s
	}
	if step == 0 {
		step = k
	}
	return x, step, rows == 1 || step >= k
}

// pack packs the weight; other plans with the same weight share it.
func (l *linear) pack(cache *Cache, scratch *[]float32) {
	l.packed = cache.get("linear "+l.how, func() any {
		mmap.Want(extent(l.weight))
		t := l.weight.T
		b := cpu.Matrix{Data: tensor.Data[float32](t), Row: int(t.Strides()[0]), Col: int(t.Strides()[1])}
		if l.scale != nil {
			w := grow(scratch, l.k*l.n)
			for i := range l.k {
				for j, s := range l.scale {
					w[i*l.n+j] = b.Data[i*b.Row+j*b.Col] * s
				}
			}
			b = cpu.Matrix{Data: w, Row: l.n, Col: 1}
		}
		defer release(l.weight)
		return cpu.PackB(b, l.k, l.n, true)
	}, append([]*aten.Value{l.weight}, l.consts...)...).(*cpu.PackedB)
}
