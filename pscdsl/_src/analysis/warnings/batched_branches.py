"""Branches that a batch runs for every row, because what decides differs from row to row.

`psc.vmap` makes one program for all rows, and a program takes one branch.  Where rows decide
differently, every branch is run for all of them, and each row selects from the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pscdsl._src.ir.program import Block, Equation, Function
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control import AssociativeScan, Call, MapReduce, Scan, Switch, While
from pscdsl._src.primitives.control.custom_derivatives import Ruled
from pscdsl._src.primitives.control.implicit import Implicit
from pscdsl._src.primitives.control.remat import Checkpoint
from pscdsl._src.primitives.elementwise import Elementwise
from pscdsl._src.primitives.linalg.base import OfMatrices
from pscdsl._src.primitives.sorting import Sort, TopK
from pscdsl.typing.arrays import size_of
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.performance_batches import AllBranchesRun
from pscdsl.typing.diagnostics import Label
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL
from pscdsl.typing.spans import Span

_CALLED = {"fft": "a Fourier transform", "convolution": "a convolution"}
CHEAP = 100
"""As many operations for each element take no longer than the element's way to memory and back."""

Flags = tuple[bool, ...]


def branches_run_by_all(
    facts: Assumptions, block: Block, batched: Sequence[bool], asked: Label
) -> Iterable[AllBranchesRun]:
    """The choices in a block that its batch makes row by row, but for those that cost nothing."""
    rows = _Rows()
    rows.block(facts, block, tuple(batched))
    for span, (known, equation) in rows.found.items():
        primitive = equation.primitive
        assert isinstance(primitive, Switch)
        weights = [_weight(known, each) for each in primitive.branches]
        lost = sum(each.operations for each in weights) - min(each.operations for each in weights)
        if lost <= CHEAP:
            continue
        dearest = max(range(len(weights)), key=lambda at: weights[at].operations)
        is_bool = equation.inputs[0].type.dtype is BOOL
        called = (
            ("the false branch", "the true branch")[dearest] if is_bool else f"branch {dearest}"
        )
        yield AllBranchesRun(
            construct="cond" if is_bool else "switch",
            count=len(weights),
            work=weights[dearest].what and f"{called} has {weights[dearest].what}",
            lost=lost,
            span=span,
            labels=() if _says_nothing(asked.span, span) else (asked,),
        )


def _says_nothing(outer: Span, inner: Span) -> bool:
    """Whether a place shows another one anyhow: as a call that led to it, or around it."""
    return outer in inner.frames() or (
        outer.path == inner.path
        and (outer.line, outer.column) <= (inner.line, inner.column)
        and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
    )


