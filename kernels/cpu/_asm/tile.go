package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// tileISA is what a tile kernel is made of: vectors of one length, and the instructions for one element type.
type tileISA struct {
	name             string
	size             int // bytes of an element
	bytes            int // of a vector
	rows             int // of the highest tile
	widths           []int
	masked           bool // tiles may be narrower than their vectors
	vector           func(i int) VecPhysical
	broadcast        func(ops ...Op)
	fma, add, mx, mn func(ops ...Op)
	load             func(ops ...Op)
	loadZ            func(m, k, r Op)
	zero             func(ops ...Op)
	shift            uint64 // log2 of size
}

func zmm(i int) VecPhysical {
	return []VecPhysical{Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25,
		Z26, Z27, Z28, Z29, Z30, Z31}[i]
}

func ymm(i int) VecPhysical {
	return []VecPhysical{Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15}[i]
}

var tileISAs = []*tileISA{
	{name: "F32AVX512", size: 4, shift: 2, bytes: 64, rows: 12, widths: []int{2, 1}, masked: true, vector: zmm,
		broadcast: VBROADCASTSS, fma: VFMADD231PS, add: VADDPS, mx: VMAXPS, mn: VMINPS, load: VMOVUPS, loadZ: VMOVUPS_Z, zero: VPXORQ},
	{name: "F64AVX512", size: 8, shift: 3, bytes: 64, rows: 12, widths: []int{2}, masked: true, vector: zmm,
		broadcast: VBROADCASTSD, fma: VFMADD231PD, add: VADDPD, mx: VMAXPD, mn: VMINPD, load: VMOVUPD, loadZ: VMOVUPD_Z, zero: VPXORQ},
	{name: "F32AVX2", size: 4, shift: 2, bytes: 32, rows: 6, widths: []int{2}, vector: ymm,
		broadcast: VBROADCASTSS, fma: VFMADD231PS, add: VADDPS, mx: VMAXPS, mn: VMINPS, load: VMOVUPS, zero: VXORPS},
	{name: "F64AVX2", size: 8, shift: 3, bytes: 32, rows: 6, widths: []int{2}, vector: ymm,
		broadcast: VBROADCASTSD, fma: VFMADD231PD, add: VADDPD, mx: VMAXPD, mn: VMINPD, load: VMOVUPD, zero: VXORPD},
}

// Offsets of the fields of tile (tile.go).
const (
	tileX        = 0
	tileOffsets  = 24
	tileB        = 48
	tileC        = 72
	tileBias     = 96
	tileResidual = 120
	tileLdc      = 144
	tileLdr      = 152
	tileSegments = 160
	tileLength   = 168
	tileFlags    = 176
	tileMask     = 184
	tileLeft     = 192
	tileNext     = 200
	tileAhead    = 208
	tileLo       = 216
)

// Bits of tile.flags.
const (
	flagBeta = 1 << iota
	flagBias
	flagClampFirst
	flagResidual
	flagClamp
)

var (
	rowRegs = []Register{RAX, RCX, RDX, RBX, RSI, RDI, R8, R9, R10, R11, R12, R13}
	index   = R14 // while no segment is under way: the tile
	panel   = R15
)

// ahead is the register with the distance of what is to be fetched into the second-level cache.
func (k *tileKernel) ahead() Register {
	if k.h == len(rowRegs) {
		return RBP // avo saves it
	}
	return R13
}

// tiles writes a kernel for each height and width of each instruction set.
func tiles() {
	for _, s := range tileISAs {
		for _, v := range s.widths {
			for h := 1; h <= s.rows; h++ {
				(&tileKernel{tileISA: s, h: h, v: v, name: fmt.Sprintf("tile%dx%d%s", h, v*s.bytes/s.size, s.name)}).emit()
			}
		}
	}
}

type tileKernel struct {
	*tileISA
	h, v int
	name string
	acc  [][][]VecPhysical // sums by set, row, vector
	regs int               // vector registers taken
}

func (k *tileKernel) take() VecPhysical {
	k.regs++
	return k.vector(k.regs - 1)
}

func (k *tileKernel) label(s string) string { return k.name + "_" + s }

