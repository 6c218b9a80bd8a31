"""PSC207 and on: state that hides in iterators and in the order of sets."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class SetOrder(Diagnostic, code="PSC207"):
    """The order of a set is asked for, and it has none that can be relied on.

    In which order a set gives its items depends on a seed that each process draws for itself, and
    on what was added and removed before.  A program that is built in this order would be another
    one in the next process.  Whether something is in a set, and how many items it
    has, may be asked.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32

    SCALES = {1.0, 2.0, 3.0}


    @psc.kernel
    def total(x: f32["n"]) -> f32["n"]:
        y = x
        for scale in SCALES:
            y = y * scale
        return y
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32

    SCALES = {1.0, 2.0, 3.0}


    @psc.kernel
    def total(x: f32["n"]) -> f32["n"]:
        y = x
        for scale in sorted(SCALES):
            y = y * scale
        return y
    ```
    """

    def message(self) -> str:
        """What is asked."""
        return "the order of a set is not defined"

    def help(self) -> str:
        """What to write instead."""
        return "`sorted(…)` gives an order; so do a tuple and a dict"
