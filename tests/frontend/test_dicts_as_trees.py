"""Dicts and lists as parameters and results: the same text under NumPy gives the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl.typing.python_containers import is_dict, is_sequence
from tests.support.projects import module_of

pytestmark = pytest.mark.quick_code

PROGRAMS = '''\
from typing import Any, TypedDict

import numpy as np
import pscdsl as psc
from pscdsl import f64


class Pair(TypedDict):
    """Two arrays."""

    w: f64["n"]
    b: f64["n"]


class Nested(TypedDict):
    """Whatever a dict may hold."""

    pair: Pair
    scale: f64
    rows: tuple[f64["n"], ...]
    more: list[f64["k"]]
    rest: f64["k"] | None


def in_order(p: Pair) -> f64:
    found = 0.0
    for v in p.values():
        found = 3 * found + v.sum()
    return found


def by_keys(p: Pair) -> f64["n"]:
    first, second = p
    return p[first] - 2 * p[second]


def by_first_key(p: Pair) -> f64["n"]:
    return p["w"] if list(p) == ["w", "b"] else p["b"]


def stacked(p: Pair) -> f64["2 n"]:
    return np.stack(list(p.values()))


def questions(p: Pair) -> f64["n"]:
    size = len(p) + ("w" in p) + 2 * ("z" in p)
    return p.get("z", p["w"]) * size if p and isinstance(p, dict) else p["b"]


def to_keywords(p: Pair) -> f64["n"]:
    def line(w: Any, b: Any) -> Any:
        return w - 2 * b

    return line(**p)


def rest_of_keywords(p: Pair) -> f64["n"]:
    def line(w: Any, **rest: Any) -> Any:
        rest["w"] = w
        rest["b"] = rest["b"] + 1
        return w - 2 * rest["b"] + p["b"]

    return line(**p)


def changed_copy(p: Pair) -> f64["n"]:
    q = dict(p)
    q["w"] = q["w"] + 1
    del q["b"]
    return q["w"] + p["w"] + p["b"]


def changed_display(p: Pair) -> tuple[Pair, f64["n"]]:
    return {**p, "w": p["b"] * 2}, p["w"]


def itself(p: Pair) -> Pair:
    return p


def reversed_keys(p: Pair) -> Pair:
    return {k: p[k] for k in reversed(p)}


def sorted_keys(p: Pair) -> Pair:
    return {k: p[k] for k in sorted(p)}


def constructed(p: Pair) -> Pair:
    return Pair(w=p["b"], b=p["w"])


def constructed_of_another(p: Pair) -> Pair:
    return Pair(p, w=p["b"])


def undeclared(p: Pair):
    return {"z": p["w"], "a": [p["b"], (p["w"], None)]}


def mapped(p: Pair) -> Pair:
    return psc.tree.map(lambda x: x * 2, p)


def carried(p: Pair) -> Pair:
    q = dict(p)
    for _ in range(20):
        q["w"] = q["w"] * 0.5 + q["b"]
    return q


def branched(p: Pair) -> Pair:
    if p["w"][0] > 2:
        return {"w": p["w"], "b": p["b"]}
    return {"w": p["b"], "b": p["w"]}


def returned_in_loop(p: Pair) -> Pair:
    for i in range(len(p["w"])):
        if p["w"][i] > 2:
            return {"w": p["w"] * i, "b": p["b"]}
    return {"w": p["b"], "b": p["w"]}


def each_key(p: dict[str, f64["n"]]) -> dict[str, f64["n"]]:
    found = 0.0
    result = {}
    for k, v in p.items():
        found = 2 * found + v.sum()
        result[k + "!"] = v + found
    return result


def nested(o: Nested, x: f64["n"]) -> Nested:
    found = o["scale"] * o["pair"]["w"]
    for row in o["rows"]:
        found = 2 * found + row
    more = [2 * y for y in o["more"]]
    more.append(o["rest"] if o["rest"] is not None else o["more"][0])
    return {**o, "pair": {"b": found, "w": x}, "more": more}


def items(xs: list[f64["n"]]) -> list[f64["n"]]:
    assert len(xs) >= 1
    ys = xs[:]
    ys.append(xs[0] + len(xs))
    ys[0] = ys[0] + 1
    return ys


def list_or_tuple(xs: list[f64["n"]]) -> f64:
    assert len(xs) >= 1
    return xs[-1].sum() if isinstance(xs, list) else xs[0].sum()


def rows_of_list(xs: list[f64["n"]]) -> f64["k n"]:
    return np.stack([*xs, *xs[::-1]])


def pairs_of_list(xs: list[Pair]) -> list[Pair]:
    return [{"w": x["b"], "b": x["w"]} for x in xs]


def of_two(p: Pair, q: Pair) -> f64["n"]:
    found = 0.0 * p["w"]
    for k in p:
        found = 2 * found + p[k]
    for v in q.values():
        found = 2 * found + v
    return found


def stores_item(p: Pair) -> f64["n"]:
    p["w"] = p["b"] + 1
    return p["w"]


def stores_into_array(p: Pair) -> f64["n"]:
    p["w"][:] = 0
    return p["w"]


def stores_into_array_of_copy(p: Pair) -> f64["n"]:
    q = dict(p)
    q["w"][0] = 0
    return q["w"]


def adds_in_copy(p: Pair) -> f64["n"]:
    q = p.copy()
    q["w"] += 1
    return p["w"]


def pops(p: Pair) -> f64["n"]:
    p.pop("w")
    return p["b"]


def stores_in_helper(p: Pair) -> f64["n"]:
    def change(q: Any) -> None:
        q["w"] = q["b"]

    change(p)
    return p["w"]


def updates(p: Pair) -> f64["n"]:
    p |= {"w": p["b"]}
    return p["w"]


def appends(xs: list[f64["n"]]) -> f64["n"]:
    assert len(xs) >= 1
    xs.append(xs[0])
    return xs[0]


def stores_into_first(xs: list[f64["n"]]) -> f64["n"]:
    assert len(xs) >= 1
    xs[0][0] = 1
    return xs[0]


def extends(xs: list[f64["n"]]) -> f64["n"]:
    assert len(xs) >= 1
    xs += [xs[0]]
    return xs[0]


@psc.kernel
def plain(p: Pair, x: f64["n"]) -> f64["n"]:
    return p["w"] * x + p["b"]


@psc.kernel
def listed(xs: list[f64["n"]]) -> f64:
    return sum([x.sum() for x in xs], 0.0)
'''
"""As a text: type checkers ask for literal keys of a TypedDict, and Python does not."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    path: Path = tmp_path_factory.mktemp("dicts") / "dict_programs.py"
    path.write_text(PROGRAMS)
    module = module_of(path)
    yield module
    del sys.modules[path.stem]


