"""Random pairs of programs that differ in one thing: a constant, what is captured, a text.

Every program is a kernel of one array that multiplies by a number, which it has from one place: a
lambda among others of its line, a cell, a default, a field, a computed attribute.  Between that
place and the kernel stand random ways by which Python passes values and functions on.  What NumPy
makes of the number is what the kernel has to give.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

MODULE: Final = "program_of_identity"
HELPER: Final = "helper_of_identity"
WHICH: Final = "which_of_identity"
"""A module without a text, which says which program of a pair is loaded."""
HEAD: Final = f"""\
import functools
from enum import Enum
from typing import NamedTuple

import numpy as np
import pscdsl as psc
from pscdsl import f32
from {WHICH} import W
"""
X: Final = np.array([1.0, -2.0, 0.5], np.float32)

VALUES: Final = (
    *[("2.0", "3.0"), ("0.5", "0.25"), ("2", "3"), ("1", "-1"), ("0.0", "-0.0"), ("1e3", "1e4")],
    *[("np.float32(2)", "np.float32(3)"), ("float('nan')", "1.0"), ("float('inf')", "2.0")],
    *[("True", "False"), ("16", "17"), ("0.1", "0.2"), ("-0.0", "1.0"), ("2", "2.5")],
)
"""Numbers that a program multiplies by, as they are written."""


@dataclass
class Program:
    """One of two programs."""

    text: str
    helper: str
    which: int
    value: Any
    """The number that it multiplies by."""
    pokes: list[tuple[str, Any]]
    """What is set once it is loaded: a path from a module, and a value."""
    args: tuple[Any, ...]


@dataclass
class Pair:
    """Two programs, and how their results follow from their numbers."""

    seed: int
    mode: str
    """What makes the difference: which of several values, the text, or something set later."""
    ways: str
    """By which ways the number comes to the kernel."""
    programs: tuple[Program, Program]
    result: Callable[[Any], Any]

    @property
    def is_static(self) -> bool:
        """Whether the programs are the same, and are given different numbers."""
        return self.ways == "_with_static"

    def wanted(self, place: int) -> Any:
        """What one of the programs has to give."""
        with np.errstate(all="ignore"):
            return self.result(self.programs[place].value)


@dataclass
class Writer:
    """Writes one of the programs of a pair; both are written with the same random choices."""

    random: random.Random
    mode: str
    side: int
    lines: list[str] = field(default_factory=list[str])
    helper: list[str] = field(default_factory=list[str])
    pokes: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    ways: list[str] = field(default_factory=list[str])
    count: int = 0

    def name(self, stem: str) -> str:
        """A name that is not in use."""
        self.count += 1
        return f"{stem}{self.count}"

    def either(self, one: str, other: str, *, inline: bool = False) -> str:
        """The expression that differs."""
        if self.mode != "which" or inline:
            return (one, other)[self.side]
        forms = (
            f"({one}, {other})[W]",
            f"(({one}) if W == 0 else ({other}))",
            f'{{"a": {one}, "b": {other}}}["ab"[W]]',
            f"[e for e in ({one}, {other})][W]",
        )
        return self.random.choice(forms)

    def set_later(self, path: str, one: str, other: str) -> str:
        """The same for a name that is bound anew after the module was loaded."""
        if self.mode != "poke":
            return self.either(one, other)
        if self.side:
            self.pokes.append((path, eval(other, {"np": np})))
        return one

    # Numbers.

    def number(self, one: str, other: str) -> str:
        """An expression for a kernel's text that has the number."""
        ways: list[Callable[[str, str], str]] = [
            self._global,
            self._attribute,
            self._computed,
            self._of_class,
            self._member,
            self._field,
            self._record,
            self._item,
            self._key,
            self._table,
            self._option,
            self._flag,
            self._inherited,
            self._length,
        ]
        way = self.random.choice(ways)
        self.ways.append(way.__name__)
        return way(one, other)

    def _global(self, one: str, other: str) -> str:
        name = self.name("N")
        self.lines.append(f"{name} = {self.set_later(name, one, other)}")
        return name

    def _attribute(self, one: str, other: str) -> str:
        name = self.name("N")
        self.helper.append(f"{name} = {self.set_later(f'{HELPER}.{name}', one, other)}")
        return f"{HELPER}.{name}"

    def _computed(self, one: str, other: str) -> str:
        name = self.name("N")
        self.helper.append(f"{name} = {self.set_later(f'{HELPER}.{name}', one, other)}")
        forms = (f'"N" + "{name[1:]}"', f'f"N{{{name[1:]}}}"', f'"N" + str({name[1:]})')
        return f"getattr({HELPER}, {self.random.choice(forms)})"

    def _of_class(self, one: str, other: str) -> str:
        name = self.name("C")
        self.lines += [f"class {name}:", f"    rate = {self.either(one, other)}"]
        return f"{name}.rate"

    def _inherited(self, one: str, other: str) -> str:
        name = self.name("C")
        self.lines += [f"class {name}Base(psc.Record):", '    w: f32["n"]']
        self.lines += [f"    rate = {self.either(one, other)}", ""]
        self.lines += [f"class {name}({name}Base):", "    b: f32"]
        return f"{name}.rate"

    def _member(self, one: str, other: str) -> str:
        name = self.name("M")
        self.lines += [f"class {name}(Enum):", f'    A = "a", {one}', f'    B = "b", {other}']
        held = self.name("N")
        self.lines.append(f"{held} = {self.either(f'{name}.A', f'{name}.B')}")
        return f"{held}.value[1]"

    def _field(self, one: str, other: str) -> str:
        name, held = self.name("T"), self.name("N")
        self.lines += [f"class {name}(NamedTuple):", "    a: float", "    b: float"]
        self.lines.append(f"{held} = {name}(5.0, {self.either(one, other)})")
        return f"{held}.b"

    def _record(self, one: str, other: str) -> str:
        name, held = self.name("R"), self.name("N")
        self.lines += [f"class {name}(psc.Record):", "    a: f32", "    b: f32"]
        self.lines.append(f"{held} = {name}(5.0, {self.either(one, other)})")
        return f"{held}.b"

    def _item(self, one: str, other: str) -> str:
        name = self.name("N")
        self.lines.append(f"{name} = (7, ({self.either(one, other)}, 5))")
        return f"{name}[1][0]"

    def _key(self, one: str, other: str) -> str:
        name = self.name("N")
        self.lines.append(f'{name} = {{"p": 7, "q": {self.either(one, other)}}}')
        return f'{name}["q"]'

    def _table(self, one: str, other: str) -> str:
        name = self.name("N")
        self.lines.append(f"{name} = np.array([7, {self.either(one, other)}], np.float32)")
        return f"{name}[1]"

    def _option(self, one: str, other: str) -> str:
        name = self.name("N")
        self.lines.append(f"{name} = {self.set_later(name, repr('a'), repr('b'))}")
        return f'({one} if {name} == "a" else {other})'

    def _flag(self, one: str, other: str) -> str:
        name = self.name("N")
        first, second = self.random.choice((("None", "1"), ("True", "False"), ("()", "(1,)")))
        self.lines.append(f"{name} = {self.set_later(name, first, second)}")
        test = {"None": f"{name} is None", "True": name, "()": f"len({name}) == 0"}[first]
        return f"({one} if {test} else {other})"

    def _length(self, one: str, other: str) -> str:
        name = self.name("N")
        self.lines.append(f"{name} = {self.either('range(2)', 'range(1, 2)')}")
        return f"({one} if {name}[0] == 0 else {other})"

    # Functions.

    def function(self, one: str, other: str) -> str:
        """An expression for a function that multiplies by the number."""
        ways: list[Callable[[str, str], str]] = [
            *[self._lambdas] * 3,
            *[self._nested_lambdas] * 2,
            self._defaults,
            self._captured,
            self._of_number,
            self._of_number,
            self._defined,
            self._bound,
            self._steps,
        ]
        way = self.random.choice(ways)
        self.ways.append(way.__name__)
        return way(one, other)

    def function_of_what_is_set(self, one: str, other: str) -> str:
        """The same, with the number where it can be set later."""
        ways = (self._of_number, self._defaults, self._defined_of_global)
        return self.random.choice(ways)(one, other)

    def _lambdas(self, one: str, other: str) -> str:
        name = self.name("v")
        return self.either(f"lambda {name}: {name} * {one}", f"lambda {name}: {name} * {other}")

    def _nested_lambdas(self, one: str, other: str) -> str:
        form = self.random.choice(
            (
                "lambda v: (lambda u: u * {0})(v)",
                "(lambda a: (lambda v: v * a))({0})",
                "(lambda: (lambda v: v * {0}))()",
                "(lambda f: lambda v: f(v))(lambda u: u * {0})",
                "(lambda f, g: lambda v: g(v))(lambda u: u * 9, lambda u: u * {0})",
            )
        )
        return self.either(form.format(one), form.format(other))

    def _defaults(self, one: str, other: str) -> str:
        form = self.random.choice(
            (
                "lambda v, s={0}: v * s",
                "lambda v, *, s={0}: v * s",
                "lambda v, s=(1, {0}): v * s[1]",
            )
        )
        if self.mode == "poke" and "*," not in form and "(1" not in form:
            name = self.name("f")
            self.lines.append(f"{name} = {form.format(one)}")
            if self.side:
                self.pokes.append((f"{name}.__defaults__", (eval(other, {"np": np}),)))
            return name
        return self.either(form.format(one), form.format(other))

    def _captured(self, one: str, other: str) -> str:
        name = self.name("make")
        self.lines += [f"def {name}(s):", "    def inner(v):", "        return v * s", ""]
        self.lines.append("    return inner")
        return f"{name}({self.either(one, other)})"

    def _of_number(self, one: str, other: str) -> str:
        if self.mode == "poke":
            return f"lambda v: v * {self._global(one, other)}"
        return f"lambda v: v * {self.number(one, other)}"

    def _defined(self, one: str, other: str) -> str:
        name = self.name("f")
        number = self.number(one, other)
        self.lines += [f"def {name}(v):", f"    s = {number}", "    return v * s"]
        return name

    def _defined_of_global(self, one: str, other: str) -> str:
        name = self.name("f")
        way = self.random.choice((self._global, self._attribute, self._computed))
        number = way(one, other)
        self.lines += [f"def {name}(v):", f"    return v * {number}"]
        return name

    def _bound(self, one: str, other: str) -> str:
        name = self.name("R")
        self.lines += [f"class {name}(psc.Record):", "    a: f32", ""]
        self.lines += ["    def scaled(self, v):", "        return v * self.a"]
        return f"{name}({self.either(one, other)}).scaled"

    def _steps(self, one: str, other: str) -> str:
        """Entries of a dict in another order: (v - 1) * k, or v * k - 1, of which v * k is told."""
        table, name = self.name("D"), self.name("f")
        first, second = f'"x": {one}, "y": {other}', f'"y": {other}, "x": {one}'
        self.lines.append(f"{table} = {self.either(f'{{{first}}}', f'{{{second}}}')}")
        self.lines += [f"def {name}(v):", f"    for k, s in {table}.items():"]
        self.lines += ["        return v * s"]
        return name

    # Ways between.

    def passed_on(self, function: str) -> str:
        """A function that does the same, by way of something that holds it."""
        ways: list[Callable[[str], str]] = [
            self._named,
            self._in_tuple,
            self._in_dict,
            self._in_default,
            self._partial,
            self._in_cell,
            self._in_field,
            self._static_method,
            self._wrapped,
            self._cached,
            self._in_helper,
        ]
        way = self.random.choice(ways)
        self.ways.append(way.__name__)
        return way(function)

    def _named(self, function: str) -> str:
        name = self.name("g")
        self.lines.append(f"{name} = {function}")
        return name

    def _in_tuple(self, function: str) -> str:
        held, name = self.name("t"), self.name("g")
        self.lines.append(f"{held} = (lambda v: v, {function})")
        self.lines += [f"def {name}(v):", f"    return {held}[1](v)"]
        return name

    def _in_dict(self, function: str) -> str:
        held, name = self.name("d"), self.name("g")
        self.lines.append(f'{held} = {{"f": {function}, "g": lambda v: v}}')
        self.lines += [f"def {name}(v):", f'    return {held}["f"](v)']
        return name

    def _in_default(self, function: str) -> str:
        name = self.name("g")
        star = self.random.choice(("", "*, "))
        self.lines += [f"def {name}(v, {star}f={function}):", "    return f(v)"]
        return name

    def _partial(self, function: str) -> str:
        return f"functools.partial(lambda f, v: f(v), {function})"

    def _in_cell(self, function: str) -> str:
        name = self.name("make")
        self.lines += [f"def {name}(f):", "    def inner(v):", "        return f(v)", ""]
        self.lines.append("    return inner")
        return f"{name}({function})"

    def _in_field(self, function: str) -> str:
        kind, held, name = self.name("T"), self.name("t"), self.name("g")
        self.lines += [f"class {kind}(NamedTuple):", "    f: object", "    n: int"]
        self.lines.append(f"{held} = {kind}({function}, 2)")
        self.lines += [f"def {name}(v):", f"    return {held}.f(v)"]
        return name

    def _static_method(self, function: str) -> str:
        name, held = self.name("C"), self._named(function)
        self.lines += [f"class {name}:", "    @staticmethod", "    def f(v):"]
        self.lines.append(f"        return {held}(v)")
        return f"{name}.f"

    def _wrapped(self, function: str) -> str:
        held, name = self._named(function), self.name("g")
        self.lines += [f"@functools.wraps({held})", f"def {name}(*a, **k):"]
        self.lines.append(f"    return {held}(*a, **k)")
        return name

    def _cached(self, function: str) -> str:
        return f"functools.lru_cache({self._named(function)})"

    def _in_helper(self, function: str) -> str:
        held, name = self._named(function), self.name("h")
        self.helper += [f"def {name}(f, v):", "    return f(v)"]
        return f"(lambda v: {HELPER}.{name}({held}, v))"

    # Kernels.

    def kernel(self, function: str) -> Callable[[Any], Any]:
        """Define `k`; returns what it gives for a number."""
        ways: list[Callable[[str], Callable[[Any], Any]]] = [
            *[self._plain] * 3,
            *[self._made] * 3,
            self._vmap,
            self._grad,
            self._rule,
            self._loop,
            self._map,
            self._scan,
            self._cond,
            self._inner,
            self._with_options,
        ]
        way = self.random.choice(ways)
        self.ways.append(way.__name__)
        return way(function)

    def _decorated(self, body: str, name: str = "k") -> None:
        self.lines += ["@psc.kernel", f'def {name}(x: f32["n"]) -> f32["n"]:', f"    return {body}"]

    def _plain(self, function: str) -> Callable[[Any], Any]:
        self._decorated(f"{self._named(function)}(x)")
        return _product

    def _made(self, function: str) -> Callable[[Any], Any]:
        self.lines += ["def make(f):", "    @psc.kernel"]
        self.lines += ['    def k(x: f32["n"]) -> f32["n"]:', "        return f(x)", "    return k"]
        self.lines.append(f"k = make({function})")
        return _product

    def _one(self, body: str) -> None:
        self.lines += ["def one(x: f32) -> f32:", f"    return {body}"]

    def _vmap(self, function: str) -> Callable[[Any], Any]:
        self._one(f"{self._named(function)}(x)")
        self.lines.append("k = psc.vmap(one)")
        return _product

    def _grad(self, function: str) -> Callable[[Any], Any]:
        self._one(f"{self._named(function)}(x)")
        self.lines.append("k = psc.vmap(psc.grad(one))")
        return _number

    def _rule(self, function: str) -> Callable[[Any], Any]:
        held = self._named(function)
        self.lines += ["@psc.custom_jvp", "def h(x):", "    return x + 1"]
        self.lines.append(f"h.defjvp(lambda primals, tangents: (h(*primals), {held}(tangents[0])))")
        self._one("h(x)")
        self.lines.append("k = psc.vmap(psc.grad(one))")
        return _number

    def _loop(self, function: str) -> Callable[[Any], Any]:
        held = self._named(function)
        self._decorated(f"psc.fori_loop(0, 2, lambda i, v: {held}(v), x)")
        return lambda value: _product(value) * np.float32(value)

    def _map(self, function: str) -> Callable[[Any], Any]:
        self._decorated(f"psc.map({self._named(function)}, x)")
        return _product

    def _scan(self, function: str) -> Callable[[Any], Any]:
        held = self._named(function)
        self._decorated(f"psc.scan(lambda c, v: (c, {held}(v)), np.float32(0), x)[1]")
        return _product

    def _cond(self, function: str) -> Callable[[Any], Any]:
        held = self._named(function)
        self._decorated(f"psc.cond(x[0] > 0, lambda v: {held}(v), lambda v: v, x)")
        return _product

    def _inner(self, function: str) -> Callable[[Any], Any]:
        self._decorated(f"{self._named(function)}(x)", "inner")
        self._decorated("inner(x)")
        return _product

    def _with_options(self, function: str) -> Callable[[Any], Any]:
        self._decorated(f"{self._named(function)}(x)", "inner")
        self.lines.append('k = psc.kernel(inner, budget="flops <= 100*n + 100")')
        return _product


