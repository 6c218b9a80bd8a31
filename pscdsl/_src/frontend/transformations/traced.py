"""Functions elaborated into closed blocks, which transformations work on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pscdsl._src.analysis.keys.walk import concerns_keys
from pscdsl._src.frontend.interpreter.frames import inner_block, require_program
from pscdsl._src.frontend.trees.pytrees import (
    Attempt,
    applicable,
    flatten,
    of_values,
    strong,
    unflatten,
)
from pscdsl._src.frontend.values.values import (
    Applicable,
    MapValue,
    Poison,
    Poisoned,
    RecordValue,
    VectorValue,
    describe,
)
from pscdsl._src.interpreters.jvp import has_tangent
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.ir.program import Block, Equation, Origin, Var
from pscdsl._src.primitives.control.scan import Rows
from pscdsl._src.primitives.shaping import Reshape
from pscdsl._src.transforms.simplify.simplify import tidied
from pscdsl.typing.array_types import ArrayType, Type, paths
from pscdsl.typing.codes.control import BadBody
from pscdsl.typing.codes.derivatives import BadArgnums, NoTangent
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Failure, Label, Span
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import I32, DType
from pscdsl.typing.python_containers import is_sequence, is_tuple
from pscdsl.typing.signatures import Signature

# The parts of a container of static values, whichever kind of container it is.


def parts_of(value: Any) -> list[Any] | None:
    """The items in the order of the tree's leaves; None if it is no container."""
    if is_sequence(value):
        return list(value)
    if isinstance(value, RecordValue):
        return list(value.fields.values())
    if isinstance(value, MapValue):
        return [value.items[key] for key in sorted(value.items)]
    return list(value.items) if isinstance(value, VectorValue) else None


# What derivatives and batches were made of, for warnings and for how often keys are used.


@contextmanager
def made_of(
    here: Builder, block: Block | None, operands: Sequence[Value], results: list[Value]
) -> Generator[None]:
    """What is appended in this context is made of a block; `results` are filled in meanwhile.

    None as the block: of something that was computed before.
    """
    current = here.program.current
    first = len(current.equations)
    inputs = tuple(map(current.atom, operands))
    yield
    count = len(current.equations) - first
    if not count:
        if block is None or not operands or not concerns_keys(block):
            return
        current.bind(Reshape(operands[0].shape), operands[:1])  # so that what it did is known
        count = 1
    outputs = tuple(map(current.atom, results))
    here.program.origins[current.equations[first]] = Origin(count, block, inputs, outputs)


def over_rows(
    here: Builder, block: Block, batched: Sequence[bool], size: Size
) -> tuple[Block, list[int]]:
    """A block as a loop over rows, and which of the block's operands its own are, in order."""
    held = [at for at, flag in enumerate(batched) if not flag]
    rows = [at for at, flag in enumerate(batched) if flag]
    order = [*held, *rows]
    body = Block(tuple([block.params[at] for at in order]), block.equations, block.results)
    given = [Var(block.params[at].type, block.params[at].hint) for at in held]
    for at in rows:
        row = block.params[at]
        given.append(Var(row.type.with_shape((size, *row.type.shape)), row.hint))
    results = tuple([Var(t.with_shape((size, *t.shape))) for t in block.out_types])
    loop = Rows(body, len(held), 0, size)
    equation = Equation(loop, tuple(given), results, here.program.span)
    return Block(tuple(given), (equation,), results), order


