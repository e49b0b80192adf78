package aten

import (
	"math"
	"strings"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// primOps are the "prims" that PyTorch's decompositions end in; each is the aten operator of the same meaning.
var primOps = concatOps(
	primAliases("(Tensor self) -> Tensor", "abs acos acosh asin asinh atan atanh ceil conj_physical cos cosh digamma erf erf_inv=erfinv erfc exp exp2 expm1 floor isfinite lgamma log log10 log1p log2 neg reciprocal round rsqrt sign signbit sin sinh sqrt tan tanh trunc bitwise_not bessel_i0=special_i0 bessel_i0e=special_i0e bessel_i1=special_i1 bessel_i1e=special_i1e bessel_j0=special_bessel_j0 bessel_j1=special_bessel_j1 spherical_bessel_j0=special_spherical_bessel_j0 erfcx=special_erfcx ndtri=special_ndtri"),
	primAliases("(Tensor self, Tensor other) -> Tensor", "add=add.Tensor sub=sub.Tensor mul=mul.Tensor atan2 bitwise_and=bitwise_and.Tensor bitwise_or=bitwise_or.Tensor bitwise_xor=bitwise_xor.Tensor eq=eq.Tensor ne=ne.Tensor ge=ge.Tensor gt=gt.Tensor le=le.Tensor lt=lt.Tensor fmax fmin fmod=fmod.Tensor gcd hypot igamma igammac maximum minimum nextafter pow=pow.Tensor_Tensor remainder=remainder.Tensor zeta=special_zeta shift_left=bitwise_left_shift.Tensor shift_right_arithmetic=bitwise_right_shift.Tensor"),
	[]Op{
		{
			Schema: "prims::div(Tensor self, Tensor other) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value {
				if a.Tensor(0).DType.IsIntegral() {
					return One(b.Call("div.Tensor_mode", a.V[0], a.V[1], Kw("rounding_mode", "trunc")))
				}
				return One(b.Call("div.Tensor", a.V...))
			},
		},
		primAs("prims::frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)", "frexp.Tensor"),
		primAs("prims::where(Tensor pred, Tensor a, Tensor b) -> Tensor", "where.self"),
		primAs("prims::cat(Tensor[] tensors, int dim) -> Tensor", "cat"),
		primAs("prims::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", "clone"),
		primAs("prims::conj(Tensor(a) a) -> Tensor(a)", "_conj"),
		primAs("prims::real(Tensor(a) self) -> Tensor(a)", "real"),
		primAs("prims::imag(Tensor(a) self) -> Tensor(a)", "imag"),
		primAs("prims::transpose(Tensor(a) a, int[] permutation) -> Tensor(a)", "permute"),
		primAs("prims::squeeze(Tensor(a) a, int[] dimensions) -> Tensor(a)", "squeeze.dims"),
		primAs("prims::view_of(Tensor(a) a) -> Tensor(a)", "alias"),
		primAs("prims::view_of_dtype(Tensor(a) a, ScalarType dtype) -> Tensor(a)", "view.dtype"),
		primAs("prims::reshape(Tensor a, SymInt[] shape) -> Tensor", "reshape"),
		primAs("prims::rev(Tensor a, int[] dims) -> Tensor", "flip"),
		primAs("prims::fill(Tensor self, Scalar value) -> Tensor", "fill.Scalar"),
		primAs("prims::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt storage_offset) -> Tensor", "as_strided_scatter"),
		primAs("prims::copy_to(Tensor(a!) a, Tensor b) -> Tensor(a!)", "copy_"),
		primAs("prims::resize(Tensor(a!) a, SymInt[] shape) -> Tensor(a!)", "resize_"),
		primAs("prims::as_strided(Tensor(a!) a, SymInt[] size, SymInt[] stride, SymInt storage_offset) -> Tensor(a!)", "as_strided"),
		{
			Schema: "prims::convert_element_type(Tensor a, ScalarType dtype) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value {
				return One(b.Call("_to_copy", a.V[0], Kw("dtype", a.V[1])))
			},
		},
		{
			Schema: "prims::device_put(Tensor a, Device device, bool non_blocking=False) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("clone", a.V[0])) },
		},
		{
			Schema: "prims::copy_strided(Tensor a, SymInt[] stride) -> Tensor",
			Shape:  func(a *Args) []Meta { return []Meta{Strided(a.Tensor(0).DType, a.Tensor(0).Sizes, a.Ints(1))} },
			CPU:    copyFirst,
		},
		{
			Schema: "prims::iota(SymInt length, *, SymInt start, SymInt step, ScalarType dtype, Device device, bool requires_grad) -> Tensor",
			Shape: func(a *Args) []Meta {
				Check(a.I64(0) >= 0, "prims::iota: length must be non-negative, got %v", a.Int(0))
				return []Meta{Contig(a.DType(3, tensor.Int64), a.Int(0))}
			},
			CPU: func(k *Kernel) { writeRange(k.Out[0], IntS(k.I64(1)), IntS(k.I64(2))) },
		},
		primFactory("prims::empty(SymInt[] shape, *, ScalarType dtype, Device device, bool requires_grad) -> Tensor", "empty.memory_format", 1),
		primFactory("prims::empty_permuted(SymInt[] shape, int[] physical_layout, *, ScalarType dtype, Device device, bool requires_grad) -> Tensor", "empty_permuted", 2),
		primFactory("prims::empty_strided(SymInt[] shape, SymInt[] strides, *, ScalarType dtype, Device device, bool requires_grad) -> Tensor", "empty_strided", 2),
		primFactory("prims::full(SymInt[] shape, Scalar fill_value, *, ScalarType dtype, Device device, bool requires_grad) -> Tensor", "full", 2),
		primFactory("prims::full_like(Tensor a, Scalar fill_value, *, ScalarType dtype, Device device, bool requires_grad) -> Tensor", "full_like", 2),
		primFactory("prims::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Device? device=None) -> Tensor", "scalar_tensor", 1),
		primReduction("prims::sum(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor", "sum.dim_IntList"),
		primReduction("prims::amax(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor", "amax"),
		primReduction("prims::amin(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor", "amin"),
		{
			Schema: "prims::var(Tensor inp, int[]? dims, float? correction=1, *, ScalarType? output_dtype=None) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value {
				return One(b.Call("var.correction", a.V[0], a.V[1], Kw("correction", a.V[2])))
			},
		},
		{
			Schema: "prims::prod(Tensor inp, int[]? dims, *, ScalarType? output_dtype=None) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value {
				x := a.Tensor(0)
				dims := WrapDims(a.I64s(1), x.Dim())
				for i := len(dims) - 1; i >= 0; i-- {
					x = b.Call("prod.dim_int", x, dims[i], Kw("dtype", a.DType(2, a.Tensor(0).DType)))
				}
				return One(x)
			},
		},
		{
			Schema: "prims::broadcast_in_dim(Tensor(a) a, SymInt[] shape, int[] broadcast_dimensions) -> Tensor(a)",
			Tags:   LazyBits,
			Shape:  shapeBroadcastInDim,
		},
		{
			Schema: "prims::split_dim(Tensor(a) a, int dim, SymInt outer_length) -> Tensor(a)",
			Tags:   LazyBits,
			Shape: func(a *Args) []Meta {
				x := a.Tensor(0)
				d := WrapDim(a.I64(1), x.Dim())
				n := a.Int(2)
				Check(n.Gt(symbolic.N(0)) && x.Size(d).Mod(n).Eq(symbolic.N(0)), "Attempting to split dimension of length %v, but outer length of %v divides it with a remainder!", x.Size(d), n)
				sizes := append(cloneInts(x.Sizes[:d]), n, x.Size(d).FloorDiv(n))
				return []Meta{viewed(x, append(sizes, x.Sizes[d+1:]...))}
			},
		},
		{
			Schema: "prims::collapse_view(Tensor(a) a, int start, int end) -> Tensor(a)",
			Tags:   LazyBits,
			Shape:  func(a *Args) []Meta { return []Meta{viewed(a.Tensor(0), flattenSizes(a))} },
		},
		{
			Schema: "prims::normal(SymInt[] shape, *, Scalar mean, Scalar std, ScalarType dtype, Device device, bool requires_grad, Generator? generator=None) -> Tensor",
			Tags:   Random,
			Shape:  func(a *Args) []Meta { return []Meta{fresh(a, 0, 3, tensor.Float32)} },
			CPU:    func(k *Kernel) { fillNormal(k, k.Scalar(1).Float64(), k.Scalar(2).Float64()) },
		},
		{
			Schema: "prims::uniform(SymInt[] shape, *, Scalar low, Scalar high, ScalarType dtype, Device device, SymInt[] stride, Generator? generator=None) -> Tensor",
			Tags:   Random,
			Shape: func(a *Args) []Meta {
				m := fresh(a, 0, 3, tensor.Float32)
				m.Strides = checkedStrides(m.Sizes, a.Ints(5))
				return []Meta{m}
			},
			CPU: func(k *Kernel) { fillUniform(k, k.Scalar(1).Float64(), k.Scalar(2).Float64()) },
		},
		{
			Schema: "prims::cbrt(Tensor self) -> Tensor",
			Tags:   Pointwise,
			Shape:  shapeFloat,
			CPU:    map1(real1(math.Cbrt)),
		},
		{
			Schema: "prims::fft_r2c(Tensor self, *, int[] dim, bool onesided) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("_fft_r2c", a.V[0], a.V[1], 0, a.V[2])) },
		},
		{
			Schema: "prims::fft_c2c(Tensor self, *, int[] dim, bool forward) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("_fft_c2c", a.V[0], a.V[1], 0, a.V[2])) },
		},
		{
			Schema: "prims::fft_c2r(Tensor self, *, int[] dim, SymInt last_dim_size) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("_fft_c2r", a.V[0], a.V[1], 0, a.V[2])) },
		},
		{
			Schema: "prims::svd(Tensor A, *, bool full_matrices) -> (Tensor U, Tensor S, Tensor Vh)",
			Decomp: func(b *Build, a *Args) []*Value { return b.CallN("linalg_svd", a.V[0], a.V[1]) },
		},
		primAs("prims::collapse(Tensor a, int start, int end) -> Tensor", "flatten.using_ints"),
	},
)

