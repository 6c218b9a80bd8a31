"""Linear algebra on NVIDIA GPUs: cuSOLVER's routines in the place of LAPACK's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pscdsl._src.ir.primitive import Types
from pscdsl._src.primitives import matrices as m
from pscdsl._src.primitives.spectra import Svd
from pscdsl._src.targets.forms import Context, Rewrite
from pscdsl._src.targets.rewriting import defined
from pscdsl._src.xla.lapack import CustomCall
from pscdsl.typing.dtypes import DType

if TYPE_CHECKING:
    from pscdsl._src.ir.builder import Value
    from pscdsl._src.ir.program import Block

_TRUE, _FALSE = "true", "false"


def _plain(name: str) -> Callable[[Mapping[str, str]], CustomCall]:
    return lambda options: CustomCall(f"cusolver_{name}_ffi", {})


def _syevd(options: Mapping[str, str]) -> CustomCall:
    """By which algorithm is left to the routine (0); it always computes the vectors."""
    lower = _TRUE if options["uplo"] == "L" else _FALSE
    return CustomCall("cusolver_syevd_ffi", {"algorithm": "0 : ui8", "lower": lower})


def _gesvd(options: Mapping[str, str]) -> CustomCall:
    """By the QR algorithm, of matrices with as many rows as columns or more."""
    mode = options["mode"]
    return CustomCall(
        "cusolver_gesvd_ffi",
        {
            "full_matrices": _TRUE if mode == "A" else _FALSE,
            "compute_uv": _FALSE if mode == "N" else _TRUE,
            "transposed": _FALSE,
        },
    )


_ROUTINES: Final[Mapping[str, Callable[[Mapping[str, str]], CustomCall]]] = {
    "getrf": _plain("getrf"),
    "geqrf": _plain("geqrf"),
    "orgqr": _plain("orgqr"),
    "syevd": _syevd,
    "gesdd": _gesvd,
}
"""The calls for LAPACK's routines that primitives need outside of StableHLO, by name."""


class OnCuda:
    """cuSOLVER's routines, which the plugin brings."""

    def call(self, routine: str, dtype: DType, options: Mapping[str, str]) -> CustomCall:
        """Return a routine's call, with LAPACK's letters as options; it finds the dtype itself."""
        return _ROUTINES[routine](options)

    def register(self) -> None:
        """The plugin registers them when it is loaded."""


ON_CUDA: Final = OnCuda()


@Rewrite
def tall(svd: Svd, inputs: Types, outputs: Types, here: Context) -> Block | None:
    """Return the decomposition of a wide matrix by that of its adjoint, which the routine takes."""
    rows, columns = inputs[0].shape[-2:]
    if not isinstance(rows, int) or not isinstance(columns, int) or rows >= columns:
        return None
    return defined(_by_adjoint, svd, inputs)


def _by_adjoint(svd: Svd, operands: Sequence[Value]) -> Sequence[Value]:
    """With a^H = u s v^H, a = v s u^H."""
    found = svd.bind(m.adjoint(operands[0]))
    if not svd.vectors:
        return found
    left, values, right = found
    return m.adjoint(right), values, m.adjoint(left)
