"""What Python 3.14 and 3.15 added: the same as in CPython, or refused by name.

The programs are texts, because older versions of Python do not read them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import pscdsl as psc
from tests.support.projects import check, module_of

pytestmark = pytest.mark.quick_code
X = np.array([1, 2.5, 0.25], np.float32)
HEAD = """
import functools, math, operator
from functools import partial, reduce
import numpy as np
import pscdsl as psc
from pscdsl import f32


def of(a, b=3, c=7): return a + 10 * b + 100 * c


LISTS = ((1, 2), (3, 4, 5), ())
"""


class Case(NamedTuple):
    """An expression in a kernel of `x`; with a code, what it is refused with."""

    text: str
    code: str = ""
    since: tuple[int, int] = (3, 15)


def cases(text: str, since: tuple[int, int], code: str = "") -> list[Case]:
    """Each line is a case."""
    return [Case(line, code, since) for line in text.strip().splitlines()]


EXACT = [
    *cases(
        """
partial(of, functools.Placeholder, 2)(5) * x
partial(of, functools.Placeholder, functools.Placeholder, 5)(1, 2) * x
partial(partial(of, functools.Placeholder, 2), 1)() * x
partial(partial(of, functools.Placeholder, 2), functools.Placeholder, 4)(9) * x
partial(lambda a, b=3, c=7: b + c, functools.Placeholder, 2)(5) * x
partial(np.subtract, functools.Placeholder, x)(5 * x)
sum(map(lambda a, b: a * b, (1, 2), (x, 4), strict=True))
reduce(lambda a, b: a * b, (1, 2, x), initial=5)
reduce(operator.add, [], initial=x)
""",
        (3, 14),
    ),
    *cases(
        """
len([*L for L in LISTS]) * x
sum([*L for L in LISTS]) * x
sum((*L for L in LISTS)) * x
sum({*L for L in LISTS}) * x
{**d for d in ({"a": 1}, {"b": 2}, {"a": 3})}["a"] * x
len({**d for d in ({"a": 1}, {"b": 2}, {"a": 3})}) * x
[*[k, k + 1] for k in range(3) if k != 1][-1] * x
len([*[i, j] for i in range(4) for j in range(i)]) * x
[*(z := (i,)) for i in range(3)][0] + z[0] * x
np.sum(np.stack([*(r, 2 * r) for r in x])) * x
sum([*pair for pair in ((x, x + 1), (x * 2,))])
math.fmax(1.0, math.nan) * math.fmin(2, 3) * math.signbit(-0.0) * x
""",
        (3, 15),
    ),
]
REFUSED = [
    *cases('t"{x}"', (3, 14), "PSC101"),
    *cases('len(t"{1}".values) * x', (3, 14), "PSC101"),
    *cases("partial(of, 1, functools.Placeholder)(2) * x", (3, 14), "PSC120"),
    *cases("partial(of, 1, b=functools.Placeholder)(2) * x", (3, 14), "PSC120"),
    *cases("partial(of, functools.Placeholder, 2)() * x", (3, 14), "PSC120"),
    *cases("sum(map(of, (1, 2), (1,), strict=True)) * x", (3, 14), "PSC120"),
    *cases("sum([*5 for L in LISTS]) * x", (3, 15), "PSC109"),
    *cases("len({**5 for L in LISTS}) * x", (3, 15), "PSC109"),
    *cases("np.stack([*r for r in np.outer(x, x)])[0]", (3, 15), "PSC122"),
    *cases('frozendict(a=1)["a"] * x', (3, 15), "PSC101"),
    *cases('x if sentinel("A") else -x', (3, 15), "PSC101"),
    *cases("math.integer.gcd(4, 6) * x", (3, 15), "PSC910"),
]


def skip_before(since: tuple[int, int]) -> None:
    """Skip what this Python does not read."""
    if sys.version_info < since:
        pytest.skip(f"of Python {since[0]}.{since[1]}")


def loaded(folder: Path, text: str) -> ModuleType:
    """The module of a text."""
    path = folder / "program.py"
    path.write_text(text, encoding="utf-8")
    return module_of(path, "newer_program")


def codes(folder: Path, files: dict[str, str]) -> list[str]:
    """What is found in files."""
    return sorted(each.code for each in check(folder, files).diagnostics)


def kernel(expression: str) -> str:
    """A program with an expression."""
    return f'{HEAD}\n@psc.kernel\ndef f(x: f32["n"]):\n    return {expression}\n'


@pytest.mark.parametrize("case", EXACT, ids=lambda case: case.text)
def test_what_is_read_is_what_cpython_gives(case: Case, tmp_path: Path) -> None:
    skip_before(case.since)
    text = kernel(case.text)
    assert not codes(tmp_path, {"checked.py": text})
    function: Any = loaded(tmp_path, text).f
    np.testing.assert_allclose(function(X), function.__wrapped__(X), rtol=1e-6)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.text)
def test_what_is_not_read_is_refused(case: Case, tmp_path: Path) -> None:
    skip_before(case.since)
    text = kernel(case.text)
    assert codes(tmp_path, {"checked.py": text}) == [case.code]
    with pytest.raises(psc.CheckError, match=case.code):
        loaded(tmp_path, text).f(X)


STATEMENTS = """
@psc.kernel
def caught(x: f32["n"]) -> f32["n"]:
    try:
        y = x / 2
    except ZeroDivisionError, ValueError:
        y = x
    return y


