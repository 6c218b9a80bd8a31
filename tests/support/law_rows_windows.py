"""Rows for windows that slide over all axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, get_args

from pscdsl._src.primitives.reductions import Extreme, Reduction, reducible
from pscdsl._src.primitives.windows import ArgReduceWindow, ReduceWindow
from pscdsl.typing.dims import parse
from pscdsl.typing.dtypes import ALL, C64, F32
from tests.support.law_rows import Row, anything, array_types
from tests.support.law_rows_b import MANY_SHAPES, numeric
from tests.support.law_rows_structure import facts


def _window(
    window: str,
    strides: tuple[int, ...],
    padding: str,
    dilation: tuple[int, ...],
    base: tuple[int, ...] | None = None,
) -> Callable[[Reduction], ReduceWindow]:
    ends = [parse(each) for each in padding.split()]
    pairs = tuple(zip(ends[::2], ends[1::2], strict=True))
    sizes = tuple(parse(each) for each in window.split())
    base = (1,) * len(sizes) if base is None else base
    return lambda kind: ReduceWindow(kind, sizes, strides, pairs, dilation, base)


WINDOWS: tuple[tuple[Callable[[Reduction], ReduceWindow], str, dict[str, int]], ...] = (
    (_window("3", (1,), "0 0", (1,)), "[n]", {"n": 7}),
    (_window("k", (2,), "k-1 1", (1,)), "[n]", {"n": 9, "k": 4}),
    (_window("3 2", (2, 1), "1 2 -1 0", (2, 3)), "[n m]", {"n": 7, "m": 8}),
    (_window("1 2", (1, 1), "0 0 3 3", (1, 1)), "[m n]", {"n": 0, "m": 2}),
    (_window("7", (1,), "0 0", (1,)), "[n]", {"n": 4}),
    (_window("", (), "", ()), "", {}),
    (_window("1 1 2 2", (1, 1, 2, 2), "0 0 0 0 0 0 1 1", (1,) * 4), "[b c h w]", {"h": 5, "w": 4}),
    (_window("2 1 3", (2, 1, 1), "0 0 0 0 -1 2", (1, 1, 2), (1, 1, 3)), "[n m k]", {"n": 5}),
    (_window("k", (3,), "2 k", (2,), (2,)), "[n]", {"n": 6, "k": 3}),
)


def _windows() -> Iterator[Row]:
    kinds: tuple[Reduction, ...] = get_args(Reduction)
    for dtype in ALL:
        some = WINDOWS[:6] if dtype in MANY_SHAPES else WINDOWS[:3:2]
        for make, shape, sizes in WINDOWS if dtype in (F32, C64) else some:
            for kind in kinds:
                if not reducible(kind, dtype):
                    continue
                domain, tolerance, absolute = numeric(dtype)
                if kind in ("maximum", "minimum"):
                    domain, tolerance, absolute = anything, 0, 0
                operand, known = array_types(f"{dtype}{shape}"), facts("n >= 0")
                where = (operand, sizes, domain, tolerance, absolute, False, known)
                primitive = make(kind)
                yield Row(primitive, *where)
                if kind in get_args(Extreme):
                    shared = int(bool(shape) and primitive.window[0] == 1)
                    given: dict[str, Any] = {
                        each.name: getattr(primitive, each.name) for each in fields(primitive)
                    }
                    yield Row(ArgReduceWindow(**given, shared=shared), *where)


ROWS = tuple(_windows())
