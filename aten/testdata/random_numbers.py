"""Writes random_numbers.jsonl: what PyTorch's CPU generator yields after a seed, call after call, one sequence of calls a line.

Each result is recorded at some places only ("at", in logical order); a call that drew too many or too few numbers shows in the
calls after it. "tol" is 0 for results that are equal bit for bit.

Run: python random_numbers.py > random_numbers.jsonl
"""
import json
import math

import torch

torch.set_num_threads(1)
F, H, B, D = torch.float32, torch.float16, torch.bfloat16, torch.float64
I, J, S, C, U, Z = torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool
SIZES = [1, 15, 16, 17, 100, 1000]


class Made:
    """An input that both sides make: zeros, the eighths 1/8 ... 7/8 in turn, or those negated, with the given strides."""

    def __init__(self, fill, sizes, dtype=F, strides=None):
        self.fill = fill
        n = 1 + sum((s - 1) * t for s, t in zip(sizes, strides)) if strides else math.prod(sizes)
        flat = torch.zeros(n, dtype=dtype)
        self.t = flat.as_strided(sizes, strides) if strides else flat.view(sizes)
        if fill != "zeros":
            self.t.copy_(((torch.arange(math.prod(sizes)) * 3) % 7 + 1).view(sizes) / (8 if fill == "eighths" else -8))

    def json(self):
        return {"t": str(self.t.dtype)[6:], "s": list(self.t.shape), "st": list(self.t.stride()), "fill": self.fill}


def zeros(*sizes, d=F, st=None):
    return Made("zeros", sizes, d, st)


def eighths(*sizes, d=F, st=None):
    return Made("eighths", sizes, d, st)


def minus(*sizes, d=F):
    return Made("minus eighths", sizes, d)


def enc(v):
    if isinstance(v, Made):
        return v.json()
    if isinstance(v, torch.dtype):
        return {"dtype": str(v)[6:]}
    return v


def num(v):
    if isinstance(v, float) and (math.isnan(v) or math.isinf(v)):
        return "NaN" if math.isnan(v) else "Inf" if v > 0 else "-Inf"
    return int(v) if isinstance(v, bool) else v


