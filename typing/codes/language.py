"""PSC1xx: constructs that have no meaning in a kernel."""

from __future__ import annotations


from pscdsl.typing.diagnostics import Diagnostic


class BadArguments(Diagnostic, code="PSC120"):
    """A function was called with arguments that it does not take.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        return np.mean(x, axes=0)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        return np.mean(x, axis=0)
    ```
    """

    function: str
    problem: str

    def message(self) -> str:
        """What does not fit."""
        return f"`{self.function}` {self.problem}"


class NotPython(Diagnostic, code="PSC100"):
    """A file is not Python source text."""

    reason: str

    def message(self) -> str:
        """Why not."""
        return f"not Python source: {self.reason}"


class Unsupported(Diagnostic, code="PSC101"):
    """A construct of Python has no meaning in a kernel."""

    what: str
    rewrite: str

    def message(self) -> str:
        """Which construct."""
        return f"{self.what} has no meaning in a kernel"

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None


class UnknownName(Diagnostic, code="PSC102"):
    """A name is not defined, or not yet."""

    name: str
    unassigned: bool

    def message(self) -> str:
        """Which name."""
        if self.unassigned:
            return f"`{self.name}` is used before it is assigned"
        return f"`{self.name}` is not defined"


class NoSuchAttribute(Diagnostic, code="PSC103"):
    """A value has no attribute of this name, or none that has a meaning in a kernel."""

    owner: str
    attribute: str
    known: tuple[str, ...] = ()

    def message(self) -> str:
        """Which attribute of what."""
        return f"{self.owner} has no attribute `{self.attribute}`"

    def help(self) -> str | None:
        """Names that are alike."""
        from difflib import get_close_matches

        near = get_close_matches(self.attribute, self.known, 1)
        return f"did you mean `{near[0]}`?" if near else None


class BadAnnotation(Diagnostic, code="PSC104"):
    """An annotation is not a type of arrays, or of trees of arrays."""

    text: str
    reason: str
    rewrite: str

    def message(self) -> str:
        """What is wrong with it."""
        return f"annotation `{self.text}`: {self.reason}"

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None


class MissingAnnotation(Diagnostic, code="PSC105"):
    """A parameter of a kernel has no type."""

    function: str
    name: str

    def message(self) -> str:
        """Which parameter."""
        if self.name.startswith("*"):
            return f"kernel `{self.function}` takes `{self.name}`, which has no fixed types"
        return f"parameter `{self.name}` of kernel `{self.function}` has no type"

    def help(self) -> str:
        """What to write."""
        if self.name.startswith("*"):
            return "take a tuple or a record instead"
        return f'for instance `{self.name}: f32["n"]`'


class RecursiveKernel(Diagnostic, code="PSC106"):
    """A kernel calls itself, directly or through others."""

    function: str

    def message(self) -> str:
        """Which kernel."""
        return f"kernel `{self.function}` calls itself"

    def help(self) -> str:
        """What to write instead."""
        return "use `psc.while_loop` or `psc.scan`"


class UnboundedRecursion(Diagnostic, code="PSC107"):
    """Helpers call each other without an end that is known while checking."""

    function: str

    def message(self) -> str:
        """Which function."""
        return f"calls of `{self.function}` are nested too deeply"

    def help(self) -> str:
        """What to write instead."""
        return "use `psc.while_loop`, `psc.fori_loop` or `psc.scan`"


class TooManySteps(Diagnostic, code="PSC108"):
    """Checking a kernel takes more steps than are allowed, mostly because of an unrolled loop."""

    limit: int

    def message(self) -> str:
        """The bound."""
        return f"checking takes more than {self.limit} steps"

    def help(self) -> str:
        """What to write instead."""
        return "a loop over static values is unrolled; `psc.fori_loop` or `psc.scan` is not"


class NotStatic(Diagnostic, code="PSC109"):
    """Something must be known while checking, and is not."""

    what: str

    def message(self) -> str:
        """What."""
        return f"{self.what} is not known while checking"

    def help(self) -> str:
        """What to write instead."""
        return "loops over arrays or symbolic sizes are `psc.scan`, `psc.fori_loop` or `psc.map`"


class BadOperands(Diagnostic, code="PSC110"):
    """An operator has no meaning for its operands."""

    operator: str
    left: str
    right: str
    reason: str

    def message(self) -> str:
        """The operands."""
        operands = f"{self.left} and {self.right}" if self.right else self.left
        why = f": {self.reason}" if self.reason else ""
        return f"`{self.operator}` has no meaning for {operands}{why}"


class NotCallable(Diagnostic, code="PSC111"):
    """Something is called that is not a function."""

    found: str

    def message(self) -> str:
        """What is called."""
        return f"{self.found} cannot be called in a kernel"


class BadIndex(Diagnostic, code="PSC112"):
    """An index does not fit what is indexed."""

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
    """A pattern of names does not fit what it is assigned from."""

    expected: int
    found: str

    def message(self) -> str:
        """Both counts."""
        return f"{self.expected} names cannot be assigned from {self.found}"


class RaiseReached(Diagnostic, code="PSC114"):
    """A `raise` is reached while checking."""

    what: str

    def message(self) -> str:
        """What is raised."""
        return f"`raise {self.what}` is reached"

    def help(self) -> str:
        """What to write instead."""
        return "`if fact: raise …` over sizes, ranks or dtypes is a precondition"


class NoSource(Diagnostic, code="PSC115"):
    """The source of a function cannot be found, so that it cannot be checked.

    Functions made by `exec`, by C extensions or typed at a bare prompt have no source text.
    """

    function: str

    def message(self) -> str:
        """Which function."""
        return f"the source of `{self.function}` cannot be found"

    def help(self) -> str:
        """What to do."""
        return "define it in a file"
