"""Kernels made of kernels: `psc.grad(loss)` as something that is checked and called on its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from pscdsl._src.frontend.arguments import default_fit, result_problems
from pscdsl._src.frontend.definitions import Definition, Elaboration, Excluded
from pscdsl._src.frontend.interpreter.frames import Session
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.text.source import Source
from pscdsl._src.frontend.transformations.derivatives import jvp_, spec_of_type, tangent_tree, vjp
from pscdsl._src.frontend.transformations.rules import RuledFunction
from pscdsl._src.frontend.transformations.traced import Transformed
from pscdsl._src.frontend.trees import flatten, of_values, strong, unflatten
from pscdsl._src.frontend.values import AnyValue, Applicable, Args, Kwargs, Place, Poisoned
from pscdsl._src.ir.builder import Builder, Program, Value
from pscdsl._src.ir.program import Function, Var
from pscdsl.typing.array_types import NONE, Type, leaves, paths
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.diagnostics import Failure, Severity, Span
from pscdsl.typing.signatures import Choice, NoneSpec, OptionalSpec, Parameter, Signature, Spec

# `jvp` and `vjp` of a kernel as kernels, whose parameters include the directions.


# Typed programs made of a kernel's: one for each choice, with further parameters and results.


def elaborate(
    definition: Definition,
    choice: Choice,
    name: str,
    extra: Sequence[tuple[str, Type]],
    run: Callable[[Builder, list[AnyValue], list[AnyValue]], AnyValue],
    *,
    over_mesh: bool = False,
) -> Function:
    """Return the program of `run(here, arguments, extra)`, in the sizes of a kernel's program.

    It is that of one device, or of any number. Raises a Failure with all findings if there is none.
    """
    instance = definition.instance(choice)
    program = Program(instance.facts, definition.default_dtypes(choice))
    program.cut = definition.cut(choice) if over_mesh else None
    session = Session(program, definition.closure)
    here = program.current
    params: list[Value] = []

    def given(declared: Sequence[tuple[str, Type]]) -> list[AnyValue]:
        values: list[AnyValue] = []
        for called, tree in declared:
            own = [Value(here, Var(leaf, called + path)) for path, leaf in paths(tree)]
            params.extend(own)
            values.append(unflatten(tree, iter(own)))
        return values

    arguments = given(instance.parameters)
    more = given(extra)
    program.span = definition.span
    try:
        with np.errstate(all="ignore"):  # as where a definition is run
            result = run(here, arguments, more)
    except Poisoned:
        raise Failure(*session.findings) from None
    errors = [finding for finding in session.findings if finding.severity is Severity.ERROR]
    if errors:
        raise Failure(*errors)
    leaves, tree = flatten(here, result, f"the result of `{name}`")
    values = strong(leaves)
    body, _ = here.finish(params, values)
    declared = (*instance.parameters, *extra)
    result_tree = of_values(tree, values)
    return Function(
        name,
        (*instance.dims, *program.devices),
        program.facts,
        body,
        declared,
        result_tree,
        instance.span,
        mesh=tuple(program.devices),
    )


Mode: TypeAlias = Literal["jvp", "vjp"]


class DirectionalKernel(Definition):
    """A kernel's derivative along given directions.

    jvp  takes the arguments and their tangents: the result and its tangent
    vjp  takes the arguments and the result's cotangent: the result and their cotangents
    """

    def __init__(self, base: Definition, mode: Mode) -> None:
        super().__init__(base.closure)
        self.base = base
        self.mode: Mode = mode
        self.name = f"{mode}({base.name})"

    @property
    def signature(self) -> Signature:
        """The kernel's signature without its result, which the program gives."""
        return replace(self.base.signature, name=self.name, result=None, writes=())

    def _elaborate(self, choice: Choice) -> Elaboration:
        instance = self.base.instance(choice)
        if self.mode == "jvp":
            wanted = [(f"d_{name}", tangent_tree(tree)) for name, tree in instance.parameters]
        else:
            assert instance.result is not None
            wanted = [("cotangent", tangent_tree(instance.result))]
        taken = {name for name, _ in instance.parameters}
        extra = [(_free(name, taken), tree) for name, tree in wanted if _is_there(tree)]

        def run(here: Builder, args: list[AnyValue], more: list[AnyValue]) -> AnyValue:
            given = iter(more)
            moves = [
                next(given) if _is_there(tree) else unflatten(tree, iter(())) for _, tree in wanted
            ]
            function = _ByPosition(self.base)
            if self.mode == "jvp":
                return jvp_(here, function, tuple(args), tuple(moves))
            value, back, *_ = vjp(here, function, *args)
            return value, back.apply(here, moves, {})

        made = elaborate(self.base, choice, self.name, extra, run, over_mesh=True)
        return Elaboration.of(made)


