package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

var constants = map[uint32]Mem{}

// wide says that the function being written is for AVX-512, with vectors of 16 and mask registers; else for AVX2, with vectors of 8.
var wide bool

// forBoth writes functions for AVX2, then for AVX-512.
func forBoth(f func()) {
	for _, wide = range []bool{false, true} {
		f()
	}
	wide = false
}

// isa ends the names of functions.
func isa() string {
	if wide {
		return "AVX512"
	}
	return "AVX2"
}

// width is the number of float32 in a vector.
func width() int {
	if wide {
		return 16
	}
	return 8
}

// VEC is a new vector register.
func VEC() vec {
	if wide {
		return ZMM()
	}
	return YMM()
}

// bits is a vector of equal 32-bit numbers in memory, as wide as the widest register.
func bits(v uint32) Mem {
	if m, ok := constants[v]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("c%08x", v), RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(v))
	}
	constants[v] = m
	return m
}

func num(f float64) Mem { return bits(math.Float32bits(float32(f))) }

// tailMask has ones, then zeros; a vector read 4*n bytes before the middle masks the first n lanes.
func tailMask() Mem {
	const name = "tailmask"
	if m, ok := constants[1<<31|0x7a11]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 16 {
		v := uint32(0xffffffff)
		if i >= 8 {
			v = 0
		}
		DATA(4*i, U32(v))
	}
	constants[1<<31|0x7a11] = m
	return m
}

// loadTailMask gives the mask of the first n lanes, 0 < n < width(). n is spent.
func loadTailMask(n Register) Register {
	if wide {
		return firstLanes(n)
	}
	base, mask := GP64(), YMM()
	LEAQ(tailMask().Offset(32), base)
	NEGQ(n)
	VMOVUPS(Mem{Base: base, Index: n, Scale: 4}, mask)
	return mask
}

// firstLanes gives the AVX-512 mask of the first n lanes.
func firstLanes(n Register) Register {
	ones, mask := GP64(), K()
	MOVQ(I32(-1), ones)
	BZHIQ(n, ones, ones)
	KMOVQ(ones, mask)
	return mask
}

type vec = VecVirtual

func copyOf(x vec) vec {
	y := VEC()
	VMOVAPS(x, y)
	return y
}

// with writes an instruction whose first operand may be a constant in memory. With AVX-512 the instruction spreads its first number, as
// reading all of it would cross a line of the cache: the linker aligns to 32 bytes.
func with(f, spread func(ops ...Op), ops ...Op) {
	if wide && constant(ops[0]) {
		f = spread
	}
	f(ops...)
}

// constant tells whether an operand is memory that bits made.
func constant(x Op) bool {
	m, ok := x.(Mem)
	return ok && m.Symbol.Name != ""
}

// op3 makes a new register of a three-operand instruction, in Go's operand order.
func op3(f, spread func(ops ...Op), b Op, a vec) vec {
	y := VEC()
	with(f, spread, b, a, y)
	return y
}

func add(a vec, b Op) vec { return op3(VADDPS, VADDPS_BCST, b, a) }
func sub(a vec, b Op) vec { return op3(VSUBPS, VSUBPS_BCST, b, a) }
func mul(a vec, b Op) vec { return op3(VMULPS, VMULPS_BCST, b, a) }
func div(a vec, b Op) vec { return op3(VDIVPS, VDIVPS_BCST, b, a) }
func and(a vec, b Op) vec { return op3(VANDPS, VANDPS_BCST, b, a) }
func or(a vec, b Op) vec  { return op3(VORPS, VORPS_BCST, b, a) }
func xor(a vec, b Op) vec { return op3(VXORPS, VXORPS_BCST, b, a) }

// maxOf and minOf give b where one of the two is NaN.
func maxOf(a vec, b Op) vec { return op3(VMAXPS, VMAXPS_BCST, b, a) }
func minOf(a vec, b Op) vec { return op3(VMINPS, VMINPS_BCST, b, a) }

func load(m Op) vec {
	y := VEC()
	if wide && constant(m) {
		VBROADCASTSS(m, y)
		return y
	}
	VMOVUPS(m, y)
	return y
}

// loadMasked reads the lanes of the mask, and zeros.
func loadMasked(m Mem, mask Op) vec {
	y := VEC()
	if wide {
		VMOVUPS_Z(m, mask, y)
	} else {
		VMASKMOVPS(m, mask, y)
	}
	return y
}

// storeMasked writes the lanes of the mask.
func storeMasked(x vec, mask Op, m Mem) {
	if wide {
		VMOVUPS(x, mask, m)
	} else {
		VMASKMOVPS(x, mask, m)
	}
}

