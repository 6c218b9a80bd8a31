"""The verdict on each function of files and folders that is not a kernel yet."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal

from pscdsl._src.checker.check import deep_stack
from pscdsl._src.discover.calls import UNKNOWN, Calls, ObservedCall
from pscdsl._src.discover.candidates import (
    FUNCTION,
    NO_DEFAULT,
    Alternative,
    Candidate,
    Hint,
    alternatives,
    annotation_hint,
    docstring_hints,
    fresh,
)
from pscdsl._src.discover.plain import (
    PlainFunction,
    PlainProject,
    callers,
    compilers_of,
    is_static,
    layout,
    module_of,
    neighbours,
    places,
    plain,
)
from pscdsl._src.discover.report import WrittenSignature, named, written
from pscdsl._src.discover.search import (
    Blame,
    Branches,
    Firmness,
    SignatureSearch,
    TrialResult,
    Trials,
    firmness,
    first_dtypes,
    fixed,
    place,
    search,
    standing,
)
from pscdsl._src.discover.usage import FunctionStatement, Usage, declared, unfit, usages
from pscdsl._src.discover.widening import (
    MisfitValue,
    declared_result,
    has_group,
    opened,
    other_ranks,
    refused_values,
    suits,
    widened,
)
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.interpreter.expressions import closure as as_closure
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.writing import WritingKernel
from pscdsl._src.frontend.modules.files import Files, files_below
from pscdsl._src.frontend.modules.scope import StaticModule, decorated
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.values import AnyValue
from pscdsl._src.support.clock import thread_time
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.limits import InternalError, UnknownFunction, UnknownValue
from pscdsl.typing.codes.projects import SearchEnded
from pscdsl.typing.diagnostics import Diagnostic, Failure, Severity
from pscdsl.typing.dims import Size
from pscdsl.typing.signatures import NoneSpec, OptionalSpec

# The verdict on one function.


Status = Literal["psc", "helper", "obstacle", "unknown"]
MAX_ALSO = 4
"""Other signatures, and values that do not fit, that are reported once one was found."""
MAX_OPTIONAL = 3
"""Parameters that are `None` by default for which another type is looked for."""
MAX_TRIALS_OPTIONAL = 16
MAX_SECONDS = 6.0
"""The most seconds of processor time for the functions of one file."""
SHARE = 3
LEAST_SECONDS = 0.2
MAX_CALLS = 4
"""Calls of other kinds of arguments that a signature is to take."""
MAX_CHECKED = 64
"""Calls that it is compared with."""


@dataclass(frozen=True)
class FunctionVerdict:
    """The findings about one function."""

    name: str
    path: str
    line: int
    column: int
    status: Status
    written: WrittenSignature | None = None
    also: tuple[str, ...] = ()
    """Other signatures that fit: other ranks of an array."""
    refused: tuple[MisfitValue, ...] = ()
    """Values of static parameters that do not fit."""
    findings: tuple[Diagnostic, ...] = ()
    """The obstacles, the first one first; warnings about a function that is PSC."""
    trials: int = 0
    violated: tuple[ObservedCall, ...] = ()
    """Calls that the definition refuses."""
    followed: frozenset[tuple[str, int]] = frozenset()
    """The paths and lines of calls whose arguments were known every time."""


@dataclass(frozen=True)
class _Seen:
    """The evidence from a function's text, and its trials."""

    module: StaticModule
    function: FunctionStatement
    trials: Trials
    usages: Mapping[str, Usage]
    hints: Mapping[str, Hint]
    options: Mapping[str, Sequence[Alternative]]
    blame: Blame
    branches: Branches


