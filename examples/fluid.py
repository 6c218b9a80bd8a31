"""Two layers of fluid slide past each other and roll up: a flow in a plane, drawn as a PNG.

The vorticity w of an incompressible flow is carried along and diffuses: dw/dt = -u · grad w + nu
laplace w.  Derivatives, and the velocity u that belongs to w, are products in Fourier space,
without the third of the frequencies that products would alias to (Orszag 1971); steps in time are
those of the library's `rk4`.  That the flow is right shows in a vortex that dies away as it should,
and in what a flow without friction keeps: energy and enstrophy.

The first argument on the command line names the file, `vortices.png` without one.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from PIL import Image

import pscdsl as psc
from pscdsl import c128, f64, u8
from pscdsl.stdlib.ode import rk4

TOLERANCE = 1e-8
"""How far a dying vortex may be from its exact solution, and what may be lost without friction."""


@psc.kernel
def velocity(w: f64["n n"]) -> tuple[f64["n n"], f64["n n"]]:
    """The velocity to the right and down of a flow with this vorticity, without a mean."""
    n = w.shape[0]
    right, down = _derivatives(n)
    laplace = right * right + down * down
    stream = np.fft.rfft2(w) / np.where(laplace == 0, 1, -laplace)
    return _real(down * stream, n), _real(-right * stream, n)


@psc.kernel
def carried(w: f64["n n"], viscosity: f64) -> f64["n n"]:
    """How fast the vorticity changes."""
    n = w.shape[0]
    right, down = _derivatives(n)
    spectrum = np.fft.rfft2(w)
    u, v = velocity(w)
    product = u * _real(right * spectrum, n) + v * _real(down * spectrum, n)
    kept = (3 * np.abs(right) < n) & (3 * np.abs(down) < n)
    friction = viscosity.astype(np.complex128) * (right * right + down * down) * spectrum
    return _real(friction - np.where(kept, np.fft.rfft2(product), 0), n)


@psc.kernel
def flow(
    w: f64["n n"], times: f64["t"], viscosity: f64, substeps: psc.Static[int] = 1
) -> f64["t n n"]:
    """The vorticity at all times, from that at the first."""
    assert substeps >= 1
    return rk4(lambda _, w: carried(w, viscosity), w, times, substeps)


@psc.kernel
def invariants(w: f64["n n"]) -> tuple[f64, f64]:
    """Energy and enstrophy, which a flow without friction keeps."""
    u, v = velocity(w)
    return np.mean(u * u + v * v) / 2, np.mean(w * w) / 2


@psc.kernel
def picture(w: f64["n n"]) -> u8["n n 3"]:
    """Red where the fluid turns to the left, blue where to the right."""
    shade = (w / np.abs(w).max())[:, :, None]
    fading = np.where(shade > 0, np.array([0.1, 0.8, 0.95]), np.array([0.95, 0.7, 0.05]))
    return (255 * (1 - np.sqrt(np.abs(shade)) * fading)).astype(np.uint8)


def _derivatives(n: int) -> tuple[c128["m"], c128["n 1"]]:
    """What derivatives to the right and down multiply the waves of a real transform by."""
    right = np.arange(n // 2 + 1)
    down = (np.arange(n) + n // 2) % n - n // 2
    return 1j * right.astype(np.complex128), 1j * down.astype(np.complex128)[:, None]


def _real(spectrum: c128["n m"], n: int) -> f64["n n"]:
    return np.fft.irfft2(spectrum, (n, n))


class Result(NamedTuple):
    """What the fluid did."""

    error: float
    """Of the vortex that dies away, relative."""
    lost: tuple[float, float]
    """Of energy and enstrophy without friction, relative."""
    pictures: np.ndarray
    """At several times, side by side."""
    steps: int


def places(n: int) -> tuple[np.ndarray, ...]:
    """Coordinates of a square with sides 2 pi, to the right and down."""
    return np.meshgrid(*[2 * np.pi * np.arange(n) / n] * 2)


def dying_vortex(n: int = 32) -> float:
    """Taylor's and Green's vortices keep their form; the error of their strength at the end."""
    x, y = places(n)
    start, viscosity = 2 * np.cos(3 * x) * np.cos(3 * y), 0.02
    end = np.asarray(flow(start, np.linspace(0, 2, 41), viscosity)[-1])
    exact = start * np.exp(-18 * viscosity * 2)
    return float(np.abs(end - exact).max() / np.abs(exact).max())


def losses(n: int = 64) -> tuple[float, float]:
    """What a flow of large eddies loses without friction."""
    x, y = places(n)
    start = np.cos(x + 0.3) * np.sin(2 * y) + np.sin(2 * x - y) + np.cos(y)
    end = np.asarray(flow(start, np.linspace(0, 1, 101), 0.0)[-1])
    pairs = zip(invariants(start), invariants(end), strict=True)
    energy, enstrophy = (abs(float(after) / float(before) - 1) for before, after in pairs)
    return energy, enstrophy


def run(n: int = 128, viscosity: float = 1e-3, substeps: int = 125) -> Result:
    """Check the flow, then let the layers roll up."""
    x, y = places(n)
    thickness = np.pi / 15
    layer = (
        np.cosh((y - np.pi / 2) / thickness) ** -2 - np.cosh((y - 1.5 * np.pi) / thickness) ** -2
    )
    start = layer / thickness + 0.05 * np.cos(x) - 0.03 * np.sin(2 * x)
    start -= start.mean()
    found = flow(start, np.linspace(0, 10, 5), viscosity, substeps)
    drawn = [np.asarray(picture(found[i])) for i in range(1, 5)]
    error, lost = dying_vortex(), losses()
    np.testing.assert_array_less((error, *lost), TOLERANCE)
    return Result(error, lost, np.concatenate(drawn, axis=1), 4 * substeps)


def main() -> None:
    """Draw the vortices, and print how right they are."""
    result = run()
    path = sys.argv[1] if len(sys.argv) > 1 else "vortices.png"
    image = Image.fromarray(result.pictures)
    image.resize((2 * image.width, 2 * image.height), Image.Resampling.BICUBIC).save(path)
    print(f"a dying vortex: apart from the exact solution by {result.error:.0e}", end=", ")
    print(f"at most {TOLERANCE:.0e} is allowed")
    print(
        "lost without friction: {:.0e} of energy, {:.0e} of enstrophy".format(*result.lost), end=""
    )
    print(f", at most {TOLERANCE:.0e} is allowed")
    print(f"{path}: {result.steps} steps of {image.height} x {image.height} places")


if __name__ == "__main__":
    main()
