package plan

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// convCatOp is a convolution of a concatenation along the channels, which reads its parts where they lie.
var convCatOp = internal(&aten.Op{
	Schema: "plan::conv_cat(Tensor[] x, Tensor? residual, Conv conv) -> Tensor",
	Shape:  func(a *aten.Args) []aten.Meta { return nil },
	CPU: func(k *aten.Kernel) {
		c := k.V[2].(*conv)
		var parts []cpu.ConvPart
		for _, v := range k.Tensors(0) {
			parts = append(parts, cpu.ConvPart{X: tensor.Data[float32](v.T), Channels: int(v.T.Sizes()[1])})
		}
		cpu.ConvPartsNHWC(k.Pool, &c.Conv, c.packed, parts, tensor.Data[float32](k.Out[0]), c.kernel(k.OptT(1)))
	},
})

// readConcatenations is the pass that lets convolutions read what is concatenated for them alone from its parts.
func (g *graph) readConcatenations() {
	for i, in := range g.instrs {
		if in.Op.Name() != "aten.cat.default" {
			continue
		}
		out := in.Outs[0]
		j := g.onlyUse(out)
		if j < 0 || g.instrs[j].Op != convOp || !g.movable(i, j) || aten.WrapDims([]int64{in.Args.I64(1)}, out.Dim())[0] != 1 {
			continue
		}
		user := g.instrs[j]
		x, c := user.Args.Tensor(0), user.Args.V[2].(*conv)
		if bufferOf(x) != bufferOf(out) || !covers(x) || !covers(out) || !lastIsC(x) || !lastIsC(out) || c.transposed || !partsOf(in.Args.Tensors(0), c) {
			continue
		}
		g.remove(j)
		g.remove(i)
		g.set(j, &Instr{Op: convCatOp, Args: &aten.Args{Op: convCatOp, V: []any{in.Args.Tensors(0), user.Args.V[1], c}}, Outs: user.Outs})
	}
}

// partsOf tells whether a convolution can read the tensors of a concatenation itself.
func partsOf(list []*aten.Value, c *conv) bool {
	var channels []int
	for _, v := range list {
		if v.DType != tensor.Float32 || v.Conj || v.Neg || v.Dim() < 2 || !lastIsC(v) {
			return false
		}
		channels = append(channels, int(v.Sizes[1].Int64()))
	}
	return c.TakesParts(channels)
}
