"""Functions elaborated into closed blocks, which transformations work on; `vmap` of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, permutations
from typing import ClassVar, Final, NamedTuple

from pscdsl._src.analysis.keys.walk import concerns_keys
from pscdsl._src.analysis.warnings.performance import branches_run_by_all
from pscdsl._src.frontend.interpreter.frames import inner_block, require_program, session_of
from pscdsl._src.frontend.interpreter.state import Trial
from pscdsl._src.frontend.trees import (
    Attempt,
    applicable,
    flatten,
    of_values,
    pair_in,
    strong,
    unflatten,
)
from pscdsl._src.frontend.values import (
    AnyValue,
    Applicable,
    Args,
    Array,
    Kwargs,
    Poisoned,
    describe,
    tree_parts,
)
from pscdsl._src.interpreters.replay import batch, has_tangent, repeated
from pscdsl._src.ir.builder import Builder, PythonNumber, Value, Weak
from pscdsl._src.ir.program import Atom, Block, Equation, Origin, Var
from pscdsl._src.primitives.control import substitute_block
from pscdsl._src.primitives.scan import Rows
from pscdsl._src.primitives.shaping import Reshape, Transpose
from pscdsl._src.transforms.simplify import tidied
from pscdsl.typing.array_types import ArrayType, DictType, Type, leaves, paths, type_parts
from pscdsl.typing.codes.control import AxisMismatch, BadBody, BatchSizesDiffer
from pscdsl.typing.codes.derivatives import BadArgnums, NoTangent
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.codes.shapes import disagreement
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Failure, Label, Span
from pscdsl.typing.dims import Dim, Size, name
from pscdsl.typing.dtypes import I32, DType
from pscdsl.typing.python_containers import is_dict, is_sequence
from pscdsl.typing.signatures import (
    ArraySpec,
    DictSpec,
    MapSpec,
    NoneSpec,
    OptionalSpec,
    Parameter,
    RecordSpec,
    RepeatedSpec,
    Signature,
    Spec,
    TreeSpec,
    TupleSpec,
    Variadic,
    spec_parts,
    with_spec_parts,
)

# The sources of derivatives and batches, for warnings and for counting the uses of keys.


@contextmanager
def made_of(
    here: Builder,
    block: Block | None,
    operands: Sequence[Value],
    results: list[Value],
    active: tuple[bool, ...] = (),
    moving_results: int = 0,
) -> Generator[None]:
    """Record that the equations appended in this context were made of a block.

    `results` are filled in meanwhile. The block is None if the value was computed before. The last
    two say what reverse mode differentiates (see `Origin`).
    """
    current = here.program.current
    first = len(current.equations)
    inputs = tuple(map(current.atom, operands))
    yield
    count = len(current.equations) - first
    if not count:
        if block is None or not operands or not concerns_keys(block):
            return
        current.bind(Reshape(operands[0].shape), operands[:1])  # an equation for the warnings
        count = 1
    outputs = tuple(map(current.atom, results))
    here.program.origins[current.equations[first]] = Origin(
        count, block, inputs, outputs, active, moving_results
    )


def over_rows(
    here: Builder, block: Block, batched: Sequence[bool], size: Size, *, shares: bool = False
) -> tuple[Block, list[int]]:
    """Return a block as a loop over rows, and the block's operands that it takes, in order.

    If the rows share what depends on none of them, that is computed once, before the loop.
    """
    order = sorted(range(len(batched)), key=lambda at: batched[at])
    held = [block.params[at] for at in order if not batched[at]]
    rows = [block.params[at] for at in order if batched[at]]
    many: set[Atom] = {*rows}
    first: list[Equation] = []
    rest: list[Equation] = []
    for equation in block.equations:
        if shares and many.isdisjoint(equation.inputs):
            first.append(equation)
        else:
            rest.append(equation)
            many.update(equation.outputs)
    shared = (*held, *[var for equation in first for var in equation.outputs])
    once = substitute_block(Block(tuple(held), tuple(first), shared), {})
    stacked = [Var(row.type.with_shape((size, *row.type.shape)), row.hint) for row in rows]
    results = tuple([Var(t.with_shape((size, *t.shape))) for t in block.out_types])
    loop = Rows(Block((*shared, *rows), tuple(rest), block.results), len(shared), 0, size)
    last = Equation(loop, (*once.results, *stacked), results, here.program.span)
    return Block((*once.params, *stacked), (*once.equations, last), results), order


@dataclass(frozen=True)
class Transformed(Applicable):
    """A function made of another one by a transformation; `run(here, args, kwargs)` is its call.

    `signature` returns the transformed signature; most transformations leave it alone.
    """

    name: str
    function: Applicable
    run: Callable[[Builder, Args, Kwargs], AnyValue]
    signature: Callable[[Signature], Signature] = field(default=lambda signature: signature)
    called: str = ""
    """Its name, if it is not formed of the transformation and the function."""
    returns_new_arrays: ClassVar = True

    def __str__(self) -> str:
        return self.called or f"psc.{self.name}({name_of(self.function)})"

    def holds(self) -> Sequence[AnyValue]:
        """Return the function."""
        return (self.function,)

    def apply(self, here: Builder, args: Args, kwargs: Kwargs) -> AnyValue:
        """Call it, at the place of the call."""
        here = require_program(here, f"`{self}`")
        return self.applied(here, args, kwargs, "is called here")

    def applied(self, here: Builder, args: Args, kwargs: Kwargs, says: str) -> AnyValue:
        """Call it; `says` is the label at this place for findings that are elsewhere, if any."""
        here.program.transformed += 1
        with asking(here, str(self), says):
            return self.run(here, args, kwargs)


@contextmanager
def asking(here: Builder, by: str, says: str) -> Generator[None]:
    """Add the request for a derivative to findings; `says` is its label at this place, if any."""
    place = here.program.span
    try:
        yield
    except Failure as failure:
        raise asked_for(failure, by, place, says) from None
    finally:
        here.program.span = place


def asked_for(failure: Failure, by: str, place: Span, says: str) -> Failure:
    """Add the request for the derivative to findings; `says` is its label at a place."""
    asked = [
        d.replaced(asked=by) if getattr(d, "asked", None) == "" else d for d in failure.diagnostics
    ]
    if not says:
        return Failure(*asked)
    label = Label(place, f"`{by}` {says}")
    return Failure(*[_labelled(d, label) for d in asked])


def _labelled(finding: Diagnostic, label: Label) -> Diagnostic:
    """Label a finding, unless its own line or this place already has a text."""
    own, place = finding.span, label.span
    if own is NOWHERE or (own.path, own.line) == (place.path, place.line):
        return finding
    others = tuple([each for each in finding.labels if each.span != place])
    return finding.replaced(labels=(*others, label))


def name_of(function: AnyValue) -> str:
    """Return the name of a function in messages."""
    if isinstance(function, Transformed):
        return str(function)
    name = getattr(function, "name", "")
    return name if isinstance(name, str) and name and not name.startswith("<") else "…"


@dataclass(frozen=True)
class Argument:
    """An argument that varies: its leaves, and the tree that they make."""

    leaves: list[Value]
    tree: Type
    numbers: Sequence[bool] = ()
    """For each leaf, whether it is a Python number; empty if there is none."""

    def unflatten(self, values: Iterable[Value]) -> AnyValue:
        """Return a tree of other values, one for each leaf, or of their derivatives."""
        return unflatten(self.tree, self._given(values, self._numbers))

    def tangents(self, tree: Type, values: Iterable[Value]) -> AnyValue:
        """Return the tree of the tangents of those leaves that have some."""
        moving = [
            is_number
            for leaf, is_number in zip(self.leaves, self._numbers, strict=True)
            if has_tangent(leaf.type)
        ]
        return unflatten(tree, self._given(values, moving))

    @property
    def _numbers(self) -> Sequence[bool]:
        return self.numbers or [False] * len(self.leaves)

    def _given(self, values: Iterable[Value], numbers: Sequence[bool]) -> Iterator[Array]:
        return map(as_number, islice(values, len(numbers)), numbers)


def as_number(value: Value, is_number: bool) -> Array:
    """Return a value as a Python number, if it is one."""
    return PythonNumber(value) if is_number else value


@dataclass(frozen=True)
class Traced:
    """A function as a block of its captured values and of the leaves of its varying arguments."""

    block: Block
    source: Block
    """The block as it was elaborated."""
    captured: tuple[Value, ...]
    varying: dict[int, Argument]
    result: Type
    aux: Type | None = None
    """The tree of its auxiliary results, whose leaves come last."""

    @property
    def operands(self) -> list[Value]:
        """Return the operands of the block."""
        return [*self.captured, *self.leaves]

    @property
    def leaves(self) -> list[Value]:
        """The leaves of the varying arguments."""
        return [leaf for each in self.varying.values() for leaf in each.leaves]


def trace(
    here: Builder,
    name: str,
    function: Applicable,
    args: Args,
    kwargs: Kwargs,
    varying: Sequence[int],
    types: Callable[[int, Argument], list[ArrayType]] | None = None,
    has_aux: AnyValue = False,
) -> Traced:
    """Elaborate a function; the arguments at some places vary, the others are constant.

    `types` gives the types of an argument's leaves inside, if they differ from its own.
    """
    if not isinstance(has_aux, bool):
        needs = "True or False as `has_aux`"
        raise Failure(BadBody(combinator=name, needs=needs, found=describe(has_aux)))
    found = {at: flatten(here, args[at], f"argument {at} of `{name}`") for at in varying}
    dtypes = _weak_dtypes(here, function, args, kwargs, found)
    arguments: dict[int, Argument] = {}
    for at, (parts, tree) in found.items():
        values = [
            x
            if isinstance(x, Value)
            else x.at(dtypes[at, i])
            if (at, i) in dtypes
            else x.default(f"{name} {at} {i}")
            for i, x in enumerate(parts)
        ]
        numbers = [isinstance(x, PythonNumber) for x in parts]
        arguments[at] = Argument(values, of_values(tree, values), numbers)
    before = here.program.transformed
    with inner_block(here) as inner:
        own: list[Value] = []
        given = list(args)
        for at, argument in arguments.items():
            inside = types(at, argument) if types else [v.type for v in argument.leaves]
            pairs = zip(argument.leaves, inside, strict=True)
            params = [inner.parameter_for(leaf, each) for leaf, each in pairs]
            own.extend(params)
            given[at] = argument.unflatten(params)
        result = function.apply(inner, given, kwargs)
        more: list[Value] = []
        aux_tree: Type | None = None
        if has_aux:
            needs = "a function that returns a pair (value, aux), for `has_aux=True`"
            result, aux = pair_in(
                result, lambda found: BadBody(combinator=name, needs=needs, found=found)
            )
            extra, tree = flatten(inner, aux, f"what `{name}` is given besides the value")
            more = strong(extra)
            aux_tree = of_values(tree, more)
        outputs, tree = flatten(inner, result, f"the result of the function given to `{name}`")
        values = strong(outputs)
        block, captured = inner.finish(own, [*values, *more])
    tidy = tidied(block) if here.program.transformed > before else block
    return Traced(tidy, block, captured, arguments, of_values(tree, values), aux_tree)


def _weak_dtypes(
    here: Builder,
    function: Applicable,
    args: Args,
    kwargs: Kwargs,
    found: Mapping[int, tuple[list[Array], Type]],
) -> dict[tuple[int, int], DType]:
    """Return the dtypes of a function's weak arguments, found by a first try."""
    if all(isinstance(x, _GIVEN) for leaves, _ in found.values() for x in leaves):
        return {}
    attempt = Attempt(here.program)
    wanted: dict[tuple[int, int], DType] = {}
    try:
        with inner_block(here) as inner:
            given = list(args)
            for at, (leaves, tree) in found.items():
                params = [
                    x if isinstance(x, _GIVEN) else _open(inner, x, wanted, (at, i))
                    for i, x in enumerate(leaves)
                ]
                given[at] = unflatten(tree, iter(params))
            flatten(inner, function.apply(inner, given, kwargs), "")
    except (Failure, Poisoned):
        pass  # the second try reports the problem
    attempt.forget()
    return wanted


