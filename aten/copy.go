package aten

import (
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// copyOps make fresh tensors from existing ones, or store one into another.
var copyOps = []Op{
	{
		Schema: "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
		Tags:   Core,
		Shape: func(a *Args) []Meta {
			return []Meta{LikeMeta(a.Tensor(0), a.Tensor(0).DType, a.MemoryFormat(1))}
		},
		CPU: copyFirst,
	},
	{
		Schema: "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
		Tags:   LazyBits,
		Decomp: func(b *Build, a *Args) []*Value {
			self, src := a.Tensor(0), a.Tensor(1)
			checkCopy(self, src)
			if self != src && mayShare(self, src) {
				src = b.Call("clone", src)
			}
			b.Exec.Run(a.Op, &Args{Op: a.Op, V: []any{self, src, a.V[2]}}, One(self))
			return One(self)
		},
		CPU: func(k *Kernel) { Copy(k.Pool, k.Out[0], k.T(1)) },
	},
	{
		Schema: "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
		Tags:   Core,
		Shape: func(a *Args) []Meta {
			checkCopy(a.Tensor(0), a.Tensor(1))
			return []Meta{keepStrides(a.Tensor(0))}
		},
		CPU: func(k *Kernel) { Copy(k.Pool, k.Out[0], k.T(1)) },
	},
	{
		Schema: "_copy_from(Tensor self, Tensor dst, bool non_blocking=False) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("copy_", a.Tensor(1), a.Tensor(0))) },
	},
	{
		Schema: "_copy_from_and_resize(Tensor self, Tensor dst) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			return One(b.Call("copy_", b.Call("resize_", a.Tensor(1), a.Tensor(0).Sizes), a.Tensor(0)))
		},
	},
	{
		Schema: "resolve_conj(Tensor(a) self) -> Tensor(a)",
		Tags:   LazyBits,
		Shape:  func(a *Args) []Meta { return []Meta{resolved(a.Tensor(0), a.Tensor(0).Conj)} },
		CPU:    copyFirst,
	},
	{
		Schema: "resolve_neg(Tensor(a) self) -> Tensor(a)",
		Tags:   LazyBits,
		Shape:  func(a *Args) []Meta { return []Meta{resolved(a.Tensor(0), a.Tensor(0).Neg)} },
		CPU:    copyFirst,
	},
	{
		Schema: "contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)",
		Tags:   LazyBits,
		Shape: func(a *Args) []Meta {
			x, f := a.Tensor(0), a.MemoryFormat(1)
			Check(f != PreserveFormat, "preserve memory format is unsupported by the contiguous operator")
			if hasFormat(&x.Meta, f) {
				return []Meta{x.AliasMeta()}
			}
			return []Meta{LikeMeta(x, x.DType, f)}
		},
		CPU: copyFirst,
	},
	{
		Schema: "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
		Tags:   Core,
		Shape: func(a *Args) []Meta {
			x := a.Tensor(0)
			return []Meta{LikeMeta(x, a.DType(1, x.DType), a.MemoryFormat(6))}
		},
		CPU: copyFirst,
	},
	toOp("to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)", 1, 3),
	toOp("to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)", 2, 4),
	toOp("to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)", 1, 6),
	toOp("to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)", 1, 3),
	toOp("type_as(Tensor self, Tensor other) -> Tensor", 1, -1),
	castOp("_cast_Byte", tensor.Uint8), castOp("_cast_Char", tensor.Int8), castOp("_cast_Double", tensor.Float64),
	castOp("_cast_Float", tensor.Float32), castOp("_cast_Half", tensor.Float16), castOp("_cast_Int", tensor.Int32),
	castOp("_cast_Long", tensor.Int64), castOp("_cast_Short", tensor.Int16),
	{
		Schema: "_autocast_to_reduced_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled, ScalarType cuda_dtype, ScalarType cpu_dtype) -> Tensor(a)",
		Tags:   LazyBits,
		Shape: func(a *Args) []Meta {
			x := a.Tensor(0)
			if dt := a.DType(4, x.DType); a.Bool(2) && x.DType == tensor.Float32 && dt != x.DType {
				return []Meta{LikeMeta(x, dt, PreserveFormat)}
			}
			return []Meta{x.AliasMeta()}
		},
		CPU: copyFirst,
	},
	{
		Schema: "_pin_memory(Tensor self, Device? device=None) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("clone", a.Tensor(0))) },
	},
	{
		Schema: "_lazy_clone(Tensor self) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("clone", a.Tensor(0))) },
	},
	{
		Schema: "_to_cpu(Tensor[] tensors) -> Tensor[]",
		Decomp: func(b *Build, a *Args) []*Value {
			out := make([]*Value, len(a.Tensors(0)))
			for i, x := range a.Tensors(0) {
				out[i] = b.Call("alias", x)
			}
			return out
		},
	},
	{
		Schema: "resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
		Decomp: func(b *Build, a *Args) []*Value { return One(resize(b, a.Tensor(0), a.Ints(1), a.MemoryFormat(2))) },
	},
	{
		Schema: "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
		Decomp: func(b *Build, a *Args) []*Value {
			f, like := a.MemoryFormat(2), a.Tensor(1)
			if f == PreserveFormat {
				f = ContiguousFormat
				if like.SuggestChannelsLast() {
					f = ChannelsLast + MemoryFormat(like.Dim()-4)
				}
			}
			return One(resize(b, a.Tensor(0), like.Sizes, f))
		},
	},
	{
		Schema: "resize(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value {
			return One(resize(b, b.Call("clone", a.Tensor(0)), a.Ints(1), a.MemoryFormat(2)))
		},
	},
	{
		Schema: "set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)",
		Decomp: func(b *Build, a *Args) []*Value {
			rebind(a.Tensor(0), b.Call("alias", a.Tensor(1)))
			return One(a.Tensor(0))
		},
	},
	{
		Schema: "set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)",
		Decomp: func(b *Build, a *Args) []*Value {
			st := a.Ints(4)
			if len(st) == 0 {
				st = ContiguousStrides(a.Ints(3))
			}
			rebind(a.Tensor(0), b.Call("as_strided", a.Tensor(1), a.Ints(3), st, a.Int(2)))
			return One(a.Tensor(0))
		},
	},
}

