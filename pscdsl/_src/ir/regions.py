"""The blocks and functions that a primitive holds, whichever primitive it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Block, Function, walk

P = TypeVar("P", bound=Primitive)


def callees(block: Block) -> Iterator[Function]:
    """The functions that a block and the blocks in it mention."""
    for equation in walk(block):
        if not is_plain(equation.primitive):
            yield from functions_in(equation.primitive)


def mapped(
    function: Function, change: Callable[[Function, Mapping[Function, Function]], Function]
) -> Function:
    """A function and all that it calls, each changed once, callees first.

    `change` gets a function, and what its callees have become.
    """
    memo: dict[Function, Function] = {}
    due = [function]
    while due:
        current = due[-1]
        missing = [] if current in memo else [f for f in callees(current.body) if f not in memo]
        if missing:
            due.extend(missing)
            continue
        due.pop()
        if current not in memo:
            done = change(current, memo)
            memo[current] = memo[done] = done
    return memo[function]


def functions_in(primitive: Primitive) -> Iterator[Function]:
    """The functions among the fields of a primitive."""
    return (part for part in _parts(primitive) if isinstance(part, Function))


def is_plain(primitive: Primitive) -> bool:
    """Whether primitives of this class never hold programs; most do not, and this is fast."""
    return type(primitive).blocks is Primitive.blocks


def holds_programs(primitive: Primitive) -> bool:
    """Whether blocks or functions are among the fields of a primitive."""
    return any(isinstance(part, Block | Function) for part in _parts(primitive))


def rebuilt(
    primitive: P, block: Callable[[Block], Block], function: Callable[[Function], Function]
) -> P:
    """The primitive with other blocks and functions; itself if they are the same ones."""
    if is_plain(primitive) or not is_dataclass(primitive):
        return primitive

    def change(value: object) -> object:
        if isinstance(value, Block):
            return block(value)
        if isinstance(value, Function):
            return function(value)
        if isinstance(value, tuple):
            items = cast("tuple[object, ...]", value)
            new = tuple([change(item) for item in items])
            return new if any(a is not b for a, b in zip(new, items, strict=True)) else items
        return value

    changed: dict[str, Any] = {}
    for each in fields(primitive):
        old: object = getattr(primitive, each.name)
        new = change(old)
        if new is not old:
            changed[each.name] = new
    return cast("P", replace(primitive, **changed)) if changed else primitive


def _parts(primitive: Primitive) -> Iterator[object]:
    if is_plain(primitive) or not is_dataclass(primitive):
        return
    for each in fields(primitive):
        value: object = getattr(primitive, each.name)
        if isinstance(value, tuple):
            yield from _items(cast("tuple[object, ...]", value))
        else:
            yield value


def _items(values: tuple[object, ...]) -> Iterator[object]:
    for value in values:
        if isinstance(value, tuple):
            yield from _items(cast("tuple[object, ...]", value))
        else:
            yield value
