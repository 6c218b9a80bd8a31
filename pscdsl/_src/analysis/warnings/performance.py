"""Needless costs in time or memory: large constants, doubles, outer sums, both branches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from pscdsl._src.analysis.warnings.programs import LiveProgram, Wording
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control import Call, Control
from pscdsl._src.primitives.custom_derivatives import Implicit, Ruled
from pscdsl._src.primitives.elementwise import Elementwise
from pscdsl._src.primitives.matrices import OfMatrices
from pscdsl._src.primitives.reductions import Reduce
from pscdsl._src.primitives.regions import Layout, Nesting, Role
from pscdsl._src.primitives.scan import Scan
from pscdsl._src.primitives.shaping import Broadcast, Constant, Reshape
from pscdsl._src.primitives.sorting import Sort, TopK
from pscdsl.typing.array_types import size_of
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.numerics import ColumnMeetsRow
from pscdsl.typing.codes.performance import (
    AllBranchesRun,
    LargeConstant,
    ProductOfRows,
    UnaskedDouble,
)
from pscdsl.typing.diagnostics import Diagnostic, Label, Span
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, C128, F64

# Large constants, double precision that was not requested, products of single rows.


LARGE = 1 << 20
"""The size in bytes from which on a constant is large."""


def check_constants(program: LiveProgram, wording: Wording) -> Iterator[Diagnostic]:
    """Large arrays that are part of the program."""
    for at in program.made(Constant):
        if isinstance(at.primitive, Constant) and len(at.primitive.data) >= LARGE:
            kind, size = str(at.outputs[0].type), len(at.primitive.data)
            yield LargeConstant(type=kind, size=size, span=at.span)


def check_doubles(program: LiveProgram, wording: Wording) -> Iterator[Diagnostic]:
    """Results in double precision; for functions that declare no result."""
    body = program.function.body
    if any(_is_double(param) for param in body.params):
        return
    for result in body.results:
        origin = _origin(program, result, set()) if _is_double(result) else None
        if origin is not None and not any(
            word in wording.text(origin.span) for word in ("64", "128", "double")
        ):
            text = wording.name(program, origin.outputs[0])
            yield UnaskedDouble(result=str(result.type), origin=text, span=origin.span)
            return


def _is_double(atom: Atom) -> bool:
    return atom.type.dtype is F64 or atom.type.dtype is C128


def _origin(program: LiveProgram, atom: Atom, seen: set[Atom]) -> Equation | None:
    """Return the equation that makes a double without a double operand."""
    at = program.definition(atom)
    if at is None or atom in seen:
        return None
    seen.add(atom)
    doubles = [operand for operand in at.inputs if _is_double(operand)]
    variables = [each for each in doubles if isinstance(each, Var)]
    if not doubles and not at.primitive.blocks():
        return at
    return next(
        (
            found
            for variable in variables
            if (found := _origin(program, variable, seen)) is not None
        ),
        None,
    )


def check_rows(program: LiveProgram, wording: Wording) -> Iterator[Diagnostic]:
    """`psc.map` over products of one matrix with each row."""
    for at in program.made(Scan):
        primitive = at.primitive
        if not isinstance(primitive, Scan) or primitive.carried:
            continue
        _, _, arrays = primitive.roles(at.inputs)
        captured, _, slices = primitive.roles(primitive.body.params)
        rows, matrices = dict(zip(slices, arrays, strict=True)), frozenset(captured)
        for inner in primitive.body.equations:
            product = inner.primitive
            if not isinstance(product, DotGeneral):
                continue
            left, right = inner.inputs
            (left_axes, right_axes) = product.contract
            for row, matrix, axes in ((left, right, right_axes), (right, left, left_axes)):
                if row in rows and matrix in matrices and _is_product(row, matrix):
                    yield ProductOfRows(
                        rows=wording.name(program, rows[row]),
                        matrix=wording.name(program, matrix),
                        axis=axes[0],
                        span=inner.span,
                    )


def _is_product(row: Atom, matrix: Atom) -> bool:
    return row.type.rank == 1 and matrix.type.rank == 2


# A column with a row: `[n 1]` and `[n]` make `[n n]`, which is then reduced.


_FAR = 8
"""The number of equations that are searched for the origin of a column."""
_FUNCTIONS = (
    *(e.add, e.subtract, e.multiply, e.divide, e.maximum, e.minimum),
    *(e.equal, e.not_equal, e.less, e.less_equal, e.greater, e.greater_equal),
)
_NEW_AXES = ("Subscript", "expand_dims", "reshape", "atleast_2d", "column_stack")
"""The texts of operations that ask for an axis of size 1."""


def check_columns(program: LiveProgram, wording: Wording) -> Iterator[Diagnostic]:
    """Report elementwise functions of a column and a row of one size whose result is reduced."""
    for at in program.made(*_FUNCTIONS):
        shape = at.outputs[0].type.shape
        if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] == 1 or len(at.inputs) != 2:
            continue
        for position in (0, 1):
            column = _column(program, at.inputs[position], len(shape))
            row = _row(program, at.inputs[1 - position], len(shape))
            if column is None or row is None or _is_wanted(program, wording, column, _FAR):
                continue
            if _is_reduced(program, at.outputs[0], {len(shape) - 2, len(shape) - 1}):
                yield ColumnMeetsRow(
                    column=wording.operand(program, at, position),
                    row=wording.operand(program, at, 1 - position),
                    types=(str(column.type), str(row.type)),
                    result=str(at.outputs[0].type),
                    span=at.span,
                )


def _column(program: LiveProgram, atom: Atom, rank: int) -> Atom | None:
    """Return an array with a last axis of size 1 that is repeated."""
    at = program.definition(atom)
    if at is None or not isinstance(at.primitive, Broadcast):
        return None
    if rank - 2 not in at.primitive.dims or rank - 1 in at.primitive.dims:
        return None
    inner = program.definition(at.inputs[0])
    if inner is None or not isinstance(inner.primitive, Reshape):
        return None
    found = inner.inputs[0]
    flat = at.inputs[0].type.shape
    return found if found.type.shape == (*flat, 1) else None


def _row(program: LiveProgram, atom: Atom, rank: int) -> Atom | None:
    """Return an array with one axis less that is repeated along the one before its last."""
    at = program.definition(atom)
    if at is None or not isinstance(at.primitive, Broadcast):
        return None
    dims: tuple[int, ...] = at.primitive.dims
    if rank - 1 not in dims or rank - 2 in dims:
        return None
    inner = program.definition(at.inputs[0])
    if inner is not None and isinstance(inner.primitive, Reshape):
        sizes: tuple[Size, ...] = inner.inputs[0].type.shape
        if len(sizes) > len(dims) and sizes[-1] == inner.outputs[0].type.shape[-1]:
            return None  # `[1 n]`: the row is wanted
    return at.inputs[0]


def _is_wanted(program: LiveProgram, wording: Wording, atom: Atom, depth: int) -> bool:
    """Return whether the code asks for a column: by an index with `None`, by `reshape`."""
    at = program.definition(atom)
    if at is None or not depth:
        return False
    if isinstance(at.primitive, Reshape) and wording.operation(at.span) in _NEW_AXES:
        return True
    if not isinstance(at.primitive, e.Elementwise | e.Convert | Broadcast | Reshape):
        return False
    return any(_is_wanted(program, wording, operand, depth - 1) for operand in at.inputs)


def _is_reduced(program: LiveProgram, var: Var, axes: set[int]) -> bool:
    """Return whether all uses of a value reduce it along some axes, after elementwise functions."""
    users = program.uses.get(var, [])
    return (
        bool(users)
        and not program.is_result(var)
        and all(_reduces(program, user, axes) for user in users)
    )


def _reduces(program: LiveProgram, at: Equation, axes: set[int]) -> bool:
    if isinstance(at.primitive, Reduce):
        return axes <= {*at.primitive.axes}
    if isinstance(at.primitive, e.Elementwise | e.Convert | e.Select):
        return _is_reduced(program, at.outputs[0], axes)
    return False


# Branches that a batch runs for every row, because the decision differs from row to row.
#
# `psc.vmap` makes one program for all rows, and a program takes one branch. Where rows decide
# differently, every branch runs for all of them, and each row selects from the results.


_CALLED = {"fft": "a Fourier transform", "convolution": "a convolution"}
CHEAP = 100
"""As many operations for each element take no longer than the element's way to memory and back."""

