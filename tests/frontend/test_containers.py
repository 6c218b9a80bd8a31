"""Changes of lists, dicts and sets beside CPython: each method, and random programs of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pscdsl._src.checker.check import check_source, deep_stack
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.modules.kernels import find_kernels
from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.ir.program import evaluate
from pscdsl.typing.diagnostics import Failure
from tests.fuzz.container_programs import generate
from tests.fuzz.numpy_differences import PROBLEMS, tried
from tests.support.share import due

SEEDS = 40

LISTS = (
    *("a.append(7)", "a.append('t')", "a.append((1, 2))", "a.append([1])", "a.append()"),
    *("a.append(1, 2)", "a.extend([7, 8])", "a.extend((7,))", "a.extend('uv')", "a.extend(a)"),
    *("a.extend(range(3))", "a.extend({5: 6})", "a.extend(zip([1], [2]))", "a.extend(7)"),
    *("a.insert(0, 7)", "a.insert(-1, 7)", "a.insert(99, 7)", "a.insert(-99, 7)"),
    *("a.insert(1.0, 7)", "a.insert(True, 7)", "a.pop()", "a.pop(0)", "a.pop(-2)", "a.pop(3)"),
    *("a.pop(-4)", "a.pop('u')", "a.pop(True)", "a.remove(1)", "a.remove(9)", "a.remove(2.0)"),
    *("a.clear()", "a.reverse()", "a.sort()", "a.sort(reverse=True)", "a.sort(key=lambda v: -v)"),
    *("a.sort(lambda v: v)", "a.append('t'); a.sort()", "a.sort(key=str)", "a += [7]", "a += (7,)"),
    *("a += 'uv'", "a += 7", "a *= 2", "a *= 0", "a *= -1", "a *= 1.5", "a[0] = 7", "a[-3] = 7"),
    *("a[3] = 7", "a['u'] = 7", "a[1:] = [7]", "a[:] = a", "a[1:1] = [7, 8]", "a[::2] = [7, 8]"),
    *("a[::2] = [7]", "a[::-1] = a", "a[5:] = 'uv'", "a[0:2] = ()", "a[1:] = 7", "del a[0]"),
    *("del a[-1]", "del a[3]", "del a[1:]", "del a[::2]", "del a[:]", "del a['u']", "a[0] += 7"),
    *("a[0] *= 'u'", "a[3] += 7", "a[0], a[1] = a[1], a[0]", "a[0] = a[1] = 7", "b = a; b.pop()"),
    *("b = a[:]; b.pop()", "b = list(a); b.pop()", "b = a.copy(); b.pop()", "b = [*a]; b.pop()"),
    *(
        "b = a + []; b.pop()",
        "b = a * 1; b.pop()",
        "b = sorted(a); b.pop()",
        "b = (a,); b[0].pop()",
    ),
    *("b = {'u': a}; b['u'].pop()", "b = [a] * 2; b[0].append(7)", "(b := a).append(7)"),
    *("a, *b = a; b.append(7); a = b", "a[0], *b = a; b.append(8)", "a = a.append(7)"),
    *("a[len(a) - 1] = a.pop()", "a[-1] += a.pop()", "a.append(a.pop(0))", "a.insert(a.pop(), 7)"),
    *("for v in list(a): a.append(v)", "for i, v in enumerate(a): a[i] = v * 2"),
    *("for v in a[:]: a.remove(v)", "b = [a.pop() for _ in range(2)]", "f = a.append; f(7); f(8)"),
    *("def f(v): v.append(7)\n    f(a)", "def f(v):\n        v = v + [7]\n    f(a)"),
    *("def f(*v): v[0].append(7)\n    f(a)", "def f(**v): v.pop('u')\n    f(u=a)"),
    *("while len(a) > 1: a.pop()", "while a: a.pop()"),
)
DICTS = (
    *("d['u'] = 7", "d['w'] = 7", "d[1] = 7", "d[(1, 2)] = 7", "d[[1]] = 7", "d[None] = 7"),
    *(
        "del d['u']",
        "del d['w']",
        "d.update(u=7)",
        "d.update({'w': 7}, u=8)",
        "d.update([('w', 7)])",
    ),
    *("d.update(d)", "d.update()", "d.update(7)", "d.update([(1, 2, 3)])", "d.update(['uw'])"),
    *("d.setdefault('u', 7)", "d.setdefault('w', 7)", "d.setdefault('w')", "d.setdefault()"),
    *("b = d.setdefault('w', []); b.append(7)", "d.pop('u')", "d.pop('w')", "d.pop('w', 7)"),
    *(
        "d.pop('w', default=7)",
        "d.popitem()",
        "d.clear()",
        "d.clear(); d.popitem()",
        "d |= {'w': 7}",
    ),
    *("d |= [('w', 7)]", "d |= 7", "d['u'] += 7", "d['w'] += 7", "d['u'], d['v'] = d['v'], d['u']"),
    *("b = d; b['w'] = 7", "b = dict(d); b['w'] = 7", "b = d.copy(); b['w'] = 7"),
    *("b = {**d}; b['w'] = 7", "b = d | {}; b['w'] = 7", "d[True] = 7; d[1] = 8; d[1.0] = 9"),
    *("for k in d: d[k] = 7", "for k, v in d.items(): d[k] = v * 2", "for k in list(d): del d[k]"),
    *("d = {k: v for k, v in d.items() if v > 1}", "d.pop('u'); d['u'] = 7"),
)
SETS = (
    *("s.add(7)", "s.add(1)", "s.add(1.0)", "s.add([1])", "s.discard(1)", "s.discard(9)"),
    *("s.remove(1)", "s.remove(9)", "s.clear()", "s.update([7, 8])", "s.update({7}, (8,))"),
    *("s.update(7)", "s.intersection_update({1, 9})", "s.difference_update([1])"),
    *(
        "s.symmetric_difference_update({1, 9})",
        "s |= {7}",
        "s &= {1, 9}",
        "s -= {1}",
        "s ^= {1, 9}",
    ),
    *(
        "s |= [7]",
        "b = s; b.add(7); b = len(b)",
        "b = set(s); b.add(7); b = 1",
        "b = s | set(); b.add(7); b = 1",
    ),
)
BODY = """\
def f(kernel):
    a = [3, 1, 2]
    d = {'u': 1, 'v': 2}
    s = {1, 2}
    b = f = None
    BODY
    return SHOWN
