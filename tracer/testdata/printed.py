"""How a program prints, for comparison."""
import re


def text(ep):
    """The graph without what says where it comes from: files, names of backed symbols, of nodes that archives do not keep, defaults."""
    s = re.sub(r" *# (File|No stacktrace).*\n", "", str(ep))
    s = re.sub(r"\n +\n", "\n", s)
    names = {}
    s = re.sub(r"\bs\d+\b", lambda m: names.setdefault(m[0], f"s_{len(names)}"), s)
    return re.sub(r", (device|pin_memory) = [^,\]]*?(?=[,)])(\))?(?=[,)])", "", re.sub(r"device = device\(type='cpu'\)", "device = cpu", s))
