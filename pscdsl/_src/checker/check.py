"""Checking source files: every kernel of every file, without importing or running anything."""

from __future__ import annotations

import ast
import gc
import os
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from pscdsl._src.analysis.intervals import require_fitting
from pscdsl._src.checker.budgets import over_budget, stray_comments, unproven
from pscdsl._src.checker.results import CheckResult, KernelReport, Status, summary
from pscdsl._src.checker.selection import Examined, Suppression, suppressions
from pscdsl._src.dialects.jax.check import check_jax
from pscdsl._src.frontend.definitions import Definition, Excluded
from pscdsl._src.frontend.interpreter.iteration import FEW_STEPS
from pscdsl._src.frontend.modules.files import Files, files_below
from pscdsl._src.frontend.modules.kernels import (
    NotKnown,
    Unchecked,
    find_kernels,
    made_kernel,
    misused_decorators,
    unchecked_kernels,
)
from pscdsl._src.frontend.modules.scope import Project, StaticModule
from pscdsl._src.frontend.purity import instead_of
from pscdsl._src.frontend.text.display import split_cell
from pscdsl._src.frontend.text.source import Source, shown_path
from pscdsl._src.frontend.values import Poisoned
from pscdsl._src.ir.program import Function, walk
from pscdsl._src.transforms.simplify import require_compilable
from pscdsl.typing.array_types import DictType
from pscdsl.typing.codes.limits import (
    ChoicesSampled,
    InternalError,
    KernelNotChecked,
    NestedTooDeeply,
    RevealedType,
)
from pscdsl.typing.codes.shapes_of_arguments import ReturnShape
from pscdsl.typing.diagnostics import Diagnostic, Failure, Label, Severity, Span
from pscdsl.typing.signatures import (
    Choice,
    MapSpec,
    Signature,
    Spec,
    bound_by,
    exclusion,
    is_sampled_integer,
    walk_paths,
)

if TYPE_CHECKING:
    from pscdsl._src.checker.jax_functions import JaxFunction


@dataclass(frozen=True)
class Held:
    """A kernel that was checked, and its findings."""

    definition: Definition
    found: Sequence[Diagnostic]
    status: Status


Seen = Callable[[str, Held], None]
"""Receives each kernel that was checked, with its name in the module."""


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
    """Check files, and the Python files and notebooks below folders, without excluded ones."""
    files = files_below(paths, excluded)
    with deep_stack():
        return summary([check_file(files, path)[0] for path in files.given])


def check_file(
    files: Files,
    path: str,
    seen: Seen | None = None,
    known: Mapping[str, Held] = MappingProxyType({}),
    read: Iterable[str] = (),
) -> tuple[CheckResult, Project]:
    """Check one of the files; return also the modules that were read for it.

    The findings depend on nothing but these files: not on which of them were checked before.
    `known` has kernels of the module whose findings would be the same, and `read` the files that
    were read for them.
    """
    project = Project(files=files)
    try:
        for each in read:
            project.at(each)
        return check_module(project.at(path), seen, known), project
    except Failure as failure:
        return CheckResult(failure.diagnostics, (), 1), project
    except Exception as error:
        return _unfinished(shown_path(path), error), project


def _unfinished(path: str, error: Exception) -> CheckResult:
    """Return a finding that the check of a whole module failed."""
    start = Span(path, 1, 1, 1, 1)
    found: Diagnostic = InternalError(what=f"{type(error).__name__}: {error}", span=start)
    if isinstance(error, RecursionError):
        found = NestedTooDeeply(what="the module", span=start)
    return CheckResult((found,), (), 1)


@contextmanager
def deep_stack() -> Generator[None]:
    """Make room for nested programs; rare garbage collection makes many small trees cheap."""
    limit, often = sys.getrecursionlimit(), gc.get_threshold()
    sys.setrecursionlimit(max(limit, 12_000))
    gc.set_threshold(200_000, 10, 10)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        gc.set_threshold(*often)


