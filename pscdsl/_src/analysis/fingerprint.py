"""Fingerprints of typed programs: few bytes, equal for equal programs, in any process.

The fingerprint represents all that the translation to StableHLO depends on, except the numbers of
sizes: primitives with their fields, their connections, types, constants, and called functions with
their names. Spans and the names of variables are for people and do not count. A program with a part
that cannot be written down by its content, such as a user's translation, has no fingerprint.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from typing import Any, Final, cast

from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Atom, Block, Function, Literal
from pscdsl._src.primitives.custom_derivatives import Ruled
from pscdsl._src.primitives.elementwise import Elementwise
from pscdsl._src.support.tracebacks import OWN_PRIMITIVES
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import DType

SIZE: Final = 32
"""Bytes of a fingerprint."""


class NoFingerprint(Exception):
    """A part of a program whose content cannot be written down; the message names it."""


def fingerprint(function: Function) -> bytes:
    """Return the fingerprint of a program; raise `NoFingerprint` for a part that has none."""
    try:
        text = _Writer().program(function)
    except RecursionError:
        raise NoFingerprint("blocks nested too deeply") from None
    return blake2b(text.encode(), digest_size=SIZE).digest()


class _Writer:
    """Writes a program as unambiguous text; repeated parts are numbered."""

    def __init__(self) -> None:
        self._functions: dict[Function, int] = {}
        self._due: list[Function] = []
        self._types: dict[int, tuple[ArrayType, str]] = {}

    def program(self, function: Function) -> str:
        """Return a function and all that it calls."""
        parts = [f"fast {function.fast_math}", ",".join(function.dims), self._block(function.body)]
        while self._due:
            callee = self._due.pop()
            number = self._functions[callee]
            parts.append(f"#{number} {callee.name} {','.join(callee.dims)}")
            parts.append(self._block(callee.body))
        return "\n".join(parts)

    def _block(self, block: Block) -> str:
        numbers: dict[Atom, int] = {}
        for var in block.params:
            numbers[var] = len(numbers)
        lines = [" ".join([self._type(var.type) for var in block.params])]
        for equation in block.equations:
            inputs = " ".join([self._atom(operand, numbers) for operand in equation.inputs])
            outputs = " ".join([self._type(var.type) for var in equation.outputs])
            for var in equation.outputs:
                numbers[var] = len(numbers)
            lines.append(f"{self._primitive(equation.primitive)} {inputs} -> {outputs}")
        lines.append(" ".join([self._atom(result, numbers) for result in block.results]))
        return "{" + "\n".join(lines) + "}"

    def _atom(self, atom: Atom, numbers: Mapping[Atom, int]) -> str:
        if isinstance(atom, Literal):
            return f"{self.value(atom.value)}:{atom.type.dtype.name}"
        return f"%{numbers[atom]}"

    def _type(self, type: ArrayType) -> str:  # noqa: A002
        cached = self._types.get(id(type))  # identity is faster; the entry keeps the type alive
        if cached is None:
            shape = ",".join([str(size) for size in type.shape])
            cached = self._types[id(type)] = (type, f"{type.dtype.name}[{shape}]")
        return cached[1]

    def _primitive(self, primitive: Primitive) -> str:
        cls = type(primitive)
        if isinstance(primitive, Elementwise):
            own = own_functions()
            found = own.get(id(primitive)) or own_functions(again=True).get(id(primitive))
            if found is not None:
                return found
        elif isinstance(primitive, Ruled):  # the rules are not translated
            return f"{cls.__name__}({self.value((primitive.captured, primitive.body))})"
        elif cls.__module__.startswith(OWN_PRIMITIVES) and is_dataclass(primitive):
            parts = [
                f"{f.name}={self.value(getattr(primitive, f.name))}" for f in fields(primitive)
            ]
            return (
                f"{cls.__module__.removeprefix('pscdsl._src.')}.{cls.__name__}({','.join(parts)})"
            )
        raise NoFingerprint(f"`{primitive.label}`, a primitive of the user's own")

    def value(self, value: object) -> str:
        """Return a static parameter, with its class: True is not 1, and 0.0 not -0.0."""
        kind = type(value)
        if kind is int or value is None or kind is bool:
            return repr(value)
        if kind is tuple:
            return f"({','.join([self.value(each) for each in cast('tuple[Any, ...]', value)])})"
        if kind is str:
            return repr(value)
        if isinstance(value, Dim):
            return f"<{value}>"
        if isinstance(value, DType):
            return f"<{value.name}>"
        if isinstance(value, ArrayType):
            return self._type(value)
        if isinstance(value, Block):
            return self._block(value)
        if isinstance(value, Function):
            return f"#{self._number(value)}"
        if kind is bytes:
            return f"bytes {blake2b(cast('bytes', value), digest_size=SIZE).hexdigest()}"
        if kind is float:
            return f"float {struct.pack('<d', value).hex()}"
        if kind is complex:
            number = cast("complex", value)
            return f"complex {struct.pack('<dd', number.real, number.imag).hex()}"
        raise NoFingerprint(f"an object of class {kind.__qualname__}")

    def _number(self, function: Function) -> int:
        cached = self._functions.get(function)
        if cached is None:
            cached = self._functions[function] = len(self._functions)
            self._due.append(function)
        return cached


_found: dict[int, str] = {}


def own_functions(*, again: bool = False) -> Mapping[int, str]:
    """Return the elementwise functions that modules of this package define, which live for ever."""
    if again or not _found:
        for module in [m for n, m in list(sys.modules.items()) if n.startswith(OWN_PRIMITIVES)]:
            for value in vars(module).values():
                if isinstance(value, Elementwise):
                    _found[id(value)] = value.name
    return _found
