"""Loops of the library's own, and sampling by rejection: until each element has been accepted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pscdsl._src.ir.builder import Value
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control import While
from pscdsl._src.primitives.reductions import Reduce
from pscdsl.numpy.shorthand import where
from pscdsl.random.drawing import subkeys
from pscdsl.typing.arrays import Shape
from pscdsl.typing.dtypes import BOOL, DType

Values = Sequence[Value]


def loop(
    carry: Values, going: Callable[[Values], Value], step: Callable[[Values], Values]
) -> Values:
    """The carry after steps for as long as it says so."""
    here = carry[0].builder.program.current
    with here.program.inside() as inner:
        params = [inner.parameter(each.type) for each in carry]
        body, by_body = inner.finish(params, step(params))
    with here.program.inside() as inner:
        params = [inner.parameter(each.type) for each in carry]
        cond, by_cond = inner.finish(params, [going(params)])
    primitive = While(cond, body, len(by_cond), len(by_body))
    return here.bind(primitive, (*by_cond, *by_body, *carry))


def some(condition: Value) -> Value:
    """Whether it holds for any element."""
    return Reduce("any", tuple(range(condition.ndim)))(condition) if condition.ndim else condition


def accepted(
    key: Value, shape: Shape, dtype: DType, propose: Callable[[Value], tuple[Value, Value]]
) -> Value:
    """The first proposal for each element that is accepted; `propose` gives both from a key."""
    here = key.builder.program.current

    def step(state: Values) -> Values:
        mine, open_, values = state
        following, used = subkeys(mine, 2)
        proposed, good = propose(used)
        return following, e.bitwise_and(open_, e.invert(good)), where(open_, proposed, values)

    start = (key, here.full(True, shape, BOOL), here.full(0.0, shape, dtype))
    return loop(start, lambda state: some(state[1]), step)[2]
