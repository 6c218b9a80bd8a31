"""Entries on disk: whole or not there, bounded, shared by processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from pscdsl._src.caching import store as places
from pscdsl._src.caching.store import SUFFIX, Store

BLOCK = 4096


def named(text: str) -> str:
    """The name of an entry, different for each text."""
    return sha256(text.encode()).hexdigest()


A, B, OTHER = named("a"), named("b"), named("other")


def entry(folder: Path, name: str) -> Path:
    return folder / f"{name}{SUFFIX}"


def test_what_is_put_is_found_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "folder", 1 << 20)
    assert store.get(A) is None
    assert store.put(A, b"content")
    assert Store(store.folder, 0).get(A) == b"content"
    assert store.names() == [A]
    store.remove(A)
    store.remove(A)
    assert store.get(A) is None


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
    store.put(A, b"content" * 10)
    path = entry(tmp_path, A)
    path.write_bytes(DAMAGE[how](path.read_bytes()))
    assert store.get(A) is None
    assert not path.exists()


def test_an_entry_in_the_place_of_another_is_none(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20)
    store.put(A, b"content")
    os.rename(entry(tmp_path, A), entry(tmp_path, B))
    assert store.get(B) is None


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    store = Store(tmp_path, 10 * BLOCK)
    for index in range(10):
        store.put(named(f"{index}"), b"x")
        os.utime(entry(tmp_path, named(f"{index}")), (index, index))
    store.get(named("0"))  # used now
    store.put(named("10"), b"x")
    assert store.names() == sorted(map(named, ["0", "10", *"3456789"]))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 10 * BLOCK


def test_what_is_larger_than_all_is_not_kept(tmp_path: Path) -> None:
    store = Store(tmp_path, 4 * BLOCK)
    store.put(A, b"x")
    assert not store.put(B, b"x" * 5 * BLOCK)
    assert store.names() == [A]


def test_what_was_never_finished_is_removed_later(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20)
    old, new = (tmp_path / f"{digit * 16}.part" for digit in "ab")
    for path in (old, new):
        path.write_bytes(b"x")
    os.utime(old, (0, 0))
    store.put(A, b"x")
    assert not old.exists()
    assert new.exists()


FOREIGN = ["notes.txt", "old.part", f"model{SUFFIX}", f"{A}x{SUFFIX}", f"{A}{SUFFIX}.bak"]


def test_nothing_is_removed_but_what_has_the_name_of_an_entry(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    store = Store(folder, BLOCK)
    store.put(A, b"x")
    for name in FOREIGN:
        (folder / name).write_bytes(b"x" * 2 * BLOCK)
        os.utime(folder / name, (0, 0))
    outside.mkdir()
    (outside / "kept").write_bytes(b"x")
    entry(folder, named("folder")).mkdir()
    for name, target in (("link", outside), ("file", outside / "kept")):
        entry(folder, named(name)).symlink_to(target)
        os.utime(entry(folder, named(name)), (0, 0), follow_symlinks=False)
    for name in (*FOREIGN, "../outside/kept", "link", "file"):
        store.remove(name.removesuffix(SUFFIX))
        store.remove(named(name))
    for name in map(named, "bcd"):
        store.put(name, b"x")
    assert {each.name for each in folder.iterdir()} >= {*FOREIGN}
    assert (outside / "kept").exists()
    assert not store.put("../outside/kept", b"x")
    assert store.get("../outside/kept") is None


def test_only_regular_files_of_a_sane_size_are_read(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20)
    os.mkfifo(entry(tmp_path, named("pipe")))
    entry(tmp_path, named("folder")).mkdir()
    entry(tmp_path, named("device")).symlink_to("/dev/zero")
    entry(tmp_path, named("round")).symlink_to(entry(tmp_path, named("round")))
    store.put(A, b"content")
    entry(tmp_path, named("link")).symlink_to(entry(tmp_path, A))
    with entry(tmp_path, named("sparse")).open("wb") as file:
        file.truncate(1 << 40)
    for name in ("pipe", "folder", "device", "round", "link", "sparse"):
        assert store.get(named(name)) is None, name
    assert store.get(A) == b"content"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no users")
def test_the_folder_of_another_user_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = Store(tmp_path, 1 << 20)
    store.put(A, b"content")
    if os.geteuid() == 0:
        os.chown(tmp_path, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert store.get(A) is None
    assert not store.put(B, b"content")


def test_a_folder_that_is_none_keeps_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    for folder in (file, file / "below", Path("/proc/no/such"), Path("nul\0byte")):
        store = Store(folder, 1 << 20)
        assert not store.put(A, b"x")
        assert store.get(A) is None
        assert store.names() == []
        store.remove(A)


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean nothing there")
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777, 0o720])
def test_a_folder_in_which_others_write_is_not_used(
    mode: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "cache"
    store = Store(folder, 1 << 20)
    store.put(A, b"content")
    folder.chmod(mode)
    before = entry(folder, A).read_bytes()
    assert store.get(A) is None
    assert not store.put(B, b"content")
    store.remove(A)
    assert entry(folder, A).read_bytes() == before
    assert "others can write in it; `chmod go-w` it" in caplog.text
    folder.chmod(0o755)
    assert store.get(A) == b"content"


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean nothing there")
def test_what_others_may_have_written_is_no_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, 1 << 20)
    store.put(A, b"content")
    assert entry(tmp_path, A).stat().st_mode & 0o777 == 0o600
    entry(tmp_path, A).chmod(0o664)
    assert store.get(A) is None
    entry(tmp_path, A).chmod(0o644)
    assert store.get(A) == b"content"
    owner = os.geteuid()
    if owner == 0:
        os.chown(entry(tmp_path, A), 12345, -1)
        assert store.get(A) is None
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
        assert store.get(A) is None
        assert not store.put(B, b"content")


WRITER = """
import sys
from pathlib import Path
from pscdsl._src.caching.store import Store
store = Store(Path(sys.argv[1]), 40 * 4096)
for turn in range(150):
    for letter in "abcdef":
        content = letter.encode() * (1000 * (1 + turn % 7))
        found = store.get(letter * 64)
        assert found is None or set(found) == {ord(letter)}, found[:20]
        store.put(letter * 64, content)
    store.put(f"{sys.argv[2]}{turn}".zfill(64), b"x")
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
    store.put(A, b"x")
    os.utime(entry(tmp_path, A), (0, 0))
    store.get(A)
    assert entry(tmp_path, A).stat().st_mtime > time.time() - 1000


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (places.FOLDER_VARIABLE, places.LIMIT_VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_the_folder_is_the_users(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment.setattr(sys, "platform", "linux")
    environment.setenv("HOME", str(tmp_path))
    assert places.cache_folder() == tmp_path / ".cache" / "pscdsl"
    environment.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert places.cache_folder() == tmp_path / "xdg" / "pscdsl"
    environment.setenv("XDG_CACHE_HOME", "relative")  # which the specification says to ignore
    assert places.cache_folder() == tmp_path / ".cache" / "pscdsl"
    environment.setattr(sys, "platform", "darwin")
    assert places.cache_folder() == tmp_path / "Library" / "Caches" / "pscdsl"
    environment.setattr(sys, "platform", "win32")
    environment.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert places.cache_folder() == tmp_path / "local" / "pscdsl" / "Cache"


@pytest.mark.parametrize("word", [*sorted(places.OFF), "OFF", " off "])
def test_the_cache_can_be_off(environment: pytest.MonkeyPatch, word: str) -> None:
    environment.setenv(places.FOLDER_VARIABLE, word)
    assert places.cache_folder() is None


def test_the_folder_can_be_named(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment.setenv(places.FOLDER_VARIABLE, str(tmp_path))
    assert places.cache_folder() == tmp_path
    environment.setenv("HOME", str(tmp_path))
    environment.setenv(places.FOLDER_VARIABLE, "~/kept")
    assert places.cache_folder() == tmp_path / "kept"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("", 1 << 30), ("1000", 1000), ("2G", 2 << 30), ("500M", 500 << 20), ("1.5K", 1536)),
        *(("64 MiB", 64 << 20), ("3kb", 3 << 10), ("0", 0), ("much", 1 << 30), ("-1", 1 << 30)),
        *(("9" * 400, 1 << 60), ("9e9", 1 << 30)),
        *(("9" * 400, 1 << 60), ("9" * 400 + "T", 1 << 60)),
    ],
)
def test_the_limit(environment: pytest.MonkeyPatch, text: str, number: int) -> None:
    environment.setenv(places.LIMIT_VARIABLE, text)
    assert places.cache_limit() == number
    assert (places.cache_folder() is None) == (number == 0)
