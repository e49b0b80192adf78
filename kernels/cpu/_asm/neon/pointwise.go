package main

import "math"

// The formulas are those of the amd64 kernels (../pointwise.go), so that errors are the same.

func pointwise() {
	binary("add", "is dst = a + b.", (*straight).addF)
	binary("sub", "is dst = a - b.", (*straight).sub)
	binary("mul", "is dst = a * b.", (*straight).mul)
	binary("div", "is dst = a / b.", (*straight).div)
	binary("maximum", "is the larger of a and b.", (*straight).larger)
	binary("minimum", "is the smaller of a and b.", (*straight).smaller)
	binary("prelu", "is a where a > 0, else a * b.", func(s *straight, a, b val) val { return s.choose(s.greater(a, s.num(0)), a, s.mul(a, b)) })

	scalar("addScalar", "is dst = a + s.", (*straight).addF)
	scalar("rsubScalar", "is dst = s - a.", func(s *straight, a, b val) val { return s.sub(b, a) })
	scalar("mulScalar", "is dst = a * s.", (*straight).mul)
	scalar("divScalar", "is dst = a / s.", (*straight).div)
	scalar("rdivScalar", "is dst = s / a.", func(s *straight, a, b val) val { return s.div(b, a) })
	scalar("maximumScalar", "is the larger of a and s.", (*straight).larger)
	scalar("minimumScalar", "is the smaller of a and s.", (*straight).smaller)
	scalar("leakyReLU", "is a where a > 0, else a * s.", func(s *straight, a, b val) val { return s.choose(s.greater(a, s.num(0)), a, s.mul(a, b)) })

	unary("neg", "is -x.", 4, func(s *straight, x val) val { return s.op2(fneg, x) })
	unary("abs", "is |x|.", 4, func(s *straight, x val) val { return s.op2(fabs, x) })
	unary("cube", "is x * x * x.", 4, func(s *straight, x val) val { return s.mul(s.mul(x, x), x) })
	unary("sqrt", "is the square root.", 2, func(s *straight, x val) val { return s.op2(fsqrt, x) })
	unary("rsqrt", "is 1 / sqrt(x).", 2, func(s *straight, x val) val { return s.div(s.num(1), s.op2(fsqrt, x)) })
	unary("relu", "is the larger of x and 0.", 4, func(s *straight, x val) val { return s.andNot(x, s.greater(s.num(0), x)) })
	unary("floor", "rounds down.", 4, func(s *straight, x val) val { return s.op2(frintm, x) })
	unary("ceil", "rounds up.", 4, func(s *straight, x val) val { return s.op2(frintp, x) })
	unary("round", "rounds to the nearest integer, halves to even.", 4, func(s *straight, x val) val { return s.op2(frintn, x) })
	unary("trunc", "rounds towards zero.", 4, func(s *straight, x val) val { return s.op2(frintz, x) })
	unary("exp", "is e^x.", 2, (*straight).exp)
	unary("log", "is the natural logarithm.", 2, (*straight).log)
	unary("expm1", "is e^x - 1.", 2, (*straight).expm1)
	unary("log1p", "is log(1 + x).", 2, (*straight).log1p)
	unary("tanh", "is the hyperbolic tangent.", 2, (*straight).tanh)
	unary("sigmoid", "is 1 / (1 + e^-x).", 2, (*straight).sigmoid)
	unary("silu", "is x / (1 + e^-x).", 2, func(s *straight, x val) val { return s.div(x, s.onePlusExpNeg(x)) })
	unary("erf", "is the error function.", 2, (*straight).erf)
	unary("gelu", "is x * (1 + erf(x/sqrt 2)) / 2.", 2, (*straight).gelu)
	unary("geluTanh", "is gelu's approximation by tanh.", 2, (*straight).geluTanh)
	unary("sin", "is the sine, for |x| up to the limit of the caller.", 2, func(s *straight, x val) val { return s.sincos(x, 0) })
	unary("cos", "is the cosine, for |x| up to the limit of the caller.", 2, func(s *straight, x val) val { return s.sincos(x, 1) })
	unary("hardSwish", "is x * min(max(x+3, 0), 6) / 6.", 2, func(s *straight, x val) val { return s.div(s.mul(x, s.clamp6(x)), s.num(6)) })
	unary("hardSigmoid", "is min(max(x+3, 0), 6) / 6.", 2, func(s *straight, x val) val { return s.div(s.clamp6(x), s.num(6)) })
	unary("mish", "is x * tanh(log(1 + e^x)).", 2, (*straight).mish)

	elementwise("mulAdd", "func(dst, a, b, c *float32, n int)", "is dst = a*b + c, rounded once.", []string{"a", "b", "c"}, nil, 2,
		func(s *straight, in, _ []val) val { return s.fma(in[2], in[0], in[1]) })
	elementwise("where", "func(dst, c, a, b *float32, n int)", "is a where c is not 0, else b.", []string{"c", "a", "b"}, nil, 4,
		func(s *straight, in, _ []val) val { return s.choose(s.equal(in[0], s.num(0)), in[2], in[1]) })
	elementwise("affine", "func(dst, x *float32, scale, shift float32, n int)", "is dst = x*scale + shift, rounded once.", []string{"x"}, []string{"scale", "shift"}, 4,
		func(s *straight, in, p []val) val { return s.fma(p[1], in[0], p[0]) })
	elementwise("center", "func(dst, x *float32, mean, scale, shift float32, n int)", "is dst = (x-mean)*scale + shift.", []string{"x"}, []string{"mean", "scale", "shift"}, 4,
		func(s *straight, in, p []val) val { return s.fma(p[2], s.sub(in[0], p[0]), p[1]) })
	elementwise("normRow", "func(dst, x, weight, bias *float32, mean, scale float32, n int)", "is dst = (x-mean)*scale*weight + bias.", []string{"x", "weight", "bias"},
		[]string{"mean", "scale"}, 2, func(s *straight, in, p []val) val {
			return s.fma(in[2], s.mul(s.sub(in[0], p[0]), p[1]), in[1])
		})
}

