package plan

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/tensor"
)

// pairOp is a convolution of single positions and the depthwise one after it, as in inverted residuals.
var pairOp = internal(&aten.Op{
	Schema: "plan::conv_pair(Tensor x, Pair pair) -> Tensor",
	Shape:  func(a *aten.Args) []aten.Meta { return nil },
	CPU: func(k *aten.Kernel) {
		c := k.V[1].(*pair)
		x, out := tensor.Data[float32](k.T(0)), tensor.Data[float32](k.Out[0])
		cpu.ConvPairNHWC(k.Pool, c.kernels(), c.first.packed, c.second.packed, x, out, c.first.kernel(nil), c.second.kernel(nil))
	},
})

// pair describes the two convolutions.
type pair struct{ first, second *conv }

func (c *pair) kernels() cpu.Pair { return cpu.Pair{First: &c.first.Conv, Second: &c.second.Conv} }

// String is "1x1 16->64 relu, 3x3 64->64 groups 64 relu".
func (c *pair) String() string { return c.first.String() + ", " + c.second.String() }

// pairConvolutions is the pass that makes a large result between a convolution of single positions and a depthwise one disappear.
func (g *graph) pairConvolutions() {
	for i, in := range g.instrs {
		if in.Op != convOp || in.Args.V[1] != nil {
			continue
		}
		y := in.Outs[0]
		j := g.onlyUse(y)
		if j < 0 || g.instrs[j].Op != convOp || g.instrs[j].Args.V[1] != nil || !g.movable(i, j) {
			continue
		}
		user := g.instrs[j]
		c := &pair{in.Args.V[2].(*conv), user.Args.V[2].(*conv)}
		if v := user.Args.Tensor(0); !covers(v) || !lastIsC(v) || c.first.transposed || c.second.transposed || !c.kernels().Wins() {
			continue
		}
		g.remove(j)
		g.remove(i)
		g.set(j, &Instr{Op: pairOp, Args: &aten.Args{Op: pairOp, V: []any{in.Args.V[0], c}}, Outs: user.Outs})
	}
}
