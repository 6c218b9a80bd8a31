"""The function of a text that loaded code was compiled from: proven, by compiling it again.

A file may have been changed since it was loaded; then what would be read is not what Python runs.
So a text counts as that of some code only if it compiles to this code, constant by constant and
column by column, and if the annotations that Python evaluated are those that it has.  Texts of one
file are kept as long as code of them may be about.  What changes code when it is loaded, an import
hook or `typeguard.typechecked`, is asked to do the same to the text.
"""

from __future__ import annotations
import __future__

import ast
import copy
import linecache
import sys
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.machinery import SourceFileLoader
from typing import Any, Final

from pscdsl._src.frontend.loaded_annotations import agrees, are_copied
from pscdsl._src.frontend.text import code_texts
from pscdsl._src.frontend.text.code_content import has_columns, same
from pscdsl._src.frontend.text.source import FunctionNode, Source, shown_path
from pscdsl._src.support.processes import forget_at_end
from pscdsl.typing.codes.limits import NoSource, SeveralFunctions, TextChanged
from pscdsl.typing.diagnostics import Failure

_FUTURE: Final = __future__.all_feature_names
_FLAGS: Final = sum(getattr(__future__, name).compiler_flag for name in _FUTURE)
_MODE: Final = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
"""What notebooks and prompts allow beside programs."""

_TEXTS: dict[str, list[Source]] = {}
"""The texts that a file has had, the newest first."""
forget_at_end(_TEXTS)


def current_source(
    filename: str, namespace: dict[str, Any], code: types.CodeType | None = None
) -> Source | None:
    """The text that a file, or a cell of a notebook, has now; None if there is none."""
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
    """The texts that code may be from: the one its file has now, and those it had before."""
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


def function_in_text(function: types.FunctionType) -> tuple[Source, FunctionNode]:
    """A loaded function in the text that it is from; a Failure if there is none, or another one."""
    code = function.__code__
    found: Source | None = None
    for source in _sources(code, function.__globals__):
        found = source
        node = _node(source, function) or _patched_node(source, function)
        if node is not None and _declares(node, function, source):
            return source, node
    if found is None:
        remedy = code_texts.remedy(code.co_filename)
        raise Failure(NoSource(function=function.__qualname__, remedy=remedy))
    where = f"{found.path}:{code.co_firstlineno}"
    raise Failure(TextChanged(function=function.__qualname__, where=where))


def _node(source: Source, function: types.FunctionType) -> FunctionNode | None:
    """The node that compiles to the code of a function."""
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
    """The same for code that `%autoreload` compiled alone: its lines are not those of the file."""
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
    """The functions of a name, within classes if there are several parts of it."""
    for each in body:
        if isinstance(each, ast.FunctionDef) and path == [each.name]:
            yield each
        elif isinstance(each, ast.ClassDef) and len(path) > 1 and each.name == path[0]:
            yield from _at_path(each.body, path[1:])


def _alone(node: ast.FunctionDef, path: str, decorated: bool, *, is_method: bool) -> Any:
    """A function as `%autoreload` compiles it, written anew, with its decorators or without."""
    text = ast.unparse(node)
    if is_method:
        text = "class __autoreload_class__:\n" + textwrap.indent(text, "    ")
    tree = ast.parse(text)
    if not decorated:
        body: Any = tree.body[0]
        (body.body[0] if is_method else body).decorator_list = []
    return compile(tree, path, "exec", dont_inherit=True)


def _standing_at(
    source: Source, code: types.CodeType, alike: Sequence[types.CodeType]
) -> FunctionNode | None:
    """Of the functions that begin in the line of some code, the one that has its columns."""
    found = source.functions(code)
    if len(found) < 2:
        return found[0] if found else None
    if not has_columns(code):
        if all([same(each, code) for each in alike]):
            return found[0]
        raise Failure(SeveralFunctions(line=f"{source.path}:{code.co_firstlineno}"))
    first = code.co_firstlineno
    places = [
        ((line, column), (end, last))
        for line, end, column, last in code.co_positions()
        if None not in (line, end, column, last) and (line, column, last) != (first, 0, 0)
    ]
    around = [node for node in found if all([_has(node, *place) for place in places])]
    return max(around, key=_start, default=None)  # the innermost


def _body(node: FunctionNode) -> Any:
    return node.body if isinstance(node, ast.Lambda) else node


def _start(node: FunctionNode) -> tuple[int, int]:
    body = _body(node)
    return body.lineno, body.col_offset


def _has(node: FunctionNode, start: Any, end: Any) -> bool:
    body = _body(node)
    last = (body.end_lineno, body.end_col_offset)
    return bool(_start(node) <= start and end <= last)


_CHECKERS: Final = ("beartype", "jaxtyping", "typeguard")
"""Packages that wrap functions in checks of types, which change no result."""


def unchecked(function: types.FunctionType) -> types.FunctionType:
    """The function that was written, without the checks of types that it is called through."""
    inner = getattr(function, "__wrapped__", None)
    while isinstance(inner, types.FunctionType) and _wraps_in_checks(function):
        function, inner = inner, getattr(inner, "__wrapped__", None)
    return function


