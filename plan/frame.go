package plan

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/internal/pool"
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// Frame is what one run of a plan needs: the arena, and the kernels with their arguments bound to it. It serves one run at a
// time and is kept for the next.
type Frame struct {
	plan     *Plan
	arena    []byte
	storages []*tensor.Storage // by buffer
	kernels  []aten.Kernel
	zero     [][]*tensor.Storage
	outs     []*tensor.Tensor // bound outputs; nil where the output is a constant or no tensor
	bound    map[*aten.Value]*aten.Value
}

// Bytes is the memory that a frame of its own takes: its arena.
func (f *Frame) Bytes() int64 { return f.plan.arena }

// OutputBytes is the memory of the fresh outputs of one run.
func (p *Plan) OutputBytes() int64 {
	n := int64(0)
	for _, b := range p.buffers {
		if b.Kind == Output {
			n += b.Bytes
		}
	}
	return n
}

// arenaBytes allocates n zero bytes, if possible on large pages: rows of images lie far apart, on more small pages than a core has
// addresses of at hand.
func arenaBytes(n int) []byte {
	const page = 2 << 20
	if n < page {
		return tensor.AlignedBytes(n)
	}
	b := tensor.AlignedBytes(n + page - tensor.Align)
	skip := int(-uintptr(unsafe.Pointer(&b[0])) & (page - 1))
	b = b[skip : skip+n : skip+n]
	cpu.LargePages(b)
	return b
}

// NewFrame binds the plan to an instance's state and to the inputs of the first run.
func (p *Plan) NewFrame(inputs, state []*tensor.Tensor, pl *pool.Pool) (*Frame, error) {
	f := &Frame{plan: p, arena: arenaBytes(int(p.arena)), storages: make([]*tensor.Storage, len(p.buffers)), bound: map[*aten.Value]*aten.Value{}}
	for i, b := range p.buffers {
		switch b.Kind {
		case Temp:
			if b.first >= 0 {
				f.storages[i] = tensor.WrapStorage(f.arena[b.Offset:b.Offset+b.Bytes:b.Offset+b.Bytes], false)
			}
		case Input:
			f.storages[i] = tensor.WrapStorage(memoryOf(inputs[b.Index]), false)
		case State:
			f.storages[i] = tensor.WrapStorage(memoryOf(state[b.Index]), false)
		case Output:
			f.storages[i] = tensor.NewStorage(int(b.Bytes))
		}
	}
	for _, in := range p.instrs {
		k := aten.Kernel{Pool: pl, Args: &aten.Args{Op: in.Op, V: make([]any, len(in.Args.V))}}
		for j, x := range in.Args.V {
			y, err := f.bindArg(x)
			if err != nil {
				return nil, err
			}
			k.V[j] = y
		}
		var zero []*tensor.Storage
		for _, o := range in.Outs {
			if o == nil {
				k.Out = append(k.Out, nil)
				continue
			}
			v, err := f.bind(o)
			if err != nil {
				return nil, err
			}
			k.Out = append(k.Out, v.T)
			if in.zero && o.Zero {
				zero = append(zero, v.T.Storage())
			}
		}
		f.kernels = append(f.kernels, k)
		f.zero = append(f.zero, zero)
	}
	f.outs = make([]*tensor.Tensor, len(p.outputs))
	for i, o := range p.outputs {
		if o == nil || o.T != nil {
			continue
		}
		v, err := f.bind(o)
		if err != nil {
			return nil, err
		}
		f.outs[i] = v.T
	}
	f.bound = nil
	return f, nil
}

func (f *Frame) bindArg(x any) (any, error) {
	switch x := x.(type) {
	case *aten.Value:
		if x == nil {
			return x, nil
		}
		return f.bind(x)
	case []*aten.Value:
		out := make([]*aten.Value, len(x))
		for i, v := range x {
			if v == nil {
				continue
			}
			b, err := f.bind(v)
			if err != nil {
				return nil, err
			}
			out[i] = b
		}
		return out, nil
	}
	return x, nil
}

