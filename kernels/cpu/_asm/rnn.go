package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// rnn writes steps of recurrent layers for a vector of units: the product of the state with the units' columns of all gates, then the
// gates' functions in registers.
func rnn() {
	forBoth(func() {
		lstmStep()
		gruStep()
	})
}

func sigmoid(x vec) vec { return div(load(num(1)), onePlusExpNeg(x)) }

// stateTimesPanel adds h times a panel [k, gates, width] to the accumulators of the gates.
func stateTimesPanel(acc []vec, k, h, w Register) {
	second := make([]vec, len(acc))
	for i := range second {
		second[i] = VEC()
		VXORPS(second[i], second[i], second[i])
	}
	row := 4 * width() * len(acc) // bytes
	s := VEC()
	add := func(n int, acc []vec) {
		VBROADCASTSS(Mem{Base: h, Disp: 4 * n}, s)
		for g, a := range acc {
			VFMADD231PS(Mem{Base: w, Disp: n*row + g*4*width()}, s, a)
		}
	}
	Label("four")
	CMPQ(k, Imm(4))
	JL(LabelRef("one"))
	for n := range 4 {
		add(n, [][]vec{acc, second}[n%2])
	}
	ADDQ(Imm(16), h)
	ADDQ(U32(uint32(4*row)), w)
	SUBQ(Imm(4), k)
	JMP(LabelRef("four"))
	Label("one")
	TESTQ(k, k)
	JE(LabelRef("gates"))
	add(0, acc)
	ADDQ(Imm(4), h)
	ADDQ(U32(uint32(row)), w)
	DECQ(k)
	JMP(LabelRef("one"))
	Label("gates")
	for i := range acc {
		VADDPS(second[i], acc[i], acc[i])
	}
}

func lstmStep() {
	function("lstmStepF32"+isa(), "func(k int, h, w, x, c, out *float32)", "is a step of a vector of LSTM units. x holds the input's sums for the gates i, f, g, o, w [k, 4, vector] the units' columns, h [k] the state, c the units' cells, which are updated; the new state goes to out.")
	k, h, w := Load(Param("k"), GP64()), Load(Param("h"), GP64()), Load(Param("w"), GP64())
	x, c, out := Load(Param("x"), GP64()), Load(Param("c"), GP64()), Load(Param("out"), GP64())
	acc := make([]vec, 4)
	for g := range acc {
		acc[g] = load(Mem{Base: x, Disp: 4 * width() * g})
	}
	stateTimesPanel(acc, k, h, w)
	in := mul(sigmoid(acc[0]), tanh(acc[2]))
	cell := load(Mem{Base: c})
	VFMADD213PS(in, sigmoid(acc[1]), cell) // f*c + i*g
	VMOVUPS(cell, Mem{Base: c})
	VMOVUPS(mul(sigmoid(acc[3]), tanh(cell)), Mem{Base: out})
	VZEROUPPER()
	RET()
}

func gruStep() {
	function("gruStepF32"+isa(), "func(k int, h, w, x, bias, own, out *float32)", "is a step of a vector of GRU units. x holds the input's sums for the gates r, z, n, bias the state's bias of n, w [k, 3, vector] the units' columns, h [k] the state, own the units' part of it; the new state goes to out.")
	k, h, w := Load(Param("k"), GP64()), Load(Param("h"), GP64()), Load(Param("w"), GP64())
	x, bias, own, out := Load(Param("x"), GP64()), Load(Param("bias"), GP64()), Load(Param("own"), GP64()), Load(Param("out"), GP64())
	acc := []vec{load(Mem{Base: x}), load(Mem{Base: x, Disp: 4 * width()}), load(Mem{Base: bias})}
	stateTimesPanel(acc, k, h, w)
	fresh := acc[2]
	VFMADD213PS(Mem{Base: x, Disp: 8 * width()}, sigmoid(acc[0]), fresh) // r*n_h + n_x
	fresh = tanh(fresh)
	d := sub(load(Mem{Base: own}), fresh)
	VFMADD213PS(fresh, sigmoid(acc[1]), d) // n + z (h - n)
	VMOVUPS(d, Mem{Base: out})
	VZEROUPPER()
	RET()
}
