package cpu

import (
	"unsafe"

	"github.com/pt2go/pt2/internal/pool"
)

// quantKernel is a way to multiply tiles of 8-bit integers: rows and columns of a tile, and how many numbers of a row are multiplied
// at once.
type quantKernel struct {
	mr, nr, step int
	portable     bool
}

// chooseQuantKernel takes the widest that the CPU has.
func chooseQuantKernel() quantKernel {
	switch {
	case hasVNNI:
		return quantKernel{mr: 6, nr: 64, step: 4}
	case hasAVX2:
		return quantKernel{mr: 4, nr: 16, step: 2}
	}
	return quantKernel{mr: 1, nr: 16, step: 4, portable: true}
}

// PackedQuantConv is the weight of a convolution of 8-bit integers, packed once.
type PackedQuantConv struct {
	k     quantKernel
	in    int       // channels, rounded up to 4, or to 16 if depthwise
	taps  int       // of the window
	wide  int       // output channels, rounded up to the tile
	data  []int8    // [panels, taps, in/4, nr, 4]
	pairs []int32   // the same for 16-bit products: [panels, taps, in/2, nr] pairs
	each  []float32 // depthwise: [taps, in]
	sums  []int32   // of each output channel's weights
	tiles *quantTiles
}

// maxQuantTaps bounds the window of a depthwise convolution of integers: float32 holds sums of so many products exactly.
const maxQuantTaps = 1 << 24 / (255 * 128)

// CanQuantConv reports that a convolution can be computed on 8-bit integers: one group, or one channel a group, and a window of height and
// width only.
func CanQuantConv(c *Conv) bool {
	return c.Kernel[0] == 1 && c.Size[0] == 1 && c.In > 0 && (c.Groups == 1 || c.Groups == c.In && c.Out == c.In && volume(c.Kernel) <= maxQuantTaps)
}

// PackQuantConv packs w, signed 8-bit weights [Out, In/Groups, Kernel...] with zero points of 0, for a convolution that [CanQuantConv]. A
// linear layer is a convolution over one line of positions with a window of one.
func PackQuantConv(c *Conv, w []int8) *PackedQuantConv {
	if c.Groups > 1 {
		return packQuantDepthwise(c, w)
	}
	if hasAMX() {
		return packQuantTiles(c, w)
	}
	k := chooseQuantKernel()
	p := &PackedQuantConv{k: k, in: roundUp(c.In, 4), taps: volume(c.Kernel), wide: roundUp(c.Out, k.nr)}
	p.sums = make([]int32, p.wide)
	size := p.wide * p.taps * p.in
	if k.step == 2 {
		p.pairs = make([]int32, size/2)
	} else {
		p.data = make([]int8, size)
	}
	for o := range c.Out {
		panel, lane := o/k.nr, o%k.nr
		for i := range c.In {
			for t := range p.taps {
				v := w[(o*c.In+i)*p.taps+t]
				p.sums[o] += int32(v)
				at := (panel*p.taps+t)*p.in*k.nr + i/k.step*k.step*k.nr + lane*k.step + i%k.step
				if k.step == 4 {
					p.data[at] = v
				} else {
					shift := 16 * (at % 2)
					p.pairs[at/2] |= int32(uint32(uint16(int16(v))) << shift)
				}
			}
		}
	}
	return p
}

func packQuantDepthwise(c *Conv, w []int8) *PackedQuantConv {
	p := &PackedQuantConv{in: roundUp(c.In, 16), taps: volume(c.Kernel)}
	p.wide, p.k = p.in, quantKernel{nr: p.in}
	p.sums, p.each = make([]int32, p.wide), make([]float32, p.taps*p.in)
	for o := range c.Out {
		for t := range p.taps {
			v := w[o*p.taps+t]
			p.sums[o] += int32(v)
			p.each[t*p.in+o] = float32(v)
		}
	}
	return p
}

