package aten

import (
	"fmt"
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// linalgOps are norms, ranks, powers and other formulas over matrices.
var linalgOps = []Op{
	{Schema: "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", Decomp: linalgNorm},
	{Schema: "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		dims := a.I64s(2)
		if !a.Has(2) {
			dims = []int64{-2, -1}
		}
		Check(len(dims) == 2, "linalg.norm: If dim is specified, it must be of length 1 or 2. Got %v", dims)
		return One(matrixNorm(b, a.Tensor(0), a.Str(1), 0, dims, a.Bool(3), a.V[4]))
	}},
	{Schema: "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(matrixNorm(b, a.Tensor(0), "", a.Scalar(1).Float64(), a.I64s(2), a.Bool(3), a.V[4]))
	}},
	{Schema: "linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(matrixNorm(b, a.Tensor(0), a.Str(1), 0, a.I64s(2), a.Bool(3), a.V[4]))
	}},
	{Schema: "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(matrixNorm(b, a.Tensor(0), "nuc", 0, []int64{-2, -1}, a.Bool(1), nil))
	}},
	{Schema: "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(matrixNorm(b, a.Tensor(0), "nuc", 0, a.I64s(1), a.Bool(2), nil))
	}},
	{Schema: "linalg_cond(Tensor self, Scalar? p=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		p := 2.0
		if s, ok := a.OptScalar(1); ok {
			p = s.Float64()
		}
		return One(conditionNumber(b, a.Tensor(0), "", p))
	}},
	{Schema: "linalg_cond.p_str(Tensor self, str p) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(conditionNumber(b, a.Tensor(0), a.Str(1), 0))
	}},
	{Schema: "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		atol, rtol := rankTolerances(b, a.Tensor(0), a.OptTensor(1), a.OptTensor(2))
		return One(matrixRank(b, a.Tensor(0), atol, rtol, a.Bool(3)))
	}},
	{Schema: "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		atol, rtol := rankTolerances(b, a.Tensor(0), floatTensor(b, a, 1), floatTensor(b, a, 2))
		return One(matrixRank(b, a.Tensor(0), atol, rtol, a.Bool(3)))
	}},
	{Schema: "linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(matrixRank(b, a.Tensor(0), floatTensor(b, a, 1), nil, a.Bool(2)))
	}},
	{Schema: "linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(matrixRank(b, a.Tensor(0), a.Tensor(1), nil, a.Bool(2)))
	}},
	{Schema: "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(pinv(b, a.Tensor(0), a.OptTensor(1), a.OptTensor(2), a.Bool(3)))
	}},
	{Schema: "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(pinv(b, a.Tensor(0), floatTensor(b, a, 1), floatTensor(b, a, 2), a.Bool(3)))
	}},
	{Schema: "linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(pinv(b, a.Tensor(0), realTensor(b, a.Tensor(0), 0), floatTensor(b, a, 1), a.Bool(2)))
	}},
	{Schema: "linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(pinv(b, a.Tensor(0), realTensor(b, a.Tensor(0), 0), a.Tensor(1), a.Bool(2)))
	}},
	{Schema: "pinverse(Tensor self, float rcond=1e-15) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(pinv(b, a.Tensor(0), realTensor(b, a.Tensor(0), 0), floatTensor(b, a, 1), false))
	}},
	{Schema: "linalg_matrix_power(Tensor self, int n) -> Tensor", Decomp: matrixPower},
	{Schema: "matrix_power(Tensor self, int n) -> Tensor", Decomp: matrixPower},
	{Schema: "linalg_matrix_sqrth(Tensor self) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		linSquare(x, "linalg.matrix_sqrth")
		linFloat(x, "linalg.matrix_sqrth", "")
		r := b.CallN("_linalg_eigh", x)
		s := b.Call("unsqueeze", b.Call("sqrt", b.Call("clamp_min", r[0], 0)), -2)
		return One(b.Call("matmul", b.Call("mul.Tensor", r[1], s), b.Call("mH", r[1])))
	}},
	{Schema: "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, y := a.Tensor(0), a.Tensor(1)
		if x.Dim() == 1 && y.Dim() == 1 {
			return One(b.Call("vdot", x, y))
		}
		if x.DType.IsComplex() {
			x = b.Call("conj_physical", x)
		}
		x = b.Call("unsqueeze", b.Call("movedim.int", x, a.V[2], -1), -2)
		y = b.Call("unsqueeze", b.Call("movedim.int", y, a.V[2], -1), -1)
		return One(b.Call("squeeze.dims", b.Call("matmul", x, y), []int{-2, -1}))
	}},
}

