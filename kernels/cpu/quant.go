package cpu

import (
	"math"
	"sync"
	"unsafe"

	"github.com/pt2go/pt2/internal/pool"
)

// Quant says which numbers 8-bit integers q stand for: (q - Zero) * Scale. Signed integers are held in bytes in two's complement.
type Quant struct {
	Scale  float32
	Zero   int32
	Signed bool
}

// flip turns the integers into unsigned ones when exclusive-ored, which adds as much to the zero point.
func (q *Quant) flip() int32 {
	if q.Signed {
		return 0x80
	}
	return 0
}

// QuantTo is a rounding of float32 to 8-bit integers: clamp(round(x * Inv) + Zero, Min, Max), halves to even, as
// quantized_decomposed.quantize_per_tensor has it, with Inv the float32 of 1/scale.
type QuantTo struct {
	Inv            float32
	Zero, Min, Max int32
}

// QuantizeF32 rounds x to 8-bit integers. NaN becomes 0.
func QuantizeF32(dst []uint8, x []float32, q QuantTo) {
	const block = 1024
	params := [4]float32{q.Inv, asFloat(q.Zero), asFloat(q.Min), asFloat(q.Max)}
	for len(x) > 0 {
		part := x[:min(len(x), block)]
		n := 0
		if full := len(part) &^ 15; hasAVX2 && full > 0 && MaxF32(part) == MaxF32(part) {
			n = full
			if hasAVX512 {
				quantizeF32AVX512(&dst[0], &part[0], n, &params[0])
			} else {
				quantizeF32AVX2(&dst[0], &part[0], n, &params[0])
			}
		}
		for j := n; j < len(part); j++ {
			dst[j] = uint8(q.one(part[j]))
		}
		dst, x = dst[len(part):], x[len(part):]
	}
}

// one rounds one number.
func (q *QuantTo) one(x float32) int32 {
	if x != x {
		return 0
	}
	v := float32(math.RoundToEven(float64(x*q.Inv))) + float32(q.Zero)
	return int32(min(max(v, float32(q.Min)), float32(q.Max)))
}

// DequantizeF32 is (x - Zero) * Scale.
func DequantizeF32(dst []float32, x []uint8, q Quant) {
	n, zero := 0, float32(q.Zero+q.flip())
	if full := len(dst) &^ 15; hasAVX2 && full > 0 {
		n = full
		if hasAVX512 {
			dequantizeF32AVX512(&dst[0], &x[0], n, q.flip(), zero, q.Scale)
		} else {
			dequantizeF32AVX2(&dst[0], &x[0], n, q.flip(), zero, q.Scale)
		}
	}
	for i := n; i < len(dst); i++ {
		dst[i] = (float32(int32(x[i])^q.flip()) - zero) * q.Scale
	}
}

func asFloat(i int32) float32 { return math.Float32frombits(uint32(i)) }

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
	in    int     // channels, rounded up to 4
	taps  int     // of the window
	wide  int     // output channels, rounded up to the tile
	data  []int8  // [panels, taps, in/4, nr, 4]
	pairs []int32 // the same for 16-bit products: [panels, taps, in/2, nr] pairs
	sums  []int32 // of each output channel's weights
}

