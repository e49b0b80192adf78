package aten

import (
	"math"

	"github.com/pt2go/pt2/internal/linalg"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// linalgSolveOps solve systems of equations.
var linalgSolveOps = []Op{
	{Schema: "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)", Shape: shapeSolve,
		CPU: linKernel(solveKernel[float64], solveKernel[complex128])},
	{Schema: "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)", Decomp: func(b *Build, a *Args) []*Value {
		r := b.CallN("_linalg_solve_ex", a.Tensor(0), a.Tensor(1), Kw("left", a.V[2]), Kw("check_errors", a.V[3]))
		return []*Value{r[0], r[3]}
	}},
	{Schema: "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(linChecked(b, "torch.linalg.solve", a.Tensor(0), "_linalg_solve_ex", a.Tensor(0), a.Tensor(1), Kw("left", a.V[2]))[0])
	}},
	{Schema: "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor", Shape: func(a *Args) []Meta {
		x, p, y := a.Tensor(0), a.Tensor(1), a.Tensor(2)
		const name = "linalg.lu_solve"
		linFloat(x, name, "lu_solve_cpu")
		Check(x.DType == y.DType, "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type %s and B of type %s instead", x.DType.CPPName(), y.DType.CPPName())
		Check(p.DType == tensor.Int32, "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
		linSquare(x, name)
		linCompatible(x, y, a.Bool(3), name)
		Check(SameSizes(p.Sizes, x.Sizes[:x.Dim()-1]), "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
		_, bs := linSolveSizes(x, y)
		if a.Bool(3) {
			return []Meta{colMajor(y.DType, bs)}
		}
		return []Meta{Contig(y.DType, bs...)}
	}, CPU: linKernel(luSolveKernel[float64], luSolveKernel[complex128])},
	{Schema: "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("linalg_lu_solve", a.Tensor(1), a.Tensor(2), a.Tensor(0)))
	}},
	{Schema: "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor", Shape: func(a *Args) []Meta {
		x, y := a.Tensor(0), a.Tensor(1)
		const name = "linalg.solve_triangular"
		linSameType(x, y, name)
		linSquare(x, name)
		linTyped(x, "triangular_solve_cpu")
		linCompatible(x, y, a.Bool(3), name)
		_, bs := linSolveSizes(x, y)
		return []Meta{colMajor(y.DType, bs)}
	}, CPU: linKernel(triangularKernel[float64], triangularKernel[complex128])},
	{Schema: "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)", Shape: func(a *Args) []Meta {
		y, x := a.Tensor(0), a.Tensor(1)
		Check(y.Dim() >= 2, "torch.triangular_solve: Expected b to have at least 2 dimensions, but it has %d dimensions instead", y.Dim())
		Check(x.Dim() >= 2, "torch.triangular_solve: Expected A to have at least 2 dimensions, but it has %d dimensions instead", x.Dim())
		linSquare(x, "triangular_solve")
		linTyped(x, "triangular_solve_cpu")
		linCompatible(x, y, true, "triangular_solve")
		as, bs := linSolveSizes(x, y)
		return []Meta{colMajor(y.DType, bs), colMajor(x.DType, as)}
	}, CPU: linKernel(triangularSolve[float64], triangularSolve[complex128])},
	{Schema: "_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor", Shape: func(a *Args) []Meta {
		linTyped(a.Tensor(0), "cholesky_cpu")
		return []Meta{colMajor(a.Tensor(0).DType, a.Tensor(0).Sizes)}
	}, CPU: linKernel(choleskySolve[float64], choleskySolve[complex128])},
	{Schema: "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		y, x := a.Tensor(0), a.Tensor(1)
		Check(y.Dim() >= 2, "b should have at least 2 dimensions, but has %d dimensions instead", y.Dim())
		Check(x.Dim() >= 2, "u should have at least 2 dimensions, but has %d dimensions instead", x.Dim())
		linSquare(x, "cholesky_solve")
		linCompatible(x, y, true, "cholesky_solve")
		as, bs := linSolveSizes(x, y)
		return One(b.Call("_cholesky_solve_helper", b.Call("expand", y, bs), b.Call("expand", x, as), a.V[2]))
	}},
	{Schema: "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor", Shape: func(a *Args) []Meta {
		x, p, y := a.Tensor(0), a.Tensor(1), a.Tensor(2)
		const name = "torch.linalg.ldl_solve"
		linSquare(x, name)
		linFloat(x, name, "ldl_solve_kernel_cpu")
		Check(y.Dim() >= 2, "%s: Expected B to have at least 2 dimensions, but it has %d dimensions instead", name, y.Dim())
		Check(SameSizes(p.Sizes, x.Sizes[:x.Dim()-1]), "%s: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape %s instead", name, sizesText(p.Sizes))
		Check(p.DType.IsInt(), "%s: Expected pivots to be integers. Got %s", name, p.DType.CPPName())
		Check(x.DType == y.DType, "%s: LD dtype %s does not match b dtype %s", name, x.DType.CPPName(), y.DType.CPPName())
		linCompatible(x, y, true, name)
		_, bs := linSolveSizes(x, y)
		return []Meta{colMajor(y.DType, bs)}
	}, CPU: linKernel(ldlSolveKernel[float64], ldlSolveKernel[complex128])},
	{Schema: "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)", Tags: DataDependent, Dynamic: func(k *Kernel) []*tensor.Tensor {
		if k.T(0).DType().IsComplex() {
			return lstsq[complex128](k)
		}
		return lstsq[float64](k)
	}},
	{Schema: "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, y := a.Tensor(0), a.Tensor(1)
		if a.Has(2) {
			to := make([]int64, len(a.I64s(2)))
			for i := range to {
				to[i] = int64(i - len(to))
			}
			x = b.Call("movedim.intlist", x, a.V[2], to)
		}
		sizes := append([]symbolic.Int{}, x.Sizes[min(y.Dim(), x.Dim()):]...)
		n, m := symbolic.Prod(sizes...), symbolic.Prod(x.Sizes[:min(y.Dim(), x.Dim())]...)
		Check(n.Eq(m), "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got %v != %v", n, m)
		r := b.Call("linalg_solve", b.Call("reshape", x, []symbolic.Int{n, n}), b.Call("flatten.using_ints", y))
		return One(b.Call("reshape", r, sizes))
	}},
	{Schema: "linalg_tensorinv(Tensor self, int ind=2) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, ind := a.Tensor(0), int(a.I64(1))
		Check(ind > 0, "Expected a strictly positive integer for 'ind'")
		at := min(ind, x.Dim())
		n, m := symbolic.Prod(x.Sizes[at:]...), symbolic.Prod(x.Sizes[:at]...)
		Check(n.Eq(m), "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got %v != %v", n, m)
		sizes := append(append([]symbolic.Int{}, x.Sizes[at:]...), x.Sizes[:at]...)
		return One(b.Call("reshape", b.Call("linalg_inv", b.Call("reshape", x, []symbolic.Int{n, n})), sizes))
	}},
}

