package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

var constants = map[uint32]Mem{}

// bits is a vector of eight equal 32-bit numbers in memory.
func bits(v uint32) Mem {
	if m, ok := constants[v]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("c%08x", v), RODATA|NOPTR)
	for i := range 8 {
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

// loadTailMask gives the mask of the first n lanes, 0 < n < 8. n is spent.
func loadTailMask(n Register) VecVirtual {
	base, mask := GP64(), YMM()
	LEAQ(tailMask().Offset(32), base)
	NEGQ(n)
	VMOVUPS(Mem{Base: base, Index: n, Scale: 4}, mask)
	return mask
}

type vec = VecVirtual

func copyOf(x vec) vec {
	y := YMM()
	VMOVAPS(x, y)
	return y
}

// op3 makes a new register of a three-operand instruction, in Go's operand order.
func op3(f func(ops ...Op), b Op, a vec) vec {
	y := YMM()
	f(b, a, y)
	return y
}

func add(a vec, b Op) vec { return op3(VADDPS, b, a) }
func sub(a vec, b Op) vec { return op3(VSUBPS, b, a) }
func mul(a vec, b Op) vec { return op3(VMULPS, b, a) }
func div(a vec, b Op) vec { return op3(VDIVPS, b, a) }
func and(a vec, b Op) vec { return op3(VANDPS, b, a) }
func or(a vec, b Op) vec  { return op3(VORPS, b, a) }
func xor(a vec, b Op) vec { return op3(VXORPS, b, a) }

// maxOf and minOf give b where one of the two is NaN.
func maxOf(a vec, b Op) vec { return op3(VMAXPS, b, a) }
func minOf(a vec, b Op) vec { return op3(VMINPS, b, a) }

func load(m Op) vec {
	y := YMM()
	VMOVUPS(m, y)
	return y
}

// cmp compares; the predicate is Intel's: 1 is <, 2 <=, 3 unordered, 14 >.
func cmp(a vec, predicate uint8, b Op) vec {
	y := YMM()
	VCMPPS(Imm(uint64(predicate)), b, a, y)
	return y
}

// choose is yes where the mask is set, else no.
func choose(mask, yes, no vec) vec {
	y := YMM()
	VBLENDVPS(mask, yes, no, y)
	return y
}

// poly evaluates c[0] + c[1] x + ... by Horner's rule.
func poly(x vec, c ...float64) vec {
	y := load(num(c[len(c)-1]))
	for i := len(c) - 2; i >= 0; i-- {
		VFMADD213PS(num(c[i]), x, y)
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
	body   func(in []vec, mask Op, lane int) vec // lane tells the vectors of one round apart; mask is nil but for the tail
}

func (p *pass) emit() {
	round := func(label string, vectors int) {
		Label(p.name + "_" + label)
		CMPQ(p.n, U32(uint32(8*vectors)))
		JL(LabelRef(p.name + "_" + map[bool]string{true: "one", false: "tail"}[vectors > 1]))
		results := make([]vec, vectors)
		for v := range vectors {
			in := make([]vec, len(p.in))
			for i, r := range p.in {
				in[i] = load(Mem{Base: r, Disp: 32 * v})
			}
			results[v] = p.body(in, nil, v)
		}
		if p.out != nil {
			for v, y := range results {
				VMOVUPS(y, Mem{Base: p.out, Disp: 32 * v})
			}
			ADDQ(U32(uint32(32*vectors)), p.out)
		}
		for _, r := range p.in {
			ADDQ(U32(uint32(32*vectors)), r)
		}
		SUBQ(U32(uint32(8*vectors)), p.n)
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
		in[i] = YMM()
		VMASKMOVPS(Mem{Base: r}, mask, in[i])
	}
	y := p.body(in, mask, 0)
	if p.out != nil {
		VMASKMOVPS(y, mask, Mem{Base: p.out})
	}
	Label(p.name + "_done")
}

// broadcast loads a float32 parameter into all lanes.
func broadcast(name string) vec {
	x := Load(Param(name), XMM())
	y := YMM()
	VBROADCASTSS(x, y)
	return y
}
