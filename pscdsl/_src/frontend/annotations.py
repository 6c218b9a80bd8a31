"""Annotations as specifications: `f32["n d"]`, `tuple[A, ...]`, records, `psc.Static[int]`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain, count

from pscdsl._src.frontend.interpreter.expressions import evaluate
from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.interpreter.records import Field, RecordClass
from pscdsl._src.frontend.known_numbers import SAMPLES
from pscdsl._src.frontend.text.source import items, subscripted
from pscdsl._src.frontend.values import (
    PYTHON_DTYPES,
    Alias,
    AnyValue,
    Atomic,
    EnumMember,
    Marker,
    Poison,
    Poisoned,
    StaticFunction,
    describe,
    shortened,
    with_hash,
)
from pscdsl._src.ir.builder import Builder
from pscdsl._src.language.meanings import MEANINGS
from pscdsl.typing.array_types import (
    ContainerKind,
    DictType,
    MapType,
    SequenceType,
    TupleType,
    container_kind_named,
)
from pscdsl.typing.codes.language import BadAnnotation, UnknownName
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.diagnostics import Failure, Span
from pscdsl.typing.dims import Dim, names
from pscdsl.typing.dtypes import CLASSES, DType, dtype, is_dtype_name
from pscdsl.typing.placements import ShapeSyntaxError
from pscdsl.typing.signatures import (
    ArraySpec,
    DictSpec,
    DTypeClass,
    MapSpec,
    NoneSpec,
    OpenSpec,
    OptionalSpec,
    RecordSpec,
    Renaming,
    RepeatedSpec,
    Spec,
    StaticSpec,
    TreeSpec,
    TupleSpec,
    UnionSpec,
    Variadic,
    applied,
    declared_dims,
    extent,
    given,
    parse_mesh_axes,
    parse_shape,
    spec_parts,
    walk_paths,
    with_spec_parts,
)
from pscdsl.typing.static_values import Either, Instance, Items, OneOf, StaticForm

# Type variables: `T = TypeVar("T", bound=psc.Tree[f32])`, read from source or loaded.


TREE = Marker("pscdsl.Tree")


@dataclass(frozen=True)
class TypeVariable(Atomic):
    """A type variable, and the trees of arrays that it may be bound to."""

    name: str
    dtype: DType | DTypeClass | None = None
    """The dtype of all arrays; None if each has its own."""
    bounded: bool = False
    problem: str = ""
    """The reason why it can be bound to no tree of arrays; empty if it can."""
    bound: AnyValue = None
    """Its bound, if that is no tree of arrays."""

    def description(self) -> str:
        """Return its name for messages."""
        return f"the type variable {self.name}"

    def spec(self, span: Span) -> TreeSpec:
        """Return the specification of an annotation that consists of this variable."""
        return TreeSpec(self.name, self.dtype, bounded=self.bounded, span=span)


def type_parameter(name: str) -> TypeVariable:
    """Return the type variable of `T` in `def f[T](…)`."""
    return TypeVariable(name, problem="it is a type parameter, whose bound is not read")


def bounded_by(name: str, head: AnyValue, inside: AnyValue) -> TypeVariable:
    """Return the variable with the bound `head`, or `head[inside]`."""
    if not name.isidentifier():
        return TypeVariable(name, problem="its name is no identifier")
    if head is None:
        return TypeVariable(name)
    if not (isinstance(head, Marker) and head == TREE):
        return TypeVariable(name, problem="its bound is not `psc.Tree`", bound=head)
    if inside is None or isinstance(inside, DType | DTypeClass):
        return TypeVariable(name, inside, bounded=True)
    return TypeVariable(name, problem="its bound is `psc.Tree[…]` of something that is no dtype")


def type_variable(
    here: Builder,
    name: AnyValue,
    *constraints: AnyValue,
    bound: AnyValue = None,
    **options: AnyValue,
) -> TypeVariable:
    """Return the type variable that `TypeVar(…)` creates."""
    del here, options
    if constraints:
        return TypeVariable(str(name), problem="it has constraints, and no bound")
    match bound:
        case Alias(head=head, frame=frame, node=ast.Subscript(slice=index)):
            return bounded_by(str(name), head, evaluate(frame, index))
        case _:
            return bounded_by(str(name), bound, None)


MEANINGS["typing.TypeVar"] = StaticFunction("typing.TypeVar", type_variable)


_INSTANCES: dict[str, type] = {
    f"builtins.{cls.__name__}": cls for cls in (bool, int, float, complex, str, bytes)
}
_JAXTYPING = {
    "Bool": "bool",
    "Float": "Float",
    "Int": "Int",
    "UInt": "UInt",
    "Integer": "Integer",
    "Complex": "Complex",
    "Inexact": "Inexact",
    "Num": "Num",
    "Real": "Real",
    "Shaped": "Shaped",
    "BFloat16": "bf16",
    "Key": "Key",
    **{f"Float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"Int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    "Complex64": "c64",
    "Complex128": "c128",
}


MAX_PARTS = 10_000
"""Types with more parts are refused; records in records grow fast."""


def spec_of(frame: Frame, node: ast.expr) -> Spec:
    """Return the specification of an annotation; a Failure with its place if it has none."""
    session = frame.session
    annotating, session.annotating = session.annotating, True
    try:
        found = _spec(frame, node)
        if extent(found) > MAX_PARTS:
            raise Failure(TooLarge(what=f"a type of more than {MAX_PARTS} parts"))
        return found
    except Failure as failure:
        raise failure.at(frame.span(node)) from None
    finally:
        session.annotating = annotating


def _spec(frame: Frame, node: ast.expr) -> Spec:
    if frame.scope.is_jax:
        from pscdsl._src.frontend.jax_annotations import jax_spec  # it needs this module

        if (found := jax_spec(frame, node, _spec)) is not None:
            return found
    match node:
        case ast.Constant(value=None):
            return NoneSpec()
        case ast.Constant(value=str()):
            return _spec(frame, _parsed(node))
        case ast.Subscript():
            return _subscript(frame, node)
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _union(frame, node, [left, right])
        case _:
            pass
    span = frame.span(node)
    match value := _element(evaluate(frame, node)):
        case Poison():
            raise Poisoned
        case DType() | DTypeClass():
            return ArraySpec(value, (), span)
        case RecordClass(kind="namespace"):
            reason = f"`{value.title}` is not a record"
            rewrite = "derive it from `psc.Record`, with a type for each field"
        case RecordClass(variables=()):
            return class_spec(value, ())
        case RecordClass():
            reason = f"`{value.title}` is generic in {', '.join(value.variables)}"
            rewrite = f"say for what: `{value.title}[…]`"
        case TypeVariable(problem=""):
            return value.spec(span)
        case TypeVariable(name=name, problem=reason):
            rewrite = f'{name} = TypeVar("{name}", bound=psc.Tree)'
        case Alias(is_written=True):
            return spec_of(value.frame, value.node)
        case Alias():
            try:
                return spec_of(value.frame, value.node)
            except Failure as failure:
                moved = [each.replaced(span=span) for each in failure.diagnostics]
                raise Failure(*moved) from None
        case Marker("pscdsl.Tree"):
            return TreeSpec("", shown="Tree", bounded=True, span=span)
        case Marker("typing.Self"):
            if own := frame.session.own_class():
                return own
            reason, rewrite = "it stands in no method of a record", "name the type"
        case Marker("jaxtyping.Scalar"):
            return ArraySpec(DTypeClass("Shaped", CLASSES["Shaped"]), (), span)
        case Marker(name) if name in PYTHON_DTYPES:
            return ArraySpec(PYTHON_DTYPES[name], (), span, name.removeprefix("builtins."))
        case Marker("numpy.ndarray"):
            reason = "`np.ndarray` says neither dtype nor shape"
            rewrite = 'for instance `f32["n d"]`'
        case _:
            reason = f"{describe(value)} is not a type of arrays"
            rewrite = _COLLECTIONS.get(getattr(value, "name", ""), 'write `f32["n d"]`')
    raise _bad(node, frame, reason, rewrite)


_NAMED = 'say its keys: `class P(TypedDict)` with items such as `w: f32["d"]`, and write `P`'
_TUPLE = '`tuple[f32["n"], ...]` for parts of one type, `tuple[f32["n"], f32]` for several'
_LIST = '`list[f32["n"]]` for items of one type, `tuple[f32["n"], f32]` for several'
_COLLECTIONS = {
    **dict.fromkeys(("builtins.dict", "typing.Dict"), _NAMED),
    **dict.fromkeys(("builtins.list", "typing.List"), _LIST),
    **dict.fromkeys(("builtins.tuple", "typing.Tuple"), _TUPLE),
}
"""The annotations that messages propose in place of Python's collections."""


