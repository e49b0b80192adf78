package main

// peak writes a loop of nothing but multiply-add on registers: what benchmarks hold kernels against.
func peak() {
	f := begin("peakF32AVX2", "func(n int)", "multiplies and adds 24 vectors, n times.")
	n := f.arg("n")
	for i := range reg(25) {
		f.zero(i)
	}
	f.label("loop")
	for i := range reg(24) {
		f.v3(fmla, i, 24, 24)
	}
	f.op("SUBS $1, R%d", n)
	f.op("BGT loop")
	f.ret()
}
