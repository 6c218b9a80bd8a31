"""The search for a signature: it grants an elaboration's demands, the cheapest first."""

from __future__ import annotations

import ast
import heapq
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import chain, combinations, count, islice, product
from types import MappingProxyType
from typing import Any

from pscdsl._src.discover.calls import ObservedCall
from pscdsl._src.discover.candidates import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    Alternative,
    Candidate,
    array,
    generalised,
    map_arrays,
    owner,
    with_coefficient,
)
from pscdsl._src.discover.fitting import admits
from pscdsl._src.discover.usage import FunctionStatement, dotted
from pscdsl._src.frontend.definitions import Definition, Excluded
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.text.source import Source, targets
from pscdsl._src.frontend.values import Poisoned
from pscdsl._src.ir.program import Function
from pscdsl._src.support.clock import thread_time
from pscdsl.typing.array_types import StaticType
from pscdsl.typing.assumptions import Assumptions, Fact, Verdict, parse_fact, sufficient_bound
from pscdsl.typing.codes.control import LoopLengthsDiffer
from pscdsl.typing.codes.language_evaluation import WrongUnpacking
from pscdsl.typing.codes.limits import InternalError
from pscdsl.typing.codes.purity import Mutation
from pscdsl.typing.codes.shapes import ImpossibleReshape, ShapesDoNotBroadcast
from pscdsl.typing.codes.shapes_of_arguments import UndecidedCondition
from pscdsl.typing.counters import Counter
from pscdsl.typing.diagnostics import Diagnostic, Failure, Severity, Span, plainly
from pscdsl.typing.dims import Dim, DimSyntaxError, Size, as_terms, names, parse, variable
from pscdsl.typing.dtypes import DType
from pscdsl.typing.signatures import (
    ArraySpec,
    Choice,
    DTypeClass,
    OptionalSpec,
    RepeatedSpec,
    Signature,
    Spec,
    StaticSpec,
    Variadic,
    group_name,
    walk_paths,
)

# Trials: a function elaborated under a candidate, within bounds for each function.


MAX_WORK = 120_000
"""Statements of the function and its helpers and nodes of its tree, over all its trials."""
MAX_STEPS = 10_000
"""Statements that one trial may be, loops unrolled and helpers inlined."""
MAX_CHOICES = 128
"""Choices of dtypes, ranks and static values that a signature is verified with."""
MAX_SECONDS = 5.0
"""The most seconds for the trials of one function."""
NUMBERS = (0, 1, 2, 3, 4)
"""The values that are tried for `psc.Static[int]`."""


