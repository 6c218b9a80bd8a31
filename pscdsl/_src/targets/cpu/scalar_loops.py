"""Loops over single elements, in a form that LLVM computes in registers.

XLA on CPUs compiles such a loop to one native function, in which each carried number has a buffer.
LLVM moves a buffer into a register if no other access of a step can reach it. It knows that if

* nothing is copied in a step. XLA inserts copies, which tell LLVM nothing, where a carried number
  or array may still be read after its next value is stored;
* the step returns all that it computes once, and the condition uses all numbers: XLA tells LLVM
  only of the buffers of one operation that they differ.

So a step reads each carried number once, before the next value is computed, and reads elements of
an array before it stores into it. What it has read, it carries, which nothing else needs. Branches
become choices, except around loops. An element that the step before has stored is carried, too, in
place of being read.

`After` expresses the order: its first operand, after operations on the bits of the others that
cancel out. LLVM omits them; no pass of XLA that runs here does. If one did, XLA would copy more,
and compute the same.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pscdsl._src.interpreters.cut import needed
from pscdsl._src.ir.primitive import Evaluation, H, Hlo, NDArray, Primitive, Types
from pscdsl._src.ir.program import Atom, Block, Equation, Literal, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control import Switch
from pscdsl._src.primitives.indexing import DynamicSlice, DynamicUpdate
from pscdsl._src.primitives.pointwise import Pointwise
from pscdsl._src.primitives.scan import Scan, counter_type
from pscdsl._src.primitives.shaping import (
    Broadcast,
    Constant,
    Reshape,
    SizeValue,
    Slice,
    Transpose,
)
from pscdsl._src.primitives.while_loop import While
from pscdsl._src.targets.cpu.loops import Equations, inlined
from pscdsl._src.targets.forms import Context, Form
from pscdsl._src.transforms.simplify import simplify_block
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dims import numbers
from pscdsl.typing.dtypes import BOOL, I8, I16, I32, I64, DType

SCALAR_LOOPS = Form(
    "scalar_loops",
    "Loops over single elements keep what they carry in registers: 0.3 to 0.7 of the time.",
)
MOST_STEPS: Final = 8
MOST_OF_STEPS: Final = 160
"""The most steps, and equations of all steps, of an inner loop that is written out."""
MOST_EQUATIONS: Final = 300
"""The most equations of a body, written out."""
MOST_CHOSEN: Final = 80
"""The most equations of a branch, which every step computes: it takes some nanoseconds."""
_INTEGERS: Final = {8: I8, 16: I16, 32: I32, 64: I64}
_MOVES: Final = (DynamicSlice, Slice, Broadcast, Constant, Reshape, SizeValue, Transpose)
_TRUTH: Final = ArrayType(BOOL)


@dataclass(frozen=True)
class After(Primitive, name="after"):
    """The first operand, computed where the others are known."""

    def type_rule(self, facts: object, *operands: ArrayType) -> Types:
        return operands[:1]

    def evaluate(self, here: Evaluation, *operands: NDArray) -> tuple[NDArray, ...]:
        return operands[:1]

    def lower(self, hlo: Hlo, operands: Sequence[H], inputs: Types, outputs: Types) -> Sequence[H]:
        value, *others = [
            hlo.reshape(x, t.with_shape(())) for x, t in zip(operands, inputs, strict=True)
        ]
        dtype = inputs[0].dtype
        bits = _as_integer(dtype)
        mixed = hlo.full(0, ArrayType(I64))
        for other, type_ in zip(others, inputs[1:], strict=True):
            number = hlo.convert(_bits(hlo, other, type_.dtype), ArrayType(I64))
            mixed = hlo.binary("xor", mixed, number)
        known = hlo.convert(mixed, ArrayType(bits))
        found = hlo.binary("xor", _bits(hlo, value, dtype), known)
        found = hlo.binary("xor", found, known)
        if bits is not dtype:
            # XLA computes operations of one operand again for each use, but not choices.
            (found,) = hlo.op("bitcast_convert", (found,), (ArrayType(dtype),))
            truth = hlo.compare("LT", known, hlo.full(0, ArrayType(bits)))
            found = hlo.select(truth, value, found)
        return (hlo.reshape(found, inputs[0]),)


def _as_integer(dtype: DType) -> DType:
    """Return the dtype itself, or integers of as many bits."""
    return dtype if dtype is BOOL or dtype.is_integer else _INTEGERS[dtype.bits]


def _bits(hlo: Hlo, x: H, dtype: DType) -> H:
    """Return the bits of a number as an integer, or as a truth value."""
    bits = _as_integer(dtype)
    return x if bits is dtype else hlo.op("bitcast_convert", (x,), (ArrayType(bits),))[0]


@dataclass(frozen=True)
class CountedLoop(While, name="counted_loop"):
    """A loop whose first carry is the number of the last step, -1 at first."""


@dataclass(frozen=True)
class ScalarLoop(While, name="scalar_loop"):
    """A loop that is in this form."""


class _Unfit(Exception):
    """A loop is not one over single elements."""


@SCALAR_LOOPS.rewrite
def scalar_scan(primitive: Scan, inputs: Types, outputs: Types, here: Context) -> Block | None:
    """Replace a loop over single elements."""
    if primitive.length == 0 or not all(_is_known(type_.dtype) for type_ in outputs):
        return None
    program = _as_while(primitive, inputs, outputs, here.operands)
    (loop,) = [each.primitive for each in program.equations if isinstance(each.primitive, While)]
    return None if _straightened(loop) is None else program


@SCALAR_LOOPS.rewrite
def scalar_while(primitive: While, inputs: Types, outputs: Types, here: Context) -> Block | None:
    """Replace a loop over single elements, also one that counts its steps."""
    straight = _straightened(primitive)
    return None if straight is None else _Registers(straight).program(inputs)


def is_single(type_: ArrayType) -> bool:
    """Return whether arrays of a type have one element."""
    return all(size == 1 for size in type_.shape)


def _copied(types: Iterable[ArrayType]) -> tuple[Var, ...]:
    return tuple([Var(type_) for type_ in types])


def _renamed(equation: Equation, names: Mapping[Atom, Atom]) -> Equation:
    inputs = tuple([names.get(atom, atom) for atom in equation.inputs])
    return Equation(equation.primitive, inputs, equation.outputs, equation.span)


# Loops of known length as loops with a condition.


def _as_while(scan: Scan, inputs: Types, outputs: Types, operands: Sequence[Atom]) -> Block:
    """Return a program with the loop as one with a condition.

    It carries the number of the last step, so that a step first computes its own, and no other
    numbers that count the steps.
    """
    (length,) = numbers((scan.length,))
    counter = counter_type(length)
    one, nothing = Literal(1, counter.dtype), Literal(0, counter.dtype)
    params = _copied(inputs)
    captured, carry, arrays = scan.roles(params)
    before, cond, body, after = Equations(), Equations(), Equations(), Equations()
    limit: Atom = Literal(length, counter.dtype)
    if scan.counted:
        asked = before.one(e.Convert(counter.dtype), [captured[0]], counter)
        limit = before.one(e.minimum, [asked, limit], counter)
    counting = _counting(scan, counter)
    starts: list[Atom] = [x for at, x in enumerate(carry) if at not in counting]
    for type_ in outputs[scan.carried :]:
        starts.append(before.one(Broadcast(type_.shape, ()), [_zero(type_.dtype)], type_))
    types = [atom.type for atom in starts]

    bound, *asks = _copied([counter, counter, *types])
    following = cond.one(e.add, [asks[0], one], counter)
    goes_on = cond.one(e.less, [following, bound], _TRUTH)
    test = Block((bound, *asks), tuple(cond.equations), (goes_on,))

    firsts = [carry[at] for at in counting]
    most, *held = _copied([counter, *[x.type for x in (*captured, *arrays, *firsts)]])
    now = _copied([counter, *types])
    step = index = body.one(e.add, [now[0], one], counter)
    if scan.reverse:
        highest = body.one(e.subtract, [most, one], counter)
        index = body.one(e.subtract, [highest, step], counter)
    rest, given = iter(now[1:]), iter(held[len(captured) + len(arrays) :])
    state: list[Atom] = []
    for at, start in enumerate(scan.roles(operands)[1]):
        if at in counting:
            first = next(given)
            start = start if isinstance(start, Literal) else first
            state.append(body.one(e.add, [start, step], counter))
        else:
            state.append(next(rest))
    for array in held[len(captured) : len(captured) + len(arrays)]:
        row = array.type.with_shape(array.type.shape[1:])
        places: list[Atom] = [array, index, *[nothing for _ in row.shape]]
        part = body.one(DynamicSlice((1, *row.shape)), places, row.with_shape((1, *row.shape)))
        state.append(body.one(Reshape(row.shape), [part], row))
    names = dict[Atom, Atom](zip(scan.body.params, (*held[: len(captured)], *state), strict=True))
    body.equations += [_renamed(each, names) for each in scan.body.equations]
    results = [names.get(atom, atom) for atom in scan.body.results]
    nexts = [x for at, x in enumerate(results[: scan.carried]) if at not in counting]
    for stack, last in zip(rest, results[scan.carried :], strict=True):
        shape = (1, *last.type.shape)
        part = body.one(Reshape(shape), [last], last.type.with_shape(shape))
        places = [stack, part, index, *[nothing for _ in last.type.shape]]
        nexts.append(body.one(DynamicUpdate(), places, stack.type))
    block = Block((most, *held, *now), tuple(body.equations), (step, *nexts))
    loop = CountedLoop(test, block, 1, 1 + len(held), length)
    given_all = [limit, limit, *captured, *arrays, *firsts, Literal(-1, counter.dtype), *starts]
    done, *made = before.add(loop, given_all, [counter, *types])
    left = iter(made)
    steps = after.one(e.add, [done, one], counter)
    final: list[Atom] = [
        after.one(e.add, [carry[at], steps], counter) if at in counting else next(left)
        for at in range(scan.carried)
    ]
    return Block(params, (*before.equations, *after.equations), (*final, *left))


def _counting(scan: Scan, counter: ArrayType) -> list[int]:
    """Return the carries that only count the steps."""
    carry = scan.roles(scan.body.params)[1]
    made: dict[Atom, Equation] = {var: each for each in scan.body.equations for var in each.outputs}
    found: list[int] = []
    for at, (param, result) in enumerate(zip(carry, scan.body.results, strict=False)):
        equation = made.get(result)
        if param.type == counter and equation is not None and equation.primitive is e.add:
            ones = [isinstance(x, Literal) and x.value == 1 for x in equation.inputs]
            if param in equation.inputs and any(ones):
                found.append(at)
    return found


def _is_known(dtype: DType) -> bool:
    return dtype is BOOL or dtype.is_integer or dtype.is_float


def _zero(dtype: DType) -> Literal:
    return Literal(False if dtype is BOOL else 0.0 if dtype.is_float else 0, dtype)


# Bodies without branches: the equations of all of them, and choices of their results.


class _Cell:
    """An array of the loop, which each store changes in place."""

    def __init__(self, start: Atom) -> None:
        self.now = start


class _Straight:
    """The equations of a body, those of branches among them."""

    def __init__(self, params: Iterable[Var]) -> None:
        self.code = Equations()
        self.cells: dict[Atom, _Cell] = {
            var: _Cell(var) for var in params if not is_single(var.type)
        }

    def run(self, block: Block, operands: Sequence[Atom], chosen: Atom | None) -> list[Atom]:
        """Append a block's equations, which only count where `chosen` holds."""
        names: dict[Atom, Atom] = dict(zip(block.params, operands, strict=True))

        def of(atoms: Iterable[Atom]) -> list[Atom]:
            found = [names.get(atom, atom) for atom in atoms]
            if any(atom in self.cells and self.cells[atom].now is not atom for atom in found):
                raise _Unfit  # the array before a store is needed after it
            return found

        for equation in inlined(block).equations:
            if len(self.code.equations) > MOST_EQUATIONS:
                raise _Unfit
            outputs = self._append(equation, of(equation.inputs), chosen)
            names.update(zip(equation.outputs, outputs, strict=True))
        return of(block.results)

    def _append(
        self, equation: Equation, inputs: list[Atom], chosen: Atom | None
    ) -> Sequence[Atom]:
        primitive, types = equation.primitive, [var.type for var in equation.outputs]
        if not all(_is_known(type_.dtype) for type_ in types):
            raise _Unfit
        if isinstance(primitive, Switch):
            return self._choose(primitive, inputs, chosen)
        if isinstance(primitive, Scan):
            return self._count(primitive, inputs, types, chosen)
        if isinstance(primitive, While):
            return self._loop(primitive, inputs, types, chosen)
        if isinstance(primitive, DynamicUpdate) and is_single(inputs[1].type):
            return [self._store(primitive, inputs, chosen)]
        moves = isinstance(primitive, _MOVES)
        plain = moves or (
            isinstance(primitive, Pointwise) and (chosen is None or primitive.is_cheap)
        )
        if not plain or not all(map(is_single, types)):
            raise _Unfit
        return self.code.add(primitive, inputs, types)

    def _count(
        self, scan: Scan, inputs: list[Atom], types: list[ArrayType], chosen: Atom | None
    ) -> Sequence[Atom]:
        """Append a loop of known length; the steps of a short one."""
        captured, state, arrays = scan.roles(inputs)
        (length,) = numbers((scan.length,))
        alone = not arrays and len(types) == scan.carried and not scan.counted
        if alone and length <= MOST_STEPS and length * len(scan.body.equations) <= MOST_OF_STEPS:
            for _ in range(length):
                state = self.run(scan.body, [*captured, *state], chosen)
            return state
        program = _as_while(scan, tuple([atom.type for atom in inputs]), tuple(types), inputs)
        return self.run(program, inputs, chosen)

    def _store(self, primitive: DynamicUpdate, inputs: list[Atom], chosen: Atom | None) -> Atom:
        array, part, *starts = inputs
        if chosen is not None:
            old = self.code.one(DynamicSlice(part.type.shape), [array, *starts], part.type)
            part = self.code.one(e.Select(), [chosen, part, old], part.type)
        made = self.code.one(primitive, [array, part, *starts], array.type)
        if array in self.cells:  # not an array of one element
            self._replace([array], [made])
        return made

    def _replace(self, arrays: Iterable[Atom], results: Iterable[Atom]) -> None:
        """Note the results that replace arrays."""
        for atom, result in zip(arrays, results, strict=True):
            if atom in self.cells:
                self.cells[result] = self.cells[atom]
                self.cells[result].now = result

    def _loop(
        self, loop: While, inputs: list[Atom], types: list[ArrayType], chosen: Atom | None
    ) -> Sequence[Atom]:
        """Append a loop; a branch with it, where it is in one."""
        by_cond, by_body, carry = loop.roles(inputs)
        arrays = [self.cells[atom] for atom in carry if atom in self.cells]
        others = {self.cells[atom] for atom in (*by_cond, *by_body) if atom in self.cells}
        if len({*arrays}) < len(arrays) or not others.isdisjoint(arrays):
            raise _Unfit
        primitive: Primitive = loop
        if chosen is not None:
            kinds = [atom.type for atom in inputs]
            params, runs, results = _copied(kinds), _copied(kinds), _copied(types)
            skip = Block(params, (), tuple(loop.roles(params)[2]))
            run = Block(runs, (Equation(loop, runs, results),), results)
            primitive, inputs = Switch((skip, run)), [chosen, *inputs]
        made = self.code.add(primitive, inputs, types)
        self._replace(carry, made)
        return made

    def _choose(self, switch: Switch, inputs: list[Atom], chosen: Atom | None) -> Sequence[Atom]:
        """Append all branches, and choices of their results."""
        index, *operands = inputs
        cases = self._cases(index, len(switch.branches))
        found: list[list[Atom]] = []
        for case, branch in zip(cases, switch.branches, strict=True):
            both = case
            if chosen is not None:
                both = self.code.one(e.bitwise_and, [chosen, case], _TRUTH)
            now = [self.cells[atom].now if atom in self.cells else atom for atom in operands]
            before = len(self.code.equations)
            found.append(self.run(branch, now, both))
            if len(self.code.equations) - before > MOST_CHOSEN:
                raise _Unfit
        results: list[Atom] = []
        for choices in zip(*found, strict=True):
            *rest, value = choices
            cell = self.cells.get(value)
            if any(self.cells.get(each) is not cell for each in rest):
                raise _Unfit  # branches leave different arrays
            if cell is not None:
                results.append(cell.now)
                continue
            for case, choice in zip(reversed(cases[:-1]), reversed(rest), strict=True):
                if choice is not value:
                    value = self.code.one(e.Select(), [case, choice, value], choice.type)
            results.append(value)
        return results

    def _cases(self, index: Atom, count: int) -> list[Atom]:
        """Return whether each branch is chosen."""
        if index.type.dtype is BOOL:
            if count != 2:
                raise _Unfit
            return [self.code.one(e.invert, [index], _TRUTH), index]
        last = Literal(count - 1, I32)
        near = self.code.one(e.Clamp(), [Literal(0, I32), index, last], ArrayType(I32))
        return [self.code.one(e.equal, [near, Literal(case, I32)], _TRUTH) for case in range(count)]


