"""PSC5xx: carries, branches and predicates of control flow."""

from __future__ import annotations

from typing import Final

from pscdsl.typing.diagnostics import Diagnostic

COMBINING: Final = frozenset({"psc.associative_scan", "psc.map_reduce"})
"""What gives rows that were combined to the same function again."""


class CarryMismatch(Diagnostic, code="PSC504"):
    """The carry that a loop's body returns differs from the one it gets.

    What one step returns is what the next one gets, so both have the same structure, shapes and
    dtypes.  So do rows and what `psc.associative_scan` and `psc.map_reduce` combine them to.
    Python numbers in the initial carry take the dtype that the body needs.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def total(xs: f32["t n"]) -> f32["n"]:
        init = np.zeros(3, np.float32)
        carry, _ = psc.scan(lambda c, x: (c.sum() + x, None), init, xs)
        return carry
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def total(xs: f32["t n"]) -> f32["n"]:
        init = np.zeros(xs.shape[1], np.float32)
        carry, _ = psc.scan(lambda c, x: (c + x, None), init, xs)
        return carry
    ```
    """

    loop: str
    path: str
    given: str
    returned: str
    why: str
    rewrite: str = ""

    def message(self) -> str:
        """The leaf and both types."""
        if self.loop in COMBINING:
            part = f"part {self.path} of " if self.path else ""
            what = f"{part}what `{self.loop}` combines"
            return f"{what} is {self.given}, but {self.returned} is returned"
        part = f"carry{self.path}" if self.path else "carry"
        return f"{part} of `{self.loop}` is {self.given}, but the body returns {self.returned}"

    def label(self) -> str:
        """What differs."""
        return self.why

    def help(self) -> str | None:
        """The cast or reshape."""
        return self.rewrite or None


class BranchMismatch(Diagnostic, code="PSC505"):
    """The branches of a conditional return different types.

    Which branch runs is decided at run time, but what comes after is checked once, so all branches
    return the same structure, shapes and dtypes.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import bool_, f32


    @psc.kernel
    def pick(p: bool_, x: f32["n"], y: f32["m"]) -> f32["n"]:
        return psc.cond(p, lambda: x, lambda: y)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import bool_, f32


    @psc.kernel
    def pick(p: bool_, x: f32["n"], y: f32["n"]) -> f32["n"]:
        return psc.cond(p, lambda: x, lambda: y)
    ```
    """

    construct: str
    path: str
    first: str
    other: str
    names: tuple[str, str]
    why: str
    rewrite: str = ""

    def message(self) -> str:
        """The leaf and both types."""
        part = f" at result{self.path}" if self.path else ""
        return (
            f"branches of `{self.construct}` differ{part}: {self.names[0]} returns {self.first}, "
            f"{self.names[1]} returns {self.other}"
        )

    def label(self) -> str:
        """What differs."""
        return self.why

    def help(self) -> str | None:
        """The cast or reshape."""
        return self.rewrite or None


class BadPredicate(Diagnostic, code="PSC506"):
    """The predicate of a conditional or loop is not a bool scalar.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def flip(x: f32["n"]) -> f32["n"]:
        return psc.cond(x < 0, lambda: -x, lambda: x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def flip(x: f32["n"]) -> f32["n"]:
        return psc.cond(np.any(x < 0), lambda: -x, lambda: x)
    ```
    """

    construct: str
    found: str

    def message(self) -> str:
        """What it is."""
        return f"the predicate of `{self.construct}` is {self.found}, not a bool scalar"

    def help(self) -> str:
        """What to write."""
        return "reduce it with `np.any` or `np.all`, or compare it: `x != 0`"


class BadBody(Diagnostic, code="PSC507"):
    """A combinator gets an argument of the wrong kind.

    The body of `psc.scan` returns a pair: the next carry, and what is collected of this step.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def total(xs: f32["t"]) -> f32:
        carry, _ = psc.scan(lambda c, x: c + x, 0.0, xs)
        return carry
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def total(xs: f32["t"]) -> f32:
        carry, _ = psc.scan(lambda c, x: (c + x, None), 0.0, xs)
        return carry
    ```
    """

    combinator: str
    needs: str
    found: str

    def message(self) -> str:
        """What it needs, and what it got."""
        return f"`{self.combinator}` needs {self.needs}, not {self.found}"


class LoopLengthsDiffer(Diagnostic, code="PSC508"):
    """The arrays that a loop runs over have different lengths, or none.

    A loop takes one row of each array per step, so all leading axes have the same size.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def products(xs: f32["s n"], ys: f32["t n"]) -> f32["s"]:
        return psc.map(lambda x, y: x @ y, xs, ys)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def products(xs: f32["t n"], ys: f32["t n"]) -> f32["t"]:
        return psc.map(lambda x, y: x @ y, xs, ys)
    ```
    """

    combinator: str
    lengths: tuple[str, ...]
    why: str

    def message(self) -> str:
        """The lengths."""
        if not self.lengths:
            return f"`{self.combinator}` has nothing to run over: give `xs` or `length=`"
        lengths = ", ".join(self.lengths)
        if len(self.lengths) == 1:
            return f"`{self.combinator}` cannot run over a scalar"
        return f"`{self.combinator}` cannot run over arrays of different lengths: {lengths}"

    def label(self) -> str:
        """What differs."""
        return self.why
