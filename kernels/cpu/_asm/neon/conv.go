package main

import "fmt"

func conv() {
	winogradInput()
	winogradOutput()
	for h := 1; h <= depthwiseColumns; h++ {
		depthwise(h, false)
		depthwise(h, true)
	}
	everySecond()
}

// everySecond picks the elements of even index.
func everySecond() {
	f := begin("everySecondF32AVX2", "func(dst, src *float32, n int)", "is dst[i] = src[2*i], n elements, a multiple of 8; reads src[2*n-1].")
	dst, src, n := f.arg("dst"), f.arg("src"), f.arg("n")
	f.op("CBZ R%d, done", n)
	f.label("loop")
	f.ldpq(0, 1, src, 0)
	f.ldpq(2, 3, src, 32)
	f.v3(uzp1s, 0, 0, 1)
	f.v3(uzp1s, 1, 2, 3)
	f.stpq(0, 1, dst, 0)
	f.op("ADD $64, R%d", src)
	f.op("ADD $32, R%d", dst)
	f.op("SUBS $8, R%d", n)
	f.op("BNE loop")
	f.label("done")
	f.ret()
}

// Offsets of the fields of depthwise (conv_depthwise.go of package cpu).
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
	dwGroup    = 184
	dwLo       = 192
	dwHi       = 196
)

// depthwiseColumns is how many columns of the output one tile has at most.
const depthwiseColumns = 4

// depthwiseKernel is a kernel for h columns.
type depthwiseKernel struct {
	*function
	h                                                       int
	d, x, dst, w, bias, left, taps, offsets, p, step, at, q reg
	columns                                                 []reg // addresses, if channels are mixed
}

// depthwise writes the kernel for h columns: four vectors of channels at a time, then one. With groups of two, four or eight channels, which
// are mixed, it is one at a time.
func depthwise(h int, grouped bool) {
	name, doc := fmt.Sprintf("depthwise%dF32AVX2", h), fmt.Sprintf("is depthwise.run for %d columns.", h)
	if grouped {
		name, doc = fmt.Sprintf("grouped%dF32AVX2", h), fmt.Sprintf("is depthwise.run for %d columns and groups of two, four or eight channels.", h)
	}
	f := begin(name, "func(d *byte)", doc)
	k := &depthwiseKernel{function: f, h: h, d: f.arg("d")}
	for _, r := range []*reg{&k.x, &k.dst, &k.w, &k.bias, &k.left, &k.taps, &k.offsets, &k.p, &k.step, &k.at, &k.q} {
		*r = f.gp()
	}
	f.label("tile")
	for _, l := range []struct {
		r  reg
		at int
	}{{k.x, dwX}, {k.dst, dwDst}, {k.w, dwW}, {k.bias, dwBias}, {k.left, dwChannels}} {
		f.op("MOVD %d(R%d), R%d", l.at, k.d, l.r)
	}
	if grouped {
		for range h {
			k.columns = append(k.columns, f.gp())
		}
		k.block("one", "next", 1, k.mix)
	} else {
		k.block("four", "one", 4, k.multiply)
		k.block("one", "next", 1, k.multiply)
	}
	f.label("next")
	k.advance()
	f.op("BNE tile")
	f.ret()
}

func (k *depthwiseKernel) sum(i, j, v int) reg { return reg(i*v + j) }