func linalgNorm(b *Build, a *Args) []*Value {
	x, dims := a.Tensor(0), a.I64s(2)
	ord, given := a.OptScalar(1)
	Check(!a.Has(2) || len(dims) == 1 || len(dims) == 2 || !given, "linalg.norm: If dim is specified, it must be of length 1 or 2. Got %v", dims)
	Check(!given || a.Has(2) || x.Dim() == 1 || x.Dim() == 2, "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got %dD.", x.Dim())
	if given && (len(dims) == 2 || !a.Has(2) && x.Dim() == 2) {
		if !a.Has(2) {
			dims = []int64{0, 1}
		}
		return One(matrixNorm(b, x, "", ord.Float64(), dims, a.Bool(3), a.V[4]))
	}
	if !given {
		ord = IntS(2)
	}
	return One(b.Call("linalg_vector_norm", x, ord, a.V[2], a.V[3], Kw("dtype", a.V[4])))
}

// matrixNorm is the norm of the matrices over two dimensions: by name ("fro", "nuc") or by number if the name is empty.
func matrixNorm(b *Build, x *Value, name string, ord float64, dims []int64, keep bool, dtype any) *Value {
	const api = "linalg.matrix_norm"
	linMatrix(x, api)
	if !x.DType.IsFloat() && !x.DType.IsComplex() {
		linFloat(x, api, "")
	}
	Check(len(dims) == 2, "%s: dim must be a 2-tuple. Got %v", api, dims)
	d0, d1 := WrapDim(dims[0], x.Dim()), WrapDim(dims[1], x.Dim())
	Check(d0 != d1, "%s: dims must be different. Got (%d, %d)", api, dims[0], dims[1])
	abs := math.Abs(ord)
	switch {
	case name == "fro":
		return b.Call("linalg_vector_norm", x, 2, dims, keep, Kw("dtype", dtype))
	case name != "" && name != "nuc":
		Fail("%s: Order %s not supported.", api, name)
	case name == "" && abs != 1 && abs != 2 && !math.IsInf(abs, 1):
		Fail("%s: Order %s not supported.", api, orderText(ord))
	case name == "" && abs != 2:
		sum, best := d0, d1
		if abs != 1 {
			sum, best = d1, d0
		}
		r := b.Call("linalg_vector_norm", x, 1, []int{sum}, keep, Kw("dtype", dtype))
		if !keep && sum < best {
			best--
		}
		return extremeNorm(b, r, best, ord > 0, keep)
	}
	if dt, ok := dtype.(tensor.DType); ok && dt != tensor.Invalid {
		x = b.Call("to.dtype", x, dt)
	}
	s := svdvals(b, b.Call("permute", x, lastTwo(x.Dim(), d0, d1)), nil)
	switch {
	case name == "nuc":
		s = b.Call("sum.dim_IntList", s, []int{-1}, keep)
	default:
		s = extremeNorm(b, s, s.Dim()-1, ord > 0, keep)
	}
	if !keep {
		return s
	}
	// The kept dimensions go back to their places.
	back := make([]int, x.Dim())
	for i, d := range lastTwo(x.Dim(), d0, d1) {
		back[d] = i
	}
	return b.Call("permute", b.Call("unsqueeze", s, -1), back)
}

