"""Types that annotations of JAX programs leave open, `Array` without a shape: those tried for them.

A function is right for the types that were tried, which the report names; what is wrong for types
that nobody wrote is no finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, islice, product
from typing import Final

from pscdsl._src.frontend.trees import leaf
from pscdsl._src.frontend.values import (
    AnyValue,
    External,
    StaticFunction,
)
from pscdsl._src.ir.builder import Builder, Value
from pscdsl.typing.array_types import ArrayType, static_text
from pscdsl.typing.codes.limits import UnknownValue
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, variable
from pscdsl.typing.dtypes import BOOL, F32, I32, KEY
from pscdsl.typing.signatures import (
    ArraySpec,
    OpenSpec,
    Signature,
    Spec,
    StaticSpec,
    UnionSpec,
    arrays_of,
    spec_parts,
    spec_steps,
    with_spec_parts,
)

MOST_TYPINGS: Final = 24
"""The most combinations of types that are tried."""
_MOST_COMBINATIONS: Final = 4096
_MOST_DECLARED: Final = 3
"""The most shapes of other parameters that are tried."""


def typings(signature: Signature) -> Iterator[Signature]:
    """Yield signatures with types in place of those left open; itself if none is."""
    yield from islice(_typings(signature), MOST_TYPINGS)


def _typings(signature: Signature) -> Iterator[Signature]:
    parts = [
        found
        for parameter in signature.parameters
        for found in _open_parts(parameter.spec, parameter.name)
    ]
    if not parts:
        yield signature
        return
    candidates = _Candidates(signature)
    columns = [candidates.of(part, where) for where, part in parts]
    indices = islice(product(*(range(len(each)) for each in columns)), _MOST_COMBINATIONS)
    for chosen in sorted(indices, key=_effort):
        specs = iter([column[at] for column, at in zip(columns, chosen, strict=True)])
        yield from _typings(_with_types(signature, specs))


def _effort(chosen: Sequence[int]) -> tuple[int, int]:
    """Return how unusual a combination is: parameters mostly have types of one kind."""
    return len({*chosen}), sum(chosen)


def _is_no_array(spec: Spec) -> bool:
    """Return whether an alternative of a union holds no array: a description of one."""
    return not any(True for _ in arrays_of(spec))


def _open_parts(spec: Spec, where: str) -> Iterator[tuple[str, OpenSpec | UnionSpec]]:
    """Yield the outermost parts that are left open, each with the text that selects it."""
    if isinstance(spec, OpenSpec | UnionSpec):
        yield where, spec
        return
    for step, part in zip(spec_steps(spec), spec_parts(spec), strict=False):
        yield from _open_parts(part, where + step)


def _with_types(signature: Signature, specs: Iterator[Spec]) -> Signature:
    def typed(spec: Spec) -> Spec:
        if isinstance(spec, OpenSpec | UnionSpec):
            return next(specs)
        parts = spec_parts(spec)
        return with_spec_parts(spec, [typed(part) for part in parts]) if parts else spec

    return replace(
        signature,
        parameters=tuple([replace(each, spec=typed(each.spec)) for each in signature.parameters]),
    )


def shown(declared: Signature, tried: Signature) -> str:
    """Return the parameters whose types were left open, with those that were tried."""
    return ", ".join(
        f"{where}: {spec}"
        for before, after in zip(declared.parameters, tried.parameters, strict=True)
        for where, spec in _differences(before.spec, after.spec, before.name)
    )


def _differences(before: Spec, after: Spec, where: str) -> Iterator[tuple[str, Spec]]:
    if isinstance(before, OpenSpec) and before.kind == "object" and not before.default:
        return
    if isinstance(before, OpenSpec | UnionSpec):
        yield where, after
        return
    parts = zip(spec_steps(before), spec_parts(before), spec_parts(after), strict=False)
    for step, mine, other in parts:
        yield from _differences(mine, other, where + step)


class _Candidates:
    """The types that are tried in one signature."""

    def __init__(self, signature: Signature) -> None:
        used = signature.size_names()
        names = (each for each in ("n", "d", "m", "k", "p", "q", "r") if each not in used)
        more = (f"n{number}" for number in count() if f"n{number}" not in used)
        self.sizes: list[Dim] = [variable(next(names, "") or next(more)) for _ in range(3)]
        self.declared = [
            *dict.fromkeys(
                ArraySpec(F32, part.dims)
                for parameter in signature.parameters
                for part in arrays_of(parameter.spec)
                if part.dims and not part.python
            )
        ][:_MOST_DECLARED]

    def of(self, part: OpenSpec | UnionSpec, where: str) -> Sequence[Spec]:
        """Return the types that are tried for a part."""
        if isinstance(part, UnionSpec):
            return sorted(part.items, key=_is_no_array)
        assert isinstance(part, OpenSpec)
        if part.default:
            return (StaticSpec(static_text(part.default[0]), part.default),)
        match part.kind:
            case "array":
                return self._arrays(where)
            case "function":
                return [_function(part.text, each) for each in (None, ArraySpec(F32, ()))]
            case "object" | "instance":
                return (StaticSpec(part.text, (External(where, library=True),)),)

    def _arrays(self, where: str) -> Sequence[Spec]:
        """Return the types of arrays and keys; the kind that the name asks for is first."""
        n, d, m = self.sizes
        shapes = ((n,), (n, d), (m, n, d))
        floats = (ArraySpec(F32, ()), *self.declared, *(ArraySpec(F32, s) for s in shapes))
        integers = (ArraySpec(I32, ()), ArraySpec(I32, (n,)))
        key = ArraySpec(KEY, ())
        if "key" in where or "rng" in where:
            return key, *floats, *integers
        if "mask" in where or "where" in where:
            return *(ArraySpec(BOOL, each.dims) for each in floats), *floats, *integers
        return *floats, *integers, key


def _function(text: str, result: ArraySpec | None) -> StaticSpec:
    """Return a function with unknown arrays as results: of a type, or that of the argument."""

    def unknown(here: Builder, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        del kwargs
        if result is not None:
            return here.program.unknown(ArrayType(F32, ()))
        first = leaf(here, args[0]) if args else None
        if not isinstance(first, Value):
            raise Failure(UnknownValue(name=text))
        return here.program.unknown(first.type)

    title = "a function that keeps types" if result is None else f"a function to {result}"
    return StaticSpec(title, (StaticFunction(text, unknown),))
