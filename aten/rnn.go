package aten

// rnnOps are recurrent cells and whole recurrent layers. Weights of a layer and direction: w_ih, w_hh, then b_ih, b_hh if there
// are biases, then w_hr for a projection.
var rnnOps = []Op{
	{Schema: "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value {
		h, c := lstmStep(b, b.Call("linear", a.Tensor(0), a.Tensor(2), a.V[4]), a.Tensors(1)[0], a.Tensors(1)[1], a.Tensor(3), a.OptTensor(5), nil)
		return []*Value{h, c}
	}},
	{Schema: "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor", Decomp: func(b *Build, a *Args) []*Value {
		return One(gruStep(b, b.Call("linear", a.Tensor(0), a.Tensor(2), a.V[4]), a.Tensor(1), a.Tensor(3), a.OptTensor(5)))
	}},
	{Schema: "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor", Decomp: plainCell("tanh")},
	{Schema: "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor", Decomp: plainCell("relu")},
	{Schema: "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value {
		hx := a.Tensors(1)
		if len(hx) != 2 {
			Fail("lstm expects two hidden states")
		}
		return layers(b, a, hx, modeLSTM, func(b *Build, x []*Value, w rnnWeights, h []*Value) ([]*Value, []*Value) {
			out := make([]*Value, len(x))
			hc, cc := h[0], h[1]
			for i, xi := range x {
				hc, cc = lstmStep(b, xi, hc, cc, w.hh, w.bhh, w.hr)
				out[i] = hc
			}
			return out, []*Value{hc, cc}
		})
	}},
	{Schema: "gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)", Decomp: func(b *Build, a *Args) []*Value {
		return layers(b, a, []*Value{a.Tensor(1)}, modeGRU, single(func(b *Build, x, h *Value, w rnnWeights) *Value { return gruStep(b, x, h, w.hh, w.bhh) }))
	}},
	{
		Schema: "mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, bool bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)",
		Shape:  shapeRecurrentLayer,
		CPU:    func(k *Kernel) { RunRecurrent(k, PackRecurrent(k.Args)) },
		Note:   "one layer and direction, LSTM or GRU in float32; the workspace is empty",
	},
	{Schema: "rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)", Decomp: plainLayers("tanh")},
	{Schema: "rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)", Decomp: plainLayers("relu")},
}

type rnnWeights struct{ ih, hh, bih, bhh, hr *Value }

func plainCell(act string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value {
		x := b.Call("linear", a.Tensor(0), a.Tensor(2), a.V[4])
		return One(b.Call(act, b.Call("add.Tensor", x, b.Call("linear", a.Tensor(1), a.Tensor(3), a.V[5]))))
	}
}

func plainLayers(act string) func(b *Build, a *Args) []*Value {
	return func(b *Build, a *Args) []*Value {
		return layers(b, a, []*Value{a.Tensor(1)}, modePlain, single(func(b *Build, x, h *Value, w rnnWeights) *Value {
			return b.Call(act, b.Call("add.Tensor", x, linearOpt(b, h, w.hh, w.bhh)))
		}))
	}
}

func single(step func(b *Build, x, h *Value, w rnnWeights) *Value) cellRun {
	return func(b *Build, x []*Value, w rnnWeights, h []*Value) ([]*Value, []*Value) {
		out := make([]*Value, len(x))
		hc := h[0]
		for i, xi := range x {
			hc = step(b, xi, hc, w)
			out[i] = hc
		}
		return out, []*Value{hc}
	}
}

// cellRun goes over the time steps of one layer and direction; x are the inputs already multiplied by w_ih.
type cellRun func(b *Build, x []*Value, w rnnWeights, h []*Value) (out, last []*Value)

func linearOpt(b *Build, x, w, bias *Value) *Value {
	if bias == nil {
		return b.Call("linear", x, w)
	}
	return b.Call("linear", x, w, bias)
}

// lstmStep: gates i, f, g, o in that order of rows.
func lstmStep(b *Build, x, h, c, whh, bhh, whr *Value) (*Value, *Value) {
	g := b.CallN("chunk", b.Call("add.Tensor", x, linearOpt(b, h, whh, bhh)), 4, -1)
	i, f, n, o := b.Call("sigmoid", g[0]), b.Call("sigmoid", g[1]), b.Call("tanh", g[2]), b.Call("sigmoid", g[3])
	c = b.Call("add.Tensor", b.Call("mul.Tensor", f, c), b.Call("mul.Tensor", i, n))
	h = b.Call("mul.Tensor", o, b.Call("tanh", c))
	if whr != nil {
		h = b.Call("linear", h, whr)
	}
	return h, c
}

