package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// quant writes products of 8-bit integers and what turns their sums into 8-bit integers again.
func quant() {
	tileVNNI()
	tileAVX2()
	maxU8()
	maxWindow("U8", VPMAXUB_Z)
	maxWindow("S8", VPMAXSB_Z)
	forBoth(func() {
		requantize()
		depthwiseBytes()
		quantize()
		dequantize()
	})
}

// walkTaps runs body for each tap and step within it, with the offset of the step's bytes in a register; bytes is a step's length.
func walkTaps(bytes uint64, body func(at Register)) {
	taps, n := Load(Param("taps"), GP64()), Load(Param("ntaps"), GP64())
	at, steps := GP64(), GP64()
	Label("tap")
	MOVQ(Mem{Base: taps}, at)
	ADDQ(Imm(8), taps)
	Load(Param("steps"), steps)
	Label("step")
	body(at)
	ADDQ(Imm(bytes), at)
	DECQ(steps)
	JNE(LabelRef("step"))
	DECQ(n)
	JNE(LabelRef("tap"))
}

// rowPointers are x plus the offsets of rows.
func rowPointers(n int) []Register {
	x, rows := Load(Param("x"), GP64()), Load(Param("rows"), GP64())
	r := make([]Register, n)
	for i := range r {
		r[i] = GP64()
		MOVQ(Mem{Base: rows, Disp: 8 * i}, r[i])
		ADDQ(x, r[i])
	}
	return r
}

func tileVNNI() {
	function("quantTileVNNI", "func(x *uint8, rows, taps *int, ntaps, steps int, w *int8, acc *int32)", "computes a 6x64 tile of sums of u8*s8: rows are at 6 offsets from x, taps at ntaps offsets from those, each of steps groups of 4 numbers; w is [ntaps, steps, 64, 4].")
	rows := rowPointers(6)
	w := Load(Param("w"), GP64())
	var acc [6][4]vec
	for i := range acc {
		for j := range acc[i] {
			acc[i][j] = ZMM()
			VPXORD(acc[i][j], acc[i][j], acc[i][j])
		}
	}
	var b [4]vec
	for j := range b {
		b[j] = ZMM()
	}
	t := []vec{ZMM(), ZMM()}
	walkTaps(4, func(at Register) {
		for j := range b {
			VMOVDQU32(Mem{Base: w, Disp: 64 * j}, b[j])
		}
		for i, r := range rows {
			VPBROADCASTD(Mem{Base: r, Index: at, Scale: 1}, t[i%2])
			for j := range b {
				VPDPBUSD(b[j], t[i%2], acc[i][j])
			}
		}
		ADDQ(U32(256), w)
	})
	out := Load(Param("acc"), GP64())
	for i := range acc {
		for j := range acc[i] {
			VMOVDQU32(acc[i][j], Mem{Base: out, Disp: 256*i + 64*j})
		}
	}
	VZEROUPPER()
	RET()
}

// tileAVX2 multiplies in 16 bits: the instruction for 8 bits would saturate.
func tileAVX2() {
	function("quantTileAVX2", "func(x *uint8, rows, taps *int, ntaps, steps int, w, acc *int32)", "computes a 4x16 tile of sums of u8*s8: rows are at 4 offsets from x, taps at ntaps offsets from those, each of steps pairs of numbers; w is [ntaps, steps, 16] pairs of 16-bit integers.")
	rows := rowPointers(4)
	w := Load(Param("w"), GP64())
	var acc [4][2]vec
	for i := range acc {
		for j := range acc[i] {
			acc[i][j] = YMM()
			VPXOR(acc[i][j], acc[i][j], acc[i][j])
		}
	}
	walkTaps(2, func(at Register) {
		for i, r := range rows {
			pair, t := XMM(), YMM()
			VPBROADCASTW(Mem{Base: r, Index: at, Scale: 1}, pair)
			VPMOVZXBW(pair, t)
			for j := range 2 {
				s := YMM()
				VPMADDWD(Mem{Base: w, Disp: 32 * j}, t, s)
				VPADDD(s, acc[i][j], acc[i][j])
			}
		}
		ADDQ(Imm(64), w)
	})
	out := Load(Param("acc"), GP64())
	for i := range acc {
		for j := range acc[i] {
			VMOVDQU(acc[i][j], Mem{Base: out, Disp: 64*i + 32*j})
		}
	}
	VZEROUPPER()
	RET()
}

