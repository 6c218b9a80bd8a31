"""PSC7xx: programs whose numbers may not be what they seem."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class AliasedUpdate(Diagnostic, code="PSC701"):
    """`+=` on a name whose array is known by another name too.

    In a kernel `y += 1` binds `y` to a new array, and every other name keeps the old one.  NumPy
    changes the array itself, so that the other names see the change: the same function gives
    another result when it runs under plain NumPy.

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
    other: str
    sign: str

    def message(self) -> str:
        """Both names."""
        return (
            f"`{self.name} {self.sign}=` leaves `{self.other}` as it is, "
            "which under plain NumPy would change with it"
        )

    def help(self) -> str:
        """What to write instead."""
        return f"`{self.name} = {self.name} {self.sign} …` means the same everywhere"
