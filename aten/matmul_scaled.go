package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// scaledOps are products of float8 matrices with scales, and of weights packed as 4-bit numbers.
var scaledOps = []Op{
	{Schema: "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		x := a.Tensor(0)
		return One(scaledProduct(b, x, a.Tensor(1), a.Tensor(2), a.Tensor(3), a.OptTensor(4), a.OptTensor(5), a.DType(6, x.DType)))
	}},
	{Schema: "_scaled_mm_v2(Tensor self, Tensor mat2, Tensor[] scale_a, int[] recipe_a, int[] swizzle_a, Tensor[] scale_b, int[] recipe_b, int[] swizzle_b, Tensor? bias, ScalarType? out_dtype, int[] contraction_dim=[], bool use_fast_accum=False) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		sa, sb := a.Tensors(2), a.Tensors(5)
		const tensorWise, rowWise = 0, 1
		for _, r := range append(a.I64s(3), a.I64s(6)...) {
			Check(r == tensorWise || r == rowWise, "_scaled_mm_v2: only scales of whole tensors and of rows are supported on the CPU")
		}
		Check(len(sa) == 1 && len(sb) == 1, "_scaled_mm_v2: expected one scale for each operand, got %d and %d", len(sa), len(sb))
		x := a.Tensor(0)
		return One(scaledProduct(b, x, a.Tensor(1), sa[0], sb[0], a.OptTensor(8), nil, a.DType(9, x.DType)))
	}},
	{Schema: "_convert_weight_to_int4pack_for_cpu(Tensor self, int innerKTiles) -> Tensor", Shape: func(a *Args) []Meta {
		w := a.Tensor(0)
		Check(w.Dim() == 2, "_convert_weight_to_int4pack_cpu : expect weight to be 2D tensor.")
		Check(w.DType == tensor.Int32, "_convert_weight_to_int4pack_cpu : expect weight to be kInt.")
		Check(w.Sizes[0].Mod(symbolic.N(16)).Eq(symbolic.N(0)), "_convert_weight_to_int4pack_cpu : expect N to be dividable by 16")
		Check(w.Sizes[1].Mod(symbolic.N(2)).Eq(symbolic.N(0)), "_convert_weight_to_int4pack_cpu : expect K to be dividable by 2")
		return []Meta{Contig(tensor.Uint8, w.Sizes[0], w.Sizes[1].DivN(2))}
	}, CPU: packInt4},
	{Schema: "_weight_int4pack_mm_for_cpu(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor", Shape: func(a *Args) []Meta {
		x, w, s := a.Tensor(0), a.Tensor(1), a.Tensor(3)
		Check(x.DType.IsReduced() || x.DType == tensor.Float32, "_weight_int4pack_mm_cpu : expect A to be either 32-bit or 16-bit float tensor.")
		Check(x.Dim() == 2, "_weight_int4pack_mm_cpu : expect A to be 2D tensor.")
		Check(w.DType == tensor.Uint8, "_weight_int4pack_mm_cpu : expect B to be uint8 tensor.")
		Check(w.Dim() == 2 && w.Sizes[1].MulN(2).Eq(x.Sizes[1]), "_weight_int4pack_mm_cpu : expect B.size(1) to be K/2")
		group := a.I64(2)
		Check(group == 32 || group == 64 || group == 128 || group == 256, "_weight_int4pack_mm_cpu: expect qGroupSize to be 32, 64, 128 or 256, got %d", group)
		Check(s.Dim() == 3 && s.Sizes[1].Eq(w.Sizes[0]) && s.Sizes[2].Eq(symbolic.N(2)) && s.Sizes[0].MulN(group).Eq(x.Sizes[1]), "_weight_int4pack_mm_cpu: expect qScaleAndZeros to be 3d tensor with sizes [:, %v, 2]", w.Sizes[0])
		return []Meta{Contig(x.DType, x.Sizes[0], w.Sizes[0])}
	}, CPU: int4Product, Note: "the layout of the packed weights is that of PyTorch on CPUs with AVX-512"},
}

