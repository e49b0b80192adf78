"""Writes elementwise.jsonl: calls of element-by-element operators and losses, as PyTorch answers them.

Run: python elementwise.py > elementwise.jsonl
"""
import contextlib
import io

import torch

with contextlib.redirect_stdout(io.StringIO()):
    import tensor_ops
    from tensor_ops import case

exact = tensor_ops.num
tensor_ops.num = lambda v: float(f"{v:.9g}") if isinstance(v, float) and abs(v) < 1e300 else exact(v)

nan, inf = float("nan"), float("inf")
F, H, B, D = torch.float32, torch.float16, torch.bfloat16, torch.float64
I, U, Z = torch.int64, torch.uint8, torch.bool
EDGE = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -0.7, 3.0, 20.0, -100.0, 1e-6]


def t(*v, d=F):
    return torch.tensor(v, dtype=d)


def edge(d=F):
    return torch.tensor(EDGE, dtype=d)


UNARY = """abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac
i0 lgamma log log10 log1p log2 neg positive rad2deg reciprocal relu relu6 round rsqrt selu sgn sigmoid sign signbit silu
sin sinc sinh sqrt square tan tanh trunc hardsigmoid hardswish log_sigmoid mish isnan isinf isposinf isneginf isfinite
logical_not nan_to_num logit elu celu leaky_relu hardtanh softplus softshrink hardshrink gelu bitwise_not isreal angle
special_i0e special_i1 special_i1e special_entr special_erfcx special_ndtr special_ndtri special_log_ndtr
special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_modified_bessel_i0
special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0
special_scaled_modified_bessel_k1 special_spherical_bessel_j0 frexp.Tensor"""
for n in UNARY.split():
    case(n, edge())
    for d in (H, B, I, U, Z):
        x = t(0, 1, 2, 5, d=d) if d in (I, U, Z) else t(0.25, -1.75, 3.5, d=d)
        if n != "special_i0e" or d not in (H, B):  # one unit off the rounded value in PyTorch
            case(n, x)

BINARY = """add.Tensor sub.Tensor rsub.Tensor mul.Tensor div.Tensor floor_divide remainder.Tensor fmod.Tensor
pow.Tensor_Tensor maximum minimum fmax fmin atan2 hypot copysign.Tensor nextafter ldexp.Tensor heaviside logaddexp
logaddexp2 xlogy.Tensor eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor logical_and logical_or logical_xor
special_xlog1py special_zeta igamma igammac gcd lcm bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor
bitwise_left_shift.Tensor bitwise_right_shift.Tensor float_power.Tensor_Tensor isclose special_hermite_polynomial_h
special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p
special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
special_chebyshev_polynomial_w special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u
special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w"""
P = t(nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.0)
for n in BINARY.split():
    poly = "polynomial" in n
    case(n, P[3:, None] if poly else P[:, None], t(-1, 0, 1, 2, 5, 9) if poly else P)
    case(n, t(7, -7, 3, -128)[:, None].to(I), t(2, -2, 3, 4 if poly else 70).to(I))
    case(n, t(200, 100, 3).to(U), t(100, 7, 250).to(U))
    case(n, t(1, 0, 1, 0).to(Z), t(1, 1, 0, 0).to(Z))
    case(n, t(0.7, 1.3, d=H), t(1.9, 2.1, d=H))
    case(n, t(1.7, 1.3, d=B), torch.tensor(2.03))
    case(n, t(1, 2).to(I), t(0.5, 0.25))

# Promotion and wrapped numbers.
for n in ("add.Scalar", "mul.Scalar", "div.Scalar", "sub.Scalar", "rsub.Scalar", "remainder.Scalar", "fmod.Scalar", "pow.Tensor_Scalar",
          "floor_divide.Scalar", "eq.Scalar", "lt.Scalar", "copysign.Scalar", "xlogy.Scalar_Other", "float_power.Tensor_Scalar"):
    for d in (H, B, F, D, I, U, Z):
        for s in (2, 0.3, -3):
            case(n, t(0, 1, 3, 7).to(d), s)
for e in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.5):
    case("pow.Tensor_Scalar", edge(), e)
for m in (None, "trunc", "floor"):
    for d in (F, B, I, U, H):
        case("div.Tensor_mode", t(7, -7, 5, 0).to(d), t(2, 2, -3, 5).to(d), rounding_mode=m)
    case("div.Tensor_mode", edge()[:, None], P, rounding_mode=m)
