"""PSC2xx: side effects, hidden inputs, mutation."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class SideEffect(Diagnostic, code="PSC201"):
    """A function changes the world outside: it prints, logs, or writes a file.

    A kernel is compiled, cached, differentiated and run in any order, once or many times.  An
    effect inside it would happen at another time than its place in the text says, or not at all.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def total(x: f32["n"]) -> f32:
        s = x.sum()
        print("total", s)
        return s
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def total(x: f32["n"]) -> f32:
        return x.sum()


    def report(x: np.ndarray) -> None:
        print("total", total(x))
    ```
    """

    function: str
    rewrite: str

    def message(self) -> str:
        """Which function."""
        return f"`{self.function}` has a side effect"

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None


class HiddenInput(Diagnostic, code="PSC202"):
    """A result would depend on something that is not an argument: the clock, the environment.

    What a kernel computes is decided by its arguments alone.  A hidden input would be read once,
    when the kernel is compiled, and stay the same ever after.

    ## Example

    ```py
    import time

    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def decay(x: f32["n"]) -> f32["n"]:
        return x * np.exp(-time.time())
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def decay(x: f32["n"], seconds: f32) -> f32["n"]:
        return x * np.exp(-seconds)
    ```
    """

    function: str
    what: str
    rewrite: str

    def message(self) -> str:
        """What is read."""
        return f"`{self.function}` reads {self.what}, which is not an argument"

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None


class RandomState(Diagnostic, code="PSC203"):
    """Random numbers are drawn from a hidden, global state.

    Two calls with the same arguments would give different results, and a compiled kernel would
    draw once and repeat itself ever after.  `psc.random` draws from a key, which is an argument.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def noisy(x: f32["n"]) -> f32["n"]:
        return x + np.random.normal(size=x.shape)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import Key, f32


    @psc.kernel
    def noisy(key: Key, x: f32["n"]) -> f32["n"]:
        return x + psc.random.normal(key, x.shape)
    ```
    """

    function: str
    instead: str = ""
    """What draws the same from a key, if something does."""

    def message(self) -> str:
        """Which function."""
        return f"`{self.function}` draws from a hidden random state"

    def help(self) -> str:
        """What to write instead."""
        draw = f": `{self.instead}`" if self.instead else " with the functions of `psc.random`"
        return f"take a parameter `key: psc.Key` and draw from it{draw}"


class OuterWrite(Diagnostic, code="PSC204"):
    """A name outside of the function is written.

    `global` and `nonlocal` make one call depend on the calls before it.  What a function changes
    is what it returns.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    CALLS = 0


    @psc.kernel
    def double(x: f32["n"]) -> f32["n"]:
        global CALLS
        CALLS += 1
        return 2 * x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32, i32


    @psc.kernel
    def double(x: f32["n"], calls: i32) -> tuple[f32["n"], i32]:
        return 2 * x, calls + 1
    ```
    """

    name: str

    def message(self) -> str:
        """Which name."""
        return f"`{self.name}` belongs to an outer scope and would be written"

    def help(self) -> str:
        """What to write instead."""
        return "return the new value, or make it part of a loop's carry"


class Mutation(Diagnostic, code="PSC205"):
    """Something is changed in place that others hold.

    A function may write to the arrays that it made: `y = np.zeros(n)`, then `y[0] = 1.0` or
    `y += x`.  All names and views of such an array show the change, as under NumPy.  An argument
    belongs to the caller, and a captured array to the module; what is given to a function that is
    not followed (a record, a partial function) may be held there.  Take a copy first, or make a
    changed copy under the same name; or declare that the kernel writes to its argument,
    `@psc.kernel(writes="x")`.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def clear_first(x: f32["n"]) -> f32["n"]:
        x[0] = 0.0
        return x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def clear_first(x: f32["n"]) -> f32["n"]:
        y = x.copy()
        y[0] = 0.0
        return y
    ```
    """

    what: str
    rewrite: str
    why: str = ""
    """Who holds the array, as what follows its name: `is a parameter`."""
    parameter: str = ""
    """The parameter of the kernel that the array is, if it is one."""
    noun: str = "an array"
    """What is changed: a list, if it is no array."""
    is_undecided: bool = False
    """Whether it may be a scalar, which is not changed, as well as an array without axes."""

    def message(self) -> str:
        """What is changed, and who holds it."""
        if self.is_undecided:
            return (
                f"{self.what} writes into an array without axes, but binds a scalar anew: "
                "which of the two this is, is known only at the call"
            )
        if self.why:
            return f"{self.what} changes {self.noun} that {self.why}"
        return f"{self.what} changes a value in place"

    def help(self) -> str | None:
        """What to write instead."""
        if self.is_undecided and self.rewrite:
            return f"`{self.rewrite}` binds the name whichever it is"
        return self.rewrite or None


class StaleView(Diagnostic, code="PSC210"):
    """What may be a view is read after a store into the array that it may show.

    `np.reshape` gives a view of an array or a copy of it, as the array lies in memory, which a
    kernel does not know.  So it is not known whether what it gave shows a later store.  Slices,
    `.T`, `np.flip` and the like are always views, and are followed exactly.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n m"]) -> f32["n*m"]:
        y = x + 1
        flat = y.reshape(-1)
        y[0] = 0.0
        return flat
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n m"]) -> f32["n*m"]:
        y = x + 1
        y[0] = 0.0
        return y.reshape(-1)
    ```
    """

    by: str
    """What made it: `np.reshape`."""
    items: bool = False
    """Whether it goes through the items of a list, a dict or a set, and shows no array."""

    def message(self) -> str:
        """What is not known."""
        if self.items:
            return f"{self.by} goes through what was changed since"
        return f"what {self.by} gave may be a view of an array that was written since"

    def help(self) -> str | None:
        """What to write instead."""
        if self.items:
            return "make it again after the change, or a `list(…)` of it before"
        return "take it again after the store, or a `.copy()` of it before"


class MutableCapture(Diagnostic, code="PSC206"):
    """A kernel reads a value from outside that is written or bound anew.

    A value from outside is a constant of the kernel: what it is when the kernel is first used.  A
    check reports what certainly writes it: a store, a method that works in place, `out=`, `global`,
    an attribute of a module.  What it cannot see is found when the kernel is called.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32

    WEIGHTS = np.ones(3, np.float32)
    WEIGHTS[0] = 2.0


    @psc.kernel
    def weigh(x: f32["3"]) -> f32:
        return WEIGHTS @ x
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32

    WEIGHTS = np.array([2, 1, 1], np.float32)


    @psc.kernel
    def weigh(x: f32["3"]) -> f32:
        return WEIGHTS @ x
    ```
    """

    name: str
    by: str
    rebound: bool = False
    at_import: bool = False
    """Whether it is written by a statement of a module, when that is loaded."""

    def message(self) -> str:
        """Which name, and by what."""
        how = "bound anew" if self.rebound else "written"
        return f"`{self.name}` is a constant of the kernel, and is {how} by {self.by}"

    def help(self) -> str:
        """What to write instead."""
        if self.at_import:
            return "build it in one expression, or pass it to the kernel as an argument"
        return "pass it to the kernel as an argument"


# PSC207 and on: state that hides in iterators and the order of sets, and results that are lost.


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
