"""`itertools`, `iter` and `next` over values that are known while checking.

Items are passed on unchanged, also arrays. An iterator is consumed where it is passed, and one that
was passed to `next` is empty afterwards, so no iterator has a state.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

from pscdsl._src.frontend.interpreter import operators
from pscdsl._src.frontend.interpreter.functions import items_of
from pscdsl._src.frontend.interpreter.iteration import is_lazy
from pscdsl._src.frontend.interpreter.python_library import NO_NODE, Rule, call, frame_of
from pscdsl._src.frontend.purity import external_value, require_closed
from pscdsl._src.frontend.values import (
    MAX_ITEMS,
    AnyValue,
    Builtin,
    CPythonFunction,
    External,
    Once,
)
from pscdsl._src.ir.builder import Builder
from pscdsl._src.language.meanings import MEANINGS, describe
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.language_evaluation import TooLarge
from pscdsl.typing.diagnostics import Failure


def _rearranged(name: str, real: CPythonFunction) -> Rule:
    """Return a function that reads no item of its arguments."""

    def apply(here: Builder, *args: AnyValue, **kwargs: AnyValue) -> Once:
        del here
        count = 1 if name in _OF_ONE else len(args)
        columns = [list(items_of(each)) for each in args[:count]]
        others = [*args[count:], *(value for key, value in kwargs.items() if key != "fillvalue")]
        require_closed(f"how many items `itertools.{name}` takes", *others)
        found = real(*columns, *args[count:], **kwargs)
        return _once(name, found, lazy=is_lazy(*args[:count]))

    return apply


_OF_ONE: Final = frozenset(
    ("combinations", "combinations_with_replacement", "islice", "pairwise", "permutations")
)
"""The functions that iterate only over their first argument."""


def _once(name: str, items: Iterable[AnyValue], *, lazy: bool) -> Once:
    found = list(itertools.islice(items, MAX_ITEMS + 1))
    if len(found) > MAX_ITEMS:
        raise Failure(TooLarge(what=f"`itertools.{name}` with more than {MAX_ITEMS} items"))
    return Once(f"an `itertools.{name}`", found, lazy=lazy)


def _product(here: Builder, *iterables: AnyValue, repeat: AnyValue = 1) -> Once:
    del here
    require_closed("the `repeat` of `itertools.product`", repeat)
    columns = [list(items_of(each)) for each in iterables]
    if not isinstance(repeat, int) or repeat < 0 or repeat * len(columns) > _MOST_COLUMNS:
        problem = f"takes a number of repetitions, not {describe(repeat)}"
        raise Failure(BadArguments(function="itertools.product", problem=problem))
    found = itertools.product(*columns, repeat=repeat)
    return _once("product", found, lazy=is_lazy(*iterables))


_MOST_COLUMNS: Final = 64


def _flattened(here: Builder, iterable: AnyValue, /) -> Once:
    del here
    found = itertools.chain.from_iterable(items_of(each) for each in items_of(iterable))
    return _once("chain", found, lazy=is_lazy(iterable))


def _repeat(here: Builder, object: AnyValue, times: AnyValue = None) -> Once:  # noqa: A002
    del here
    require_closed("how often `itertools.repeat` repeats", times)
    if not isinstance(times, int):
        problem = "repeats without an end: say how often"
        raise Failure(BadArguments(function="itertools.repeat", problem=problem))
    return _once("repeat", itertools.repeat(object, times), lazy=False)


def _accumulate(
    here: Builder, iterable: AnyValue, func: AnyValue = None, *, initial: AnyValue = None
) -> Once:
    items = list(items_of(iterable))
    if initial is not None:
        items.insert(0, initial)
    found: list[AnyValue] = []
    for item in items:
        if not found:
            found.append(item)
        elif func is None:
            found.append(operators.binary(frame_of(here), NO_NODE, "Add", found[-1], item))
        else:
            found.append(call(here, func, found[-1], item))
    return _once("accumulate", found, lazy=func is not None or is_lazy(iterable))


def _starmap(here: Builder, function: AnyValue, iterable: AnyValue, /) -> Once:
    found = [call(here, function, *items_of(each)) for each in items_of(iterable)]
    return _once("starmap", found, lazy=True)


def _iter(here: Builder, iterable: AnyValue, /) -> Once:
    del here
    # It is consumed where it is written; otherwise a loop would decide how often its name is used.
    return Once("an iterator", list(items_of(iterable)), lazy=True)


def _next(here: Builder, iterator: AnyValue, /, *default: AnyValue) -> AnyValue:
    del here
    if isinstance(iterator, External):
        raise Failure(external_value(iterator))
    if not isinstance(iterator, Once) or not iterator.lazy or len(default) > 1:
        problem = f"takes a generator or `iter(…)` that stands in it, not {describe(iterator)}"
        raise Failure(BadArguments(function="next", problem=problem))
    items: Sequence[AnyValue] = iterator.take()
    if not items and not default:
        raise Failure(BadArguments(function="next", problem="is given what holds nothing"))
    return next(iter((*items, *default)))


FUNCTIONS: Final[dict[str, Rule]] = {
    "itertools.accumulate": _accumulate,
    "itertools.chain": _rearranged("chain", itertools.chain),
    "itertools.chain.from_iterable": _flattened,
    "itertools.combinations": _rearranged("combinations", itertools.combinations),
    "itertools.combinations_with_replacement": _rearranged(
        "combinations_with_replacement", itertools.combinations_with_replacement
    ),
    "itertools.islice": _rearranged("islice", itertools.islice),
    "itertools.pairwise": _rearranged("pairwise", itertools.pairwise),
    "itertools.permutations": _rearranged("permutations", itertools.permutations),
    "itertools.product": _product,
    "itertools.repeat": _repeat,
    "itertools.starmap": _starmap,
    "itertools.zip_longest": _rearranged("zip_longest", itertools.zip_longest),
    "builtins.iter": _iter,
    "builtins.next": _next,
}


def register() -> None:
    """Register these functions by name."""
    for name, rule in FUNCTIONS.items():
        MEANINGS[name] = Builtin(name, rule, consumes=True)
