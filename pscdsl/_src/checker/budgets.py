"""Budgets: bounds on the cost of kernels, `# psc: budget flops <= 2*n*d`, proven for all sizes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal

from pscdsl._src.analysis.cost import Cost, bytes_of, cost, moments, sent_along, sent_axis, traffic
from pscdsl._src.checker.selection import comments_of
from pscdsl._src.frontend.text.source import DIRECTIVE
from pscdsl._src.frontend.transformations.derivatives import grad
from pscdsl._src.frontend.transformations.derived import derived
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Var
from pscdsl._src.primitives.control import Control
from pscdsl._src.primitives.effects import without_effects
from pscdsl._src.primitives.regions import Nesting
from pscdsl._src.transforms.simplify import simplify
from pscdsl.typing.array_types import size_of
from pscdsl.typing.assumptions import Verdict, refutation
from pscdsl.typing.codes.performance import BudgetExceeded
from pscdsl.typing.codes.projects import BudgetNotProven, MalformedBudget
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Failure, Label, Span
from pscdsl.typing.dims import DimSyntaxError, DimTooLarge, Size, evaluate, names, parse, substitute
from pscdsl.typing.facts import Fact
from pscdsl.typing.signatures import Choice, StaticSpec, group_dims, static_sizes

if TYPE_CHECKING:
    from pscdsl._src.frontend.definitions import Definition
    from pscdsl._src.frontend.text.source import Source


# The text of budgets: `flops <= 2*n*d*d, peak <= 8*n*d`, `gradient flops <= 3*n`.


MEASURES = {
    "flops": "flops",
    "bytes": "bytes",
    "arguments": "arguments",
    "results": "results",
    "peak": "peak",
    "memory": "peak",
}
"""The measures that can be bounded, with their names in `pscdsl cost`."""

_COMPARISON = re.compile(r"==|!=|<=|>=|<|>|=|≤|≥")
_MEASURE = re.compile(r"\s*(?:(?P<of>[A-Za-z]\w*)\s+)?(?P<measure>sent\[\w+\]|[A-Za-z]\w*)\s*")
_TURNED: dict[str, Literal["<=", "<"]] = {">=": "<=", ">": "<"}


@dataclass(frozen=True, slots=True)
class Budget:
    """One bound."""

    measure: str
    """An attribute of `Cost`, or `sent[data]`."""
    gradient: bool
    """Whether it is one for the gradient in the first parameter."""
    relation: Literal["<=", "<"]
    bound: Size
    text: str
    span: Span

    @property
    def sent_axis(self) -> str | None:
        """Return the axis of the mesh along which it bounds what is sent, if it does."""
        return sent_axis(self.measure)


def read_budgets(
    text: str, place: Callable[[int, int], Span]
) -> Iterator[Budget | MalformedBudget]:
    """Yield the bounds in a text; `place` returns the place of a range of characters."""
    for start, end in _clauses(text):
        span = place(start, end)
        try:
            yield _read(text[start:end], span)
        except _Malformed as problem:
            yield MalformedBudget(reason=problem.reason, instead=problem.instead, span=span)


class _Malformed(Exception):
    def __init__(self, reason: str, instead: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.instead = instead


def _clauses(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of the parts between commas, except commas within parentheses."""
    depth, start = 0, 0
    for place, character in enumerate(f"{text},"):
        depth += (character == "(") - (character == ")")
        if character == "," and (depth <= 0 or place == len(text)):
            part = text[start:place]
            lead = len(part) - len(part.lstrip())
            yield start + lead, start + max(lead, len(part.rstrip()))
            start = place + 1


