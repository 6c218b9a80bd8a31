"""Kernels as Python objects: checked at the first call, compiled for each kind of arguments."""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import types
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, cast, overload

from pscdsl._src.calls.called import Called, CallingConvention, call_directly, called_through
from pscdsl._src.calls.errors import ArgumentError
from pscdsl._src.frontend.modules.rereading import (
    STATE,
    read_things,
    reread,
    spec_of,
    successor,
    tell,
)
from pscdsl._src.kernels.executables import Executables
from pscdsl._src.support.effects import COMPILED, DEFAULT
from pscdsl._src.support.notebooks import html_method
from pscdsl._src.support.processes import require_modules
from pscdsl._src.support.tracebacks import public
from pscdsl._src.xla.device import Device, default_device

if sys.version_info >= (3, 14):
    from annotationlib import Format

# Decorating loads the modules above. `_reading` loads the language, when a kernel has to be read: a
# kernel that is found on disk does not need it. Other local imports are of modules that few
# programs need, or that are loaded with the first call.
if TYPE_CHECKING:
    from inspect import Signature as PythonSignature
    from pathlib import Path

    from pscdsl._src.artefacts.format import Target
    from pscdsl._src.calls import boundary
    from pscdsl._src.frontend.definitions import Definition
    from pscdsl._src.frontend.interpreter.writing import WritingKernel
    from pscdsl._src.frontend.modules.traces import Trace
    from pscdsl._src.ir.program import Function
    from pscdsl._src.kernels.captured_state import Watch
    from pscdsl._src.kernels.executables import CacheInfo
    from pscdsl._src.kernels.inspection import Inspection
    from pscdsl._src.kernels.interpretation import InterpretedStep
    from pscdsl._src.kernels.lowered import Compiled, Lowered
    from pscdsl._src.kernels.reading import Reading
    from pscdsl._src.kernels.warm_start import Start
    from pscdsl._src.language.donation import Donate
    from pscdsl._src.language.writes import Writes
    from pscdsl._src.support.effects import Kind
    from pscdsl._src.xla.dispatch import BoundExecutable
    from pscdsl._src.xla.mesh import Mesh
    from pscdsl._src.xla.runtime.executable import Executable
    from pscdsl._src.xla.specialisation import Specialisation
    from pscdsl.typing.diagnostics import Diagnostic
    from pscdsl.typing.signatures import Choice, Signature, Spec

Budget: TypeAlias = str | Sequence[str]
"""Bounds on the cost of a kernel, in one text or in several."""

_SIZE_BITS = 63
PUBLIC = (
    "name signature writes functional check ir lower lower_for compile with_options cache_info "
    "export to_jax inspect interpret"
).split()
"""The attributes of a kernel that are for users."""

P = ParamSpec("P")
R = TypeVar("R")


