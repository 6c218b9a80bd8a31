"""Whose artefacts are loaded: nobody's who has not got the key, and nothing is read of others."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import f32
from pscdsl._src.artefacts.format import user_key
from pscdsl._src.cli import main
from tests.fuzz.artefacts import KEY as FUZZED
from tests.fuzz.artefacts import exported, lying, outcome, without_key

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and links mean little there")
KEY, OTHER = b"k" * 32, b"o" * 32
X = np.ones(2, np.float32)


@psc.kernel
def double(x: f32["n"]) -> f32["n"]:
    return 2 * x


DATA = double.export(None, n=2, key=KEY)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has no key yet."""
    monkeypatch.setenv("PSCDSL_KEY", str(tmp_path / "settings" / "key"))
    return tmp_path


def refused(data: bytes | str | Path, **options: Any) -> str:
    """What is said of an artefact that is not loaded."""
    with pytest.raises(psc.ArtefactError) as raised:
        psc.load(data, **options)
    return str(raised.value)


def test_the_first_export_makes_the_users_key(home: Path) -> None:
    key = home / "settings" / "key"
    assert "there is no key yet" in refused(DATA)
    assert not key.parent.exists()
    data = double.export(home / "double.psca", n=2)
    assert len(key.read_bytes()) == 32
    np.testing.assert_array_equal(psc.load(data)(X), 2 * X)
    np.testing.assert_array_equal(psc.load(home / "double.psca", trust="user")(X), 2 * X)
    assert psc.load(double.export(None, n=2)).sizes == ({"n": 2},)
    assert psc.load(data, trust=key.read_bytes()).sizes == ({"n": 2},)
    if sys.platform != "win32":
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700


def test_only_what_is_signed_with_the_trusted_key_is_loaded(home: Path) -> None:
    mine = double.export(None, n=2)
    assert psc.load(DATA, trust=KEY).name == "double"
    assert psc.load(DATA, trust="anyone").name == "double"
    assert psc.load(mine, trust="anyone").name == "double"
    told = refused(DATA)
    assert f"not signed with your key, {home / 'settings' / 'key'}, but with another one" in told
    assert 'trust=KEY` takes what was exported with `key=KEY`, `trust="anyone"` takes any' in told
    for data, key in ((DATA, OTHER), (mine, KEY), (DATA, KEY + b"\0" * 33)):
        assert "not signed with the key that `trust` gives" in refused(data, trust=key)


@pytest.mark.parametrize(
    ("trust", "told"),
    [
        (b"", "a key of 0 bytes; it needs 16 or more"),
        (b"short", "a key of 5 bytes"),
        ("anybody", '`trust` is a key, as bytes, "user" or "anyone"; it is str'),
        (None, "it is NoneType"),
        (True, "it is bool"),
    ],
)
def test_what_is_no_trust_is_refused(trust: Any, told: str) -> None:
    assert told in refused(DATA, trust=trust)
    if isinstance(trust, bytes | bool):
        with pytest.raises(psc.ArtefactError, match="`key` is a key"):
            double.export(None, n=2, key=trust)  # type: ignore[arg-type]


def instead(key: Path, make: Callable[[], object]) -> None:
    """Put something else in the place of a file, which is beside it then."""
    key.rename(key.with_name("real")).chmod(0o644)
    make()


def broken_keys() -> dict[str, Callable[[Path], object]]:
    """What can be wrong with the file of a key."""
    return {
        "others may read it": lambda key: key.chmod(0o644),
        "the group may write it": lambda key: key.chmod(0o620),
        "others may write in its folder": lambda key: key.parent.chmod(0o777),
        "short": lambda key: key.write_bytes(b"short"),
        "long": lambda key: key.write_bytes(b"x" * 5000),
        "a folder": lambda key: instead(key, key.mkdir),
        "a pipe": lambda key: instead(key, lambda: os.mkfifo(key)),
        "a device": lambda key: instead(key, lambda: key.symlink_to("/dev/zero")),
        "a link to what others may read": lambda key: instead(key, lambda: key.symlink_to("real")),
    }