// elementwise writes a function of slices and of numbers that are the same for all elements.
func elementwise(name, signature, doc string, slices, numbers []string, unroll int, body func(s *straight, in, numbers []val) val) {
	f := begin(name+"F32AVX2", signature, doc)
	p := pass{f: f, out: f.arg("dst"), n: f.arg("n"), unroll: unroll}
	for _, x := range slices {
		p.in = append(p.in, f.arg(x))
	}
	var fixed []val
	for i, x := range numbers {
		r := reg(31 - i)
		f.fillArg(r, x)
		p.kept = append(p.kept, r)
		fixed = append(fixed, pinned(r))
	}
	p.body = func(s *straight, in []val, _ int, _ bool) val { return body(s, in, fixed) }
	p.emit()
	f.ret()
}

func unary(name, doc string, unroll int, body func(s *straight, x val) val) {
	elementwise(name, "func(dst, x *float32, n int)", doc, []string{"x"}, nil, unroll, func(s *straight, in, _ []val) val { return body(s, in[0]) })
}

func binary(name, doc string, body func(s *straight, a, b val) val) {
	elementwise(name, "func(dst, a, b *float32, n int)", doc, []string{"a", "b"}, nil, 4, func(s *straight, in, _ []val) val { return body(s, in[0], in[1]) })
}

func scalar(name, doc string, body func(s *straight, a, b val) val) {
	elementwise(name, "func(dst, a *float32, s float32, n int)", doc, []string{"a"}, []string{"s"}, 4, func(s *straight, in, p []val) val { return body(s, in[0], p[0]) })
}

// larger gives b of two zeros and NaN where there is one.
func (s *straight) larger(a, b val) val {
	return s.choose(s.equal(a, a), s.choose(s.greater(a, b), a, b), a)
}

func (s *straight) smaller(a, b val) val {
	return s.choose(s.equal(a, a), s.choose(s.greater(b, a), a, b), a)
}

// exp: x = n ln 2 + r, e^x = 2^n e^r. The power is applied in two halves so that results below the normal range come out right.
func (s *straight) exp(x val) val {
	x = s.min(s.num(89), x)
	x = s.max(s.num(-104.5), x)
	y, i := s.expParts(x)
	half := s.sshr(i, 1)
	i = s.op3(subv, i, half)
	return s.mul(s.mul(y, s.power2(half)), s.power2(i))
}

// expNormal is e^x where x and the result are known to be within the normal range.
func (s *straight) expNormal(x val) val {
	y, i := s.expParts(x)
	return s.op3(addv, y, s.shl(i, 23)) // into the exponent
}

