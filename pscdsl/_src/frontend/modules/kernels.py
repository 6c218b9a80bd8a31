"""The kernels that a module defines: by decorators, by `psc.kernel(…)`, by transformations."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.interpreter.expressions import evaluate
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.modules.scope import StaticModule
from pscdsl._src.frontend.text.source import FunctionStatement
from pscdsl._src.frontend.transformations.derived import DerivedDefinition, Made, derived
from pscdsl._src.frontend.transformations.rules import RuledFunction
from pscdsl._src.frontend.transformations.traced import Transformed
from pscdsl._src.frontend.values.values import External
from pscdsl.typing.codes.language import Unsupported
from pscdsl.typing.diagnostics import Diagnostic, Failure, Span

MAKERS = {
    "pscdsl.kernel",
    "psc.grad",
    "psc.value_and_grad",
    "psc.jacfwd",
    "psc.jacrev",
    "psc.hessian",
    "psc.vmap",
    "psc.checkpoint",
}
"""What makes kernels of functions."""
Assignment = ast.Assign | ast.AnnAssign


def find_kernels(
    module: StaticModule, diagnostics: list[Diagnostic]
) -> Iterator[tuple[str, Definition]]:
    """The kernels that a module defines, in order; findings on the way are collected."""
    for name, bindings in module.bindings().items():
        *earlier, last = [statement for _, statement in bindings]
        for statement in earlier:  # a name that is bound again: each kernel counts
            if isinstance(statement, FunctionStatement) and statement.decorator_list:
                yield from _kernel(module, name, statement, module.function(statement))
        if not _may_be_kernel(name, last):
            continue
        try:
            if isinstance(last, FunctionStatement) and len(module.names.all_of(name)) > 1:
                value = module.function(last)  # whichever of them the name stands for
            else:
                value = module.own(name)
        except Failure as failure:
            if isinstance(last, FunctionStatement):
                diagnostics.extend(failure.at(module.source.span(last)).diagnostics)
            continue
        if isinstance(last, Assignment) and not isinstance(value, Definition | Transformed):
            diagnostics.extend(_failed_kernel(module, _made_by(name, last)))
        yield from _kernel(module, name, last, value)
        if isinstance(last, ast.ClassDef) and isinstance(value, RecordClass):
            yield from _methods(value, last)


def _methods(cls: RecordClass, statement: ast.ClassDef) -> Iterator[tuple[str, Definition]]:
    """The kernels among the methods that a class statement defines."""
    for node in statement.body:
        member = cls.members.get(getattr(node, "name", ""))
        kernel = None if member is None else member.value
        if isinstance(kernel, Definition) and kernel.closure.node is node:
            yield f"{cls.title}.{kernel.name}", kernel


def _kernel(
    module: StaticModule, name: str, statement: ast.stmt, value: Any
) -> Iterator[tuple[str, Definition]]:
    """The kernel that a statement binds a name to, if it is one."""
    if isinstance(value, RuledFunction) and isinstance(statement, FunctionStatement):
        value = value.function  # a kernel is checked whatever its derivative is
    if isinstance(value, DerivedDefinition):
        value = value.transformed
    if isinstance(value, Transformed):
        value = derived(value, _made(module, name, statement))
        if value is not None:
            yield name, value
    elif isinstance(value, Definition) and value.closure.source is module.source:
        yield name, value


def _made(module: StaticModule, name: str, statement: ast.stmt) -> Made:
    """Where a module makes a kernel by a transformation."""
    source = module.source
    span = source.span(statement)
    if isinstance(statement, FunctionStatement):
        word = "async def " if isinstance(statement, ast.AsyncFunctionDef) else "def "
        own = replace(span, column=span.column + len(word))
        return Made(name, source, source.span(statement.decorator_list[0]), own.head(len(name)))
    targets = (
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
    )
    value = _made_by(name, statement)
    place = next((source.span(node) for node in targets), span)
    return Made(name, source, span if value is None else source.span(value), place)


def _made_by(name: str, statement: ast.stmt) -> ast.expr | None:
    """The expression that an assignment gives to a name; one item of a tuple, if it is known."""
    if not isinstance(statement, Assignment) or statement.value is None:
        return None
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        pair = target, statement.value
        if isinstance(pair[0], ast.Tuple | ast.List) and isinstance(pair[1], ast.Tuple | ast.List):
            for item, value in zip(pair[0].elts, pair[1].elts, strict=False):
                if isinstance(item, ast.Name) and item.id == name:
                    return value
    return statement.value


def _failed_kernel(module: StaticModule, made_by: ast.expr | None) -> Sequence[Diagnostic]:
    """Why `f = psc.kernel(…)` or `psc.grad(…)` makes no kernel; nothing if it is another call."""
    frame = module.frame()
    if not isinstance(made_by, ast.Call):
        return ()
    function = evaluate(frame, made_by.func)
    if getattr(function, "name", "") not in MAKERS:
        return ()
    evaluate(frame, made_by)
    return frame.session.findings


def _may_be_kernel(name: str, statement: ast.stmt) -> bool:
    if isinstance(statement, FunctionStatement):
        return bool(statement.decorator_list)
    if isinstance(statement, ast.ClassDef):
        return any(getattr(each, "decorator_list", ()) for each in statement.body)
    return isinstance(_made_by(name, statement), ast.Call)


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
            frame = module.frame()
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


DECORATED = "what another decorator makes of it is not known"
NOT_RUN = "it stands in a branch that is not taken, or in a loop"


@dataclass(frozen=True)
class Unchecked:
    """A kernel that is known only at run time."""

    name: str
    reason: str
    place: Span
    """Where it begins."""
    node: FunctionStatement | None = None
    around: ast.FunctionDef | None = None
    """The function of the module in whose body it stands, if it does."""


def unchecked_kernels(module: StaticModule, checked: set[ast.AST]) -> Iterator[Unchecked]:
    """Kernels that are known only at run time: those inside functions or classes, for instance.

    `checked` has the functions that were checked.
    """
    for name, bindings in module.bindings().items():
        statement = bindings[-1][1]
        if isinstance(statement, Assignment) and _may_be_kernel(name, statement):
            inner = _unknown_inside(module, name)
            if inner is not None:
                reason = f"nothing is known of `{inner.name}`, of which it is made"
                yield Unchecked(name, reason, _made(module, name, statement).span)
    yield from _unchecked_functions(module, checked)


def _unknown_inside(module: StaticModule, name: str) -> External | None:
    """What a name transforms, if nothing is known of that."""
    try:
        value = module.own(name)
    except Failure:
        return None
    if not isinstance(value, Transformed):
        return None
    while isinstance(value, Transformed):
        value = value.function
    return value if isinstance(value, External) else None


def _unchecked_functions(module: StaticModule, checked: set[ast.AST]) -> Iterator[Unchecked]:
    frame = module.frame()
    bound = {each for bindings in module.bindings().values() for _, each in bindings}

    def is_kernel(node: FunctionStatement) -> bool:
        for decorator in node.decorator_list:
            value = evaluate(frame, decorator)
            if getattr(value, "name", "") == "pscdsl.kernel":
                return True
        return False

    def visit(
        body: Sequence[ast.stmt], prefix: str, inside: str, around: ast.FunctionDef | None = None
    ) -> Iterator[Unchecked]:
        for node in body:
            if isinstance(node, FunctionStatement):
                if node not in checked and node.decorator_list and is_kernel(node):
                    reason = DECORATED if node in bound else NOT_RUN
                    if inside:
                        reason = f"it is defined inside {inside}"
                    place = module.source.span(node).head(3)
                    yield Unchecked(prefix + node.name, reason, place, node, around)
                own = node if isinstance(node, ast.FunctionDef) and node in bound else None
                inner = f"{prefix}{node.name}"
                yield from visit(node.body, f"{inner}.", f"the function `{inner}`", own)
            elif isinstance(node, ast.ClassDef):
                inner = f"{prefix}{node.name}"
                yield from visit(node.body, f"{inner}.", f"the class `{inner}`")
            else:
                for each in inner_bodies(node):
                    yield from visit(each, prefix, inside)

    yield from visit(module.source.tree.body, "", "")


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
