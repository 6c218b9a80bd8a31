"""Random numbers from explicit keys.

A key is used once: drawn from, or split into new ones.  `pscdsl check` refuses a second use.

    key, sub = psc.random.split(key)
    noise = psc.random.normal(sub, x.shape)

Names and argument orders are those of `jax.random`.  The functions work outside kernels, too; there
a key is a plain `u32[2]` array and its reuse is not detected: pass each key to one call only.
"""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

from pscdsl._src.language.declarations import declaring
from pscdsl.arrays import Key, bool_, f32, i32, u32

Shape: TypeAlias = int | Sequence[int]
DType: TypeAlias = Any
Axis: TypeAlias = int
X = TypeVar("X")

as_in_kernels = declaring(__name__)
of_keys = declaring(__name__, "pscdsl.random.outside")


@of_keys
def key(seed: Any) -> Key:
    """Return a key for an integer of up to 64 bits; different integers give different keys.

    Examples:
        >>> psc.random.key(42)
        array([ 0, 42], dtype=uint32)
    """
    ...


@of_keys
def split(key: Key, num: Shape = 2) -> Key:
    """Return `num` different keys in place of one: `key, sub = psc.random.split(key)`.

    Examples:
        >>> key, sub = psc.random.split(psc.random.key(42))
        >>> psc.random.split(key, 3).shape
        (3, 2)
    """
    ...


@of_keys
def fold_in(key: Key, data: Any) -> Key:
    """Return a key for a key and an integer; different integers give different keys.

    The key may be folded with other integers too, but not drawn from or split.

    Examples:
        >>> key = psc.random.key(42)
        >>> np.stack([psc.random.normal(psc.random.fold_in(key, step)) for step in range(3)])
        array([-0.7203,  0.6499, -0.3216])
    """
    ...


@as_in_kernels
def bits(key: Key, shape: Shape = (), dtype: DType = None) -> u32:
    """Unsigned integers, each with equal probability; u32 without a dtype.

    Examples:
        >>> psc.random.bits(psc.random.key(0), (3,))
        pscdsl.Array([4070199207, 4202968722, 1427181096], dtype=uint32)
    """
    ...


@as_in_kernels
def uniform(
    key: Key, shape: Shape = (), dtype: DType = None, minval: Any = 0.0, maxval: Any = 1.0
) -> f32:
    """Uniform numbers from `minval` up to, not including, `maxval`.

    Examples:
        >>> psc.random.uniform(psc.random.key(0), (3,))
        pscdsl.Array([0.4185, 0.2163, 0.9653], dtype=float64)
        >>> psc.random.uniform(psc.random.key(0), (3,), minval=-1, maxval=1)
        pscdsl.Array([-0.1631, -0.5674,  0.9306], dtype=float64)
    """
    ...


@as_in_kernels
def randint(key: Key, shape: Shape, minval: Any, maxval: Any, dtype: DType = None) -> i32:
    """Integers from `minval` up to, not including, `maxval`, each with equal probability.

    Examples:
        >>> psc.random.randint(psc.random.key(0), (6,), 0, 10)
        pscdsl.Array([9, 3, 6, 9, 2, 3], dtype=int64)
    """
    ...


@as_in_kernels
def bernoulli(key: Key, p: Any = 0.5, shape: Shape | None = None) -> bool_:
    """Bools that are true with probability `p`.

    Examples:
        >>> psc.random.bernoulli(psc.random.key(0), 0.3, (6,))
        pscdsl.Array([False,  True, False, False, False, False], dtype=bool)
    """
    ...


@as_in_kernels
def rademacher(key: Key, shape: Shape = (), dtype: DType = None) -> i32:
    """Numbers that are 1 or -1, each with probability one half.

    Examples:
        >>> psc.random.rademacher(psc.random.key(0), (6,))
        pscdsl.Array([-1, -1,  1,  1, -1,  1], dtype=int64)
    """
    ...


@as_in_kernels
def normal(key: Key, shape: Shape = (), dtype: DType = None) -> f32:
    """Normal numbers with mean 0 and variance 1.

    Examples:
        >>> psc.random.normal(psc.random.key(0), (3,))
        pscdsl.Array([-0.2058, -0.7848,  1.8161], dtype=float64)
    """
    ...


@as_in_kernels
def truncated_normal(
    key: Key, lower: Any, upper: Any, shape: Shape | None = None, dtype: DType = None
) -> f32:
    """Normal numbers with mean 0 and variance 1, conditioned on lying between bounds.

    Examples:
        >>> psc.random.truncated_normal(psc.random.key(0), -1.0, 2.0, (3,))
        pscdsl.Array([ 0.003 , -0.4242,  1.6339], dtype=float64)
    """
    ...


@as_in_kernels
def exponential(key: Key, shape: Shape = (), dtype: DType = None) -> f32:
    """Exponential numbers with mean 1.

    Examples:
        >>> psc.random.exponential(psc.random.key(0), (3,))
        pscdsl.Array([0.5421, 0.2437, 3.3616], dtype=float64)
    """
    ...


