"""PSC92x: comments that silence findings, where they silence nothing or cannot be read."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic, Severity


class UnusedSuppression(Diagnostic, code="PSC920", severity=Severity.WARNING):
    """A comment silences a finding that is not there.

    It was needed once, or stands on another line than the finding.  Left in place, it would silence
    the next finding of this kind without anyone having looked at it.

    It is said of what was looked at to its end: of the lines of kernels without errors, of the
    functions that they call, and of statements outside functions.  A bare `# psc: ignore` does not
    silence this warning, `# psc: ignore[PSC920]` does.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x  # psc: ignore[PSC201]
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x
    ```
    """

    codes: tuple[str, ...]
    """Those that are not found; empty for a comment without codes."""
    others: bool = False
    """Whether the comment has other codes that are found."""

    def message(self) -> str:
        """What is not found."""
        if not self.codes:
            return "unused suppression: nothing is found here"
        verb = "is" if len(self.codes) == 1 else "are"
        return f"unused suppression: {', '.join(self.codes)} {verb} not found here"

    def help(self) -> str:
        """What to do."""
        return f"remove {', '.join(self.codes)} from it" if self.others else "remove the comment"


class UnknownSuppressedCode(Diagnostic, code="PSC921", severity=Severity.WARNING):
    """A comment silences a code that does not exist.

    `pscdsl explain` lists the codes.  The beginning of a code stands for all that begin so: `PSC7`
    is every finding about numerics.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x  # psc: ignore[PSC000]
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x
    ```
    """

    unknown: str
    nearest: str = ""

    def message(self) -> str:
        """Which code."""
        return f"there is no code `{self.unknown}` to suppress"

    def help(self) -> str:
        """What may be meant."""
        if self.nearest:
            return f"`{self.nearest}` is the nearest code (`pscdsl explain` lists all)"
        return "`pscdsl explain` lists the codes"


class MalformedSuppression(Diagnostic, code="PSC922", severity=Severity.WARNING):
    """A comment looks like a suppression, but cannot be read as one.

    The forms are `# psc: ignore[PSC702, PSC8]` for the findings of a line or of a statement of
    several lines, `# psc: ignore` for all of them, and, on a line of its own above the first
    statement of the file, `# psc: ignore-file[PSC702]`.  What cannot be read silences nothing.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x  # psc: ignore PSC702
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x
    ```
    """

    reason: str

    def message(self) -> str:
        """What is wrong with it."""
        return f"malformed suppression: {self.reason}"

    def help(self) -> str:
        """The forms."""
        return "write `# psc: ignore[PSC702]` or, above the code, `# psc: ignore-file[PSC702]`"
