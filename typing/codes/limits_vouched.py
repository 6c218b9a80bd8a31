"""PSC913 and on: functions that are vouched for with `psc.pure`."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic, Severity


class VouchedResultUnknown(Diagnostic, code="PSC913"):
    """A function that `psc.pure` declares pure does not say what it returns.

    `psc.pure` says that a function is pure, so that a kernel may call it without its being looked
    into.  A check never calls it, so it needs a declared result: arrays whose sizes are numbers, or
    the names of its own integer parameters.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    import scipy.special
    from pscdsl import f32


    @psc.pure
    def nodes(n: int):
        return scipy.special.roots_legendre(n)[0].astype(np.float32)


    @psc.kernel
    def shifted(x: f32["16"]) -> f32["16"]:
        return x + nodes(16)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    import scipy.special
    from pscdsl import f32


    @psc.pure
    def nodes(n: int) -> f32["n"]:
        return scipy.special.roots_legendre(n)[0].astype(np.float32)


    @psc.kernel
    def shifted(x: f32["16"]) -> f32["16"]:
        return x + nodes(16)
    ```
    """

    function: str
    size: str = ""

    def message(self) -> str:
        """Which function."""
        if self.size:
            return f"the size {self.size} of the result of `{self.function}` is not known here"
        return f"it is not known what `{self.function}` returns, for which `psc.pure` vouches"

    def help(self) -> str:
        """What to write instead."""
        return 'declare its result, for instance `-> f32["3 n"]` with an argument `n: int`'


class VouchedNeedsValues(Diagnostic, code="PSC914"):
    """A function that `psc.pure` declares pure gets an array or a size that is not known yet.

    It is called while the kernel is elaborated, and never on the device: what it is given must be
    known by then.  A function of arrays is a helper of the language, or a primitive with a
    translation of its own.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.pure
    def smooth(x) -> f32["3"]:
        return x


    @psc.kernel
    def f(x: f32["3"]) -> f32["3"]:
        return smooth(x)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.primitive
    def smooth(x: f32["3"]) -> f32["3"]:
        return x


    @smooth.translation
    def emit(hlo, x):
        return x


    @psc.kernel
    def f(x: f32["3"]) -> f32["3"]:
        return smooth(x)
    ```
    """

    function: str
    found: str

    def message(self) -> str:
        """Which function, and what it is given."""
        return f"`{self.function}` is called before the kernel runs, when {self.found} is not known"

    def help(self) -> str:
        """What to write instead."""
        return "call it outside and pass its result, or make it a `psc.primitive`"


class VouchedResultDiffers(Diagnostic, code="PSC915"):
    """A function that `psc.pure` declares pure does not return what it declares.

    It was called while a kernel was elaborated, and its result is not the one that is declared.

    ## No example

    A check does not call the function: only the program that runs can see what it returns.
    """

    function: str
    problem: str

    def message(self) -> str:
        """Which function, and what it does."""
        return f"`{self.function}` {self.problem}"


class Vouched(Diagnostic, code="PSC916", severity=Severity.NOTE):
    """A kernel calls a function that `psc.pure` declares pure.

    Nothing is wrong: the note lists what the check has to believe.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.pure
    def table() -> f32["3"]:
        return np.load("table.npy")


    @psc.kernel
    def weigh(x: f32["3"]) -> f32:
        return table() @ x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def weigh(x: f32["3"], table: f32["3"]) -> f32:
        return table @ x
    ```
    """

    function: str

    def message(self) -> str:
        """Which function."""
        return f"`{self.function}` is taken to be pure: `psc.pure` vouches for it"
