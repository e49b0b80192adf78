"""PyTorch's judgement of programs that call operators of one's own: operators.py FOLDER, of NAME.pt2 and NAME.calls."""
import logging, os, sys, warnings

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
import torch
from torch import Tensor


@torch.library.custom_op("mylib::scaled", mutates_args=())
def scaled(x: Tensor, a: float = 2.0) -> Tensor:
    return x * a


@torch.library.custom_op("mylib::accum", mutates_args={"x"})
def accum(x: Tensor, y: Tensor, a: float = 1.0) -> None:
    x.add_(y * a)


@torch.library.custom_op("mylib::both", mutates_args={"xs"})
def both(xs: list[Tensor], y: Tensor) -> Tensor:
    for t in xs:
        t.add_(y)
    return y * 2


@torch.library.custom_op("mylib::halves", mutates_args=())
def halves(x: Tensor) -> list[Tensor]:
    return [t.clone() for t in x.chunk(2)]


scaled.register_fake(lambda x, a=2.0: torch.empty_like(x))
both.register_fake(lambda xs, y: torch.empty_like(y))
halves.register_fake(lambda x: [x.new_empty(x.shape[0] // 2, *x.shape[1:]) for _ in range(2)])

folder = sys.argv[1]
for name in ("own", "core"):
    load = lambda: torch.export.load(os.path.join(folder, name + ".pt2"))  # anew for each run, which moves the buffer
    inputs, outputs = torch.load(os.path.join(folder, name + ".calls"), weights_only=True)
    runs = [load().module()]
    if name == "own":
        runs.append(load().run_decompositions().module())
    for run in runs:
        for x, y in zip(run(*[t.clone() for t in inputs]), outputs, strict=True):
            torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-6, msg=lambda s: f"{name}: {s}")
    print(name, "agrees")
