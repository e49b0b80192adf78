"""Count the archives of a corpus that are the same program for PyTorch after "pt2 convert".

usage: resave.py PT2 CORPUS.tar.zst ... [--jobs 1] [--chunk 200] [--fail FILE.tsv] [--judge-exact] [--only REGEX]

PT2 is the built command, CORPUS a packed corpus (a folder of ID/model.pt2 and ID/expected.pt). Each archive is converted without
options. Where every record has the bytes that PyTorch wrote there is nothing left to judge ("exact"); the others are loaded by
PyTorch beside their originals and compared by loader/testdata/resave.py: print(ep), signature, ranges, guards, module calls,
metadata, weights and sharing, example inputs, and all recorded calls ("same"). An archive that this PyTorch refuses in its old form
but loads converted must give the recorded outputs ("upgraded"); one that it refuses in both forms is counted as such ("refused").
Prints a line a corpus: NAME holds/total and the counts of each kind. --judge-exact judges the exact ones too.
"""
import argparse, collections, importlib.util, os, re, shutil, subprocess, sys, tempfile, zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def unpack(corpus, to):
    subprocess.check_call(f"zstd -q -d --long=27 -c '{corpus}' | tar -C '{to}' -xf -", shell=True)
    (name,) = os.listdir(to)
    return name, os.path.join(to, name)


def records(path):
    """Names and bytes of an archive's records in their order, without its folder and what the container says of itself."""
    with zipfile.ZipFile(path) as z:
        named = [(n.split("/", 1)[-1], n) for n in z.namelist()]
        return [(short, z.read(n)) for short, n in named if short not in ("byteorder", ".data/version", ".data/serialization_id")]


def exact(a, b):
    try: return records(a) == records(b)
    except zipfile.BadZipFile: return False


def convert(pt2, pairs, tmp):
    listing = os.path.join(tmp, "list.tsv")
    with open(listing, "w") as f: f.writelines(f"{a}\t{b}\n" for a, b in pairs)
    return subprocess.run([pt2, "convert", "--batch", listing], capture_output=True, text=True).stderr


def corpus(args, packed, judged):
    tmp = tempfile.mkdtemp(prefix="resave-")
    try:
        name, root = unpack(packed, tmp)
        ids = [i for i in sorted(os.listdir(root)) if os.path.exists(os.path.join(root, i, "model.pt2")) and re.search(args.only, i)]
        out, kinds, failed = os.path.join(tmp, "out"), collections.Counter(), []
        os.makedirs(out)
        original = lambda i: os.path.join(root, i, "model.pt2")
        copy = lambda i: os.path.join(out, i + ".pt2")
        errors = convert(args.pt2, [(original(i), copy(i)) for i in ids], tmp)
        doubtful = []
        for i in ids:
            if not os.path.exists(copy(i)):
                kinds["not converted"] += 1
                failed.append((i, next((l for l in errors.splitlines() if l.startswith(original(i))), "no output").split(": ", 1)[-1]))
            elif exact(original(i), copy(i)) and not args.judge_exact: kinds["exact"] += 1
            else: doubtful.append((i, original(i), copy(i), os.path.join(root, i, "expected.pt")))
        for k in range(0, len(doubtful), args.chunk):
            for ident, verdict in judged(doubtful[k:k + args.chunk], args.jobs):
                good = verdict in ("same", "upgraded", "refused")
                kinds[verdict if good else "lost"] += 1
                if not good: failed.append((ident, verdict))
        holds = sum(kinds[k] for k in ("exact", "same", "upgraded", "refused"))
        print(f"{name} {holds}/{len(ids)} ({100 * holds / max(1, len(ids)):.2f}%): " + ", ".join(f"{k} {n}" for k, n in kinds.most_common()), flush=True)
        return [(name, *f) for f in failed]
    finally:
        shutil.rmtree(tmp, ignore_errors=True)


def judged(lines, jobs):
    """PyTorch's verdicts, in workers that are started only if there is something to judge."""
    import multiprocessing
    spec = importlib.util.spec_from_file_location("judge", os.path.join(HERE, "..", "loader", "testdata", "resave.py"))
    module = sys.modules["judge"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if jobs == 1: return [module.judge(l) for l in lines]
    with multiprocessing.get_context("fork").Pool(jobs) as pool: return pool.map(module.judge, lines, chunksize=8)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("pt2"); p.add_argument("corpora", nargs="+"); p.add_argument("--jobs", type=int, default=1); p.add_argument("--chunk", type=int, default=200)
    p.add_argument("--fail"); p.add_argument("--judge-exact", action="store_true"); p.add_argument("--only", default="")
    args = p.parse_args()
    failed = [f for c in args.corpora for f in corpus(args, c, judged)]
    if args.fail:
        with open(args.fail, "w") as f: f.writelines("\t".join(x.replace("\t", " ").replace("\n", " ") for x in row) + "\n" for row in failed)
    for row in failed: print("  ", *(x.split("\n")[0][:300] for x in row))
    sys.exit(bool(failed))


if __name__ == "__main__": main()
