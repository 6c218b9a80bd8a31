"""PSC9xx: files of projects, settings, comments, budgets, discovery."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic, Severity

# PSC93x: what cannot be read or decided about the files of a project.


class InvalidNotebook(Diagnostic, code="PSC930"):
    """A notebook cannot be read."""

    reason: str

    def message(self) -> str:
        return f"not a notebook: {self.reason}"

    def help(self) -> str:
        return "open it in Jupyter and save it again, or leave it out of what is checked"


class BoundInSeveralPlaces(Diagnostic, code="PSC931"):
    """A name is bound in several places of its module, and it is not known which one counts."""

    name: str
    within: str = "module"

    def message(self) -> str:
        return f"`{self.name}` is bound in several places of its {self.within}"

    def label(self) -> str:
        return "which of its meanings holds is not known from the source"

    def help(self) -> str:
        return "pass it as an argument, or bind it once"


class ComputedName(Diagnostic, code="PSC932"):
    """A name of a module is computed by the module's `__getattr__`."""

    module: str
    name: str

    def message(self) -> str:
        return f"`{self.name}` of module `{self.module}` is computed by its `__getattr__`"

    def help(self) -> str:
        return f"bind `{self.name}` in the module, or import it from where it is defined"


class FileNotRead(Diagnostic, code="PSC933"):
    """A file cannot be read."""

    reason: str

    def message(self) -> str:
        return f"the file cannot be read: {self.reason}"


class CheckDied(Diagnostic, code="PSC934"):
    """The process that checked a file ended without an answer."""

    reason: str

    def message(self) -> str:
        return f"the process that checked this file died: {self.reason}"

    def help(self) -> str:
        return "check this file alone, with `--jobs 1`"


class OnlyForTypeCheckers(Diagnostic, code="PSC935"):
    """A name that exists only for type checkers is used in a kernel."""

    name: str

    def message(self) -> str:
        return f"`{self.name}` is bound under `if TYPE_CHECKING:` only"

    def help(self) -> str:
        return "move its import out of the `if`"


class ImportsTooDeep(Diagnostic, code="PSC936"):
    """An imported name leads through too many modules."""

    name: str
    limit: int

    def message(self) -> str:
        return f"`{self.name}` is reached over more than {self.limit} modules"

    def help(self) -> str:
        return "import it from the module that defines it"


# PSC92x: settings in `pyproject.toml` that mean nothing.


class UnknownSetting(Diagnostic, code="PSC923"):
    """There is no setting of this name."""

    name: str
    nearest: str = ""
    known: tuple[str, ...] = ()

    def message(self) -> str:
        return f"there is no setting `{self.name}`"

    def help(self) -> str:
        if self.nearest:
            return f"`{self.nearest}` is the nearest name"
        return f"the settings are {', '.join(self.known)}"


class WrongSetting(Diagnostic, code="PSC924"):
    """A setting has an invalid value."""

    name: str
    problem: str
    remedy: str

    def message(self) -> str:
        return f"`{self.name}` {self.problem}"

    def help(self) -> str:
        return self.remedy


class UnreadableSettings(Diagnostic, code="PSC925"):
    """The file with the settings cannot be read."""

    reason: str

    def message(self) -> str:
        return f"the settings cannot be read: {self.reason}"


# PSC92x: comments that silence findings, where they silence nothing or cannot be read.


class UnusedSuppression(Diagnostic, code="PSC920", severity=Severity.WARNING):
    """A comment suppresses a finding that is not there."""

    codes: tuple[str, ...]
    """The codes that are not found; empty for a comment without codes."""
    others: bool = False
    """Whether the comment has other codes that are found."""

    def message(self) -> str:
        if not self.codes:
            return "unused suppression: nothing is found here"
        verb = "is" if len(self.codes) == 1 else "are"
        return f"unused suppression: {', '.join(self.codes)} {verb} not found here"

    def help(self) -> str:
        return f"remove {', '.join(self.codes)} from it" if self.others else "remove the comment"


class UnknownSuppressedCode(Diagnostic, code="PSC921", severity=Severity.WARNING):
    """A comment suppresses a code that does not exist."""

    unknown: str
    nearest: str = ""

    def message(self) -> str:
        return f"there is no code `{self.unknown}` to suppress"

    def help(self) -> str:
        if self.nearest:
            return f"`{self.nearest}` is the nearest code (`pscdsl explain` lists all)"
        return "`pscdsl explain` lists the codes"


class MalformedSuppression(Diagnostic, code="PSC922", severity=Severity.WARNING):
    """A comment looks like a suppression, but cannot be read as one."""

    reason: str

    def message(self) -> str:
        return f"malformed suppression: {self.reason}"

    def help(self) -> str:
        return "write `# psc: ignore[PSC702]` or, above the code, `# psc: ignore-file[PSC702]`"


# PSC9xx: budgets that cannot be read, or decided.


class BudgetNotProven(Diagnostic, code="PSC906"):
    """A budget is neither proved nor refuted."""

    budget: str
    reason: str
    instead: str = ""

    def message(self) -> str:
        return f"it is not known whether `{self.budget}` holds: {self.reason}"

    def help(self) -> str | None:
        return self.instead or None


class MalformedBudget(Diagnostic, code="PSC926"):
    """A budget cannot be read, or belongs to no kernel."""

    reason: str
    instead: str = ""

    def message(self) -> str:
        return f"malformed budget: {self.reason}"

    def help(self) -> str | None:
        return self.instead or "write `# psc: budget flops <= 2*n`"


# PSC945 to PSC947: what keeps `pscdsl discover` from finding a signature.


class ObjectParameter(Diagnostic, code="PSC945"):
    """A parameter is an object or a dict, and its contents are not known."""

    name: str
    how: str
    attributes: tuple[str, ...]

    def message(self) -> str:
        if self.how == "default":
            return f"the default of `{self.name}` is no array, number or string"
        return f"`{self.name}` is used as {'a dict' if self.how == 'dict' else 'an object'}"

    def label(self) -> str:
        return ", ".join(f"`.{attribute}`" for attribute in self.attributes[:4])

    def help(self) -> str:
        if self.how == "default":
            return "give it in the call, or declare a record class for it"
        if self.how == "dict":
            return f"declare the keys of `{self.name}` by a `TypedDict`, with a type for each array"
        return f"declare a `psc.Record` with these fields as the type of `{self.name}`"


class OpenParameters(Diagnostic, code="PSC946"):
    """A function takes any number of arguments, `*args` or `**options`."""

    name: str

    def message(self) -> str:
        return f"`{self.name}` takes any number of arguments"

    def help(self) -> str:
        if self.name.startswith("**"):
            return "name the parameters that are used"
        return f"take one tuple: `{self.name.lstrip('*')}: tuple[f32, ...]`"


class SearchEnded(Diagnostic, code="PSC947"):
    """No signature was found within the trials or the time allowed for a function."""

    function: str
    trials: int

    def message(self) -> str:
        return f"no signature of `{self.function}` was found in {self.trials} trials"

    def help(self) -> str:
        return "annotate its parameters with the types that are meant, and check it"
