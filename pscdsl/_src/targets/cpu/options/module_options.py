"""XLA's options for a module: each of these modules has one, and says which programs it is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pscdsl._src.targets.cpu.options import narrow, plain_loops, wide
from pscdsl._src.xla import exactness
from pscdsl._src.xla.compilation.compile import compile_module
from pscdsl._src.xla.runtime.executable import Executable, known
from pscdsl._src.xla.runtime.settings import LOOP_BYTES

FORMS: Final = (narrow.NARROW_VECTORS, wide.WIDE_VECTORS, plain_loops.PLAIN_LOOPS)
"""The forms that are options."""


def options(module: Any) -> Mapping[str, Any]:
    """The options with which a module is compiled at first, which are a part of its key.

    Of those that the parts below want, these are the ones that XLA knows.
    """
    return known(
        {
            **exactness.options(module),
            **narrow.options(module),
            **wide.options(module),
            **plain_loops.options(module),
        }
    )


def compiled(module: Any, loop_bytes: int | None = LOOP_BYTES) -> Executable:
    """A module compiled with its options, but not by the older emitter if there are more loops."""
    chosen = options(module)
    found = compile_module(module, loop_bytes=loop_bytes, options=chosen)
    if plain_loops.OPTION not in chosen or found.text().count(" fusion(") < 2:
        return found
    others = {name: value for name, value in chosen.items() if name != plain_loops.OPTION}
    return compile_module(module, loop_bytes=loop_bytes, options=others)
