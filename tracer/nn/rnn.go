package nn

import (
	"fmt"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tracer"
)

// RNN is a recurrent layer, or several: an RNN, an LSTM or a GRU. Inputs are the sequence [time, batch, in] ([batch, time, in] with
// [BatchFirst], no batch at all with two dimensions) and the first states, zeros if they are left out: h [layers*directions, batch, hidden],
// for an LSTM c, too. Results are the last layer's states over time, then the last states of all layers.
type RNN struct {
	layer
	names      []string
	parameters []*tracer.Parameter

	op                        string
	hidden, projected, layers int64
	bias, batchFirst, both    bool
	dropout                   float64
	Training                  bool
}

// NewRNN makes a plain layer. Options: [Layers], [Nonlinearity], [NoBias], [BatchFirst], [DropoutP], [Bidirectional].
func NewRNN(g *aten.Generator, in, hidden int64, opts ...Option) *RNN {
	return newRNN(g, "RNN", 1, in, hidden, opts, "Nonlinearity")
}

// NewLSTM makes an LSTM. Options: [Layers], [NoBias], [BatchFirst], [DropoutP], [Bidirectional], [ProjSize].
func NewLSTM(g *aten.Generator, in, hidden int64, opts ...Option) *RNN {
	return newRNN(g, "LSTM", 4, in, hidden, opts, "ProjSize")
}

// NewGRU makes a GRU. Options: [Layers], [NoBias], [BatchFirst], [DropoutP], [Bidirectional].
func NewGRU(g *aten.Generator, in, hidden int64, opts ...Option) *RNN {
	return newRNN(g, "GRU", 3, in, hidden, opts)
}

func newRNN(g *aten.Generator, class string, gates, in, hidden int64, opts []Option, more ...string) *RNN {
	r := &RNN{layer: layer{class: "rnn." + class}, hidden: hidden}
	o := r.collect(options{layers: 1, nonlinearity: "tanh"}, opts, append(more, "Layers", "NoBias", "BatchFirst", "DropoutP", "Bidirectional")...)
	r.layers, r.bias, r.batchFirst, r.both, r.dropout, r.projected = o.layers, !o.noBias, o.batchFirst, o.bidirectional, o.dropout, o.projSize
	r.op = map[string]string{"RNN": "rnn_" + o.nonlinearity, "LSTM": "lstm", "GRU": "gru"}[class] + ".input"
	switch {
	case o.nonlinearity != "tanh" && o.nonlinearity != "relu":
		r.refuse(fmt.Sprintf("Unknown nonlinearity '%s'. Select from 'tanh' or 'relu'.", o.nonlinearity))
	case hidden <= 0:
		r.refuse("hidden_size must be greater than zero")
	case o.layers <= 0:
		r.refuse("num_layers must be greater than zero")
	case o.projSize < 0 || o.projSize >= hidden:
		r.refuse("proj_size has to be smaller than hidden_size")
	case !(o.dropout >= 0 && o.dropout <= 1):
		r.refuse("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
	}
	if r.err != nil {
		return r
	}
	state, directions := hidden, int64(1)
	if r.projected > 0 {
		state = r.projected
	}
	if r.both {
		directions = 2
	}
	add := func(name string, sizes ...int64) {
		r.names, r.parameters = append(r.names, name), append(r.parameters, uniform(g, invSqrt(hidden), sizes...))
	}
	for l := range r.layers {
		width := in
		if l > 0 {
			width = state * directions
		}
		for d := range directions {
			end := fmt.Sprintf("_l%d%s", l, []string{"", "_reverse"}[d])
			add("weight_ih"+end, gates*hidden, width)
			add("weight_hh"+end, gates*hidden, state)
			if r.bias {
				add("bias_ih"+end, gates*hidden)
				add("bias_hh"+end, gates*hidden)
			}
			if r.projected > 0 {
				add("weight_hr"+end, r.projected, hidden)
			}
		}
	}
	return r
}

// Parameters implements [tracer.Holder]: their number depends on the layers.
func (r *RNN) Parameters() ([]string, []*tracer.Parameter) { return r.names, r.parameters }

func (r *RNN) train(on bool) { r.Training = on }

// Forward implements [tracer.Module].
func (r *RNN) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	r.check()
	h, states := x[0], append([]*tracer.Tensor(nil), x[1:]...)
	batchAt := 1
	if r.batchFirst {
		batchAt = 0
	}
	single := h.Dim() == 2
	if single {
		h = h.Op("unsqueeze", batchAt)
		for i, s := range states {
			states[i] = s.Op("unsqueeze", 1)
		}
	}
	lstm := r.op == "lstm.input"
	if len(states) == 0 {
		n := r.layers
		if r.both {
			n *= 2
		}
		zeros := func(width int64) *tracer.Tensor {
			return h.On("zeros", []any{n, h.Size(batchAt), width}, aten.Kw("dtype", h.DType()), aten.Kw("device", "cpu"))
		}
		if r.projected > 0 {
			states = append(states, zeros(r.projected))
		} else {
			states = append(states, zeros(r.hidden))
		}
		if lstm {
			states = append(states, zeros(r.hidden))
		}
	}
	weights := make(tracer.Operands, len(r.parameters))
	for i, p := range r.parameters {
		weights[i] = p
	}
	var first any = states[0]
	if lstm {
		first = states
	}
	out := h.Ops(r.op, first, weights, r.bias, r.layers, r.dropout, r.Training, r.both, r.batchFirst)
	if single {
		out[0] = out[0].Op("squeeze.dim", batchAt)
		for i := 1; i < len(out); i++ {
			out[i] = out[i].Op("squeeze.dim", 1)
		}
	}
	return out
}