@dataclass(frozen=True)
class _ByPosition(Applicable):
    """A kernel that takes all its arguments by position."""

    kernel: Definition

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def signature(self) -> Signature:
        return self.kernel.signature

    def apply(self, here: Builder, args: Args, kwargs: Kwargs) -> AnyValue:
        parameters = self.signature.parameters
        pairs = list(zip(parameters, args, strict=True))
        first = [value for each, value in pairs if not each.keyword_only]
        named = {each.name: value for each, value in pairs if each.keyword_only}
        return self.kernel.apply(here, first, {**named, **kwargs})


def _is_there(tree: Type) -> bool:
    """Return whether a tree has leaves."""
    return tree != NONE and any(True for _ in leaves(tree))


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


@dataclass(frozen=True)
class MadeTransformation:
    """The place of a transformation in the source: `slope = psc.grad(loss)`."""

    name: str
    source: Source
    span: Span
    """The place of the transformation."""
    name_place: Span
    """The place of the name that it gets."""


class DerivedDefinition(Definition):
    """The kernel that a transformation makes of another one, with the other's preconditions."""

    def __init__(
        self, base: Definition, transformed: Transformed, made: MadeTransformation | None = None
    ) -> None:
        super().__init__(base.closure)
        self.base = base
        self.fast_math = base.fast_math
        self.transformed = transformed
        self.made = made
        self.name = made.name if made is not None else str(transformed).removeprefix("psc.")

    @property
    def source(self) -> Source:
        """The text that contains the transformation, if it is known."""
        return super().source if self.made is None else self.made.source

    @property
    def span(self) -> Span:
        """The place of the transformation, if that is known."""
        return super().span if self.made is None else self.made.span

    @property
    def written_at(self) -> Span | None:
        """The place of the transformation, if that is known."""
        return None if self.made is None else self.made.span

    @property
    def head(self) -> Span:
        """The place that findings about the transformation itself have."""
        return super().head if self.made is None else self.made.span

    @property
    def name_place(self) -> Span:
        """The place of the name that it was given."""
        return super().name_place if self.made is None else self.made.name_place

    @property
    def signature(self) -> Signature:
        """The parameters of the base, as the transformation changes them; the result is open."""
        return replace(self.expected, result=None)

    @cached_property
    def expected(self) -> Signature:
        """The signature with the result that the transformation declares, if it declares one."""
        base = self.base
        declared = base.expected if isinstance(base, DerivedDefinition) else base.signature
        try:
            changed = self.transformed.signature(replace(declared, writes=()))
            return replace(changed, name=self.name)
        except Failure as failure:
            raise failure.at(self.head) from None

    def shown(self) -> Signature:
        """Return the signature with the type of the result, as far as it can be written down."""
        signature = self.expected
        programs = self._programs(signature)
        result = signature.result
        if not programs or not all(_fits(result, signature, *program) for program in programs):
            result = None
        if result is None and len(programs) == 1:
            result = spec_of_type(programs[0][1].result)
        return replace(signature, result=result)

    def _programs(self, signature: Signature) -> list[tuple[Choice, Function]]:
        found: list[tuple[Choice, Function]] = []
        for choice in signature.choices() or ():
            elaboration = self.elaborations.known.get(choice)
            if isinstance(elaboration, Elaboration):
                found.append((choice, elaboration.program))
        return found

    def _assumed(self, choice: Choice) -> Assumptions:
        return self._root.instance(self._choice_of_root(choice)).facts

    @property
    def _root(self) -> Definition:
        """The kernel that was written."""
        base = self.base
        return base._root if isinstance(base, DerivedDefinition) else base

    def _choice_of_root(self, choice: Choice) -> Choice:
        """Return the choice of the original kernel: omitted parameters have their defaults."""
        if not self.left_out:
            return choice
        root, given = self._root, dict(choice.given)
        parts = {field.name: dict(getattr(choice, field.name)) for field in fields(Choice)}
        for parameter in root.signature.parameters:
            if parameter.name not in self.left_out:
                continue
            if not _takes_none(parameter):
                parts["given"].pop(parameter.name, None)
            if not given.get(parameter.name):
                default = default_fit(root.closure, root.signature, parameter).choice
                for each, known in parts.items():
                    known.update({**dict(getattr(default, each)), **known})
        return Choice(**{each: tuple(known.items()) for each, known in parts.items()})

    @property
    def _taking_none(self) -> set[str]:
        """The parameters of the kernel that was written that may be None."""
        return {
            parameter.name
            for parameter in self._root.signature.parameters
            if _takes_none(parameter)
        }

    @cached_property
    def left_out(self) -> frozenset[str]:
        """The parameters that None leaves out; see `batched_signature`."""
        root = self._root
        plain = {parameter.name for parameter in root.signature.parameters} - self._taking_none
        none = {name for name, value in root.defaults.items() if value is None}
        return frozenset(
            parameter.name
            for parameter in self.signature.parameters
            if _takes_none(parameter) and parameter.name in plain | none
        )

    @property
    def defaults(self) -> Mapping[str, AnyValue]:
        """The values of parameters that are not given."""
        return {**super().defaults, **dict.fromkeys(self.left_out)}

    def _run(self, session: Session, arguments: dict[str, Place]) -> AnyValue:
        assert session.program is not None
        given = list(self.signature.parameters)
        absent = [each for each in given if arguments[each.name] is None]
        kwargs = {
            each.name: arguments[each.name]
            for each in given
            if each.keyword_only and (each not in absent or each.name not in self.left_out)
        }
        positional = [each for each in given if not each.keyword_only]
        while positional and positional[-1] in absent and positional[-1].name in self.left_out:
            positional.pop()
        for parameter in positional:
            if parameter in absent and parameter.name in self.left_out - self._taking_none:
                what = (
                    f"a call that leaves out `{parameter.name}`, but gives `{positional[-1].name}`"
                )
                raise Excluded(
                    NotSupported(what=what, instead=f"give `{parameter.name}` for each row")
                )
        args = [arguments[parameter.name] for parameter in positional]
        says = "" if self.made is None else "is made here"
        return self.transformed.applied(session.program.current, args, kwargs, says)

    def apply(self, here: Builder, args: Args, kwargs: Kwargs) -> AnyValue:
        """Apply the transformation at the place of the call in a kernel."""
        return self.transformed.apply(here, args, kwargs)


