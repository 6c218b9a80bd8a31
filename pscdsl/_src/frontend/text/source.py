"""Source files and notebooks: text, syntax tree, and the spans of nodes."""

from __future__ import annotations

import ast
import functools
import os
import re
import sys
import types
import unicodedata
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from pscdsl._src.frontend.text.display import (
    CodeCell,
    NotANotebook,
    cell_path,
    code_cells,
    encoding_of,
)
from pscdsl._src.support import paths
from pscdsl.typing.codes.language import NotPython
from pscdsl.typing.codes.projects import FileNotRead, InvalidNotebook
from pscdsl.typing.diagnostics import Diagnostic, Failure, Span

if TYPE_CHECKING:
    from pscdsl._src.checker.budgets import Comment
    from pscdsl._src.frontend.arguments import Contract
    from pscdsl._src.frontend.text.bindings import Uses


DIRECTIVE = re.compile(r"#\s*psc\s*:\s*(?P<verb>[A-Za-z][\w-]*)\s*(?P<rest>[^#]*)")
"""A directive in a comment; one Python comment may hold several."""


# Files as bytes: read once, regular files only, with bounded sizes, never through a link.


STANDARD_INPUT = "<stdin>"
"""The name of a program from standard input."""
MAX_SOURCE = 4_000_000
"""The limit on the size of a program; no kernel file is that long."""
MAX_NOTEBOOK = 32_000_000
"""The limit on the size of a notebook, which may hold pictures."""


def limit(path: str) -> int:
    """Return the limit on the bytes of a file."""
    return MAX_NOTEBOOK if path.endswith(".ipynb") else MAX_SOURCE


def read_bytes(path: str, shown: str) -> bytes:
    """Return the content of a file at one moment; a Failure if it cannot be read or is too large.

    The path is resolved: it had no links when the decision was made that it may be read. All
    findings about a file concern these bytes: it is not read again if it changes.
    """
    try:
        return paths.read(path, limit(path))
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error)
        reason = reason[:1].lower() + reason[1:]
        raise Failure(FileNotRead(reason=reason, span=Span(shown, 1, 1, 1, 1))) from None


