"""Calls as kernels: arrays are parameters of their dtype and shape, everything else is text."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import importlib.util
import itertools
import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from pscdsl._src.ir.numpy_dtypes import from_numpy
from tests.replay.calls import Call, is_array, leaves, mapped

HEAD: Final = """import numpy as np
import scipy.fft
import scipy.linalg
import scipy.special

import pscdsl as psc
from pscdsl import bool_, c64, c128, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
"""
INFIX: Final = {
    **{"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%"},
    **{"pow": "**", "matmul": "@", "and_": "&", "or_": "|", "xor": "^", "lshift": "<<"},
    **{"rshift": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="},
}
PREFIX: Final = {"neg": "-", "pos": "+", "invert": "~"}
ATTRIBUTES: Final = ("T", "mT", "real", "imag")
OF_DTYPES: Final = frozenset(("result_type", "promote_types"))
"""Functions that give a dtype: kernels make an array of it."""
MOST: Final = 12
"""The most parameters of a kernel."""
_numbers = itertools.count()


class NotWritten(Exception):
    """A call has no text as a kernel."""


@dataclass(frozen=True)
class Written:
    """The source of a call, and its arguments."""

    call: Call
    parameters: tuple[str, ...]
    """Their annotations."""
    expression: str
    operands: tuple[Any, ...]

    def kernel(self, name: str) -> str:
        """Return the source of the kernel."""
        given = ", ".join(f"a{place}: {of}" for place, of in enumerate(self.parameters))
        return f"@psc.kernel\ndef {name}({given}):\n    return {self.expression}\n"

    def reproduced(self) -> str:
        """Return a program that shows what NumPy and the kernel give."""
        arrays = ", ".join(text(x) for x in self.operands)
        return f"{self.kernel('k')}# k({arrays})\n"


def written(call: Call, constants: bool = False) -> Written:
    """Return a call as a kernel; raise NotWritten if it has no text.

    With `constants`, arrays of integers and of truth values after the first argument are text.
    """
    operands: list[Any] = []
    first = list(leaves(call.args[:1]))

    def argument(x: Any) -> Any:
        if not is_array(x) or (
            constants and x.dtype.kind in "biu" and not any(x is each for each in first)
        ):
            return _Text(text(x))
        operands.append(x)
        return _Text(f"a{len(operands) - 1}")

    args = [mapped(argument, x) for x in call.args]
    kwargs = {name: mapped(argument, x) for name, x in call.kwargs.items()}
    if len(operands) > MOST:
        raise NotWritten("many arrays")
    parameters = tuple([annotation(x) for x in operands])
    expression = applied(call.name, args, kwargs)
    if len(expression) > 3000:
        raise NotWritten("a long text")
    return Written(call, parameters, expression, tuple(operands))


class _Text(str):
    """The text of an argument."""

    __slots__ = ()

    __repr__ = str.__str__


def text(x: Any) -> str:
    """Return a static argument as source."""
    if isinstance(x, _Text):
        return x
    if isinstance(x, np.generic):
        return f"np.{x.dtype.type.__name__}({text(x.item())})"
    if isinstance(x, np.ndarray):
        return f"np.array({text(x.tolist())}, dtype={text(x.dtype)})" + (
            f".reshape({x.shape})" if not x.size else ""
        )
    if type(x) in (list, tuple):
        items = ", ".join(map(text, x))
        if type(x) is list:
            return f"[{items}]"
        return f"({items},)" if len(x) == 1 else f"({items})"
    if type(x) is slice:
        return f"slice({text(x.start)}, {text(x.stop)}, {text(x.step)})"
    if isinstance(x, np.dtype):
        return f'np.dtype("{x.name}")'
    if isinstance(x, type):
        return (
            x.__name__
            if x.__module__ == "builtins"
            else f"np.{np.dtype(x).name}".replace("np.bool", "np.bool_")
        )
    if isinstance(x, complex):
        if math.isfinite(x.real) and math.isfinite(x.imag) and text(x.real)[0] != "-":
            return repr(x)
        raise NotWritten("a complex number")
    if isinstance(x, float) and not math.isfinite(x):
        return "np.nan" if math.isnan(x) else "np.inf" if x > 0 else "-np.inf"
    if x is ...:
        return "..."
    return repr(x)


def annotation(x: Any) -> str:
    """Return the type of an array as a kernel's signature has it."""
    name = from_numpy(x.dtype).name
    name = "bool_" if name == "bool" else name
    return f'{name}["{" ".join(map(str, x.shape))}"]' if x.ndim else name


def applied(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """Return the text of a call."""
    module, _, short = name.rpartition(".")
    texts = [text(x) for x in args]
    if module == "operator":
        if short == "getitem":
            return f"{texts[0]}[{_index(args[1])}]"
        if short in PREFIX:
            return f"{PREFIX[short]}{texts[0]}"
        return f"{_bracketed(texts[0])} {INFIX[short]} {_bracketed(texts[1])}"
    if module == "ndarray":
        if short in ATTRIBUTES:
            return f"{texts[0]}.{short}"
        name, texts = f"{texts[0]}.{short}", texts[1:]
    elif module == "builtins":
        name = short
    else:
        name = name.replace("numpy.", "np.", 1) if name.startswith("numpy.") else name
    given = [*texts, *(f"{key}={text(x)}" for key, x in kwargs.items())]
    written = f"{name}({', '.join(given)})"
    return f"np.zeros(2, dtype={written})" if short in OF_DTYPES else written


def _bracketed(operand: str) -> str:
    return f"({operand})" if operand.startswith("-") else operand


def _index(index: Any) -> str:
    if type(index) is tuple:
        return ", ".join(map(_index, index)) + ("," if len(index) == 1 else "") or "()"
    if type(index) is slice:
        parts = [index.start, index.stop, index.step]
        return ":".join("" if str(x) == "None" else text(x) for x in parts).removesuffix(":")
    return text(index)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that is there until the process ends."""
    return tempfile.TemporaryDirectory(prefix="pscdsl-replay-")


def loaded(source: str) -> ModuleType:
    """Return a module of this source, from a file that stays as long as the process."""
    name = f"replayed_{next(_numbers)}"
    path = Path(_folder().name) / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def evaluated(call: Call) -> Any:
    """Return what NumPy or SciPy gives; raise what it raises."""
    args = [mapped(_copied, x) for x in call.args]
    kwargs = {key: mapped(_copied, x) for key, x in call.kwargs.items()}
    return function_of(call.name)(*args, **kwargs)


def _copied(x: Any) -> Any:
    return x.copy() if is_array(x) else x


def function_of(name: str) -> Callable[..., Any]:
    """Return the function of a name that was recorded."""
    import builtins
    import operator

    module, _, short = name.rpartition(".")
    if module == "operator":
        function: Callable[..., Any] = getattr(operator, short)
        return function
    if module == "ndarray":
        if short in ATTRIBUTES:
            return operator.attrgetter(short)
        return lambda x, *args, **kwargs: getattr(x, short)(*args, **kwargs)
    if module == "builtins":
        function = getattr(builtins, short)
        return function
    package, *rest = name.split(".")
    if package == "scipy":
        __import__(module)
    found: Any = sys.modules[package]
    for part in rest:
        found = getattr(found, part)
    function = found
    return function
