"""Library functions whose arrays may be given as lists, as in `np.convolve(x, [1, 2, 1])`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from pscdsl._src.ir.builder import Builder, Value, Weak, promote, weakened
from pscdsl._src.ir.numpy_dtypes import meant_by
from pscdsl._src.ir.program import Literal, Scalar
from pscdsl._src.language.meanings import Meaning, describe, function
from pscdsl._src.primitives.creation import Constant
from pscdsl.numpy.shorthand import cast, joined, listed, reshaped
from pscdsl.typing.array_types import Shape
from pscdsl.typing.codes.element_types import DtypeNotAccepted, DtypesDiffer, NoSuchDType
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import PiecesDoNotFit
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import KEY, DType, Kind, accepts_weak, is_dtype_name
from pscdsl.typing.dtypes import dtype as named
from pscdsl.typing.python_containers import NDArray, is_dtype

# Arrays whose dtype may stay open: what creation functions give, and functions of them.


def created(
    here: Builder, dtype: object, kind: Kind, shape: Shape, at: Callable[[DType], Value]
) -> Value | Weak:
    """A new array: in a dtype if one is given, else open; `at` must be exact in every dtype."""
    given = as_dtype(dtype)
    return Weak(here, kind, shape, at, scalar=True) if given is None else at(given)


class Known(Weak):
    """An open array whose numbers are known while checking."""

    __slots__ = ("numbers",)

    def __init__(
        self, builder: Builder, kind: Kind, numbers: NDArray, at: Callable[[DType], Value]
    ) -> None:
        super().__init__(builder, kind, numbers.shape, at, scalar=True)
        self.numbers = numbers


def as_dtype(dtype: object) -> DType | None:
    """A dtype argument, maybe by its name; a Failure if it is none."""
    if dtype is None or (isinstance(dtype, DType) and dtype is not KEY):
        return dtype
    shown = f"an array ({dtype.type})" if isinstance(dtype, Value | Weak) else describe(dtype)
    if isinstance(dtype, str) and is_dtype_name(dtype):
        return named(dtype)
    if isinstance(dtype, str) or is_dtype(dtype):
        found = meant_by(dtype)
        if found is not None:
            return found
    raise Failure(NoSuchDType(given=shown))


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
    x = as_operand(here, x)
    if x.dtype is KEY:
        raise Failure(DtypeNotAccepted(function="astype", given=x.type, accepts="numeric or bool"))
    if isinstance(x, Weak):
        return x.at(dtype) if accepts_weak(dtype, x.kind) else cast(x.default(), dtype)
    return cast(x, dtype)


def lifted(here: Builder, x: Any, change: Callable[[Value], Value]) -> Value | Weak:
    """A function of one array that keeps its dtype, and keeps it open if it was."""
    array = as_operand(here, x)
    if isinstance(array, Value):
        return change(array)
    return weakened(here, array.kind, lambda dtype: change(array.at(dtype)))


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
    kind = max([kind, *(x.kind for x in weak)])
    return weakened(here, kind, lambda dtype: build([x.at(dtype) for x in weak]))


def is_array(x: object) -> bool:
    """Whether an argument is an array or a number, not a list of them."""
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
) -> Callable[[Callable[..., Any]], Meaning]:
    """Declare as `function` does; a list in the place of an array is stacked to one first.

    traced    other parameters that may be computed by the program
    numbers   other parameters that are numbers, computed by the program or not
    scalars   those of which each is a single one
    keys      whether arrays of random keys are taken
    """
    arrays = frozenset((*together, *alone))

    def declare(body: Callable[..., Any]) -> Meaning:
        @functools.cache  # at the first call: there are hundreds of functions
        def looked() -> tuple[list[str], set[str], set[str]]:
            parameters = inspect.signature(body).parameters
            places = list(parameters)
            flags = {name for name in places if str(parameters[name].annotation).startswith("bool")}
            optional = {
                name for name in (*arrays, *numbers, *scalars) if parameters[name].default is None
            }
            return places, flags, optional

        def given(name: str, x: Any) -> Any:
            _, flags, optional = looked()
            if name in numbers or name in scalars:
                if x is not None or name not in optional:
                    check = require_scalar if name in scalars else require_number
                    check(x, names[0], name)
            elif name not in arrays:
                if name not in traced:
                    require_static(x, names[0], name)
                if name in flags and isinstance(x, Dim):
                    problem = f"takes True or False as `{name}`, not {describe(x)}"
                    raise Failure(BadArguments(function=names[0], problem=problem))
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

        adapting = {
            "weak": weak,
            "weak_items": weak_items,
            "cast": cast,
            "own": own,
            "keeps": keeps,
        }
        return function(*names, together=together, alone=alone, **adapting)(stacked)

    return declare


def of_numbers(
    *names: str,
    together: Sequence[str] = (),
    alone: Sequence[str] = (),
    traced: Sequence[str] = (),
    numbers: Sequence[str] = (),
    scalars: Sequence[str] = (),
    **adapting: Sequence[str],
) -> Callable[[Callable[..., Any]], Meaning]:
    """Declare as `of_arrays` does; arrays of random keys are refused."""
    return of_arrays(
        *names,
        together=together,
        alone=alone,
        traced=traced,
        numbers=numbers,
        scalars=scalars,
        keys=False,
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
    """Refuse what the program computes, and a dtype that is none."""
    if isinstance(x, Value | Weak):
        problem = f"takes a `{parameter}` that is known while checking, not an array"
        raise Failure(BadArguments(function=name, problem=problem))
    if parameter == "dtype" and not (x is None or isinstance(x, DType)):
        raise Failure(BadArguments(function=name, problem=f"takes no dtype {describe(x)}"))


def as_array(x: object, name: str, parameter: str) -> Value:
    """An array, or a list of arrays of one shape as one array."""
    if isinstance(x, Value):
        return x
    items = listed(x)
    if not items:
        what = describe(x) if items is None else "an empty list"
        problem = f"takes an array as `{parameter}`, not {what}"
        raise Failure(BadArguments(function=name, problem=problem))
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
    for each in parts[1:]:
        if each.dtype is not parts[0].dtype:
            raise Failure(DtypesDiffer(left=parts[0].type, right=each.type))
        shapes = (shape, each.shape)
        if each.ndim != len(shape):
            raise Failure(PiecesDoNotFit(function=name, shapes=shapes, why="their ranks differ"))
        for axis, sizes in enumerate(zip(shape, each.shape, strict=True)):
            if not facts.equal(*sizes):
                raise Failure(PiecesDoNotFit.of(facts, name, shapes, axis, sizes))
