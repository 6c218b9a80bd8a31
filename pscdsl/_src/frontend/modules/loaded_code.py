"""The texts of loaded functions and modules: the source of their code, and their writes."""

from __future__ import annotations
import __future__

import ast
import builtins
import copy
import linecache
import sys
import textwrap
import types
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.machinery import SourceFileLoader
from operator import itemgetter
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    ForwardRef,
    Literal,
    Optional,
    TypeAlias,
    TypeGuard,
    Union,
    get_args,
    get_origin,
)

from pscdsl._src.frontend.interpreter.frames import Frame, Scope, Session
from pscdsl._src.frontend.modules.known import known_module
from pscdsl._src.frontend.modules.snapshots import class_of
from pscdsl._src.frontend.modules.traces import (
    annotations_of,
    captured_by,
    evaluated_annotations,
)
from pscdsl._src.frontend.text import code_texts
from pscdsl._src.frontend.text.bindings import uses
from pscdsl._src.frontend.text.code_texts import (
    comes_with_python,
    has_columns,
    same,
)
from pscdsl._src.frontend.text.source import FunctionNode, Source, shown_path
from pscdsl._src.frontend.values import Alias, AnyValue, Atomic, Marker
from pscdsl._src.language.elements import ElementType
from pscdsl._src.language.records import Sizes
from pscdsl._src.support.processes import forget_at_end
from pscdsl.typing.codes.language import NoSuchAttribute
from pscdsl.typing.codes.limits import NoSource, SeveralFunctions, TextChanged
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.python_containers import is_tuple

if TYPE_CHECKING:
    from importlib.abc import InspectLoader  # whose module imports much

# Loaded functions: the text that their code was compiled from, and their annotations.


# The annotations of loaded functions: their text, besides the values that Python evaluated.
#
# Annotations are evaluated outside of the code of a function, where it is defined. So they may name
# objects that the function itself does not hold: a class that is local to the function around it,
# or one to which no name is bound any more. The evaluated annotation still has it.


def are_copied(function: types.FunctionType) -> bool:
    """Return whether `functools.wraps` gave a function the annotations of the one that it wraps."""
    wrapped = getattr(function, "__wrapped__", None)
    return wrapped is not None and annotations_of(wrapped) == annotations_of(function)


def held_by_annotations(
    node: FunctionNode, function: types.FunctionType, source: Source
) -> Mapping[str, object] | None:
    """Return the values of names in annotations that look-ups do not find, or not any more.

    None if the annotations of the function cannot come from its text.
    """
    annotations = evaluated_annotations(function)
    if isinstance(node, ast.Lambda) or annotations is None or are_copied(function):
        return {}  # the code that evaluates them, or the wrapped function, decides
    written, names = _written(node), _AnnotationNames(function, source)
    if {_plain(name) for name in annotations} != written.keys():
        return None
    held: dict[str, object] = {}
    try:
        for name, annotation in annotations.items():
            for part, real in names.pairs(written[_plain(name)], annotation):
                if not names.stand_for(part, real):
                    held.update(names.held(part, real.text if isinstance(real, Sizes) else real))
    except _OtherAnnotation:
        return None
    return held


class _OtherAnnotation(Exception):
    """An annotation that was evaluated, and does not come from the text."""


@dataclass(frozen=True)
class PartOfModule(Atomic):
    """A module that only annotations name, with the names that they use."""

    name: str
    names: dict[str, AnyValue] = field(default_factory=dict[str, AnyValue])

    def lookup_attribute(self, name: str) -> AnyValue:
        """Return `module.name`."""
        if name not in self.names:
            raise Failure(NoSuchAttribute(owner=f"module `{self.name}`", attribute=name))
        return self.names[name]


def _written(node: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, ast.expr]:
    """Return the annotations in the text of a function."""
    spec = node.args
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]
    parts = [(each.arg, each.annotation) for each in every if each is not None]
    return {name: each for name, each in [*parts, ("return", node.returns)] if each is not None}


def _plain(name: str) -> str:
    """Return the name of a parameter as it is written, in a class, too: `_Layer__w` is `__w`."""
    owner, underscores, rest = name.lstrip("_").partition("__")
    return f"__{rest}" if name.startswith("_") and owner and underscores and rest else name


