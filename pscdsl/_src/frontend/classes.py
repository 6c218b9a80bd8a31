"""Class statements that have a meaning, as record classes, and a refusal for anything else."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from pscdsl._src.frontend.annotations import TypeVariable
from pscdsl._src.frontend.class_rules import rules
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.interpreter.constructors import Construction
from pscdsl._src.frontend.interpreter.expressions import closure, evaluate, known_or_why
from pscdsl._src.frontend.interpreter.frames import Frame, Session, fields
from pscdsl._src.frontend.interpreter.records import Field, Member, RecordClass, base_kind
from pscdsl._src.frontend.interpreter.writing import definition_in
from pscdsl._src.frontend.modules.scope import decorated
from pscdsl._src.frontend.purity import external_use, external_value, hashable, is_closed
from pscdsl._src.frontend.text.source import called, items, subscripted, with_defaults
from pscdsl._src.frontend.values import (
    AnyValue,
    Applicable,
    Builtin,
    EnumMember,
    External,
    StaticFunction,
    describe,
)
from pscdsl._src.ir.builder import Builder
from pscdsl._src.language.meanings import MEANINGS
from pscdsl.typing.codes.language import BadArguments, NotCallable, Unsupported
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_sequence

# The class statements that have a meaning: a short list, and a refusal for anything else.
#
# The meaning of a class depends on its metaclass, its bases and its decorators, and a class body is
# a program. So a class is read only if its text determines it completely: at most one base with a
# meaning, known decorators, and a body that binds each name once.


NO_KEY_MISSING = 'let each key be there; `f32["n"] | None` may have None'
WITHOUT_MEANING = frozenset("builtins.object typing.Generic typing.Protocol abc.ABC".split())
"""Bases that leave a class as it is."""
ENUMERATIONS = frozenset("enum.Enum enum.Flag enum.IntEnum enum.StrEnum".split())
OPTIONS = frozenset(("frozen", "slots", "repr", "kw_only", "order"))
"""Options of `dataclass` that do not affect fields, except `frozen`; records are not compared."""
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
"""Decorators that do not change the class; the methods that they wrap are not read."""

_MAKE = "declare fields; compute them in a function that makes the record"
REBUILDING = {
    "__init__": _MAKE,
    "__new__": _MAKE,
    "__getattribute__": "declare fields; properties compute what is not stored",
    "__setattr__": "records do not change; make a changed copy with `.replace`",
    "__init_subclass__": "a record that other records derive from has fields and methods only",
}
"""Methods that change how records are made or read."""
OF_DESCRIPTORS = frozenset("__get__ __set__ __set_name__ __prepare__".split())
"""Methods that change the meaning of attributes of another class."""
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
"""Methods that change how a class, or a class derived from it, is created."""
PLACES = frozenset("__module__ __qualname__ __dict__ __annotations__ __class__ __bases__".split())


@dataclass
class ClassText:
    """The contents of a class statement."""

    node: ast.ClassDef
    kind: str
    """record, namedtuple, dataclass, precord, typeddict, enumeration or namespace"""
    parent: RecordClass | None = None
    parent_node: ast.expr | None = None
    base: str = ""
    """The enumeration of Python's that it derives from."""
    dims: ast.expr | None = None
    keywords: bool = False
    """Whether its own fields are given by their names alone."""
    generates_init: bool = False
    """Whether Python makes a constructor of its fields; of JAX programs."""
    has_unseen_bases: bool = False
    """Whether it inherits from classes that are not followed; of JAX programs."""
    slots: bool = False
    """Whether it is a dataclass whose instances have slots and no `__dict__`."""
    fields: dict[str, ast.AnnAssign | ast.Assign] = field(
        default_factory=dict[str, "ast.AnnAssign | ast.Assign"]
    )
    """Annotated names, and the assignments of a PRecord."""
    values: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    methods: dict[str, tuple[str, ast.FunctionDef]] = field(
        default_factory=dict[str, tuple[str, ast.FunctionDef]]
    )
    """Each with its kind: method, property, static, class, or unread."""
    kernels: set[str] = field(default_factory=set[str])
    """The methods that are kernels."""


