package passes

import (
	"math"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// refFormulas are those of torch/_refs whose order of calls differs from the registry's own formulas, or that the registry runs whole.
var refFormulas = map[string]Decomp{
	"aten.where.ScalarOther": whereOf,
	"aten.where.ScalarSelf":  whereOf,
	"aten.eye.default":       eye,
	"aten.eye.m":             eye,
	"aten.fill.Scalar": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("full_like", a.V[0], a.V[1]))
	},
	"aten.hardswish.default": wide(func(b *aten.Build, a *aten.Args) *aten.Value {
		x := b.Call("clamp", b.Call("clamp", b.Call("add.Tensor", a.V[0], 3), 0), nil, 6)
		return b.Call("div.Tensor", b.Call("mul.Tensor", a.V[0], x), 6)
	}),
	"aten.one_hot.default":  oneHot,
	"aten.sinc.default":     sinc,
	"aten.softplus.default": softplus,
	"aten.argsort.stable": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.CallN("sort.stable", a.V[0], aten.Kw("stable", a.V[1]), aten.Kw("dim", a.V[2]), aten.Kw("descending", a.V[3]))[1])
	},
	"aten.all.dim": func(b *aten.Build, a *aten.Args) []*aten.Value {
		some := b.Call("any.dim", b.Call("logical_not", a.V[0]), a.V[1], a.V[2])
		return one(b.Call("logical_not", some))
	},
	"aten.var_mean.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return b.CallN("var_mean.correction", a.V[0], nil, aten.Kw("correction", unbiased(a.Bool(1))))
	},
	"aten.var_mean.dim": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return b.CallN("var_mean.correction", a.V[0], a.V[1], aten.Kw("correction", unbiased(a.Bool(2))), aten.Kw("keepdim", a.V[3]))
	},
	"aten.trace.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		d := b.Call("clone", b.Call("diagonal", a.V[0]), aten.Kw("memory_format", aten.ContiguousFormat))
		return one(b.Call("sum.dim_IntList", d, []int64{}))
	},
	"aten.triu.default":       triangle("ge.Scalar"),
	"aten.tril.default":       triangle("le.Scalar"),
	"aten.diag_embed.default": diagEmbed,
	"aten.select_scatter.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x, d := a.Tensor(0), aten.WrapDim(a.I64(2), a.Tensor(0).Dim())
		shape, at := make([]int64, x.Dim()), a.Int(3)
		for i := range shape {
			shape[i] = 1
		}
		shape[d] = -1
		if c, ok := at.Const(); !ok {
			panic(&unrecordable{"select_scatter at a symbolic place"})
		} else if c < 0 {
			at = at.Add(x.Sizes[d])
		}
		mask := b.Call("eq.Scalar", b.Call("view", counted(b, x.Sizes[d]), shape), at)
		src := b.Call("expand", b.Call("unsqueeze", a.V[1], d), x.Sizes)
		return one(b.Call("where.self", mask, src, x))
	},
	"aten.take.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		if !x.IsContiguous() {
			x = b.Call("clone", x, aten.Kw("memory_format", aten.ContiguousFormat))
		}
		return one(b.Call("index.Tensor", b.Call("view", x, []int64{-1}), []*aten.Value{a.Tensor(1)}))
	},
	"aten.take_along_dim.default": takeAlongDim,
	"aten.roll.default":           roll,
	"aten.isclose.default":        isClose,
	"aten.heaviside.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		zero := b.Call("eq.Scalar", x, 0)
		low := b.Call("logical_or", b.Call("lt.Scalar", x, 0), b.Call("isnan", x))
		i1, i0 := b.Call("scalar_tensor", 1, aten.Kw("dtype", tensor.Int64)), b.Call("scalar_tensor", 0, aten.Kw("dtype", tensor.Int64))
		return one(b.Call("where.self", zero, a.V[1], b.Call("where.self", low, i0, i1)))
	},
	"aten.xlogy.Tensor":            xlogy("log"),
	"aten.special_xlogy.default":   xlogy("log"),
	"aten.special_xlog1py.default": xlogy("log1p"),
	"aten.logit.default":           logit,
	"aten.nan_to_num.default":      nanToNum,
	"aten.linalg_vecdot.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		if a.Tensor(0).DType.IsComplex() {
			panic(&unrecordable{"vecdot of complex numbers"})
		}
		return one(b.Call("sum.dim_IntList", b.Call("mul.Tensor", a.V[0], a.V[1]), []int64{a.I64(2)}))
	},
	"aten.linalg_eigvals.default":     firstOf("linalg_eig"),
	"aten.linalg_vector_norm.default": vectorNorm,
	"aten.logsumexp.default":          logSumExp,
	"aten.dsplit.int":                 splitAt(2, false),
	"aten.dsplit.array":               splitAt(2, true),
	"aten.hsplit.int":                 splitAt(1, false),
	"aten.hsplit.array":               splitAt(1, true),
	"aten.vsplit.int":                 splitAt(0, false),
	"aten.vsplit.array":               splitAt(0, true),
	"aten.mvlgamma.default": wideOrFloat(func(b *aten.Build, a *aten.Args) *aten.Value {
		x, p := a.Tensor(0), a.I64(1)
		steps := b.Call("mul.Tensor", b.Call("arange.start_step", 1-p, 1, 1, aten.Kw("dtype", x.DType)), 0.5)
		y := b.Call("lgamma", b.Call("add.Tensor", b.Call("unsqueeze", x, -1), steps))
		return b.Call("add.Tensor", b.Call("sum.dim_IntList", y, []int64{-1}), float64(p*(p-1))*math.Log(math.Pi)/4)
	}),
}

