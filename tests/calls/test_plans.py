"""Calls with arguments of known classes: each call looks at what may change from one to another."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import struct
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import c64, f32, f64, i8, i64
from pscdsl._src.xla.device import CPU
from pscdsl._src.xla.plans import READ_BYTES, SLOW

pytestmark = [pytest.mark.jaxlib, pytest.mark.quick_code]

TIMES = 12
"""Calls after which arguments that do not change are held."""


class Numbers(psc.Record):
    """Numbers of two dtypes."""

    a: f32
    b: f32
    n: i64


@psc.kernel
def pair(a: f32, b: f32) -> tuple[f32, f32]:
    return a, b


@psc.kernel
def same(x: f32) -> f32:
    return x


@psc.kernel
def scaled(x: f32["n"], by: f32) -> f32["n"]:
    return x * by


@psc.kernel
def doubled(x: f32["n m"]) -> f32["n m"]:
    return x + x


@psc.kernel
def small(a: i8, b: i8) -> tuple[i8, i8]:
    return a, b


@psc.kernel
def negated(x: psc.bool_["n"]) -> psc.bool_["n"]:
    return ~x


@psc.kernel
def raised(x: f32["n"], times: psc.Static[int]) -> f32["n"]:
    return x + times


@psc.kernel
def together(
    x: f32["n"], of: Numbers, c: f64, z: c64, flag: psc.bool_
) -> tuple[f32["n"], i64, f64, c64, psc.bool_]:
    return x * of.a + of.b, of.n, c, z, flag


@psc.kernel
def six(a: f32, b: f32, c: f32, d: f32, n: i64, m: i64) -> tuple[f32, f32, f32, f32, i64, i64]:
    return a, b, c, d, n, m


def bits(x: Any) -> bytes:
    return np.asarray(x).tobytes()


def is_planned(kernel: Any) -> bool:
    """Whether calls of the last kind take no way through Python's look-ups."""
    return any(kernel.dispatcher._plans._chains.values())


@pytest.mark.parametrize("held", [1, TIMES])
def test_numbers_are_rounded_as_numpy_rounds_them(held: int) -> None:
    rng = np.random.default_rng(0)
    numbers: list[Any] = [0.0, -0.0, 1e-45, -1e-40, float("inf"), -float("inf"), 3.4028234e38]
    numbers += [16777217, -(2**62) - 1, 2**53 + 1, 2**100 + 3**50, True]
    numbers += rng.standard_normal(20).tolist()
    numbers += [int(n) for n in rng.integers(-(2**62), 2**62, 20)]
    for one, other in zip(numbers, numbers[::-1], strict=True):
        found = pair(one, other)
        for _ in range(held - 1):
            found = pair(one, other)
        wanted = np.asarray(one, np.float32), np.asarray(other, np.float32)
        assert [*map(bits, found)] == [*map(bits, wanted)], (one, other)
        single = same(one)
        for _ in range(held - 1):
            single = same(one)
        assert bits(single) == bits(wanted[0]), one
    assert is_planned(pair)
    assert is_planned(same)


def test_the_bits_of_nan_remain() -> None:
    words = [0x7FC00000, 0x7FC12345, 0xFFC00001]
    for _ in range(TIMES):
        for word in words:
            scalar = np.array(word, np.uint32).view(np.float32)[()]
            number = struct.unpack("d", struct.pack("Q", (word & 0x7FFFFF) << 29 | 0x7FF << 52))[0]
            assert bits(same(scalar)) == bits(scalar)
            for given in (scalar, number):
                first, second = pair(given, given)
                assert bits(first) == bits(second)
                assert bits(first) == bits(np.asarray(given, np.float32))


