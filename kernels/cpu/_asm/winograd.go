package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of winogradTile (conv_winograd.go).
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

// winograd writes the transforms of inputs and outputs of F(4x4, 3x3).
func winograd() {
	for _, s := range tileISAs {
		if s.size != 4 {
			continue
		}
		w := &winogradKernel{tileISA: s}
		w.input()
		w.output()
	}
}

type winogradKernel struct {
	*tileISA
}

// The points of the transform: 0, ±a, ±b and infinity. These keep the rounding errors to twice those of the direct sum; with the usual
// 1 and 2 they would be four times as large. All constants that follow from them are exact.
const (
	pointA = 3. / 4
	pointB = 3. / 2
)

func (k *winogradKernel) reg() VecVirtual {
	if k.bytes == 64 {
		return ZMM()
	}
	return YMM()
}

func (k *winogradKernel) loaded(m Mem) VecVirtual {
	r := k.reg()
	VMOVUPS(m, r)
	return r
}

// op makes a new register of a three-operand instruction, in Go's operand order.
func (k *winogradKernel) op(f func(ops ...Op), b Op, a VecVirtual) VecVirtual {
	r := k.reg()
	f(b, a, r)
	return r
}

func (k *winogradKernel) copied(a VecVirtual) VecVirtual {
	r := k.reg()
	VMOVAPS(a, r)
	return r
}

// less is a - f*b, more a + f*b.
func (k *winogradKernel) less(a VecVirtual, f float64, b VecVirtual) VecVirtual {
	r := k.copied(a)
	VFNMADD231PS(num(f), b, r)
	return r
}

func (k *winogradKernel) more(a VecVirtual, f float64, b VecVirtual) VecVirtual {
	r := k.copied(a)
	VFMADD231PS(num(f), b, r)
	return r
}

// in6 is B^T d.
func (k *winogradKernel) in6(d [6]VecVirtual) (o [6]VecVirtual) {
	const a, b, aa, bb = pointA, pointB, pointA * pointA, pointB * pointB
	o[0] = k.more(k.less(d[4], aa+bb, d[2]), aa*bb, d[0])
	o[5] = k.more(k.less(d[5], aa+bb, d[3]), aa*bb, d[1])
	even, odd := k.less(d[4], bb, d[2]), k.less(d[3], bb, d[1])
	o[1], o[2] = k.more(even, a, odd), k.less(even, a, odd)
	even, odd = k.less(d[4], aa, d[2]), k.less(d[3], aa, d[1])
	o[3], o[4] = k.more(even, b, odd), k.less(even, b, odd)
	return o
}

// out4 is A^T m.
func (k *winogradKernel) out4(m [6]VecVirtual) (y [4]VecVirtual) {
	const a, b, aa, bb = pointA, pointB, pointA * pointA, pointB * pointB
	s1, d1 := k.op(VADDPS, m[2], m[1]), k.op(VSUBPS, m[2], m[1])
	s2, d2 := k.op(VADDPS, m[4], m[3]), k.op(VSUBPS, m[4], m[3])
	y[0] = k.op(VADDPS, s2, k.op(VADDPS, s1, m[0]))
	y[1] = k.more(k.op(VMULPS, num(a), d1), b, d2)
	y[2] = k.more(k.op(VMULPS, num(aa), s1), bb, s2)
	y[3] = k.more(k.more(m[5], a*aa, d1), b*bb, d2)
	return y
}

