"""Largest elements that need not be NaN where an element is, as the results are so anyway.

`np.max` of numbers one of which is NaN is NaN, which takes a second reduction, or a slower one.
But if it is only subtracted before exponentials are taken, whose sums have the NaN too, as in
`e = np.exp(x - np.max(x))` and `e / np.sum(e)`, nobody sees whether it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pscdsl._src.ir.primitive import Primitive
from pscdsl._src.ir.program import Atom, Block, Equation, Function, Var, is_plain, mapped, rebuilt
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control.custom_derivatives import StopGradient
from pscdsl._src.primitives.reductions import Largest, Reduce
from pscdsl._src.primitives.shaping import Broadcast, Reshape, without

POISONED = frozenset((e.add, e.subtract, e.multiply, e.divide, e.negative, e.exp, e.log))
"""Functions of elements that are NaN whenever an operand is."""

# Note [Rows with NaN]
# The elements of an array x that are combined into one largest are a row here.  The largest of a
# row without NaN is the same, however it is computed, so rows with NaN are all that counts.  Of
# these the largest was NaN, and so was all that POISONED functions, repetitions and sums make of
# it: now that may be something else, which is called loose.  It is followed until it meets what is
# NaN in all of such a row anyway, or a sum or contraction of all elements of the row, one of which
# is NaN as it is in x.  If it meets anything else, or is a result, then the largest has to be NaN.


def with_largest(function: Function) -> Function:
    """The function, and all that it calls, with largest elements that keep NaN where it is seen.

    It has the same results, but derivatives are to be taken before.
    """
    blocks: dict[Block, Block] = {}

    def changed(current: Function, functions: Mapping[Function, Function]) -> Function:
        def of_block(block: Block) -> Block:
            cached = blocks.get(block)
            if cached is None:
                cached = blocks[block] = _in_block(_nested(block, of_block, functions.__getitem__))
            return cached

        body = of_block(current.body)
        return current if body is current.body else replace(current, body=body)

    return mapped(function, changed)


def _nested(
    block: Block, of_block: Callable[[Block], Block], of_function: Callable[[Function], Function]
) -> Block:
    """A block with other blocks and functions in it."""

    def of(equation: Equation) -> Equation:
        new = rebuilt(equation.primitive, of_block, of_function)
        if new is equation.primitive:
            return equation
        return Equation(new, equation.inputs, equation.outputs, equation.span)

    if all(is_plain(each.primitive) for each in block.equations):
        return block
    return _with(block, [of(each) for each in block.equations])


def _with(block: Block, equations: Sequence[Equation]) -> Block:
    if all(a is b for a, b in zip(equations, block.equations, strict=True)):
        return block
    return Block(block.params, tuple(equations), block.results)


def _in_block(block: Block) -> Block:
    equations = list(block.equations)
    for place, equation in enumerate(equations):
        kind = equation.primitive
        if not isinstance(kind, Reduce) or kind.kind != "maximum" or not kind.axes:
            continue
        (x,), (largest,) = equation.inputs, equation.outputs
        rows = _Rows(x, kind.axes, largest)
        if x.type.dtype.is_float and rows.hide(equations[place + 1 :], block.results):
            new = Largest(kind.axes)
            equations[place] = Equation(new, equation.inputs, equation.outputs, equation.span)
    return _with(block, equations)


class _Rows:
    """What becomes of the largest elements that one equation of a block gives."""

    def __init__(self, x: Atom, axes: tuple[int, ...], largest: Var) -> None:
        self.axes = axes
        self.whole = x.type.shape
        self.kept = without(range(x.type.rank), axes)
        self.loose: set[Atom] = {largest}
        """What was NaN in all of a row with NaN, and may be something else now."""
        self.somewhere: set[Atom] = {x}
        """Of the shape of x, and NaN where that is."""
        self.everywhere: set[Atom] = set()
        """One element, or all, for each row, and NaN in all of those that have NaN."""

    def hide(self, equations: Sequence[Equation], results: Sequence[Atom]) -> bool:
        """Whether nothing but POISONED functions and sums gets what may not be NaN now."""
        return all(map(self._follow, equations)) and self.loose.isdisjoint(results)

    def _follow(self, equation: Equation) -> bool:
        """Say what the output of an equation is; False if it sees what may not be NaN now."""
        inputs, primitive = equation.inputs, equation.primitive
        is_loose = not self.loose.isdisjoint(inputs)
        if (
            not is_loose
            and self.somewhere.isdisjoint(inputs)
            and self.everywhere.isdisjoint(inputs)
        ):
            return True
        if self._combines_rows(primitive, inputs):
            if primitive == Reduce("sum", self.axes):
                self.everywhere.update(equation.outputs)
            return True
        if not self._keeps_places(equation):
            return not is_loose
        if not self.everywhere.isdisjoint(inputs):
            self.everywhere.update(equation.outputs)
            return True
        if not self.somewhere.isdisjoint(inputs):
            self.somewhere.update(equation.outputs)
        if is_loose:
            self.loose.update(equation.outputs)
        return True

    def _keeps_places(self, equation: Equation) -> bool:
        """Whether each element becomes one of its row, or all of them, and NaN becomes NaN."""
        primitive = equation.primitive
        match primitive:
            case Broadcast():
                return primitive.shape == self.whole and primitive.dims == self.kept
            case Reshape():  # of one element for each row; their order stays
                return equation.inputs[0].type.shape != self.whole
            case StopGradient() | e.Convert():
                return equation.outputs[0].type.dtype.is_float
            case _:
                return primitive in POISONED

    def _combines_rows(self, primitive: Primitive, inputs: Sequence[Atom]) -> bool:
        """Whether all elements of rows are summed, so that NaN in one is in what is found."""
        if isinstance(primitive, Reduce) and primitive.kind == "sum":
            summed = [(inputs[0], primitive.axes)]
        elif isinstance(primitive, DotGeneral):
            summed = list(zip(inputs, primitive.contract, strict=True))
        else:
            return False
        whole = [atom in self.somewhere and {*axes} >= {*self.axes} for atom, axes in summed]
        others = [atom for (atom, _), each in zip(summed, whole, strict=True) if not each]
        return any(whole) and self.loose.isdisjoint(others)
