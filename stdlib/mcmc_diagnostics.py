"""The agreement of Markov chains, and the number of independent draws that theirs are worth.

Draws have the chains along their first axis and the steps along the second; further axes are a
batch. Each chain is split in half, so that one that drifts does not agree with itself. The formulas
are those of Vehtari, Gelman, Simpson, Carpenter, Bürkner, "Rank-normalization, folding, and
localization: an improved R-hat", Bayesian Analysis 16 (2021), without the ranks. Draws that are all
equal give NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pscdsl as psc
from pscdsl import Float
from pscdsl.stdlib.precision import widened


@psc.kernel
def split_r_hat(draws: Float["c t *s"]) -> Float["*s"]:
    """The ratio of the spread of all chains together to that of each (R-hat): 1 if they agree.

    Above 1.01 they should run longer.  At least 4 steps.

    Examples:
        >>> draws = psc.random.normal(psc.random.key(0), (4, 500))
        >>> split_r_hat(draws)
        pscdsl.Array(0.9987, dtype=float64)
        >>> split_r_hat(draws + np.arange(4)[:, None])
        pscdsl.Array(1.572, dtype=float64)

    Cost: 8*c*s*(t//2) + 16*c*s + 8*s flops.
    """
    assert draws.shape[1] >= 4
    within, total = _variances(_halves(widened(draws)))
    return np.sqrt(total / within).astype(draws.dtype)


@psc.kernel
def effective_sample_size(draws: Float["c t *s"]) -> Float["*s"]:
    """The number of independent draws with an equally accurate mean.

    By autocorrelations of all chains together, up to where the sum of two neighbouring ones is
    first negative (Geyer 1992), by Fourier transforms.  At least 4 steps.

    Examples:
        >>> draws = psc.random.normal(psc.random.key(0), (4, 500))
        >>> np.round(effective_sample_size(draws))
        np.float64(2161.0)
        >>> np.round(effective_sample_size(np.cumsum(draws, axis=1)))
        np.float64(5.0)

    Cost: at most 216*c*s*(t//2) + 22*c*s + 5*s*(t//2) + 5*s*(t//4) + 20*s flops.
    """
    assert draws.shape[1] >= 4
    halves = _halves(widened(draws))
    chains, n = halves.shape[0], halves.shape[1]
    within, total = _variances(halves)
    centred = halves - halves.mean(axis=1, keepdims=True)
    waves = np.fft.rfft(centred, n=2 * n, axis=1)
    powers = (waves * np.conj(waves)).real
    covariance = np.fft.irfft(powers, n=2 * n, axis=1)[:, :n].mean(axis=0) / n
    correlation = 1 - (within - covariance) / total

    count = n // 2
    pairs = correlation[0 : 2 * count : 2] + correlation[1 : 2 * count : 2]
    falling = np.minimum.accumulate(pairs, axis=0)
    time = 2 * np.where(falling > 0, falling, 0).sum(axis=0) - 1
    size = chains * n * np.ones_like(time)
    # Chains that alternate can be better than independent draws, but not without bound.
    return np.minimum(size / time, size * np.log10(size)).astype(draws.dtype)


@psc.kernel
def standard_error(draws: Float["c t *s"]) -> Float["*s"]:
    """The standard error of the mean of all draws.

    Examples:
        >>> standard_error(psc.random.normal(psc.random.key(0), (4, 500)))
        pscdsl.Array(0.0212, dtype=float64)

    Cost: at most 224*c*s*(t//2) + 38*c*s + 5*s*(t//2) + 5*s*(t//4) + 28*s flops.
    """
    assert draws.shape[1] >= 4
    _, total = _variances(_halves(widened(draws)))
    size: Any = widened(effective_sample_size(draws))
    return np.sqrt(total / size).astype(draws.dtype)


def _halves(draws: Float["c t *s"]) -> Float["2*c t//2 *s"]:
    """The first half of each chain, and the second one, as separate chains."""
    half = draws.shape[1] // 2
    halves = np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])
    return halves


def _variances(draws: Float["c t *s"]) -> tuple[Float["*s"], Float["*s"]]:
    """The mean variance of a chain, and an estimate of the variance of the distribution."""
    n = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    return within, within * (n - 1) / n + draws.mean(axis=1).var(axis=0, ddof=1)
