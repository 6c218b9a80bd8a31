"""PSC1xx: names, annotations and calls that have no meaning in a kernel."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic
from pscdsl.typing.dtypes import is_dtype_name

LOOPS = "a `for` statement over the array or the `range` loops for any size, as does `psc.map`"


class NotPython(Diagnostic, code="PSC100"):
    """A file is not Python source text.

    It has a syntax error, is no text at all, or is too large to be a program.  Nothing else is
    said of such a file, because nothing in it has a meaning.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]
        return 2 * x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return 2 * x
    ```
    """

    reason: str

    def message(self) -> str:
        """Why not."""
        return f"not Python source: {self.reason}"


class Unsupported(Diagnostic, code="PSC101"):
    """A construct of Python has no meaning in a kernel.

    A kernel is a mathematical function of its arguments.  Exceptions, generators, coroutines,
    classes and context managers describe how a computation proceeds on the host, so they have no
    counterpart in the program that runs on the device.  A `try` is accepted whose body raises
    nothing under NumPy either: arithmetic of arrays in floating point, and functions of them.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def invert(x: f32) -> f32:
        try:
            return 1 / x
        except ZeroDivisionError:
            return x
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def invert(x: f32) -> f32:
        zero = x == 0
        return np.where(zero, x, 1 / np.where(zero, 1, x))
    ```
    """

    what: str
    rewrite: str

    def message(self) -> str:
        """Which construct."""
        return f"{self.what} has no meaning in a kernel"

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None


class UnknownName(Diagnostic, code="PSC102"):
    """A name is not defined, or not yet.

    Names are looked up as Python does it: in the function, in the functions around it, in the
    module, then among Python's own.  A name that a function assigns anywhere is local to it, and
    cannot be read before its first assignment.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def scale(x: f32["n"]) -> f32["n"]:
        return factor * x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def scale(x: f32["n"], factor: f32) -> f32["n"]:
        return factor * x
    ```
    """

    name: str
    unassigned: bool

    def message(self) -> str:
        """Which name."""
        if self.unassigned:
            return f"`{self.name}` is used before it is assigned"
        return f"`{self.name}` is not defined"

    def help(self) -> str:
        """What to write."""
        if self.unassigned:
            return "assign it first, on every way that leads here"
        size = dict(self.spelling).get(self.name)
        if size is not None:
            return f"`{self.name}` names a size in annotations alone: here it is `{size}`"
        if is_dtype_name(self.name):
            return f"`from pscdsl import {self.name}`"
        return "import or define it, or take it as a parameter"


class NoSuchAttribute(Diagnostic, code="PSC103"):
    """A value has no attribute of this name, or none that has a meaning in a kernel.

    Arrays have the attributes and methods of NumPy's arrays that are pure; records have their
    fields and methods; modules have their names.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def total(x: f32["n"]) -> f32:
        return x.summ()
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def total(x: f32["n"]) -> f32:
        return x.sum()
    ```
    """

    owner: str
    attribute: str
    known: tuple[str, ...] = ()
    instead: str = ""
    """What is written in its place, if that is known."""

    def message(self) -> str:
        """Which attribute of what."""
        return f"{self.owner} has no attribute `{self.attribute}`"

    def help(self) -> str | None:
        """What to write instead, or names that are alike."""
        from difflib import get_close_matches  # most findings guess nothing

        if self.instead:
            return self.instead
        near = get_close_matches(self.attribute, self.known, 1)
        return f"did you mean `{near[0]}`?" if near else None


class BadAnnotation(Diagnostic, code="PSC104"):
    """An annotation is not a type of arrays, or of trees of arrays.

    A kernel is checked from its signature alone, so every parameter says its dtype and its shape:
    `f32["n d"]`, `float` for a number, a record class or a `TypedDict`, a tuple or a list of such
    types, or `psc.Static[...]` for a value that is known when the kernel is compiled.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def double(x: np.ndarray) -> f32["n"]:
        return 2 * x
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

    text: str
    reason: str
    rewrite: str

    def message(self) -> str:
        """What is wrong with it."""
        return f"annotation `{self.text}`: {self.reason}"

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None


