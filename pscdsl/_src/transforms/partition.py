"""A typed program as the program that each device of a mesh runs on its own pieces.

A placement says along which axes of the mesh each axis of a value is cut, and over which axes of
the mesh the value is still a sum in parts. The pass follows placements from the parameters through
every equation by its axis rule, cuts what is whole where it meets pieces (which sends nothing),
adds parts as late as they may be added, and puts collectives where pieces have to move.

Sizes: the length of a piece of an axis of size n that is cut along `data` is the name `n@data` in
the new program, where `n == data*n@data` is a fact, and n still means the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import NamedTuple, TypeAlias, cast

from pscdsl._src.interpreters.replay import closed
from pscdsl._src.ir.axis_rules import AxisRule
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.primitive import CountedPart, Primitive
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal, walk
from pscdsl._src.primitives.associative import AssociativeScan, MapReduce
from pscdsl._src.primitives.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    CollectivePermute,
    DevicePlace,
    MeshAxes,
    OwnPart,
    PlaceAlong,
    ReduceScatter,
    is_sent_combined,
)
from pscdsl._src.primitives.control import Call, Control, Expanded, on_devices, substitute_block
from pscdsl._src.primitives.elementwise import Convert, multiply
from pscdsl._src.primitives.reductions import Cumulative, LinearRecurrence, Reduce, Reduction
from pscdsl._src.primitives.regions import Group, Nesting, Region, Role
from pscdsl._src.primitives.scan import single
from pscdsl._src.primitives.shaping import Broadcast, Rotate, exactly
from pscdsl._src.transforms.ordered_parts import Pieces, without_rows
from pscdsl._src.transforms.sent_once import sent_before
from pscdsl._src.transforms.simplify import simplify
from pscdsl.typing.array_types import ArrayType, size_of
from pscdsl.typing.codes.placements import (
    AxesDiffer,
    MeshAxisMisused,
    NotPartitioned,
    UnequalPieces,
)
from pscdsl.typing.codes.shapes_of_arguments import AssertionFails
from pscdsl.typing.diagnostics import NOWHERE, Failure, Span
from pscdsl.typing.dims import (
    Size,
    as_terms,
    evaluate,
    from_terms,
    names,
    substitute,
    variable,
)
from pscdsl.typing.dtypes import I64
from pscdsl.typing.facts import Fact
from pscdsl.typing.placements import Placement, placed_word

Axes: TypeAlias = tuple[tuple[str, ...], ...]
"""For each axis of an array the axes of the mesh along which it is cut."""


Cuts: TypeAlias = Mapping[str, tuple[Size, tuple[str, ...]]]
"""The names of the lengths of pieces: the whole, a name or a number, and the axes of the mesh."""


class Placed(NamedTuple):
    """A value of the new program, and what a device has of it."""

    value: Value
    axes: Axes
    parts: frozenset[str] = frozenset()
    """The axes of the mesh over which it is a sum in parts."""


class Made(NamedTuple):
    """A value that an equation on pieces has made, and can make parts of."""

    equation: Equation
    """The equation on whole arrays."""
    rule: AxisRule
    along: Mapping[int, tuple[str, ...]]
    """The axes of the mesh along which each factor is cut."""
    operands: tuple[Placed, ...]
    result: int
    """The index of the value among the results."""


@dataclass(frozen=True)
class Partitioned:
    """The program of each device, and the placements of its arguments and results."""

    function: Function
    mesh: tuple[str, ...]
    """The axes of the mesh, in order."""
    cut: Cuts
    """The names of the lengths of pieces."""
    arguments: tuple[Placement, ...]
    results: tuple[Placement, ...]

    def sizes(self, whole: Mapping[str, int], mesh: Mapping[str, int]) -> dict[str, int]:
        """Return the sizes of the program of a device, given those of the whole arrays."""
        for size, along in self.cut.values():
            pieces, number = prod([mesh[axis] for axis in along]), evaluate(size, whole)
            if number % pieces:
                text = str(size) if isinstance(size, int) else f"{size} = {number}"
                raise Failure(UnequalPieces(size=text, along="@".join(along), pieces=pieces))
        found = self.some_sizes(whole, mesh)
        for fact in self.function.facts.facts:
            if not fact.names().isdisjoint(mesh) and not fact.holds(found):
                axes = ", ".join([f"{name}={size}" for name, size in mesh.items()])
                raise Failure(AssertionFails(condition=str(fact), text=f"Mesh({axes})"))
        return found

    def some_sizes(self, whole: Mapping[str, int], mesh: Mapping[str, int]) -> dict[str, int]:
        """Return the sizes of the program of a device, as far as those of whole arrays are given.

        They need not leave equal pieces: for costs, the largest piece counts.
        """
        found = {**whole, **{name: mesh[name] for name in self.mesh}}
        for piece, (size, along) in self.cut.items():
            if names(size) <= whole.keys():
                pieces = prod([mesh[axis] for axis in along])
                found[piece] = -(-evaluate(size, whole) // pieces)
        return found


def partition(
    function: Function,
    arguments: Sequence[Placement],
    results: Sequence[Placement | None],
    mesh: Sequence[str],
    returns: Span = NOWHERE,
) -> Partitioned:
    """Return the program of each device of a mesh with these axes, of any size.

    `arguments` has the placement of each parameter of the body, `results` that of each result, or
    None where it may be any; `returns` is the place where the results are declared. Nothing is cut
    along axes that the mesh has not. Raise a Failure where pieces are not equal, or do not meet.
    """
    function = on_devices(function, {name: 1 for name in function.mesh if name not in mesh})
    for name in mesh:
        if name in function.dims and name not in function.mesh:
            problem = f"names the mesh axis `{name}`, which is a size, too"
            placed = [(x, returns) for x in results if x is not None]
            pairs = zip(arguments, function.body.params, strict=True)
            placed = [*[(x, var.origin) for x, var in pairs], *placed]
            first = next(((str(x), place) for x, place in placed if name in x.used), None)
            placement, place = first or (f"_@{name}", NOWHERE)
            raise Failure(MeshAxisMisused(placement=placement, problem=problem)).at(place)
    own = [Placement(axes_on(mesh, each.axes)) for each in arguments]
    wanted = [None if each is None else Placement(axes_on(mesh, each.axes)) for each in results]
    return Partition(function, own, wanted, mesh).partitioned(function, own, wanted, returns)


def axes_on(mesh: Iterable[str], axes: Axes) -> Axes:
    """Return the axes of a placement that a mesh has."""
    known = {*mesh}
    return tuple([tuple([name for name in along if name in known]) for along in axes])


def mesh_axes_of(function: Function, placements: Iterable[Placement | None]) -> tuple[str, ...]:
    """Return the axes of a mesh that a program names, in order of appearance."""
    given = [axes for each in placements if each is not None for axes in each.axes]
    placed = [along for _, axes in _places(function.body, None) for along in axes]
    return tuple(dict.fromkeys(axis for along in (*given, *placed) for axis in along))


class Partition:
    """The pass over one program."""

    def __init__(
        self,
        function: Function,
        arguments: Sequence[Placement],
        results: Sequence[Placement | None],
        mesh: Sequence[str],
    ) -> None:
        self._names = tuple(mesh)
        self._mesh: MeshAxes = tuple([(name, variable(name)) for name in mesh])
        self._cut = _cut_names(function, arguments, results, mesh)
        facts: list[Fact] = []
        for piece, (size, along) in self._cut.items():
            before = self._piece(size, along[:-1])
            facts.append(Fact("==", before, variable(along[-1]) * variable(piece)))
            if not function.facts.proves(Fact("<=", 1, size)):
                facts.append(Fact("<=", 0, variable(piece)))
        self.facts = function.facts.assume(*facts)
        own = [name for name in function.dims if name not in function.mesh]
        self._dims = (*own, *self._names, *self._cut)
        self._called: dict[object, tuple[Function, list[tuple[Axes, frozenset[str]]]]] = {}
        self._made: dict[Atom, Made] = {}
        self._same: dict[Atom, dict[Axes, Placed]] = {}
        """The placements in which devices have each value."""

    # The sizes of pieces.

    def local(self, whole: ArrayType, axes: Axes) -> ArrayType:
        """Return the type of a piece of an array."""
        pairs = zip(whole.shape, axes, strict=True)
        return whole.with_shape(tuple([self._piece(size, along) for size, along in pairs]))

    def has_pieces(self, size: Size, along: tuple[str, ...]) -> bool:
        """Return whether an axis of a size has equal pieces along axes of the mesh."""
        return _divided(size, along, self._pieces(along)) is not None

    def _pieces(self, along: tuple[str, ...]) -> dict[Size, str]:
        return {size: piece for piece, (size, axes) in self._cut.items() if axes == along}

    def _piece(self, size: Size, along: tuple[str, ...]) -> Size:
        """Return the length of a piece of an axis."""
        if not along:
            return size
        found = _divided(size, along, self._pieces(along))
        if found is None:
            count = pieces_along(along)
            raise Failure(UnequalPieces(size=str(size), along="@".join(along), pieces=count))
        return found[0]

    # Programs.

    def partitioned(
        self,
        function: Function,
        arguments: Sequence[Placement],
        results: Sequence[Placement | None],
        returns: Span,
    ) -> Partitioned:
        """Return the whole program, its results as they are wanted."""
        given = [placement.axes for placement in arguments]
        found: list[Axes] = []
        made_at: dict[Atom, Span] = {
            var: each.span for each in function.body.equations for var in each.outputs
        }

        def build(here: Builder, params: list[Value]) -> list[Value]:
            operands = [Placed(x, axes) for x, axes in zip(params, given, strict=True)]
            placed = self.block(here, function.body, operands)
            for n, (each, atom, wanted) in enumerate(
                zip(placed, function.body.results, results, strict=True)
            ):
                axes = each.axes if wanted is None else wanted.axes
                try:
                    here.program.span = made_at.get(atom, function.span)
                    placed[n] = self.finished(here, self.moved(here, each, atom.type, axes))
                except Failure as failure:
                    raise failure.at(returns) from None
            found.extend([each.axes for each in placed])
            return [each.value for each in placed]

        types: list[ArrayType] = []
        for var, axes in zip(function.body.params, given, strict=True):
            try:
                types.append(self.local(var.type, axes))
            except Failure as failure:
                raise failure.at(var.origin) from None
        body = closed(self.facts, types, build)
        made = simplify(self._on_device(function, body))
        placements = tuple([Placement(axes) for axes in found])
        return Partitioned(made, self._names, self._cut, tuple(arguments), placements)

    def _on_device(self, function: Function, body: Block) -> Function:
        """Return a function with the body and the sizes of a device."""
        return replace(
            function,
            dims=self._dims,
            mesh=self._names,
            facts=self.facts,
            body=body,
            parameters=(),
            result=None,
            origins={},
        )

    def block(self, here: Builder, block: Block, operands: Sequence[Placed]) -> list[Placed]:
        """Append the equations of a block, and return its results."""
        env: dict[Atom, Placed] = dict(zip(block.params, operands, strict=True))
        program = here.program
        place = program.span
        for equation in block.equations:
            program.span = equation.span
            inputs = [self._operand(here, env, atom) for atom in equation.inputs]
            try:
                outputs = self.equation(here, equation, inputs)
            except Failure as failure:
                raise failure.at(equation.span) from None
            env.update(zip(equation.outputs, outputs, strict=True))
        program.span = place
        return [self._operand(here, env, atom) for atom in block.results]

    def _operand(self, here: Builder, env: Mapping[Atom, Placed], atom: Atom) -> Placed:
        return Placed(Value(here, atom), ()) if isinstance(atom, Literal) else env[atom]

    def equation(
        self, here: Builder, equation: Equation, inputs: Sequence[Placed]
    ) -> Sequence[Placed]:
        """Append one equation on pieces."""
        primitive = equation.primitive
        if primitive.has_effect:
            raise Failure(NotPartitioned(what=f"`{primitive.label}`"))
        types = [atom.type for atom in equation.inputs]
        if isinstance(primitive, PlaceAlong):
            (x,), (type_,) = inputs, types
            return [self.moved(here, x, type_, self._asked(primitive, x.axes), asked=True)]
        if isinstance(primitive, Rotate):
            (x,) = inputs
            along = x.axes[primitive.axis]
            if along and self._piece(types[0].shape[primitive.axis], along) == 1:
                move = CollectivePermute(along, self._mesh, primitive.by)
                return [x._replace(value=here.bind(move, (x.value,))[0])]
        if isinstance(primitive, Call):
            return self.call(here, primitive, inputs)
        if isinstance(primitive, Expanded):
            block = primitive.as_reductions(here.facts, tuple(types))
            if block is not None:
                return self.block(here, block, inputs)
        in_order = self.in_order(here, equation, inputs)
        if in_order is not None:
            return in_order
        if isinstance(primitive, Control):
            return self.control(here, primitive, equation, inputs)
        return self.plain(here, equation, inputs)

    def _asked(self, primitive: PlaceAlong, have: Axes) -> Axes:
        """Return the placement that is asked for, where some axes may stay as they are."""
        asked = [axes_on(self._names, (each or (),))[0] for each in primitive.axes]
        taken = {axis for along in asked for axis in along}
        return tuple(
            [
                tuple([name for name in own if name not in taken]) if each is None else along
                for each, along, own in zip(primitive.axes, asked, have, strict=True)
            ]
        )

    # Equations that combine elements or rows in order.

    def in_order(
        self, here: Builder, equation: Equation, inputs: Sequence[Placed]
    ) -> Sequence[Placed] | None:
        """Append an equation that combines pieces in order; None if it needs them whole."""
        primitive = equation.primitive
        types = tuple([atom.type for atom in equation.inputs])
        if isinstance(primitive, Cumulative | LinearRecurrence):
            first, axis = 0, primitive.axis
            cuts = {x.axes for x in inputs if any(x.axes)}
        elif isinstance(primitive, AssociativeScan | MapReduce):
            first, axis = without_rows(primitive, types), 0
            places = any(any(_places(block, None)) for block in primitive.blocks())
            if places or any(any(x.axes[n >= first :]) for n, x in enumerate(inputs)):
                return None
            cuts = {x.axes[:1] for x in inputs[first:] if any(x.axes)}
        else:
            return None
        if len(cuts) != 1:
            return None
        (cut,) = cuts
        along, length = cut[axis], types[first].shape[axis]
        if not along or not here.facts.proves(Fact("<=", 1, self._piece(length, along))):
            return None
        values: list[Value] = []
        for n, (x, type_) in enumerate(zip(inputs, types, strict=True)):
            wanted = (*cut, *x.axes[len(cut) :]) if n >= first else x.axes
            values.append(self.finished(here, self.moved(here, x, type_, wanted)).value)
        pieces = Pieces(here, self._mesh, along, axis, pieces_along(along))
        results = pieces.combined(primitive, values)
        if results is None:
            return None
        axes = () if isinstance(primitive, MapReduce) else cut
        return [
            Placed(x, (*axes, *((),) * (var.type.rank - len(axes))))
            for x, var in zip(results, equation.outputs, strict=True)
        ]

    # Equations without blocks.

    def plain(
        self, here: Builder, equation: Equation, inputs: Sequence[Placed]
    ) -> Sequence[Placed]:
        """Append an equation by its axis rule."""
        primitive = equation.primitive
        given = tuple([atom.type for atom in equation.inputs])
        made = tuple([var.type for var in equation.outputs])
        rule = primitive.axis_rule(given, made) or _needs_whole(given, made)
        inputs, parts = self._kept_parts(here, primitive, rule, inputs)
        along = self._along(primitive, rule, inputs, given, parts)
        for type_, factors in zip(made, rule.results, strict=True):
            for size, factor in zip(type_.shape, factors, strict=True):
                if factor in along and not self.has_pieces(size, along[factor]):
                    del along[factor]
        operands = [
            self.moved(here, x, type_, _axes_of(factors, along))
            for x, type_, factors in zip(inputs, given, rule.operands, strict=True)
        ]
        values, wanted = self._bound(here, equation, rule, along, operands)
        if not parts and not rule.reduced():
            for n, x in enumerate(values):
                self._made[x.atom] = Made(equation, rule, along, tuple(operands), n)
        over: frozenset[str] = frozenset(
            [axis for f in rule.reduced() for axis in along.get(f, ())]
        )
        if over and rule.combine != "sum":
            kind = cast("Reduction", rule.combine)
            values = [self._combined(here, x, kind, self._ordered(over)) for x in values]
            over = frozenset()
        return [Placed(x, axes, parts | over) for x, axes in zip(values, wanted, strict=True)]

    def _combined(self, here: Builder, x: Value, kind: Reduction, along: tuple[str, ...]) -> Value:
        """Return the values of several devices combined; bits after they were put together."""
        if is_sent_combined(kind, x.dtype):
            return here.bind(AllReduce(along, self._mesh, kind), (x,))[0]
        rows = AllGather(along, self._mesh, 0, pieces_along(along), meant=True)
        return Reduce(kind, (0,))(here.bind(rows, (single(x),))[0])

    def _bound(
        self,
        here: Builder,
        equation: Equation,
        rule: AxisRule,
        along: Mapping[int, tuple[str, ...]],
        operands: Sequence[Placed],
    ) -> tuple[list[Value], list[Axes]]:
        """Append an equation whose factors are cut, and return its results and their axes."""
        primitive = equation.primitive
        whole = tuple([var.type for var in equation.outputs])
        wanted = [_axes_of(factors, along) for factors in rule.results]
        types = tuple([self.local(t, axes) for t, axes in zip(whole, wanted, strict=True)])
        values = [x.value for x in operands]
        starts = {
            factor: self._start(here, equation, rule, factor, along[factor])
            for factor in rule.counted
            if along.get(factor)
        }
        if starts:
            (result,), (type_,) = whole, types
            part = CountedPart(here, result, type_, starts)
            made: Sequence[Value] = (primitive.counted_part(values, part),)
        else:
            own = primitive.resized(tuple([x.type for x in values]), types)
            made = here.bind(own, values)
        return [exactly(x, t.shape) for x, t in zip(made, types, strict=True)], wanted

    def _start(
        self,
        here: Builder,
        equation: Equation,
        rule: AxisRule,
        factor: int,
        along: tuple[str, ...],
    ) -> Value:
        """Return the first place of the own piece along a factor that the equation makes."""
        n, axis = next(
            (n, factors.index(factor))
            for n, factors in enumerate(rule.results)
            if factor in factors
        )
        length = self._piece(equation.outputs[n].type.shape[axis], along)
        (place,) = here.bind(DevicePlace(along, self._mesh), ())
        start: Value = multiply(Convert(I64)(place), here.size(length, I64))
        return start

    def _kept_parts(
        self, here: Builder, primitive: Primitive, rule: AxisRule, inputs: Sequence[Placed]
    ) -> tuple[Sequence[Placed], frozenset[str]]:
        """Return the operands, and the parts that the results have because operands have them.

        Parts stay where the equation is linear in the operands that have them; elsewhere they are
        added first, and before they are spread out, as fewer bytes are sent then.
        """
        having = [n for n, x in enumerate(inputs) if x.parts]
        if not having:
            return inputs, frozenset()
        parts = inputs[having[0]].parts
        alike = all(inputs[n].parts == parts for n in having)
        used = {axis for x in inputs for along in x.axes for axis in along}
        linear = any({*group} == {*having} for group in rule.linear)
        linear = linear and not isinstance(primitive, Broadcast)
        if alike and linear and parts.isdisjoint(used):
            return inputs, parts
        return [self.finished(here, x) for x in inputs], frozenset()

    def _along(
        self,
        primitive: Primitive,
        rule: AxisRule,
        inputs: Sequence[Placed],
        types: Sequence[ArrayType],
        parts: frozenset[str],
    ) -> dict[int, tuple[str, ...]]:
        """Return the axes of the mesh along which each factor is cut."""
        along: dict[int, tuple[str, ...]] = {}
        taken = set(parts)
        order = sorted(range(len(inputs)), key=lambda n: -types[n].rank)
        for n in order:
            for factor, axes in zip(rule.operands[n], inputs[n].axes, strict=True):
                if factor is None or not axes:
                    continue
                known = along.get(factor, ())
                if known[: len(axes)] == axes:
                    continue
                if known and axes[: len(known)] != known:
                    own = zip(rule.operands[n], inputs[n].axes, strict=True)
                    wanted = tuple([known if f == factor else each for f, each in own])
                    raise Failure(
                        AxesDiffer(
                            primitive=primitive.label,
                            left=self._shown(order, inputs, types, rule, factor, known),
                            right=placed_text(types[n], inputs[n].axes),
                            wanted=placed_words(types[n], wanted),
                        )
                    )
                new = axes[len(known) :]
                if taken.isdisjoint(new):  # else the operand is put together along this axis
                    along[factor] = axes
                    taken.update(new)
        return along

    def _shown(
        self,
        order: Sequence[int],
        inputs: Sequence[Placed],
        types: Sequence[ArrayType],
        rule: AxisRule,
        factor: int,
        known: tuple[str, ...],
    ) -> str:
        """Return the text of the operand that is cut along a factor."""
        for n in order:
            for own, axes in zip(rule.operands[n], inputs[n].axes, strict=True):
                if own == factor and axes == known:
                    return placed_text(types[n], inputs[n].axes)
        raise AssertionError("no operand is cut along the factor")

    # Pieces that move.

    def finished(self, here: Builder, x: Placed) -> Placed:
        """Return a value whose parts are added."""
        if not x.parts:
            return x
        add = AllReduce(self._ordered(x.parts), self._mesh)
        return Placed(here.bind(add, (x.value,))[0], x.axes)

    def moved(
        self, here: Builder, x: Placed, whole: ArrayType, wanted: Axes, *, asked: bool = False
    ) -> Placed:
        """Return a value cut along other axes of the mesh; parts that stay are still parts."""
        if len(wanted) != whole.rank:
            raise Failure(NotPartitioned(what=f"a placement of {len(wanted)} axes for {whole}"))
        known = self._known(x).get(wanted)
        if known is not None:
            return known
        if {axis for along in wanted for axis in along} & x.parts:
            x = self._scattered(here, x, whole, wanted)
        kept = [_shared(have, want) for have, want in zip(x.axes, wanted, strict=True)]
        for axis, have in enumerate(x.axes):
            lost = have[len(kept[axis]) :]
            if lost:
                before = x
                x = self._without(here, x, whole, wanted, axis, lost, asked)
                self._note(before, x)
        return x if x.axes == wanted else self._cut_more(here, x, whole, wanted)

    def _known(self, x: Placed) -> dict[Axes, Placed]:
        """Return the placements in which devices have a value, by their axes."""
        return self._same.setdefault(x.value.atom, {x.axes: x})

    def _note(self, x: Placed, other: Placed) -> None:
        """Remember that another value of the new program is the same one, placed otherwise."""
        self._known(x).setdefault(other.axes, other)
        self._same[other.value.atom] = self._known(x)

    def _without(
        self,
        here: Builder,
        x: Placed,
        whole: ArrayType,
        wanted: Axes,
        axis: int,
        lost: tuple[str, ...],
        asked: bool,
    ) -> Placed:
        """Return a value that is not cut along some axes of the mesh any more."""
        axes = [*x.axes]
        axes[axis] = axes[axis][: len(axes[axis]) - len(lost)]
        for other, want in enumerate(wanted):
            have = x.axes[other]
            if (
                other != axis
                and want[: len(have)] == have
                and want[len(have) :][: len(lost)] == lost
            ):
                axes[other] = (*have, *lost)
                shape = self.local(whole, tuple(axes)).shape
                move: Primitive = AllToAll(lost, self._mesh, other, shape[other], axis, shape[axis])
                break
        else:
            length = self.local(whole, tuple(axes)).shape[axis]
            move = AllGather(lost, self._mesh, axis, length, meant=asked)
        return x._replace(value=here.bind(move, (x.value,))[0], axes=tuple(axes))

    def _cut_more(self, here: Builder, x: Placed, whole: ArrayType, wanted: Axes) -> Placed:
        """Return the own piece of what every device has.

        Only the piece is computed, by the equations that made the value, and their operands are
        cut. What a loop, a call or a sum made is cut as it is, and so is a parameter.
        """
        due = [] if wanted in self._known(x) else [(x, whole, wanted)]
        program = here.program
        place = program.span
        while due:
            y, type_, axes = due[-1]
            made = self._made.get(y.value.atom)
            along = None if made is None else self._along_part(made, axes)
            if made is None or along is None:
                self._note(y, self._own_part(here, y, type_, axes))
                due.pop()
                continue
            needed = [
                (operand, atom.type, _axes_of(factors, along))
                for operand, atom, factors in zip(
                    made.operands, made.equation.inputs, made.rule.operands, strict=True
                )
            ]
            missing = [
                (operand, atom, want)
                for operand, atom, want in needed
                if want not in self._known(operand)
            ]
            if missing:
                due.extend(missing)
                continue
            operands = [self._known(operand)[want] for operand, _, want in needed]
            program.span = made.equation.span
            values, _ = self._bound(here, made.equation, made.rule, along, operands)
            value = values[made.result]
            self._made[value.atom] = made
            self._note(y, Placed(value, axes))
            program.span = place
            due.pop()
        return self._known(x)[wanted]

    def _along_part(self, made: Made, axes: Axes) -> dict[int, tuple[str, ...]] | None:
        """Return the axes of the mesh along which factors are cut in a part of a value.

        Return None if a factor has to be whole, or has no such pieces.
        """
        along = {**made.along}
        for factor, want in zip(made.rule.results[made.result], axes, strict=True):
            if want:
                if factor is None:
                    return None
                along[factor] = want
        used = [axis for each in along.values() for axis in each]
        if len({*used}) < len(used):
            return None
        sides = (
            *zip(made.equation.inputs, made.rule.operands, strict=True),
            *zip(made.equation.outputs, made.rule.results, strict=True),
        )
        for atom, factors in sides:
            for size, factor in zip(atom.type.shape, factors, strict=True):
                if factor is None or factor not in along:
                    continue
                if not self.has_pieces(size, along[factor]):
                    return None
        return along

    def _own_part(self, here: Builder, x: Placed, whole: ArrayType, wanted: Axes) -> Placed:
        """Return the own piece of an array that every device has."""
        for axis, want in enumerate(wanted):
            new = want[len(x.axes[axis]) :]
            if new:
                axes = (*x.axes[:axis], want, *x.axes[axis + 1 :])
                length = self.local(whole, axes).shape[axis]
                part = OwnPart(new, self._mesh, axis, length)
                x = x._replace(value=here.bind(part, (x.value,))[0], axes=axes)
        return x

    def _scattered(self, here: Builder, x: Placed, whole: ArrayType, wanted: Axes) -> Placed:
        """Return a value whose parts are added, each device with its own part of the sum."""
        for axis, want in enumerate(wanted):
            have = x.axes[axis]
            new = want[len(have) :]
            if want[: len(have)] == have and new and x.parts.issuperset(new):
                axes = (*x.axes[:axis], want, *x.axes[axis + 1 :])
                length = self.local(whole, axes).shape[axis]
                move = ReduceScatter(new, self._mesh, axis, length)
                return Placed(here.bind(move, (x.value,))[0], axes, x.parts.difference(new))
        return self.finished(here, x)

    def _ordered(self, axes: Iterable[str]) -> tuple[str, ...]:
        """Return axes in the order of the mesh."""
        found = {*axes}
        return tuple([name for name in self._names if name in found])

    # Calls and blocks.

    def call(self, here: Builder, primitive: Call, inputs: Sequence[Placed]) -> Sequence[Placed]:
        """Append the call of a function that is partitioned for these placements.

        A function whose results can be made in parts is replaced by its equations.
        """
        if all(map(_can_make_parts, primitive.function.body.equations)):
            body = substitute_block(primitive.function.body, dict(primitive.sizes))
            return self.block(here, body, inputs)
        inputs = [self.finished(here, x) for x in inputs]
        axes = tuple([x.axes for x in inputs])
        key = primitive.function, primitive.sizes, axes
        known = self._called.get(key)
        if known is None:
            found: list[tuple[Axes, frozenset[str]]] = []
            body = substitute_block(primitive.function.body, dict(primitive.sizes))

            def build(inner: Builder, params: list[Value]) -> list[Value]:
                operands = [Placed(x, each) for x, each in zip(params, axes, strict=True)]
                placed = self.block(inner, body, operands)
                found.extend([(each.axes, each.parts) for each in placed])
                return [each.value for each in placed]

            block = closed(self.facts, [x.value.type for x in inputs], build)
            known = self._called[key] = self._on_device(primitive.function, block), found
        function, placements = known
        own = Call(function, tuple([(name, variable(name)) for name in self._dims]))
        values = here.bind(own, [x.value for x in inputs])
        return [Placed(x, *placement) for x, placement in zip(values, placements, strict=True)]

    def control(
        self,
        here: Builder,
        primitive: Control,
        equation: Equation,
        inputs: Sequence[Placed],
    ) -> Sequence[Placed]:
        """Append an equation with blocks: one that runs once is replaced by its block."""
        layout = primitive.layout
        inputs = [self.finished(here, x) for x in inputs]
        given = layout.operands(inputs)
        if len(layout.run) == 1 and layout.run[0].nesting is Nesting.ONCE:
            (region,) = layout.run
            operands = [x for group in region.takes for x in given[group]]
            results = iter(self.block(here, region.block, operands))
            members = {g: [next(results) for _ in range(g.count)] for g in region.gives}
            return layout.outputs(members)
        return Loop(self, primitive, equation, given).append(here)


class Loop:
    """A loop or choice whose blocks run on pieces: values keep their placements from step to step.

    A value of the loop is cut where its first value or its next one is; if these differ, it is
    whole. An axis of steps is whole, and so is what decides about steps, which is why all devices
    run the same steps.
    """

    def __init__(
        self,
        pass_: Partition,
        primitive: Control,
        equation: Equation,
        given: Mapping[Group, Sequence[Placed]],
    ) -> None:
        self._pass = pass_
        self._primitive = primitive
        self._layout = primitive.layout
        self._given = given
        self._types = self._layout.operands([atom.type for atom in equation.inputs])
        self._outputs = self._layout.results([var.type for var in equation.outputs])
        self._axes: dict[Group, list[Axes | None]] = {}
        self._whole: set[tuple[Group, int, int]] = set()
        """The axes, by group, member and axis, whose placements differed."""
        for group in self._layout.groups:
            known = given.get(group)
            self._axes[group] = [None] * group.count if known is None else [x.axes for x in known]
        for group, members in self._axes.items():
            drop = [self._stacked(group, n) for n in range(group.count)]
            for n, axes in enumerate(members):
                if axes is not None and group.role is Role.DECISION:
                    members[n] = ((),) * len(axes)
                elif axes and drop[n]:
                    members[n] = ((), *axes[1:])

    def _stacked(self, group: Group, member: int) -> bool:
        """Return whether a member has an axis of steps, which its blocks do not see."""
        whole = self._types.get(group) or self._outputs.get(group) or ()
        if member >= len(whole):
            return False
        for region in self._layout.run:
            for own, atoms in (*region.params(), *region.results()):
                if own is group:
                    return whole[member].rank > atoms[member].type.rank
        return False

    def append(self, here: Builder) -> Sequence[Placed]:
        """Append the equation, and return its results."""
        while True:
            before = {group: [*members] for group, members in self._axes.items()}
            for region in self._layout.run:
                self._follow(region)
            if self._axes == before:
                break
        layout = self._layout
        blocks = {
            region: region.block if region.nesting is Nesting.NEVER else self._block(region)
            for region in layout.regions
        }
        operands = {
            group: [
                self._pass.moved(here, x, type_, axes or ()).value
                for x, type_, axes in zip(
                    members, self._types[group], self._axes[group], strict=True
                )
            ]
            for group, members in self._given.items()
        }
        sent_before(here, layout, blocks, operands)
        members = {each: operands.get(each, range(each.count)) for each in layout.groups}
        own = self._primitive.with_blocks([*blocks.values()], layout.counts(members))
        inputs = layout.inputs(operands)
        values = layout.results(here.bind(own, inputs))
        return layout.outputs(
            {
                group: [
                    Placed(x, axes or ())
                    for x, axes in zip(members, self._axes[group], strict=True)
                ]
                for group, members in values.items()
            }
        )

    def _inner(self, group: Group, member: int) -> Axes | None:
        """Return the placement of a member as a block sees it."""
        axes = self._axes[group][member]
        return axes[1:] if axes is not None and self._stacked(group, member) else axes

    def _taken(self, region: Region) -> list[tuple[ArrayType, Axes]] | None:
        """Return the types and placements of a block's parameters; None if one is unknown yet."""
        found: list[tuple[ArrayType, Axes]] = []
        for group, params in region.params():
            for n, var in enumerate(params):
                axes = self._inner(group, n)
                if axes is None:
                    return None
                found.append((var.type, axes))
        return found

    def _run(
        self, region: Region, wanted: Callable[[int], Axes | None]
    ) -> tuple[Block, list[Axes]] | None:
        """Return a region's block on pieces, its results as wanted, and their placements."""
        taken = self._taken(region)
        if taken is None:
            return None
        found: list[Axes] = []
        pass_ = self._pass

        def build(inner: Builder, params: list[Value]) -> list[Value]:
            operands = [Placed(x, axes) for x, (_, axes) in zip(params, taken, strict=True)]
            placed = [pass_.finished(inner, x) for x in pass_.block(inner, region.block, operands)]
            for n, (x, atom) in enumerate(zip(placed, region.block.results, strict=True)):
                axes = wanted(n)
                placed[n] = x if axes is None else pass_.moved(inner, x, atom.type, axes)
            found.extend([x.axes for x in placed])
            return [x.value for x in placed]

        types = [pass_.local(type_, axes) for type_, axes in taken]
        return closed(pass_.facts, types, build), found

    def _follow(self, region: Region) -> None:
        """Note the placements that a block gives to its results."""
        made = self._run(region, lambda _: None)
        if made is None:
            return
        placements = iter(made[1])
        for group in region.gives:
            members = self._axes[group]
            for n in range(group.count):
                axes = next(placements)
                if group.role is Role.DECISION:
                    members[n] = ((),) * len(axes)
                    continue
                stacked = self._stacked(group, n)
                own = ((), *axes) if stacked else axes
                members[n] = self._joined(group, n, members[n], own)

    def _joined(self, group: Group, member: int, old: Axes | None, new: Axes) -> Axes:
        """Return the placement of a value that is placed in two ways."""
        if old is None:
            return new
        joined: list[tuple[str, ...]] = []
        for axis, (one, other) in enumerate(zip(old, new, strict=True)):
            spot = group, member, axis
            if one and other and one != other:
                self._whole.add(spot)
            joined.append(() if spot in self._whole else one or other)
        used: set[str] = set()
        for axis, along in enumerate(joined):
            if not used.isdisjoint(along):
                self._whole.add((group, member, axis))
                joined[axis] = ()
            used.update(joined[axis])
        return tuple(joined)

    def _block(self, region: Region) -> Block:
        """Return a region's block with its results where the loop has them."""
        wanted: list[Axes | None] = [
            self._inner(group, n) for group in region.gives for n in range(group.count)
        ]
        made = self._run(region, lambda n: wanted[n])
        assert made is not None, "the placements of the operands are known"
        return made[0]


