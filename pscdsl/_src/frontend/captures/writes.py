"""The certain writes in a project: an index of each file, by the variable that is written.

A write counts only if the text shows its target; the effects of a function on its arguments are not
examined. Each file is indexed once, when one of its names is looked up.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pscdsl._src.frontend.captures.resolution import (
    EACH,
    LIBRARY,
    UNKNOWN,
    Access,
    Names,
    Place,
    Reference,
    SourceNames,
    constant,
)
from pscdsl._src.frontend.purity import DICT_METHODS, LIST_METHODS, SET_METHODS, kind_of, parts
from pscdsl._src.frontend.text.source import FunctionNode, FunctionStatement, Source
from pscdsl._src.frontend.values import RecordValue
from pscdsl._src.language.writes import named
from pscdsl.numpy.methods import IN_PLACE
from pscdsl.typing.diagnostics import Span
from pscdsl.typing.python_containers import is_dict, is_sequence

if TYPE_CHECKING:
    from pscdsl._src.frontend.modules.files import Files
    from pscdsl._src.frontend.values import AnyValue

BIND: Final = "bind"
"""A variable or an attribute is rebound or unbound."""
_ITEMS: Final = "items"
_OPERATOR: Final = "operator"
_ARGUMENT: Final = "argument"
"""Passed to a function that writes it."""
_OF_ARRAY: Final = "array"
"""Passed to a function that writes arrays, and copies anything else."""
_DUNDERS: Final = frozenset("__setitem__ __delitem__ __iadd__ __imul__ __ior__ __isub__".split())
_METHODS: Final[Mapping[type, frozenset[str]]] = {
    list: frozenset((*LIST_METHODS, *_DUNDERS)),
    dict: frozenset((*DICT_METHODS, *_DUNDERS)),
    set: SET_METHODS | _DUNDERS,
    np.ndarray: (frozenset(IN_PLACE) - {"setflags"}) | _DUNDERS,
}
_ALL_METHODS: Final = frozenset[str]().union(*_METHODS.values())
_LAYOUT: Final = frozenset("shape dtype strides flat real imag data".split())
"""Attributes of an array that can be stored."""
_WRITING: Final = {
    **{f"numpy.{name}": (0, key, _OF_ARRAY) for name, key in (("copyto", "dst"), ("put", "a"))},
    **{f"numpy.{name}": (0, "arr", _OF_ARRAY) for name in ("place", "put_along_axis")},
    **{f"numpy.{name}": (0, "a", _OF_ARRAY) for name in ("putmask", "fill_diagonal")},
    **{f"{name}.shuffle": (0, "x", _ARGUMENT) for name in ("random", "numpy.random")},
    **{
        f"operator.{name}": (0, "a", _ARGUMENT)
        for name in (
            "setitem delitem iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor "
            "iconcat ilshift irshift"
        ).split()
    },
    **{
        f"heapq.{name}": (0, "heap", _ARGUMENT)
        for name in "heappush heappop heapify heapreplace heappushpop".split()
    },
    **{f"bisect.{name}": (0, "a", _ARGUMENT) for name in "insort insort_left insort_right".split()},
}
"""Functions that write an argument: its position, its name, and the required action."""
_NAMES: Final = _ALL_METHODS.union(
    (name.rpartition(".")[2] for name in _WRITING),
    "__delattr__ __setattr__ at delattr delitem dict object patch setattr setitem shuffle".split(),
)
"""The last parts of the names of functions that write."""
_GENERATORS: Final = frozenset(
    "numpy.random.default_rng numpy.random.RandomState numpy.random.Generator random.Random".split()
)
_MOST_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Write:
    """A place where a variable, or a part of its value, is certainly written."""

    place: Place
    name: str
    steps: tuple[Access, ...]
    """The path from the variable's value to the written part."""
    action: str
    span: Span
    text: str
    at_import: bool
    """Whether it runs with the statements of its module."""

    def rebinds(self) -> bool:
        """Return whether the variable itself is rebound."""
        return self.action == BIND and not self.steps

    def into(self, value: AnyValue) -> bool:
        """Return whether it changes the value of the variable."""
        steps = self.steps if self.action != BIND else self.steps[:-1]
        found: list[AnyValue] = [value]
        for step in steps:
            found = [part for each in found for part in _after(each, step)]
        if self.action == BIND:
            return bool(self.steps and found) and all(_has(each, self.steps[-1]) for each in found)
        inner = steps[:-1] if self.action == _ITEMS else steps
        if any(step == Access("view", "flat") for step in inner):
            return False  # an iterator, of which items alone can be stored
        return bool(found) and all(_takes(each, self.action) for each in found)


