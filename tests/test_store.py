"""Entries on disk: whole or not there, bounded, shared by processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pscdsl.caching import places
from pscdsl.caching.store import SUFFIX, Store

BLOCK = 4096


def entry(folder: Path, name: str) -> Path:
    return folder / f"{name}{SUFFIX}"


def test_what_is_put_is_found_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "folder", 1 << 20)
    assert store.get("a") is None
    assert store.put("a", b"content")
    assert Store(store.folder, 0).get("a") == b"content"
    assert store.names() == ["a"]
    store.remove("a")
    store.remove("a")
    assert store.get("a") is None


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda data: data[:-1],
    "cut off in the seal": lambda data: data[:10],
    "empty": lambda data: b"",
    "longer": lambda data: data + b"x",
    "changed": lambda data: data[:50] + b"?" + data[51:],
    "foreign": lambda data: b"something else entirely" * 9,
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_entry_is_none_and_removed(how: str, tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20)
    store.put("a", b"content" * 10)
    path = entry(tmp_path, "a")
    path.write_bytes(DAMAGE[how](path.read_bytes()))
    assert store.get("a") is None
    assert not path.exists()


def test_an_entry_in_the_place_of_another_is_none(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20)
    store.put("a", b"content")
    os.rename(entry(tmp_path, "a"), entry(tmp_path, "b"))
    assert store.get("b") is None


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    store = Store(tmp_path, 10 * BLOCK)
    for index in range(10):
        store.put(f"{index}", b"x")
        os.utime(entry(tmp_path, f"{index}"), (index, index))
    store.get("0")  # used now
    store.put("10", b"x")
    assert store.names() == ["0", "10", *"3456789"]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 10 * BLOCK


def test_what_is_larger_than_all_is_not_kept(tmp_path: Path) -> None:
    store = Store(tmp_path, 4 * BLOCK)
    store.put("a", b"x")
    assert not store.put("b", b"x" * 5 * BLOCK)
    assert store.names() == ["a"]


def test_what_was_never_finished_is_removed_later(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20)
    old, new, foreign = (tmp_path / each for each in ("old.part", "new.part", "notes.txt"))
    for path in (old, new, foreign):
        path.write_bytes(b"x")
    os.utime(old, (0, 0))
    os.utime(foreign, (0, 0))
    store.put("a", b"x")
    assert not old.exists()
    assert new.exists()
    assert foreign.exists()


def test_a_folder_that_is_none_keeps_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    for folder in (file, file / "below", Path("/proc/no/such"), Path("nul\0byte")):
        store = Store(folder, 1 << 20)
        assert not store.put("a", b"x")
        assert store.get("a") is None
        assert store.names() == []
        store.remove("a")


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean nothing there")
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777, 0o720])
def test_a_folder_in_which_others_write_is_not_used(
    mode: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "cache"
    store = Store(folder, 1 << 20)
    store.put("a", b"content")
    folder.chmod(mode)
    before = entry(folder, "a").read_bytes()
    assert store.get("a") is None
    assert not store.put("b", b"content")
    store.remove("a")
    assert entry(folder, "a").read_bytes() == before
    assert "others can write in it; `chmod go-w` it" in caplog.text
    folder.chmod(0o755)
    assert store.get("a") == b"content"


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean nothing there")
def test_what_others_may_have_written_is_no_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, 1 << 20)
    store.put("a", b"content")
    assert entry(tmp_path, "a").stat().st_mode & 0o777 == 0o600
    entry(tmp_path, "a").chmod(0o664)
    assert store.get("a") is None
    entry(tmp_path, "a").chmod(0o644)
    assert store.get("a") == b"content"
    owner = os.geteuid()
    if owner == 0:
        os.chown(entry(tmp_path, "a"), 12345, -1)
        assert store.get("a") is None
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
        assert store.get("a") is None
        assert not store.put("b", b"content")


@pytest.mark.skipif(sys.platform == "win32", reason="it has no pipes")
@pytest.mark.parametrize("kind", ["pipe", "zero", "folder", "link", "sparse"])
def test_entries_that_are_no_files_of_a_sane_size(kind: str, tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20)
    store.put("other", b"content")
    path = entry(tmp_path, "a")
    if kind == "sparse":
        with path.open("wb") as file:
            file.truncate(3 << 30)
    make: dict[str, Callable[[], object]] = {
        "pipe": lambda: os.mkfifo(path),
        "zero": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
        "link": lambda: path.symlink_to(entry(tmp_path, "other")),
    }
    make.get(kind, path.touch)()
    assert store.get("a") is None
    assert store.put("a", b"new") == (kind != "folder")
    assert store.get("other") == b"content"
    assert store.get("a") == (None if kind == "folder" else b"new")


WRITER = """
import sys
from pathlib import Path
from pscdsl.caching.store import Store
store = Store(Path(sys.argv[1]), 40 * 4096)
for turn in range(150):
    for name in "abcdefgh":
        content = name.encode() * (1000 * (1 + turn % 7))
        found = store.get(name)
        assert found is None or set(found) == {ord(name)}, found[:20]
        store.put(name, content)
    store.put(f"own{sys.argv[2]}{turn}", b"x")
