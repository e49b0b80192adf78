"""What PyTorch's layers are and compute: layers.py write FILE makes layers.pt; layers.py judge FOLDER loads NAME.pt2 that Go made of the layers,
and holds it against the layer."""
import logging, os, sys, warnings

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
import torch
from torch import nn


def x(*sizes): return (torch.arange(torch.Size(sizes).numel()) * 37 % 101 / 25 - 2).reshape(sizes)
def ids(*sizes, n=10): return (torch.arange(torch.Size(sizes).numel()) * 7 % n).reshape(sizes)
def bools(*sizes): return (torch.arange(torch.Size(sizes).numel()) % 3 == 1).reshape(sizes)


image, cube, line, row = [x(2, 4, 6, 6)], [x(1, 4, 4, 4, 4)], [x(2, 4, 9)], [x(3, 5)]
seq, memory = x(5, 2, 8), x(4, 2, 8)
causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
hide = torch.tensor([[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]], dtype=torch.bool)

LAYERS = {
    "linear": ("nn.Linear(5, 7)", row), "linear-nobias": ("nn.Linear(5, 7, bias=False)", row), "bilinear": ("nn.Bilinear(5, 4, 3)", [x(2, 5), x(2, 4)]),
    "identity": ("nn.Identity()", row),
    "conv1d": ("nn.Conv1d(4, 6, 3, stride=2, padding=1)", line), "conv2d": ("nn.Conv2d(4, 6, 3, stride=(2, 1), padding=1, dilation=2, groups=2)", image),
    "conv2d-rect": ("nn.Conv2d(4, 6, (3, 1), bias=False)", image), "conv3d": ("nn.Conv3d(4, 6, 2)", cube), "conv2d-same": ("nn.Conv2d(4, 6, 4, padding='same')", image),
    "conv2d-reflect": ("nn.Conv2d(4, 6, 3, padding=1, padding_mode='reflect')", image), "conv1d-circular": ("nn.Conv1d(4, 6, 3, padding=2, padding_mode='circular')", line),
    "conv2d-replicate-same": ("nn.Conv2d(4, 6, 4, padding='same', padding_mode='replicate')", image), "conv2d-single": ("nn.Conv2d(4, 6, 3)", [x(4, 6, 6)]),
    "convtranspose1d": ("nn.ConvTranspose1d(4, 6, 3, stride=2)", line),
    "convtranspose2d": ("nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)", image), "convtranspose3d": ("nn.ConvTranspose3d(4, 2, 2, dilation=2)", cube),
    "batchnorm1d": ("nn.BatchNorm1d(5)", row), "batchnorm2d": ("nn.BatchNorm2d(4, eps=1e-3)", image), "batchnorm3d": ("nn.BatchNorm3d(4, affine=False)", cube),
    "batchnorm-stats": ("nn.BatchNorm2d(4, track_running_stats=False)", image), "instancenorm1d": ("nn.InstanceNorm1d(4)", line),
    "instancenorm2d": ("nn.InstanceNorm2d(4, affine=True)", image), "instancenorm3d": ("nn.InstanceNorm3d(4, track_running_stats=True)", cube),
    "layernorm": ("nn.LayerNorm(5)", row), "layernorm-2": ("nn.LayerNorm((6, 6), elementwise_affine=False)", image), "layernorm-nobias": ("nn.LayerNorm(5, bias=False)", row),
    "rmsnorm": ("nn.RMSNorm(5)", row), "rmsnorm-eps": ("nn.RMSNorm(5, eps=1e-2, elementwise_affine=False)", row), "groupnorm": ("nn.GroupNorm(2, 4)", image),
    "localresponse": ("nn.LocalResponseNorm(3)", image), "localresponse1d": ("nn.LocalResponseNorm(2)", line),
    "embedding": ("nn.Embedding(10, 4, padding_idx=2)", [ids(2, 3)]), "embedding-negative": ("nn.Embedding(10, 4, padding_idx=-1)", [ids(2, 3)]),
    "embeddingbag": ("nn.EmbeddingBag(10, 4)", [ids(6), torch.tensor([0, 2, 2])]), "embeddingbag-2d": ("nn.EmbeddingBag(10, 4, mode='max')", [ids(2, 3)]),
    "embeddingbag-sum": ("nn.EmbeddingBag(10, 4, mode='sum', include_last_offset=True)", [ids(6), torch.tensor([0, 2, 6]), x(6)]),
    "embeddingbag-padding": ("nn.EmbeddingBag(10, 4, padding_idx=7)", [ids(6), torch.tensor([0, 3])]),
    "relu": ("nn.ReLU()", row), "relu6": ("nn.ReLU6()", [x(3, 5) * 5]), "leakyrelu": ("nn.LeakyReLU(0.2)", row), "elu": ("nn.ELU(0.5)", row), "selu": ("nn.SELU()", row),
    "celu": ("nn.CELU(0.7)", row), "gelu": ("nn.GELU()", row), "gelu-tanh": ("nn.GELU(approximate='tanh')", row), "silu": ("nn.SiLU()", row), "mish": ("nn.Mish()", row),
    "sigmoid": ("nn.Sigmoid()", row), "logsigmoid": ("nn.LogSigmoid()", row), "tanh": ("nn.Tanh()", row), "tanhshrink": ("nn.Tanhshrink()", row),
    "softplus": ("nn.Softplus(2, 3)", row), "softsign": ("nn.Softsign()", row), "hardtanh": ("nn.Hardtanh(-0.5, 1)", row), "hardswish": ("nn.Hardswish()", row),
    "hardsigmoid": ("nn.Hardsigmoid()", row), "hardshrink": ("nn.Hardshrink(0.7)", row), "softshrink": ("nn.Softshrink(0.3)", row), "threshold": ("nn.Threshold(0.1, 20)", row),
    "softmax": ("nn.Softmax(dim=1)", row), "logsoftmax": ("nn.LogSoftmax(dim=0)", row), "softmin": ("nn.Softmin(dim=1)", row), "glu": ("nn.GLU(dim=1)", image),
    "prelu": ("nn.PReLU()", row), "prelu-channels": ("nn.PReLU(4)", image), "rrelu": ("nn.RReLU()", row),
    "dropout": ("nn.Dropout(0.3)", row), "dropout1d": ("nn.Dropout1d(0.3)", line), "dropout2d": ("nn.Dropout2d(0.3)", image), "dropout3d": ("nn.Dropout3d(0.3)", cube),
    "alphadropout": ("nn.AlphaDropout(0.3)", row),
    "maxpool1d": ("nn.MaxPool1d(2)", line), "maxpool2d": ("nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True)", image), "maxpool3d": ("nn.MaxPool3d(2, dilation=2)", cube),
    "maxpool-indices": ("nn.MaxPool2d(2, return_indices=True)", image), "avgpool1d": ("nn.AvgPool1d(3, stride=1, padding=1)", line),
    "avgpool2d": ("nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False)", image), "avgpool3d": ("nn.AvgPool3d(2, divisor_override=3)", cube),
    "adaptiveavg1d": ("nn.AdaptiveAvgPool1d(4)", line), "adaptiveavg2d": ("nn.AdaptiveAvgPool2d(1)", image), "adaptiveavg3d": ("nn.AdaptiveAvgPool3d((1, 2, 3))", cube),
    "adaptivemax1d": ("nn.AdaptiveMaxPool1d(4)", line), "adaptivemax2d": ("nn.AdaptiveMaxPool2d((2, 3))", image),
    "adaptivemax3d": ("nn.AdaptiveMaxPool3d((1, 2, 2), return_indices=True)", cube),
    "zeropad": ("nn.ZeroPad2d((1, 0, 2, 1))", image), "constantpad": ("nn.ConstantPad1d((1, 2), 3.5)", line), "reflectionpad": ("nn.ReflectionPad2d((1, 2, 0, 3))", image),
    "replicationpad": ("nn.ReplicationPad3d((1, 1, 0, 1, 2, 0))", cube), "circularpad": ("nn.CircularPad2d((1, 2, 1, 0))", image),
    "rnn": ("nn.RNN(8, 6)", [seq]), "rnn-relu": ("nn.RNN(8, 6, num_layers=2, nonlinearity='relu', bias=False)", [seq, x(2, 2, 6)]), "lstm": ("nn.LSTM(8, 6)", [seq]),
    "lstm-deep": ("nn.LSTM(8, 6, num_layers=2, bidirectional=True, batch_first=True, dropout=0.5)", [x(2, 5, 8)]), "lstm-proj": ("nn.LSTM(8, 6, proj_size=3)", [seq]),
    "lstm-single": ("nn.LSTM(8, 6)", [x(5, 8)]), "gru": ("nn.GRU(8, 6, bidirectional=True)", [seq, x(2, 2, 6)]),
    "rnncell": ("nn.RNNCell(8, 6)", [x(2, 8), x(2, 6)]), "lstmcell": ("nn.LSTMCell(8, 6)", [x(2, 8)]), "grucell": ("nn.GRUCell(8, 6, bias=False)", [x(2, 8), x(2, 6)]),
    "attention": ("nn.MultiheadAttention(8, 2)", [seq, seq, seq]), "attention-cross": ("nn.MultiheadAttention(8, 2, bias=False)", [seq, memory, memory]),
    "attention-masks": ("nn.MultiheadAttention(8, 2)", [seq, seq, seq, hide, causal]),
    "attention-dims": ("nn.MultiheadAttention(8, 2, kdim=5, vdim=3, batch_first=True)", [x(2, 5, 8), x(2, 4, 5), x(2, 4, 3)]),
    "attention-extra": ("nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)", [seq, seq, seq, hide]), "attention-single": ("nn.MultiheadAttention(8, 4)", [x(5, 8)] * 3),
    "encoderlayer": ("nn.TransformerEncoderLayer(8, 2, dim_feedforward=16)", [seq]),
    "encoderlayer-first": ("nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, activation='gelu', norm_first=True, batch_first=True, bias=False)", [x(2, 5, 8), causal]),
    "decoderlayer": ("nn.TransformerDecoderLayer(8, 2, dim_feedforward=16)", [seq, memory, causal]),
    "encoder": ("nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, dim_feedforward=16), 2, norm=nn.LayerNorm(8))", [seq]),
    "decoder": ("nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, dim_feedforward=16), 2)", [seq, memory]),
    "sequential": ("nn.Sequential(nn.Conv2d(4, 3, 1), nn.Flatten(), nn.Linear(108, 2))", image), "flatten": ("nn.Flatten(2)", image), "unflatten": ("nn.Unflatten(1, (2, -1))", image),
    "pixelshuffle": ("nn.PixelShuffle(2)", image), "pixelunshuffle": ("nn.PixelUnshuffle(3)", image), "channelshuffle": ("nn.ChannelShuffle(2)", image),
    "unfold": ("nn.Unfold(3, padding=1, stride=2)", image), "fold": ("nn.Fold((4, 4), 2, stride=2)", [x(1, 8, 4)]),
    "upsample": ("nn.Upsample(scale_factor=2)", image), "upsample-size": ("nn.Upsample(size=(9, 4), mode='bilinear', align_corners=True)", image),
    "upsample-bicubic": ("nn.Upsample(scale_factor=(1.5, 2), mode='bicubic')", image), "upsample-linear": ("nn.Upsample(size=13, mode='linear')", line),
    "upsample-exact": ("nn.Upsample(size=4, mode='nearest-exact')", image), "upsample-trilinear": ("nn.Upsample(scale_factor=2, mode='trilinear')", cube),
    "cosine": ("nn.CosineSimilarity(dim=1)", [x(3, 5), x(3, 5) + 1]), "pairwise": ("nn.PairwiseDistance(2)", [x(3, 5), x(3, 5) + 1]),
    "mse": ("nn.MSELoss()", [x(3, 5), x(3, 5) * 2]), "l1": ("nn.L1Loss()", [x(3, 5), x(3, 5) * 2]), "smoothl1": ("nn.SmoothL1Loss()", [x(3, 5), x(3, 5) * 2]),
    "huber": ("nn.HuberLoss()", [x(3, 5), x(3, 5) * 2]), "crossentropy": ("nn.CrossEntropyLoss()", [x(3, 5), ids(3, n=5)]), "nll": ("nn.NLLLoss()", [x(3, 5), ids(3, n=5)]),
    "bce": ("nn.BCELoss()", [torch.sigmoid(x(3, 5)), torch.sigmoid(-x(3, 5))]), "bcelogits": ("nn.BCEWithLogitsLoss()", [x(3, 5), torch.sigmoid(-x(3, 5))]),
}


