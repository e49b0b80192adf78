"""PyTorch's judgement of preserved module calls in a program that Go code was exported to: preserve.py FOLDER."""
import io, json, logging, sys, warnings, zipfile

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
import torch
from torch import nn


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = nn.ReLU()

    def forward(self, x, y):
        return self.r(x) + y, -x


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.sub = nn.Linear(3, 3), Pair()

    def forward(self, x):
        return self.sub(self.l(x), self.l(x).relu())[0]


def entries(f):
    z = zipfile.ZipFile(f)
    program = json.loads(z.read(next(n for n in z.namelist() if n.endswith("models/model.json"))))
    return {e["fqn"]: e for e in program["graph_module"]["module_call_graph"]}


path = sys.argv[1] + "/outer"
inputs, outputs = torch.load(path + ".calls", weights_only=True)[0]
b = io.BytesIO()
torch.export.save(torch.export.export(Outer(), tuple(inputs), preserve_module_call_signature=("l", "sub", "sub.r")), b)
want, have = entries(b), entries(path + ".pt2")
assert list(want) == list(have), (list(want), list(have))
for fqn in want:
    assert want[fqn] == have[fqn], (fqn, want[fqn], have[fqn])
m = torch.export.unflatten(torch.export.load(path + ".pt2"))
torch.testing.assert_close(m(*inputs), outputs[0])


class Swapped(nn.Module):
    def forward(self, x, y):
        return (nn.functional.relu(x) + y) * 2, x


m.sub = Swapped()
torch.testing.assert_close(m(*inputs), outputs[0] * 2)
