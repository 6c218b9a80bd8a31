"""Checks that a typed program is well formed, as every transformation must keep it.

Each value is defined once, in the block that uses it, and has the type that its primitive gives it;
sizes are declared by the function; results have the types of the signature.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import cast

from pscdsl._src.analysis.show import show_equation
from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Literal
from pscdsl._src.primitives.control import same_type
from pscdsl._src.primitives.elementwise import Elementwise
from pscdsl.typing import dims
from pscdsl.typing.array_types import ArrayType, Type, leaves
from pscdsl.typing.diagnostics import Failure, Span
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import Kind


class VerificationError(Exception):
    """A typed program is not well formed: a mistake of the compiler."""

    def __init__(self, function: Function, equation: Equation | None, reason: str) -> None:
        self.function = function
        self.equation = equation
        self.reason = reason
        place = "" if equation is None else f": `{_text(equation)}`"
        super().__init__(f"{self.span}: in {function.name}{place}: {reason}")

    @property
    def span(self) -> Span:
        """The place in the source that it came from."""
        return self.function.span if self.equation is None else self.equation.span


def verify(function: Function) -> None:
    """Check a function and all that it calls; a VerificationError if something is wrong."""
    due, met = [function], {function}
    while due:
        for callee in _Verifier(due.pop()).run():
            if callee not in met:
                met.add(callee)
                due.append(callee)


def _parts(value: object) -> Iterator[object]:
    """Yield a primitive's fields, tuples taken apart."""
    if isinstance(value, tuple):
        for item in cast("tuple[object, ...]", value):
            yield from _parts(item)
    elif isinstance(value, Primitive):
        if is_dataclass(value) and not isinstance(value, Elementwise):
            for field in fields(value):
                yield from _parts(getattr(value, field.name))
    else:
        yield value


def _text(equation: Equation) -> str:
    try:
        return show_equation(equation)
    except Exception:  # the equation is broken, so its text may be too
        return equation.primitive.label


class _Verifier:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.facts = function.facts
        self.sizes = frozenset(function.dims)
        self.callees: dict[Function, None] = {}
        self.checked: set[Block] = set()
        self.known: set[ArrayType] = set()
        """Types whose sizes are known to be declared."""

    def fail(self, equation: Equation | None, reason: str) -> VerificationError:
        return VerificationError(self.function, equation, reason)

    def run(self) -> Iterable[Function]:
        """Check everything but the callees, which are the result."""
        function = self.function
        if len(self.sizes) != len(function.dims):
            raise self.fail(None, f"sizes are declared twice: {' '.join(function.dims)}")
        for fact in function.facts.facts:
            self.sizes_declared(None, f"the assertion {fact}", fact.names())
        for var in function.body.params:
            self.type_declared(None, "a parameter", var.type)
        self.block(function.body, None)
        if function.parameters:
            wanted = [leaf for _, tree in function.parameters for leaf in leaves(tree)]
            self.agree(None, "parameters", function.body.in_types, wanted)
        if function.result is not None:
            self.signature(function.result)
        return self.callees

    def signature(self, result: Type) -> None:
        self.agree(None, "results", self.function.body.out_types, tuple(leaves(result)))

    def block(self, block: Block, outer: Equation | None) -> None:
        """Check a block; `outer` is the equation that holds it."""
        if block in self.checked:
            return
        self.checked.add(block)
        defined: set[Atom] = set(block.params)
        if len(defined) != len(block.params):
            raise self.fail(outer, "a block has the same parameter twice")
        for equation in block.equations:
            self.use(equation, equation.inputs, defined)
            for var in equation.outputs:
                if var in defined:
                    raise self.fail(equation, f"{var!r} is defined twice")
                defined.add(var)
            self.equation(equation)
        self.use(outer, block.results, defined)

    def use(self, equation: Equation | None, atoms: Iterable[Atom], defined: set[Atom]) -> None:
        for atom in atoms:
            if isinstance(atom, Literal):
                if not fits(atom):
                    raise self.fail(equation, f"the literal {atom!r} does not fit its type")
            elif atom not in defined:
                raise self.fail(equation, f"{atom!r} is not defined in this block")

    def equation(self, equation: Equation) -> None:
        primitive = equation.primitive
        given = tuple([atom.type for atom in equation.inputs])
        try:
            derived = primitive.type_rule(self.facts, *given)
        except Failure as failure:
            reason = "; ".join(diagnostic.message() for diagnostic in failure.diagnostics)
            raise self.fail(equation, reason) from failure
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
            raise self.fail(equation, f"the type rule fails: {error!r}") from error
        self.agree(equation, "results", tuple([var.type for var in equation.outputs]), derived)
        for var in equation.outputs:
            self.type_declared(equation, "a result", var.type)
        for part in _parts(primitive):
            if isinstance(part, Dim):
                self.sizes_declared(equation, f"the size {part}", dims.names(part))
            elif isinstance(part, ArrayType):
                self.type_declared(equation, "a type", part)
            elif isinstance(part, Function):
                self.callees[part] = None
        for inner in primitive.blocks():
            for var in inner.params:
                self.type_declared(equation, "a parameter", var.type)
            self.block(inner, equation)

    def agree(
        self,
        equation: Equation | None,
        what: str,
        given: tuple[ArrayType, ...],
        wanted: Iterable[ArrayType],
    ) -> None:
        wanted = tuple(wanted)
        if given == wanted:
            return
        if len(given) != len(wanted) or not all(
            same_type(self.facts, one, other) for one, other in zip(given, wanted, strict=True)
        ):
            raise self.fail(equation, f"{what} are {_types(given)}, not {_types(wanted)}")

    def type_declared(self, equation: Equation | None, what: str, given: ArrayType) -> None:
        if given not in self.known:
            self.sizes_declared(equation, f"{what} of type {given}", given.names())
            self.known.add(given)

    def sizes_declared(self, equation: Equation | None, what: str, used: frozenset[str]) -> None:
        if not used <= self.sizes:
            missing = ", ".join(sorted(used - self.sizes))
            raise self.fail(equation, f"{what} mentions sizes that are not declared: {missing}")


def fits(literal: Literal) -> bool:
    """Return whether the dtype of a literal can hold its value."""
    value, dtype = literal.value, literal.type.dtype
    if dtype.kind is Kind.BOOL:
        return type(value) is bool
    if dtype.kind is Kind.INT:
        return type(value) is int and dtype.range[0] <= value <= dtype.range[1]
    return type(value) is (float if dtype.kind is Kind.FLOAT else complex)


def _types(types: Iterable[ArrayType]) -> str:
    return f"({', '.join(map(str, types))})"
