"""Functions whose derivatives are examined, as text, with kernels around them.

A `Subject` is a function of arrays in f64 or c128.  The kernels give its value, its derivative
along a direction, the pull-back of a cotangent, and the same once more differentiated.  What the
function means is what its text means under plain NumPy.
"""

# Programs are text, so what they compute has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl.typing import dims
from pscdsl.typing.array_types import ArrayType, Type, children
from pscdsl.typing.array_types import leaves as leaves_of
from tests.derivatives.programs import HEAD, SIZES, NDArray, Program, kernels, like
from tests.fuzz import reference


@dataclass(frozen=True)
class Subject:
    """A function `f` of parameters, and values for these.

    code     an expression of the parameters, or statements that define `f`
    params   shapes in f64 (`"n m"`), or whole annotations (`'c128["n"]'`)
    where    a condition on sizes that is asserted
    values   values of some parameters; others are distinct numbers between `low` and `high`
    result   the annotation of the result, if it is not an array or a tuple of arrays
    plain    whether its text has a meaning under plain NumPy
    """

    code: str
    params: Mapping[str, str]
    where: str = ""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    low: float = 0.3
    high: float = 1.7
    result: str = ""
    plain: bool = True

    def __str__(self) -> str:
        code = self.code[max(0, self.code.find("def f(")) :]
        return re.sub(r"\s+", " ", code.strip())[:60]

    @cached_property
    def has_records(self) -> bool:
        """Whether a parameter is of a class of its own, of which there is no type over a batch."""
        return any(re.match(r"[A-Z]", each) for each in self.params.values())

    # Its text.

    @property
    def definition(self) -> str:
        """The statements that define `f`."""
        if re.search(r"^(\s*)def f\(", self.code, re.MULTILINE):
            return self.code
        return f"def f({', '.join(self.params)}):\n    return {self.code}\n"

    def annotation(self, name: str) -> str:
        """The type of a parameter."""
        shape = self.params[name]
        if re.match(r"[\w.]+(\[|$)", shape) and not re.fullmatch(r"[a-z\d]( .*)?", shape):
            return shape
        return f'f64["{shape}"]' if shape else "f64"

    @cached_property
    def moving(self) -> list[str]:
        """The parameters that have tangents."""
        return [n for n in self.params if not re.match(r"bool_|i32|i64", self.annotation(n))]

    def kernel(self, name: str, params: Mapping[str, str], *lines: str) -> str:
        """A kernel of the parameters and of others."""
        own = {each: self.annotation(each) for each in self.params}
        shown = ", ".join(f"{a}: {b}" for a, b in {**own, **params}.items())
        body = [f"assert {re.sub(r'[a-z]', self.size_text, self.where)}"] if self.where else []
        moving = ", ".join(self.moving)
        body.append(f"g = lambda {moving}: f({', '.join(self.params)})")
        rows = [f"    {line}" for line in [*body, *lines]]
        return "\n".join([f"@psc.kernel\ndef {name}({shown}):", *rows]) + "\n"

    def size_text(self, name: re.Match[str]) -> str:
        """How a size is written in code."""
        places = ((p, s.split().index(name[0])) for p, s in self.params.items() if name[0] in s)
        param, axis = next(places)
        return f"{param}.shape[{axis}]"

    def named(self, prefix: str) -> list[str]:
        """A name for each moving parameter."""
        return [f"{prefix}_{each}" for each in self.moving]

    def typed(self, prefix: str) -> dict[str, str]:
        """Parameters like the moving ones."""
        return {f"{prefix}_{each}": self.annotation(each) for each in self.moving}

    @cached_property
    def value(self) -> Program:
        """The function itself."""
        text = self.definition + self.kernel("value", {}, f"return f({', '.join(self.params)})")
        return Program.of(kernels(text)["value"])

    @cached_property
    def cotangent(self) -> str:
        """The annotation of the result."""
        if self.result:
            return self.result
        tree = self.value.function.result
        assert tree is not None
        return written(tree)

    @cached_property
    def derivatives(self) -> Program:
        """The value, its tangent, the pull-back, and how this changes along another direction."""
        x, d, e = (", ".join(names) for names in (self.moving, self.named("d"), self.named("e")))
        params = {**self.typed("d"), **self.typed("e"), "c": self.cotangent}
        text = self.kernel(
            "derivatives",
            params,
            f"def back({x}):",
            f"    return psc.vjp(g, {x})[1](c)",
            f"value, pull = psc.vjp(g, {x})",
            f"tangent = psc.jvp(g, ({x},), ({d},))[1]",
            f"second = psc.jvp(back, ({x},), ({e},))[1]",
            "return value, tangent, pull(c), second",
        )
        return Program.of(kernels(self.definition + text)["derivatives"])

    @cached_property
    def third(self) -> Program:
        """How the second derivative along a direction changes along another one."""
        x, d, e = (", ".join(names) for names in (self.moving, self.named("d"), self.named("e")))
        params = {**self.typed("d"), **self.typed("e"), "c": self.cotangent}
        text = self.kernel(
            "third",
            params,
            f"def back({x}):",
            f"    return psc.vjp(g, {x})[1](c)",
            f"def second({x}):",
            f"    return psc.jvp(back, ({x},), ({e},))[1]",
            f"return psc.jvp(second, ({x},), ({d},))",
        )
        return Program.of(kernels(self.definition + text)["third"])

    @cached_property
    def products(self) -> Program:
        """The product of the second derivative with a direction, in four ways."""
        x, e = ", ".join(self.moving), ", ".join(self.named("e"))
        ones = tuple(range(len(self.moving)))
        text = self.kernel(
            "products",
            {**self.typed("e"), "c": self.cotangent},
            f"def loss({x}):",
            f"    return sum_of(g({x}), c)",
            f"gradient = psc.grad(loss, argnums={ones})",
            f"def along_pull({x}):",
            f"    pull = psc.vjp(loss, {x})[1]",
            f"    return sum_of(pull(np.float64(1)), ({e},))",
            f"def along_push({x}):",
            f"    return psc.jvp(loss, ({x},), ({e},))[1]",
            f"one = psc.jvp(gradient, ({x},), ({e},))[1]",
            "two = one" if self.has_records else f"two = psc.grad(along_pull, argnums={ones})({x})",
            f"three = psc.grad(along_push, argnums={ones})({x})",
            f"four = psc.vjp(gradient, {x})[1](({e},))",
            "return one, two, three, four",
        )
        return Program.of(kernels(self.definition + SUM_OF + text)["products"])

    @cached_property
    def batches(self) -> Program:
        """Pull-backs of a batch: row by row, and of the function over the batch."""
        x = ", ".join(self.moving)
        rows, given = self.named("b"), {name: self.annotation(name) for name in self.moving}
        params = {b: over_batch(given[a]) for a, b in zip(self.moving, rows, strict=True)}
        text = self.kernel(
            "batches",
            {**params, "cs": over_batch(self.cotangent)},
            f"def back({x}, c):",
            f"    return psc.vjp(g, {x})[1](c)",
            f"one = psc.vmap(back)({', '.join(rows)}, cs)",
            f"other = psc.vjp(psc.vmap(g), {', '.join(rows)})[1](cs)",
            "return one, other",
        )
        return Program.of(kernels(self.definition + text)["batches"])

    # What it is run on.

    def types(self) -> list[ArrayType]:
        """The types of the leaves of the parameters."""
        return list(self.value.function.body.in_types)

    @cached_property
    def given(self) -> list[NDArray]:
        """Values of the leaves of the parameters."""
        return self.drawn(0)

    def drawn(self, seed: int) -> list[NDArray]:
        """Values of the leaves of the parameters: no two numbers are the same."""
        shapes = [shape_of(each) for each in self.types()]
        count = sum(2 * int(np.prod(shape)) for shape in shapes)
        pool = np.linspace(self.low, self.high, count)
        np.random.default_rng(seed).shuffle(pool)
        remaining = iter(np.split(pool, np.cumsum([2 * int(np.prod(s)) for s in shapes])[:-1]))
        found: list[NDArray] = []
        for shape, (name, type_) in zip(shapes, self.leaves(), strict=True):
            numbers = next(remaining).reshape(2, *shape)
            if name in self.values:
                dtype = to_numpy(type_.dtype)
                found.append(np.asarray(self.values[name], dtype).reshape(shape))
            elif type_.dtype.is_complex:
                found.append(numbers[0] + 1j * numbers[1])
            else:
                assert type_.dtype.is_float, f"values of {name} are missing"
                found.append(np.array(numbers[0]))
        return found

    def leaves(self) -> list[tuple[str, ArrayType]]:
        """The parameter of each leaf, and its type."""
        return [
            (name, leaf)
            for name, tree in self.value.function.parameters
            for leaf in leaves_of(tree)
        ]

    def active(self, arrays: Sequence[NDArray]) -> list[NDArray]:
        """Those of the arrays that belong to moving parameters."""
        return [
            x for x, (name, _) in zip(arrays, self.leaves(), strict=True) if name in self.moving
        ]

    def directions(self, seed: int) -> list[NDArray]:
        """A direction for each moving leaf."""
        return like(self.active(self.given), seed)

    @cached_property
    def cotangents(self) -> list[NDArray]:
        """A cotangent for each leaf of the result."""
        return like(self.value.run(self.given), 7)

    def with_active(self, arrays: Sequence[NDArray]) -> list[NDArray]:
        """The operands with other arrays for the moving parameters."""
        remaining = iter(arrays)
        return [
            next(remaining) if name in self.moving else x
            for x, (name, _) in zip(self.given, self.leaves(), strict=True)
        ]

    def operands(self, x: Sequence[NDArray], d: int, e: int) -> list[NDArray]:
        """The operands of `derivatives` and `third`."""
        return [
            *self.with_active(x),
            *self.directions(d),
            *self.directions(e),
            *self.cotangents,
        ]

    def split(self, found: Sequence[NDArray]) -> tuple[list[NDArray], ...]:
        """The parts of what `derivatives` returns."""
        values, moving = len(self.cotangents), len(self.active(self.given))
        ends: list[int] = np.cumsum([values, values, moving, moving]).tolist()
        assert len(found) == ends[-1]
        return tuple(list(found[a:b]) for a, b in zip([0, *ends], ends, strict=False))

    def under_numpy(self, arrays: Sequence[NDArray]) -> list[NDArray]:
        """What the text means without us, for parameters that are arrays."""
        names = reference.loaded(HEAD + self.definition)
        return reference.run(names, "f", list(arrays))


