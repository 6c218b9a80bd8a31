"""Functions of JAX programs as definitions: with JAX's promotion, and jaxtyping's classes."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Final

from pscdsl._src.dialects.jax.open_types import shown, typings
from pscdsl._src.frontend.annotations import replaced
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.jax_annotations import in_dialect
from pscdsl._src.frontend.modules.jax_programs import enables_x64
from pscdsl._src.frontend.values import AnyValue, External, Place, RecordValue, with_hash
from pscdsl._src.ir.jax_promotion import JaxPromotion
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.python_containers import is_tuple
from pscdsl.typing.signatures import (
    Anonymous,
    ArraySpec,
    DimSpec,
    OpenSpec,
    Parameter,
    RecordSpec,
    Signature,
    Spec,
    StaticSpec,
    TreeSpec,
    TupleSpec,
    UnionSpec,
    alternative_count,
    alternatives,
    arrays_of,
    spec_parts,
    trees_of,
    walk_paths,
    with_spec_parts,
)

MOST_ALTERNATIVES: Final = 16
"""Of a function with more combinations of alternatives, some are tried."""
MOST_CHOICES: Final = 32
"""A function with more choices is not tried with types that nobody wrote."""


def _is_of_integers(spec: Spec) -> bool:
    """Return whether a type is of integers only: one, several, or none."""
    parts = [part for _, part in walk_paths(spec, "")]
    if any(isinstance(part, OpenSpec | RecordSpec | TreeSpec) for part in parts):
        return False
    arrays = [part for part in parts if isinstance(part, ArraySpec)]
    return bool(arrays) and all(part.python == "int" for part in arrays)


class JaxDefinition(Definition):
    """A function of a JAX program; `declared` is one of the signatures that it admits."""

    def __init__(
        self, closure: Closure, declared: Signature | None = None, owner: str = ""
    ) -> None:
        super().__init__(closure)
        self.method_of = owner
        self.jax = self.promotion = JaxPromotion(enables_x64(closure.source))
        self._declared = declared
        self.tried_with = ""
        """The types that were chosen for parameters without one; empty if all have one."""
        self.outside: dict[str, None] = {}
        """The functions of other libraries that are called, whose results are unknown."""

    def variants(self) -> list[JaxDefinition]:
        """Return a definition for each combination of alternatives.

        If they are many, the alternatives are left open.
        """
        signature = self._read_signature()
        specs = [each.spec for each in signature.parameters]
        if prod(map(alternative_count, specs)) > MOST_ALTERNATIVES:
            return [self]
        return [self._with_specs(signature, each) for each in product(*map(alternatives, specs))]

    @property
    def has_many_choices(self) -> bool:
        """True if it has many choices besides integers that are sizes."""
        try:
            signature = self.signature
            return (signature.with_sizes() or signature).combinations() > MOST_CHOICES
        except Failure:
            return False

    def typings(self) -> Iterator[JaxDefinition]:
        """Yield definitions with types for parameters without one; itself if all have one."""
        declared = self._read_signature()
        for each in typings(declared):
            made = JaxDefinition(self.closure, each, self.method_of)
            made.tried_with = shown(declared, each)
            yield made

    def _with_specs(self, signature: Signature, specs: Sequence[Spec]) -> JaxDefinition:
        pairs = zip(signature.parameters, specs, strict=True)
        parameters = tuple([replace(each, spec=spec) for each, spec in pairs])
        made = replace(signature, parameters=parameters)
        return JaxDefinition(self.closure, made, self.method_of)

    def _read_signature(self) -> Signature:
        if self._declared is not None:
            return self._declared
        signature = super()._read_signature()
        result = signature.result
        return replace(
            signature,
            parameters=tuple(
                [
                    replace(each, spec=in_dialect(each.spec, self.promotion))
                    for each in signature.parameters
                ]
            ),
            result=None if result is None else in_dialect(result, self.promotion),
        )

    def _spec_of(self, frame: Frame, parameter: ast.arg) -> Spec:
        """Return the specification of a parameter; its default where that is no array's type.

        Not every integer is meant by `int`, but the default is.
        """
        defaults = self.closure.defaults
        try:
            spec = super()._spec_of(frame, parameter)
        except Failure:
            if parameter.arg not in defaults:
                raise
        else:
            if not _is_of_integers(spec) or parameter.arg not in defaults:
                return spec
        return StaticSpec("Any", (with_hash(defaults[parameter.arg]),))

    def _unannotated(self, parameter: ast.arg) -> Spec | None:
        """Return a type that is left open: a method's own parameters all have annotations.

        Others are those of a constructor, whose default is tried if it has one.
        """
        default = self.closure.defaults
        known = (with_hash(default[parameter.arg]),) if parameter.arg in default else ()
        return None if self.method_of else OpenSpec(parameter.arg, "array", known)

    def _result_spec(
        self, frame: Frame, returns: ast.expr, parameters: Sequence[Parameter]
    ) -> Spec:
        """Return the specification of the result.

        A tree that no parameter has is left open, and so are a size that only one axis names, and
        the fields of an instance whose constructor decides about them.
        """
        given = {tree.name for each in parameters for tree in trees_of(each.spec)}
        spec = super()._result_spec(frame, returns, parameters)
        own = Counter(dim for part in arrays_of(spec) for dim in part.dims)
        used = {each.name for each in parameters}
        used.update(Signature("", tuple(parameters), None).size_names())

        def known(part: Spec) -> Spec:
            if isinstance(part, TreeSpec) and part.name not in given:
                return OpenSpec(str(part), "object")
            if not isinstance(part, ArraySpec):
                return part
            return part.with_dims([Anonymous() if is_open(dim) else dim for dim in part.dims])

        def is_open(dim: DimSpec) -> bool:
            return (
                isinstance(dim, Dim)
                and own[dim] == 1
                and str(dim).isidentifier()
                and str(dim) not in used
            )

        return replaced(_with_instances(spec), known)

    def _require_defaults(
        self, frame: Frame, signature: Signature, problems: list[Diagnostic]
    ) -> None:
        """Raise a Failure for problems with the annotations: of a default, nothing is checked."""
        del signature
        problems.extend(frame.session.findings)
        if problems:
            raise Failure(*problems)

    def _run(self, session: Session, arguments: dict[str, Place]) -> AnyValue:
        """Return the result of the body without the parts that may be anything."""
        result = super()._run(session, arguments)
        assert session.program is not None
        self.outside.update(dict.fromkeys(session.program.outside))
        spec = self.signature.result
        if spec is None:
            return _without_unknown(result)
        return _without_open(spec, result)


def _with_instances(spec: Spec) -> Spec:
    """Return a specification that leaves open what constructors decide about instances."""
    if isinstance(spec, RecordSpec):
        cls = spec.record.definition
        if isinstance(cls, RecordClass) and "__init__" in cls.members:
            return OpenSpec(str(spec), "instance", (cls,))
    parts = spec_parts(spec)
    return with_spec_parts(spec, [*map(_with_instances, parts)]) if parts else spec


def _without_open(spec: Spec, value: AnyValue) -> AnyValue:
    """Return a result with None in place of the parts that may be anything."""
    match spec, value:
        case OpenSpec(kind="function" | "object"), _:
            return None
        case OpenSpec(kind="instance", default=default), RecordValue() if default[0] in [
            *value.cls.ancestry()
        ]:
            return None
        case OpenSpec(kind="instance"), External():
            return None
        case UnionSpec(), _:
            return _without_unknown(value)
        case TupleSpec(items=items), _ if is_tuple(value) and len(value) == len(items):
            return tuple([_without_open(*each) for each in zip(items, value, strict=True)])
        case RecordSpec(fields=fields), RecordValue() if spec.record.definition is value.cls:
            return RecordValue(
                value.cls,
                {name: _without_open(each, value.fields[name]) for name, each in fields},
            )
        case _:
            return value


def _without_unknown(value: AnyValue) -> AnyValue:
    """Return a result, of which nothing is declared, with None in place of what is unknown."""
    if isinstance(value, External):
        return None
    if isinstance(value, RecordValue):
        fields = {name: _without_unknown(each) for name, each in value.fields.items()}
        return RecordValue(value.cls, fields)
    return (
        tuple(map(_without_unknown, value))
        if value.__class__ is tuple and is_tuple(value)
        else value
    )
