"""One device's part of a program: public names, used in kernels on a mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from pscdsl._src.language.declarations import declaring_bodies
from pscdsl.arrays import i32

declared = declaring_bodies("pscdsl")
X = TypeVar("X")


def _in_kernels(function: str, place: str) -> NoReturn:
    raise TypeError(f"{function} is for {place}")


@declared
def on_each(
    axis: str, f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0
) -> Callable[..., Any]:
    """Return a function that applies `f` on each device along an axis of the mesh, to its piece.

    With R devices along the axis, arguments are cut into R equal pieces, `f` is applied to the
    pieces of all devices in step, and its results are put together. R is 1 without a mesh, where a
    piece is the whole array. In `f`, a value *varies* if it depends on what is cut or on
    `axis_index`; all other values are equal on all devices, as are those of `axis_sum` and
    `axis_gather`.

    Args:
        axis: The axis of the mesh, along which a parameter of the kernel is cut.
        f: A function of one device's pieces.
        in_axes: The axis along which arguments are cut, or a tuple with an axis, a tree of axes, or
            None for each argument. None gives all devices the whole argument.
        out_axes: The axis along which results are put together, or a tree of axes. None says that
            all devices have the same result, which is checked.

    Examples:
        >>> @psc.kernel
        ... def shares(x: f32["n@data"]) -> f32["n@data"]:
        ...     def share(piece):
        ...         return piece / psc.axis_sum(np.sum(piece), "data")
        ...
        ...     return psc.on_each("data", share)(x)
        >>> shares(np.array([1, 3, 4], np.float32))
        pscdsl.Array([0.125, 0.375, 0.5  ], dtype=float32)
    """
    _in_kernels("psc.on_each", "functions that a kernel calls")


@declared
def axis_sum(x: X, axis: str) -> X:
    """Return the sum of the arrays of all devices along an axis, in `on_each`.

    The result is the same on all devices. A value that all devices have already is refused: its sum
    depends on the number of devices.

    Args:
        x: An array of numbers, or a tree of arrays.
        axis: An axis of the mesh, along which `on_each` runs the function.

    Examples:
        >>> @psc.kernel
        ... def total(x: f32["n@data"]) -> f32:
        ...     def of_all(piece):
        ...         return psc.axis_sum(np.sum(piece), "data")
        ...
        ...     return psc.on_each("data", of_all, out_axes=None)(x)
        >>> total(np.array([1, 3, 4], np.float32))
        pscdsl.Array(8., dtype=float32)
    """
    _in_kernels("psc.axis_sum", "functions that `psc.on_each` applies")


@declared
def axis_gather(x: X, axis: str, dim: int = 0) -> X:
    """Return the arrays of all devices along an axis put together, in `on_each`.

    The result is the same on all devices: the arrays one after the other along `dim`, without a new
    axis.

    Args:
        x: An array, or a tree of arrays.
        axis: An axis of the mesh, along which `on_each` runs the function.
        dim: The axis of the arrays.

    Examples:
        >>> @psc.kernel
        ... def distances(x: f32["n@data"]) -> f32["n@data n"]:
        ...     def to_all(piece):
        ...         return np.abs(piece[:, None] - psc.axis_gather(piece, "data"))
        ...
        ...     return psc.on_each("data", to_all)(x)
        >>> distances(np.array([1, 4], np.float32))
        pscdsl.Array([[0., 3.],
                      [3., 0.]], dtype=float32)
    """
    _in_kernels("psc.axis_gather", "functions that `psc.on_each` applies")


@declared
def axis_shift(x: X, axis: str, by: int = 1) -> X:
    """Return the array of the device `by` places before along an axis, in `on_each`.

    The devices form a ring: the first one gets the array of the last one, as in `np.roll`.

    Args:
        x: An array, or a tree of arrays.
        axis: An axis of the mesh, along which `on_each` runs the function.
        by: The number of places, known at check time. It may be negative.

    Examples:
        >>> @psc.kernel
        ... def steps(x: f32["n@data"]) -> f32["n@data"]:
        ...     def step(piece):
        ...         before = psc.axis_shift(piece[-1:], "data")
        ...         return piece - np.concatenate([before, piece[:-1]])
        ...
        ...     return psc.on_each("data", step)(x)
        >>> steps(np.array([1, 2, 4, 8], np.float32))
        pscdsl.Array([-7.,  1.,  2.,  4.], dtype=float32)
    """
    _in_kernels("psc.axis_shift", "functions that `psc.on_each` applies")


@declared
def axis_index(axis: str) -> i32:
    """Return the place of this device along an axis, from 0, in `on_each`.

    Args:
        axis: An axis of the mesh, along which `on_each` runs the function.

    Examples:
        >>> @psc.kernel
        ... def dropout(key: psc.Key, x: f32["n@data"]) -> f32["n@data"]:
        ...     def on_piece(key, piece):
        ...         own = psc.random.fold_in(key, psc.axis_index("data"))
        ...         return np.where(psc.random.bernoulli(own, 0.5, piece.shape), piece, 0)
        ...
        ...     return psc.on_each("data", on_piece, in_axes=(None, 0))(key, x)
        >>> dropout(psc.random.key(0), np.array([1, 2, 4, 8], np.float32)).shape
        (4,)
    """
    _in_kernels("psc.axis_index", "functions that `psc.on_each` applies")


@declared
def axis_size(axis: str) -> int:
    """Return the number of devices along an axis, a size, in `on_each`.

    Args:
        axis: An axis of the mesh, along which `on_each` runs the function.

    Examples:
        >>> @psc.kernel
        ... def mean(x: f32["n@data"]) -> f32:
        ...     def of_all(piece):
        ...         return psc.axis_sum(np.mean(piece), "data") / psc.axis_size("data")
        ...
        ...     return psc.on_each("data", of_all, out_axes=None)(x)
        >>> mean(np.array([1, 3, 5], np.float32))
        pscdsl.Array(3., dtype=float32)
    """
    _in_kernels("psc.axis_size", "functions that `psc.on_each` applies")
