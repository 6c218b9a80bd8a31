"""The check of one JAX file: its random keys, and purity of what its transformations run.

What it uses of other files of the project is followed, and read once for all files.
"""

from __future__ import annotations

from dataclasses import dataclass

from pscdsl._src.dialects.jax.keys import Keys
from pscdsl._src.dialects.jax.modules import Modules
from pscdsl._src.dialects.jax.names import functions_using_jax
from pscdsl._src.dialects.jax.purity import Purity
from pscdsl._src.dialects.jax.unknown import UnknownCall
from pscdsl._src.frontend.modules.jax_programs import JaxUse
from pscdsl._src.frontend.modules.scope import StaticModule
from pscdsl._src.frontend.text.source import FunctionStatement
from pscdsl.typing.diagnostics import Diagnostic


@dataclass(frozen=True)
class JaxFindings:
    """The findings in a file, all of them proven."""

    diagnostics: tuple[Diagnostic, ...] = ()
    functions: tuple[FunctionStatement, ...] = ()
    """The functions and methods that use jax."""
    unknown: tuple[UnknownCall, ...] = ()
    """The calls that cannot be followed: given a key, or while a function is traced."""


def check_jax(module: StaticModule) -> JaxFindings:
    """Return the findings in a file, if it is a JAX program."""
    if module.jax_use is JaxUse.NONE:
        return JaxFindings()
    files = module.project.files
    modules = files.analysis(Modules)
    program = modules.program(module)
    found, unknown = files.analysis(Keys).check(program)
    purity = Purity(program)
    purity.check()
    modules.register(program, module)
    return JaxFindings(
        (*found, *purity.found.values()),
        tuple(functions_using_jax(program)),
        (*unknown, *purity.unknown_calls()),
    )