func copyFirst(k *Kernel) { Copy(k.Pool, k.Out[0], k.T(0)) }

func checkCopy(self, src *Value) {
	if got := broadcast2(self.Sizes, src.Sizes); !SameSizes(got, self.Sizes) {
		Fail("output with shape %s doesn't match the broadcast shape %s", sizesText(self.Sizes), sizesText(got))
	}
}

// keepStrides is fresh memory with x's own strides, gaps included; overlapping elements get a dense layout.
func keepStrides(x *Value) Meta {
	if internalOverlap(x) {
		return LikeMeta(x, x.DType, PreserveFormat)
	}
	return Strided(x.DType, x.Sizes, x.Strides)
}

// hasFormat reports that m lies in memory as the format says.
func hasFormat(m *Meta, f MemoryFormat) bool {
	switch f {
	case ChannelsLast:
		Check(m.Dim() == 4, "required rank 4 tensor to use channels_last format")
		return m.IsChannelsLast()
	case ChannelsLast3d:
		Check(m.Dim() == 5, "required rank 5 tensor to use channels_last_3d format")
		return m.IsChannelsLast()
	}
	return m.IsContiguous()
}

// suggestsFormat reports that x.suggest_memory_format() is f.
func suggestsFormat(x *Value, f MemoryFormat) bool {
	switch f {
	case ChannelsLast:
		return x.Dim() == 4 && x.SuggestChannelsLast()
	case ChannelsLast3d:
		return x.Dim() == 5 && x.SuggestChannelsLast()
	}
	return !x.SuggestChannelsLast()
}

