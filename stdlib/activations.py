"""Activation functions: elementwise ones of any shape, and those over the last axis.

Each takes and returns one floating-point dtype.  None overflows for a finite argument where its
value does not, and derivatives stay finite there too.
"""

from __future__ import annotations

import math

import numpy as np

import pscdsl as psc
from pscdsl import Float

SELU_ALPHA = 1.6732632423543772
"""Slope of `selu` at large negative arguments, over `SELU_SCALE`."""
SELU_SCALE = 1.0507009873554805
"""Slope of `selu` at positive arguments."""


@psc.kernel
def relu(x: Float["*s"]) -> Float["*s"]:
    """`max(x, 0)` (Nair, Hinton 2010).

    Examples:
        >>> relu(np.array([-1.0, 0.0, 2.0]))
        pscdsl.Array([0., 0., 2.], dtype=float64)

    Cost: s flops.
    """
    return np.maximum(x, 0)


@psc.kernel
def relu6(x: Float["*s"]) -> Float["*s"]:
    """`x` cut to [0, 6] (Howard et al. 2017).

    Examples:
        >>> relu6(np.array([-1.0, 2.0, 8.0]))
        pscdsl.Array([0., 2., 6.], dtype=float64)

    Cost: 2*s flops.
    """
    return np.clip(x, 0, 6)


@psc.kernel
def leaky_relu(x: Float["*s"], slope: Float = 0.01) -> Float["*s"]:
    """`x` where it is positive, `slope * x` elsewhere (Maas, Hannun, Ng 2013).

    Examples:
        >>> leaky_relu(np.array([-1.0, 0.0, 2.0]))
        pscdsl.Array([-0.01,  0.  ,  2.  ], dtype=float64)
        >>> leaky_relu(np.array([-1.0, 0.0, 2.0]), 0.2)
        pscdsl.Array([-0.2,  0. ,  2. ], dtype=float64)

    Cost: 3*s flops.
    """
    return np.where(x > 0, x, slope * x)


@psc.kernel
def elu(x: Float["*s"], alpha: Float = 1.0) -> Float["*s"]:
    """`x` where it is positive, `alpha * (exp(x) - 1)` elsewhere (Clevert et al. 2016).

    Examples:
        >>> elu(np.array([-3.0, 0.0, 2.0]))
        pscdsl.Array([-0.9502,  0.    ,  2.    ], dtype=float64)

    Cost: 12*s flops.
    """
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


@psc.kernel
def celu(x: Float["*s"], alpha: Float = 1.0) -> Float["*s"]:
    """`elu` made smooth for every `alpha` > 0: `alpha * (exp(x / alpha) - 1)` (Barron 2017).

    Examples:
        >>> celu(np.array([-3.0, 0.0, 2.0]), 2.0)
        pscdsl.Array([-1.5537,  0.    ,  2.    ], dtype=float64)

    Cost: 13*s flops.
    """
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))


@psc.kernel
def selu(x: Float["*s"]) -> Float["*s"]:
    """The scaled `elu` that keeps mean 0 and variance 1 (Klambauer et al. 2017).

    Examples:
        >>> selu(np.array([-3.0, 0.0, 2.0]))
        pscdsl.Array([-1.6706,  0.    ,  2.1014], dtype=float64)

    Cost: 13*s flops.
    """
    return SELU_SCALE * elu(x, SELU_ALPHA)


@psc.kernel
def sigmoid(x: Float["*s"]) -> Float["*s"]:
    """The logistic function `1 / (1 + exp(-x))`, with relative accuracy in both tails.

    Examples:
        >>> sigmoid(np.array([-2.0, 0.0, 2.0]))
        pscdsl.Array([0.1192, 0.5   , 0.8808], dtype=float64)

    Cost: 10*s flops.
    """
    return psc.special.expit(x)


@psc.kernel
def log_sigmoid(x: Float["*s"]) -> Float["*s"]:
    """`log(sigmoid(x))`; falls like `x` for large negative arguments.

    Examples:
        >>> log_sigmoid(np.array([-100.0, 0.0, 2.0]))
        pscdsl.Array([-100.    ,   -0.6931,   -0.1269], dtype=float64)

    Cost: 23*s flops.
    """
    return -np.logaddexp(-x, 0)


@psc.kernel
def softplus(x: Float["*s"]) -> Float["*s"]:
    """`log(1 + exp(x))`; rises like `x` for large arguments (Dugas et al. 2001).

    Examples:
        >>> softplus(np.array([-2.0, 0.0, 100.0]))
        pscdsl.Array([  0.1269,   0.6931, 100.    ], dtype=float64)

    Cost: 21*s flops.
    """
    return np.logaddexp(x, 0)


@psc.kernel
def silu(x: Float["*s"]) -> Float["*s"]:
    """`x * sigmoid(x)`, also called swish (Elfwing et al. 2018; Ramachandran et al. 2017).

    Examples:
        >>> silu(np.array([-2.0, 0.0, 2.0]))
        pscdsl.Array([-0.2384,  0.    ,  1.7616], dtype=float64)

    Cost: 11*s flops.
    """
    return x * sigmoid(x)


