"""Types of JAX functions without annotations: the search for a signature that has a program.

A function is proven if it has a program for one typing, for every size in it.  No finding follows
from a typing that was guessed.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from pscdsl._src.checker.check import deep_stack, quiet
from pscdsl._src.checker.jax_functions import cause
from pscdsl._src.checker.results import CheckResult
from pscdsl._src.dialects.jax.definitions import JaxDefinition
from pscdsl._src.dialects.jax.unknown import Inferred
from pscdsl._src.discover.candidates import Alternative, Candidate, Hint
from pscdsl._src.discover.jax_classes import (
    Unfit,
    class_of,
    is_abstract,
    is_leaf,
    method_of,
    traced_parameters,
)
from pscdsl._src.discover.jax_parameters import Opaque, Parameters
from pscdsl._src.discover.report import named
from pscdsl._src.discover.search import (
    MAX_STEPS,
    Blame,
    Branches,
    SignatureSearch,
    Trials,
    first_choice,
    place,
    search,
)
from pscdsl._src.discover.usage import FunctionStatement, Usage
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.interpreter.frames import Session
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.places import load
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.jax_annotations import in_dialect
from pscdsl._src.frontend.modules.scope import Project, StaticModule
from pscdsl._src.frontend.purity import external_call, parts
from pscdsl._src.frontend.text.source import named_parameters
from pscdsl._src.frontend.values import (
    AnyValue,
    Applicable,
    External,
    Place,
    Poisoned,
    RecordValue,
    is_traced,
)
from pscdsl._src.support.clock import thread_time
from pscdsl.typing.array_types import TupleType, static_text
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.language import NoSuchAttribute
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.signatures import Choice, Parameter, RecordSpec, Signature, Spec, StaticSpec

SECONDS: Final = 1
"""The processor time for one function."""
MOST_FUNCTIONS: Final = 200
"""The number of functions of a file that may use up their time before its search ends."""
MAX_RETURNED: Final = 8
"""Functions in a result that are tried."""


class TypedFunction(JaxDefinition):
    """A JAX function under a signature that its text does not declare.

    Functions in its result are called, each with parameters of its own.
    """

    def __init__(self, trials: _Trials, signature: Signature, facts: Sequence[Fact]) -> None:
        super().__init__(trials.closure)
        self.own = trials.own
        self.returned = trials.called
        """The functions in its result, whose parameters are behind its own."""
        self._trials = trials
        self._given_facts = tuple(facts)
        parameters = (
            replace(x, spec=in_dialect(x.spec, self.promotion)) for x in signature.parameters
        )
        self._signature = replace(signature, parameters=tuple(parameters))

    @property
    def choice(self) -> Choice:
        """The choice that is tried."""
        return first_choice(self.signature)

    def _run(self, session: Session, arguments: dict[str, Place]) -> AnyValue:
        spec = self.closure.node.args
        given = [*arguments.items()]
        own = dict(given[: len(self.own.names)])
        if self.own.makes is not None:
            return _fields(session, self.own.makes, own)
        own |= _open(spec)
        result = super()._run(session, own)
        if self.outside:  # what other libraries return is no proof here
            raise Failure(external_call(next(iter(self.outside))))
        returned = [*_functions_in(result)]
        if not returned:
            return result
        self._trials.returned = returned
        if [each.node for each in returned] != [each.closure.node for each in self.returned]:
            return None
        results: list[AnyValue] = []
        rest = iter([value for _, value in given[len(self.own.names) :]])
        assert session.program is not None
        for closure, parameters in zip(returned, self.returned, strict=True):
            names = {name: next(rest) for name in parameters.names}
            names |= _open(closure.node.args)
            results.append(load(closure.enter(session, names)))
        return tuple(results)


def _open(spec: ast.arguments) -> dict[str, Place]:
    """Return no arguments for `*args` and `**kwargs`."""
    found: dict[str, Place] = {}
    if spec.vararg is not None:
        found[spec.vararg.arg] = ()
    if spec.kwarg is not None:
        found[spec.kwarg.arg] = {}
    return found


def _fields(session: Session, cls: RecordClass, arguments: Mapping[str, Place]) -> AnyValue:
    """Return the arrays that a new instance has."""
    assert session.program is not None
    given = {name: load(value) for name, value in arguments.items()}
    made = cls.apply(session.program.current, (), given)
    assert isinstance(made, RecordValue)
    return {name: value for name, value in made.fields.items() if is_traced(value)}


def _functions_in(value: AnyValue) -> Iterator[Closure]:
    """Yield the functions in a result that are written in Python."""
    if isinstance(value, Closure):
        yield value
        return
    for part in parts(value):
        yield from _functions_in(part)


class _Trials(Trials):
    """The trials of a JAX function; `called` are functions in its result."""

    def __init__(
        self, own: Parameters, called: Sequence[Parameters], deadline: float, sizes: list[str]
    ) -> None:
        super().__init__(own.closure, (), deadline, sizes)
        self.own = own
        self.called = called
        self.returned: Sequence[Closure] = ()
        """The functions in the result of the last trial."""

    def signature(self, candidate: Candidate) -> Signature:
        """Return the signature of a candidate, with the parameters of returned functions."""
        specs = dict(candidate.specs)
        parameters: list[Parameter] = []
        for each in (self.own, *self.called):
            own = {name.removeprefix(each.prefix): spec for name, spec in specs.items()}
            for name in each.names:
                spec = each.objects[name].spec(own) if name in each.objects else own[name]
                parameters.append(Parameter(each.prefix + name, spec))
        return Signature(self.closure.name, tuple(parameters), None)

    def defined(self, candidate: Candidate) -> TypedFunction:
        """Return the function under a candidate."""
        made = TypedFunction(self, self.signature(candidate), candidate.facts)
        made.most_steps = MAX_STEPS
        return made

    def _defined(self, candidate: Candidate, result: Spec | None) -> Definition:
        return self.defined(candidate)


def completed(result: CheckResult, project: Project, path: str, seconds: float) -> CheckResult:
    """Return the result of a file's check with the typings of its functions.

    Those with annotations that decided about them are left out.
    """
    try:
        module = project.at(path)
    except Failure:
        return result  # which says so
    if not module.is_jax:
        return result
    decided = {(each.path, each.line) for each in result.annotated if not each.unknown}
    end = thread_time() + MOST_FUNCTIONS * seconds
    return replace(result, inferred=tuple(inferred_functions(module, seconds, end, decided)))


def inferred_functions(
    module: StaticModule,
    seconds: float = SECONDS,
    end: float = float("inf"),
    decided: Container[tuple[str, int]] = (),
) -> Iterator[Inferred]:
    """Yield the functions and methods of a JAX file, each with the typing that was found.

    Functions at the places that are `decided` are left out. Nothing is tried after the `end`.
    """
    for name, node, cls in functions_of(module.source.tree):
        span = module.source.span(node)
        if (span.path, span.line) in decided:
            continue
        typing, unknown = "", ""
        if thread_time() > end:
            unknown = "the time for all functions was over"
            yield Inferred(span.path, span.line, span.column, name, typing, unknown)
            continue
        with deep_stack(), quiet():
            try:
                typing = shown(typed_function(module, node, cls, seconds))
            except Failure as failure:
                unknown = cause(failure.diagnostics[0])
            except Poisoned:
                unknown = "what it uses is not known"
            except Unfit as unfit:
                unknown = str(unfit)
            except Exception as error:  # one function of ours to fix; the others go on
                unknown = f"internal error: {type(error).__name__}: {error}"
        yield Inferred(span.path, span.line, span.column, name, typing and name + typing, unknown)


def functions_of(
    tree: ast.Module,
) -> Iterator[tuple[str, FunctionStatement, ast.ClassDef | None]]:
    """Yield the functions and methods of a module, without abstract ones."""
    for node in tree.body:
        if isinstance(node, FunctionStatement):
            yield node.name, node, None
        elif isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, FunctionStatement) and not is_abstract(each):
                    yield f"{node.name}.{each.name}", each, node


def typed_function(
    module: StaticModule, node: FunctionStatement, cls: ast.ClassDef | None, seconds: float
) -> TypedFunction:
    """Return a function with types that are found; raise `Unfit` if there are none."""
    if isinstance(node, ast.AsyncFunctionDef):
        raise Unfit("it is a coroutine")
    if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node)):
        raise Unfit("it is a generator")
    owner = None if cls is None else class_of(module, cls)
    kind, closure = method_of(module, node, owner)
    traced = traced_parameters(module, node)
    own = {each.arg for each in named_parameters(node)[:1]}
    if kind == "method" and cls is not None and own & traced and is_leaf(module, cls):
        raise Unfit(f"`jax.jit` takes no instance of `{cls.name}`")
    return _Inference(Parameters(closure, owner, kind, traced=traced), seconds).found()


class _Inference:
    """The search for the types of one function."""

    def __init__(self, own: Parameters, seconds: float) -> None:
        self.own = own
        self.called: list[Parameters] = []
        self.deadline = thread_time() + seconds

    def found(self) -> TypedFunction:
        """Return the function with the types that were found; raise `Unfit` if there are none."""
        while True:
            trials = self._trials()
            found = self._searched(trials)
            if found.accepted is None:
                if trials.exhausted or not self._extended(found):
                    raise Unfit(_obstacle(found, trials))
            elif len(trials.returned) > MAX_RETURNED:
                raise Unfit("its result holds many functions")
            elif [x.node for x in trials.returned] == [x.closure.node for x in self.called]:
                return self._named(trials, found.accepted)
            else:
                self.called = [
                    Parameters(each, prefix=f"{each.name.strip('<>')}_{at}__")
                    for at, each in enumerate(trials.returned)
                ]

    def _every(self) -> list[Parameters]:
        return [self.own, *self.called]

    def _trials(self) -> _Trials:
        used = chain.from_iterable(each.all_usages().items() for each in self._every())
        sizes = [name for name, usage in used if usage.static]
        return _Trials(self.own, self.called, self.deadline, sizes)

    def _searched(self, trials: _Trials) -> SignatureSearch:
        node, source = self.own.closure.node, self.own.closure.source
        assert isinstance(node, ast.FunctionDef)
        origins: dict[str, set[str]] = {}
        options: dict[str, Sequence[Alternative]] = {}
        for each in self._every():
            for name, stands_for in each.origins().items():
                origins[name] = origins.get(name, set()) | stands_for
            options.update(each.options(len(options)))
        blame = Blame(source, node, tuple(options), origins)
        return search(trials, options, blame, Branches(source, node))

    def _extended(self, found: SignatureSearch) -> bool:
        """Add the attributes that trials ask for; return whether there is any."""
        errors = chain.from_iterable(trial.errors for _, trial in found.failed)
        asked = {(x.owner, x.attribute) for x in errors if isinstance(x, NoSuchAttribute)}
        return any([each.extend(*pair) for pair in sorted(asked) for each in self._every()])

    def _named(self, trials: _Trials, accepted: Candidate) -> TypedFunction:
        """Return the function as accepted, with readable names of sizes."""
        usages: dict[str, Usage] = {}
        hints: dict[str, Hint] = {}
        for each in self._every():
            usages |= each.all_usages()
            hints |= each.all_hints()
        made = trials.defined(named(accepted, usages, hints))
        made.instance(made.choice)
        return made


def shown(function: TypedFunction) -> str:
    """Return the parameters and the result."""
    signature, made = function.signature, function.instance(function.choice).result
    own, called = len(function.own.names), function.returned
    result = str(made)
    if called and isinstance(made, TupleType):
        rest, texts = [*signature.parameters[own:]], []
        for each, part in zip(called, made.items, strict=True):
            mine, rest = rest[: len(each.names)], rest[len(each.names) :]
            texts.append(f"{each.closure.name}({_listed(mine, each.prefix)}) -> {part}")
        result = ", ".join(texts)
    return f"({_listed(signature.parameters[:own])}) -> {result}"


def _listed(parameters: Sequence[Parameter], prefix: str = "") -> str:
    return ", ".join(f"{x.name.removeprefix(prefix)}: {_shown(x.spec)}" for x in parameters)


def _shown(spec: Spec) -> str:
    """Return a type; of static values, the value that was tried."""
    if isinstance(spec, RecordSpec):
        inner = ", ".join(f"{name}: {_shown(part)}" for name, part in spec.fields)
        return f"{spec.record.name}({inner})"
    if isinstance(spec, StaticSpec) and spec.samples:
        value = spec.samples[0]
        if isinstance(value, Dim):
            return "int"
        if isinstance(value, Opaque | External):
            return "Any"
        if isinstance(value, Applicable):
            return "Callable"
        return static_text(value)
    return str(spec)


def _obstacle(found: SignatureSearch, trials: Trials) -> str:
    """Return the first finding of the trial that came furthest."""
    if found.blocked:
        return cause(found.blocked[0])
    if trials.exhausted or not found.failed:
        return "no types were found in time"
    known = [each for each in found.failed if not _is_opaque(each[0])] or found.failed
    _, best = max(known, key=lambda x: (min(map(place, x[1].errors), default=(0, 0)), -x[0].cost))
    return cause(best.errors[0]) if best.errors else "no types were found"


def _is_opaque(candidate: Candidate) -> bool:
    """Return whether a candidate has values of which nothing is known."""
    return any(
        isinstance(spec, StaticSpec) and any(isinstance(x, Opaque) for x in spec.samples or ())
        for _, spec in candidate.specs
    )
