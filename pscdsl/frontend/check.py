"""Checking source files: every kernel of every file, without importing or running anything."""

from __future__ import annotations

import ast
import gc
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pscdsl.findings.silencing import Examined, silence, together
from pscdsl.findings.suppressions import Suppression, suppressions
from pscdsl.frontend.definitions import Definition, Excluded
from pscdsl.frontend.expressions import evaluate
from pscdsl.frontend.files import Files, files_below
from pscdsl.frontend.frames import Frame, Session
from pscdsl.frontend.project import Project
from pscdsl.frontend.scope import StaticModule
from pscdsl.frontend.source import FunctionStatement, Source, shown_path
from pscdsl.frontend.values import Poisoned
from pscdsl.report.cells import split_cell
from pscdsl.typing.codes.language import Unsupported
from pscdsl.typing.codes.limits import (
    ChoicesSampled,
    InternalError,
    KernelNotChecked,
    NestedTooDeeply,
)
from pscdsl.typing.diagnostics import Diagnostic, Failure, Severity
from pscdsl.typing.exclusions import exclusion
from pscdsl.typing.signatures import Choice
from pscdsl.typing.spans import Span

Status = Literal["ok", "error", "unchecked"]


@dataclass(frozen=True)
class KernelReport:
    """What was found of one kernel."""

    name: str
    path: str
    line: int
    column: int
    status: Status
    signature: str


@dataclass(frozen=True)
class CheckResult:
    """What a check found."""

    diagnostics: tuple[Diagnostic, ...]
    kernels: tuple[KernelReport, ...]
    files: int
    revealed: tuple[tuple[int, str], ...] = ()
    suppressed: tuple[Diagnostic, ...] = ()
    """What comments silence."""
    comments: tuple[Suppression, ...] = ()
    """The comments that silence findings; not applied yet to the findings of one module alone."""
    examined: Examined = field(default_factory=Examined)
    """What was looked at to its end."""

    def checked(self) -> frozenset[str]:
        """The real paths of the files that were checked; not of those that cannot be read."""
        return frozenset(os.path.realpath(path) for path in self.examined.files)


def check_source(text: str, path: str) -> CheckResult:
    """Check one module given as text; imports are looked up beside `path` if it exists."""
    with deep_stack():
        project = Project()
        try:
            source = Source(path, text)
        except Failure as failure:
            return CheckResult(failure.diagnostics, (), 1)
        module = project.add(source, path if os.path.isfile(path) else None)
        try:
            return summary([check_module(module)])
        except Exception as error:
            return _unfinished(path, error)


def check_paths(
    paths: Sequence[Path | str], excluded: Callable[[str], bool] | None = None
) -> CheckResult:
    """Check files, and the Python files and notebooks below folders, but for those excluded."""
    files = files_below(paths, excluded)
    with deep_stack():
        return summary([check_file(files, path)[0] for path in files.given])


def check_file(files: Files, path: str) -> tuple[CheckResult, Project]:
    """Check one of the files; also the modules that were read for it.

    What is found depends on nothing but these files: not on which of them were checked before.
    """
    project = Project(files=files)
    try:
        return check_module(project.at(path)), project
    except Failure as failure:
        return CheckResult(failure.diagnostics, (), 1), project
    except Exception as error:
        return _unfinished(shown_path(path), error), project


def _unfinished(path: str, error: Exception) -> CheckResult:
    """A finding where the check of a whole module fails."""
    start = Span(path, 1, 1, 1, 1)
    found: Diagnostic = InternalError(what=f"{type(error).__name__}: {error}", span=start)
    if isinstance(error, RecursionError):
        found = NestedTooDeeply(what="the module", span=start)
    return CheckResult((found,), (), 1)


@contextmanager
def deep_stack() -> Generator[None]:
    """Room for nested programs; collecting garbage less often makes many small trees cheap."""
    limit, often = sys.getrecursionlimit(), gc.get_threshold()
    sys.setrecursionlimit(max(limit, 12_000))
    gc.set_threshold(200_000, 10, 10)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        gc.set_threshold(*often)


