"""What functions that are known by name do to their arguments: write them, or hand them on."""

from __future__ import annotations

import functools
import io
import sys

import numpy as np

MUTATORS = frozenset(
    "append appendleft extend extendleft insert pop popleft popitem remove clear sort reverse "
    "rotate update setdefault add discard intersection_update difference_update "
    "symmetric_difference_update fill put resize partition itemset setflags byteswap setfield "
    "__setitem__ __delitem__ __setattr__ __delattr__ __iadd__ __isub__ __imul__ __itruediv__ "
    "__ifloordiv__ __imod__ __ipow__ __imatmul__ __iand__ __ior__ __ixor__".split()
)
"""Methods that change the object they belong to."""
HOLDERS = frozenset(
    "append appendleft add insert put setdefault register push set __setitem__".split()
)
"""Methods after which an object holds their argument."""
SPREADERS = frozenset({"extend", "extendleft", "update"})
"""Methods after which an object holds the items of their argument."""
VIEWS = frozenset(
    "reshape ravel transpose swapaxes squeeze diagonal view newbyteorder byteswap getfield "
    "get items values keys pop popleft popitem setdefault __getitem__ __iter__ __enter__ "
    "__array__ to_device flat T real imag base data ctypes mT".split()
)
"""Methods and attributes that give the object itself or a part of it."""

_WRITE_FIRST = frozenset(
    "numpy.put numpy.place numpy.putmask numpy.fill_diagonal numpy.put_along_axis numpy.copyto "
    "numpy.random.shuffle random.shuffle heapq.heappush heapq.heappop heapq.heapify "
    "heapq.heapreplace heapq.heappushpop bisect.insort bisect.insort_left bisect.insort_right "
    "operator.setitem operator.delitem operator.iadd operator.isub operator.imul operator.imod "
    "operator.itruediv operator.ifloordiv operator.imatmul operator.iconcat operator.ior "
    "operator.iand operator.ixor operator.ipow operator.ilshift operator.irshift "
    "builtins.delattr".split()
)
_WRITE_SECOND = frozenset({"struct.pack_into"})
_ELEMENTS = frozenset(
    "builtins.list builtins.tuple builtins.set builtins.frozenset builtins.dict builtins.sorted "
    "builtins.map builtins.filter copy.copy collections.deque collections.OrderedDict "
    "itertools.chain itertools.cycle itertools.islice itertools.starmap types.SimpleNamespace "
    "types.MappingProxyType collections.ChainMap functools.reduce functools.partial "
    "builtins.max builtins.min".split()
)
"""What they give holds what the argument holds."""
_ROWS = frozenset(
    {"builtins.zip", "builtins.enumerate", "itertools.product", "itertools.zip_longest"}
)
"""What they give holds tuples of what the argument holds."""
_SAME = frozenset(
    "builtins.iter builtins.reversed builtins.memoryview builtins.super typing.cast "
    "weakref.ref weakref.proxy operator.itemgetter builtins.type builtins.vars "
    "typing.final contextlib.nullcontext".split()
)
_NUMPY_VIEWS = frozenset(
    "asarray asanyarray ascontiguousarray asfortranarray require array ravel reshape transpose "
    "swapaxes moveaxis rollaxis squeeze expand_dims broadcast_to broadcast_arrays atleast_1d "
    "atleast_2d atleast_3d split array_split hsplit vsplit dsplit diagonal flip fliplr flipud "
    "rot90 real imag nditer frombuffer matrix_transpose permute_dims nan_to_num ndenumerate "
    "unstack from_dlpack".split()
)
UNSEEN = frozenset({"ctypes", "cffi", "_ctypes"})
"""Modules of Python's own that write wherever they are told to."""


def writes(name: str, position: int | str) -> bool:
    """Whether a function writes the argument at a position or keyword."""
    if position == "out" and name.startswith(("numpy.", "scipy.")):
        return True
    if name.startswith("numpy.") and name.endswith(".at") and position == 0:
        return True
    owner, _, method = name.rpartition(".")
    if position == 0 and method in MUTATORS and owner in METHOD_OWNERS:
        return True
    return name in (_WRITE_FIRST if position == 0 else _WRITE_SECOND if position == 1 else ())


METHOD_OWNERS = frozenset(
    "builtins.list builtins.dict builtins.set builtins.object builtins.type builtins.bytearray "
    "numpy.ndarray collections.deque collections.OrderedDict array.array".split()
)
"""Classes whose methods are also called as functions: `list.append(rows, x)`."""


def handed_on(name: str) -> int | None:
    """How many containers are put around the argument in what a function returns.

    None: the result has no part in it; 0: the argument itself, or a view of it.
    """
    if name in _SAME:
        return 0
    if name.startswith("numpy.") and name.removeprefix("numpy.") in _NUMPY_VIEWS:
        return 0
    if name.startswith("numpy.lib.stride_tricks."):
        return 0
    if name in _ELEMENTS:
        return 1
    return 2 if name in _ROWS else None


def is_seen(name: str) -> bool:
    """Whether it is known of a function that it writes no argument but those it is known for."""
    top = name.partition(".")[0]
    if top in UNSEEN:
        return False
    return top in sys.stdlib_module_names or top in _LIBRARIES


_LIBRARIES = frozenset("builtins numpy pscdsl pyrsistent typeguard jaxtyping pytest".split())


def _public(*kinds: type) -> frozenset[str]:
    return frozenset(name for kind in kinds for name in dir(kind))


_OTHERS = frozenset(
    "debug info warning error exception critical log submit send apply_async starmap imap "
    "assertEqual assertTrue assertAlmostEqual assertListEqual assertSequenceEqual".split()
)
_OF_CLASSES: tuple[type, ...] = (
    *(list, dict, set, frozenset, tuple, str, bytes, np.ndarray),
    *(io.TextIOWrapper, io.BytesIO),
)


@functools.cache
def _known_methods() -> frozenset[str]:
    return _public(*_OF_CLASSES) - {"readinto", "readinto1"} | _OTHERS


def is_known_method(name: str) -> bool:
    """Whether a method of an object of unknown class is one of Python's or NumPy's own classes."""
    return name in _known_methods()
