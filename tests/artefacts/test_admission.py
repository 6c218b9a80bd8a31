"""Modules that MLIR takes and XLA would stumble over: refused before XLA sees them.

Each is in an artefact that is signed and whole, so that nothing but what it holds is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f64
from pscdsl._src.artefacts.format import packed, unpacked
from pscdsl._src.targets.cpu import module_options
from pscdsl._src.xla import admission, lapack
from pscdsl._src.xla.compilation import VERSION
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.runtime import boot

KEY = b"k" * 32
VECTOR = "tensor<4xf32>"


def array(text: str) -> dict[str, Any]:
    """The type of an array as a head has it: `f32 4 4`."""
    dtype, *shape = text.split()
    return {"kind": "array", "dtype": dtype, "shape": shape}


def artefact(
    text: str,
    takes: Sequence[str] = ("f32 4",),
    gives: str = "f32 4",
    donate: Sequence[int] = (),
    calls: Sequence[str] = (),
    mesh: dict[str, Any] | None = None,
) -> bytes:
    """An artefact of a module given as text."""
    dialect = boot.untyped("mlir.dialects.stablehlo")
    with c.context():
        module = c.mlir.Module.parse(text if text.startswith("module") else f"module {{{text}}}")
        code: bytes = dialect.serialize_portable_artifact(module, VERSION)
    inputs, names = [array(each) for each in takes], [f"a{i}" for i in range(len(takes))]
    choices = ("dtypes", "ranks", "lengths", "keys", "statics", "given", "trees")
    parameters = [
        {"name": name, "type": each, "keyword_only": False, "has_default": False}
        for name, each in zip(names, inputs, strict=True)
    ]
    made: dict[str, Any] = {"sizes": {}, "calls": calls, "donate": donate, "length": len(code)}
    if mesh is not None:
        made["mesh"] = mesh
    head: dict[str, Any] = {
        **{"version": "", "stablehlo": VERSION, "target": "any", "source": "", "defaults": {}},
        "types": {"name": "k", "parameters": parameters, "result": None},
        "donate": [names[place] for place in donate],
        "programs": [
            {
                **{
                    "choice": {name: () for name in choices},
                    "dims": [],
                    "preconditions": [],
                    "fingerprint": "",
                },
                **{"inputs": inputs, "result": array(gives), "modules": [made]},
            }
        ],
    }
    return packed(head, [code], KEY)


def called(data: bytes, **options: Any) -> Any:
    """What a call of an artefact gives."""
    loaded = psc.load(data, trust=KEY, **options)
    inputs, _ = loaded.variants[0].avals()
    return loaded(*[np.ones(each.shape, each.dtype) for each in inputs])


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled."""

    def never(*args: object) -> NoReturn:
        raise AssertionError("XLA has seen it")

    monkeypatch.setattr(module_options, "compiled", never)


def main(body: str, more: str = "", *, argument: str = VECTOR, result: str = VECTOR) -> str:
    return f"func.func public @main(%a: {argument}) -> {result} {{\n{body}\n}}\n{more}"


def function(name: str, *callees: str) -> str:
    """A private function that calls others, one after the other."""
    calls = [
        f"%{i + 1} = call @{each}(%{i}) : ({VECTOR}) -> {VECTOR}" for i, each in enumerate(callees)
    ]
    body = "\n".join(calls).replace("%0)", "%a)")
    last = f"%{len(calls)}" if calls else "%a"
    head = f"func.func private @{name}(%a: {VECTOR}) -> {VECTOR}"
    return f"{head} {{\n{body}\nreturn {last} : {VECTOR} }}\n"


def chain(count: int) -> str:
    """Operations that wait for one another."""
    lines = [f"%{i + 1} = stablehlo.sine %{i} : {VECTOR}" for i in range(count)]
    return main("\n".join([*lines, f"return %{count} : {VECTOR}"]).replace("%0 ", "%a "))


def loops(count: int) -> str:
    """Loops within one another."""
    no = "%no = stablehlo.constant dense<false> : tensor<i1>\nstablehlo.return %no : tensor<i1>"
    body, value = "", "%a"
    for at in range(count):
        body = (
            f"%w{at} = stablehlo.while(%i{at} = %a) : {VECTOR} cond {{ {no} }} "
            f"do {{ {body}\nstablehlo.return {value} : {VECTOR} }}"
        )
        value = f"%w{at}"
    return main(f"{body}\nreturn {value} : {VECTOR}")


