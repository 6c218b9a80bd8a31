"""Fast calls of compiled programs: directly from C++ where possible."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from threading import RLock
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from pscdsl._src.support.processes import ShutdownError, require, require_modules, tell
from pscdsl._src.support.tracebacks import public, shown
from pscdsl._src.xla import binding, disk
from pscdsl._src.xla.binding import (
    ABSENT,
    ARRAYS,
    NUMBERS,
    Args,
    BindingParameter,
    Kwargs,
    all_arrays,
    bind_arguments,
    dtypes,
    is_native,
    is_placed,
    kind,
    needs_no_help,
    readable,
    without_foreign,
)
from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.interrupts import watch
from pscdsl._src.xla.plans import READ_BYTES, Plans
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.boot import ArrayImpl, Aval
from pscdsl._src.xla.runtime.devices import COPYING, LiveDevice, prepare, to_numpy
from pscdsl._src.xla.runtime.executable import Executable, transfer
from pscdsl._src.xla.runtime.settings import calls_wait
from pscdsl.typing.static_values import equality_tells, exact

# Calls that run in C++ once their program is known: jaxlib's `pjit`.
#
# It finds the program, hands over device arrays, and makes results, without entering Python.


class FastPath(NamedTuple):
    """A program's description for C++, which reads these names."""

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: Sequence[Any]
    out_shardings: Sequence[Any]
    out_avals: Sequence[Aval]
    out_committed: Sequence[bool]
    kept_var_bitvec: Sequence[bool]
    in_device_local_layouts: Sequence[Any]
    const_args: Sequence[Any]


class Stale(ValueError):
    """A value does not fit the program that C++ has found for it; see Note [Host values]."""


# Note [Host values]
# For a value that is no device array, C++ asks Python for the transfer if the program names a
# layout for it. We name one for exactly these: no real layout, but the data for the transfer. Small
# NumPy arrays need none where calls wait: C++ uses their memory, or copies it immediately, and has
# read it when the program has run. Larger ones it may copy in another thread: then the program does
# not run in the calling thread, and the caller gets the array back too early. It uses their memory
# if they are aligned for XLA; plans copy others. Two things can go wrong, both end in Stale and
# then in Python: C++ may take one dtype for another (a jax in the process has 64-bit types off: f64
# reads as f32), and arrays that a jax made without committing them to a device look like host
# values, and then are asked for their layout.


class HostValue:
    """An object in place of a layout that names the type to which a host value is converted."""

    __slots__ = ("aval", "dtype", "placement")

    def __init__(self, aval: Aval, placement: LiveDevice) -> None:
        self.aval = aval
        self.dtype = aval.dtype
        self.placement = placement

    def _to_xla_layout(self, dtype: object) -> object:
        raise Stale


def fast_path(
    executable: Executable,
    used: Sequence[Any],
    is_used: list[bool],
    outputs: list[Any],
    result: Any,
    donated: Collection[int] = (),
    aligned: Collection[int] = (),
) -> FastPath | None:
    """Return a path without Python for results made of arrays, containers and static values.

    C++ reads NumPy arrays in place, if they are small or their indices are in `aligned`, except
    those whose indices are in `donated`.
    """
    structure = binding.result_structure(result, outputs)
    if structure is None or executable.has_effects:
        return None
    here = executable.placement.sharding
    return FastPath(
        executable.loaded,
        structure,
        [here] * len(used),
        [here] * len(outputs),
        executable.outputs,
        [True] * len(outputs),
        is_used,
        [
            None
            if type(leaf) is ArrayImpl
            or (place not in donated and _is_read(leaf, aval, is_aligned=place in aligned))
            else HostValue(aval, executable.placement)
            for place, (leaf, aval) in enumerate(zip(used, executable.taken, strict=True))
        ],
        [],
    )


def _is_read(leaf: Any, aval: Aval, *, is_aligned: bool) -> bool:
    """Return whether C++ has finished with a value of NumPy's when the call returns."""
    return (
        is_native(leaf)
        and leaf.dtype == aval.dtype
        and leaf.dtype in dtypes()
        and (leaf.nbytes < READ_BYTES or is_aligned)
        and calls_wait()
    )


