package aten

import (
	"strings"

	"github.com/pt2go/pt2/internal/pool"
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// matmulOps are matrix and tensor products.
var matmulOps = []Op{
	{Schema: "mm(Tensor self, Tensor mat2) -> Tensor", Tags: Core, Shape: func(a *Args) []Meta { return []Meta{mmMeta(a.Tensor(0), a.Tensor(1))} },
		CPU: func(k *Kernel) { product(k, k.Out[0], k.T(0), k.T(1), false) }},
	{Schema: "bmm(Tensor self, Tensor mat2) -> Tensor", Tags: Core, Shape: func(a *Args) []Meta { return []Meta{bmmMeta(a.Tensor(0), a.Tensor(1))} },
		CPU: func(k *Kernel) { batchedProduct(k, k.Out[0], k.T(0), k.T(1)) }},
	{Schema: "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", Tags: Core, Shape: func(a *Args) []Meta {
		m := mmMeta(a.Tensor(1), a.Tensor(2))
		sameDType(a.Tensor(0), a.Tensor(1), "self and mat2")
		expandable(a.Tensor(0), m.Sizes)
		return []Meta{m}
	}, CPU: func(k *Kernel) {
		if self, out := k.T(0), k.Out[0]; out.DType().IsReduced() && self.Dim() == 1 && self.Sizes()[0] == out.Sizes()[1] && k.Scalar(3).Complex() == 1 && k.Scalar(4).Complex() == 1 {
			halfProduct(k, out, k.T(1), k.T(2), tensor.Contiguous[float32](k.as(self, tensor.Float32)))
			return
		}
		p := productScratch(k.Out[0])
		product(k, p, k.T(1), k.T(2), false)
		addTo(k, k.T(0), p, k.Scalar(3), k.Scalar(4))
	}},
	{Schema: "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", Shape: func(a *Args) []Meta {
		m := bmmMeta(a.Tensor(1), a.Tensor(2))
		expandable(a.Tensor(0), m.Sizes)
		return []Meta{m}
	}, CPU: func(k *Kernel) {
		p := productScratch(k.Out[0])
		batchedProduct(k, p, k.T(1), k.T(2))
		addTo(k, k.T(0), p, k.Scalar(3), k.Scalar(4))
	}},
	{Schema: "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, y := a.Tensor(1), a.Tensor(2)
		bmmMeta(x, y)
		acc, beta := b.Call("expand", a.Tensor(0), []symbolic.Int{x.Sizes[1], y.Sizes[2]}), a.Scalar(3)
		if x.Sizes[0].Eq(symbolic.N(0)) {
			return One(b.Call("mul.Scalar", acc, beta))
		}
		for i := range x.Sizes[0].Int64() { // PyTorch rounds after each product
			acc = b.Call("addmm", acc, b.Call("select.int", x, 0, i), b.Call("select.int", y, 0, i), Kw("beta", beta), Kw("alpha", a.Scalar(4)))
			beta = IntS(1)
		}
		return One(acc)
	}},
	{Schema: "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(combineLinear(b, a.Tensor(0), b.Call("mv", a.Tensor(1), a.Tensor(2)), a.Scalar(3), a.Scalar(4)))
	}},
	{Schema: "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		v := a.Tensor(1)
		if a.Tensor(0).DType == tensor.Bool && v.DType == tensor.Bool && a.Tensor(2).DType == tensor.Bool {
			return One(addrOfBool(b, a))
		}
		if alpha := inKind(a.Scalar(4), v.DType); alpha.Complex() != 1 {
			v = b.Call("mul.Scalar", v, alpha)
		}
		return One(combineLinear(b, a.Tensor(0), b.Call("outer", v, a.Tensor(2)), a.Scalar(3), IntS(1)))
	}},
	{Schema: "mv(Tensor self, Tensor vec) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, v := a.Tensor(0), a.Tensor(1)
		if x.Dim() != 2 || v.Dim() != 1 || !x.Sizes[1].Eq(v.Sizes[0]) {
			Fail("size mismatch, got input (%v), mat (%v), vec (%v)", x.Sizes, x.Sizes, v.Sizes)
		}
		return One(b.Call("squeeze.dim", b.Call("mm", x, b.Call("unsqueeze", v, 1)), 1))
	}},
	{Schema: "dot(Tensor self, Tensor tensor) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, y := a.Tensor(0), a.Tensor(1)
		if x.Dim() != 1 || y.Dim() != 1 {
			Fail("1D tensors expected, but got %dD and %dD tensors", x.Dim(), y.Dim())
		}
		if !x.Sizes[0].Eq(y.Sizes[0]) {
			Fail("inconsistent tensor size, expected tensor [%v] and src [%v] to have the same number of elements, but got %v and %v elements respectively", x.Sizes[0], y.Sizes[0], x.Sizes[0], y.Sizes[0])
		}
		m := b.Call("mm", b.Call("unsqueeze", x, 0), b.Call("unsqueeze", y, 1))
		return One(b.Call("squeeze.dims", m, []int{0, 1}))
	}},
	{Schema: "vdot(Tensor self, Tensor other) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		if x.DType.IsComplex() {
			x = b.Call("conj_physical", x)
		}
		return One(b.Call("dot", x, a.Tensor(1)))
	}},
	{Schema: "outer(Tensor self, Tensor vec2) -> Tensor", Decomp: outerProduct},
	{Schema: "ger(Tensor self, Tensor vec2) -> Tensor", Decomp: outerProduct},
	{Schema: "inner(Tensor self, Tensor other) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, y := a.Tensor(0), a.Tensor(1)
		if x.Dim() == 0 || y.Dim() == 0 {
			return One(b.Call("mul.Tensor", x, y))
		}
		return One(b.Call("tensordot", x, y, []int{-1}, []int{-1}))
	}},
	{Schema: "matmul(Tensor self, Tensor other) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(matmul(b, a.Tensor(0), a.Tensor(1))) }},
	{Schema: "linalg_matmul(Tensor self, Tensor other) -> Tensor", Decomp: rename2("matmul")},
	{Schema: "__matmul__(Tensor self, Tensor other) -> Tensor", Decomp: rename2("matmul")},
	{Schema: "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", Shape: func(a *Args) []Meta {
		x, w := a.Tensor(0), a.Tensor(1)
		if x.Dim() == 0 || w.Dim() == 0 || w.Dim() > 2 || !x.Sizes[x.Dim()-1].Eq(w.Sizes[w.Dim()-1]) {
			Fail("mat1 and mat2 shapes cannot be multiplied (%vx%v and %v)", rowsOf(x), lastSize(x), reversed(w.Sizes))
		}
		sameDType(x, w, "mat1 and mat2")
		sizes := append([]symbolic.Int{}, x.Sizes[:x.Dim()-1]...)
		if w.Dim() == 2 {
			sizes = append(sizes, w.Sizes[0])
		}
		if bias := a.OptTensor(2); bias != nil {
			sameDType(bias, w, "self and mat2")
			expandable(bias, sizes)
		}
		return []Meta{Contig(x.DType, sizes...)}
	}, CPU: linearKernel},
	{Schema: "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, y, w := a.Tensor(0), a.Tensor(1), a.Tensor(2)
		// out[..., o] = sum_ij x[..., i] w[o, i, j] y[..., j]
		xw := b.Call("tensordot", x, w, []int{x.Dim() - 1}, []int{1}) // [..., o, j]
		r := b.Call("squeeze.dim", sumProduct(b, xw, b.Call("unsqueeze", y, -2), []int64{-1}), -1)
		if bias := a.OptTensor(3); bias != nil {
			r = b.Call("add.Tensor", r, bias)
		}
		return One(r)
	}},
	{Schema: "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int unroll_dim=1) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		var in [3]*Value
		last := map[int64]bool{} // the dimensions that i3 does not have
		for _, d := range a.I64s(5) {
			last[d] = true
		}
		for i := range in {
			in[i] = a.Tensor(i)
			for _, d := range a.I64s(3 + i) {
				in[i] = b.Call("unsqueeze", in[i], d)
			}
		}
		var first, second []int64
		for _, d := range a.I64s(6) {
			if last[d] {
				first = append(first, d)
			} else {
				second = append(second, d)
			}
		}
		p := sumProduct(b, sumProduct(b, in[0], in[1], first), in[2], second)
		if len(a.I64s(6)) == 0 {
			return One(p)
		}
		return One(b.Call("squeeze.dims", p, a.V[6]))
	}},
	{Schema: "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", Decomp: tensordot},
	{Schema: "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(einsum(b, a.Str(0), a.Tensors(1)))
	}},
	{Schema: "kron(Tensor self, Tensor other) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, y := a.Tensor(0), a.Tensor(1)
		n := max(x.Dim(), y.Dim())
		xs, ys, out := make([]symbolic.Int, 2*n), make([]symbolic.Int, 2*n), make([]symbolic.Int, n)
		one := symbolic.N(1)
		for i := range n {
			sx, sy := one, one
			if j := i - (n - x.Dim()); j >= 0 {
				sx = x.Sizes[j]
			}
			if j := i - (n - y.Dim()); j >= 0 {
				sy = y.Sizes[j]
			}
			xs[2*i], xs[2*i+1], ys[2*i], ys[2*i+1], out[i] = sx, one, one, sy, sx.Mul(sy)
		}
		p := b.Call("mul.Tensor", b.Call("reshape", x, xs), b.Call("reshape", y, ys))
		return One(b.Call("reshape", p, out))
	}},
	{Schema: "linalg_multi_dot(Tensor[] tensors) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(chain(b, a.Tensors(0))) }},
	{Schema: "chain_matmul(Tensor[] matrices) -> Tensor", Decomp: func(b *Build, a *Args) []*Value { return One(chain(b, a.Tensors(0))) }},
	{Schema: "_int_mm(Tensor self, Tensor mat2) -> Tensor", Shape: func(a *Args) []Meta {
		m := mmMeta(a.Tensor(0), a.Tensor(1))
		m.DType = tensor.Int32
		return []Meta{m}
	}, CPU: func(k *Kernel) { product(k, k.Out[0], k.as(k.T(0), tensor.Int32), k.as(k.T(1), tensor.Int32), false) }},
	{Schema: "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		r := b.Call("addmm", a.Tensor(0), a.Tensor(1), a.Tensor(2), Kw("beta", a.V[3]), Kw("alpha", a.V[4]))
		if a.Bool(5) {
			return One(b.Call("gelu", r, Kw("approximate", "tanh")))
		}
		return One(b.Call("relu", r))
	}},
}

