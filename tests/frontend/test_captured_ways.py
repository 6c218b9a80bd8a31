"""Certain ways to write what a kernel captures are reported; ordinary uses are not."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from pscdsl._src.checker.check import check_paths, check_source
from tests.support.captured_ways import WRITERS, Way, program, ways, writes
from tests.support.share import due, some

CERTAIN = (
    *("W", "W[:]", "W[...]", "W.view()", "W.reshape(3)", "W.ravel()", "W.T", "W.squeeze()"),
    *("np.asarray(W)", "np.atleast_1d(W)", "np.ravel(W)", "np.reshape(W, 3)", "(q := W)"),
    *("globals()['W']", "sys.modules[__name__].W", "vars(sys.modules[__name__])['W']"),
    *("getattr(sys.modules[__name__], 'W')", "np.ascontiguousarray(W)", "np.flip(np.flip(W))"),
)
"""Expressions that certainly stand for the array."""
UNCERTAIN = ("Obj()", "lambda", "exec(", "V.", "np.nditer", "nullcontext({x})", "getattr(", "a, _")
"""What the writers have in them that the text alone does not show."""
POSITIONAL = ("np.clip(", "np.round(", "np.multiply.accumulate(", "random(3")
"""Functions that take `out` in a place of their own."""


def _is_certain(way: Way) -> bool:
    if way.kind != "array":
        return not any(word in way.label for word in ("exec", "methodcaller", "f_globals", "gc."))
    path, _, writer = way.label.partition(" | ")
    return path in CERTAIN and not any(word in writer for word in (*UNCERTAIN, *POSITIONAL))


@pytest.mark.parametrize("kind", ["array", "list", "name", "class"])
def test_what_is_reported_is_written(kind: str) -> None:
    found = [each for each in ways() if each.kind == kind]
    one_in = {"array": 16, "list": 2, "name": 2, "class": 2}[kind]
    reported = [each for each in some(found, one_in) if "PSC206" in _codes(each.text)]
    least = {"array": 200, "list": 20, "name": 14, "class": 9}[kind]
    assert len(reported) > due(least, one_in) * 0.7
    assert [each.label for each in reported if not writes(each)] == []


@pytest.mark.parametrize("path", CERTAIN)
def test_certain_ways_to_write_are_reported(path: str) -> None:
    found = [each for each in ways() if each.label.partition(" | ")[0] == path]
    tried = [each for each in some(found, 6, path) if _is_certain(each) and writes(each)]
    assert tried
    assert [each.label for each in tried if _codes(each.text) != {"PSC206"}] == []


@pytest.mark.parametrize(
    "text",
    [
        *("L.append(5.0)", "L[0] = 5.0", "a = L; a += [5.0]", "L.__iadd__([5.0])", "del L[0]"),
        *("L[:] = []", "L.sort(key=lambda q: -q)", "bisect.insort(L, 5.0)", "list.append(L, 5.0)"),
        *("f = L.append; f(5.0)", "operator.iconcat(L, [5.0])", "random.shuffle(L)"),
        *("globals()['L'].append(5.0)", "for q in [L]: q.append(5.0)", "L[0], q = 5.0, 1"),
        *("global L; L = [5.0]", "global L; del L", "global L; L += [5.0]"),
        *("global L; import types as L", "setattr(sys.modules[__name__], 'L', [5.0])"),
        *("globals().update(L=[])", "operator.setitem(globals(), 'L', [])"),
        *("C.r = 5.0", "del C.r", "setattr(C, 'r', 5.0)", "type.__setattr__(C, 'r', 5.0)"),
        *("k = C; k.r = 5.0", "for C.r in [5.0]: pass", "globals()['C'].r = 5.0"),
    ],
)
def test_certain_writes_of_lists_and_classes_are_reported(text: str) -> None:
    assert _codes(
        program(text, "C.r" if "r = " in text or "r'" in text or ".r" in text else "L[0]")
    ) == {"PSC206"}


def _codes(text: str) -> set[str]:
    return {each.code for each in check_source(text, "way.py").diagnostics}


@pytest.mark.parametrize("value", ["W", "L[0]", "S", "C.r"])
def test_the_same_programs_without_a_writer_are_accepted(value: str) -> None:
    reads = "return W.sum() + W[0] + len(L) + L[0] + S + C.r, sorted(L), (W * 2).T, np.exp(W)"
    assert not _codes(program(reads, value))


USES = """
np.diff(W) | np.sum(W) | np.concatenate([W, V]) | np.stack([W, W]) | np.interp(0.5, W, V)
np.save("w", W) | np.savez("w", w=W) | np.savetxt("w", W) | np.testing.assert_allclose(W, V)
np.array_repr(W) | np.linalg.norm(W) | np.histogram(W) | np.sort(W) | np.argsort(W) | np.unique(W)
np.clip(W, 0, 1) | np.where(W > 0, W, 0) | np.dot(W, V) | np.einsum("i,i", W, V)
np.polyfit(W, V, 1) | np.fft.fft(W) | np.random.default_rng(0).choice(W) | np.vectorize(same)(W)
np.nan_to_num(W) | np.exp(W, out=None) | W.clip(0, 1) | W.astype(int) | W.tolist() | W.tobytes()
W.mean(axis=0) | W.copy() | W.sum(out=None) | W.setflags(write=False) | W.byteswap() | W.repeat(2)
W.dot(V) | W.T @ V | W[[0, 1]] | W[W > 0] | W[0] | plt.plot(W) | plt.imshow(W) | ax.scatter(W, V)
pandas.DataFrame({"w": W}) | pandas.Series(W) | pickle.dumps(W) | json.dumps(L) | copy.copy(L)
copy.deepcopy(W) | torch.from_numpy(W) | log(W) | print(W, L) | repr(W) | str(L) | len(L)
sorted(L) | list(zip(L, W)) | sum(L) | max(L) | min(W) | f"{W!r} {L}" | "%r" % W | any(L) | all(L)
enumerate(L) | reversed(L) | tuple(L) | set(L) | iter(L) | [q * 2 for q in L] | {q: 1 for q in L}
dict(a=W) | [*L, 1] | {"w": W} | (W, L) | lambda: W | L + [1] | isinstance(W, np.ndarray) | id(W)
hash(S) | map(abs, L) | filter(None, L) | functools.partial(same, W) | functools.reduce(same, L)
itertools.chain(L) | same(W) | same(q=W) | same(*L) | collections.deque(L) | L.index(1.0)
L.count(1.0) | L.copy() | random.choice(L) | random.sample(L, 1) | heapq.nlargest(1, L)
gc.get_objects() | globals() | vars() | getattr(C, "r") | hasattr(C, "r") | C() | type(C)
exec("1") | bisect.bisect(L, 1.0) | threading.Thread(target=same, args=(W,)) | Model().fit(W)
self.w.append(W)
"""
ORDINARY = [each.strip() for line in USES.strip().splitlines() for each in line.split(" | ")]


@pytest.mark.parametrize("use", ORDINARY)
def test_ordinary_uses_are_no_findings(use: str) -> None:
    assert len(ORDINARY) > 60
    assert not _codes(program(f"return {use}", "W[0] * L[0] * S * C.r"))


@pytest.mark.parametrize(
    "text",
    [
        "w = W.copy(); w[0] = 5.0",
        "w = W[[0, 1]]; w[0] = 5.0",
        "w = W[W > 0]; w[0] = 5.0",
        "w = W * 2; w += 1",
        "w = np.array(W); w.sort()",
        "w = W if S else V; w[0] = 5.0",
        "w = W; w = V; w[0] = 5.0",
        "q = L[:]; q.append(5.0)",
        "q = sorted(L); q.append(5.0)",
        "q = list(L); q[0] = 5.0",
        "W = np.zeros(3); W[0] = 5.0",
        "L = []; L.append(5.0)",
        "S = 5.0",
        "for W in [V]: W[0] = 5.0",
        "C().r = 5.0",
        "q = C(); q.r = 5.0",
        "V[0] = 5.0",
    ],
)
def test_what_writes_something_else_is_no_finding(text: str) -> None:
    assert not _codes(program(text, "W[0] * L[0] * S * C.r"))


LIBRARY = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32

W = np.ones(3, np.float32)
V = np.full(3, 7, np.float32)
S = 1.0


@psc.kernel
def f(x: f32["3"]) -> f32["3"]:
    return x * W * S
"""
OTHER = """\
import builtins, contextlib, importlib, operator, sys
import numpy as np
from unittest import mock
"""
IMPORTS = {
    "from lib import W, V": "W",
    "from lib import W as R, V": "R",
    "from lib import *": "W",
    "import lib\nfrom lib import V": "lib.W",
    "import lib as z\nfrom lib import V": "z.W",
    "import lib\nfrom lib import V\nw = lib.W": "w",
    "import importlib\nfrom lib import V\nq = importlib.import_module('lib')": "q.W",
    "from lib import V\n": "sys.modules['lib'].W",
    "import lib\nfrom lib import V\n": "getattr(lib, 'W')",
    "import lib\nfrom lib import V\n\n": "vars(lib)['W']",
}
_FORMS = tuple(
    each for each in WRITERS if not any(word in each for word in (*UNCERTAIN, *POSITIONAL))
)
REBINDERS = [
    "import lib\ndef update():\n    lib.S = 5.0",
    "import lib\ndef update():\n    lib.S += 4.0",
    "import lib as z\ndef update():\n    z.S = 5.0",
    "import lib\ndef update():\n    setattr(lib, 'S', 5.0)",
    "import lib\ndef update():\n    lib.__dict__['S'] = 5.0",
    "import lib\ndef update():\n    vars(lib).update(S=5.0)",
    "import lib\ndef update():\n    mock.patch('lib.S', 5.0).start()",
    "import lib\ndef update():\n    mock.patch.object(lib, 'S', 5.0).start()",
    "def update():\n    sys.modules['lib'].S = 5.0",
    "def update():\n    importlib.import_module('lib').S = 5.0",
    "def update():\n    __import__('lib').S = 5.0",
    "import lib\ndef update():\n    for lib.S in [5.0]:\n        pass",
    "import lib\ndef update():\n    type(sys).__setattr__(lib, 'S', 5.0)",
    "def test(monkeypatch):\n    monkeypatch.setattr('lib.S', 5.0)",
    "import lib\ndef test(monkeypatch):\n    monkeypatch.setattr(lib, 'S', 5.0)",
]


