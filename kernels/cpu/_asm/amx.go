package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// amx writes products of 8-bit integers on tiles (Intel's Advanced Matrix Extensions). Neither Go's assembler nor avo knows the
// instructions, so they are written as bytes, and general registers are named by hand.
func amx() {
	wide = true
	amxTiles("quantTilesAMXU8", "unsigned", prefix66)
	amxTiles("quantTilesAMXS8", "signed", prefixF2)
	wide = false
}

// The prefixes that VEX folds into two bits.
const (
	prefixNone = iota
	prefix66
	prefixF3
	prefixF2
)

// vex writes an instruction of the map 0F38 with three bytes of VEX: v is the third operand, rest what follows the opcode.
func vex(text string, prefix, opcode byte, base GPPhysical, v byte, rest ...byte) {
	Comment(text)
	extend := byte(0xe2)
	if base != nil && base.PhysicalIndex() >= 8 {
		extend &^= 0x20
	}
	code := append([]byte{0xc4, extend, (^v&15)<<3 | prefix, opcode}, rest...)
	emit("LONG", U32(uint32(code[0])|uint32(code[1])<<8|uint32(code[2])<<16|uint32(code[3])<<24))
	for _, b := range code[4:] {
		emit("BYTE", U8(b))
	}
}

func emit(opcode string, value Op) {
	Instruction(&ir.Instruction{Opcode: opcode, Operands: []Op{value}})
}

// tileMemory writes an instruction between tile t and rows of memory from base on, stride bytes apart.
func tileMemory(name string, prefix byte, t byte, base, stride GPPhysical) {
	b, s := byte(base.PhysicalIndex()), byte(stride.PhysicalIndex())
	modrm, sib := t<<3|4, s&7<<3|b&7
	rest := []byte{modrm, sib}
	if b&7 == 5 { // without a displacement this would mean another thing
		rest = []byte{modrm | 0x40, sib, 0}
	}
	if s >= 8 {
		panic("strides lie in the first eight registers")
	}
	vex(fmt.Sprintf("%s tmm%d, [%s+%s]", name, t, base.Asm(), stride.Asm()), prefix, 0x4b, base, 0, rest...)
}

// The arguments of a call, by their place among the 8-byte fields of amxArgs.
const (
	amxConfig = iota
	amxX
	amxTaps
	amxNTaps
	amxSteps
	amxStepBytes
	amxXStep
	amxW
	amxGroups
	amxLastPanels
	amxLastMask
	amxOffset
	amxScale
	amxBias
	amxAcc
	amxFirst
	amxLast
	amxRows
	amxTileRows
	amxCol
	amxOutW
	amxPitch
	amxOut
	amxOutStep
	amxResidual
	amxResidualStep
	amxParams
	amxSums
	// What the kernel keeps there itself.
	amxGroup
	amxPanel
	amxMask
	amxAt0
	amxAt1
	amxSkip0
	amxSkip1
	amxCount0
	amxCount1
	amxOutAt
	amxResidualAt
	amxAccAt
	amxOffsetAt
	amxScaleAt
	amxBiasAt
	amxOutGroup
	amxResidualGroup
)

func arg(i int) Mem { return Mem{Base: RDI, Disp: 8 * i} }

// setArg moves a value from one argument to another.
func setArg(to, from int) {
	MOVQ(arg(from), RAX)
	MOVQ(RAX, arg(to))
}