Flags = tuple[bool, ...]
T = TypeVar("T")


def branches_run_by_all(
    facts: Assumptions, block: Block, batched: Sequence[bool], asked: Label
) -> Iterable[AllBranchesRun]:
    """Yield the choices in a block that its batch makes row by row, except cheap ones."""
    rows = _Rows()
    rows.block(facts, block, tuple(batched))
    for span, (known, equation) in rows.found.items():
        primitive = equation.primitive
        assert isinstance(primitive, Control)
        weights = [_weight(known, each) for each in primitive.blocks()]
        lost = sum(weight.operations for weight in weights) - min(
            weight.operations for weight in weights
        )
        if lost <= CHEAP:
            continue
        dearest = max(range(len(weights)), key=lambda at: weights[at].operations)
        ((index,),) = _decisions(primitive.layout, equation.inputs)
        is_bool = index.type.dtype is BOOL
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


def _decisions(layout: Layout, operands: Sequence[T]) -> list[Sequence[T]]:
    """Return the operands that decide which of several branches runs."""
    if all(region.nesting is not Nesting.BRANCH for region in layout.regions):
        return []
    return [x for group, x in layout.operands(operands).items() if group.role is Role.DECISION]


def _says_nothing(outer: Span, inner: Span) -> bool:
    """Return whether the inner span shows the outer one: as a call that led to it, or around it."""
    return outer in inner.frames() or (
        outer.path == inner.path
        and (outer.line, outer.column) <= (inner.line, inner.column)
        and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
    )