@dataclass(frozen=True)
class TrialResult:
    """The result of a trial: a program, or the reasons why there is none."""

    program: Function | None
    findings: tuple[Diagnostic, ...]
    counters: frozenset[Counter] = frozenset()
    """The counters of its loops that are sizes."""

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that are errors."""
        return tuple(
            finding for finding in self.findings if type(finding).severity is Severity.ERROR
        )


class Trials:
    """The trials of one function."""

    def __init__(
        self,
        closure: Closure,
        calls: Sequence[ObservedCall] = (),
        deadline: float = float("inf"),
        sizes: Collection[str] = (),
    ) -> None:
        self.closure = closure
        self.calls = calls
        self.sizes = sizes
        """The parameters that the function uses as sizes or axes."""
        self.deadline = min(deadline, thread_time() + MAX_SECONDS)
        self.count = 0
        self.work = 0
        self._definitions: dict[Any, Definition] = {}
        self._trials: dict[Definition, TrialResult] = {}
        self._accepted: dict[Definition, bool] = {}
        self.nodes = sum(1 for _ in ast.walk(closure.node))
        spec = closure.node.args
        self.keyword_only = frozenset(parameter.arg for parameter in spec.kwonlyargs)

    @property
    def exhausted(self) -> bool:
        """Return whether the work for this function has to end."""
        return self.work > MAX_WORK or thread_time() > self.deadline

    def definition(self, candidate: Candidate, result: Spec | None = None) -> Definition:
        """Return the function as a kernel with the candidate's signature, elaborated once."""
        key = candidate.specs, candidate.facts, candidate.writes, result
        if key not in self._definitions:
            self._definitions[key] = self._defined(candidate, result)
        return self._definitions[key]

    def _defined(self, candidate: Candidate, result: Spec | None) -> Definition:
        signature = candidate.signature(self.closure.name, self.keyword_only, result)
        definition = Definition(self.closure, signature, candidate.facts)
        definition.writes = candidate.writes
        definition.most_steps = MAX_STEPS
        return definition

    def run(self, candidate: Candidate) -> TrialResult:
        """Try the first choice of a candidate."""
        definition = self.definition(candidate)
        if definition not in self._trials:
            self._trials[definition] = self.one(definition, first_choice(definition.signature))
        return self._trials[definition]

    def one(self, definition: Definition, choice: Choice) -> TrialResult:
        """Try one choice of a signature."""
        self.count += 1
        before = definition.elaborations.steps
        try:
            program = definition.instance(choice)
            return TrialResult(program, definition.warnings(choice))
        except Failure as failure:
            found = failure.diagnostics or self._internal("nothing was found")
            return TrialResult(None, found, frozenset(definition.elaborations.counters))
        except Excluded as excluded:
            return TrialResult(None, (excluded.finding,))
        except Poisoned:
            return TrialResult(None, self._internal("nothing was found"))
        except RecursionError:
            return TrialResult(None, self._internal("it is nested too deeply"))
        except Exception as error:
            return TrialResult(None, self._internal(f"{type(error).__name__}: {error}"))
        finally:
            self._count(definition, before)

    def accepts(self, candidate: Candidate, result: Spec | None = None) -> bool:
        """Return whether every choice of a candidate is a program or excluded by preconditions."""
        definition = self.definition(candidate, result)
        if definition not in self._accepted:
            accepted = self._accepts(candidate, definition, result)
            if self.exhausted:
                return accepted
            self._accepted[definition] = accepted
        return self._accepted[definition]

    def _accepts(self, candidate: Candidate, definition: Definition, result: Spec | None) -> bool:
        choices = definition.signature.choices()
        if choices is None:
            return False
        if definition.signature.combinations() > MAX_CHOICES:
            alone = [*_vary_statics(candidate)]
            return len(alone) > 1 and all(self.accepts(each, result) for each in alone)
        accepted = 0
        for choice in choices:
            if self.exhausted:
                return False
            before = definition.elaborations.steps
            try:
                definition.instance(choice)
                accepted += 1
            except Excluded:
                continue
            except Exception:
                return False
            finally:
                self.count += 1
                self._count(definition, before)
        return accepted > 0

    def _count(self, definition: Definition, before: int) -> None:
        """Count the work of one choice; none if it had been elaborated."""
        if definition.elaborations.steps > before:
            self.work += definition.elaborations.steps - before + self.nodes

    def refused(
        self,
        candidate: Candidate,
        calls: Sequence[ObservedCall] | None = None,
        *,
        lists: bool = False,
    ) -> list[ObservedCall]:
        """Return the known calls that the candidate refuses; lists are arrays, unless `lists`."""
        definition = self.definition(candidate)

        def every_value(name: str, spec: StaticSpec) -> bool:
            return is_open(spec, candidate, name)

        return [
            each
            for each in (self.calls if calls is None else calls)
            if each.arguments is not None
            and not admits(
                definition,
                each if lists else each.with_arrays(),
                self.closure.defaults,
                every_value,
            )
        ]

    def _internal(self, what: str) -> tuple[Diagnostic, ...]:
        span = self.closure.source.span(self.closure.node).head(3)
        return (InternalError(what=f"function `{self.closure.name}`: {what}", span=span),)


def fixed(candidate: Candidate) -> Candidate:
    """Only the first of each parameter's static values."""
    return with_samples(candidate, {n: (s.samples or ())[:1] for n, s in statics(candidate)})


