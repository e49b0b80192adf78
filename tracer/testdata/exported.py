"""PyTorch's judgement of programs that Go code was exported to: exported.py FOLDER, of NAME.pt2 and NAME.calls."""
import logging, os, sys, warnings

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
import torch

folder = sys.argv[1]
programs = {f[:-4]: torch.export.load(os.path.join(folder, f)) for f in sorted(os.listdir(folder)) if f.endswith(".pt2")}
for name, ep in programs.items():
    assert ep.dialect == "TRAINING", ep.dialect
    assert "class GraphModule" in str(ep)
    for check in (True, False):
        m, core, flat = ep.module(check_guards=check), ep.run_decompositions().module(), torch.export.unflatten(ep)
        for inputs, outputs in torch.load(os.path.join(folder, name + ".calls"), weights_only=True):
            for run in (m, core, flat):
                got = run(*inputs)
                got = got if isinstance(got, tuple) else (got,)
                assert len(got) == len(outputs), name
                for x, y in zip(got, outputs): torch.testing.assert_close(x.detach(), y, rtol=1e-4, atol=1e-5)
    print(name, "agrees", ep.range_constraints)

for name, inputs in (("net-dynamic", [torch.zeros(65, 3, 16, 16)]), ("net", [torch.zeros(3, 3, 16, 16)]), ("net-dynamic", [torch.zeros(4, 3, 16, 17)])):
    try: programs[name].module()(*inputs)
    except AssertionError as e: assert "Guard failed" in str(e), e
    else: raise Exception(f"{name} takes {inputs[0].shape}")

torch.manual_seed(1)
layers = {"features.0": torch.nn.Conv2d(3, 8, 3), "features.1": torch.nn.BatchNorm2d(8), "features.3": torch.nn.Conv2d(8, 8, 3, groups=2), "norm": torch.nn.LayerNorm(8), "head": torch.nn.Linear(8, 5)}
want = {f"{k}.{n}": t for k, l in layers.items() for n, t in l.state_dict().items()}
have = programs["net"].state_dict
assert list(have) == sorted(have, key=list(have).index) and set(have) == set(want), list(have)
for k, t in want.items(): assert torch.equal(have[k].detach(), t), f"{k} is initialised otherwise"
print("layers are initialised alike")