def _read(clause: str, span: Span) -> Budget:
    found = list(_COMPARISON.finditer(clause))
    if len(found) != 1:
        raise _Malformed("`flops <= 2*n` is one comparison" if found else "it compares nothing")
    operator = found[0][0]
    left, right = clause[: found[0].start()], clause[found[0].end() :]
    if operator in _TURNED:
        left, right = right, left
    elif operator not in ("<=", "<"):
        raise _Malformed(f"a budget is an upper bound: `<=`, not `{operator}`")
    gradient, measure = _measured(left)
    try:
        bound = parse(right)
    except DimSyntaxError as error:
        raise _Malformed(f"`{right.strip()}` is no size: {error.message}") from None
    return Budget(measure, gradient, "<" if "=" not in operator else "<=", bound, clause, span)


def _measured(text: str) -> tuple[bool, str]:
    """Return whether the gradient is meant, and the measure."""
    known = ", ".join(name for name in MEASURES if name != "memory")
    match = _MEASURE.fullmatch(text)
    if match is None:
        raise _Malformed(f"`{text.strip()}` is nothing that is counted", f"counted are: {known}")
    of, measure = match["of"], match["measure"]
    if of is not None and of != "gradient":
        raise _Malformed(f"`{of} {measure}` is nothing that is counted", "write `gradient flops`")
    if sent_axis(measure) is not None:
        return of is not None, measure
    if measure not in MEASURES:
        alike = get_close_matches(measure.lower(), MEASURES, 1)
        help_ = f"`{alike[0]}` is the nearest" if alike else f"counted are: {known}"
        raise _Malformed(f"`{measure}` is nothing that is counted", help_)
    return of is not None, MEASURES[measure]


# Budgets in comments: `# psc: budget flops <= 2*n`, on or above the head of a kernel.


_MOST_LINES = 20
"""More comments of ours within one comment are not read."""


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment, and the lines of the statement that it is about."""

    text: str
    """The text after the word `budget`."""
    place: Callable[[int, int], Span]
    """Returns the place of the characters between two offsets of the text."""
    word: str
    """The word in place of `budget`."""
    path: str
    first: int
    last: int
    """The statement's head, from its first decorator on; no lines if there is none."""

    @property
    def span(self) -> Span:
        """The place of the text."""
        return self.place(0, len(self.text))

    def about(self, span: Span) -> bool:
        """Return whether it is about the kernel that begins at a place."""
        return self.path == span.path and self.first <= span.line <= self.last


def budget_comments(source: Source) -> tuple[Comment, ...]:
    """Return the comments of a module that are budgets, or nearly so."""
    if "psc" not in source.text or "udget" not in source.text:
        return ()
    heads = dict(_heads(source.tree))
    found: list[Comment] = []
    for row, column, comment in comments_of(source.text)[0]:
        for directive in islice(DIRECTIVE.finditer(comment), _MOST_LINES):
            if not get_close_matches(directive["verb"].lower(), ("budget",), 1, 0.75):
                continue
            first, last = _head(source, heads, row)
            path, line = source.locate(row)
            start = column + directive.start("rest") + 1
            found.append(
                Comment(
                    directive["rest"].rstrip(),
                    _placed(path, line, start),
                    directive["verb"],
                    path,
                    source.locate(first)[1],
                    source.locate(last)[1] if last else 0,
                )
            )
    return tuple(found)


def _placed(path: str, line: int, start: int) -> Callable[[int, int], Span]:
    return lambda first, last: Span(path, line, start + first, line, start + max(last, first + 1))


def _heads(tree: ast.Module) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield each row of a statement's head with the rows of that head."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            last = max(node.lineno, node.body[0].lineno - 1)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            first, last = node.lineno, node.end_lineno or node.lineno
        else:
            continue
        for row in range(first, last + 1):
            yield row, (first, last)


def _head(source: Source, heads: dict[int, tuple[int, int]], row: int) -> tuple[int, int]:
    """Return the rows of the head below a comment: its own, or the next below other comments."""
    while row not in heads:
        if row > len(source.lines) or not source.lines[row - 1].lstrip().startswith("#"):
            return 1, 0
        row += 1
    return heads[row]


# The places of a program's cost: the equations and arrays that take most.


_MOST = 3
_LEAST = 0.05
"""Parts below this fraction are not worth naming."""


