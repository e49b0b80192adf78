package aten

import (
	"math"
	"math/cmplx"
	"unsafe"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// reductionOps fold dimensions away.
var reductionOps = []Op{
	{Schema: "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", Tags: Core, Shape: shapeSum(1, 2, 3), CPU: func(k *Kernel) { sumDims(k, k.I64s(1), false) }},
	{Schema: "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("sum.dim_IntList", a.Tensor(0), nil, false, Kw("dtype", a.V[1])))
	}},
	{Schema: "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		if x.DType.IsFloat() {
			x = b.Call("where.self", b.Call("isnan", x), b.Call("scalar_tensor", 0.0, Kw("dtype", x.DType)), x)
		}
		return One(b.Call("sum.dim_IntList", x, a.V[1], a.V[2], Kw("dtype", a.V[3])))
	}},
	{Schema: "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", Tags: Core, Shape: func(a *Args) []Meta {
		dt := a.DType(3, a.Tensor(0).DType)
		if !dt.IsFloat() && !dt.IsComplex() {
			FailAs("NotImplementedError", "mean(): could not infer output dtype. %s dtype must be either a floating point or complex dtype. Got: %s", pick(a.Has(3), "Optional", "Input"), dt.CPPName())
		}
		return []Meta{reducedMeta(a.Tensor(0), a.I64s(1), a.Bool(2), dt)}
	}, CPU: func(k *Kernel) { sumDims(k, k.I64s(1), true) }},
	{Schema: "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", Tags: Core, Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("mean.dim", a.Tensor(0), nil, false, Kw("dtype", a.V[1])))
	}},
	{Schema: "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", Tags: Core, Shape: func(a *Args) []Meta {
		return []Meta{reducedMeta(a.Tensor(0), []int64{a.I64(1)}, a.Bool(2), a.DType(3, SumType(a.Tensor(0).DType)))}
	}, CPU: func(k *Kernel) { reduceDims(k, []int64{k.I64(1)}, prodRow) }},
	{Schema: "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", Tags: Core, Shape: func(a *Args) []Meta {
		return []Meta{Contig(a.DType(1, SumType(a.Tensor(0).DType)))}
	}, CPU: func(k *Kernel) { reduceDims(k, nil, prodRow) }},
	{Schema: "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", Tags: Core, Shape: shapeExtreme, CPU: func(k *Kernel) { extremeDims(k, k.I64s(1), true) }},
	{Schema: "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", Tags: Core, Shape: shapeExtreme, CPU: func(k *Kernel) { extremeDims(k, k.I64s(1), false) }},
	{Schema: "max(Tensor self) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("amax", a.Tensor(0))) }},
	{Schema: "min(Tensor self) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("amin", a.Tensor(0))) }},
	{Schema: "_aminmax(Tensor self) -> (Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value { return b.CallN("aminmax", a.Tensor(0)) }},
	{Schema: "_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value {
		return b.CallN("aminmax", a.Tensor(0), Kw("dim", a.V[1]), Kw("keepdim", a.V[2]))
	}},
	{Schema: "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", Decomp: func(b *Build, a *Args) []*Value {
		dims := []symbolic.Int{}
		if d, ok := a.OptInt(1); ok {
			dims = append(dims, d)
		}
		return []*Value{b.Call("amin", a.Tensor(0), dims, a.V[2]), b.Call("amax", a.Tensor(0), dims, a.V[2])}
	}},
	{Schema: "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", Tags: Core, Shape: shapeWithIndex, CPU: func(k *Kernel) { extremeDim(k, true) }},
	{Schema: "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", Tags: Core, Shape: shapeWithIndex, CPU: func(k *Kernel) { extremeDim(k, false) }},
	{Schema: "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", Tags: Core, Shape: shapeArg, CPU: func(k *Kernel) { argKernel(k, true) }},
	{Schema: "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", Tags: Core, Shape: shapeArg, CPU: func(k *Kernel) { argKernel(k, false) }},
	{Schema: "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", Tags: Core, Shape: shapeAny, CPU: reduceKernel(1, anyRow)},
	{Schema: "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", Tags: Core, Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("any.dims", a.Tensor(0), []symbolic.Int{a.Int(1)}, a.V[2]))
	}},
	{Schema: "any(Tensor self) -> Tensor", Tags: Core, Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("any.dims", a.Tensor(0))) }},
	{Schema: "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", Shape: shapeAny, CPU: reduceKernel(1, allRow)},
	{Schema: "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("all.dims", a.Tensor(0), []symbolic.Int{a.Int(1)}, a.V[2]))
	}},
	{Schema: "all(Tensor self) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("all.dims", a.Tensor(0))) }},
	{Schema: "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", Tags: Core, Shape: shapeVar, CPU: func(k *Kernel) { varKernel(k, k.I64s(1), k.V[2], false) }},
	{Schema: "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", Shape: shapeVar, CPU: func(k *Kernel) { varKernel(k, k.I64s(1), k.V[2], true) }},
	{Schema: "var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", Tags: Core, Decomp: unbiased("var.correction")},
	{Schema: "std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", Decomp: unbiased("std.correction")},
	{Schema: "var(Tensor self, bool unbiased=True) -> Tensor", Decomp: unbiasedAll("var.correction")},
	{Schema: "std(Tensor self, bool unbiased=True) -> Tensor", Decomp: unbiasedAll("std.correction")},
	{Schema: "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)", Decomp: withMean("var.correction")},
	{Schema: "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)", Decomp: withMean("std.correction")},
	{Schema: "var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)", Decomp: withMeanDim("var.dim")},
	{Schema: "std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)", Decomp: withMeanDim("std.dim")},
	{Schema: "var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value {
		return []*Value{b.Call("var", a.Tensor(0), a.V[1]), b.Call("mean", a.Tensor(0))}
	}},
	{Schema: "std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value {
		return []*Value{b.Call("std", a.Tensor(0), a.V[1]), b.Call("mean", a.Tensor(0))}
	}},
	{Schema: "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		if x.DType.IsIntegral() {
			x = b.Call("_to_copy", x, Kw("dtype", tensor.Float32))
		}
		if x.Numel().Eq(symbolic.N(0)) {
			return One(b.Call("log", b.Call("sum.dim_IntList", b.Call("exp", x), a.V[1], a.V[2])))
		}
		m := x
		if x.DType.IsComplex() {
			m = b.Call("real", x)
		}
		m = b.Call("amax", m, a.V[1], true)
		m = b.Call("masked_fill.Scalar", m, b.Call("eq.Scalar", b.Call("abs", m), FloatS(math.Inf(1))), 0)
		s := b.Call("log", b.Call("sum.dim_IntList", b.Call("exp", b.Call("sub.Tensor", x, m)), a.V[1], true))
		r := b.Call("add.Tensor", s, m)
		if !a.Bool(2) {
			r = squeezeDims(b, r, a.I64s(1))
		}
		return One(r)
	}},
	{Schema: "special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("logsumexp", a.V...)) }},
	{Schema: "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("sum.dim_IntList", b.Call("ne.Scalar", a.Tensor(0), 0), a.V[1]))
	}},
	{Schema: "count_nonzero(Tensor self, int? dim=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		var dims any
		if d, ok := a.OptInt(1); ok {
			dims = []symbolic.Int{d}
		}
		return One(b.Call("sum.dim_IntList", b.Call("ne.Scalar", a.Tensor(0), 0), dims))
	}},
	{Schema: "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", Shape: func(a *Args) []Meta {
		dt := a.DType(4, a.Tensor(0).DType)
		if dt.IsIntegral() {
			Fail("linalg.vector_norm: Expected a floating point or complex tensor as input. Got %s", dt.CPPName())
		}
		return []Meta{reducedMeta(a.Tensor(0), a.I64s(2), a.Bool(3), dt.Real())}
	}, CPU: func(k *Kernel) {
		p := k.Scalar(1).Float64()
		reduceDims(k, k.I64s(2), func(in Block, kind Kind, out unsafe.Pointer, outKind Kind) { normRow(in, kind, out, outKind, p) })
	}},
	{Schema: "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("linalg_vector_norm", a.Tensor(0), orTwo(a, 1), a.V[2], a.V[3]))
	}},
	{Schema: "norm.Scalar(Tensor self, Scalar p=2) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("linalg_vector_norm", a.Tensor(0), a.V[1]))
	}},
	{Schema: "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("linalg_vector_norm", a.Tensor(0), orTwo(a, 1), nil, false, Kw("dtype", a.V[2])))
	}},
	{Schema: "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("linalg_vector_norm", a.Tensor(0), orTwo(a, 1), a.V[2], a.V[3], Kw("dtype", a.V[4])))
	}},
	{Schema: "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("linalg_vector_norm", a.Tensor(0), 2, a.V[1], a.V[2]))
	}},
}

