"""Typed programs from text, run by the interpreter and by XLA, and numbers compared."""

# Programs are text, so what they compute has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np

from pscdsl._src.analysis.verify import verify
from pscdsl._src.frontend import definitions
from pscdsl._src.frontend.definitions import Definition
from pscdsl._src.ir.program import Function, evaluate
from pscdsl._src.transforms.simplify import simplify
from tests.support.kernels_of import kernels_of

NDArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]
SIZES = {"n": 3, "m": 2, "k": 4, "b": 5}
"""What size names stand for; `b` is the size of batches."""
STEP = 3e-4
HEAD = """\
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyrsistent

import pscdsl as psc
from pscdsl import bool_, c128, f32, f64, i32, i64
"""


def kernels(text: str) -> dict[str, Definition]:
    """The kernels of a module's text."""
    return kernels_of(HEAD + text, "subject.py")


@dataclass(frozen=True)
class Program:
    """A typed program, as it is elaborated and as it is compiled."""

    function: Function
    simple: Function

    @classmethod
    def of(cls, definition: Definition) -> Program:
        """The one program of a kernel, verified with its sizes as symbols."""
        choices = definition.signature.choices()
        assert choices is not None
        assert len(choices) == 1
        # A function and its derivatives, side by side, draw the same numbers from one seed.
        with patch.object(definitions, "reused_keys", return_value=[]):
            function = definition.instance(choices[0])
        verify(function)
        simple = simplify(function)
        verify(simple)
        return cls(function, simple)

    def run(self, operands: Sequence[NDArray], sizes: Mapping[str, int] = SIZES) -> list[NDArray]:
        """The results; simplification changes them by rounding errors at most."""
        here = {name: sizes[name] for name in self.function.dims}
        with np.errstate(all="ignore"):
            plain = evaluate(self.function, here, operands)
            found = evaluate(self.simple, here, operands)
        assert_close(found, plain, 1e-12)
        return [np.asarray(x) for x in plain]

    def values(self, operands: Sequence[NDArray]) -> list[NDArray]:
        """The results of the simplified program."""
        here = {name: SIZES[name] for name in self.function.dims}
        with np.errstate(all="ignore"):
            return [np.asarray(x) for x in evaluate(self.simple, here, operands)]

    def compiled(self, operands: Sequence[NDArray]) -> list[NDArray]:
        """The results as XLA computes them."""
        from pscdsl._src.targets.pipeline import lower_module
        from pscdsl._src.xla.compilation import compile_module

        here = {name: SIZES[name] for name in self.function.dims}
        executable = compile_module(lower_module(self.simple, here))
        return [np.asarray(each) for each in executable.run(list(operands))]


def program(text: str, name: str = "kernel") -> Program:
    """The program of one kernel of a module's text."""
    return Program.of(kernels(text)[name])


def results(text: str, *operands: Any, name: str = "kernel") -> list[NDArray]:
    """What a kernel of a module's text returns; sizes are those of the operands."""
    found = program(text, name)
    sizes: dict[str, int] = {}
    arrays = [np.asarray(x) for x in operands]
    for array, of in zip(arrays, found.function.body.in_types, strict=True):
        for number, size in zip(array.shape, of.shape, strict=True):
            sizes.setdefault(str(size), number)
    return found.run(arrays, sizes)


def assert_close(found: Sequence[Any], wanted: Sequence[Any], tolerance: float = 1e-9) -> None:
    """Arrays of the same shapes and numbers, up to the largest number of each."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert np.shape(one) == np.shape(other), (np.shape(one), np.shape(other))
        finite = np.abs(other)[np.isfinite(other)]
        scale = max(1.0, float(np.max(finite, initial=0)))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)


def pairing(one: Sequence[NDArray], other: Sequence[NDArray]) -> float:
    """The real part of the sum of products: what cotangents do to tangents."""
    return float(sum(np.real(np.sum(a * b)) for a, b in zip(one, other, strict=True)))


def moved(arrays: Sequence[NDArray], directions: Sequence[NDArray], by: float) -> list[NDArray]:
    """Arrays moved along directions."""
    return [x + by * t for x, t in zip(arrays, directions, strict=True)]


def differences(
    function: Callable[[list[NDArray]], Sequence[NDArray]],
    arrays: Sequence[NDArray],
    directions: Sequence[NDArray],
    step: float = STEP,
) -> list[NDArray]:
    """How fast results change along directions, by differences of the fourth order."""
    rows = [function(moved(arrays, directions, by * step)) for by in (-2, -1, 1, 2)]
    return [
        np.asarray((a - 8 * b + 8 * c - d) / (12 * step)) for a, b, c, d in zip(*rows, strict=True)
    ]


def like(arrays: Sequence[NDArray], seed: int) -> list[NDArray]:
    """Random numbers in place of others."""
    rng = np.random.default_rng([seed, 5])
    found: list[NDArray] = []
    for each in arrays:
        assert each.dtype.kind in "fc"
        made = np.asarray(rng.uniform(-1, 1, np.shape(each)))
        if each.dtype.kind == "c":
            made = made + 1j * rng.uniform(-1, 1, np.shape(each))
        found.append(np.asarray(made, each.dtype))
    return found
