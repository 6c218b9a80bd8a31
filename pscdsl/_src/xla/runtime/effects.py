"""Effects of compiled programs: the host functions that they call, and what these raise."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

import numpy as np

from pscdsl._src.primitives.effects import Effect
from pscdsl._src.xla.device import Device
from pscdsl._src.xla.runtime.boot import Aval
from pscdsl._src.xla.runtime.executable import Executable

_DONE = np.int32(0)


class Effects:
    """The host functions of one program; the first exception of a call waits until it has run."""

    def __init__(self) -> None:
        self._raised: list[BaseException] = []
        self._context = contextvars.copy_context()
        """The context of the caller: XLA calls from threads of its own."""

    def host_function(self, effect: Effect) -> Callable[..., Any]:
        """Return the function that a program calls for an effect.

        Its first argument, and its result, are the numbers that keep effects in their order.
        """

        def call(_: Any, *operands: Any) -> Any:
            try:
                if not self._raised:
                    self._context.run(effect.run_batch, *map(np.asarray, operands))
            except BaseException as error:  # XLA would make a text of it
                self._raised.append(error)
            return (_DONE,)

        return call

    def begin(self) -> None:
        """Begin a call."""
        self._raised, self._context = [], contextvars.copy_context()

    def end(self) -> None:
        """Raise the first exception of a call."""
        raised, self._raised = self._raised, []
        if raised:
            raise raised[0]


class EffectfulExecutable(Executable):
    """A compiled program with effects: a call returns after all of them."""

    has_effects = True

    def __init__(
        self,
        loaded: Any,
        inputs: Sequence[Aval],
        outputs: Sequence[Aval],
        device: Device,
        effects: Effects,
    ) -> None:
        super().__init__(loaded, inputs, outputs, device)
        self._effects = effects
        self._calls = RLock()

    def start(self, buffers: Sequence[Any]) -> list[Any]:
        """Run the program; raise what an effect has raised."""
        with self._calls:  # what one call raises is not for another one
            self._effects.begin()
            results = super().start(buffers)
            for result in results:
                result.block_until_ready()
            self._effects.end()
        return results