func orTwo(a *Args, i int) Scalar {
	if s, ok := a.OptScalar(i); ok {
		return s
	}
	return IntS(2)
}

func squeezeDims(b *Build, v *Value, dims []int64) *Value {
	if len(dims) == 0 {
		dims = make([]int64, v.Dim())
		for i := range dims {
			dims[i] = int64(i)
		}
	}
	return b.Call("squeeze.dims", v, dims)
}

func unbiased(name string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value {
		return One(b.Call(name, a.Tensor(0), a.V[1], Kw("correction", pick(a.Bool(2), 1, 0)), Kw("keepdim", a.V[3])))
	}
}

func unbiasedAll(name string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value {
		return One(b.Call(name, a.Tensor(0), nil, Kw("correction", pick(a.Bool(1), 1, 0))))
	}
}

func withMean(name string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value {
		return []*Value{b.Call(name, a.Tensor(0), a.V[1], Kw("correction", a.V[2]), Kw("keepdim", a.V[3])), b.Call("mean.dim", a.Tensor(0), a.V[1], a.V[3])}
	}
}

func withMeanDim(name string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value {
		return []*Value{b.Call(name, a.V...), b.Call("mean.dim", a.Tensor(0), a.V[1], a.V[3])}
	}
}

// reducedMeta is the Meta of a reduction over dims (all if none), which are kept with size 1 or dropped: fresh row-major memory,
// whatever the input's layout.
func reducedMeta(x *Value, dims []int64, keep bool, dt tensor.DType) Meta {
	gone := make([]bool, x.Dim())
	for _, d := range WrapDims(dims, x.Dim()) {
		gone[d] = true
	}
	sizes := make([]symbolic.Int, 0, x.Dim())
	for d, s := range x.Sizes {
		switch {
		case !gone[d]:
			sizes = append(sizes, s)
		case keep:
			sizes = append(sizes, symbolic.N(1))
		}
	}
	return Contig(dt, sizes...)
}