def check_module(module: StaticModule) -> CheckResult:
    """Check every kernel of a module; no comment silences anything yet."""
    examined: set[tuple[str, int]] = set()
    diagnostics: list[Diagnostic] = []
    kernels: list[KernelReport] = []
    revealed: list[tuple[int, str]] = []
    checked: set[ast.AST] = set()
    for name, definition in find_kernels(module, diagnostics):
        checked.add(definition.closure.node)
        found, status = check_definition(definition)
        span = definition.closure.source.span(definition.closure.node)
        diagnostics.extend(each.replaced(kernel=name) for each in found)
        revealed.extend(definition.revealed)
        if status == "ok":
            examined.update((each.path, each.line) for each in definition.entered)
        place = _name_place(definition)
        kernels.append(
            KernelReport(name, span.path, place.line, place.column, status, shown(definition))
        )
    diagnostics.extend(misused_decorators(module))
    for node, name, reason in unchecked_kernels(module, checked):
        span = module.source.span(node)
        diagnostics.append(
            KernelNotChecked(kernel_name=name, reason=reason, span=span.head(3), kernel=name)
        )
        kernels.append(KernelReport(name, span.path, span.line, span.column, "unchecked", "(…)"))
    if diagnostics:
        from pscdsl.frontend.fixes import with_fixes

        known = (module, *module.project.by_path.values())
        diagnostics = with_fixes(diagnostics, {each.source.path: each.source for each in known}.get)
    unfinished = {split_cell(each.path)[0] for each in kernels if each.status != "ok"}
    return CheckResult(
        tuple(diagnostics),
        tuple(kernels),
        1,
        tuple(dict.fromkeys(revealed)),
        comments=comments_near(module, diagnostics),
        examined=Examined(
            frozenset(examined), frozenset(unfinished), frozenset({module.source.path})
        ),
    )


def comments_near(
    module: StaticModule, diagnostics: Iterable[Diagnostic]
) -> tuple[Suppression, ...]:
    """The suppressions of a module, and of the others in which its kernels' findings are."""
    sources = {module.source.path: module.source}
    places = {frame.path for each in diagnostics for frame in each.span.frames()}
    elsewhere = {split_cell(path)[0] for path in places} - sources.keys()
    if elsewhere:
        for other in module.project.by_path.values():
            if other.source.path in elsewhere:
                sources[other.source.path] = other.source
    return tuple(
        each
        for source in sources.values()
        for each in suppressions(source.text, source.tree, source.locate)
    )


def _name_place(definition: Definition) -> Span:
    node, source = definition.closure.node, definition.closure.source
    span = source.span(node)
    if isinstance(node, ast.FunctionDef):
        return replace(span, column=span.column + len("def "))
    return span


def shown(definition: Definition) -> str:
    """The signature as `check` prints it, with what was tried by examples."""
    try:
        signature = definition.signature
    except Failure:
        return "(…)"
    tried = signature.enumerated()
    return signature.types() + (f"  ({'; '.join(tried)})" if tried else "")


def check_definition(definition: Definition) -> tuple[list[Diagnostic], Status]:
    """The findings of a kernel over every choice that its signature is tried with."""
    try:
        choices = definition.signature.choices()
        if choices is None:
            reason = "what it leaves open besides sizes is known only at its calls"
            span = definition.closure.source.span(definition.closure.node).head(3)
            rewrite = "call it in a kernel, or name its values: `psc.Static[Literal[...]]`"
            note = KernelNotChecked(
                kernel_name=definition.name, reason=reason, rewrite=rewrite, span=span
            )
            return [note], "unchecked"
        found, status = _check_choices(definition, choices)
        if status == "error" and not found:
            return [_internal(definition, "it has no program, and nothing was found")], status
        total = definition.signature.combinations()
        if total > len(choices):
            place = definition.closure.source.span(definition.closure.node).head(3)
            sampled = ChoicesSampled(
                function=definition.name, tried=len(choices), total=total, span=place
            )
            found.append(sampled)
        return found, status
    except Failure as failure:
        found = list(failure.diagnostics)
        return found or [_internal(definition, "its signature cannot be read")], "error"
    except Poisoned:
        return [_internal(definition, "its signature cannot be read")], "error"
    except RecursionError:
        head = definition.closure.source.span(definition.closure.node).head(3)
        return [NestedTooDeeply(what=f"kernel `{definition.name}`", span=head)], "error"
    except Exception as error:
        return [_internal(definition, f"{type(error).__name__}: {error}")], "error"


