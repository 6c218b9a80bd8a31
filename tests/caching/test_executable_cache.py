"""Compiled programs on disk: keys, what is kept, and what another process finds."""

from __future__ import annotations

import ast
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.caching.store import SUFFIX, Store
from pscdsl._src.kernels.kernel import Kernel
from pscdsl._src.targets.cpu import module_options
from pscdsl._src.targets.forms import VARIABLE
from pscdsl._src.targets.pipeline import lower_module
from pscdsl._src.xla import disk as conditions
from pscdsl._src.xla import disk as kept
from pscdsl._src.xla.device import CPU, Device
from pscdsl._src.xla.executable_store import NotStorable, module_key, obtain, program_key
from pscdsl._src.xla.runtime import boot
from pscdsl._src.xla.runtime.devices import to_numpy
from pscdsl._src.xla.runtime.executable import CompilationFailed
from pscdsl._src.xla.specialisation import Specialisation
from pscdsl.typing.signatures import Choice

pytestmark = pytest.mark.jaxlib

ROOT = str(Path(__file__).parents[2])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "cache"
    monkeypatch.setenv("PSCDSL_CACHE", str(found))
    return found


def store(folder: Path) -> Store:
    return Store(folder, 1 << 30)


def fresh() -> Kernel[[Any, Any], Any]:
    """A kernel that has never been compiled in this process."""

    @psc.kernel
    def f(x: f32["n m"], y: f32["m"]) -> f32["n"]:
        return np.tanh(x @ y) * 2

    return f


def request(**sizes: int) -> Specialisation:
    return Specialisation(fresh().optimised(Choice()), {"n": 3, "m": 4, **sizes})


def emit(wanted: Specialisation) -> Any:
    return lower_module(wanted.program, wanted.sizes, donate=wanted.donate)


X, Y = np.arange(12, dtype=np.float32).reshape(3, 4) / 10, np.ones(4, np.float32)


def test_a_second_kernel_finds_what_the_first_compiled(folder: Path) -> None:
    first, second = fresh(), fresh()
    wanted = np.asarray(first(X, Y))
    np.testing.assert_array_equal(np.asarray(second(X, Y)), wanted)
    assert (first.cache_info().misses, first.cache_info().disk_hits) == (1, 0)
    assert (second.cache_info().misses, second.cache_info().disk_hits) == (0, 1)
    assert first.cache_info().compile_seconds > 0 == second.cache_info().compile_seconds
    assert second.cache_info().entries == 1
    second.compile(n=3, m=4)
    assert second.cache_info().hits == 1
    del folder


def test_a_program_that_is_known_is_not_emitted(folder: Path) -> None:
    obtain(request(), store(folder), module_options, emit)

    def never(_: Specialisation) -> Any:
        raise AssertionError("emitted")

    assert obtain(request(), store(folder), module_options, never).source == "disk"


def test_a_module_that_is_known_is_not_compiled(folder: Path) -> None:
    obtain(request(), store(folder), module_options, emit)

    @psc.kernel
    def other(a: f32["k l"], b: f32["l"]) -> f32["k"]:
        return 2 * np.tanh(a @ b)

    renamed = Specialisation(other.optimised(Choice()), {"k": 3, "l": 4})
    count = len(store(folder).names())
    swapped = obtain(
        renamed, store(folder), module_options, emit
    )  # the product's operands have changed places
    assert swapped.source == "compiled"
    again = replace(renamed, sizes={"k": 3, "l": 4})
    assert obtain(again, store(folder), module_options, emit).source == "disk"
    assert len(store(folder).names()) == count + 2

    @psc.kernel
    def same(a: f32["k l"], b: f32["l"]) -> f32["k"]:
        return np.tanh(a @ b) * 2

    found = obtain(
        Specialisation(same.optimised(Choice()), {"k": 3, "l": 4}),
        store(folder),
        module_options,
        emit,
    )
    assert found.source == "disk"


def keys(made: Specialisation) -> tuple[str | None, str]:
    return program_key(made), module_key(emit(made), made, module_options)


def _parts(parts: Sequence[str], device: Device) -> tuple[str, ...]:
    return tuple(parts)


def test_all_that_matters_changes_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    base = request()
    found = [keys(base)]
    assert keys(request()) == found[0]
    found.append(keys(request(n=5)))
    found.append(keys(replace(base, donate=(0,))))
    found.append(keys(replace(base, loop_bytes=None)))
    found.append(keys(replace(base, loop_bytes=1)))
    parts = conditions.backend()
    for at in range(len(parts)):
        changed = (*parts[:at], parts[at] + "?", *parts[at + 1 :])
        monkeypatch.setattr(conditions, "backend", partial(_parts, changed))
        found.append(keys(base))
    monkeypatch.setattr(conditions, "backend", partial(_parts, parts))
    with monkeypatch.context() as setting:
        setting.setenv(VARIABLE, "prepared_factors")
        found.append(keys(base))
    for at in (0, 1):
        kinds = [pair[at] for pair in found]
        assert None not in kinds
        assert len(set(kinds)) == len(kinds)
    monkeypatch.setattr(conditions, "emission_digest", lambda: "of another version")
    program, module = keys(base)
    assert program != found[0][0]
    assert module == found[0][1]


