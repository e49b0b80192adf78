package cpu

import (
	"math"
	"runtime"
	"sync/atomic"

	"github.com/pt2go/pt2/internal/pool"
)

// Recurrent is one layer and direction of an LSTM or a GRU with its weights packed: made once for constant weights, shared by all runs.
type Recurrent struct {
	In, Hidden int
	gates      int       // 4: LSTM, 3: GRU
	units      int       // of a panel: a vector
	panels     int       // Hidden / units, rounded up
	input      *PackedB  // [In, panels, gates, units]
	bias       []float32 // [panels, gates, units], of the input's sums
	stateBias  []float32 // GRU: [panels, units], of the state's sums for n
	state      []float32 // [panels, Hidden, gates, units]
	stateB     *PackedB  // [Hidden, panels, gates, units], for many rows; LSTM only
}

// recurrentRows is up to how many rows of a batch go through a step one by one; more are multiplied together.
const recurrentRows = 4

// PackLSTM packs the weights of an LSTM: wih [4*hidden, in], whh [4*hidden, hidden], bih and bhh [4*hidden] or nil, with rows for the
// input, forget, cell and output gates, as PyTorch has them.
func PackLSTM(in, hidden int, wih, whh, bih, bhh []float32) *Recurrent {
	r := packRecurrent(4, in, hidden, wih, whh)
	for col := range r.panels * r.gates * r.units {
		for _, b := range [][]float32{bih, bhh} {
			if at := r.row(col); b != nil && at >= 0 {
				r.bias[col] += b[at]
			}
		}
	}
	n := len(r.bias)
	wide := make([]float32, n*hidden)
	for col := range n {
		if at := r.row(col); at >= 0 {
			copy(wide[col*hidden:(col+1)*hidden], whh[at*hidden:])
		}
	}
	r.stateB = PackB(Matrix{wide, 1, hidden}, hidden, n, false)
	return r
}

// PackGRU packs the weights of a GRU: wih [3*hidden, in], whh [3*hidden, hidden], bih and bhh [3*hidden] or nil, with rows for the
// reset, update and new gates, as PyTorch has them.
func PackGRU(in, hidden int, wih, whh, bih, bhh []float32) *Recurrent {
	r := packRecurrent(3, in, hidden, wih, whh)
	r.stateBias = make([]float32, r.panels*r.units)
	for col := range r.panels * r.gates * r.units {
		at := r.row(col)
		if at < 0 {
			continue
		}
		if bih != nil {
			r.bias[col] += bih[at]
		}
		switch fresh := at - 2*hidden; { // the state's part of n is multiplied before it is added
		case bhh == nil:
		case fresh >= 0:
			r.stateBias[fresh] = bhh[at]
		default:
			r.bias[col] += bhh[at]
		}
	}
	return r
}

func packRecurrent(gates, in, hidden int, wih, whh []float32) *Recurrent {
	r := &Recurrent{In: in, Hidden: hidden, gates: gates, units: 8}
	if hasAVX512 {
		r.units = 16
	}
	r.panels = (hidden + r.units - 1) / r.units
	cols := gates * r.units
	n := r.panels * cols
	r.bias, r.state = make([]float32, n), make([]float32, n*hidden)
	wide := make([]float32, n*in)
	for col := range n {
		at := r.row(col)
		if at < 0 {
			continue
		}
		copy(wide[col*in:(col+1)*in], wih[at*in:])
		panel := r.state[col/cols*cols*hidden+col%cols:]
		for k, v := range whh[at*hidden : (at+1)*hidden] {
			panel[k*cols] = v
		}
	}
	r.input = PackB(Matrix{wide, 1, in}, in, n, false)
	return r
}

// row is the weights' row behind a packed column, -1 for padding.
func (r *Recurrent) row(col int) int {
	panel, gate, lane := col/(r.gates*r.units), col/r.units%r.gates, col%r.units
	if unit := panel*r.units + lane; unit < r.Hidden {
		return gate*r.Hidden + unit
	}
	return -1
}

// Sequence is what a recurrent layer works on: element (t, b, i) of X [Steps, Batch, In] is at t*XStep + b*XRow + i, of Out
// [Steps, Batch, Hidden] at t*OutStep + b*OutRow + i. H, C, HN, CN [Batch, Hidden] are the states before and after; C and CN are nil
// for a GRU. Reverse goes from the last step to the first. HN may be H, CN may be C.
type Sequence struct {
	Steps, Batch    int
	X               []float32
	XStep, XRow     int
	Out             []float32
	OutStep, OutRow int
	H, C, HN, CN    []float32
	Reverse         bool
}