# Sizes, texts and tables.


def pieces_along(axes: Iterable[str]) -> Size:
    """Return the number of pieces along axes of the mesh."""
    return size_of(tuple(map(variable, axes)))


def _divided(
    size: Size, along: tuple[str, ...], pieces: Mapping[Size, str]
) -> tuple[Size, list[Size]] | None:
    """Return the length of a piece of an axis, and the sizes whose pieces make it.

    `pieces` has the name of the length of a piece for each name that may be cut, and for a number.
    One of them suffices in a product, `g*o`; each term of a sum needs one.
    """
    count = pieces_along(along)
    if size % count == 0:
        return size // count, []
    for one in sorted(pieces, key=lambda each: (isinstance(each, int), str(each))):
        if size % one == 0:
            return size // one * variable(pieces[one]), [one]
    terms = [from_terms({monomial: number}) for monomial, number in as_terms(size)]
    divided = [_divided(term, along, pieces) for term in terms] if len(terms) > 1 else [None]
    found = [each for each in divided if each is not None]
    if len(found) < len(divided):
        return None
    total: Size = 0
    for part, _ in found:
        total = total + part
    return total, [one for _, used in found for one in used]


def _axes_of(factors: Sequence[int | None], along: Mapping[int, tuple[str, ...]]) -> Axes:
    return tuple([() if factor is None else along.get(factor, ()) for factor in factors])


