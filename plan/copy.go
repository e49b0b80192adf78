package plan

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// copyOp copies, with the dtype and strides of its output.
var copyOp = internal(&aten.Op{
	Schema: "plan::copy(Tensor x) -> Tensor",
	Shape:  func(a *aten.Args) []aten.Meta { return nil },
	CPU: func(k *aten.Kernel) {
		if !copyTransposed(k) {
			aten.Copy(k.Pool, k.Out[0], k.T(0))
		}
	},
})

// copyBlock is how many positions are transposed at once.
const copyBlock = 1024

// copyTransposed copies between [N, C, ...] and [N, ..., C] in memory, block by block; false if the copy is another one.
func copyTransposed(k *aten.Kernel) bool {
	x, out := k.T(0), k.Out[0]
	if x.Dim() < 3 || x.DType() != out.DType() || x.IsNeg() != out.IsNeg() || out.Numel() == 0 {
		return false
	}
	switch x.DType() {
	case tensor.Float32:
		return copyBlocks(k, cpu.TransposeF32)
	case tensor.Uint8, tensor.Int8:
		return copyBlocks(k, cpu.TransposeU8)
	}
	return false
}

// copyBlocks is copyTransposed for a type and what transposes matrices of it.
func copyBlocks[T float32 | uint8](k *aten.Kernel, transpose func(dst, x []T, rows, cols, ldd, ldx int)) bool {
	x, out := k.T(0), k.Out[0]
	size := x.Sizes()
	c, pos := int(size[1]), 1
	for _, s := range size[2:] {
		pos *= int(s)
	}
	toLast := x.IsContiguous() && cLast(out)
	if !toLast && !(cLast(x) && out.IsContiguous()) {
		return false
	}
	src, dst := tensor.Data[T](x), tensor.Data[T](out)
	blocks := (pos + copyBlock - 1) / copyBlock
	k.Pool.ParallelFor(int(size[0])*blocks, max(1, 32/c), func(lo, hi int) {
		for t := lo; t < hi; t++ {
			i, p := t/blocks, t%blocks*copyBlock
			n := min(pos-p, copyBlock)
			s, d := src[i*c*pos:(i+1)*c*pos], dst[i*c*pos:(i+1)*c*pos]
			if toLast {
				transpose(d[p*c:], s[p:], c, n, c, pos)
			} else {
				transpose(d[p:], s[p*c:], n, c, pos, c)
			}
		}
	})
	return true
}

// cLast reports that t lies in memory as [N, ..., C] without gaps.
func cLast(t *tensor.Tensor) bool {
	want := int64(1)
	fits := func(d int) bool {
		n := t.Sizes()[d]
		ok := n <= 1 || t.Strides()[d] == want
		want *= n
		return ok
	}
	if !fits(1) {
		return false
	}
	for d := t.Dim() - 1; d >= 2; d-- {
		if !fits(d) {
			return false
		}
	}
	return fits(0)
}