func (k *winogradKernel) input() {
	name := "winogradIn" + k.name
	function(name, "func(t *byte)", "is winogradTile.in.")
	args, x, dst, scratch, offsets, plane, left := GP64(), GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	Load(Param("t"), args)
	for _, f := range []struct {
		at  int
		reg Register
	}{{wgX, x}, {wgDst, dst}, {wgScratch, scratch}, {wgOffsets, offsets}, {wgPlane, plane}, {wgChannels, left}} {
		MOVQ(Mem{Base: args, Disp: f.at}, f.reg)
	}
	SHLQ(Imm(2), plane)
	Label(name + "_loop")
	for j := range 6 {
		var d [6]VecVirtual
		for i := range d {
			at := GP64()
			MOVQ(Mem{Base: offsets, Disp: 8 * (6*i + j)}, at)
			d[i] = k.loaded(Mem{Base: x, Index: at, Scale: 4})
		}
		for i, o := range k.in6(d) {
			VMOVUPS(o, Mem{Base: scratch, Disp: (6*i + j) * k.bytes})
		}
	}
	p := GP64()
	MOVQ(dst, p)
	for i := range 6 {
		var d [6]VecVirtual
		for j := range d {
			d[j] = k.loaded(Mem{Base: scratch, Disp: (6*i + j) * k.bytes})
		}
		for _, o := range k.in6(d) {
			VMOVUPS(o, Mem{Base: p})
			ADDQ(plane, p)
		}
	}
	ADDQ(U32(uint32(k.bytes)), x)
	ADDQ(U32(uint32(k.bytes)), dst)
	SUBQ(U32(uint32(k.bytes/4)), left)
	JG(LabelRef(name + "_loop"))
	VZEROUPPER()
	RET()
}

func (k *winogradKernel) output() {
	name := "winogradOut" + k.name
	function(name, "func(t *byte)", "is winogradTile.out.")
	args, x, dst, bias, scratch, offsets, plane, left := GP64(), GP64(), GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	Load(Param("t"), args)
	for _, f := range []struct {
		at  int
		reg Register
	}{{wgX, x}, {wgDst, dst}, {wgBias, bias}, {wgScratch, scratch}, {wgOffsets, offsets}, {wgPlane, plane}, {wgChannels, left}} {
		MOVQ(Mem{Base: args, Disp: f.at}, f.reg)
	}
	SHLQ(Imm(2), plane)
	bad := k.reg()
	VXORPS(bad, bad, bad)
	Label(name + "_loop")
	p := GP64()
	MOVQ(x, p)
	for i := range 6 { // rows first, as they lie
		var m [6]VecVirtual
		for j := range m {
			m[j] = k.loaded(Mem{Base: p})
			ADDQ(plane, p)
		}
		for j, y := range k.out4(m) {
			VMOVUPS(y, Mem{Base: scratch, Disp: (4*i + j) * k.bytes})
		}
	}
	for j := range 4 {
		var m [6]VecVirtual
		for i := range m {
			m[i] = k.loaded(Mem{Base: scratch, Disp: (4*i + j) * k.bytes})
		}
		for i, y := range k.out4(m) {
			VADDPS(Mem{Base: bias}, y, y)
			zero, bound := k.reg(), k.reg()
			VXORPS(zero, zero, zero)
			VFMADD231PS(zero, y, bad) // NaN, if y is not finite
			VBROADCASTSS(Mem{Base: args, Disp: wgLo}, bound)
			VMAXPS(y, bound, y)
			VBROADCASTSS(Mem{Base: args, Disp: wgHi}, bound)
			VMINPS(y, bound, y)
			at := GP64()
			MOVQ(Mem{Base: offsets, Disp: 8 * (4*i + j)}, at)
			VMOVUPS(y, Mem{Base: dst, Index: at, Scale: 4})
		}
	}
	for _, r := range []Register{x, dst, bias} {
		ADDQ(U32(uint32(k.bytes)), r)
	}
	SUBQ(U32(uint32(k.bytes/4)), left)
	JG(LabelRef(name + "_loop"))
	found := GP64()
	if k.masked {
		VCMPPS(Imm(3), bad, bad, K1)
		KMOVW(K1, found.As32())
	} else {
		VCMPPS(Imm(3), bad, bad, bad)
		VMOVMSKPS(bad, found.As32())
	}
	MOVQ(found, Mem{Base: args, Disp: wgBad})
	VZEROUPPER()
	RET()
}