def refuse(frame: Frame, node: ast.AST, what: str, rewrite: str = "leave it out") -> Failure:
    """Return the refusal of a part of a class statement."""
    return Failure(Unsupported(what=what, rewrite=rewrite, span=frame.span(node)))


def class_text(frame: Frame, node: ast.ClassDef) -> ClassText | None:
    """Read a class statement; a Failure if its text does not determine the class.

    None for a class of a JAX program that is unknown as the class of another library is, from which
    it derives.
    """
    reader = _Reader(frame, node)
    try:
        reader.read(**fields(node, reader.read))
    except Failure:
        if not reader.text.has_unseen_bases:
            raise
        return None
    return reader.text


_VALUES = ("__doc__", "__slots__", "__hash__", "__invariant__")


class _Reader:
    """Reads one class statement."""

    def __init__(self, frame: Frame, node: ast.ClassDef) -> None:
        self.frame = frame
        self.node = node
        self.rules = rules(frame.scope.is_jax)
        self.text = ClassText(node, self.rules.plain)
        self.bound: dict[str, ast.AST] = {}
        self.inherited: frozenset[str] = frozenset()

    def value(self, node: ast.expr) -> AnyValue:
        """Return the value of an expression of the class statement."""
        return evaluate(_quiet(self.frame), node)

    def named(self, node: ast.expr) -> str:
        """Return the qualified name of an expression's value; empty if it has none."""
        return str(getattr(self.value(node), "name", ""))

    def read(
        self,
        name: str,
        bases: list[ast.expr],
        keywords: list[ast.keyword],
        body: list[ast.stmt],
        decorator_list: list[ast.expr],
    ) -> None:
        """Read the class statement."""
        self._bases(bases)
        self._decorators(name, decorator_list)
        for keyword in keywords:
            match self.text.kind, keyword:
                case "record", ast.keyword(arg="dims", value=dims):
                    self.text.dims = dims
                case "typeddict", ast.keyword(arg="total", value=ast.Constant(value=True)):
                    pass
                case "typeddict", ast.keyword(arg="closed"):
                    pass  # no other keys are accepted in any case
                case "typeddict", ast.keyword(arg="total"):
                    what = f"`total=` of the TypedDict `{name}`, some of whose keys may be missing,"
                    raise refuse(self.frame, keyword, what, NO_KEY_MISSING)
                case _, ast.keyword(arg="metaclass"):
                    what = "a metaclass of a class"
                    raise refuse(self.frame, keyword, what, "derive from `psc.Record`")
                case _:
                    raise refuse(self.frame, keyword, f"`{keyword.arg}=` of a class")
        for statement in body:
            self._statement(statement)

    def _bases(self, bases: list[ast.expr]) -> None:
        text = self.text
        nodes: list[ast.expr] = []
        for base in bases:
            value = self.value(subscripted(base))
            name = str(getattr(value, "name", ""))
            if isinstance(value, RecordClass) and value.kind != "namespace":
                text.parent, text.parent_node, text.kind = value, base, value.kind
            elif name in self.rules.modules:
                text.kind = "record"
            elif base_kind(value) is not None:
                text.kind = base_kind(value) or ""
            elif name in ENUMERATIONS:
                text.kind, text.base = "enumeration", name
            elif not isinstance(value, RecordClass) and name in WITHOUT_MEANING:
                if name == "typing.Protocol":
                    text.kind = "namespace"
                continue
            elif not self.rules.is_closed and isinstance(value, External | RecordClass):
                text.has_unseen_bases = True
                continue
            else:
                shown = self.frame.source.text_of(base)
                raise refuse(self.frame, base, f"the base class `{shown}`", "use a function of it")
            nodes.append(base)
        if len(nodes) > 1 or (text.kind == "enumeration" and len(bases) > 1):
            what = "a class with several base classes"
            raise refuse(self.frame, bases[-1], what, "derive from one; use functions for the rest")
        text.generates_init = len(nodes) > 0
        if text.parent is not None:
            if text.parent.construction is not None:
                text.generates_init = text.parent.construction.generates_init
                text.has_unseen_bases |= text.parent.construction.has_unseen_bases
            self.inherited = frozenset(text.parent.field_names())

    def _decorators(self, name: str, decorators: list[ast.expr]) -> None:
        made = False
        for decorator in decorators:
            head = called(decorator)
            known = self.named(head)
            if known in self.rules.without_effect:
                continue
            if known in self.rules.dataclasses:
                self.text.kind, made = "dataclass", True
                self.text.generates_init = True
                continue
            plain = (self.rules.plain, "namespace", "dataclass")
            if known != "dataclasses.dataclass" or self.text.kind not in plain:
                shown = self.frame.source.text_of(head)
                raise refuse(self.frame, decorator, f"the decorator `{shown}` of a class")
            if not self._is_frozen(decorator) and self.rules.is_closed:
                what, rewrite = f"the mutable dataclass `{name}`", "@dataclass(frozen=True)"
                raise refuse(self.frame, self.node, what, rewrite)
            self.text.kind, made = "dataclass", True
            self.text.generates_init = True
        declares = any(isinstance(statement, ast.AnnAssign) for statement in self.node.body)
        if self.text.kind == "dataclass" and not made and declares and self.rules.is_closed:
            what = f"fields of `{name}`, which is no dataclass itself,"
            raise refuse(self.frame, self.node, what, "decorate it with `@dataclass(frozen=True)`")

    def _is_frozen(self, decorator: ast.expr) -> bool:
        options: dict[str, AnyValue] = {}
        if isinstance(decorator, ast.Call):
            for keyword in decorator.keywords:
                constant = isinstance(keyword.value, ast.Constant)
                if keyword.arg not in OPTIONS or not constant or decorator.args:
                    raise refuse(self.frame, keyword, f"`{keyword.arg}=` of a dataclass")
                options[keyword.arg] = self.value(keyword.value)
        self.text.keywords = options.get("kw_only") is True
        self.text.slots = options.get("slots") is True
        return options.get("frozen") is True

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return
            case ast.AnnAssign(value=None) if self.text.kind == "typeddict":
                self._key(statement)
            case _ if self.text.kind == "typeddict":
                what = "anything but keys with types in a TypedDict"
                raise refuse(self.frame, statement, what, 'keys with types only: `w: f32["n"]`')
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                self._annotated(name, statement, value)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)) if (
                name in CALLED_BY_SYNTAX and other in self.text.methods
            ):
                self._bind(name, statement)
                self.text.methods[name] = self.text.methods[other]
                if other in self.text.kernels:
                    self.text.kernels.add(name)
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
                self._method(statement, **fields(statement, self._method))
            case _:
                what = f"a statement of this kind (`{type(statement).__name__}`) in a class"
                raise refuse(self.frame, statement, what, "fields, constants and methods only")

    def _key(self, node: ast.AnnAssign) -> None:
        """Read a key of a TypedDict."""
        assert isinstance(node.target, ast.Name)
        name = node.target.id
        if name in self.bound or name in self.inherited:
            what = f"`{name}`, which the TypedDict declares twice,"
            raise refuse(self.frame, node, what, "declare it once")
        if name.startswith("__") and not name.endswith("__"):  # Python mangles it
            raise refuse(self.frame, node, f"the key `{name}`", "one underscore, or none")
        self.bound[name] = node
        known = self.named(subscripted(node.annotation))
        if known.rpartition(".")[2] == "NotRequired":
            what = f"the key `{name}` of a TypedDict, which may be missing,"
            raise refuse(self.frame, node, what, NO_KEY_MISSING)
        self.text.fields[name] = node

    def _bind(self, name: str, node: ast.AST) -> None:
        """Bind a name of the class, which has a plain name and is bound once."""
        frame, kind = self.frame, self.text.kind
        if name in self.bound:
            raise refuse(frame, node, f"`{name}`, which the class binds twice,", "bind it once")
        if name in self.inherited and self.rules.is_closed:
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
            if not self.rules.is_closed:
                known = name == "__init__" or name not in {*REBUILDING, *OF_DESCRIPTORS}
                known = known or (name == "__init_subclass__" and _documents(node))
            if not dunder or not known:
                rewrite = REBUILDING.get(name, "one underscore, or none")
                raise refuse(frame, node, f"`{name}` of a class", rewrite)
        elif kind == "enumeration" and name.startswith("_"):
            raise refuse(frame, node, f"`{name}` of an enumeration")
        self.bound[name] = node

    def _require_value(self, name: str, node: ast.AST) -> None:
        """Refuse a value for a special name, or in a class that derives from a NamedTuple class."""
        if name.startswith("__") and name not in _VALUES:
            raise refuse(self.frame, node, f"a value for `{name}` of a class")
        parent = self.text.parent
        if parent is not None and parent.kind == "namedtuple":
            what = "a value in a class that derives from a NamedTuple class"
            raise refuse(self.frame, node, what, "a method, or a constant of the module")

    def _expression(self, node: ast.expr) -> None:
        """Refuse an expression that reads names of the class body, or binds some."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id in self.bound:
                what = f"`{inner.id}` of the class in its own body"
                raise refuse(self.frame, inner, what, "a constant of the module")
            if isinstance(inner, ast.NamedExpr):
                raise refuse(self.frame, inner, "`:=` in a class", "a constant of the module")

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
            if value is None and not self.rules.is_closed:
                return  # it makes no field
            what = "a field of a class that derives from a NamedTuple class"
            raise refuse(self.frame, node, what, "a NamedTuple class of its own")
        known = self.named(subscripted(node.annotation))
        shown = ast.unparse(node.annotation)
        if known == "typing.ClassVar":
            if value is not None:
                text.values[name] = value
            return
        if "ClassVar" in shown or known in ("dataclasses.InitVar", "dataclasses.KW_ONLY"):
            raise refuse(self.frame, node, f"the annotation `{shown}` of a field", "a type")
        if isinstance(value, ast.Call) and self.named(value.func) == "dataclasses.field":
            if self.rules.is_closed:
                self._require_options(value, {"default", "default_factory", "kw_only"}, 0)
        text.fields[name] = node

    def _require_options(self, call: ast.Call, known: set[str], positional: int) -> None:
        """Refuse an argument of `field(…)` whose meaning is not modelled."""
        for keyword in call.keywords:
            if keyword.arg not in known:
                raise refuse(self.frame, keyword, f"`{keyword.arg}=` of a field")
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
        *outer, inner = [self._decorator(decorator) for decorator in decorator_list] or [""]
        if inner in KERNEL and outer in ([], ["builtins.staticmethod"]):
            self.text.kernels.add(name)
            kind = "static" if outer else "method"
        elif inner in DESCRIPTORS and not outer:
            kind = DESCRIPTORS[inner]
            if inner == "functools.cached_property" and (
                self.text.slots or self.text.kind == "namedtuple"
            ):
                what = "`cached_property` of a class whose instances have no `__dict__`"
                raise refuse(self.frame, node, what, "`@property`")
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
        """Return the known name of a method's decorator; a Failure if it is unknown."""
        self._expression(decorator)
        known = self.named(called(decorator))
        if not self.rules.is_closed and known not in DESCRIPTORS:
            return known or "unknown"
        if known not in KNOWN_DECORATORS and known not in DESCRIPTORS:
            shown = self.frame.source.text_of(decorator)
            raise refuse(self.frame, decorator, f"the decorator `{shown}` of a method")
        return known


