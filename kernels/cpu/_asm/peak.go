package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// peak writes loops of nothing but multiply-add on registers: what benchmarks hold kernels against.
func peak() {
	forBoth(func() {
		name, sums, vector := "peakF32"+isa(), 12, ymm
		if wide {
			sums, vector = 24, zmm
		}
		function(name, "func(n int)", "multiplies and adds 24 vectors, n times.")
		n := Load(Param("n"), RAX)
		x := vector(sums)
		for i := range sums + 1 {
			if r := vector(i); wide {
				VPXORQ(r, r, r)
			} else {
				VXORPS(r, r, r)
			}
		}
		Label(name + "_loop")
		for i := range 24 {
			VFMADD231PS(x, x, vector(i%sums))
		}
		DECQ(n)
		JG(LabelRef(name + "_loop"))
		VZEROUPPER()
		RET()
	})
}
