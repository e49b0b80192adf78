package passes

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// layerFormulas are products, convolutions, norms, pools and reductions.
var layerFormulas = map[string]Decomp{
	"aten.linear.default": linear,
	"aten.matmul.default": matmul,
	"aten.mv.default": wide(func(b *aten.Build, a *aten.Args) *aten.Value { // [N, K] by [K]
		return b.Call("sum.dim_IntList", b.Call("mul.Tensor", a.V[0], a.V[1]), []int64{1})
	}),
	"aten.dot.default": wide(func(b *aten.Build, a *aten.Args) *aten.Value {
		return b.Call("sum.dim_IntList", b.Call("mul.Tensor", a.V[0], a.V[1]), []int64{})
	}),
	"aten.baddbmm.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		p := b.Call("bmm", a.V[1], a.V[2])
		p = scaled(b, p, a.Scalar(4))
		if beta := a.Scalar(3); beta.Float64() == 0 {
			return one(p)
		}
		return one(b.Call("add.Tensor", scaled(b, a.Tensor(0), a.Scalar(3)), p))
	},
	"aten.conv1d.default":           convolution(1, false),
	"aten.conv2d.default":           convolution(2, false),
	"aten.conv3d.default":           convolution(3, false),
	"aten.conv_transpose1d.default": convolution(1, true),
	"aten.conv_transpose2d.input":   convolution(2, true),
	"aten.conv_transpose3d.input":   convolution(3, true),
	"aten.layer_norm.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.CallN("native_layer_norm", a.V[0], a.V[1], a.V[2], a.V[3], a.V[4])[0])
	},
	"aten.group_norm.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		if x.Dim() < 2 {
			panic(&unrecordable{"group_norm of few dimensions"})
		}
		rest := symbolic.Prod(x.Sizes[2:]...)
		return one(b.CallN("native_group_norm", x, a.V[2], a.V[3], x.Sizes[0], x.Sizes[1], rest, a.V[1], a.V[4])[0])
	},
	"aten.softmax.int":     softmax("_softmax"),
	"aten.log_softmax.int": softmax("_log_softmax"),
	"aten.sum.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("sum.dim_IntList", a.V[0], []int64{}, false, aten.Kw("dtype", a.V[1])))
	},
	"aten.max_pool2d.default": firstOf("max_pool2d_with_indices"),
	"aten.max_pool3d.default": firstOf("max_pool3d_with_indices"),
	"aten.adaptive_avg_pool2d.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		if allOnes(a.Ints(1)) {
			return one(b.Call("mean.dim", a.V[0], []int64{-1, -2}, true))
		}
		return one(b.Call("_adaptive_avg_pool2d", a.V...))
	},
	"aten.adaptive_avg_pool3d.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		if allOnes(a.Ints(1)) {
			return one(b.Call("mean.dim", a.V[0], []int64{-1, -2, -3}, true))
		}
		return one(b.Call("_adaptive_avg_pool3d", a.V...))
	},
	"aten.avg_pool1d.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		pair := func(i int, first int64) []int64 { return append([]int64{first}, a.I64s(i)...) }
		stride := []int64{}
		if len(a.I64s(2)) > 0 {
			stride = pair(2, 1)
		}
		x := b.Call("unsqueeze", a.V[0], -2)
		y := b.Call("avg_pool2d", x, pair(1, 1), stride, pair(3, 0), a.V[4], a.V[5])
		return one(b.Call("squeeze.dims", y, []int64{-2}))
	},
}

func allOnes(v []symbolic.Int) bool {
	for _, n := range v {
		if c, ok := n.Const(); !ok || c != 1 {
			return false
		}
	}
	return true
}

// linear: x is [..., K], weight [N, K], bias [N] or none. Contiguous input with a bias is one product of matrices, all else a matmul
// with the transposed weight.
func linear(b *aten.Build, a *aten.Args) []*aten.Value {
	x, w, bias := a.Tensor(0), a.Tensor(1), a.OptTensor(2)
	if w.Dim() != 2 {
		panic(&unrecordable{"linear of a vector"})
	}
	switch n := x.Dim(); {
	case bias != nil && n == 2:
		return one(b.Call("addmm", bias, x, b.Call("permute", w, []int64{1, 0})))
	case bias != nil && n > 2 && bias.Dim() == 1 && x.IsContiguous():
		flat := viewOrCopy(b, x, sizes(symbolic.Prod(x.Sizes[:n-1]...), x.Sizes[n-1]))
		y := b.Call("addmm", bias, flat, b.Call("permute", w, []int64{1, 0}))
		return one(b.Call("view", y, append(append([]symbolic.Int(nil), x.Sizes[:n-1]...), w.Sizes[0])))
	}
	y := b.Call("matmul", x, b.Call("permute", w, []int64{1, 0}))
	if bias != nil {
		y = b.Call("add.Tensor", y, bias)
	}
	return one(y)
}

