"""Every parameter of every library function with every kind of value: taken, or refused in words.

A part of the calls is tried here; `make fuzz` tries all of them.
"""

from __future__ import annotations

import inspect
import itertools
import random
import re
from typing import Any

import numpy as np
import pytest

from pscdsl._src.frontend.modules.known import register_all
from pscdsl._src.frontend.values import Poison
from pscdsl._src.language.meanings import MEANINGS, Meaning
from tests.frontend.test_static_walks import KINDS, Elaboration
from tests.support.share import some

pytestmark = pytest.mark.quick_code(but=4)

register_all()

MEANT = {
    name.replace("numpy.", "np.", 1).replace("pscdsl.", "psc.", 1): meaning
    for name, meaning in sorted(MEANINGS.items())
    if isinstance(meaning, Meaning) and name.startswith(("numpy.", "pscdsl."))
}
OTHERS = {
    name.removeprefix("builtins.").replace("pscdsl.", "psc.", 1)
    for name, meaning in MEANINGS.items()
    if not isinstance(meaning, Meaning)
    and name.startswith(("builtins.", "math.", "operator.", "functools.", "pscdsl."))
}
MORE = (
    *("np", "psc.Num", "psc.f32", "x.sum", "x.view", "slice(None, n)", "{'a': x}", "np.mean"),
    *("np.linalg", "x.shape", "R(x)", "(q for q in (1, 2))", "[]", "np.dtype('f4')", "x > 0"),
    *("np.arange(3)", "np.iinfo(np.int32)", "NamedTuple", "-1", "10**20", "2**31", "1e400"),
    *("'ab,bc->ac'", "[[1.0, 2.0, 3.0]]", "[True, False]"),
)
VALUES = (*KINDS, *MORE)
FORMS = ("{}", "[{}]", "[x, {}]", "[[{}, x], [x, x]]", "({}, {})")
LIKELY = ("x", "[x, x]", "0", "2", "(1,)", "'linear'", "lambda q: q", "x.dtype", "x[0]", "(2, 3)")
PARTS = 8


def call(name: str, given: dict[inspect.Parameter, str]) -> str:
    """A call with some arguments, by keyword where they may be left out."""
    arguments: list[str] = []
    for parameter, text in given.items():
        required = parameter.default is parameter.empty
        by_place = parameter.kind in (0, 2) or (parameter.kind == 1 and required)
        arguments.append(text if by_place else f"{parameter.name}={text}")
    return f"{name}({', '.join(arguments)})"


def accepted(ours: Elaboration, name: str, meaning: Meaning) -> dict[inspect.Parameter, str]:
    """Required arguments with which a function is accepted, if they are found soon."""
    required = [
        each
        for each in meaning.signature.parameters.values()
        if each.name != "here" and each.default is each.empty and each.kind in (0, 1, 3)
    ]
    for texts in itertools.islice(itertools.product(LIKELY, repeat=len(required)), 60):
        given: dict[inspect.Parameter, str] = dict(zip(required, texts, strict=True))
        if not isinstance(ours.value(call(name, given)), Poison):
            return given
    return dict.fromkeys(required, "x")


@pytest.mark.parametrize("part", range(PARTS))
def test_every_parameter_with_every_kind(part: int) -> None:
    tried = 0
    for name, meaning in list(MEANT.items())[part::PARTS]:
        ours = Elaboration()  # a program that grows makes the next call slower
        given = accepted(ours, name, meaning)
        for parameter in meaning.signature.parameters.values():
            if parameter.name == "here" or parameter.kind is parameter.VAR_KEYWORD:
                continue
            for form, value in some(itertools.product(FORMS, VALUES), 150, (name, parameter.name)):
                text = form.format(value, value)
                ours.value(call(name, {**given, parameter: text}))
                tried += 1
    assert tried > 100


def test_every_parameter_outside_of_kernels() -> None:
    ours, rng = Elaboration(), random.Random(2)
    ours.session.program = None
    values = [each for each in VALUES if not re.search(r"\bx\b", each)]
    for name, meaning in MEANT.items():
        for parameter in meaning.signature.parameters.values():
            if parameter.name == "here" or parameter.kind not in (0, 1, 3):
                continue
            for value in some(values, 20, (name, parameter.name)):
                given = {
                    each: "[1.0, 2.0]"
                    for each in meaning.signature.parameters.values()
                    if each.default is each.empty and each.kind in (0, 1, 3) and each.name != "here"
                }
                ours.value(call(name, {**given, parameter: rng.choice(FORMS[:2]).format(value)}))


OF_PYTHON = ("{f}({a})", "{f}({b}, {a})", "{f}({a}, {b}, x)", "{f}(*{a})", "{f}()", "{f}({a}, k=1)")


def test_functions_of_pythons_with_every_kind() -> None:
    ours, rng = Elaboration(), random.Random(1)
    for name in sorted(OTHERS):
        for form in OF_PYTHON:
            for value in some(VALUES, 20, (name, form)):
                ours.value(form.format(f=name, a=value, b=rng.choice(("x", "0", "lambda q: q"))))


def test_keywords_that_numpy_has() -> None:
    ours, found = Elaboration(), 0
    for name, meaning in MEANT.items():
        function: Any = np if name.startswith("np.") else None
        for each in name.split(".")[1:]:
            function = getattr(function, each, None)
        parameters = meaning.signature.parameters
        if function is None or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            continue
        try:
            theirs = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            continue
        for keyword in theirs:
            known = (*parameters, "out", "order", "like")  # `like=None` changes nothing
            if keyword.kind not in (1, 3) or keyword.name in known:
                continue
            assert isinstance(ours.value(f"{name}(x, {keyword.name}=None)"), Poison)
            said = ours.session.findings[0].message()
            assert said.endswith(
                f"has no keyword `{keyword.name}` here, which NumPy's function has"
            )
            found += 1
    assert found > 50