// extremeNorm is the largest or the smallest norm along dimension d; the largest of none is 0.
func extremeNorm(b *Build, r *Value, d int, largest, keep bool) *Value {
	switch {
	case !largest:
		return b.Call("amin", r, []int{d}, keep)
	case r.Sizes[d].Eq(symbolic.N(0)):
		return b.Call("sum.dim_IntList", r, []int{d}, keep)
	}
	return b.Call("amax", r, []int{d}, keep)
}

// lastTwo is the permutation that moves dimensions d0 and d1 to the end.
func lastTwo(n, d0, d1 int) []int {
	perm := make([]int, 0, n)
	for d := range n {
		if d != d0 && d != d1 {
			perm = append(perm, d)
		}
	}
	return append(perm, d0, d1)
}

func orderText(ord float64) string {
	if ord == math.Trunc(ord) {
		return fmt.Sprint(int64(ord))
	}
	return fmt.Sprint(ord)
}

// conditionNumber is norm(x)*norm(x^-1): infinite for a singular matrix.
func conditionNumber(b *Build, x *Value, name string, ord float64) *Value {
	Check(x.Dim() >= 2, "linalg.cond: The input tensor must have at least 2 dimensions.")
	if name == "" && math.Abs(ord) == 2 {
		s := svdvals(b, x, nil)
		if s.Size(-1).Eq(symbolic.N(0)) {
			return b.Call("new_zeros", s, s.Sizes[:s.Dim()-1])
		}
		first, last := b.Call("select.int", s, -1, 0), b.Call("select.int", s, -1, -1)
		if ord < 0 {
			first, last = last, first
		}
		return b.Call("div.Tensor", first, last)
	}
	text := name
	if text == "" {
		text = orderText(ord)
	}
	linSquare(x, "linalg.cond(ord="+text+")")
	if x.Numel().Eq(symbolic.N(0)) {
		return b.Call("new_zeros", x, linBatch(x), Kw("dtype", x.DType.Real()))
	}
	if name == "nuc" {
		s := svdvals(b, x, nil)
		last := []int{-1}
		return b.Call("mul.Tensor", b.Call("sum.dim_IntList", s, last), b.Call("sum.dim_IntList", b.Call("reciprocal", s), last))
	}
	r := b.CallN("linalg_inv_ex", x)
	bad := b.Call("unsqueeze", b.Call("unsqueeze", b.Call("gt.Scalar", r[1], 0), -1), -1)
	inv := b.Call("masked_fill.Scalar", r[0], bad, math.Inf(1))
	dims := []int64{-2, -1}
	return b.Call("mul.Tensor", matrixNorm(b, x, name, ord, dims, false, nil), matrixNorm(b, inv, name, ord, dims, false, nil))
}

// realTensor is a number as a 0-d float64 tensor beside x.
func realTensor(b *Build, x *Value, v float64) *Value {
	return b.Call("new_full", x, []int{}, v, Kw("dtype", tensor.Float64))
}

// floatTensor is an optional float argument as a tensor, nil for None.
func floatTensor(b *Build, a *Args, i int) *Value {
	v, ok := a.OptFloat(i)
	if !ok {
		return nil
	}
	return realTensor(b, a.Tensor(0), v)
}

// rankTolerances fills in what was not given: no absolute tolerance, and max(M, N)*eps as the relative one unless an absolute
// one was asked for.
func rankTolerances(b *Build, x *Value, atol, rtol *Value) (*Value, *Value) {
	given := atol
	if atol == nil {
		atol = realTensor(b, x, 0)
	}
	if rtol == nil {
		linMatrix(x, "torch.linalg.matrix_rank")
		eps := machineEps(x.DType) * float64(max(x.Size(-1).Int64(), x.Size(-2).Int64()))
		rtol = realTensor(b, x, eps)
		if given != nil {
			rtol = b.Call("where.self", b.Call("gt.Scalar", given, 0), realTensor(b, x, 0), rtol)
		}
	}
	return atol, rtol
}