// QuantEpilogue is what happens to the sums of a quantized convolution: y = (sum of (x - zero) * w) * Scale + Bias + residual, limited to
// [Lo, Hi], then Act, then rounded to 8 bits by To, or left as float32 in Float.
type QuantEpilogue struct {
	Scale, Bias []float32 // [Out]: the input's scale times the weight's; Bias nil for none
	Times       float32   // multiplies Scale if not 0: the input's scale, where that is known late
	Residual    []uint8   // of the output's layout; nil for none
	Of          Quant     // the residual's numbers
	Lo, Hi      float32   // -Inf and Inf for no limits
	Act         Activation
	To          QuantTo
	Out         []uint8
	Float       []float32 // receives the numbers instead of Out, if set
}

// Forward computes the convolution of x [N, H, W, In] with channels last, whose integers x stand for, to [N, OutH, OutW, Out]. Sums are
// exact; the rest is float32. Padding stands for 0.
func (w *PackedQuantConv) Forward(p *pool.Pool, c *Conv, x []uint8, from Quant, ep *QuantEpilogue) {
	rows := c.N * volume(c.OutSize)
	if rows*c.Out == 0 {
		return
	}
	if w.tiles != nil {
		w.forwardTiles(p, c, x, from, ep)
		return
	}
	r := &quantRun{PackedQuantConv: w, c: c, ep: ep, rows: rows, h: c.Size[1], width: c.Size[2]}
	zero := from.Zero + from.flip()
	pad := c.Pad[1] > 0 || c.Pad[2] > 0
	if r.x = x; pad || w.in != c.In || from.Signed {
		copied := bytesScratch((c.N*(r.h+2*c.Pad[1])*(r.width+2*c.Pad[2]) + 1) * w.in)
		defer copied.free()
		r.frame(copied.data, uint8(from.flip()), uint8(zero))
	}
	sums := scratch(3 * w.wide)
	defer sums.free()
	r.offsets = unsafe.Slice((*int32)(unsafe.Pointer(&sums.data[0])), w.wide)
	r.scale, r.bias = sums.data[w.wide:2*w.wide], sums.data[2*w.wide:]
	clear(sums.data)
	for i, s := range w.sums {
		r.offsets[i] = -zero * s
	}
	ep.scales(r.scale, c.Out)
	copy(r.bias, ep.Bias)
	r.taps = make([]int, 0, w.taps)
	for kh := range c.Kernel[1] {
		for kw := range c.Kernel[2] {
			r.taps = append(r.taps, (kh*c.Dilation[1]*r.width+kw*c.Dilation[2])*w.in)
		}
	}
	r.params = requantizeParams(ep)
	if w.each != nil {
		r.depthwise(p)
		return
	}
	const block = 96 // rows that a panel of weights is multiplied with before the next
	blocks, panels := (rows+block-1)/block, w.wide/w.k.nr
	p.ParallelFor(blocks*panels, max(1, 1<<20/(block*w.k.nr*w.taps*w.in)), func(lo, hi int) {
		line := scratch(w.k.nr)
		defer line.free()
		for t := lo; t < hi; t++ {
			r.block(t%panels, t/panels*block, min(rows, (t/panels+1)*block), line.data)
		}
	})
}

// scales fills dst with the factors of n channels.
func (ep *QuantEpilogue) scales(dst []float32, n int) {
	copy(dst, ep.Scale[:n])
	if ep.Times != 0 {
		for i := range n {
			dst[i] *= ep.Times
		}
	}
}

// requantizeParams are what the functions over rows of sums take.
func requantizeParams(ep *QuantEpilogue) [9]float32 {
	return [9]float32{ep.Of.Scale, float32(ep.Of.Zero + ep.Of.flip()), asFloat(ep.Of.flip()), ep.Lo, ep.Hi, ep.To.Inv, asFloat(ep.To.Zero), asFloat(ep.To.Min), asFloat(ep.To.Max)}
}

