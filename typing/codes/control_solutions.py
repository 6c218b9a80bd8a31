"""PSC5xx: solutions of equations, with the derivatives of these."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class SolutionMismatch(Diagnostic, code="PSC523"):
    """The functions of an equation and of its solution do not fit together.

    `psc.custom_linear_solve` and `psc.custom_root` solve as many equations as there are unknowns:
    the map, or the function, returns what has the types of its argument, and so do the functions
    that solve.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def least_squares(a: f32["m n"], b: f32["n"]) -> f32["n"]:
        def solve(matvec, b):
            return np.linalg.solve(a.T @ a, b)

        return psc.custom_linear_solve(lambda x: a @ x, b, solve, symmetric=True)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def least_squares(a: f32["m n"], b: f32["n"]) -> f32["n"]:
        def solve(matvec, b):
            return np.linalg.solve(a.T @ a, b)

        return psc.custom_linear_solve(lambda x: a.T @ (a @ x), b, solve, symmetric=True)
    ```
    """

    combinator: str
    what: str
    given: str
    wanted: str
    why: str = ""

    def message(self) -> str:
        """Which function, and what the equation needs."""
        return (
            f"{self.what} of `{self.combinator}` gives {self.given}, "
            f"but the equation is one of {self.wanted}"
        )

    def label(self) -> str:
        """What differs."""
        return self.why
