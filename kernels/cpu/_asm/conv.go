package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

func conv() {
	winograd()
	depthwise()
	everySecond()
}

// everySecond picks the elements of even index.
func everySecond() {
	const name = "everySecondF32AVX2"
	function(name, "func(dst, src *float32, n int)", "is dst[i] = src[2*i], n elements, a multiple of 8; reads src[2*n-1].")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	Label(name + "_loop")
	TESTQ(n, n)
	JE(LabelRef(name + "_done"))
	y := load(Mem{Base: src})
	VSHUFPS(Imm(0x88), Mem{Base: src, Disp: 32}, y, y) // 0 2 8 10 | 4 6 12 14
	VPERMPD(Imm(0xd8), y, y)
	VMOVUPS(y, Mem{Base: dst})
	ADDQ(Imm(64), src)
	ADDQ(Imm(32), dst)
	SUBQ(Imm(8), n)
	JMP(LabelRef(name + "_loop"))
	Label(name + "_done")
	VZEROUPPER()
	RET()
}