W, B = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])

PAIRS: tuple[Any, ...] = ({"w": W, "b": B}, {"b": B, "w": W}, {"w": W, "b": B})
LISTS: tuple[Any, ...] = ([W], [W, B], [B, W, W], [W])
NESTED: tuple[Any, ...] = (
    {"pair": PAIRS[0], "scale": 2.0, "rows": (B, W), "more": [W[:2]], "rest": None},
    {"rest": B[:2], "more": [W[:2], B[:2]], "rows": (), "scale": 3.0, "pair": PAIRS[1]},
)
OF_PAIRS = (
    "in_order by_keys by_first_key stacked questions to_keywords rest_of_keywords changed_copy "
    "changed_display itself reversed_keys sorted_keys constructed constructed_of_another "
    "undeclared mapped carried branched returned_in_loop each_key"
).split()


CALLS: dict[str, list[tuple[Any, ...]]] = {
    **{key: [(p,) for p in PAIRS] for key in OF_PAIRS},
    **{key: [(xs,) for xs in LISTS] for key in ("items", "list_or_tuple")},
    "nested": [(o, W) for o in NESTED],
    "pairs_of_list": [([PAIRS[0]],), ([PAIRS[1], PAIRS[0]],), ([],)],
    "of_two": [(p, q) for p in PAIRS for q in PAIRS],
}


def same(found: Any, wanted: Any) -> bool:
    """Whether two results have one structure, order and class of containers, and values."""
    if wanted is None:
        return found is None
    if is_dict(wanted):
        return (
            type(found) is dict
            and [*found] == [*wanted]
            and all(same(found[key], wanted[key]) for key in wanted)
        )
    if is_sequence(wanted):
        return (
            type(found) is type(wanted)
            and len(found) == len(wanted)
            and all(map(same, found, wanted))
        )
    each = np.asarray(wanted)
    return np.asarray(found).dtype == each.dtype and np.allclose(found, each, rtol=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_numpy(name: str, programs: ModuleType) -> None:
    function = getattr(programs, name)
    kernel = psc.kernel(function)
    for args in (*CALLS[name], *CALLS[name]):  # each order of the keys twice, in turn
        assert same(kernel(*args), function(*args)), args
    assert same(PAIRS, ({"w": W, "b": B}, {"b": B, "w": W}, {"w": W, "b": B}))


WRITING = (
    "stores_item stores_into_array stores_into_array_of_copy adds_in_copy pops stores_in_helper "
    "updates appends stores_into_first extends"
).split()


@pytest.mark.parametrize("name", WRITING)
def test_nothing_of_the_caller_is_written(name: str, programs: ModuleType) -> None:
    with pytest.raises(psc.CheckError) as refused:
        psc.kernel(getattr(programs, name)).check()
    found = refused.value.diagnostics
    assert [each.code for each in found] == ["PSC205"]
    assert "belongs to the caller" in found[0].message()
    assert "writes=" not in (found[0].advice() or "")


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ({"w": W}, r"`p` of `plain` is \{'w': f64\[3\]\}, but Pair .*the key 'b' is missing"),
        ({"w": W, "b": B, "c": B}, "'c' is none of its keys"),
        ({"w": W, "B": B}, "the key 'b' is missing, 'B' is none of its keys"),
        ({"w": W, "b": B, 1: B}, "with the key 1, which is no string"),
        ({"w": W, "b": B[None]}, r'`p\["b"\]` of `plain` is f64\[1 3\]'),
        ({"w": W, "b": [B]}, r"is a list"),
        ({"w": W, "b": None}, r'`p\["b"\]` of `plain` is None'),
        ([W, B], "is a list"),
        ((W, B), "but Pair is declared"),
        (None, "but Pair is declared"),
    ],
)
def test_wrong_dicts_are_refused(argument: Any, text: str, programs: ModuleType) -> None:
    plain = programs.plain
    for _ in range(2):
        plain({"w": W, "b": B}, W)
        with pytest.raises(psc.ArgumentError, match=text):
            plain(argument, W)


