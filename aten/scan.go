package aten

import (
	"math"

	"github.com/pt2go/pt2/tensor"
)

// scanOps accumulate along a dimension.
var scanOps = []Op{
	{Schema: "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", Tags: Core, Shape: shapeScan, CPU: func(k *Kernel) {
		scanKernel(k, scanFns{i: func(a, x int64) int64 { return a + x }, f: func(a, x float64) float64 { return a + x }, c: func(a, x complex128) complex128 { return a + x }})
	}},
	{Schema: "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", Shape: shapeScan, CPU: func(k *Kernel) {
		scanKernel(k, scanFns{i: func(a, x int64) int64 { return a * x }, f: func(a, x float64) float64 { return a * x }, c: func(a, x complex128) complex128 { return a * x }})
	}},
	{Schema: "logcumsumexp(Tensor self, int dim) -> Tensor", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		WrapDim(a.I64(1), x.Dim())
		if !x.DType.IsComplex() {
			mustFloat("logcumsumexp_out_cpu", x.DType)
		}
		return []Meta{Contig(x.DType, x.Sizes...)}
	}, CPU: func(k *Kernel) {
		scanKernel(k, scanFns{f: func(a, x float64) float64 {
			if math.IsInf(a, 0) && a == x {
				return x
			}
			return math.Max(a, x) + math.Log1p(math.Exp(-math.Abs(a-x)))
		}, c: logAddExp})
	}},
	{Schema: "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", Shape: shapeCumExtreme, CPU: func(k *Kernel) { cumExtreme(k, func(x, best float64) bool { return x >= best }) }},
	{Schema: "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", Shape: shapeCumExtreme, CPU: func(k *Kernel) { cumExtreme(k, func(x, best float64) bool { return x <= best }) }},
	{Schema: "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		if x.Dim() == 0 {
			Fail("diff expects input to be at least one-dimensional")
		}
		d := WrapDim(a.I64(2), x.Dim())
		if a.I64(1) == 0 { // what would be joined does not count then
			return One(b.Call("clone", x))
		}
		if a.Has(3) || a.Has(4) {
			var parts []*Value
			if p := a.OptTensor(3); p != nil {
				parts = append(parts, p)
			}
			parts = append(parts, x)
			if p := a.OptTensor(4); p != nil {
				parts = append(parts, p)
			}
			x = b.Call("cat", parts, d)
		}
		for range min(a.I64(1), x.Sizes[d].Int64()) {
			n := x.Sizes[d]
			hi, lo := b.Call("slice.Tensor", x, d, 1, n), b.Call("slice.Tensor", x, d, 0, n.SubN(1))
			if x.DType == tensor.Bool {
				x = b.Call("logical_xor", hi, lo)
			} else {
				x = b.Call("sub.Tensor", hi, lo)
			}
		}
		return One(x)
	}},
}

func shapeScan(a *Args) []Meta {
	x := a.Tensor(0)
	WrapDim(a.I64(1), x.Dim())
	return []Meta{Contig(a.DType(2, SumType(x.DType)), x.Sizes...)}
}

func shapeCumExtreme(a *Args) []Meta {
	x := a.Tensor(0)
	WrapDim(a.I64(1), x.Dim())
	if x.DType.IsComplex() {
		FailAs("NotImplementedError", "\"%s\" not implemented for '%s'", a.Op.schema.Base, x.DType.CPPName())
	}
	return []Meta{Contig(x.DType, x.Sizes...), Contig(tensor.Int64, x.Sizes...)}
}

type scanFns struct {
	i func(a, x int64) int64
	f func(a, x float64) float64
	c func(a, x complex128) complex128
}

func scanKernel(k *Kernel, f scanFns) {
	x, out := k.T(0), k.Out[0]
	if x.Numel() == 0 {
		return
	}
	if x.Dim() == 0 {
		Copy(k.Pool, out, x)
		return
	}
	d := WrapDim(k.I64(1), x.Dim())
	switch dt := out.DType(); {
	case dt.IsComplex():
		eachRow(k, x, out, d, KC128, func(dst, src Block) { accumulate(As[complex128](dst), As[complex128](src), f.c) })
	case dt.IsFloat():
		eachRow(k, x, out, d, KF64, func(dst, src Block) { accumulate(As[float64](dst), As[float64](src), f.f) })
	default:
		eachRow(k, x, out, d, KI64, func(dst, src Block) { accumulate(As[int64](dst), As[int64](src), f.i) })
	}
}

func accumulate[T any](d, x []T, f func(a, x T) T) {
	acc := x[0]
	d[0] = acc
	for i := 1; i < len(x); i++ {
		acc = f(acc, x[i])
		d[i] = acc
	}
}

// cumExtreme keeps the last of equal extrema; NaN stays once it is met.
func cumExtreme(k *Kernel, wins func(x, best float64) bool) {
	x, val, idx := k.T(0), k.Out[0], k.Out[1]
	if x.Numel() == 0 {
		return
	}
	if x.Dim() == 0 {
		Copy(k.Pool, val, x)
		tensor.Data[int64](idx)[0] = 0
		return
	}
	d := WrapDim(k.I64(1), x.Dim())
	pass := func(out *tensor.Tensor, kind Kind, put func(dst Block, i, best int, v []float64)) {
		eachRow(&Kernel{Args: k.Args}, x, out, d, kind, func(dst, src Block) {
			v := make([]float64, src.n)
			if kind == KF64 {
				copy(v, As[float64](src))
			} else {
				for i, e := range As[int64](src) {
					v[i] = float64(e)
				}
			}
			best := 0
			for i := range v {
				if v[best] == v[best] && (v[i] != v[i] || wins(v[i], v[best])) || v[i] != v[i] {
					best = i
				}
				put(dst, i, best, v)
			}
		})
	}
	pass(val, KF64, func(dst Block, i, best int, v []float64) { As[float64](dst)[i] = v[best] })
	wideX := tensor.New(tensor.Float64, x.Sizes()...)
	Copy(k.Pool, wideX, x)
	eachRow(&Kernel{Args: k.Args}, wideX, idx, d, KF64, func(dst, src Block) {
		v := As[float64](src)
		o := As[float64](dst)
		best := 0
		for i := range v {
			if v[best] == v[best] && (v[i] != v[i] || wins(v[i], v[best])) || v[i] != v[i] {
				best = i
			}
			o[i] = float64(best)
		}
	})
}
