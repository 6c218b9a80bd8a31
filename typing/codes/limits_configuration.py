"""PSC92x: settings in `pyproject.toml` that mean nothing."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class UnknownSetting(Diagnostic, code="PSC923"):
    """There is no setting of this name.

    The settings stand under `[tool.pscdsl]` in `pyproject.toml`: `paths`, `exclude`, `select`,
    `extend-select`, `ignore`, `per-file-ignores`, `strict`, `format`, `baseline` and
    `strict-baseline`.  A name that is not known is refused, because what it was meant to do would
    not be done.

    ## No example

    It is found in settings, never in a program.
    """

    name: str
    nearest: str = ""
    known: tuple[str, ...] = ()

    def message(self) -> str:
        """Which name."""
        return f"there is no setting `{self.name}`"

    def help(self) -> str:
        """What may be meant."""
        if self.nearest:
            return f"`{self.nearest}` is the nearest name"
        return f"the settings are {', '.join(self.known)}"


class WrongSetting(Diagnostic, code="PSC924"):
    """A setting has a value that it cannot have.

    Lists are lists of texts, codes are codes or beginnings of codes (`PSC7`), and a path is meant
    from the folder of the file.

    ## No example

    It is found in settings, never in a program.
    """

    name: str
    problem: str
    remedy: str

    def message(self) -> str:
        """What is wrong with it."""
        return f"`{self.name}` {self.problem}"

    def help(self) -> str:
        """What to write."""
        return self.remedy


class UnreadableSettings(Diagnostic, code="PSC925"):
    """The file with the settings cannot be read.

    It is not TOML, not UTF-8 text, or larger than any file of settings.

    ## No example

    It is found in settings, never in a program.
    """

    reason: str

    def message(self) -> str:
        """Why not."""
        return f"the settings cannot be read: {self.reason}"