def _element(value: AnyValue) -> AnyValue:
    """Translate names of jaxtyping to our dtypes and classes; `int` and `tuple` stay types."""
    if isinstance(value, StaticFunction):
        return Marker(value.name)
    if isinstance(value, Marker) and value.name.startswith("jaxtyping."):
        name = _JAXTYPING.get(value.name.removeprefix("jaxtyping."), "")
        if is_dtype_name(name):
            return dtype(name)
        if name in CLASSES:
            return DTypeClass(name, CLASSES[name])
        if name == "Real":  # a class that only jaxtyping has
            return DTypeClass(name, CLASSES["Integer"] + CLASSES["Float"])
    return value


def _subscript(frame: Frame, node: ast.Subscript) -> Spec:
    given = evaluate(frame, node.value)
    head, inside = _element(given), items(node)
    match head:
        case Poison():
            raise Poisoned
        case DType() | DTypeClass():
            if isinstance(node.slice, ast.Tuple) and head is not given and len(inside) == 2:
                return _jaxtyping_array(frame, node, head, *inside)
            return _array(frame, node.slice, head, frame.span(node))
        case RecordClass(variables=(_, *_)):
            return class_spec(head, (), _type_arguments(frame, head, inside))
        case RecordClass(kind="typeddict"):
            reason = f"`{head.title}` is a TypedDict, whose sizes have the names that it gives them"
            raise _bad(node, frame, reason, f"write `{head.title}`, or derive from `psc.Record`")
        case RecordClass():
            return record_spec(head, tuple(shape_text(frame, node.slice).split()))
        case _:
            pass
    name = head.name if isinstance(head, Marker) else ""
    match name, inside:
        case _ if (
            container := _container(frame, node, container_kind_named(name), inside)
        ) is not None:
            return container
        case TREE.name, [item, *_] if isinstance(of := evaluate(frame, item), DType | DTypeClass):
            text = f"Tree[{of.name}]"
            return TreeSpec("", of, shown=text, bounded=True, span=frame.span(node))
        case "pscdsl.Static", [item, *_]:
            return static_spec(frame, item)
        case "typing.Annotated", [item, *_]:
            return _spec(frame, item)
        case "typing.Optional", [item, *_]:
            return _union(frame, node, [item, ast.Constant(None)])
        case "typing.Union", _:
            return _union(frame, node, inside)
        case _:
            rewrite = _COLLECTIONS.get(name or getattr(head, "name", ""), "")
            raise _bad(node, frame, f"{describe(head)}[…] is not a type of arrays", rewrite)


