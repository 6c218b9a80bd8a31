"""Gradients of JAX functions that are NaN or infinite where the value is finite.

Functions that reverse mode differentiates are run at points where derivatives are known to end:
zeros, equal numbers, the bounds of conditions. A finding is a point at which that happens.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Final

import numpy as np

from pscdsl._src.checker.jax_functions import JaxFunction, checked_function, is_annotated
from pscdsl._src.checker.jax_rewrites import rewritten
from pscdsl._src.dialects.jax.derivatives import (
    MOST_EQUATIONS,
    Bounded,
    Cotangent,
    Fault,
    Pullback,
    Unknown,
    is_finite,
)
from pscdsl._src.dialects.jax.differentiated import Differentiation, differentiations
from pscdsl._src.dialects.jax.modules import Modules
from pscdsl._src.dialects.jax.names import Scope
from pscdsl._src.frontend.modules.jax_programs import outside_packages
from pscdsl._src.frontend.modules.scope import StaticModule
from pscdsl._src.frontend.text.source import FunctionStatement
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.ir.program import (
    Atom,
    Block,
    Evaluator,
    Function,
    Literal,
    functions_in,
    literal_array,
    walk,
    walk_called,
)
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.effects import CheckFailed
from pscdsl.typing.array_types import ArrayType, TupleType, leaves, paths
from pscdsl.typing.codes.numerics import GradientNotFinite
from pscdsl.typing.diagnostics import Diagnostic, Failure, Label, Span
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, KEY

_FAR: Final = 1000.0
"""A number whose exponential overflows; a gradient that is infinite there is none of interest."""
_MOST_POINTS: Final = 96
_MOST_BOUNDS: Final = 4
_SHOWN: Final = 8
"""The most elements that are listed of an array of equal numbers."""
_PLAIN: Final = (0.5, 0.75, 1.25, 1.5, 2.0, 0.25, 1.75)
"""Numbers at which nothing is special."""
_SIZES: Final = (2, 3, 1, 4)
_COMPARED: Final = (e.less, e.less_equal, e.greater, e.greater_equal, e.equal, e.not_equal)
_UNUSABLE: Final = (
    *(Unknown, Failure, CheckFailed, ArithmeticError, IndexError, KeyError),
    *(NotImplementedError, ValueError, TypeError, AssertionError, np.linalg.LinAlgError),
)
"""What an evaluation raises at a point that says nothing."""


@dataclass(frozen=True)
class Point:
    """An input of a function."""

    values: tuple[NDArray, ...]
    is_far: bool = False
    """Whether it has numbers whose exponentials overflow."""


@dataclass(frozen=True)
class Visit:
    """A block that reverse mode differentiates, at a point."""

    block: Block
    operands: tuple[NDArray, ...]
    active: tuple[bool, ...]
    moving_results: int
    sizes: Mapping[str, int]
    function: Function


def gradient_findings(
    module: StaticModule, functions: Iterable[JaxFunction]
) -> Iterator[Diagnostic]:
    """Yield the faults of gradients in a file, and of functions that it differentiates."""
    own = module.project.files.analysis(Modules).program(module)
    asked: dict[ast.AST, list[Differentiation]] = {}
    others: dict[ast.AST, Scope] = {}
    for each in differentiations(own):
        asked.setdefault(each.scope.node, []).append(each)
        if each.scope.program is not own:
            others[each.scope.node] = each.scope
    found: dict[Span, Diagnostic] = {}
    for function in (*functions, *_imported(module, others.values())):
        for program in function.programs:
            for finding in _findings(module, program, asked.get(function.node, ())):
                found.setdefault(replace(finding.span, call_site=None), finding)
    yield from found.values()


def _imported(module: StaticModule, scopes: Iterable[Scope]) -> Iterator[JaxFunction]:
    """Yield the annotated functions of other files, checked."""
    for scope in scopes:
        path, node = scope.program.path, scope.node
        is_global = scope.parent is scope.program.module and scope.owner is None
        if path is None or not is_global or not isinstance(node, FunctionStatement):
            continue
        if is_annotated(node):
            other = module.project.at(path)
            same = next((x for x in other.source.tree.body if _is_same(x, node)), None)
            if isinstance(same, FunctionStatement):
                yield replace(checked_function(other, same), node=node)


def _is_same(one: ast.stmt, other: FunctionStatement) -> bool:
    return type(one) is type(other) and one.lineno == other.lineno


def _findings(
    module: StaticModule, function: Function, asked: Sequence[Differentiation]
) -> Iterator[Diagnostic]:
    """Yield the faults of gradients that are taken of a function, or inside of it."""
    visits_inside = _differentiates(function)
    if not asked and not visits_inside:
        return
    sizes = small_sizes(function)
    if sizes is None or len(function.body.params) != sum(
        1 for _, tree in function.parameters for _ in leaves(tree)
    ):
        return
    spent = [0]
    for point in points(function, sizes):
        for each in asked:
            visit = visit_of(function, each, point, sizes)
            if visit is not None:
                yield from _faults(module, function, visit, point, each, spent)
        inside = _visits(function, point, sizes, spent) if visits_inside else ()
        for visit in inside:
            yield from _faults(module, function, visit, point, None, spent)
        if spent[0] > MOST_EQUATIONS:
            return


# Inputs.


def small_sizes(function: Function) -> Mapping[str, int] | None:
    """Return small sizes that a function admits; None if none are found."""
    names = function.dims
    for size in _SIZES:
        env = dict.fromkeys(names, size)
        if function.facts.admits(env):
            return env
    for chosen in product(_SIZES, repeat=len(names)) if len(names) <= 4 else ():
        env = dict(zip(names, chosen, strict=True))
        if function.facts.admits(env):
            return env
    return None


def points(function: Function, sizes: Mapping[str, int]) -> Iterator[Point]:
    """Yield inputs at which derivatives may end: those with one special argument first."""
    types = function.body.in_types
    plain = [_plain(type_, _shape(type_, sizes), at) for at, type_ in enumerate(types)]
    moving = [at for at, type_ in enumerate(types) if type_.dtype is not KEY]
    numbers = (0.0, 1.0, -1.0, *_bounds(function))
    points: list[Point] = [Point(tuple(plain))]
    for at in moving:
        for value in _special(plain[at], numbers):
            points.append(Point((*plain[:at], value, *plain[at + 1 :])))
    for one, other in combinations(moving, 2):
        if plain[one].shape == plain[other].shape and plain[one].dtype == plain[other].dtype:
            points.append(Point((*plain[:other], plain[one], *plain[other + 1 :])))
    for number in numbers:
        points.append(
            Point(tuple([_full(x, number) if at in moving else x for at, x in enumerate(plain)]))
        )
    for at in moving:
        if plain[at].dtype.kind in "fV":
            for far in (_FAR, -_FAR):
                points.append(Point((*plain[:at], _full(plain[at], far), *plain[at + 1 :]), True))
    yield from points[:_MOST_POINTS]


def _shape(type_: ArrayType, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return (*Evaluator(sizes).shape(type_.shape), *((2,) if type_.dtype is KEY else ()))


def _plain(type_: ArrayType, shape: tuple[int, ...], at: int) -> NDArray:
    """Return an array at which nothing is special."""
    count = int(np.prod(shape))
    places = np.arange(at, at + count)
    if type_.dtype is KEY:
        return np.resize(np.array([0, 42], np.uint32), shape)
    if type_.dtype is BOOL:
        found: NDArray = (places - at) % 2 == 0
    elif type_.dtype.is_integer:
        found = (places - at) % 2
    else:
        found = np.array(_PLAIN)[places % len(_PLAIN)]
    return np.asarray(found.reshape(shape).astype(to_numpy(type_.dtype)))


def _full(like: NDArray, number: float) -> NDArray:
    if like.dtype.kind in "biu":
        number = abs(round(number)) if abs(number) <= 1 else 1
    found: NDArray = np.full_like(like, number)
    return found


def _special(plain: NDArray, numbers: Sequence[float]) -> Iterator[NDArray]:
    """Yield arrays at which functions may have no derivative."""
    if plain.dtype.kind in "biu":
        yield _full(plain, 0)
        yield _full(plain, 1)
        return
    for number in numbers:
        yield _full(plain, number)
    if plain.size > 1:
        first = plain.copy()
        first.flat[0] = 0
        yield first
        yield np.arange(plain.size, dtype=plain.dtype).reshape(plain.shape)
    if plain.ndim >= 2 and plain.shape[-1] == plain.shape[-2]:
        unit: NDArray = np.eye(plain.shape[-1], dtype=plain.dtype)
        yield np.zeros_like(plain) + unit


def _bounds(function: Function) -> Sequence[float]:
    """Return numbers that a function compares with."""
    found: dict[float, None] = {}
    for equation in walk_called(function.body):
        if equation.primitive in _COMPARED:
            for atom in equation.inputs:
                if isinstance(atom, Literal) and isinstance(atom.value, int | float):
                    if atom.value not in (0, 1, -1) and 1e-3 < abs(atom.value) < _FAR:
                        found[float(atom.value)] = None
    return list(found)[:_MOST_BOUNDS]


# What is differentiated.


def _differentiates(function: Function) -> bool:
    """Return whether a function takes a gradient."""
    called = (
        each for equation in walk_called(function.body) for each in functions_in(equation.primitive)
    )
    return any(origin.active for each in (function, *called) for origin in each.origins.values())


def visit_of(
    function: Function, asked: Differentiation, point: Point, sizes: Mapping[str, int]
) -> Visit | None:
    """Return the function itself as what is differentiated."""
    active: list[bool] = []
    for at, (_, tree) in enumerate(function.parameters):
        wanted = not asked.arguments or at in asked.arguments
        active += [wanted] * sum(1 for _ in leaves(tree))
    result = function.result
    if asked.has_aux:
        if not isinstance(result, TupleType) or len(result.items) != 2:
            return None
        result = result.items[0]
    moving = [] if result is None else list(leaves(result))
    if asked.needs_scalar and (len(moving) != 1 or moving[0].shape or not moving[0].dtype.is_float):
        return None
    return Visit(function.body, point.values, tuple(active), len(moving), sizes, function)


class _Watching(Bounded):
    """Runs a program, and collects the blocks in it that reverse mode differentiates."""

    def __init__(
        self, sizes: Mapping[str, int], function: Function, found: list[Visit], spent: list[int]
    ) -> None:
        super().__init__(sizes, spent)
        self.function = function
        self.found = found

    def block(self, block: Block, operands: Sequence[NDArray]) -> tuple[NDArray, ...]:
        values: dict[Atom, NDArray] = dict(zip(block.params, operands, strict=True))

        def value(atom: Atom) -> NDArray:
            return literal_array(atom) if isinstance(atom, Literal) else values[atom]

        for equation in block.equations:
            origin = self.function.origins.get(equation)
            if origin is not None and origin.block is not None:
                given = tuple([value(atom) for atom in origin.inputs])
                if origin.active:
                    visit = Visit(
                        *(origin.block, given, origin.active, origin.moving_results),
                        *(self.sizes, self.function),
                    )
                    self.found.append(visit)
                elif any(each in self.function.origins for each in walk(origin.block)):
                    self.block(origin.block, given)
            results = self.results(equation, [value(atom) for atom in equation.inputs])
            values.update(zip(equation.outputs, results, strict=True))
        return tuple([value(atom) for atom in block.results])

    def call(
        self, function: Function, sizes: Mapping[str, Size], operands: Sequence[NDArray]
    ) -> tuple[NDArray, ...]:
        inner = {name: self.size(size) for name, size in sizes.items()}
        return _Watching(inner, function, self.found, self.spent).block(function.body, operands)


def _visits(
    function: Function, point: Point, sizes: Mapping[str, int], spent: list[int]
) -> list[Visit]:
    """Return what is differentiated in a function, with the operands that it has there."""
    found: list[Visit] = []
    try:
        with np.errstate(all="ignore"):
            _Watching(sizes, function, found, spent).block(function.body, point.values)
    except _UNUSABLE:
        return []
    return found


# The proof: a finite value, and a gradient that is not.


def gradient_at(
    visit: Visit, spent: list[int]
) -> tuple[list[NDArray], list[Cotangent | None]] | None:
    """Return what is differentiated, and the cotangents of all operands, where these are known.

    `spent` has the number of equations that were run, which is bounded.
    None: the value is not finite, or what JAX computes is not known.
    """
    if any(each in visit.function.origins for each in walk(visit.block)):
        return None  # it was differentiated by our rules
    if not all(map(is_finite, visit.operands)):
        return None
    run = Pullback(visit.sizes, visit.function.facts, spent)
    with suppress(*_UNUSABLE), np.errstate(all="ignore"):
        _, results = run.forward(visit.block, visit.operands)
        moving = results[: visit.moving_results]
        if not all(map(is_finite, moving)):
            return None
        ones: list[Cotangent | None] = [
            Cotangent(np.ones_like(x)) if x.dtype.kind in "fV" else None for x in moving
        ]
        none: list[Cotangent | None] = [None] * (len(results) - len(moving))
        return moving, run.pull(visit.block, visit.operands, visit.active, [*ones, *none])
    return None


def _faults(
    module: StaticModule,
    function: Function,
    visit: Visit,
    point: Point,
    asked: Differentiation | None,
    spent: list[int],
) -> Iterator[Diagnostic]:
    """Yield the findings that gradients in operands are not finite at a point."""
    known = gradient_at(visit, spent)
    moving, found = known or ([], [])
    for at, each in enumerate(found):
        if each is None or is_finite(each.value) or each.fault is None or not visit.active[at]:
            continue
        if point.is_far and not np.any(np.isnan(each.value)):
            continue
        wrong = (at, each.value, each.fault)
        yield _described(module, function, visit, point, asked, wrong, moving)


def _described(
    module: StaticModule,
    function: Function,
    visit: Visit,
    point: Point,
    asked: Differentiation | None,
    wrong: tuple[int, NDArray, Fault],
    moving: Sequence[NDArray],
) -> Diagnostic:
    at, gradient, fault = wrong
    names = [path for name, tree in function.parameters for path, _ in paths(tree, name)]
    own = [var.hint for var in visit.block.params]
    inputs = tuple([(name, _text(value)) for name, value in zip(names, point.values, strict=True)])
    operation, operand, rewrite = rewritten(module, fault)
    finding: Diagnostic = GradientNotFinite(
        function=function.name,
        inside=asked is None,
        argument=names[at] if asked is not None else own[at],
        inputs=inputs,
        value=", ".join(_text(x) for x in moving),
        gradient=_text(gradient),
        operation=operation,
        operand=operand,
        rewrite=rewrite,
        span=fault.equation.span,
    )
    finding = outside_packages(finding)
    if asked is not None and asked.span != finding.span:
        label = Label(asked.span, f"`{asked.transformation}` differentiates it")
        finding = finding.replaced(labels=(label,))
    return finding


def _text(x: NDArray) -> str:
    """Return an array as it is written in a call."""
    if x.size > _SHOWN and np.all(x == x.flat[0]):
        return f"jnp.full({x.shape}, {_number(x.flat[0])})"
    return _nested(x)


def _nested(x: NDArray) -> str:
    if x.ndim:
        return f"[{', '.join(map(_nested, x))}]"
    return _number(x)


def _number(x: NDArray) -> str:
    return str(x.item()) if x.dtype.kind in "biu" else f"{float(x) + 0.0:g}"
