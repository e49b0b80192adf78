package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const chains = 4 // accumulators of a reduction

func reduce() { forBoth(reductions) }

func reductions() {
	reduction("sum", "func(x *float32, n int) float32", "is the sum.", nil, func(acc vec, x []vec, mask Op) {
		VADDPS(x[0], acc, acc)
	})
	reduction("sumSquares", "func(x *float32, n int) float32", "is the sum of x^2.", nil, func(acc vec, x []vec, mask Op) {
		VFMADD231PS(x[0], x[0], acc)
	})
	reduction("sumSquaresAround", "func(x *float32, mean float32, n int) float32", "is the sum of (x - mean)^2.", []string{"mean"}, func(acc vec, x []vec, mask Op) {
		d := sub(x[0], x[1])
		if mask != nil {
			d = keep(mask, d)
		}
		VFMADD231PS(d, d, acc)
	})
	dot()
	extremum("max", "is the largest number, NaN if there is one; n > 0.", math.Inf(-1), VMAXPS)
	extremum("min", "is the smallest number, NaN if there is one; n > 0.", math.Inf(1), VMINPS)
	expSum()
	hide()
}

// hide is what a mask of booleans does to scores before a softmax.
func hide() {
	function("hideF32"+isa(), "func(x *float32, keep *uint8, n int)", "adds -Inf to x where keep is 0, n elements, a multiple of 16.")
	x, k, n := Load(Param("x"), GP64()), Load(Param("keep"), GP64()), Load(Param("n"), GP64())
	inf, none := load(num(math.Inf(-1))), VEC()
	if !wide {
		VPXOR(none, none, none)
	}
	Label("loop")
	v, b := load(Mem{Base: x}), VEC()
	VPMOVZXBD(Mem{Base: k}, b)
	if wide {
		hidden := K()
		VPTESTNMD(b, b, hidden)
		VADDPS(inf, v, hidden, v)
	} else {
		VPCMPEQD(none, b, b)
		shown := add(v, inf)
		v = choose(b, shown, v)
	}
	VMOVUPS(v, Mem{Base: x})
	ADDQ(Imm(uint64(4*width())), x)
	ADDQ(Imm(uint64(width())), k)
	SUBQ(Imm(uint64(width())), n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func accumulators() (acc [chains]vec) {
	for i := range acc {
		acc[i] = VEC()
		VXORPS(acc[i], acc[i], acc[i])
	}
	return acc
}

// addLanes leaves the sum of all accumulators' lanes in the lowest lane of the first.
func addLanes(acc [chains]vec) Register {
	VADDPS(acc[1], acc[0], acc[0])
	VADDPS(acc[3], acc[2], acc[2])
	VADDPS(acc[2], acc[0], acc[0])
	return foldLanes(acc[0], VADDPS)
}

func foldLanes(v vec, f func(ops ...Op)) Register {
	if wide {
		top := YMM()
		VEXTRACTF32X8(Imm(1), v, top)
		f(top, v.AsY(), v.AsY())
	}
	hi, lo := XMM(), v.AsX()
	VEXTRACTF128(Imm(1), v.AsY(), hi)
	f(hi, lo, lo)
	VMOVHLPS(lo, lo, hi)
	f(hi, lo, lo)
	VMOVSHDUP(lo, hi)
	f(hi, lo, lo)
	return lo
}

func reduction(name, signature, doc string, scalars []string, body func(acc vec, x []vec, mask Op)) {
	function(name+"F32"+isa(), signature, doc)
	x, n := Load(Param("x"), GP64()), Load(Param("n"), GP64())
	var s []vec
	for _, name := range scalars {
		s = append(s, broadcast(name))
	}
	acc := accumulators()
	p := pass{name: name, in: []Register{x}, n: n, unroll: chains, body: func(in []vec, mask Op, lane int) vec {
		body(acc[lane], append(in, s...), mask)
		return nil
	}}
	p.emit()
	Store(addLanes(acc), ReturnIndex(0))
	VZEROUPPER()
	RET()
}

func dot() {
	function("dotF32"+isa(), "func(x, y *float32, n int) float32", "is the inner product of n elements.")
	x, y, n := Load(Param("x"), GP64()), Load(Param("y"), GP64()), Load(Param("n"), GP64())
	acc := accumulators()
	p := pass{name: "dot", in: []Register{x, y}, n: n, unroll: chains, body: func(in []vec, mask Op, lane int) vec {
		VFMADD231PS(in[0], in[1], acc[lane])
		return nil
	}}
	p.emit()
	Store(addLanes(acc), ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// extremum collects NaNs beside the largest numbers.
func extremum(name, doc string, start float64, f func(ops ...Op)) {
	function(name+"F32"+isa(), "func(x *float32, n int) float32", doc)
	x, n := Load(Param("x"), GP64()), Load(Param("n"), GP64())
	acc := accumulators()
	for _, a := range acc {
		VMOVUPS(num(start), a)
	}
	nans := newFlags()
	p := pass{name: name, in: []Register{x}, n: n, unroll: chains, body: func(in []vec, mask Op, lane int) vec {
		v := in[0]
		if mask != nil {
			v = choose(mask, v, load(num(start)))
		}
		nans.add(cmp(v, 3, v))
		f(v, acc[lane], acc[lane])
		return nil
	}}
	p.emit()
	f(acc[1], acc[0], acc[0])
	f(acc[3], acc[2], acc[2])
	f(acc[2], acc[0], acc[0])
	lo := foldLanes(acc[0], f)
	nans.jumpIfNone(name + "_number")
	VMOVSS(bits(0x7fc00000), lo)
	Label(name + "_number")
	Store(lo, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// flags gathers masks.
type flags struct{ all Register }

func newFlags() flags {
	if wide {
		f := flags{K()}
		KXORW(f.all, f.all, f.all)
		return f
	}
	f := flags{YMM()}
	VXORPS(f.all, f.all, f.all)
	return f
}

func (f flags) add(mask Register) {
	if wide {
		KORW(mask, f.all, f.all)
	} else {
		VORPS(mask, f.all, f.all)
	}
}

func (f flags) jumpIfNone(label string) {
	bits := GP32()
	if wide {
		KMOVW(f.all, bits)
	} else {
		VMOVMSKPS(f.all, bits)
	}
	TESTL(bits, bits)
	JE(LabelRef(label))
}

// expSum is the inner loop of softmax.
func expSum() {
	expSumBy("weightSum", "is dst = e^(x - shift), 0 below e^-87, and the sum of dst. x is at most shift.", func(x vec) vec {
		seen := cmp(x, 5, num(-87)) // not below, or NaN
		return keep(seen, expNormal(maxOf(load(num(-87)), x)))
	})
}

func expSumBy(name, doc string, exp func(x vec) vec) {
	function(name+"F32"+isa(), "func(dst, x *float32, shift float32, n int) float32", doc)
	dst, x, n := Load(Param("dst"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	shift := broadcast("shift")
	acc := VEC()
	VXORPS(acc, acc, acc)
	p := pass{name: name, in: []Register{x}, out: dst, n: n, unroll: 2, body: func(in []vec, mask Op, lane int) vec {
		y := exp(sub(in[0], shift))
		if mask != nil {
			y = keep(mask, y)
		}
		VADDPS(y, acc, acc)
		return y
	}}
	p.emit()
	Store(foldLanes(acc, VADDPS), ReturnIndex(0))
	VZEROUPPER()
	RET()
}