// broadcastAt fills a vector with the 32-bit number at a pointer.
func broadcastAt(m Mem) vec {
	y := VEC()
	VPBROADCASTD(m, y)
	return y
}

// toQuantum is x/scale + zero, rounded to nearest even and clamped: params are 1/scale, zero, the least and the largest result.
func toQuantum(x vec, inv, zero, least, most vec) vec {
	x = mul(x, inv)
	x = minOf(x, num(1e9)) // NaN becomes the most, too
	x = maxOf(x, num(-1e9))
	y := VEC()
	VCVTPS2DQ(x, y)
	VPADDD(zero, y, y)
	VPMAXSD(least, y, y)
	VPMINSD(most, y, y)
	return y
}

// lowBytes is what storeBytes needs in a register.
func lowBytes() vec {
	if wide {
		return nil
	}
	const key = 1<<31 | 0x10b7
	m, ok := constants[key]
	if !ok {
		m = GLOBL("lowbytes", RODATA|NOPTR)
		for i := range 8 {
			DATA(4*i, U32(map[bool]uint32{true: 0x0c080400, false: 0x80808080}[i%4 == 0]))
		}
		constants[key] = m
	}
	return load(m)
}

// storeBytes writes the lowest byte of each 32-bit integer.
func storeBytes(x, low vec, to Mem) {
	if wide {
		VPMOVDB(x, to)
		return
	}
	VPSHUFB(low, x, x)
	hi := XMM()
	VEXTRACTI128(Imm(1), x, hi)
	VPUNPCKLDQ(hi, x.AsX(), hi)
	VMOVQ(hi, to)
}

// fromSums writes a function over rows of sums: into 8-bit integers, or into float32. Params are broadcast once for all rows.
func fromSums(name, what, out string, size int, rest func(param func(i int) vec) func(f vec, to Mem)) {
	const formula = "f = (acc+offset)*scale + bias + ((residual^flip) - zero)*step, limited; residual may be nil. Rows of acc are accStep elements apart, those of residual and out outStep. params are step, zero, flip, lo, hi, 1/scale, zero, least, most."
	function(name+isa(), "func(rows, n, accStep, outStep int, acc, offset *int32, scale, bias *float32, residual *uint8, params *float32, out *"+out+")", "turns rows of n sums, a multiple of 16, into "+what+": "+formula)
	n, acc, offset := Load(Param("n"), GP64()), Load(Param("acc"), GP64()), Load(Param("offset"), GP64())
	scale, bias, residual := Load(Param("scale"), GP64()), Load(Param("bias"), GP64()), Load(Param("residual"), GP64())
	params, to := Load(Param("params"), GP64()), Load(Param("out"), GP64())
	rows, step, j := Load(Param("rows"), GP64()), GP64(), GP64()
	param := func(i int) vec { return broadcastAt(Mem{Base: params, Disp: 4 * i}) }
	keep := param // AVX2 has too few registers for all
	if wide {
		var held [5]vec
		for i := range held {
			held[i] = param(i)
		}
		keep = func(i int) vec { return held[i] }
	}
	store := rest(param)
	Label("row")
	XORQ(j, j)
	Label("loop")
	f := VEC()
	VMOVUPS(Mem{Base: acc, Index: j, Scale: 4}, f)
	VPADDD(Mem{Base: offset, Index: j, Scale: 4}, f, f)
	VCVTDQ2PS(f, f)
	VFMADD213PS(Mem{Base: bias, Index: j, Scale: 4}, load(Mem{Base: scale, Index: j, Scale: 4}), f)
	TESTQ(residual, residual)
	JE(LabelRef("limits"))
	r := VEC()
	VPMOVZXBD(Mem{Base: residual, Index: j, Scale: 1}, r)
	if wide {
		VPXORD(keep(2), r, r)
	} else {
		VPXOR(keep(2), r, r)
	}
	VCVTDQ2PS(r, r)
	VSUBPS(keep(1), r, r)
	VFMADD231PS(keep(0), r, f)
	Label("limits")
	VMAXPS(keep(3), f, f)
	VMINPS(keep(4), f, f)
	store(f, Mem{Base: to, Index: j, Scale: uint8(size)})
	ADDQ(Imm(uint64(width())), j)
	CMPQ(j, n)
	JL(LabelRef("loop"))
	Load(Param("accStep"), step)
	LEAQ(Mem{Base: acc, Index: step, Scale: 4}, acc)
	Load(Param("outStep"), step)
	LEAQ(Mem{Base: to, Index: step, Scale: uint8(size)}, to)
	TESTQ(residual, residual)
	JE(LabelRef("next"))
	ADDQ(step, residual)
	Label("next")
	DECQ(rows)
	JNE(LabelRef("row"))
	VZEROUPPER()
	RET()
}

