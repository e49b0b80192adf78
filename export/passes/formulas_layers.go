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

// linear: x is [..., K], weight [N, K], bias [N] or none.
func linear(b *aten.Build, a *aten.Args) []*aten.Value {
	x, w, bias := a.Tensor(0), a.Tensor(1), a.OptTensor(2)
	if x.Dim() < 2 || w.Dim() != 2 {
		panic(&unrecordable{"linear of a vector"})
	}
	flat, n := x, x.Dim()
	flatten := func() {
		if n > 2 {
			flat = viewOrCopy(b, x, sizes(symbolic.Prod(x.Sizes[:n-1]...), x.Sizes[n-1]))
		}
	}
	if bias != nil { // without one it is a matmul with the transposed weight
		flatten()
	}
	wt := b.Call("permute", w, []int64{1, 0}) // [K, N]
	if bias == nil {
		flatten()
	}
	var y *aten.Value
	if bias != nil {
		y = b.Call("addmm", bias, flat, wt)
	} else {
		y = b.Call("mm", flat, wt)
	}
	if n > 2 {
		y = b.Call("view", y, append(append([]symbolic.Int(nil), x.Sizes[:n-1]...), w.Sizes[0]))
	}
	return one(y)
}

func matmul(b *aten.Build, a *aten.Args) []*aten.Value {
	x, y := a.Tensor(0), a.Tensor(1)
	nx, ny := x.Dim(), y.Dim()
	switch {
	case nx == 2 && ny == 2:
		return one(b.Call("mm", x, y))
	case nx >= 3 && ny == 2:
		flat := viewOrCopy(b, x, sizes(symbolic.Prod(x.Sizes[:nx-1]...), x.Sizes[nx-1]))
		return one(b.Call("view", b.Call("mm", flat, y), append(append([]symbolic.Int(nil), x.Sizes[:nx-1]...), y.Sizes[1])))
	case nx == 1 && ny == 2:
		return one(b.Call("squeeze.dims", b.Call("mm", b.Call("unsqueeze", x, 0), y), []int64{0}))
	case nx == 2 && ny == 1:
		return one(b.Call("mv", x, y))
	case nx == 1 && ny == 1:
		return one(b.Call("dot", x, y))
	case nx == 1:
		return vectors(b, b.Call("permute", y, exchange(ny, ny-2, ny-1)), x)
	case ny == 1:
		return vectors(b, x, y)
	}
	batch := aten.BroadcastSizes(ofSizes(x.Sizes[:nx-2]), ofSizes(y.Sizes[:ny-2]))
	whole := symbolic.Prod(batch...)
	part := func(t *aten.Value) *aten.Value {
		m := t.Sizes[t.Dim()-2:]
		t = b.Call("expand", t, append(append([]symbolic.Int(nil), batch...), m...))
		if flat := sizes(whole, m[0], m[1]); sameSizes(t.Sizes, flat) {
			return b.Call("view", t, flat)
		} else {
			return viewOrCopy(b, t, flat)
		}
	}
	p := b.Call("bmm", part(x), part(y))
	return one(b.Call("view", p, append(append([]symbolic.Int(nil), batch...), x.Sizes[nx-2], y.Sizes[ny-1])))
}

// vectors multiplies matrices [..., N, K] with a vector [K].
func vectors(b *aten.Build, x, v *aten.Value) []*aten.Value {
	n := x.Dim()
	flat := viewOrCopy(b, x, sizes(symbolic.Prod(x.Sizes[:n-1]...), x.Sizes[n-1]))
	return one(b.Call("view", b.Call("mv", flat, v), x.Sizes[:n-1]))
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
		x = cast(b, x, a.DType(2, x.DType))
		if x.DType == tensor.Invalid {
			panic(&unrecordable{"softmax of no dtype"})
		}
		return one(b.Call(name, x, a.V[1], false))
	}
}

// ofSizes is a value of which only the sizes matter.
func ofSizes(s []symbolic.Int) *aten.Value { return &aten.Value{Meta: aten.Contig(tensor.Bool, s...)} }