// expm1: with x = n ln 2 + r and q = e^r - 1, e^x - 1 = 2^n q + (2^n - 1). Halves, so that 2^128 does not overflow too early.
func (s *straight) expm1(x val) val {
	v := s.min(s.num(89), x)
	v = s.max(s.num(-30), v)
	q, i := s.expReduced(v)
	half := s.shl(s.op3(addv, i, s.bits(126)), 23) // 2^(n-1)
	y := s.fma(s.sub(half, s.num(0.5)), half, q)
	return s.choose(s.equal(x, s.num(0)), x, s.addF(y, y)) // -0 stays
}

// log1p: the rounding error of 1 + x is made good in first order.
func (s *straight) log1p(x val) val {
	u := s.addF(x, s.num(1))
	c := s.div(s.sub(x, s.sub(u, s.num(1))), u)
	y := s.log(u)
	y = s.choose(s.greater(u, s.num(0)), s.addF(y, c), y)
	y = s.choose(s.greater(u, s.num(math.MaxFloat32)), u, y)
	return s.choose(s.equal(x, s.num(0)), x, y)
}

// expParts gives e^r and n of e^x = 2^n e^r.
func (s *straight) expParts(x val) (y, i val) {
	y, i = s.expReduced(x)
	return s.addF(y, s.num(1)), i
}

// expReduced gives e^r - 1 and n of e^x = 2^n e^r.
func (s *straight) expReduced(x val) (y, i val) {
	n := s.op2(frintn, s.mul(x, s.num(math.Log2E)))
	const hi = 0.693359375 // few bits, so that n*hi is exact
	r := s.fnma(x, n, s.num(hi))
	r = s.fnma(r, n, s.num(math.Ln2-hi))
	y = s.poly(r, 0.500000001429, 0.166666667618, 0.0416664567882, 0.00833328417373, 0.00139345437939, 0.000199088600083)
	y = s.fma(r, s.mul(r, r), y) // r + r^2 p
	return y, s.op2(fcvtns, n)
}

// power2 is 2^i of integers in the exponent's range.
func (s *straight) power2(i val) val { return s.shl(s.op3(addv, i, s.bits(127)), 23) }

// log: x = 2^e m with m in [sqrt 1/2, sqrt 2), log x = e ln 2 + log m.
func (s *straight) log(x val) val {
	tiny := s.greater(s.num(0x1p-126), x)
	v := s.choose(tiny, s.mul(x, s.num(0x1p23)), x)
	root := s.bits(math.Float32bits(math.Sqrt2 / 2))
	e := s.op3(subv, v, root)
	m := s.op3(addv, s.and(e, s.bits(0x7fffff)), root)
	e = s.op2(scvtf, s.sshr(e, 23))
	e = s.sub(e, s.and(tiny, s.num(23)))
	f := s.sub(m, s.num(1))
	f2 := s.mul(f, f)
	p := s.poly(f, 0.333333104479, -0.249999865759, 0.200022261108, -0.166692517273, 0.142186682592, -0.123843384867, 0.118728948988, -0.117898392299, 0.0691558617599)
	y := s.mul(s.mul(p, f), f2) // f^3 p
	const hi = 0.693359375
	y = s.fma(y, e, s.num(math.Ln2-hi))
	y = s.fnma(y, f2, s.num(0.5))
	y = s.fma(s.addF(y, f), e, s.num(hi))
	// 0 gives -Inf, negative numbers NaN; Inf and NaN stay.
	zero := s.num(0)
	y = s.choose(s.equal(x, zero), s.num(math.Inf(-1)), y)
	y = s.choose(s.greater(zero, x), s.bits(0x7fc00000), y)
	return s.choose(s.atLeast(s.num(math.MaxFloat32), x), y, x)
}

func (s *straight) tanh(x val) val {
	a := s.op2(fabs, x)
	z := s.mul(x, x)
	small := s.poly(z, -0.333333331625, 0.133333017699, -0.0539587848815, 0.0217647584146, -0.00832961599167, 0.00227591875898)
	small = s.fma(x, s.mul(z, x), small) // x + x^3 p
	e := s.addF(s.exp(s.addF(a, a)), s.num(1))
	big := s.sub(s.num(1), s.div(s.num(2), e))
	y := s.choose(s.greater(s.num(0.6), a), small, big)
	return s.orNaN(s.or(y, s.and(x, s.bits(0x80000000))), x)
}

// orNaN is y, or NaN where x is.
func (s *straight) orNaN(y, x val) val { return s.choose(s.equal(x, x), y, x) }

