"""Operators, properties and methods of arrays, and the methods of NumPy's ufuncs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.ir.program import Scalar
from pscdsl._src.language.meanings import MEANINGS, Applicable, Meaning, describe, function
from pscdsl._src.language.results import Result, Results
from pscdsl._src.primitives.reductions import Accumulation, Cumulative, Extreme, Reduce
from pscdsl._src.primitives.scan import Scan
from pscdsl.numpy import elementwise as e
from pscdsl.numpy import reductions
from pscdsl.numpy.calling import (
    Axes,
    as_array,
    normalize_axes,
    normalize_axis,
    of_numbers,
    python_number,
    reduced_axes,
)
from pscdsl.numpy.elementwise import REAL, power, require
from pscdsl.numpy.products import matmul
from pscdsl.numpy.reductions import finished, running
from pscdsl.numpy.shorthand import cast, moved, reshaped, transposed, truth
from pscdsl.typing.array_types import size_of
from pscdsl.typing.codes.language import ArrayLeavesProgram, BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import BOOL, I8, DType

# Functions over axes: the methods of NumPy's ufuncs, and functions applied along an axis.


# The methods of NumPy's ufuncs: `np.maximum.reduce`, `np.add.accumulate`, `np.multiply.outer`.
#
# As in NumPy, a method goes along the first axis where no other is named.


Bits: TypeAlias = Literal["and", "or", "xor"]

OUTER = (
    "add subtract multiply divide true_divide floor_divide remainder mod power float_power "
    "maximum minimum fmax fmin equal not_equal less less_equal greater greater_equal "
    "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor arctan2 hypot "
    "logaddexp"
)
"""The functions of two arrays that can be applied to every pair of elements."""


def _total(name: str, whole: Meaning, kind: Accumulation) -> None:
    @of_numbers(f"numpy.{name}.reduce", together=("array",), scalars=("initial",))
    def reduce(
        array: Value,
        /,
        axis: Axes = 0,
        dtype: DType | None = None,
        *,
        keepdims: bool = False,
        initial: Value | Scalar | None = None,
    ) -> Any:
        """All elements along axes combined."""
        return whole(array, axis, dtype, keepdims=keepdims, initial=initial)

    @of_numbers(f"numpy.{name}.accumulate", together=("array",))
    def accumulate(array: Value, /, axis: int = 0, dtype: DType | None = None) -> Value:
        """Each element along an axis combined with all before it."""
        place = normalize_axis(axis, array.ndim, f"numpy.{name}.accumulate")
        return running(array, kind, place, dtype, f"numpy.{name}.accumulate")


def _extremum(name: str, whole: Meaning, kind: Extreme) -> None:
    @of_numbers(f"numpy.{name}.reduce", together=("array",), scalars=("initial",))
    def reduce(
        array: Value,
        /,
        axis: Axes = 0,
        *,
        keepdims: bool = False,
        initial: Value | Scalar | None = None,
    ) -> Any:
        """The largest or smallest along axes."""
        return whole(array, axis, keepdims=keepdims, initial=initial)

    @of_numbers(f"numpy.{name}.accumulate", together=("array",))
    def accumulate(array: Value, /, axis: int = 0) -> Value:
        """The largest or smallest up to each element along an axis."""
        require(f"numpy.{name}.accumulate", array, REAL)
        place = normalize_axis(axis, array.ndim, f"numpy.{name}.accumulate")
        return _running_extremum(array, kind, place)


def _running_extremum(x: Value, kind: Extreme, axis: int) -> Value:
    return (
        cast(Cumulative(kind, axis)(cast(x, I8)), BOOL)
        if x.dtype is BOOL
        else (Cumulative(kind, axis)(x))
    )


def _truth(name: str, whole: Meaning, kind: Extreme) -> None:
    @of_numbers(f"numpy.{name}.reduce", alone=("array",))
    def reduce(here: Builder, array: Value, /, axis: Axes = 0, *, keepdims: bool = False) -> Any:
        """Return whether all or any along axes are other than zero."""
        return whole.apply(here, (array, axis), {"keepdims": keepdims})

    @of_numbers(f"numpy.{name}.accumulate", alone=("array",))
    def accumulate(here: Builder, array: Value, /, axis: int = 0) -> Value:
        """Return whether all or any up to each element along an axis are other than zero."""
        place = normalize_axis(axis, array.ndim, f"numpy.{name}.accumulate")
        return _running_extremum(truth(array), kind, place)


def _bits(name: str, kind: Bits) -> None:
    @of_numbers(f"numpy.{name}.reduce", together=("array",))
    def reduce(array: Value, /, axis: Axes = 0, *, keepdims: bool = False) -> Value:
        """The bits of all elements along axes combined."""
        require(f"numpy.{name}.reduce", array, "integer or bool")
        axes = reduced_axes(axis, array.ndim, f"numpy.{name}.reduce")
        if not axes:
            return array
        return finished(Reduce(kind, axes)(array), array.shape, axes, keepdims)


def _outer(name: str) -> None:
    @of_numbers(f"numpy.{name}.outer", together=("A", "B"))
    def outer(here: Builder, A: Value, B: Value, /) -> Any:
        """The function of each element of A with each of B."""
        pairwise = MEANINGS[f"numpy.{name}"]
        assert isinstance(pairwise, Meaning)
        return pairwise.apply(here, (reshaped(A, A.shape + (1,) * B.ndim), B), {})


_total("add", reductions.sum, "sum")
_total("multiply", reductions.prod, "product")
_extremum("maximum", reductions.max, "maximum")
_extremum("minimum", reductions.min, "minimum")
_truth("logical_and", reductions.all, "minimum")
_truth("logical_or", reductions.any, "maximum")
_bits("bitwise_and", "and")
_bits("bitwise_or", "or")
_bits("bitwise_xor", "xor")
for _name in OUTER.split():
    _outer(_name)


# Functions applied along axes of an array.


def _applied(name: str, func: Any, here: Builder, args: Sequence[Any], kwargs: Any) -> Value:
    """What a function returns, as one array."""
    if not hasattr(func, "apply"):
        raise Failure(
            BadArguments(function=name, problem=f"takes a function, not {describe(func)}")
        )
    result = func.apply(here, tuple(args), kwargs)
    if isinstance(result, Weak):
        return result.default()
    if isinstance(result, Scalar | Dim):
        return here.weak(result).default()
    return as_array(result, name, "the result of the function")


@function("numpy.apply_along_axis", together=("arr",), result=Result.ARRAY)
def apply_along_axis(
    here: Builder, func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Value:
    """A function of vectors, applied to each vector along an axis, one after the other."""
    name = "numpy.apply_along_axis"
    x = as_array(arr, name, "arr")
    place = normalize_axis(axis, x.ndim, name)
    program = x.builder.program
    if x.ndim == 1:
        return _applied(name, func1d, program.current, (x, *args), kwargs)
    rest = (*x.shape[:place], *x.shape[place + 1 :])
    count, size = size_of(rest), x.shape[place]
    rows = reshaped(moved(x, place, x.ndim - 1), (count, size))
    with program.inside() as inner:
        row = inner.parameter(x.type.with_shape((size,)), "row")
        result = _applied(name, func1d, inner, (row, *args), kwargs)
        block, captured = inner.finish((row,), (result,))
    scan = Scan(block, captured=len(captured), carried=0, length=count)
    stacked = scan.bind(*captured, rows)[0]
    own, others = stacked.ndim - 1, len(rest)
    stacked = reshaped(stacked, (*rest, *stacked.shape[1:]))
    before, after = range(place), range(place, others)
    return transposed(stacked, (*before, *range(others, others + own), *after))


@function("numpy.apply_over_axes", together=("a",))
def apply_over_axes(here: Builder, func: Any, a: Any, axes: Any) -> Value:
    """A function of an array and an axis, applied for each axis in turn; axes are kept."""
    name = "numpy.apply_over_axes"
    x = as_array(a, name, "a")
    for axis in normalize_axes(axes, x.ndim, name):
        result = _applied(name, func, x.builder.program.current, (x, axis), {})
        if result.ndim == x.ndim - 1:
            result = reshaped(result, (*result.shape[:axis], 1, *result.shape[axis:]))
        if result.ndim != x.ndim:
            problem = (
                f"takes a function that keeps axes or drops one, not {x.type} to {result.type}"
            )
            raise Failure(BadArguments(function=name, problem=problem))
        x = result
    return x


# Operators, properties and methods of arrays, by the functions that they stand for.


# Python's operators on traced arrays, by the names of their classes in `ast`.


BINARY: Final[dict[str, Meaning]] = {
    "Add": e.add,
    "Sub": e.subtract,
    "Mult": e.multiply,
    "Div": e.divide,
    "FloorDiv": e.floor_divide,
    "Mod": e.remainder,
    "Pow": power,
    "MatMult": matmul,
    "LShift": e.left_shift,
    "RShift": e.right_shift,
    "BitAnd": e.bitwise_and,
    "BitOr": e.bitwise_or,
    "BitXor": e.bitwise_xor,
}
UNARY: Final[dict[str, Meaning]] = {
    "USub": e.negative,
    "UAdd": e.positive,
    "Invert": e.invert,
}
COMPARE: Final[dict[str, Meaning]] = {
    "Eq": e.equal,
    "NotEq": e.not_equal,
    "Lt": e.less,
    "LtE": e.less_equal,
    "Gt": e.greater,
    "GtE": e.greater_equal,
}


# Attributes of arrays: properties, and methods by the functions that they stand for.


IN_PLACE: Final[dict[str, str]] = {
    "sort": "`np.sort({x})` is a sorted copy",
    "fill": "`np.full_like({x}, value)` is a filled copy",
    "put": "`psc.update({x}, indices, values)` is a changed copy",
    "itemset": "`psc.update({x}, index, value)` is a changed copy",
    "resize": "`np.resize({x}, shape)` is a resized copy",
    "partition": "`np.sort({x})` is a sorted copy",
    "setfield": "`psc.update({x}, index, value)` is a changed copy",
    "setflags": "arrays never change; leave it out",
    "byteswap": "arrays have the byte order of the device; leave it out",
}
"""Methods that write to the array, and what to write instead; `{x}` stands for the array."""

LEAVES_PROGRAM: Final[dict[str, str]] = {
    "tobytes": "return `{x}`, and convert it where the kernel is called",
    "tofile": "return `{x}`, and write it where the kernel is called",
    "dump": "return `{x}`, and write it where the kernel is called",
    "dumps": "return `{x}`, and convert it where the kernel is called",
    "data": "use `{x}` itself",
    "ctypes": "use `{x}` itself",
    "base": "arrays have no memory of their own in a kernel; leave it out",
    "flags": "arrays have no memory of their own in a kernel; leave it out",
    "strides": "arrays have no memory of their own in a kernel; leave it out",
    "to_numpy": "use `{x}` itself, or return it",
    "block_until_ready": "return `{x}`, and wait for it where the kernel is called",
}
"""Attributes that turn an array into something else, and what to write instead."""

INSTEAD: Final[dict[str, str]] = {
    "at": '`psc.update({x}, index, value)`, with `combine="add"` for `.add(value)`; an index out '
    "of range is clamped, where jax leaves the value out",
    "flat": "`{x}.ravel()` has the elements along one axis",
    "getfield": "`{x}.view(dtype)` reads the same bits as another dtype",
    "device": "a kernel runs on one device; leave it out",
    "to_device": "a kernel runs on one device; leave it out",
    **dict.fromkeys(
        "block_until_ready contiguous cpu cuda requires_grad requires_grad_".split(),
        "leave it out",
    ),
    "append": "`np.append({x}, value)` is a longer one; in a loop, store: `{x}[i] = value`",
    "backward": "`psc.grad(f)` is the derivative of a function",
    "bool": "`{x}.astype(bool)`",
    "chunk": "`np.split({x}, n, axis)`",
    "clone": "`{x}.copy()`",
    "dim": "`{x}.ndim`",
    "double": "`{x}.astype(np.float64)`",
    "expand": "`np.broadcast_to({x}, shape)`",
    "float": "`{x}.astype(np.float32)`",
    "gather": "`np.take_along_axis({x}, indices, axis)`",
    "grad": "`psc.grad(f)` is the derivative of a function",
    "half": "`{x}.astype(np.float16)`",
    "index_select": "`np.take({x}, indices, axis)`",
    "int": "`{x}.astype(np.int32)`",
    "log_softmax": "`psc.special.log_softmax({x}, axis=axis)`",
    "logsumexp": "`psc.special.logsumexp({x}, axis=axis)`",
    "long": "`{x}.astype(np.int64)`",
    "masked_fill": "`np.where(mask, value, {x})`",
    "norm": "`np.linalg.norm({x})`",
    "numel": "`{x}.size`",
    "numpy": "leave it out: arrays of kernels are NumPy's",
    "permute": "`{x}.transpose(axes)`",
    "relu": "`np.maximum({x}, 0)`",
    "scatter": "`psc.update({x}, index, value)`",
    "scatter_add": '`psc.update({x}, index, value, combine="add")`',
    "softmax": "`psc.special.softmax({x}, axis=axis)`",
    "t": "`{x}.T`",
    "to": "`{x}.astype(dtype)`; a kernel runs on one device",
    "topk": "`psc.top_k({x}, k)`",
    "type": "`{x}.astype(dtype)`",
    "values": "leave it out: `{x}` is an array",
}
"""Other attributes of the arrays of NumPy, JAX or PyTorch, and what to write instead."""

FUNCTIONS_ELSEWHERE: Final[dict[str, str]] = {
    **{
        name: f"numpy.{name}"
        for name in (
            "abs acos add asin atan ceil cos cosh exp exp2 expm1 floor fmod isfinite isinf isnan "
            "log log10 log1p log2 logical_and logical_not logical_or logical_xor matmul maximum "
            "minimum moveaxis multiply outer reciprocal remainder roll sign sin sinh sqrt square "
            "subtract tan tanh tile tril triu trunc"
        ).split()
    },
    "bmm": "numpy.matmul",
    "clamp": "numpy.clip",
    "detach": "pscdsl.stop_gradient",
    "mm": "numpy.matmul",
    "mul": "numpy.multiply",
    "mv": "numpy.matmul",
    "neg": "numpy.negative",
    "sigmoid": "pscdsl.special.expit",
    "stop_gradient": "pscdsl.stop_gradient",
    "sub": "numpy.subtract",
    "unsqueeze": "numpy.expand_dims",
}
"""Methods of PyTorch's arrays, and the functions here of the same positional arguments."""

