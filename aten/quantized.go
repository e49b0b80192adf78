package aten

import (
	"math"
	"unsafe"

	"github.com/pt2go/pt2/tensor"
)

// quantizedOps quantize, dequantize and imitate quantization on plain tensors, with the parameters as arguments. The fake ones
// are ATen's; "quantized_decomposed" is the namespace of PyTorch's export quantization.
var quantizedOps = []Op{
	{Schema: "fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> (Tensor output, Tensor mask)", Shape: func(a *Args) []Meta {
		checkFakeRange(a, 3, 4)
		Check(a.I64(2) >= a.I64(3) && a.I64(2) <= a.I64(4), "`zero_point` must be between `quant_min` and `quant_max`.")
		return fakeMetas(a.Tensor(0))
	}, CPU: func(k *Kernel) {
		fakeTensor(k, float32(k.Float(1)), k.I64(2), float64(k.I64(3)), float64(k.I64(4)))
	}},
	{Schema: "fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor", Decomp: linFirst("fake_quantize_per_tensor_affine_cachemask")},
	{Schema: "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask)", Shape: func(a *Args) []Meta {
		checkFakeRange(a, 4, 5)
		return fakeMetas(a.Tensor(0))
	}, CPU: func(k *Kernel) {
		if oneInt(k.T(3)) == 0 {
			Copy(k.Pool, k.Out[0], k.T(0))
			ones, _ := tensor.FromBools([]bool{true})
			Copy(k.Pool, k.Out[1], ones)
			return
		}
		fakeTensor(k, float32(oneFloat(k.T(1))), oneInt(k.T(2)), float64(k.I64(4)), float64(k.I64(5)))
	}},
	{Schema: "fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		on := b.Call("new_ones", a.Tensor(0), []int{1}, Kw("dtype", tensor.Int64))
		return One(b.Call("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", a.Tensor(0), a.Tensor(1), a.Tensor(2), on, a.V[3], a.V[4]))
	}},
	{Schema: "fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> (Tensor output, Tensor mask)", Shape: func(a *Args) []Meta {
		x, s, z := a.Tensor(0), a.Tensor(1), a.Tensor(2)
		Check(s.DType == tensor.Float32 || s.DType == tensor.BFloat16, "Scale must be Float or BFloat16, found %s", s.DType.CPPName())
		Check(z.DType == tensor.Int32 || z.DType == tensor.Float32 || z.DType == tensor.Float16, "Zero-point must be Int32, Float or Half, found %s", z.DType.CPPName())
		Check(s.Dim() == 1 && z.Dim() == 1, "scale and zero point should be 1-D tensors")
		Check(s.Sizes[0].Eq(z.Sizes[0]), "scale and zero-point need to have the same dimensions")
		axis := WrapDim(a.I64(3), x.Dim())
		Check(x.Dim() > 0 && s.Sizes[0].Eq(x.Sizes[axis]), "dimensions of scale and zero-point are not consistent with input tensor")
		checkFakeRange(a, 4, 5)
		return fakeMetas(x)
	}, CPU: fakeChannel},
	{Schema: "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> Tensor", Decomp: linFirst("fake_quantize_per_channel_affine_cachemask")},
	{Schema: "fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor", Decomp: rename2("mul.Tensor")},
	{Schema: "fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor", Decomp: rename2("mul.Tensor")},
	{Schema: "_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max, float grad_factor=1.) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		zp := b.Call("add.Scalar", b.Call("to.dtype", a.Tensor(2), tensor.Float32), 0.5) // rounded by the cast to integers
		zp = b.Call("to.dtype", b.Call("clamp", zp, a.V[3], a.V[4]), tensor.Int64)
		return One(b.Call("fake_quantize_per_tensor_affine.tensor_qparams", a.Tensor(0), a.Tensor(1), zp, a.V[3], a.V[4]))
	}},
	{Schema: "_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		zp := b.Call("to.dtype", b.Call("clamp", b.Call("round", a.Tensor(2)), a.V[4], a.V[5]), tensor.Int32)
		return One(b.Call("fake_quantize_per_channel_affine_cachemask", a.Tensor(0), a.Tensor(1), zp, a.V[3], a.V[4], a.V[5]))
	}},
	{Schema: "_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x, w, s := a.Tensor(0), a.Tensor(1), a.Tensor(2)
		Check(x.DType.IsReduced() || x.DType == tensor.Float32, "_weight_int8pack_mm_out_cpu : expect A to be either 32-bit or 16-bit float tensor.")
		Check(x.Dim() == 2, "_weight_int8pack_mm_out_cpu : expect A to be 2D tensor.")
		Check(w.DType == tensor.Int8, "_weight_int8pack_mm_out_cpu : expect B to be int8 tensor.")
		Check(w.Dim() == 2 && w.Sizes[1].Eq(x.Sizes[1]), "_weight_int8pack_mm_out_cpu : expect B.size(1) == %v", x.Sizes[1])
		Check(s.Dim() == 1 && s.Sizes[0].Eq(w.Sizes[0]), "_weight_int8pack_mm_out_cpu : expect scales to be 1d tensor with size %v", w.Sizes[0])
		wide := func(v *Value) *Value { return b.Call("to.dtype", v, tensor.Float32) }
		r := b.Call("mul.Tensor", b.Call("mm", wide(x), b.Call("t", wide(w))), wide(s))
		return One(b.Call("to.dtype", r, x.DType))
	}},
}