@contextmanager
def quiet() -> Generator[None]:
    """Suppress NumPy's warnings: the checker's computations are no program yet."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@quiet()
def check_module(
    module: StaticModule, seen: Seen | None = None, known: Mapping[str, Held] = MappingProxyType({})
) -> CheckResult:
    """Check every kernel of a module but those known; no comment silences anything yet."""
    seen = seen or (lambda name, held: None)
    examined: set[tuple[str, int]] = set()
    diagnostics: list[Diagnostic] = []
    kernels: list[KernelReport] = []
    revealed: list[RevealedType] = []
    checked: set[ast.AST] = set()
    places: list[Span] = []
    entered: set[Span] = set()
    named = module.may_name_kernels()
    for name, definition in find_kernels(module, diagnostics) if named else ():
        checked.add(definition.closure.node)
        if (made_at := definition.written_at) is not None:
            places.append(made_at)
        held = known.get(name)
        if held is None:
            held = Held(definition, *check_definition(definition))
        seen(name, held)
        definition, found, status = held.definition, held.found, held.status
        entered |= definition.elaborations.entered
        diagnostics.extend(each.replaced(kernel=name) for each in found)
        revealed.extend(each.replaced(kernel=name) for each in definition.elaborations.revealed)
        if status == "ok":
            examined.update((each.path, each.line) for each in definition.elaborations.entered)
        place = definition.name_place
        kernels.append(
            KernelReport(
                *(name, place.path, place.line, place.column, status, shown(definition)),
                examples=_examples(definition),
                loops=_loops(definition),
            )
        )
    diagnostics.extend(misused_decorators(module) if named else ())
    unchecked = [*unchecked_kernels(module, checked)] if named else []
    checked.update(each.node for each in unchecked if each.node is not None)
    for each in unchecked:
        places.append(each.place)
        made, found, status = _check_made(module, each, checked)
        diagnostics.extend(finding.replaced(kernel=each.name) for finding in found)
        place, signature = each.place, "(…)"
        examples: tuple[str, ...] = ()
        loops: tuple[tuple[int, int, str], ...] = ()
        if made is not None:
            seen(each.name, Held(made, found, status))
            entered |= made.elaborations.entered
            loops = _loops(made)
            place, signature, examples = made.name_place, shown(made), _examples(made)
            revealed.extend(note.replaced(kernel=each.name) for note in made.elaborations.revealed)
            if status == "ok":
                examined.update(
                    (entered.path, entered.line) for entered in made.elaborations.entered
                )
        kernels.append(
            KernelReport(
                *(each.name, place.path, place.line, place.column, status, signature),
                examples=examples,
                loops=loops,
            )
        )
    diagnostics.extend(stray_comments(module.source, places))
    if diagnostics:
        from pscdsl._src.frontend.fixes import with_fixes  # correct kernels need no fixes

        modules = (module, *module.project.by_path.values())
        diagnostics = with_fixes(
            diagnostics, {each.source.path: each.source for each in modules}.get
        )
    of_jax = check_jax(module)
    diagnostics.extend(of_jax.diagnostics)
    annotated: tuple[JaxFunction, ...] = ()
    if module.is_jax:
        from pscdsl._src.checker.jax_functions import annotated_functions
        from pscdsl._src.checker.jax_gradients import gradient_findings

        annotated = tuple(annotated_functions(module))
        diagnostics.extend(finding for each in annotated for finding in each.found)
        diagnostics.extend(gradient_findings(module, annotated))
    errors = [each.span for each in diagnostics if each.severity is Severity.ERROR]
    unfinished = {split_cell(kernel.path)[0] for kernel in kernels if kernel.status != "ok"}
    return CheckResult(
        (*diagnostics, *_merged(revealed)),
        tuple(kernels),
        1,
        comments=comments_near(module, diagnostics),
        examined=Examined(
            frozenset(examined), frozenset(unfinished), frozenset({module.source.path})
        ),
        of_jax=sum(
            node not in checked and module.source.span(node) not in entered
            for node in of_jax.functions
        ),
        unknown_calls=of_jax.unknown,
        annotated=tuple(each.counted(module.source, errors) for each in annotated),
        captured=tuple(
            sorted(
                f"{each.module}.{name}"
                for each in module.project.modules()
                for name in each.captured
            )
        ),
    )


def _merged(notes: Iterable[RevealedType]) -> Iterator[RevealedType]:
    """Yield one note for each expression, with all types that it has."""
    types: dict[Span, dict[str, None]] = {}
    first: dict[Span, RevealedType] = {}
    for note in notes:
        first.setdefault(note.span, note)
        types.setdefault(note.span, {}).update(dict.fromkeys(note.types))
    for span, note in first.items():
        yield note.replaced(types=tuple(types[span]))


def _check_made(
    module: StaticModule, kernel: Unchecked, kernels: set[ast.AST]
) -> tuple[Definition | None, list[Diagnostic], Status]:
    """Check a kernel that a function makes, for all its arguments; or return why that fails."""
    reason = kernel.reason
    if kernel.node is not None and kernel.around is not None:
        try:
            function = module.own(kernel.around.name)
            made = made_kernel(function, kernel.node, kernels)
            found, status = check_definition(made)
            ours = any(isinstance(each, InternalError) for each in found)
            if status == "error" and not ours and (one := made.sampled()) is not None:
                found, status = check_definition(one)
                if status == "ok":
                    names = " and ".join(f"`{name}`" for name in sorted(made.around.numbers))
                    raise NotKnown(f"it depends on the value of {names}")
                made = one
            return made, found, status
        except NotKnown as unknown:
            reason = unknown.reason
        except Failure:
            pass
    note = KernelNotChecked(
        kernel_name=kernel.name, reason=reason, span=kernel.place, kernel=kernel.name
    )
    if kernel.decorated_at is not None:
        label = Label(kernel.decorated_at, f"`{kernel.decorator}`")
        rewrite = instead_of(kernel.decorator) or "leave it out, or apply it outside to the kernel"
        note = note.replaced(decorator=kernel.decorator, rewrite=rewrite, labels=(label,))
    return None, [note], "unchecked"


def comments_near(
    module: StaticModule, diagnostics: Iterable[Diagnostic]
) -> tuple[Suppression, ...]:
    """Return the suppressions of a module, and of the others with findings of its kernels."""
    sources = {module.source.path: module.source}
    places = {frame.path for diagnostic in diagnostics for frame in diagnostic.span.frames()}
    elsewhere = {split_cell(path)[0] for path in places} - sources.keys()
    if elsewhere:
        for other in module.project.by_path.values():
            if other.source.path in elsewhere:
                sources[other.source.path] = other.source
    return tuple(
        suppression
        for source in sources.values()
        for suppression in suppressions(source.text, source.tree, source.locate)
    )


def shown(definition: Definition) -> str:
    """Return the signature as `check` prints it, with the examples that were tried."""
    try:
        signature = definition.shown()
    except Failure:
        return "(…)"
    tried = definition.tried().enumerated()
    return signature.types() + (f"  ({'; '.join(tried)})" if tried else "")


def _loops(definition: Definition) -> tuple[tuple[int, int, str], ...]:
    own = definition.name_place.path
    return tuple(
        sorted(
            (line, column, _either([*texts]))
            for (path, line, column), texts in definition.elaborations.loops.items()
            if path == own
        )
    )


def _either(texts: Sequence[str]) -> str:
    """Return a sentence about a loop; for several choices, without the number of steps."""
    if len(texts) > 1:
        texts = [*dict.fromkeys(each.partition(",")[0] for each in texts)]
    return " or ".join(texts)


def _examples(definition: Definition) -> tuple[str, ...]:
    try:
        return definition.tried().examples()
    except Failure:
        return ()


def _parts(definition: Definition) -> Iterator[Spec]:
    """Yield the types of a kernel's parameters and all in them."""
    for parameter in definition.signature.parameters:
        for _, part in walk_paths(parameter.spec, parameter.name):
            yield part


