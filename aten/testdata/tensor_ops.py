"""Writes tensor_ops.jsonl: calls of operators on tensors' shapes, places, order and random numbers, as PyTorch answers them.

Run: python tensor_ops.py > tensor_ops.jsonl
"""
import json
import math

import torch

torch.set_num_threads(1)
DTYPES = {torch.float32, torch.float64, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool, torch.float16, torch.bfloat16}


def num(v):
    if isinstance(v, float) and (math.isnan(v) or math.isinf(v)):
        return str(v)
    return int(v) if isinstance(v, bool) else v


def enc(v):
    if isinstance(v, torch.Tensor):
        return {"t": str(v.dtype)[6:], "s": list(v.shape), "st": list(v.stride()), "d": [num(x) for x in v.flatten().tolist()]}
    if isinstance(v, torch.dtype):
        return {"dtype": str(v)[6:]}
    if isinstance(v, (list, tuple)):
        return [enc(x) for x in v]
    return v


def case(op, *args, seed=None, **kw):
    ns, rest = "aten", op
    base, _, overload = rest.partition(".")
    f = getattr(getattr(getattr(torch.ops, ns), base), overload or "default")
    row = {"op": op, "args": enc(args), "kw": {k: enc(v) for k, v in kw.items()}}
    if seed is not None:
        torch.manual_seed(seed)
        row["seed"] = seed
    try:
        out = f(*args, **kw)
        row["out"] = enc(list(out) if isinstance(out, (list, tuple)) else [out])
    except Exception as e:
        row["err"] = str(e).split("\n")[0]
        row["kind"] = type(e).__name__
    print(json.dumps(row, separators=(",", ":")))


nan, inf = float("nan"), float("inf")
x = torch.arange(6.0).view(2, 3)
c = torch.arange(24.0).view(2, 3, 4)
n = torch.tensor([3.0, nan, 1, 3, -0.0, 0.0, inf])
i = torch.tensor([[2, 0], [1, 1]])

# Views and their refusals.
case("view", c, [6, -1])
case("view", c.transpose(0, 1), [6, 4])
case("view", c, [5, -1])
case("view", c, [-1, -1])
case("reshape", c.transpose(0, 1), [6, 4])
case("flatten.using_ints", c.permute(0, 2, 1), 0, 1)
case("flatten.using_ints", c, 2, 1)
case("unflatten.int", c, 2, [2, -1])
case("unflatten.int", c, 2, [3, 2])
case("expand", x[:, :1], [4, 2, 3])
case("expand", x, [4, 3])
case("expand", x, [-1, 2, 3])
case("select.int", c, 1, -1)
case("select.int", c, 1, 3)
case("slice.Tensor", c, 2, -3, 100, 2)
case("slice.Tensor", c, 0, 5, 1)
case("slice.Tensor", c, 0, 0, 1, 0)
case("narrow", c, 1, 1, 3)
case("split.Tensor", c, 2, 2)
case("split_with_sizes", c, [1, 3], 2)
case("split_with_sizes", c, [1, 2], 2)
case("chunk", torch.arange(5), 4)
case("tensor_split.sections", torch.arange(5), 3)
case("tensor_split.indices", torch.arange(5), [1, 4])
case("diagonal", c, -1, 0, 2)
case("unfold", c, 2, 3, 1)
case("unfold", c, 2, 5, 1)
case("movedim.intlist", c, [0, 1], [2, 0])
case("squeeze", torch.zeros(1, 2, 1))
case("unsqueeze", x, -1)
case("as_strided", c, [2, 2], [1, 2], 3)
case("as_strided", c, [2, 20], [1, 2], 3)
case("permute", c, [0, 1, 1])
case("view.dtype", x, torch.uint8)
case("broadcast_tensors", [torch.zeros(2, 1), torch.zeros(3)])

