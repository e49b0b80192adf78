package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gather writes sums of rows of a table.
func gather() {
	forBoth(func() {
		bagSum(false)
		bagSum(true)
	})
	transposeColumns()
}

// transposeColumns turns eight columns into eight rows.
func transposeColumns() {
	function("transpose8F32AVX2", "func(dst, x *float32, rows, ldd, ldx int)", "is dst[j*ldd+i] = x[i*ldx+j] for i < rows, a multiple of 8, and j < 8.")
	dst, x, rows := Load(Param("dst"), GP64()), Load(Param("x"), GP64()), Load(Param("rows"), GP64())
	ldd, ldx := Load(Param("ldd"), GP64()), Load(Param("ldx"), GP64())
	SHLQ(Imm(2), ldd)
	SHLQ(Imm(2), ldx)
	eight := func(p, step, step3, fifth Register, i int) Mem {
		base := []Register{p, fifth}[i/4]
		return []Mem{{Base: base}, {Base: base, Index: step, Scale: 1}, {Base: base, Index: step, Scale: 2}, {Base: base, Index: step3, Scale: 1}}[i%4]
	}
	d3, x3, d5, x5 := GP64(), GP64(), GP64(), GP64()
	LEAQ(Mem{Base: ldd, Index: ldd, Scale: 2}, d3)
	LEAQ(Mem{Base: ldx, Index: ldx, Scale: 2}, x3)
	Label("loop")
	LEAQ(Mem{Base: dst, Index: ldd, Scale: 4}, d5)
	LEAQ(Mem{Base: x, Index: ldx, Scale: 4}, x5)
	var r [8]vec
	for i := range r {
		r[i] = load(eight(x, ldx, x3, x5, i))
	}
	for i, v := range transpose8(r) {
		VMOVUPS(v, eight(dst, ldd, d3, d5, i))
	}
	ADDQ(Imm(32), dst)
	LEAQ(Mem{Base: x, Index: ldx, Scale: 8}, x)
	SUBQ(Imm(8), rows)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// rowsAhead is how many rows before its use a row is asked for: rows lie anywhere, and memory takes a while.
const rowsAhead = 12

func bagSum(weighted bool) {
	name, signature, doc := "bagSumF32"+isa(), "func(dst, table *float32, idx *int64, n, avail, d int)", "is the sum of n rows of d elements, n > 0; avail indices may be read."
	if weighted {
		name, signature, doc = "bagWeightedSumF32"+isa(), "func(dst, table *float32, idx *int64, scale *float32, n, avail, d int)", "is the sum of n rows of d elements times their scales, n > 0; avail indices may be read."
	}
	function(name, signature, doc)
	dst, table, idx := Load(Param("dst"), GP64()), Load(Param("table"), GP64()), Load(Param("idx"), GP64())
	n, avail, d := Load(Param("n"), GP64()), Load(Param("avail"), GP64()), Load(Param("d"), GP64())
	var scale Register
	if weighted {
		scale = Load(Param("scale"), GP64())
	}
	DECQ(avail)
	bytes := GP64() // of a row
	MOVQ(d, bytes)
	SHLQ(Imm(2), bytes)
	i, row, next := GP64(), GP64(), GP64()
	rows := func(label string, vectors int, mask Register) {
		acc := make([]vec, vectors)
		for v := range acc {
			acc[v] = VEC()
			VXORPS(acc[v], acc[v], acc[v])
		}
		XORQ(i, i)
		Label(label + "_rows")
		LEAQ(Mem{Base: i, Disp: rowsAhead}, next)
		CMPQ(next, avail)
		CMOVQGT(avail, next)
		MOVQ(Mem{Base: idx, Index: next, Scale: 8}, next)
		IMULQ(bytes, next)
		for line := 0; line < vectors*4*width(); line += 64 {
			PREFETCHT0(Mem{Base: table, Index: next, Scale: 1, Disp: line})
		}
		MOVQ(Mem{Base: idx, Index: i, Scale: 8}, row)
		IMULQ(bytes, row)
		var s vec
		if weighted {
			s = VEC()
			VBROADCASTSS(Mem{Base: scale, Index: i, Scale: 4}, s)
		}
		for v := range acc {
			at := Mem{Base: table, Index: row, Scale: 1, Disp: 4 * width() * v}
			x := Op(at)
			if mask != nil {
				x = loadMasked(at, mask)
			}
			if weighted {
				VFMADD231PS(x, s, acc[v])
			} else {
				VADDPS(x, acc[v], acc[v])
			}
		}
		INCQ(i)
		CMPQ(i, n)
		JL(LabelRef(label + "_rows"))
		for v, a := range acc {
			at := Mem{Base: dst, Disp: 4 * width() * v}
			if mask != nil {
				storeMasked(a, mask, at)
			} else {
				VMOVUPS(a, at)
			}
		}
	}
	columns := func(label, after string, vectors int) {
		Label(label)
		CMPQ(d, U32(uint32(vectors*width())))
		JL(LabelRef(after))
		rows(label, vectors, nil)
		ADDQ(U32(uint32(4*width()*vectors)), dst)
		ADDQ(U32(uint32(4*width()*vectors)), table)
		SUBQ(U32(uint32(vectors*width())), d)
		JMP(LabelRef(label))
	}
	columns("four", "one", 4)
	columns("one", "tail", 1)
	Label("tail")
	TESTQ(d, d)
	JE(LabelRef("done"))
	rows("tail", 1, loadTailMask(d))
	Label("done")
	VZEROUPPER()
	RET()
}
