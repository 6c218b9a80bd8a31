"""PSC7xx: programs whose numbers may not be what they seem."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic, Severity


class AliasedUpdate(Diagnostic, code="PSC701", severity=Severity.ERROR):
    """`+=` on an array that may be shared.

    In a kernel `y += 1` binds `y` to a new array, and whoever holds the old one keeps it.  NumPy
    changes the array itself, and everybody sees the change: the caller whose argument it is,
    another name, a list, an array of which it is a view.  `+=` is accepted where the function
    itself made the array, by an operator or by a function of NumPy that makes new memory, and hands
    it to nobody before it returns.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def shift(x: f32["n"]) -> f32["n"]:
        y = x
        y += 1
        return x * y
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def shift(x: f32["n"]) -> f32["n"]:
        y = x + 1
        return x * y
    ```
    """

    name: str
    sign: str
    why: str
    """Who may hold the array."""
    lost: bool = False
    """Whether the function would not return the new one."""

    def message(self) -> str:
        """What is updated, and who may see it."""
        return f"`{self.name} {self.sign}=` may change an array that others hold: {self.why}"

    def help(self) -> str:
        """What to write instead."""
        returned = f", and `return {self.name}` at the end gives it away" if self.lost else ""
        return f"`{self.name} = {self.name} {self.sign} …` makes a new array{returned}"


class ColumnMeetsRow(Diagnostic, code="PSC714", severity=Severity.WARNING):
    """A column of n and a row of n broadcast to n times n elements that are reduced.

    `[n 1]` and `[n]` broadcast to `[n n]`: every element of the one beside every element of the
    other.  Inside of a sum or mean nobody sees that, and a loss is one of all pairs.  Give both the
    same axes.  Where all pairs are wanted, `x[:, None]` says so.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def loss(w: f32["d 1"], x: f32["n d"], y: f32["n"]) -> f32:
        return np.mean((x @ w - y) ** 2)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def loss(w: f32["d 1"], x: f32["n d"], y: f32["n"]) -> f32:
        return np.mean(((x @ w)[:, 0] - y) ** 2)
    ```
    """

    column: str
    row: str
    types: tuple[str, str]
    result: str

    def message(self) -> str:
        """What is combined."""
        names = [f"`{each}` is " if each else "" for each in (self.column, self.row)]
        column, row = (name + kind for name, kind in zip(names, self.types, strict=True))
        return f"{column} and {row}: together they make {self.result}, and all of it is reduced"

    def help(self) -> str:
        """How to say which is meant."""
        column, row = self.column or "x", self.row or "y"
        column = column if column.isidentifier() else f"({column})"
        return (
            f"`{column}[..., 0]` has the axes of `{row}`; "
            f"where all pairs are wanted, `{column}[..., 0][..., None]` says so"
        )
