"""The text of JAX functions as kernels: spans are replaced, and all else stays as it is written.

A `Rewriter` has one file. `part` rewrites a top-level statement to a `Part`: its replacements, and
the names and imports that it needs. `module` puts parts together to a module of their own.
`Unportable` says what has no counterpart, and where.

Names of JAX's packages become those that `frontend.purity` calls equivalent, and calls those of
`TEMPLATES`. No row is trusted: `port` compares what comes out with the function of JAX.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from pscdsl._src.dialects.jax.names import Scope, read_program
from pscdsl._src.discover.fixing import head_of
from pscdsl._src.frontend.fixes.library import AT, WRITTEN_INDICES
from pscdsl._src.frontend.fixes.place import LocatedTree, Replacement, Text, replaced
from pscdsl._src.frontend.modules.jax_programs import PACKAGES, TRANSPARENT_DECORATORS
from pscdsl._src.frontend.purity import (
    ALONG_AXIS,
    COMPILERS,
    DIFFERS,
    equivalent,
    index_text,
    instead_of,
)
from pscdsl._src.frontend.text.source import FunctionStatement, Source, called, children
from pscdsl.typing.array_types import ArrayType, ListType, TupleType, Type
from pscdsl.typing.dtypes import BOOL, KEY
from pscdsl.typing.signatures import (
    ArraySpec,
    NoneSpec,
    OptionalSpec,
    RecordSpec,
    RepeatedSpec,
    Spec,
    StaticSpec,
    TupleSpec,
    UnionSpec,
)

FAMILY: Final = PACKAGES | {"jaxtyping", "flax", "beartype", "optax"}
"""Packages whose names a kernel cannot use."""
_COMPILERS: Final = frozenset({*COMPILERS, "equinox.filter_jit", "chex.chexify"})
_IDENTITIES: Final = _COMPILERS | {"jax.block_until_ready", "jax.device_get", "jax.device_put"}
"""Functions whose result computes as their first argument does."""
_KEPT: Final = frozenset({"builtins.staticmethod", "builtins.property", "builtins.classmethod"})
_RECORDS: Final = {"equinox.Module": "psc.Record", "typing.NamedTuple": ""}
"""Bases of classes of records, and what they become; empty if they stay."""
_CLAMPED: Final = "an index out of range is clamped, where jax leaves the value out"
TEMPLATES: Final[Mapping[str, tuple[str, str]]] = {
    "jax.lax.clamp": ("min x max", "np.clip({x}, {min}, {max})"),
    "jax.lax.convert_element_type": (
        "operand new_dtype",
        "np.asarray({operand}).astype({new_dtype})",
    ),
    "jax.lax.cumprod": ("operand axis=0", "np.cumprod({operand}, axis={axis})"),
    "jax.lax.cumsum": ("operand axis=0", "np.cumsum({operand}, axis={axis})"),
    "jax.lax.cummax": ("operand axis=0", "np.maximum.accumulate({operand}, axis={axis})"),
    "jax.lax.cummin": ("operand axis=0", "np.minimum.accumulate({operand}, axis={axis})"),
    "jax.lax.integer_pow": ("x y", "np.power({x}, {y})"),
    "jax.lax.rsqrt": ("x", "(1 / np.sqrt({x}))"),
    "jax.named_scope": ("name", "psc.scope({name})"),
    "jax.nn.one_hot": (
        "x num_classes",
        "(np.asarray({x})[..., None] == np.arange({num_classes})).astype(np.float32)",
    ),
    "jax.numpy.astype": ("x dtype", "np.asarray({x}).astype({dtype})"),
    "jax.scipy.linalg.solve_triangular": (
        "a b lower=False",
        "psc.triangular_solve({a}, {b}, lower={lower})",
    ),
}
"""Functions with other arguments here: their parameters, with defaults, and the text of a call."""


class Unportable(Exception):
    """The obstacle to a port, its place, and the advice."""

    def __init__(self, why: str, node: ast.AST | None = None, instead: str = "") -> None:
        super().__init__(why)
        self.why, self.node, self.instead = why, node, instead
        self.method: ast.FunctionDef | None = None
        """The method of a class that is prevented, if the others are not."""


@dataclass(frozen=True)
class Declared:
    """The types of a kernel."""

    parameters: Mapping[str, Spec]
    results: Sequence[Spec | Type] = ()
    """Types of the result, of which the first that can be written is declared."""


@dataclass
class Part:
    """A top-level statement of the module that is written."""

    node: ast.stmt
    edits: list[Replacement] = field(default_factory=list[Replacement])
    needs: set[str] = field(default_factory=set[str])
    """The names of the module that it uses."""
    imports: set[str] = field(default_factory=set[str])
    notes: dict[int, str] = field(default_factory=dict[int, str])
    """Differences in meaning, by the line of the statement."""


class Rewriter:
    """Rewrites the statements of one file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tree = LocatedTree(source)
        self.text = Text(source.text)
        self.program = read_program(source)
        self.taken = frozenset[str]().union(
            *(scope.names for scope in self.program.scopes.values() if scope.parent)
        )
        self._scope: Scope = self.program.module
        self._part = Part(ast.Pass())
        self._statement: ast.stmt | None = None
        self._kernels: Mapping[ast.AST, Declared] = {}

    def part(
        self,
        node: ast.stmt,
        kernels: Mapping[ast.AST, Declared],
        field_type: Callable[[ast.expr], Spec],
    ) -> Part:
        """Return a top-level statement rewritten; `kernels` has the functions that are typed."""
        self._part, self._scope, self._kernels = Part(node), self.program.module, kernels
        if isinstance(node, ast.ClassDef):
            self._part.edits = self._class(node, field_type)
        else:
            self._part.edits = self._edits(node)
        return self._part

    # Types as annotations.

    def annotation(self, spec: Spec | Type) -> str:
        """Return a type as an annotation; its names are imported."""
        match spec:
            case ArraySpec(python=python) if python:
                return python
            case ArraySpec(dtype=dtype) | ArrayType(dtype=dtype):
                words = spec.words() if isinstance(spec, ArraySpec) else map(str, spec.shape)
                shape = " ".join(words)
                return f'{self._dtype(dtype)}["{shape}"]' if shape else self._dtype(dtype)
            case TupleSpec(items=parts, kind=kind) if kind is TupleType and parts:
                return f"tuple[{', '.join(map(self.annotation, parts))}]"
            case TupleType(items=parts) if parts and not isinstance(spec, ListType):
                return f"tuple[{', '.join(map(self.annotation, parts))}]"
            case RepeatedSpec(item=item, kind=kind):
                return kind.annotation.format(self.annotation(item))
            case OptionalSpec(item=item):
                return f"{self.annotation(item)} | None"
            case UnionSpec(items=parts):
                return " | ".join(dict.fromkeys(map(self.annotation, parts)))
            case NoneSpec():
                return "None"
            case RecordSpec(record=record, arguments="", types=(), spelled=False):
                self._part.needs.add(record.name)
                return record.name
            case StaticSpec(samples=samples) if samples is not None:
                return self._static(spec, samples)
            case _:
                raise Unportable(f"the type `{spec}` is open, or is not written here")

    def _dtype(self, dtype: object) -> str:
        if dtype is KEY:
            return self._spelled("pscdsl.Key")
        name = "bool_" if dtype is BOOL else getattr(dtype, "name", "")
        if name in self.taken or self.program.module.functions.get(name):
            return self._spelled(f"pscdsl.{name}")
        self._part.imports.add(f"from pscdsl import {name}")
        return str(name)

    def _static(self, spec: StaticSpec, samples: Sequence[object]) -> str:
        kinds = {type(each) for each in samples}
        if len(kinds) == 1 and kinds <= {bool, int}:
            (kind,) = kinds
            return f"{self._spelled('pscdsl.Static')}[{kind.__name__}]"
        if kinds == {str}:
            self._part.imports.add("from typing import Literal")
            values = ", ".join(f'"{each}"' for each in samples)
            return f"{self._spelled('pscdsl.Static')}[Literal[{values}]]"
        raise Unportable(f"`{spec.kind}` is no type of a kernel's parameters")

    # Statements.

    def _edits(self, node: ast.AST) -> list[Replacement]:
        """Return the replacements in a node."""
        if isinstance(node, FunctionStatement):
            return self._function(node)
        if isinstance(node, ast.Lambda):
            outside = [each for part in children(node.args) for each in self._edits(part)]
            with self._inside(node):
                return outside + self._edits(node.body)
        if isinstance(node, ast.stmt):
            self._statement = node
        match node:
            case ast.Import() | ast.ImportFrom():
                raise Unportable("it imports names where it runs", node)
            case ast.Global() | ast.Nonlocal():
                raise Unportable("it binds names outside of it", node)
            case ast.AnnAssign(target=target, annotation=annotation, value=ast.expr() as value):
                start, end = self._range(target)[1], self._range(annotation)[1]
                return [Replacement(start, end, ""), *self._edits(target), *self._edits(value)]
            case ast.Expr(value=ast.Call(func=func)) if self._full(func).startswith("chex.assert_"):
                return [Replacement(*self._range(node), "pass")]
            case ast.expr():
                new = self._expression(node)
                if new is not None:
                    return [Replacement(*self._range(node), new)]
            case _:
                pass
        return [each for child in children(node) for each in self._edits(child)]

    @contextmanager
    def _inside(self, node: ast.AST) -> Generator[None]:
        outer, self._scope = self._scope, self.program.scopes[node]
        try:
            yield
        finally:
            self._scope = outer

    def _function(self, node: FunctionStatement) -> list[Replacement]:
        """Return the replacements of a function: decorators, types, body."""
        found: list[Replacement] = []
        declared = self._kernels.get(node)
        for decorator in node.decorator_list:
            name = self._full(called(decorator))
            if name == "functools.partial" and isinstance(decorator, ast.Call) and decorator.args:
                name = self._full(decorator.args[0])
            if name in _COMPILERS or name in TRANSPARENT_DECORATORS:
                found.append(self._without_lines(decorator))
            elif name not in _KEPT:
                raise Unportable(
                    f"the decorator `{ast.unparse(decorator)}` is not known", decorator
                )
        if declared is not None:
            decorated = f"{self._margin(node)}@{self._spelled('pscdsl.kernel')}\n"
            found.append(self._insertion(node.lineno, decorated))
        spec = node.args
        for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg):
            if each is None or each.annotation is None:
                continue
            if declared is not None:
                new = f"{each.arg}: {self.annotation(declared.parameters[each.arg])}"
                found.append(Replacement(*self._range(each), new))
            elif self._is_foreign(each.annotation):
                found.append(Replacement(*self._range(each), each.arg))
        for default in (*spec.defaults, *filter(None, spec.kw_defaults)):
            found += self._edits(default)
        start = self.text.offset(*head_of(self.source, node)[0])
        if declared is not None or (node.returns and self._is_foreign(node.returns)):
            end = self._range(node.returns)[1] if node.returns else start
            found.append(Replacement(start, end, self._result(declared)))
        with self._inside(node):
            found += [each for statement in node.body for each in self._edits(statement)]
        return found

    def _result(self, declared: Declared | None) -> str:
        """Return the annotation of a result with its arrow; empty if none can be written."""
        for spec in declared.results if declared else ():
            with suppress(Unportable):
                return f" -> {self.annotation(spec)}"
        return ""

    def _is_foreign(self, annotation: ast.expr) -> bool:
        """Return whether an annotation has a name that is not Python's own."""
        parts = [each for each in ast.walk(annotation) if isinstance(each, ast.Name)]
        own = all(self._scope.owner_of(each.id) is None for each in parts)
        return not own or isinstance(annotation, ast.Constant)

    def _class(
        self, node: ast.ClassDef, field_type: Callable[[ast.expr], Spec]
    ) -> list[Replacement]:
        """Return the replacements of a class of records."""
        found: list[Replacement] = []
        bases = [self._full(each) for each in node.bases]
        if len(bases) != 1 or bases[0] not in _RECORDS or node.decorator_list or node.keywords:
            raise Unportable(
                f"the class `{node.name}` is no plain equinox.Module or NamedTuple", node
            )
        if new := _RECORDS[bases[0]]:
            self._spelled("pscdsl.Record")
            found.append(Replacement(*self._range(node.bases[0]), new))
        else:
            self._edits(node.bases[0])
        for each in node.body:
            match each:
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case ast.AnnAssign(target=ast.Name(), annotation=annotation, value=value):
                    found.append(
                        Replacement(
                            *self._range(annotation), self.annotation(field_type(annotation))
                        )
                    )
                    found += [] if value is None else self._edits(value)
                case ast.FunctionDef() if each.name != "__init__":
                    found += self._method(each)
                case _:
                    raise Unportable(
                        f"the class `{node.name}` has more than fields and methods", each
                    )
        return found

    def _method(self, node: ast.FunctionDef) -> list[Replacement]:
        """Return the replacements of a method, which is left out if it cannot be written."""
        if node in self._kernels:
            try:
                return self._function(node)
            except Unportable as problem:
                problem.method = node
                raise
        before = set(self._part.needs), set(self._part.imports), dict(self._part.notes)
        try:
            return self._function(node)
        except Unportable:
            self._part.needs, self._part.imports, self._part.notes = before
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            return [Replacement(self.text.offset(first, 1), self._line_after(node), "")]

    # Expressions.

    def _expression(self, node: ast.expr) -> str | None:
        """Return the new text of an expression; None if only its parts may change."""
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                full = self._full(node)
                if full.partition(".")[0] in FAMILY:
                    return self._named(full, node)
                if isinstance(node, ast.Name) and self._scope.owner_of(name) is self.program.module:
                    self._part.needs.add(name)
                return None
            case ast.Call():
                return self._call(node)
            case _:
                return None

    def _named(self, full: str, node: ast.expr) -> str:
        """Return our name of something of JAX's."""
        here = equivalent(full)
        if not here:
            raise Unportable(f"`{full}` has no counterpart here", node, instead_of(full))
        differs = DIFFERS.get(full, "")
        if full.startswith("jax.random.") and differs:
            raise Unportable(f"`{full}`: {differs}", node)
        self._note(differs)
        return self._spelled(here)

    def _spelled(self, here: str) -> str:
        """Return a qualified name of ours as it is written, and import it."""
        package, _, rest = here.partition(".")
        if here.startswith("pscdsl.stdlib."):
            module, _, short = here.rpartition(".")
            self._require_free(short)
            self._part.imports.add(f"from {module} import {short}")
            return short
        short = {"numpy": "np", "pscdsl": "psc"}[package]
        self._require_free(short)
        self._part.imports.add(f"import {package} as {short}")
        return f"{short}.{rest}"

    def _require_free(self, name: str) -> None:
        module = self.program.module
        is_ours = module.imports.get(name) in ("numpy", "jax.numpy") and name in module.once
        if name in self.taken or (name in module.names and not is_ours):
            raise Unportable(f"`{name}` is a name of the file, and of ours")

    def _note(self, text: str) -> None:
        if text:
            assert self._statement is not None
            self._part.notes.setdefault(self._statement.lineno, text)

    def _call(self, node: ast.Call) -> str | None:
        """Return the new text of a call; None if only its parts change."""
        updated = self._updated(node)
        if updated is not None:
            return updated
        full = self._full(node.func)
        if full in _IDENTITIES and node.args:
            return self._render(node.args[0])
        if full in ALONG_AXIS and (
            len(node.args) > 1 or any(x.arg == "axis" for x in node.keywords)
        ):
            return self._replaced(node, {node.func: self._spelled(ALONG_AXIS[full])})
        if full in TEMPLATES:
            return self._from_template(node, *TEMPLATES[full])
        return None

    def _from_template(self, node: ast.Call, declared: str, template: str) -> str:
        parameters = [each.partition("=") for each in declared.split()]
        given = {name: default for name, _, default in parameters if default}
        given.update(
            zip((name for name, _, _ in parameters), map(self._render, node.args), strict=False)
        )
        for word in node.keywords:
            given[word.arg or ""] = self._render(word.value)
        if len(node.args) > len(parameters) or given.keys() != {name for name, _, _ in parameters}:
            raise Unportable(f"`{ast.unparse(node.func)}` is called with other options", node)
        for package, short in (("numpy", "np"), ("pscdsl", "psc")):
            if f"{short}." in template:
                self._spelled(f"{package}.")
        return template.format(**given)

    def _updated(self, node: ast.Call) -> str | None:
        """Return `psc.update(x, i, v)` for `x.at[i].set(v)`."""
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Subscript(value=ast.Attribute(value=owner, attr="at"), slice=place),
                    attr=method,
                ),
                args=[value],
                keywords=[],
            ) if method in AT:
                if not all(isinstance(each, WRITTEN_INDICES) for each in ast.walk(place)):
                    self._note(_CLAMPED)
                index = index_text(self._render(place), place)
                if "np.s_" in index:
                    self._spelled("numpy.s_")
                given = [self._render(owner), index, self._render(value)]
                given += [f'combine="{AT[method]}"'] if AT[method] else []
                return f"{self._spelled('pscdsl.update')}({', '.join(given)})"
            case _:
                return None

    # Places.

    def _full(self, node: ast.expr) -> str:
        return self.program.full_name(self._scope, node)

    def _range(self, node: ast.AST) -> tuple[int, int]:
        span = self.source.span(node)
        return (
            self.text.offset(span.line, span.column),
            self.text.offset(span.end_line, span.end_column),
        )

    def _render(self, node: ast.expr) -> str:
        """Return the new text of an expression, as one argument of a call."""
        found = self._replaced(node, {})
        loose = isinstance(node, ast.Tuple | ast.NamedExpr | ast.Starred | ast.GeneratorExp)
        return f"({found})" if loose and not found.startswith("(") else found

    def _replaced(self, node: ast.expr, known: Mapping[ast.expr, str]) -> str:
        """Return the text of an expression with replacements in it."""
        edits = [Replacement(*self._range(each), text) for each, text in known.items()]
        if known:
            edits += [
                each
                for child in children(node)
                if child not in known
                for each in self._edits(child)
            ]
        else:
            edits += self._edits(node)
        start, end = self._range(node)
        moved = [Replacement(x.start - start, x.end - start, x.text) for x in sorted(edits)]
        return replaced(self.source.text[start:end], moved)

    def _margin(self, node: ast.stmt) -> str:
        line = self.source.lines[node.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def _insertion(self, line: int, text: str) -> Replacement:
        place = self.text.offset(line, 1)
        return Replacement(place, place, text)

    def _line_after(self, node: ast.AST) -> int:
        """Return the start of the line after a node."""
        line = self.source.span(node).end_line
        return (
            self.text.offset(line + 1, 1) if line < len(self.source.lines) else len(self.text.text)
        )

    def _without_lines(self, node: ast.expr) -> Replacement:
        return Replacement(self.text.offset(node.lineno, 1), self._line_after(node), "")

    # The module.

    def module(self, parts: Iterable[Part]) -> str:
        """Return the text of a module with these statements alone, in their order."""
        chosen = {part.node: part for part in parts}
        needed = set[str]().union(*(part.needs for part in chosen.values()))
        imports = set[str]().union(*(part.imports for part in chosen.values()))
        edits: list[Replacement] = []
        head = 0
        before = 0
        for node in self.source.tree.body:
            first = min([node.lineno, *(x.lineno for x in getattr(node, "decorator_list", ()))])
            is_head = not edits and not chosen.keys() & {node}
            documented = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            end = self._line_after(node)
            if node in chosen:
                part = chosen[node]
                edits += part.edits
                for line, note in part.notes.items():
                    margin = re.match(r"\s*", self.source.lines[line - 1])
                    edits.append(
                        self._insertion(line, f"{margin[0] if margin else ''}# Differs: {note}.\n")
                    )
            elif is_head and (future or (documented and node is self.source.tree.body[0])):
                head = end
            else:
                start = self.text.offset(self._comments_above(first, before), 1)
                edits.append(Replacement(start, end, ""))
            before = self.source.span(node).end_line
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports.update(_kept_imports(node, needed))
        block = _sorted_imports(imports)
        edits.append(Replacement(head, head, f"\n{block}\n\n" if head else f"{block}\n\n"))
        text = replaced(self.source.text, sorted(edits, key=lambda x: (x.start, x.end)))
        return re.sub(r"\n{4,}", "\n\n\n", text).strip("\n") + "\n"

    def _comments_above(self, line: int, before: int) -> int:
        """Return the first line of the comments right above a line."""
        while line - 1 > before and self.source.lines[line - 2].lstrip().startswith("#"):
            line -= 1
        return line


def _kept_imports(node: ast.Import | ast.ImportFrom, needed: set[str]) -> Iterator[str]:
    """Yield the imports of a statement that bind needed names."""
    for alias in node.names:
        bound = alias.asname or alias.name.partition(".")[0]
        shown = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
        if bound not in needed:
            continue
        module = getattr(node, "module", None) or ""
        yield f"from {module} import {shown}" if module else f"import {shown}"


def _sorted_imports(lines: Iterable[str]) -> str:
    """Return import statements in the usual order: Python's own first."""
    plain = sorted(each for each in lines if each.startswith("import "))
    names: dict[str, list[str]] = {}
    for each in sorted(set(lines) - set(plain), key=str.lower):
        module, _, name = each.removeprefix("from ").partition(" import ")
        names.setdefault(module, []).append(name)
    every = plain + [f"from {m} import {', '.join(names[m])}" for m in sorted(names)]
    own = [each for each in every if re.split(r"[ .]", each)[1] in sys.stdlib_module_names]
    others = [each for each in every if each not in own]
    return "\n\n".join("\n".join(block) for block in (own, others) if block)
