"""Whole programs: signatures, records, constants, helpers and kernels."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.fuzz.bodies import Body, argument, indented
from tests.fuzz.model import BATCH, CLASSES, Array, Group, Inapplicable, Shape, Size, Static, Value
from tests.fuzz.model import at as renamed
from tests.fuzz.model import leaves as arrays_of

HEAD = """\
import dataclasses
import functools
import operator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

import pscdsl as psc
from pscdsl import (
    Float, Int, UInt, bf16, bool_, c64, c128, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64,
)

SCALE = 0.5
SHIFTS = (1, 2)
TABLE = np.array([0.5, -1.0, 2.0], np.float32)
"""
PALETTES: tuple[tuple[str, ...], ...] = (
    ("f32",),
    ("f32", "i32"),
    ("f64", "bool_"),
    ("f32", "f64", "i32"),
    ("i32", "u8", "bool_"),
    ("f16", "f32"),
    ("bf16", "f32", "i32"),
    ("c64", "f32"),
    ("c128", "f64"),
    ("i64", "f64"),
    ("i8", "i16", "u16", "u32", "u64"),
    ("Float", "i32"),
    ("Int", "bool_"),
    ("UInt", "f32"),
)
"""Dtypes that stand together in a program."""


@dataclass(frozen=True)
class Signature:
    """A kernel as its callers see it."""

    name: str
    arguments: tuple[Value, ...]
    results: tuple[Array, ...]
    sizes: frozenset[str]
    bounds: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class Program:
    """A module, and the kernel in it that is run."""

    text: str
    main: Signature


class Generator:
    """One program from one source of choices."""

    def __init__(self, rng: random.Random, size: int = 6) -> None:
        self.rng = rng
        self.size = size
        self.count = 0
        self.parts: list[str] = []
        self.helpers: list[tuple[str, list[Array], Array]] = []
        self.kernels: list[Signature] = []
        self.statics: list[Static] = []
        self.records: list[Group] = []
        """The records that stand in reach, as the statics do."""
        self.heads: dict[str, str] = {}
        """How the class of each record begins."""
        self.inside_helper = False
        self.may_draw = False
        """Whether what is generated runs once, so that it may use a key of its own."""

    def fresh(self) -> str:
        """A name that is used nowhere else."""
        self.count += 1
        return f"v{self.count}"

    def program(self) -> Program:
        """A module with a kernel, and what the kernel calls."""
        for _ in range(self.rng.randrange(2)):
            self.kernels.append(self.kernel(f"part{len(self.kernels)}", simple=True))
        main = self.kernel("main")
        return Program("\n\n".join([HEAD, *self.parts]) + "\n", main)

    # Signatures.

    def shape(self, names: Sequence[str]) -> Shape:
        """A shape of a few sizes."""
        options = [Size.of(name) for name in names] * 4
        options += [Size.of(number) for number in (1, 2, 3)]
        options += [Size.of(names[0]) + 1, Size.of(names[0]) * 2]
        rank = self.rng.choices((0, 1, 2, 3), (2, 5, 4, 1))[0]
        return tuple(self.rng.choice(options) for _ in range(rank))

    def parameter(self, name: str, dtypes: Sequence[str], sizes: Sequence[str], kind: str) -> Value:
        """One parameter."""

        def array(text: str) -> Array:
            return argument(text, self.rng.choice(dtypes), self.shape(sizes))

        if kind == "array":
            return array(name)
        if kind == "static":
            values: tuple[object, ...] = ("sin", "cos")
            return self.rng.choice(
                (
                    Static(name, "bool", (False, True)),
                    Static(name, "int", (0, 1, 2)),
                    Static(name, 'Literal["sin", "cos"]', values),
                )
            )
        if kind == "tuple":
            items = [(str(index), array("")) for index in range(self.rng.randrange(1, 4))]
            return renamed(Group(name, tuple(items)), name)
        fields = [(self.fresh(), array("")) for _ in range(self.rng.randrange(1, 4))]
        cls = f"R{self.fresh()}"
        head = self.rng.choice(
            (
                f"class {cls}(psc.Record):",
                f"class {cls}(NamedTuple):",
                f"@dataclass(frozen=True)\nclass {cls}:",
            )
        )
        self.heads[cls] = head
        rows = [f"{label}: {value.annotation()}" for label, value in fields]
        self.parts.append("\n".join([head, *indented(rows)]))
        return renamed(Group(name, tuple(fields), cls), name)

    def parameters(self, simple: bool) -> tuple[list[Value], dict[str, str]]:
        """Parameters, and where each size name stands by itself."""
        dtypes: tuple[str, ...] = self.rng.choice(PALETTES)
        names = self.rng.choice((("n",), ("n", "m"), ("n", "m", "k")))
        if simple:
            dtypes = tuple(each for each in dtypes if each not in CLASSES) or ("f32",)
        kinds = ["array"] if simple else ["array"] * 6 + ["tuple", "record", "static"]
        found = [
            self.parameter(self.fresh(), dtypes, names, self.rng.choice(kinds))
            for _ in range(self.rng.randrange(1, 4))
        ]
        batched = not simple and self.rng.random() < 0.1
        if batched:
            for index, value in enumerate(found):
                if isinstance(value, Array) and (index == 0 or self.rng.random() < 0.5):
                    found[index] = replace(value, shape=(BATCH, *value.shape[:1]))
        texts: dict[str, str] = {}
        for value in found:
            for leaf in arrays_of(value):
                for axis, size in enumerate(leaf.shape):
                    if size.name and BATCH not in leaf.shape:
                        texts.setdefault(size.name, f"{leaf.text}.shape[{axis}]")
                    elif size.name and axis:
                        texts.setdefault(size.name, f"{leaf.text}.shape[-1]")
        used = {
            name
            for value in found
            for leaf in arrays_of(value)
            for s in leaf.shape
            if s != BATCH
            for name in s.names()
        }
        missing = sorted(used - texts.keys())
        if missing:
            shape = tuple(Size.of(name) for name in missing)
            extra = argument(self.fresh(), dtypes[0], shape)
            found.append(extra)
            for axis, name in enumerate(missing):
                texts[name] = f"{extra.text}.shape[{axis}]"
        if not any(arrays_of(value) for value in found):
            found.append(argument(self.fresh(), dtypes[0], ()))
        return found, {name: texts[name] for name in sorted(used)}

    # Functions.

    def kernel(self, name: str, simple: bool = False) -> Signature:
        """A kernel; its text is added to the module."""
        params, sizes = self.parameters(simple)
        self.may_draw = not simple
        self.helpers = []  # their sizes are those of the kernel that they were made for
        self.statics = [value for value in params if isinstance(value, Static)]
        self.records = [each for each in params if isinstance(each, Group) and each.record]
        body = Body(self)
        body.values = [leaf for value in params for leaf in arrays_of(value)]
        if not simple and self.rng.random() < 0.3:
            body.values.append(Array("TABLE", "f32", (Size.of(3),), -1, 2, 0.5))
        body.sizes = dict(sizes)
        for each, text in sizes.items():
            if self.rng.random() < 0.25 and "[-1]" not in text:
                body.bounds[each] = self.rng.randrange(2, 4)
                body.lines.append(f'assert {text} >= {body.bounds[each]}, "too small"')
        for each, text in sizes.items():
            if self.rng.random() < 0.3:
                body.lines.append(f"{each}_size = {text}")
                body.sizes[each] = f"{each}_size"
        body.steps(self.rng.randrange(1, self.size if not simple else 4))
        results = [body.expression() for _ in range(self.rng.choice((1, 1, 2)))]
        written = ""
        if self.rng.random() < 0.8:
            types = [each.annotation() for each in results]
            written = f" -> {types[0]}" if len(types) == 1 else f" -> tuple[{', '.join(types)}]"
        returned = ", ".join(each.text for each in results)
        shown = ", ".join(f"{value.text}: {value.annotation()}" for value in params)
        head = f"@psc.kernel\ndef {name}({shown}){written}:"
        self.parts.append("\n".join([head, *indented([*body.lines, f"return {returned}"])]))
        self.statics, self.records = [], []
        return Signature(name, tuple(params), tuple(results), frozenset(sizes), body.bounds)

    def callee(self) -> Signature:
        """A kernel that may be called."""
        if not self.kernels:
            raise Inapplicable
        return self.rng.choice(self.kernels)

    def helper(self, args: Sequence[Array], bounds: dict[str, int]) -> tuple[str, Array]:
        """A function of the module that takes these values; its name and its result."""
        for name, params, result in self.helpers:
            if len(params) == len(args) and all(map(_admits, params, args)):
                return name, result
        if self.inside_helper or any(x.is_batched for x in args):
            raise Inapplicable
        params = [x.named(self.fresh()) for x in args]
        body = Body(self, depth=1)
        body.values = list(params)
        body.bounds = dict(bounds)
        for x in params:
            for axis, size in enumerate(x.shape):
                if size.name:
                    body.sizes.setdefault(size.name, f"{x.text}.shape[{axis}]")
        kept = self.statics, self.records, self.may_draw
        self.inside_helper = True
        self.statics, self.records, self.may_draw = [], [], False
        try:
            body.steps(self.rng.randrange(3))
            result = body.expression()
        finally:
            self.inside_helper = False
            self.statics, self.records, self.may_draw = kept
        name = f"helper{self.fresh()}"
        head = f"def {name}({', '.join(x.text for x in params)}):"
        self.parts.append("\n".join([head, *indented([*body.lines, f"return {result.text}"])]))
        self.helpers.append((name, params, result))
        return name, result


def _admits(param: Array, x: Array) -> bool:
    """Whether a helper made for one value takes another."""
    return (
        (param.dtype, param.shape) == (x.dtype, x.shape)
        and param.low <= x.low
        and x.high <= param.high
        and (param.grid == 0 or (x.grid > 0 and x.grid % param.grid == 0))
    )


def generate(rng: random.Random, size: int = 6) -> Program:
    """A program whose choices come from `rng`."""
    return Generator(rng, size).program()
