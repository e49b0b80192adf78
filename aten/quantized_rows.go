package aten

import (
	"encoding/binary"
	"math"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// quantizedRowsOps are those operators of the library quantized that take and give plain tensors: tables whose rows carry their own scale
// and offset behind their numbers, and linear layers that quantize on the way. value = q*scale + offset.
var quantizedRowsOps = concat(packedRows("byte", 8), packedRows("4bit", 4), packedRows("2bit", 2), []Op{
	{
		Schema: "quantized::linear_dynamic_fp16_unpacked_weight(Tensor X, Tensor weight, Tensor? bias) -> Tensor Y",
		Note:   "the weight is rounded to half precision, what is too large to its largest number",
		Decomp: func(b *Build, a *Args) []*Value {
			const most = 65504
			w := b.Call("to.dtype", b.Call("clamp", a.Tensor(1), -most, most), tensor.Float16)
			return One(b.Call("linear", a.Tensor(0), b.Call("to.dtype", w, tensor.Float32), a.V[2]))
		},
	},
	{
		Schema: "_quantized::wrapped_quantized_linear(Tensor X, Tensor X_scale, Tensor X_zero_point, Tensor W, Tensor W_scale, Tensor W_zero_point, Tensor B, Tensor output_scale, Tensor output_zero_point, int out_channel) -> Tensor Y",
		Decomp: func(b *Build, a *Args) []*Value {
			whole := func(x, scale, zero *Value, lo, hi int, dt tensor.DType) *Value { // quantized, without its zero point
				q := b.Call("quantized_decomposed.quantize_per_tensor.tensor", x, scale, zero, lo, hi, dt)
				return b.Call("sub.Tensor", b.Call("to.dtype", q, tensor.Float64), zero)
			}
			x := whole(a.Tensor(0), a.Tensor(1), a.Tensor(2), 0, 255, tensor.Uint8)
			w := whole(a.Tensor(3), a.Tensor(4), a.Tensor(5), -128, 127, tensor.Int8)
			y := b.Call("mul.Tensor", b.Call("linear", x, w), b.Call("mul.Tensor", a.Tensor(1), a.Tensor(4)))
			y = b.Call("to.dtype", b.Call("add.Tensor", y, a.Tensor(6)), tensor.Float32)
			q := b.Call("quantized_decomposed.quantize_per_tensor.tensor", y, a.Tensor(7), a.Tensor(8), 0, 255, tensor.Uint8)
			return One(b.Call("quantized_decomposed.dequantize_per_tensor.tensor", q, a.Tensor(7), a.Tensor(8), 0, 255, tensor.Uint8))
		},
	},
})

// packedRows are the operators on rows of numbers of some bits. Behind the numbers stand scale and offset, as float32 for bytes, as
// float16 for fewer bits.
func packedRows(name string, bits int) []Op {
	options := ""
	if bits < 8 {
		options = ", bool optimized_qparams=False, int nbins=200, float ratio=0.16"
	}
	per, tail := 8/bits, 4
	if bits == 8 {
		tail = 8
	}
	return []Op{
		{
			Schema: "quantized::embedding_bag_" + name + "_unpack(Tensor weight) -> Tensor",
			Shape: func(a *Args) []Meta {
				w := a.Tensor(0)
				Check(w.DType == tensor.Uint8 && w.Dim() > 0 && w.Sizes[w.Dim()-1].Int64() >= int64(tail), "embedding_bag_%s_unpack: expected rows of bytes with their scale and offset", name)
				n := w.Sizes[w.Dim()-1].SubN(int64(tail)).MulN(int64(per))
				return []Meta{Contig(tensor.Float32, append(cloneInts(w.Sizes[:w.Dim()-1]), n)...)}
			},
			CPU: func(k *Kernel) { unpackRows(k, bits, tail) },
		},
		{
			Schema: "quantized::embedding_bag_" + name + "_prepack(Tensor weight" + options + ") -> Tensor",
			Shape: func(a *Args) []Meta {
				w := a.Tensor(0)
				Check(w.Dim() > 0 && (w.DType == tensor.Float32 || w.DType == tensor.Float16), "'embedding_bag_%s_prepack' only support float32 or float16.", name)
				n := w.Sizes[w.Dim()-1]
				Check(n.Mod(symbolic.N(int64(per))).Eq(symbolic.N(0)), "qembeddingbag_%s_prepack only works for the number of columns a multiple of %d", name, per)
				Check(bits == 8 || !a.Bool(1), "embedding_bag_%s_prepack: optimized_qparams is not supported", name)
				return []Meta{Contig(tensor.Uint8, append(cloneInts(w.Sizes[:w.Dim()-1]), n.DivN(int64(per)).AddN(int64(tail)))...)}
			},
			CPU: func(k *Kernel) { packRows(k, bits, tail) },
		},
		{
			Schema: "quantized::embedding_bag_" + name + "_rowwise_offsets(Tensor weight, Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, Tensor? per_sample_weights=None, Tensor? compressed_indices_mapping=None, bool include_last_offset=False) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value {
				Check(!a.Bool(5) && !a.Has(7), "embedding_bag_%s_rowwise_offsets: pruned weights are not supported", name)
				w := b.Call("quantized.embedding_bag_"+name+"_unpack.default", a.Tensor(0))
				idx, offsets := a.Tensor(1), a.OptTensor(2)
				if idx.Dim() == 2 {
					offsets = b.Call("arange.start_step", 0, idx.Numel(), idx.Sizes[1], Kw("dtype", idx.DType))
					idx = b.Call("reshape", idx, []int{-1})
				}
				Check(offsets != nil, "embedding_bag_%s operator expects offsets to be set for 1D indices.", name)
				// The sum, whatever the mode.
				return One(b.CallN("embedding_bag", w, idx, offsets, a.V[3], 0, false, a.V[6], a.V[8])[0])
			},
		},
	}
}