// block computes v vectors of channels as long as there are so many.
func (k *depthwiseKernel) block(label, next string, v int, tap func(v int)) {
	k.label(label)
	k.op("CMP $%d, R%d", 4*v, k.left)
	k.op("BLT %s", next)
	for j := range v {
		k.ldq(k.sum(0, j, v), k.bias, 16*j)
		for i := 1; i < k.h; i++ {
			k.mov(k.sum(i, j, v), k.sum(0, j, v))
		}
	}
	k.op("MOVD %d(R%d), R%d", dwTaps, k.d, k.taps)
	k.op("MOVD %d(R%d), R%d", dwOffsets, k.d, k.offsets)
	k.op("MOVD %d(R%d), R%d", dwChannels, k.d, k.step)
	k.op("MOVD R%d, R%d", k.w, k.p)
	k.label(label + "taps")
	tap(v)
	k.op("ADD $%d, R%d", 8*depthwiseColumns, k.offsets)
	k.op("SUBS $1, R%d", k.taps)
	k.op("BNE %staps", label)
	k.fill(16, k.d, dwLo)
	k.fill(17, k.d, dwHi)
	k.op("MOVD %d(R%d), R%d", dwStep, k.d, k.step)
	k.op("MOVD R%d, R%d", k.dst, k.p)
	for i := range k.h {
		for j := range v {
			sum := k.sum(i, j, v)
			k.v3(fmax, sum, sum, 16)
			k.v3(fmin, sum, sum, 17)
			k.stq(sum, k.p, 16*j)
		}
		if i < k.h-1 {
			k.op("ADD R%d<<2, R%d", k.step, k.p)
		}
	}
	for _, r := range []reg{k.x, k.dst, k.w, k.bias} {
		k.op("ADD $%d, R%d", 16*v, r)
	}
	k.op("SUB $%d, R%d", 4*v, k.left)
	k.op("B %s", label)
}

// multiply adds the products of one tap.
func (k *depthwiseKernel) multiply(v int) {
	for j := range v {
		k.ldq(reg(16+j), k.p, 16*j)
	}
	for i := range k.h {
		k.op("MOVD %d(R%d), R%d", 8*i, k.offsets, k.at)
		k.op("ADD R%d<<2, R%d, R%d", k.at, k.x, k.at)
		for j := range v {
			t := reg(20 + (i*v+j)%8)
			k.ldq(t, k.at, 16*j)
			k.v3(fmla, k.sum(i, j, v), t, reg(16+j))
		}
	}
	k.op("ADD R%d<<2, R%d", k.step, k.p)
}

// mix adds the products of one tap with all channels of a group. Four channels are two groups, one, or a half.
func (k *depthwiseKernel) mix(int) {
	k.op("MOVD %d(R%d), R%d", dwGroup, k.d, k.q)
	for i, c := range k.columns {
		k.op("MOVD %d(R%d), R%d", 8*i, k.offsets, c)
		k.op("ADD R%d<<2, R%d, R%d", c, k.x, c)
	}
	k.op("CMP $2, R%d", k.q)
	k.op("BEQ two")
	k.op("MOVD %d(R%d), R%d", dwChannels, k.d, k.at) // back to the group's first channel: those done, modulo the group
	k.op("SUB R%d, R%d", k.left, k.at)
	k.op("SUB $1, R%d, R%d", k.q, k.step)
	k.op("AND R%d, R%d", k.step, k.at)
	for _, c := range k.columns {
		k.op("SUB R%d<<2, R%d", k.at, c)
	}
	k.op("MOVD %d(R%d), R%d", dwChannels, k.d, k.step)
	k.label("channel")
	k.ldq(16, k.p, 0)
	for i, c := range k.columns {
		k.op("FMOVS.P 4(R%d), F%d", c, 20+i)
		k.fmlaLane(reg(i), 16, reg(20+i), 0)
	}
	k.op("ADD R%d<<2, R%d", k.step, k.p)
	k.op("SUBS $1, R%d", k.q)
	k.op("BNE channel")
	k.op("B tapdone")
	k.label("two")
	for q := range 2 {
		k.ldq(16, k.p, 0)
		for i, c := range k.columns {
			k.ldq(20, c, 0)
			k.v3([]uint32{trn1s, trn2s}[q], 21, 20, 20)
			k.v3(fmla, reg(i), 21, 16)
		}
		k.op("ADD R%d<<2, R%d", k.step, k.p)
	}
	k.label("tapdone")
}

