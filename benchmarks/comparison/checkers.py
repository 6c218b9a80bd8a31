"""The errors that type checkers report for texts in jax, before anything runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

Finding = tuple[str, str]
"""The code of an error, and its message."""


def mypy(folder: Path, python: str) -> Mapping[str, list[Finding]]:
    """By the names of all files in a folder, with the default settings."""
    command = [sys.executable, "-m", "mypy", "--config-file=", "--no-error-summary"]
    found = _output([*command, f"--python-executable={python}", "--no-incremental", "."], folder)
    errors = re.finditer(r"^(\w+)\.py:\d+: error: (.*?)  \[([\w-]+)\]$", found, re.MULTILINE)
    return _grouped((each[1], (each[3], each[2])) for each in errors)


def pyright(folder: Path, python: str) -> Mapping[str, list[Finding]]:
    """The same, with the default settings, too."""
    command = [sys.executable, "-m", "pyright", "--outputjson", f"--pythonpath={python}", "."]
    found: dict[str, Any] = json.loads(_output(command, folder))
    return _grouped(
        (Path(each["file"]).stem, (each.get("rule", "syntax"), each["message"]))
        for each in found["generalDiagnostics"]
        if each["severity"] == "error"
    )


def ty(folder: Path, python: str) -> Mapping[str, list[Finding]]:
    """The same of ty."""
    given = ["check", "--output-format=concise", f"--python={python}", "."]
    found = _output([str(SCRIPTS / "ty"), *given], folder)
    errors = re.finditer(r"^(\w+)\.py:\d+:\d+: error\[([\w-]+)\] (.*)$", found, re.MULTILINE)
    return _grouped((each[1], (each[2], each[3])) for each in errors)


def pyrefly(folder: Path, python: str) -> Mapping[str, list[Finding]]:
    """The same of Pyrefly."""
    given = ["check", "--output-format=json", f"--python-interpreter-path={python}"]
    (folder / "pyrefly.toml").write_text("use-ignore-files = false\n", encoding="utf-8")
    found: dict[str, Any] = json.loads(_output([str(SCRIPTS / "pyrefly"), *given], folder))
    return _grouped(
        (Path(each["path"]).stem, (each["name"], each["description"]))
        for each in found["errors"]
        if each["severity"] == "error"
    )


SCRIPTS: Final = Path(sysconfig.get_path("scripts"))
"""The folder of the commands of this environment."""
CHECKERS: Final[Mapping[str, Callable[[Path, str], Mapping[str, list[Finding]]]]] = {
    "mypy": mypy,
    "pyright": pyright,
    "ty": ty,
    "pyrefly": pyrefly,
}
"""By the names of their distributions, in the order of the page's columns."""


def new_codes(found: list[Finding], before: list[Finding]) -> list[str]:
    """The codes of the errors that were not there before a mistake was made."""
    remaining = list(before)
    codes: dict[str, None] = {}
    for each in found:
        if each in remaining:
            remaining.remove(each)
        else:
            codes[each[0]] = None
    return list(codes)


def _output(command: list[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def _grouped(pairs: Any) -> Mapping[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for name, finding in pairs:
        found.setdefault(name, []).append(finding)
    return found
