"""PSC5xx: derivatives that their author gives."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


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
