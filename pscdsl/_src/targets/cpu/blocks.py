"""Programs of many small parts, in groups for the compiler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Final

from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Atom, Block, Equation, Var
from pscdsl._src.primitives.control import Call, Checkpoint, Control, block_cost
from pscdsl._src.primitives.custom_derivatives import CustomJvp, CustomVjp
from pscdsl._src.primitives.pointwise import Pointwise
from pscdsl._src.primitives.shaping import Broadcast, Constant, Iota, Shaping
from pscdsl._src.targets.forms import Context, Form
from pscdsl._src.targets.rewriting import Apart
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import evaluate, numbers


def taken(
    equations: Sequence[Equation], free: Mapping[Atom, Equation]
) -> tuple[list[Var], list[Equation]]:
    """Return the variables that equations use from elsewhere, and the makers they repeat."""
    results = {output for each in equations for output in each.outputs}
    inputs: dict[Var, None] = {}
    own: dict[Var, Equation] = {}

    def take(value: Atom) -> None:
        if value in results or value in inputs or value in own or not isinstance(value, Var):
            return
        maker = free.get(value)
        if maker is None:
            inputs[value] = None
            return
        for operand in maker.inputs:
            take(operand)
        own[value] = maker

    for equation in equations:
        for value in equation.inputs:
            take(value)
    return list(inputs), list(own.values())


# Many small parts of a program in groups, each of them a function.
#
# XLA on CPUs runs a program of more than eight parts, loops or products, by all threads, as soon as
# one of its arrays takes more than 512 bytes. Waking the threads takes 50 to 100 microseconds, as
# long as a hundred small parts take one after the other. A called function counts as one part,
# whose own parts run in the calling thread if they are few. So the steps of an optimiser, and other
# computations of a tree of small arrays, are calls of functions with eight parts each.
#
# Parts depend on one another only by scalars, such as a norm of all arrays. The computation from a
# scalar that depends on arrays is on the next level: groups consist of parts of one level.


SMALL_GROUPS = Form(
    "small_groups",
    "Programs that give more than 8 small arrays, by parts that depend on one another by scalars "
    "at most, are calls of functions with 8 parts each: 0.25 to 0.7 of the time.",
)
MOST: Final = 8
"""Parts that XLA runs one after the other."""
SMALL: Final = 512
"""The bytes of the largest array of a program whose parts XLA always runs one after the other."""
ELEMENTS: Final = 1 << 17
"""The most elements of all results; on two processors up to three times as many gain."""
GROUP_OPERATIONS: Final = 1 << 20
"""The most operations of the whole program; larger ones gain by threads."""
CALLS: Final = (Call, Checkpoint, CustomJvp, CustomVjp)
"""The primitives that hold a block and compute it once."""


@SMALL_GROUPS.block_pass
def with_groups(block: Block, here: Context) -> Block:
    """Return the block with each group of parts as one equation, or unchanged without groups."""
    if here.nested or len(block.results) <= MOST or not _is_small(block):
        return block
    parts = Parts(block)
    return grouped(block, parts) if parts.gain else block


def grouped(block: Block, parts: Parts) -> Block:
    """Return the block with calls of its parts."""
    equations: list[Equation] = []
    for level in range(parts.levels):
        equations += parts.around[level]
        equations += parts.called(level)
    return Block(block.params, tuple(equations), block.results)


def _is_small(block: Block) -> bool:
    """Return whether threads cost more than they gain, and XLA would use them."""
    if sum([prod(numbers(atom.type.shape)) for atom in block.results]) > ELEMENTS:
        return False
    atoms = [
        *block.params,
        *(output for equation in block.equations for output in equation.outputs),
    ]
    if all([_bytes(atom) <= SMALL for atom in atoms]):
        return False
    try:
        return not _has_loops(block) and evaluate(block_cost(block), {}) <= GROUP_OPERATIONS
    except Failure:  # a user's primitive does not say what it costs
        return False


def _has_loops(block: Block) -> bool:
    """Return whether the block contains loops, which may take any time, or branches."""
    return any(map(_is_loop, dict.fromkeys([equation.primitive for equation in block.equations])))


def _is_loop(primitive: Primitive) -> bool:
    if not isinstance(primitive, Control):
        return False
    if isinstance(primitive, Call):
        return _has_loops(primitive.function.body)
    return not isinstance(primitive, CALLS) or any(map(_has_loops, primitive.blocks()))


def _bytes(atom: Atom) -> int:
    return prod(numbers(atom.type.shape)) * max(1, atom.type.dtype.bits // 8)


class _Part:
    """Equations that depend on one another by arrays."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.equations: list[Equation] = []
        self.outputs: dict[Var, None] = {}
        """The variables that other parts use."""

    @property
    def weight(self) -> int:
        """About how many parts it is to XLA, which fuses all else into these."""
        alone = [x for x in self.equations if not isinstance(x.primitive, Pointwise | Shaping)]
        made = {output for each in alone for output in each.outputs}
        called = [len(x.outputs) if isinstance(x.primitive, CALLS) else 1 for x in alone]
        return sum(called) + len([x for x in self.outputs if x not in made])