def _internal(definition: Definition, what: str) -> InternalError:
    """A failure of ours at a kernel; the check of the others goes on."""
    span = definition.closure.source.span(definition.closure.node).head(3)
    return InternalError(what=f"kernel `{definition.name}`: {what}", span=span)


def _check_choices(
    definition: Definition, choices: Sequence[Choice]
) -> tuple[list[Diagnostic], Status]:
    found: dict[tuple[str, Span, str], Diagnostic] = {}
    failing: dict[tuple[str, Span, str], list[Choice]] = {}
    excluded: list[Diagnostic] = []
    status: Status = "ok"
    for choice in choices:
        try:
            definition.instance(choice)
            findings = definition.warnings(choice)
        except Failure as failure:
            findings = tuple(d.replaced(choice=str(choice)) for d in failure.diagnostics)
            status = "error"
        except Excluded as out:
            excluded.append(out.finding)
            continue
        for each in findings:
            key = (each.code, each.span, each.message() if len(choices) == 1 else "")
            found.setdefault(key, each)
            failing.setdefault(key, []).append(choice)
    if excluded and len(excluded) == len(choices):
        return [excluded[0]], "error"
    for key, where in failing.items():
        precondition = exclusion(where, choices)
        if found[key].choice and precondition:
            says = f"{found[key].choice}; `assert {precondition}` leaves it out"
            found[key] = found[key].replaced(choice=says)
    return list(found.values()), status


def find_kernels(
    module: StaticModule, diagnostics: list[Diagnostic]
) -> Iterator[tuple[str, Definition]]:
    """The kernels that a module defines, in order; findings on the way are collected."""
    for name, bindings in module.bindings().items():
        *earlier, last = [statement for _, statement in bindings]
        for statement in earlier:  # a name that is bound again: each kernel counts
            if isinstance(statement, FunctionStatement) and statement.decorator_list:
                value = module.function(statement)
                if isinstance(value, Definition):
                    yield name, value
        if not _may_be_kernel(last):
            continue
        try:
            if isinstance(last, FunctionStatement) and len(module.names.of(name)) > 1:
                value = module.function(last)  # in one of several branches
            else:
                value = module.own(name)
        except Failure as failure:
            if isinstance(last, FunctionStatement):
                diagnostics.extend(failure.at(module.source.span(last)).diagnostics)
            continue
        if isinstance(last, ast.Assign) and not isinstance(value, Definition):
            diagnostics.extend(_failed_kernel(module, last))
        if isinstance(value, Definition) and value.closure.source is module.source:
            yield name, value


def _failed_kernel(module: StaticModule, statement: ast.Assign) -> Sequence[Diagnostic]:
    """Why `f = psc.kernel(…)` makes no kernel; nothing if it is another call."""
    frame = module.frame()
    if not isinstance(statement.value, ast.Call):
        return ()
    function = evaluate(frame, statement.value.func)
    if getattr(function, "name", "") != "pscdsl.kernel":
        return ()
    evaluate(frame, statement.value)
    return frame.session.findings


def _may_be_kernel(statement: ast.stmt) -> bool:
    if isinstance(statement, FunctionStatement):
        return bool(statement.decorator_list)
    return isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)


def misused_decorators(module: StaticModule) -> Iterator[Diagnostic]:
    """Decorators of ours that have no meaning: `@psc.kernal`, `@psc.kernel(1)`, on a class."""
    for node in statements(module.source.tree.body):
        if not isinstance(node, FunctionStatement | ast.ClassDef):
            continue
        for decorator in node.decorator_list:
            root: ast.expr = decorator
            while isinstance(root, ast.Attribute | ast.Call):
                root = root.func if isinstance(root, ast.Call) else root.value
            if not isinstance(root, ast.Name) or not _is_ours(module, root.id):
                continue
            frame = Frame(Session(None), module.source, module)
            value = evaluate(frame, decorator)
            yield from frame.session.findings
            if isinstance(node, ast.ClassDef) and getattr(value, "name", "") == "pscdsl.kernel":
                finding = Unsupported(what="a class as a kernel", rewrite="decorate a function")
                yield finding.at(module.source.span(decorator))


