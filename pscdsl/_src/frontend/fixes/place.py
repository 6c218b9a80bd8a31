"""The parts of a fix: a finding, the tree of its source, names in scope, edits of text."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pscdsl._src.frontend.text.bindings import ScopeNode, is_lost, uses
from pscdsl._src.frontend.text.source import (
    FunctionNode,
    FunctionStatement,
    Source,
    blocks,
    children,
    parameters,
    targets,
)
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.numpy import methods
from pscdsl.typing.diagnostics import Applicability, Diagnostic, Edit, Fix, Span

# Edits of text: places as offsets, line ends as the text has them, nothing else changed.


_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, order=True)
class Replacement:
    """A range of offsets, the end exclusive, and the text that comes there."""

    start: int
    end: int
    text: str

    def meets(self, other: Replacement) -> bool:
        """Return whether the two cannot be made together: they overlap, or insert at one place."""
        if self == other:
            return False  # one and the same: two fixes may need the same import
        if self.start == self.end or other.start == other.end:
            return self.start <= other.end and other.start <= self.end
        return self.start < other.end and other.start < self.end


class Text:
    """A text with its lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        ends = list(_END.finditer(text))
        self._starts = [0, *(end.end() for end in ends)]
        self.newline = ends[0][0] if ends else "\n"

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a 1-based line and column."""
        return min(self._starts[line - 1] + column - 1, len(self.text))

    def place(self, offset: int) -> tuple[int, int]:
        """Return the 1-based line and column of an offset."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def replacement(self, edit: Edit) -> Replacement:
        """Return an edit as a replacement in this text, with the line ends of the text."""
        start = self.offset(edit.span.line, edit.span.column)
        end = self.offset(edit.span.end_line, edit.span.end_column)
        return Replacement(start, end, _END.sub(self.newline, edit.text))

    def replacements(self, edits: Iterable[Edit]) -> tuple[Replacement, ...]:
        """Return edits as replacements, in the order of their places."""
        return tuple(sorted(map(self.replacement, edits)))


def replaced(text: str, replacements: Sequence[Replacement]) -> str:
    """Return the text with replacements that do not meet, given in order of their places."""
    parts: list[str] = []
    position = 0
    for replacement in replacements:
        parts += (text[position : replacement.start], replacement.text)
        position = replacement.end
    return "".join((*parts, text[position:]))


def moved(offset: int, replacements: Sequence[Replacement]) -> int:
    """Return the place after replacements; a place inside of one moves to its start."""
    shift = 0
    for replacement in replacements:
        if replacement.end <= offset:
            shift += len(replacement.text) - (replacement.end - replacement.start)
        elif replacement.start <= offset:
            return replacement.start + shift
    return offset + shift


def written(replacements: Sequence[Replacement]) -> tuple[tuple[int, int], ...]:
    """Return the ranges of the replacements in the new text."""
    ranges: list[tuple[int, int]] = []
    shift = 0
    for replacement in replacements:
        ranges.append(
            (replacement.start + shift, replacement.start + shift + len(replacement.text))
        )
        shift += len(replacement.text) - (replacement.end - replacement.start)
    return tuple(ranges)


# The text of a file in its encoding: unchanged parts are written back as the same bytes.


_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Encoded:
    """A program as text, and how it is encoded."""

    text: str
    """With the line ends that the file has."""
    encoding: str
    mark: bytes
    """The byte order mark before the text, which says that it is UTF-8."""

    @classmethod
    def of(cls, data: bytes) -> Encoded | None:
        """Return a file's content; None if it is no text or would change when written back."""
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            encoding = "utf-8" if encoding == "utf-8-sig" else encoding
            mark = _MARK if data.startswith(_MARK) else b""
            found = cls(data[len(mark) :].decode(encoding), encoding, mark)
            return found if found.bytes(found.text) == data else None
        except (SyntaxError, ValueError, LookupError):
            return None

    def bytes(self, text: str) -> bytes:
        """Return another text in this encoding; UnicodeEncodeError if it lacks a character."""
        return self.mark + text.encode(self.encoding)


# The parts of a fix: a finding, the tree of its source, and the names in scope there.


# A tree by place: the nodes at a span, their parents, their text.


N = TypeVar("N", bound=ast.AST)

ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Dict, ast.ListComp)