def _accepted(folder: Path, number: int, text: str) -> bool:
    place = folder / str(number)
    place.mkdir()
    (place / "lib.py").write_text(LIBRARY, encoding="utf-8")
    (place / "other.py").write_text(f"{OTHER}{text}\n", encoding="utf-8")
    found = {each.code for each in check_paths([place]).diagnostics}
    return found != {"PSC206"}


def _compiles(text: str) -> bool:
    try:
        compile(text, "other.py", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def test_certain_ways_to_write_from_another_file_are_reported(tmp_path: Path) -> None:
    programs = [
        f"{imports}\ndef update():\n    {writer.format(x=way)}"
        for (imports, way), writer in itertools.product(IMPORTS.items(), _FORMS)
    ]
    programs = [each for each in programs if _compiles(OTHER + each)]
    assert len(programs) > 150
    tried = [*some(programs, 12), *REBINDERS]
    accepted = [each for number, each in enumerate(tried) if _accepted(tmp_path, number, each)]
    assert not accepted


def test_what_another_file_only_reads_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "lib.py").write_text(LIBRARY, encoding="utf-8")
    reads = "import lib\n\nprint(lib.W, lib.S, lib.f(lib.V))\n"
    (tmp_path / "other.py").write_text(OTHER + reads, encoding="utf-8")
    assert not check_paths([tmp_path]).diagnostics


