"""PSC5xx: control flow on arrays, carries and branches, trees."""

from __future__ import annotations


from pscdsl.typing.diagnostics import Diagnostic


class BranchOnArray(Diagnostic, code="PSC121"):
    """Python decides on the value of an array, which is known only when the kernel runs."""

    construct: str
    found: str
    rewrite: str

    def message(self) -> str:
        """Which construct."""
        return f"{self.construct} needs a truth value, but {self.found} is known only at run time"

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None


class LoopOverArray(Diagnostic, code="PSC122"):
    """A Python loop runs over an array."""

    found: str

    def message(self) -> str:
        """Over what."""
        return f"a Python loop over an array ({self.found})"

    def help(self) -> str:
        """What to write instead."""
        return "`psc.scan(step, init, xs)` or `psc.map(f, xs)` loops over the leading axis"


class ArrayLeavesProgram(Diagnostic, code="PSC123"):
    """An array is turned into a Python number or list."""

    function: str
    rewrite: str

    def message(self) -> str:
        """By what."""
        return f"`{self.function}` needs the value of an array, which is known only at run time"

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None


class NotATree(Diagnostic, code="PSC503"):
    """Something that is not a tree of arrays stands where one is needed."""

    what: str
    found: str

    def message(self) -> str:
        """What and where."""
        return f"{self.what} holds {self.found}, which is neither an array nor a tree of arrays"


class CarryMismatch(Diagnostic, code="PSC504"):
    """The carry that a loop's body returns differs from the one it is given."""

    loop: str
    path: str
    given: str
    returned: str
    why: str
    rewrite: str = ""

    def message(self) -> str:
        """The leaf and both types."""
        part = f"carry{self.path}" if self.path else "carry"
        return f"{part} of `{self.loop}` is {self.given}, but the body returns {self.returned}"

    def label(self) -> str:
        """What differs."""
        return self.why

    def help(self) -> str | None:
        """The cast or reshape."""
        return self.rewrite or None


class BranchMismatch(Diagnostic, code="PSC505"):
    """The branches of a conditional return different types."""

    construct: str
    path: str
    first: str
    other: str
    index: int
    why: str
    rewrite: str = ""

    def message(self) -> str:
        """The leaf and both types."""
        part = f" at result{self.path}" if self.path else ""
        return (
            f"branches of `{self.construct}` differ{part}: branch 0 returns {self.first}, "
            f"branch {self.index} returns {self.other}"
        )

    def label(self) -> str:
        """What differs."""
        return self.why

    def help(self) -> str | None:
        """The cast or reshape."""
        return self.rewrite or None


class BadPredicate(Diagnostic, code="PSC506"):
    """The predicate of a conditional or loop is not a bool scalar."""

    construct: str
    found: str

    def message(self) -> str:
        """What it is."""
        return f"the predicate of `{self.construct}` is {self.found}, not a bool scalar"

    def help(self) -> str:
        """What to write."""
        return "reduce it with `np.any` or `np.all`, or compare it: `x != 0`"


class BadBody(Diagnostic, code="PSC507"):
    """A function given to a combinator does not return what the combinator needs."""

    combinator: str
    needs: str
    found: str

    def message(self) -> str:
        """What it returns."""
        return (
            f"the function given to `{self.combinator}` must return {self.needs}, not {self.found}"
        )


class LengthsDiffer(Diagnostic, code="PSC508"):
    """The arrays that a loop runs over have different lengths, or none."""

    combinator: str
    lengths: tuple[str, ...]
    why: str

    def message(self) -> str:
        """The lengths."""
        if not self.lengths:
            return f"`{self.combinator}` has nothing to run over: give `xs` or `length=`"
        return f"`{self.combinator}` runs over arrays of lengths {', '.join(self.lengths)}"

    def label(self) -> str:
        """What differs."""
        return self.why
