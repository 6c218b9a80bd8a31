"""`@typechecked` on ordinary functions of arrays: dtype, rank, sizes, one scope of names a call."""

from __future__ import annotations

import dataclasses
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import typeguard
from numpy.typing import NDArray
from typeguard import TypeCheckError, check_type, typechecked

import pscdsl as psc
from pscdsl import Float, Key, f32, f64, i32
from pscdsl._src.plugins.typeguard import lookup

pytestmark = pytest.mark.jaxlib


@pytest.fixture(autouse=True)
def plugged_in() -> Iterator[None]:
    """The plug-in is found by its entry point only where the package is installed."""
    typeguard.checker_lookup_functions.insert(0, lookup)
    yield
    typeguard.checker_lookup_functions.remove(lookup)


def ones(*shape: int, dtype: Any = np.float32) -> NDArray[Any]:
    return np.ones(shape, dtype)


@typechecked
def matmul(w: f32["n 5"], x: f32["n d"]) -> f32["5 d"]:
    return w.T @ x


@typechecked
def batched(x: Float["*batch n"], y: Float["*batch"]) -> Float["*batch n"]:
    return x + y[..., None]


@typechecked
def pair(x: f32["n"], y: f32["n"]) -> tuple[f32["n"], f32["n"]]:
    return x, y[:2]


def test_what_fits_passes() -> None:
    matmul(ones(3, 5), ones(3, 4))
    batched(ones(2, 3, 4), ones(2, 3))
    batched(ones(4, dtype=np.float64), np.float64(1))
    pair(ones(2), ones(2))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((ones(3, 4), ones(3, 4)), "is f32[3 4], but f32[n 5] is declared: axis 1 is 4, not 5"),
        (
            (ones(3, 5), ones(2, 4)),
            "is f32[2 4], but f32[n d] is declared: axis 0 is 2, but n is 3",
        ),
        ((ones(3), ones(2)), "is f32[3], but f32[n 5] is declared: the rank is 1, not 2"),
        (
            (ones(3, 5, dtype=np.float64), ones(3, 4)),
            "is f64[3 5], but f32[n 5] is declared: the dtype is f64, not f32",
        ),
        (([1.0], ones(3, 4)), "(list) is no array, but f32[n 5] is declared"),
        ((1.0, ones(3, 4)), "(float) is 1.0, but f32[n 5] is declared: the rank is 0, not 2"),
        ((np.array("a"), ones(3, 4)), "is an array of dtype <U1, but f32[n 5] is declared"),
    ],
)
def test_a_message_names_expected_and_found(arguments: tuple[Any, Any], problem: str) -> None:
    with pytest.raises(TypeCheckError) as caught:
        matmul(*arguments)
    assert str(caught.value).endswith(problem)


def test_groups_and_dtype_classes_are_one_thing_in_a_call() -> None:
    with pytest.raises(TypeCheckError, match=r"\*batch is \[3\], not \[2\]"):
        batched(ones(2, 4), ones(3))
    with pytest.raises(TypeCheckError, match=r"the rank is 0, not 1"):
        batched(ones(2, 4), np.float32(1))
    with pytest.raises(TypeCheckError, match=r"the dtype is f64, but Float is f32 here"):
        batched(ones(2, 4), ones(2, dtype=np.float64))
    with pytest.raises(TypeCheckError, match="the dtype is i32, not Float"):
        batched(ones(2, 4, dtype=np.int32), ones(2))


def test_the_result_is_in_the_scope_of_the_arguments() -> None:
    with pytest.raises(TypeCheckError) as caught:
        pair(ones(3), ones(3))
    assert str(caught.value) == (
        "item 1 of the return value (tuple) is f32[2], but f32[n] is declared: "
        "axis 0 is 2, but n is 3"
    )


def test_annotated_variables_are_in_the_same_scope() -> None:
    @typechecked
    def halves(x: f32["n"]) -> f32["n"]:
        y: f32["n"] = x[:1]
        return y

    halves(ones(1))
    with pytest.raises(TypeCheckError, match=r"value assigned to y .*axis 0 is 1, but n is 3"):
        halves(ones(3))