_LOOKING: Final = frozenset(
    "callable getattr hasattr isinstance issubclass items keys mro super values".split()
)
"""Functions and methods that look at a class."""


def _documents(node: ast.AST) -> bool:
    """Return whether an `__init_subclass__` changes nothing of a class but documentation."""
    for inner in [each for part in getattr(node, "body", [node]) for each in ast.walk(part)]:
        match inner:
            case ast.Attribute(attr="__doc__") | ast.Name():
                continue
            case ast.Attribute(ctx=ast.Load()) | ast.Subscript(ctx=ast.Load()):
                continue
            case ast.Call(func=ast.Name(id=name)) if name in _LOOKING:
                continue
            case ast.Call(func=ast.Attribute(attr=name)) if name in (
                *_LOOKING,
                "__init_subclass__",
            ):
                continue
            case ast.Attribute() | ast.Subscript() | ast.Call() | ast.AugAssign() | ast.Lambda():
                return False
            case ast.stmt() if not isinstance(inner, _PLAIN):
                return False
            case _:
                pass
    return True


_PLAIN: Final = (ast.Assign, ast.Expr, ast.For, ast.If, ast.Break, ast.Continue, ast.Pass)


def _private(node: ast.AST) -> Iterator[ast.AST]:
    """Yield names that a class mangles."""
    for inner in ast.walk(node):
        match inner:
            case (
                ast.Name(id=name)
                | ast.Attribute(attr=name)
                | ast.arg(arg=name)
                | ast.keyword(arg=str(name))
            ) if name.startswith("__") and not name.endswith("__"):
                yield inner
            case _:
                pass


