package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// The conversions do whole vectors of eight; the callers do the rest.
func convert() {
	eights("f16ToF32", "func(dst *float32, src *uint16, n int)", "widens n numbers, n a multiple of 8.", 4, 2, func(dst, src Mem) {
		y := YMM()
		VCVTPH2PS(src, y)
		VMOVUPS(y, dst)
	})
	eights("f32ToF16", "func(dst *uint16, src *float32, n int)", "rounds n numbers to nearest even, n a multiple of 8.", 2, 4, func(dst, src Mem) {
		y := load(src)
		VCVTPS2PH(Imm(0), y, dst)
	})
	eights("bf16ToF32", "func(dst *float32, src *uint16, n int)", "widens n numbers, n a multiple of 8.", 4, 2, func(dst, src Mem) {
		y := YMM()
		VPMOVZXWD(src, y)
		VPSLLD(Imm(16), y, y)
		VMOVUPS(y, dst)
	})
	eights("f32ToBF16", "func(dst *uint16, src *float32, n int)", "rounds n numbers to nearest even, n a multiple of 8; NaN becomes 0x7fc0.", 2, 4, func(dst, src Mem) {
		x := load(src)
		r := YMM()
		VPSRLD(Imm(16), x, r)
		VPAND(bits(1), r, r)
		VPADDD(bits(0x7fff), r, r)
		VPADDD(x, r, r) // x + 0x7fff + the last bit kept
		r = choose(cmp(x, 3, x), load(bits(0x7fc00000)), r)
		VPSRLD(Imm(16), r, r)
		hi := XMM()
		VEXTRACTI128(Imm(1), r, hi)
		out := XMM()
		VPACKUSDW(hi, r.AsX(), out)
		VMOVDQU(out, dst)
	})
	eights("i32ToF32", "func(dst *float32, src *int32, n int)", "converts n numbers, n a multiple of 8.", 4, 4, func(dst, src Mem) {
		y := YMM()
		VCVTDQ2PS(src, y)
		VMOVUPS(y, dst)
	})
	eights("u8ToF32", "func(dst *float32, src *uint8, n int)", "converts n numbers, n a multiple of 8.", 4, 1, func(dst, src Mem) {
		y := YMM()
		VPMOVZXBD(src, y)
		VCVTDQ2PS(y, y)
		VMOVUPS(y, dst)
	})
	eights("f32ToF64", "func(dst *float64, src *float32, n int)", "converts n numbers, n a multiple of 8.", 8, 4, func(dst, src Mem) {
		a, b := YMM(), YMM()
		VCVTPS2PD(src, a)
		VCVTPS2PD(src.Offset(16), b)
		VMOVUPD(a, dst)
		VMOVUPD(b, dst.Offset(32))
	})
	eights("f64ToF32", "func(dst *float32, src *float64, n int)", "converts n numbers, n a multiple of 8.", 4, 8, func(dst, src Mem) {
		a, b := XMM(), XMM()
		VCVTPD2PSY(src, a)
		VCVTPD2PSY(src.Offset(32), b)
		VMOVUPS(a, dst)
		VMOVUPS(b, dst.Offset(16))
	})
}

func eights(name, signature, doc string, dstSize, srcSize int, body func(dst, src Mem)) {
	function(name+"AVX2", signature, doc)
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	for _, unroll := range []int{4, 1} {
		label, next := name+"_many", name+"_one"
		if unroll == 1 {
			label, next = name+"_one", name+"_done"
		}
		Label(label)
		CMPQ(n, Imm(uint64(8*unroll)))
		JL(LabelRef(next))
		for i := range unroll {
			body(Mem{Base: dst, Disp: 8 * dstSize * i}, Mem{Base: src, Disp: 8 * srcSize * i})
		}
		ADDQ(U32(uint32(8*dstSize*unroll)), dst)
		ADDQ(U32(uint32(8*srcSize*unroll)), src)
		SUBQ(Imm(uint64(8*unroll)), n)
		JMP(LabelRef(label))
	}
	Label(name + "_done")
	VZEROUPPER()
	RET()
}
