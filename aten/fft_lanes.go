package aten

import (
	"math"
	"unsafe"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// Transforms of many rows of float32 numbers go 16 at a time through cpu.FFT. Others, and lengths that it has no kernels for, are computed
// in double precision row by row (fft_kernel.go).

// lanesPoints is up to how many points, of all dimensions, a transform goes in single precision: beyond it the sums' rounding errors would
// stand out from those of PyTorch's results.
const lanesPoints = 512

// fewRows is up to how many rows are not worth filling 16 lanes.
const fewRows = 3

// fftRows is what one pass over a dimension does.
type fftRows struct {
	x, o     *tensor.Tensor
	d        int
	scale    float32
	room     int                               // numbers of x and of work
	get, put int                               // numbers of a row, real ones if x or o are
	run      func(x, work []float32) []float32 // in which the result is
}

// rowsBeside counts the rows along dimension d.
func rowsBeside(t *tensor.Tensor, d int) int64 {
	return t.Numel() / max(t.Sizes()[d], 1)
}

// lanesC2C is c2cKernel for complex64; false where it does not serve.
func lanesC2C(k *Kernel) bool {
	x, o := k.T(0), k.Out[0]
	if len(k.I64s(1)) == 0 || !lanesTake(x, o) {
		return false
	}
	dims := WrapDims(k.I64s(1), x.Dim())
	plans, n := fftPlans(x, dims)
	if plans == nil || n > lanesPoints {
		return false
	}
	scale := fftScale(n, k.I64(2))
	for i, d := range dims {
		if i > 0 {
			x, scale = o, 1
		}
		passC2C(k, plans[i], x, o, d, scale, k.Bool(3))
	}
	return true
}

// lanesR2C is r2cKernel for float32.
func lanesR2C(k *Kernel) bool {
	x, o := k.T(0), k.Out[0]
	dims := WrapDims(k.I64s(1), x.Dim())
	last := dims[len(dims)-1]
	if !lanesTake(x, o) || rowsBeside(x, last) <= fewRows {
		return false
	}
	if !k.Bool(3) { // both halves: as complex numbers
		plans, n := fftPlans(o, dims)
		if plans == nil || n > lanesPoints {
			return false
		}
		Copy(k.Pool, o, x)
		scale := fftScale(n, k.I64(2))
		for i, d := range dims {
			passC2C(k, plans[i], o, o, d, scale, true)
			scale = 1
		}
		return true
	}
	size := x.Sizes()[last]
	f := cpu.NewRealFFT(int(size))
	plans, n := fftPlans(o, dims[:len(dims)-1])
	if f == nil || plans == nil || n*size > lanesPoints {
		return false
	}
	h := int(size/2 + 1)
	(&fftRows{x: x, o: o, d: last, scale: fftScale(n*size, k.I64(2)) / 2, room: 2 * h, get: int(size), put: h, run: f.Forward}).pass(k)
	for i, d := range dims[:len(dims)-1] {
		passC2C(k, plans[i], o, o, d, 1, true)
	}
	return true
}

// lanesC2R is c2rKernel for complex64.
func lanesC2R(k *Kernel) bool {
	x, o := k.T(0), k.Out[0]
	dims := WrapDims(k.I64s(1), x.Dim())
	last, size := dims[len(dims)-1], k.I64(3)
	if !lanesTake(x, o) || x.Sizes()[last] < size/2+1 || rowsBeside(x, last) <= fewRows {
		return false
	}
	f := cpu.NewRealFFT(int(size))
	plans, n := fftPlans(x, dims[:len(dims)-1])
	if f == nil || plans == nil || n*size > lanesPoints {
		return false
	}
	for i, d := range dims[:len(dims)-1] {
		to := x
		if i == 0 {
			to = tensor.New(tensor.Complex64, x.Sizes()...)
		}
		passC2C(k, plans[i], x, to, d, 1, false)
		x = to
	}
	h := int(size/2 + 1)
	(&fftRows{x: x, o: o, d: last, scale: fftScale(n*size, k.I64(2)), room: 2 * h, get: h, put: int(size), run: f.Backward}).pass(k)
	return true
}

// lanesTake reports that the numbers of x and o can be read and written where they lie.
func lanesTake(x, o *tensor.Tensor) bool {
	single := func(t *tensor.Tensor) bool { return t.DType() == tensor.Float32 || t.DType() == tensor.Complex64 }
	return single(x) && single(o) && x.Dim() > 0 && x.Numel() > 0 && o.Numel() > 0 && !x.IsConj() && !x.IsNeg()
}

// fftPlans plans the dimensions of t and counts the points of a transform; nil if one of them is not for lanes.
func fftPlans(t *tensor.Tensor, dims []int) ([]*cpu.FFT, int64) {
	plans, n := make([]*cpu.FFT, len(dims)), int64(1)
	for i, d := range dims {
		plans[i] = cpu.NewFFT(int(t.Sizes()[d]))
		if plans[i] == nil || rowsBeside(t, d) <= fewRows {
			return nil, 0
		}
		n *= t.Sizes()[d]
	}
	return plans, n
}

func fftScale(n, mode int64) float32 {
	switch mode {
	case 1:
		return float32(1 / math.Sqrt(float64(n)))
	case 2:
		return float32(1 / float64(n))
	}
	return 1
}

func passC2C(k *Kernel, f *cpu.FFT, x, o *tensor.Tensor, d int, scale float32, forward bool) {
	n := int(x.Sizes()[d])
	(&fftRows{x: x, o: o, d: d, scale: scale, room: 2 * n, get: n, put: n,
		run: func(x, work []float32) []float32 { return f.Transform(x, work, forward) }}).pass(k)
}

// pass transforms all rows.
func (r *fftRows) pass(k *Kernel) {
	outer := func(t *tensor.Tensor) []int64 {
		u := dropDim(t, r.d)
		return rowMajorOffsets(u.Sizes(), u.Strides())
	}
	from, to := outer(r.x), outer(r.o)
	var blocks []int // where they begin
	for i := 0; i < len(from); {
		blocks = append(blocks, i)
		i += evenRun(from[i:], to[i:])
	}
	blocks = append(blocks, len(from))
	k.Pool.ParallelFor(len(blocks)-1, max(1, grain/(r.room*cpu.FFTLanes)), func(lo, hi int) {
		buf := make([]float32, 2*r.room*cpu.FFTLanes)
		x, work := buf[:len(buf)/2], buf[len(buf)/2:]
		for _, i := range blocks[lo:hi] {
			n := evenRun(from[i:], to[i:])
			load := lanesOf(r.x, r.d, from[i:i+n])
			load.read(x, r.get)
			y := r.run(x, work)
			store := lanesOf(r.o, r.d, to[i:i+n])
			if r.scale != 1 {
				y = y[:r.put*store.floats*cpu.FFTLanes]
				cpu.MulScalarF32(y, y, r.scale)
			}
			store.write(y, r.put)
		}
	})
}

// evenRun counts the rows from the first on, 16 at most, that lie at equal distances on both sides, none before the one before it.
func evenRun(a, b []int64) int {
	n := min(len(a), cpu.FFTLanes)
	if n > 1 && (a[1] < a[0] || b[1] < b[0]) {
		return 1
	}
	for i := 2; i < n; i++ {
		if a[i]-a[i-1] != a[1]-a[0] || b[i]-b[i-1] != b[1]-b[0] {
			return i
		}
	}
	return n
}

// fftLanes are up to 16 rows at equal distances.
type fftLanes struct {
	data   []float32 // from the first number of the first row on
	floats int       // of a number: 2 if it is complex
	n      int
	row    int // from one row to the next, in numbers
	step   int // from one number to the next
}

func lanesOf(t *tensor.Tensor, d int, rows []int64) fftLanes {
	l := fftLanes{floats: 1, n: len(rows), step: int(t.Strides()[d])}
	if t.DType() == tensor.Complex64 {
		l.floats = 2
	}
	if l.n > 1 {
		l.row = int(rows[1] - rows[0])
	}
	last := int(t.Sizes()[d]-1)*l.step + (l.n-1)*l.row
	p := unsafe.Add(base(t), rows[0]*int64(4*l.floats))
	l.data = unsafe.Slice((*float32)(p), (max(last, 0)+1)*l.floats)
	return l
}

// read puts the first n numbers of each row into its lane.
func (l *fftLanes) read(x []float32, n int) {
	if l.step == 1 && l.row > 0 {
		cpu.TransposeF32(x, l.data, l.n, n*l.floats, cpu.FFTLanes, l.row*l.floats)
		return
	}
	if l.row == 1 && l.step > 0 && l.n == cpu.FFTLanes && l.floats == 2 {
		cpu.SplitComplex(x, l.data, n, l.step)
		return
	}
	for j := range n {
		for f := range l.floats {
			to := x[(j*l.floats+f)*cpu.FFTLanes:][:l.n]
			for i := range to {
				to[i] = l.data[(i*l.row+j*l.step)*l.floats+f]
			}
		}
	}
}

// write is the way back.
func (l *fftLanes) write(y []float32, n int) {
	if l.step == 1 && l.row > 0 {
		cpu.TransposeF32(l.data, y, n*l.floats, l.n, l.row*l.floats, cpu.FFTLanes)
		return
	}
	if l.row == 1 && l.step > 0 && l.n == cpu.FFTLanes && l.floats == 2 {
		cpu.JoinComplex(l.data, y, n, l.step)
		return
	}
	for j := range n {
		for f := range l.floats {
			from := y[(j*l.floats+f)*cpu.FFTLanes:][:l.n]
			for i, v := range from {
				l.data[(i*l.row+j*l.step)*l.floats+f] = v
			}
		}
	}
}
