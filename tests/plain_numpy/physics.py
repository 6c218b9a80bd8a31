"""Simulations and measurements of physics, as they are written in plain NumPy."""

# Matrices have the names of physics, and one name stands for what two branches give.
# pyright: reportConstantRedefinition=false
# mypy: disable-error-code="assignment"

import numpy as np

from pscdsl import Static, c128, f64, i32
from tests.plain_numpy.program import Program, sizes


def accelerations(mass: f64["n 1"], pos: f64["n 3"], gravity: f64, softening: f64) -> f64["n 3"]:
    apart = pos[np.newaxis, :, :] - pos[:, np.newaxis, :]
    pull = np.sum(apart**2, axis=2) + softening**2
    pull[pull > 0] = pull[pull > 0] ** -1.5
    acc = np.empty_like(pos)
    for axis in range(3):
        acc[:, axis] = (apart[:, :, axis] * pull @ mass)[:, 0]
    acc *= gravity
    return acc


def energies(mass: f64["n 1"], pos: f64["n 3"], vel: f64["n 3"], gravity: f64) -> tuple[f64, f64]:
    kinetic = 0.5 * np.sum(mass * vel**2)
    distance = np.sqrt(np.sum((pos[np.newaxis, :, :] - pos[:, np.newaxis, :]) ** 2, axis=2))
    pairs = gravity * (mass * mass.T)
    far = distance > 0
    pairs[far] = pairs[far] / distance[far]
    potential = -np.sum(np.triu(pairs, 1))
    return kinetic, potential


def nbody(
    mass: f64["n 1"],
    pos: f64["n 3"],
    vel: f64["n 3"],
    nt: Static[int],
    dt: f64,
    gravity: f64,
    softening: f64,
) -> tuple[f64["nt+1"], f64["nt+1"]]:
    vel -= np.mean(mass * vel, axis=0) / np.mean(mass)
    acc = accelerations(mass, pos, gravity, softening)
    kinetic = np.ndarray(nt + 1, dtype=np.float64)
    potential = np.ndarray(nt + 1, dtype=np.float64)
    kinetic[0], potential[0] = energies(mass, pos, vel, gravity)
    for i in range(nt):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc[:] = accelerations(mass, pos, gravity, softening)
        vel += acc * dt / 2.0
        kinetic[i + 1], potential[i + 1] = energies(mass, pos, vel, gravity)
    return kinetic, potential


def azimint_naive(data: f64["n"], radius: f64["n"], npt: Static[int]) -> f64["npt"]:
    rmax = radius.max()
    res = np.zeros(npt, dtype=np.float64)
    for i in range(npt):
        r1 = rmax * i / npt
        r2 = rmax * (i + 1) / npt
        ring = np.logical_and(r1 <= radius, radius < r2)
        res[i] = data[ring].mean()
    return res


def azimint_hist(data: f64["n"], radius: f64["n"], npt: Static[int]) -> f64["npt"]:
    assert npt >= 1
    counts = np.histogram(radius, npt)[0]
    sums = np.histogram(radius, npt, weights=data)[0]
    return sums / counts


def arc_distance(
    theta_1: f64["n m"], phi_1: f64["n m"], theta_2: f64["n m"], phi_2: f64["n m"]
) -> f64["n m"]:
    dtheta = np.sin((theta_2 - theta_1) / 2) ** 2
    dphi = np.sin((phi_2 - phi_1) / 2) ** 2
    haversine = dtheta + np.cos(theta_1) * np.cos(theta_2) * dphi
    return 2 * np.arctan2(np.sqrt(haversine), np.sqrt(1 - haversine))


