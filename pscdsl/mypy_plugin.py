"""A plug-in for mypy: `f32["n d"]` is the type `f32`, its shape is no business of mypy's.

    [tool.mypy]
    plugins = ["pscdsl.mypy_plugin"]

Any class that takes a shape in brackets through a `__class_getitem__` of ours is covered: the
array types, and records applied to sizes (`Layer["d h"]`).

An array type is `f32 | Any`: NumPy's array with this dtype where it is used, anything where a
value is given for it.  NumPy's stubs seldom know the dtype of what a function returns, and often
say Any, which mypy would report wherever something more exact is declared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mypy.nodes import (
    AssignmentStmt,
    ClassDef,
    Decorator,
    Expression,
    ForStmt,
    FuncDef,
    IfStmt,
    Import,
    ImportFrom,
    IndexExpr,
    MemberExpr,
    MypyFile,
    NameExpr,
    Node,
    OverloadedFuncDef,
    StrExpr,
    TypeInfo,
    WhileStmt,
    WithStmt,
)
from mypy.plugin import AnalyzeTypeContext, ClassDefContext, Plugin, ReportConfigContext
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    RawExpressionType,
    Type,
    TypeList,
    TypeOfAny,
    UnboundType,
    UnionType,
)


class ShapePlugin(Plugin):
    """Answers the plain class for a class of ours with a shape in brackets."""

    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        """The hook for a class that is subscripted with a shape."""
        symbol = self.lookup_fully_qualified(fullname)
        info = symbol.node if symbol else None
        return _Plain(info) if isinstance(info, TypeInfo) and _takes_shape(info) else None

    def report_config_data(self, ctx: ReportConfigContext) -> str | None:
        """Two answers that differ for a file with a lone size: mypy then parses it anew.

        A file that it took from its cache would not pass by in `get_additional_deps`.
        """
        if _has_lone_size(ctx.path):
            return "asked" if ctx.is_check else "stored"
        return None

    def get_base_class_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """The hook for the array types themselves, and for records."""
        return {
            _ARRAYS + "Numeric": _make_nominal,
            _ARRAYS + "Element": _make_nominal,
            "pscdsl._src.language.records.Record": _make_subscripted,
        }.get(fullname)

    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        """No dependencies: this is where a module passes by before names are looked up."""
        if heads := _heads(file):
            _mend(_annotations(file.defs), heads)
            for statement in file.defs:
                if isinstance(statement, AssignmentStmt):
                    _mend_alias(statement.rvalue, heads)
        return []


_ARRAYS = "pscdsl.arrays."
_LONE_SIZE = re.compile(r"""\w\[\s*["']\s*\w+\s*["']""")


def _has_lone_size(path: str) -> bool:
    try:
        text = Path(path).read_text(encoding="utf-8", errors="ignore")
    except OSError:
        return False
    return "pscdsl" in text and _LONE_SIZE.search(text) is not None


def _make_nominal(context: ClassDefContext) -> None:
    """Have a class for what is a protocol to others: to mypy a protocol is no `ndarray`."""
    context.cls.info.is_protocol = False
    _make_subscripted(context)


def _make_subscripted(context: ClassDefContext) -> None:
    """Accept `f32["n"]` as a value."""
    info = context.cls.info
    metaclass = context.api.lookup_fully_qualified(_ARRAYS + "Subscripted").node
    if isinstance(metaclass, TypeInfo):
        info.declared_metaclass = info.metaclass_type = Instance(metaclass, [])


class _Plain:
    """Answers the plain instance, whatever stands in the brackets; Any as well for arrays."""

    def __init__(self, info: TypeInfo) -> None:
        self.info = info

    def __call__(self, context: AnalyzeTypeContext) -> Type:
        line, column = context.type.line, context.type.column
        instance = Instance(self.info, [], line=line, column=column)
        if not self.info.has_base(_ARRAYS + "Surface"):
            return instance
        return UnionType([instance, AnyType(TypeOfAny.special_form)], line=line, column=column)


def _annotations(statements: Iterable[Node]) -> Iterator[Type]:
    """Every annotation, also within functions, classes and branches."""
    for statement in statements:
        match statement:
            case FuncDef():
                for signature in (statement.type, statement.unanalyzed_type):
                    if isinstance(signature, CallableType):
                        yield from (*signature.arg_types, signature.ret_type)
                yield from _annotations(statement.body.body)
            case Decorator():
                yield from _annotations([statement.func])
            case OverloadedFuncDef():
                yield from _annotations(statement.items)
            case ClassDef():
                yield from _annotations(statement.defs.body)
            case AssignmentStmt():
                yield from filter(None, [statement.type, statement.unanalyzed_type])
            case IfStmt():
                blocks = [*statement.body, *filter(None, [statement.else_body])]
                yield from _annotations(inner for block in blocks for inner in block.body)
            case ForStmt() | WhileStmt() | WithStmt():
                yield from _annotations(statement.body.body)
            case _:
                pass


def _mend(types: Iterable[Type], heads: frozenset[str]) -> None:
    """Keep mypy from taking the size in `f32["n"]` for a name to look up, at any depth.

    It looks for type variables in signatures before it asks a plug-in what they mean, and a string
    that is an identifier has been parsed as a name by then; any other string is left alone.
    """
    for t in types:
        if isinstance(t, TypeList | UnionType):
            _mend(t.items, heads)
        elif isinstance(t, UnboundType):
            if t.name.split(".")[0] in heads:
                t.args = tuple(_as_string(size) for size in t.args)
            _mend(t.args, heads)


def _mend_alias(value: Expression, heads: frozenset[str]) -> None:
    """The same for `Vector = f32["n"]`: a string that is no name is not looked up."""
    match value:
        case IndexExpr(base=NameExpr(name=head), index=StrExpr() as size) if head in heads:
            size.value += " _" if size.value.isidentifier() else ""
        case IndexExpr(base=MemberExpr(expr=NameExpr(name=head)), index=StrExpr() as size):
            size.value += " _" if head in heads and size.value.isidentifier() else ""
        case _:
            pass


def _as_string(size: Type) -> Type:
    if isinstance(size, UnboundType) and size.original_str_expr is not None:
        return RawExpressionType(size.original_str_expr, "builtins.str", size.line, size.column)
    return size


def _heads(file: MypyFile) -> frozenset[str]:
    """The names that stand for our types or modules: imported ones, and records with sizes."""
    names: set[str] = set()
    for statement in file.imports:
        if isinstance(statement, ImportFrom) and _ours(statement.id):
            names.update(local or name for name, local in statement.names)
        elif isinstance(statement, Import):
            names.update(local or "pscdsl" for name, local in statement.ids if _ours(name))
    if names:
        classes = (node for node in file.defs if isinstance(node, ClassDef))
        names.update(node.name for node in classes if "dims" in node.keywords)
    return frozenset(names)


def _ours(module: str) -> bool:
    return module == "pscdsl" or module.startswith("pscdsl.")


def _takes_shape(info: TypeInfo) -> bool:
    if info.type_vars:
        return False
    if info.fullname == _ARRAYS + "Array":
        return True
    owner = info.get_containing_type_info("__class_getitem__")
    return owner is not None and _ours(owner.fullname)


def plugin(version: str) -> type[Plugin]:
    """What mypy calls to load the plug-in."""
    return ShapePlugin
