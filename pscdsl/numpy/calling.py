"""How library functions are called: static arguments, lists as arrays, what is not taken."""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Final, NoReturn, TypeAlias, TypeGuard, TypeVar

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
from pscdsl._src.ir.numpy_dtypes import from_numpy, to_numpy
from pscdsl._src.ir.program import Literal, Scalar, fit
from pscdsl._src.language.declarations import completed
from pscdsl._src.language.meanings import (
    MEANINGS,
    Meaning,
    as_dtype,
    describe,
    function,
    may_be_none,
    near_keyword,
)
from pscdsl._src.language.results import Declared, Result
from pscdsl._src.primitives.shaping import Constant
from pscdsl.numpy.shorthand import cast, joined, listed, reshaped
from pscdsl.typing.array_types import Shape
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.element_types import (
    CastDropsImaginaryPart,
    DtypeNotAccepted,
    DtypesDiffer,
    ScalarDoesNotFit,
)
from pscdsl.typing.codes.language import BadArguments, RefusedByJax
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.codes.shapes import (
    AxisOutOfRange,
    DataDependentShape,
    PiecesDoNotFit,
    RepeatedAxis,
    UnprovenSize,
)
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.dtypes import BOOL, KEY, PYTHON, U64, DType, Kind, accepts_weak
from pscdsl.typing.python_containers import is_sequence, is_tuple

T = TypeVar("T")

# Static arguments: axes, sizes and shapes, items of lists; never computed numbers.


# What static arguments are: items of lists and tuples, numbers known while checking.


def as_items(x: object) -> Sequence[Any]:
    """The items of a list or tuple; anything else is one item."""
    return x if is_sequence(x) else (x,)


def is_known_float(x: object) -> TypeGuard[float]:
    """Return whether an argument is a floating-point number that is known while checking."""
    return isinstance(x, float | np.floating)


def as_known_integer(x: object) -> Size | None:
    """An integer that is known while checking, maybe in terms of sizes; None for anything else."""
    if isinstance(x, Dim):
        return x
    if isinstance(x, int | np.integer) and not isinstance(x, bool):
        return int(x)  # pyright: ignore[reportUnknownArgumentType]
    return None


# Axis arguments: from NumPy's spelling to axes counted from the front.


Axes: TypeAlias = "int | Sequence[int] | None"


def normalize_axis(axis: object, rank: int, function: str) -> int:
    """One axis, counted from the front; a Failure if an array of this rank does not have it."""
    if isinstance(axis, bool):
        _refuse(axis, function)
    try:
        number = operator.index(axis)  # type: ignore[arg-type]
    except TypeError:
        _refuse(axis, function)
    if not -rank <= number < rank:
        raise Failure(AxisOutOfRange(function=function, axis=number, rank=rank))
    return number + rank if number < 0 else number


def normalize_axes(axes: object, rank: int, function: str) -> tuple[int, ...]:
    """Axes in the order given, counted from the front; `None` stands for all of them."""
    if axes is None:
        return tuple(range(rank))
    if not is_sequence(axes):
        return (normalize_axis(axes, rank, function),)
    found = tuple([normalize_axis(axis, rank, function) for axis in axes])
    for position, axis in enumerate(found):
        if axis in found[:position]:
            raise Failure(RepeatedAxis(function=function, axis=axis))
    return found


def reduced_axes(axes: object, rank: int, function: str) -> tuple[int, ...]:
    """Return several axes where NumPy takes a tuple of them and no list."""
    if isinstance(axes, list):
        _refuse(axes, function)  # pyright: ignore[reportUnknownArgumentType]
    return normalize_axes(axes, rank, function)


def _refuse(axis: object, function: str) -> NoReturn:
    problem = f"takes an axis that is a static integer, or a tuple of them, not {describe(axis)}"
    raise Failure(BadArguments(function=function, problem=problem))


# Sizes and shapes as arguments: static integers and symbolic sizes, never computed ones.


