"""Formulas with a form that neither overflows nor cancels: logarithms, exponentials, variances."""

from __future__ import annotations

from collections.abc import Iterator

from pscdsl._src.analysis.warnings.programs import Program
from pscdsl._src.analysis.warnings.wording import Wording
from pscdsl._src.ir.program import Atom, Equation, Literal
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control.custom_derivatives import CustomJvp
from pscdsl._src.primitives.creation import SizeValue
from pscdsl._src.primitives.reductions import Cumulative, Reduce
from pscdsl.typing.codes.numerics_cancellation import (
    ExpMinusOne,
    LogOfOnePlus,
    LogOfSigmoid,
    LogOfSoftmax,
    LogOfSumOfExponentials,
    MomentsCancel,
    SoftmaxOverflows,
)
from pscdsl.typing.diagnostics import Diagnostic

_GUARDS = (e.absolute, e.minimum, e.maximum)
_FAR = 6
"""How many equations back an operand is searched for what keeps it from overflowing."""

WRITTEN: dict[e.Elementwise, tuple[str, ...]] = {
    e.log: ("log",),
    e.log1p: ("log1p",),
    e.subtract: ("Sub", "subtract"),
    e.add: ("Add", "add"),
    e.divide: ("Div", "divide", "true_divide"),
}
"""How the operations are written; what a library function does inside is not the user's."""


def check_forms(program: Program, wording: Wording) -> Iterator[Diagnostic]:
    """The formulas that have a better form."""
    for function, names in WRITTEN.items():
        for at in program.made(function):
            if at.outputs[0].type.dtype.is_inexact:
                finding = _finding(program, wording, at)
                if finding is not None and wording.operation(at.span) in names:
                    yield finding.at(at.span)


def _finding(program: Program, wording: Wording, at: Equation) -> Diagnostic | None:
    if at.primitive is e.log:
        return _of_log(program, wording, at)
    if at.primitive is e.log1p:
        power = _power(program, at.inputs[0])
        if power is not None and not _guarded(program, power.inputs[0]):
            return LogOfSumOfExponentials(
                rewrite=_logaddexp(wording.operand(program, power, 0), "0")
            )
        return None
    if at.primitive is e.divide:
        return _of_quotient(program, wording, at)
    found = _exp_minus_one(program, wording, at)
    return found or (_variance(program, wording, at) if at.primitive is e.subtract else None)


def _is_one(program: Program, atom: Atom, value: float = 1) -> bool:
    atom = program.bare(atom)
    return isinstance(atom, Literal) and atom.value == value


def _power(program: Program, atom: Atom) -> Equation | None:
    """The equation of `exp(x)`, if it is one."""
    at = program.made_by(atom)
    return at if at is not None and at.primitive is e.exp else None


def _guarded(program: Program, atom: Atom) -> bool:
    """Whether something was done against the overflow of its exponential."""
    for at in program.ancestors(atom, _FAR):
        primitive = at.primitive
        if primitive in _GUARDS or isinstance(primitive, e.Clamp | e.Select | Cumulative):
            return True
        if isinstance(primitive, Reduce) and primitive.kind in ("maximum", "minimum"):
            return True
        if primitive.blocks():
            return True  # it cannot be told
    return False


def _of_log(program: Program, wording: Wording, at: Equation) -> Diagnostic | None:
    inner = program.made_by(at.inputs[0])
    if inner is None:
        return None
    if inner.primitive is e.divide:
        upper, lower = inner.inputs
        terms = _summed(program, lower)
        if terms is not None and program.alike(upper, terms) and _power(program, upper):
            return LogOfSoftmax()
        return LogOfSigmoid() if _is_sigmoid(program, inner) else None
    if inner.primitive is e.logistic:
        return LogOfSigmoid()
    if isinstance(inner.primitive, CustomJvp) and inner.primitive.function == "softmax":
        return LogOfSoftmax()
    if isinstance(inner.primitive, Reduce) and inner.primitive.kind == "sum":
        power = _power(program, inner.inputs[0])
        if power is None or _guarded(program, power.inputs[0]):
            return None
        x = wording.operand(program, power, 0) or "x"
        return LogOfSumOfExponentials(
            rewrite=f"`top = np.max({x})`, then `top + np.log(np.sum(np.exp({x} - top)))`, both "
            "along the axis of the sum; `psc.special.logsumexp` does it"
        )
    if inner.primitive is e.add or inner.primitive is e.subtract:
        return _of_log_sum(program, wording, inner)
    return None


