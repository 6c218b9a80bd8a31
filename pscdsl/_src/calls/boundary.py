"""Conversion of Python objects to a kernel's arrays and back: trees of arrays of real classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, cast

import numpy as np

from pscdsl._src.ir.numpy_dtypes import from_numpy, is_masked, to_numpy
from pscdsl._src.ir.program import fit
from pscdsl._src.language.instances import InstanceClass as InstanceClass
from pscdsl._src.language.instances import absent, construct, known_statics, reader, ways
from pscdsl.arrays import Array
from pscdsl.typing.array_types import (
    CONTAINER_KINDS,
    NONE,
    ArrayType,
    ContainerKind,
    ContainerType,
    DictType,
    ListType,
    MapType,
    RecordType,
    SequenceType,
    StaticType,
    Type,
    built,
    container_kind,
    nodes,
)
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import KEY, PYTHON, U32, DType, Kind, accepts_weak, becomes
from pscdsl.typing.python_containers import (
    is_scalar,
)
from pscdsl.typing.signatures import (
    ArraySpec,
    DictSpec,
    DTypeClass,
    MapSpec,
    OptionalSpec,
    RecordSpec,
    Signature,
    Spec,
    StaticSpec,
    TreeSpec,
    part_at,
    walk_paths,
)

_KINDS: dict[type[Any], Kind] = {
    bool: Kind.BOOL,
    int: Kind.INT,
    float: Kind.FLOAT,
    complex: Kind.COMPLEX,
}
Register: TypeAlias = Callable[..., None]


Records: TypeAlias = Callable[[type[Any], Spec | None], InstanceClass | None]
"""Returns the known description of an argument's class, given the declared specification."""


class NotAnArgument(Exception):
    """An object that no specification fits; carries a description of it."""


def argument(
    spec: Spec | None,
    value: object,
    leaves: list[Any],
    register: Register,
    classes: dict[str, DType],
    records: Records,
) -> Type:
    """Return the type of an argument and append its arrays to `leaves`.

    Python scalars take the dtype that the specification names, or the one in `classes` for its
    dtype class; arrays add theirs there. `register` receives every container class that is met, and
    `records` returns the description of a record class.
    """
    if isinstance(spec, OptionalSpec):
        spec = spec.item
        if value is None:
            return NONE
    if isinstance(spec, ArraySpec) and spec.python:
        value = _as_number(spec, value)
    kind = _KINDS.get(type(value))
    if kind is not None and not isinstance(spec, StaticSpec):
        leaves.append(value)
        dtype = _weak_dtype(spec, kind, classes)
        _must_fit(value, dtype)
        return ArrayType(dtype)
    if isinstance(spec, StaticSpec):
        return static(value)
    if isinstance(value, np.ndarray | np.generic | Array):
        leaves.append(value)
        type_ = array_type(value)
        if isinstance(spec, ArraySpec) and spec.python and _is_scalar_for(spec, value):
            assert isinstance(spec.dtype, DType)
            return type_.with_dtype(spec.dtype)  # a tracer of jax, which is converted there
        if isinstance(spec, ArraySpec) and spec.dtype is KEY:
            return keys_in(type_)
        if isinstance(spec, ArraySpec | TreeSpec) and isinstance(spec.dtype, DTypeClass):
            classes.setdefault(spec.dtype.name, type_.dtype)
        return type_
    if value is None:
        return NONE
    return _container(spec, value, leaves, register, classes, records)


def _as_number(spec: ArraySpec, value: Any) -> Any:
    """Return the number that Python makes of a scalar, if a number is declared: `float(x)`."""
    if not _is_scalar_for(spec, value) or not hasattr(value, "__array__"):
        return value
    array = np.asarray(value)
    assert isinstance(spec.dtype, DType)
    return array.astype(to_numpy(spec.dtype)) if array.ndim else array.item()


def _is_scalar_for(spec: ArraySpec, value: Any) -> bool:
    """Return whether an array's elements become Python numbers of a declared kind."""
    known: Any = value
    if not isinstance(value, np.ndarray | np.generic | Array) or len(known.shape) != len(spec.dims):
        return False
    given = array_type(value).dtype
    assert isinstance(spec.dtype, DType)
    return given is not spec.dtype and becomes(given, spec.dtype)


