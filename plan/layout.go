package plan

import (
	"strings"
	"sync"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/symbolic"
)

// Layout chooses where elements lie while the program is recorded. PyTorch's rules then carry the choice through the operators that
// follow, as they do for a model in channels-last.

// layout may change the strides of fresh outputs before op is recorded: convolutions answer with channels last, [N, ..., C] in
// memory, which is what the packed kernels want and what makes channels the columns of a matrix product.
func (r *Recorder) layout(op *aten.Op, a *aten.Args, outs []*aten.Value) {
	if r.Exact {
		return
	}
	if op.IsView() {
		// Where PyTorch would have a view of its argument this is a copy: whoever writes one of the two must see the other change.
		for _, o := range outs {
			if o != nil {
				handleOf(o).split = r.relaxed
			}
		}
		eachValue(a, func(v *aten.Value) {
			if h := handleOf(v); h != nil {
				h.split = h.split || r.relaxed
			}
		})
	}
	if strings.HasPrefix(op.Name(), "aten.upsample_") || op.Name() == "aten.native_group_norm.default" {
		// The kernels follow their input, also where PyTorch sees no channels last: in one dimension, or behind strides of size 1.
		if x, o := a.Tensor(0), outs[0]; x.Dim() == o.Dim() && !x.IsContiguous() && lastIsC(x) && !lastIsC(o) {
			r.relaxed = true
			o.Strides = channelsLast(o.Sizes)
		}
	}
	if op.Tags&aten.Pointwise != 0 && len(outs) == 1 && outs[0] != nil {
		r.straighten(a, outs[0])
	}
	if op.Name() == "aten.convolution.default" {
		o := outs[0]
		if st := channelsLast(o.Sizes); !sameInts(st, o.Strides) {
			r.relaxed = true
			o.Strides = st
		}
	}
}

// straighten lets an element-by-element result lie row-major where PyTorch's rule gives it the layout of its first operand, that layout
// is neither row-major nor channels last, and another operand is row-major: nothing that follows would want it.
func (r *Recorder) straighten(a *aten.Args, out *aten.Value) {
	if out.Dim() < 2 || out.IsContiguous() || sameInts(channelsLast(out.Sizes), out.Strides) || !out.IsDense() {
		return
	}
	plain := false
	eachValue(a, func(v *aten.Value) {
		plain = plain || aten.SameSizes(v.Sizes, out.Sizes) && v.IsContiguous()
	})
	if plain {
		r.relaxed = true
		out.Strides = aten.ContiguousStrides(out.Sizes)
	}
}

// channelsLast gives the strides of [N, C, ...] stored with C innermost.
func channelsLast(sizes []symbolic.Int) []symbolic.Int {
	st := make([]symbolic.Int, len(sizes))
	st[1] = symbolic.N(1)
	next := sizes[1]
	for i := len(sizes) - 1; i >= 2; i-- {
		st[i] = next
		next = next.Mul(sizes[i])
	}
	st[0] = next
	return st
}

func sameInts(a, b []symbolic.Int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Eq(b[i]) {
			return false
		}
	}
	return true
}

// lowered are operators in the form in which a recording wants them: views become reshapes, because a layout that the recorder chose
// may not allow the view.
var lowered = sync.OnceValue(func() map[*aten.Op]*aten.Op {
	through := func(name string) func(b *aten.Build, a *aten.Args) []*aten.Value {
		return func(b *aten.Build, a *aten.Args) []*aten.Value { return aten.One(b.Call(name, a.V...)) }
	}
	return byBuiltin(
		&aten.Op{Schema: "view(Tensor(a) self, SymInt[] size) -> Tensor(a)", Tags: aten.LazyBits, Decomp: through("reshape")},
		&aten.Op{Schema: "_unsafe_view(Tensor self, SymInt[] size) -> Tensor", Tags: aten.LazyBits, Decomp: through("reshape")},
		&aten.Op{Schema: "view_as(Tensor(a) self, Tensor other) -> Tensor(a)", Tags: aten.LazyBits, Decomp: through("reshape_as")},
	)
})

// byBuiltin maps the built-in operators of the same names to ops.
func byBuiltin(ops ...*aten.Op) map[*aten.Op]*aten.Op {
	m := map[*aten.Op]*aten.Op{}
	for _, op := range internalOps(ops...) {
		m[aten.Builtin().Lookup(op.Name())] = op
	}
	return m
}

// internalOps makes operators ready that are no part of a registry that programs see.
func internalOps(ops ...*aten.Op) []*aten.Op {
	if _, err := aten.NewRegistry(nil, ops...); err != nil {
		panic(err) // a declared entry is malformed: every test finds this
	}
	return ops
}

// internal is [internalOps] for one operator.
func internal(op *aten.Op) *aten.Op { return internalOps(op)[0] }

// Lower implements [aten.Lowerer].
func (r *Recorder) Lower(op *aten.Op) *aten.Op {
	if r.Exact {
		return op
	}
	if l := lowered()[op]; l != nil {
		return l
	}
	return op
}