// PackQuantConv packs w, signed 8-bit weights [Out, In, Kernel...] with zero points of 0, for a convolution with one group and a window
// of height and width (Kernel[0] is 1). A linear layer is a convolution over one line of positions with a window of one.
func PackQuantConv(c *Conv, w []int8) *PackedQuantConv {
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

// QuantEpilogue is what happens to the sums of a quantized convolution: y = (sum of (x - zero) * w) * Scale + Bias + residual, limited to
// [Lo, Hi], then rounded to 8 bits by To, or left as float32 in Float.
type QuantEpilogue struct {
	Scale, Bias []float32 // [Out]: the input's scale times the weight's; Bias nil for none
	Residual    []uint8   // of the output's layout; nil for none
	Of          Quant     // the residual's numbers
	Lo, Hi      float32   // -Inf and Inf for no limits
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
	copy(r.scale, ep.Scale[:c.Out])
	copy(r.bias, ep.Bias)
	r.taps = make([]int, 0, w.taps)
	for kh := range c.Kernel[1] {
		for kw := range c.Kernel[2] {
			r.taps = append(r.taps, (kh*c.Dilation[1]*r.width+kw*c.Dilation[2])*w.in)
		}
	}
	r.params = [9]float32{ep.Of.Scale, float32(ep.Of.Zero + ep.Of.flip()), asFloat(ep.Of.flip()), ep.Lo, ep.Hi, ep.To.Inv, asFloat(ep.To.Zero), asFloat(ep.To.Min), asFloat(ep.To.Max)}
	const block = 96 // rows that a panel of weights is multiplied with before the next
	blocks, panels := (rows+block-1)/block, w.wide/w.k.nr
	p.ParallelFor(blocks*panels, max(1, 1<<20/(block*w.k.nr*w.taps*w.in)), func(lo, hi int) {
		for t := lo; t < hi; t++ {
			r.block(t%panels, t/panels*block, min(rows, (t/panels+1)*block))
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
func (r *quantRun) block(panel, from, to int) {
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
		for j := range n {
			r.finish(acc[j*k.nr:(j+1)*k.nr], i+j, panel*k.nr, cols)
		}
	}
}

// position is the offset in x of the first number that output position i reads.
func (r *quantRun) position(i int) int {
	c := r.c
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

// finish turns the sums of one position into results for cols channels from ch on.
func (r *quantRun) finish(acc []int32, i, ch, cols int) {
	ep, at := r.ep, i*r.c.Out+ch
	if ep.Float != nil || !hasAVX2 {
		for j := range cols {
			f := r.number(acc[j], at, ch, j)
			if ep.Float != nil {
				ep.Float[at+j] = f
			} else {
				ep.Out[at+j] = uint8(ep.To.one(f))
			}
		}
		return
	}
	out, residual := &ep.Out[at], (*uint8)(nil)
	var edge, result [64]uint8
	if ep.Residual != nil {
		residual = &ep.Residual[at]
	}
	if cols < len(acc) { // the panel is wider than what is left of the line
		out = &result[0]
		if residual != nil {
			copy(edge[:], ep.Residual[at:at+cols])
			residual = &edge[0]
		}
	}
	if hasAVX512 {
		requantizeAVX512(len(acc), &acc[0], &r.offsets[ch], &r.scale[ch], &r.bias[ch], residual, &r.params[0], out)
	} else {
		requantizeAVX2(len(acc), &acc[0], &r.offsets[ch], &r.scale[ch], &r.bias[ch], residual, &r.params[0], out)
	}
	if cols < len(acc) {
		copy(ep.Out[at:at+cols], result[:])
	}
}

// number is the number behind the sum of channel ch+j.
func (r *quantRun) number(sum int32, at, ch, j int) float32 {
	ep := r.ep
	f := float32(sum+r.offsets[ch+j])*r.scale[ch+j] + r.bias[ch+j]
	if ep.Residual != nil {
		f += (float32(int32(ep.Residual[at+j])^ep.Of.flip()) - float32(ep.Of.Zero+ep.Of.flip())) * ep.Of.Scale
	}
	return smaller(larger(f, ep.Lo), ep.Hi)
}

// MaxPoolNHWCU8 is the largest number of each window of x [N, H, W, C] with channels last, of unsigned (or, with signed, of signed)
// 8-bit integers; c.In is C, and padding does not count.
func MaxPoolNHWCU8(p *pool.Pool, c *Conv, x, out []uint8, signed bool) {
	flip := uint8(0)
	if signed {
		flip = 0x80
	}
	h, w, oh, ow := c.Size[1], c.Size[2], c.OutSize[1], c.OutSize[2]
	p.ParallelFor(c.N*oh, max(1, 16384/max(ow*c.In, 1)), func(lo, hi int) {
		for t := lo; t < hi; t++ {
			n, i := t/oh, t%oh
			for j := range ow {
				d := out[(t*ow+j)*c.In:][:c.In]
				first := true
				for kh := range c.Kernel[1] {
					y := i*c.Stride[1] - c.Pad[1] + kh*c.Dilation[1]
					if y < 0 || y >= h {
						continue
					}
					for kw := range c.Kernel[2] {
						z := j*c.Stride[2] - c.Pad[2] + kw*c.Dilation[2]
						if z < 0 || z >= w {
							continue
						}
						src := x[((n*h+y)*w+z)*c.In:][:c.In]
						if first {
							copy(d, src)
							first = false
							continue
						}
						maxBytes(d, src, flip)
					}
				}
			}
		}
	})
}

func maxBytes(d, x []uint8, flip uint8) {
	n := 0
	if full := len(d) &^ 31; hasAVX2 && full > 0 && flip == 0 {
		n = full
		maxU8AVX2(&d[0], &x[0], n)
	}
	for i := n; i < len(d); i++ {
		d[i] = max(d[i]^flip, x[i]^flip) ^ flip
	}
}

// byteBuffer is memory for bytes.
type byteBuffer struct{ data []uint8 }

var byteBuffers = sync.Pool{New: func() any { return new(byteBuffer) }}

func bytesScratch(n int) *byteBuffer {
	b := byteBuffers.Get().(*byteBuffer)
	if cap(b.data) < n {
		b.data = make([]uint8, n+n/4)
	}
	b.data = b.data[:n]
	return b
}

func (b *byteBuffer) free() { byteBuffers.Put(b) }