def _wraps_in_checks(function: types.FunctionType) -> bool:
    home = str(function.__globals__.get("__name__"))
    made_by_beartype = hasattr(function, "__beartype_wrapper")
    return made_by_beartype or home.partition(".")[0] in _CHECKERS


# What a text compiles to.


def _compiled(source: Source, function: types.FunctionType) -> Iterator[Sequence[types.CodeType]]:
    """The code near a function's, as each known way of loading makes it of the text."""
    for key, make in _ways(source, function):
        if key not in source.compiled:
            source.compiled[key] = _functions(make)
        yield source.compiled[key]


def _ways(
    source: Source, function: types.FunctionType
) -> Iterator[tuple[object, Callable[[], Any]]]:
    """How the text may have been compiled, the likeliest and quickest first."""
    code = function.__code__
    flags = code.co_flags & _FLAGS
    statements = _statements(source, code.co_firstlineno)
    loader = _loader(function.__globals__)
    for each in statements:
        yield (id(each), flags), partial(_compile, source, [each], flags)
    pytest: Any = sys.modules.get("_pytest.assertion.rewrite")
    if pytest is not None and isinstance(loader, pytest.AssertionRewritingHook):
        for each in statements:
            yield ("asserts", id(each)), partial(_rewritten, pytest, loader, source, each, flags)
    elif _changes_code(loader):
        yield "loader", partial(loader.source_to_code, source.text.encode(), source.path)
    if "typeguard" in sys.modules:
        key = ("typeguard", code.co_qualname, code.co_firstlineno)
        yield key, partial(_type_checked, source, code)
    yield flags, partial(compile, source.text, source.path, "exec", flags | _MODE, True)
    for each in statements:  # as prompts and notebooks do
        alone = ast.Module([each], [])
        yield (
            ("alone", id(each), flags),
            partial(compile, alone, source.path, "exec", flags | _MODE, True),
        )


def _statements(source: Source, line: int) -> list[ast.stmt]:
    """The statements of a module that have a line; a `class` or `def` with all that is in it."""
    found: list[ast.stmt] = []
    for each in source.tree.body:
        decorators = getattr(each, "decorator_list", ())
        first = min([each.lineno, *[d.lineno for d in decorators]])
        if first <= line <= (each.end_lineno or each.lineno):
            found.append(each)
    return found


def _functions(make: Callable[[], Any]) -> Sequence[types.CodeType]:
    """All code that is nested in what is made; nothing if it cannot be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whoever loaded it was warned
            return list(_nested(make()))
    except Exception:  # of somebody else's hook, too: then this is not how it was loaded
        return ()


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each
            yield from _nested(each)


def _compile(source: Source, statements: Sequence[ast.stmt], flags: int) -> Any:
    """A part of a module, with its imports: what is called is compiled by whether it is one."""
    module = ast.Module([*source.imports(), *statements], [])
    return compile(module, source.path, "exec", flags | _MODE, dont_inherit=True)


def _loader(namespace: dict[str, Any]) -> Any:
    spec = namespace.get("__spec__")
    return namespace.get("__loader__") if spec is None else getattr(spec, "loader", None)


def _changes_code(loader: Any) -> bool:
    """Whether what loaded a module compiles it in a way of its own."""
    kind: Any = loader.__class__
    made = getattr(kind, "source_to_code", None)
    return made is not None and made is not SourceFileLoader.source_to_code


def _rewritten(pytest: Any, loader: Any, source: Source, statement: ast.stmt, flags: int) -> Any:
    """As pytest compiles modules of tests: it puts what it prints into assertions."""
    module = ast.Module([copy.deepcopy(statement)], [])
    pytest.rewrite_asserts(module, source.text.encode(), source.path, loader.config)
    return _compile(source, module.body, flags)


def _decorators(node: FunctionNode) -> Sequence[ast.expr]:
    return () if isinstance(node, ast.Lambda) else node.decorator_list


def _type_checked(source: Source, code: types.CodeType) -> Any:
    """As `typeguard.typechecked` compiles a function again, with checks in it."""
    from typeguard._transformer import TypeguardTransformer

    path = [part for part in code.co_qualname.split(".") if part != "<locals>"]
    lines = [each.lineno for node in source.functions(code) for each in _decorators(node)]
    module = ast.parse(source.text)
    TypeguardTransformer(path, min([code.co_firstlineno, *lines])).visit(module)
    return compile(module, source.path, "exec", dont_inherit=True)


def _declares(node: FunctionNode, function: types.FunctionType, source: Source) -> bool:
    """Whether the annotations that a function has may be what its text says."""
    annotate = getattr(function, "__annotate__", None)  # from Python 3.14 on
    if not are_copied(function) and isinstance(annotate, types.FunctionType):
        own = annotate.__code__
        ways = _compiled(source, function)
        return any([same(each, own) for way in ways for each in way if each.co_name == own.co_name])
    return agrees(node, function, source)