class OfCounter(Weak):
    """An integer that is made of the counters of loops: a number that is known as a size, too."""

    __slots__ = ("size",)

    def __init__(self, here: Builder, size: Size, number: Weak | None = None) -> None:
        number = here.weak(size) if number is None else number
        super().__init__(here, Kind.INT, (), number.at, scalar=True, known=size)
        self.size = size


def size_of_counter(value: T) -> T | Size:
    """The size that a number made of counters is; anything else is what it was."""
    return value.size if isinstance(value, OfCounter) else value


def counted(here: Builder | None, sizes: object) -> Weak | None:
    """The product of a tuple of sizes, as `np.prod` gives it; None if it is something else."""
    if here is None or not is_tuple(sizes) or not sizes:
        return None
    if all(isinstance(x, Dim) or type(x) is int for x in sizes):
        size: Size = math.prod(sizes)
        return Weak(here, Kind.INT, (), here.weak(size).at, scalar=True, known=size)
    return None


def as_size(x: object, function: str) -> Size:
    """An integer that is known while checking, maybe in terms of sizes; of any sign."""
    if isinstance(x, Dim):
        return x
    if isinstance(x, Weak) and isinstance(x.known, int | Dim):
        return x.known
    if isinstance(x, Weak) and x.made_of_sizes:
        raise Failure(
            DataDependentShape(
                what=f"the result of `{function}`",
                by="a number made of sizes, which is no size",
                instead="sizes are made of sizes by `+`, `-`, `*`, `//` and `%`; "
                "another one is passed as `k: psc.Static[int]`",
            )
        )
    if isinstance(x, Value | Weak):
        raise Failure(
            DataDependentShape(
                what=f"the result of `{function}`",
                instead="sizes are static integers, such as a parameter `k: psc.Static[int]`, "
                "or sizes of arrays such as `x.shape[0]`",
            )
        )
    try:
        if not isinstance(x, bool):
            return operator.index(x)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise Failure(
        BadArguments(function=function, problem=f"takes integers as sizes, not {describe(x)}")
    )


LARGEST = 2**40
"""No machine has arrays with more elements than this."""


def as_count(x: object, function: str, facts: Assumptions) -> Size:
    """A size that is not negative, for all that the signature admits."""
    size = as_size(x, function)
    if isinstance(size, int) and size > LARGEST:
        raise Failure(TooLarge(what=f"an array with {size} elements along an axis"))
    claim = Fact("<=", 0, size)
    if not facts.proves(claim):
        raise Failure(UnprovenSize.of(facts, f"a size in `{function}`", claim))
    return size


def as_shape(x: object, function: str, facts: Assumptions) -> Shape:
    """A shape: one size, or several."""
    if not is_sequence(x):
        return (as_count(x, function, facts),)
    return tuple([as_count(size, function, facts) for size in x])


def as_integer(x: object, function: str) -> int:
    """An integer that is a number while checking."""
    size = as_size(x, function)
    if isinstance(size, int):
        return size
    problem = f"takes an integer, not {describe(size)}"
    raise Failure(BadArguments(function=function, problem=problem))


MOST_TIMES = 1000
"""Nothing that becomes equations for each time is done more often."""


def as_times(x: object, function: str, most: int = MOST_TIMES) -> int:
    """Return how often something is done while checking."""
    times = as_integer(x, function)
    if times > most:
        raise Failure(TooLarge(what=f"the program of `{function}` {times} times"))
    return times


# Shapes of arrays that are put together.


def require_fitting(name: str, pieces: Sequence[Value], along: int | None = None) -> None:
    """Refuse arrays whose shapes differ, other than in the size along an axis."""
    facts, first = pieces[0].builder.facts, pieces[0]
    for each in pieces[1:]:
        shapes = (first.shape, each.shape)
        if each.ndim != first.ndim:
            why = f"they have {first.ndim} and {each.ndim} axes"
            raise Failure(PiecesDoNotFit(function=name, shapes=shapes, why=why))
        for axis, sizes in enumerate(zip(*shapes, strict=True)):
            if axis != along and not facts.equal(*sizes):
                raise Failure(PiecesDoNotFit.of(facts, name, shapes, axis, sizes))