@psc.kernel
def not_caught(x: f32["n"]) -> f32["n"]:  # PSC101
    try:
        y = x / 2
    except ZeroDivisionError, KeyboardInterrupt:
        y = x
    return y


@psc.kernel
def left(x: f32["n"]) -> f32["n"]:  # PSC101
    for i in range(3):
        try:
            x = x + 1
        finally:
            break
    return x


@psc.kernel
def declared(x: f32["n"]) -> f32["n"]:  # PSC101
    type T = int
    return x


def doubled[T = int](y: T) -> T:
    return y * 2


@psc.kernel
def helped(x: f32["n"]) -> f32["n"]:
    return doubled(x)


@psc.kernel
def hidden[LISTS](x: f32["n"]) -> f32["n"]:  # PSC109
    return x * len(LISTS)
"""
MATCHED = """
@psc.kernel
def matched(x: f32["n"]) -> f32["n"]:
    total = 0 * x
    for value in (1, -2, 2.5, 1 + 2j):
        match value:
            case +1:
                total = total + x
            case +2.5 | +1 + 2j:
                total = total + 10 * x
            case _:
                total = total + 100 * x
    return total
"""


@pytest.mark.parametrize(
    ("text", "since"), [(STATEMENTS, (3, 14)), (MATCHED, (3, 15))], ids=["3.14", "3.15"]
)
def test_statements(text: str, since: tuple[int, int], tmp_path: Path) -> None:
    skip_before(since)
    text = HEAD + text
    lines = text.splitlines()
    heads = {
        n: (line.split()[1].partition("(")[0].partition("[")[0], line.partition("# ")[2])
        for n, line in enumerate(lines, 1)
        if line.startswith("def ") and lines[n - 2].startswith("@")
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what leaves `finally` is a SyntaxWarning
        findings = check(tmp_path, {"checked.py": text}).diagnostics
        warnings.simplefilter("ignore")
        module = loaded(tmp_path, text)
    found = {max(n for n in heads if n <= each.span.line): each.code for each in findings}
    assert found == {n: code for n, (_, code) in heads.items() if code}
    for name, code in heads.values():
        function: Any = getattr(module, name)
        if code:
            with pytest.raises(psc.CheckError, match=code):
                function(X)
        else:
            np.testing.assert_allclose(function(X), function.__wrapped__(X), rtol=1e-6)


# Lazy imports.

MAIN = """
lazy import math
lazy import numpy as np
lazy import pscdsl as psc
lazy from pscdsl import f32
lazy import package.part
lazy from kernels import inner
lazy from helpers import K, helper
lazy import writer
lazy import missing
lazy import raising
lazy from helpers import nothing

