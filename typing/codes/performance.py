"""PSC8xx: programs that are slower, or larger, than they need be."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class LargeUnroll(Diagnostic, code="PSC801"):
    """A Python loop that writes a very large program.

    A `for` over static values is unrolled: each step adds its equations to the program.  The
    compiler takes some milliseconds for each of them, so that a loop that leaves a thousand takes
    seconds to compile, and again for every new size.  `psc.fori_loop` and `psc.scan` keep the loop
    a loop.

    Reported are loops and comprehensions of 16 steps or more that leave 1000 equations or more.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def iterate(x: f32["n"]) -> f32["n"]:
        for _ in range(500):
            x = np.tanh(x) * 2 - x
        return x
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def iterate(x: f32["n"]) -> f32["n"]:
        return psc.fori_loop(0, 500, lambda _, x: np.tanh(x) * 2 - x, x)
    ```
    """

    steps: int
    equations: int

    def message(self) -> str:
        """How large."""
        return f"this loop of {self.steps} steps is unrolled into {self.equations} equations"

    def help(self) -> str:
        """What keeps it small."""
        return (
            "`psc.fori_loop` or `psc.scan` compiles one step; what the steps read of a list can be "
            "stacked into an array for `psc.scan`"
        )


class LargeConstant(Diagnostic, code="PSC802"):
    """A large array that is written into the program.

    A captured array is part of the program: it is hashed when the program is looked up, compiled
    into it, and kept in memory once for each size that the program is compiled for.  As an
    argument it is none of that.

    Reported from 1 MiB on.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32

    TABLE = np.ones((1024, 512), np.float32)


    @psc.kernel
    def project(x: f32["n 1024"]) -> f32["n 512"]:
        return x @ TABLE
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def project(x: f32["n 1024"], table: f32["1024 512"]) -> f32["n 512"]:
        return x @ table
    ```
    """

    type: str
    size: int

    def message(self) -> str:
        """How large."""
        size = f"{self.size / 2**20:.0f} MiB"
        return f"a captured array of {size}, {self.type}, is written into the program"

    def help(self) -> str:
        """What keeps it out."""
        return "take it as an argument"


class UnaskedDouble(Diagnostic, code="PSC803"):
    """A result in double precision that nothing in the kernel requests.

    NumPy makes f64 of Python floats (`np.array([0.5, 1.5])`) and of 64-bit integers, and such an
    array keeps its dtype when a kernel captures it.  On accelerators f64 is many times slower than
    f32, and some have none.  Write the dtype, or declare the result as f64 if it is meant.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import i32

    WEIGHTS = np.array([0.25, 0.5, 0.25])


    @psc.kernel
    def weight(i: i32):
        return WEIGHTS[i % 3]
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32, i32

    WEIGHTS = np.array([0.25, 0.5, 0.25], np.float32)


    @psc.kernel
    def weight(i: i32) -> f32:
        return WEIGHTS[i % 3]
    ```
    """

    result: str
    origin: str

    def message(self) -> str:
        """What becomes of it."""
        what = f"`{self.origin}`" if self.origin else "this"
        return f"{what} is in double precision, and so is the result: {self.result}"

    def help(self) -> str:
        """Either way."""
        return "give it a dtype (`np.float32`), or declare the result if f64 is meant"


class ProductOfRows(Diagnostic, code="PSC804"):
    """A matrix is multiplied row by row, where one product suffices.

    A product of matrices reads the matrix once for many rows; a product with one row at a time
    reads it each time.  Take the product of all rows, and map what remains over its rows.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def layer(w: f32["m d"], xs: f32["n d"]) -> f32["n m"]:
        return psc.map(lambda x: np.tanh(w @ x), xs)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def layer(w: f32["m d"], xs: f32["n d"]) -> f32["n m"]:
        return np.tanh(xs @ w.T)
    ```
    """

    rows: str
    matrix: str
    axis: int

    def message(self) -> str:
        """What is slow."""
        return "a product with one row at a time: one product of all rows is faster"

    def help(self) -> str:
        """The product."""
        rows, matrix = self.rows or "rows", self.matrix or "w"
        return f"`{rows} @ {matrix}{'.T' if self.axis else ''}`, then map the rest over its rows"
