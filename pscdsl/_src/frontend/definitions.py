"""Kernels as read from source: their signature, and a typed program for each choice."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from threading import get_ident
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pscdsl._src.analysis.keys.walk import reused_keys
from pscdsl._src.frontend.annotations import as_result, named_trees, record_spec, spec_of
from pscdsl._src.frontend.arguments import (
    as_asked,
    as_declared,
    default_problems,
    result_problems,
    settle,
    static_type,
    tuples_for_lists,
)
from pscdsl._src.frontend.interpreter.call_findings import with_origins
from pscdsl._src.frontend.interpreter.expressions import evaluate
from pscdsl._src.frontend.interpreter.frames import (
    MAX_STEPS,
    Assigned,
    Frame,
    Session,
    require_program,
    session_of,
)
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.places import load, located_in
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.interpreter.whole_rows import elements_meant
from pscdsl._src.frontend.interpreter.writing import (
    final_contents,
    never_written,
    shows_arguments,
    with_written,
    written_cells,
)
from pscdsl._src.frontend.known_numbers import STEPS, Problems, settled
from pscdsl._src.frontend.text.bindings import bound_value, lost_result, says_none
from pscdsl._src.frontend.text.source import Source, parameters, with_defaults
from pscdsl._src.frontend.trees import flatten, of_values, strong, unflatten
from pscdsl._src.frontend.values import (
    POISON,
    AnyValue,
    Applicable,
    Args,
    Array,
    Kwargs,
    Place,
    Poisoned,
    from_static,
)
from pscdsl._src.interpreters.replay import zeros
from pscdsl._src.ir.builder import Builder, Decided, Program, PythonNumber, Site, Value, Weak
from pscdsl._src.ir.jax_promotion import JaxPromotion
from pscdsl._src.ir.program import Function, Var
from pscdsl._src.language.donation import donated, in_vain
from pscdsl._src.language.writes import functional, named, own_result
from pscdsl._src.primitives.collectives import PlaceAlong
from pscdsl._src.primitives.control import Call, on_one_device
from pscdsl._src.primitives.scan import Scan
from pscdsl.typing.array_types import (
    ArrayType,
    NoneType,
    RecordName,
    Type,
    in_order_of,
    leaves,
    paths,
    same_structure,
    substitute_tree,
)
from pscdsl.typing.assumptions import Assumptions, Fact, Verdict
from pscdsl.typing.codes.control import ReturnTree
from pscdsl.typing.codes.language import BadAnnotation, BadArguments, MissingAnnotation
from pscdsl.typing.codes.language_evaluation import RecursiveKernel
from pscdsl.typing.codes.limits import RevealedType
from pscdsl.typing.codes.performance import LargeUnroll
from pscdsl.typing.codes.placements import MeshAxisMisused
from pscdsl.typing.codes.shapes_of_arguments import (
    AssertionFails,
    PreconditionNotMet,
    ReturnShape,
    SizeNotDetermined,
)
from pscdsl.typing.counters import Counter
from pscdsl.typing.diagnostics import Diagnostic, Failure, Label, Severity, Span
from pscdsl.typing.dims import Dim, Size, as_terms, names, variable
from pscdsl.typing.dtypes import DType, Kind, accepts_weak, defaults
from pscdsl.typing.placements import Placement
from pscdsl.typing.python_containers import is_tuple
from pscdsl.typing.signatures import (
    ArraySpec,
    Choice,
    Instantiation,
    NoneSpec,
    Parameter,
    Signature,
    Spec,
    StaticSpec,
    Variadic,
    arrays_of,
    walk_paths,
)
from pscdsl.typing.unify import Match, match, undetermined

if TYPE_CHECKING:
    from pscdsl._src.transforms.partition import Partitioned


class Excluded(Exception):
    """A static precondition refuses this choice; carries the finding."""

    def __init__(self, finding: Diagnostic) -> None:
        super().__init__(finding)
        self.finding = finding


@dataclass
class Elaboration:
    """The typed program for a choice, and what callers and the checker ask of it."""

    program: Function
    """The program of one device."""
    warnings: tuple[Diagnostic, ...] = ()
    """The warnings of its elaboration."""
    lints: tuple[Diagnostic, ...] | None = None
    """The warnings about the program; None until they are asked for."""
    numbers: Sequence[bool] = ()
    """For each leaf of the results, whether it is a Python number; empty if none is."""
    counts: bool = False
    """Whether an argument gives the number of a loop's steps."""
    shows_arguments: bool = False
    """Whether a call's result may show an argument, or hold one."""
    over_mesh: Function | None = None
    """The program of any number of devices, if it asks for that number."""

    @classmethod
    def of(cls, function: Function, *more: Any) -> Elaboration:
        """Return the elaboration with a program for any number of devices."""
        made = cls(on_one_device(function), *more)
        made.over_mesh = function if function.mesh else None
        return made


