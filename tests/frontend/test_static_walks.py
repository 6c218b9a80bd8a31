"""Every kind of static value with every operator, function and attribute: exact, or refused.

What the front end gives for the sizes `n` and `m` is compared with what CPython gives for numbers
in their place.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import inspect
import itertools
import math
import operator
import re
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pscdsl._src.frontend.interpreter.expressions import evaluate
from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.python_library import FUNCTIONS
from pscdsl._src.frontend.modules.known import known_attribute, known_module
from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.values import Once, Poison
from pscdsl._src.ir.builder import Program, Value
from pscdsl._src.ir.program import Var
from pscdsl._src.language.meanings import MEANINGS
from pscdsl.numpy import methods
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.dims import variable
from pscdsl.typing.dtypes import F32
from tests.fuzz.static_differences import SIZES, NotComparable, at_sizes, of_python
from tests.support.share import due, some

MODULE = """
import dataclasses, enum, functools, math, operator
from typing import NamedTuple
import numpy as np
import pscdsl as psc
from pyrsistent import PRecord, field, m as pm, v as pv


class R(psc.Record):
    u: int
    v: tuple = (1, 2)
    def g(self, k=2): return self.u + k


class T(NamedTuple):
    u: int
    v: int = 3


@dataclasses.dataclass(frozen=True)
class D:
    u: int


class C:
    r = 3
    @staticmethod
    def s(k): return k + 1


class Q(PRecord):
    u = field()


class Mode(enum.Enum):
    A = 1
    B = "b"


class Level(enum.IntEnum):
    A = 1
    B = 2


def twice(k=1): return 2 * k
"""
KINDS = (
    *("0", "3", "True", "2.5", "2.0", "1j", "math.nan", "'a'", "'{}%s'", "b'a'", "None", "..."),
    *("()", "(1, 2)", "[2, 1]", "{'a': 1}", "{1: 2}", "{1, 2}", "frozenset((2,))", "range(3)"),
    *("slice(1)", "n", "n * m", "n - 3", "n / 2", "n > 2", "(n, 1)", "[n]", "{'a': n}", "(x,)"),
    *("n & 3", "(n & 3) > 2", "math.sqrt(n)"),
    *("R(1)", "R(n)", "T(2)", "T(n)", "D(1)", "R", "C", "T", "Mode", "Mode.A", "Level.B", "twice"),
    *("len", "np.sin", "np.float32", "x.dtype", "math", "functools.partial(twice, 1)", "R(1).g"),
    *("x", "zip((1, 2), (3, 4))", "Q(u=1)", "pm(a=1)", "pv(1, 2)", "lambda k: k", "'%d'"),
    *("{'a': 1}.keys()", "{1: n}.items()", "pm(a=1).values()"),
)
"""Expressions of every kind of value."""
BINARY = """
    a + b; a - b; a * b; a / b; a // b; a % b; a ** b; a @ b; a & b; a | b; a ^ b; a << b;
    a >> b; a == b; a != b; a < b; a <= b; a > b; a >= b; a in b; a not in b; a is b;
    a is not b; a and b; a or b; a[b]; a(b); a[b:]; max(a, b); min(a, b); divmod(a, b);
    pow(a, b); isinstance(a, b); sum(a, b); {a: 1, b: 2}; {a: 1}.get(b); (a, b); [*a, *b];
    a < b < a; (a,) == (b,); map(a, b); dict(zip(a, b)); range(a, b); slice(a, b);
    a if b else b; not a == b; a(k=b); f'{a:{b}}'; getattr(a, b); round(a, b);
    sorted(a, key=b); max(a, key=b); (a,) + b; a.get(b); a.index(b); a.count(b); a.join(b);
    a.format(b); math.pow(a, b); {a, b}; operator.add(a, b); math.gcd(a, b);
    functools.reduce(a, b); dict(a, k=b); a(**b)
"""
UNARY = """
    -a; +a; ~a; not a; a(); a[0]; a[:1]; a['a']; (*a,); {**a}; f'{a}'; f'{a!r}';
    [q for q in a]; {q for q in a}; {q: 1 for q in a}; str(a); '%s' % a; '{}'.format(a);
    a is None; a is True; 1 if a else 2; (lambda q: q)(a); a.u; a._replace(u=1);
    a.replace(u=1); dataclasses.replace(a, u=1); dataclasses.asdict(a); zip(a); a == a;
    a in (a,); [a].index(a); (a, a).count(a); len({a, a}); max(a, default=1); a is a;
    list(zip(a, a)); list(enumerate(a, 1)); tuple(reversed(a)); twice(*a); twice(**a); a.A;
    a['A']; a.r; a.s(1); functools.partial(a)(); callable(a); a.set('u', 2)
