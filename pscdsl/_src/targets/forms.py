"""Speed forms: ways to compute an operation that were measured to be faster than XLA's own.

A form has a name, a claim of its gain, a benchmark of that name, and a switch to compare:
`PSCDSL_WITHOUT=sorting,small_products` in the environment. It decorates its parts: rewrites
of the typed program, translations to StableHLO, passes over blocks, and compile options. A target
uses a form if its table lists these parts; the table is the registration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pscdsl._src.xla.runtime.settings import WITHOUT, without

if TYPE_CHECKING:
    from pscdsl._src.ir.primitive import H, Types
    from pscdsl._src.ir.program import Atom, Block

VARIABLE: Final = WITHOUT
"""The environment variable that names the forms that are not to be used."""


@dataclass(frozen=True, slots=True)
class Context:
    """The context of an equation or a block that rewrites may consult."""

    in_loop: bool
    """Whether every step of a loop computes it."""
    nested: bool
    """Whether a loop or a branch computes it: XLA leaves some operations slow there."""
    operands: tuple[Atom, ...] = ()
    """The operands of the equation, some of which may be known numbers."""


RewriteRule: TypeAlias = "Callable[[Any, Types, Types, Context], Block | None]"
"""Given a primitive and its operand and result types, return a block of other primitives, or
None."""
TranslationRule: TypeAlias = "Callable[[Any, Any, Sequence[H], Types, Types], Sequence[H] | None]"
"""Given a primitive, the `hlo`, operands and types, return the results; None leaves it to the next
rule."""
PassRule: TypeAlias = "Callable[[Block, Context], Block]"


@dataclass(frozen=True, slots=True)
class Form:
    """A way to compute an operation."""

    name: str
    claim: str
    """A sentence about the replacement, where it applies, and its measured gain."""

    def rewrite(self, rule: RewriteRule) -> Rewrite:
        """Declare a rewrite of the typed program as a part of this form."""
        return Rewrite(rule, self)

    def translation(self, rule: TranslationRule) -> FormTranslation:
        """Declare a translation to StableHLO as a part of this form."""
        return FormTranslation(rule, self)

    def block_pass(self, rule: PassRule) -> Pass:
        """Declare a pass over blocks as a part of this form."""
        return Pass(rule, self)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rule that replaces an equation by a program where it applies; sizes are numbers."""

    rule: RewriteRule
    form: Form | None = None


@dataclass(frozen=True, slots=True)
class FormTranslation:
    """A rule that emits a primitive on a target in its own way.

    A translation without a form does not concern speed, and cannot be switched off.
    """

    rule: TranslationRule
    form: Form | None = None


@dataclass(frozen=True, slots=True)
class Pass:
    """A rule that replaces a block by another one."""

    rule: PassRule
    form: Form


@lru_cache(maxsize=1)
def forms() -> Mapping[str, Form]:
    """Return all forms by name, as the tables of the targets have them."""
    from pscdsl._src.targets.cpu.table import CPU  # their tables hold forms
    from pscdsl._src.targets.pipeline import PORTABLE

    found: dict[str, Form] = {}
    for form in (*CPU.forms(), *PORTABLE.forms()):
        if found.setdefault(form.name, form) is not form:
            raise ValueError(f"there are two forms called {form.name}")
    return found


def switched_off() -> frozenset[str]:
    """Return the forms that the environment switches off; raise ValueError if one is unknown."""
    names = without()
    if unknown := sorted(names and names - forms().keys()):
        known = ", ".join(sorted(forms()))
        raise ValueError(f"{VARIABLE} names {', '.join(unknown)}; there are: {known}")
    return names
