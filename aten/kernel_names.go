package aten

import (
	"strings"

	"github.com/pt2go/pt2/tensor"
)

// kernelNames holds the names that PyTorch's refusals of a dtype give to kernels, where it is not the operator's own.
var kernelNames = func() map[string]string {
	m := map[string]string{"gelu": "GeluKernelImpl", "gelu_backward": "GeluBackwardKernelImpl", "celu": "elu_cpu", "softshrink": "softshrink_check", "selu": "elu_cpu",
		"mse_loss": "mse_cpu", "_softmax": "softmax_lastdim_kernel_impl",
		"_log_softmax": "log_softmax_lastdim_kernel_impl", "floor_divide": "div_floor_cpu", "bitwise_left_shift": "lshift_cpu", "bitwise_right_shift": "rshift_cpu"}
	for _, n := range strings.Fields("ceil floor round trunc") {
		m[n] = n + "_vml_cpu"
	}
	for _, n := range strings.Fields(`abs elu fmod frac gcd hardshrink hardsigmoid hardswish hypot lcm leaky_relu log_sigmoid logaddexp
		logaddexp2 mish nextafter remainder silu softplus heaviside copysign atan2`) {
		m[n] = n + "_cpu"
	}
	return m
}()

// failDType refuses a dtype that the operator's kernel has no form for.
func failDType(op *Op, dt tensor.DType) {
	name := op.schema.Base
	if n, ok := kernelNames[name]; ok {
		name = n
	}
	FailAs("NotImplementedError", "\"%s\" not implemented for '%s'", name, dt.CPPName())
}