// sumProduct is x*y summed over dims, which stay as dimensions of size 1; 16-bit floats are rounded once.
func sumProduct(b *Build, x, y *Value, dims []int64) *Value {
	dt := x.DType
	if dt.IsReduced() {
		x, y = b.Call("to.dtype", x, tensor.Float32), b.Call("to.dtype", y, tensor.Float32)
	}
	r := b.Call("mul.Tensor", x, y)
	if len(dims) > 0 {
		r = b.Call("sum.dim_IntList", r, dims, true, Kw("dtype", r.DType))
	}
	return b.Call("to.dtype", r, dt)
}

func outerProduct(b *Build, a *Args) []*Value {
	x, y := a.Tensor(0), a.Tensor(1)
	if x.Dim() != 1 || y.Dim() != 1 {
		Fail("outer: Expected 1-D argument self, but got %d-D", x.Dim())
	}
	return One(b.Call("mul.Tensor", b.Call("unsqueeze", x, 1), y))
}

func chain(b *Build, ts []*Value) *Value {
	if len(ts) < 2 {
		Fail("multi_dot(): expected at least 2 tensors but got %d", len(ts))
	}
	r := ts[0]
	for _, t := range ts[1:] {
		r = matmul(b, r, t)
	}
	return r
}

func rowsOf(v *Value) symbolic.Int {
	if v.Dim() == 0 {
		return symbolic.N(1)
	}
	return symbolic.Prod(v.Sizes[:v.Dim()-1]...)
}

