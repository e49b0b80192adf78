package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func gemm() {
	microAVX2()
	axpyAVX2()
}

// microAVX2 is the 6x16 micro-kernel: twelve accumulators, two registers of B, two broadcasts of A.
func microAVX2() {
	function("gemm6x16F32AVX2", "func(kb int, a, b, c *float32, ldc int, beta bool)",
		"computes a 6x16 tile: c = a*b, or c += a*b with beta. a is [kb, 6], b is [kb, 16].")
	kb := Load(Param("kb"), GP64())
	a := Load(Param("a"), GP64())
	b := Load(Param("b"), GP64())
	c := Load(Param("c"), GP64())
	ldc := Load(Param("ldc"), GP64())
	beta := Load(Param("beta"), GP8())
	SHLQ(Imm(2), ldc)
	var acc [6][2]VecVirtual
	for i := range acc {
		for j := range acc[i] {
			acc[i][j] = YMM()
			VXORPS(acc[i][j], acc[i][j], acc[i][j])
		}
	}
	b0, b1, x0, x1 := YMM(), YMM(), YMM(), YMM()
	step := func(n int) {
		VMOVUPS(Mem{Base: b, Disp: 64 * n}, b0)
		VMOVUPS(Mem{Base: b, Disp: 64*n + 32}, b1)
		for i := 0; i < 6; i += 2 {
			VBROADCASTSS(Mem{Base: a, Disp: 24*n + 4*i}, x0)
			VBROADCASTSS(Mem{Base: a, Disp: 24*n + 4*i + 4}, x1)
			VFMADD231PS(b0, x0, acc[i][0])
			VFMADD231PS(b1, x0, acc[i][1])
			VFMADD231PS(b0, x1, acc[i+1][0])
			VFMADD231PS(b1, x1, acc[i+1][1])
		}
	}
	Label("micro_four")
	CMPQ(kb, Imm(4))
	JL(LabelRef("micro_one"))
	for n := range 4 {
		step(n)
	}
	ADDQ(Imm(96), a)
	ADDQ(U32(256), b)
	SUBQ(Imm(4), kb)
	JMP(LabelRef("micro_four"))
	Label("micro_one")
	TESTQ(kb, kb)
	JE(LabelRef("micro_done"))
	step(0)
	ADDQ(Imm(24), a)
	ADDQ(Imm(64), b)
	DECQ(kb)
	JMP(LabelRef("micro_one"))
	Label("micro_done")
	TESTB(beta, beta)
	JE(LabelRef("micro_store"))
	p := GP64()
	MOVQ(c, p)
	for i := range acc {
		VADDPS(Mem{Base: p}, acc[i][0], acc[i][0])
		VADDPS(Mem{Base: p, Disp: 32}, acc[i][1], acc[i][1])
		ADDQ(ldc, p)
	}
	Label("micro_store")
	for i := range acc {
		VMOVUPS(acc[i][0], Mem{Base: c})
		VMOVUPS(acc[i][1], Mem{Base: c, Disp: 32})
		ADDQ(ldc, c)
	}
	VZEROUPPER()
	RET()
}

// axpyAVX2: y += s*x.
func axpyAVX2() {
	function("axpyF32AVX2", "func(y, x *float32, n int, s float32)", "adds s*x to y, n elements.")
	y := Load(Param("y"), GP64())
	x := Load(Param("x"), GP64())
	n := Load(Param("n"), GP64())
	s := YMM()
	sm := Load(Param("s"), XMM())
	VBROADCASTSS(sm, s)
	Label("axpy_32")
	CMPQ(n, Imm(32))
	JL(LabelRef("axpy_8"))
	var v [4]VecVirtual
	for i := range v {
		v[i] = YMM()
		VMOVUPS(Mem{Base: y, Disp: 32 * i}, v[i])
	}
	for i := range v {
		VFMADD231PS(Mem{Base: x, Disp: 32 * i}, s, v[i])
	}
	for i := range v {
		VMOVUPS(v[i], Mem{Base: y, Disp: 32 * i})
	}
	ADDQ(U32(128), x)
	ADDQ(U32(128), y)
	SUBQ(Imm(32), n)
	JMP(LabelRef("axpy_32"))
	Label("axpy_8")
	CMPQ(n, Imm(8))
	JL(LabelRef("axpy_1"))
	VMOVUPS(Mem{Base: y}, v[0])
	VFMADD231PS(Mem{Base: x}, s, v[0])
	VMOVUPS(v[0], Mem{Base: y})
	ADDQ(Imm(32), x)
	ADDQ(Imm(32), y)
	SUBQ(Imm(8), n)
	JMP(LabelRef("axpy_8"))
	Label("axpy_1")
	TESTQ(n, n)
	JE(LabelRef("axpy_done"))
	t := XMM()
	VMOVSS(Mem{Base: y}, t)
	VFMADD231SS(Mem{Base: x}, s.AsX(), t)
	VMOVSS(t, Mem{Base: y})
	ADDQ(Imm(4), x)
	ADDQ(Imm(4), y)
	DECQ(n)
	JMP(LabelRef("axpy_1"))
	Label("axpy_done")
	VZEROUPPER()
	RET()
}
