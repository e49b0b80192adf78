package passes

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// shapeFormulas rearrange elements.
var shapeFormulas = map[string]Decomp{
	"aten.transpose.int":    transpose,
	"aten.swapaxes.default": transpose,
	"aten.swapdims.default": transpose,
	"aten.t.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		if x.Dim() < 2 {
			return one(b.Call("alias", x))
		}
		return one(b.Call("permute", x, []int64{1, 0}))
	},
	"aten.mT.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		n := a.Tensor(0).Dim()
		return one(b.Call("permute", a.Tensor(0), exchange(n, n-2, n-1)))
	},
	"aten.numpy_T.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		n := a.Tensor(0).Dim()
		p := make([]int64, n)
		for i := range p {
			p[i] = int64(n - 1 - i)
		}
		return one(b.Call("permute", a.Tensor(0), p))
	},
	"aten.squeeze.dim": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("squeeze.dims", a.Tensor(0), []int64{a.I64(1)}))
	},
	"aten.squeeze.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		dims := make([]int64, a.Tensor(0).Dim())
		for i := range dims {
			dims[i] = int64(i)
		}
		return one(b.Call("squeeze.dims", a.Tensor(0), dims))
	},
	"aten.reshape.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(reshaped(b, a.Tensor(0), a.Ints(1)))
	},
	"aten.view_as.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("view", a.Tensor(0), a.Tensor(1).Sizes))
	},
	"aten.reshape_as.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		if sameSizes(a.Tensor(0).Sizes, a.Tensor(1).Sizes) {
			return one(b.Call("view", a.Tensor(0), a.Tensor(1).Sizes))
		}
		return one(viewOrCopy(b, a.Tensor(0), a.Tensor(1).Sizes))
	},
	"aten.ravel.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(reshaped(b, a.Tensor(0), aten.Ints(-1)))
	},
	"aten.expand_as.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("expand", a.Tensor(0), a.Tensor(1).Sizes))
	},
	"aten.broadcast_to.default": func(b *aten.Build, a *aten.Args) []*aten.Value { return one(b.Call("expand", a.Tensor(0), a.Ints(1))) },
	"aten.flatten.using_ints":   flatten,
	"aten.unflatten.int": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		d := aten.WrapDim(a.I64(1), x.Dim())
		inner := fill(x.Sizes[d], a.Ints(2))
		shape := append(append(append([]symbolic.Int(nil), x.Sizes[:d]...), inner...), x.Sizes[d+1:]...)
		return one(b.Call("view", x, shape))
	},
	"aten.stack.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		list := a.Tensors(0)
		d := aten.WrapDim(a.I64(1), list[0].Dim()+1)
		if shape := list[0].Sizes; d < len(shape) {
			shape = append(append(append([]symbolic.Int(nil), shape[:d]...), symbolic.N(int64(len(list)))), shape[d:]...)
			return one(b.Call("view", b.Call("cat", list, d), shape))
		}
		parts := make([]*aten.Value, len(list))
		for i, x := range list {
			parts[i] = b.Call("unsqueeze", x, d)
		}
		return one(b.Call("cat", parts, a.V[1]))
	},
	"aten.unbind.int": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		d := aten.WrapDim(a.I64(1), x.Dim())
		n, ok := x.Sizes[d].Const()
		if !ok {
			panic(&unrecordable{"unbind along a symbolic size"})
		}
		out := make([]*aten.Value, n)
		for i := range out {
			out[i] = b.Call("slice.Tensor", x, d, i, i+1)
		}
		for i := range out {
			out[i] = b.Call("squeeze.dims", out[i], []int64{int64(d)})
		}
		return out
	},
	"aten.split.Tensor": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return parts(b, a.Tensor(0), a.I64(2), a.Int(1))
	},
	"aten.chunk.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		d := aten.WrapDim(a.I64(2), x.Dim())
		return parts(b, x, a.I64(2), x.Sizes[d].CeilDiv(a.Int(1)))
	},
	"aten.split.sizes": func(b *aten.Build, a *aten.Args) []*aten.Value { return b.CallN("split_with_sizes", a.V...) },
	"aten.narrow.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("slice.Tensor", a.Tensor(0), a.V[1], a.V[2], a.Int(2).Add(a.Int(3))))
	},
	"aten.movedim.int":      movedim,
	"aten.detach.default":   same,
	"aten.alias.default":    same,
	"aten.positive.default": same,
	"aten.resolve_conj.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		if !a.Tensor(0).DType.IsComplex() {
			return one(a.Tensor(0))
		}
		return one(b.Call("clone", a.Tensor(0)))
	},
	"aten.resolve_neg.default":     same,
	"aten.lift_fresh_copy.default": func(b *aten.Build, a *aten.Args) []*aten.Value { return one(b.Call("clone", a.Tensor(0))) },
	"aten.contiguous.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x, format := a.Tensor(0), a.MemoryFormat(1)
		if format == aten.NoFormat || format == aten.ContiguousFormat {
			if x.IsContiguous() {
				return one(x)
			}
			format = aten.ContiguousFormat
		}
		return one(b.Call("clone", x, aten.Kw("memory_format", format)))
	},
	"aten.to.dtype": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(converted(b, a.Tensor(0), a.DType(1, a.Tensor(0).DType), a.Bool(3), a.MemoryFormat(4)))
	},
	"aten.to.device": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(converted(b, a.Tensor(0), a.DType(2, a.Tensor(0).DType), a.Bool(4), a.MemoryFormat(5), aten.Kw("device", a.V[1])))
	},
	"aten.to.dtype_layout": func(b *aten.Build, a *aten.Args) []*aten.Value {
		var kw []any
		for i, name := range []string{"layout", "device", "pin_memory"} {
			if a.V[2+i] != nil {
				kw = append(kw, aten.Kw(name, a.V[2+i]))
			}
		}
		return one(converted(b, a.Tensor(0), a.DType(1, a.Tensor(0).DType), a.Bool(6), a.MemoryFormat(7), kw...))
	},
	"aten.to.other": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(converted(b, a.Tensor(0), a.Tensor(1).DType, a.Bool(3), a.MemoryFormat(4)))
	},
	"aten.type_as.default": func(b *aten.Build, a *aten.Args) []*aten.Value { return one(castAs(b, a.Tensor(0), a.Tensor(1).DType)) },
}