func lastSize(v *Value) symbolic.Int {
	if v.Dim() == 0 {
		return symbolic.N(1)
	}
	return v.Sizes[v.Dim()-1]
}

func reversed(s []symbolic.Int) string {
	parts := make([]string, len(s))
	for i, x := range s {
		parts[len(s)-1-i] = x.String()
	}
	return strings.Join(parts, "x")
}

func sameDType(x, y *Value, what string) {
	if x.DType != y.DType {
		Fail("%s must have the same dtype, but got %s and %s", what, x.DType.CPPName(), y.DType.CPPName())
	}
}

func expandable(v *Value, to []symbolic.Int) {
	if got := broadcast2(to, v.Sizes); !SameSizes(got, to) {
		Fail("The expanded size of the tensor (%v) must match the existing size (%v)", to, v.Sizes)
	}
}

func mmMeta(x, y *Value) Meta {
	if x.Dim() != 2 {
		Fail("self must be a matrix")
	}
	if y.Dim() != 2 {
		Fail("mat2 must be a matrix")
	}
	if !x.Sizes[1].Eq(y.Sizes[0]) {
		Fail("mat1 and mat2 shapes cannot be multiplied (%vx%v and %vx%v)", x.Sizes[0], x.Sizes[1], y.Sizes[0], y.Sizes[1])
	}
	if x.DType != y.DType {
		Fail("expected m1 and m2 to have the same dtype, but got: %s != %s", x.DType, y.DType)
	}
	return Contig(x.DType, x.Sizes[0], y.Sizes[1])
}