_GIVEN: Final = (Value, PythonNumber)
"""Leaves with a fixed dtype."""


def _open(
    inner: Builder, leaf: Weak, wanted: dict[tuple[int, int], DType], key: tuple[int, int]
) -> Weak:
    def at(dtype: DType) -> Value:
        wanted.setdefault(key, dtype)
        return inner.parameter(ArrayType(dtype, leaf.shape))

    return Weak(inner, leaf.kind, leaf.shape, at, whole=I32)


# The options of `grad` and the Jacobians: the arguments, and auxiliary results.


@dataclass(frozen=True)
class Options:
    """A transformation by its name, the function it transforms, and how."""

    name: str
    function: Applicable
    argnums: AnyValue
    has_aux: bool

    @property
    def called(self) -> str:
        """The name in messages."""
        return f"psc.{self.name}"

    def trace(self, here: Builder, args: Args, kwargs: Kwargs) -> tuple[list[int], Traced]:
        """Return the places of the arguments that vary, and the function traced at them."""
        where = self._places(len(args))
        traced = trace(here, self.called, self.function, args, kwargs, where, has_aux=self.has_aux)
        for at, argument in traced.varying.items():
            self.require_tangents(f"argument {at}", argument.tree)
        return where, traced

    def require_tangents(self, what: str, tree: Type) -> None:
        """Refuse leaves that have no tangents."""
        for path, leaf in paths(tree):
            if not has_tangent(leaf):
                place = what + (f" at `{path}`" if path else "")
                raise Failure(NoTangent(transformation=self.called, argument=place, type=str(leaf)))

    def selected(self, where: Sequence[int], found: Mapping[int, AnyValue]) -> AnyValue:
        """Return the results for the arguments: alone, or as a tuple if several were named."""
        if is_sequence(self.argnums):
            return tuple(found[at] for at in where)
        return found[where[0]]

    def _places(self, count: int) -> list[int]:
        """Return the positions that `argnums` names, counted from the first argument."""
        argnums = self.argnums
        items = list(argnums) if is_sequence(argnums) else [argnums]
        found: list[int] = []
        for item in items:
            if isinstance(item, bool) or not isinstance(item, int):
                raise Failure(
                    self._bad_argnums(count, f"{describe(item)} is no place of an argument")
                )
            if not -count <= item < count:
                raise Failure(self._bad_argnums(count))
            if item % count in found:
                why = f"argument {item % count} is named twice"
                raise Failure(self._bad_argnums(count, why))
            found.append(item % count)
        if not found:
            raise Failure(self._bad_argnums(count, "it names no argument"))
        return found

    def _bad_argnums(self, count: int, why: str = "") -> BadArgnums:
        argnums = describe(self.argnums)
        return BadArgnums(transformation=self.called, argnums=argnums, count=count, why=why)


