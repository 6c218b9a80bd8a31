"""Smaller programs with the same meaning.

Two passes over each block until nothing changes: `Forward` replaces what is known (equal
equations, constants, identities), `Pruner` leaves out what nobody needs.  Time is linear in the
size of the program; what is as simple as can be is returned as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pscdsl._src.ir.program import (
    Atom,
    Block,
    Equation,
    Function,
    Literal,
    Var,
    is_plain,
    mapped,
    rebuilt,
)
from pscdsl._src.primitives.control import AssociativeScan, MapReduce, Scan, Switch, While
from pscdsl._src.transforms.simplify.forward import Forward
from pscdsl._src.transforms.simplify.unused_results import narrowed, uses_keys

# One pass from the results back: what nobody needs is not computed.


T = TypeVar("T")


class Pruner:
    """The pass; a block that is held twice stays one block."""

    def __init__(self) -> None:
        self._blocks: dict[Block, Block] = {}

    def block(self, block: Block) -> Block:
        """The block with all its parameters and results, and only what these need."""
        found = self._blocks.get(block)
        if found is None:
            found = self._blocks[block] = self.pruned(block, block.results)[0]
        return found

    def pruned(self, block: Block, results: tuple[Atom, ...]) -> tuple[Block, set[Atom]]:
        """A block with these results only, and the variables that it uses."""
        used: set[Atom] = {atom for atom in results if not isinstance(atom, Literal)}
        kept: list[Equation] = []
        changed = results != block.results
        for equation in reversed(block.equations):
            if used.isdisjoint(equation.outputs):
                changed = True
                continue
            new = self.equation(equation, used)
            changed = changed or new is not equation
            kept.append(new)
            used.update([atom for atom in new.inputs if not isinstance(atom, Literal)])
        if changed:
            block = Block(block.params, tuple(reversed(kept)), results)
        return block, used

    def equation(self, equation: Equation, used: Collection[Atom]) -> Equation:
        """An equation, narrowed to those of its outputs that are used."""
        primitive = equation.primitive
        if is_plain(primitive):
            return equation
        if isinstance(primitive, Scan):
            return self.scan(primitive, equation, used)
        if isinstance(primitive, While):
            return self.while_loop(primitive, equation, used)
        if isinstance(primitive, Switch):
            return self.switch(primitive, equation, used)
        if isinstance(primitive, AssociativeScan):
            return self.associative_scan(primitive, equation, used)
        if isinstance(primitive, MapReduce):
            return self.map_reduce(primitive, equation, used)
        new = rebuilt(primitive, self.block, _same)
        if new is primitive:
            return equation
        return Equation(new, equation.inputs, equation.outputs, equation.span)

    def scan(self, scan: Scan, equation: Equation, used: Collection[Atom]) -> Equation:
        """A loop without the carries that only lead to themselves."""
        body, results = scan.body, scan.body.results
        captured, held, arrays = scan.roles(body.params)
        wanted = [var in used for var in equation.outputs]
        wanted[: scan.carried] = _live(body, held, wanted)
        new, needed = self.pruned(body, _where(results, wanted))
        takes = [
            *[var in needed or (scan.counted and not at) for at, var in enumerate(captured)],
            *wanted[: scan.carried],
            *[var in needed for var in arrays],
        ]
        if new is body and all(takes):
            return equation
        return Equation(
            replace(
                scan,
                body=Block(_where(body.params, takes), new.equations, new.results),
                captured=sum(takes[: scan.captured]),
                carried=sum(wanted[: scan.carried]),
            ),
            _where(equation.inputs, takes),
            _where(equation.outputs, wanted),
            equation.span,
        )

    def while_loop(self, loop: While, equation: Equation, used: Collection[Atom]) -> Equation:
        """A loop without the carries that only lead to themselves."""
        cond, needed = self.pruned(loop.cond, loop.cond.results)
        asked = loop.cond.params[loop.cond_captured :]
        held = loop.body.params[loop.body_captured :]
        wanted = [
            var in used or param in needed
            for var, param in zip(equation.outputs, asked, strict=True)
        ]
        live = _live(loop.body, held, wanted)
        body, needed_by_body = self.pruned(loop.body, _where(loop.body.results, live))
        by_cond = [var in needed for var in loop.cond.params[: loop.cond_captured]]
        by_body = [var in needed_by_body for var in loop.body.params[: loop.body_captured]]
        if cond is loop.cond and body is loop.body and all((*by_cond, *by_body, *live)):
            return equation
        return Equation(
            replace(
                loop,
                cond=Block(_where(cond.params, (*by_cond, *live)), cond.equations, cond.results),
                body=Block(_where(body.params, (*by_body, *live)), body.equations, body.results),
                cond_captured=sum(by_cond),
                body_captured=sum(by_body),
            ),
            _where(equation.inputs, (*by_cond, *by_body, *live)),
            _where(equation.outputs, live),
            equation.span,
        )

    def associative_scan(
        self, scan: AssociativeScan, equation: Equation, used: Collection[Atom]
    ) -> Equation:
        """Prefixes of what is used, and of what that is combined with."""
        wanted = [var in used for var in equation.outputs]
        combine, wanted, takes = self.combination(scan.combine, scan.captured, wanted)
        if combine is scan.combine:
            return equation
        captured, arrays = scan.roles(equation.inputs)
        return Equation(
            replace(scan, combine=combine, captured=sum(takes)),
            (*_where(captured, takes), *_where(arrays, wanted)),
            _where(equation.outputs, wanted),
            equation.span,
        )

    def map_reduce(
        self, reduction: MapReduce, equation: Equation, used: Collection[Atom]
    ) -> Equation:
        """Results that are used, and what these are combined with, of what is needed for them."""
        by_body, by_combine, initial, arrays = reduction.roles(equation.inputs)
        wanted = [var in used for var in equation.outputs]
        combine, wanted, takes = self.combination(reduction.combine, len(by_combine), wanted)
        old = reduction.body
        body, needed = self.pruned(old, _where(old.results, wanted))
        kept = [var in needed for var in old.params]
        if combine is reduction.combine and body is old and all(kept):
            return equation
        held, rows = kept[: len(by_body)], kept[len(by_body) :]
        first = _where(initial, wanted) if initial else ()
        operands = _where(by_body, held), _where(by_combine, takes), first, _where(arrays, rows)
        return Equation(
            replace(
                reduction,
                body=Block(_where(old.params, kept), body.equations, body.results),
                combine=combine,
                body_captured=sum(held),
                combine_captured=sum(takes),
                initial=len(first),
            ),
            tuple([atom for group in operands for atom in group]),
            _where(equation.outputs, wanted),
            equation.span,
        )

    def combination(
        self, combine: Block, captured: int, wanted: Sequence[bool]
    ) -> tuple[Block, list[bool], list[bool]]:
        """A combination of rows of which some parts are wanted: it, the parts and captures needed.

        It is the same one if nothing goes.
        """
        flags, count = list(wanted), len(combine.results)
        held, pair = combine.params[:captured], combine.params[captured:]
        while True:
            new, needed = self.pruned(combine, _where(combine.results, flags))
            found = [
                flag or pair[place] in needed or pair[count + place] in needed
                for place, flag in enumerate(flags)
            ]
            if found == flags:
                break
            flags = found
        takes = [var in needed for var in held]
        if new is combine and all(takes):
            return combine, flags, takes
        params = (*_where(held, takes), *_where(pair, flags * 2))
        return Block(params, new.equations, new.results), flags, takes

    def switch(self, switch: Switch, equation: Equation, used: Collection[Atom]) -> Equation:
        """A choice without the results that are not used and the operands that no branch takes."""
        wanted = [var in used for var in equation.outputs]
        branches: list[Block] = []
        takes = [False] * (len(equation.inputs) - 1)
        for branch in switch.branches:
            new, needed = self.pruned(branch, _where(branch.results, wanted))
            branches.append(new)
            takes = [
                taken or var in needed for taken, var in zip(takes, branch.params, strict=True)
            ]
        unchanged = all(a is b for a, b in zip(branches, switch.branches, strict=True))
        if unchanged and all(takes):
            return equation
        return Equation(
            Switch(
                tuple([Block(_where(b.params, takes), b.equations, b.results) for b in branches])
            ),
            _where(equation.inputs, (True, *takes)),
            _where(equation.outputs, wanted),
            equation.span,
        )


def _same(function: Function) -> Function:
    return function


def _where(items: Sequence[T], chosen: Iterable[bool]) -> tuple[T, ...]:
    return tuple([item for item, take in zip(items, chosen, strict=True) if take])


def _live(body: Block, held: Sequence[Var], wanted: Sequence[bool]) -> list[bool]:
    """Flags of the carries that a loop needs for the wanted results of its body.

    A carry is needed if it is wanted or if a needed result is computed from it.
    """
    made: dict[Atom, Equation] = {var: each for each in body.equations for var in each.outputs}
    places: dict[Atom, int] = {var: place for place, var in enumerate(held)}
    live = list(wanted[: len(held)])
    due: list[Atom] = [atom for atom, want in zip(body.results, wanted, strict=True) if want]
    met: set[Atom] = set(due)
    while due:
        atom = due.pop()
        found: tuple[Atom, ...] = ()
        if atom in made:
            found = made[atom].inputs
        elif atom in places and not live[places[atom]]:
            live[places[atom]] = True
            found = (body.results[places[atom]],)
        for each in found:
            if each not in met:
                met.add(each)
                due.append(each)
    return live


# Both passes, until nothing changes.


ROUNDS = 4
"""How often the passes are repeated at most; the second time rarely finds anything."""


def simplify(function: Function) -> Function:
    """The function, and all that it calls, without what they do not need."""

    def changed(current: Function, functions: Mapping[Function, Function]) -> Function:
        body = simplify_block(current.body, functions)
        body = narrowed(current.facts, body, simplify_block)
        return current if body is current.body else replace(current, body=body)

    return mapped(function, changed)


def simplify_block(block: Block, functions: Mapping[Function, Function] | None = None) -> Block:
    """The block without what it does not need; `functions` says what to call instead of what."""
    for _ in range(ROUNDS):
        before = block
        block = Forward(functions or {}).block(block)
        block = Pruner().block(block)
        if block is before or all(each.primitive.blocks() == () for each in block.equations):
            break  # only where loops or choices have changed can there be more to find
    return block


def tidied(block: Block) -> Block:
    """A block that a transformation has made, before another one takes it.

    Tangents of what is computed twice, or for nothing, would be so too: without this, programs of
    derivatives of derivatives are several times as large.  What uses random keys stays as it is,
    so that a key that is used twice is found.
    """
    return block if uses_keys(block) else simplify_block(block)