func matrixRank(b *Build, x, atol, rtol *Value, hermitian bool) *Value {
	linMatrix(x, "torch.linalg.matrix_rank")
	Check(linField(x.DType), "This function doesn't handle types other than float and double")
	Check(!atol.DType.IsComplex() && (rtol == nil || !rtol.DType.IsComplex()), "torch.linalg.matrix_rank: tol tensor of complex type is not supported.")
	if x.Numel().Eq(symbolic.N(0)) {
		return b.Call("new_zeros", x, linBatch(x), Kw("dtype", tensor.Int64))
	}
	var s *Value
	if hermitian {
		linSquare(x, "linalg.matrix_rank")
		s = b.Call("abs", b.Call("linalg_eigvalsh", x))
	} else {
		s = svdvals(b, x, nil)
	}
	tol := b.Call("unsqueeze", atol, -1)
	if rtol != nil {
		rel := b.Call("mul.Tensor", b.Call("unsqueeze", rtol, -1), b.Call("amax", s, []int{-1}, true))
		tol = b.Call("maximum", tol, rel)
	}
	return b.Call("sum.dim_IntList", b.Call("gt.Tensor", s, tol), []int{-1})
}

// pinv is the Moore-Penrose inverse by singular values or eigenvalues; those below the tolerance count as 0.
func pinv(b *Build, x, atol, rtol *Value, hermitian bool) *Value {
	if x.Dim() < 2 || !linField(x.DType) {
		Fail("linalg.pinv(%s{%s}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types", x.DType.CPPName(), sizesText(x.Sizes))
	}
	m, n := x.Size(-2), x.Size(-1)
	if x.Numel().Eq(symbolic.N(0)) {
		return b.Call("new_empty", x, linBatch(x, n, m))
	}
	atol, rtol = rankTolerances(b, x, atol, rtol)
	atol, rtol = b.Call("unsqueeze", atol, -1), b.Call("unsqueeze", rtol, -1)
	inverted := func(s, size *Value) *Value {
		tol := b.Call("maximum", atol, b.Call("mul.Tensor", rtol, b.Call("amax", size, []int{-1}, true)))
		inv := b.Call("where.self", b.Call("gt.Tensor", size, tol), b.Call("reciprocal", s), b.Call("new_zeros", s, []int{}))
		return b.Call("unsqueeze", b.Call("to.dtype", inv, x.DType), -2)
	}
	if hermitian {
		linSquare(x, "linalg.pinv")
		r := b.CallN("_linalg_eigh", x)
		return b.Call("matmul", b.Call("mul.Tensor", r[1], inverted(r[0], b.Call("abs", r[0]))), b.Call("mH", r[1]))
	}
	r := b.CallN("_linalg_svd", x, false, true)
	return b.Call("matmul", b.Call("mul.Tensor", b.Call("mH", r[2]), inverted(r[1], r[1])), b.Call("mH", r[0]))
}

// matrixPower multiplies by repeated squaring.
func matrixPower(b *Build, a *Args) []*Value {
	x, n := a.Tensor(0), a.I64(1)
	linSquare(x, "linalg.matrix_power")
	switch {
	case n == 0:
		eye := b.Call("eye", x.Size(-1), Kw("dtype", x.DType))
		return One(b.Call("clone", b.Call("expand", eye, x.Sizes), Kw("memory_format", ContiguousFormat)))
	case n == 1:
		return One(b.Call("clone", x))
	case n == -1:
		return One(b.Call("linalg_inv", x))
	case n < 0:
		x, n = b.Call("linalg_inv", x), -n
	}
	var r *Value
	for ; ; n >>= 1 {
		if n&1 == 1 {
			if r == nil {
				r = x
			} else {
				r = b.Call("matmul", r, x)
			}
		}
		if n == 1 {
			return One(r)
		}
		x = b.Call("matmul", x, x)
	}
}
