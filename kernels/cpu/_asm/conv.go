package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func conv() {
	packConv()
	depthwise()
	everySecond()
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

// depthwise computes rows of outputs of one channel: all taps for 32 outputs at a time.
func depthwise() {
	const name = "depthwiseF32AVX2"
	function(name, "func(dst, src *float32, n, rows, step int, offsets *int, w *float32, taps int, bias float32)",
		"is dst[r*n+i] = bias + sum of w[t]*src[r*step+offsets[t]+i], i < n; reads up to 7 elements beyond.")
	dst, src, rows := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("rows"), GP64())
	offsets, w, taps := Load(Param("offsets"), GP64()), Load(Param("w"), GP64()), Load(Param("taps"), GP64())
	bias := broadcast("bias")
	n, x := GP64(), GP64()
	sum := func(label string, acc []vec) {
		for _, a := range acc {
			VMOVAPS(bias, a)
		}
		t, off, f := GP64(), GP64(), YMM()
		XORQ(t, t)
		Label(name + "_" + label)
		MOVQ(Mem{Base: offsets, Index: t, Scale: 8}, off)
		VBROADCASTSS(Mem{Base: w, Index: t, Scale: 4}, f)
		LEAQ(Mem{Base: x, Index: off, Scale: 4}, off)
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
	Label(name + "_row")
	TESTQ(rows, rows)
	JE(LabelRef(name + "_done"))
	Load(Param("n"), n)
	MOVQ(src, x)
	for _, vectors := range []int{4, 2, 1} {
		label := func(v int) string { return name + map[int]string{4: "_32", 2: "_16", 1: "_8", 0: "_tail"}[v] }
		Label(label(vectors))
		CMPQ(n, Imm(uint64(8*vectors)))
		JL(LabelRef(label(vectors / 2)))
		sum("taps"+label(vectors), acc[:vectors])
		for i, a := range acc[:vectors] {
			VMOVUPS(a, Mem{Base: dst, Disp: 32 * i})
		}
		ADDQ(U32(uint32(32*vectors)), x)
		ADDQ(U32(uint32(32*vectors)), dst)
		SUBQ(Imm(uint64(8*vectors)), n)
		JMP(LabelRef(label(vectors)))
	}
	Label(name + "_tail")
	TESTQ(n, n)
	JE(LabelRef(name + "_next"))
	sum("tapsTail", acc[:1])
	LEAQ(Mem{Base: dst, Index: n, Scale: 4}, dst)
	mask := loadTailMask(n) // n is now -n
	VMASKMOVPS(acc[0], mask, Mem{Base: dst, Index: n, Scale: 4})
	Label(name + "_next")
	step := Load(Param("step"), GP64())
	LEAQ(Mem{Base: src, Index: step, Scale: 4}, src)
	DECQ(rows)
	JMP(LabelRef(name + "_row"))
	Label(name + "_done")
	VZEROUPPER()
	RET()
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
