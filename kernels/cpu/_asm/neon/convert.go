package main

// The conversions do eight numbers at a time; the callers do the rest.
func convert() {
	eights("f16ToF32", "func(dst *float32, src *uint16, n int)", "widens n numbers, n a multiple of 8.", 4, 2, func(f *function, dst, src reg) {
		f.ldq(0, src, 0)
		f.v2(fcvtl, 1, 0)
		f.v2(fcvtl2, 2, 0)
		f.stpq(1, 2, dst, 0)
	})
	eights("f32ToF16", "func(dst *uint16, src *float32, n int)", "rounds n numbers to nearest even, n a multiple of 8.", 2, 4, func(f *function, dst, src reg) {
		f.ldpq(0, 1, src, 0)
		f.v2(fcvtn, 2, 0)
		f.v2(fcvtn2, 2, 1)
		f.stq(2, dst, 0)
	})
	eights("bf16ToF32", "func(dst *float32, src *uint16, n int)", "widens n numbers, n a multiple of 8.", 4, 2, func(f *function, dst, src reg) {
		f.ldq(0, src, 0)
		f.v2(shll16, 1, 0)
		f.v2(shll2, 2, 0)
		f.stpq(1, 2, dst, 0)
	})
	eights("f32ToBF16", "func(dst *uint16, src *float32, n int)", "rounds n numbers to nearest even, n a multiple of 8; NaN becomes 0x7fc0.", 2, 4, func(f *function, dst, src reg) {
		for i := range 2 {
			s := newStraight(f, 31)
			x := s.load(src, 16*i)
			r := s.op3(addv, s.and(s.ushr(x, 16), s.bits(1)), s.bits(0x7fff))
			r = s.op3(addv, r, x) // x + 0x7fff + the last bit kept
			r = s.choose(s.equal(x, x), r, s.bits(0x7fc00000))
			narrow := []uint32{shrn16, shrn6b}[i]
			s.add(instruction{args: []val{r}, none: true, emit: func(_ reg, a []reg) { f.v2(narrow, 31, a[0]) }})
			s.finish()
		}
		f.stq(31, dst, 0)
	})
	eights("i32ToF32", "func(dst *float32, src *int32, n int)", "converts n numbers, n a multiple of 8.", 4, 4, func(f *function, dst, src reg) {
		f.ldpq(0, 1, src, 0)
		f.v2(scvtf, 0, 0)
		f.v2(scvtf, 1, 1)
		f.stpq(0, 1, dst, 0)
	})
	eights("u8ToF32", "func(dst *float32, src *uint8, n int)", "converts n numbers, n a multiple of 8.", 4, 1, func(f *function, dst, src reg) {
		f.op("FMOVD (R%d), F0", src)
		f.widenBytes(0, 1, 0)
		f.v2(ucvtf, 0, 0)
		f.v2(ucvtf, 1, 1)
		f.stpq(0, 1, dst, 0)
	})
	eights("f32ToF64", "func(dst *float64, src *float32, n int)", "converts n numbers, n a multiple of 8.", 8, 4, func(f *function, dst, src reg) {
		for i := range 2 {
			f.ldq(0, src, 16*i)
			f.v2(fcvtlD, 1, 0)
			f.v2(fcvtlE, 2, 0)
			f.stpq(1, 2, dst, 32*i)
		}
	})
	eights("f64ToF32", "func(dst *float32, src *float64, n int)", "converts n numbers, n a multiple of 8.", 4, 8, func(f *function, dst, src reg) {
		for i := range 2 {
			f.ldpq(0, 1, src, 32*i)
			f.v2(fcvtnD, 2, 0)
			f.v2(fcvtnE, 2, 1)
			f.stq(2, dst, 16*i)
		}
	})
}

// widenBytes turns the eight bytes in the low half of x into 32-bit integers in two vectors.
func (f *function) widenBytes(lo, hi, x reg) {
	f.v2(uxtl8, hi, x)
	f.v2(uxtl16, lo, hi)
	f.v2(uxtl6b, hi, hi)
}

func eights(name, signature, doc string, dstSize, srcSize int, body func(f *function, dst, src reg)) {
	f := begin(name+"AVX2", signature, doc)
	dst, src, n := f.arg("dst"), f.arg("src"), f.arg("n")
	f.op("CBZ R%d, done", n)
	f.label("loop")
	body(f, dst, src)
	f.op("ADD $%d, R%d", 8*dstSize, dst)
	f.op("ADD $%d, R%d", 8*srcSize, src)
	f.op("SUBS $8, R%d", n)
	f.op("BNE loop")
	f.label("done")
	f.ret()
}
