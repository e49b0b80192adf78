package aten

import (
	"math"
	"slices"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// quantileOps are quantiles and the reductions that leave NaN out.
var quantileOps = []Op{
	{Schema: "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor", Shape: shapeQuantile, CPU: func(k *Kernel) { quantileKernel(k, false) }},
	{Schema: "nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor", Shape: shapeQuantile, CPU: func(k *Kernel) { quantileKernel(k, true) }},
	{Schema: "quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor", Decomp: scalarQuantile("quantile")},
	{Schema: "nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor", Decomp: scalarQuantile("nanquantile")},
	{Schema: "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		if !x.DType.IsFloat() && !x.DType.IsComplex() {
			Fail("nanmean(): expected input to have floating point or complex dtype but got %s", x.DType.CPPName())
		}
		n := b.Call("sum.dim_IntList", b.Call("logical_not", b.Call("isnan", x)), a.V[1], a.V[2])
		return One(b.Call("div.Tensor", b.Call("nansum", x, a.V[1], a.V[2], Kw("dtype", a.V[3])), n))
	}},
	{Schema: "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("linalg_vector_norm", b.Call("sub.Tensor", a.Tensor(0), a.Tensor(1)), a.Scalar(2)))
	}},
	{Schema: "sum_to_size(Tensor self, SymInt[] size) -> Tensor", Decomp: sumToSize},
	{Schema: "trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", Decomp: trapezoidX("sum.dim_IntList")},
	{Schema: "trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", Decomp: trapezoidX("sum.dim_IntList")},
	{Schema: "trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", Decomp: trapezoidDX("sum.dim_IntList")},
	{Schema: "trapz.dx(Tensor y, *, float dx=1, int dim=-1) -> Tensor", Decomp: trapezoidDX("sum.dim_IntList")},
	{Schema: "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", Decomp: trapezoidX("cumsum")},
	{Schema: "cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", Decomp: trapezoidDX("cumsum")},
}

func scalarQuantile(name string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value {
		q := b.Call("scalar_tensor", FloatS(a.Float(1)), Kw("dtype", a.Tensor(0).DType))
		return One(b.Call(name, a.Tensor(0), q, a.V[2], a.V[3], Kw("interpolation", a.Str(4))))
	}
}

func shapeQuantile(a *Args) []Meta {
	x, q := a.Tensor(0), a.Tensor(1)
	if x.DType != tensor.Float32 && x.DType != tensor.Float64 {
		Fail("quantile() input tensor must be either float or double dtype")
	}
	if q.Dim() > 1 {
		Fail("quantile() q must be a scalar or 1D tensor")
	}
	if q.DType != x.DType {
		Fail("quantile() q tensor must be same dtype as the input tensor")
	}
	if x.Numel().Eq(symbolic.N(0)) {
		Fail("quantile() input tensor must be non-empty")
	}
	switch a.Str(4) {
	case "linear", "lower", "higher", "midpoint", "nearest":
	default:
		Fail("quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got %s", a.Str(4))
	}
	sizes := append([]symbolic.Int{}, q.Sizes...)
	d, ok := a.OptInt(2)
	for i, s := range x.Sizes {
		gone := !ok || i == WrapDim(d.Int64(), x.Dim())
		switch {
		case !gone:
			sizes = append(sizes, s)
		case a.Bool(3):
			sizes = append(sizes, symbolic.N(1))
		}
	}
	m := Contig(x.DType, sizes...)
	if q.Dim() == 1 { // it is made as the last dimension and then moved
		n := q.Sizes[0]
		m = Contig(x.DType, append(cloneInts(sizes[1:]), n)...)
		last := len(sizes) - 1
		m = Strided(x.DType, sizes, append([]symbolic.Int{m.Strides[last]}, m.Strides[:last]...))
	}
	return []Meta{m}
}

func quantileKernel(k *Kernel, skipNaN bool) {
	x := k.T(0)
	rows, n := int64(1), x.Numel()
	if d, ok := k.OptInt(2); ok && x.Dim() > 0 {
		w := WrapDim(d.Int64(), x.Dim())
		n = x.Sizes()[w]
		rows = x.Numel() / n
		sizes, strides := append([]int64{}, x.Sizes()...), append([]int64{}, x.Strides()...)
		s, st := sizes[w], strides[w]
		sizes, strides = append(slices.Delete(sizes, w, w+1), s), append(slices.Delete(strides, w, w+1), st)
		x = x.WithView(sizes, strides, x.Offset())
	}
	v, qs := f64s(k, x), f64s(k, k.T(1))
	for _, q := range qs {
		if !(q >= 0 && q <= 1) {
			Fail("quantile() q values must be in the range [0, 1]")
		}
	}
	single := x.DType() == tensor.Float32
	res := make([]float64, int64(len(qs))*rows)
	for r := range rows {
		row := slices.Clone(v[r*n : (r+1)*n])
		slices.SortFunc(row, func(a, b float64) int {
			switch {
			case a != a:
				return pick(b != b, 0, 1)
			case b != b, a < b:
				return -1
			}
			return pick(a > b, 1, 0)
		})
		valid := len(row)
		for valid > 0 && row[valid-1] != row[valid-1] {
			valid--
		}
		for i, q := range qs {
			at := int64(i)*rows + r
			if valid == 0 || valid < len(row) && !skipNaN {
				res[at] = math.NaN()
				continue
			}
			res[at] = quantileOf(row[:valid], q, k.Str(4), single)
		}
	}
	storeF64(k, k.Out[0], res)
}

