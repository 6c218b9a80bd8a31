"""Defaults of a kernel's parameters: each is an argument that its own annotation takes."""

from __future__ import annotations

from collections.abc import Iterator

from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.text.source import with_defaults
from pscdsl._src.frontend.trees.arguments import settle, static_type
from pscdsl._src.frontend.values.values import Poisoned
from pscdsl._src.ir.builder import Program
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.signatures import Parameter, Signature, StaticSpec
from pscdsl.typing.unify import Match, match


def default_problems(closure: Closure, signature: Signature) -> Iterator[Diagnostic]:
    """What a call without an argument would be told of it, at the default.

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
            yield from (each.at(span) for each in failure.diagnostics)
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