// RNNCell is one step of a recurrent layer: inputs are x [batch, in] and the states, zeros if they are left out; results the new states.
type RNNCell struct {
	layer
	WeightIH *tracer.Parameter `pt2:"weight_ih"`
	WeightHH *tracer.Parameter `pt2:"weight_hh"`
	BiasIH   *tracer.Parameter `pt2:"bias_ih"`
	BiasHH   *tracer.Parameter `pt2:"bias_hh"`

	op     string
	hidden int64
}

// NewRNNCell makes a plain cell. Options: [NoBias], [Nonlinearity].
func NewRNNCell(g *aten.Generator, in, hidden int64, opts ...Option) *RNNCell {
	return newCell(g, "RNNCell", 1, in, hidden, opts, "Nonlinearity")
}

// NewLSTMCell makes the cell of an LSTM. Options: [NoBias].
func NewLSTMCell(g *aten.Generator, in, hidden int64, opts ...Option) *RNNCell {
	return newCell(g, "LSTMCell", 4, in, hidden, opts)
}

// NewGRUCell makes the cell of a GRU. Options: [NoBias].
func NewGRUCell(g *aten.Generator, in, hidden int64, opts ...Option) *RNNCell {
	return newCell(g, "GRUCell", 3, in, hidden, opts)
}

func newCell(g *aten.Generator, class string, gates, in, hidden int64, opts []Option, more ...string) *RNNCell {
	c := &RNNCell{layer: layer{class: "rnn." + class}, hidden: hidden}
	o := c.collect(options{nonlinearity: "tanh"}, opts, append(more, "NoBias")...)
	c.op = map[string]string{"RNNCell": "rnn_" + o.nonlinearity + "_cell", "LSTMCell": "lstm_cell", "GRUCell": "gru_cell"}[class]
	if o.nonlinearity != "tanh" && o.nonlinearity != "relu" {
		c.refuse("Unknown nonlinearity: " + o.nonlinearity)
	}
	draw := func(sizes ...int64) *tracer.Parameter { return uniform(g, invSqrt(hidden), sizes...) }
	c.WeightIH, c.WeightHH = draw(gates*hidden, in), draw(gates*hidden, hidden)
	if !o.noBias {
		c.BiasIH, c.BiasHH = draw(gates*hidden), draw(gates*hidden)
	}
	return c
}

// Forward implements [tracer.Module].
func (c *RNNCell) Forward(x ...*tracer.Tensor) []*tracer.Tensor {
	c.check()
	h, states := x[0], append([]*tracer.Tensor(nil), x[1:]...)
	single := h.Dim() == 1
	if single {
		h = h.Op("unsqueeze", 0)
		for i, s := range states {
			states[i] = s.Op("unsqueeze", 0)
		}
	}
	lstm := c.op == "lstm_cell"
	for len(states) == 0 || lstm && len(states) == 1 {
		states = append(states, h.On("zeros", []any{h.Size(0), c.hidden}, aten.Kw("dtype", h.DType()), aten.Kw("device", "cpu")))
	}
	var first any = states[0]
	if lstm {
		first = states
	}
	out := h.Ops(c.op, first, c.WeightIH, c.WeightHH, c.BiasIH, c.BiasHH)
	if single {
		for i := range out {
			out[i] = out[i].Op("squeeze.dim", 0)
		}
	}
	return out
}
