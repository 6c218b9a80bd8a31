"""PSC420 to PSC429: dtypes in which something cannot be accumulated."""

from __future__ import annotations

from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dtypes import DType


class AccumulatorTooNarrow(Diagnostic, code="PSC420"):
    """The `dtype` of a reduction cannot hold what is reduced.

    Each element is converted before it is added, so a sum of fractions in an integer dtype, or of
    complex numbers in a real one, drops a part of every element.  Convert the array or the result,
    and it is plain which of the two is meant.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32, i32


    @psc.kernel
    def f(x: f32["n"]) -> i32:
        return np.sum(x, dtype=i32)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32, i32


    @psc.kernel
    def f(x: f32["n"]) -> i32:
        return np.sum(x).astype(i32)
    ```
    """

    function: str
    given: ArrayType
    dtype: DType

    def message(self) -> str:
        """What does not fit where."""
        return f"{self.function}: elements of {self.given} do not fit into {self.dtype}"

    def help(self) -> str:
        """The two ways to write it."""
        return (
            f"convert the result with `.astype(psc.{self.dtype})`, or the array, "
            "if every element is to be cut"
        )