func linSameType(x, y *Value, name string) {
	Check(x.DType == y.DType, "%s: Expected A and B to have the same dtype, but found A of type %s and B of type %s instead", name, x.DType.CPPName(), y.DType.CPPName())
}

// linCompatible refuses sides of an equation that do not fit.
func linCompatible(a, b *Value, left bool, name string) {
	linMatrix(b, name)
	ok, eq := a.Size(-2).Eq(b.Size(-2)), "AX = B"
	if !left {
		ok, eq = a.Size(-1).Eq(b.Size(-1)), "XA = B"
	}
	Check(ok, "%s: Incompatible shapes of A and B for the equation %s (%vx%v and %vx%v)", name, eq, a.Size(-2), a.Size(-1), b.Size(-2), b.Size(-1))
}

func shapeSolve(a *Args) []Meta {
	x, y := a.Tensor(0), a.Tensor(1)
	const name = "linalg.solve"
	linFloat(x, name, "")
	linSameType(x, y, name)
	linSquare(x, name)
	vec := linVector(x, y)
	if vec {
		Check(a.Bool(2), "%s: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)", name)
		v := *y
		v.Sizes = append(append([]symbolic.Int{}, y.Sizes...), symbolic.N(1))
		y = &v
	}
	linCompatible(x, y, a.Bool(2), name)
	as, bs := linSolveSizes(x, y)
	if vec {
		bs = bs[:len(bs)-1]
	}
	result := Contig(x.DType, bs...)
	if a.Bool(2) {
		result = colMajor(x.DType, bs)
	}
	n := len(as)
	return []Meta{result, colMajor(x.DType, as), Contig(tensor.Int32, as[:n-1]...), Contig(tensor.Int32, as[:n-2]...)}
}