class Parts:
    """The parts of a block, and the equations of scalars around them, by level."""

    def __init__(self, block: Block) -> None:
        self._free: dict[Atom, Equation] = {}
        """Arrays that need not be in memory, with the equations that make them."""
        self._home: dict[Var, _Part] = {}
        """The part that an array or a scalar comes from."""
        self._levels: dict[Var, int] = {}
        """On which level a value can be used."""
        self._parts: dict[_Part, None] = {}
        around: dict[int, list[Equation]] = {}
        for equation in block.equations:
            level = max([self._levels.get(x, 0) for x in _vars(equation.inputs)], default=0)
            if self._is_around(equation):
                around.setdefault(level, []).append(equation)
            else:
                self._add(equation, level)
            for output in equation.outputs:
                leaves = output in self._home and not output.type.rank
                self._levels[output] = level + leaves
        self._tell_outputs(block)
        self.levels = 1 + max([0, *around, *(part.level for part in self._parts)])
        self.around = [around.get(level, []) for level in range(self.levels)]

    @property
    def gain(self) -> bool:
        """Return whether the program has many parts, and none is too large for a group."""
        weights = [part.weight for part in self._parts]
        return sum(weights) > MOST >= max(weights, default=0)

    def called(self, level: int) -> list[Equation]:
        """Return the calls of a level's groups, and of groups of these if there are many."""
        groups: list[list[_Part]] = []
        room = 0
        for part in [each for each in self._parts if each.level == level and each.outputs]:
            if part.weight > room:
                groups.append([])
                room = MOST
            groups[-1].append(part)
            room -= part.weight
        calls = [self._call(group) for group in groups]
        while len(calls) > max(1, MOST // self.levels - 1):  # with the scalars around them
            calls = [_join(calls[at : at + MOST]) for at in range(0, len(calls), MOST)]
        return calls

    def _is_around(self, each: Equation) -> bool:
        """Return whether an equation computes scalars or fills an array that need not be stored."""
        scalars = not any([atom.type.rank for atom in each.inputs])
        if scalars and isinstance(each.primitive, Broadcast | Iota | Constant):
            self._free.update(dict.fromkeys(each.outputs, each))
            return True
        return scalars and not any([output.type.rank for output in each.outputs])

    def _add(self, each: Equation, level: int) -> None:
        """Put an equation into the part of the arrays that it takes, which become one."""
        homes = dict.fromkeys(
            [self._home[x] for x in _vars(each.inputs) if x.type.rank and x in self._home]
        )
        joined, *others = [home for home in homes if home.level == level] or [_Part(level)]
        self._parts[joined] = None
        for other in others:
            joined.equations += other.equations
            self._home.update((x, joined) for one in other.equations for x in one.outputs)
            del self._parts[other]
        joined.equations.append(each)
        self._home.update(dict.fromkeys(each.outputs, joined))

    def _tell_outputs(self, block: Block) -> None:
        for atom in block.results:
            if isinstance(atom, Var) and atom in self._home:
                self._home[atom].outputs[atom] = None
        for equation in block.equations:
            own = self._home.get(equation.outputs[0])
            for x in _vars(equation.inputs):
                if x in self._home and self._home[x] is not own:
                    self._home[x].outputs[x] = None

    def _call(self, group: Sequence[_Part]) -> Equation:
        equations = [equation for part in group for equation in part.equations]
        return _make_call(equations, [x for part in group for x in part.outputs], self._free)


def _join(calls: Sequence[Equation]) -> Equation:
    return _make_call(calls, [output for call in calls for output in call.outputs], {})


def _make_call(
    equations: Sequence[Equation], outputs: Sequence[Var], free: Mapping[Atom, Equation]
) -> Equation:
    """Return the call of a function with these equations and results."""
    inputs, own = taken(equations, free)
    block = Block(tuple(inputs), (*own, *equations), tuple(outputs))
    return Equation(Apart(block), block.params, tuple(outputs), equations[-1].span)


def _vars(atoms: Iterable[Atom]) -> Iterator[Var]:
    return (atom for atom in atoms if isinstance(atom, Var))
