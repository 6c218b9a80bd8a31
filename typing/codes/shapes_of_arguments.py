"""PSC3xx: sizes and shapes that a signature or a library function does not take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from pscdsl.typing.array_types import ArrayType, Shape, show_shape
from pscdsl.typing.assumptions import Assumptions, Verdict
from pscdsl.typing.codes.shapes import instance
from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dims import Size
from pscdsl.typing.facts import Fact

# PSC301 and PSC330 to PSC349: sizes and shapes that a library function does not take.


class InnerSizesDiffer(Diagnostic, code="PSC301"):
    """The inner sizes of a matrix product differ.

    The last axis of the left operand is summed against the last but one of the right operand
    (its only one if it is a vector), so the two must have the same size, for every size that the
    signature admits.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(w: f32["h d"], x: f32["d"]) -> f32["h"]:
        return x @ w
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
    left: ArrayType
    right: ArrayType
    why: str
    works: tuple[tuple[str, ArrayType], ...] = ()
    """Products that do fit, with `{0}` and `{1}` for the operands, and their types."""
    operands: tuple[str, str] = ("a", "b")
    """How the operands are written."""

    def message(self) -> str:
        """What differs."""
        return f"{self.function}: inner sizes differ"

    def label(self) -> str:
        """Where and how."""
        sign = "@" if self.function == "matmul" else "and"
        return f"{self.left} {sign} {self.right}: {self.why}"

    def help(self) -> str | None:
        """The products that fit."""
        texts = [f"`{text.format(*self.operands)}` has type {each}" for text, each in self.works]
        return ", ".join(texts) or None


class EmptyReduction(Diagnostic, code="PSC330"):
    """A function that needs an element is applied to an array that may be empty.

    A maximum, a median or an index of the largest element does not exist where there is nothing
    to choose from.  Sizes are at least 1 unless an `assert` says otherwise.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        n = x.shape[0]
        assert n >= 0
        return np.max(x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        n = x.shape[0]
        assert n >= 0
        return np.max(x, initial=0.0)
    ```
    """

    function: str
    given: ArrayType
    size: Size
    remedy: str = ""

    def message(self) -> str:
        """What may be empty."""
        if isinstance(self.size, int):
            return f"`{self.function}`: there is nothing to choose from in {self.given}"
        return f"`{self.function}`: {self.given} may be empty, {self.size} can be 0"

    def label(self) -> str:
        """The size."""
        return f"{self.size} is not known to be at least 1"

    def help(self) -> str | None:
        """A precondition, or another call."""
        claim = "" if isinstance(self.size, int) else f"add `assert {self.size} >= 1`"
        return " or ".join(filter(None, (claim, self.remedy))) or None


class BadSubscripts(Diagnostic, code="PSC331"):
    """The subscripts of an `einsum` do not make sense or do not fit its operands.

    There is one group of letters for each operand, separated by commas, and one letter for each
    axis; `...` stands for the axes without a letter.  After `->` come the letters of the result,
    each at most once and each of them taken from the operands.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(a: f32["n k"], b: f32["k m"]) -> f32["n m"]:
        return np.einsum("ik,kj->il", a, b)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(a: f32["n k"], b: f32["k m"]) -> f32["n m"]:
        return np.einsum("ik,kj->ij", a, b)
    ```
    """

    subscripts: str
    problem: str

    def message(self) -> str:
        """What is wrong with them."""
        return f"einsum {self.subscripts!r}: {self.problem}"


class LengthsDiffer(Diagnostic, code="PSC332"):
    """Two axes that a function reads together have different sizes.

    Axes that are contracted with each other, samples and their weights, the abscissae and the
    ordinates of a curve must be equally long, for every size that the signature admits.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"], xp: f32["k"], fp: f32["m"]) -> f32["n"]:
        return np.interp(x, xp, fp)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"], xp: f32["k"], fp: f32["k"]) -> f32["n"]:
        return np.interp(x, xp, fp)
    ```
    """

    function: str
    left: str
    right: str
    why: str

    def message(self) -> str:
        """Which two."""
        return f"`{self.function}`: {self.left} and {self.right} differ in length"

    def label(self) -> str:
        """The sizes."""
        return self.why


