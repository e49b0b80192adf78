package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// half writes products with 16-bit floats, which are widened in registers.
func half() {
	forBoth(func() {
		dot4Half("BF16", widenBF16)
		axpy4Half("BF16", widenBF16)
		dot4Half("F16", widenF16)
		axpy4Half("F16", widenF16)
	})
}

func widenBF16(src Mem) vec {
	y := VEC()
	VPMOVZXWD(src, y)
	VPSLLD(Imm(16), y, y)
	return y
}

func widenF16(src Mem) vec {
	y := VEC()
	VCVTPH2PS(src, y)
	return y
}

// dot4Half is four inner products with one vector. Four rows of a matrix that lies row by row are four streams; each asks for what it
// will read in the next four rows.
func dot4Half(format string, widen func(src Mem) vec) {
	name := "dot4" + format + isa()
	function(name, "func(x *float32, y *uint16, step, n int, out *float32)", "is out[i] = sum of x * (y at i*step), i < 4, n elements, a multiple of 32.")
	x, y, step, n := Load(Param("x"), GP64()), Load(Param("y"), GP64()), Load(Param("step"), GP64()), Load(Param("n"), GP64())
	out := Load(Param("out"), GP64())
	step3, ahead := GP64(), GP64()
	SHLQ(Imm(1), step)
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, step3)
	LEAQ(Mem{Base: y, Index: step, Scale: 4}, ahead)
	var acc [4][2]vec
	for i := range acc {
		for j := range acc[i] {
			acc[i][j] = VEC()
			VXORPS(acc[i][j], acc[i][j], acc[i][j])
		}
	}
	row := func(p Register, i, disp int) Mem {
		return []Mem{{Base: p, Disp: disp}, {Base: p, Index: step, Scale: 1, Disp: disp}, {Base: p, Index: step, Scale: 2, Disp: disp}, {Base: p, Index: step3, Scale: 1, Disp: disp}}[i]
	}
	Label("loop")
	for part := 0; part < 32; part += 2 * width() {
		for u := range 2 {
			at := part + u*width()
			v := load(Mem{Base: x, Disp: 4 * at})
			for i := range 4 {
				VFMADD231PS(widen(row(y, i, 2*at)), v, acc[i][u])
			}
		}
	}
	for i := range 4 {
		PREFETCHT0(row(ahead, i, 0))
	}
	ADDQ(U32(128), x)
	ADDQ(Imm(64), y)
	ADDQ(Imm(64), ahead)
	SUBQ(Imm(32), n)
	JNE(LabelRef("loop"))
	for i := range acc {
		VADDPS(acc[i][1], acc[i][0], acc[i][0])
		VMOVSS(foldLanes(acc[i][0], VADDPS), Mem{Base: out, Disp: 4 * i})
	}
	VZEROUPPER()
	RET()
}

// axpy4Half adds four rows at once, so that y is read and written once for them.
func axpy4Half(format string, widen func(src Mem) vec) {
	name := "axpy4" + format + isa()
	function(name, "func(y *float32, x *uint16, step, n int, s *float32)", "adds s[0]*x + ... + s[3]*(x at 3*step) to y, n elements, a multiple of 16.")
	y, x, step, n := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("step"), GP64()), Load(Param("n"), GP64())
	factors := Load(Param("s"), GP64())
	step3 := GP64()
	SHLQ(Imm(1), step)
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, step3)
	var s [4]vec
	for i := range s {
		s[i] = VEC()
		VBROADCASTSS(Mem{Base: factors, Disp: 4 * i}, s[i])
	}
	Label("loop")
	for at := 0; at < 16; at += width() {
		v := load(Mem{Base: y, Disp: 4 * at})
		for i, f := range s {
			VFMADD231PS(widen([]Mem{{Base: x, Disp: 2 * at}, {Base: x, Index: step, Scale: 1, Disp: 2 * at}, {Base: x, Index: step, Scale: 2, Disp: 2 * at}, {Base: x, Index: step3, Scale: 1, Disp: 2 * at}}[i]), f, v)
		}
		VMOVUPS(v, Mem{Base: y, Disp: 4 * at})
	}
	ADDQ(Imm(64), y)
	ADDQ(Imm(32), x)
	SUBQ(Imm(16), n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