# Making, joining, repeating.
case("arange.start_step", 1.0, 2.0, 0.3)
case("arange.start_step", 5, -3, -2)
case("arange.start_step", 1, 0, 1)
case("linspace", 0, 1, 7)
case("linspace", -10, 10, 6, dtype=torch.int32)
case("logspace", 0.0, 2.0, 4, 3.0)
case("full", [2], 3)
case("fill.Scalar", torch.zeros(2, dtype=torch.int8), 300)
case("eye.m", 2, 3)
case("tril_indices", 3, 3, -1)
case("cat", [x, torch.zeros(0), x.to(torch.float64)], 1)
case("cat", [x, torch.zeros(3, 3), torch.zeros(2, 2)], 0)
case("stack", [x.t(), x.t()], 1)
case("stack", [x, x.t()])
case("block_diag", [x, torch.tensor(7), torch.tensor([1, 2])])
case("repeat", x, [2, 1, 2])
case("repeat_interleave.self_int", x, 2, 1)
case("repeat_interleave.Tensor", torch.tensor([2, 0, 1]))
case("roll", x, [1], [1])
case("roll", x, [-2], [])
case("flip", c, [0, 2])
case("rot90", x, 3)
case("one_hot", torch.tensor([0, 2]), 4)
case("one_hot", torch.tensor([0, 5]), 4)
for w in "hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window":
    case(w, 5)
    case(w + ".periodic", 6, False)

# Indexing and writing.
case("index.Tensor", c, [None, i, torch.tensor([0, 3])])
case("index.Tensor", c, [i[0].clamp(max=1), None, torch.tensor([-1, 0])])
case("index.Tensor", x, [x > 2])
case("index.Tensor", x, [torch.tensor([2])])
case("index.Tensor", x, [torch.tensor([0, 1]), torch.tensor([0, 1, 2])])
case("index_select", x, 1, torch.tensor([2, 0]))
case("index_select", x, 1, torch.tensor([3]))
case("gather", x, 1, i)
case("gather", x, 1, i - 1)
case("take", x, torch.tensor([[-1, 4]]))
case("nonzero", torch.tensor([[0, 2], [3, 0]]))
case("masked_select", x, torch.tensor([True, False, True]))
case("masked_fill.Scalar", torch.arange(3), torch.tensor([True, False, True]), 2.7)
case("searchsorted.Tensor", torch.tensor([1.0, 3, 3, 5]), n)
case("bucketize.Tensor", n, torch.tensor([1.0, 3, 5]), right=True)
case("index_put", x, [torch.tensor([0, 0])], torch.ones(2, 3), True)
case("index_put", x, [None, torch.tensor([0, 2])], torch.tensor([9.0, 8]))
case("index_put", x, [torch.tensor([0])], torch.zeros(2, 2))
case("scatter.src", x, 1, i, torch.tensor([[7.0, 8], [9, 10]]))
case("scatter.value", x, 1, i, 5)
case("scatter_add", x, 1, i, torch.ones(2, 2))
for r in "sum", "prod", "mean", "amax", "amin":
    case("scatter_reduce.two", x.int(), 1, i, torch.tensor([[7, 8], [9, -10]], dtype=torch.int32), r, include_self=False)
    case("scatter_reduce.two", x, 1, i, torch.tensor([[7.0, nan], [9, -10]]), r)
case("index_add", x, 0, torch.tensor([1, 1]), x, alpha=2)
case("index_reduce", x, 0, torch.tensor([1, 1]), x, "mean")
case("index_fill.int_Scalar", x, 1, torch.tensor([-1]), 4)
case("put", x, torch.tensor([1, -1, 1]), torch.tensor([1.0, 2, 3]), True)
case("masked_scatter", x, x > 3, torch.tensor([7.0, 8, 9]))
case("slice_scatter", x.t(), torch.ones(2, 2), 0, 1)
case("select_scatter", x, torch.ones(2), 1, 2)
case("diagonal_scatter", x, torch.ones(2))
case("tril", c, -1)
case("triu", x.t(), 1)

