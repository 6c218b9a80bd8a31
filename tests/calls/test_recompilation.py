"""The log says why a kernel was compiled again, and warns once of one that often is."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, f32
from pscdsl._src.calls.choices import chosen
from pscdsl._src.kernels.executables import MANY, Reasons
from pscdsl._src.xla.specialisation import Specialisation
from pscdsl.typing.signatures import Choice


class P(psc.Record):
    """A tree of two arrays."""

    w: f32["n m"]
    b: f32["n"]


@psc.kernel
def f(p: P, x: Float["k"], t: psc.Static[int] = 0) -> Float["k"]:
    return x * 2 + t


def call(n: int, dtype: Any = np.float32, t: int = 0) -> None:
    w, b = np.zeros((n, 2), np.float32), np.zeros(n, np.float32)
    x: Any = np.zeros(3, dtype)
    f(P(w, b), x, t)


def test_what_has_changed_is_named(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []
    with caplog.at_level(logging.INFO, "pscdsl.compile"):
        call(4)
        call(4)
        call(5)
        call(5, np.float64)
        call(4, t=7)
        told = [each.getMessage() for each in caplog.records]
    why = [each.split(" s: ")[1] for each in told]
    assert all(each.startswith("`f` was compiled in ") for each in told)
    assert why == [
        "size n is 4, size m is 2, size k is 3 and 2 more",
        "size n 4 → 5 (`p.w` f32[4 2] → f32[5 2], `p.b` f32[4] → f32[5])",
        "dtype Float f32 → f64 (`x` f32[3] → f64[3])",
        "static `t` 0 → 7",
    ]
    assert f.cache_info()[1:3] == (4, 4)


def many(parts: str, caplog: pytest.LogCaptureFixture) -> str:
    """The one warning after many compilations that differ in sizes or static values."""
    reasons, program = Reasons(), f.optimised(chosen(f.definition, f.signature, {"t": 0}))
    with caplog.at_level(logging.WARNING, "pscdsl.compile"):
        for index in range(MANY + 5):
            sizes = {"n": 2, "m": 2, "k": index if parts == "sizes" else 2}
            choice = Choice()
            if parts == "statics":
                choice = chosen(f.definition, f.signature, {"t": index % 5})
                sizes["n"] = 2 + index // 5
            reasons.tell(Specialisation(program, sizes, choice), "compiled", 0.1)
        for _ in range(MANY):
            reasons.tell(Specialisation(program, {"n": 1}), "disk", 0.1)
    (warning,) = caplog.records
    return warning.getMessage()


def test_many_sizes_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    assert many("sizes", caplog) == (
        f"`f` was compiled {MANY} times, for {MANY} values of size k (0, 1, 2, …): "
        "pad to a few sizes, or compile ahead by `psc.compile_all`"
    )


def test_many_static_values_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    assert many("statics", caplog).endswith(
        "for 5 values of static `t` (0, 1, 2, …): if these are many, let it be an array"
    )


def test_what_is_found_on_disk_is_no_reason_to_warn(caplog: pytest.LogCaptureFixture) -> None:
    reasons = Reasons()
    program = f.optimised(chosen(f.definition, f.signature, {"t": 0}))
    with caplog.at_level(logging.INFO, "pscdsl.compile"):
        for index in range(MANY + 5):
            reasons.tell(Specialisation(program, {"n": index}), "disk", 0.1)
    assert all(each.levelno == logging.INFO for each in caplog.records)
    assert "`f` was loaded from disk in 0.10 s" in caplog.text
