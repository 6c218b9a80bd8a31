"""One pass from the first equation to the last: what is known already is not computed again.

What is known outside a block is known inside: blocks forget the parameters of which that is so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pscdsl._src.ir.primitive import NDArray, Primitive
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, Var, is_plain, rebuilt
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control import AssociativeScan, MapReduce, Scan, Switch, While
from pscdsl._src.primitives.creation import Constant
from pscdsl._src.primitives.elementwise import Clamp, Elementwise, Select
from pscdsl._src.primitives.shaping import Broadcast, Reshape, Reverse, Slice, Transpose
from pscdsl._src.transforms.simplify.identities import (
    POINTWISE,
    Known,
    fold,
    fold_scalars,
    literal_of,
    same_as,
    without_transposes,
)
from pscdsl.typing.array_types import ArrayType

# What an equation is replaced by, given the equations before it: no control flow yet.


_TAKE_SCALARS = (Elementwise, Select, Clamp)
"""Functions of several operands where one of rank 0 applies everywhere."""
_MOVE = (Broadcast, Reshape, Transpose, Slice, Reverse)
"""What repeats a scalar, given a scalar that is repeated."""


@dataclass(slots=True)
class Scope:
    """What is known in one block, on the way through it."""

    names: dict[Atom, Atom]
    """What to use instead of a variable."""
    equations: list[Equation] = field(default_factory=list[Equation])
    made: dict[Atom, Equation] = field(default_factory=dict[Atom, Equation])
    """By which equation, for those with one output."""
    found: dict[object, Equation] = field(default_factory=dict[object, Equation])
    """Equations by what they compute."""
    scalars: dict[Atom, Atom] = field(default_factory=dict[Atom, Atom])
    """The scalar that an array repeats."""
    arrays: Known = field(default_factory=dict[Atom, NDArray])

    def use(self, atoms: Sequence[Atom]) -> tuple[Atom, ...]:
        """What to use for some operands."""
        names = self.names
        return tuple([names.get(atom, atom) for atom in atoms])


class Straight:
    """Goes through blocks from the first equation to the last; subclasses do control flow.

    `functions` says what to call instead of what.
    """

    def __init__(self, functions: Mapping[Function, Function]) -> None:
        self.functions = functions
        self._blocks: dict[Block, Block] = {}

    def block(self, block: Block) -> Block:
        """A closed block, simplified; itself if there was nothing to do."""
        found = self._blocks.get(block)
        if found is None:
            found = self._blocks[block] = self.specialised(block, Scope({}))
        return found

    def specialised(self, block: Block, scope: Scope) -> Block:
        """A block in a scope that knows some of its parameters."""
        prologue = len(scope.equations)
        for equation in block.equations:
            self.equation(equation, scope)
        results = scope.use(block.results)
        equations = scope.equations
        if (
            not prologue
            and len(equations) == len(block.equations)
            and all(a is b for a, b in zip(equations, block.equations, strict=True))
            and all(a is b for a, b in zip(results, block.results, strict=True))
        ):
            return block
        return Block(block.params, tuple(equations), results)

    def equation(self, equation: Equation, scope: Scope) -> None:
        """Add an equation to a scope, or what takes its place."""
        primitive, outputs = equation.primitive, equation.outputs
        inputs = scope.use(equation.inputs)
        if scope.scalars and len(outputs) == 1:
            if self.repeated(equation, inputs, scope):
                return
            inputs = _with_scalars(primitive, inputs, outputs[0], scope)
        if not is_plain(primitive):
            primitive = rebuilt(primitive, self.block, self._function)
        self.plain(primitive, inputs, outputs, equation, scope)

    def _function(self, function: Function) -> Function:
        return self.functions.get(function, function)

    def plain(
        self,
        primitive: Primitive,
        inputs: tuple[Atom, ...],
        outputs: tuple[Var, ...],
        equation: Equation,
        scope: Scope,
    ) -> None:
        """Add an equation in the place of another, unless its results are known."""
        if isinstance(primitive, DotGeneral):
            primitive, inputs = without_transposes(primitive, inputs, scope.made)
        if len(outputs) == 1:
            same = same_as(primitive, inputs, outputs[0], scope.made)
            if same is not None:
                scope.names[outputs[0]] = same
                return
        arrays = fold(primitive, inputs, outputs, scope.arrays)
        if arrays is None:
            self.add(primitive, inputs, outputs, equation, scope)
            return
        for array, var in zip(arrays, outputs, strict=True):
            self.known(array, var, equation, scope)

    def known(self, array: NDArray, var: Var, equation: Equation, scope: Scope) -> None:
        """A variable whose value has been computed."""
        if not var.type.shape:
            scope.names[var] = literal_of(array, var.type)
            return
        first = array.reshape(-1)[:1] if array.size else np.zeros(1, array.dtype)
        if array.tobytes() == first.tobytes() * array.size:
            scalar = literal_of(first.reshape(()), ArrayType(var.type.dtype))
            self.repeat(scalar, var, equation, scope)
        else:
            self.add(Constant.of(array, var.type.dtype), (), (var,), equation, scope)

    def repeat(self, scalar: Atom, var: Var, equation: Equation, scope: Scope) -> None:
        """A variable that is a scalar everywhere."""
        if var.type.shape:
            self.add(Broadcast(var.type.shape, ()), (scalar,), (var,), equation, scope)
        else:
            scope.names[var] = scalar

    def repeated(self, equation: Equation, inputs: Sequence[Atom], scope: Scope) -> bool:
        """Add an equation all of whose operands are repeated scalars, as one of scalars."""
        primitive, (output,) = equation.primitive, equation.outputs
        if isinstance(primitive, _MOVE):
            scalar = scope.scalars.get(inputs[0])
            if scalar is None:
                return False
            self.repeat(scalar, output, equation, scope)
            return True
        if not isinstance(primitive, POINTWISE) or not output.type.shape:
            return False
        scalars = [scope.scalars.get(atom, atom) for atom in inputs]
        if any(scalar.type.shape for scalar in scalars):
            return False
        literals = [scalar for scalar in scalars if isinstance(scalar, Literal)]
        if len(literals) == len(scalars):
            folded = fold_scalars(primitive, literals, output)
            if folded is not None:
                self.repeat(folded, output, equation, scope)
                return True
        result = Var(ArrayType(output.type.dtype))
        self.plain(primitive, tuple(scalars), (result,), equation, scope)
        self.repeat(scope.names.get(result, result), output, equation, scope)
        return True

    def add(
        self,
        primitive: Primitive,
        inputs: tuple[Atom, ...],
        outputs: tuple[Var, ...],
        equation: Equation,
        scope: Scope,
    ) -> None:
        """Add an equation in the place of another, unless an equal one stands there already."""
        if (
            primitive is not equation.primitive
            or inputs != equation.inputs
            or outputs != equation.outputs
        ):
            equation = Equation(primitive, inputs, outputs, equation.span)
        key = (primitive, *[identity_of(atom) for atom in inputs])
        try:
            found = scope.found.setdefault(key, equation)
        except TypeError:  # a field that has no hash
            found = equation
        if found is not equation and _types(found.outputs) == _types(outputs):
            scope.names.update(zip(outputs, found.outputs, strict=True))
            return
        scope.equations.append(equation)
        if len(outputs) == 1:
            scope.made[outputs[0]] = equation
            if type(primitive) is Broadcast and not primitive.dims:
                scope.scalars[outputs[0]] = inputs[0]


def identity_of(atom: Atom) -> object:
    """What tells an atom from all others: a literal's bits, a variable itself."""
    if isinstance(atom, Literal):
        return atom.type.dtype.name, repr(atom.value)
    return atom


