package aten

import "github.com/pt2go/pt2/tensor"

// copyOps make fresh tensors from existing ones, or store one into another.
var copyOps = []Op{
	{
		Schema: "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
		Tags:   Core,
		Shape: func(a *Args) []Meta {
			return []Meta{LikeMeta(a.Tensor(0), a.Tensor(0).DType, a.MemoryFormat(1))}
		},
		CPU: func(k *Kernel) { Copy(k.Pool, k.Out[0], k.T(0)) },
	},
	{
		Schema: "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
		Tags:   LazyBits,
		Decomp: func(b *Build, a *Args) []*Value {
			self, src := a.Tensor(0), a.Tensor(1)
			if got := broadcast2(self.Sizes, src.Sizes); !SameSizes(got, self.Sizes) {
				Fail("output with shape %v doesn't match the broadcast shape %v", self.Sizes, got)
			}
			if self.T != nil && src.T != nil && self.T != src.T && self.T.Storage() == src.T.Storage() {
				src = b.Call("clone", src)
			}
			b.Exec.Run(a.Op, &Args{Op: a.Op, V: []any{self, src, a.V[2]}}, One(self))
			return One(self)
		},
		CPU: func(k *Kernel) { Copy(k.Pool, k.Out[0], k.T(1)) },
	},
	{
		Schema: "resolve_conj(Tensor(a) self) -> Tensor(a)",
		Tags:   LazyBits,
		Shape:  func(a *Args) []Meta { return []Meta{resolved(a.Tensor(0), a.Tensor(0).Conj)} },
		CPU:    func(k *Kernel) { Copy(k.Pool, k.Out[0], k.T(0)) },
	},
	{
		Schema: "resolve_neg(Tensor(a) self) -> Tensor(a)",
		Tags:   LazyBits,
		Shape:  func(a *Args) []Meta { return []Meta{resolved(a.Tensor(0), a.Tensor(0).Neg)} },
		CPU:    func(k *Kernel) { Copy(k.Pool, k.Out[0], k.T(0)) },
	},
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
