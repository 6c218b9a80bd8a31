"""Arguments of `run`, without a kernel."""

from __future__ import annotations

import numpy as np
import pytest

from pscdsl._src.cli import Unusable
from pscdsl._src.cli.kernel_arguments import dims
from pscdsl._src.cli.run import complete, leaf_types, parse, sizes_of
from pscdsl.typing.array_types import ArrayType, TupleType, Type
from pscdsl.typing.dims import name
from pscdsl.typing.dtypes import F32, I32, KEY

N = name("n")
PARAMETERS: list[tuple[str, Type]] = [
    ("p", TupleType((ArrayType(F32, (N, 2)), ArrayType(I32)))),
    ("k", ArrayType(KEY)),
    ("x", ArrayType(F32, (N + 1,))),
]


def test_leaves_are_named_as_they_are_selected() -> None:
    assert list(leaf_types(PARAMETERS)) == ["p[0]", "p[1]", "k", "x"]


def test_sizes_come_from_given_arrays_where_the_size_is_a_name() -> None:
    given = parse(["p[0]=[[1, 2], [3, 4], [5, 6]]", "x=[1]"], PARAMETERS)
    assert sizes_of(leaf_types(PARAMETERS), given, {}) == {"n": 3}
    assert sizes_of(leaf_types(PARAMETERS), given, {"n": 4}) == {"n": 4}


def test_what_is_missing_is_drawn_from_the_seed() -> None:
    types = leaf_types(PARAMETERS)
    given = parse(["p[1]=7"], PARAMETERS)
    first, again, other = (complete(types, given, {"n": 3}, seed) for seed in (0, 0, 1))
    assert [leaf.shape for leaf in first] == [(3, 2), (), (2,), (4,)]
    assert [leaf.dtype.name for leaf in first] == ["float32", "int32", "uint32", "float32"]
    assert first[1] == 7
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize(
    "option",
    ["p[1]=1.5", "p[1]=true and", "q=1", "p=1", "x", 'x="a"', "p[1]=1e999", "x=" + "[" * 9],
)
def test_what_is_no_argument_is_refused(option: str) -> None:
    with pytest.raises(Unusable):
        parse([option], PARAMETERS)


def test_a_wrong_shape_is_refused() -> None:
    types = leaf_types(PARAMETERS)
    given = parse(["x=[1, 2]"], PARAMETERS)
    with pytest.raises(Unusable, match="argument x has shape"):
        complete(types, given, {"n": 3}, 0)


def test_sizes_are_read_from_several_options() -> None:
    assert dims(["n=8, d=4", "h=2"]) == {"n": 8, "d": 4, "h": 2}
    for wrong in ("n", "n=", "n=-1", "n=1.5", "1=2"):
        with pytest.raises(Unusable):
            dims([wrong])