func bmmMeta(x, y *Value) Meta {
	if x.Dim() != 3 || y.Dim() != 3 {
		Fail("batch1 and batch2 must be 3D tensors")
	}
	if !x.Sizes[0].Eq(y.Sizes[0]) || !x.Sizes[2].Eq(y.Sizes[1]) {
		Fail("Expected size for first two dimensions of batch2 tensor to be: [%v, %v] but got: [%v, %v].", x.Sizes[0], x.Sizes[2], y.Sizes[0], y.Sizes[1])
	}
	if x.DType != y.DType {
		Fail("expected scalar type %s but found %s", x.DType.CPPName(), y.DType.CPPName())
	}
	return Contig(x.DType, x.Sizes[0], x.Sizes[1], y.Sizes[2])
}

// combineLinear is beta*self + alpha*p; with beta 0 self is not looked at.
func combineLinear(b *Build, self, p *Value, beta, alpha Scalar) *Value {
	alpha, beta = inKind(alpha, p.DType), inKind(beta, p.DType)
	if alpha.Complex() != 1 {
		p = b.Call("mul.Scalar", p, alpha)
	}
	if beta.Complex() == 0 {
		return p
	}
	if beta.Complex() != 1 {
		self = b.Call("mul.Scalar", self, beta)
	}
	return b.Call("add.Tensor", self, p)
}

// addrOfBool is addr with "and" for products and "or" for sums.
func addrOfBool(b *Build, a *Args) *Value {
	p := b.Call("logical_and", b.Call("unsqueeze", a.Tensor(1), 1), a.Tensor(2))
	if a.Scalar(4).Complex() == 0 {
		p = b.Call("zeros_like", p)
	}
	if a.Scalar(3).Complex() == 0 {
		return p
	}
	return b.Call("logical_or", a.Tensor(0), p)
}

// inKind truncates a factor to an integer beside integers, as PyTorch does.
func inKind(s Scalar, dt tensor.DType) Scalar {
	if dt.IsIntegral() && s.Kind > IntScalar {
		return IntS(s.Int64())
	}
	return s
}

