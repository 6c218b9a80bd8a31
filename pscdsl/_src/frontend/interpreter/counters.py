"""Loop counters as sizes: `x[:i]` has `i` elements, and `x[i]` is known to be in range.

A counter remains a number: `i * 2.0`, `best = i`, a comparison. The result of `+`, `-`, `*`, `//`
or `%` on it is also a size, and can be used as one: in a slice, in a shape, as the end of a range.
The facts of a comparison are known in the branch that depends on it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final

from pscdsl._src.frontend.values import AnyValue, Array, NumericValue, Place
from pscdsl._src.ir.builder import Program, Value, Weak
from pscdsl._src.ir.program import Var
from pscdsl.numpy.calling import OfCounter
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.shapes import DataDependentShape
from pscdsl.typing.counters import Counter, InLoop, counter_name
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dims import Dim, Size, maximum, minimum, names, single_factor
from pscdsl.typing.python_containers import is_tuple


def depends_on_counter(what: str) -> Diagnostic:
    """Return the refusal of a part whose size depends on a loop's counter."""
    return DataDependentShape(
        what=what,
        by="a loop's counter",
        instead="to use the elements before `i` alone, mask the others: "
        "`np.where(np.arange(x.shape[0]) < i, x, 0)`",
    )


def new_counter(
    program: Program,
    barrier: int,
    target: ast.expr | None,
    count: Size,
    line: tuple[Size, int] | None,
) -> Counter | None:
    """Return the counter of a new loop as a size; None if it is only a number.

    A function that is passed to a combinator is transformed before the loop around it is complete,
    so counters are only numbers in its body.
    """
    facts = program.facts
    if isinstance(facts, InLoop) and facts.barrier != barrier:
        return None
    program.loops += 1
    if isinstance(target, ast.Tuple) and target.elts:
        target = target.elts[0]
    shown = target.id if isinstance(target, ast.Name) else "step"
    name = counter_name(shown, program.loops)
    steps = _without_zero(count)
    if line is not None and line[1] in (1, -1):
        first, step = line
        low = first if step == 1 else first - steps + 1
        if facts.proves(Fact("<=", 0, low)):
            return Counter(name, low, low + steps, first, step)
    return Counter(name, 0, steps, 0, 1)


def _without_zero(count: Size) -> Size:
    """Return a number of steps without its lower bound 0: `a` for `max(a, 0)`."""
    larger = single_factor(count, "max")
    if larger is None or len(larger.args) != 2 or 0 not in larger.args:
        return count
    one, other = larger.args
    return other if one == 0 else one


# Numbers that are sizes, and results computed from them.


def as_number(program: Program | None, value: Place) -> Place:
    """Return a size that names counters as a number that is also a size, even inside a shape."""
    if program is None or not isinstance(program.facts, InLoop):
        return value
    if isinstance(value, Dim):
        if program.facts.counters.isdisjoint(names(value)):
            return value
        return OfCounter(program.current, value)
    if is_tuple(value) and type(value) is tuple and any(isinstance(each, Dim) for each in value):
        return tuple([as_number(program, each) for each in value])
    return value


_SIZED: Final = ("Add", "Sub", "Mult", "FloorDiv", "Mod")


def calculated(
    program: Program | None, name: str, left: AnyValue, right: AnyValue, result: Array
) -> Array:
    """Return the result of an operator on numbers, as a size if it is one."""
    if program is None or name not in _SIZED or not isinstance(result, Weak):
        return result
    if not isinstance(left, OfCounter) and not isinstance(right, OfCounter):
        return result
    one, other = size_of(left), size_of(right)
    if one is None or other is None or result.ndim:
        return result
    if name in ("FloorDiv", "Mod"):
        if not isinstance(other, int) or other <= 0:
            return result
        size = one // other if name == "FloorDiv" else one % other
    elif name == "Mult":
        size = one * other
    else:
        size = one + other if name == "Add" else one - other
    return OfCounter(program.current, size, result)


