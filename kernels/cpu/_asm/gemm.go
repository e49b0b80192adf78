package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func gemm() {
	micro("gemm6x16F32AVX2", "computes a 6x16 tile: c = a*b, or c += a*b with beta. a is [kb, 6], b is [kb, 16].", "float32", VBROADCASTSS, VFMADD231PS, VADDPS)
	micro("gemm6x8F64AVX2", "computes a 6x8 tile: c = a*b, or c += a*b with beta. a is [kb, 6], b is [kb, 8].", "float64", VBROADCASTSD, VFMADD231PD, VADDPD)
	rowTimesPanel()
	axpy()
	axpy4()
	dot4()
	packRows()
	packColumns()
	packTransposed()
}

// micro is a micro-kernel: twelve accumulators of 6 rows and two vectors, two registers of B, two broadcasts of A.
func micro(name, doc, elem string, broadcast, fma, add func(ops ...Op)) {
	size := map[string]int{"float32": 4, "float64": 8}[elem]
	function(name, "func(kb int, a, b, c *"+elem+", ldc int, beta bool)", doc)
	kb := Load(Param("kb"), GP64())
	a := Load(Param("a"), GP64())
	b := Load(Param("b"), GP64())
	c := Load(Param("c"), GP64())
	ldc := Load(Param("ldc"), GP64())
	beta := Load(Param("beta"), GP8())
	IMUL3Q(Imm(uint64(size)), ldc, ldc)
	p := GP64()
	MOVQ(c, p)
	for range 6 {
		PREFETCHT0(Mem{Base: p, Disp: 60})
		ADDQ(ldc, p)
	}
	var acc [6][2]vec
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
			broadcast(Mem{Base: a, Disp: size * (6*n + i)}, x0)
			broadcast(Mem{Base: a, Disp: size * (6*n + i + 1)}, x1)
			fma(b0, x0, acc[i][0])
			fma(b1, x0, acc[i][1])
			fma(b0, x1, acc[i+1][0])
			fma(b1, x1, acc[i+1][1])
		}
	}
	Label(name + "_four")
	CMPQ(kb, Imm(4))
	JL(LabelRef(name + "_one"))
	PREFETCHT0(Mem{Base: a, Disp: 768})
	PREFETCHT0(Mem{Base: a, Disp: 768 + 64})
	for n := range 4 {
		step(n)
	}
	ADDQ(U32(uint32(4*6*size)), a)
	ADDQ(U32(256), b)
	SUBQ(Imm(4), kb)
	JMP(LabelRef(name + "_four"))
	Label(name + "_one")
	TESTQ(kb, kb)
	JE(LabelRef(name + "_done"))
	step(0)
	ADDQ(Imm(uint64(6*size)), a)
	ADDQ(Imm(64), b)
	DECQ(kb)
	JMP(LabelRef(name + "_one"))
	Label(name + "_done")
	TESTB(beta, beta)
	JE(LabelRef(name + "_store"))
	MOVQ(c, p)
	for i := range acc {
		add(Mem{Base: p}, acc[i][0], acc[i][0])
		add(Mem{Base: p, Disp: 32}, acc[i][1], acc[i][1])
		ADDQ(ldc, p)
	}
	Label(name + "_store")
	for i := range acc {
		VMOVUPS(acc[i][0], Mem{Base: c})
		VMOVUPS(acc[i][1], Mem{Base: c, Disp: 32})
		ADDQ(ldc, c)
	}
	VZEROUPPER()
	RET()
}