// productScratch is where a product that is still to be added to goes: the output itself, or float32 memory for 16-bit
// floats, because PyTorch rounds the sum alone.
func productScratch(out *tensor.Tensor) *tensor.Tensor {
	if out.DType().IsReduced() {
		return tensor.New(tensor.Float32, out.Sizes()...)
	}
	return out
}

// addTo finishes Out[0] = beta*self + alpha*p.
func addTo(k *Kernel, self, p *tensor.Tensor, beta, alpha Scalar) {
	out := k.Out[0]
	kind := KindOf(out.DType())
	bf, af, bi, ai, bc, ac := beta.Float64(), alpha.Float64(), beta.Int64(), alpha.Int64(), beta.Complex(), alpha.Complex()
	if bc == 0 {
		if ac == 1 {
			if p != out {
				Copy(k.Pool, out, p)
			}
			return
		}
		f := Fn1{
			I64: Each1(func(p int64) int64 { return ai * p }), F32: Each1(func(p float32) float32 { return float32(af) * p }),
			F64: Each1(func(p float64) float64 { return af * p }), C64: Each1(func(p complex64) complex64 { return complex64(ac) * p }),
			C128: Each1(func(p complex128) complex128 { return ac * p }),
		}
		Loop(k.Pool, []Operand{{T: out, Kind: kind}}, []Operand{{T: p, Kind: kind}}, f.body(kind))
		return
	}
	f := Fn2{
		I64: Each2(func(s, p int64) int64 { return bi*s + ai*p }), F32: addScaledF32(float32(bf), float32(af)),
		F64: Each2(func(s, p float64) float64 { return bf*s + af*p }), C64: Each2(func(s, p complex64) complex64 { return complex64(bc)*s + complex64(ac)*p }),
		C128: Each2(func(s, p complex128) complex128 { return bc*s + ac*p }),
	}
	Loop(k.Pool, []Operand{{T: out, Kind: kind}}, []Operand{{T: self, Kind: kind}, {T: p, Kind: kind}}, f.body(kind))
}

// addScaledF32 is beta*s + alpha*p over blocks.
func addScaledF32(beta, alpha float32) func(d, s, p []float32) {
	if beta == 1 && alpha == 1 {
		return cpu.AddF32
	}
	return Each2(func(s, p float32) float32 { return beta*s + alpha*p })
}

func matrixOf(t *tensor.Tensor) cpu.Matrix {
	return cpu.Matrix{Data: tensor.Data[float32](t), Row: int(t.Strides()[0]), Col: int(t.Strides()[1])}
}

// product is out = x*y for 2-d tensors of one dtype and any strides; f32 wants transposed marking only internally.
func product(k *Kernel, out, x, y *tensor.Tensor, _ bool) {
	m, n, d := int(out.Sizes()[0]), int(out.Sizes()[1]), int(x.Sizes()[1])
	if m == 0 || n == 0 {
		return
	}
	dt := out.DType()
	switch dt {
	case tensor.Float16, tensor.BFloat16:
		halfProduct(k, out, x, y, nil)
	case tensor.Float32:
		if x.DType().IsReduced() && y.DType() == x.DType() { // a product of 16-bit floats may want its float32 sums
			halfSums(k, out, x, y)
			return
		}
		if out.Strides()[1] == 1 {
			cpu.Gemm(k.Pool, m, n, d, matrixOf(x), matrixOf(y), tensor.Data[float32](out), int(out.Strides()[0]), false, nil)
			return
		}
		c := tensor.New(tensor.Float32, int64(m), int64(n))
		cpu.Gemm(k.Pool, m, n, d, matrixOf(x), matrixOf(y), tensor.Data[float32](c), n, false, nil)
		Copy(k.Pool, out, c)
	case tensor.Float64:
		naive[float64](k, out, x, y)
	case tensor.Complex64:
		naive[complex64](k, out, x, y)
	case tensor.Complex128:
		naive[complex128](k, out, x, y)
	case tensor.Complex32:
		c := tensor.New(tensor.Complex64, int64(m), int64(n))
		naive[complex64](k, c, k.as(x, tensor.Complex64), k.as(y, tensor.Complex64))
		Copy(k.Pool, out, c)
	case tensor.Int64:
		naive[int64](k, out, x, y)
	case tensor.Int32:
		naive[int32](k, out, x, y)
	case tensor.Int16:
		naive[int16](k, out, x, y)
	case tensor.Int8:
		naive[int8](k, out, x, y)
	case tensor.Uint8:
		naive[uint8](k, out, x, y)
	default:
		FailAs("NotImplementedError", "\"addmm_impl_cpu_\" not implemented for '%s'", dt.CPPName())
	}
}