class _AnnotationNames:
    """The bindings of the names in a function's annotations."""

    def __init__(self, function: types.FunctionType, source: Source) -> None:
        self._source = source
        self._is_nested = "." in function.__qualname__
        self._globals = function.__globals__
        self._in_cell = stands_in_cells(function)
        self._cells = dict.fromkeys(function.__code__.co_freevars, _UNKNOWN)
        self._cells.update(captured_by(function))

    def pairs(self, node: ast.expr, real: Any) -> Iterator[tuple[ast.expr, Any]]:
        """Yield the names and constants in an annotation, with the objects that they were."""
        if isinstance(real, str | ForwardRef):
            yield node, real
        elif isinstance(node, ast.BinOp):
            parts, given = list(_united(node)), get_args(real)
            if len(parts) == len(given):
                yield from self._all_pairs(parts, given)
        elif isinstance(node, ast.Subscript):
            yield from self._pairs_in_subscript(node, real)
        else:
            yield node, real

    def _pairs_in_subscript(self, node: ast.Subscript, real: Any) -> Iterator[tuple[ast.expr, Any]]:
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        head, origin, given = self.find(node.value), get_origin(real), get_args(real)
        if head is Annotated:
            yield from self.pairs(items[0], given[0] if origin is Annotated else real)
        elif isinstance(real, ElementType):
            yield node.value, real.element
            yield (items or [node.slice])[-1], Sizes(str(real.text))
        elif _is_jaxtyping(real) and len(items) == 2:
            yield node.value, real.dtype
            yield from self._pairs_of_jaxtyping(items[0], items[1], real)
        elif origin in (Union, types.UnionType):
            if head is Union or (head is Optional and len(given) == 2):
                yield from self._all_pairs(items, given[: len(items)])
        elif origin is not None and not (get_origin(head) and getattr(head, "__parameters__", ())):
            yield node.value, origin  # which is not a generic alias, whose parameters are others
            if len(items) == len(given):
                yield from self._all_pairs(items, given)
            elif origin is not Literal:  # which drops what is given twice
                raise _OtherAnnotation

    def _pairs_of_jaxtyping(
        self, array: ast.expr, shape: ast.expr, real: Any
    ) -> Iterator[tuple[ast.expr, Any]]:
        """Yield the parts of `Float32[array, shape]`; an array with a shape has the last sizes."""
        match shape:
            case ast.Constant(value=str(own)) if real.dim_str.startswith(f"{own} "):
                yield array, real.dtype[real.array_type, real.dim_str.removeprefix(own)]
            case _:
                yield shape, Sizes(real.dim_str)
                if self.find(array) is _UNKNOWN:
                    yield array, real.array_type

    def _all_pairs(
        self, nodes: Sequence[ast.expr], given: Sequence[Any]
    ) -> Iterator[tuple[ast.expr, Any]]:
        if len(nodes) == len(given):
            for each, real in zip(nodes, given, strict=True):
                yield from self.pairs(each, real)

    def find(self, node: ast.expr) -> object:
        """Return the value of a name or of a module's attribute; `_UNKNOWN` if it is not known."""
        if isinstance(node, ast.Attribute):
            owner = self.find(node.value)
            known = isinstance(owner, types.ModuleType)
            return vars(owner).get(node.attr, _UNKNOWN) if known else _UNKNOWN
        if not isinstance(node, ast.Name):
            return _UNKNOWN
        owner = uses(self._source).owner(node, node.id) if self._is_nested else None
        if owner is not None:  # it has an enclosing local only if its body uses it
            captured = isinstance(owner, FunctionNode)
            return self._cells.get(node.id, _UNKNOWN) if captured else _UNKNOWN
        return self._globals.get(node.id, vars(builtins).get(node.id, _UNKNOWN))

    def stand_for(self, part: ast.expr, real: object) -> bool:
        """Return whether the text gives an object now; raise if it never did."""
        found = self.find(part)
        if isinstance(real, str | ForwardRef):
            text = real if isinstance(real, str) else real.__forward_arg__
            fits = text in (ast.unparse(part), getattr(part, "value", None))
        elif isinstance(part, ast.Constant) and isinstance(real, Sizes):
            fits = str(part.value) == real.text
        elif isinstance(part, ast.Constant):
            real = None if real is type(None) else real
            fits = type(part.value) is type(real) and part.value == real
        elif found is _UNKNOWN or isinstance(real, Sizes):
            return str(found) == getattr(real, "text", None)
        elif found is not real and _made_again(found, real):
            return self._in_cell  # a cell defines the class again: the name is bound to it
        else:
            fits = get_origin(found) is real or _equal(found, real)
        if not fits:
            raise _OtherAnnotation
        return True

    def held(self, part: ast.expr, real: object) -> dict[str, object]:
        """Return an object by its name, `P` or `records.P`, if that is not looked up any more."""
        match part:
            case ast.Name(id=name):
                return {name: real}
            case ast.Attribute(value=ast.Name(id=name) as owner) if self.find(owner) is _UNKNOWN:
                return {f"{name}.{part.attr}": real}
            case _:
                return {}