def _takes_none(parameter: Parameter) -> bool:
    return isinstance(parameter.spec, OptionalSpec | NoneSpec)


def _fits(result: Spec | None, signature: Signature, choice: Choice, made: Function) -> bool:
    """Return whether a program's result has the declared type."""
    if result is None or made.result is None:
        return False
    wanted = signature.result_type(choice, made.result)
    return not result_problems(made.facts, made.name, made.result, wanted)


def derived(
    transformed: Transformed, made: MadeTransformation | None = None
) -> DerivedDefinition | None:
    """Return the kernel that a transformation makes; None if its function has no signature."""
    base = signed(transformed.function)
    return None if base is None else DerivedDefinition(base, transformed, made)


def derived_kernel(transformed: Transformed) -> Definition | Transformed:
    """Return `psc.kernel` of it; a Failure if its function should have a signature."""
    found = derived(transformed)
    if found is not None:
        return found
    inner: AnyValue = transformed
    while isinstance(inner, Transformed | RuledFunction):
        inner = inner.function
    if isinstance(inner, Closure):
        Definition(inner).signature  # noqa: B018  reports the missing declarations
    return transformed


def signed(function: AnyValue) -> Definition | None:
    """Return the kernel whose signature a function has; None if its parameters are undeclared."""
    match function:
        case Definition():
            return function
        case Transformed():
            return derived(function)
        case RuledFunction():
            return signed(function.function)
        case Closure():
            definition = Definition(function)
            try:
                return definition if definition.signature.parameters else None
            except (Failure, Poisoned):
                return None
        case _:
            inner = getattr(function, "definition", None)  # of a primitive of the user's own
            return inner if isinstance(inner, Definition) else None
