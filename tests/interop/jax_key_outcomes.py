"""Runs programs under jax's own check of keys; started by tests in a process with jax."""

from __future__ import annotations

import json
import sys
from typing import Any


def outcome(text: str) -> str:
    """Return what jax says of a program: `reused`, `once`, or the name of another error."""
    import jax
    from jax.experimental.key_reuse import _core

    namespace: dict[str, Any] = {}
    exec(compile(text, "<program>", "exec"), namespace)
    for flag in (True, False):
        try:
            traced = jax.make_jaxpr(lambda key, flag=flag: namespace["main"](key, flag))
            _core.check_key_reuse_jaxpr(traced(jax.random.key(0)).jaxpr)
        except jax.errors.KeyReuseError:
            return "reused"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return "once"


if __name__ == "__main__":
    print(json.dumps([outcome(text) for text in json.load(sys.stdin)]))