def statics(candidate: Candidate) -> Iterator[tuple[str, StaticSpec]]:
    for name, spec in candidate.specs:
        if isinstance(spec, StaticSpec) and spec.kind != "Callable":
            yield name, spec


def with_samples(candidate: Candidate, samples: dict[str, tuple[object, ...]]) -> Candidate:
    specs: list[tuple[str, Spec]] = []
    for name, spec in candidate.specs:
        if isinstance(spec, StaticSpec) and name in samples:
            spec = replace(spec, samples=samples[name])
        specs.append((name, spec))
    return replace(candidate, specs=tuple(specs))


def first_dtypes(candidate: Candidate) -> Candidate:
    """Return the usual dtype in place of each class."""
    for old, new in ((FLOAT, "f64"), (INT, "i64"), (BOOL, "bool"), (COMPLEX, "c128")):
        candidate = retyped(candidate, old, new)
    return candidate


def _vary_statics(candidate: Candidate) -> Iterator[Candidate]:
    """Yield the candidate with its first static values, and with all values of one of them."""
    yield fixed(candidate)
    quick = first_dtypes(fixed(candidate))
    for name, spec in statics(candidate):
        if len(spec.samples or ()) > 1:
            yield with_samples(quick, {name: spec.samples or ()})


def is_open(spec: StaticSpec, candidate: Candidate, name: str) -> bool:
    """Return whether a static parameter takes every value that its preconditions admit."""
    samples = {StaticType(each) for each in spec.samples or ()}
    if spec.kind == "bool":
        return samples >= {StaticType(False), StaticType(True)}
    if spec.kind != "int":
        return False
    bounds = [
        fact.explicit_lower_bound() for fact in candidate.facts if fact.names() == frozenset({name})
    ]
    least = max((bound[1] for bound in bounds if bound is not None), default=0)
    return samples >= {StaticType(value) for value in NUMBERS if value >= least}


def usual_dtype(dtypes: DTypeClass) -> DType:
    """Return the member of a class of dtypes that NumPy makes by default."""
    return max(dtypes.usual_first()[:2], key=lambda each: each.bits)


def first_choice(signature: Signature, rank: int = 1) -> Choice:
    """Return the usual dtype of each class, one rank for each group, the first static values."""
    dtypes: dict[str, DTypeClass] = {}
    groups: dict[str, int] = {}
    statics: dict[str, StaticType] = {}
    lengths: dict[str, int] = {}
    given: dict[str, bool] = {}
    for parameter in signature.parameters:
        for where, part in walk_paths(parameter.spec, parameter.name):
            if isinstance(part, ArraySpec):
                if isinstance(part.dtype, DTypeClass):
                    dtypes[part.dtype.name] = part.dtype
                groups.update((group_name(d), rank) for d in part.dims if isinstance(d, Variadic))
            elif isinstance(part, StaticSpec) and part.samples:
                statics[where] = StaticType(part.samples[0])
            elif isinstance(part, RepeatedSpec):
                lengths[where] = 2
            elif isinstance(part, OptionalSpec):
                given[where] = True
    return Choice(
        dtypes=tuple((name, usual_dtype(each)) for name, each in dtypes.items()),
        ranks=tuple(groups.items()),
        lengths=tuple(lengths.items()),
        given=tuple(given.items()),
        statics=tuple(statics.items()),
    )


# Obstacles: findings that hold for every signature, and the one that is reported first.


_LANGUAGE = frozenset(f"PSC{number}" for number in (100, 101, 102, 106, 107))


class Firmness(IntEnum):
    """The dependence of a finding on the guessed signature."""

    GUESS = 0
    """Another signature may be free of it."""
    UNSEEN = 1
    """The code behind it cannot be seen, for any signature."""
    FIRM = 2
    """It prevents every signature."""


def firmness(finding: Diagnostic) -> Firmness:
    """Return the dependence of a finding on the guessed signature."""
    if isinstance(finding, Mutation) and finding.parameter:
        return Firmness.GUESS  # it can be declared
    if finding.code.startswith("PSC2") or finding.code in _LANGUAGE:
        return Firmness.FIRM
    if finding.code.startswith("PSC9") or finding.code == "PSC108":
        return Firmness.UNSEEN
    return Firmness.GUESS