def _container(
    frame: Frame, node: ast.Subscript, kind: ContainerKind | None, inside: Sequence[ast.expr]
) -> Spec | None:
    """Return the specification of a container of a kind; None if it has other parameters."""
    if kind is TupleType:
        if len(inside) != 2 or not _is_ellipsis(inside[1]):
            return TupleSpec(tuple(_part(frame, item) for item in inside))
        return RepeatedSpec(_part(frame, inside[0]))
    match inside:
        case [keys, item] if kind is not None and issubclass(kind, MapType):
            if kind is DictType:
                _require_string_keys(frame, node, keys)
            return MapSpec(_part(frame, item), kind)
        case [item] if kind is not None and issubclass(kind, SequenceType):
            return RepeatedSpec(_part(frame, item), kind)
        case _:
            return None


def _require_string_keys(frame: Frame, node: ast.Subscript, keys: ast.expr) -> None:
    """Refuse a dict whose keys are no strings: they are the names of its arrays."""
    found = _element(evaluate(frame, keys))
    if not (isinstance(found, Marker) and found.name == "builtins.str"):
        raise _bad(node, frame, "the keys of a dict of arrays are strings", "`dict[str, …]`")


def _type_arguments(frame: Frame, cls: RecordClass, items: list[ast.expr]) -> tuple[Spec, ...]:
    """Return the specifications of a generic record's type arguments."""
    if len(items) != len(cls.variables):
        text = f"{cls.title}[{', '.join(map(frame.source.text_of, items))}]"
        reason = f"`{cls.title}` is generic in {', '.join(cls.variables)}"
        raise Failure(BadAnnotation(text=text, reason=reason, rewrite=""))
    return tuple([_part(frame, node) for node in items])


