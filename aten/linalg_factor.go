package aten

import (
	"math"
	"math/cmplx"

	"github.com/pt2go/pt2/internal/linalg"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// linalgFactorOps factor matrices, and take determinants and inverses by factors.
var linalgFactorOps = []Op{
	{Schema: "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		linSquare(x, "linalg.cholesky")
		linFloat(x, "linalg.cholesky", "cholesky_cpu")
		return []Meta{colMajor(x.DType, x.Sizes), Contig(tensor.Int32, linBatch(x)...)}
	}, CPU: linKernel(choleskyKernel[float64], choleskyKernel[complex128])},
	{Schema: "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return linChecked(b, "linalg.cholesky", a.Tensor(0), "linalg_cholesky_ex", a.Tensor(0), Kw("upper", a.V[1]))
	}},
	{Schema: "cholesky_inverse(Tensor self, bool upper=False) -> Tensor", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		linSquare(x, "cholesky_inverse")
		linTyped(x, "cholesky_inverse_out_cpu")
		return []Meta{colMajor(x.DType, x.Sizes)}
	}, CPU: linKernel(choleskyInverse[float64], choleskyInverse[complex128])},

	{Schema: "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		Check(x.Dim() >= 2, "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: %s instead", sizesText(x.Sizes))
		return append(luMetas(x, a.Bool(1)), Contig(tensor.Int32, linBatch(x)...))
	}, CPU: func(k *Kernel) {
		luKernel(k)
		if k.Bool(2) {
			checkInfo(k.Out[2], "torch.linalg.lu_factor_ex", k.T(0).Dim() == 2)
		}
	}},
	{Schema: "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", Decomp: func(b *Build, a *Args) []*Value {
		return linChecked(b, "torch.linalg.lu_factor", a.Tensor(0), "linalg_lu_factor_ex", a.Tensor(0), Kw("pivot", a.V[1]))
	}},
	{Schema: "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)", Decomp: func(b *Build, a *Args) []*Value {
		return b.CallN("linalg_lu_factor_ex", a.Tensor(0), Kw("pivot", a.V[1]))
	}},
	{Schema: "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", Decomp: func(b *Build, a *Args) []*Value {
		Check(a.Tensor(0).Dim() >= 2, "linalg.lu: Expected tensor with 2 or more dimensions. Got size: %s instead", sizesText(a.Tensor(0).Sizes))
		r := b.CallN("linalg_lu_factor_ex", a.Tensor(0), Kw("pivot", a.V[1]))
		return b.CallN("lu_unpack", r[0], r[1])
	}},
	{Schema: "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)", Shape: func(a *Args) []Meta {
		x, p := a.Tensor(0), a.Tensor(1)
		Check(!a.Bool(3) || p.DType == tensor.Int32, "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this function is intended to be used with the output produced by torch.linalg.lu_factor")
		Check(x.Dim() >= 2 && p.Dim() == x.Dim()-1, "torch.lu_unpack: expected matrices and their pivots, got sizes %s and %s", sizesText(x.Sizes), sizesText(p.Sizes))
		m, n, d := x.Size(-2), x.Size(-1), linMin(x)
		out := []Meta{linNone(x.DType), linNone(x.DType), linNone(x.DType)}
		if a.Bool(3) {
			out[0] = Contig(x.DType, linBatch(x, m, m)...)
		}
		if a.Bool(2) {
			out[1], out[2] = Contig(x.DType, linBatch(x, m, d)...), Contig(x.DType, linBatch(x, d, n)...)
		}
		return out
	}, CPU: linKernel(luUnpack[float64], luUnpack[complex128])},

	{Schema: "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		linSquare(x, "linalg.det")
		linFloat(x, "linalg.det", "lu_cpu")
		return append([]Meta{Contig(x.DType, linBatch(x)...)}, luMetas(x, true)...)
	}, CPU: linKernel(detKernel[float64], detKernel[complex128])},
	{Schema: "linalg_det(Tensor A) -> Tensor", Decomp: linFirst("_linalg_det")},
	{Schema: "det(Tensor self) -> Tensor", Decomp: linFirst("_linalg_det")},
	{Schema: "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		linSquare(x, "linalg.slogdet")
		linFloat(x, "linalg.slogdet", "")
		return append([]Meta{Contig(x.DType, linBatch(x)...), Contig(x.DType.Real(), linBatch(x)...)}, luMetas(x, true)...)
	}, CPU: linKernel(slogdetKernel[float64], slogdetKernel[complex128])},
	{Schema: "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", Decomp: func(b *Build, a *Args) []*Value { return b.CallN("_linalg_slogdet", a.V...)[:2] }},
	{Schema: "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", Decomp: func(b *Build, a *Args) []*Value { return b.CallN("_linalg_slogdet", a.V...)[:2] }},
	{Schema: "logdet(Tensor self) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		linSquare(a.Tensor(0), "logdet")
		linFloat(a.Tensor(0), "logdet", "")
		r := b.CallN("_linalg_slogdet", a.Tensor(0))
		if a.Tensor(0).DType.IsComplex() {
			return One(b.Call("add.Tensor", b.Call("log", r[0]), r[1]))
		}
		return One(b.Call("masked_fill.Scalar", r[1], b.Call("eq.Scalar", r[0], -1), math.NaN()))
	}},
	{Schema: "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		linSquare(x, "linalg.inv")
		linFloat(x, "linalg.inv", "")
		return []Meta{colMajor(x.DType, x.Sizes), Contig(tensor.Int32, linBatch(x)...)}
	}, CPU: linKernel(invKernel[float64], invKernel[complex128])},
	{Schema: "linalg_inv(Tensor A) -> Tensor", Decomp: inverse},
	{Schema: "inverse(Tensor self) -> Tensor", Decomp: inverse},

	{Schema: "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		linMatrix(x, "linalg.qr")
		linFloat(x, "linalg.qr", "geqrf_cpu")
		m, n, d := x.Size(-2), x.Size(-1), linMin(x)
		switch a.Str(1) {
		case "reduced":
			return []Meta{colMajor(x.DType, linBatch(x, m, d)), colMajor(x.DType, linBatch(x, d, n))}
		case "complete":
			return []Meta{colMajor(x.DType, linBatch(x, m, m)), colMajor(x.DType, linBatch(x, m, n))}
		case "r":
			return []Meta{linNone(x.DType), colMajor(x.DType, linBatch(x, d, n))}
		}
		Fail("qr received unrecognized mode '%s' but expected one of 'reduced' (default), 'r', or 'complete'", a.Str(1))
		return nil
	}, CPU: linKernel(qrKernel[float64], qrKernel[complex128])},
	{Schema: "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", Decomp: func(b *Build, a *Args) []*Value {
		return b.CallN("linalg_qr", a.Tensor(0), pick(a.Bool(1), "reduced", "complete"))
	}},
	{Schema: "geqrf(Tensor self) -> (Tensor a, Tensor tau)", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		Check(x.Dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.")
		linTyped(x, "geqrf_cpu")
		return []Meta{colMajor(x.DType, x.Sizes), Contig(x.DType, linBatch(x, linMin(x))...)}
	}, CPU: linKernel(geqrfKernel[float64], geqrfKernel[complex128])},
	{Schema: "linalg_householder_product(Tensor input, Tensor tau) -> Tensor", Shape: func(a *Args) []Meta {
		x, tau := a.Tensor(0), a.Tensor(1)
		const name = "torch.linalg.householder_product"
		Check(x.Dim() >= 2, "%s: input must have at least 2 dimensions.", name)
		Check(x.Size(-2).Ge(x.Size(-1)), "%s: input.shape[-2] must be greater than or equal to input.shape[-1]", name)
		Check(tau.Dim() == x.Dim()-1, "%s: Expected tau to have one dimension less than input, but got tau.ndim equal to %d and input.ndim is equal to %d", name, tau.Dim(), x.Dim())
		Check(x.Size(-1).Ge(tau.Size(-1)), "%s: input.shape[-1] must be greater than or equal to tau.shape[-1]", name)
		Check(SameSizes(x.Sizes[:x.Dim()-2], tau.Sizes[:tau.Dim()-1]), "%s: Expected batch dimensions of tau to be equal to input.shape[:-2], but got %s", name, sizesText(tau.Sizes[:tau.Dim()-1]))
		Check(tau.DType == x.DType, "%s: tau dtype %s does not match input dtype %s", name, tau.DType.CPPName(), x.DType.CPPName())
		linTyped(x, "orgqr_cpu")
		return []Meta{colMajor(x.DType, x.Sizes)}
	}, CPU: linKernel(householderKernel[float64], householderKernel[complex128])},
	{Schema: "orgqr(Tensor self, Tensor input2) -> Tensor", Decomp: linFirst("linalg_householder_product")},
	{Schema: "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor", Shape: func(a *Args) []Meta {
		x, tau, c := a.Tensor(0), a.Tensor(1), a.Tensor(2)
		Check(x.Dim() >= 2, "torch.ormqr: input must have at least 2 dimensions.")
		Check(c.Dim() >= 2, "torch.ormqr: other must have at least 2 dimensions.")
		side := pick(a.Bool(3), -2, -1)
		Check(c.Size(side).Ge(tau.Size(-1)), "torch.ormqr: other.shape[%d] must be greater than or equal to tau.shape[-1]", side)
		Check(c.Size(side).Eq(x.Size(-2)), "torch.ormqr: other.shape[%d] must be equal to input.shape[-2]", side)
		Check(x.Size(-1).Ge(tau.Size(-1)), "torch.ormqr: tau.shape[-1] must be less than or equal to input.shape[-1]")
		Check(SameSizes(x.Sizes[:x.Dim()-2], tau.Sizes[:max(tau.Dim()-1, 0)]) && SameSizes(x.Sizes[:x.Dim()-2], c.Sizes[:c.Dim()-2]), "torch.ormqr: Expected batch dimensions of tau and other to be equal to input.shape[:-2]")
		Check(tau.DType == x.DType && c.DType == x.DType, "torch.ormqr: Expected input, tau and other to have the same dtype")
		linTyped(x, "ormqr_cpu")
		return []Meta{colMajor(x.DType, c.Sizes)}
	}, CPU: linKernel(ormqrKernel[float64], ormqrKernel[complex128])},

	{Schema: "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		linSquare(x, "torch.linalg.ldl_factor_ex")
		linFloat(x, "torch.linalg.ldl_factor_ex", "ldl_factor_kernel_cpu")
		return []Meta{colMajor(x.DType, x.Sizes), Contig(tensor.Int32, x.Sizes[:x.Dim()-1]...), Contig(tensor.Int32, linBatch(x)...)}
	}, CPU: linKernel(ldlKernel[float64], ldlKernel[complex128])},
	{Schema: "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)", Decomp: func(b *Build, a *Args) []*Value {
		return linChecked(b, "torch.linalg.ldl_factor", a.Tensor(0), "linalg_ldl_factor_ex", a.Tensor(0), Kw("hermitian", a.V[1]))
	}},
	{Schema: "_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()", Tags: Effect, CPU: infoKernel},
}

