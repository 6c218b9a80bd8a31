"""Library functions as kernels see them: the meaning of `np.mean` on traced arrays.

A `Meaning` is an ordinary Python function over values, declared under the names by which users know
it. The declaration names the parameters whose operands must come to one dtype; the body receives
them as values of that dtype, whatever mixture of arrays, scalars, sizes and weak arrays was passed.
A body whose first parameter is called `here` receives the builder.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pscdsl._src.ir.builder import (
    Builder,
    PythonNumber,
    Value,
    Weak,
    are_numbers,
    meeting,
    promote,
    weakened,
)
from pscdsl._src.ir.numpy_dtypes import from_numpy, meant_by, to_numpy
from pscdsl._src.ir.program import kind_of
from pscdsl._src.language.declarations import completed
from pscdsl._src.language.results import Declared, Result, Results
from pscdsl._src.primitives.elementwise import Convert
from pscdsl.typing.codes.element_types import IntegersMakeAnArray, NoSuchDType
from pscdsl.typing.codes.language import BadArguments, RefusedByJax
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import BF16, DEFAULT, I64, KEY, PYTHON, DType, Kind, is_dtype_name
from pscdsl.typing.dtypes import dtype as named
from pscdsl.typing.python_containers import is_constant, is_dtype, is_sequence, is_slice, is_tuple

if TYPE_CHECKING:
    from pscdsl._src.frontend.values import AnyValue

# Descriptions of static values in messages: in the user's words, never by internal names.
#
# A class whose instances represent something of the user's has a method `description`. Values
# without one are CPython's: short ones are written as Python writes them, others are named by their
# class.


MAX_DEPTH: Final = 3
"""Deeper tuples are not shown."""
MAX_SHOWN: Final = 20
"""Longer tuples are cut short in messages."""
_ATOMS: Final = (bool, int, float, complex, str, bytes, type(None), range)
"""Types whose values Python writes as the user would."""
_CONTAINERS: Final[dict[type[Any], str]] = {
    list: "a list",
    dict: "a dict",
    set: "a set",
    frozenset: "a frozenset",
}


def describe(value: object, depth: int = 0) -> str:
    """Return a description for messages: arrays by their type, other values by their kind."""
    description = getattr(type(value), "description", None)
    if isinstance(value, Value | Weak) and description is None:
        return str(value.type)
    if isinstance(value, Dim):
        return f"the size {value}"
    if isinstance(value, DType):
        return f"the dtype {value}"
    if value.__class__ in _ATOMS:
        return _written(value)
    if value is Ellipsis:
        return "`...`"
    if description is not None:
        return str(description(value))
    if isinstance(value, Enum):
        return f"`{type(value).__name__}.{value.name}`"
    if is_tuple(value):
        rest = ", …" if len(value) > MAX_SHOWN else ""
        comma = "," if len(value) == 1 else ""
        if depth == MAX_DEPTH:
            return "a tuple"
        shown = [describe(each, depth + 1) for each in value[:MAX_SHOWN]]
        return f"({', '.join(shown)}{comma}{rest})"
    if is_slice(value):
        bounds = value.start, value.stop, *(() if value.step is None else (value.step,))
        if not all(bound is None or isinstance(bound, int | Dim) for bound in bounds):
            return "a slice"
        return f"the slice `{':'.join('' if bound is None else str(bound) for bound in bounds)}`"
    if is_constant(value):
        return "a NumPy array" if isinstance(value, np.ndarray) else shortened(repr(value))
    if is_dtype(value):
        return f"the dtype {value}"
    if value.__class__ in _CONTAINERS:
        return _CONTAINERS[value.__class__]
    name = _name_of(value)
    if hasattr(value, "apply"):
        return f"the function `{name}`" if name else "a function"
    if type(value).__module__.partition(".")[0] == "pscdsl":
        return f"`{name}`" if name else "a value of another kind"
    return f"an object of the class `{type(value).__qualname__}`"


def _name_of(value: object) -> str:
    """Return the name by which the user knows a value; empty if it has none."""
    name = getattr(value, "name", None)
    if not isinstance(name, str) or name.startswith("<"):
        return ""
    return name.removeprefix("builtins.")


def _written(value: object) -> str:
    try:
        return shortened(repr(value))
    except ValueError:  # an integer with more digits than Python writes
        return "a very large integer"


def as_dtype(dtype: object) -> DType | None:
    """Return the dtype that NumPy takes an argument for, None for None; otherwise a Failure."""
    if dtype is None or (isinstance(dtype, DType) and dtype is not KEY):
        return dtype
    found = meant_by(dtype) if isinstance(dtype, str) or is_dtype(dtype) else None
    if found is not None:
        return found
    shown = f"an array ({dtype.type})" if isinstance(dtype, Value | Weak) else describe(dtype)
    raise Failure(NoSuchDType(given=shown, instead=_other_reading(dtype)))


def _other_reading(dtype: object) -> str:
    """Return the replacement for a text that counts bits or has a byte order; empty if other."""
    if not isinstance(dtype, str):
        return ""
    if is_dtype_name(dtype) and dtype != KEY.name:
        own = named(dtype)
        written = "psc.bf16" if own is BF16 else f"np.{to_numpy(own).name}"
        return (
            f"a text counts bytes, as NumPy reads it, and `psc.{dtype}` counts bits: "
            f"write `{written}`"
        )
    native = meant_by(f"={dtype[1:]}") if dtype[:1] in ("<", ">") else None
    if native is not None:
        return f"numbers have the byte order of the machine: write `np.{to_numpy(native).name}`"
    return ""


def not_taken(args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return the problem with a call about which nothing more is known."""
    given = [*map(describe, args), *(f"{name}={describe(x)}" for name, x in kwargs.items())]
    return f"does not take these arguments: {', '.join(given)}"