def test_expressions_are_compared_when_their_names_are_known() -> None:
    @typechecked
    def windows(x: f32["n+k-1"], w: f32["k"], n: psc.Static[int]) -> f32["n"]:
        return np.convolve(x, w, "valid")[:n]

    windows(ones(5), ones(2), 4)
    with pytest.raises(TypeCheckError) as caught:
        windows(ones(5), ones(2), 3)
    assert str(caught.value).endswith("this makes k+n-1 4, but f32[5] has 5 there")
    with pytest.raises(TypeCheckError, match=r'argument "n" .str. is not an instance of int'):
        windows(ones(5), ones(2), "4")  # type: ignore[arg-type]  # pyright: ignore

    @typechecked
    def shorter(x: f32["n"], y: f32["n-1"]) -> f32["n-1"]:
        return x[1:] + y

    with pytest.raises(TypeCheckError, match="axis 0 is 3, but n-1 is 2"):
        shorter(ones(3), ones(3))


def test_two_calls_share_nothing() -> None:
    for size in (1, 2, 3):
        batched(ones(size, 2), ones(size))
    check_type(ones(3), f32["n"])
    check_type(ones(4), f32["n"])
    check_type((ones(4), ones(4)), tuple[f32["n"], f32["n"]])
    with pytest.raises(TypeCheckError):
        check_type((ones(4), ones(3)), tuple[f32["n"], f32["n"]])


def test_recursion_has_a_scope_a_call() -> None:
    @typechecked
    def total(x: f32["n"]) -> f32:
        return x[0] if x.shape[0] == 1 else x[0] + total(x[1:])

    assert total(ones(5)) == 5


def test_threads_do_not_meet() -> None:
    problems: list[BaseException] = []

    def work(size: int) -> None:
        try:
            for _ in range(50):
                batched(ones(size, 2), ones(size))
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(size,)) for size in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_generators_keep_their_scope() -> None:
    @typechecked
    def rows(x: f32["n d"]) -> Iterator[f32["d"]]:
        yield x[0]
        yield x[:, 0]

    first, second = rows(ones(2, 3)), rows(ones(3, 3))
    next(first)
    assert [each.shape for each in second] == [(3,), (3,)]
    with pytest.raises(TypeCheckError, match="axis 0 is 2, but d is 3"):
        next(first)


def test_nothing_outlives_the_call() -> None:
    class Watched(np.ndarray[Any, Any]):
        pass

    gc.disable()
    try:
        array = ones(3, 2).view(Watched)
        watch = weakref.ref(array)
        batched(array, ones(3))
        del array
        assert watch() is None
    finally:
        gc.enable()


class Layer(psc.Record, dims="i o"):
    """A record with size parameters."""

    w: f32["o i"]
    b: f32["o"]


class Bias(psc.Record, dims="d"):
    """A record with one."""

    b: f32["d"]


class Network(psc.Record):
    """A record of records."""

    first: Layer["d h"]
    others: tuple[Layer["h h"], ...]


class Pair(NamedTuple):
    """A named tuple of arrays."""

    left: f32["n"]
    right: f32["n"]


@dataclasses.dataclass(frozen=True)
class Labelled:
    """A dataclass of an array and something else."""

    values: f64["n"]
    label: str = ""


class Window(psc.Record, dims="o i *window"):
    """A record with a group of sizes."""

    w: f32["o i *window"]
    b: f32["o"]