# Library functions whose arrays may be given as lists, as in `np.convolve(x, [1, 2, 1])`.


# Arrays whose dtype may stay open: what creation functions give, and functions of them.


def created(
    here: Builder, dtype: DType | None, kind: Kind, shape: Shape, at: Callable[[DType], Value]
) -> Value | Weak:
    """A new array: in a dtype if one is given, else open; `at` must be exact in every dtype."""
    return Weak(here, kind, shape, at, scalar=True) if dtype is None else at(dtype)


def as_operand(here: Builder, x: Any) -> Value | Weak:
    """An argument as an array: scalars, sizes and lists of numbers stay open."""
    if isinstance(x, Value | Weak):
        return x
    if isinstance(x, np.ndarray | np.generic):
        return here.constant(x)
    if is_array(x):
        return here.weak(x)
    from pscdsl.numpy.creation import made  # which is about lists of what this is about

    return made(here, "numpy.asarray", x, None)


def in_dtype(here: Builder, x: Any, dtype: DType) -> Value:
    """An argument in a dtype, by a cast where need be; what is open is made in it."""
    if dtype.is_integer and isinstance(x, float):
        x = whole(x, dtype)
    x = as_operand(here, x)
    if x.dtype is KEY:
        raise Failure(DtypeNotAccepted(function="astype", given=x.type, accepts="numeric or bool"))
    if isinstance(x, PythonNumber):
        x = x.value
    elif isinstance(x, Weak):
        if accepts_weak(dtype, x.kind):
            return x.at(dtype)
        x = x.default()
    if x.dtype.is_complex and dtype.is_number and not dtype.is_complex:
        raise Failure(CastDropsImaginaryPart(given=x.type, wanted=dtype))
    return cast(x, dtype)


def whole(number: float, dtype: DType) -> Scalar:
    """Return the integer part of a known number; a Failure if the dtype does not hold it."""
    low, high = dtype.range
    if isinstance(number, float) and not (math.isfinite(number) and low - 1 < number < high + 1):
        raise Failure(ScalarDoesNotFit(scalar=repr(float(number)), dtype=dtype))
    return fit(math.trunc(number), dtype)


def cast_in_kind(name: str, x: Value, dtype: DType) -> Value:
    """Return an array in a dtype of its own or of a higher kind; a Failure where NumPy raises."""
    if x.dtype is KEY or not np.can_cast(to_numpy(x.dtype), to_numpy(dtype), "same_kind"):
        problem = f"does not cast {x.type} to {dtype}, which is of a lower kind"
        instead = "cast the arrays, as in `x.astype(dtype)`"
        raise Failure(BadArguments(function=name, problem=problem, instead=instead))
    return cast(x, dtype)


def lifted(here: Builder, x: Any, change: Callable[[Value], Value]) -> Value | Weak:
    """A function of one array that keeps its dtype, and keeps it open if it was."""
    array = as_operand(here, x)
    if isinstance(array, Value):
        return change(array)
    if isinstance(array, PythonNumber):
        value = array.value
        number = here.program.built(lambda _: change(value), array.dtype)
        if not number.shape:
            return PythonNumber.of(number, [array])
    return weakened(here, array.kind, lambda dtype: change(array.at(dtype)), meeting([array]))


def python_number(x: object) -> PythonNumber | None:
    """The number that Python makes of a computed scalar; None if this is none.

    A truth value fits every dtype of integers, and other integers may be any of 64 bits.
    """
    if isinstance(x, PythonNumber):
        return PythonNumber.of(x.value, [x])
    if not isinstance(x, Value | Weak) or x.ndim or x.dtype in (KEY, U64):
        return None
    dtype = PYTHON[x.dtype.kind]
    if isinstance(x, Weak):
        return PythonNumber(x.at(dtype))
    return PythonNumber(cast(x, dtype), adapts=dtype is BOOL)