# Padding and blocks.
p = torch.arange(16.0).view(1, 1, 4, 4)
case("constant_pad_nd", x, [1, -1, 0, 2], 9)
case("constant_pad_nd", x, [-2, -2])
case("reflection_pad2d", p, [1, 2, 3, 0])
case("reflection_pad2d", p, [4, 0, 0, 0])
case("replication_pad2d", p, [1, -1, 2, 0])
case("pad", p, [1, 2, 0, 1], "circular")
case("pixel_shuffle", torch.arange(16.0).view(1, 4, 2, 2), 2)
case("pixel_unshuffle", p, 2)
case("im2col", p, [2, 2], [1, 2], [1, 0], [2, 1])
case("col2im", torch.ones(1, 4, 9), [4, 4], [2, 2], [1, 1], [0, 0], [1, 1])

# Order. Indices of equal elements are those of PyTorch.
ties = torch.tensor([(k * 7) % 5 for k in range(70)], dtype=torch.int32)
case("sort", n)
case("sort", n, descending=True)
case("sort", ties)
case("sort.stable", ties, stable=True, descending=True)
case("sort", x.t(), 0)
case("topk", ties, 9)
case("topk", ties, 1)
case("topk", n, 3, largest=False)
case("topk", n, 9)
case("kthvalue", ties, 30)
case("median.dim", ties, 0)
case("median.dim", n, 0)
case("nanmedian.dim", n, 0)
case("median", torch.tensor([3, 1, 2, 4]))
case("mode", ties)
case("_unique2", torch.tensor([[3, 1], [1, 2]]), True, True, True)
case("unique_dim", torch.tensor([[3, 1], [1, 2], [3, 1]]), 0, True, True, True)
case("unique_consecutive", torch.tensor([1, 1, 2, 1]), True, True)
case("bincount", torch.tensor([0, 2, 2]), torch.tensor([0.5, 1, 2]), 5)
case("bincount", torch.tensor([-1]))
case("histc", torch.tensor([1.0, 2, 1, 4]), 4)
case("histogram.bin_ct", torch.tensor([1.0, 2, 1, 4]), 3, density=True)
case("segment_reduce", x, "mean", lengths=torch.tensor([0, 2]))

# Assertions.
case("_assert_tensor_metadata", x, [3])
case("_assert_tensor_metadata", x, None, None, torch.float64)
case("sym_constrain_range", 3, min=4)
case("sym_constrain_range_for_size", -1)
case("_assert_scalar", False, "no")

# Random numbers after a seed.
f = torch.zeros(5)
for dt in torch.float32, torch.float64, torch.float16, torch.bfloat16:
    case("rand", [5], dtype=dt, seed=7)
    case("randn", [7], dtype=dt, seed=7)
case("randn", [37], seed=7)
case("randn", [16], dtype=torch.float64, seed=7)
case("randint.low", -3, 10, [6], seed=7)
case("randint", 1 << 40, [3], seed=7)
case("randperm", 9, seed=7)
case("bernoulli.p", f, 0.3, seed=7)
case("bernoulli", torch.tensor([0.1, 0.5, 0.9, 0.5]), seed=7)
case("dropout", torch.ones(8), 0.4, True, seed=7)
case("native_dropout", torch.ones(8), 0.4, True, seed=7)
case("uniform", f, -1.0, 3.0, seed=7)
for dt in torch.float32, torch.float64, torch.float16, torch.bfloat16:
    case("uniform", torch.zeros(50, dtype=dt), 0.1, 0.7, seed=7)
case("rand", [300], dtype=torch.bfloat16, seed=1)  # draws that round to 1 are 0
case("uniform", torch.zeros(20, dtype=torch.float16), 1.0, 1.001, seed=7)
case("exponential", f, 2.0, seed=7)
case("geometric", f, 0.3, seed=7)
case("cauchy", f, 0.5, 2.0, seed=7)
case("log_normal", f, seed=7)
for dt in torch.int64, torch.int32, torch.uint8, torch.float32:
    case("random", torch.zeros(4, dtype=dt), seed=7)
case("normal.Tensor_Tensor", torch.tensor([1.0, 2]), torch.tensor([0.5, 3]), seed=7)
case("multinomial", torch.tensor([0.1, 0.2, 0.3, 0.4]), 3, seed=7)
case("multinomial", torch.tensor([[0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0]]), 5, True, seed=7)
case("rrelu", torch.tensor([-1.0, 2, -3, 4]), training=True, seed=7)
