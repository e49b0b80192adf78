package aten

import (
	"github.com/pt2go/pt2/internal/linalg"
	"github.com/pt2go/pt2/tensor"
)

// linalgEigOps give eigenvalues, singular values, and functions of matrices made of them.
var linalgEigOps = []Op{
	{Schema: "_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		linSquare(x, "linalg.eigh")
		linTyped(x, "linalg_eigh_cpu")
		switch a.Str(1) {
		case "L", "U", "l", "u":
		default:
			Fail("Expected UPLO argument to be 'L' or 'U', but got %s", a.Str(1))
		}
		w := Contig(x.DType.Real(), x.Sizes[:x.Dim()-1]...)
		if !a.Bool(2) {
			return []Meta{w, linNone(x.DType)}
		}
		return []Meta{w, colMajor(x.DType, x.Sizes)}
	}, CPU: linKernel(eighKernel[float64], eighKernel[complex128])},
	{Schema: "linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)", Decomp: func(b *Build, a *Args) []*Value {
		return b.CallN("_linalg_eigh", a.Tensor(0), a.V[1], true)
	}},
	{Schema: "linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("_linalg_eigh", a.Tensor(0), a.V[1], false))
	}},
	{Schema: "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		dt := eigType(x, "linalg.eig")
		return []Meta{Contig(dt, x.Sizes[:x.Dim()-1]...), colMajor(dt, x.Sizes)}
	}, CPU: eigKernel},
	{Schema: "_linalg_eigvals(Tensor self) -> Tensor", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		return []Meta{Contig(eigType(x, "linalg.eigvals"), x.Sizes[:x.Dim()-1]...)}
	}, CPU: eigKernel},
	{Schema: "linalg_eigvals(Tensor self) -> Tensor", Decomp: linFirst("_linalg_eigvals")},
	{Schema: "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		linMatrix(x, "linalg.svd")
		linFloat(x, "linalg.svd", "linalg_svd_cpu")
		Check(!a.Has(3), "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")
		m, n, d := x.Size(-2), x.Size(-1), linMin(x)
		s := Contig(x.DType.Real(), linBatch(x, d)...)
		switch {
		case !a.Bool(2):
			return []Meta{linNone(x.DType), s, linNone(x.DType)}
		case a.Bool(1):
			return []Meta{colMajor(x.DType, linBatch(x, m, m)), s, colMajor(x.DType, linBatch(x, n, n))}
		}
		return []Meta{colMajor(x.DType, linBatch(x, m, d)), s, colMajor(x.DType, linBatch(x, d, n))}
	}, CPU: linKernel(svdKernel[float64], svdKernel[complex128])},
	{Schema: "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)", Decomp: func(b *Build, a *Args) []*Value {
		return b.CallN("_linalg_svd", a.Tensor(0), a.V[1], true, Kw("driver", a.V[2]))
	}},
	{Schema: "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(svdvals(b, a.Tensor(0), a.V[1]))
	}},
	{Schema: "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		if a.Bool(2) {
			r := b.CallN("_linalg_svd", x, !a.Bool(1), true)
			return []*Value{r[0], r[1], b.Call("mH", r[2])}
		}
		m, n := x.Size(-2), x.Size(-1)
		return []*Value{b.Call("new_zeros", x, linBatch(x, m, m)), svdvals(b, x, nil), b.Call("new_zeros", x, linBatch(x, n, n))}
	}},
	{Schema: "linalg_polar(Tensor A) -> (Tensor U, Tensor H)", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		linMatrix(x, "linalg.polar")
		Check(x.Size(-2).Ge(x.Size(-1)), "linalg.polar: input must have at least as many rows as columns, but got %v by %v matrices", x.Size(-2), x.Size(-1))
		if !x.DType.IsFloat() && !x.DType.IsComplex() {
			linFloat(x, "linalg.polar", "")
		}
		r := b.CallN("_linalg_svd", x, false, true)
		v := b.Call("mH", r[2])
		h := b.Call("matmul", b.Call("mul.Tensor", v, b.Call("unsqueeze", r[1], -2)), r[2])
		return []*Value{b.Call("matmul", r[0], r[2]), h}
	}},
}

func svdvals(b *Build, x *Value, driver any) *Value {
	return b.CallN("_linalg_svd", x, false, false, Kw("driver", driver))[1]
}

