package aten

import (
	"math"
	"slices"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// quantizedDecomposedOps are the operators of quantized_decomposed. q = clamp(round(x/scale) + zero_point), half to even.
var quantizedDecomposedOps = []Op{
	{Schema: "quantized_decomposed::quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor", Tags: Pointwise, Shape: shapeQuantize,
		CPU: func(k *Kernel) { quantizeTensor(k, k.Float(1), k.I64(2), k.I64(3), k.I64(4)) }},
	{Schema: "quantized_decomposed::quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor", Shape: shapeQuantize,
		CPU: func(k *Kernel) { quantizeTensor(k, oneFloat(k.T(1)), oneInt(k.T(2)), k.I64(3), k.I64(4)) }},
	{Schema: "quantized_decomposed::quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, ScalarType dtype) -> Tensor", Shape: shapeQuantize,
		CPU: func(k *Kernel) { quantizeTensor(k, oneFloat(k.T(1)), oneInt(k.T(2)), oneInt(k.T(3)), oneInt(k.T(4))) }},
	{Schema: "quantized_decomposed::dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor", Tags: Pointwise | Dequantize, Shape: shapeDequantize,
		CPU: func(k *Kernel) { dequantizeTensor(k, k.Float(1), k.I64(2)) }},
	{Schema: "quantized_decomposed::dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor", Shape: shapeDequantize,
		CPU: func(k *Kernel) { dequantizeTensor(k, oneFloat(k.T(1)), oneInt(k.T(2))) }},
	{Schema: "quantized_decomposed::dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor", Shape: shapeDequantize,
		CPU: func(k *Kernel) { dequantizeTensor(k, oneFloat(k.T(1)), oneInt(k.T(2))) }},

	{Schema: "quantized_decomposed::quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max, ScalarType dtype) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := quantInput(b, a.Tensor(0))
		quantBounds(a.I64(4), a.I64(5), a.DType(6, tensor.Int8))
		s, z := channelView(b, a, x, 1), channelView(b, a, x, 2)
		q := b.Call("add.Tensor", b.Call("round", b.Call("mul.Tensor", x, b.Call("reciprocal", s))), z)
		return One(b.Call("to.dtype", b.Call("clamp", q, a.V[4], a.V[5]), a.V[6]))
	}},
	{Schema: "quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor", Tags: Dequantize,
		Shape: shapeDequantizeChannels, CPU: dequantizeChannels, Decomp: dequantizeChannelsDecomp},
	{Schema: "quantized_decomposed::quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, s, z := a.Tensor(0), a.Tensor(1), a.Tensor(2)
		quantBounds(a.I64(3), a.I64(4), a.DType(5, tensor.Int8))
		tokens := rowsOf(x)
		quantCheck(tokens.Eq(s.Numel()), "num_tokens: %v scales: %s", tokens, sizesText(s.Sizes))
		quantCheck(tokens.Eq(z.Numel()), "num_tokens: %v zero_points: %s", tokens, sizesText(z.Sizes))
		return One(quantizeRows(b, x, s, z, a.V[3], a.V[4], a.V[5]))
	}},
	{Schema: "quantized_decomposed::dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, ScalarType output_dtype) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		r := b.Call("mul.Tensor", b.Call("sub.Tensor", a.Tensor(0), a.Tensor(2)), a.Tensor(1))
		return One(b.Call("to.dtype", r, a.V[6]))
	}},
	{Schema: "quantized_decomposed::quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType dtype, int group_size) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		group := groupSize(x, a.Tensor(1), a.I64(6), "input")
		s, z := column(b, a.Tensor(1)), column(b, a.Tensor(2))
		q := quantizeRows(b, b.Call("reshape", x, []int64{-1, group}), s, z, a.V[3], a.V[4], a.V[5])
		return One(b.Call("reshape", q, x.Sizes))
	}},
	{Schema: "quantized_decomposed::dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, int quant_max, ScalarType dtype, int group_size, ScalarType output_dtype) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		group := groupSize(x, a.Tensor(1), a.I64(6), "w_int8")
		r := b.Call("reshape", x, []int64{-1, group})
		if a.Has(2) {
			r = b.Call("sub.Tensor", r, column(b, a.Tensor(2)))
		}
		r = b.Call("reshape", b.Call("mul.Tensor", r, column(b, a.Tensor(1))), x.Sizes)
		return One(b.Call("to.dtype", r, a.V[7]))
	}},
	{Schema: "quantized_decomposed::fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		quantFloat(x)
		s := b.Call("to.dtype", channelView(b, a, x, 1), tensor.Float32)
		z := b.Call("to.dtype", channelView(b, a, x, 2), tensor.Int32)
		q := b.Call("add.Tensor", b.Call("round", b.Call("mul.Tensor", x, b.Call("reciprocal", s))), z)
		q = b.Call("clamp", q, a.V[4], a.V[5])
		return One(b.Call("mul.Tensor", b.Call("sub.Tensor", q, z), s))
	}},
	{Schema: "quantized_decomposed::convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(b.Call("prims.convert_element_type.default", a.Tensor(0), a.V[1]))
	}},

	{Schema: "quantized_decomposed::choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)", Shape: shapeQparams,
		CPU: func(k *Kernel) { qparamsKernel(k, false) }},
	{Schema: "quantized_decomposed::choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)", Shape: shapeQparams,
		CPU: func(k *Kernel) { qparamsKernel(k, true) }},
	{Schema: "quantized_decomposed::choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value {
		if a.DType(1, tensor.Int8) != tensor.Int8 {
			FailAs("Exception", "unsupported dtype in choose_qparams_per_token: torch.%s", a.DType(1, tensor.Int8))
		}
		s := b.Call("amax", b.Call("abs", a.Tensor(0)), []int{-1}, true)
		if s.DType == tensor.Float16 {
			s = b.Call("to.dtype", s, tensor.Float32)
		}
		s = b.Call("div.Scalar", b.Call("clamp", s, 1e-5), 127)
		return []*Value{s, b.Call("zeros_like", s)}
	}},
	{Schema: "quantized_decomposed::choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)", Decomp: tokenQparams},
	{Schema: "quantized_decomposed::_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, Tensor)", Decomp: tokenQparams},
}

