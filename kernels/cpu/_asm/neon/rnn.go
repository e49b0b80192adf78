package main

// rnn writes steps of recurrent layers for eight units: the product of the state with the units' columns of all gates, then the gates'
// functions in registers.
func rnn() {
	lstmStep()
	gruStep()
}

// stateTimesPanel adds h times a panel [k, gates, 8] to the accumulators, two vectors a gate, from register 0 on.
func stateTimesPanel(f *function, gates int, k, h, w reg) {
	f.label("loop")
	f.op("CBZ R%d, gates", k)
	f.op("FMOVS (R%d), F31", h)
	for g := range reg(gates) {
		f.ldpq(16+2*g, 17+2*g, w, 32*int(g))
		f.fmlaLane(2*g, 16+2*g, 31, 0)
		f.fmlaLane(2*g+1, 17+2*g, 31, 0)
	}
	f.op("ADD $4, R%d", h)
	f.op("ADD $%d, R%d", 32*gates, w)
	f.op("SUB $1, R%d", k)
	f.op("B loop")
	f.label("gates")
}

func lstmStep() {
	f := begin("lstmStepF32AVX2", "func(k int, h, w, x, c, out *float32)", "is a step of eight LSTM units. x holds the input's sums for the gates i, f, g, o, w [k, 4, 8] the units' columns, h [k] the state, c the units' cells, which are updated; the new state goes to out.")
	k, h, w, x, c, out := f.arg("k"), f.arg("h"), f.arg("w"), f.arg("x"), f.arg("c"), f.arg("out")
	for g := range reg(4) {
		f.ldpq(2*g, 2*g+1, x, 32*int(g))
	}
	stateTimesPanel(f, 4, k, h, w)
	for v := range reg(2) {
		s := newStraight(f, 0, 1, 2, 3, 4, 5, 6, 7)
		gate := func(g reg) val { return pinned(2*g + v) }
		in := s.mul(s.sigmoid(gate(0)), s.tanh(gate(2)))
		cell := s.fma(in, s.sigmoid(gate(1)), s.load(c, 16*int(v))) // f*c + i*g
		s.store(cell, c, 16*int(v))
		s.store(s.mul(s.sigmoid(gate(3)), s.tanh(cell)), out, 16*int(v))
		s.finish()
	}
	f.ret()
}

func gruStep() {
	f := begin("gruStepF32AVX2", "func(k int, h, w, x, bias, own, out *float32)", "is a step of eight GRU units. x holds the input's sums for the gates r, z, n, bias the state's bias of n, w [k, 3, 8] the units' columns, h [k] the state, own the units' part of it; the new state goes to out.")
	k, h, w, x, bias, own, out := f.arg("k"), f.arg("h"), f.arg("w"), f.arg("x"), f.arg("bias"), f.arg("own"), f.arg("out")
	f.ldpq(0, 1, x, 0)
	f.ldpq(2, 3, x, 32)
	f.ldpq(4, 5, bias, 0)
	stateTimesPanel(f, 3, k, h, w)
	for v := range reg(2) {
		s := newStraight(f, 0, 1, 2, 3, 4, 5)
		at := 16 * int(v)
		fresh := s.fma(s.load(x, 64+at), s.sigmoid(pinned(v)), pinned(4+v)) // r*n_h + n_x
		fresh = s.tanh(fresh)
		d := s.sub(s.load(own, at), fresh)
		s.store(s.fma(fresh, s.sigmoid(pinned(2+v)), d), out, at) // n + z (h - n)
		s.finish()
	}
	f.ret()
}