def contributions(function: Function, measure: str, sizes: Mapping[str, int]) -> tuple[Label, ...]:
    """Return the places in the source with most of a cost at these sizes, and their shares."""
    found: dict[Span, Size] = {}
    for span, amount in _amounts(function, measure, sizes):
        frames = [frame for frame in reversed(span.frames()) if frame != function.span]
        place = frames[0] if frames else span
        if place is not NOWHERE:
            found[place] = found.get(place, 0) + amount
    numbers = {span: evaluate(amount, sizes) for span, amount in found.items()}
    total = sum(numbers.values())
    ranked = sorted(numbers, key=lambda span: (-numbers[span], span.line, span.column))
    return tuple(
        [
            Label(span, f"{found[span]}, {100 * numbers[span] / total:.0f} %")
            for span in ranked[:_MOST]
            if numbers[span] >= _LEAST * total > 0
        ]
    )


def _amounts(
    function: Function, measure: str, sizes: Mapping[str, int]
) -> Iterator[tuple[Span, Size]]:
    match measure:
        case "flops":
            yield from _counted(function.body, _flops, 1)
        case "bytes":
            yield from _counted(function.body, traffic, 1)
        case "arguments":
            for var in function.body.params:
                yield var.origin, bytes_of(var.type)
        case "results":
            made = _makers(function.body)
            for atom in function.body.results:
                yield made.get(atom, NOWHERE), bytes_of(atom.type)
        case _ if (axis := sent_axis(measure)) is not None:
            yield from _counted(function.body, partial(sent_along, axis), 1)
        case _:
            yield from _alive(function, sizes)


def _counted(
    block: Block, count: Callable[[Equation], Size], times: Size
) -> Iterator[tuple[Span, Size]]:
    """Yield the cost of each equation, those of loops with all their steps."""
    for equation in block.equations:
        primitive = equation.primitive
        regions = primitive.layout.run if isinstance(primitive, Control) else ()
        if not regions or any(region.nesting is Nesting.BRANCH for region in regions):
            yield equation.span, count(equation) * times
            continue
        for region in regions:
            repeated = 1 if region.times is None else region.times
            yield from _counted(region.block, count, times * repeated)


def _flops(equation: Equation) -> Size:
    inputs = tuple([atom.type for atom in equation.inputs])
    return equation.primitive.cost(inputs, tuple([var.type for var in equation.outputs]))


def _makers(block: Block) -> dict[Atom, Span]:
    """Return the place where each variable is made."""
    made: dict[Atom, Span] = {var: var.origin for var in block.params}
    for equation in block.equations:
        made.update(dict.fromkeys(equation.outputs, equation.span))
    return made


def _alive(function: Function, sizes: Mapping[str, int]) -> Iterator[tuple[Span, Size]]:
    """Yield the arrays in memory at the moment when most is."""
    block = function.body
    totals = list(moments(function.facts, block))
    amounts = [evaluate(total, sizes) for total in totals]
    worst = max(range(len(amounts)), key=amounts.__getitem__)
    first: dict[Atom, int] = {var: 0 for var in block.params}
    last: dict[Atom, int] = {}
    for place, equation in enumerate(block.equations, 1):
        last.update(dict.fromkeys(equation.inputs, place))
        for var in equation.outputs:
            first[var] = last[var] = place
    last.update(dict.fromkeys((*block.params, *block.results), len(amounts)))
    made = _makers(block)
    there: Size = 0
    for atom, start in first.items():
        if isinstance(atom, Var) and start <= worst <= last[atom]:
            there = there + bytes_of(atom.type)
            yield made[atom], bytes_of(atom.type)
    if worst:  # the equation's inner memory, without its operands and results
        yield block.equations[worst - 1].span, totals[worst] - there


# The check of kernels' budgets: proven, refuted by sizes, or not known.


def comments_in(source: Source) -> tuple[Comment, ...]:
    """Return the comments of a module that are budgets, read once."""
    if source.budgets is None:
        source.budgets = budget_comments(source)
    return source.budgets