class Kernel(Called[P, R]):
    """A pure, typed function that is compiled for the sizes of its arguments.

    Examples:
        >>> @psc.kernel
        ... def norm(x: f32["n"]) -> f32:
        ...     return np.sqrt(np.sum(x * x))
        >>> norm
        <kernel norm>
        >>> norm(np.array([3, 4], np.float32))
        pscdsl.Array(5., dtype=float32)
    """

    def __init__(
        self,
        function: Callable[P, R] | None,
        definition: Definition | None = None,
        donate: Donate | None = None,
        budget: Budget | None = None,
        fast_math: bool | None = None,
        writes: Writes | None = None,
    ):
        self._function = function
        self._donate, self._budget, self._fast_math = donate, budget, fast_math
        self._writes = writes or None
        """The parameters that it writes to."""
        self._is_functional = False
        """Whether it returns the new arrays, and leaves its arguments as they are."""
        self._device: Device | None = None
        self._definition = definition
        self._executables = Executables()
        self._made_of: Kernel[..., Any] | None = None
        """The kernel that this one has other options than, or that a class inherits."""
        self._owner: weakref.ref[type[Any]] | None = None
        """The class that has it as a method."""
        self._inherited: weakref.WeakKeyDictionary[type[Any], Kernel[P, R]] | None = None
        """The same method for classes that derive from its class."""
        self._heir: weakref.ref[type[Any]] | None = None
        """The class that this is the inherited method of."""
        self.trace: Trace | None = None
        """The look-ups when the kernel was read; None if it was not read."""
        self._watch: Watch | None = None
        """The captured values, as soon as a program was found for a call."""
        self._spec: object = None
        """The spec of the module that held the kernel under its name when it was made."""
        if function is not None:
            functools.update_wrapper(self, function)

    @classmethod
    def from_definition(cls, definition: Definition) -> Kernel[Any, Any]:
        """Return a kernel that was read from source and never loaded."""
        made: Kernel[Any, Any] = Kernel(None, definition)
        made._writes = cast("Writes", definition.writes) or None
        return made

    @property
    def definition(self) -> Definition:
        """The front end's definition of this kernel."""
        return self.reading.definition

    @property
    def reading(self) -> Reading:
        """The reading of the kernel, repeated if the kernel has to be read again."""
        reread()
        return self._reading

    @functools.cached_property
    def _reading(self) -> Reading:
        """The half that needs the language."""
        from pscdsl._src.kernels.reading import Reading

        heir = None if self._heir is None else self._heir()
        if heir is not None and self._made_of is not None:
            return self._made_of.reading.inherited(self, heir)
        return Reading(self, self._function, self._own_options, self._definition)

    def begin_reading(self, trace: Trace) -> Trace:
        """Use a new trace for the look-ups from now on."""
        self._tell()
        self.trace = trace
        return trace

    def __pscdsl_definition__(self) -> Definition | WritingKernel:
        """Return the definition of this kernel for a kernel that calls it."""
        if not self.writes:
            return self.definition
        from pscdsl._src.frontend.interpreter.writing import WritingKernel  # it is read now

        return WritingKernel(self.definition)

    @property
    def writes(self) -> tuple[str, ...]:
        """The parameters whose arrays a call writes to.

        Examples:
            >>> @psc.kernel(writes="x")
            ... def clear(x: f32["n"]) -> None:
            ...     x[:] = 0
            >>> clear.writes
            ('x',)
        """
        writes = None if self._is_functional else self._writes
        if writes is None:
            return ()
        return (writes,) if isinstance(writes, str) else tuple(writes)

    @property
    def declared_writes(self) -> Writes | None:
        """The declared `writes`, also of the functional form."""
        return self._writes

    @functools.cached_property
    def functional(self) -> Kernel[P, Any]:
        """The kernel as a pure function, which leaves its arguments as they are.

        It returns what the kernel returns, then the new value of each parameter in `writes`, in the
        order of the parameters. Where the kernel returns nothing, these are all that it returns,
        and one alone is in no tuple. Derivatives, batches, loops, artefacts and functions for jax
        are made of it. Of a kernel without `writes` it is the kernel itself.

        Examples:
            >>> @psc.kernel(writes="x")
            ... def clear(x: f32["n"]) -> None:
            ...     x[:] = 0
            >>> x = np.ones(2, np.float32)
            >>> clear.functional(x), x
            (pscdsl.Array([0., 0.], dtype=float32), array([1., 1.], dtype=float32))
        """
        if not self.writes:
            return self
        made: Kernel[P, Any] = self._variant()
        made._is_functional, made._made_of, made.trace = True, self, None
        tell(made)
        return made

    @property
    def name(self) -> str:
        """The name of the function.

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> norm.name
            'norm'
        """
        return self.definition.name if self._function is None else self._function.__name__

    @property
    @public
    def signature(self) -> Signature:
        """The declared types; printed, they are text.

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> print(norm.signature)
            norm(x: f32[n]) -> f32
        """
        return self.reading.signature

    @property
    def device(self) -> Device:
        """The device of its programs."""
        return default_device() if self._device is None else self._device

    @property
    def _own_options(self) -> tuple[Donate | None, Budget | None, bool | None, Writes | None]:
        return self._donate, self._budget, self._fast_math, self._writes

    @public
    def with_options(
        self,
        donate: Donate | None = None,
        budget: Budget | None = None,
        fast_math: bool | None = None,
        device: Device | None = None,
    ) -> Kernel[P, R]:
        """Return the same kernel with other options.

        Args:
            donate: As in `kernel`.
            budget: As in `kernel`.
            fast_math: As in `kernel`.
            device: Where calls run, one of `psc.devices`; by default the one that the environment
                variable `PSCDSL_PLATFORM` chooses. Arguments are copied there, and results stay
                there. Kernels that call this one, and its derivatives, run where they are called.

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> norm.with_options(fast_math=True)(np.array([3, 4], np.float32))
            pscdsl.Array(5., dtype=float32)
        """
        current = self.reading
        made = self._variant()
        made._donate = self._donate if donate is None else donate
        made._budget = self._budget if budget is None else budget
        made._fast_math = self._fast_math if fast_math is None else fast_math
        made._device = self._device if device is None else device
        changed = donate, budget, fast_math, None
        made._reading = current.with_options(made, made._own_options, changed)
        if self._definition is not None:
            made._definition = made._reading.definition
        made._made_of, made.trace = self, None  # `self` has the trace of its reading
        tell(made)
        return made

    def donated(
        self, choice: Choice, donate: Donate | None = None, constants: Sequence[str] = ()
    ) -> tuple[int, ...]:
        """Return the arrays, by their place in the program, that give their memory to results."""
        return self.reading.donated(choice, donate, constants)

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    _repr_html_ = html_method("kernels")

    def __dir__(self) -> list[str]:
        """Return the names for users, as the reference documents them."""
        return sorted({*PUBLIC, *dir(object)})

    def __copy__(self) -> Kernel[P, R]:
        """Return the kernel itself, as copies of functions do."""
        return self

    def __deepcopy__(self, memo: object) -> Kernel[P, R]:
        """Return the kernel itself."""
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Reduce the kernel to its name, as functions are; a PicklingError if that is not found."""
        if self._is_functional:
            base = self._made_of
            if base is None or not base.writes:  # one with other options
                base = self._variant()
                base._is_functional = False
            return getattr, (base, "functional")
        from pscdsl._src.language.pickling import by_name

        heir = None if self._heir is None else self._heir()
        if heir is not None and self._function is not None:
            name = self._function.__name__
            if getattr(heir, name, None) is self:
                return getattr, (heir, name)
        return by_name(self, self._function, self._with_its_options())

    def _with_its_options(self) -> Callable[[Any], Any]:
        """Return a function that makes a kernel with the options of this one."""
        options: dict[str, Any] = {
            "donate": self._donate,
            "budget": self._budget,
            "fast_math": self._fast_math,
            "writes": self._writes,
        }
        if self._device is None:
            return functools.partial(kernel, **options)
        return functools.partial(_on_device, self._device, options)

    def __set_name__(self, owner: type[Any], name: str) -> None:
        """Note the class in which the kernel is a method."""
        del name
        self._owner = weakref.ref(owner)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Return the kernel as a method: in a class it is a function of its first argument."""
        made = self._of_class(type(instance) if owner is None else owner)
        return made if instance is None else functools.partial(made, instance)  # type: ignore[arg-type]

    def _of_class(self, cls: type[Any]) -> Kernel[P, R]:
        """Return the kernel for a class: another one if the class inherits it."""
        own = None if self._owner is None else self._owner()
        if own is None or cls is own or own not in cls.__mro__:
            return self
        if self._inherited is None:
            self._inherited = weakref.WeakKeyDictionary()
        made = self._inherited.get(cls)
        if made is None:
            made = self._inherited[cls] = self._variant()
            made._made_of, made._heir, made.trace = self, weakref.ref(cls), None
            tell(made)
        return made

    def _variant(self) -> Kernel[P, R]:
        """Return a copy of the kernel without compiled programs."""
        made: Kernel[P, R] = object.__new__(called_through(type(self)))
        made.__dict__.update(self.__dict__)
        for name in self._OF_READING:
            made.__dict__.pop(name, None)
        made._executables, made._spec, made._inherited = Executables(), None, None
        return made

    @public
    def check(self) -> tuple[Diagnostic, ...]:
        """Check the kernel for all sizes.

        Returns:
            The warnings and notes.

        Raises:
            CheckError: There are errors.

        Examples:
            >>> @psc.kernel
            ... def entropy(p: f32["n"]) -> f32:
            ...     return -np.sum(p * np.log(1 + p))
            >>> [(found.code, found.message()) for found in entropy.check()]
            [('PSC708', '`log(1 + x)` loses the digits of a small `x`')]
        """
        return self.reading.check()

    @public
    def ir(self, **choices: Any) -> Function:
        """Return the typed program; printed, it is text.

        Args:
            choices: What the signature leaves open: dtypes, ranks, lengths, static values.

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> print(norm.ir())
            norm[n](x: f32[n]) -> f32
              a: f32[n] = multiply x x
              b: f32 = reduce[kind=sum, axes=(0,)] a
              c: f32 = sqrt b
              -> c
        """
        return self.reading.instance(self.reading.chosen(choices))

    def optimised(
        self,
        choice: Choice,
        constants: Sequence[str] = (),
        effects: frozenset[Kind] | None = None,
    ) -> Function:
        """Return the typed program without dead and repeated equations, and unobservable checks.

        The parameters that are `constants` are not taken: their numbers are their defaults. It has
        the effects that are switched on, or those of some kinds.
        """
        return self.reading.optimised(choice, constants, effects)

    @public
    def lower(self, *, donate: Donate | None = None, **sizes: Any) -> Lowered:
        """Return the StableHLO at the given sizes.

        Args:
            donate: Parameters whose memory results may take, in place of those of the kernel.
            sizes: Sizes by name, and what else the signature leaves open.

        Returns:
            An object with the methods `text()` and `compile()`.

        Examples:
            >>> @psc.kernel
            ... def doubled(x: f32["n"]) -> f32["n"]:
            ...     return x + x
            >>> print(doubled.lower(n=4).text())
            module {
              func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
                %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
                return %0 : tensor<4xf32>
              }
            }
        """
        open_parts = self.signature.open_parts()
        choices = {key: value for key, value in sizes.items() if key in open_parts}
        choice = self.reading.chosen(choices)
        program = self.optimised(choice)
        given = {key: value for key, value in sizes.items() if key not in open_parts}
        if given.keys() != set(program.dims):
            wanted, names = (", ".join(each) or "none" for each in (program.dims, given))
            raise ArgumentError(f"{self.name} has the sizes {wanted}; given are: {names}")
        numbers = {key: self._size(key, value) for key, value in given.items()}
        return self._lowered(self.specialisation(choice, numbers, donate=donate))

    def specialisation(
        self,
        choice: Choice,
        sizes: Mapping[str, int],
        constants: tuple[str, ...] = (),
        donate: Donate | None = None,
        effects: frozenset[Kind] | None = None,
    ) -> Specialisation:
        """Return the specialisation at admitted sizes, with some parameters constant.

        It has the effects that are switched on, or those of some kinds.
        """
        self.require_pure("compiled ahead or exported")
        return self.reading.specialisation(choice, sizes, constants, donate, effects)

    def specialisation_for(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], constants: tuple[str, ...] = ()
    ) -> Specialisation:
        """Return the specialisation for the arguments' types, with some parameters constant."""
        _, types = self.arguments(args, kwargs)
        return self.specialisation(*self.matched(types), constants)

    def without_effects(self, wanted: Specialisation) -> Specialisation:
        """Return a specialisation without effects, for programs that leave this process."""
        if not wanted.effects:
            return wanted
        found = self.specialisation(
            wanted.choice, wanted.sizes, wanted.constants, effects=frozenset()
        )
        return replace(found, donate=wanted.donate)

    def require_pure(self, what: str) -> None:
        """Raise an ArgumentError if the kernel writes to its arguments, and so cannot be `what`."""
        if self.writes:
            raise ArgumentError(
                f"{self.name} writes to its arguments, and cannot be {what}; "
                f"its functional form can, `{self.name}.functional`, which returns the new arrays"
            )

    def _lowered(self, specialisation: Specialisation) -> Lowered:
        from pscdsl._src.kernels.lowered import Lowered

        return Lowered(self, specialisation, self.traces())

    def _size(self, name: str, value: Any) -> int:
        try:
            size = operator.index(value)
        except TypeError:
            said = f"{self.name}: size {name} is {value!r}; a size is an integer"
            raise ArgumentError(said) from None
        if size.bit_length() > _SIZE_BITS:
            raise ArgumentError(f"{self.name}: size {name} has more than {_SIZE_BITS} bits")
        return size

    @public
    def lower_for(self, *args: Any, **kwargs: Any) -> Lowered:
        """Return the StableHLO for the types of the arguments; their contents do not count.

        Numbers that are left to their defaults are constants in it, as in the program that a call
        runs.

        Examples:
            >>> @psc.kernel
            ... def doubled(x: Float["n"]) -> Float["n"]:
            ...     return x + x
            >>> doubled.lower_for(np.ones(4, np.float32)).sizes
            {'n': 4}
        """
        return self._lowered(self.specialisation_for(args, kwargs, self.left_out(args, kwargs)))

    @public
    def compile(self, *, donate: Donate | None = None, **sizes: Any) -> Compiled:
        """Return the compiled program at the given sizes.

        The program can be called, without looking up sizes; its `text()` is the output of XLA.
        Arguments are those of `lower`.

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> compiled = norm.compile(n=2)
            >>> compiled(np.array([3, 4], np.float32))
            pscdsl.Array(5., dtype=float32)
        """
        return self.lower(donate=donate, **sizes).compile()

    @public
    def export(
        self,
        path: Path | str | None = None,
        /,
        *variants: Mapping[str, Any] | tuple[Any, ...],
        target: Target = "any",
        donate: Donate | None = None,
        key: bytes | None = None,
        mesh: Mapping[str, int] | None = None,
        **sizes: Any,
    ) -> bytes:
        """Export the kernel at the given sizes, for `psc.load` without its source.

        Args:
            path: The file to write; without it, the bytes are only returned.
            variants: Several sizes, `{"n": 4}, {"n": 8}`, or tuples of example arguments as in
                `psc.compile_all`.
            target: "any" for portable StableHLO, or "cpu" to include forms for CPUs.
            donate: Parameters whose memory results may take, as in `lower`.
            key: A signing key of 16 bytes or more. By default it is the user's own, which the first
                export creates.
            mesh: The axes of a mesh, `{"data": 8}`, on which the loaded kernel runs: each device
                has its pieces. This machine needs no such devices.
            sizes: Sizes that all variants share.

        Returns:
            The bytes of the artefact.

        Raises:
            ArtefactError: There is no place for the user's key.

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> data = norm.export(n=2)
            >>> psc.load(data)(np.array([3, 4], np.float32))
            pscdsl.Array(5., dtype=float32)
        """
        from pscdsl._src.kernels.exporting import export

        return export(self, path, variants, target, donate, key, sizes, mesh)

    def executable(self, wanted: Specialisation, *, ahead: bool = False) -> Executable:
        """Return the compiled program at given sizes, made once, or found on disk.

        One that is made `ahead` serves all calls, also those that leave numbers to their defaults.
        """
        return self._executables.get(wanted, ahead=ahead)

    def bound_executable(
        self, specialisation: Specialisation, executable: Executable, *, fills: bool = False
    ) -> BoundExecutable:
        """Bind a compiled program for calls; see `BoundExecutable` for `fills`."""
        return self._passing.bound_executable(specialisation, executable, fills=fills)

    def cache_info(self) -> CacheInfo:
        """Return how often this kernel was compiled or loaded from disk, and how long that took.

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> lengths = [norm(np.ones(n, np.float32)) for n in (2, 3, 2)]
            >>> info = norm.cache_info()
            >>> info.misses, info.entries
            (2, 2)
        """
        return self._executables.info

    @public
    def inspect(self, *args: P.args, **kwargs: P.kwargs) -> Inspection:
        """Return the result of a call, and the values that it recorded by `psc.debug.value`.

        Returns:
            `.result`, and `.values`: a list for each name, in the order of recording.

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(psc.debug.value("squares", x * x)))
            >>> norm.inspect(np.array([3, 4], np.float32)).values["squares"]
            [array([ 9., 16.], dtype=float32)]
        """
        from pscdsl._src.kernels.inspection import inspect  # of few kernels

        return inspect(self, args, kwargs)

    @public
    def interpret(
        self,
        *args: Any,
        watcher: Callable[[InterpretedStep], object] | None = None,
        breakpoints: Collection[int] = (),
        **kwargs: Any,
    ) -> R:
        """Return the result of a call, computed by NumPy, one equation after another.

        Nothing is compiled, so that each step can be seen: where a NaN appears, or what a line
        computes. It takes far longer than a call.

        Args:
            args: The arguments of the call.
            watcher: It is called with each step: its `line` and `source`, its `operation` as in
                `kernel.ir()`, and the arrays that are its `operands` and `results`.
            breakpoints: Lines of the source; after each step of theirs, the debugger stops, where
                `step` is that step.
            kwargs: The arguments of the call by name.

        Returns:
            The result, as NumPy arrays.

        Examples:
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> x = np.array([3, 4], np.float32)
            >>> norm.interpret(x, watcher=lambda step: print(step.operation, step.results))
            a: f32[n] = multiply x x (array([ 9., 16.], dtype=float32),)
            a: f32 = reduce[kind=sum, axes=(0,)] b (array(25., dtype=float32),)
            a: f32 = sqrt b (array(5., dtype=float32),)
            array(5., dtype=float32)
        """
        from pscdsl._src.kernels.interpretation import interpret  # of few kernels

        self.require_pure("interpreted")
        instance = self.reading.instance
        result: R = interpret(self, instance, (args, kwargs), watcher, breakpoints)
        return result

    @public
    def to_jax(self) -> Callable[P, R]:
        """Return a function of jax arrays, for `jit`, `grad`, `vmap` and `scan` of jax.

        Its derivatives and batches are those of the kernel. Pass random keys as
        `jax.random.key_data(key)`. jax must be installed.

        Examples:
            >>> import jax
            >>> @psc.kernel
            ... def norm(x: f32["n"]) -> f32:
            ...     return np.sqrt(np.sum(x * x))
            >>> jax.jit(jax.grad(norm.to_jax()))(jax.numpy.array([3.0, 4.0]))
            Array([0.6, 0.8], dtype=float32)
        """
        from pscdsl._src.interop.to_jax import kernel_to_jax

        self.require_pure("passed to jax")
        return kernel_to_jax(self)

    # Reading again.

    _OF_READING = "dispatcher", "_start", "_reading", "_python_signature", "functional"
    """The attributes that a reading caches."""

    @functools.cached_property
    def dispatcher(self) -> Any:
        """Finds the compiled program for a call's arguments."""
        reread()
        self._tell()
        if self.writes:
            from pscdsl._src.kernels.writing import WritingCalls  # of few kernels

            return WritingCalls(self.functional, self.writes)
        convention = self._calling_convention()
        if convention.mesh_axes:
            from pscdsl._src.kernels.mesh_calls import MeshCalls, compiled  # of few kernels

            require_modules()
            alone = self.dispatcher_for(self._specialise, convention.donated, convention.constants)

            def make(choice: Choice, sizes: Mapping[str, int], mesh: Mesh) -> Any:
                made = compiled(self.reading, choice, sizes, mesh)
                self._watch_captures()
                return made

            return MeshCalls(self, alone, make)
        return self._made_dispatcher()

    def _tell(self) -> None:
        if isinstance(self._function, types.FunctionType) and self._spec is None:
            self._spec = spec_of(self._function, self)
        tell(self)

    def _entered(self, dispatcher: Any, entry: Any) -> None:
        super()._entered(dispatcher, self._asking if STATE.asked else self._watching(entry))

    def _watching(self, entry: Any) -> Any:
        """Return an entry that compares captured values, if any; see `captured_state`."""
        watch = self._watch
        return entry if watch is None else watch.watching(entry, lambda: self.name)

    @property
    def watch(self) -> Watch | None:
        """The captured values, as soon as a program was found for a call."""
        return self._watch

    @property
    def watched_function(self) -> Callable[..., Any] | None:
        """The function of the kernel, which has no other holder."""
        return self._function

    def traces(self) -> tuple[Trace, ...]:
        """Return the look-ups when the kernel was read, or those found on disk."""
        read = (self.trace, None if self._made_of is None else self._made_of.trace)
        start: Start | None = self.__dict__.get("_start")
        found = tuple([each for each in read if each is not None])
        return found or (() if start is None else tuple(start.traces))

    def _watch_captures(self) -> None:
        """Compare the captured values from now on."""
        from pscdsl._src.kernels.captured_state import Watch

        watch = Watch(self.traces(), self._function)
        watch.require_same(lambda: self.name)  # which may have been read some time ago
        self._watch = watch if watch else None
        if self._watch is not None and "dispatcher" in self.__dict__:
            self._entered(self.dispatcher, self.dispatcher.entry)

    def ask_first(self) -> None:
        """Ask before the next call whether the kernel is to be read again: see `rereading`."""
        if "dispatcher" in self.__dict__:
            call_directly(self, self._asking)

    def go_on(self) -> None:
        """Call the kernel as it was read."""
        if "dispatcher" in self.__dict__:
            call_directly(self, self._watching(self.dispatcher.entry))

    @public
    def _asking(self, *args: Any, **kwargs: Any) -> Any:
        reread()
        return self._watching(self.dispatcher.entry)(*args, **kwargs)

    def found_changed(self, changed: Callable[[Any], bool]) -> bool:
        """Return whether its original has changed, or the look-ups that found it now differ."""
        if self._made_of is not None and changed(self._made_of):
            return True
        if self._successor() is not self:
            return True
        start: Start | None = self.__dict__.get("_start")
        return self.trace is None and start is not None and start.has_changed(self)

    def _successor(self) -> Kernel[..., Any]:
        """Return the kernel by which `%autoreload` has replaced this one."""
        if not isinstance(self._function, types.FunctionType):
            return self
        kernel = successor(self._function, self, self._spec)
        return kernel if isinstance(kernel, Kernel) else self  # pyright: ignore[reportUnknownVariableType]

    def redispatch(self) -> None:
        """Find the programs of calls again: other effects are compiled now."""
        object.__setattr__(self, "__class__", called_through(type(self)))
        for name in ("dispatcher", "_start"):
            self.__dict__.pop(name, None)

    def forget(self) -> None:
        """Be read again when it is needed."""
        successor_ = self._successor() if self._made_of is None else self._made_of
        if successor_ is not self:
            self._function = successor_._function
        if isinstance(successor_._function, types.FunctionType) and self._made_of is None:
            self._spec = spec_of(successor_._function, successor_)
            options = successor_._own_options
            self._donate, self._budget, self._fast_math, self._writes = options
        object.__setattr__(self, "__class__", called_through(type(self)))
        for name in self._OF_READING:
            self.__dict__.pop(name, None)
        self.trace = self._watch = None
        self._executables.forget()

    # Calls.

    @property
    def python_signature(self) -> PythonSignature:
        """The parameters as Python has them."""
        return self._python_signature

    @functools.cached_property
    def _python_signature(self) -> PythonSignature:
        if self._function is None:
            return self.reading.python_signature
        if sys.version_info >= (3, 14):  # annotations may name unbound names
            return inspect.signature(self._function, annotation_format=Format.STRING)
        return inspect.signature(self._function)

    def record_class(self, cls: type[Any], spec: Spec | None) -> boundary.InstanceClass | None:
        """Return the front end's description of an argument's class; None if it is unknown."""
        return self.reading.record_class(cls)

    @property
    def number_defaults(self) -> Mapping[str, Any]:
        """The parameters with a number for their default, which programs take as an array."""
        return self.reading.number_defaults

    def _constants(self) -> Sequence[str]:
        return tuple(self.number_defaults)

    def _donated_names(self) -> Sequence[str]:
        return self.reading.donated_names()

    def _specialise(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundExecutable:
        """Find or make the program for arguments of a kind."""
        start = self._start
        stored = None if start is None else start.find(self, args, kwargs)
        if stored is not None:
            bound, key = stored
            self._executables.take_over(key, bound.executable)
            self._watch_captures()
            return bound
        left_out = self.left_out(args, kwargs)
        specialisation = self._specialisation_of_call(args, kwargs, left_out)
        specialisation = self._with_groups(specialisation, args, kwargs)
        fills = specialisation.constants != left_out
        executable = self.executable(specialisation)
        bound = self.bound_executable(specialisation, executable, fills=fills)
        if start is not None and not executable.has_effects:
            convention = super()._calling_convention()
            start.keep(self, (args, kwargs), convention, bound, specialisation)
        self._watch_captures()
        return bound

    def _with_groups(
        self, specialisation: Specialisation, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Specialisation:
        """Return the specialisation of a call whose numbers of the host travel together."""
        from pscdsl._src.xla.specialisation import number_groups

        if specialisation.effects:
            return specialisation
        leaves = self.arguments(args, kwargs, specialisation.constants)[0]
        types = specialisation.program.body.in_types
        groups = number_groups(leaves, types, specialisation.donate)
        return replace(specialisation, groups=groups)

    def _specialisation_of_call(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], left_out: tuple[str, ...]
    ) -> Specialisation:
        """Return the specialisation that a call runs: omitted numbers are constants.

        If only the general one, which takes these numbers, was compiled ahead, return that.
        """
        own = self.specialisation_for(args, kwargs, left_out)
        if not left_out or self._executables.is_there(own):
            return own
        general = self.specialisation_for(args, kwargs)
        return general if self._executables.is_ahead(general) else own

    @functools.cached_property
    def _start(self) -> Start | None:
        """The entries on disk for this kernel; None if nothing is stored."""
        if self._heir is not None or COMPILED.kinds != DEFAULT:
            return None  # it is stored under its own class, or with other effects
        from pscdsl._src.kernels.warm_start import Start

        return Start.of(self)

    def _calling_convention(self) -> CallingConvention:
        start = self._start
        known = None if start is None else start.convention
        return super()._calling_convention() if known is None else known

    def __pscdsl_origin__(self) -> object:
        """Return the identity of this kernel; see `pscdsl._src.frontend.modules.traces`."""
        heir = () if self._heir is None else (self._heir(),)
        if self._is_functional:  # it is read from the function, as a separate kernel
            return self._function or object(), *self._own_options, *heir, "functional"
        return self._made_of or self._function or object(), *self._own_options, *heir


def _redispatch() -> None:
    for thing in read_things():
        if isinstance(thing, Kernel):
            thing.redispatch()


COMPILED.changed = _redispatch


@public
def load_kernel(path: Path | str, name: str) -> Kernel[Any, Any]:
    """Return a kernel built from a file's source, without importing it.

    Raises LookupError if the file has no such kernel, CheckError if it cannot be read.
    """
    from pscdsl._src.kernels import reading

    return Kernel.from_definition(reading.load(path, name))


def _on_device(device: Device, options: Mapping[str, Any], function: Any) -> Kernel[..., Any]:
    """Make a kernel with a device again when it is unpickled."""
    made: Kernel[..., Any] = kernel(function, **options)
    return made.with_options(device=device)


@overload
def kernel(
    function: Callable[P, R],
    /,
    *,
    donate: Donate | None = None,
    budget: Budget | None = None,
    fast_math: bool | None = None,
    writes: Writes | None = None,
) -> Kernel[P, R]: ...
@overload
def kernel(
    *,
    donate: Donate | None = None,
    budget: Budget | None = None,
    fast_math: bool | None = None,
    writes: Writes | None = None,
) -> Callable[[Callable[P, R]], Kernel[P, R]]: ...
def kernel(
    function: Callable[..., Any] | None = None,
    /,
    *,
    donate: Donate | None = None,
    budget: Budget | None = None,
    fast_math: bool | None = None,
    writes: Writes | None = None,
) -> Any:
    """Make a kernel of a pure function with typed array parameters.

    Args:
        function: A function whose parameters and result have array types; without it, a decorator
            is returned.
        donate: Names or positions of parameters whose memory results of the same type may take.
            Arrays passed for them cannot be used after a call. NumPy arrays are not affected.
        budget: A bound of the cost, `"flops <= 2*n*d, peak <= 8*n*d"`, which `pscdsl check` proves.
        fast_math: Whether XLA may rewrite arithmetic by the laws of real numbers, for the kernel,
            what it calls, and its derivatives and batches: `a / b / c` becomes `a / (b * c)`,
            divisions become products, and sums of products use a library that is wrong for some
            shapes.
        writes: Names of array parameters that the function stores into. A call writes the NumPy
            arrays that are passed for them, when all is computed: not if it fails. They must be
            writeable, of exactly the dtype, and share no memory with other arguments.

    Returns:
        A `Kernel`, which is called like the function.

    Examples:
        >>> @psc.kernel
        ... def normalised(x: f32["n d"]) -> f32["n d"]:
        ...     return x / np.sum(x, axis=1, keepdims=True)
        >>> normalised(np.array([[1, 3], [2, 2]], np.float32))
        pscdsl.Array([[0.25, 0.75],
                      [0.5 , 0.5 ]], dtype=float32)
    """
    if fast_math is not None and not isinstance(fast_math, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("psc.kernel takes True or False for `fast_math`")
    if function is None:
        return functools.partial(
            kernel, donate=donate, budget=budget, fast_math=fast_math, writes=writes
        )
    if isinstance(function, Kernel):
        known: Kernel[..., Any] = function  # pyright: ignore[reportUnknownVariableType]
        if writes is not None and writes != known.declared_writes:
            raise TypeError("psc.kernel takes `writes` where it makes a kernel of a function")
        if donate is None and budget is None and fast_math is None:
            return known
        return known.with_options(donate, budget, fast_math)
    return Kernel(function, donate=donate, budget=budget, fast_math=fast_math, writes=writes)