// quantileOf finds the place of q in double precision and interpolates in the input's.
func quantileOf(sorted []float64, q float64, how string, single bool) float64 {
	rank := q * float64(len(sorted)-1)
	lo, hi := math.Floor(rank), math.Ceil(rank)
	switch how {
	case "lower":
		return sorted[int(lo)]
	case "higher":
		return sorted[int(hi)]
	case "nearest":
		return sorted[int(math.RoundToEven(rank))]
	}
	w := rank - lo
	if how == "midpoint" {
		w = 0.5
	}
	if single {
		return float64(lerp(float32(sorted[int(lo)]), float32(sorted[int(hi)]), float32(w)))
	}
	return lerp(sorted[int(lo)], sorted[int(hi)], w)
}

func sumToSize(b *Build, a *Args) []*Value {
	x, size := a.Tensor(0), a.Ints(1)
	if len(size) == 0 {
		return One(b.Call("sum", x))
	}
	lead := x.Dim() - len(size)
	if lead < 0 {
		Fail("size {%v} is not expandable to size {%v}.", size, x.Sizes)
	}
	var dims []int64
	for i, s := range x.Sizes {
		switch {
		case i < lead:
			dims = append(dims, int64(i))
		case size[i-lead].Eq(s):
		case size[i-lead].Int64() == 1:
			dims = append(dims, int64(i))
		default:
			Fail("size {%v} is not expandable to size {%v}.", size, x.Sizes)
		}
	}
	if len(dims) > 0 {
		x = b.Call("sum.dim_IntList", x, dims, true)
	}
	if lead > 0 {
		x = b.Call("view", x, size)
	}
	return One(x)
}

// halves gives the elements from the first and from the second on along dimension d.
func halves(b *Build, x *Value, d int) (lo, hi *Value) {
	n := x.Sizes[d]
	return b.Call("slice.Tensor", x, d, 0, n.SubN(1)), b.Call("slice.Tensor", x, d, 1, n)
}

func trapezoidX(fold string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value {
		y, x := a.Tensor(0), a.Tensor(1)
		d := WrapDim(a.I64(2), y.Dim())
		if y.Sizes[d].Eq(symbolic.N(0)) {
			return emptyTrapezoid(b, y, d, fold)
		}
		xd := x.Dim() - 1
		if x.Dim() > 1 {
			xd = d - (y.Dim() - x.Dim())
			if x.Dim() > y.Dim() {
				xd = d + x.Dim() - y.Dim()
			}
		}
		lo, hi := halves(b, x, xd)
		dx := b.Call("sub.Tensor", hi, lo)
		if x.Dim() == 1 {
			sizes := make([]any, y.Dim()-d)
			for i := range sizes {
				sizes[i] = 1
			}
			sizes[0] = -1
			dx = b.Call("reshape", dx, sizes)
		}
		l, h := halves(b, y, d)
		return trapezoidFold(b, b.Call("mul.Tensor", b.Call("add.Tensor", l, h), dx), d-y.Dim(), fold)
	}
}

func trapezoidDX(fold string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value {
		y := a.Tensor(0)
		d := WrapDim(a.I64(2), y.Dim())
		if y.Sizes[d].Eq(symbolic.N(0)) {
			return emptyTrapezoid(b, y, d, fold)
		}
		dx, _ := toScalar(a.V[1])
		if fold == "cumsum" {
			l, h := halves(b, y, d)
			half := FloatS(dx.Float64() / 2)
			if dx.Kind == ComplexScalar {
				half = ComplexS(dx.C / 2)
			}
			return One(b.Call("cumsum", b.Call("mul.Scalar", b.Call("add.Tensor", l, h), half), d-y.Dim()))
		}
		ends := b.Call("mul.Scalar", b.Call("add.Tensor", b.Call("select.int", y, d, 0), b.Call("select.int", y, d, -1)), 0.5)
		return One(b.Call("mul.Scalar", b.Call("sub.Tensor", b.Call(fold, y, []int{d}), ends), dx))
	}
}

func emptyTrapezoid(b *Build, y *Value, d int, fold string) []*Value {
	if fold == "cumsum" {
		return One(y)
	}
	return One(b.Call("sum.dim_IntList", y, []int{d}, Kw("dtype", y.DType)))
}

func trapezoidFold(b *Build, areas *Value, d int, fold string) []*Value {
	if fold == "cumsum" {
		return One(b.Call("div.Scalar", b.Call("cumsum", areas, d), 2))
	}
	return One(b.Call("div.Scalar", b.Call(fold, areas, []int{d}), 2))
}