// rounded rounds to integers; the mode is Intel's: 8 is to nearest even, 9 down, 10 up, 11 towards zero.
func rounded(mode uint64, x vec) vec {
	y := VEC()
	if wide {
		VRNDSCALEPS(Imm(mode), x, y)
	} else {
		VROUNDPS(Imm(mode), x, y)
	}
	return y
}

// cmp compares; the predicate is Intel's: 1 is <, 2 <=, 3 unordered, 14 >. The result is a mask for choose and keep.
func cmp(a vec, predicate uint8, b Op) Register {
	if wide {
		k := K()
		if constant(b) {
			VCMPPS_BCST(Imm(uint64(predicate)), b, a, k)
		} else {
			VCMPPS(Imm(uint64(predicate)), b, a, k)
		}
		return k
	}
	y := YMM()
	VCMPPS(Imm(uint64(predicate)), b, a, y)
	return y
}

// negative is the mask of the lanes whose highest bit is set.
func negative(x vec) Register {
	if !wide {
		return x
	}
	k := K()
	VPMOVD2M(x, k)
	return k
}

// choose is yes where the mask is set, else no.
func choose(mask Op, yes, no vec) vec {
	y := VEC()
	if wide {
		VBLENDMPS(yes, no, mask, y)
	} else {
		VBLENDVPS(mask, yes, no, y)
	}
	return y
}

// keep is x where the mask is set, else 0.
func keep(mask Op, x vec) vec {
	if !wide {
		return and(x, mask)
	}
	y := VEC()
	VMOVAPS_Z(x, mask, y)
	return y
}

// poly evaluates c[0] + c[1] x + ... by Horner's rule.
func poly(x vec, c ...float64) vec {
	y := load(num(c[len(c)-1]))
	for i := len(c) - 2; i >= 0; i-- {
		with(VFMADD213PS, VFMADD213PS_BCST, num(c[i]), x, y)
	}
	return y
}

// pass is a loop over n elements of several slices of float32.
type pass struct {
	name   string
	in     []Register // pointers that advance
	out    Register   // nil for reductions
	n      Register
	unroll int
	body   func(in []vec, mask Op, lane int) vec // lane tells the vectors of one round apart; mask, for choose and keep, is nil but for the tail
	// together, instead of body, computes all vectors of a round; it is for one slice.
	together func(in []vec) []vec
}

func (p *pass) emit() {
	bytes := 4 * width()
	round := func(label string, vectors int) {
		Label(p.name + "_" + label)
		CMPQ(p.n, U32(uint32(width()*vectors)))
		JL(LabelRef(p.name + "_" + map[bool]string{true: "one", false: "tail"}[vectors > 1]))
		results := make([]vec, vectors)
		var first []vec
		for v := range vectors {
			in := make([]vec, len(p.in))
			for i, r := range p.in {
				in[i] = load(Mem{Base: r, Disp: bytes * v})
			}
			if p.together != nil {
				first = append(first, in[0])
				continue
			}
			results[v] = p.body(in, nil, v)
		}
		if p.together != nil {
			results = p.together(first)
		}
		if p.out != nil {
			for v, y := range results {
				VMOVUPS(y, Mem{Base: p.out, Disp: bytes * v})
			}
			ADDQ(U32(uint32(bytes*vectors)), p.out)
		}
		for _, r := range p.in {
			ADDQ(U32(uint32(bytes*vectors)), r)
		}
		SUBQ(U32(uint32(width()*vectors)), p.n)
		JMP(LabelRef(p.name + "_" + label))
	}
	if p.unroll > 1 {
		round("many", p.unroll)
	}
	round("one", 1)
	Label(p.name + "_tail")
	TESTQ(p.n, p.n)
	JE(LabelRef(p.name + "_done"))
	mask := loadTailMask(p.n)
	in := make([]vec, len(p.in))
	for i, r := range p.in {
		in[i] = loadMasked(Mem{Base: r}, mask)
	}
	var y vec
	if p.together != nil {
		y = p.together(in)[0]
	} else {
		y = p.body(in, mask, 0)
	}
	if p.out != nil {
		storeMasked(y, mask, Mem{Base: p.out})
	}
	Label(p.name + "_done")
}

// broadcast loads a float32 parameter into all lanes. (avo's Load would take MOVSS, which costs a hundred cycles on Intel's CPUs once
// the upper halves of the registers are in use.)
func broadcast(name string) vec {
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	y := VEC()
	VBROADCASTSS(p.Addr, y)
	return y
}

// intAnd is dst = a & b.
func intAnd(b Op, a, dst vec) {
	if wide {
		with(VPANDD, VPANDD_BCST, b, a, dst)
	} else {
		VPAND(b, a, dst)
	}
}
