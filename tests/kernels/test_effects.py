"""Effects: what a kernel prints, records and checks while it runs."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32, i32
from pscdsl._src.analysis.show import show
from pscdsl._src.analysis.verify import verify
from pscdsl._src.ir.program import evaluate
from pscdsl._src.primitives.effects import effects_of, without_effects
from pscdsl._src.support.progress import BARS
from pscdsl._src.transforms.simplify import simplify

pytestmark = pytest.mark.jaxlib

X = np.array([1, -2, 3], np.float32)


def floats(values: Any) -> Any:
    return np.array(values, np.float32)


def ints(values: Any) -> Any:
    return np.array(values, np.int32)


@psc.kernel
def plain(x: f32["3"]) -> f32:
    psc.debug.print("x {x} mean {mean:.2f} of {n}", x=x, mean=np.mean(x), n=x.shape[0])
    psc.debug.print("no field")
    psc.debug.print("{} {} {name!r}", x[0], (x[1], {"a": x[2]}), name="text")
    return np.sum(x)


@psc.kernel
def loops(x: f32["3"]) -> f32:
    total: f32 = np.float32(0)
    for i in range(x.shape[0]):
        total += x[i]
        psc.debug.print("step {i}: {total}", i=i, total=total)

    def row(c: f32, r: f32) -> tuple[f32, None]:
        psc.debug.print("row {r}", r=r)
        return c + r, None

    c, _ = psc.scan(row, total, x)
    psc.debug.print("after {c}", c=c)
    return c


@psc.kernel
def branches(x: f32["3"]) -> f32:
    for i in range(x.shape[0]):
        if x[i] > 0:
            psc.debug.print("positive {i}", i=i)
    y = psc.cond(x[0] > 2, lambda: psc.debug.value("large", x[0]), lambda: x[1])
    if y < 0:
        psc.debug.print("y {y}", y=y)
        y = -y
    return y


@psc.kernel
def counted(x: f32["3"]) -> f32:
    steps = np.float32(0)
    while steps < x[0] * x[0]:
        psc.debug.print("{steps:.0f}", steps=steps)
        steps += 1
    psc.debug.print("left at {steps:.0f}", steps=steps)
    return x[0] * steps


def _helper(x: f32["n"]) -> f32:
    psc.debug.print("helper {x}", x=x)
    return np.sum(x)


@psc.kernel
def _callee(x: f32["n"]) -> f32:
    psc.debug.print("callee {x}", x=x)
    return np.sum(x)


@psc.kernel
def calls(x: f32["3"]) -> f32:
    psc.debug.print("first")
    a = _callee(x)
    psc.debug.print("second")
    return a + _callee(2 * x) + _helper(x[1:])


@psc.kernel
def batched(x: f32["3"]) -> f32:
    def member(r: f32) -> f32:
        return _helper(np.stack([r, r + 1]))

    return np.sum(psc.vmap(member)(x))


KERNELS: list[Any] = [plain, loops, branches, counted, calls, batched]


def lines(capfd: Any, call: Callable[[], Any]) -> list[str]:
    capfd.readouterr()
    np.asarray(call())
    printed: str = capfd.readouterr().out
    return printed.splitlines()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_program_prints_what_its_meaning_does(kernel: Any, capfd: Any) -> None:
    wanted = lines(capfd, lambda: evaluate(kernel.ir(), {}, [X])[0])
    assert wanted
    for _ in range(2):
        assert lines(capfd, lambda: kernel(X)) == wanted
    assert lines(capfd, lambda: kernel.compile()(X)) == wanted


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_effects_that_are_off_are_not_compiled(kernel: Any, capfd: Any) -> None:
    with psc.debug.off():
        text = kernel.lower().text()
        assert lines(capfd, lambda: kernel(X)) == []
    assert "callback" not in text
    program = simplify(without_effects(kernel.ir()))
    verify(program)
    assert not effects_of(program)
    assert lines(capfd, lambda: kernel(X)) != []


@psc.kernel
def wasteful(x: f32["3"]) -> f32:
    np.exp(x)  # psc: ignore[PSC809]

    def step(i: i32, total: f32) -> f32:
        np.exp(x)  # psc: ignore[PSC809]
        psc.debug.print("step {}", i)
        return total + np.sum(np.sin(x)) + np.sum(np.sin(x))

    return psc.fori_loop(0, 3, step, np.float32(0))


def test_programs_with_effects_are_simplified_around_them(capfd: Any) -> None:
    program = simplify(wasteful.ir())
    verify(program)
    text = show(program)
    assert "exp " not in text
    assert text.count("sin ") == 1
    assert lines(capfd, lambda: wasteful(X)) == ["step 0", "step 1", "step 2"]


@pytest.mark.parametrize("kernel", [plain, loops, branches, calls, batched])
def test_a_derivative_prints_what_its_function_does(kernel: Any, capfd: Any) -> None:
    wanted = lines(capfd, lambda: kernel(X))
    grad = psc.grad(kernel)
    verify(grad.ir())
    assert lines(capfd, lambda: grad(X)) == wanted
    assert lines(capfd, lambda: psc.jvp(kernel, (X,), (X,))[1]) == wanted


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_batch_prints_the_lines_of_its_members(kernel: Any, capfd: Any) -> None:
    members = np.array([[1, -2, 3], [-1, 2, 2], [2, 0, -3]], np.float32)
    wanted = Counter[str]()
    for x in members:
        wanted.update(lines(capfd, partial(kernel, x)))
    together = psc.vmap(kernel)
    verify(together.ir())
    found = Counter(lines(capfd, lambda: together(members)))
    for line in ("no field", "first", "second"):  # which do not depend on the member
        assert found.pop(line, 0) == bool(wanted.pop(line, 0))
    assert found == wanted


def test_a_batch_keeps_the_order_of_each_member(capfd: Any) -> None:
    members = np.array([[1, -2, 3], [2, 0, -3]], np.float32)
    found = lines(capfd, lambda: psc.vmap(counted)(members))
    assert found == ["0", "0", "1", "2", "3", "left at 1", "left at 4"]


@psc.kernel
def root(x: f32["n"]) -> f32["n"]:
    psc.check(x >= 0, "negative: {x}", x=x)
    return np.sqrt(x)


@psc.kernel
def doubled(x: f32["n"], steps: i32) -> f32["n"]:
    def body(i: i32, c: f32["n"]) -> f32["n"]:
        psc.check(c < 10, "too large at step {i}: {c}", i=i, c=c)
        return c * 2

    return psc.fori_loop(0, steps, body, x)


@psc.kernel
def guarded(x: f32) -> f32:
    if x > 0:
        psc.check(x < 10, "{x} is too large", x=x)
        x = np.log(x)
    return x


def test_a_check_that_holds_changes_nothing() -> None:
    np.testing.assert_array_equal(root(floats([4, 9])), [2, 3])
    np.testing.assert_array_equal(doubled(floats([1, 2]), np.int32(3)), [8, 16])


def test_a_check_that_fails_raises_and_the_next_call_does_not() -> None:
    with pytest.raises(psc.CheckFailed, match=r"negative: \[ 4. -1.\]\n.*test_effects.py:\d+: psc"):
        root(floats([4, -1]))
    np.testing.assert_array_equal(root(floats([4, 9])), [2, 3])
    with pytest.raises(psc.CheckFailed, match=r"too large at step 3: \[ 8. 16.\]"):
        doubled(floats([1, 2]), np.int32(6))


def test_only_the_first_failure_is_raised() -> None:
    @psc.kernel
    def both(x: f32) -> f32:
        psc.check(x > 0, "first")
        psc.check(x > 1, "second")
        return x

    with pytest.raises(psc.CheckFailed, match="first"):
        both(np.float32(-1))


def test_a_check_in_a_batch_sees_the_members_that_get_there() -> None:
    many = psc.vmap(guarded)
    np.testing.assert_allclose(many(floats([1, -20])), [0, -20])
    with pytest.raises(psc.CheckFailed, match=r"20.0 is too large"):
        many(floats([1, 20, -1]))
    with pytest.raises(psc.CheckFailed, match="negative"):
        psc.vmap(root)(floats([[1, 2], [3, -3]]))


def test_a_check_of_what_is_known_while_checking() -> None:
    @psc.kernel
    def two(x: f32["n"]) -> f32["n"]:
        psc.check(x.shape[0] > 1, "n = {n}", n=x.shape[0])
        return x

    assert two(floats([1, 2])).shape == (2,)
    with pytest.raises(psc.CheckFailed, match="n = 1"):
        two(floats([1]))


def test_threads_get_their_own_failures() -> None:
    failed: list[bool] = []

    def call(x: float) -> None:
        try:
            root(np.full(3, x, np.float32))
        except psc.CheckFailed:
            failed.append(x < 0)
        else:
            failed.append(x >= 0)

    signs = [(-1.0) ** k for k in range(40)]
    threads = [threading.Thread(target=call, args=(x,)) for x in signs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == [True] * 40


def test_recorded_values() -> None:
    @psc.kernel
    def norm(x: f32["n"]) -> f32:
        def step(c: f32, r: f32) -> tuple[f32, None]:
            return c + psc.debug.value("square", r * r), None

        total, _ = psc.scan(step, np.float32(0), x)
        return np.sqrt(psc.debug.value("both", (total, {"x": x}))[0])

    x = floats([3, 4])
    found = norm.inspect(x)
    assert found.result == norm(x) == 5
    assert found.values["square"] == [9, 16]
    ((total, fields),) = found.values["both"]
    assert total == 25
    np.testing.assert_array_equal(fields["x"], x)
    assert "callback" not in norm.lower(n=2).text()


@psc.kernel
def normed(x: f32["n"]) -> f32["n"]:
    length = np.sqrt(np.sum(x * x))
    return np.where(x > 5, x, x / length)


@psc.kernel
def hidden(x: f32["n"]) -> f32["n"]:
    return np.where(x > 0, np.log(x), 0)


@psc.kernel
def normed_sum(x: f32["n"]) -> f32:
    return np.sum(normed(x))


@psc.kernel
def stepping(x: f32["n"]) -> f32:
    def step(c: f32, r: f32) -> tuple[f32, f32]:
        return c - 1, np.log(c - r)

    _, rows = psc.scan(step, np.float32(3), x)
    return np.sum(rows)


@pytest.mark.parametrize(
    ("kernel", "x", "line"),
    [
        (normed, [0, 0], "x / length"),
        (stepping, [0, 0, 5], "np.log(c - r)"),
        (psc.grad(normed_sum), [0, 0], "x / length"),
    ],
)
def test_nan_is_found_where_it_is_made(kernel: Any, x: list[float], line: str) -> None:
    assert np.isnan(np.asarray(kernel(floats(x)))).any()
    with psc.debug.checks("nan"), pytest.raises(psc.CheckFailed) as caught:
        kernel(floats(x))
    text = str(caught.value)
    assert line in text
    assert "test_effects.py" in text
    assert np.isnan(np.asarray(kernel(floats(x)))).any()


def test_nan_that_no_result_has_is_none() -> None:
    with psc.debug.checks("nan"):
        np.testing.assert_allclose(hidden(floats([-1, 1])), [0, 0])


def test_nan_of_an_argument() -> None:
    with psc.debug.checks(), pytest.raises(psc.CheckFailed, match="the argument `x` has it"):
        normed(floats([np.nan]))


def test_infinities() -> None:
    @psc.kernel
    def inverse(x: f32["n"]) -> f32["n"]:
        return 1 / x

    with psc.debug.checks("inf"), pytest.raises(psc.CheckFailed, match="an infinity"):
        inverse(floats([0, 1]))
    assert np.isinf(np.asarray(inverse(floats([0])))).all()


@psc.kernel
def taken(x: f32["n"], places: i32["m"]) -> f32["m"]:
    assert x.shape[0] > 0
    return x[places]


@psc.kernel
def one_by_one(x: f32["n"], places: i32["m"]) -> f32["m"]:
    assert x.shape[0] > 0

    def member(i: i32) -> f32:
        return x[i]

    return psc.vmap(member)(places)


@psc.kernel
def stored(x: f32["n"], places: i32["m"]) -> f32["m"]:
    assert x.shape[0] > 0
    y = x.copy()
    for k in range(places.shape[0]):
        y[places[k]] = 1
    return y[places]


@psc.kernel
def sliced(x: f32["n"], places: i32["m"]) -> f32["2"]:
    assert x.shape[0] > 1
    assert places.shape[0] > 0
    return psc.dynamic_slice(x, (np.sum(places),), (2,))


@pytest.mark.parametrize(
    ("kernel", "good", "bad", "found"),
    [
        (taken, [0, 3, -1, -4], [0, 4], "index 4 along axis 0 is not from 0 to 3"),
        (taken, [3], [-5], "index -1 along axis 0 is not from 0 to 3"),
        (one_by_one, [0, 3], [1, 9], "index 9 along axis 0 is not from 0 to 3"),
        (stored, [0, 3], [1, 4], "index 4 along axis 0 is not from 0 to 3"),
        (sliced, [1, 1], [1, 2], "index 3 along axis 0 is not from 0 to 2"),
    ],
)
def test_indices_out_of_range(kernel: Any, good: list[int], bad: list[int], found: str) -> None:
    x = np.arange(4, dtype=np.float32)
    before = np.asarray(kernel(x, ints(bad)))
    with psc.debug.checks("index"):
        kernel(x, ints(good))
        with pytest.raises(psc.CheckFailed, match=found):
            kernel(x, ints(bad))
    np.testing.assert_array_equal(kernel(x, ints(bad)), before)


def test_functions_outside_of_kernels(capfd: Any) -> None:
    assert lines(capfd, lambda: psc.debug.print("{x:.2f} {}", 3, x=np.float32(1))) == ["1.00 3"]
    assert psc.debug.value("x", 1) == 1
    psc.check(np.array([True, True]))
    with pytest.raises(psc.CheckFailed, match="not 2"):
        psc.check(np.bool_(False), "not {x}", x=2)

    def body(c: f32, r: f32) -> tuple[f32, None]:
        psc.debug.print("r {r}", r=r)
        return c + r, None

    assert lines(capfd, lambda: psc.scan(body, np.float32(0), X)[0]) == ["r 1.0", "r -2.0", "r 3.0"]


def test_an_artefact_has_no_effects(tmp_path: Path, capfd: Any) -> None:
    plain.export(tmp_path / "plain.psc")
    loaded = psc.load(tmp_path / "plain.psc")
    assert lines(capfd, lambda: loaded(X)) == []
    assert loaded(X) == plain(X)


PROGRAM = """\
import sys
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.kernel
def f(x: f32["n"]) -> f32:
    psc.debug.print("inside {x}", x=x)
    psc.check(x > 0, "not positive")
    return np.sum(np.log(x))