def examine(
    module: StaticModule,
    function: FunctionStatement,
    closure: Closure,
    calls: Sequence[ObservedCall] = (),
    deadline: float = float("inf"),
    shapes: Sequence[tuple[str, ...]] = (),
) -> FunctionVerdict:
    """Find the signature of a function, or the obstacle to every signature.

    `shapes` has the sizes of its parameters if a decorator gives them.
    """
    source = module.source
    span = source.span(function)
    word = "async def " if isinstance(function, ast.AsyncFunctionDef) else "def "
    verdict = FunctionVerdict(
        function.name, span.path, span.line, span.column + len(word), "unknown"
    )
    used = usages(function, _by_name(module))
    refused = unfit(module, function, closure, used)
    if refused:
        ordered = tuple(sorted(refused, key=place))
        return replace(verdict, status="obstacle", findings=ordered)
    hints = _hints(function)
    hints.update({name: Hint("array", dims) for name, dims in zip(used, shapes, strict=False)})
    every, calls = distinct(calls), distinct(calls, MAX_CALLS)
    options = {
        name: _options(module, function, closure, name, usage, hints[name], position, calls)
        for position, (name, usage) in enumerate(used.items())
    }
    blame = Blame(source, function, tuple(used))
    trials = Trials(closure, calls, deadline, [name for name, each in used.items() if each.static])
    seen = _Seen(module, function, trials, used, hints, options, blame, Branches(source, function))
    found = search(
        trials,
        options,
        blame,
        seen.branches,
        suits=lambda each: suits(trials, each),
        same=_same_sizes(used, shapes),
    )
    final = None if found.accepted is None else _allow_absent(seen, found.accepted)
    if found.accepted is None or found.trial is None or final is None:
        status, findings = _obstacle(found, seen)
        return replace(verdict, status=status, findings=findings, trials=trials.count)
    text = _write(seen, final)
    also = dict.fromkeys(
        _write(seen, each).signature for each in _also(seen, found.accepted, final)
    )
    warnings = (d for d in found.trial.findings if type(d).severity is Severity.WARNING)
    return replace(
        verdict,
        status="helper" if _takes_function(final) else "psc",
        written=text,
        refused=tuple(islice(refused_values(trials, found.accepted, final), MAX_ALSO)),
        also=tuple(each for each in also if each != text.signature)[:MAX_ALSO],
        findings=tuple(warnings),
        trials=trials.count,
        violated=tuple(trials.refused(final, every[:MAX_CHECKED], lists=True)),
    )


def _same_sizes(used: Iterable[str], shapes: Sequence[tuple[str, ...]]) -> Iterator[Fact]:
    """Yield the equalities of sizes that a decorator states."""
    first: dict[str, Size] = {}
    for name, dims in zip(used, shapes, strict=False):
        for axis, dim in enumerate(dims):
            size = fresh(name, axis)
            if first.setdefault(dim, size) is not size:
                yield Fact("==", first[dim], size)


def distinct(calls: Sequence[ObservedCall], most: int | None = None) -> list[ObservedCall]:
    """Return the calls with distinct arguments, the best known first."""
    found: dict[str, ObservedCall] = {}
    for each in calls:
        if each.arguments is not None:
            call = each if each.known else each.without_unknown()
            kinds = [f"{n} {_kind(value)}" for n, value in (call.arguments or {}).items()]
            found.setdefault(" ".join(kinds), call)
    return sorted(found.values(), key=lambda each: not each.known)[:most]


