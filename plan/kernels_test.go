package plan

import (
	"testing"

	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tensor"
)

// int8s is a constant of signed bytes.
func (b *builder) int8s(sizes ...int64) *aten.Value {
	t := tensor.New(tensor.Int8, sizes...)
	d := tensor.Contiguous[int8](t)
	for i := range d {
		d[i] = int8(b.consts.IntN(256) - 128)
	}
	return aten.FromTensor(t)
}

// quantize and dequantize have scales that are powers of two, so that float32 holds all sums exactly and no rounding differs.
func (b *builder) quantize(x *aten.Value, scale float64, zero int, dt tensor.DType) *aten.Value {
	lo, hi := 0, 255
	if dt == tensor.Int8 {
		lo, hi = -128, 127
	}
	return b.Call("quantized_decomposed.quantize_per_tensor.default", x, scale, zero, lo, hi, dt)
}

func (b *builder) dequantize(x *aten.Value, scale float64, zero int) *aten.Value {
	lo, hi := 0, 255
	if x.DType == tensor.Int8 {
		lo, hi = -128, 127
	}
	return b.Call("quantized_decomposed.dequantize_per_tensor.default", x, scale, zero, lo, hi, x.DType)
}

// perChannel is a dequantized weight of random signed bytes.
func (b *builder) perChannel(zero int64, sizes ...int64) *aten.Value {
	n := sizes[0]
	s, z := tensor.New(tensor.Float32, n), tensor.New(tensor.Int64, n)
	for i := range n {
		tensor.Contiguous[float32](s)[i] = 1 / float32(int(256)<<b.consts.IntN(3))
		tensor.Contiguous[int64](z)[i] = zero
	}
	return b.Call("quantized_decomposed.dequantize_per_channel.default", b.int8s(sizes...), aten.FromTensor(s), aten.FromTensor(z), 0, -128, 127, tensor.Int8)
}

// eighths is a constant bias of multiples of 1/8.
func (b *builder) eighths(n int64) *aten.Value {
	v := b.weight(n)
	d := tensor.Data[float32](v.T)
	for i := range d {
		d[i] = float32(int(d[i]*8)) / 8
	}
	return v
}

