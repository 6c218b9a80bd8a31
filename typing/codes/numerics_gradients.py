"""PSC704: values that are numbers where their gradients are not."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class NanInGradient(Diagnostic, code="PSC704"):
    """`where` hides a NaN or infinity from the value, but not from the gradient.

    `np.where` computes both operands everywhere.  The value of the one that is not chosen is
    dropped; its gradient is multiplied by zero, and zero times infinity is NaN.  So the gradient is
    NaN where the function has no finite derivative, though it is not chosen there.  Choose the
    operand of the function first, then the result.

    Reported where the condition compares what the function is applied to.  It matters only if the
    result is differentiated.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def entropy(p: f32["n"]) -> f32:
        return -np.sum(np.where(p > 0, p * np.log(p), 0))
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def entropy(p: f32["n"]) -> f32:
        return -np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0))
    ```
    """

    function: str
    condition: str
    holds: bool
    operand: str
    safe: str
    rewrite: str
    """The whole expression, mended; empty if it cannot be told."""

    def message(self) -> str:
        """Where it is NaN."""
        name = self.function if " " in self.function else f"`{self.function}`"
        where = ""
        if self.condition:
            where = f" where `{self.condition}` {'fails' if self.holds else 'holds'}"
        return f"the gradient can be NaN{where}: it is that of {name} times zero"

    def help(self) -> str:
        """The same with two choices."""
        if self.rewrite:
            return f"choose the operand too: `{self.rewrite}`"
        condition, operand = self.condition or "condition", self.operand or "x"
        chosen = f"{operand}, {self.safe}" if self.holds else f"{self.safe}, {operand}"
        return f"choose the operand too: `np.where({condition}, {chosen})` in place of `{operand}`"
