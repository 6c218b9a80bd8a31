"""What the programs of physics compute, in closed form or element by element."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from itertools import combinations, product
from typing import Any

import numpy as np

from tests.plain_numpy.program import NDArray


def nbody(
    mass: NDArray,
    pos: NDArray,
    vel: NDArray,
    nt: int,
    dt: float,
    gravity: float,
    softening: float,
) -> Any:
    m = mass[:, 0]
    pairs = list(combinations(range(len(m)), 2))

    def pulled() -> NDArray:
        acc = np.zeros_like(pos)
        for i, j in pairs:
            apart = pos[j] - pos[i]
            pull = gravity * apart / (apart @ apart + softening**2) ** 1.5
            acc[i] += m[j] * pull
            acc[j] -= m[i] * pull
        return acc

    def kinetic() -> float:
        return 0.5 * math.fsum(m[i] * (vel[i] @ vel[i]) for i in range(len(m)))

    def potential() -> float:
        return -gravity * math.fsum(m[i] * m[j] / np.linalg.norm(pos[i] - pos[j]) for i, j in pairs)

    vel = vel - (m @ vel) / m.sum()
    found = [(kinetic(), potential())]
    for _ in range(nt):
        vel = vel + 0.5 * dt * pulled()
        pos = pos + dt * vel
        vel = vel + 0.5 * dt * pulled()
        found.append((kinetic(), potential()))
    energies = np.array(found, dtype=np.float64)
    return energies[:, 0], energies[:, 1], pos, vel


def ring_means(data: NDArray, rings: NDArray, npt: int) -> NDArray:
    """The mean of each ring."""
    return np.array(
        [np.mean([x for x, at in zip(data, rings, strict=True) if at == i]) for i in range(npt)]
    )


def azimint_naive(data: NDArray, radius: NDArray, npt: int) -> Any:
    rings = np.floor(radius * npt / radius.max())
    return ring_means(data, rings, npt)


def azimint_hist(data: NDArray, radius: NDArray, npt: int) -> Any:
    low, high = radius.min(), radius.max()
    if low == high:
        return data * 1.0
    rings = np.minimum(np.floor((radius - low) * npt / (high - low)), npt - 1)
    return ring_means(data, rings, npt)


def arc_distance(theta_1: NDArray, phi_1: NDArray, theta_2: NDArray, phi_2: NDArray) -> Any:
    def unit(theta: NDArray, phi: NDArray) -> NDArray:
        return np.stack([np.cos(theta) * np.cos(phi), np.cos(theta) * np.sin(phi), np.sin(theta)])

    a, b = unit(theta_1, phi_1), unit(theta_2, phi_2)
    across = np.linalg.norm(np.cross(a, b, axis=0), axis=0)
    return np.arctan2(across, (a * b).sum(axis=0))


def contour_integral(slab_per_bc: int, ham: NDArray, int_pts: NDArray, Y: NDArray) -> Any:
    moments = np.zeros((2, *Y.shape), np.complex128)
    identity = np.eye(len(Y)) if Y.shape[0] == Y.shape[1] else Y
    for z in int_pts:
        matrix = np.einsum("n,nij->ij", z ** (slab_per_bc / 2 - np.arange(slab_per_bc + 1)), ham)
        solution = np.linalg.lstsq(matrix, identity + 0j, rcond=None)[0]
        moments += np.array([1, z])[:, None, None] * solution * np.sign(abs(z) - 1)
    return moments[0], moments[1]


def scattering_self_energies(
    neigh_idx: NDArray, dH: NDArray, G: NDArray, D: NDArray, Sigma: NDArray
) -> Any:
    phonons = np.einsum("abjmn,qwabij->wabimn", dH, D)
    nearby = G[:, :, neigh_idx]
    for e, w in product(range(G.shape[1]), range(D.shape[1])):
        if w <= e:
            Sigma[:, e] += np.einsum("kabmn,abino,abiop->kamp", nearby[:, e - w], dH, phonons[w])
    return Sigma
