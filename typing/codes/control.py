"""PSC5xx: control flow: carries, branches, predicates, batches, trees of arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self

from pscdsl.typing.diagnostics import Diagnostic

# PSC5xx: carries, branches and predicates of control flow.


COMBINING: Final = frozenset({"psc.associative_scan", "psc.map_reduce"})
"""Functions that apply a function again to rows that it has combined."""


class CarryMismatch(Diagnostic, code="PSC504"):
    """The carry that a loop's body returns differs from the one it receives."""

    loop: str
    path: str
    given: str
    returned: str
    why: str
    rewrite: str = ""

    def message(self) -> str:
        if self.loop in COMBINING:
            part = f"part {self.path} of " if self.path else ""
            what = f"{part}what `{self.loop}` combines"
            return f"{what} is {self.given}, but {self.returned} is returned"
        part = f"carry{self.path}" if self.path else "carry"
        return f"{part} of `{self.loop}` is {self.given}, but the body returns {self.returned}"

    def label(self) -> str:
        return self.why

    def help(self) -> str | None:
        return self.rewrite or None


class BranchMismatch(Diagnostic, code="PSC505"):
    """The branches of a conditional return different types."""

    construct: str
    path: str
    first: str
    other: str
    names: tuple[str, str]
    why: str
    rewrite: str = ""

    def message(self) -> str:
        part = f" at result{self.path}" if self.path else ""
        return (
            f"branches of `{self.construct}` differ{part}: {self.names[0]} returns {self.first}, "
            f"{self.names[1]} returns {self.other}"
        )

    def label(self) -> str:
        return self.why

    def help(self) -> str | None:
        return self.rewrite or None


class ValuesDiffer(Diagnostic, code="PSC525"):
    """A name that is read after a condition has values of different types on its paths."""

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
        return f"{self.names} is {self.first} on one path, and {self.other} on another"

    def label(self) -> str:
        return self.why or "this condition decides"

    def help(self) -> str | None:
        return "give it one type on both paths, or use it in each of them"


class ReturnsOnSomePaths(Diagnostic, code="PSC526"):
    """A function returns a value on some paths only."""

    function: str

    def message(self) -> str:
        return f"`{self.function}` returns a value on some paths, and ends without one on others"

    def help(self) -> str | None:
        return "return a value of the same type at the end"


class LoopChangesType(Diagnostic, code="PSC527"):
    """A step of a loop changes the type of a name."""

    name: str
    """The name, as it is written."""
    before: str
    after: str
    why: str = ""
    rewrite: str = ""
    """The replacement, if it is not a name of another type."""

    def message(self) -> str:
        return f"{self.name} is {self.before} before the loop, and {self.after} after a step"

    def label(self) -> str:
        return self.why or "this loop is not unrolled"

    def help(self) -> str | None:
        if self.rewrite:
            return self.rewrite
        return "begin with the type that a step leaves, or use another name in the loop"


class UnboundAfterLoop(Diagnostic, code="PSC528"):
    """A name that only a loop's body binds is read after the loop, which may have no step."""

    name: str

    def message(self) -> str:
        return f"`{self.name}` is bound only in the body of this loop, which may have no step"

    def help(self) -> str | None:
        return f"bind `{self.name}` before the loop, to an array of the type that it has in it"


class EndlessLoop(Diagnostic, code="PSC529"):
    """A `while` loop never ends."""

    names: tuple[str, ...] = ()
    """The names in the test, if the body changes none of them."""

    def message(self) -> str:
        if self.names:
            known = " or ".join(f"`{name}`" for name in self.names)
            return f"nothing ends this loop: its body never changes {known}"
        return "nothing ends this loop"

    def help(self) -> str | None:
        if self.names:
            return f"let each step change `{self.names[0]}`, or leave with `break` or `return`"
        return "leave it with `break` or `return`, or give it a test that becomes false"


class BadPredicate(Diagnostic, code="PSC506"):
    """The predicate of a conditional or loop is not a bool scalar."""

    construct: str
    found: str

    def message(self) -> str:
        return f"the predicate of `{self.construct}` is {self.found}, not a bool scalar"

    def help(self) -> str:
        return "reduce it with `np.any` or `np.all`, or compare it: `x != 0`"


class BadBody(Diagnostic, code="PSC507"):
    """A combinator gets an argument of the wrong kind."""

    combinator: str
    needs: str
    found: str

    def message(self) -> str:
        return f"`{self.combinator}` needs {self.needs}, not {self.found}"


class LoopLengthsDiffer(Diagnostic, code="PSC508"):
    """The arrays that a loop runs over have different lengths, or there are none."""

    combinator: str
    lengths: tuple[str, ...]
    why: str
    instead: str = ""

    def help(self) -> str | None:
        return self.instead or None

    def message(self) -> str:
        if not self.lengths:
            return f"`{self.combinator}` has nothing to run over: give `xs` or `length=`"
        lengths = ", ".join(self.lengths)
        if len(self.lengths) == 1:
            return f"`{self.combinator}` cannot run over a scalar"
        return f"`{self.combinator}` cannot run over arrays of different lengths: {lengths}"

    def label(self) -> str:
        return self.why


