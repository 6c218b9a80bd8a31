"""Operators, properties and methods of arrays, by the functions that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import MEANINGS, Meaning
from pscdsl.numpy import elementwise as e
from pscdsl.numpy.arithmetic import power
from pscdsl.numpy.products import matmul
from pscdsl.typing.array_types import size_of

# Python's operators on traced arrays, by the names of their classes in `ast`.


def _matmul(here: Builder, left: Any, right: Any, /) -> Any:
    return matmul.apply(here, (left, right), {})


BINARY: Final[dict[str, Meaning]] = {
    "Add": e.add,
    "Sub": e.subtract,
    "Mult": e.multiply,
    "Div": e.divide,
    "FloorDiv": e.floor_divide,
    "Mod": e.remainder,
    "Pow": power,
    "MatMult": Meaning("numpy.matmul", _matmul),
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
    "item": "use `{x}` itself, which is an array without axes; of one with axes, an element",
    "tolist": "index the array, `{x}[i]`, or return it",
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
    "at": '`psc.update({x}, index, value)`, with `combine="add"` for `.add(value)`',
    "flat": "`{x}.ravel()` has the elements along one axis",
    "getfield": "`{x}.view(dtype)` reads the same bits as another dtype",
    "device": "a kernel runs on one device; leave it out",
    "to_device": "a kernel runs on one device; leave it out",
}
"""Other attributes of NumPy's or JAX's arrays that there are none of here, and what to write."""

AS_FUNCTION: Final = frozenset(
    (
        "all any argmax argmin argpartition argsort choose clip compress conj conjugate copy "
        "cumprod cumsum diagonal dot max mean min nonzero prod ravel repeat round searchsorted "
        "squeeze std sum swapaxes take trace var"
    ).split()
)
"""Methods that are the function of the same name, with the array as its first argument."""


@dataclass(frozen=True)
class BoundMethod:
    """A method of one array, ready to be called."""

    name: str
    value: Value | Weak
    function: Callable[[Builder, Value | Weak, Sequence[Any], Mapping[str, Any]], Any]

    def apply(self, here: Builder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call it."""
        return self.function(here, self.value, args, kwargs)

    def description(self) -> str:
        """How messages speak of it."""
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


def _function(
    name: str,
) -> Callable[[Builder, Value | Weak, Sequence[Any], Mapping[str, Any]], Any]:
    def call(
        here: Builder, value: Value | Weak, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
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
}

NAMES: Final = (*_PROPERTIES, *_METHODS)
"""The attributes of arrays in kernels."""
