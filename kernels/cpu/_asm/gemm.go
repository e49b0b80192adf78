package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func gemm() {
	axpy()
	axpy4()
	dot4()
	packColumns()
	packTransposed()
}

func axpy() {
	function("axpyF32AVX2", "func(y, x *float32, n int, s float32)", "adds s*x to y, n elements.")
	y, x, n := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	s := broadcast("s")
	in := GP64()
	MOVQ(y, in)
	p := pass{name: "axpy", in: []Register{in, x}, out: y, n: n, unroll: 4, body: func(in []vec, _ Op, _ int) vec {
		VFMADD231PS(in[1], s, in[0])
		return in[0]
	}}
	p.emit()
	VZEROUPPER()
	RET()
}

// transpose8 turns eight rows into eight columns.
func transpose8(r [8]vec) (out [8]vec) {
	var t, u [8]vec
	for i := range 4 {
		t[2*i] = op3(VUNPCKLPS, nil, r[2*i+1], r[2*i])   // a0 b0 a1 b1 | a4 b4 a5 b5
		t[2*i+1] = op3(VUNPCKHPS, nil, r[2*i+1], r[2*i]) // a2 b2 a3 b3 | a6 b6 a7 b7
	}
	for i := range 2 {
		for j := range 2 {
			lo, hi := t[4*i+j], t[4*i+2+j]
			u[4*i+2*j] = op3(VUNPCKLPD, nil, hi, lo)
			u[4*i+2*j+1] = op3(VUNPCKHPD, nil, hi, lo)
		}
	}
	for i := range 4 {
		out[i], out[i+4] = YMM(), YMM()
		VPERM2F128(Imm(0x20), u[i+4], u[i], out[i])
		VPERM2F128(Imm(0x31), u[i+4], u[i], out[i+4])
	}
	return out
}

// packColumns packs sixteen columns of B that lie side by side.
func packColumns() {
	const name = "pack16F32AVX2"
	function(name, "func(dst, src *float32, kb, step, wide int)", "packs kb rows of 16 elements, step elements apart, to rows wide elements apart.")
	dst, src, kb, step := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("kb"), GP64()), Load(Param("step"), GP64())
	wide := Load(Param("wide"), GP64())
	SHLQ(Imm(2), step)
	SHLQ(Imm(2), wide)
	Label(name + "_two")
	CMPQ(kb, Imm(2))
	JL(LabelRef(name + "_one"))
	a, b, c, d := load(Mem{Base: src}), load(Mem{Base: src, Disp: 32}), YMM(), YMM()
	VMOVUPS(Mem{Base: src, Index: step, Scale: 1}, c)
	VMOVUPS(Mem{Base: src, Index: step, Scale: 1, Disp: 32}, d)
	VMOVUPS(a, Mem{Base: dst})
	VMOVUPS(b, Mem{Base: dst, Disp: 32})
	VMOVUPS(c, Mem{Base: dst, Index: wide, Scale: 1})
	VMOVUPS(d, Mem{Base: dst, Index: wide, Scale: 1, Disp: 32})
	LEAQ(Mem{Base: src, Index: step, Scale: 2}, src)
	LEAQ(Mem{Base: dst, Index: wide, Scale: 2}, dst)
	SUBQ(Imm(2), kb)
	JMP(LabelRef(name + "_two"))
	Label(name + "_one")
	TESTQ(kb, kb)
	JE(LabelRef(name + "_done"))
	VMOVUPS(Mem{Base: src}, a)
	VMOVUPS(Mem{Base: src, Disp: 32}, b)
	VMOVUPS(a, Mem{Base: dst})
	VMOVUPS(b, Mem{Base: dst, Disp: 32})
	Label(name + "_done")
	VZEROUPPER()
	RET()
}

