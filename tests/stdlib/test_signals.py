"""Signals against SciPy."""

# SciPy is not fully typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import signal as scipy_signal

import pscdsl as psc
from pscdsl.stdlib import signals

pytestmark = pytest.mark.quick_code

theirs: Any = scipy_signal
RANDOM = np.random.default_rng(0)
DTYPES = [np.float32, np.float64]


def run(kernel: Callable[..., Any], *args: Any) -> NDArray[Any]:
    return np.asarray(kernel(*args))


def close(found: Any, expected: Any, dtype: Any) -> None:
    tolerance = 100 * float(np.finfo(dtype).eps)
    size = np.abs(expected).max()
    assert np.abs(np.asarray(found)).dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * size)


@pytest.mark.parametrize("dtype", DTYPES)
def test_filters(dtype: Any) -> None:
    x, taps = RANDOM.normal(size=(2, 50)).astype(dtype), RANDOM.normal(size=7).astype(dtype)
    whole = np.stack([np.convolve(row, taps) for row in x])
    close(signals.convolve_fft(x, taps), whole, dtype)
    close(signals.fir(taps, x), whole[:, :50], dtype)

    b, a = (np.asarray(each, dtype) for each in theirs.butter(4, 0.2))
    expected = theirs.lfilter(b, a, x[0])
    close(signals.lfilter(b, a, x[0]).y, expected, dtype)
    first = signals.lfilter(b, a, x[0, :20])
    second = signals.lfilter(b, a, x[0, 20:40], first.state)
    close(np.append(first.y, second.y), expected[:40], dtype)
    close(signals.lfilter(b[:1], 2 * a[:1], x[0]).y, b[0] / 2 * x[0], dtype)

    sections = theirs.ellip(5, 1, 40, 0.3, output="sos").astype(dtype)
    close(signals.sosfilt(sections, x[0]), theirs.sosfilt(sections, x[0]), dtype)
    rows = psc.vmap(signals.sosfilt, in_axes=(None, 0))(sections, x)
    close(rows, theirs.sosfilt(sections, x), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_spectra(dtype: Any) -> None:
    x = (RANDOM.normal(size=(2, 100)) + 3).astype(dtype)
    for size in (16, 15):
        window = np.hanning(size + 1)[:-1].astype(dtype)
        found = signals.welch(x, window, size // 2, 50.0)
        frequencies, power = theirs.welch(
            x, 50.0, window, size, size - size // 2, detrend="constant"
        )
        close(found.power, power, dtype)
        close(found.frequencies, frequencies, dtype)
    found = signals.periodogram(x[0], 2.0)
    close(found.power, theirs.periodogram(x[0], 2.0)[1], dtype)
    power = np.asarray(found.power).sum() * 2 / 100
    np.testing.assert_allclose(power, x[0].var(), rtol=1e-5)
    for size in (20, 21):
        close(signals.analytic(x[:, :size]), theirs.hilbert(x[:, :size]), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_short_times(dtype: Any) -> None:
    x = RANDOM.normal(size=(2, 75)).astype(dtype)
    window = np.hamming(16).astype(dtype)
    spectra = run(signals.stft, x, window, 5)
    assert spectra.shape == (2, 12, 9)
    for i in (0, 4, 11):
        close(spectra[:, i], np.fft.rfft(x[:, 5 * i : 5 * i + 16] * window), dtype)
    close(signals.istft(spectra[0], window, 5), x[0, :71], dtype)
    with pytest.raises(psc.ArgumentError):
        signals.stft(x[:, :10], window, 5)


@pytest.mark.parametrize(("n", "size"), [(12, 30), (12, 31), (13, 20), (30, 12), (31, 7), (9, 9)])
def test_resampling(n: int, size: int) -> None:
    x = RANDOM.normal(size=n)
    close(signals.resample(x, size), theirs.resample(x, size), np.float64)


def test_a_filter_is_differentiated() -> None:
    """The derivative in the signal is the filter of the signal turned round."""
    b, a = theirs.butter(2, 0.3)
    weights = RANDOM.normal(size=12)
    _, back = psc.vjp(signals.lfilter, b, a, RANDOM.normal(size=12), np.zeros(2))
    slopes = back(signals.Filtered(weights, np.zeros(2)))
    close(slopes[2], theirs.lfilter(b, a, weights[::-1])[::-1], np.float64)
