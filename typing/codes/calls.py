"""Arguments and results that do not fit a signature: PSC302-306, PSC404-405, PSC501-503."""

from __future__ import annotations


from pscdsl.typing.arrays import ArrayType
from pscdsl.typing.diagnostics import Diagnostic


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
    """What a kernel returns has not the shape that it declares.

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

    def message(self) -> str:
        """Both types."""
        part = f"result{self.path} of " if self.path else ""
        return f"{part}`{self.function}` returns {self.found}, but {self.declared} is declared"

    def label(self) -> str:
        """What differs."""
        return self.why

    def help(self) -> str | None:
        """The cast, where only the dtype differs."""
        if self.found.dtype is not self.declared.dtype:
            return None
        return f"declare {self.found}, or reshape what is returned"


class SizeNotDetermined(Diagnostic, code="PSC304"):
    """A size of a signature cannot be computed from the shapes of the arguments.

    Every size name must occur in a parameter, alone or in a linear expression whose other names
    are known.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["m"]:
        return x
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return x
    ```
    """

    function: str
    names: tuple[str, ...]

    def message(self) -> str:
        """Which names."""
        listed = ", ".join(f"`{name}`" for name in self.names)
        return f"size {listed} of `{self.function}` is not determined by its arguments"

    def help(self) -> str:
        """What to write."""
        return "use each size by itself in the type of some parameter"


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

    def message(self) -> str:
        """What is needed."""
        return f"`{self.function}` needs `{self.fact}`, which is not known here{self.instance}"

    def help(self) -> str:
        """What to write."""
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
            return x[4]
        return x[0]
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        assert x.shape[0] > 4
        return x[4]
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
        return f"`assert {self.fact}` makes it a precondition; `psc.cond` decides at run time"


class AssertionFails(Diagnostic, code="PSC307"):
    """An assertion about static facts does not hold.

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


class ArgumentDtype(Diagnostic, code="PSC404"):
    """An argument's dtype does not fit the signature of the kernel that is called.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32, f64


    @psc.kernel
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x


    @psc.kernel
    def f(x: f64["n"]) -> f32["n"]:
        return double(x)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32, f64


    @psc.kernel
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x


    @psc.kernel
    def f(x: f64["n"]) -> f32["n"]:
        return double(x.astype(f32))
    ```
    """

    function: str
    argument: str
    declared: str
    given: ArrayType

    def message(self) -> str:
        """Which argument, and both types."""
        return (
            f"argument `{self.argument}` of `{self.function}` is {self.given}, "
            f"but {self.declared} is declared"
        )

    def help(self) -> str:
        """The cast."""
        return "cast it with `.astype(...)`; arrays are never converted silently"


class ReturnDtype(Diagnostic, code="PSC405"):
    """What a kernel returns has not the dtype that it declares.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32, f64


    @psc.kernel
    def f(x: f32["n"]) -> f64["n"]:
        return x * 2
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32, f64


    @psc.kernel
    def f(x: f32["n"]) -> f64["n"]:
        return (x * 2).astype(f64)
    ```
    """

    function: str
    path: str
    declared: ArrayType
    found: ArrayType

    def message(self) -> str:
        """Both types."""
        part = f"result{self.path} of " if self.path else ""
        return f"{part}`{self.function}` returns {self.found}, but {self.declared} is declared"

    def help(self) -> str:
        """The cast."""
        return f"`.astype(psc.{self.declared.dtype})`, or declare {self.found}"


class ArgumentTree(Diagnostic, code="PSC501"):
    """An argument is another kind of thing than the signature declares.

    For instance an array where a record is declared, a tuple of another length, or an array
    where a static value is needed.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def add(pair: tuple[f32["n"], f32["n"]]) -> f32["n"]:
        return pair[0] + pair[1]


    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return add((x, x, x))
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def add(pair: tuple[f32["n"], f32["n"]]) -> f32["n"]:
        return pair[0] + pair[1]


    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return add((x, x))
    ```
    """

    function: str
    argument: str
    declared: str
    given: str

    def message(self) -> str:
        """Which argument, and both."""
        return (
            f"argument `{self.argument}` of `{self.function}` is {self.given}, "
            f"but {self.declared} is declared"
        )


class ReturnTree(Diagnostic, code="PSC502"):
    """What a kernel returns is another kind of thing than it declares.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> tuple[f32["n"], f32]:
        return x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> tuple[f32["n"], f32]:
        return x, x.sum()
    ```
    """

    function: str
    declared: str
    found: str

    def message(self) -> str:
        """Both."""
        return f"`{self.function}` returns {self.found}, but {self.declared} is declared"
