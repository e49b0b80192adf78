"""PyTorch's judgement of archives that were loaded and saved again.

usage: resave.py LIST [JOBS]      a line: ID<TAB>ORIGINAL<TAB>RESAVED[<TAB>CALLS]; CALLS is an expected.pt of the corpora
Prints a line "ID<TAB>same|upgraded|refused|REASON" a case: same: nothing is lost and the outputs are equal bit for bit; upgraded: PyTorch
refuses the original but loads the copy, which gives the recorded outputs; refused: PyTorch refuses both with the same words, or the copy for want of a class of the user's.
"""
import logging, multiprocessing, sys, traceback, warnings

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
import torch
import torch.utils._pytree as pytree
from torch.export.pt2_archive._package import load_pt2

torch.set_num_threads(1)
KEYS = ("nn_module_stack", "stack_trace", "torch_fn", "custom", "source_fn_stack")
for module in ("torch.ao.quantization.fx._decomposed", "torchvision"):
    try: __import__(module)
    except Exception: pass

def load(path):
    """The programs and extra files of an archive, of an old layout too."""
    try:
        c = load_pt2(path)
        return c.exported_programs, c.extra_files
    except RuntimeError:
        extra = {"": ""}
        return {"model": torch.export.load(path, extra_files=extra)}, {k: v for k, v in extra.items() if k}

def tensors(named):
    """What a dict of tensors holds, sharing included; and their values."""
    text, values, storages = [], [], {}
    for k, t in named.items():
        if not isinstance(t, torch.Tensor):
            text.append(f"{k}: {type(t)}")
            continue
        s = storages.setdefault((t.untyped_storage()._cdata), len(storages)) if t.numel() else -1
        text.append(f"{k}: {type(t).__name__} {t.dtype} {tuple(t.shape)} {t.stride()} {t.storage_offset()} {t.device} {t.requires_grad} storage {s}")
        values.append(t)
    return "\n".join(text), values

def graphs(gm):
    yield gm.graph
    for _, sub in gm.named_children():
        if isinstance(sub, torch.fx.GraphModule): yield from graphs(sub)

def describe(ep):
    """All that a program is, as named texts, and its tensors."""
    d = {"print(ep)": str(ep), "signature": str(ep.graph_signature), "ranges": str(ep.range_constraints), "guards": repr(getattr(ep, "_guards_code", None)),
         "module call graph": repr(ep.module_call_graph), "verifiers": repr(ep.verifiers), "graph metadata": repr({k: v for k, v in ep.graph_module.meta.items() if k == "custom"})}
    d["node metadata"] = "\n".join(f"{n.name} {n.target} {n.args} {n.kwargs} {[(k, str(n.meta[k])) for k in KEYS if k in n.meta]}" for g in graphs(ep.graph_module) for n in g.nodes)
    d["state"], a = tensors(ep.state_dict)
    d["constants"], b = tensors(ep.constants)
    leaves, spec = pytree.tree_flatten(ep.example_inputs)
    d["example inputs"], c = tensors(dict(enumerate(leaves)))
    d["example inputs"] += str(spec) + repr([x for x in leaves if not isinstance(x, torch.Tensor)])
    return d, a + b + c

def equal(x, y):
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
        if x.dtype != y.dtype or x.shape != y.shape or x.stride() != y.stride(): return False
        if x.numel() == 0: return True
        try:
            x, y = x.detach().resolve_conj().resolve_neg().contiguous(), y.detach().resolve_conj().resolve_neg().contiguous()
            return torch.equal(x.view(-1).view(torch.uint8), y.view(-1).view(torch.uint8)) or torch.allclose(x, y, rtol=0, atol=0, equal_nan=True)
        except Exception: return torch.equal(x, y)
    return type(x) is type(y) and (x == y or x != x and y != y)

def run(ep, calls):
    """Outputs or error of each call on one module, guards on."""
    out, m = [], None
    for c in calls:
        try:
            torch.manual_seed(0)
            if m is None: m = ep.module()
            leaves = [x.clone() if isinstance(x, torch.Tensor) else x for x in c["inputs"]]
            args, kwargs = pytree.tree_unflatten(leaves, ep.call_spec.in_spec)
            out.append(pytree.tree_flatten(m(*args, **kwargs))[0])
        except Exception as e: out.append(f"{type(e).__name__}: {e}")
    return out

def close(got, call):
    if "error" in call: return isinstance(got, str)
    if isinstance(got, str) or len(got) != len(call["outputs"]): return False
    for x, y in zip(got, call["outputs"]):
        if isinstance(y, torch.Tensor):
            if not isinstance(x, torch.Tensor) or x.dtype != y.dtype or x.shape != y.shape: return False
            if not torch.allclose(x.detach().to(torch.complex128), y.to(torch.complex128), rtol=1e-3, atol=1e-3, equal_nan=True): return False
        elif isinstance(y, float): continue
        elif x != y: return False
    return True

def first_difference(a, b):
    for x, y in zip(a.split("\n"), b.split("\n")):
        if x != y: return f"{x[:150]!r} became {y[:150]!r}"
    return f"{len(a)} characters became {len(b)}"

def judge(line):
    ident, original, resaved, *calls = line
    def verdict():
        want = refusal = None
        try: want, want_extra = load(original)
        except Exception as e: refusal = f"{type(e).__name__}: {e}"
        try: got, got_extra = load(resaved)
        except Exception as e:
            text = "".join(traceback.format_exception(e))
            if refusal and any(x in text for x in ("No module named", "find a serialized name", "is not registered", "custom_class")): return "refused"
            if refusal == f"{type(e).__name__}: {e}": return "refused"
            return f"PyTorch refuses the copy: {type(e).__name__}: {e}"
        recorded = torch.load(calls[0], weights_only=False) if calls else []
        if want is None:
            for name, ep in got.items():
                out = run(ep, recorded)
                if len(got) == 1 and not all(close(o, c) for o, c in zip(out, recorded)): return f"upgraded, but other outputs: {[o for o in out if isinstance(o, str)]}"
            return "upgraded"
        if list(want) != list(got) or want_extra != got_extra: return f"programs or extra files: {list(want)} {list(want_extra)} became {list(got)} {list(got_extra)}"
        for name in want:
            (a, at), (b, bt) = describe(want[name]), describe(got[name])
            for k in a:
                if a[k] != b[k]: return f"{k}: {first_difference(a[k], b[k])}"
            if len(at) != len(bt) or not all(map(equal, at, bt)): return "values of weights, constants or example inputs"
            for x, y in zip(run(want[name], recorded), run(got[name], recorded)):
                if isinstance(x, str) or isinstance(y, str):
                    if x != y: return f"error {x[:200]!r} became {y[:200]!r}"
                elif len(x) != len(y) or not all(map(equal, x, y)): return "outputs"
        return "same"
    try: return ident, verdict()
    except Exception: return ident, "the judge failed: " + traceback.format_exc().replace("\n", " | ")[-400:]

if __name__ == "__main__":
    lines = [x.rstrip("\n").split("\t") for x in open(sys.argv[1])]
    with multiprocessing.get_context("fork").Pool(int(sys.argv[2]) if len(sys.argv) > 2 else 2) as pool:
        for ident, v in pool.imap_unordered(judge, lines, chunksize=8):
            print(ident, v.replace("\n", " ").replace("\t", " "), sep="\t", flush=True)
