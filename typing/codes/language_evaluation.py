"""PSC1xx: expressions that cannot be evaluated while the body of a kernel is followed."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class RecursiveKernel(Diagnostic, code="PSC106"):
    """A kernel calls itself, directly or through others."""

    function: str

    def message(self) -> str:
        return f"kernel `{self.function}` calls itself"

    def help(self) -> str:
        return "use `psc.while_loop`, `psc.fori_loop` or `psc.scan`"


class UnboundedRecursion(Diagnostic, code="PSC107"):
    """Functions call each other, and no end of the recursion is known at check time."""

    function: str

    def message(self) -> str:
        return f"calls of `{self.function}` are nested too deeply"

    def help(self) -> str:
        return "use `psc.while_loop`, `psc.fori_loop` or `psc.scan`"


class TooManySteps(Diagnostic, code="PSC108"):
    """Checking a kernel takes more steps than are allowed, mostly because of an unrolled loop."""

    limit: int

    def message(self) -> str:
        return f"checking takes more than {self.limit} steps"

    def help(self) -> str:
        return (
            "a loop over a list, and a `while` with a static test, are unrolled; a `for` over a "
            "long `range` or an array is not"
        )


class BadOperands(Diagnostic, code="PSC110"):
    """An operator has no meaning for its operands."""

    operator: str
    left: str
    right: str
    reason: str
    instead: str = ""

    def message(self) -> str:
        operands = f"{self.left} and {self.right}" if self.right else self.left
        why = f": {self.reason}" if self.reason else ""
        return f"`{self.operator}` has no meaning for {operands}{why}"

    def help(self) -> str | None:
        return self.instead or None


class NoSuchItem(Diagnostic, code="PSC112"):
    """A tuple, a record or a dict has no such item."""

    found: str
    index: str
    reason: str
    rewrite: str = ""

    def message(self) -> str:
        return f"{self.found} cannot be indexed by {self.index}: {self.reason}"

    def help(self) -> str | None:
        return self.rewrite or None


class WrongUnpacking(Diagnostic, code="PSC113"):
    """An unpacking does not match its value."""

    expected: int
    found: str

    def message(self) -> str:
        names = "one name" if self.expected == 1 else f"{self.expected} names"
        return f"{names} cannot be assigned from {self.found}"


class RaiseReached(Diagnostic, code="PSC114"):
    """A `raise` is reached while checking."""

    what: str

    def message(self) -> str:
        return f"`raise {self.what}` is reached" if self.what else "`raise` is reached"

    def help(self) -> str:
        return "`if fact: raise …` over sizes, ranks or dtypes is a precondition"


class TooLarge(Diagnostic, code="PSC116"):
    """A value that must be computed at check time is too large."""

    what: str

    def message(self) -> str:
        return f"{self.what} is too large to work out while checking"

    def help(self) -> str:
        return "compute it outside and pass it as an argument"
