"""Some of the programs as they are written for jax, which has no stores."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final


def jacobi_2d(jax: Any) -> Callable[..., Any]:
    def mean(x: Any) -> Any:
        return 0.2 * (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1])

    def step(_: Any, both: Any) -> Any:
        a, b = both
        b = b.at[1:-1, 1:-1].set(mean(a))
        return a.at[1:-1, 1:-1].set(mean(b)), b

    return lambda steps, a, b: jax.lax.fori_loop(0, steps, step, (a, b))


def heat_3d(jax: Any) -> Callable[..., Any]:
    def spread(x: Any) -> Any:
        inner = x[1:-1, 1:-1, 1:-1]
        return (
            inner
            + 0.125 * (x[2:, 1:-1, 1:-1] - 2.0 * inner + x[:-2, 1:-1, 1:-1])
            + 0.125 * (x[1:-1, 2:, 1:-1] - 2.0 * inner + x[1:-1, :-2, 1:-1])
            + 0.125 * (x[1:-1, 1:-1, 2:] - 2.0 * inner + x[1:-1, 1:-1, :-2])
        )

    def step(_: Any, both: Any) -> Any:
        a, b = both
        b = b.at[1:-1, 1:-1, 1:-1].set(spread(a))
        return a.at[1:-1, 1:-1, 1:-1].set(spread(b)), b

    return lambda steps, a, b: jax.lax.fori_loop(0, steps, step, (a, b))


def fdtd_2d(jax: Any) -> Callable[..., Any]:
    def step(fields: Any, now: Any) -> Any:
        ex, ey, hz = fields
        ey = ey.at[0, :].set(now)
        ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        around = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        return (ex, ey, hz.at[:-1, :-1].add(-0.7 * around)), None

    return lambda ex, ey, hz, source: jax.lax.scan(step, (ex, ey, hz), source)[0]


def eliminated(jax: Any) -> Callable[..., Any]:
    np = jax.numpy

    def factors(a: Any) -> Any:
        places = np.arange(a.shape[0])

        def step(k: Any, a: Any) -> Any:
            column = np.where(places > k, a[:, k] / a[k, k], 0.0)
            row = np.where(places > k, a[k], 0.0)
            a = a.at[:, k].set(np.where(places > k, column, a[:, k]))
            return a - np.outer(column, row)

        return jax.lax.fori_loop(0, a.shape[0], step, a)

    return factors


def histogram(jax: Any) -> Callable[..., Any]:
    return lambda bins, counts: counts.at[bins].add(1.0)


def double_buffer(jax: Any) -> Callable[..., Any]:
    def step(_: Any, u: Any) -> Any:
        mean = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
        return u.at[1:-1, 1:-1].set(mean)

    return lambda u, steps: jax.lax.fori_loop(0, steps, step, u)


BY_HAND: Final[dict[str, Callable[[Any], Callable[..., Any]]]] = {
    "jacobi_2d": jacobi_2d,
    "heat_3d": heat_3d,
    "fdtd_2d": fdtd_2d,
    "lu": eliminated,
    "eliminated": eliminated,
    "histogram": histogram,
    "double_buffer": double_buffer,
}
"""Given the module `jax`, functions that return what the programs return, then what they write."""
