"""Writing sizes more simply by what is known of their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pscdsl.typing import dims
from pscdsl.typing.dims import DimTooLarge, Factor, Kind, Size
from pscdsl.typing.facts import Fact

_MAX_ROUNDS = 4


def definitions(facts: Iterable[Fact]) -> dict[str, Size]:
    """The names that facts define outright, `n == 2*m`, each by names that are not defined."""
    found: dict[str, Size] = {}
    for fact in facts:
        if fact.relation != "==":
            continue
        try:
            fact = fact.substitute(found)
            for side, other in ((fact.left, fact.right), (fact.right, fact.left)):
                name = dims.single_factor(side, "name")
                if name is not None and name not in dims.names(other):
                    env = {str(name): other}
                    found = {key: dims.substitute(size, env) for key, size in found.items()} | env
                    break
        except (DimTooLarge, ZeroDivisionError):
            continue
    return found


class Simplifier:
    """Replaces defined names, and drops operations whose result is proven to be an operand."""

    def __init__(self, definitions: Mapping[str, Size], proves: Callable[[Fact], bool]) -> None:
        self.definitions = definitions
        self.proves = proves

    def simplify(self, size: Size) -> Size:
        """An equal size that is simpler, or the size itself."""
        try:
            for _ in range(_MAX_ROUNDS):
                before, size = size, self._once(size)
                if size == before:
                    break
        except (DimTooLarge, ZeroDivisionError):
            pass
        return size

    def _once(self, size: Size) -> Size:
        total: Size = 0
        for monomial, coefficient in dims.as_terms(dims.substitute(size, self.definitions)):
            product: Size = coefficient
            for factor in sorted(monomial, key=lambda factor: factor.kind != "name"):
                if factor.kind == "name":
                    product = product * dims.variable(factor)
                else:
                    product = self._times_operation(product, factor)
            total = total + product
        return total

    def _times_operation(self, product: Size, operation: Factor) -> Size:
        """The product with one more factor, an operation."""
        kind, args = operation.kind, [self._once(arg) for arg in operation.args]
        if kind == "min" or kind == "max":
            return product * dims.apply(kind, self._undominated(kind, args))
        dividend, divisor = args
        if self.proves(Fact("<=", 0, dividend)) and self.proves(Fact("<", dividend, divisor)):
            return 0 if kind == "//" else product * dividend
        multiple = product % divisor == 0 if divisor != 0 else False
        if (kind == "%" or multiple) and self.proves(Fact("==", dividend % divisor, 0)):
            return 0 if kind == "%" else product // divisor * dividend
        return product * dims.apply(kind, args)

    def _undominated(self, kind: Kind, args: list[Size]) -> list[Size]:
        """The operands of a minimum or maximum, without those that another makes needless."""
        kept = list(args)
        for arg in args:
            others = [other for other in kept if other is not arg]
            if any(self._dominates(kind, other, arg) for other in others):
                kept = others
        return kept

    def _dominates(self, kind: Kind, a: Size, b: Size) -> bool:
        return self.proves(Fact("<=", a, b) if kind == "min" else Fact("<=", b, a))