@dataclass
class Elaborations:
    """All elaborations of a kernel; a changed copy of its definition begins without any."""

    known: dict[Choice, Elaboration | Failure | Excluded] = field(
        default_factory=dict[Choice, Elaboration | Failure | Excluded]
    )
    active: set[Choice] = field(default_factory=set[Choice])
    settling: dict[int, Signature] = field(default_factory=dict[int, Signature])
    """The signature as declared, while its static parameters are being settled, by thread."""
    inherited: dict[RecordName, Definition] = field(default_factory=dict[RecordName, "Definition"])
    """The same method of classes that derive from its class."""
    steps: int = 0
    """The work so far."""
    counters: set[Counter] = field(default_factory=set[Counter])
    """The counters of its loops, as sizes."""
    revealed: list[RevealedType] = field(default_factory=list[RevealedType])
    assigned: list[Assigned] = field(default_factory=list[Assigned])
    """The bindings of names in each elaboration."""
    entered: set[Span] = field(default_factory=set[Span])
    """The functions that were elaborated into it, itself included."""
    loops: dict[tuple[str, int, int], dict[str, None]] = field(
        default_factory=dict[tuple[str, int, int], dict[str, None]]
    )
    """A sentence about each loop, by path, line and column."""


class Definition(Applicable):
    """A kernel: a function, its declared types, and its elaborations.

    A signature and facts about its sizes may be given in place of those that the source declares.
    """

    returns_new_arrays = True
    """A call keeps no reference to its arguments, and its results have no other holder."""

    def __init__(
        self, closure: Closure, signature: Signature | None = None, facts: Sequence[Fact] = ()
    ) -> None:
        self.closure = closure
        self.name = closure.name
        self.most_steps = MAX_STEPS
        """The most work of one elaboration."""
        self.elaborations = Elaborations()
        self._given_facts = tuple(facts)
        self._signature: Signature | Failure | None = signature
        self.donate: tuple[AnyValue, ...] = ()
        """The parameters whose memory may be reused for results."""
        self.budget: tuple[AnyValue, ...] = ()
        """Bounds on its cost, without those in comments."""
        self.method_of = ""
        """The class of its first parameter, if that has no type."""
        self._inherited_by: RecordClass | None = None
        """The class whose instance the first parameter is, if it is not the one above."""
        self.proven: Signature | None = None
        """The signature with the static integers that were checked as sizes, for all their values.
        """
        self.jax: JaxPromotion | None = None
        """JAX's promotion, if it is a function of a JAX program."""
        self.fast_math = False
        """Whether it may be computed by the laws of real numbers."""
        self.writes: tuple[AnyValue, ...] = ()
        """The parameters that it writes, whose final contents are further results."""

    def with_options(
        self,
        donate: AnyValue = None,
        budget: AnyValue = None,
        fast_math: bool | None = None,
        writes: AnyValue = None,
    ) -> Self:
        """Return a copy with the given `donate`, `budget`, `fast_math` and `writes`."""
        made = self._with_signature(self._signature)
        if writes is not None:
            if self.writes or type(self) is not Definition:
                problem = "takes `writes` where it makes a kernel of a function, and nowhere else"
                raise Failure(BadArguments(function="psc.kernel", problem=problem))
            made.writes = named(writes)
            made._signature = None
        made.donate = self.donate if donate is None else named(donate)
        made.budget = self.budget if budget is None else named(budget)
        made.fast_math = self.fast_math if fast_math is None else fast_math
        return made

    @property
    def defaults(self) -> Mapping[str, AnyValue]:
        """The values of parameters with a default."""
        return self.closure.defaults

    @property
    def source(self) -> Source:
        """The text that contains it."""
        return self.closure.source

    @property
    def span(self) -> Span:
        """The place of the whole function."""
        return self.closure.source.span(self.closure.node)

    @property
    def written_at(self) -> Span | None:
        """The start of the statement that makes it, without decorators, if known."""
        return self.span

    @property
    def head(self) -> Span:
        """The keyword that begins the function."""
        word = "async def" if isinstance(self.closure.node, ast.AsyncFunctionDef) else "def"
        return self.span.head(len(word))

    @property
    def name_place(self) -> Span:
        """The place of its name."""
        span = self.span
        if isinstance(self.closure.node, ast.FunctionDef):
            return replace(span, column=span.column + len("def "))
        return span

    def shown(self) -> Signature:
        """Return the signature for people, with the inferred result if it is known."""
        return self.signature

    def tried(self) -> Signature:
        """Return the signature with the values that were tried for its open parts."""
        return self.proven or self.signature

    def frame(self) -> Frame:
        """Return a frame in which annotations and defaults are evaluated."""
        return self.closure.annotation_frame()

    @property
    def signature(self) -> Signature:
        """The declared signature; a Failure if it is not a proper one."""
        if self._signature is None:
            thread, settling = get_ident(), self.elaborations.settling
            if thread in settling:
                return settling[thread]  # the kernel calls itself
            try:
                settling[thread] = self._read_signature()
                # Static are the integers and booleans that are sizes, or that the body needs known.
                self._signature = settled(
                    settling[thread], lambda tried: self._with_signature(tried)._problems
                )
            except Failure as failure:
                self._signature = failure
            finally:
                settling.pop(thread, None)
        if isinstance(self._signature, Failure):
            raise self._signature
        return self._signature

    def _read_signature(self) -> Signature:
        node, source = self.closure.node, self.closure.source
        frame = self.frame()
        frame.session.own_class = lambda: self._own_class(frame)
        spec = node.args
        problems: list[Diagnostic] = []
        parameters: list[Parameter] = []
        for each in (spec.vararg, spec.kwarg):
            if each is not None:
                span = source.span(each)
                problems.append(
                    MissingAnnotation(function=self.name, name="*" + each.arg, span=span)
                )
        positional = [*spec.posonlyargs, *spec.args]
        for parameter in (*positional, *spec.kwonlyargs):
            if parameter.annotation is None:
                own = self._own_class(frame) if parameter in positional[:1] else None
                if own is not None:
                    parameters.append(Parameter(parameter.arg, own, span=source.span(parameter)))
                    continue
                if (tried := self._unannotated(parameter)) is not None:
                    given = (parameter in spec.kwonlyargs, parameter.arg in self.closure.defaults)
                    parameters.append(Parameter(parameter.arg, tried, *given))
                    continue
                span = source.span(parameter)
                owner = self._owner_without_fields(frame) if parameter in positional[:1] else ""
                problems.append(
                    MissingAnnotation(
                        function=self.name, name=parameter.arg, owner=owner, span=span
                    )
                )
                continue
            try:
                parameters.append(
                    Parameter(
                        parameter.arg,
                        named_trees(self._spec_of(frame, parameter), parameter.arg),
                        parameter in spec.kwonlyargs,
                        parameter.arg in self.closure.defaults,
                        source.span(parameter.annotation),
                    )
                )
            except Failure as failure:
                problems.extend(failure.diagnostics)
            except Poisoned:
                pass
        result = None
        returns = None if isinstance(node, ast.Lambda) else node.returns
        if returns is not None:
            try:
                result = self._result_spec(frame, returns, parameters)
            except Failure as failure:
                problems.extend(failure.diagnostics)
            except Poisoned:
                pass
        signature = Signature(self.name, tuple(parameters), result)
        self._require_defaults(frame, signature, problems)
        try:
            signature = functional(signature, self.writes)
        except Failure as failure:
            raise failure.at(self.head) from None
        for name in signature.unbound():
            reason = f"no parameter says which tree {name or 'it'} is"
            assert returns is not None
            finding = BadAnnotation(text=source.text_of(returns), reason=reason, rewrite="")
            raise Failure(finding.at(source.span(returns)))
        unknown = undetermined(signature)
        if unknown:
            raise self._size_not_determined(unknown, self.head)
        return signature

    def _spec_of(self, frame: Frame, parameter: ast.arg) -> Spec:
        """Return the specification of a parameter's annotation."""
        assert parameter.annotation is not None
        return spec_of(frame, parameter.annotation)

    def _unannotated(self, parameter: ast.arg) -> Spec | None:
        """Return the specification of a parameter without an annotation; None if it needs one."""
        del parameter
        return None

    def _result_spec(
        self, frame: Frame, returns: ast.expr, parameters: Sequence[Parameter]
    ) -> Spec:
        """Return the specification of the result's annotation."""
        del parameters
        return as_result(spec_of(frame, returns))

    def _require_defaults(
        self, frame: Frame, signature: Signature, problems: list[Diagnostic]
    ) -> None:
        """Raise a Failure for problems with the annotations, or otherwise with the defaults."""
        for _, default in with_defaults(self.closure.node.args):
            evaluate(frame, default)  # for its findings
        problems.extend(frame.session.findings)
        if problems:
            raise Failure(*problems)
        if problems := [*default_problems(self.closure, signature)]:
            raise Failure(*problems)

    def of_class(self, cls: RecordClass) -> Definition:
        """Return the method for a class that may derive from its own.

        What has a type for its first parameter is the same in all of them.
        """
        spec = self.closure.node.args
        positional = [*spec.posonlyargs, *spec.args]
        if not self.method_of or not positional or positional[0].annotation is not None:
            return self
        own = self._class(self.frame())
        if own is None or own.name == cls.name:
            return self
        inherited = self.elaborations.inherited
        made = inherited.get(cls.name)
        if made is None:
            made = inherited[cls.name] = self._with_signature(None)
            made._inherited_by = cls
        return made

    def _with_signature(self, signature: Signature | Failure | None) -> Self:
        """Return a copy with another signature and no elaborations."""
        made = copy(self)
        made._signature, made.elaborations = signature, Elaborations()
        return made

    def _problems(self, choice: Choice) -> Problems | None:
        """Return the errors for a choice; None if a precondition excludes it."""
        try:
            counts = self.elaboration(choice).counts
        except Failure as failure:
            errors = [each for each in failure.diagnostics if each.severity is Severity.ERROR]
            return frozenset([(each.code, each.span) for each in errors])
        except Excluded:
            return None
        except Poisoned:
            return frozenset({None})
        return frozenset({STEPS}) if counts else frozenset()

    def _own_class(self, frame: Frame) -> Spec | None:
        """Return the type of a method's first parameter: its class with the sizes it names."""
        cls = self._class(frame)
        is_generic = cls is not None and cls.variables and not frame.scope.is_jax
        if cls is None or cls.kind == "namespace" or is_generic:
            return None
        return record_spec(cls, cls.dims)

    def _owner_without_fields(self, frame: Frame) -> str:
        """Return the class that it is a method of, if that is no record; empty otherwise."""
        try:
            found = frame.scope.lookup_annotation(self.method_of)
        except KeyError:
            return ""
        is_record = isinstance(found, RecordClass) and found.kind != "namespace"
        return "" if is_record else self.method_of

    def _class(self, frame: Frame) -> RecordClass | None:
        """Return the class that it is a method of, or that inherits it; None if that is unknown."""
        if self._inherited_by is not None or not self.method_of:
            return self._inherited_by
        try:
            cls = frame.scope.lookup_annotation(self.method_of)
        except KeyError:
            return None
        return cls if isinstance(cls, RecordClass) else None

    def instance(self, choice: Choice) -> Function:
        """Return the typed program for a choice; a Failure with all findings if there is none."""
        return self.elaboration(choice).program

    def instance_over_mesh(self, choice: Choice) -> Function:
        """Return the typed program for a choice, for any number of devices."""
        found = self.elaboration(choice)
        return found.over_mesh or found.program

    def elaboration(self, choice: Choice) -> Elaboration:
        """Return the elaboration for a choice; a Failure with all findings if there is none."""
        known, active = self.elaborations.known, self.elaborations.active
        found = known.get(choice)
        if found is None:
            active.add(choice)
            try:
                found = self._elaborate(choice)
            except (Failure, Excluded) as problem:
                found = problem
            finally:
                active.discard(choice)
            known[choice] = found
        if isinstance(found, Elaboration):
            return found
        raise found

    def warnings(self, choice: Choice) -> tuple[Diagnostic, ...]:
        """Return the warnings about an instance that is nevertheless a program."""
        from pscdsl._src.analysis.warnings import findings  # a call is not warned

        known = self.elaborations.known.get(choice)
        if not isinstance(known, Elaboration):
            return ()
        if known.lints is None:
            program = known.over_mesh or known.program
            declared = self.signature.result is not None
            known.lints = tuple(
                [
                    each.replaced(spelling=spelled(program.parameters, self.signature))
                    for each in findings.warnings(program, self.source, declared=declared)
                ]
            )
        return known.warnings + known.lints

    def _elaborate(self, choice: Choice) -> Elaboration:
        # Statements may call kernels.
        from pscdsl._src.frontend.interpreter.statements import Widened

        facts, kept = self._assumed(choice), self.elaborations
        decided: dict[Site, DType] = {}
        while True:
            loops = {place: {**texts} for place, texts in kept.loops.items()}
            revealed, assigned = len(kept.revealed), len(kept.assigned)
            found: Mapping[Site, DType]
            known = decided if self.jax is None else None
            program = Program(facts, self.default_dtypes(choice), known, self.jax)
            try:
                elaboration = self._elaborate_under(choice, program)
                if not program.found:
                    return elaboration
                raise Decided(program.found)
            except Failure:
                if not program.found:
                    raise
                found = program.found
            except Widened as widened:  # a size may be 0: earlier proofs may not hold
                facts = facts.assume(widened.fact)
                continue
            except Decided as seen:
                found = seen.dtypes
            decided.update(found)  # each site once
            kept.loops = loops
            del kept.revealed[revealed:]
            del kept.assigned[assigned:]

    def default_dtypes(self, choice: Choice) -> Mapping[Kind, DType]:
        """Return the default dtypes of the signature; `float` has 64 bits there."""
        if self.jax is not None:
            return self.jax.defaults
        signature, types = self.signature, Instantiation(choice)
        found = [
            leaf.dtype
            for parameter in signature.parameters
            for leaf in leaves(types.type_of(parameter.spec, parameter.name))
        ]
        result = own_result(signature)
        if result is not None:
            asked = [types.dtypes.get(x.dtype.name, x.dtype) for x in arrays_of(result)]
            found += [each for each in asked if isinstance(each, DType)]
        return defaults(found)

    def _assumed(self, choice: Choice) -> Assumptions:
        """Return the facts given with the signature, for the static values of a choice."""
        sizes = Instantiation(choice).static_sizes
        facts = [fact.substitute(sizes) for fact in self._given_facts]
        for fact, given in zip(facts, self._given_facts, strict=True):
            if not fact.names() and not fact.holds({}):
                raise Excluded(AssertionFails(condition=str(given)).at(self.head))
        return Assumptions(tuple(facts))

    def _elaborate_under(self, choice: Choice, program: Program) -> Elaboration:
        signature, kept = self.signature, self.elaborations
        types = Instantiation(choice)
        program.cut = self.cut(choice)
        try:
            donated(signature, self.donate)
        except Failure as failure:
            raise failure.at(self.head) from None
        session = Session(program, self.closure, self.most_steps)
        entry = program.current
        arguments: dict[str, Place] = {}
        declared: list[tuple[str, Type]] = []
        params: list[Value] = []
        for parameter in signature.parameters:
            tree = types.type_of(parameter.spec, parameter.name)
            declared.append((parameter.name, tree))
            own = [
                Value(entry, Var(leaf, parameter.name + path, parameter.span))
                for path, leaf in paths(tree)
            ]
            params.extend(own)
            arguments[parameter.name] = as_declared(parameter.spec, unflatten(tree, iter(own)))
        cells = written_cells(session, signature.writes, arguments)
        none: frozenset[str] = frozenset()
        known = none.union(*(leaf.names() for _, tree in declared for leaf in leaves(tree)))
        known = known.union(*(sizes_in(from_static(each.value)) for each in types.statics.values()))
        program.span = self.span
        try:
            with np.errstate(all="ignore"):  # static values are NumPy's and need no warnings
                result = self._run(session, arguments)
        except Failure as failure:
            session.report(failure.at(self.head))
            result = POISON
        except Poisoned:
            result = POISON
        finally:
            kept.steps += session.steps
            kept.counters.update(program.counters.values())
            kept.revealed.extend(program.revealed)
            kept.assigned.append(session.assigned)
            kept.entered |= session.entered
            for place, text in session.loops.items():
                kept.loops.setdefault((place.path, place.line, place.column), {})[text] = None
            session.findings[:] = _spelled(session.findings, declared, signature, types)
        spec = own_result(signature)
        if spec is not None:
            try:
                self._refuse_unknown(types.type_of(spec, "return"), known)
            except Failure as failure:
                raise Failure(*session.findings, *failure.diagnostics) from None
        errors = [finding for finding in session.findings if finding.severity.value == "error"]
        if errors:
            # If an error is the reason for unrolling a loop, the unrolling is not reported.
            raise Failure(*[each for each in session.findings if not isinstance(each, LargeUnroll)])
        program.span = program.return_span or self._returns_span()
        try:
            found, tree = flatten(entry, result, f"the result of `{self.name}`")
            wanted = None
            if spec is not None:
                like = as_asked(spec, found, tree, types.dtypes)
                wanted = types.type_of(spec, "return", like)
                if same_structure(tree, wanted):
                    for each, declared_leaf in zip(found, leaves(wanted), strict=True):
                        program.want(each, declared_leaf.dtype)
            results, tree = self._result(program, found, tree, wanted)
        except Failure as failure:
            last = [
                d.at(program.span)
                for d in _spelled(failure.diagnostics, declared, signature, types)
            ]
            raise Failure(*session.findings, *last) from None
        except Poisoned:
            raise Failure(*session.findings) from None
        if not results and not cells:
            lost = lost_result(self.closure.source, self.name, self.closure.node)
            if lost is not None:
                raise Failure(*session.findings, lost)
        numbers = [
            isinstance(each, PythonNumber) and value.dtype is each.dtype
            for each, value in zip(found, results, strict=True)
        ]
        shows = False
        if cells:
            void = isinstance(tree, NoneType) if spec is None else isinstance(spec, NoneSpec)
            contents = final_contents(program, cells, dict(declared))
            tree = with_written(None if void else tree, [each.type for each in contents])
            results = [*results, *contents]
            numbers += [False] * len(contents)
            shows = shows_arguments(session, cells)
        for number, unknown in enumerate(program.unknowns):
            declared.append((f"unknown{number}", unknown.type))
            params.append(unknown)
        body, _ = entry.finish(params, results)
        dims = dict.fromkeys(name for name in signature.size_names() if name in known)
        dims.update(dict.fromkeys(sorted(known)))
        self._refuse_sizes(program.devices, dims)
        function = Function(
            self.name,
            (*dims, *program.devices),
            program.facts,
            body,
            tuple(declared),
            tree,
            self.span,
            program.origins,
            tuple(program.devices),
        )
        reused = reused_keys(function, program.names, program.span)
        if reused:
            raise Failure(*session.findings, *reused)
        if signature.mesh_axes() or program.places:
            from pscdsl._src.analysis.collectives import gathers  # few kernels name a mesh

            try:
                placed = self.partitioned(function, choice)
            except Failure as failure:
                raise Failure(*session.findings, *failure.at(self.head).diagnostics) from None
            session.findings.extend(gathers(placed))
        vain = in_vain(function, signature, self.donate) if self.donate else ()
        unwritten = never_written(signature, function, cells) if cells else ()
        warnings = (*session.findings, *vain, *unwritten)
        return Elaboration.of(function, warnings, None, numbers, session.counts_given, shows)

    def _refuse_sizes(self, axes: Iterable[str], sizes: Container[str]) -> None:
        """Refuse axes of a mesh that have the name of a size."""
        for axis in axes:
            if axis in sizes:
                problem = f"names the mesh axis `{axis}`, which is a size, too"
                raise Failure(MeshAxisMisused(placement=f"_@{axis}", problem=problem).at(self.head))

    def cut(self, choice: Choice) -> tuple[tuple[Size, tuple[str, ...]], ...]:
        """Return the sizes of parameters that are cut along axes of a mesh, with these axes."""
        signature, types = self.signature, Instantiation(choice)
        if not signature.mesh_axes():
            return ()
        arrays = [
            leaf
            for parameter in signature.parameters
            for leaf in leaves(types.type_of(parameter.spec, parameter.name))
        ]
        return tuple(
            [
                (size, along)
                for leaf, placement in zip(arrays, signature.placements(choice), strict=True)
                for size, along in zip(leaf.shape, placement, strict=True)
                if along
            ]
        )

    def partitioned(
        self, function: Function, choice: Choice, mesh: Sequence[str] | None = None
    ) -> Partitioned:
        """Return the program of each device of a mesh; with the axes that it names by default."""
        from pscdsl._src.transforms.partition import mesh_axes_of, partition

        signature, result = self.signature, function.result
        assert result is not None
        arguments = signature.placements(choice)
        results = signature.result_placements(choice, result)
        axes = mesh_axes_of(function, (*arguments, *results)) if mesh is None else mesh
        return partition(function, arguments, results, axes, self._returns_span())

    def _run(self, session: Session, arguments: dict[str, Place]) -> AnyValue:
        """Return the result of the body, given its arguments by name."""
        result = self.closure.enter(session, arguments)
        session.result_cells = frozenset([c for each in located_in(result) for c in each.cells()])
        try:
            value: AnyValue = load(result)
            return value
        except Failure as failure:
            program = session.program
            place = None if program is None else program.return_span
            raise failure.at(place or self._returns_span()) from None

    def _refuse_unknown(self, wanted: Type, known: frozenset[str]) -> None:
        unknown = {
            name
            for leaf in leaves(wanted)
            for name in leaf.names()
            if name not in known and not name.startswith("_")
        }
        if unknown:
            node = self.closure.node
            returns = None if isinstance(node, ast.Lambda) else node.returns
            span = self.closure.source.span(returns or node)
            raise self._size_not_determined(sorted(unknown), span)

    def _size_not_determined(self, names: Sequence[str], span: Span) -> Failure:
        own = parameters(self.closure.node)
        like = next((name for name in names if name in own), "")
        return Failure(
            SizeNotDetermined(function=self.name, names=tuple(names), parameter=like, span=span)
        )

    def _result(
        self, program: Program, found: list[Array], tree: Type, wanted: Type | None
    ) -> tuple[list[Value], Type]:
        """Return the results in their declared types, checked."""
        if wanted is None:
            values = strong(found)
            return values, of_values(tree, values)
        problems = list(tuples_for_lists(self.name, tree, wanted))
        if problems:
            raise Failure(*(problem.labelled(*self._return_label()) for problem in problems))
        if not same_structure(tree, wanted):
            values = strong(found)
        else:
            values = [
                each if isinstance(each, Value) else taken(each, declared)
                for each, declared in zip(found, leaves(wanted), strict=True)
            ]
        problems = result_problems(program.facts, self.name, of_values(tree, values), wanted)
        if problems:
            problems = [_of_scan(program, self.source, each, values, wanted) for each in problems]
            problems = [_of_rows(self.source, each, values, wanted) for each in problems]
            problems = [self._with_binding(each) for each in problems]
            raise Failure(*(problem.labelled(*self._return_label()) for problem in problems))
        # A result that was declared with other, provably equal sizes has the declared type.
        return values, in_order_of(of_values(wanted, values), tree)

    def _with_binding(self, finding: Diagnostic) -> Diagnostic:
        """Label a finding about a part of the result with the binding of its variable."""
        node, source = self.closure.node, self.source
        if not isinstance(finding, ReturnTree) or isinstance(node, ast.Lambda):
            return finding
        value = node.body[-1].value if isinstance(node.body[-1], ast.Return) else None
        for part in finding.path.replace("]", "").split("[")[1:]:
            inside = isinstance(value, ast.Tuple) and part.isdigit() and int(part) < len(value.elts)
            value = value.elts[int(part)] if inside and isinstance(value, ast.Tuple) else None
        if not isinstance(value, ast.Name):
            return finding
        bound = bound_value(node, value.id, value.lineno)
        if bound is None:
            return finding
        is_none = finding.found == "None"
        says = says_none(bound, value.id) if is_none else f"`{value.id}` is {finding.found}"
        return finding.replaced(bound=True).labelled(Label(source.span(bound), says))

    def _returns_span(self) -> Span:
        """Return the place of the declared result; otherwise of the function's name or keyword."""
        node, source = self.closure.node, self.closure.source
        if isinstance(node, ast.Lambda):
            return source.span(node)
        if node.returns is not None:
            return source.span(node.returns)
        return self.head

    def _return_label(self) -> tuple[Label, ...]:
        node = self.closure.node
        if isinstance(node, ast.Lambda) or node.returns is None:
            return ()
        return (Label(self.closure.source.span(node.returns), "declared here"),)

    def matched(self, here: Builder, args: Args, kwargs: Kwargs) -> tuple[Match, list[Value]]:
        """Match the signature with the arguments of a call; return the match and the arrays."""
        signature = self.signature
        bound = self.closure.bind(args, kwargs)
        types: dict[str, Type] = {}
        operands: list[Value] = []
        chosen: dict[str, DType] = {}
        for parameter in signature.parameters:
            value = bound[parameter.name]
            if isinstance(parameter.spec, StaticSpec):
                types[parameter.name] = static_type(here, value)
                continue
            leaves_, tree = settle(here, parameter.spec, value, self.name, chosen)
            operands.extend(leaves_)
            types[parameter.name] = tree
        return match(signature, types, here.facts), operands

    def apply(self, here: Builder, args: Args, kwargs: Kwargs) -> AnyValue:
        """Apply to a call in another kernel, which stays a call."""
        return self.called(here, args, kwargs)[0]

    def called(self, here: Builder, args: Args, kwargs: Kwargs) -> tuple[AnyValue, bool]:
        """Return the result of a call, and whether others may hold its arguments after it."""
        here = require_program(here, f"the kernel `{self.name}`")
        fit, operands = self.matched(here, args, kwargs)
        if fit.choice in self.elaborations.active:
            raise Failure(RecursiveKernel(function=self.name))
        try:
            elaboration = self.elaboration(fit.choice)
        except Failure as failure:
            return self._declared_result(here, fit, failure), True
        except Excluded as excluded:
            raise Failure(excluded.finding.relocated(here.program.span)) from None
        callee = elaboration.program
        if elaboration.over_mesh is not None and here.program.cut is not None:
            callee = elaboration.over_mesh
        sizes = {
            name: here.program.along(name) if name in callee.mesh else fit.sizes[name]
            for name in callee.dims
        }
        self._require(here, callee, sizes, operands)
        call = Call(callee, tuple(sizes.items()))
        assert callee.result is not None
        if self.signature.mesh_axes():
            here.program.places = True
            operands = _placed(operands, self.signature.placements(fit.choice))
            results = here.bind(call, operands)
            declared = self.signature.result_placements(fit.choice, callee.result)
            results = tuple(_placed(results, declared))
        else:
            results = here.bind(call, operands)
        numbers = elaboration.numbers or [False] * len(results)
        given = [
            PythonNumber(result) if is_number else result
            for result, is_number in zip(results, numbers, strict=True)
        ]
        return unflatten(callee.result, iter(given)), elaboration.shows_arguments

    def _declared_result(self, here: Builder, fit: Match, failure: Failure) -> AnyValue:
        """Return a value of the declared result of a wrong kernel, so that callers are checked."""
        session_of(here).report(failure)
        signature = self.signature
        if signature.result is None:
            raise Poisoned
        tree = substitute_tree(signature.result_type(fit.choice), fit.sizes)
        return unflatten(tree, (zeros(here, leaf) for leaf in leaves(tree)))

    def _require(
        self, here: Builder, callee: Function, sizes: Mapping[str, Size], operands: Sequence[Value]
    ) -> None:
        """Prove the callee's preconditions; report unproven ones, then assume them."""
        facts = here.facts
        needed = list(callee.facts.facts)
        needed.extend(
            Fact("<=", callee.facts.lower_bound(name), variable(name)) for name in callee.dims
        )
        unproven = [fact for fact in needed if not facts.proves(fact.substitute(sizes))]
        if not unproven:
            return
        problems = [PreconditionNotMet.of(facts, self.name, fact, sizes) for fact in unproven]
        assumed = facts.assume(*(fact.substitute(sizes) for fact in unproven))
        if assumed.consistent() is Verdict.NO:
            raise Failure(*problems)
        findings = with_origins(Failure(*problems), operands)
        session_of(here).report(findings.at(here.program.span))
        here.program.facts = assumed