@dataclass(frozen=True)
class Transformed:
    """A function made of another one by a transformation; `run(here, args, kwargs)` is its call.

    `signature` says what becomes of the parameters' types; most leave them alone.
    """

    name: str
    function: Applicable
    run: Callable[[Builder, Sequence[Any], Mapping[str, Any]], Any]
    signature: Callable[[Signature], Signature] = field(default=lambda signature: signature)
    called: str = ""
    """What it is called, if not by the transformation and the function."""

    def __str__(self) -> str:
        return self.called or f"psc.{self.name}({name_of(self.function)})"

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The meaning of a call, at the place of the call."""
        require_program(here, f"`{self}`")
        return self.applied(here, args, kwargs, "is called here")

    def applied(
        self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any], says: str
    ) -> Any:
        """The same; `says` is what findings that are elsewhere say of this place, if anything."""
        program = here.program
        place = program.span
        program.transformed += 1
        try:
            return self.run(here, args, kwargs)
        except Failure as failure:
            raise asked_for(failure, str(self), place, says) from None
        finally:
            program.span = place


def asked_for(failure: Failure, by: str, place: Span, says: str) -> Failure:
    """The same findings with what asked for the derivative; `says` is what it does at a place."""
    asked = [
        d.replaced(asked=by) if getattr(d, "asked", None) == "" else d for d in failure.diagnostics
    ]
    if not says:
        return Failure(*asked)
    label = Label(place, f"`{by}` {says}")
    return Failure(*[_labelled(d, label) for d in asked])


def _labelled(finding: Diagnostic, label: Label) -> Diagnostic:
    """A finding with a label; what is said of its own line, or of that place already, is enough."""
    own, place = finding.span, label.span
    if own is NOWHERE or (own.path, own.line) == (place.path, place.line):
        return finding
    others = tuple([each for each in finding.labels if each.span != place])
    return finding.replaced(labels=(*others, label))


def name_of(function: object) -> str:
    """What a function is called in messages."""
    if isinstance(function, Transformed):
        return str(function)
    name = getattr(function, "name", "")
    return name if isinstance(name, str) and name and not name.startswith("<") else "…"


@dataclass(frozen=True)
class Argument:
    """An argument that varies: its leaves, and the tree that they make."""

    leaves: list[Value]
    tree: Type


@dataclass(frozen=True)
class Traced:
    """A function as a block of what it captures and of the leaves of its varying arguments."""

    block: Block
    source: Block
    """The same as it was elaborated."""
    captured: tuple[Value, ...]
    varying: dict[int, Argument]
    result: Type
    aux: Type | None = None
    """The tree of what it returns besides, whose leaves come last."""

    @property
    def operands(self) -> list[Value]:
        """What the block is a function of."""
        return [*self.captured, *self.leaves]

    @property
    def leaves(self) -> list[Value]:
        """The leaves of the varying arguments."""
        return [leaf for each in self.varying.values() for leaf in each.leaves]


def trace(
    here: Builder,
    name: str,
    function: Applicable,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    varying: Sequence[int],
    types: Callable[[int, Argument], list[ArrayType]] | None = None,
    has_aux: Any = False,
) -> Traced:
    """Elaborate a function of which the arguments at some places vary, the others are as given.

    `types` says which types the leaves of an argument have inside, if not their own.
    """
    if not isinstance(has_aux, bool):
        needs = "True or False as `has_aux`"
        raise Failure(BadBody(combinator=name, needs=needs, found=describe(has_aux)))
    found = {at: flatten(here, args[at], f"argument {at} of `{name}`") for at in varying}
    dtypes = _weak_dtypes(here, function, args, kwargs, found)
    arguments: dict[int, Argument] = {}
    for at, (leaves, tree) in found.items():
        values = [
            x if isinstance(x, Value) else x.at(dtypes.get((at, i), x.dtype))
            for i, x in enumerate(leaves)
        ]
        arguments[at] = Argument(values, of_values(tree, values))
    before = here.program.transformed
    with inner_block(here) as inner:
        own: list[Value] = []
        given = list(args)
        for at, argument in arguments.items():
            inside = types(at, argument) if types else [v.type for v in argument.leaves]
            params = [inner.parameter(each) for each in inside]
            own.extend(params)
            given[at] = unflatten(argument.tree, iter(params))
        result = function.apply(inner, given, kwargs)
        if isinstance(result, Poison):
            raise Poisoned
        more: list[Value] = []
        aux_tree: Type | None = None
        if has_aux:
            result, aux = _pair(name, result)
            extra, tree = flatten(inner, aux, f"what `{name}` is given besides the value")
            more = strong(extra)
            aux_tree = of_values(tree, more)
        outputs, tree = flatten(inner, result, f"the result of the function given to `{name}`")
        values = strong(outputs)
        block, captured = inner.finish(own, [*values, *more])
    tidy = tidied(block) if here.program.transformed > before else block
    return Traced(tidy, block, captured, arguments, of_values(tree, values), aux_tree)


def _pair(name: str, result: Any) -> tuple[Any, Any]:
    if not is_tuple(result) or len(result) != 2:
        needs = "a function that returns a pair (value, aux), for `has_aux=True`"
        raise Failure(BadBody(combinator=name, needs=needs, found=describe(result)))
    return result[0], result[1]


def _weak_dtypes(
    here: Builder,
    function: Applicable,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    found: Mapping[int, tuple[list[Value | Weak], Type]],
) -> dict[tuple[int, int], DType]:
    """The dtypes that a function wants its weak arguments in, found out by a first try."""
    if all(isinstance(x, Value) for leaves, _ in found.values() for x in leaves):
        return {}
    attempt = Attempt(here.program)
    wanted: dict[tuple[int, int], DType] = {}
    try:
        with inner_block(here) as inner:
            given = list(args)
            for at, (leaves, tree) in found.items():
                params = [
                    _open(inner, x, wanted, (at, i)) if isinstance(x, Weak) else x
                    for i, x in enumerate(leaves)
                ]
                given[at] = unflatten(tree, iter(params))
            flatten(inner, function.apply(inner, given, kwargs), "")
    except (Failure, Poisoned):
        pass  # the second try reports what is wrong
    attempt.forget()
    return wanted


def _open(
    inner: Builder, leaf: Weak, wanted: dict[tuple[int, int], DType], key: tuple[int, int]
) -> Weak:
    def at(dtype: DType) -> Value:
        wanted.setdefault(key, dtype)
        return inner.parameter(ArrayType(dtype, leaf.shape))

    return Weak(inner, leaf.kind, leaf.shape, at, whole=I32)


# The options of `grad` and the Jacobians: in which arguments, and what comes besides.


@dataclass(frozen=True)
class Options:
    """A transformation by its name, the function it transforms, and how."""

    name: str
    function: Applicable
    argnums: Any
    has_aux: bool

    @property
    def called(self) -> str:
        """How messages call it."""
        return f"psc.{self.name}"

    def trace(
        self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[list[int], Traced]:
        """The places of the arguments that vary, and the function traced at them."""
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

    def selected(self, where: Sequence[int], found: Mapping[int, Any]) -> Any:
        """What was found for the arguments: alone, or as a tuple if several were named."""
        if is_sequence(self.argnums):
            return tuple(found[at] for at in where)
        return found[where[0]]

    def _places(self, count: int) -> list[int]:
        """The positions that `argnums` names, counted from the first argument."""
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


Run = Callable[[Options, Builder, Sequence[Any], Mapping[str, Any]], Any]


def transformed(
    run: Run,
    signature: Callable[[Any, bool, Signature], Signature],
    name: str,
    fun: Any,
    argnums: Any,
    has_aux: bool,
) -> Transformed:
    """The function that `run` makes of another one."""
    options = Options(name, applicable(fun, f"psc.{name}"), argnums, has_aux)
    typed = partial(signature, argnums, has_aux)
    return Transformed(name, options.function, partial(run, options), typed)
