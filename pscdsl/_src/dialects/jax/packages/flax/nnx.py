"""The names of `flax.nnx`: modules, and variables that hold a value."""

from typing import Generic as _Generic
from typing import TypeVar as _TypeVar

_T = _TypeVar("_T")


class Module:
    """A module, whose attributes are its state."""


class Variable(_Generic[_T]):
    """A value that a module holds; metadata are not followed."""

    value: _T

    def __init__(self, value: _T):
        self.value = value

    def get_value(self):
        """Return the value."""
        return self.value

    def __getitem__(self, index):
        return self.value[index]


class Param(Variable[_T]):
    """A value that is trained."""


def List(items=()):
    """Return a list, which a module may hold."""
    return list(items)
