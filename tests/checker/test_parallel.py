"""What is found is the same from the cache, from several processes, and without either."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pscdsl._src.checker import workers
from pscdsl._src.checker.check import check_file, check_source
from pscdsl._src.checker.project import CheckOptions, check_project
from pscdsl._src.checker.report import machine_readable as json_report
from pscdsl._src.checker.report import terminal
from pscdsl._src.checker.result_store import Recorded, Unreadable, plain, read, read_result
from pscdsl._src.checker.results import CheckResult
from pscdsl._src.checker.selection import all_kinds
from pscdsl._src.frontend.modules.files import Files, files_below
from pscdsl._src.frontend.modules.scope import Project
from pscdsl._src.frontend.text.display import Sources
from tests.conftest import CONFORMANCE
from tests.support.literate import programs
from tests.support.projects import HEAD, kernel, notebook, write
from tests.support.share import due, some

PROGRAMS = [
    (path, program)
    for path in sorted(CONFORMANCE.rglob("*.md"))
    for program in programs(path.read_text(encoding="utf-8"))
]


def reports(result: CheckResult, sources: Sources | None = None) -> tuple[str, ...]:
    """The result in every format."""
    found = result.diagnostics
    return (
        terminal.render_text(found, sources, colour=True),
        terminal.render_concise(found),
        json_report.render_json(found, result.kernels, result.files),
        repr((result.kernels, result.files)),
    )


def check(folder: Path, cache: Path | None = None, jobs: int = 1) -> CheckResult:
    """Check a folder, with a cache or without."""
    options = CheckOptions(None if cache is None else str(cache), jobs)
    return check_project(files_below([folder]), options)


def test_there_are_programs() -> None:
    assert len(PROGRAMS) > 300


@pytest.mark.parametrize("topic", sorted({path.parent.name for path, _ in PROGRAMS}))
def test_findings_survive_being_written_down(topic: str) -> None:
    of_topic = [each for each in PROGRAMS if each[0].parent.name == topic]
    for path, program in some(of_topic, 4, topic):
        live = check_source(program.text, path.name)
        back = read_result(json.loads(json.dumps(plain(live))))
        sources = Sources({path.name: program.text})
        assert reports(back, sources) == reports(live, sources), program.name
        for one, other in zip(live.diagnostics, back.diagnostics, strict=True):
            assert isinstance(other, Recorded)
            kinds = [(k.code, k.severity, k.slug(), k.explanation()) for k in (one, other)]
            assert kinds[0] == kinds[1]
            texts = [(k.help(), k.label(), k.labels) for k in (one, other)]
            assert texts[0] == texts[1]


def test_cold_warm_and_after_an_edit(tmp_path: Path) -> None:
    project, cache = tmp_path / "project", tmp_path / "cache"
    files = {f"p{i}.py": program.text for i, (_, program) in enumerate(PROGRAMS[::60])}
    write(project, files)
    plainly = reports(check(project))
    assert reports(check(project, cache)) == plainly
    assert reports(check(project, cache)) == plainly
    write(project, {"p0.py": HEAD + kernel("x + missing")})
    assert reports(check(project, cache)) == reports(check(project)) != plainly


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    write(tmp_path, {f"p{i}.py": p.text for i, (_, p) in enumerate(PROGRAMS[::60])})
    assert reports(check(tmp_path, jobs=3)) == reports(check(tmp_path))


def test_no_finding_depends_on_the_order_of_sets(tmp_path: Path) -> None:
    write(tmp_path, {f"p{i}.py": p.text for i, (_, p) in enumerate(PROGRAMS[::60])})
    found = {
        subprocess.run(
            [sys.executable, "-m", "pscdsl", "check", "--no-cache", "--jobs", "1", str(tmp_path)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=False,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


# --- A project in which every kind of dependency can change, by one edit after the other ------

VARIANTS: dict[str, tuple[str | None, ...]] = {
    "main.py": (
        HEAD + "from lib import SCALES, double\n" + kernel("double(x) * SCALES[0]"),
        HEAD + "import lib, pkg.ops\n" + kernel("lib.double(x) + pkg.ops.half(x)"),
        HEAD + "from pkg import *\nfrom lib import g\n" + kernel("half(g(x))"),
        HEAD + "import other\n" + kernel("other.h(x)") + kernel("x + y", "second"),
    ),
    "lib.py": (
        HEAD + "SCALES = [1.0]\ndef double(x):\n    return 2 * x\n" + kernel("x", "g"),
        HEAD + "SCALES = [1]\ndef double(x):\n    print(x)\n" + kernel("x + missing", "g"),
        "def (",
        None,
    ),
    "other.py": (
        "import lib\n",
        "import lib\nlib.SCALES.append(2.0)\n",
        "from lib import SCALES as scales\nscales[0] = 3\ndef h(x):\n    return x\n",
        "import lib\nimport helper\nhelper.touched(lib.SCALES)\n",
        None,
    ),
    "pkg/__init__.py": ("", "from .ops import *\n", "from .ops import half\n", None),
    "pkg/ops.py": (
        "def half(x):\n    return x / 2\n",
        "from lib import double\ndef half(x):\n    return double(x) / 4\n",
        "__all__ = []\ndef half(x):\n    return x.sort()\n",
    ),
    "pkg.py": (None, "def half(x):\n    return x\n"),
    "n.ipynb": (
        None,
        notebook(HEAD + "from lib import double\n", kernel("double(x) + missing")),
        notebook(HEAD, kernel("x")),
    ),
    "helper.py": (
        None,
        "def touched(x):\n    return len(x)\n",
        "def touched(x):\n    x.append(3)\n",
        "from lib import double\nfrom other import h as touched\n",
    ),
    "shown.py": (
        "import other as tab\n",
        "import lib as tab\n",
        "from lib import SCALES\n",
        "from pkg.ops import *\n",
    ),
    "writer.py": (
        "import shown\n",
        "from shown import tab\ntab.SCALES[0] = 3\n",
        "from shown import SCALES as s\ndef f():\n    s.append(1)\n",
        HEAD + "import shown\n" + kernel("x").replace("kernel", "kernel(writes='x')"),
    ),
    "unrelated.py": ("", "SCALE = 1\n", HEAD + kernel("x + x", "alone")),
}
EDITS = st.lists(
    st.sampled_from([(name, i) for name, texts in VARIANTS.items() for i in range(len(texts))]),
    max_size=8,
)


@pytest.fixture
def settled() -> Iterator[None]:
    """Files count as settled at once, so that every check keeps a snapshot of the project."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pscdsl._src.checker.result_store._SETTLED", -60.0)
        yield