def over_budget(definition: Definition, choice: Choice) -> Iterator[Diagnostic]:
    """Yield the problems with the budgets of a kernel, for a choice that has a program."""
    programs: dict[tuple[bool, str | None], tuple[Function, Cost] | str] = {}
    for budget in _budgets(definition):
        if isinstance(budget, Diagnostic):
            yield budget
            continue
        key = budget.gradient, budget.sent_axis
        if key not in programs:
            programs[key] = _program(definition, choice, budget)
        found = programs[key]
        if isinstance(found, str):
            yield BudgetNotProven(budget=budget.text, reason=found, span=budget.span)
        else:
            yield from _decided(definition, choice, budget, *found)


def unproven(definition: Definition) -> Iterator[Diagnostic]:
    """Yield budgets that a kernel keeps, if its open parts were only tried by examples.

    How often a loop is unrolled, for instance, may be any function of a static value.
    """
    signature = definition.signature
    tried = signature.unrolled_examples()
    choices, total = len(signature.choices() or ()), signature.combinations()
    if total > choices:
        tried = (*tried, f"{choices} of {total} choices")
    by_rank = signature.rank_examples()
    if any(isinstance(parameter.spec, StaticSpec) for parameter in signature.parameters):
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
    """Return whether more axes of size 1 change the cost: then it depends on the rank itself."""
    found: dict[Choice, Size] = {}
    for choice in definition.signature.choices() or ():
        program = _program(definition, choice, budget)
        axes = [axis for name, rank in choice.ranks for axis in group_dims(name, rank)]
        if isinstance(program, str) or not all(rank for _, rank in choice.ranks):
            continue
        sizes = {str(axis): 1 for axis in axes}
        taken = substitute(program[1].measure(budget.measure), sizes)
        if found.setdefault(replace(choice, ranks=()), taken) != taken:
            return True
    return False


def stray_comments(source: Source, places: Collection[Span]) -> Iterator[Diagnostic]:
    """Yield budgets outside of all kernels, which begin at these places."""
    for comment in comments_in(source):
        if not any(map(comment.about, places)):
            reason = "it stands at no kernel's `def` or decorator"
            if comment.word != "budget":
                reason = f"`{comment.word[:20]}` is not `budget`"
            yield MalformedBudget(reason=reason, span=comment.span)


def _budgets(definition: Definition) -> Iterator[Budget | Diagnostic]:
    """Yield the budgets of the decorator, then those of comments; a finding for a malformed one."""
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
    """Move a budget of the decorator, or the problem with it, to its place."""
    return found.at(span) if isinstance(found, Diagnostic) else replace(found, span=span)


def _argument_place(definition: Definition, text: object) -> Span:
    """Return the place of an argument of the decorator; otherwise the head of the kernel."""
    node = definition.closure.node
    for decorator in getattr(node, "decorator_list", ()):
        for each in ast.walk(decorator):
            if isinstance(each, ast.Constant) and each.value == text:
                return definition.closure.source.span(each)
    return definition.head


def _program(definition: Definition, choice: Choice, budget: Budget) -> tuple[Function, Cost] | str:
    """Return the program that a budget is for, and its cost; or why there is none."""
    try:
        made = _gradient(definition) if budget.gradient else definition
        axis = budget.sent_axis
        program = without_effects(
            made.instance(choice) if axis is None else made.instance_over_mesh(choice)
        )
        if axis is not None:
            placed = made.partitioned(program, choice)
            if axis not in placed.mesh:
                return f"`{definition.name}` names no mesh axis `{axis}`"
            program = placed.function
        program = simplify(program)
        return program, cost(program)
    except Failure as failure:
        return failure.diagnostics[0].message()
    except DimTooLarge as large:
        return str(large)


def _gradient(definition: Definition) -> Definition:
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
    taken: Size = counted.measure(budget.measure)
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
    """Return a bound of the same kind that holds."""
    return f"{'gradient ' if budget.gradient else ''}{budget.measure} <= {taken}"
