"""PyTorch's judgement of models that Go code was exported to: models.py FOLDER, of NAME.pt2 and NAME.calls."""
import logging, os, sys, warnings

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
import torch

folder = sys.argv[1]
for file in sorted(os.listdir(folder)):
    if not file.endswith(".pt2"):
        continue
    calls = torch.load(os.path.join(folder, file[:-4] + ".calls"), weights_only=True)
    makers = [lambda ep: ep.module(), lambda ep: ep.module(check_guards=False), lambda ep: ep.run_decompositions().module(), torch.export.unflatten]
    for make in makers:
        run = make(torch.export.load(os.path.join(folder, file)))  # anew: buffers move
        for inputs, outputs in calls:
            got = run(*inputs)
            got = got if isinstance(got, (tuple, list)) else (got,)
            assert len(got) == len(outputs), file
            for x, y in zip(got, outputs):
                torch.testing.assert_close(x.detach(), y, rtol=1e-4, atol=1e-5, msg=lambda s: f"{file}: {s}")
    print(file, "agrees")