def test_ways_are_of_all_kinds() -> None:
    counts = Counter(each.kind for each in ways())
    assert counts["array"] > 3000
    assert all(isinstance(each, Way) for each in itertools.islice(ways(), 3))


TABLES = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32

def table(n):
{body}


T = table(3)


@psc.kernel
def f(x: f32["3"]) -> f32["3"]:
    return x * T
"""


def _table(*lines: str) -> set[str]:
    return _codes(TABLES.format(body="".join(f"    {line}\n" for line in lines)))


@pytest.mark.parametrize(
    "lines",
    [
        ["return np.arange(n).astype(np.float32)"],
        ["t = np.zeros(n, np.float32)", "for i in range(n):", "    t[i] = i * i", "return t"],
        ["t = np.zeros(n, np.float32)", "t[:] = np.arange(n)", "return t"],
    ],
    ids=["returned", "filled", "stored"],
)
def test_a_table_that_a_function_makes_is_its_own(lines: list[str]) -> None:
    assert not _table(*lines)


@pytest.mark.parametrize("change", ["t *= 2", "t += np.arange(n)"])
def test_a_table_takes_no_in_place_operator(change: str) -> None:
    # These are followed in kernels; what is made outside of them is read only.
    assert _table("t = np.zeros(n, np.float32)", change, "return t") == {"PSC205"}