def _placed(values: Sequence[Value], placements: Sequence[Placement | None]) -> list[Value]:
    """Return values where a kernel takes or gives them."""
    return [
        value if where is None or where.is_whole else PlaceAlong(where.axes)(value)
        for value, where in zip(values, placements, strict=True)
    ]


def _of_scan(
    program: Program, source: Source, finding: Diagnostic, values: Sequence[Value], wanted: Type
) -> Diagnostic:
    """Advise on a result of `psc.scan`, whose rows are hardly meant to be summed up."""
    if not isinstance(finding, ReturnShape):
        return finding
    atom = values[[path for path, _ in paths(wanted)].index(finding.path)].atom
    found, declared = finding.found.shape, finding.declared.shape
    for at in program.current.equations:
        scan = at.primitive
        if atom not in at.outputs or not isinstance(scan, Scan) or not _calls_scan(source, at.span):
            continue
        is_carry = at.outputs.index(atom) < scan.carried
        init, *columns = [each.type.shape for each in at.inputs[scan.captured :]]
        if len(columns) == scan.carried == 1 and columns[0] == init[1:] != init:
            swapped = columns[0] if is_carry else init  # if the body gives the carry
            if swapped == declared and found == (init if is_carry else (*columns[0][:1], *init)):
                text = "the order is `psc.scan(f, init, xs)`; `init` is what the carry starts as"
                return finding.replaced(instead=text).labelled(Label(at.span, "the loop"))
        if not is_carry and found[1:] == declared:
            last = "return the final carry, which `psc.scan` gives first"
            return finding.replaced(rewrite=last)
        return finding.replaced(rewrite="") if len(found) > len(declared) else finding
    return finding