// whereOf is where with a number among its values.
func whereOf(b *aten.Build, a *aten.Args) []*aten.Value {
	v := append([]any(nil), a.V...)
	for i := 1; i < 3; i++ {
		if t, ok := v[3-i].(*aten.Value); ok {
			if s, ok := v[i].(aten.Scalar); ok {
				v[i] = filledAs(b, s, t.DType)
			}
		}
	}
	return one(b.Call("where.self", v...))
}

// eye compares the numbers of rows and columns.
func eye(b *aten.Build, a *aten.Args) []*aten.Value {
	n, m := a.Int(0), a.Int(0)
	at := a.Index("dtype")
	if at == 2 {
		m = a.Int(1)
	}
	var kw []any
	if d := a.V[at+2]; d != nil {
		kw = append(kw, aten.Kw("layout", aten.StridedLayout), aten.Kw("device", d), aten.Kw("pin_memory", false))
	}
	kw = append(kw, aten.Kw("dtype", tensor.Uint8))
	rows, columns := counted(b, n, kw...), counted(b, m, kw...)
	on := b.Call("eq.Tensor", b.Call("unsqueeze", rows, -1), columns)
	return one(cast(b, on, a.DType(at, tensor.Float32)))
}

// oneHot checks the classes and compares them with all there are.
func oneHot(b *aten.Build, a *aten.Args) []*aten.Value {
	x, n := a.Tensor(0), a.I64(1)
	if n < 0 {
		panic(&unrecordable{"one_hot without a number of classes"})
	}
	all := func(ok *aten.Value) *aten.Value {
		return b.Call("logical_not", b.Call("any.dims", b.Call("logical_not", ok)))
	}
	b.CallN("_assert_async.msg", all(b.Call("ge.Scalar", x, 0)), "one_hot: Class values must be non-negative.")
	b.CallN("_assert_async.msg", all(b.Call("lt.Scalar", x, n)), "one_hot: Class values must be smaller than num_classes.")
	at := b.Call("unsqueeze", x, -1)
	return one(cast(b, b.Call("eq.Tensor", at, counted(b, symbolic.N(n), aten.Kw("dtype", x.DType))), tensor.Int64))
}

// sinc is sin(pi x) / (pi x), 1 at 0.
var sinc = wideOrFloat(func(b *aten.Build, a *aten.Args) *aten.Value {
	x := b.Call("mul.Tensor", a.V[0], math.Pi)
	zero := b.Call("eq.Scalar", x, 0)
	y := b.Call("div.Tensor", b.Call("sin", x), x)
	return b.Call("where.self", zero, filledAs(b, 1, y.DType), y)
})

// softplus: (self, beta, threshold).
var softplus = wide(func(b *aten.Build, a *aten.Args) *aten.Value {
	z := b.Call("mul.Tensor", a.V[0], a.V[1])
	y := b.Call("div.Tensor", b.Call("log1p", b.Call("exp", z)), a.V[1])
	return b.Call("where.self", b.Call("gt.Scalar", z, a.V[2]), a.V[0], y)
})

func unbiased(on bool) int64 {
	if on {
		return 1
	}
	return 0
}

// counted is arange(n).
func counted(b *aten.Build, n symbolic.Int, kw ...any) *aten.Value {
	return b.Call("arange.start_step", append([]any{0, n, 1}, kw...)...)
}

// filledAs is a number as a tensor of a dtype.
func filledAs(b *aten.Build, v any, dt tensor.DType) *aten.Value {
	return b.Call("scalar_tensor", v, aten.Kw("dtype", dt))
}