@pytest.mark.parametrize("times", [0, 2, TIMES])
def test_numbers_that_do_not_fit_are_refused(times: int) -> None:
    for _ in range(times):
        small(1, 2)
        pair(1.0, 2.0)
        same(1.0)
    for wrong in (128, -129, 2**70):
        with pytest.raises(psc.ArgumentError, match="does not fit into i8"):
            small(1, wrong)
    for large in (1e39, -3.40282357e38, 10**400):
        with pytest.raises(psc.ArgumentError):
            pair(1.0, large)
        with pytest.raises(psc.ArgumentError):
            same(large)
    assert [*map(int, small(127, -128))] == [127, -128]


def test_zeros_of_both_signs_are_told_apart() -> None:
    for _ in range(TIMES):
        assert bits(same(0.0)) == bits(np.float32(0))
    assert bits(same(-0.0)) == bits(np.float32(-0.0))
    assert bits(pair(0.0, -0.0)[1]) == bits(np.float32(-0.0))


def test_arrays_that_are_changed_in_place_are_read_again() -> None:
    x = np.arange(4, dtype=np.float32)
    for _ in range(TIMES):
        assert np.asarray(scaled(x, 2.0)).tolist() == [0, 2, 4, 6]
    for number in range(200):
        x[1] = number
        assert np.asarray(scaled(x, 2.0)).tolist() == [0, 2 * number, 4, 6]
        assert np.asarray(scaled(x, 3.0))[1] == 3 * number


def test_shapes_with_the_same_bytes_are_told_apart() -> None:
    x = np.arange(6, dtype=np.float32)
    for shape in [(2, 3)] * TIMES + [(3, 2), (6, 1), (2, 3), (1, 6)]:
        assert np.asarray(doubled(x.reshape(shape))).shape == shape
    assert np.asarray(doubled(x.reshape(2, 3).T)).tolist() == (2 * x.reshape(2, 3).T).tolist()


def test_dtypes_with_the_same_bytes_are_told_apart() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for _ in range(TIMES):
        doubled(x)
    swapped = x.astype(">f4")
    for _ in range(3):
        assert np.asarray(doubled(swapped)).tolist() == (2 * x).tolist()
        with pytest.raises(psc.ArgumentError):
            doubled(x.view(np.int32))
        with pytest.raises(psc.ArgumentError):
            doubled(np.ma.masked_array(x, x > 1))


def test_truth_values_of_other_bytes() -> None:
    plain = np.array([True, False, True])
    odd = np.array([2, 0, 255], np.uint8).view(np.bool_)
    for _ in range(TIMES):
        for x in (plain, plain, odd):
            assert np.asarray(negated(x)).tolist() == [False, True, False]


def test_static_values_are_told_apart() -> None:
    x = np.zeros(2, np.float32)
    for times in [1, 2, 1, *range(20), 1]:
        assert np.asarray(raised(x, times)).tolist() == [times, times]
    with pytest.raises(psc.ArgumentError):
        raised(x, "1")  # type: ignore[arg-type]


def test_records_with_numbers_of_several_dtypes() -> None:
    x = np.ones(2, np.float32)
    for turn in [0] * TIMES + [*range(TIMES)]:
        found = together(x, Numbers(turn + 0.5, 2, turn), turn / 3, turn + 1j, turn % 2 == 0)
        assert np.asarray(found[0]).tolist() == [turn + 2.5] * 2
        assert [int(found[1]), float(found[2])] == [turn, turn / 3]
        assert [complex(found[3]), bool(found[4])] == [turn + 1j, turn % 2 == 0]
    assert is_planned(together)


