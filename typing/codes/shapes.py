"""PSC3xx: shapes and sizes that do not fit, in broadcasting, manipulation and indexing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from pscdsl.typing.array_types import ArrayType, Shape, show_shape
from pscdsl.typing.assumptions import Assumptions, Fact, sufficient_bound
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dims import DimTooLarge, Size

# PSC3xx: shapes and sizes that do not fit, and preconditions that are not met.


def instance(facts: Assumptions, claim: Fact) -> str:
    """The smallest sizes at which a claim fails, in words; empty if none were found."""
    found = facts.counterexample(claim)
    if not found:
        return ""
    return ", for instance " + ", ".join(f"{name}={size}" for name, size in sorted(found.items()))


def disagreement(facts: Assumptions, left: Size, right: Size) -> str:
    """Why two sizes are not equal, in words: `d is not h, for instance d=1, h=2`."""
    return f"{left} is not {right}{instance(facts, Fact('==', left, right))}"


class ShapesDoNotBroadcast(Diagnostic, code="PSC300"):
    """The shapes of the operands of an elementwise operation do not broadcast together."""

    shapes: tuple[Shape, ...]
    axis: int
    why: str
    enough: Fact | None = None
    """The bound that makes them fit, if only small arrays do not fit."""
    operands: tuple[str, str] = ("", "")
    """The texts of the operands, if there are two."""
    sign: str = ""
    """The operator between them."""
    kept: tuple[str, str] = ("", "")
    """The texts with `keepdims`, and the axis."""
    kept_axes: tuple[int, int] = (-1, -1)
    reduced: tuple[tuple[int, ...], ...] = ()
    """The axes along which the two operands reduce one array, if they differ."""
    instead: str = ""
    """The advice in place of that for the usual mistake."""

    @classmethod
    def of(
        cls, facts: Assumptions, shapes: Sequence[Shape], axis: int, left: Size, right: Size
    ) -> Self:
        """Return the finding with the smallest sizes that show it, if possible none of them 1."""
        larger = facts.assume(*(Fact("<=", 2, size) for size in (left, right)))
        if larger.counterexample(Fact("==", left, right)):
            facts = larger
        why = disagreement(facts, left, right)
        enough = sufficient_bound(facts, [Fact("==", left, right)])
        return cls(shapes=tuple(shapes), axis=axis, why=why, enough=enough)

    def message(self) -> str:
        shapes = " and ".join(f"[{show_shape(shape)}]" for shape in self.shapes)
        return f"shapes {shapes} do not broadcast together"

    def label(self) -> str:
        return f"axis {self.axis}: {self.why}"

    def help(self) -> str | None:
        if self.enough is not None:
            return f"add `assert {self.enough}`"
        if self.instead:
            return self.instead
        ranks = [len(shape) for shape in self.shapes]
        if self.reduced:
            one, other = (
                f"{'axes' if len(axes) > 1 else 'axis'} {', '.join(map(str, axes))}"
                for axes in self.reduced
            )
            left, right = (text[1:-1] if text[0] == "(" else text for text in self.operands)
            return (
                f"`{left}` reduces along {one}, `{right}` along {other}: if both are meant, "
                "keep the axes with `keepdims=True`; else reduce along the same one"
            )
        for texts, sign in self.rewrites():
            if sign == "@":
                return f"`{texts[0]} @ {texts[1]}` is the product of matrices"
            [changed] = [text for text in texts if text not in self.operands]
            if "keepdims" in changed:
                return f"`{changed}` keeps the axis that is reduced"
            if changed.endswith(".T"):
                return f"`{changed}` fits"
            return f"sizes are aligned at the last axis; `{changed}` has an axis of size 1 there"
        arrays = [shape for shape in self.shapes if shape]
        if len(arrays) == 2 and min(map(len, arrays)) != max(ranks):
            lesser, greater = sorted(arrays, key=len)
            if _fit((*lesser, 1), greater):
                return "sizes are aligned at the last axis; `x[:, None]` adds one at the end"
        return None

    def rewrites(self) -> Iterator[tuple[tuple[str, str], str]]:
        """Yield the texts of operands that fit, and the operator between them."""
        if len(self.shapes) != 2 or not all(self.operands) or self.enough is not None:
            return
        if self.reduced or self.instead:
            return  # an axis that is put in would hide that another one was meant
        left, right = self.shapes
        short = 0 if len(left) < len(right) else 1
        other = self.shapes[1 - short]
        for place in range(len(self.shapes[short]), 0, -1):
            shape = (*self.shapes[short][:place], 1, *self.shapes[short][place:])
            if len(left) != len(right) and _fit(shape, other):
                index = ", ".join([*(":" for _ in range(place)), "None"])
                if place == self.kept_axes[short]:
                    yield self._with(short, self.kept[short])
                yield self._with(short, f"{self.operands[short]}[{index}]")
        if len(left) != len(right) or len(left) < 2:
            return
        if self.sign == "*" and left[-1] == right[-2]:
            yield self.operands, "@"
        for each in (1, 0):
            turned = f"{self.operands[each]}.T"
            if turned in self.operands or self.operands[each].endswith(".T"):
                continue  # of `x.T - x` one is turned already
            if len(left) == 2 and _fit(self.shapes[each][::-1], self.shapes[1 - each]):
                yield self._with(each, turned)

    def _with(self, which: int, text: str) -> tuple[tuple[str, str], str]:
        texts = (text, self.operands[1]) if which == 0 else (self.operands[0], text)
        return texts, self.sign


def _fit(left: Shape, right: Shape) -> bool:
    """Return whether shapes broadcast together as they are written."""
    pairs = zip(left[::-1], right[::-1], strict=False)
    return all(one == other or 1 in (one, other) for one, other in pairs)


class OutgrownUpdate(Diagnostic, code="PSC322"):
    """`+=` would give an array another shape or dtype."""

    name: str
    """The array as it is written; empty if a call stores its result into it."""
    sign: str
    """The operator, or the call."""
    left: ArrayType
    found: ArrayType
    why: str

    def message(self) -> str:
        if not self.name:
            return f"`{self.sign}` gives {self.found}, but it writes to an array of {self.left}"
        return f"`{self.name} {self.sign}=` gives {self.found}, but `{self.name}` is {self.left}"

    def label(self) -> str:
        return self.why

    def help(self) -> str:
        if not self.name:
            rest = ", or bind what the call without `out` gives" if "out=" in self.sign else ""
            return f"write to an array of {self.found}{rest}"
        return f"`{self.name} = {self.name} {self.sign} …` binds the name to a new array"


# PSC310 to PSC329: shapes and sizes where arrays are manipulated.


def axes(count: int) -> str:
    """A number of axes, in words."""
    return "1 axis" if count == 1 else f"{count} axes"


class AxisOutOfRange(Diagnostic, code="PSC310"):
    """An array does not have the named axis."""

    function: str
    axis: int
    rank: int

    def message(self) -> str:
        return f"`{self.function}`: axis {self.axis} of an array with {axes(self.rank)}"

    def help(self) -> str | None:
        if not self.rank:
            return "a scalar has no axes"
        return f"the axes are 0 to {self.rank - 1}, or -{self.rank} to -1 from the end"


class RepeatedAxis(Diagnostic, code="PSC311"):
    """The same axis is named twice."""

    function: str
    axis: int

    def message(self) -> str:
        return f"`{self.function}`: axis {self.axis} is named twice"


class WrongNumberOfAxes(Diagnostic, code="PSC312"):
    """An argument has, or lists, the wrong number of axes."""

    function: str
    given: ArrayType
    wanted: str

    def message(self) -> str:
        return f"`{self.function}` takes {self.wanted}, not {self.given}"


class ImpossibleReshape(Diagnostic, code="PSC313"):
    """An array is reshaped to a shape with another number of elements."""

    given: ArrayType
    wanted: Shape
    why: str
    missing: Fact | None = None
    steps: str = ""
    """The range whose steps stay on the axis, where the index is a loop's counter."""
    """The fact that would make the numbers of elements agree."""

    def message(self) -> str:
        return f"{self.given} cannot be reshaped to [{show_shape(self.wanted)}]"

    def label(self) -> str:
        return self.why

    def help(self) -> str | None:
        if self.steps:
            return f"`{self.steps}` stays on the axis"
        return None if self.missing is None else f"add `assert {self.missing}`"