// wideOrFloat is wide for formulas of which integers become float32 too, and stay so.
func wideOrFloat(f func(b *aten.Build, a *aten.Args) *aten.Value) Decomp {
	inner := wide(f)
	return func(b *aten.Build, a *aten.Args) []*aten.Value {
		v := append([]any(nil), a.V...)
		for i, x := range v {
			if t, ok := x.(*aten.Value); ok && t != nil && t.DType.IsIntegral() {
				v[i] = cast(b, t, tensor.Float32)
			}
		}
		return inner(b, &aten.Args{Op: a.Op, V: v})
	}
}

// triangle keeps what lies on one side of a diagonal of [..., H, W].
func triangle(keep string) Decomp {
	return func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		h, w := x.Sizes[x.Dim()-2], x.Sizes[x.Dim()-1]
		columns := b.Call("unsqueeze", counted(b, w), -2)
		d := b.Call("sub.Tensor", columns, b.Call("unsqueeze", counted(b, h), -1))
		if x.DType == tensor.Bool {
			return one(b.Call("logical_and", b.Call(keep, d, a.V[1]), x))
		}
		return one(b.Call("where.self", b.Call(keep, d, a.V[1]), x, filledAs(b, number(0, x.DType), x.DType)))
	}
}

// diagEmbed: x [..., N] becomes [..., N, N] with x on a diagonal.
func diagEmbed(b *aten.Build, a *aten.Args) []*aten.Value {
	x, offset := a.Tensor(0), a.I64(1)
	n := x.Dim() + 1
	d1, d2 := aten.WrapDim(a.I64(2), n), aten.WrapDim(a.I64(3), n)
	if d1 > d2 {
		d1, d2, offset = d2, d1, -offset
	}
	length := x.Sizes[x.Dim()-1]
	if offset != 0 {
		shape := append([]symbolic.Int(nil), x.Sizes...)
		shape[len(shape)-1] = symbolic.N(max(offset, -offset))
		z := b.Call("full", shape, number(0, x.DType), aten.Kw("dtype", x.DType))
		list := []*aten.Value{z, x}
		if offset < 0 {
			list = []*aten.Value{x, z}
		}
		x, length = b.Call("cat", list, -1), length.Add(symbolic.N(max(offset, -offset)))
	}
	x = b.Call("unsqueeze", x, d1)
	var order []int64
	for i := range n - 1 {
		order = append(order, int64(i))
	}
	order = append(order[:d2], append([]int64{int64(n - 1)}, order[d2:]...)...)
	x = b.Call("permute", x, order)
	columns := counted(b, length, aten.Kw("dtype", tensor.Int64))
	rows := b.Call("arange.start_step", offset, length.Add(symbolic.N(offset)), 1, aten.Kw("dtype", tensor.Int64))
	shape := make([]symbolic.Int, n)
	for i := range shape {
		if shape[i] = symbolic.N(1); i == d1 || i == d2 {
			shape[i] = length
		}
	}
	on := b.Call("view", b.Call("eq.Tensor", columns, b.Call("unsqueeze", rows, -1)), shape)
	y := b.Call("where.self", on, x, filledAs(b, number(0, x.DType), x.DType))
	if !y.IsContiguous() {
		y = b.Call("clone", y, aten.Kw("memory_format", aten.ContiguousFormat))
	}
	return one(y)
}

func takeAlongDim(b *aten.Build, a *aten.Args) []*aten.Value {
	x, index := a.Tensor(0), a.Tensor(1)
	if a.V[2] == nil {
		return one(b.Call("gather", b.Call("view", x, []int64{-1}), 0, b.Call("view", index, []int64{-1})))
	}
	d := aten.WrapDim(a.I64(2), x.Dim())
	with := func(s []symbolic.Int, n symbolic.Int) []symbolic.Int {
		s = append([]symbolic.Int(nil), s...)
		s[d] = n
		return s
	}
	places := b.Call("expand", index, aten.BroadcastSizes(ofSizes(with(x.Sizes, index.Sizes[d])), index))
	values := b.Call("expand", x, aten.BroadcastSizes(ofSizes(with(index.Sizes, x.Sizes[d])), x))
	return one(b.Call("gather", values, d, b.Call("remainder.Scalar", places, values.Sizes[d])))
}