def call(name, m, inputs):
    if name.startswith("attention"):
        kw = dict(zip(("key_padding_mask", "attn_mask"), inputs[3:]))
        out = m(*inputs[:3], **kw, need_weights=name == "attention-masks")
        out = out if out[1] is not None else out[:1]
    elif name.startswith("lstm") and "cell" not in name:
        out, (h, c) = m(inputs[0])
        out = (out, h, c)
    elif name == "embeddingbag-sum":
        out = m(inputs[0], inputs[1], per_sample_weights=inputs[2])
    else:
        out = m(*inputs)
    return [t.detach().clone() for t in (out if isinstance(out, (tuple, list)) else (out,))]


def made(name):
    torch.manual_seed(0)
    return eval(LAYERS[name][0]).eval()


if sys.argv[1] == "write":
    torch.backends.mha.set_fastpath_enabled(False)
    doc = {}
    for name, (text, inputs) in LAYERS.items():
        m = made(name)
        doc[name] = {"names": list(m.state_dict()), "state": list(m.state_dict().values()), "inputs": inputs, "outputs": call(name, m, inputs), "source": text}
    torch.save(doc, sys.argv[2])
else:
    n = 0
    for name in LAYERS:
        inputs = LAYERS[name][1]
        ep = torch.export.load(os.path.join(sys.argv[2], name + ".pt2"))
        want = call(name, made(name), inputs)
        for run in (ep.module(), ep.run_decompositions().module(), torch.export.unflatten(ep)):
            got = run(*inputs)
            got = got if isinstance(got, (tuple, list)) else (got,)
            assert len(got) == len(want), name
            for a, b in zip(got, want):
                torch.testing.assert_close(a.detach(), b, rtol=1e-4, atol=1e-5, msg=lambda s: f"{name}: {s}")
        n += 1
    print(n, "layers agree")