func TestQuantized(t *testing.T) {
	runCases(t, []testCase{
		{name: "convolutions with a residual and a pooling", inputs: [][]int64{{1, 3, 13, 12}},
			run: func(b *builder, in []*aten.Value) []*aten.Value {
				x := b.dequantize(b.quantize(in[0], 1.0/32, 120, tensor.Uint8), 1.0/32, 120)
				y := b.Call("relu", b.conv(x, b.perChannel(0, 16, 3, 3, 3), b.eighths(16), 1, 1, 1))
				q := b.quantize(y, 1.0/4, 0, tensor.Uint8)
				p := b.Call("max_pool2d", b.dequantize(q, 1.0/4, 0), []int64{2, 2}, []int64{2, 2})
				q = b.quantize(p, 1.0/4, 0, tensor.Uint8)
				left := b.conv(b.dequantize(q, 1.0/4, 0), b.perChannel(0, 20, 16, 1, 1), nil, 1, 0, 1)
				right := b.dequantize(b.quantize(b.conv(b.dequantize(q, 1.0/4, 0), b.perChannel(0, 20, 16, 1, 1), nil, 1, 0, 1), 1.0/2, 3, tensor.Int8), 1.0/2, 3)
				z := b.quantize(b.Call("relu", b.Call("add.Tensor", left, right)), 1.0/2, 1, tensor.Uint8)
				return aten.One(b.dequantize(z, 1.0/2, 1))
			},
			want: []string{"int8 3x3 3->16 limits round", "quantized_max_pool", "int8 1x1 16->20 residual limits round"}, absent: []string{"plan.conv("}},
		{name: "signed numbers, clamps, float results", inputs: [][]int64{{2, 5, 6, 6}},
			run: func(b *builder, in []*aten.Value) []*aten.Value {
				x := b.dequantize(b.quantize(in[0], 1.0/16, -7, tensor.Int8), 1.0/16, -7)
				y := b.Call("hardtanh", b.conv(x, b.perChannel(0, 70, 5, 3, 3), nil, 2, 1, 1), 0.0, 6.0)
				x = b.dequantize(b.quantize(y, 1.0/16, -128, tensor.Int8), 1.0/16, -128)
				return aten.One(b.conv(x, b.perChannel(0, 9, 70, 1, 1), b.eighths(9), 1, 0, 1))
			},
			want: []string{"int8 3x3 5->70 /2x2 limits round", "int8 1x1 70->9"}},
		{name: "depthwise, with an activation", inputs: [][]int64{{1, 20, 7, 7}},
			run: func(b *builder, in []*aten.Value) []*aten.Value {
				x := b.dequantize(b.quantize(in[0], 1.0/32, 128, tensor.Uint8), 1.0/32, 128)
				y := b.Call("leaky_relu", b.conv(x, b.perChannel(0, 20, 1, 3, 3), b.eighths(20), 1, 1, 20), 0.25)
				return aten.One(b.dequantize(b.quantize(y, 1.0/8, 100, tensor.Uint8), 1.0/8, 100))
			},
			want: []string{"int8 3x3 20->20 leaky_relu round"}},
		{name: "linear layers", inputs: [][]int64{{3, 40}},
			run: func(b *builder, in []*aten.Value) []*aten.Value {
				x := b.dequantize(b.quantize(in[0], 1.0/32, 128, tensor.Uint8), 1.0/32, 128)
				w := b.dequantize(b.int8s(33, 40), 1.0/128, 0)
				y := b.Call("relu", b.Call("linear", x, w, b.eighths(33)))
				x = b.dequantize(b.quantize(y, 1.0/8, 0, tensor.Uint8), 1.0/8, 0)
				return aten.One(b.Call("linear", x, b.perChannel(0, 7, 33), b.eighths(7)))
			},
			want: []string{"int8 1x1 40->33 limits round", "int8 1x1 33->7"}, absent: []string{"plan.linear("}},
		{name: "linear layers by the range of the numbers", inputs: [][]int64{{17, 40}},
			run: func(b *builder, in []*aten.Value) []*aten.Value {
				const per = "quantized_decomposed.quantize_per_tensor.tensor"
				q := b.CallN("quantized_decomposed.choose_qparams.tensor", in[0], 0, 255, 1e-5, tensor.Uint8)
				x := b.Call(per, in[0], q[0], q[1], 0, 255, tensor.Uint8)
				x = b.Call("quantized_decomposed.dequantize_per_tensor.tensor", x, q[0], q[1], 0, 255, tensor.Uint8)
				s := b.CallN("quantized_decomposed.choose_qparams.tensor", in[0], -100, 127, 1e-5, tensor.Int8)
				y := b.Call(per, in[0], s[0], s[1], -100, 127, tensor.Int8)
				y = b.Call("quantized_decomposed.dequantize_per_tensor.tensor", y, s[0], s[1], -100, 127, tensor.Int8)
				return []*aten.Value{b.Call("linear", x, b.perChannel(0, 80, 40), b.eighths(80)), b.Call("linear", y, b.perChannel(0, 33, 40))}
			},
			want: []string{"int8 1x1 40->80", "int8 1x1 40->33"}, absent: []string{"plan.linear(", "dequantize"}},
		{name: "what has no integer kernel", inputs: [][]int64{{1, 6, 5, 5}},
			run: func(b *builder, in []*aten.Value) []*aten.Value {
				x := b.dequantize(b.quantize(in[0], 1.0/32, 128, tensor.Uint8), 1.0/32, 128)
				shifted := b.conv(x, b.perChannel(4, 6, 6, 3, 3), nil, 1, 1, 1) // weights with zero points
				grouped := b.conv(x, b.perChannel(0, 6, 2, 3, 3), nil, 1, 1, 3)
				return []*aten.Value{b.dequantize(b.quantize(shifted, 1.0/4, 9, tensor.Uint8), 1.0/4, 9), grouped}
			},
			absent: []string{"conv=int8"}},
	})
}

func TestRecurrent(t *testing.T) {
	layer := func(gates int64, bias bool) func(b *builder, in []*aten.Value) []*aten.Value {
		return func(b *builder, in []*aten.Value) []*aten.Value {
			const size, hidden = 6, 20
			var params []*aten.Value
			for l := range 2 {
				width := int64(size)
				if l > 0 {
					width = 2 * hidden
				}
				for range 2 {
					params = append(params, b.weight(gates*hidden, width), b.weight(gates*hidden, hidden))
					if bias {
						params = append(params, b.weight(gates*hidden), b.weight(gates*hidden))
					}
				}
			}
			state := func() *aten.Value { return b.weight(4, in[0].Sizes[0].Int64(), hidden) }
			if gates == 3 {
				return b.CallN("gru.input", in[0], state(), params, bias, 2, 0.0, false, true, true)
			}
			return b.CallN("lstm.input", in[0], []*aten.Value{state(), state()}, params, bias, 2, 0.0, false, true, true)
		}
	}
	runCases(t, []testCase{
		{name: "LSTM", inputs: [][]int64{{1, 5, 6}}, run: layer(4, true), want: []string{"plan.rnn_layer("}, tol: 1e-4},
		{name: "LSTM of a batch", inputs: [][]int64{{7, 5, 6}}, run: layer(4, false), want: []string{"plan.rnn_layer("}, tol: 1e-4},
		{name: "GRU", inputs: [][]int64{{2, 5, 6}}, run: layer(3, true), want: []string{"plan.rnn_layer("}, tol: 1e-4},
	})
}