def met(
    here: Builder,
    operands: Sequence[Any],
    dtype: DType | None,
    build: Callable[[Sequence[Value]], Value],
    kind: Kind = Kind.BOOL,
) -> Value | Weak:
    """A function of operands in one dtype: a given one, that of the arrays, or open from `kind`."""
    if dtype is not None:
        return build([in_dtype(here, x, dtype) for x in operands])
    arrays = [as_operand(here, x) for x in operands]
    values = promote(*arrays, weak_ok=True) if arrays else None
    if values is not None:
        return build(values)
    weak = [x for x in arrays if isinstance(x, Weak)]

    def at(dtype: DType) -> Value:
        return build([x.at(dtype) for x in weak])

    meets = meeting(weak) if weak else here.program.defaults[kind]
    if weak and are_numbers(weak) and kind <= meets.kind:
        number = here.program.built(at, meets)
        if not number.shape:
            return PythonNumber.of(number, weak)
    kind = max(kind, meets.kind)
    own = meets if kind is meets.kind else None
    return weakened(here, kind, at, own)


def is_array(x: object) -> bool:
    """Return whether an argument is an array or a number, not a list of them."""
    return isinstance(
        x, Value | Weak | Dim | bool | int | float | complex | np.generic | np.ndarray
    )


def of_arrays(
    *names: str,
    together: Sequence[str] = (),
    alone: Sequence[str] = (),
    traced: Sequence[str] = (),
    numbers: Sequence[str] = (),
    scalars: Sequence[str] = (),
    weak: Sequence[str] = (),
    weak_items: Sequence[str] = (),
    cast: Sequence[str] = (),
    own: Sequence[str] = (),
    keeps: Sequence[str] = (),
    keys: bool = True,
    result: Declared | None = None,
    widens: bool = False,
) -> Callable[[Callable[..., Any]], Meaning]:
    """Declare as `function` does; a list in the place of an array is stacked to one first.

    traced    other parameters that may be computed by the program
    numbers   other parameters that are numbers, computed by the program or not
    scalars   those of which each is a single one
    keys      whether arrays of random keys are taken
    """
    arrays = frozenset((*together, *alone))

    def declare(body: Callable[..., Any]) -> Meaning:
        body = completed(names[0], body)

        @functools.cache  # at the first call: there are hundreds of functions
        def looked() -> tuple[list[str], set[str]]:
            parameters = inspect.signature(body).parameters
            places = list(parameters)
            optional = {
                name for name in (*arrays, *numbers, *scalars) if may_be_none(parameters[name])
            }
            return places, optional

        def given(name: str, x: Any) -> Any:
            optional = looked()[1]
            if name in numbers or name in scalars:
                if x is not None or name not in optional:
                    check = require_scalar if name in scalars else require_number
                    check(x, names[0], name)
            elif name not in arrays:
                if name not in traced:
                    require_static(x, names[0], name)
            elif x is not None or name not in optional:
                x = as_array(x, names[0], name)
                if x.dtype is KEY and not keys:
                    accepts = "numeric or bool"
                    raise Failure(
                        DtypeNotAccepted(function=names[0], given=x.type, accepts=accepts)
                    )
            return x

        @wraps(body)
        def stacked(*args: Any, **kwargs: Any) -> Any:
            known = [given(name, x) for name, x in zip(looked()[0], args, strict=False)]
            return body(*known, **{name: given(name, x) for name, x in kwargs.items()})

        return function(
            *names,
            together=together,
            alone=alone,
            weak=weak,
            weak_items=weak_items,
            cast=cast,
            own=own,
            keeps=keeps,
            result=result,
            lists=(*together, *alone),
            widens=widens,
        )(stacked)

    return declare


def of_numbers(
    *names: str,
    together: Sequence[str] = (),
    alone: Sequence[str] = (),
    traced: Sequence[str] = (),
    numbers: Sequence[str] = (),
    scalars: Sequence[str] = (),
    result: Declared = Result.NEW,
    widens: bool = False,
    **adapting: Sequence[str],
) -> Callable[[Callable[..., Any]], Meaning]:
    """Declare as `of_arrays` does a function that computes numbers; random keys are refused.

    What is computed is new memory, if no more is said.
    """
    return of_arrays(
        *names,
        together=together,
        alone=alone,
        traced=traced,
        numbers=numbers,
        scalars=scalars,
        keys=False,
        result=result,
        widens=widens,
        **adapting,
    )


