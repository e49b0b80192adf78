package aten

import (
	"github.com/pt2go/pt2/internal/linalg"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// Linear algebra works on float64 and complex128 whatever the dtype: float32 results are rounded once. Batches are the leading
// dimensions; factors come back column-major, as LAPACK leaves them.

// linKernel picks the kernel for real or complex input by the dtype of argument 0.
func linKernel(re, im func(k *Kernel)) func(k *Kernel) {
	return func(k *Kernel) {
		if k.T(0).DType().IsComplex() {
			im(k)
		} else {
			re(k)
		}
	}
}

// linRead copies t into row-major matrices of T, one after the other.
func linRead[T linalg.Scalar](k *Kernel, t *tensor.Tensor) []T {
	var z T
	dt := tensor.Float64
	if _, ok := any(z).(complex128); ok {
		dt = tensor.Complex128
	}
	c := tensor.New(dt, t.Sizes()...)
	Copy(k.Pool, c, t)
	return tensor.Contiguous[T](c)
}

// linWrite stores row-major data into out, casting to its dtype.
func linWrite[T tensor.Element](k *Kernel, out *tensor.Tensor, data []T) {
	if out == nil || out.Numel() == 0 {
		return
	}
	src, err := tensor.FromSlice(data, out.Sizes()...)
	if err != nil {
		Fail("%v", err)
	}
	Copy(k.Pool, out, src)
}

// linDims gives the last two sizes of t and the number of matrices before them.
func linDims(t *tensor.Tensor) (batch, m, n int) {
	s := t.Sizes()
	batch = 1
	for _, v := range s[:len(s)-2] {
		batch *= int(v)
	}
	return batch, int(s[len(s)-2]), int(s[len(s)-1])
}

// linMat is matrix i of a row of [m, n] matrices.
func linMat[T linalg.Scalar](data []T, i, m, n int) linalg.Mat[T] {
	return linalg.Mat[T]{R: m, C: n, A: data[i*m*n : (i+1)*m*n]}
}

// eachMatrix runs f for every matrix of a batch; work estimates the operations for one.
func eachMatrix(k *Kernel, batch, work int, f func(i int)) {
	k.Pool.ParallelFor(batch, max(1, grain/max(work, 1)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			f(i)
		}
	})
}

// linMatrix refuses what is not a batch of matrices.
func linMatrix(v *Value, name string) {
	Check(v.Dim() >= 2, "%s: The input tensor A must have at least 2 dimensions.", name)
}

// linSquare refuses what is not a batch of square matrices.
func linSquare(v *Value, name string) {
	linMatrix(v, name)
	r, c := v.Size(-2), v.Size(-1)
	Check(r.Eq(c), "%s: A must be batches of square matrices, but they are %v by %v matrices", name, r, c)
}

// linFloat refuses integers, and half-precision numbers with the words of the kernel that does not take them.
func linFloat(v *Value, name, kernel string) {
	dt := v.DType
	if !dt.IsFloat() && !dt.IsComplex() {
		FailAs("NotImplementedError", "%s: Expected a floating point or complex tensor as input. Got %s", name, dt.CPPName())
	}
	if !linField(dt) {
		if kernel == "" {
			FailAs("NotImplementedError", "%s: Low precision dtypes not supported. Got %s", name, dt.CPPName())
		}
		FailAs("NotImplementedError", "\"%s\" not implemented for '%s'", kernel, dt.CPPName())
	}
}

// linTyped refuses every dtype that has no kernel.
func linTyped(v *Value, kernel string) {
	if !linField(v.DType) {
		FailAs("NotImplementedError", "\"%s\" not implemented for '%s'", kernel, v.DType.CPPName())
	}
}

// linField reports a dtype of LAPACK.
func linField(dt tensor.DType) bool {
	switch dt {
	case tensor.Float32, tensor.Float64, tensor.Complex64, tensor.Complex128:
		return true
	}
	return false
}

// colMajor is fresh memory whose matrices lie column by column.
func colMajor(dt tensor.DType, sizes []symbolic.Int) Meta {
	st := ContiguousStrides(sizes)
	if n := len(sizes); n >= 2 {
		st = append([]symbolic.Int(nil), st...)
		st[n-2], st[n-1] = symbolic.N(1), atLeast1(sizes[n-2])
	}
	return Strided(dt, sizes, st)
}

// linBatch gives the leading sizes of a batch of matrices, followed by tail.
func linBatch(v *Value, tail ...symbolic.Int) []symbolic.Int {
	return append(append([]symbolic.Int{}, v.Sizes[:v.Dim()-2]...), tail...)
}

// linNone is what stands for a factor that was not asked for.
func linNone(dt tensor.DType) Meta { return Contig(dt, symbolic.N(0)) }

// linMin is the smaller of the two sizes of v's matrices.
func linMin(v *Value) symbolic.Int { return v.Size(-2).Min(v.Size(-1)) }

// linChecked runs an operator that ends in an info tensor and refuses where info is not 0.
func linChecked(b *Build, api string, matrix *Value, name string, args ...any) []*Value {
	r := b.CallN(name, args...)
	b.Effect("_linalg_check_errors", r[len(r)-1], api, Kw("is_matrix", matrix.Dim() == 2))
	return r[:len(r)-1]
}

// linFirst is the decomposition of an operator that is the first result of another over the same arguments.
func linFirst(name string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value { return One(b.Call(name, a.V...)) }
}

// infoKernel refuses where an info tensor is not 0.
func infoKernel(k *Kernel) { checkInfo(k.as(k.T(0), tensor.Int32), k.Str(1), k.Bool(2)) }

// checkInfo refuses the first matrix whose factorization failed, in the words that PyTorch has for api.
func checkInfo(info *tensor.Tensor, api string, matrix bool) {
	for i, v := range tensor.Contiguous[int32](info) {
		if v == 0 {
			continue
		}
		where := api
		if !matrix {
			where += ": (Batch element " + itoa(i) + ")"
		}
		failInfo(where, api, v)
	}
}
