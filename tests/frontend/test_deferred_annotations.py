"""Annotations that Python 3.14 evaluates when they are first read (PEP 649 and 749)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.python_places import in_file, python, results

HEAD = """
import dataclasses, inspect, typing
from typing import TYPE_CHECKING, NamedTuple, TypedDict
import numpy as np
import pscdsl as psc
from pscdsl import f32, f64

x = np.ones(1, np.float32)

def attempt(kernel, *args):
    try:
        print('RESULT', kernel(*args))
    except (psc.CheckError, psc.ArgumentError) as error:
        found = getattr(error, 'diagnostics', ())
        print('RESULT', [each.code for each in found] or type(error).__name__)
"""

PROGRAMS = {
    "a class that is defined below": (
        """
@psc.kernel
def f(p: P) -> f32["n"]:
    return p.plus(p).w
class P(psc.Record):
    w: f32["n"]
    q: Q
    def plus(self, other: P) -> P:
        return P(self.w + other.w, self.q)
class Q(psc.Record):
    v: f32["n"]
attempt(f, P(x, Q(x)))
""",
        ["[2.]"],
    ),
    "every kind of record": (
        """
class N(NamedTuple):
    w: f32["n"]
    p: P
class T(TypedDict):
    w: f32["n"]
    p: P
@dataclasses.dataclass(frozen=True)
class D:
    w: f32["n"]
    p: P
    def inner(self) -> P:
        return self.p
class C(psc.Record):
    w: f32["n"]
    if len("abc") == 3:
        p: P
class P(NamedTuple):
    v: f32["n"]
@psc.kernel
def f(n: N, t: T, d: D, c: C) -> f32["n"]:
    return n.w + n.p.v + t["w"] + t["p"].v + d.w + d.inner().v + c.w + c.p.v
attempt(f, N(x, P(x)), T(w=x, p=P(x)), D(x, P(x)), C(x, P(x)))
""",
        ["[8.]"],
    ),
    "a name for type checkers alone": (
        """
if TYPE_CHECKING:
    from records import P
@psc.kernel
def f(p: P) -> f32["n"]:
    return p.w * 3
import records
attempt(f, records.P(x))
""",
        ["[3.]"],
    ),
    "a class that is defined again": (
        """
class P(psc.Record):
    w: f32["n"]
@psc.kernel
def read(p: P) -> f32["n"]:
    return p.w
@psc.kernel
def unread(p: P) -> f32["n"]:
    return p.w
attempt(read, P(x))
Old = P
class P(psc.Record):
    w: f32["n"]
for kernel in read, unread:
    attempt(kernel, Old(x))
    attempt(kernel, P(x))
""",
        ["[1.]", "[1.]", "ArgumentError", "ArgumentError", "[1.]"],
    ),
    "names around a function": (
        """
def factory(k):
    class P(psc.Record):
        w: f32["n"]
    Row = f32["n"]
    @psc.kernel
    def f(p: P, r: Row) -> Row:
        return p.w * k + r
    return f, P
f, P = factory(2)
attempt(f, P(x), x)
""",
        ["[3.]"],
    ),
    "what cannot be evaluated": (
        """
@psc.kernel
def divided(x: f32[1 / 0]) -> f32["n"]:
    return x
@psc.kernel
def undefined(x: Nowhere) -> f32["n"]:
    return x
attempt(divided, x)
attempt(undefined, x)
""",
        ["['PSC104', 'PSC110']", "['PSC102']"],
    ),
    "another function's annotations": (
        """
def f(x: f32["n"]) -> f32["n"]:
    return x
def g(x: f64["n"]) -> f64["n"]:
    return x
f.__annotate__ = g.__annotate__
attempt(psc.kernel(f), x)
""",
        ["['PSC907']"],
    ),
    "signatures": (
        """
@psc.kernel
def f(p: P) -> f32["n"]:
    return p.w
class P(psc.Record):
    w: f32["n"]
print('RESULT', inspect.signature(f).parameters['p'].annotation is P)
print('RESULT', typing.get_type_hints(f)['p'] is P)
""",
        ["True", "True"],
    ),
}


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated at once")
@pytest.mark.parametrize("name", PROGRAMS)
def test_deferred_annotations_mean_what_they_do_in_python(name: str, tmp_path: Path) -> None:
    program, expected = PROGRAMS[name]
    records = (
        'import pscdsl as psc\nfrom pscdsl import f32\nclass P(psc.Record):\n    w: f32["n"]\n'
    )
    (tmp_path / "records.py").write_text(records, encoding="utf-8")
    wanted = [f"RESULT {each}" for each in expected]
    output = in_file(HEAD + program, tmp_path)
    assert results(output) == wanted, output
    warm = python("program.py", folder=tmp_path)
    assert results(warm) == wanted, warm


def test_annotations_that_were_changed_in_place_are_refused(tmp_path: Path) -> None:
    program = """
def f(x: f32["n"]) -> f32["n"]:
    return x
f.__annotations__["x"] = f64["n"]
attempt(psc.kernel(f), x)
"""
    assert results(in_file(HEAD + program, tmp_path)) == ["RESULT ['PSC907']"]
