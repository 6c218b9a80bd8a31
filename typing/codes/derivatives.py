"""PSC5xx: what can be differentiated and batched, by which rules, and rules of users."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic

# PSC5xx: what can be differentiated and batched, and by which rules.


class UnboundedReverse(Diagnostic, code="PSC512"):
    """Reverse mode through a loop with an unknown number of steps.

    To run a loop backwards, what each step did is saved on the way, and the space for that is
    allotted beforehand.  `max_steps=` says how many there are at most; time is spent only on the
    steps that are taken.  Forward mode (`psc.jvp`, `psc.jacfwd`) needs no bound.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def root(a: f32) -> f32:
        return psc.while_loop(lambda x: np.abs(x * x - a) > 1e-6, lambda x: (x + a / x) / 2, a)


    @psc.kernel
    def slope(a: f32) -> f32:
        return psc.grad(root)(a)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def root(a: f32) -> f32:
        return psc.while_loop(
            lambda x: np.abs(x * x - a) > 1e-6, lambda x: (x + a / x) / 2, a, max_steps=100
        )


    @psc.kernel
    def slope(a: f32) -> f32:
        return psc.grad(root)(a)
    ```
    """

    asked: str = ""

    def message(self) -> str:
        """What has no bound."""
        by = f", which `{self.asked}` asks for," if self.asked else ""
        return f"reverse mode{by} goes through a `while_loop` without a bound"

    def help(self) -> str | None:
        """How to give one."""
        return "say how many steps there are at most: `psc.while_loop(…, max_steps=1000)`"


class NotAScalar(Diagnostic, code="PSC510"):
    """`psc.grad` of a function whose result is not one real number.

    A gradient says how one number changes with each element of the arguments.  For an array of
    results, `psc.jacrev` or `psc.jacfwd` give all derivatives; `psc.vjp` those in one direction.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    def squares(x: f32["n"]) -> f32["n"]:
        return x * x


    @psc.kernel
    def slope(x: f32["n"]) -> f32["n"]:
        return psc.grad(squares)(x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    def squares(x: f32["n"]) -> f32:
        return np.sum(x * x)


    @psc.kernel
    def slope(x: f32["n"]) -> f32["n"]:
        return psc.grad(squares)(x)
    ```
    """

    transformation: str
    function: str
    found: str

    def message(self) -> str:
        """What it returns."""
        return (
            f"`{self.transformation}` needs a function with one real number as its result, "
            f"but `{self.function}` returns {self.found}"
        )

    def help(self) -> str | None:
        """What to do instead."""
        return "reduce it (`np.sum(…)`), or use `psc.jacrev` for all derivatives"


class NoTangent(Diagnostic, code="PSC511"):
    """A derivative with respect to an integer, a bool or a random key.

    Integer and key leaves have no tangents.  Keep them in another argument than the one that is
    differentiated, or name the others by `argnums`.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32, i32


    def loss(x: f32["n"], i: i32) -> f32:
        return np.sum(x) * i.astype(np.float32)


    @psc.kernel
    def slope(x: f32["n"], i: i32) -> f32["n"]:
        dx, di = psc.grad(loss, argnums=(0, 1))(x, i)
        return dx
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32, i32


    def loss(x: f32["n"], i: i32) -> f32:
        return np.sum(x) * i.astype(np.float32)


    @psc.kernel
    def slope(x: f32["n"], i: i32) -> f32["n"]:
        return psc.grad(loss)(x, i)
    ```
    """

    transformation: str
    argument: str
    type: str

    def message(self) -> str:
        """Which leaf."""
        return (
            f"`{self.transformation}` cannot differentiate {self.argument}: "
            f"it is {self.type}, which has no tangent"
        )

    def help(self) -> str | None:
        """What has one."""
        return "only floats and complex numbers do: move it to another argument, or use `argnums`"


class TangentMismatch(Diagnostic, code="PSC513"):
    """Tangents or cotangents do not fit their primals or results.

    A tangent has the structure, shapes and dtypes of its primal, a cotangent those of the result;
    where a leaf has no tangent (an integer, a bool, a key), there is `None`.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def along(x: f32["n"], t: f32["m"]) -> f32["n"]:
        _, dy = psc.jvp(np.sin, (x,), (t,))
        return dy
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def along(x: f32["n"], t: f32["n"]) -> f32["n"]:
        _, dy = psc.jvp(np.sin, (x,), (t,))
        return dy
    ```
    """

    transformation: str
    what: str
    given: str
    wanted: str
    why: str = ""

    def message(self) -> str:
        """Both types."""
        return f"{self.what} given to `{self.transformation}` is {self.given}, not {self.wanted}"

    def label(self) -> str:
        """What differs."""
        return self.why


class BadArgnums(Diagnostic, code="PSC514"):
    """`argnums` names a positional argument that is not there.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def slope(x: f32["n"]) -> f32["n"]:
        return psc.grad(np.sum, argnums=1)(x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def slope(x: f32["n"]) -> f32["n"]:
        return psc.grad(np.sum, argnums=0)(x)
    ```
    """

    transformation: str
    argnums: str
    count: int
    why: str = ""

    def message(self) -> str:
        """What is given and what there is."""
        if self.why:
            return f"`{self.transformation}` has argnums={self.argnums}: {self.why}"
        plural = "" if self.count == 1 else "s"
        return (
            f"`{self.transformation}` has argnums={self.argnums}, "
            f"but is called with {self.count} positional argument{plural}"
        )

    def help(self) -> str | None:
        """How they count."""
        return "arguments count from 0; pass those that are differentiated by position"


class RuleMismatch(Diagnostic, code="PSC519"):
    """A rule that was registered for a primitive returns the wrong types.

    A derivative (`jvp`) gives a tangent for each result, of the result's type, a `transpose` a
    cotangent for each operand, of the operand's type, a `batch` the results, each with the batch
    as its first axis if it is batched.  None stands for a zero tangent or cotangent.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.primitive
    def cube(x: f32["n"]) -> f32["n"]:
        return x * x * x


    @cube.jvp
    def _(outputs, primals, tangents):
        (x,), (dx,) = primals, tangents
        return np.sum(3 * x * x * dx)


    @psc.kernel
    def slope(x: f32["n"]) -> f32["n"]:
        return psc.grad(lambda x: np.sum(cube(x)))(x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.primitive
    def cube(x: f32["n"]) -> f32["n"]:
        return x * x * x


    @cube.jvp
    def _(outputs, primals, tangents):
        (x,), (dx,) = primals, tangents
        return 3 * x * x * dx


    @psc.kernel
    def slope(x: f32["n"]) -> f32["n"]:
        return psc.grad(lambda x: np.sum(cube(x)))(x)
    ```
    """

    primitive: str
    rule: str
    what: str
    given: str
    wanted: str
    why: str = ""

    def message(self) -> str:
        """Both types."""
        return (
            f"the rule `{self.primitive}.{self.rule}` gives {self.given} as {self.what}, "
            f"not {self.wanted}"
        )

    def label(self) -> str:
        """What differs."""
        return self.why


class NotLinear(Diagnostic, code="PSC522"):
    """A function that is transposed is not linear.

    A derivative maps tangents to tangents, and twice the tangent gives twice the result.  Rules
    for derivatives, and functions given to `psc.linear_transpose`, have to keep to that: what
    they multiply a tangent with, or apply a function to, depends on no tangent.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.custom_jvp
    def square(x: f32) -> f32:
        return x * x


    @square.defjvp
    def square_jvp(primals, tangents):
        return square(*primals), tangents[0] * tangents[0]


    @psc.kernel
    def slope(x: f32) -> f32:
        return psc.grad(square)(x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.custom_jvp
    def square(x: f32) -> f32:
        return x * x


    @square.defjvp
    def square_jvp(primals, tangents):
        return square(*primals), 2 * primals[0] * tangents[0]


    @psc.kernel
    def slope(x: f32) -> f32:
        return psc.grad(square)(x)
    ```
    """

    primitive: str

    def message(self) -> str:
        """Which function."""
        return f"`{self.primitive}` is not linear in what it is run backwards from"

    def help(self) -> str | None:
        """What a rule may do."""
        return (
            "a derivative, and a function given to `psc.linear_transpose`, may add tangents and "
            "multiply them with what depends on none"
        )


# PSC5xx: derivatives that their author gives.


class OwnRuleMismatch(Diagnostic, code="PSC517"):
    """A rule of `psc.custom_jvp` or `psc.custom_vjp` does not fit its function.

    A jvp rule takes `(primals, tangents)` and returns the result and its tangent, which have the
    types of the function's result.  The first rule of a vjp returns the result and what is saved;
    the second takes what was saved and the cotangent of the result, and returns a tuple with the
    cotangent of each argument, which have the arguments' types (`None` for integers and keys).

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.custom_jvp
    def total(x: f32["n"]) -> f32:
        return np.sum(x)


    @total.defjvp
    def total_jvp(primals, tangents):
        (x,), (dx,) = primals, tangents
        return total(x), dx


    @psc.kernel
    def slope(x: f32["n"]) -> f32["n"]:
        return psc.grad(total)(x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.custom_jvp
    def total(x: f32["n"]) -> f32:
        return np.sum(x)


    @total.defjvp
    def total_jvp(primals, tangents):
        (x,), (dx,) = primals, tangents
        return total(x), np.sum(dx)


    @psc.kernel
    def slope(x: f32["n"]) -> f32["n"]:
        return psc.grad(total)(x)
    ```
    """

    function: str
    what: str
    given: str
    wanted: str
    why: str = ""

    def message(self) -> str:
        """What the rule gives, and what the function needs."""
        return f"the rule of `{self.function}` gives {self.given} as {self.what}, not {self.wanted}"

    def label(self) -> str:
        """What differs."""
        return self.why


class RuleMissing(Diagnostic, code="PSC518"):
    """A function is declared to have a derivative of its own, but has no rule.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.custom_jvp
    def total(x: f32["n"]) -> f32:
        return np.sum(x)


    @psc.kernel
    def slope(x: f32["n"]) -> f32["n"]:
        return psc.grad(total)(x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.custom_jvp
    def total(x: f32["n"]) -> f32:
        return np.sum(x)


    @total.defjvp
    def total_jvp(primals, tangents):
        return total(*primals), np.sum(tangents[0])


    @psc.kernel
    def slope(x: f32["n"]) -> f32["n"]:
        return psc.grad(total)(x)
    ```
    """

    function: str
    kind: str
    register: str

    def message(self) -> str:
        """Which function."""
        return f"`{self.function}` is a `psc.{self.kind}`, but no rule is given for it"

    def help(self) -> str | None:
        """How to give one."""
        return (
            f"decorate the rule with `@{self.function}.{self.register}`"
            if (self.register == "defjvp")
            else f"call `{self.function}.{self.register}(forward, backward)`"
        )


class CapturedByRule(Diagnostic, code="PSC521"):
    """A function with a derivative of its own captures a value that is differentiated.

    Its rule says how the result changes with the arguments, and nothing of what else it uses:
    differentiated in that, it would silently be taken for constant.  Make it an argument.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    def scaled(s: f32, x: f32["n"]) -> f32:
        @psc.custom_jvp
        def times(x):
            return np.sum(s * x)

        @times.defjvp
        def times_jvp(primals, tangents):
            return times(*primals), np.sum(s * tangents[0])

        return times(x)


    @psc.kernel
    def slope(s: f32, x: f32["n"]) -> f32:
        return psc.grad(scaled)(s, x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    def scaled(s: f32, x: f32["n"]) -> f32:
        @psc.custom_jvp
        def times(s, x):
            return np.sum(s * x)

        @times.defjvp
        def times_jvp(primals, tangents):
            (s, x), (ds, dx) = primals, tangents
            return times(s, x), np.sum(s * dx) + np.sum(ds * x)

        return times(s, x)


    @psc.kernel
    def slope(s: f32, x: f32["n"]) -> f32:
        return psc.grad(scaled)(s, x)
    ```
    """

    function: str

    def message(self) -> str:
        """Which function."""
        return (
            f"`{self.function}` has a derivative of its own, and is differentiated in a value "
            f"that is not among its arguments"
        )

    def help(self) -> str | None:
        """What to do."""
        return "make that value an argument, and let the rule say how the result changes with it"


class NoForwardMode(Diagnostic, code="PSC520"):
    """Forward mode through a function that has rules for reverse mode only.

    `psc.custom_vjp` gives cotangents.  `psc.jvp`, `psc.jacfwd` and the outer half of
    `psc.hessian` need tangents: give the function a rule by `psc.custom_jvp`, which serves both.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.custom_vjp
    def total(x: f32["n"]) -> f32:
        return np.sum(x)


    def forward(x):
        return total(x), x


    def backward(x, ct):
        return (ct * np.ones(x.shape),)


    total.defvjp(forward, backward)


    @psc.kernel
    def along(x: f32["n"], t: f32["n"]) -> f32:
        return psc.jvp(total, (x,), (t,))[1]
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.custom_jvp
    def total(x: f32["n"]) -> f32:
        return np.sum(x)


    @total.defjvp
    def total_jvp(primals, tangents):
        return total(*primals), np.sum(tangents[0])


    @psc.kernel
    def along(x: f32["n"], t: f32["n"]) -> f32:
        return psc.jvp(total, (x,), (t,))[1]
    ```
    """

    function: str
    besides: str = ""

    def message(self) -> str:
        """Which function."""
        return (
            f"forward mode goes through `{self.function}`, which has only a rule for reverse mode"
        )

    def help(self) -> str | None:
        """What serves both."""
        both = "give it a rule by `psc.custom_jvp`, which serves both modes"
        return f"{both}; {self.besides}" if self.besides else both
