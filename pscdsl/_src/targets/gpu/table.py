"""The table of NVIDIA's GPUs: replacements for the primitives' own rules.

There are no speed forms: those of the CPU were measured on CPUs only, and no form has been measured
on a GPU yet.
"""

from __future__ import annotations

from typing import Final

from pscdsl._src.primitives.indexing import Scatter
from pscdsl._src.primitives.spectra import Eig, Svd
from pscdsl._src.targets import scatters
from pscdsl._src.targets.gpu import linalg
from pscdsl._src.targets.rewriting import Target

CUDA: Final = Target(
    "cuda",
    rewrites={Svd: (linalg.tall,), Scatter: (scatters.last_update, scatters.by_long_indices)},
    routines=linalg.ON_CUDA,
    host_calls="xla_ffi_python_gpu_callback",
    missing={
        Eig: "compute the eigenvalues of a general matrix in a kernel on the CPU; `eigh`, of "
        "symmetric and Hermitian matrices, runs on GPUs",
    },
)
