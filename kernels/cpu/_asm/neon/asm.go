package main

import (
	"fmt"
	"math"
	"strings"
)

// A reg is a general register R0, R1, ... or, for vectors, V0, V1, ...; which of the two follows from where it stands.
type reg int

// Registers that hold something in every function. R18, R27 and up belong to the system, the assembler and Go.
const table reg = 26 // address of the constants

// function is one kernel under way.
type function struct {
	name   string
	params map[string]param
	result int      // offset
	taken  [26]bool // general registers
}

type param struct {
	offset int
	size   int
}

// begin starts a kernel. Its pointers do not escape, so callers may pass arrays on their stacks.
func begin(name, signature, doc string) *function {
	f := &function{name: name, params: map[string]param{}}
	for i := 18; i < len(f.taken); i++ {
		f.taken[i] = i == 18
	}
	args, result, _ := strings.Cut(strings.TrimPrefix(signature, "func("), ")")
	at := 0
	var names []string
	for _, p := range strings.Split(args, ", ") {
		name, kind, typed := strings.Cut(p, " ")
		names = append(names, name)
		if !typed {
			continue
		}
		size := 8
		if kind == "float32" || kind == "int32" {
			size = 4
		}
		for _, n := range names {
			at = (at + size - 1) / size * size
			f.params[n] = param{at, size}
			at += size
		}
		names = nil
	}
	if result != "" {
		f.result = (at + 7) / 8 * 8
		at = f.result + 4
	}
	fmt.Fprintf(&stubs, "\n// %s %s\n//\n//go:noescape\nfunc %s%s\n", name, doc, name, strings.TrimPrefix(signature, "func"))
	fmt.Fprintf(&text, "\n// %s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", signature, name, at)
	f.op("MOVD $%s<>(SB), R%d", tableName, table)
	return f
}

const tableName = "constants"

// op writes a line of Go's assembly.
func (f *function) op(format string, args ...any) {
	fmt.Fprintf(&text, "\t"+format+"\n", args...)
}

func (f *function) label(s string) { fmt.Fprintf(&text, "%s:\n", s) }

func (f *function) ret() { f.op("RET") }

// gp takes a general register.
func (f *function) gp() reg {
	for i, t := range f.taken {
		if !t {
			f.taken[i] = true
			return reg(i)
		}
	}
	panic(f.name + ": no general register left")
}

// arg loads a parameter into a general register.
func (f *function) arg(name string) reg {
	r := f.gp()
	f.load(name, r)
	return r
}

func (f *function) load(name string, r reg) {
	p := f.params[name]
	if p.size == 0 {
		panic(f.name + ": no parameter " + name)
	}
	f.op("%s %s+%d(FP), R%d", map[int]string{8: "MOVD", 4: "MOVW"}[p.size], name, p.offset, r)
}

// word writes an instruction that the assembler does not know.
func (f *function) word(code uint32, format string, args ...any) {
	fmt.Fprintf(&text, "\tWORD $0x%08x // %s\n", code, fmt.Sprintf(format, args...))
}

// Instructions of three vectors.
const (
	fadd  = 0x4e20d400
	fsub  = 0x4ea0d400
	fmul  = 0x6e20dc00
	fdiv  = 0x6e20fc00
	fmax  = 0x4e20f400
	fmin  = 0x4ea0f400
	fmla  = 0x4e20cc00
	fmls  = 0x4ea0cc00
	fcmeq = 0x4e20e400
	fcmge = 0x6e20e400
	fcmgt = 0x6ea0e400
	faddp = 0x6e20d400
	andv  = 0x4e201c00
	bic   = 0x4e601c00
	orr   = 0x4ea01c00
	eor   = 0x6e201c00
	bsl   = 0x6e601c00
	bit   = 0x6ea01c00
	addv  = 0x4ea08400
	subv  = 0x6ea08400
	cmeq  = 0x6ea08c00
	smax  = 0x4ea06400
	smin  = 0x4ea06c00
	umaxb = 0x6e206400
	zip1s = 0x4e803800
	zip2s = 0x4e807800
	uzp1s = 0x4e801800
	uzp1h = 0x4e401800
	uzp2h = 0x4e405800
	trn1s = 0x4e802800
	trn2s = 0x4e806800

	fadd64 = 0x4e60d400
	fmax64 = 0x4e60f400
	fmin64 = 0x4ee0f400
)