// linExpand views t's matrices over the batch of sizes.
func linExpand(t *tensor.Tensor, batch []int64) *tensor.Tensor {
	n := len(batch)
	sizes, strides := make([]int64, n+2), make([]int64, n+2)
	copy(sizes, batch)
	for i := range 2 {
		sizes[n+i], strides[n+i] = t.Sizes()[t.Dim()-2+i], t.Strides()[t.Dim()-2+i]
	}
	for i := range t.Dim() - 2 {
		at := n - (t.Dim() - 2) + i
		if t.Sizes()[i] != 1 {
			strides[at] = t.Strides()[i]
		}
	}
	return t.WithView(sizes, strides, t.Offset())
}

// linColumn views vectors as matrices of one column.
func linColumn(t *tensor.Tensor) *tensor.Tensor {
	return t.WithView(append(append([]int64{}, t.Sizes()...), 1), append(append([]int64{}, t.Strides()...), 1), t.Offset())
}

func solveKernel[T linalg.Scalar](k *Kernel) {
	as := k.Out[1].Sizes()
	batchSizes := as[:len(as)-2]
	y := k.T(1)
	if linVector(k.Tensor(0), k.Tensor(1)) {
		y = linColumn(y)
	}
	y = linExpand(y, batchSizes)
	kk := &Kernel{Args: &Args{Op: k.Op, V: []any{FromTensor(linExpand(k.T(0), batchSizes))}}, Pool: k.Pool}
	lu, piv, info := luRead[T](kk)
	b := linRead[T](k, y)
	batch, r, c := linDims(y)
	n := int(as[len(as)-1])
	eachMatrix(k, batch, n*n*(r+c), func(i int) {
		if info[i] == 0 || n == 0 {
			solveSide(linMat(lu, i, n, n), piv[i*n:(i+1)*n], linMat(b, i, r, c), k.Bool(2), false)
		}
	})
	linWrite(k, k.Out[0], b)
	linWrite(k, k.Out[1], lu)
	linWrite(k, k.Out[2], piv)
	linWrite(k, k.Out[3], info)
	if k.Bool(3) {
		checkInfo(k.Out[3], "torch.linalg.solve_ex", k.T(0).Dim() == 2)
	}
}

// solveSide solves A*X = b, X*A = b, or the same for A^H, over b.
func solveSide[T linalg.Scalar](lu linalg.Mat[T], piv []int32, b linalg.Mat[T], left, adjoint bool) {
	if left {
		linalg.SolveLU(lu, piv, b, adjoint)
		return
	}
	h := b.H() // X*A = B is A^H*X^H = B^H
	linalg.SolveLU(lu, piv, h, !adjoint)
	copy(b.A, h.H().A)
}

func luSolveKernel[T linalg.Scalar](k *Kernel) {
	sizes := k.Out[0].Sizes()
	batchSizes := sizes[:len(sizes)-2]
	lu := linRead[T](k, linExpand(k.T(0), batchSizes))
	p := linColumn(k.T(1))
	piv := tensor.Contiguous[int32](k.as(linExpand(p, batchSizes), tensor.Int32))
	b := linRead[T](k, linExpand(k.T(2), batchSizes))
	batch, r, c := linDims(k.Out[0])
	_, n, _ := linDims(k.T(0))
	eachMatrix(k, batch, n*n*(r+c), func(i int) {
		solveSide(linMat(lu, i, n, n), checkedPivots(piv[i*n:(i+1)*n], n), linMat(b, i, r, c), k.Bool(3), k.Bool(4))
	})
	linWrite(k, k.Out[0], b)
}