def _straightened(loop: While) -> While | None:
    """Return the loop without branches; None if it is not one over single elements."""
    types = (*loop.cond.in_types, *loop.body.in_types)
    known = all(_is_known(type_.dtype) and 0 not in type_.shape for type_ in types)
    if isinstance(loop, ScalarLoop) or not known or not any(map(is_single, loop.body.out_types)):
        return None
    try:
        cond = _straight(loop.cond, len(loop.cond.params))
        return replace(loop, cond=cond, body=_straight(loop.body, loop.body_captured))
    except _Unfit:
        return None


def _straight(block: Block, captured: int) -> Block:
    """Return a block without branches, with the next values of its other parameters."""
    params = _copied(block.in_types)
    straight = _Straight(params)
    results = straight.run(block, params, None)
    for param, result in zip(params[captured:], results, strict=False):
        if straight.cells.get(param) is not straight.cells.get(result):
            raise _Unfit  # arrays that change their names
    return simplify_block(Block(params, tuple(straight.code.equations), tuple(results)))


# The form.


class _Registers:
    """A loop without branches, in the making."""

    def __init__(self, loop: While) -> None:
        self.loop = loop
        self.held = loop.body.params[: loop.body_captured]
        self.carry = loop.body.params[loop.body_captured :]
        self.results = list(loop.body.results)
        self.before: list[Equation] = []
        """Equations with the same results in every step."""
        self.inside: list[Equation] = []
        self.begin: list[Equation] = []
        """Reads, for the first step, of elements that the step before stores later."""
        fixed: set[Atom] = {*self.held}
        for each in loop.body.equations:
            plain = isinstance(each.primitive, (Pointwise, *_MOVES)) and each.inputs
            if plain and all(x in fixed or isinstance(x, Literal) for x in each.inputs):
                fixed.update(each.outputs)
                self.before.append(each)
            else:
                self.inside.append(each)
        if isinstance(loop, CountedLoop):
            self._pass_on(fixed)

    def _pass_on(self, fixed: set[Atom]) -> None:
        """Carry elements that a step reads where the step before has stored them."""
        assert self.loop.bound is not None
        (steps,) = numbers((self.loop.bound,))
        lines = Lines(self.results[0], steps, self.inside, fixed)
        for array, result in zip(self.carry, self.loop.body.results, strict=True):
            users = [each for each in self.inside if array in each.inputs]
            stores = [each for each in users if isinstance(each.primitive, DynamicUpdate)]
            if is_single(array.type) or [each.outputs[0] for each in stores] != [result]:
                continue
            _, part, *places = stores[0].inputs
            for read in users:
                if isinstance(read.primitive, DynamicSlice):
                    first = lines.one_before(places, read.inputs[1:])
                    if first is not None and read.outputs[0].type == part.type:
                        self._carry_read(read, part, first)

    def _carry_read(self, read: Equation, part: Atom, first: Sequence[Atom]) -> None:
        (output,) = read.outputs
        scalar = output.type.with_shape(())
        param, stored, row, start = Var(scalar), Var(scalar), Var(output.type), Var(scalar)
        instead = Equation(Reshape(output.type.shape), (param,), (output,), read.span)
        self.inside[self.inside.index(read)] = instead
        self.inside.append(Equation(Reshape(()), (part,), (stored,), read.span))
        self.begin.append(Equation(read.primitive, (read.inputs[0], *first), (row,), read.span))
        self.begin.append(Equation(Reshape(()), (row,), (start,), read.span))
        self.carry = (*self.carry, param)
        self.results.append(stored)

    def program(self, inputs: Types) -> Block:
        """Return the program that prepares the loop and runs it."""
        loop = self.loop
        params = _copied(inputs)
        by_cond, by_body, starts = loop.roles(params)
        count = len(starts)
        known = dict[Atom, Atom](
            zip((*self.held, *self.carry[:count]), (*by_body, *starts), strict=True)
        )
        used = {atom for each in self.inside for atom in each.inputs} | {*self.results}
        made = [var for each in self.before for var in each.outputs]
        taken = [var for var in (*self.held, *made) if var in used]
        shared = [var for var in taken if is_single(var.type)]
        body, more = self._body(taken)
        cond = self._cond(shared, [*[var.type for var in self.carry[count:]], *more])
        before = [_renamed(each, known) for each in (*self.before, *self.begin)]
        starts += [each.outputs[0] for each in self.begin[1::2]]
        operands = [
            *by_cond,
            *[known.get(var, var) for var in (*shared, *taken)],
            *starts,
            *[_zero(type_.dtype) for type_ in more],
        ]
        results = _copied([*[var.type for var in self.carry], *more])
        new = ScalarLoop(cond, body, len(by_cond) + len(shared), len(taken), loop.bound)
        equations = (*before, Equation(new, tuple(operands), results))
        left, _ = needed(Block(params, equations, results[:count]))
        return Block(params, left, results[:count])

    def _cond(self, shared: Sequence[Var], more: Sequence[ArrayType]) -> Block:
        """Return the condition, which meets all numbers."""
        old = self.loop.cond
        also, kept = _copied([var.type for var in shared]), _copied(more)
        own, now = old.params[: self.loop.cond_captured], old.params[self.loop.cond_captured :]
        seen = [*[var for var in now if is_single(var.type)], *kept, *also]
        code = Equations()
        goes_on = code.one(After(), [old.results[0], *seen], _TRUTH)
        return Block((*own, *also, *now, *kept), (*old.equations, *code.equations), (goes_on,))

    def _body(self, taken: Sequence[Var]) -> tuple[Block, list[ArrayType]]:
        """Return the body, and the types of what it carries to have it once."""
        params = _copied([var.type for var in taken])
        now = _copied([var.type for var in self.carry])
        names = dict[Atom, Atom](zip((*taken, *self.carry), (*params, *now), strict=True))
        once = _Once()
        held: dict[int, Atom] = {}
        branches = any(isinstance(each.primitive, Switch) for each in self.inside)
        for place, (var, param, result) in enumerate(
            zip(self.carry, now, self.results, strict=True)
        ):
            if result is var:
                continue
            if not is_single(var.type):
                once.reads[param] = []
            elif not branches:  # where LLVM promotes nothing
                names[var] = held[place] = once.hold(param)
        for each in self.inside:
            inputs = [names.get(atom, atom) for atom in each.inputs]
            outputs = once.step(each, inputs)
            names.update(zip(each.outputs, outputs, strict=True))
        final = [names.get(result, result) for result in self.results]
        for place, first in held.items():
            final[place] = once.one(After(), [final[place], first], first.type)
        block = Block((*params, *now, *once.old), tuple(once.equations), (*final, *once.new))
        return block, [var.type for var in once.old]