C = 2.0
T = psc.constant(np.ones(3, np.float32))


@psc.kernel
def f(x: f32["n"]) -> f32["n"]:
    return inner(x) * math.pi + helper(x) * K + package.part.Z


@psc.kernel
def missed(x: f32["n"]) -> f32["n"]:
    return x * missing.Z


@psc.kernel
def raised(x: f32["n"]) -> f32["n"]:
    return x * raising.Z


@psc.kernel
def unnamed(x: f32["n"]) -> f32["n"]:
    return x * nothing


@psc.kernel
def written(x: f32["n"]) -> f32["n"]:
    return x * C * writer.Z


def made():
    proxy = globals()["raising"]

    @psc.kernel
    def of_proxy(x: f32["n"]) -> f32["n"]:
        return x * proxy.Z

    return of_proxy


def attempt(kernel):
    try:
        print(kernel(np.arange(3, dtype=np.float32)))
    except psc.CheckError as error:
        print("refused:", str(error).split("\\n")[2])


def run():
    import sys

    print("helpers" in sys.modules, "kernels" in sys.modules)
    attempt(f)
    print("pscdsl._src.frontend.modules.live" in sys.modules)
    for each in (missed, raised, unnamed, written, made()):
        attempt(each)
"""
OTHERS = {
    "helpers.py": """
K = 3.0


def helper(x):
    return x * K
""",
    "writer.py": """
lazy import main

Z = 4.0


def reset():
    main.C = 5.0
""",
    "kernels.py": """
lazy import numpy as np
lazy import pscdsl as psc
lazy from pscdsl import f32


@psc.kernel
def inner(x: f32["n"]) -> f32["n"]:
    return np.sin(x)
""",
    "package/__init__.py": "",
    "package/part.py": "Z = 7.0\n",
    "raising.py": "raise ValueError('here')\n",
}
PRINTED = """\
False False
[ 7.       18.643559 27.856642]
{}
refused: error[PSC101]: `missing`, whose lazy import raises ModuleNotFoundError (No module named \
'missing'), has no meaning in a kernel
refused: error[PSC101]: `raising`, whose lazy import raises ValueError (here), has no meaning in a \
kernel
refused: error[PSC101]: `nothing`, whose lazy import raises ImportError (cannot import name \
'nothing' from 'helpers'
[ 0.  8. 16.]
refused: error[PSC101]: `lazy_import object `proxy`` has no meaning in a kernel
"""


def run(folder: Path, **env: str) -> str:
    """What the program prints, paths left out."""
    done = subprocess.run(
        [sys.executable, "-c", "import main; main.run()"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert not done.stderr, done.stderr
    return "\n".join(line.partition(" (/")[0] for line in done.stdout.split("\n"))


@pytest.mark.parametrize("mode", ["normal", "all"])
def test_lazy_imports(mode: str, tmp_path: Path) -> None:
    skip_before((3, 15))
    files = {"main.py": MAIN, **OTHERS}
    if mode == "all":
        files = {name: text.replace("lazy ", "") for name, text in files.items()}
    assert codes(tmp_path, files) == ["PSC103", "PSC103", "PSC206", "PSC903", "PSC911"]
    env = {"PSCDSL_CACHE": str(tmp_path / "cache"), "PYTHON_LAZY_IMPORTS": mode}
    assert run(tmp_path, **env) == PRINTED.format(True)
    assert run(tmp_path, **env) == PRINTED.format(False)  # the kernel was found, and not read
    (tmp_path / "helpers.py").write_text(
        files["helpers.py"].replace("K = 3.0", "K = 30.0"), "utf-8"
    )
    assert run(tmp_path, **env).split("\n")[2] == "True"