@psc.kernel
def swish(x: Float["*s"], beta: Float = 1.0) -> Float["*s"]:
    """`x * sigmoid(beta * x)` (Ramachandran, Zoph, Le 2017); `silu` where `beta` is 1.

    Examples:
        >>> swish(np.array([-2.0, 0.0, 2.0]), 1.5)
        pscdsl.Array([-0.0949,  0.    ,  1.9051], dtype=float64)

    Cost: 12*s flops.
    """
    return x * sigmoid(beta * x)


@psc.kernel
def mish(x: Float["*s"]) -> Float["*s"]:
    """`x * tanh(softplus(x))` (Misra 2019).

    Examples:
        >>> mish(np.array([-2.0, 0.0, 2.0]))
        pscdsl.Array([-0.2525,  0.    ,  1.944 ], dtype=float64)

    Cost: 32*s flops.
    """
    return x * np.tanh(softplus(x))


@psc.kernel
def gelu(x: Float["*s"]) -> Float["*s"]:
    """`x` times the probability that a standard normal variable is below it.

    Hendrycks, Gimpel 2016, exact; `gelu_tanh` is their approximation.

    Examples:
        >>> gelu(np.array([-2.0, 0.0, 2.0]))
        pscdsl.Array([-0.0455,  0.    ,  1.9545], dtype=float64)

    Cost: 61*s flops.
    """
    return x * psc.special.ndtr(x)


@psc.kernel
def gelu_tanh(x: Float["*s"]) -> Float["*s"]:
    """`gelu` by way of tanh: off by at most 5e-4 (Hendrycks, Gimpel 2016).

    Examples:
        >>> gelu_tanh(np.array([-2.0, 0.0, 2.0]))
        pscdsl.Array([-0.0454,  0.    ,  1.9546], dtype=float64)

    Cost: 17*s flops.
    """
    square = np.where(x * x < 900, x * x, 900)  # beyond, the second factor is 0 or 1
    return x * sigmoid(x * (math.sqrt(8 / math.pi) + 0.044715 * math.sqrt(8 / math.pi) * square))


@psc.kernel
def softsign(x: Float["*s"]) -> Float["*s"]:
    """`x / (1 + |x|)` (Turian, Bergstra, Bengio 2009).

    Examples:
        >>> softsign(np.array([-3.0, 0.0, 1.0]))
        pscdsl.Array([-0.75,  0.  ,  0.5 ], dtype=float64)

    Cost: 8*s flops.
    """
    shrunk = 1 + np.abs(x)
    return np.where(np.abs(x) < 1, x / shrunk, np.copysign(1 - 1 / shrunk, x))


@psc.kernel
def hard_tanh(x: Float["*s"]) -> Float["*s"]:
    """`x` cut to [-1, 1] (Collobert 2004).

    Examples:
        >>> hard_tanh(np.array([-3.0, 0.5, 2.0]))
        pscdsl.Array([-1. ,  0.5,  1. ], dtype=float64)

    Cost: 2*s flops.
    """
    return np.clip(x, -1, 1)


@psc.kernel
def hard_sigmoid(x: Float["*s"]) -> Float["*s"]:
    """`(x + 3) / 6` cut to [0, 1] (Howard et al. 2019).

    Examples:
        >>> hard_sigmoid(np.array([-4.0, 0.0, 1.5]))
        pscdsl.Array([0.  , 0.5 , 0.75], dtype=float64)

    Cost: 4*s flops.
    """
    return np.clip(x + 3, 0, 6) / 6


@psc.kernel
def hard_silu(x: Float["*s"]) -> Float["*s"]:
    """`x * hard_sigmoid(x)`, also called hard swish (Howard et al. 2019).

    Examples:
        >>> hard_silu(np.array([-4.0, 0.0, 1.5]))
        pscdsl.Array([-0.   ,  0.   ,  1.125], dtype=float64)

    Cost: 5*s flops.
    """
    return x * hard_sigmoid(x)


@psc.kernel
def glu(x: Float["*batch 2*n"]) -> Float["*batch n"]:
    """The first half of the last axis, gated by the sigmoid of the second (Dauphin et al. 2017).

    Examples:
        >>> glu(np.array([[1.0, 2.0, 0.0, 100.0]]))
        pscdsl.Array([[0.5, 2. ]], dtype=float64)

    Cost: 11*batch*n flops.
    """
    n = x.shape[-1] // 2
    return x[..., :n] * sigmoid(x[..., n:])


@psc.kernel
def softmax(x: Float["*batch n"]) -> Float["*batch n"]:
    """`exp(x) / sum(exp(x))` over the last axis: positive, and each row sums to 1.

    An entry of -inf has probability 0; each row needs a finite one, and none that is +inf.

    Examples:
        >>> softmax(np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 1000.0]]))
        pscdsl.Array([[0.09  , 0.2447, 0.6652],
                      [0.    , 0.    , 1.    ]], dtype=float64)

    Cost: 12*batch*n flops.
    """
    return psc.special.softmax(x, axis=-1)


@psc.kernel
def log_softmax(x: Float["*batch n"]) -> Float["*batch n"]:
    """`log(softmax(x))` over the last axis, also where the probability is 0 in this dtype.

    Examples:
        >>> log_softmax(np.array([0.0, 0.0, 1000.0]))
        pscdsl.Array([-1000., -1000.,     0.], dtype=float64)

    Cost: 9*batch*n + 12*batch flops.
    """
    return psc.special.log_softmax(x, axis=-1)
