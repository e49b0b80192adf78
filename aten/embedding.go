package aten

import (
	"unsafe"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// embeddingOps look rows of a table up.
var embeddingOps = []Op{
	{
		Schema: "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
		Tags:   Core,
		Shape: func(a *Args) []Meta {
			w, idx := a.Tensor(0), a.Tensor(1)
			Check(w.Dim() == 2, "'weight' must be 2-D")
			checkIndexType(idx, "indices", "embedding")
			return []Meta{Contig(w.DType, append(append([]symbolic.Int{}, idx.Sizes...), w.Sizes[1])...)}
		},
		CPU: embeddingKernel,
	},
	{
		Schema: "embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
		Shape: func(a *Args) []Meta {
			Check(a.Tensor(0).Dim() == 2, "'self' must be 2-D")
			checkIndexType(a.Tensor(1), "indices", "embedding_renorm_")
			return []Meta{LikeMeta(a.Tensor(0), a.Tensor(0).DType, PreserveFormat)}
		},
		CPU: embeddingRenorm,
	},
	{
		Schema: "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
		Tags:   Core,
		Shape: func(a *Args) []Meta {
			g := a.Tensor(0)
			checkIndexType(a.Tensor(1), "indices", "embedding_backward")
			return []Meta{Contig(g.DType, a.Int(2), g.Size(-1))}
		},
		CPU: embeddingBackward,
	},
	{
		Schema: "embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq, bool sparse) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			Check(!a.Bool(5), "sparse gradients are not supported: use sparse=False")
			return One(b.Call("embedding_dense_backward", a.V[:5]...))
		},
	},
}

// checkIndexType refuses indices other than int32 and int64.
func checkIndexType(v *Value, name, op string) {
	if v.DType != tensor.Int64 && v.DType != tensor.Int32 {
		Fail("Expected tensor for argument #1 '%s' to have one of the following scalar types: Long, Int; but got torch.%sTensor instead (while checking arguments for %s)", name, v.DType.CPPName(), op)
	}
}

// indexRow checks an index from data against the number of rows.
func indexRow(i, n int64) int64 {
	if i < 0 || i >= n {
		FailIndex("index out of range in self")
	}
	return i
}

func embeddingKernel(k *Kernel) {
	w, out := k.T(0), k.Out[0]
	idx := tensor.Contiguous[int64](k.as(k.T(1), tensor.Int64))
	n, d := w.Sizes()[0], w.Sizes()[1]
	for _, i := range idx {
		indexRow(i, n)
	}
	dst := k.room(0, w.DType())
	size := int64(w.DType().Size())
	src, to := base(w), base(dst)
	if d == 0 || len(idx) == 0 {
		return
	}
	k.Pool.ParallelFor(len(idx), max(1, grain/int(d)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copyRow(unsafe.Add(to, int64(i)*d*size), 1, unsafe.Add(src, idx[i]*w.Strides()[0]*size), w.Strides()[1], d, size)
		}
	})
	if dst != out {
		Copy(k.Pool, out, dst)
	}
}

// embeddingRenorm scales the rows that the indices name down to the greatest norm.
func embeddingRenorm(k *Kernel) {
	out := k.Out[0]
	Copy(k.Pool, out, k.T(0))
	idx := tensor.Contiguous[int64](k.as(k.T(1), tensor.Int64))
	maxNorm, p := k.Float(2), k.Float(3)
	seen := map[int64]bool{}
	for _, i := range idx {
		indexRow(i, out.Sizes()[0])
		if seen[i] {
			continue
		}
		seen[i] = true
		row := out.WithView(out.Sizes()[1:], out.Strides()[1:], out.Offset()+i*out.Strides()[0])
		v := tensor.Contiguous[float64](k.as(row, tensor.Float64))
		norm := vectorNorm(v, p)
		if norm <= maxNorm {
			continue
		}
		s := maxNorm / (norm + 1e-7)
		scaled, err := tensor.FromSlice(scaleAll(v, s), int64(len(v)))
		if err != nil {
			Fail("%v", err)
		}
		Copy(k.Pool, row, scaled)
	}
}

func scaleAll(v []float64, s float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = x * s
	}
	return out
}

func embeddingBackward(k *Kernel) {
	g, idx := k.T(0), tensor.Contiguous[int64](k.as(k.T(1), tensor.Int64))
	switch dt := workType(k.Out[0].DType()); dt {
	case tensor.Float64:
		scatterRows[float64](k, g, idx, dt)
	default:
		scatterRows[float32](k, g, idx, tensor.Float32)
	}
}

func scatterRows[T float32 | float64](k *Kernel, g *tensor.Tensor, idx []int64, dt tensor.DType) {
	n, pad := k.I64(2), k.I64(3)
	out := tensor.New(dt, k.Out[0].Sizes()...)
	src, dst := tensor.Contiguous[T](k.as(g, dt)), tensor.Contiguous[T](out)
	d := int(out.Sizes()[1])
	count := map[int64]int{}
	if k.Bool(4) {
		for _, i := range idx {
			count[i]++
		}
	}
	for r, i := range idx {
		if i == pad {
			continue
		}
		indexRow(i, n)
		s := T(1)
		if k.Bool(4) {
			s /= T(count[i])
		}
		row := dst[int(i)*d : (int(i)+1)*d]
		for j, v := range src[r*d : (r+1)*d] {
			row[j] += v * s
		}
	}
	Copy(k.Pool, k.Out[0], out)
}
