"""Calls of NumPy's and SciPy's functions: what is recorded, and which of them are replayed."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
import pickle
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import EllipsisType
from typing import Any, Final

import numpy as np

LARGEST: Final = 1 << 13
"""The most bytes that the arrays of a call, or of its result, may have."""
DTYPES: Final = frozenset("?bBhHiIlLqQefdFD")
"""The characters of the dtypes that kernels have."""
PLAIN: Final = (bool, int, float, complex, str, type(None), EllipsisType)
TYPES: Final = (bool, int, float, complex)


class LeftOut(Exception):
    """A call is not recorded, for the reason that it says."""


@dataclass(frozen=True)
class Call:
    """A call of a function, a method or an operator, by name."""

    name: str
    """Such as `numpy.linalg.norm`, `ndarray.sum`, `operator.add`."""
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def key(self) -> bytes:
        """Bytes that differ for different calls."""
        whole = pickle.dumps((self.name, self.args, sorted(self.kwargs.items())))
        return hashlib.sha1(whole, usedforsecurity=False).digest()


@dataclass
class Recording:
    """The distinct calls that some tests make, and the numbers of those left out."""

    calls: list[Call] = field(default_factory=list[Call])
    left_out: Counter[str] = field(default_factory=Counter[str])

    def save(self, path: Path) -> None:
        """Write to a file."""
        path.write_bytes(pickle.dumps((self.calls, self.left_out)))

    @staticmethod
    def load(path: Path) -> Recording:
        """Read from a file that this machine wrote."""
        return Recording(*pickle.loads(path.read_bytes()))


def is_array(x: object) -> bool:
    """Return whether an argument becomes a parameter."""
    return isinstance(x, np.ndarray | np.generic)


def copied(x: Any) -> Any:
    """Return an argument without the memory of the caller; raise LeftOut if a kernel has none."""
    if isinstance(x, np.ndarray | np.generic):
        if isinstance(x, np.ndarray) and type(x) is not np.ndarray:
            raise LeftOut(f"a subclass: {type(x).__name__}")
        if x.dtype.char not in DTYPES or not x.dtype.isnative:
            raise LeftOut(f"dtype {x.dtype.kind if x.dtype.isnative else 'byte order'}")
        if x.nbytes > LARGEST:
            raise LeftOut("a large array")
        return x.copy()
    if type(x) is slice:
        return slice(copied(x.start), copied(x.stop), copied(x.step))
    if type(x) in (tuple, list):
        if len(x) > 100:
            raise LeftOut("a long list")
        return type(x)([copied(item) for item in x])
    if isinstance(x, np.dtype):
        return _with_char(x)
    if isinstance(x, type):
        if x in TYPES:
            return x
        if issubclass(x, np.generic):
            return x if np.dtype(x).char in DTYPES else _with_char(np.dtype(x))
        raise LeftOut("another type")
    if type(x) not in PLAIN or (isinstance(x, str) and len(x) > 100):
        raise LeftOut(f"an argument: {type(x).__name__}")
    return x


def _with_char(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.char not in DTYPES or not dtype.isnative:
        raise LeftOut(f"dtype {dtype.kind if dtype.isnative else 'byte order'}")
    return dtype


def mapped(change: Callable[[Any], Any], tree: Any) -> Any:
    """Return a structure of lists, tuples and slices with its leaves changed."""
    if type(tree) in (list, tuple):
        return type(tree)([mapped(change, item) for item in tree])
    if type(tree) is slice:
        return slice(*(mapped(change, part) for part in (tree.start, tree.stop, tree.step)))
    return change(tree)


def leaves(tree: Any) -> Iterator[Any]:
    """Yield what is in lists, tuples and slices."""
    if type(tree) in (list, tuple):
        for item in tree:
            yield from leaves(item)
    elif type(tree) is slice:
        yield from leaves((tree.start, tree.stop, tree.step))
    else:
        yield tree


def sampled(calls: Sequence[Call], count: int, seed: int) -> list[Call]:
    """Return some calls, in turn one of each function, in an order that the seed decides."""
    of: defaultdict[str, list[Call]] = defaultdict(list)
    for call in calls:
        of[call.name].append(call)
    order = random.Random(seed)
    for same in of.values():
        order.shuffle(same)
    chosen: list[Call] = []
    while len(chosen) < count and of:
        for name in sorted(of):
            chosen.append(of[name].pop())
            if not of[name]:
                del of[name]
    return chosen[:count]