Run = Callable[[Options, Builder, Args, Kwargs], AnyValue]


def transformed(
    run: Run,
    signature: Callable[[AnyValue, bool, Signature], Signature],
    name: str,
    fun: AnyValue,
    argnums: AnyValue,
    has_aux: bool,
) -> Transformed:
    """Return the function that `run` makes of another one."""
    options = Options(name, applicable(fun, f"psc.{name}"), argnums, has_aux)
    typed = partial(signature, argnums, has_aux)
    return Transformed(name, options.function, partial(run, options), typed)


# `vmap`: a function of one row as a function of a batch of rows.


# Trees of axes that go with trees of arrays: an axis for a whole subtree, or one for each leaf.


def axes_of(name: str, axes: AnyValue, tree: Type) -> list[int | None]:
    """Return the axis of each leaf of a tree; None for those that have none."""
    if axes is None or (isinstance(axes, int) and not isinstance(axes, bool)):
        return [axes] * sum(1 for _ in leaves(tree))
    if isinstance(tree, ArrayType):
        given = f"{name} is {describe(axes)} for {tree}"
        raise Failure(AxisMismatch(given=given, why="the axis of an array is an integer, or None"))
    inner = type_parts(tree)
    keys = [key for key, _ in tree.items] if isinstance(tree, DictType) else None
    own = _axes_of_parts(axes, keys)
    if own is None or len(own) != len(inner):
        why = f"it goes with {tree}, which has {len(inner)} parts"
        raise Failure(AxisMismatch(given=f"{name} is {describe(axes)}", why=why))
    return [
        axis for each, part in zip(own, inner, strict=True) for axis in axes_of(name, each, part)
    ]