// scaledProduct is (x @ w)*sa*sb + bias, computed in float32; result is the scale of a float8 result.
func scaledProduct(b *Build, x, w, sa, sb, bias, result *Value, dt tensor.DType) *Value {
	Check(x.Dim() == 2, "mat1 must be a matrix")
	Check(w.Dim() == 2, "mat2 must be a matrix")
	Check(x.Sizes[1].Eq(w.Sizes[0]), "mat1 and mat2 shapes cannot be multiplied (%vx%v and %vx%v)", x.Sizes[0], x.Sizes[1], w.Sizes[0], w.Sizes[1])
	one := symbolic.N(1)
	rows := SameSizes(sa.Sizes, []symbolic.Int{x.Sizes[0], one}) && SameSizes(sb.Sizes, []symbolic.Int{one, w.Sizes[1]})
	if !x.DType.IsFloat8() || !w.DType.IsFloat8() || !rows && (sa.Numel().Ne(one) || sb.Numel().Ne(one)) {
		FailValue("Invalid scaling configuration.\n- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n"+
			"- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be (%v, 1) and scale_b should be (1, %v), and both should be contiguous.", x.Sizes[0], w.Sizes[1])
	}
	r := b.Call("mm", b.Call("to.dtype", x, tensor.Float32), b.Call("to.dtype", w, tensor.Float32))
	for _, s := range []*Value{sa, sb} { // after the sums, which float8 numbers leave exact as long as they are short
		if !rows {
			s = b.Call("reshape", s, []int64{})
		}
		r = b.Call("mul.Tensor", r, b.Call("to.dtype", s, tensor.Float32))
	}
	if bias != nil {
		Check(bias.Numel().Eq(w.Sizes[1]), "Bias must be size %v but got %v", w.Sizes[1], bias.Numel())
		r = b.Call("add.Tensor", r, b.Call("to.dtype", bias, tensor.Float32))
	}
	if result != nil && dt.IsFloat8() {
		r = b.Call("div.Tensor", r, b.Call("reshape", result, []int64{}))
	}
	if dt.IsFloat8() { // oneDNN rounds to float16 on the way
		r = b.Call("to.dtype", r, tensor.Float16)
	}
	return b.Call("to.dtype", r, dt)
}

// int4Block is the number of rows of a weight that are packed together.
const int4Block = 64

// int4Place says where weight [n, kk] of an [N, K] matrix lies among the packed bytes, and by how much it is shifted there: in a whole
// block row r shares a byte with row r+32, in the last, shorter one with its neighbour.
func int4Place(n, kk, rows, cols int64) (at int64, shift uint) {
	first := n / int4Block * int4Block
	size, r := min(int4Block, rows-first), n-n/int4Block*int4Block
	at = first*cols/2 + kk*size/2
	if size == int4Block {
		return at + r%32, uint(r/32) * 4
	}
	return at + r/2, uint(r%2) * 4
}

func packInt4(k *Kernel) {
	w := tensor.Contiguous[int32](k.as(k.T(0), tensor.Int32))
	rows, cols := k.T(0).Sizes()[0], k.T(0).Sizes()[1]
	out := tensor.New(tensor.Uint8, k.Out[0].Sizes()...)
	p := tensor.Data[uint8](out)
	for n := range rows {
		for i := range cols {
			at, shift := int4Place(n, i, rows, cols)
			p[at] |= uint8(w[n*cols+i]&15) << shift
		}
	}
	Copy(k.Pool, k.Out[0], out)
}

// int4Product multiplies by the unpacked weight (q-8)*scale + zero, group by group of the summed dimension.
func int4Product(k *Kernel) {
	x, p := k.T(0), tensor.Contiguous[uint8](k.contiguous(k.T(1)))
	rows, cols, group := k.T(1).Sizes()[0], x.Sizes()[1], k.I64(2)
	s := tensor.Contiguous[float32](k.as(k.T(3), tensor.Float32))
	w := tensor.New(tensor.Float32, rows, cols)
	wd := tensor.Data[float32](w)
	k.Pool.ParallelFor(int(rows), max(1, int(grain/max(cols, 1))), func(lo, hi int) {
		for n := int64(lo); n < int64(hi); n++ {
			for i := range cols {
				at, shift := int4Place(n, i, rows, cols)
				q := (i/group*rows + n) * 2
				wd[n*cols+i] = float32(int32(p[at]>>shift&15)-8)*s[q] + s[q+1]
			}
		}
	})
	out := k.room(0, tensor.Float32)
	wt := w.WithView([]int64{cols, rows}, []int64{1, cols}, 0)
	product(k, out, k.as(x, tensor.Float32), wt, false)
	k.deliver(0, out)
}
