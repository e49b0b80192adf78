"""PyTorch's judgement of programs with control flow that Go code was exported to: control.py FOLDER, of NAME.pt2 and NAME.calls. The
models are written here again: the graphs must be the same, but for comments and the numbers of symbols."""
import io, logging, os, re, sys, warnings

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
import torch
from torch import nn
from torch._higher_order_ops import associative_scan, cond, map, scan, while_loop
from torch.export import Dim

Batch = Dim("batch")


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.register_buffer("buf", torch.ones(3))


class Branches(Base):
    def forward(self, x, y, p):
        z = x + y
        return cond(p, lambda x: self.lin(x) + z * self.buf, lambda x: x - z, (x,))


class Nested(Base):
    def forward(self, x, p, z):
        return cond(p, lambda x: cond(z, lambda x: x + self.buf, lambda x: x * 2, (x,)), lambda x: x - 1, (x,))


class Twice(Base):
    def forward(self, x, p):
        a, c = cond(p, lambda x: (x + 1, x * 2), lambda x: (x + 2, x * 3), (x,))
        b = cond(p, lambda a: a * self.buf, lambda a: a - self.lin.bias, (a,))
        return b, c


class Sizes(Base):
    def forward(self, x):
        return cond(x.shape[0] > 3, lambda x: x + 1, lambda x: x - 1, (x,))


class Loop(Base):
    def forward(self, i, x):
        return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, self.lin(x) + self.buf), (i, x))


class Mapped(Base):
    def forward(self, x, y):
        return map(lambda a, y: (a + y, self.lin(a) * y), x, y)


class Scanned(Base):
    def forward(self, x, c):
        return scan(lambda c, a: (c + self.lin(a), c * a), c, x, reverse=True)


class Across(Base):
    def forward(self, x, c):
        return scan(lambda c, a: (c + a, c * a), c, x, dim=1)


class Associative(Base):
    def forward(self, x):
        return associative_scan(lambda a, b: (a[0] * b[0] * self.buf, a[1] * b[0] * self.buf + b[1]), (x, x + 1), dim=0, reverse=True, combine_mode="pointwise")


class Generate(Base):
    def forward(self, tokens, n):
        def step(tokens, n):
            last = tokens.index_select(0, (n - 1).reshape([1]))
            next = self.lin(nn.functional.embedding(last, self.lin.weight)).argmax(-1)
            return tokens.index_copy(0, n.reshape([1]), next), n + 1

        return while_loop(lambda tokens, n: n < 7, step, (tokens, n))


batched = {"Branches": ["x", "y"], "Loop": ["x"], "Sizes": ["x"], "Mapped": ["x"], "Scanned": ["x"]}


def plain(text):
    text = re.sub(r"#.*", "", text.split("Graph signature")[0])
    text = re.sub(r"(;  [\w =]*= None)?\n\s*", "\n", text)
    text = re.sub(r"\n *select_copy.*", "", text)  # which associative_scan makes for its shape, and leaves
    return re.sub(r"\bs\d+\b", "s", re.sub(r"sym_size_int_\d+", "sym_size_int", text))


folder = sys.argv[1]
for file in sorted(os.listdir(folder)):
    if not file.endswith(".pt2"):
        continue
    name = file[:-4]
    ep = torch.export.load(os.path.join(folder, file))
    calls = torch.load(os.path.join(folder, name + ".calls"), weights_only=True)
    model = globals().get(name)
    if model:
        args = tuple(calls[0][0])
        shapes = None
        if name in batched:
            free = batched[name]
            names = [p for p in model.forward.__code__.co_varnames[1 : len(args) + 1]]
            shapes = {n: {0: Batch} if n in free else None for n in names}
        buffer = io.BytesIO()
        torch.export.save(torch.export.export(model(), args, dynamic_shapes=shapes), buffer)
        want = torch.export.load(buffer)
        a, b = plain(str(ep)), plain(str(want))
        assert a == b, f"{name}:\n{a}\n--- PyTorch:\n{b}"
    runs = [ep.module(), ep.run_decompositions().module()]
    for inputs, outputs in calls:
        for run in runs:
            got = run(*inputs)
            got = got if isinstance(got, (tuple, list)) else (got,)
            assert len(got) == len(outputs), name
            for x, y in zip(got, outputs):
                torch.testing.assert_close(x.detach(), y, rtol=1e-4, atol=1e-5, msg=lambda s: f"{name}: {s}")
    print(name, "agrees")