// gruStep: rows r, z, n; n = tanh(x_n + r*(W_hn h + b_hn)).
func gruStep(b *Build, x, h, whh, bhh *Value) *Value {
	gx, gh := b.CallN("chunk", x, 3, -1), b.CallN("chunk", linearOpt(b, h, whh, bhh), 3, -1)
	r, z := b.Call("sigmoid", b.Call("add.Tensor", gx[0], gh[0])), b.Call("sigmoid", b.Call("add.Tensor", gx[1], gh[1]))
	n := b.Call("tanh", b.Call("add.Tensor", gx[2], b.Call("mul.Tensor", r, gh[2])))
	return b.Call("add.Tensor", b.Call("mul.Tensor", b.Call("sub.Tensor", h, n), z), n)
}

// layers runs all layers and directions of an .input overload: arguments 2.. are the parameters, has_biases, num_layers,
// dropout, train, bidirectional, batch_first.
func layers(b *Build, a *Args, hx []*Value, mode int, run cellRun) []*Value {
	x, params := a.Tensor(0), a.Tensors(2)
	bias, n, bidir, batchFirst := a.Bool(3), int(a.I64(4)), a.Bool(7), a.Bool(8)
	if a.Bool(6) && a.Float(5) > 0 {
		Fail("dropout between recurrent layers draws random numbers, which is not supported")
	}
	dirs := pick(bidir, 2, 1)
	per := pick(bias, 4, 2)
	if len(params) == n*dirs*(per+1) {
		per++ // projections
	}
	if len(params) != n*dirs*per {
		Fail("got %d parameter tensors for %d layers", len(params), n)
	}
	unbatched := x.Dim() == 2
	if unbatched {
		x = b.Call("unsqueeze", x, 1)
		for i := range hx {
			hx[i] = b.Call("unsqueeze", hx[i], 1)
		}
	} else if batchFirst {
		x = b.Call("transpose.int", x, 0, 1)
	}
	last := make([][]*Value, len(hx))
	for l := range n {
		var outs []*Value
		for d := range dirs {
			p := params[(l*dirs+d)*per:]
			w := rnnWeights{ih: p[0], hh: p[1]}
			if bias {
				w.bih, w.bhh = p[2], p[3]
			}
			if per%2 == 1 {
				w.hr = p[per-1]
			}
			h := make([]*Value, len(hx))
			for i := range hx {
				h[i] = b.Call("select.int", hx[i], 0, l*dirs+d)
			}
			out, end := oneLayer(b, x, w, h, mode, d == 1, run)
			outs = append(outs, out)
			for i := range end {
				last[i] = append(last[i], end[i])
			}
		}
		x = outs[0]
		if dirs == 2 {
			x = b.Call("cat", outs, -1)
		}
	}
	switch {
	case unbatched:
		x = b.Call("squeeze.dim", x, 1)
	case batchFirst:
		x = b.Call("transpose.int", x, 0, 1)
	}
	res := []*Value{x}
	for i := range last {
		s := b.Call("stack", last[i], 0)
		if unbatched {
			s = b.Call("squeeze.dim", s, 1)
		}
		res = append(res, s)
	}
	return res
}

// oneLayer runs a layer in one direction: by an operator of its own where there is one, else step by step.
func oneLayer(b *Build, x *Value, w rnnWeights, h []*Value, mode int, reverse bool, run cellRun) (out *Value, last []*Value) {
	if b.computes() && fusedLayer(x, w, mode) {
		return recurrentLayer(b, x, w, h, mode, reverse)
	}
	steps := b.CallN("unbind.int", linearOpt(b, x, w.ih, w.bih), 0)
	if reverse {
		steps = flippedValues(steps)
	}
	outs, last := run(b, steps, w, h)
	if reverse {
		outs = flippedValues(outs)
	}
	return b.Call("stack", outs, 0), last
}

func flippedValues(v []*Value) []*Value {
	out := make([]*Value, len(v))
	for i := range v {
		out[len(v)-1-i] = v[i]
	}
	return out
}
