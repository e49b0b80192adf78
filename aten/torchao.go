package aten

import (
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// torchaoOps are the operators of the torchao library that keep affine quantisation whole in an exported program. A block is as many
// elements along each dimension as share a scale.
var torchaoOps = []Op{
	{Schema: "torchao::choose_qparams_affine(Tensor? input, str mapping_type, SymInt[] block_size, ScalarType target_dtype, Scalar? quant_min=None, Scalar? quant_max=None, float? eps=None, ScalarType? scale_dtype=None, ScalarType? zero_point_dtype=None, bool keepdim=False) -> (Tensor, Tensor)", Decomp: chooseAffine},
	{Schema: "torchao::quantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType output_dtype, Scalar? quant_min=None, Scalar? quant_max=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, dt := a.Tensor(0), a.DType(4, tensor.Int8)
		quantCheck(x.DType.IsReduced() || x.DType == tensor.Float32, "Unsupported input dtype: torch.%s", x.DType)
		lo, hi := affineBounds(a, 5, dt)
		shape, _, params := blockShape(x, a.Ints(1))
		z := a.OptTensor(3)
		if z == nil || z.Numel().Eq(symbolic.N(0)) {
			FailType("unsupported operand type(s) for +: 'Tensor' and 'NoneType'")
		}
		q := b.Call("mul.Tensor", b.Call("view", x, shape), b.Call("reciprocal", b.Call("view", a.Tensor(2), params)))
		q = b.Call("clamp", b.Call("add.Tensor", b.Call("round", q), b.Call("view", z, params)), lo, hi)
		return One(b.Call("to.dtype", b.Call("view", q, x.Sizes), dt))
	}},
	{Schema: "torchao::dequantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType input_dtype, Scalar? quant_min=None, Scalar? quant_max=None, ScalarType output_dtype=6) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, dt, to := a.Tensor(0), a.DType(4, tensor.Int8), a.DType(7, tensor.Float32)
		quantCheck(x.DType == dt, "Expected: torch.%s, got: torch.%s", dt, x.DType)
		quantCheck(to.IsReduced() || to == tensor.Float32, "Unsupported output dtype: torch.%s", to)
		affineBounds(a, 5, dt)
		shape, _, params := blockShape(x, a.Ints(1))
		r := b.Call("to.dtype", b.Call("view", x, shape), to)
		if z := a.OptTensor(3); z != nil {
			r = b.Call("sub.Tensor", r, b.Call("to.dtype", b.Call("view", z, params), to))
		}
		r = b.Call("mul.Tensor", r, b.Call("view", a.Tensor(2), params))
		return One(b.Call("to.dtype", b.Call("view", r, x.Sizes), to))
	}},
	{Schema: "torchao::choose_scale_float8(Tensor tensor, SymInt[] block_size, ScalarType float8_dtype=24, ScalarType scale_dtype=6, float? hp_value_lb=None, float? hp_value_ub=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		quantCheck(a.DType(3, tensor.Float32) == tensor.Float32, "Only float8_e8m0fnuz is supported")
		shape, dims, _ := blockShape(x, a.Ints(1))
		s := b.Call("amax", b.Call("abs", b.Call("view", x, shape)), dims, true)
		if a.Has(4) || a.Has(5) {
			s = b.Call("clamp", s, a.V[4], a.V[5])
		}
		_, most, _ := float8Range(a.DType(2, tensor.Float8E4M3FN))
		s = b.Call("reshape", b.Call("div.Scalar", s, most), blockCounts(x, a.Ints(1)))
		return One(b.Call("to.dtype", s, tensor.Float32))
	}},
	{Schema: "torchao::quantize_affine_float8_non_decomposed(Tensor tensor, Tensor scale, ScalarType float8_dtype=24) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		dt := a.DType(2, tensor.Float8E4M3FN)
		lo, hi, _ := float8Range(dt)
		q := b.Call("div.Tensor", b.Call("to.dtype", a.Tensor(0), tensor.Float32), blockExpand(b, a.Tensor(1), a.Tensor(0)))
		return One(b.Call("to.dtype", b.Call("clamp", q, lo, hi), dt))
	}},
	{Schema: "torchao::dequantize_affine_float8_non_decomposed(Tensor tensor, Tensor scale, ScalarType output_dtype=6) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		r := b.Call("mul.Tensor", b.Call("to.dtype", a.Tensor(0), tensor.Float32), blockExpand(b, a.Tensor(1), a.Tensor(0)))
		return One(b.Call("to.dtype", r, a.V[2]))
	}},
}

// blockShape gives the sizes in which x shows its blocks as dimensions of their own, those dimensions, and the sizes with 1 for them.
func blockShape(x *Value, block []symbolic.Int) (shape []symbolic.Int, dims []int, params []symbolic.Int) {
	quantCheck(len(block) == x.Dim(), "Got input dim:%d, block_size: %v", x.Dim(), block)
	one := symbolic.N(1)
	for i, n := range block {
		size := x.Sizes[i]
		if n.Eq(one) || n.Eq(size) {
			if n.Ne(one) {
				dims = append(dims, len(shape))
				params = append(params, one)
			} else {
				params = append(params, size)
			}
			shape = append(shape, size)
			continue
		}
		quantCheck(n.Gt(one) && size.Mod(n).Eq(symbolic.N(0)), "Expecting input size at %d dimension: %v to be divisible by block_size at %d dimension: %v", i, size, i, n)
		dims = append(dims, len(shape)+1)
		shape = append(shape, size.FloorDiv(n), n)
		params = append(params, size.FloorDiv(n), one)
	}
	return shape, dims, params
}