FunctionStatement = ast.FunctionDef | ast.AsyncFunctionDef
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Source:
    """The text and the tree of one module."""

    def __init__(self, path: str, text: str, tree: ast.Module | None = None) -> None:
        self.path = path
        self.text = text
        self.lines = text.split("\n")  # as Python counts: a form feed ends no line
        self._spans: dict[int, Span] = {}
        self._nodes: list[ast.AST] = []  # keeps the ids in `_spans` valid
        self.contracts: WeakKeyDictionary[object, dict[int, Contract | None]] = WeakKeyDictionary()
        """The contracts of helpers, by scope and the identity of the function's node."""
        self.compiled: dict[object, Sequence[types.CodeType]] = {}
        """The compiled code of its parts, by purpose; see `loaded_code`."""
        self.uses: Uses | None = None
        """The uses of names and attributes, once computed."""
        self.budgets: tuple[Comment, ...] | None = None
        """The comments that are budgets, once computed."""
        self._yields: dict[int, ast.expr | None] = {}
        self._scoping: dict[int, frozenset[str]] = {}
        self._functions: dict[tuple[int, str], list[FunctionNode]] | None = None
        self._classes: dict[str, ast.ClassDef] | None = None
        self._imports: list[ast.Import | ast.ImportFrom] | None = None
        self.tree = parsed(text, path) if tree is None else tree

    @classmethod
    def read(cls, path: str) -> Source:
        """Read and parse a file; a Failure if it is not Python text of reasonable size."""
        shown = shown_path(path)
        return from_bytes(shown, read_bytes(paths.resolved(path), shown))

    @functools.cached_property
    def searched(self) -> str:
        """The text for searches of names."""
        return searchable(self.text)

    def locate(self, line: int) -> tuple[str, int]:
        """Return the path and the line of a line of the text."""
        return self.path, line

    def column(self, line: int, offset: int) -> int:
        """Return the 1-based column in characters of a UTF-8 offset."""
        if line > len(self.lines):
            return offset + 1
        text = self.lines[line - 1]
        if text.isascii():
            return offset + 1
        return len(text.encode()[:offset].decode(errors="replace")) + 1

    def span(self, node: ast.AST) -> Span:
        """Return the span of a node."""
        found = self._spans.get(id(node))
        if found is None:
            place: Any = node
            line, end = place.lineno, place.end_lineno
            columns = self.column(line, place.col_offset), self.column(end, place.end_col_offset)
            path, first = self.locate(line)
            found = Span(path, first, columns[0], first + end - line, columns[1])
            self._spans[id(node)] = found
            self._nodes.append(node)
        return found

    def yields(self, node: FunctionStatement) -> ast.expr | None:
        """Return the first `yield` of a function, if it is a generator."""
        if "yield" not in self.text:
            return None
        if id(node) not in self._yields:
            inner = (each for each in inside(node) if isinstance(each, ast.Yield | ast.YieldFrom))
            self._yields[id(node)] = next(inner, None)
            self._nodes.append(node)
        return self._yields[id(node)]

    def keep(self, node: ast.AST) -> None:
        """Keep a node alive, so that no other node gets its identity, which caches use as a key."""
        self._nodes.append(node)

    def text_of(self, node: ast.AST) -> str:
        """Return the source text of a node on one line."""
        place: Any = node
        span = self.span(node)
        rows = self.lines[place.lineno - 1 : place.end_lineno]
        if not rows:
            return ast.unparse(node)
        rows[-1] = rows[-1][: span.end_column - 1]
        rows[0] = rows[0][span.column - 1 :]
        return " ".join(" ".join(rows).split())

    def postpones_annotations(self) -> bool:
        """Return whether annotations are never evaluated, because of `from __future__`."""
        for node in self.tree.body:
            match node:
                case ast.ImportFrom(module="__future__", names=names):
                    if any(alias.name == "annotations" for alias in names):
                        return True
                case _:
                    pass
        return False

    def scoping(self, node: FunctionStatement) -> frozenset[str]:
        """Return the names that a function assigns and does not declare global or nonlocal."""
        cached = self._scoping.get(id(node))
        if cached is None:
            local = {*parameters(node)}.union(*map(targets, node.body))
            for each in inside(node) if "global" in self.text or "nonlocal" in self.text else ():
                if isinstance(each, ast.Global | ast.Nonlocal):
                    local.difference_update(each.names)
            cached = self._scoping[id(node)] = frozenset(local)
            self._nodes.append(node)
        return cached

    def functions(self, code: types.CodeType) -> list[FunctionNode]:
        """Return the functions with the line and the name of a code object: usually one."""
        if self._functions is None:
            self._functions = {}
            for node in ast.walk(self.tree):
                match node:
                    case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                    case ast.Lambda():
                        first, name = node.lineno, "<lambda>"
                    case _:
                        continue
                # Recompiled code may have lost its decorators.
                for line in dict.fromkeys((first, node.lineno)):
                    self._functions.setdefault((line, name), []).append(node)
        return self._functions.get((code.co_firstlineno, code.co_name), [])

    def imports(self) -> list[ast.Import | ast.ImportFrom]:
        """Return the import statements outside of functions and classes."""
        if self._imports is None:
            self._imports = [
                each for each in inside(self.tree) if isinstance(each, ast.Import | ast.ImportFrom)
            ]
        return self._imports

    def classes(self) -> dict[str, ast.ClassDef]:
        """Return every class statement by qualified name."""
        if self._classes is None:
            self._classes = dict(_classes(self.tree.body, ""))
        return self._classes


_MOST_PARTS = 200
_NAMES = re.compile(r"[\n;:]++|\b(?:from|import)\b|\b\w++(?:[ \t\f]*+\.[ \t\f]*+\w++){9,}+")
"""Ends of statements, import keywords, and names with many parts."""


