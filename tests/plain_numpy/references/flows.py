"""What the flows compute, point by point."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from tests.plain_numpy.program import NDArray

Point = tuple[int, int]


class Grid:
    """Differences of fields at a point; the columns of a periodic grid go around."""

    def __init__(self, dx: float, dy: float, width: int) -> None:
        self.dx, self.dy, self.width = dx, dy, width

    def near(self, x: NDArray, at: Point, down: int, right: int) -> float:
        """The value at some neighbour."""
        return float(x[at[0] + down, (at[1] + right) % self.width])

    def along_x(self, x: NDArray, at: Point) -> float:
        """The central difference along the columns."""
        return (self.near(x, at, 0, 1) - self.near(x, at, 0, -1)) / (2 * self.dx)

    def along_y(self, x: NDArray, at: Point) -> float:
        """The central difference along the rows."""
        return (self.near(x, at, 1, 0) - self.near(x, at, -1, 0)) / (2 * self.dy)

    def laplacian(self, x: NDArray, at: Point) -> float:
        """The sum of second differences."""
        across = self.near(x, at, 0, 1) - 2 * x[at] + self.near(x, at, 0, -1)
        along = self.near(x, at, 1, 0) - 2 * x[at] + self.near(x, at, -1, 0)
        return float(across / self.dx**2 + along / self.dy**2)

    def source(self, u: NDArray, v: NDArray, at: Point, rho: float, dt: float) -> float:
        """The right side of the equation for the pressure."""
        ux, uy = self.along_x(u, at), self.along_y(u, at)
        vx, vy = self.along_x(v, at), self.along_y(v, at)
        return rho * ((ux + vy) / dt - ux * ux - 2 * uy * vx - vy * vy)

    def relaxed(self, p: NDArray, at: Point, b: float) -> float:
        """One step of Jacobi's method for the pressure."""
        across = (self.near(p, at, 0, 1) + self.near(p, at, 0, -1)) / self.dx**2
        along = (self.near(p, at, 1, 0) + self.near(p, at, -1, 0)) / self.dy**2
        return (across + along - b) / (2 / self.dx**2 + 2 / self.dy**2)

    def moved(self, x: NDArray, u: NDArray, v: NDArray, at: Point, dt: float, nu: float) -> float:
        """A velocity after one step of upwind convection and diffusion."""
        convected = u[at] * (x[at] - self.near(x, at, 0, -1)) / self.dx
        convected += v[at] * (x[at] - self.near(x, at, -1, 0)) / self.dy
        return float(x[at] + dt * (nu * self.laplacian(x, at) - convected))


def step(
    grid: Grid,
    columns: range,
    u: NDArray,
    v: NDArray,
    p: NDArray,
    dt: float,
    rho: float,
    nu: float,
    force: float = 0.0,
) -> tuple[NDArray, NDArray]:
    """Both velocities after a step, before the edges are set."""
    new_u, new_v = u.copy(), v.copy()
    for at in product(range(1, len(u) - 1), columns):
        pushed = force - grid.along_x(p, at) / rho
        new_u[at] = grid.moved(u, u, v, at, dt, nu) + dt * pushed
        new_v[at] = grid.moved(v, u, v, at, dt, nu) - dt * grid.along_y(p, at) / rho
    return new_u, new_v


def cavity_flow(
    nx: int,
    ny: int,
    nt: int,
    nit: int,
    u: NDArray,
    v: NDArray,
    dt: float,
    dx: float,
    dy: float,
    p: NDArray,
    rho: float,
    nu: float,
) -> Any:
    grid, columns = Grid(dx, dy, nx), range(1, nx - 1)
    inside = list(product(range(1, ny - 1), columns))
    for _ in range(nt):
        b = {at: grid.source(u, v, at, rho, dt) for at in inside}
        for _ in range(nit):
            old = p.copy()
            for at in inside:
                p[at] = grid.relaxed(old, at, b[at])
            p[:, -1] = p[:, -2]
            p[0] = p[1]
            p[:, 0] = p[:, 1]
            p[-1] = 0.0
        u, v = step(grid, columns, u, v, p, dt, rho, nu)
        u, v = (np.pad(x[1:-1, 1:-1], 1) for x in (u, v))
        u[-1] = 1.0
    return u, v, p


def channel_flow(
    nit: int,
    u: NDArray,
    v: NDArray,
    dt: float,
    dx: float,
    dy: float,
    p: NDArray,
    rho: float,
    nu: float,
    force: float,
) -> Any:
    ny, nx = u.shape
    grid, columns = Grid(dx, dy, nx), range(nx)
    inside = list(product(range(1, ny - 1), columns))
    count = 0
    while True:
        b = {at: grid.source(u, v, at, rho, dt) for at in inside}
        for _ in range(nit):
            old = p.copy()
            for at in inside:
                p[at] = grid.relaxed(old, at, b[at])
            p[-1], p[0] = p[-2].copy(), p[1].copy()
        before = u.sum()
        u, v = step(grid, columns, u, v, p, dt, rho, nu, force)
        u, v = (np.pad(x[1:-1], ((1, 1), (0, 0))) for x in (u, v))
        count += 1
        if not 1 - before / u.sum() > 0.001:
            return count, u, v, p