class _Once(Equations):
    """The equations of a step, with values that it has once, because it carries them."""

    def __init__(self) -> None:
        super().__init__()
        self.old: list[Var] = []
        self.new: list[Var] = []
        self.reads: dict[Atom, list[Atom]] = {}
        """Elements read of each array that the step stores into, since its last store."""

    def hold(self, value: Atom) -> Var:
        """Return a value that is computed here, and nowhere else."""
        type_ = value.type
        scalar = type_.with_shape(())
        if type_.shape:
            value = self.one(Reshape(()), [value], scalar)
        old = Var(scalar)
        new = self.one(After(), [value, old], scalar)
        self.old.append(old)
        self.new.append(new)
        return self.one(Reshape(type_.shape), [new], type_) if type_.shape else new

    def step(self, each: Equation, inputs: list[Atom]) -> Sequence[Atom]:
        """Append an equation: a store after what was read of its array."""
        types = [var.type for var in each.outputs]
        reads = self.reads.get(inputs[0]) if inputs else None
        if reads and isinstance(each.primitive, DynamicUpdate):
            inputs[1] = self.one(After(), [inputs[1], *reads], inputs[1].type)
        outputs = self.add(each.primitive, inputs, types)
        self.reads.update({var: [] for var in outputs if not is_single(var.type)})
        if reads is not None and isinstance(each.primitive, _MOVES):
            outputs = (self.hold(outputs[0]),)
            reads.append(outputs[0])
        return outputs