// advance goes on to the next tile, and sets the flags by whether there is one.
func (k *depthwiseKernel) advance() {
	k.op("MOVD %d(R%d), R%d", dwX, k.d, k.x)
	k.op("MOVD %d(R%d), R%d", dwAdvance, k.d, k.step)
	k.op("ADD R%d<<2, R%d", k.step, k.x)
	k.op("MOVD R%d, %d(R%d)", k.x, dwX, k.d)
	k.op("MOVD %d(R%d), R%d", dwDst, k.d, k.dst)
	k.op("MOVD %d(R%d), R%d", dwStep, k.d, k.step)
	for range k.h {
		k.op("ADD R%d<<2, R%d", k.step, k.dst)
	}
	k.op("MOVD R%d, %d(R%d)", k.dst, dwDst, k.d)
	k.op("MOVD %d(R%d), R%d", dwTiles, k.d, k.left)
	k.op("SUBS $1, R%d", k.left)
	k.op("MOVD R%d, %d(R%d)", k.left, dwTiles, k.d)
}

// Offsets of the fields of winogradTile (conv_winograd.go of package cpu).
const (
	wgX        = 0
	wgOffsets  = 24
	wgDst      = 48
	wgBias     = 72
	wgScratch  = 96
	wgPlane    = 120
	wgChannels = 128
	wgBad      = 136
	wgLo       = 144
	wgHi       = 148
)

// The points of the transform, as in the amd64 kernels: 0, ±a, ±b and infinity.
const (
	pointA = 3. / 4
	pointB = 3. / 2
)

// in6 is B^T d.
func (s *straight) in6(d [6]val) (o [6]val) {
	const a, b, aa, bb = pointA, pointB, pointA * pointA, pointB * pointB
	less := func(x val, f float64, y val) val { return s.fnma(x, s.num(f), y) }
	more := func(x val, f float64, y val) val { return s.fma(x, s.num(f), y) }
	o[0] = more(less(d[4], aa+bb, d[2]), aa*bb, d[0])
	o[5] = more(less(d[5], aa+bb, d[3]), aa*bb, d[1])
	even, odd := less(d[4], bb, d[2]), less(d[3], bb, d[1])
	o[1], o[2] = more(even, a, odd), less(even, a, odd)
	even, odd = less(d[4], aa, d[2]), less(d[3], aa, d[1])
	o[3], o[4] = more(even, b, odd), less(even, b, odd)
	return o
}

// out4 is A^T m.
func (s *straight) out4(m [6]val) (y [4]val) {
	const a, b, aa, bb = pointA, pointB, pointA * pointA, pointB * pointB
	more := func(x val, f float64, y val) val { return s.fma(x, s.num(f), y) }
	s1, d1 := s.addF(m[1], m[2]), s.sub(m[1], m[2])
	s2, d2 := s.addF(m[3], m[4]), s.sub(m[3], m[4])
	y[0] = s.addF(s.addF(m[0], s1), s2)
	y[1] = more(s.mul(d1, s.num(a)), b, d2)
	y[2] = more(s.mul(s1, s.num(aa)), bb, s2)
	y[3] = more(more(m[5], a*aa, d1), b*bb, d2)
	return y
}

type winogradRegs struct{ args, x, dst, bias, scratch, offsets, plane, left, p, at reg }

func winogradBegin(f *function) (r winogradRegs) {
	r.args = f.arg("t")
	r.x, r.dst, r.bias, r.scratch, r.offsets, r.plane, r.left, r.p, r.at = f.gp(), f.gp(), f.gp(), f.gp(), f.gp(), f.gp(), f.gp(), f.gp(), f.gp()
	for _, l := range []struct {
		r  reg
		at int
	}{{r.x, wgX}, {r.dst, wgDst}, {r.bias, wgBias}, {r.scratch, wgScratch}, {r.offsets, wgOffsets}, {r.plane, wgPlane}, {r.left, wgChannels}} {
		f.op("MOVD %d(R%d), R%d", l.at, r.args, l.r)
	}
	f.op("LSL $2, R%d", r.plane)
	return r
}

