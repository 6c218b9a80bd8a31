"""Shapes of JAX functions: those with jaxtyping's annotations, for every size.

A finding is an error where it occurs for sizes that the annotations admit: the function is
elaborated once more with numbers for its sizes.  What cannot be followed is no error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from pscdsl._src.checker.check import check_definition
from pscdsl._src.dialects.jax.definitions import JaxDefinition
from pscdsl._src.dialects.jax.unknown import Annotated
from pscdsl._src.frontend.annotations import renamed
from pscdsl._src.frontend.definitions import Excluded
from pscdsl._src.frontend.interpreter.constructors import after_construction
from pscdsl._src.frontend.interpreter.expressions import closure, evaluate
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.jax_annotations import is_abstract
from pscdsl._src.frontend.modules.scope import StaticModule, decorated
from pscdsl._src.frontend.text.source import FunctionStatement, Source
from pscdsl._src.frontend.values import Poisoned
from pscdsl._src.ir.program import Function
from pscdsl.typing.codes.limits import ChoicesSampled, UnknownValue
from pscdsl.typing.diagnostics import Diagnostic, Failure, Severity, Span
from pscdsl.typing.dims import Dim
from pscdsl.typing.dims import names as size_names
from pscdsl.typing.signatures import RecordSpec, Signature, declared_dims, trees_of, walk_paths

PROVEN: Final = frozenset(
    (
        "PSC124 PSC300 PSC301 PSC303 PSC310 PSC311 PSC312 PSC313 PSC315 PSC316 PSC331 PSC332 "
        "PSC504 PSC505 PSC508"
    ).split()
)
"""Findings that are faults of the program if they occur for numbers in place of sizes."""
MOST_STEPS: Final = 60_000
"""The most work for the types of one function that are chosen."""
_OF_THE_LANGUAGE: Final = ("PSC1", "PSC2", "PSC9")
"""The families of findings that depend little on types."""
_MOST_CONFIRMING: Final = 500_000
"""The most work to confirm the findings in one function."""
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
    """The definitions that are proven, one for each combination of alternatives."""
    tried: str = ""
    """The types that were chosen for parameters without one."""
    suspected: tuple[Diagnostic, ...] = ()
    """Faults that occur for the types that are tried first."""
    outside: tuple[str, ...] = ()
    """The functions of other libraries that it calls, which are not followed."""

    @property
    def is_right(self) -> bool:
        """True if it is proven for every size."""
        return not self.found and not self.unknown

    def counted(self, source: Source, errors: Iterable[Span]) -> Annotated:
        """Return what is counted of it: it is wrong if one of the errors is in it."""
        place = source.span(self.node)
        is_wrong = any(
            each.path == place.path and place.line <= each.line <= place.end_line for each in errors
        )
        own = (self.name, is_wrong, self.unknown, self.tried, self.outside)
        return Annotated(place.path, place.line, place.column, *own)


def annotated_functions(module: StaticModule) -> Iterator[JaxFunction]:
    """Yield the annotated functions and methods of a file, checked, but those without a body."""
    for node in module.source.tree.body:
        if isinstance(node, FunctionStatement) and is_annotated(node):
            yield checked_function(module, node)
        elif isinstance(node, ast.ClassDef):
            for each in node.body:
                if not isinstance(each, ast.FunctionDef) or each.name == "__init__":
                    continue
                is_static = any(_named(module, d) == _STATIC for d in each.decorator_list)
                if is_annotated(each, of_class=not is_static):
                    yield checked_function(module, each, node, is_static=is_static)


_STATIC: Final = "builtins.staticmethod"


def _named(module: StaticModule, decorator: ast.expr) -> str:
    """Return the qualified name of a decorator; empty if it has none."""
    return str(getattr(evaluate(module.frame(), decorator), "name", ""))


def is_annotated(node: FunctionStatement, *, of_class: bool = False) -> bool:
    """Return whether all parameters have annotations, one of them with a shape."""
    if is_abstract(node):
        return False
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


def checked_function(
    module: StaticModule,
    node: FunctionStatement,
    cls: ast.ClassDef | None = None,
    *,
    is_static: bool = False,
) -> JaxFunction:
    """Check a function as it is written, whatever decorators make of it.

    Those that are not known may call it with other arguments: nothing is wrong then.
    """
    name = node.name if cls is None else f"{cls.name}.{node.name}"
    owner = "" if cls is None or is_static else cls.name
    frame = module.frame()
    value = closure(frame, node, node.name)
    may_be_wrong = all(
        _named(module, each) == _STATIC or _keeps(module, each, value)
        for each in node.decorator_list
    )
    try:
        of_class = module.own(owner) if owner else None
    except Failure as failure:
        return JaxFunction(name, node, unknown=cause(failure.diagnostics[0]))
    if owner and not isinstance(of_class, RecordClass):
        return JaxFunction(name, node, unknown=cause(UnknownValue(name=owner)))
    verdict = _verdict(name, node, lambda: JaxDefinition(value, owner=owner))
    if not may_be_wrong and verdict.found:
        verdict = replace(verdict, found=(), unknown=cause(verdict.found[0]))
    has_constructor = isinstance(of_class, RecordClass) and "__init__" in of_class.members
    if not isinstance(of_class, RecordClass) or not has_constructor or verdict.is_right:
        return verdict
    # What its fields are is up to the constructor.
    made = _verdict(name, node, lambda: JaxDefinition(after_construction(of_class, value)))
    made = replace(made, programs=())  # of other parameters
    if made.is_right:
        return made
    places = {
        (each.code, replace(each.span, call_site=None)) for each in (*made.found, *made.suspected)
    }
    found = tuple(each for each in verdict.found if (each.code, each.span) in places)
    unknown = made.unknown or cause((*made.found, *verdict.found)[0])
    return replace(verdict, found=found, unknown="" if found else unknown)


def _verdict(
    name: str, node: FunctionStatement, defined: Callable[[], JaxDefinition]
) -> JaxFunction:
    """Return what is found of a definition with annotations."""
    try:
        variants = defined().variants()
    except Failure as failure:
        return JaxFunction(name, node, unknown=cause(failure.diagnostics[0]))
    except Poisoned:
        return JaxFunction(name, node, unknown="its annotations are not known")
    unknown = ""
    chosen: dict[str, None] = {}
    outside: dict[str, None] = {}
    suspected: tuple[Diagnostic, ...] = ()
    programs: list[Function] = []
    right: list[JaxDefinition] = []
    for variant in variants:
        reason, steps = "", 0
        seen = set[frozenset[tuple[str, Span]]]()
        for each in variant.typings():
            if steps > MOST_STEPS or (unknown and each.tried_with):  # it has no errors
                unknown = unknown or reason
                break
            if each.tried_with and each.has_many_choices:
                unknown = unknown or reason or "it has many choices beside the types that are tried"
                break
            found, status = check_definition(each)
            found = [_in_jax(x) for x in found]
            steps += each.elaborations.steps
            sampled = [x for x in found if isinstance(x, ChoicesSampled)]
            if status == "ok" and not sampled:
                chosen[each.tried_with] = None
                programs += [] if each.tried_with else _programs(each)
                right.append(each)
                outside.update(each.outside)
                break
            errors = [x for x in found if x.severity is Severity.ERROR]
            proven = [] if each.tried_with else _confirmed(each, errors)
            if proven:
                return JaxFunction(name, node, tuple(proven))
            suspected = suspected or tuple(errors)
            reason = reason or cause((errors or found)[0])
            places = frozenset([(x.code, x.span) for x in errors])
            if places in seen and all(x.code[:4] in _OF_THE_LANGUAGE for x in errors):
                unknown = unknown or reason
                break  # other types change nothing
            seen.add(places)
        else:
            unknown = unknown or reason
    tried = "; ".join(filter(None, chosen))
    own = (tuple(programs), () if unknown else tuple(right), tried, suspected, tuple(outside))
    return JaxFunction(name, node, (), unknown, *own)


def _programs(definition: JaxDefinition) -> list[Function]:
    """Return the programs of a definition that is right, for the choices that it admits."""
    found: list[Function] = []
    for choice in definition.tried().choices() or ():
        with suppress(Excluded):
            found.append(definition.instance(choice))
    return found


def _keeps(module: StaticModule, decorator: ast.expr, value: Closure) -> bool:
    """Return whether a decorator is known to return a function as it is."""
    made = decorated(module.frame(), decorator, value)
    return isinstance(made, Closure) and made.node is value.node


def _in_jax(finding: Diagnostic) -> Diagnostic:
    """Return a finding with the names that JAX has for our functions and dtypes."""
    changes = {
        name: _OURS.sub(_of_jax, value)
        for name, value in vars(finding).items()
        if isinstance(value, str) and "psc." in value
    }
    return finding.replaced(**changes) if changes else finding


_OURS: Final = re.compile(
    r"\bpsc\.(?:(scan|cond|switch|while_loop|fori_loop|map|associative_scan)|(bf|[iufc])(\d+))\b"
)


def _of_jax(match: re.Match[str]) -> str:
    function, kind, bits = match.groups()
    if function is not None:
        return f"jax.lax.{function}"
    return f"jnp.{_KINDS[kind]}{bits}"


_KINDS: Final = {"i": "int", "u": "uint", "f": "float", "c": "complex", "bf": "bfloat"}


def cause(finding: Diagnostic) -> str:
    """Return a finding as the reason why a function is not followed."""
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
    if definition.elaborations.steps * len(pairs) > _MOST_CONFIRMING:
        return []
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
