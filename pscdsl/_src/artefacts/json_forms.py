"""Types, specifications, choices and values as JSON, for the heads of artefacts.

Sizes are texts such as `n+1`, dtypes their names, and each value has its class: True is not 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, cast

from pscdsl import arrays
from pscdsl._src.language.elements import ElementType
from pscdsl.typing.array_types import (
    CONTAINER_KINDS,
    NONE,
    ArrayType,
    DictType,
    ListType,
    MapType,
    NoneType,
    RecordName,
    RecordType,
    SequenceType,
    StaticType,
    TupleType,
    Type,
    VectorType,
)
from pscdsl.typing.dims import Dim, parse
from pscdsl.typing.dtypes import DType, dtype
from pscdsl.typing.python_containers import is_tuple
from pscdsl.typing.signatures import (
    ArraySpec,
    Choice,
    DictSpec,
    DimSpec,
    DTypeClass,
    MapSpec,
    NoneSpec,
    OptionalSpec,
    Parameter,
    RecordSpec,
    RepeatedSpec,
    Signature,
    Spec,
    StaticSpec,
    TreeSpec,
    TupleSpec,
    parse_mesh_axes,
    parse_shape,
)

# Static values and defaults of parameters as JSON, each with its class: True is not 1.


class NotWritable(Exception):
    """A value that has no form as data; the message describes it."""


def encoded(value: object) -> Any:
    """Return a value as JSON; raise `NotWritable` if it cannot be stored."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return {"float": value.hex()}
    if type(value) is complex:
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if type(value) is bytes:
        return {"bytes": value.hex()}
    if is_tuple(value) and not hasattr(value, "_fields"):
        return {"tuple": [encoded(each) for each in value]}
    if isinstance(value, ElementType) and value.text is None and value.element is value:
        return {"dtype": value.__name__}
    raise NotWritable(f"{value!r}, of class {_class_of(value).__qualname__}")


def _class_of(value: object) -> type[Any]:
    return type(value)


def decoded(form: Any) -> object:
    """Return the value that `encoded` wrote; raise ValueError, KeyError or TypeError for others."""
    if form is None or isinstance(form, bool | int | str):
        return form
    ((kind, content),) = cast("dict[str, Any]", form).items()
    if kind == "float":
        return float.fromhex(content)
    if kind == "complex":
        real, imag = content
        return complex(float.fromhex(real), float.fromhex(imag))
    if kind == "bytes":
        return bytes.fromhex(content)
    if kind == "tuple":
        return tuple([decoded(each) for each in content])
    if kind == "dtype":
        found = vars(arrays)[content]
        if isinstance(found, ElementType):
            return found
    raise ValueError(f"no value is a {kind}")


# Types, specifications and choices as JSON: sizes are texts such as `n+1`, dtypes their names.


Json = Any


def signature_form(signature: Signature) -> Json:
    """Return a signature as JSON."""
    return {
        "name": signature.name,
        "parameters": [
            {
                "name": parameter.name,
                "type": spec_form(parameter.spec),
                "keyword_only": parameter.keyword_only,
                "has_default": parameter.has_default,
            }
            for parameter in signature.parameters
        ],
        "result": None if signature.result is None else spec_form(signature.result),
    }


def signature_of(form: Json) -> Signature:
    """Return the signature that `signature_form` wrote."""
    parameters = [
        Parameter(
            _text(each["name"]),
            spec_of(each["type"]),
            bool(each["keyword_only"]),
            bool(each["has_default"]),
        )
        for each in form["parameters"]
    ]
    result = None if form["result"] is None else spec_of(form["result"])
    return Signature(_text(form["name"]), tuple(parameters), result)


