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
    irfft,
    irfft2,
    irfftn,
)


def _of_real(function):
    """Return a transform of real numbers, which takes no narrower floats."""

    def transform(a, *args, **kwargs):
        if np.issubdtype(np.asarray(a).dtype, np.floating):
            if np.finfo(np.asarray(a).dtype).bits < 32:
                raise ValueError("RFFT input must be float32 or float64")
        return function(a, *args, **kwargs)

    return transform


ihfft = _of_real(np.fft.ihfft)
rfft = _of_real(np.fft.rfft)
rfft2 = _of_real(np.fft.rfft2)
rfftn = _of_real(np.fft.rfftn)


def fftfreq(n, d=1.0, *, dtype=None):
    """Return the frequencies of a transform."""
    return np.fft.fftfreq(n, d).astype(float if dtype is None else dtype)


def rfftfreq(n, d=1.0, *, dtype=None):
    """Return the frequencies of a transform of real numbers."""
    return np.fft.rfftfreq(n, d).astype(float if dtype is None else dtype)