_ELSEWHERE: Final = {
    "dim": ("axis", "axes"),
    "dims": ("axes", "axis"),
    "size": ("shape",),
    "low": ("minval",),
    "high": ("maxval",),
}
"""The names here for parameters of PyTorch and of NumPy's random numbers, if they differ."""


def near_keyword(name: str, known: Iterable[str]) -> str:
    """Return the question whether another keyword is meant, empty if none is alike."""
    from difflib import get_close_matches  # only mistakes need it

    names = sorted(known)
    near = [each for each in _ELSEWHERE.get(name, ()) if each in names]
    near = near or (get_close_matches(name, names, 1) if name else [])
    return f"did you mean `{near[0]}`?" if near else ""


def shortened(text: str, limit: int = 200) -> str:
    """Return a text for messages, cut short if it is long."""
    return text if len(text) <= limit else f"{text[:limit]}…"


class _Omitted:
    def __repr__(self) -> str:
        return "<no value>"


OMITTED: Final[Any] = _Omitted()
"""The default of a parameter that NumPy treats as omitted, unlike None."""

MEANINGS: dict[str, AnyValue] = {}
"""The meanings in kernels of qualified names such as `numpy.mean` or `pscdsl.scan`."""


class Atomic:
    """A value that holds no other and cannot be called, of a class that is not Python's."""


class Applicable:
    """A value that can be called in a kernel."""

    def apply(
        self, here: Builder, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
    ) -> AnyValue:
        """Call it."""
        raise NotImplementedError

    def holds(self) -> Sequence[AnyValue]:
        """Return the values that it holds, and hands on when it is called."""
        return ()


def refused_list(function: str, parameter: str, value: object) -> Failure:
    """Return JAX's refusal of a list in the place of an array."""
    reason = f"`{function}` takes an array as `{parameter}`, not {describe(value)}"
    return Failure(RefusedByJax(reason=reason))


