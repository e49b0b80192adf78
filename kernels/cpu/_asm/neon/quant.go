package main

// quant writes products of 8-bit integers and what turns their sums into 8-bit integers again.
func quant() {
	quantTile()
	maxU8()
	fromSums("requantizeAVX2", "8-bit integers", "uint8", 1)
	fromSums("sumsToF32AVX2", "float32", "float32", 4)
	depthwiseBytes()
	quantize()
	dequantize()
}

// quantTile multiplies in 16 bits. Pairs of weights are parted once for the tile's rows, whose numbers are lanes.
func quantTile() {
	f := begin("quantTileAVX2", "func(x *uint8, rows, taps *int, ntaps, steps int, w, acc *int32)", "computes a 4x16 tile of sums of u8*s8: rows are at 4 offsets from x, taps at ntaps offsets from those, each of steps pairs of numbers; w is [ntaps, steps, 16] pairs of 16-bit integers.")
	x, offsets, taps, n, w, out := f.arg("x"), f.arg("rows"), f.arg("taps"), f.arg("ntaps"), f.arg("w"), f.arg("acc")
	rows := []reg{f.gp(), f.gp(), f.gp(), f.gp()}
	for i, r := range rows {
		f.op("MOVD %d(R%d), R%d", 8*i, offsets, r)
		f.op("ADD R%d, R%d", x, r)
	}
	at, steps := f.gp(), f.gp()
	acc := func(i, j int) reg { return reg(16 + 4*i + j) }
	for i := range 4 {
		for j := range 4 {
			f.zero(acc(i, j))
		}
	}
	f.label("tap")
	f.op("MOVD.P 8(R%d), R%d", taps, at)
	f.load("steps", steps)
	f.label("step")
	f.ldpq(4, 5, w, 0)
	f.ldpq(6, 7, w, 32)
	f.v3(uzp1h, 8, 4, 5) // the first of each pair, columns 0 to 7
	f.v3(uzp2h, 9, 4, 5)
	f.v3(uzp1h, 10, 6, 7)
	f.v3(uzp2h, 11, 6, 7)
	for i, r := range rows {
		f.op("MOVHU (R%d)(R%d), R%d", r, at, x)
		f.op("FMOVS R%d, F%d", x, i)
		f.v2(uxtl8, reg(i), reg(i))
		for half := range 2 { // columns 0 to 7, 8 to 15
			for pair := range uint32(2) {
				v := reg(8 + 2*half + int(pair))
				f.smlalLane(acc(i, 2*half), v, reg(i), pair, false)
				f.smlalLane(acc(i, 2*half+1), v, reg(i), pair, true)
			}
		}
	}
	f.op("ADD $64, R%d", w)
	f.op("ADD $2, R%d", at)
	f.op("SUBS $1, R%d", steps)
	f.op("BNE step")
	f.op("SUBS $1, R%d", n)
	f.op("BNE tap")
	for i := range 4 {
		f.stpq(acc(i, 0), acc(i, 1), out, 64*i)
		f.stpq(acc(i, 2), acc(i, 3), out, 64*i+32)
	}
	f.ret()
}