func quantCheck(ok bool, format string, args ...any) {
	if !ok {
		FailAs("AssertionError", format, args...)
	}
}

// quantFloat refuses what is not float32.
func quantFloat(x *Value) {
	quantCheck(x.DType == tensor.Float32, "Expecting input to have dtype torch.float32, but got dtype: torch.%s", x.DType)
}

func quantInput(b *Build, x *Value) *Value {
	if x.DType.IsReduced() {
		x = b.Call("to.dtype", x, tensor.Float32)
	}
	quantFloat(x)
	return x
}

func quantType(x *Value, dt tensor.DType) {
	quantCheck(x.DType == dt, "Expecting input to have dtype: torch.%s, but got torch.%s", dt, x.DType)
}

// quantRange gives the least and greatest number of a dtype of quantized tensors.
func quantRange(dt tensor.DType) (lo, hi int64, ok bool) {
	switch dt {
	case tensor.Uint8:
		return 0, math.MaxUint8, true
	case tensor.Int8:
		return math.MinInt8, math.MaxInt8, true
	case tensor.Uint16:
		return 0, math.MaxUint16, true
	case tensor.Int16:
		return math.MinInt16, math.MaxInt16, true
	case tensor.Int32:
		return math.MinInt32, math.MaxInt32, true
	case tensor.Float8E5M2:
		return -57344, 57344, true
	case tensor.Float8E4M3FN:
		return -448, 448, true
	}
	return 0, 0, false
}

func quantBounds(lo, hi int64, dt tensor.DType) {
	min, max, ok := quantRange(dt)
	if !ok {
		FailValue("Unsupported dtype: torch.%s", dt)
	}
	quantCheck(lo >= min, "quant_min out of bounds for dtype, quant_min_lower_bound: %d quant_min: %d", min, lo)
	quantCheck(hi <= max, "quant_max out of bounds for dtype, quant_max_upper_bound: %d quant_max: %d", max, hi)
}