_UNKNOWN: Final = object()


def stands_in_cells(function: types.FunctionType) -> bool:
    """Return whether a function still has its name in the namespace of IPython's cells."""
    get: Any = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell: Any = None if get is None else get()
    if shell is None or shell.user_ns is not function.__globals__:
        return False
    bound = function.__globals__.get(function.__qualname__)
    return bound is function or getattr(bound, "__wrapped__", None) is function


def _united(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of `a | b | c`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from _united(node.left)
        yield from _united(node.right)
    else:
        yield node


def _made_again(found: object, real: object) -> bool:
    """Return whether one class statement made both, as a cell of a notebook does each time."""
    if not isinstance(found, type) or not isinstance(real, type):
        return False
    return (found.__module__, found.__qualname__) == (real.__module__, real.__qualname__)


def _equal(found: object, real: object) -> bool:
    try:
        return bool(found == real)
    except Exception:  # whatever exception a class raises
        return False


# The function of a text that loaded code was compiled from: proven, by compiling it again.
#
# A file may have been changed since it was loaded; then its text is not the source of the code that
# Python runs. So a text is the source of some code only if it compiles to this code, constant by
# constant and column by column, and if it has the annotations that Python evaluated. Texts of one
# file are cached as long as code of them may exist. Import hooks and `typeguard.typechecked`, which
# change code when it is loaded, are applied to the text, too.


_FUTURE: Final = __future__.all_feature_names
_FLAGS: Final = sum(getattr(__future__, name).compiler_flag for name in _FUTURE)
_MODE: Final = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
"""Syntax that notebooks and prompts allow in addition to programs'."""

_TEXTS: dict[str, list[Source]] = {}
"""The texts that a file has had, the newest first."""
forget_at_end(_TEXTS)


def current_source(
    filename: str, namespace: dict[str, Any], code: types.CodeType | None = None
) -> Source | None:
    """Return the current text of a file, or of a cell of a notebook; None if there is none."""
    linecache.checkcache(filename)
    text = code_texts.text_of(filename, namespace, code)
    return None if text is None else _source(filename, text)


def _source(filename: str, text: str) -> Source:
    known = _TEXTS.setdefault(filename, [])
    for place, source in enumerate(known):
        if source.text == text:
            known.insert(0, known.pop(place))
            return source
    is_file = code_texts.is_file(filename)
    source = Source(shown_path(filename) if is_file else code_texts.shown_name(filename), text)
    known.insert(0, source)
    return source


def _sources(code: types.CodeType, namespace: dict[str, Any]) -> Iterator[Source]:
    """Yield the texts that code may be from: the current one of its file, and earlier ones."""
    filename = code.co_filename
    current = current_source(filename, namespace, code)
    if current is not None:
        yield current
    elif filename == code_texts.COMMAND:
        return  # a name of several programs, and this code is not that of `-c`
    yield from [each for each in _TEXTS.get(filename, ()) if each is not current]
    # A file that was written again with the same size and time is not noticed by `linecache`.
    if code_texts.is_file(filename) and linecache.cache.pop(filename, None) is not None:
        again = current_source(filename, namespace, code)
        if again is not None and again is not current:
            yield again


def function_in_text(
    function: types.FunctionType,
) -> tuple[Source, FunctionNode, Mapping[str, object]]:
    """Return a loaded function in its text, and the names that its annotations hold.

    A Failure if there is no text, or another one.
    """
    code = function.__code__
    found: Source | None = None
    for source in _sources(code, function.__globals__):
        found = source
        node = _node(source, function) or _patched_node(source, function)
        if node is not None and _evaluates(source, function):
            held = held_by_annotations(node, function, source)
            if held is not None:
                return source, node, held
    if found is None:
        remedy = code_texts.remedy(code.co_filename)
        raise Failure(NoSource(function=function.__qualname__, remedy=remedy))
    where = f"{found.path}:{code.co_firstlineno}"
    raise Failure(TextChanged(function=function.__qualname__, where=where))


def _node(source: Source, function: types.FunctionType) -> FunctionNode | None:
    """Return the node that compiles to the code of a function."""
    code = function.__code__
    for compiled in _compiled(source, function):
        alike = [
            each
            for each in compiled
            if each.co_name == code.co_name and each.co_firstlineno == code.co_firstlineno
        ]
        if any([same(each, code) for each in alike]):
            return _standing_at(source, code, alike)
    return None


_PATCHES: Final = "IPython.extensions.deduperreload.deduperreload"
"""The part of `%autoreload` that gives functions of loaded modules new code, one by one."""


def _patched_node(source: Source, function: types.FunctionType) -> FunctionNode | None:
    """Return the node of code that `%autoreload` compiled alone, whose lines are not the file's."""
    if _PATCHES not in sys.modules:
        return None
    path, code = function.__qualname__.split("."), function.__code__
    for node in _at_path(source.tree.body, path):
        key = ("patched", id(node))
        if key not in source.compiled:
            make = partial(_alone, node, source.path, is_method=len(path) > 1)
            source.compiled[key] = [
                each for text in (True, False) for each in _functions(partial(make, text))
            ]
        if any([same(each, code) for each in source.compiled[key]]):
            return node
    return None


def _at_path(body: Sequence[ast.stmt], path: Sequence[str]) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a name, within classes if it has several parts."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef) and path == [statement.name]:
            yield statement
        elif isinstance(statement, ast.ClassDef) and len(path) > 1 and statement.name == path[0]:
            yield from _at_path(statement.body, path[1:])


def _alone(node: ast.FunctionDef, path: str, decorated: bool, *, is_method: bool) -> types.CodeType:
    """Compile a function as `%autoreload` does: unparsed, with its decorators or without."""
    text = ast.unparse(node)
    if is_method:
        text = "class __autoreload_class__:\n" + textwrap.indent(text, "    ")
    tree = ast.parse(text)
    if not decorated:
        function = next(each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))
        function.decorator_list = []
    return compile(tree, path, "exec", dont_inherit=True)


