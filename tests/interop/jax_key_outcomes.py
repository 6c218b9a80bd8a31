"""Runs programs under jax's own check of keys; started by tests in a process with jax."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any


def outcome(text: str) -> str:
    """Return what jax says of a program: `reused`, `once`, or the name of another error."""
    jax: Any = import_module("jax")
    core: Any = import_module("jax.experimental.key_reuse._core")
    namespace: dict[str, Any] = {}
    exec(compile(text, "<program>", "exec"), namespace)
    for flag in (True, False):
        try:
            traced = jax.make_jaxpr(namespace["main"], static_argnums=1)
            core.check_key_reuse_jaxpr(traced(jax.random.key(0), flag).jaxpr)
        except jax.errors.KeyReuseError:
            return "reused"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return "once"


if __name__ == "__main__":
    print(json.dumps([outcome(text) for text in json.load(sys.stdin)]))
