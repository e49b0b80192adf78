package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// fft writes the stages of Fourier transforms of 16 sequences, a lane each (fft.go has the layout).
func fft() {
	wide = true
	for _, r := range []int{2, 3, 4, 5} {
		fftStage(r)
	}
	fftFold()
	fftSplit()
	fftJoin()
	wide = false
}

// cplx is a complex number in each lane.
type cplx struct{ re, im vec }

func (a cplx) add(b cplx) cplx { return cplx{add(a.re, b.re), add(a.im, b.im)} }
func (a cplx) sub(b cplx) cplx { return cplx{sub(a.re, b.re), sub(a.im, b.im)} }
func (a cplx) times(f float64) cplx {
	return cplx{mul(a.re, num(f)), mul(a.im, num(f))}
}

// plusTimes is a + f*b.
func (a cplx) plusTimes(f float64, b cplx) cplx {
	r := cplx{copyOf(a.re), copyOf(a.im)}
	VFMADD231PS_BCST(num(f), b.re, r.re)
	VFMADD231PS_BCST(num(f), b.im, r.im)
	return r
}

// minusI is a - i*b, plusI is a + i*b.
func (a cplx) minusI(b cplx) cplx { return cplx{add(a.re, b.im), sub(a.im, b.re)} }
func (a cplx) plusI(b cplx) cplx  { return cplx{sub(a.re, b.im), add(a.im, b.re)} }

// twiddled is a times the number at w.
func (a cplx) twiddled(w Mem) cplx {
	wi := w.Offset(4)
	r := cplx{VEC(), VEC()}
	VMULPS_BCST(w, a.re, r.re)
	VMULPS_BCST(wi, a.re, r.im)
	VFNMADD231PS_BCST(wi, a.im, r.re)
	VFMADD231PS_BCST(w, a.im, r.im)
	return r
}

// butterfly is the transform of r numbers.
func butterfly(x []cplx) []cplx {
	switch len(x) {
	case 2:
		return []cplx{x[0].add(x[1]), x[0].sub(x[1])}
	case 3:
		t, d := x[1].add(x[2]), x[1].sub(x[2]).times(math.Sqrt(3)/2)
		m := x[0].plusTimes(-0.5, t)
		return []cplx{x[0].add(t), m.minusI(d), m.plusI(d)}
	case 4:
		a, b, c, d := x[0].add(x[2]), x[0].sub(x[2]), x[1].add(x[3]), x[1].sub(x[3])
		return []cplx{a.add(c), b.minusI(d), a.sub(c), b.plusI(d)}
	}
	c1, s1 := math.Cos(2*math.Pi/5), math.Sin(2*math.Pi/5)
	c2, s2 := math.Cos(4*math.Pi/5), math.Sin(4*math.Pi/5)
	t1, t2, t3, t4 := x[1].add(x[4]), x[2].add(x[3]), x[1].sub(x[4]), x[2].sub(x[3])
	m1, m2 := x[0].plusTimes(c1, t1).plusTimes(c2, t2), x[0].plusTimes(c2, t1).plusTimes(c1, t2)
	n1, n2 := t3.times(s1).plusTimes(s2, t4), t3.times(s2).plusTimes(-s1, t4)
	return []cplx{x[0].add(t1).add(t2), m1.minusI(n1), m2.minusI(n2), m2.plusI(n2), m1.plusI(n1)}
}

// planes are pointers to real and imaginary parts, with places some steps further on.
type planes struct{ re, im, step, step3 Register }

func (p planes) at(i int) (re, im Mem) {
	place := func(b Register) Mem {
		switch i {
		case 0:
			return Mem{Base: b}
		case 3:
			return Mem{Base: b, Index: p.step3, Scale: 1}
		}
		return Mem{Base: b, Index: p.step, Scale: uint8(i)}
	}
	return place(p.re), place(p.im)
}

func (p planes) move(by Op) {
	ADDQ(by, p.re)
	ADDQ(by, p.im)
}