case("add.Tensor", t(1, 2).to(I), t(3, 4).to(I), alpha=2)
case("add.Tensor", t(1, 2).to(I), t(3, 4).to(I), alpha=0.5)
case("add.Tensor", t(1, 2), t(3, 4), alpha=-0.5)
case("add.Tensor", torch.ones(2, 3), torch.ones(2))
case("add.Tensor", torch.ones(2, 3).t(), torch.ones(3, 2))
case("mul.Tensor", torch.ones(2, 3, 4).permute(2, 0, 1), torch.ones(4, 1, 3))
case("mul.Tensor", torch.zeros(0, 3), torch.ones(3))
case("sub.Tensor", t(1, 0).to(Z), t(1, 1).to(Z))
case("neg", t(1, 0).to(Z))
case("addcmul", t(1, 2), t(3, 4), t(5, 6), value=0.5)
case("addcmul", t(1, 2).to(I), t(3, 4).to(I), t(5, 6).to(I), value=2)
case("addcdiv", t(1, 2), t(3, 4), t(5, 6), value=0.5)
case("addcdiv", t(1, 2).to(I), t(3, 4).to(I), t(5, 6).to(I))
case("lerp.Scalar", t(1, 2, 3), t(3, 6, 9), 0.25)
case("lerp.Tensor", t(1, 2, 3), t(3, 6, 9), t(0.2, 0.5, 0.9))
case("clamp", edge(), -0.5, 2)
case("clamp", edge(), 2, -0.5)
case("clamp", edge(), None, None)
case("clamp", t(-5, 0, 5).to(I), -1.5, 2)
case("clamp.Tensor", edge(), t(0.0), None)
case("clamp_min", t(-5, 5).to(U), 3)
case("where.self", t(1, 0).to(Z), t(1, 2).to(I), t(0.5, 1.5))
case("where.ScalarOther", t(1, 0).to(Z), t(1, 2).to(H), 0.1)
case("where.self", t(1, 0), t(1, 2), t(0.5, 1.5))
case("round.decimals", t(1.2345, -2.5, 1234.5), decimals=2)
case("round.decimals", t(1.2345, -25, 1250), decimals=-1)
case("nan_to_num", edge(H), 1.0, 2.0, -3.0)
case("logit", t(0.0, 0.2, 0.9, 1.0, 1.5), 0.1)
case("gelu", edge(), approximate="tanh")
case("gelu", edge(), approximate="x")
case("elu", edge(), 0.7, 1.3, 2.0)
case("celu", edge(), 1.4)
case("softplus", edge(), 2.0, 5.0)
case("threshold", edge(), 0.4, -7)
case("prelu", torch.arange(-6.0, 6).view(2, 3, 2), t(0.1, 0.2, 0.3))
case("glu", torch.arange(-6.0, 6).view(3, 4), 1)
case("glu", torch.arange(3.0), 0)
case("polygamma", 0, t(1, 2.5, -0.5, 0.3))
case("polygamma", 1, t(1, 2.5, -0.5, 0.3))
case("polygamma", 3, t(1, 2.5, 0.3))
case("polygamma", -1, t(1, 2.5, 0.3))
case("mvlgamma", t(1.5, 2, 7), 3)
case("mvlgamma", t(1.5, 2, 7), 0)
for a in (0.1, 1.0, 5.0, 30.0, 250.0, 2e5):
    case("igamma", torch.tensor(a, dtype=D), a * t(0.01, 0.5, 0.99, 1, 1.01, 2, 10, d=D))
    case("igammac", torch.tensor(a, dtype=D), a * t(0.01, 0.5, 0.99, 1, 1.01, 2, 10, d=D))
for n in ("softmax.int", "log_softmax.int"):
    case(n, t(1, 2, 3), 0)
    case(n, t(1, -inf, 3), 0)
    case(n, t(-inf, -inf), 0)
    case(n, torch.arange(24.0).view(2, 3, 4).transpose(1, 2), 1)
    case(n, t(1, 2, 3, d=H), 0, D)
    case(n, t(1, 2, 3).to(I), 0)
    case(n, torch.tensor(2.0), 0)
    case(n, torch.zeros(0, 3), 1)
    case(n, t(1, 2), 1)
case("_safe_softmax", t(-inf, -inf), 0)

