"""Trials: a function elaborated under a candidate, within bounds for each function."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pscdsl._src.discover.candidates import Candidate
from pscdsl._src.frontend.definitions import Definition, Excluded
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.values.values import Poisoned
from pscdsl._src.ir.program import Function
from pscdsl.typing.codes.limits import InternalError
from pscdsl.typing.diagnostics import Diagnostic, Failure, Severity
from pscdsl.typing.notation import Variadic
from pscdsl.typing.signatures import (
    ArraySpec,
    Choice,
    DTypeClass,
    OptionalSpec,
    RepeatedSpec,
    Signature,
    Spec,
    StaticSpec,
    group_name,
    walk_paths,
)
from pscdsl.typing.trees import StaticType

MAX_WORK = 60_000
"""Statements of the function and its helpers and nodes of its tree, over all its trials."""
MAX_STEPS = 10_000
"""Statements that one trial may be, loops unrolled and helpers inlined."""
MAX_CHOICES = 128
"""Choices of dtypes, ranks and static values that a signature is verified with."""


@dataclass(frozen=True)
class Trial:
    """What came of a trial: a program, or why there is none."""

    program: Function | None
    findings: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that are errors."""
        return tuple(each for each in self.findings if type(each).severity is Severity.ERROR)


class Trials:
    """The trials of one function."""

    def __init__(self, closure: Closure) -> None:
        self.closure = closure
        self.count = 0
        self.work = 0
        self.nodes = sum(1 for _ in ast.walk(closure.node))
        spec = closure.node.args
        self.keyword_only = frozenset(each.arg for each in spec.kwonlyargs)

    @property
    def exhausted(self) -> bool:
        """Whether no more work is to be done for this function."""
        return self.work > MAX_WORK

    def definition(self, candidate: Candidate, result: Spec | None = None) -> Definition:
        """The function as a kernel with the candidate's signature."""
        signature = candidate.signature(self.closure.name, self.keyword_only)
        signature = Signature(signature.name, signature.parameters, result)
        definition = Definition(self.closure, signature, candidate.facts)
        definition.most_steps = MAX_STEPS
        return definition

    def run(self, candidate: Candidate) -> Trial:
        """The first choice of a candidate."""
        definition = self.definition(candidate)
        return self.one(definition, first_choice(definition.signature))

    def one(self, definition: Definition, choice: Choice) -> Trial:
        """One choice of a signature."""
        self.count += 1
        before = definition.steps
        try:
            program = definition.instance(choice)
            return Trial(program, definition.warnings(choice))
        except Failure as failure:
            return Trial(None, failure.diagnostics or self._internal("nothing was found"))
        except Excluded as excluded:
            return Trial(None, (excluded.finding,))
        except Poisoned:
            return Trial(None, self._internal("nothing was found"))
        except RecursionError:
            return Trial(None, self._internal("it is nested too deeply"))
        except Exception as error:
            return Trial(None, self._internal(f"{type(error).__name__}: {error}"))
        finally:
            self.work += definition.steps - before + self.nodes

    def accepts(self, candidate: Candidate, result: Spec | None = None) -> bool:
        """Whether every choice of a candidate is a program, or excluded by a precondition."""
        definition = self.definition(candidate, result)
        choices = definition.signature.choices()
        if choices is None or definition.signature.combinations() > MAX_CHOICES:
            return False
        accepted = 0
        for choice in choices:
            if self.exhausted:
                return False
            try:
                definition.instance(choice)
                accepted += 1
            except Excluded:
                continue
            except Exception:
                return False
            finally:
                self.count += 1
                self.work += definition.steps + self.nodes
                definition.steps = 0
        return accepted > 0

    def _internal(self, what: str) -> tuple[Diagnostic, ...]:
        span = self.closure.source.span(self.closure.node).head(3)
        return (InternalError(what=f"function `{self.closure.name}`: {what}", span=span),)


def first_choice(signature: Signature, rank: int = 1) -> Choice:
    """The usual dtype of each class, one rank for each group, the first static values."""
    dtypes: dict[str, DTypeClass] = {}
    groups: dict[str, int] = {}
    statics: dict[str, StaticType] = {}
    lengths: dict[str, int] = {}
    given: dict[str, bool] = {}
    for parameter in signature.parameters:
        for where, part in walk_paths(parameter.spec, parameter.name):
            if isinstance(part, ArraySpec):
                if isinstance(part.dtype, DTypeClass):
                    dtypes[part.dtype.name] = part.dtype
                groups.update((group_name(d), rank) for d in part.dims if isinstance(d, Variadic))
            elif isinstance(part, StaticSpec) and part.samples:
                statics[where] = StaticType(part.samples[0])
            elif isinstance(part, RepeatedSpec):
                lengths[where] = 2
            elif isinstance(part, OptionalSpec):
                given[where] = True
    return Choice(
        dtypes=tuple((name, each.usual_first()[0]) for name, each in dtypes.items()),
        ranks=tuple(groups.items()),
        lengths=tuple(lengths.items()),
        given=tuple(given.items()),
        statics=tuple(statics.items()),
    )