// oneElement refuses parameters that are tensors of several elements.
func oneElement(a *Args) {
	for i, name := range map[int]string{2: "zero_point", 1: "scale"} {
		if v, ok := a.V[i].(*Value); ok {
			quantCheck(v.Numel().Eq(symbolic.N(1)), "Expecting %s tensor to be one element, but received : %v", name, v.Numel())
		}
	}
}

func shapeQuantize(a *Args) []Meta {
	x := a.Tensor(0)
	oneElement(a)
	if !x.DType.IsReduced() {
		quantFloat(x)
	}
	dt := a.DType(5, tensor.Int8)
	if lo, ok := a.OptInt(3); ok {
		quantBounds(lo.Int64(), a.I64(4), dt)
	} else if _, _, ok := quantRange(dt); !ok {
		FailValue("Unsupported dtype: torch.%s", dt)
	}
	return []Meta{LikeMeta(x, dt, PreserveFormat)}
}

func shapeDequantize(a *Args) []Meta {
	x, dt := a.Tensor(0), a.DType(5, tensor.Int8)
	oneElement(a)
	quantType(x, dt)
	if _, _, ok := quantRange(dt); !ok {
		FailValue("Unsupported dtype in dequantize_per_tensor: torch.%s", dt)
	}
	return []Meta{LikeMeta(x, a.DType(6, tensor.Float32), PreserveFormat)}
}

func shapeDequantizeChannels(a *Args) []Meta {
	x := a.Tensor(0)
	quantType(x, a.DType(6, tensor.Int8))
	quantBounds(a.I64(4), a.I64(5), a.DType(6, tensor.Int8))
	quantCheck(a.I64(3) < int64(x.Dim()), "Expecting axis to be < %d", x.Dim())
	channels := x.Sizes[WrapDim(a.I64(3), x.Dim())]
	for i := 1; i <= 2; i++ {
		if v := a.OptTensor(i); v != nil {
			Check(v.Numel().Eq(channels), "shape '%s' is invalid for input of size %v", sizesText([]symbolic.Int{channels}), v.Numel())
		}
	}
	return []Meta{PointwiseMeta(a.DType(7, tensor.Float32), x)}
}

func dequantizeChannelsDecomp(b *Build, a *Args) []*Value {
	x := a.Tensor(0)
	s := channelView(b, a, x, 1)
	if a.Has(2) {
		x = b.Call("sub.Tensor", x, channelView(b, a, x, 2))
	}
	return One(b.Call("to.dtype", b.Call("mul.Tensor", x, s), a.DType(7, tensor.Float32)))
}

// dequantizeChannels goes channel by channel where they come first in memory, else by the formula.
func dequantizeChannels(k *Kernel) {
	x, out, scales := k.T(0), k.Out[0], k.T(1)
	if WrapDim(k.I64(3), x.Dim()) != 0 || !x.IsContiguous() || !out.IsContiguous() || out.DType() != tensor.Float32 || scales.DType() != tensor.Float32 ||
		x.DType() != tensor.Int8 && x.DType() != tensor.Uint8 || x.Numel() == 0 {
		Copy(k.Pool, out, dequantizeChannelsDecomp(NewBuildWith(&Eager{Pool: k.Pool}), k.Args)[0].T)
		return
	}
	n := int(x.Sizes()[0])
	per := int(x.Numel()) / n
	s := tensor.Contiguous[float32](k.contiguous(scales))
	zeros := make([]int64, n)
	if z := k.OptT(2); z != nil {
		copy(zeros, tensor.Contiguous[int64](k.as(z, tensor.Int64)))
	}
	src, dst := tensor.Contiguous[uint8](x), tensor.Contiguous[float32](out)
	k.Pool.ParallelFor(n, max(1, grain/per), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			q := cpu.Quant{Scale: s[i], Zero: int32(zeros[i]), Signed: x.DType() == tensor.Int8}
			cpu.DequantizeF32(dst[i*per:(i+1)*per], src[i*per:(i+1)*per], q)
		}
	})
}

