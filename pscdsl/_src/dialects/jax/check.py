"""The check of one JAX file: its random keys, and purity of what its transformations run."""

from __future__ import annotations

from dataclasses import dataclass

from pscdsl._src.dialects.jax.keys import Keys
from pscdsl._src.dialects.jax.names import functions_using_jax, read_program
from pscdsl._src.dialects.jax.purity import Purity
from pscdsl._src.frontend.modules.jax_programs import is_of_jax
from pscdsl._src.frontend.text.source import FunctionStatement, Source
from pscdsl.typing.diagnostics import Diagnostic


@dataclass(frozen=True)
class JaxFindings:
    """The findings in a file, all of them proven."""

    diagnostics: tuple[Diagnostic, ...] = ()
    functions: tuple[FunctionStatement, ...] = ()
    """The functions and methods that use jax."""
    unseen: int = 0
    """The number of calls that are given a key and cannot be followed."""


def check_jax(source: Source, dialect: str) -> JaxFindings:
    """Return the findings in a file, if it is a JAX program."""
    if dialect == "psc" or not (dialect == "jax" or is_of_jax(source)):
        return JaxFindings()
    program = read_program(source)
    keys, purity = Keys(program), Purity(program)
    keys.check()
    purity.check()
    return JaxFindings(
        (*keys.found.values(), *purity.found.values()),
        tuple(functions_using_jax(program)),
        len(keys.unseen),
    )
