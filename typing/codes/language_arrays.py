"""PSC1xx: Python asks for the value of an array, which is known only when the kernel runs."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class BranchOnArray(Diagnostic, code="PSC121"):
    """Python decides on the value of an array, which is known only when the kernel runs.

    `if`, `while`, `and`, `or`, `not`, `assert` and chained comparisons ask for one truth value
    while the kernel is checked.  The program decides at run time instead: `psc.cond` runs one of
    two functions, `np.where` selects element by element, `&`, `|` and `~` combine conditions.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def flip(x: f32["n"]) -> f32["n"]:
        if x.sum() < 0:
            return -x
        return x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def flip(x: f32["n"]) -> f32["n"]:
        return psc.cond(x.sum() < 0, lambda: -x, lambda: x)
    ```
    """

    construct: str
    found: str
    rewrite: str

    def message(self) -> str:
        """Which construct."""
        return (
            f"{self.construct} asks for the truth of an array ({self.found}), "
            "which is known only at run time"
        )

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None


class LoopOverArray(Diagnostic, code="PSC122"):
    """A Python loop runs over an array.

    A Python loop is unrolled while the kernel is checked, but how many rows an array has is for
    the caller to decide.  `psc.scan` and `psc.map` are loops of the program, of any length.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def norms(xs: f32["t n"]) -> f32["t"]:
        return np.stack([np.sqrt(x @ x) for x in xs])
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def norms(xs: f32["t n"]) -> f32["t"]:
        return psc.map(lambda x: np.sqrt(x @ x), xs)
    ```
    """

    found: str

    def message(self) -> str:
        """Over what."""
        return f"a Python loop cannot run over an array ({self.found})"

    def help(self) -> str:
        """What to write instead."""
        return "`psc.scan(step, init, xs)` or `psc.map(f, xs)` loops over the leading axis"


class ArrayLeavesProgram(Diagnostic, code="PSC123"):
    """An array is turned into a Python number or list.

    `float(x)`, `int(x)`, `x.item()`, `x.tolist()` and the functions of `math` need the value of an
    array while the kernel is checked.  Keep it an array: a scalar is an array without axes.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def root(x: f32["n"]) -> f32:
        return float(x.sum()) ** 0.5
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def root(x: f32["n"]) -> f32:
        return x.sum() ** 0.5
    ```
    """

    function: str
    rewrite: str

    def message(self) -> str:
        """By what."""
        return f"`{self.function}` needs the value of an array, which is known only at run time"

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None
