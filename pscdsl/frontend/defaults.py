"""Defaults of a kernel's parameters: each is an argument that its own annotation takes."""

from __future__ import annotations

from collections.abc import Iterator

from pscdsl.builder import Program
from pscdsl.frontend.arguments import settle, static_type
from pscdsl.frontend.functions import Closure
from pscdsl.frontend.source import with_defaults
from pscdsl.frontend.values import Poisoned
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.signatures import Signature, StaticSpec
from pscdsl.typing.unify import match


def default_problems(closure: Closure, signature: Signature) -> Iterator[Diagnostic]:
    """What a call without an argument would be told of it, at the default.

    Sizes that several arguments share are for calls to compare: a default need not fit all others.
    """
    here = Program(Assumptions()).current
    places = {each.arg: default for each, default in with_defaults(closure.node.args)}
    for parameter in signature.parameters:
        if not parameter.has_default:
            continue
        value = closure.defaults[parameter.name]
        try:
            if isinstance(parameter.spec, StaticSpec):
                tree = static_type(here, value)
            else:
                tree = settle(here, parameter.spec, value, signature.name, {})[1]
            match(Signature(signature.name, (parameter,), None), {parameter.name: tree}, here.facts)
        except Failure as failure:
            span = closure.source.span(places[parameter.name])
            yield from (each.at(span) for each in failure.diagnostics)
        except Poisoned:
            pass