def _of_log_sum(program: Program, wording: Wording, inner: Equation) -> Diagnostic | None:
    left, right = inner.inputs
    if inner.primitive is e.add:
        powers = [_power(program, each) for each in (left, right)]
        one = [_is_one(program, each) for each in (left, right)]
        if all(p is not None or is_one for p, is_one in zip(powers, one, strict=True)):
            if any(p is not None and not _guarded(program, p.inputs[0]) for p in powers):
                names = ["0" if p is None else wording.operand(program, p, 0) for p in powers]
                return LogOfSumOfExponentials(rewrite=_logaddexp(*names))
    if inner.primitive is e.subtract:
        if not _is_one(program, left):
            return None
        return LogOfOnePlus(operand=wording.operand(program, inner, 1), negated=True)
    for position, (other, one_side) in enumerate(((left, right), (right, left))):
        if _is_one(program, one_side) and not _is_whole(program, other):
            operand = wording.operand(program, inner, position)
            return LogOfOnePlus(operand=operand, negated=False)
    return None


def _is_whole(program: Program, atom: Atom) -> bool:
    """Whether it is an integer, to which 1 can be added without loss."""
    at = program.definition(program.bare(atom))
    if at is None:
        return False
    if isinstance(at.primitive, e.Convert):
        return not at.inputs[0].type.dtype.is_inexact
    return isinstance(at.primitive, SizeValue)


def _logaddexp(left: str, right: str) -> str:
    return f"`np.logaddexp({left or 'a'}, {right or 'b'})`"


def _summed(program: Program, atom: Atom) -> Atom | None:
    """The `x` of `sum(x)`."""
    at = program.made_by(atom)
    if at is None or not isinstance(at.primitive, Reduce) or at.primitive.kind != "sum":
        return None
    return at.inputs[0]


def _is_sigmoid(program: Program, quotient: Equation) -> bool:
    """`1 / (1 + exp(a))`, or `exp(a) / (1 + exp(b))`."""
    upper, lower = quotient.inputs
    below = program.made_by(lower)
    if below is None or below.primitive is not e.add:
        return False
    if not (_is_one(program, upper) or _power(program, upper)):
        return False
    left, right = below.inputs
    return any(
        _is_one(program, one) and _power(program, other) is not None
        for one, other in ((left, right), (right, left))
    )


def _of_quotient(program: Program, wording: Wording, at: Equation) -> Diagnostic | None:
    upper, lower = at.inputs
    terms = _summed(program, lower)
    if terms is None or not program.alike(upper, terms):
        return None
    power = _power(program, upper)
    if power is None or _guarded(program, power.inputs[0]):
        return None
    return SoftmaxOverflows(operand=wording.operand(program, power, 0))


def _exp_minus_one(program: Program, wording: Wording, at: Equation) -> Diagnostic | None:
    """`exp(x) - 1`, `a * exp(x) - a`, and those with another sign."""
    left, right = at.inputs
    one = -1 if at.primitive is e.add else 1
    for power_side, other, negated in (
        (left, right, False),
        (right, left, at.primitive is not e.add),
    ):
        power = _power(program, power_side)
        if power is not None and _is_one(program, other, one):
            operand = wording.operand(program, power, 0)
            return ExpMinusOne(operand=operand, factor="", negated=negated)
        product = program.definition(program.bare(power_side))
        if at.primitive is e.add or product is None or product.primitive is not e.multiply:
            continue
        for position in (0, 1):
            power = _power(program, product.inputs[1 - position])
            if power is not None and program.alike(product.inputs[position], other):
                return ExpMinusOne(
                    operand=wording.operand(program, power, 0),
                    factor=wording.operand(program, product, position),
                    negated=negated,
                )
    return None


def _variance(program: Program, wording: Wording, at: Equation) -> Diagnostic | None:
    """`mean(x * x) - mean(x) * mean(x)`."""
    first, second = (_mean(program, at.inputs[0]), program.definition(program.bare(at.inputs[1])))
    if first is None or second is None or second.primitive is not e.multiply:
        return None
    square = program.definition(program.bare(first))
    one, other = second.inputs
    mean = _mean(program, one)
    if square is None or square.primitive is not e.multiply or mean is None:
        return None
    if not program.alike(one, other) or not all(program.alike(x, mean) for x in square.inputs):
        return None
    return MomentsCancel(operand=wording.name(program, mean))


def _mean(program: Program, atom: Atom) -> Atom | None:
    """The `x` of `sum(x) / n`, or of `sum(x) * (1 / n)`."""
    at = program.definition(program.bare(atom))
    if at is None or at.primitive not in (e.divide, e.multiply):
        return None
    upper, count = at.inputs
    counted = program.definition(program.bare(count))
    if counted is not None and not isinstance(counted.primitive, SizeValue):
        return None
    return _summed(program, upper)