func matmul(b *aten.Build, a *aten.Args) []*aten.Value {
	x, y := a.Tensor(0), a.Tensor(1)
	switch nx, ny := x.Dim(), y.Dim(); {
	case nx == 1 && ny == 1:
		return one(b.Call("dot", x, y))
	case nx == 2 && ny == 1:
		return one(b.Call("mv", x, y))
	case nx == 1 && ny == 2:
		return one(b.Call("squeeze.dims", b.Call("mm", b.Call("unsqueeze", x, 0), y), []int64{0}))
	case nx == 2 && ny == 2:
		return one(b.Call("mm", x, y))
	case folds(x, y):
		return one(folded(b, x, y))
	}
	return one(batched(b, x, y))
}

// folds is PyTorch's rule of when a batch of matrices and one matrix or vector are a single product: where that costs no copy, and
// where a parameter would be copied for its gradient.
func folds(x, y *aten.Value) bool {
	large, small := x, y
	if x.Dim() < y.Dim() {
		large, small = y, x
	}
	if large.Dim() < 3 || small.Dim() > 2 {
		return false
	}
	if p, ok := small.Ref.(*ref); ok && p.grad && p.node.Def == nil {
		return true
	}
	if x.Dim() == 2 {
		return false
	}
	if n, ok := large.Numel().Const(); ok && n == 0 {
		return true
	}
	return large.IsContiguous()
}

// folded makes one matrix of the batch.
func folded(b *aten.Build, x, y *aten.Value) *aten.Value {
	turned := y.Dim() > x.Dim()
	large, small := x, y
	if turned {
		n := y.Dim()
		large, small = b.Call("permute", y, exchange(n, n-2, n-1)), x
		if x.Dim() == 2 {
			small = b.Call("permute", x, []int64{1, 0})
		}
	}
	n := large.Dim()
	out := append([]symbolic.Int(nil), large.Sizes[:n-1]...)
	flat := viewOrCopy(b, large, sizes(symbolic.Prod(out...), large.Sizes[n-1]))
	if small.Dim() == 1 {
		return b.Call("view", b.Call("mv", flat, small), out)
	}
	z := b.Call("view", b.Call("mm", flat, small), append(out, small.Sizes[1]))
	if turned {
		z = b.Call("contiguous", b.Call("permute", z, exchange(n, n-2, n-1)))
	}
	return z
}

// batched multiplies matrix by matrix.
func batched(b *aten.Build, x, y *aten.Value) *aten.Value {
	nx, ny := x.Dim(), y.Dim()
	none := ofSizes(nil)
	bx, by := none, none
	if nx > 2 {
		bx = ofSizes(x.Sizes[:nx-2])
	}
	if ny > 2 {
		by = ofSizes(y.Sizes[:ny-2])
	}
	batch := aten.BroadcastSizes(bx, by)
	whole := symbolic.Prod(batch...)
	part := func(t *aten.Value, m ...symbolic.Int) *aten.Value {
		t = b.Call("expand", t, append(append([]symbolic.Int(nil), batch...), m...))
		flat := append(sizes(whole), m...)
		if sameSizes(t.Sizes, flat) {
			return b.Call("view", t, flat)
		}
		return viewOrCopy(b, t, flat)
	}
	out := append([]symbolic.Int(nil), batch...)
	if nx > 1 {
		out = append(out, x.Sizes[nx-2])
		x = part(x, x.Sizes[nx-2:]...)
	} else {
		x = part(x, symbolic.N(1), x.Sizes[0])
	}
	if ny == 1 {
		p := b.Call("bmm", x, b.Call("unsqueeze", part(y, y.Sizes[0]), 2))
		return b.Call("view", b.Call("squeeze.dims", p, []int64{-1}), out)
	}
	p := b.Call("bmm", x, part(y, y.Sizes[ny-2:]...))
	return b.Call("view", p, append(out, y.Sizes[ny-1]))
}

// convolution of n spatial dimensions. Input without a batch gets one.
func convolution(n int, transposed bool) Decomp {
	return func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		single := x.Dim() == n+1
		if single {
			x = b.Call("unsqueeze", x, 0)
		}
		zero := make([]int64, n)
		var y *aten.Value
		if transposed { // input, weight, bias, stride, padding, output_padding, groups, dilation
			y = b.Call("convolution", x, a.V[1], a.V[2], a.V[3], a.V[4], a.V[7], true, a.V[5], a.V[6])
		} else { // input, weight, bias, stride, padding, dilation, groups
			y = b.Call("convolution", x, a.V[1], a.V[2], a.V[3], a.V[4], a.V[5], false, zero, a.V[6])
		}
		if single {
			y = b.Call("squeeze.dims", y, []int64{0})
		}
		return one(y)
	}
}

func softmax(name string) Decomp {
	return func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		x = castAs(b, x, a.DType(2, x.DType))
		if x.DType == tensor.Invalid {
			panic(&unrecordable{"softmax of no dtype"})
		}
		return one(b.Call(name, x, a.V[1], false))
	}
}

// ofSizes is a value of which only the sizes matter.
func ofSizes(s []symbolic.Int) *aten.Value { return &aten.Value{Meta: aten.Contig(tensor.Bool, s...)} }