def negative(program: Program | None, name: str, operand: AnyValue, result: Array) -> Array:
    """Return the result of `-i` or `+i` as a size."""
    if program is None or not isinstance(operand, OfCounter) or not isinstance(result, Weak):
        return result
    if name not in ("USub", "UAdd"):
        return result
    size = -operand.size if name == "USub" else operand.size
    return OfCounter(program.current, size, result)


def extremum(
    program: Program, name: str, items: Sequence[AnyValue], result: NumericValue
) -> NumericValue:
    """Return the result of Python's `min` or `max` of integers as a size."""
    sizes = [size for size in map(size_of, items) if size is not None]
    if len(sizes) < len(items) or not any(isinstance(each, OfCounter) for each in items):
        return result
    if not isinstance(result, Weak):
        return result
    size = reduce(minimum if name == "min" else maximum, sizes)
    return OfCounter(program.current, program.facts.simplify(size), result)


def size_of(value: AnyValue) -> Size | None:
    """Return an integer as a size; None if it is not known as one."""
    if isinstance(value, OfCounter):
        return value.size
    return value if isinstance(value, int | Dim) and not isinstance(value, bool) else None


# The facts about counters that truth values imply.

_FACTS: Final[dict[str, Callable[[Size, Size], Fact]]] = {
    "Lt": lambda a, b: Fact("<", a, b),
    "LtE": lambda a, b: Fact("<=", a, b),
    "Gt": lambda a, b: Fact("<", b, a),
    "GtE": lambda a, b: Fact("<=", b, a),
    "Eq": lambda a, b: Fact("==", a, b),
    "NotEq": lambda a, b: Fact("!=", a, b),
}


def note_comparison(
    program: Program | None, name: str, left: AnyValue, right: AnyValue, found: AnyValue
) -> None:
    """Record the facts about counters that a comparison implies."""
    if not isinstance(left, OfCounter) and not isinstance(right, OfCounter):
        return
    one, other = size_of(left), size_of(right)
    if one is None or other is None or name not in _FACTS:
        return
    fact = _FACTS[name](one, other)
    _note(program, found, (fact,), (fact.negated(),))


def note_negation(program: Program | None, value: AnyValue, found: AnyValue) -> None:
    """Record the facts about counters that `not value` implies."""
    holds, fails = said(program, value)
    _note(program, found, fails, holds)


def note_chain(program: Program | None, parts: Sequence[AnyValue], found: AnyValue) -> None:
    """Record the facts about counters that the truth of all parts implies."""
    holds = [fact for part in parts for fact in said(program, part)[0]]
    _note(program, found, tuple(holds), ())


def note_either(
    program: Program | None,
    one: Place,
    others: Sequence[Place],
    found: Place,
    *,
    is_and: bool,
) -> None:
    """Record the facts about counters that `one and other`, or `one or other`, implies."""
    side = 0 if is_and else 1
    facts = tuple(fact for each in (one, *others) for fact in said(program, each)[side])
    _note(program, found, *((facts, ()) if is_and else ((), facts)))


def note_truth(program: Program | None, value: AnyValue, found: AnyValue) -> None:
    """Record the fact that the truth of a number implies about it."""
    if isinstance(value, OfCounter):
        fact = Fact("!=", value.size, 0)
        _note(program, found, (fact,), (fact.negated(),))


def said(program: Program | None, value: AnyValue) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
    """Return the facts about counters if a truth value holds, and if it does not."""
    if program is None or not isinstance(value, Value) or not isinstance(value.atom, Var):
        return (), ()
    return program.conditions.get(value.atom, ((), ()))


def _note(
    program: Program | None, found: AnyValue, holds: tuple[Fact, ...], fails: tuple[Fact, ...]
) -> None:
    if program is not None and isinstance(found, Value) and isinstance(found.atom, Var):
        program.conditions[found.atom] = holds, fails