// amxTiles writes the kernel for unsigned or signed inputs; product is the prefix that chooses the instruction.
func amxTiles(name, kind string, product byte) {
	function(name, "func(a *uint64)", "multiplies "+kind+" 8-bit integers with packed weights, 32 positions by 64 channels at a time; a points to an amxArgs.")
	Load(Param("a"), RDI)
	MOVQ(arg(amxConfig), RAX)
	vex("LDTILECFG [AX]", prefixNone, 0x49, RAX, 0, 0)
	e := newAMXEpilogue()
	setArg(amxOutAt, amxOut)
	setArg(amxResidualAt, amxResidual)
	setArg(amxAccAt, amxAcc)

	Label("block")
	amxSplitRows()
	MOVQ(arg(amxW), R8)
	setArg(amxGroup, amxGroups)
	setArg(amxOffsetAt, amxOffset)
	setArg(amxScaleAt, amxScale)
	setArg(amxBiasAt, amxBias)
	setArg(amxOutGroup, amxOutAt)
	setArg(amxResidualGroup, amxResidualAt)

	Label("group")
	MOVQ(I32(2), RAX)
	MOVQ(I32(-1), RBX)
	CMPQ(arg(amxGroup), Imm(1))
	JNE(LabelRef("whole"))
	MOVQ(arg(amxLastPanels), RAX)
	MOVQ(arg(amxLastMask), RBX)
	Label("whole")
	MOVQ(RAX, arg(amxPanel))
	MOVQ(RBX, arg(amxMask))
	MOVQ(arg(amxAccAt), R14)
	Label("panel")
	amxPanelSums(product)
	ADDQ(U32(128), R14)
	DECQ(arg(amxPanel))
	JNE(LabelRef("panel"))
	CMPQ(arg(amxSums), Imm(0))
	JE(LabelRef("requantize"))
	ADDQ(U32(8192), arg(amxAccAt))
	JMP(LabelRef("next"))
	Label("requantize")
	e.write()
	ADDQ(Imm(64), arg(amxOutGroup))
	ADDQ(U32(256), arg(amxScaleAt))
	ADDQ(U32(256), arg(amxBiasAt))
	CMPQ(arg(amxResidualStep), Imm(0))
	JE(LabelRef("next"))
	ADDQ(Imm(64), arg(amxResidualGroup))
	Label("next")
	DECQ(arg(amxGroup))
	JNE(LabelRef("group"))

	// Where the rows left off, the next block goes on: out and column are set by the epilogue of the last group.
	MOVQ(arg(amxFirst), RAX)
	ADDQ(Imm(32), RAX)
	MOVQ(RAX, arg(amxFirst))
	CMPQ(RAX, arg(amxLast))
	JL(LabelRef("block"))
	vex("TILERELEASE", prefixNone, 0x49, nil, 0, 0xc0)
	VZEROUPPER()
	RET()
}

// amxSplitRows divides up to 32 positions among two tiles. A tile that would reach beyond the last position starts earlier, and its first
// rows, which another has computed, are skipped.
func amxSplitRows() {
	MOVQ(arg(amxLast), RCX)
	SUBQ(arg(amxFirst), RCX) // positions left
	MOVQ(I32(16), RDX)
	for tile, at := range []struct{ at, skip, count int }{{amxAt0, amxSkip0, amxCount0}, {amxAt1, amxSkip1, amxCount1}} {
		done := fmt.Sprint("split", tile)
		MOVQ(I32(0), RBX)
		MOVQ(RBX, arg(at.count))
		TESTQ(RCX, RCX)
		JLE(LabelRef(done))
		MOVQ(RCX, RBX)
		CMPQ(RBX, RDX)
		CMOVQGT(RDX, RBX)
		MOVQ(RBX, arg(at.count))
		MOVQ(arg(amxRows), RAX)
		SUBQ(arg(amxTileRows), RAX)
		MOVQ(arg(amxFirst), RBX)
		ADDQ(Imm(uint64(16*tile)), RBX)
		MOVQ(RBX, RSI)
		CMPQ(RAX, RBX)
		CMOVQGT(RBX, RAX) // the first row of the tile
		SUBQ(RAX, RSI)
		MOVQ(RSI, arg(at.skip))
		IMULQ(arg(amxXStep), RAX)
		ADDQ(arg(amxX), RAX)
		MOVQ(RAX, arg(at.at))
		SUBQ(RDX, RCX)
		Label(done)
	}
}