func shapeSum(dim, keep, dtype int) func(a *Args) []Meta {
	return func(a *Args) []Meta {
		x := a.Tensor(0)
		return []Meta{reducedMeta(x, a.I64s(dim), a.Bool(keep), a.DType(dtype, SumType(x.DType)))}
	}
}

func shapeExtreme(a *Args) []Meta {
	x := a.Tensor(0)
	if x.DType.IsComplex() {
		FailAs("NotImplementedError", "\"%s\" not implemented for '%s'", a.Op.schema.Base, x.DType.CPPName())
	}
	dims := a.I64s(1)
	refuseEmpty(x, dims, a.Op.schema.Base)
	return []Meta{reducedMeta(x, dims, a.Bool(2), x.DType)}
}

// refuseEmpty refuses to take an extremum over nothing.
func refuseEmpty(x *Value, dims []int64, name string) {
	for _, d := range WrapDims(dims, x.Dim()) {
		if x.Sizes[d].Eq(symbolic.N(0)) {
			if len(dims) == 0 {
				Fail("%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.", name)
			}
			FailIndex("%s(): Expected reduction dim %d to have non-zero size.", name, d)
		}
	}
}

func shapeAny(a *Args) []Meta {
	x := a.Tensor(0)
	dt := tensor.Bool
	if x.DType == tensor.Uint8 {
		dt = tensor.Uint8
	}
	return []Meta{reducedMeta(x, a.I64s(1), a.Bool(2), dt)}
}

func shapeVar(a *Args) []Meta {
	x := a.Tensor(0)
	if x.DType.IsIntegral() {
		Fail("%s only support floating point and complex dtypes", a.Op.schema.Base)
	}
	return []Meta{reducedMeta(x, a.I64s(1), a.Bool(3), x.DType.Real())}
}