func (f *Frame) bind(v *aten.Value) (*aten.Value, error) {
	if v.T != nil {
		return v, nil
	}
	if b := f.bound[v]; b != nil {
		return b, nil
	}
	st := f.storages[bufferOf(v).id]
	if st == nil {
		return nil, fmt.Errorf("plan: a value has no memory")
	}
	t, err := tensor.View(st, v.DType, aten.Int64s(v.Sizes), aten.Int64s(v.Strides), v.Offset.Int64())
	if err != nil {
		return nil, err
	}
	b := &aten.Value{Meta: v.Meta, T: t.WithBits(v.Conj, v.Neg), Wrapped: v.Wrapped}
	f.bound[v] = b
	return b, nil
}

// Run computes on inputs of the sizes and strides that the plan was made for. Outputs are fresh tensors; one that looks at an
// input shares its storage; one that is state or a constant is a copy; nil stands for outputs that are no tensors.
// prof, if not nil, receives how long each instruction takes.
func (f *Frame) Run(ctx context.Context, inputs []*tensor.Tensor, prof *Profile) ([]*tensor.Tensor, error) {
	defer f.letGo()
	for i, b := range f.plan.buffers {
		switch b.Kind {
		case Input:
			f.storages[i].Reset(memoryOf(inputs[b.Index]))
		case Output:
			f.storages[i].Reset(tensor.AlignedBytes(int(b.Bytes)))
		}
	}
	if err := f.run(ctx, prof); err != nil {
		return nil, err
	}
	return f.results(inputs)
}

// letGo drops the memory of inputs and outputs, which a frame that waits must not keep alive.
func (f *Frame) letGo() {
	for i, b := range f.plan.buffers {
		if b.Kind == Input || b.Kind == Output {
			f.storages[i].Reset(nil)
		}
	}
}

func (f *Frame) run(ctx context.Context, prof *Profile) (err error) {
	i := 0
	defer func() {
		if r := recover(); r != nil {
			err = aten.RecoverError(f.kernels[i].Op, r)
		}
	}()
	done := ctx.Done()
	run := 0
	if prof != nil {
		run = prof.begin()
	}
	for ; i < len(f.kernels); i++ {
		if done != nil {
			select {
			case <-done:
				return ctx.Err()
			default:
			}
		}
		for _, st := range f.zero[i] {
			clear(st.Bytes())
		}
		k := &f.kernels[i]
		if prof == nil {
			k.Op.CPU(k)
			continue
		}
		from := time.Now()
		k.Op.CPU(k)
		prof.add(f.plan.instrs[i], run, from)
	}
	return nil
}

func (f *Frame) results(inputs []*tensor.Tensor) ([]*tensor.Tensor, error) {
	out := make([]*tensor.Tensor, len(f.outs))
	given := map[*Buffer]*tensor.Storage{}
	for i, t := range f.outs {
		o := f.plan.outputs[i]
		if o == nil {
			continue
		}
		if o.T != nil {
			out[i] = clone(o.T)
			continue
		}
		b := bufferOf(o)
		var err error
		switch b.Kind {
		case Output:
			if given[b] == nil {
				given[b] = tensor.WrapStorage(t.Storage().Bytes(), false)
			}
			out[i], err = tensor.View(given[b], t.DType(), t.Sizes(), t.Strides(), t.Offset())
		case Input:
			in := inputs[b.Index]
			off := in.Offset()*int64(in.DType().Size())/int64(t.DType().Size()) + t.Offset()
			out[i], err = tensor.View(in.Storage(), t.DType(), t.Sizes(), t.Strides(), off)
		default:
			out[i] = clone(t)
		}
		if err != nil {
			return nil, err
		}
		if out[i].IsConj() != t.IsConj() || out[i].IsNeg() != t.IsNeg() {
			out[i] = out[i].WithBits(t.IsConj(), t.IsNeg())
		}
	}
	return out, nil
}

// clone copies t in its own layout.
func clone(t *tensor.Tensor) *tensor.Tensor {
	v := aten.FromTensor(t)
	c := tensor.NewStrided(t.DType(), t.Sizes(), aten.Int64s(aten.FormatStrides(aten.PreserveFormat, v.Sizes, v)))
	aten.Copy(nil, c, t)
	return c
}
