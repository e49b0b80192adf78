package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of slide (conv_slide.go).
const (
	slideX        = 0
	slideW        = 24
	slideDst      = 48
	slideBias     = 72
	slideAt       = 96
	slideRow      = 104
	slideNext     = 112
	slideColumn   = 120
	slideOut      = 128
	slideOutRow   = 136
	slideTap      = 144
	slideTaps     = 152
	slideY        = 160
	slideHeight   = 168
	slideStride   = 176
	slideRows     = 184
	slideMasks    = 192
	slideChannels = 200
	slideAct      = 208
	slideLo       = 216
	slideHi       = 220
	slideTo       = 224
)

// slides writes the kernels of depthwise convolutions that slide along rows: for each width of the filter, step, number of columns,
// and one or two vectors of channels.
func slides() {
	wide = true
	for _, width := range []int{3, 5, 7} {
		for _, stride := range []int{1, 2} {
			for _, columns := range []int{1, 2, 4, 7, 8} {
				for _, v := range []int{1, 2} {
					name := fmt.Sprintf("slide%ds%dx%dv%dF32AVX512", width, stride, columns, v)
					(&slideKernel{name: name, width: width, stride: stride, columns: columns, v: v}).emit()
				}
			}
		}
	}
	wide = false
}

// slideKernel keeps the sums of some columns of a row, all filters' taps of a row, and each input that it reads once in registers.
type slideKernel struct {
	name                      string
	width, stride, columns, v int
}

func (k *slideKernel) sum(i, j int) VecPhysical { return zmm(i*k.v + j) }
func (k *slideKernel) tap(t, j int) VecPhysical { return zmm((k.columns+t)*k.v + j) }
func (k *slideKernel) in(j int) VecPhysical     { return zmm((k.columns+k.width)*k.v + j) }

func (k *slideKernel) emit() {
	function(k.name, "func(s *byte)", fmt.Sprintf("is slide.run for filters %d wide, steps of %d, %d columns and %d vectors of channels.", k.width, k.stride, k.columns, k.v))
	args := GP64()
	Load(Param("s"), args)
	field := func(at int) Mem { return Mem{Base: args, Disp: at} }
	k.masks(args)
	Label(k.name + "_row")
	bias := GP64()
	MOVQ(field(slideBias), bias)
	for j := range k.v {
		k.load(Mem{Base: bias, Disp: 64 * j}, k.sum(0, j), K7)
		for i := 1; i < k.columns; i++ {
			VMOVAPS(k.sum(0, j), k.sum(i, j))
		}
	}
	// Rows of the filter that lie inside the input: from max(0, -y) up to min(kernel, height-y).
	first, last, zero, y := GP64(), GP64(), GP64(), GP64()
	MOVQ(field(slideY), y)
	XORQ(zero, zero)
	MOVQ(y, first)
	NEGQ(first)
	CMOVQLT(zero, first)
	MOVQ(field(slideHeight), last)
	SUBQ(y, last)
	CMPQ(last, field(slideTaps))
	CMOVQGT(field(slideTaps), last)
	row, x, w := GP64(), GP64(), GP64()
	MOVQ(field(slideRow), row)
	SHLQ(Imm(2), row)
	MOVQ(first, x)
	IMULQ(row, x)
	at := GP64()
	MOVQ(field(slideAt), at)
	LEAQ(Mem{Base: x, Index: at, Scale: 4}, x)
	ADDQ(field(slideX), x)
	tap := GP64()
	MOVQ(field(slideTap), tap)
	SHLQ(Imm(2), tap)
	IMUL3Q(U32(uint32(k.width)), first, w)
	IMULQ(tap, w)
	ADDQ(field(slideW), w)
	SUBQ(first, last)
	JLE(LabelRef(k.name + "_store"))
	column := GP64()
	MOVQ(field(slideColumn), column)
	SHLQ(Imm(2), column)
	Label(k.name + "_taps")
	k.filterRow(x, w, column, tap)
	ADDQ(row, x)
	DECQ(last)
	JNE(LabelRef(k.name + "_taps"))
	Label(k.name + "_store")
	k.store(args)
	step := GP64()
	MOVQ(field(slideNext), step)
	ADDQ(step, field(slideAt))
	MOVQ(field(slideOutRow), step)
	ADDQ(step, field(slideTo))
	MOVQ(field(slideStride), step)
	ADDQ(step, field(slideY))
	DECQ(field(slideRows))
	JNE(LabelRef(k.name + "_row"))
	VZEROUPPER()
	RET()
}

// edge is how many columns of the input at either end may lie outside it.
func (k *slideKernel) edge() int { return k.width / 2 }

// inputs is how many columns of the input there are.
func (k *slideKernel) inputs() int { return (k.columns-1)*k.stride + k.width }

// masks fills K1 to K6 with the lanes of the outermost columns of the input: none outside. K7 has the lanes that are channels.
func (k *slideKernel) masks(args Register) {
	channels, lanes, set, bit := GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: args, Disp: slideChannels}, channels)
	MOVQ(I32(-1), lanes)
	BZHIQ(channels, lanes, lanes)
	KMOVW(lanes.As32(), K7)
	MOVQ(Mem{Base: args, Disp: slideMasks}, set)
	for i := range 2 * k.edge() {
		MOVQ(set, bit)
		SHRQ(Imm(uint64(i)), bit)
		ANDQ(Imm(1), bit)
		NEGQ(bit)
		ANDQ(lanes, bit)
		KMOVW(bit.As32(), []Register{K1, K2, K3, K4, K5, K6}[i])
	}
}

