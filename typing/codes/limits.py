"""PSC9xx: limits of the analysis and of the compiler, and our own mistakes."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic, Severity


class NotSupported(Diagnostic, code="PSC900"):
    """A construct has a meaning, but is not supported yet."""

    what: str
    instead: str = ""

    def message(self) -> str:
        return f"not supported yet: {self.what}"

    def help(self) -> str | None:
        return self.instead or None


class NoRule(Diagnostic, code="PSC901"):
    """A primitive has no rule for the requested transformation."""

    primitive: str
    rule: str
    instead: str = ""

    def message(self) -> str:
        return f"not supported yet: primitive `{self.primitive}` has no rule for {self.rule}"

    def help(self) -> str | None:
        return self.instead or None


class MissingOnTarget(Diagnostic, code="PSC953"):
    """A primitive cannot be computed on the kind of device that a program is compiled for."""

    primitive: str
    target: str
    instead: str

    def message(self) -> str:
        return f"not supported yet: `{self.primitive}` on devices of target `{self.target}`"

    def help(self) -> str | None:
        return self.instead


class IllTypedEquation(Diagnostic, code="PSC902"):
    """A primitive gets operands that its type rule refuses."""

    primitive: str
    reason: str

    def message(self) -> str:
        return f"`{self.primitive}` does not fit its operands: {self.reason}"


class KernelNotChecked(Diagnostic, code="PSC903", severity=Severity.NOTE):
    """A kernel cannot be checked from its source alone."""

    kernel_name: str
    reason: str
    decorator: str = ""
    """The qualified name of the decorator that is the reason, if one is."""
    rewrite: str = (
        "declare the types of what it reads, or define it at module level and pass what it needs"
    )

    def message(self) -> str:
        return f"kernel `{self.kernel_name}` is not checked: {self.reason}"

    def help(self) -> str:
        return self.rewrite


class NoSource(Diagnostic, code="PSC904"):
    """The source of a function cannot be found, so it cannot be checked."""

    function: str
    remedy: str = "define it in a file"

    def message(self) -> str:
        return f"the source of `{self.function}` cannot be found"

    def help(self) -> str:
        return self.remedy


class UnknownFunction(Diagnostic, code="PSC910"):
    """A kernel calls a function that the checker cannot read."""

    function: str
    here: str = ""
    """The qualified name of the equivalent here."""
    instead: str = ""
    """The replacement, if it is known."""
    decorator: str = ""
    """The qualified name of the unknown decorator, if the function has one."""

    def message(self) -> str:
        if self.decorator:
            made = f"`{self.function}` is what `@{self.decorator}` makes of a function"
            return f"{made}, and nothing is known of that"
        return f"`{self.function}` cannot be called in a kernel: nothing is known of it"

    def help(self) -> str:
        if self.decorator and not self.instead:
            return "leave the decorator out: a kernel compiles the functions that it calls"
        return self.instead or "call it outside and pass its result as an argument"


class InternalError(Diagnostic, code="PSC999"):
    """The compiler failed; this is a bug in pscdsl, not in the program."""

    what: str

    def message(self) -> str:
        return f"internal error: {self.what}"


class NestedTooDeeply(Diagnostic, code="PSC950"):
    """The program is nested too deeply to be checked."""

    what: str

    def message(self) -> str:
        return f"{self.what} is nested too deeply to be checked"

    def help(self) -> str:
        return "split it into steps with names, or use a loop"


class TooLargeToCompile(Diagnostic, code="PSC952"):
    """A program is larger than XLA can compile."""

    what: str
    instead: str = ""

    def message(self) -> str:
        return f"{self.what} is too large to be compiled"

    def help(self) -> str:
        return self.instead


class TooManyFindings(Diagnostic, code="PSC951"):
    """A kernel has so many findings that the rest of it is not checked."""

    limit: int

    def message(self) -> str:
        return f"more than {self.limit} findings: the rest is not checked"

    def help(self) -> str:
        return "mend the first ones, and check again"


class UnknownValue(Diagnostic, code="PSC911"):
    """A kernel uses a value that the checker cannot read."""

    name: str
    here: str = ""
    """The qualified name of the equivalent here."""
    instead: str = ""
    """The replacement, if it is known."""

    def message(self) -> str:
        return f"the value of `{self.name}` is not known from the source"

    def help(self) -> str:
        return self.instead or "pass it as an argument"


class ChoicesSampled(Diagnostic, code="PSC905", severity=Severity.NOTE):
    """A signature has so many choices that only some were tried."""

    function: str
    tried: int
    total: int

    def message(self) -> str:
        return f"`{self.function}` was tried with {self.tried} of {self.total} choices"

    def help(self) -> str:
        return "leave less open, for instance by naming a dtype or a rank"


# PSC917: what was captured changes where the analysis sees nothing.


class CapturedStateChanged(Diagnostic, code="PSC917"):
    """A captured value has changed since the kernel was first used."""

    name: str
    function: str

    def message(self) -> str:
        return (
            f"captured state changed: `{self.name}` is not what it was when `{self.function}` "
            f"was compiled"
        )

    def help(self) -> str:
        return "pass it to the kernel as an argument"


class CaptureTooLarge(Diagnostic, code="PSC954"):
    """A kernel captures a mutable object that is too large to be compared."""

    name: str
    what: str

    def message(self) -> str:
        return f"`{self.name}` is {self.what}: too large to be compared at each call"

    def help(self) -> str:
        copy = f"`psc.constant({self.name})`"
        return f"capture a copy that nothing writes, {copy}, or pass it as an argument"


# PSC907 and on: loaded code that is not what its text says.


class TextChanged(Diagnostic, code="PSC907"):
    """A loaded function differs from the text of its file."""

    function: str
    where: str

    def message(self) -> str:
        return f"`{self.function}` is not what its text says: {self.where} was changed since"

    def help(self) -> str:
        return "load it again: `importlib.reload` its module, run its cell again, or restart Python"


class SeveralFunctions(Diagnostic, code="PSC908"):
    """A line has several lambdas, and their code has no columns to distinguish them."""

    line: str

    def message(self) -> str:
        return f"several lambdas begin at {self.line}, and code has no columns here"

    def help(self) -> str:
        return "write them on lines of their own, or run Python without `-X no_debug_ranges`"


# PSC913 and on: functions that are vouched for with `psc.pure`.


class VouchedResultUnknown(Diagnostic, code="PSC913"):
    """A function declared pure by `psc.pure` does not declare what it returns."""

    function: str
    size: str = ""

    def message(self) -> str:
        if self.size:
            return f"the size {self.size} of the result of `{self.function}` is not known here"
        return f"it is not known what `{self.function}` returns, for which `psc.pure` vouches"

    def help(self) -> str:
        return 'declare its result, for instance `-> f32["3 n"]` with an argument `n: int`'


class VouchedNeedsValues(Diagnostic, code="PSC914"):
    """A function declared pure by `psc.pure` gets an array or a size that is not known yet."""

    function: str
    found: str

    def message(self) -> str:
        return f"`{self.function}` is called before the kernel runs, when {self.found} is not known"

    def help(self) -> str:
        return "call it outside and pass its result, or make it a `psc.primitive`"


class VouchedResultDiffers(Diagnostic, code="PSC915"):
    """A function declared pure by `psc.pure` does not return what it declares."""

    function: str
    problem: str

    def message(self) -> str:
        return f"`{self.function}` {self.problem}"


class RevealedType(Diagnostic, code="PSC918", severity=Severity.NOTE):
    """`reveal_type` shows the type of an expression."""

    types: tuple[str, ...]
    """The type, or the types for the choices that the signature leaves open."""

    def message(self) -> str:
        return f"the type is {' or '.join(self.types)}"


class Vouched(Diagnostic, code="PSC916", severity=Severity.NOTE):
    """A kernel calls a function that is declared pure by `psc.pure`."""

    function: str

    def message(self) -> str:
        return f"`{self.function}` is taken to be pure: `psc.pure` vouches for it"