def _has(value: AnyValue, step: Access) -> bool:
    """Return whether a value has an attribute that is part of its state."""
    if isinstance(value, np.ndarray):
        return step.key in _LAYOUT
    return isinstance(value, RecordValue) and step.key in value.fields


def _takes(value: AnyValue, action: str) -> bool:
    """Return whether an action changes a value in place."""
    if kind_of(value) is None:
        return False
    if action == _OF_ARRAY:
        return isinstance(value, np.ndarray)
    for kind, methods in _METHODS.items():
        if isinstance(value, kind):
            return action in (_ITEMS, _OPERATOR, _ARGUMENT) or action in methods
    return False


def _after(value: AnyValue, step: Access) -> list[AnyValue]:
    """Return the values that a step leads to; none if the step is invalid, or unknown."""
    key: Any = step.key
    match value, step.kind:
        case np.ndarray(), kind if value.__class__ is np.ndarray:
            return _part_of_array(value, kind, key)
        case RecordValue(fields=fields), "attribute" if key in fields:
            return [fields[key]]
        case _, "item" if is_sequence(value) or is_dict(value):
            if key is UNKNOWN or key is EACH:
                return list(parts(value))
            try:
                return [] if isinstance(key, slice) else [value[key]]
            except (LookupError, TypeError):
                return []
        case _:
            return []


def _part_of_array(value: np.ndarray[Any, Any], kind: str, key: Any) -> list[AnyValue]:
    """Return the view of an array that a step gives; none if it is a copy or a scalar."""
    if kind == "view":
        if key in ("reshape", "ravel", "ascontiguousarray", "view", "flat"):
            return [value.reshape(-1)] if value.flags.c_contiguous else []
        return [value.T]
    if kind != "item" or key is UNKNOWN:
        return []
    try:
        part = value[0 if key is EACH else key]
    except (LookupError, TypeError, ValueError):
        return []
    return [part] if part.__class__ is np.ndarray and np.may_share_memory(part, value) else []


class Writes:
    """The writes of all files of a check."""

    def __init__(self, files: Files, added: Mapping[str, Source] | None = None) -> None:
        self._files = files
        self._added = dict(added or {})
        self.sources = SourceNames(files, self._added)
        self._indices: dict[str, _WriteIndex] = {}
        self._digests: dict[str, list[tuple[str, str]]] = {}
        self._named: dict[str, dict[Place, list[Write]]] = {}
        self._patches: dict[str, list[Write]] = {}
        self.known: dict[object, Any] = {}
        """The results of guards for each variable."""

    def of(self, place: Place, name: str) -> list[Write]:
        """Return the writes to a variable."""
        if name not in self._named:
            found = self._named[name] = dict[Place, list[Write]]()
            for each in self._indices_of(self._files.writing(f"writes {name}")):
                for write in each.writes.get(name, ()):
                    found.setdefault(write.place, []).append(write)
        return self._named[name].get(place, [])

    def within(self, place: str, name: str) -> list[Write]:
        """Return the writes to a variable of a module in the text of the module."""
        found = self._index(place).writes.get(name, ())
        return [each for each in found if each.place == place]

    def patches(self, library: str) -> list[Write]:
        """Return the writes to attributes of a library."""
        if library not in self._patches:
            self._patches[library] = [
                write
                for each in self._indices_of(self._files.writing(f"patches {library}"))
                for name, found in each.writes.items()
                if name.startswith(f"{library}.")
                for write in found
                if write.place == LIBRARY
            ]
        return self._patches[library]

    def digests(self, path: str) -> list[tuple[str, str]]:
        """Return the names that a file writes, and a digest of the writes to each."""
        place = self._files.place(path)
        if place not in self._digests:
            self._digests[place] = [
                (name, _digest(each for each in found if isinstance(each.place, str)))
                for name, found in sorted(self._index(place).writes.items())
            ]
        return self._digests[place]

    def consulted(self, path: str) -> tuple[str, ...] | None:
        """Return the files on which the names of a file depend; None if it was not read."""
        place = self._files.place(path)
        return self.sources.consulted(place) if place in self._indices else None

    def _indices_of(self, paths: Iterable[str]) -> Iterator[_WriteIndex]:
        places = dict.fromkeys((*self._added, *map(self._files.place, paths)))
        yield from map(self._index, places)

    def _index(self, place: str) -> _WriteIndex:
        if place not in self._indices:
            self._indices[place] = _WriteIndex(self.sources.names(place))
        return self._indices[place]


