"""PSC4xx: element types that do not fit a signature."""

from __future__ import annotations

from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dtypes import KEY


def _number(declared: str) -> str:
    """Which numbers a declared dtype takes up, in words; none for keys and complex numbers."""
    for start, words in (
        (("bool", "Bool"), "`True` or `False`"),
        (("i", "u", "Int"), "a whole number"),
        (("f", "bf", "Float"), "a real number"),
    ):
        if declared.startswith(start):
            return words
    return ""


class ArgumentDtype(Diagnostic, code="PSC404"):
    """An argument's dtype does not fit the signature of the kernel that is called.

    Arrays are never converted silently, not even to a wider dtype: a cast costs memory and may
    change what is computed.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32, f64


    @psc.kernel
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x


    @psc.kernel
    def f(x: f64["n"]) -> f32["n"]:
        return double(x)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32, f64


    @psc.kernel
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x


    @psc.kernel
    def f(x: f64["n"]) -> f32["n"]:
        return double(x.astype(f32))
    ```
    """

    function: str
    argument: str
    declared: str
    given: ArrayType

    def message(self) -> str:
        """Which argument, and both types."""
        return (
            f"argument `{self.argument}` of `{self.function}` is {self.given}, "
            f"but {self.declared} is declared"
        )

    def help(self) -> str:
        """The cast; a key has none."""
        if self.declared.startswith(KEY.name):
            return "keys come from `psc.random.key(seed)` and `psc.random.split(key)`"
        if self.given.dtype is KEY:
            return "draw numbers from the key, for instance by `psc.random.uniform(key)`"
        number = "" if self.given.shape else _number(self.declared)
        if number and number != _number(self.given.dtype.name):
            return f"give {number}; an array is cast with `.astype(...)`, never silently"
        return "cast it with `.astype(...)`; arrays are never converted silently"


class ReturnDtype(Diagnostic, code="PSC405"):
    """The result of a kernel does not have the declared dtype.

    Python scalars adapt to the declared dtype; arrays do not.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32, f64


    @psc.kernel
    def f(x: f32["n"]) -> f64["n"]:
        return x * 2
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32, f64


    @psc.kernel
    def f(x: f32["n"]) -> f64["n"]:
        return (x * 2).astype(f64)
    ```
    """

    function: str
    path: str
    declared: ArrayType
    found: ArrayType

    def message(self) -> str:
        """Both types."""
        part = f"result{self.path} of " if self.path else ""
        return f"{part}`{self.function}` returns {self.found}, but {self.declared} is declared"

    def help(self) -> str:
        """The cast."""
        return f"`.astype(psc.{self.declared.dtype})`, or declare {self.found}"
