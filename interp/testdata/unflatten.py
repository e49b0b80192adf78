"""What torch.export.unflatten (PyTorch 2.15) makes of programs of the corpora, as goldens for TestUnflattenTrees.

usage: unflatten.py FOLDER OUT.jsonl.gz     FOLDER is an unpacked suite-public
A line a case: {"id", "tree"} with all modules (path, class, graph), parameters and buffers; or {"id", "error"}.
Subgraphs of control flow are left out of the list of modules: they stand in their module's graph.
"""
import contextlib, gzip, io, json, logging, os, re, sys, warnings

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
import torch
from torch.export import unflatten
from torch.export.unflatten import InterpreterModuleDispatcher

WANTED = re.compile(r"nflatten|preserv|dispatch|shared|tied|alias|shadow|nested|submod|module|Module|call_sig|effect|token|set_grad|state|buffer|mutat")


def tree(u):
    out = []
    for path, m in u.named_modules():
        if isinstance(m, torch.fx.GraphModule): continue
        if isinstance(m, InterpreterModuleDispatcher):
            out.append(f"== {path} dispatcher {len(m.call_modules())} {m.type_name() or ''}")
            out += [str(c.graph) for c in m.call_modules()]
            continue
        out.append(f"== {path} {(m.type_name() or '') if hasattr(m, 'type_name') else ''}")
        if hasattr(m, "graph") and len(m.graph.nodes): out.append(str(m.graph))
    size = lambda t: "[" + " ".join(map(str, t.shape)) + "]"
    out += [f"P {n} {size(p)}" for n, p in u.named_parameters()] + [f"B {n} {size(b)}" for n, b in u.named_buffers()]
    return "\n".join(out) + "\n"


def main():
    root, lines = sys.argv[1], []
    for i in sorted(os.listdir(root)):
        if not WANTED.search(i) or i.endswith("-guard") or not os.path.exists(f"{root}/{i}/model.pt2"): continue
        try: ep = torch.export.load(f"{root}/{i}/model.pt2")
        except Exception: continue
        try:
            with contextlib.redirect_stdout(io.StringIO()): u = unflatten(ep)
            lines.append({"id": i, "tree": tree(u)})
        except Exception as e: lines.append({"id": i, "error": str(e)})
    with gzip.GzipFile(sys.argv[2], "wb", mtime=0) as f: f.write("".join(json.dumps(l) + "\n" for l in lines).encode())


if __name__ == "__main__": main()