func shapeWithIndex(a *Args) []Meta {
	x := a.Tensor(0)
	if x.DType.IsComplex() {
		FailAs("NotImplementedError", "\"%s\" not implemented for '%s'", a.Op.schema.Base, x.DType.CPPName())
	}
	d := []int64{a.I64(1)}
	if x.Dim() > 0 {
		refuseEmpty(x, d, a.Op.schema.Base)
	}
	v := reducedMeta(x, d, a.Bool(2), x.DType)
	v.Strides = ContiguousStrides(v.Sizes)
	i := v
	i.DType = tensor.Int64
	return []Meta{v, i}
}

func shapeArg(a *Args) []Meta {
	x := a.Tensor(0)
	d, ok := a.OptInt(1)
	if !ok {
		if x.Numel().Eq(symbolic.N(0)) {
			FailIndex("%s(): Expected reduction dim to be specified for input.numel() == 0.", a.Op.schema.Base)
		}
		m := reducedMeta(x, nil, a.Bool(2), tensor.Int64)
		return []Meta{m}
	}
	refuseEmpty(x, []int64{d.Int64()}, a.Op.schema.Base)
	return []Meta{reducedMeta(x, []int64{d.Int64()}, a.Bool(2), tensor.Int64)}
}

// rowFunc folds a block of elements of kind into one value of outKind at out.
type rowFunc func(in Block, kind Kind, out unsafe.Pointer, outKind Kind)

func reduceKernel(dimArg int, f rowFunc) func(k *Kernel) {
	return func(k *Kernel) { reduceDims(k, k.I64s(dimArg), f) }
}

// reduceDims folds x along dims (all if none) into Out[0], one output element at a time, over a gathered block of its inputs.
func reduceDims(k *Kernel, dims []int64, f rowFunc) {
	if k.Out[0].Numel() > 0 {
		reduceRows(k, newReduction(k, dims), f)
	}
}

// sumDims is [reduceDims] for sums and means.
func sumDims(k *Kernel, dims []int64, mean bool) {
	if k.Out[0].Numel() == 0 {
		return
	}
	f := sumRow
	if mean {
		f = meanRow
	}
	if r := newReduction(k, dims); !sumColumns(k, r, mean) && !sumLines(k, r, mean) {
		reduceRows(k, r, f)
	}
}

// sumLines serves float32 sums and means of elements that lie side by side. It reports whether it did.
func sumLines(k *Kernel, r *reduction, mean bool) bool {
	x, out, n := r.x, r.out, r.inIt.N
	if x.DType() != tensor.Float32 || out.DType() != tensor.Float32 || n == 0 || !r.inIt.contig(0) {
		return false
	}
	div := float32(1)
	if mean {
		div = float32(n)
	}
	xd, od := tensor.Data[float32](x), tensor.Data[float32](out)
	step, ostep := r.outIt.Strides[1][0], r.outIt.Strides[0][0]
	k.Pool.ParallelFor(int(r.outIt.N), max(1, grain/int(n)), func(lo, hi int) {
		r.outIt.Rows(int64(lo), int64(hi), func(off []int64, m int64) {
			for i := range m {
				at := off[1] + i*step
				od[off[0]+i*ostep] = cpu.SumF32(xd[at:at+n]) / div
			}
		})
	})
	return true
}

// reduction walks the elements that one output stands for, and the outputs.
type reduction struct {
	x, out        *tensor.Tensor
	inIt          *Iter // over the dimensions that go
	outIt         *Iter // over those that stay: of out, of x
	kind, outKind Kind
}

func newReduction(k *Kernel, dims []int64) *reduction {
	x, out := k.T(0), k.Out[0]
	gone := make([]bool, x.Dim())
	for _, d := range WrapDims(dims, x.Dim()) {
		gone[d] = true
	}
	keepX, keepOut, inner := split(x, out, gone)
	return &reduction{x: x, out: out, inIt: NewIter(inner.Sizes(), inner), outIt: NewIter(keepX.Sizes(), keepOut, keepX),
		kind: reduceKind(x.DType(), out.DType()), outKind: KindOf(out.DType())}
}

