"""Records as arguments and results of calls: every kind of class, by way of Python and in C++."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.xla.runtime.devices import put

pytestmark = pytest.mark.jaxlib


class Plain(psc.Record):
    """Two fields."""

    a: f32["n"]
    b: f32["n"]


class Derived(Plain):
    """One more."""

    c: f32["n"]


class Single(psc.Record):
    """One field."""

    a: f32["n"]


@dataclass(frozen=True, slots=True)
class Slotted:
    """Without a dictionary."""

    a: f32["n"]
    b: f32["n"]


@dataclass(frozen=True)
class Counted:
    """A class that looks at what it is given."""

    a: f32["n"]
    b: f32["n"]

    def total(self) -> Any:
        """The sum of its fields."""
        return self.a + self.b


@psc.kernel
def plain(x: Plain) -> Plain:
    return Plain(x.a + 1, x.b * 2)


@psc.kernel
def derived(x: Derived) -> Derived:
    return Derived(x.a + 1, x.b * 2, x.c)


@psc.kernel
def single(x: Single) -> Single:
    return Single(x.a + 1)


@psc.kernel
def slotted(x: Slotted) -> Slotted:
    return Slotted(x.a + 1, x.b * 2)


@psc.kernel
def counted(x: Counted) -> Counted:
    return Counted(x.a + 1, x.total())


@pytest.mark.parametrize(
    ("kernel", "made", "expected"),
    [
        (plain, Plain, (3, 4)),
        (derived, Derived, (3, 4, 2)),
        (single, Single, (3,)),
        (slotted, Slotted, (3, 4)),
        (counted, Counted, (3, 4)),
    ],
)
def test_a_class_comes_back(kernel: Any, made: Any, expected: tuple[int, ...]) -> None:
    host = np.full(3, 2, np.float32)
    for give in (put, put, np.copy, np.copy):
        result = kernel(made(*[give(host) for _ in expected]))
        assert type(result) is made
        names = ("a", "b", "c")[: len(expected)]
        assert [np.asarray(getattr(result, name))[0] for name in names] == list(expected)
        with pytest.raises((AttributeError, TypeError)):
            result.a = host
    again = kernel(kernel(made(*[host for _ in expected])))
    assert type(again) is made
    assert np.asarray(again.a)[0] == 4