def _transfer(leaf: Any, _: Any, target: HostValue) -> Any:
    if type(leaf) is np.ndarray and leaf.dtype is target.dtype:  # C++ has compared the shape
        here = target.placement  # as `copied` does, without its frame
        return here.batched_put(
            target.aval, here.sharding, [leaf], here.device_list, *COPYING, enable_x64=True
        )
    try:
        return transfer(leaf, target.aval, target.placement)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise Stale from error


class _Shared:
    """The key under which C++ keeps our functions."""


_shared = _Shared()


@boot.once
def _programs() -> Any:
    return boot.jax.PjitFunctionCache(8192)


def in_cpp(
    name: str,
    miss: Callable[..., Any],
    static_argnums: frozenset[int] = frozenset(),
    static_argnames: frozenset[str] = frozenset(),
    *,
    registry: Any = binding.registry,
) -> tuple[Any, Any]:
    """Return a function in C++ that asks `miss` for missing programs, and an object to keep alive.

    `registry` flattens arguments.
    """

    def function(*args: Any, **kwargs: Any) -> Any:  # called if a jax has its jit disabled
        return miss(*args, **kwargs)[0]

    made = boot.jax.pjit(
        name,
        function,
        miss,
        sorted(static_argnums),
        sorted(static_argnames),
        _shared,
        registry,
        _transfer,
        _programs(),
    )
    return made, function


_WORKS: Final = b"works"


@cache
def fast_path_works(device: Device = CPU) -> bool:
    """Try the C++ path on a small program: jaxlib is private to another project and changes.

    A success is stored on disk, for this version of jaxlib and the present state of our files.
    """
    store = disk.opened()
    key = disk.digest("trial", *disk.backend(device), *disk.reading_conditions())
    if store is not None and store.get(key) == _WORKS:
        return True
    try:
        works = trial(device)
    except Exception:  # for any error, calls run in Python
        return False
    if works and store is not None:
        store.put(key, _WORKS)
    return works


