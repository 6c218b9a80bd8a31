"""What typeguard asks about types.  Installed beside the package, so that it loads without it.

typeguard asks for it when it is imported, for instance by its own plug-in of pytest.
"""

from __future__ import annotations

import sys
from typing import Any


def lookup(origin: Any, args: tuple[Any, ...], extras: tuple[Any, ...]) -> Any:
    """How to check values of a type; None for types that are not ours.

    Where the package is not loaded, no type is.
    """
    if "pscdsl.arrays" not in sys.modules:
        return None
    from pscdsl._src.plugins.typeguard import lookup

    return lookup(origin, args, extras)