func reduceRows(k *Kernel, r *reduction, f rowFunc) {
	x, out, inIt, outIt, kind, outKind := r.x, r.out, r.inIt, r.outIt, r.kind, r.outKind
	xb, ob := base(x), base(out)
	xsize, osize := int64(x.DType().Size()), int64(out.DType().Size())
	if inIt.N == 0 {
		xb = unsafe.Pointer(&x) // never read
	}
	k.Pool.ParallelFor(int(outIt.N), max(1, grain/int(max(inIt.N, 1))), func(lo, hi int) {
		buf := tensor.AlignedBytes(max(1, int(inIt.N)*kindSize[kind]))
		var res [2]uint64
		outIt.Rows(int64(lo), int64(hi), func(off []int64, m int64) {
			for i := range m {
				src := unsafe.Add(xb, (off[1]+i*outIt.Strides[1][0])*xsize)
				b := Block{unsafe.Pointer(&buf[0]), int(inIt.N)}
				if inIt.contig(0) && kind.native(x.DType()) && kind != KBool && inIt.N > 0 {
					b.p = src
				} else {
					pos := 0
					inIt.Rows(0, inIt.N, func(o []int64, n int64) {
						loadRow(unsafe.Add(b.p, pos*kindSize[kind]), kind, unsafe.Add(src, o[0]*xsize), x.DType(), inIt.Strides[0][0], int(n))
						pos += int(n)
					})
				}
				f(b, kind, unsafe.Pointer(&res), outKind)
				storeRow(unsafe.Add(ob, (off[0]+i*outIt.Strides[0][0])*osize), out.DType(), 1, unsafe.Pointer(&res), outKind, 1)
			}
		})
	})
}

// sumColumns serves float32 sums and means over outer dimensions, where gathering element by element would jump through memory:
// it adds whole rows. It reports whether it did.
func sumColumns(k *Kernel, r *reduction, mean bool) bool {
	x, out, inIt, outIt := r.x, r.out, r.inIt, r.outIt
	if x.DType() != tensor.Float32 || out.DType() != tensor.Float32 || inIt.N < 2 {
		return false
	}
	if outIt.Strides[1][0] != 1 || outIt.Strides[0][0] != 1 || outIt.Sizes[0] < 16 || inIt.Strides[0][0] == 1 {
		return false
	}
	scale := 1.0
	if mean {
		scale = 1 / float64(inIt.N)
	}
	xd, od := tensor.Data[float32](x), tensor.Data[float32](out)
	k.Pool.ParallelFor(int(outIt.N), max(16, grain/int(inIt.N)), func(lo, hi int) {
		acc := make([]float64, min(int64(hi-lo), outIt.Sizes[0]))
		outIt.Rows(int64(lo), int64(hi), func(off []int64, n int64) {
			acc := acc[:n]
			clear(acc)
			inIt.Rows(0, inIt.N, func(o []int64, m int64) {
				for i := range m {
					at := off[1] + o[0] + i*inIt.Strides[0][0]
					for j, v := range xd[at : at+n] {
						acc[j] += float64(v)
					}
				}
			})
			for j, v := range acc {
				od[off[0]+int64(j)] = float32(v * scale)
			}
		})
	})
	return true
}

// split separates the dimensions that stay from those that go: views of x and out over the former, of x over the latter.
func split(x, out *tensor.Tensor, gone []bool) (keepX, keepOut, inner *tensor.Tensor) {
	var ks, kx, ko, is, ix []int64
	o := 0
	keepdim := out.Dim() == x.Dim()
	for d, s := range x.Sizes() {
		if gone[d] {
			is, ix = append(is, s), append(ix, x.Strides()[d])
			if keepdim {
				o++
			}
			continue
		}
		ks, kx = append(ks, s), append(kx, x.Strides()[d])
		ko = append(ko, out.Strides()[o])
		o++
	}
	return x.WithView(ks, kx, x.Offset()), out.WithView(ks, ko, out.Offset()), x.WithView(is, ix, x.Offset())
}