def _must_fit(scalar: Any, dtype: DType) -> None:
    try:
        fit(scalar, dtype)
    except Failure:
        raise NotAnArgument(f"{scalar!r}, which does not fit into {dtype}") from None


def static(value: object) -> StaticType:
    """Return a static argument's type; NumPy's scalars count as Python's, also in tuples."""
    if isinstance(value, Array):
        raise NotAnArgument("an array, or traced by jax, which keeps what `static_argnames` names")
    value = _of_python(value)
    try:
        hash(value)
    except TypeError:
        kind = type(value).__qualname__
        raise NotAnArgument(f"of class {kind}, which cannot be compared and hashed") from None
    return StaticType(value)


def _of_python(value: Any) -> Any:
    if is_scalar(value):
        return value.item()
    return tuple(map(_of_python, value)) if value.__class__ is tuple else value


def array_type(value: Any) -> ArrayType:
    """Return the type of a NumPy or device array."""
    if is_masked(value):
        raise NotAnArgument("a masked array; fill it, or pass the mask as an array of its own")
    try:
        return ArrayType(from_numpy(np.dtype(value.dtype)), tuple(value.shape))
    except TypeError as error:
        raise NotAnArgument(f"an array of dtype {value.dtype}") from error


def keys_in(stored: ArrayType) -> ArrayType:
    """Return the type of the keys in an array of words along its last axis; its own otherwise."""
    if stored.dtype is U32 and stored.shape[-1:] == (2,):
        return ArrayType(KEY, stored.shape[:-1])
    return stored


def _weak_dtype(spec: Spec | None, kind: Kind, classes: Mapping[str, DType]) -> DType:
    if isinstance(spec, ArraySpec | TreeSpec) and spec.dtype is not None:
        dtype = classes.get(spec.dtype.name, spec.dtype)
        if isinstance(dtype, DType):
            return dtype if accepts_weak(dtype, kind) else PYTHON[kind]
        assert isinstance(spec.dtype, DTypeClass)
        if PYTHON[kind] not in spec.dtype.members:
            fitting = [dtype_ for dtype_ in spec.dtype.members if accepts_weak(dtype_, kind)]
            wanted = [dtype_ for dtype_ in fitting if dtype_ in PYTHON.values()] or fitting
            return wanted[0] if wanted else PYTHON[kind]
    return PYTHON[kind]


def _container(
    spec: Spec | None,
    value: object,
    leaves: list[Any],
    register: Register,
    classes: dict[str, DType],
    records: Records,
) -> Type:
    def inside(step: str, item: Any) -> Type:
        return argument(part_at(spec, step), item, leaves, register, classes, records)

    real = type(value)
    kind = container_kind(value)
    if kind is not None and _takes(spec, kind):
        if kind is DictType:
            _require_string_keys(cast("dict[Any, Any]", value))
        _register(kind, real, register)
        parts, keys = kind.apart(value)
        steps = kind.of(keys, [NONE] * len(parts)).steps
        return kind.of(keys, [inside(*each) for each in zip(steps, parts, strict=True)])
    if real.__module__.startswith("jax.") and hasattr(value, "shape"):
        raise NotAnArgument("a value that jax is tracing; call the kernel's `to_jax()` there")
    if hasattr(value, "__dlpack__"):
        return argument(spec, _host_view(value), leaves, register, classes, records)
    try:
        cls = records(real, spec)
    except Failure as failure:
        problem = failure.diagnostics[0].message()
        raise NotAnArgument(f"an object of class {real.__qualname__}: {problem}") from None
    if cls is not None:
        names = cls.field_names()
        if missing := absent(cls, value):
            fields = ", ".join(f"`{name}`" for name in missing)
            raise NotAnArgument(f"an object of class {real.__qualname__} without {fields}")
        read = reader(cls)
        static_names = known_statics(cls) if isinstance(spec, TreeSpec) else frozenset[str]()
        if cls.kind != "namedtuple":
            register(real, *ways(cls))

        def field(name: str) -> Type:
            item = read(value, name)
            return static(item) if name in static_names else inside(f".{name}", item)

        return RecordType(cls.name, tuple((n, field(n)) for n in names))
    if isinstance(value, list):
        keyed = isinstance(spec, DictSpec | MapSpec | RecordSpec)
        instead = "" if keyed else "; pass a tuple, or an array made by `np.array`"
        raise NotAnArgument(f"a list{instead}")
    if isinstance(value, dict):
        instead = "; pass a pyrsistent PMap" if isinstance(spec, MapSpec) else ""
        raise NotAnArgument(f"a dict{instead}")
    raise NotAnArgument(f"an object of class {real.__qualname__}")