func requantize() {
	fromSums("requantize", "8-bit integers", "uint8", 1, func(param func(i int) vec) func(f vec, to Mem) {
		low := lowBytes()
		inv, zero, least, most := param(5), param(6), param(7), param(8)
		return func(f vec, to Mem) { storeBytes(toQuantum(f, inv, zero, least, most), low, to) }
	})
	fromSums("sumsToF32", "float32", "float32", 4, func(param func(i int) vec) func(f vec, to Mem) {
		return func(f vec, to Mem) { VMOVUPS(f, to) }
	})
}

// depthwise adds up the taps of each channel in float32, which holds these sums exactly.
func depthwiseBytes() {
	function("quantDepthwise"+isa(), "func(x *uint8, taps *int, ntaps, n int, w *float32, acc *int32)", "is the sum over taps of x * w for each of n channels, a multiple of 16: taps are at offsets from x, w is [ntaps, n].")
	x, n := Load(Param("x"), GP64()), Load(Param("n"), GP64())
	w, acc := Load(Param("w"), GP64()), Load(Param("acc"), GP64())
	step, left := GP64(), GP64()
	MOVQ(n, step)
	SHLQ(Imm(2), step)
	MOVQ(n, left)
	taps, count, at, p := GP64(), GP64(), GP64(), GP64()
	Label("channels")
	Load(Param("taps"), taps)
	Load(Param("ntaps"), count)
	MOVQ(w, p)
	sum := VEC()
	if wide {
		VPXORD(sum, sum, sum)
	} else {
		VPXOR(sum, sum, sum)
	}
	Label("tap")
	MOVQ(Mem{Base: taps}, at)
	b := VEC()
	VPMOVZXBD(Mem{Base: x, Index: at, Scale: 1}, b)
	VCVTDQ2PS(b, b)
	VFMADD231PS(Mem{Base: p}, b, sum)
	ADDQ(Imm(8), taps)
	ADDQ(step, p)
	DECQ(count)
	JNE(LabelRef("tap"))
	VCVTPS2DQ(sum, sum)
	VMOVUPS(sum, Mem{Base: acc})
	ADDQ(Imm(uint64(width())), x)
	ADDQ(Imm(uint64(4*width())), w)
	ADDQ(Imm(uint64(4*width())), acc)
	SUBQ(Imm(uint64(width())), left)
	JNE(LabelRef("channels"))
	VZEROUPPER()
	RET()
}