// naive multiplies by rows, in the element type itself (integers wrap).
func naive[T tensor.Element](k *Kernel, out, x, y *tensor.Tensor) {
	m, n, d := out.Sizes()[0], out.Sizes()[1], x.Sizes()[1]
	od, xd, yd := tensor.Data[T](out), tensor.Data[T](x), tensor.Data[T](y)
	os, xs, ys := out.Strides(), x.Strides(), y.Strides()
	k.Pool.ParallelFor(int(m), max(1, int(65536/(n*max(d, 1)+1))), func(lo, hi int) {
		acc := make([]T, n)
		for i := int64(lo); i < int64(hi); i++ {
			clear(acc)
			for q := range d {
				a := xd[i*xs[0]+q*xs[1]]
				if ys[1] == 1 {
					for j, v := range yd[q*ys[0] : q*ys[0]+n] {
						acc[j] += a * v
					}
					continue
				}
				for j := range acc {
					acc[j] += a * yd[q*ys[0]+int64(j)*ys[1]]
				}
			}
			for j, v := range acc {
				od[i*os[0]+int64(j)*os[1]] = v
			}
		}
	})
}

// batchedProduct multiplies matrix by matrix.
func batchedProduct(k *Kernel, out, x, y *tensor.Tensor) {
	nb := int(out.Sizes()[0])
	sub := func(t *tensor.Tensor, i int) *tensor.Tensor {
		return t.WithView(t.Sizes()[1:], t.Strides()[1:], t.Offset()+int64(i)*t.Strides()[0])
	}
	if out.DType() == tensor.Float32 && x.DType() == out.DType() && y.DType() == out.DType() && out.Strides()[2] == 1 && out.Numel() > 0 && x.Sizes()[2] > 0 {
		batchedF32(k, out, x, y)
		return
	}
	if nb >= 2*k.Pool.Size() {
		serial := &Kernel{Args: k.Args}
		k.Pool.ParallelFor(nb, 1, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				product(serial, sub(out, i), sub(x, i), sub(y, i), false)
			}
		})
		return
	}
	for i := range nb {
		product(k, sub(out, i), sub(x, i), sub(y, i), false)
	}
}

// batchedF32 is batchedProduct without a tensor for each matrix. There is at least one product.
func batchedF32(k *Kernel, out, x, y *tensor.Tensor) {
	nb, m, n, d := int(out.Sizes()[0]), int(out.Sizes()[1]), int(out.Sizes()[2]), int(x.Sizes()[2])
	od, xd, yd := tensor.Data[float32](out), tensor.Data[float32](x), tensor.Data[float32](y)
	os, xs, ys := out.Strides(), x.Strides(), y.Strides()
	one := func(p *pool.Pool, i int) {
		a := cpu.Matrix{Data: xd[i*int(xs[0]):], Row: int(xs[1]), Col: int(xs[2])}
		b := cpu.Matrix{Data: yd[i*int(ys[0]):], Row: int(ys[1]), Col: int(ys[2])}
		cpu.Gemm(p, m, n, d, a, b, od[i*int(os[0]):], int(os[1]), false, nil)
	}
	if nb < 2*k.Pool.Size() {
		for i := range nb {
			one(k.Pool, i)
		}
		return
	}
	k.Pool.ParallelFor(nb, max(1, 65536/(m*n*d+1)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			one(nil, i)
		}
	})
}

