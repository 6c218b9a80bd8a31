"""Exported kernels: what comes back is what was exported, and calls are checked as before."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyrsistent
import pytest

import pscdsl as psc
from pscdsl import Float, Key, Static, f32, f64, i32
from pscdsl.cli import main
from pscdsl.kernel import Kernel
from pscdsl.narrowing import is_pmap, is_pvector, is_tuple
from pscdsl.record_layouts import stand_in_class
from pscdsl.typing.trees import RecordName

T = TypeVar("T", bound=psc.Tree[Float])
ROOT = str(Path(__file__).parent.parent)


class Params(psc.Record):
    """A cell."""

    w: f32["h h"]
    b: f32["h"]


class Pair(NamedTuple):
    """A NamedTuple."""

    first: f32["n"]
    second: i32


@dataclass(frozen=True)
class Box:
    """A dataclass."""

    inside: f64["n"]
    kept_: Pair


class Layer(pyrsistent.PRecord):  # type: ignore[type-arg]
    """A record of pyrsistent."""

    v = pyrsistent.field(f32["n"])


@psc.kernel
def rnn(p: Params, xs: f32["t h"], scale: f32 = 2.0) -> f32["t h"]:
    assert xs.shape[0] % 2 == 0

    def step(h: Any, x: Any) -> Any:
        h = np.tanh(p.w @ h + p.b + x) * scale
        return h, h

    _, hs = psc.scan(step, np.zeros_like(xs[0]), xs)
    return hs


@psc.kernel
def loss(p: Params, xs: f32["t h"]) -> f32:
    assert xs.shape[0] % 2 == 0
    return np.sum(rnn(p, xs, 1.0) ** 2)


P = Params(np.eye(3, dtype=np.float32), np.ones(3, np.float32))
X = np.arange(12, dtype=np.float32).reshape(4, 3) / 10


def loaded(kernel: Kernel[..., Any], *variants: Any, **sizes: Any) -> psc.Loaded:
    return psc.load(kernel.export(None, *variants, **sizes))


def leaves(tree: Any) -> list[Any]:
    if tree is None:
        return []
    if is_pmap(tree):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if is_tuple(tree) or is_pvector(tree):
        return [leaf for each in tree for leaf in leaves(each)]
    names = getattr(tree, "__dataclass_fields__", None)
    if names is not None:
        return [leaf for name in names for leaf in leaves(getattr(tree, name))]
    return [np.asarray(tree)]


def same(kernel: Kernel[..., Any], *args: Any, exact: bool = False, **options: Any) -> psc.Loaded:
    """Export a kernel for these arguments, and compare what both give."""
    found = loaded(kernel, args, **options)
    for got, wanted in zip(leaves(found(*args)), leaves(kernel(*args)), strict=True):
        assert got.dtype == wanted.dtype
        assert got.shape == wanted.shape
        if exact or not np.issubdtype(got.dtype, np.inexact):
            np.testing.assert_array_equal(got, wanted)
        else:
            np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=1e-5)
    return found


# What comes back.


def test_a_loaded_kernel_does_what_the_kernel_does(tmp_path: Path) -> None:
    path = tmp_path / "rnn.psca"
    data = rnn.export(path, {"t": 4}, {"t": 6}, h=3)
    assert path.read_bytes() == data
    (tmp_path / "any").touch()
    modes = {each.stat().st_mode for each in tmp_path.iterdir()}
    assert len(modes) == 1, "whoever may read any file may load this one"
    found = psc.load(path)
    np.testing.assert_array_equal(found(P, X), rnn(P, X))
    np.testing.assert_array_equal(found(P, xs=X, scale=1.0), rnn(P, X, 1.0))
    long = np.concatenate([X, X[:2]])
    np.testing.assert_array_equal(found(P, long), rnn(P, long))
    assert found.sizes == ({"h": 3, "t": 4}, {"h": 3, "t": 6})
    assert str(found.signature) == str(rnn.signature)
    assert found.signature.parameters == rnn.signature.parameters
    assert found.preconditions == ("t % 2 == 0",)
    assert found.needs == ()
    assert found.name == "rnn"
    assert found.version == psc.__version__


def test_what_does_not_fit_is_refused_as_by_the_kernel() -> None:
    found = loaded(rnn, {"t": 4}, {"t": 6}, h=3)
    calls: list[Callable[[Any], Any]] = [
        lambda f: f(P, X.astype(np.float64)),
        lambda f: f(P, X[:3]),
        lambda f: f(P, X[:, :2]),
        lambda f: f(P, X[0]),
        lambda f: f(X, X),
        lambda f: f((P.w, P.b), X),
        lambda f: f(Pair(P.w, P.b), X),
        lambda f: f(Params(P.w, P.w), X),
        lambda f: f(P, [1.0]),
        lambda f: f(P, X, 1j),
        lambda f: f(P),
        lambda f: f(P, X, X=1),
    ]
    for call in calls:
        with pytest.raises(psc.ArgumentError) as wanted:
            call(rnn)
        with pytest.raises(psc.ArgumentError) as got:
            call(found)
        assert str(got.value) == str(wanted.value)
    with pytest.raises(psc.ArgumentError, match=r"not exported for h=3, t=8.*t=4; h=3, t=6"):
        found(P, np.concatenate([X, X]))


def test_sizes_that_break_a_precondition_are_not_exported() -> None:
    with pytest.raises(psc.ArgumentError, match=r"needs t % 2 == 0"):
        rnn.export(None, t=3, h=2)
    with pytest.raises(psc.ArgumentError, match="sizes h, t; given are: t"):
        rnn.export(None, t=4)
    with pytest.raises(ValueError, match="'any' or 'cpu', not 'tpu'"):
        rnn.export(None, t=4, h=2, target="tpu")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not sizes by name"):
        rnn.export(None, 4, h=2)  # type: ignore[arg-type]


def test_records_come_back_as_named_tuples_or_as_their_class() -> None:
    data = psc.grad(loss).export(None, t=4, h=3)
    wanted = psc.grad(loss)(P, X)
    plain = psc.load(data)(P, X)
    assert type(plain).__name__ == "Params"
    assert plain._fields == ("w", "b")
    np.testing.assert_array_equal(plain.w, wanted.w)
    again = psc.load(data)(psc.load(data).records["Params"](P.w, P.b), X)
    np.testing.assert_array_equal(again.b, wanted.b)
    known = psc.load(data, types=[Pair, Params])
    assert type(known(P, X)) is Params
    np.testing.assert_array_equal(known(known(P, X), X).w, psc.grad(loss)(wanted, X).w)


@psc.kernel
def trees(  # type: ignore[no-untyped-def]
    box: Box,
    layer: Layer,
    items: tuple[f64["n"], ...],
    named: pyrsistent.PMap[str, f32],
    many: pyrsistent.PVector[i32],
    maybe: f32["n"] | None,
):
    total = sum(items, np.zeros_like(box.inside))
    first = box.kept_.first if maybe is None else maybe
    return Box(total, Pair(first, box.kept_.second)), layer, named, many, None, maybe


@pytest.mark.parametrize("maybe", [None, np.array([5, 6], np.float32)])
def test_trees_of_every_kind(maybe: Any) -> None:
    box = Box(np.ones(2), Pair(np.array([1, 2], np.float32), np.int32(3)))
    args = (
        box,
        Layer(v=np.array([1, 2], np.float32)),
        (np.ones(2), np.ones(2)),
        pyrsistent.pmap({"a": np.float32(1), "b": np.float32(2)}),
        pyrsistent.pvector([np.int32(1)]),
        maybe,
    )
    found = same(trees, *args)
    got = found(*args)
    assert type(got[0]).__name__ == "Box"
    assert got[0].kept_.second == 3
    assert isinstance(got[2], pyrsistent.PMap)
    assert isinstance(got[3], pyrsistent.PVector)
    again = psc.load(trees.export(None, args), types=[Box, Pair, Layer])
    assert type(again(*args)[0]) is Box
    assert type(again(*args)[1]) is Layer
    with pytest.raises(psc.ArgumentError, match=r"was not exported for .*len\(items\)=1"):
        found(*args[:2], (np.ones(2),), *args[3:])


def test_fields_that_no_named_tuple_has() -> None:
    made = stand_in_class(RecordName("State", "somewhere"), ["_old", "new"])
    assert made.kind == "dataclass"
    assert made.constructor(1, 2)._old == 1


@psc.kernel
def halved(t: T) -> T:
    return psc.tree.map(lambda x: x / 2, t)


def test_kernels_over_any_tree() -> None:
    data = psc.load(halved.export(None, (P,), ((X, X[0]),)))
    np.testing.assert_array_equal(data((X, X[0]))[1], X[0] / 2)
    np.testing.assert_array_equal(data(P).w, P.w / 2)
    assert type(psc.load(halved.export(None, (P,)), types=[Params])(P)) is Params
    with pytest.raises(psc.ArgumentError, match="halved was not exported for"):
        data((X, X, X))


@psc.kernel
def raised(x: Float["*batch n"], power: Static[int], name: Static[str] = "a") -> Float["*batch n"]:
    return x**power + (1 if name == "a" else 2)


def test_what_a_signature_leaves_open_is_exported_as_chosen() -> None:
    two, three = np.full((2, 3), 2.0), np.full(3, 3, np.float32)
    found = loaded(raised, (two, 2), (three, 3, "b"))
    np.testing.assert_array_equal(found(two, 2), two**2 + 1)
    np.testing.assert_array_equal(found(three, 3, "b"), three**3 + 2)
    np.testing.assert_array_equal(found(three, power=3, name="b"), three**3 + 2)
    for args in ((two, 3), (three, 3), (three, 3, "c"), (two.astype(np.float32), 2)):
        with pytest.raises(psc.ArgumentError, match=r"raised was not exported for .*it was for: "):
            found(*args)
    named = loaded(raised, power=4, name="a", batch=0, Float=f64, n=2)
    np.testing.assert_array_equal(named(np.array([1.0, 2.0]), 4), [2, 17])


class Kind:
    """Something static that is no data."""


@psc.kernel
def of_kind(x: f32, kind: Static[object]) -> f32:
    return x


def test_static_values_that_are_no_data_are_refused() -> None:
    with pytest.raises(psc.ArgumentError, match=r"cannot be exported with <.*of class Kind"):
        of_kind.export(None, (np.float32(1), Kind()))


def test_true_is_not_one_among_static_values() -> None:
    found = loaded(of_kind, (np.float32(1), True), (np.float32(1), (1.5, None, b"x", f32)))
    assert found(np.float32(2), True) == 2
    assert found(np.float32(2), (1.5, None, b"x", f32)) == 2
    with pytest.raises(psc.ArgumentError, match="not exported for kind=1"):
        found(np.float32(2), 1)


# Programs of every kind.


def test_derivatives_and_batches() -> None:
    same(psc.value_and_grad(loss), P, X)
    batch = psc.vmap(rnn, in_axes=(None, 0, None))
    same(batch, P, np.stack([X, X]), np.float32(1))

    @psc.kernel
    def rosenbrock(x: f64["n"]) -> f64:
        assert x.shape[0] >= 2
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    same(psc.hessian(rosenbrock), np.array([1.0, 2.0, 3.0]))
    same(psc.vmap(psc.grad(rosenbrock)), np.ones((4, 3)))


@psc.kernel
def walk(key: Key, n: i32):  # type: ignore[no-untyped-def]
    def body(state: Any) -> Any:
        at, k, x = state
        k, now = psc.random.split(k)
        return at + 1, k, psc.cond(x > 0, lambda: x - 1, lambda: x + psc.random.normal(now))

    return psc.while_loop(lambda s: s[0] < n, body, (np.int32(0), key, np.float32(0)))


def test_control_flow_and_random_keys() -> None:
    key = psc.random.key(7)
    found = same(walk, key, np.int32(20))
    again = found(found(key, 3)[1], 2)
    np.testing.assert_array_equal(again[1], found(key, 5)[1])


def test_sorting() -> None:
    @psc.kernel
    def ordered(x: f32["n"], y: i32["n m"]):  # type: ignore[no-untyped-def]
        assert x.shape[0] >= 3
        return np.sort(x), np.argsort(x), np.sort(y, axis=0), psc.top_k(x, 3), np.argmax(y, axis=1)

    draw = np.random.default_rng(0)
    x = draw.normal(size=200).astype(np.float32)
    x[::7] = np.nan
    same(ordered, x, draw.integers(0, 9, (200, 3)).astype(np.int32), exact=True)


@psc.kernel
def positive(a: f64["n n"], b: f64["n"]):  # type: ignore[no-untyped-def]
    s = a @ a.T + np.eye(a.shape[0])
    factor = np.linalg.cholesky(s)
    return factor, psc.triangular_solve(factor, b), np.linalg.cholesky(a - 100 * np.eye(a.shape[0]))


@psc.kernel
def decomposed(a: f64["n n"]):  # type: ignore[no-untyped-def]
    values = np.linalg.eigvalsh(a + a.T)
    return np.linalg.inv(a), np.linalg.det(a), np.linalg.svd(a)[1], values, np.linalg.qr(a)[1]


@pytest.mark.parametrize("n", [1, 3, 6])
def test_linear_algebra(n: int) -> None:
    a = np.random.default_rng(n).normal(size=(n, n))
    assert same(positive, a, np.ones(n)).needs == ()
    assert loaded(positive, n=n, target="cpu").needs == ("lapack_dpotrf_ffi", "lapack_dtrsm_ffi")
    assert "lapack_dgesdd_ffi" in same(decomposed, a).needs


def test_modules_are_for_any_device_unless_the_target_is_the_cpu() -> None:
    plain = psc.load(positive.export(None, n=6))
    assert "custom_call" not in plain.text()
    assert "chlo." not in plain.text()
    assert plain.target == "any"
    args = (np.random.default_rng(0).normal(size=(6, 6)), np.ones(6))
    fast = psc.load(positive.export(None, n=6, target="cpu"))
    assert fast.target == "cpu"
    for got, wanted in zip(fast(*args), positive(*args), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_memory_is_donated_as_the_kernel_does() -> None:
    @psc.kernel(donate="state")
    def step(state: f32["n"], by: f32["n"]) -> f32["n"]:
        return state + by

    found = loaded(step, n=1000)
    given = found(np.ones(1000, np.float32), np.ones(1000, np.float32))
    given = found(given, np.ones(1000, np.float32))
    after = found(given, np.ones(1000, np.float32))
    assert after[0] == 4
    with pytest.raises(psc.ArgumentError, match=r"`state` of `step`.*memory"):
        found(given, after)
    kept = loaded(step, n=10, donate=())
    first = kept(np.ones(10, np.float32), np.ones(10, np.float32))
    assert kept(first, first)[0] == 4


def test_custom_calls_have_to_be_admitted() -> None:
    @psc.primitive
    def foreign(x: f32["n"]) -> f32["n"]:
        return x

    @foreign.translation
    def _(hlo: Any, x: Any) -> Any:
        return hlo.custom_call("somebodys_routine", (x,), (hlo.type_of(x),))[0]

    @psc.kernel
    def calls(x: f32["n"]) -> f32["n"]:
        return foreign(x)

    data = calls.export(None, n=2)
    assert psc.load(data).needs == ("somebodys_routine",)
    with pytest.raises(psc.ArtefactError, match="calls somebodys_routine, which must be admitted"):
        psc.load(data)(np.ones(2, np.float32))
    with pytest.raises(psc.ArtefactError, match=r"does not compile here.*needs somebodys_routine"):
        psc.load(data, calls=["somebodys_routine"])(np.ones(2, np.float32))


# Without the source.


SCRIPT = """
import sys
import numpy as np
import pscdsl as psc
import pscdsl.frontend.definitions as definitions