def spec_form(spec: Spec) -> Json:
    """Return a specification as JSON."""
    if isinstance(spec, ArraySpec):
        return {
            "kind": "array",
            "dtype": _dtype_form(spec.dtype),
            "shape": [*spec.words()],
            "python": spec.python,
        }
    if isinstance(spec, TupleSpec):
        return {"kind": spec.kind.form, "items": [spec_form(item) for item in spec.items]}
    if isinstance(spec, RepeatedSpec):
        kind = "lists" if spec.kind is ListType else "repeated"
        vector = spec.kind is VectorType
        return {"kind": kind, "item": spec_form(spec.item), "vector": vector}
    if isinstance(spec, RecordSpec):
        return {
            "kind": "record",
            **_record_form(spec.record),
            "fields": [[name, spec_form(each)] for name, each in spec.fields],
            "arguments": spec.arguments,
            "types": [spec_form(type_) for type_ in spec.types],
            "spelled": spec.spelled,
        }
    if isinstance(spec, MapSpec):
        kind = "dicts" if spec.kind is DictType else "map"
        return {"kind": kind, "item": spec_form(spec.item)}
    if isinstance(spec, DictSpec):
        return {
            "kind": "dict",
            "name": spec.name,
            "items": [[key, spec_form(each)] for key, each in spec.items],
            "types": [spec_form(type_) for type_ in spec.types],
            "spelled": spec.spelled,
        }
    if isinstance(spec, StaticSpec):
        return {"kind": "static", "of": spec.kind}
    if isinstance(spec, OptionalSpec):
        return {"kind": "optional", "item": spec_form(spec.item)}
    if isinstance(spec, TreeSpec):
        return {
            "kind": "tree",
            "name": spec.name,
            "dtype": None if spec.dtype is None else _dtype_form(spec.dtype),
            "batch": [str(dim) for dim in spec.batch],
            "shown": spec.shown,
            "bounded": spec.bounded,
        }
    return {"kind": "none"}


def spec_of(form: Json) -> Spec:
    """Return the specification that `spec_form` wrote."""
    return _SPECS[form["kind"]](form)


def _dtype_form(given: DType | DTypeClass) -> Json:
    if isinstance(given, DType):
        return given.name
    return {"class": given.name, "members": [member.name for member in given.members]}


def _dtype_of(form: Json) -> DType | DTypeClass:
    if isinstance(form, str):
        return dtype(form)
    return DTypeClass(_text(form["class"]), tuple([dtype(each) for each in form["members"]]))


def _tree_spec(form: Json) -> Spec:
    batch = [parse(each) for each in form["batch"]]
    return TreeSpec(
        _text(form["name"]),
        None if form["dtype"] is None else _dtype_of(form["dtype"]),
        tuple([each for each in batch if isinstance(each, Dim)]),
        _text(form["shown"]),
        bool(form["bounded"]),
    )


def _dim(text: str) -> DimSpec:
    (found,) = parse_shape(text)
    return found


_SPECS: dict[str, Callable[[Json], Spec]] = {
    "array": lambda form: ArraySpec(
        _dtype_of(form["dtype"]),
        tuple([_dim(each) for each in form["shape"]]),
        python=_text(form.get("python", "")),
        mesh_axes=parse_mesh_axes(" ".join([_text(each) for each in form["shape"]])),
    ),
    "tree": _tree_spec,
    "tuple": lambda form: TupleSpec(tuple([spec_of(each) for each in form["items"]])),
    "list": lambda form: TupleSpec(tuple([spec_of(each) for each in form["items"]]), ListType),
    "lists": lambda form: RepeatedSpec(spec_of(form["item"]), ListType),
    "dicts": lambda form: MapSpec(spec_of(form["item"]), DictType),
    "dict": lambda form: DictSpec(
        _text(form["name"]),
        tuple([(_text(key), spec_of(each)) for key, each in form["items"]]),
        tuple([spec_of(each) for each in form["types"]]),
        bool(form["spelled"]),
    ),
    "repeated": lambda form: RepeatedSpec(
        spec_of(form["item"]), VectorType if form["vector"] else TupleType
    ),
    "record": lambda form: RecordSpec(
        _record_of(form),
        tuple([(_text(name), spec_of(each)) for name, each in form["fields"]]),
        _text(form["arguments"]),
        tuple([spec_of(each) for each in form["types"]]),
        bool(form["spelled"]),
    ),
    "map": lambda form: MapSpec(spec_of(form["item"])),
    "static": lambda form: StaticSpec(_text(form["of"]), None),
    "optional": lambda form: OptionalSpec(spec_of(form["item"])),
    "none": lambda form: NoneSpec(),
}