def test_records_are_checked_by_field() -> None:
    @typechecked
    def plain(layer: Layer, x: f32["i"]) -> f32["o"]:
        return layer.w @ x + layer.b

    plain(Layer(w=ones(2, 3), b=ones(2)), ones(3))
    with pytest.raises(TypeCheckError, match=r"field 'b' of .*Layer.* axis 0 is 3, but o is 2"):
        plain(Layer(w=ones(2, 3), b=ones(3)), ones(3))
    with pytest.raises(TypeCheckError, match="is not an instance of Layer"):
        plain(Bias(b=ones(2)), ones(3))  # type: ignore[arg-type]  # pyright: ignore

    @typechecked
    def others(pair: Pair, labelled: Labelled | None, key: Key["n"]) -> None:
        pass

    others(Pair(ones(2), ones(2)), None, ones(2, 2, dtype=np.uint32))
    others(Pair(ones(2), ones(2)), Labelled(ones(2, dtype=np.float64)), ones(2, 2, dtype=np.uint32))
    with pytest.raises(TypeCheckError, match="axis 0 is 3, but n is 2"):
        others(Pair(ones(2), ones(3)), None, ones(2, 2, dtype=np.uint32))
    with pytest.raises(TypeCheckError, match="axis 0 is 3, but n is 2"):
        others(Pair(ones(2), ones(2)), Labelled(ones(3, dtype=np.float64)), ones(1))


def test_records_are_applied_to_sizes() -> None:
    @typechecked
    def applied(layer: Layer["d 2*d"], bias: Bias["d"], x: f32["d"]) -> f32["2*d"]:
        return layer.w @ (x + bias.b) + layer.b

    applied(Layer(w=ones(4, 2), b=ones(4)), Bias(b=ones(2)), ones(2))
    with pytest.raises(TypeCheckError, match="axis 0 is 3, but d is 2"):
        applied(Layer(w=ones(4, 2), b=ones(4)), Bias(b=ones(3)), ones(2))
    with pytest.raises(TypeCheckError, match=r"this makes 2\*d 4, but f32\[3 2\] has 3 there"):
        applied(Layer(w=ones(3, 2), b=ones(3)), Bias(b=ones(2)), ones(2))

    @typechecked
    def nested(network: Network) -> None:
        pass

    hidden = Layer(w=ones(4, 4), b=ones(4))
    nested(Network(first=Layer(w=ones(4, 2), b=ones(4)), others=(hidden, hidden)))
    wrong = Layer(w=ones(3, 3), b=ones(3))
    with pytest.raises(TypeCheckError, match="axis 0 is 3, but h is 4"):
        nested(Network(first=Layer(w=ones(4, 2), b=ones(4)), others=(wrong,)))


def test_records_are_applied_to_groups_of_sizes() -> None:
    @typechecked
    def applied(window: Window["o 3 k 2*k"]) -> None:
        pass

    @typechecked
    def too_few(window: Window["o"]) -> None:
        pass

    applied(Window(w=ones(4, 3, 2, 4), b=ones(4)))
    with pytest.raises(TypeCheckError, match=r"axis 3 is 3, but 2\*k is 4"):
        applied(Window(w=ones(4, 3, 2, 3), b=ones(4)))
    with pytest.raises(TypeCheckError, match="the rank is 3, not 4"):
        applied(Window(w=ones(4, 3, 2), b=ones(4)))
    with pytest.raises(TypeCheckError, match=r"has the sizes o i \*window, not o"):
        too_few(Window(w=ones(4, 3), b=ones(4)))


def test_results_of_kernels_are_arrays() -> None:
    @psc.kernel
    def double(x: f32["n"]) -> f32["n"]:
        return x * 2

    result = double(ones(3))
    check_type(result, f32["3"])
    with pytest.raises(TypeCheckError, match=r"is f32\[3\], but i32\[n\] is declared"):
        check_type(result, i32["n"])


def test_the_plug_in_needs_no_runtime() -> None:
    program = (
        "import sys, pscdsl._src.plugins.typeguard; assert 'jaxlib' not in sys.modules;"
        "import typeguard; from typing import List\n"
        "assert typeguard.check_type(['x'], List['str']) == ['x']"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_what_typeguard_loads_is_not_the_package() -> None:
    code = (
        "import sys, pscdsl_typeguard as entry; assert entry.lookup(int, (), ()) is None;"
        "assert 'pscdsl' not in sys.modules; from pscdsl import f32;"
        "assert entry.lookup(f32['n'], (), ()) is not None;"
        "assert entry.lookup(int, (), ()) is None"
    )
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root / "pscdsl" / "entry"), str(root)])
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": paths})