// blockCounts gives the number of blocks along each dimension.
func blockCounts(x *Value, block []symbolic.Int) []symbolic.Int {
	out := make([]symbolic.Int, len(block))
	for i := range out {
		out[i] = x.Sizes[i].FloorDiv(block[i])
	}
	return out
}

// blockExpand repeats scales, one a block, until they broadcast to x.
func blockExpand(b *Build, s, x *Value) *Value {
	one := symbolic.N(1)
	if s.Numel().Eq(one) {
		return s
	}
	if s.Dim() != x.Dim() {
		FailValue("Scale tensor has %d dimensions but target has %d", s.Dim(), x.Dim())
	}
	for i := range s.Dim() {
		n := s.Sizes[i]
		if n.Eq(x.Sizes[i]) || n.Eq(one) {
			continue
		}
		if x.Sizes[i].Mod(n).Ne(symbolic.N(0)) {
			FailValue("Dimension %d: target size %v is not evenly divisible by scale size %v", i, x.Sizes[i], n)
		}
		s = b.Call("repeat_interleave.self_int", s, x.Sizes[i].FloorDiv(n), i)
	}
	return s
}

// float8Range gives the least and greatest finite number of a float8 dtype.
func float8Range(dt tensor.DType) (lo, hi float64, ok bool) {
	switch dt {
	case tensor.Float8E4M3FN:
		return -448, 448, true
	case tensor.Float8E5M2:
		return -57344, 57344, true
	}
	return 0, 0, false
}

// affineBounds gives the range of quantised numbers: arguments i and i+1, or what the dtype holds.
func affineBounds(a *Args, i int, dt tensor.DType) (lo, hi Scalar) {
	if l, h, ok := float8Range(dt); ok {
		lo, hi = FloatS(l), FloatS(h)
	} else {
		l, h, ok := quantRange(dt)
		if !ok {
			FailValue("Unsupported dtype: torch.%s", dt)
		}
		lo, hi = IntS(l), IntS(h)
	}
	if s, ok := a.OptScalar(i); ok {
		quantCheck(s.Float64() >= lo.Float64(), "quant_min out of bound for dtype, quant_min_lower_bound: %v quant_min: %v", lo.Float64(), s.Float64())
		lo = s
	}
	if s, ok := a.OptScalar(i + 1); ok {
		quantCheck(s.Float64() <= hi.Float64(), "quant_max out of bound for dtype, quant_max_upper_bound: %v quant_max: %v", hi.Float64(), s.Float64())
		hi = s
	}
	return lo, hi
}

// chooseAffine finds scales and zero points from the least and greatest number of each block.
func chooseAffine(b *Build, a *Args) []*Value {
	x := a.Tensor(0)
	lo, hi := affineBounds(a, 4, a.DType(3, tensor.Int8))
	least, most := lo.Float64(), hi.Float64()
	eps, ok := a.OptFloat(6)
	if !ok {
		eps = pick(x.DType == tensor.Float16, 0x1p-14, 0x1p-126)
		if x.DType == tensor.Float64 {
			eps = 0x1p-1022
		}
	}
	shape, dims, _ := blockShape(x, a.Ints(2))
	v := b.Call("view", x, shape)
	low := b.Call("clamp_max", b.Call("amin", v, dims, a.V[9]), 0)
	high := b.Call("clamp_min", b.Call("amax", v, dims, a.V[9]), 0)
	var scale, zero *Value
	zeroType, zeroGiven := a.DType(8, tensor.Int32), a.Has(8)
	switch mapping := a.Str(1); mapping {
	case "SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR":
		if mapping == "SYMMETRIC" {
			scale = b.Call("div.Scalar", b.Call("maximum", b.Call("neg", low), high), (most-least)/2)
		} else {
			scale = b.Call("maximum", b.Call("div.Scalar", low, least), b.Call("div.Scalar", high, most))
		}
		zero = b.Call("full_like", scale, math.Trunc((most+least+1)/2))
		scale = b.Call("clamp", scale, eps)
		if !zeroGiven {
			zeroType = zero.DType
		}
	case "ASYMMETRIC":
		scale = b.Call("clamp", b.Call("div.Scalar", b.Call("sub.Tensor", high, low), most-least), eps)
		zero = b.Call("rsub.Scalar", b.Call("round", b.Call("div.Tensor", low, scale)), lo)
		zero = b.Call("clamp", zero, lo, hi)
	default:
		quantCheck(false, "Unsupported mapping type: %s", mapping)
	}
	if a.Bool(9) {
		n := blockCounts(x, a.Ints(2))
		scale, zero = b.Call("reshape", scale, n), b.Call("reshape", zero, n)
	}
	return []*Value{b.Call("to.dtype", scale, a.DType(7, x.DType)), b.Call("to.dtype", zero, zeroType)}
}
