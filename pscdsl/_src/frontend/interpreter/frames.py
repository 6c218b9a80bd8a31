"""The state of an elaboration: the session, a frame for each function, a ledger of evaluations."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from pscdsl._src.frontend.interpreter.places import Cell, Change, Ref, load
from pscdsl._src.frontend.modules.jax_programs import outside_packages
from pscdsl._src.frontend.text.source import DIRECTIVE, FunctionNode, Source
from pscdsl._src.frontend.values import POISON, AnyValue, Atomic, Poisoned, is_traced, require_small
from pscdsl._src.ir.builder import Builder, Program, Value
from pscdsl.typing.assumptions import Verdict
from pscdsl.typing.codes.element_types import DtypesDiffer
from pscdsl.typing.codes.language import NotStatic, UnknownName, Unsupported
from pscdsl.typing.codes.language_evaluation import (
    TooLarge,
    TooManySteps,
    UnboundedRecursion,
)
from pscdsl.typing.codes.limits import InternalError, NotSupported, TooManyFindings
from pscdsl.typing.codes.shapes import ShapesDoNotBroadcast
from pscdsl.typing.codes.shapes_of_arguments import InnerSizesDiffer
from pscdsl.typing.diagnostics import Diagnostic, Failure, Span

if TYPE_CHECKING:
    from pscdsl._src.frontend.captures.captured import Guard
    from pscdsl._src.frontend.interpreter.branches import Outcome
    from pscdsl._src.frontend.interpreter.carries import Learnt
    from pscdsl._src.frontend.interpreter.containers import Container, Traversal
    from pscdsl._src.frontend.interpreter.functions import Closure
    from pscdsl._src.frontend.values import AnyValue, Place
    from pscdsl._src.ir.program import Atom
    from pscdsl.typing.signatures import Spec

T = TypeVar("T", bound="Place")

Binding: TypeAlias = "Place | Unjoined"
"""Anything that a name may be bound to."""
Handler: TypeAlias = "Callable[..., Binding | Outcome]"
"""A function that evaluates or executes a node, given the fields of the node by name."""


# The expressions that CPython evaluates, in order, whenever it executes a node.
#
# Expressions that are evaluated only on a condition (the rest of `and`, a branch, the element of a
# comprehension, the message of an `assert`) are excluded: they are due when that condition is
# taken. Nothing is due in `raise`: it leaves the kernel, and its exception is never seen.

Part = ast.expr | None


def due(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the direct subexpressions of a node that are evaluated whenever it is executed."""
    for each in _parts(node):
        if isinstance(each, ast.Starred):
            yield each.value
        elif each is not None:
            yield each


def _parts(node: ast.AST) -> Iterable[Part]:
    match node:
        case ast.Constant() | ast.Name():
            return ()
        case ast.Attribute() | ast.UnaryOp() | ast.NamedExpr() | ast.Starred() | ast.Await():
            return (node.operand if isinstance(node, ast.UnaryOp) else node.value,)
        case ast.BinOp():
            return (node.left, node.right)
        case ast.BoolOp():
            return (node.values[0],)
        case ast.Compare():
            return (node.left, node.comparators[0])
        case ast.Call():
            return (node.func, *node.args, *(keyword.value for keyword in node.keywords))
        case ast.IfExp():
            return (node.test,)
        case ast.Subscript():
            return (node.value, node.slice)
        case ast.Slice():
            return (node.lower, node.upper, node.step)
        case ast.Tuple() | ast.List() | ast.Set():
            return node.elts
        case ast.Dict():
            return [each for item in zip(node.keys, node.values, strict=True) for each in item]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return (node.generators[0].iter,)
        case ast.JoinedStr():
            braces = [value for value in node.values if isinstance(value, ast.FormattedValue)]
            return [part for each in braces for part in (each.value, each.format_spec)]
        case ast.Lambda():
            return _defaults(node.args)
        case _:
            return _of_statement(node)


