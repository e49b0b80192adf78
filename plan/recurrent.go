package plan

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/kernels/cpu"
)

// recurrentOp is aten.mkldnn_rnn_layer with its constant weights packed: the same arguments, then the weights.
var recurrentOp = internal(&aten.Op{
	Schema: "plan::rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, bool bidirectional, bool batch_first, bool train, Packed weights) -> (Tensor, Tensor, Tensor, Tensor)",
	Shape:  func(a *aten.Args) []aten.Meta { return nil },
	CPU:    func(k *aten.Kernel) { aten.RunRecurrent(k, k.V[16].(packedRecurrent).Recurrent) },
})

type packedRecurrent struct{ *cpu.Recurrent }

// String names the size.
func (packedRecurrent) String() string { return "packed" }

// packRecurrent is the pass that packs the constant weights of recurrent layers.
func (g *graph) packRecurrent() {
	for i, in := range g.instrs {
		if in.Op.Name() != "aten.mkldnn_rnn_layer.default" {
			continue
		}
		weights := make([]*aten.Value, 4)
		known := true
		for j := range weights {
			weights[j] = in.Args.Tensor(1 + j)
			known = known && weights[j].T != nil
		}
		if !known {
			continue
		}
		kind := "lstm"
		if in.Args.I64(9) != 2 {
			kind = "gru"
		}
		if !in.Args.Bool(12) {
			kind += " without bias"
		}
		p := g.opts.Cache.get(kind, func() any { return aten.PackRecurrent(in.Args) }, weights...).(*cpu.Recurrent)
		args := &aten.Args{Op: recurrentOp, V: append(append([]any{}, in.Args.V...), packedRecurrent{p})}
		g.instrs[i] = &Instr{Op: recurrentOp, Args: args, Outs: in.Outs, zero: in.zero}
	}
}
