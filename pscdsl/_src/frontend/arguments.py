"""Arguments and results against their declarations: specifications, annotations of helpers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import islice, zip_longest
from typing import TypeGuard

import numpy as np

from pscdsl._src.frontend.annotations import named_trees, spec_of
from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.interpreter.functions import BoundMethod, Closure
from pscdsl._src.frontend.purity import is_closed, parts
from pscdsl._src.frontend.text.source import (
    FunctionNode,
    FunctionStatement,
    named_parameters,
    with_defaults,
)
from pscdsl._src.frontend.trees import flatten, of_values
from pscdsl._src.frontend.values import (
    AnyValue,
    EnumMember,
    External,
    KnownModule,
    MapValue,
    Partial,
    Poisoned,
    PythonObject,
    RecordValue,
    StaticFunction,
    Undecided,
    as_static,
    container_value,
    describe,
    is_poisoned,
    is_type,
    tree_parts,
    with_tree_parts,
)
from pscdsl._src.ir.builder import Builder, Program, PythonNumber, Value, Weak
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.numpy.shorthand import cast
from pscdsl.typing.array_types import (
    ArrayType,
    ContainerType,
    ListType,
    NoneType,
    StaticType,
    TupleType,
    Type,
    children,
    leaves,
    map_leaves,
    paths,
    show_shape,
)
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.control import ReturnTree
from pscdsl.typing.codes.element_types import ReturnDtype
from pscdsl.typing.codes.language import NotStatic
from pscdsl.typing.codes.shapes import axes, disagreement
from pscdsl.typing.codes.shapes_of_arguments import ReturnShape
from pscdsl.typing.diagnostics import Diagnostic, Failure, Label, Span
from pscdsl.typing.dims import Dim, Size, names, substitute, variable
from pscdsl.typing.dtypes import DType, accepts_weak, becomes
from pscdsl.typing.python_containers import is_constant, is_dict, is_sequence, is_tuple
from pscdsl.typing.signatures import (
    ArraySpec,
    DictSpec,
    DTypeClass,
    MapSpec,
    OptionalSpec,
    Parameter,
    RecordSpec,
    RepeatedSpec,
    Signature,
    Spec,
    StaticSpec,
    TreeSpec,
    TupleSpec,
    arrays_of,
    part_at,
    trees_of,
    walk_paths,
)
from pscdsl.typing.unify import Match, kind, match, repair, structure_differences

# Arguments of a call on their way to a declared specification: weak ones take its dtype.


def settle(
    here: Builder,
    spec: Spec,
    value: AnyValue,
    function: str,
    chosen: dict[str, DType],
) -> tuple[list[Value], Type]:
    """Return an argument's arrays and its type, with weak arrays in the dtype that is wanted.

    `chosen` keeps the dtypes that strong arguments give to dtype classes.
    """
    arrays, tree = flatten(here, value, f"an argument of `{function}`")
    for place, asked in enumerate(islice(_specs(spec, tree), len(arrays))):
        if isinstance(asked, ArraySpec) and asked.python:
            arrays[place] = _as_number(asked, arrays[place])
    settled: list[Value] = []
    program = here.program
    asked_dtypes = [None if each is None else each.dtype for each in _specs(spec, tree)]
    for place, (leaf, dtype) in enumerate(
        zip(arrays, dtypes_of(spec, arrays, tree, chosen), strict=True)
    ):
        if isinstance(leaf, Value):
            asked_dtype = asked_dtypes[place] if place < len(asked_dtypes) else None
            if isinstance(asked_dtype, DTypeClass):
                asked_dtype = chosen.get(asked_dtype.name)
            if asked_dtype is not None:
                program.want(leaf, asked_dtype)
            settled.append(leaf)
        elif dtype is leaf.dtype:
            settled.append(leaf.default(f"{function} {place}"))
        else:
            settled.append(leaf.at(dtype))
    return settled, of_values(tree, settled)


def _as_number(spec: ArraySpec, value: Value | Weak) -> Value | Weak:
    """Return the number that Python makes of a scalar, if a number is declared: `float(x)`."""
    assert isinstance(spec.dtype, DType)
    if not isinstance(value, Value) or value.shape or not becomes(value.dtype, spec.dtype):
        return value
    return cast(value, spec.dtype)


def as_declared(spec: Spec, value: AnyValue) -> AnyValue:
    """Return an argument with Python numbers where they are declared."""
    match spec, value:
        case ArraySpec(python=python), Value():
            return PythonNumber(value) if python and not value.shape else value
        case _, None:
            return None
        case OptionalSpec(item=item), _:
            return as_declared(item, value)
        case TupleSpec(items=items), _ if is_sequence(value):
            return container_value(spec.kind, (), map(as_declared, items, value))
        case RepeatedSpec(item=item), _:
            found = [as_declared(item, part) for part in parts(value)]
            return container_value(spec.kind, (), found)
        case DictSpec(), dict():
            declared = dict(spec.items)
            return {key: as_declared(declared[key], each) for key, each in value.items()}
        case MapSpec(item=item), dict() | MapValue():
            found = [as_declared(item, part) for part in tree_parts(value) or ()]
            return with_tree_parts(value, found)
        case RecordSpec(), RecordValue():
            fields = {name: as_declared(each, value.fields[name]) for name, each in spec.fields}
            return RecordValue(value.cls, fields)
        case _:
            return value


def static_type(here: Builder, value: AnyValue) -> Type:
    """Return a static argument's type; arrays keep theirs, so that matching refuses them."""
    if isinstance(value, Value | Weak):
        return value.type
    if not _is_in_sizes(value) and holds_sizes(value):
        what = f"{describe(value)}, which holds sizes of the kernel around, in another kernel"
        raise Failure(NotStatic(what=what))
    try:
        hash(value)
    except TypeError:
        return flatten(here, value, "a static argument")[1]
    return StaticType(as_static(value))