// amxPanelSums computes the sums of 32 channels, weights from R8 on, to rows of 256 bytes from R14 on.
func amxPanelSums(product byte) {
	MOVQ(arg(amxOffsetAt), RAX)
	LEAQ(Mem{Base: RAX, Disp: 64}, RBX)
	XORQ(RCX, RCX)
	tileMemory("TILELOADD", prefixF2, 0, RAX, RCX)
	tileMemory("TILELOADD", prefixF2, 1, RBX, RCX)
	tileMemory("TILELOADD", prefixF2, 2, RAX, RCX)
	tileMemory("TILELOADD", prefixF2, 3, RBX, RCX)
	ADDQ(U32(128), RAX)
	MOVQ(RAX, arg(amxOffsetAt))

	MOVQ(arg(amxTaps), R10)
	MOVQ(arg(amxNTaps), R11)
	MOVQ(arg(amxStepBytes), RAX)
	MOVQ(RAX, R15)
	SHLQ(Imm(4), R15) // bytes of a tile of weights
	MOVQ(arg(amxXStep), RCX)
	MOVQ(I32(64), RBX)
	MOVQ(arg(amxAt0), R9)
	MOVQ(arg(amxAt1), R13)
	CMPQ(arg(amxCount1), Imm(0))
	JE(LabelRef("half"))
	for _, tiles := range []int{2, 1} {
		s := map[int]string{2: "", 1: "half"}[tiles]
		if tiles == 1 {
			Label("half")
		}
		Label(s + "tap")
		MOVQ(Mem{Base: R10}, RSI)
		MOVQ(RSI, RDX)
		ADDQ(R9, RSI)
		if tiles == 2 {
			ADDQ(R13, RDX)
		}
		ADDQ(Imm(8), R10)
		MOVQ(arg(amxSteps), R12)
		Label(s + "step")
		if tiles == 2 {
			for i := range 32 {
				PREFETCHT1(Mem{Base: R8, Disp: 64*i + 8192})
			}
		}
		tileMemory("TILELOADD", prefixF2, 4, RSI, RCX)
		tileMemory("TILELOADDT1", prefix66, 6, R8, RBX)
		ADDQ(R15, R8)
		tileMemory("TILELOADDT1", prefix66, 7, R8, RBX)
		ADDQ(R15, R8)
		tileProduct(product, 0, 4, 6)
		tileProduct(product, 1, 4, 7)
		ADDQ(RAX, RSI)
		if tiles == 2 {
			tileMemory("TILELOADD", prefixF2, 5, RDX, RCX)
			tileProduct(product, 2, 5, 6)
			tileProduct(product, 3, 5, 7)
			ADDQ(RAX, RDX)
		}
		DECQ(R12)
		JNE(LabelRef(s + "step"))
		DECQ(R11)
		JNE(LabelRef(s + "tap"))
		MOVQ(I32(256), RSI)
		LEAQ(Mem{Base: R14, Disp: 64}, RDX)
		tileMemory("TILESTORED", prefixF3, 0, R14, RSI)
		tileMemory("TILESTORED", prefixF3, 1, RDX, RSI)
		if tiles == 2 {
			ADDQ(U32(4096), RDX)
			LEAQ(Mem{Base: R14, Disp: 4096}, RAX)
			tileMemory("TILESTORED", prefixF3, 2, RAX, RSI)
			tileMemory("TILESTORED", prefixF3, 3, RDX, RSI)
			JMP(LabelRef("stored"))
		}
	}
	Label("stored")
}

// tileProduct adds the products of two tiles of bytes to sums.
func tileProduct(prefix byte, sums, x, w byte) {
	name := map[byte]string{prefix66: "TDPBUSD", prefixF2: "TDPBSSD"}[prefix]
	vex(fmt.Sprintf("%s tmm%d, tmm%d, tmm%d", name, sums, x, w), prefix, 0x5e, nil, w, 0xc0|sums<<3|x)
}

// amxEpilogue turns sums into 8-bit integers; its constants stay in registers during a call.
type amxEpilogue struct {
	inv, magic, zero, step, toZero, least, most, flip, order, big vec
}

func newAMXEpilogue() *amxEpilogue {
	MOVQ(arg(amxParams), RAX)
	param := func(i int) vec { return broadcastAt(Mem{Base: RAX, Disp: 4 * i}) }
	e := &amxEpilogue{param(0), param(1), param(2), param(3), param(4), param(5), param(6), param(7), ZMM(), ZMM()}
	VMOVDQU32(packOrder(), e.order)
	VMOVUPS(num(1e9), e.big)
	return e
}

// packOrder puts the dwords that packing within quarters of a register leaves in a row.
func packOrder() Mem {
	const key = 1<<31 | 0x9ac4
	m, ok := constants[key]
	if !ok {
		m = GLOBL("packorder", RODATA|NOPTR)
		for i := range 16 {
			DATA(4*i, U32(i%4*4+i/4))
		}
		constants[key] = m
	}
	return m
}

