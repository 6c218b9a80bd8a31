"""PSC8xx: programs that are slower, or larger, than they need be."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic, Severity


class LargeUnroll(Diagnostic, code="PSC801"):
    """A Python loop produces a very large program."""

    steps: int
    equations: int

    def message(self) -> str:
        return f"this loop of {self.steps} steps is unrolled into {self.equations} equations"

    def help(self) -> str:
        return (
            "`for` over an array, or over a `range` of more than 16 steps, compiles one step; what "
            "the steps read of a list can be stacked into an array"
        )


class LargeConstant(Diagnostic, code="PSC802"):
    """A large array is embedded in the program."""

    type: str
    size: int

    def message(self) -> str:
        size = f"{self.size / 2**20:.0f} MiB"
        return f"a captured array of {size}, {self.type}, is written into the program"

    def help(self) -> str:
        return "take it as an argument"


class UnaskedDouble(Diagnostic, code="PSC803"):
    """A result has double precision, and nothing in the kernel requests it."""

    result: str
    origin: str

    def message(self) -> str:
        what = f"`{self.origin}`" if self.origin else "this"
        return f"{what} is in double precision, and so is the result: {self.result}"

    def help(self) -> str:
        return "give it a dtype (`np.float32`), or declare the result if f64 is meant"


class ProductOfRows(Diagnostic, code="PSC804"):
    """A matrix is multiplied row by row, where one product suffices."""

    rows: str
    matrix: str
    axis: int

    def message(self) -> str:
        return "a product with one row at a time: one product of all rows is faster"

    def help(self) -> str:
        rows, matrix = self.rows or "rows", self.matrix or "w"
        return f"`{rows} @ {matrix}{'.T' if self.axis else ''}`, then map the rest over its rows"


# PSC8xx: what batches compute in vain.


class AllBranchesRun(Diagnostic, code="PSC805"):
    """A batch runs all branches of a `cond` or `switch` for every row."""

    construct: str
    count: int
    work: str
    lost: float

    def message(self) -> str:
        which = "both branches" if self.count == 2 else f"all {self.count} branches"
        return (
            f"{which} of this `{self.construct}` are run for every row of a batch, "
            f"in which each row selects its result"
        )

    def label(self) -> str:
        decides = "predicate" if self.construct == "cond" else "index"
        work = self.work or f"about {self.lost:.0f} operations for each element are in vain"
        return f"the {decides} differs from row to row; {work}"

    def help(self) -> str:
        return (
            "decide once for all rows (None in `in_axes` for what decides), or take the rows one "
            "by one with `psc.map`; if both are meant to be run, `np.where` says so"
        )


# PSC8xx: kernels that cost more than they may.


class BudgetExceeded(Diagnostic, code="PSC807", severity=Severity.ERROR):
    """A kernel costs more than its budget."""

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
        over = f"{'not less' if self.strict else 'more'} than {self.budget}"
        text = f"{self.subject} has {self.measure} {self.cost}, {over}"
        if self.sizes:
            at = ", ".join(f"{name}={value}" for name, value in self.sizes)
            text += f": {self.taken:,} where {self.allowed:,} are allowed, for instance at {at}"
        return text

    def help(self) -> str:
        return f"`{self.holds}` holds; `pscdsl cost` prints all that is counted"


# PSC8xx: memory that is given in vain.


class DonatedInVain(Diagnostic, code="PSC806"):
    """No result can take the memory of a donated parameter."""

    parameter: str
    type: str
    results: str

    def message(self) -> str:
        return f"`{self.parameter}` is donated, but no result can take its memory"

    def label(self) -> str:
        return f"{self.type}; the results are {self.results}"

    def help(self) -> str:
        return "leave it out of `donate`, or return the new value as an array of the same type"


class WritesNothing(Diagnostic, code="PSC808"):
    """A parameter is listed in `writes`, but the kernel never writes to it."""

    parameter: str
    stored: bool = False
    """Whether the kernel stores into it what it holds already."""
    others: tuple[str, ...] = ()
    """The other parameters that the kernel writes to."""

    def message(self) -> str:
        if self.stored:
            return f"`{self.parameter}` keeps its values: what is stored into it is what it holds"
        return f"`{self.parameter}` is declared in `writes`, and never written"

    def help(self) -> str:
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
    """A statement computes a value that is never used."""

    text: str
    """The expression, or the name that a function binds last."""
    operand: str = ""
    """The name of the array that the expression is made of, if it begins with one."""
    function: str = ""
    """The function that ends without a `return`, if it does."""

    def message(self) -> str:
        if self.function:
            return f"`{self.function}` ends here and returns nothing: its `{self.text}` is lost"
        return f"nothing is done with the value of `{self.text}`"

    def help(self) -> str:
        if self.function:
            return f"end with `return {self.text}`"
        if self.operand:
            return f"bind it, `{self.operand} = {self.text}`, or leave it out"
        return "bind it to a name, or leave it out"


class ArrayGathered(Diagnostic, code="PSC810"):
    """An array in pieces is put together on every device of a mesh."""

    array: str
    along: str
    bytes: str

    def message(self) -> str:
        return f"this puts {self.array} together along `{self.along}`: each device gets all of it"

    def label(self) -> str:
        return f"{self.bytes} bytes are sent to every device"

    def help(self) -> str:
        return (
            "keep the axis in pieces, or write `psc.place(x, ...)` with a placement without "
            f"`@{self.along}` where that is meant"
        )