// linearKernel is x*w^T + bias over the last dimension.
func linearKernel(k *Kernel) {
	x, w, out := k.contiguous(k.T(0)), k.T(1), k.Out[0]
	if out.Numel() == 0 {
		return
	}
	bias := k.OptT(2)
	if bias != nil && (bias.Dim() != 1 || bias.Sizes()[0] != out.Sizes()[out.Dim()-1]) { // anything that broadcasts is a bias
		plain := &Kernel{Args: &Args{Op: k.Op, V: []any{k.V[0], k.V[1], nil}}, Out: k.Out, Pool: k.Pool}
		linearKernel(plain)
		addScaled(plain, IntS(1), out, bias)
		return
	}
	d := x.Sizes()[x.Dim()-1]
	if w.Dim() == 1 {
		w = w.WithView([]int64{1, d}, []int64{0, w.Strides()[0]}, w.Offset())
	}
	n := w.Sizes()[0]
	m := out.Numel() / n
	x2 := x.WithView([]int64{m, d}, []int64{d, 1}, x.Offset())
	wt := w.WithView([]int64{d, n}, []int64{w.Strides()[1], w.Strides()[0]}, w.Offset())
	o2 := out.WithView([]int64{m, n}, []int64{n, 1}, out.Offset())
	if out.DType() == tensor.Float32 {
		var ep *cpu.Epilogue
		if bias != nil {
			ep = &cpu.Epilogue{ColBias: tensor.Contiguous[float32](k.contiguous(bias.WithView([]int64{n}, []int64{lastStride(bias)}, bias.Offset())))}
		}
		cpu.Gemm(k.Pool, int(m), int(n), int(d), matrixOf(x2), matrixOf(wt), tensor.Data[float32](o2), int(n), false, ep)
		return
	}
	if out.DType().IsReduced() {
		var wide []float32
		if bias != nil {
			wide = tensor.Contiguous[float32](k.as(bias.WithView([]int64{n}, []int64{lastStride(bias)}, bias.Offset()), tensor.Float32))
		}
		halfProduct(k, o2, x2, wt, wide)
		return
	}
	product(k, o2, x2, wt, false)
	if bias != nil {
		kk := &Kernel{Args: k.Args, Out: []*tensor.Tensor{o2}, Pool: k.Pool}
		addScaled(kk, IntS(1), o2, bias)
	}
}

func lastStride(t *tensor.Tensor) int64 {
	if t.Dim() == 0 {
		return 0
	}
	return t.Strides()[t.Dim()-1]
}

