"""The class statements that have a meaning: a short list, and a refusal for anything else.

What a class is depends on what its metaclass, its bases and its decorators do, and a class body is
a program.  So a class is read only if its text says all there is to it: at most one base that has
a meaning, decorators that are known, and a body that binds each name once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pscdsl._src.frontend.interpreter.expressions import evaluate
from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.interpreter.records import RecordClass, base_kind
from pscdsl._src.frontend.ledger import fields
from pscdsl._src.frontend.text.source import with_defaults
from pscdsl.typing.codes.language import Unsupported
from pscdsl.typing.diagnostics import Failure

WITHOUT_MEANING = frozenset("builtins.object typing.Generic typing.Protocol abc.ABC".split())
"""Bases that leave a class as it is."""
ENUMERATIONS = frozenset("enum.Enum enum.Flag enum.IntEnum enum.StrEnum".split())
WITHOUT_EFFECT = frozenset(
    "typing.final typing.dataclass_transform typing.runtime_checkable".split()
)
"""Decorators that leave a class as it is."""
OPTIONS = frozenset(("frozen", "slots", "repr", "kw_only"))
"""Options of `dataclass` that say nothing of fields, but for `frozen`."""
DESCRIPTORS = {
    "builtins.property": "property",
    "builtins.staticmethod": "static",
    "builtins.classmethod": "class",
    "functools.cached_property": "property",
}
KERNEL = ("pscdsl.kernel", "psc.kernel")
KNOWN_DECORATORS = (
    *KERNEL,
    *("functools.cache", "functools.lru_cache"),
    *("abc.abstractmethod", "typing.override", "typing.no_type_check"),
)
"""Decorators that change nothing of the class; what they make of a method is not read."""

_MAKE = "declare fields; compute them in a function that makes the record"
REBUILDING = {
    "__init__": _MAKE,
    "__new__": _MAKE,
    "__getattribute__": "declare fields; properties compute what is not stored",
    "__setattr__": "records do not change; make a changed copy with `.replace`",
    "__init_subclass__": "a record that other records derive from has fields and methods only",
}
"""Methods that change what making or reading a record means."""
_ARITHMETIC = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod".split()
CALLED_BY_SYNTAX = frozenset(
    [f"__{side}{name}__" for name in _ARITHMETIC for side in ("", "r", "i")]
    + [f"__{name}__" for name in "neg pos abs invert eq ne lt le gt ge hash bool len".split()]
    + [f"__{name}__" for name in "iter getitem contains repr str format".split()]
)
"""Methods that are refused where syntax calls them; else they are of no matter."""
OF_RECORDS = CALLED_BY_SYNTAX | {"__call__", "__post_init__", "__doc__", "__slots__"}
OF_ENUMERATIONS = frozenset("__eq__ __ne__ __hash__ __str__ __repr__ __format__ __doc__".split())
OF_CLASSES = frozenset("__init_subclass__ __set_name__ __class_getitem__ __prepare__".split())
"""Methods of a class that say what it, or another one, is made into."""
PLACES = frozenset("__module__ __qualname__ __dict__ __annotations__ __class__ __bases__".split())


@dataclass
class ClassText:
    """What a class statement says."""

    node: ast.ClassDef
    kind: str
    """record, namedtuple, dataclass, precord, enumeration or namespace"""
    parent: RecordClass | None = None
    parent_node: ast.expr | None = None
    base: str = ""
    """The enumeration of Python's that it derives from."""
    dims: ast.expr | None = None
    keywords: bool = False
    """Whether its own fields are given by their names alone."""
    fields: dict[str, ast.AnnAssign | ast.Assign] = field(
        default_factory=dict[str, "ast.AnnAssign | ast.Assign"]
    )
    """Annotated names, and what a PRecord assigns."""
    values: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    methods: dict[str, tuple[str, ast.FunctionDef]] = field(
        default_factory=dict[str, tuple[str, ast.FunctionDef]]
    )
    """Each with its kind: method, property, static, class, or unread."""
    kernels: set[str] = field(default_factory=set[str])
    """The methods that are kernels."""


def refuse(frame: Frame, node: ast.AST, what: str, rewrite: str = "leave it out") -> Failure:
    """The refusal of a part of a class statement."""
    return Failure(Unsupported(what=what, rewrite=rewrite, span=frame.span(node)))


def class_text(frame: Frame, node: ast.ClassDef) -> ClassText:
    """What a class statement says; a Failure if that is not all there is to the class."""
    return _Reader(frame, node).read(**fields(node))


_VALUES = ("__doc__", "__slots__", "__hash__", "__invariant__")


