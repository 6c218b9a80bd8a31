"""PSC9xx: budgets that cannot be read, or decided."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class BudgetNotProven(Diagnostic, code="PSC906"):
    """A budget is neither proved nor refuted.

    A budget holds if it is proven for every size that the signature and the kernel's
    preconditions admit.  This one was neither proven nor refuted: how many steps a loop takes is
    known only when it runs, static values were tried by examples alone, an operation does not say
    what it costs, or the proof is out of reach.

    * `psc.while_loop(..., max_steps=n)` counts with n steps.
    * `psc.Static[Literal[1, 2]]` names all values, and then each is tried.
    * An `assert` on the sizes, such as `assert n >= k`, may be what the proof lacks.
    * A simpler bound is easier to prove than one with quotients, minima and maxima.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel  # psc: budget flops <= 2000*n
    def root(a: f32["n"]) -> f32["n"]:
        return psc.while_loop(
            lambda x: np.max(np.abs(x * x - a)) > 1e-6, lambda x: (x + a / x) / 2, a
        )
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel  # psc: budget flops <= 2000*n
    def root(a: f32["n"]) -> f32["n"]:
        return psc.while_loop(
            lambda x: np.max(np.abs(x * x - a)) > 1e-6, lambda x: (x + a / x) / 2, a, max_steps=100
        )
    ```
    """

    budget: str
    reason: str
    instead: str = ""

    def message(self) -> str:
        """Which, and why."""
        return f"it is not known whether `{self.budget}` holds: {self.reason}"

    def help(self) -> str | None:
        """What would decide it."""
        return self.instead or None


class MalformedBudget(Diagnostic, code="PSC926"):
    """A budget that cannot be read, or that belongs to no kernel.

    A budget is a comment on the line of a kernel's `def` or decorator, or above it, or the
    decorator's argument:

        @psc.kernel  # psc: budget flops <= 2*n*d, peak <= 8*n*d
        @psc.kernel(budget="gradient flops <= 6*n*d")

    On the left stands what `pscdsl cost` prints: `flops`, `bytes`, `arguments`, `results`, `peak`
    (also called `memory`), or these of the gradient in the first parameter, `gradient flops`.  On
    the right stands a size, in the names of the signature; the name of a group of axes, `b` of
    `*b`, is the product of their sizes.  What cannot be read bounds nothing, so it is an error.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel(budget="flop <= 2*m")
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel(budget="flops <= 2*n")
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x
    ```
    """

    reason: str
    instead: str = ""

    def message(self) -> str:
        """What is wrong with it."""
        return f"malformed budget: {self.reason}"

    def help(self) -> str | None:
        """The form."""
        return self.instead or "write `# psc: budget flops <= 2*n`"