def _long_import(text: str) -> int | None:
    """Return the position of an import with so many parts that parsing takes minutes."""
    importing = False
    for found in _NAMES.finditer(text.replace("\\\n", "  ")):  # a backslash continues the line
        word = found[0]
        if word[0] in "\n;:":
            importing = False
        elif word in ("from", "import"):
            importing = True
        elif importing and word.count(".") >= _MOST_PARTS:
            return found.start()
    return None


_MOST_NESTED = 20
_FOR = re.compile(r"\bfor\b")


def _comprehension_depth(text: str, tree: ast.Module) -> int:
    """Return the depth of nested comprehensions: CPython 3.15.0 crashes when it compiles 23.

    Older versions report a SyntaxError from 20 on.
    """
    if len(_FOR.findall(text)) <= _MOST_NESTED:
        return 0
    deepest = 0
    nodes: list[tuple[ast.AST, int]] = [(tree, 0)]
    while nodes:
        node, depth = nodes.pop()
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp)):
            depth += 1
            deepest = max(deepest, depth)
        nodes += [(child, depth) for child in children(node)]
    return deepest


def parsed(text: str, path: str, flags: int = 0) -> ast.Module:
    """Return the syntax tree of a text; a Failure if CPython does not compile it."""
    long = _long_import(text)
    if long is not None:
        line = text.count("\n", 0, long) + 1
        reason = f"the name of a module has more than {_MOST_PARTS} parts"
        raise Failure(NotPython(reason=reason, span=Span(path, line, 1, line, 2)))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes are not reported
            tree = ast.parse(text, path)
            if sys.version_info >= (3, 15) and _comprehension_depth(text, tree) > _MOST_NESTED:
                raise SyntaxError("too many statically nested blocks")
            compile(tree, path, "exec", flags, dont_inherit=True)  # finds more than a parser
            return tree
    except SyntaxError as error:
        line, column = error.lineno or 1, error.offset or 1
        end = (error.end_lineno or line, max(error.end_offset or 0, column + 1))
        span = Span(path, line, max(column, 1), *end)
        raise Failure(NotPython(reason=error.msg or "invalid syntax", span=span)) from None
    except (ValueError, RecursionError, MemoryError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        span = Span(path, 1, 1, 1, 1)
        raise Failure(NotPython(reason=reason, span=span)) from None


def from_bytes(path: str, data: bytes) -> Source:
    """Return a module from the content of its file: a program, or a notebook."""
    if path.endswith(".ipynb"):
        return notebook(path, data)
    return Source(path, decoded(path, data))


_CONTINUED = re.compile(r"\\(?:\r\n|\r|\n)")
_ESCAPED = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|N\{([^{}\n]{1,100})\}|([0-7]{1,3}))"
)
_JOINED = re.compile(
    r"""["'](?<=\w["'])(?:[\s"']|#[^\n]{0,200}\n|[rRuUbB](?=[rRuUbB"'])){0,200}["'](?=\w)"""
)


def searchable(text: str) -> str:
    """Return a text in which every spelling of a name that Python accepts can be found.

    The text is followed by its other forms: normalised letters, joined lines, and strings without
    escapes and gaps.
    """
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    found = [plain]
    if _CONTINUED.search(plain):
        found = [_CONTINUED.sub(" ", plain), _CONTINUED.sub("", plain)]
    found[-1] = _JOINED.sub("", _ESCAPED.sub(_letter, found[-1]))
    return "\n".join(dict.fromkeys((text, *found)))


def _letter(escape: re.Match[str]) -> str:
    """Return the character of an escape in a string; the escape itself if it is invalid."""
    *hexadecimal, name, octal = escape.groups()
    digits = next(filter(None, hexadecimal), None)
    try:
        if name:
            return unicodedata.lookup(name)
        return chr(int(octal, 8) if octal else int(digits or "", 16))
    except (KeyError, ValueError, OverflowError):
        return escape[0]