// recurrentRun is one run over a sequence.
type recurrentRun struct {
	*Recurrent
	s     *Sequence
	sums  []float32    // [Steps, Batch, panels, gates, units]: the input's part
	h     [2][]float32 // [Batch, panels*units]: state before a step and after it, in turns
	c     []float32    // [Batch, panels*units]
	parts int          // tickets of a step
	next  atomic.Int64 // ticket that nobody has taken
	done  atomic.Int64 // tickets that are finished
}

// Forward runs the layer over a sequence.
func (r *Recurrent) Forward(p *pool.Pool, s *Sequence) {
	wide, cols := r.panels*r.units, len(r.bias)
	buf := scratch(s.Steps*s.Batch*cols + 3*s.Batch*wide)
	defer buf.free()
	w := &recurrentRun{Recurrent: r, s: s, sums: buf.data[:s.Steps*s.Batch*cols]}
	rest := buf.data[len(w.sums):]
	clear(rest)
	w.h[0], w.h[1], w.c = rest[:s.Batch*wide], rest[s.Batch*wide:2*s.Batch*wide], rest[2*s.Batch*wide:]
	for b := range s.Batch {
		copy(w.h[0][b*wide:], s.H[b*r.Hidden:(b+1)*r.Hidden])
		if s.C != nil {
			copy(w.c[b*wide:], s.C[b*r.Hidden:(b+1)*r.Hidden])
		}
	}
	w.multiplyInput(p)
	switch {
	case s.Batch > recurrentRows && r.stateB != nil:
		w.together(p)
	default:
		w.byRows(p)
	}
	for b := range s.Batch {
		copy(s.HN[b*r.Hidden:(b+1)*r.Hidden], w.h[s.Steps%2][b*wide:])
		if s.CN != nil {
			copy(s.CN[b*r.Hidden:(b+1)*r.Hidden], w.c[b*wide:])
		}
	}
}

// multiplyInput takes the products of all steps with the input's weights at once.
func (w *recurrentRun) multiplyInput(p *pool.Pool) {
	s, cols := w.s, len(w.bias)
	ep := &Epilogue{ColBias: w.bias}
	switch {
	case s.Steps == 0:
	case s.XStep == s.Batch*s.XRow || s.Batch == 1:
		row := s.XRow
		if s.Batch == 1 {
			row = s.XStep
		}
		GemmPacked(p, s.Steps*s.Batch, Matrix{s.X, row, 1}, w.input, w.sums, cols, false, ep)
	default: // batch first
		for b := range s.Batch {
			GemmPacked(p, s.Steps, Matrix{s.X[b*s.XRow:], s.XStep, 1}, w.input, w.sums[b*cols:], s.Batch*cols, false, ep)
		}
	}
}

// at is the place in time of step i.
func (w *recurrentRun) at(i int) int {
	if w.s.Reverse {
		return w.s.Steps - 1 - i
	}
	return i
}

// together multiplies the states of the whole batch at each step.
func (w *recurrentRun) together(p *pool.Pool) {
	s, cols, wide := w.s, len(w.bias), w.panels*w.units
	for i := range s.Steps {
		sums := w.sums[w.at(i)*s.Batch*cols:][:s.Batch*cols]
		h, out := w.h[i%2], w.h[(i+1)%2]
		GemmPacked(p, s.Batch, Matrix{h, wide, 1}, w.stateB, sums, cols, true, nil)
		p.ParallelFor(s.Batch, max(1, 2048/wide), func(lo, hi int) {
			for b := lo; b < hi; b++ {
				for panel := range w.panels {
					u := b*wide + panel*w.units
					w.lstmStep(0, h[b*wide:], w.state, sums[b*cols+panel*w.gates*w.units:], w.c[u:], out[u:])
				}
				copy(s.Out[w.at(i)*s.OutStep+b*s.OutRow:][:w.Hidden], out[b*wide:])
			}
		})
	}
}

