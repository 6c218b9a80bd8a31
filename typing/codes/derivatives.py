"""PSC5xx: derivatives and batches, the rules for them, and rules of users."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic

# PSC5xx: what can be differentiated and batched, and by which rules.


class UnboundedReverse(Diagnostic, code="PSC512"):
    """Reverse mode is applied to a loop with an unknown number of steps."""

    asked: str = ""

    def message(self) -> str:
        by = f", which `{self.asked}` asks for," if self.asked else ""
        return f"reverse mode{by} goes through a `while_loop` without a bound"

    def help(self) -> str | None:
        return "say how many steps there are at most: `psc.while_loop(…, max_steps=1000)`"


class NotAScalar(Diagnostic, code="PSC510"):
    """`psc.grad` is applied to a function whose result is not one real number."""

    transformation: str
    function: str
    found: str

    def message(self) -> str:
        return (
            f"`{self.transformation}` needs a function with one real number as its result, "
            f"but `{self.function}` returns {self.found}"
        )

    def help(self) -> str | None:
        return "reduce it (`np.sum(…)`), or use `psc.jacrev` for all derivatives"


class NoTangent(Diagnostic, code="PSC511"):
    """A derivative is taken with respect to an integer, a bool or a random key."""

    transformation: str
    argument: str
    type: str

    def message(self) -> str:
        return (
            f"`{self.transformation}` cannot differentiate {self.argument}: "
            f"it is {self.type}, which has no tangent"
        )

    def help(self) -> str | None:
        return "only floats and complex numbers do: move it to another argument, or use `argnums`"


class TangentMismatch(Diagnostic, code="PSC513"):
    """Tangents or cotangents do not fit their primals or results."""

    transformation: str
    what: str
    given: str
    wanted: str
    why: str = ""

    def message(self) -> str:
        return f"{self.what} given to `{self.transformation}` is {self.given}, not {self.wanted}"

    def label(self) -> str:
        return self.why


class BadArgnums(Diagnostic, code="PSC514"):
    """`argnums` names a positional argument that does not exist."""

    transformation: str
    argnums: str
    count: int
    why: str = ""

    def message(self) -> str:
        if self.why:
            return f"`{self.transformation}` has argnums={self.argnums}: {self.why}"
        plural = "" if self.count == 1 else "s"
        return (
            f"`{self.transformation}` has argnums={self.argnums}, "
            f"but is called with {self.count} positional argument{plural}"
        )

    def help(self) -> str | None:
        return "arguments count from 0; pass those that are differentiated by position"


class RuleMismatch(Diagnostic, code="PSC519"):
    """A rule that was registered for a primitive returns the wrong types."""

    primitive: str
    rule: str
    what: str
    given: str
    wanted: str
    why: str = ""

    def message(self) -> str:
        return (
            f"the rule `{self.primitive}.{self.rule}` gives {self.given} as {self.what}, "
            f"not {self.wanted}"
        )

    def label(self) -> str:
        return self.why


class NotLinear(Diagnostic, code="PSC522"):
    """A function that is to be transposed is not linear."""

    primitive: str

    def message(self) -> str:
        return f"`{self.primitive}` is not linear in what it is run backwards from"

    def help(self) -> str | None:
        return (
            "a derivative, and a function given to `psc.linear_transpose`, may add tangents and "
            "multiply them with what depends on none"
        )


# PSC5xx: derivatives that their author gives.


class OwnRuleMismatch(Diagnostic, code="PSC517"):
    """A rule of `psc.custom_jvp` or `psc.custom_vjp` does not fit its function."""

    function: str
    what: str
    given: str
    wanted: str
    why: str = ""

    def message(self) -> str:
        return f"the rule of `{self.function}` gives {self.given} as {self.what}, not {self.wanted}"

    def label(self) -> str:
        return self.why


class RuleMissing(Diagnostic, code="PSC518"):
    """A function is declared to have its own derivative, but has no rule."""

    function: str
    kind: str
    register: str

    def message(self) -> str:
        return f"`{self.function}` is a `psc.{self.kind}`, but no rule is given for it"

    def help(self) -> str | None:
        return (
            f"decorate the rule with `@{self.function}.{self.register}`"
            if (self.register == "defjvp")
            else f"call `{self.function}.{self.register}(forward, backward)`"
        )


class CapturedByRule(Diagnostic, code="PSC521"):
    """A function with its own derivative captures a value that is differentiated."""

    function: str

    def message(self) -> str:
        return (
            f"`{self.function}` has a derivative of its own, and is differentiated in a value "
            f"that is not among its arguments"
        )

    def help(self) -> str | None:
        return "make that value an argument, and let the rule say how the result changes with it"


class NoForwardMode(Diagnostic, code="PSC520"):
    """Forward mode is applied to a function that has rules for reverse mode only."""

    function: str
    besides: str = ""

    def message(self) -> str:
        return (
            f"forward mode goes through `{self.function}`, which has only a rule for reverse mode"
        )

    def help(self) -> str | None:
        both = "give it a rule by `psc.custom_jvp`, which serves both modes"
        return f"{both}; {self.besides}" if self.besides else both
