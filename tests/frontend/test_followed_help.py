"""What is exact in Python is accepted; whoever follows a help text gets a program that is right."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl._src.checker.check import check_source
from pscdsl._src.cli import main
from pscdsl._src.frontend.interpreter.operators import WRITTEN
from pscdsl._src.ir import numpy_dtypes
from pscdsl._src.language.meanings import MEANINGS
from pscdsl.typing import dtypes
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Diagnostic, Failure
from tests.support.numpy_differential import check, refused

HEAD = """
import enum, math
from typing import NamedTuple
import numpy as np
import pscdsl as psc
from pscdsl import f32, i32


class Mode(enum.Enum):
    A = 1
    B = 2
    C = 1

    @staticmethod
    def of(k):
        return k


class P(NamedTuple):
    u: int
    v: int


class R(psc.Record):
    u: f32["n"]
    v: f32["n"]

"""
KERNEL = """
@psc.kernel
def f(x: f32["{shape}"]) -> f32:
{body}
"""


def findings(body: str, shape: str = "n") -> tuple[Diagnostic, ...]:
    """What is found in a kernel with these statements, of which the last is an expression."""
    lines = body.split("; ")
    lines[-1] = f"y = {lines[-1]}"
    text = textwrap.indent("\n".join([*lines, "return np.sum(np.where(y, 1.0, 0.0))"]), "    ")
    return check_source(HEAD + KERNEL.format(shape=shape, body=text), "k.py").diagnostics


ACCEPTED = (
    ("5 and x", "n"),
    ("0 or x", "n"),
    ("np.select([x > 2], [[1.0, 2.0, 3.0]])", "3"),
    ("np.select([x > 2, x > 1], [x, [1.0, 2.0, 3.0]], [0.0, 1.0, 2.0])", "3"),
    ("x.astype(np.promote_types(np.float16, np.int16))", "n"),
    ("np.full((2, 3), [1.0, 2.0, 3.0], np.float32)", "n"),
    ("x[np.ix_([0, 1], [0, 1])]", "3 3"),
    ("x * len(Mode)", "n"),
    ("x * sum([e.value for e in Mode])", "n"),
    ("a, b = P(1, 2); x * a + b", "n"),
    ("x[[True, False, True]]", "3"),
    ("np.choose(x.astype(np.int32), [x, -x], mode='wrap')", "n"),
    ("x.reshape(-1, order='C')", "n m"),
    ("max([x, -x], key=lambda v: v.ndim)", "n"),
    ("x if (1, x) == (2, x) else -x", "n"),
    ("math.prod([x, x, 2])", "n"),
    ("x * float(x.shape[0] / 2)", "n"),
    ("x * min(2.5, x.shape[0] / 2)", "n"),
    ("x * round(x.shape[0] / 2)", "n"),
    ("x * int(math.log2(x.shape[0]))", "n"),
    ("x * int(x.shape[0] > 2)", "n"),
    ("x * math.ceil(0.9 * x.shape[0])", "n"),
    ("x = x.copy(); x[x > 0] = 1.0; x", "n"),
    ("x = x.copy(); x[x > 0] **= -1.5; x", "n"),
)


@pytest.mark.parametrize(("body", "shape"), ACCEPTED, ids=[body for body, _ in ACCEPTED])
def test_what_is_exact_is_accepted(body: str, shape: str) -> None:
    assert [each.message() for each in findings(body, shape)] == []


REFUSED = (
    ("np.select([np.isfinite], [[x, x]])", "PSC120", "the function `numpy.isfinite`", None, None),
    ("np.select([x > 2], [np])", "PSC120", "the module `numpy`", None, None),
    ("np.block([[x, x], [np.std, x]])", "PSC120", "the function `numpy.std`", None, None),
    ("np.block(np.ptp)", "PSC120", "the function `numpy.ptp`", None, None),
    ("np.block([[x, x], [x, x.view]])", "PSC120", "the method `view` of an array", None, None),
    ("np.dstack([x, lambda v: v])", "PSC120", "a lambda", None, None),
    ("np.sort(x, x.shape[0])", "PSC120", "the size n", None, None),
    ("[1, 2, 3][: x.shape[0]]", "PSC112", "the slice `:n`", None, None),
    ("x * isinstance(1)", "PSC120", "`isinstance` missing a required argument", None, None),
    ("np.array(x, ndmin=2**31)", "PSC120", "at most 64 axes", None, None),
    ("np.diff(x, n=10**20)", "PSC116", "too large", None, None),
    ("x * len(np.triu_indices(2**31))", "PSC116", "too large", None, None),
    ("x and 5", "PSC121", "`and`", "np.logical_and(x, 5)", "np.logical_and(x, 5)"),
    ("not (0 or x)", "PSC121", "`not`", "np.logical_not(0 or x)", "np.logical_not(0 or x)"),
    ("a, b = R(x, x); a + b", "PSC101", "no items", "`r.u`, `r.v`", "r = R(x, x); r.u + r.v"),
    ("x.flat[0:0]", "PSC103", "`flat`", "x.ravel()", "x.ravel()[0:0]"),
    (
        *("x[1 - x.shape[0] :]", "PSC320", "n >= 2"),
        *("assert x.shape[0] >= 2", "assert x.shape[0] >= 2; x[1 - x.shape[0] :]"),
    ),
    (
        *("x[[True, False, True]]", "PSC320", "n == 3"),
        *("assert x.shape[0] == 3", "assert x.shape[0] == 3; x[[True, False, True]]"),
    ),
    (
        *("np.sum(x, where=x > 0)", "PSC120", "no keyword `where` here, which NumPy's"),
        *("np.sum(np.where(mask, x, 0))", "np.sum(np.where(x > 0, x, 0))"),
    ),
    (
        *("np.mean(x, where=x > 0)", "PSC120", "no keyword `where` here"),
        *(
            "np.sum(np.where(mask, x, 0)) / np.sum(mask).astype(x.dtype)",
            "np.sum(np.where(x > 0, x, 0)) / np.sum(x > 0).astype(x.dtype)",
        ),
    ),
    (
        *("np.outer(x, x).ravel(order='A')", "PSC120", "takes the order `C` or `F`"),
        *("say which axis is counted first", "np.outer(x, x).ravel(order='F')"),
    ),
    (
        "np.add(x, x, casting='no')",
        "PSC120",
        "no keyword `casting`",
        "leave it out",
        "np.add(x, x)",
    ),
    ("np.add(x, x, nothing=3)", "PSC120", "unexpected keyword", None, None),
    ("math.prod(x)", "PSC123", "`math.prod`", "np.prod(x, axis=0)", "np.prod(x, axis=0)"),
    (
        *("np.zeros(math.isqrt(x.shape[0]))", "PSC317", "a number made of sizes, which is no size"),
        *("`k: psc.Static[int]`", None),
    ),
    (
        *("np.zeros(int(0.9 * x.shape[0]))", "PSC317", "a number made of sizes, which is no size"),
        *("`k: psc.Static[int]`", None),
    ),
    ("np.zeros(int(x[0]))", "PSC317", "depends on the values in an array", None, None),
    (
        *("x[int(0.9 * x.shape[0])]", "PSC112", "`np.asarray(int(0.9 * x.shape[0]))` takes"),
        *(None, "x[np.asarray(int(0.9 * x.shape[0]))]"),
    ),
    ("math.sqrt(x)", "PSC123", "`math.sqrt`", "np.sqrt", "np.sqrt(x)"),
    ("x + int(x)", "PSC123", "`int`", "x.astype(int)", "x + x.astype(int).astype(np.float32)"),
    ("x * round(x, 1)", "PSC123", "`round`", "np.round(x, digits)", "x * np.round(x, 1)"),
    (
        *("i = np.argmax(x); np.sort(x[:i])", "PSC317", "a slice with a computed bound"),
        "`np.where(np.arange(x.shape[0]) < i, x, 0)`",
        "i = np.argmax(x); np.sort(np.where(np.arange(x.shape[0]) < i, x, 0))",
    ),
    (
        *("x = x.copy(); x[x > 0] = x[x < 0]; x", "PSC317", "elements that two masks select"),
        "`np.where(mask, …, …)` takes values for all places",
        "x = np.where(x > 0, np.where(x > 0, x, 1) ** -1.5, x); x",
    ),
    (
        *("a = [x, x]; a[0] += x; a[0]", "PSC205", "`a[0] +=` changes an array"),
        "take a `.copy()` first",
        "a = [x.copy(), x]; a[0] += x; a[0]",
    ),
    (
        *("a = {'u': x}; R(a, x); a['u'] = -x; a['u']", "PSC205", "a store into `a['u']`"),
        "a = {**a, 'u': …}",
        "a = {'u': x}; R(a, x); a = {**a, 'u': -x}; a['u']",
    ),
    (
        *("R(x, x) + R(x, x)", "PSC110", "`+` has no meaning for a record"),
        *("give the class a method with a name", None),
    ),
    ("x * Mode.A", "PSC110", "`Mode.A`", "`.value`", "x * Mode.A.value"),
    ("Mode(9)", "PSC111", "the class `Mode`", "name a member: `Mode.NAME`", None),
    (
        *("np.concatenate(x, x)", "PSC120", "takes its arrays as one list"),
        *("`np.concatenate([x, x])`", "np.concatenate([x, x])"),
    ),
    ("hasattr(x, 'shape')", "PSC101", "`hasattr`", "leave it out", None),
    (
        "a = [x]; R(a, x); a.append(x); x",
        "PSC205",
        "`list.append`",
        "a = a + [item]",
        "a = [x]; R(a, x); a = a + [x]; x",
    ),
    ("np.ix_(x > 2)", "PSC317", "`np.ix_` of a mask", "np.ix_([0, 2], [1])", None),
)


@pytest.mark.parametrize(
    ("body", "code", "said", "helped", "followed"), REFUSED, ids=[each[0] for each in REFUSED]
)
def test_help_that_is_followed(
    body: str, code: str, said: str, helped: str | None, followed: str | None
) -> None:
    found = findings(body)
    assert found[0].code == code
    assert said in found[0].message()
    if helped is not None:
        assert helped in (found[0].advice() or "")
    if followed is not None:
        assert [each.message() for each in findings(followed)] == []


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_reductions_of_what_a_mask_selects(name: str, dtype: type[Any]) -> None:
    x = np.array([3, -1, 2, 0, -5]).astype(dtype)
    m = x < 2
    limits: Any = (-np.inf, np.inf)
    if dtype is np.int32:
        limits = (np.iinfo(dtype).min, np.iinfo(dtype).max)
    text = WRITTEN[name].format(x="x", m="m", low=limits[0], high=limits[1])
    ours = eval(text, {"np": np, "x": x, "m": m, "inf": np.inf})
    function: Any = len if name == "len" else getattr(np, name)
    assert ours == function(x[m])


def test_select_and_choose_as_numpy() -> None:
    x = np.array([3.0, -1.0, 2.0])
    places = np.array([-4, 5, 1])
    check("numpy.select", [x > 2], [[1.0, 2.0, 3.0]], symbolic=False)
    check("numpy.select", [x > 2, x > 0], [x, [1.0, 2.0, 3.0]], [4.0, 5.0, 6.0], symbolic=False)
    check("numpy.choose", places, [x, -x, 2 * x], mode="wrap")
    check("numpy.choose", places, [x, -x, 2 * x], mode="clip")
    refused(BadArguments, "numpy.choose", places, [x, -x], mode="x")


def test_dtypes_are_promoted_as_numpy_has_it() -> None:
    for left in dtypes.ALL:
        for right in dtypes.ALL:
            pair = [numpy_dtypes.to_numpy(each) for each in (left, right)]
            for name in ("promote_types", "result_type"):
                meaning: Any = MEANINGS[f"numpy.{name}"]
                try:
                    wanted = np.promote_types(*pair)
                except TypeError:
                    with pytest.raises(Failure):
                        meaning(left, right)
                    continue
                found = meaning(left, right)
                assert numpy_dtypes.to_numpy(found) == wanted


MADE = """
import pscdsl as psc
from pscdsl import f32


