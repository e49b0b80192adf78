"""Writes aten/out_variants.txt: the operators of ATen that write their results into arguments, and what each is made of.

A line is NAME, the overload of the functional operator, the arguments that are written, and the arguments of the functional operator
that the variant lacks, as lists with commas. Needs PyTorch.

    python3 tools/outvariants.py > aten/out_variants.txt
"""
import torch

DROPPED = {"dtype", "layout", "device", "pin_memory", "names"}


def signature(args):
    return [(a.name, str(a.type), a.kwarg_only, a.default_value if a.has_default_value() else "none") for a in args]


by_name = {}
for s in torch._C._jit_get_all_schemas():
    if s.name.startswith("aten::"):
        by_name.setdefault(s.name, []).append(s)

lines = []
for name, schemas in by_name.items():
    for s in schemas:
        written = [a for a in s.arguments if a.is_out]
        if not written or any(str(a.type) != "Tensor" for a in written):
            continue
        rest = signature(a for a in s.arguments if not a.is_out)
        for f in schemas:
            if any(a.alias_info is not None and a.alias_info.is_write for a in f.arguments) or len(f.returns) != len(written):
                continue
            have = signature(f.arguments)
            dropped = [a[0] for a in have if a[0] in DROPPED and a[2] and a[0] not in {r[0] for r in rest}]
            if [a for a in have if a[0] not in dropped] == rest and all(str(r.type) == "Tensor" for r in f.returns):
                lines.append("\t".join([f"{name[6:]}.{s.overload_name}", f.overload_name or "default", ",".join(a.name for a in written), ",".join(dropped)]).rstrip())
                break
print("\n".join(sorted(lines)))
