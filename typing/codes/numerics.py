"""PSC7xx: programs whose numbers may not be what they seem."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic, Severity
from pscdsl.typing.dims import Size


class ColumnMeetsRow(Diagnostic, code="PSC714", severity=Severity.WARNING):
    """A column of n and a row of n broadcast to n times n elements that are reduced.

    `[n 1]` and `[n]` broadcast to `[n n]`: every element of the one beside every element of the
    other.  Inside of a sum or mean nobody sees that, and a loss is one of all pairs.  Give both the
    same axes.  Where all pairs are wanted, `x[:, None]` says so.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def loss(w: f32["d 1"], x: f32["n d"], y: f32["n"]) -> f32:
        return np.mean((x @ w - y) ** 2)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def loss(w: f32["d 1"], x: f32["n d"], y: f32["n"]) -> f32:
        return np.mean(((x @ w)[:, 0] - y) ** 2)
    ```
    """

    column: str
    row: str
    types: tuple[str, str]
    result: str

    def message(self) -> str:
        """What is combined."""
        names = [f"`{each}` is " if each else "" for each in (self.column, self.row)]
        column, row = (name + kind for name, kind in zip(names, self.types, strict=True))
        return f"{column} and {row}: together they make {self.result}, and all of it is reduced"

    def help(self) -> str:
        """How to say which is meant."""
        column, row = self.column or "x", self.row or "y"
        column = column if column.isidentifier() else f"({column})"
        return (
            f"`{column}[..., 0]` has the axes of `{row}`; "
            f"where all pairs are wanted, `{column}[..., 0][..., None]` says so"
        )


class RepeatedIndexCombined(Diagnostic, code="PSC715", severity=Severity.WARNING):
    """`a[i] += x` where `i` may hold an index twice: the element is changed once.

    As in NumPy, all elements are read before one of them is stored.  If an index occurs twice, only
    its last store is left: counts and sums come out too small.  `np.add.at` adds for every time.
    Indices that are known to differ (of `np.arange`, `np.argsort`, permutations, constants) are
    accepted.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32, i32


    @psc.kernel
    def totals(labels: i32["n"], x: f32["n"]) -> f32["10"]:
        s = np.zeros(10, dtype=f32)
        s[labels] += x
        return s
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32, i32


    @psc.kernel
    def totals(labels: i32["n"], x: f32["n"]) -> f32["10"]:
        s = np.zeros(10, dtype=f32)
        np.add.at(s, labels, x)
        return s
    ```
    """

    function: str
    texts: tuple[str, str, str]
    """How the array, its index, and what is combined with it are written."""

    def message(self) -> str:
        """What is combined once."""
        array, index, _ = self.texts
        return f"an index that occurs twice in `{index}` changes `{array}` once"

    def help(self) -> str:
        """What combines each time."""
        return f"`np.{self.function}.at({', '.join(self.texts)})` changes it at each occurrence"


# PSC705 to PSC712: formulas that lose accuracy or overflow where another form does not.


class LogOfSoftmax(Diagnostic, code="PSC705"):
    """The logarithm of a softmax: -inf where the probability is too small for its dtype.

    A probability below 1e-38 is 0 in f32, and its logarithm is -inf, though that of the exact
    value would be an ordinary number; its gradient is NaN.  The logarithm of the quotient, taken
    before anything underflows, is `x - max - log(sum(exp(x - max)))`.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32
    from pscdsl.stdlib.activations import softmax


    @psc.kernel
    def loss(logits: f32["n"], target: f32["n"]) -> f32:
        return -np.sum(target * np.log(softmax(logits)))
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32
    from pscdsl.stdlib.activations import log_softmax


    @psc.kernel
    def loss(logits: f32["n"], target: f32["n"]) -> f32:
        return -np.sum(target * log_softmax(logits))
    ```
    """

    def message(self) -> str:
        """What happens."""
        return "the logarithm of a softmax is -inf where the probability underflows"

    def help(self) -> str:
        """The function that does not."""
        return (
            "`log_softmax` of `pscdsl.stdlib.activations` computes it without the detour; by hand: "
            "`z = x - np.max(x)`, then `z - np.log(np.sum(np.exp(z)))`"
        )


class LogOfSumOfExponentials(Diagnostic, code="PSC706"):
    """The logarithm of a sum of exponentials, of which one can overflow.

    `exp(x)` is inf beyond 88 in f32 and beyond 11 in f16, and if all its terms are below -104 their
    sum is 0: the result is inf or -inf, though it lies near the largest `x`.  Take the largest out
    first; for two terms `np.logaddexp` does it.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def free_energy(x: f32["n"]) -> f32:
        return np.log(np.sum(np.exp(x)))
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def free_energy(x: f32["n"]) -> f32:
        top = np.max(x)
        return top + np.log(np.sum(np.exp(x - top)))
    ```
    """

    rewrite: str

    def message(self) -> str:
        """What happens."""
        return "the logarithm of a sum of exponentials is inf where an exponential overflows"

    def help(self) -> str:
        """The form that does not."""
        return self.rewrite


class SoftmaxOverflows(Diagnostic, code="PSC707"):
    """A softmax that is computed from exponentials which can overflow.

    `exp(x)` is inf beyond 88 in f32 and beyond 11 in f16; inf divided by inf is NaN.  The quotient
    stays the same when the largest `x` is subtracted first, and then no exponential is above 1.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def attention(scores: f32["n"]) -> f32["n"]:
        weights = np.exp(scores)
        return weights / np.sum(weights)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def attention(scores: f32["n"]) -> f32["n"]:
        weights = np.exp(scores - np.max(scores))
        return weights / np.sum(weights)
    ```
    """

    operand: str

    def message(self) -> str:
        """What happens."""
        return "this softmax is NaN where an exponential overflows"

    def help(self) -> str:
        """The form that does not."""
        x = self.operand or "x"
        return (
            f"`np.exp({x} - np.max({x}))`, the maximum along the axis of the sum; "
            "`softmax` of `pscdsl.stdlib.activations` does it over the last axis"
        )


class LogOfOnePlus(Diagnostic, code="PSC708"):
    """`log(1 + x)`, which is 0 for every small `x`.

    `1 + x` is rounded to a neighbour of 1, so for `x` below 1e-7 nothing is left of it in f32.
    `np.log1p(x)` has the accuracy of the dtype for every `x`.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def growth(rate: f32["n"]) -> f32["n"]:
        return np.log(1 + rate)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def growth(rate: f32["n"]) -> f32["n"]:
        return np.log1p(rate)
    ```
    """

    operand: str
    negated: bool

    def message(self) -> str:
        """What is lost."""
        sign = "-" if self.negated else "+"
        return f"`log(1 {sign} x)` loses the digits of a small `x`"

    def help(self) -> str:
        """The function that keeps them."""
        x = self.operand or "x"
        simple = x.replace("_", "").replace(".", "").isalnum()
        return f"`np.log1p({('-' + (x if simple else f'({x})')) if self.negated else x})`"


class ExpMinusOne(Diagnostic, code="PSC709"):
    """`exp(x) - 1`, which is 0 for every small `x`.

    `exp(x)` is rounded to a neighbour of 1, so for `x` below 1e-7 nothing is left of it in f32.
    `np.expm1(x)` has the accuracy of the dtype for every `x`.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def interest(rate: f32["n"]) -> f32["n"]:
        return np.exp(rate) - 1
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def interest(rate: f32["n"]) -> f32["n"]:
        return np.expm1(rate)
    ```
    """

    operand: str
    factor: str
    negated: bool

    def message(self) -> str:
        """What is lost."""
        form = "1 - exp(x)" if self.negated else "exp(x) - 1"
        return f"`{form}` loses the digits of a small `x`"

    def help(self) -> str:
        """The function that keeps them."""
        sign = "-" if self.negated else ""
        factor = f"{self.factor} * " if self.factor else ""
        return f"`{sign}{factor}np.expm1({self.operand or 'x'})`"


class LogOfSigmoid(Diagnostic, code="PSC710"):
    """The logarithm of a sigmoid: -inf where the sigmoid is too small for its dtype.

    `1 / (1 + exp(-x))` is 0 in f32 for `x` below -104, and already where the exponential is inf;
    its logarithm is near `x` there.  `-np.logaddexp(-x, 0)` is the same function, finite for
    every finite `x`.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32
    from pscdsl.stdlib.activations import sigmoid


    @psc.kernel
    def log_likelihood(x: f32["n"]) -> f32:
        return np.sum(np.log(sigmoid(x)))
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32
    from pscdsl.stdlib.activations import log_sigmoid


    @psc.kernel
    def log_likelihood(x: f32["n"]) -> f32:
        return np.sum(log_sigmoid(x))
    ```
    """

    def message(self) -> str:
        """What happens."""
        return "the logarithm of a sigmoid is -inf where the sigmoid underflows"

    def help(self) -> str:
        """The form that does not."""
        return "`log_sigmoid` of `pscdsl.stdlib.activations`, or by hand `-np.logaddexp(-x, 0)`"


class MomentsCancel(Diagnostic, code="PSC711"):
    """A variance as the difference of two large numbers.

    `mean(x**2) - mean(x)**2` has as many correct digits fewer as the mean is larger than the
    spread; with a mean of 1000 and a spread of 0.1 nothing is left in f32, and the result is
    often negative, so that its root is NaN.  Subtract the mean first.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def variance(x: f32["n"]) -> f32:
        return np.mean(x**2) - np.mean(x) ** 2
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def variance(x: f32["n"]) -> f32:
        return np.var(x)
    ```
    """

    operand: str

    def message(self) -> str:
        """What is lost."""
        return "`mean(x**2) - mean(x)**2` loses all digits, and its sign, where the mean is large"

    def help(self) -> str:
        """The form that does not."""
        x = self.operand or "x"
        return f"`np.var({x})`, or `np.mean(({x} - np.mean({x})) ** 2)`"


class ComputedFloatsCompared(Diagnostic, code="PSC712"):
    """`==` or `!=` between floats that are computed, and rounded, in different ways.

    Two formulas for one number give neighbours of it, which are equal or not by chance, and by what
    a compiler makes of them.  Compare the distance with a tolerance.

    Not reported are comparisons with a number that the dtype holds exactly (`x == 0`), of
    parameters with each other, and of an element with others of the same array, as in
    `x == np.max(x)` or `np.floor(x) == x`.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import bool_, f32


    @psc.kernel
    def balanced(credit: f32["n"], debit: f32["n"]) -> bool_:
        return np.sum(credit) == np.sum(debit)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import bool_, f32


    @psc.kernel
    def balanced(credit: f32["n"], debit: f32["n"]) -> bool_:
        return np.isclose(np.sum(credit), np.sum(debit))
    ```
    """

    left: str
    right: str
    sign: str

    def message(self) -> str:
        """What is compared."""
        return f"`{self.sign}` between floats that were rounded on different ways"

    def help(self) -> str:
        """A tolerance."""
        negated = "~" if self.sign == "!=" else ""
        return (
            f"`{negated}np.isclose({self.left or 'a'}, {self.right or 'b'})`, "
            "or a tolerance that fits the numbers"
        )


class EpsilonIsLost(Diagnostic, code="PSC713"):
    """A bound meant to stay away from 0 or 1 that is 0 or 1 in its dtype.

    f32 has no number between 0.99999994 and 1, so `1 - 1e-10` is 1 there; f16 has none between
    0 and 6e-8.  A value cut to such a bound is exactly 0 or 1 after all, and its logarithm is
    infinite.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def log_odds(p: f32["n"]) -> f32["n"]:
        p = np.clip(p, 1e-10, 1 - 1e-10)
        return np.log(p) - np.log1p(-p)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def log_odds(p: f32["n"]) -> f32["n"]:
        p = np.clip(p, 1e-7, 1 - 1e-7)
        return np.log(p) - np.log1p(-p)
    ```
    """

    value: str
    rounded: str
    dtype: str
    smallest: str

    def message(self) -> str:
        """What it is."""
        return f"the bound {self.value} is exactly {self.rounded} in {self.dtype}"

    def help(self) -> str:
        """The smallest that counts."""
        return f"take a distance of at least {self.smallest}, or a wider dtype"


# PSC704: values that are numbers where their gradients are not.


class NanInGradient(Diagnostic, code="PSC704"):
    """`where` hides a NaN or infinity from the value, but not from the gradient.

    `np.where` computes both operands everywhere.  The value of the one that is not chosen is
    dropped; its gradient is multiplied by zero, and zero times infinity is NaN.  So the gradient is
    NaN where the function has no finite derivative, though it is not chosen there.  Choose the
    operand of the function first, then the result.

    Reported where the condition compares what the function is applied to.  It matters only if the
    result is differentiated.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def entropy(p: f32["n"]) -> f32:
        return -np.sum(np.where(p > 0, p * np.log(p), 0))
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def entropy(p: f32["n"]) -> f32:
        return -np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0))
    ```
    """

    function: str
    condition: str
    holds: bool
    operand: str
    safe: str
    rewrite: str
    """The whole expression, corrected; empty if it is not known."""

    def message(self) -> str:
        """Where it is NaN."""
        name = self.function if " " in self.function else f"`{self.function}`"
        where = ""
        if self.condition:
            where = f" where `{self.condition}` {'fails' if self.holds else 'holds'}"
        return f"the gradient can be NaN{where}: it is that of {name} times zero"

    def help(self) -> str:
        """The same with two choices."""
        if self.rewrite:
            return f"choose the operand too: `{self.rewrite}`"
        condition, operand = self.condition or "condition", self.operand or "x"
        chosen = f"{operand}, {self.safe}" if self.holds else f"{self.safe}, {operand}"
        return f"choose the operand too: `np.where({condition}, {chosen})` in place of `{operand}`"


# PSC702 and PSC703: computed indices and starts that leave their axis.


class IndexLeavesAxis(Diagnostic, code="PSC702"):
    """A computed index leaves its axis, and is clamped.

    NumPy raises an error for such an index; a compiled program cannot.  It takes the element at
    the nearest end instead, so that nothing seems to be wrong.  Negative indices down to `-n`
    count from the end, as in NumPy, and are not meant here.

    Reported is what is known to happen: that of a loop's counter plus 1 in its last step, for
    instance, or of an index cut to a range that is too long.  An index of which nothing is known,
    a parameter for instance, is not reported, nor is a read whose value `np.where` throws away by
    a condition on the index, as in `np.where(i < n - 1, x[i + 1], 0)`.

    `i % n` wraps around, and `np.clip(i, 0, n - 1)` says that the nearest end is meant; so does
    `np.take` with `mode="wrap"` and `mode="clip"`.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def differences(x: f32["n"]) -> f32["n"]:
        return psc.map(lambda i: x[i + 1] - x[i], np.arange(x.shape[0]))
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def differences(x: f32["n"]) -> f32["n"]:
        n = x.shape[0]
        return psc.map(lambda i: x[np.clip(i + 1, 0, n - 1)] - x[i], np.arange(n))
    ```
    """

    index: str
    """The index as it is written, or empty."""
    bound: Size
    """What it reaches."""
    size: Size
    count: str
    """How the size of the axis can be written."""
    why: str
    """Where it depends on sizes: for which."""
    written: bool
    """Whether something is put there rather than read."""

    def message(self) -> str:
        """What it reaches, and what happens."""
        index = f"`{self.index}`" if self.index else "this index"
        what = "written" if self.written else "read"
        return (
            f"{index} can be {self.bound} on an axis of size {self.size}{self.why}: "
            f"the nearest element is {what}"
        )

    def label(self) -> str:
        """The range."""
        return f"reaches {self.bound}; the axis ends at {self.size - 1}"

    def help(self) -> str:
        """The two rewrites."""
        index = self.index or "i"
        return (
            f"`{_operand(index)} % {_operand(self.count)}` wraps around, "
            f"`np.clip({index}, 0, {_less_one(self.count)})` says that it is meant"
        )


class StartLeavesAxis(Diagnostic, code="PSC703"):
    """A slice of fixed size starts where it does not fit, and is moved.

    `psc.dynamic_slice` and `psc.dynamic_update` move the whole part, so other elements are read
    or written than the start says.  Reported is what is known to happen, in the last steps of a
    loop for instance.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def windows(x: f32["n"]) -> f32["n 3"]:
        assert x.shape[0] >= 3
        return psc.map(lambda i: psc.dynamic_slice(x, (i,), (3,)), np.arange(x.shape[0]))
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def windows(x: f32["n"]) -> f32["n-2 3"]:
        n = x.shape[0]
        assert n >= 3
        return psc.map(lambda i: psc.dynamic_slice(x, (i,), (3,)), np.arange(n - 2))
    ```
    """

    start: str
    bound: Size
    size: Size
    part: Size
    count: str
    why: str

    def message(self) -> str:
        """Where it starts, and what happens."""
        start = f"`{self.start}`" if self.start else "this start"
        return (
            f"{start} can be {self.bound}, but a part of size {self.part} of an axis of size "
            f"{self.size} starts at {self.size - self.part} at most{self.why}: it is moved"
        )

    def help(self) -> str:
        """How to say that it is meant."""
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
