"""Partial evaluation: a program cut into an early part and a part that depends on late operands.

The early part returns, besides its results, the saved values that the late part needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeVar

from pscdsl._src.interpreters.replay import Mask, append, derived
from pscdsl._src.ir import program as ir
from pscdsl._src.ir.builder import Builder, Program, Value
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Var, acts
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import KEY

# The values that the late part of a cut program is given: as few as possible.
#
# A value that is cheap to compute from others that exist anyway is computed again instead of saved.


LONGEST = 6
"""The most equations that are repeated for one value."""


def needed(block: Block, effects: bool = False) -> tuple[tuple[Equation, ...], set[Atom]]:
    """Return the equations that the results depend on, and all the atoms that these use.

    With `effects`, those with effects stay, too.
    """
    used: set[Atom] = set(block.results)
    equations: list[Equation] = []
    for equation in reversed(block.equations):
        if not used.isdisjoint(equation.outputs) or (effects and acts(equation)):
            equations.append(equation)
            used.update(equation.inputs)
    return tuple(reversed(equations)), used


def without_cheap(
    early: Block, late: Block, saved: Mapping[Var, Var], free: Collection[Atom]
) -> tuple[Block, tuple[Var, ...]]:
    """Return the late part without dead and cheap equations, and the variables saved for it.

    `free` are the variables of the early part that exist anyway. The parameters for the saved
    variables are not yet among those of the late part.
    """
    equations, used = needed(late, effects=True)
    made = {var: equation for equation in early.equations for var in equation.outputs}
    order: dict[Atom, int] = {var: place for place, var in enumerate((*early.params, *made))}
    wanted = {var for var, param in saved.items() if param in used}
    params: dict[Var, Var] = dict(saved)
    repeated: dict[Var, Equation] = {}
    for var in sorted(wanted, key=lambda each: order[each], reverse=True):
        if var in free:
            continue
        chain = _chain(var, made, wanted, free)
        if chain is None:
            continue
        wanted.discard(var)
        for equation in chain:  # from the last to the first: operands come before
            (output,) = equation.outputs
            if output in wanted or (output is not var and output in free):
                continue
            wanted.update(v for v in equation.inputs if isinstance(v, Var) and _kept(v, chain))
            for operand in equation.inputs:
                if isinstance(operand, Var):
                    params.setdefault(operand, Var(operand.type, operand.hint))
            inputs = tuple([_late(operand, params) for operand in equation.inputs])
            again = Equation(equation.primitive, inputs, (params[output],), equation.span)
            repeated[output] = again
    saved_vars = tuple(sorted(wanted, key=lambda each: order[each]))
    # The operands of one repeated equation may have turned out to be saved for another.
    due = sorted(repeated.keys() - wanted, key=lambda each: order[each])
    first = [repeated[var] for var in due]
    own = tuple([params[var] for var in saved_vars])
    return Block((*own, *late.params), (*first, *equations), late.results), saved_vars


def _late(atom: Atom, params: Mapping[Var, Var]) -> Atom:
    return atom if isinstance(atom, ir.Literal) else params[atom]


def _kept(var: Var, chain: Sequence[Equation]) -> bool:
    return all(var not in equation.outputs for equation in chain)


def _chain(
    var: Var, made: Mapping[Var, Equation], wanted: Collection[Atom], free: Collection[Atom]
) -> list[Equation] | None:
    """Return the equations to repeat for a variable, the last first; None if too expensive."""
    chain: list[Equation] = []
    due: list[Atom] = [var]
    while due:
        atom = due.pop()
        if isinstance(atom, ir.Literal) or (atom is not var and (atom in wanted or atom in free)):
            continue
        equation = made.get(atom)
        if equation is None or not _is_cheap(equation) or len(chain) == LONGEST:
            return None
        if equation in chain:
            continue
        chain.append(equation)
        if equation.primitive.name != "broadcast":  # its operand takes less room
            due.extend(equation.inputs)
    return chain


def _is_cheap(equation: Equation) -> bool:
    if len(equation.outputs) != 1 or equation.outputs[0].type.dtype is KEY:
        return False
    return equation.primitive.is_cheap


# The two parts, and the saved values between them.


T = TypeVar("T")


class Cut:
    """The two parts under construction."""

    def __init__(self, facts: Assumptions) -> None:
        self.early: Builder = Program(facts).current
        self.late: Builder = Program(facts).current
        self.saved: dict[Var, Var] = {}
        """Variables of the early part, and the late part's parameters for them."""

    def is_late(self, value: Value) -> bool:
        """Return whether a value belongs to the late part."""
        return value.builder is self.late

    def later(self, value: Value) -> Value:
        """Return a value in the late part; one of the early part is saved."""
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
    late    takes the saved values, then the late parameters, returns the late results
    saved   the origin of each saved value: an early parameter, or a result of the early part
    """

    early: Block
    late: Block
    late_results: Mask
    saved: tuple[tuple[Literal["parameter", "result"], int], ...]

    def gather(self, operands: Sequence[T], results: Sequence[T]) -> list[T]:
        """Return the saved values from the early operands and the results of the early part."""
        sources = {"parameter": operands, "result": results}
        return [sources[kind][index] for kind, index in self.saved]

    def merged(self, early: Sequence[T], late: Sequence[T]) -> tuple[T, ...]:
        """Return the results in their order."""
        first, second = iter(early), iter(late)
        return tuple([next(second) if is_late else next(first) for is_late in self.late_results])


def cut_through(cut: Cut, block: Block, given: Mapping[Var, Value]) -> list[Value]:
    """Return the results of a block, each of its equations in the part where it belongs.

    Parameters that are not given are variables of the early part.
    """
    # Early values stay as they are: this table has only the given ones and new ones.
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
        if cut.late not in [operand.builder for operand in operands]:
            outputs = append(cut.early, equation, operands)
        elif type(equation.primitive).split is Primitive.split:  # its types are known
            outputs = append(cut.late, equation, [cut.later(operand) for operand in operands])
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
    """Return a block cut in two, given which parameters are late, and which results have to be.

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
    second, saved_vars = without_cheap(early, second, cut.saved, there)
    return _finish(early, second, is_late, saved_vars)


def _finish(early: Block, late: Block, late_results: Mask, kept: Sequence[Var]) -> Halves:
    """Return the halves, with the saved values among the early part's parameters or results."""
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
    equations, _ = needed(early, effects=True)
    early = Block(early.params, equations, early.results)
    return Halves(early, late, late_results, tuple(saved))


@lru_cache(maxsize=4096)
def split_function(function: Function, late: Mask) -> tuple[Function, Function, Halves]:
    """Cut a function; the result is cached for further calls."""
    halves = split_block(function.facts, function.body, late)
    return derived(function, "early", halves.early), derived(function, "late", halves.late), halves