def _standing_at(
    source: Source, code: types.CodeType, alike: Sequence[types.CodeType]
) -> FunctionNode | None:
    """Return the function with the columns of some code, of those that begin in the same line."""
    found = source.functions(code)
    if len(found) < 2:
        return found[0] if found else None
    if not has_columns(code):
        if all([same(each, code) for each in alike]):
            return found[0]
        raise Failure(SeveralFunctions(line=f"{source.path}:{code.co_firstlineno}"))
    begin = (code.co_firstlineno, 0, 0)
    places = [
        ((line, column), (end, last))
        for line, end, column, last in code.co_positions()
        if not (line is None or end is None or column is None or last is None)
        and (line, column, last) != begin
    ]
    around = [
        (first, node)
        for node in found
        for first, final in [_extent(node)]
        if all([first <= start and stop <= final for start, stop in places])
    ]
    return max(around, key=itemgetter(0), default=(0, None))[1]  # the innermost


def _extent(node: FunctionNode) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the start and the end of the text that a function's code is from."""
    body: ast.expr | ast.stmt = node.body if isinstance(node, ast.Lambda) else node
    end = (body.end_lineno or body.lineno, body.end_col_offset or body.col_offset)
    return (body.lineno, body.col_offset), end


_CHECKERS: Final = ("beartype", "jaxtyping", "typeguard")
"""Packages that wrap functions in checks of types, which change no result."""


def unchecked(function: types.FunctionType) -> types.FunctionType:
    """Return the function as written, without the type checks that it is called through."""
    inner = getattr(function, "__wrapped__", None)
    while isinstance(inner, types.FunctionType) and _wraps_in_checks(function):
        function, inner = inner, getattr(inner, "__wrapped__", None)
    return function


def _wraps_in_checks(function: types.FunctionType) -> bool:
    home = str(function.__globals__.get("__name__"))
    made_by_beartype = hasattr(function, "__beartype_wrapper")
    return made_by_beartype or home.partition(".")[0] in _CHECKERS


# The code that a text compiles to.


def _compiled(source: Source, function: types.FunctionType) -> Iterator[Sequence[types.CodeType]]:
    """Yield the code near a function's, as each known way of loading makes it of the text."""
    for key, make in _ways(source, function):
        if key not in source.compiled:
            source.compiled[key] = _functions(make)
        yield source.compiled[key]


