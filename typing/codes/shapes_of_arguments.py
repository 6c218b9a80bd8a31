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
    """The inner sizes of a matrix product differ."""

    function: str
    left: ArrayType
    right: ArrayType
    why: str
    works: tuple[tuple[str, ArrayType], ...] = ()
    """Products that do fit, with `{0}` and `{1}` for the operands, and their types."""
    operands: tuple[str, str] = ("a", "b")
    """The texts of the operands."""

    def message(self) -> str:
        return f"{self.function}: inner sizes differ"

    def label(self) -> str:
        sign = "@" if self.function == "matmul" else "and"
        return f"{self.left} {sign} {self.right}: {self.why}"

    def help(self) -> str | None:
        texts = [f"`{text.format(*self.operands)}` has type {each}" for text, each in self.works]
        return ", ".join(texts) or None


class EmptyReduction(Diagnostic, code="PSC330"):
    """A function that needs an element is applied to an array that may be empty."""

    function: str
    given: ArrayType
    size: Size
    remedy: str = ""

    def message(self) -> str:
        if isinstance(self.size, int):
            return f"`{self.function}`: there is nothing to choose from in {self.given}"
        return f"`{self.function}`: {self.given} may be empty, {self.size} can be 0"

    def label(self) -> str:
        return f"{self.size} is not known to be at least 1"

    def help(self) -> str | None:
        claim = "" if isinstance(self.size, int) else f"add `assert {self.size} >= 1`"
        return " or ".join(filter(None, (claim, self.remedy))) or None


class BadSubscripts(Diagnostic, code="PSC331"):
    """The subscripts of an `einsum` are malformed or do not fit its operands."""

    subscripts: str
    problem: str

    def message(self) -> str:
        return f"einsum {self.subscripts!r}: {self.problem}"


class LengthsDiffer(Diagnostic, code="PSC332"):
    """Two axes that a function reads together have different sizes."""

    function: str
    left: str
    right: str
    why: str

    def message(self) -> str:
        return f"`{self.function}`: {self.left} and {self.right} differ in length"

    def label(self) -> str:
        return self.why


class TooFewElements(Diagnostic, code="PSC333"):
    """A function needs more elements along an axis than there may be."""

    function: str
    given: ArrayType
    size: Size
    needed: Size
    what: str
    """The parameter that needs this number of elements, for instance `k`."""
    why: str = ""
    """The smallest sizes at which it fails."""

    def message(self) -> str:
        return f"`{self.function}`: {self.what} needs {self.needed} elements, there are {self.size}"

    def label(self) -> str:
        return f"{self.given}: {self.size} may be less than {self.needed}{self.why}"

    def help(self) -> str | None:
        if isinstance(self.size, int) and isinstance(self.needed, int):
            return None
        return f"add `assert {self.size} >= {self.needed}`"


class LongerUnknown(Diagnostic, code="PSC334"):
    """The result depends on which of two arrays is longer, which is not known."""

    function: str
    left: Size
    right: Size

    def message(self) -> str:
        return f"`{self.function}`: it is not known which is longer, {self.left} or {self.right}"

    def help(self) -> str:
        return f"add `assert {self.left} >= {self.right}`, or use the mode 'full'"


class WeightsDoNotFit(Diagnostic, code="PSC335"):
    """Weights have neither the shape of their array nor that of the reduced axes."""

    function: str
    shape: Shape
    weights: Shape

    def message(self) -> str:
        return (
            f"`{self.function}`: weights of shape [{show_shape(self.weights)}] do not fit "
            f"[{show_shape(self.shape)}]"
        )

    def help(self) -> str:
        return "give weights of the same shape, or an `axis` and weights along it"


# PSC3xx: shapes that do not fit a signature, and its preconditions.


class ArgumentShape(Diagnostic, code="PSC302"):
    """An argument's shape does not fit the signature of the kernel that is called."""

    function: str
    argument: str
    declared: str
    given: ArrayType
    why: str
    swapped: str = ""
    """The other argument with which it fits in the other order."""

    def help(self) -> str | None:
        order = f"`{self.argument}` and `{self.swapped}` fit in the other order"
        return order if self.swapped else None

    def message(self) -> str:
        return (
            f"argument `{self.argument}` of `{self.function}` is {self.given}, "
            f"but {self.declared} is declared"
        )

    def label(self) -> str:
        return self.why


class ReturnShape(Diagnostic, code="PSC303"):
    """The result of a kernel does not have the declared shape."""

    function: str
    path: str
    declared: ArrayType
    found: ArrayType
    why: str
    rewrite: str = ""
    instead: str = ""
    """The advice in place of the type to declare."""

    def message(self) -> str:
        part = f"result{self.path} of " if self.path else ""
        return f"{part}`{self.function}` returns {self.found}, but {self.declared} is declared"

    def label(self) -> str:
        return self.why

    def help(self) -> str | None:
        if self.is_sampled:
            return None  # which type it is depends on the static values
        if self.instead or self.rewrite.startswith("add `assert"):
            return self.instead or self.rewrite
        if 0 in self.found.shape:
            return self.rewrite or None  # nobody means to return nothing
        declare = f"declare {self.found}"
        return f"{declare}, or {self.rewrite}" if self.rewrite else declare


class SizeNotDetermined(Diagnostic, code="PSC304"):
    """A size of a signature cannot be computed from the shapes of the arguments."""

    function: str
    names: tuple[str, ...]
    parameter: str = ""
    """A parameter that is called like one of them."""

    def message(self) -> str:
        listed = ", ".join(f"`{name}`" for name in self.names)
        return f"size {listed} of `{self.function}` is not determined by its arguments"

    def help(self) -> str:
        if self.parameter:
            return f"`{self.parameter}: psc.Static[int]` makes a size of the parameter"
        return (
            "use each size by itself in the type of some parameter, or write it by those that are"
        )


class PreconditionNotMet(Diagnostic, code="PSC305"):
    """A call, or an inlined helper, needs a fact about sizes that is not known here."""

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
        known = "never holds" if self.never else "is not known"
        return f"`{self.function}` needs `{self.fact}`, which {known} here{self.instance}"

    def help(self) -> str:
        if self.never:
            return "call it only with sizes for which it holds"
        return f"if it always holds, say so: `assert {self.fact}`"


class UndecidedCondition(Diagnostic, code="PSC306"):
    """An `if` over sizes is true for some sizes and false for others."""

    fact: str
    yes: str
    no: str
    general: str
    """The condition or its opposite, whichever holds for more sizes."""

    def message(self) -> str:
        return f"`{self.fact}` is not decided by what is known of the sizes"

    def label(self) -> str:
        if not self.yes or not self.no:
            return ""
        return f"true for {self.yes}, false for {self.no}"

    def help(self) -> str:
        return (
            f"`assert {self.general}` leaves the other case out; without one, both ways "
            "must hold for all sizes and give the same types"
        )


class AssertionFails(Diagnostic, code="PSC307"):
    """An assertion about static facts does not hold."""

    condition: str
    text: str = ""

    def message(self) -> str:
        why = f": {self.text}" if self.text else ""
        return f"`{self.condition}` does not hold{why}"
