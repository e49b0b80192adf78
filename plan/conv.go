package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/internal/mmap"
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// convOp is a convolution with channels last, a packed weight and an epilogue.
var convOp = internal(&aten.Op{
	Schema: "plan::conv(Tensor x, Tensor? residual, Conv conv) -> Tensor",
	Shape:  func(a *aten.Args) []aten.Meta { return nil },
	CPU: func(k *aten.Kernel) {
		c := k.V[2].(*conv)
		x, out := tensor.Data[float32](k.T(0)), tensor.Data[float32](k.Out[0])
		if c.transposed {
			cpu.TransposedNHWC(k.Pool, &c.Conv, c.packed, x, out, c.kernel(k.OptT(1)))
			return
		}
		cpu.ConvNHWC(k.Pool, &c.Conv, c.packed, x, out, c.kernel(k.OptT(1)))
	},
})

// conv describes a convolution instruction.
type conv struct {
	cpu.Conv
	epilogue
	transposed bool
	weight     *aten.Value
	packed     *cpu.PackedConv
}

// String is "3x3 64->128 /2 relu".
func (c *conv) String() string {
	s := fmt.Sprintf("%s %d->%d", spatial(c.Kernel), c.In, c.Out)
	if c.transposed {
		s = "transposed " + s
	}
	if c.Groups > 1 {
		s += fmt.Sprintf(" groups %d", c.Groups)
	}
	if c.Stride != [3]int{1, 1, 1} {
		s += " /" + spatial(c.Stride)
	}
	if c.Dilation != [3]int{1, 1, 1} {
		s += " dilation " + spatial(c.Dilation)
	}
	if t := c.text(); t != "" {
		s += " " + t
	}
	return s
}

func spatial(v [3]int) string {
	if v[0] == 1 {
		return fmt.Sprintf("%dx%d", v[1], v[2])
	}
	return fmt.Sprintf("%dx%dx%d", v[0], v[1], v[2])
}

// lowerConvolutions is the pass that makes convolutions with constant float32 weights the planner's own.
func (g *graph) lowerConvolutions() {
	copies := map[*Buffer]*aten.Value{}
	for i, in := range g.instrs {
		if in.Op.Name() != "aten.convolution.default" {
			continue
		}
		x, w, bias, out := in.Args.Tensor(0), in.Args.Tensor(1), in.Args.OptTensor(2), in.Outs[0]
		if w.T == nil || w.DType != tensor.Float32 || (bias != nil && bias.T == nil) || x.T != nil && x.Conj || out.Numel().Int64() == 0 {
			continue
		}
		if !covers(out) || !lastIsC(out) {
			continue
		}
		c := &conv{Conv: aten.ConvSpec(in.Args, &out.Meta), transposed: in.Args.Bool(6), weight: w}
		c.cols = c.Out
		if bias != nil {
			c.bias = floats(bias)
		}
		padding := -1
		if !c.transposed {
			x, padding = g.unpadded(&c.Conv, x, i)
			c.dropTaps()
			c.Planar = x.IsContiguous() && !x.Conj && !x.Neg && !lastIsC(x) && c.TakesPlanar()
		}
		if !c.Planar {
			x = g.lastC(x, i, copies)
		}
		in = &Instr{Op: convOp, Args: &aten.Args{Op: convOp, V: []any{x, nil, c}}, Outs: in.Outs}
		g.set(i, in)
		if padding >= 0 && len(g.instrs[padding].Outs) == 1 {
			if b := bufferOf(g.instrs[padding].Outs[0]); len(b.readers) == 0 && !b.given {
				g.remove(padding)
			}
		}
	}
}

// unpadded looks through an instruction that pads x with zeros: a convolution that pads by itself needs no copy, and may pad before and
// behind its input by different numbers. It gives what is padded and the place of the instruction, or x and -1.
func (g *graph) unpadded(c *cpu.Conv, x *aten.Value, i int) (*aten.Value, int) {
	at, out := g.producer(x)
	if at < 0 || !aligned(x, out) || g.instrs[at].Op.Name() != "aten.constant_pad_nd.default" {
		return x, -1
	}
	a := g.instrs[at].Args
	src, pad := a.Tensor(0), a.I64s(1)
	n := x.Dim() - 2
	if a.Scalar(2).Kind == aten.ComplexScalar || a.Scalar(2).Float64() != 0 || len(pad) > 2*n || src.T != nil || src.DType != tensor.Float32 || !g.stable(src, at, i) {
		return x, -1
	}
	for _, p := range pad {
		if p < 0 {
			return x, -1
		}
	}
	for d := range n { // from the last dimension on
		if 2*d < len(pad) {
			c.Pad[2-d] += int(pad[2*d])
			c.Size[2-d] = int(src.Sizes[x.Dim()-1-d].Int64())
		}
	}
	return src, at
}

// dropTaps leaves out the taps of the kernel, at its ends, that meet nothing but padding, as those of strongly dilated convolutions of
// small images do.
func (c *conv) dropTaps() {
	t := c.weight.T
	sizes, offset := append([]int64(nil), t.Sizes()...), t.Offset()
	for d := range 3 {
		w := d - 3 + t.Dim() // the weight's dimension
		if w < 2 {
			continue
		}
		step := c.Dilation[d]
		first, last := 0, c.Kernel[d]-1
		for first < last && first*step-c.Pad[d]+(c.OutSize[d]-1)*c.Stride[d] < 0 && (first+1)*step <= c.Pad[d] {
			first++
		}
		for last > first && last*step-c.Pad[d] >= c.Size[d] {
			last--
		}
		c.Kernel[d], c.Pad[d] = last-first+1, c.Pad[d]-first*step
		if c.Kernel[d] == 1 {
			c.Dilation[d] = 1
		}
		sizes[w] = int64(c.Kernel[d])
		offset += int64(first) * t.Strides()[w]
	}
	if offset != t.Offset() || volumeOf(sizes) != t.Numel() {
		c.weight = aten.FromTensor(t.WithView(sizes, t.Strides(), offset))
	}
}