def make(k: float):
    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return k * x

    return f


class Box:
    @psc.kernel
    def g(x: f32["n"]) -> f32["n"]:
        return x
"""


def test_kernels_that_are_made_where_nothing_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("made.py").write_text(MADE)
    for name in ("make.f", "Box.g"):
        assert main(["ir", f"made.py:{name}"]) == 2
        maker = name.partition(".")[0]
        said = capsys.readouterr().err
        assert f"kernel `{name}` is made inside `{maker}`, and nothing is run here" in said
    main(["check", "made.py"])
    assert "`Box.g` is not checked: it is defined inside the class `Box`" in capsys.readouterr().out


RECORDS = """
from typing import NamedTuple
import pscdsl as psc
from pscdsl import f32


class Pair(NamedTuple):
    u: f32["n"]

    def twice(self):
        return self.u + self.u


@psc.kernel
def f(pair: Pair) -> f32["n"]:
    return pair.twice()
"""


def test_records_of_a_module_that_is_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "nowhere_to_be_found.py"
    path.write_text(RECORDS)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    x = np.ones(3, np.float32)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(psc.CheckError, match=f"of `{path.stem}`, which is not in `sys.modules`"):
        module.f(module.Pair(x))
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    np.testing.assert_array_equal(module.f(module.Pair(x)), x + x)
