"""Functions written in Python: closures, parameters, inlining, and iteration."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from pscdsl._src.frontend.interpreter.containers import adopt, adopt_all
from pscdsl._src.frontend.interpreter.frames import Binding, Frame, Scope, Session, session_of
from pscdsl._src.frontend.interpreter.iteration import Iterated
from pscdsl._src.frontend.interpreter.places import Frozen, Located, escaped, load, seen, with_cells
from pscdsl._src.frontend.modules.jax_programs import takes_arrays
from pscdsl._src.frontend.purity import external_value, is_mutable, parts, range_length
from pscdsl._src.frontend.text.source import FunctionNode, Source
from pscdsl._src.frontend.values import (
    AnyValue,
    Applicable,
    Args,
    External,
    Kwargs,
    MapValue,
    Once,
    Place,
    Poison,
    Poisoned,
    RecordValue,
    VectorValue,
    describe,
    is_traced,
)
from pscdsl._src.ir.builder import Builder, Value, Weak, note_array
from pscdsl._src.language.meanings import near_keyword
from pscdsl.typing.codes.language import LOOPS, BadArguments, LoopOverArray, NotStatic, Unsupported
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.codes.limits import UnknownValue
from pscdsl.typing.codes.performance import LargeUnroll
from pscdsl.typing.codes.projects import BoundInSeveralPlaces
from pscdsl.typing.codes.purity import SetOrder
from pscdsl.typing.diagnostics import Failure, Span
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.python_containers import is_dict, is_sequence

# Iteration by Python's loops and functions while a kernel is elaborated.


MAX_UNROLL = 10_000
LARGE_UNROLL = 1_000
"""The equations of an unrolled loop that are worth a warning, from `MANY_STEPS` steps on."""
MANY_STEPS = 16


def number_of_steps(count: Size) -> str:
    """Describe the number of steps of a loop."""
    return f"{count} step" if count == 1 else f"{count} steps"


@contextmanager
def unrolling(frame: Frame, place: Span, items: Sequence[Place]) -> Generator[None]:
    """Warn if a loop over these items makes a large program and no loop inside of it does."""
    program, findings = frame.program, frame.session.findings
    frame.session.loops[place] = f"unrolled, {number_of_steps(len(items))}"
    if program is None or len(items) < MANY_STEPS:
        yield
        return
    block, known = program.current, len(findings)
    before = len(block.equations)
    yield
    added = len(block.equations) - before
    if added >= LARGE_UNROLL and not any(isinstance(x, LargeUnroll) for x in findings[known:]):
        finding = LargeUnroll(steps=len(items), equations=added, span=place)
        if not any(isinstance(x, LargeUnroll) and x.span == place for x in findings):
            findings.append(finding)


def elements(value: Place) -> Sequence[Place]:
    """Return the items of a loop; a Failure for arrays and symbolic ranges."""
    if isinstance(value, Poison):
        raise Poisoned
    if isinstance(value, range) and range_length(value) > MAX_UNROLL:
        raise Failure(
            NotStatic(what=f"a loop of {range_length(value)} steps (at most {MAX_UNROLL})")
        )
    return _items(value, "a loop over {}")


def items_of(value: Place) -> Sequence[Place]:
    """Return the items of a static collection for a Python function."""
    if isinstance(value, range) and range_length(value) > MAX_UNROLL:
        raise Failure(TooLarge(what=f"a range of {range_length(value)} numbers"))
    return _items(value, "what {} holds")


def _items(value: Place, unknown: str) -> Sequence[Place]:
    """Return the items in order; `unknown` is the message for a value without items."""
    from pscdsl._src.frontend.interpreter.records import RecordClass  # avoids an import cycle

    if is_sequence(value):
        return value
    if is_dict(value):
        return tuple(value)
    match value:
        case Value() | Weak() | Located():
            raise Failure(LoopOverArray(found=str(value.type)))
        case range() | str() | bytes():
            return value
        case MapValue(items=items):
            if len(items) > 1:
                raise Failure(SetOrder(kind="a PMap"))
            return tuple(items)
        case VectorValue(items=vector):
            return vector
        case Once():
            return value.take()
        case set() | frozenset():
            raise Failure(SetOrder())
        case RecordValue(cls=cls, fields=held):
            cls.refuse_special("__iter__")
            if cls.kind == "namedtuple":
                return tuple(held.values())
            what = f"going through {describe(value)}, which has no items,"
            fields = ", ".join(f"`r.{name}`" for name in held)
            raise Failure(Unsupported(what=what, rewrite=f"name its fields, as in {fields}"))
        case RecordClass(enumeration=True):
            return value.enum_members()
        case External():
            raise Failure(external_value(value))
        case _:
            rewrite = LOOPS if isinstance(value, Dim | Iterated) else ""
            raise Failure(NotStatic(what=unknown.format(describe(value)), rewrite=rewrite))


# Functions written in Python: closures, the binding of their parameters, and inlining.


PARAMETER: Final = (
    'take a `.copy()` first, which may be written, or declare it: `@psc.kernel(writes="{}")`'
)


@dataclass(eq=False)
class Closure(Applicable):
    """A function's syntax together with the names it sees."""

    name: str
    node: FunctionNode
    source: Source
    scope: Scope
    outer: Frame | None = None
    """The frame of the enclosing function."""
    defaults: Mapping[str, AnyValue] = field(default_factory=dict[str, "AnyValue"])
    returned: Span | None = None
    """The span of the returned expression in the last elaboration."""
    annotated: Mapping[str, AnyValue] = field(default_factory=dict[str, "AnyValue"])
    """Values of names in its annotations that were evaluated earlier; no other names use them."""
    named: Mapping[str, Binding] = field(default_factory=dict[str, "Binding"])
    """Variables of enclosing functions that its annotations name, as of its definition."""

    def description(self) -> str:
        """Describe the function for messages."""
        return "a lambda" if isinstance(self.node, ast.Lambda) else f"the function `{self.name}`"

    def annotation_frame(self) -> Frame:
        """Return the frame in which its annotations are read."""
        frame = Frame(Session(None), self.source, self.scope, self.outer)
        frame.names = {**self._type_parameters(), **self.annotated}
        for name, value in self.named.items():
            # Annotations are evaluated at the definition; from Python 3.14 on, when they are read.
            if name not in frame.names and frame.local(name) is not value:
                span = self.source.span(self.node).head(1)
                finding = BoundInSeveralPlaces(name=name, within="function", span=span)
                frame.names[name] = External(name, (finding,))
        return frame

    def _type_parameters(self) -> dict[str, AnyValue]:
        """Return its type parameters, which hide other names."""
        declared: Sequence[Any] = getattr(self.node, "type_params", ())  # from Python 3.12 on
        if not declared:
            return {}
        from pscdsl._src.frontend.annotations import type_parameter  # avoids an import cycle

        return {each.name: type_parameter(each.name) for each in declared}

    def bind(self, args: Args, kwargs: Kwargs) -> dict[str, Place]:
        """Bind arguments to the parameters as Python does."""
        return bind(self.name, self.node.args, self.defaults, args, kwargs)

    def signature(self, defaults: Mapping[str, AnyValue]) -> inspect.Signature:
        """Return the parameters as a Python signature with these defaults."""
        spec, empty = self.node.args, inspect.Parameter.empty
        kinds = (
            (inspect.Parameter.POSITIONAL_ONLY, spec.posonlyargs),
            (inspect.Parameter.POSITIONAL_OR_KEYWORD, spec.args),
            (inspect.Parameter.VAR_POSITIONAL, [spec.vararg] if spec.vararg else []),
            (inspect.Parameter.KEYWORD_ONLY, spec.kwonlyargs),
            (inspect.Parameter.VAR_KEYWORD, [spec.kwarg] if spec.kwarg else []),
        )
        return inspect.Signature(
            [
                inspect.Parameter(parameter.arg, kind, default=defaults.get(parameter.arg, empty))
                for kind, parameters in kinds
                for parameter in parameters
            ]
        )

    def apply(
        self, here: Builder, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
    ) -> AnyValue:
        """Elaborate the body inline at the call, for a caller without references."""
        session = session_of(here)
        frozen = Frozen(f"`{self.name}` returned to what is not followed")
        return escaped(session, self.enter(session, self.bind(args, kwargs)), frozen)

    def enter(self, session: Session, names: Mapping[str, Place]) -> Place:
        """Elaborate the body with its parameters bound; the result may be a reference.

        If the body writes to an argument that is a reference, the caller's array is written. Other
        values belong to the caller.
        """
        from pscdsl._src.frontend.arguments import contract  # avoids an import cycle
        from pscdsl._src.frontend.interpreter.statements import run_body  # avoids an import cycle

        program = session.program
        place = program.span if program is not None else None
        if self.outer is not None and self.outer.session is session:
            call_site = self.outer.call_site
        else:
            call_site = place if session.active else None
        frame = Frame(session, self.source, self.scope, self.outer, call_site, self)
        if program is not None:
            names = {
                name: with_cells(session, value, self._given(session, name, value))
                for name, value in names.items()
            }
            if self is session.root:
                for value in names.values():
                    _note_arrays(value)
            spec = self.node.args
            if spec.kwarg is not None and self is not session.root:
                adopt(session, names[spec.kwarg.arg])  # a new dict
            for name, value in names.items():
                adopt_all(session, value, self._given(session, name, value))
                program.named(name, seen(value))
        frame.names = {**self._type_parameters(), **names}
        if isinstance(self.node, ast.AsyncFunctionDef):
            raise Failure(Unsupported(what="an `async` function", rewrite="use a plain `def`"))
        # Annotations of a JAX program's helpers are not looked at when it runs.
        checked = program is not None and program.jax is None and self is not session.root
        terms = contract(frame, self.node) if checked else None
        here = frame.here(self.node) if program is None else program.current
        fit = (
            None
            if terms is None
            else terms.arguments(here, {name: load(value) for name, value in names.items()})
        )
        session.entered.add(self.source.span(self.node))
        if program is not None and program.jax is not None and self is not session.root:
            # These depend on this module.
            from pscdsl._src.frontend.jax_annotations import (
                declared_result,
                is_abstract,
                refuse_lists,
            )

            if self.outer is None and takes_arrays(self.source.path):
                refuse_lists(self.name, self.node.args, names)

            if is_abstract(self.node):
                given = {name: load(value) for name, value in names.items()}
                return declared_result(frame, program.current, given)
        used = {n: v for n, v in self.defaults.items() if names.get(n) is v and is_mutable(v)}
        with session.calling(self.node, self.name), session.alive(frame):
            result: Place = run_body(frame, self.node)
        for name, value in used.items():
            self._admit_default(session, name, value)
        self.returned = frame.returned
        if terms is not None and fit is not None:
            try:
                terms.result(here, fit, load(result))
            except Failure as failure:
                raise failure.at(terms.result_span.within(call_site)) from None
        if program is not None and place is not None:
            program.span = place
        return result

    def _given(self, session: Session, name: str, value: Place) -> Frozen:
        """Return the reason why a parameter takes no stores."""
        if self is session.root and not (is_traced(value) or isinstance(value, Located)):
            return Frozen(f"is in the parameter `{name}`, which belongs to the caller")
        if self is session.root:
            return Frozen(
                f"is the parameter `{name}`, which belongs to the caller",
                rewrite=PARAMETER.format(name),
                parameter=name,
            )
        return Frozen(f"is given to `{self.name}` as `{name}` by who may hold it")

    def _admit_default(self, session: Session, name: str, value: AnyValue) -> None:
        """Refuse a default that can be written, unless findings in the body already report it."""
        try:
            self.scope.guard.require_held(name, value)
        except Failure:
            own = self.source.span(self.node)
            if not any(
                d.span.path == own.path and own.line <= d.span.line <= own.end_line
                for d in session.findings
            ):
                raise