func (k *tileKernel) emit() {
	function(k.name, "func(t *byte)", fmt.Sprintf("is tile.run for %d rows and up to %d columns.", k.h, k.v*k.bytes/k.size))
	tile := index
	Load(Param("t"), tile)
	k.prefetchC(tile)
	k.allocate()
	MOVQ(Mem{Base: tile, Disp: tileB}, panel)
	MOVQ(Mem{Base: tile, Disp: tileSegments}, rowRegs[0])
	MOVQ(rowRegs[0], Mem{Base: tile, Disp: tileLeft})
	MOVQ(Mem{Base: tile, Disp: tileOffsets}, rowRegs[0])
	Label(k.label("segment"))
	k.segment(tile)
	Load(Param("t"), tile)
	MOVQ(Mem{Base: tile, Disp: tileNext}, rowRegs[0])
	DECQ(Mem{Base: tile, Disp: tileLeft})
	JNE(LabelRef(k.label("segment")))
	k.finish(tile)
	VZEROUPPER()
	RET()
}

// prefetchC asks for the lines of C, which are needed when all products are in.
func (k *tileKernel) prefetchC(tile Register) {
	c, ldc := rowRegs[0], rowRegs[1]
	MOVQ(Mem{Base: tile, Disp: tileC}, c)
	MOVQ(Mem{Base: tile, Disp: tileLdc}, ldc)
	SHLQ(Imm(k.shift), ldc)
	for i := range k.h {
		for j := 0; j < k.v*k.bytes; j += 64 {
			PREFETCHT0(Mem{Base: c, Disp: j})
		}
		if i < k.h-1 {
			ADDQ(ldc, c)
		}
	}
}

// allocate clears the sums. Low tiles have several sets of them, taken in turn, lest each addition wait for the one before.
func (k *tileKernel) allocate() {
	budget := k.rows * 2
	sets := 4
	for sets > 1 && sets*k.h*k.v > budget {
		sets /= 2
	}
	for range sets {
		var set [][]VecPhysical
		for range k.h {
			var row []VecPhysical
			for range k.v {
				r := k.take()
				k.zero(r, r, r)
				row = append(row, r)
			}
			set = append(set, row)
		}
		k.acc = append(k.acc, set)
	}
}

// segment adds the products of one segment: all rows advance together through the index, which ends at zero.
func (k *tileKernel) segment(tile Register) {
	rows := rowRegs[:k.h]
	table, tmp := rowRegs[0], rowRegs[1]
	LEAQ(Mem{Base: table, Disp: 8 * k.rows}, tmp)
	MOVQ(tmp, Mem{Base: tile, Disp: tileNext})
	MOVQ(Mem{Base: tile, Disp: tileLength}, tmp)
	MOVQ(Mem{Base: tile, Disp: tileX}, tile)
	LEAQ(Mem{Base: tile, Index: tmp, Scale: uint8(k.size)}, tile)
	for i := k.h - 1; i >= 0; i-- {
		MOVQ(Mem{Base: table, Disp: 8 * i}, rows[i])
		LEAQ(Mem{Base: tile, Index: rows[i], Scale: uint8(k.size)}, rows[i])
	}
	Load(Param("t"), tile)
	MOVQ(Mem{Base: tile, Disp: tileLength}, index)
	SHLQ(Imm(k.shift), index)
	NEGQ(index)
	Load(Param("t"), k.ahead())
	MOVQ(Mem{Base: k.ahead(), Disp: tileAhead}, k.ahead())
	base := k.regs
	step := func(u, before int) {
		k.regs = base
		sums := k.acc[u%len(k.acc)]
		b := make([]VecPhysical, k.v)
		for j := range b {
			b[j] = k.take()
			k.load(Mem{Base: panel, Disp: (u*k.v + j) * k.bytes}, b[j])
		}
		if k.bytes == 64 || u%2 == 0 {
			for j := 0; j < k.v; j++ {
				PREFETCHT0(Mem{Base: panel, Disp: u*k.v*k.bytes + 64*j + 1024})
			}
		}
		spare := k.regs
		for i, r := range rows {
			if k.regs = spare + i%2; k.regs >= k.bytes/2 {
				k.regs = spare
			}
			x := k.take()
			k.broadcast(Mem{Base: r, Index: index, Scale: 1, Disp: (u - before) * k.size}, x)
			for j := range b {
				k.fma(b[j], x, sums[i][j])
			}
		}
	}
	four := uint64(4 * k.size)
	ADDQ(Imm(four), index)
	JG(LabelRef(k.label("tail")))
	Label(k.label("four"))
	for u := range 4 {
		step(u, 4)
		if line := u * k.v * k.bytes; line%256 == 0 {
			PREFETCHT1(Mem{Base: panel, Index: k.ahead(), Scale: 1, Disp: line})
		}
	}
	ADDQ(U32(uint32(4*k.v*k.bytes)), panel)
	ADDQ(Imm(four), index)
	JLE(LabelRef(k.label("four")))
	Label(k.label("tail"))
	SUBQ(Imm(four), index)
	JE(LabelRef(k.label("end")))
	Label(k.label("one"))
	step(0, 0)
	ADDQ(U32(uint32(k.v*k.bytes)), panel)
	ADDQ(Imm(uint64(k.size)), index)
	JNE(LabelRef(k.label("one")))
	Label(k.label("end"))
	k.regs = base
}