class LocatedTree:
    """The syntax tree of a source, with the way back from a place to its nodes."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.uses = uses(source)
        self._at: dict[tuple[int, int, int, int], list[ast.AST]] = {}
        waiting: list[ast.AST] = [source.tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.expr | ast.stmt | ast.arg):
                end = (node.end_lineno or 0, node.end_col_offset or 0)
                self._at.setdefault((node.lineno, node.col_offset, *end), []).append(node)
            if not isinstance(node, ast.JoinedStr):  # the places of its children are not reliable
                waiting += children(node)
        self._comments: frozenset[int] | None = None

    def at(self, span: Span) -> list[ast.AST]:
        """Return the nodes at exactly this place, the outermost first."""
        start = (span.line, self._offset(span.line, span.column))
        end = (span.end_line, self._offset(span.end_line, span.end_column))
        return self._at.get((*start, *end), [])

    def _offset(self, line: int, column: int) -> int:
        """Return the UTF-8 offset of a column in characters."""
        lines = self.source.lines
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        return column - 1 if text.isascii() else len(text[: column - 1].encode())

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the parent of a node."""
        return self.uses.parents.get(node)

    def function(self, node: ast.AST) -> FunctionNode | None:
        """Return the innermost function whose text a node belongs to."""
        return self.uses.function_of(node)

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the list of statements that contains one."""
        found = blocks(self.uses.parents[statement])
        return next((block for block in found if statement in block), [statement])

    def text(self, node: ast.AST) -> str:
        """Return a node exactly as it is written, without parentheses around it."""
        span = self.source.span(node)
        rows = self.source.lines[span.line - 1 : span.end_line]
        rows[-1] = rows[-1][: span.end_column - 1]
        rows[0] = rows[0][span.column - 1 :]
        return "\n".join(rows)

    def operand(self, node: ast.expr) -> str:
        """Return the text of a node as an operand of any operator."""
        text = self.text(node)
        bare = isinstance(node, (*ATOMS, ast.Constant)) and "\n" not in text
        return text if bare or _enclosed(node, text) else f"({text})"

    def receiver(self, node: ast.expr) -> str:
        """Return the text of a node in front of a dot."""
        match node:
            case ast.Constant(value=int() | float() | complex()):
                return f"({self.text(node)})"
            case _:
                return self.operand(node)

    def argument(self, node: ast.expr) -> str:
        """Return the text of a node as one argument of a call, or between commas."""
        text = self.text(node)
        loose = (ast.Tuple, ast.NamedExpr, ast.Yield, ast.YieldFrom)
        return f"({text})" if isinstance(node, loose) and not _enclosed(node, text) else text

    def arguments(self, call: ast.Call) -> list[str] | None:
        """Return the texts of the positional arguments of a call; None if there is `*args`."""
        if any(isinstance(each, ast.Starred) for each in call.args):
            return None
        return [self.argument(each) for each in call.args]

    def value(self, node: ast.expr) -> str:
        """Return the text of a node at the right of `=`: on one logical line."""
        text = self.argument(node)
        return f"({text})" if "\n" in text and not _parses(text) else text

    def wrapped(self, node: ast.AST) -> Span:
        """Return the place of an operand, with the brackets around it alone."""
        span, lines = self.source.span(node), self.source.lines
        above = self.parent(node)
        operand = isinstance(above, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp)
        before = lines[span.line - 1][: span.column - 1]
        after = lines[span.end_line - 1][span.end_column - 1 :]
        if operand and before.endswith("(") and after.startswith(")"):
            return replace(span, column=span.column - 1, end_column=span.end_column + 1)
        return span

    def has_comment(self, span: Span) -> bool:
        """Return whether a comment is in a range; one after its end does not count."""
        rows = range(span.line, span.end_line)
        if not any("#" in self.source.lines[row - 1] for row in rows):
            return False
        if self._comments is None:
            self._comments = frozenset(_comments(self.source.text))
        return any(row in self._comments for row in rows)


def _comments(text: str) -> Iterator[int]:
    """Yield the lines with a comment."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0]
    except (tokenize.TokenError, SyntaxError):
        return  # the parser accepted it; the comments read so far count


