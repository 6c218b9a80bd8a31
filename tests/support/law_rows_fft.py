"""Rows for Fourier transforms: both parities of the length, one to three axes, empty batches."""

from __future__ import annotations

from collections.abc import Iterator

from pscdsl._src.primitives.fft import Fft
from pscdsl.typing.dims import parse
from pscdsl.typing.dtypes import C64, C128, DType
from tests.support.law_rows import Row, array_types, between, finfo
from tests.support.law_rows_structure import facts

SIZES: tuple[dict[str, int], ...] = ({"n": 8}, {"n": 5}, {"n": 2}, {"n": 1})


def _row(primitive: Fft, operand: str, of: DType, sizes: dict[str, int], *known: str) -> Row:
    """A row whose results are compared as wholes: an error spreads over a transform."""
    absolute = 256 * float(finfo(of).eps)
    return Row(
        primitive,
        array_types(operand),
        sizes,
        between(-2, 2),
        absolute=absolute,
        signed_zeros=False,
        facts=facts(*known),
    )


def _rows() -> Iterator[Row]:
    for of in (C64, C128):
        c, f = of, of.real
        for sizes in SIZES:
            for kind in ("fft", "ifft"):
                yield _row(Fft(kind), f"{c}[n]", of, sizes)
                yield _row(Fft(kind), f"{c}[m n]", of, {"m": 0, **sizes}, "m >= 0")
                yield _row(Fft(kind, 2), f"{c}[m n]", of, {"m": 3, **sizes})
                yield _row(Fft(kind, 3), f"{c}[b m n k]", of, {"b": 2, "m": 3, "k": 4, **sizes})
            yield _row(Fft("rfft"), f"{f}[n]", of, sizes)
            yield _row(Fft("rfft"), f"{f}[m n]", of, {"m": 0, **sizes}, "m >= 0")
            yield _row(Fft("rfft", 2), f"{f}[m n]", of, {"m": 3, **sizes})
            yield _row(Fft("rfft", 3), f"{f}[b m k n]", of, {"b": 2, "m": 3, "k": 4, **sizes})
            n = parse("n")
            yield _row(Fft("irfft", 1, n), f"{c}[n//2+1]", of, sizes)
            yield _row(Fft("irfft", 1, n), f"{c}[m n//2+1]", of, {"m": 0, **sizes}, "m >= 0")
            yield _row(Fft("irfft", 2, n), f"{c}[m n//2+1]", of, {"m": 3, **sizes})
            yield _row(Fft("irfft", 3, n), f"{c}[b m k n//2+1]", of, {"b": 2, "m": 3, **sizes})
        yield _row(Fft("irfft", 1, parse("2*m-2")), f"{c}[m]", of, {"m": 5}, "m >= 2")
        yield _row(Fft("irfft", 1, 7), f"{c}[3 4]", of, {})
        yield _row(Fft("fft", 1), f"{c}[n]", of, {"n": 1000})


ROWS = tuple(_rows())
