"""What a repository of a stranger may hold: nothing outside of it is read, written or removed.

Nor is anything shown of files that are no Python, and no line is a command to a workflow's runner.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from pscdsl._src.caching.store import user_key
from pscdsl._src.checker.check import check_file
from pscdsl._src.checker.result_store import ResultStore, reads_of
from pscdsl._src.checker.results import CheckResult
from pscdsl._src.cli import main
from pscdsl._src.frontend.modules.files import files_below
from pscdsl._src.support import paths
from pscdsl._src.support.paths import Folder, Refused, admitted
from pscdsl.typing.diagnostics import Failure
from tests.support.projects import HEAD, kernel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")

Capture = pytest.CaptureFixture[str]
BROKEN = HEAD + kernel("x + missing")
SECRET = "TOKEN: very/secret\n"
FORMATS = ("text", "concise", "json", "sarif", "github")


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout, which is the current folder; beside it `outside` with things to lose."""
    repo, outside = tmp_path / "repo", tmp_path / "outside"
    for folder in (repo, outside):
        folder.mkdir()
    (repo / "main.py").write_text(BROKEN)
    for name in ("id_rsa", "main.py", f"{'0' * 32}.json", f"{'0' * 16}.part"):
        (outside / name).write_text(SECRET)
        os.utime(outside / name, (0, 0))
    (outside / "private.py").write_text("def h(x):\n    return print(x)  # SECRET\n")
    monkeypatch.chdir(repo)
    monkeypatch.delenv("PSCDSL_CACHE_DIR")
    return repo