@as_in_kernels
def laplace(key: Key, shape: Shape = (), dtype: DType = None) -> f32:
    """Laplace numbers with mean 0 and scale 1.

    Examples:
        >>> psc.random.laplace(psc.random.key(0), (3,))
        pscdsl.Array([ 0.178 ,  0.838 , -2.6685], dtype=float64)
    """
    ...


@as_in_kernels
def gumbel(key: Key, shape: Shape = (), dtype: DType = None) -> f32:
    """Standard Gumbel numbers: the largest of many exponential ones.

    Examples:
        >>> psc.random.gumbel(psc.random.key(0), (3,))
        pscdsl.Array([ 0.1379, -0.426 ,  3.344 ], dtype=float64)
    """
    ...


@as_in_kernels
def logistic(key: Key, shape: Shape = (), dtype: DType = None) -> f32:
    """Logistic numbers with mean 0 and scale 1.

    Examples:
        >>> psc.random.logistic(psc.random.key(0), (3,))
        pscdsl.Array([-0.3291, -1.2874,  3.3263], dtype=float64)
    """
    ...


@as_in_kernels
def gamma(key: Key, a: Any, shape: Shape | None = None, dtype: DType = None) -> f32:
    """Gamma numbers with shape parameter `a` and scale 1.

    Examples:
        >>> psc.random.gamma(psc.random.key(0), np.array([0.5, 5.0], np.float32))
        pscdsl.Array([6.4218e-05, 7.1357e+00], dtype=float32)
    """
    ...


@as_in_kernels
def loggamma(key: Key, a: Any, shape: Shape | None = None, dtype: DType = None) -> f32:
    """Logarithms of gamma numbers, which do not underflow where `a` is small.

    Examples:
        >>> psc.random.loggamma(psc.random.key(0), np.array([0.01, 5.0], np.float32))
        pscdsl.Array([-492.4187,    1.9651], dtype=float32)
    """
    ...


@as_in_kernels
def beta(key: Key, a: Any, b: Any, shape: Shape | None = None, dtype: DType = None) -> f32:
    """Beta numbers with parameters `a` and `b`.

    Examples:
        >>> psc.random.beta(psc.random.key(0), np.float32(2), np.float32(5), (3,))
        pscdsl.Array([0.2838, 0.1892, 0.264 ], dtype=float32)
    """
    ...


@as_in_kernels
def dirichlet(key: Key, alpha: Any, shape: Shape | None = None, dtype: DType = None) -> f32:
    """Dirichlet vectors along the last axis; `shape` is that of the batch before it.

    Examples:
        >>> psc.random.dirichlet(psc.random.key(0), np.array([1, 2, 3], np.float32), (2,))
        pscdsl.Array([[0.1141, 0.5383, 0.3476],
                      [0.0027, 0.2266, 0.7707]], dtype=float32)
    """
    ...


@as_in_kernels
def poisson(key: Key, lam: Any, shape: Shape | None = None, dtype: DType = None) -> i32:
    """Poisson numbers with mean `lam`.

    Examples:
        >>> psc.random.poisson(psc.random.key(0), np.array([1, 10, 100], np.float32))
        pscdsl.Array([  3,  19, 105], dtype=int32)
    """
    ...


@as_in_kernels
def permutation(key: Key, x: X, axis: Axis = 0, independent: bool = False) -> X:
    """`x` in a random order along an axis, or the numbers below `x` if that is a size.

    With `independent` each row along the axis has an order of its own.

    Examples:
        >>> psc.random.permutation(psc.random.key(0), 6)
        pscdsl.Array([1, 5, 0, 4, 3, 2], dtype=int64)
        >>> psc.random.permutation(psc.random.key(0), np.array([[1, 2], [3, 4], [5, 6]]))
        pscdsl.Array([[3, 4],
                      [1, 2],
                      [5, 6]], dtype=int64)
    """
    ...


@as_in_kernels
def choice(
    key: Key, a: X, shape: Shape = (), replace: bool = True, p: Any = None, axis: Axis = 0
) -> X:
    """Slices of `a` along an axis, or numbers below it if that is a size, with probabilities `p`.

    Without `replace` no part is taken twice.

    Examples:
        >>> psc.random.choice(psc.random.key(0), np.array([10, 20, 30, 40]), (3,), replace=False)
        pscdsl.Array([20, 10, 40], dtype=int64)
        >>> psc.random.choice(psc.random.key(0), 3, (5,), p=np.array([0.1, 0.1, 0.8], np.float32))
        pscdsl.Array([0, 0, 2, 2, 2], dtype=int32)
    """
    ...


@as_in_kernels
def categorical(key: Key, logits: Any, axis: Axis = -1, shape: Shape | None = None) -> i32:
    """Indices along an axis, with probabilities proportional to `exp(logits)`.

    `shape` is that of the result, its last axes those of `logits` without `axis`.

    Examples:
        >>> logits = np.log(np.array([[0.1, 0.9], [0.5, 0.5]], np.float32))
        >>> psc.random.categorical(psc.random.key(0), logits)
        pscdsl.Array([1, 1], dtype=int32)
        >>> psc.random.categorical(psc.random.key(0), logits[0], shape=(6,))
        pscdsl.Array([1, 1, 1, 1, 1, 0], dtype=int32)
    """
    ...
