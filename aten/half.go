package aten

import (
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// halfFormat is the format of a 16-bit float dtype.
func halfFormat(dt tensor.DType) cpu.HalfFormat {
	if dt == tensor.BFloat16 {
		return cpu.BF16
	}
	return cpu.F16
}

func halfMatrixOf(t *tensor.Tensor) cpu.HalfMatrix {
	return cpu.HalfMatrix{Data: tensor.Data[uint16](t), Row: int(t.Strides()[0]), Col: int(t.Strides()[1])}
}

// halfProduct is out = x*y + bias for 2-d tensors of one 16-bit float dtype and any strides; bias [N] is nil for none.
func halfProduct(k *Kernel, out, x, y *tensor.Tensor, bias []float32) {
	m, n, d := int(out.Sizes()[0]), int(out.Sizes()[1]), int(x.Sizes()[1])
	to := out
	if out.Strides()[1] != 1 {
		to = tensor.New(out.DType(), out.Sizes()...)
	}
	var ep *cpu.Epilogue
	if bias != nil {
		ep = &cpu.Epilogue{ColBias: bias}
	}
	cpu.GemmHalf(k.Pool, halfFormat(out.DType()), m, n, d, halfMatrixOf(x), halfMatrixOf(y), tensor.Data[uint16](to), int(to.Strides()[0]), ep)
	if to != out {
		Copy(k.Pool, out, to)
	}
}

// halfSums is out = x*y in float32 for 2-d tensors of one 16-bit float dtype and any strides.
func halfSums(k *Kernel, out, x, y *tensor.Tensor) {
	m, n, d := int(out.Sizes()[0]), int(out.Sizes()[1]), int(x.Sizes()[1])
	to := out
	if out.Strides()[1] != 1 {
		to = tensor.New(tensor.Float32, out.Sizes()...)
	}
	cpu.GemmHalfF32(k.Pool, halfFormat(x.DType()), m, n, d, halfMatrixOf(x), halfMatrixOf(y), tensor.Data[float32](to), int(to.Strides()[0]))
	if to != out {
		Copy(k.Pool, out, to)
	}
}
