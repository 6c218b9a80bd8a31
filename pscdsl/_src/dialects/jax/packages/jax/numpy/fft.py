"""The names of `jax.numpy.fft`."""

import numpy as np
from numpy.fft import (
    fft,
    fft2,
    fftn,
    fftshift,
    hfft,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)


def fftfreq(n, d=1.0, *, dtype=None):
    """Return the frequencies of a transform."""
    return np.fft.fftfreq(n, d).astype(float if dtype is None else dtype)


def rfftfreq(n, d=1.0, *, dtype=None):
    """Return the frequencies of a transform of real numbers."""
    return np.fft.rfftfreq(n, d).astype(float if dtype is None else dtype)
