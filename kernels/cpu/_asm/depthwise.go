package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of depthwise (conv_depthwise.go).
const (
	dwX        = 0
	dwOffsets  = 24
	dwW        = 48
	dwDst      = 72
	dwBias     = 96
	dwChannels = 120
	dwStep     = 128
	dwTaps     = 136
	dwAdvance  = 144
	dwTiles    = 152
	dwPermute  = 160
	dwGroup    = 184
	dwLo       = 192
	dwHi       = 196
)

// depthwiseColumns is how many columns of the output one tile has at most.
const depthwiseColumns = 4

// depthwise writes a kernel for each number of columns.
func depthwise() {
	for _, s := range tileISAs {
		if s.size != 4 {
			continue
		}
		for h := 1; h <= depthwiseColumns; h++ {
			(&depthwiseKernel{tileISA: s, h: h, name: fmt.Sprintf("depthwise%d%s", h, s.name)}).emit()
			(&depthwiseKernel{tileISA: s, h: h, name: fmt.Sprintf("grouped%d%s", h, s.name), grouped: true}).emit()
		}
	}
}

type depthwiseKernel struct {
	*tileISA
	h       int
	name    string
	grouped bool // channels of a group are mixed

	args, x, dst, w, bias, left GPVirtual
	lo, hi                      VecPhysical
}

func (k *depthwiseKernel) emit() {
	doc := fmt.Sprintf("is depthwise.run for %d columns.", k.h)
	if k.grouped {
		doc = fmt.Sprintf("is depthwise.run for %d columns and groups of several channels.", k.h)
	}
	function(k.name, "func(d *byte)", doc)
	k.args, k.x, k.dst, k.w, k.bias, k.left = GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	Load(Param("d"), k.args)
	last := 1 << 5
	if k.bytes == 32 {
		last = 1 << 4
	}
	k.lo, k.hi = k.vector(last-1), k.vector(last-2)
	k.broadcast(Mem{Base: k.args, Disp: dwLo}, k.lo)
	k.broadcast(Mem{Base: k.args, Disp: dwHi}, k.hi)
	Label(k.name + "_tile")
	MOVQ(Mem{Base: k.args, Disp: dwX}, k.x)
	MOVQ(Mem{Base: k.args, Disp: dwDst}, k.dst)
	MOVQ(Mem{Base: k.args, Disp: dwW}, k.w)
	MOVQ(Mem{Base: k.args, Disp: dwBias}, k.bias)
	MOVQ(Mem{Base: k.args, Disp: dwChannels}, k.left)
	lanes := k.bytes / k.size
	widths := []int{4, 2, 1}
	if k.grouped {
		widths = []int{1}
	} else if !k.masked {
		widths = []int{2, 1}
	}
	for i, v := range widths {
		next := k.name + "_tail"
		if i+1 < len(widths) {
			next = fmt.Sprintf("%s_v%d", k.name, widths[i+1])
		}
		label := fmt.Sprintf("%s_v%d", k.name, v)
		Label(label)
		CMPQ(k.left, U32(uint32(v*lanes)))
		JL(LabelRef(next))
		k.block(label, v, nil)
		for _, r := range []Register{k.x, k.dst, k.w, k.bias} {
			ADDQ(U32(uint32(v*k.bytes)), r)
		}
		SUBQ(U32(uint32(v*lanes)), k.left)
		JMP(LabelRef(label))
	}
	Label(k.name + "_tail")
	if k.masked && !k.grouped { // the others leave channels beyond whole vectors to portable code
		TESTQ(k.left, k.left)
		JE(LabelRef(k.name + "_next"))
		all := GP64()
		MOVQ(U32(0xffff), all)
		BZHIQ(k.left, all, all)
		KMOVW(all.As32(), K1)
		k.block(k.name+"_last", 1, K1)
	}
	Label(k.name + "_next")
	step := GP64()
	MOVQ(Mem{Base: k.args, Disp: dwAdvance}, step)
	SHLQ(Imm(2), step)
	ADDQ(step, Mem{Base: k.args, Disp: dwX})
	MOVQ(Mem{Base: k.args, Disp: dwStep}, step)
	SHLQ(Imm(2), step)
	for range k.h {
		ADDQ(step, Mem{Base: k.args, Disp: dwDst})
	}
	DECQ(Mem{Base: k.args, Disp: dwTiles})
	JNE(LabelRef(k.name + "_tile"))
	VZEROUPPER()
	RET()
}