"""
SHOWN = "repr([a, b if f is None else None, list(d.items()), sorted(s)])"


def by_python(body: str) -> str | None:
    """What CPython leaves; None if it raises."""
    names: dict[str, Any] = {}
    text = BODY.replace("BODY", body).replace("SHOWN", SHOWN)
    try:
        exec(text, names)
        found: str = names["f"](None)
    except Exception:  # whatever it is
        return None
    return found


def by_kernel(body: str) -> str | None:
    """What a kernel leaves, as it is known while checking; None if it is refused."""
    wanted = by_python(body)
    text = BODY.replace("def f(kernel):", '@psc.kernel\ndef kernel(x: f32["n"]):')
    text = text.replace("BODY", body).replace("SHOWN", f"x * ({SHOWN} == {wanted!r})")
    source = Source("k.py", f"import pscdsl as psc\nfrom pscdsl import f32\n\n\n{text}")
    definition: Definition = dict(find_kernels(Project().add(source, None), []))["kernel"]
    try:
        choices = definition.signature.choices()
        assert choices is not None
        (choice,) = choices
        function = definition.instance(choice)
    except Failure as failure:
        return "PSC999" if any(each.code == "PSC999" for each in failure.diagnostics) else None
    (found,) = evaluate(function, {"n": 1}, [np.ones(1, np.float32)])
    return wanted if found[0] else "something else"


@pytest.mark.parametrize("body", [*LISTS, *DICTS, *SETS])
def test_a_change_is_pythons_or_refused(body: str) -> None:
    wanted, found = by_python(body), by_kernel(body)
    assert found == wanted or found is None


def test_most_changes_that_python_makes_are_accepted() -> None:
    refused = [
        body
        for body in (*LISTS, *DICTS, *SETS)
        if by_python(body) is not None and by_kernel(body) is None
    ]
    assert set(refused) <= REFUSED


REFUSED: set[str] = set()
"""What Python does, and a kernel does not."""


@pytest.mark.parametrize("seed", range(due(SEEDS, 2)))
def test_programs_are_refused_or_have_pythons_results(seed: int) -> None:
    with deep_stack():
        verdict = tried(generate(seed), seed)
    assert verdict.kind not in PROBLEMS, verdict.detail


def codes(body: str) -> set[str]:
    """What is found in a kernel."""
    text = f"import numpy as np\nimport pscdsl as psc\nfrom pscdsl import f64\n\n\n{body}"
    return {found.code for found in check_source(text, "k.py").diagnostics}


def test_a_value_of_a_forgotten_trial_is_built_again() -> None:
    body = """\
@psc.kernel
def first(x: f64["n"]):
    items = [np.zeros(len(x))[::-1]]
    for v in x:
        items[0] = items[0] * 2
    return items[0] * 1.0


@psc.kernel
def viewed(x: f64["n"]):
    items = [x.copy()[::-1]]
    items[0][::-1] = x.sum()
    for v in x:
        items[0] = items[0] - x
    return items[0]


@psc.kernel
def other(x: f64["n"]):
    y = np.ones(len(x))
    t = 0
    while True:
        t += 1
        if t > 3 or np.sum(y) == y[-1]:
            break
    return y
"""
    assert codes(body) == set()
