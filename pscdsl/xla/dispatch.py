"""How a compiled program is called fast: straight from C++ where that is possible.

A call finds its program by the structure of its arguments, the dtype and shape of each leaf, and
the static values.  jaxlib does that in C++ for device arrays, and for NumPy arrays once Python has
looked at them, and at numbers; large ones come back to us for their transfer.  No memory of NumPy's
is shared once a call has returned.  What C++ cannot do is done in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any, Final, TypeAlias

import numpy as np

from pscdsl.containers import field_names
from pscdsl.numpy_dtypes import is_masked
from pscdsl.typing.exact import equality_tells, exact
from pscdsl.xla import trees
from pscdsl.xla.boot import ArrayImpl
from pscdsl.xla.client import view
from pscdsl.xla.donation import forget_donated
from pscdsl.xla.executable import Executable, is_here
from pscdsl.xla.fast_path import FastPath, Stale, fast_path, fast_path_works, in_cpp
from pscdsl.xla.host_calls import NUMBERS, HostCall, Unlike
from pscdsl.xla.readable import is_native, is_placed, readable

Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
Answer: TypeAlias = tuple[Any, FastPath | None, bool]

# Note [Entries]
# Calls are made in one of three ways.  As long as all arguments are device arrays, and given by
# position, the entry is jaxlib's function itself, and no Python runs.  The first call with NumPy
# arrays or numbers makes the entry a function that looks at arguments like these, and then calls
# one of jaxlib's that is its own (`host_calls`); so does the first call of each other kind, and the
# function before takes what this one leaves.  What all of them leave, and calls for which there can
# be no such function, are assisted: keywords are put in their places, arrays that C++ would misread
# are replaced, and what C++ cannot do is done in Python.  With donated arguments calls are assisted
# from the start.  They have a function of their own in C++, since misses of the first one may
# change the entry.

# Note [Static values]
# C++ compares static values by Python's equality, for which (1, 0.0) is (True, -0.0).  So static
# arguments, and static fields of records, are shown to it as structure without leaves, which tells
# them apart (`trees.with_values`): numbers, strings and tuples from the start, other classes from
# the first call that has one of theirs.  That does not do where a number inside of the arguments is
# not static, and for some static values (a container, a scalar of NumPy).  Then C++ is told which
# arguments are static, and is given no programs for values that equality does not tell; a frame
# around such calls explains what C++ says of values that it cannot hash.  Calls with static fields
# go through Python then.

MOST_KINDS: Final = 8
"""So many functions look at arguments of a kernel, one after the other."""


@dataclass(frozen=True, slots=True)
class Specialised:
    """A program for arguments of one kind.

    `flatten` gives the leaves that the executable takes, in its order.  They are leaves of
    (args, kwargs) in the order of `trees.flatten`; some may be left out.
    """

    executable: Executable
    flatten: Callable[[Args, Kwargs], Sequence[Any]]
    unflatten: Callable[[list[Any]], Any]

    def call(self, args: Args, kwargs: Kwargs) -> Any:
        """The result, by way of Python."""
        return self.unflatten(self.executable.run(self.flatten(args, kwargs)))


class Dispatcher:
    """A function whose calls find their compiled program, or have it made by `specialise`.

    `specialise(args, kwargs)` is called once for arguments of a kind; what it raises reaches the
    caller.  Several threads may call it at once, for arguments of different kinds.  `parameters`
    names the positional parameters, so that arguments given by keyword find the same programs;
    without it a kernel sees them as they were given.  `inner_statics` gives the static values
    inside of the arguments, if there can be any, and `tree_statics` where any tree is taken and few
    have any: see Note [Static values].
    `explain` may raise a better error for one that a call failed with; errors `told` to the caller
    are those that need none, nor our frames.  `donates` says whether results may take the memory of
    arguments.
    """

    def __init__(
        self,
        specialise: Callable[[Args, Kwargs], Specialised],
        static_argnums: Sequence[int] = (),
        static_argnames: Sequence[str] = (),
        *,
        name: str = "kernel",
        parameters: Sequence[str] = (),
        inner_statics: Callable[[Args, Kwargs], Hashable] | None = None,
        tree_statics: Callable[[Args, Kwargs], Hashable] | None = None,
        explain: Callable[[Exception, Args, Kwargs], None] | None = None,
        told: tuple[type[Exception], ...] = (),
        donates: bool = False,
    ) -> None:
        self._specialise = specialise
        self._static_argnums = frozenset(static_argnums)
        self._static_argnames = frozenset(static_argnames)
        self._parameters = tuple(parameters)
        self._inner_statics = inner_statics
        self._tree_statics = tree_statics
        self._explain = explain
        self._told = told
        self._donates = donates
        self._programs: dict[Hashable, Specialised] = {}
        self._locks: dict[Hashable, RLock] = {}
        self._kept: list[Any] = []
        self._direct: Any = None
        self._name = name
        self._looked_at: dict[Hashable, Any] = {}
        self._by_structure = inner_statics is not None or bool(static_argnums or static_argnames)
        self._structure_does = True
        self._registry: Any = trees.registry
        self._assisting: Any = self._in_python
        self._entered: list[Callable[[Any], None]] = []
        self.entry: Any = self._assisted
        """What a call comes to, as things are: see Note [Entries]."""
        if fast_path_works():
            self._find_programs()
            if not donates:
                self.entry = self._direct

    def _find_programs(self) -> None:
        """Have C++ find programs, from none on."""
        self._registry = trees.with_values if self._by_structure else trees.registry
        how: dict[str, Any] = {"registry": self._registry}
        if not self._by_structure:
            how["static_argnums"] = self._static_argnums
            how["static_argnames"] = self._static_argnames
            if self._inner_statics is not None:
                self._direct, self._assisting = None, self._in_python
                return
        self._assisting, kept = in_cpp(self._name, self._answer, **how)
        self._kept.append(kept)
        if not self._donates:
            self._direct, kept = in_cpp(self._name, self._miss_directly, **how)
            self._kept.append(kept)

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
            return self._direct(*args, **kwargs)
        except self._told as error:
            raise error.with_traceback(None) from None
        except ValueError as error:
            return self._after(error, args, kwargs)

    def _assisted(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if kwargs and self._parameters:
                args, kwargs = self._positional(args, kwargs)
            known = readable(args, kwargs)
            if known is None:
                return self._in_python(*args, **kwargs)
            result = self._assisting(*known[0], **known[1])
        except self._told as error:
            raise error.with_traceback(None) from None
        except (ValueError, RuntimeError) as error:  # Stale is one
            result = self._after(error, args, kwargs)
        if self._donates:
            forget_donated(args, kwargs)
        return result

    def _look_at(self, args: Args) -> bool:
        """Enter a function that looks at arguments like these, if there can be one."""
        if not self._told_by_structure() or len(self._looked_at) == MOST_KINDS:
            return False
        if not all(map(_is_looked_at, self._leaves(args, {}))):
            return False
        try:
            program = self.find(args, {})  # this registers the classes of records, too
            used, types = program.flatten(args, {}), program.executable.inputs
            call = HostCall(args, self._registry.flatten, used, types, self._static_argnums)
        except self._told as error:
            raise error.with_traceback(None) from None
        except Unlike:
            return False
        if call.key in self._looked_at:
            return False
        key = self._key(call.given(args), {})
        if key is not None:
            self._programs.setdefault(key, program)
        function, kept = in_cpp(self._name, self._miss_looked_at, registry=self._registry)
        self._kept.append(kept)
        last = self.entry if self._looked_at else self._left
        self._looked_at[call.key] = function
        self._enter(call.written(function, last))
        return True

    def _left(self, *args: Any, **kwargs: Any) -> Any:
        """The result of a call that none of the functions takes that look at arguments."""
        if not kwargs and self._look_at(args):
            return self.entry(*args)
        return self._assisted(*args, **kwargs)

    def _in_python(self, *args: Any, **kwargs: Any) -> Any:
        return self.find(args, kwargs).call(args, kwargs)

    def _after(self, error: ValueError | RuntimeError, args: Args, kwargs: Kwargs) -> Any:
        """What a call gives that failed in C++; raises the error if it was not for that."""
        if self._explain is not None:
            self._explain(error, args, kwargs)
        # C++ has no way for a static value without hash, but `_key` knows one.
        if isinstance(error, Stale) or (
            isinstance(error, ValueError) and self._key(args, kwargs) is None
        ):
            return self._in_python(*args, **kwargs)
        raise error

    def find(self, args: Args, kwargs: Kwargs) -> Specialised:
        """The program for these arguments, made if there is none yet."""
        key = self._key(args, kwargs)
        if key is None:
            return self._specialise(args, kwargs)
        found = self._programs.get(key)
        if found is None:
            with self._locks.setdefault(key, RLock()):
                found = self._programs.get(key)
                if found is None:
                    found = self._specialise(args, kwargs)
                    # Classes may have been registered meanwhile, which changes the structure.
                    self._programs[self._key(args, kwargs) or key] = found
            self._locks.pop(key, None)
        return found

    def clear(self) -> None:
        """Forget all programs."""
        self._programs.clear()
        for function in (self._assisting, self._direct, *self._looked_at.values()):
            if hasattr(function, "_clear_cache"):
                function._clear_cache()

    @property
    def programs(self) -> tuple[Specialised, ...]:
        """The programs made so far."""
        return tuple({id(each): each for each in self._programs.values()}.values())

    def _positional(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        rest = self._parameters[len(args) : len(args) + len(kwargs)]
        if len(rest) == len(kwargs) and all(name in kwargs for name in rest):
            return (*args, *(kwargs[name] for name in rest)), {}
        return args, kwargs

    def _dynamic(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        if self._static_argnums:
            args = tuple(a for i, a in enumerate(args) if i not in self._static_argnums)
        if self._static_argnames:
            kwargs = {k: v for k, v in kwargs.items() if k not in self._static_argnames}
        return args, kwargs

    def _static(self, args: Args, kwargs: Kwargs) -> list[tuple[int | str, Any]]:
        """The static values that are arguments, with their places or names."""
        return [
            *[(i, args[i]) for i in self._static_argnums if i < len(args)],
            *[(k, v) for k, v in kwargs.items() if k in self._static_argnames],
        ]

    def _key(self, args: Args, kwargs: Kwargs) -> Hashable | None:
        """What decides which program is called; None if that cannot be told."""
        static = self._static(args, kwargs)
        leaves, structure = trees.flatten(self._dynamic(args, kwargs))
        kinds = [_kind(leaf) for leaf in leaves]
        inner = None if self._inner_statics is None else self._inner_statics(args, kwargs)
        if inner is None and self._tree_statics is not None and not _all_arrays(leaves):
            inner = self._tree_statics(args, kwargs) or None
        if None in kinds and inner is None:
            return None
        try:
            known = frozenset([(place, exact(value)) for place, value in static]) or None
            return structure, len(args), tuple(kinds), known, inner
        except TypeError:  # a static value that is not hashable; `specialise` will say so
            return None

    def _miss_directly(self, *args: Any, **kwargs: Any) -> Answer:
        """Answer C++, which was called without help, and has no program for this call."""
        numbers = [x for x in self._dynamic(args, {})[0] if x.__class__ in NUMBERS]
        if not kwargs and not numbers and all(map(_needs_no_help, self._leaves(args, {}))):
            return self._miss_looked_at(*args)
        if kwargs or not self._look_at(args):
            self._enter(self._assisted)
        return self.entry(*args, **kwargs), None, True

    def _miss_looked_at(self, *args: Any) -> Answer:
        """Answer C++ where it may read all that it was called with."""
        try:
            return self._answer(*args)
        except self._told as error:
            raise error.with_traceback(None) from None
        except (ValueError, RuntimeError) as error:
            return self._after(error, args, {}), None, True

    def _answer(self, *args: Any, **kwargs: Any) -> Answer:
        """Answer C++, which has no program for this call: the result, and how to do without us."""
        known = _without_foreign(args, kwargs)
        if known is not None:
            return self._assisted(*known[0], **known[1]), None, True
        program = self.find(args, kwargs)
        used = program.flatten(args, kwargs)
        leaves = self._leaves(args, kwargs)
        outputs = program.executable.run(used)
        result = program.unflatten(outputs)
        if not self._tells(leaves, used, args, kwargs):
            return result, None, True
        if program.executable.reuse is not None:
            return result, None, True  # C++ has no arguments but those that it is given
        if self._tree_statics is not None and not _all_arrays(leaves):
            if self._tree_statics(args, kwargs):
                if self._structure_does:
                    self._ask(by_structure=True)
                return result, None, True  # a value may be another one at the next call
        if len({id(x) for x in leaves}) < len(leaves) and (kwargs or len(used) < len(leaves)):
            return result, None, True  # which leaf is which cannot be told: ask again next time
        kept, fast = _subsequence(used, leaves), None
        if kept is not None and all(
            is_placed(x) and is_here(x) for x in used if type(x) is ArrayImpl
        ):
            fast = fast_path(
                program.executable, used, kept, outputs, result, reads=not self._donates
            )
        return result, fast, False

    def _leaves(self, args: Args, kwargs: Kwargs) -> list[Any]:
        """What C++ sees of a call besides its structure and static arguments."""
        given = (args, kwargs) if self._by_structure else self._dynamic(args, kwargs)
        leaves: list[Any] = self._registry.flatten(given)[0]
        return leaves

    def _tells(
        self, leaves: Sequence[Any], used: Sequence[Any], args: Args, kwargs: Kwargs
    ) -> bool:
        """Whether C++ tells this call from those that need another program.

        See Note [Static values]; where structure does not tell, it will be asked otherwise.
        """
        if not self._by_structure:
            return all(equality_tells(value) for _, value in self._static(args, kwargs))
        others = [x for x in leaves if type(x) not in _ARRAYS and all(x is not y for y in used)]
        if all(type(x) not in trees.VALUES for x in used):
            if not others:
                return True
            if all(map(trees.show, others)):
                return False  # the next call will find it there
        self._structure_does = False
        self._ask(by_structure=False)
        return False

    def _told_by_structure(self) -> bool:
        """Whether C++ tells all static values, if there are any, by structure."""
        return self._by_structure or not (self._static_argnums or self._static_argnames)

    def _ask(self, *, by_structure: bool) -> None:
        """Have C++ tell static values by structure from now on, or otherwise."""
        was_direct = self.entry != self._assisted
        self._by_structure = by_structure
        self._looked_at.clear()
        self._find_programs()
        if was_direct:
            direct = self._direct if self._told_by_structure() else self._guarded
            self._enter(self._assisted if self._direct is None else direct)


def _without_foreign(args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs] | None:
    """The arguments with NumPy's in the place of other libraries' arrays, if there are any."""
    leaves, structure = trees.flatten((args, kwargs))
    if not any(map(_is_foreign, leaves)):
        return None
    try:
        known = [view(each) if _is_foreign(each) else each for each in leaves]
    except (BufferError, RuntimeError, TypeError):
        return None  # the boundary will say what is wrong
    args, kwargs = structure.unflatten(known)
    return tuple(args), kwargs


def _needs_no_help(leaf: Any) -> bool:
    """Whether a leaf is committed to a device; or it is for `specialise` to say what it is."""
    if type(leaf) is ArrayImpl:
        return is_placed(leaf)
    return _kind(leaf) is None and not hasattr(leaf, "__dlpack__")


def _is_looked_at(leaf: Any) -> bool:
    """Whether `HostCall` may know this, or what is in it."""
    cls: type[Any] = leaf.__class__
    known = cls in NUMBERS or field_names(cls) is not None
    return known or is_placed(leaf) or is_native(leaf)


def _is_foreign(leaf: Any) -> bool:
    return _kind(leaf) is None and hasattr(leaf, "__dlpack__") and not is_masked(leaf)


def _all_arrays(leaves: Sequence[Any]) -> bool:
    """Whether there are arrays only, so that none of the leaves is a static value."""
    return all(type(x) is ArrayImpl or type(x) is np.ndarray for x in leaves)


def _subsequence(used: Sequence[Any], leaves: Sequence[Any]) -> list[bool] | None:
    """Which leaves are used, if they are used in order."""
    kept, position = [False] * len(leaves), 0
    for leaf in used:
        while position < len(leaves) and leaves[position] is not leaf:
            position += 1
        if position == len(leaves):
            return None
        kept[position] = True
        position += 1
    return kept


_ARRAYS = (ArrayImpl, np.ndarray)


def _kind(leaf: Any) -> object:
    """What of a leaf decides which program is called; None for things unknown."""
    kind = leaf.__class__
    if kind is ArrayImpl:
        return leaf.aval.dtype, leaf.aval.shape
    if kind is np.ndarray or issubclass(kind, np.generic):
        return leaf.dtype, leaf.shape
    return kind if kind in NUMBERS else None
