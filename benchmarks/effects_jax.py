"""The loops of `benchmarks.effects_ours` in jax."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from benchmarks.effects import STEPS, X, best

jax: Any = importlib.import_module("jax")
jnp: Any = importlib.import_module("jax.numpy")
checkify: Any = importlib.import_module("jax.experimental.checkify")


def measured() -> dict[str, tuple[float, float]]:
    """Return the time without and with each effect."""

    def loop(effect: Callable[[Any, Any], Any]) -> Any:
        def run(x: Any, steps: Any) -> Any:
            def body(i: Any, x: Any) -> Any:
                effect(i, x)
                return jnp.tanh(x @ x)

            return jax.lax.fori_loop(0, steps, body, x)

        return run

    def nothing(i: Any, x: Any) -> None:
        del i, x

    def printing(i: Any, x: Any) -> None:
        jax.debug.print("{i} {x}", i=i, x=jnp.sum(x), ordered=True)

    def checked(i: Any, x: Any) -> None:
        checkify.check(jnp.isfinite(x).all(), "step {i}", i=i)

    def timed(function: Any) -> float:
        return best(lambda: jax.block_until_ready(function(X, STEPS)))

    off = timed(jax.jit(loop(nothing)))
    found = {"print": (off, timed(jax.jit(loop(printing))))}
    check = jax.jit(checkify.checkify(loop(checked)))
    found["check"] = off, best(lambda: check(X, STEPS)[0].throw())
    jax.config.update("jax_debug_nans", True)
    found["NaN"] = off, timed(jax.jit(loop(nothing)))
    return found
