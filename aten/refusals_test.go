package aten

import (
	"strings"
	"testing"

	"github.com/pt2go/pt2/tensor"
)

// Parameters that do not fit are refused before a kernel sees them. Messages from PyTorch 2.15, but for the two that oneDNN words.
func TestParametersThatDoNotFit(t *testing.T) {
	o := func(sizes ...int64) *Value { return FromTensor(tensor.New(tensor.Float32, sizes...)) }
	short := FromTensor(tensor.New(tensor.Int16, 5, 4))
	x := o(2, 3, 4, 4)
	conv := func(x, w, bias *Value, transposed bool, outPad, groups int) []any {
		var b any
		if bias != nil {
			b = bias
		}
		return []any{x, w, b, []int{1, 1}, []int{0, 0}, []int{1, 1}, transposed, []int{outPad, outPad}, groups}
	}
	for _, c := range []struct {
		op   string
		args []any
		want string
	}{
		{"layer_norm", []any{o(2, 4), []int{4}, o(0)}, "Expected weight to be of same shape as normalized_shape, but got weight of shape [0] and normalized_shape = [4]"},
		{"native_layer_norm", []any{o(2, 4), []int{4}, o(4), o(5), 1e-5}, "Expected bias to be of same shape as normalized_shape, but got bias of shape [5] and normalized_shape = [4]"},
		{"rms_norm", []any{o(2, 4), []int{4}, o(5)}, "Expected weight to be of same shape as normalized_shape, but got weight of shape [5] and normalized_shape = [4]"},
		{"group_norm", []any{o(2, 4), 2, o(5)}, "Expected weight to be a vector of size equal to the number of channels in input, but got weight of shape [5] and input of shape [2, 4]"},
		{"native_group_norm", []any{x, nil, nil, 2, 3, 15, 1, 1e-5}, "Expected X.numel() == N * C * HxW to be true, but got false."},
		{"native_group_norm", []any{x, nil, nil, 2, 3, 16, 2, 1e-5}, "Expected number of channels in input to be divisible by num_groups, but got input of shape [2, 3, 4, 4] and num_groups=2"},
		{"batch_norm", []any{x, o(4), nil, o(3), o(3), false, 0.1, 1e-5, false}, "weight should contain 3 elements not 4"},
		{"batch_norm", []any{x, nil, nil, o(3), o(1), true, 0.1, 1e-5, false}, "running_var should contain 3 elements not 1"},
		{"linear", []any{o(2, 4), short, o(5)}, "must have the same dtype, but got"},
		{"linear", []any{o(2, 4), o(5, 4), FromTensor(tensor.New(tensor.Float64, 5))}, "self and mat2 must have the same dtype, but got Double and Float"},
		{"linear", []any{o(2, 4), o(5, 4), o(4)}, "must match the"},
		{"convolution", conv(x, o(5, 3, 2, 2), o(4), false, 0, 1), "Given weight of size [5, 3, 2, 2], expected bias to be 1-dimensional with 5 elements, but got bias of size [4] instead"},
		{"convolution", conv(x, o(0, 3, 2, 2), nil, false, 0, 1), "Given groups=1, expected weight to be at least 1 at dimension 0, but got weight of size [0, 3, 2, 2] instead"},
		{"convolution", conv(x, o(3, 2, 2, 2), nil, true, 0, 2), "Given groups=2, expected weight to be divisible by 2 at dimension 0"},
		{"convolution", conv(x, o(3, 2, 2, 2), nil, true, -1, 1), "negative output_padding is not supported"},
		{"convolution", conv(x, o(5, 3, 0, 2), nil, false, 0, 1), "could not create a primitive descriptor"},
		{"convolution", conv(x, o(3, 2, 0, 2), nil, true, 0, 1), "could not create a primitive descriptor"},
		{"upsample_bilinear2d.vec", []any{x, nil, false, []float64{2}}, "Expected static_cast<int64_t>(scale_factors->size()) == spatial_dimensions to be true, but got false."},
		{"upsample_nearest2d.vec", []any{x, nil, nil}, "Must specify exactly one of output_size and scale_factors"},
		{"convolution", []any{x, o(3, 3, 2, 2), nil, []int{1, 1}, []int{1 << 60, 0}, []int{1, 1}, false, []int{0, 0}, 1}, "have to fit 32 bits"},
		{"special_legendre_polynomial_p.n_scalar", []any{FromTensor(tensor.New(tensor.Float32, 1)), 1 << 60}, "is not supported"},
		{"_grouped_mm", []any{o(4, 8), o(2, 8, 4), nil}, "Have to provide offsets"},
		{"empty.memory_format", []any{[]int64{1 << 40, 1 << 30}}, "RuntimeError"},
		{"zeros", []any{[]int64{1 << 44}}, "RuntimeError"},
	} {
		_, err := Call(c.op, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "internal error") {
			t.Errorf("%s: %v, want %q", c.op, err, c.want)
		}
	}
}

// An expanded dimension may have any size, but its views cannot all be made.
func TestTooManyViews(t *testing.T) {
	many, err := Call("expand", FromTensor(tensor.New(tensor.Float32, 1)), []int64{1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	for op, args := range map[string][]any{"unbind.int": {many[0]}, "split.Tensor": {many[0], 1}, "chunk": {many[0], 1 << 40}, "tensor_split.sections": {many[0], 1 << 40}} {
		if _, err := Call(op, args...); err == nil || !strings.Contains(err.Error(), "too many") {
			t.Errorf("%s: %v", op, err)
		}
	}
}