if __name__ == "__main__":
    try:
        print(f(np.array([float(x) for x in sys.argv[1:]], np.float32)))
    except psc.CheckFailed as error:
        print("failed:", str(error).splitlines()[0])
"""


def test_processes_that_find_programs_on_disk(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)

    def run(checks: str, *args: str) -> list[str]:
        environment = {
            **os.environ,
            "PSCDSL_CACHE": str(tmp_path / "cache"),
            "PSCDSL_CHECKS": checks,
        }
        done = subprocess.run(
            [sys.executable, str(file), *args],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    for _ in range(2):
        assert run("off", "1") == ["0.0"]
        assert run("", "1") == ["inside [1.]", "0.0"]
        assert run("", "-1") == ["inside [-1.]", "failed: not positive"]
        assert run("nan", "-1") == ["inside [-1.]", "failed: not positive"]
        assert run("off", "-1") == ["nan"]


def test_an_unknown_check_is_refused() -> None:
    with (
        pytest.raises(ValueError, match="takes nan, inf, index or off, not 'zero'"),
        psc.debug.checks(
            "zero"  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        ),
    ):
        pass


def test_a_program_as_text() -> None:
    text = str(plain.ir())
    assert "\n  print 'no field'\n" in text
    assert "      record 'large' " in str(branches.ir())


def test_interpretation_shows_each_step(capfd: Any) -> None:
    steps: list[Any] = []
    for kernel in KERNELS:
        steps.clear()
        wanted = lines(capfd, lambda kernel=kernel: kernel(X))  # type: ignore[misc]
        found = lines(capfd, lambda kernel=kernel: kernel.interpret(X, watcher=steps.append))  # type: ignore[misc]
        assert found == wanted
        np.testing.assert_allclose(kernel.interpret(X), kernel(X), rtol=1e-6)
        assert all("test_effects.py" in step.source for step in steps)
        assert "print" in {step.operation.partition(" ")[0] for step in steps}


def test_interpretation_stops_at_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[Any] = []

    def stop() -> None:
        stops.append(inspect.stack()[1].frame.f_locals["step"])

    monkeypatch.setattr(sys, "breakpointhook", stop)
    line = next(each.line for each in _steps(normed) if "divide" in each.operation)
    normed.interpret(floats([3, 4]), breakpoints=[line])
    assert stops
    assert {each.line for each in stops} == {line}


def _steps(kernel: Any) -> list[Any]:
    steps: list[Any] = []
    kernel.interpret(floats([3, 4]), watcher=steps.append)
    return steps


def test_a_bar_is_drawn_about_a_hundred_times(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[str, int, int]] = []

    def draw(label: str, done: int, total: int) -> None:
        drawn.append((label, done, total))

    monkeypatch.setattr(BARS, "update", draw)

    @psc.kernel
    def halved(x: f32, steps: i32) -> f32:
        def body(i: i32, x: f32) -> f32:
            psc.progress(i, steps, "halving")
            return x / 2

        return psc.fori_loop(0, steps, body, x)

    halved(np.float32(1), np.int32(1234))
    assert drawn[0] == ("halving", 1, 1234)
    assert drawn[-1] == ("halving", 1234, 1234)
    assert 100 <= len(drawn) <= 110
    drawn.clear()
    halved(np.float32(1), np.int32(3))
    assert drawn == [("halving", k, 3) for k in (1, 2, 3)]


def test_a_profile_has_the_lines_of_the_source(tmp_path: Path) -> None:
    @psc.kernel
    def heavy(x: f32["n n"]) -> f32["n n"]:
        y = x @ x
        return np.sort(y, axis=0)

    x = np.ones((200, 200), np.float32)
    heavy(x)
    with psc.profile(tmp_path) as found:
        for _ in range(3):
            np.asarray(heavy(x))
    texts = {str(line): line for line in found.seconds}
    (product,) = [line for text, line in texts.items() if "y = x @ x" in text]
    assert found.seconds[product] > 0
    assert found.calls[product] >= 3
    assert found.bytes[product] >= 3 * x.nbytes
    assert "y = x @ x" in found.table()
    assert list(tmp_path.rglob("*.xplane.pb"))
    assert list(tmp_path.rglob("*.trace.json.gz"))


def test_stores_before_and_after(capfd: Any) -> None:
    @psc.kernel(writes=("x",))
    def store(x: f32["n"]) -> None:
        assert x.shape[0] > 0
        psc.debug.print("{x}", x=x)
        x[0] = 5
        psc.check(x[0] == 5)
        psc.debug.print("{x}", x=x)

    x = floats([1, 2])
    assert lines(capfd, lambda: store(x)) == ["[1. 2.]", "[5. 2.]"]


def test_lengths_that_depend_on_values(capfd: Any) -> None:
    @psc.kernel
    def first(x: f32["n"], k: i32) -> f32:
        total = np.sum(x[:k])
        psc.debug.print("{total} of {k}", total=total, k=k)
        return total

    assert lines(capfd, lambda: first(floats([1, 2, 3]), np.int32(2))) == ["3.0 of 2"]
