package aten

import (
	"math"

	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// The ways in which embedding_bag reduces a bag.
const (
	bagSum = iota
	bagMean
	bagMax
)

// embeddingBagOps reduce bags of rows.
var embeddingBagOps = []Op{
	{
		Schema: "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
		Tags:   Core,
		Shape:  func(a *Args) []Meta { return shapeEmbeddingBag(a, false) },
		CPU:    embeddingBagKernel,
	},
	{
		Schema: "_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
		Shape:  func(a *Args) []Meta { return shapeEmbeddingBag(a, true) },
		CPU:    embeddingBagKernel,
	},
	{
		Schema: "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)",
		Decomp: func(b *Build, a *Args) []*Value { return b.CallN("_embedding_bag", a.V...) },
	},
	{
		Schema: "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
		Decomp: func(b *Build, a *Args) []*Value {
			pad := int64(-1)
			if v, ok := a.OptInt(8); ok {
				pad = v.Int64()
				n := a.Tensor(0).Sizes[0].Int64()
				Check(pad >= -n && pad < n, "padding_idx must be within the number of embeddings, -%d through %d, but got %d", n, n-1, pad)
				if pad < 0 {
					pad += n
				}
			}
			return b.CallN("_embedding_bag", append(append([]any{}, a.V[:8]...), pad)...)
		},
	},
}

func shapeEmbeddingBag(a *Args, forwardOnly bool) []Meta {
	w, idx, offsets := a.Tensor(0), a.Tensor(1), a.Tensor(2)
	checkIndexType(idx, "indices", "embedding_bag")
	checkIndexType(offsets, "offsets", "embedding_bag")
	Check(w.DType.IsFloat(), "expected weight to be floating point type, got %s", w.DType)
	Check(w.Dim() == 2 && idx.Dim() == 1 && offsets.Dim() == 1, "embedding_bag: weight has to be a 2D Tensor, indices and offsets 1D Tensors, but got Tensors of dimension %d, %d and %d", w.Dim(), idx.Dim(), offsets.Dim())
	mode, psw := a.I64(4), a.OptTensor(6)
	Check(mode >= bagSum && mode <= bagMax, "embedding_bag: unknown mode %d", mode)
	bags := offsets.Sizes[0]
	if a.Bool(7) {
		Check(bags.Ge(symbolic.N(1)), "include_last_offset: numBags should be at least 1")
		bags = bags.SubN(1)
	}
	one := symbolic.N(1)
	fast := (w.DType == tensor.Float32 || w.DType == tensor.Float16) && w.Strides[1].Eq(one) && a.I64(8) < 0
	if psw != nil {
		Check(mode == bagSum, "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='%s'). Please open a feature request on GitHub.", [...]string{"sum", "mean", "max"}[mode])
		Check(psw.Dim() == 1 && psw.Sizes[0].Eq(idx.Sizes[0]), "expected per_sample_weights.numel() (%v) to be the same as indices.numel() (%v)", psw.Numel(), idx.Numel())
		Check(psw.DType == w.DType, "expected per_sample_weights to have the same type as weight")
		fast = fast && psw.Strides[0].Eq(one)
	}
	bagOf, size, maxima := Contig(offsets.DType, idx.Sizes[0]), Contig(offsets.DType, bags), Contig(offsets.DType, bags)
	if mode == bagSum && fast {
		bagOf = Contig(offsets.DType, symbolic.N(0))
	}
	if forwardOnly {
		size = Contig(offsets.DType, offsets.Sizes[0])
	}
	if mode == bagMax {
		maxima = Contig(offsets.DType, bags, w.Sizes[1])
	}
	for _, m := range []*Meta{&bagOf, &size, &maxima} {
		m.Zero = true
	}
	return []Meta{Contig(w.DType, bags, w.Sizes[1]), bagOf, size, maxima}
}

func embeddingBagKernel(k *Kernel) {
	if k.T(0).DType() == tensor.Float32 && k.I64(4) != bagMax && k.I64(8) < 0 {
		embeddingBagSums(k)
		return
	}
	if workType(k.T(0).DType()) == tensor.Float64 {
		embeddingBags[float64](k, tensor.Float64)
	} else {
		embeddingBags[float32](k, tensor.Float32)
	}
}

// embeddingBagSums computes sums and means in float32 where no index stands for padding.
func embeddingBagSums(k *Kernel) {
	w := k.contiguous(k.T(0))
	idx := tensor.Contiguous[int64](k.as(k.T(1), tensor.Int64))
	offsets := tensor.Contiguous[int64](k.as(k.T(2), tensor.Int64))
	table, n, mean := tensor.Contiguous[float32](w), w.Sizes()[0], k.I64(4) == bagMean
	for _, i := range idx {
		indexRow(i, n)
	}
	var scale []float32
	if s := k.OptT(6); s != nil {
		scale = tensor.Contiguous[float32](k.contiguous(s))
	}
	out := k.room(0, tensor.Float32)
	bags, d := int(out.Sizes()[0]), int(out.Sizes()[1])
	ends := bagEnds(offsets, bags, int64(len(idx)))
	dst := tensor.Contiguous[float32](out)
	count := func(b int) int64 {
		c := max(ends[b]-offsets[b], 0)
		if k.Bool(7) && b == bags-1 && mean { // PyTorch counts what lies beyond the last offset too
			c += int64(len(idx)) - ends[b]
		}
		return c
	}
	k.Pool.ParallelFor(bags, max(1, bags*8192/max(len(idx)*d, 1)), func(lo, hi int) {
		for b := lo; b < hi; b++ {
			row, from := dst[b*d:(b+1)*d], offsets[b]
			var s []float32
			if scale != nil {
				s = scale[min(from, int64(len(scale))):]
			}
			cpu.BagSumF32(row, table, idx[min(from, int64(len(idx))):], int(max(ends[b]-from, 0)), s)
			if c := count(b); mean && c > 1 {
				cpu.DivScalarF32(row, row, float32(c))
			}
		}
	})
	k.deliver(0, out)
	bagIntegers(k, offsets, ends, count, mean)
}

// bagIntegers fills the integer results: the bag of each index where it is asked for, and the sizes of bags of means. (A sum needs
// none, and PyTorch leaves them 0.)
func bagIntegers(k *Kernel, offsets, ends []int64, count func(b int) int64, mean bool) {
	if of := k.Out[1]; of != nil && of.Numel() > 0 {
		v := tensor.New(tensor.Int64, of.Sizes()...)
		p := tensor.Contiguous[int64](v)
		for b := range ends {
			for i := offsets[b]; i < ends[b]; i++ {
				p[i] = int64(b)
			}
		}
		Copy(k.Pool, of, v)
	}
	if sizes := k.Out[2]; mean && sizes != nil && sizes.Numel() > 0 {
		v := tensor.New(tensor.Int64, sizes.Sizes()...)
		p := tensor.Contiguous[int64](v)
		for b := range ends {
			p[b] = count(b)
		}
		Copy(k.Pool, sizes, v)
	}
}

// embeddingBags computes all four results, the integer ones in int64.
func embeddingBags[T float32 | float64](k *Kernel, dt tensor.DType) {
	w := k.as(k.T(0), dt)
	idx := tensor.Contiguous[int64](k.as(k.T(1), tensor.Int64))
	offsets := tensor.Contiguous[int64](k.as(k.T(2), tensor.Int64))
	mode, pad := k.I64(4), k.I64(8)
	n, d := w.Sizes()[0], int(w.Sizes()[1])
	var scale []T
	if s := k.OptT(6); s != nil {
		scale = tensor.Contiguous[T](k.as(s, dt))
	}
	bags := int(k.Out[0].Sizes()[0])
	ends := bagEnds(offsets, bags, int64(len(idx)))
	out := tensor.New(dt, k.Out[0].Sizes()...)
	dst, src := tensor.Contiguous[T](out), tensor.Contiguous[T](w)
	ints := make([][]int64, 4)
	tmp := make([]*tensor.Tensor, 4)
	for i := 1; i < 4; i++ {
		tmp[i] = tensor.New(tensor.Int64, k.Out[i].Sizes()...)
		ints[i] = tensor.Contiguous[int64](tmp[i])
	}
	for b := range bags {
		row := dst[b*d : (b+1)*d]
		count := int64(0)
		for i := offsets[b]; i < ends[b]; i++ {
			if len(ints[1]) > 0 {
				ints[1][i] = int64(b)
			}
			r := indexRow(idx[i], n)
			if r == pad {
				continue
			}
			in := src[int(r)*d : int(r+1)*d]
			switch {
			case mode == bagMax:
				bagMaximum(row, in, ints[3][b*d:(b+1)*d], r, count == 0)
			case scale != nil:
				for j, v := range in {
					row[j] += v * scale[i]
				}
			default:
				for j, v := range in {
					row[j] += v
				}
			}
			count++
		}
		if k.Bool(7) && b == bags-1 && mode != bagSum { // PyTorch counts what lies beyond the last offset too
			count += int64(len(idx)) - ends[b]
		}
		if mode == bagMean && count > 1 {
			for j := range row {
				row[j] /= T(count)
			}
		}
		if mode != bagSum { // a sum needs no sizes, and PyTorch leaves them 0
			ints[2][b] = count
		}
	}
	Copy(k.Pool, k.Out[0], out)
	for i := 1; i < 4; i++ {
		Copy(k.Pool, k.Out[i], tmp[i])
	}
}

func bagMaximum[T float32 | float64](row, in []T, place []int64, r int64, first bool) {
	for j, v := range in {
		if first || v > row[j] || (math.IsNaN(float64(v)) && !math.IsNaN(float64(row[j]))) {
			row[j], place[j] = v, r
		}
	}
}

// bagEnds gives the end of each bag after checking the offsets.
func bagEnds(offsets []int64, bags int, n int64) []int64 {
	if len(offsets) > 0 {
		Check(offsets[0] == 0, "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got %d", offsets[0])
		last := offsets[len(offsets)-1]
		Check(last <= n, "offsets[-1] can not be greater than input's length(%d), but got offsets[-1] of %d", n, last)
	}
	ends := make([]int64, bags)
	for b := range ends {
		ends[b] = n
		if b+1 < len(offsets) {
			ends[b] = offsets[b+1]
		}
		Check(offsets[b] >= 0 && ends[b] <= n, "offsets must lie between 0 and the number of indices %d, but got %d and %d", n, offsets[b], ends[b])
	}
	return ends
}
