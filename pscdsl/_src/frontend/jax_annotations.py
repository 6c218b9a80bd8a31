"""Annotations that only JAX programs have: keys, trees, functions, types that are left open."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pscdsl._src.frontend.annotations import (
    TypeVariable,
    class_spec,
    replaced,
    shape_text,
    spec_of,
    static_spec,
)
from pscdsl._src.frontend.arguments import contract
from pscdsl._src.frontend.interpreter.expressions import evaluate
from pscdsl._src.frontend.interpreter.frames import Frame, NoProgram
from pscdsl._src.frontend.interpreter.places import load
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.modules.scope import StaticModule
from pscdsl._src.frontend.purity import external_use, holds_arrays, parts
from pscdsl._src.frontend.text.source import FunctionNode, called, items, subscripted
from pscdsl._src.frontend.values import (
    Alias,
    AnyValue,
    Applicable,
    External,
    MapValue,
    Place,
    Poisoned,
    RecordValue,
    StaticFunction,
)
from pscdsl._src.ir.builder import Builder
from pscdsl._src.ir.jax_promotion import JaxPromotion
from pscdsl._src.language.meanings import Meaning, refused_list
from pscdsl.typing.array_types import ArrayType, TupleType
from pscdsl.typing.codes.limits import UnknownFunction, UnknownValue
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size, names, substitute
from pscdsl.typing.dtypes import BOOL, C64, F32, F64, I32, I64, KEY, U8, U32, DType
from pscdsl.typing.python_containers import is_sequence
from pscdsl.typing.signatures import (
    ArraySpec,
    DimSpec,
    DTypeClass,
    NoneSpec,
    OpenSpec,
    RecordSpec,
    Spec,
    StaticSpec,
    TreeSpec,
    TupleSpec,
    UnionSpec,
    alternatives,
    spec_parts,
    with_spec_parts,
)
from pscdsl.typing.static_values import Instance

_USUAL: Final = frozenset({BOOL, U8, U32, I32, I64, F32, F64, C64})
"""The dtypes that are tried for a class; few functions are meant for narrower floats."""
_ARRAYS: Final = frozenset(
    {
        *("jaxtyping.Array", "jaxtyping.ArrayLike", "numpy.ndarray", "numpy.typing.NDArray"),
        *("jax.typing.ArrayLike", "chex.Array", "chex.Numeric", "chex.ArrayDevice"),
        *("chex.PRNGKey", "jax.core.Tracer"),
    }
)
_CALLABLES: Final = frozenset({"typing.Callable", "collections.abc.Callable"})
_OBJECTS: Final = frozenset({"typing.Any", "builtins.object"})
_TREES: Final = frozenset({"jaxtyping.PyTree"})
_KEYS: Final = frozenset({"jaxtyping.PRNGKeyArray"})

Reader = Callable[[Frame, ast.expr], Spec]
"""The function that reads an annotation."""


def jax_spec(frame: Frame, node: ast.expr, read: Reader) -> Spec | None:
    """Return the specification of an annotation that only JAX programs have; None of others."""
    if not isinstance(node, ast.Subscript | ast.Name | ast.Attribute):
        return None
    head = evaluate(frame, subscripted(node))
    name, text = getattr(head, "name", ""), frame.source.text_of(node)
    match node:
        case ast.Subscript() if name in _CALLABLES and len(items(node)) == 2:
            return _function_spec(text, read(frame, items(node)[1]))
        case ast.Subscript() if name in _TREES:
            structure = items(node)[1:]
            tree = shape_text(frame, structure[0]).strip() if structure else ""
            return TreeSpec(tree if tree.isidentifier() else "", shown="PyTree", bounded=True)
        case ast.Subscript() if name == "typing.Literal":
            return static_spec(frame, node)
        case ast.Subscript():
            return OpenSpec(text, "object") if isinstance(head, External) else None
        case _ if name in _TREES:
            return TreeSpec("", shown="PyTree", bounded=True, span=frame.span(node))
        case _ if name in _KEYS:
            return ArraySpec(KEY, (), frame.span(node))
        case _ if name == "builtins.bool":
            return StaticSpec("bool", (False, True), Instance(bool))
        case _ if name in _ARRAYS:
            return OpenSpec(text, "array")
        case _ if name in _CALLABLES:
            return OpenSpec(text, "function")
        case _ if name in _OBJECTS or isinstance(head, External):
            return OpenSpec(text, "object")
        case _ if isinstance(head, RecordClass) and _is_protocol(head):
            return OpenSpec(text, "object")
        case _ if isinstance(head, TypeVariable) and head.problem:
            return _bound_spec(frame, text, head)
        case _:
            return None


def _is_protocol(cls: RecordClass) -> bool:
    """Return whether instances of other classes are meant."""
    return cls.kind == "namespace" and not cls.enumeration


def is_open_array(frame: Frame, node: ast.expr, read: Reader) -> bool:
    """Return whether an annotation is an array without a type, or a union of such arrays."""
    if not isinstance(evaluate(frame, node), Alias):
        return False
    return all(
        isinstance(each, OpenSpec) and each.kind == "array"
        for each in alternatives(read(frame, node))
    )


def _bound_spec(frame: Frame, text: str, of: TypeVariable) -> Spec:
    """Return the specification of a type variable whose bound is no tree: that of its bound."""
    bound = of.bound
    if isinstance(bound, str):
        bound = _named_in_text(frame, bound)
    if isinstance(bound, RecordClass) and not bound.variables and bound.kind != "namespace":
        return class_spec(bound, ())
    return OpenSpec(text, "object")


def _named_in_text(frame: Frame, text: str) -> AnyValue:
    """Return the class that a text names, here or by its module; None if there is none."""
    module, _, name = text.rpartition(".")
    scope = frame.scope
    if not isinstance(scope, StaticModule):
        return None
    try:
        found = scope.project.module(module, scope) if module else scope
        return None if found is None else found.own(name)
    except (KeyError, Failure):
        return None


def in_dialect(spec: Spec, promotion: JaxPromotion) -> Spec:
    """Return a specification with the dtypes that arrays of JAX usually have."""

    def of_array(part: Spec) -> Spec:
        if not isinstance(part, ArraySpec) or part.python:
            return part
        if isinstance(part.dtype, DType):
            return replace(part, dtype=promotion.canonical(part.dtype))
        usual = [each for each in part.dtype.members if each in _USUAL]
        members = tuple(dict.fromkeys(map(promotion.canonical, usual)))
        if len(members) == 1:
            return replace(part, dtype=members[0])
        return replace(part, dtype=DTypeClass(part.dtype.name, members))

    return replaced(spec, of_array)


# Results of functions that are known by their annotations alone.


def _function_spec(text: str, result: Spec) -> StaticSpec:
    """Return the specification of a function whose results are unknown arrays of a type."""

    def unknown(here: Builder, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        del args, kwargs
        return _unknown(here, text, result, None)

    return StaticSpec(text, (StaticFunction(text, unknown),))


def is_abstract(node: FunctionNode) -> bool:
    """Return whether a function has no body: it passes, or raises NotImplementedError."""
    if isinstance(node, ast.Lambda):
        return False
    body = [each for each in node.body if not _says_nothing(each)]
    match body:
        case []:
            return True
        case [ast.Raise(exc=ast.Name() | ast.Call() as raised)]:
            return ast.unparse(called(raised)) == "NotImplementedError"
        case _:
            return False


def _says_nothing(node: ast.stmt) -> bool:
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant or isinstance(node, ast.Pass)


def declared_result(frame: Frame, here: Builder, given: Mapping[str, AnyValue]) -> AnyValue:
    """Return the result of a function without a body: unknown values of its declared type.

    The frame is that of the call.
    """
    function = frame.closure
    assert function is not None
    name, node = function.name, function.node
    if isinstance(node, ast.Lambda) or node.returns is None:
        return External(f"{name}(…)", library=True)
    try:
        terms = contract(frame, node)
        fit = None if terms is None else terms.arguments(here, given)
        spec = spec_of(function.annotation_frame(), node.returns)
    except (Failure, Poisoned):
        raise Failure(UnknownValue(name=f"{name}(…)")) from None
    return _unknown(here, name, spec, {} if fit is None else fit.sizes)


def _unknown(here: Builder, name: str, spec: Spec, sizes: Mapping[str, Size] | None) -> AnyValue:
    """Return unknown values of a type; a Failure if that does not say their structure.

    The names of sizes mean those of the program if no `sizes` are given for them.
    """
    program = here.program
    promotion = program.jax
    assert promotion is not None

    def made(part: Spec) -> AnyValue:
        match part:
            case NoneSpec():
                return None
            case OpenSpec(kind="function" | "object", text=text):
                return External(text, library=True)
            case TupleSpec(items=items, kind=kind) if kind is TupleType:
                return tuple(map(made, items))
            case RecordSpec(record=record, fields=fields) if isinstance(
                cls := record.definition, RecordClass
            ):
                return RecordValue(cls, {field: made(each) for field, each in fields})
            case ArraySpec(dtype=DType() as dtype, dims=dims):
                shape = tuple(map(known, dims))
                return program.unknown(ArrayType(dtype, shape))
            case UnionSpec(items=[first, *others]):
                if any(each != first for each in others):
                    raise Failure(UnknownValue(name=f"{name}(…)"))
                return made(first)
            case _:
                raise Failure(UnknownValue(name=f"{name}(…)"))

    def known(size: DimSpec) -> Size:
        if isinstance(size, int) or (isinstance(size, Dim) and sizes is None):
            return size
        if not isinstance(size, Dim) or not names(size) <= (sizes or {}).keys():
            raise Failure(UnknownValue(name=f"{name}(…)"))
        return substitute(size, sizes or {})

    return made(_plain(in_dialect(spec, promotion), promotion))


def _plain(spec: Spec, promotion: JaxPromotion) -> Spec:
    """Return a specification with arrays in place of Python's numbers, also in unions."""
    if isinstance(spec, ArraySpec) and spec.python and isinstance(spec.dtype, DType):
        return ArraySpec(promotion.canonical(spec.dtype), spec.dims)
    parts = spec_parts(spec)
    return with_spec_parts(spec, [_plain(part, promotion) for part in parts]) if parts else spec