@posix
@pytest.mark.parametrize("how", broken_keys())
def test_a_key_that_is_not_safe_is_neither_used_nor_replaced(how: str, home: Path) -> None:
    data, key = double.export(None, n=2), home / "settings" / "key"
    broken_keys()[how](key)
    before = _identity(key)
    assert "it is not known to be yours: " in refused(data)
    with pytest.raises(psc.ArtefactError, match=r"no key to sign .*export\(path, key=KEY\)"):
        double.export(None, n=2)
    assert _identity(key) == before
    assert psc.load(double.export(None, n=2, key=KEY), trust=KEY).name == "double"


def _identity(key: Path) -> tuple[int, ...]:
    """What tells a file from another one; when it was last read is no part of that."""
    found = key.lstat()
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@posix
def test_without_a_place_for_a_key(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    (home / "file").touch()
    for place in ("/proc/nowhere/key", home / "file" / "key", "~nobody-of-this-name/key"):
        monkeypatch.setenv("PSCDSL_KEY", str(place))
        assert "it is not known to be yours" in refused(DATA)
        with pytest.raises(psc.ArtefactError, match="there is no key to sign the artefact with"):
            double.export(home / "new.psca", n=2)
    assert not (home / "new.psca").exists()


@pytest.mark.parametrize(
    ("platform", "variable", "where"),
    [
        ("linux", "XDG_CONFIG_HOME", "named/pscdsl/key"),
        ("linux", "", ".config/pscdsl/key"),
        ("darwin", "", "Library/Application Support/pscdsl/key"),
        ("win32", "APPDATA", "named/pscdsl/key"),
    ],
)
@posix
def test_the_key_lies_among_the_users_settings(
    platform: str, variable: str, where: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PSCDSL_KEY")
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")  # which the specification says to ignore
    monkeypatch.setenv("HOME", str(home))
    if variable:
        monkeypatch.setenv(variable, str(home / "named"))
    monkeypatch.setattr(sys, "platform", platform)
    assert user_key(make=True) == (home / where).read_bytes()


def test_processes_that_make_the_key_at_once_agree(home: Path) -> None:
    script = "from pscdsl._src.artefacts.format import user_key; print(user_key(make=True).hex())"
    command = [sys.executable, "-c", script]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    found = {each.communicate(timeout=100)[0].strip() for each in running}
    assert found == {user_key().hex()}


def test_the_command_line_signs_with_the_users_key(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home)
    program = 'import pscdsl as psc\nfrom pscdsl import f32\n\n\n@psc.kernel\ndef f(x: f32["n"]) '
    Path("model.py").write_text(program + '-> f32["n"]:\n    return -x\n')
    assert main(["export", "model.py:f", "--dims", "n=2"]) == 0
    np.testing.assert_array_equal(psc.load("f.psca")(X), -X)
    (home / "settings" / "key").write_bytes(b"short")
    assert main(["export", "model.py:f", "--dims", "n=2"]) == 2
    assert "no key to sign the artefact with" in capsys.readouterr().err


# --- Whatever somebody makes -----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_loaded_that_was_made_without_the_key(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even the head is read."""

    def never(*args: object) -> None:
        raise AssertionError("it was read")

    made = list(without_key(exported(), seed, 500))
    monkeypatch.setattr("json.loads", never)
    for data in made:
        told = refused(data, trust=FUZZED)
        assert re.match(r"it (is|does) .*\w$", told)


@pytest.mark.parametrize("seed", range(2))
def test_a_head_that_lies_is_refused_or_harmless(seed: int) -> None:
    """Whatever the head says, nothing but our own errors is raised, and no wrong array is read."""
    found = Counter(map(outcome, lying(exported(), seed, 150)))
    assert found["refused"] > 100
    assert found["computes"] > 5


def test_a_campaign_of_mutants() -> None:
    command = [sys.executable, "-m", "tests.campaign", "artefacts", "--programs", "250"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^1 seeds from 0, \d+ outcomes, 0 problems", done.stdout, re.MULTILINE)


def test_an_artefact_that_is_no_file(home: Path) -> None:
    places = [Path("/dev/zero"), home]
    if sys.platform != "win32":
        os.mkfifo(home / "pipe")
        (home / "sparse").touch()
        os.truncate(home / "sparse", 3 << 30)
        places += [home / "pipe", home / "sparse"]
    for place in places:
        assert "cannot be read: " in refused(place, trust=KEY)