// reduceKind is the kind in which x is read for a result of dtype out.
func reduceKind(x, out tensor.DType) Kind {
	k := KindOf(x)
	if out.IsFloat() && x.IsIntegral() || out.IsComplex() && !x.IsComplex() || out == tensor.Float64 && k == KF32 || out.IsInt() && !x.IsIntegral() {
		return KindOf(out)
	}
	return k
}

func put[T Compute](p unsafe.Pointer, v T) { *(*T)(p) = v }

func sumFloats[T float32 | float64](x []T) float64 {
	var s [8]float64
	for len(x) >= 8 {
		for i := range s {
			s[i] += float64(x[i])
		}
		x = x[8:]
	}
	for i, v := range x {
		s[i] += float64(v)
	}
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
}

func sumRow(in Block, kind Kind, out unsafe.Pointer, outKind Kind) {
	switch kind {
	case KBool:
		n := int64(0)
		for _, v := range As[uint8](in) {
			n += int64(v)
		}
		putInt(out, outKind, n)
	case KI64:
		n := int64(0)
		for _, v := range As[int64](in) {
			n += v
		}
		putInt(out, outKind, n)
	case KU64:
		n := uint64(0)
		for _, v := range As[uint64](in) {
			n += v
		}
		putInt(out, outKind, int64(n))
	case KF32:
		putFloat(out, outKind, sumFloats(As[float32](in)))
	case KF64:
		putFloat(out, outKind, sumFloats(As[float64](in)))
	case KC64:
		s := complex128(0)
		for _, v := range As[complex64](in) {
			s += complex128(v)
		}
		putComplex(out, outKind, s)
	default:
		s := complex128(0)
		for _, v := range As[complex128](in) {
			s += v
		}
		putComplex(out, outKind, s)
	}
}

func putInt(p unsafe.Pointer, k Kind, v int64) {
	switch k {
	case KBool:
		put(p, b2u(v != 0))
	case KI64:
		put(p, v)
	case KU64:
		put(p, uint64(v))
	case KF32:
		put(p, float32(v))
	case KF64:
		put(p, float64(v))
	default:
		putComplex(p, k, complex(float64(v), 0))
	}
}

func putFloat(p unsafe.Pointer, k Kind, v float64) {
	switch k {
	case KBool:
		put(p, b2u(v != 0))
	case KI64:
		put(p, int64(v))
	case KU64:
		put(p, uint64(v))
	case KF32:
		put(p, float32(v))
	case KF64:
		put(p, v)
	default:
		putComplex(p, k, complex(v, 0))
	}
}

func putComplex(p unsafe.Pointer, k Kind, v complex128) {
	switch k {
	case KC64:
		put(p, complex64(v))
	case KC128:
		put(p, v)
	default:
		putFloat(p, k, real(v))
	}
}

func meanRow(in Block, kind Kind, out unsafe.Pointer, outKind Kind) {
	switch kind {
	case KF32:
		putFloat(out, outKind, sumFloats(As[float32](in))/float64(in.n))
	case KF64:
		putFloat(out, outKind, sumFloats(As[float64](in))/float64(in.n))
	default:
		var s complex128
		sumRow(in, kind, unsafe.Pointer(&s), KC128)
		putComplex(out, outKind, s/complex(float64(in.n), 0))
	}
}

func prodRow(in Block, kind Kind, out unsafe.Pointer, outKind Kind) {
	switch kind {
	case KBool:
		n := int64(1)
		for _, v := range As[uint8](in) {
			n *= int64(v)
		}
		putInt(out, outKind, n)
	case KI64:
		n := int64(1)
		for _, v := range As[int64](in) {
			n *= v
		}
		putInt(out, outKind, n)
	case KU64:
		n := uint64(1)
		for _, v := range As[uint64](in) {
			n *= v
		}
		putInt(out, outKind, int64(n))
	case KF32:
		p := float32(1)
		for _, v := range As[float32](in) {
			p *= v
		}
		putFloat(out, outKind, float64(p))
	case KF64:
		p := 1.0
		for _, v := range As[float64](in) {
			p *= v
		}
		putFloat(out, outKind, p)
	case KC64:
		p := complex128(1)
		for _, v := range As[complex64](in) {
			p *= complex128(v)
		}
		putComplex(out, outKind, p)
	default:
		p := complex128(1)
		for _, v := range As[complex128](in) {
			p *= v
		}
		putComplex(out, outKind, p)
	}
}