func quantize() {
	function("quantizeF32"+isa(), "func(dst *uint8, x *float32, n int, params *float32)", "turns n numbers, a multiple of 16, into 8-bit integers; params are 1/scale, zero, least, most.")
	dst, x, n := Load(Param("dst"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	params := Load(Param("params"), GP64())
	param := func(i int) vec { return broadcastAt(Mem{Base: params, Disp: 4 * i}) }
	low := lowBytes()
	inv, zero, least, most := param(0), param(1), param(2), param(3)
	Label("loop")
	storeBytes(toQuantum(load(Mem{Base: x}), inv, zero, least, most), low, Mem{Base: dst})
	ADDQ(Imm(uint64(width())), dst)
	ADDQ(Imm(uint64(4*width())), x)
	SUBQ(Imm(uint64(width())), n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func dequantize() {
	function("dequantizeF32"+isa(), "func(dst *float32, x *uint8, n int, flip int32, zero, scale float32)", "is (x^flip - zero) * scale for n numbers, a multiple of 16.")
	dst, x, n := Load(Param("dst"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	zero, scale := broadcast("zero"), broadcast("scale")
	f := Load(Param("flip"), GP32())
	fx, flip := XMM(), VEC()
	VMOVD(f, fx)
	VPBROADCASTD(fx, flip)
	Label("loop")
	y := VEC()
	VPMOVZXBD(Mem{Base: x}, y)
	if wide {
		VPXORD(flip, y, y)
	} else {
		VPXOR(flip, y, y)
	}
	VCVTDQ2PS(y, y)
	VMOVUPS(mul(sub(y, zero), scale), Mem{Base: dst})
	ADDQ(Imm(uint64(4*width())), dst)
	ADDQ(Imm(uint64(width())), x)
	SUBQ(Imm(uint64(width())), n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func maxU8() {
	function("maxU8AVX2", "func(d, x *uint8, n int)", "makes d the larger of d and x, n elements, a multiple of 32.")
	d, x, n := Load(Param("d"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	Label("loop")
	v := YMM()
	VMOVDQU(Mem{Base: x}, v)
	VPMAXUB(Mem{Base: d}, v, v)
	VMOVDQU(v, Mem{Base: d})
	ADDQ(Imm(32), d)
	ADDQ(Imm(32), x)
	SUBQ(Imm(32), n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// maxWindow takes the largest of a window for positions in a row.
func maxWindow(kind string, larger func(m, x, k, y Op)) {
	function("maxWindow"+kind+"AVX512", "func(x *uint8, step, positions int, taps *int, ntaps, n int, out *uint8)", "makes each of n channels the largest of those at ntaps offsets from x, for positions that are step bytes apart in x and n in out.")
	x, positions, n, out := Load(Param("x"), GP64()), Load(Param("positions"), GP64()), Load(Param("n"), GP64()), Load(Param("out"), GP64())
	taps, left, at, p, ones, mask, count := GP64(), GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(I32(-1), ones)
	Label("position")
	MOVQ(x, p)
	MOVQ(n, left)
	Label("channels")
	BZHIQ(left, ones, mask)
	CMPQ(left, Imm(64))
	CMOVQGE(ones, mask)
	k := K()
	KMOVQ(mask, k)
	Load(Param("taps"), taps)
	Load(Param("ntaps"), count)
	y := ZMM()
	MOVQ(Mem{Base: taps}, at)
	VMOVDQU8_Z(Mem{Base: p, Index: at, Scale: 1}, k, y)
	Label("tap")
	MOVQ(Mem{Base: taps}, at)
	larger(Mem{Base: p, Index: at, Scale: 1}, y, k, y)
	ADDQ(Imm(8), taps)
	DECQ(count)
	JNE(LabelRef("tap"))
	VMOVDQU8(y, k, Mem{Base: out})
	ADDQ(Imm(64), p)
	ADDQ(Imm(64), out)
	SUBQ(Imm(64), left)
	JG(LabelRef("channels"))
	ADDQ(left, out) // the last step went too far
	Load(Param("step"), at)
	ADDQ(at, x)
	DECQ(positions)
	JNE(LabelRef("position"))
	VZEROUPPER()
	RET()
}
