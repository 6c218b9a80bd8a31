"""Whole blocks in parts for the compiler: runs of elementwise equations, stages, and groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf, prod
from typing import Final, TypeAlias

from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Atom, Block, Equation, Literal, Var
from pscdsl._src.primitives.control import Call, Checkpoint, Control, block_cost
from pscdsl._src.primitives.custom_derivatives import CustomJvp, CustomVjp
from pscdsl._src.primitives.pointwise import Pointwise
from pscdsl._src.primitives.shaping import Broadcast, Constant, Iota, Shaping
from pscdsl._src.targets.forms import Context, Form
from pscdsl._src.targets.rewriting import Apart
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import evaluate, numbers

# Equations that compute element by element, one after the other, on arrays of one shape.


_OUTSIDE: Final = 1 << 30


class Step:
    """An equation of a run."""

    __slots__ = ("depth", "effort", "end", "equation", "operands", "result")

    def __init__(self, equation: Equation, effort: int, depth: int) -> None:
        self.equation = equation
        self.operands = [atom for atom in equation.inputs if isinstance(atom, Var)]
        (self.result,) = equation.outputs
        self.effort = effort
        """About how many operations an element takes."""
        self.depth = depth
        """The length of the longest chain of dependent operations that ends with this one."""
        self.end = 0
        """The place in the run of the last one that uses the result."""


Run: TypeAlias = list[Step]
"""Equations of arrays of one shape: nothing else depends on one of them, and one of them on it."""


class Runs:
    """Finds the runs of a block, for arrays of at least `fewest` elements."""

    def __init__(self, here: Context, block: Block, fewest: int) -> None:
        self.found: list[Run] = []
        self.free: dict[Atom, Equation] = {}
        """Large arrays that need not be in memory, with the equations that make them."""
        self._here = here
        self._fewest = fewest
        self._steps: dict[Atom, tuple[Step, Run]] = {}
        self._growing: dict[tuple[int, ...], Run] = {}
        self._sizes: dict[Atom, float] = {}
        """Upper bounds of the absolute values of elements, where they are known."""
        for equation in block.equations:
            if not self._is_step(equation):
                if isinstance(equation.primitive, Broadcast | Iota):
                    self.free[equation.outputs[0]] = equation
                for atom in equation.inputs:
                    self._leave(atom)
        for atom in block.results:
            self._leave(atom)

    def bytes(self, atom: Atom) -> int:
        """Return the bytes of an element that is read or written; 0 for small arrays."""
        if atom in self.free or prod(numbers(atom.type.shape)) < self._fewest:
            return 0
        return max(1, atom.type.dtype.bits // 8)

    def _size(self, atom: Atom) -> float:
        """Return an upper bound of the absolute values of elements that are not NaN."""
        if isinstance(atom, Literal):
            return abs(atom.value)
        return self._sizes.get(atom, inf)

    def _is_step(self, equation: Equation) -> bool:
        """Add an equation to the run that it belongs to, if there is one."""
        if not isinstance(equation.primitive, Pointwise) or len(equation.outputs) != 1:
            return False
        shape = numbers(equation.outputs[0].type.shape)
        if prod(shape) < self._fewest:
            return False
        sizes = [self._size(operand) for operand in equation.inputs]
        known = self._here.effort_of(equation, sizes)
        if known is None:
            return False
        self._sizes[equation.outputs[0]] = known.size
        run = self._growing.get(shape)
        if run is None:
            run = self._growing[shape] = []
            self.found.append(run)
        step = Step(equation, known.total, known.depth)
        own = step.depth
        for value in step.operands:
            used, home = self._steps.get(value, (None, None))
            if used is not None and home is run:
                used.end = len(run)
                step.depth = max(step.depth, used.depth + own)
            else:
                self._leave(value)
        run.append(step)
        self._steps[step.result] = step, run
        return True

    def _leave(self, value: Atom) -> None:
        """Complete the run of a value: something else uses it."""
        if value in self._steps:
            used, home = self._steps[value]
            used.end = _OUTSIDE
            shape = numbers(value.type.shape)
            if self._growing.get(shape) is home:
                del self._growing[shape]


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


# Long computations of elements in stages, with the value between two stages in memory.
#
# XLA on CPUs fuses all elementwise computations into one loop. Where each operation waits for the
# one before, a processor has to work on several elements at a time; but it looks only some hundred
# operations ahead, and in a long loop these are all for the same elements. In a loop of few
# operations they are for several, and writing and reading memory takes less time than the waiting.
#
# A computation is cut where only one value is left of the computation before. Parts with the same
# computation are calls of one function, which XLA compiles in less time than one large loop.


STAGES = Form(
    "stages",
    "Long chains of elementwise operations of 32 bits, of which each needs the one before, in "
    "stages of 40 to 80 instead of in one loop: 0.4 to 0.65 of the time.",
)
STAGE_OPERATIONS: Final = 4
"""For a byte that a stage reads or writes; with fewer it waits for the memory."""
LEAST: Final = 160
"""Fewer operations are left in one loop."""
WORK: Final = 1 << 26
"""The least number of these operations for all elements: several loops mostly take longer to
compile than one."""
WAITING: Final = 0.6
"""The part of the operations that wait for one another; with fewer, one element keeps a processor
busy."""
FEWEST: Final = 1 << 16
"""Elements; with fewer, to start a loop takes as much."""
FEWEST_IN_LOOPS: Final = 1 << 19
"""The least number of elements within a loop. XLA cannot call a multi-threaded function from a
native loop, and a loop that moves this many elements is never native (`loops.LARGEST`)."""
WIDTH: Final = 4
"""Bytes of the value that goes from stage to stage; with f64 nothing is gained."""


@STAGES.block_pass
def with_stages(block: Block, here: Context) -> Block:
    """Return the block with each stage as one equation; the block itself if there is no stage."""
    if len(block.equations) < 2:
        return block
    runs = Runs(here, block, FEWEST_IN_LOOPS if here.in_loop else FEWEST)
    instead: dict[Equation, Equation | None] = {}
    for run in runs.found:
        for stage in _stages(runs, run):
            last = stage[-1]
            steps = [step.equation for step in stage]
            inputs, own = taken(steps, runs.free)
            part = Block(tuple(inputs), (*own, *steps), (last.result,))
            instead.update(dict.fromkeys(steps))
            instead[last.equation] = Equation(
                Apart(part), part.params, (last.result,), last.equation.span
            )
    if not instead:
        return block
    equations = [instead.get(equation, equation) for equation in block.equations]
    return Block(block.params, tuple([x for x in equations if x is not None]), block.results)


def _stages(runs: Runs, run: Run) -> Iterator[Run]:
    """Yield the steps of each stage; XLA fuses the last stage into its users unless it repeats."""
    left = sum([step.effort for step in run])
    if left < LEAST or left * prod(numbers(run[0].result.type.shape)) < WORK:
        return
    if max([step.depth for step in run]) < WAITING * left:
        return
    cuts = _Cuts(runs, run)
    stage: Run = []
    start = 0
    while (end := cuts.end(start, left)) is not None:
        stage = run[start:end]
        left -= sum([step.effort for step in stage])
        start = end
        yield stage
    last = run[start:]
    is_one = all([step.end < len(run) for step in last[:-1]])
    if stage and is_one and _primitives(last) == _primitives(stage):
        yield last


def _primitives(stage: Run) -> list[Primitive]:
    return [step.equation.primitive for step in stage]


class _Cuts:
    """Finds the places at which stages of a run may end."""

    def __init__(self, runs: Runs, run: Run) -> None:
        self._run = run
        self._places = {step.result: place for place, step in enumerate(run)}
        self._last: dict[Atom, int] = {}
        """The last place that uses a value from elsewhere."""
        for place, step in enumerate(run):
            for value in step.operands:
                if value not in self._places:
                    self._last[value] = place
        self._bytes = {value: runs.bytes(value) for value in (*self._places, *self._last)}
        self._like: Primitive | None = None
        """The primitive that the previous stage ended with."""

    def end(self, start: int, left: int) -> int | None:
        """Return the end of the stage that starts here; None if it is the last stage.

        The equations after it use only its last result, and read as little as possible again. The
        best last result is that of a bounded function, as most expensive functions are. Stages that
        end alike may be the same. `left` is the number of operations from here on.
        """
        taken = moved = enough = 0
        latest = 0  # the last use of an earlier value
        read: set[Atom] = set()
        best: tuple[int, int, int] | None = None
        for place in range(start, len(self._run)):
            step = self._run[place]
            taken += step.effort
            if best is not None and taken > 3 * enough:
                break
            for value in step.operands:
                if value not in read and self._places.get(value, -1) < start:
                    read.add(value)
                    moved += self._bytes[value]
            if latest <= place < step.end:
                size = self._bytes[step.result]
                enough = STAGE_OPERATIONS * (moved + size)
                if 2 * (left - taken) < enough:
                    break
                if size == WIDTH and taken >= enough:
                    if step.equation.primitive == self._like:
                        return place + 1
                    again = sum([self._bytes[x] for x in read if self._last.get(x, -1) > place])
                    if best is None or (again, -step.effort) < best[:2]:
                        best = again, -step.effort, place
            latest = max(latest, step.end)
        if best is None:
            return None
        self._like = self._run[best[2]].equation.primitive
        return best[2] + 1


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