def test_the_conditions_name_the_compiler_and_the_machine() -> None:
    library: Any = pytest.importorskip("jaxlib")
    told = "\n".join(conditions.backend())
    assert library.__version__ in told
    assert "XLA_FLAGS=" in told
    assert "topology " in told


def test_what_refuses_a_program_is_part_of_its_key() -> None:
    folder = Path(psc.__file__).parent
    read = set(conditions.emission_sources())
    rooms = folder / "_src"
    due = [
        rooms / "analysis" / "intervals.py",
        rooms / "transforms" / "simplify.py",
        rooms / "xla" / "emit" / "emit.py",
    ]
    met: set[Path] = set()
    while due:
        path = due.pop()
        if path in met or not path.is_file():
            continue
        met.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pscdsl."):
                place = folder.parent.joinpath(*str(node.module).split("."))
                due += [place.with_suffix(".py"), *(place / f"{n.name}.py" for n in node.names)]
    assert len(met) > 20
    assert not met - read


def test_every_file_of_ours_tells_when_it_changed() -> None:
    folder = Path(psc.__file__).parent
    met = {line.split(" ")[0] for line in conditions.own_states(str(folder))}
    links = [folder, *(each for each in folder.iterdir() if each.is_symlink())]
    assert met == {str(path) for place in links for path in place.rglob("*.py")}


CONDITIONS = "from pscdsl._src.xla import disk; print(disk.backend(), disk.emission_digest())"


def run(code: str, *arguments: str, **environment: str) -> str:
    """What code prints in a process of its own."""
    kept = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**kept, "PYTHONPATH": ROOT, **environment},
        check=True,
        capture_output=True,
        text=True,
        timeout=200,
    ).stdout


def test_flags_and_features_of_the_processor_change_the_conditions(tmp_path: Path) -> None:
    flags = "--xla_cpu_max_isa=SSE4_2"
    file = tmp_path / "flags"
    file.write_text(flags)
    plain, other = run(CONDITIONS), run(CONDITIONS, XLA_FLAGS=flags)
    in_file = run(CONDITIONS, XLA_FLAGS=str(file))
    assert plain == run(CONDITIONS, PYTHONHASHSEED="7")
    assert len({plain, other, in_file}) == 3
    if hasattr(boot.jax.get_topology_for_devices(CPU.placement.device_list), "fingerprint"):

        def topology(text: str) -> str:
            return next(part for part in text.split("'") if part.startswith("topology"))

        assert topology(plain) != topology(other) == topology(in_file)


def damaged(path: Path, how: str) -> None:
    data = path.read_bytes()
    half = len(data) // 2
    path.write_bytes({"cut": data[:half], "flipped": data[:half] + b"?" + data[half + 1 :]}[how])


@pytest.mark.parametrize("how", ["cut", "flipped"])
def test_damaged_entries_are_compiled_again(folder: Path, how: str) -> None:
    wanted = np.asarray(fresh()(X, Y))
    for path in folder.glob(f"*{SUFFIX}"):
        damaged(path, how)
    kernel = fresh()
    np.testing.assert_array_equal(np.asarray(kernel(X, Y)), wanted)
    assert kernel.cache_info().misses == 1
    again = fresh()
    again(X, Y)
    assert again.cache_info().disk_hits == 1


def test_code_that_cannot_be_loaded_is_removed(folder: Path) -> None:
    kept = store(folder)
    made = request()
    obtain(made, kept, module_options, emit)
    key = module_key(emit(made), made, module_options)
    kept.put(key, b"sealed, but no code")
    assert obtain(made, kept, module_options, emit).source == "compiled"
    assert obtain(made, kept, module_options, emit).source == "disk"
    program = program_key(made)
    assert program is not None
    kept.put(program, b"leads nowhere \xff")
    assert obtain(made, kept, module_options, emit).source == "disk"


def test_nothing_is_written_when_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PSCDSL_CACHE", "off")
    fresh()(X, Y)
    assert not folder.exists()


def test_a_place_that_cannot_be_written_is_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PSCDSL_CACHE", str(tmp_path / "file"))
    with caplog.at_level(logging.DEBUG, "pscdsl.compile"):
        kernel = fresh()
        kernel(X, Y)
    assert kernel.cache_info().misses == 1
    assert all(each.levelno <= logging.INFO for each in caplog.records)
    assert "nothing can be kept" in caplog.text


def test_dumps_are_made_each_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/tmp/x")
    assert kept.opened() is None
    del folder