def _jaxtyping_array(
    frame: Frame,
    node: ast.Subscript,
    element: DType | DTypeClass,
    array: ast.expr,
    shape: ast.expr,
) -> ArraySpec:
    """Return `Float32[Array, "n d"]`; if the array has a shape itself, its sizes come first."""
    spec = _array(frame, shape, element, frame.span(node))
    if not isinstance(array, ast.Subscript) and not isinstance(evaluate(frame, array), Alias):
        return spec
    if frame.scope.is_jax:
        from pscdsl._src.frontend.jax_annotations import is_open_array  # it needs this module

        if is_open_array(frame, array, _spec):
            return spec
    inner = _spec(frame, array)
    if not isinstance(inner, ArraySpec) or inner.dtype != element:
        raise _bad(node, frame, f"{inner} is not an array of {element.name}", "name one dtype")
    axes = (each.mesh_axes or ((),) * len(each.dims) for each in (spec, inner))
    joined = spec.with_dims(spec.dims + inner.dims, tuple(chain.from_iterable(axes)))
    return _one_group(frame, joined, node)


def _one_group(frame: Frame, spec: ArraySpec, node: ast.expr) -> ArraySpec:
    if sum(isinstance(dim, Variadic) for dim in spec.dims) > 1:
        raise _bad(node, frame, "one group of dimensions may be open, here are several", "")
    return spec


def _part(frame: Frame, node: ast.expr) -> Spec:
    """Return the specification of an item of a tuple, vector, map or union; numbers are arrays."""
    spec = _spec(frame, node)
    if isinstance(spec, StaticSpec) and not frame.scope.is_jax:
        reason = "a static value is a parameter, or a field of a record"
        raise _bad(node, frame, reason, "give it a parameter, or a record with a field, of its own")
    return spec


def _union(frame: Frame, node: ast.expr, alternatives: list[ast.expr]) -> Spec:
    """Return the specification of `A | None`; other unions have no single type."""
    specs = [_part(frame, alternative) for alternative in alternatives]
    others = [spec for spec in specs if not isinstance(spec, NoneSpec)]
    if len(others) == 1 and len(specs) == 2:
        return others[0] if isinstance(others[0], OptionalSpec) else OptionalSpec(others[0])
    if frame.scope.is_jax:
        return UnionSpec(tuple(specs))
    raise _bad(node, frame, "a union has no single type", "declare one kernel for each case")


def static_spec(frame: Frame, node: ast.expr) -> StaticSpec:
    """Return the specification of `psc.Static[…]`."""
    form = _static_form(frame, node)
    samples: tuple[object, ...] | None = None
    if isinstance(form, OneOf):
        samples = form.values
    elif isinstance(form, Instance):
        samples = SAMPLES.get(form.cls)
    return StaticSpec(frame.source.text_of(node), samples, form)


