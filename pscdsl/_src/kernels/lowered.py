"""Kernels at given sizes: as StableHLO, and compiled."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pscdsl._src.calls import boundary
from pscdsl._src.calls.errors import ArgumentError
from pscdsl._src.calls.forwarded import call_directly
from pscdsl._src.ir.program import Function
from pscdsl._src.kernels.executables import emitted
from pscdsl._src.kernels.specialisation import Variant
from pscdsl._src.support.processes import require_modules
from pscdsl._src.support.tracebacks import shown
from pscdsl.typing.signatures import Choice
from pscdsl.typing.trees import leaves

if TYPE_CHECKING:
    from pscdsl._src.kernels.kernel import Kernel
    from pscdsl._src.xla.calls.dispatch import Specialised
    from pscdsl._src.xla.runtime.executable import Executable


@dataclass(frozen=True)
class Lowered:
    """A kernel at given sizes, as StableHLO."""

    kernel: Kernel[Any, Any]
    choice: Choice
    program: Function
    sizes: Mapping[str, int]
    donate: tuple[int, ...] = ()
    """The arrays, by their place in the program, that give their memory to results."""
    constants: tuple[str, ...] = ()
    """The parameters that the program does not take: their defaults are numbers in it."""

    @property
    def donated(self) -> set[str]:
        """The parameters of these arrays."""
        owners = [name for name, tree in self.program.parameters for _ in leaves(tree)]
        return {owners[place] for place in self.donate}

    def __repr__(self) -> str:
        at = self.choice.at(self.sizes)
        return f"<lowered {self.kernel.name}{f' at {at}' if at else ''}; .text() is its StableHLO>"

    def __reduce__(self) -> tuple[Any, ...]:
        """The kernel, and what it is lowered for."""
        given = (self.choice, dict(self.sizes), self.constants, tuple(sorted(self.donated)))
        return self.kernel.lowered, given

    @property
    def variant(self) -> Variant:
        """It among all that the kernel is compiled for."""
        left_out = {name: name in self.constants for name in self.kernel.number_defaults}
        sizes = {name: self.sizes[name] for name in self.program.dims}
        return Variant(self.program, self.choice, sizes, self.donate, left_out)

    def text(self) -> str:
        """The module as text."""
        from pscdsl._src.xla.emit.emit import module_text

        return module_text(emitted(self.program, self.sizes, self.donate))

    def specialised(self, executable: Executable, *, fills: bool = False) -> Specialised:
        """The compiled program as calls take it; see there for what `fills` is."""
        from pscdsl._src.xla.calls.dispatch import Specialised
        from pscdsl._src.xla.calls.trees import register_class

        kernel, constants, tree = self.kernel, self.constants, self.program.result
        assert tree is not None
        boundary.register_result(tree, register_class)
        return Specialised(
            executable,
            lambda args, kwargs: kernel.arguments(args, kwargs, constants)[0],
            lambda arrays: boundary.result(tree, iter(arrays)),
            self.donate,
            fills,
        )

    def compile(self) -> Compiled:
        """The compiled kernel."""
        return Compiled(self, self.kernel.executable(self, ahead=True))


@dataclass(frozen=True)
class Compiled:
    """A compiled kernel: called with arguments of exactly the sizes it was compiled for."""

    lowered: Lowered
    executable: Executable

    def __repr__(self) -> str:
        at = self.lowered.choice.at(self.lowered.sizes)
        return f"<compiled {self.lowered.kernel.name}{f' at {at}' if at else ''}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """What it is compiled from: code for this machine is compiled where it is used."""
        return self.lowered.compile, ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on the device; see `xla.waiting` for when this returns."""
        try:
            return self.dispatcher.entry(*args, **kwargs)
        except Exception as error:
            error.__traceback__ = shown(error)
            raise

    @functools.cached_property
    def dispatcher(self) -> Any:
        """Calls this program, and no other."""
        require_modules()
        lowered = self.lowered
        made = lowered.kernel.dispatcher_for(self._specialise, lowered.donated, lowered.constants)
        made.enter(functools.partial(call_directly, self))
        return made

    def _specialise(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Specialised:
        """This program, if it is one for such arguments."""
        kernel = self.lowered.kernel
        left_out = kernel.left_out(args, kwargs)
        given = [name for name in self.lowered.constants if name not in left_out]
        if given:
            raise ArgumentError(
                f"{kernel.name} was compiled for calls that leave `{given[0]}` to its default; "
                "to give it, compile for arguments that have it, or for sizes alone"
            )
        _, types = kernel.arguments(args, kwargs)
        fit, sizes = kernel.matched(types)
        if fit.choice != self.lowered.choice or sizes != self.lowered.sizes:
            raise ArgumentError(
                f"{kernel.name} was compiled for {self.lowered.choice.at(self.lowered.sizes)}; "
                f"it is called with {fit.choice.at(sizes)}"
            )
        return self.lowered.specialised(self.executable)

    def run(self, leaves: Sequence[Any]) -> list[Any]:
        """Run on the arrays alone, in the order of the program's parameters."""
        return self.executable.run(leaves)

    def text(self) -> str:
        """The HLO that XLA optimised the program to."""
        return self.executable.text()
