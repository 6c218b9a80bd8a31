"""Parameters that rule a function out: objects, dicts, lists that are changed, `*args`."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from pscdsl._src.discover.usage import (
    FunctionStatement,
    Usage,
    is_mapping,
    is_text,
    mutating_method,
)
from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.modules.scope import StaticModule
from pscdsl._src.frontend.specs.annotations import spec_of
from pscdsl._src.frontend.values import purity
from pscdsl._src.frontend.values.values import External, Poison, Poisoned
from pscdsl.typing.codes.limits_discovery import ObjectParameter, OpenParameters, SearchEnded
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.signatures import Spec, arrays_of

MAX_PARAMETERS = 24


def declared(module: StaticModule, function: FunctionStatement, name: str) -> Spec | None:
    """The type that an annotation of ours, or of jaxtyping, declares."""
    spec = function.args
    for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
        if each.arg == name and isinstance(each.annotation, ast.Subscript | ast.Name):
            try:
                found = spec_of(Frame(Session(None), module.source, module), each.annotation)
            except (Failure, Poisoned):
                return None
            return found if any(True for _ in arrays_of(found)) else None
    return None


def unfit(
    module: StaticModule,
    function: FunctionStatement,
    closure: Closure,
    used: Mapping[str, Usage],
) -> list[Diagnostic]:
    """What the parameters themselves rule out."""
    source, spec = module.source, function.args
    found: list[Diagnostic] = []
    for variadic, stars in ((spec.vararg, "*"), (spec.kwarg, "**")):
        if variadic is not None:
            name = stars + variadic.arg
            found.append(OpenParameters(name=name, span=source.span(variadic)))
    parameters = {p.arg: p for p in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    if len(parameters) > MAX_PARAMETERS:
        span = source.span(function).head(3)
        found.append(SearchEnded(function=function.name, trials=0, span=span))
    for name, usage in used.items():
        if declared(module, function, name) is not None:
            continue
        mutated = mutating_method(usage)
        refusal = purity.static_attribute([], mutated[1]) if mutated is not None else None
        if mutated is not None and refusal is not None:
            found.append(refusal.at(source.span(mutated[2])))
        elif is_mapping(usage) or (usage.attributes and not is_text(usage)):
            attributes = tuple(each for each in usage.attributes if each != "append")
            how = "dict" if is_mapping(usage) else "object"
            found.append(
                ObjectParameter(
                    name=name, how=how, attributes=attributes, span=source.span(parameters[name])
                )
            )
        elif isinstance(closure.defaults.get(name), Poison | External | dict | list):
            found.append(
                ObjectParameter(
                    name=name, how="default", attributes=(), span=source.span(parameters[name])
                )
            )
    return found
