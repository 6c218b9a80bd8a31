"""`n / 2` of a size: a number, of which rounding gives a size again."""

from __future__ import annotations

from pscdsl._src.frontend.numbers_of_sizes import Bounds, Number, bounds_of
from pscdsl._src.ir.builder import Builder, Weak
from pscdsl.numpy import methods as table
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.dims import Dim, Size

LARGEST = 2**20
"""Python divides into f64: below this, what it gives for a size is rounded as the quotient is."""


class Quotient(Number):
    """A size divided by a positive integer, as a number in Python's arithmetic."""

    __slots__ = ("denominator", "numerator")

    numerator: Size
    denominator: int

    def floor(self) -> Size:
        """The largest integer that is not above it."""
        return self.numerator // self.denominator

    def ceil(self) -> Size:
        """The smallest integer that is not below it."""
        return -((-self.numerator) // self.denominator)

    def truncated(self) -> Size | None:
        """What `int` makes of it; None if its sign is not known."""
        return self.floor() if self.builder.facts.proves(Fact("<=", 0, self.numerator)) else None


def quotient(here: Builder, numerator: Dim, denominator: int) -> Number:
    """A size divided by a positive integer."""
    weak: Weak = table.BINARY["Div"].apply(here, (here.weak(numerator), denominator), {})
    size = bounds_of(here.facts, numerator)
    assert size is not None

    def bounds(tight: bool) -> Bounds:
        low, high = size(tight)
        return Bounds(low / denominator, high / denominator)

    if denominator > LARGEST:
        return Number.of(weak, bounds)
    made = Quotient.of(weak, bounds)
    made.numerator, made.denominator = numerator, denominator
    return made