def never(*args):
    raise AssertionError("something was elaborated")

definitions.Definition.instance = never
found = psc.load(sys.argv[1])
p = found.records["Params"](np.eye(3, dtype=np.float32), np.ones(3, np.float32))
x = np.arange(12, dtype=np.float32).reshape(4, 3) / 10
print(np.asarray(found(p, x)).tobytes().hex())
"""


def run(path: Path, cache: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": ROOT, "PSCDSL_CACHE": str(cache)}
    made = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)],
        env=environment,
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def test_another_process_runs_it_without_the_source_and_compiles_it_once(tmp_path: Path) -> None:
    rnn.export(tmp_path / "rnn.psca", t=4, h=3)
    cache = tmp_path / "cache"
    wanted = np.asarray(rnn(P, X)).tobytes().hex()
    assert run(tmp_path / "rnn.psca", cache) == wanted
    kept = sorted(each.name for each in cache.iterdir())
    assert kept
    assert run(tmp_path / "rnn.psca", cache) == wanted
    assert sorted(each.name for each in cache.iterdir()) == kept


def test_it_is_told_whether_the_source_has_changed(tmp_path: Path) -> None:
    from pscdsl.kernel import load_kernel

    def written(text: str) -> Kernel[Any, Any]:
        path = tmp_path / "module.py"
        path.write_text(textwrap.dedent(text))
        return load_kernel(path, "f")

    before = """
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32

    FACTOR = 2.0

    def helper(x):
        return x * FACTOR

    @psc.kernel
    def g(x: f32["n"]) -> f32["n"]:
        return np.sin(x)

    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return helper(g(x))
    """
    data = written(before).export(None, n=2)
    found = psc.load(data)
    assert found.made_from(written(before))
    assert found.made_from(written("# moved\n" + textwrap.dedent(before) + "\nother = 1\n"))
    assert written(before).export(None, n=2) == data
    for old, new in (("np.sin(x)", "np.sin( x)"), ("x * FACTOR", "FACTOR * x"), ("2.0", "3.0")):
        changed = written(before.replace(old, new))
        assert not found.made_from(changed)
        if old != "2.0":  # a value, which is no source of a function
            assert psc.load(changed.export(None, n=2)).source_hash != found.source_hash


# The command line.


def test_the_command_line_writes_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(
        textwrap.dedent(
            """
            import numpy as np
            import pscdsl as psc
            from pscdsl import f32

            raise SystemExit("it is not run")

            @psc.kernel
            def f(x: f32["n"]) -> f32:
                assert x.shape[0] >= 2
                return np.sum(np.linalg.svd(np.outer(x, x))[1])

            @psc.kernel
            def g(x: f32["n"]) -> f32:
                return np.sum(x)
            """
        )
    )
    assert main(["export", "model.py:f", "--dims", "n=2", "--dims", "n=3"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("f.psca: f(x: f32[n]) -> f32, ")
    assert "\n  n=2\n  n=3\n  needs lapack_sgesdd_ffi" in told
    assert psc.load("f.psca").sizes == ({"n": 2}, {"n": 3})
    assert main(["export", "model.py:g", "--grad", "--dims", "n=2", "--output", "g.psca"]) == 0
    np.testing.assert_array_equal(psc.load("g.psca")(np.zeros(2, np.float32)), [1, 1])
    for bad, why in (
        (["model.py:f", "--dims", "n=1"], "needs n >= 2"),
        (["model.py:f"], "sizes are missing: n"),
        (["model.py", "--dims", "n=2"], "2 kernels in model.py"),
        (["model.py:g", "--dims", "n=2", "--output", "no/where/g.psca"], "cannot be written"),
    ):
        assert main(["export", *bad]) == 2
        assert why in capsys.readouterr().err
