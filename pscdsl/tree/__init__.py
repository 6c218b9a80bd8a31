"""Functions of trees: tuples, records, maps and vectors that hold arrays, and None.

    moved = psc.tree.map(lambda p, g: p - rate * g, params, gradient)

They mean the same inside kernels, where trees are unrolled while checking, and outside of them, on
NumPy's arrays and on results of kernels.  Static fields of records belong to the structure; None
holds nothing.  Trees that are taken together have one structure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from pscdsl._src.support.tracebacks import public
from pscdsl.arrays import Shaped, f32
from pscdsl.tree import outside

A = TypeVar("A")
T = TypeVar("T")


@overload
def map(f: Callable[[Any], Any], tree: T, /) -> T: ...  # noqa: A001
@overload
def map(f: Callable[[Any, Any], Any], tree: T, other: Any, /) -> T: ...  # noqa: A001
@overload
def map(f: Callable[[Any, Any, Any], Any], tree: T, other: Any, third: Any, /) -> T: ...  # noqa: A001
@overload
def map(f: Callable[..., Any], tree: T, /, *rest: Any) -> T: ...  # noqa: A001
@public
def map(f: Callable[..., Any], tree: T, /, *rest: Any) -> T:  # noqa: A001
    """The tree of `f(x, …)` for each leaf x of `tree` and the leaves of `rest` at its place.

    What `f` returns stands where the leaf stood.  Where `tree` has an array and another tree has
    None, as gradients do for integers, bools and keys, `f` is given None.

    Examples:
        >>> params = (np.array([1.0, 2.0]), np.array(3.0))
        >>> gradient = (np.array([0.5, 0.5]), np.array(1.0))
        >>> psc.tree.map(lambda p, g: p - 0.1 * g, params, gradient)
        (array([0.95, 1.95]), np.float64(2.9))
    """
    rows = outside.side_by_side("map", (tree, *rest), absent=True)
    made: T = outside.with_leaves("map", tree, [f(*row) for row in rows])
    return made


@public
def leaves(tree: Any, /) -> tuple[Shaped, ...]:
    """The arrays of a tree: items in their order, fields as declared, maps by their keys.

    Examples:
        >>> psc.tree.leaves({"w": np.ones(2), "b": (np.zeros(1), None)})
        (array([0.]), array([1., 1.]))
    """
    return tuple(outside.flat("leaves", tree).leaves)


@public
def reduce(f: Callable[[A, Shaped], A], tree: Any, initial: A, /) -> A:
    """`f(f(f(initial, x), y), …)` over the leaves of a tree in order.

    Examples:
        >>> psc.tree.reduce(lambda n, x: n + np.max(np.abs(x)), (np.array([1, -3]), np.array(2)), 0)
        np.int64(5)
    """
    value = initial
    for each in outside.flat("reduce", tree).leaves:
        value = f(value, each)
    return value


@public
def size(tree: Any, /) -> int:
    """Return how many elements all arrays of a tree have.

    Examples:
        >>> psc.tree.size({"w": np.ones((2, 3)), "b": np.ones(3)})
        9
    """
    return sum(np.size(each) for each in outside.flat("size", tree).leaves)


@public
def zeros_like(tree: T, /, dtype: Any = None) -> T:
    """Zeros of the shape of each leaf, in its dtype or the one that is given.

    Examples:
        >>> psc.tree.zeros_like({"w": np.ones((2, 2)), "b": np.ones(2)})
        {'w': array([[0., 0.],
               [0., 0.]]), 'b': array([0., 0.])}
    """
    found = outside.flat("zeros_like", tree).leaves
    zeros = [np.zeros_like(np.asarray(each), dtype=dtype) for each in found]
    made: T = outside.with_leaves("zeros_like", tree, zeros)
    return made


@public
def dot(a: Any, b: Any, /) -> f32:
    """The sum of the products of all elements of two trees, those of `a` conjugated.

    Leaves are of shapes [*s] and [*s] and of the same inexact dtype.  Products are summed in the
    leaf's dtype, in f32 where that has 16 bits, and the result is in the widest of these dtypes.
    Without leaves it is 0.

    Examples:
        >>> psc.tree.dot(
        ...     (np.array([1.0, 2.0]), np.array(3.0)), (np.array([4.0, 5.0]), np.array(6.0))
        ... )
        np.float64(32.0)
    """
    pairs = outside.side_by_side("dot", (a, b), shapes=True)
    arrays = [[outside.accumulating("dot", each) for each in pair] for pair in pairs]
    found: f32 = outside.summed(np.vdot(x, y) for x, y in arrays)
    return found


@public
def norm(tree: Any, /) -> f32:
    """The Euclidean norm of all elements of a tree together: the root of the sum of |x|².

    Dtypes are those of `dot`; where it is 0 its gradient is 0.

    Examples:
        >>> psc.tree.norm((np.array([3.0, 0.0]), np.array(4.0)))
        np.float64(5.0)
    """
    arrays = [outside.accumulating("norm", each) for each in outside.flat("norm", tree).leaves]
    found: f32 = np.sqrt(outside.summed(np.vdot(x, x).real for x in arrays))
    return found


@public
def ravel(tree: T, /) -> tuple[f32, Callable[[Any], T]]:
    """All elements as one vector, and the function that makes such a tree of such a vector.

    The leaves have one dtype.  What is made of a vector has the vector's dtype.

    Examples:
        >>> vector, unravel = psc.tree.ravel({"w": np.array([[1.0, 2.0]]), "b": np.array(3.0)})
        >>> vector
        array([3., 1., 2.])
        >>> unravel(2 * vector)
        {'w': array([[2., 4.]]), 'b': array(6.)}
    """
    found: tuple[Any, Callable[[Any], T]] = outside.raveled(tree)
    return found
