"""PSC5xx: axes of batches."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class AxisMismatch(Diagnostic, code="PSC515"):
    """`in_axes` or `out_axes` of `psc.vmap` does not fit the arguments or results.

    `in_axes` is one axis for all arguments, or a tuple with an axis, or a tree of axes, for each;
    None stands for an argument that is the same for all rows.  `out_axes` is the same for results.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def sums(x: f32["b n"]) -> f32["b"]:
        return psc.vmap(np.sum, in_axes=2)(x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def sums(x: f32["b n"]) -> f32["b"]:
        return psc.vmap(np.sum, in_axes=0)(x)
    ```
    """

    given: str
    why: str

    def message(self) -> str:
        """What is given, and what it meets."""
        return f"`psc.vmap`: {self.given}, but {self.why}"

    def help(self) -> str | None:
        """What they may be."""
        if self.given.startswith("out_axes"):
            return "`out_axes` is one axis for all results, or a tree of axes like the result's"
        if self.given.startswith("axis_size"):
            return None
        return (
            "`in_axes` is one axis for all arguments, or a tuple with one for each: an axis, a "
            "tree of axes, or None for what is the same for all rows"
        )


class BatchSizesDiffer(Diagnostic, code="PSC516"):
    """The axes that `psc.vmap` maps over differ in size.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def dots(x: f32["b n"], w: f32["n"]) -> f32["b"]:
        return psc.vmap(np.dot)(x, w)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def dots(x: f32["b n"], w: f32["n"]) -> f32["b"]:
        return psc.vmap(np.dot, in_axes=(0, None))(x, w)
    ```
    """

    sizes: tuple[str, ...]
    why: str

    def message(self) -> str:
        """The sizes."""
        return f"`psc.vmap` maps over axes of sizes {', '.join(self.sizes)}"

    def label(self) -> str:
        """How they differ."""
        return self.why

    def help(self) -> str | None:
        """How to say that an argument is shared."""
        return "an argument that is the same for all rows has None in `in_axes`"
