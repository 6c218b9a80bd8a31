"""Which of XLA's options the installed jaxlib takes: it is asked, once in a process for each.

XLA's options come and go with its versions, and it refuses to compile with one that it does not
know.  So nothing is compiled with an option before XLA has said that it takes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.client import client, devices

NO_OPTION: Final = "xla_is_asked_for_an_option_that_does_not_exist"
PROGRAM: Final = (
    "func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"
)
"""A module for which XLA reads its options."""

_answers: dict[tuple[str, str], bool] = {}


def knows(name: str, value: Any) -> bool:
    """Whether XLA takes this value of an option: `knows("xla_cpu_prefer_vector_width", "512")`."""
    return name in known({name: value})


def known(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the options that XLA takes, in their order."""
    new = {name: value for name, value in options.items() if (name, repr(value)) not in _answers}
    if new and _takes(new):
        _answers.update({(name, repr(value)): True for name, value in new.items()})
    else:
        for name, value in new.items():
            _answers[name, repr(value)] = _takes({name: value})
    return {name: value for name, value in options.items() if _answers[name, repr(value)]}


def _takes(options: Mapping[str, Any]) -> bool:
    """Whether XLA takes all of these: it then refuses to compile for the one put last alone.

    That is so before it makes any code, so that an answer takes less time than a program.
    """
    asked = boot.xla.CompileOptions()
    asked.env_option_overrides = [*options.items(), (NO_OPTION, True)]
    try:
        client().compile_and_load(PROGRAM, devices(), asked)
    except boot.jax.JaxRuntimeError as refused:
        return NO_OPTION in str(refused) and not any(name in str(refused) for name in options)
    return True  # one that takes what does not exist takes everything
