"""Makes scorer.pt2: a dict, a keyword and a dataclass in a program's signature. Run with PyTorch 2.15."""
from dataclasses import dataclass

import torch


@dataclass
class Ranking:
    probs: torch.Tensor
    best: torch.Tensor


torch.export.register_dataclass(Ranking, serialized_type_name="example.Ranking")


class Scorer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(12.0).reshape(3, 4) / 10)

    def forward(self, features, options, *, temperature):
        logits = features @ self.weight.T + options["bias"]
        probs = torch.softmax(logits / temperature, -1)
        return Ranking(probs, probs.argmax(-1))


batch = torch.export.Dim("batch", min=1, max=64)
args = (torch.ones(2, 4), {"bias": torch.zeros(3)})
kwargs = {"temperature": torch.tensor(1.0)}
shapes = {"features": {0: batch}, "options": {"bias": {}}, "temperature": {}}
ep = torch.export.export(Scorer(), args, kwargs, dynamic_shapes=shapes)
torch.export.save(ep, "scorer.pt2")
features = torch.tensor([[1.0, 0, 0, 1], [-1, 2, 0, -2]])
r = Scorer()(features, {"bias": torch.tensor([0.0, 0.5, 0.0])}, temperature=torch.tensor(2.0))
print(r)  # what the tests expect