// sameBytes gives the memory of two tensors that lie alike without gaps, element by element.
func sameBytes(x, out *tensor.Tensor) bool {
	it := NewIter(out.Sizes(), out, x)
	return it.contig(0) && it.contig(1)
}

func isByte(t *tensor.Tensor) bool { return t.DType() == tensor.Uint8 || t.DType() == tensor.Int8 }

func quantizeTensor(k *Kernel, scale float64, zero, qmin, qmax int64) {
	inv, z, lo, hi := float32(1/scale), float32(zero), float32(qmin), float32(qmax)
	if x, out := k.T(0), k.Out[0]; isByte(out) && x.DType() == tensor.Float32 && x.Numel() > 0 && sameBytes(x, out) {
		n := int(x.Numel())
		src, dst := tensor.Data[float32](x)[:n], tensor.Data[uint8](out)[:n]
		k.Pool.ParallelFor(n, grain, func(lo, hi int) {
			cpu.QuantizeF32(dst[lo:hi], src[lo:hi], cpu.QuantTo{Inv: inv, Zero: int32(zero), Min: int32(qmin), Max: int32(qmax)})
		})
		return
	}
	Loop(k.Pool, []Operand{{T: k.Out[0], Kind: KF32}}, []Operand{{T: k.T(0), Kind: KF32}}, func(outs, ins []Block) {
		d := As[float32](outs[0])
		for i, v := range As[float32](ins[0]) {
			q := float32(math.RoundToEven(float64(v*inv))) + z
			switch { // a NaN passes, as it does in clamp
			case q < lo:
				q = lo
			case q > hi:
				q = hi
			}
			d[i] = q
		}
	})
}

func dequantizeTensor(k *Kernel, scale float64, zero int64) {
	dt := k.Out[0].DType()
	kind := KindOf(dt)
	if x, out := k.T(0), k.Out[0]; isByte(x) && dt == tensor.Float32 && x.Numel() > 0 && zero == int64(int16(zero)) && sameBytes(x, out) {
		n := int(x.Numel())
		src, dst := tensor.Data[uint8](x)[:n], tensor.Data[float32](out)[:n]
		k.Pool.ParallelFor(n, grain, func(lo, hi int) {
			cpu.DequantizeF32(dst[lo:hi], src[lo:hi], cpu.Quant{Scale: float32(scale), Zero: int32(zero), Signed: x.DType() == tensor.Int8})
		})
		return
	}
	Loop(k.Pool, []Operand{{T: k.Out[0], Kind: kind}}, []Operand{{T: k.T(0), Kind: kind, Via: dt}}, func(outs, ins []Block) {
		if kind == KF64 {
			d := As[float64](outs[0])
			for i, v := range As[float64](ins[0]) {
				d[i] = (v - float64(zero)) * scale
			}
			return
		}
		d, s, z := As[float32](outs[0]), float32(scale), float32(zero)
		for i, v := range As[float32](ins[0]) {
			d[i] = roundHalf(dt, v-z) * s
		}
	})
}

// channelView gives the vector of parameters in argument i with dimensions to broadcast along the axis in argument 3.
func channelView(b *Build, a *Args, x *Value, i int) *Value {
	axis := a.I64(3)
	quantCheck(axis < int64(x.Dim()), "Expecting axis to be < %d", x.Dim())
	sizes := make([]int64, x.Dim())
	for d := range sizes {
		sizes[d] = 1
	}
	sizes[WrapDim(axis, x.Dim())] = -1
	return b.Call("view", a.Tensor(i), sizes)
}

func column(b *Build, v *Value) *Value { return b.Call("reshape", v, []int64{-1, 1}) }

// quantizeRows is clamp(round(x/s + z)): here the zero point is added before rounding.
func quantizeRows(b *Build, x, s, z *Value, lo, hi, dtype any) *Value {
	q := b.Call("add.Tensor", b.Call("mul.Tensor", x, b.Call("reciprocal", s)), z)
	return b.Call("to.dtype", b.Call("clamp", b.Call("round", q), lo, hi), dtype)
}

