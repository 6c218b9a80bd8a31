"""`einsum`: every form of its subscripts, translated to one contraction."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, NoReturn, TypeAlias

import numpy as np

from pscdsl._src.ir.builder import Builder, Value, Weak, promote
from pscdsl._src.ir.program import Scalar
from pscdsl._src.language.meanings import describe, function, require_no_integers
from pscdsl.numpy.contraction import Label, Labelled, Labels, contract
from pscdsl.numpy.elementwise import require
from pscdsl.numpy.shorthand import listed
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.shapes import disagreement
from pscdsl.typing.codes.shapes_library import BadSubscripts, LengthsDiffer
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Dim, Size

NAME = "numpy.einsum"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

Symbol: TypeAlias = "str | EllipsisType"


@function(NAME)
def einsum(here: Builder, *operands: Any, optimize: Any = False) -> Value:
    """Sums of products over axes named by letters; the order of products is always chosen."""
    if operands and isinstance(operands[0], str):
        text, arrays = operands[0], list(operands[1:])
        terms, output = _parsed(text)
    else:
        text, arrays, terms, output = _interleaved(operands)
    if not arrays:
        _fail(text, "there is no operand")
    if len(terms) != len(arrays):
        _fail(text, f"{len(terms)} groups of letters for {len(arrays)} operands")
    values = _values(here, arrays)
    labelled = [_labelled(text, *each) for each in zip(values, terms, strict=True)]
    _check_sizes(labelled)
    return contract(labelled, _result_labels(text, labelled, terms, output))


def _fail(text: str, problem: str) -> NoReturn:
    raise Failure(BadSubscripts(subscripts=text, problem=problem))


def _values(here: Builder, arrays: Sequence[Any]) -> tuple[Value, ...]:
    for each in arrays:
        if not isinstance(each, Value | Weak | Scalar | Dim | np.ndarray | np.generic):
            raise Failure(
                BadArguments(function=NAME, problem=f"takes arrays, not {describe(each)}")
            )
    if not any(isinstance(each, Value | Weak) for each in arrays):
        arrays = [
            here.constant(x) if isinstance(x, np.ndarray | np.generic) else here.weak(x)
            for x in arrays
        ]
    values = promote(*arrays)
    assert values is not None
    require_no_integers(NAME, arrays, values[0].dtype)
    for each in values:
        require(NAME, each, "any")
    return values


def _parsed(text: str) -> tuple[list[list[Symbol]], list[Symbol] | None]:
    """The symbols of each operand and of the result, if that is given."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = [_symbols(text, term) for term in left.split(",")]
    return terms, _symbols(text, right) if arrow else None


def _symbols(text: str, term: str) -> list[Symbol]:
    symbols: list[Symbol] = []
    before, dots, after = term.partition("...")
    for letter in before:
        symbols.append(_letter(text, letter))
    if dots:
        symbols.append(...)
    for letter in after:
        symbols.append(_letter(text, letter))
    return symbols


def _letter(text: str, letter: str) -> str:
    if letter == ".":
        _fail(text, "`...` has three dots and stands at most once for each operand")
    if letter not in LETTERS:
        _fail(text, f"{describe(letter)} is no letter")
    return letter


def _interleaved(
    operands: Sequence[Any],
) -> tuple[str, list[Any], list[list[Symbol]], list[Symbol] | None]:
    """The form `einsum(a, [0, 1], b, [1, 2], [0, 2])`."""
    arrays, lists = list(operands[0::2]), list(operands[1::2])
    output = None
    if len(arrays) > len(lists):
        output = _from_numbers(arrays.pop())
    terms = [_from_numbers(each) for each in lists]
    text = ",".join(map(_text, terms)) + ("" if output is None else f"->{_text(output)}")
    return text, arrays, terms, output


def _from_numbers(numbers: object) -> list[Symbol]:
    symbols: list[Symbol] = []
    items = listed(numbers)
    if items is None:
        problem = f"takes a list of integers after each operand, not {describe(numbers)}"
        raise Failure(BadArguments(function=NAME, problem=problem))
    for item in items:
        if item is ...:
            symbols.append(...)
        elif isinstance(item, int) and 0 <= item < len(LETTERS):
            symbols.append(LETTERS[item])
        else:
            problem = f"numbers axes from 0 to {len(LETTERS) - 1}, not by {describe(item)}"
            raise Failure(BadArguments(function=NAME, problem=problem))
    return symbols


def _text(symbols: Sequence[Symbol]) -> str:
    return "".join("..." if symbol is ... else symbol for symbol in symbols)


def _labelled(text: str, value: Value, term: Sequence[Symbol]) -> Labelled:
    """An operand with its labels: those of the axes of `...` count from its end."""
    letters = [symbol for symbol in term if symbol is not ...]
    if len(term) - len(letters) > 1:
        _fail(text, "`...` stands at most once for each operand")
    extra = value.ndim - len(letters)
    if extra < 0 or (extra > 0 and len(term) == len(letters)):
        axes = "1 axis" if value.ndim == 1 else f"{value.ndim} axes"
        _fail(text, f"`{_text(term)}` for {value.type}, which has {axes}")
    labels: list[Label] = []
    for symbol in term:
        if symbol is ...:
            labels.extend(range(-extra, 0))
        else:
            labels.append(symbol)
    return Labelled(value, tuple(labels))


def _check_sizes(operands: Sequence[Labelled]) -> None:
    known: dict[Label, tuple[Size, int]] = {}
    for index, each in enumerate(operands):
        own: dict[Label, Size] = {}
        for label, size in zip(each.labels, each.value.shape, strict=True):
            if label in own:  # a diagonal: here a size of 1 is not repeated
                _require_equal(each, label, (own[label], size), (index, index))
            own[label] = size
            other, place = known.get(label, (1, index))
            if other == 1:
                known[label] = (size, index)
            elif size != 1:
                _require_equal(each, label, (other, size), (place, index))


def _require_equal(
    x: Labelled, label: Label, sizes: tuple[Size, Size], places: tuple[int, int]
) -> None:
    facts = x.value.builder.facts
    if not facts.equal(*sizes):
        name = f"`{label}`" if isinstance(label, str) else "of `...`"
        left, right = (f"axis {name} of operand {place}" for place in places)
        why = disagreement(facts, *sizes)
        raise Failure(LengthsDiffer(function=NAME, left=left, right=right, why=why))


def _result_labels(
    text: str,
    operands: Sequence[Labelled],
    terms: Sequence[Sequence[Symbol]],
    output: Sequence[Symbol] | None,
) -> Labels:
    rest = max(sum(isinstance(label, int) for label in each.labels) for each in operands)
    broadcast: Labels = tuple(range(-rest, 0))
    letters = [symbol for term in terms for symbol in term if symbol is not ...]
    if output is None:
        once = [letter for letter in letters if letters.count(letter) == 1]
        return (*broadcast, *sorted(once))
    labels: list[Label] = []
    for symbol in output:
        if symbol is ...:
            labels.extend(broadcast)
        elif symbol not in letters:
            _fail(text, f"no operand has `{symbol}`")
        else:
            labels.append(symbol)
    if len(set(labels)) < len(labels):
        _fail(text, "the result has an axis twice")
    if broadcast and ... not in output:
        _fail(text, "the result lacks the axes of `...`")
    return tuple(labels)