// depthwise computes all positions channel by channel.
func (r *quantRun) depthwise(p *pool.Pool) {
	p.ParallelFor(r.rows, max(1, 16384/(r.in*r.PackedQuantConv.taps)), func(lo, hi int) {
		buf := scratch(2 * r.in)
		defer buf.free()
		acc, line := unsafe.Slice((*int32)(unsafe.Pointer(&buf.data[0])), r.in), buf.data[r.in:]
		for i := lo; i < hi; i++ {
			at := r.position(i)
			switch {
			case hasAVX512:
				quantDepthwiseAVX512(&r.x[at], &r.taps[0], len(r.taps), r.in, &r.each[0], &acc[0])
			case hasAVX2:
				quantDepthwiseAVX2(&r.x[at], &r.taps[0], len(r.taps), r.in, &r.each[0], &acc[0])
			default:
				clear(acc)
				for t, tap := range r.taps {
					for j, v := range r.x[at+tap : at+tap+r.in] {
						acc[j] += int32(v) * int32(r.each[t*r.in+j])
					}
				}
			}
			r.finishRows(acc, 1, i, 0, r.c.Out, line)
		}
	})
}

// quantRun is one run of a convolution.
type quantRun struct {
	*PackedQuantConv
	c           *Conv
	ep          *QuantEpilogue
	x           []uint8
	h, width    int // of x, frame included
	rows        int
	taps        []int
	offsets     []int32
	scale, bias []float32
	params      [9]float32
}

// frame copies the input with padding, channels rounded up, and signed integers made unsigned.
func (r *quantRun) frame(dst []uint8, flip, zero uint8) {
	c, x := r.c, r.x
	ph, pw := c.Pad[1], c.Pad[2]
	fill(dst, zero)
	for n := range c.N {
		for h := range r.h {
			line := x[(n*r.h+h)*r.width*c.In:][:r.width*c.In]
			to := dst[((n*(r.h+2*ph)+h+ph)*(r.width+2*pw)+pw)*r.in:]
			switch {
			case flip == 0 && r.in == c.In:
				copy(to, line)
			case r.in == c.In:
				for i, v := range line {
					to[i] = v ^ flip
				}
			default:
				for i := range r.width {
					for j, v := range line[i*c.In : (i+1)*c.In] {
						to[i*r.in+j] = v ^ flip
					}
				}
			}
		}
	}
	r.x, r.h, r.width = dst, r.h+2*ph, r.width+2*pw
}