def _of_rows(
    source: Source, finding: Diagnostic, values: Sequence[Value], wanted: Type
) -> Diagnostic:
    """Advise on a result with whole rows where one element of each is enough."""
    if not isinstance(finding, ReturnShape):
        return finding
    value = values[[path for path, _ in paths(wanted)].index(finding.path)]
    meant = elements_meant(source, (value,), finding.declared.shape)
    return finding.replaced(instead=meant) if meant else finding


def _calls_scan(source: Source, span: Span) -> bool:
    """Return whether a call of `psc.scan` begins at a place."""
    if span.path != source.path:
        return False
    return source.lines[span.line - 1][span.column - 1 :].split("(")[0].endswith("scan")


def sizes_in(value: AnyValue) -> frozenset[str]:
    """Return the names of the sizes that a static value consists of."""
    if isinstance(value, Dim):
        return names(value)
    none: frozenset[str] = frozenset()
    return none.union(*map(sizes_in, value)) if is_tuple(value) else none


def spelled(
    parameters: Sequence[tuple[str, Type]], signature: Signature
) -> tuple[tuple[str, str], ...]:
    """Return code for each name of a size, by the axes of the parameters.

    `n` is `x.shape[0]` of `x: f32["n"]`, `x.shape[-1]` of `x: f32["*s n"]`, and `(x.shape[0]+3)` of
    `x: f32["n-3"]`.
    """
    behind = _behind_groups(signature)
    axes: list[tuple[Dim, str]] = []
    for parameter, tree in parameters:
        for path, leaf in paths(tree):
            last = len(leaf.shape) - behind.get(f"{parameter}{path}", 0)
            for axis, size in enumerate(leaf.shape):
                if isinstance(size, Dim):
                    number = axis if axis < last else axis - len(leaf.shape)
                    axes.append((size, f"{parameter}{path}.shape[{number}]"))
    found: dict[str, str] = {}
    for size, text in axes:
        found.setdefault(str(size), text)
    for size, text in axes:
        unknown = [name for name in names(size) if name not in found]
        if len(unknown) == 1:
            name = unknown[0]
            factor = sum(
                n for monomial, n in as_terms(size) if monomial == as_terms(variable(name))[0][0]
            )
            rest = size - factor * variable(name)
            if factor > 0 and name not in names(rest):
                found[name] = _solved(text, factor, rest, found)
    return tuple(found.items())


