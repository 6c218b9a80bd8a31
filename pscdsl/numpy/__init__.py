"""NumPy's vocabulary as kernels see it: what each name means on traced arrays.

Inside these files `numpy` is the real NumPy, used for constants and for what is known while
checking; the meanings are declared with `language.meanings.function` under NumPy's own names.

For users `psc.numpy` is another name of NumPy: the same in kernels, and itself outside of them.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import numpy  # which would be a name of this module

    return getattr(numpy, name)
