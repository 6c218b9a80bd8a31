"""PSC3xx: shapes and sizes that do not fit, and preconditions that are not met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from pscdsl.typing.arrays import ArrayType, Shape, show_shape
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dims import Size
from pscdsl.typing.sufficient import sufficient_bound


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
    """The shapes of the operands of an elementwise operation do not broadcast together.

    As in NumPy, shapes are aligned at the last axis; two sizes fit if they are equal or if one
    of them is 1.  They must fit for every size that the signature admits.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n d"], y: f32["n"]) -> f32["n d"]:
        return x + y
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n d"], y: f32["n"]) -> f32["n d"]:
        return x + y[:, None]
    ```
    """

    shapes: tuple[Shape, ...]
    axis: int
    why: str
    enough: Fact | None = None
    """What makes them fit, if small arrays alone do not."""
    operands: tuple[str, str] = ("", "")
    """How the operands are written, if there are two."""
    sign: str = ""
    """The operator between them."""
    kept: tuple[str, str] = ("", "")
    """How they are written with an axis kept along which they are reduced now, and which one."""
    kept_axes: tuple[int, int] = (-1, -1)

    @classmethod
    def of(
        cls, facts: Assumptions, shapes: Sequence[Shape], axis: int, left: Size, right: Size
    ) -> Self:
        """The finding, with the smallest sizes that show it, none of which would be stretched."""
        larger = facts.assume(*(Fact("<=", 2, size) for size in (left, right)))
        if larger.counterexample(Fact("==", left, right)):
            facts = larger
        why = disagreement(facts, left, right)
        enough = sufficient_bound(facts, [Fact("==", left, right)])
        return cls(shapes=tuple(shapes), axis=axis, why=why, enough=enough)

    def message(self) -> str:
        """The shapes."""
        shapes = " and ".join(f"[{show_shape(shape)}]" for shape in self.shapes)
        return f"shapes {shapes} do not broadcast together"

    def label(self) -> str:
        """Where they differ."""
        return f"axis {self.axis}: {self.why}"

    def help(self) -> str | None:
        """The usual mistake."""
        if self.enough is not None:
            return f"add `assert {self.enough}`"
        ranks = [len(shape) for shape in self.shapes]
        for texts, sign in self.rewrites():
            if sign == "@":
                return f"`{texts[0]} @ {texts[1]}` is the product of matrices"
            [changed] = [text for text in texts if text not in self.operands]
            if "keepdims" in changed:
                return f"`{changed}` keeps the axis that is reduced"
            if changed.endswith(".T"):
                return f"`{changed}` fits"
            return f"sizes are aligned at the last axis; `{changed}` has an axis of size 1 there"
        if min(ranks) != max(ranks):
            return "sizes are aligned at the last axis; `x[:, None]` adds one at the end"
        return None

    def rewrites(self) -> Iterator[tuple[tuple[str, str], str]]:
        """What fits: how the operands are written then, and the operator between them."""
        if len(self.shapes) != 2 or not all(self.operands) or self.enough is not None:
            return
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
            if len(left) == 2 and _fit(self.shapes[each][::-1], self.shapes[1 - each]):
                yield self._with(each, f"{self.operands[each]}.T")

    def _with(self, which: int, text: str) -> tuple[tuple[str, str], str]:
        texts = (text, self.operands[1]) if which == 0 else (self.operands[0], text)
        return texts, self.sign


def _fit(left: Shape, right: Shape) -> bool:
    """Whether shapes broadcast together as they are written."""
    pairs = zip(left[::-1], right[::-1], strict=False)
    return all(one == other or 1 in (one, other) for one, other in pairs)


class OutgrownUpdate(Diagnostic, code="PSC322"):
    """`+=` gives an array another shape or dtype.

    NumPy writes the result of `y += x` into the array `y`, and refuses where it has no room there:
    an array neither grows nor changes its dtype.  What a kernel accepts runs under plain NumPy too.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n d"], y: f32["d"]) -> f32["n d"]:
        z = 2 * y
        z += x
        return z
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n d"], y: f32["d"]) -> f32["n d"]:
        z = 2 * y
        z = z + x
        return z
    ```
    """

    name: str
    sign: str
    left: ArrayType
    found: ArrayType
    why: str

    def message(self) -> str:
        """Both types."""
        return f"`{self.name} {self.sign}=` gives {self.found}, but `{self.name}` is {self.left}"

    def label(self) -> str:
        """What differs."""
        return self.why

    def help(self) -> str:
        """What to write instead."""
        return f"`{self.name} = {self.name} {self.sign} …` binds the name to a new array"