def _types(outputs: Sequence[Var]) -> list[ArrayType]:
    return [var.type for var in outputs]


def _with_scalars(
    primitive: Primitive, inputs: tuple[Atom, ...], output: Var, scope: Scope
) -> tuple[Atom, ...]:
    """Operands with scalars for arrays that repeat them, where another has the result's shape."""
    if not isinstance(primitive, _TAKE_SCALARS) or not output.type.shape or len(inputs) < 2:
        return inputs
    shape, scalars = output.type.shape, scope.scalars
    if any(atom not in scalars and atom.type.shape == shape for atom in inputs):
        return tuple([scalars.get(atom, atom) for atom in inputs])
    return inputs


# The whole pass, through control flow.


class Forward(Straight):
    """The pass."""

    def equation(self, equation: Equation, scope: Scope) -> None:
        """Add an equation to a scope, or what takes its place."""
        primitive = equation.primitive
        if is_plain(primitive):
            super().equation(equation, scope)
        elif isinstance(primitive, Scan):
            self.scan(primitive, scope.use(equation.inputs), equation, scope)
        elif isinstance(primitive, While):
            self.while_loop(primitive, scope.use(equation.inputs), equation, scope)
        elif isinstance(primitive, Switch):
            self.switch(primitive, scope.use(equation.inputs), equation, scope)
        elif isinstance(primitive, AssociativeScan):
            self.associative_scan(primitive, scope.use(equation.inputs), equation, scope)
        elif isinstance(primitive, MapReduce):
            self.map_reduce(primitive, scope.use(equation.inputs), equation, scope)
        else:
            super().equation(equation, scope)

    def scan(self, scan: Scan, inputs: tuple[Atom, ...], equation: Equation, scope: Scope) -> None:
        """Add a loop without the carries that stay as they are."""
        captured, carry, arrays = scan.roles(inputs)
        params, held, passed = scan.roles(scan.body.params)
        results = scan.body.results
        fixed, moving = _fixed(held, results)
        scope.names.update({equation.outputs[i]: carry[i] for i in fixed})
        captured.extend(carry[i] for i in fixed)
        params.extend(held[i] for i in fixed)
        inner = Scope({})
        kept = self.bind(params, captured, inner, scope, scan.counted)
        kept_arrays = self.bind(passed, arrays, inner, scope)
        if fixed or len(kept) < len(params) or len(kept_arrays) < len(arrays):
            taken = [params[i] for i in kept], [held[i] for i in moving]
            block = Block(
                (*taken[0], *taken[1], *[passed[i] for i in kept_arrays]),
                scan.body.equations,
                (*[results[i] for i in moving], *results[scan.carried :]),
            )
            body = self.specialised(block, inner)
        else:
            body = self.block(scan.body)
        from_outside = dict(zip(body.params, [captured[i] for i in kept], strict=False))
        passed_on = dict(
            zip(
                body.params[len(kept) + len(moving) :],
                [arrays[i] for i in kept_arrays],
                strict=True,
            )
        )
        outputs = [equation.outputs[i] for i in moving]
        wanted = list(body.results[: len(moving)])
        stacked: dict[Atom, Var] = {}
        for result, var in zip(
            body.results[len(moving) :], equation.outputs[scan.carried :], strict=True
        ):
            known = not scan.counted and self.stack(
                result, from_outside, passed_on, var, equation, scope
            )
            if known:
                continue
            if result in stacked:
                scope.names[var] = stacked[result]
                continue
            stacked[result] = var
            outputs.append(var)
            wanted.append(result)
        if len(wanted) < len(body.results):
            body = Block(body.params, body.equations, tuple(wanted))
        if body is not scan.body:
            scan = replace(scan, body=body, captured=len(kept), carried=len(moving))
        given = (
            *[captured[i] for i in kept],
            *[carry[i] for i in moving],
            *[arrays[i] for i in kept_arrays],
        )
        if outputs:
            self.add(scan, given, tuple(outputs), equation, scope)

    def stack(
        self,
        result: Atom,
        captured: Mapping[Var, Atom],
        passed: Mapping[Var, Atom],
        var: Var,
        equation: Equation,
        scope: Scope,
    ) -> bool:
        """A stack of what is the same in every step, or of an array's own slices."""
        shape = var.type.shape
        if isinstance(result, Literal):
            self.repeat(result, var, equation, scope)
            return True
        if result in captured and captured[result].type.shape == shape[1:]:
            repeat = Broadcast(shape, tuple(range(1, len(shape))))
            self.plain(repeat, (captured[result],), (var,), equation, scope)
            return True
        if result in passed and passed[result].type == var.type:
            scope.names[var] = passed[result]
            return True
        return False

    def while_loop(
        self, loop: While, inputs: tuple[Atom, ...], equation: Equation, scope: Scope
    ) -> None:
        """Add a loop without the carries that stay as they are."""
        by_cond, by_body, carry = loop.roles(inputs)
        cond, cond_held = _parted(loop.cond.params, loop.cond_captured)
        body, held = _parted(loop.body.params, loop.body_captured)
        fixed, moving = _fixed(held, loop.body.results)
        scope.names.update({equation.outputs[i]: carry[i] for i in fixed})
        inners = Scope({}), Scope({})
        kept: list[list[int]] = []
        for atoms, params, all_held, inner in (
            (by_cond, cond, cond_held, inners[0]),
            (by_body, body, held, inners[1]),
        ):
            atoms.extend(carry[i] for i in fixed)
            params.extend(all_held[i] for i in fixed)
            kept.append(self.bind(params, atoms, inner, scope))
        if not fixed and len(kept[0]) == len(by_cond) and len(kept[1]) == len(by_body):
            new_cond, new_body = self.block(loop.cond), self.block(loop.body)
        else:
            new_cond = self.specialised(
                Block(
                    (*[cond[i] for i in kept[0]], *[cond_held[i] for i in moving]),
                    loop.cond.equations,
                    loop.cond.results,
                ),
                inners[0],
            )
            new_body = self.specialised(
                Block(
                    (*[body[i] for i in kept[1]], *[held[i] for i in moving]),
                    loop.body.equations,
                    tuple([loop.body.results[i] for i in moving]),
                ),
                inners[1],
            )
        (goes_on,) = new_cond.results
        if isinstance(goes_on, Literal) and not goes_on.value:
            scope.names.update(zip(equation.outputs, carry, strict=True))
            return
        if new_cond is not loop.cond or new_body is not loop.body:
            loop = replace(
                loop,
                cond=new_cond,
                body=new_body,
                cond_captured=len(kept[0]),
                body_captured=len(kept[1]),
            )
        given = (
            *[by_cond[i] for i in kept[0]],
            *[by_body[i] for i in kept[1]],
            *[carry[i] for i in moving],
        )
        outputs = tuple([equation.outputs[i] for i in moving])
        if outputs:
            self.add(loop, given, outputs, equation, scope)

    def associative_scan(
        self, scan: AssociativeScan, inputs: tuple[Atom, ...], equation: Equation, scope: Scope
    ) -> None:
        """Add prefixes, whose combination forgets the captures that are known."""
        captured, arrays = scan.roles(inputs)
        combine, held = self.partly(scan.combine, captured, scope)
        if combine is not scan.combine:
            scan = replace(scan, combine=combine, captured=len(held))
        self.add(scan, (*held, *arrays), equation.outputs, equation, scope)

    def map_reduce(
        self, reduction: MapReduce, inputs: tuple[Atom, ...], equation: Equation, scope: Scope
    ) -> None:
        """Add combined results, whose blocks forget the captures that are known."""
        by_body, by_combine, initial, arrays = reduction.roles(inputs)
        body, held = self.partly(reduction.body, by_body, scope)
        combine, own = self.partly(reduction.combine, by_combine, scope)
        if body is not reduction.body or combine is not reduction.combine:
            reduction = replace(
                reduction,
                body=body,
                combine=combine,
                body_captured=len(held),
                combine_captured=len(own),
            )
        given = (*held, *own, *initial, *arrays)
        self.add(reduction, given, equation.outputs, equation, scope)

    def partly(
        self, block: Block, captured: Sequence[Atom], scope: Scope
    ) -> tuple[Block, list[Atom]]:
        """A block without the captures that are known, and those that are left."""
        count = len(captured)
        inner = Scope({})
        kept = self.bind(block.params[:count], captured, inner, scope)
        if len(kept) == count:
            return self.block(block), list(captured)
        params = (*[block.params[i] for i in kept], *block.params[count:])
        new = self.specialised(Block(params, block.equations, block.results), inner)
        return new, [captured[i] for i in kept]

    def switch(
        self, switch: Switch, inputs: tuple[Atom, ...], equation: Equation, scope: Scope
    ) -> None:
        """Add a choice, or the branch that is chosen in any case."""
        index, *rest = inputs
        last = len(switch.branches) - 1
        if isinstance(index, Literal) or not last:
            chosen = int(index.value.real) if isinstance(index, Literal) else 0
            branch = switch.branches[min(max(chosen, 0), last)]
            results = self.inline(branch, rest, scope)
            scope.names.update(zip(equation.outputs, results, strict=True))
            return
        kept: list[int] = []
        branches: list[Block] = []
        for branch in switch.branches:
            inner = Scope({})
            kept = self.bind(branch.params, rest, inner, scope)
            if len(kept) == len(rest):
                branches.append(self.block(branch))
            else:
                params = tuple([branch.params[i] for i in kept])
                block = Block(params, branch.equations, branch.results)
                branches.append(self.specialised(block, inner))
        given = [rest[i] for i in kept]
        varying: list[int] = []
        for place, var in enumerate(equation.outputs):
            same = _same_in_all(branches, place, given)
            if same is None:
                varying.append(place)
            else:
                scope.names[var] = same
        if len(varying) < len(equation.outputs):
            branches = [
                Block(each.params, each.equations, tuple([each.results[i] for i in varying]))
                for each in branches
            ]
        if any(a is not b for a, b in zip(branches, switch.branches, strict=True)):
            switch = Switch(tuple(branches))
        outputs = tuple([equation.outputs[i] for i in varying])
        if outputs:
            self.add(switch, (index, *given), outputs, equation, scope)

    def inline(self, block: Block, atoms: Sequence[Atom], scope: Scope) -> tuple[Atom, ...]:
        """Add the equations of a block, with variables of their own; its results."""
        names: dict[Atom, Atom] = dict(zip(block.params, atoms, strict=True))
        for each in block.equations:
            outputs = tuple([Var(var.type, var.hint) for var in each.outputs])
            inputs = tuple([names.get(atom, atom) for atom in each.inputs])
            names.update(zip(each.outputs, outputs, strict=True))
            self.equation(Equation(each.primitive, inputs, outputs, each.span), scope)
        return scope.use([names.get(atom, atom) for atom in block.results])

    def bind(
        self,
        params: Sequence[Var],
        atoms: Sequence[Atom],
        inner: Scope,
        scope: Scope,
        counted: bool = False,
    ) -> list[int]:
        """Tell a scope what its parameters are; the places of those that stay parameters.

        The first one of a `counted` loop does.
        """
        kept: list[int] = []
        first: dict[Atom, Var] = {}
        for place, (param, atom) in enumerate(zip(params, atoms, strict=True)):
            scalar = scope.scalars.get(atom)
            if counted and not place:
                first[atom] = param
                kept.append(place)
            elif isinstance(atom, Literal):
                inner.names[param] = atom
            elif isinstance(scalar, Literal):
                if param.type.shape:
                    source = Equation(Broadcast(param.type.shape, ()), (scalar,), (param,))
                    self.add(source.primitive, source.inputs, source.outputs, source, inner)
                else:
                    inner.names[param] = scalar
            elif atom in first:
                inner.names[param] = first[atom]
            else:
                first[atom] = param
                kept.append(place)
        return kept


def _parted(params: Sequence[Var], count: int) -> tuple[list[Var], list[Var]]:
    return list(params[:count]), list(params[count:])


def _fixed(held: Sequence[Var], results: Sequence[Atom]) -> tuple[list[int], list[int]]:
    """The places of carries that a body gives back as they are, and of the others."""
    fixed = [i for i, var in enumerate(held) if results[i] is var]
    return fixed, [i for i in range(len(held)) if i not in fixed]


def _same_in_all(branches: Sequence[Block], place: int, given: Sequence[Atom]) -> Atom | None:
    """What a result is in every branch: a literal, or an operand."""
    first = branches[0].results[place]
    if isinstance(first, Literal):
        same = all(identity_of(each.results[place]) == identity_of(first) for each in branches)
        return first if same else None
    for index, atom in enumerate(given):
        if all(each.results[place] is each.params[index] for each in branches):
            return atom
    return None