class MissingAnnotation(Diagnostic, code="PSC105"):
    """A parameter of a kernel has no type.

    The types of a kernel's parameters are what it is checked for; without them there is nothing to
    check.  Functions that are not kernels need no types: they are checked where they are called.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def double(x) -> f32["n"]:
        return 2 * x
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

    function: str
    name: str
    owner: str = ""
    """The class that it is the first parameter of a method of, which is no record."""

    def message(self) -> str:
        """Which parameter."""
        if self.name.startswith("*"):
            return f"kernel `{self.function}` takes `{self.name}`, which has no fixed types"
        return f"parameter `{self.name}` of kernel `{self.function}` has no type"

    def help(self) -> str:
        """What to write."""
        if self.name.startswith("*"):
            return "take a tuple or a record instead"
        if self.owner:
            return (
                f"make a record of the class `{self.owner}`, whose fields have types: derive it "
                "from `psc.Record`, or decorate it with `@dataclass(frozen=True)`"
            )
        return f'give it a type, for instance `{self.name}: f32["n"]`'


class NotStatic(Diagnostic, code="PSC109"):
    """A value must be known at check time, and is not.

    Lists, dicts and the shapes of results are worked out while a kernel is checked, once for all
    sizes.  So a list has a length that is known; a size that the caller decides is not.  A `for`
    statement needs no such length: over a `range` of any size it is a loop of the program.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def power(x: f32["n n"]) -> f32["n n"]:
        for _ in list(range(x.shape[0])):
            x = x @ x
        return x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def power(x: f32["n n"]) -> f32["n n"]:
        for _ in range(x.shape[0]):
            x = x @ x
        return x
    ```
    """

    what: str
    rewrite: str = ""

    def message(self) -> str:
        """What."""
        return f"{self.what} is not known while checking"

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None


class NotCallable(Diagnostic, code="PSC111"):
    """A value is called and is not a function.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def total(x: f32["n"]) -> f32:
        return x.T()
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def total(x: f32["n"]) -> f32:
        return x.T.sum()
    ```
    """

    found: str
    instead: str = ""

    def message(self) -> str:
        """What is called."""
        return f"{self.found} cannot be called in a kernel"

    def help(self) -> str | None:
        """What to write instead, where that is known."""
        return self.instead or None


class BadArguments(Diagnostic, code="PSC120"):
    """A function is called with arguments that it does not accept.

    The number and the names of arguments are checked as Python does it, before anything else is
    said of the call.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def average(x: f32["n"]) -> f32:
        return np.mean(x, axes=0)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def average(x: f32["n"]) -> f32:
        return np.mean(x, axis=0)
    ```
    """

    function: str
    problem: str
    instead: str = ""

    def message(self) -> str:
        """What does not fit."""
        return f"`{self.function}` {self.problem}"

    def help(self) -> str | None:
        """What to write instead, where that is known."""
        return self.instead or None


# PSC1xx: Python asks for the value of an array, which is known only when the kernel runs.


class BranchOnArray(Diagnostic, code="PSC121"):
    """Python asks for one truth of an array that has axes, or for a truth while checking.

    `if`, `while`, `and`, `or`, `not` and conditional expressions decide on one number or bool,
    which may be computed: the program takes one of the ways when it runs.  An array with axes has a
    truth for each element, and NumPy raises an error for it.  `np.where` selects element by
    element, `&`, `|` and `~` combine conditions, and `.any()` or `.all()` make one truth of many.
    `assert` and `in` are decided while the kernel is checked, and can use no value of an array.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def flip(x: f32["n"]) -> f32["n"]:
        if x < 0:
            return -x
        return x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def flip(x: f32["n"]) -> f32["n"]:
        if (x < 0).all():
            return -x
        return x
    ```
    """

    construct: str
    found: str
    rewrite: str

    def message(self) -> str:
        """Which construct."""
        return (
            f"{self.construct} asks for the truth of an array ({self.found}), "
            "which is known only at run time"
        )

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None


class LoopOverArray(Diagnostic, code="PSC122"):
    """The rows of an array are taken for items whose number is known.

    A list has a length that is known while the kernel is checked, but how many rows an array has is
    for the caller to decide.  So `list`, `sorted`, a dict or a set comprehension, and the second
    `for` of a list comprehension cannot go through an array.  A `for` statement and the first `for`
    of a list comprehension are loops of the program, of any length.  `psc.map` applies a function
    to each row.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def norms(xs: f32["t n"]) -> f32["t"]:
        return np.stack([np.sqrt(x @ x) for x in list(xs)])
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def norms(xs: f32["t n"]) -> f32["t"]:
        return np.stack([np.sqrt(x @ x) for x in xs])
    ```
    """

    found: str

    def message(self) -> str:
        """Over what."""
        return f"the rows of an array ({self.found}) are not known one by one while checking"

    def help(self) -> str:
        """What to write instead."""
        return (
            "`[f(x) for x in xs]` goes through the rows of an array, and so does a `for` statement"
        )


class ArrayLeavesProgram(Diagnostic, code="PSC123"):
    """An array is turned into a Python number or list.

    `float(x)`, `int(x)`, `x.item()` and the functions of `math` make one number of one number: of
    an element, or of the result of a reduction.  `x.tolist()`, `max(x)` and `range(x)` need the
    values of an array while the kernel is checked.

    ## Example

    ```py
    import math

    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def roots(x: f32["n"]) -> f32["n"]:
        return math.sqrt(x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def roots(x: f32["n"]) -> f32["n"]:
        return np.sqrt(x)
    ```
    """

    function: str
    rewrite: str
    given: str = ""
    """What is given in the place of one number."""

    def message(self) -> str:
        """By what."""
        if self.given:
            return f"`{self.function}` needs {self.given}"
        return f"`{self.function}` needs the value of an array, which is known only at run time"

    def help(self) -> str | None:
        """What to write instead."""
        return self.rewrite or None
