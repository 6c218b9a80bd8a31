"""PSC9xx: what the analysis cannot see or the compiler cannot do yet, and our own mistakes."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic, Severity


class NotSupported(Diagnostic, code="PSC900"):
    """A construct has a meaning, but is not supported yet.

    The program is not wrong: the compiler lacks a part.  The message names it; often there is
    another way to write the same.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n+2"]:
        return np.pad(x, 1, mode="maximum")
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32["n+2"]:
        return np.pad(x, 1, constant_values=np.max(x))
    ```
    """

    what: str
    instead: str = ""

    def message(self) -> str:
        """What is missing."""
        return f"not supported yet: {self.what}"

    def help(self) -> str | None:
        """Another way, where there is one."""
        return self.instead or None


class NoRule(Diagnostic, code="PSC901"):
    """A primitive has no rule for the transformation that was asked for.

    A user-defined primitive has the rules that its author registers; a transformation that needs
    another one stops here.  In reverse mode, what a derivative does with tangents is transposed:
    that must be linear, and so must be what a rule for it does.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.primitive
    def cube(x: f32["n"]) -> f32["n"]:
        return x * x * x


    @psc.kernel
    def slope(x: f32["n"]) -> f32["n"]:
        return psc.grad(lambda x: np.sum(cube(x)))(x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.primitive
    def cube(x: f32["n"]) -> f32["n"]:
        return x * x * x


    @cube.jvp
    def _(outputs, primals, tangents):
        (x,), (dx,) = primals, tangents
        return 3 * x * x * dx


    @psc.kernel
    def slope(x: f32["n"]) -> f32["n"]:
        return psc.grad(lambda x: np.sum(cube(x)))(x)
    ```
    """

    primitive: str
    rule: str
    instead: str = ""

    def message(self) -> str:
        """Which rule is missing."""
        return f"not supported yet: primitive `{self.primitive}` has no rule for {self.rule}"

    def help(self) -> str | None:
        """How to register it."""
        return self.instead or None


class MissingOnTarget(Diagnostic, code="PSC953"):
    """A primitive cannot be computed on the kind of device that a program is compiled for.

    The kernel is right, and other devices compute it.  The message names the primitive, and help
    another way.

    ## No example

    It comes from compiling for a device, not from checking: `pscdsl compile --target h100 FILE`
    reports it of a kernel that calls `np.linalg.eig`.
    """

    primitive: str
    target: str
    instead: str

    def message(self) -> str:
        """Which primitive is missing where."""
        return f"not supported yet: `{self.primitive}` on devices of target `{self.target}`"

    def help(self) -> str | None:
        """What to do instead."""
        return self.instead


class IllTypedEquation(Diagnostic, code="PSC902"):
    """A primitive was given operands that its type rule refuses.

    Library functions check their arguments before they build equations, so this message comes
    from a user-defined primitive, or from a mistake in the compiler.

    ## No example

    No part of the language shows it, only a primitive of the user with a wrong call.
    """

    primitive: str
    reason: str

    def message(self) -> str:
        """What does not fit."""
        return f"`{self.primitive}` does not fit its operands: {self.reason}"


class KernelNotChecked(Diagnostic, code="PSC903", severity=Severity.NOTE):
    """A kernel cannot be checked from its source alone.

    It is defined inside a function or class, and what its free names stand for is decided when
    that function runs: a parameter without a declared type, or a name that is bound twice.  It is
    checked when it is first called, or by `kernel.check()`.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    def make(scale):
        @psc.kernel
        def scaled(x: f32["n"]) -> f32["n"]:
            return scale * x

        return scaled
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def scaled(x: f32["n"], scale: f32) -> f32["n"]:
        return scale * x
    ```
    """

    kernel_name: str
    reason: str
    decorator: str = ""
    """The qualified name of the decorator that is the reason, if one is."""
    rewrite: str = (
        "declare the types of what it reads, or define it at module level and pass what it needs"
    )

    def message(self) -> str:
        """Which kernel."""
        return f"kernel `{self.kernel_name}` is not checked: {self.reason}"

    def help(self) -> str:
        """What to do."""
        return self.rewrite


class NoSource(Diagnostic, code="PSC904"):
    """The source of a function cannot be found, so that it cannot be checked.

    Python keeps the text of files, of cells in notebooks and IPython, of `python -c`, and from
    Python 3.13 on of what is typed at its own prompt.  It keeps none of what `exec` runs, what it
    reads from standard input, and what is typed at the prompt of an older Python.  Functions of C
    extensions have none.  Where a text can be read, the function is checked like any other.

    ## No example

    Only a function that is loaded can lack its source: a file that is checked has one.
    """

    function: str
    remedy: str = "define it in a file"

    def message(self) -> str:
        """Which function."""
        return f"the source of `{self.function}` cannot be found"

    def help(self) -> str:
        """What to do."""
        return self.remedy


class UnknownFunction(Diagnostic, code="PSC910"):
    """A function is called that the checker cannot read.

    It belongs to a module that is neither known nor among the files that are checked, so nobody can
    say whether it is pure, or what types it gives.

    ## Example

    ```py
    import skimage

    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def smooth(x: f32["n m"]) -> f32["n m"]:
        return skimage.filters.gaussian(x)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def smooth(x: f32["n m"], blurred: f32["n m"]) -> f32["n m"]:
        return 0.5 * (x + blurred)
    ```
    """

    function: str
    here: str = ""
    """The qualified name of what does the same here."""
    instead: str = ""
    """What is written in its place, if that is known."""
    decorator: str = ""
    """The qualified name of the decorator of which nothing is known, if the function has one."""

    def message(self) -> str:
        """Which function."""
        if self.decorator:
            made = f"`{self.function}` is what `@{self.decorator}` makes of a function"
            return f"{made}, and nothing is known of that"
        return f"`{self.function}` cannot be called in a kernel: nothing is known of it"

    def help(self) -> str:
        """What to write instead."""
        if self.decorator and not self.instead:
            return "leave the decorator out: a kernel compiles the functions that it calls"
        return self.instead or "call it outside and pass its result as an argument"


class InternalError(Diagnostic, code="PSC999"):
    """The compiler failed; this is a bug of pscdsl, not of the program.

    Please report it with the program that shows it.

    ## No example

    If there were a program that shows it, it would be a test, and the mistake would be gone.
    """

    what: str

    def message(self) -> str:
        """What happened."""
        return f"internal error: {self.what}"


class NestedTooDeeply(Diagnostic, code="PSC950"):
    """The program is nested too deeply to be checked.

    The checker walks through a program as deep as it is nested, within a bound that no program
    written by hand comes near.  Long chains of operators and `elif` are nested as well.  Split a
    generated program into steps with names, into functions, or into a loop.

    ## No example

    It would be thousands of brackets long.
    """

    what: str

    def message(self) -> str:
        """What is nested."""
        return f"{self.what} is nested too deeply to be checked"

    def help(self) -> str:
        """What to do."""
        return "split it into steps with names, or use a loop"


class TooLargeToCompile(Diagnostic, code="PSC952"):
    """A program is larger than XLA can compile.

    XLA writes out every call of a kernel, so that kernels which call each other many times grow to
    more operations than fit into memory.  An array has fewer than 2**59 elements, for any sizes
    that a call gives.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def few(x: f32["n"]) -> f32["n"]:
        for _ in (1,) * 100:
            x = np.sin(x)
        return x


    @psc.kernel
    def many(x: f32["n"]) -> f32["n"]:
        for _ in (1,) * 100:
            x = few(x)
        return x


    @psc.kernel
    def too_many(x: f32["n"]) -> f32["n"]:
        for _ in (1,) * 100:
            x = many(x)
        return x
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def few(x: f32["n"]) -> f32["n"]:
        for _ in range(100):
            x = np.sin(x)
        return x


    @psc.kernel
    def many(x: f32["n"]) -> f32["n"]:
        for _ in range(10_000):
            x = few(x)
        return x
    ```
    """

    what: str
    instead: str = ""

    def message(self) -> str:
        """What is too large."""
        return f"{self.what} is too large to be compiled"

    def help(self) -> str:
        """What to do."""
        return self.instead


class TooManyFindings(Diagnostic, code="PSC951"):
    """A kernel has so many findings that the rest is not checked.

    A report of that length is read by nobody, and most of it tends to have one cause.  Correct what
    is found first, and check again.

    ## No example

    It would be hundreds of mistakes long.
    """

    limit: int

    def message(self) -> str:
        """How much."""
        return f"more than {self.limit} findings: the rest is not checked"

    def help(self) -> str:
        """What to do."""
        return "mend the first ones, and check again"


class UnknownValue(Diagnostic, code="PSC911"):
    """A value is used that the checker cannot read.

    It belongs to a module that is neither known nor among the files that are checked, or it is
    computed when its module is imported, in a way that cannot be followed from the source.

    ## Example

    ```py
    import skimage

    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def scale(x: f32["n"]) -> f32["n"]:
        return skimage.SCALE * x
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
    here: str = ""
    """The qualified name of what is the same here."""
    instead: str = ""
    """What is written in its place, if that is known."""

    def message(self) -> str:
        """Which value."""
        return f"the value of `{self.name}` is not known from the source"

    def help(self) -> str:
        """What to write instead."""
        return self.instead or "pass it as an argument"


class ChoicesSampled(Diagnostic, code="PSC905", severity=Severity.NOTE):
    """A signature has so many choices that only some were tried.

    Dtype classes, ranks, lengths of tuples and static values are tried in every combination up to
    a bound; beyond it, a sample is tried.  Each call is still checked, exactly, with its own.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import Num, f32


    @psc.kernel
    def count(a: Num["*a"], b: Num["*b"], c: Num["*c"]) -> f32:
        return a.ndim + b.ndim + c.ndim
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import Num, f32


    @psc.kernel
    def count(a: Num["n"], b: f32["*b"], c: f32["*c"]) -> f32:
        return a.ndim + b.ndim + c.ndim
    ```
    """

    function: str
    tried: int
    total: int

    def message(self) -> str:
        """How many."""
        return f"`{self.function}` was tried with {self.tried} of {self.total} choices"

    def help(self) -> str:
        """What to do."""
        return "leave less open, for instance by naming a dtype or a rank"


# PSC917: what was captured changes where the analysis sees nothing.


class CapturedStateChanged(Diagnostic, code="PSC917"):
    """What a kernel captured is not what it was when the kernel was first used.

    What a kernel captures is constant from its first use on: it is compiled into the program. A
    call compares it with what it was: names of modules, cells, functions, classes, what lists,
    dicts, sets and records hold, and arrays that cannot be locked. If one of them has changed, the
    call raises this, and does not answer with the old value.

    ## No example

    It is found at run time. The checker reports the writes that it sees as PSC206.
    """

    name: str
    function: str

    def message(self) -> str:
        """Which name."""
        return (
            f"captured state changed: `{self.name}` is not what it was when `{self.function}` "
            f"was compiled"
        )

    def help(self) -> str:
        """What to write instead."""
        return "pass it to the kernel as an argument"


class CaptureTooLarge(Diagnostic, code="PSC954"):
    """A kernel captures something that can be written, and is too large to be compared.

    What a kernel captures is constant from its first use on. Arrays are locked. If something else
    may write the memory of an array (a view that was made before, a buffer, a file that is mapped,
    another library), its contents are compared at each call, up to 1 MiB. Lists, dicts and sets are
    compared item by item, up to 10,000 items. `psc.constant` makes a copy that nothing writes.

    ## No example

    It is found at run time, where an array has its size and its views.
    """

    name: str
    what: str

    def message(self) -> str:
        """Which value, and why."""
        return f"`{self.name}` is {self.what}: too large to be compared at each call"

    def help(self) -> str:
        """What to write instead."""
        copy = f"`psc.constant({self.name})`"
        return f"capture a copy that nothing writes, {copy}, or pass it as an argument"


# PSC907 and on: loaded code that is not what its text says.


class TextChanged(Diagnostic, code="PSC907"):
    """A loaded function differs from the text of its file.

    A kernel is read from the text of its functions.  If a file was changed after Python loaded it,
    the text is that of another program than the one that runs; so a function is read only if its
    text compiles to the very code that Python has of it, and if its annotations are those that
    Python evaluated.  A kernel that was read before stays what it was.

    ## No example

    Only a function that is loaded can differ from its text: a file that is checked is the text.
    """

    function: str
    where: str

    def message(self) -> str:
        """Which function."""
        return f"`{self.function}` is not what its text says: {self.where} was changed since"

    def help(self) -> str:
        """What to do."""
        return "load it again: `importlib.reload` its module, run its cell again, or restart Python"


class SeveralFunctions(Diagnostic, code="PSC908"):
    """A line has several lambdas, and their code has no columns to distinguish them.

    With `python -X no_debug_ranges`, or `PYTHONNODEBUGRANGES` in the environment, code does not
    know in which columns of its text it stands.

    ## No example

    Only a function that is loaded can lack its columns: a file that is checked is the text.
    """

    line: str

    def message(self) -> str:
        """Where."""
        return f"several lambdas begin at {self.line}, and code has no columns here"

    def help(self) -> str:
        """What to do."""
        return "write them on lines of their own, or run Python without `-X no_debug_ranges`"


# PSC913 and on: functions that are vouched for with `psc.pure`.


class VouchedResultUnknown(Diagnostic, code="PSC913"):
    """A function that `psc.pure` declares pure does not say what it returns.

    `psc.pure` says that a function is pure, so that a kernel may call it without its being looked
    into.  A check never calls it, so it needs a declared result: arrays whose sizes are numbers, or
    the names of its own integer parameters.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    import scipy.special
    from pscdsl import f32


    @psc.pure
    def nodes(n: int):
        return scipy.special.roots_legendre(n)[0].astype(np.float32)


    @psc.kernel
    def shifted(x: f32["16"]) -> f32["16"]:
        return x + nodes(16)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    import scipy.special
    from pscdsl import f32


    @psc.pure
    def nodes(n: int) -> f32["n"]:
        return scipy.special.roots_legendre(n)[0].astype(np.float32)


    @psc.kernel
    def shifted(x: f32["16"]) -> f32["16"]:
        return x + nodes(16)
    ```
    """

    function: str
    size: str = ""

    def message(self) -> str:
        """Which function."""
        if self.size:
            return f"the size {self.size} of the result of `{self.function}` is not known here"
        return f"it is not known what `{self.function}` returns, for which `psc.pure` vouches"

    def help(self) -> str:
        """What to write instead."""
        return 'declare its result, for instance `-> f32["3 n"]` with an argument `n: int`'


class VouchedNeedsValues(Diagnostic, code="PSC914"):
    """A function that `psc.pure` declares pure gets an array or a size that is not known yet.

    It is called while the kernel is elaborated, and never on the device: what it is given must be
    known by then.  A function of arrays is a helper of the language, or a primitive with a
    translation of its own.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.pure
    def smooth(x) -> f32["3"]:
        return x


    @psc.kernel
    def f(x: f32["3"]) -> f32["3"]:
        return smooth(x)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.primitive
    def smooth(x: f32["3"]) -> f32["3"]:
        return x


    @smooth.translation
    def emit(hlo, x):
        return x


    @psc.kernel
    def f(x: f32["3"]) -> f32["3"]:
        return smooth(x)
    ```
    """

    function: str
    found: str

    def message(self) -> str:
        """Which function, and what it is given."""
        return f"`{self.function}` is called before the kernel runs, when {self.found} is not known"

    def help(self) -> str:
        """What to write instead."""
        return "call it outside and pass its result, or make it a `psc.primitive`"


class VouchedResultDiffers(Diagnostic, code="PSC915"):
    """A function that `psc.pure` declares pure does not return what it declares.

    It was called while a kernel was elaborated, and its result is not the one that is declared.

    ## No example

    A check does not call the function: only the program that runs can see what it returns.
    """

    function: str
    problem: str

    def message(self) -> str:
        """Which function, and what it does."""
        return f"`{self.function}` {self.problem}"


class RevealedType(Diagnostic, code="PSC918", severity=Severity.NOTE):
    """The type of an expression that `reveal_type` asks for.

    Nothing is wrong: the note says what the checker knows of the argument.  The value of
    `reveal_type(x)` is that of `x`.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def gram(x: f32["n d"]) -> f32["d d"]:
        return psc.reveal_type(x.T @ x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def gram(x: f32["n d"]) -> f32["d d"]:
        return x.T @ x
    ```
    """

    types: tuple[str, ...]
    """The type, or those for the choices of what the signature leaves open."""

    def message(self) -> str:
        """The type."""
        return f"the type is {' or '.join(self.types)}"


class Vouched(Diagnostic, code="PSC916", severity=Severity.NOTE):
    """A kernel calls a function that `psc.pure` declares pure.

    Nothing is wrong: the note lists what the check has to believe.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.pure
    def table() -> f32["3"]:
        return np.load("table.npy")


    @psc.kernel
    def weigh(x: f32["3"]) -> f32:
        return table() @ x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def weigh(x: f32["3"], table: f32["3"]) -> f32:
        return table @ x
    ```
    """

    function: str

    def message(self) -> str:
        """Which function."""
        return f"`{self.function}` is taken to be pure: `psc.pure` vouches for it"
