"""PSC310 to PSC329: shapes and sizes where arrays are manipulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pscdsl.typing.arrays import ArrayType, Shape, show_shape
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.shapes import disagreement, instance
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dims import DimTooLarge, Size
from pscdsl.typing.sufficient import sufficient_bound


def axes(count: int) -> str:
    """A number of axes, in words."""
    return "1 axis" if count == 1 else f"{count} axes"


class AxisOutOfRange(Diagnostic, code="PSC310"):
    """An array does not have the named axis.

    Axes are counted from 0; negative ones count from the end.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n d"]) -> f32["n"]:
        return np.sum(x, axis=2)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n d"]) -> f32["n"]:
        return np.sum(x, axis=1)
    ```
    """

    function: str
    axis: int
    rank: int

    def message(self) -> str:
        """The axis and how many there are."""
        return f"`{self.function}`: axis {self.axis} of an array with {axes(self.rank)}"

    def help(self) -> str | None:
        """Which axes there are."""
        if not self.rank:
            return "a scalar has no axes"
        return f"the axes are 0 to {self.rank - 1}, or -{self.rank} to -1 from the end"


class RepeatedAxis(Diagnostic, code="PSC311"):
    """The same axis is named twice.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n d"]) -> f32:
        return np.sum(x, axis=(0, -2))
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n d"]) -> f32:
        return np.sum(x, axis=(0, 1))
    ```
    """

    function: str
    axis: int

    def message(self) -> str:
        """The axis."""
        return f"`{self.function}`: axis {self.axis} is named twice"


class WrongNumberOfAxes(Diagnostic, code="PSC312"):
    """An argument has, or lists, the wrong number of axes.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n d"]) -> f32["d n"]:
        return np.transpose(x, (1,))
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n d"]) -> f32["d n"]:
        return np.transpose(x, (1, 0))
    ```
    """

    function: str
    given: ArrayType
    wanted: str

    def message(self) -> str:
        """What is wanted and what was given."""
        return f"`{self.function}` takes {self.wanted}, not {self.given}"


class ImpossibleReshape(Diagnostic, code="PSC313"):
    """An array is reshaped to a shape with another number of elements.

    The numbers must agree for every size that the signature admits; a size written as -1 must
    follow from the others without a remainder.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n//2 2"]:
        return x.reshape(-1, 2)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["2*n"]) -> f32["n 2"]:
        return x.reshape(-1, 2)
    ```
    """

    given: ArrayType
    wanted: Shape
    why: str
    missing: Fact | None = None
    """What would make the numbers of elements agree."""

    def message(self) -> str:
        """Both shapes."""
        return f"{self.given} cannot be reshaped to [{show_shape(self.wanted)}]"

    def label(self) -> str:
        """Where the numbers of elements differ."""
        return self.why

    def help(self) -> str | None:
        """The assertion to add."""
        return None if self.missing is None else f"add `assert {self.missing}`"


class PiecesDoNotFit(Diagnostic, code="PSC316"):
    """Arrays with unequal shapes are joined.

    Arrays that are concatenated have the same sizes on all other axes; arrays that are stacked
    have the same sizes on all axes.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n d"], y: f32["m"]) -> f32["n+1 d"]:
        return np.concatenate([x, y[None, :]])
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n d"], y: f32["d"]) -> f32["n+1 d"]:
        return np.concatenate([x, y[None, :]])
    ```
    """

    function: str
    shapes: tuple[Shape, ...]
    why: str
    enough: Fact | None = None
    """What makes them fit, if small arrays alone do not."""

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
        """The shapes."""
        shapes = " and ".join(f"[{show_shape(shape)}]" for shape in self.shapes)
        return f"`{self.function}`: shapes {shapes} do not fit together"

    def label(self) -> str:
        """Where they differ."""
        return self.why

    def help(self) -> str | None:
        """The assertion to add."""
        return None if self.enough is None else f"add `assert {self.enough}`"


class DataDependentShape(Diagnostic, code="PSC317"):
    """The shape of a result would depend on the values in an array.

    Shapes are known before the program runs, as functions of the sizes of its arguments.  What
    is selected by a mask keeps its place instead: `np.where` puts a neutral value elsewhere.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        return np.sum(x[x > 0])
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        return np.sum(np.where(x > 0, x, 0))
    ```
    """

    what: str
    instead: str = ""
    by: str = "the values in an array"
    written: str = ""
    """What is written in the place of the call around it, if that is known."""

    def message(self) -> str:
        """What the shape would depend on."""
        return f"the shape of {self.what} depends on {self.by}"

    def help(self) -> str | None:
        """What keeps the shape."""
        return f"`{self.written}`" if self.written else self.instead or None


class NotDivisible(Diagnostic, code="PSC318"):
    """An axis cannot be split into equal parts for every size.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n//2"]:
        a, b = np.split(x, 2)
        return a + b
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n//2"]:
        n = x.shape[0]
        assert n % 2 == 0
        a, b = np.split(x, 2)
        return a + b
    ```
    """

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
        """The size and the number of parts."""
        return f"`{self.function}`: size {self.size} is not divisible into {self.parts} equal parts"

    def label(self) -> str:
        """Sizes that show it."""
        return self.why

    def help(self) -> str | None:
        """The assertion to add."""
        if isinstance(self.size, int) and isinstance(self.parts, int):
            return "`np.array_split` makes parts of unequal size"
        return f"add `assert {Fact('==', self.size % self.parts, 0)}`"


class NotOfSizeOne(Diagnostic, code="PSC319"):
    """An axis that is removed has a size other than 1.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n d"]) -> f32["n"]:
        return np.squeeze(x, axis=1)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n 1"]) -> f32["n"]:
        return np.squeeze(x, axis=1)
    ```
    """

    function: str
    given: ArrayType
    axis: int

    def message(self) -> str:
        """The axis and its size."""
        size = self.given.shape[self.axis]
        return f"`{self.function}`: axis {self.axis} of {self.given} has size {size}, not 1"


class UnprovenSize(Diagnostic, code="PSC320"):
    """A size or a bound is not proven to be within the range that it must have.

    A size must not be negative.  The bound of a slice may be negative, and then counts from the
    end; but which of the two it is must be the same for every size.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n-2"]:
        n = x.shape[0]
        return np.zeros(n - 2)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n-2"]:
        n = x.shape[0]
        assert n >= 2
        return np.zeros(n - 2)
    ```
    """

    what: str
    claim: Fact
    why: str

    @classmethod
    def of(cls, facts: Assumptions, what: str, claim: Fact) -> Self:
        """The finding, with the smallest sizes that show it."""
        why = instance(facts, claim).removeprefix(", ")
        return cls(what=what, claim=claim, why=why)

    def message(self) -> str:
        """What is not proven."""
        return f"{self.what}: {tidy(self.claim)} is not proven for every size"

    def label(self) -> str:
        """Sizes that show it."""
        return self.why

    def help(self) -> str | None:
        """The assertion to add."""
        if isinstance(self.claim.left, int) and isinstance(self.claim.right, int):
            return None
        return f"add `assert {tidy(self.claim)}`"


def tidy(fact: Fact) -> Fact:
    """The same fact with a constant moved to one side: `2 <= n` rather than `0 <= n-2`."""
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