def state(folder: Path) -> dict[str, bytes]:
    """What lies in a folder, links not followed."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture(autouse=True)
def _untouched(tmp_path: Path, repo: Path) -> object:
    """Whatever a test does, nothing outside has changed."""
    before = state(tmp_path / "outside")
    yield
    assert state(tmp_path / "outside") == before


def check(capsys: Capture, *arguments: str) -> tuple[int, str]:
    """Exit code, and what was printed."""
    capsys.readouterr()
    code = main(["check", *arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert "PSC999" not in out
    assert "ecret" not in out + err
    return code, out + err


# --- The cache -------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [".pscdsl_cache", ".pscdsl_cache/results"])
@pytest.mark.parametrize("options", [(), ("--cache-dir", ".pscdsl_cache")])
def test_a_cache_that_is_a_link_is_not_followed(
    place: str, options: tuple[str, ...], repo: Path, capsys: Capture
) -> None:
    (repo / place).parent.mkdir(exist_ok=True)
    (repo / place).symlink_to(repo.parent / "outside")
    assert check(capsys, *options)[0] in (1, 2)


def test_the_cache_lies_outside_of_what_is_checked(repo: Path, capsys: Capture) -> None:
    before = state(repo)
    assert check(capsys)[0] == 1
    assert state(repo) == before


def test_only_entries_are_removed(
    repo: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pscdsl._src.checker.result_store._MOST_ENTRIES", 1)
    results = tmp_path / "cache" / "results"
    results.mkdir(parents=True)
    kept = ["id_rsa", "data.json", "x.part", "thesis.docx", f"{'A' * 32}.json", f"{'1' * 32}.json~"]
    gone = [f"{'1' * 32}.json", f"{'2' * 16}.part"]
    for name in (*kept, *gone):
        (results / name).write_text("x")
        os.utime(results / name, (0, 0))
    (results / f"{'3' * 32}.json").symlink_to(repo.parent / "outside" / "id_rsa")
    (results / f"{'4' * 32}.json").mkdir()
    assert check(capsys, "--cache-dir", str(tmp_path / "cache"))[0] == 1
    left = {path.name for path in results.iterdir()}
    assert {*kept, f"{'3' * 32}.json", f"{'4' * 32}.json"} <= left
    assert not left & set(gone)


def forged(cache: Path) -> None:
    """Write an entry that says that nothing is wrong."""
    files = files_below([Path.cwd()])
    store = ResultStore(cache, files)
    (path,) = files.given
    _, project = check_file(files, path)
    store.put(path, reads_of(project, path), CheckResult((), (), 1))
    store.close()


def test_a_committed_cache_is_not_believed(
    repo: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (".pscdsl_cache", "cache"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "stranger"))
        forged(repo / place)
        assert check(capsys, "--cache-dir", place)[0] == 0  # the stranger believes it
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
        assert check(capsys, "--cache-dir", place)[0] == 1
        assert check(capsys)[0] == 1


def test_a_committed_key_is_not_believed(
    repo: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(repo / "home"))
    assert user_key([str(repo)]) is None
    key = user_key([])
    assert key is not None
    assert user_key([]) == key
    file = repo / "home" / "pscdsl" / "key"
    file.chmod(0o644)
    assert user_key([]) != key
    file.write_bytes(b"short")
    assert len(user_key([]) or b"") == 32
    file.unlink()
    file.symlink_to(repo / "main.py")
    assert user_key([]) is None or file.read_bytes() != BROKEN.encode()
    assert (repo / "main.py").read_text() == BROKEN


def test_without_a_place_for_the_key_nothing_is_kept(
    repo: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for home in ("/proc/nowhere", str(repo / "main.py")):
        monkeypatch.setenv("XDG_CACHE_HOME", home)
        assert check(capsys)[0] == 1
        assert check(capsys, "--cache-dir", str(tmp_path / "cache"))[0] == 1
        assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("kind", ["pipe", "zero", "folder", "link"])
def test_entries_that_are_no_files(kind: str, repo: Path, tmp_path: Path, capsys: Capture) -> None:
    cache = tmp_path / "cache"
    assert check(capsys, "--cache-dir", str(cache))[0] == 1
    (entry,) = (cache / "results").iterdir()
    entry.unlink()
    make: dict[str, Callable[[], object]] = {
        "pipe": lambda: os.mkfifo(entry),
        "zero": lambda: entry.symlink_to("/dev/zero"),
        "folder": entry.mkdir,
        "link": lambda: entry.symlink_to(repo.parent / "outside" / "id_rsa"),
    }
    make[kind]()
    assert check(capsys, "--cache-dir", str(cache))[0] == 1


# --- Settings --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        'paths = ["../outside"]',
        'paths = ["{outside}"]',
        'paths = ["../outside/private.py"]',
        'paths = ["out"]',
        'paths = ["out/private.py"]',
        'paths = ["one.py"]',
        'paths = ["/proc/self/environ"]',
        'paths = ["."]\nbaseline = "../outside/id_rsa"',
        'baseline = "/dev/zero"',
        'baseline = "out/id_rsa"',
        'exclude = ["[z-a]"]',
        'per-file-ignores = { "[z-a]" = ["PSC1"] }',
        f'exclude = ["{"x" * 1001}"]',
        "paths = [" + '".", ' * 100_000 + "]",
        "a." * 100_000 + "a = 1",
        '"a b".' * 50_000 + "a = 1",
        '"\\"".' * 50_000 + "a = 1",
    ],
    ids=lambda line: line[:40],
)
def test_settings_that_lead_out_or_mean_nothing(line: str, repo: Path, capsys: Capture) -> None:
    outside = repo.parent / "outside"
    (repo / "out").symlink_to(outside)
    (repo / "one.py").symlink_to(outside / "private.py")
    text = line.replace("{outside}", str(outside))
    (repo / "pyproject.toml").write_text(f"[tool.pscdsl]\n{text}\n")
    started = time.monotonic()
    code, said = check(capsys)
    assert code == 2
    assert "PSC92" in said
    assert check(capsys, "--fix", "--unsafe-fixes")[0] == 2
    assert time.monotonic() - started < 10


def test_settings_behind_a_link(repo: Path, capsys: Capture) -> None:
    (repo / "pyproject.toml").symlink_to("../outside/id_rsa")
    assert check(capsys)[0] == 2
    (repo / "pyproject.toml").unlink()
    (repo / "inner.toml").write_text('[tool.pscdsl]\nignore = ["PSC102"]\n')
    (repo / "pyproject.toml").symlink_to("inner.toml")
    assert check(capsys)[0] == 0
    (repo / "pyproject.toml").unlink()
    (repo.parent / "pyproject.toml").write_text('[tool.pscdsl]\nignore = ["PSC102"]\n')
    assert check(capsys)[0] == 0
    (repo / ".git").mkdir()  # what lies above a repository says nothing of it
    assert check(capsys)[0] == 1


def test_patterns_take_no_time(repo: Path, capsys: Capture) -> None:
    (repo / f"{'a' * 200}.py").write_text("")
    folder = repo.joinpath(*"b" * 30)
    folder.mkdir(parents=True)
    (folder / "x.py").write_text("")
    slow = ["*a" * 400 + "b", "**/" * 300 + "b", "**/*b/" * 150 + "y", "?*" * 400]
    (repo / "pyproject.toml").write_text(f"[tool.pscdsl]\nexclude = {json.dumps(slow)}\n")
    started = time.monotonic()
    assert check(capsys)[0] == 1
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("option", ["--config", "--baseline"])
def test_options_that_are_no_files(option: str, repo: Path, capsys: Capture) -> None:
    os.mkfifo("pipe")
    for name in ("pipe", "/dev/zero", ".", "nothing"):
        assert check(capsys, option, name)[0] == 2


# --- What is read ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        "from outside.private import h",
        "from ..outside.private import h",
        "from ..private import h",
        "import outside.private\nh = outside.private.h",
        "from private import h",
        "from src.private import h",
    ],
)
def test_imports_do_not_lead_out(program: str, repo: Path, capsys: Capture) -> None:
    (repo / "__init__.py").write_text("")
    (repo / "src").symlink_to("../outside")
    (repo / "linked.py").symlink_to("../outside/private.py")
    (repo / "main.py").write_text(HEAD + program + "\n" + kernel("h(x)"))
    for arguments in ((), ("main.py",), (str(repo),)):
        code, said = check(capsys, "--no-cache", *arguments)
        assert code == 1
        assert "PSC201" not in said  # that it prints was not seen
    assert main(["discover", "."]) == 0
    assert "SECRET" not in capsys.readouterr().out


def test_what_was_a_folder_is_not_followed_when_it_is_a_link(repo: Path) -> None:
    (repo / "inner").mkdir()
    (repo / "inner" / "private.py").write_text("")
    files = files_below([repo])
    inner = next(path for path in files.given if path.endswith("private.py"))
    (repo / "inner").rename(repo / "moved")
    (repo / "inner").symlink_to("../outside")
    with pytest.raises(Failure):
        files.data(inner)
    with pytest.raises(OSError, match=r"."):
        Folder(str(repo / "inner"))
    with pytest.raises(OSError, match=r"."), Folder(str(repo)) as folder:
        folder.read("inner", 10)
    with pytest.raises(Refused):
        files_below([str(repo / "inner")], settled=True)


def test_a_folder_held_open_stays_that_folder(repo: Path) -> None:
    (repo / "inner").mkdir()
    with Folder(str(repo / "inner")) as folder:
        (repo / "inner").rename(repo / "moved")
        (repo / "inner").symlink_to("../outside")
        folder.replace("id_rsa", b"new")
        folder.remove("main.py")
        folder.replace("id_rsa", b"newer", keep=True)
    assert (repo / "moved" / "id_rsa").read_bytes() == b"newer"
    assert [path.name for path in (repo / "moved").iterdir()] == ["id_rsa"]


@pytest.mark.parametrize("command", ["check", "discover", "ir", "cost", "hlo", "export"])
def test_a_file_that_is_a_link_is_named_by_where_it_leads(
    command: str, repo: Path, capsys: Capture
) -> None:
    (repo / "link.py").symlink_to("../outside/private.py")
    (repo / "folder").symlink_to("../outside")
    for name in ("link.py", "folder/private.py"):
        assert main([command, name]) == 2
        assert "leads out" in capsys.readouterr().err
        assert main([command, str(repo / name)]) == 2
    (repo / "inside.py").symlink_to("main.py")
    assert admitted("inside.py", [str(repo)]) == str(repo / "main.py")
    assert admitted("../outside", [str(repo)]) == str(repo.parent / "outside")


def test_a_path_that_cannot_be_followed(
    repo: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / "evil.py").symlink_to("/proc/1/cwd/x.py")
    real = os.path.realpath

    def refuse(path: str, **options: bool) -> str:
        if "evil" in str(path):
            raise PermissionError(13, "Permission denied", path)
        return real(path, **options)

    monkeypatch.setattr(os.path, "realpath", refuse)
    assert check(capsys)[0] == 1
    assert check(capsys, "evil.py")[0] == 2
    assert paths.real("evil.py") is None


def test_the_whole_file_system_is_refused(repo: Path, capsys: Capture) -> None:
    assert check(capsys, "/")[0] == 2
    assert main(["discover", "/"]) == 2


def test_there_is_an_end_to_what_is_looked_through(
    repo: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(1500):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(repo)
    assert check(capsys)[0] == 2
    subprocess.run(["rm", "-rf", str(repo / "d")], check=True)
    monkeypatch.setattr("pscdsl._src.frontend.modules.files.MOST_ENTRIES", 0)
    assert check(capsys)[0] == 2
    monkeypatch.setattr("pscdsl._src.frontend.modules.files.MOST_FILES", 0)
    assert check(capsys)[0] == 2


def test_the_current_folder_is_gone(repo: Path, capsys: Capture) -> None:
    (repo / "gone").mkdir()
    os.chdir(repo / "gone")
    (repo / "gone").rmdir()
    assert main(["check"]) == 2
    assert "current folder" in capsys.readouterr().err


# --- What is written -------------------------------------------------------------------------


def test_a_baseline_is_not_written_through_a_link(repo: Path, capsys: Capture) -> None:
    (repo / "b.json").symlink_to("../outside/id_rsa")
    (repo / "out").symlink_to("../outside")
    assert check(capsys, "--write-baseline", "b.json")[0] == 0
    assert not (repo / "b.json").is_symlink()
    assert check(capsys, "--write-baseline", "out/new.json")[0] == 2


def test_an_artefact_is_not_written_through_a_link(repo: Path, capsys: Capture) -> None:
    (repo / "good.py").write_text(HEAD + kernel("x + 1"))
    (repo / "out").symlink_to("../outside")
    target = "good.py:f"
    options = ["--dims", "n=2"]
    assert main(["export", target, *options, "--output", "out/f.psca"]) == 2
    assert main(["compile", target, *options, "--output", "out/cache"]) == 2
    (repo / "f.psca").symlink_to("../outside/id_rsa")
    assert main(["export", target, *options]) == 0
    assert not (repo / "f.psca").is_symlink()


def test_fixes_stay_inside(repo: Path, capsys: Capture) -> None:
    text = HEAD + kernel("x").replace("return", "x[0] = 1.0\n    return")
    (repo / "main.py").write_text(text)
    check(capsys, "--fix", "--unsafe-fixes")
    assert "update" in (repo / "main.py").read_text()
    (repo.parent / "real.py").write_text(text)
    (repo / "link.py").symlink_to("../real.py")
    check(capsys, "--fix", "--unsafe-fixes")
    assert check(capsys, "--fix", "--unsafe-fixes", "link.py")[0] == 2
    assert (repo.parent / "real.py").read_text() == text


# --- What is printed -------------------------------------------------------------------------


@pytest.mark.parametrize("format_", FORMATS)
def test_nothing_is_shown_of_what_is_no_python(format_: str, repo: Path, capsys: Capture) -> None:
    (repo / ".git").mkdir()
    (repo / ".git" / "config").write_text(f"[core]\n\t{SECRET}")
    (repo / "script").write_text("# coding: very-secret\nx")
    (repo / "config.py").symlink_to(".git/config")
    (repo / "pyproject.toml").write_text('[tool.pscdsl]\npaths = [".git/config", "config.py"]\n')
    assert check(capsys, "--format", format_)[0] == 1
    assert check(capsys, "--format", format_, "script")[0] == 1
    (repo / "pyproject.toml").unlink()
    code, said = check(capsys, "--format", format_, ".")
    assert code == 1
    assert "config" not in said


def test_a_script_without_a_suffix_is_shown(repo: Path, capsys: Capture) -> None:
    (repo / "tool").write_text(BROKEN)
    assert "x + missing" in check(capsys, "tool")[1]


COMMANDS = re.compile(r"^\s*::(?!error |warning |notice )|##\w*\[", re.MULTILINE)
"""What runners take for commands, but for those that `--format github` is there to write."""
NAMES = (
    "::add-mask::e.py",
    " ::add-mask::e.py",
    "\u2003::add-mask::e.py",
    "a\n::add-mask::e.py",
    "a\r::add-mask::e.py",
    "##[add-mask]e.py",
    "##vso[task.setvariable variable=a]b.py",
    "%0A::add-mask::e.py",
    "\x1b[2J\x1b]0;t\x07.py",
    "\u202ea.py",
    "a%0D%0A::x::,line=3::.py",
)


def steering(line: str) -> set[str]:
    """The characters in it that do something to a terminal."""
    return {each for each in line if unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp")}


LINE = "x + missing  ##[add-mask]e ##vso[task.complete] ::stop-commands::e \x1b[2J"


@pytest.mark.parametrize("format_", FORMATS)
def test_no_line_is_a_command(format_: str, repo: Path, capsys: Capture) -> None:
    for name in NAMES:
        (repo / name).write_text(HEAD + kernel(LINE) + '"""\n::add-mask::x\n"""\n')
    code, said = check(capsys, "--format", format_, "--show-types")
    assert code == 1
    assert said.count("missing") >= len(NAMES)
    for line in re.split(r"[\r\n]", said):
        assert not COMMANDS.search(line), line
        assert not steering(line), ascii(line)
    if format_ == "json":
        named = {each["path"] for each in json.loads(said)["diagnostics"]}
        assert named >= set(NAMES)  # what is said is the same


@pytest.mark.parametrize("name", NAMES)
def test_messages_are_no_commands(name: str, repo: Path, capsys: Capture) -> None:
    (repo / name).symlink_to("../outside/private.py")
    other = name[:-3]
    calls = [["check", name], ["check", other], ["check", f"--{name}"], ["ir", f"{other}:f"]]
    calls += [["check", "--config", other], ["check", "--baseline", other], ["discover", other]]
    calls += [["check", "--select", other], ["ir", "main.py", "--x", name], [name]]
    for call in calls:
        assert main(call) == 2
        for line in re.split(r"[\r\n]", "".join(capsys.readouterr())):
            assert not COMMANDS.search(line), line
            assert not steering(line), ascii(line)


def test_a_patch_holds_no_commands(repo: Path, capsys: Capture) -> None:
    good = HEAD + kernel("x").replace("return", "x[0] = 1.0\n    return")
    evil = '"""\n::add-mask::x\n"""\n'
    (repo / "main.py").write_text(good)
    code, said = check(capsys, "--diff", "--unsafe-fixes")
    assert code == 1
    assert "+++ main.py" in said
    (repo / "main.py").write_text(good + evil)
    code, said = check(capsys, "--diff", "--unsafe-fixes")
    assert code == 1
    assert "::add-mask" not in said


# --- What is run -----------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["argparse", "numpy"])
def test_modules_in_the_current_folder_are_not_run(module: str, repo: Path) -> None:
    (repo / f"{module}.py").write_text("raise SystemExit('ran')\n")
    command = [sys.executable, "-m", "pscdsl", "check", "main.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "PSC102" in done.stdout