// roll moves elements along dimensions, one after the other.
func roll(b *aten.Build, a *aten.Args) []*aten.Value {
	x := a.Tensor(0)
	shifts, dims := a.Ints(1), a.I64s(2)
	if x.Dim() == 0 || len(shifts) != len(dims) {
		if len(dims) != 0 || len(shifts) != 1 || x.Dim() == 0 {
			panic(&unrecordable{"roll without dimensions"})
		}
		flat := viewOrCopy(b, x, sizes(x.Numel()))
		return one(b.Call("view", b.Call("roll", flat, shifts, []int64{0}), x.Sizes))
	}
	for i, d := range dims {
		n, ok1 := x.Sizes[aten.WrapDim(d, x.Dim())].Const()
		s, ok2 := shifts[i].Const()
		if !ok1 || !ok2 || n == 0 {
			panic(&unrecordable{"roll along a symbolic size"})
		}
		start := ((n-s)%n + n) % n
		at := b.Call("fmod.Scalar", b.Call("add.Tensor", counted(b, symbolic.N(n)), start), n)
		x = b.Call("index_select", x, d, at)
	}
	return one(x)
}

func isClose(b *aten.Build, a *aten.Args) []*aten.Value {
	x, y := a.Tensor(0), a.Tensor(1)
	rtol, atol := a.Float(2), a.Float(3)
	if a.Bool(4) || rtol == 0 && atol == 0 || x.DType.IsComplex() || x.DType == tensor.Bool {
		panic(&unrecordable{"isclose of this kind"})
	}
	near := b.Call("eq.Tensor", x, y)
	if y.DType.IsIntegral() {
		y = cast(b, y, tensor.Float32)
	}
	allowed := b.Call("add.Scalar", b.Call("abs", b.Call("mul.Scalar", y, rtol)), atol)
	actual := b.Call("abs", b.Call("sub.Tensor", x, y))
	within := finite(b, actual)
	within = b.Call("bitwise_and.Tensor", within, b.Call("le.Tensor", actual, allowed))
	return one(b.Call("bitwise_or.Tensor", near, within))
}

// finite is PyTorch's isfinite within other formulas.
func finite(b *aten.Build, x *aten.Value) *aten.Value {
	bounded := b.Call("ne.Scalar", b.Call("abs", x), math.Inf(1))
	return b.Call("mul.Tensor", b.Call("eq.Tensor", x, x), bounded)
}

// xlogy is x log y, 0 where x is 0 unless y is NaN.
func xlogy(log string) Decomp {
	return wideOrFloat(func(b *aten.Build, a *aten.Args) *aten.Value {
		x, y := a.Tensor(0), a.Tensor(1)
		if x.DType != y.DType {
			panic(&unrecordable{"xlogy of two dtypes"})
		}
		zero := b.Call("eq.Scalar", x, 0)
		p := b.Call("mul.Tensor", x, b.Call(log, y))
		p = b.Call("where.self", zero, filledAs(b, 0, x.DType), p)
		return b.Call("where.self", b.Call("isnan", y), filledAs(b, math.NaN(), x.DType), p)
	})
}

var logit = wideOrFloat(func(b *aten.Build, a *aten.Args) *aten.Value {
	x, eps := a.Tensor(0), -1.0
	if a.V[1] != nil {
		eps = a.Float(1)
	}
	low, high := b.Call("lt.Scalar", x, eps), b.Call("gt.Scalar", x, 1-eps)
	x = b.Call("where.self", high, filledAs(b, 1-eps, x.DType), x)
	x = b.Call("where.self", low, filledAs(b, eps, x.DType), x)
	return b.Call("log", b.Call("div.Tensor", x, b.Call("sub.Tensor", 1, x)))
})

// largest are the largest finite numbers.
var largest = map[tensor.DType]float64{tensor.Float16: 65504, tensor.BFloat16: 0x1.fep127, tensor.Float32: math.MaxFloat32, tensor.Float64: math.MaxFloat64}

func nanToNum(b *aten.Build, a *aten.Args) []*aten.Value {
	x := a.Tensor(0)
	if x.DType.IsIntegral() || x.DType == tensor.Bool {
		return one(b.Call("clone", x))
	}
	top, ok := largest[x.DType]
	if !ok {
		panic(&unrecordable{"nan_to_num of this dtype"})
	}
	or := func(i int, v float64) float64 {
		if a.V[i] != nil {
			return a.Float(i)
		}
		return v
	}
	y := b.Call("where.self", b.Call("isnan", x), filledAs(b, or(1, 0), x.DType), x)
	y = b.Call("where.self", b.Call("isneginf", x), filledAs(b, or(3, -top), x.DType), y)
	return one(b.Call("where.self", b.Call("isposinf", x), filledAs(b, or(2, top), x.DType), y))
}