def _takes(spec: Spec | None, kind: ContainerKind) -> bool:
    """Return whether a container is accepted; one that never changes is, for a clear message."""
    if spec is None or isinstance(spec, TreeSpec) or kind not in (ListType, DictType):
        return True
    return getattr(spec, "kind", None) is kind


def _require_string_keys(value: dict[Any, Any]) -> None:
    for key in value:
        if type(key) is not str:
            raise NotAnArgument(f"a dict with the key {key!r}, which is no string")


def host_view(exporter: Any) -> Any:
    """Return a NumPy array that shares another library's memory; a BufferError if none can."""
    from pscdsl._src.xla.runtime import devices  # types are read without jaxlib

    return devices.host_view(exporter)


def _host_view(exporter: Any) -> Any:
    try:
        return host_view(exporter)
    except (BufferError, RuntimeError, TypeError) as error:
        kind = type(exporter).__qualname__
        raise NotAnArgument(f"an array of class {kind} that cannot be read: {error}") from None


def _register(kind: ContainerKind, cls: type[Any], register: Register) -> None:
    """Pass a class of containers to `register`, if it is none of Python's own."""
    if cls.__module__ != "builtins":
        register(cls, kind.apart, kind.made)


def result(tree: Type, arrays: Iterator[Any]) -> Any:
    """Return the value with this type; its arrays are taken in order."""
    return built(tree, arrays, _made)


def _made(tree: ContainerType, parts: list[Any]) -> Any:
    if isinstance(tree, RecordType):
        return construct(cast("InstanceClass", tree.record.definition), parts)
    assert isinstance(tree, SequenceType | MapType)
    return tree.made(tree.keys, parts)


def register_result(tree: Type, register: Register, *, apart: bool = False) -> None:
    """Tell `register` of every container class of a result; `apart` as in `register_record`."""
    for node in nodes(tree):
        if isinstance(node, RecordType):
            record = cast("InstanceClass | None", node.record.definition)
            register_record(record, register, apart=apart)
        elif isinstance(node, SequenceType | MapType):
            _register(type(node), node.python(), register)


def register_record(cls: InstanceClass | None, register: Register, *, apart: bool = False) -> None:
    """Pass the class of a record to `register`, if it has to know one.

    With `apart`, static fields are no children, but belong to the structure.
    """
    if cls is not None and cls.constructor and cls.kind != "namedtuple":
        register(cls.constructor, *ways(cls, known_statics(cls) if apart else ()))


def register_signature(signature: Signature, register: Register, *, apart: bool = False) -> None:
    """Tell `register` of every container class that a signature names; see `register_record`."""
    for kind in CONTAINER_KINDS:
        _register(kind, kind.python(), register)
    for name, spec in signature.specs():
        for _, part in walk_paths(spec, name):
            if isinstance(part, RecordSpec):
                record = cast("InstanceClass | None", part.record.definition)
                register_record(record, register, apart=apart)


def register_value(
    value: Any, register: Register, records: Records, *, apart: bool = False
) -> None:
    """Tell `register` of every container class in a value; `apart` as in `register_record`."""
    real: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if hasattr(value, "__dlpack__") or hasattr(value, "shape"):
        return  # an array of any library
    items: Any = ()
    if (kind := container_kind(value)) is not None:
        _register(kind, real, register)
        items, _ = kind.apart(value)
    elif (cls := records(real, None)) is not None:
        register_record(cls, register, apart=apart)
        read, left_out = reader(cls), {*absent(cls, value), *(known_statics(cls) if apart else ())}
        items = [read(value, name) for name in cls.field_names() if name not in left_out]
    for item in items:
        register_value(item, register, records, apart=apart)