"""
if sys.version_info >= (3, 14):
    BINARY += """;
    map(a, b, strict=True); functools.partial(a, functools.Placeholder, b)(1);
    functools.reduce(a, b, initial=1); functools.reduce(a, (1, 2), initial=b);
    functools.partial(twice, functools.Placeholder, a)(b); operator.is_none(a)
    """
if sys.version_info >= (3, 15):
    BINARY += "; [*q for q in (a, b)]; {*q for q in (a, b)}; {**q for q in (a, b)}"
    UNARY += "; [*q for q in a]; {*q for q in a}; {**q for q in a}; tuple((*q for q in a))"
BINARY_FORMS, UNARY_FORMS = (
    tuple(each.strip() for each in text.split(";")) for text in (BINARY, UNARY)
)
FUNCTION_NAMES = [
    name
    for name in dir(builtins)
    if not name.startswith("_") and name not in ("copyright", "credits", "license", "quit", "exit")
]


INTERNAL = re.compile(
    r"object at|0x[0-9a-f]|<locals>|<(?:function|class|meaning|method|error)\b|\b_\w+\(\)|"
    r"\w_\(\)|\b(?:Value|Weak|Literal|Var|Dim|Closure|KnownModule|Builtin|StaticFunction|Marker|"
    r"External|Undecided|Alias|Once|View|Poison|Partial|Cached|BoundMethod|EnumMember|DTypeClass|"
    r"Record(?:Class|Value|Name)|MapValue|VectorValue|StaticModule|Frame|Source|Fact)\("
)
"""What no message says: reprs of objects of ours, and names of our functions."""


class Elaboration:
    """One frame of a kernel, in which expressions are evaluated one after the other."""

    def __init__(self) -> None:
        module = Project().add(Source("kinds.py", MODULE), None)
        state = Program(Assumptions())
        self.session = Session(state)
        main = module.lookup("twice")
        assert isinstance(main, Closure)
        self.frame = Frame(self.session, module.source, module, None, None, main)
        array = ArrayType(F32, (variable("n"), variable("m")))
        x = Value(state.current, Var(array, "x"))
        self.frame.names = {"n": variable("n"), "m": variable("m"), "x": x}

    def value(self, expression: str, **names: Any) -> Any:
        """What an expression stands for; Poison if it is refused, with findings of ours alone."""
        session = self.session
        session.steps = session.data = 0
        session.findings.clear()
        self.frame.names.update(names)
        self.frame.source = Source("kinds.py", expression)
        node = self.frame.source.tree.body[0]
        assert isinstance(node, ast.Expr)
        value = evaluate(self.frame, node.value)
        for each in session.findings:
            said = (each.message(), each.label(), each.help() or "")
            assert each.code != "PSC999", (expression, said)
            assert not any(map(INTERNAL.search, said)), (expression, said)
        assert isinstance(value, Poison) == bool(session.findings), expression
        return value


@pytest.fixture(name="ours", scope="module")
def _ours() -> Elaboration:
    return Elaboration()


@functools.cache
def namespace() -> dict[str, Any]:
    found: dict[str, Any] = {"__name__": "kinds"}
    exec(compile(MODULE, "kinds.py", "exec", dont_inherit=True), found)
    return found


def python(expression: str, sizes: tuple[int, int], **kinds: str) -> Any:
    """What CPython makes of an expression; a BaseException that it raises is given."""
    n, m = sizes
    names = {**namespace(), "n": n, "m": m, "x": np.ones((n, m), np.float32)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            names.update({name: eval(kind, names) for name, kind in kinds.items()})
            return eval(expression, names)
        except Exception as error:
            return error


def difference(found: Any, expression: str, **kinds: str) -> str | None:
    """Why a value is not what CPython gives; None if it is, or if the two cannot be compared."""
    if isinstance(found, Once):
        found = list(found.take())
        expression = f"list({expression})"
    for sizes in SIZES:
        real = python(expression, sizes, **kinds)
        if isinstance(real, Exception):
            return f"Python raises {type(real).__name__}: {real}"
        try:
            mine = at_sizes(found, dict(zip("nm", sizes, strict=True)))
            theirs = of_python(real)
        except NotComparable:
            continue
        if repr(mine) != repr(theirs):
            return f"{mine!r} is not {theirs!r} for {sizes}"
    return None


OF_ONE, OF_TWO = 3, 20
"""Of the operands one of so many is tried."""


def walk(ours: Elaboration, expressions: tuple[str, ...], names: str) -> tuple[int, list[str]]:
    """How many of some expressions are answered for kinds of operands, and the wrong ones."""
    answered, wrong = 0, list[str]()
    cases = itertools.product(itertools.product(KINDS, repeat=len(names)), expressions)
    for kinds, expression in some(cases, OF_ONE if len(names) == 1 else OF_TWO, expressions[0]):
        operands = dict(zip(names, kinds, strict=True))
        values = {name: ours.value(kind) for name, kind in operands.items()}
        found = ours.value(expression, **values)
        if isinstance(found, Poison) or (expression[:2] == "a(" and kinds[0] == "x.dtype"):
            continue  # a dtype and its class are one thing here
        answered += 1
        why = difference(found, expression, **operands)
        if why is not None:
            given = ", ".join(f"{name} = {kind}" for name, kind in operands.items())
            wrong.append(f"{expression} with {given}: {why}")
    return answered, wrong


def test_every_kind_is_a_value(ours: Elaboration) -> None:
    for kind in KINDS:
        assert not isinstance(ours.value(kind), Poison), kind
        assert difference(ours.value(kind), kind) is None


def test_kinds_and_protocols(ours: Elaboration) -> None:
    answered, wrong = walk(ours, UNARY_FORMS, "a")
    assert not wrong, "\n".join(wrong)
    assert answered > due(400, OF_ONE)


def test_kinds_and_functions(ours: Elaboration) -> None:
    expressions = tuple(
        f"{name}({rest})" for name in FUNCTION_NAMES for rest in ("a", "a, 1", "*a")
    )
    answered, wrong = walk(ours, expressions, "a")
    assert not wrong, "\n".join(wrong)
    assert answered > due(500, OF_ONE)


@pytest.mark.parametrize("place", range(8))
def test_kinds_and_operators(ours: Elaboration, place: int) -> None:
    answered, wrong = walk(ours, BINARY_FORMS[place::8], "ab")
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong[:40])
    assert answered > due(500, OF_TWO)


def test_kinds_and_attributes(ours: Elaboration) -> None:
    wrong, answered = list[str](), 0
    names = {name for kind in KINDS for name in dir(python(kind, SIZES[1]))}
    for kind in KINDS:
        own = dir(python(kind, SIZES[1]))
        for name in some(sorted({*names, *methods.NAMES, "nothing"}), OF_ONE, kind):
            for rest in ("", "()", "(1)", "(a)", "(a, 1)") if name in own else ("",):
                expression = f"a.{name}{rest}"
                found = ours.value(expression, a=ours.value(kind))
                one_thing = (name == "dtype" and rest) or kind == "np.float32"
                if isinstance(found, Poison) or one_thing:
                    continue  # a dtype and its class are one thing here
                answered += 1
                why = difference(found, expression, a=kind)
                if why is not None:
                    wrong.append(f"{expression} with a = {kind}: {why}")
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong[:60])
    assert answered > due(150, OF_ONE)


def real_functions() -> Iterator[tuple[str, Any]]:
    """The functions of Python's that have an entry, and what they are."""
    modules: dict[str, ModuleType] = {
        each.__name__: each for each in (builtins, functools, math, operator, dataclasses)
    }
    for name in FUNCTIONS:
        module, _, function = name.rpartition(".")
        if module in modules:
            yield name, getattr(modules[module], function)


def test_functions_take_what_the_real_ones_take() -> None:
    for name, real in real_functions():
        try:
            theirs = inspect.signature(real)
        except ValueError:
            continue  # CPython does not say
        entry = FUNCTIONS[name]
        parameters = list(inspect.signature(entry.rule).parameters.values())[1:]
        named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        real_named = {
            p.name
            for p in theirs.parameters.values()
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        }
        assert named <= real_named, name


@pytest.mark.parametrize("module", ["builtins", "math", "operator", "functools", "dataclasses"])
def test_every_function_of_python_has_a_meaning_or_is_refused(
    module: str, ours: Elaboration
) -> None:
    real = {"builtins": builtins, "math": math, "operator": operator}.get(module)
    for name in dir(real or {"functools": functools, "dataclasses": dataclasses}[module]):
        if name.startswith("_") or f"{module}.{name}" in MEANINGS:
            continue
        if module == "builtins":
            found = ours.value(f"{name}(1)") if not hasattr(ours.frame.names, name) else None
        else:
            known = known_module(module)
            assert known is not None
            found = ours.value("a(1)", a=known_attribute(known, name))
        assert isinstance(found, Poison), name
