package aten

import (
	"encoding/binary"
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// The exponential of matrices by Taylor polynomials of degree 1, 2, 4, 8, 12 and 18 (Bader, Blanes, Casas: Computing the Matrix
// Exponential with an Optimized Taylor Polynomial Approximation, Mathematics 2019, 7, 1174), in the dtype of the argument and in
// PyTorch's order of operations, because sums with much cancellation depend on both.

var matrixExpOps = []Op{
	{Schema: "linalg_matrix_exp(Tensor self) -> Tensor", Shape: func(a *Args) []Meta {
		x := a.Tensor(0)
		linSquare(x, "linalg.matrix_exp")
		if !x.DType.IsFloat() && !x.DType.IsComplex() {
			linFloat(x, "linalg.matrix_exp", "")
		}
		if x.Size(-1).Le(symbolic.N(1)) {
			return shapeSame(a)
		}
		if x.DType == tensor.Complex32 {
			FailAs("NotImplementedError", `"bmm" not implemented for 'ComplexHalf'`)
		}
		return []Meta{Contig(x.DType, x.Sizes...)}
	}, composed: matrixExpKernel, Note: "16-bit floats give what PyTorch 2.15 gives, which reads the coefficients of its polynomials in the wrong type: NaN or huge numbers"},
	{Schema: "matrix_exp(Tensor self) -> Tensor", Decomp: linFirst("linalg_matrix_exp")},
	{Schema: "matrix_exp_backward(Tensor self, Tensor grad) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		// The upper right block of exp([[A^H, G], [0, A^H]]).
		ah, g := b.Call("mH", a.Tensor(0)), a.Tensor(1)
		top := b.Call("cat", []*Value{ah, g}, -1)
		low := b.Call("cat", []*Value{b.Call("zeros_like", g), ah}, -1)
		e := b.Call("linalg_matrix_exp", b.Call("cat", []*Value{top, low}, -2))
		n := ah.Size(-1)
		return One(b.Call("slice.Tensor", b.Call("slice.Tensor", e, -2, 0, n), -1, n, n.Add(n)))
	}},
}

// matrixExp is one computation: the calls run at once.
type matrixExp struct {
	*Build
	dtype  tensor.DType
	single bool // coefficients and bounds are float32
}

func matrixExpKernel(b *Build, k *Kernel) {
	x, out := k.T(0), k.Out[0]
	batch, n, _ := linDims(x)
	if n <= 1 || batch == 0 {
		Copy(k.Pool, out, b.Call("exp", FromTensor(x)).T)
		return
	}
	m := &matrixExp{Build: b, dtype: x.DType(), single: x.DType() == tensor.Float32 || x.DType() == tensor.Complex64}
	a := b.Call("reshape", FromTensor(x), []int64{int64(batch), int64(n), int64(n)})
	y := b.Call("reshape", m.all(a), x.Sizes())
	Copy(k.Pool, out, y.T)
}

// Bounds of the norm up to which the degrees serve.
var (
	matrixExpThetas   = [6]float64{2.220446049250313e-16, 2.580956802971767e-08, 3.397168839976962e-04, 4.991228871115323e-02, 2.996158913811580e-01, 1.090863719290036e+00}
	matrixExpThetas32 = [6]float64{1.192092800768788e-07, 5.978858893805233e-04, 5.116619363445086e-02, 5.800524627688768e-01, 1.461661507209034e+00, 3.010066362817634e+00}
)

// all is the exponential of a, [B, N, N]: one matrix by the degree that its norm asks for, more than one by the highest.
func (m *matrixExp) all(a *Value) *Value {
	thetas := matrixExpThetas
	if m.single {
		for i, v := range matrixExpThetas32 {
			thetas[i] = float64(float32(v))
		}
	}
	norm := m.Call("amax", m.Call("sum.dim_IntList", m.Call("abs", a), []int{-2}), []int{-1}) // [B]
	if a.Sizes[0].Int64() > 1 {
		return m.scaled(a, norm, thetas[5])
	}
	holds := func(name string, bound float64) bool { return m.Call(name, norm, bound).T.Float(0) != 0 }
	if holds("ge.Scalar", thetas[4]) {
		return m.scaled(a, norm, thetas[5])
	}
	for i, degree := range []func(a *Value) *Value{m.degree1, m.degree2, m.degree4, m.degree8, m.degree12} {
		if holds("le.Scalar", thetas[i]) {
			return degree(a)
		}
	}
	return m.Call("full_like", a, math.NaN())
}