// load reads a vector; of a single one only the lanes of the mask.
func (k *slideKernel) load(m Mem, r VecPhysical, mask Register) {
	if k.v == 1 {
		VMOVUPS_Z(m, mask, r)
	} else {
		VMOVUPS(m, r)
	}
}

// filterRow adds the products with a row of the filter.
func (k *slideKernel) filterRow(x, w, column, tap Register) {
	for t := range k.width {
		for j := range k.v {
			k.load(Mem{Base: w, Disp: 64 * j}, k.tap(t, j), K7)
		}
		ADDQ(tap, w)
	}
	at := GP64()
	MOVQ(x, at)
	for c := range k.inputs() {
		var mask Register
		switch left, right := c, c-(k.inputs()-k.edge()); {
		case left < k.edge():
			mask = []Register{K1, K2, K3}[left]
		case right >= 0:
			mask = []Register{K1, K2, K3, K4, K5, K6}[k.edge()+right]
		}
		for j := range k.v {
			m := Mem{Base: at, Disp: 64 * j}
			if mask != nil {
				VMOVUPS_Z(m, mask, k.in(j))
			} else {
				k.load(m, k.in(j), K7)
			}
		}
		for t := range k.width {
			if d := c - t; d >= 0 && d%k.stride == 0 && d/k.stride < k.columns {
				for j := range k.v {
					VFMADD231PS(k.tap(t, j), k.in(j), k.sum(d/k.stride, j))
				}
			}
		}
		if c+1 < k.inputs() {
			ADDQ(column, at)
		}
	}
}

// store puts the sums where they belong.
func (k *slideKernel) store(args Register) {
	f := &columnStore{name: k.name, columns: k.columns, v: k.v, args: args, dst: slideDst, to: slideTo, out: slideOut, act: slideAct, lo: slideLo}
	if k.v == 1 {
		f.masks = []Op{K7}
	}
	f.emit()
}

// columnStore clamps sums or applies an activation, and stores them: vectors of some columns, the first registers by column and vector.
// The fields are offsets of the kernel's arguments.
type columnStore struct {
	name                  string
	columns, v            int
	masks                 []Op // of the vectors; nil: all lanes
	args                  Register
	dst, to, out, act, lo int
	at, step              Register
}

func (f *columnStore) field(at int) Mem { return Mem{Base: f.args, Disp: at} }

func (f *columnStore) sum(i, j int) VecPhysical { return zmm(i*f.v + j) }

func (f *columnStore) free(i int) VecPhysical { return zmm(f.columns*f.v + i) }

// begin gives where the first column lies.
func (f *columnStore) begin() {
	MOVQ(f.field(f.to), f.at)
	SHLQ(Imm(2), f.at)
	ADDQ(f.field(f.dst), f.at)
}

func (f *columnStore) each(do func(i, j int)) {
	f.begin()
	for i := range f.columns {
		for j := range f.v {
			do(i, j)
		}
		if i+1 < f.columns {
			ADDQ(f.step, f.at)
		}
	}
}

func (f *columnStore) put(x Op, j int) {
	m := Mem{Base: f.at, Disp: 64 * j}
	if f.masks != nil {
		VMOVUPS(x, f.masks[j], m)
	} else {
		VMOVUPS(x, m)
	}
}

func (f *columnStore) emit() {
	f.at, f.step = GP64(), GP64()
	MOVQ(f.field(f.out), f.step)
	SHLQ(Imm(2), f.step)
	CMPQ(f.field(f.act), Imm(1))
	JE(LabelRef(f.name + "_hardswish"))
	lo, hi := f.free(0), f.free(1)
	VBROADCASTSS(f.field(f.lo), lo)
	VBROADCASTSS(f.field(f.lo+4), hi)
	f.each(func(i, j int) {
		VMAXPS(f.sum(i, j), lo, f.sum(i, j))
		VMINPS(f.sum(i, j), hi, f.sum(i, j))
		f.put(f.sum(i, j), j)
	})
	CMPQ(f.field(f.act), Imm(2))
	JNE(LabelRef(f.name + "_done"))
	f.silu()
	JMP(LabelRef(f.name + "_done"))
	Label(f.name + "_hardswish")
	f.hardSwish()
	Label(f.name + "_done")
}

// silu reads the sums back, which needs fewer registers.
func (f *columnStore) silu() {
	left := GP64()
	f.begin()
	MOVQ(U32(uint32(f.columns)), left)
	c := loadExpNeg()
	Label(f.name + "_silu")
	var x []vec
	for j := range f.v {
		m := Mem{Base: f.at, Disp: 64 * j}
		if f.masks != nil {
			x = append(x, loadMasked(m, f.masks[j]))
		} else {
			x = append(x, load(m))
		}
	}
	for j, d := range c.onePlus(x...) {
		f.put(div(x[j], d), j)
	}
	ADDQ(f.step, f.at)
	DECQ(left)
	JNE(LabelRef(f.name + "_silu"))
}

func (f *columnStore) hardSwish() {
	tmp, three, sixth, zero := f.free(0), f.free(1), f.free(2), f.free(3)
	VBROADCASTSS(num(3), three)
	VBROADCASTSS(num(1.0/6), sixth)
	VPXORQ(zero, zero, zero)
	f.each(func(i, j int) {
		s := f.sum(i, j)
		VADDPS(three, s, tmp)
		VMAXPS(tmp, zero, tmp)
		with(VMINPS, VMINPS_BCST, num(6), tmp, tmp)
		VMULPS(sixth, s, s)
		VMULPS(tmp, s, s)
		f.put(s, j)
	})
}
