"""Test modules for which XLA generates code quickly: what they are about is not that code.

XLA takes most of the time of the tests, and most of that goes into code that is fast.  Where a
test asks whether a program *means* what it should (a derivative, an algorithm of the library), code
by XLA's plain emitters, which LLVM does not optimise, does as well, for a fifth of the time.

Code as users get it is in the tests of NumPy's functions, forms, special functions, random
programs and rounding, the documents, the examples, and whatever is not listed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

QUICK: Final[Mapping[str, Any]] = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
}
"""The debug options, in XLA's names."""

MODULES: Final = frozenset(
    f"test_{name}"
    for name in (
        "associative check_grads custom custom_derivatives custom_rules derivatives_edges "
        "derivatives_fuzz derivatives_structure derivatives_subjects elementwise_derivatives "
        "linalg_derivatives linearity_fuzz math_of_sizes moving_derivatives random_distributions "
        "reduction_derivatives simplify solutions stdlib_activations stdlib_attention "
        "stdlib_distributions stdlib_hmm stdlib_hmm_training stdlib_kalman stdlib_layers "
        "stdlib_lbfgs stdlib_linear stdlib_losses stdlib_mcmc stdlib_minimisation stdlib_newton "
        "stdlib_normalization stdlib_ode stdlib_optimizers stdlib_recurrent stdlib_roots "
        "stdlib_signals stdlib_solvers stdlib_transformer transformations window_derivatives"
    ).split()
)


def generate_quickly(patch: pytest.MonkeyPatch) -> None:
    """Have modules compiled with these options until the patch is undone."""
    from pscdsl._src.xla.runtime.executable import compile_options

    def quick(loop_bytes: int | None, options: Mapping[str, Any]) -> Any:
        return compile_options(loop_bytes, {**QUICK, **options})

    patch.setattr("pscdsl._src.xla.compilation.compile.compile_options", quick)
