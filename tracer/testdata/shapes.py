"""PyTorch's judgement of programs with free sizes that Go code was exported to: shapes.py FOLDER, of NAME.pt2 and NAME.calls, which holds
the leaves of a call, of its result, and of a call that must be refused."""
import dataclasses, logging, os, sys, warnings

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
import torch
from torch.utils import _pytree as pytree


@dataclasses.dataclass
class Setting:
    Scale: float
    Bias: torch.Tensor


torch.export.register_dataclass(Setting, serialized_type_name="demo.Setting")
folder = sys.argv[1]
for file in sorted(os.listdir(folder)):
    if not file.endswith(".pt2"):
        continue
    ep = torch.export.load(os.path.join(folder, file))
    inputs, outputs, refused = torch.load(os.path.join(folder, file[:-4] + ".calls"), weights_only=True)
    args, kwargs = pytree.tree_unflatten(inputs, ep.call_spec.in_spec)
    runs = [ep.module(), torch.export.unflatten(ep)]
    if all(k.is_Symbol for k in ep.range_constraints):  # else PyTorch cannot decompose what it loaded, its own programs included
        runs.append(ep.run_decompositions().module())
    for run in runs:
        got = pytree.tree_flatten(run(*args, **kwargs))[0]
        assert len(got) == len(outputs), (file, got)
        for x, y in zip(got, outputs):
            if isinstance(y, torch.Tensor):
                torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-6, msg=lambda s: f"{file}: {s}")
            else:
                assert x == y, (file, x, y)
    args, kwargs = pytree.tree_unflatten(refused, ep.call_spec.in_spec)
    try:
        ep.module()(*args, **kwargs)
    except Exception as e:
        print(file, "agrees, and refuses:", str(e).splitlines()[0])
    else:
        raise Exception(f"{file} takes what it must not")
