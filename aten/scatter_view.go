package aten

import (
	"unsafe"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// maskedFillOps put one number where a mask is true.
func maskedFillOps() []Op {
	shape := func(a *Args) []Meta {
		x, mask := a.Tensor(0), a.Tensor(1)
		Check(mask.DType == tensor.Bool, "masked_fill_ only supports boolean masks, but got mask with dtype %s", mask.DType)
		return []Meta{Contig(x.DType, broadcast2(x.Sizes, mask.Sizes)...)} // whatever the layout of self
	}
	scalar := func(k *Kernel) *tensor.Tensor { return scalarIn(k.Out[0].DType(), k.Scalar(2)) }
	number := func(k *Kernel) *tensor.Tensor { return k.as(k.T(2), k.Out[0].DType()) }
	withTensor := func(a *Args) []Meta {
		v := a.Tensor(2)
		Check(v.Dim() == 0, "masked_fill only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).", v.Dim())
		return shape(a)
	}
	inScalar := inPlace(func(a *Args) { checkMaskedInPlace(a) })
	return []Op{
		{Schema: "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", Tags: Core | Pointwise, Shape: shape,
			CPU: func(k *Kernel) { maskedFill(k, scalar(k)) }},
		{Schema: "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", Shape: withTensor,
			CPU: func(k *Kernel) { maskedFill(k, number(k)) }},
		{Schema: "masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)", Decomp: inScalar,
			CPU: func(k *Kernel) { maskedFill(k, scalar(k)) }},
		{Schema: "masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)", Decomp: inPlace(func(a *Args) {
			v := a.Tensor(2)
			Check(v.Dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).", v.Dim())
			checkMaskedInPlace(a)
		}), CPU: func(k *Kernel) { maskedFill(k, number(k)) }},
	}
}

func checkMaskedInPlace(a *Args) {
	x, mask := a.Tensor(0), a.Tensor(1)
	Check(mask.DType == tensor.Bool, "masked_fill_ only supports boolean masks, but got mask with dtype %s", mask.DType)
	if got := broadcast2(x.Sizes, mask.Sizes); !SameSizes(got, x.Sizes) {
		Fail("output with shape %s doesn't match the broadcast shape %s", sizesText(x.Sizes), sizesText(got))
	}
}

// maskedFill stores v where the mask (argument 1) is true and argument 0 elsewhere.
func maskedFill(k *Kernel, v *tensor.Tensor) {
	o := k.Out[0]
	if x := k.T(0); x != o {
		Copy(k.Pool, o, broadcastTo(x, o.Sizes()))
	}
	mask := k.T(1)
	it := NewIter(o.Sizes(), o, mask)
	d, m, s := base(o), base(mask), base(v)
	size := int64(o.DType().Size())
	if it.N == 0 {
		return
	}
	k.Pool.ParallelFor(int(it.N), grain, func(lo, hi int) {
		it.Rows(int64(lo), int64(hi), func(off []int64, n int64) {
			dp, mp := unsafe.Add(d, off[0]*size), unsafe.Add(m, off[1])
			ds, ms := it.Strides[0][0]*size, it.Strides[1][0]
			for i := range n {
				if *(*uint8)(unsafe.Add(mp, i*ms)) != 0 {
					copyElement(unsafe.Add(dp, i*ds), s, uintptr(size))
				}
			}
		})
	})
}

// overwriteOps give a copy of a tensor in which a view of it is replaced.
func overwriteOps() []Op {
	return []Op{
		overwriteOp("select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", Core, func(a *Args, x *Value) Meta {
			return selected(x, a.I64(2), a.Int(3))
		}),
		overwriteOp("slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor", Core, func(a *Args, x *Value) Meta {
			b := &Args{Op: a.Op, V: append([]any{x}, a.V[2:]...)}
			return slicedArgs(b, 1)
		}),
		overwriteOp("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor", 0, func(a *Args, x *Value) Meta {
			return diagonalOf(x, a.Int(2), a.I64(3), a.I64(4))
		}),
		overwriteOp("as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor", Core, func(a *Args, x *Value) Meta {
			off, ok := a.OptInt(4)
			if !ok {
				off = symbolic.N(0)
			}
			return x.ViewMeta(a.Ints(2), a.Ints(3), off)
		}),
		{
			Schema: "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value {
				zeros := b.Call("new_zeros", a.Tensor(0), a.Ints(1))
				return One(b.Call("diagonal_scatter", zeros, a.Tensor(0), a.V[2], a.V[3], a.V[4]))
			},
		},
		{
			Schema: "index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value {
				return One(b.Call("index_add", b.Call("new_zeros", a.Tensor(0), a.Ints(1)), a.V[2], a.V[3], a.Tensor(0)))
			},
		},
		{
			Schema: "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
			Decomp: func(b *Build, a *Args) []*Value {
				x := a.Tensor(0)
				vals := b.Call("masked_fill.Scalar", a.Tensor(3), b.Call("logical_not", a.Tensor(1)), 0)
				return One(b.Call("_unsafe_index_put", x, clampIndices(b, x, a.Tensors(2)), vals, true))
			},
		},
		{
			Schema: "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
			Decomp: inPlace(func(a *Args) {
				x := a.Tensor(0)
				Check(x.Dim() >= 2, "dimensions must larger than 1")
				for _, s := range x.Sizes[1:] {
					Check(x.Dim() == 2 || s.Eq(x.Sizes[0]), "all dimensions of input must be of equal length")
				}
			}),
			CPU: fillDiagonal,
		},
	}
}

func overwriteOp(schema string, tags Tag, view func(a *Args, x *Value) Meta) Op {
	return Op{
		Schema: schema,
		Tags:   tags,
		Shape: func(a *Args) []Meta {
			x, src := a.Tensor(0), a.Tensor(1)
			out := keepStrides(x)
			plain := &Value{Meta: out}
			m := view(a, plain)
			if a.Op.schema.Base == "slice_scatter" {
				Check(fits(src.Sizes, m.Sizes), "expected src to have a size equal to the slice of self. src size = %s, slice size = %s", sizesText(src.Sizes), sizesText(m.Sizes))
			} else {
				Check(SameSizes(m.Sizes, src.Sizes), "expected src to have a size equal to the slice of self. src size = %s, slice size = %s", sizesText(src.Sizes), sizesText(m.Sizes))
			}
			return []Meta{out}
		},
		CPU: func(k *Kernel) {
			o := k.Out[0]
			Copy(k.Pool, o, k.T(0))
			m := view(k.Args, FromTensor(o))
			part, err := o.AsStrided(Int64s(m.Sizes), Int64s(m.Strides), m.Offset.Int64())
			if err != nil {
				Fail("%v", err)
			}
			if part.Numel() > 0 {
				Copy(k.Pool, part, k.T(1))
			}
		},
	}
}

func fillDiagonal(k *Kernel) {
	o, v := k.Out[0], k.Scalar(1)
	step, least := int64(0), o.Sizes()[0]
	for d, s := range o.Strides() {
		step += s
		least = min(least, o.Sizes()[d])
	}
	fillAll(k.Pool, o.WithView([]int64{least}, []int64{step}, o.Offset()), v)
	h, w := o.Sizes()[0], o.Sizes()[1]
	if !k.Bool(2) || o.Dim() != 2 || h <= w+1 {
		return
	}
	for at := w*w + w; at < h*w; at += w + 1 {
		r, c := at/w, at%w
		fillAll(k.Pool, o.WithView(nil, nil, o.Offset()+r*o.Strides()[0]+c*o.Strides()[1]), v)
	}
}
