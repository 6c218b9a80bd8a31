"""Attributes that arrays of JAX have, and NumPy's lack."""

from typing import NamedTuple

import numpy as np

import pscdsl as psc
from jax.numpy._creation import result_type
from jax.numpy._indexing import clip, fill_of, repeat, squeeze, take, wrapped
from jax.numpy._products import dot
from jax.numpy._reductions import (
    all,
    any,
    argsort,
    cumprod,
    cumsum,
    max,
    mean,
    min,
    prod,
    sort,
    std,
    sum,
    var,
)


class at(NamedTuple):
    """The places of an array: `x.at[i].set(v)` is a changed copy."""

    array: object

    def __getitem__(self, index):
        return Place(self.array, index)


class aval(NamedTuple):
    """The type of an array."""

    array: object

    @property
    def shape(self):
        """Return the sizes of its axes."""
        return self.array.shape

    @property
    def dtype(self):
        """Return the type of its elements."""
        return self.array.dtype


class Place(NamedTuple):
    """Some elements of an array; what is out of range is left out."""

    array: object
    index: object

    def set(self, values, **options):
        """Return the array with other elements there."""
        return _updated(self, np.asarray(values).astype(self.array.dtype), "set", **options)

    def add(self, values, **options):
        """Return the array with values added there, each as often as its place occurs."""
        return _combined(self, values, "add", **options)

    def subtract(self, values, **options):
        """Return the array with values subtracted there."""
        return _combined(self, np.negative(values), "add", **options)

    def multiply(self, values, **options):
        """Return the array with elements multiplied there."""
        return _combined(self, values, "multiply", **options)

    def mul(self, values, **options):
        """Return the array with elements multiplied there."""
        return _combined(self, values, "multiply", **options)

    def divide(self, values, **options):
        """Return the array with elements divided there."""
        factors = Place(np.ones(self.array.shape, self.array.dtype), self.index)
        return np.divide(self.array, _combined(factors, values, "multiply", **options)).astype(
            self.array.dtype
        )

    def power(self, values, **options):
        """Return the array with powers of the elements there."""
        exponents = Place(np.ones(self.array.shape, self.array.dtype), self.index)
        return np.power(self.array, _combined(exponents, values, "multiply", **options))

    def min(self, values, **options):
        """Return the array with the smaller values there."""
        return _combined(self, values, "minimum", **options)

    def max(self, values, **options):
        """Return the array with the larger values there."""
        return _combined(self, values, "maximum", **options)

    def apply(self, func, **options):
        """Return the array with a function's results there."""
        return _updated(
            self, func(self.array[self.index]).astype(self.array.dtype), "set", **options
        )

    def get(
        self,
        *,
        indices_are_sorted=False,
        unique_indices=False,
        mode=None,
        fill_value=None,
        out_sharding=None,
        wrap_negative_indices=True,
    ):
        """Return the elements there; those out of range are NaN or an extreme."""
        if mode != "fill":
            return self.array[self.index]
        places, inside = _places(self)
        found = self.array[self.index]
        if not inside:
            return found
        fill = fill_of(found.dtype) if fill_value is None else fill_value
        fill = np.asarray(fill, dtype=found.dtype)
        if not isinstance(self.index, tuple):
            (mask,) = inside
            mask = np.reshape(mask, (*mask.shape, *[1] * (self.array.ndim - 1)))
            return np.where(mask, found, fill)
        if [each for each in places if not _is_static(each) and np.ndim(each) > 0]:
            if not len(inside) == len(places):
                return psc.update.of_slices_beside_arrays
        mask = inside[0]
        for each in inside[1:]:
            mask = mask & each
        return np.where(
            np.reshape(mask, (*mask.shape, *[1] * (found.ndim - mask.ndim))), found, fill
        )


def _is_static(index):
    """Return whether an index is a slice, a new axis or a number that is known."""
    return index is None or index is ... or isinstance(index, (slice, int))


def _places(place):
    """Return the indices from the start, and the masks of those that are arrays."""
    index = place.index if isinstance(place.index, tuple) else (place.index,)
    if not [each for each in index if not _is_static(each)]:
        return index, []
    axis, ndim = 0, np.ndim(place.array)
    used = len([each for each in index if each is not None and each is not ...])
    found, masks = [], []
    for each in index:
        if each is None:
            found.append(each)
        elif each is ...:
            axis = axis + ndim - used
            found.append(each)
        elif _is_static(each) or np.asarray(each).dtype == bool:
            if not _is_static(each) and np.ndim(each) != 1 and len(index) > 1:
                return psc.update.of_masks_beside_others
            found.append(each)
            axis = axis + 1
        else:
            places, inside = wrapped(each, place.array.shape[axis])
            masks.append(inside)
            found.append(np.where(inside, places, place.array.shape[axis]))
            axis = axis + 1
    return tuple(found), masks


def _updated(
    place,
    values,
    combine,
    *,
    indices_are_sorted=False,
    unique_indices=False,
    mode=None,
    out_sharding=None,
):
    """Return a changed copy; places out of range go to a margin, which is cut off."""
    if mode in ("clip", "promise_in_bounds"):
        return psc.update(place.array, place.index, values, combine=combine)
    places, masks = _places(place)
    if not masks:
        return psc.update(place.array, place.index, values, combine=combine)
    array = place.array
    wide = _with_margins(places, array)
    changed = psc.update(wide, places if len(places) > 1 else places[0], values, combine=combine)
    return changed[tuple([slice(0, size) for size in array.shape])]


def _with_margins(places, array):
    """Return an array with a margin along the axes that have arrays as indices."""
    axis, margins = 0, [0] * array.ndim
    used = len([each for each in places if each is not None and each is not ...])
    for each in places:
        if each is ...:
            axis = axis + array.ndim - used
        elif each is not None:
            margins[axis] = 0 if _is_static(each) or np.asarray(each).dtype == bool else 1
            axis = axis + 1
    return np.pad(array, tuple([(0, margin) for margin in margins]))


def _combined(place, values, combine, **options):
    """Return a changed copy, computed at the dtype where array and values meet."""
    array = place.array
    met = result_type(array, values)
    wide = Place(array.astype(met), place.index)
    return _updated(wide, np.asarray(values).astype(met), combine, **options).astype(array.dtype)


def block_until_ready(array):
    """Return the array."""
    return array