func fill(dst []uint8, v uint8) {
	if v == 0 || len(dst) == 0 {
		clear(dst)
		return
	}
	dst[0] = v
	for n := 1; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// block computes output positions [from, to) for one panel of channels.
func (r *quantRun) block(panel, from, to int, line []float32) {
	var acc [6 * 64]int32
	var at [6]int
	k, cols := &r.k, min(r.k.nr, r.c.Out-panel*r.k.nr)
	for i := from; i < to; i += k.mr {
		n := min(k.mr, to-i)
		for j := range k.mr {
			at[j] = r.position(i + min(j, n-1))
		}
		switch {
		case k.portable:
			r.tileGeneric(panel, at[0], acc[:])
		case k.step == 4:
			quantTileVNNI(&r.x[0], &at[0], &r.taps[0], len(r.taps), r.in/4, &r.data[panel*len(r.taps)*r.in*k.nr], &acc[0])
		default:
			quantTileAVX2(&r.x[0], &at[0], &r.taps[0], len(r.taps), r.in/2, &r.pairs[panel*len(r.taps)*r.in*k.nr/2], &acc[0])
		}
		r.finishRows(acc[:], n, i, panel*k.nr, cols, line)
	}
}

// position is the offset in x of the first number that output position i reads.
func (r *quantRun) position(i int) int {
	c := r.c
	if c.Stride == [3]int{1, 1, 1} && len(r.taps) == 1 && c.OutSize == c.Size {
		return i * r.in
	}
	ow, oh := i%c.OutSize[2], i/c.OutSize[2]%c.OutSize[1]
	n := i / (c.OutSize[2] * c.OutSize[1])
	return ((n*r.h+oh*c.Stride[1])*r.width + ow*c.Stride[2]) * r.in
}

func (r *quantRun) tileGeneric(panel, at int, acc []int32) {
	clear(acc[:r.k.nr])
	w := r.data[panel*len(r.taps)*r.in*r.k.nr:]
	for _, tap := range r.taps {
		for g := 0; g < r.in; g += 4 {
			x := r.x[at+tap+g : at+tap+g+4]
			for lane := range r.k.nr {
				for j, v := range x {
					acc[lane] += int32(v) * int32(w[lane*4+j])
				}
			}
			w = w[4*r.k.nr:]
		}
	}
}

// finishRows turns the sums of n positions from i on into results for cols channels from ch on. line is room for a row.
func (r *quantRun) finishRows(acc []int32, n, i, ch, cols int, line []float32) {
	ep, nr, out := r.ep, r.k.nr, r.c.Out
	if !hasAVX2 || ep.Float != nil && cols&15 != 0 || ep.Act.Kind != ActNone || ep.Float == nil && cols < nr {
		for j := range n {
			r.finish(acc[j*nr:(j+1)*nr], i+j, ch, cols, line)
		}
		return
	}
	at := i*out + ch
	residual := (*uint8)(nil)
	if ep.Residual != nil {
		residual = &ep.Residual[at]
	}
	if ep.Float != nil {
		kernel := sumsToF32AVX2
		if hasAVX512 {
			kernel = sumsToF32AVX512
		}
		kernel(n, cols, nr, out, &acc[0], &r.offsets[ch], &r.scale[ch], &r.bias[ch], residual, &r.params[0], &ep.Float[at])
		return
	}
	if hasAVX512 {
		requantizeAVX512(n, nr, nr, out, &acc[0], &r.offsets[ch], &r.scale[ch], &r.bias[ch], residual, &r.params[0], &ep.Out[at])
	} else {
		requantizeAVX2(n, nr, nr, out, &acc[0], &r.offsets[ch], &r.scale[ch], &r.bias[ch], residual, &r.params[0], &ep.Out[at])
	}
}

// finish is finishRows for one position, by way of float32.
func (r *quantRun) finish(acc []int32, i, ch, cols int, line []float32) {
	ep, at := r.ep, i*r.c.Out+ch
	if ep.Float != nil {
		line = ep.Float[at:]
	}
	line = line[:cols]
	r.numbers(line, acc, at, ch, cols)
	if ep.Act.Kind != ActNone {
		ep.Act.Apply(line, line)
	}
	if ep.Float == nil {
		QuantizeF32(ep.Out[at:at+cols], line, ep.To)
	}
}

// numbers gives the numbers behind the sums of cols channels from ch on, limited.
func (r *quantRun) numbers(line []float32, acc []int32, at, ch, cols int) {
	ep, n := r.ep, 0
	if full := cols &^ 15; hasAVX2 && full > 0 {
		n = full
		residual := (*uint8)(nil)
		if ep.Residual != nil {
			residual = &ep.Residual[at]
		}
		if hasAVX512 {
			sumsToF32AVX512(1, n, 0, 0, &acc[0], &r.offsets[ch], &r.scale[ch], &r.bias[ch], residual, &r.params[0], &line[0])
		} else {
			sumsToF32AVX2(1, n, 0, 0, &acc[0], &r.offsets[ch], &r.scale[ch], &r.bias[ch], residual, &r.params[0], &line[0])
		}
	}
	for j := n; j < cols; j++ {
		f := fma32(float32(acc[j]+r.offsets[ch+j]), r.scale[ch+j], r.bias[ch+j])
		if ep.Residual != nil {
			f = fma32(float32(int32(ep.Residual[at+j])^ep.Of.flip())-float32(ep.Of.Zero+ep.Of.flip()), ep.Of.Scale, f)
		}
		line[j] = smaller(larger(f, ep.Lo), ep.Hi)
	}
}
