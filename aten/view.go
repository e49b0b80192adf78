package aten

import (
	"strings"

	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// viewOps share their argument's storage.
var viewOps = []Op{
	viewOp("alias(Tensor(a) self) -> Tensor(a)", Core, func(a *Args) Meta { return a.Tensor(0).AliasMeta() }),
	viewOp("detach(Tensor(a) self) -> Tensor(a)", 0, func(a *Args) Meta { return a.Tensor(0).AliasMeta() }),
	viewOp("lift_fresh(Tensor(a) self) -> Tensor(a)", 0, func(a *Args) Meta { return a.Tensor(0).AliasMeta() }),
	viewOp("_fw_primal(Tensor(a) self, int level) -> Tensor(a)", 0, func(a *Args) Meta { return a.Tensor(0).AliasMeta() }),
	viewOp("pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a)", 0, func(a *Args) Meta { return a.Tensor(0).AliasMeta() }),
	viewOp("lift(Tensor self) -> Tensor", 0, func(a *Args) Meta { return a.Tensor(0).AliasMeta() }),
	viewOp("data(Tensor self) -> Tensor", 0, func(a *Args) Meta { return a.Tensor(0).AliasMeta() }),
	viewOp("_autocast_to_full_precision(Tensor(a) self, bool cuda_enabled, bool cpu_enabled) -> Tensor(a)", 0,
		func(a *Args) Meta { return a.Tensor(0).AliasMeta() }),
	viewOp("permute(Tensor(a) self, int[] dims) -> Tensor(a)", Core, func(a *Args) Meta { return permuted(a.Tensor(0), a.I64s(1)) }),
	viewOp("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", 0, shapeTranspose),
	viewOp("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", 0, shapeTranspose),
	viewOp("swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", 0, shapeTranspose),
	viewOp("t(Tensor(a) self) -> Tensor(a)", 0, func(a *Args) Meta {
		x := a.Tensor(0)
		Check(x.Dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is %dD", x.Dim())
		return reversedDims(x)
	}),
	viewOp("numpy_T(Tensor(a) self) -> Tensor(a)", 0, func(a *Args) Meta { return reversedDims(a.Tensor(0)) }),
	viewOp("mT(Tensor(a) self) -> Tensor(a)", 0, func(a *Args) Meta {
		x := a.Tensor(0)
		Check(x.Dim() >= 2, "tensor.mT is only supported on matrices or batches of matrices. Got %d-D tensor.", x.Dim())
		return transposed(x, x.Dim()-2, x.Dim()-1)
	}),
	viewOp("matrix_H(Tensor(a) self) -> Tensor(a)", 0, func(a *Args) Meta {
		x := a.Tensor(0)
		Check(x.Dim() == 0 || x.Dim() == 2, "tensor.H is only supported on matrices (2-D tensors). Got %d-D tensor.", x.Dim())
		return adjointMeta(x)
	}),
	viewOp("mH(Tensor(a) self) -> Tensor(a)", 0, func(a *Args) Meta {
		Check(a.Tensor(0).Dim() != 1, "tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor.")
		return adjointMeta(a.Tensor(0))
	}),
	viewOp("adjoint(Tensor(a) self) -> Tensor(a)", 0, func(a *Args) Meta {
		Check(a.Tensor(0).Dim() != 1, "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.")
		return adjointMeta(a.Tensor(0))
	}),
	viewOp("movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)", 0, shapeMovedim),
	viewOp("movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", 0, shapeMovedim),
	viewOp("moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)", 0, shapeMovedim),
	viewOp("moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", 0, shapeMovedim),
	viewOp("squeeze(Tensor(a) self) -> Tensor(a)", 0, func(a *Args) Meta { return squeezed(a.Tensor(0), nil) }),
	viewOp("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", Core, func(a *Args) Meta {
		return squeezed(a.Tensor(0), []int{WrapDim(a.I64(1), a.Tensor(0).Dim())})
	}),
	viewOp("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", Core, func(a *Args) Meta {
		x, dims := a.Tensor(0), a.I64s(1)
		if len(dims) == 0 {
			return x.AliasMeta()
		}
		return squeezed(x, WrapDims(dims, x.Dim()))
	}),
	viewOp("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", Core, func(a *Args) Meta {
		x := a.Tensor(0)
		return unsqueezed(x, WrapDim(a.I64(1), x.Dim()+1))
	}),
	viewOp("expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", Core, func(a *Args) Meta {
		x, sizes := a.Tensor(0), a.Ints(1)
		Check(len(sizes) >= x.Dim(), "expand(torch.%sTensor{%s}, size=%s): the number of sizes provided (%d) must be greater or equal to the number of dimensions in the tensor (%d)",
			x.DType.CPPName(), sizesText(x.Sizes), sizesText(sizes), len(sizes), x.Dim())
		return expanded(x, sizes)
	}),
	viewOp("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", 0, func(a *Args) Meta { return expanded(a.Tensor(0), a.Tensor(1).Sizes) }),
	viewOp("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", 0, func(a *Args) Meta { return expanded(a.Tensor(0), a.Ints(1)) }),
	viewOp("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", 0, func(a *Args) Meta {
		return diagonalOf(a.Tensor(0), a.Int(1), a.I64(2), a.I64(3))
	}),
	viewOp("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)", 0, func(a *Args) Meta {
		return diagonalOf(a.Tensor(0), a.Int(1), a.I64(2), a.I64(3))
	}),
	viewOp("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", 0, shapeUnfold),
	viewOp("as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)", Core, shapeAsStrided),
	viewOp("_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)", 0, func(a *Args) Meta {
		x := a.Tensor(0)
		return x.ViewMeta(a.Ints(1), a.Ints(2), x.Offset)
	}),
	viewOp("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", Core, func(a *Args) Meta { return viewed(a.Tensor(0), a.Ints(1)) }),
	viewOp("_unsafe_view(Tensor self, SymInt[] size) -> Tensor", 0, func(a *Args) Meta { return viewed(a.Tensor(0), a.Ints(1)) }),
	viewOp("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", 0, func(a *Args) Meta { return viewed(a.Tensor(0), a.Tensor(1).Sizes) }),
	viewOp("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", 0, func(a *Args) Meta { return viewedAs(a.Tensor(0), a.V[1].(tensor.DType)) }),
	viewOp("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", 0, shapeUnflatten),
	reshapeOp("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", func(a *Args) []symbolic.Int { return a.Ints(1) }),
	reshapeOp("_reshape_copy(Tensor self, SymInt[] size) -> Tensor", func(a *Args) []symbolic.Int { return a.Ints(1) }),
	reshapeOp("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", func(a *Args) []symbolic.Int { return a.Tensor(1).Sizes }),
	reshapeOp("ravel(Tensor(a) self) -> Tensor(a)", func(a *Args) []symbolic.Int { return Ints(-1) }),
	reshapeOp("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", flattenSizes),
	rebindOp("detach_(Tensor(a!) self) -> Tensor(a!)", "detach"),
	rebindOp("squeeze_(Tensor(a!) self) -> Tensor(a!)", "squeeze"),
	rebindOp("squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)", "squeeze.dim"),
	rebindOp("squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)", "squeeze.dims"),
	rebindOp("unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", "unsqueeze"),
	rebindOp("transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", "transpose.int"),
	rebindOp("swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)", "transpose.int"),
	rebindOp("swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", "transpose.int"),
	rebindOp("t_(Tensor(a!) self) -> Tensor(a!)", "t"),
	rebindOp("as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a!)", "as_strided"),
}

// viewOp is an entry whose result is always a view.
func viewOp(schema string, tags Tag, f func(a *Args) Meta) Op {
	return Op{Schema: schema, Tags: tags | LazyBits, Shape: func(a *Args) []Meta { return []Meta{f(a)} }}
}

// rebindOp is the in-place form of a view: the tensor itself gets other sizes and strides.
func rebindOp(schema, name string) Op {
	return Op{Schema: schema, Tags: LazyBits, Decomp: func(b *Build, a *Args) []*Value {
		args := append([]any(nil), a.V...)
		old := *a.Tensor(0)
		args[0] = &old
		rebind(a.Tensor(0), b.Call(name, args...))
		return One(a.Tensor(0))
	}}
}

// rebind makes v the tensor that w is.
func rebind(v, w *Value) { v.Meta, v.T, v.Ref = w.Meta, w.T, w.Ref }

// reshapeOp is an entry that gives a view where strides allow one, else a row-major copy.
func reshapeOp(schema string, sizes func(a *Args) []symbolic.Int) Op {
	return Op{
		Schema: schema,
		Tags:   LazyBits,
		Shape: func(a *Args) []Meta {
			x := a.Tensor(0)
			shape := inferSizes(sizes(a), x.Numel())
			if st, ok := viewStrides(x, shape); ok {
				return []Meta{x.ViewMeta(shape, st, x.Offset)}
			}
			return []Meta{Contig(x.DType, shape...)}
		},
		CPU: func(k *Kernel) { Copy(k.Pool, sameShape(k.Out[0], k.T(0)), k.T(0)) },
	}
}

// sameShape is the row-major tensor t seen in the shape of like, which has as many elements.
func sameShape(t, like *tensor.Tensor) *tensor.Tensor {
	return t.WithView(like.Sizes(), tensor.ContiguousStrides(like.Sizes()), t.Offset())
}

// sizesText prints sizes as PyTorch does: [2, 3].
func sizesText(s []symbolic.Int) string {
	parts := make([]string, len(s))
	for i, x := range s {
		parts[i] = x.String()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func permuted(x *Value, dims []int64) Meta {
	if len(dims) != x.Dim() {
		Fail("permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = %d is not equal to len(dims) = %d", x.Dim(), len(dims))
	}
	sizes, strides := make([]symbolic.Int, len(dims)), make([]symbolic.Int, len(dims))
	seen := make([]bool, len(dims))
	for i, d := range dims {
		w := WrapDim(d, x.Dim())
		Check(!seen[w], "permute(): duplicate dims are not allowed.")
		seen[w] = true
		sizes[i], strides[i] = x.Sizes[w], x.Strides[w]
	}
	return x.ViewMeta(sizes, strides, x.Offset)
}

func transposed(x *Value, d0, d1 int) Meta {
	if x.Dim() == 0 {
		return x.AliasMeta()
	}
	sizes, strides := cloneInts(x.Sizes), cloneInts(x.Strides)
	sizes[d0], sizes[d1] = sizes[d1], sizes[d0]
	strides[d0], strides[d1] = strides[d1], strides[d0]
	return x.ViewMeta(sizes, strides, x.Offset)
}

func cloneInts(s []symbolic.Int) []symbolic.Int {
	return append(make([]symbolic.Int, 0, len(s)+1), s...)
}

func shapeTranspose(a *Args) Meta {
	x := a.Tensor(0)
	return transposed(x, WrapDim(a.I64(1), x.Dim()), WrapDim(a.I64(2), x.Dim()))
}

func reversedDims(x *Value) Meta {
	n := x.Dim()
	sizes, strides := make([]symbolic.Int, n), make([]symbolic.Int, n)
	for i := range n {
		sizes[i], strides[i] = x.Sizes[n-1-i], x.Strides[n-1-i]
	}
	return x.ViewMeta(sizes, strides, x.Offset)
}

// adjointMeta is the conjugate transpose of the last two dimensions.
func adjointMeta(x *Value) Meta {
	m := x.AliasMeta()
	if x.Dim() >= 2 {
		m = transposed(x, x.Dim()-2, x.Dim()-1)
	}
	if x.DType.IsComplex() {
		m.Conj = !m.Conj
	}
	return m
}

func shapeMovedim(a *Args) Meta {
	x := a.Tensor(0)
	var src, dst []int64
	if v, ok := a.OptInt(1); ok {
		src, dst = []int64{v.Int64()}, []int64{a.I64(2)}
	} else {
		src, dst = a.I64s(1), a.I64s(2)
	}
	Check(len(src) == len(dst), "movedim: Invalid source or destination dims: source (%v dims) should contain the same number of dims as destination (%v dims)", src, dst)
	n := x.Dim()
	if n == 0 {
		WrapDims(src, 0)
		return x.AliasMeta()
	}
	order, used := make([]int64, n), make([]bool, n)
	for i := range order {
		order[i] = -1
	}
	for i := range src {
		s, d := WrapDim(src[i], n), WrapDim(dst[i], n)
		Check(!used[s], "movedim: repeated dim in `source` (%v)", src)
		Check(order[d] < 0, "movedim: repeated dim in `destination` (%v)", dst)
		order[d], used[s] = int64(s), true
	}
	next := 0
	for i := range order {
		if order[i] >= 0 {
			continue
		}
		for used[next] {
			next++
		}
		order[i] = int64(next)
		next++
	}
	return permuted(x, order)
}

// squeezed drops those of dims (nil: all) that have size 1.
func squeezed(x *Value, dims []int) Meta {
	drop := make([]bool, x.Dim()+1)
	for _, d := range dims {
		drop[d] = true
	}
	one := symbolic.N(1)
	sizes, strides := []symbolic.Int{}, []symbolic.Int{}
	for d := range x.Sizes {
		if (dims == nil || drop[d]) && x.Sizes[d].Eq(one) {
			continue
		}
		sizes, strides = append(sizes, x.Sizes[d]), append(strides, x.Strides[d])
	}
	return x.ViewMeta(sizes, strides, x.Offset)
}

func unsqueezed(x *Value, d int) Meta {
	stride := symbolic.N(1)
	if d < x.Dim() {
		stride = x.Sizes[d].Mul(x.Strides[d])
	}
	return x.ViewMeta(insertInt(x.Sizes, d, symbolic.N(1)), insertInt(x.Strides, d, stride), x.Offset)
}

func insertInt(s []symbolic.Int, at int, v symbolic.Int) []symbolic.Int {
	out := append(cloneInts(s[:at]), v)
	return append(out, s[at:]...)
}

func removeInt(s []symbolic.Int, at int) []symbolic.Int {
	return append(cloneInts(s[:at]), s[at+1:]...)
}

// expanded broadcasts x to sizes; -1 keeps a size.
func expanded(x *Value, target []symbolic.Int) Meta {
	n := len(target)
	if n < x.Dim() {
		Fail("The expanded size of the tensor has %d dimensions, fewer than the %d of the tensor. Target sizes: %s.  Tensor sizes: %s", n, x.Dim(), sizesText(target), sizesText(x.Sizes))
	}
	sizes, strides := make([]symbolic.Int, n), make([]symbolic.Int, n)
	one, minus := symbolic.N(1), symbolic.N(-1)
	for i := n - 1; i >= 0; i-- {
		d := x.Dim() - n + i
		size, stride := one, symbolic.N(0)
		switch {
		case d >= 0:
			size, stride = x.Sizes[d], x.Strides[d]
		case x.Dim() > 0:
			stride = sizes[i+1].Mul(strides[i+1])
		}
		want := target[i]
		if want.Eq(minus) {
			Check(d >= 0, "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension %d", i)
			want = size
		}
		if size.Ne(want) {
			Check(size.Eq(one) && want.Ge(symbolic.N(0)), "The expanded size of the tensor (%v) must match the existing size (%v) at non-singleton dimension %d.  Target sizes: %s.  Tensor sizes: %s",
				want, size, i, sizesText(target), sizesText(x.Sizes))
			stride = symbolic.N(0)
		}
		sizes[i], strides[i] = want, stride
	}
	return x.ViewMeta(sizes, strides, x.Offset)
}

func diagonalOf(x *Value, offset symbolic.Int, dim1, dim2 int64) Meta {
	if x.Dim() < 2 {
		WrapDim(dim1, x.Dim())
		WrapDim(dim2, x.Dim())
	}
	d1, d2 := WrapDim(dim1, x.Dim()), WrapDim(dim2, x.Dim())
	Check(d1 != d2, "diagonal dimensions cannot be identical %d, %d", dim1, dim2)
	zero := symbolic.N(0)
	var size symbolic.Int
	start := x.Offset
	if offset.Ge(zero) {
		size = x.Sizes[d1].Min(x.Sizes[d2].Sub(offset)).Max(zero)
		start = start.Add(offset.Mul(x.Strides[d2]))
	} else {
		size = x.Sizes[d1].Add(offset).Min(x.Sizes[d2]).Max(zero)
		start = start.Sub(offset.Mul(x.Strides[d1]))
	}
	if size.Eq(zero) {
		start = x.Offset
	}
	lo, hi := min(d1, d2), max(d1, d2)
	sizes := append(removeInt(removeInt(x.Sizes, hi), lo), size)
	strides := append(removeInt(removeInt(x.Strides, hi), lo), x.Strides[d1].Add(x.Strides[d2]))
	return x.ViewMeta(sizes, strides, start)
}

func shapeUnfold(a *Args) Meta {
	x, size, step := a.Tensor(0), a.Int(2), a.Int(3)
	d := WrapDim(a.I64(1), x.Dim())
	zero, full, stride := symbolic.N(0), symbolic.N(1), symbolic.N(1)
	if x.Dim() > 0 {
		full, stride = x.Sizes[d], x.Strides[d]
	}
	Check(size.Ge(zero), "size is %v but must be >= 0", size)
	Check(size.Le(full), "maximum size for tensor at dimension %d is %v but size is %v", d, full, size)
	Check(step.Gt(zero), "step is %v but must be > 0", step)
	if x.Dim() == 0 {
		return x.ViewMeta([]symbolic.Int{size}, []symbolic.Int{stride}, x.Offset)
	}
	sizes, strides := cloneInts(x.Sizes), cloneInts(x.Strides)
	sizes[d] = full.Sub(size).FloorDiv(step).AddN(1)
	strides[d] = stride.Mul(step)
	return x.ViewMeta(append(sizes, size), append(strides, stride), x.Offset)
}

func shapeAsStrided(a *Args) Meta {
	x, sizes, strides := a.Tensor(0), a.Ints(1), a.Ints(2)
	Check(len(sizes) == len(strides), "mismatch in length of strides and shape")
	off, ok := a.OptInt(3)
	if !ok {
		off = x.Offset
	}
	Check(off.Ge(symbolic.N(0)), "Tensor: invalid storage offset %v", off)
	last := off
	empty := false
	for i := range sizes {
		Check(strides[i].Ge(symbolic.N(0)), "as_strided: Negative strides are not supported at the moment, got strides: %s", sizesText(strides))
		Check(sizes[i].Ge(symbolic.N(0)), "as_strided: Negative size %v is not allowed", sizes[i])
		empty = empty || sizes[i].Eq(symbolic.N(0))
		last = last.Add(sizes[i].SubN(1).Mul(strides[i]))
	}
	if x.T != nil && !empty {
		have := int64(len(x.T.Storage().Bytes()))
		need := last.AddN(1).MulN(int64(x.DType.Size()))
		Check(need.Err() == nil && need.Int64() <= have, "setStorage: sizes %s, strides %s, storage offset %v, and itemsize %d requiring a storage size of %v are out of bounds for storage of size %d",
			sizesText(sizes), sizesText(strides), off, x.DType.Size(), need, have)
	}
	return x.ViewMeta(sizes, strides, off)
}

func shapeUnflatten(a *Args) Meta {
	x, sizes := a.Tensor(0), a.Ints(2)
	d := WrapDim(a.I64(1), x.Dim())
	Check(len(sizes) > 0, "unflatten: sizes must be non-empty")
	Check(x.Dim() > 0, "unflatten: cannot unflatten a 0-dim tensor")
	for _, s := range sizes {
		if s.Eq(symbolic.N(-1)) {
			sizes = inferSizes(sizes, x.Sizes[d])
			break
		}
	}
	if symbolic.Prod(sizes...).Ne(x.Sizes[d]) {
		Fail("unflatten: Provided sizes %s don't multiply up to the size of dim %d (%v) in the input tensor", sizesText(sizes), d, x.Sizes[d])
	}
	shape := append(cloneInts(x.Sizes[:d]), sizes...)
	return viewed(x, append(shape, x.Sizes[d+1:]...))
}

func flattenSizes(a *Args) []symbolic.Int {
	x := a.Tensor(0)
	lo, hi := WrapDim(a.I64(1), x.Dim()), WrapDim(a.I64(2), x.Dim())
	Check(lo <= hi, "flatten() has invalid args: start_dim cannot come after end_dim")
	if x.Dim() == 0 {
		return Ints(1)
	}
	sizes := append(cloneInts(x.Sizes[:lo]), symbolic.Prod(x.Sizes[lo:hi+1]...))
	return append(sizes, x.Sizes[hi+1:]...)
}
