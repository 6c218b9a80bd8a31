"""Attributes that arrays of JAX have, and NumPy's lack."""

from typing import NamedTuple

import pscdsl as psc


class at(NamedTuple):
    """The places of an array: `x.at[i].set(v)` is a changed copy."""

    array: object

    def __getitem__(self, index):
        return Place(self.array, index)


class Place(NamedTuple):
    """Some elements of an array."""

    array: object
    index: object

    def set(self, values, *, indices_are_sorted=False, unique_indices=False):
        """Return the array with other elements there."""
        return psc.update(self.array, self.index, values)

    def add(self, values, *, indices_are_sorted=False, unique_indices=False):
        """Return the array with values added there, each as often as its place occurs."""
        return psc.update(self.array, self.index, values, combine="add")


def block_until_ready(array):
    """Return the array."""
    return array