// byRows goes through the steps row by row. Workers take tickets for parts of a step; who has one for the next step waits until all
// before are done. That takes no hand-off between steps, and a worker that never comes is not missed.
func (w *recurrentRun) byRows(p *pool.Pool) {
	w.parts = 1
	if n := p.Size(); n > 1 && w.panels*w.gates*w.units*w.Hidden*w.s.Batch >= 32768 {
		w.parts = min(w.panels, 2*n)
	}
	total := int64(w.s.Steps) * int64(w.parts)
	workers := 1
	if w.parts > 1 {
		workers = p.Size()
	}
	p.ParallelFor(workers, 1, func(lo, hi int) {
		for {
			t := w.next.Add(1) - 1
			if t >= total {
				break
			}
			step := t / int64(w.parts)
			w.await(step * int64(w.parts))
			w.part(int(step), int(t%int64(w.parts)))
			w.done.Add(1)
		}
	})
	w.await(total)
}

// await waits until n tickets are done. Others are at work on them.
func (w *recurrentRun) await(n int64) {
	for i := 1; w.done.Load() < n; i++ {
		if i%1024 == 0 {
			runtime.Gosched()
		}
	}
}

// part computes the panels of one ticket.
func (w *recurrentRun) part(i, part int) {
	s, cols, wide := w.s, len(w.bias), w.panels*w.units
	h, out := w.h[i%2], w.h[(i+1)%2]
	size := w.gates * w.units
	for panel := part * w.panels / w.parts; panel < (part+1)*w.panels/w.parts; panel++ {
		weights := w.state[panel*size*w.Hidden:]
		for b := range s.Batch {
			x := w.sums[(w.at(i)*s.Batch+b)*cols+panel*size:]
			u := b*wide + panel*w.units
			if w.gates == 4 {
				w.lstmStep(w.Hidden, h[b*wide:], weights, x, w.c[u:], out[u:])
			} else {
				w.gruStep(h[b*wide:], weights, x, w.stateBias[panel*w.units:], h[u:], out[u:])
			}
			n := min(w.units, w.Hidden-panel*w.units)
			copy(s.Out[w.at(i)*s.OutStep+b*s.OutRow+panel*w.units:][:n], out[u:])
		}
	}
}

// lstmStep is a step of a panel's units; see the assembly's comment.
func (r *Recurrent) lstmStep(k int, h, w, x, c, out []float32) {
	switch {
	case hasAVX512 && r.units == 16:
		lstmStepF32AVX512(k, &h[0], &w[0], &x[0], &c[0], &out[0])
	case hasAVX2 && r.units == 8:
		lstmStepF32AVX2(k, &h[0], &w[0], &x[0], &c[0], &out[0])
	default:
		for u := range r.units {
			g := r.gateSums(k, h, w, x, u)
			c[u] = sigmoid32(g[1])*c[u] + sigmoid32(g[0])*tanh32(g[2])
			out[u] = sigmoid32(g[3]) * tanh32(c[u])
		}
	}
}

// gruStep is a step of a panel's units; see the assembly's comment.
func (r *Recurrent) gruStep(h, w, x, bias, own, out []float32) {
	switch {
	case hasAVX512 && r.units == 16:
		gruStepF32AVX512(r.Hidden, &h[0], &w[0], &x[0], &bias[0], &own[0], &out[0])
	case hasAVX2 && r.units == 8:
		gruStepF32AVX2(r.Hidden, &h[0], &w[0], &x[0], &bias[0], &own[0], &out[0])
	default:
		var none [3 * 16]float32
		for u := range r.units {
			g := r.gateSums(r.Hidden, h, w, none[:], u)
			reset, update := sigmoid32(x[u]+g[0]), sigmoid32(x[r.units+u]+g[1])
			fresh := tanh32(x[2*r.units+u] + reset*(g[2]+bias[u]))
			out[u] = fresh + update*(own[u]-fresh)
		}
	}
}

// gateSums are the sums of unit u of a panel for all gates.
func (r *Recurrent) gateSums(k int, h, w, x []float32, u int) (g [4]float32) {
	for i := range r.gates {
		col := i*r.units + u
		g[i] = x[col]
		for q := range k {
			g[i] += h[q] * w[q*r.gates*r.units+col]
		}
	}
	return g
}

func sigmoid32(x float32) float32 { return float32(sigmoid64(float64(x))) }

func tanh32(x float32) float32 { return float32(math.Tanh(float64(x))) }