class _Rows:
    """The values that differ from row to row, through all nested programs."""

    def __init__(self) -> None:
        self.found: dict[Span, tuple[Assumptions, Equation]] = {}
        """The choices that do, by their places: a derivative repeats those of its function."""
        self._called: dict[tuple[Function, Flags], Flags] = {}

    def block(self, facts: Assumptions, block: Block, batched: Flags) -> Flags:
        """Return for each of a block's results whether it is batched."""
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
        primitive, always = equation.primitive, (True,) * len(equation.outputs)
        if isinstance(primitive, Call):
            function, key = primitive.function, (primitive.function, flags)
            if key not in self._called:
                self._called[key] = self.block(function.facts, function.body, flags)
            return self._called[key]
        if not isinstance(primitive, Control):
            return always
        if any(map(any, _decisions(primitive.layout, flags))):
            self.found.setdefault(equation.span, (facts, equation))
        found = primitive.layout.spread(flags, partial(self.block, facts))
        # Rules for derivatives and solutions are of whole batches.
        return always if isinstance(primitive, Ruled | Implicit) else found


@dataclass(frozen=True)
class _Weight:
    """The number of operations for each element, and the most expensive of them."""

    operations: float
    what: str = ""


def _weight(facts: Assumptions, block: Block) -> _Weight:
    """Return the work of a branch; sizes count only for the repeated use of elements."""
    total: float = 0
    for equation in block.equations:
        found = _equation_weight(facts, equation)
        if found.operations > CHEAP and found.what:
            return _Weight(float("inf"), found.what)
        total += found.operations
    return _Weight(total)


def _equation_weight(facts: Assumptions, equation: Equation) -> _Weight:
    match equation.primitive:
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
        case Call(function=function):
            return _weight(function.facts, function.body)
        case Control() as control:
            regions = control.layout.run
            if any(region.nesting is Nesting.LOOP for region in regions):
                return _Weight(float("inf"), "a loop")
            weights = [_weight(facts, region.block) for region in regions]
            return max(weights, key=lambda x: x.operations, default=_Weight(0))
        case primitive:
            types = tuple([atom.type for atom in equation.inputs])
            results = tuple([var.type for var in equation.outputs])
            cost = primitive.cost(types, results)
            sizes = [size_of(each.shape) for each in (*types, *results)]
            return _Weight(
                _cost_of_each(facts, cost, sizes),
                _CALLED.get(primitive.name, f"`{primitive.label}`"),
            )


def _cost_of_each(facts: Assumptions, cost: Size, sizes: Sequence[Size]) -> float:
    """Return a cost for each element of the largest array, as far as that is proven."""
    if cost == 0:
        return 0
    for operations in (1, 2, 4, 8, 16, 32, 64):
        if any(facts.proves(Fact("<=", cost, size * operations)) for size in sizes):
            return operations
    return float("inf")
