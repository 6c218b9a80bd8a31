"""Speed forms: ways to compute an operation that were measured to be faster than XLA's own.

A form has a name, a claim of what it gains, a benchmark of that name, and a switch to compare:
`PSCDSL_WITHOUT=sorting_network,small_products` in the environment.  It decorates what it consists
of: rewrites of the typed program, translations to StableHLO, passes over blocks, and compile
options.  A form is used where a target's table has these; the table is the registration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pscdsl._src.xla.runtime.boot import WITHOUT, without

if TYPE_CHECKING:
    from pscdsl._src.ir.primitive import Effort, H, Types
    from pscdsl._src.ir.program import Block, Equation

VARIABLE: Final = WITHOUT
"""The environment variable that names the forms that are not to be used."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where in a program an equation or a block stands, as far as rewrites may ask."""

    in_loop: bool
    """Whether it is computed in every step of a loop."""
    nested: bool
    """Whether it is computed in a loop or a branch: XLA leaves some operations there slow."""
    effort_of: Callable[[Equation, Sequence[float]], Effort | None]
    """What an equation computes for each element, of operands of at most these sizes.

    None of an equation that is not computed element by element."""


RewriteRule: TypeAlias = "Callable[[Any, Types, Types, Context], Block | None]"
"""Of a primitive and the types of its operands and results, a program of other primitives."""
TranslationRule: TypeAlias = "Callable[[Any, Any, Sequence[H], Types, Types], Sequence[H] | None]"
"""Of a primitive, the `hlo`, operands and types, the results; None to leave it to the next."""
PassRule: TypeAlias = "Callable[[Block, Context], Block]"


@dataclass(frozen=True, slots=True)
class Form:
    """A way to compute an operation."""

    name: str
    claim: str
    """What is done instead of what, where, and what it was measured to gain."""

    def rewrite(self, rule: RewriteRule) -> Rewrite:
        """Declare a rewrite of the typed program as a part of this form."""
        return Rewrite(rule, self)

    def translation(self, rule: TranslationRule) -> Translation:
        """Declare a translation to StableHLO as a part of this form."""
        return Translation(rule, self)

    def block_pass(self, rule: PassRule) -> Pass:
        """Declare a pass over blocks as a part of this form."""
        return Pass(rule, self)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What replaces an equation by a program, where it applies; sizes are numbers."""

    rule: RewriteRule
    form: Form | None = None


@dataclass(frozen=True, slots=True)
class Translation:
    """How a primitive is emitted on a target, where StableHLO has what no primitive says.

    One without a form is no matter of speed, and cannot be switched off.
    """

    rule: TranslationRule
    form: Form | None = None


@dataclass(frozen=True, slots=True)
class Pass:
    """What replaces a block by another one."""

    rule: PassRule
    form: Form


@lru_cache(maxsize=1)
def forms() -> Mapping[str, Form]:
    """All forms by name, as the tables of the targets have them."""
    from pscdsl._src.targets.cpu.table import CPU  # their tables hold forms
    from pscdsl._src.targets.pipeline import PORTABLE

    found: dict[str, Form] = {}
    for form in (*CPU.forms(), *PORTABLE.forms()):
        if found.setdefault(form.name, form) is not form:
            raise ValueError(f"there are two forms called {form.name}")
    return found


def switched_off() -> frozenset[str]:
    """The names of the forms that the environment switches off; a ValueError if one is unknown."""
    names = without()
    if unknown := sorted(names and names - forms().keys()):
        known = ", ".join(sorted(forms()))
        raise ValueError(f"{VARIABLE} names {', '.join(unknown)}; there are: {known}")
    return names
