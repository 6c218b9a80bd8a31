"""Gamma numbers and what is made of them.

G. Marsaglia, W. W. Tsang: "A simple method for generating gamma variables", ACM Transactions on
Mathematical Software 26 (2000).
"""

from __future__ import annotations

from typing import Any

from pscdsl._src.ir.builder import Builder, Value, broadcast_to
from pscdsl._src.primitives import elementwise as e
from pscdsl.numpy.reductions import extremum, total
from pscdsl.numpy.shorthand import cast, where, wide
from pscdsl.random.continuous import positive, standard_normal
from pscdsl.random.drawing import float_dtype, of_key, operand, shape_of, subkeys
from pscdsl.random.rejection import accepted
from pscdsl.typing.arrays import Shape
from pscdsl.typing.codes.shapes_manipulation import WrongNumberOfAxes
from pscdsl.typing.diagnostics import Failure


def _cubes(key: Value, a: Value) -> tuple[Value, Value]:
    """For parameters of at least 1: the gamma numbers are the products of the two results."""
    d = e.subtract(a, 1 / 3)
    c = e.divide(1.0, e.sqrt(e.multiply(9.0, d)))

    def propose(used: Value) -> tuple[Value, Value]:
        first, second = subkeys(used, 2)
        x = standard_normal(first, a.shape, a.dtype)
        u = positive(second, a.shape, a.dtype)
        root = e.add(1.0, e.multiply(c, x))
        v = e.multiply(e.multiply(root, root), root)
        inside = e.greater(v, 0.0)
        log_v = e.log(where(inside, v, v.builder.literal(1.0, v.dtype)))
        bound = e.add(e.multiply(0.5, e.multiply(x, x)), d)
        bound = e.add(e.subtract(bound, e.multiply(d, v)), e.multiply(d, log_v))
        good = e.bitwise_and(inside, e.less(e.log(u), bound))
        possible = e.bitwise_and(e.is_finite(d), e.greater(d, 0.0))
        return v, e.bitwise_or(good, e.invert(possible))

    return d, accepted(key, a.shape, a.dtype, propose)


def _drawn(key: Value, a: Value) -> tuple[Value, Value, Value]:
    """Gamma numbers as `d v exp(boost)`, for each parameter of an array."""
    first, second = subkeys(key, 2)
    small = e.less(a, 1.0)
    d, v = _cubes(first, where(small, e.add(a, 1.0), a))
    u = positive(second, a.shape, a.dtype)
    zero = a.builder.literal(0.0, a.dtype)
    return d, v, where(small, e.divide(e.log(u), a), zero)


def _checked(found: Value, a: Value) -> Value:
    """Not a number where the parameter is negative or none."""
    nan = a.builder.literal(float("nan"), a.dtype)
    return where(e.greater_equal(a, 0.0), found, nan)


def log_gamma_numbers(key: Value, a: Value) -> Value:
    """Logarithms of gamma numbers."""
    d, v, boost = _drawn(key, a)
    return _checked(e.add(e.add(e.log(d), e.log(v)), boost), a)


def _parameters(
    here: Builder, name: str, given: tuple[Any, ...], shape: Any, dtype: Any
) -> tuple[list[Value], Shape, Any]:
    """The parameters of a distribution as it computes with them, their shape, and its dtype."""
    kind = float_dtype(name, dtype, given)
    values = [operand(here, each, kind) for each in given]
    sizes = shape_of(name, here.facts, shape, values)
    return [broadcast_to(cast(each, wide(kind)), sizes) for each in values], sizes, kind


@of_key("gamma")
def gamma(here: Builder, key: Value, a: Any, shape: Any = None, dtype: Any = None) -> Value:
    """Gamma numbers with shape parameter `a` and scale 1."""
    (parameter,), _, kind = _parameters(here, "gamma", (a,), shape, dtype)
    d, v, boost = _drawn(key, parameter)
    found = e.multiply(e.multiply(d, v), e.exp(boost))
    return cast(_checked(found, parameter), kind)


@of_key("loggamma")
def loggamma(here: Builder, key: Value, a: Any, shape: Any = None, dtype: Any = None) -> Value:
    """Logarithms of gamma numbers, which do not underflow where `a` is small."""
    (parameter,), _, kind = _parameters(here, "loggamma", (a,), shape, dtype)
    return cast(log_gamma_numbers(key, parameter), kind)


@of_key("beta")
def beta(here: Builder, key: Value, a: Any, b: Any, shape: Any = None, dtype: Any = None) -> Value:
    """Beta numbers: the part of one gamma number in the sum of two."""
    (first, second), _, kind = _parameters(here, "beta", (a, b), shape, dtype)
    keys = subkeys(key, 2)
    one, other = (log_gamma_numbers(each, x) for each, x in zip(keys, (first, second), strict=True))
    return cast(e.logistic(e.subtract(one, other)), kind)


@of_key("dirichlet")
def dirichlet(here: Builder, key: Value, alpha: Any, shape: Any = None, dtype: Any = None) -> Value:
    """Dirichlet vectors along the last axis; `shape` is that of the batch before it."""
    kind = float_dtype("dirichlet", dtype, (alpha,))
    given = operand(here, alpha, kind)
    if not given.ndim:
        raise Failure(
            WrongNumberOfAxes(
                function="psc.random.dirichlet", given=given.type, wanted="at least 1 axis"
            )
        )
    batch = given.shape[:-1] if shape is None else shape_of("dirichlet", here.facts, shape)
    parameter = broadcast_to(cast(given, wide(kind)), (*batch, given.shape[-1]))
    logs = log_gamma_numbers(key, parameter)
    last = (logs.ndim - 1,)
    parts = e.exp(e.subtract(logs, extremum(logs, "maximum", last, True)))
    return cast(e.divide(parts, total(parts, last, True)), kind)
