"""The loops of `benchmarks.effects_ours` in jax."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from tempfile import TemporaryDirectory
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

    def checking(function: Any, errors: Any) -> float:
        """Return the time of a function that returns what `checkify` found, and raises it."""
        check = jax.jit(checkify.checkify(function, errors=errors))

        def call() -> Any:
            error, result = check(X, STEPS)
            error.throw()
            return jax.block_until_ready(result)

        return best(call)

    off = timed(jax.jit(loop(nothing)))
    found = {"print": (off, timed(jax.jit(loop(printing))))}
    found["check"] = off, checking(loop(checked), checkify.user_checks)
    values: list[Any] = []

    def recorded(i: Any, x: Any) -> None:
        jax.debug.callback(values.append, jnp.mean(x), ordered=True)

    found["value"] = off, timed(jax.jit(loop(recorded)))

    def indexed(x: Any, steps: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            return jnp.tanh(x @ x + x[7 * i % x.shape[0]])

        return jax.lax.fori_loop(0, steps, body, x)

    found["index"] = timed(jax.jit(indexed)), checking(indexed, checkify.index_checks)
    plain = loop(nothing)
    found["NaN, by checkify"] = off, checking(plain, checkify.nan_checks)
    compiled = jax.jit(plain)

    def profiled(folder: str) -> None:
        with jax.profiler.trace(folder):
            jax.block_until_ready(compiled(X, STEPS))

    with TemporaryDirectory() as folder:
        found["profile"] = off, best(lambda: profiled(folder))
    jax.config.update("jax_debug_nans", True)
    found["NaN"] = off, timed(jax.jit(loop(nothing)))
    return found