// scaled is exp(a / 2^s)^(2^s) with s from the norm of each matrix.
func (m *matrixExp) scaled(a, norm *Value, theta float64) *Value {
	s := m.Call("clamp", m.Call("ceil", m.Call("log2", m.Call("div.Scalar", norm, theta))), 0)
	scale := m.Call("pow.Scalar", 2, m.Call("neg", s))
	y := m.degree18(m.Call("mul.Tensor", a, m.Call("view", scale, []int{-1, 1, 1})))
	each := make([]*Value, a.Sizes[0].Int64())
	for i := range each {
		each[i] = m.Call("clone", m.Call("slice.Tensor", y, 0, i, i+1))
		if n := s.T.Float(int64(i)); n < 1<<12 { // no squaring of what is infinite or NaN
			for range int(n) {
				each[i] = m.product(each[i], each[i])
			}
		}
	}
	return m.Call("cat", each, 0)
}

// powers are I, A, A^2, A^3 and A^6, the first n of them.
func (m *matrixExp) powers(a *Value, n int) []*Value {
	size := a.Sizes[1].Int64()
	eye := m.Call("expand", m.Call("eye", size, Kw("dtype", m.dtype)), []int64{a.Sizes[0].Int64(), size, size})
	p := []*Value{m.Call("contiguous", eye), m.Call("contiguous", a)}
	for _, f := range [][2]int{{1, 1}, {1, 2}, {3, 3}} {
		if len(p) < n {
			p = append(p, m.product(p[f[0]], p[f[1]]))
		}
	}
	return p[:n]
}

func (m *matrixExp) sum(l ...*Value) *Value {
	return m.Call("sum.dim_IntList", m.Call("stack", l, 0), []int{0})
}

func (m *matrixExp) degree1(a *Value) *Value { return m.sum(m.powers(a, 2)...) }

func (m *matrixExp) degree2(a *Value) *Value {
	p := m.powers(a, 3)
	return m.sum(p[0], p[1], m.Call("div.Scalar", p[2], 2))
}

func (m *matrixExp) degree4(a *Value) *Value {
	p := m.powers(a, 3)
	q := m.product(p[2], m.combine(p, 1./2, 1./6, 1./24))
	return m.combine(append(p, q), 1, 1, 0, 1)
}

func (m *matrixExp) degree8(a *Value) *Value {
	r := func(v float64) float64 { // coefficients are computed in float64 from rounded ones
		if m.single {
			return float64(float32(v))
		}
		return v
	}
	root := r(0.1330413469565007072504e+2) // of 177
	x3 := r(2. / 3)
	x1, x2 := r(x3*((1+root)/88)), r(x3*((1+root)/352))
	x4, x5 := r((-271+29*root)/(315*x3)), r((-11+11*root)/(1260*x3))
	x6, x7 := r((-99+11*root)/(5040*x3)), r((89-root)/(5040*x3*x3))
	y2 := r((857 - 58*root) / 630)
	p := m.powers(a, 3)
	a4 := m.product(p[2], m.combine(p[1:3], x1, x2))
	p = append(p, a4)
	a8 := m.product(m.combine(p[2:4], x3, 1), m.combine(p, x4, x5, x6, x7))
	return m.combine(append(p, a8), 1, 1, y2, 0, 1)
}

var matrixExp12 = [...]float64{
	9.0198e-16, 0.46932117595418237389, -0.20099424927047284052, -0.04623946134063071740,
	5.31597895759871264183, 1.19926790417132231573, 0.01179296240992997031, 0.01108844528519167989,
	0.18188869982170434744, 0.05502798439925399070, 0.09351590770535414968, 0.00610700528898058230,
	-2.0861320e-13, -0.13181061013830184015, -0.02027855540589259079, -0.00675951846863086359,
}

func (m *matrixExp) degree12(a *Value) *Value {
	c := m.rows(m.powers(a, 4), matrixExp12[:])
	a6 := m.add(c[2], m.product(c[3], c[3]))
	return m.add(c[0], m.product(m.add(c[1], a6), a6))
}

var matrixExp18 = [...]float64{
	0, -1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04, 0,
	0, 3.97849749499645077844e-01, 1.36783778460411720168e+00, 4.98289622525382669416e-01, -6.37898194594723280150e-04,
	-1.09676396052962061844e+01, 1.68015813878906206114e+00, 5.71779846478865511061e-02, -6.98210122488052056106e-03, 3.34975017086070470649e-05,
	-9.04316832390810593223e-02, -6.76404519071381882256e-02, 6.75961301770459654925e-02, 2.95552570429315521194e-02, -1.39180257516060693404e-05,
	0, 0, -9.23364619367118555360e-02, -1.69364939002081722752e-02, -1.40086798182036094347e-05,
}

