package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func pointwise() { forBoth(pointwiseFunctions) }

func pointwiseFunctions() {
	binary("add", "is dst = a + b.", func(a, b vec) vec { return add(a, b) })
	binary("sub", "is dst = a - b.", func(a, b vec) vec { return sub(a, b) })
	binary("mul", "is dst = a * b.", func(a, b vec) vec { return mul(a, b) })
	binary("div", "is dst = a / b.", func(a, b vec) vec { return div(a, b) })
	binary("maximum", "is the larger of a and b.", func(a, b vec) vec { return choose(cmp(a, 3, a), a, maxOf(a, b)) })
	binary("minimum", "is the smaller of a and b.", func(a, b vec) vec { return choose(cmp(a, 3, a), a, minOf(a, b)) })

	binary("prelu", "is a where a > 0, else a * b.", func(a, b vec) vec { return choose(cmp(a, 14, load(num(0))), a, mul(a, b)) })

	scalar("addScalar", "is dst = a + s.", func(a, s vec) vec { return add(a, s) })
	scalar("rsubScalar", "is dst = s - a.", func(a, s vec) vec { return sub(s, a) })
	scalar("mulScalar", "is dst = a * s.", func(a, s vec) vec { return mul(a, s) })
	scalar("divScalar", "is dst = a / s.", func(a, s vec) vec { return div(a, s) })
	scalar("rdivScalar", "is dst = s / a.", func(a, s vec) vec { return div(s, a) })
	scalar("maximumScalar", "is the larger of a and s.", func(a, s vec) vec { return choose(cmp(a, 3, a), a, maxOf(a, s)) })
	scalar("minimumScalar", "is the smaller of a and s.", func(a, s vec) vec { return choose(cmp(a, 3, a), a, minOf(a, s)) })
	scalar("leakyReLU", "is a where a > 0, else a * s.", func(a, s vec) vec { return choose(cmp(a, 14, load(num(0))), a, mul(a, s)) })

	unary("neg", "is -x.", 4, func(x vec) vec { return xor(x, signBit()) })
	unary("abs", "is |x|.", 4, func(x vec) vec { return and(x, magnitude()) })
	unary("cube", "is x * x * x.", 4, func(x vec) vec { return mul(mul(x, x), x) })
	unary("sqrt", "is the square root.", 2, func(x vec) vec { y := VEC(); VSQRTPS(x, y); return y })
	unary("rsqrt", "is 1 / sqrt(x).", 2, func(x vec) vec { y := VEC(); VSQRTPS(x, y); return div(load(num(1)), y) })
	unary("relu", "is the larger of x and 0.", 4, func(x vec) vec { return maxOf(load(num(0)), x) })
	unary("floor", "rounds down.", 4, rounding(9))
	unary("ceil", "rounds up.", 4, rounding(10))
	unary("round", "rounds to the nearest integer, halves to even.", 4, rounding(8))
	unary("trunc", "rounds towards zero.", 4, rounding(11))
	unary("exp", "is e^x.", 2, exp)
	unary("log", "is the natural logarithm.", 2, log)
	unary("expm1", "is e^x - 1.", 2, expm1)
	unary("log1p", "is log(1 + x).", 1, log1p)
	unary("tanh", "is the hyperbolic tangent.", 1, tanh)
	logistic("sigmoid", "is 1 / (1 + e^-x).", func(x, d vec) vec { return div(load(num(1)), d) })
	logistic("silu", "is x / (1 + e^-x).", func(x, d vec) vec { return div(x, d) })
	unary("erf", "is the error function.", 1, erf)
	unary("gelu", "is x * (1 + erf(x/sqrt 2)) / 2.", 1, gelu)
	unary("geluTanh", "is gelu's approximation by tanh.", 2, geluTanh)
	unary("sin", "is the sine, for |x| up to the limit of the caller.", 1, func(x vec) vec { return sincos(x, 0) })
	unary("cos", "is the cosine, for |x| up to the limit of the caller.", 1, func(x vec) vec { return sincos(x, 1) })
	unary("hardSwish", "is x * min(max(x+3, 0), 6) / 6.", 2, hardSwish)
	unary("hardSigmoid", "is min(max(x+3, 0), 6) / 6.", 2, func(x vec) vec { return mul(clamp6(x), num(1.0/6)) })
	unary("mish", "is x * tanh(log(1 + e^x)).", 1, mish)
	mulAdd()
	where()
	repeat()
	affine()
	center()
	normRow()
}

