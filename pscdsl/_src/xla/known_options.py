"""Which of XLA's options the installed jaxlib takes: it is asked, once in a process for each.

XLA's options come and go with its versions, and it refuses to compile with one that it does not
know.  So nothing is compiled with an option before XLA has said that it takes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.runtime import boot

NO_OPTION: Final = "xla_is_asked_for_an_option_that_does_not_exist"
PROGRAM: Final = (
    "func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"
)
"""A module for which XLA reads its options."""

_answers: dict[tuple[Device, str, str], bool] = {}


def knows(name: str, value: Any, device: Device = CPU) -> bool:
    """Whether XLA takes this value of an option: `knows("xla_cpu_prefer_vector_width", "512")`."""
    return name in known({name: value}, device)


def known(options: Mapping[str, Any], device: Device = CPU) -> dict[str, Any]:
    """Those of the options that XLA takes where it compiles for a device, in their order."""
    asked = {name: (device, name, repr(value)) for name, value in options.items()}
    new = {name: options[name] for name, key in asked.items() if key not in _answers}
    if new and _takes(new, device):
        _answers.update({asked[name]: True for name in new})
    else:
        for name, value in new.items():
            _answers[asked[name]] = _takes({name: value}, device)
    return {name: value for name, value in options.items() if _answers[asked[name]]}


def _takes(options: Mapping[str, Any], device: Device) -> bool:
    """Whether XLA takes all of these: it then refuses to compile for the one put last alone.

    That is so before it makes any code, so that an answer takes less time than a program.
    """
    asked = boot.xla.CompileOptions()
    asked.env_option_overrides = [*options.items(), (NO_OPTION, True)]
    here = device.placement
    try:
        here.client.compile_and_load(PROGRAM, here.devices, asked)
    except boot.jax.JaxRuntimeError as refused:
        return NO_OPTION in str(refused) and not any(name in str(refused) for name in options)
    return True  # one that takes what does not exist takes everything
