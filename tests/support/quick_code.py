"""Code that XLA generates quickly, for tests with the mark `quick_code`.

XLA takes most of the time of the tests, and most of that goes into code that is fast.  Where a
test asks whether a program *means* what it should (a derivative, an algorithm of the library), code
by XLA's plain emitters, which LLVM does not optimise, does as well, for a fifth of the time.

Code as users get it is in the tests of forms, special functions, random programs and rounding, the
documents, the examples, and whatever is not marked.  `quick_code(but=4)` leaves it in one of four
tests, by the digest of its name, and with `SHARE=1` in all: so are
the tests of NumPy's functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from pscdsl._src.xla.device import Device

QUICK: Final[Mapping[str, Any]] = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
}
"""The debug options, in XLA's names."""


def generate_quickly(patch: pytest.MonkeyPatch) -> None:
    """Have modules compiled with these options until the patch is undone."""
    from pscdsl._src.xla.runtime.executable import compile_options

    def quick(loop_bytes: int | None, options: Mapping[str, Any], device: Device) -> Any:
        return compile_options(loop_bytes, {**QUICK, **options}, device)

    patch.setattr("pscdsl._src.xla.compilation.compile_options", quick)
