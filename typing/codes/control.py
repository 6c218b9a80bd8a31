"""PSC5xx: control flow: carries, branches, predicates, batches, trees of arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self

from pscdsl.typing.diagnostics import Diagnostic

# PSC5xx: carries, branches and predicates of control flow.


COMBINING: Final = frozenset({"psc.associative_scan", "psc.map_reduce"})
"""What gives rows that were combined to the same function again."""


class CarryMismatch(Diagnostic, code="PSC504"):
    """The carry that a loop's body returns differs from the one it gets.

    What one step returns is what the next one gets, so both have the same structure, shapes and
    dtypes.  So do rows and what `psc.associative_scan` and `psc.map_reduce` combine them to.
    Python numbers in the initial carry take the dtype that the body needs.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def total(xs: f32["t n"]) -> f32["n"]:
        init = np.zeros(3, np.float32)
        carry, _ = psc.scan(lambda c, x: (c.sum() + x, None), init, xs)
        return carry
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def total(xs: f32["t n"]) -> f32["n"]:
        init = np.zeros(xs.shape[1], np.float32)
        carry, _ = psc.scan(lambda c, x: (c + x, None), init, xs)
        return carry
    ```
    """

    loop: str
    path: str
    given: str
    returned: str
    why: str
    rewrite: str = ""

    def message(self) -> str:
        """The leaf and both types."""
        if self.loop in COMBINING:
            part = f"part {self.path} of " if self.path else ""
            what = f"{part}what `{self.loop}` combines"
            return f"{what} is {self.given}, but {self.returned} is returned"
        part = f"carry{self.path}" if self.path else "carry"
        return f"{part} of `{self.loop}` is {self.given}, but the body returns {self.returned}"

    def label(self) -> str:
        """What differs."""
        return self.why

    def help(self) -> str | None:
        """The cast or reshape."""
        return self.rewrite or None


class BranchMismatch(Diagnostic, code="PSC505"):
    """The branches of a conditional return different types.

    Which branch runs is decided at run time, but what comes after is checked once, so all branches
    return the same structure, shapes and dtypes.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import bool_, f32


    @psc.kernel
    def pick(p: bool_, x: f32["n"], y: f32["m"]) -> f32["n"]:
        return psc.cond(p, lambda: x, lambda: y)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import bool_, f32


    @psc.kernel
    def pick(p: bool_, x: f32["n"], y: f32["n"]) -> f32["n"]:
        return psc.cond(p, lambda: x, lambda: y)
    ```
    """

    construct: str
    path: str
    first: str
    other: str
    names: tuple[str, str]
    why: str
    rewrite: str = ""

    def message(self) -> str:
        """The leaf and both types."""
        part = f" at result{self.path}" if self.path else ""
        return (
            f"branches of `{self.construct}` differ{part}: {self.names[0]} returns {self.first}, "
            f"{self.names[1]} returns {self.other}"
        )

    def label(self) -> str:
        """What differs."""
        return self.why

    def help(self) -> str | None:
        """The cast or reshape."""
        return self.rewrite or None


class ValuesDiffer(Diagnostic, code="PSC525"):
    """A name is read that the paths of a condition leave with values of different types.

    Which path is taken is decided when the program runs, but what comes after is checked once.  A
    name that both paths bind has one structure, one shape and one dtype after them, if it is read.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def pick(t: f32, x: f32["n"], y: f32["m"]) -> f32["n"]:
        if t > 0:
            z = x
        else:
            z = y
        return z
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def pick(t: f32, x: f32["n"], y: f32["n"]) -> f32["n"]:
        if t > 0:
            z = x
        else:
            z = y
        return z
    ```
    """

    names: str
    """The name, as it is written."""
    first: str
    other: str
    why: str = ""

    @classmethod
    def of(cls, types: Sequence[object], why: str = "") -> Self:
        """The finding about values of these types, of a name that is not known yet."""
        first = str(types[0])
        other = next((str(each) for each in types if str(each) != first), first)
        return cls(names="the value", first=first, other=other, why=why)

    def message(self) -> str:
        """The name and both types."""
        return f"{self.names} is {self.first} on one path, and {self.other} on another"

    def label(self) -> str:
        """What differs."""
        return self.why or "this condition decides"

    def help(self) -> str | None:
        """What to do."""
        return "give it one type on both paths, or use it in each of them"


class ReturnsOnSomePaths(Diagnostic, code="PSC526"):
    """A function returns a value on some paths only.

    Which path is taken is decided when the program runs, and a result is an array in any case.
    Python returns None where a function ends without `return`.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(t: f32) -> f32:
        if t > 0:
            return t
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(t: f32) -> f32:
        if t > 0:
            return t
        return -t
    ```
    """

    function: str

    def message(self) -> str:
        """What happens."""
        return f"`{self.function}` returns a value on some paths, and ends without one on others"

    def help(self) -> str | None:
        """What to do."""
        return "return a value of the same type at the end"


class LoopChangesType(Diagnostic, code="PSC527"):
    """A step of a loop leaves a name with another type than it begins with.

    A loop that is not unrolled is elaborated as one step: what a step leaves is what the next one
    begins with, so a name that is bound before the loop keeps its structure, shape and dtype.  A
    number that starts as Python's own takes the dtype that the body gives it.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        s = x[0]
        for i in range(x.shape[0]):
            s = s * x
        return s
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        s = x[0]
        for i in range(x.shape[0]):
            s = s * x[i]
        return s
    ```
    """

    name: str
    """The name, as it is written."""
    before: str
    after: str
    why: str = ""
    rewrite: str = ""
    """What to write instead, if it is not a name of another type."""

    def message(self) -> str:
        """The name and both types."""
        return f"{self.name} is {self.before} before the loop, and {self.after} after a step"

    def label(self) -> str:
        """What differs."""
        return self.why or "this loop is not unrolled"

    def help(self) -> str | None:
        """What to do."""
        if self.rewrite:
            return self.rewrite
        return "begin with the type that a step leaves, or use another name in the loop"


class UnboundAfterLoop(Diagnostic, code="PSC528"):
    """A name is read after a loop that may have no step, and only its body binds it.

    Python raises `NameError` where the loop has had no step.  Bind the name before the loop, or say
    with an `assert` that there is a step.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        for i in range(1, x.shape[0]):
            last = x[i] - x[i - 1]
        return last
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32["n"]) -> f32:
        assert x.shape[0] >= 2
        for i in range(1, x.shape[0]):
            last = x[i] - x[i - 1]
        return last
    ```
    """

    name: str

    def message(self) -> str:
        """The name."""
        return f"`{self.name}` is bound only in the body of this loop, which may have no step"

    def help(self) -> str | None:
        """What to do."""
        return f"bind `{self.name}` before the loop, to an array of the type that it has in it"


class EndlessLoop(Diagnostic, code="PSC529"):
    """A `while` loop never ends.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32) -> f32:
        while True:
            x = x * x
        return x
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def f(x: f32) -> f32:
        while True:
            x = x * x
            if x < 1:
                break
        return x
    ```
    """

    names: tuple[str, ...] = ()
    """The names in the test, if the body changes none of them."""

    def message(self) -> str:
        """What does not happen."""
        if self.names:
            known = " or ".join(f"`{name}`" for name in self.names)
            return f"nothing ends this loop: its body never changes {known}"
        return "nothing ends this loop"

    def help(self) -> str | None:
        """What to do."""
        if self.names:
            return f"let each step change `{self.names[0]}`, or leave with `break` or `return`"
        return "leave it with `break` or `return`, or give it a test that becomes false"


class BadPredicate(Diagnostic, code="PSC506"):
    """The predicate of a conditional or loop is not a bool scalar.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def flip(x: f32["n"]) -> f32["n"]:
        return psc.cond(x < 0, lambda: -x, lambda: x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def flip(x: f32["n"]) -> f32["n"]:
        return psc.cond(np.any(x < 0), lambda: -x, lambda: x)
    ```
    """

    construct: str
    found: str

    def message(self) -> str:
        """What it is."""
        return f"the predicate of `{self.construct}` is {self.found}, not a bool scalar"

    def help(self) -> str:
        """What to write."""
        return "reduce it with `np.any` or `np.all`, or compare it: `x != 0`"


class BadBody(Diagnostic, code="PSC507"):
    """A combinator gets an argument of the wrong kind.

    The body of `psc.scan` returns a pair: the next carry, and what is collected of this step.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def total(xs: f32["t"]) -> f32:
        carry, _ = psc.scan(lambda c, x: c + x, 0.0, xs)
        return carry
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def total(xs: f32["t"]) -> f32:
        carry, _ = psc.scan(lambda c, x: (c + x, None), 0.0, xs)
        return carry
    ```
    """

    combinator: str
    needs: str
    found: str

    def message(self) -> str:
        """What it needs, and what it got."""
        return f"`{self.combinator}` needs {self.needs}, not {self.found}"


class LoopLengthsDiffer(Diagnostic, code="PSC508"):
    """The arrays that a loop runs over have different lengths, or none.

    A loop takes one row of each array per step, so all leading axes have the same size.

    ## Example

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def products(xs: f32["s n"], ys: f32["t n"]) -> f32["s"]:
        return psc.map(lambda x, y: x @ y, xs, ys)
    ```

    ## Fix

    ```py
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def products(xs: f32["t n"], ys: f32["t n"]) -> f32["t"]:
        return psc.map(lambda x, y: x @ y, xs, ys)
    ```
    """

    combinator: str
    lengths: tuple[str, ...]
    why: str
    instead: str = ""

    def help(self) -> str | None:
        """What to write instead, where that is known."""
        return self.instead or None

    def message(self) -> str:
        """The lengths."""
        if not self.lengths:
            return f"`{self.combinator}` has nothing to run over: give `xs` or `length=`"
        lengths = ", ".join(self.lengths)
        if len(self.lengths) == 1:
            return f"`{self.combinator}` cannot run over a scalar"
        return f"`{self.combinator}` cannot run over arrays of different lengths: {lengths}"

    def label(self) -> str:
        """What differs."""
        return self.why


# PSC5xx: axes of batches.


class AxisMismatch(Diagnostic, code="PSC515"):
    """`in_axes` or `out_axes` of `psc.vmap` does not fit the arguments or results.

    `in_axes` is one axis for all arguments, or a tuple with an axis, or a tree of axes, for each;
    None stands for an argument that is the same for all rows.  `out_axes` is the same for results.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def sums(x: f32["b n"]) -> f32["b"]:
        return psc.vmap(np.sum, in_axes=2)(x)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def sums(x: f32["b n"]) -> f32["b"]:
        return psc.vmap(np.sum, in_axes=0)(x)
    ```
    """

    given: str
    why: str
    instead: str = ""
    """What fits, if that is known."""

    def message(self) -> str:
        """What is given, and what it meets."""
        return f"`psc.vmap`: {self.given}, but {self.why}"

    def help(self) -> str | None:
        """What they may be."""
        if self.instead:
            return self.instead
        if self.given.startswith("out_axes"):
            return "`out_axes` is one axis for all results, or a tree of axes like the result's"
        if self.given.startswith("axis_size"):
            return None
        return (
            "`in_axes` is one axis for all arguments, or a tuple with one for each: an axis, a "
            "tree of axes, or None for what is the same for all rows"
        )


class BatchSizesDiffer(Diagnostic, code="PSC516"):
    """The axes that `psc.vmap` maps over differ in size.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def dots(x: f32["b n"], w: f32["n"]) -> f32["b"]:
        return psc.vmap(np.dot)(x, w)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def dots(x: f32["b n"], w: f32["n"]) -> f32["b"]:
        return psc.vmap(np.dot, in_axes=(0, None))(x, w)
    ```
    """

    sizes: tuple[str, ...]
    why: str

    def message(self) -> str:
        """The sizes."""
        return f"`psc.vmap` maps over axes of sizes {', '.join(self.sizes)}"

    def label(self) -> str:
        """How they differ."""
        return self.why

    def help(self) -> str | None:
        """How to say that an argument is shared."""
        return "an argument that is the same for all rows has None in `in_axes`"


# PSC5xx: solutions of equations, with the derivatives of these.


class SolutionMismatch(Diagnostic, code="PSC523"):
    """The functions of an equation and of its solution do not fit together.

    `psc.custom_linear_solve` and `psc.custom_root` solve as many equations as there are unknowns:
    the map, or the function, returns what has the types of its argument, and so do the functions
    that solve.

    ## Example

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def least_squares(a: f32["m n"], b: f32["n"]) -> f32["n"]:
        def solve(matvec, b):
            return np.linalg.solve(a.T @ a, b)

        return psc.custom_linear_solve(lambda x: a @ x, b, solve, symmetric=True)
    ```

    ## Fix

    ```py
    import numpy as np
    import pscdsl as psc
    from pscdsl import f32


    @psc.kernel
    def least_squares(a: f32["m n"], b: f32["n"]) -> f32["n"]:
        def solve(matvec, b):
            return np.linalg.solve(a.T @ a, b)

        return psc.custom_linear_solve(lambda x: a.T @ (a @ x), b, solve, symmetric=True)
    ```
    """

    combinator: str
    what: str
    given: str
    wanted: str
    why: str = ""

    def message(self) -> str:
        """Which function, and what the equation needs."""
        return (
            f"{self.what} of `{self.combinator}` gives {self.given}, "
            f"but the equation is one of {self.wanted}"
        )

    def label(self) -> str:
        """What differs."""
        return self.why


# PSC5xx: trees of arguments and results that do not fit.


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
    why: str = ""
    """Which keys of a dict are other ones."""

    def label(self) -> str:
        """What differs."""
        return self.why

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
    bound: bool = False
    """Whether it is a variable, and a label says where it was bound."""

    def message(self) -> str:
        """The part and both."""
        part = f"result{self.path} of " if self.path else ""
        return f"{part}`{self.function}` returns {self.found}, but {self.declared} is declared"

    def label(self) -> str:
        """What differs."""
        return self.why

    def help(self) -> str | None:
        """What is forgotten most often."""
        forgotten = self.found == "None" and not self.path and not self.bound
        return "end with `return …`: a function without it returns None" if forgotten else None


class NotATree(Diagnostic, code="PSC503"):
    """A value that is not a tree of arrays is used as one.

    Arguments, results, carries and branches hold arrays, in tuples, lists, dicts with string keys,
    records, maps and vectors of them, and `None`.  Functions, modules and classes are known while
    checking, but they are nothing that a program could pass on.

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
        """Says that None may stand in the later trees."""
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
