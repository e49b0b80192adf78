package passes

import (
	"maps"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// formulas are those of PyTorch's Core ATen decompositions (torch/_decomp, torch/_refs, and the composite kernels of ATen) for
// operators that the registry runs in another way. "aten.linear.default" and so on.
var formulas = func() map[string]Decomp {
	m := map[string]Decomp{}
	for _, f := range []map[string]Decomp{shapeFormulas, creationFormulas, pointwiseFormulas, layerFormulas, indexFormulas, simpleFormulas, refFormulas, lossFormulas, attentionFormulas, rnnFormulas} {
		maps.Copy(m, f)
	}
	return m
}()

func one(v *aten.Value) []*aten.Value { return []*aten.Value{v} }

// as calls another operator with the same arguments.
func as(name string) Decomp {
	return func(b *aten.Build, a *aten.Args) []*aten.Value { return b.CallN(name, a.V...) }
}

// firstOf calls another operator with the same arguments and takes its first result.
func firstOf(name string) Decomp {
	return func(b *aten.Build, a *aten.Args) []*aten.Value { return one(b.CallN(name, a.V...)[0]) }
}

// last is the permutation of n dimensions that exchanges i and j.
func exchange(n, i, j int) []int64 {
	p := make([]int64, n)
	for k := range p {
		p[k] = int64(k)
	}
	p[i], p[j] = p[j], p[i]
	return p
}

func sizes(v ...symbolic.Int) []symbolic.Int { return v }

// fits reports that a call would be accepted: a view, for one, that its strides allow.
func fits(name string, args ...any) bool {
	b := aten.NewBuild(aten.Fake{}, nil)
	op := b.Reg.Lookup("aten." + name)
	if op == nil {
		return false
	}
	bound, err := op.Bind(args, nil)
	if err != nil {
		return false
	}
	_, err = b.Do(op, bound)
	return err == nil
}

// viewOrCopy is PyTorch's reshape: a view where the strides allow it, else a row-major copy.
func viewOrCopy(b *aten.Build, x *aten.Value, shape []symbolic.Int) *aten.Value {
	if sameSizes(x.Sizes, shape) {
		return x
	}
	if !fits("view.default", x, shape) {
		x = b.Call("clone", x, aten.Kw("memory_format", aten.ContiguousFormat))
	}
	return b.Call("view", x, shape)
}

func sameSizes(x, y []symbolic.Int) bool {
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if !x[i].Same(y[i]) {
			return false
		}
	}
	return true
}

// cast is x in another dtype.
func cast(b *aten.Build, x *aten.Value, dt tensor.DType) *aten.Value {
	if x.DType == dt {
		return x
	}
	return b.Call("_to_copy", x, aten.Kw("dtype", dt))
}

// wide computes a formula of half types in float32, as PyTorch's decompositions do.
func wide(f func(b *aten.Build, a *aten.Args) *aten.Value) Decomp {
	return func(b *aten.Build, a *aten.Args) []*aten.Value {
		var half tensor.DType
		v := append([]any(nil), a.V...)
		for i, x := range v {
			if t, ok := x.(*aten.Value); ok && t != nil && t.DType.IsReduced() {
				half, v[i] = t.DType, cast(b, t, tensor.Float32)
			}
		}
		y := f(b, &aten.Args{Op: a.Op, V: v})
		if half != tensor.Invalid {
			y = cast(b, y, half)
		}
		return one(y)
	}
}
