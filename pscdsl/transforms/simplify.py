"""Smaller programs with the same meaning.

Two passes over each block, from the outside in, until nothing changes: `_Forward` replaces what
is known (equal equations, constants, identities), `prune` leaves out what nobody needs.  Time is
linear in the size of the program; what is as simple as can be is returned as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pscdsl.ir import Atom, Block, Equation, Function, Literal, Var
from pscdsl.primitive import Primitive
from pscdsl.primitives.control import Call, Scan, Switch, While
from pscdsl.primitives.creation import Constant
from pscdsl.primitives.elementwise import Clamp, Elementwise, Select
from pscdsl.primitives.shaping import Broadcast, Reshape, Reverse, Slice, Transpose
from pscdsl.transforms.folding import POINTWISE, Known, fold, fold_scalars, literal_of
from pscdsl.transforms.identities import same_as
from pscdsl.transforms.loops import split_scan, split_while
from pscdsl.transforms.nesting import callees, rebuilt
from pscdsl.transforms.prune import prune
from pscdsl.typing.spans import Span

ROUNDS = 4
"""How often the passes are repeated at most; the second time rarely finds anything."""

_TAKES_SCALARS = (Elementwise, Select, Clamp)
"""Pointwise functions of several operands: one of rank 0 applies everywhere."""
_MOVES_ONLY = (Broadcast, Reshape, Transpose, Slice, Reverse)
"""What gives a repeated scalar again, if it is given one."""


def simplify(function: Function) -> Function:
    """The function, and all that it calls, without what they do not need."""
    memo: dict[Function, Function] = {}
    due = [function]
    while due:  # callees first
        current = due[-1]
        if current in memo:
            due.pop()
            continue
        missing = [each for each in callees(current.body) if each not in memo]
        if missing:
            due.extend(missing)
            continue
        due.pop()
        memo[current] = done = _simplified(current, memo)
        memo[done] = done
    return memo[function]


def _simplified(function: Function, memo: dict[Function, Function]) -> Function:
    body = function.body
    for _ in range(ROUNDS):
        before = body
        body = prune(_Forward(memo).block(body, {}))
        if body is before:
            break
    return function if body is function.body else replace(function, body=body)


@dataclass(slots=True)
class _Scope:
    """What is known in one block, on the way through it."""

    names: dict[Atom, Atom]
    """What to use instead of a variable."""
    equations: list[Equation] = field(default_factory=list[Equation])
    made: dict[Atom, Equation] = field(default_factory=dict[Atom, Equation])
    by_meaning: dict[object, Equation] = field(default_factory=dict[object, Equation])
    scalars: dict[Atom, Atom] = field(default_factory=dict[Atom, Atom])
    """The scalar of which an array has copies everywhere."""
    arrays: Known = field(default_factory=Known)

    def __call__(self, atom: Atom) -> Atom:
        return self.names.get(atom, atom)
