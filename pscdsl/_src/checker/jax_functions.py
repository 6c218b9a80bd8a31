"""Shapes of JAX functions: those with jaxtyping's annotations, for every size.

A finding is an error where it occurs for sizes that the annotations admit: the function is
elaborated once more with numbers for its sizes.  What cannot be followed is no error.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pscdsl._src.checker.check import check_definition
from pscdsl._src.dialects.jax.definitions import JaxDefinition
from pscdsl._src.dialects.jax.unknown import Annotated
from pscdsl._src.frontend.annotations import renamed
from pscdsl._src.frontend.definitions import Excluded
from pscdsl._src.frontend.interpreter.constructors import after_construction
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.modules.scope import StaticModule
from pscdsl._src.frontend.text.source import FunctionStatement, Source
from pscdsl._src.frontend.values import AnyValue, Poisoned
from pscdsl._src.ir.program import Function
from pscdsl.typing.codes.limits import ChoicesSampled, UnknownValue
from pscdsl.typing.diagnostics import Diagnostic, Failure, Severity
from pscdsl.typing.dims import Dim
from pscdsl.typing.dims import names as size_names
from pscdsl.typing.signatures import RecordSpec, Signature, declared_dims, trees_of, walk_paths

PROVEN: Final = frozenset(
    "PSC300 PSC301 PSC303 PSC310 PSC311 PSC312 PSC313 PSC315 PSC316 PSC331 PSC332 PSC508".split()
)
"""Findings that are faults of the program if they occur for numbers in place of sizes."""
_SIZES: Final = (3, 5, 7, 11, 13, 17, 19, 23)


@dataclass(frozen=True)
class JaxFunction:
    """An annotated function, and what was found."""

    name: str
    node: FunctionStatement
    found: tuple[Diagnostic, ...] = ()
    """Faults that occur for some sizes."""
    unknown: str = ""
    """The reason why it is neither proven nor wrong; empty if it is one of them."""
    programs: tuple[Function, ...] = ()
    """Its programs for the alternatives that are right, with the parameters as written."""
    variants: tuple[JaxDefinition, ...] = ()
    """A definition for each combination of alternatives, if it is proven."""

    @property
    def is_right(self) -> bool:
        """True if it is proven for every size."""
        return not self.found and not self.unknown

    def counted(self, source: Source) -> Annotated:
        """Return what is counted of it."""
        place = source.span(self.node)
        is_wrong = bool(self.found)
        return Annotated(place.path, place.line, place.column, self.name, is_wrong, self.unknown)


def annotated_functions(module: StaticModule) -> Iterator[JaxFunction]:
    """Yield the annotated functions and methods of a file, checked."""
    for node in module.source.tree.body:
        if isinstance(node, FunctionStatement) and is_annotated(node):
            yield checked_function(module, node)
        elif isinstance(node, ast.ClassDef):
            for each in node.body:
                if not isinstance(each, ast.FunctionDef) or each.name == "__init__":
                    continue
                if is_annotated(each, of_class=True):
                    find = partial(_method, module, node, each)
                    yield _checked(module, f"{node.name}.{each.name}", each, find, node.name)


def checked_function(module: StaticModule, node: FunctionStatement) -> JaxFunction:
    """Return an annotated function of a file, checked."""
    return _checked(module, node.name, node, partial(module.function, node))


def _method(module: StaticModule, cls: ast.ClassDef, node: ast.FunctionDef) -> AnyValue:
    """Return a method of a class; a Failure if the class is none that is followed."""
    value = module.own(cls.name)
    if not isinstance(value, RecordClass):
        raise Failure(UnknownValue(name=cls.name, span=module.source.span(cls)))
    member = value.members.get(node.name)
    return None if member is None or member.kind != "method" else member.value


def is_annotated(node: FunctionStatement, *, of_class: bool = False) -> bool:
    """Return whether all parameters have annotations, one of them with a shape."""
    spec = node.args
    given = [*spec.posonlyargs, *spec.args][of_class:] + spec.kwonlyargs
    if spec.vararg or spec.kwarg or not all(each.annotation for each in given):
        return False
    return any(each.annotation is not None and _has_shape(each.annotation) for each in given)


def _has_shape(annotation: ast.expr) -> bool:
    """Return whether an annotation has a part such as `Float[Array, "n d"]`."""
    return any(
        isinstance(each, ast.Subscript)
        and isinstance(each.slice, ast.Tuple)
        and len(each.slice.elts) == 2
        and isinstance(each.slice.elts[1], ast.Constant | ast.JoinedStr)
        for each in ast.walk(annotation)
    )


def _checked(
    module: StaticModule,
    name: str,
    node: FunctionStatement,
    found_value: Callable[[], AnyValue],
    owner: str = "",
) -> JaxFunction:
    try:
        value = found_value()
    except Failure as failure:
        return JaxFunction(name, node, unknown=_cause(failure.diagnostics[0]))
    if not isinstance(value, Closure):
        return JaxFunction(name, node, unknown="its decorators are not known")
    verdict = _verdict(name, node, JaxDefinition(value, owner=owner))
    cls = module.own(owner) if owner else None
    if not isinstance(cls, RecordClass) or "__init__" not in cls.members or verdict.is_right:
        return verdict
    try:  # what its fields are is up to the constructor
        made = _verdict(name, node, JaxDefinition(after_construction(cls, value)))
    except Failure as failure:
        made = JaxFunction(name, node, unknown=_cause(failure.diagnostics[0]))
    made = replace(made, programs=())  # of other parameters
    if made.is_right:
        return made
    places = {(each.code, replace(each.span, call_site=None)) for each in made.found}
    found = tuple(each for each in verdict.found if (each.code, each.span) in places)
    unknown = made.unknown or _cause((*made.found, *verdict.found)[0])
    return replace(verdict, found=found, unknown="" if found else unknown)


def _verdict(name: str, node: FunctionStatement, definition: JaxDefinition) -> JaxFunction:
    """Return what is found of a definition with annotations."""
    try:
        variants = definition.variants()
    except Failure as failure:
        return JaxFunction(name, node, unknown=_cause(failure.diagnostics[0]))
    except Poisoned:
        return JaxFunction(name, node, unknown="its annotations are not known")
    reasons: list[Diagnostic] = []
    programs: list[Function] = []
    for each in variants:
        found, status = check_definition(each)
        if status == "ok":
            for choice in each.signature.choices() or ():
                with suppress(Excluded):  # it raises before it computes
                    programs.append(each.instance(choice))
        else:
            errors = [x for x in found if x.severity is Severity.ERROR]
            proven = _confirmed(each, errors)
            if proven:
                return JaxFunction(name, node, tuple(proven))
            reasons.extend(errors or found)
        reasons.extend(x for x in found if isinstance(x, ChoicesSampled))
    if reasons:
        return JaxFunction(name, node, unknown=_cause(reasons[0]), programs=tuple(programs))
    return JaxFunction(name, node, programs=tuple(programs), variants=tuple(variants))


def _cause(finding: Diagnostic) -> str:
    return f"{finding.code}: {finding.message()}"


def _confirmed(definition: JaxDefinition, errors: list[Diagnostic]) -> list[Diagnostic]:
    """Return the findings that occur also for numbers in place of the sizes.

    A size that only fields of a record name is meant to be whatever fits: a finding counts if it
    occurs for each size in its place that the record does not name.
    """
    if not any(each.code in PROVEN for each in errors):
        return []
    signature = definition.signature
    if any(True for each in signature.parameters for _ in trees_of(each.spec)):
        return []  # their arrays are examples
    names = signature.size_names()
    pairs = _loose_pairs(signature)
    for first in range(2):
        sizes = {name: _SIZES[(at + first) % len(_SIZES)] for at, name in enumerate(names)}
        tried = [sizes, *({**sizes, own: sizes[other]} for own, other in pairs)]
        found = errors
        for each in tried:
            found = found and _occurring(definition, found, each)
        if found:
            return found
    return []


def _occurring(
    definition: JaxDefinition, errors: list[Diagnostic], sizes: Mapping[str, int]
) -> list[Diagnostic]:
    """Return the findings that occur for these sizes."""
    concrete = _at(definition.signature, sizes)
    found, _ = check_definition(JaxDefinition(definition.closure, concrete, definition.method_of))
    places = {(x.code, x.span) for x in found if x.code in PROVEN and not x.is_sampled}
    return [each for each in errors if (each.code, each.span) in places]


def _loose_pairs(signature: Signature) -> list[tuple[str, str]]:
    """Return sizes that only fields of a record name, each with sizes that the record does not."""
    inside: list[frozenset[str]] = []
    outside = set[str]()
    for parameter in signature.parameters:
        found = frozenset[str]().union(
            *(
                size_names(dim)
                for _, part in walk_paths(parameter.spec, "")
                for dim in declared_dims(part)
                if isinstance(dim, Dim)
            )
        )
        if any(isinstance(part, RecordSpec) for _, part in walk_paths(parameter.spec, "")):
            inside.append(found)
        else:
            outside |= found
    known = outside.union(*inside)
    return [
        (own, other)
        for found in inside
        for own in sorted(found - outside)
        for other in sorted(known - found)
    ]


def _at(signature: Signature, sizes: Mapping[str, int]) -> Signature:
    """Return a signature with numbers in place of sizes."""
    env = {name: (size,) for name, size in sizes.items()}
    return replace(
        signature,
        parameters=tuple(
            replace(each, spec=renamed(each.spec, env)) for each in signature.parameters
        ),
        result=None if signature.result is None else renamed(signature.result, env),
    )
