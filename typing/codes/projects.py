"""PSC9xx: files of projects, settings, comments, budgets, discovery."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic, Severity

# PSC93x: what cannot be read or decided about the files of a project.


class InvalidNotebook(Diagnostic, code="PSC930"):
    """A notebook is not one that can be read.

    A notebook is a JSON document of format 4 with a list of cells.  Its code cells are checked
    together, as one module, in their order in the document.

    ## No example

    It takes a file of another kind: a `.ipynb` that is damaged, or of an old format.
    """

    reason: str

    def message(self) -> str:
        """Why it cannot be read."""
        return f"not a notebook: {self.reason}"

    def help(self) -> str:
        """What to do."""
        return "open it in Jupyter and save it again, or leave it out of what is checked"


class BoundInSeveralPlaces(Diagnostic, code="PSC931"):
    """A name is bound in several places of its module, and which of them counts is not known.

    What such a name stands for depends on when it is read: a constant, a default or a class that
    is made of it keeps what it was at that time.  So a name of a module that a kernel uses is
    bound once, or to the same number or string each time.  Branches on `sys.version_info`,
    `sys.platform` and `TYPE_CHECKING` are decided; a name that both branches of any other
    condition bind must mean the same in both.

    ## Example

    ```py
    import os

    import pscdsl as psc
    from pscdsl import f32

    if "PRECISE" in os.environ:
        STEPS = 100
    else:
        STEPS = 10


    @psc.kernel
    def scale(x: f32["n"]) -> f32["n"]:
        return x / STEPS
    ```

    ## Fix

    ```py
    import os

    import pscdsl as psc
    from pscdsl import f32

    steps = 100 if "PRECISE" in os.environ else 10


    @psc.kernel
    def scale(x: f32["n"], steps: psc.Static[int]) -> f32["n"]:
        return x / (steps + 1)
    ```
    """

    name: str
    within: str = "module"

    def message(self) -> str:
        """Which name."""
        return f"`{self.name}` is bound in several places of its {self.within}"

    def label(self) -> str:
        """Why that matters."""
        return "which of its meanings holds is not known from the source"

    def help(self) -> str:
        """What to write instead."""
        return "pass it as an argument, or bind it once"


class ComputedName(Diagnostic, code="PSC932"):
    """A name of a module is computed by the module's `__getattr__`.

    What that function returns is known only at run time.

    ## No example

    It takes two files: a module with `__getattr__`, and one that asks it for a name.
    """

    module: str
    name: str

    def message(self) -> str:
        """Which name of which module."""
        return f"`{self.name}` of module `{self.module}` is computed by its `__getattr__`"

    def help(self) -> str:
        """What to write instead."""
        return f"bind `{self.name}` in the module, or import it from where it is defined"


class FileNotRead(Diagnostic, code="PSC933"):
    """A file cannot be read.

    It has vanished, may not be read, is no regular file, or is too large to be a program.  Nothing
    is known of what is in it.

    ## No example

    It is a matter of the file, not of what is written in it.
    """

    reason: str

    def message(self) -> str:
        """Why not."""
        return f"the file cannot be read: {self.reason}"


class CheckDied(Diagnostic, code="PSC934"):
    """The process that checked a file ended without an answer.

    It was stopped from outside, ran out of memory, or failed by a mistake of ours.  The other files
    were checked.

    ## No example

    If there were a program that shows it, it would be a test, and the mistake would be gone.
    """

    reason: str

    def message(self) -> str:
        """How it ended."""
        return f"the process that checked this file died: {self.reason}"

    def help(self) -> str:
        """What to do."""
        return "check this file alone, with `--jobs 1`"


class OnlyForTypeCheckers(Diagnostic, code="PSC935"):
    """A name that exists only for type checkers is used in a kernel.

    What is bound under `if TYPE_CHECKING:` may stand in annotations.  It is not there when the
    program runs, so nothing can be computed with it.

    ## Example

    ```py
    from typing import TYPE_CHECKING

    import pscdsl as psc
    from pscdsl import f32

    if TYPE_CHECKING:
        import numpy as np


    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return np.exp(x)
    ```

    ## Fix

    ```py
    import numpy as np

    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return np.exp(x)
    ```
    """

    name: str

    def message(self) -> str:
        """Which name."""
        return f"`{self.name}` is bound under `if TYPE_CHECKING:` only"

    def help(self) -> str:
        """What to write instead."""
        return "move its import out of the `if`"


class ImportsTooDeep(Diagnostic, code="PSC936"):
    """Names are imported from one module into another over too many steps.

    A name that is imported is looked up in the module that it comes from, and so on.  The number
    of such steps is bounded.

    ## No example

    It takes more files than an explanation has room for.
    """

    name: str
    limit: int

    def message(self) -> str:
        """Which name, and what the bound is."""
        return f"`{self.name}` is reached over more than {self.limit} modules"

    def help(self) -> str:
        """What to write instead."""
        return "import it from the module that defines it"


# PSC92x: settings in `pyproject.toml` that mean nothing.


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


# PSC92x: comments that silence findings, where they silence nothing or cannot be read.


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


# PSC9xx: budgets that cannot be read, or decided.


class BudgetNotProven(Diagnostic, code="PSC906"):
    """A budget is neither proved nor refuted.

    A budget holds if it is proven for every size that the signature and the kernel's
    preconditions admit.  This one was neither proven nor refuted: how many steps a loop takes is
    known only when it runs, static values were tried by examples alone, an operation does not say
    what it costs, or the proof is out of reach.

    * `psc.while_loop(..., max_steps=n)` counts with n steps.
    * `psc.Static[Literal[1, 2]]` names all values, and then each is tried.
    * An `assert` on the sizes, such as `assert n >= k`, may be what the proof lacks.
    * A simpler bound is easier to prove than one with quotients, minima and maxima.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel  # psc: budget flops <= 2000*n
    def root(a: f32["n"]) -> f32["n"]:
        return psc.while_loop(
            lambda x: np.max(np.abs(x * x - a)) > 1e-6, lambda x: (x + a / x) / 2, a
        )
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel  # psc: budget flops <= 2000*n
    def root(a: f32["n"]) -> f32["n"]:
        return psc.while_loop(
            lambda x: np.max(np.abs(x * x - a)) > 1e-6, lambda x: (x + a / x) / 2, a, max_steps=100
        )
    ```
    """

    budget: str
    reason: str
    instead: str = ""

    def message(self) -> str:
        """Which, and why."""
        return f"it is not known whether `{self.budget}` holds: {self.reason}"

    def help(self) -> str | None:
        """What would decide it."""
        return self.instead or None


class MalformedBudget(Diagnostic, code="PSC926"):
    """A budget that cannot be read, or that belongs to no kernel.

    A budget is a comment on the line of a kernel's `def` or decorator, or above it, or the
    decorator's argument:

        @psc.kernel  # psc: budget flops <= 2*n*d, peak <= 8*n*d
        @psc.kernel(budget="gradient flops <= 6*n*d")

    On the left stands what `pscdsl cost` prints: `flops`, `bytes`, `arguments`, `results`, `peak`
    (also called `memory`), or these of the gradient in the first parameter, `gradient flops`.  On
    the right stands a size, in the names of the signature; the name of a group of axes, `b` of
    `*b`, is the product of their sizes.  What cannot be read bounds nothing, so it is an error.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel(budget="flop <= 2*m")
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel(budget="flops <= 2*n")
    def double(x: f32["n"]) -> f32["n"]:
        return 2 * x
    ```
    """

    reason: str
    instead: str = ""

    def message(self) -> str:
        """What is wrong with it."""
        return f"malformed budget: {self.reason}"

    def help(self) -> str | None:
        """The form."""
        return self.instead or "write `# psc: budget flops <= 2*n`"


# PSC945 to PSC947: what keeps `pscdsl discover` from finding a signature.


class ObjectParameter(Diagnostic, code="PSC945"):
    """A parameter is an object or a dict, and what is in it is not known.

    The arguments of a kernel are arrays, static values and trees of them.  A function that takes
    the attributes or items of a parameter of no declared class may be pure, but nothing says
    what these are.  `pscdsl discover` reports
    it; in a kernel every parameter has a type.

    ## No example

    `check` never reports it: a kernel declares the types of its parameters.
    """

    name: str
    how: str
    attributes: tuple[str, ...]

    def message(self) -> str:
        """Which parameter, and how it is used."""
        if self.how == "default":
            return f"the default of `{self.name}` is no array, number or string"
        return f"`{self.name}` is used as {'a dict' if self.how == 'dict' else 'an object'}"

    def label(self) -> str:
        """What is used of it."""
        return ", ".join(f"`.{attribute}`" for attribute in self.attributes[:4])

    def help(self) -> str:
        """What to write."""
        if self.how == "default":
            return "give it in the call, or declare a record class for it"
        if self.how == "dict":
            return f"declare the keys of `{self.name}` by a `TypedDict`, with a type for each array"
        return f"declare a `psc.Record` with these fields as the type of `{self.name}`"


class OpenParameters(Diagnostic, code="PSC946"):
    """A function takes any number of arguments, `*args` or `**options`.

    Each parameter of a kernel has one type; a tuple of any length is one argument.  `pscdsl
    discover` reports it; `check` reports such a kernel as PSC105.

    ## No example

    `check` has its own code for a parameter without a type.
    """

    name: str

    def message(self) -> str:
        """Which parameter."""
        return f"`{self.name}` takes any number of arguments"

    def help(self) -> str:
        """What to write."""
        if self.name.startswith("**"):
            return "name the parameters that are used"
        return f"take one tuple: `{self.name.lstrip('*')}: tuple[f32, ...]`"


class SearchEnded(Diagnostic, code="PSC947"):
    """No signature was found within the trials or the time that a function is given.

    `pscdsl discover` bounds its work for each function and each file.  A function that it gives up
    on may well be PSC: write the types of its parameters, and `pscdsl check` answers for them.

    ## No example

    Which functions are beyond the search changes as the search gets better.
    """

    function: str
    trials: int

    def message(self) -> str:
        """How far it went."""
        return f"no signature of `{self.function}` was found in {self.trials} trials"

    def help(self) -> str:
        """What to write."""
        return "annotate its parameters with the types that are meant, and check it"
