"""Whether a program uses a form, and how near its results are."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pscdsl._src.targets.forms import VARIABLE

EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52, "bfloat16": 2.0**-7, "float16": 2.0**-10}


def normal(*shape: int, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def used(form: str, monkeypatch: pytest.MonkeyPatch, kernel: Any, *args: Any) -> list[Any]:
    """The results of a kernel whose program is another one without a form."""
    from pscdsl._src.targets.pipeline import lower_module

    _, types = kernel.arguments(args, {})
    choice, sizes = kernel.matched(types)
    program = kernel.optimised(choice)
    numbers = {name: sizes[name] for name in program.dims}
    mine = str(lower_module(program, numbers))
    monkeypatch.setenv(VARIABLE, form)
    assert str(lower_module(program, numbers)) != mine
    monkeypatch.delenv(VARIABLE)
    found = kernel(*args)
    return [np.asarray(each) for each in (found if isinstance(found, tuple) else (found,))]


def close(found: Any, wanted: Any, terms: int, scale: float = 1.0) -> None:
    """Equal to within a few roundings of each of so many terms."""
    error = np.abs(found.astype(np.float64) - wanted)
    assert np.max(error) <= EPSILON[found.dtype.name] * (terms + 2) * scale * np.max(np.abs(wanted))