def require_scalar(x: object, name: str, parameter: str) -> None:
    """Refuse what is not a single number."""
    require_number(x, name, parameter)
    if isinstance(x, Value | Weak | np.ndarray) and x.ndim:
        what = x.type if isinstance(x, Value | Weak) else "an array"
        problem = f"takes a single number as `{parameter}`, not {what}"
        raise Failure(BadArguments(function=name, problem=problem))


def require_number(x: object, name: str, parameter: str) -> None:
    """Refuse what is neither a number nor an array of them."""
    if not isinstance(x, Value | Weak | Scalar | Dim | np.ndarray | np.generic):
        problem = f"takes a number as `{parameter}`, not {describe(x)}"
        raise Failure(BadArguments(function=name, problem=problem))


def require_static(x: object, name: str, parameter: str) -> None:
    """Refuse what the program computes."""
    if isinstance(x, Value | Weak):
        problem = f"takes a `{parameter}` that is known while checking, not an array"
        raise Failure(BadArguments(function=name, problem=problem))


def as_array(x: object, name: str, parameter: str) -> Value:
    """An array, or a list of arrays of one shape as one array."""
    if isinstance(x, Value):
        return x
    items = listed(x)
    if not items:
        what = describe(x) if items is None else "an empty list"
        problem = f"takes an array as `{parameter}`, not {what}"
        instead = "" if items is None else "write `np.array([])`"
        raise Failure(BadArguments(function=name, problem=problem, instead=instead))
    numbers = _literals(items)
    if numbers is not None:
        first = _first(items)
        return first.builder.bind(Constant.of(numbers, first.dtype), ())[0]
    parts = [as_array(item, name, parameter) for item in items]
    _require_one_shape(parts, name)
    return joined([reshaped(part, (1, *part.shape)) for part in parts], 0)


def _literals(items: Sequence[object]) -> list[Any] | None:
    """The numbers in nested lists, if that is all they hold."""
    found: list[Any] = []
    lengths: set[int] = set()
    for item in items:
        if isinstance(item, Value) and isinstance(item.atom, Literal):
            found.append(item.atom.value)
            lengths.add(-1)
            continue
        inner = listed(item)
        numbers = _literals(inner) if inner else None
        if numbers is None:
            return None
        found.append(numbers)
        lengths.add(len(numbers))
    return found if len(lengths) == 1 else None


def _first(items: Sequence[Any]) -> Value:
    first = items[0]
    return first if isinstance(first, Value) else _first(first)


def _require_one_shape(parts: Sequence[Value], name: str) -> None:
    facts, shape = parts[0].builder.facts, parts[0].shape
    parts[0].builder.program.agree(parts)
    for each in parts[1:]:
        if each.dtype is not parts[0].dtype:
            raise Failure(DtypesDiffer(left=parts[0].type, right=each.type))
        shapes = (shape, each.shape)
        if each.ndim != len(shape):
            raise Failure(PiecesDoNotFit(function=name, shapes=shapes, why="their ranks differ"))
        for axis, sizes in enumerate(zip(shape, each.shape, strict=True)):
            if not facts.equal(*sizes):
                raise Failure(PiecesDoNotFit.of(facts, name, shapes, axis, sizes))


# What NumPy has and kernels do not: keywords, layouts in memory, sizes that the data say.


# Keywords of NumPy's functions that there are none of here, and what is written instead.