def _ways(
    source: Source, function: types.FunctionType
) -> Iterator[tuple[Hashable, Callable[[], types.CodeType]]]:
    """Yield the ways in which the text may have been compiled, the likeliest and quickest first."""
    code = function.__code__
    flags = code.co_flags & _FLAGS
    statements = _statements(source, code.co_firstlineno)
    loader: Any = _loader(function.__globals__)
    for statement in statements:
        yield (id(statement), flags), partial(_compile, source, [statement], flags)
    pytest = sys.modules.get("_pytest.assertion.rewrite")
    if pytest is not None and isinstance(loader, pytest.AssertionRewritingHook):
        for statement in statements:
            yield (
                ("asserts", id(statement)),
                partial(_rewritten, pytest, loader.config, source, statement, flags),
            )
    elif _changes_code(loader):
        name = (function.__globals__.get("__name__"),) if sys.version_info >= (3, 15) else ()
        yield "loader", partial(loader.source_to_code, source.text.encode(), source.path, *name)
    if "typeguard" in sys.modules:
        key = ("typeguard", code.co_qualname, code.co_firstlineno)
        yield key, partial(_type_checked, source, code)
    yield flags, partial(compile, source.text, source.path, "exec", flags | _MODE, True)
    for statement in statements:  # as prompts and notebooks do
        alone = ast.Module([statement], [])
        yield (
            ("alone", id(statement), flags),
            partial(compile, alone, source.path, "exec", flags | _MODE, True),
        )


def _statements(source: Source, line: int) -> list[ast.stmt]:
    """Return the statements of a module that cover a line; a `class` or `def` as a whole."""
    statements: list[ast.stmt] = []
    for statement in source.tree.body:
        decorators = getattr(statement, "decorator_list", ())
        first = min([statement.lineno, *[d.lineno for d in decorators]])
        if first <= line <= (statement.end_lineno or statement.lineno):
            statements.append(statement)
    return statements


def _functions(make: Callable[[], types.CodeType]) -> Sequence[types.CodeType]:
    """Return all nested code objects of a compilation; empty if it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the import has already warned
            return list(_nested(make()))
    except Exception:  # also of a foreign hook: then this is not how it was loaded
        return ()


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _nested(constant)


def _compile(source: Source, statements: Sequence[ast.stmt], flags: int) -> types.CodeType:
    """Compile a part of a module with its imports, which affect how calls are compiled."""
    module = ast.Module([*source.imports(), *statements], [])
    made: types.CodeType = compile(module, source.path, "exec", flags | _MODE, dont_inherit=True)
    return made


def _loader(namespace: Mapping[str, object]) -> object:
    spec = namespace.get("__spec__")
    return namespace.get("__loader__") if spec is None else getattr(spec, "loader", None)


def _changes_code(loader: object) -> TypeGuard[InspectLoader]:
    """Return whether a module's loader compiles it in a special way."""
    made = getattr(class_of(loader), "source_to_code", None)
    return made is not None and made is not SourceFileLoader.source_to_code


def _rewritten(
    pytest: types.ModuleType, config: object, source: Source, statement: ast.stmt, flags: int
) -> types.CodeType:
    """Return the code of a module of tests as pytest compiles it, with rewritten assertions."""
    module = ast.Module([copy.deepcopy(statement)], [])
    pytest.rewrite_asserts(module, source.text.encode(), source.path, config)
    return _compile(source, module.body, flags)


def _type_checked(source: Source, code: types.CodeType) -> types.CodeType:
    """Return the code of a function as `typeguard.typechecked` compiles it, with checks in it."""
    from typeguard._transformer import TypeguardTransformer  # it made the function

    path = [part for part in code.co_qualname.split(".") if part != "<locals>"]
    functions = [each for each in source.functions(code) if not isinstance(each, ast.Lambda)]
    lines = [each.lineno for node in functions for each in node.decorator_list]
    module = ast.parse(source.text)
    TypeguardTransformer(path, min([code.co_firstlineno, *lines])).visit(module)
    return compile(module, source.path, "exec", dont_inherit=True)


def _evaluates(source: Source, function: types.FunctionType) -> bool:
    """Return whether the code that evaluates the annotations of a function may be from a text."""
    annotate = getattr(function, "__annotate__", None)  # from Python 3.14 on
    if not isinstance(annotate, types.FunctionType) or are_copied(function):
        return True
    own = annotate.__code__
    compiled = [code for way in _compiled(source, function) for code in way]
    return any([same(code, own) for code in compiled if code.co_name == own.co_name])


# The texts of loaded modules, so that their writes are known when a kernel is called.