// rowTimesPanel is the micro-kernel of one row, for products as wide as memory is fast.
func rowTimesPanel() {
	const name = "gemm1x16F32AVX2"
	function(name, "func(kb int, a, b, c *float32, beta bool)", "computes a 1x16 tile: c = a*b, or c += a*b with beta. a is [kb], b is [kb, 16].")
	kb, a, b, c := Load(Param("kb"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64()), Load(Param("c"), GP64())
	beta := Load(Param("beta"), GP8())
	var acc [4][2]vec
	for i := range acc {
		for j := range acc[i] {
			acc[i][j] = YMM()
			VXORPS(acc[i][j], acc[i][j], acc[i][j])
		}
	}
	x := YMM()
	step := func(i int) {
		VBROADCASTSS(Mem{Base: a, Disp: 4 * i}, x)
		VFMADD231PS(Mem{Base: b, Disp: 64 * i}, x, acc[i][0])
		VFMADD231PS(Mem{Base: b, Disp: 64*i + 32}, x, acc[i][1])
		PREFETCHT0(Mem{Base: b, Disp: 64*i + 1024})
	}
	Label(name + "_four")
	CMPQ(kb, Imm(4))
	JL(LabelRef(name + "_one"))
	for i := range acc {
		step(i)
	}
	ADDQ(Imm(16), a)
	ADDQ(U32(256), b)
	SUBQ(Imm(4), kb)
	JMP(LabelRef(name + "_four"))
	Label(name + "_one")
	TESTQ(kb, kb)
	JE(LabelRef(name + "_sum"))
	step(0)
	ADDQ(Imm(4), a)
	ADDQ(Imm(64), b)
	DECQ(kb)
	JMP(LabelRef(name + "_one"))
	Label(name + "_sum")
	for j := range 2 {
		VADDPS(acc[1][j], acc[0][j], acc[0][j])
		VADDPS(acc[3][j], acc[2][j], acc[2][j])
		VADDPS(acc[2][j], acc[0][j], acc[0][j])
	}
	TESTB(beta, beta)
	JE(LabelRef(name + "_store"))
	VADDPS(Mem{Base: c}, acc[0][0], acc[0][0])
	VADDPS(Mem{Base: c, Disp: 32}, acc[0][1], acc[0][1])
	Label(name + "_store")
	VMOVUPS(acc[0][0], Mem{Base: c})
	VMOVUPS(acc[0][1], Mem{Base: c, Disp: 32})
	VZEROUPPER()
	RET()
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
		t[2*i] = op3(VUNPCKLPS, r[2*i+1], r[2*i])   // a0 b0 a1 b1 | a4 b4 a5 b5
		t[2*i+1] = op3(VUNPCKHPS, r[2*i+1], r[2*i]) // a2 b2 a3 b3 | a6 b6 a7 b7
	}
	for i := range 2 {
		for j := range 2 {
			lo, hi := t[4*i+j], t[4*i+2+j]
			u[4*i+2*j] = op3(VUNPCKLPD, hi, lo)
			u[4*i+2*j+1] = op3(VUNPCKHPD, hi, lo)
		}
	}
	for i := range 4 {
		out[i], out[i+4] = YMM(), YMM()
		VPERM2F128(Imm(0x20), u[i+4], u[i], out[i])
		VPERM2F128(Imm(0x31), u[i+4], u[i], out[i+4])
	}
	return out
}

// packRows packs six rows of A. The last two lanes of each stored column are overwritten by the next column.
func packRows() {
	const name = "pack6F32AVX2"
	function(name, "func(dst, src *float32, kb, step int)", "packs kb columns (a multiple of 8) of 6 rows, step elements apart, to [kb, 6]; writes 2 elements beyond.")
	dst, src, kb, step := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("kb"), GP64()), Load(Param("step"), GP64())
	SHLQ(Imm(2), step)
	fifth, step3 := GP64(), GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, step3)
	LEAQ(Mem{Base: src, Index: step, Scale: 4}, fifth)
	Label(name + "_loop")
	TESTQ(kb, kb)
	JE(LabelRef(name + "_done"))
	var r [8]vec
	for i, m := range []Mem{{Base: src}, {Base: src, Index: step, Scale: 1}, {Base: src, Index: step, Scale: 2}, {Base: src, Index: step3, Scale: 1}, {Base: fifth}, {Base: fifth, Index: step, Scale: 1}} {
		r[i] = load(m)
	}
	r[6], r[7] = r[4], r[5]
	for i, v := range transpose8(r) {
		VMOVUPS(v, Mem{Base: dst, Disp: 24 * i})
	}
	ADDQ(Imm(32), src)
	ADDQ(Imm(32), fifth)
	ADDQ(U32(192), dst)
	SUBQ(Imm(8), kb)
	JMP(LabelRef(name + "_loop"))
	Label(name + "_done")
	VZEROUPPER()
	RET()
}

// packColumns packs sixteen columns of B that lie side by side.
func packColumns() {
	const name = "pack16F32AVX2"
	function(name, "func(dst, src *float32, kb, step int)", "packs kb rows of 16 elements, step elements apart, to [kb, 16].")
	dst, src, kb, step := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("kb"), GP64()), Load(Param("step"), GP64())
	SHLQ(Imm(2), step)
	Label(name + "_two")
	CMPQ(kb, Imm(2))
	JL(LabelRef(name + "_one"))
	a, b, c, d := load(Mem{Base: src}), load(Mem{Base: src, Disp: 32}), YMM(), YMM()
	VMOVUPS(Mem{Base: src, Index: step, Scale: 1}, c)
	VMOVUPS(Mem{Base: src, Index: step, Scale: 1, Disp: 32}, d)
	for i, v := range []vec{a, b, c, d} {
		VMOVUPS(v, Mem{Base: dst, Disp: 32 * i})
	}
	LEAQ(Mem{Base: src, Index: step, Scale: 2}, src)
	ADDQ(U32(128), dst)
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
	function(name, "func(dst, src *float32, kb, step int)", "packs kb elements (a multiple of 8) of 16 columns, step elements apart, to [kb, 16].")
	dst, src, kb, step := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("kb"), GP64()), Load(Param("step"), GP64())
	SHLQ(Imm(2), step)
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
		for i, v := range transpose8(r) {
			VMOVUPS(v, Mem{Base: dst, Disp: 64*i + 32*half})
		}
	}
	ADDQ(Imm(32), src)
	ADDQ(U32(512), dst)
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
