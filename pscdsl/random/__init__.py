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
    """Return a key for an integer of up to 64 bits; different integers give different keys."""
    ...


@of_keys
def split(key: Key, num: Shape = 2) -> Key:
    """Return `num` different keys in place of one: `key, sub = psc.random.split(key)`."""
    ...


@of_keys
def fold_in(key: Key, data: Any) -> Key:
    """Return a key for a key and an integer; different integers give different keys.

    The key may be folded with other integers too, but not drawn from or split.
    """
    ...


@as_in_kernels
def bits(key: Key, shape: Shape = (), dtype: DType = None) -> u32:
    """Unsigned integers, each with equal probability; u32 without a dtype."""
    ...


@as_in_kernels
def uniform(
    key: Key, shape: Shape = (), dtype: DType = None, minval: Any = 0.0, maxval: Any = 1.0
) -> f32:
    """Uniform numbers from `minval` up to, not including, `maxval`."""
    ...


@as_in_kernels
def randint(key: Key, shape: Shape, minval: Any, maxval: Any, dtype: DType = None) -> i32:
    """Integers from `minval` up to, not including, `maxval`, each with equal probability."""
    ...


@as_in_kernels
def bernoulli(key: Key, p: Any = 0.5, shape: Shape | None = None) -> bool_:
    """Bools that are true with probability `p`."""
    ...


@as_in_kernels
def rademacher(key: Key, shape: Shape = (), dtype: DType = None) -> i32:
    """Numbers that are 1 or -1, each with probability one half."""
    ...


@as_in_kernels
def normal(key: Key, shape: Shape = (), dtype: DType = None) -> f32:
    """Normal numbers with mean 0 and variance 1."""
    ...


@as_in_kernels
def truncated_normal(
    key: Key, lower: Any, upper: Any, shape: Shape | None = None, dtype: DType = None
) -> f32:
    """Normal numbers with mean 0 and variance 1, conditioned on lying between bounds."""
    ...


@as_in_kernels
def exponential(key: Key, shape: Shape = (), dtype: DType = None) -> f32:
    """Exponential numbers with mean 1."""
    ...


@as_in_kernels
def laplace(key: Key, shape: Shape = (), dtype: DType = None) -> f32:
    """Laplace numbers with mean 0 and scale 1."""
    ...


@as_in_kernels
def gumbel(key: Key, shape: Shape = (), dtype: DType = None) -> f32:
    """Standard Gumbel numbers: the largest of many exponential ones."""
    ...


@as_in_kernels
def logistic(key: Key, shape: Shape = (), dtype: DType = None) -> f32:
    """Logistic numbers with mean 0 and scale 1."""
    ...


@as_in_kernels
def gamma(key: Key, a: Any, shape: Shape | None = None, dtype: DType = None) -> f32:
    """Gamma numbers with shape parameter `a` and scale 1."""
    ...


@as_in_kernels
def loggamma(key: Key, a: Any, shape: Shape | None = None, dtype: DType = None) -> f32:
    """Logarithms of gamma numbers, which do not underflow where `a` is small."""
    ...


@as_in_kernels
def beta(key: Key, a: Any, b: Any, shape: Shape | None = None, dtype: DType = None) -> f32:
    """Beta numbers with parameters `a` and `b`."""
    ...


@as_in_kernels
def dirichlet(key: Key, alpha: Any, shape: Shape | None = None, dtype: DType = None) -> f32:
    """Dirichlet vectors along the last axis; `shape` is that of the batch before it."""
    ...


@as_in_kernels
def poisson(key: Key, lam: Any, shape: Shape | None = None, dtype: DType = None) -> i32:
    """Poisson numbers with mean `lam`."""
    ...


@as_in_kernels
def permutation(key: Key, x: X, axis: Axis = 0, independent: bool = False) -> X:
    """`x` in a random order along an axis, or the numbers below `x` if that is a size.

    With `independent` each row along the axis has an order of its own.
    """
    ...


@as_in_kernels
def choice(
    key: Key, a: X, shape: Shape = (), replace: bool = True, p: Any = None, axis: Axis = 0
) -> X:
    """Slices of `a` along an axis, or numbers below it if that is a size, with probabilities `p`.

    Without `replace` no part is taken twice.
    """
    ...


@as_in_kernels
def categorical(key: Key, logits: Any, axis: Axis = -1, shape: Shape | None = None) -> i32:
    """Indices along an axis, with probabilities proportional to `exp(logits)`.

    `shape` is that of the result, its last axes those of `logits` without `axis`.
    """
    ...
