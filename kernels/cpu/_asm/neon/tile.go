package main

import "fmt"

// Offsets of the fields of tile (tile.go of package cpu).
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
	tileAhead    = 208
	tileLo       = 216
)

// Bits of tile.flags, by number.
const (
	flagBeta = iota
	flagBias
	flagClampFirst
	flagResidual
	flagClamp
)

const (
	tileRows    = 6
	tileVectors = 4
)

// tileElement is what differs between float32 and float64.
type tileElement struct {
	name          string
	size          int
	ld            string // of one element
	add, max, min uint32
	lane          func(f *function, d, n, m reg, lane uint32)
	arrangement   string
}

var tileElements = []tileElement{
	{"F32", 4, "FMOVS", fadd, fmax, fmin, (*function).fmlaLane, "S"},
	{"F64", 8, "FMOVD", fadd64, fmax64, fmin64, (*function).fmlaLane64, "D"},
}

// tiles writes a kernel for each height. A tile of 6 rows and 4 vectors keeps 24 sums in registers, four vectors of B and four
// elements of A, which are multiplied from a lane.
func tiles() {
	for _, e := range tileElements {
		for h := 1; h <= tileRows; h++ {
			tile(e, h)
		}
	}
}

func tile(e tileElement, h int) {
	columns := tileVectors * 16 / e.size
	f := begin(fmt.Sprintf("tile%dx%d%sAVX2", h, columns, e.name), "func(t *byte)", fmt.Sprintf("is tile.run for %d rows and %d columns.", h, columns))
	acc := func(i, j int) reg { return reg(i*tileVectors + j) }
	b := []reg{24, 25, 26, 27}
	t, panel, segments, offsets, x, length, left := f.arg("t"), f.gp(), f.gp(), f.gp(), f.gp(), f.gp(), f.gp()
	rows := make([]reg, h)
	for i := range rows {
		rows[i] = f.gp()
	}
	ahead := f.gp()
	for _, l := range []struct {
		r  reg
		at int
	}{{panel, tileB}, {segments, tileSegments}, {offsets, tileOffsets}, {x, tileX}, {length, tileLength}, {ahead, tileAhead}} {
		f.op("MOVD %d(R%d), R%d", l.at, t, l.r)
	}
	for i := range h {
		for j := range tileVectors {
			f.zero(acc(i, j))
		}
	}
	shift := map[int]int{4: 2, 8: 3}[e.size]
	f.label("segment")
	for i, r := range rows {
		f.op("MOVD %d(R%d), R%d", 8*i, offsets, r)
		f.op("ADD R%d<<%d, R%d, R%d", r, shift, x, r)
	}
	f.op("ADD $%d, R%d", 8*tileRows, offsets)
	step := func(u int) {
		f.ldpq(b[0], b[1], panel, 64*u)
		f.ldpq(b[2], b[3], panel, 64*u+32)
		for i, r := range rows {
			a := reg(28 + i%4)
			f.op("%s %d(R%d), F%d", e.ld, u*e.size, r, a)
			for j := range tileVectors {
				e.lane(f, acc(i, j), b[j], a, 0)
			}
		}
	}
	f.op("SUBS $4, R%d, R%d", length, left)
	f.op("BLT tail")
	f.label("four")
	for u := range 4 {
		step(u)
	}
	f.op("PRFM 1024(R%d), PLDL1KEEP", panel)
	f.op("ADD R%d, R%d, R%d", panel, ahead, t)
	f.op("PRFM (R%d), PLDL2KEEP", t)
	f.op("ADD $256, R%d", panel)
	for _, r := range rows {
		f.op("ADD $%d, R%d", 4*e.size, r)
	}
	f.op("SUBS $4, R%d", left)
	f.op("BGE four")
	f.label("tail")
	f.op("ADDS $4, R%d", left)
	f.op("BEQ end")
	f.label("one")
	step(0)
	f.op("ADD $64, R%d", panel)
	for _, r := range rows {
		f.op("ADD $%d, R%d", e.size, r)
	}
	f.op("SUBS $1, R%d", left)
	f.op("BNE one")
	f.label("end")
	f.op("SUBS $1, R%d", segments)
	f.op("BNE segment")
	f.load("t", t)
	tileFinish(f, e, h, shift, t, acc, b)
	f.ret()
}

// tileFinish adds what there is to add, and stores.
func tileFinish(f *function, e tileElement, h, shift int, t reg, acc func(i, j int) reg, b []reg) {
	for i := range f.taken { // the loop's registers are free
		f.taken[i] = i == 18 || reg(i) == t
	}
	flags, c, ldc, p, step := f.gp(), f.gp(), f.gp(), f.gp(), f.gp()
	f.op("MOVD %d(R%d), R%d", tileFlags, t, flags)
	f.op("MOVD %d(R%d), R%d", tileC, t, c)
	f.op("MOVD %d(R%d), R%d", tileLdc, t, ldc)
	f.op("LSL $%d, R%d", shift, ldc)
	when := func(flag int, label string, body func()) {
		f.op("TBZ $%d, R%d, %s", flag, flags, label)
		body()
		f.label(label)
	}
	rowwise := func(p, step reg, body func(i int)) {
		for i := range h {
			body(i)
			if i < h-1 {
				f.op("ADD R%d, R%d", step, p)
			}
		}
	}
	addRows := func() {
		rowwise(p, step, func(i int) {
			f.ldpq(b[0], b[1], p, 0)
			f.ldpq(b[2], b[3], p, 32)
			for j := range tileVectors {
				f.v3(e.add, acc(i, j), acc(i, j), b[j])
			}
		})
	}
	clamp := func() {
		for k := range 2 {
			f.op("%s %d(R%d), F%d", e.ld, tileLo+k*e.size, t, b[k])
			f.op("VDUP V%d.%s[0], V%d.%s%d", b[k], e.arrangement, b[k], e.arrangement, 16/e.size)
		}
		for i := range h {
			for j := range tileVectors {
				f.v3(e.max, acc(i, j), acc(i, j), b[0]) // keeps NaN
				f.v3(e.min, acc(i, j), acc(i, j), b[1])
			}
		}
	}
	when(flagBeta, "nobeta", func() {
		f.op("MOVD R%d, R%d", c, p)
		f.op("MOVD R%d, R%d", ldc, step)
		addRows()
	})
	when(flagBias, "nobias", func() {
		f.op("MOVD %d(R%d), R%d", tileBias, t, p)
		f.ldpq(b[0], b[1], p, 0)
		f.ldpq(b[2], b[3], p, 32)
		for i := range h {
			for j := range tileVectors {
				f.v3(e.add, acc(i, j), acc(i, j), b[j])
			}
		}
	})
	when(flagClampFirst, "noclampfirst", clamp)
	when(flagResidual, "noresidual", func() {
		f.op("MOVD %d(R%d), R%d", tileResidual, t, p)
		f.op("MOVD %d(R%d), R%d", tileLdr, t, step)
		f.op("LSL $%d, R%d", shift, step)
		addRows()
	})
	when(flagClamp, "noclamp", clamp)
	rowwise(c, ldc, func(i int) {
		f.stpq(acc(i, 0), acc(i, 1), c, 0)
		f.stpq(acc(i, 2), acc(i, 3), c, 32)
	})
}
