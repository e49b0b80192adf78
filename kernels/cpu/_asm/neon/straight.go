package main

// straight is a piece of code without branches, written with as many values as it takes; finish finds registers for them.
type straight struct {
	f    *function
	code []instruction
	free []bool // of the 32 vectors
}

// A val is a vector of four float32 or of four 32-bit integers or masks.
type val struct {
	id     int // of the instruction that makes it
	pinned bool
	reg    reg // if pinned
}

// pinned is a value in a register that the piece does not touch.
func pinned(r reg) val { return val{pinned: true, reg: r} }

type instruction struct {
	args  []val
	inout bool // the result goes where the first argument is
	none  bool // there is no result
	emit  func(d reg, args []reg)
}

// newStraight begins a piece that may use the vectors from low on, but for those kept.
func newStraight(f *function, kept ...reg) *straight {
	s := &straight{f: f, free: make([]bool, 32)}
	for i := range s.free {
		s.free[i] = true
	}
	for _, r := range kept {
		s.free[r] = false
	}
	return s
}

func (s *straight) add(i instruction) val {
	s.code = append(s.code, i)
	return val{id: len(s.code) - 1}
}

func (s *straight) op3(code uint32, a, b val) val {
	return s.add(instruction{args: []val{a, b}, emit: func(d reg, r []reg) { s.f.v3(code, d, r[0], r[1]) }})
}

func (s *straight) op2(code uint32, a val) val {
	return s.add(instruction{args: []val{a}, emit: func(d reg, r []reg) { s.f.v2(code, d, r[0]) }})
}

// into is op3 for instructions that read what they overwrite.
func (s *straight) into(code uint32, d, a, b val) val {
	return s.add(instruction{args: []val{d, a, b}, inout: true, emit: func(d reg, r []reg) { s.f.v3(code, d, r[1], r[2]) }})
}

// update changes a pinned value.
func (s *straight) update(code uint32, d val, a, b val) {
	s.add(instruction{args: []val{a, b}, none: true, emit: func(_ reg, r []reg) { s.f.v3(code, d.reg, r[0], r[1]) }})
}

func (s *straight) addF(a, b val) val { return s.op3(fadd, a, b) }
func (s *straight) sub(a, b val) val  { return s.op3(fsub, a, b) }
func (s *straight) mul(a, b val) val  { return s.op3(fmul, a, b) }
func (s *straight) div(a, b val) val  { return s.op3(fdiv, a, b) }

// fma is c + a*b, fnma c - a*b.
func (s *straight) fma(c, a, b val) val  { return s.into(fmla, c, a, b) }
func (s *straight) fnma(c, a, b val) val { return s.into(fmls, c, a, b) }

// max and min keep NaN.
func (s *straight) max(a, b val) val { return s.op3(fmax, a, b) }
func (s *straight) min(a, b val) val { return s.op3(fmin, a, b) }

// choose is yes where the mask is set, else no.
func (s *straight) choose(mask, yes, no val) val { return s.into(bsl, mask, yes, no) }

// greater, atLeast and equal are masks; they are false where there is a NaN.
func (s *straight) greater(a, b val) val { return s.op3(fcmgt, a, b) }
func (s *straight) atLeast(a, b val) val { return s.op3(fcmge, a, b) }
func (s *straight) equal(a, b val) val   { return s.op3(fcmeq, a, b) }

func (s *straight) and(a, b val) val    { return s.op3(andv, a, b) }
func (s *straight) andNot(a, b val) val { return s.op3(bic, a, b) }
func (s *straight) or(a, b val) val     { return s.op3(orr, a, b) }
func (s *straight) xor(a, b val) val    { return s.op3(eor, a, b) }

func (s *straight) shl(a val, by uint32) val {
	return s.add(instruction{args: []val{a}, emit: func(d reg, r []reg) { s.f.shl(d, r[0], by) }})
}

func (s *straight) ushr(a val, by uint32) val {
	return s.add(instruction{args: []val{a}, emit: func(d reg, r []reg) { s.f.ushr(d, r[0], by) }})
}

func (s *straight) sshr(a val, by uint32) val {
	return s.add(instruction{args: []val{a}, emit: func(d reg, r []reg) { s.f.sshr(d, r[0], by) }})
}

func (s *straight) num(x float64) val {
	return s.add(instruction{emit: func(d reg, _ []reg) { s.f.num(d, x) }})
}

func (s *straight) bits(v uint32) val {
	return s.add(instruction{emit: func(d reg, _ []reg) { s.f.bits(d, v) }})
}

// load reads 16 bytes, loadOne one float32 and zeros.
func (s *straight) load(base reg, offset int) val {
	return s.add(instruction{emit: func(d reg, _ []reg) { s.f.ldq(d, base, offset) }})
}

func (s *straight) loadOne(base reg) val {
	return s.add(instruction{emit: func(d reg, _ []reg) { s.f.op("FMOVS (R%d), F%d", base, d) }})
}

func (s *straight) store(a val, base reg, offset int) {
	s.add(instruction{args: []val{a}, none: true, emit: func(_ reg, r []reg) { s.f.stq(r[0], base, offset) }})
}

func (s *straight) storeOne(a val, base reg) {
	s.add(instruction{args: []val{a}, none: true, emit: func(_ reg, r []reg) { s.f.op("FMOVS F%d, (R%d)", r[0], base) }})
}

// poly evaluates c[0] + c[1] x + ... by Horner's rule.
func (s *straight) poly(x val, c ...float64) val {
	y := s.num(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		y = s.fma(s.num(c[i]), y, x)
	}
	return y
}

// finish writes the piece.
func (s *straight) finish() {
	last := make([]int, len(s.code))
	for i, in := range s.code {
		last[i] = i
		for _, a := range in.args {
			if !a.pinned {
				last[a.id] = i
			}
		}
	}
	at := make([]reg, len(s.code))
	take := func() reg {
		for r := range s.free {
			if s.free[r] {
				s.free[r] = false
				return reg(r)
			}
		}
		panic(s.f.name + ": no vector left")
	}
	for i, in := range s.code {
		regs := make([]reg, len(in.args))
		for k, a := range in.args {
			if regs[k] = a.reg; !a.pinned {
				regs[k] = at[a.id]
			}
		}
		dies := func(a val) bool { return !a.pinned && last[a.id] == i }
		d := reg(-1)
		if in.inout && dies(in.args[0]) && !reused(in.args) {
			d = regs[0]
		} else if in.inout {
			d = take()
			s.f.mov(d, regs[0])
		}
		for k, a := range in.args {
			if dies(a) && regs[k] != d {
				s.free[regs[k]] = true
			}
		}
		if !in.none && d < 0 {
			d = take()
		}
		in.emit(d, regs)
		at[i] = d
		if !in.none && last[i] == i {
			s.free[d] = true
		}
	}
	s.code = nil
}

// reused tells that the first argument is an argument again, and so must not be overwritten before.
func reused(args []val) bool {
	for _, a := range args[1:] {
		if !a.pinned && a.id == args[0].id {
			return true
		}
	}
	return false
}
