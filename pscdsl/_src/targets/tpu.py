"""The table of TPUs: only primitives' own rules. It has not been compiled or run anywhere yet."""

from __future__ import annotations

from typing import Final

from pscdsl._src.primitives.effects import (
    Check,
    InRange,
    NoInfinity,
    NoNan,
    Print,
    ProgressEffect,
    ValueRecord,
)
from pscdsl._src.primitives.factorisations import Lu, Qr
from pscdsl._src.primitives.indexing import Scatter
from pscdsl._src.primitives.spectra import Eig, Eigh, Svd
from pscdsl._src.targets.rewriting import Target
from pscdsl._src.targets.scatters import last_update

_WITHOUT: Final = "compile without effects, in a `with psc.debug.off():`"
_INSTEAD: Final = "factor matrices in a kernel on the CPU; `cholesky` runs on TPUs"

_EFFECTS: Final = (Print, ProgressEffect, ValueRecord, Check, InRange, NoNan, NoInfinity)

TPU: Final = Target(
    "tpu",
    rewrites={Scatter: (last_update,)},
    missing={
        **dict.fromkeys((Lu, Qr, Eigh, Eig, Svd), _INSTEAD),
        **dict.fromkeys(
            (Print, ProgressEffect, ValueRecord, Check, InRange, NoNan, NoInfinity), _WITHOUT
        ),
    },
)