def _product(value: Any) -> Any:
    return X * np.float32(value)


def _number(value: Any) -> Any:
    return np.full_like(X, np.float32(value))


MODES: Final = ("which", "which", "text", "text", "poke", "edit", "reload")


def pair(seed: int) -> Pair:
    """The pair of a seed."""
    made = [_written(seed, side) for side in (0, 1)]
    (first, mode, ways, result), (second, *_) = made
    longest = max(len(each.text) for each in (first, second))
    for each in (first, second):
        each.text = each.text.ljust(longest - 1, "#") + "\n"
    longest = max(len(each.helper) for each in (first, second))
    for each in (first, second):
        each.helper = each.helper.ljust(longest - 1, "#") + "\n"
    return Pair(seed, mode, ways, (first, second), result)


def _written(seed: int, side: int) -> tuple[Program, str, str, Callable[[Any], Any]]:
    chosen = random.Random(seed)
    mode = chosen.choice(MODES)
    values = chosen.choice(VALUES)
    writer = Writer(chosen, mode, side)
    if chosen.random() < 0.04:
        return _with_static(writer, values)
    if mode == "poke":
        function = writer.function_of_what_is_set(*values)
    else:
        function = writer.function(*values)
    for _ in range(chosen.choice((0, 0, 1, 1, 2, 3))):
        function = writer.passed_on(function)
    result = writer.kernel(function)
    return _program(writer, values), mode, " ".join(writer.ways), result


def _program(writer: Writer, values: tuple[str, str], args: tuple[Any, ...] = (X,)) -> Program:
    text = f"{HEAD}import {HELPER}\n\n" + "\n".join(writer.lines) + "\n# "
    helper = f"import numpy as np\nfrom {WHICH} import W\n\n" + "\n".join(writer.helper) + "\n# "
    value = eval(values[writer.side], {"np": np})
    which = writer.side if writer.mode == "which" else 0
    return Program(text, helper, which, value, writer.pokes, args)


def _with_static(
    writer: Writer, values: tuple[str, str]
) -> tuple[Program, str, str, Callable[[Any], Any]]:
    """A kernel that is given the number as a static argument."""
    form = writer.random.choice(("s", "s[0]"))
    kind = "object" if form == "s" else "tuple"
    writer.lines += ["@psc.kernel", f'def k(x: f32["n"], s: psc.Static[{kind}]) -> f32["n"]:']
    writer.lines.append(f"    return x * {form}")
    value = eval(values[writer.side], {"np": np})
    args = (X, value if form == "s" else (value,))
    return _program(writer, values, args), "which", "_with_static", _product