"""


def test_processes_share_a_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    running = [subprocess.Popen([*command, str(i)], stderr=subprocess.PIPE) for i in range(4)]
    for each in running:
        assert not each.communicate(timeout=100)[1]
        assert each.returncode == 0
    assert sum(-(-p.stat().st_size // BLOCK) for p in tmp_path.iterdir()) <= 40
    assert not list(tmp_path.glob("*.part"))


def test_time_of_use_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20)
    store.put("a", b"x")
    os.utime(entry(tmp_path, "a"), (0, 0))
    store.get("a")
    assert entry(tmp_path, "a").stat().st_mtime > time.time() - 1000


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (places.FOLDER, places.LIMIT, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_the_folder_is_the_users(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment.setattr(sys, "platform", "linux")
    environment.setenv("HOME", str(tmp_path))
    assert places.folder() == tmp_path / ".cache" / "pscdsl"
    environment.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert places.folder() == tmp_path / "xdg" / "pscdsl"
    environment.setenv("XDG_CACHE_HOME", "relative")  # which the specification says to ignore
    assert places.folder() == tmp_path / ".cache" / "pscdsl"
    environment.setattr(sys, "platform", "darwin")
    assert places.folder() == tmp_path / "Library" / "Caches" / "pscdsl"
    environment.setattr(sys, "platform", "win32")
    environment.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert places.folder() == tmp_path / "local" / "pscdsl" / "Cache"


@pytest.mark.parametrize("word", [*sorted(places.OFF), "OFF", " off "])
def test_the_cache_can_be_off(environment: pytest.MonkeyPatch, word: str) -> None:
    environment.setenv(places.FOLDER, word)
    assert places.folder() is None


def test_the_folder_can_be_named(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment.setenv(places.FOLDER, str(tmp_path))
    assert places.folder() == tmp_path
    environment.setenv("HOME", str(tmp_path))
    environment.setenv(places.FOLDER, "~/kept")
    assert places.folder() == tmp_path / "kept"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("", 1 << 30), ("1000", 1000), ("2G", 2 << 30), ("500M", 500 << 20), ("1.5K", 1536)),
        *(("64 MiB", 64 << 20), ("3kb", 3 << 10), ("0", 0), ("much", 1 << 30), ("-1", 1 << 30)),
        *(("9" * 400, 1 << 60), ("9e9", 1 << 30)),
    ],
)
def test_the_limit(environment: pytest.MonkeyPatch, text: str, number: int) -> None:
    environment.setenv(places.LIMIT, text)
    assert places.limit() == number
    assert (places.folder() is None) == (number == 0)