func same(_ *aten.Build, a *aten.Args) []*aten.Value { return one(a.Tensor(0)) }

func transpose(b *aten.Build, a *aten.Args) []*aten.Value {
	x := a.Tensor(0)
	n := x.Dim()
	i, j := aten.WrapDim(a.I64(1), n), aten.WrapDim(a.I64(2), n)
	if n == 0 {
		return one(x)
	}
	return one(b.Call("permute", x, exchange(n, i, j)))
}

func movedim(b *aten.Build, a *aten.Args) []*aten.Value {
	x := a.Tensor(0)
	from, to := aten.WrapDim(a.I64(1), x.Dim()), aten.WrapDim(a.I64(2), x.Dim())
	p := make([]int64, 0, x.Dim())
	for i := range x.Dim() {
		if i != from {
			p = append(p, int64(i))
		}
	}
	p = append(p[:to], append([]int64{int64(from)}, p[to:]...)...)
	return one(b.Call("permute", x, p))
}

func flatten(b *aten.Build, a *aten.Args) []*aten.Value {
	x := a.Tensor(0)
	if x.Dim() == 0 {
		return one(b.Call("view", x, []int64{1}))
	}
	start, end := aten.WrapDim(a.I64(1), x.Dim()), aten.WrapDim(a.I64(2), x.Dim())
	if start == end {
		return one(x)
	}
	shape := append([]symbolic.Int(nil), x.Sizes[:start]...)
	shape = append(shape, symbolic.Prod(x.Sizes[start:end+1]...))
	return one(viewOrCopy(b, x, append(shape, x.Sizes[end+1:]...)))
}

// reshaped is reshape with a shape that may hold -1, which a view of contiguous memory keeps.
func reshaped(b *aten.Build, x *aten.Value, shape []symbolic.Int) *aten.Value {
	whole := known(x, shape)
	switch {
	case x.IsContiguous() && !sameSizes(x.Sizes, whole):
		return b.Call("view", x, shape)
	case sameSizes(x.Sizes, whole) && !sameSizes(shape, whole):
		return b.Call("view", x, whole)
	}
	return viewOrCopy(b, x, whole)
}

// known is a shape with -1 replaced by what is left.
func known(x *aten.Value, shape []symbolic.Int) []symbolic.Int { return fill(x.Numel(), shape) }

func fill(total symbolic.Int, shape []symbolic.Int) []symbolic.Int {
	out := append([]symbolic.Int(nil), shape...)
	rest, at := symbolic.N(1), -1
	for i, n := range out {
		if c, ok := n.Const(); ok && c == -1 {
			at = i
			continue
		}
		rest = rest.Mul(n)
	}
	if at >= 0 {
		e := total.FloorDiv(rest)
		if !e.IsConst() {
			e = symbolic.FromExpr(e.Expr().Simplify(), e.Hint())
		}
		out[at] = e
	}
	return out
}

// parts splits along a dimension into parts of one size; the last may be smaller.
func parts(b *aten.Build, x *aten.Value, dim int64, size symbolic.Int) []*aten.Value {
	n, ok1 := x.Sizes[aten.WrapDim(dim, x.Dim())].Const()
	s, ok2 := size.Const()
	if !ok1 || !ok2 || s <= 0 {
		panic(&unrecordable{"a split along a symbolic size"})
	}
	var list []int64
	for at := int64(0); at < n; at += s {
		list = append(list, min(s, n-at))
	}
	if len(list) == 0 {
		list = []int64{0}
	}
	return b.CallN("split_with_sizes", x, list, dim)
}

// converted is PyTorch's to: a copy in another dtype or layout, or the tensor itself.
func converted(b *aten.Build, x *aten.Value, dt tensor.DType, copy bool, format aten.MemoryFormat, said ...any) *aten.Value {
	kw := []any{aten.Kw("dtype", dt)}
	if dt == x.DType {
		kw = kw[:0]
	}
	if format != aten.NoFormat && format != aten.PreserveFormat {
		kw = append(kw, aten.Kw("memory_format", format))
	}
	if len(kw) == 0 && !copy {
		return x
	}
	if dt == x.DType && len(said) > 0 {
		kw = append(kw, aten.Kw("dtype", dt))
	}
	return b.Call("_to_copy", append(append([]any{x}, kw...), said...)...)
}

// castAs is cast as kernels in C++ write it, which say layout and device too.
func castAs(b *aten.Build, x *aten.Value, dt tensor.DType) *aten.Value {
	p, ok := x.Ref.(*ref)
	if !ok || x.DType == dt {
		return cast(b, x, dt)
	}
	return b.Call("_to_copy", x, aten.Kw("dtype", dt), aten.Kw("layout", aten.StridedLayout), aten.Kw("device", p.dev))
}