# Class statements as record classes: values of the classes that `class_text` admits.


def class_value(frame: Frame, node: ast.ClassDef, module: str) -> RecordClass | External:
    """Return the value that a class statement binds."""
    text = class_text(frame, node)
    if text is None:
        return External(f"{module}.{node.name}", library=True)
    own = {name: _method(frame, text, name) for name in text.methods}
    title = f"{module}.{node.name}"
    for name, each in text.values.items():
        own[name] = Member("value", _value(frame, each, f"{title}.{name}"))
    fields = [_field(frame, text, name, each) for name, each in text.fields.items()]
    if text.kind == "enumeration":
        own = _enumeration(frame, text, title, own)

    def guard(name: str, value: AnyValue) -> None:
        frame.scope.guard.of_class(frame.source, node, name, value)

    if text.kind in ("namespace", "enumeration"):
        own = {name: each for name, each in own.items() if each.kind not in _OF_INSTANCES}
        made = RecordClass(node.name, module, "namespace", (), own, guard=guard)
        made.enumeration = text.kind == "enumeration"
        return made
    parent = text.parent
    members = {} if parent is None else _inherited_members(parent)
    inherited = () if parent is None else _inherited_fields(frame, parent, text.parent_node)
    return RecordClass(
        node.name,
        module,
        text.kind,
        (*inherited, *fields),
        {**members, **own},
        _dims(frame, text),
        None,
        guard,
        () if parent is None else (parent,),
        _variables(frame, node),
        construction=(
            Construction(text.generates_init, text.has_unseen_bases) if frame.scope.is_jax else None
        ),
    )