def _of_statement(node: ast.AST) -> Iterable[Part]:
    match node:
        case ast.Assign():
            return (node.value, *_of_targets(node.targets))
        case ast.AnnAssign():
            return (node.value, *_of_targets([node.target]))
        case ast.AugAssign():
            return (*_of_targets([node.target]), node.value)
        case ast.Expr():  # a constant is not even compiled
            return () if isinstance(node.value, ast.Constant) else (node.value,)
        case ast.Return():
            return (node.value,)
        case ast.If() | ast.While() | ast.Assert():
            return (node.test,)
        case ast.For():
            return (node.iter,)
        case ast.Match():
            return (node.subject,)
        case ast.With():
            return [item.context_expr for item in node.items]
        case ast.FunctionDef():
            return (*node.decorator_list, *_defaults(node.args))
        case ast.Delete():
            return _of_targets(node.targets)
        case (
            ast.Raise()
            | ast.Import()
            | ast.ImportFrom()
            | ast.Pass()
            | ast.Break()
            | ast.Continue()
            | ast.Global()
            | ast.Nonlocal()
            | ast.Try()
        ):
            return ()
        case _:
            raise NotImplementedError(type(node).__name__)


def _defaults(spec: ast.arguments) -> Iterable[Part]:
    return (*spec.defaults, *spec.kw_defaults)


