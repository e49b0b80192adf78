package main

// pass is a loop over n elements of several slices of float32.
type pass struct {
	f      *function
	in     []reg // pointers that advance
	out    reg   // -1 for reductions
	n      reg
	unroll int
	kept   []reg // vectors that the body does not own
	body   func(s *straight, in []val, lane int, one bool) val
}

// emit writes the loop. One element that is left is the first lane of a vector, the others are zeros: one is true then.
func (p *pass) emit() {
	f := p.f
	round := func(label, next string, vectors int) {
		f.label(label)
		f.op("CMP $%d, R%d", 4*vectors, p.n)
		f.op("BLT %s", next)
		s := newStraight(f, p.kept...)
		results := make([]val, vectors)
		in := make([][]val, vectors)
		for v := range vectors {
			for _, r := range p.in {
				in[v] = append(in[v], s.load(r, 16*v))
			}
		}
		for v := range vectors {
			results[v] = p.body(s, in[v], v, false)
		}
		if p.out >= 0 {
			for v, y := range results {
				s.store(y, p.out, 16*v)
			}
		}
		s.finish()
		for _, r := range p.pointers() {
			f.op("ADD $%d, R%d", 16*vectors, r)
		}
		f.op("SUB $%d, R%d", 4*vectors, p.n)
		f.op("B %s", label)
	}
	if p.unroll > 1 {
		round("many", "vector", p.unroll)
	}
	round("vector", "single", 1)
	f.label("single")
	f.op("CBZ R%d, done", p.n)
	s := newStraight(f, p.kept...)
	var in []val
	for _, r := range p.in {
		in = append(in, s.loadOne(r))
	}
	y := p.body(s, in, 0, true)
	if p.out >= 0 {
		s.storeOne(y, p.out)
	}
	s.finish()
	for _, r := range p.pointers() {
		f.op("ADD $4, R%d", r)
	}
	f.op("SUB $1, R%d", p.n)
	f.op("B single")
	f.label("done")
}

func (p *pass) pointers() []reg {
	if p.out < 0 {
		return p.in
	}
	return append([]reg{p.out}, p.in...)
}
