"""PSC8xx: programs that are slower, or larger, than they need be."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic, Severity


class LargeUnroll(Diagnostic, code="PSC801"):
    """A Python loop that writes a very large program.

    A loop over a list or a tuple, a comprehension and a `while` whose test is static are unrolled:
    each step adds its equations to the program.  The compiler takes some milliseconds for each of
    them, so that a loop that leaves a thousand takes seconds to compile, and again for every new
    size.  A `for` over an array, or over a `range` of more than 16 steps, remains a loop, and so do
    `psc.fori_loop` and `psc.scan`.

    Reported are loops and comprehensions of 16 steps or more that leave 1000 equations or more.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def iterate(x: f32["n"]) -> f32["n"]:
        for rate in (0.5, 0.25) * 250:
            x = np.tanh(x) * rate - x
        return x
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def iterate(x: f32["n"]) -> f32["n"]:
        for _ in range(250):
            x = np.tanh(x) * 0.5 - x
            x = np.tanh(x) * 0.25 - x
        return x
    ```
    """

    steps: int
    equations: int

    def message(self) -> str:
        """How large."""
        return f"this loop of {self.steps} steps is unrolled into {self.equations} equations"

    def help(self) -> str:
        """What keeps it small."""
        return (
            "`for` over an array, or over a `range` of more than 16 steps, compiles one step; what "
            "the steps read of a list can be stacked into an array"
        )


class LargeConstant(Diagnostic, code="PSC802"):
    """A large array that is written into the program.

    A captured array is part of the program: it is hashed when the program is looked up, compiled
    into it, and stored in memory once for each size that the program is compiled for.  As an
    argument it is none of that.

    Reported from 1 MiB on.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32

    TABLE = np.ones((1024, 512), np.float32)


    @psc.kernel
    def project(x: f32["n 1024"]) -> f32["n 512"]:
        return x @ TABLE
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def project(x: f32["n 1024"], table: f32["1024 512"]) -> f32["n 512"]:
        return x @ table
    ```
    """

    type: str
    size: int

    def message(self) -> str:
        """How large."""
        size = f"{self.size / 2**20:.0f} MiB"
        return f"a captured array of {size}, {self.type}, is written into the program"

    def help(self) -> str:
        """What keeps it out."""
        return "take it as an argument"


class UnaskedDouble(Diagnostic, code="PSC803"):
    """A result in double precision that nothing in the kernel requests.

    NumPy makes f64 of Python floats (`np.array([0.5, 1.5])`) and of 64-bit integers, and such an
    array keeps its dtype when a kernel captures it.  On accelerators f64 is many times slower than
    f32, and some have none.  Write the dtype, or declare the result as f64 if it is meant.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import i32

    WEIGHTS = np.array([0.25, 0.5, 0.25])


    @psc.kernel
    def weight(i: i32):
        return WEIGHTS[i % 3]
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32, i32

    WEIGHTS = np.array([0.25, 0.5, 0.25], np.float32)


    @psc.kernel
    def weight(i: i32) -> f32:
        return WEIGHTS[i % 3]
    ```
    """

    result: str
    origin: str

    def message(self) -> str:
        """What becomes of it."""
        what = f"`{self.origin}`" if self.origin else "this"
        return f"{what} is in double precision, and so is the result: {self.result}"

    def help(self) -> str:
        """Either way."""
        return "give it a dtype (`np.float32`), or declare the result if f64 is meant"


class ProductOfRows(Diagnostic, code="PSC804"):
    """A matrix is multiplied row by row, where one product suffices.

    A product of matrices reads the matrix once for many rows; a product with one row at a time
    reads it each time.  Take the product of all rows, and map what remains over its rows.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def layer(w: f32["m d"], xs: f32["n d"]) -> f32["n m"]:
        return psc.map(lambda x: np.tanh(w @ x), xs)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def layer(w: f32["m d"], xs: f32["n d"]) -> f32["n m"]:
        return np.tanh(xs @ w.T)
    ```
    """

    rows: str
    matrix: str
    axis: int

    def message(self) -> str:
        """What is slow."""
        return "a product with one row at a time: one product of all rows is faster"

    def help(self) -> str:
        """The product."""
        rows, matrix = self.rows or "rows", self.matrix or "w"
        return f"`{rows} @ {matrix}{'.T' if self.axis else ''}`, then map the rest over its rows"


# PSC8xx: what batches compute in vain.


class AllBranchesRun(Diagnostic, code="PSC805"):
    """A batch runs all branches of a `cond` or `switch` for every row.

    `psc.vmap` makes one program for all rows.  Where rows decide differently, there is no branch to
    skip: all of them are run for all rows, and each row selects its result.  So a branch that
    should save work saves none.  In gradients, arrays that all rows share get a part from each
    branch: where one that a row has not taken has an infinite slope, theirs is NaN (see PSC704).

    * Let one decision hold for all rows: what it depends on gets None in `in_axes`.
    * `psc.map` takes the rows one after the other, and each runs its own branch alone.
    * If running both is meant, `np.where` says so.

    Branches that take up to 100 operations for each element are not reported: reading and writing
    the element takes as long.  Loops, sorts, and products of more than small matrices take more.

    A `while_loop` is not reported: the loop goes on until the last row stops, and those that have
    stopped are computed in vain, but one row after the other would take longer still.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    def settle(w: f32["n n"], x: f32["n"]) -> f32["n"]:
        return psc.cond(np.max(x) > 1, lambda: np.linalg.solve(w, x), lambda: x)


    @psc.kernel
    def rows(w: f32["n n"], xs: f32["b n"]) -> f32["b n"]:
        return psc.vmap(settle, in_axes=(None, 0))(w, xs)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    def settle(w: f32["n n"], x: f32["n"]) -> f32["n"]:
        return psc.cond(np.max(x) > 1, lambda: np.linalg.solve(w, x), lambda: x)


    @psc.kernel
    def rows(w: f32["n n"], xs: f32["b n"]) -> f32["b n"]:
        return psc.map(lambda x: settle(w, x), xs)
    ```
    """

    construct: str
    count: int
    work: str
    lost: float

    def message(self) -> str:
        """What is run."""
        which = "both branches" if self.count == 2 else f"all {self.count} branches"
        return (
            f"{which} of this `{self.construct}` are run for every row of a batch, "
            f"in which each row selects its result"
        )

    def label(self) -> str:
        """What is dear, and why it is run."""
        decides = "predicate" if self.construct == "cond" else "index"
        work = self.work or f"about {self.lost:.0f} operations for each element are in vain"
        return f"the {decides} differs from row to row; {work}"

    def help(self) -> str:
        """What runs one of them."""
        return (
            "decide once for all rows (None in `in_axes` for what decides), or take the rows one "
            "by one with `psc.map`; if both are meant to be run, `np.where` says so"
        )


# PSC8xx: kernels that cost more than they may.


class BudgetExceeded(Diagnostic, code="PSC807", severity=Severity.ERROR):
    """A kernel that costs more than its budget.

    A budget is a bound on what `pscdsl cost` counts: floating-point operations, bytes moved, and
    memory, as polynomials in the sizes.  It holds for every size that the signature and the
    kernel's preconditions admit, and in every dtype and rank that they leave open.  The finding
    has the smallest sizes at which it does not, and the places that cost most there.

    It is a count of the checked program, not a measurement: a product of matrices that was meant
    to be one with a vector, or a loop in a loop, exceeds it whatever the machine is.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel  # psc: budget flops <= 2*n*d + n
    def distances(x: f32["n d"], y: f32["d"]) -> f32["n"]:
        return np.sum((x - y) ** 2, axis=1)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel  # psc: budget flops <= 3*n*d
    def distances(x: f32["n d"], y: f32["d"]) -> f32["n"]:
        return np.sum((x - y) ** 2, axis=1)
    ```
    """

    subject: str
    """The kernel, or its gradient."""
    measure: str
    budget: str
    """The bound on the right."""
    cost: str
    sizes: tuple[tuple[str, int], ...] = ()
    taken: int = 0
    allowed: int = 0
    holds: str = ""
    """A bound that would hold."""
    strict: bool = False
    """Whether the bound itself is not allowed."""

    def message(self) -> str:
        """The polynomial, and numbers."""
        over = f"{'not less' if self.strict else 'more'} than {self.budget}"
        text = f"{self.subject} has {self.measure} {self.cost}, {over}"
        if self.sizes:
            at = ", ".join(f"{name}={value}" for name, value in self.sizes)
            text += f": {self.taken:,} where {self.allowed:,} are allowed, for instance at {at}"
        return text

    def help(self) -> str:
        """A bound that holds."""
        return f"`{self.holds}` holds; `pscdsl cost` prints all that is counted"


# PSC8xx: memory that is given in vain.


class DonatedInVain(Diagnostic, code="PSC806"):
    """A donated parameter whose memory no result can take.

    `@psc.kernel(donate=...)` lets results take the memory of arguments.  A result takes the memory
    of one array of its own type, the same dtype and the same sizes; where there are more such
    arrays than results, those that are donated first count.  A parameter that is donated without
    any result for it is not reused, and stays as it is.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel(donate="x")
    def total(x: f32["n"], y: f32["n"]) -> f32:
        return x @ y
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel(donate="x")
    def total(x: f32["n"], y: f32["n"]) -> f32["n"]:
        return x * y
    ```
    """

    parameter: str
    type: str
    results: str

    def message(self) -> str:
        """What is given."""
        return f"`{self.parameter}` is donated, but no result can take its memory"

    def label(self) -> str:
        """The types."""
        return f"{self.type}; the results are {self.results}"

    def help(self) -> str:
        """What to do."""
        return "leave it out of `donate`, or return the new value as an array of the same type"


class WritesNothing(Diagnostic, code="PSC808"):
    """A parameter is declared in `writes`, and the kernel never writes to it.

    `@psc.kernel(writes=...)` names the parameters that a kernel stores into.  The arrays that are
    passed for them must take stores, share no memory with others, and are copied to after the call:
    all of that is for nothing here.  `x = x + 1` binds a name and writes to no array.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel(writes="x")
    def increment(x: f32["n"]) -> None:
        x = x + 1
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel(writes="x")
    def increment(x: f32["n"]) -> None:
        x += 1
    ```
    """

    parameter: str
    stored: bool = False
    """Whether the kernel stores into it what it holds already."""
    others: tuple[str, ...] = ()
    """The other parameters that the kernel writes to."""

    def message(self) -> str:
        """Which parameter."""
        if self.stored:
            return f"`{self.parameter}` keeps its values: what is stored into it is what it holds"
        return f"`{self.parameter}` is declared in `writes`, and never written"

    def help(self) -> str:
        """What to do."""
        if self.stored:
            rest = "leave it out of `writes`, if it is not to change"
            if not self.others:
                return rest
            one, other = self.others[0], self.parameter
            return (
                f"`{one}[...], {other}[...] = {other}, {one}.copy()` swaps the two: without the "
                f"copy, `{one}` is overwritten before it is read; {rest}"
            )
        return "leave it out of `writes`, or store into it: `x[...] = value`"


class ValueUnused(Diagnostic, code="PSC809"):
    """A statement computes a value, and nothing is done with it.

    `np.sort(x)` gives a sorted array and leaves `x` as it is; so do `y + 1` and
    `psc.update(y, 0, 1.0)`.  A function that ends without `return` gives None, whatever it
    computes.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def median(x: f32["n"]) -> f32:
        np.sort(x)
        return x[x.shape[0] // 2]
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def median(x: f32["n"]) -> f32:
        x = np.sort(x)
        return x[x.shape[0] // 2]
    ```
    """

    text: str
    """The expression, or the name that a function binds last."""
    operand: str = ""
    """The name of the array that the expression is made of, if it begins with one."""
    function: str = ""
    """The function that ends without a `return`, if it does."""

    def message(self) -> str:
        """What is lost."""
        if self.function:
            return f"`{self.function}` ends here and returns nothing: its `{self.text}` is lost"
        return f"nothing is done with the value of `{self.text}`"

    def help(self) -> str:
        """What to write instead."""
        if self.function:
            return f"end with `return {self.text}`"
        if self.operand:
            return f"bind it, `{self.operand} = {self.text}`, or leave it out"
        return "bind it to a name, or leave it out"