_WITHOUT_SIZES = (Closure, KnownModule, External, EnumMember, Enum, Meaning)


def _is_in_sizes(value: AnyValue) -> bool:
    """Return whether a value consists of sizes and closed values, in tuples of any depth."""
    if is_tuple(value):
        return all(map(_is_in_sizes, value))
    return isinstance(value, Dim) or is_closed(value)


def holds_sizes(value: AnyValue) -> bool:
    """Return whether a static value may hold a size; captured values are checked when read."""
    match value:
        case Dim() | Undecided():
            return True
        case StaticFunction(name=name):
            return MEANINGS.get(name) is not value  # a method of something, else
        case _ if is_closed(value) or is_type(value) or isinstance(value, _WITHOUT_SIZES):
            return False
        case _ if is_sequence(value) or is_dict(value):
            return any(map(holds_sizes, parts(value)))
        case np.dtype() | PythonObject():
            return False
        case _ if is_constant(value):
            return False
        case RecordValue(fields=fields):
            return any(map(holds_sizes, fields.values()))
        case Partial() | BoundMethod():
            return any(map(holds_sizes, value.holds()))
        case _:
            return True


def dtypes_of(
    spec: Spec, arrays: Sequence[Value | Weak], tree: Type, chosen: dict[str, DType]
) -> list[DType]:
    """Return the dtypes of a tree's leaves; weak ones take those that the specification wants.

    A dtype class that is not `chosen` yet becomes the dtype of its first strong array.
    """
    wanted = [None if each is None else each.dtype for each in _specs(spec, tree)]
    for leaf, dtype in zip(arrays, wanted, strict=False):
        if isinstance(leaf, Value) and isinstance(dtype, DTypeClass):
            chosen.setdefault(dtype.name, leaf.dtype)
    found: list[DType] = []
    for each, asked in zip_longest(arrays, wanted[: len(arrays)]):
        dtype = chosen.get(asked.name) if isinstance(asked, DTypeClass) else asked
        if not isinstance(each, Value) and dtype is not None and accepts_weak(dtype, each.kind):
            found.append(dtype)
        else:
            found.append(each.dtype)
    return found


def as_asked(
    spec: Spec, arrays: Sequence[Value | Weak], tree: Type, chosen: Mapping[str, DType]
) -> Type:
    """Return the type of a tree whose weak arrays have the dtypes that the specification wants."""
    dtypes = iter(dtypes_of(spec, arrays, tree, dict(chosen)))
    return map_leaves(tree, lambda leaf: leaf.with_dtype(next(dtypes)))


def _specs(spec: Spec, tree: Type) -> Iterator[ArraySpec | TreeSpec | None]:
    """Yield the wanted type of each leaf of a tree; None where the tree does not fit."""
    match spec, tree:
        case ArraySpec(), _:
            yield spec
        case TreeSpec(), _:
            yield from [spec for _ in leaves(tree)]
        case OptionalSpec(item=item), _ if not isinstance(tree, NoneType):
            yield from _specs(item, tree)
        case TupleSpec() | RepeatedSpec() | RecordSpec() | MapSpec() | DictSpec(), ContainerType():
            for step, part in children(tree):
                asked = part_at(spec, step)
                yield from ([None for _ in leaves(part)] if asked is None else _specs(asked, part))
        case _, StaticType() | NoneType():
            pass
        case _:
            yield None


