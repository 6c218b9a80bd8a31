"""How much an equation computes for each element, by what is emitted for it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from math import inf
from typing import Any, Final

from pscdsl._src.ir.hlo import Effort
from pscdsl._src.ir.program import Atom, Block, Equation, Literal, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.xla.emit.facts.apart import Made
from pscdsl._src.xla.emit.facts.bounds import Bounds
from pscdsl._src.xla.emit.facts.effort import weight
from pscdsl.typing.arrays import ArrayType

_ELEMENTS: Final = 1 << 20
"""Of the arrays for which it is emitted: some functions are emitted otherwise for small ones."""
_SIZES: Final = (1.02, 1.6, 64.0, 2.0**23)
"""How large numbers are is rounded up to one of these, so that few equations differ."""
_OF_CONSTANTS: Final = frozenset({e.power})
"""Functions that are emitted otherwise for some constants."""
_FREE: Final = frozenset({"stablehlo.constant", "stablehlo.broadcast_in_dim", "stablehlo.iota"})
_known: dict[Hashable, Effort | None] = {}


def effort_of(
    equation: Equation,
    sizes: Sequence[float],
    target: Hashable,
    emit: Callable[[Block, Sequence[Bounds]], Made],
) -> Effort | None:
    """The effort of an equation whose operands have at most these sizes.

    None if it is not computed element by element.  It is emitted, unless one like it was before;
    `target` stands for how that is done.
    """
    sizes = [_SIZES[bisect_left(_SIZES, x)] if x <= _SIZES[-1] else inf for x in sizes]
    kinds = [_kind(each) for each in (*equation.inputs, *equation.outputs)]
    constants: list[Hashable] = []
    if equation.primitive in _OF_CONSTANTS:
        constants = [repr(each.value) for each in equation.inputs if isinstance(each, Literal)]
    key = equation.primitive, *kinds, *sizes, *constants, target
    if key not in _known:
        block, places = _alone(equation, constant=bool(constants))
        _known[key] = _found(emit(block, [(-sizes[place], sizes[place]) for place in places]))
    return _known[key]


def _kind(atom: Atom) -> Hashable:
    return atom.type.dtype.name, bool(atom.type.shape)


def _alone(equation: Equation, *, constant: bool) -> tuple[Block, list[int]]:
    """The equation, with arrays of one size, and which of its operands the parameters are.

    Numbers stay as they are if they are to be `constant`.
    """
    names: dict[Atom, Atom] = {}
    for atom in (*equation.inputs, *equation.outputs):
        type_ = ArrayType(atom.type.dtype, (_ELEMENTS,) if atom.type.shape else ())
        names[atom] = atom if constant and isinstance(atom, Literal) else Var(type_)
    inputs = tuple([names[each] for each in equation.inputs])
    (output,) = [x for each in equation.outputs if isinstance(x := names[each], Var)]
    params = tuple(dict.fromkeys([each for each in inputs if isinstance(each, Var)]))
    block = Block(params, (Equation(equation.primitive, inputs, (output,)),), (output,))
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