# Calls of other libraries.


_REPORTING: Final = frozenset(
    {
        *("builtins.print", "warnings.warn", "time.sleep"),
        *(f"logging.{name}" for name in ("debug", "info", "warning", "error", "exception")),
    }
)
"""Functions whose effects change no shape."""


def of_library(
    here: Builder, function: External, given: Sequence[AnyValue]
) -> tuple[AnyValue] | None:
    """Return the result of another library's function in a JAX program, which is mostly unknown.

    None if the call is refused: elsewhere, and where it could change or call what it is given.
    """
    if isinstance(here, NoProgram) or here.program.jax is None:
        return None
    _, _, builtin = function.name.partition("builtins.")
    if isinstance(kind := getattr(builtins, builtin, None), type) and issubclass(kind, Exception):
        return (External(f"{builtin}(…)", library=True),)
    if not all(map(_is_immutable, given)):
        return None
    if function.name in _REPORTING:
        here.program.outside.append(function.name)
        return (None,)
    if not function.library or not isinstance(external_use(function), UnknownFunction):
        return None
    here.program.outside.append(function.name)
    return (External(f"{function.name}(…)", library=True),)


def _is_immutable(value: AnyValue) -> bool:
    """Return whether a value cannot be changed, and calls no function of the program."""
    match value:
        case list() | dict() | set() | MapValue():
            return False
        case Applicable():
            return isinstance(value, External | StaticFunction | Meaning | DType | RecordClass)
        case _:
            return all(map(_is_immutable, parts(value)))


def refuse_lists(name: str, spec: ast.arguments, given: Mapping[str, Place]) -> None:
    """Refuse lists of arrays, as a function of JAX does for parameters without an annotation."""
    if name.startswith("_"):  # a helper
        return
    several = (spec.vararg, spec.kwarg)
    for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *several):
        if each is None or each.annotation is not None:
            continue
        value = load(given[each.arg])
        for part in map(load, parts(value)) if each in several else (value,):
            if is_sequence(part) and holds_arrays(part):
                raise refused_list(name, each.arg, part)