// toOp is an entry of the "to" kind: argument dtypeAt is a dtype or a tensor that has one, argument copyAt the copy flag,
// with the memory format behind it. The result is the tensor itself where nothing changes.
func toOp(schema string, dtypeAt, copyAt int) Op {
	return Op{
		Schema: schema,
		Tags:   LazyBits,
		Shape: func(a *Args) []Meta {
			x, f, force := a.Tensor(0), NoFormat, false
			dt := a.DType(dtypeAt, x.DType)
			if o := a.OptTensor(dtypeAt); o != nil {
				dt = o.DType
			}
			if copyAt >= 0 {
				force, f = a.Bool(copyAt), a.MemoryFormat(copyAt+1)
			}
			if !force && dt == x.DType && (f == NoFormat || f == PreserveFormat || suggestsFormat(x, f)) {
				return []Meta{x.AliasMeta()}
			}
			return []Meta{LikeMeta(x, dt, f)}
		},
		CPU: copyFirst,
	}
}

func castOp(name string, dt tensor.DType) Op {
	return Op{
		Schema: name + "(Tensor self, bool non_blocking=False) -> Tensor",
		Decomp: func(b *Build, a *Args) []*Value { return One(b.Call("to.dtype", a.Tensor(0), dt)) },
	}
}

// resize gives v other sizes over the same storage, or over a larger one that begins with the old elements.
func resize(b *Build, v *Value, sizes []symbolic.Int, f MemoryFormat) *Value {
	Check(f != PreserveFormat, "Unsupported memory format Preserve")
	if f == NoFormat {
		if SameSizes(v.Sizes, sizes) {
			return v
		}
		f = ContiguousFormat
	}
	strides := FormatStrides(f, sizes, nil)
	old := *v
	need := symbolic.Prod(sizes...)
	for _, s := range sizes {
		Check(s.Ge(symbolic.N(0)), "Trying to create tensor with negative dimension %v: %s", s, sizesText(sizes))
	}
	have := old.Offset.Add(old.Numel())
	if old.T != nil {
		have = symbolic.N(int64(len(old.T.Storage().Bytes()) / old.DType.Size()))
	}
	if old.Offset.Add(need).Le(have) {
		rebind(v, b.Call("as_strided", &old, sizes, strides))
		return v
	}
	fresh := b.Call("new_zeros", &old, []symbolic.Int{need})
	if n := have.Sub(old.Offset); n.Gt(symbolic.N(0)) {
		b.Call("copy_", b.Call("slice.Tensor", fresh, 0, 0, n), b.Call("as_strided", &old, []symbolic.Int{n}, Ints(1)))
	}
	rebind(v, b.Call("as_strided", fresh, sizes, strides))
	return v
}

// resolved is a copy of v without lazy bits if there is one to resolve, else v itself.
func resolved(v *Value, lazy bool) Meta {
	if !lazy {
		return v.AliasMeta()
	}
	return LikeMeta(v, v.DType, PreserveFormat)
}

// contiguous gives t itself if it is row-major without lazy bits, else a row-major copy: for kernels that want plain memory.
func (k *Kernel) contiguous(t *tensor.Tensor) *tensor.Tensor {
	if t == nil || (t.IsContiguous() && !t.IsConj() && !t.IsNeg()) {
		return t
	}
	c := tensor.New(t.DType(), t.Sizes()...)
	Copy(k.Pool, c, t)
	return c
}

// as gives t, contiguous, in another dtype.
func (k *Kernel) as(t *tensor.Tensor, dt tensor.DType) *tensor.Tensor {
	if t == nil {
		return nil
	}
	if t.DType() == dt {
		return k.contiguous(t)
	}
	c := tensor.New(dt, t.Sizes()...)
	Copy(k.Pool, c, t)
	return c
}
