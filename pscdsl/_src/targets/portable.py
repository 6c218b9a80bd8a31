"""Modules for any device: primitives' own rules, and what was measured to gain everywhere."""

from __future__ import annotations

from typing import Final

from pscdsl._src.primitives.indexing import Scatter
from pscdsl._src.primitives.linalg.factorisations import Cholesky, Lu, TriangularSolve
from pscdsl._src.targets.cpu.linalg import systems
from pscdsl._src.targets.rewriting import Target
from pscdsl._src.targets.scatters import last_update

PORTABLE: Final = Target(
    "portable",
    rewrites={
        Cholesky: (systems.portable_cholesky,),
        TriangularSolve: (systems.portable_solve,),
        Lu: (systems.written_out_lu,),
        Scatter: (last_update,),
    },
)
