"""Smaller programs with the same meaning, and the length of compiled programs.

Passes over each block repeat until nothing changes: `Forward` replaces known values (equal
equations, constants, identities), `Pruner` omits unused ones, `StoresPass` reads past stores. Time
is linear in the size of the program; a program that cannot be simplified is returned as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import is_
from typing import Final, TypeAlias, TypeVar

from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import (
    Atom,
    Block,
    Equation,
    Function,
    Literal,
    Var,
    acts,
    has_effects,
    is_plain,
    mapped,
    rebuilt,
    walk,
)
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control import Call, Control
from pscdsl._src.primitives.custom_derivatives import StopGradient
from pscdsl._src.primitives.reductions import Largest, Reduce
from pscdsl._src.primitives.regions import Group, Layout, Role
from pscdsl._src.primitives.shaping import Broadcast, Reshape, without
from pscdsl._src.transforms.forward import Forward
from pscdsl._src.transforms.passing_stores import StoresPass
from pscdsl._src.transforms.unused_results import narrowed, uses_keys
from pscdsl.typing.codes.limits import TooLargeToCompile
from pscdsl.typing.diagnostics import Failure

# One pass from the results back, which omits unused values.


T = TypeVar("T")


class Pruner:
    """The pass; a block that is held twice stays one block.

    With `effects`, equations that have effects keep their operands and outputs.
    """

    def __init__(self, effects: bool = False) -> None:
        self._effects = effects
        self._blocks: dict[Block, Block] = {}

    def block(self, block: Block) -> Block:
        """Return the block with its parameters and results, and only the equations they need."""
        cached = self._blocks.get(block)
        if cached is None:
            cached = self._blocks[block] = self.pruned(block, block.results)[0]
        return cached

    def pruned(self, block: Block, results: tuple[Atom, ...]) -> tuple[Block, set[Atom]]:
        """Return a block with these results only, and the variables that it uses."""
        used: set[Atom] = {atom for atom in results if not isinstance(atom, Literal)}
        equations: list[Equation] = []
        changed = results != block.results
        for equation in reversed(block.equations):
            stays = self._effects and acts(equation)
            if not stays and used.isdisjoint(equation.outputs):
                changed = True
                continue
            new = self.inside(equation) if stays else self.equation(equation, used)
            changed = changed or new is not equation
            equations.append(new)
            used.update([atom for atom in new.inputs if not isinstance(atom, Literal)])
        if changed:
            block = Block(block.params, tuple(reversed(equations)), results)
        return block, used

    def equation(self, equation: Equation, used: Collection[Atom]) -> Equation:
        """Return an equation, narrowed to its used outputs."""
        primitive = equation.primitive
        if is_plain(primitive):
            return equation
        if isinstance(primitive, Control) and primitive.layout.is_repeated:
            return self.control(primitive, equation, used)
        return self.inside(equation)

    def inside(self, equation: Equation) -> Equation:
        """Return an equation whose blocks are pruned, with all operands and outputs."""
        return equation.with_primitive(rebuilt(equation.primitive, self.block, _same))

    def control(self, primitive: Control, equation: Equation, used: Collection[Atom]) -> Equation:
        """Return a loop or choice without unused operands or carries that only feed themselves."""
        layout = primitive.layout
        live = _live(layout, layout.results([var in used for var in equation.outputs]))
        # An operand is needed if a block needs it, or the equation itself.
        takes = {
            group: live.get(group) or [group.role is Role.DECISION] * group.count
            for group in layout.groups
        }
        pruned: list[Block] = []
        for region in layout.regions:
            wanted = [flag for group in region.gives for flag in takes[group]]
            block, needed = self.pruned(region.block, _where(region.block.results, wanted))
            pruned.append(block)
            for group, params in region.params():
                if group not in live:
                    pairs = zip(takes[group], params, strict=True)
                    takes[group] = [taken or var in needed for taken, var in pairs]
        blocks = primitive.blocks()
        if all(map(all, takes.values())) and all(map(is_, pruned, blocks)):
            return equation
        for at, (region, block) in enumerate(zip(layout.regions, pruned, strict=True)):
            flags = [flag for group in region.takes for flag in takes[group]]
            pruned[at] = Block(_where(block.params, flags), block.equations, block.results)
        left = {group: _where(flags, flags) for group, flags in takes.items()}
        return Equation(
            primitive.with_blocks(pruned, layout.counts(left)),
            _where(equation.inputs, layout.inputs(takes)),
            _where(equation.outputs, layout.outputs(takes)),
            equation.span,
        )


def _same(function: Function) -> Function:
    return function


def _where(items: Sequence[T], chosen: Iterable[bool]) -> tuple[T, ...]:
    return tuple([item for item, take in zip(items, chosen, strict=True) if take])


Member: TypeAlias = tuple[Group, int]
"""One of a group."""


def _live(layout: Layout, wanted: Mapping[Group, Sequence[bool]]) -> dict[Group, list[bool]]:
    """Return flags of the blocks' results: whether the wanted results of an equation need them.

    A carry is needed if it is wanted, or if a needed value is computed from it.
    """
    if all(map(all, wanted.values())):
        return {group: [True] * group.count for each in layout.regions for group in each.gives}
    made: list[dict[Atom, Equation]] = []
    members: list[dict[Atom, Member]] = []
    sources: dict[Member, list[tuple[int, Atom]]] = {}
    for at, region in enumerate(layout.regions):
        block = region.block
        made.append({var: equation for equation in block.equations for var in equation.outputs})
        named = [(group, k) for group in region.takes for k in range(group.count)]
        members.append(dict(zip(block.params, named, strict=True)))
        named = [(group, k) for group in region.gives for k in range(group.count)]
        for member, atom in zip(named, block.results, strict=True):
            sources.setdefault(member, []).append((at, atom))
    due = [
        member
        for member in sources
        if member[0].role is Role.DECISION or wanted[member[0]][member[1]]
    ]
    live = set(due)
    pending = [source for member in due for source in sources[member]]
    met = set(pending)
    while pending:
        at, atom = pending.pop()
        found: list[tuple[int, Atom]] = []
        if atom in made[at]:
            found = [(at, operand) for operand in made[at][atom].inputs]
        elif (taken := members[at].get(atom)) in sources and taken not in live:
            live.add(taken)
            found = sources[taken]
        for each in found:
            if each not in met:
                met.add(each)
                pending.append(each)
    return {group: [(group, k) in live for k in range(group.count)] for group, _ in sources}


# Both passes, until nothing changes.


ROUNDS = 4
"""The most repetitions of the passes; the second one rarely finds anything."""


def simplify(function: Function) -> Function:
    """Simplify a function of one device and all that it calls, around equations with effects."""
    effects = has_effects(function.body)

    def changed(current: Function, functions: Mapping[Function, Function]) -> Function:
        acting = effects and has_effects(current.body)
        body = simplify_block(current.body, functions, acting, one_device=True)
        if not acting:
            body = narrowed(current.facts, body, simplify_block)
        return current if body is current.body else replace(current, body=body)

    return mapped(function, changed)


def simplify_block(
    block: Block,
    functions: Mapping[Function, Function] | None = None,
    effects: bool = False,
    *,
    one_device: bool = False,
) -> Block:
    """Simplify a block; `functions` maps called functions to their replacements.

    `effects` tells whether it has effects, `one_device` whether it is not partitioned any more.
    """
    given = functions or {}
    for _ in range(ROUNDS):
        before = block
        block = Forward(given, effects, one_device).block(block)
        block = Pruner(effects).block(block)
        passed = StoresPass().block(block)
        if passed is not block:  # now the stores are not needed, and places may be known
            block = Pruner(effects).block(Forward(given, effects, one_device).block(passed))
        elif block is before or all(
            equation.primitive.blocks() == () for equation in block.equations
        ):
            break  # only where loops or choices have changed can there be more to find
    return block


def tidied(block: Block) -> Block:
    """Simplify a block that a transformation has made, before another one takes it.

    Otherwise repeated or unused computations would have tangents too, and programs of higher
    derivatives would be several times as large. Blocks that use random keys stay as they are, so
    that the repeated use of a key is found, and so do those with effects.
    """
    return block if uses_keys(block) or has_effects(block) else simplify_block(block)


# Largest elements that need not be NaN where an element is, because the results are so anyway.
#
# `np.max` of numbers one of which is NaN is NaN, which takes a second reduction, or a slower one.
# But if it is only subtracted before exponentials are taken, whose sums have the NaN too, as in `e
# = np.exp(x - np.max(x))` and `e / np.sum(e)`, the result does not depend on it.


POISONED = frozenset((e.add, e.subtract, e.multiply, e.divide, e.negative, e.exp, e.log))
"""Functions of elements that are NaN whenever an operand is."""

# Note [Rows with NaN]
# The elements of an array x that are combined into one largest are a row here. The largest of a row
# without NaN is always the same, so only rows with NaN matter. The largest of such a row was NaN,
# and so were all results of POISONED functions, repetitions and sums of it: now they may be
# something else, which is called loose. A loose value is followed until it meets a value that is
# NaN in all of such a row anyway, or a sum or contraction of all elements of the row, one of which
# is NaN as it is in x. If it meets anything else, or is a result, then the largest has to be NaN.


def with_largest(function: Function) -> Function:
    """Use largest elements that keep NaN only where it matters, in a function and its callees.

    The results are the same, but derivatives have to be taken before.
    """
    blocks: dict[Block, Block] = {}

    def changed(current: Function, functions: Mapping[Function, Function]) -> Function:
        def of_block(block: Block) -> Block:
            cached = blocks.get(block)
            if cached is None:
                cached = blocks[block] = _in_block(_nested(block, of_block, functions.__getitem__))
            return cached

        body = of_block(current.body)
        return current if body is current.body else replace(current, body=body)

    return mapped(function, changed)


def _nested(
    block: Block, of_block: Callable[[Block], Block], of_function: Callable[[Function], Function]
) -> Block:
    """Return a block with other blocks and functions in it."""

    def of(equation: Equation) -> Equation:
        return equation.with_primitive(rebuilt(equation.primitive, of_block, of_function))

    if all(is_plain(each.primitive) for each in block.equations):
        return block
    return _with(block, [of(each) for each in block.equations])


def _with(block: Block, equations: Sequence[Equation]) -> Block:
    if all(a is b for a, b in zip(equations, block.equations, strict=True)):
        return block
    return Block(block.params, tuple(equations), block.results)


def _in_block(block: Block) -> Block:
    equations = list(block.equations)
    for place, equation in enumerate(equations):
        kind = equation.primitive
        if not isinstance(kind, Reduce) or kind.kind != "maximum" or not kind.axes:
            continue
        (x,), (largest,) = equation.inputs, equation.outputs
        rows = _Rows(x, kind.axes, largest)
        if x.type.dtype.is_float and rows.hide(equations[place + 1 :], block.results):
            new = Largest(kind.axes)
            equations[place] = equation.with_primitive(new)
    return _with(block, equations)


class _Rows:
    """The uses of the largest elements that one equation of a block gives."""

    def __init__(self, x: Atom, axes: tuple[int, ...], largest: Var) -> None:
        self.axes = axes
        self.whole = x.type.shape
        self.kept = without(range(x.type.rank), axes)
        self.loose: set[Atom] = {largest}
        """Values that were NaN in all of a row with NaN, and may be something else now."""
        self.somewhere: set[Atom] = {x}
        """Values of the shape of x that are NaN where x is."""
        self.everywhere: set[Atom] = set()
        """One element, or all, for each row, and NaN in all of those that have NaN."""

    def hide(self, equations: Sequence[Equation], results: Sequence[Atom]) -> bool:
        """Return whether only POISONED functions and sums use loose values."""
        return all(map(self._follow, equations)) and self.loose.isdisjoint(results)

    def _follow(self, equation: Equation) -> bool:
        """Classify the output of an equation; return False if it exposes a loose value."""
        inputs, primitive = equation.inputs, equation.primitive
        is_loose = not self.loose.isdisjoint(inputs)
        if (
            not is_loose
            and self.somewhere.isdisjoint(inputs)
            and self.everywhere.isdisjoint(inputs)
        ):
            return True
        if self._combines_rows(primitive, inputs):
            if primitive == Reduce("sum", self.axes):
                self.everywhere.update(equation.outputs)
            return True
        if not self._keeps_places(equation):
            return not is_loose
        if not self.everywhere.isdisjoint(inputs):
            self.everywhere.update(equation.outputs)
            return True
        if not self.somewhere.isdisjoint(inputs):
            self.somewhere.update(equation.outputs)
        if is_loose:
            self.loose.update(equation.outputs)
        return True

    def _keeps_places(self, equation: Equation) -> bool:
        """Return whether elements stay in their rows or are repeated there, and NaN stays NaN."""
        primitive = equation.primitive
        match primitive:
            case Broadcast():
                return primitive.shape == self.whole and primitive.dims == self.kept
            case Reshape():  # of one element for each row; their order stays
                return equation.inputs[0].type.shape != self.whole
            case StopGradient() | e.Convert():
                return equation.outputs[0].type.dtype.is_float
            case _:
                return primitive in POISONED

    def _combines_rows(self, primitive: Primitive, inputs: Sequence[Atom]) -> bool:
        """Return whether all elements of rows are summed, so that a NaN reaches the result."""
        if isinstance(primitive, Reduce) and primitive.kind == "sum":
            summed = [(inputs[0], primitive.axes)]
        elif isinstance(primitive, DotGeneral):
            summed = list(zip(inputs, primitive.contract, strict=True))
        else:
            return False
        whole = [atom in self.somewhere and {*axes} >= {*self.axes} for atom, axes in summed]
        others = [atom for (atom, _), each in zip(summed, whole, strict=True) if not each]
        return any(whole) and self.loose.isdisjoint(others)


# The length of a program with every call inlined, as XLA inlines it before compiling.


MOST: Final = 100_000
"""The most operations that are compiled: XLA takes minutes for a tenth of them in a row."""


def require_compilable(function: Function) -> None:
    """Raise a Failure if a program, or one that it calls, is too long to compile."""
    if (found := operations(function)) > MOST:
        what = f"a program of {found} operations, its calls written out,"
        instead = (
            "`psc.fori_loop` and `psc.scan` are one operation, and their body is compiled once"
        )
        raise Failure(TooLargeToCompile(what=what, instead=instead, span=function.span))


def operations(function: Function, *, simplified: bool = False) -> int:
    """Return the number of equations of a function and of all that it calls, as often as it does.

    Where they are too many, repeated ones do not count, which those of a `simplified` function are
    not.  If they are too many in one that it calls, it is the number of that.
    """
    found: dict[Function, int] = {}
    due = [function]
    while due:  # functions may call each other in a long chain
        here = due[-1]
        own, called = _own(here)
        if missing := [each for each in called if each not in found]:
            due += missing
            continue
        due.pop()
        found[here] = own + sum([found[each] * often for each, often in called.items()])
        if found[here] > MOST and not simplified:
            found[here] = _simplified(here)
        if found[here] > MOST:
            return found[here]
    return found[function]


@lru_cache(maxsize=1024)
def _simplified(function: Function) -> int:
    return operations(simplify(function), simplified=True)


@lru_cache(maxsize=1024)
def _own(function: Function) -> tuple[int, dict[Function, int]]:
    """Return the number of a function's own equations, and of its calls by function."""
    own = 0
    called: dict[Function, int] = {}
    for equation in walk(function.body):
        own += 1
        if isinstance(equation.primitive, Call):
            inner = equation.primitive.function
            called[inner] = called.get(inner, 0) + 1
    return own, called
