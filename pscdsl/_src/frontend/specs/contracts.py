"""Annotations of inlined helpers: what they say of arrays is checked at each call.

Sizes that a helper names belong to that call: they are bound by its arguments.  Annotations that
say nothing of arrays (`int`, `Callable`, a class of the user's) are left alone; but a parameter
that is given a size is the size of this name.  Of a record that is generic in a variable of
Python's, `Moments[T]`, it is checked that it is one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pscdsl._src.frontend.interpreter.frames import Frame
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.specs.annotations import named_trees, spec_of
from pscdsl._src.frontend.text.source import FunctionNode, with_defaults
from pscdsl._src.frontend.trees.arguments import result_problems, settle, static_type
from pscdsl._src.frontend.trees.pytrees import flatten
from pscdsl._src.frontend.values.values import Poisoned, RecordValue, is_poisoned
from pscdsl._src.ir.builder import Builder, Program
from pscdsl.typing.array_types import ArrayType, Type, map_leaves
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Diagnostic, Failure, Label, Span
from pscdsl.typing.dims import Dim, Size, names, substitute, variable
from pscdsl.typing.signatures import (
    ArraySpec,
    Parameter,
    RecordSpec,
    Signature,
    Spec,
    StaticSpec,
    TreeSpec,
    trees_of,
    walk_paths,
)
from pscdsl.typing.unify import Match, match

FunctionStatement = ast.FunctionDef | ast.AsyncFunctionDef


class Contract:
    """What a helper's annotations say."""

    def __init__(
        self, signature: Signature, result_span: Span, records: Sequence[Parameter] = ()
    ) -> None:
        self.signature = signature
        self.records = records
        """The parameters of which it is only said which record they are."""
        self.result_span = result_span
        """Where the result is declared."""

    def arguments(self, here: Builder, given: Mapping[str, Any]) -> Match | None:
        """Check the arguments; how the names of sizes are bound, if they all are."""
        for parameter in self.records:
            self._is_record(here, parameter, given[parameter.name])
        types: dict[str, Type] = {}
        chosen: dict[str, Any] = {}
        for parameter in self.signature.parameters:
            value = given[parameter.name]
            if is_poisoned(value):
                return None
            found = settle(here, parameter.spec, value, self.signature.name, chosen)
            types[parameter.name] = found[1]
        try:
            fit = match(self.signature, types, here.facts)
        except Failure as failure:
            if any(d.code == "PSC304" for d in failure.diagnostics):
                return None  # a size that the arguments do not bind: nothing can be compared
            spans = (Label(p.span, "declared here") for p in self.signature.parameters)
            raise failure.labelled(*spans) from None
        numbers = {n: v for n, v in given.items() if _is_size(v)}
        return Match(fit.choice, {**numbers, **fit.sizes})

    def _is_record(self, here: Builder, parameter: Parameter, value: Any) -> None:
        """Refuse what is no instance of the class that is declared, nor of one derived from it."""
        spec = parameter.spec
        assert isinstance(spec, RecordSpec)
        if is_poisoned(value) or (
            isinstance(value, RecordValue)
            and any(each.name == spec.record for each in value.cls.ancestry())
        ):
            return
        _, tree = flatten(here, value, f"an argument of `{self.signature.name}`")
        alone = Signature(self.signature.name, (parameter,), None)
        try:
            match(alone, {parameter.name: tree}, here.facts)
        except Failure as failure:
            raise failure.labelled(Label(parameter.span, "declared here")) from None

    def result(self, here: Builder, fit: Match, value: Any) -> None:
        """Check what is returned."""
        spec = self.signature.result
        if spec is None or is_poisoned(value):
            return
        found = settle(here, spec, value, self.signature.name, {})
        wanted = self.signature.result_type(fit.choice, found[1])
        declared = map_leaves(wanted, lambda leaf: _known(leaf, fit.sizes))
        problems = result_problems(here.facts, self.signature.name, found[1], declared)
        if problems:
            raise Failure(*problems)


def _is_size(value: Any) -> bool:
    return isinstance(value, int | Dim) and not isinstance(value, bool)


def _known(array: ArrayType, sizes: Mapping[str, Size]) -> ArrayType:
    """The type with sizes in place of names, and `_` for what contains another name."""
    shape = tuple(
        substitute(size, sizes) if names(size) <= sizes.keys() else variable("_")
        for size in array.shape
    )
    return ArrayType(array.dtype, shape)


def contract(frame: Frame, node: FunctionNode) -> Contract | None:
    """The contract of a helper; None if its annotations say nothing of arrays."""
    if isinstance(node, ast.Lambda):
        return None
    # By scope too: a file that is loaded as two modules has one source, and two classes of a name.
    cache = frame.source.contracts.setdefault(frame.scope, {})
    if id(node) not in cache:
        cache[id(node)] = _read(frame, node)
        frame.source.keep(node)
    return cache[id(node)]


def _read(frame: Frame, node: FunctionStatement) -> Contract | None:
    spec = node.args
    parameters: list[Parameter] = []
    records: list[Parameter] = []
    for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
        found = None if each.annotation is None else _spec(frame, each.annotation)
        if each.annotation is None or found is None:
            continue
        span = frame.source.span(each.annotation)
        if _says_of_arrays(found):
            parameters.append(Parameter(each.arg, named_trees(found, each.arg), span=span))
        elif isinstance(found, RecordSpec) and found.types:
            records.append(Parameter(each.arg, found, span=span))
    result = None if node.returns is None else _spec(frame, node.returns)
    if result is not None and not _says_of_arrays(result):
        result = None
    if not parameters and not records and result is None:
        return None
    place = frame.source.span(node if node.returns is None else node.returns)
    signature = Signature(node.name, tuple(parameters), result)
    if signature.unbound():  # which tree it is, nobody says
        signature = replace(signature, result=None)
    return Contract(signature, place, records)


def _spec(frame: Frame, annotation: ast.expr) -> Spec | None:
    assert frame.closure is not None
    quiet = frame.closure.annotation_frame()
    try:
        return spec_of(quiet, annotation)
    except (Failure, Poisoned):
        return None


def _says_of_arrays(spec: Spec) -> bool:
    if any(not each.bounded for each in trees_of(spec)):
        return False  # a type variable of Python's, which says nothing of arrays
    return any(isinstance(part, ArraySpec | TreeSpec) for _, part in walk_paths(spec, ""))


# Defaults of a kernel's parameters: each is an argument that its own annotation takes.


def default_problems(closure: Closure, signature: Signature) -> Iterator[Diagnostic]:
    """What a call without the argument would report, at the default.

    Sizes that several arguments share are for calls to compare: a default need not fit all others.
    """
    places = {each.arg: default for each, default in with_defaults(closure.node.args)}
    for parameter in signature.parameters:
        if not parameter.has_default:
            continue
        try:
            default_fit(closure, signature, parameter)
        except Failure as failure:
            span = closure.source.span(places[parameter.name])
            yield from (diagnostic.at(span) for diagnostic in failure.diagnostics)
        except Poisoned:
            pass


def default_fit(closure: Closure, signature: Signature, parameter: Parameter) -> Match:
    """How a default fits its parameter; a Failure if it does not, Poisoned if it is unknown."""
    here = Program(Assumptions()).current
    value = closure.defaults[parameter.name]
    if isinstance(parameter.spec, StaticSpec):
        tree = static_type(here, value)
    else:
        tree = settle(here, parameter.spec, value, signature.name, {})[1]
    alone = Signature(signature.name, (parameter,), None)
    return match(alone, {parameter.name: tree}, here.facts)