SUM_OF = """
def sum_of(tree, weights):
    if isinstance(tree, tuple):
        return sum(sum_of(x, w) for x, w in zip(tree, weights))
    return np.real(np.sum(tree * weights))
"""


def subject(
    code: str,
    /,
    where: str = "",
    values: Mapping[str, Any] | None = None,
    low: float = 0.3,
    high: float = 1.7,
    result: str = "",
    plain: bool = True,
    **params: str,
) -> Subject:
    """A function with its parameters as keywords."""
    return Subject(code, params, where, values or {}, low, high, result, plain)


def shape_of(of: ArrayType) -> tuple[int, ...]:
    """A shape at the sizes that programs run at."""
    return tuple(dims.evaluate(size, SIZES) for size in of.shape)


def written(tree: Type) -> str:
    """The annotation of a type."""
    if isinstance(tree, ArrayType):
        shape = " ".join(str(size).replace(" ", "") for size in tree.shape)
        return f'{tree.dtype.name}["{shape}"]' if shape else tree.dtype.name
    parts = [written(part) for _, part in children(tree)]
    return f"tuple[{', '.join(parts)}]"


def over_batch(annotation: str) -> str:
    """The annotation of a batch."""
    batched = re.sub(r'\["', '["b ', annotation)
    return re.sub(r"\b(f64|c128|f32)\b(?!\[)", r'\1["b"]', batched)
