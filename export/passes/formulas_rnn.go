package passes

import (
	"slices"

	"github.com/pt2go/pt2/aten"
)

// rnnFormulas are whole recurrent layers, step by step. Parameters of a layer and direction: w_ih, w_hh, then b_ih, b_hh if there are
// biases, then w_hr for a projection.
var rnnFormulas = map[string]Decomp{
	"aten.lstm.input":     lstm,
	"aten.gru.input":      recurrent(gruStep),
	"aten.rnn_tanh.input": recurrent(plainStep("tanh")),
	"aten.rnn_relu.input": recurrent(plainStep("relu")),
}

// rnnStep goes from one state to the next; x is the input times w_ih.
type rnnStep func(b *aten.Build, x *aten.Value, state, w []*aten.Value) []*aten.Value

func lstm(b *aten.Build, a *aten.Args) []*aten.Value {
	hx := a.Tensors(1)
	if len(hx) != 2 {
		panic(&unrecordable{"an LSTM without two states"})
	}
	h, c := b.CallN("unbind.int", hx[0], 0), b.CallN("unbind.int", hx[1], 0)
	states := make([][]*aten.Value, len(h))
	for i := range h {
		states[i] = []*aten.Value{h[i], c[i]}
	}
	return rnnLayers(b, a, states, lstmStep)
}

// recurrent is a layer with one state.
func recurrent(step rnnStep) Decomp {
	return func(b *aten.Build, a *aten.Args) []*aten.Value {
		var states [][]*aten.Value
		for _, h := range b.CallN("unbind.int", a.Tensor(1), 0) {
			states = append(states, []*aten.Value{h})
		}
		return rnnLayers(b, a, states, step)
	}
}

// rnnLayers runs all layers and directions of an .input overload: input [T, N, E] or [N, T, E], states, params, has_biases, num_layers,
// dropout, train, bidirectional, batch_first.
func rnnLayers(b *aten.Build, a *aten.Args, states [][]*aten.Value, step rnnStep) []*aten.Value {
	x, params := a.Tensor(0), a.Tensors(2)
	if x.Dim() != 3 || a.Bool(6) && a.Float(5) > 0 || len(states) == 0 || len(params)%len(states) != 0 {
		panic(&unrecordable{"a recurrent layer of this kind"})
	}
	group, dirs := len(params)/len(states), 1
	if a.Bool(7) {
		dirs = 2
	}
	if a.Bool(8) {
		x = b.Call("transpose.int", x, 0, 1)
	}
	final := make([][]*aten.Value, len(states[0]))
	for l := range int(a.I64(4)) {
		var outs []*aten.Value
		for d := range dirs {
			i := l*dirs + d
			out, last := rnnLayer(b, x, states[i], params[i*group:(i+1)*group], a.Bool(3), d == 1, step)
			outs = append(outs, out)
			for k := range last {
				final[k] = append(final[k], last[k])
			}
		}
		if x = outs[0]; dirs == 2 {
			x = b.Call("cat", outs, outs[0].Dim()-1)
		}
	}
	if a.Bool(8) {
		x = b.Call("transpose.int", x, 0, 1)
	}
	results := []*aten.Value{x}
	for _, f := range final {
		results = append(results, b.Call("stack", f, 0))
	}
	return results
}

// rnnLayer runs one layer in one direction. Weights for the steps: w_hh, b_hh or nil, w_hr or nil.
func rnnLayer(b *aten.Build, x *aten.Value, state, params []*aten.Value, biases, reverse bool, step rnnStep) (out *aten.Value, last []*aten.Value) {
	var bih any
	w := []*aten.Value{params[1], nil, nil}
	if biases {
		bih, w[1] = params[2], params[3]
	}
	if len(params)%2 == 1 {
		w[2] = params[len(params)-1]
	}
	linear := func() *aten.Value {
		if x = b.Call("linear", x, params[0], bih); reverse {
			return b.Call("flip", x, []int64{0})
		}
		return x
	}
	now := make([]*aten.Value, len(state))
	if len(state) == 1 { // PyTorch multiplies before it looks at the state here, and after it for an LSTM
		x = linear()
	}
	for i, s := range state {
		now[i] = b.Call("unsqueeze", s, 0)
	}
	if len(state) > 1 {
		x = linear()
	}
	var steps []*aten.Value
	for _, xt := range b.CallN("unbind.int", x, 0) {
		now = step(b, xt, now, w)
		steps = append(steps, now[0])
	}
	if reverse {
		slices.Reverse(steps)
	}
	out = b.Call("cat", steps, 0)
	for _, s := range now {
		last = append(last, b.Call("squeeze.dim", s, 0))
	}
	return out, last
}

func lstmStep(b *aten.Build, x *aten.Value, s, w []*aten.Value) []*aten.Value {
	g := b.CallN("chunk", b.Call("add.Tensor", b.Call("linear", s[0], w[0], optional(w[1])), x), 4, 2)
	in, forget := b.Call("sigmoid", g[0]), b.Call("sigmoid", g[1])
	cell, out := b.Call("tanh", g[2]), b.Call("sigmoid", g[3])
	c := b.Call("mul.Tensor", forget, s[1])
	c = b.Call("add.Tensor", c, b.Call("mul.Tensor", in, cell))
	h := b.Call("mul.Tensor", out, b.Call("tanh", c))
	if w[2] != nil {
		h = b.Call("linear", h, w[2])
	}
	return []*aten.Value{h, c}
}

func gruStep(b *aten.Build, x *aten.Value, s, w []*aten.Value) []*aten.Value {
	gx := b.CallN("chunk", x, 3, 1)
	gh := b.CallN("chunk", b.Call("linear", s[0], w[0], optional(w[1])), 3, 2)
	reset := b.Call("sigmoid", b.Call("add.Tensor", gh[0], gx[0]))
	in := b.Call("sigmoid", b.Call("add.Tensor", gh[1], gx[1]))
	n := b.Call("tanh", b.Call("add.Tensor", gx[2], b.Call("mul.Tensor", gh[2], reset)))
	d := b.Call("mul.Tensor", b.Call("sub.Tensor", s[0], n), in)
	return []*aten.Value{b.Call("add.Tensor", d, n)}
}

func plainStep(act string) rnnStep {
	return func(b *aten.Build, x *aten.Value, s, w []*aten.Value) []*aten.Value {
		return []*aten.Value{b.Call(act, b.Call("add.Tensor", b.Call("linear", s[0], w[0], optional(w[1])), x))}
	}
}

// optional is an argument that may be absent.
func optional(v *aten.Value) any {
	if v == nil {
		return nil
	}
	return v
}