def test_donated_arguments(folder: Path) -> None:
    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return x + 1

    made = Specialisation(f.optimised(Choice()), {"n": 64}, donate=(0,))
    for source in ("compiled", "disk"):
        answer = obtain(made, store(folder), module_options, emit)
        assert answer.source == source
        (first,) = answer.run([np.ones(64, np.float32)])
        (second,) = answer.execute([first])
        assert first.is_deleted()
        assert to_numpy(second)[0] == 3
    plain = obtain(replace(made, donate=()), store(folder), module_options, emit)
    assert plain.source == "compiled"
    (first,) = plain.run([np.ones(64, np.float32)])
    plain.execute([first])
    assert not first.is_deleted()


@psc.primitive
def shown(x: f32["n"]) -> f32["n"]:
    return x


@shown.translation
def _(hlo: Any, x: Any) -> Any:
    index = hlo.parse_attribute("{index = 0 : ui64}")
    target = "xla_ffi_python_cpu_callback"
    return hlo.custom_call(target, [x], [hlo.type_of(x)], backend_config=index)


def test_what_calls_python_is_not_kept(folder: Path) -> None:
    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return shown(x)

    made = Specialisation(f.optimised(Choice()), {"n": 2})
    with pytest.raises(NotStorable, match="xla_ffi_python_cpu_callback"):
        module_key(emit(made), made, module_options)
    calls: list[Any] = []

    def compile_module(module: Any, **_: Any) -> Any:
        calls.append(module)
        raise RuntimeError("never to be compiled without its functions")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module_options, "compile_module", compile_module)
        with pytest.raises(CompilationFailed):
            obtain(made, store(folder), module_options, emit)
    assert len(calls) == 1
    assert store(folder).names() == []


@psc.primitive
def cube(x: f32["n"]) -> f32["n"]:
    return x * x * x


@cube.translation
def _(hlo: Any, x: Any) -> Any:
    return hlo.binary("multiply", x, hlo.binary("multiply", x, x))


def test_programs_with_translations_of_users_are_found_by_their_modules(folder: Path) -> None:
    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return cube(x) + 1

    made = Specialisation(f.optimised(Choice()), {"n": 2})
    assert program_key(made) is None
    assert obtain(made, store(folder), module_options, emit).source == "compiled"
    assert obtain(made, store(folder), module_options, emit).source == "disk"
    before = cube.rule

    def other(hlo: Any, x: Any) -> Any:
        return hlo.binary("add", x, x)

    cube.translation(other)
    try:
        answer = obtain(made, store(folder), module_options, emit)
    finally:
        cube.rule = before
    assert answer.source == "compiled"
    assert to_numpy(answer.run([np.full(2, 3, np.float32)])[0])[0] == 7


PROGRAM = """
import sys
import numpy as np
import pscdsl as psc
from pscdsl import Key, f32

@psc.kernel
def f(a: f32["n n"], key: Key) -> tuple[f32["n"], f32["n n"], Key]:
    key, sub = psc.random.split(key)
    noise = psc.random.uniform(sub, a.shape)
    m = a @ a.T + np.eye(a.shape[0]) * 9 + noise @ noise.T
    return np.linalg.eigvalsh(m), np.linalg.inv(m) @ np.linalg.cholesky(m), key

rng = np.random.default_rng(0)
a = rng.standard_normal((5, 5)).astype(np.float32)
for n in (5, 4):
    w, x, key = f(a[:n, :n], psc.random.key(3))
    assert np.isfinite(np.asarray(x)).all()
    print(np.asarray(w).tobytes().hex(), np.asarray(x).tobytes().hex(), np.asarray(key))
print(f.cache_info().misses, f.cache_info().disk_hits, file=sys.stderr)
"""


def started(folder: Path, code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": ROOT, "PSCDSL_CACHE": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out, err


def test_processes_share_programs_that_call_lapack(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    code = f"import runpy; runpy.run_path({str(path)!r})"
    both = [started(tmp_path / "cache", code) for _ in range(2)]
    results = [ended(each) for each in both]
    again, counts = ended(started(tmp_path / "cache", code))
    assert counts == "0 2\n"
    assert {out for out, _ in results} == {again}


def test_the_users_folder_is_used_by_default(tmp_path: Path) -> None:
    code = "import pscdsl._src.xla.dispatch as f; assert f.fast_path_works()"
    kept = {k: v for k, v in os.environ.items() if k != "PSCDSL_CACHE"}
    variables = {**kept, "PYTHONPATH": ROOT, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=variables, check=True, timeout=100)
    assert list(tmp_path.rglob(f"*{SUFFIX}"))


def test_threads_compile_a_program_once(folder: Path) -> None:
    kernel = fresh()

    def made(index: int) -> int:
        return id(kernel.executable(kernel.lower(n=3 + index % 2, m=4).specialisation))

    with ThreadPoolExecutor(6) as pool:
        found = set(pool.map(made, range(12)))
    assert len(found) == 2
    assert kernel.cache_info().misses == 2
    assert kernel.cache_info().hits == 10
    del folder