def _is_ours(module: StaticModule, name: str) -> bool:
    """Whether a module-level name is our package, or something imported from it."""
    for _, statement in module.bindings().get(name, ()):
        if isinstance(statement, ast.Import):
            return any(
                alias.name == "pscdsl" and (alias.asname or alias.name) == name
                for alias in statement.names
            )
        if isinstance(statement, ast.ImportFrom):
            return statement.module == "pscdsl" and not statement.level
    return False


INSIDE = "it is defined inside a function or class"
DECORATED = "what another decorator makes of it is not known"
NOT_RUN = "it stands in a branch that is not taken, or in a loop"


def unchecked_kernels(
    module: StaticModule, checked: set[ast.AST]
) -> Iterator[tuple[FunctionStatement, str, str]]:
    """Kernels that are known only at run time: those inside functions or classes, for instance.

    `checked` has the functions that were checked.
    """
    frame = Frame(Session(None), module.source, module)
    bound = {each for bindings in module.bindings().values() for _, each in bindings}

    def is_kernel(node: FunctionStatement) -> bool:
        for decorator in node.decorator_list:
            value = evaluate(frame, decorator)
            if getattr(value, "name", "") == "pscdsl.kernel":
                return True
        return False

    def visit(
        body: Sequence[ast.stmt], prefix: str, inside: bool
    ) -> Iterator[tuple[FunctionStatement, str, str]]:
        for node in body:
            if isinstance(node, FunctionStatement):
                if node not in checked and node.decorator_list and is_kernel(node):
                    reason = DECORATED if node in bound else NOT_RUN
                    yield node, prefix + node.name, INSIDE if inside else reason
                yield from visit(node.body, f"{prefix}{node.name}.", True)
            elif isinstance(node, ast.ClassDef):
                yield from visit(node.body, f"{prefix}{node.name}.", True)
            else:
                for inner in inner_bodies(node):
                    yield from visit(inner, prefix, inside)

    yield from visit(module.source.tree.body, "", False)


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements and those in them."""
    for node in body:
        yield node
        for inner in inner_bodies(node):
            yield from statements(inner)


def inner_bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    parts: Iterable[ast.AST] = (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))
    for part in parts:
        yield getattr(part, "body", [])


def summary(results: Sequence[CheckResult]) -> CheckResult:
    """One result of several: comments are applied, and what is found twice is told once."""
    comments = tuple({each.span: each for result in results for each in result.comments}.values())
    examined = together(result.examined for result in results)
    silenced = silence((d for r in results for d in r.diagnostics), comments, examined)
    return CheckResult(
        _once(silenced.kept),
        tuple(kernel for result in results for kernel in result.kernels),
        sum(result.files for result in results),
        tuple(entry for result in results for entry in result.revealed),
        _once(silenced.suppressed),
        comments,
        examined,
    )


def _once(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The findings by place; those that several calls lead to, once."""
    unique: dict[tuple[str, Span, str], Diagnostic] = {}
    for each in diagnostics:
        unique.setdefault((each.code, replace(each.span, call_site=None), each.message()), each)
    return tuple(
        sorted(unique.values(), key=lambda d: (d.span.path, d.span.line, d.span.column, d.code))
    )


def load_definition(path: Path | str, name: str) -> Definition:
    """A kernel read from a file's source; LookupError if the file has none of this name."""
    real = os.path.realpath(str(path))
    module = Project(files=Files([real])).at(real)
    problems: list[Diagnostic] = []
    found = dict(find_kernels(module, problems))
    if name in found:
        return found[name]
    errors = [d for d in problems if d.severity is Severity.ERROR]
    if errors:
        raise Failure(*errors)
    known = ", ".join(found) or "none"
    raise LookupError(f"{shown_path(real)} has no kernel `{name}`; its kernels are: {known}")