AS_FUNCTION: Final = frozenset(
    (
        "all any argmax argmin argpartition argsort choose clip compress conj conjugate copy "
        "cumprod cumsum diagonal dot max mean min nonzero prod ravel repeat round searchsorted "
        "squeeze std sum swapaxes take trace var"
    ).split()
)
"""Methods that are the function of the same name, with the array as its first argument."""


_OWN_RESULTS: Final = {
    "conj": Result.UNKNOWN,  # a real array is its own
    "conjugate": Result.UNKNOWN,
    "flatten": Result.NEW,
    "item": Result.NEW,
    "tolist": Result.NEW,
}
"""What methods give that are not the function of the same name."""


def result_of(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Results:
    """Return what a call of a method gives back; the first argument is the array."""
    if name in _OWN_RESULTS:
        return _OWN_RESULTS[name]
    function = MEANINGS.get(f"numpy.{name}")
    return function.result_of(args, kwargs) if isinstance(function, Meaning) else Result.UNKNOWN


def makes_new(name: str) -> bool:
    """Return whether every call of a method gives new memory, if it does not pass `copy=`."""
    own, function = _OWN_RESULTS.get(name), MEANINGS.get(f"numpy.{name}")
    if own is not None:
        return own.is_new
    return name in NAMES and isinstance(function, Meaning) and function.makes_new


@dataclass(frozen=True)
class BoundMethod(Applicable):
    """A method of one array, ready to be called."""

    name: str
    value: Value | Weak
    function: Callable[[Builder, Value | Weak, Sequence[Any], Mapping[str, Any]], Any]

    def holds(self) -> Sequence[Value | Weak]:
        """Return the array."""
        return (self.value,)

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call it."""
        return self.function(here, self.value, args, kwargs)

    def description(self) -> str:
        """Return the text for messages."""
        return f"the method `{self.name}` of an array"


def attribute(value: Value | Weak, name: str) -> Any | None:
    """A property, a method, or None if arrays have no such attribute in a kernel."""
    if name in _PROPERTIES:
        return _PROPERTIES[name](value)
    if name in _METHODS:
        return BoundMethod(name, value, _METHODS[name])
    return None


def _apply(name: str, here: Builder, *args: Any, **kwargs: Any) -> Any:
    meaning = MEANINGS[f"numpy.{name}"]
    assert isinstance(meaning, Meaning)
    return meaning.apply(here, args, kwargs)


def _of(name: str) -> Callable[[Value | Weak], Any]:
    return lambda value: _apply(name, value.builder.program.current, value)


_PROPERTIES: Final[dict[str, Callable[[Value | Weak], Any]]] = {
    "shape": lambda value: value.shape,
    "ndim": lambda value: value.ndim,
    "dtype": lambda value: value.dtype,
    "size": lambda value: size_of(value.shape),
    "itemsize": lambda value: value.dtype.bits // 8,
    "nbytes": lambda value: size_of(value.shape) * (value.dtype.bits // 8),
    "T": _of("transpose"),
    "mT": _of("matrix_transpose"),
    "real": _of("real"),
    "imag": _of("imag"),
}


_OF_FUNCTIONS: Final = {
    "dot": ("b",),
    "std": ("correction",),
    "swapaxes": ("axis1", "axis2"),
    "var": ("correction",),
}
"""Keywords that NumPy's functions have, and methods of the same name have not."""


def _function(
    name: str,
) -> Callable[[Builder, Value | Weak, Sequence[Any], Mapping[str, Any]], Any]:
    def call(
        here: Builder, value: Value | Weak, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        for keyword in _OF_FUNCTIONS.get(name, ()):
            if keyword in kwargs:
                problem = f"has no keyword `{keyword}`, which NumPy's function has"
                instead = f"write `np.{name}(x, …)`"
                raise Failure(BadArguments(function=name, problem=problem, instead=instead))
        return _apply(name, here, value, *args, **kwargs)

    return call


def _with_shape(name: str) -> Any:
    """A method whose tuple may be written as several arguments: `x.reshape(2, 3)`."""

    def call(
        here: Builder, value: Value | Weak, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        if len(args) > 1:
            args = (tuple(args),)
        elif name == "transpose" and args and isinstance(args[0], int):
            args = (tuple(args),)
        return _apply(name, here, value, *args, **kwargs)

    return call


def _flattened(
    here: Builder, value: Value | Weak, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    return _apply("ravel", here, value, *args, **kwargs)


def _clipped(
    here: Builder, value: Value | Weak, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """`x.clip(low)`: unlike NumPy's function, the method takes one bound alone."""
    names = ("min", "max")
    given = dict(zip(names, args, strict=False))
    unknown = [name for name in kwargs if name not in names or name in given]
    if len(args) > len(names) or unknown:
        problem = f"takes `min` and `max` once each, not {', '.join(unknown) or 'more arguments'}"
        raise Failure(BadArguments(function="clip", problem=problem))
    return _apply("clip", here, value, **given, **kwargs)


def _number(name: str) -> Any:
    """A method that makes Python's number of an element; `item` of an array's only one, too."""

    def call(
        here: Builder, value: Value | Weak, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        if name == "item" and value.shape and all(size == 1 for size in value.shape):
            value = _apply("reshape", here, value, ())
        number = None if args or kwargs else python_number(value)
        if number is None:
            instead = "index the array, `x[i]`, or return it"
            raise Failure(ArrayLeavesProgram(function=f".{name}", rewrite=instead))
        return number

    return call


def _viewed(
    here: Builder, value: Value | Weak, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    return _apply("ndarray.view", here, value, *args, **kwargs)


def _cast(
    here: Builder, value: Value | Weak, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    given = dict(kwargs)
    if "dtype" in given:
        args = (*args, given.pop("dtype"))
    return _apply("astype", here, value, *args, **given)


_METHODS: Final[
    dict[str, Callable[[Builder, Value | Weak, Sequence[Any], Mapping[str, Any]], Any]]
] = {
    **{name: _function(name) for name in AS_FUNCTION},
    "reshape": _with_shape("reshape"),
    "transpose": _with_shape("transpose"),
    "flatten": _flattened,
    "astype": _cast,
    "view": _viewed,
    "clip": _clipped,
    "item": _number("item"),
    "tolist": _number("tolist"),
}

NAMES: Final = (*_PROPERTIES, *_METHODS)
"""The attributes of arrays in kernels."""