func inverse(b *Build, a *Args) []*Value {
	return linChecked(b, "linalg.inv", a.Tensor(0), "linalg_inv_ex", a.Tensor(0))
}

// luMetas are the Metas of packed factors and their pivots.
func luMetas(x *Value, pivot bool) []Meta {
	linTyped(x, "lu_cpu")
	Check(pivot, "linalg.lu_factor: LU without pivoting is not implemented on the CPU")
	return []Meta{colMajor(x.DType, x.Sizes), Contig(tensor.Int32, linBatch(x, linMin(x))...)}
}

func choleskyKernel[T linalg.Scalar](k *Kernel) {
	data := linRead[T](k, k.T(0))
	batch, n, _ := linDims(k.T(0))
	info := make([]int32, batch)
	eachMatrix(k, batch, n*n*n, func(i int) {
		m := linMat(data, i, n, n)
		if !k.Bool(1) {
			info[i] = int32(linalg.Cholesky(m))
			return
		}
		h := m.H()
		info[i] = int32(linalg.Cholesky(h))
		copy(m.A, h.H().A)
	})
	linWrite(k, k.Out[0], data)
	linWrite(k, k.Out[1], info)
	if k.Bool(2) {
		checkInfo(k.Out[1], "linalg.cholesky_ex", k.T(0).Dim() == 2)
	}
}