func (m *matrixExp) degree18(a *Value) *Value {
	c := m.rows(m.powers(a, 5), matrixExp18[:])
	a9 := m.add(c[3], m.product(c[0], c[4]))
	return m.add(c[1], m.product(m.add(c[2], a9), a9))
}

func (m *matrixExp) add(x, y *Value) *Value { return m.Call("add.Tensor", x, y) }

// rows combines p with each row of a square table.
func (m *matrixExp) rows(p []*Value, table []float64) []*Value {
	out, coeff := make([]*Value, len(p)), m.coefficients(table)
	for i := range out {
		out[i] = m.combined(p, coeff[i*len(p):][:len(p)])
	}
	return out
}

func (m *matrixExp) combine(p []*Value, c ...float64) *Value { return m.combined(p, m.coefficients(c)) }

// coefficients rounds c to what PyTorch computes with. For 16-bit floats those are the bytes of float64 numbers, two by two.
func (m *matrixExp) coefficients(c []float64) []float64 {
	out := make([]float64, len(c))
	var bytes []byte
	for i, v := range c {
		bytes = binary.LittleEndian.AppendUint64(bytes, math.Float64bits(v))
		if out[i] = v; m.single {
			out[i] = float64(float32(v))
		}
	}
	for i := range out {
		switch bits := binary.LittleEndian.Uint16(bytes[2*i:]); m.dtype {
		case tensor.Float16:
			out[i] = float64(tensor.F16ToF32(bits))
		case tensor.BFloat16:
			out[i] = float64(tensor.BF16ToF32(bits))
		}
	}
	return out
}

// combined is the sum of c[i]*p[i], one term after the other, each step rounded.
func (m *matrixExp) combined(p []*Value, c []float64) *Value {
	sum := m.Call("zeros_like", p[0])
	for i, v := range p {
		switch m.dtype {
		case tensor.Float32:
			addTimes(sum.T, v.T, float32(c[i]))
		case tensor.Float64:
			addTimes(sum.T, v.T, c[i])
		case tensor.Complex64:
			x, y, c := tensor.Contiguous[complex64](sum.T), tensor.Contiguous[complex64](v.T), float32(c[i])
			for j := range x {
				x[j] += complex(real(y[j])*c, imag(y[j])*c)
			}
		case tensor.Complex128:
			x, y, c := tensor.Contiguous[complex128](sum.T), tensor.Contiguous[complex128](v.T), c[i]
			for j := range x {
				x[j] += complex(real(y[j])*c, imag(y[j])*c)
			}
		default:
			sum = m.add(sum, m.Call("mul.Scalar", v, c[i]))
		}
	}
	return sum
}

func addTimes[T float32 | float64](sum, v *tensor.Tensor, c T) {
	x, y := tensor.Contiguous[T](sum), tensor.Contiguous[T](v)
	for i := range x {
		x[i] += T(y[i] * c) // the conversion keeps the two roundings apart
	}
}

// product is x*y. Few numbers are multiplied and added one by one, as PyTorch's bmm does.
func (m *matrixExp) product(x, y *Value) *Value {
	const few = 400
	if n := x.Sizes[1].Int64(); n*n*n >= few {
		return m.Call("bmm", x, y)
	}
	switch m.dtype {
	case tensor.Float32:
		return smallProduct[float32](x, y)
	case tensor.Float64:
		return smallProduct[float64](x, y)
	case tensor.Complex64:
		return smallProduct[complex64](x, y)
	case tensor.Complex128:
		return smallProduct[complex128](x, y)
	}
	return m.Call("bmm", x, y)
}

func smallProduct[T float32 | float64 | complex64 | complex128](x, y *Value) *Value {
	out := tensor.New(x.DType, x.T.Sizes()...)
	n := int(x.Sizes[1].Int64())
	p, q, r := tensor.Contiguous[T](x.T), tensor.Contiguous[T](y.T), tensor.Contiguous[T](out)
	for at := 0; at < len(r); at += n * n {
		for i := range n {
			for j := range n {
				var sum T
				for k := range n {
					sum += T(p[at+i*n+k] * q[at+k*n+j])
				}
				r[at+i*n+j] = sum
			}
		}
	}
	return FromTensor(out)
}
