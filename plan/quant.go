package plan

import (
	"fmt"
	"math"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// quantConvOp is a convolution or matrix product of 8-bit integers with channels last, and what follows up to the next quantization.
var quantConvOp = internal(&aten.Op{
	Schema: "plan::quantized_conv(Tensor x, Tensor? residual, QuantConv conv, Tensor? scale=None, Tensor? zero=None) -> Tensor",
	Shape:  func(a *aten.Args) []aten.Meta { return nil },
	CPU: func(k *aten.Kernel) {
		c := k.V[2].(*quantConv)
		ep, from := c.epilogue, c.from
		if scale := k.OptT(3); scale != nil {
			ep.Times = float32(scale.Float(0))
			from.Scale, from.Zero = ep.Times, int32(k.T(4).Float(0))
		}
		if r := k.OptT(1); r != nil {
			ep.Residual = tensor.Data[uint8](r)
		}
		if k.Out[0].DType() == tensor.Float32 {
			ep.Float = tensor.Data[float32](k.Out[0])
		} else {
			ep.Out = tensor.Data[uint8](k.Out[0])
		}
		c.packed.Forward(k.Pool, &c.Conv, tensor.Data[uint8](k.T(0)), from, &ep)
	},
})

// quantPoolOp is a max pooling of 8-bit integers with channels last.
var quantPoolOp = internal(&aten.Op{
	Schema: "plan::quantized_max_pool(Tensor x, QuantPool pool) -> Tensor",
	Shape:  func(a *aten.Args) []aten.Meta { return nil },
	CPU: func(k *aten.Kernel) {
		p := k.V[1].(*quantPool)
		cpu.MaxPoolNHWCU8(k.Pool, &p.Conv, tensor.Data[uint8](k.T(0)), tensor.Data[uint8](k.Out[0]), p.signed)
	},
})

// quantConv describes a convolution instruction on integers.
type quantConv struct {
	cpu.Conv
	from     cpu.Quant
	epilogue cpu.QuantEpilogue // without memory
	packed   *cpu.PackedQuantConv
	limits   bool
	residual bool
	rounded  bool
}

// String is "int8 3x3 64->128 /2 residual relu".
func (c *quantConv) String() string {
	s := fmt.Sprintf("int8 %s %d->%d", spatial(c.Kernel), c.In, c.Out)
	if c.Stride != [3]int{1, 1, 1} {
		s += " /" + spatial(c.Stride)
	}
	for _, p := range []struct {
		on   bool
		name string
	}{{c.residual, " residual"}, {c.limits, " limits"}, {c.epilogue.Act.Kind != cpu.ActNone, " " + actNames[c.epilogue.Act.Kind]}, {c.rounded, " round"}} {
		if p.on {
			s += p.name
		}
	}
	return s
}

type quantPool struct {
	cpu.Conv
	signed bool
}

// String is "3x3 /2".
func (p *quantPool) String() string { return spatial(p.Kernel) + " /" + spatial(p.Stride) }

// quantized is a value that an instruction spells out of 8-bit integers.
type quantized struct {
	q  *aten.Value
	of cpu.Quant
	at int // the instruction

	scale, zero *aten.Value // chosen at run time, if not nil
}

// dequantized finds the integers behind v; nil if there are none.
func (g *graph) dequantized(v *aten.Value) *quantized {
	i, out := g.producer(v)
	if i < 0 || g.instrs[i].Op.Name() != "quantized_decomposed.dequantize_per_tensor.default" || v.DType != tensor.Float32 || !aligned(v, out) {
		return nil
	}
	a := g.instrs[i].Args
	q := a.Tensor(0)
	if q.DType != tensor.Int8 && q.DType != tensor.Uint8 || q.T != nil {
		return nil
	}
	zero := a.I64(2)
	if zero < -128 || zero > 255 {
		return nil
	}
	return &quantized{q: q, of: cpu.Quant{Scale: float32(a.Float(1)), Zero: int32(zero), Signed: q.DType == tensor.Int8}, at: i}
}

// dequantizedByRange finds the integers behind v whose scale and zero point were chosen by the range of the numbers at run time.
func (g *graph) dequantizedByRange(v *aten.Value) *quantized {
	i, out := g.producer(v)
	if i < 0 || g.instrs[i].Op.Name() != "quantized_decomposed.dequantize_per_tensor.tensor" || v.DType != tensor.Float32 || !aligned(v, out) {
		return nil
	}
	a := g.instrs[i].Args
	q, scale, zero := a.Tensor(0), a.Tensor(1), a.Tensor(2)
	if q.DType != tensor.Int8 && q.DType != tensor.Uint8 || q.T != nil || scale.T != nil || zero.T != nil {
		return nil
	}
	// Such zero points are no larger than the integers.
	from, _ := g.producer(zero)
	if other, _ := g.producer(scale); from < 0 || from != other || g.instrs[from].Op.Name() != "quantized_decomposed.choose_qparams.tensor" {
		return nil
	}
	c := g.instrs[from].Args
	lo, hi := int64(0), int64(255)
	if q.DType == tensor.Int8 {
		lo, hi = -128, 127
	}
	if c.I64(1) < lo || c.I64(2) > hi || scale.Numel().Int64() != 1 || zero.Numel().Int64() != 1 || !g.stable(scale, from, i) || !g.stable(zero, from, i) {
		return nil
	}
	return &quantized{q: q, of: cpu.Quant{Scale: 1, Signed: q.DType == tensor.Int8}, at: i, scale: scale, zero: zero}
}

// quantWeight finds the constant signed integers behind a weight [Out, ...], and the scale of each output channel.
func (g *graph) quantWeight(v *aten.Value) (w *aten.Value, scale []float32) {
	i, out := g.producer(v)
	if i < 0 || v.DType != tensor.Float32 || !aligned(v, out) {
		return nil, nil
	}
	a := g.instrs[i].Args
	n := int(v.Sizes[0].Int64())
	scale = make([]float32, n)
	switch g.instrs[i].Op.Name() {
	case "quantized_decomposed.dequantize_per_channel.default":
		if a.I64(3) != 0 || a.Tensor(1).T == nil {
			return nil, nil
		}
		if z := a.OptTensor(2); z != nil {
			if z.T == nil {
				return nil, nil
			}
			for j := range z.T.Numel() {
				if z.T.Float(j) != 0 {
					return nil, nil
				}
			}
		}
		copy(scale, floats(a.Tensor(1)))
	case "quantized_decomposed.dequantize_per_tensor.default":
		if a.I64(2) != 0 {
			return nil, nil
		}
		for j := range scale {
			scale[j] = float32(a.Float(1))
		}
	default:
		return nil, nil
	}
	w = a.Tensor(0)
	if w.T == nil || w.DType != tensor.Int8 || !w.T.IsContiguous() || !v.IsContiguous() {
		return nil, nil
	}
	return w, scale
}

// lowerQuantized is the pass that computes convolutions, products and max poolings between dequantized values and a quantization on
// the integers themselves.
func (g *graph) lowerQuantized() {
	copies := map[*Buffer]*aten.Value{}
	for i := range g.instrs {
		if in := g.instrs[i]; in != nil {
			switch in.Op.Name() {
			case "aten.convolution.default", "aten.linear.default":
				g.lowerQuantConv(i, copies)
			case "aten.max_pool2d.default", "aten.max_pool2d_with_indices.default":
				g.lowerQuantPool(i, copies)
			}
		}
	}
	g.compact()
	g.dropDead()
}

// quantForm describes the convolution or linear layer at i, if its operands are integers.
func (g *graph) quantForm(i int) (c *quantConv, x *quantized) {
	in := g.instrs[i]
	v, out, bias := in.Args.Tensor(0), in.Outs[0], in.Args.OptTensor(2)
	if v.T != nil || !covers(out) || out.DType != tensor.Float32 || out.Numel().Int64() == 0 || bias != nil && bias.T == nil {
		return nil, nil
	}
	linear := in.Op.Name() == "aten.linear.default"
	if x = g.dequantized(v); x == nil && linear {
		x = g.dequantizedByRange(v)
	}
	if x == nil {
		return nil, nil
	}
	w, scale := g.quantWeight(in.Args.Tensor(1))
	if w == nil {
		return nil, nil
	}
	c = &quantConv{from: x.of}
	if linear {
		if w.Dim() != 2 || !x.q.IsContiguous() || !out.IsContiguous() {
			return nil, nil
		}
		one := [3]int{1, 1, 1}
		rows := [3]int{1, 1, int(out.Numel().Int64() / w.Sizes[0].Int64())}
		c.Conv = cpu.Conv{N: 1, In: int(w.Sizes[1].Int64()), Out: int(w.Sizes[0].Int64()), Groups: 1, Size: rows, OutSize: rows, Kernel: one, Stride: one, Dilation: one}
	} else {
		if in.Args.Bool(6) || w.Dim() != 4 && w.Dim() != 3 || !lastIsC(out) {
			return nil, nil
		}
		c.Conv = aten.ConvSpec(in.Args, &out.Meta)
	}
	if !cpu.CanQuantConv(&c.Conv) {
		return nil, nil
	}
	for o := range scale {
		scale[o] *= x.of.Scale
	}
	c.epilogue = cpu.QuantEpilogue{Scale: scale, Lo: float32(math.Inf(-1)), Hi: float32(math.Inf(1))}
	if bias != nil {
		c.epilogue.Bias = floats(bias)
	}
	c.packed = g.opts.Cache.get(fmt.Sprintf("quantized %v", c.Conv), func() any {
		return cpu.PackQuantConv(&c.Conv, tensor.Contiguous[int8](w.T))
	}, w).(*cpu.PackedQuantConv)
	return c, x
}

func (g *graph) lowerQuantConv(i int, copies map[*Buffer]*aten.Value) {
	c, x := g.quantForm(i)
	if c == nil {
		return
	}
	out := g.instrs[i].Outs[0]
	chain, residual := g.quantChain(c, out)
	at := i
	if n := len(chain); n > 0 {
		at = chain[n-1]
		out = g.instrs[at].Outs[0]
	}
	if !g.stable(x.q, x.at, at) || x.scale != nil && !(g.stable(x.scale, x.at, at) && g.stable(x.zero, x.at, at)) {
		return
	}
	q := x.q
	if q.Dim() > 2 && g.instrs[i].Op.Name() != "aten.linear.default" {
		q = g.lastC(q, at, copies)
	}
	c.residual, c.rounded = residual != nil, len(chain) > 0
	for _, j := range chain {
		if j != at {
			g.remove(j)
		}
	}
	if at != i {
		g.remove(i)
	}
	g.set(at, &Instr{Op: quantConvOp, Args: &aten.Args{Op: quantConvOp, V: []any{q, residual, c, x.scale, x.zero}}, Outs: []*aten.Value{out}})
}

// quantChain follows the result y of a convolution through a residual, limits and an activation to a quantization, and writes what it finds into
// the epilogue. It gives the instructions, none if there is no quantization at the end.
func (g *graph) quantChain(c *quantConv, y *aten.Value) (chain []int, residual *aten.Value) {
	e, limits := c.epilogue, false
	for {
		j := g.onlyUse(y)
		if j < 0 || len(g.instrs[j].Outs) != 1 {
			return nil, nil
		}
		user := g.instrs[j]
		out, a := user.Outs[0], user.Args
		if !covers(out) || !aligned(out, y) {
			return nil, nil
		}
		chain = append(chain, j)
		switch user.Op.Name() {
		case "aten.relu.default":
			if e.Act.Kind != cpu.ActNone {
				return nil, nil
			}
			e.Lo = max(e.Lo, 0)
			e.Hi = max(e.Hi, 0)
			limits = true
		case "aten.hardtanh.default", "aten.clamp.default":
			lo, hasLo := a.OptScalar(1)
			hi, hasHi := a.OptScalar(2)
			if limits || e.Act.Kind != cpu.ActNone || !hasLo || !hasHi || !(lo.Float64() <= hi.Float64()) {
				return nil, nil
			}
			e.Lo, e.Hi, limits = float32(lo.Float64()), float32(hi.Float64()), true
		case "aten.add.Tensor":
			if limits || e.Act.Kind != cpu.ActNone || residual != nil || a.Scalar(2).Float64() != 1 {
				return nil, nil
			}
			other := a.Tensor(1)
			if other.T == nil && bufferOf(other) == bufferOf(y) {
				other = a.Tensor(0)
			}
			if other.T != nil || bufferOf(other) == bufferOf(y) {
				return nil, nil
			}
			r := g.dequantized(other)
			if r == nil || !aligned(r.q, out) || !covers(r.q) || bufferOf(r.q).Kind != Temp || len(bufferOf(r.q).writers) != 1 {
				return nil, nil
			}
			residual, e.Of = r.q, r.of
		case "quantized_decomposed.quantize_per_tensor.default":
			if out.DType != tensor.Int8 && out.DType != tensor.Uint8 {
				return nil, nil
			}
			e.To = cpu.QuantTo{Inv: float32(1 / a.Float(1)), Zero: int32(a.I64(2)), Min: int32(a.I64(3)), Max: int32(a.I64(4))}
			c.epilogue, c.limits = e, limits
			return chain, residual
		default:
			b := user.Op.Body(a)
			if b == nil || b.Act.Kind == cpu.ActNone || e.Act.Kind != cpu.ActNone {
				return nil, nil
			}
			e.Act = b.Act
		}
		y = out
	}
}

// lowerQuantPool computes a max pooling between a dequantization and a quantization with the same parameters on the integers.
func (g *graph) lowerQuantPool(i int, copies map[*Buffer]*aten.Value) {
	in := g.instrs[i]
	y := in.Outs[0]
	if len(in.Outs) > 1 && in.Outs[1] != nil && (len(bufferOf(in.Outs[1]).readers) > 0 || bufferOf(in.Outs[1]).given) || y.Dim() != 4 || !covers(y) || !lastIsC(y) {
		return
	}
	x := g.dequantized(in.Args.Tensor(0))
	j := g.onlyUse(y)
	if x == nil || j < 0 || g.instrs[j].Op.Name() != "quantized_decomposed.quantize_per_tensor.default" || !g.stable(x.q, x.at, j) {
		return
	}
	from, to := g.instrs[x.at].Args, g.instrs[j].Args
	out := g.instrs[j].Outs[0]
	if from.Float(1) != to.Float(1) || from.I64(2) != to.I64(2) || x.q.DType != out.DType || !covers(out) || !lastIsC(out) {
		return
	}
	lo, hi := int64(0), int64(255)
	if x.of.Signed {
		lo, hi = -128, 127
	}
	if to.I64(3) > lo && to.I64(3) > from.I64(3) || to.I64(4) < hi && to.I64(4) < from.I64(4) {
		return
	}
	p := &quantPool{Conv: aten.PoolSpec(in.Args, &y.Meta), signed: x.of.Signed}
	q := g.lastC(x.q, j, copies)
	g.remove(i)
	g.set(j, &Instr{Op: quantPoolOp, Args: &aten.Args{Op: quantPoolOp, V: []any{q, p}}, Outs: []*aten.Value{out}})
}

// foldLate is the pass that computes what depends on constants alone and was left for passes that read the integers.
func (g *graph) foldLate() {
	for i, in := range g.instrs {
		if !constant(in.Args) || in.Op.Tags&(aten.Random|aten.Effect|aten.DataDependent) != 0 || len(in.Outs) == 0 || !g.foldable(in) {
			continue
		}
		g.fold(in)
		g.remove(i)
	}
}

// foldable reports that in alone writes its outputs, which nobody else may see.
func (g *graph) foldable(in *Instr) bool {
	for _, o := range in.Outs {
		if o == nil {
			continue
		}
		if b := bufferOf(o); b == nil || b.Kind != Temp || len(b.writers) != 1 || b.given {
			return false
		}
	}
	return true
}

// fold computes in, and lets its readers see the results as constants.
func (g *graph) fold(in *Instr) {
	outs := make([]*aten.Value, len(in.Outs))
	for i, o := range in.Outs {
		if o != nil {
			outs[i] = &aten.Value{Meta: o.Meta, T: aten.Alloc(&o.Meta)}
		}
	}
	(&aten.Eager{Pool: g.pool}).Run(in.Op, in.Args, outs)
	for i, o := range in.Outs {
		if o == nil {
			continue
		}
		b, st := bufferOf(o), outs[i].T.Storage()
		for _, j := range b.readers {
			eachValue(g.instrs[j].Args, func(v *aten.Value) {
				if v.T != nil || bufferOf(v) != b {
					return
				}
				t, err := tensor.View(st, v.DType, aten.Int64s(v.Sizes), aten.Int64s(v.Strides), v.Offset.Int64())
				if err != nil {
					panic(err) // the recorder made the view within the same bytes
				}
				v.T, v.Ref = t.WithBits(v.Conj, v.Neg), nil
			})
		}
	}
}
