"""Candidates: a type for each parameter of a function, and facts about the sizes in them.

A search begins with a fresh size for each axis.  What an elaboration then demands makes sizes
equal, or becomes a precondition: a candidate says no more than was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from pscdsl._src.frontend.specs.annotations import renamed
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.dims import Dim, Factor, Size, apply, as_terms, names, variable
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
        return TupleSpec(tuple(map_arrays(item, change) for item in spec.items))
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
        one_each = {name: (size,) for name, size in env.items()}
        specs = tuple((name, renamed(spec, one_each)) for name, spec in self.specs)
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
            for name, found in _solutions(fact, self.statics()):
                size = self.known().simplify(found)
                if _plain(size):
                    cost = 0 if str(size).isidentifier() else 3
                    return replace(self.renamed({name: size}), cost=self.cost + cost)
        if fact in self.facts:
            return None
        bound = fact.explicit_lower_bound()
        weaker = [each for each in self.facts if _is_weaker(each, bound)]
        kept = tuple(each for each in self.facts if each not in weaker)
        cost = 20 if fact.relation == "==" and fact.right != 0 else 2 if bound is None else 1
        cost = 0 if weaker else cost
        return replace(self, facts=(*kept, fact), cost=self.cost + cost)

    def known(self) -> Assumptions:
        """The facts, with the numbers that static parameters are at first."""
        env: dict[str, Size] = {}
        for name, spec in self.specs:
            value = spec.samples[0] if isinstance(spec, StaticSpec) and spec.samples else None
            if type(value) is int:
                env[name] = value
        return Assumptions(tuple(fact.substitute(env) for fact in self.facts))

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


def _is_weaker(fact: Fact, bound: tuple[str, int] | None) -> bool:
    """Whether a fact is a lower bound of the same name that is not above another."""
    own = fact.explicit_lower_bound()
    return own is not None and bound is not None and own[0] == bound[0] and own[1] <= bound[1]


def _solutions(fact: Fact, statics: frozenset[str]) -> Iterator[tuple[str, Size]]:
    """The names that an equation defines, each by the others; later names by earlier ones."""
    gap = _cancelled(fact.left - fact.right)
    if isinstance(gap, int):
        return
    for monomial, coefficient in reversed(as_terms(gap)):
        name = str(monomial[0]) if len(monomial) == 1 and monomial[0].kind == "name" else ""
        if name and name not in statics and abs(coefficient) == 1:
            rest = gap - coefficient * variable(name)
            if name not in names(rest):
                yield name, -rest if coefficient == 1 else rest


def _cancelled(gap: Size) -> Size:
    """A difference without a name that all of its terms are multiples of: no size is 0."""
    if isinstance(gap, int):
        return gap
    terms = as_terms(gap)
    first = terms[0][0]
    for factor in first:
        if factor.kind == "name" and all(factor in monomial for monomial, _ in terms):
            total: Size = 0
            for monomial, coefficient in terms:
                rest = list(monomial)
                rest.remove(factor)
                product: Size = coefficient
                for each in rest:
                    product = product * _factor(each)
                total = total + product
            return _cancelled(total)
    return gap


def _factor(factor: Factor) -> Size:
    if factor.kind == "name":
        return variable(factor)
    return apply(factor.kind, list(factor.args))


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
                args = [generalised(argument, value, name) for argument in factor.args]
                product = product * apply(factor.kind, args)
        total = total + product
    return size if total == size else total