def _enclosed(node: ast.expr, text: str) -> bool:
    """Return whether a node's own text has brackets around it."""
    match node:
        case ast.Tuple() | ast.GeneratorExp():
            return text.startswith("(") and _closes_at_end(text)
        case ast.List() | ast.Dict() | ast.ListComp() | ast.DictComp() | ast.SetComp() | ast.Set():
            return True
        case _:
            return False


def _closes_at_end(text: str) -> bool:
    """Return whether the last character closes the bracket that opens a text: not `(a), (b)`."""
    parsed = _parses(f"f{text}")
    return parsed is not None and isinstance(parsed.body, ast.Call)


def _parses(text: str) -> ast.Expression | None:
    try:
        return ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return None


# Whether an array may have another name, so that a change of it would be seen there.
#
# `x[0] = 1` under NumPy changes the array, and every holder of it or of a view of it sees the
# change; `x = psc.update(x, 0, 1)` binds the name to a new one. The two agree if `x` is the only
# name of the array. The answer follows from the text of the function alone, and errs towards yes.


BUILTINS = frozenset({"abs", "bool", "complex", "float", "int", "len", "print", "range", "sum"})
MODULES = frozenset({"np", "numpy", "psc", "pscdsl"})

OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.Compare)
"""Operations that always make a new value."""

DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.DictComp, ast.GeneratorExp)
"""Expressions that keep references to the values in them."""


def shared(tree: LocatedTree, node: ast.Name, inlined: bool) -> bool:
    """Return whether the value of a function's name may have another name, too.

    `inlined`: the function is a helper that a kernel calls, so its caller sees changes of its
    arguments.
    """
    function = tree.function(node)
    if not isinstance(function, FunctionStatement):
        return True
    nested = tree.function(function) is not None
    if (inlined or nested) and node.id in parameters(function):
        return True
    for each in ast.walk(function):
        if isinstance(each, ast.Name) and each.id == node.id:
            if _function(tree, each) is not function:
                return True  # a nested function keeps a reference to it
            if isinstance(each.ctx, ast.Load) and _kept(tree, each, node.id):
                return True
    return any(not fresh for fresh in _bindings(function, node.id))


def _function(tree: LocatedTree, node: ast.AST) -> FunctionNode | None:
    """Return the function that contains a node; branches of a `psc.cond` count as its text."""
    found = tree.function(node)
    while isinstance(found, ast.Lambda) and _is_branch(tree, found):
        found = tree.function(found)
    return found


def _is_branch(tree: LocatedTree, node: ast.Lambda) -> bool:
    match tree.parent(node):
        case ast.Call(args=arguments) as call:
            return node in arguments and _is_cond(call)
        case _:
            return False


def _is_cond(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id=module), attr="cond"):
            return module in MODULES
        case _:
            return False


def _bindings(function: FunctionStatement, name: str) -> Iterator[bool]:
    """Yield, for each statement that binds a name, whether it binds a new value."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=bound)], value=value):
                if bound == name:
                    yield _is_fresh(value, name)
            case ast.Assign(targets=several):
                if any(name in targets(target) for target in several):
                    yield False
            case ast.AnnAssign(target=target, value=value):
                if name in targets(target):
                    yield value is None or _is_fresh(value, name)
            case (
                ast.For(target=target)
                | ast.NamedExpr(target=target)
                | ast.withitem(optional_vars=ast.expr() as target)
            ) if name in targets(target):
                yield False
            case _:
                pass


def _is_fresh(node: ast.expr, name: str) -> bool:
    """Return whether no name other than this one can hold the value of an expression."""
    match node:
        case ast.Call(args=[_, *functions]) if _is_cond(node):
            branches = [each.body for each in functions if isinstance(each, ast.Lambda)]
            return len(branches) == 2 and all(_is_fresh(branch, name) for branch in branches)
        case ast.Call():
            return _makes_new(node, None)
        case ast.IfExp(body=yes, orelse=no):
            return _is_fresh(yes, name) and _is_fresh(no, name)
        case ast.Name(id=other):
            return other == name
        case _:
            return isinstance(node, (*OPERATIONS, ast.List, ast.Dict, ast.ListComp, ast.Constant))


def _makes_new(call: ast.Call, given: ast.AST | None) -> bool:
    """Return whether a call makes a new value, which does not refer to its arguments."""
    if any(keyword.arg in ("out", "copy") for keyword in call.keywords):
        return False
    match call.func:
        case ast.Name(id=name):
            return name in BUILTINS
        case ast.Attribute() as function:
            module, _, name = ast.unparse(function).partition(".")
            if module in MODULES:
                meaning = MEANINGS.get(f"numpy.{name}")
                return name == "update" or (isinstance(meaning, Meaning) and meaning.makes_new)
            return methods.makes_new(function.attr) and (given is None or given is function)
        case _:
            return False


def _kept(tree: LocatedTree, node: ast.AST, name: str) -> bool:
    """Return whether a name's value, or a view of it, may be stored somewhere."""
    held = False
    for each in tree.uses.above(node):
        match each:
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() if not held:
                return False
            case ast.Attribute(attr="shape" | "ndim" | "size" | "dtype"):
                return False
            case ast.Call(func=function):
                at = isinstance(function, ast.Attribute) and function.attr == "at"  # of a ufunc
                if at or _makes_new(each, node):
                    return False
                if node is function and isinstance(tree.parent(each), ast.Expr):
                    # `x.sort()` itself is the question
                    return not (
                        isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
                    )
            case ast.stmt():
                return _kept_by(each, node, name)
            case ast.NamedExpr():
                return True
            case ast.Lambda() if not _is_branch(tree, each):
                return True
            case _:
                held |= isinstance(each, DISPLAYS)
        node = each
    return True