// Instructions of two vectors.
const (
	fabs   = 0x4ea0f800
	fneg   = 0x6ea0f800
	fsqrt  = 0x6ea1f800
	frintn = 0x4e218800
	frintm = 0x4e219800
	frintp = 0x4ea18800
	frintz = 0x4ea19800
	fcvtns = 0x4e21a800
	scvtf  = 0x4e21d800
	ucvtf  = 0x6e21d800
	cmlt0  = 0x4ea0a800

	fcvtl  = 0x0e217800 // 4 half to single
	fcvtl2 = 0x4e217800
	fcvtn  = 0x0e216800
	fcvtn2 = 0x4e216800
	fcvtlD = 0x0e617800 // 2 single to double
	fcvtlE = 0x4e617800
	fcvtnD = 0x0e616800
	fcvtnE = 0x4e616800
	shll16 = 0x2e613800 // 4 of 16 bits to the upper halves of 32
	shll2  = 0x6e613800
	xtn16  = 0x0e612800 // 4 of 32 bits to 16
	xtn16b = 0x4e612800
	xtn8   = 0x0e212800 // 8 of 16 bits to 8
	uxtl8  = 0x2f08a400 // 8 of 8 bits to 16
	uxtl8b = 0x6f08a400
	uxtl16 = 0x2f10a400 // 4 of 16 bits to 32
	uxtl6b = 0x6f10a400
	uminv  = 0x6eb1a800 // the least lane, unsigned
	shrn16 = 0x0f108400 // the upper 16 bits of 4 lanes
	shrn6b = 0x4f108400
)

var mnemonics = map[uint32]string{fadd: "FADD", fsub: "FSUB", fmul: "FMUL", fdiv: "FDIV", fmax: "FMAX", fmin: "FMIN", fmla: "FMLA", fmls: "FMLS", fcmeq: "FCMEQ",
	fcmge: "FCMGE", fcmgt: "FCMGT", faddp: "FADDP", andv: "AND", bic: "BIC", orr: "ORR", eor: "EOR", bsl: "BSL", bit: "BIT", addv: "ADD", subv: "SUB",
	cmeq: "CMEQ", smax: "SMAX", smin: "SMIN", umaxb: "UMAX.16B", fminnm: "FMINNM", zip1s: "ZIP1.4S", zip2s: "ZIP2.4S", uzp1s: "UZP1.4S",
	uzp1h: "UZP1.8H", uzp2h: "UZP2.8H", trn1s: "TRN1.4S", trn2s: "TRN2.4S", fadd64: "FADD.2D", fmax64: "FMAX.2D", fmin64: "FMIN.2D",
	fabs: "FABS", fneg: "FNEG", fsqrt: "FSQRT", frintn: "FRINTN", frintm: "FRINTM", frintp: "FRINTP", frintz: "FRINTZ", fcvtns: "FCVTNS", scvtf: "SCVTF",
	ucvtf: "UCVTF", cmlt0: "CMLT #0", fcvtl: "FCVTL", fcvtl2: "FCVTL2", fcvtn: "FCVTN", fcvtn2: "FCVTN2", fcvtlD: "FCVTL.2D", fcvtlE: "FCVTL2.2D",
	fcvtnD: "FCVTN.2S", fcvtnE: "FCVTN2.4S", shll16: "SHLL #16", shll2: "SHLL2 #16", xtn16: "XTN.4H", xtn16b: "XTN2.8H", xtn8: "XTN.8B", uxtl8: "UXTL.8H",
	uxtl8b: "UXTL2.8H", uxtl16: "UXTL.4S", uxtl6b: "UXTL2.4S", uminv: "UMINV", shrn16: "SHRN #16", shrn6b: "SHRN2 #16"}

