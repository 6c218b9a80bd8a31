"""Incompressible flows by finite differences, as they are written in plain NumPy.

Helpers store into the arrays that they are given.
"""

# Python numbers become arrays.
# mypy: disable-error-code="assignment"

import numpy as np

from pscdsl import Static, f64, i32, i64
from tests.plain_numpy.program import Draw, NDArray, Program, Sizes, sizes


def pressure_source(
    b: f64["ny nx"], rho: f64, dt: f64, u: f64["ny nx"], v: f64["ny nx"], dx: f64, dy: f64
) -> None:
    dudx = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
    dudy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy)
    dvdx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
    dvdy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
    b[1:-1, 1:-1] = rho * ((dudx + dvdy) / dt - dudx**2 - 2 * dudy * dvdx - dvdy**2)


def relax_pressure(nit: i64, p: f64["ny nx"], dx: f64, dy: f64, b: f64["ny nx"]) -> None:
    for _ in range(nit):
        pn = p.copy()
        p[1:-1, 1:-1] = (
            dy**2 * (pn[1:-1, 2:] + pn[1:-1, :-2])
            + dx**2 * (pn[2:, 1:-1] + pn[:-2, 1:-1])
            - dx**2 * dy**2 * b[1:-1, 1:-1]
        ) / (2 * (dx**2 + dy**2))
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0