func triangularKernel[T linalg.Scalar](k *Kernel) {
	upper, left, unit := k.Bool(2), k.Bool(3), k.Bool(4)
	sizes := k.Out[0].Sizes()
	a := linRead[T](k, linExpand(k.T(0), sizes[:len(sizes)-2]))
	b := linRead[T](k, linExpand(k.T(1), sizes[:len(sizes)-2]))
	batch, r, c := linDims(k.Out[0])
	_, n, _ := linDims(k.T(0))
	eachMatrix(k, batch, n*r*c, func(i int) {
		m, x := linMat(a, i, n, n), linMat(b, i, r, c)
		if left {
			linalg.SolveTri(m, x, upper, unit)
			return
		}
		h := x.H()
		linalg.SolveTri(m.H(), h, !upper, unit)
		copy(x.A, h.H().A)
	})
	linWrite(k, k.Out[0], b)
}

func triangularSolve[T linalg.Scalar](k *Kernel) {
	upper, trans, unit := k.Bool(2), k.Bool(3), k.Bool(4)
	sizes := k.Out[0].Sizes()
	a := linRead[T](k, linExpand(k.T(1), sizes[:len(sizes)-2]))
	b := linRead[T](k, linExpand(k.T(0), sizes[:len(sizes)-2]))
	batch, r, c := linDims(k.Out[0])
	_, n, _ := linDims(k.T(1))
	eachMatrix(k, batch, n*r*c, func(i int) {
		m := linMat(a, i, n, n)
		if trans {
			m = m.H()
			for j := range m.A {
				m.A[j] = linalg.Conj(m.A[j])
			}
		}
		linalg.SolveTri(m, linMat(b, i, r, c), upper != trans, unit)
	})
	linWrite(k, k.Out[0], b)
	linWrite(k, k.Out[1], a)
}

func choleskySolve[T linalg.Scalar](k *Kernel) {
	b, a := linRead[T](k, k.T(0)), linRead[T](k, k.T(1))
	batch, r, c := linDims(k.T(0))
	eachMatrix(k, batch, r*r*c, func(i int) { solveCholesky(linMat(a, i, r, r), linMat(b, i, r, c), k.Bool(2)) })
	linWrite(k, k.Out[0], b)
}

func ldlSolveKernel[T linalg.Scalar](k *Kernel) {
	sizes := k.Out[0].Sizes()
	batchSizes := sizes[:len(sizes)-2]
	a := linRead[T](k, linExpand(k.T(0), batchSizes))
	piv := tensor.Contiguous[int32](k.as(linExpand(linColumn(k.T(1)), batchSizes), tensor.Int32))
	b := linRead[T](k, linExpand(k.T(2), batchSizes))
	batch, r, c := linDims(k.Out[0])
	eachMatrix(k, batch, r*r*c, func(i int) {
		ok := linalg.SolveLDL(linMat(a, i, r, r), piv[i*r:(i+1)*r], linMat(b, i, r, c), k.Bool(3))
		Check(ok, "torch.linalg.ldl_solve: the pivots are not those of torch.linalg.ldl_factor")
	})
	linWrite(k, k.Out[0], b)
}