func groupSize(x, s *Value, group int64, name string) int64 {
	quantCheck(group > 1, "group_size must be > 1")
	last := lastSize(x).Int64()
	if group > last && lastSize(s).Eq(symbolic.N(1)) {
		group = last
	}
	quantCheck(group > 0 && last%group == 0, "%s.shape[-1] must be divisible by group_size", name)
	quantCheck(x.Dim() == 2, "%s must be 2-dimensional", name)
	return group
}

func shapeQparams(a *Args) []Meta {
	x := a.Tensor(0)
	quantCheck(x.DType.IsReduced() || x.DType == tensor.Float32, "Expecting input to have dtype torch.float32/16/b16, but got dtype: torch.%s", x.DType)
	dt := a.DType(4, tensor.Int8)
	_, _, ok := quantRange(dt)
	quantCheck(ok, "Expecting target dtype to be one of the quantized dtypes, but got: torch.%s", dt)
	quantCheck(a.I64(1) <= 0 && a.I64(2) >= 0, "Used-specified quantization range must include 0.")
	quantCheck(a.I64(1) < a.I64(2), "qmin must be strictly less than qmax for user-specified quantization range.")
	Check(!x.empty(), "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
	one := symbolic.N(1)
	return []Meta{Contig(tensor.Float64, one), Contig(tensor.Int64, one)}
}

// qparamsKernel chooses scale and zero point for the range of a tensor's elements and 0.
func qparamsKernel(k *Kernel, symmetric bool) {
	dt := k.T(0).DType()
	x := tensor.Contiguous[float32](k.as(k.T(0), tensor.Float32))
	lo, hi := nanMin(x[bestFloat(x, false)], 0), nanMax(x[bestFloat(x, true)], 0)
	qmin, qmax := k.I64(1), k.I64(2)
	eps := float32(k.Float(3))
	scale, zero := float32(0), int64(0)
	if symmetric {
		scale = nanMax(roundHalf(dt, nanMax(-lo, hi)/float32(float64(qmax-qmin)/2)), eps)
		if k.DType(4, tensor.Int8) == tensor.Uint8 {
			zero = 128
		}
	} else {
		scale = nanMax(roundHalf(dt, roundHalf(dt, hi-lo)/float32(qmax-qmin)), eps)
		z := int32(qmin) - truncI32(math.RoundToEven(float64(lo/scale)))
		zero = slices.Max([]int64{qmin, min(qmax, int64(z))})
	}
	linWrite(k, k.Out[0], []float64{float64(scale)})
	linWrite(k, k.Out[1], []int64{zero})
}

// tokenQparams chooses parameters for each row, from its least and greatest element, so that the larger error at the ends is
// least.
func tokenQparams(b *Build, a *Args) []*Value {
	const qmin, qmax = -128, 127
	x, last := a.Tensor(0), []int{-1}
	lo, hi := b.Call("amin", x, last, true), b.Call("amax", x, last, true)
	zero := b.Call("zeros_like", lo)
	lo, hi = b.Call("minimum", lo, zero), b.Call("maximum", hi, zero)
	s := b.Call("clamp", b.Call("div.Scalar", b.Call("sub.Tensor", hi, lo), float64(qmax-qmin)), 0x1p-23)
	l, h := b.Call("div.Tensor", lo, s), b.Call("div.Tensor", hi, s)
	errs := b.Call("add.Tensor", b.Call("add.Scalar", l, qmin), b.Call("add.Scalar", h, qmax))
	z := b.Call("where.self", b.Call("gt.Scalar", errs, 0), b.Call("rsub.Scalar", l, qmin), b.Call("rsub.Scalar", h, qmax))
	z = b.Call("round", b.Call("clamp", z, qmin, qmax))
	return []*Value{b.Call("to.dtype", s, tensor.Float64), b.Call("to.dtype", z, tensor.Int64)}
}
