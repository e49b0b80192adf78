"""Makes small files of the kinds that people hand to a PT2 loader by mistake. Run with PyTorch 2.15, onnx and safetensors."""
import io
import os
import warnings

import safetensors.torch
import torch
from torch.export.pt2_archive._package import package_pt2

warnings.simplefilter("ignore")


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.linear(x)


torch.manual_seed(0)
m = Linear()
x = torch.zeros(1, 2)
torch.jit.save(torch.jit.trace(m, x), "torchscript.pt")
torch.save(m.state_dict(), "checkpoint.pt")
torch.save(m.state_dict(), "checkpoint-old.pt", _use_new_zipfile_serialization=False)
torch.save(m, "module.pt")
safetensors.torch.save_file(m.state_dict(), "weights.safetensors")
with open("model.wrapper.so", "wb") as f:
    f.write(b"\x7fELF")  # stands for what the C++ compiler makes
with open("aotinductor.pt2", "wb") as f:
    package_pt2(f, aoti_files={"model": ["model.wrapper.so"]})
os.remove("model.wrapper.so")
torch.onnx.export(m, (x,), "model.onnx", dynamo=False)