// onePlusExpNeg is 1 + e^-x.
func (s *straight) onePlusExpNeg(x val) val { return s.addF(s.exp(s.op2(fneg, x)), s.num(1)) }

func (s *straight) sigmoid(x val) val { return s.div(s.num(1), s.onePlusExpNeg(x)) }

// erfParts gives |x|, erf|x| good below 1, and erfc|x| good from 1 on (0 beyond 4, where erf rounds to 1).
func (s *straight) erfParts(x val) (a, small, tail val) {
	a = s.op2(fabs, x)
	small = s.poly(s.mul(a, a), 0.12837916591, -0.376126271338, 0.112836001508, -0.0268544435858, 0.00518953354063, -0.00080208263006, 7.88907224671e-5)
	small = s.fma(a, a, small) // a + a p
	tail = s.expNormal(s.poly(s.min(s.num(4), a), 0.000289784871897, -1.13011420255, -0.632023625206, -0.109899472632, 0.0263213370209, -0.00472539164753, 0.000589688912665, -4.52343787332e-5, 1.5964663003e-6))
	return a, small, s.and(s.greater(s.num(4), a), tail)
}

func (s *straight) erf(x val) val {
	a, small, tail := s.erfParts(x)
	y := s.choose(s.greater(s.num(1), a), small, s.sub(s.num(1), tail))
	return s.orNaN(s.or(y, s.and(x, s.bits(0x80000000))), x)
}

// gelu is x*h with h = erfc(-x/sqrt 2)/2: no cancellation for negative x.
func (s *straight) gelu(x val) val {
	a, small, tail := s.erfParts(s.mul(x, s.num(math.Sqrt2/2)))
	half := s.num(0.5)
	tail = s.choose(s.greater(s.num(1), a), s.sub(half, s.mul(small, half)), s.mul(tail, half)) // erfc|u| / 2
	h := s.choose(s.op2(cmlt0, x), tail, s.sub(s.num(1), tail))                                 // by the sign
	return s.mul(x, h)
}

// geluTanh: (1 + tanh u)/2 is 1/(1 + e^-2u).
func (s *straight) geluTanh(x val) val {
	k := 2 * math.Sqrt(2/math.Pi)
	p := s.fma(s.num(k), s.mul(x, x), s.num(k*0.044715))
	return s.div(x, s.onePlusExpNeg(s.mul(p, x)))
}

func (s *straight) clamp6(x val) val {
	return s.min(s.num(6), s.max(s.num(0), s.addF(x, s.num(3))))
}

// mish: with w = e^x, tanh(log(1+w)) = (w^2 + 2w)/(w^2 + 2w + 2).
func (s *straight) mish(x val) val {
	w := s.exp(s.min(s.num(20), x))
	v := s.mul(w, s.addF(w, s.num(2)))
	return s.mul(x, s.div(v, s.addF(v, s.num(2))))
}

// sincos: x = q pi/2 + r, and by the quadrant q (cosine: q+1) sin or cos of r, with a sign.
func (s *straight) sincos(x val, shift uint32) val {
	n := s.op2(frintn, s.mul(x, s.num(2/math.Pi)))
	c1 := float64(float32(math.Pi / 2))
	c2 := float64(float32(math.Pi/2 - c1))
	r := s.fnma(x, n, s.num(c1))
	r = s.fnma(r, n, s.num(c2))
	r = s.fnma(r, n, s.num(-1.71512449944e-15))
	z := s.mul(r, r)
	sine := s.poly(z, -0.166666666636, 0.00833333178696, -0.000198400396117, 2.72438597075e-6)
	sine = s.fma(r, s.mul(z, r), sine)
	c := s.poly(z, 0.0416666666641, -0.00138888875986, 2.48005609539e-5, -2.72958864068e-7)
	c = s.fma(s.num(1), z, s.sub(s.mul(c, z), s.num(0.5))) // 1 + z (z p - 1/2)
	q := s.op2(fcvtns, n)
	if shift != 0 {
		q = s.op3(addv, q, s.bits(shift))
	}
	odd := s.sshr(s.shl(q, 31), 31)
	sign := s.shl(s.ushr(q, 1), 31)
	y := s.xor(s.choose(odd, c, sine), sign)
	if shift == 0 { // -0 stays
		y = s.choose(s.equal(x, s.num(0)), x, y)
	}
	return y
}