# The signature of a function over a batch: an axis more in each parameter that is mapped.


def batched_signature(in_axes: AnyValue, out_axes: AnyValue, signature: Signature) -> Signature:
    """Return the signature over a batch; its size gets a name that is not taken.

    A default is the same for all rows: of a parameter that has one, and is mapped, None says that
    it is left out.
    """
    taken = set(signature.size_names())
    called = "batch"
    while called in taken:
        called += "_"
    size = name(called)
    positional = [p for p in signature.parameters if not p.keyword_only]
    axes = list(in_axes) if is_sequence(in_axes) else [in_axes] * len(positional)
    if len(axes) > len(positional):
        why = f"`{signature.name}` has {len(positional)} positional parameters"
        raise Failure(AxisMismatch(given=f"in_axes has {len(axes)} items", why=why))
    by_name = dict(zip([p.name for p in positional], axes, strict=False))
    parameters: list[Parameter] = []
    for p in signature.parameters:
        if p.has_default and p in positional[len(axes) :]:
            parameters.append(replace(p, spec=NoneSpec()))
            continue
        spec = _batched(p.spec, by_name.get(p.name, 0), size, p.name)
        if p.has_default and spec != p.spec and not isinstance(spec, OptionalSpec):
            spec = OptionalSpec(spec)
        parameters.append(replace(p, spec=spec))
    result = signature.result
    try:
        result = None if result is None else _batched(result, out_axes, size, "the result")
    except Failure:
        result = None  # the call that makes the results reports the problem
    return replace(signature, parameters=tuple(parameters), result=result)


