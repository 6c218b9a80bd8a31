"""A kernel compiled and run beside NumPy, and where results leave their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pscdsl._src.kernels.kernel import Kernel as Compiled
from pscdsl.typing.diagnostics import Failure
from tests.differential.bodies import Operand, is_open
from tests.differential.coverage import covered
from tests.differential.enclosures import MAYBE, SURELY, Exact, Real, Value
from tests.differential.formats import NDArray
from tests.differential.programs import Kernel, Program
from tests.fuzz import reference
from tests.support.kernels_of import kernels_of


@dataclass
class Outcome:
    """What became of a kernel."""

    programs: int = 0
    values: int = 0
    unknown: int = 0
    """Values of which nothing is known."""
    differences: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])
    model: list[str] = field(default_factory=list[str])
    """Where NumPy itself leaves the bounds."""
    covered: dict[str, int] = field(default_factory=dict[str, int])
    """How often each operation was tried; see `coverage`."""


def compiled(text: str, arguments: Sequence[NDArray]) -> list[NDArray]:
    """What the compiled kernel gives."""
    made = Compiled.from_definition(kernels_of(text)["main"])
    results: Any = made(*arguments)
    return [np.asarray(each) for each in results]


def interpreted(text: str, arguments: Sequence[NDArray]) -> list[Any]:
    """What NumPy gives."""
    return reference.run(reference.loaded(text), "main", arguments)


def escaped(found: NDArray, value: Value) -> NDArray:
    """Where a result is not what its enclosure says."""
    if isinstance(value, Exact):
        return np.asarray((found.astype(value.array.dtype) != value.array) & ~value.unknown)
    wide = value.format.widened(found)
    nan = np.isnan(wide)
    with np.errstate(invalid="ignore"):
        inside = (wide >= value.low) & (wide <= value.high)
    minus = np.signbit(value.low)
    signed = (value.low == 0) & (value.high == 0) & (minus == np.signbit(value.high))
    inside &= ~signed | (np.signbit(wide) == minus)
    good = np.where(nan, value.nan >= MAYBE, inside & (value.nan < SURELY))
    return ~np.asarray(good)


def shown(found: NDArray, value: Value) -> str:
    """How much of a result has left its bounds, and the first that has."""
    bad = escaped(found, value)
    at = tuple(int(each) for each in np.argwhere(bad)[0])
    count = f"{int(bad.sum())} of {bad.size} at {at}: {found[at]!r}"
    if isinstance(value, Exact):
        return f"{count} is not {value.array[at]!r}"
    kind = ("", ", or NaN", ": NaN")[int(value.nan[at])]
    low, high = (value.format.narrowed(each[at]) for each in (value.low, value.high))
    return f"{count} is not in [{low!r}, {high!r}]{kind}"


def run(kernel: Kernel, decorator: str = "kernel") -> Outcome:
    """Try a kernel; one that is refused is tried program by program."""
    outcome = Outcome()
    arguments = [array for _, array in kernel.arguments]
    try:
        found = compiled(kernel.text(decorator=decorator), arguments)
        pairs = [(program, each) for program, each in zip(kernel.programs, found, strict=True)]
    except Exception as whole:
        pairs, together = list[tuple[Program, NDArray]](), said(whole)
        for program in kernel.programs:
            try:
                (each,) = compiled(kernel.text([program], decorator), arguments)
            except Exception as error:
                outcome.refused.append(f"{said(error)}\n{kernel.text([program])}")
            else:
                pairs.append((program, each))
        if len(pairs) == len(kernel.programs):
            outcome.refused.append(f"together: {together}\n{kernel.text()}")
    for program, each in pairs:
        judge(outcome, kernel, program, each)
    outcome.covered = dict(covered(kernel, [program for program, _ in pairs]))
    numpy(outcome, kernel, [program for program, _ in pairs])
    return outcome


def said(error: Exception) -> str:
    """What an error says, shortly."""
    if isinstance(error, Failure):
        return "; ".join(f"{each.code} {each.message()}" for each in error.diagnostics)
    found: Any = getattr(error, "diagnostics", None)
    if found:
        return "; ".join(f"{each.code} {each.message()}" for each in found)
    return f"{type(error).__name__}: {error}"


def judge(outcome: Outcome, kernel: Kernel, program: Program, found: NDArray) -> None:
    """Compare a result with its bounds."""
    value = program.result.value
    outcome.programs += 1
    outcome.values += found.size
    open_ = value.unknown if isinstance(value, Exact) else is_open(value)
    outcome.unknown += int(np.sum(open_))
    if found.shape != value.shape or str(found.dtype) != str(dtype_of(value)):
        outcome.differences.append(
            f"{found.dtype}{found.shape} is not {dtype_of(value)}{value.shape}\n"
            f"{kernel.text([program])}"
        )
    elif escaped(found, value).any():
        outcome.differences.append(
            f"seed {kernel.seed}, {program.result.text}: {shown(found, value)}\n"
            f"{kernel.text([program])}"
        )


def dtype_of(value: Value) -> Any:
    """The dtype."""
    return value.format.dtype if isinstance(value, Real) else value.array.dtype


def numpy(outcome: Outcome, kernel: Kernel, programs: Sequence[Program]) -> None:
    """Compare NumPy's own results with the bounds, so that these are known to be sound."""
    if not programs:
        return
    arguments = [array for _, array in kernel.arguments]
    for program in programs:
        if program.documented:
            continue
        try:
            (found,) = interpreted(kernel.text([program]), arguments)
        except Exception as error:
            outcome.model.append(f"NumPy raises {error}\n{kernel.text([program])}")
            continue
        value = program.result.value
        if found.shape != value.shape:
            outcome.model.append(f"NumPy's shape is {found.shape}\n{kernel.text([program])}")
        elif escaped(found, value).any():
            outcome.model.append(
                f"seed {kernel.seed}: NumPy: {shown(found, value)}\n{kernel.text([program])}"
            )


def first_difference(kernel: Kernel, program: Program) -> tuple[Operand, str] | None:
    """The first line of a program whose value has left its bounds, compiled up to there."""
    arguments = [array for _, array in kernel.arguments]
    for count, step in enumerate(program.steps, 1):
        prefix = Program(program.lines[:count], step, program.steps[:count])
        (found,) = compiled(kernel.text([prefix]), arguments)
        if escaped(found, step.value).any():
            return step, shown(found, step.value)
    return None