def trial(device: Device) -> bool:
    """Return whether calls hit, share no memory and give the right values."""
    text = (
        "func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    )
    aval = Aval((2,), np.dtype(np.float32))
    program = disk.from_text(text, [aval], [aval], device)
    misses: list[object] = []

    def miss(x: Any) -> tuple[Any, FastPath | None, bool]:
        misses.append(x)
        outputs = program.run([x])
        return outputs[0], fast_path(program, [x], [True], outputs, outputs[0]), False

    fast, _ = in_cpp("trial", miss)
    host = np.array([1, 2], np.float32)
    array = device.placement.put(host)
    results = [fast(value) for value in (array, array, host, host)]
    host[:] = 0
    return len(misses) == 2 and all(to_numpy(x).tolist() == [1, 2] for x in results)


# The table of programs by the arguments they take, in Python.


# The explanation of a call that reads memory after it was given away.


def explanation(
    error: Exception, kernel: str, values: Mapping[str, Any], donated: Collection[str]
) -> str | None:
    """Return a message about the donated argument that made a call fail; None for others."""
    text = str(error)
    if "delete" not in text and "donat" not in text:
        return None
    owners: dict[int, str] = {}
    for name, value in values.items():
        for leaf in binding.flatten(value)[0]:
            if type(leaf) is not ArrayImpl:
                continue
            first = owners.setdefault(id(leaf), name)
            if leaf.is_deleted():
                return (
                    f"argument `{name}` of `{kernel}` was donated to an earlier call, or deleted: "
                    f"what its memory holds now is that call's result; use this, or pass a copy"
                )
            if first in donated or name in donated:
                if id(leaf) in owners and (first != name or _twice(leaf, value)):
                    return (
                        f"argument `{name}` of `{kernel}` is the same array as `{first}`, and its "
                        f"memory is donated: pass a copy of one of them"
                    )
    return None


def forget_donated(arguments: Any) -> None:
    """Make jaxlib notice arrays that a call took, so that later calls with them reach Python.

    Otherwise such a call would fail in C++, without an explanation.
    """
    for leaf in binding.flatten(arguments)[0]:
        if type(leaf) is ArrayImpl and leaf.is_deleted():
            leaf.delete()


def _twice(leaf: Any, value: Any) -> bool:
    """Return whether a tree holds an array more than once."""
    return sum(part is leaf for part in binding.flatten(value)[0]) > 1


MissResult: TypeAlias = tuple[Any, FastPath | None, bool]
"""The answer to C++ if it has no program: the result, the program, whether to ask again."""

# Note [Entries]
# Calls are made in one of two ways. As long as all arguments are device arrays or static values,
# and none is donated, the entry is jaxlib's function itself, and no Python runs. Numbers that are
# left to their defaults are no arguments: the program contains them. From the first other call on,
# calls are assisted: arrays that C++ would misread are replaced, and Python does the parts that C++
# cannot.

# Note [Static values]
# C++ compares static values by Python's equality, for which (1, 0.0) is (True, -0.0). So it sees
# static arguments, and static fields of records, as structure without leaves, which tells them
# apart (`binding.with_values`): numbers, strings and tuples from the start, other classes from the
# first call that has one of theirs. That fails for some static values (a container, a scalar of
# NumPy), and where a number is not static. Then C++ gets the names of the static arguments, and no
# programs for values that equality does not tell apart; a frame around such calls explains C++'s
# errors about values that it cannot hash. Calls with static fields then run in Python.


@dataclass(frozen=True, slots=True)
class BoundExecutable:
    """An executable for arguments of one kind, and the way of these to it and of results back.

    `flatten` gives the leaves that the executable takes, in its order.  They are leaves of
    (args, kwargs) in the order of `binding.flatten`; some may be left out.
    """

    executable: Executable
    flatten: Callable[[Args, Kwargs], Sequence[Any]]
    unflatten: Callable[[list[Any]], Any]
    donated: Collection[int] | None = None
    """The indices of the leaves whose memory results take; None if it may be any of them."""
    fills: bool = False
    """Whether the program takes numbers for omitted arguments, instead of containing their
    defaults."""

    def call(self, args: Args, kwargs: Kwargs) -> Any:
        """Return the result, by way of Python."""
        return self.unflatten(self.executable.run(self.flatten(args, kwargs)))


class Dispatcher:
    """A function whose calls find their compiled program, or have `specialise` make it.

    `specialise(args, kwargs)` is called once for each kind of arguments; the caller gets its
    exceptions. Several threads may call it at the same time, for different kinds of arguments.
    `parameters` describes the function's parameters, so that arguments given by keyword or by
    default find the same programs; without it a kernel sees them as they were given.
    `inner_statics` gives the static values inside of the arguments, if there can be any, and
    `tree_statics` does where any tree is accepted and few have any: see Note [Static values].
    `explain` may raise a better error for a failed call; `final` errors reach the caller unchanged.
    Results may take the memory of the parameters in `donated`. All programs are for one `device`.
    """

    def __init__(
        self,
        specialise: Callable[[Args, Kwargs], BoundExecutable],
        static_argnums: Sequence[int] = (),
        static_argnames: Sequence[str] = (),
        *,
        name: str = "kernel",
        parameters: Sequence[BindingParameter] = (),
        inner_statics: Callable[[Args, Kwargs], Hashable] | None = None,
        tree_statics: Callable[[Args, Kwargs], Hashable] | None = None,
        explain: Callable[[Exception, Args, Kwargs], None] | None = None,
        final: tuple[type[Exception], ...] = (),
        donated: Collection[str] = (),
        device: Device = CPU,
    ) -> None:
        prepare()
        self._specialise = specialise
        self._placement = device.placement
        self._static_argnums = frozenset(static_argnums)
        self._static_argnames = frozenset(static_argnames)
        self._parameters = tuple(parameters)
        self._has_constants = any(parameter.constant is not ABSENT for parameter in parameters)
        self._inner_statics = inner_statics
        self._tree_statics = tree_statics
        self._explain = explain
        # At the end of a process nothing can be imported that would explain an error.
        self.final: tuple[type[Exception], ...] = (ShutdownError, *final)
        """The errors that reach the caller unchanged."""
        self._donated = frozenset(donated)
        self._programs: dict[Hashable, BoundExecutable] = {}
        self._locks: dict[Hashable, RLock] = {}
        self._alive: list[Any] = []
        self._direct: Any = None
        self._name = name
        self._by_structure = inner_statics is not None or bool(static_argnums or static_argnames)
        self._structure_does = True
        self._registry: Any = binding.registry
        self._assisting: Any = self._in_python
        self._entered: list[Callable[[Any], None]] = []
        self._plans: Plans | None = None
        self.entry: Any = self._assisted
        """The function that calls run in the present state: see Note [Entries]."""
        if fast_path_works(device):
            self._plans = Plans(self, self._assisted)
            self._find_programs()
            self.entry = self._first_entry()
        tell(self)

    def ask_first(self) -> None:
        """Ask whether a kernel can run here before each call: see `processes`."""
        entry = self.entry

        @public
        def asking(*args: Any, **kwargs: Any) -> Any:
            require()
            return entry(*args, **kwargs)

        self._enter(asking)

    def _find_programs(self) -> None:
        """Have C++ find programs, from none on."""
        self._registry = binding.with_values if self._by_structure else binding.registry
        how: dict[str, Any] = {"registry": self._registry}
        if not self._by_structure:
            how["static_argnums"] = self._static_argnums
            how["static_argnames"] = self._static_argnames
            if self._inner_statics is not None:
                self._direct, self._assisting = None, self._in_python
                return
        self._assisting, alive = in_cpp(self._name, self._miss_assisted, **how)
        self._alive.append(alive)
        if not self._donated:
            self._direct, alive = in_cpp(self._name, self._miss_directly, **how)
            self._alive.append(alive)

    def _first_entry(self) -> Any:
        """Return the entry of calls before any program is known."""
        if self._direct is None:
            return self._planned
        return self._direct if self._structure_tells() else self._guarded

    @property
    def _planned(self) -> Any:
        """The entry of calls with help."""
        return self._assisted if self._plans is None else self._plans.entry

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._name

    @property
    def placement(self) -> LiveDevice:
        """The placement of its programs."""
        return self._placement

    def bound(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        """Return the arguments in their places."""
        return bind_arguments(self._parameters, args, kwargs)

    def planned_answer(
        self, args: Args, kwargs: Kwargs, passed: Sequence[Any], aligned: Collection[int]
    ) -> tuple[BoundExecutable, Any, FastPath | None]:
        """Return the program, the result and the fast path of a call with `passed` for C++."""
        program, used = self._find_with_operands(*self.bound(args, kwargs))
        executable = program.executable
        outputs = executable.run(used)
        result = program.unflatten(outputs)
        holds = executable.placement.holds
        fast = None
        if executable.reuse is None and all(
            is_placed(x) and holds(x) for x in passed if type(x) is ArrayImpl
        ):
            fast = fast_path(
                executable,
                passed,
                [True] * len(passed),
                outputs,
                result,
                [
                    place
                    for place, at in enumerate(executable.single)
                    if at in self.given_away(program)
                ],
                aligned,
            )
        return program, result, fast

    def enter(self, entered: Callable[[Any], None]) -> None:
        """Tell of the entry, now and whenever it becomes another one."""
        self._entered.append(entered)
        entered(self.entry)

    def _enter(self, entry: Any) -> None:
        self.entry = entry
        for entered in self._entered:
            entered(entry)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program for these arguments."""
        return self.entry(*args, **kwargs)

    def _guarded(self, *args: Any, **kwargs: Any) -> Any:
        try:
            try:
                return self._direct(*args, **kwargs)
            except ValueError as error:
                return self.recover(error, args, kwargs)
        except Exception as error:
            error.__traceback__ = shown(error)
            raise

    def _assisted(self, *args: Any, **kwargs: Any) -> Any:
        try:
            try:
                args, kwargs = bind_arguments(self._parameters, args, kwargs)
                known = readable(args, kwargs, self._placement)
                if known is None:
                    return self._in_python(*args, **kwargs)
                result = self._assisting(*known[0], **known[1])
            except self.final:
                raise
            except (ValueError, RuntimeError) as error:  # Stale is one
                result = self.recover(error, args, kwargs)
            if self._donated:
                forget_donated((args, kwargs))
            return result
        except Exception as error:
            error.__traceback__ = shown(error)
            raise

    def _find_with_operands(
        self, args: Args, kwargs: Kwargs
    ) -> tuple[BoundExecutable, Sequence[Any]]:
        """Return the program for bound arguments, and its operands."""
        program = self.find(args, kwargs)  # this registers the classes of records, too
        return program, program.flatten(args, kwargs)

    def given_away(self, program: BoundExecutable) -> Collection[int]:
        """Return the indices of the inputs whose memory a call may take."""
        if not self._donated:
            return ()
        return range(len(program.executable.inputs)) if program.donated is None else program.donated

    @public
    def _in_python(self, *args: Any, **kwargs: Any) -> Any:
        return self.find(args, kwargs).call(args, kwargs)

    def recover(self, error: ValueError | RuntimeError, args: Args, kwargs: Kwargs) -> Any:
        """Return the result of a call that failed in C++; raise the error if Python cannot help."""
        if self._explain is not None:
            self._explain(error, args, kwargs)
        # C++ has no way for a static value without hash, but `_key` knows one.
        if isinstance(error, Stale) or (
            isinstance(error, ValueError) and self._key(args, kwargs) is None
        ):
            return self._in_python(*args, **kwargs)
        raise error

    def find(self, args: Args, kwargs: Kwargs) -> BoundExecutable:
        """Return the program for these arguments; make it if there is none yet."""
        key = self._key(args, kwargs)
        if key is None:
            return self._specialise(args, kwargs)
        program = self._programs.get(key)
        if program is None:
            require_modules()
            watch()
            with self._locks.setdefault(key, RLock()):
                program = self._programs.get(key)
                if program is None:
                    program = self._specialise(args, kwargs)
                    # Classes may have been registered meanwhile, which changes the structure.
                    self._programs[self._key(args, kwargs) or key] = program
            self._locks.pop(key, None)
        return program

    def clear(self) -> None:
        """Forget all programs."""
        self._programs.clear()
        if self._plans is not None:
            self._plans.clear()
        for function in (self._assisting, self._direct):
            if hasattr(function, "_clear_cache"):
                function._clear_cache()

    @property
    def programs(self) -> tuple[BoundExecutable, ...]:
        """The programs made so far."""
        return tuple({id(program): program for program in self._programs.values()}.values())

    def _dynamic(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        if self._static_argnums:
            args = tuple(a for i, a in enumerate(args) if i not in self._static_argnums)
        if self._static_argnames:
            kwargs = {k: v for k, v in kwargs.items() if k not in self._static_argnames}
        return args, kwargs

    def _static(self, args: Args, kwargs: Kwargs) -> list[tuple[int | str, Any]]:
        """Return the static values that are arguments, with their places or names."""
        return [
            *[(i, args[i]) for i in self._static_argnums if i < len(args)],
            *[(k, v) for k, v in kwargs.items() if k in self._static_argnames],
        ]

    def _key(self, args: Args, kwargs: Kwargs) -> Hashable | None:
        """Return the key that decides which program is called; None if it is unknown."""
        static = self._static(args, kwargs)
        leaves, structure = binding.flatten(self._dynamic(args, kwargs))
        kinds = [kind(leaf) for leaf in leaves]
        inner = None if self._inner_statics is None else self._inner_statics(args, kwargs)
        if inner is None and self._tree_statics is not None and not all_arrays(leaves):
            inner = self._tree_statics(args, kwargs) or None
        if None in kinds and inner is None:
            return None
        try:
            known = frozenset([(place, exact(value)) for place, value in static]) or None
            return structure, len(args), tuple(kinds), known, inner
        except TypeError:  # a static value that is not hashable; `specialise` will say so
            return None

    @public
    def _miss_directly(self, *args: Any, **kwargs: Any) -> MissResult:
        """Answer C++, which was called without help, and has no program for this call."""
        leaves = self._leaves(args, kwargs)
        if all(map(needs_no_help, leaves)) and not self._numbers(args, kwargs):
            return self._reported_answer(args, kwargs, leaves, by_name=bool(kwargs))
        self._enter(self._planned)
        return self.entry(*args, **kwargs), None, True

    def _numbers(self, args: Args, kwargs: Kwargs) -> bool:
        """Return whether a program takes Python's numbers for such arguments, or for defaults."""
        args, kwargs = self.bound(args, kwargs)
        leaves = binding.flatten(self._dynamic(args, kwargs))[0]
        has_none = not any(x.__class__ in NUMBERS for x in leaves)
        if has_none and not self._has_constants:
            return False
        program, used = self._find_with_operands(args, kwargs)
        return program.fills or any(x.__class__ in NUMBERS for x in used)

    def _reported_answer(
        self, args: Args, kwargs: Kwargs, leaves: Sequence[Any], *, by_name: bool = False
    ) -> MissResult:
        """Return `_answer`'s result, with errors in the form for the caller."""
        try:
            return self._answer(args, kwargs, leaves, by_name=by_name)
        except self.final:
            raise
        except (ValueError, RuntimeError) as error:
            return self.recover(error, args, kwargs), None, True

    @public
    def _miss_assisted(self, *args: Any, **kwargs: Any) -> MissResult:
        """Answer C++ for a call whose arguments it can read."""
        known = without_foreign(args, kwargs)
        if known is not None:
            return self._assisted(*known[0], **known[1]), None, True
        return self._answer(args, kwargs, self._leaves(args, kwargs), by_name=bool(kwargs))

    def _answer(
        self, args: Args, kwargs: Kwargs, leaves: Sequence[Any], *, by_name: bool = False
    ) -> MissResult:
        """Return the result of a call for which C++ has no program, and a fast path or None.

        `leaves` are those that C++ sees; `by_name` says that it orders arguments by name.
        """
        args, kwargs = bind_arguments(self._parameters, args, kwargs)
        program, used = self._find_with_operands(args, kwargs)
        outputs = program.executable.run(used)
        result = program.unflatten(outputs)
        if not self._tells(leaves, used, args, kwargs):
            return result, None, True
        if program.executable.groups:
            self._enter(self._planned)
            return result, None, True
        if program.executable.reuse is not None:
            return result, None, True  # C++ has no arguments but those that it is given
        if self._tree_statics is not None and not all_arrays(leaves):
            if self._tree_statics(args, kwargs):
                if self._structure_does:
                    self._ask(by_structure=True)
                return result, None, True  # a value may be another one at the next call
        if len({id(x) for x in leaves}) < len(leaves) and (by_name or len(used) < len(leaves)):
            return result, None, True  # which leaf is which cannot be told: ask again next time
        places, fast = binding.places(used, leaves), None
        holds = program.executable.placement.holds
        if places is not None and all(
            is_placed(x) and holds(x) for x in used if type(x) is ArrayImpl
        ):
            is_used = [False] * len(leaves)
            for place in places:
                is_used[place] = True
            fast = fast_path(
                program.executable, used, is_used, outputs, result, self.given_away(program)
            )
        return result, fast, False

    def _leaves(self, args: Args, kwargs: Kwargs) -> list[Any]:
        """Return the leaves that C++ sees of a call, besides its structure and static arguments."""
        arguments = (args, kwargs) if self._by_structure else self._dynamic(args, kwargs)
        leaves: list[Any] = self._registry.flatten(arguments)[0]
        return leaves

    def _tells(
        self, leaves: Sequence[Any], used: Sequence[Any], args: Args, kwargs: Kwargs
    ) -> bool:
        """Return whether C++ can tell this call from those that need another program.

        See Note [Static values]; where the structure cannot tell them apart, C++ is set up
        differently.
        """
        if not self._by_structure:
            return all(equality_tells(value) for _, value in self._static(args, kwargs))
        values = [x for x in leaves if type(x) not in ARRAYS and all(x is not y for y in used)]
        if all(type(x) not in binding.VALUES for x in used):
            if not values:
                return True
            if all(map(binding.show, values)):
                return False  # the next call will find it there
        self._structure_does = False
        self._ask(by_structure=False)
        return False

    def _structure_tells(self) -> bool:
        """Return whether the structure tells all static values apart, if there are any."""
        return self._by_structure or not (self._static_argnums or self._static_argnames)

    def _ask(self, *, by_structure: bool) -> None:
        """Have C++ tell static values by structure from now on, or otherwise."""
        was_direct = self.entry != self._planned
        self._by_structure = by_structure
        self._find_programs()
        if was_direct:
            self._enter(self._first_entry())