def test_one_program_takes_numbers_from_the_host_and_the_device() -> None:
    made = psc.kernel(six.__wrapped__)  # type: ignore[attr-defined]
    host: list[Any] = [0.5, np.float32(1.5), 2, 3.5, 4, np.int64(5)]
    device = [
        CPU.placement.put(np.asarray(each, t)) for each, t in zip(host, "ffffqq", strict=True)
    ]
    arrays = [np.asarray(each, t) for each, t in zip(host, "ffffqq", strict=True)]
    for _ in range(3):
        for given in (host, device, arrays, [*host[:3], *device[3:]], [*device[:2], *arrays[2:]]):
            assert [float(each) for each in made(*given)] == [0.5, 1.5, 2, 3.5, 4, 5]
            found = made(**dict(zip("mndcba", given[::-1], strict=False)))
            assert [float(each) for each in found] == [0.5, 1.5, 2, 3.5, 4, 5]
    assert made.cache_info().misses + made.cache_info().disk_hits == 1
    for wrong in (np.ones(1, np.float32), CPU.placement.put(np.ones(1, np.float32)), np.float64(1)):
        with pytest.raises(psc.ArgumentError):
            made(wrong, *host[1:])


def test_numbers_travel_in_one_array_for_each_dtype() -> None:
    made = psc.kernel(six.__wrapped__)  # type: ignore[attr-defined]
    made(1.0, 2.0, 3.0, 4.0, 5, 6)
    (program,) = made.dispatcher.programs
    assert program.executable.groups == ((0, 1, 2, 3), (4, 5))
    assert [(each.shape, each.dtype.name) for each in program.executable.taken] == [
        ((4,), "float32"),
        ((2,), "int64"),
    ]


def test_a_program_with_groups_comes_from_disk(tmp_path: Path) -> None:
    file = tmp_path / "stored_groups.py"
    file.write_text(
        "import pscdsl as psc\nfrom pscdsl import f32\n\n"
        "@psc.kernel\ndef less(a: f32, b: f32, c: f32) -> f32:\n    return a - b * c\n\n"
        "for n in range(5):\n    assert float(less(n, 2.0, 3.0)) == n - 6\n"
        "print(less.cache_info().misses, less.cache_info().disk_hits)\n"
    )
    environment = {"PSCDSL_CACHE": str(tmp_path / "cache"), "PYTHONPATH": ":".join(sys.path)}
    runs = [
        subprocess.run(
            [sys.executable, str(file)], env=environment, text=True, capture_output=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert runs == [["1", "0"], ["0", "1"]]


def test_a_program_that_was_compiled_ahead_takes_numbers_alone() -> None:
    made = psc.kernel(six.__wrapped__)  # type: ignore[attr-defined]
    made.compile()
    for n in range(TIMES):
        assert [float(each) for each in made(n, 1, 2, 3, 4, 5)] == [n, 1, 2, 3, 4, 5]
    assert made.cache_info().entries == 1


@pytest.mark.parametrize("offset", [0, 4, 16])
def test_large_arrays_can_be_written_after_the_call(offset: int) -> None:
    count = READ_BYTES
    room = np.zeros(count + 64, np.float32)
    start = (-room.ctypes.data % 64 + offset) // 4
    x = room[start : start + count].reshape(256, -1)
    for number in range(TIMES):
        x[:] = number
        found = doubled(x)
        x[:] = -1
        assert (np.asarray(found) == 2 * number).all()
    assert is_planned(doubled)


def test_threads_with_numbers_of_their_own() -> None:
    wrong: list[Any] = []

    def work(number: int) -> None:
        x = np.full(3, number, np.float32)
        for turn in range(300):
            by = number if turn % 50 else turn
            if np.asarray(scaled(x, by)).tolist() != [number * by] * 3:
                wrong.append((number, turn))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_arguments_are_not_kept_alive() -> None:
    x = np.zeros(1 << 16, np.float32)
    for _ in range(TIMES):
        scaled(x, 1.5)
    found = weakref.ref(x)
    del x
    doubled(np.zeros((2, 2), np.float32))  # jaxlib releases memory at its next call
    assert found() is None


def test_a_plan_says_which_arguments_it_does_not_fit() -> None:
    made = psc.kernel(same.__wrapped__)  # type: ignore[attr-defined]
    for _ in range(3):
        made(1.0)
    (chain,) = made.dispatcher._plans._chains.values()
    assert chain[0]((1e39,)) is SLOW