def _kind(value: object) -> str:
    """Return the properties of an argument that a signature may distinguish."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None:
        return f"{dtype}{shape}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}[{' '.join(map(_kind, value))}]"
    return type(value).__name__ if isinstance(value, float) else repr(value)


def _takes_function(candidate: Candidate) -> bool:
    return any(spec == FUNCTION for _, spec in candidate.specs)


def _write(seen: _Seen, candidate: Candidate) -> WrittenSignature:
    """Return the definition, with its result where that can be declared."""
    final = named(candidate, seen.usages, seen.hints)
    result = declared_result(seen.trials, final)
    bound = {name for name in seen.module.bindings() if not _ours(seen.module, name)}
    decorated = not _takes_function(final)
    return written(seen.module.source, seen.function, final, result, bound, decorated)


def _ours(module: StaticModule, name: str) -> bool:
    """Return whether a module binds a name of ours to its meaning."""
    statements = [statement for _, statement in module.bindings()[name]]
    return all(
        (isinstance(statement, ast.ImportFrom) and statement.module in ("pscdsl", "typing"))
        or (isinstance(statement, ast.Import) and name == "psc")
        for statement in statements
    )


def _allow_absent(seen: _Seen, accepted: Candidate) -> Candidate | None:
    """Widen the accepted candidate; a `None` default becomes an optional argument if possible."""
    absent = [name for name, spec in accepted.specs if isinstance(spec, NoneSpec)]
    for name in absent[:MAX_OPTIONAL]:
        rest = [each for each in seen.options[name] if each.kind != "none"]
        options = {**seen.options, name: rest}
        for other, spec in accepted.specs:
            if isinstance(spec, OptionalSpec):
                options[other] = [Alternative("declared", spec, 0)]
        if not rest:
            continue
        given = search(seen.trials, options, seen.blame, seen.branches, MAX_TRIALS_OPTIONAL)
        if given.accepted is not None:
            spec = dict(given.accepted.specs)[name]
            both = given.accepted.with_spec(name, OptionalSpec(spec), 0, 0)
            if seen.trials.accepts(first_dtypes(fixed(both))):
                accepted = both
    return widened(seen.trials, accepted)


def _also(seen: _Seen, found: Candidate, final: Candidate) -> Iterator[Candidate]:
    """Other signatures that fit: another rank of one array."""
    if any(has_group(spec) for _, spec in final.specs):
        return  # the group covers the ranks
    for each in other_ranks(seen.trials, found, seen.options, seen.blame, seen.branches):
        narrow = opened(seen.trials, each)
        if seen.trials.accepts(narrow):
            yield narrow


def _obstacle(found: SignatureSearch, seen: _Seen) -> tuple[Status, tuple[Diagnostic, ...]]:
    """Return the obstacles that no signature avoids, or those of the best trial."""
    trials = seen.trials
    span = seen.module.source.span(seen.function).head(3)
    ended = SearchEnded(function=seen.function.name, trials=trials.count, span=span)
    if not found.failed:
        return "unknown", (ended,)
    firm = standing([found.blocked] if found.blocked else [t.errors for _, t in found.failed])
    if firm:
        return _status(firm), tuple(firm)
    if trials.exhausted:
        return "unknown", (ended,)
    best, _ = max(found.failed, key=lambda each: _progress(*each))
    errors = trials.run(named(best, seen.usages, seen.hints)).errors
    ordered = sorted(errors, key=lambda d: (-firmness(d), place(d)))
    return _status(ordered), tuple(ordered)


def _progress(candidate: Candidate, trial: TrialResult) -> tuple[int, int, int, int]:
    """Return the progress of a trial before its first error, and its closeness to the evidence.

    An error that remains with granted preconditions is the relevant one.
    """
    line = min((place(error)[0] for error in trial.errors), default=0)
    return line, len(candidate.facts), -candidate.cost, -len(set(candidate.sizes()))


def _status(findings: Sequence[Diagnostic]) -> Status:
    """Return the status of a function by the first of its findings."""
    unseen = bool(findings) and firmness(findings[0]) is Firmness.UNSEEN
    return "unknown" if unseen else "obstacle"


def _hints(function: FunctionStatement) -> dict[str, Hint]:
    """Return the evidence from annotations, or from docstrings where they say nothing."""
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
    position: int,
    calls: Sequence[ObservedCall],
) -> tuple[Alternative, ...]:
    """Return the possible types of a parameter: the declared one, if it is one of our types."""
    ours = declared(module, function, name)
    if ours is not None:
        return (Alternative("declared", ours, 0),)
    passed = [(each.arguments or {}).get(name, UNKNOWN) for each in calls]
    default = closure.defaults.get(name, NO_DEFAULT)
    return alternatives(name, usage, hint, default, position, passed)


# Discovery over files and folders: a verdict for each function that is no kernel yet.


@dataclass(frozen=True)
class Discovery:
    """The verdicts about files."""

    verdicts: tuple[FunctionVerdict, ...] = ()
    problems: tuple[Diagnostic, ...] = ()
    """Files that are no Python text."""
    files: int = 0
    kernels: int = 0
    """Functions that are kernels already."""
    methods: int = 0
    """Methods of instances and classes: these are not looked at."""


def discover_source(text: str, path: str) -> Discovery:
    """Return the functions of one module given as text."""
    with deep_stack():
        project = PlainProject()
        try:
            source = plain(Source(path, text))
        except Failure as failure:
            return Discovery(problems=failure.diagnostics, files=1)
        module = project.add(source, path if os.path.isfile(path) else None)
        return discover_module(module, [module])


def discover_paths(paths: Sequence[Path | str]) -> Discovery:
    """Return the functions of files, and of the Python files and notebooks below folders."""
    return together([*discovered(files_below(paths)).values()])


def discovered(files: Files) -> dict[str, Discovery]:
    """Return the functions of each file."""
    with deep_stack():
        every = neighbours(files).paths
        return {path: _discover_file(files, path, every) for path in files.given}


def together(found: Sequence[Discovery]) -> Discovery:
    """Join the discoveries of several files."""
    return Discovery(
        tuple(verdict for each in found for verdict in each.verdicts),
        tuple(problem for each in found for problem in each.problems),
        len(found),
        sum(each.kernels for each in found),
        sum(each.methods for each in found),
    )


def _discover_file(files: Files, path: str, every: Sequence[str]) -> Discovery:
    try:
        project = PlainProject(files=files)
        module = project.at(path)
    except Failure as failure:
        return Discovery(problems=failure.diagnostics, files=1)
    names = list(dict.fromkeys(each.node.name for each in places(module.source)))
    others = callers(files, path, names, every)
    found = (module_of(project, other) for other in others)
    called_in = [each for each in found if each is not None]
    return discover_module(module, called_in, MAX_SECONDS)


def discover_module(
    module: StaticModule,
    called_in: Sequence[StaticModule] = (),
    seconds: float = float("inf"),
) -> Discovery:
    """Return the functions of a module, in order; `called_in` are the modules that call them.

    A function has a share of the time: several times that of those after it.
    """
    verdicts: list[FunctionVerdict] = []
    kernels = 0
    end = thread_time() + seconds
    every = [*places(module.source)]
    calls = Calls((module.source.path, each.node.lineno) for each in every)
    for other in called_in:
        calls.follow(other)
    for index, each in enumerate(every):
        found = calls.calls[module.source.path, each.node.lineno]
        now = thread_time()
        share = max(SHARE * (end - now) / (len(every) - index), LEAST_SECONDS)
        verdict = _verdict(module, each, found, min(end, now + share))
        if verdict is not None and len(distinct(found)) <= MAX_CHECKED:
            key = module.source.path, each.node.lineno
            verdict = replace(verdict, followed=calls.followed(key))
        if verdict is None:
            kernels += 1
        else:
            verdicts.append(verdict)
    return Discovery(tuple(verdicts), (), 1, kernels, _methods(module.source.tree))


def _by_name(module: StaticModule) -> dict[str, FunctionStatement]:
    """Return the functions whose names have no other binding."""
    found: dict[str, FunctionStatement] = {}
    for name, bindings in module.bindings().items():
        if len(bindings) == 1 and isinstance(bindings[0][1], FunctionStatement):
            found[name] = bindings[0][1]
    return found


def _verdict(
    module: StaticModule, place: PlainFunction, calls: Sequence[ObservedCall], deadline: float
) -> FunctionVerdict | None:
    """Return the verdict on a function; None if it is a kernel."""
    node = place.node
    span = module.source.span(node)
    unknown = FunctionVerdict(place.name, span.path, span.line, span.column, "unknown")
    if thread_time() > deadline:
        ended = SearchEnded(function=node.name, trials=0, span=span.head(3))
        return replace(unknown, findings=(ended,))
    if place.captured:
        names = ", ".join(place.captured)
        finding = UnknownValue(name=names, span=span.head(3))
        return replace(unknown, findings=(finding,))
    try:
        frame = module.frame()
        value: AnyValue = as_closure(frame, node, node.name)
        imported, shapes = compilers_of(module.source), None
        for decorator in reversed(node.decorator_list):
            if (found := layout(decorator, imported)) is not None:
                shapes = found
            elif not (isinstance(decorator, ast.Name) and decorator.id == "staticmethod"):
                value = decorated(frame, decorator, value)
        if isinstance(value, Definition | WritingKernel):
            return None
        if not isinstance(value, Closure):
            decorator = node.decorator_list[0]
            name = module.source.text_of(decorator)
            unread = UnknownFunction(function=name, span=module.source.span(decorator))
            return replace(unknown, findings=(unread,))
        verdict = examine(module, node, value, calls, deadline, shapes or ())
        return replace(verdict, name=place.name)
    except Failure as failure:
        return replace(unknown, findings=failure.at(span.head(3)).diagnostics)
    except Exception as error:  # one function of ours to mend; the others are told all the same
        what = f"function `{node.name}`: {type(error).__name__}: {error}"
        return replace(unknown, findings=(InternalError(what=what, span=span.head(3)),))


def _methods(tree: ast.Module) -> int:
    return sum(
        isinstance(inner, FunctionStatement) and not is_static(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for inner in node.body
    )