func checkFakeRange(a *Args, lo, hi int) {
	Check(a.I64(lo) <= a.I64(hi), "`quant_min` should be less than or equal to `quant_max`.")
	if dt := a.Tensor(0).DType; !dt.IsFloat() || dt.IsFloat8() {
		FailAs("NotImplementedError", "\"fake_quantize_tensor_cachemask_kernel_type_handling\" not implemented for '%s'", dt.CPPName())
	}
}

func fakeMetas(x *Value) []Meta {
	return []Meta{LikeMeta(x, x.DType, PreserveFormat), LikeMeta(x, tensor.Bool, PreserveFormat)}
}

// oneFloat and oneInt read a parameter that is given as a tensor.
func oneFloat(t *tensor.Tensor) float64 { return quantParam(t).Float64() }

func oneInt(t *tensor.Tensor) int64 { return quantParam(t).Int64() }

func quantParam(t *tensor.Tensor) Scalar {
	Check(t.Numel() > 0, "expected a tensor with an element for a quantization parameter")
	return itemOf(t)
}

// fakeTensor quantizes and dequantizes argument 0 by one scale; the mask says where the number was within range.
func fakeTensor(k *Kernel, scale float32, zero int64, lo, hi float64) {
	x := k.T(0)
	kind := KindOf(x.DType())
	inv := 1 / scale
	Loop(k.Pool, []Operand{{T: k.Out[0], Kind: kind}, {T: k.Out[1], Kind: KBool}}, []Operand{{T: x, Kind: kind}}, func(outs, ins []Block) {
		mask := As[uint8](outs[1])
		if kind == KF64 {
			d := As[float64](outs[0])
			for i, v := range As[float64](ins[0]) {
				q, in := clampQuant(math.RoundToEven(v*float64(inv))+float64(zero), lo, hi)
				d[i], mask[i] = float64(float32(q-float64(zero))*scale), in
			}
			return
		}
		d := As[float32](outs[0])
		for i, v := range As[float32](ins[0]) {
			q, in := clampQuant(math.RoundToEven(float64(v*inv))+float64(zero), lo, hi)
			d[i], mask[i] = float32(q-float64(zero))*scale, in
		}
	})
}

// clampQuant brings q into range (NaN counts as lo) and says whether it was there.
func clampQuant(q, lo, hi float64) (float64, uint8) {
	switch {
	case q > hi:
		return hi, 0
	case q >= lo:
		return q, 1
	}
	return lo, 0
}

// alongAxis views a vector with the sizes of x, along one of its dimensions.
func alongAxis(v, x *tensor.Tensor, axis int) *tensor.Tensor {
	strides := make([]int64, x.Dim())
	strides[axis] = v.Strides()[0]
	return v.WithView(x.Sizes(), strides, v.Offset())
}

// fakeChannel is fakeTensor with parameters that go along an axis. Numbers that do not fit an integer count as lo.
func fakeChannel(k *Kernel) {
	x, z := k.T(0), k.T(2)
	axis := WrapDim(k.I64(3), x.Dim())
	lo, hi := float64(k.I64(4)), float64(k.I64(5))
	if z.DType() == tensor.Int32 {
		for _, v := range tensor.Contiguous[int32](k.contiguous(z)) {
			Check(float64(v) >= lo && float64(v) <= hi, "`zero_point` must be between `quant_min` and `quant_max`.")
		}
	}
	kind := KindOf(x.DType())
	whole := z.DType() == tensor.Int32
	quant := func(v, zero float64) float64 {
		q := math.RoundToEven(v) + zero
		if !whole { // zero points of a float type are added before rounding
			q = math.RoundToEven(v + zero)
		}
		if !(math.Abs(q) < 1<<63) {
			return math.Inf(-1)
		}
		return q
	}
	ins := []Operand{{T: x, Kind: kind}, {T: alongAxis(k.T(1), x, axis), Kind: KF32}, {T: alongAxis(z, x, axis), Kind: KF32}}
	Loop(k.Pool, []Operand{{T: k.Out[0], Kind: kind}, {T: k.Out[1], Kind: KBool}}, ins, func(outs, ins []Block) {
		mask, s, zp := As[uint8](outs[1]), As[float32](ins[1]), As[float32](ins[2])
		if kind == KF64 {
			d := As[float64](outs[0])
			for i, v := range As[float64](ins[0]) {
				q, in := clampQuant(quant(v*float64(1/s[i]), float64(zp[i])), lo, hi)
				d[i], mask[i] = (q-float64(zp[i]))*float64(s[i]), in
			}
			return
		}
		d := As[float32](outs[0])
		for i, v := range As[float32](ins[0]) {
			q, in := clampQuant(quant(float64(v*(1/s[i])), float64(zp[i])), lo, hi)
			d[i], mask[i] = float32(q-float64(zp[i]))*s[i], in
		}
	})
}

// roundHalf rounds a float32 to the values of a 16-bit float.
func roundHalf(dt tensor.DType, v float32) float32 {
	switch dt {
	case tensor.Float16:
		return tensor.F16ToF32(tensor.F32ToF16(v))
	case tensor.BFloat16:
		return tensor.BF16ToF32(tensor.F32ToBF16(v))
	}
	return v
}

// truncI32 is the cast of a float to int32, which gives the least number where the float does not fit.
func truncI32(v float64) int32 {
	var out int32
	storeRow(unsafe.Pointer(&out), tensor.Int32, 1, unsafe.Pointer(&v), KF64, 1)
	return out
}