func fftStage(r int) {
	function(fmt.Sprintf("fft%dF32AVX512", r), "func(dst, src, w *float32, m, done, im int)",
		fmt.Sprintf("joins %d transforms of length done: src is [%d*m, done, 2, 16], dst is [m, %d, done, 2, 16], w [done, %d, 2]; imaginary parts lie im bytes behind the real ones.", r, r, r, r-1))
	pointers := func(name string) planes {
		p := planes{re: Load(Param(name), GP64()), im: GP64(), step: GP64(), step3: GP64()}
		MOVQ(p.re, p.im)
		ADDQ(Load(Param("im"), GP64()), p.im)
		return p
	}
	src, dst := pointers("src"), pointers("dst")
	m, done := Load(Param("m"), GP64()), Load(Param("done"), GP64())
	MOVQ(done, dst.step)
	SHLQ(Imm(7), dst.step)
	MOVQ(dst.step, src.step)
	IMULQ(m, src.step)
	LEAQ(Mem{Base: src.step, Index: src.step, Scale: 2}, src.step3)
	LEAQ(Mem{Base: dst.step, Index: dst.step, Scale: 2}, dst.step3)
	w, k := GP64(), GP64()
	Label("outer")
	Load(Param("w"), w)
	MOVQ(done, k)
	Label("inner")
	x := make([]cplx, r)
	for q := range x {
		re, im := src.at(q)
		x[q] = cplx{load(re), load(im)}
		if q > 0 {
			x[q] = x[q].twiddled(Mem{Base: w, Disp: 8 * (q - 1)})
		}
	}
	for q, y := range butterfly(x) {
		re, im := dst.at(q)
		VMOVUPS(y.re, re)
		VMOVUPS(y.im, im)
	}
	src.move(U32(128))
	dst.move(U32(128))
	ADDQ(Imm(uint64(8*(r-1))), w)
	DECQ(k)
	JNE(LabelRef("inner"))
	switch r {
	case 2:
		dst.move(dst.step)
	case 3:
		dst.move(dst.step)
		dst.move(dst.step)
	case 4:
		dst.move(dst.step3)
	case 5:
		dst.move(dst.step3)
		dst.move(dst.step)
	}
	DECQ(m)
	JNE(LabelRef("outer"))
	VZEROUPPER()
	RET()
}

// fftFold turns the transform of pairs of real numbers into that of the numbers, or back.
func fftFold() {
	function("fftFoldF32AVX512", "func(x, w *float32, h, n int)", "is, for the first n places k of x [h+1, 2, 16] and u = w[k], x[k] = e + u*d and x[h-k] = conj(e - u*d), where e and d are the sum and the difference of x[k] and conj(x[h-k]).")
	x, w, h, n := Load(Param("x"), GP64()), Load(Param("w"), GP64()), Load(Param("h"), GP64()), Load(Param("n"), GP64())
	y := GP64()
	MOVQ(h, y)
	SHLQ(Imm(7), y)
	ADDQ(x, y)
	Label("loop")
	a, b := cplx{load(Mem{Base: x}), load(Mem{Base: x, Disp: 64})}, cplx{load(Mem{Base: y}), load(Mem{Base: y, Disp: 64})}
	e := cplx{add(a.re, b.re), sub(a.im, b.im)}
	d := cplx{sub(a.re, b.re), add(a.im, b.im)}.twiddled(Mem{Base: w})
	VMOVUPS(add(e.re, d.re), Mem{Base: x})
	VMOVUPS(add(e.im, d.im), Mem{Base: x, Disp: 64})
	VMOVUPS(sub(e.re, d.re), Mem{Base: y})
	VMOVUPS(sub(d.im, e.im), Mem{Base: y, Disp: 64})
	ADDQ(U32(128), x)
	SUBQ(U32(128), y)
	ADDQ(Imm(8), w)
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// pairs gives the places of even or odd elements of two vectors, or of the elements that interleave two.
func pairs(name string, place func(i int) int) vec {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(uint32(place(i))))
	}
	v := VEC()
	VMOVUPS(m, v)
	return v
}

func fftSplit() {
	function("fftSplitF32AVX512", "func(dst, src *float32, n, step int)", "is dst [n, 2, 16] from n rows of 16 complex numbers, step bytes apart.")
	dst, src, n, step := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64()), Load(Param("step"), GP64())
	even, odd := pairs("fft_even", func(i int) int { return 2 * i }), pairs("fft_odd", func(i int) int { return 2*i + 1 })
	Label("loop")
	a, b := load(Mem{Base: src}), load(Mem{Base: src, Disp: 64})
	c := copyOf(a)
	VPERMT2PS(b, even, a)
	VPERMT2PS(b, odd, c)
	VMOVUPS(a, Mem{Base: dst})
	VMOVUPS(c, Mem{Base: dst, Disp: 64})
	ADDQ(U32(128), dst)
	ADDQ(step, src)
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func fftJoin() {
	function("fftJoinF32AVX512", "func(dst, src *float32, n, step int)", "writes src [n, 2, 16] as n rows of 16 complex numbers, step bytes apart.")
	dst, src, n, step := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"), GP64()), Load(Param("step"), GP64())
	low := pairs("fft_low", func(i int) int { return i/2 + i%2*16 })
	high := pairs("fft_high", func(i int) int { return 8 + i/2 + i%2*16 })
	Label("loop")
	a, b := load(Mem{Base: src}), load(Mem{Base: src, Disp: 64})
	c := copyOf(a)
	VPERMT2PS(b, low, a)
	VPERMT2PS(b, high, c)
	VMOVUPS(a, Mem{Base: dst})
	VMOVUPS(c, Mem{Base: dst, Disp: 64})
	ADDQ(U32(128), src)
	ADDQ(step, dst)
	DECQ(n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