// write is for the 32 positions and 64 channels whose sums lie from amxAccAt on.
func (e *amxEpilogue) write() {
	var scale, bias [4]vec
	MOVQ(arg(amxScaleAt), RAX)
	MOVQ(arg(amxBiasAt), RBX)
	for j := range scale {
		scale[j], bias[j] = ZMM(), ZMM()
		VMOVUPS(Mem{Base: RAX, Disp: 64 * j}, scale[j])
		VMOVUPS(Mem{Base: RBX, Disp: 64 * j}, bias[j])
	}
	MOVQ(arg(amxMask), RAX)
	masks := [4]Register{K2, K3, K4, K5}
	KMOVQ(RAX, K1)
	for _, k := range masks {
		KMOVQ(RAX, k)
		SHRQ(Imm(16), RAX)
	}
	MOVQ(arg(amxCol), R10)
	MOVQ(arg(amxOutW), R11)
	MOVQ(arg(amxPitch), R12)
	MOVQ(arg(amxOutGroup), RSI)
	MOVQ(arg(amxResidualGroup), RDX)
	MOVQ(arg(amxOutStep), RCX)
	MOVQ(arg(amxResidualStep), R9)
	for tile, at := range []struct{ skip, count int }{{amxSkip0, amxCount0}, {amxSkip1, amxCount1}} {
		row, valid, next, done := fmt.Sprint("row", tile), fmt.Sprint("valid", tile), fmt.Sprint("nextrow", tile), fmt.Sprint("rows", tile)
		MOVQ(arg(at.count), RBX)
		TESTQ(RBX, RBX)
		JE(LabelRef(done))
		MOVQ(arg(at.skip), R13)
		SHLQ(Imm(8), R13)
		ADDQ(arg(amxAccAt), R13)
		if tile == 1 {
			ADDQ(U32(4096), R13)
		}
		Label(row)
		CMPQ(R10, R11)
		JGE(LabelRef(next)) // a position between the lines
		e.row(scale, bias, masks, valid)
		ADDQ(RCX, RSI)
		ADDQ(R9, RDX)
		Label(next)
		ADDQ(U32(256), R13)
		INCQ(R10)
		CMPQ(R10, R12)
		JNE(LabelRef(row + "same"))
		XORQ(R10, R10)
		Label(row + "same")
		DECQ(RBX)
		JNE(LabelRef(row))
		Label(done)
	}
	CMPQ(arg(amxGroup), Imm(1))
	JNE(LabelRef("kept"))
	// The last group of the block: the next block's rows follow.
	MOVQ(R10, arg(amxCol))
	MOVQ(arg(amxOutGroup), RAX)
	SUBQ(RAX, RSI)
	ADDQ(RSI, arg(amxOutAt))
	MOVQ(arg(amxResidualGroup), RAX)
	SUBQ(RAX, RDX)
	ADDQ(RDX, arg(amxResidualAt))
	Label("kept")
}

// row computes one position.
func (e *amxEpilogue) row(scale, bias [4]vec, masks [4]Register, limits string) {
	var f [4]vec
	for j := range f {
		f[j] = ZMM()
		VCVTDQ2PS(Mem{Base: R13, Disp: 64 * j}, f[j])
		VFMADD213PS(bias[j], scale[j], f[j])
	}
	TESTQ(R9, R9)
	JE(LabelRef(limits))
	for j := range f {
		r := ZMM()
		VPMOVZXBD_Z(Mem{Base: RDX, Disp: 16 * j}, masks[j], r)
		VPXORD(e.magic, r, r) // 2^23 plus the number, as float32
		VSUBPS(e.zero, r, r)
		VFMADD231PS(e.step, r, f[j])
	}
	Label(limits)
	for j := range f {
		VMULPS(e.inv, f[j], f[j])
		VMINPS(e.big, f[j], f[j])
		VCVTPS2DQ(f[j], f[j])
	}
	VPACKSSDW(f[1], f[0], f[0])
	VPACKSSDW(f[3], f[2], f[2])
	VPADDSW(e.toZero, f[0], f[0])
	VPADDSW(e.toZero, f[2], f[2])
	VPACKUSWB(f[2], f[0], f[0])
	VPERMD(f[0], e.order, f[0])
	VPMAXUB(e.least, f[0], f[0])
	VPMINUB(e.most, f[0], f[0])
	VPXORD(e.flip, f[0], f[0])
	VMOVDQU8(f[0], K1, Mem{Base: RSI})
}
