"""PSC2xx: side effects, hidden inputs, mutation."""

from __future__ import annotations


from pscdsl.typing.diagnostics import Diagnostic


class SideEffect(Diagnostic, code="PSC201"):
    """A function writes to the world: it prints, or opens a file."""

    function: str
    rewrite: str

    def message(self) -> str:
        """Which function."""
        return f"`{self.function}` has a side effect"

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None


class HiddenInput(Diagnostic, code="PSC202"):
    """A result would depend on something that is not an argument: the clock, the environment."""

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
    """Random numbers are drawn from a hidden, global state."""

    function: str

    def message(self) -> str:
        """Which function."""
        return f"`{self.function}` draws from a hidden random state"

    def help(self) -> str:
        """What to write instead."""
        return "draw the numbers outside and pass them as an argument"


class OuterWrite(Diagnostic, code="PSC204"):
    """A name outside of the function is written."""

    name: str

    def message(self) -> str:
        """Which name."""
        return f"`{self.name}` belongs to an outer scope and would be written"

    def help(self) -> str:
        """What to write instead."""
        return "return the new value, or make it part of a loop's carry"


class Mutation(Diagnostic, code="PSC205"):
    """Something is changed in place."""

    what: str
    rewrite: str

    def message(self) -> str:
        """What."""
        return f"{self.what} changes a value in place"

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None


class MutableCapture(Diagnostic, code="PSC206"):
    """A kernel reads a mutable value of its module that the module also writes."""

    name: str
    kind: str
    where: str

    def message(self) -> str:
        """Which name."""
        return f"`{self.name}` is {self.kind} that is written elsewhere ({self.where})"

    def help(self) -> str:
        """What to write instead."""
        return "pass it as an argument"


class UnknownFunction(Diagnostic, code="PSC910"):
    """A function is called whose source has no meaning here, so that nothing is known of it."""

    function: str

    def message(self) -> str:
        """Which function."""
        return f"nothing is known of `{self.function}`: it cannot be called in a kernel"

    def help(self) -> str:
        """What to write instead."""
        return "call it outside and pass its result as an argument"
