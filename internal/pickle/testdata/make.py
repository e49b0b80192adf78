"""Makes pickles.jsonl: pickles as Python and PyTorch 2.15 write them, and what they hold in the form of the test's show()."""
import base64
import collections
import functools
import io
import json
import os
import pickle
import zipfile

import torch


def pickled(value, protocol):
    if not isinstance(value, Torch):
        return pickle.dumps(value, protocol)
    f = io.BytesIO()
    torch.save(value.value, f, pickle_protocol=protocol)
    with zipfile.ZipFile(f) as z:
        return z.read(next(n for n in z.namelist() if n.endswith("data.pkl")))


class Torch:
    """Marks a value that torch.save writes."""

    def __init__(self, value):
        self.value = value


class Evil:
    def __init__(self, f, *args):
        self.r = f, args

    def __reduce__(self):
        return self.r


shared = [1, 2]
base = torch.arange(6.0)
attributed = torch.zeros(2)
attributed.note = "kept by PyTorch"
loop = []
loop.append(loop)
ok = {
    "none": (None, "nil"),
    "bools": ([True, False], "[true false]"),
    "ints": ([0, 255, 256, 65536, -1, 2**31, 2**40, -(2**63), 2**63 - 1], "[0 255 256 65536 -1 2147483648 1099511627776 -9223372036854775808 9223372036854775807]"),
    "large ints": ([2**63, -(2**70)], "[9223372036854775808 -1180591620717411303424]"),
    "floats": ([0.5, -0.0, 1e300, float("inf")], "[0.5 -0 1e+300 +Inf]"),
    "texts": (["", "a", "é\U0001f600", "x" * 300], '["" "a" "é😀" "' + "x" * 300 + '"]'),
    "bytes": ([b"", b"a\xff", b"y" * 300], "[0x 0x61ff 0x" + "79" * 300 + "]"),
    "complex": (1 - 2j, "(1-2i)"),
    "tuples": ([(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)], "[() (1) (1 2) (1 2 3) (1 2 3 4)]"),
    "dict": ({"b": 1, "a": [2], 3: None, (1, 2): 4}, '{"b": 1, "a": [2], 3: nil, (1 2): 4}'),
    "empty": ([{}, [], (), set()], "[{} [] () set()]"),
    "ordered": (collections.OrderedDict([("z", 1), ("a", 2)]), '{"z": 1, "a": 2}'),
    "sets": ([{3}, frozenset([4])], "[set(3) set(4)]"),
    "shared": ([shared, shared], "[[1 2] [1 2]]"),
    "nested": ([[[[{"a": ({"b": []},)}]]]], '[[[[{"a": ({"b": []})}]]]]'),
    "long": (list(range(3000)), "[" + " ".join(map(str, range(3000))) + "]"),
    "tensor": (Torch(base), "float32[6]/[1]+0 of 0 (float32, 6)"),
    "views": (Torch([base.view(2, 3).T, base[2:]]), "[float32[3 2]/[1 3]+0 of 0 (float32, 6) float32[4]/[1]+2 of 0 (float32, 6)]"),
    "parameter": (Torch(torch.nn.Parameter(base)), "parameter float32[6]/[1]+0 of 0 (float32, 6)"),
    "state dict": (Torch(torch.nn.Linear(2, 1).state_dict()), '{"weight": float32[1 2]/[2 1]+0 of 0 (float32, 2), "bias": float32[1]/[1]+0 of 1 (float32, 1)}'),
    "conjugate": (Torch(torch.zeros(2, dtype=torch.complex64).conj()), "conj complex64[2]/[1]+0 of 0 (complex64, 2)"),
    "negative": (Torch(torch.zeros(2, dtype=torch.complex64).conj().imag), "neg float32[2]/[2]+1 of 0 (float32, 4)"),
    "uint16": (Torch(torch.zeros(2, dtype=torch.uint16)), "uint16[2]/[1]+0 of 0 (, 4)"),
    "bfloat16": (Torch(torch.zeros(2, dtype=torch.bfloat16)), "bfloat16[2]/[1]+0 of 0 (bfloat16, 2)"),
    "float8": (Torch(torch.zeros(2, dtype=torch.float8_e5m2)), "float8_e5m2[2]/[1]+0 of 0 (, 2)"),
    "no dimensions": (Torch(torch.tensor(1)), "int64[]/[]+0 of 0 (int64, 1)"),
    "attributes": (Torch(attributed), "float32[2]/[1]+0 of 0 (float32, 2)"),
    "words": (Torch([torch.float16, torch.device("cpu"), torch.device("cuda", 1), torch.Size([2, 3])]), "[float16 cpu cuda:1 (2 3)]"),
}
refused = {
    "os.system": (Evil(os.system, "true"), "posix.system"),
    "eval": (Evil(eval, "1"), "eval is not one"),
    "getattr": (Evil(getattr, "a", "upper"), "getattr is not one"),
    "partial": (functools.partial(print), "functools.partial"),
    "a class": (collections.Counter, "collections.Counter"),
    "open": (Evil(open, "x"), "io.open"),
    "module": (Torch(torch.nn.Linear(1, 1)), "torch.nn.modules.linear.Linear"),
    "sparse": (Torch(torch.zeros(2, 2).to_sparse()), "torch._utils._rebuild_sparse_tensor"),
    "quantized": (Torch(torch.quantize_per_tensor(torch.zeros(2), 1, 0, torch.qint8)), "torch._utils._rebuild_qtensor"),
    "loop": (loop, "a value holds itself"),
}
with open("pickles.jsonl", "w") as out:
    for good, table in ((True, ok), (False, refused)):
        for name, (value, want) in table.items():
            for protocol in (2, 3, 4, 5):
                b = base64.b64encode(pickled(value, protocol)).decode()
                out.write(json.dumps({"name": f"{name}, protocol {protocol}", "pickle": b, "good": good, "want": want}) + "\n")