class Meaning(Applicable):
    """One library function.

    together   parameters whose operands come to one dtype; a list or tuple counts by its items
    alone      parameters that are arrays with independent dtypes (indices, predicates): scalars and
               weak arrays become values of their default dtype
    weak       parameters where NumPy keeps a Python number weak. Everywhere else it makes an array
               first, as it does of each list, and integers are i64 from then on
    weak_items also weak: the numbers in one list
    cast       as `weak_items`, where NumPy casts the array of numbers afterwards: i64 only to
               signed integers
    own        parameters that NumPy computes with before they meet others: bools stay bools there
    keeps      parameters that give the result its dtype: other operands are of no higher kind
    result     the memory of the result: a `Result`, or a function that returns it for a call.
               NumPy's ufuncs and functions that are not NumPy's make new memory; any other function
               without this declaration may return an argument
    lists      parameters where a list of numbers or arrays is converted to an array
    several    whether it takes several arrays in one list, each of which may be such a list
    widens     whether operands of several dtypes meet in NumPy's `result_type`, and the result has
               that dtype and is computed in it
    """

    signature: inspect.Signature
    is_of_jax: bool = False
    """Whether it refuses what JAX's function of this name refuses."""
    wants_builder: bool
    operands: list[str]
    _only_positional: list[str]
    _rest: str
    """The name of `*args`, empty if there are none."""
    _positional: list[str]
    _by_keyword: frozenset[str]
    _required: frozenset[str]
    _arrays: frozenset[str]
    _flags: Mapping[str, bool]
    """The parameters that are True or False, and whether they may be None."""
    _simple: bool
    """Whether it takes neither `*args` nor `**kwargs`."""

    def __init__(
        self,
        name: str,
        body: Callable[..., Any],
        together: Sequence[str] = (),
        alone: Sequence[str] = (),
        weak: Sequence[str] = (),
        weak_items: Sequence[str] = (),
        cast: Sequence[str] = (),
        own: Sequence[str] = (),
        keeps: Sequence[str] = (),
        result: Declared | None = None,
        lists: Sequence[str] = (),
        several: bool = False,
        widens: bool = False,
    ) -> None:
        self.name = name
        self.body = body
        self.together = frozenset(together)
        self.alone = frozenset(alone)
        self.weak = frozenset(weak)
        self.weak_items = frozenset(weak_items)
        self.cast = frozenset(cast)
        self.own = frozenset(own)
        self.keeps = frozenset(keeps)
        self._of_a_kind = self.own | self.keeps
        self._result = result
        self.widens = widens
        self.lists = frozenset(lists)
        self.several = several
        self.__doc__ = body.__doc__

    def __getattr__(self, name: str) -> Any:
        """Compute an attribute that follows from the body's parameters, when it is first needed.

        There are hundreds of library functions, a program uses some, and looking takes time.
        """
        if name not in Meaning.__annotations__:
            raise AttributeError(name)
        self._look()
        return self.__dict__[name]

    def _look(self) -> None:
        self.signature = inspect.signature(self.body)
        names = list(self.signature.parameters)
        self.wants_builder = bool(names) and names[0] == "here"
        self.operands = [name for name in names if name in self.together]
        parameters = self.signature.parameters.values()
        self._only_positional = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]
        self._positional = [p.name for p in parameters if p.kind in (0, 1)]
        self._rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")
        self._by_keyword = frozenset(p.name for p in parameters if p.kind in (1, 3))
        self._required = frozenset(p.name for p in parameters if p.default is p.empty)
        self._simple = all(p.kind in (0, 1, 3) for p in parameters)
        self._arrays = self.together | self.alone
        self._flags = {
            p.name: p.annotation != "bool"
            for p in parameters
            if p.annotation in ("bool", "bool | None")
        }
        unknown = (self.together | self.alone) - set(names)
        assert not unknown, f"{self.name}: no parameters {unknown}"

    def __repr__(self) -> str:
        return f"<meaning of {self.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply from other library code; as `apply`, with `here` passed by the caller."""
        if self.wants_builder:
            return self.apply(args[0], args[1:], kwargs)
        return self.apply(None, args, kwargs)

    def of_jax(self) -> Meaning:
        """Return the function as JAX has it."""
        found = copy.copy(self)
        found.is_of_jax = True
        return found

    def _refuse_as_jax(self, arguments: Mapping[str, Any]) -> None:
        """Refuse a list in the place of an array."""
        own = self.name.rpartition(".")[2]
        for name in () if self.several else self.lists & arguments.keys():
            for x in arguments[name] if name == self._rest else (arguments[name],):
                if is_sequence(x):
                    raise refused_list(own, name, x)

    def place(self, parameter: str) -> int | None:
        """Return where a call passes a parameter by position, None if it does not."""
        places = self._positional[1:] if self.wants_builder else self._positional
        return places.index(parameter) if parameter in places else None

    def required_behind(self, parameter: str) -> int:
        """Return how many of the parameters behind one a call has to pass."""
        behind = self._positional[self._positional.index(parameter) + 1 :]
        return len(self._required.intersection(behind))

    @property
    def result(self) -> Declared:
        """The memory of the results: a `Result`, or a function that returns it for a call."""
        if self._result is None:
            new = not self.name.startswith("numpy.") or is_ufunc(self.name)
            self._result = Result.NEW if new else Result.UNKNOWN
        return self._result

    def result_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Results:
        """Return the memory of a call's results; `copy=` and `order=` count as keywords."""
        result = self.result
        if not isinstance(result, Result):
            places = self._positional[1:] if self.wants_builder else self._positional
            given = {**dict(zip(places, args, strict=False)), **kwargs}
            if self._rest:
                given[self._rest] = args[len(places) :]
            return result(given)
        if kwargs and result.is_new:
            if kwargs.get("copy", True) is not True:
                return Result.UNKNOWN
            if result.in_c_order and "order" in kwargs:
                return Result.ARRAY
        return result

    @property
    def makes_new(self) -> bool:
        """Return whether every call makes new memory, if it does not pass `copy=`."""
        return isinstance(self.result, Result) and self.result.is_new

    def apply(self, here: Builder | None, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Apply to the arguments of a call in a kernel."""
        if here is not None and here.program.jax is not None and self._is_draw:
            with here.program.without_jax():  # numbers are drawn with all bits of integers
                found = self._applied(here, args, kwargs, widening=False)
            return narrowed(found)
        return narrowed(self._applied(here, args, kwargs, widening=False))

    @property
    def _is_draw(self) -> bool:
        """Return whether it draws random numbers."""
        return self.name.startswith("pscdsl.random.")

    def of_mixed(self, here: Builder | None, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Apply to operands whose dtypes meet as NumPy promotes them, if that is exact."""
        if self.widens:
            return narrowed(self._applied(here, args, kwargs, widening=True))
        return self.apply(here, args, kwargs)

    def _applied(
        self,
        here: Builder | None,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        widening: bool,
    ) -> Any:
        if self.wants_builder:
            args = (here, *args)
        arguments = self._bind(args, kwargs)
        if self.is_of_jax:
            self._refuse_as_jax(arguments)
        if "dtype" in arguments:
            arguments["dtype"] = as_dtype(arguments["dtype"])
        for name in self._flags.keys() & arguments.keys():
            self._require_flag(name, arguments[name])
        if not self.together and not self.alone:
            return self._call(arguments)
        for name in self._arrays & arguments.keys():
            self._require_operands(name, arguments[name])
        for name in self.alone & arguments.keys():
            arguments[name] = _map_operands(lambda x: _settle(here, x), arguments[name])
        operands: list[Any] = []
        for name in self.operands:
            if name in arguments:
                _map_operands(operands.append, arguments[name])
        if not operands:
            return self._call(arguments)
        if not any(isinstance(operand, (Value, Weak)) for operand in operands):
            if here is None:
                raise TypeError(f"{self.name}: no operand belongs to a program")
            operands = [
                here.constant(x) if isinstance(x, np.ndarray | np.generic) else here.weak(x)
                for x in operands
            ]
        raising = bool(self.weak)
        values = promote(*operands, weak_ok=True, raising=raising, widening=widening)
        if values is not None:
            dtype = values[0].dtype
            self._require_kinds(arguments, dtype)
            result = self._with(arguments, values)
            if self._makes_i64(arguments, dtype) and _in_dtype(result, dtype):
                raise Failure(IntegersMakeAnArray(function=self.name, dtype=dtype))
            return result
        weak = [_builder(operands).weak_of(x) for x in operands]
        kind, meets = max(each.kind for each in weak), meeting(weak)
        self._require_kinds(arguments, meets)
        first = self._with(arguments, [each.at(meets) for each in weak])
        if isinstance(first, Value) and not first.shape and are_numbers(weak):
            return PythonNumber.of(first, weak)
        if not isinstance(first, Value) or first.dtype.kind < kind or not first.dtype.is_number:
            return first  # its dtype is fixed: a predicate, an index
        counted = first.dtype is I64 and arguments.get("dtype") is None
        if first.dtype not in (*DEFAULT.values(), *PYTHON.values(), meets) and not counted:
            return first

        def at(dtype: DType) -> Value:
            # Also where the kind has risen: the square root of a weak integer in f64 starts in f64.
            result: Value = self._with(arguments, [each.at(dtype) for each in weak])
            # The dtype of a place in an array, or of a sum of small integers, may differ.
            return result if result.dtype is dtype else Convert(dtype)(result)

        own = meets if first.dtype.kind is meets.kind else None
        return weakened(_builder(operands), first.dtype.kind, at, own)

    def _require_flag(self, name: str, argument: Any) -> None:
        """Refuse values other than True or False; NumPy takes integers for them."""
        is_flag = isinstance(argument, bool | int) or type(argument) is np.bool_
        may_be = is_flag or (argument is None and self._flags[name])
        if not may_be:
            problem = f"takes True or False as `{name}`, not {describe(argument)}"
            raise Failure(BadArguments(function=self.name, problem=problem))

    def _require_kinds(self, arguments: Mapping[str, Any], dtype: DType) -> None:
        """Refuse operands for which NumPy would compute, or return, in a dtype of a lower kind."""
        for name in self._of_a_kind:
            if arguments.get(name) is None or (kind := _kind(arguments[name])) is dtype.kind:
                continue
            if name in self.own and kind is Kind.BOOL:
                problem = f"takes numbers as `{name}` beside {dtype}, not bools"
                raise Failure(BadArguments(function=self.name, problem=problem))
            if name in self.keeps:
                problem = f"gives what has the dtype of `{name}`: make that of {dtype}"
                raise Failure(BadArguments(function=self.name, problem=problem))

    def _makes_i64(self, arguments: Mapping[str, Any], dtype: DType) -> bool:
        """Return whether NumPy makes a lasting i64 array of integers among the operands."""
        if not meets_i64(dtype) or not self.name.startswith("numpy."):
            return False
        for name in self.operands:
            if name not in arguments:
                continue
            depth = 0 if name in self.weak else 1 if name in self.weak_items | self.cast else -1
            if name in self.cast and dtype.is_unsigned:
                depth = -1
            if has_integers(arguments[name], depth):
                return True
        return False

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by parameter; a Failure where Python raises TypeError."""
        if self._simple and len(args) <= len(self._positional):
            arguments = dict(zip(self._positional, args, strict=False))
            fits = all(key in self._by_keyword and key not in arguments for key in kwargs)
            arguments.update(kwargs)
            if fits and arguments.keys() >= self._required:
                return arguments
        try:
            return self.signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            unknown = next((each for each in kwargs if each not in self._by_keyword), "")
            instead = near_keyword(unknown, self._by_keyword)
            finding = BadArguments(function=self.name, problem=str(error), instead=instead)
            raise Failure(finding) from None

    def _require_operands(self, name: str, argument: Any) -> None:
        """Raise a Failure for an argument that should be an array, but neither is nor holds one.

        None means an omitted array, where that is the default.
        """
        if argument is None and may_be_none(self.signature.parameters[name]):
            return
        wrong = _first_stranger(argument)
        if wrong is not None:
            given = describe(wrong[0])
            problem = f"takes arrays in `{name}`, not {given}" if is_sequence(argument) else ""
            problem = problem or f"takes an array as `{name}`, not {given}"
            raise Failure(BadArguments(function=self.name, problem=problem))

    def _call(self, arguments: dict[str, Any]) -> Any:
        if not self._simple:
            bound = inspect.BoundArguments(self.signature, arguments)
            return self.body(*bound.args, **bound.kwargs)
        if not self._only_positional:
            return self.body(**arguments)
        rest = dict(arguments)
        first = [rest.pop(name) for name in self._only_positional if name in rest]
        return self.body(*first, **rest)

    def _with(self, arguments: Mapping[str, Any], values: Iterable[Value]) -> Any:
        remaining = iter(values)
        changed = dict(arguments)
        for name in self.operands:
            if name in changed:
                changed[name] = _map_operands(lambda _: next(remaining), changed[name])
        return self._call(changed)


def may_be_none(parameter: inspect.Parameter) -> bool:
    """Return whether None may be passed for an array, which is then omitted."""
    return parameter.default is None or parameter.default is OMITTED


def is_ufunc(name: str) -> bool:
    """Return whether NumPy's function of a qualified name is a ufunc, or a method of one."""
    found: Any = np
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return isinstance(found, np.ufunc) or isinstance(getattr(found, "__self__", None), np.ufunc)


def function(
    *names: str,
    together: Sequence[str] = (),
    alone: Sequence[str] = (),
    weak: Sequence[str] = (),
    weak_items: Sequence[str] = (),
    cast: Sequence[str] = (),
    own: Sequence[str] = (),
    keeps: Sequence[str] = (),
    result: Declared | None = None,
    lists: Sequence[str] = (),
    several: bool = False,
    widens: bool = False,
) -> Callable[[Callable[..., Any]], Meaning]:
    """Declare a library function under qualified names such as `numpy.mean`.

    A function of `psc` has its signature from `declarations`.
    """

    def declare(body: Callable[..., Any]) -> Meaning:
        body = completed(names[0], body)
        adapting = together, alone, weak, weak_items, cast, own, keeps
        meaning = Meaning(names[0], body, *adapting, result, lists, several, widens)
        for name in names:
            assert name not in MEANINGS, f"{name} has a meaning already"
            MEANINGS[name] = meaning
        return meaning

    return declare


def meets_i64(dtype: DType) -> bool:
    """Return whether these are integers that NumPy promotes where they meet i64."""
    return dtype.is_integer and dtype is not I64


def require_no_integers(name: str, operands: Sequence[object], dtype: DType) -> None:
    """Refuse Python integers next to arrays of a dtype that NumPy promotes where they meet."""
    arrays = any(isinstance(operand, (Value, np.generic, np.ndarray)) for operand in operands)
    if arrays and meets_i64(dtype) and has_integers(operands):
        raise Failure(IntegersMakeAnArray(function=name, dtype=dtype))


def has_integers(operand: object, weak_depth: int = -1) -> bool:
    """Return whether Python integers, or sizes, are in lists deeper than where they are weak."""
    if is_sequence(operand):
        return any(has_integers(item, weak_depth - 1) for item in operand)
    whole = isinstance(operand, int | Dim) and not isinstance(operand, bool)
    return whole and weak_depth < 0


def _kind(operand: Any) -> Kind:
    """Return the highest kind among numbers and arrays."""
    if is_sequence(operand):
        return max(map(_kind, operand), default=Kind.FLOAT)
    if isinstance(operand, Weak):
        return operand.kind
    if isinstance(operand, Value):
        return operand.dtype.kind
    if is_constant(operand):
        return from_numpy(operand.dtype).kind
    return Kind.INT if isinstance(operand, Dim) else kind_of(operand)


def _in_dtype(result: object, dtype: DType) -> bool:
    """Return whether an array among the results has a dtype."""
    if is_sequence(result):
        return any(_in_dtype(item, dtype) for item in result)
    return isinstance(result, Value) and result.dtype is dtype


_OPERANDS = (Value, Weak, Dim, bool, int, float, complex, np.generic, np.ndarray)
"""Made once, as it is asked for often; so are the pairs of classes below and elsewhere."""


def _is_operand(x: object) -> bool:
    return isinstance(x, _OPERANDS)


def narrowed(result: Any) -> Any:
    """Return a result with the dtypes that it has in a JAX program; as it is in a kernel."""
    if isinstance(result, Value):
        jax = result.builder.program.jax
        if jax is None or (dtype := jax.canonical(result.dtype)) is result.dtype:
            return result
        return Convert(dtype)(result)
    if type(result) in (tuple, list):
        return type(result)(map(narrowed, result))
    return result


def _first_stranger(argument: Any) -> tuple[Any] | None:
    """Return the first part of an argument that is no operand, if there is one."""
    if not is_sequence(argument):
        return None if _is_operand(argument) else (argument,)
    return next(filter(None, map(_first_stranger, argument)), None)


def _map_operands(transform: Callable[[Any], Any], argument: Any) -> Any:
    if is_sequence(argument):
        return type(argument)(_map_operands(transform, item) for item in argument)
    return transform(argument) if _is_operand(argument) else argument


def _builder(operands: Sequence[Any]) -> Builder:
    return next(x.builder for x in operands if isinstance(x, Value | Weak))


def _settle(here: Builder | None, operand: Any) -> Any:
    if isinstance(operand, Weak):
        return operand.default()
    if isinstance(operand, Value) or here is None:
        return operand
    if isinstance(operand, np.ndarray | np.generic):
        return here.constant(operand)
    return here.weak(operand).default()