def check_definition(definition: Definition) -> tuple[list[Diagnostic], Status]:
    """Return the findings of a kernel over every choice that its signature is tried with."""
    try:
        choices = definition.signature.choices()
        if choices is None:
            reason = "what it leaves open besides sizes is known only at its calls"
            span = definition.head
            rewrite = "call it in a kernel, or name its values: `psc.Static[Literal[...]]`"
            if any(
                isinstance(part, MapSpec) and part.kind is DictType for part in _parts(definition)
            ):
                rewrite = "say the keys of the dict by a `TypedDict`, or call it in a kernel"
            note = KernelNotChecked(
                kernel_name=definition.name, reason=reason, rewrite=rewrite, span=span
            )
            return [note], "unchecked"
        if _is_proven(definition, definition.signature.with_sizes()):
            return [], "ok"
        if made := _made_sizes(definition):
            if _is_proven(definition, definition.signature.with_sizes(made)):
                return [], "ok"
        others = [each for each in _beyond(definition, choices) if each not in choices]
        found, status = _check_choices(definition, choices, others)
        found = _of_all_sizes(definition, found)
        if status == "error" and not found:
            return [_internal(definition, "it has no program, and nothing was found")], status
        if status == "ok":
            beyond = [*unproven(definition)]
            found, status = [*found, *beyond], "error" if beyond else status
        total = definition.signature.combinations()
        if total > len(choices):
            place = definition.head
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
    except NotKnown:
        raise
    except RecursionError:
        head = definition.head
        return [NestedTooDeeply(what=f"kernel `{definition.name}`", span=head)], "error"
    except Exception as error:
        return [_internal(definition, f"{type(error).__name__}: {error}")], "error"


