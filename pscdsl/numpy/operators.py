"""Python's operators on traced arrays, by the names of their classes in `ast`."""

from __future__ import annotations

from typing import Any, Final

from pscdsl._src.ir.builder import Builder
from pscdsl._src.language.meanings import Meaning
from pscdsl.numpy import elementwise as e
from pscdsl.numpy.arithmetic import power


def _matmul(here: Builder, left: Any, right: Any, /) -> Any:
    from pscdsl.numpy.linear import matmul

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
