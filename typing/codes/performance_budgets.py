"""PSC8xx: kernels that cost more than they may."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic, Severity


class BudgetExceeded(Diagnostic, code="PSC807", severity=Severity.ERROR):
    """A kernel that costs more than its budget.

    A budget is a bound on what `pscdsl cost` counts: floating-point operations, bytes moved, and
    memory, as polynomials in the sizes.  It holds for every size that the signature and the
    kernel's preconditions admit, and in every dtype and rank that they leave open.  The finding
    has the smallest sizes at which it does not, and the places that cost most there.

    It is a count of the checked program, not a measurement: a product of matrices that was meant
    to be one with a vector, or a loop in a loop, exceeds it whatever the machine is.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel  # psc: budget flops <= 2*n*d + n
    def distances(x: f32["n d"], y: f32["d"]) -> f32["n"]:
        return np.sum((x - y) ** 2, axis=1)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel  # psc: budget flops <= 3*n*d
    def distances(x: f32["n d"], y: f32["d"]) -> f32["n"]:
        return np.sum((x - y) ** 2, axis=1)
    ```
    """

    subject: str
    """The kernel, or its gradient."""
    measure: str
    budget: str
    """The bound on the right."""
    cost: str
    sizes: tuple[tuple[str, int], ...] = ()
    taken: int = 0
    allowed: int = 0
    holds: str = ""
    """A bound that would hold."""
    strict: bool = False
    """Whether the bound itself is not allowed."""

    def message(self) -> str:
        """The polynomial, and numbers."""
        over = f"{'not less' if self.strict else 'more'} than {self.budget}"
        text = f"{self.subject} has {self.measure} {self.cost}, {over}"
        if self.sizes:
            at = ", ".join(f"{name}={value}" for name, value in self.sizes)
            text += f": {self.taken:,} where {self.allowed:,} are allowed, for instance at {at}"
        return text

    def help(self) -> str:
        """A bound that holds."""
        return f"`{self.holds}` holds; `pscdsl cost` prints all that is counted"
