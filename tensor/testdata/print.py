"""Makes print.jsonl: tensors and how PyTorch 2.15 prints them."""
import json

import torch

inf, nan = float("inf"), float("nan")
f = torch.tensor
cases = [
    f(1.5), f(3.0), f(-2), f(True), f(1e-7), f(nan), f(inf), f(1 - 2j), f(0.1, dtype=torch.float64), f(7, dtype=torch.int8),
    f([]), torch.zeros(0, 3), torch.zeros(2, 0, dtype=torch.int64), torch.zeros(0, dtype=torch.float16), torch.zeros(0, dtype=torch.int64),
    f([1.0, 2.0, 3.0]), f([1.0, -2.5, 1000.0]), f([1.0, 1001.0]), f([0.5, 1001.0]), f([1e-5, 1.0]), f([1e9, 1.0]), f([0.0, 0.0]), f([0.0, 1e-6]),
    f([nan, 1.0, inf]), f([nan, 1.5, -inf]), f([inf, nan]), f([1e5, nan, 3.25]), f([-0.0, 1.0]), f([-0.0, 0.25]), f([99999.0, 5.0]), f([123456.0, 200.0]),
    f([1, -200, 30]), f([[1, 2], [30, -4]]), f([True, False]), f([[True], [False]]),
    torch.arange(6.0).reshape(2, 3), torch.arange(24.0).reshape(2, 3, 4) / 7, torch.arange(16.0).reshape(1, 2, 2, 4),
    torch.arange(30.0), torch.arange(60) * 1000, torch.arange(40.0) / 3, torch.arange(1000), torch.arange(1001), torch.arange(1200.0).reshape(30, 40),
    torch.arange(2000.0).reshape(2, 10, 100) / 9, torch.arange(1001.0) * 1e3, torch.arange(3000).reshape(3, 1000), torch.arange(1400.0).reshape(700, 2),
    torch.arange(1008.0).reshape(7, 12, 12), torch.zeros(6, 200),
    f([1.5, 2.25], dtype=torch.float16), f([1.5, 2.25], dtype=torch.bfloat16), f([1.5, 2.25], dtype=torch.float64), f([1, 2], dtype=torch.uint8),
    f([1, 2], dtype=torch.int32), f([1, 2**63 - 1]), f([1, 65535], dtype=torch.uint16), f([0.5, 3.0]).to(torch.float8_e5m2),
    f([1 + 2j, -3.5 - 4j]), f([1 + 2j, 3 - 4j]), f([1e-9 + 1j, 2j]), f([[1 + 2j], [nan * 1j]]), f([1 + 2j], dtype=torch.complex128),
    f([1.0, 2.0, 3.0, 4.0]).reshape(2, 2).T, torch.arange(12.0)[::3], torch.full((3, 3), 1e-3), torch.full((2,), 123.456789), f([1e4, 1e-4]), f([9.99995, 1.0]),
    torch.ones(18, dtype=torch.float64), torch.arange(10, dtype=torch.float64) * 12345.678, torch.arange(12, dtype=torch.int32).reshape(3, 4) * 1000000,
]
with open("print.jsonl", "w") as out:
    for t in cases:
        flat = t.reshape(-1)
        if t.is_complex():
            flat = torch.view_as_real(flat).reshape(-1)
        values = [str(v) for v in flat.to(torch.float64 if t.is_floating_point() or t.is_complex() else t.dtype).tolist()]
        out.write(json.dumps({"dtype": str(t.dtype)[6:], "sizes": list(t.shape), "values": values, "text": str(t)}) + "\n")
