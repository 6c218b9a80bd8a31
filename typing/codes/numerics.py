"""PSC7xx: programs whose numbers may not be what they seem."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic, Severity


class AliasedUpdate(Diagnostic, code="PSC701", severity=Severity.ERROR):
    """`+=` on an array that somebody else may hold.

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