// matmul follows torch.matmul: vectors get a dimension and lose it again, batches broadcast.
func matmul(b *Build, x, y *Value) *Value {
	if x.Dim() == 0 || y.Dim() == 0 {
		Fail("both arguments to matmul need to be at least 1D, but they are %dD and %dD", x.Dim(), y.Dim())
	}
	if x.DType != y.DType {
		Fail("expected m1 and m2 to have the same dtype, but got: %s != %s", x.DType, y.DType)
	}
	switch {
	case x.Dim() == 1 && y.Dim() == 1:
		return b.Call("dot", x, y)
	case x.Dim() == 2 && y.Dim() == 1:
		return b.Call("mv", x, y)
	case x.Dim() == 1 && y.Dim() == 2:
		return b.Call("squeeze.dim", b.Call("mm", b.Call("unsqueeze", x, 0), y), 0)
	case x.Dim() == 2 && y.Dim() == 2:
		return b.Call("mm", x, y)
	case x.Dim() == 1:
		return b.Call("squeeze.dim", matmul(b, b.Call("unsqueeze", x, 0), y), -2)
	case y.Dim() == 1:
		return b.Call("squeeze.dim", matmul(b, x, b.Call("unsqueeze", y, 1)), -1)
	}
	xb, yb := &Value{}, &Value{}
	xb.Sizes, yb.Sizes = x.Sizes[:x.Dim()-2], y.Sizes[:y.Dim()-2]
	batch := broadcast2(xb.Sizes, yb.Sizes)
	m, d, n := x.Sizes[x.Dim()-2], x.Sizes[x.Dim()-1], y.Sizes[y.Dim()-1]
	if !d.Eq(y.Sizes[y.Dim()-2]) {
		if x.Dim() <= 3 && y.Dim() <= 3 && x.Dim() == y.Dim() {
			Fail("Expected size for first two dimensions of batch2 tensor to be: [%v, %v] but got: [%v, %v].", x.Sizes[0], d, y.Sizes[0], y.Sizes[y.Dim()-2])
		}
		Fail("mat1 and mat2 shapes cannot be multiplied (%vx%v and %vx%v)", rowsOf(x), d, y.Sizes[y.Dim()-2], n)
	}
	out := append(append([]symbolic.Int{}, batch...), m, n)
	if y.Dim() == 2 { // one matrix for the whole batch: a single product
		r := b.Call("mm", b.Call("reshape", x, []symbolic.Int{rowsOf(x), d}), y)
		return b.Call("view", r, out)
	}
	nb := symbolic.Prod(batch...)
	x3 := b.Call("reshape", b.Call("expand", x, append(append([]symbolic.Int{}, batch...), m, d)), []symbolic.Int{nb, m, d})
	y3 := b.Call("reshape", b.Call("expand", y, append(append([]symbolic.Int{}, batch...), d, n)), []symbolic.Int{nb, d, n})
	return b.Call("view", b.Call("bmm", x3, y3), out)
}

func tensordot(b *Build, a *Args) []*Value {
	x, y := a.Tensor(0), a.Tensor(1)
	if len(a.I64s(2)) != len(a.I64s(3)) {
		Fail("both dimension lists should have same length")
	}
	var dx, dy []int
	if len(a.I64s(2)) > 0 {
		dx, dy = WrapDims(a.I64s(2), x.Dim()), WrapDims(a.I64s(3), y.Dim())
	}
	for i := range dx { // a size of 1 stands for the other's: that one is summed away
		switch nx, ny := x.Sizes[dx[i]].Int64(), y.Sizes[dy[i]].Int64(); {
		case nx == 1 && ny != 1:
			y = b.Call("sum.dim_IntList", y, []int{dy[i]}, true, Kw("dtype", y.DType))
		case ny == 1 && nx != 1:
			x = b.Call("sum.dim_IntList", x, []int{dx[i]}, true, Kw("dtype", x.DType))
		}
	}
	isX, isY := make([]bool, x.Dim()), make([]bool, y.Dim())
	inner := symbolic.N(1)
	for i := range dx {
		if !x.Sizes[dx[i]].Eq(y.Sizes[dy[i]]) {
			Fail("contracted dimensions need to match, but first has size %v in dim %d and second has size %v in dim %d", x.Sizes[dx[i]], dx[i], y.Sizes[dy[i]], dy[i])
		}
		isX[dx[i]], isY[dy[i]] = true, true
		inner = inner.Mul(x.Sizes[dx[i]])
	}
	var px, py []int64
	var out []symbolic.Int
	m, n := symbolic.N(1), symbolic.N(1)
	for d := range x.Dim() {
		if !isX[d] {
			px = append(px, int64(d))
			out = append(out, x.Sizes[d])
			m = m.Mul(x.Sizes[d])
		}
	}
	for i := range dx {
		px, py = append(px, int64(dx[i])), append(py, int64(dy[i]))
	}
	for d := range y.Dim() {
		if !isY[d] {
			py = append(py, int64(d))
			out = append(out, y.Sizes[d])
			n = n.Mul(y.Sizes[d])
		}
	}
	if out == nil {
		out = []symbolic.Int{}
	}
	x2 := b.Call("reshape", b.Call("permute", x, px), []symbolic.Int{m, inner})
	y2 := b.Call("reshape", b.Call("permute", y, py), []symbolic.Int{inner, n})
	return One(b.Call("reshape", b.Call("mm", x2, y2), out))
}