// v3 is d = n op m; d is read too by FMLA, FMLS, BSL and BIT.
func (f *function) v3(code uint32, d, n, m reg) {
	f.word(code|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s V%d, V%d, V%d", mnemonics[code], d, n, m)
}

func (f *function) v2(code uint32, d, n reg) {
	f.word(code|uint32(n)<<5|uint32(d), "%s V%d, V%d", mnemonics[code], d, n)
}

// fmlaLane adds n times a lane of m to d.
func (f *function) fmlaLane(d, n, m reg, lane uint32) {
	f.word(0x4f801000|lane&1<<21|lane>>1<<11|uint32(m)<<16|uint32(n)<<5|uint32(d), "FMLA V%d.4S, V%d.4S, V%d.S[%d]", d, n, m, lane)
}

func (f *function) fmlaLane64(d, n, m reg, lane uint32) {
	f.word(0x4fc01000|lane<<11|uint32(m)<<16|uint32(n)<<5|uint32(d), "FMLA V%d.2D, V%d.2D, V%d.D[%d]", d, n, m, lane)
}

// Shifts of 32-bit lanes by constants: left, right with zeros, right with the sign.
func (f *function) shl(d, n reg, by uint32) {
	f.word(0x4f005400|(32+by)<<16|uint32(n)<<5|uint32(d), "SHL V%d.4S, V%d.4S, #%d", d, n, by)
}

func (f *function) ushr(d, n reg, by uint32) {
	f.word(0x6f000400|(64-by)<<16|uint32(n)<<5|uint32(d), "USHR V%d.4S, V%d.4S, #%d", d, n, by)
}

func (f *function) sshr(d, n reg, by uint32) {
	f.word(0x4f000400|(64-by)<<16|uint32(n)<<5|uint32(d), "SSHR V%d.4S, V%d.4S, #%d", d, n, by)
}

func (f *function) mov(d, n reg) {
	if d != n {
		f.v3(orr, d, n, n)
	}
}

func (f *function) zero(ds ...reg) {
	for _, d := range ds {
		f.v3(eor, d, d, d)
	}
}

// ldq and stq move 16 bytes, pairs 32; the offset is in bytes.
func (f *function) ldq(d, base reg, offset int) { f.op("FMOVQ %d(R%d), F%d", offset, base, d) }
func (f *function) stq(s, base reg, offset int) { f.op("FMOVQ F%d, %d(R%d)", s, offset, base) }

func (f *function) ldpq(d, e, base reg, offset int) {
	f.op("FLDPQ %d(R%d), (F%d, F%d)", offset, base, d, e)
}

func (f *function) stpq(d, e, base reg, offset int) {
	f.op("FSTPQ (F%d, F%d), %d(R%d)", d, e, offset, base)
}

// fill spreads the 32-bit number at an address over the lanes.
func (f *function) fill(d, base reg, offset int) {
	f.op("FMOVS %d(R%d), F%d", offset, base, d)
	f.op("VDUP V%d.S[0], V%d.S4", d, d)
}

// fillArg spreads a parameter of 32 bits.
func (f *function) fillArg(d reg, name string) {
	f.op("FMOVS %s+%d(FP), F%d", name, f.params[name].offset, d)
	f.op("VDUP V%d.S[0], V%d.S4", d, d)
}

// constants of the family, 16 bytes each.
var (
	constants  []uint32
	constantAt = map[uint32]int{}
)

// bits loads a vector of equal 32-bit numbers.
func (f *function) bits(d reg, v uint32) { f.ldq(d, table, f.constant(v)) }

func (f *function) num(d reg, x float64) { f.bits(d, math.Float32bits(float32(x))) }

// firstLane is the mask of the first lane.
func (f *function) firstLane(d reg) {
	f.op("FMOVS %d(R%d), F%d", f.constant(0xffffffff), table, d)
}

// constant is where in the table a vector of equal numbers lies.
func (f *function) constant(v uint32) int {
	i, ok := constantAt[v]
	if !ok {
		i = len(constants)
		constantAt[v] = i
		constants = append(constants, v)
	}
	return 16 * i
}

// writeTable ends a file with the constants that its functions load.
func writeTable(family string) {
	s := strings.ReplaceAll(text.String(), tableName+"<>", family+"Constants<>")
	text.Reset()
	text.WriteString(s)
	text.WriteByte('\n')
	for i, v := range constants {
		for j := range 2 {
			fmt.Fprintf(&text, "DATA %sConstants<>+%d(SB)/8, $0x%08x%08x\n", family, 16*i+8*j, v, v)
		}
	}
	if len(constants) == 0 {
		fmt.Fprintf(&text, "DATA %sConstants<>+0(SB)/8, $0\n", family)
	}
	fmt.Fprintf(&text, "GLOBL %sConstants<>(SB), RODATA|NOPTR, $%d\n", family, max(16, 16*len(constants)))
}