func rounding(mode uint64) func(x vec) vec {
	return func(x vec) vec { return rounded(mode, x) }
}

func unary(name, doc string, unroll int, body func(x vec) vec) {
	full := name + "F32" + isa()
	function(full, "func(dst, x *float32, n int)", doc)
	dst, x, n := Load(Param("dst"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	p := pass{name: name, in: []Register{x}, out: dst, n: n, unroll: unroll, body: func(in []vec, _ Op, _ int) vec { return body(in[0]) }}
	p.emit()
	VZEROUPPER()
	RET()
}

func binary(name, doc string, body func(a, b vec) vec) {
	function(name+"F32"+isa(), "func(dst, a, b *float32, n int)", doc)
	dst, a, b, n := Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64()), Load(Param("n"), GP64())
	p := pass{name: name, in: []Register{a, b}, out: dst, n: n, unroll: 4, body: func(in []vec, _ Op, _ int) vec { return body(in[0], in[1]) }}
	p.emit()
	VZEROUPPER()
	RET()
}

func scalar(name, doc string, body func(a, s vec) vec) {
	function(name+"F32"+isa(), "func(dst, a *float32, s float32, n int)", doc)
	dst, a, n := Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("n"), GP64())
	s := broadcast("s")
	p := pass{name: name, in: []Register{a}, out: dst, n: n, unroll: 4, body: func(in []vec, _ Op, _ int) vec { return body(in[0], s) }}
	p.emit()
	VZEROUPPER()
	RET()
}

func mulAdd() {
	function("mulAddF32"+isa(), "func(dst, a, b, c *float32, n int)", "is dst = a*b + c, rounded once.")
	dst, a, b, c, n := Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64()), Load(Param("c"), GP64()), Load(Param("n"), GP64())
	p := pass{name: "mulAdd", in: []Register{a, b, c}, out: dst, n: n, unroll: 2, body: func(in []vec, _ Op, _ int) vec {
		VFMADD213PS(in[2], in[1], in[0])
		return in[0]
	}}
	p.emit()
	VZEROUPPER()
	RET()
}

func where() {
	function("whereF32"+isa(), "func(dst, c, a, b *float32, n int)", "is a where c is not 0, else b.")
	dst, c, a, b, n := Load(Param("dst"), GP64()), Load(Param("c"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64()), Load(Param("n"), GP64())
	p := pass{name: "where", in: []Register{c, a, b}, out: dst, n: n, unroll: 4, body: func(in []vec, _ Op, _ int) vec {
		return choose(cmp(in[0], 4, load(num(0))), in[1], in[2])
	}}
	p.emit()
	VZEROUPPER()
	RET()
}

func repeat() {
	function("repeatF32"+isa(), "func(dst, src *float32, m, each int)", "is each of m numbers of src as often as each says.")
	dst, src, m, each := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("m"), GP64()), Load(Param("each"), GP64())
	rest, n := GP64(), GP64()
	MOVQ(each, rest)
	ANDQ(I32(int32(width()-1)), rest)
	MOVQ(rest, n)
	mask := loadTailMask(n)
	x := VEC()
	Label("repeat_next")
	TESTQ(m, m)
	JE(LabelRef("repeat_done"))
	VBROADCASTSS(Mem{Base: src}, x)
	ADDQ(I32(4), src)
	MOVQ(each, n)
	Label("repeat_vectors")
	SUBQ(I32(int32(width())), n)
	JL(LabelRef("repeat_tail"))
	VMOVUPS(x, Mem{Base: dst})
	ADDQ(I32(int32(4*width())), dst)
	JMP(LabelRef("repeat_vectors"))
	Label("repeat_tail")
	storeMasked(x, mask, Mem{Base: dst})
	LEAQ(Mem{Base: dst, Index: rest, Scale: 4}, dst)
	DECQ(m)
	JMP(LabelRef("repeat_next"))
	Label("repeat_done")
	VZEROUPPER()
	RET()
}