def are_numbers(spec: Spec, tree: Type) -> list[bool]:
    """Return, for each leaf of a tree, whether it is declared as a Python number."""
    return [isinstance(asked, ArraySpec) and asked.python != "" for asked in _specs(spec, tree)]


# The differences between the result of a function and its declaration.


def result_problems(
    facts: Assumptions, function: str, found: Type, declared: Type
) -> list[Diagnostic]:
    """Return the differences between the inferred type of a result and the declared one."""
    problems: list[Diagnostic] = [
        ReturnTree(
            function=function,
            path=each.path,
            declared=str(each.wanted),
            found=str(each.found),
            why=each.why,
        )
        for each in structure_differences(found, declared)
    ]
    if problems:
        return problems
    for (path, wanted), mine in zip(paths(declared), leaves(found), strict=True):
        why = differs(facts, mine, wanted)
        if why is not None:
            problems.append(
                ReturnShape(
                    function=function,
                    path=path,
                    declared=wanted,
                    found=mine,
                    why=why,
                    rewrite=repair(facts, mine, wanted, "return it"),
                )
            )
        elif mine.dtype is not wanted.dtype:
            problems.append(ReturnDtype(function=function, path=path, declared=wanted, found=mine))
    return problems


def tuples_for_lists(function: str, found: Type, declared: Type) -> Iterator[Diagnostic]:
    """Yield a problem for each tuple that is returned for a declared list; the reverse is fine."""
    if isinstance(found, TupleType) and isinstance(declared, ListType):
        if not isinstance(found, ListType):
            yield ReturnTree(
                function=function,
                path="",
                declared=str(declared),
                found=str(found),
                why=f"{kind(found)}, not {kind(declared)}",
            )
    for (_, mine), (path, other) in zip(children(found), children(declared), strict=False):
        for each in tuples_for_lists(function, mine, other):
            assert isinstance(each, ReturnTree)
            yield each.replaced(path=path + each.path)


def differs(facts: Assumptions, found: ArrayType, declared: ArrayType) -> str | None:
    """Return why the inferred shape is not the declared one, or None; `_1` fits everything."""
    if found.rank != declared.rank:
        return f"[{show_shape(found.shape)}] has {axes(found.rank)}, not {declared.rank}"
    for mine, wanted in zip(found.shape, declared.shape, strict=True):
        if isinstance(wanted, Dim) and str(wanted).startswith("_"):
            continue
        if not facts.equal(mine, wanted):
            return disagreement(facts, mine, wanted)
    return None


# Annotations of inlined helpers: each call checks its arrays against them.
#
# Sizes that a helper names belong to that call: its arguments bind them. Annotations that do not
# mention arrays (`int`, `Callable`, a class of the user's) are ignored; but a parameter with a size
# as its argument is the size of this name. A record that is generic in a Python type variable,
# `Moments[T]`, is only checked to be such a record.


class Contract:
    """The declarations of a helper's annotations."""

    def __init__(
        self, signature: Signature, result_span: Span, records: Sequence[Parameter] = ()
    ) -> None:
        self.signature = signature
        self.records = records
        """The parameters whose annotation only names a record class."""
        self.result_span = result_span
        """The place where the result is declared."""

    def arguments(self, here: Builder, given: Mapping[str, AnyValue]) -> Match | None:
        """Check the arguments; how the names of sizes are bound, if they all are."""
        for parameter in self.records:
            self._is_record(here, parameter, given[parameter.name])
        types: dict[str, Type] = {}
        chosen: dict[str, DType] = {}
        for parameter in self.signature.parameters:
            value = given[parameter.name]
            if is_poisoned(value):
                return None
            found = settle(here, parameter.spec, value, self.signature.name, chosen)
            types[parameter.name] = found[1]
        try:
            fit = match(self.signature, types, here.facts)
        except Failure as failure:
            if any(d.code == "PSC304" for d in failure.diagnostics):
                return None  # a size that the arguments do not bind: nothing can be compared
            spans = (Label(p.span, "declared here") for p in self.signature.parameters)
            raise failure.labelled(*spans) from None
        numbers = {n: v for n, v in given.items() if _is_size(v)}
        return Match(fit.choice, {**numbers, **fit.sizes})

    def _is_record(self, here: Builder, parameter: Parameter, value: AnyValue) -> None:
        """Refuse a value that is no instance of the declared class or of a derived one."""
        spec = parameter.spec
        assert isinstance(spec, RecordSpec)
        if is_poisoned(value) or (
            isinstance(value, RecordValue)
            and any(each.name == spec.record for each in value.cls.ancestry())
        ):
            return
        _, tree = flatten(here, value, f"an argument of `{self.signature.name}`")
        alone = Signature(self.signature.name, (parameter,), None)
        try:
            match(alone, {parameter.name: tree}, here.facts)
        except Failure as failure:
            raise failure.labelled(Label(parameter.span, "declared here")) from None

    def result(self, here: Builder, fit: Match, value: AnyValue) -> None:
        """Check a returned value against the declared result."""
        spec = self.signature.result
        if spec is None or is_poisoned(value):
            return
        found = settle(here, spec, value, self.signature.name, {})
        wanted = self.signature.result_type(fit.choice, found[1])
        declared = map_leaves(wanted, lambda leaf: _known(leaf, fit.sizes))
        problems = result_problems(here.facts, self.signature.name, found[1], declared)
        if problems:
            raise Failure(*problems)