// finish adds what there is to add, and stores.
func (k *tileKernel) finish(tile Register) {
	sums := k.acc[0]
	for n := len(k.acc); n > 1; n /= 2 {
		for s := range n / 2 {
			k.each(func(i, j int) { k.add(k.acc[s+n/2][i][j], k.acc[s][i][j], k.acc[s][i][j]) })
		}
	}
	flags, ldc, c, p := RAX, RCX, R15, RSI
	MOVQ(Mem{Base: tile, Disp: tileFlags}, flags)
	MOVQ(Mem{Base: tile, Disp: tileC}, c)
	MOVQ(Mem{Base: tile, Disp: tileLdc}, ldc)
	SHLQ(Imm(k.shift), ldc)
	if k.masked {
		MOVQ(Mem{Base: tile, Disp: tileMask}, RDX)
		KMOVW(EDX, K1)
		SHRQ(Imm(16), RDX)
		KMOVW(EDX, K2)
	}
	when := func(flag uint64, name string, f func()) {
		TESTQ(U32(uint32(flag)), flags)
		JE(LabelRef(k.label(name)))
		f()
		Label(k.label(name))
	}
	k.regs = k.rows * 2
	lo, hi := k.take(), k.take()
	clamp := func() {
		k.broadcast(Mem{Base: tile, Disp: tileLo}, lo)
		k.broadcast(Mem{Base: tile, Disp: tileLo + k.size}, hi)
		k.each(func(i, j int) {
			k.mx(sums[i][j], lo, sums[i][j]) // the second source, here the sum, wins where there is a NaN
			k.mn(sums[i][j], hi, sums[i][j])
		})
	}
	when(flagBeta, "nobeta", func() {
		MOVQ(c, p)
		k.rowwise(p, ldc, func(i, j int, m Mem) { k.addMem(m, sums[i][j], j) })
	})
	when(flagBias, "nobias", func() {
		MOVQ(Mem{Base: tile, Disp: tileBias}, p)
		bias := []VecPhysical{lo, hi}
		for j := range k.v {
			if k.masked {
				k.loadZ(Mem{Base: p, Disp: j * k.bytes}, mask(j), bias[j])
			} else {
				k.load(Mem{Base: p, Disp: j * k.bytes}, bias[j])
			}
		}
		k.each(func(i, j int) { k.add(bias[j], sums[i][j], sums[i][j]) })
	})
	when(flagClampFirst, "noclampfirst", clamp)
	when(flagResidual, "noresidual", func() {
		MOVQ(Mem{Base: tile, Disp: tileResidual}, p)
		MOVQ(Mem{Base: tile, Disp: tileLdr}, RDI)
		SHLQ(Imm(k.shift), RDI)
		k.rowwise(p, RDI, func(i, j int, m Mem) { k.addMem(m, sums[i][j], j) })
	})
	when(flagClamp, "noclamp", clamp)
	k.rowwise(c, ldc, func(i, j int, m Mem) {
		if k.masked {
			k.load(sums[i][j], mask(j), m)
		} else {
			k.load(sums[i][j], m)
		}
	})
}

func mask(j int) Op { return []Op{K1, K2}[j] }

func (k *tileKernel) addMem(m Mem, sum VecPhysical, j int) {
	if k.masked {
		k.add(m, sum, mask(j), sum)
	} else {
		k.add(m, sum, sum)
	}
}

func (k *tileKernel) each(f func(i, j int)) {
	for i := range k.h {
		for j := range k.v {
			f(i, j)
		}
	}
}

// rowwise calls f for each vector of rows that begin at p, step bytes apart; p is spent.
func (k *tileKernel) rowwise(p, step Register, f func(i, j int, m Mem)) {
	for i := range k.h {
		for j := range k.v {
			f(i, j, Mem{Base: p, Disp: j * k.bytes})
		}
		if i < k.h-1 {
			ADDQ(step, p)
		}
	}
}
