"""Makes the files of this folder with NumPy, safetensors and PyTorch 2.15: x is 0..5 as [2, 3] in each of the dtypes."""
import numpy as np
import safetensors.torch
import torch

x = np.arange(6).reshape(2, 3)
dtypes = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
arrays = {d: x.astype(d) for d in dtypes}
np.savez("numpy.npz", **arrays)
np.savez_compressed("compressed.npz", **arrays)
np.save("fortran.npy", np.asfortranarray(arrays["float32"]))
np.save("scalar.npy", np.float32(5))
with open("version3.npy", "wb") as f:
    np.lib.format.write_array(f, arrays["float32"], version=(3, 0))
t = torch.arange(6).reshape(2, 3)
names = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2".split()
safetensors.torch.save_file({d: t.to(getattr(torch, d)) for d in names}, "torch.safetensors", {"who": "test"})
base = torch.arange(8.0)
torch.save({"views": [base[2:].view(2, 3), base[1:7].view(3, 2).T], "tuple": (1, None, "é"), **{d: t.to(getattr(torch, d)) for d in names}}, "torch.pt")