_OF_INSTANCES = ("method", "property", "unread")
"""Members that a class without instances in kernels does not have."""


def _inherited_members(parent: RecordClass) -> dict[str, Member]:
    return {
        name: replace(member, admit=partial(parent.admit, name, member))
        for name, member in parent.members.items()
    }


def _inherited_fields(frame: Frame, cls: RecordClass, base: ast.expr | None) -> Sequence[Field]:
    """Return the fields of a class for the classes that derive from it."""
    if not cls.variables or not isinstance(base, ast.Subscript):
        return cls.fields
    given = (cls.variables, frame, tuple(items(base)))
    return [replace(each, applied=(*each.applied, given)) for each in cls.fields]


def _dims(frame: Frame, text: ClassText) -> tuple[str, ...]:
    if text.dims is None:
        return () if text.parent is None else text.parent.dims
    dims = evaluate(frame, text.dims)
    if not isinstance(dims, str):
        what, rewrite = "these `dims=` of a record", 'a string, `dims="n d"`'
        raise Failure(Unsupported(what=what, rewrite=rewrite, span=frame.span(text.dims)))
    return tuple(dims.split())


def _variables(frame: Frame, node: ast.ClassDef) -> tuple[str, ...]:
    """Return the type variables of a generic class: those of `Generic[…]`, or of all its bases."""
    found: dict[str, None] = {}
    for base in node.bases:
        if not isinstance(base, ast.Subscript):
            continue
        own = [evaluate(frame, item) for item in items(base)]
        names = dict.fromkeys(each.name for each in own if isinstance(each, TypeVariable))
        if getattr(evaluate(frame, base.value), "name", "") == "typing.Generic":
            return tuple(names)
        found.update(names)
    return tuple(found)