class Lines:
    """Integers of a step that are multiples of its number, plus a constant."""

    def __init__(
        self, step: Atom, steps: int, equations: Iterable[Equation], fixed: Container[Atom]
    ) -> None:
        self.steps = steps
        self.fixed = fixed
        """Values that are the same in every step."""
        self.known: dict[Atom, tuple[int, int]] = {step: (1, 0)}
        """The factor of the number of the step, and the constant."""
        for each in equations:
            found = self._line(each)
            if found is not None:
                self.known[each.outputs[0]] = found

    def _line(self, equation: Equation) -> tuple[int, int] | None:
        primitive, output = equation.primitive, equation.outputs[0]
        lines = [self.of(atom) for atom in equation.inputs]
        pairs = [line for line in lines if line is not None]
        if not pairs or len(pairs) < len(lines) or output.type not in map(ArrayType, (I32, I64)):
            return None
        (a, b), (c, d) = pairs[0], pairs[-1]
        if isinstance(primitive, e.Convert):
            factor, constant = a, b
        elif primitive is e.add:
            factor, constant = a + c, b + d
        elif primitive is e.subtract:
            factor, constant = a - c, b - d
        elif primitive is e.multiply and 0 in (a, c):
            factor, constant = a * d + b * c, b * d
        else:
            return None
        last = constant + factor * self.steps
        least, most = output.type.dtype.range
        fits = least <= min(constant, last) and max(constant, last) <= most
        return (factor, constant) if fits else None

    def of(self, atom: Atom) -> tuple[int, int] | None:
        """Return the line of an integer; None if it is not known."""
        if isinstance(atom, Literal):
            known = atom.type.dtype in (I32, I64)
            return (0, int(atom.value.real)) if known else None
        return self.known.get(atom)

    def one_before(self, places: Sequence[Atom], others: Sequence[Atom]) -> list[Atom] | None:
        """Return the first of other places, if each is where the step before had `places`."""
        first: list[Atom] = []
        for place, other in zip(places, others, strict=True):
            mine, line = self.of(place), self.of(other)
            if mine and line and line == (mine[0], mine[1] - mine[0]):
                first.append(Literal(line[1], other.type.dtype))
            elif place is other and place in self.fixed:
                first.append(other)
            else:
                return None
        return first
