"""PSC93x: what cannot be read or decided about the files of a project."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


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

    def message(self) -> str:
        """Which name."""
        return f"`{self.name}` is bound in several places of its module"

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
