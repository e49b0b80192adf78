package main

// half writes products with 16-bit floats, which are widened in registers.
func half() {
	for _, w := range []struct {
		format    string
		low, high uint32
	}{{"BF16", shll16, shll2}, {"F16", fcvtl, fcvtl2}} {
		dot4Half(w.format, w.low, w.high)
		axpy4Half(w.format, w.low, w.high)
	}
}

// halfRows gives four pointers, step 16-bit numbers apart.
func (f *function) halfRows(p, step reg) []reg {
	rows := []reg{p}
	for range 3 {
		r := f.gp()
		f.op("ADD R%d<<1, R%d, R%d", step, rows[len(rows)-1], r)
		rows = append(rows, r)
	}
	return rows
}

func dot4Half(format string, low, high uint32) {
	f := begin("dot4"+format+"AVX2", "func(x *float32, y *uint16, step, n int, out *float32)", "is out[i] = sum of x * (y at i*step), i < 4, n elements, a multiple of 32.")
	x, n, out := f.arg("x"), f.arg("n"), f.arg("out")
	rows := f.halfRows(f.arg("y"), f.arg("step"))
	acc := func(i, j int) reg { return reg(16 + 2*i + j) }
	for i := range 4 {
		f.zero(acc(i, 0), acc(i, 1))
	}
	f.label("loop")
	for at := range 4 {
		f.ldpq(0, 1, x, 32*at)
		for i, r := range rows {
			t := reg(2 + 3*i)
			f.ldq(t, r, 16*at)
			f.v2(low, t+1, t)
			f.v2(high, t+2, t)
			f.v3(fmla, acc(i, 0), 0, t+1)
			f.v3(fmla, acc(i, 1), 1, t+2)
		}
	}
	f.op("ADD $128, R%d", x)
	for _, r := range rows {
		f.op("PRFM 512(R%d), PLDL1KEEP", r)
		f.op("ADD $64, R%d", r)
	}
	f.op("SUBS $32, R%d", n)
	f.op("BNE loop")
	for i := range 4 {
		r := f.addLanes([]reg{acc(i, 0), acc(i, 1)})
		f.op("FMOVS F%d, %d(R%d)", r, 4*i, out)
	}
	f.ret()
}

// axpy4Half adds four rows at once, so that y is read and written once for them.
func axpy4Half(format string, low, high uint32) {
	f := begin("axpy4"+format+"AVX2", "func(y *float32, x *uint16, step, n int, s *float32)", "adds s[0]*x + ... + s[3]*(x at 3*step) to y, n elements, a multiple of 16.")
	y, n, factors := f.arg("y"), f.arg("n"), f.arg("s")
	rows := f.halfRows(f.arg("x"), f.arg("step"))
	s := func(i int) reg { return reg(28 + i) }
	for i := range 4 {
		f.fill(s(i), factors, 4*i)
	}
	f.label("loop")
	for at := range 2 {
		f.ldpq(0, 1, y, 32*at)
		for i, r := range rows {
			t := reg(2 + 3*i)
			f.ldq(t, r, 16*at)
			f.v2(low, t+1, t)
			f.v2(high, t+2, t)
			f.v3(fmla, 0, t+1, s(i))
			f.v3(fmla, 1, t+2, s(i))
		}
		f.stpq(0, 1, y, 32*at)
	}
	f.op("ADD $64, R%d", y)
	for _, r := range rows {
		f.op("ADD $32, R%d", r)
	}
	f.op("SUBS $16, R%d", n)
	f.op("BNE loop")
	f.ret()
}
