"""Modules for any device: primitives' own rules, and what was measured to gain everywhere."""

from __future__ import annotations

from typing import Final

from pscdsl._src.primitives.linalg.factorisations import Cholesky, Lu, TriangularSolve
from pscdsl._src.targets.cpu.linalg import small
from pscdsl._src.targets.target import Target

PORTABLE: Final = Target(
    "portable",
    rewrites={
        Cholesky: (small.portable_cholesky,),
        TriangularSolve: (small.portable_solve,),
        Lu: (small.written_out_lu,),
    },
)
