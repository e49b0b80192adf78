"""PyTorch's judgement of programs with specifications of sizes: specs.py FOLDER, of NAME.pt2 and NAME.calls. The same models and
specifications in Python must give the same graphs and ranges."""
import io, logging, os, sys, warnings

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
import torch
from torch.fx.experimental.dynamic_spec import IntVar, ParamsSpec, ShapesSpec, ShapeVar, TensorSpec
from printed import text

b, d, s = ShapeVar("b", min=2, max=64), ShapeVar("b", min=2), ShapeVar("s")
x, y = torch.randn(4, 3), torch.randn(8, 3)
cases = {
    "one": (lambda x, i: x + 1, (x, y), {"x": TensorSpec([b, None])}),
    "derived": (lambda x, i: (torch.cat([x, x]) + i, x.shape[0]), (x, y), {"x": TensorSpec([d, None]), "i": TensorSpec([d * 2, 3])}),
    "same": (lambda x, i: x + i, (x, x.clone()), {"x": TensorSpec([s, None]), "i": TensorSpec([s, None])}),
    "reshape": (lambda x, i: (x.reshape(-1), x.view(x.shape[0] * 3)), (x, y), {"x": TensorSpec([s, None])}),
    "integer": (lambda x, n: x * n, (x, 5), {"n": IntVar("n", min=1, max=9)}),
}
folder, bad = sys.argv[1], 0
for name, (fn, args, params) in cases.items():
    class M(torch.nn.Module):
        def forward(self, x, i): return fn(x, i)
    class N(torch.nn.Module):
        def forward(self, x, n): return fn(x, n)
    theirs = torch.export.export((N if name == "integer" else M)(), args, dynamic_shapes=ShapesSpec(ParamsSpec(params)))
    f = io.BytesIO()
    torch.export.save(theirs, f); f.seek(0)
    theirs, ours = torch.export.load(f), torch.export.load(os.path.join(folder, name + ".pt2"))
    if text(ours) != text(theirs):
        bad += 1
        print(f"{name}: ours\n{text(ours)}\ntheirs\n{text(theirs)}")
        continue
    other, outputs, refused = torch.load(os.path.join(folder, name + ".calls"), weights_only=True)
    got = torch.utils._pytree.tree_flatten(ours.module()(*other))[0]
    for p, q in zip(got, outputs, strict=True): torch.testing.assert_close(p, q, msg=lambda s: f"{name}: {s}")
    if refused is not None:
        try: ours.module()(*refused)
        except Exception as e: print(name, "refuses:", str(e).splitlines()[0])
        else: raise Exception(f"{name} takes {refused}")
sys.exit(bad)
