package passes

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tensor"
)

// creationFormulas make tensors of nothing but numbers.
var creationFormulas = map[string]Decomp{
	"aten.zeros.default":      filled(0, -1),
	"aten.ones.default":       filled(1, -1),
	"aten.zeros_like.default": likeFilled(0),
	"aten.ones_like.default":  likeFilled(1),
	"aten.new_zeros.default":  newFilled(0),
	"aten.new_ones.default":   newFilled(1),
	"aten.new_full.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		return one(b.Call("full", append([]any{a.V[1], a.V[2]}, options(a, 3, x.DType)...)...))
	},
	"aten.new_empty.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("empty.memory_format", append([]any{a.V[1]}, options(a, 2, a.Tensor(0).DType)...)...))
	},
	"aten.arange.default": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("arange.start_step", append([]any{0, a.V[0], 1}, options(a, 1, tensor.Invalid)...)...))
	},
	"aten.arange.start": func(b *aten.Build, a *aten.Args) []*aten.Value {
		return one(b.Call("arange.start_step", append([]any{a.V[0], a.V[1], 1}, options(a, 2, tensor.Invalid)...)...))
	},
}

// options are the keyword arguments dtype, layout, device and pin_memory, from parameter i on.
func options(a *aten.Args, i int, def tensor.DType) []any {
	var out []any
	if dt := a.DType(i, def); dt != tensor.Invalid {
		out = append(out, aten.Kw("dtype", dt))
	}
	for k, name := range []string{"layout", "device", "pin_memory"} {
		if v := a.V[i+1+k]; v != nil {
			out = append(out, aten.Kw(name, v))
		}
	}
	return out
}

func filled(value int, _ int) Decomp {
	return func(b *aten.Build, a *aten.Args) []*aten.Value {
		dt := a.DType(1, tensor.Float32)
		return one(b.Call("full", append([]any{a.V[0], number(value, dt)}, options(a, 1, tensor.Float32)...)...))
	}
}

// number is 0 or 1 as PyTorch's formulas write it.
func number(value int, dt tensor.DType) any {
	if dt == tensor.Bool {
		return value != 0
	}
	return int64(value)
}

func likeFilled(value int) Decomp {
	return func(b *aten.Build, a *aten.Args) []*aten.Value {
		args := append([]any{a.Tensor(0), number(value, a.DType(1, a.Tensor(0).DType))}, options(a, 1, tensor.Invalid)...)
		if a.V[5] != nil {
			args = append(args, aten.Kw("memory_format", a.V[5]))
		}
		return one(b.Call("full_like", args...))
	}
}

func newFilled(value int) Decomp {
	return func(b *aten.Build, a *aten.Args) []*aten.Value {
		x := a.Tensor(0)
		return one(b.Call("full", append([]any{a.V[1], number(value, a.DType(2, x.DType))}, options(a, 2, x.DType)...)...))
	}
}
