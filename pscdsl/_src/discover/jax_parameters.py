"""The parameters of a JAX function, and the types that are tried for them."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from pscdsl._src.discover.candidates import (
    FUNCTION,
    INT,
    NO_DEFAULT,
    Alternative,
    Hint,
    alternatives,
    annotation_hint,
    array,
    docstring_hints,
    fresh,
)
from pscdsl._src.discover.jax_classes import (
    Attributes,
    Unfit,
    attributes,
    attributes_of_instance,
    followed,
)
from pscdsl._src.discover.usage import FunctionStatement, Reader, Usage
from pscdsl._src.frontend.annotations import spec_of
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.records import Field, RecordClass
from pscdsl._src.frontend.values import Applicable, External, Marker, Poisoned
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import variable
from pscdsl.typing.dtypes import KEY
from pscdsl.typing.signatures import (
    ArraySpec,
    NoneSpec,
    RecordSpec,
    Spec,
    StaticSpec,
    arrays_of,
)
from pscdsl.typing.static_values import Instance

MARK: Final = "__"
"""Separates the names of an object and its attribute in the name of a type to find."""
MAX_ATTRIBUTES: Final = 48
"""An object with more of them is not tried."""
MAX_NESTED: Final = 5
_OF_ARRAYS: Final = frozenset("at mT aval block_until_ready weak_type sharding".split())
"""Attributes of JAX's arrays that NumPy's do not have."""
_OF_RECORDS: Final = frozenset("replace _replace _asdict _fields".split())
_KEYS: Final = frozenset("key keys rng rngs prng".split())
"""Last words of names that are random keys more often than not."""
_KNOWN: Final = frozenset({"static", "function"})
"""Kinds of arguments that have no value while a function is traced."""


class Opaque(Marker):
    """An argument of which nothing is known; it can be passed on."""


@dataclass
class Object:
    """A parameter, or an attribute, that has attributes: each a type to find, or an object."""

    cls: RecordClass
    parts: dict[str, str | Object] = field(default_factory=dict[str, "str | Object"])

    def spec(self, specs: Mapping[str, Spec]) -> RecordSpec:
        """Return the type with the types of its parts."""
        parts = (
            (name, specs[part] if isinstance(part, str) else part.spec(specs))
            for name, part in self.parts.items()
        )
        return RecordSpec(self.cls.name, tuple(parts), spelled=True)

    def names(self) -> Iterator[str]:
        """Yield the names of the types to find."""
        for part in self.parts.values():
            yield from (part,) if isinstance(part, str) else part.names()

    def add(self, name: str, part: str | Object) -> None:
        """Add an attribute."""
        self.parts[name] = part
        self.cls.fields = (*self.cls.fields, Field(name, None, None))


class Parameters:
    """The parameters of one function, with the evidence of its text about them."""

    def __init__(
        self,
        closure: Closure,
        owner: RecordClass | None = None,
        kind: str = "",
        prefix: str = "",
        traced: Container[str] = (),
    ) -> None:
        self.closure = closure
        self.traced = traced
        """Those whose values are not known while the function is traced."""
        self.prefix = prefix
        """The start of the names of the types to find."""
        self.frame = closure.annotation_frame()
        self.usages: dict[str, Usage] = {}
        self.hints: dict[str, Hint] = {}
        self.declared: dict[str, Spec] = {}
        self.objects: dict[str, Object] = {}
        self._by_class: dict[str, list[tuple[str, Object]]] = {}
        self.makes = owner if closure.name == "__init__" else None
        """The class whose constructor it is."""
        spec = closure.node.args
        declared = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs][self.makes is not None :]
        self.names = [each.arg for each in declared]
        named = attributes(closure.node)
        node = closure.node
        text = ast.get_docstring(node) if isinstance(node, FunctionStatement) else None
        documented = docstring_hints(text or "")
        takes_instance = self.makes is None and kind in ("method", "property")
        for index, each in enumerate(declared):
            own, tree = None, named.get(each.arg, {})
            if index == 0 and kind == "class":
                self._add(each.arg, StaticSpec("Any", (owner,)))
                continue
            if index == 0 and owner is not None and takes_instance:
                own, tree = owner, attributes_of_instance(owner, closure.node, each.arg)
            told = annotation_hint(each.annotation)
            told = told if told.kind else documented.get(each.arg, told)
            found = self._part(each.arg, tree, self._declared(each.annotation), told, own)
            if not isinstance(found, str):
                self.objects[each.arg] = found
        self._read()

    def _read(self) -> None:
        reader = Reader({name: Usage(name=name) for name in self.usages}, {}, 0)
        reader.read(self.closure.node)
        numbers = (x.value for x in ast.walk(self.closure.node) if isinstance(x, ast.Constant))
        integers = frozenset([x for x in numbers if type(x) is int])
        for name, usage in reader.found.items():
            self.usages[name] = replace(usage, numbers=integers)

    def _declared(self, annotation: ast.expr | None) -> Spec | None:
        try:
            return None if annotation is None else spec_of(self.frame, annotation)
        except (Failure, Poisoned):
            return None

    def _add(self, name: str, spec: Spec | None = None, told: Hint | None = None) -> None:
        """Add a type to find; or one that is declared, if that says enough."""
        self.usages[name] = Usage(name=name.rpartition(MARK)[2])
        self.hints[name] = told or Hint()
        if spec is not None and _says_enough(spec):
            self.declared[name] = spec

    def _part(
        self,
        name: str,
        tree: Attributes,
        spec: Spec | None,
        told: Hint,
        own: RecordClass | None = None,
    ) -> str | Object:
        """Add a parameter or an attribute; return its name, or the object that it is."""
        if isinstance(spec, RecordSpec) and isinstance(spec.record.definition, RecordClass):
            own = own or spec.record.definition
        if (own is None or name.count(MARK) > MAX_NESTED) and not is_object(tree):
            self._add(name, spec, told)
            return name
        return self._object(name, tree, own)

    def _object(self, name: str, tree: Attributes, own: RecordClass | None) -> Object:
        fields = {} if own is None else {each.name: each for each in own.fields}
        members = {} if own is None else followed(own)
        others = [x for x in tree if x not in fields and x not in members and x not in _OF_RECORDS]
        if len(fields) + len(others) > MAX_ATTRIBUTES:
            raise Unfit("an object with many attributes")
        if own is None:
            is_tuple = not {"_replace", "_asdict", "_fields"}.isdisjoint(tree)
            kind = "namedtuple" if is_tuple else "record"
            cls = RecordClass(name.rpartition(MARK)[2], self.closure.scope.module, kind, (), {})
        else:
            cls = RecordClass(
                *(own.title, own.module, own.kind, (), members),
                guard=own.guard,
                parents=(own,),
                construction=own.construction,
            )
        made = Object(cls)
        self._by_class.setdefault(cls.title, []).append((name, made))
        for each in (*fields, *others):
            spec, told = None, Hint()
            if each in fields and (annotation := fields[each].annotation) is not None:
                told = annotation_hint(annotation)
                try:
                    frame = fields[each].frame or self.frame
                    spec = spec_of(frame, annotation)
                except (Failure, Poisoned):
                    pass
            made.add(each, self._part(f"{name}{MARK}{each}", tree.get(each, {}), spec, told))
        return made

    def extend(self, owner: str, attribute: str) -> bool:
        """Add an attribute that objects of a class lack; return whether there are any."""
        changed = False
        for name, made in self._by_class.get(owner, ()):
            if attribute not in made.parts and len(made.parts) < MAX_ATTRIBUTES:
                made.add(attribute, f"{name}{MARK}{attribute}")
                self._add(f"{name}{MARK}{attribute}")
                changed = True
        if changed:
            self._read()
        return changed

    # What is tried.

    def all_usages(self) -> dict[str, Usage]:
        """Return the evidence for each type to find, by its full name."""
        return {self.prefix + name: usage for name, usage in self.usages.items()}

    def all_hints(self) -> dict[str, Hint]:
        """Return the evidence of annotations and docstrings, by full name."""
        return {self.prefix + name: hint for name, hint in self.hints.items()}

    def origins(self) -> dict[str, set[str]]:
        """Return the full names of the types to find that a name in the text stands for."""
        found = {name: {self.prefix + name} for name in self.usages}
        for name, made in self.objects.items():
            found[name] = {self.prefix + each for each in made.names()}
        return found

    def options(self, first: int) -> dict[str, tuple[Alternative, ...]]:
        """Return what is tried for each type to find, the likeliest first."""
        return {
            self.prefix + name: self._options(name, first + position)
            for position, name in enumerate(self.usages)
        }

    def _options(self, name: str, position: int) -> tuple[Alternative, ...]:
        if name in self.declared:
            return (Alternative("declared", self.declared[name], 0),)
        defaults: Mapping[str, object] = self.closure.defaults
        default = defaults.get(name, NO_DEFAULT)
        usage, hint, full = self.usages[name], self.hints[name], self.prefix + name
        word = name.rpartition(MARK)[2].lower().rpartition("_")[2]
        found: list[Alternative] = []
        if usage.key or word in _KEYS:
            found.append(Alternative("array", ArraySpec(KEY, ()), 0))
        if default is None:
            found.append(Alternative("none", NoneSpec(), 0))
        elif default is not NO_DEFAULT and not isinstance(default, bool | int | float | complex):
            known = default if _is_hashable(default) else External(full, library=True)
            found.append(Alternative("none", StaticSpec("Any", (known,)), 0))
        if usage.static and default is NO_DEFAULT:
            found.append(Alternative("static", size_spec(full), 0))
        if word == "shape" and not isinstance(default, int | tuple):
            shape = (fresh(full, "0"), fresh(full, "1"))
            found.append(Alternative("static", StaticSpec("Any", (shape,)), 1))
        if hint.kind == "int" and not usage.static and not isinstance(default, int):
            found.append(Alternative("array", array(INT), 0))
        others = NO_DEFAULT if isinstance(default, Applicable) else default
        rest = alternatives(full, usage, hint, others, position)
        found.extend(rest)
        if not usage.static and others is NO_DEFAULT:
            found.append(Alternative("static", size_spec(full), 5))
        if not usage.called:
            found.append(Alternative("function", FUNCTION, 5))
        found.append(Alternative("array", StaticSpec("Any", (Opaque(full),)), 6))
        if name.partition(MARK)[0] in self.traced:
            given = default if _is_hashable(default) else None
            found = [x for x in found if x.kind not in _KNOWN or _is_of(x.spec, given)]
        return tuple(dict.fromkeys(found))


def size_spec(name: str) -> StaticSpec:
    """Return the type of an integer that may be the size of an array, whatever it is."""
    return StaticSpec("int", (variable(name),), Instance(int))


def _is_of(spec: Spec, value: object) -> bool:
    """Return whether a value is the first that is tried."""
    return isinstance(spec, StaticSpec) and (spec.samples or ())[:1] == (value,)


def _is_hashable(value: object) -> bool:
    """Return whether a candidate may have a static value."""
    try:
        hash(StaticSpec("Any", (value,)))
    except TypeError:
        return False
    return True


def _says_enough(spec: Spec) -> bool:
    """Return whether an annotation says what is tried: arrays with shapes, functions, flags."""
    if isinstance(spec, StaticSpec):
        return True
    arrays = list(arrays_of(spec))
    return bool(arrays) and not any(each.python for each in arrays)


def is_object(tree: Attributes) -> bool:
    """Return whether no array has all of the attributes."""
    return any(not hasattr(np.ndarray, each) and each not in _OF_ARRAYS for each in tree)