def _of_targets(nodes: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """Yield the expressions that are evaluated to find the targets of a store or a deletion."""
    for node in nodes:
        match node:
            case ast.Attribute():
                yield node.value
            case ast.Subscript():
                yield from (node.value, node.slice)
            case ast.Tuple() | ast.List():
                yield from _of_targets(node.elts)
            case ast.Starred():
                yield from _of_targets([node.value])
            case _:
                pass


def evaluated_annotations(node: ast.FunctionDef) -> Iterator[ast.expr]:
    """Yield the annotations of a function, which its definition evaluates unless postponed."""
    spec = node.args
    parameters = (*spec.posonlyargs, *spec.args, spec.vararg, *spec.kwonlyargs, spec.kwarg)
    for parameter in parameters:
        if parameter is not None and parameter.annotation is not None:
            yield parameter.annotation
    if node.returns is not None:
        yield node.returns


# The handlers of syntax tree nodes, and the ledger of evaluated expressions.
#
# A handler is given fields of its node by name. A field that the handler does not take is refused
# where it is used, so that no field is ignored, not even one that a newer Python adds. The ledger
# records the evaluated expressions in order: an expression that CPython evaluates and a handler did
# not is refused.


SET_BY_THE_PARSER = frozenset({"ctx", "kind", "simple", "type_comment"})
"""Fields without information beyond the node's span, value and text."""
EMPTY = {
    "type_params": ("a type parameter", "use `psc.Tree` or a TypeVar"),
    "is_lazy": ("a lazy import here", "leave out `lazy`"),
}
"""Fields without a meaning here, each with a name for its content and a suggested replacement."""

_FIELDS: dict[tuple[type[ast.AST], str], tuple[tuple[str, ...], tuple[str, ...]]] = {}


def handled(kind: type[ast.AST], handler: Handler) -> tuple[str, ...]:
    """Return the fields of a kind of node that its handler takes."""
    return _fields(kind, handler)[0]


def _fields(kind: type[ast.AST], handler: Handler) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields that a handler takes, and those that must be empty."""
    key = (kind, handler.__qualname__)
    cached = _FIELDS.get(key)
    if cached is None:
        takes = inspect.signature(handler).parameters
        others = {*kind._fields} - {*takes} - SET_BY_THE_PARSER
        cached = _FIELDS[key] = (
            tuple([field for field in kind._fields if field in takes]),
            tuple([field for field in kind._fields if field in others]),
        )
    return cached


def fields(node: ast.AST, handler: Handler) -> dict[str, Any]:
    """Return the fields of a node by name; a Failure if an unsupported field is used."""
    takes, others = _fields(type(node), handler)
    for name in others:
        if getattr(node, name, None):
            if name not in EMPTY:
                raise Failure(of_newer_python(f"{type(node).__name__}.{name}"))
            what, rewrite = EMPTY[name]
            raise Failure(Unsupported(what=what, rewrite=rewrite))
    return {name: getattr(node, name) for name in takes}


def without_meaning(node: ast.AST, refused: Mapping[str, tuple[str, str]]) -> Diagnostic:
    """Return the finding about a node without a handler; `refused` has texts for some kinds."""
    name = type(node).__name__
    if name not in refused:
        return of_newer_python(name)
    what, rewrite = refused[name]
    return Unsupported(what=what, rewrite=rewrite)


def of_newer_python(name: str) -> Diagnostic:
    """Return the finding about syntax that this version of Python adds to the grammar."""
    version = ".".join(map(str, sys.version_info[:2]))
    return NotSupported(what=f"Python {version}'s `{name}`")


class Ledger:
    """The evaluated expressions in order, with their values."""

    def __init__(self) -> None:
        self._clock = 0
        self._evaluated: dict[ast.AST, tuple[int, Place]] = {}

    def now(self) -> int:
        """Return the time before the next evaluation."""
        return self._clock

    def enter(self, node: ast.AST, value: Place) -> None:
        """Record that an expression was evaluated."""
        self._clock += 1
        self._evaluated[node] = (self._clock, value)

    def value(self, node: ast.AST) -> Place:
        """Return the value of an expression at its last evaluation."""
        return self._evaluated[node][1]

    def latest(self, node: ast.AST) -> Place:
        """Return the value of an expression at its last evaluation; None if there was none."""
        return self._evaluated.get(node, (0, None))[1]

    def settle(self, node: ast.AST, parts: Iterable[ast.AST], began: int) -> None:
        """Require that all parts were evaluated since a time, in order; else a Failure."""
        last = began
        for part in parts:
            time = self._evaluated.get(part, (0,))[0]
            if time <= began:
                what = f"{type(part).__name__} in {type(node).__name__} is not evaluated"
                raise Failure(InternalError(what=what))
            if time < last:
                raise Failure(InternalError(what=f"parts of {type(node).__name__} out of order"))
            last = time


# The state of an elaboration: the session, and one frame for each function being elaborated.


MAX_DEPTH = 60
MAX_SAME = 30
MAX_STEPS = 100_000
BLOCK_STEPS = 20
"""The cost in steps of the block of a branch or a loop, in addition to its content."""
MAX_FINDINGS = 500
MAX_DATA = 1_000_000
"""The limit on items and characters of all static values that one elaboration makes."""
_MISFITS = (DtypesDiffer, InnerSizesDiffer, ShapesDoNotBroadcast)
"""The findings about operands that do not fit together, independent of the operation."""


class Scope(Protocol):
    """The names outside a function: those of a module as loaded, or as written."""

    @property
    def module(self) -> str:
        """Return the module's name."""
        ...

    @property
    def is_jax(self) -> bool:
        """Return whether its functions compute as JAX's do."""
        ...

    def library_module(self, name: str) -> AnyValue:
        """Return a module of the standard library."""
        ...

    def jax_array_member(self, name: str) -> AnyValue | None:
        """Return an attribute that only arrays of JAX have, if this is a module of JAX's."""
        ...

    def lookup(self, name: str, user: ast.AST | None = None) -> AnyValue:
        """Return the value of a name where `user` reads it; KeyError if there is no such name."""
        ...

    def lookup_annotation(self, name: str) -> AnyValue:
        """Return the value of a name in an annotation, where type checkers' imports count, too."""
        ...

    @property
    def guard(self) -> Guard:
        """The guard, which refuses a captured value that anything writes."""
        ...


class NoProgram(Builder):
    """A substitute for the builder where only static values can be computed."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def __getattribute__(self, name: str) -> Any:
        if name == "session" or name.startswith("__"):
            return super().__getattribute__(name)
        raise Failure(NotStatic(what="what is computed outside of a kernel"))


def session_of(here: Builder) -> Session:
    """Return the elaboration that a builder belongs to."""
    if isinstance(here, NoProgram):
        return here.session
    session = here.program.session
    assert isinstance(session, Session)
    return session


def require_program(here: Builder, what: str) -> Builder:
    """Return the builder; refuse arrays where only static values can be computed."""
    if isinstance(here, NoProgram):
        raise Failure(NotStatic(what=f"what {what} returns outside of a kernel"))
    return here


@contextmanager
def inner_block(here: Builder) -> Generator[Builder]:
    """Open an innermost block, which counts as work and writes to no array made outside of it."""
    session = session_of(here)
    session.step(BLOCK_STEPS)
    with here.program.inside() as inner:
        barrier, session.barrier = session.barrier, inner.depth
        outside, session.outside = session.outside, session.cells
        try:
            yield inner
        finally:
            session.barrier = barrier
            session.outside = outside


Assigned: TypeAlias = dict[ast.Name, tuple[Source, AnyValue]]
"""The names bound in the code: by target, its source and the last value."""


class Session:
    """One elaboration.  Without a program it can only compute static values."""

    def __init__(
        self, program: Program | None, root: Closure | None = None, most_steps: int = MAX_STEPS
    ) -> None:
        self.program = program
        self.most_steps = most_steps
        self.root = root
        if program is not None:
            program.session = self
        self.findings: list[Diagnostic] = [] if program is None else program.findings
        self.unfit: dict[frozenset[Atom], Diagnostic] = {}
        """The arrays that did not fit together, with the finding."""
        self.active: list[FunctionNode] = []
        self.annotating = False
        """Whether an annotation is being read."""
        self.branches = 0
        """The number of enclosing branches that are taken at run time."""
        self.counts_given = False
        """Whether the number of steps of a loop is a number that the kernel is given."""
        self.own_class: Callable[[], Spec | None] = lambda: None
        """Returns the meaning of `Self` in an annotation: the type of a method's class."""
        self.classes = False
        """Whether the class arguments of `isinstance` are being read."""
        self.added: set[str] = set()
        """The attributes, of unknown values, that functions of JAX programs add to instances."""
        self.entered: set[Span] = set()
        """The functions that were elaborated."""
        self.assigned: Assigned = {}
        """The names that were bound."""
        self.steps = 0
        self.data = 0
        self.ledger = Ledger()
        """The record of evaluated expressions."""
        self.stores = 0
        """The number of elaborated stores into arrays and containers."""
        self.unseen_stores = 0
        """The number of stores into objects that no program can see."""
        self.barrier = 0
        """The depth of a block: arrays made outside of it take no stores."""
        self.cells = 0
        """The number of cells and containers made so far."""
        self.outside = 0
        """The number of those made outside of that block: no such container is changed."""
        self.reported_before = 0
        """The number of findings before this step of a loop; the step does not repeat these."""
        self.journal: list[Change] = []
        """The in-place changes, in order."""
        self.caller_holds: tuple[Cell, ...] = ()
        """The arrays that the kernel was given to write; the caller holds them, too."""
        self.result_cells: frozenset[Cell] | None = None
        """The arrays that the result may show; None if they are unknown."""
        self.containers: dict[int, Container] = {}
        """The lists, dicts and sets that are followed, by identity."""
        self.walks: list[Traversal] = []
        """The loops that iterate over some of them."""
        self.live: list[Frame] = []
        """The frames of functions and comprehensions that are being elaborated."""
        self.loops: dict[Span, str] = {}
        """A sentence about each loop, by its span."""
        self.learnt: dict[Span, Learnt] = {}
        """Facts about loops from their earlier elaborations, by span."""

    def report_of(self, failure: Failure, arrays: Iterable[Place]) -> None:
        """Report a failure where arrays meet, once for the same arrays that do not fit together.

        If a comment may silence the first finding, the others are reported, too.
        """
        finding = failure.diagnostics[0]
        if isinstance(finding, _MISFITS):
            values = (each.last_read() if isinstance(each, Ref) else each for each in arrays)
            met = frozenset(each.atom for each in values if isinstance(each, Value))
            first = self.unfit.setdefault(met, finding) if len(met) > 1 else finding
            if first is not finding and type(first) is type(finding) and not self._silent(first):
                return
        self.report(failure)

    def report(self, failure: Failure) -> None:
        """Keep findings, each place and kind once, up to a limit."""
        in_jax = self.program is not None and self.program.jax is not None
        for diagnostic in failure.diagnostics:
            if in_jax:
                diagnostic = outside_packages(diagnostic)
            if len(self.findings) == MAX_FINDINGS:
                self.findings.append(TooManyFindings(limit=MAX_FINDINGS, span=diagnostic.span))
            if len(self.findings) > MAX_FINDINGS:
                return
            if not any(
                diagnostic.code == old.code
                and diagnostic.span == old.span
                and (place < self.reported_before or diagnostic.message() == old.message())
                for place, old in enumerate(self.findings)
            ):
                self.findings.append(diagnostic)
                self._assume(diagnostic)

    def _assume(self, finding: Diagnostic) -> None:
        """Assume the precondition that a finding asks for, so that one fix is reported once.

        The kernel is refused all the same. If a comment may silence the finding, nothing is
        assumed: other findings must not depend on it.
        """
        program, claim = self.program, finding.claimed()
        if program is not None and claim and not self._silent(finding):
            facts = program.facts.assume(*claim)
            if facts.consistent() is Verdict.YES:
                program.facts = facts

    def _silent(self, finding: Diagnostic) -> bool:
        """Return whether a comment may silence a finding."""
        source = self.root.source if self.root is not None else None
        if source is None or finding.span.path != source.path:
            return True  # it may be in a helper of another file
        return DIRECTIVE.search(source.text) is not None

    def next_step(self) -> None:
        """Count a step of a loop that is unrolled."""
        self.reported_before = len(self.findings)
        self.step()

    def step(self, count: int = 1) -> None:
        """Count pieces of work; a Failure past the bound."""
        known, self.steps = self.steps, self.steps + count
        if known > self.most_steps or len(self.findings) > MAX_FINDINGS:
            raise Poisoned
        if self.steps > self.most_steps:
            raise Failure(TooManySteps(limit=self.most_steps))

    def made(self, value: T) -> T:
        """Count a new static value; a Failure if it or the total is too large."""
        if self.data > MAX_DATA:
            raise Poisoned
        self.data += require_small(value)
        if self.data > MAX_DATA:
            raise Failure(TooLarge(what=f"static data of more than {MAX_DATA} items in all"))
        return value

    @contextmanager
    def alive(self, frame: Frame) -> Generator[None]:
        """Count the names of a frame among those that hold arrays."""
        self.live.append(frame)
        try:
            yield
        finally:
            self.live.pop()

    @contextmanager
    def calling(self, node: FunctionNode, name: str) -> Generator[None]:
        """Bound the depth of helpers that are elaborated inside each other."""
        if len(self.active) >= MAX_DEPTH or self.active.count(node) >= MAX_SAME:
            raise Failure(UnboundedRecursion(function=name))
        self.active.append(node)
        program = self.program
        path = "" if program is None else program.path
        if program is not None:
            program.path = f"{path} {program.span.line}:{program.span.column}"
        try:
            yield
        finally:
            self.active.pop()
            if program is not None:
                program.path = path


class Unjoined(Atomic):
    """A name to which several paths gave values that cannot be joined: refused where it is read."""

    def __init__(self, why: Sequence[Diagnostic]) -> None:
        self.why = tuple(why)


class Frame:
    """The names of one function while it is elaborated."""

    __slots__ = (
        "assigned",
        "began",
        "call_site",
        "closure",
        "in_comprehension",
        "may_have_returned",
        "names",
        "outer",
        "returned",
        "scope",
        "session",
        "source",
    )

    def __init__(
        self,
        session: Session,
        source: Source,
        scope: Scope,
        outer: Frame | None = None,
        call_site: Span | None = None,
        closure: Closure | None = None,
    ) -> None:
        self.session = session
        self.began = session.cells
        """The number of cells and containers that existed when it was made."""
        self.source = source
        self.scope = scope
        self.outer = outer
        self.call_site = call_site
        self.closure = closure
        self.names: dict[str, Binding] = {}
        self.in_comprehension = False
        """Whether it owns only the names that the comprehension's `for` clauses bind."""
        self.assigned: frozenset[str] = frozenset()
        self.returned: Span | None = None
        """The span of the returned expression."""
        self.may_have_returned = False
        """Whether a refused statement holds a `return`."""

    @property
    def program(self) -> Program | None:
        """The program under construction, if there is one."""
        return self.session.program

    @property
    def in_kernel(self) -> bool:
        """Return whether this is the kernel's source text (its body or a function nested in it)."""
        frame: Frame | None = self
        while frame is not None:
            if frame.closure is not None and frame.closure is self.session.root:
                return True
            frame = frame.outer
        return False

    def span(self, node: ast.AST) -> Span:
        """Return the span of a node, with the calls that led to it."""
        span = self.source.span(node)
        return span if self.call_site is None else span.within(self.call_site)

    def here(self, node: ast.AST) -> Builder:
        """Return the block under construction, and give its next equations the span of `node`."""
        program = self.session.program
        if program is None:
            return NoProgram(self.session)
        program.span = self.span(node)
        return program.current

    def lookup(self, name: str) -> Place:
        """Return the value of a name; a Failure if it is unknown or not assigned yet."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.names:
                value = frame.names[name]
                if isinstance(value, Unjoined):
                    raise Failure(*value.why)
                if frame.session is not self.session and frame.closure is not None:
                    value = load(value)
                    node = frame.closure.node
                    self.scope.guard.of_function(frame.source, node, name, value)
                    self._refuse_sizes(name, value)
                return value
            if name in frame.assigned:
                raise Failure(UnknownName(name=name, unassigned=True))
            frame = frame.outer
        try:
            if self.session.annotating:
                return self.scope.lookup_annotation(name)
            return self.scope.lookup(name, None if self.closure is None else self.closure.node)
        except KeyError:
            raise Failure(UnknownName(name=name, unassigned=False)) from None

    def local(self, name: str) -> Binding:
        """Return the value of a variable of this function or an enclosing one; else None."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.names:
                return frame.names[name]
            frame = frame.outer
        return None

    def _refuse_sizes(self, name: str, value: AnyValue) -> None:
        """Refuse a captured value that holds sizes of another kernel."""
        from pscdsl._src.frontend.arguments import holds_sizes  # avoids an import cycle

        if holds_sizes(value):
            what = "an array" if is_traced(value) else "which holds sizes"
            raise Failure(NotStatic(what=f"`{name}`, {what} of another kernel,"))

    def bind_outside(self, name: str, value: Binding) -> None:
        """Bind a name as `:=` does: in the function around a comprehension."""
        frame = self
        while frame.in_comprehension and frame.outer is not None:
            frame = frame.outer
        frame.names[name] = value

    def poison(self, name: str) -> None:
        """Silence findings that depend on a local name from here on."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.names:
                frame.names[name] = POISON
                return
            frame = frame.outer

    def report(self, node: ast.AST, *diagnostics: Diagnostic) -> None:
        """Report findings at a node."""
        span = self.span(node)
        self.session.report(Failure(*(diagnostic.at(span) for diagnostic in diagnostics)))