def _batched(spec: Spec, axes: AnyValue, size: Dim, where: str) -> Spec:
    if axes is None:
        return spec
    if isinstance(spec, ArraySpec):
        return _inserted(spec, axes, size, where)
    if isinstance(spec, TreeSpec):
        if not isinstance(axes, int) or axes:
            what = f"a batch along the axes {describe(axes)} of {where}, which is any tree"
            raise Failure(NotSupported(what=what, instead="let the batch be the first axis"))
        return replace(spec, batch=(size, *spec.batch))
    if isinstance(spec, RepeatedSpec | MapSpec) and not isinstance(axes, int):
        what = f"different axes for the items of {where}, which may be any number"
        raise Failure(NotSupported(what=what, instead="give one axis for all of them"))
    items = spec_parts(spec)
    own: Sequence[AnyValue] | None = [axes] * len(items)
    if not isinstance(axes, int) and isinstance(spec, TupleSpec | RecordSpec | DictSpec):
        own = _axes_of_parts(axes, spec.keys() if isinstance(spec, DictSpec) else None)
    if own is None or len(own) != len(items):
        given = f"in_axes of {where} is {describe(axes)}"
        raise Failure(AxisMismatch(given=given, why=f"{where} is {spec}"))
    pairs = zip(items, own, strict=True)
    made = with_spec_parts(spec, [_batched(item, axis, size, where) for item, axis in pairs])
    return replace(made, spelled=True) if isinstance(made, RecordSpec | DictSpec) else made


def _axes_of_parts(axes: AnyValue, keys: Sequence[str] | None) -> Sequence[AnyValue] | None:
    """Return the axes of the parts of a tree, of a dict by its keys; None if they do not fit."""
    if not is_dict(axes):
        return tree_parts(axes) if keys is None else None
    return [axes[key] for key in keys] if keys is not None and axes.keys() == {*keys} else None


def _inserted(spec: ArraySpec, axis: AnyValue, size: Dim, where: str) -> ArraySpec:
    dims = list(spec.dims)
    rank = len(dims) + 1
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise Failure(AxisMismatch(given=f"axis {axis} of {where}", why=f"a row of it is {spec}"))
    at = axis % rank
    groups = [i for i, dim in enumerate(dims) if isinstance(dim, Variadic)]
    if groups and not (at <= groups[0] if axis >= 0 else at > groups[-1]):
        what = f"a batch along axis {axis} of {where}, which is {spec}"
        raise Failure(NotSupported(what=what, instead="let the batch be the first axis"))
    axes = list(spec.mesh_axes or ((),) * len(dims))
    dims.insert(at, size)
    axes.insert(at, ())
    return spec.with_dims(dims, tuple(axes))


def vmap(
    here: Builder | None,
    fun: AnyValue,
    in_axes: AnyValue = 0,
    out_axes: AnyValue = 0,
    axis_size: AnyValue = None,
) -> Transformed:
    """Return the function over a batch: each argument along an axis, or the same for all."""
    function = applicable(fun, "psc.vmap")

    def run(here: Builder, args: Args, kwargs: Kwargs) -> AnyValue:
        def mapped(axes: AnyValue) -> AnyValue:
            return _run(function, axes, out_axes, axis_size, here, args, kwargs)

        known = len(here.program.findings)
        try:
            return mapped(in_axes)
        except (Failure, Poisoned):
            finding = _arrangement(here, in_axes, mapped)
            if finding is None:
                raise
            del here.program.findings[known:]
            raise Failure(finding) from None

    return Transformed("vmap", function, run, partial(batched_signature, in_axes, out_axes))