def _digest(writes: Iterable[Write]) -> str:
    texts = [repr((each.place, each.name, each.action, each.span, each.text)) for each in writes]
    text = "\0".join(sorted(texts)).encode(errors="surrogateescape")
    return blake2b(text, digest_size=16).hexdigest()


class _WriteIndex:
    """The writes in one file, by the name of the target."""

    def __init__(self, names: Names | None) -> None:
        self.writes: dict[str, list[Write]] = {}
        if names is None:
            return
        self._names = names
        self._source = names.source
        self._parents = names.uses.parents
        index = names.uses
        inner = (each for each in self._parents if isinstance(each, FunctionNode))
        self._around: set[ast.AST | None] = {index.function_of(each) for each in inner}
        self._by_kernels = names.sources.files.with_kernels
        for node in self._parents:
            match node:
                case ast.Call():
                    self._call(node)
                case ast.Attribute(ctx=ast.Store() | ast.Del()):
                    self._store(node)
                case ast.Subscript(ctx=ast.Store() | ast.Del()):
                    self._store(node)
                case ast.AugAssign(target=ast.Name() as target):
                    self._into(target, _OPERATOR, node)
                case ast.Global() | ast.Nonlocal():
                    self._outer(node)
                case _:
                    pass
        for found in self.writes.values():
            found.sort(key=lambda each: (each.span.line, each.span.column))

    def _add(self, ref: Reference, action: str, node: ast.AST) -> None:
        if isinstance(ref.place, FunctionNode) and ref.place not in self._around:
            return  # only the function itself can see it
        if self._names.in_kernel(node):
            return
        shown = self._shown(node)
        write = Write(
            *(ref.place, ref.name, ref.steps, action, self._source.span(node), shown),
            at_import=self._names.uses.function_of(node) is None,
        )
        self.writes.setdefault(ref.name, []).append(write)

    def _shown(self, node: ast.AST) -> str:
        text = self._source.text_of(node)
        if len(text) > _MOST_SHOWN and isinstance(node, ast.Call):
            text = f"{self._source.text_of(node.func)}(…)"
        return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"

    def _into(self, owner: ast.expr, action: str, node: ast.AST) -> None:
        """Record a write into the value of an expression."""
        for ref in self._names.refs(owner):
            if ref.place != LIBRARY:
                self._add(ref, action, node)

    def _bind(self, owners: Iterable[Reference], name: AnyValue, node: ast.AST) -> None:
        """Record that an attribute of a module, a class, or another value is rebound."""
        if isinstance(name, str):
            for owner in owners:
                for ref in self._names.sources.attribute(owner, name, stored=True):
                    self._add(ref, BIND, node)

    def _store(self, node: ast.Attribute | ast.Subscript) -> None:
        statement = self._parents.get(node)
        if not isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            statement = node
        if isinstance(node, ast.Attribute):
            self._bind(self._names.refs(node.value), node.attr, statement)
        elif namespace := self._names.namespace(node.value):
            self._bind(namespace, constant(node.slice), statement)
        else:
            self._into(node.value, _ITEMS, statement)

    def _outer(self, node: ast.Global | ast.Nonlocal) -> None:
        """Record the global and nonlocal names that a function binds."""
        index = self._names.uses
        function = index.function_of(node)
        if function is None:
            return
        for name in node.names:
            place: Place | None = self._names.place
            if isinstance(node, ast.Nonlocal):
                place = index.owner(function, name)
            if place is not None and any(
                index.function_of(each) is function for each in self._names.stores(name)
            ):
                self._add(Reference(place, name), BIND, node)

    def _call(self, node: ast.Call) -> None:
        function = node.func
        if not isinstance(function, ast.Name | ast.Attribute) or not self._may_write(node):
            return
        refs = self._names.refs(function)
        for ref in refs:
            if ref.place == LIBRARY:
                if ref.module is None:
                    self._of_library(ref.name, node)
            elif (method := ref.method()) in _ALL_METHODS:
                if method != "byteswap" or _is_in_place(node):
                    self._add(Reference(ref.place, ref.name, ref.steps[:-1]), method, node)
            elif self._by_kernels and not ref.steps and isinstance(ref.place, str):
                self._kernel(ref, node)
        if isinstance(function, ast.Attribute):
            self._method(function, node)

    def _may_write(self, node: ast.Call) -> bool:
        """Return whether a call may be a relevant one, by the last part of its name."""
        if not isinstance(node.func, ast.Attribute) or self._by_kernels:
            return True
        name = node.func.attr
        ufunc = getattr(np, name, None)
        if isinstance(ufunc, np.ufunc) and len(node.args) > ufunc.nin:
            return True
        return name in _NAMES or any(each.arg == "out" for each in node.keywords)

    def _of_library(self, name: str, node: ast.Call) -> None:
        """Record a call of a library function, by its full name."""
        arguments = node.args
        if any(isinstance(each, ast.Starred) for each in arguments):
            return
        if name in _WRITING or (name.startswith("numpy.") and name.endswith(".at")):
            position, keyword, action = _WRITING.get(name, (0, "a", _OF_ARRAY))
            for each in _given(node, position, keyword):
                namespace = self._names.namespace(each)
                if namespace and len(arguments) > 1:
                    self._bind(namespace, constant(arguments[1]), node)
                else:
                    self._into(each, action, node)
            return
        if name.startswith("numpy."):
            self._out(name, node)
            return
        match name.removeprefix("unittest."), arguments:
            case (
                "builtins.setattr" | "builtins.delattr" | "mock.patch.object",
                [owner, attribute, *_],
            ):
                self._bind(self._names.refs(owner), constant(attribute), node)
            case "mock.patch", [ast.Constant(value=str(text)), *_]:
                self._by_name(text, node)
            case "mock.patch.dict", [owner, *_]:
                self._into(owner, _ITEMS, node)
            case _, [owner, *_]:
                module, _, method = name.rpartition(".")
                if module in ("builtins.list", "builtins.dict", "builtins.set"):
                    if method in _ALL_METHODS:
                        self._into(owner, method, node)
            case _:
                pass

    def _out(self, name: str, node: ast.Call) -> None:
        """Record the `out=` argument of a NumPy function, by keyword or by position."""
        outs = [each.value for each in node.keywords if each.arg == "out"]
        ufunc = getattr(np, name.removeprefix("numpy."), None)
        if isinstance(ufunc, np.ufunc):
            outs += node.args[ufunc.nin :]
        for each in outs:
            for inner in each.elts if isinstance(each, ast.Tuple) else [each]:
                self._into(inner, _OF_ARRAY, node)

    def _by_name(self, text: str, node: ast.Call) -> None:
        """Record `patch("lib.S", …)`, which names the attribute in a text."""
        if "." not in text:
            return
        first, *inner, last = text.split(".")
        owners: tuple[Reference, ...] = (self._names.sources.module(self._names.place, first),)
        for each in inner:
            owners = tuple(
                ref for owner in owners for ref in self._names.sources.attribute(owner, each)
            )
        self._bind(owners, last, node)

    def _method(self, function: ast.Attribute, node: ast.Call) -> None:
        """Record a call of a method that stores by a name, or into an argument."""
        owner, refs = function.value, self._names.refs
        match function.attr, node.args:
            case "setitem" | "delitem", [target, *_] if self._patches(owner):
                self._into(target, _ITEMS, node)
            case "setattr" | "delattr", [ast.Constant(value=str(text)), *_] if self._patches(owner):
                self._by_name(text, node)
            case "setattr" | "delattr", [target, attribute, *_] if self._patches(owner):
                self._bind(refs(target), constant(attribute), node)
            case "shuffle", [target, *_] if self._made_by(owner) in _GENERATORS:
                self._into(target, _ARGUMENT, node)
            case "__setattr__" | "__delattr__", [ast.Constant(value=str(name)), *_]:
                self._bind(refs(owner), name, node)
            case "__setattr__" | "__delattr__", [target, attribute, *_]:
                self._bind(refs(target), constant(attribute), node)  # by `object.__setattr__`
            case (
                "update" | "__setitem__" | "pop" | "setdefault" | "__delitem__" as method,
                arguments,
            ) if namespace := self._names.namespace(owner):
                positional = [] if method == "update" else arguments[:1]
                for key in (*(each.arg for each in node.keywords), *map(constant, positional)):
                    self._bind(namespace, key, node)
            case _:
                pass

    def _patches(self, owner: ast.expr) -> bool:
        """Return whether an expression is the fixture `monkeypatch`, or a context that it makes."""
        if not isinstance(owner, ast.Name):
            return False
        if owner.id == "monkeypatch":
            return True
        for each in self._names.stores(owner.id):
            match self._parents.get(each):
                case ast.withitem(
                    context_expr=ast.Call(
                        func=ast.Attribute(value=ast.Name(id="monkeypatch"), attr="context")
                    )
                ):
                    return True
                case _:
                    pass
        return False

    def _made_by(self, node: ast.expr) -> str:
        """Return the full name of the library function that made a value."""
        if isinstance(node, ast.Name):
            scope = self._names.uses.owner(node, node.id)
            found = self._names.bindings(scope, node.id)
            made = self._parents.get(found[0]) if len(found) == 1 else None
            node = made.value if isinstance(made, ast.Assign) else node
        return self._names.qualified(node.func) if isinstance(node, ast.Call) else ""

    def _kernel(self, ref: Reference, node: ast.Call) -> None:
        """Record a call of a kernel that declares to write to its arguments."""
        names = self._names.sources.names(str(ref.place))
        found = [] if names is None else names.bindings(None, ref.name)
        if names is None or len(found) != 1 or not isinstance(found[0], FunctionStatement):
            return
        decorator = names.kernel_decorator(found[0])
        positions = [each.arg for each in (*found[0].args.posonlyargs, *found[0].args.args)]
        for option in decorator.keywords if isinstance(decorator, ast.Call) else ():
            written: Any = constant(option.value) if option.arg == "writes" else ()
            for name in map(str, named(written) if written is not UNKNOWN else ()):
                position = positions.index(name) if name in positions else len(node.args)
                for each in _given(node, position, name):
                    self._into(each, _OF_ARRAY, node)


def _given(node: ast.Call, position: int, keyword: str) -> Iterator[ast.expr]:
    """Yield the arguments that a call passes to a parameter."""
    if position < len(node.args):
        yield node.args[position]
    yield from (each.value for each in node.keywords if each.arg == keyword)


def _is_in_place(node: ast.Call) -> bool:
    """Return whether a call of `byteswap` writes in place."""
    return any(constant(each) is True for each in _given(node, 0, "inplace"))