def _shared(have: tuple[str, ...], want: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first axes of the mesh that two placements share."""
    count = 0
    while count < min(len(have), len(want)) and have[count] == want[count]:
        count += 1
    return have[:count]


def _needs_whole(given: Sequence[ArrayType], made: Sequence[ArrayType]) -> AxisRule:
    """Return the rule of a primitive that needs whole arrays."""
    return AxisRule(
        tuple([(None,) * each.rank for each in given]),
        tuple([(None,) * each.rank for each in made]),
    )


def _can_make_parts(equation: Equation) -> bool:
    """Return whether a part of an equation's results needs parts of its operands only."""
    types = [tuple([atom.type for atom in side]) for side in (equation.inputs, equation.outputs)]
    rule = equation.primitive.axis_rule(types[0], types[1])
    return rule is not None and not rule.reduced()


def placed_text(whole: ArrayType, axes: Axes) -> str:
    """Return a type with its placement: `f32[n@data d]`."""
    return f"{whole.dtype.name}[{placed_words(whole, axes)}]"


def placed_words(whole: ArrayType, axes: Axes) -> str:
    """Return a shape with its placement: `n@data d`."""
    pairs = zip(whole.shape, axes, strict=True)
    return " ".join([placed_word(size, along) for size, along in pairs])


def _cut_names(
    function: Function,
    arguments: Sequence[Placement],
    results: Sequence[Placement | None],
    mesh: Sequence[str],
) -> Cuts:
    """Return the names of the lengths of pieces."""
    found: dict[tuple[Size, tuple[str, ...]], None] = {}
    numbers: dict[tuple[str, ...], int] = {}
    types = (*function.body.in_types, *function.body.out_types)
    sides = zip(types, (*arguments, *results), strict=True)
    given = [(type_, each.axes) for type_, each in sides if each is not None]
    placed = [(type_, axes_on(mesh, axes)) for type_, axes in _places(function.body, None)]
    cut = {
        (size, along): None
        for type_, axes in (*given, *placed)
        for size, along in zip(type_.shape, axes, strict=True)
        if along
    }
    # In a product, a name that is cut anyway suffices: names come first.
    for size, along in sorted(cut, key=lambda each: (len(names(each[0])), len(as_terms(each[0])))):
        own = sorted(names(size) - {*function.mesh})
        every: dict[Size, str] = {variable(name): name for name in own}
        if isinstance(size, int):
            every = {size: ""}
        before: dict[Size, str] = {one: "" for one, axes in found if axes == along}
        divided = _divided(size, along, before) or _divided(size, along, every)
        for one in () if divided is None else divided[1]:
            # A value is cut along the first axes alone on the way to another placement.
            for count in range(1, len(along) + 1):
                first = along[:count]
                if isinstance(one, int):  # the pieces of all numbers are multiples of one
                    numbers[first] = gcd(one, numbers.get(first, 0))
                else:
                    found[one, first] = None
    cuts = [*found, *[(number, along) for along, number in numbers.items()]]
    cuts.sort(key=lambda each: len(each[1]))
    return {placed_word(size, along): (size, along) for size, along in cuts}


def _places(block: Block, sizes: Mapping[str, Size] | None) -> Iterator[tuple[ArrayType, Axes]]:
    """Yield the operand's type and the axes of each `place` in a block and in what it calls."""
    for equation in walk(block):
        primitive = equation.primitive
        if isinstance(primitive, PlaceAlong):
            type_ = equation.inputs[0].type
            axes = tuple([along or () for along in primitive.axes])
            yield type_ if sizes is None else type_.substitute(sizes), axes
        elif isinstance(primitive, Call):
            inner = {
                name: size if sizes is None or isinstance(size, int) else substitute(size, sizes)
                for name, size in primitive.sizes
            }
            yield from _places(primitive.function.body, inner)