// smlalLane adds the low or high four 16-bit integers of n times a lane of m, one of V0 to V15.
func (f *function) smlalLane(d, n, m reg, lane uint32, high bool) {
	code, name := uint32(0x0f402000), "SMLAL"
	if high {
		code, name = 0x4f402000, "SMLAL2"
	}
	f.word(code|lane&1<<20|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s V%d.4S, V%d, V%d.H[%d]", name, d, n, m, lane)
}

func maxU8() {
	f := begin("maxU8AVX2", "func(d, x *uint8, n int)", "makes d the larger of d and x, n elements, a multiple of 32.")
	d, x, n := f.arg("d"), f.arg("x"), f.arg("n")
	f.label("loop")
	f.ldpq(0, 1, x, 0)
	f.ldpq(2, 3, d, 0)
	f.v3(umaxb, 0, 0, 2)
	f.v3(umaxb, 1, 1, 3)
	f.stpq(0, 1, d, 0)
	f.op("ADD $32, R%d", x)
	f.op("ADD $32, R%d", d)
	f.op("SUBS $32, R%d", n)
	f.op("BNE loop")
	f.ret()
}

// quantum is how numbers become 8-bit integers: vectors of 1/scale, zero, least, most, and two bounds that keep them integers.
type quantum struct{ inv, zero, least, most, top, bottom reg }

func newQuantum(f *function, params reg, offset int) quantum {
	q := quantum{26, 27, 28, 29, 30, 31}
	for i, r := range []reg{q.inv, q.zero, q.least, q.most} {
		f.fill(r, params, offset+4*i)
	}
	f.num(q.top, 1e9)
	f.num(q.bottom, -1e9)
	return q
}

// apply is x/scale + zero, rounded to nearest even and clamped; NaN becomes the most.
func (q quantum) apply(f *function, x reg) {
	f.v3(fmul, x, x, q.inv)
	f.v3(fminnm, x, x, q.top)
	f.v3(fmax, x, x, q.bottom)
	f.v2(fcvtns, x, x)
	f.v3(addv, x, x, q.zero)
	f.v3(smax, x, x, q.least)
	f.v3(smin, x, x, q.most)
}

// fminnm is the number where one of two is NaN.
const fminnm = 0x4ea0c400

// storeBytes writes the lowest bytes of the integers in two vectors.
func (f *function) storeBytes(a, b, to reg) {
	f.v2(xtn16, a, a)
	f.v2(xtn16b, a, b)
	f.v2(xtn8, a, a)
	f.op("FMOVD F%d, (R%d)", a, to)
}

// fromSums writes a function over rows of sums: into 8-bit integers, or into float32.
func fromSums(name, what, out string, size int) {
	const formula = "f = (acc+offset)*scale + bias + ((residual^flip) - zero)*step, limited; residual may be nil. Rows of acc are accStep elements apart, those of residual and out outStep. params are step, zero, flip, lo, hi, 1/scale, zero, least, most."
	f := begin(name, "func(rows, n, accStep, outStep int, acc, offset *int32, scale, bias *float32, residual *uint8, params *float32, out *"+out+")", "turns rows of n sums, a multiple of 16, into "+what+": "+formula)
	n, acc, offset, scale, bias, residual := f.arg("n"), f.arg("acc"), f.arg("offset"), f.arg("scale"), f.arg("bias"), f.arg("residual")
	params, to, rows, accStep, outStep := f.arg("params"), f.arg("out"), f.arg("rows"), f.arg("accStep"), f.arg("outStep")
	j, p, r := f.gp(), f.gp(), f.gp()
	const step, zero, flip, lo, hi = 21, 22, 23, 24, 25
	for i := range 5 {
		f.fill(reg(21+i), params, 4*i)
	}
	var q quantum
	if size == 1 {
		q = newQuantum(f, params, 20)
	}
	f.label("row")
	f.op("MOVD ZR, R%d", j)
	f.label("loop")
	for i, base := range []reg{acc, offset, scale, bias} {
		f.op("ADD R%d<<2, R%d, R%d", j, base, p)
		f.ldpq(reg(2*i), reg(2*i+1), p, 0)
	}
	for v := range reg(2) {
		f.v3(addv, v, v, 2+v)
		f.v2(scvtf, v, v)
		f.v3(fmla, 6+v, v, 4+v) // sums*scale + bias
	}
	f.op("CBZ R%d, limits", residual)
	f.op("ADD R%d, R%d, R%d", j, residual, p)
	f.op("FMOVD (R%d), F8", p)
	f.widenBytes(8, 9, 8)
	for v := range reg(2) {
		f.v3(eor, 8+v, 8+v, flip)
		f.v2(scvtf, 8+v, 8+v)
		f.v3(fsub, 8+v, 8+v, zero)
		f.v3(fmla, 6+v, 8+v, step)
	}
	f.label("limits")
	for v := range reg(2) {
		f.v3(fmax, 6+v, 6+v, lo)
		f.v3(fmin, 6+v, 6+v, hi)
	}
	if size == 1 {
		q.apply(f, 6)
		q.apply(f, 7)
		f.op("ADD R%d, R%d, R%d", j, to, p)
		f.storeBytes(6, 7, p)
	} else {
		f.op("ADD R%d<<2, R%d, R%d", j, to, p)
		f.stpq(6, 7, p, 0)
	}
	f.op("ADD $8, R%d", j)
	f.op("CMP R%d, R%d", n, j)
	f.op("BLT loop")
	f.op("ADD R%d<<2, R%d", accStep, acc)
	f.op("MOVD R%d, R%d", outStep, r)
	if size == 4 {
		f.op("LSL $2, R%d", r)
	}
	f.op("ADD R%d, R%d", r, to)
	f.op("CBZ R%d, next", residual)
	f.op("ADD R%d, R%d", outStep, residual)
	f.label("next")
	f.op("SUBS $1, R%d", rows)
	f.op("BNE row")
	f.ret()
}

// depthwiseBytes adds up the taps of each channel in float32, which holds these sums exactly.
func depthwiseBytes() {
	f := begin("quantDepthwiseAVX2", "func(x *uint8, taps *int, ntaps, n int, w *float32, acc *int32)", "is the sum over taps of x * w for each of n channels, a multiple of 16: taps are at offsets from x, w is [ntaps, n].")
	x, n, w, acc := f.arg("x"), f.arg("n"), f.arg("w"), f.arg("acc")
	taps, count, at, p, left := f.gp(), f.gp(), f.gp(), f.gp(), f.gp()
	f.op("MOVD R%d, R%d", n, left)
	f.label("channels")
	f.load("taps", taps)
	f.load("ntaps", count)
	f.op("MOVD R%d, R%d", w, p)
	f.zero(0, 1)
	f.label("tap")
	f.op("MOVD.P 8(R%d), R%d", taps, at)
	f.op("ADD R%d, R%d", x, at)
	f.op("FMOVD (R%d), F2", at)
	f.widenBytes(2, 3, 2)
	f.v2(ucvtf, 2, 2)
	f.v2(ucvtf, 3, 3)
	f.ldpq(4, 5, p, 0)
	f.v3(fmla, 0, 2, 4)
	f.v3(fmla, 1, 3, 5)
	f.op("ADD R%d<<2, R%d", n, p)
	f.op("SUBS $1, R%d", count)
	f.op("BNE tap")
	f.v2(fcvtns, 0, 0)
	f.v2(fcvtns, 1, 1)
	f.stpq(0, 1, acc, 0)
	f.op("ADD $8, R%d", x)
	f.op("ADD $32, R%d", w)
	f.op("ADD $32, R%d", acc)
	f.op("SUBS $8, R%d", left)
	f.op("BNE channels")
	f.ret()
}

func quantize() {
	f := begin("quantizeF32AVX2", "func(dst *uint8, x *float32, n int, params *float32)", "turns n numbers, a multiple of 16, into 8-bit integers; params are 1/scale, zero, least, most.")
	dst, x, n := f.arg("dst"), f.arg("x"), f.arg("n")
	q := newQuantum(f, f.arg("params"), 0)
	f.label("loop")
	f.ldpq(0, 1, x, 0)
	q.apply(f, 0)
	q.apply(f, 1)
	f.storeBytes(0, 1, dst)
	f.op("ADD $8, R%d", dst)
	f.op("ADD $32, R%d", x)
	f.op("SUBS $8, R%d", n)
	f.op("BNE loop")
	f.ret()
}

func dequantize() {
	f := begin("dequantizeF32AVX2", "func(dst *float32, x *uint8, n int, flip int32, zero, scale float32)", "is (x^flip - zero) * scale for n numbers, a multiple of 16.")
	dst, x, n := f.arg("dst"), f.arg("x"), f.arg("n")
	const flip, zero, scale = 29, 30, 31
	f.fillArg(flip, "flip")
	f.fillArg(zero, "zero")
	f.fillArg(scale, "scale")
	f.label("loop")
	f.op("FMOVD (R%d), F0", x)
	f.widenBytes(0, 1, 0)
	for v := range reg(2) {
		f.v3(eor, v, v, flip)
		f.v2(scvtf, v, v)
		f.v3(fsub, v, v, zero)
		f.v3(fmul, v, v, scale)
	}
	f.stpq(0, 1, dst, 0)
	f.op("ADD $32, R%d", dst)
	f.op("ADD $8, R%d", x)
	f.op("SUBS $8, R%d", n)
	f.op("BNE loop")
	f.ret()
}
