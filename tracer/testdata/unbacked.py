"""PyTorch's judgement of programs whose sizes come from data: unbacked.py FOLDER, of NAME.pt2 and NAME.calls. The same models in Python must
give the same graphs and ranges."""
import io, logging, os, sys, warnings

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
import torch
from torch.export import Dim
from printed import text


def item_checks(x, i):
    n = i.item(); torch._check(n >= 2); torch._check(n < x.shape[0])
    return x[:n], torch.zeros(n)


item_checks_dynamic = item_checks


def is_size(x, i):
    n = i.item(); torch._check_is_size(n, max=7)
    return torch.zeros(n) + 1


def check_mod(x, i):
    n = i.item(); torch._check(n % 2 == 0, lambda: "even")
    return x * n, n


def item_zeros(x, i): return torch.zeros(i.item())


def item_float(x, i):
    n = i.item()
    return x * (n + 1.5), n * 2


def split(x, i):
    a, b = i.tolist(); torch._check(a + b == x.shape[0]); torch._check(a >= 0); torch._check(b >= 0)
    return x.split([a, b])


def bool_mask(x, i): return x[x > 0]
def masked_select(x, i): return x.masked_select(x > 0).sum()
def unique(x, i): return torch.unique(x), torch.unique(x, return_counts=True)[1]
def repeat(x, i): return torch.repeat_interleave(x, i, dim=0)


def nonzero_check(x, i):
    n = x.nonzero().shape[0]; torch._check(n > 0)
    return torch.zeros(n)


def nonzero_equal(x, i):
    a, b = x.nonzero(), (x != 0).nonzero(); torch._check(a.shape[0] == b.shape[0])
    return a + b


def nonzero_reshape(x, i): return x.nonzero().reshape(-1), x.nonzero().shape[0]


def select_checked(x, i):
    n = i.item(); torch._check(n < 4); torch._check(n >= 0)
    return x[n]


def narrow(x, i):
    n = i.item(); torch._check(n >= 0); torch._check(n <= 4)
    return x.narrow(0, 0, n), torch.arange(n), x.new_ones((n, 2)).sum(0)


folder, bad = sys.argv[1], 0
for file in sorted(os.listdir(folder)):
    if not file.endswith(".pt2"): continue
    name = file[:-4]
    x, i, other, outputs, refused, dynamic = torch.load(os.path.join(folder, name + ".calls"), weights_only=True)
    fn = globals()[name]

    class M(torch.nn.Module):
        def forward(self, x, i): return fn(x, i)

    theirs = torch.export.export(M(), (x, i), dynamic_shapes={"x": {0: Dim("batch", min=3)}, "i": None} if dynamic else None)
    b = io.BytesIO()
    torch.export.save(theirs, b); b.seek(0)
    theirs, ours = torch.export.load(b), torch.export.load(os.path.join(folder, file))
    if text(ours) != text(theirs):
        bad += 1
        print(f"{name}: ours\n{text(ours)}\ntheirs\n{text(theirs)}")
        continue
    for run in (ours.module(), ours.run_decompositions().module(), torch.export.unflatten(ours)):
        got = torch.utils._pytree.tree_flatten(run(x, other))[0]
        assert len(got) == len(outputs), (name, got)
        for p, q in zip(got, outputs): torch.testing.assert_close(p, q, msg=lambda s: f"{name}: {s}")
    if refused is not None:
        try: ours.module()(x, refused)
        except Exception as e: print(name, "refuses:", str(e).splitlines()[0])
        else: raise Exception(f"{name} takes {refused}")
sys.exit(bad)
