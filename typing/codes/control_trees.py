"""PSC5xx: trees of arguments and results that do not fit."""

from __future__ import annotations

from pscdsl.typing.diagnostics import Diagnostic


class ArgumentTree(Diagnostic, code="PSC501"):
    """An argument does not have the declared structure.

    For instance an array where a record is declared, a tuple of another length, or an array
    where a static value is needed.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def add(pair: tuple[f32["n"], f32["n"]]) -> f32["n"]:
        return pair[0] + pair[1]


    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return add((x, x, x))
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def add(pair: tuple[f32["n"], f32["n"]]) -> f32["n"]:
        return pair[0] + pair[1]


    @psc.kernel
    def f(x: f32["n"]) -> f32["n"]:
        return add((x, x))
    ```
    """

    function: str
    argument: str
    declared: str
    given: str
    namesake: str = ""
    """The class of both, where two classes have one name."""

    def message(self) -> str:
        """Which argument, and both."""
        other = f"another class `{self.namesake}`, as it was defined before or after"
        return (
            f"argument `{self.argument}` of `{self.function}` is {self.given}"
            f"{f' of {other}' if self.namesake else ''}, but {self.declared} is declared"
        )

    def help(self) -> str | None:
        """What to do where nothing may be given, or the class has been defined anew."""
        if self.namesake:
            return (
                f"define the kernel again where `{self.namesake}` was defined anew, "
                "and make the record of that class"
            )
        if self.declared != "None":
            return None
        return "leave it out; if `psc.vmap` made the kernel, its `in_axes` have no item for it"


class ReturnTree(Diagnostic, code="PSC502"):
    """The result of a kernel does not have the declared structure.

    The declared structure of the result (an array, a tuple of so many items, a record) is what
    callers rely on.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> tuple[f32["n"], f32]:
        return x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> tuple[f32["n"], f32]:
        return x, x.sum()
    ```
    """

    function: str
    path: str
    declared: str
    found: str
    why: str

    def message(self) -> str:
        """The part and both."""
        part = f"result{self.path} of " if self.path else ""
        return f"{part}`{self.function}` returns {self.found}, but {self.declared} is declared"

    def label(self) -> str:
        """What differs."""
        return self.why

    def help(self) -> str | None:
        """What is forgotten most often."""
        forgotten = self.found == "None" and not self.path
        return "end with `return …`: a function without it returns None" if forgotten else None


class NotATree(Diagnostic, code="PSC503"):
    """A value that is not a tree of arrays is used as one.

    Arguments, results, carries and branches hold arrays, in tuples, records, maps and vectors of
    them, and `None`.  Functions, modules and classes are known while checking, but they are nothing
    that a program could pass on.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def make(x: f32["n"]) -> f32["n"]:
        return lambda y: x + y
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def make(x: f32["n"], y: f32["n"]) -> f32["n"]:
        return x + y
    ```
    """

    what: str
    found: str
    rewrite: str = ""

    def message(self) -> str:
        """What and where."""
        return f"{self.what} holds {self.found}, which is neither an array nor a tree of arrays"

    def help(self) -> str | None:
        """What holds arrays in its place."""
        return self.rewrite or None


class TreesDiffer(Diagnostic, code="PSC509"):
    """Trees that are combined leaf by leaf differ in structure.

    `psc.tree.map` of several trees gives the function one array of each, so all have arrays at the
    same places, in the same tuples and records.  Only where the first has an array, another may
    have None, which is then given to the function: gradients have None where nothing has one.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    class Layer(psc.Record):
        w: f32["i o"]
        b: f32["o"]


    @psc.kernel
    def f(p: Layer, g: tuple[f32["i o"], f32["o"]]) -> Layer:
        return psc.tree.map(lambda x, y: x - y, p, g)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    class Layer(psc.Record):
        w: f32["i o"]
        b: f32["o"]


    @psc.kernel
    def f(p: Layer, g: tuple[f32["i o"], f32["o"]]) -> Layer:
        return psc.tree.map(lambda x, y: x - y, p, Layer(*g))
    ```
    """

    function: str
    position: int
    path: str
    first: str
    other: str
    why: str
    surplus: bool = False
    """Whether there is something where the first tree has None."""

    def message(self) -> str:
        """The function, the place and both."""
        place = f" at `{self.path}`" if self.path else ""
        return (
            f"`{self.function}`: tree {self.position} has {self.other}{place}, "
            f"where the first has {self.first}"
        )

    def label(self) -> str:
        """What differs."""
        return self.why

    def help(self) -> str | None:
        """That None may stand in the later trees."""
        if not self.surplus:
            return None
        return (
            "give the tree with the arrays first: the function is then given None for what "
            "another has not"
        )


class TreeArgumentsDiffer(Diagnostic, code="PSC524"):
    """Two arguments of one type variable are different trees.

    A type variable stands for any tree of arrays, and within one call for one: what is declared as
    `T` has the same structure, shapes and dtypes everywhere.

    ## Example

    ```py
    from typing import TypeVar

    import pscdsl as psc
    from pscdsl import f32

    T = TypeVar("T", bound=psc.Tree[f32])


    @psc.kernel
    def descend(p: T, gradient: T, rate: f32) -> T:
        return psc.tree.map(lambda x, g: x - rate * g, p, gradient)


    @psc.kernel
    def f(w: f32["n m"], b: f32["n"]) -> tuple[f32["n m"], f32["n"]]:
        return descend((w, b), (b, w), 0.1)
    ```

    ## Fix

    ```py
    from typing import TypeVar

    import pscdsl as psc
    from pscdsl import f32

    T = TypeVar("T", bound=psc.Tree[f32])


    @psc.kernel
    def descend(p: T, gradient: T, rate: f32) -> T:
        return psc.tree.map(lambda x, g: x - rate * g, p, gradient)


    @psc.kernel
    def f(w: f32["n m"], b: f32["n"]) -> tuple[f32["n m"], f32["n"]]:
        return descend((w, b), (w, b), 0.1)
    ```
    """

    function: str
    variable: str
    argument: str
    given: str
    other: str
    wanted: str
    why: str

    def message(self) -> str:
        """Both arguments, and what they share."""
        return (
            f"argument `{self.argument}` of `{self.function}` is {self.given}, but "
            f"`{self.other}` is {self.wanted}, and both are of type {self.variable}"
        )

    def label(self) -> str:
        """What differs."""
        return self.why
