"""One pass from the first equation to the last: what is known already is not computed again.

What is known outside a block is known inside: blocks forget the parameters of which that is so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pscdsl._src.ir.program import Atom, Block, Equation, Literal, Var
from pscdsl._src.ir.regions import is_plain
from pscdsl._src.primitives.control import AssociativeScan, MapReduce, Scan, Switch, While
from pscdsl._src.primitives.shaping import Broadcast
from pscdsl._src.transforms.simplify.straight import Scope, Straight, identity_of


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