// eigType is the complex dtype of the eigenvalues of x's matrices.
func eigType(x *Value, name string) tensor.DType {
	linSquare(x, name)
	dt := x.DType
	if !dt.IsComplex() {
		Check(dt.Complex() != tensor.Invalid, "Unknown Complex ScalarType for %s", dt.CPPName())
		dt = dt.Complex()
	}
	linTyped(x, "linalg_eig_out_cpu")
	return dt
}

func eighKernel[T linalg.Scalar](k *Kernel) {
	data := linRead[T](k, k.T(0))
	batch, n, _ := linDims(k.T(0))
	w, v := make([]float64, batch*n), []T(nil)
	if k.Bool(2) {
		v = make([]T, batch*n*n)
	}
	info := tensor.New(tensor.Int32, int64(batch))
	bad := tensor.Contiguous[int32](info)
	eachMatrix(k, batch, 4*n*n*n, func(i int) {
		m := linMat(data, i, n, n)
		if u := k.Str(1); u == "U" || u == "u" {
			m = m.H()
		}
		if !linalg.Finite(m.A) {
			bad[i] = int32(max(n-1, 1))
			return
		}
		wi, vi, ok := linalg.Eigh(m, v != nil)
		if !ok {
			bad[i] = int32(max(n-1, 1))
		}
		copy(w[i*n:], wi)
		if v != nil {
			copy(v[i*n*n:], vi.A)
		}
	})
	checkInfo(info, "linalg.eigh", k.T(0).Dim() == 2)
	linWrite(k, k.Out[0], w)
	if v != nil {
		linWrite(k, k.Out[1], v)
	}
}

func eigKernel(k *Kernel) {
	x := k.T(0)
	batch, n, _ := linDims(x)
	vectors := len(k.Out) > 1
	w, v := make([]complex128, batch*n), []complex128(nil)
	if vectors {
		v = make([]complex128, batch*n*n)
	}
	info := tensor.New(tensor.Int32, int64(batch))
	bad := tensor.Contiguous[int32](info)
	keep := func(i int, wi []complex128, vi linalg.Mat[complex128], ok bool) {
		if !ok {
			bad[i] = 1
			return
		}
		copy(w[i*n:], wi)
		if vectors {
			copy(v[i*n*n:], vi.A)
		}
	}
	if x.DType().IsComplex() {
		data := linRead[complex128](k, x)
		Check(linalg.Finite(data), "torch.linalg.eig: input tensor should not contain infs or NaNs.")
		eachMatrix(k, batch, 10*n*n*n, func(i int) {
			wi, vi, ok := linalg.EigComplex(linMat(data, i, n, n), vectors)
			keep(i, wi, vi, ok)
		})
	} else {
		data := linRead[float64](k, x)
		Check(linalg.Finite(data), "torch.linalg.eig: input tensor should not contain infs or NaNs.")
		eachMatrix(k, batch, 10*n*n*n, func(i int) {
			wi, vi, ok := linalg.EigReal(linMat(data, i, n, n), vectors)
			keep(i, wi, vi, ok)
		})
	}
	checkInfo(info, "linalg.eig", x.Dim() == 2)
	linWrite(k, k.Out[0], w)
	if vectors {
		linWrite(k, k.Out[1], v)
	}
}

func svdKernel[T linalg.Scalar](k *Kernel) {
	x := k.T(0)
	data := linRead[T](k, x)
	if !linalg.Finite(data) {
		FailAs("LinAlgError", "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.")
	}
	batch, m, n := linDims(x)
	d, full, vectors := min(m, n), k.Bool(1), k.Bool(2)
	uc, vr := d, d
	if full {
		uc, vr = m, n
	}
	s := make([]float64, batch*d)
	var u, vh []T
	if vectors {
		u, vh = make([]T, batch*m*uc), make([]T, batch*vr*n)
	}
	info := tensor.New(tensor.Int32, int64(batch))
	bad := tensor.Contiguous[int32](info)
	eachMatrix(k, batch, 8*m*n*d, func(i int) {
		ui, si, vi, ok := linalg.SVD(linMat(data, i, m, n), vectors, full)
		if !ok {
			bad[i] = 1
		}
		copy(s[i*d:], si)
		if vectors {
			copy(u[i*m*uc:], ui.A)
			copy(vh[i*vr*n:], vi.A)
		}
	})
	checkInfo(info, "linalg.svd", x.Dim() == 2)
	if vectors {
		linWrite(k, k.Out[0], u)
		linWrite(k, k.Out[2], vh)
	}
	linWrite(k, k.Out[1], s)
}
