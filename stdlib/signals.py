"""Signals: filters, spectra, short-time Fourier transforms, resampling.

Time is the last axis.  Windows are NumPy's, `np.hanning(n + 1)[:-1]` for one that is periodic;
`np.convolve` and `np.correlate` are NumPy's too, and good for short filters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import Complex, Float


class Filtered(psc.Record, dims="n m"):
    """The output of a filter, and its state for the next part of the signal.

    Examples:
        >>> b, a = np.array([0.5, 0.0]), np.array([1.0, -0.5])
        >>> first = lfilter(b, a, np.ones(3))
        >>> lfilter(b, a, np.ones(2), first.state).y
        pscdsl.Array([0.9375, 0.9688], dtype=float64)
    """

    y: Float["n"]
    """The output signal."""
    state: Float["m"]
    """The state of the filter."""


class Spectrum(psc.Record, dims="*b f"):
    """The power spectrum of a signal.

    Examples:
        >>> found = periodogram(np.sin(np.arange(8) * np.pi / 2), 100.0)
        >>> np.round(found.power, 4)
        array([0.  , 0.  , 0.04, 0.  , 0.  ])
    """

    frequencies: Float["f"]
    """In cycles in a unit of time; from 0 up."""
    power: Float["*b f"]
    """Per unit of frequency, that of negative frequencies included: it integrates to the power."""


@psc.kernel
def convolve_fft(x: Float["*b n"], v: Float["m"]) -> Float["*b n+m-1"]:
    """The convolution of two sequences by Fourier transforms, for long ones: n + m - 1 numbers.

    Errors are relative to the largest number of the result (Stockham 1966).

    Examples:
        >>> np.round(convolve_fft(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0])), 4)
        array([1., 3., 5., 3.])

    Cost: at most 51*b*m + 51*b*n + b + 25*m + 25*n flops.
    """
    size = x.shape[-1] + v.shape[0] - 1
    product = np.fft.rfft(x, size) * np.fft.rfft(v, size)
    return np.fft.irfft(product, size).astype(x.dtype)


@psc.kernel
def fir(taps: Float["m"], x: Float["*b n"]) -> Float["*b n"]:
    """A filter of finite impulse response, at rest before the signal: y[i] = sum taps[j] x[i-j].

    By `convolve_fft`; the result is as long as the signal.

    Examples:
        >>> fir(np.array([0.5, 0.5]), np.array([1.0, 2.0, 3.0, 4.0]))
        pscdsl.Array([0.5, 1.5, 2.5, 3.5], dtype=float64)

    Cost: at most 51*b*m + 51*b*n + b + 25*m + 25*n flops.
    """
    return convolve_fft(x, taps)[..., : x.shape[-1]]


@psc.kernel
def lfilter(
    b: Float["m"], a: Float["m"], x: Float["n"], state: Float["m-1"] | None = None
) -> Filtered["n m-1"]:
    """A rational filter: sum a[j] y[i-j] = sum b[j] x[i-j]; `a[0]` is not 0.

    Pad the shorter of `a` and `b` with zeros. Direct form II, transposed; `state` is the final
    state of an earlier piece of the signal, or rest.

    Examples:
        >>> b, a = np.array([0.5, 0.0]), np.array([1.0, -0.5])
        >>> lfilter(b, a, np.ones(4)).y
        pscdsl.Array([0.5   , 0.75  , 0.875 , 0.9375], dtype=float64)

    Cost: 4*m*n + 2*m - 2*n flops.
    """
    b, a = b / a[0], a / a[0]

    def step(state: Float["m"], x: Float) -> tuple[Float["m"], Float]:
        ahead = state + b * x
        y = ahead[0]
        left = ahead[1:] - a[1:] * y
        return psc.update(state, slice(0, -1), left), y

    start = np.zeros_like(b) if state is None else np.append(state, 0)
    last, y = psc.scan(step, start, x)
    return Filtered(y, last[:-1])


@psc.kernel
def sosfilt(sections: Float["s 6"], x: Float["n"]) -> Float["n"]:
    """Filters of second order in a row, each `b0 b1 b2 a0 a1 a2`, at rest before the signal.

    Examples:
        >>> sections = np.array([[0.5, 0.0, 0.0, 1.0, -0.5, 0.0]])
        >>> sosfilt(sections, np.ones(4))
        pscdsl.Array([0.5   , 0.75  , 0.875 , 0.9375], dtype=float64)

    Cost: 9*n*s + 5*s flops.
    """

    def section(x: Float["n"], section: Float["6"]) -> tuple[Float["n"], None]:
        b, a = section[:3] / section[3], section[4:] / section[3]

        def step(state: tuple[Float, Float], x: Float) -> tuple[Any, Float]:
            first, second = state
            y = b[0] * x + first
            return (b[1] * x - a[0] * y + second, b[2] * x - a[1] * y), y

        zero = np.zeros_like(x[0])
        return psc.scan(step, (zero, zero), x)[1], None

    return psc.scan(section, x, sections)[0]


@psc.kernel
def stft(x: Float["*b n"], window: Float["w"], hop: psc.Static[int] = 1) -> Complex["*b _ _"]:
    """The spectra of pieces as long as the window, one every `hop` samples: [*b times w//2+1].

    Only whole pieces: pad the signal to see its ends.  Frequencies are `np.fft.rfftfreq(w)`.

    Examples:
        >>> stft(np.ones(8), np.hanning(4), 2).shape
        (3, 3)

    Cost: at most 26*b*w*((n-w)//hop) + 5*w*((n-w)//hop) + 26*b*w + 5*w flops.
    """
    assert hop >= 1
    assert window.shape[0] <= x.shape[-1]
    return np.fft.rfft(_pieces(x, window.shape[0], hop) * window)


@psc.kernel
def istft(spectra: Complex["t f"], window: Float["w"], hop: psc.Static[int] = 1) -> Float["_"]:
    """A signal with these short-time spectra, or the closest to it (Griffin, Lim 1984).

    The inverse of `stft`, except for samples that no window saw, which are 0.

    Examples:
        >>> x, window = np.arange(8.0), np.ones(4)
        >>> np.round(istft(stft(x, window, 2), window, 2), 4)
        array([0., 1., 2., 3., 4., 5., 6., 7.])

    Cost: at most 4*hop*t + 32*t*w + t + 5*w flops.
    """
    assert hop >= 1
    w, count = window.shape[0], spectra.shape[0]
    assert spectra.shape[1] == w // 2 + 1
    pieces = np.fft.irfft(spectra, w).astype(window.dtype) * window
    places = hop * np.arange(count)[:, None] + np.arange(w)
    nothing = np.zeros((count - 1) * hop + w, window.dtype)
    total = psc.update(nothing, places, pieces, "add")
    weight = psc.update(nothing, places, np.broadcast_to(window * window, (count, w)), "add")
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1), 0)


@psc.kernel
def welch(
    x: Float["*b n"], window: Float["w"], hop: psc.Static[int], rate: Float = 1.0
) -> Spectrum["*b w//2+1"]:
    """The spectrum of a signal, as the mean over pieces of it (Welch 1967).

    Each piece loses its mean.  `rate` is how many samples there are in a unit of time.

    Examples:
        >>> x = np.sin(np.arange(64) * np.pi / 4)
        >>> found = welch(x, np.hanning(16), 8, 8.0)
        >>> found.frequencies[np.argmax(found.power)]
        np.float64(1.0)

    Cost: at most 28*b*w*((n-w)//hop) + 6*b*((n-w)//hop)*(w//2) + 8*b*((n-w)//hop) +
    4*w*((n-w)//hop) + 28*b*w + 9*b*(w//2) + 19*b + 6*w + 7*(w//2) flops.
    """
    assert hop >= 1
    w = window.shape[0]
    assert w <= x.shape[-1]
    pieces = _pieces(x, w, hop)
    centred = pieces - pieces.mean(axis=-1, keepdims=True)
    spectra = np.fft.rfft(centred * window)
    power = (spectra.real**2 + spectra.imag**2).mean(axis=-2).astype(x.dtype)
    places = np.arange(w // 2 + 1)
    both = np.where((places == 0) | (2 * places == w), 1, 2)  # negative frequencies come here
    density = power * both.astype(x.dtype) / (rate * (window * window).sum())
    return Spectrum(places.astype(x.dtype) * rate / w, density)


@psc.kernel
def periodogram(x: Float["*b n"], rate: Float = 1.0) -> Spectrum["*b n//2+1"]:
    """The spectrum of a whole signal, less its mean (Schuster 1898).

    `rate` is how many samples there are in a unit of time.

    Examples:
        >>> x = np.sin(np.arange(64) * np.pi / 4)
        >>> found = periodogram(x, 8.0)
        >>> found.frequencies[np.argmax(found.power)]
        np.float64(1.0)

    Cost: at most 33*b*n + 10*b + 10*n + 8 flops.
    """
    return welch(x, np.ones_like(x, shape=x.shape[-1]), 1, rate)


@psc.kernel
def analytic(x: Float["*b n"]) -> Complex["*b n"]:
    """The signal without its negative frequencies: its absolute value is the envelope.

    The imaginary part is the Hilbert transform (Gabor 1946).

    Examples:
        >>> np.abs(analytic(3 * np.cos(np.arange(8) * np.pi / 4)))
        array([3., 3., 3., 3., 3., 3., 3., 3.])

    Cost: 101*b*n + 9*n flops.
    """
    n = x.shape[-1]
    places = np.arange(n)
    twice = (places > 0) & (2 * places < n)
    once = (places == 0) | (2 * places == n)
    spectrum = np.fft.fft(x)
    factors = np.where(twice, 2, np.where(once, 1, 0))
    return np.fft.ifft(spectrum * factors.astype(spectrum.dtype))


@psc.kernel
def resample(x: Float["*b n"], size: psc.Static[int]) -> Float["*b _"]:
    """A periodic signal at `size` places in the same time, by its Fourier series.

    Fewer places omit the frequencies that they cannot represent.

    Examples:
        >>> np.round(resample(np.cos(np.arange(4) * np.pi / 2), 8)[:3], 4)
        array([1.    , 0.7071, 0.    ])

    Cost: at most 26*b*n + 26*b*size + 9*b + 2*n flops.
    """
    assert size >= 1
    n = x.shape[-1]
    least = min(n, size)
    spectrum = np.fft.rfft(x)[..., : least // 2 + 1]
    places = np.arange(least // 2 + 1)
    # The coefficient at half the lower rate belongs to that frequency and to its negative.
    share = np.where(size > n, 0.5, np.where(size < n, 2.0, 1.0))
    edge = np.where(2 * places == least, share, 1.0).astype(spectrum.dtype)
    return (np.fft.irfft(spectrum * edge, size) * (size / n)).astype(x.dtype)


def _pieces(x: Float["*b n"], size: psc.Static[int], hop: psc.Static[int]) -> Float["*b _ _"]:
    """Pieces of a signal that begin every `hop` samples: [*b times size]."""
    count: int = (x.shape[-1] - size) // hop + 1
    starts = hop * np.arange(count)
    return x[..., starts[:, None] + np.arange(size)]