def _require_fitting_once(function: Function) -> None:
    """Raise a Failure if an integer does not fit even with the smallest possible sizes."""
    facts = function.facts
    sizes = {name: max(1, facts.lower_bound(name)) for name in function.dims}
    if all(fact.holds(sizes) for fact in facts.facts):
        require_fitting(function, sizes)


def _is_proven(definition: Definition, general: Signature | None) -> bool:
    """Return whether nothing is wrong with static integers as sizes, whatever they are."""
    tried = None if general is None else general.choices()
    if general is None or tried is None or len(tried) != general.combinations():
        return False
    found, status = _check_choices(definition, tried)
    if definition.jax is not None:  # of a JAX program, advice is not asked for
        found = [each for each in found if each.severity is Severity.ERROR]
    if status != "ok" or found:
        return False
    definition.proven = general
    return True


def _of_all_sizes(definition: Definition, found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return findings about a result without those for examples of sizes, where one is for all."""
    sampled = [each for each in found if isinstance(each, ReturnShape) and each.is_sampled]
    general = definition.signature.with_sizes() if sampled else None
    choices = general.choices() if general is not None else None
    if not choices:
        return [*found]
    places = {each.span: each for each in _checked_each(definition, choices)[0]}
    return [
        places[each.span]
        if each in sampled and isinstance(places.get(each.span), ReturnShape)
        else each
        for each in found
    ]


def _made_sizes(definition: Definition) -> frozenset[str]:
    """Return the static integers that the body uses as sizes: they are at least 1, as sizes are."""
    general = definition.signature.with_sizes()
    choices = (general and general.choices()) or []
    try:
        function = definition.instance(choices[0])
    except (Failure, Excluded, IndexError):
        return frozenset()
    types = (atom.type for each in walk(function.body) for atom in each.outputs)
    used = frozenset[str]().union(*(each.names() for each in types))
    return used & {name for name, _ in choices[0].statics}


def _beyond(definition: Definition, choices: Sequence[Choice]) -> Iterator[Choice]:
    """Yield choices beyond those of the signature: the defaults, and loops of many steps."""
    signature = definition.signature
    open_ = [each for each in signature.parameters if is_sampled_integer(each.spec)]
    if not open_ or not choices:
        return
    base = choices[-1]
    defaults = definition.closure.defaults
    own = {each.name: defaults[each.name] for each in open_ if each.has_default}
    if any(type(value) is int for value in own.values()):
        yield base.with_statics({n: v for n, v in own.items() if type(v) is int})
    for each in open_:
        yield base.with_statics({each.name: FEW_STEPS + 1})


def _internal(definition: Definition, what: str) -> InternalError:
    """Return the finding for a failure of ours at a kernel; the check of the others goes on."""
    span = definition.head
    return InternalError(what=f"kernel `{definition.name}`: {what}", span=span)


def _check_choices(
    definition: Definition, usual: Sequence[Choice], others: Sequence[Choice] = ()
) -> tuple[list[Diagnostic], Status]:
    """Return the findings for choices; `others` count if nothing is wrong with the usual ones."""
    found, status = _checked_each(definition, usual)
    if status == "ok" and others:
        beyond, worse = _checked_each(definition, others, usual)
        limits = all(each.code.startswith("PSC9") for each in beyond)
        if worse != "ok" and not limits:
            return beyond, worse
    return found, status


def _checked_each(
    definition: Definition, choices: Sequence[Choice], known: Sequence[Choice] = ()
) -> tuple[list[Diagnostic], Status]:
    """Return the findings for choices; nothing is wrong with those that are `known`."""
    found: dict[tuple[str, Span, str], Diagnostic] = {}
    failing: dict[tuple[str, Span, str], list[Choice]] = {}
    asked: dict[tuple[str, Span, str], list[Diagnostic]] = {}
    excluded: list[Diagnostic] = []
    status: Status = "ok"
    for choice in choices:
        try:
            function = definition.instance(choice)
            require_compilable(function)
            _require_fitting_once(function)
            kept = [d.replaced(choice=str(choice)) for d in over_budget(definition, choice)]
            findings = (*definition.warnings(choice), *kept)
            status = "error" if kept else status
        except Failure as failure:
            findings = tuple(d.replaced(choice=str(choice)) for d in failure.diagnostics)
            status = "error"
        except Excluded as out:
            excluded.append(out.finding)
            continue
        for finding in findings:
            key = (finding.code, finding.span, finding.message() if len(choices) == 1 else "")
            found.setdefault(key, finding)
            failing.setdefault(key, []).append(choice)
            asked.setdefault(key, []).append(finding)
        if status == "error" and definition.jax is not None:
            break  # a function of JAX that is not right for a choice is not followed
    if excluded and len(excluded) == len(choices):
        return ([], "ok") if known else ([excluded[0]], "error")
    errors = [key for key in failing if found[key].severity is Severity.ERROR]
    wrong = {id(choice) for key in errors for choice in failing[key]}
    right = [*known, *(choice for choice in choices if id(choice) not in wrong)]
    sampled = bool(found and _examples(definition))
    for key, where in failing.items():
        if found[key].choice:
            claims = [each.claimed() for each in asked[key]]
            precondition = exclusion(where, right) or bound_by(where, claims)
            texts = {each.advice() for each in asked[key]}
            everywhere = not known and len({*map(id, where)}) + len(excluded) == len(choices)
            varies = sampled and (len(texts) > 1 or not everywhere)
            found[key] = found[key].replaced(precondition=precondition, is_sampled=varies)
    return list(found.values()), status


def load_definition(path: Path | str, name: str) -> Definition:
    """Return a kernel read from a file's source; LookupError if the file has none of this name."""
    files = files_below([path])
    (real,) = files.given
    module = Project(files=files).at(real)
    problems: list[Diagnostic] = []
    found = dict(find_kernels(module, problems))
    if name in found:
        return found[name]
    errors = [d for d in problems if d.severity is Severity.ERROR]
    if errors:
        raise Failure(*errors)
    checked: set[ast.AST] = {each.closure.node for each in found.values()}
    for each in unchecked_kernels(module, checked):
        if each.name == name:
            raise LookupError(f"{shown_path(real)}: {without_program(name)}")
    known = ", ".join(found) or "none"
    raise LookupError(f"{shown_path(real)} has no kernel `{name}`; its kernels are: {known}")


def without_program(name: str) -> str:
    """Return why an existing kernel has no program to show, and the advice."""
    maker = name.rpartition(".")[0]
    where = f"inside `{maker}`" if maker else "when its file runs"
    return f"kernel `{name}` is made {where}, and nothing is run here: define it at module level"
