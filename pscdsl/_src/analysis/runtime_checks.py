"""Checks of running programs that are switched on from outside: NaN, infinities, indices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pscdsl._src.analysis.origins import IsBad, has, source_of
from pscdsl._src.ir.primitive import NDArray, Primitive
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Var, mapped, rebuilt
from pscdsl._src.primitives.control import Control
from pscdsl._src.primitives.effects import InRange, NoInfinity, NoNan, without_effects
from pscdsl._src.primitives.indexing import DynamicSlice, DynamicUpdate, Gather, Scatter
from pscdsl._src.primitives.regions import Role
from pscdsl._src.primitives.shaping import SizeValue
from pscdsl._src.support.effects import Kind
from pscdsl.typing.array_types import ArrayType, paths
from pscdsl.typing.dims import name
from pscdsl.typing.dtypes import I64


def with_checks(function: Function, kinds: Collection[Kind]) -> Function:
    """Return a function that checks what it computes when it runs."""
    if "index" in kinds:
        function = _with_indices(function)
    body, dims = function.body, function.dims
    wanted = [cls for cls in (NoNan, NoInfinity) if cls.kind in kinds]
    if not wanted or not any(each.dtype.is_inexact for each in body.out_types):
        return function
    pure = without_effects(function)
    sizes = [Equation(SizeValue(name(dim), I64), (), (Var(ArrayType(I64)),)) for dim in dims]
    given = (*[each.outputs[0] for each in sizes], *body.params, *body.results)
    effects: list[Equation] = []
    for cls in wanted:
        find = partial(_explained, pure, cls().is_bad)
        check = cls(find=find, results=len(body.results), function=function.name)
        effects.append(Equation(check, given, (), function.span))
    return replace(function, body=replace(body, equations=(*body.equations, *sizes, *effects)))


def _explained(function: Function, is_bad: IsBad, given: Sequence[NDArray]) -> str:
    """Return where a bad result comes from, given the sizes and the arguments; empty if unknown."""
    count = len(function.dims)
    sizes = {dim: int(size) for dim, size in zip(function.dims, given[:count], strict=True)}
    arguments = given[count:]
    paths_of = [path for name, tree in function.parameters for path, _ in paths(tree, name)]
    for at, argument in enumerate(arguments):
        if has(is_bad, argument):
            return f"  the argument `{paths_of[at]}` has it" if paths_of else ""
    source = source_of(function, sizes, arguments, is_bad)
    return "" if source is None else str(source)


def _with_indices(function: Function) -> Function:
    """Return a function that checks the places of its arrays that it reads and writes."""
    blocks: dict[Block, Block] = {}

    def changed(current: Function, functions: Mapping[Function, Function]) -> Function:
        def of_block(block: Block) -> Block:
            if block not in blocks:
                blocks[block] = _checked(block, of_block, functions)
            return blocks[block]

        return replace(current, body=of_block(current.body))

    return mapped(function, changed)


def _checked(
    block: Block, of_block: Callable[[Block], Block], functions: Mapping[Function, Function]
) -> Block:
    equations: list[Equation] = []
    for equation in block.equations:
        primitive = equation.primitive
        if not _combines(primitive):
            changed = rebuilt(primitive, of_block, functions.__getitem__)
            equation = equation.with_primitive(changed)
        equations.append(equation)
        operands: tuple[Atom, ...] = ()
        axes: tuple[int, ...] = ()
        match primitive:
            case Gather() | Scatter():
                x, indices, *_ = equation.inputs
                operands, axes = (x, x, indices), primitive.axes
            case DynamicSlice():
                x, *starts = equation.inputs
                operands = (x, *equation.outputs, *starts)
            case DynamicUpdate():
                operands = equation.inputs
            case _:
                continue
        if len(operands) > 2:
            equations.append(Equation(InRange(0, axes, equation.span), operands, (), equation.span))
    return Block(block.params, tuple(equations), block.results)


def _combines(primitive: Primitive) -> bool:
    """Return whether a primitive runs a block on elements in any order, which has no effects."""
    return isinstance(primitive, Control) and any(
        group.role is Role.PARTIAL for region in primitive.layout.regions for group in region.takes
    )