// lstsq gives the solution of least norm by singular values, whatever the driver; the drivers differ in which of the other
// results they give.
func lstsq[T linalg.Scalar](k *Kernel) []*tensor.Tensor {
	x, y := k.Tensor(0), k.Tensor(1)
	driver := lstsqCheck(k, x, y)
	yt := k.T(1)
	vec := x.Dim()-1 == y.Dim() && SameSizes(y.Sizes, x.Sizes[:x.Dim()-1])
	if vec {
		yt = linColumn(yt)
	}
	yv := FromTensor(yt)
	Check(x.Size(-2).Eq(yv.Size(-2)), "torch.linalg.lstsq: input.size(-2) should match other.size(-2)")
	as, bs := linSolveSizes(x, yv)
	batchSizes := Int64s(as[:len(as)-2])
	xt := linExpand(k.T(0), batchSizes)
	a, b := linRead[T](k, xt), linRead[T](k, linExpand(yt, batchSizes))
	batch, m, n := linDims(xt)
	c := int(bs[len(bs)-1].Int64())
	rcond, given := k.OptFloat(2)
	if !given {
		rcond = machineEps(x.DType) * float64(max(m, n))
	}
	d := min(m, n)
	sol, res := make([]T, batch*n*c), make([]float64, batch*c)
	rank, sing := make([]int64, batch), make([]float64, batch*d)
	full := true
	for i := range batch {
		ai, bi := linMat(a, i, m, n), linMat(b, i, m, c)
		u, s, vh, ok := linalg.SVD(ai.Clone(), true, false)
		if !ok {
			FailAs("LinAlgError", "torch.linalg.lstsq: The least squares solution could not be computed because the input matrix does not have full rank (error code: %d).", i+1)
		}
		ub := linalg.Mul(u.H(), bi)
		for j, v := range s {
			keep := v > rcond*s[0] || driver == "gels" && v > 0
			f := 0.0
			if keep {
				f = 1 / v
				rank[i]++
			}
			for q := range ub.Row(j) {
				ub.Row(j)[q] *= linalg.FromReal[T](f)
			}
		}
		copy(sing[i*d:], s)
		xi := linalg.Mul(vh.H(), ub)
		copy(linMat(sol, i, n, c).A, xi.A)
		full = full && rank[i] == int64(n)
		for j, v := range linalg.Mul(ai, xi).A {
			r := linalg.Abs(bi.A[j] - v)
			res[i*c+j%c] += r * r
		}
	}
	return lstsqResults(k, driver, batchSizes, m, n, c, vec, full, sol, res, rank, sing)
}

// lstsqCheck refuses bad arguments and names the driver.
func lstsqCheck(k *Kernel, x, y *Value) string {
	Check(x.Dim() >= 2, "torch.linalg.lstsq: input must have at least 2 dimensions.")
	Check(y.Dim() >= 1, "torch.linalg.lstsq: other must have at least 1 dimension.")
	linTyped(x, "linalg_lstsq_cpu")
	Check(x.DType == y.DType, "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype %s and other's dtype %s", x.DType.CPPName(), y.DType.CPPName())
	diff := x.Dim() - y.Dim()
	Check(diff >= 0, "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1")
	Check(diff <= 1, "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1")
	switch d := k.Str(3); d {
	case "":
		return "gelsy"
	case "gels", "gelsy", "gelsd", "gelss":
		return d
	}
	Fail("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
	return ""
}

func machineEps(dt tensor.DType) float64 {
	if dt.Real() == tensor.Float32 {
		return 0x1p-23
	}
	return 0x1p-52
}

func lstsqResults[T linalg.Scalar](k *Kernel, driver string, batch []int64, m, n, c int, vec, full bool, sol []T, res []float64, rank []int64, sing []float64) []*tensor.Tensor {
	dt := k.T(0).DType()
	re := dt.Real()
	with := func(tail ...int64) []int64 { return append(append([]int64{}, batch...), tail...) }
	empty := func(dt tensor.DType) *tensor.Tensor { return tensor.New(dt, 0) }
	// The solution is a view of a column-major matrix with max(M, N) rows.
	sizes := with(int64(n), int64(c))
	strides := tensor.ContiguousStrides(with(int64(max(m, n)), int64(c)))
	strides[len(strides)-2], strides[len(strides)-1] = 1, int64(max(m, n, 1))
	x := tensor.NewStrided(dt, sizes, strides)
	linWrite(k, x, sol)
	if vec {
		x = x.WithView(sizes[:len(sizes)-1], strides[:len(strides)-1], 0)
	}
	out := []*tensor.Tensor{x, empty(re), empty(tensor.Int64), empty(re)}
	if m > n && driver != "gelsy" && (full || driver == "gels") {
		out[1] = tensor.New(re, with(int64(c))...)
		linWrite(k, out[1], res)
	}
	if driver != "gels" {
		out[2] = tensor.New(tensor.Int64, batch...)
		linWrite(k, out[2], rank)
	}
	if driver == "gelsd" || driver == "gelss" {
		out[3] = tensor.New(re, with(int64(math.Min(float64(m), float64(n))))...)
		linWrite(k, out[3], sing)
	}
	return out
}