class _Rows:
    """Which values differ from row to row, through all nested programs."""

    def __init__(self) -> None:
        self.found: dict[Span, tuple[Assumptions, Equation]] = {}
        """The choices that do, by their places: a derivative repeats those of its function."""
        self._called: dict[tuple[Function, Flags], Flags] = {}

    def block(self, facts: Assumptions, block: Block, batched: Flags) -> Flags:
        """Which results are batched."""
        many = {var for var, flag in zip(block.params, batched, strict=True) if flag}
        if not many:
            return (False,) * len(block.results)
        for equation in block.equations:
            flags = tuple([atom in many for atom in equation.inputs])
            if any(flags):
                found = self._equation(facts, equation, flags)
                many.update(var for var, flag in zip(equation.outputs, found, strict=True) if flag)
        return tuple([atom in many for atom in block.results])

    def _equation(self, facts: Assumptions, equation: Equation, flags: Flags) -> Flags:
        match equation.primitive:
            case Switch() as switch:
                return self._switch(facts, switch, equation, flags)
            case Scan() as scan:
                return self._scan(facts, scan, flags)
            case While() as loop:
                return self._while(facts, loop, flags)
            case AssociativeScan() as prefixes:
                captured, rows = prefixes.roles(flags)
                return self._combined(facts, prefixes.combine, captured, rows)
            case MapReduce() as reduction:
                return self._reduced(facts, reduction, flags)
            case Call(function=function):
                key = (function, flags)
                if key not in self._called:
                    self._called[key] = self.block(function.facts, function.body, flags)
                return self._called[key]
            case Checkpoint(body=body):
                return self.block(facts, body, flags)
            case Ruled(body=body, captured=captured):
                own = (*flags[: captured[0]], *flags[sum(captured) :])
                self.block(facts, body, own)
            case Implicit(solver=solver) as solution:
                self.block(facts, solver, tuple(solution.run(flags)))
            case _:
                pass
        return (True,) * len(equation.outputs)

    def _switch(
        self, facts: Assumptions, switch: Switch, equation: Equation, flags: Flags
    ) -> Flags:
        if flags[0] and len(switch.branches) > 1:
            self.found.setdefault(equation.span, (facts, equation))
        found = [self.block(facts, each, flags[1:]) for each in switch.branches]
        return tuple([flags[0] or any(column) for column in zip(*found, strict=True)])

    def _scan(self, facts: Assumptions, scan: Scan, flags: Flags) -> Flags:
        captured, carry, arrays = scan.roles(flags)
        while True:
            found = self.block(facts, scan.body, (*captured, *carry, *arrays))
            after = [a or b for a, b in zip(carry, found, strict=False)]
            if after == carry:
                return (*carry, *found[len(carry) :])
            carry = after

    def _while(self, facts: Assumptions, loop: While, flags: Flags) -> Flags:
        by_cond, by_body, carry = loop.roles(flags)
        while True:
            found = self.block(facts, loop.body, (*by_body, *carry))
            uneven = any(self.block(facts, loop.cond, (*by_cond, *carry)))
            after = [uneven or a or b for a, b in zip(carry, found, strict=True)]
            if after == carry:
                return tuple(carry)
            carry = after

    def _reduced(self, facts: Assumptions, reduction: MapReduce, flags: Flags) -> Flags:
        by_body, by_combine, initial, arrays = reduction.roles(flags)
        found = self.block(facts, reduction.body, (*by_body, *arrays))
        first = initial or [False] * len(found)
        rows = [a or b for a, b in zip(found, first, strict=True)]
        return self._combined(facts, reduction.combine, by_combine, rows)

    def _combined(
        self, facts: Assumptions, combine: Block, captured: Sequence[bool], rows: Sequence[bool]
    ) -> Flags:
        rows = tuple(rows)
        while True:
            found = self.block(facts, combine, (*captured, *rows, *rows))
            after = tuple([a or b for a, b in zip(rows, found, strict=True)])
            if after == rows:
                return rows
            rows = after


@dataclass(frozen=True)
class _Weight:
    """How many operations something takes for each element, and what the most of them is."""

    operations: float
    what: str = ""


def _weight(facts: Assumptions, block: Block) -> _Weight:
    """The work of a branch; sizes do not count, but for how often an element is used."""
    total: float = 0
    for equation in block.equations:
        found = _of_equation(facts, equation)
        if found.operations > CHEAP and found.what:
            return _Weight(float("inf"), found.what)
        total += found.operations
    return _Weight(total)


def _of_equation(facts: Assumptions, equation: Equation) -> _Weight:
    match equation.primitive:
        case Scan() | While() | AssociativeScan() | MapReduce():
            return _Weight(float("inf"), "a loop")
        case Sort() | TopK():
            return _Weight(float("inf"), "a sort")
        case OfMatrices():
            return _Weight(float("inf"), "a decomposition or a system to solve")
        case Elementwise(flops=flops):
            return _Weight(flops)
        case DotGeneral(contract=((*axes,), _)):
            terms = size_of(tuple([equation.inputs[0].type.shape[axis] for axis in axes]))
            operations = 2 * terms if isinstance(terms, int) else float("inf")
            return _Weight(operations, "a product of arrays")
        case Switch(branches=branches):
            return max((_weight(facts, each) for each in branches), key=lambda x: x.operations)
        case Call(function=function):
            return _weight(function.facts, function.body)
        case Checkpoint(body=body) | Ruled(body=body) | Implicit(solver=body):
            return _weight(facts, body)
        case primitive:
            types = tuple([atom.type for atom in equation.inputs])
            results = tuple([var.type for var in equation.outputs])
            cost = primitive.cost(types, results)
            sizes = [size_of(each.shape) for each in (*types, *results)]
            return _Weight(
                _for_each(facts, cost, sizes), _CALLED.get(primitive.name, f"`{primitive.label}`")
            )


def _for_each(facts: Assumptions, cost: Size, sizes: Sequence[Size]) -> float:
    """A cost for each element of the largest array, as far as that is proven."""
    if cost == 0:
        return 0
    for operations in (1, 2, 4, 8, 16, 32, 64):
        if any(facts.proves(Fact("<=", cost, size * operations)) for size in sizes):
            return operations
    return float("inf")
