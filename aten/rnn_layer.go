package aten

import (
	"github.com/pt2go/pt2/kernels/cpu"
	"github.com/pt2go/pt2/symbolic"
	"github.com/pt2go/pt2/tensor"
)

// The modes of mkldnn_rnn_layer that have a kernel.
const (
	modePlain = 0
	modeLSTM  = 2
	modeGRU   = 3
)

// fusedLayer reports that a layer over x [T, B, In] runs by mkldnn_rnn_layer.
func fusedLayer(x *Value, w rnnWeights, mode int) bool {
	if mode == modePlain || w.hr != nil || x.DType != tensor.Float32 || x.Dim() != 3 {
		return false
	}
	one := symbolic.N(1)
	return w.ih.DType == x.DType && w.hh.DType == x.DType && x.Sizes[0].Ge(one) && x.Sizes[1].Ge(one) && x.Sizes[2].Ge(one) && w.hh.Sizes[1].Ge(one)
}

// recurrentLayer calls mkldnn_rnn_layer. h are the states [B, Hidden].
func recurrentLayer(b *Build, x *Value, w rnnWeights, h []*Value, mode int, reverse bool) (out *Value, last []*Value) {
	if !w.ih.Sizes[1].Eq(x.Sizes[2]) {
		Fail("input.size(-1) must be equal to input_size. Expected %v, got %v", w.ih.Sizes[1], x.Sizes[2])
	}
	for _, s := range h {
		if want := []symbolic.Int{x.Sizes[1], w.hh.Sizes[1]}; !SameSizes(s.Sizes, want) {
			Fail("Expected hidden size %v, got %v", want, s.Sizes)
		}
	}
	bih, bhh := w.bih, w.bhh
	if bih == nil {
		bih = b.Call("zeros", []symbolic.Int{w.ih.Sizes[0]}, Kw("dtype", x.DType))
		bhh = bih
	}
	hx := b.Call("unsqueeze", h[0], 0)
	cx := hx
	if mode == modeLSTM {
		cx = b.Call("unsqueeze", h[1], 0)
	}
	r := b.CallN("mkldnn_rnn_layer", x, w.ih, w.hh, bih, bhh, hx, cx, reverse, []int64{}, mode, w.hh.Sizes[1].Int64(), 1, w.bih != nil, false, false, false)
	for i := range h {
		last = append(last, b.Call("squeeze.dim", r[1+i], 0))
	}
	return r[0], last
}

func shapeRecurrentLayer(a *Args) []Meta {
	x, wih, whh, h := a.Tensor(0), a.Tensor(1), a.Tensor(2), a.Tensor(5)
	mode, hidden, gates := a.I64(9), symbolic.N(a.I64(10)), symbolic.N(4)
	if mode == modeGRU {
		gates = symbolic.N(3)
	}
	Check(mode == modeLSTM || mode == modeGRU, "mkldnn_rnn_layer: mode %d is not supported", mode)
	Check(a.I64(11) == 1 && !a.Bool(13) && len(a.I64s(8)) == 0, "mkldnn_rnn_layer: one layer and direction of a padded batch at a time")
	for i := range 7 {
		Check(a.Tensor(i).DType == tensor.Float32, "mkldnn_rnn_layer: expected scalar type Float but found %s", a.Tensor(i).DType.CPPName())
	}
	Check(x.Dim() == 3, "input must have 3 dimensions, got %d", x.Dim())
	batch := x.Sizes[1]
	if a.Bool(14) {
		batch = x.Sizes[0]
	}
	rows := gates.Mul(hidden)
	Check(SameSizes(wih.Sizes, []symbolic.Int{rows, x.Sizes[2]}) && SameSizes(whh.Sizes, []symbolic.Int{rows, hidden}), "mkldnn_rnn_layer: weights of sizes %v and %v do not fit an input of sizes %v and a hidden size of %v", wih.Sizes, whh.Sizes, x.Sizes, hidden)
	if a.Bool(12) {
		Check(a.Tensor(3).Numel().Eq(rows) && a.Tensor(4).Numel().Eq(rows), "mkldnn_rnn_layer: biases of sizes %v and %v do not fit", a.Tensor(3).Sizes, a.Tensor(4).Sizes)
	}
	state := batch.Mul(hidden)
	Check(h.Numel().Eq(state) && (mode == modeGRU || a.Tensor(6).Numel().Eq(state)), "mkldnn_rnn_layer: states of sizes %v and %v do not fit", h.Sizes, a.Tensor(6).Sizes)
	out := Contig(x.DType, x.Sizes[0], x.Sizes[1], hidden)
	last := Contig(x.DType, h.Sizes...)
	cell := Contig(x.DType, a.Tensor(6).Sizes...)
	if mode == modeGRU {
		cell = Contig(x.DType, symbolic.N(0))
	}
	return []Meta{out, last, cell, Contig(tensor.Uint8, symbolic.N(0))}
}

// PackRecurrent packs the weights of a call of mkldnn_rnn_layer, which must have their elements. A plan does this once.
func PackRecurrent(a *Args) *cpu.Recurrent {
	weights := func(i int) []float32 {
		return tensor.Contiguous[float32]((&Kernel{}).contiguous(a.Tensor(i).T))
	}
	pack, in, hidden := cpu.PackLSTM, int(a.Tensor(1).T.Sizes()[1]), int(a.I64(10))
	if a.I64(9) == modeGRU {
		pack = cpu.PackGRU
	}
	if !a.Bool(12) {
		return pack(in, hidden, weights(1), weights(2), nil, nil)
	}
	return pack(in, hidden, weights(1), weights(2), weights(3), weights(4))
}

// RunRecurrent is the kernel of mkldnn_rnn_layer with packed weights.
func RunRecurrent(k *Kernel, r *cpu.Recurrent) {
	x, out := k.T(0), k.Out[0]
	if x.Strides()[2] != 1 {
		x = k.contiguous(x)
	}
	state := func(i int) []float32 { return tensor.Contiguous[float32](k.contiguous(k.T(i))) }
	s := cpu.Sequence{Steps: int(x.Sizes()[0]), Batch: int(x.Sizes()[1]), X: tensor.Data[float32](x), XStep: int(x.Strides()[0]), XRow: int(x.Strides()[1]),
		Out: tensor.Data[float32](out), OutStep: int(out.Strides()[0]), OutRow: int(out.Strides()[1]), Reverse: k.Bool(7), H: state(5), HN: tensor.Contiguous[float32](k.Out[1])}
	if k.Bool(14) {
		s.Steps, s.Batch, s.XStep, s.XRow, s.OutStep, s.OutRow = s.Batch, s.Steps, s.XRow, s.XStep, s.OutRow, s.OutStep
	}
	if k.I64(9) == modeLSTM {
		s.C, s.CN = state(6), tensor.Contiguous[float32](k.Out[2])
	}
	r.Forward(k.Pool, &s)
}
