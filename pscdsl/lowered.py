"""Kernels at given sizes: as StableHLO, and compiled."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pscdsl import boundary
from pscdsl.direct import call_directly
from pscdsl.errors import ArgumentError
from pscdsl.executables import emitted
from pscdsl.ir import Function
from pscdsl.typing.signatures import Choice
from pscdsl.typing.trees import leaves

if TYPE_CHECKING:
    from pscdsl.kernel import Kernel
    from pscdsl.operands import Operands
    from pscdsl.xla.dispatch import Specialised
    from pscdsl.xla.executable import Executable


@dataclass(frozen=True)
class Lowered:
    """A kernel at given sizes, as StableHLO."""

    kernel: Kernel[Any, Any]
    choice: Choice
    program: Function
    sizes: Mapping[str, int]
    donate: tuple[int, ...] = ()
    """The arrays, by their place in the program, that give their memory to results."""

    @property
    def donated(self) -> set[str]:
        """The parameters of these arrays."""
        owners = [name for name, tree in self.program.parameters for _ in leaves(tree)]
        return {owners[place] for place in self.donate}

    @property
    def operands(self) -> Operands:
        """The program as it is compiled: numbers with a default come first."""
        return self.kernel.operands(self.choice)

    def text(self) -> str:
        """The module as text; numbers with a default are the first parameters of its `main`."""
        from pscdsl.xla.emit import module_text

        known = self.operands
        return module_text(emitted(known.program, self.sizes, known.places(self.donate)))

    def specialised(self, executable: Executable, *, closed: bool) -> Specialised:
        """The compiled program as calls take it; see `Specialised` for what is `closed`."""
        from pscdsl.xla.dispatch import Specialised
        from pscdsl.xla.trees import register_class

        kernel, tree, operands = self.kernel, self.program.result, self.operands
        assert tree is not None
        boundary.register_result(tree, register_class)
        return Specialised(
            executable,
            lambda args, kwargs: operands.of(kernel.arguments(args, kwargs)[0]),
            lambda arrays: boundary.result(tree, iter(arrays)),
            operands.places(self.donate),
            closed,
        )

    def compile(self) -> Compiled:
        """The compiled kernel."""
        return Compiled(self, self.kernel.executable(self.choice, self.sizes, self.donate))


@dataclass(frozen=True)
class Compiled:
    """A compiled kernel: called with arguments of exactly the sizes it was compiled for."""

    lowered: Lowered
    executable: Executable

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on the device; see `xla.waiting` for when this returns."""
        return self.dispatcher.entry(*args, **kwargs)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """Calls this program, and no other."""
        made = self.lowered.kernel.dispatcher_for(self._specialise, self.lowered.donated)
        made.enter(functools.partial(call_directly, self))
        return made

    def _specialise(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Specialised:
        """This program, if it is one for such arguments."""
        kernel = self.lowered.kernel
        _, types = kernel.arguments(args, kwargs)
        fit, sizes = kernel.matched(types)
        if fit.choice != self.lowered.choice or sizes != self.lowered.sizes:
            raise ArgumentError(
                f"{kernel.name} was compiled for {self.lowered.choice.at(self.lowered.sizes)}; "
                f"it is called with {fit.choice.at(sizes)}"
            )
        return self.lowered.specialised(self.executable, closed=True)

    def run(self, leaves: Sequence[Any]) -> list[Any]:
        """Run on the arrays alone, in the order of the typed program's parameters."""
        return self.executable.run(self.lowered.operands.of(leaves))

    def text(self) -> str:
        """The HLO that XLA optimised the program to."""
        return self.executable.text()
