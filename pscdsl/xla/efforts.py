"""How much an equation computes for each element, by what is emitted for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from math import inf, isinf, log2
from typing import Any, Final, NamedTuple

from pscdsl.ir import Atom, Block, Equation, Literal, Var
from pscdsl.typing.arrays import ArrayType
from pscdsl.xla.bounds import Bounds
from pscdsl.xla.effort import weight

_ELEMENTS: Final = 1 << 20
"""Of the arrays for which it is emitted: some functions are emitted otherwise for small ones."""
_SIZE: Final = 1.25
"""Sizes of numbers are rounded up to this times a power of 2."""
_FREE: Final = frozenset({"stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.iota"})


class Effort(NamedTuple):
    """What is computed for each element."""

    total: int
    """About how many operations."""
    depth: int
    """How many of them wait for one another."""
    size: float
    """How large the result is at most, where that is seen."""


class Made(NamedTuple):
    """A function that was emitted."""

    operations: Iterable[Any]
    """The last one returns the results."""
    results: Sequence[Any]
    bounds: Sequence[Bounds]
    """Of the results."""
    module: Any
    """It keeps the operations alive."""


_known: dict[Hashable, Effort | None] = {}


def effort_of(
    equation: Equation,
    sizes: Sequence[float],
    without: frozenset[str],
    emit: Callable[[Block, Sequence[Bounds]], Made],
) -> Effort | None:
    """The effort of an equation whose operands have at most these sizes.

    None if it is not computed element by element.  It is emitted, unless one like it was before;
    `without` are the forms that are switched off.
    """
    sizes = list(map(_rounded, sizes))
    kinds = map(_kind, (*equation.inputs, *equation.outputs))
    key = equation.primitive, *kinds, *sizes, without
    if key not in _known:
        block, places = _alone(equation)
        bounds = [(-sizes[place], sizes[place]) for place in places]
        _known[key] = _found(emit(block, bounds))
    return _known[key]


def _rounded(size: float) -> float:
    if isinf(size) or not size:
        return size
    power = -int(-log2(size / _SIZE) // 1)
    return _SIZE * 2.0**power if power < 64 else inf


def _kind(atom: Atom) -> Hashable:
    value = repr(atom.value) if isinstance(atom, Literal) else ""
    return value, atom.type.dtype.name, bool(atom.type.shape)


def _alone(equation: Equation) -> tuple[Block, list[int]]:
    """The equation, with arrays of one size, and which of its operands the parameters are."""
    names: dict[Atom, Var] = {}
    for atom in (*equation.inputs, *equation.outputs):
        if isinstance(atom, Var):
            names[atom] = Var(ArrayType(atom.type.dtype, (_ELEMENTS,) if atom.type.shape else ()))
    inputs = tuple([names.get(each, each) for each in equation.inputs])
    outputs = tuple([names[each] for each in equation.outputs])
    params = tuple(dict.fromkeys([each for each in inputs if isinstance(each, Var)]))
    block = Block(params, (Equation(equation.primitive, inputs, outputs),), outputs)
    return block, [inputs.index(each) for each in params]


def _found(made: Made) -> Effort | None:
    total, longest = 0, 0
    depths: dict[Any, int] = {}
    *operations, _ = made.operations
    for operation in operations:
        own = 0 if operation.name in _FREE else weight(operation.name)
        if own is None:
            return None
        total += own
        depth = own + max([depths.get(each, 0) for each in operation.operands], default=0)
        depths[operation.result] = depth
        longest = max(longest, depth)
    return Effort(total, longest, max(map(abs, made.bounds[0])))