def _solved(text: str, factor: int, rest: Size, known: Mapping[str, str]) -> str:
    """Return the code for a name, given that `text` equals `factor` times the name plus `rest`."""
    if isinstance(rest, int):
        moved = f"{text}{-rest:+d}" if rest else text
    else:
        shown = re.sub(r"[A-Za-z_]\w*", lambda name: known.get(name[0], name[0]), str(rest))
        moved = f"{text}-{shown if str(rest).isidentifier() else f'({shown})'}"
    if factor == 1:
        return f"({moved})"
    return f"(({moved})//{factor})" if moved != text else f"({text}//{factor})"


def _behind_groups(signature: Signature) -> Mapping[str, int]:
    """Return the number of axes after any variadic group, for each array with one, by its path."""
    found: dict[str, int] = {}
    for parameter in signature.parameters:
        for path, part in walk_paths(parameter.spec, parameter.name):
            for number, dim in enumerate(
                reversed(part.dims if isinstance(part, ArraySpec) else ())
            ):
                if isinstance(dim, Variadic):
                    found[path] = number
    return found


def _spelled(
    findings: Sequence[Diagnostic],
    parameters: Sequence[tuple[str, Type]],
    signature: Signature,
    types: Instantiation,
) -> list[Diagnostic]:
    """Return findings with the spelling of the sizes, and the dtype of the kernel."""
    if not findings:
        return []
    spelling, precision = spelled(parameters, signature), _precision(signature, types)
    return [
        finding.replaced(spelling=spelling, precision=precision)
        if hasattr(finding, "precision")
        else finding.replaced(spelling=spelling)
        for finding in findings
    ]


def _precision(signature: Signature, types: Instantiation) -> DType | None:
    """Return the floating-point dtype of the result, or of the parameters if none is declared.

    None if there are several.
    """
    result = own_result(signature)
    specs = [each.spec for each in signature.parameters] if result is None else [result]
    asked = [each.dtype for spec in specs for each in arrays_of(spec)]
    found = [types.dtypes.get(each.name, each) for each in asked]
    floats = {each.real for each in found if isinstance(each, DType) and each.is_inexact}
    return floats.pop() if len(floats) == 1 else None


def taken(value: Weak, declared: ArrayType) -> Value:
    """Return a weak result in the declared dtype, if that can hold it."""
    fits = accepts_weak(declared.dtype, value.kind)
    return value.at(declared.dtype) if fits else value.default()
