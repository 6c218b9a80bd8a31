"""PSC5xx: what can be differentiated and batched, and by which rules."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class UnboundedReverse(Diagnostic, code="PSC512"):
    """Reverse mode through a loop of which nobody knows how many steps it takes.

    To run a loop backwards, what each step did is saved on the way, and the space for that is
    allotted beforehand.  `max_steps=` says how many there are at most; time is spent only on the
    steps that are taken.  Forward mode (`psc.jvp`, `psc.jacfwd`) needs no bound.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def root(a: f32) -> f32:
        return psc.while_loop(lambda x: np.abs(x * x - a) > 1e-6, lambda x: (x + a / x) / 2, a)


    @psc.kernel
    def slope(a: f32) -> f32:
        return psc.grad(root)(a)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def root(a: f32) -> f32:
        return psc.while_loop(
            lambda x: np.abs(x * x - a) > 1e-6, lambda x: (x + a / x) / 2, a, max_steps=100
        )


    @psc.kernel
    def slope(a: f32) -> f32:
        return psc.grad(root)(a)
    ```
    """

    asked: str = ""

    def message(self) -> str:
        """What has no bound."""
        by = f", which `{self.asked}` asks for" if self.asked else ""
        return f"reverse mode{by} goes through a `while_loop` without a bound"

    def help(self) -> str | None:
        """How to give one."""
        return "say how many steps there are at most: `psc.while_loop(…, max_steps=1000)`"
