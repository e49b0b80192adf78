"""Makes expressions.jsonl: random expressions of the kinds that PyTorch 2.15 records for sizes and guards, in sympy's two printed
forms, with the values that PyTorch's own reference analysis gives (Python's rules for // and %)."""
import json
import random

import sympy
from torch.utils._sympy.functions import (CeilDiv, FloatTrueDiv, FloorDiv, FloorToInt, CeilToInt, IntTrueDiv, Max, Min, Mod,
                                          PowByNatural, PythonMod, RoundToInt, ToFloat, TruncToInt)
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.reference import PythonReferenceAnalysis

random.seed(7)
s0, s1 = sympy.Symbol("s0", positive=True, integer=True), sympy.Symbol("s1", positive=True, integer=True)
u0, u1 = sympy.Symbol("u0", integer=True), sympy.Symbol("u1", integer=True)
SIZES, ANY = [s0, s1], [u0, u1]


def integer(depth, positive):
    leaves = SIZES if positive else SIZES + ANY
    if depth == 0:
        return random.choice(leaves + [sympy.Integer(random.choice([1, 2, 3, 7, 16] if positive else [-7, -3, -2, -1, 1, 2, 3, 5]))])
    a, b = integer(depth - 1, positive), integer(depth - 1, positive)
    k = sympy.Integer(random.choice([2, 3, 4, 8] if positive else [-4, -3, 2, 3, 5]))
    return random.choice([
        lambda: a + b, lambda: a * b, lambda: a + k, lambda: k * a, lambda: a - b, lambda: FloorDiv(a, k), lambda: FloorDiv(a, b),
        lambda: PythonMod(a, k), lambda: PythonMod(a, b), lambda: Max(a, b), lambda: Min(a, k), lambda: CeilDiv(s0, sympy.Integer(4)),
        lambda: Mod(s1, sympy.Integer(5)), lambda: PowByNatural(a, sympy.Integer(2)),
    ])()


def real(depth):
    a, b = integer(depth, True), integer(depth, False)
    return random.choice([lambda: IntTrueDiv(a, b), lambda: FloatTrueDiv(ToFloat(b), ToFloat(a)), lambda: ToFloat(a) * sympy.Float(0.5), lambda: ToFloat(b) + ToFloat(a)])()


def rounded(depth):
    return random.choice([TruncToInt, FloorToInt, CeilToInt, RoundToInt])(real(depth))


def condition(depth):
    a, b = integer(depth, False), integer(depth, False)
    c = random.choice([sympy.Eq, sympy.Ne, sympy.Le, sympy.Lt, sympy.Ge, sympy.Gt])(a, b)
    if depth > 1:
        d = sympy.Le(integer(depth - 1, False), integer(depth - 1, False))
        c = random.choice([lambda: sympy.And(c, d), lambda: sympy.Or(c, d), lambda: sympy.Not(c)])()
    return c


def value(e, env):
    try:
        v = sympy_interp(PythonReferenceAnalysis, env, e)
    except ZeroDivisionError:
        # Guards are Python code, which does not look at the rest of an "and" or "or" that is decided; this analysis does.
        return None if e.has(sympy.And, sympy.Or) else "error"
    if isinstance(v, bool) or v is sympy.true or v is sympy.false:
        return bool(v)
    if isinstance(v, (int, sympy.Integer)):
        return int(v) if -(2**63) <= v < 2**63 else "error"
    return float(v)


seen, rows = set(), []
while len(rows) < 500:
    depth = random.choice([1, 1, 2, 2, 3])
    try:
        e = random.choice([lambda: integer(depth, True), lambda: integer(depth, False), lambda: condition(depth), lambda: rounded(1)])()
    except ZeroDivisionError:
        continue
    if e in seen or not e.free_symbols or e.has(sympy.zoo, sympy.nan):
        continue
    seen.add(e)
    values = []
    for _ in range(6):
        env = {"s0": random.randint(1, 40), "s1": random.randint(1, 9), "u0": random.randint(-30, 30), "u1": random.randint(-4, 4)}
        v = value(e, {k: env[str(k)] for k in (s0, s1, u0, u1)})
        if v is not None:
            values.append([env, v])
    rows.append({"str": str(e), "srepr": sympy.printing.repr.srepr(e), "values": values})
with open("expressions.jsonl", "w") as f:
    for r in rows:
        f.write(json.dumps(r) + "\n")