func affine() {
	function("affineF32"+isa(), "func(dst, x *float32, scale, shift float32, n int)", "is dst = x*scale + shift, rounded once.")
	dst, x, n := Load(Param("dst"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	scale, shift := broadcast("scale"), broadcast("shift")
	p := pass{name: "affine", in: []Register{x}, out: dst, n: n, unroll: 4, body: func(in []vec, _ Op, _ int) vec {
		VFMADD213PS(shift, scale, in[0])
		return in[0]
	}}
	p.emit()
	VZEROUPPER()
	RET()
}

func normRow() {
	function("normRowF32"+isa(), "func(dst, x, weight, bias *float32, mean, scale float32, n int)", "is dst = (x-mean)*scale*weight + bias.")
	dst, x, w, b, n := Load(Param("dst"), GP64()), Load(Param("x"), GP64()), Load(Param("weight"), GP64()), Load(Param("bias"), GP64()), Load(Param("n"), GP64())
	mean, scale := broadcast("mean"), broadcast("scale")
	p := pass{name: "normRow", in: []Register{x, w, b}, out: dst, n: n, unroll: 2, body: func(in []vec, _ Op, _ int) vec {
		d := mul(sub(in[0], mean), scale)
		VFMADD213PS(in[2], in[1], d)
		return d
	}}
	p.emit()
	VZEROUPPER()
	RET()
}

func center() {
	function("centerF32"+isa(), "func(dst, x *float32, mean, scale, shift float32, n int)", "is dst = (x-mean)*scale + shift.")
	dst, x, n := Load(Param("dst"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	mean, scale, shift := broadcast("mean"), broadcast("scale"), broadcast("shift")
	p := pass{name: "center", in: []Register{x}, out: dst, n: n, unroll: 4, body: func(in []vec, _ Op, _ int) vec {
		d := sub(in[0], mean)
		VFMADD213PS(shift, scale, d)
		return d
	}}
	p.emit()
	VZEROUPPER()
	RET()
}

func signBit() Mem   { return bits(0x80000000) }
func magnitude() Mem { return bits(0x7fffffff) }

// exp: x = n ln 2 + r, e^x = 2^n e^r. Without an instruction for it the power is applied in two halves, so that results below the normal
// range come out right.
func exp(x vec) vec {
	x = minOf(load(num(89)), x)
	x = maxOf(load(num(-104.5)), x)
	if wide {
		y, n := expFloats(x)
		VSCALEFPS(n, y, y)
		return y
	}
	y, i := expParts(x)
	half := VEC()
	VPSRAD(Imm(1), i, half)
	VPSUBD(half, i, i)
	return mul(mul(y, power2(half)), power2(i))
}

// expm1: with x = n ln 2 + r and q = e^r - 1, e^x - 1 = 2^n q + (2^n - 1). Halves, so that 2^128 does not overflow too early.
func expm1(x vec) vec {
	v := minOf(load(num(89)), x)
	v = maxOf(load(num(-30)), v)
	q, n := expReduced(v)
	i, half := VEC(), VEC()
	VCVTPS2DQ(n, i)
	with(VPADDD, VPADDD_BCST, bits(126), i, half)
	VPSLLD(Imm(23), half, half) // 2^(n-1)
	y := sub(half, num(0.5))
	VFMADD231PS(half, q, y)
	y = add(y, y)
	return choose(cmp(x, 0, load(num(0))), x, y) // -0 stays
}

// log1p: the rounding error of 1 + x is made good in first order.
func log1p(x vec) vec {
	u := add(x, num(1))
	c := div(sub(x, sub(u, num(1))), u)
	y := log(u)
	whole := add(y, c)
	zero := load(num(0))
	y = choose(cmp(u, 14, zero), whole, y) // u > 0
	y = choose(cmp(u, 14, num(math.MaxFloat32)), u, y)
	return choose(cmp(x, 0, zero), x, y)
}

// expNormal is e^x where x and the result are known to be within the normal range.
func expNormal(x vec) vec {
	y, i := expParts(x)
	VPSLLD(Imm(23), i, i)
	VPADDD(y, i, i) // into the exponent
	return i
}

// expParts gives e^r and n of e^x = 2^n e^r, n as an integer.
func expParts(x vec) (y, i vec) {
	y, n := expFloats(x)
	i = VEC()
	VCVTPS2DQ(n, i)
	return y, i
}

func expFloats(x vec) (y, n vec) {
	y, n = expReduced(x)
	return add(y, num(1)), n
}

// expReduced gives e^r - 1 and n of e^x = 2^n e^r.
func expReduced(x vec) (y, n vec) {
	n, r := rounded(8, mul(x, num(math.Log2E))), copyOf(x)
	const hi = 0.693359375 // few bits, so that n*hi is exact
	with(VFNMADD231PS, VFNMADD231PS_BCST, num(hi), n, r)
	with(VFNMADD231PS, VFNMADD231PS_BCST, num(math.Ln2-hi), n, r)
	y = poly(r, 0.500000001429, 0.166666667618, 0.0416664567882, 0.00833328417373, 0.00139345437939, 0.000199088600083)
	VFMADD213PS(r, mul(r, r), y) // r + r^2 p
	return y, n
}

// power2 is 2^i of integers in the exponent's range.
func power2(i vec) vec {
	y := VEC()
	with(VPADDD, VPADDD_BCST, bits(127), i, y)
	VPSLLD(Imm(23), y, y)
	return y
}

// log: x = 2^e m with m in [sqrt 1/2, sqrt 2), log x = e ln 2 + log m.
func log(x vec) vec {
	tiny := cmp(x, 1, num(0x1p-126))
	v := choose(tiny, mul(x, num(0x1p23)), x)
	e, m := VEC(), VEC()
	root := math.Float32bits(math.Sqrt2 / 2)
	with(VPSUBD, VPSUBD_BCST, bits(root), v, e)
	intAnd(bits(0x7fffff), e, m)
	with(VPADDD, VPADDD_BCST, bits(root), m, m)
	VPSRAD(Imm(23), e, e)
	VCVTDQ2PS(e, e)
	e = sub(e, keep(tiny, load(num(23))))
	f := sub(m, num(1))
	f2 := mul(f, f)
	p := poly(f, 0.333333104479, -0.249999865759, 0.200022261108, -0.166692517273, 0.142186682592, -0.123843384867, 0.118728948988, -0.117898392299, 0.0691558617599)
	y := mul(mul(p, f), f2) // f^3 p
	const hi = 0.693359375
	with(VFMADD231PS, VFMADD231PS_BCST, num(math.Ln2-hi), e, y)
	with(VFNMADD231PS, VFNMADD231PS_BCST, num(0.5), f2, y)
	y = add(y, f)
	with(VFMADD231PS, VFMADD231PS_BCST, num(hi), e, y)
	// 0 gives -Inf, negative numbers NaN; Inf and NaN stay.
	zero := load(num(0))
	y = choose(cmp(x, 0, zero), load(num(math.Inf(-1))), y)
	y = choose(cmp(x, 1, zero), load(bits(0x7fc00000)), y)
	special := cmp(x, 6, num(math.MaxFloat32)) // not <=, or unordered
	return choose(special, x, y)
}

func tanh(x vec) vec {
	a := and(x, magnitude())
	z := mul(x, x)
	small := poly(z, -0.333333331625, 0.133333017699, -0.0539587848815, 0.0217647584146, -0.00832961599167, 0.00227591875898)
	VFMADD213PS(x, mul(z, x), small) // x + x^3 p
	e := add(exp(add(a, a)), num(1))
	big := sub(load(num(1)), div(load(num(2)), e))
	y := or(choose(cmp(a, 1, num(0.6)), small, big), and(x, signBit()))
	return choose(cmp(x, 3, x), x, y)
}

// hardSwish multiplies by 1/6: a division takes as long as all else. The product comes first, so that it overflows where PyTorch's does.
func hardSwish(x vec) vec { return mul(mul(x, clamp6(x)), num(1.0/6)) }

// logistic writes a function of x and 1 + e^-x.
func logistic(name, doc string, f func(x, d vec) vec) {
	if !wide {
		unary(name, doc, 2, func(x vec) vec { return f(x, onePlusExpNeg(x)) })
		return
	}
	function(name+"F32"+isa(), "func(dst, x *float32, n int)", doc)
	dst, x, n := Load(Param("dst"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	c := loadExpNeg()
	p := pass{name: name, in: []Register{x}, out: dst, n: n, unroll: 4, together: func(in []vec) []vec {
		var out []vec
		for i, d := range c.onePlus(in...) {
			out = append(out, f(in[i], d))
		}
		return out
	}}
	p.emit()
	VZEROUPPER()
	RET()
}

// expNegConstants are what 1 + e^-x is made of with AVX-512, in registers.
type expNegConstants struct{ lo, hi, log2e, rest, magic, one, c1, c2, c3, c4, c5, c6 vec }

func loadExpNeg() *expNegConstants {
	log2e := float64(float32(math.Log2E))
	return &expNegConstants{
		lo: load(num(-89)), hi: load(num(104.5)), log2e: load(num(log2e)), rest: load(num(math.Log2E - log2e)), magic: load(num(1.5 * (1 << 23))),
		one: load(num(1)), c1: load(num(0.6931472029)), c2: load(num(0.2402264791)), c3: load(num(0.05550332471)),
		c4: load(num(0.009618437358)), c5: load(num(0.001339887449)), c6: load(num(0.0001535336186)),
	}
}

// onePlus is 1 + e^-x: -x log2 e = n + f, and 2^f by a polynomial whose relative error is 2e-9. Vectors take each step together, so that
// few instructions wait for others.
func (c *expNegConstants) onePlus(x ...vec) []vec {
	z, n, f, p := make([]vec, len(x)), make([]vec, len(x)), make([]vec, len(x)), make([]vec, len(x))
	step := func(do func(i int)) {
		for i := range x {
			do(i)
		}
	}
	step(func(i int) { z[i] = minOf(c.hi, x[i]) })
	step(func(i int) { z[i] = maxOf(c.lo, z[i]) })                                  // NaN stays
	step(func(i int) { n[i] = copyOf(z[i]); VFNMADD213PS(c.magic, c.log2e, n[i]) }) // magic - x log2 e: rounded to an integer
	step(func(i int) { VSUBPS(c.magic, n[i], n[i]) })
	step(func(i int) { f[i] = copyOf(z[i]); VFNMSUB213PS(n[i], c.log2e, f[i]) }) // -(x log2 e) - n
	step(func(i int) { VFNMADD231PS(c.rest, z[i], f[i]) })
	step(func(i int) { p[i] = copyOf(c.c6) })
	for _, k := range []vec{c.c5, c.c4, c.c3, c.c2, c.c1, c.one} {
		step(func(i int) { VFMADD213PS(k, f[i], p[i]) })
	}
	step(func(i int) { VSCALEFPS(n[i], p[i], p[i]) })
	step(func(i int) { VADDPS(c.one, p[i], p[i]) })
	return p
}

// onePlusExpNeg is 1 + e^-x.
func onePlusExpNeg(x vec) vec { return add(exp(xor(x, signBit())), num(1)) }

// erfParts gives |x|, erf|x| good below 1, and erfc|x| good from 1 on (0 beyond 4, where erf rounds to 1).
func erfParts(x vec) (a, small, tail vec) {
	a = and(x, magnitude())
	small = poly(mul(a, a), 0.12837916591, -0.376126271338, 0.112836001508, -0.0268544435858, 0.00518953354063, -0.00080208263006, 7.88907224671e-5)
	VFMADD213PS(a, a, small) // a + a p
	tail = expNormal(poly(minOf(load(num(4)), a), 0.000289784871897, -1.13011420255, -0.632023625206, -0.109899472632, 0.0263213370209, -0.00472539164753, 0.000589688912665, -4.52343787332e-5, 1.5964663003e-6))
	tail = keep(cmp(a, 1, num(4)), tail)
	return a, small, tail
}

func erf(x vec) vec {
	a, small, tail := erfParts(x)
	y := choose(cmp(a, 1, num(1)), small, sub(load(num(1)), tail))
	y = or(y, and(x, signBit()))
	return choose(cmp(x, 3, x), x, y)
}

// gelu is x*h with h = erfc(-x/sqrt 2)/2: no cancellation for negative x.
func gelu(x vec) vec {
	u := mul(x, num(math.Sqrt2/2))
	a, small, tail := erfParts(u)
	half := load(num(0.5))
	small = mul(small, half)
	tail = mul(tail, half)
	tail = choose(cmp(a, 1, num(1)), sub(half, small), tail) // erfc|u| / 2
	h := choose(negative(x), tail, sub(load(num(1)), tail))  // by the sign
	return mul(x, h)
}

// geluTanh: (1 + tanh u)/2 is 1/(1 + e^-2u).
func geluTanh(x vec) vec {
	k := 2 * math.Sqrt(2/math.Pi)
	p := load(num(k * 0.044715))
	with(VFMADD213PS, VFMADD213PS_BCST, num(k), mul(x, x), p)
	return div(x, onePlusExpNeg(mul(p, x)))
}

func clamp6(x vec) vec {
	y := add(x, num(3))
	y = maxOf(load(num(0)), y)
	return minOf(load(num(6)), y)
}

// mish: with w = e^x, tanh(log(1+w)) = (w^2 + 2w)/(w^2 + 2w + 2).
func mish(x vec) vec {
	w := exp(minOf(load(num(20)), x))
	v := mul(w, add(w, num(2)))
	return mul(x, div(v, add(v, num(2))))
}

// sincos: x = q pi/2 + r, and by the quadrant q (cosine: q+1) sin or cos of r, with a sign.
func sincos(x vec, shift uint32) vec {
	n, r := rounded(8, mul(x, num(2/math.Pi))), copyOf(x)
	c1 := float64(float32(math.Pi / 2))
	c2 := float64(float32(math.Pi/2 - c1))
	with(VFNMADD231PS, VFNMADD231PS_BCST, num(c1), n, r)
	with(VFNMADD231PS, VFNMADD231PS_BCST, num(c2), n, r)
	with(VFNMADD231PS, VFNMADD231PS_BCST, num(-1.71512449944e-15), n, r)
	z := mul(r, r)
	s := poly(z, -0.166666666636, 0.00833333178696, -0.000198400396117, 2.72438597075e-6)
	VFMADD213PS(r, mul(z, r), s)
	c := poly(z, 0.0416666666641, -0.00138888875986, 2.48005609539e-5, -2.72958864068e-7)
	c = mul(c, z)
	with(VSUBPS, VSUBPS_BCST, num(0.5), c, c)
	with(VFMADD213PS, VFMADD213PS_BCST, num(1), z, c) // 1 + z (z p - 1/2)
	q := VEC()
	VCVTPS2DQ(n, q)
	if shift != 0 {
		with(VPADDD, VPADDD_BCST, bits(shift), q, q)
	}
	odd, sign := VEC(), VEC()
	VPSLLD(Imm(31), q, odd)
	VPSRLD(Imm(1), q, sign)
	VPSLLD(Imm(31), sign, sign)
	y := xor(choose(negative(odd), c, s), sign)
	if shift == 0 { // -0 stays
		y = choose(cmp(x, 0, load(num(0))), x, y)
	}
	return y
}