class _Reader:
    """Reads one class statement."""

    def __init__(self, frame: Frame, node: ast.ClassDef) -> None:
        self.frame = frame
        self.node = node
        self.text = ClassText(node, "namespace")
        self.bound: dict[str, ast.AST] = {}
        self.inherited: frozenset[str] = frozenset()

    def value(self, node: ast.expr) -> Any:
        """What an expression of the class statement stands for."""
        frame = self.frame
        return evaluate(Frame(Session(None), frame.source, frame.scope, frame.outer), node)

    def named(self, node: ast.expr) -> str:
        """By which name an expression is known."""
        return str(getattr(self.value(node), "name", ""))

    def read(
        self,
        name: str,
        bases: list[ast.expr],
        keywords: list[ast.keyword],
        body: list[ast.stmt],
        decorator_list: list[ast.expr],
    ) -> ClassText:
        """The class statement."""
        self._bases(bases)
        self._decorators(name, decorator_list)
        for keyword in keywords:
            if keyword.arg != "dims" or self.text.kind != "record":
                what = "a metaclass of a class" if keyword.arg == "metaclass" else "this argument"
                rewrite = "derive from `psc.Record`" if keyword.arg == "metaclass" else ""
                raise refuse(self.frame, keyword, f"{what} of a class", rewrite or "leave it out")
            self.text.dims = keyword.value
        for statement in body:
            self._statement(statement)
        return self.text

    def _bases(self, bases: list[ast.expr]) -> None:
        text = self.text
        found: list[ast.expr] = []
        for base in bases:
            head = base.value if isinstance(base, ast.Subscript) else base
            value = self.value(head)
            name = str(getattr(value, "name", ""))
            if isinstance(value, RecordClass) and value.kind != "namespace":
                text.parent, text.parent_node, text.kind = value, base, value.kind
            elif base_kind(value) is not None:
                text.kind = base_kind(value) or ""
            elif name in ENUMERATIONS:
                text.kind, text.base = "enumeration", name
            elif not isinstance(value, RecordClass) and name in WITHOUT_MEANING:
                continue
            else:
                shown = self.frame.source.text_of(base)
                raise refuse(self.frame, base, f"the base class `{shown}`", "use a function of it")
            found.append(base)
        if len(found) > 1 or (text.kind == "enumeration" and len(bases) > 1):
            what = "a class with several base classes"
            raise refuse(self.frame, bases[-1], what, "derive from one; use functions for the rest")
        if text.parent is not None:
            self.inherited = frozenset(text.parent.field_names())

    def _decorators(self, name: str, decorators: list[ast.expr]) -> None:
        made = False
        for decorator in decorators:
            head = decorator.func if isinstance(decorator, ast.Call) else decorator
            known = self.named(head)
            if known in WITHOUT_EFFECT:
                continue
            if known != "dataclasses.dataclass" or self.text.kind not in ("namespace", "dataclass"):
                shown = self.frame.source.text_of(head)
                raise refuse(self.frame, decorator, f"the decorator `{shown}` of a class")
            if not self._is_frozen(decorator):
                what, rewrite = f"the mutable dataclass `{name}`", "@dataclass(frozen=True)"
                raise refuse(self.frame, self.node, what, rewrite)
            self.text.kind, made = "dataclass", True
        declares = any(isinstance(each, ast.AnnAssign) for each in self.node.body)
        if self.text.kind == "dataclass" and not made and declares:
            what = f"fields of `{name}`, which is no dataclass itself,"
            raise refuse(self.frame, self.node, what, "decorate it with `@dataclass(frozen=True)`")

    def _is_frozen(self, decorator: ast.expr) -> bool:
        options: dict[str, Any] = {}
        if isinstance(decorator, ast.Call):
            for each in decorator.keywords:
                constant = isinstance(each.value, ast.Constant)
                if each.arg not in OPTIONS or not constant or decorator.args:
                    raise refuse(self.frame, each, f"`{each.arg}=` of a dataclass")
                options[each.arg] = self.value(each.value)
        self.text.keywords = options.get("kw_only") is True
        return options.get("frozen") is True

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                self._annotated(name, statement, value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._expression(value)
                self._bind(name, statement)
                if self.text.kind == "precord" and isinstance(value, ast.Call):
                    self._require_options(
                        value, {"type", "initial", "mandatory", "factory", "invariant"}, 1
                    )
                    self.text.fields[name] = statement
                else:
                    self._require_value(name, statement)
                    self.text.values[name] = value
            case ast.FunctionDef():
                self._method(statement, **fields(statement))
            case _:
                what = f"a statement of this kind (`{type(statement).__name__}`) in a class"
                raise refuse(self.frame, statement, what, "fields, constants and methods only")

    def _bind(self, name: str, node: ast.AST) -> None:
        """Bind a name of the class, which has a plain name and is bound once."""
        frame, kind = self.frame, self.text.kind
        if name in self.bound:
            raise refuse(frame, node, f"`{name}`, which the class binds twice,", "bind it once")
        if name in self.inherited:
            what = f"`{name}`, which is a field of the base class already,"
            raise refuse(frame, node, what, "give it another name")
        if name.startswith("__"):
            dunder = name.endswith("__")
            if kind == "enumeration":
                known = name in OF_ENUMERATIONS
            elif kind == "namespace":
                known = name not in OF_CLASSES | PLACES
            else:
                known = name in OF_RECORDS or (kind == "precord" and name == "__invariant__")
            if not dunder or not known:
                rewrite = REBUILDING.get(name, "one underscore, or none")
                raise refuse(frame, node, f"`{name}` of a class", rewrite)
        elif kind == "enumeration" and name.startswith("_"):
            raise refuse(frame, node, f"`{name}` of an enumeration")
        self.bound[name] = node

    def _require_value(self, name: str, node: ast.AST) -> None:
        """Names with values that Python looks at are methods, or are not there."""
        if name.startswith("__") and name not in _VALUES:
            raise refuse(self.frame, node, f"a value for `{name}` of a class")
        parent = self.text.parent
        if parent is not None and parent.kind == "namedtuple":
            what = "a value in a class that derives from a NamedTuple class"
            raise refuse(self.frame, node, what, "a method, or a constant of the module")

    def _expression(self, node: ast.expr) -> None:
        """Refuse an expression that reads names of the class body, or binds some."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and each.id in self.bound:
                what = f"`{each.id}` of the class in its own body"
                raise refuse(self.frame, each, what, "a constant of the module")
            if isinstance(each, ast.NamedExpr):
                raise refuse(self.frame, each, "`:=` in a class", "a constant of the module")

    def _annotated(self, name: str, node: ast.AnnAssign, value: ast.expr | None) -> None:
        text, parent = self.text, self.text.parent
        if value is not None:
            self._expression(value)
        self._bind(name, node)
        if text.kind in ("namespace", "enumeration"):
            if value is not None:
                text.values[name] = value
            return
        if parent is not None and parent.kind == "namedtuple":
            what = "a field of a class that derives from a NamedTuple class"
            raise refuse(self.frame, node, what, "a NamedTuple class of its own")
        head = node.annotation
        known = self.named(head.value if isinstance(head, ast.Subscript) else head)
        shown = ast.unparse(node.annotation)
        if known == "typing.ClassVar":
            if value is not None:
                text.values[name] = value
            return
        if "ClassVar" in shown or known in ("dataclasses.InitVar", "dataclasses.KW_ONLY"):
            raise refuse(self.frame, node, f"the annotation `{shown}` of a field", "a type")
        if isinstance(value, ast.Call) and self.named(value.func) == "dataclasses.field":
            self._require_options(value, {"default", "default_factory", "kw_only"}, 0)
        text.fields[name] = node

    def _require_options(self, call: ast.Call, known: set[str], positional: int) -> None:
        """Refuse an argument of `field(…)` whose meaning is not modelled."""
        for each in call.keywords:
            if each.arg not in known:
                raise refuse(self.frame, each, f"`{each.arg}=` of a field")
        if len(call.args) > positional or any(isinstance(x, ast.Starred) for x in call.args):
            raise refuse(self.frame, call, "these arguments of a field")

    def _method(
        self,
        node: ast.FunctionDef,
        name: str,
        args: ast.arguments,
        body: list[ast.stmt],
        decorator_list: list[ast.expr],
        returns: ast.expr | None,
    ) -> None:
        del body, returns  # they are read where the method is called
        for _, default in with_defaults(args):
            self._expression(default)
        kind = "method"
        *outer, inner = [self._decorator(each) for each in decorator_list] or [""]
        if inner in KERNEL and outer in ([], ["builtins.staticmethod"]):
            self.text.kernels.add(name)
            kind = "static" if outer else "method"
        elif inner in DESCRIPTORS and not outer:
            kind = DESCRIPTORS[inner]
        elif inner:
            kind = "unread"
        if self.text.kind == "enumeration" and kind == "property":
            raise refuse(self.frame, node, "a property of an enumeration", "a function of a member")
        if self.text.kind == "enumeration" and name in ("name", "value"):
            raise refuse(self.frame, node, f"`{name}` of an enumeration")
        for each in _private(node):
            raise refuse(self.frame, each, "a name with two underscores", "one underscore, or none")
        self._bind(name, node)
        self.text.methods[name] = (kind, node)

    def _decorator(self, decorator: ast.expr) -> str:
        """The name of a method's decorator that is known; a Failure if it is not."""
        self._expression(decorator)
        known = self.named(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if known not in KNOWN_DECORATORS and known not in DESCRIPTORS:
            shown = self.frame.source.text_of(decorator)
            raise refuse(self.frame, decorator, f"the decorator `{shown}` of a method")
        return known


def _private(node: ast.AST) -> Iterator[ast.AST]:
    """Names that a class mangles."""
    for each in ast.walk(node):
        name = each.id if isinstance(each, ast.Name) else getattr(each, "attr", "")
        if isinstance(each, ast.arg | ast.keyword):
            name = each.arg or ""
        if isinstance(name, str) and name.startswith("__") and not name.endswith("__"):
            yield each
