"""PSC207 and on: state that hides in iterators and the order of sets, and results that are lost."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class SetOrder(Diagnostic, code="PSC207"):
    """The program depends on the order of a set.

    In which order a set gives its items depends on a seed that each process draws for itself, and
    on what was added and removed before.  A program that is built in this order would be another
    one in the next process.  Whether something is in a set, and how many items it
    has, may be asked.  The keys of a pyrsistent `PMap` have no order either.

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

    kind: str = "a set"

    def message(self) -> str:
        """What is asked."""
        return f"the order of {self.kind} is not defined"

    def help(self) -> str:
        """What to write instead."""
        return "`sorted(…)` gives an order; so do a tuple and a dict"


class IteratorUsed(Diagnostic, code="PSC208"):
    """An iterator is used a second time, or belongs to an outer scope.

    What `zip`, `map`, `filter`, `enumerate`, `reversed` and a generator expression give is used up
    by the first loop over it: the second finds nothing.  So an iterator is a hidden state, and one
    that is made outside of a kernel gives another result to each call.  A list or tuple can be gone
    through as often as one likes.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32

    PAIRS = zip((1.0, 2.0), (3.0, 4.0))


    @psc.kernel
    def total(x: f32["n"]) -> f32["n"]:
        return x * sum([a * b for a, b in PAIRS])
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32

    PAIRS = list(zip((1.0, 2.0), (3.0, 4.0)))


    @psc.kernel
    def total(x: f32["n"]) -> f32["n"]:
        return x * sum([a * b for a, b in PAIRS])
    ```
    """

    kind: str
    name: str = ""

    def message(self) -> str:
        """Which iterator."""
        if self.name:
            return f"`{self.name}` is {self.kind}, which is used up when it is first gone through"
        return f"{self.kind} is gone through a second time, and is used up"

    def help(self) -> str:
        """What to write instead."""
        return "make a list or tuple of it"


class ResultLost(Diagnostic, code="PSC209"):
    """A kernel binds a parameter to a new value and returns nothing.

    A function of NumPy may write into an array that it is given, and return nothing.  A kernel
    changes nothing of its caller's: a name that is bound anew is the kernel's own, and what it
    stands for is gone when the kernel ends.  What a kernel computes is what it returns.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def clear_first(x: f32["n"]) -> None:
        x = psc.update(x, 0, 0.0)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def clear_first(x: f32["n"]) -> f32["n"]:
        return psc.update(x, 0, 0.0)
    ```
    """

    function: str
    name: str

    def message(self) -> str:
        """What is lost."""
        return (
            f"`{self.function}` returns nothing, and the new `{self.name}` is lost: "
            "its caller's stays as it is"
        )

    def help(self) -> str:
        """What to write instead."""
        return f"end with `return {self.name}`, and bind what the call returns"