// indexed reads the vector at an offset of the table.
func (s *straight) indexed(r winogradRegs, base reg, entry int) val {
	return s.add(instruction{emit: func(d reg, _ []reg) {
		s.f.op("MOVD %d(R%d), R%d", 8*entry, r.offsets, r.at)
		s.f.op("ADD R%d<<2, R%d, R%d", r.at, base, r.at)
		s.f.ldq(d, r.at, 0)
	}})
}

// walk reads or writes the vector at p, and goes on by a plane.
func (s *straight) walk(r winogradRegs, x *val) val {
	if x == nil {
		return s.add(instruction{emit: func(d reg, _ []reg) {
			s.f.ldq(d, r.p, 0)
			s.f.op("ADD R%d, R%d", r.plane, r.p)
		}})
	}
	return s.add(instruction{args: []val{*x}, none: true, emit: func(_ reg, a []reg) {
		s.f.stq(a[0], r.p, 0)
		s.f.op("ADD R%d, R%d", r.plane, r.p)
	}})
}

func winogradInput() {
	f := begin("winogradInF32AVX2", "func(t *byte)", "is winogradTile.in.")
	r := winogradBegin(f)
	f.label("loop")
	for j := range 6 {
		s := newStraight(f)
		var d [6]val
		for i := range d {
			d[i] = s.indexed(r, r.x, 6*i+j)
		}
		for i, o := range s.in6(d) {
			s.store(o, r.scratch, (6*i+j)*16)
		}
		s.finish()
	}
	f.op("MOVD R%d, R%d", r.dst, r.p)
	for i := range 6 {
		s := newStraight(f)
		var d [6]val
		for j := range d {
			d[j] = s.load(r.scratch, (6*i+j)*16)
		}
		for _, o := range s.in6(d) {
			s.walk(r, &o)
		}
		s.finish()
	}
	f.op("ADD $16, R%d", r.x)
	f.op("ADD $16, R%d", r.dst)
	f.op("SUBS $4, R%d", r.left)
	f.op("BGT loop")
	f.ret()
}

func winogradOutput() {
	f := begin("winogradOutF32AVX2", "func(t *byte)", "is winogradTile.out.")
	r := winogradBegin(f)
	const bad, lo, hi, none = 31, 30, 29, 28
	f.zero(bad, none)
	f.fill(lo, r.args, wgLo)
	f.fill(hi, r.args, wgHi)
	f.label("loop")
	f.op("MOVD R%d, R%d", r.x, r.p)
	for i := range 6 { // rows first, as they lie
		s := newStraight(f, bad, lo, hi, none)
		var m [6]val
		for j := range m {
			m[j] = s.walk(r, nil)
		}
		for j, y := range s.out4(m) {
			s.store(y, r.scratch, (4*i+j)*16)
		}
		s.finish()
	}
	for j := range 4 {
		s := newStraight(f, bad, lo, hi, none)
		var m [6]val
		for i := range m {
			m[i] = s.load(r.scratch, (4*i+j)*16)
		}
		for i, y := range s.out4(m) {
			y = s.addF(y, s.load(r.bias, 0))
			s.update(fmla, pinned(bad), y, pinned(none)) // NaN, if y is not finite
			y = s.min(s.max(y, pinned(lo)), pinned(hi))
			s.add(instruction{args: []val{y}, none: true, emit: func(_ reg, a []reg) {
				f.op("MOVD %d(R%d), R%d", 8*(4*i+j), r.offsets, r.at)
				f.op("ADD R%d<<2, R%d, R%d", r.at, r.dst, r.at)
				f.stq(a[0], r.at, 0)
			}})
		}
		s.finish()
	}
	for _, p := range []reg{r.x, r.dst, r.bias} {
		f.op("ADD $16, R%d", p)
	}
	f.op("SUBS $4, R%d", r.left)
	f.op("BGT loop")
	f.v3(fcmeq, bad, bad, bad)
	f.v2(uminv, bad, bad)
	f.op("FMOVS F%d, R%d", bad, r.at)
	f.op("MVNW R%d, R%d", r.at, r.at) // 0 if all lanes are numbers
	f.op("MOVD R%d, %d(R%d)", r.at, wgBad, r.args)
	f.ret()
}
