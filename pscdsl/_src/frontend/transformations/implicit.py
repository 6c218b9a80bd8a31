"""`custom_linear_solve` and `custom_root`: solutions with the derivatives of their equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pscdsl._src.frontend.interpreter.frames import inner_block, require_program
from pscdsl._src.frontend.transformations.fitting import at_place, fitted
from pscdsl._src.frontend.transformations.modes import linear_transpose, linearize_
from pscdsl._src.frontend.trees.pytrees import flatten, unflatten
from pscdsl._src.frontend.trees.tracing import applicable, of_values, strong
from pscdsl._src.frontend.values.values import Applicable, Poison, Poisoned, describe
from pscdsl._src.interpreters.jvp import has_tangent
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives.control.implicit import LinearSolve, Root
from pscdsl.typing.array_types import NONE, ArrayType, Type
from pscdsl.typing.codes.control import BadBody, SolutionMismatch
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_tuple


@dataclass(frozen=True)
class _First:
    """A function that returns a tuple of one, without the tuple."""

    function: Applicable

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return self.function.apply(here, args, kwargs)[0]


@dataclass(frozen=True)
class _Traced:
    """A function as a block, what it captures, and the tree of what it returns besides."""

    block: Block
    captured: list[Value]
    aux: Type = NONE


@dataclass(frozen=True)
class _Problem:
    """Which solution is asked for, and its type."""

    name: str
    types: tuple[ArrayType, ...]
    tree: Type

    def block(
        self,
        here: Builder,
        what: str,
        arguments: int,
        run: Callable[[Builder, list[Any]], Any],
        has_aux: bool = False,
    ) -> _Traced:
        """What `run` makes of as many trees like the solution, which is another one."""
        with inner_block(here) as inner:
            given = [[inner.parameter(each) for each in self.types] for _ in range(arguments)]
            found = run(inner, [unflatten(self.tree, iter(each)) for each in given])
            if isinstance(found, Poison):
                raise Poisoned
            aux: Any = None
            if has_aux:
                found, aux = self._pair(what, found)
            values = fitted(inner, found, self.tree, f"what {what} returns", self._mismatch(what))
            extra, tree = flatten(inner, aux, f"what {what} returns besides")
            more = strong(extra)
            params = [param for each in given for param in each]
            block, captured = inner.finish(params, [*values, *more])
        return _Traced(block, list(captured), of_values(tree, more))

    def _pair(self, what: str, found: Any) -> tuple[Any, Any]:
        if not is_tuple(found) or len(found) != 2:
            needs = f"a pair from {what}, the solution and what is found besides"
            raise Failure(BadBody(combinator=self.name, needs=needs, found=describe(found)))
        return found[0], found[1]

    def _mismatch(self, what: str) -> Callable[[str, str, str, str], SolutionMismatch]:
        def mismatch(path: str, given: str, wanted: str, why: str) -> SolutionMismatch:
            place = at_place(what, path)
            return SolutionMismatch(
                combinator=self.name, what=place, given=given, wanted=wanted, why=why
            )

        return mismatch


def _problem(here: Builder, name: str, what: str, value: Any) -> tuple[_Problem, list[Value]]:
    """A problem whose solution is like a value, and its leaves."""
    require_program(here, f"`{name}`")
    found, tree = flatten(here, value, f"{what} of `{name}`")
    leaves = strong(found)
    types = tuple([each.type for each in leaves])
    if not types or not all(map(has_tangent, types)):
        needs = f"floating-point or complex arrays as {what}"
        raise Failure(BadBody(combinator=name, needs=needs, found=describe(value)))
    return _Problem(name, types, of_values(tree, leaves)), leaves


def _given(traced: _Traced, problem: _Problem, results: Sequence[Value], has_aux: bool) -> Any:
    """The solution, and what was found besides if that is asked for."""
    count = len(problem.types)
    solution = unflatten(problem.tree, iter(results[:count]))
    return (solution, unflatten(traced.aux, iter(results[count:]))) if has_aux else solution


def custom_linear_solve(
    here: Builder,
    matvec: Any,
    b: Any,
    solve: Any,
    transpose_solve: Any = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """What `solve(matvec, b)` finds, with the derivative of the x for which `matvec(x)` is b."""
    name = "psc.custom_linear_solve"
    operator, solver = applicable(matvec, name), applicable(solve, name)
    problem, right = _problem(here, name, "the right side", b)
    equation = problem.block(here, "`matvec`", 1, lambda inner, x: operator.apply(inner, x, {}))
    found = problem.block(
        here,
        "`solve`",
        1,
        lambda inner, x: solver.apply(inner, [operator, *x], {}),
        has_aux,
    )
    if symmetric:
        results = found.block.results[: len(problem.types)]
        back = _Traced(replace(found.block, results=results), found.captured)
    elif transpose_solve is not None:
        transposed = applicable(transpose_solve, name)

        def run(inner: Builder, x: list[Any]) -> Any:
            transpose = _First(linear_transpose(inner, operator, *x))
            return transposed.apply(inner, [transpose, *x], {})

        back = problem.block(here, "`transpose_solve`", 1, run)
    else:
        back = None
    behind = [] if back is None else back.captured
    counts = len(equation.captured), len(found.captured), len(behind)
    primitive = LinearSolve(equation.block, found.block, counts, back.block if back else None)
    operands = [*equation.captured, *found.captured, *behind, *right]
    return _given(found, problem, here.bind(primitive, operands), has_aux)


def custom_root(
    here: Builder,
    f: Any,
    initial_guess: Any,
    solve: Any,
    tangent_solve: Any,
    has_aux: bool = False,
) -> Any:
    """What `solve(f, initial_guess)` finds, with the derivative of the x for which `f(x)` is 0."""
    name = "psc.custom_root"
    function, solver, tangent = (applicable(x, name) for x in (f, solve, tangent_solve))
    problem, guess = _problem(here, name, "the guess", initial_guess)
    equation = problem.block(here, "`f`", 1, lambda inner, x: function.apply(inner, x, {}))
    found = problem.block(
        here,
        "`solve`",
        1,
        lambda inner, x: solver.apply(inner, [function, *x], {}),
        has_aux,
    )

    def along(inner: Builder, given: list[Any]) -> Any:
        root, value = given
        _, linear = linearize_(inner, function, root)
        return tangent.apply(inner, [linear, value], {})

    moved = problem.block(here, "`tangent_solve`", 2, along)
    counts = len(equation.captured), len(found.captured), len(moved.captured)
    primitive = Root(equation.block, found.block, counts, moved.block)
    operands = [*equation.captured, *found.captured, *moved.captured, *guess]
    return _given(found, problem, here.bind(primitive, operands), has_aux)