// choleskyInverse is the inverse of L*L^H.
func choleskyInverse[T linalg.Scalar](k *Kernel) {
	data := linRead[T](k, k.T(0))
	batch, n, _ := linDims(k.T(0))
	eachMatrix(k, batch, n*n*n, func(i int) {
		m := linMat(data, i, n, n)
		x := linalg.Eye[T](n, n)
		solveCholesky(m, x, k.Bool(1))
		copy(m.A, x.A)
	})
	linWrite(k, k.Out[0], data)
}

// luRead factors every matrix of argument 0.
func luRead[T linalg.Scalar](k *Kernel) (lu []T, piv, info []int32) {
	lu = linRead[T](k, k.T(0))
	batch, m, n := linDims(k.T(0))
	d := min(m, n)
	piv, info = make([]int32, batch*d), make([]int32, batch)
	eachMatrix(k, batch, m*n*d, func(i int) {
		info[i] = int32(linalg.LU(linMat(lu, i, m, n), piv[i*d:(i+1)*d]))
	})
	return lu, piv, info
}

func luKernel(k *Kernel) {
	linKernel(luInto[float64], luInto[complex128])(k)
}

func luInto[T linalg.Scalar](k *Kernel) {
	lu, piv, info := luRead[T](k)
	linWrite(k, k.Out[0], lu)
	linWrite(k, k.Out[1], piv)
	linWrite(k, k.Out[2], info)
}

