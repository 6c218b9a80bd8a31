"""PSC1xx: what cannot be worked out while the body of a kernel is followed."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class RecursiveKernel(Diagnostic, code="PSC106"):
    """A kernel calls itself, directly or through others.

    Calls of kernels stay calls in the program, and the program of the device has no stack.  How
    deep the recursion goes would also depend on values that are known only at run time.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def halve(x: f32["n"]) -> f32["n"]:
        return halve(x / 2)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def halve(x: f32["n"]) -> f32["n"]:
        return psc.while_loop(lambda y: y.sum() > 1, lambda y: y / 2, x)
    ```
    """

    function: str

    def message(self) -> str:
        """Which kernel."""
        return f"kernel `{self.function}` calls itself"

    def help(self) -> str:
        """What to write instead."""
        return "use `psc.while_loop`, `psc.fori_loop` or `psc.scan`"


class UnboundedRecursion(Diagnostic, code="PSC107"):
    """Functions call each other without an end known at check time.

    A function that is not a kernel is read anew at each call.  Recursion over static values, such
    as the length of a tuple, comes to an end; recursion over arrays does not.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    def halve(x):
        return halve(x / 2)


    @psc.kernel
    def small(x: f32["n"]) -> f32["n"]:
        return halve(x)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    def halve(x, times):
        return x if times == 0 else halve(x / 2, times - 1)


    @psc.kernel
    def small(x: f32["n"]) -> f32["n"]:
        return halve(x, 4)
    ```
    """

    function: str

    def message(self) -> str:
        """Which function."""
        return f"calls of `{self.function}` are nested too deeply"

    def help(self) -> str:
        """What to write instead."""
        return "use `psc.while_loop`, `psc.fori_loop` or `psc.scan`"


class TooManySteps(Diagnostic, code="PSC108"):
    """Checking a kernel takes more steps than are allowed, mostly because of an unrolled loop.

    A loop over a list or a tuple, and a `while` whose test is static, is followed step by step, and
    each step becomes a part of the program.  Thousands of steps make a program that takes too long
    to compile.  A `for` over a longer `range` or over an array is one loop of the program instead.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def count(x: f32["n"]) -> f32["n"]:
        steps = 0
        while steps < 1_000_000:
            x = x + 1
            steps += 1
        return x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def count(x: f32["n"]) -> f32["n"]:
        for _ in range(1_000_000):
            x = x + 1
        return x
    ```
    """

    limit: int

    def message(self) -> str:
        """The bound."""
        return f"checking takes more than {self.limit} steps"

    def help(self) -> str:
        """What to write instead."""
        return (
            "a loop over a list, and a `while` with a static test, are unrolled; a `for` over a "
            "long `range` or an array is not"
        )


class BadOperands(Diagnostic, code="PSC110"):
    """An operator has no meaning for its operands.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def join(x: f32["n"], y: f32["n"]) -> f32["n"]:
        return (x, y) * 0.5
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def join(x: f32["n"], y: f32["n"]) -> f32["n"]:
        return (x + y) * 0.5
    ```
    """

    operator: str
    left: str
    right: str
    reason: str
    instead: str = ""

    def message(self) -> str:
        """The operands."""
        operands = f"{self.left} and {self.right}" if self.right else self.left
        why = f": {self.reason}" if self.reason else ""
        return f"`{self.operator}` has no meaning for {operands}{why}"

    def help(self) -> str | None:
        """What to write instead, where that is known."""
        return self.instead or None


class NoSuchItem(Diagnostic, code="PSC112"):
    """A tuple, a record or a dict has no such item.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def second(pair: tuple[f32["n"], f32["n"]]) -> f32["n"]:
        return pair[2]
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def second(pair: tuple[f32["n"], f32["n"]]) -> f32["n"]:
        return pair[1]
    ```
    """

    found: str
    index: str
    reason: str
    rewrite: str = ""

    def message(self) -> str:
        """The index and the reason."""
        return f"{self.found} cannot be indexed by {self.index}: {self.reason}"

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None


class WrongUnpacking(Diagnostic, code="PSC113"):
    """An unpacking does not fit its value.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def add(pair: tuple[f32["n"], f32["n"]]) -> f32["n"]:
        x, y, z = pair
        return x + y + z
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def add(pair: tuple[f32["n"], f32["n"]]) -> f32["n"]:
        x, y = pair
        return x + y
    ```
    """

    expected: int
    found: str

    def message(self) -> str:
        """Both counts."""
        names = "one name" if self.expected == 1 else f"{self.expected} names"
        return f"{names} cannot be assigned from {self.found}"


class RaiseReached(Diagnostic, code="PSC114"):
    """A `raise` is reached while checking.

    `if fact: raise ...` over sizes, ranks or dtypes is a precondition: calls for which it would
    raise are refused.  A `raise` that is reached in every case leaves nothing to run.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def later(x: f32["n"]) -> f32["n"]:
        raise NotImplementedError("not written yet")
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def later(x: f32["n"]) -> f32["n"]:
        if x.shape[0] < 2:
            raise ValueError("too short")
        return x
    ```
    """

    what: str

    def message(self) -> str:
        """What is raised."""
        return f"`raise {self.what}` is reached" if self.what else "`raise` is reached"

    def help(self) -> str:
        """What to write instead."""
        return "`if fact: raise …` over sizes, ranks or dtypes is a precondition"


class TooLarge(Diagnostic, code="PSC116"):
    """A value that must be computed at check time is too large.

    Constants are computed by the checker itself, which must answer quickly for any file.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def scale(x: f32["n"]) -> f32["n"]:
        return x * 10**10_000
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def scale(x: f32["n"]) -> f32["n"]:
        return x * 1e10
    ```
    """

    what: str

    def message(self) -> str:
        """What is too large."""
        return f"{self.what} is too large to work out while checking"

    def help(self) -> str:
        """What to do."""
        return "compute it outside and pass it as an argument"
