"""Partial evaluation: a program cut into what is known early and what depends on late operands.

The early part returns, besides its results, what the late part needs of it: what is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeVar

from pscdsl._src.interpreters.jvp import Mask, derived
from pscdsl._src.interpreters.replay import append
from pscdsl._src.interpreters.saving import needed, without_cheap
from pscdsl._src.ir import program as ir
from pscdsl._src.ir.builder import Builder, Program, Value
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Atom, Block, Function, Var
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Failure

T = TypeVar("T")


class Cut:
    """The two parts under construction."""

    def __init__(self, facts: Assumptions) -> None:
        self.early: Builder = Program(facts).current
        self.late: Builder = Program(facts).current
        self.saved: dict[Var, Var] = {}
        """Variables of the early part, and the late part's parameters that stand for them."""

    def is_late(self, value: Value) -> bool:
        """Whether a value belongs to the late part."""
        return value.builder is self.late

    def later(self, value: Value) -> Value:
        """A value in the late part; one of the early part is saved."""
        atom = value.atom
        if isinstance(atom, ir.Literal):
            return Value(self.late, atom)
        if value.builder is self.late:
            return value
        param = self.saved.get(atom)
        if param is None:
            param = self.saved[atom] = Var(atom.type, atom.hint)
        return Value(self.late, param)


@dataclass(frozen=True, eq=False)
class Halves:
    """A block cut in two.

    early   takes the early parameters, returns the early results, then extra values
    late    takes what is saved, then the late parameters, returns the late results
    saved   where each saved value comes from: an early parameter, or what the early part returns
    """

    early: Block
    late: Block
    late_results: Mask
    saved: tuple[tuple[Literal["parameter", "result"], int], ...]

    def gather(self, operands: Sequence[T], results: Sequence[T]) -> list[T]:
        """What is saved, among the early operands and what the early part has returned."""
        sources = {"parameter": operands, "result": results}
        return [sources[kind][index] for kind, index in self.saved]

    def merged(self, early: Sequence[T], late: Sequence[T]) -> tuple[T, ...]:
        """The results in their order."""
        first, second = iter(early), iter(late)
        return tuple([next(second) if is_late else next(first) for is_late in self.late_results])


def cut_through(cut: Cut, block: Block, given: Mapping[Var, Value]) -> list[Value]:
    """The results of a block, each of its equations in the part where it belongs.

    Parameters that are not given are variables of the early part.
    """
    # What is computed early stays as it is: only what is given, or made anew, is in this table.
    values: dict[Atom, Value] = dict(given.items())

    def value(atom: Atom) -> Value:
        return values[atom] if atom in values else Value(cut.early, atom)

    programs = cut.early.program, cut.late.program
    places = [program.span for program in programs]
    for equation in block.equations:
        if values.keys().isdisjoint(equation.inputs):
            cut.early.equations.append(equation)
            continue
        for program in programs:
            program.span = equation.span
        operands = [value(atom) for atom in equation.inputs]
        outputs: Sequence[Value]
        if cut.late not in [each.builder for each in operands]:
            outputs = append(cut.early, equation, operands)
        elif type(equation.primitive).split is Primitive.split:  # its types are known
            outputs = append(cut.late, equation, [cut.later(each) for each in operands])
        else:
            try:
                outputs = equation.primitive.split(cut, operands)
            except Failure as failure:
                raise failure.at(equation.span) from None
        values.update(zip(equation.outputs, outputs, strict=True))
    for program, place in zip(programs, places, strict=True):
        program.span = place
    return [value(atom) for atom in block.results]


def split_block(
    facts: Assumptions,
    block: Block,
    late: Mask,
    late_results: Mask | None = None,
    free: Callable[[int], bool] = lambda index: True,
    free_results: Callable[[int], bool] = lambda index: True,
) -> Halves:
    """A block cut in two, given which parameters are late, and which results have to be.

    `free` and `free_results` tell of the early parameters and results that it costs nothing to
    save, given by their places in the block.
    """
    cut = Cut(facts)
    later = {
        var: cut.late.parameter(var.type, var.hint)
        for var, lateness in zip(block.params, late, strict=True)
        if lateness
    }
    own = [later[var] if var in later else Value(cut.early, var) for var in block.params]
    results = cut_through(cut, block, later)
    forced = late_results or (False,) * len(results)
    is_late = tuple([cut.is_late(v) or f for v, f in zip(results, forced, strict=True)])
    last = [cut.later(v) for v, lateness in zip(results, is_late, strict=True) if lateness]
    second, _ = cut.late.finish([v for v in own if cut.is_late(v)], last)
    params = [v for v in own if not cut.is_late(v)]
    first = [v for v, lateness in zip(results, is_late, strict=True) if not lateness]
    early, _ = cut.early.finish(params, first)
    places = [index for index, lateness in enumerate(late) if not lateness]
    there = {v.atom for v, at in zip(params, places, strict=True) if free(at)}
    places = [index for index, lateness in enumerate(is_late) if not lateness]
    there.update(v.atom for v, at in zip(first, places, strict=True) if free_results(at))
    second, kept = without_cheap(early, second, cut.saved, there)
    return _finish(early, second, is_late, kept)


def _finish(early: Block, late: Block, late_results: Mask, kept: Sequence[Var]) -> Halves:
    """The halves with what is saved among what the early part takes or returns."""
    params: dict[Atom, int] = {var: index for index, var in enumerate(early.params)}
    results: dict[Atom, int] = {}
    returned = list(early.results)
    for index, atom in enumerate(returned):
        results.setdefault(atom, index)
    saved: list[tuple[Literal["parameter", "result"], int]] = []
    for var in kept:
        if var in params:
            saved.append(("parameter", params[var]))
            continue
        if var not in results:
            results[var] = len(returned)
            returned.append(var)
        saved.append(("result", results[var]))
    early = Block(early.params, early.equations, tuple(returned))
    equations, _ = needed(early)
    early = Block(early.params, equations, early.results)
    return Halves(early, late, late_results, tuple(saved))


@lru_cache(maxsize=4096)
def split_function(function: Function, late: Mask) -> tuple[Function, Function, Halves]:
    """The same for a function; it is cut once, however often it is called."""
    halves = split_block(function.facts, function.body, late)
    return derived(function, "early", halves.early), derived(function, "late", halves.late), halves