class PiecesDoNotFit(Diagnostic, code="PSC316"):
    """Arrays with unequal shapes are joined."""

    function: str
    shapes: tuple[Shape, ...]
    why: str
    enough: Fact | None = None
    """The bound that makes them fit, if only small arrays do not fit."""

    @classmethod
    def of(
        cls,
        facts: Assumptions,
        function: str,
        shapes: Sequence[Shape],
        axis: int,
        sizes: tuple[Size, Size],
    ) -> Self:
        """The finding, with the smallest sizes that show it."""
        why = f"axis {axis}: {disagreement(facts, *sizes)}"
        enough = sufficient_bound(facts, [Fact("==", *sizes)])
        return cls(function=function, shapes=tuple(shapes), why=why, enough=enough)

    def message(self) -> str:
        shapes = " and ".join(f"[{show_shape(shape)}]" for shape in self.shapes)
        return f"`{self.function}`: shapes {shapes} do not fit together"

    def label(self) -> str:
        return self.why

    def help(self) -> str | None:
        return None if self.enough is None else f"add `assert {self.enough}`"


class DataDependentShape(Diagnostic, code="PSC317"):
    """The shape of a result would depend on the values in an array."""

    what: str
    instead: str = ""
    by: str = "the values in an array"
    written: str = ""
    """The replacement for the call around it, if it is known."""
    why: str = ""
    """The difference between the sizes of a mask and of the array, in words."""

    def message(self) -> str:
        return f"the shape of {self.what} depends on {self.by}"

    def label(self) -> str:
        return f"the mask has another shape: {self.why}" if self.why else ""

    def help(self) -> str | None:
        return f"`{self.written}`" if self.written else self.instead or None


