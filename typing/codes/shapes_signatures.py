"""PSC3xx: shapes that do not fit a signature, and its preconditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.assumptions import Assumptions, Verdict
from pscdsl.typing.codes.shapes import instance
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dims import Size
from pscdsl.typing.facts import Fact


class ArgumentShape(Diagnostic, code="PSC302"):
    """An argument's shape does not fit the signature of the kernel that is called.

    Sizes of one name must be equal in all arguments, for every size that the caller admits.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def dot(x: f32["n"], y: f32["n"]) -> f32:
        return x @ y


    @psc.kernel
    def f(x: f32["n"], y: f32["m"]) -> f32:
        return dot(x, y)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def dot(x: f32["n"], y: f32["n"]) -> f32:
        return x @ y


    @psc.kernel
    def f(x: f32["n"], y: f32["n"]) -> f32:
        return dot(x, y)
    ```
    """

    function: str
    argument: str
    declared: str
    given: ArrayType
    why: str

    def message(self) -> str:
        """Which argument, and both types."""
        return (
            f"argument `{self.argument}` of `{self.function}` is {self.given}, "
            f"but {self.declared} is declared"
        )

    def label(self) -> str:
        """What differs."""
        return self.why


class ReturnShape(Diagnostic, code="PSC303"):
    """The result of a kernel does not have the declared shape.

    Sizes of one name are one size everywhere in a signature: what is returned must have the
    declared shape for every size that the arguments may have.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(w: f32["h d"], x: f32["d"]) -> f32["d"]:
        return w @ x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(w: f32["h d"], x: f32["d"]) -> f32["h"]:
        return w @ x
    ```
    """

    function: str
    path: str
    declared: ArrayType
    found: ArrayType
    why: str
    rewrite: str = ""

    def message(self) -> str:
        """Both types."""
        part = f"result{self.path} of " if self.path else ""
        return f"{part}`{self.function}` returns {self.found}, but {self.declared} is declared"

    def label(self) -> str:
        """What differs."""
        return self.why

    def help(self) -> str | None:
        """The type to declare, and what makes the result the declared one."""
        if self.rewrite.startswith("add `assert"):
            return self.rewrite
        declare = f"declare {self.found}"
        return f"{declare}, or {self.rewrite}" if self.rewrite else declare


class SizeNotDetermined(Diagnostic, code="PSC304"):
    """A size of a signature cannot be computed from the shapes of the arguments.

    Every size name must occur in a parameter, alone or in a linear expression whose other names
    are known.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["m"]:
        return x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return x
    ```
    """

    function: str
    names: tuple[str, ...]
    parameter: str = ""
    """A parameter that is called like one of them."""

    def message(self) -> str:
        """Which names."""
        listed = ", ".join(f"`{name}`" for name in self.names)
        return f"size {listed} of `{self.function}` is not determined by its arguments"

    def help(self) -> str:
        """What to write."""
        if self.parameter:
            return f"`{self.parameter}: psc.Static[int]` makes a size of the parameter"
        return (
            "use each size by itself in the type of some parameter, or write it by those that are"
        )


class PreconditionNotMet(Diagnostic, code="PSC305"):
    """A call, or an inlined helper, needs a fact about sizes that is not known here.

    A kernel's `assert` about sizes is a precondition: each call must make sure that it holds.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def halves(x: f32["n"]) -> f32["2 n//2"]:
        n = x.shape[0]
        assert n % 2 == 0
        return x.reshape(2, n // 2)


    @psc.kernel
    def f(x: f32["n"]) -> f32["2 n//2"]:
        return halves(x)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def halves(x: f32["n"]) -> f32["2 n//2"]:
        n = x.shape[0]
        assert n % 2 == 0
        return x.reshape(2, n // 2)


    @psc.kernel
    def f(x: f32["n"]) -> f32["2 n//2"]:
        assert x.shape[0] % 2 == 0
        return halves(x)
    ```
    """

    function: str
    fact: str
    instance: str
    never: bool = False

    @classmethod
    def of(
        cls,
        facts: Assumptions,
        function: str,
        needed: Fact,
        sizes: Mapping[str, Size] | None = None,
    ) -> Self:
        """The finding for a fact about the callee's sizes, which are these at the call."""
        sizes = sizes or {}
        claim = needed.substitute(sizes)
        never = facts.assume(claim).consistent() is Verdict.NO
        if claim.names():
            return cls(
                function=function, fact=f"{claim}", instance=instance(facts, claim), never=never
            )
        here = ", ".join(f"{name} is {sizes[name]}" for name in sorted(needed.names()))
        return cls(function=function, fact=f"{needed}", instance=f": {here}", never=never)

    def message(self) -> str:
        """What is needed."""
        known = "never holds" if self.never else "is not known"
        return f"`{self.function}` needs `{self.fact}`, which {known} here{self.instance}"

    def help(self) -> str:
        """What to write."""
        if self.never:
            return "call it only with sizes for which it holds"
        return f"if it always holds, say so: `assert {self.fact}`"


class UndecidedCondition(Diagnostic, code="PSC306"):
    """An `if` over sizes is true for some sizes and false for others.

    A kernel is checked once for all sizes, so both the shape of its result and the program must
    be known without them.  Say by `assert` which case is meant, or compute both with
    `np.where` or `psc.cond`.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        if x.shape[0] > 4:
            return x.mean()
        return x.sum()
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        assert x.shape[0] > 4
        return x.mean()
    ```
    """

    fact: str
    yes: str
    no: str

    def message(self) -> str:
        """Which condition."""
        return f"`{self.fact}` is not decided by what is known of the sizes"

    def label(self) -> str:
        """Sizes for both."""
        if not self.yes or not self.no:
            return ""
        return f"true for {self.yes}, false for {self.no}"

    def help(self) -> str:
        """What to write."""
        return (
            f"`assert {self.fact}` makes it a precondition; "
            "where both ways give the same type, `psc.cond` decides at run time"
        )


class AssertionFails(Diagnostic, code="PSC307"):
    """An assertion about static facts does not hold.

    An `assert` about sizes, ranks, dtypes and other static facts is decided while checking.  What
    is true for some sizes only becomes a precondition; what is true for none is an error.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        assert x.ndim == 2, "x must be a matrix"
        return x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n m"]) -> f32["n m"]:
        assert x.ndim == 2, "x must be a matrix"
        return x
    ```
    """

    condition: str
    text: str = ""

    def message(self) -> str:
        """What was asserted."""
        why = f": {self.text}" if self.text else ""
        return f"`{self.condition}` does not hold{why}"