class TooFewElements(Diagnostic, code="PSC333"):
    """A function needs more elements along an axis than there may be.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["3"]:
        values, _ = psc.top_k(x, 3)
        return values
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["3"]:
        n = x.shape[0]
        assert n >= 3
        values, _ = psc.top_k(x, 3)
        return values
    ```
    """

    function: str
    given: ArrayType
    size: Size
    needed: Size
    what: str
    """What needs so many, for instance `k`."""
    why: str = ""
    """The smallest sizes at which it fails."""

    def message(self) -> str:
        """How many are needed."""
        return f"`{self.function}`: {self.what} needs {self.needed} elements, there are {self.size}"

    def label(self) -> str:
        """The sizes at which it fails."""
        return f"{self.given}: {self.size} may be less than {self.needed}{self.why}"

    def help(self) -> str | None:
        """The precondition."""
        if isinstance(self.size, int) and isinstance(self.needed, int):
            return None
        return f"add `assert {self.size} >= {self.needed}`"


class LongerUnknown(Diagnostic, code="PSC334"):
    """The result depends on which of two arrays is longer, and that is not known.

    `np.convolve` and `np.correlate` slide the shorter array along the longer one.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"], v: f32["k"]) -> f32["n"]:
        return np.convolve(x, v, "same")
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"], v: f32["k"]) -> f32["n"]:
        n, k = x.shape[0], v.shape[0]
        assert n >= k
        return np.convolve(x, v, "same")
    ```
    """

    function: str
    left: Size
    right: Size

    def message(self) -> str:
        """Which two sizes."""
        return f"`{self.function}`: it is not known which is longer, {self.left} or {self.right}"

    def help(self) -> str:
        """The precondition, and the mode without one."""
        return f"add `assert {self.left} >= {self.right}`, or use the mode 'full'"


class WeightsDoNotFit(Diagnostic, code="PSC335"):
    """Weights have neither the shape of their array nor that of the reduced axes.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n m"], w: f32["n"]) -> f32["m"]:
        return np.average(x, weights=w)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n m"], w: f32["n"]) -> f32["m"]:
        return np.average(x, axis=0, weights=w)
    ```
    """

    function: str
    shape: Shape
    weights: Shape

    def message(self) -> str:
        """The two shapes."""
        return (
            f"`{self.function}`: weights of shape [{show_shape(self.weights)}] do not fit "
            f"[{show_shape(self.shape)}]"
        )

    def help(self) -> str:
        """What fits."""
        return "give weights of the same shape, or an `axis` and weights along it"


# PSC3xx: shapes that do not fit a signature, and its preconditions.


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
    swapped: str = ""
    """The other argument with which it fits in the other order."""

    def help(self) -> str | None:
        """The order, if that is all that is wrong."""
        order = f"`{self.argument}` and `{self.swapped}` fit in the other order"
        return order if self.swapped else None

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
    instead: str = ""
    """What is to be said in place of the type to declare."""

    def message(self) -> str:
        """Both types."""
        part = f"result{self.path} of " if self.path else ""
        return f"{part}`{self.function}` returns {self.found}, but {self.declared} is declared"

    def label(self) -> str:
        """What differs."""
        return self.why

    def help(self) -> str | None:
        """The type to declare, and what makes the result the declared one."""
        if self.is_sampled:
            return None  # which type it is depends on the static values
        if self.instead or self.rewrite.startswith("add `assert"):
            return self.instead or self.rewrite
        if 0 in self.found.shape:
            return self.rewrite or None  # nobody means to return nothing
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

    A kernel is checked once for all sizes.  An `if` whose branches both hold for all sizes, and
    leave values of the same types, runs one of them.  This one has a branch that holds for some
    sizes only, or is asked where a static answer is needed.  Say by `assert` which case is meant.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        if x.shape[0] > 4:
            return x[4]
        return x.sum()
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
    general: str
    """Of the condition and its opposite the one that holds for more sizes."""

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
            f"`assert {self.general}` leaves the other case out; without one, both ways "
            "must hold for all sizes and give the same types"
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
