"""Options of XLA are handed over only where XLA says that it takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.targets.cpu import module_options
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.xla.compilation import compile_module
from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.runtime import boot, executable
from pscdsl._src.xla.runtime.executable import compile_options, known, knows
from tests.support.quick_code import QUICK

pytestmark = pytest.mark.jaxlib

OLDER = "xla_an_option_of_an_older_version"
TAKEN: dict[str, Any] = {"xla_backend_optimization_level": 1, "xla_cpu_enable_fast_math": False}


@psc.kernel
def scale(x: f32["n"]) -> f32["n"]:
    return x * 3


def module() -> Any:
    lowered = scale.lower(n=5)
    return lower_module(lowered.program, lowered.sizes)


@pytest.fixture(autouse=True)
def _unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executable, "_known_options", {})


def test_xla_says_what_it_takes() -> None:
    mixed = {"xla_backend_optimization_level": 1, OLDER: True, "xla_cpu_enable_fast_math": False}
    assert list(known(mixed).items()) == list(TAKEN.items())
    assert known(TAKEN) == TAKEN
    assert not knows(OLDER, False)


def test_values_count() -> None:
    assert knows("xla_cpu_prefer_vector_width", "256")
    assert not knows("xla_cpu_prefer_vector_width", "wide")


def test_xla_refuses_what_is_not_known() -> None:
    """What is said of an option is what XLA does with a program compiled with it."""
    for name, value in {
        **TAKEN,
        **QUICK,
        OLDER: True,
        module_options.VECTOR_WIDTH: "256",
    }.items():
        options = compile_options(None, {})
        options.env_option_overrides = [(name, value)]
        assert knows(name, value) == compiles(options)


def compiles(options: Any) -> bool:
    """Whether XLA compiles with these options, and does not say that there is no such option."""
    given = executable.PROGRAM, CPU.placement.devices, options
    try:
        CPU.client.compile_and_load(*given)
    except boot.jax.JaxRuntimeError as refused:
        return "No such compile option" not in str(refused)
    return True


def test_each_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    takes = executable._takes  # pyright: ignore[reportPrivateUsage]

    def observed(options: Any, device: Device) -> bool:
        asked.append(list(options))
        return takes(options, device)

    monkeypatch.setattr(executable, "_takes", observed)
    known(TAKEN)
    known(TAKEN)
    assert asked == [list(TAKEN)]
    known({**TAKEN, OLDER: 1})
    known({OLDER: 1})
    assert asked[1:] == [[OLDER], [OLDER]]  # together with others, and alone


def test_nobody_meets_an_option_that_xla_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither users, whose programs are to get it, nor what compiles with options."""

    def older(_: Any) -> dict[str, bool]:
        return {OLDER: False}

    monkeypatch.setattr(module_options, "narrow_options", older)
    assert OLDER not in module_options.options(module())
    compiled = compile_module(module(), options={OLDER: True}), module_options.compiled(module())
    for each in compiled:
        given = np.arange(5, dtype=np.float32)
        np.testing.assert_array_equal(np.asarray(each.run([given])[0]), given * 3)