class NotDivisible(Diagnostic, code="PSC318"):
    """An axis cannot be split into equal parts for every size."""

    function: str
    size: Size
    parts: Size
    why: str

    @classmethod
    def of(cls, facts: Assumptions, function: str, size: Size, parts: Size) -> Self:
        """The finding, with the smallest sizes that show it."""
        why = instance(facts, Fact("==", size % parts, 0)).removeprefix(", ")
        return cls(function=function, size=size, parts=parts, why=why)

    def message(self) -> str:
        return f"`{self.function}`: size {self.size} is not divisible into {self.parts} equal parts"

    def label(self) -> str:
        return self.why

    def help(self) -> str | None:
        if isinstance(self.size, int) and isinstance(self.parts, int):
            return "`np.array_split` makes parts of unequal size"
        return f"add `assert {Fact('==', self.size % self.parts, 0)}`"


class NotOfSizeOne(Diagnostic, code="PSC319"):
    """An axis that is to be removed has a size other than 1."""

    function: str
    given: ArrayType
    axis: int

    def message(self) -> str:
        size = self.given.shape[self.axis]
        return f"`{self.function}`: axis {self.axis} of {self.given} has size {size}, not 1"


class UnprovenSize(Diagnostic, code="PSC320"):
    """A size or a bound is not proved to lie within the range that it must have."""

    what: str
    claim: Fact
    why: str

    @classmethod
    def of(cls, facts: Assumptions, what: str, claim: Fact) -> Self:
        """The finding, with the smallest sizes that show it."""
        why = instance(facts, claim).removeprefix(", ")
        return cls(what=what, claim=claim, why=why)

    def message(self) -> str:
        return f"{self.what}: {tidy(self.claim)} is not proven for every size"

    def label(self) -> str:
        return self.why

    def help(self) -> str | None:
        if isinstance(self.claim.left, int) and isinstance(self.claim.right, int):
            return None
        return f"add `assert {tidy(self.claim)}`"


def tidy(fact: Fact) -> Fact:
    """Return the fact with a constant moved to one side: `2 <= n` rather than `0 <= n-2`."""
    try:
        return _tidy(fact)
    except DimTooLarge:  # it stays as it is
        return fact


def _tidy(fact: Fact) -> Fact:
    if fact.relation == "<":
        fact = Fact("<=", fact.left + 1, fact.right)
    gap = fact.right - fact.left
    if isinstance(gap, int):
        return fact
    constant = next((c for monomial, c in gap.terms if not monomial), 0)
    if all(c >= 0 for monomial, c in gap.terms if monomial):
        return Fact(fact.relation, -constant, gap - constant)
    if all(c <= 0 for monomial, c in gap.terms if monomial):
        return Fact(fact.relation, constant - gap, constant)
    return fact


# PSC314, PSC315 and PSC321: indices of arrays.


class IndexOutOfRange(Diagnostic, code="PSC314"):
    """An index is out of range, or not proved to be in range for every size."""

    index: str
    size: Size
    axis: int
    why: str
    missing: Fact | None = None
    steps: str = ""
    """The range whose steps stay on the axis, where the index is a loop's counter."""

    @classmethod
    def of(cls, facts: Assumptions, index: Size, size: Size, axis: int) -> Self:
        """The finding, with the smallest sizes that show it."""
        low, high = Fact("<=", 0, index + size), Fact("<", index, size)
        bad = high if facts.proves(low) or facts.counterexample(high) else low
        constant = isinstance(index, int) and isinstance(size, int)
        why = "" if constant else instance(facts, bad).removeprefix(", ")
        missing = None if constant else tidy(bad)
        return cls(index=str(index), size=size, axis=axis, why=why, missing=missing)

    def message(self) -> str:
        return f"index {self.index} is not within axis {self.axis} of size {self.size}"

    def label(self) -> str:
        return self.why

    def help(self) -> str | None:
        if self.steps:
            return f"`{self.steps}` stays on the axis"
        return None if self.missing is None else f"add `assert {self.missing}`"


class TooManyIndices(Diagnostic, code="PSC315"):
    """An array is indexed with more indices than it has axes."""

    given: ArrayType
    count: int

    def message(self) -> str:
        indices = "an index" if self.count == 1 else f"{self.count} indices"
        return f"{indices} for an array with {axes(self.given.rank)}, {self.given}"


class NotAnIndex(Diagnostic, code="PSC321"):
    """A value that is not an index is used as one."""

    what: str

    def message(self) -> str:
        return f"{self.what} is not an index"

    def help(self) -> str | None:
        if not self.what.startswith("an array of dtype f"):
            return None
        return "`int(…)` truncates a number to an index, and `.astype(int)` the numbers of an array"