def _kept_by(statement: ast.stmt, part: ast.AST, name: str) -> bool:
    """Return whether a statement keeps the value of the expression in it."""
    match statement:
        case ast.Assign(value=value) if part is not value:
            return _item_of(part) is None  # `x[0] = …`
        case ast.Assign(targets=[ast.Name(id=other)]) if other == name:
            return False  # the name is bound again
        case ast.Assign(targets=[first]):
            stored = _item_of(first)  # `x[i] = x[j]` copies
            return stored is None or stored != _item_of(part)
        case ast.Return() | ast.Assert() | ast.Raise() | ast.Delete():
            return False
        case ast.AugAssign() | ast.If() | ast.While():
            return False
        case _:
            return True


def _item_of(node: ast.AST) -> str | None:
    """Return the name in `name[index]`."""
    match node:
        case ast.Subscript(value=ast.Name(id=name)):
            return name
        case _:
            return None


D = TypeVar("D", bound=Diagnostic, covariant=True)

_SHORT = 60
"""Longer texts are cut in the message of a fix."""


class Place(Generic[D]):
    """A finding at its place."""

    def __init__(self, finding: D, tree: LocatedTree) -> None:
        self.finding = finding
        self.tree = tree
        self.nodes = tree.at(finding.span)

    def node(self, *kinds: type[N]) -> N | None:
        """Return the outermost node of a kind at exactly the place of the finding."""
        return next((node for node in self.nodes if isinstance(node, kinds)), None)

    def parent(self, node: ast.AST, kind: type[N]) -> N | None:
        """Return the parent of a node, if it is of this kind."""
        found = self.tree.parent(node)
        return found if isinstance(found, kind) else None

    def call_statement(self, node: ast.expr) -> tuple[ast.Call, ast.Expr] | None:
        """Return the call of a function and its statement, if the call is a whole statement."""
        call = self.parent(node, ast.Call)
        if call is None or call.func is not node:
            return None
        statement = self.parent(call, ast.Expr)
        return None if statement is None else (call, statement)

    def replace(
        self,
        node: ast.AST,
        text: str,
        applicability: Applicability = "unsafe",
        *,
        needs: Sequence[Edit] = (),
        message: str = "",
        until: ast.AST | None = None,
        span: Span | None = None,
        caveat: str = "",
    ) -> Iterator[Fix]:
        """Yield the fix that replaces a node by a text; none if a comment would be lost.

        `until` is the last of the nodes that are replaced; `span` is the replaced range if that is
        more than the node.
        """
        span = span or self.tree.source.span(node)
        if until is not None:
            end = self.tree.source.span(until)
            span = replace(span, end_line=end.end_line, end_column=end.end_column)
        if self.tree.has_comment(span):
            return
        message = message or f"replace `{_short(self.tree.text(node))}` by `{_short(text)}`"
        yield Fix(message, (*needs, Edit(span, text)), applicability, caveat)

    def insertion(self, line: int, column: int, text: str) -> Edit:
        """Return the edit that inserts text before a place."""
        return Edit(Span(self.tree.source.path, line, column, line, column), text)

    def named(self, node: ast.expr) -> str | None:
        """Return the name that a node is, if a statement beside it may bind it again."""
        if not isinstance(node, ast.Name):
            return None
        function = self.tree.function(node)
        if not isinstance(function, FunctionStatement):
            return None
        if is_lost(function, node.id):
            return None  # the binding would be unused
        return node.id if node.id in self.tree.source.scoping(function) else None

    def shared(self, node: ast.Name) -> bool:
        """Return whether the value of a name may have another name, too."""
        return shared(self.tree, node, self.finding.span.call_site is not None)

    def module(self, name: str, usual: str) -> tuple[str, tuple[Edit, ...]] | None:
        """Return the name of a module here, and the import that it needs; None if impossible.

        `usual` is the name under which it is imported where it is not.
        """
        bound = self._bound_to(name, f"pscdsl.{name}")
        if bound:
            return bound, ()
        return self.imported(f"import {name}" + (f" as {usual}" if usual != name else ""), usual)

    def numpy(self) -> tuple[str, tuple[Edit, ...]] | None:
        """Return the name of NumPy here, and the import that it needs."""
        return self.module("numpy", "np")

    def psc(self) -> tuple[str, tuple[Edit, ...]] | None:
        """Return the name of our package here, and the import that it needs."""
        return self.module("pscdsl", "psc")

    def dtype(self, name: str) -> tuple[str, tuple[Edit, ...]] | None:
        """Return the spelling of a dtype here: `f32`, `psc.f32`."""
        name = "bool_" if name == "bool" else name
        bound = self._bound_to(f"pscdsl.{name}")
        if bound:
            return bound, ()
        found = self.psc()
        return None if found is None else (f"{found[0]}.{name}", found[1])

    def _bound_to(self, *names: str) -> str:
        """Return the name that an import binds to one of these modules or members; else empty."""
        for alias, statement in self._imports():
            base = "" if isinstance(statement, ast.Import) else f"{statement.module}."
            bound = alias.asname or alias.name
            if base + alias.name in names and "." not in bound and not self.shadowed(bound):
                return bound
        return ""

    def shadowed(self, name: str) -> bool:
        """Return whether a scope around the finding has a local that hides this name."""
        if not self.nodes:
            return True
        node, index = self.nodes[0], self.tree.uses
        if isinstance(node, ScopeNode) and name in index.bound(node):
            return True
        return index.owner(node, name) is not None

    def instead_of_import(self, module: str, name: str, usual: str) -> Edit | None:
        """Return the edit that binds a name to another module than its import; None if impossible.

        `import jax.numpy as np` and `from jax import numpy as np` become `import numpy as np`.
        """
        for alias, statement in self._imports():
            if alias.asname != usual:
                continue
            text = f"{name} as {usual}" if name != usual else name
            match statement:
                case ast.Import() if alias.name == module:
                    return Edit(self.tree.source.span(alias), text)
                case ast.ImportFrom(module=base, names=[_]) if f"{base}.{alias.name}" == module:
                    return Edit(self.tree.source.span(statement), f"import {text}")
                case _:
                    pass
        return None

    def _imports(self) -> Iterator[tuple[ast.alias, ast.Import | ast.ImportFrom]]:
        """Yield the unconditional imports at module level."""
        for statement in self.tree.source.tree.body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                for alias in statement.names:
                    yield alias, statement

    def imported(self, statement: str, name: str) -> tuple[str, tuple[Edit, ...]] | None:
        """Return a name with the import that binds it, below the existing imports."""
        body = self.tree.source.tree.body
        taken = any(name in targets(each) for each in body)
        if taken or self.shadowed(name):
            return None
        after = 0
        for position, each in enumerate(body):
            match each:
                case ast.Import() | ast.ImportFrom():
                    pass
                case ast.Expr(value=ast.Constant()) if position == 0:
                    pass
                case _:
                    break
            after = each.end_lineno or each.lineno
            if position + 1 < len(body) and body[position + 1].lineno == after:
                return None  # several statements on a line
        if after >= len(self.tree.source.lines):
            return None
        return name, (self.insertion(after + 1, 1, statement + "\n"),)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"