def _enumeration(
    frame: Frame, text: ClassText, owner: str, own: Mapping[str, Member]
) -> dict[str, Member]:
    """Return the members of an enumeration in place of their values, one for each value."""
    found: list[EnumMember] = []
    alone = text.base in ("enum.Enum", "enum.Flag")
    automatic = [_is_automatic(frame, each) for each in text.values.values()]
    distinct = all(automatic) and text.base != "enum.StrEnum"
    known = distinct or all(_is_kept(text.base, own[name].value) for name in text.values)
    compared = any(name in text.methods for name in ("__eq__", "__ne__", "__hash__"))
    made = dict(own)
    all_hashable = all(hashable(own[name].value) for name in text.values)
    by_value: dict[Any, EnumMember] = {}
    for name in text.values:
        value = own[name].value
        if compared or not known:
            why = value.why if isinstance(value, External) else ()
            made[name] = Member("value", External(f"{owner}.{name}", why))
            continue
        member = EnumMember(owner, name, value, alone)
        if not distinct and all_hashable:
            member = by_value.setdefault(value, member)
        elif not distinct:
            member = next((each for each in found if bool(each.value == value)), member)
            found.append(member)
        made[name] = Member("value", member)
    return made


def _is_kept(base: str, value: AnyValue) -> bool:
    """Return whether an enum keeps the value of a member exactly as its statement gives it."""
    match base, value:
        case (("enum.IntEnum" | "enum.Flag"), int()) if value.__class__ is int:
            return base == "enum.IntEnum" or (value > 0 and value & (value - 1) == 0)
        case "enum.StrEnum", _:
            return value.__class__ is str
        case _:
            return base not in ("enum.IntEnum", "enum.Flag") and is_closed(value)


def _is_automatic(frame: Frame, node: ast.expr) -> bool:
    """Return whether this is `auto()`, which gives each member a different value."""
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return False
    return getattr(evaluate(_quiet(frame), node.func), "name", "") == "enum.auto"


def _quiet(frame: Frame) -> Frame:
    """Return a frame outside of the kernel, whose findings concern the users of its values."""
    return Frame(Session(None), frame.source, frame.scope, frame.outer)


def _value(frame: Frame, node: ast.expr, name: str) -> AnyValue:
    """Return a value in a class body; an unknown value if it cannot be evaluated."""
    quiet = _quiet(frame)
    return known_or_why(quiet, evaluate(quiet, node), name)


def _default(frame: Frame, node: ast.expr) -> Callable[[], AnyValue]:
    """Return a default, as it was evaluated when the class was made."""

    def default() -> AnyValue:
        value = _value(frame, node, ast.unparse(node))
        if isinstance(value, External):
            raise Failure(external_value(value))
        return value

    return default


FACTORIES = ("builtins.tuple", "builtins.frozenset")
"""Factories whose results are immutable."""


def _field(
    frame: Frame, text: ClassText, name: str, statement: ast.AnnAssign | ast.Assign
) -> Field:
    value = statement.value
    if isinstance(statement, ast.Assign):
        assert isinstance(value, ast.Call)
        return _precord_field(frame, name, value)
    made = Field(name, statement.annotation, frame, keyword=text.keywords)
    if value is None:
        return made
    if isinstance(value, ast.Call):
        function = evaluate(frame, value.func)
        declares = rules(frame.scope.is_jax).fields
        if text.kind != "namedtuple" and getattr(function, "name", "") in declares:
            options = {keyword.arg: keyword.value for keyword in value.keywords}
            if "kw_only" in options:
                made = replace(made, keyword=evaluate(frame, options["kw_only"]) is True)
            if frame.scope.is_jax and "converter" in options:
                made = replace(made, convert=_converter(frame, options["converter"]))
            if "default" in options:
                return replace(made, default=_default(frame, options["default"]))
            factory = options.get("default_factory")
            if factory is None:
                return made
            return replace(made, default=_made_by(frame, factory), anew=True)
    return replace(made, default=_default(frame, value))