@pytest.mark.parametrize("with_snapshots", [True, False])
@settings(
    max_examples=due(24, 3),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(EDITS)
def test_after_any_edits_the_cache_changes_nothing(
    with_snapshots: bool, edits: list[tuple[str, int]]
) -> None:
    folder = Path(tempfile.mkdtemp())
    with pytest.MonkeyPatch.context() as patch:
        if with_snapshots:
            patch.setattr("pscdsl._src.checker.result_store._SETTLED", -60.0)
        project, cache = folder / "project", folder / "cache"
        for name in VARIANTS:
            _edit(project, name, 0)
        check(project, cache)
        for name, index in edits:
            _edit(project, name, index)
            assert reports(check(project, cache)) == reports(check(project))
            assert reports(check(project, cache)) == reports(check(project))
    shutil.rmtree(folder)


@pytest.mark.usefixtures("settled")
def test_an_unchanged_project_is_not_looked_at(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    plainly = reports(check(project, cache))

    def unread(self: Files, path: str) -> bytes:
        raise AssertionError(path)

    with monkeypatch.context() as patch:
        patch.setattr(Files, "data", unread)
        assert reports(check(project, cache)) == plainly


def same_size(path: Path) -> None:
    """Write other code of as many characters."""
    path.write_text(path.read_text().replace("2 * x", "x[22]"))


def hidden(path: Path) -> None:
    """Put a package where the module was found."""
    write(path.parent, {"lib/__init__.py": ""})


def moved(path: Path) -> None:
    """Give the file another name."""
    path.rename(path.parent / "moved.py")


@pytest.mark.parametrize("act", [same_size, hidden, moved, Path.unlink])
@pytest.mark.usefixtures("settled")
def test_a_snapshot_ends_with_any_write(
    act: Callable[[Path], None], project: Path, tmp_path: Path
) -> None:
    cache, path = tmp_path / "cache", project / "lib.py"
    state = path.stat()
    check(project, cache)
    act(path)
    if path.exists():
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert reports(check(project, cache)) == reports(check(project))


def test_a_file_that_was_written_just_now_is_read_again(project: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    check(project, cache)
    assert len(entries(cache)) == 3  # one a file, and no snapshot


def test_what_another_module_shows_as_a_name_is_followed(tmp_path: Path) -> None:
    """`tab` means another module after the edit, though no file that names `SCALES` changes."""
    project, cache = tmp_path / "project", tmp_path / "cache"
    files = {
        "lib.py": "SCALES = [1.0]\n",
        "other.py": "SCALES = [1.0]\n",
        "shown.py": "import other as tab\n",
        "writer.py": "from shown import tab\n\ntab.SCALES[0] = 3.0\n",
        "main.py": HEAD + "import lib\n" + kernel("x * lib.SCALES[0]"),
    }
    write(project, files)
    assert not check(project, cache).diagnostics
    write(project, {"shown.py": "import lib as tab\n"})
    assert [each.code for each in check(project, cache).diagnostics] == ["PSC206"]


PASSED = {
    "by the module": (
        "import lib\nimport helper\nhelper.touched(lib.SCALES)\n",
        "def touched(x):\n    {act}\n",
    ),
    "under another name": (
        "import lib\nfrom helper import touched as t\nt(lib.SCALES)\n",
        "def touched(x):\n    {act}\n",
    ),
    "by an alias": (
        "import lib\nimport helper as h\nQ = h.touched\nQ(lib.SCALES)\n",
        "def touched(x):\n    {act}\n",
    ),
    "over another function": (
        "import lib\nimport helper\nhelper.touched(lib.SCALES)\n",
        "def inner(x):\n    {act}\n\n\ndef touched(x):\n    return inner(x)\n",
    ),
}


@pytest.mark.parametrize("way", PASSED)
def test_what_a_value_is_passed_to_is_read(way: str, tmp_path: Path) -> None:
    other, helper = PASSED[way]
    project, cache = tmp_path / "project", tmp_path / "cache"
    main = HEAD + "from lib import SCALES\n" + kernel("x * SCALES[0]")
    write(project, {"main.py": main, "lib.py": "SCALES = [1.0]\n", "other.py": other})
    for act in (None, "return len(x)", "x.append(3)", "return len(x)", None, "x.append(3)"):
        if act is None:
            (project / "helper.py").unlink(missing_ok=True)
        else:
            write(project, {"helper.py": helper.format(act=act)})
        assert reports(check(project, cache)) == reports(check(project)), act


def _edit(project: Path, name: str, index: int) -> None:
    content = VARIANTS[name][index]
    if content is None:
        (project / name).unlink(missing_ok=True)
    else:
        write(project, {name: content})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of three files, one of which imports another."""
    folder = tmp_path / "project"
    files = {
        "lib.py": "def double(x):\n    return 2 * x\n",
        "main.py": HEAD + "from lib import double\n" + kernel("double(x) + missing"),
        "other.py": HEAD + kernel("x + absent"),
    }
    write(folder, files)
    return folder


def checked_files(monkeypatch: pytest.MonkeyPatch, project: Path, cache: Path) -> list[str]:
    """The names of the files that are not taken from the cache."""
    found: list[str] = []

    def noted(files: Files, path: str) -> tuple[CheckResult, Project]:
        found.append(Path(path).name)
        return check_file(files, path)

    with monkeypatch.context() as patch:
        patch.setattr("pscdsl._src.checker.workers.check_file", noted)
        check(project, cache)
    return found


def test_only_what_depends_on_an_edit_is_checked_again(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    assert checked_files(monkeypatch, project, cache) == ["lib.py", "main.py", "other.py"]
    assert checked_files(monkeypatch, project, cache) == []
    write(project, {"lib.py": "def double(x):\n    return x + x\n"})
    assert checked_files(monkeypatch, project, cache) == ["lib.py", "main.py"]
    write(project, {"lib/__init__.py": "def double(x):\n    return x\n"})
    assert sorted(checked_files(monkeypatch, project, cache)) == ["__init__.py", "main.py"]
    write(project, {"new.py": "X = [1]\n"})
    assert checked_files(monkeypatch, project, cache) == ["new.py"]
    os.utime(project / "other.py")
    assert checked_files(monkeypatch, project, cache) == []


def entries(cache: Path) -> list[Path]:
    """The files in a cache."""
    return sorted((cache / "results").iterdir())


def damaged(data: bytes) -> Iterator[bytes]:
    """What an entry may be instead of itself."""
    yield b""
    yield data[: len(data) // 2]
    yield data.replace(b"missing", b"mizzing")
    yield data + b" "
    yield b"\xff" * 1000
    yield b"[" * 100_000
    yield data.split(b"\n")[1]


def test_a_damaged_entry_is_no_entry(project: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    plainly = reports(check(project, cache))
    for path in entries(cache):
        for content in damaged(path.read_bytes()):
            path.write_bytes(content)
            assert reports(check(project, cache)) == plainly


def test_a_foreign_entry_is_no_entry(project: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    plainly = reports(check(project, cache))
    first, *others = entries(cache)
    for path in others:
        path.write_bytes(first.read_bytes())
    assert reports(check(project, cache)) == plainly


@pytest.mark.parametrize(
    "data", [None, 1, [], [[], [[1]], 1, []], [[["PSC000", ["", "", None, None], []]], [], 1, []]]
)
def test_data_of_another_form_is_refused(data: object) -> None:
    with pytest.raises(Unreadable):
        read_result(data)


def test_only_what_is_declared_can_be_read() -> None:
    for annotation in (bytes, list[int], type, object):
        with pytest.raises(Unreadable):
            read(annotation, [1])


def test_results_of_another_version_are_not_used(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pscdsl._src.checker import result_store

    cache = tmp_path / "cache"
    check(project, cache)

    def other(roots: Sequence[str]) -> str:
        return f"another version {roots}"

    monkeypatch.setattr(result_store, "conditions", other)
    files = files_below([project])
    known = result_store.ResultStore(cache, files)
    assert [known.get(path, files) for path in files.given] == [None] * 3


def test_a_cache_that_cannot_be_used_is_none(project: Path, tmp_path: Path) -> None:
    plainly = reports(check(project))
    (tmp_path / "file").write_text("")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "results").write_text("")
    for cache in ("file", "broken", "new/deep", "a\0b"):
        assert reports(check(project, tmp_path / cache)) == plainly


def test_the_cache_is_bounded(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pscdsl._src.checker import result_store

    cache = tmp_path / "cache"
    monkeypatch.setattr(result_store, "_MOST_ENTRIES", 2)
    check(project, cache)
    (cache / "results" / f"{'0' * 16}.part").write_text("")
    os.utime(cache / "results" / f"{'0' * 16}.part", (0, 0))
    assert len(entries(cache)) == 3
    write(project, {"lib.py": ""})
    check(project, cache)
    assert len(entries(cache)) == 2
    assert (cache / ".gitignore").read_text().endswith("*\n")


def test_two_at_once_use_one_cache(project: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pscdsl", "check", "--cache-dir", str(tmp_path / "cache")]
    started = [subprocess.Popen([*command, str(project)], stdout=subprocess.PIPE) for _ in range(3)]
    outputs = {process.communicate()[0] for process in started}
    assert len(outputs) == 1
    assert reports(check(project, tmp_path / "cache")) == reports(check(project))


# --- Processes -------------------------------------------------------------------------------

DYING = """
import os, sys
from pscdsl._src.checker import workers
from pscdsl._src.checker import check
real = workers.check_file
def dying(files, path):
    if path.endswith("main.py"):
        {act}
    return real(files, path)
workers.check_file = dying
"""
START = "import json, sys; sys.path[:] = json.loads(sys.argv[1])\n"
FORKED = """
import json, sys
from pathlib import Path
from pscdsl._src.checker.project import CheckOptions, check_project
from pscdsl._src.checker.workers import may_fork
from pscdsl._src.frontend.modules.files import files_below
assert may_fork() == (sys.platform == "linux")
result = check_project(files_below([Path(sys.argv[1])]), CheckOptions(jobs=2))
print(json.dumps([[each.code, each.message()] for each in result.diagnostics]))
"""


@pytest.mark.sampled
@pytest.mark.parametrize("forked", [True, False])
@pytest.mark.parametrize(
    ("act", "says"),
    [
        ("os._exit(7)", "exit code 7"),
        ("os.kill(os.getpid(), 9)", "signal 9"),
        ("raise MemoryError", "exit code 1"),
        ("print('x')", None),
    ],
)
def test_a_process_that_dies_is_a_finding(
    act: str, says: str | None, forked: bool, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if forked:
        script = DYING.format(act=act) + FORKED
        done = subprocess.run(
            [sys.executable, "-c", script, str(project)], capture_output=True, text=True, check=True
        )
        found: list[tuple[str, str]] = json.loads(done.stdout)
    else:
        monkeypatch.setattr(workers, "may_fork", lambda: False)
        monkeypatch.setattr(workers, "_START", START + DYING.format(act=act) + "workers.main()")
        result = check(project, jobs=2)
        found = [(each.code, each.message()) for each in result.diagnostics]
    died = [message for code, message in found if code == "PSC934"]
    assert (len(died) == 1 and says in died[0]) if says else not died
    assert [code for code, _ in found].count("PSC102") == (1 if says else 2)


def test_without_processes_the_work_is_done_here(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "may_fork", lambda: False)
    monkeypatch.setattr(workers, "_START", "import sys; sys.exit(1)")
    assert reports(check(project, jobs=2)) == reports(check(project))


def test_a_result_of_a_dead_process_is_not_kept(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dying:
        dying.setattr(workers, "may_fork", lambda: False)
        start = START + DYING.format(act="os._exit(7)") + "workers.main()"
        dying.setattr(workers, "_START", start)
        check(project, tmp_path / "cache", jobs=2)
    assert reports(check(project, tmp_path / "cache")) == reports(check(project))


SLOW = DYING.format(act="import time; time.sleep(60)")
INTERRUPTED = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, if a background job is tested
{SLOW}
workers._START = {START + SLOW + "workers.main()"!r}
if sys.argv[2] == "new":
    workers.may_fork = lambda: False
from pscdsl._src.cli import main
sys.exit(main(["check", "--no-cache", "--jobs", "2", sys.argv[1]]))
"""


def children(process: int) -> list[str]:
    """The processes that one has started, by any of its threads."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [child for task in tasks for child in task.read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are not files here")
@pytest.mark.parametrize("how", ["forked", "new"])
def test_an_interrupt_ends_all(how: str, project: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(project), how], start_new_session=True
    )
    deadline = time.monotonic() + 60
    started: list[str] = []
    while time.monotonic() < deadline and not started:
        time.sleep(0.05)
        started = children(process.pid)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert not any(Path(f"/proc/{child}").exists() for child in started)


def test_every_kind_can_be_written_down() -> None:
    assert {kind.code for kind in all_kinds()} >= {"PSC930", "PSC934"}


def test_an_edit_that_writes_what_a_kernel_captures_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, cache = tmp_path / "project", tmp_path / "cache"
    files = {
        "lib.py": "SCALES = [1.0]\n",
        "main.py": HEAD + "from lib import SCALES\n" + kernel("x * SCALES[0]"),
        "writer.py": "from lib import SCALES\n\nprint(SCALES)\n",
    }
    write(project, files)
    assert checked_files(monkeypatch, project, cache) == ["lib.py", "main.py", "writer.py"]
    write(project, {"writer.py": "from lib import SCALES\n\nprint(SCALES, len(SCALES))\n"})
    assert checked_files(monkeypatch, project, cache) == ["writer.py"]
    assert checked_files(monkeypatch, project, cache) == []
    write(project, {"writer.py": "from lib import SCALES\n\nSCALES.append(2.0)\n"})
    assert checked_files(monkeypatch, project, cache) == ["main.py", "writer.py"]
    assert reports(check(project, cache)) == reports(check(project))
    assert [each.code for each in check(project, cache).diagnostics] == ["PSC206"]


def test_an_import_that_comes_to_lead_to_kernels_is_seen(tmp_path: Path) -> None:
    project, cache = tmp_path / "project", tmp_path / "cache"
    main = (
        'from lib import f32, kernel\n\n\n@kernel\ndef f(x: f32["n"]) -> f32["n"]:\n    return x\n'
    )
    write(project, {"lib.py": "kernel, f32 = len, {}\n", "main.py": main})
    assert not check(project, cache).kernels
    write(project, {"lib.py": "from pscdsl import f32, kernel\n"})
    assert [each.name for each in check(project, cache).kernels] == ["f"]
