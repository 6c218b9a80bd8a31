"""The meanings of `psc.debug.print`, `psc.debug.value` and `psc.check` in kernels."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pscdsl._src.frontend.interpreter.frames import require_program
from pscdsl._src.frontend.trees import flatten, leaf, of_values, strong
from pscdsl._src.frontend.values import Builtin, Given, describe, is_plain
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.language.declarations import completed
from pscdsl._src.language.meanings import MEANINGS
from pscdsl._src.primitives.effects import (
    Check,
    Named,
    Print,
    ProgressEffect,
    TextEffect,
    ValueRecord,
)
from pscdsl.typing.array_types import StaticType, leaves
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import BOOL, KEY

if TYPE_CHECKING:
    from pscdsl._src.frontend.values import AnyValue

_PRINT: Final = "psc.debug.print"
_VALUE: Final = "psc.debug.value"
_CHECK: Final = "psc.check"
_PROGRESS: Final = "psc.progress"


def print_(here: Builder, text: AnyValue, /, *args: AnyValue, **kwargs: AnyValue) -> None:
    known = _known_text(_PRINT, text)
    fields, operands = _fields(here, _PRINT, known, args, kwargs)
    here.bind(Print(text=known, fields=fields), operands)


def value(here: Builder, name: AnyValue, x: AnyValue) -> AnyValue:
    label = _known_text(_VALUE, name)
    named, operands = _field(here, _VALUE, label, x)
    here.bind(ValueRecord(named=named), operands)
    return x


def check(here: Builder, condition: AnyValue, text: AnyValue, /, **kwargs: AnyValue) -> None:
    require_program(here, f"`{_CHECK}`")
    found = leaf(here, condition)
    if found is None or found.dtype is not BOOL:
        problem = f"takes a condition, and {describe(condition)} is none"
        raise Failure(BadArguments(function=_CHECK, problem=problem))
    known = _known_text(_CHECK, text)
    fields, operands = _fields(here, _CHECK, known, (), kwargs)
    span = here.program.span
    here.bind(Check(text=known, fields=fields, span=span), [*strong([found]), *operands])


def progress(here: Builder, step: AnyValue, steps: AnyValue, label: AnyValue) -> None:
    require_program(here, f"`{_PROGRESS}`")
    operands: list[Value] = []
    for name, x in (("step", step), ("steps", steps)):
        found = leaf(here, x)
        number = None if found is None else strong([found])[0]
        if number is None or number.ndim or not number.dtype.is_integer:
            problem = f"takes an integer for `{name}`, and {describe(x)} is none"
            raise Failure(BadArguments(function=_PROGRESS, problem=problem))
        operands.append(number)
    here.bind(ProgressEffect(title=_known_text(_PROGRESS, label)), operands)


def _known_text(function: str, text: AnyValue) -> str:
    if isinstance(text, str):
        return text
    problem = f"takes a text that is known while checking, and {describe(text)} is none"
    instead = '`psc.debug.print("{x}", x=x)` prints `x`' if function == _PRINT else ""
    raise Failure(BadArguments(function=function, problem=problem, instead=instead))


def _fields(
    here: Builder,
    function: str,
    text: str,
    args: Sequence[AnyValue],
    kwargs: Mapping[str, AnyValue],
) -> tuple[tuple[Named, ...], list[Value]]:
    """Return the fields of a text, and their operands; a Failure if text and fields differ."""
    given = {**{str(at): x for at, x in enumerate(args)}, **kwargs}
    wanted = _names(function, text)
    for name in wanted:
        if name not in given:
            problem = f"has a field `{{{name}}}` in its text, and is given no such argument"
            raise Failure(BadArguments(function=function, problem=problem))
    unused = [name for name in given if name not in wanted]
    if unused:
        problem = f"is given `{unused[0]}`, and its text has no such field"
        instead = f"write `{{{unused[0]}}}` in the text"
        raise Failure(BadArguments(function=function, problem=problem, instead=instead))
    fields: list[Named] = []
    operands: list[Value] = []
    for name, x in given.items():
        named, values = _field(here, function, name, x)
        fields.append(named)
        operands += values
    _try(function, TextEffect(text=text, fields=tuple(fields)), operands)
    return tuple(fields), operands


def _try(function: str, text: TextEffect, operands: Sequence[Value]) -> None:
    """Fill the fields with zeros; a Failure if a format does not apply to its field."""
    examples = [np.zeros((1,) * each.ndim, to_numpy(each.dtype)) for each in operands]
    try:
        text.filled(iter(examples))
    except IndexError:
        pass  # an array may have more elements than its example
    except Exception as error:  # whatever a `__format__` raises
        problem = f"cannot write its fields as its text says: {error}"
        raise Failure(BadArguments(function=function, problem=problem)) from None


def _field(here: Builder, function: str, name: str, x: AnyValue) -> tuple[Named, list[Value]]:
    """Return a field of this name, and its operands."""
    require_program(here, f"`{function}`")
    if x is None or (is_plain(x) and isinstance(x, str)):
        return Named(name, StaticType(x)), []
    found, tree = flatten(here, x, f"the argument `{name}` of `{function}`")
    values = strong(found)
    if any(each.dtype is KEY for each in leaves(of_values(tree, values))):
        problem = f"shows no random keys, and `{name}` has one"
        raise Failure(BadArguments(function=function, problem=problem))
    return Named(name, of_values(tree, values)), values


def _names(function: str, text: str) -> dict[str, None]:
    """Return the names of a text's fields; those without a name are numbered."""
    try:
        return dict.fromkeys(_fields_of(text))
    except ValueError as error:
        problem = f"is given a text that is no format string: {error}"
        raise Failure(BadArguments(function=function, problem=problem)) from None


def _fields_of(text: str) -> Iterator[str]:
    """Yield the name of each field, also of those inside of a format."""
    number = 0
    due = [text]
    while due:
        for _, field, inner, _ in string.Formatter().parse(due.pop()):
            if field is None:
                continue
            name = field.replace("[", ".").partition(".")[0]
            yield name or str(number)
            number += not name
            due.append(inner or "")


def register() -> None:
    """Give the functions their names."""
    functions: dict[str, tuple[Callable[..., Any], Given]] = {
        "pscdsl.debug.print": (print_, Given.READ),
        "pscdsl.debug.value": (value, Given.HELD),
        "pscdsl.check": (check, Given.READ),
        "pscdsl.progress": (progress, Given.READ),
    }
    for name, (body, given) in functions.items():
        shown = name.replace("pscdsl", "psc", 1)
        MEANINGS[name] = Builtin(shown, completed(name, body), given=given)
