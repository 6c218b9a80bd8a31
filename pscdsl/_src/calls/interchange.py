"""Arrays of other libraries, without copies where that is possible: DLPack."""

from __future__ import annotations

from typing import Any


def from_dlpack(exporter: Any, *, copy: bool | None = None) -> Any:
    """Return an `Array` with the contents of another library's array: NumPy's, PyTorch's or jax's.

    The memory is shared if it is contiguous in C order and aligned to 64 bytes; its owner must not
    write to it afterwards. In the other direction, `np.from_dlpack`, `torch.from_dlpack` and
    `jax.numpy.from_dlpack` accept an `Array` and never copy.

    Args:
        exporter: An array with DLPack.
        copy: True always copies; False never does; None copies if the memory cannot be shared.

    Raises:
        BufferError: The memory cannot be shared and `copy` is False, or it is not host memory.
    """
    from pscdsl._src.xla.runtime.devices import from_dlpack

    return from_dlpack(exporter, copy=copy)


def host_view(exporter: Any) -> Any:
    """A NumPy array that shares another library's memory; a BufferError if none can."""
    from pscdsl._src.xla.runtime.devices import view

    return view(exporter)
