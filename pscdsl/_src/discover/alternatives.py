"""What a parameter may be, in the order in which it is tried: all evidence taken together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pscdsl._src.discover.candidates import BOOL, FLOAT, INT, array, fresh
from pscdsl._src.discover.hints import Hint
from pscdsl._src.discover.usage import Usage
from pscdsl._src.frontend.values.values import Applicable
from pscdsl.typing.python_containers import is_tuple
from pscdsl.typing.signatures import MAX_RANK, NoneSpec, RepeatedSpec, Spec, StaticSpec, TupleSpec

Kind = Literal["array", "dtype", "static", "none", "tuple", "function", "declared"]

SCALARS = frozenset(
    "alpha beta dt dx dy eps epsilon gamma h lam lambda_ lr mu rate scale sigma step t tau temp "
    "temperature threshold tol x0 y0".split()
)
"""Names that are scalars more often than not."""
MATRICES = frozenset("A B H M P Q R W X Y Z".split())
"""Names that are matrices more often than not."""
NO_DEFAULT = object()
MAX_ITEMS = 8


@dataclass(frozen=True)
class Alternative:
    """One thing that a parameter may be."""

    kind: Kind
    spec: Spec
    cost: int


class AnyFunction:
    """Stands for a function that is given as an argument: its result is like its argument."""

    name = "function"

    def apply(self, here: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """The first argument."""
        del here
        given = (*args, *kwargs.values())
        return given[0] if given else 0.0


FUNCTION = StaticSpec("Callable", (AnyFunction(),))


def alternatives(
    name: str, usage: Usage, hint: Hint, default: Any = NO_DEFAULT, position: int = 0
) -> tuple[Alternative, ...]:
    """What a parameter may be, the likeliest first; never empty; `position` is its place."""
    found = [*_alternatives(name, usage, hint, default, position)]
    kept: dict[Spec, Alternative] = {}
    for each in found:
        kept.setdefault(each.spec, each)
    return tuple(kept.values())


def _alternatives(
    name: str, usage: Usage, hint: Hint, default: Any, position: int
) -> Iterator[Alternative]:
    if usage.called or hint.kind == "callable" or isinstance(default, Applicable):
        yield Alternative("function", FUNCTION, 0)
    if default is None:
        yield Alternative("none", NoneSpec(), 0)
    static = list(_static(usage, hint, default, position))
    if hint.kind in ("int", "bool", "str") or usage.static or usage.strings or usage.flag:
        yield from static
        static = []
    elif default is not NO_DEFAULT and isinstance(default, bool | int | str):
        yield from static
        static = []
    items = usage.items or [Usage() for _ in range(literal_length(default))]
    if 0 < len(items) <= MAX_ITEMS and not usage.exactly:
        yield from _tuples(name, items)
    yield from _arrays(name, usage, hint, default)
    if usage.looped:
        yield from _repeated(name)
    yield from static


def literal_length(default: Any) -> int:
    """How many items a default has that is a tuple; 0 for anything else."""
    return len(default) if is_tuple(default) else 0


def _static(usage: Usage, hint: Hint, default: Any, position: int) -> Iterator[Alternative]:
    """Values known while checking: the default, what is compared with, or a small number."""
    strings = list(dict.fromkeys([*usage.strings, *hint.strings]))
    if isinstance(default, str):
        strings = list(dict.fromkeys([default, *strings]))
    if strings:
        yield Alternative("static", StaticSpec("str", tuple(strings)), 0)
    elif isinstance(default, bool):
        yield Alternative("static", StaticSpec("bool", (default, not default)), 0)
    elif isinstance(default, int):
        samples = dict.fromkeys((default, 0, 1, 2, 3, 4))
        yield Alternative("static", StaticSpec("int", tuple(samples)), 0)
    elif default is None or default is NO_DEFAULT:
        first = 2 + position % 3  # parameters differ, so that results tell them apart
        integer = Alternative(
            "static", StaticSpec("int", tuple(dict.fromkeys((first, 0, 1, 2, 3, 4)))), 1
        )
        boolean = Alternative("static", StaticSpec("bool", (False, True)), 1)
        if hint.kind == "bool" or (usage.flag and hint.kind != "int" and not usage.static):
            integer, boolean = boolean, integer
        yield from (integer, boolean)


def _tuples(name: str, items: Sequence[Usage]) -> Iterator[Alternative]:
    """A tuple with an array for each item: as its own usage says, then all of one rank."""
    told = [_item_rank(each) for each in items]
    for cost, ranks in enumerate((told, *([rank] * len(items) for rank in range(3)))):
        specs = tuple(
            array(FLOAT, *(fresh(name, f"{index}_{axis}") for axis in range(rank)))
            for index, rank in enumerate(ranks)
        )
        yield Alternative("tuple", TupleSpec(specs), cost)


def _item_rank(usage: Usage) -> int:
    """The likeliest rank of an item: a scalar where nothing says more."""
    if usage.exactly is None and usage.least == 0 and not usage.turned and not usage.product:
        return 0
    return _ranks(usage.name, usage, Hint(), NO_DEFAULT)[0]


def _repeated(name: str) -> Iterator[Alternative]:
    for rank in range(3):
        item = array(FLOAT, *(fresh(name, axis) for axis in range(rank)))
        yield Alternative("tuple", RepeatedSpec(item), rank + 1)


def _arrays(name: str, usage: Usage, hint: Hint, default: Any) -> Iterator[Alternative]:
    dtype = BOOL if usage.mask else INT if usage.index else hint.dtype or FLOAT
    others = [each for each in (FLOAT, INT, BOOL) if each != dtype]
    for cost, rank in enumerate(_ranks(name, usage, hint, default)):
        dims = tuple(fresh(name, axis) for axis in range(rank))
        yield Alternative("array", array(dtype, *dims), cost)
        for other in others:
            yield Alternative("dtype", array(other, *dims), cost + 2)


def _is_weight(name: str) -> bool:
    """Whether a name is one of several matrices of weights: `w1`, `wq`."""
    return len(name) == 2 and name[0] == "w"


def _ranks(name: str, usage: Usage, hint: Hint, default: Any) -> list[int]:
    """The ranks to try, the likeliest first."""
    if usage.exactly is not None:
        return [usage.exactly] if usage.exactly <= MAX_RANK + 1 else []
    usual = [1, 2, 0, 3]
    if usage.index and (len(name) == 1 or name.endswith(("index", "_i"))):
        usual = [0, 1, 2, 3]
    if hint.kind == "scalar" or (default is not None and isinstance(default, int | float)):
        usual = [0, 1, 2]
    elif usage.turned or (usage.product and (name[:1].isupper() or _is_weight(name))):
        usual = [2, 1, 3]
    elif usage.product:
        usual = [1, 2, 3]
    elif name in SCALARS and hint.kind == "":
        usual = [0, 1, 2, 3]
    elif name in MATRICES:
        usual = [2, 1, 3, 0]
    if hint.dims is not None:
        usual = [len(hint.dims), *(rank for rank in usual if rank != len(hint.dims))]
    ranks = [rank for rank in usual if rank >= usage.least]
    return ranks or [usage.least]
