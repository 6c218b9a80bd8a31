"""`pscdsl server`: the language server."""

from __future__ import annotations

import argparse
from importlib.util import find_spec

from pscdsl._src.cli import Unusable, version


def run(arguments: argparse.Namespace) -> int:
    """Serve an editor over standard input and output."""
    del arguments
    missing = [name for name in ("pygls", "lsprotocol") if find_spec(name) is None]
    if missing:
        raise Unusable(f"the server needs {' and '.join(missing)}: pip install pygls")
    from pscdsl._src.server.protocol import serve  # which needs them

    serve(version())
    return 0