def contour_integral(
    slab_per_bc: Static[int],
    ham: c128["slab_per_bc+1 nr nr"],
    int_pts: c128["p"],
    Y: c128["nr nm"],
) -> tuple[c128["nr nm"], c128["nr nm"]]:
    nr, nm = Y.shape
    P0 = np.zeros((nr, nm), dtype=np.complex128)
    P1 = np.zeros((nr, nm), dtype=np.complex128)
    for z in int_pts:
        Tz = np.zeros((nr, nr), dtype=np.complex128)
        for n in range(slab_per_bc + 1):
            Tz += np.power(z, slab_per_bc / 2 - n) * ham[n]
        if nr == nm:
            X = np.linalg.inv(Tz)
        else:
            X = np.linalg.solve(Tz, Y)
        if abs(z) < 1.0:
            X = -X
        P0 += X
        P1 += z * X
    return P0, P1


def scattering_self_energies(
    neigh_idx: i32["NA NB"],
    dH: c128["NA NB 3 Norb Norb"],
    G: c128["Nkz NE NA Norb Norb"],
    D: c128["Nqz Nw NA NB 3 3"],
    Sigma: c128["Nkz NE NA Norb Norb"],
) -> None:
    for k in range(G.shape[0]):
        for e in range(G.shape[1]):
            for q in range(D.shape[0]):
                for w in range(D.shape[1]):
                    for i in range(D.shape[-2]):
                        for j in range(D.shape[-1]):
                            for a in range(neigh_idx.shape[0]):
                                for b in range(neigh_idx.shape[1]):
                                    if e - w >= 0:
                                        dHG = G[k, e - w, neigh_idx[a, b]] @ dH[a, b, i]
                                        dHD = dH[a, b, j] * D[q, w, a, b, i, j]
                                        Sigma[k, e, a] += dHG @ dHD


PROGRAMS = (
    Program(
        nbody,
        lambda draw, s: (
            *(draw.positive(s.n, 1), draw.reals(s.n, 3), draw.reals(s.n, 3)),
            *(s.nt, 0.01, 1.0, 0.1),
        ),
        sizes("n nt", (4, 0), (1, 1), (2, 3), (5, 2), (13, 19)),
        writes=("pos", "vel"),
    ),
    Program(
        azimint_naive,
        lambda draw, s: (draw.reals(s.n), draw.generator.permutation(s.n) + 0.5, s.npt),
        sizes("n npt", (2, 1), (3, 2), (20, 3), (100, 19)),
    ),
    Program(
        azimint_hist,
        lambda draw, s: (draw.reals(s.n), draw.generator.permutation(s.n) + 0.5, s.npt),
        sizes("n npt", (1, 1), (2, 1), (3, 2), (20, 3), (100, 19)),
    ),
    Program(
        arc_distance,
        lambda draw, s: tuple(draw.reals(s.n, s.m) for _ in range(4)),
        sizes("n m", (0, 2), (1, 1), (2, 3), (19, 7)),
    ),
    Program(
        contour_integral,
        lambda draw, s: (
            *(s.slab, draw.complexes(s.slab + 1, s.nr, s.nr), 2 * draw.complexes(s.p)),
            draw.complexes(s.nr, s.nm),
        ),
        sizes("slab nr nm p", (2, 2, 1, 0), (2, 1, 1, 1), (2, 3, 3, 2), (2, 4, 2, 5), (1, 2, 9, 3)),
        tolerance=1e-9,
    ),
    Program(
        scattering_self_energies,
        lambda draw, s: (
            draw.integers(0, s.na, s.na, s.nb).astype(np.int32),
            draw.complexes(s.na, s.nb, 3, s.no, s.no),
            draw.complexes(s.nk, s.ne, s.na, s.no, s.no),
            draw.complexes(s.nq, s.nw, s.na, s.nb, 3, 3),
            draw.complexes(s.nk, s.ne, s.na, s.no, s.no),
        ),
        sizes(
            "nk ne nq nw na nb no",
            *((1, 0, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1, 1), (1, 2, 2, 3, 2, 1, 2)),
            *((2, 3, 1, 2, 3, 2, 2), (1, 2, 1, 1, 3, 2, 4)),
        ),
        writes=("Sigma",),
    ),
)
