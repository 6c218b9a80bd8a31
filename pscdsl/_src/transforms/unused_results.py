"""Calls and loops that compute only the used parts of their results.

A function is rebuilt for calls that need less of it, once for each kind of need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal as OneOf
from typing import TypeAlias

from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import (
    Atom,
    Block,
    Equation,
    Function,
    Literal,
    Var,
    fit,
    is_plain,
    rebuilt,
    walk,
)
from pscdsl._src.primitives.control import Call
from pscdsl._src.primitives.scan import Scan
from pscdsl._src.primitives.shaping import Broadcast, Concatenate, Reshape, Slice
from pscdsl._src.transforms.forward import POINTWISE
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import BOOL, KEY

# The demand for each array in a block: all of it, only its first or last row, or nothing.
#
# A stack of the rows of a loop's steps is a carry if only its last row is used: no step needs to
# write it to memory. Elementwise functions, joins and repetitions of such arrays become functions
# of rows too.


End: TypeAlias = OneOf["first", "last"]
Demand: TypeAlias = OneOf["first", "last", "all"]


class Demands:
    """The demand of a block for each of its variables."""

    def __init__(self, facts: Assumptions, block: Block) -> None:
        self._facts = facts
        self.of: dict[Atom, Demand] = {}
        self.joined: dict[Atom, Atom] = {}
        """Stacks, perhaps empty, whose last row is demanded, and the row before them."""
        self.single_steps: set[Equation] = set()
        """Loops without carries, of whose results only one row is demanded."""
        self._joins: dict[Atom, Var] = {}
        """By stack, the array that it is joined to the row as."""
        self._made = {var: each for each in block.equations for var in each.outputs}
        self._place = {each: at for at, each in enumerate(block.equations)}
        for atom in block.results:
            self._ask(atom, "all")
        for equation in reversed(block.equations):
            self._equation(equation)

    def end(self, var: Atom) -> End | None:
        """Return the single row that is demanded, if there is just one."""
        demand = self.of.get(var)
        return None if demand == "all" else demand

    def _ask(self, atom: Atom, demand: Demand) -> None:
        if not isinstance(atom, Literal):
            self.of[atom] = demand if self.of.get(atom, demand) == demand else "all"

    def _ask_all(self, atoms: Iterable[Atom]) -> None:
        for atom in atoms:
            self._ask(atom, "all")

    def _equation(self, equation: Equation) -> None:
        """Record the demand of an equation for its operands, given that for its results."""
        primitive, outputs = equation.primitive, equation.outputs
        if not any(var in self.of for var in outputs):
            return
        if isinstance(primitive, Slice):
            self._ask(equation.inputs[0], end_of(primitive, equation.inputs[0].type) or "all")
            return
        if isinstance(primitive, Scan):
            self._scan(primitive, equation)
            return
        end = self.end(outputs[0])
        if isinstance(primitive, Call):
            for var in outputs:
                if self.end(var) and not self._has_rows(var.type):
                    self.of[var] = "all"
        elif end is not None:
            if isinstance(primitive, POINTWISE):
                for atom in equation.inputs:
                    self._ask(atom, end if atom.type.shape else "all")
                return
            if isinstance(primitive, Broadcast) and primitive.dims[:1] == (0,):
                self._ask(equation.inputs[0], end)
                return
            if isinstance(primitive, Concatenate) and not primitive.axis:
                if self._join(equation, end):
                    return
                self.of[outputs[0]] = "all"
            elif not isinstance(primitive, Broadcast):
                self.of[outputs[0]] = "all"
        self._ask_all(equation.inputs)

    def _join(self, equation: Equation, end: End) -> bool:
        """The end of arrays that are joined: a row of the part there, or of the one next to it."""
        parts = equation.inputs if end == "last" else equation.inputs[::-1]
        *others, part = parts
        if self._has_rows(part.type):
            self._ask(part, end)
            return True
        made = self._made.get(part)  # type: ignore[arg-type]
        if made is None or not isinstance(made.primitive, Scan) or not others or part in self.of:
            return False
        row = self._row_before(others[-1], made)
        if row is None or not _is_stack(made.primitive, made, part, end):
            return False
        self._ask_all(others)
        self.of[part], self.joined[part] = end, row
        self._joins[part] = equation.outputs[0]
        return True

    def _row_before(self, part: Atom, scan: Equation) -> Atom | None:
        """Return a single row that exists before a loop, without its first axis."""
        made = self._made.get(part)  # type: ignore[arg-type]
        if made is None or part.type.shape[0] != 1:
            return None
        (row, *_) = made.inputs or (None,)
        shape = part.type.shape[1:]
        moved = isinstance(made.primitive, Broadcast) and made.primitive.dims == tuple(
            range(1, part.type.rank)
        )
        if (
            row is None
            or row.type.shape != shape
            or not (moved or isinstance(made.primitive, Reshape))
        ):
            return None
        source = self._made.get(row)  # type: ignore[arg-type]
        return row if source is None or self._place[source] < self._place[scan] else None

    def _scan(self, scan: Scan, equation: Equation) -> None:
        """A loop gives the last of its rows as a carry; one without carries can take one step."""
        stacks = equation.outputs[scan.carried :]
        used = [var for var in stacks if var in self.of]
        end = self.end(used[0]) if used else None
        alone = end is not None and all(self.of[var] == end for var in used)
        joined = any(var in self.joined for var in stacks)
        if end is not None and alone and not (scan.carried or scan.counted or joined):
            captured, _, arrays = scan.roles(equation.inputs)
            self.single_steps.add(equation)
            self._ask_all(captured)
            for array in arrays:
                self._ask(array, end)
            return
        for var in stacks:
            end = self.end(var)
            if end and not _is_stack(scan, equation, var, end):
                self.of[var] = "all"
            if self.of.get(var) == "all" and var in self.joined:
                del self.joined[var]
                self.of[self._joins[var]] = "all"
        self._ask_all(equation.inputs)

    def _has_rows(self, array: ArrayType) -> bool:
        """Return whether there is at least one row."""
        return self._facts.proves(Fact("<=", 1, array.shape[0]))


def end_of(cut: Slice, array: ArrayType) -> End | None:
    """Return the end at which a slice takes one row of an array: first, last, or None."""
    if not array.shape or array.shape[0] == 1 or cut.stride[0] != 1:
        return None
    first, limit, size = cut.start[0], cut.limit[0], array.shape[0]
    if (first, limit) == (0, 1):
        return "first"
    return "last" if limit == size and first == size - 1 else None


def end_slice(array: ArrayType, end: End) -> Slice:
    """Return the slice that takes the first or the last row."""
    size, *rest = array.shape
    start: Size = 0 if end == "first" else size - 1
    limits = (start + 1, *rest)
    return Slice((start, *[0] * len(rest)), limits, (1,) * array.rank)


def _is_stack(scan: Scan, equation: Equation, var: Atom, end: End) -> bool:
    """Return whether this is the stack of a loop whose last step gives this row."""
    if scan.counted or end != ("first" if scan.reverse else "last"):
        return False
    places: Mapping[Atom, int] = {output: at for at, output in enumerate(equation.outputs)}
    place = places[var]
    result = scan.body.results[place]
    return place >= scan.carried and (
        var.type.dtype is not KEY or result in scan.body.results[: scan.carried]
    )


Simplify: TypeAlias = Callable[[Block], Block]


# Calls and loops without the results that are not demanded.


_ROUNDS = 4
"""The most passes over a block to omit values that narrowing has made unused."""


def narrowed(facts: Assumptions, block: Block, simplify: Simplify, deep: bool = False) -> Block:
    """Narrow a block's calls and loops to the used results; return it unchanged if they are narrow.

    The functions that it calls are narrow already, unless it is to be `deep`. That is for programs
    before their differentiation: then functions that use random keys stay as they are, so that the
    repeated use of a key is found.
    """
    for _ in range(_ROUNDS):
        before, block = block, _Narrower(facts, simplify, deep).block(block)
        if block is before:
            break
        block = simplify(block)
    return block


@lru_cache(maxsize=1024)
def _whole(function: Function, simplify: Simplify) -> Function:
    """Return a function whose own calls and loops are narrowed."""
    body = narrowed(function.facts, function.body, simplify, deep=True)
    return function if body is function.body else replace(function, body=body)


@lru_cache(maxsize=1024)
def part_of(
    function: Function, demands: tuple[Demand | None, ...], simplify: Simplify, deep: bool
) -> tuple[Function, tuple[bool, ...]]:
    """Return a function that gives only the demanded results, and flags of needed parameters."""
    body = function.body
    cuts: list[Equation] = []
    results: list[Atom] = []
    for atom, demand in zip(body.results, demands, strict=True):
        if demand == "all":
            results.append(atom)
        elif demand is not None:
            cut = end_slice(atom.type, demand)
            row = Var(atom.type.with_shape((1, *atom.type.shape[1:])))
            cuts.append(Equation(cut, (atom,), (row,)))
            results.append(row)
    block = simplify(Block(body.params, (*body.equations, *cuts), tuple(results)))
    block = narrowed(function.facts, block, simplify, deep)
    used = {atom for equation in block.equations for atom in equation.inputs} | set(block.results)
    takes = tuple([var in used for var in block.params])
    params = tuple([var for var, take in zip(block.params, takes, strict=True) if take])
    word = "part" if "all" in demands or not cuts else next(d for d in demands if d)
    made = Function(
        f"{function.name}.{word}",
        function.dims,
        function.facts,
        Block(params, block.equations, block.results),
        span=function.span,
    )
    return made, takes


@dataclass(slots=True)
class _Scope:
    """One block on the way through it."""

    demands: Demands
    names: dict[Atom, Atom] = field(default_factory=dict[Atom, Atom])
    rows: dict[tuple[Atom, End], Atom] = field(default_factory=dict[tuple[Atom, End], Atom])
    """First and last rows that are known, each with a first axis of size 1."""
    equations: list[Equation] = field(default_factory=list[Equation])
    changed: bool = False

    def use(self, atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
        """Return the replacements of some operands."""
        return tuple([self.names.get(atom, atom) for atom in atoms])

    def row(self, atom: Atom, end: End, like: Equation) -> Atom:
        """Return the first or the last row of an array."""
        cached = self.rows.get((atom, end))
        if cached is None:
            if atom.type.shape[0] == 1:
                return self.names.get(atom, atom)
            var = Var(atom.type.with_shape((1, *atom.type.shape[1:])))
            self.equations.append(
                Equation(end_slice(atom.type, end), self.use((atom,)), (var,), like.span)
            )
            cached = self.rows[atom, end] = var
        return cached


class _Narrower:
    """The pass; a block that is held twice stays one block."""

    def __init__(self, facts: Assumptions, simplify: Simplify, deep: bool) -> None:
        self.facts = facts
        self.simplify = simplify
        self.deep = deep
        self._blocks: dict[Block, Block] = {}

    def block(self, block: Block) -> Block:
        """Narrow a block; return it unchanged if there is nothing to do."""
        cached = self._blocks.get(block)
        if cached is None:
            cached = self._blocks[block] = self._narrow(block)
        return cached

    def _narrow(self, block: Block) -> Block:
        scope = _Scope(Demands(self.facts, block))
        for equation in block.equations:
            self.equation(equation, scope)
        if not scope.changed:
            return block
        return Block(block.params, tuple(scope.equations), scope.use(block.results))

    def equation(self, equation: Equation, scope: _Scope) -> None:
        """Add an equation, or its replacement."""
        primitive, demands = equation.primitive, scope.demands
        end = demands.end(equation.outputs[0]) if equation.outputs else None
        if isinstance(primitive, Slice):
            self.slice(primitive, equation, scope)
        elif isinstance(primitive, Scan):
            self.scan(primitive, equation, scope)
        elif isinstance(primitive, Call):
            self.call(primitive, equation, scope)
        elif end is not None and isinstance(primitive, (*POINTWISE, Broadcast, Concatenate)):
            self.pushed(equation, end, scope)
        else:
            new = primitive
            if not is_plain(primitive):
                new = rebuilt(primitive, self.block, lambda function: function)
            self.add(equation, new, scope)

    def add(self, equation: Equation, primitive: Primitive, scope: _Scope) -> None:
        """Add an equation with other blocks and operands in it."""
        inputs = scope.use(equation.inputs)
        if primitive is not equation.primitive or inputs != equation.inputs:
            scope.changed = True
            equation = Equation(primitive, inputs, equation.outputs, equation.span)
        scope.equations.append(equation)

    def slice(self, cut: Slice, equation: Equation, scope: _Scope) -> None:
        """Take a part of a row that is known separately."""
        (x,) = equation.inputs
        end = end_of(cut, x.type)
        if end is None or (x, end) not in scope.rows:
            self.add(equation, cut, scope)
            return
        scope.changed = True
        row, (output,) = scope.rows[x, end], equation.outputs
        if output.type == row.type:
            scope.names[output] = row
        else:
            of_row = Slice((0, *cut.start[1:]), (1, *cut.limit[1:]), cut.stride)
            scope.equations.append(Equation(of_row, (row,), (output,), equation.span))

    def pushed(self, equation: Equation, end: End, scope: _Scope) -> None:
        """Compute one row of an array from rows of its operands."""
        scope.changed = True
        primitive, (output,) = equation.primitive, equation.outputs
        key = output, end
        if isinstance(primitive, Concatenate):
            part = equation.inputs[-1 if end == "last" else 0]
            scope.rows[key] = scope.row(part, end, equation)
            return
        inputs = list(scope.use(equation.inputs))
        if isinstance(primitive, Broadcast):
            shape = (1, *primitive.shape[1:])
            if primitive.dims[:1] == (0,):
                inputs[0] = scope.row(equation.inputs[0], end, equation)
            primitive = replace(primitive, shape=shape)
        else:
            inputs = [
                scope.row(atom, end, equation) if atom.type.shape else scope.names.get(atom, atom)
                for atom in equation.inputs
            ]
        row = Var(output.type.with_shape((1, *output.type.shape[1:])), output.hint)
        scope.equations.append(Equation(primitive, tuple(inputs), (row,), equation.span))
        scope.rows[key] = row

    def call(self, call: Call, equation: Equation, scope: _Scope) -> None:
        """Add a call of a function that gives only the used results."""
        of = scope.demands.of
        demands: tuple[Demand | None, ...] = tuple([of.get(var) for var in equation.outputs])
        if not any(demands):
            scope.changed = True
            return
        fixed = self.deep and uses_keys(call.function.body)
        if fixed or all(each == "all" for each in demands):
            if self.deep and not fixed:
                function = _whole(call.function, self.simplify)
                if function is not call.function:
                    call = replace(call, function=function)
            self.add(equation, call, scope)
            return
        scope.changed = True
        function, takes = part_of(call.function, demands, self.simplify, self.deep)
        inputs = scope.use(equation.inputs)
        outputs: list[Var] = []
        for var, demand in zip(equation.outputs, demands, strict=True):
            if demand == "all":
                outputs.append(var)
            elif demand is not None:
                row = Var(var.type.with_shape((1, *var.type.shape[1:])), var.hint)
                scope.rows[var, demand] = row
                outputs.append(row)
        operands = tuple([atom for atom, take in zip(inputs, takes, strict=True) if take])
        scope.equations.append(
            Equation(replace(call, function=function), operands, tuple(outputs), equation.span)
        )

    def scan(self, scan: Scan, equation: Equation, scope: _Scope) -> None:
        """Add a loop that carries rows of which only the last is used, or takes a single step."""
        demands = scope.demands
        stacks = equation.outputs[scan.carried :]
        ends: list[End | None] = [demands.end(var) for var in stacks]
        body = self.block(scan.body)
        if body is not scan.body:
            scan = replace(scan, body=body)
        if not any(ends):
            self.add(equation, scan, scope)
            return
        scope.changed = True
        if equation in demands.single_steps:
            self.single_step(scan, equation, scope)
            return
        captured, init, arrays = scan.roles(scope.use(equation.inputs))
        params, held, slices = scan.roles(body.params)
        after_loop: list[Equation] = []
        carries = list(zip(held, init, body.results, equation.outputs, strict=False))
        stacked: list[tuple[Atom, Var]] = []
        for var, end, result in zip(stacks, ends, body.results[scan.carried :], strict=True):
            if end is None:
                stacked.append((result, var))
                continue
            before = demands.joined.get(var)
            start = None if before is None else scope.names.get(before, before)
            last = next(
                (
                    out
                    for _, first, after, out in carries
                    if after is result and (start is None or first is start)
                ),
                None,
            )
            if last is None:
                last = Var(result.type, var.hint)
                if start is None:
                    start = self.zero(result, equation, scope)
                carries.append((Var(result.type, var.hint), start, result, last))
            row = Var(result.type.with_shape((1, *result.type.shape)), var.hint)
            scope.rows[var, end] = row
            after_loop.append(Equation(Reshape(row.type.shape), (last,), (row,), equation.span))
        new = replace(
            scan,
            body=Block(
                (*params, *[carry[0] for carry in carries], *slices),
                body.equations,
                (*[carry[2] for carry in carries], *[result for result, _ in stacked]),
            ),
            carried=len(carries),
        )
        operands = (*captured, *[carry[1] for carry in carries], *arrays)
        outputs = (*[carry[3] for carry in carries], *[var for _, var in stacked])
        scope.equations.append(Equation(new, operands, outputs, equation.span))
        scope.equations += after_loop

    def zero(self, like: Atom, equation: Equation, scope: _Scope) -> Atom:
        """Return a first value of a carry that each step replaces."""
        dtype = like.type.dtype
        literal = Literal(False if dtype is BOOL else fit(0, dtype), dtype)
        if not like.type.shape:
            return literal
        var = Var(like.type)
        scope.equations.append(
            Equation(Broadcast(like.type.shape, ()), (literal,), (var,), equation.span)
        )
        return var

    def single_step(self, scan: Scan, equation: Equation, scope: _Scope) -> None:
        """Add a loop for the first or last row only, instead of all rows."""
        demands = scope.demands
        captured, _, arrays = scan.roles(equation.inputs)
        end: End = next(end for end in map(demands.end, equation.outputs) if end)
        operands = [*scope.use(tuple(captured)), *[scope.row(x, end, equation) for x in arrays]]
        outputs: list[Var] = []
        for var in equation.outputs:
            row = Var(var.type.with_shape((1, *var.type.shape[1:])), var.hint)
            scope.rows[var, end] = row
            outputs.append(row)
        one = replace(scan, length=1)
        scope.equations.append(Equation(one, tuple(operands), tuple(outputs), equation.span))


def uses_keys(block: Block) -> bool:
    """Return whether an equation in a block takes a random key."""
    return any(atom.type.dtype is KEY for equation in walk(block) for atom in equation.inputs)
