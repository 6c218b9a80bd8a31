"""PSC702 and PSC703: computed indices and starts that leave their axis."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dims import Size


class IndexLeavesAxis(Diagnostic, code="PSC702"):
    """A computed index leaves its axis, and is clamped.

    NumPy raises an error for such an index; a compiled program cannot.  It takes the element at
    the nearest end instead, so that nothing seems to be wrong.  Negative indices down to `-n`
    count from the end, as in NumPy, and are not meant here.

    Reported is what is known to happen: that of a loop's counter plus 1 in its last step, for
    instance, or of an index cut to a range that is too long.  An index of which nothing is known,
    a parameter for instance, is not reported, nor is a read whose value `np.where` throws away by
    a condition on the index, as in `np.where(i < n - 1, x[i + 1], 0)`.

    `i % n` wraps around, and `np.clip(i, 0, n - 1)` says that the nearest end is meant; so does
    `np.take` with `mode="wrap"` and `mode="clip"`.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def differences(x: f32["n"]) -> f32["n"]:
        return psc.map(lambda i: x[i + 1] - x[i], np.arange(x.shape[0]))
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def differences(x: f32["n"]) -> f32["n"]:
        n = x.shape[0]
        return psc.map(lambda i: x[np.clip(i + 1, 0, n - 1)] - x[i], np.arange(n))
    ```
    """

    index: str
    """The index as it is written, or empty."""
    bound: Size
    """What it reaches."""
    size: Size
    count: str
    """How the size of the axis can be written."""
    why: str
    """Where it depends on sizes: for which."""
    written: bool
    """Whether something is put there rather than read."""

    def message(self) -> str:
        """What it reaches, and what happens."""
        index = f"`{self.index}`" if self.index else "this index"
        what = "written" if self.written else "read"
        return (
            f"{index} can be {self.bound} on an axis of size {self.size}{self.why}: "
            f"the nearest element is {what}"
        )

    def label(self) -> str:
        """The range."""
        return f"reaches {self.bound}; the axis ends at {self.size - 1}"

    def help(self) -> str:
        """The two rewrites."""
        index = self.index or "i"
        return (
            f"`{_operand(index)} % {_operand(self.count)}` wraps around, "
            f"`np.clip({index}, 0, {_less_one(self.count)})` says that it is meant"
        )


class StartLeavesAxis(Diagnostic, code="PSC703"):
    """A slice of fixed size starts where it does not fit, and is moved.

    `psc.dynamic_slice` and `psc.dynamic_update` move the whole part, so other elements are read
    or written than the start says.  Reported is what is known to happen, in the last steps of a
    loop for instance.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def windows(x: f32["n"]) -> f32["n 3"]:
        assert x.shape[0] >= 3
        return psc.map(lambda i: psc.dynamic_slice(x, (i,), (3,)), np.arange(x.shape[0]))
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def windows(x: f32["n"]) -> f32["n-2 3"]:
        n = x.shape[0]
        assert n >= 3
        return psc.map(lambda i: psc.dynamic_slice(x, (i,), (3,)), np.arange(n - 2))
    ```
    """

    start: str
    bound: Size
    size: Size
    part: Size
    count: str
    why: str

    def message(self) -> str:
        """Where it starts, and what happens."""
        start = f"`{self.start}`" if self.start else "this start"
        return (
            f"{start} can be {self.bound}, but a part of size {self.part} of an axis of size "
            f"{self.size} starts at {self.size - self.part} at most{self.why}: it is moved"
        )

    def help(self) -> str:
        """How to say that it is meant."""
        last = f"{self.count} - {_operand(str(self.part))}"
        return (
            f"pad the axis, or take fewer parts; `np.clip({self.start or 'i'}, 0, {last})` "
            "says that it is meant"
        )


def _operand(text: str) -> str:
    """A text that can stand beside an operator."""
    depth = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if not depth and character in " +-*/%":
            return f"({text})"
    return text


def _less_one(text: str) -> str:
    return str(int(text) - 1) if text.isdigit() else f"{text} - 1"