def _static_form(frame: Frame, node: ast.expr) -> StaticForm:
    """Return the values that a static type allows, or None if it allows any."""
    match node:
        case ast.Constant(value=None):
            return OneOf((None,))
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _either(frame, [left, right])
        case _:
            pass
    head = _element(evaluate(frame, subscripted(node)))
    name = head.name if isinstance(head, Marker) else ""
    match node, name:
        case ast.Subscript(), "typing.Literal":
            return OneOf(tuple([evaluate(frame, item) for item in items(node)]))
        case ast.Subscript(), "typing.Optional":
            return _either(frame, [*items(node), ast.Constant(None)])
        case ast.Subscript(), "typing.Union":
            return _either(frame, items(node))
        case ast.Subscript(), "builtins.tuple" | "typing.Tuple":
            forms = [_static_form(frame, each) for each in items(node) if not _is_ellipsis(each)]
            return Items(tuple(forms), repeated=len(forms) < len(items(node)))
        case ast.Subscript(), _:
            return None
        case _ if isinstance(head, RecordClass):
            values = (member.value for member in head.members.values())
            members = [value for value in values if isinstance(value, Enum | EnumMember)]
            return OneOf(tuple(dict.fromkeys(members))) if members else None
        case _:
            cls = _INSTANCES.get(name)
            return None if cls is None else Instance(cls)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _either(frame: Frame, items: list[ast.expr]) -> StaticForm:
    forms = tuple([_static_form(frame, item) for item in items])
    return None if None in forms else Either(forms)


def _array(frame: Frame, node: ast.expr, element: DType | DTypeClass, span: Span) -> ArraySpec:
    text = shape_text(frame, node, element.name)
    if frame.scope.is_jax:
        text = text.replace("#", "").replace("?", "")
    try:
        spec = ArraySpec(element, parse_shape(text), span, mesh_axes=parse_mesh_axes(text))
        return _one_group(frame, spec, node)
    except ShapeSyntaxError as error:
        place = frame.span(node)
        if place.line == place.end_line:  # point into the string
            column = place.column + 1 + error.offset
            end = min(column + 1, place.end_column)
            place = replace(place, column=min(column, end - 1), end_column=end)
        raise Failure(
            BadAnnotation(
                text=text,
                reason=error.message,
                rewrite=f'`"{" ".join(text.replace(",", " ").split())}"`' if "," in text else "",
                span=place,
            )
        ) from None


def shape_text(frame: Frame, node: ast.expr, element: str = "f32") -> str:
    """Return the shape that an annotation gives as a string, or by a name of one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    words = _words(node)
    findings = frame.session.findings
    known = len(findings)
    value = None if words and isinstance(node, ast.Tuple) else evaluate(frame, node)
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    if words and all(isinstance(finding, UnknownName) for finding in findings[known:]):
        del findings[known:]  # names of sizes in a string need no definition
        raise _bad(node, frame, "the shape is not a string", f'write `{element}["{words}"]`')
    raise _bad(node, frame, "the shape is not a string", f'for instance `{element}["n d"]`')


def _words(node: ast.expr) -> str:
    """Return the sizes as a string would have them; empty if there is anything else."""
    match node:
        case ast.Tuple(elts=elements):
            parts = [_words(element) for element in elements]
            return " ".join(parts) if all(parts) else ""
        case ast.Constant(value=str() | int() as size):
            return str(size)
        case ast.Name() | ast.BinOp():
            return ast.unparse(node).replace(" ", "")
        case _:
            return ""


def _parsed(node: ast.Constant) -> ast.expr:
    try:
        inner = ast.parse(str(node.value).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        reason = "it is not an expression"
        text = shortened(str(node.value))
        raise Failure(BadAnnotation(text=text, reason=reason, rewrite="")) from None
    for each in ast.walk(inner):
        ast.copy_location(each, node)
    return inner


def class_spec(
    cls: RecordClass, arguments: tuple[str, ...], types: tuple[Spec, ...] = ()
) -> RecordSpec | DictSpec:
    """Return the specification of a class: of a TypedDict, that of a dict with its keys."""
    spec = record_spec(cls, arguments, types)
    if cls.kind != "typeddict":
        return spec
    for key, each in spec.fields:
        if isinstance(each, StaticSpec):
            reason = f"its item `{key}` is a static value"
            rewrite = "give it a parameter of its own, or make a `psc.Record` of the class"
            raise Failure(BadAnnotation(text=cls.title, reason=reason, rewrite=rewrite))
    return DictSpec(cls.title, spec.fields, types)


def record_spec(
    cls: RecordClass, arguments: tuple[str, ...], types: tuple[Spec, ...] = ()
) -> RecordSpec:
    """Return a record's specification, with the arguments in place of its sizes and types."""
    key = (arguments, types)
    if key not in cls.specs:
        cls.specs[key] = None
        try:
            cls.specs[key] = _record_spec(cls, arguments, types)
        finally:
            if cls.specs[key] is None:
                del cls.specs[key]
    spec = cls.specs[key]
    if spec is None:
        reason = "it contains itself, so its trees have no fixed shape"
        raise Failure(BadAnnotation(text=cls.title, reason=reason, rewrite=""))
    return spec


