"""Random numbers from explicit keys, in kernels.

A key is used once: drawn from, or split into new ones.  `pscdsl check` refuses a second use.

    key, sub = psc.random.split(key)
    noise = psc.random.normal(sub, x.shape)

Names and argument orders are those of `jax.random`.  A key is two words of 32 bits, `u32[2]`
outside of kernels, where `key`, `split` and `fold_in` work on NumPy arrays; nothing is checked
there, so it is up to the caller to hand no key to two calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

import numpy as np

from pscdsl.arrays import Key, bool_, f32, i32, u32
from pscdsl.evaluate import Evaluator
from pscdsl.primitive import Primitive
from pscdsl.primitives.random import FoldIn, SeedKey, SplitKey

Shape: TypeAlias = int | Sequence[int]
DType: TypeAlias = Any
Axis: TypeAlias = int
X = TypeVar("X")

_HERE: Final = Evaluator({})


def _only_in_kernels(name: str) -> NoReturn:
    raise TypeError(f"psc.random.{name} has a meaning only inside a kernel")


def _outside(name: str, primitive: Primitive, *operands: Any) -> Any:
    """The NumPy meaning, of one key and of integers."""
    arrays = [np.asarray(each) for each in operands]
    for array in arrays[:-1] if len(arrays) > 1 else arrays:
        if name != "key" and (array.dtype != np.uint32 or array.shape != (2,)):
            raise TypeError(f"psc.random.{name} takes a key, not {array.dtype}{[*array.shape]}")
    if name != "split" and (arrays[-1].dtype.kind not in "iu" or arrays[-1].ndim):
        raise TypeError(f"psc.random.{name} takes an integer of up to 64 bits, not {operands[-1]}")
    return primitive.evaluate(_HERE, *arrays)[0]


def key(seed: Any) -> Key:
    """A key from an integer of up to 64 bits; different integers give different keys."""
    found: Key = _outside("key", SeedKey(), seed)
    return found


def split(key: Key, num: Shape = 2) -> Key:
    """`num` keys, all different, in place of one: `key, sub = psc.random.split(key)`."""
    shape = (num,) if isinstance(num, int) else tuple(num)
    found: Key = _outside("split", SplitKey(shape), key)
    return found


def fold_in(key: Key, data: Any) -> Key:
    """A key from a key and an integer; different integers give different keys.

    The key may be folded with other integers too, but not be drawn from or split besides.
    """
    found: Key = _outside("fold_in", FoldIn(), key, data)
    return found


def bits(key: Key, shape: Shape = (), dtype: DType = None) -> u32:
    """Unsigned integers, each with equal probability; u32 without a dtype."""
    _only_in_kernels("bits")


def uniform(
    key: Key, shape: Shape = (), dtype: DType = None, minval: Any = 0.0, maxval: Any = 1.0
) -> f32:
    """Numbers from `minval` up to, never reaching, `maxval`, each interval as its length has it."""
    _only_in_kernels("uniform")


def randint(key: Key, shape: Shape, minval: Any, maxval: Any, dtype: DType = None) -> i32:
    """Integers from `minval` up to, not including, `maxval`, each with equal probability."""
    _only_in_kernels("randint")


def bernoulli(key: Key, p: Any = 0.5, shape: Shape | None = None) -> bool_:
    """True with probability `p`."""
    _only_in_kernels("bernoulli")


def rademacher(key: Key, shape: Shape = (), dtype: DType = None) -> i32:
    """1 or -1, each with probability one half."""
    _only_in_kernels("rademacher")


def normal(key: Key, shape: Shape = (), dtype: DType = None) -> f32:
    """Normal numbers with mean 0 and variance 1."""
    _only_in_kernels("normal")


def truncated_normal(
    key: Key, lower: Any, upper: Any, shape: Shape | None = None, dtype: DType = None
) -> f32:
    """Normal numbers with mean 0 and variance 1 under the condition of lying between bounds."""
    _only_in_kernels("truncated_normal")


def exponential(key: Key, shape: Shape = (), dtype: DType = None) -> f32:
    """Exponential numbers with mean 1."""
    _only_in_kernels("exponential")


def laplace(key: Key, shape: Shape = (), dtype: DType = None) -> f32:
    """Laplace numbers with mean 0 and scale 1."""
    _only_in_kernels("laplace")


def gumbel(key: Key, shape: Shape = (), dtype: DType = None) -> f32:
    """Standard Gumbel numbers: the largest of many exponential ones."""
    _only_in_kernels("gumbel")


def logistic(key: Key, shape: Shape = (), dtype: DType = None) -> f32:
    """Logistic numbers with mean 0 and scale 1."""
    _only_in_kernels("logistic")


def gamma(key: Key, a: Any, shape: Shape | None = None, dtype: DType = None) -> f32:
    """Gamma numbers with shape parameter `a` and scale 1."""
    _only_in_kernels("gamma")


def loggamma(key: Key, a: Any, shape: Shape | None = None, dtype: DType = None) -> f32:
    """Logarithms of gamma numbers, which do not underflow where `a` is small."""
    _only_in_kernels("loggamma")


def beta(key: Key, a: Any, b: Any, shape: Shape | None = None, dtype: DType = None) -> f32:
    """Beta numbers with parameters `a` and `b`."""
    _only_in_kernels("beta")


def dirichlet(key: Key, alpha: Any, shape: Shape | None = None, dtype: DType = None) -> f32:
    """Dirichlet vectors along the last axis; `shape` is that of the batch before it."""
    _only_in_kernels("dirichlet")


def poisson(key: Key, lam: Any, shape: Shape | None = None, dtype: DType = None) -> i32:
    """Poisson numbers with mean `lam`."""
    _only_in_kernels("poisson")


def permutation(key: Key, x: X, axis: Axis = 0, independent: bool = False) -> X:
    """`x` in a random order along an axis, of the numbers below `x` if that is a size.

    With `independent` each row along the axis has an order of its own.
    """
    _only_in_kernels("permutation")


def choice(
    key: Key, a: X, shape: Shape = (), replace: bool = True, p: Any = None, axis: Axis = 0
) -> X:
    """Parts of `a` along an axis, or numbers below it if that is a size, with probabilities `p`.

    Without `replace` no part is taken twice.
    """
    _only_in_kernels("choice")


def categorical(key: Key, logits: Any, axis: Axis = -1, shape: Shape | None = None) -> i32:
    """Places along an axis, with probabilities whose logarithms are `logits` but for a constant.

    `shape` is that of the result, its last axes those of `logits` without `axis`.
    """
    _only_in_kernels("categorical")