func luUnpack[T linalg.Scalar](k *Kernel) {
	data := linRead[T](k, k.T(0))
	batch, m, n := linDims(k.T(0))
	d := min(m, n)
	if k.Bool(2) {
		l, u := make([]T, batch*m*d), make([]T, batch*d*n)
		for i := range batch {
			x, lo, up := linMat(data, i, m, n), linMat(l, i, m, d), linMat(u, i, d, n)
			for r := range m {
				copy(lo.Row(r)[:min(r, d)], x.Row(r))
				if r < d {
					lo.Set(r, r, 1)
					copy(up.Row(r)[r:], x.Row(r)[r:])
				}
			}
		}
		linWrite(k, k.Out[1], l)
		linWrite(k, k.Out[2], u)
	}
	if !k.Bool(3) {
		return
	}
	piv := tensor.Contiguous[int32](k.as(k.T(1), tensor.Int32))
	p := make([]T, batch*m*m)
	for i := range batch {
		x := linMat(p, i, m, m)
		for r := range m {
			x.Set(r, r, 1)
		}
		linalg.Permute(x, checkedPivots(piv[i*len(piv)/max(batch, 1):(i+1)*len(piv)/max(batch, 1)], m), false)
	}
	linWrite(k, k.Out[0], p)
}

// checkedPivots refuses row numbers that a matrix of m rows does not have.
func checkedPivots(piv []int32, m int) []int32 {
	Check(len(piv) <= m, "linalg: %d pivots were given for %d rows", len(piv), m)
	for _, p := range piv {
		Check(p >= 1 && int(p) <= m, "Pivots passed to lu_solve must be between 1 and the number of rows (%d), got %d", m, p)
	}
	return piv
}

func detKernel[T linalg.Scalar](k *Kernel) {
	lu, piv, _ := luRead[T](k)
	batch, n, _ := linDims(k.T(0))
	det := make([]T, batch)
	for i := range det {
		det[i] = 1
		for r := range n {
			det[i] *= linMat(lu, i, n, n).At(r, r)
			if int(piv[i*n+r]) != r+1 {
				det[i] = -det[i]
			}
		}
	}
	linWrite(k, k.Out[0], det)
	linWrite(k, k.Out[1], lu)
	linWrite(k, k.Out[2], piv)
}

func slogdetKernel[T linalg.Scalar](k *Kernel) {
	lu, piv, _ := luRead[T](k)
	batch, n, _ := linDims(k.T(0))
	sign, logabs := make([]T, batch), make([]float64, batch)
	for i := range sign {
		sign[i] = 1
		for r := range n {
			d := linMat(lu, i, n, n).At(r, r)
			logabs[i] += math.Log(linalg.Abs(d))
			sign[i] *= signOf(d)
			if int(piv[i*n+r]) != r+1 {
				sign[i] = -sign[i]
			}
		}
	}
	linWrite(k, k.Out[0], sign)
	linWrite(k, k.Out[1], logabs)
	linWrite(k, k.Out[2], lu)
	linWrite(k, k.Out[3], piv)
}

// signOf is x/|x|, 0 for 0.
func signOf[T linalg.Scalar](x T) T {
	if x == 0 {
		return 0
	}
	switch p := any(&x).(type) {
	case *float64:
		*p = math.Copysign(1, *p)
	case *complex128:
		*p /= complex(cmplx.Abs(*p), 0)
	}
	return x
}

func invKernel[T linalg.Scalar](k *Kernel) {
	lu, piv, info := luRead[T](k)
	batch, n, _ := linDims(k.T(0))
	eachMatrix(k, batch, 2*n*n*n, func(i int) {
		if info[i] != 0 {
			return // LAPACK leaves the factors
		}
		x := linalg.Eye[T](n, n)
		m := linMat(lu, i, n, n)
		linalg.SolveLU(m, piv[i*n:(i+1)*n], x, false)
		copy(m.A, x.A)
	})
	linWrite(k, k.Out[0], lu)
	linWrite(k, k.Out[1], info)
	if k.Bool(1) {
		checkInfo(k.Out[1], "linalg.inv_ex", k.T(0).Dim() == 2)
	}
}