SELF = f"%r = call @main(%a) : ({VECTOR}) -> {VECTOR}\nreturn %r : {VECTOR}"
PLAIN = f"return %a : {VECTOR}"
DOUBLED = "".join(function(f"f{i}", *[f"f{i - 1}"] * 2) for i in range(1, 32)) + function("f0")
HUGE = "tensor<4611686018427387904x4xf32>"
ENTRY = f"%r = call @f31(%a) : ({VECTOR}) -> {VECTOR}\nreturn %r : {VECTOR}"
TOKEN = "!stablehlo.token"

MODULES: dict[str, tuple[str, str]] = {
    "calls itself": (main(SELF), "`main` calls itself"),
    "calls itself by others": (
        main(ENTRY.replace("f31", "f"), function("f", "g") + function("g", "f")),
        "`f` calls itself",
    ),
    "no body": (f"func.func private @main(%a: {VECTOR}) -> {VECTOR}", "not public"),
    "private": (main(PLAIN).replace("public", "private"), "not public"),
    "another has no body": (
        main(PLAIN, f"func.func private @f(%a: {VECTOR}) -> {VECTOR}"),
        "no body",
    ),
    "no main": (function("f"), "no function `main`"),
    "main is a module": ("module @main {}", "no function `main`"),
    "a module inside": (main(PLAIN, "module @inner {}"), "`builtin.module` beside"),
    "replicas": (
        f"module attributes {{mhlo.num_replicas = 2 : i32}} {{ {main(PLAIN)} }}",
        "`mhlo.num_replicas`",
    ),
    "marks": (
        f'module attributes {{mhlo.frontend_attributes = {{a = "b"}}}} {{ {main(PLAIN)} }}',
        "`mhlo.frontend_attributes`",
    ),
    "many operations": (main(ENTRY, DOUBLED), "operations"),
    "long chain": (chain(20_000), "wait for one another"),
    "nested loops": (loops(120), "stand in one another"),
    "takes memory": (
        main(PLAIN, argument=f"{VECTOR} {{tf.aliasing_output = 0 : i32}}"),
        "give away other memory than it says",
    ),
    "takes memory as a donor": (
        main(PLAIN, argument=f"{VECTOR} {{jax.buffer_donor = true}}"),
        "give away other memory than it says",
    ),
    "sharding": (
        main(PLAIN, argument=f'{VECTOR} {{mhlo.sharding = "{{devices=[4]0,1,2,3}}"}}'),
        "give away other memory than it says",
    ),
    "layout of results": (
        main(PLAIN, result=f'({VECTOR} {{mhlo.layout_mode = "{{0}}"}})'),
        "`res_attrs`",
    ),
    "a shape beside the type": (
        main(
            f'%r = stablehlo.sine %a {{xla_shape = "f32[9999]"}} : {VECTOR}\nreturn %r : {VECTOR}'
        ),
        "`xla_shape`",
    ),
    "too large": (
        main(
            f"%c = stablehlo.constant dense<1.0> : {HUGE}\n"
            '%s = "stablehlo.slice"(%c) {start_indices = array<i64: 0, 0>, limit_indices = '
            f"array<i64: 1, 4>, strides = array<i64: 1, 1>}} : ({HUGE}) -> tensor<1x4xf32>\n"
            f"%r = stablehlo.reshape %s : (tensor<1x4xf32>) -> {VECTOR}\nreturn %r : {VECTOR}"
        ),
        "an array of more than",
    ),
    "dynamic": (
        main(
            "%n = stablehlo.constant dense<[1000000]> : tensor<1xi64>\n"
            "%c = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi64>) -> tensor<?xf32>\n" + PLAIN
        ),
        "no kernel has: `stablehlo.dynamic_iota`",
    ),
    "bounded": (
        main(
            "%n = stablehlo.constant dense<3> : tensor<i32>\n"
            '%c = "stablehlo.set_dimension_size"(%a, %n) {dimension = 0 : i64} : '
            f"({VECTOR}, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>\n{PLAIN}"
        ),
        "no kernel has: `stablehlo.set_dimension_size`",
    ),
    "another dtype": (
        main(f"%c = stablehlo.convert %a : ({VECTOR}) -> tensor<4xf8E5M2>\n{PLAIN}"),
        "no kernel has: tensor<4xf8E5M2>",
    ),
    "infeed": (
        main(
            f"%t = stablehlo.create_token : {TOKEN}\n"
            f'%r:2 = "stablehlo.infeed"(%t) : ({TOKEN}) -> ({VECTOR}, {TOKEN})\n{PLAIN}'
        ),
        "no kernel has: `stablehlo.create_token`",
    ),
    "replica": (
        main(f"%r = stablehlo.replica_id : tensor<ui32>\n{PLAIN}"),
        "`stablehlo.replica_id`",
    ),
    "a tuple": (
        main(f"%r = stablehlo.tuple %a : tuple<{VECTOR}>\n{PLAIN}"),
        "`stablehlo.tuple`",
    ),
    "another call": (
        main(
            f"%r = stablehlo.custom_call @evil(%a) : ({VECTOR}) -> {VECTOR}\nreturn %r : {VECTOR}"
        ),
        "calls evil, which must be admitted",
    ),
    "a call in what is not called": (
        main(
            PLAIN,
            function("f").replace(
                "{\n", f"{{ %r = stablehlo.custom_call @evil(%a) : ({VECTOR}) -> {VECTOR}\n"
            ),
        ),
        "calls evil, which must be admitted",
    ),
    "another routine": (
        main(f"%r = stablehlo.custom_call @lapack_evil(%a) : ({VECTOR}) -> {VECTOR}\n{PLAIN}"),
        "calls lapack_evil, which must be admitted",
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_what_no_kernel_holds_is_refused(name: str, unseen: None) -> None:
    text, told = MODULES[name]
    with pytest.raises(
        psc.ArtefactError, match="a module of the artefact cannot be used"
    ) as raised:
        called(artefact(text))
    assert told in str(raised.value)


def test_what_the_head_says_of_the_module(unseen: None) -> None:
    donor = main(PLAIN, argument=f"{VECTOR} {{jax.buffer_donor = true}}")
    foreign = main(f"%r = stablehlo.custom_call @f(%a) : ({VECTOR}) -> {VECTOR}\n{PLAIN}")
    lies: list[tuple[bytes, dict[str, Any], str]] = [
        (artefact(main(PLAIN), donate=[0]), {}, "give away other memory than it says"),
        (artefact(main(PLAIN), ["f32 5"]), {}, "takes or gives other arrays"),
        (artefact(main(PLAIN), ["f32 2 2"]), {}, "takes or gives other arrays"),
        (artefact(main(PLAIN), gives="f32 400"), {}, "takes or gives other arrays"),
        (artefact(main(PLAIN), gives="i32 4"), {}, "takes or gives other arrays"),
        (artefact(main(PLAIN), ["f32 4", "f32 4"]), {}, "takes or gives other arrays"),
        (artefact(main(PLAIN), calls=["f"]), {}, "other custom calls than it says"),
        (artefact(foreign), {"calls": ["f"]}, "other custom calls than it says"),
    ]
    for data, options, told in lies:
        with pytest.raises(psc.ArtefactError, match=told):
            called(data, **options)
    with pytest.raises(psc.ArtefactError, match="XLA has seen it"):  # and this is right
        called(artefact(donor, donate=[0]))


def reduced(groups: str) -> str:
    """A sum over groups of devices."""
    rows, columns = groups.count("[") - 1, groups.split("]")[0].count(",") + 1
    return main(
        f"""%r = "stablehlo.all_reduce"(%a) <{{replica_groups = dense<{groups}> :
        tensor<{rows}x{columns}xi64>}}> ({{ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32> }}) : ({VECTOR}) -> {VECTOR}
        return %r : {VECTOR}"""
    )


def on_mesh(*axes: tuple[str, int], arguments: str = "_", results: str = "_") -> dict[str, Any]:
    """The mesh of a module as a head has it."""
    return {"axes": axes, "arguments": [arguments], "results": [results]}


def test_devices_exchange_in_groups_that_hold_each_once(unseen: None) -> None:
    pair, four = on_mesh(("data", 2)), on_mesh(("data", 2), ("model", 2))
    for groups, mesh in (("[[0, 1]]", pair), ("[[1], [0]]", pair), ("[[0, 2], [3, 1]]", four)):
        loaded = psc.load(artefact(reduced(groups), mesh=mesh), trust=KEY)
        loaded.verify(loaded.variants[0])
    wrong = [("[[0, 1]]", four), ("[[0, 1], [2, -1]]", on_mesh(("data", 3)))]
    for groups, mesh in wrong:
        loaded = psc.load(artefact(reduced(groups), mesh=mesh), trust=KEY)
        with pytest.raises(psc.ArtefactError, match="exchange in groups that are none"):
            loaded.verify(loaded.variants[0])
    for one in (None, on_mesh(("data", 1))):  # one device exchanges with nobody
        loaded = psc.load(artefact(reduced("[[0]]"), mesh=one), trust=KEY)
        with pytest.raises(psc.ArtefactError, match="that no kernel has: `stablehlo"):
            loaded.verify(loaded.variants[0])


def test_what_the_head_says_of_a_mesh(unseen: None) -> None:
    half = main(PLAIN, argument="tensor<2xf32>", result="tensor<2xf32>")
    half = half.replace(VECTOR, "tensor<2xf32>")
    cut = on_mesh(("data", 2), arguments="_@data", results="_@data")
    loaded = psc.load(artefact(half, mesh=cut), trust=KEY)
    loaded.verify(loaded.variants[0])
    lies: list[dict[str, Any]] = [
        on_mesh(("data", 3), arguments="_@data"),
        on_mesh(("data", 2), arguments="_@other"),
        on_mesh(("data", 2), arguments="_ _"),
        on_mesh(("data", 2), ("data", 2)),
        on_mesh(("data", 0)),
        on_mesh(("data", 1 << 30)),
        on_mesh(("no name", 2)),
        on_mesh(("data", 2), arguments="_@"),
        {"axes": [], "arguments": [], "results": []},
        {"axes": [["data", 2]]},
    ]
    for mesh in lies:
        with pytest.raises(psc.ArtefactError, match="its head does not say what it should"):
            psc.load(artefact(half, mesh=mesh), trust=KEY)
    whole = psc.load(artefact(half, mesh=on_mesh(("data", 2))), trust=KEY)
    with pytest.raises(psc.ArtefactError, match="takes or gives other arrays"):
        whole.verify(whole.variants[0])


def test_what_is_on_disk_is_not_taken_for_what_the_head_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PSCDSL_CACHE", str(tmp_path))
    donor = main(PLAIN, argument=f"{VECTOR} {{jax.buffer_donor = true}}")
    called(artefact(donor, donate=[0]))
    assert list(tmp_path.iterdir())
    with pytest.raises(psc.ArtefactError, match="give away other memory than it says"):
        called(artefact(donor))


def test_memory_is_given_away_by_parameters_that_are_donated() -> None:
    donor = main(PLAIN, argument=f"{VECTOR} {{jax.buffer_donor = true}}")
    head, codes = unpacked(artefact(donor, donate=[0]), KEY)
    for donate, places in (([], [0]), (["a0"], [1]), (["other"], [0])):
        head["donate"], head["programs"][0]["modules"][0]["donate"] = donate, places
        with pytest.raises(psc.ArtefactError, match="its head does not say what it should"):
            psc.load(packed(head, [codes], KEY), trust=KEY)


# --- LAPACK ----------------------------------------------------------------------------------


@psc.kernel
def decomposed(a: f64["n n"]):  # type: ignore[no-untyped-def]
    values = np.linalg.eigvalsh(a + a.T)
    s = a @ a.T + np.eye(a.shape[0])
    solved = psc.triangular_solve(np.linalg.cholesky(s), a[0])
    return np.linalg.inv(a), np.linalg.svd(a), values, np.linalg.qr(a), np.linalg.eigvals(a), solved


def calls_of(kernel: Any, n: int) -> list[str]:
    """The lines with calls of LAPACK's routines in a kernel."""
    loaded = psc.load(kernel.export(None, n=n, target="cpu", key=KEY), trust=KEY)
    return [line for line in loaded.text().splitlines() if "@lapack_" in line]


def with_call(line: str) -> bytes:
    """An artefact that does one call, and gives its first result."""
    target = line.split("@")[1].split("(")[0]
    takes, gives = line.rsplit(" : ", 1)[1].split(" -> ")
    operands = takes.strip("()").split(", ")
    results = gives.strip("()").split(", ")
    names = [f"%a{i}" for i in range(len(operands))]
    attributes = line[line.index("{") : line.rindex(" : ")]
    arrays = [
        " ".join([x[-1], *x[:-1]]) for x in [t[7:-1].split("x") for t in (*operands, results[0])]
    ]
    text = (
        f"func.func public @main({', '.join(map(': '.join, zip(names, operands, strict=True)))})"
        f" -> {results[0]} {{\n%r:{len(results)} = stablehlo.custom_call "
        f"@{target}({', '.join(names)}) {attributes} : ({', '.join(operands)}) -> "
        f"({', '.join(results)})\nreturn %r#0 : {results[0]} }}"
    )
    return artefact(text, arrays[:-1], arrays[-1], calls=[target])


CALLS = calls_of(decomposed, 20)


def test_every_routine_is_met() -> None:
    met = {lapack.routine_of(line.split("@")[1].split("(")[0]) for line in CALLS}
    assert met == set(lapack.ROUTINES)


@pytest.mark.parametrize("line", CALLS, ids=lambda line: line.split("@")[1].split("(")[0])
def test_routines_are_called_as_kernels_call_them(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each shape, dtype, layout and option is changed: all of these are refused."""
    assert called(with_call(line)).shape[0] == 20

    def never(*args: object) -> NoReturn:
        raise AssertionError(f"XLA has seen {changed}")

    monkeypatch.setattr(module_options, "compiled", never)
    head, types = line.rsplit(" : ", 1)
    others = [f"{head} : {each}" for old, new in TYPES for each in one_by_one(types, old, new)]
    others += [f"{each} : {types}" for old, new in SAID for each in one_by_one(head, old, new)]
    tried = 0
    for changed in others:
        if "orgqr" in changed and re.search(r"\(tensor<20x20xf64>, tensor<(1|19)xf64>\)", changed):
            continue  # fewer reflectors than columns
        try:
            data = with_call(changed)
        except Exception:  # MLIR refuses it already, where it is written
            continue
        with pytest.raises(psc.ArtefactError, match=r"cannot be used|head does not say"):
            called(data)
        tried += 1
    assert tried > 5


TYPES = [
    ("20", ("19", "21", "1", "400", "0")),
    ("xf64", ("xf32", "xi64", "xcomplex<f64>")),
    ("complex<f64>", ("f64", "complex<f32>")),
    ("i32", ("i64", "ui32", "f32")),
]
SAID = [
    ("dense<[0, 1]>", ("dense<[1, 0]>",)),
    (" : ui8", (" : i32", " : ui64")),
    (" = 7", (" = 1", " = 9")),
    (" = 8", (" = 1", " = 9")),
    ("4 : i32", ("1 : i32", "2 : i32")),
    ("operand_index = ", ("operand_index = 7",)),
]
"""What is changed, and to what."""


def one_by_one(text: str, old: str, others: Sequence[str]) -> list[str]:
    """The texts with one occurrence of `old` replaced by each of the others."""
    parts = text.split(old)
    return [
        old.join(parts[:at]) + new + old.join(parts[at:])
        for at in range(1, len(parts))
        for new in others
    ]


# --- Limits ----------------------------------------------------------------------------------


LONGEST: dict[str, Callable[[], str]] = {
    "a chain": lambda: chain(admission.MOST_DEPTH - 1),
    "loops": lambda: loops(30),
}


@pytest.mark.parametrize("name", LONGEST)
def test_what_is_admitted_can_be_compiled(name: str) -> None:
    assert called(artefact(LONGEST[name]())).shape == (4,)


def test_what_cannot_be_loaded_is_not_exported() -> None:
    @psc.kernel
    def long(x: f64["n"]) -> f64["n"]:
        for _ in [0] * 5000:
            x = np.sin(x)
        return x

    with pytest.raises(psc.ArtefactError, match=r"`?long`? cannot be exported: more than 4096"):
        long.export(None, n=2)