func extremeRow(in Block, kind Kind, out unsafe.Pointer, larger bool) {
	switch kind {
	case KBool:
		x := As[uint8](in)
		put(out, x[bestInt(x, larger)])
	case KI64:
		x := As[int64](in)
		put(out, x[bestInt(x, larger)])
	case KU64:
		x := As[uint64](in)
		put(out, x[bestInt(x, larger)])
	case KF32:
		if larger {
			put(out, cpu.MaxF32(As[float32](in)))
		} else {
			put(out, cpu.MinF32(As[float32](in)))
		}
	default:
		x := As[float64](in)
		put(out, x[bestFloat(x, larger)])
	}
}

func maxRow(in Block, kind Kind, out unsafe.Pointer, _ Kind) { extremeRow(in, kind, out, true) }
func minRow(in Block, kind Kind, out unsafe.Pointer, _ Kind) { extremeRow(in, kind, out, false) }

func bestInt[T uint8 | int64 | uint64](x []T, larger bool) int {
	b := 0
	for i, v := range x {
		if larger && v > x[b] || !larger && v < x[b] {
			b = i
		}
	}
	return b
}

// bestFloat is the first extremum; the first NaN wins.
func bestFloat[T float32 | float64](x []T, larger bool) int {
	b := 0
	for i, v := range x {
		if v != v {
			return i
		}
		if larger && v > x[b] || !larger && v < x[b] {
			b = i
		}
	}
	return b
}

func bestIndex(in Block, kind Kind, larger bool) int {
	switch kind {
	case KBool:
		return bestInt(As[uint8](in), larger)
	case KI64:
		return bestInt(As[int64](in), larger)
	case KU64:
		return bestInt(As[uint64](in), larger)
	case KF32:
		return bestFloat(As[float32](in), larger)
	}
	return bestFloat(As[float64](in), larger)
}

func argKernel(k *Kernel, larger bool) {
	f := func(in Block, kind Kind, out unsafe.Pointer, _ Kind) { put(out, int64(bestIndex(in, kind, larger))) }
	// The index is read in the order of the dimensions, so x is gathered row-major: reduceDims orders by strides.
	x := k.contiguous(k.T(0))
	kk := *k
	kk.Args = &Args{Op: k.Op, V: append([]any{FromTensor(x)}, k.V[1:]...)}
	var dims []int64
	if d, ok := k.OptInt(1); ok {
		dims = []int64{d.Int64()}
	}
	kind := KindOf(x.DType())
	reduceAs(&kk, dims, kind, f)
}

// reduceAs is reduceDims with the input's own kind, for results of another nature (indices).
func reduceAs(k *Kernel, dims []int64, kind Kind, f rowFunc) {
	x, out := k.T(0), k.Out[0]
	if out.Numel() == 0 {
		return
	}
	gone := make([]bool, x.Dim())
	for _, d := range WrapDims(dims, x.Dim()) {
		gone[d] = true
	}
	keepX, keepOut, inner := split(x, out, gone)
	inIt, outIt := NewIter(inner.Sizes(), inner), NewIter(keepX.Sizes(), keepOut, keepX)
	xb, od := base(x), tensor.Data[int64](out)
	xsize := int64(x.DType().Size())
	buf := tensor.AlignedBytes(max(1, int(inIt.N)*kindSize[kind]))
	outIt.Rows(0, outIt.N, func(off []int64, m int64) {
		for i := range m {
			src := unsafe.Add(xb, (off[1]+i*outIt.Strides[1][0])*xsize)
			pos := 0
			inIt.Rows(0, inIt.N, func(o []int64, n int64) {
				loadRow(unsafe.Add(unsafe.Pointer(&buf[0]), pos*kindSize[kind]), kind, unsafe.Add(src, o[0]*xsize), x.DType(), inIt.Strides[0][0], int(n))
				pos += int(n)
			})
			f(Block{unsafe.Pointer(&buf[0]), int(inIt.N)}, kind, unsafe.Pointer(&od[off[0]+i*outIt.Strides[0][0]]), KI64)
		}
	})
}