def _record_spec(
    cls: RecordClass, arguments: tuple[str, ...], types: tuple[Spec, ...]
) -> RecordSpec:
    sizes = parse_shape(" ".join(arguments))
    renaming: Renaming | None = given(cls.dims, sizes) if arguments else {}
    if renaming is None:
        raise Failure(_wrong_sizes(cls, arguments))
    meant = dict(zip(cls.variables, types, strict=False))
    fields: list[tuple[str, Spec]] = []
    size = 0
    for field in cls.fields:
        if field.annotation is None or field.frame is None:
            raise Failure(
                BadAnnotation(
                    text=cls.title,
                    reason=f"its field `{field.name}` has no type",
                    rewrite="give every field a type",
                )
            )
        try:
            spec = spec_of(field.frame, field.annotation)
            for names, frame, nodes in field.applied:
                own = [spec_of(frame, node) for node in nodes]
                spec = meaning(spec, dict(zip(names, own, strict=False)))
        except (Failure, Poisoned) as failure:
            if not field.frame.scope.is_jax:
                if isinstance(failure, Failure):
                    raise
                raise Failure(*field.frame.session.findings) from None
            spec = OpenSpec(f"{cls.title}.{field.name}", "object", _known_default(field))
        spec = meaning(spec, meant) if meant else spec
        fields.append((field.name, renamed(spec, renaming) if renaming else spec))
        size += extent(fields[-1][1])
        if size > MAX_PARTS:
            raise Failure(TooLarge(what=f"a type of more than {MAX_PARTS} parts"))
    return RecordSpec(cls.name, tuple(fields), " ".join(arguments), types)


def _known_default(field: Field) -> tuple[object, ...]:
    """Return the default of a field, if it is known."""
    try:
        return () if field.default is None else (with_hash(field.default()),)
    except (Failure, Poisoned):
        return ()


def _wrong_sizes(cls: RecordClass, arguments: tuple[str, ...]) -> BadAnnotation:
    text = f"{cls.title}[{' '.join(arguments)}]"
    if cls.dims:
        reason = f"`{cls.title}` has {_count(cls.dims)}: {' '.join(cls.dims)}"
        return BadAnnotation(text=text, reason=reason, rewrite="")
    reason = f"`{cls.title}` does not say which of its sizes can be given"
    rewrite = "derive it from `psc.Record`, with `dims=` for their names"
    if cls.kind == "record":
        own = " ".join(_own_sizes(cls))
        rewrite = f'name them in its definition: `class {cls.title}(psc.Record, dims="{own}")`'
    return BadAnnotation(text=text, reason=reason, rewrite=rewrite)


