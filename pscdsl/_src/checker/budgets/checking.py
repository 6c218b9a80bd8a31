"""Whether kernels keep their budgets: proven, refuted by sizes, or not known."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pscdsl._src.analysis.cost import Cost, cost
from pscdsl._src.checker.budgets.comments import Comment, budget_comments
from pscdsl._src.checker.budgets.contributions import contributions
from pscdsl._src.checker.budgets.reading import Budget, read_budgets
from pscdsl._src.transforms.simplify.simplify import simplify
from pscdsl.typing.arrays import size_of
from pscdsl.typing.assumptions import Verdict
from pscdsl.typing.codes.limits_budgets import BudgetNotProven, MalformedBudget
from pscdsl.typing.codes.performance_budgets import BudgetExceeded
from pscdsl.typing.counterexamples import refutation
from pscdsl.typing.diagnostics import Diagnostic, Failure, Label
from pscdsl.typing.dims import DimTooLarge, Size, evaluate, names, substitute
from pscdsl.typing.facts import Fact
from pscdsl.typing.signatures import Choice, group_dims, static_sizes
from pscdsl.typing.spans import NOWHERE, Span
from pscdsl.typing.specs import StaticSpec

if TYPE_CHECKING:
    from pscdsl._src.frontend.definitions import Definition
    from pscdsl._src.frontend.text.source import Source
    from pscdsl._src.ir.program import Function


def comments_in(source: Source) -> tuple[Comment, ...]:
    """The comments of a module that are budgets, read once."""
    if source.budgets is None:
        source.budgets = budget_comments(source)
    return source.budgets


def over_budget(definition: Definition, choice: Choice) -> Iterator[Diagnostic]:
    """What is wrong with the budgets of a kernel, for a choice that has a program."""
    programs: dict[bool, tuple[Function, Cost] | str] = {}
    for budget in _budgets(definition):
        if isinstance(budget, Diagnostic):
            yield budget
            continue
        if budget.gradient not in programs:
            programs[budget.gradient] = _program(definition, choice, budget.gradient)
        found = programs[budget.gradient]
        if isinstance(found, str):
            yield BudgetNotProven(budget=budget.text, reason=found, span=budget.span)
        else:
            yield from _decided(definition, choice, budget, *found)


def unproven(definition: Definition) -> Iterator[Diagnostic]:
    """The budgets of a kernel that keeps them, where its open parts were tried by examples.

    How often a loop is unrolled, for instance, may be any function of a static value.
    """
    signature = definition.signature
    tried = signature.unrolled_examples()
    choices, total = len(signature.choices() or ()), signature.combinations()
    if total > choices:
        tried = (*tried, f"{choices} of {total} choices")
    by_rank = signature.rank_examples()
    if any(isinstance(each.spec, StaticSpec) for each in signature.parameters):
        instead = "`psc.Static[Literal[...]]` names all values, and then each is tried"
    else:
        instead = "a tuple of parts that are written out, or a record, has a length that is known"
    for budget in _budgets(definition):
        if not isinstance(budget, Budget):
            continue
        grows = by_rank and _grows_by_rank(definition, budget)
        beyond = "; ".join((*tried, *by_rank) if grows else tried)
        if beyond:
            yield BudgetNotProven(
                budget=budget.text,
                reason=f"it holds as far as was tried, {beyond}, and no further is known",
                instead=instead if tried else "sizes with names, `n m`, have a rank that is known",
                span=budget.span,
            )


def _grows_by_rank(definition: Definition, budget: Budget) -> bool:
    """Whether more axes of size 1 cost anything: then their number is not what it seems."""
    found: dict[Choice, Size] = {}
    for choice in definition.signature.choices() or ():
        program = _program(definition, choice, budget.gradient)
        axes = [axis for name, rank in choice.ranks for axis in group_dims(name, rank)]
        if isinstance(program, str) or not all(rank for _, rank in choice.ranks):
            continue
        sizes = {str(axis): 1 for axis in axes}
        taken = substitute(getattr(program[1], budget.measure), sizes)
        if found.setdefault(replace(choice, ranks=()), taken) != taken:
            return True
    return False


def stray_comments(source: Source, places: Collection[Span]) -> Iterator[Diagnostic]:
    """Budgets that belong to none of the kernels, which begin at these places."""
    for comment in comments_in(source):
        if not any(map(comment.about, places)):
            reason = "it stands at no kernel's `def` or decorator"
            if comment.word != "budget":
                reason = f"`{comment.word[:20]}` is not `budget`"
            yield MalformedBudget(reason=reason, span=comment.span)


def _budgets(definition: Definition) -> Iterator[Budget | Diagnostic]:
    """Those of the decorator, then those of comments; or why there is none."""
    for text in definition.budget:
        span = _argument_place(definition, text)
        if isinstance(text, str):
            yield from [_moved(each, span) for each in read_budgets(text, _anywhere)]
        else:
            yield MalformedBudget(reason="it is a text, or several", span=span)
    place = definition.written_at
    for comment in comments_in(definition.source):
        if place is not None and comment.about(place):
            if comment.word == "budget":
                yield from read_budgets(comment.text, comment.place)
            else:
                reason = f"`{comment.word[:20]}` is not `budget`"
                yield MalformedBudget(reason=reason, span=comment.span)


def _anywhere(first: int, last: int) -> Span:
    return NOWHERE


def _moved(found: Budget | Diagnostic, span: Span) -> Budget | Diagnostic:
    """What an argument of the decorator says, or is wrong with it, at its place."""
    return found.at(span) if isinstance(found, Diagnostic) else replace(found, span=span)


def _argument_place(definition: Definition, text: object) -> Span:
    """Where an argument of the decorator is written; the head of the kernel if it is elsewhere."""
    node = definition.closure.node
    for decorator in getattr(node, "decorator_list", ()):
        for each in ast.walk(decorator):
            if isinstance(each, ast.Constant) and each.value == text:
                return definition.closure.source.span(each)
    return definition.head


def _program(definition: Definition, choice: Choice, gradient: bool) -> tuple[Function, Cost] | str:
    """The program that a budget is for, and its cost; or why there is none."""
    try:
        made = _gradient(definition) if gradient else definition
        program = simplify(made.instance(choice))
        return program, cost(program)
    except Failure as failure:
        return failure.diagnostics[0].message()
    except DimTooLarge as large:
        return str(large)


def _gradient(definition: Definition) -> Definition:
    from pscdsl._src.frontend.transformations.derived import derived
    from pscdsl._src.frontend.transformations.gradients import grad

    found = derived(grad(None, definition, 0))
    assert found is not None
    return found


def _decided(
    definition: Definition, choice: Choice, budget: Budget, program: Function, counted: Cost
) -> Iterator[Diagnostic]:
    facts = program.facts
    known = static_sizes(dict(choice.statics))
    for group, rank in choice.ranks:
        known.setdefault(group, size_of(group_dims(group, rank)))
    unknown = names(budget.bound) - known.keys() - set(program.dims)
    if unknown:
        sizes = ", ".join((*program.dims, *known)) or "none"
        one = sorted(unknown)[0]
        reason = f"`{definition.name}` has no size `{one}`; its sizes are: {sizes}"
        yield MalformedBudget(reason=reason, span=budget.span, instead="name its sizes")
        return
    if counted.loops and budget.measure in ("flops", "bytes"):
        label = Label(counted.loops[0], "how many steps this takes is known only when it runs")
        yield BudgetNotProven(
            budget=budget.text,
            reason="a loop's number of steps is not known",
            instead="`psc.while_loop(..., max_steps=...)` counts with that many steps",
            span=budget.span,
            labels=(label,),
        )
        return
    bound = substitute(budget.bound, known)
    taken: Size = getattr(counted, budget.measure)
    claim = Fact(budget.relation, taken, bound)
    match facts.decide(claim):
        case Verdict.YES:
            return
        case Verdict.UNKNOWN:
            yield BudgetNotProven(
                budget=budget.text,
                reason=f"it was neither proven nor refuted that {claim}",
                instead=f"`{_holding(budget, taken)}` holds",
                span=budget.span,
            )
        case Verdict.NO:
            yield _exceeded(definition, budget, program, claim)


def _exceeded(
    definition: Definition, budget: Budget, program: Function, claim: Fact
) -> BudgetExceeded:
    facts = program.facts
    subject = f"the gradient of `{definition.name}`" if budget.gradient else f"`{definition.name}`"
    found = BudgetExceeded(
        subject=subject,
        measure=budget.measure,
        budget=str(claim.right),
        cost=str(claim.left),
        holds=_holding(budget, claim.left),
        strict=budget.relation == "<",
        span=budget.span,
    )
    sizes = refutation(facts.facts, claim, facts.lower_bound)
    if sizes is None:
        return found
    if shown := sorted(claim.names()):
        found = found.replaced(
            sizes=tuple([(name, sizes[name]) for name in shown]),
            taken=evaluate(claim.left, sizes),
            allowed=evaluate(claim.right, sizes),
        )
    everywhere = {name: facts.lower_bound(name) for name in program.dims} | sizes
    return found.labelled(*contributions(program, budget.measure, everywhere))


def _holding(budget: Budget, taken: Size) -> str:
    """A bound of the same kind that holds."""
    return f"{'gradient ' if budget.gradient else ''}{budget.measure} <= {taken}"
