"""Objects that Python calls with arguments that fit a signature: kernels, loaded or not."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeAlias, TypeVar

from pscdsl._src.calls.errors import ArgumentError, CheckError
from pscdsl._src.support.processes import require_modules
from pscdsl._src.support.tracebacks import shown
from pscdsl._src.xla.device import default_device

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Collection

    from pscdsl._src.calls import boundary
    from pscdsl._src.calls.passing import Passing
    from pscdsl._src.xla.device import Device
    from pscdsl._src.xla.dispatch import BoundExecutable
    from pscdsl.typing.array_types import Type
    from pscdsl.typing.assumptions import Assumptions
    from pscdsl.typing.signatures import Choice, Signature, Spec


# Objects whose calls are those of another function, with no frame of Python's between.
#
# Python looks `__call__` up in the class: each object that is called directly has a separate class.


_CALLED_THROUGH = "__called_through__"


def call_directly(thing: Any, function: Any) -> None:
    """Make calls of the object call the function directly, from now on."""
    base = called_through(thing.__class__)
    names: dict[str, object] = {
        "__call__": staticmethod(function),
        "__doc__": base.__doc__,
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__slots__": (),
        _CALLED_THROUGH: base,
    }
    object.__setattr__(thing, "__class__", type(base.__name__, (base,), names))


def called_through(cls: type[Any]) -> type[Any]:
    """Return the class that an object had before it was called directly."""
    base: type[Any] = vars(cls).get(_CALLED_THROUGH, cls)
    return base


P = ParamSpec("P")
R = TypeVar("R")
Specialise: TypeAlias = "Callable[[tuple[Any, ...], dict[str, Any]], BoundExecutable]"


class CallingConvention(NamedTuple):
    """The way in which the arguments of a kernel are passed."""

    name: str
    parameters: tuple[str, ...]
    """All of them; the first `positional` ones may be given by position."""
    positional: int
    static: tuple[str, ...]
    inner_statics: bool
    """Whether static values are declared inside of the others."""
    tree_statics: bool
    """Whether there may be some inside of arguments of any structure."""
    donated: tuple[str, ...]
    """The parameters whose memory results may take."""
    constants: tuple[str, ...]
    """The parameters with a number as default, a constant of the programs of calls without them."""
    mesh_axes: tuple[str, ...]
    """The mesh axes that it names."""
    plain: bool
    """Whether each must be given, and may be by name."""


class Called(Generic[P, R]):
    """A function of arrays that finds its compiled program by the kind of its arguments."""

    @property
    def name(self) -> str:
        """The name in messages."""
        raise NotImplementedError

    @property
    def signature(self) -> Signature:
        """The declared types."""
        raise NotImplementedError

    @property
    def device(self) -> Device:
        """The device of its programs."""
        return default_device()

    @property
    def python_signature(self) -> inspect.Signature:
        """The parameters as Python has them."""
        raise NotImplementedError

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by parameter, as Python binds them."""
        arguments = self._bind(args, kwargs)
        arguments.apply_defaults()
        return arguments.arguments

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        try:
            return self.python_signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{self.name}: {error}") from None

    def left_out(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the parameters that a call omits and that programs have as constants."""
        constants = self._calling_convention().constants
        passed = self._bind(args, kwargs).arguments if constants else {}
        return tuple([name for name in constants if name not in passed])

    def record_class(self, cls: type[Any], spec: Spec | None) -> boundary.InstanceClass | None:
        """Return the description of an argument's class, declared as `spec`; None if unknown."""
        raise NotImplementedError

    def _constants(self) -> Sequence[str]:
        """Return the parameters that may be constants of a program, with their defaults."""
        return ()

    def _donated_names(self) -> Sequence[str]:
        """Return the parameters whose memory results may take."""
        raise NotImplementedError

    def _specialise(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundExecutable:
        """Find or make the program for arguments of a kind."""
        raise NotImplementedError

    @property
    def _passing(self) -> Passing:
        """The reader of arguments, which calls of programs from an earlier process do not need."""
        from pscdsl._src.calls.passing import Passing

        return Passing(self)

    def arguments(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], constants: Collection[str] = ()
    ) -> tuple[list[Any], dict[str, Type]]:
        """Return the arrays of a call, in the order of the program's parameters, and their types.

        The program does not take those that are `constants` of it.
        """
        return self._passing.arguments(args, kwargs, constants)

    def matched(self, types: Mapping[str, Type]) -> tuple[Choice, dict[str, int]]:
        """Return the choice that arguments of these types make in the signature, and the sizes.

        An ArgumentError names an argument that does not fit.
        """
        return self._passing.matched(types)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run on the device; the result may be computed after this returns."""
        try:
            result: R = self.dispatcher.entry(*args, **kwargs)
        except Exception as error:
            error.__traceback__ = shown(error)
            raise
        return result

    def explain(self, error: Exception, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raise an ArgumentError if a call failed because an argument's memory was given away."""
        # Loaded with the dispatcher, if there was a call.
        from pscdsl._src.xla.dispatch import explanation

        problem = explanation(error, self.name, self.bound(args, kwargs), self._donated_names())
        if problem is not None:
            raise ArgumentError(problem) from None

    @functools.cached_property
    def dispatcher(self) -> Any:
        """Finds the compiled program for a call's arguments."""
        return self._made_dispatcher()

    def _made_dispatcher(self) -> Any:
        require_modules()
        convention = self._calling_convention()
        made = self.dispatcher_for(self._specialise, convention.donated, convention.constants)
        made.enter(functools.partial(self._entered, made))
        return made

    def _entered(self, dispatcher: Any, entry: Any) -> None:
        """Make calls use an entry, unless another dispatcher has taken over."""
        if self.__dict__.get("dispatcher", dispatcher) is dispatcher:
            call_directly(self, entry)

    def dispatcher_for(
        self, specialise: Specialise, donated: Collection[str], constants: Collection[str]
    ) -> Any:
        """Return a dispatcher that calls programs with arguments passed as for this one.

        Results may take the memory of the parameters that are `donated`. Parameters that may be
        `constants` are not passed to programs where a call omits them.
        """
        # jaxlib is loaded when something is called.
        from pscdsl._src.xla import binding, dispatch

        convention = self._calling_convention()
        positional = convention.parameters[: convention.positional]
        return dispatch.Dispatcher(
            specialise,
            [index for index, name in enumerate(positional) if name in convention.static],
            convention.static,
            name=convention.name,
            parameters=binding.parameters(
                convention.parameters,
                convention.positional,
                None if convention.plain else self.python_signature,
                constants,
            ),
            inner_statics=self._inner_statics if convention.inner_statics else None,
            tree_statics=self._inner_statics if convention.tree_statics else None,
            explain=self.explain,
            final=(CheckError, ArgumentError),
            donated=donated,
            device=self.device,
        )

    def _calling_convention(self) -> CallingConvention:
        """Return the calling convention of the signature."""
        return self._passing.convention(tuple(self._donated_names()), tuple(self._constants()))

    def _inner_statics(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the static values in the records among the arguments."""
        return self._passing.inner_statics(args, kwargs)


def admit(name: str, dims: Sequence[str], facts: Assumptions, sizes: Mapping[str, int]) -> None:
    """Refuse sizes that break a precondition of the program called `name`."""
    for fact in facts.facts:
        if not fact.holds(sizes):
            values = ", ".join(f"{size}={sizes[size]}" for size in sorted(fact.names()))
            raise ArgumentError(f"{name} needs {fact}, which {values} does not meet")
    for size in dims:
        least = facts.lower_bound(size)
        if sizes[size] < least:
            raise ArgumentError(
                f"{name}: size {size} is {sizes[size]}; it is at least "
                f"{least} unless `assert {size} >= 0` admits 0"
            )
