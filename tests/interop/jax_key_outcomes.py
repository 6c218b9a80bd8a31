"""Runs programs under jax's own check of keys; started by tests in a process with jax."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any


def outcome(text: str) -> str:
    """Return what jax says of a program: `reused`, `once`, or the name of another error."""
    jax: Any = import_module("jax")
    namespace: dict[str, Any] = {}
    exec(compile(text, "<program>", "exec"), namespace)
    for flag in (True, False):
        found = _traced(namespace["main"], jax.random.key(0), flag)
        if found != "once":
            return found
    return "once"


def outcomes_of_functions(blocks: Sequence[str]) -> dict[str, str]:
    """Return what jax says of each function; the first block imports."""
    jax: Any = import_module("jax")
    jnp: Any = import_module("jax.numpy")
    keys = jax.random.split(jax.random.key(0), 2)
    given: dict[str, Any] = {
        "data": jax.random.key_data(jax.random.key(0)),
        "flag": True,
        "seed": 0,
        "x": 1.0,
    }
    outcomes: dict[str, str] = {}
    head, *rest = blocks
    for block in rest:
        namespace: dict[str, Any] = {}
        exec(compile(head + block, "<program>", "exec"), namespace)
        for name, function in namespace.items():
            if f"def {name}(" not in block:
                continue
            key: Any = jax.random.key(0)
            if name.startswith("squeezed"):
                key = key[None]
            arguments = [
                given.get(parameter, keys[:1] if name in ("concatenated", "joined_once") else key)
                for parameter in inspect.signature(function).parameters
            ]
            if name in ("by_seed", "twice"):
                arguments = [jnp.arange(4)]
            if name == "one_of_two":
                arguments = [key, keys[1]]
            outcomes[name] = _traced(function, *arguments)
    return outcomes


def _traced(function: Any, *arguments: Any) -> str:
    """Return what jax says of one trace of a function; Python's own values are not traced."""
    jax: Any = import_module("jax")
    core: Any = import_module("jax.experimental.key_reuse._core")
    static = tuple(n for n, each in enumerate(arguments) if isinstance(each, bool))
    try:
        traced = jax.make_jaxpr(function, static_argnums=static)(*arguments)
        core.check_key_reuse_jaxpr(traced.jaxpr)
    except jax.errors.KeyReuseError:
        return "reused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "once"


if __name__ == "__main__":
    texts = json.load(sys.stdin)
    of_functions = "--functions" in sys.argv
    print(json.dumps(outcomes_of_functions(texts) if of_functions else [*map(outcome, texts)]))
