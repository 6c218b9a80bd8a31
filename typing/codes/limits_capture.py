"""PSC912 and on: values and functions beyond what the analysis can see."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class CaptureEscapes(Diagnostic, code="PSC912"):
    """A kernel reads a mutable value that is handed to code which cannot be seen.

    A list, dict or array outside of the kernel is a constant of it as long as nothing writes it.
    This one is passed to a function whose source is not among the files that are checked, or
    reached by names that are computed, so that nobody can say whether it is written there.

    ## Example

    ```py
    import numpy as np
    import skimage

    import pscdsl as psc
    from pscdsl import f32

    WEIGHTS = np.ones(3, np.float32)
    skimage.normalise(WEIGHTS)


    @psc.kernel
    def weigh(x: f32["3"]) -> f32:
        return WEIGHTS @ x
    ```

    ## Fix

    ```py
    import numpy as np
    import skimage

    import pscdsl as psc
    from pscdsl import f32

    WEIGHTS = np.ones(3, np.float32)
    skimage.normalise(WEIGHTS.copy())


    @psc.kernel
    def weigh(x: f32["3"]) -> f32:
        return WEIGHTS @ x
    ```
    """

    name: str
    passed_to: str

    def message(self) -> str:
        """Which name, and where it goes."""
        return f"`{self.name}` may be written by {self._by()}"

    def _by(self) -> str:
        named = self.passed_to.replace(".", "").replace("_", "").isalnum()
        return f"`{self.passed_to}`, which cannot be seen" if named else self.passed_to

    def help(self) -> str:
        """What to write instead."""
        return "hand on a copy, make it a tuple, or pass it to the kernel as an argument"