class Branches:
    """The parts of a function that run for some arguments only."""

    def __init__(self, source: Source, function: ast.AST) -> None:
        self.function = function
        self.spans = [source.span(each) for each in _branches(function)]

    def hold(self, finding: Diagnostic) -> bool:
        """Return whether a finding, or the call that led to it, is in a branch."""
        return any(
            _is_within(frame, span) for frame in finding.span.frames() for span in self.spans
        )


def _branches(function: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.While):
            yield from (*node.body, *node.orelse)
        elif isinstance(node, ast.IfExp):
            yield from (node.body, node.orelse)
        elif isinstance(node, ast.BoolOp):
            yield from node.values[1:]


def _is_within(span: Span, other: Span) -> bool:
    return (
        span.path == other.path
        and (other.line, other.column) <= (span.line, span.column)
        and (span.line, span.column) < (other.end_line, other.end_column)
    )


class Progress:
    """The progress of trials: those that come further are continued first."""

    def __init__(self, function: ast.AST) -> None:
        self.lines = sorted({e.lineno for e in ast.walk(function) if isinstance(e, ast.stmt)})

    def before(self, errors: Sequence[Diagnostic]) -> int:
        """Return the number of the function's statements before its first error."""
        return bisect_left(self.lines, min((place(each)[0] for each in errors), default=0))


def standing(found: Sequence[Sequence[Diagnostic]]) -> list[Diagnostic]:
    """Return the findings that every attempt had and no signature avoids, the firmest first."""
    if not found:
        return []
    common = {(each.code, each.span) for each in found[0]}
    for findings in found[1:]:
        common &= {(finding.code, finding.span) for finding in findings}
    kept = [d for d in found[0] if (d.code, d.span) in common and firmness(d)]
    return sorted(kept, key=lambda d: (-firmness(d), place(d)))


def place(finding: Diagnostic) -> tuple[int, int]:
    """Return the position of a finding in the function itself, to sort findings."""
    outermost = finding.span.frames()[-1]
    return outermost.line, outermost.column


# The parameters that a finding concerns: by their sizes, their places, or its names.


_NAME = re.compile(r"[A-Za-z_]\w*")
MAX_PASSES = 3