# Losses.
x, y = torch.tensor([[0.2, 0.7, 0.1], [0.5, 0.4, 0.9]]), torch.tensor([[0.1, 0.9, 0.0], [0.3, 0.8, 1.0]])
g = torch.tensor(2.0)
for r in (0, 1, 2):
    for n in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "kl_div", "hinge_embedding_loss"):
        case(n, x, y, *([0.6, r] if n == "hinge_embedding_loss" else [r]))
        case(n, x.t(), y.t(), *([1.0, r] if n == "hinge_embedding_loss" else [r]))
    case("binary_cross_entropy", x, y, t(1, 2, 3), r)
    case("binary_cross_entropy_with_logits", x, y, t(1, 2, 3), t(3, 2, 1), r)
    case("poisson_nll_loss", x, 3 * y, True, True, 1e-8, r)
    case("poisson_nll_loss", x, 3 * y, False, False, 1e-8, r)
    case("margin_ranking_loss", x, y, torch.ones(3), 0.1, r)
    case("cosine_embedding_loss", x, y, t(1, -1), 0.1, r)
    case("triplet_margin_loss", x, y, y - 0.4, 1.0, 2.0, 1e-6, True, r)
    for n, extra in (("mse_loss", []), ("smooth_l1_loss", [0.2]), ("huber_loss", [0.2]), ("soft_margin_loss", [])):
        case(n + "_backward", g if r else torch.ones(2, 3), x, y, r, *extra)
    case("binary_cross_entropy_backward", g if r else torch.ones(2, 3), x, y, None, r)
    tgt = torch.tensor([2, -100])
    for w in (None, t(1, 2, 3)):
        case("nll_loss_forward", x, tgt, w, r, -100)
        case("nll_loss_backward", g if r else torch.ones(2), x, tgt, w, r, -100, torch.tensor(3.0))
        case("cross_entropy_loss", x, tgt, w, r, -100, 0.0)
        case("cross_entropy_loss", x, tgt, w, r, -100, 0.3)
        case("cross_entropy_loss", x, y, w, r, -100, 0.3)
        case("nll_loss_nd", torch.arange(12.0).view(2, 3, 2), torch.tensor([[0, 1], [2, 0]]), w, r, 1)
        case("nll_loss2d_forward", torch.arange(12.0).view(2, 3, 2, 1), torch.tensor([[[0], [1]], [[2], [0]]]), w, r, 1)
        case("multi_margin_loss", x, torch.tensor([2, 0]), 1 + r % 2, 1, w, r)
        case("multi_margin_loss_backward", g if r else torch.ones(2), x, torch.tensor([2, 0]), 1 + r % 2, 1, w, r)
    ml = torch.tensor([[2, -1, 0], [0, 1, -1]])
    case("multilabel_margin_loss_forward", x, ml, r)
    case("multilabel_margin_loss_backward", g if r else torch.ones(2), x, ml, r, torch.tensor([[0.0, 0, 1], [1, 1, 0]]))
    lp = torch.log_softmax(torch.arange(24.0).view(4, 2, 3).sin(), 2)
    case("ctc_loss.IntList", lp, torch.tensor([[1, 2], [1, 1]]), [4, 3], [2, 2], 0, r, False)
    case("ctc_loss.Tensor", lp, torch.tensor([1, 1, 1]), torch.tensor([4, 1]), torch.tensor([1, 2]), 0, r, True)
case("_ctc_loss", lp, torch.tensor([[1, 2], [1, 1]]), [4, 4], [2, 2])
case("nll_loss_forward", x, torch.tensor([2, 3]), None, 1, -100)
case("nll_loss_forward", x, torch.tensor([2]), None, 1, -100)
case("nll_loss_nd", x, torch.tensor([2]), None, 1, -100)
case("cross_entropy_loss", x, tgt, None, 1, -100, 1.5)
case("mse_loss", t(1, 2).to(I), t(1, 2).to(I))
case("smooth_l1_loss", x, y, 1, -1.0)
case("huber_loss", x, y, 1, 0.0)
case("binary_cross_entropy", 2 * x, y)
case("binary_cross_entropy", x, 2 * y)
case("kl_div", x, y, 1, log_target=True)

# Gradients of activations.
for n in ("tanh", "sigmoid", "silu", "mish", "gelu", "hardsigmoid", "hardswish", "logit"):
    case(n + "_backward", torch.full((len(EDGE),), 1.5), edge())
case("gelu_backward", torch.full((len(EDGE),), 1.5), edge(), approximate="tanh")
one = torch.ones(len(EDGE))
case("hardtanh_backward", one, edge(), -1, 0.5)
case("hardshrink_backward", one, edge(), 0.5)
case("softshrink_backward", one, edge(), 0.5)
case("threshold_backward", one, edge(), 0.4)
case("leaky_relu_backward", one, edge(), 0.1, False)
case("softplus_backward", one, edge(), 2.0, 5.0)
case("elu_backward", one, 0.7, 1.3, 2.0, False, edge())
case("elu_backward", one, 0.7, 1.3, 2.0, True, edge())
case("glu_backward", torch.ones(3, 2), torch.arange(-6.0, 6).view(3, 4), 1)
case("log_sigmoid_backward", t(1, 2, 3), t(-1, 0, 2), torch.exp(-t(-1, 0, 2).abs()))
case("_prelu_kernel_backward", x, x - 0.45, t(0.1, 0.2, 0.3))
case("_softmax_backward_data", x, y, 1, F)
case("_log_softmax_backward_data", x, y, 1, F)

# Lists of tensors.
ts = [t(1, -2), torch.ones(2, 2)]
for n in ("abs", "exp", "neg", "sqrt", "max", "clone"):
    case("_foreach_" + n, ts)
for n in ("add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "clamp_max", "pow"):
    case(f"_foreach_{n}.List", ts, ts)
    case(f"_foreach_{n}.Scalar", ts, 3)
    case(f"_foreach_{n}.ScalarList", ts, [3, 0.5])
case("_foreach_add.List", ts, ts, alpha=2)
case("_foreach_add.List", ts, ts[:1])
case("_foreach_addcmul.Scalar", ts, ts, ts, 2)
case("_foreach_addcdiv.ScalarList", ts, ts, ts, [2, 0.5])
case("_foreach_addcdiv.Tensor", ts, ts, ts, t(2, 0.5))
case("_foreach_lerp.Scalar", ts, ts, 0.5)
case("_foreach_norm.Scalar", ts, 1)
case("_foreach_pow.ScalarAndTensor", 2, ts)