def _own_sizes(cls: RecordClass) -> list[str]:
    """Return the names of sizes in a record's fields, in the order in which they occur."""
    parts = [part for _, part in walk_paths(record_spec(cls, ()), "")]
    found: dict[str, None] = {}
    for dim in (dim for part in parts for dim in declared_dims(part)):
        if isinstance(dim, Variadic) and dim.name:
            found[f"*{dim.name}"] = None
        elif isinstance(dim, Dim):
            found.update(dict.fromkeys(sorted(names(dim))))
    return list(found)


def _count(dims: tuple[str, ...]) -> str:
    """Return the number of sizes that a record takes, in words."""
    single = sum(not name.startswith("*") for name in dims)
    return f"{single} sizes" if single == len(dims) else f"{single} sizes or more"


def static_fields(cls: RecordClass) -> frozenset[str]:
    """Return the fields of a record whose values are known while checking."""
    try:
        fields = record_spec(cls, ()).fields
    except (Failure, Poisoned):  # the annotation with the record reports it
        return frozenset()
    return frozenset(
        name
        for name, spec in fields
        if isinstance(spec, StaticSpec) or (isinstance(spec, OpenSpec) and spec.kind != "array")
    )


def renamed(spec: Spec, env: Renaming) -> Spec:
    """Return a specification with sizes in place of names."""

    def of_array(part: Spec) -> Spec:
        if not isinstance(part, ArraySpec):
            return part
        dims = [applied((dim,), env) for dim in part.dims]
        axes = [
            (along,) if len(own) == 1 else ((),) * len(own)
            for own, along in zip(dims, part.mesh_axes or ((),) * len(dims), strict=True)
        ]
        flat = chain.from_iterable
        return part.with_dims(tuple(flat(dims)), tuple(flat(axes)))

    return replaced(spec, of_array)


def meaning(spec: Spec, known: Mapping[str, Spec]) -> Spec:
    """Return a specification with types in place of type variables."""
    return replaced(
        spec, lambda part: known.get(part.name, part) if isinstance(part, TreeSpec) else part
    )


def as_result(spec: Spec) -> Spec:
    """Return a result's specification, where `float` is a scalar of any floating-point dtype."""

    def of_number(part: Spec) -> Spec:
        if not isinstance(part, ArraySpec) or not part.python:
            return part
        own = PYTHON_DTYPES[f"builtins.{part.python}"]
        others = [each for each in CLASSES[_RESULTS[part.python]] if each is not own]
        return replace(part, dtype=DTypeClass(part.python, (own, *others)), python="")

    return replaced(spec, of_number)


_RESULTS = {"bool": "Bool", "int": "Integer", "float": "Float", "complex": "Complex"}
"""The dtypes that a result may have which is declared as a number of Python's."""


def named_trees(spec: Spec, parameter: str) -> Spec:
    """Return the specification of a parameter with a distinct type variable for each `psc.Tree`."""
    number = count()

    def named(part: Spec) -> Spec:
        if not isinstance(part, TreeSpec) or part.name:
            return part
        index = next(number)
        return replace(part, name=f"{parameter}_tree{index}" if index else parameter)

    return replaced(spec, named)


def replaced(spec: Spec, change: Callable[[Spec], Spec]) -> Spec:
    """Return a specification with `change` applied to each part that has no parts."""
    parts = spec_parts(spec)
    if not parts and not isinstance(spec, TupleSpec | RecordSpec | DictSpec):
        return change(spec)
    made = with_spec_parts(spec, [replaced(part, change) for part in parts])
    if isinstance(made, RecordSpec | DictSpec):
        return replace(made, types=tuple([replaced(each, change) for each in made.types]))
    return made


def _bad(node: ast.expr, frame: Frame, reason: str, rewrite: str) -> Failure:
    return Failure(
        BadAnnotation(
            text=frame.source.text_of(node), reason=reason, rewrite=rewrite, span=frame.span(node)
        )
    )