// packTransposed packs sixteen columns of B each of which is contiguous: a weight [N, K] used as [K, N].
func packTransposed() {
	const name = "pack16TF32AVX2"
	function(name, "func(dst, src *float32, kb, step, wide int)", "packs kb elements (a multiple of 8) of 16 columns, step elements apart, to rows wide elements apart.")
	dst, src, kb, step := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("kb"), GP64()), Load(Param("step"), GP64())
	wide := Load(Param("wide"), GP64())
	SHLQ(Imm(2), step)
	SHLQ(Imm(2), wide)
	step3 := GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, step3)
	Label(name + "_loop")
	TESTQ(kb, kb)
	JE(LabelRef(name + "_done"))
	at := GP64()
	MOVQ(src, at)
	for half := range 2 {
		var r [8]vec
		for i := range 8 {
			m := []Mem{{Base: at}, {Base: at, Index: step, Scale: 1}, {Base: at, Index: step, Scale: 2}, {Base: at, Index: step3, Scale: 1}}[i%4]
			r[i] = load(m)
			if i%4 == 3 {
				LEAQ(Mem{Base: at, Index: step, Scale: 4}, at)
			}
		}
		to := GP64()
		MOVQ(dst, to)
		for _, v := range transpose8(r) {
			VMOVUPS(v, Mem{Base: to, Disp: 32 * half})
			ADDQ(wide, to)
		}
	}
	ADDQ(Imm(32), src)
	LEAQ(Mem{Base: dst, Index: wide, Scale: 8}, dst)
	SUBQ(Imm(8), kb)
	JMP(LabelRef(name + "_loop"))
	Label(name + "_done")
	VZEROUPPER()
	RET()
}

// axpy4 adds four rows at once, so that y is read and written once for them.
func axpy4() {
	function("axpy4F32AVX2", "func(y, x *float32, step, n int, s *float32)", "adds s[0]*x + ... + s[3]*(x at 3*step) to y, n elements.")
	y, x, step, n := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("step"), GP64()), Load(Param("n"), GP64())
	factors := Load(Param("s"), GP64())
	var s [4]vec
	for i := range s {
		s[i] = YMM()
		VBROADCASTSS(Mem{Base: factors, Disp: 4 * i}, s[i])
	}
	in, rows := GP64(), rowsAt(x, step)
	MOVQ(y, in)
	p := pass{name: "axpy4", in: append([]Register{in}, rows...), out: y, n: n, unroll: 2, body: func(in []vec, _ Op, _ int) vec {
		for i, f := range s {
			VFMADD231PS(in[1+i], f, in[0])
		}
		return in[0]
	}}
	p.emit()
	VZEROUPPER()
	RET()
}

// rowsAt gives four pointers, step elements apart.
func rowsAt(x, step Register) []Register {
	rows := []Register{x}
	for range 3 {
		r := GP64()
		LEAQ(Mem{Base: rows[len(rows)-1], Index: step, Scale: 4}, r)
		rows = append(rows, r)
	}
	return rows
}

// dot4 is four inner products with one vector.
func dot4() {
	function("dot4F32AVX2", "func(x, y *float32, step, n int, out *float32)", "is out[i] = sum of x * (y at i*step), n elements, i < 4.")
	x, y, step, n := Load(Param("x"), GP64()), Load(Param("y"), GP64()), Load(Param("step"), GP64()), Load(Param("n"), GP64())
	out := Load(Param("out"), GP64())
	var acc [4][2]vec
	for i := range acc {
		for j := range acc[i] {
			acc[i][j] = YMM()
			VXORPS(acc[i][j], acc[i][j], acc[i][j])
		}
	}
	p := pass{name: "dot4", in: append([]Register{x}, rowsAt(y, step)...), n: n, unroll: 2, body: func(in []vec, _ Op, lane int) vec {
		for i := range acc {
			VFMADD231PS(in[1+i], in[0], acc[i][lane])
		}
		return nil
	}}
	p.emit()
	for i := range acc {
		VADDPS(acc[i][1], acc[i][0], acc[i][0])
		VMOVSS(foldLanes(acc[i][0], VADDPS), Mem{Base: out, Disp: 4 * i})
	}
	VZEROUPPER()
	RET()
}