func unpackRows(k *Kernel, bits, tail int) {
	w, out := tensor.Contiguous[uint8](k.contiguous(k.T(0))), tensor.Data[float32](k.Out[0])
	row := int(k.T(0).Sizes()[k.T(0).Dim()-1])
	n, per := (row-tail)*8/bits, 8/bits
	for r := range len(w) / row {
		q, o := w[r*row:(r+1)*row], out[r*n:(r+1)*n]
		scale, offset := rowScale(q[row-tail:])
		for i := range o {
			v := q[i/per] >> (i % per * bits) & (1<<bits - 1)
			o[i] = float32(v)*scale + offset
		}
	}
}

// rowScale reads scale and offset from the end of a row.
func rowScale(b []byte) (scale, offset float32) {
	if len(b) == 8 {
		return math.Float32frombits(binary.LittleEndian.Uint32(b)), math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))
	}
	return tensor.F16ToF32(binary.LittleEndian.Uint16(b)), tensor.F16ToF32(binary.LittleEndian.Uint16(b[2:]))
}

func packRows(k *Kernel, bits, tail int) {
	x, out := tensor.Contiguous[float32](k.as(k.T(0), tensor.Float32)), tensor.Data[uint8](k.Out[0])
	n := int(k.T(0).Sizes()[k.T(0).Dim()-1])
	row, per := n*bits/8+tail, 8/bits
	for r := range len(out) / row {
		q, v := out[r*row:(r+1)*row], x[r*n:(r+1)*n]
		low, inverse := scaleRow(q[row-tail:], v, bits)
		clear(q[:row-tail])
		for i, f := range v {
			level := min(max(math.RoundToEven(float64((f-low)*inverse)), 0), float64(int(1)<<bits-1))
			q[i/per] |= uint8(level) << (i % per * bits)
		}
	}
}

// scaleRow writes a row's scale and offset to its end and gives what its numbers are computed with.
func scaleRow(end []byte, v []float32, bits int) (low, inverse float32) {
	var high float32
	for i, f := range v {
		if i == 0 || f < low {
			low = f
		}
		if i == 0 || f > high {
			high = f
		}
	}
	levels := float32(int(1)<<bits - 1)
	if bits == 8 {
		width := high - low
		binary.LittleEndian.PutUint32(end, math.Float32bits(width/levels))
		binary.LittleEndian.PutUint32(end[4:], math.Float32bits(low))
		return low, levels / (width + 1e-8)
	}
	low = tensor.F16ToF32(tensor.F32ToF16(low))
	scale := tensor.F16ToF32(tensor.F32ToF16((high - low) / levels))
	if scale == 0 {
		scale = 1
	}
	inverse = 1 / scale
	if math.IsInf(float64(inverse), 0) {
		scale, inverse = 1, 1
	}
	binary.LittleEndian.PutUint16(end, tensor.F32ToF16(scale))
	binary.LittleEndian.PutUint16(end[2:], tensor.F32ToF16(low))
	return low, inverse
}
