package plan

import (
	"fmt"
	"slices"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// windowOp is a maximum or mean over windows with channels last.
var windowOp = internal(&aten.Op{
	Schema: "plan::pool(Tensor x, Window window) -> Tensor",
	Shape:  func(a *aten.Args) []aten.Meta { return nil },
	CPU: func(k *aten.Kernel) {
		w := k.V[1].(*window)
		x, out := tensor.Data[float32](k.T(0)), tensor.Data[float32](k.Out[0])
		if w.mean {
			cpu.AvgPoolNHWC(k.Pool, &w.Conv, x, out, w.countPad, w.divisor)
			return
		}
		cpu.MaxPoolNHWC(k.Pool, &w.Conv, x, out)
	},
})

// meanOp is the mean over dimensions that lie side by side in memory, others inside and outside of them.
var meanOp = internal(&aten.Op{
	Schema: "plan::mean(Tensor x, Rows rows) -> Tensor",
	Shape:  func(a *aten.Args) []aten.Meta { return nil },
	CPU: func(k *aten.Kernel) {
		r := k.V[1].(*rows)
		cpu.MeanRowsF32(k.Pool, tensor.Data[float32](k.T(0)), tensor.Data[float32](k.Out[0]), r.outer, r.rows, r.cols)
	},
})

// window describes a pooling instruction.
type window struct {
	cpu.Conv
	mean, countPad bool
	divisor        int
}

// String is "max 3x3 /2x2".
func (w *window) String() string {
	s := "max "
	if w.mean {
		s = "mean "
	}
	return s + spatial(w.Kernel) + " /" + spatial(w.Stride)
}

// rows is the shape of a mean: [outer, rows, cols].
type rows struct{ outer, rows, cols int }

// String is "49 of 2048".
func (r *rows) String() string { return fmt.Sprintf("%d of %d", r.rows, r.cols) }

// lowerPooling is the pass that makes poolings with channels last, and means over rows, the planner's own.
func (g *graph) lowerPooling() {
	for i, in := range g.instrs {
		if len(in.Args.V) == 0 || len(in.Outs) == 0 || in.Outs[0] == nil || in.Outs[0].DType != tensor.Float32 || !covers(in.Outs[0]) || in.Outs[0].Numel().Int64() == 0 {
			continue
		}
		x, ok := in.Args.V[0].(*aten.Value)
		if !ok || x == nil || x.DType != tensor.Float32 || x.Conj || x.Neg {
			continue
		}
		var op *aten.Op
		var spec any
		if w := g.windowOf(in); w != nil {
			op, spec = windowOp, w
		} else if r := rowsOfMean(in); r != nil {
			op, spec = meanOp, r
		} else {
			continue
		}
		g.set(i, &Instr{Op: op, Args: &aten.Args{Op: op, V: []any{x, spec}}, Outs: in.Outs[:1]})
	}
}

// dropPlaces is the pass that leaves out where extremes are, if nobody asks.
func (g *graph) dropPlaces() {
	for i, in := range g.instrs {
		name := map[string]string{"aten.max.dim": "aten.amax.default", "aten.min.dim": "aten.amin.default"}[in.Op.Name()]
		if name == "" || in.Outs[1] == nil || in.Args.Tensor(0).Dim() == 0 || !in.Args.Tensor(0).DType.IsFloat() {
			continue
		}
		if b := bufferOf(in.Outs[1]); len(b.readers) > 0 || b.given {
			continue
		}
		op := aten.Builtin().Lookup(name)
		a := &aten.Args{Op: op, V: []any{in.Args.Tensor(0), []symbolic.Int{in.Args.Int(1)}, in.Args.Bool(2)}}
		g.set(i, &Instr{Op: op, Args: a, Outs: in.Outs[:1]})
	}
}

// windowOf describes a two-dimensional pooling with channels last; nil for other instructions.
func (g *graph) windowOf(in *Instr) *window {
	w := &window{}
	a := in.Args
	dilation := []int64{1}
	switch in.Op.Name() {
	case "aten.max_pool2d.default":
		dilation = a.I64s(4)
	case "aten.max_pool2d_with_indices.default":
		dilation = a.I64s(4)
		if b := bufferOf(in.Outs[1]); len(b.readers) > 0 || b.given {
			return nil
		}
	case "aten.avg_pool2d.default":
		w.mean, w.countPad = true, a.Bool(5)
		if d, ok := a.OptInt(6); ok {
			w.divisor = int(d.Int64())
		}
	default:
		return nil
	}
	x, out := a.Tensor(0), in.Outs[0]
	if x.Dim() != 4 || !lastIsC(x) || !lastIsC(out) {
		return nil
	}
	stride := a.I64s(2)
	if len(stride) == 0 {
		stride = a.I64s(1)
	}
	two := func(l []int64, first int) [3]int { return [3]int{first, int(l[0]), int(l[len(l)-1])} }
	size := func(v *aten.Value) [3]int { return [3]int{1, int(v.Sizes[2].Int64()), int(v.Sizes[3].Int64())} }
	w.Conv = cpu.Conv{N: int(x.Sizes[0].Int64()), In: int(x.Sizes[1].Int64()), Out: int(x.Sizes[1].Int64()), Groups: 1, Size: size(x), OutSize: size(out),
		Kernel: two(a.I64s(1), 1), Stride: two(stride, 1), Pad: two(a.I64s(3), 0), Dilation: two(dilation, 1)}
	return w
}

// rowsOfMean describes a mean whose dimensions are in the middle of memory or outside; nil for other instructions.
func rowsOfMean(in *Instr) *rows {
	if in.Op.Name() != "aten.mean.dim" || in.Args.DType(3, tensor.Float32) != tensor.Float32 {
		return nil
	}
	x, out := in.Args.Tensor(0), in.Outs[0]
	if !x.IsDense() || !out.IsContiguous() || x.Numel().Int64() == 0 {
		return nil
	}
	reduced := aten.WrapDims(in.Args.I64s(1), x.Dim())
	r := &rows{1, 1, 1}
	stage := 0
	var kept []int // innermost first
	for _, d := range memoryOrder(x) {
		n := int(x.Sizes[d].Int64())
		if slices.Contains(reduced, d) {
			if stage > 1 {
				return nil
			}
			stage = 1
			r.rows *= n
			continue
		}
		kept = append(kept, d)
		switch stage {
		case 0:
			r.cols *= n
		default:
			stage = 2
			r.outer *= n
		}
	}
	// The result is row-major, so what is kept must lie in that order too.
	if r.cols == 1 || !slices.IsSortedFunc(kept, func(a, b int) int { return b - a }) {
		return nil
	}
	return r
}
