package aten

// Generator is PyTorch's CPU random number generator: mt19937 (Matsumoto and Nishimura 1998), seeded by the low 32 bits of
// the seed. It is not safe for concurrent use.
type Generator struct {
	state [624]uint32
	next  int
	// normal holds the second number of a pair that randn made, as PyTorch keeps it between calls.
	normal    float64
	hasNormal bool
}

// NewGenerator makes a generator as torch.manual_seed(seed) leaves it.
func NewGenerator(seed uint64) *Generator {
	g := &Generator{}
	g.Seed(seed)
	return g
}

// Seed restarts the stream.
func (g *Generator) Seed(seed uint64) {
	g.state[0] = uint32(seed)
	for i := 1; i < len(g.state); i++ {
		p := g.state[i-1]
		g.state[i] = 1812433253*(p^p>>30) + uint32(i)
	}
	g.next = len(g.state)
	g.hasNormal = false
}

// Uint32 draws the next 32-bit output.
func (g *Generator) Uint32() uint32 {
	if g.next == len(g.state) {
		g.refill()
	}
	y := g.state[g.next]
	g.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (g *Generator) refill() {
	const n, m = len(g.state), 397
	for i := range g.state {
		y := g.state[i]&0x80000000 | g.state[(i+1)%n]&0x7fffffff
		v := g.state[(i+m)%n] ^ y>>1
		if y&1 != 0 {
			v ^= 0x9908b0df
		}
		g.state[i] = v
	}
	g.next = 0
}

// Uint64 draws two outputs, the first one high.
func (g *Generator) Uint64() uint64 {
	hi := uint64(g.Uint32())
	return hi<<32 | uint64(g.Uint32())
}
