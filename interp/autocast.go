package interp

import (
	"github.com/pt2go/pt2/aten"
	"github.com/pt2go/pt2/tensor"
)

// lowPrecision are the operators that PyTorch's CPU autocast runs in the low dtype; widest, those that it runs in float32;
// promoted, those that take their widest operand's dtype. (Lists of torch/amp documentation, "CPU Ops".)
var lowPrecision = set("conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution",
	"_convolution", "bmm", "mm", "linalg_vecdot", "baddbmm", "addmm", "addbmm", "linear", "matmul", "scaled_dot_product_attention",
	"_native_multi_head_attention", "mkldnn_rnn_layer", "addmv", "mv", "linalg_multi_dot", "lstm", "gru", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")

var widest = set("avg_pool3d", "binary_cross_entropy", "grid_sampler", "polar", "prod", "quantile", "nanquantile", "stft", "cdist", "trace",
	"view_as_complex", "cholesky", "cholesky_inverse", "cholesky_solve", "inverse", "lu_solve", "orgqr", "ormqr", "pinverse",
	"max_unpool2d", "max_unpool3d", "adaptive_avg_pool3d", "reflection_pad1d", "reflection_pad2d", "replication_pad1d",
	"replication_pad2d", "replication_pad3d", "mse_loss", "cosine_embedding_loss", "nll_loss", "nll_loss2d", "hinge_embedding_loss",
	"poisson_nll_loss", "smooth_l1_loss", "cross_entropy_loss", "l1_loss", "huber_loss", "margin_ranking_loss", "soft_margin_loss",
	"triplet_margin_loss", "multi_margin_loss", "ctc_loss", "kl_div", "multilabel_margin_loss", "binary_cross_entropy_with_logits",
	"fft_fft", "fft_ifft", "fft_fft2", "fft_ifft2", "fft_fftn", "fft_ifftn", "fft_rfft", "fft_irfft", "fft_rfft2", "fft_irfft2",
	"fft_rfftn", "fft_irfftn", "fft_hfft", "fft_ihfft", "linalg_cond", "linalg_matrix_rank", "linalg_solve", "linalg_cholesky",
	"linalg_svdvals", "linalg_eigvals", "linalg_eigvalsh", "linalg_inv", "linalg_householder_product", "linalg_tensorinv",
	"linalg_tensorsolve", "fake_quantize_per_tensor_affine", "geqrf", "_lu_with_info", "qr", "svd", "triangular_solve",
	"fractional_max_pool2d", "fractional_max_pool3d", "adaptive_max_pool3d", "multilabel_margin_loss_forward", "linalg_qr",
	"linalg_cholesky_ex", "linalg_svd", "linalg_eig", "linalg_eigh", "linalg_lstsq", "linalg_inv_ex", "istft", "bucketize")

var promoted = set("stack", "cat", "index_copy")

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// AutocastDType is the dtype in which a call within torch.autocast to dt computes: its floating-point arguments are converted to it. It is
// not ok if autocast leaves the call alone.
func AutocastDType(op *aten.Op, a *aten.Args, dt tensor.DType) (to tensor.DType, ok bool) {
	if op.Signature().Namespace != "aten" {
		return tensor.Invalid, false
	}
	switch base := op.Signature().Base; {
	case lowPrecision[base]:
		return dt, true
	case widest[base]:
		return tensor.Float32, true
	case promoted[base]:
		to = dt
		each(a, func(v *aten.Value) *aten.Value {
			if v.DType == tensor.Float32 {
				to = tensor.Float32
			}
			return v
		})
		return to, true
	}
	return tensor.Invalid, false
}

// castArgs does to an operator's floating-point arguments what autocast does.
func (r *runner) castArgs(op *aten.Op, a *aten.Args) error {
	to, ok := AutocastDType(op, a, r.autocast)
	if !ok {
		return nil
	}
	var fail error
	each(a, func(v *aten.Value) *aten.Value {
		if v.DType == to || !(v.DType == tensor.Float32 || v.DType.IsReduced()) || fail != nil {
			return v
		}
		w, err := r.do("aten._to_copy.default", v, aten.Kw("dtype", to))
		if err != nil {
			fail = err
			return v
		}
		return w
	})
	return fail
}

// each replaces every tensor among the arguments.
func each(a *aten.Args, f func(*aten.Value) *aten.Value) {
	for i, x := range a.V {
		switch v := x.(type) {
		case *aten.Value:
			if v != nil && !v.Wrapped {
				a.V[i] = f(v)
			}
		case []*aten.Value:
			w := make([]*aten.Value, len(v))
			for j := range v {
				if v[j] != nil {
					w[j] = f(v[j])
				}
			}
			a.V[i] = w
		}
	}
}

// do calls an operator with one tensor result.
func (r *runner) do(name string, args ...any) (*aten.Value, error) {
	op := r.build.Reg.Lookup(name)
	if op == nil {
		return nil, &MissingError{Ops: []Missing{{Target: name, Nodes: []string{"(needed by a higher-order operator)"}}}}
	}
	var pos []any
	var kw []aten.KwArg
	for _, x := range args {
		if k, ok := x.(aten.KwArg); ok {
			kw = append(kw, k)
		} else {
			pos = append(pos, x)
		}
	}
	a, err := op.Bind(pos, kw)
	if err != nil {
		return nil, err
	}
	out, err := r.build.Do(op, a)
	if err != nil {
		return nil, err
	}
	v, _ := out[0].(*aten.Value)
	return v, nil
}
