"""PSC7xx: programs whose numbers may be misleading."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic, Severity
from pscdsl.typing.dims import Size


class ColumnMeetsRow(Diagnostic, code="PSC714", severity=Severity.WARNING):
    """A column of n and a row of n broadcast to n times n elements, which are then reduced."""

    column: str
    row: str
    types: tuple[str, str]
    result: str

    def message(self) -> str:
        names = [f"`{each}` is " if each else "" for each in (self.column, self.row)]
        column, row = (name + kind for name, kind in zip(names, self.types, strict=True))
        return f"{column} and {row}: together they make {self.result}, and all of it is reduced"

    def help(self) -> str:
        column, row = self.column or "x", self.row or "y"
        column = column if column.isidentifier() else f"({column})"
        return (
            f"`{column}[..., 0]` has the axes of `{row}`; "
            f"where all pairs are wanted, `{column}[..., 0][..., None]` says so"
        )


class RepeatedIndexCombined(Diagnostic, code="PSC715", severity=Severity.WARNING):
    """`a[i] += x` changes an element only once, even if `i` holds its index twice."""

    function: str
    texts: tuple[str, str, str]
    """The texts of the array, of its index, and of the value that is combined with it."""

    def message(self) -> str:
        array, index, _ = self.texts
        return f"an index that occurs twice in `{index}` changes `{array}` once"

    def help(self) -> str:
        return f"`np.{self.function}.at({', '.join(self.texts)})` changes it at each occurrence"


# PSC705 to PSC712: formulas that lose accuracy or overflow where another form does not.


class LogOfSoftmax(Diagnostic, code="PSC705"):
    """The logarithm of a softmax is -inf where the probability is too small for its dtype."""

    def message(self) -> str:
        return "the logarithm of a softmax is -inf where the probability underflows"

    def help(self) -> str:
        return (
            "`log_softmax` of `pscdsl.stdlib.activations` computes it without the detour; by hand: "
            "`z = x - np.max(x)`, then `z - np.log(np.sum(np.exp(z)))`"
        )


class LogOfSumOfExponentials(Diagnostic, code="PSC706"):
    """In the logarithm of a sum of exponentials, an exponential can overflow."""

    rewrite: str

    def message(self) -> str:
        return "the logarithm of a sum of exponentials is inf where an exponential overflows"

    def help(self) -> str:
        return self.rewrite


class SoftmaxOverflows(Diagnostic, code="PSC707"):
    """In a softmax, an exponential can overflow."""

    operand: str

    def message(self) -> str:
        return "this softmax is NaN where an exponential overflows"

    def help(self) -> str:
        x = self.operand or "x"
        return (
            f"`np.exp({x} - np.max({x}))`, the maximum along the axis of the sum; "
            "`softmax` of `pscdsl.stdlib.activations` does it over the last axis"
        )


class LogOfOnePlus(Diagnostic, code="PSC708"):
    """`log(1 + x)` is 0 for every small `x`."""

    operand: str
    negated: bool

    def message(self) -> str:
        sign = "-" if self.negated else "+"
        return f"`log(1 {sign} x)` loses the digits of a small `x`"

    def help(self) -> str:
        x = self.operand or "x"
        simple = x.replace("_", "").replace(".", "").isalnum()
        return f"`np.log1p({('-' + (x if simple else f'({x})')) if self.negated else x})`"


class ExpMinusOne(Diagnostic, code="PSC709"):
    """`exp(x) - 1` is 0 for every small `x`."""

    operand: str
    factor: str
    negated: bool

    def message(self) -> str:
        form = "1 - exp(x)" if self.negated else "exp(x) - 1"
        return f"`{form}` loses the digits of a small `x`"

    def help(self) -> str:
        sign = "-" if self.negated else ""
        factor = f"{self.factor} * " if self.factor else ""
        return f"`{sign}{factor}np.expm1({self.operand or 'x'})`"


class LogOfSigmoid(Diagnostic, code="PSC710"):
    """The logarithm of a sigmoid is -inf where the sigmoid is too small for its dtype."""

    def message(self) -> str:
        return "the logarithm of a sigmoid is -inf where the sigmoid underflows"

    def help(self) -> str:
        return "`log_sigmoid` of `pscdsl.stdlib.activations`, or by hand `-np.logaddexp(-x, 0)`"


class MomentsCancel(Diagnostic, code="PSC711"):
    """A variance is computed as the difference of two large numbers."""

    operand: str

    def message(self) -> str:
        return "`mean(x**2) - mean(x)**2` loses all digits, and its sign, where the mean is large"

    def help(self) -> str:
        x = self.operand or "x"
        return f"`np.var({x})`, or `np.mean(({x} - np.mean({x})) ** 2)`"


class ComputedFloatsCompared(Diagnostic, code="PSC712"):
    """`==` or `!=` compares floats that are computed, and rounded, in different ways."""

    left: str
    right: str
    sign: str

    def message(self) -> str:
        return f"`{self.sign}` between floats that were rounded on different ways"

    def help(self) -> str:
        negated = "~" if self.sign == "!=" else ""
        return (
            f"`{negated}np.isclose({self.left or 'a'}, {self.right or 'b'})`, "
            "or a tolerance that fits the numbers"
        )


class EpsilonIsLost(Diagnostic, code="PSC713"):
    """A bound that should stay away from 0 or 1 is 0 or 1 in its dtype."""

    value: str
    rounded: str
    dtype: str
    smallest: str

    def message(self) -> str:
        return f"the bound {self.value} is exactly {self.rounded} in {self.dtype}"

    def help(self) -> str:
        return f"take a distance of at least {self.smallest}, or a wider dtype"


# PSC704: values that are numbers where their gradients are not.


class NanInGradient(Diagnostic, code="PSC704"):
    """`where` hides a NaN or infinity from the value, but not from the gradient."""

    function: str
    condition: str
    holds: bool
    operand: str
    safe: str
    rewrite: str
    """The whole expression, corrected; empty if it is not known."""

    def message(self) -> str:
        name = self.function if " " in self.function else f"`{self.function}`"
        where = ""
        if self.condition:
            where = f" where `{self.condition}` {'fails' if self.holds else 'holds'}"
        return f"the gradient can be NaN{where}: it is that of {name} times zero"

    def help(self) -> str:
        if self.rewrite:
            return f"choose the operand too: `{self.rewrite}`"
        condition, operand = self.condition or "condition", self.operand or "x"
        chosen = f"{operand}, {self.safe}" if self.holds else f"{self.safe}, {operand}"
        return f"choose the operand too: `np.where({condition}, {chosen})` in place of `{operand}`"


# PSC716: gradients that are not finite at an input that was tried.


class GradientNotFinite(Diagnostic, code="PSC716", severity=Severity.ERROR):
    """A gradient of a JAX program is NaN or infinite at an input where the value is finite."""

    function: str
    inside: bool
    """Whether the gradient is taken inside of the function, rather than of it."""
    argument: str
    inputs: tuple[tuple[str, str], ...]
    """The arguments of the function, as they are written in a call."""
    value: str
    gradient: str
    operation: str
    operand: str
    rewrite: str
    """The operation, corrected; empty if no form is known."""

    def message(self) -> str:
        in_argument = f" in `{self.argument}`" if self.argument else ""
        what = f"a gradient{in_argument} inside of" if self.inside else "the gradient of"
        in_argument = "" if self.inside else in_argument
        at = ", ".join(f"{name} = {text}" for name, text in self.inputs)
        return (
            f"{what} `{self.function}`{in_argument} is {self.gradient} at {at}, "
            f"where the value is {self.value}"
        )

    def label(self) -> str:
        return f"the derivative is not finite at {self.operand}"

    def help(self) -> str:
        if self.rewrite:
            return f"write `{self.rewrite}`"
        return "choose the operands with `jnp.where` before the operation, not only its result"


# PSC702 and PSC703: computed indices and starts that leave their axis.


class IndexLeavesAxis(Diagnostic, code="PSC702"):
    """A computed index lies outside its axis, and is clamped."""

    index: str
    """The index as it is written, or empty."""
    bound: Size
    """The index that it reaches."""
    size: Size
    count: str
    """The text of the axis's size."""
    why: str
    """The sizes for which this happens, if it depends on sizes."""
    written: bool
    """Whether something is put there rather than read."""

    def message(self) -> str:
        index = f"`{self.index}`" if self.index else "this index"
        what = "written" if self.written else "read"
        return (
            f"{index} can be {self.bound} on an axis of size {self.size}{self.why}: "
            f"the nearest element is {what}"
        )

    def label(self) -> str:
        return f"reaches {self.bound}; the axis ends at {self.size - 1}"

    def help(self) -> str:
        index = self.index or "i"
        return (
            f"`{_operand(index)} % {_operand(self.count)}` wraps around, "
            f"`np.clip({index}, 0, {_less_one(self.count)})` says that it is meant"
        )


class StartLeavesAxis(Diagnostic, code="PSC703"):
    """A slice of fixed size starts where it does not fit, and is shifted."""

    start: str
    bound: Size
    size: Size
    part: Size
    count: str
    why: str

    def message(self) -> str:
        start = f"`{self.start}`" if self.start else "this start"
        return (
            f"{start} can be {self.bound}, but a part of size {self.part} of an axis of size "
            f"{self.size} starts at {self.size - self.part} at most{self.why}: it is moved"
        )

    def help(self) -> str:
        last = f"{self.count} - {_operand(str(self.part))}"
        return (
            f"pad the axis, or take fewer parts; `np.clip({self.start or 'i'}, 0, {last})` "
            "says that it is meant"
        )


def _operand(text: str) -> str:
    """A text that can stand beside an operator."""
    depth = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if not depth and character in " +-*/%":
            return f"({text})"
    return text


def _less_one(text: str) -> str:
    return str(int(text) - 1) if text.isdigit() else f"{text} - 1"