// block computes v vectors of channels.
func (k *depthwiseKernel) block(label string, v int, mask Op) {
	sum := func(i, j int) VecPhysical { return k.vector(i*v + j) }
	f := func(j int) VecPhysical { return k.vector(k.h*v + j) }
	load := func(m Mem, r VecPhysical) {
		if mask != nil {
			k.loadZ(m, mask, r)
		} else {
			k.load(m, r)
		}
	}
	for j := range v {
		load(Mem{Base: k.bias, Disp: j * k.bytes}, sum(0, j))
		for i := 1; i < k.h; i++ {
			k.load(sum(0, j), sum(i, j))
		}
	}
	taps, table, w, step := GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: k.args, Disp: dwTaps}, taps)
	MOVQ(Mem{Base: k.args, Disp: dwOffsets}, table)
	MOVQ(k.w, w)
	MOVQ(Mem{Base: k.args, Disp: dwChannels}, step)
	SHLQ(Imm(2), step)
	Label(label + "_taps")
	if k.grouped {
		k.mix(label, table, w, step, sum)
	} else {
		k.multiply(v, table, w, mask, sum, f, load)
		ADDQ(step, w)
	}
	ADDQ(Imm(8*depthwiseColumns), table)
	DECQ(taps)
	JNE(LabelRef(label + "_taps"))
	k.store(v, step, mask, sum)
}

// multiply adds the products of one tap.
func (k *depthwiseKernel) multiply(v int, table, w Register, mask Op, sum func(i, j int) VecPhysical, f func(j int) VecPhysical, load func(m Mem, r VecPhysical)) {
	for j := range v {
		load(Mem{Base: w, Disp: j * k.bytes}, f(j))
	}
	at := GP64()
	for i := range k.h {
		MOVQ(Mem{Base: table, Disp: 8 * i}, at)
		for j := range v {
			m := Mem{Base: k.x, Index: at, Scale: 4, Disp: j * k.bytes}
			if mask != nil {
				k.fma(m, f(j), mask, sum(i, j))
			} else {
				k.fma(m, f(j), sum(i, j))
			}
		}
	}
}

// mix adds the products of one tap with all channels of a group: each is spread over the group's lanes in turn.
func (k *depthwiseKernel) mix(label string, table, w, step Register, sum func(i, j int) VecPhysical) {
	x := func(i int) VecPhysical { return k.vector(k.h + i) }
	lanes, f, spread := k.vector(2*k.h), k.vector(2*k.h+1), k.vector(2*k.h+2)
	at, permute, left := GP64(), GP64(), GP64()
	for i := range k.h {
		MOVQ(Mem{Base: table, Disp: 8 * i}, at)
		k.load(Mem{Base: k.x, Index: at, Scale: 4}, x(i))
	}
	MOVQ(Mem{Base: k.args, Disp: dwPermute}, permute)
	MOVQ(Mem{Base: k.args, Disp: dwGroup}, left)
	Label(label + "_mix")
	k.load(Mem{Base: permute}, lanes)
	k.load(Mem{Base: w}, f)
	for i := range k.h {
		VPERMPS(x(i), lanes, spread)
		k.fma(spread, f, sum(i, 0))
	}
	ADDQ(U32(64), permute) // rows of sixteen
	ADDQ(step, w)
	DECQ(left)
	JNE(LabelRef(label + "_mix"))
}

// store clamps the sums and stores them.
func (k *depthwiseKernel) store(v int, step Register, mask Op, sum func(i, j int) VecPhysical) {
	p := GP64()
	MOVQ(k.dst, p)
	MOVQ(Mem{Base: k.args, Disp: dwStep}, step)
	SHLQ(Imm(2), step)
	for i := range k.h {
		for j := range v {
			k.mx(sum(i, j), k.lo, sum(i, j))
			k.mn(sum(i, j), k.hi, sum(i, j))
			m := Mem{Base: p, Disp: j * k.bytes}
			if mask != nil {
				k.load(sum(i, j), mask, m)
			} else {
				k.load(sum(i, j), m)
			}
		}
		if i < k.h-1 {
			ADDQ(step, p)
		}
	}
}