def _is_size(value: AnyValue) -> TypeGuard[int | Dim]:
    return isinstance(value, int | Dim) and not isinstance(value, bool)


def _known(array: ArrayType, sizes: Mapping[str, Size]) -> ArrayType:
    """Return the type with sizes in place of names, and `_` for a size with any other name."""
    shape = tuple(
        substitute(size, sizes) if names(size) <= sizes.keys() else variable("_")
        for size in array.shape
    )
    return ArrayType(array.dtype, shape)


def contract(frame: Frame, node: FunctionNode) -> Contract | None:
    """Return the contract of a helper; None if its annotations do not mention arrays."""
    if isinstance(node, ast.Lambda):
        return None
    # By scope too: a file that is loaded as two modules has one source, and two classes of a name.
    cache = frame.source.contracts.setdefault(frame.scope, {})
    if id(node) not in cache:
        cache[id(node)] = _read(frame, node)
        frame.source.keep(node)
    return cache[id(node)]


def _read(frame: Frame, node: FunctionStatement) -> Contract | None:
    parameters: list[Parameter] = []
    records: list[Parameter] = []
    for each in named_parameters(node):
        if each.annotation is None or (found := _spec(frame, each.annotation)) is None:
            continue
        span = frame.source.span(each.annotation)
        if _says_of_arrays(found):
            parameters.append(Parameter(each.arg, named_trees(found, each.arg), span=span))
        elif isinstance(found, RecordSpec) and found.types:
            records.append(Parameter(each.arg, found, span=span))
    result = None if node.returns is None else _spec(frame, node.returns)
    if result is not None and not _says_of_arrays(result):
        result = None
    if not parameters and not records and result is None:
        return None
    place = frame.source.span(node if node.returns is None else node.returns)
    signature = Signature(node.name, tuple(parameters), result)
    if signature.unbound():  # the tree is unknown
        signature = replace(signature, result=None)
    return Contract(signature, place, records)


def _spec(frame: Frame, annotation: ast.expr) -> Spec | None:
    assert frame.closure is not None
    quiet = frame.closure.annotation_frame()
    try:
        return spec_of(quiet, annotation)
    except (Failure, Poisoned):
        return None


def _says_of_arrays(spec: Spec) -> bool:
    if any(each.python for each in arrays_of(spec)):
        return False  # which helpers are given in any form
    if any(not each.bounded for each in trees_of(spec)):
        return False  # a type variable of Python's, which says nothing of arrays
    return any(isinstance(part, ArraySpec | TreeSpec) for _, part in walk_paths(spec, ""))


# Defaults of a kernel's parameters: each is an argument that its own annotation takes.


def default_problems(closure: Closure, signature: Signature) -> Iterator[Diagnostic]:
    """Yield the problems that a call without the argument would report, at the default.

    Calls compare sizes that several arguments share: a default need not fit all others.
    """
    places = {each.arg: default for each, default in with_defaults(closure.node.args)}
    for parameter in signature.parameters:
        if not parameter.has_default:
            continue
        try:
            default_fit(closure, signature, parameter)
        except Failure as failure:
            span = closure.source.span(places[parameter.name])
            yield from (diagnostic.at(span) for diagnostic in failure.diagnostics)
        except Poisoned:
            pass


def default_fit(closure: Closure, signature: Signature, parameter: Parameter) -> Match:
    """Match a default with its parameter; a Failure if it does not fit, Poisoned if unknown."""
    here = Program(Assumptions()).current
    value = closure.defaults[parameter.name]
    if isinstance(parameter.spec, StaticSpec):
        tree = static_type(here, value)
    else:
        tree = settle(here, parameter.spec, value, signature.name, {})[1]
    alone = Signature(signature.name, (parameter,), None)
    return match(alone, {parameter.name: tree}, here.facts)
