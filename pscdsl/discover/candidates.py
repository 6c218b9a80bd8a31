"""Candidates: a type for each parameter of a function, and facts about the sizes in them.

A search begins with a fresh size for each axis.  What an elaboration then demands makes sizes
equal, or becomes a precondition: a candidate says no more than was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from pscdsl.frontend.annotations import renamed
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.dims import Dim, Size, apply, as_terms, names, variable
from pscdsl.typing.dtypes import CLASSES, dtype, is_dtype_name
from pscdsl.typing.notation import DimSpec
from pscdsl.typing.signatures import (
    ArraySpec,
    DTypeClass,
    OptionalSpec,
    Parameter,
    RepeatedSpec,
    Signature,
    Spec,
    StaticSpec,
    TupleSpec,
    arrays_of,
)

FLOAT, INT, BOOL = "Float", "Int", "Bool"
_MARK = "__"


def array(name: str, *dims: DimSpec) -> ArraySpec:
    """An array type with a dtype or a class of dtypes."""
    found = dtype(name) if is_dtype_name(name) else DTypeClass(name, CLASSES[name])
    return ArraySpec(found, dims)


def fresh(parameter: str, axis: int | str) -> Size:
    """A size that belongs to one axis of one parameter."""
    return variable(f"{parameter}{_MARK}{axis}")


def owner(size: str) -> str:
    """The parameter that a fresh size belongs to; empty for other names."""
    return size.rpartition(_MARK)[0]


def map_arrays(spec: Spec, change: Callable[[ArraySpec], ArraySpec]) -> Spec:
    """The same type with other arrays; records are left as they are declared."""
    if isinstance(spec, ArraySpec):
        return change(spec)
    if isinstance(spec, TupleSpec):
        return TupleSpec(tuple(map_arrays(each, change) for each in spec.items))
    if isinstance(spec, RepeatedSpec | OptionalSpec):
        return replace(spec, item=map_arrays(spec.item, change))
    return spec


@dataclass(frozen=True)
class Candidate:
    """One guess of a signature."""

    specs: tuple[tuple[str, Spec], ...]
    facts: tuple[Fact, ...] = ()
    positions: tuple[int, ...] = ()
    """Which of its alternatives each parameter has."""
    cost: int = field(default=0, compare=False)
    """How much more it asks for than the first guess, and how far it is from the evidence."""

    def signature(self, name: str, keyword_only: frozenset[str] = frozenset()) -> Signature:
        """The candidate as a signature without a declared result."""
        parameters = (Parameter(each, spec, each in keyword_only) for each, spec in self.specs)
        return Signature(name, tuple(parameters), None)

    def with_spec(self, parameter: str, spec: Spec, position: int, cost: int) -> Candidate:
        """Another type for one parameter."""
        specs = tuple((n, spec if n == parameter else s) for n, s in self.specs)
        index = [n for n, _ in self.specs].index(parameter)
        positions = (*self.positions[:index], position, *self.positions[index + 1 :])
        return replace(self, specs=specs, positions=positions, cost=self.cost + cost)

    def renamed(self, sizes: Mapping[str, Size]) -> Candidate:
        """Sizes in place of names, everywhere."""
        env = dict(sizes)
        specs = tuple((name, renamed(spec, env)) for name, spec in self.specs)
        facts = (fact.substitute(env) for fact in self.facts)
        kept = tuple(f for f in dict.fromkeys(facts) if f.names() or not f.holds({}))
        return replace(self, specs=specs, facts=kept)

    def requiring(self, fact: Fact) -> Candidate | None:
        """The candidate that also meets a demand; None if nothing can be done about it.

        To make two names one costs nothing: with these ranks there is no other way.
        """
        if not fact.names():
            return None
        if fact.relation == "==":
            for name, size in _solutions(fact, self.statics()):
                if _plain(size):
                    cost = 0 if str(size).isidentifier() else 3
                    return replace(self.renamed({name: size}), cost=self.cost + cost)
        if fact in self.facts:
            return None
        cost = 6 if fact.relation == "==" and fact.right != 0 else 2
        return replace(self, facts=(*self.facts, fact), cost=self.cost + cost)

    def statics(self) -> frozenset[str]:
        """The static parameters: they are no sizes to be replaced."""
        return frozenset(name for name, spec in self.specs if isinstance(spec, StaticSpec))

    def sizes(self) -> Iterator[str]:
        """The names of sizes in order of appearance."""
        found: dict[str, None] = {}
        for _, spec in self.specs:
            for each in arrays_of(spec):
                for dim in each.dims:
                    if isinstance(dim, Dim):
                        found.update(dict.fromkeys(sorted(names(dim))))
        return iter(found)


def _solutions(fact: Fact, statics: frozenset[str]) -> Iterator[tuple[str, Size]]:
    """The names that an equation defines, each by the others; later names by earlier ones."""
    gap = fact.left - fact.right
    if isinstance(gap, int):
        return
    for monomial, coefficient in reversed(as_terms(gap)):
        name = str(monomial[0]) if len(monomial) == 1 and monomial[0].kind == "name" else ""
        if name and name not in statics and abs(coefficient) == 1:
            rest = gap - coefficient * variable(name)
            if name not in names(rest):
                yield name, -rest if coefficient == 1 else rest


def _plain(size: Size) -> bool:
    """Whether a size may stand in an annotation: not negative, sums and products of names."""
    if isinstance(size, int):
        return size >= 1
    return all(coefficient > 0 or not monomial for monomial, coefficient in as_terms(size))


def generalised(size: Size, value: int, name: str) -> Size:
    """A size with a name in place of a number: the size itself, or what it is divided by."""
    if isinstance(size, int):
        return variable(name) if size == value else size
    total: Size = 0
    for monomial, coefficient in as_terms(size):
        product: Size = coefficient
        for factor in monomial:
            if factor.kind == "name":
                product = product * variable(factor)
            else:
                args = [generalised(each, value, name) for each in factor.args]
                product = product * apply(factor.kind, args)
        total = total + product
    return size if total == size else total