_OF_UFUNCS: Final = frozenset("where casting order dtype subok signature".split())
_OF_AXES: Final = frozenset("axes axis keepdims".split())
"""Those of functions that work along axes, such as `np.matmul`."""
_NEUTRAL: Final[dict[str, str]] = {
    **dict.fromkeys(("sum", "nansum", "count_nonzero"), "0"),
    **dict.fromkeys(("prod", "nanprod"), "1"),
    "all": "True",
    "any": "False",
    **dict.fromkeys(("max", "amax", "nanmax"), "-np.inf"),
    **dict.fromkeys(("min", "amin", "nanmin"), "np.inf"),
}
"""What leaves the result of a reduction as it is."""
_LEFT_OUT: Final = frozenset("casting subok signature like device copy overwrite_input".split())
_FIELDS: Final[dict[str, str]] = dict.fromkeys(
    ("sort", "argsort", "partition", "argpartition"), "an array has no fields: leave it out"
)
_OF_METHODS: Final = {"numpy.astype": ("order", "casting", "subok")}
"""What the method has besides the keywords of the function."""
_USUAL: Final = frozenset("order dtype casting subok copy where keepdims axis like device".split())
"""Keywords of NumPy's functions, of which some do not say what they take."""


def refuse_missing(function: Meaning, called: str, given: Mapping[str, Any]) -> None:
    """A Failure for a keyword that NumPy's function of this name has, and ours has not."""
    parameters = function.signature.parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return  # it says itself why it is refused
    for keyword, value in given.items():
        if keyword not in parameters and keyword in _of_numpy(called):
            problem = f"has no keyword `{keyword}` here, which NumPy's function has"
            instead = _instead(called.removeprefix("numpy."), keyword, value)
            instead = instead or near_keyword(keyword, parameters)
            raise Failure(BadArguments(function=called, problem=problem, instead=instead))


