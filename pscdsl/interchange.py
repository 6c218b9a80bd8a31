"""Arrays of other libraries, without copies where that is possible: DLPack."""

from __future__ import annotations

from typing import Any


def from_dlpack(exporter: Any, *, copy: bool | None = None) -> Any:
    """An `Array` with the contents of another library's: NumPy's, PyTorch's, or jax's.

    Its memory is shared where it is contiguous in C order and aligned to 64 bytes, and copied
    otherwise; whoever owns shared memory must not write to it any more.  `copy=True` always copies;
    `copy=False` raises a BufferError where the memory cannot be shared, as do arrays that are not
    in the memory of this host.  The other way, `np.from_dlpack`, `torch.from_dlpack` and
    `jax.numpy.from_dlpack` take an `Array` and never copy.
    """
    from pscdsl.xla.client import from_dlpack

    return from_dlpack(exporter, copy=copy)


def host_view(exporter: Any) -> Any:
    """A NumPy array that shares another library's memory; a BufferError if none can."""
    from pscdsl.xla.client import view

    return view(exporter)