// primAliases makes an entry for each of the names, "prim" or "prim=aten".
func primAliases(params, names string) []Op {
	var out []Op
	for _, n := range strings.Fields(names) {
		prim, name, ok := strings.Cut(n, "=")
		if !ok {
			name = prim
		}
		out = append(out, primAs("prims::"+prim+params, name))
	}
	return out
}

// primAs is an entry that calls an aten operator with its own arguments.
func primAs(schema, name string) Op {
	return Op{Schema: schema, Tags: LazyBits, Decomp: func(b *Build, a *Args) []*Value { return b.CallN(name, a.V...) }}
}

// primFactory passes the first n arguments on, and the dtype behind them by name.
func primFactory(schema, name string, n int) Op {
	return Op{Schema: schema, Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call(name, append(append([]any(nil), a.V[:n]...), Kw("dtype", a.V[n]))...))
	}}
}

// primReduction reduces over dims and converts to the output dtype.
func primReduction(schema, name string) Op {
	return Op{Schema: schema, Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		dims := a.I64s(1)
		if a.Has(1) && len(dims) == 0 {
			return One(b.Call("clone", x))
		}
		out := b.Call(name, x, dims)
		if dt := a.DType(2, x.DType); out.DType != dt {
			out = b.Call("to.dtype", out, dt)
		}
		return One(out)
	}}
}

func shapeBroadcastInDim(a *Args) []Meta {
	x, shape, dims := a.Tensor(0), a.Ints(1), a.I64s(2)
	Check(len(dims) == x.Dim(), "broadcast_dimensions must have as many entries as the tensor has dimensions, got %d and %d", len(dims), x.Dim())
	strides := make([]symbolic.Int, len(shape))
	last := int64(-1)
	for i, d := range dims {
		Check(d > last && d < int64(len(shape)), "broadcast_dimensions must be strictly ascending and in range, got %v", dims)
		last = d
		if x.Sizes[i].Eq(shape[d]) {
			strides[d] = x.Strides[i]
			continue
		}
		Check(x.Sizes[i].Eq(symbolic.N(1)), "%v must be broadcastable to %v", x.Sizes[i], shape[d])
	}
	return []Meta{x.ViewMeta(shape, strides, x.Offset)}
}