def in_loop(
    here: Builder, function: Meaning, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the arguments of a ufunc in the dtypes in which `dtype=` makes NumPy compute."""
    ufunc, asked = _function_of_numpy(function.name), kwargs.get("dtype")
    if asked is None or not isinstance(ufunc, np.ufunc) or not function.name.startswith("numpy."):
        return args, kwargs
    if function.is_of_jax:
        raise Failure(RefusedByJax(reason=f"`{ufunc.__name__}` takes no `dtype`"))
    dtype = as_dtype(asked)
    assert dtype is not None
    operands = [as_operand(here, x) for x in args]
    given = [_before_loop(x, operand) for x, operand in zip(args, operands, strict=True)]
    wanted = to_numpy(dtype)
    outputs = (None,) * ufunc.nout
    try:
        if len(given) != ufunc.nin:
            raise TypeError(f"takes {ufunc.nin} operands")
        loop = ufunc.resolve_dtypes(
            (*given, *outputs), signature=((None,) * ufunc.nin + (wanted,) * ufunc.nout)
        )
        dtypes = [from_numpy(each) for each in loop]
    except TypeError as error:
        problem = f"does not compute {', '.join(map(describe, args))} in {dtype}: {error}"
        instead = "cast the operands, as in `x.astype(dtype)`, or the result"
        raise Failure(
            BadArguments(function=function.name, problem=problem, instead=instead)
        ) from None
    if set(dtypes[ufunc.nin :]) != {dtype}:
        problem = f"gives {dtypes[-1]}, not {dtype}"
        raise Failure(BadArguments(function=function.name, problem=problem))
    converted = [in_dtype(here, x, to) for x, to in zip(operands, dtypes, strict=False)]
    return converted, {name: x for name, x in kwargs.items() if name != "dtype"}


def _before_loop(x: Any, operand: Value | Weak) -> Any:
    """What NumPy takes an operand for: a number of Python, or an array of a dtype."""
    if isinstance(operand, Value):
        return to_numpy(operand.dtype)
    adapts = isinstance(x, int | float | complex | Dim) and not isinstance(x, np.generic)
    if operand.kind is not Kind.BOOL and (
        adapts or (isinstance(x, PythonNumber) and not x.is_array)
    ):
        return {Kind.INT: int, Kind.FLOAT: float, Kind.COMPLEX: complex}[operand.kind]
    return to_numpy(PYTHON[operand.kind])


def _function_of_numpy(called: str) -> Any:
    """NumPy's function or method of a name; None if it has none."""
    found: Any = np
    for part in called.split(".")[1:]:
        found = getattr(found, part, getattr(np.ndarray, part, None))
    return found


def _of_numpy(called: str) -> Iterable[str]:
    """The keywords of NumPy's function of a name."""
    found = _function_of_numpy(called)
    if isinstance(found, np.ufunc):
        return _OF_UFUNCS | _OF_AXES if found.signature else _OF_UFUNCS
    try:
        return (*inspect.signature(found).parameters, *_OF_METHODS.get(called, ()))
    except (TypeError, ValueError):
        return _USUAL


def _instead(name: str, keyword: str, value: object) -> str:
    if keyword == "where":
        if name in ("mean", "average", "nanmean"):
            return "`np.sum(np.where(mask, x, 0)) / np.sum(mask).astype(x.dtype)`"
        if name in _NEUTRAL:
            return f"`np.{name}(np.where(mask, x, {_NEUTRAL[name]}))`"
        return f"`np.where(mask, np.{name}(…), other)`"
    if keyword == "order":
        return _FIELDS.get(name) or "an array has one order in memory here: leave it out"
    if keyword == "dtype":
        return "cast the arrays, as in `x.astype(dtype)`, or the result"
    return "leave it out" if keyword in _LEFT_OUT else ""


# Keywords that say how an array lies in memory: they have no meaning for values, and no effect.


ORDERS = frozenset("C F A K c f a k".split())
COUNTING = frozenset(("numpy.reshape", "numpy.ravel", "numpy.flatten"))
"""Functions whose `order=` says how elements are counted: "C" is how it is done here."""
_NO_EFFECT: Final[dict[str, bool | None]] = {"overwrite_input": False, "where": True, "like": None}
"""Values of keywords with which NumPy's functions do what they do without them."""


def values_only(name: str, kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the keywords of a call without those that do not change the result."""
    if not kwargs.keys() & _DROPPED:
        return kwargs
    return {key: value for key, value in kwargs.items() if not _is_dropped(name, key, value)}


_DROPPED: Final = frozenset(("order", *_NO_EFFECT))


def _is_dropped(name: str, keyword: str, value: object) -> bool:
    if keyword == "order":
        if value is None:
            return name.removeprefix("numpy.") in _FIELDS
        if not isinstance(value, str) or keyword not in _of_numpy(name):
            return False
        if name in COUNTING:
            return value in ("C", "c")
        return value in ORDERS and _makes_arrays(name)
    if keyword not in _NO_EFFECT or value is not _NO_EFFECT[keyword]:
        return False
    return keyword in _of_numpy(name)


def _makes_arrays(name: str) -> bool:
    """Whether a function makes new arrays, of lists at least: their order is about memory alone."""
    function, a_list = MEANINGS.get(name), list[object]()
    known = function.result_of((a_list,), {}) if isinstance(function, Meaning) else None
    return known in (Result.ARRAY, Result.IN_C_ORDER)


# NumPy's functions whose results have as many elements as the data say: each is refused.


_MASK = "keep the shape: `np.where(condition, x, neutral)` puts a neutral value elsewhere"
_SORTED = (
    "sort with `np.sort(x)`, mark what differs from the element before, and keep the shape, "
    "or count known values with `np.bincount(x, length=k)`"
)
_MEMBERS = "test for membership with `np.isin(x, y)`, and keep the shape"
_PLACES = (
    "use the mask itself, as in `np.where(condition, x, y)`; for the first place that holds, "
    "`np.argmax(condition)`"
)

for _names, _replacement in (
    ("nonzero flatnonzero argwhere", _PLACES),
    ("extract compress", _MASK),
    ("unique unique_values unique_counts unique_inverse unique_all", _SORTED),
    ("union1d intersect1d setdiff1d setxor1d", _MEMBERS),
    ("trim_zeros", _MASK),
):

    def _refused(name: str, instead: str) -> None:
        @function(f"numpy.{name}", result=Result.UNKNOWN if name == "trim_zeros" else Result.ARRAY)
        def refuse(*args: Any, **kwargs: Any) -> NoReturn:
            """Refused: the shape of the result depends on the data."""
            raise Failure(DataDependentShape(what=f"the result of `numpy.{name}`", instead=instead))

    for _name in _names.split():
        _refused(_name, _replacement)