# Subscripted types of loaded modules, `Matrix = f32["n m"]`, as the aliases that their source
# gives.
#
# A real type does not keep its text. It is written again, with the names of its parts, and read as
# an annotation.


Abstract: TypeAlias = "Callable[[object, str], AnyValue]"
"""A function that returns the value for a real object, given its name."""


def is_applied(value: object) -> TypeGuard[Any]:
    """Return whether this is a subscripted type, or a union of types."""
    if isinstance(value, ElementType):
        return value.text is not None
    if _is_jaxtyping(value) or isinstance(value, types.GenericAlias | types.UnionType):
        return True
    return get_origin(value) is not None and is_tuple(getattr(value, "__args__", None))


def alias_of(value: object, scope: Scope, abstract: Abstract) -> Alias:
    """Return the alias for a subscripted type."""
    node, frame = type_node(value, scope, abstract)
    match node:
        case ast.Subscript(value=ast.Name(id=name)):
            return Alias(frame.lookup(name), frame, node, is_written=False)
        case _:
            return Alias(None, frame, node, is_written=False)


def type_node(value: object, scope: Scope, abstract: Abstract) -> tuple[ast.expr, Frame]:
    """Return a type, a tuple of types, or a text as an annotation, and the frame of its names."""
    if isinstance(value, ForwardRef):
        value = value.__forward_arg__
    written = _WrittenTypes(abstract)
    text = value.strip() if isinstance(value, str) else written.text(value)
    frame = Frame(Session(None), Source("<a type>", text), scope)
    frame.names.update(written.names)
    return ast.parse(text, mode="eval").body, frame


def _is_jaxtyping(value: object) -> TypeGuard[Any]:
    return isinstance(value, type) and value.__module__ == "jaxtyping" and hasattr(value, "dim_str")


class _WrittenTypes:
    """Types as text, and the values of the names in it."""

    def __init__(self, abstract: Abstract) -> None:
        self.abstract = abstract
        self.names: dict[str, AnyValue] = {}

    def text(self, value: object) -> str:
        """Return a type as an annotation."""
        if value is None or value is type(None):
            return "None"
        if value is Ellipsis:
            return "..."
        if isinstance(value, Sizes):
            return repr(value.text)
        if isinstance(value, str):
            return repr(value)
        if isinstance(value, ForwardRef):
            return repr(value.__forward_arg__)
        if is_tuple(value):
            return f"({', '.join(map(self.text, value))},)"
        if _is_jaxtyping(value):
            kind = value.dtype.__name__
            self.names[kind] = Marker(f"jaxtyping.{kind}")
            return f"{kind}[{value.dim_str!r}]"
        if isinstance(value, ElementType) and value.text is not None:
            return f"{self.name(value.element)}[{value.text!r}]"
        if not is_applied(value):
            return self.name(value)
        origin, arguments = get_origin(value), get_args(value)
        if origin in (Union, types.UnionType):
            return " | ".join(map(self.text, arguments))
        if origin is Annotated:
            return self.text(arguments[0])
        if origin is Literal:
            self.names["Literal"] = Marker("typing.Literal")
            texts = [f'"{x}"' if repr(x) == f"'{x}'" else repr(x) for x in arguments]
            return f"Literal[{', '.join(texts)}]"
        inner = ", ".join(map(self.text, arguments))
        return f"{self.name(origin)}[{inner or '()'}]"

    def name(self, value: object) -> str:
        """Return a name for a type that is not subscripted."""
        found = self.abstract(value, getattr(value, "__name__", "type"))
        stem = str(getattr(value, "__name__", "type"))
        name = stem = stem if stem.isidentifier() else "type"
        while name in self.names and self.names[name] is not found and self.names[name] != found:
            name += "_"
        self.names[name] = found
        return name


_PUBLIC = {"posix": "os", "nt": "os", "posixpath": "os.path", "ntpath": "os.path"}


def public_name(module: str) -> str:
    """Return the name by which users know one of Python's own modules: `socket` of `_socket`."""
    top, dot, rest = module.partition(".")
    if top in _PUBLIC:
        return _PUBLIC[top]
    bare = top.lstrip("_")
    return bare + dot + rest if top != "__main__" and bare in sys.stdlib_module_names else module


def is_pythons(module: str) -> bool:
    """Return whether a module is Python's; its functions are known only by name."""
    top = module.partition(".")[0]
    return top != "typing" and known_module(module) is None and comes_with_python(module)