func volumeOf(sizes []int64) int64 {
	n := int64(1)
	for _, s := range sizes {
		n *= s
	}
	return n
}

// lastIsC reports that v lies in memory as [N, ..., C] without gaps.
func lastIsC(v *aten.Value) bool {
	want := channelsLast(v.Sizes)
	for d, s := range v.Sizes {
		if s.Int64() > 1 && !v.Strides[d].Eq(want[d]) {
			return false
		}
	}
	return true
}

// lastC gives x with channels last: x itself, or a copy made before instruction i.
func (g *graph) lastC(x *aten.Value, i int, copies map[*Buffer]*aten.Value) *aten.Value {
	if lastIsC(x) && !x.Conj && !x.Neg {
		return x
	}
	var b *Buffer
	if x.T == nil {
		b = bufferOf(x)
		if c := copies[b]; c != nil && covers(x) && len(b.writers) == 1 && aten.SameSizes(c.Sizes, x.Sizes) {
			return c
		}
	}
	m := x.Meta
	m.Strides = channelsLast(x.Sizes)
	c := g.fresh(m)
	g.insert(i, &Instr{Op: copyOp, Args: &aten.Args{Op: copyOp, V: []any{x}}, Outs: []*aten.Value{c}})
	if b != nil && covers(x) {
		copies[b] = c
	}
	return c
}

// floats gives the numbers of a constant vector as float32.
func floats(v *aten.Value) []float32 {
	f := make([]float32, v.T.Numel())
	for i := range f {
		f[i] = float32(v.T.Float(int64(i)))
	}
	return f
}

// packWeights is the pass that puts weights in the order of the kernels, scaled by what was folded into them. Large ones come first: while
// a weight is packed it is in memory twice, so that should be while the others are not there yet.
func (g *graph) packWeights() {
	type job struct {
		size int64
		pack func(cache *Cache, scratch *[]float32)
	}
	var jobs []job
	add := func(w *aten.Value, pack func(cache *Cache, scratch *[]float32)) {
		jobs = append(jobs, job{w.T.Numel(), pack})
	}
	for _, in := range g.instrs {
		switch in.Op {
		case convOp, convCatOp:
			c := in.Args.V[2].(*conv)
			add(c.weight, c.pack)
		case pairOp:
			c := in.Args.V[1].(*pair)
			add(c.first.weight, c.first.pack)
			add(c.second.weight, c.second.pack)
		case linearOp:
			l := in.Args.V[2].(*linear)
			add(l.weight, l.pack)
		}
	}
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(b.size, a.size) })
	g.pool.ParallelFor(len(jobs), 1, func(lo, hi int) {
		var scratch []float32
		for _, j := range jobs[lo:hi] {
			j.pack(g.opts.Cache, &scratch)
		}
	})
}

// grow gives n elements of scratch memory.
func grow(scratch *[]float32, n int) []float32 {
	if cap(*scratch) < n {
		*scratch = make([]float32, n)
	}
	return (*scratch)[:n]
}

// release gives a mapped weight's memory back after it was packed.
func release(v *aten.Value) { mmap.Drop(extent(v)) }

// extent is the memory that the elements of a constant lie in.
func extent(v *aten.Value) []byte {
	t := v.T
	last := int64(1)
	for i, n := range t.Sizes() {
		last += (n - 1) * t.Strides()[i]
	}
	size := int64(t.DType().Size())
	return t.Storage().Bytes()[t.Offset()*size : (t.Offset()+last)*size]
}

// pack packs the weight; other plans with the same weight share it, whatever their sizes.
func (c *conv) pack(cache *Cache, scratch *[]float32) {
	kind := fmt.Sprintf("conv %v %v %v %v %d %t %s", c.Kernel, c.Stride, c.Pad, c.Dilation, c.Groups, c.transposed, c.how)
	c.packed = cache.get(kind, func() any {
		mmap.Want(extent(c.weight))
		w := contiguous(c.weight)
		defer release(c.weight)
		if !c.transposed {
			return cpu.PackConv(&c.Conv, w, c.scale, true)
		}
		if c.scale != nil {
			w = c.scaled(w, grow(scratch, len(w)))
		}
		return cpu.PackTransposed(&c.Conv, w, true)
	}, append([]*aten.Value{c.weight}, c.consts...)...).(*cpu.PackedConv)
}

// scaled multiplies the filters of each output channel of a transposed convolution into r. w is [In, Out/Groups, kernel].
func (c *conv) scaled(w, r []float32) []float32 {
	outG, inG := c.Out/c.Groups, c.In/c.Groups
	per := len(w) / (c.In * outG)
	for i := range c.In {
		for o := range outG {
			at := (i*outG + o) * per
			cpu.MulScalarF32(r[at:at+per], w[at:at+per], c.scale[i/inG*outG+o])
		}
	}
	return r
}

// contiguous gives the elements of a float32 constant in row-major order, copied only if they lie otherwise.
func contiguous(v *aten.Value) []float32 {
	t := v.T
	if !t.IsContiguous() || t.IsNeg() {
		c := tensor.New(tensor.Float32, t.Sizes()...)
		aten.Copy(nil, c, t)
		t = c
	}
	return tensor.Contiguous[float32](t)
}