def cavity_flow(
    nx: Static[int],
    ny: Static[int],
    nt: i64,
    nit: i64,
    u: f64["ny nx"],
    v: f64["ny nx"],
    dt: f64,
    dx: f64,
    dy: f64,
    p: f64["ny nx"],
    rho: f64,
    nu: f64,
) -> None:
    assert nx >= 3
    assert ny >= 3
    b = np.zeros((ny, nx))
    for _ in range(nt):
        un = u.copy()
        vn = v.copy()
        pressure_source(b, rho, dt, u, v, dx, dy)
        relax_pressure(nit, p, dx, dy, b)
        inner = un[1:-1, 1:-1]
        u[1:-1, 1:-1] = (
            inner
            - inner * dt / dx * (inner - un[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (inner - un[:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2 * inner + un[1:-1, :-2])
            + nu * dt / dy**2 * (un[2:, 1:-1] - 2 * inner + un[:-2, 1:-1])
        )
        inner = vn[1:-1, 1:-1]
        v[1:-1, 1:-1] = (
            inner
            - un[1:-1, 1:-1] * dt / dx * (inner - vn[1:-1, :-2])
            - inner * dt / dy * (inner - vn[:-2, 1:-1])
            - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu * dt / dx**2 * (vn[1:-1, 2:] - 2 * inner + vn[1:-1, :-2])
            + nu * dt / dy**2 * (vn[2:, 1:-1] - 2 * inner + vn[:-2, 1:-1])
        )
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = 1  # the lid
        v[0, :] = v[-1, :] = 0
        v[:, 0] = v[:, -1] = 0


def periodic_source(
    rho: f64, dt: f64, dx: f64, dy: f64, u: f64["ny nx"], v: f64["ny nx"]
) -> f64["ny nx"]:
    b = np.zeros_like(u)
    dudx = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
    dudy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy)
    dvdx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
    dvdy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
    b[1:-1, 1:-1] = rho * ((dudx + dvdy) / dt - dudx**2 - 2 * dudy * dvdx - dvdy**2)
    # The first column is beside the last.
    for at, left, right in ((0, -1, 1), (-1, -2, 0)):
        dudx = (u[1:-1, right] - u[1:-1, left]) / (2 * dx)
        dudy = (u[2:, at] - u[:-2, at]) / (2 * dy)
        dvdx = (v[1:-1, right] - v[1:-1, left]) / (2 * dx)
        dvdy = (v[2:, at] - v[:-2, at]) / (2 * dy)
        b[1:-1, at] = rho * ((dudx + dvdy) / dt - dudx**2 - 2 * dudy * dvdx - dvdy**2)
    return b


def relax_periodic(nit: i64, p: f64["ny nx"], dx: f64, dy: f64, b: f64["ny nx"]) -> None:
    scale = 2 * (dx**2 + dy**2)
    for _ in range(nit):
        pn = p.copy()
        across = pn[1:-1, 2:] + pn[1:-1, :-2]
        along = pn[2:, 1:-1] + pn[:-2, 1:-1]
        source = dx**2 * dy**2 * b[1:-1, 1:-1]
        p[1:-1, 1:-1] = (dy**2 * across + dx**2 * along - source) / scale
        for at, left, right in ((0, -1, 1), (-1, -2, 0)):
            across = pn[1:-1, right] + pn[1:-1, left]
            along = pn[2:, at] + pn[:-2, at]
            source = dx**2 * dy**2 * b[1:-1, at]
            p[1:-1, at] = (dy**2 * across + dx**2 * along - source) / scale
        p[-1, :] = p[-2, :]
        p[0, :] = p[1, :]


def channel_flow(
    nit: i64,
    u: f64["ny nx"],
    v: f64["ny nx"],
    dt: f64,
    dx: f64,
    dy: f64,
    p: f64["ny nx"],
    rho: f64,
    nu: f64,
    force: f64,
) -> i32:
    assert u.shape[0] >= 3
    assert u.shape[1] >= 3
    udiff = 1
    stepcount = 0
    while udiff > 0.001:
        un = u.copy()
        vn = v.copy()
        b = periodic_source(rho, dt, dx, dy, u, v)
        relax_periodic(nit, p, dx, dy, b)
        west = np.roll(un, 1, axis=1)[1:-1]
        east = np.roll(un, -1, axis=1)[1:-1]
        u[1:-1] = (
            un[1:-1]
            - un[1:-1] * dt / dx * (un[1:-1] - west)
            - vn[1:-1] * dt / dy * (un[1:-1] - un[:-2])
            - dt / (2 * rho * dx) * (np.roll(p, -1, axis=1) - np.roll(p, 1, axis=1))[1:-1]
            + nu * dt / dx**2 * (east - 2 * un[1:-1] + west)
            + nu * dt / dy**2 * (un[2:] - 2 * un[1:-1] + un[:-2])
            + force * dt
        )
        west = np.roll(vn, 1, axis=1)[1:-1]
        east = np.roll(vn, -1, axis=1)[1:-1]
        v[1:-1] = (
            vn[1:-1]
            - un[1:-1] * dt / dx * (vn[1:-1] - west)
            - vn[1:-1] * dt / dy * (vn[1:-1] - vn[:-2])
            - dt / (2 * rho * dy) * (p[2:] - p[:-2])
            + nu * dt / dx**2 * (east - 2 * vn[1:-1] + west)
            + nu * dt / dy**2 * (vn[2:] - 2 * vn[1:-1] + vn[:-2])
        )
        u[0, :] = u[-1, :] = 0
        v[0, :] = v[-1, :] = 0
        udiff = (np.sum(u) - np.sum(un)) / np.sum(u)
        stepcount += 1
    return stepcount


def slowed(draw: Draw, s: Sizes) -> NDArray:
    """Somewhat less than the steady flow in a channel, which takes a while to get there."""
    y = np.linspace(0.0, 2.0, s.ny)[:, np.newaxis]
    return 1e-4 + 0.9 * y * (2.0 - y) * (1.0 + 0.05 * draw.reals(s.ny, s.nx))


PROGRAMS = (
    Program(
        cavity_flow,
        lambda draw, s: (
            *(s.nx, s.ny, s.nt, s.nit, draw.reals(s.ny, s.nx), draw.reals(s.ny, s.nx)),
            *(0.001, 2 / (s.nx - 1), 2 / (s.ny - 1), draw.reals(s.ny, s.nx), 1.0, 0.1),
        ),
        sizes(
            "nx ny nt nit", (4, 5, 0, 1), (3, 3, 1, 1), (3, 5, 2, 3), (5, 4, 3, 2), (9, 19, 5, 4)
        ),
        writes=("u", "v", "p"),
    ),
    Program(
        channel_flow,
        lambda draw, s: (
            *(s.nit, slowed(draw, s), 0.01 * draw.reals(s.ny, s.nx)),
            *(0.02, 2 / (s.nx - 1), 2 / (s.ny - 1), draw.reals(s.ny, s.nx), 1.0, 0.5, 1.0),
        ),
        sizes("nx ny nit", (3, 3, 1), (3, 5, 2), (5, 4, 3), (9, 11, 4)),
        writes=("u", "v", "p"),
        tolerance=1e-10,
    ),
)