func extremeDim(k *Kernel, larger bool) {
	x := k.T(0)
	if x.Dim() == 0 {
		Copy(k.Pool, k.Out[0], x)
		tensor.Data[int64](k.Out[1])[0] = 0
		return
	}
	dims := []int64{k.I64(1)}
	if extremesAt(k, larger) {
		return
	}
	extremeDims(k, dims, larger)
	idx := *k
	idx.Out = []*tensor.Tensor{k.Out[1]}
	reduceAs(&idx, dims, KindOf(x.DType()), func(in Block, kind Kind, out unsafe.Pointer, _ Kind) { put(out, int64(bestIndex(in, kind, larger))) })
}

func anyRow(in Block, kind Kind, out unsafe.Pointer, outKind Kind) {
	putInt(out, outKind, int64(b2u(countTrue(in, kind) > 0)))
}

func allRow(in Block, kind Kind, out unsafe.Pointer, outKind Kind) {
	putInt(out, outKind, int64(b2u(countTrue(in, kind) == in.n)))
}

func countTrue(in Block, kind Kind) int {
	switch kind {
	case KBool:
		return count(As[uint8](in))
	case KI64:
		return count(As[int64](in))
	case KU64:
		return count(As[uint64](in))
	case KF32:
		return count(As[float32](in))
	case KF64:
		return count(As[float64](in))
	case KC64:
		return count(As[complex64](in))
	}
	return count(As[complex128](in))
}

func count[T comparable](x []T) int {
	var zero T
	n := 0
	for _, v := range x {
		if v != zero {
			n++
		}
	}
	return n
}

func varKernel(k *Kernel, dims []int64, correction any, root bool) {
	c := 1.0
	if s, ok := correction.(Scalar); ok {
		c = s.Float64()
	}
	reduceDims(k, dims, func(in Block, kind Kind, out unsafe.Pointer, outKind Kind) {
		var v float64
		switch kind {
		case KF32:
			v = variance(As[float32](in), c)
		case KF64:
			v = variance(As[float64](in), c)
		default:
			v = varianceC(in, kind, c)
		}
		if root {
			v = math.Sqrt(v)
		}
		putFloat(out, outKind, v)
	})
}

func variance[T float32 | float64](x []T, correction float64) float64 {
	mean := sumFloats(x) / float64(len(x))
	s := 0.0
	for _, v := range x {
		d := float64(v) - mean
		s += d * d
	}
	return s / math.Max(float64(len(x))-correction, 0)
}

func varianceC(in Block, kind Kind, correction float64) float64 {
	var re, im []float64
	if kind == KC64 {
		for _, z := range As[complex64](in) {
			re, im = append(re, float64(real(z))), append(im, float64(imag(z)))
		}
	} else {
		for _, z := range As[complex128](in) {
			re, im = append(re, real(z)), append(im, imag(z))
		}
	}
	return variance(re, correction) + variance(im, correction)
}

func normRow(in Block, kind Kind, out unsafe.Pointer, outKind Kind, p float64) {
	var acc float64
	first := true
	each := func(a float64) {
		switch {
		case math.IsInf(p, 1):
			acc = pick(first, a, nanMax(acc, a))
		case math.IsInf(p, -1):
			acc = pick(first, a, nanMin(acc, a))
		case p == 0:
			acc += pick(a != 0, 1.0, 0)
		case p == 1:
			acc += a
		case p == 2:
			acc += a * a
		default:
			acc += math.Pow(a, p)
		}
		first = false
	}
	switch kind {
	case KF32:
		for _, v := range As[float32](in) {
			each(math.Abs(float64(v)))
		}
	case KF64:
		for _, v := range As[float64](in) {
			each(math.Abs(v))
		}
	case KC64:
		for _, v := range As[complex64](in) {
			each(cmplx.Abs(complex128(v)))
		}
	default:
		for _, v := range As[complex128](in) {
			each(cmplx.Abs(v))
		}
	}
	switch {
	case math.IsInf(p, 0), p == 0, p == 1:
	case p == 2:
		acc = math.Sqrt(acc)
	default:
		acc = math.Pow(acc, 1/p)
	}
	putFloat(out, outKind, acc)
}
