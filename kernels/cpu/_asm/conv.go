package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func conv() {
	packConv()
	depthwise()
}

// packConv writes panels of sixteen output positions. Each half of a panel is put together from two places of a row, so that a panel
// may cross from one row of outputs to the next.
func packConv() {
	const name = "packConvF32AVX2"
	function(name, "func(dst, src *float32, offsets *int, kb int, at *[4]int, mask *[16]uint32)",
		"packs kb rows of 16 elements: lane i of half h comes from src[offsets[k]+at[2*h+1]+i] where the mask is set, else from src[offsets[k]+at[2*h]+i].")
	dst, src, offsets, kb := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("offsets"), GP64()), Load(Param("kb"), GP64())
	at, mask := Load(Param("at"), GP64()), Load(Param("mask"), GP64())
	var place [4]Register
	for i := range place {
		place[i] = GP64()
		MOVQ(Mem{Base: at, Disp: 8 * i}, place[i])
	}
	masks := [2]vec{load(Mem{Base: mask}), load(Mem{Base: mask, Disp: 32})}
	Label(name + "_loop")
	TESTQ(kb, kb)
	JE(LabelRef(name + "_done"))
	row := GP64()
	MOVQ(Mem{Base: offsets}, row)
	LEAQ(Mem{Base: src, Index: row, Scale: 4}, row)
	for h, m := range masks {
		a := load(Mem{Base: row, Index: place[2*h], Scale: 4})
		b := load(Mem{Base: row, Index: place[2*h+1], Scale: 4})
		VMOVUPS(choose(m, b, a), Mem{Base: dst, Disp: 32 * h})
	}
	ADDQ(Imm(8), offsets)
	ADDQ(Imm(64), dst)
	DECQ(kb)
	JMP(LabelRef(name + "_loop"))
	Label(name + "_done")
	VZEROUPPER()
	RET()
}

// depthwise computes a row of outputs of one channel: all taps for 32 outputs at a time.
func depthwise() {
	const name = "depthwiseF32AVX2"
	function(name, "func(dst, src *float32, n int, offsets *int, w *float32, taps int, bias float32)",
		"is dst[i] = bias + sum of w[t]*src[offsets[t]+i]; reads up to 31 elements beyond.")
	dst, src, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64())
	offsets, w, taps := Load(Param("offsets"), GP64()), Load(Param("w"), GP64()), Load(Param("taps"), GP64())
	bias := broadcast("bias")
	sum := func(label string, acc []vec) {
		for _, a := range acc {
			VMOVAPS(bias, a)
		}
		t, off, f := GP64(), GP64(), YMM()
		XORQ(t, t)
		Label(name + "_" + label)
		MOVQ(Mem{Base: offsets, Index: t, Scale: 8}, off)
		VBROADCASTSS(Mem{Base: w, Index: t, Scale: 4}, f)
		LEAQ(Mem{Base: src, Index: off, Scale: 4}, off)
		for i, a := range acc {
			VFMADD231PS(Mem{Base: off, Disp: 32 * i}, f, a)
		}
		INCQ(t)
		CMPQ(t, taps)
		JL(LabelRef(name + "_" + label))
	}
	var acc [4]vec
	for i := range acc {
		acc[i] = YMM()
	}
	Label(name + "_32")
	CMPQ(n, Imm(32))
	JL(LabelRef(name + "_8"))
	sum("taps32", acc[:])
	for i, a := range acc {
		VMOVUPS(a, Mem{Base: dst, Disp: 32 * i})
	}
	ADDQ(U32(128), src)
	ADDQ(U32(128), dst)
	SUBQ(Imm(32), n)
	JMP(LabelRef(name + "_32"))
	Label(name + "_8")
	CMPQ(n, Imm(8))
	JL(LabelRef(name + "_tail"))
	sum("taps8", acc[:1])
	VMOVUPS(acc[0], Mem{Base: dst})
	ADDQ(Imm(32), src)
	ADDQ(Imm(32), dst)
	SUBQ(Imm(8), n)
	JMP(LabelRef(name + "_8"))
	Label(name + "_tail")
	TESTQ(n, n)
	JE(LabelRef(name + "_done"))
	mask := loadTailMask(n)
	sum("tapsTail", acc[:1])
	VMASKMOVPS(acc[0], mask, Mem{Base: dst})
	Label(name + "_done")
	VZEROUPPER()
	RET()
}