def _arrangement(
    here: Builder, in_axes: AnyValue, mapped: Callable[[AnyValue], AnyValue]
) -> AxisMismatch | None:
    """Advise on the only other order of the axes that the function accepts; None if none is."""
    if not is_sequence(in_axes) or not all(x is None or isinstance(x, int) for x in in_axes):
        return None
    if len(in_axes) > _MOST_ARRANGED:
        return None
    fitting: list[tuple[AnyValue, ...]] = []
    for each in dict.fromkeys(permutations(in_axes)):
        if each != tuple(in_axes):
            trial = Trial(session_of(here), here.program)
            try:
                mapped(each)
                fits = not trial.attempt.failed()
            except (Failure, Poisoned):
                fits = False
            trial.forget()
            fitting += [each] * fits
    if len(fitting) != 1:
        return None
    given, fits_it = (
        f"({', '.join(map(str, axes))}{',' * (len(axes) == 1)})" for axes in (in_axes, *fitting)
    )
    return AxisMismatch(
        given=f"`in_axes` is {given}",
        why=f"the function takes what {fits_it} gives it",
        instead=f"`in_axes={fits_it}` fits",
    )


_MOST_ARRANGED = 4
"""More arguments have too many orders to try them."""


def _run(
    function: Applicable,
    in_axes: AnyValue,
    out_axes: AnyValue,
    axis_size: AnyValue,
    here: Builder,
    args: Args,
    kwargs: Kwargs,
) -> AnyValue:
    count = len(args)
    # Arguments given by keyword are batched along their first axis.
    given = argument_axes(in_axes, count, function) + [0] * len(kwargs)

    def axes_at(at: int, tree: Type) -> list[int | None]:
        return axes_of(f"in_axes of argument {at}", given[at], tree)

    varying = [at for at in range(len(given)) if given[at] is not None]
    found = mapped(here, "psc.vmap", function, args, kwargs, varying, axes_at, axis_size)
    traced, size = found.traced, found.size
    outs = axes_of("out_axes", out_axes, traced.result)
    placed = [
        _placed(x, is_batched, axis, size, place)
        for x, is_batched, axis, (place, _) in zip(
            found.values, found.batched, outs, paths(traced.result, "result"), strict=True
        )
    ]
    return unflatten(traced.result, iter(placed))


class Mapped(NamedTuple):
    """The results of a function over a batch, those that are batched along their first axis."""

    traced: Traced
    flags: tuple[bool, ...]
    """For each operand of the block, whether it is batched."""
    size: Size
    values: list[Value]
    batched: list[bool]
    """For each result, whether it is."""


def mapped(
    here: Builder,
    name: str,
    function: Applicable,
    args: Args,
    kwargs: Kwargs,
    varying: Sequence[int],
    axes_at: Callable[[int, Type], list[int | None]],
    axis_size: AnyValue,
    *,
    shares: bool = False,
) -> Mapped:
    """Apply a function to a batch: arguments at some places have a batch axis in their leaves.

    If rows share what depends on none of them, a key that all have may be used once.
    """
    named = dict(kwargs)
    values = [*args, *named.values()]
    axes: dict[int, list[int | None]] = {}

    def rows(at: int, argument: Argument) -> list[ArrayType]:
        axes[at] = axes_at(at, argument.tree)
        return [
            _row(leaf, axis, place)
            for leaf, axis, place in zip(
                argument.leaves, axes[at], _places(at, argument.tree), strict=True
            )
        ]

    wrapped = _Named(function, len(args), tuple(named))
    traced = trace(here, name, wrapped, values, {}, varying, rows)
    flags = [axis for at in traced.varying for axis in axes[at]]
    leaves = traced.leaves
    size = _size(here, axis_size, leaves, flags)
    moved = [
        x if axis is None else to_front(x, axis) for x, axis in zip(leaves, flags, strict=True)
    ]
    batched = [*[False] * len(traced.captured), *[axis is not None for axis in flags]]
    asked = Label(here.program.span, f"`{name}({name_of(function)})` makes the batch")
    here.program.findings += branches_run_by_all(here.facts, traced.block, batched, asked)
    operands = [*traced.captured, *moved]
    found: list[Value] = []
    rows_block, order = over_rows(here, traced.source, batched, size, shares=shares)
    with made_of(here, rows_block, [operands[at] for at in order], found):
        results, many = batch(here, traced.block, operands, batched, size)
        found += results
    return Mapped(traced, tuple(batched), size, found, many)