def result(t):
    n = t.numel()
    at = range(n) if n <= 17 else sorted({0, 1, 7, 8, n // 2, n - 18, *range(n - 9, n)})
    flat = t.reshape(-1)
    if t.is_complex():
        flat = torch.view_as_real(flat)
    return {"t": str(t.dtype)[6:], "s": list(t.shape), "st": list(t.stride()), "at": list(at),
            "d": [num(x) for i in at for x in (flat[i].tolist() if t.is_complex() else [flat[i].item()])]}


def call(op, *args, tol=0, **kw):
    base, _, overload = op.partition(".")
    f = getattr(getattr(torch.ops.aten, base), overload or "default")
    row = {"op": op, "args": [enc(a) for a in args], "kw": {k: enc(v) for k, v in kw.items()}}
    if tol:
        row["tol"] = tol
    out = f(*(a.t if isinstance(a, Made) else a for a in args), **kw)
    row["out"] = [result(o) for o in (out if isinstance(out, (list, tuple)) else [out])]
    return row


seed = 0


def sequence(*calls):
    """Each call is (op, args..., {keywords}); a last rand shows where the generator stands."""
    global seed
    seed += 1
    torch.manual_seed(seed)
    rows = []
    for op, *args in (*calls, ("rand", [2], {})):
        kw = args.pop() if args and isinstance(args[-1], dict) else {}
        rows.append(call(op, *args, **kw))
    print(json.dumps({"seed": seed, "calls": rows}, separators=(",", ":")))


TOL = {F: 1e-6, D: 1e-14, H: 1e-3, B: 8e-3, torch.complex64: 1e-6, torch.complex128: 1e-14}

# Whole numbers and uniform ones: all sizes in a row.
for d in (F, D, H, B):
    sequence(*(("rand", [n], {"dtype": d}) for n in SIZES))
    sequence(*(("uniform", zeros(n, d=d), -2.5, 3.25) for n in SIZES))
    sequence(*(("randint.low", -3, 11, [n], {"dtype": d}) for n in SIZES))
for d in (torch.complex64, torch.complex128):
    sequence(*(("rand", [n], {"dtype": d}) for n in SIZES[:5]))
    sequence(*(("randn", [n], {"dtype": d, "tol": TOL[d]}) for n in SIZES[:5]))
for d in (F, D, H, B, I, J, S, C, U, Z):
    sequence(*(("random", zeros(n, d=d)) for n in SIZES))
    sequence(*(("bernoulli.p", zeros(n, d=d), 0.3) for n in SIZES))
    sequence(*(("bernoulli_.float", zeros(n, d=d)) for n in SIZES))
    sequence(*(("bernoulli.Tensor", zeros(n, d=d), eighths(n)) for n in SIZES))
    sequence(*(("bernoulli.Tensor", zeros(n, d=d), eighths(n, d=D)) for n in SIZES))
for d in (I, J, S, C, U):
    sequence(*(("randint", 100, [n], {"dtype": d}) for n in SIZES))
for d in (I, F, D, J):
    sequence(*(("randperm", n, {"dtype": d}) for n in (0, *SIZES)))
sequence(("randint", 1 << 28, [20], {}), ("randint", (1 << 28) - 1, [20], {}), ("randint.low", -(1 << 40), 1 << 41, [20], {}),
         ("randint.low", -(1 << 63), (1 << 63) - 1, [20], {}), ("randint", 1 << 32, [20], {}), ("randint", (1 << 32) - 1, [5], {}))
sequence(("random.to", zeros(20, d=I), 50), ("random.from", zeros(20, d=I), -50, 1 << 33), ("random.from", zeros(20, d=I), 7, None),
         ("random.from", zeros(20, d=I), -(1 << 63), None), ("random.from", zeros(20, d=J), 7, None), ("random.from", zeros(20, d=U), 7, None),
         ("random.from", zeros(20, d=F), 7, None), ("random.from", zeros(20, d=D), 7, None), ("random.from", zeros(20, d=F), -10, 1000),
         ("random.to", zeros(20, d=U), 50), ("random.to", zeros(20, d=Z), 2),
         ("random.from", zeros(20, d=F), -(1 << 26) - 1, (1 << 26) + 1), ("random.from", zeros(20, d=H), -3000, 3001),
         ("random.from", zeros(20, d=B), -3001, 3003), ("random.from", zeros(20, d=D), -(1 << 60) - 1, (1 << 60) + 1),
         ("random.from", zeros(20, d=Z), 0, None), ("random.from", zeros(20, d=B), -500, None), ("random.from", zeros(20, d=C), -5, None))
sequence(("randint_like", zeros(3, 5), 9), ("randint_like.low_dtype", zeros(3, 5, st=(1, 3)), 2, 9), ("rand_like", zeros(3, 5, st=(1, 3))),
         ("rand_like", zeros(4, 2, 3, 3, st=(18, 1, 6, 2))), ("randint_like", zeros(3, 5, d=D), 1 << 30))

# Bernoulli numbers and dropout.
for d in (F, D, H, B):
    sequence(*(("bernoulli", eighths(n, d=d)) for n in SIZES))
    sequence(*(("dropout", eighths(n, d=d), 0.4, True) for n in SIZES))
    sequence(*(("native_dropout", eighths(n, d=d), 0.4, True) for n in SIZES))
    sequence(("feature_dropout", eighths(2, 3, 4, d=d), 0.4, True), ("alpha_dropout", eighths(40, d=d), 0.4, True, {"tol": TOL[d]}),
             ("feature_alpha_dropout", eighths(2, 3, 4, d=d), 0.4, True, {"tol": TOL[d]}), ("dropout", eighths(3, 7, d=d), 1.0, True),
             ("dropout", eighths(3, 7, d=d), 0.0, True), ("native_dropout", eighths(3, 7, d=d), 1.0, True),
             ("native_dropout", eighths(3, 7, d=d), 0.0, True))
for d in (F, D, B):
    sequence(("rrelu_with_noise_functional", minus(20, d=d), zeros(20, d=d), {"training": True}), ("rrelu", minus(20, d=d), 0.1, 0.4, True))
sequence(("bernoulli", eighths(4, 6, st=(1, 4))), ("bernoulli.p", zeros(4, 6, st=(1, 4)), 0.3), ("bernoulli_.float", zeros(4, 6, st=(1, 4)), 0.3),
         ("bernoulli_.float", zeros(4, 6, st=(12, 2)), 0.3), ("bernoulli_.Tensor", zeros(4, 6, st=(1, 4)), eighths(4, 6)),
         ("bernoulli.Tensor", zeros(4, 6), eighths(4, 6, st=(1, 4))), ("bernoulli.Tensor", zeros(4, 6), eighths(6)),
         ("dropout", eighths(4, 6, st=(1, 4)), 0.4, True), ("native_dropout", eighths(4, 6, st=(1, 4)), 0.4, True),
         ("dropout", eighths(4, 6, st=(12, 2)), 0.4, True), ("native_dropout", eighths(4, 6, st=(12, 2)), 0.4, True),
         ("native_dropout", eighths(2, 3, 2, 2, st=(12, 1, 6, 3)), 0.4, True), ("dropout_", eighths(4, 6, st=(1, 4)), 0.4, True))

for d in (F, D, H, B):
    q, k, t = eighths(2, 4, 5, 8, d=d), eighths(2, 4, 7, 8, d=d), {"tol": TOL[d]}
    gqa = {"enable_gqa": True, **t}
    sequence(("scaled_dot_product_attention", q, k, k, None, 0.3, t), ("scaled_dot_product_attention", q, k, k, None, 0.3, True, t),
             ("scaled_dot_product_attention", q, k, k, eighths(5, 7, d=d), 0.3, {"scale": 0.7, **t}),
             ("scaled_dot_product_attention", q, eighths(2, 2, 7, 8, d=d), eighths(2, 2, 7, 8, d=d), None, 0.3, gqa))

# Normal numbers.
for d in (F, D, H, B):
    t = {"tol": TOL[d]}
    sequence(*(("randn", [n], {"dtype": d, **t}) for n in SIZES))
    sequence(*(("normal_functional", zeros(n, d=d), 1.5, 0.25, t) for n in SIZES))
    sequence(("randn", [3], {"dtype": d, **t}), ("randn", [1], {"dtype": d, **t}), ("randn", [17], {"dtype": d, **t}), ("randn", [2], {"dtype": d, **t}))
    sequence(("normal_", zeros(5, 7, d=d, st=(1, 5)), 0.5, 2.0, t), ("normal_", zeros(5, 7, d=d, st=(14, 2)), 0.5, 2.0, t),
             ("normal_", zeros(3, 4, d=d, st=(8, 2)), 0.5, 2.0, t), ("randn_like", zeros(5, 7, d=d, st=(1, 5)), t))
    sequence(("normal.Tensor_Tensor", eighths(20, d=d), eighths(20, d=d), t), ("normal.Tensor_float", eighths(20, d=d), 0.5, t),
             ("normal.float_Tensor", 0.5, eighths(20, d=d), t), ("normal.Tensor_Tensor", eighths(3, 1, d=d), eighths(5, d=d), t),
             ("normal.float_float", 0.5, 2.0, [20], {"dtype": d, **t}), ("normal.Tensor_Tensor", eighths(4, 6, d=d, st=(1, 4)), eighths(4, 6, d=d), t))

# Other distributions: logarithms and tangents to a rounding.
for d in (F, D, H, B):
    t = {"tol": TOL[d]}
    sequence(*(("exponential", zeros(n, d=d), 2.0, t) for n in SIZES))
    sequence(*(("geometric", zeros(n, d=d), 0.3) for n in SIZES))
    sequence(*(("cauchy", zeros(n, d=d), 0.5, 2.0, {"tol": 20 * TOL[d]}) for n in SIZES))
    sequence(*(("log_normal", zeros(n, d=d), 0.5, 0.7, {"tol": 4 * TOL[d]}) for n in SIZES))
for d in (I, J, U):
    sequence(*(("geometric", zeros(n, d=d), 0.3) for n in SIZES))
sequence(("exponential", zeros(4, 6, st=(1, 4)), 1.0, {"tol": 1e-6}), ("exponential", zeros(4, 6, st=(12, 2)), 1.0, {"tol": 1e-6}),
         ("exponential_", zeros(4, 6, st=(12, 2)), 1.0, {"tol": 1e-6}), ("uniform_", zeros(4, 6, st=(12, 2))), ("uniform_", zeros(4, 6, st=(1, 4))),
         ("random_", zeros(4, 6, d=I, st=(1, 4))), ("random_.to", zeros(4, 6, d=I, st=(12, 2)), 90), ("geometric_", zeros(4, 6, st=(1, 4)), 0.3),
         ("cauchy_", zeros(4, 6, st=(1, 4)), {"tol": 1e-5}), ("log_normal_", zeros(4, 6, st=(1, 4)), {"tol": 4e-6}))

# Samples of categories.
for d in (F, D, H, B):
    for n in (4, 17, 100):
        sequence(*(("multinomial", eighths(n, d=d), m) for m in (1, 2, 4)), ("multinomial", eighths(3, n, d=d), 3), ("multinomial", eighths(n, d=d), n),
                 *(("multinomial", eighths(n, d=d), m, True) for m in (1, 2, 20)), ("multinomial", eighths(3, n, d=d), 30, True))
sequence(("multinomial", eighths(1000), 5), ("multinomial", eighths(1000), 1000), ("multinomial", eighths(1000), 50, True),
         ("multinomial", eighths(3, 4, st=(1, 3)), 2), ("multinomial", eighths(3, 4, st=(8, 2)), 2), ("multinomial", eighths(3, 4, st=(1, 3)), 1), ("multinomial", eighths(3, 4, st=(1, 3)), 6, True))