// vectorNorm: (self, ord, dim, keepdim, dtype).
func vectorNorm(b *aten.Build, a *aten.Args) []*aten.Value {
	x, ord := a.Tensor(0), a.Scalar(1)
	if x.DType.IsComplex() || x.DType.IsIntegral() || ord.Kind > aten.FloatScalar {
		panic(&unrecordable{"the norm of complex numbers"})
	}
	result := a.DType(4, x.DType)
	var dims any
	var list []int
	if a.V[2] != nil && len(a.I64s(2)) > 0 {
		ds := make([]int64, 0, x.Dim())
		for _, d := range a.I64s(2) {
			list = append(list, aten.WrapDim(d, x.Dim()))
			ds = append(ds, int64(list[len(list)-1]))
		}
		dims = ds
	}
	all := func() []int64 {
		if dims == nil {
			return []int64{}
		}
		return dims.([]int64)
	}
	switch p := ord.Float64(); {
	case p == 0:
		return one(b.Call("sum.dim_IntList", b.Call("ne.Scalar", x, 0.0), dims, a.V[3], aten.Kw("dtype", result)))
	case math.IsInf(p, 1):
		return one(cast(b, b.Call("amax", b.Call("abs", x), all(), a.V[3]), result))
	case math.IsInf(p, -1):
		return one(cast(b, b.Call("amin", b.Call("abs", x), all(), a.V[3]), result))
	default:
		compute := result
		if compute.IsReduced() {
			compute = tensor.Float32
		}
		x = cast(b, x, compute)
		if single(x, list, dims == nil) {
			return one(normOfOne(b, x, list, dims == nil, a.Bool(3), result))
		}
		if math.Mod(p, 2) != 0 {
			x = b.Call("abs", x)
		}
		s := b.Call("sum.dim_IntList", b.Call("pow.Tensor_Scalar", x, a.V[1]), dims, a.V[3])
		return one(cast(b, b.Call("pow.Tensor_Scalar", s, 1/p), result))
	}
}

// single reports that a reduction has one element each.
func single(x *aten.Value, dims []int, all bool) bool {
	if !all && x.Dim() == 0 {
		return false
	}
	for i, n := range x.Sizes {
		within := all
		for _, d := range dims {
			within = within || d == i
		}
		if c, ok := n.Const(); within && (!ok || c != 1) {
			return false
		}
	}
	return true
}

func normOfOne(b *aten.Build, x *aten.Value, dims []int, all, keep bool, result tensor.DType) *aten.Value {
	x = b.Call("abs", x)
	if keep || x.Dim() == 0 {
		return cast(b, x, result)
	}
	if all {
		panic(&unrecordable{"the norm of one element of several dimensions"})
	}
	var shape []symbolic.Int
	for i, n := range x.Sizes {
		gone := false
		for _, d := range dims {
			gone = gone || d == i
		}
		if !gone {
			shape = append(shape, n)
		}
	}
	return cast(b, b.Call("view", x, shape), result)
}

func logSumExp(b *aten.Build, a *aten.Args) []*aten.Value {
	x, dims := a.Tensor(0), a.I64s(1)
	if c, ok := x.Numel().Const(); !ok || c == 0 || !x.DType.IsFloat() {
		panic(&unrecordable{"logsumexp of this kind"})
	}
	top := b.Call("amax", x, dims, true)
	inf := b.Call("eq.Scalar", b.Call("abs", top), math.Inf(1))
	top = b.Call("where.self", inf, filledAs(b, 0.0, x.DType), top)
	flat := top
	if !a.Bool(2) {
		if len(dims) == 0 {
			for i := range x.Dim() {
				dims = append(dims, int64(i))
			}
		}
		flat = b.Call("squeeze.dims", top, dims)
	}
	s := b.Call("sum.dim_IntList", b.Call("exp", b.Call("sub.Tensor", x, top)), a.V[1], a.V[2])
	return one(b.Call("add.Tensor", b.Call("log", s), flat))
}

// splitAt cuts along a dimension into equal parts or at places.
func splitAt(dim int, places bool) Decomp {
	return func(b *aten.Build, a *aten.Args) []*aten.Value {
		x, d := a.Tensor(0), dim
		if dim == 1 && x.Dim() == 1 {
			d = 0
		}
		n, ok := x.Sizes[d].Const()
		if !ok {
			panic(&unrecordable{"a split along a symbolic size"})
		}
		var cuts []int64
		if places {
			cuts = a.I64s(1)
		} else {
			for i := int64(1); i < a.I64(1); i++ {
				cuts = append(cuts, i*(n/a.I64(1)))
			}
		}
		var out []*aten.Value
		start := int64(0)
		for _, end := range append(append([]int64(nil), cuts...), n) {
			out = append(out, b.Call("slice.Tensor", x, d, start, end))
			start = end
		}
		return out
	}
}