def decoded(path: str, data: bytes) -> str:
    """Return a program's bytes as text with plain line ends; a Failure if it is not text."""
    try:
        text = data.decode(encoding_of(data))
    except (SyntaxError, LookupError, ValueError) as error:
        # The content of the file is not shown: it may be no Python program.
        reason = "it is not UTF-8, or its first lines name no encoding of programs"
        if isinstance(error, UnicodeDecodeError):
            reason = f"it is not {error.encoding}, from byte {error.start} on"
        span = Span(path, 1, 1, 1, 1)
        raise Failure(NotPython(reason=f"not text: {reason}", span=span)) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _classes(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for node in body:
        match node:
            case ast.ClassDef(name=name):
                yield prefix + name, node
                yield from _classes(node.body, f"{prefix}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield from _classes(node.body, f"{prefix}{name}.<locals>.")
            case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
                yield from _classes(node.body, prefix)
            case _:
                pass


_LEAVES: Final = frozenset({ast.Name, ast.Constant})
"""Half of all nodes, whose only child is a context."""


def children(node: ast.AST) -> list[ast.AST]:
    """Return the children of a node without contexts; faster than `ast.iter_child_nodes`."""
    found: list[ast.AST] = []
    if type(node) in _LEAVES:
        return found
    for name in node._fields:
        value: Any = getattr(node, name, None)
        if value.__class__ is list:
            found += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            found.append(value)
    return found


def inside(node: ast.Module | FunctionStatement) -> Iterator[ast.AST]:
    """Yield the nodes of a body in order, without those of functions and classes in it."""
    pending: list[ast.AST] = [*reversed(node.body)]
    while pending:
        inner = pending.pop()
        if not isinstance(inner, FunctionNode | ast.ClassDef):
            yield inner
            pending.extend(reversed(children(inner)))


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of a compound statement, a handler, or a case."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements and those in them."""
    for node in body:
        yield node
        for block in blocks(node):
            yield from statements(block)


def targets(node: ast.AST) -> list[str]:
    """Return the names that a part of a program assigns, in order, except in nested functions."""
    found: list[str] = []
    pending = [node]
    while pending:
        each = pending.pop()
        inner: Sequence[ast.AST] = ()
        match each:
            case ast.Constant() | ast.Name(ctx=ast.Load()):
                continue
            case ast.Name(id=name):
                found.append(name)
            case ast.Lambda():
                inner = [*each.args.defaults, *filter(None, each.args.kw_defaults)]
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                named = (part for part in ast.walk(each) if isinstance(part, ast.NamedExpr))
                inner = [part.target for part in named]
            case ast.Import() | ast.ImportFrom():
                found += [(alias.asname or alias.name).split(".")[0] for alias in each.names]
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.append(each.name)
                inner = heading(each)
            case (
                ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
                | ast.ExceptHandler(name=str(name))
            ):
                found.append(name)
                inner = children(each)
            case _:
                inner = children(each)
        pending.extend(reversed(inner))
    return found


def stores(node: ast.AST, name: str) -> list[ast.Name]:
    """Return the nodes in another one that bind or delete a name."""
    return [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]


def heading(node: FunctionStatement | ast.ClassDef) -> list[ast.AST]:
    """Return the nodes that a definition evaluates, without its body."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *node.keywords]
    return [*node.decorator_list, node.args, *filter(None, [node.returns])]


def named_parameters(function: FunctionNode) -> list[ast.arg]:
    """Return the parameters, without `*args` and `**kwargs`."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def parameters(function: FunctionNode) -> list[str]:
    """Return the names of all parameters."""
    more = filter(None, [function.args.vararg, function.args.kwarg])
    return [each.arg for each in (*named_parameters(function), *more)]


def last_name(node: ast.expr) -> str:
    """Return a name, or the last part of a dotted one; empty for any other expression."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def called(node: ast.expr) -> ast.expr:
    """Return the function of a call; any other expression itself."""
    return node.func if isinstance(node, ast.Call) else node


def subscripted(node: ast.expr) -> ast.expr:
    """Return the expression before the brackets of a subscript; any other expression itself."""
    return node.value if isinstance(node, ast.Subscript) else node


def items(node: ast.Subscript) -> list[ast.expr]:
    """Return the expressions in the brackets of a subscript."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def shown_path(path: str) -> str:
    """Return a path for messages: resolved, and relative to the current folder if it is inside."""
    real = paths.resolved(path)
    here = os.path.join(os.getcwd(), "")
    return real[len(here) :] if real.startswith(here) else real


def with_defaults(spec: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    """Yield the parameters that have defaults, with the defaults."""
    positional = [*spec.posonlyargs, *spec.args]
    yield from zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True)
    for parameter, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        if default is not None:
            yield parameter, default


# Notebooks as source: the code cells of a document are one module.
#
# Each cell is parsed separately, so that an error is reported in its cell. IPython's additions to
# Python (`%matplotlib inline`, `!ls`, `x?`) do not matter in a kernel and are replaced, line by
# line, by statements that do nothing.


_MAGIC = re.compile(r"\s*(?:[%!?]|[^#'\"]*\?\??\s*$)")
_ASSIGNED = re.compile(r"(\s*[\w\s,.]+=\s*)[%!]")
_PYTHON_CELLS = ("time", "timeit", "capture", "prun", "psc")
"""Cell magics whose cell is nevertheless Python."""
_UNKNOWN = "get_ipython()"
_MOST_MAGICS = 500


class NotebookSource(Source):
    """The text and the tree of a notebook's cells, in order."""

    def __init__(self, path: str, cells: tuple[CodeCell, ...]) -> None:
        self._starts: list[int] = []
        self._numbers = [cell.number for cell in cells]
        rows: list[str] = []
        body: list[ast.stmt] = []
        problems: list[Diagnostic] = []
        for cell in cells:
            self._starts.append(len(rows) + 1)
            lines = cell.text.split("\n")
            try:
                body.extend(_statements(lines, cell_path(path, cell.number), len(rows)))
            except Failure as failure:
                problems.extend(failure.diagnostics)
            rows.extend(lines)
        if problems:
            raise Failure(*problems)
        super().__init__(path, "\n".join(rows), ast.Module(body, []))

    def locate(self, line: int) -> tuple[str, int]:
        """Return the cell of a line of the text, and the line in the cell."""
        index = bisect_right(self._starts, line) - 1
        if index < 0:
            return self.path, line
        return cell_path(self.path, self._numbers[index]), line - self._starts[index] + 1


def notebook(path: str, data: bytes) -> NotebookSource:
    """Return a notebook from its document; a Failure if it is no notebook, or not Python."""
    try:
        cells = code_cells(data)
    except NotANotebook as error:
        span = Span(path, 1, 1, 1, 1)
        raise Failure(InvalidNotebook(reason=str(error), span=span)) from None
    return NotebookSource(path, cells)


def _statements(lines: list[str], path: str, offset: int) -> list[ast.stmt]:
    """Return the statements of a cell; IPython's additions are removed from `lines`."""
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    head = lines[first].lstrip() if lines else ""
    if head.startswith("%%"):
        python = head[2:].split(maxsplit=1)[:1] in ([name] for name in _PYTHON_CELLS)
        lines[first : first + 1 if python else None] = [""] * (1 if python else len(lines) - first)
    for _ in range(_MOST_MAGICS):
        try:
            tree = parsed("\n".join(lines), path, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except Failure as failure:
            place = failure.diagnostics[0].span.line - 1
            if not 0 <= place < len(lines) or not _blank(lines, place):
                raise
            continue
        return ast.increment_lineno(tree, offset).body if offset else tree.body
    raise Failure(InvalidNotebook(reason="a cell has too many magics", span=Span(path, 1, 1, 1, 1)))


def _blank(lines: list[str], place: int) -> bool:
    """Replace a line in IPython's syntax; return whether it was one."""
    line = lines[place]
    indent = line[: len(line) - len(line.lstrip())]
    assigned = _ASSIGNED.match(line)
    if assigned:
        lines[place] = assigned[1] + _UNKNOWN
    elif _MAGIC.match(line):
        lines[place] = f"{indent}pass"
    else:
        return False
    return True
