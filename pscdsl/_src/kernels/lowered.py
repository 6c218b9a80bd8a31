"""Kernels at given sizes: as StableHLO, and compiled, one or many ahead of their calls."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pscdsl._src.calls.called import call_directly
from pscdsl._src.calls.errors import ArgumentError
from pscdsl._src.ir.program import Function
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.language.elements import stand_in
from pscdsl._src.support.notebooks import html_method
from pscdsl._src.support.processes import require_modules
from pscdsl._src.support.tracebacks import public, shown
from pscdsl._src.xla.device import Device
from pscdsl.typing.array_types import leaves
from pscdsl.typing.python_containers import is_tuple
from pscdsl.typing.signatures import Choice

if TYPE_CHECKING:
    from pscdsl._src.frontend.modules.traces import Trace
    from pscdsl._src.kernels.captured_state import Watch
    from pscdsl._src.kernels.lowered_on_mesh import LoweredOnMesh
    from pscdsl._src.targets.gpu.ahead import CompiledAhead
    from pscdsl._src.targets.gpu.described import Gpu
    from pscdsl._src.xla.dispatch import BoundExecutable
    from pscdsl._src.xla.runtime.executable import Executable
    from pscdsl._src.xla.specialisation import Specialisation


@dataclass(frozen=True)
class Lowered:
    """A kernel at given sizes, as StableHLO."""

    kernel: Kernel[Any, Any]
    specialisation: Specialisation
    traces: tuple[Trace, ...] = field(default=(), compare=False, repr=False)
    """The look-ups for the program."""

    @property
    def program(self) -> Function:
        """The typed program."""
        return self.specialisation.program

    @property
    def sizes(self) -> Mapping[str, int]:
        """The numbers that its sizes are."""
        return self.specialisation.sizes

    @property
    def donated(self) -> set[str]:
        """The parameters whose memory results may take."""
        owners = [name for name, tree in self.program.parameters for _ in leaves(tree)]
        return {owners[place] for place in self.specialisation.donate}

    def __repr__(self) -> str:
        at = str(self.specialisation)
        return f"<lowered {self.kernel.name}{f' at {at}' if at else ''}; .text() is its StableHLO>"

    _repr_html_ = html_method("programs")

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the kernel and the specialisation, for pickling."""
        known = self.specialisation
        donate = tuple(sorted(self.donated))
        return _lowered, (self.kernel, known.choice, dict(known.sizes), known.constants, donate)

    def text(self, *, target: str | None = None) -> str:
        """Return the StableHLO module as text.

        Args:
            target: A model of GPU, as in `compile_for`; by default the device that calls run on.

        Raises:
            CheckError: The target cannot compute a primitive of the kernel (PSC953).
            ValueError: There is no such target.
        """
        from pscdsl._src.kernels.emission import text  # not all that is lowered is emitted
        from pscdsl._src.targets.gpu.described import gpu_named

        return text(self.specialisation if target is None else self._for(gpu_named(target)))

    def _for(self, gpu: Gpu) -> Specialisation:
        return replace(self.specialisation, device=Device(gpu.platform))

    def on_mesh(self, **axes: int) -> LoweredOnMesh:
        """Return the program of each device of a mesh with these axes, which need not be here.

        It has the methods `text`, `compile` and `compile_for`, and `sent`, the bytes that a device
        gets from others in a call.

        Args:
            axes: The sizes of the mesh's axes.

        Raises:
            ArgumentError: The signature names no mesh axis, or an axis has no equal pieces.
            CheckError: Pieces do not meet.

        Examples:
            >>> @psc.kernel
            ... def means(x: f32["n@data d"]) -> f32["d"]:
            ...     return np.mean(x, axis=0)
            >>> means.lower(n=32, d=4).on_mesh(data=8).sent
            {'data': 16}
        """
        from pscdsl._src.kernels.lowered_on_mesh import LoweredOnMesh  # few kernels name axes

        return LoweredOnMesh(self, axes)

    def compile(self) -> Compiled:
        """Return the compiled kernel."""
        return Compiled(self, self.kernel.executable(self.specialisation, ahead=True))

    def compile_for(self, target: str) -> CompiledAhead:
        """Return the kernel compiled for a GPU that need not be in this machine, to be read.

        Neither a GPU nor a library of CUDA is needed, only the plugin with the compiler:
        `pip install '.[cuda13-compiler]'` in a checkout.

        Args:
            target: The model of the GPU: `h100`, `a100` or `l4`.

        Returns:
            The optimised program as `text`, the code of its functions as `ptx`, its `memory` in
            bytes, the routines of `libraries` that it calls, and the `seconds` that it took.

        Raises:
            CheckError: The GPU cannot compute a primitive of the kernel (PSC953).
            ValueError: There is no such target.
            UnsupportedDeviceError: The plugin is not installed.

        Examples:
            >>> step.lower(n=128).compile_for("h100").memory["temporaries"]  # doctest: +SKIP
            0
        """
        from pscdsl._src.kernels.emission import emitted
        from pscdsl._src.targets.gpu.ahead import compile_ahead
        from pscdsl._src.targets.gpu.described import gpu_named

        gpu = gpu_named(target)
        known = self._for(gpu)
        module = emitted(known.program, known.sizes, known.donate, device=known.device)
        return compile_ahead(module, gpu)