func qrKernel[T linalg.Scalar](k *Kernel) {
	data := linRead[T](k, k.T(0))
	batch, m, n := linDims(k.T(0))
	_, rr, _ := linDims(k.Out[1])
	var q []T
	qc := 0
	if k.Str(1) != "r" {
		_, _, qc = linDims(k.Out[0])
		q = make([]T, batch*m*qc)
	}
	r := make([]T, batch*rr*n)
	eachMatrix(k, batch, m*n*n, func(i int) {
		x := linMat(data, i, m, n)
		tau := linalg.QR(x)
		if q != nil {
			copy(linMat(q, i, m, qc).A, linalg.Q(x, tau, qc).A)
		}
		up := linMat(r, i, rr, n)
		for j := range min(rr, n) {
			copy(up.Row(j)[j:], x.Row(j)[j:])
		}
	})
	if q != nil {
		linWrite(k, k.Out[0], q)
	}
	linWrite(k, k.Out[1], r)
}

func geqrfKernel[T linalg.Scalar](k *Kernel) {
	data := linRead[T](k, k.T(0))
	batch, m, n := linDims(k.T(0))
	d := min(m, n)
	tau := make([]T, batch*d)
	eachMatrix(k, batch, m*n*n, func(i int) { copy(tau[i*d:], linalg.QR(linMat(data, i, m, n))) })
	linWrite(k, k.Out[0], data)
	linWrite(k, k.Out[1], tau)
}

func householderKernel[T linalg.Scalar](k *Kernel) {
	data, tau := linRead[T](k, k.T(0)), linRead[T](k, k.T(1))
	batch, m, n := linDims(k.T(0))
	d := len(tau) / max(batch, 1)
	eachMatrix(k, batch, m*n*n, func(i int) {
		x := linMat(data, i, m, n)
		copy(x.A, linalg.Q(x, tau[i*d:(i+1)*d], n).A)
	})
	linWrite(k, k.Out[0], data)
}

func ormqrKernel[T linalg.Scalar](k *Kernel) {
	data, tau, c := linRead[T](k, k.T(0)), linRead[T](k, k.T(1)), linRead[T](k, k.T(2))
	batch, m, n := linDims(k.T(0))
	_, cm, cn := linDims(k.T(2))
	d := len(tau) / max(batch, 1)
	eachMatrix(k, batch, m*n*cn, func(i int) {
		linalg.MulQ(linMat(data, i, m, n), tau[i*d:(i+1)*d], linMat(c, i, cm, cn), k.Bool(3), k.Bool(4))
	})
	linWrite(k, k.Out[0], c)
}

func ldlKernel[T linalg.Scalar](k *Kernel) {
	data := linRead[T](k, k.T(0))
	batch, n, _ := linDims(k.T(0))
	piv, info := make([]int32, batch*n), make([]int32, batch)
	eachMatrix(k, batch, n*n*n, func(i int) {
		m := linMat(data, i, n, n)
		info[i] = int32(linalg.LDL(m, piv[i*n:(i+1)*n], k.Bool(1)))
		for r := range n {
			clear(m.Row(r)[r+1:])
		}
	})
	linWrite(k, k.Out[0], data)
	linWrite(k, k.Out[1], piv)
	linWrite(k, k.Out[2], info)
	if k.Bool(2) {
		checkInfo(k.Out[2], "torch.linalg.ldl_factor_ex", k.T(0).Dim() == 2)
	}
}

// solveCholesky overwrites b with the solution of A*X = b, where A is L*L^H, or U^H*U if upper.
func solveCholesky[T linalg.Scalar](f, b linalg.Mat[T], upper bool) {
	h := f.H()
	l, u := f, h
	if upper {
		l, u = h, f
	}
	linalg.SolveTri(l, b, false, false)
	linalg.SolveTri(u, b, true, false)
}

// linVector reports that other, in a solver with matrices a, stands for vectors and not for matrices.
func linVector(a, other *Value) bool {
	return other.Dim() == 1 || (a.Dim()-1 == other.Dim() && SameSizes(other.Sizes, a.Sizes[:a.Dim()-1]))
}

// linSolveSizes gives the sizes of the right side and the matrices of a solver after broadcasting their batches.
func linSolveSizes(a, b *Value) (as, bs []symbolic.Int) {
	x, y := &Value{}, &Value{}
	x.Sizes, y.Sizes = a.Sizes[:a.Dim()-2], b.Sizes[:b.Dim()-2]
	batch := broadcast2(x.Sizes, y.Sizes)
	join := func(v *Value) []symbolic.Int {
		return append(append([]symbolic.Int{}, batch...), v.Size(-2), v.Size(-1))
	}
	return join(a), join(b)
}