class _Named(Applicable):
    """A function whose last arguments are given by keyword."""

    def __init__(self, function: Applicable, count: int, names: tuple[str, ...]) -> None:
        self.function = function
        self.count = count
        self.names = names

    def holds(self) -> Sequence[AnyValue]:
        """Return the function."""
        return (self.function,)

    def apply(self, here: Builder, args: Args, kwargs: Kwargs) -> AnyValue:
        """Call it."""
        del kwargs
        named = dict(zip(self.names, args[self.count :], strict=True))
        return self.function.apply(here, args[: self.count], named)


def argument_axes(in_axes: AnyValue, count: int, function: Applicable) -> list[AnyValue]:
    """Return one axis, or tree of axes, for each positional argument."""
    if is_sequence(in_axes):
        items: list[AnyValue] = list(in_axes)
        if len(items) != count and not _have_defaults(function, count, len(items)):
            given = f"in_axes has {_counted(len(items), 'item')}"
            why = f"{_counted(count, 'argument')} given by position"
            raise Failure(
                AxisMismatch(given=given, why=f"there {'is' if count == 1 else 'are'} {why}")
            )
        return items[:count]
    return [in_axes] * count


def _have_defaults(function: Applicable, start: int, stop: int) -> bool:
    """Return whether there are such parameters, and all have defaults."""
    from pscdsl._src.frontend.transformations.derived import signed  # which maps, too

    definition = signed(function)
    if definition is None or stop < start:
        return False
    positional = [p for p in definition.signature.parameters if not p.keyword_only]
    return stop <= len(positional) and all(p.has_default for p in positional[start:stop])


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _places(at: int, tree: Type) -> list[str]:
    return [place for place, _ in paths(tree, f"argument {at}")]


def _row(leaf: Value, axis: int | None, place: str) -> ArrayType:
    """Return the type of one row."""
    if axis is None:
        return leaf.type
    if not -leaf.ndim <= axis < leaf.ndim:
        raise Failure(AxisMismatch(given=f"axis {axis} of {place}", why=f"it is {leaf.type}"))
    axis %= leaf.ndim
    return leaf.type.with_shape((*leaf.shape[:axis], *leaf.shape[axis + 1 :]))


def _size(
    here: Builder, axis_size: AnyValue, leaves: Sequence[Value], axes: Sequence[int | None]
) -> Size:
    """Return the common size of the mapped axes."""
    sizes: list[Size] = [
        leaf.shape[axis] for leaf, axis in zip(leaves, axes, strict=True) if axis is not None
    ]
    if axis_size is not None:
        if isinstance(axis_size, bool) or not isinstance(axis_size, int | Dim):
            given = f"axis_size is {describe(axis_size)}"
            raise Failure(
                AxisMismatch(given=given, why="it is a size that is known while checking")
            )
        sizes.append(axis_size)
    if not sizes:
        raise Failure(AxisMismatch(given="no axis is mapped", why="`in_axes` has only None"))
    for size in sizes[1:]:
        if not here.facts.equal(sizes[0], size):
            raise Failure(
                BatchSizesDiffer(
                    sizes=tuple(map(str, dict.fromkeys(sizes))),
                    why=disagreement(here.facts, sizes[0], size),
                )
            )
    return sizes[0]


def to_front(x: Value, axis: int) -> Value:
    """Return an array with one axis moved to the front."""
    axis %= x.ndim
    if not axis:
        return x
    return Transpose((axis, *[i for i in range(x.ndim) if i != axis]))(x)


def _placed(x: Value, is_batched: bool, axis: int | None, size: Size, place: str) -> Value:
    """Return a result with the batch axis in the wanted place."""
    if axis is None:
        if is_batched:
            why = f"{place} differs from row to row"
            raise Failure(AxisMismatch(given="out_axes is None", why=why))
        return x
    batch_ = x if is_batched else repeated(x, size)
    if not -batch_.ndim <= axis < batch_.ndim:
        row = batch_.type.with_shape(batch_.shape[1:])
        many = _counted(batch_.ndim, "axis").replace("axiss", "axes")
        why = f"{place} of a row is {row}: with the batch it has {many}"
        raise Failure(AxisMismatch(given=f"out_axes is {axis}", why=why))
    axis %= batch_.ndim
    if not axis:
        return batch_
    order = [*range(1, batch_.ndim)]
    order.insert(axis, 0)
    return Transpose(tuple(order))(batch_)