class Keyed(dict[str, Any]):
    """A dict that may read as it likes."""


@pytest.mark.parametrize("argument", [Keyed(w=W, b=B), psc.tree])
def test_only_dicts_themselves_are_taken(argument: Any, programs: ModuleType) -> None:
    with pytest.raises(psc.ArgumentError):
        programs.plain(argument, W)


@pytest.mark.parametrize("argument", [(W, B), {"a": W}, W, [W, B[:1]], [W, [B]]])
def test_wrong_lists_are_refused(argument: Any, programs: ModuleType) -> None:
    listed = programs.listed
    assert float(listed([W, B])) == W.sum() + B.sum()
    with pytest.raises(psc.ArgumentError, match="list"):
        listed(argument)


def test_derivatives_are_dicts_in_the_order_of_the_argument(programs: ModuleType) -> None:
    in_order = programs.in_order
    kernel = psc.kernel(in_order)
    for p in PAIRS:
        found = psc.grad(kernel)(p)
        first, second = p
        assert same(found, {first: np.full(3, 3.0), second: np.ones(3)})
        value, tangent = psc.jvp(kernel, (p,), (PAIRS[0],))
        assert float(value) == in_order(p)
        assert float(tangent) == float(in_order(p))
        _, back = psc.vjp(kernel, p)
        assert same(back(1.0)[0], found)
    assert same(psc.grad(programs.listed)([W, B]), [np.ones(3), np.ones(3)])


def test_batches_of_dicts(programs: ModuleType) -> None:
    in_order = programs.in_order
    kernel = psc.kernel(in_order)
    for p in PAIRS:
        rows = {key: np.stack([each, 2 * each]) for key, each in p.items()}
        np.testing.assert_allclose(psc.vmap(kernel)(rows), [in_order(p), 2 * in_order(p)])
        some = psc.vmap(kernel, in_axes=({"b": None, "w": 0},))({**p, "w": rows["w"]})
        np.testing.assert_allclose(some, [in_order(p), in_order({**p, "w": 2 * W})])
    with pytest.raises(psc.CheckError, match="in_axes of p is"):
        psc.vmap(kernel, in_axes=((0, None),))({**PAIRS[0], "w": np.stack([W, W])})


def test_artefacts_have_the_orders_that_they_were_exported_for(programs: ModuleType) -> None:
    in_order = programs.in_order
    key, kernel = b"0123456789abcdef", psc.kernel(in_order)
    loaded = psc.load(kernel.export(None, (PAIRS[0],), (PAIRS[1],), key=key), trust=key)
    assert [float(loaded(p)) for p in PAIRS] == [in_order(p) for p in PAIRS]
    loaded = psc.load(kernel.export(None, (PAIRS[0],), key=key), trust=key)
    assert float(loaded(PAIRS[0])) == in_order(PAIRS[0])
    with pytest.raises(psc.ArgumentError, match="not exported for p with the keys 'b', 'w'"):
        loaded(PAIRS[1])
    swapped = psc.load(
        psc.kernel(programs.reversed_keys).export(None, (PAIRS[0],), key=key), trust=key
    )
    assert same(swapped(PAIRS[0]), programs.reversed_keys(PAIRS[0]))
    more = psc.load(psc.kernel(programs.items).export(None, ([W, B],), key=key), trust=key)
    assert same(more([W, B]), programs.items([W, B]))


def test_trees_outside_of_kernels() -> None:
    p, q = PAIRS[:2]
    assert [*map(id, psc.tree.leaves(p))] == [id(B), id(W)] == [*map(id, psc.tree.leaves(q))]
    assert same(psc.tree.map(np.add, q, p), {"b": 2 * B, "w": 2 * W})
    vector, back = psc.tree.ravel(p)
    assert same(back(vector), p)
    with pytest.raises(psc.ArgumentError, match="other keys than strings"):
        psc.tree.leaves({1: W})
