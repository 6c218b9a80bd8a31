"""PSC2xx: side effects, hidden inputs, mutation."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class SideEffect(Diagnostic, code="PSC201"):
    """A function has a side effect: it prints, logs, or writes a file."""

    function: str
    rewrite: str

    def message(self) -> str:
        return f"`{self.function}` has a side effect"

    def help(self) -> str | None:
        return self.rewrite or None


class HiddenInput(Diagnostic, code="PSC202"):
    """A result would depend on a hidden input, such as the clock or the environment."""

    function: str
    what: str
    rewrite: str

    def message(self) -> str:
        return f"`{self.function}` reads {self.what}, which is not an argument"

    def help(self) -> str | None:
        return self.rewrite or None


class RandomState(Diagnostic, code="PSC203"):
    """Random numbers are drawn from a hidden global state."""

    function: str
    instead: str = ""
    """The function that draws the same from a key, if there is one."""
    library: str = "psc"

    def message(self) -> str:
        return f"`{self.function}` draws from a hidden random state"

    def help(self) -> str:
        if self.library == "jax":
            return "take a parameter `key` and draw from it with the functions of `jax.random`"
        draw = f": `{self.instead}`" if self.instead else " with the functions of `psc.random`"
        return f"take a parameter `key: psc.Key` and draw from it{draw}"


class OuterWrite(Diagnostic, code="PSC204"):
    """A function assigns to a name outside of it."""

    name: str

    def message(self) -> str:
        return f"`{self.name}` belongs to an outer scope and would be written"

    def help(self) -> str:
        return "return the new value, or make it part of a loop's carry"


class Mutation(Diagnostic, code="PSC205"):
    """A function modifies in place an object that other code may hold."""

    what: str
    rewrite: str
    why: str = ""
    """The holder of the array, as the text after its name: `is a parameter`."""
    parameter: str = ""
    """The parameter of the kernel that the array is, if it is one."""
    noun: str = "an array"
    """The kind of object that is changed: a list, if it is no array."""
    is_undecided: bool = False
    """Whether it may be a scalar, which is not changed, as well as an array without axes."""

    def message(self) -> str:
        if self.is_undecided:
            return (
                f"{self.what} writes into an array without axes, but binds a scalar anew: "
                "which of the two this is, is known only at the call"
            )
        if self.why:
            return f"{self.what} changes {self.noun} that {self.why}"
        return f"{self.what} changes a value in place"

    def help(self) -> str | None:
        if self.is_undecided and self.rewrite:
            return f"`{self.rewrite}` binds the name whichever it is"
        return self.rewrite or None


class StaleView(Diagnostic, code="PSC210"):
    """An array that may be a view is read after a store into the array that it may show."""

    by: str
    """The function that made it: `np.reshape`."""
    items: bool = False
    """Whether it iterates over a list, a dict or a set, and shows no array."""

    def message(self) -> str:
        if self.items:
            return f"{self.by} goes through what was changed since"
        return f"what {self.by} gave may be a view of an array that was written since"

    def help(self) -> str | None:
        if self.items:
            return "make it again after the change, or a `list(…)` of it before"
        return "take it again after the store, or a `.copy()` of it before"


class MutableCapture(Diagnostic, code="PSC206"):
    """A kernel captures a value that is modified or rebound."""

    name: str
    by: str
    rebound: bool = False
    at_import: bool = False
    """Whether it is written by a statement of a module, when that is loaded."""
    library: str = "psc"

    def message(self) -> str:
        if self.library == "jax":
            return f"`{self.name}` keeps its first value here, and is bound anew by {self.by}"
        how = "bound anew" if self.rebound else "written"
        return f"`{self.name}` is a constant of the kernel, and is {how} by {self.by}"

    def help(self) -> str:
        if self.at_import:
            return "build it in one expression, or pass it to the kernel as an argument"
        return f"pass it to the {'kernel' if self.library == 'psc' else 'function'} as an argument"


# PSC207 and on: state that hides in iterators and the order of sets, and results that are lost.


class SetOrder(Diagnostic, code="PSC207"):
    """The program depends on the order of a set."""

    kind: str = "a set"

    def message(self) -> str:
        return f"the order of {self.kind} is not defined"

    def help(self) -> str:
        return "`sorted(…)` gives an order; so do a tuple and a dict"


class IteratorUsed(Diagnostic, code="PSC208"):
    """An iterator is used a second time, or belongs to an outer scope."""

    kind: str
    name: str = ""

    def message(self) -> str:
        if self.name:
            return f"`{self.name}` is {self.kind}, which is used up when it is first gone through"
        return f"{self.kind} is gone through a second time, and is used up"

    def help(self) -> str:
        return "make a list or tuple of it"


class ResultLost(Diagnostic, code="PSC209"):
    """A new value that is meant to replace an old one is lost."""

    name: str
    function: str = ""
    """The kernel that binds its parameter `name` to the new value, and returns nothing."""
    update: str = ""
    """The call that returns the new value, and whose result nothing is done with."""
    new: str = "array"

    def message(self) -> str:
        if self.update:
            return f"`{self.name}` stays as it is: nothing is done with the new {self.new}"
        return (
            f"`{self.function}` returns nothing, and the new `{self.name}` is lost: "
            "its caller's stays as it is"
        )

    def help(self) -> str:
        if self.update:
            return f"bind it: `{self.name} = {self.update}`"
        return f"end with `return {self.name}`, and bind what the call returns"
