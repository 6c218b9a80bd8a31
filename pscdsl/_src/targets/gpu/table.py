"""The table of NVIDIA's GPUs: what is done instead of a primitive's own rule.

There are no speed forms: those of the CPU are measured on CPUs alone, and none was measured on a
GPU yet.
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
    missing={
        Eig: "compute the eigenvalues of a general matrix in a kernel on the CPU; `eigh`, of "
        "symmetric and Hermitian matrices, runs on GPUs",
    },
)
