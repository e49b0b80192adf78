package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of stem (conv_stem.go).
const (
	stemX      = 0
	stemW      = 24
	stemBias   = 48
	stemDst    = 72
	stemAt     = 96
	stemRow    = 104
	stemColumn = 112
	stemRun    = 120
	stemTaps   = 128
	stemOut    = 136
	stemTo     = 144
	stemTiles  = 152
	stemMask   = 160
	stemAct    = 168
	stemLo     = 176
)

// stems writes the kernels of convolutions of few channels, for one and two vectors of outputs and several numbers of columns.
func stems() {
	wide = true
	for _, columns := range []int{1, 2, 4, 7, 14} {
		for _, v := range []int{1, 2} {
			(&stemKernel{name: fmt.Sprintf("stem%dv%dF32AVX512", columns, v), columns: columns, v: v}).emit()
		}
	}
	interleave3()
	wide = false
}

// stemKernel keeps the sums of some columns in registers; a number of the input is spread over all lanes, a row of the packed filters
// lies in as many vectors as the sums.
type stemKernel struct {
	name       string
	columns, v int
}

func (k *stemKernel) emit() {
	function(k.name, "func(s *byte)", fmt.Sprintf("is stem.run for %d columns and %d vectors of outputs.", k.columns, k.v))
	args := GP64()
	Load(Param("s"), args)
	field := func(at int) Mem { return Mem{Base: args, Disp: at} }
	sum := func(i, j int) VecPhysical { return zmm(i*k.v + j) }
	masks := []Op{K1, K2}[:k.v]
	bits := GP64()
	MOVQ(field(stemMask), bits)
	KMOVW(bits.As32(), K1)
	SHRQ(Imm(16), bits)
	KMOVW(bits.As32(), K2)
	column, three := GP64(), GP64()
	MOVQ(field(stemColumn), column)
	SHLQ(Imm(2), column)
	LEAQ(Mem{Base: column, Index: column, Scale: 2}, three)
	Label(k.name + "_tile")
	bias := GP64()
	MOVQ(field(stemBias), bias)
	for j := range k.v {
		VMOVUPS_Z(Mem{Base: bias, Disp: 64 * j}, masks[j], sum(0, j))
		for i := 1; i < k.columns; i++ {
			VMOVAPS(sum(0, j), sum(i, j))
		}
	}
	x, w, taps := GP64(), GP64(), GP64()
	MOVQ(field(stemAt), x)
	SHLQ(Imm(2), x)
	ADDQ(field(stemX), x)
	MOVQ(field(stemW), w)
	MOVQ(field(stemTaps), taps)
	Label(k.name + "_taps")
	k.run(args, x, w, column, three, sum)
	row := GP64()
	MOVQ(field(stemRow), row)
	LEAQ(Mem{Base: x, Index: row, Scale: 4}, x)
	DECQ(taps)
	JNE(LabelRef(k.name + "_taps"))
	f := &columnStore{name: k.name, columns: k.columns, v: k.v, masks: masks, args: args, dst: stemDst, to: stemTo, out: stemOut, act: stemAct, lo: stemLo}
	f.emit()
	step := GP64()
	MOVQ(field(stemColumn), step)
	IMUL3Q(U32(uint32(k.columns)), step, step)
	ADDQ(step, field(stemAt))
	MOVQ(field(stemOut), step)
	IMUL3Q(U32(uint32(k.columns)), step, step)
	ADDQ(step, field(stemTo))
	DECQ(field(stemTiles))
	JNE(LabelRef(k.name + "_tile"))
	VZEROUPPER()
	RET()
}

// run adds the products with a row of the kernel: a run of numbers of each window.
func (k *stemKernel) run(args, x, w, column, three Register, sum func(i, j int) VecPhysical) {
	base := []Register{GP64(), GP64(), GP64()} // columns 0, 5 and 10
	MOVQ(x, base[0])
	for i := 1; 5*i < k.columns; i++ {
		LEAQ(Mem{Base: base[i-1], Index: column, Scale: 4}, base[i])
		ADDQ(column, base[i])
	}
	at := func(i int) Mem {
		m := Mem{Base: base[i/5], Disp: -4} // the pointers are ahead
		switch i % 5 {
		case 1, 2, 4:
			m.Index, m.Scale = column, uint8(i%5)
		case 3:
			m.Index, m.Scale = three, 1
		}
		return m
	}
	left := GP64()
	MOVQ(Mem{Base: args, Disp: stemRun}, left)
	Label(k.name + "_run")
	for i := range base {
		if 5*i < k.columns {
			ADDQ(Imm(4), base[i])
		}
	}
	f := func(j int) VecPhysical { return zmm(k.columns*k.v + j) }
	for j := range k.v {
		VMOVUPS(Mem{Base: w, Disp: 64 * j}, f(j))
	}
	ADDQ(U32(uint32(64*k.v)), w)
	for i := range k.columns {
		if k.v == 1 {
			VFMADD231PS_BCST(at(i), f(0), sum(i, 0))
			continue
		}
		s := zmm(k.columns*k.v + k.v + i%2)
		VBROADCASTSS(at(i), s)
		for j := range k.v {
			VFMADD231PS(f(j), s, sum(i, j))
		}
	}
	DECQ(left)
	JNE(LabelRef(k.name + "_run"))
}

// interleave3 puts the elements of three rows side by side.
func interleave3() {
	const name = "interleave3F32AVX512"
	function(name, "func(dst, a, b, c *float32, n int)", "is dst[3*i:] = a[i], b[i], c[i], n elements each, a multiple of 16.")
	dst, a, b, c, n := Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64()), Load(Param("c"), GP64()), Load(Param("n"), GP64())
	table := GLOBL("interleave3table", RODATA|NOPTR)
	for i := range 6 * 16 { // for each vector of dst: of a or b, then what is there or c; from 16 on the second is meant
		l, v := i%16, i/32
		at := 16*v + l
		which := at/3 + 16*min(at%3, 1)
		if i%32 >= 16 {
			if which = l; at%3 == 2 {
				which = 16 + at/3
			}
		}
		DATA(4*i, U32(uint32(which)))
	}
	var index []VecVirtual
	for i := range 6 {
		r := ZMM()
		VMOVUPS(table.Offset(64*i), r)
		index = append(index, r)
	}
	Label(name + "_loop")
	TESTQ(n, n)
	JE(LabelRef(name + "_done"))
	x, y, z := ZMM(), ZMM(), ZMM()
	VMOVUPS(Mem{Base: a}, x)
	VMOVUPS(Mem{Base: b}, y)
	VMOVUPS(Mem{Base: c}, z)
	for v := range 3 {
		r := ZMM()
		VMOVAPS(x, r)
		VPERMT2PS(y, index[2*v], r)
		VPERMT2PS(z, index[2*v+1], r)
		VMOVUPS(r, Mem{Base: dst, Disp: 64 * v})
	}
	for _, p := range []Register{a, b, c} {
		ADDQ(Imm(64), p)
	}
	ADDQ(U32(192), dst)
	SUBQ(Imm(16), n)
	JMP(LabelRef(name + "_loop"))
	Label(name + "_done")
	VZEROUPPER()
	RET()
}