def _made_by(frame: Frame, factory: ast.expr) -> Callable[[], AnyValue]:
    """Return a function that calls a default factory for each instance."""

    def default() -> AnyValue:
        function = evaluate(_quiet(frame), factory)
        if isinstance(function, External):
            raise Failure(external_use(function))
        if not isinstance(function, Builtin) or function.name not in FACTORIES:
            what, rewrite = (
                "this `default_factory`",
                "a default, or a function that makes the record",
            )
            raise Failure(Unsupported(what=what, rewrite=rewrite, span=frame.span(factory)))
        made: AnyValue = function.apply(frame.here(factory), (), {})
        return made

    return default


def _converter(frame: Frame, node: ast.expr) -> Callable[[Builder, AnyValue], AnyValue]:
    """Return the function that converts each value given for a field."""

    def convert(here: Builder, value: AnyValue) -> AnyValue:
        function = _default(frame, node)()
        if not isinstance(function, Applicable):
            raise Failure(NotCallable(found=describe(function)))
        return function.apply(here, (value,), {})

    return convert


def _precord_field(frame: Frame, name: str, call: ast.Call) -> Field:
    """Read `x = field(type=f32["n"])` of a PRecord."""
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    initial, factory = options.get("initial"), options.get("factory")
    annotation = options.get("type") or (call.args[0] if call.args else None)
    default = None
    if initial is not None:
        value = _default(frame, initial)

        def plain() -> AnyValue:
            found = value()
            if not isinstance(found, Applicable):
                return found
            quiet = _quiet(frame)  # a function is called for each instance
            made = found.apply(quiet.here(initial), (), {})
            if quiet.session.findings:
                raise Failure(*quiet.session.findings)
            return made

        default = plain

    return Field(
        name,
        annotation,
        frame,
        default,
        convert=None if factory is None else _converter(frame, factory),
        checked="invariant" in options,
    )


def _method(frame: Frame, text: ClassText, name: str) -> Member:
    kind, node = text.methods[name]
    made: AnyValue = closure(frame, node, name)
    if kind == "unread" and frame.scope.is_jax:
        for decorator in reversed(node.decorator_list):
            made = decorated(_quiet(frame), decorator, made)
        return Member("unread" if isinstance(made, External) else "method", made)
    if name not in text.kernels:
        return Member(kind, made)
    made = decorated(frame, node.decorator_list[-1], made)
    kernel = definition_in(made)
    if isinstance(kernel, Definition) and kind == "method":
        kernel.method_of = text.node.name
    return Member(kind, made)


def named_tuple(here: Builder, typename: AnyValue, fields: AnyValue = (), /) -> RecordClass:
    """Read `NamedTuple("P", [("x", …)])` or `collections.namedtuple("P", "x y")`."""
    del here
    given = fields.replace(",", " ").split() if isinstance(fields, str) else fields
    names = [_field_name(each) for each in given] if is_sequence(given) else [""]
    plain = all(each.isidentifier() for each in names)
    if not isinstance(typename, str) or not plain or len({*names}) < len(names):
        problem = "takes a name, and names of fields"
        raise Failure(BadArguments(function="collections.namedtuple", problem=problem))
    if any(each.startswith("_") for each in names):
        problem = "takes names of fields that do not start with an underscore"
        raise Failure(BadArguments(function="collections.namedtuple", problem=problem))
    return RecordClass(
        typename, "", "namedtuple", tuple(Field(each, None, None) for each in names), {}
    )


def _field_name(item: AnyValue) -> str:
    """Return the name in a field of a named tuple; empty if there is none."""
    first = item[0] if is_sequence(item) and item else item
    return first if isinstance(first, str) else ""


MEANINGS["collections.namedtuple"] = StaticFunction("collections.namedtuple", named_tuple)
