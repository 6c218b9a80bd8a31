"""PSC1xx: names, annotations and calls that have no meaning in a kernel."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dtypes import is_dtype_name

LOOPS = "a `for` statement over the array or the `range` loops for any size, as does `psc.map`"


class NotPython(Diagnostic, code="PSC100"):
    """A file is not Python source text."""

    reason: str

    def message(self) -> str:
        return f"not Python source: {self.reason}"


class Unsupported(Diagnostic, code="PSC101"):
    """A Python construct has no meaning in a kernel."""

    what: str
    rewrite: str

    def message(self) -> str:
        return f"{self.what} has no meaning in a kernel"

    def help(self) -> str | None:
        return self.rewrite or None


class UnknownName(Diagnostic, code="PSC102"):
    """A name is not defined, or not defined yet."""

    name: str
    unassigned: bool

    def message(self) -> str:
        if self.unassigned:
            return f"`{self.name}` is used before it is assigned"
        return f"`{self.name}` is not defined"

    def help(self) -> str:
        if self.unassigned:
            return "assign it first, on every way that leads here"
        size = dict(self.spelling).get(self.name)
        if size is not None:
            return f"`{self.name}` names a size in annotations alone: here it is `{size}`"
        if is_dtype_name(self.name):
            return f"`from pscdsl import {self.name}`"
        return "import or define it, or take it as a parameter"


class NoSuchAttribute(Diagnostic, code="PSC103"):
    """A value has no attribute of this name, or none that has a meaning in a kernel."""

    owner: str
    attribute: str
    known: tuple[str, ...] = ()
    instead: str = ""
    """The replacement, if it is known."""

    def message(self) -> str:
        return f"{self.owner} has no attribute `{self.attribute}`"

    def help(self) -> str | None:
        from difflib import get_close_matches  # most findings guess nothing

        if self.instead:
            return self.instead
        near = get_close_matches(self.attribute, self.known, 1)
        return f"did you mean `{near[0]}`?" if near else None


class BadAnnotation(Diagnostic, code="PSC104"):
    """An annotation is neither a type of arrays nor a type of trees of arrays."""

    text: str
    reason: str
    rewrite: str

    def message(self) -> str:
        return f"annotation `{self.text}`: {self.reason}"

    def help(self) -> str | None:
        return self.rewrite or None


class MissingAnnotation(Diagnostic, code="PSC105"):
    """A parameter of a kernel has no type."""

    function: str
    name: str
    owner: str = ""
    """The class that it is the first parameter of a method of, which is no record."""

    def message(self) -> str:
        if self.name.startswith("*"):
            return f"kernel `{self.function}` takes `{self.name}`, which has no fixed types"
        return f"parameter `{self.name}` of kernel `{self.function}` has no type"

    def help(self) -> str:
        if self.name.startswith("*"):
            return "take a tuple or a record instead"
        if self.owner:
            return (
                f"make a record of the class `{self.owner}`, whose fields have types: derive it "
                "from `psc.Record`, or decorate it with `@dataclass(frozen=True)`"
            )
        return f'give it a type, for instance `{self.name}: f32["n"]`'


class NotStatic(Diagnostic, code="PSC109"):
    """A value is not known at check time, but must be."""

    what: str
    rewrite: str = ""

    def message(self) -> str:
        return f"{self.what} is not known while checking"

    def help(self) -> str | None:
        return self.rewrite or None


class NotCallable(Diagnostic, code="PSC111"):
    """A value that is not a function is called."""

    found: str
    instead: str = ""

    def message(self) -> str:
        return f"{self.found} cannot be called in a kernel"

    def help(self) -> str | None:
        return self.instead or None


class BadArguments(Diagnostic, code="PSC120"):
    """A function is called with arguments that it does not accept."""

    function: str
    problem: str
    instead: str = ""

    def message(self) -> str:
        return f"`{self.function}` {self.problem}"

    def help(self) -> str | None:
        return self.instead or None


# PSC1xx: Python asks for the value of an array, which is known only when the kernel runs.


class BranchOnArray(Diagnostic, code="PSC121"):
    """Python asks for the truth of an array with axes, or needs a truth value while checking."""

    construct: str
    found: str
    rewrite: str

    def message(self) -> str:
        return (
            f"{self.construct} asks for the truth of an array ({self.found}), "
            "which is known only at run time"
        )

    def help(self) -> str | None:
        return self.rewrite or None


class LoopOverArray(Diagnostic, code="PSC122"):
    """The rows of an array are used where the number of items must be known."""

    found: str

    def message(self) -> str:
        return f"the rows of an array ({self.found}) are not known one by one while checking"

    def help(self) -> str:
        return (
            "`[f(x) for x in xs]` goes through the rows of an array, and so does a `for` statement"
        )


class ArrayLeavesProgram(Diagnostic, code="PSC123"):
    """An array is converted to a Python number or list."""

    function: str
    rewrite: str
    given: str = ""
    """The text of the required value, if it is not that of an array."""

    def message(self) -> str:
        if self.given:
            return f"`{self.function}` needs {self.given}"
        return f"`{self.function}` needs the value of an array, which is known only at run time"

    def help(self) -> str | None:
        return self.rewrite or None


class RefusedByJax(Diagnostic, code="PSC124"):
    """A function of JAX raises an error for arguments of these dtypes and shapes."""

    reason: str

    def message(self) -> str:
        return f"JAX refuses these arguments: {self.reason}"
