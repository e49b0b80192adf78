package main

func gemm() {
	axpy()
	axpy4()
	dot4()
	packColumns()
	packTransposed()
}

func axpy() {
	f := begin("axpyF32AVX2", "func(y, x *float32, n int, s float32)", "adds s*x to y, n elements.")
	y := f.arg("y")
	in := f.gp()
	f.op("MOVD R%d, R%d", y, in)
	f.fillArg(31, "s")
	p := pass{f: f, in: []reg{in, f.arg("x")}, out: y, n: f.arg("n"), unroll: 4, kept: []reg{31}}
	p.body = func(s *straight, in []val, _ int, _ bool) val { return s.fma(in[0], in[1], pinned(31)) }
	p.emit()
	f.ret()
}

// rowsAt gives four pointers, step elements apart.
func (f *function) rowsAt(x, step reg) []reg {
	rows := []reg{x}
	for range 3 {
		r := f.gp()
		f.op("ADD R%d<<2, R%d, R%d", step, rows[len(rows)-1], r)
		rows = append(rows, r)
	}
	return rows
}

// axpy4 adds four rows at once, so that y is read and written once for them.
func axpy4() {
	f := begin("axpy4F32AVX2", "func(y, x *float32, step, n int, s *float32)", "adds s[0]*x + ... + s[3]*(x at 3*step) to y, n elements.")
	y, factors := f.arg("y"), f.arg("s")
	in := f.gp()
	f.op("MOVD R%d, R%d", y, in)
	kept := []reg{28, 29, 30, 31}
	for i, r := range kept {
		f.fill(r, factors, 4*i)
	}
	rows := f.rowsAt(f.arg("x"), f.arg("step"))
	p := pass{f: f, in: append([]reg{in}, rows...), out: y, n: f.arg("n"), unroll: 2, kept: kept}
	p.body = func(s *straight, in []val, _ int, _ bool) val {
		sum := in[0]
		for i, r := range kept {
			sum = s.fma(sum, in[1+i], pinned(r))
		}
		return sum
	}
	p.emit()
	f.ret()
}

// dot4 is four inner products with one vector.
func dot4() {
	f := begin("dot4F32AVX2", "func(x, y *float32, step, n int, out *float32)", "is out[i] = sum of x * (y at i*step), n elements, i < 4.")
	x, out := f.arg("x"), f.arg("out")
	acc := func(i, lane int) reg { return reg(24 + 2*i + lane) }
	var kept []reg
	for i := range 8 {
		kept = append(kept, reg(24+i))
	}
	f.zero(kept...)
	p := pass{f: f, in: append([]reg{x}, f.rowsAt(f.arg("y"), f.arg("step"))...), out: -1, n: f.arg("n"), unroll: 2, kept: kept}
	p.body = func(s *straight, in []val, lane int, _ bool) val {
		for i := range 4 {
			s.update(fmla, pinned(acc(i, lane)), in[0], in[1+i])
		}
		return val{}
	}
	p.emit()
	for i := range 4 {
		r := f.addLanes([]reg{acc(i, 0), acc(i, 1)})
		f.op("FMOVS F%d, %d(R%d)", r, 4*i, out)
	}
	f.ret()
}

// packColumns packs sixteen columns of B that lie side by side.
func packColumns() {
	f := begin("pack16F32AVX2", "func(dst, src *float32, kb, step, wide int)", "packs kb rows of 16 elements, step elements apart, to rows wide elements apart.")
	dst, src, kb, step, wide := f.arg("dst"), f.arg("src"), f.arg("kb"), f.arg("step"), f.arg("wide")
	f.op("LSL $2, R%d", step)
	f.op("LSL $2, R%d", wide)
	f.op("CBZ R%d, done", kb)
	f.label("loop")
	f.ldpq(0, 1, src, 0)
	f.ldpq(2, 3, src, 32)
	f.stpq(0, 1, dst, 0)
	f.stpq(2, 3, dst, 32)
	f.op("ADD R%d, R%d", step, src)
	f.op("ADD R%d, R%d", wide, dst)
	f.op("SUBS $1, R%d", kb)
	f.op("BNE loop")
	f.label("done")
	f.ret()
}

// transpose4 turns the rows in four vectors into columns, with the help of four more.
func (f *function) transpose4(r, t [4]reg) {
	f.v3(zip1s, t[0], r[0], r[2]) // a0 c0 a1 c1
	f.v3(zip2s, t[1], r[0], r[2]) // a2 c2 a3 c3
	f.v3(zip1s, t[2], r[1], r[3])
	f.v3(zip2s, t[3], r[1], r[3])
	f.v3(zip1s, r[0], t[0], t[2]) // a0 b0 c0 d0
	f.v3(zip2s, r[1], t[0], t[2])
	f.v3(zip1s, r[2], t[1], t[3])
	f.v3(zip2s, r[3], t[1], t[3])
}

// packTransposed packs sixteen columns of B each of which is contiguous: a weight [N, K] used as [K, N].
func packTransposed() {
	f := begin("pack16TF32AVX2", "func(dst, src *float32, kb, step, wide int)", "packs kb elements (a multiple of 8) of 16 columns, step elements apart, to rows wide elements apart.")
	dst, src, kb, step, wide := f.arg("dst"), f.arg("src"), f.arg("kb"), f.arg("step"), f.arg("wide")
	at, to := f.gp(), f.gp()
	f.op("LSL $2, R%d", step)
	f.op("LSL $2, R%d", wide)
	f.op("CBZ R%d, done", kb)
	f.label("loop")
	f.op("MOVD R%d, R%d", src, at)
	for part := range 4 {
		for i := range reg(4) {
			f.ldq(4*reg(part)+i, at, 0)
			f.op("ADD R%d, R%d", step, at)
		}
		p := 4 * reg(part)
		f.transpose4([4]reg{p, p + 1, p + 2, p + 3}, [4]reg{16, 17, 18, 19})
	}
	f.op("MOVD R%d, R%d", dst, to)
	for i := range reg(4) {
		f.stpq(i, 4+i, to, 0)
		f.stpq(8+i, 12+i, to, 32)
		f.op("ADD R%d, R%d", wide, to)
	}
	f.op("ADD $16, R%d", src)
	f.op("MOVD R%d, R%d", to, dst)
	f.op("SUBS $4, R%d", kb)
	f.op("BNE loop")
	f.label("done")
	f.ret()
}
