"""Trains the weights that the example loads: digits.py, with torch, scikit-learn and safetensors. Writes digits.safetensors."""
import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
data = load_digits()
x = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16
y = torch.tensor(data.target)
train = torch.arange(len(x)) % 5 != 0


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


m = Digits()
opt = torch.optim.Adam(m.parameters(), 3e-3)
for epoch in range(60):
    for part in torch.randperm(int(train.sum())).split(64):
        opt.zero_grad()
        nn.functional.cross_entropy(m(x[train][part]), y[train][part]).backward()
        opt.step()
m.eval()
print("accuracy on digits it has not seen:", (m(x[~train]).argmax(1) == y[~train]).float().mean().item())
save_file(m.state_dict(), "digits.safetensors")
for i in (45, 10, 15):
    print(int(y[i]), data.images[i].astype(int).tolist(), m(x[i : i + 1]).softmax(1).max().item())
