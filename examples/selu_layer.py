"""A fully connected layer: what the checker, the translation and XLA's fusion each make of it.

The layer is the example of Frostig, Johnson and Leary, "Compiling machine learning programs via
high-level tracing" (SysML 2018).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

import numpy as np

import pscdsl as psc
from pscdsl import f32

TOLERANCE = 1e-5
"""How far the layer may be from NumPy's."""


class Layer(psc.Record, dims="i o"):
    """Weights and biases from i inputs to o outputs."""

    w: f32["i o"]
    b: f32["o"]


def selu(x: f32["n o"], alpha: float = 1.67, scale: float = 1.05) -> f32["n o"]:
    """The scaled exponential linear unit; not decorated, so it becomes part of its caller."""
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


@psc.kernel
def layer(p: Layer["i o"], x: f32["n i"]) -> f32["n o"]:
    """One row for each of the n examples."""
    return selu(x @ p.w + p.b)


class Result(NamedTuple):
    """One program in its three forms, and how far its value is from NumPy's."""

    program: str
    stablehlo: str
    optimised: str
    difference: float


def run(n: int = 256, i: int = 64, o: int = 128) -> Result:
    """Compile the layer, and compare its value."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((i, o), np.float32) / np.float32(np.sqrt(i))
    p = Layer(w, np.zeros(o, np.float32))
    x = rng.standard_normal((n, i), np.float32)

    lowered = layer.lower(n=n, i=i, o=o)
    expected = selu(x @ p.w + p.b)
    found = np.asarray(layer(p, x))
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)
    return Result(
        program=str(layer.ir()),
        stablehlo=lowered.text(),
        optimised=lowered.compile().text(),
        difference=float(np.abs(found - expected).max()),
    )


def operations(stablehlo: str) -> Counter[str]:
    """How often each operation occurs in a module."""
    return Counter(re.findall(r"stablehlo\.(\w+)", stablehlo))


def instructions(hlo: str) -> Counter[str]:
    """How often each kind of instruction is run; those inside a fusion are one."""
    entry = hlo[hlo.index("ENTRY") :]
    kinds = re.findall(r"^  (?:ROOT )?%?[\w.-]+ = \S+ ([\w-]+)\(", entry, re.MULTILINE)
    return Counter(kind for kind in kinds if kind != "parameter")


def main() -> None:
    """Print all forms."""
    result = run()
    print("The typed program, for all sizes:\n")
    print(result.program)
    print("\nStableHLO, for these sizes:\n")
    print(result.stablehlo)
    print("\nWhat XLA runs:\n")
    print(result.optimised)
    print("\nStableHLO operations:", dict(operations(result.stablehlo)))
    print("instructions after fusion:", dict(instructions(result.optimised)))
    print(f"largest difference from NumPy: {result.difference:.1e}", end=", ")
    print(f"at most {TOLERANCE:.0e} is allowed")


if __name__ == "__main__":
    main()
