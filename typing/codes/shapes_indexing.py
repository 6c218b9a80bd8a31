"""PSC314, PSC315 and PSC321: indices of arrays."""

from __future__ import annotations

from typing import Self

from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.shapes import instance
from pscdsl.typing.codes.shapes_manipulation import axes, tidy
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dims import Size


class IndexOutOfRange(Diagnostic, code="PSC314"):
    """An index is out of range, or not proven to be in range for every size.

    An index that is known while checking must lie within its axis for every size that the
    signature admits.  An index that is computed by the program is clamped when it runs.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        return x[3]
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        n = x.shape[0]
        assert n >= 4
        return x[3]
    ```
    """

    index: str
    size: Size
    axis: int
    why: str
    missing: Fact | None = None

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
        """The index and the size."""
        return f"index {self.index} is not within axis {self.axis} of size {self.size}"

    def label(self) -> str:
        """Sizes that show it."""
        return self.why

    def help(self) -> str | None:
        """The assertion to add."""
        return None if self.missing is None else f"add `assert {self.missing}`"


class TooManyIndices(Diagnostic, code="PSC315"):
    """An array was indexed with more indices than it has axes.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        return x[0, 0]
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        return x[0]
    ```
    """

    given: ArrayType
    count: int

    def message(self) -> str:
        """How many, and of what."""
        indices = "an index" if self.count == 1 else f"{self.count} indices"
        return f"{indices} for an array with {axes(self.given.rank)}, {self.given}"


class NotAnIndex(Diagnostic, code="PSC321"):
    """A value is used as an index and is not one.

    An index is an integer, a slice, `...`, `None`, or an array of integers.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"], i: f32) -> f32:
        return x[i]
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32, i32


    @psc.kernel
    def f(x: f32["n"], i: i32) -> f32:
        return x[i]
    ```
    """

    what: str

    def message(self) -> str:
        """What it is."""
        return f"{self.what} is not an index"
