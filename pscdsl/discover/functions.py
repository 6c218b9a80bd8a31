"""The verdict on one function."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pscdsl.discover.alternatives import FUNCTION, NO_DEFAULT, Alternative, alternatives
from pscdsl.discover.blame import Blame
from pscdsl.discover.candidates import Candidate
from pscdsl.discover.hints import Hint, annotation_hint, docstring_hints
from pscdsl.discover.naming import named
from pscdsl.discover.obstacles import Branches, Firmness, firmness, place, standing
from pscdsl.discover.rendering import Written, written
from pscdsl.discover.results import declared_result
from pscdsl.discover.search import Search, search
from pscdsl.discover.trials import Trials
from pscdsl.discover.usage import FunctionStatement, Usage, is_mapping, mutating_method, usages
from pscdsl.discover.widen import widened
from pscdsl.frontend import purity
from pscdsl.frontend.annotations import spec_of
from pscdsl.frontend.frames import Frame, Session
from pscdsl.frontend.functions import Closure
from pscdsl.frontend.scope import StaticModule
from pscdsl.frontend.values import Poison, Poisoned
from pscdsl.typing.codes.limits_discovery import ObjectParameter, OpenParameters, SearchEnded
from pscdsl.typing.diagnostics import Diagnostic, Failure, Severity
from pscdsl.typing.signatures import NoneSpec, Spec, arrays_of

Status = Literal["psc", "helper", "obstacle", "unknown"]
MAX_PARAMETERS = 24
MAX_ALSO = 3
"""Other signatures that are looked for once one was found."""


@dataclass(frozen=True)
class Verdict:
    """What was found out about one function."""

    name: str
    path: str
    line: int
    column: int
    status: Status
    written: Written | None = None
    also: tuple[str, ...] = ()
    """Other signatures that fit: with arguments in place of a default `None`."""
    findings: tuple[Diagnostic, ...] = ()
    """What stands in the way, the first obstacle first; warnings about a function that is PSC."""
    trials: int = 0


def examine(module: StaticModule, function: FunctionStatement, closure: Closure) -> Verdict:
    """Find the signature of a function, or what stands in the way of any."""
    source = module.source
    span = source.span(function)
    word = "async def " if isinstance(function, ast.AsyncFunctionDef) else "def "
    verdict = Verdict(function.name, span.path, span.line, span.column + len(word), "unknown")
    used = usages(function)
    refused = list(_unfit(module, function, closure, used))
    hints = _hints(function)
    options = {
        name: _options(module, function, closure, name, usage, hints[name])
        for name, usage in used.items()
        if not _declared_object(module, function, closure, name)
    }
    if refused or len(options) != len(used):
        return replace(verdict, status="obstacle", findings=tuple(sorted(refused, key=place)))
    trials = Trials(closure)
    blame = Blame(source, function, tuple(used))
    branches = Branches(source, function)
    found = search(trials, options, blame, branches)
    final = None if found.accepted is None else widened(trials, found.accepted)
    if found.accepted is None or final is None:
        status, findings = _obstacle(found, trials, closure)
        return replace(verdict, status=status, findings=findings, trials=trials.count)
    final = named(final, used, hints)
    text = _written(trials, module, function, final)
    helper = any(spec == FUNCTION for _, spec in final.specs)
    warnings = found.trial.findings if found.trial is not None else ()
    return replace(
        verdict,
        status="helper" if helper else "psc",
        written=text,
        also=tuple(_also(trials, module, function, options, found, blame, branches, used, hints)),
        findings=tuple(each for each in warnings if type(each).severity is Severity.WARNING),
        trials=trials.count,
    )


def _written(
    trials: Trials, module: StaticModule, function: FunctionStatement, final: Candidate
) -> Written:
    """The definition, with its result where that can be declared."""
    result = declared_result(trials, final)
    helper = any(spec == FUNCTION for _, spec in final.specs)
    bound = {name for name in module.bindings() if not _ours(module, name)}
    return written(module.source, function, final, result, bound, decorated=not helper)


def _ours(module: StaticModule, name: str) -> bool:
    """Whether a module binds a name of ours to what it means."""
    statements = [statement for _, statement in module.bindings()[name]]
    return all(
        (isinstance(each, ast.ImportFrom) and each.module in ("pscdsl", "typing"))
        or (isinstance(each, ast.Import) and name == "psc")
        for each in statements
    )


def _also(
    trials: Trials,
    module: StaticModule,
    function: FunctionStatement,
    options: Mapping[str, Sequence[Alternative]],
    found: Search,
    blame: Blame,
    branches: Branches,
    used: Mapping[str, Usage],
    hints: Mapping[str, Hint],
) -> list[str]:
    """Signatures with something in place of a default `None`."""
    texts: list[str] = []
    assert found.accepted is not None
    absent = [name for name, spec in found.accepted.specs if isinstance(spec, NoneSpec)]
    for name in absent[:MAX_ALSO]:
        rest = [each for each in options[name] if each.kind != "none"]
        other = search(trials, {**options, name: rest}, blame, branches, limit=16) if rest else None
        final = other and other.accepted and widened(trials, other.accepted)
        if final:
            texts.append(_written(trials, module, function, named(final, used, hints)).signature)
    return texts


def _obstacle(
    found: Search, trials: Trials, closure: Closure
) -> tuple[Status, tuple[Diagnostic, ...]]:
    """What stands in the way: what no signature can mend, or the best that was found."""
    if not found.failed:
        span = closure.source.span(closure.node).head(3)
        return "unknown", (SearchEnded(function=closure.name, trials=trials.count, span=span),)
    firm = standing([trial.errors for _, trial in found.failed])
    if firm and firmness(firm[0]) is Firmness.FIRM:
        return "obstacle", tuple(firm)
    if firm:
        return "unknown", tuple(firm)
    best = min(found.failed, key=lambda each: len(each[1].errors))[1].errors
    ordered = sorted(best, key=lambda d: (-firmness(d), place(d)))
    unseen = bool(ordered) and firmness(ordered[0]) is Firmness.UNSEEN
    return ("unknown" if unseen else "obstacle"), tuple(ordered)


def _hints(function: FunctionStatement) -> dict[str, Hint]:
    """What annotations say, and docstrings where they say nothing."""
    documented = docstring_hints(ast.get_docstring(function) or "")
    spec = function.args
    found: dict[str, Hint] = {}
    for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
        annotated = annotation_hint(each.annotation)
        told = documented.get(each.arg, Hint())
        if annotated.kind in ("", "array") and told.kind in ("", "array"):
            dtype = annotated.dtype or told.dtype
            found[each.arg] = replace(told, kind=told.kind or annotated.kind, dtype=dtype)
        else:
            found[each.arg] = annotated if annotated.kind else told
    return found


def _options(
    module: StaticModule,
    function: FunctionStatement,
    closure: Closure,
    name: str,
    usage: Usage,
    hint: Hint,
) -> tuple[Alternative, ...]:
    """What a parameter may be: what it is declared to be, if that is one of our types."""
    declared = _declared(module, function, name)
    if declared is not None:
        return (Alternative("declared", declared, 0),)
    return alternatives(name, usage, hint, closure.defaults.get(name, NO_DEFAULT))


def _declared(module: StaticModule, function: FunctionStatement, name: str) -> Spec | None:
    """The type that an annotation of ours, or of jaxtyping, declares."""
    spec = function.args
    for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
        if each.arg == name and isinstance(each.annotation, ast.Subscript | ast.Name):
            try:
                found = spec_of(Frame(Session(None), module.source, module), each.annotation, name)
            except (Failure, Poisoned):
                return None
            return found if any(True for _ in arrays_of(found)) else None
    return None


def _declared_object(
    module: StaticModule, function: FunctionStatement, closure: Closure, name: str
) -> bool:
    del module, function
    return isinstance(closure.defaults.get(name), Poison)


def _unfit(
    module: StaticModule,
    function: FunctionStatement,
    closure: Closure,
    used: Mapping[str, Usage],
) -> list[Diagnostic]:
    """What the parameters themselves rule out."""
    source, spec = module.source, function.args
    found: list[Diagnostic] = []
    for variadic, stars in ((spec.vararg, "*"), (spec.kwarg, "**")):
        if variadic is not None:
            name = stars + variadic.arg
            found.append(OpenParameters(name=name, span=source.span(variadic)))
    parameters = {p.arg: p for p in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    if len(parameters) > MAX_PARAMETERS:
        span = source.span(function).head(3)
        found.append(SearchEnded(function=function.name, trials=0, span=span))
    for name, usage in used.items():
        if _declared(module, function, name) is not None:
            continue
        mutated = mutating_method(usage)
        refusal = purity.static_attribute([], mutated[1]) if mutated is not None else None
        if mutated is not None and refusal is not None:
            found.append(refusal.at(source.span(mutated[2])))
        elif is_mapping(usage) or usage.attributes:
            attributes = tuple(each for each in usage.attributes if each != "append")
            how = "dict" if is_mapping(usage) else "object"
            found.append(
                ObjectParameter(
                    name=name, how=how, attributes=attributes, span=source.span(parameters[name])
                )
            )
        elif isinstance(closure.defaults.get(name), Poison | dict | list):
            found.append(
                ObjectParameter(
                    name=name, how="default", attributes=(), span=source.span(parameters[name])
                )
            )
    return found