def _lowered(
    kernel: Kernel[Any, Any],
    choice: Choice,
    sizes: Mapping[str, int],
    constants: tuple[str, ...],
    donate: tuple[str, ...],
) -> Lowered:
    specialisation = kernel.specialisation(choice, sizes, constants, donate)
    return Lowered(kernel, specialisation, kernel.traces())


@dataclass(frozen=True)
class Compiled:
    """A compiled kernel: called with arguments of exactly the sizes it was compiled for."""

    lowered: Lowered
    executable: Executable

    def __repr__(self) -> str:
        at = str(self.lowered.specialisation)
        return f"<compiled {self.lowered.kernel.name}{f' at {at}' if at else ''}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the lowered kernel, for pickling: machine code is compiled where it is used."""
        return self.lowered.compile, ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on the device; the result may be computed after this returns."""
        try:
            return self._watching(self.dispatcher.entry)(*args, **kwargs)
        except Exception as error:
            error.__traceback__ = shown(error)
            raise

    @functools.cached_property
    def dispatcher(self) -> Any:
        """Calls this program, and no other."""
        require_modules()
        lowered = self.lowered
        constants = lowered.specialisation.constants
        made = lowered.kernel.dispatcher_for(self._specialise, lowered.donated, constants)
        made.enter(self._entered)
        return made

    def _entered(self, entry: Any) -> None:
        call_directly(self, self._watching(entry))

    @functools.cached_property
    def _watch(self) -> Watch:
        from pscdsl._src.kernels.captured_state import Watch  # of the kernels that it calls

        return Watch(self.lowered.traces, self.lowered.kernel.watched_function)

    def _watching(self, entry: Any) -> Any:
        """Return an entry that compares the captured values."""
        return self._watch.watching(entry, lambda: self.lowered.kernel.name)

    def _specialise(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundExecutable:
        """Return this program, if it is for such arguments."""
        kernel, own = self.lowered.kernel, self.lowered.specialisation
        left_out = kernel.left_out(args, kwargs)
        passed = [name for name in own.constants if name not in left_out]
        if passed:
            raise ArgumentError(
                f"{kernel.name} was compiled for calls that leave `{passed[0]}` to its default; "
                "to give it, compile for arguments that have it, or for sizes alone"
            )
        _, types = kernel.arguments(args, kwargs)
        choice, sizes = kernel.matched(types)
        if choice != own.choice or sizes != own.sizes:
            raise ArgumentError(
                f"{kernel.name} was compiled for {own}; it is called with {choice.at(sizes)}"
            )
        self._watch.require_same(lambda: kernel.name)  # it may have been compiled some time ago
        return kernel.bound_executable(own, self.executable)

    def run(self, leaves: Sequence[Any]) -> list[Any]:
        """Run on the arrays alone, in the order of the program's parameters."""
        return self.executable.run(leaves)

    def text(self) -> str:
        """Return the HLO that XLA optimised the program to."""
        return self.executable.text()


# Many kernels ahead of their calls, side by side.


Job: TypeAlias = Kernel[..., Any] | tuple[Any, ...]
"""A kernel without sizes; a kernel and its sizes by name; a kernel and its arguments."""


@public
def compile_all(jobs: Iterable[Job], *, threads: int | None = None) -> list[Compiled]:
    """Compile several kernels in parallel, before they are called.

    Args:
        jobs: Each is `(kernel, {"n": 128})` with the sizes and whatever else the signature leaves
            open; or `(kernel, *arguments)` with example arguments, where `f32["128 64"]` may stand
            for an array; or a kernel without sizes.
        threads: How many programs are compiled at a time; by default the number of processors.

    Returns:
        The compiled programs, in the order of the jobs.

    Raises:
        CheckError: A kernel has errors. Nothing is compiled then.

    Examples:
        >>> @psc.kernel
        ... def norm(x: f32["n"]) -> f32:
        ...     return np.sqrt(np.sum(x * x))
        >>> small, large = psc.compile_all([(norm, {"n": 2}), (norm, {"n": 1000})])
        >>> small(np.array([3, 4], np.float32))
        pscdsl.Array(5., dtype=float32)
    """
    # Most kernels are compiled one by one.
    from concurrent.futures import ThreadPoolExecutor, as_completed

    from pscdsl._src.checker.report.terminal import ProgressBar

    lowered = [_lowered_job(task) for task in jobs]
    many = max(1, threads or os.cpu_count() or 1)
    with ProgressBar("compiling", "kernels") as bar, ThreadPoolExecutor(many) as pool:
        made = [pool.submit(task.compile) for task in lowered]
        try:
            for done, task in enumerate(as_completed(made), 1):
                task.result()
                bar.update(done, len(made))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [task.result() for task in made]


def _lowered_job(job: Job) -> Lowered:
    if isinstance(job, Kernel):
        return job.lower()
    if not is_tuple(job) or not job or not isinstance(job[0], Kernel):
        raise TypeError(f"not a kernel with sizes or arguments: {job!r}")
    kernel = cast("Kernel[..., Any]", job[0])
    arguments = job[1:]
    if len(arguments) == 1 and isinstance(arguments[0], dict):  # which is no argument
        return kernel.lower(**cast("dict[str, Any]", arguments[0]))
    return kernel.lower_for(*map(stand_in, arguments))
