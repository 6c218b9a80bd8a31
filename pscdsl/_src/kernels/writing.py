"""Calls from Python of kernels that write to their arguments: `@psc.kernel(writes=("A", "B"))`.

The pure form of the kernel is called, `Kernel.functional`.  When all that it returns is computed
and every argument was found to take it, the new contents are copied to the arrays of the caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pscdsl._src.calls.errors import ArgumentError
from pscdsl._src.language.writes import split
from pscdsl._src.support.tracebacks import public
from pscdsl._src.xla.binding import flatten
from pscdsl._src.xla.runtime.boot import ArrayImpl
from pscdsl._src.xla.runtime.devices import host_view, to_numpy
from pscdsl.typing.python_containers import NDArray

if TYPE_CHECKING:
    from pscdsl._src.kernels.kernel import Kernel

_SHARES: Final[Any] = np.shares_memory  # its types know no other `max_work` than 0 and -1
MOST_WORK: Final = 100_000
"""The most steps to find out whether two arrays share memory: see np.shares_memory."""
_NO_ARRAYS: Final = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)


class WritingCalls:
    """Calls the functional form of a kernel, and stores its results into the arguments."""

    def __init__(self, functional: Kernel[..., Any], writes: Sequence[str]) -> None:
        self._functional = functional
        self._name = functional.name
        parameters = functional.python_signature.parameters
        self._writes = [name for name in parameters if name in writes]
        is_plain = all(each.kind is not each.KEYWORD_ONLY for each in parameters.values())
        self._parameters = tuple(parameters) if is_plain else ()
        """All parameters, if all may be given by position."""
        self._captured: tuple[object, Sequence[NDArray]] = (None, ())

    @public
    def entry(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of a call; if that fails, an ArgumentError, without any write."""
        functional = self._functional
        if kwargs or len(args) != len(self._parameters):
            given: Mapping[str, Any] = functional.bound(args, kwargs)
        else:
            given = dict(zip(self._parameters, args, strict=True))
        targets = {name: self._target(name, given[name]) for name in self._writes}
        found = functional(*args, **kwargs)
        result, contents = split(found, len(targets))
        self._refuse_overlap(targets, given)
        for leaf in () if result is None else flatten(result)[0]:
            if type(leaf) is ArrayImpl:
                leaf.block_until_ready()
        pairs = [
            (target, to_numpy(content))
            for target, content in zip(targets.values(), contents, strict=True)
        ]
        for (name, target), (_, content) in zip(targets.items(), pairs, strict=True):
            if target.shape != content.shape or (
                target.dtype is not content.dtype
                and not np.can_cast(content.dtype, target.dtype, "equiv")
            ):
                raise ArgumentError(f"{self._about(name)} was changed while the call ran")
            self._require_writeable(name, target)
        for target, content in pairs:
            np.copyto(target, content, casting="equiv")
        return result

    def _about(self, name: str) -> str:
        return f"argument `{name}` of `{self._name}`, which writes to it,"

    def _target(self, name: str, value: Any) -> NDArray:
        """Return the array that is written for a parameter."""
        about = self._about(name)
        if type(value) not in (np.ndarray, np.memmap):
            kind = "a device array" if type(value) is ArrayImpl else f"a {type(value).__name__}"
            raise ArgumentError(
                f"{about} is {kind}, and is not replaced where the caller has it: pass a NumPy "
                f"array, or bind what `{self._name}.functional` returns"
            )
        target: NDArray = value
        self._require_writeable(name, target)
        if not target.flags.c_contiguous and not _is_everywhere_apart(target):
            raise ArgumentError(f"{about} has elements that share memory: pass a copy")
        return target

    def _require_writeable(self, name: str, target: NDArray) -> None:
        if not target.flags.writeable:
            raise ArgumentError(f"{self._about(name)} is read-only: pass a copy")

    def _refuse_overlap(self, targets: Mapping[str, NDArray], given: Mapping[str, Any]) -> None:
        """Raise an ArgumentError if a written array may share memory with one that is read."""
        for name, target in targets.items():
            for other, value in given.items():
                if other == name:
                    continue
                for leaf in (value,) if type(value) is np.ndarray else flatten(value)[0]:
                    if _may_overlap(target, leaf):
                        raise ArgumentError(
                            f"{self._about(name)} may share memory with argument `{other}`: "
                            f"pass a copy of one of them"
                        )
            for array in self._captured_arrays():
                if _may_overlap(target, array):
                    raise ArgumentError(
                        f"{self._about(name)} may share memory with an array that the kernel "
                        f"captured: pass a copy"
                    )

    def _captured_arrays(self) -> Sequence[NDArray]:
        """Return the arrays that were looked up when the kernel was read."""
        watch = self._functional.watch
        if self._captured[0] is not watch or watch is None:
            arrays = [] if watch is None else [each for each in watch.arrays()]
            self._captured = watch, arrays
        return self._captured[1]


def _is_everywhere_apart(array: NDArray) -> bool:
    """Return whether certainly no elements share memory: each axis steps over all smaller ones."""
    extent = array.itemsize
    axes = zip(array.strides, array.shape, strict=True)
    for stride, size in sorted((abs(stride), size) for stride, size in axes):
        if size > 1 and stride < extent:
            return array.size == 0
        extent += (size - 1) * stride if size else 0
    return True


def _may_overlap(target: NDArray, value: Any) -> bool:
    """Return whether a value may hold memory of an array."""
    if type(value) is np.ndarray:
        return np.may_share_memory(target, value) and _overlap(target, value)
    return any(
        array is None or (np.may_share_memory(target, array) and _overlap(target, array))
        for array in _memory(value)
    )


def _overlap(target: NDArray, array: NDArray) -> bool:
    """Return whether arrays whose bounds overlap share elements, or may."""
    try:
        shares: bool = _SHARES(target, array, max_work=MOST_WORK)
    except np.exceptions.TooHardError:
        return True
    return shares


def _memory(value: Any) -> Iterator[NDArray | None]:
    """Yield the memory of a leaf of an argument; None if some of it cannot be seen."""
    if isinstance(value, np.ndarray):
        yield value
    elif type(value) is ArrayImpl:
        if value.is_deleted():
            return
        yield to_numpy(value)
    elif not isinstance(value, _NO_ARRAYS) and hasattr(value, "__dlpack__"):
        try:
            yield host_view(value)
        except (BufferError, RuntimeError, TypeError):
            yield None
