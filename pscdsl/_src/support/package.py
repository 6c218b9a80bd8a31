"""Where the files of the package are, and which classes are its own."""

from __future__ import annotations

import os
from typing import Final

FOLDER: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The folder `pscdsl` itself."""
LIBRARY: Final = os.path.realpath(os.path.join(FOLDER, "stdlib"))
"""The standard library, where its links lead."""
OWN_PRIMITIVES: Final = ("pscdsl._src.primitives.", "pscdsl._src.targets.")
"""How the names of modules begin that define primitives of ours."""