@dataclass(frozen=True)
class BoundMethod(Applicable):
    """A function with its first argument given."""

    name: str
    function: Applicable
    self_value: AnyValue

    def holds(self) -> Sequence[AnyValue]:
        """Return the method's function and its object."""
        return self.function, self.self_value

    def apply(
        self, here: Builder, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
    ) -> AnyValue:
        """Call with the bound argument first."""
        return self.function.apply(here, (self.self_value, *args), kwargs)

    def description(self) -> str:
        """Describe the method for messages."""
        return f"the method `{self.name}`"


def bind(
    name: str, spec: ast.arguments, defaults: Mapping[str, AnyValue], args: Args, kwargs: Kwargs
) -> dict[str, Place]:
    """Bind arguments to parameters as Python does; a Failure where Python raises TypeError."""
    positional = [p.arg for p in (*spec.posonlyargs, *spec.args)]
    only_positional = {p.arg for p in spec.posonlyargs}
    keyword_only = [p.arg for p in spec.kwonlyargs]
    bound: dict[str, Place] = dict(zip(positional, args, strict=False))
    surplus = tuple(args[len(positional) :])
    if surplus and spec.vararg is None:
        raise Failure(
            BadArguments(
                function=name,
                problem=f"takes {len(positional)} positional arguments but {len(args)} were given",
            )
        )
    if spec.vararg is not None:
        bound[spec.vararg.arg] = surplus
    rest: dict[str, Place] = {}
    for key, value in kwargs.items():
        if (key in positional and key not in only_positional) or key in keyword_only:
            if key in bound:
                raise Failure(
                    BadArguments(function=name, problem=f"got two values for argument '{key}'")
                )
            bound[key] = value
        else:
            rest[key] = value
    if rest and spec.kwarg is None:
        raise Failure(
            BadArguments(
                function=name,
                problem=f"got an unexpected keyword argument '{next(iter(rest))}'",
                instead=near_keyword(
                    next(iter(rest)), [each.arg for each in (*spec.args, *spec.kwonlyargs)]
                ),
            )
        )
    if spec.kwarg is not None:
        bound[spec.kwarg.arg] = rest
    for parameter in (*positional, *keyword_only):
        if parameter not in bound:
            if parameter not in defaults:
                raise Failure(
                    BadArguments(function=name, problem=f"misses an argument for '{parameter}'")
                )
            default = defaults[parameter]
            if isinstance(default, Poison):
                raise Failure(UnknownValue(name=f"{name}(…, {parameter}=…)"))
            if isinstance(default, External) and default.name.endswith("=…)"):
                raise Failure(external_value(default))
            bound[parameter] = default
    return bound


def _note_arrays(argument: Place) -> None:
    """Note that an argument without axes may be an array of the caller."""
    if isinstance(argument, Value):
        note_array(argument)
    elif not isinstance(argument, Located):
        for part in parts(argument):
            _note_arrays(part)
