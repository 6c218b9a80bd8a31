"""Generated programs, of text and of equations, whose derivatives and batches are examined."""

from __future__ import annotations

import random

import numpy as np

from pscdsl._src.frontend.definitions import Excluded
from pscdsl._src.ir.program import Function, walk
from pscdsl.typing.diagnostics import Failure
from tests.fuzz.derivatives import NDArray, examine
from tests.fuzz.laws import array, definition, sizes_of
from tests.fuzz.programs import Program
from tests.fuzz.smooth_programs import SmoothProgram
from tests.support.random_programs import operands
from tests.support.widening import Widening

WITHOUT_DERIVATIVES = frozenset(
    {"bitcast", "nextafter", "gammainc", "gammaincc", "betainc", "betaincc", "zeta"}
)
"""What cannot be made wider, and what the manual refuses to differentiate in some argument."""


def of_text(
    program: Program, seed: int, smooth: bool = True, compiling: bool = False
) -> dict[str, int]:
    """How often each law was tried on a program of text; a Broken if one does not hold."""
    rng = random.Random(seed)
    function = _instance(program, rng)
    if function is None:
        return {}
    sizes = next(sizes_of(function, rng, 1), None)
    met = {each.primitive.name for each in walk(function.body)}
    if sizes is None or met & WITHOUT_DERIVATIVES:
        return {}
    wide = Widening(bounded=True).function(function)
    given = [array(rng, each, sizes) for each in wide.body.in_types]
    smooth = smooth and "psc.stop_gradient" not in program.text  # differences know nothing of it
    try:
        return _examined(wide, sizes, given, seed, smooth, compiling)
    except Failure as failure:  # there is no forward mode through some functions
        backward_only = "psc.custom_vjp" in program.text
        if backward_only and {each.code for each in failure.diagnostics} == {"PSC520"}:
            return {}
        raise


def _instance(program: Program, rng: random.Random) -> Function | None:
    """The program for one of the choices that its signature leaves."""
    kernel = definition(program)
    choices = kernel.signature.choices() or []
    for choice in rng.sample(choices, len(choices)):
        try:
            return kernel.instance(choice)
        except Excluded:
            continue
    return None


def of_equations(seed: int, smooth: bool = True, compiling: bool = False) -> dict[str, int]:
    """The same for a program of equations."""
    function = SmoothProgram(seed).function()
    sizes = {"n": random.Random(seed).randrange(1, 5)}
    given = [
        np.nan_to_num(np.asarray(x, np.float64), nan=0.5, posinf=2.0, neginf=-2.0)
        if x.dtype.kind == "f"
        else x
        for x in operands(function, sizes, seed)
    ]
    wide = Widening(bounded=True).function(function)
    return _examined(wide, sizes, given, seed, smooth, compiling)


def _examined(
    function: Function,
    sizes: dict[str, int],
    given: list[NDArray],
    seed: int,
    smooth: bool,
    compiling: bool,
) -> dict[str, int]:
    """Operands are small multiples of a number; moved a little, no two of them are the same."""
    rng = np.random.default_rng(seed)
    if smooth:
        given = [x + rng.uniform(-0.1, 0.1, x.shape) if x.dtype.kind in "fc" else x for x in given]
    return examine(function, sizes, given, rng, smooth, compiling)