def type_form(tree: Type) -> Json:
    """Return a type as JSON; raise `NotWritable` if a static value in it cannot be stored."""
    if isinstance(tree, ArrayType):
        return array_form(tree)
    if isinstance(tree, SequenceType):
        return {"kind": tree.form, "items": [type_form(item) for item in tree.items]}
    if isinstance(tree, RecordType):
        fields_ = [[name, type_form(each)] for name, each in tree.fields]
        return {"kind": "record", **_record_form(tree.record), "fields": fields_}
    if isinstance(tree, MapType):
        items = [[key, type_form(each)] for key, each in tree.items]
        order = {"order": list(tree.order)} if isinstance(tree, DictType) else {}
        return {"kind": tree.form, "items": items, **order}
    if isinstance(tree, NoneType):
        return {"kind": "none"}
    return {"kind": "static", "value": encoded(tree.value)}


def type_of(form: Json) -> Type:
    """Return the type that `type_form` wrote."""
    return _TYPES[form["kind"]](form)


def array_form(given: ArrayType) -> Json:
    """Return the type of an array as JSON."""
    return {"kind": "array", "dtype": given.dtype.name, "shape": [str(s) for s in given.shape]}


def array_of(form: Json) -> ArrayType:
    """Return the type that `array_form` wrote."""
    return ArrayType(dtype(form["dtype"]), tuple([parse(each) for each in form["shape"]]))


def _sequence(kind: type[SequenceType]) -> Callable[[Json], Type]:
    return lambda form: kind(tuple([type_of(each) for each in form["items"]]))


_TYPES: dict[str, Callable[[Json], Type]] = {
    "array": array_of,
    **{kind.form: _sequence(kind) for kind in CONTAINER_KINDS if issubclass(kind, SequenceType)},
    "dict": lambda form: _dict_of(form),
    "map": lambda form: MapType(
        tuple([(_text(key), type_of(each)) for key, each in form["items"]])
    ),
    "record": lambda form: RecordType(
        _record_of(form), tuple([(_text(name), type_of(each)) for name, each in form["fields"]])
    ),
    "none": lambda form: NONE,
    "static": lambda form: StaticType(decoded(form["value"])),
}


def _dict_of(form: Json) -> DictType:
    """Return the type of a dict; raise ValueError if the order is not one of its keys."""
    items = tuple([(_text(key), type_of(each)) for key, each in form["items"]])
    keys, order = [key for key, _ in items], tuple([_text(key) for key in form["order"]])
    if keys != sorted({*keys}) or (order and sorted(order) != keys):
        raise ValueError(f"{order!r} is no order of {keys!r}")
    return DictType(items, order)


def choice_form(choice: Choice) -> Json:
    """Return a choice as JSON; raise `NotWritable` if a static value cannot be stored."""
    return {
        "dtypes": [[name, each.name] for name, each in choice.dtypes],
        "ranks": [list(each) for each in choice.ranks],
        "lengths": [list(length) for length in choice.lengths],
        "keys": [[path, list(keys)] for path, keys in choice.keys],
        "statics": [[path, encoded(each.value)] for path, each in choice.statics],
        "given": [list(each) for each in choice.given],
        "trees": [[name, type_form(each)] for name, each in choice.trees],
    }


def choice_of(form: Json) -> Choice:
    """Return the choice that `choice_form` wrote."""
    read: dict[str, Callable[[Json], Any]] = {
        "dtypes": dtype,
        "ranks": number,
        "lengths": number,
        "keys": lambda keys: tuple([_text(each) for each in keys]),
        "statics": lambda value: StaticType(decoded(value)),
        "given": bool,
        "trees": type_of,
    }
    parts = {
        field.name: tuple([(_text(path), read[field.name](x)) for path, x in form[field.name]])
        for field in fields(Choice)
    }
    return Choice(**parts)


def _record_form(record: RecordName) -> dict[str, str]:
    return {"name": record.name, "module": record.module}


def _record_of(form: Json) -> RecordName:
    return RecordName(_text(form["name"]), _text(form["module"]))


def _text(form: Json) -> str:
    if not isinstance(form, str):
        raise TypeError(f"{form!r} is no text")
    return form


def number(form: Json) -> int:
    """Return an integer that is not negative, and no larger than a size can be."""
    if type(form) is not int or not 0 <= form < 1 << 62:
        raise TypeError(f"{form!r} is no size")
    return form
