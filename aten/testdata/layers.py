"""Writes layers.jsonl: gradients of convolutions and fused attention layers, as PyTorch answers them.

Run: python layers.py > layers.jsonl
"""
import contextlib
import io

import torch

with contextlib.redirect_stdout(io.StringIO()):
    from tensor_ops import case

torch.manual_seed(0)


def r(*s):
    return torch.randint(-4, 5, s, dtype=torch.float32) / 4


def conv(x, w, stride, padding, dilation, transposed, out_pad, groups, mask=(True, True, True)):
    y = torch.ops.aten.convolution(x, w, None, stride, padding, dilation, transposed, out_pad, groups)
    bias = [y.shape[1]]
    case("convolution_backward", r(*y.shape), x, w, bias, stride, padding, dilation, transposed, out_pad, groups, list(mask))


conv(r(2, 4, 7), r(3, 4, 3), [2], [1], [1], False, [0], 1)
conv(r(2, 4, 6, 7), r(6, 2, 3, 2), [2, 1], [1, 0], [1, 2], False, [0, 0], 2)
conv(r(1, 2, 5, 4, 5), r(4, 1, 2, 2, 2), [2, 2, 2], [0, 1, 0], [1, 1, 1], False, [0, 0, 0], 2)
conv(r(2, 4, 5, 4), r(4, 3, 3, 2), [2, 3], [1, 0], [1, 1], True, [1, 2], 1)
conv(r(2, 4, 5), r(4, 2, 3), [2], [1], [1], True, [1], 2)
conv(r(2, 4, 6, 6), r(3, 4, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 1, (False, True, False))
conv(r(2, 4, 6, 6), r(3, 4, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 1, (True, False, False))

x, y = r(2, 3, 8), r(2, 5, 8)
att = (8, 2, r(24, 8), r(24), r(8, 8), r(8))
mask = torch.ones(3, 3, dtype=torch.bool).triu(1)
pad = torch.tensor([[False, False, True], [False, False, False]])
case("_native_multi_head_attention", x, x, x, *att)
case("_native_multi_head_attention", x, x, x, *att, None, True, False)
case("_native_multi_head_attention", x, x, x, *att, None, False)
case("_native_multi_head_attention", x, y, y, *att)
case("_native_multi_head_attention", x, x, x, *att, mask, True, True, 0)
case("_native_multi_head_attention", x, x, x, *att, pad, True, True, 1)
ffn = (r(8), r(8), r(8), r(8), r(16, 8), r(16), r(8, 16), r(8))
for gelu in (False, True):
    for first in (False, True):
        case("_transformer_encoder_layer_fwd", x, *att, gelu, first, 1e-5, *ffn)
case("_transformer_encoder_layer_fwd", x, *att, False, False, 1e-5, *ffn, pad, 1)

for dt in (torch.float16, torch.bfloat16):
    case("avg_pool3d", torch.ones(1, 1, 2, 2, 2, dtype=dt), [2, 2, 2])