# PSC5xx: axes of batches.


class AxisMismatch(Diagnostic, code="PSC515"):
    """`in_axes` or `out_axes` does not fit the arguments or results."""

    given: str
    why: str
    instead: str = ""
    """The advice that fits, if it is known."""
    function: str = "psc.vmap"

    def message(self) -> str:
        return f"`{self.function}`: {self.given}, but {self.why}"

    def help(self) -> str | None:
        if self.instead:
            return self.instead
        if self.given.startswith("out_axes"):
            return "`out_axes` is one axis for all results, or a tree of axes like the result's"
        if self.given.startswith("axis_size"):
            return None
        rows = "rows" if self.function == "psc.vmap" else "devices"
        return (
            "`in_axes` is one axis for all arguments, or a tuple with one for each: an axis, a "
            f"tree of axes, or None for what is the same for all {rows}"
        )


class BatchSizesDiffer(Diagnostic, code="PSC516"):
    """The axes that `psc.vmap` maps over differ in size."""

    sizes: tuple[str, ...]
    why: str

    def message(self) -> str:
        return f"`psc.vmap` maps over axes of sizes {', '.join(self.sizes)}"

    def label(self) -> str:
        return self.why

    def help(self) -> str | None:
        return "an argument that is the same for all rows has None in `in_axes`"


# PSC5xx: solutions of equations, with the derivatives of these.


class SolutionMismatch(Diagnostic, code="PSC523"):
    """The functions of an equation and of its solution do not fit together."""

    combinator: str
    what: str
    given: str
    wanted: str
    why: str = ""

    def message(self) -> str:
        return (
            f"{self.what} of `{self.combinator}` gives {self.given}, "
            f"but the equation is one of {self.wanted}"
        )

    def label(self) -> str:
        return self.why


# PSC5xx: trees of arguments and results that do not fit.


class ArgumentTree(Diagnostic, code="PSC501"):
    """An argument does not have the declared structure."""

    function: str
    argument: str
    declared: str
    given: str
    namesake: str = ""
    """The class of both, where two classes have one name."""
    why: str = ""
    """The keys of a dict that differ."""

    def label(self) -> str:
        return self.why

    def message(self) -> str:
        other = f"another class `{self.namesake}`, as it was defined before or after"
        return (
            f"argument `{self.argument}` of `{self.function}` is {self.given}"
            f"{f' of {other}' if self.namesake else ''}, but {self.declared} is declared"
        )

    def help(self) -> str | None:
        if self.namesake:
            return (
                f"define the kernel again where `{self.namesake}` was defined anew, "
                "and make the record of that class"
            )
        if self.declared != "None":
            return None
        return "leave it out; if `psc.vmap` made the kernel, its `in_axes` have no item for it"


class ReturnTree(Diagnostic, code="PSC502"):
    """The result of a kernel does not have the declared structure."""

    function: str
    path: str
    declared: str
    found: str
    why: str
    bound: bool = False
    """Whether it is a variable, and a label says where it was bound."""

    def message(self) -> str:
        part = f"result{self.path} of " if self.path else ""
        return f"{part}`{self.function}` returns {self.found}, but {self.declared} is declared"

    def label(self) -> str:
        return self.why

    def help(self) -> str | None:
        forgotten = self.found == "None" and not self.path and not self.bound
        return "end with `return …`: a function without it returns None" if forgotten else None


class NotATree(Diagnostic, code="PSC503"):
    """A value that is not a tree of arrays is used as one."""

    what: str
    found: str
    rewrite: str = ""

    def message(self) -> str:
        return f"{self.what} holds {self.found}, which is neither an array nor a tree of arrays"

    def help(self) -> str | None:
        return self.rewrite or None


class TreesDiffer(Diagnostic, code="PSC509"):
    """Trees that are combined leaf by leaf differ in structure."""

    function: str
    position: int
    path: str
    first: str
    other: str
    why: str
    surplus: bool = False
    """Whether the tree has a value where the first one has None."""

    def message(self) -> str:
        place = f" at `{self.path}`" if self.path else ""
        return (
            f"`{self.function}`: tree {self.position} has {self.other}{place}, "
            f"where the first has {self.first}"
        )

    def label(self) -> str:
        return self.why

    def help(self) -> str | None:
        if not self.surplus:
            return None
        return (
            "give the tree with the arrays first: the function is then given None for what "
            "another has not"
        )


class TreeArgumentsDiffer(Diagnostic, code="PSC524"):
    """Two arguments with the same type variable are different trees."""

    function: str
    variable: str
    argument: str
    given: str
    other: str
    wanted: str
    why: str

    def message(self) -> str:
        return (
            f"argument `{self.argument}` of `{self.function}` is {self.given}, but "
            f"`{self.other}` is {self.wanted}, and both are of type {self.variable}"
        )

    def label(self) -> str:
        return self.why