class Blame:
    """The dependence of a function's local names on its parameters, as far as the text shows it."""

    def __init__(
        self,
        source: Source,
        function: FunctionStatement,
        names: tuple[str, ...],
        objects: Mapping[str, set[str]] = MappingProxyType({}),
    ) -> None:
        self.names = names
        self.origins = {source.span(each): each.arg for each in _parameters(function)}
        self.statements = [
            (source.span(node), node) for node in ast.walk(function) if isinstance(node, ast.stmt)
        ]
        self.flows: dict[str, set[str]] = {**objects, **{name: {name} for name in names}}
        for _ in range(MAX_PASSES):  # loops carry what they assign
            for statement in function.body:
                self._follow(statement)

    def _follow(self, node: ast.stmt) -> None:
        if isinstance(node, ast.For | ast.While | ast.If | ast.With | ast.Try):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.stmt):
                    self._follow(child)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.For):
            value = node.iter if isinstance(node, ast.For) else node.value
            found = self._of(value) if value is not None else set[str]()
            nodes = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in {name for each in nodes for name in targets(each)}:
                if name not in self.names:
                    self.flows.setdefault(name, set()).update(found)

    def _of(self, node: ast.AST) -> set[str]:
        """Return the parameters that an expression depends on."""
        name = dotted(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        if name in self.flows:
            return self.flows[name]
        return set[str]().union(*map(self._of, ast.iter_child_nodes(node)))

    def of(self, finding: Diagnostic) -> list[str]:
        """Return the parameters in question, in order; all of them without evidence."""
        texts = f"{finding.message()} {finding.label()} {finding.help() or ''}"
        found = {owner(word) for word in _NAME.findall(texts)}
        found |= {
            self.origins[label.span] for label in finding.labels if label.span in self.origins
        }
        found &= set(self.names)
        near = self._near(finding)
        blamed = [name for name in self.names if name in found]
        return blamed + [name for name in self.names if name in near and name not in found]

    def _near(self, finding: Diagnostic) -> set[str]:
        """Return the parameters on which the statement of a finding depends."""
        frame = finding.span.frames()[-1]
        holding = [
            (span.end_line - span.line, node)
            for span, node in self.statements
            if span.path == frame.path and span.line <= frame.line <= span.end_line
        ]
        if not holding:
            return set(self.names)
        _, statement = min(holding, key=lambda each: each[0])
        if isinstance(statement, ast.If | ast.While):
            return self._of(statement.test) or set(self.names)
        return self._of(statement) or set(self.names)


def _parameters(function: FunctionStatement) -> list[ast.arg]:
    spec = function.args
    return [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]


# The demands of a finding for sizes: facts that would have avoided it.
#
# Findings state them in words that are promises to users: the `assert` to add, and `n is not m`.


_ASSERT = re.compile(r"`assert ([^`]+)`")
_IS_NOT = re.compile(r"(?:^|: )([^:]+?) is not ([^:]+?)(?=$|, for instance|,? \()")
_ARRAY = re.compile(r"an array of type \w+\[(\S+)[^\]]*\]")


def demands(finding: Diagnostic) -> Iterator[Fact]:
    """Yield facts, each of which may avoid the finding; equalities first."""
    seen: set[Fact] = set()
    direct = [*_equalities(finding), *_assertions(finding)]
    if isinstance(finding, ImpossibleReshape):
        wanted = [size for size in finding.wanted if size != 1]
        if len(wanted) == len(finding.given.shape):  # it may have this shape already
            pairs = zip(finding.given.shape, wanted, strict=True)
            direct = [*(Fact("==", *pair) for pair in pairs), *direct]
    if isinstance(finding, ShapesDoNotBroadcast):
        sizes = [size for fact in direct for size in (fact.left, fact.right)]
        stretched = [Fact("==", size, 1) for size in sizes if isinstance(size, Dim)]
        direct += [sufficient_bound(Assumptions(), [each]) or each for each in stretched]
    for fact in [simpler for each in direct for simpler in (*_divisible(each), each)]:
        if fact not in seen and fact.names():
            seen.add(fact)
            yield fact


def _equalities(finding: Diagnostic) -> Iterator[Fact]:
    if isinstance(finding, LoopLengthsDiffer):
        lengths = [size for text in finding.lengths if (size := _size(text)) is not None]
        yield from (Fact("==", lengths[0], other) for other in lengths[1:])
    for text in (finding.label(), finding.message()):
        for found in _IS_NOT.finditer(text):
            left, right = _size(found[1]), _size(found[2])
            if left is not None and right is not None:
                yield Fact("==", left, right)
    if isinstance(finding, WrongUnpacking):
        array = _ARRAY.search(finding.found)
        size = _size(array[1]) if array else None
        if size is not None:
            yield Fact("==", size, finding.expected)


def _assertions(finding: Diagnostic) -> Iterator[Fact]:
    for found in _ASSERT.finditer(finding.help() or ""):
        try:
            facts = parse_fact(found[1])
        except DimSyntaxError:
            continue
        yield from facts
        if isinstance(finding, UndecidedCondition):
            yield from (fact.negated() for fact in facts)


def _divisible(fact: Fact) -> Iterator[Fact]:
    """Yield the divisibility facts that would make an equation of quotients exact."""
    if fact.relation != "==":
        return
    for size in (fact.left, fact.right):
        for monomial, _ in as_terms(size):
            for factor in monomial:
                if factor.kind == "//":
                    yield Fact("==", factor.args[0] % factor.args[1], 0)


def _size(text: str) -> Size | None:
    try:
        return parse(text.strip())
    except DimSyntaxError:
        return None


MAX_TRIALS = 64
"""Candidates that are tried for one function."""
MAX_STALE = 24
"""Trials after the one that came furthest in the function."""
MAX_LOOPS = 8
"""The most loops with counters of the same names that a demand may concern."""
MAX_TRIALS_BLOCKED = 8
"""Candidates that are tried once an obstacle was found that is only in a branch."""

_WANTS_STATIC = frozenset(
    f"PSC{number}" for number in (103, 108, 109, 110, 112, 113, 116, 120, 121, 122, 123, 317)
)
_WANTS_TUPLE = frozenset({"PSC113", "PSC122", "PSC109"})


@dataclass
class SignatureSearch:
    """The results of the search for one function."""

    accepted: Candidate | None = None
    trial: TrialResult | None = None
    failed: list[tuple[Candidate, TrialResult]] = field(
        default_factory=list[tuple[Candidate, TrialResult]]
    )
    blocked: tuple[Diagnostic, ...] = ()
    """Obstacles outside of branches that no signature avoids."""
    unsuited: int = 0
    """The number of known calls that the accepted candidate refuses."""

    def note(self, candidate: Candidate, trial: TrialResult, unsuited: int) -> None:
        """Take a candidate that has no errors, if it refuses fewer calls than the one before."""
        if self.accepted is None or unsuited < self.unsuited:
            self.accepted, self.trial, self.unsuited = candidate, trial, unsuited


def search(
    trials: Trials,
    options: Mapping[str, Sequence[Alternative]],
    blame: Blame,
    branches: Branches,
    limit: int = MAX_TRIALS,
    preconditions: bool = True,
    suits: Callable[[Candidate], bool] = lambda candidate: True,
    same: Iterable[Fact] = (),
) -> SignatureSearch:
    """Return the cheapest candidate that is accepted and that suits, or the trials that failed.

    Where none takes all known calls, the one that refuses the fewest is accepted, if it takes some.
    """
    found = SignatureSearch()
    calls = sum(each.arguments is not None for each in trials.calls)
    start = Candidate(
        tuple((name, each[0].spec) for name, each in options.items()), (), (0,) * len(options)
    )
    for fact in same:
        start = start.requiring(fact) or start
    order = count()
    steps = Progress(branches.function)
    furthest, last = -1, 0
    queue = [(0, next(order), start)]
    seen = {start}
    while queue and len(found.failed) < min(limit, last + MAX_STALE) and not trials.exhausted:
        _, _, candidate = heapq.heappop(queue)
        trial = trials.run(candidate)
        if trial.program is not None and suits(candidate):
            unsuited = len(trials.refused(candidate))
            if unsuited < max(calls, 1):
                found.note(candidate, trial, unsuited)
            if not unsuited:
                return found
        found.failed.append((candidate, trial))
        ahead = steps.before(trial.errors)
        if ahead > furthest:
            furthest, last = ahead, len(found.failed)
        if trial.program is not None:
            for name, _ in candidate.specs:
                for successor in _other_kinds(candidate, name, options[name]):
                    if successor not in seen:
                        seen.add(successor)
                        heapq.heappush(queue, (successor.cost, next(order), successor))
            continue
        blocking = [error for error in trial.errors if firmness(error)]
        found.blocked = tuple(each for each in blocking if not branches.hold(each))
        if found.blocked:
            return found
        if blocking:
            limit = min(limit, MAX_TRIALS_BLOCKED)
        for successor in _successors(candidate, trial, options, blame):
            if successor not in seen and (preconditions or not successor.facts):
                seen.add(successor)
                heapq.heappush(queue, (successor.cost - ahead, next(order), successor))
    return found


def _successors(
    candidate: Candidate,
    trial: TrialResult,
    options: Mapping[str, Sequence[Alternative]],
    blame: Blame,
) -> Iterator[Candidate]:
    """Yield the candidates that may avoid the first error, or all stores into parameters."""
    errors = trial.errors
    stored = {each.parameter for each in errors if isinstance(each, Mutation) and each.parameter}
    if stored - candidate.stored:
        yield replace(candidate, stored=candidate.stored | stored)
        return
    guesses = [error for error in errors if firmness(error) is Firmness.GUESS]
    yield from _all_bounds(candidate, guesses)
    for first in (guesses or list(errors))[:1]:
        for fact in demands(first):
            several = [*_in_terms_of_statics(candidate, fact)]
            if not fact.names() <= candidate.named():  # it is about the counter of a loop
                several = []
            several = [each for each in several if not _leaves_nothing(candidate, each)]
            for each in several:
                changed = candidate.requiring(each)
                if changed is not None and _consistent(changed):
                    extra = 0 if each is not fact or each.relation == "==" else 1
                    extra += 2 * (fact.right == 1)  # an axis of size 1 is rarely meant
                    if each is fact and len(several) > 1 and isinstance(fact.right, int):
                        extra += 2  # a parameter says it, too
                    yield replace(changed, cost=changed.cost + extra)
            for same in _identify_sizes(candidate, fact, trial.counters):
                changed = candidate.requiring(same)
                if changed is not None and _consistent(changed):
                    between_two = all(str(size).isidentifier() for size in (fact.left, fact.right))
                    extra = 0 if fact.relation == "==" or between_two else 3
                    yield replace(changed, cost=changed.cost + _strangeness(same) + extra)
        for name in blame.of(first):
            yield from _other_kinds(candidate, name, options[name], first)
        if first.code.startswith("PSC4"):
            words = f"{first.message()} {first.label()}"
            if any(dtype in words for dtype in ("f64", "c128", "i32", "f32")):
                wide = retyped(candidate, FLOAT, "f64", cost=2)
                yield retyped(wide, COMPLEX, "c128")


def _leaves_nothing(candidate: Candidate, fact: Fact) -> bool:
    """Return whether a demand bounds an array above by a parameter, so that loops have no step."""
    statics = candidate.statics()
    return (
        fact.relation != "=="
        and isinstance(fact.left, Dim)
        and not names(fact.left) & statics
        and (isinstance(fact.right, int) or names(fact.right) <= statics)
    )


def _all_bounds(candidate: Candidate, errors: Sequence[Diagnostic]) -> Iterator[Candidate]:
    """Yield the candidate with the bounds of sizes that several errors ask for."""
    changed, count = candidate, 0
    for error in errors:
        fact = next(demands(error), None)
        if fact is not None and fact.relation == "<=" and fact.names() <= candidate.named():
            changed, count = changed.requiring(fact) or changed, count + 1
    if count > 1 and _consistent(changed):
        yield replace(changed, cost=candidate.cost + 1)


def _identify_sizes(
    candidate: Candidate, fact: Fact, counters: frozenset[Counter]
) -> Iterator[Fact]:
    """Yield the equations of two sizes of parameters, from any of which a demand follows.

    The ends of a loop imply a demand for its counter.
    """
    sizes = [name for name in candidate.sizes() if name not in candidate.statics()]
    known = [(*candidate.facts, *facts) for facts in _counter_facts(fact, counters)]
    for name in sizes:
        if name not in fact.names():
            continue
        for other in sizes:
            env: dict[str, Size] = {name: variable(other)}
            demand = fact.substitute(env)
            if other != name and any(
                Assumptions(tuple([each.substitute(env) for each in facts])).proves(demand)
                for facts in known
            ):
                yield Fact("==", variable(name), variable(other))


def _strangeness(same: Fact) -> int:
    """Return how much less likely an equality is than that of two arrays of one shape."""
    (one, _, first), (other, _, second) = (
        str(size).rpartition("__") for size in (same.left, same.right)
    )
    return (one == other) + (first != second)


def _counter_facts(fact: Fact, counters: frozenset[Counter]) -> Iterator[tuple[Fact, ...]]:
    """Yield the possible facts about a demand's counters, by their names in messages."""
    loops: dict[str, dict[tuple[Fact, ...], None]] = {}
    for each in sorted(counters, key=lambda each: each.name):
        facts = each.facts()
        shown = {n: variable(plainly(n)) for known in facts for n in known.names()}
        known = tuple([known.substitute(shown) for known in facts])
        loops.setdefault(plainly(each.name), {})[known] = None
    named, found = set[str](), set(fact.names())
    while found - named:  # a counter may go as far as another one
        named |= found
        for name in named & loops.keys():
            found.update(*(each.names() for known in loops[name] for each in known))
    alternatives = [loops[name] for name in sorted(named & loops.keys())]
    for chosen in islice(product(*alternatives), MAX_LOOPS):
        yield tuple(chain.from_iterable(chosen))


def _in_terms_of_statics(candidate: Candidate, fact: Fact) -> Iterator[Fact]:
    """Yield a demand with a static integer in place of the number that it has in this trial."""
    values: dict[str, int] = {}
    for name, spec in candidate.specs:
        value = spec.samples[0] if isinstance(spec, StaticSpec) and spec.samples else None
        if type(value) is not int or abs(value) < 2:
            continue
        values[name] = value
        left, right = (generalised(s, value, name) for s in (fact.left, fact.right))
        if left is not fact.left or right is not fact.right:
            yield Fact(fact.relation, left, right)
    for one, other in combinations(values.items(), 2):  # `x.reshape(a, b)` asks for a * b
        both = variable(one[0]) * variable(other[0])
        right = with_coefficient(fact.right, one[1] * other[1], both)
        if right is not fact.right and fact.relation == "==":
            yield Fact("==", fact.left, right)
    yield fact


def _consistent(candidate: Candidate) -> bool:
    return Assumptions(candidate.facts).consistent() is not Verdict.NO


def _other_kinds(
    candidate: Candidate,
    name: str,
    options: Sequence[Alternative],
    finding: Diagnostic | None = None,
) -> Iterator[Candidate]:
    """Yield the next alternative of each kind for a parameter."""
    code = "" if finding is None else finding.code
    index = [each for each, _ in candidate.specs].index(name)
    position = candidate.positions[index]
    current = options[position]
    wanted = {"array", "none", "declared"}
    if not code or code in _WANTS_STATIC or current.kind == "static":
        wanted.add("static")
    if code == "PSC111" or current.kind == "function":
        wanted.add("function")
    if not code or code in _WANTS_TUPLE or current.kind == "tuple":
        wanted.add("tuple")
    if not code or code.startswith("PSC4") or code in ("PSC321", "PSC314", "PSC110"):
        wanted.add("dtype")
    higher = _next_higher(current.spec, options)
    for other, option in enumerate(options):
        if other == position or (option.kind not in wanted and other != higher):
            continue
        if option.kind == "dtype" and not _same_rank(option.spec, current.spec):
            continue
        if option.kind == "array" and option.spec == current.spec:
            continue
        wanted.discard(option.kind) if option.kind != "dtype" and other > position else None
        step = max(option.cost - current.cost, 0)
        yield candidate.with_spec(name, option.spec, other, 2 + step)


def _next_higher(current: Spec, options: Sequence[Alternative]) -> int | None:
    """Return the first alternative that is an array with more axes than one."""
    for index, option in enumerate(options):
        if option.kind == "array" and isinstance(option.spec, ArraySpec):
            if isinstance(current, ArraySpec) and len(option.spec.dims) > len(current.dims):
                return index
    return None


def _same_rank(one: Spec, other: Spec) -> bool:
    return (
        isinstance(one, ArraySpec)
        and isinstance(other, ArraySpec)
        and len(one.dims) == len(other.dims)
    )


def retyped(candidate: Candidate, old: str, new: str, cost: int = 0) -> Candidate:
    """Another dtype in place of a class, in every parameter."""

    def changed(spec: ArraySpec) -> ArraySpec:
        meant = isinstance(spec.dtype, DTypeClass) and spec.dtype.name == old
        return array(new, *spec.dims) if meant else spec

    specs = tuple((name, map_arrays(spec, changed)) for name, spec in candidate.specs)
    return replace(candidate, specs=specs, cost=candidate.cost + cost)
