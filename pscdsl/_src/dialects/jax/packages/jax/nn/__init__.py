"""The names of `jax.nn`."""

import numpy as np
from numpy import tanh

from jax._checks import INEXACT as _INEXACT
from jax._checks import NUMBER as _NUMBER
from jax._checks import axis_of as _axis_of
from jax._checks import inexact as _inexact
from jax._checks import of_kinds as _of_kinds
from jax.numpy import max as _largest
from jax.numpy import mean as _mean
from jax.numpy import sum as _sum
from jax.scipy.special import logsumexp
from pscdsl import stop_gradient as _stopped
from pscdsl.special import erfc as _erfc
from pscdsl.special import expit as _expit


def _signed(x):
    """Return an array that may be negative: JAX lets differences of others wrap around."""
    if np.issubdtype(np.asarray(x).dtype, np.unsignedinteger):
        raise NotImplementedError("arrays without a sign")
    return x


def identity(x):
    """Return the array."""
    return np.asarray(x)


def relu(x):
    """Return `max(x, 0)`, whose gradient at 0 is 0."""
    return np.where(np.asarray(x) > 0, x, _stopped(np.maximum(x, 0)))


def relu6(x):
    """Return `min(max(x, 0), 6)`."""
    return np.minimum(np.maximum(x, 0), 6.0)


def sigmoid(x):
    """Return `1 / (1 + exp(-x))`."""
    return _expit(_of_kinds(x, _INEXACT))


def log_sigmoid(x):
    """Return the logarithm of the sigmoid."""
    return -softplus(-_inexact(_signed(x)))


def softplus(x):
    """Return `log(1 + exp(x))`."""
    return np.logaddexp(x, 0.0)


def soft_sign(x):
    """Return `x / (1 + abs(x))`."""
    return x / (np.abs(x) + 1)


def squareplus(x, b=4):
    """Return `(x + sqrt(x**2 + b)) / 2`."""
    return (x + np.sqrt(np.square(x) + b)) / 2


def silu(x):
    """Return `x * sigmoid(x)`."""
    return x * sigmoid(x)


swish = silu


def mish(x):
    """Return `x * tanh(softplus(x))`."""
    x = _inexact(x)
    return x * np.tanh(softplus(x))


def elu(x, alpha=1.0):
    """Return `x` where it is positive, `alpha * expm1(x)` elsewhere."""
    return np.where(np.asarray(x) > 0, x, alpha * np.expm1(np.where(np.asarray(x) > 0, 0.0, x)))


def celu(x, alpha=1.0):
    """Return `max(x, 0) + alpha * expm1(min(x, 0) / alpha)`."""
    return np.maximum(x, 0.0) + alpha * np.expm1(np.minimum(x, 0.0) / alpha)


def selu(x):
    """Return the scaled `elu`."""
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def leaky_relu(x, negative_slope=0.01):
    """Return `x` where it is not negative, `negative_slope * x` elsewhere."""
    return np.where(np.asarray(x) >= 0, x, negative_slope * x)


def hard_tanh(x):
    """Return `x` between -1 and 1."""
    return np.where(np.asarray(x) > 1, 1, np.where(np.asarray(x) < -1, -1, x))


def hard_sigmoid(x):
    """Return `relu6(x + 3) / 6`."""
    return relu6(x + 3.0) / 6.0


def hard_silu(x):
    """Return `x * hard_sigmoid(x)`."""
    x = _inexact(x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def gelu(x, approximate=True):
    """Return `x` times the normal distribution function."""
    x = _inexact(x)
    if approximate:
        return x * (0.5 * (1.0 + np.tanh(0.7978845608028654 * (x + 0.044715 * (x**3)))))
    return 0.5 * x * _erfc(-x * 0.7071067811865476)


def glu(x, axis=-1):
    """Return the first half times the sigmoid of the second."""
    first, second = np.split(x, 2, axis)
    return first * sigmoid(second)


def softmax(x, axis=-1, where=None, initial=-np.inf):
    """Return exponentials that sum to one."""
    x = _inexact(_signed(x))
    top = _stopped(_largest(x, axis, where=where, initial=initial, keepdims=True))
    safe = x if where is None else np.where(where, x, initial)
    grown = np.exp(safe - top)
    found = grown / _sum(grown, axis, where=where, keepdims=True)
    return found if where is None else np.where(where, found, 0)


def log_softmax(x, axis=-1, where=None, initial=-np.inf):
    """Return the logarithm of exponentials that sum to one."""
    x = _inexact(_signed(x))
    top = _stopped(_largest(x, axis, where=where, initial=initial, keepdims=True))
    shifted = (x if where is None else np.where(where, x, initial)) - top
    found = shifted - np.log(_sum(np.exp(shifted), axis, where=where, keepdims=True))
    return found if where is None else np.where(where, found, -np.inf)


def standardize(x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None):
    """Return the array with mean zero and variance one."""
    if mean is None:
        mean = _mean(x, axis, keepdims=True, where=where)
    if variance is None:
        squares = _mean(np.square(x), axis, keepdims=True, where=where)
        variance = np.maximum(squares - np.square(mean), 0)
    return (x - mean) / np.sqrt(variance + epsilon)


def one_hot(x: object, num_classes, *, dtype=None, axis=-1):
    """Return vectors with a one at a place, and zeros."""
    x = _of_kinds(x, _NUMBER)
    at = _axis_of(axis, x.ndim + 1)
    numbers = np.reshape(np.arange(num_classes), [1] * at + [num_classes] + [1] * (x.ndim - at))
    return (np.expand_dims(x, axis) == numbers).astype(float if dtype is None else dtype)
