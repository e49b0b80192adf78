package main

import "math"

const chains = 4 // accumulators of a reduction

func reduce() {
	reduction("sum", "func(x *float32, n int) float32", "is the sum.", []string{"x"}, nil, func(s *straight, acc val, in, _ []val, _ bool) {
		s.update(fadd, acc, acc, in[0])
	})
	reduction("sumSquares", "func(x *float32, n int) float32", "is the sum of x^2.", []string{"x"}, nil, func(s *straight, acc val, in, _ []val, _ bool) {
		s.update(fmla, acc, in[0], in[0])
	})
	reduction("sumSquaresAround", "func(x *float32, mean float32, n int) float32", "is the sum of (x - mean)^2.", []string{"x"}, []string{"mean"},
		func(s *straight, acc val, in, p []val, one bool) {
			d := s.firstIf(one, s.sub(in[0], p[0]))
			s.update(fmla, acc, d, d)
		})
	reduction("dot", "func(x, y *float32, n int) float32", "is the inner product of n elements.", []string{"x", "y"}, nil, func(s *straight, acc val, in, _ []val, _ bool) {
		s.update(fmla, acc, in[0], in[1])
	})
	extremum("max", "is the largest number, NaN if there is one; n > 0.", math.Inf(-1), fmax)
	extremum("min", "is the smallest number, NaN if there is one; n > 0.", math.Inf(1), fmin)
	expSum()
	hide()
}

// firstIf clears all lanes but the first, if only that holds an element.
func (s *straight) firstIf(one bool, x val) val {
	if !one {
		return x
	}
	return s.and(x, s.add(instruction{emit: func(d reg, _ []reg) { s.f.firstLane(d) }}))
}

// accumulators are the vectors from 28 on.
func accumulators() (acc []reg) {
	for i := range chains {
		acc = append(acc, reg(28+i))
	}
	return acc
}

// addLanes leaves the sum of all lanes of the accumulators in lane 0 of the first.
func (f *function) addLanes(acc []reg) reg {
	for len(acc) > 1 {
		half := len(acc) / 2
		for i := range half {
			f.v3(fadd, acc[i], acc[i], acc[i+half])
		}
		acc = acc[:half]
	}
	f.v3(faddp, acc[0], acc[0], acc[0])
	f.v3(faddp, acc[0], acc[0], acc[0])
	return acc[0]
}

func (f *function) result32(r reg) { f.op("FMOVS F%d, ret+%d(FP)", r, f.result) }

func reduction(name, signature, doc string, slices, numbers []string, body func(s *straight, acc val, in, numbers []val, one bool)) {
	f := begin(name+"F32AVX2", signature, doc)
	acc := accumulators()
	f.zero(acc...)
	p := pass{f: f, out: -1, unroll: chains, kept: acc}
	for _, x := range slices {
		p.in = append(p.in, f.arg(x))
	}
	p.n = f.arg("n")
	var fixed []val
	for i, x := range numbers {
		r := reg(27 - i)
		f.fillArg(r, x)
		p.kept = append(p.kept, r)
		fixed = append(fixed, pinned(r))
	}
	p.body = func(s *straight, in []val, lane int, one bool) val {
		body(s, pinned(acc[lane]), in, fixed, one)
		return val{}
	}
	p.emit()
	f.result32(f.addLanes(acc))
	f.ret()
}

// extremum: the instructions keep NaN.
func extremum(name, doc string, start float64, code uint32) {
	f := begin(name+"F32AVX2", "func(x *float32, n int) float32", doc)
	acc := accumulators()
	for _, a := range acc {
		f.num(a, start)
	}
	p := pass{f: f, in: []reg{f.arg("x")}, out: -1, n: f.arg("n"), unroll: chains, kept: acc}
	p.body = func(s *straight, in []val, lane int, one bool) val {
		x := in[0]
		if one {
			first := s.add(instruction{emit: func(d reg, _ []reg) { f.firstLane(d) }})
			x = s.choose(first, x, s.num(start))
		}
		s.update(code, pinned(acc[lane]), pinned(acc[lane]), x)
		return val{}
	}
	p.emit()
	f.v3(code, acc[0], acc[0], acc[1])
	f.v3(code, acc[2], acc[2], acc[3])
	f.v3(code, acc[0], acc[0], acc[2])
	across := map[uint32]uint32{fmax: 0x6e30f800, fmin: 0x6eb0f800}[code]
	f.word(across|uint32(acc[0])<<5|uint32(acc[0]), "%sV S%d, V%d.4S", mnemonics[code], acc[0], acc[0])
	f.result32(acc[0])
	f.ret()
}

// expSum is the inner loop of softmax.
func expSum() {
	expSumBy("weightSum", "is dst = e^(x - shift), 0 below e^-87, and the sum of dst. x is at most shift.", func(s *straight, x val) val {
		return s.andNot(s.expNormal(s.max(s.num(-87), x)), s.greater(s.num(-87), x))
	})
}

func expSumBy(name, doc string, exp func(s *straight, x val) val) {
	f := begin(name+"F32AVX2", "func(dst, x *float32, shift float32, n int) float32", doc)
	const acc, shift = 31, 30
	f.zero(acc)
	f.fillArg(shift, "shift")
	p := pass{f: f, out: f.arg("dst"), in: []reg{f.arg("x")}, n: f.arg("n"), unroll: 2, kept: []reg{acc, shift}}
	p.body = func(s *straight, in []val, _ int, one bool) val {
		y := s.firstIf(one, exp(s, s.sub(in[0], pinned(shift))))
		s.update(fadd, pinned(acc), pinned(acc), y)
		return y
	}
	p.emit()
	f.result32(f.addLanes([]reg{acc}))
	f.ret()
}

// hide is what a mask of booleans does to scores before a softmax.
func hide() {
	f := begin("hideF32AVX2", "func(x *float32, keep *uint8, n int)", "adds -Inf to x where keep is 0, n elements, a multiple of 16.")
	x, k, n := f.arg("x"), f.arg("keep"), f.arg("n")
	const inf, none = 31, 30
	f.num(inf, math.Inf(-1))
	f.zero(none)
	f.label("loop")
	f.ldq(16, k, 0)
	f.v2(uxtl8, 17, 16)
	f.v2(uxtl8b, 18, 16)
	f.v2(uxtl16, 20, 17)
	f.v2(uxtl6b, 21, 17)
	f.v2(uxtl16, 22, 18)
	f.v2(uxtl6b, 23, 18)
	for i := range reg(4) {
		f.ldq(i, x, 16*int(i))
		f.v3(cmeq, 20+i, 20+i, none)
		f.v3(fadd, 4+i, i, inf)
		f.v3(bsl, 20+i, 4+i, i)
		f.stq(20+i, x, 16*int(i))
	}
	f.op("ADD $64, R%d", x)
	f.op("ADD $16, R%d", k)
	f.op("SUBS $16, R%d", n)
	f.op("BNE loop")
	f.ret()
}
