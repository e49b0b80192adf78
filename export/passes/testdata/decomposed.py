"""PyTorch's judgement of programs that were taken apart.

usage: decomposed.py LIST      a line: ID<TAB>ORIGINAL<TAB>DECOMPOSED<TAB>CALLS; CALLS is an expected.pt of the corpora
Prints "ID<TAB>VERDICT<TAB>NOTE" a case. VERDICT: "same" if PyTorch loads the program, verifies dialect ATEN, and computes with guards what
is recorded; else the reason. NOTE: "operators" if it has the operators of PyTorch's own run_decompositions(), as often; else the
difference.
"""
import collections, logging, sys, warnings

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
import torch
import torch.utils._pytree as pytree

torch.set_num_threads(1)

def run(ep, calls):
    out, m = [], ep.module()
    for c in calls:
        try:
            torch.manual_seed(0)
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
            tol = {torch.float16: 2e-2, torch.bfloat16: 5e-2}.get(y.dtype, 1e-3)
            if not torch.allclose(x.detach().to(torch.complex128), y.to(torch.complex128), rtol=tol, atol=tol, equal_nan=True): return False
        elif isinstance(y, float):
            if not (x == y or abs(x - y) < 1e-4 * max(1, abs(y)) or x != x and y != y): return False
        elif x != y: return False
    return True

def operators(ep): return collections.Counter(str(n.target) for n in ep.graph.nodes if n.op == "call_function" and "getitem" not in str(n.target))

def judge(original, decomposed, calls):
    note = "refused"
    try:
        ep = torch.export.load(decomposed)
        if ep.dialect != "ATEN": return f"dialect {ep.dialect}", ""
        recorded = torch.load(calls, weights_only=False)
        got = run(ep, recorded)
        bad = [x if isinstance(x, str) else "outputs" for x, c in zip(got, recorded) if not close(x, c)]
        verdict = "same" if not bad else str(bad[0])[:300]
    except Exception as e: verdict, ep = f"{type(e).__name__}: {e.__cause__ or e.__context__ or e}"[:300], None
    try:
        want = operators(torch.export.load(original).run_decompositions())
        if ep is not None:
            got = operators(ep)
            note = "operators" if got == want else f"more {dict(got - want)} less {dict(want - got)}"
    except Exception as e: note = f"PyTorch refuses: {type(e).__name__}"
    return verdict, note

if __name__ == "__main__":
    for line in open(sys.argv[1]):
        ident, *files = line.rstrip("\n").split("\t")
        print(ident, *(x.replace("\n", " ").replace("\t", " ") for x in judge(*files)), sep="\t", flush=True)
