"""Rules that users register for their primitives: derivatives, transposes and batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pscdsl as psc
from pscdsl import Float, f32
from pscdsl._src.checker.check import check_source
from pscdsl._src.ir.program import evaluate
from tests.support import projects

pytestmark = pytest.mark.quick_code

X = np.array([0.5, -1.0, 2.0], np.float32)
ROWS = np.stack([X, 2 * X])


@psc.primitive
def cube(x: Float["*s"]) -> Float["*s"]:
    """The third power."""
    return x * x * x


@cube.translation
def _(hlo: psc.Hlo, x: Any) -> Any:
    return hlo.binary("multiply", x, hlo.binary("multiply", x, x))


@cube.jvp
def _(outputs: Any, primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return 3 * x * x * dx


@cube.batch
def _(operands: Any, batched: Any, size: Any) -> Any:
    return cube(*operands), batched


@psc.primitive
def turned(x: f32["n"], sign: f32["n"]) -> f32["n"]:
    """Each number with the sign of another one's place, in reverse; linear in the numbers."""
    return (x * sign)[::-1]


@turned.translation
def _(hlo: psc.Hlo, x: Any, sign: Any) -> Any:
    product = hlo.binary("multiply", x, sign)
    axes = {"dimensions": hlo.i64_array([0])}
    return hlo.op("reverse", [product], [hlo.type_of(x)], axes)[0]


@turned.jvp
def _(outputs: Any, primals: Any, tangents: Any) -> Any:
    (x, sign), (dx, dsign) = primals, tangents
    along_x = None if dx is None else turned(dx, sign)
    if dsign is None:
        return along_x
    along_sign = turned(dsign, x)
    return along_sign if along_x is None else along_x + along_sign


@turned.transpose
def _(cotangents: Any, operands: Any) -> Any:
    (ct,), (x, sign) = cotangents, operands
    assert x.shape == ct.shape
    assert x.dtype == ct.dtype
    assert x.ndim == 1
    return ct[::-1] * sign, None


@psc.primitive
def times(k: psc.Static[int], x: Float["*s"], *, plus: psc.Static[float] = 0.0) -> Float["*s"]:
    """A product, and a constant."""
    return k * x + plus


@times.translation
def _(hlo: psc.Hlo, x: Any, k: int, plus: float) -> Any:
    result = x if plus == 0.0 else hlo.unary("negate", hlo.unary("negate", x))
    for _ in range(k - 1):
        result = hlo.binary("add", result, x)
    return result


@times.jvp
def _(outputs: Any, primals: Any, tangents: Any, k: int, plus: float) -> Any:
    return k * tangents[0]


@times.batch
def _(operands: Any, batched: Any, size: Any, k: int, plus: float) -> Any:
    return times(k, operands[0], plus=plus), True


@psc.kernel
def five_times(x: f32["n"]) -> f32["n"]:
    return times(2, x) + times(x.shape[0], x)


@psc.kernel
def slope_of_times(x: f32["n"]) -> f32["n"]:
    def product(x: f32["n"]) -> f32:
        return np.sum(times(2, x) * times(3, x))

    return psc.grad(product)(x)


@psc.kernel
def rows_of_times(x: f32["b n"]) -> f32["b n"]:
    return psc.vmap(five_times)(x)


@psc.kernel
def cubes(x: f32["n"]) -> f32:
    return np.sum(cube(x))


@psc.kernel
def cubes_of_rows(x: f32["b n"]) -> f32["b n"]:
    return psc.vmap(cube)(x)


@psc.kernel
def slopes_of_rows(x: f32["b n"]) -> f32["b n"]:
    return psc.vmap(psc.grad(cubes))(x)


@psc.kernel
def weighted(x: f32["n"], sign: f32["n"], weights: f32["n"]) -> f32:
    return np.sum(weights * turned(x, sign))


def test_first_and_second_derivatives() -> None:
    np.testing.assert_allclose(psc.grad(cubes)(X), 3 * X * X)
    np.testing.assert_allclose(psc.hessian(cubes)(X), np.diag(6 * X))


def test_batches() -> None:
    np.testing.assert_allclose(cubes_of_rows(ROWS), ROWS**3)
    np.testing.assert_allclose(slopes_of_rows(ROWS), 3 * ROWS**2)


def test_a_transpose_is_used_in_reverse_mode() -> None:
    sign, weights = np.array([1, -1, 1], np.float32), np.array([1, 2, 3], np.float32)
    by_x, by_sign = psc.grad(weighted, argnums=(0, 1))(X, sign, weights)
    np.testing.assert_allclose(by_x, weights[::-1] * sign)
    np.testing.assert_allclose(by_sign, weights[::-1] * X)
    np.testing.assert_allclose(psc.grad(weighted, argnums=1)(X, sign, weights), by_sign)


def test_static_arguments_reach_every_rule() -> None:
    np.testing.assert_allclose(five_times(X), 5 * X)
    np.testing.assert_allclose(rows_of_times(ROWS), 5 * ROWS)
    np.testing.assert_allclose(slope_of_times(X), 12 * X)
    assert "times[statics=" in str(five_times.ir())
    (found,) = evaluate(five_times.ir(), {"n": 3}, [X])
    np.testing.assert_allclose(found, 5 * X)


def test_outside_of_kernels_a_rule_is_the_function_that_it_was() -> None:
    assert psc.primitive(_plain).jvp(_plain) is _plain
    with pytest.raises(TypeError, match="`jvp` takes a function"):
        psc.primitive(_plain).jvp(np.exp)


def _plain(x: f32) -> f32:
    return x


HEAD = """\
import numpy as np
import pscdsl as psc
from pscdsl import f32


@psc.primitive
def cube(x: f32["n"]) -> f32["n"]:
    return x * x * x

"""
GRADIENT = """

@psc.kernel
def slope(x: f32["n"]) -> f32["n"]:
    return psc.grad(lambda x: np.sum(cube(x)))(x)
"""
BATCH = """

@psc.kernel
def rows(x: f32["b n"]) -> f32["b n"]:
    return psc.vmap(cube)(x)
"""


def jvp(*lines: str) -> str:
    """A derivative with this body."""
    return _rule("jvp(outputs, primals, tangents)", "(x,), (dx,) = primals, tangents", *lines)


def batch(*lines: str) -> str:
    """A batching rule with this body."""
    return _rule("batch(operands, batched, size)", *lines)


def _rule(what: str, *lines: str) -> str:
    kind, _, arguments = what.partition("(")
    return "\n    ".join([f"\n@cube.{kind}\ndef _({arguments}:", *lines]) + "\n"


def found(*parts: str) -> list[str]:
    """What is found in a module: its message, help and line."""
    result = check_source(HEAD + "".join(parts), "rules.py")
    return [f"{d.message()} ({d.help() or d.label()}) {d.span.line}" for d in result.diagnostics]


def test_rules_are_found_in_the_source() -> None:
    assert found(jvp("return 3 * x * x * dx"), GRADIENT) == []
    assert found(batch("return operands[0] ** 3, True"), BATCH) == []
    assert found(jvp("return (3 * x * x * dx,)"), batch("return operands, batched"), BATCH) == []


def test_a_missing_rule_says_what_to_register() -> None:
    assert found(GRADIENT) == [
        "not supported yet: primitive `cube` has no rule for a derivative (register one: "
        "`@cube.jvp` on a function of `(outputs, primals, tangents)` that returns the tangents of "
        "the results) 14"
    ]
    assert found(BATCH) == [
        "not supported yet: primitive `cube` has no rule for a batching rule (register one: "
        "`@cube.batch` on a function of `(operands, batched, size)` that returns the results, and "
        "which of them are batched) 14"
    ]
    (said,) = found(jvp("return cube(dx)"), GRADIENT)
    assert "register one: `@cube.transpose` on a function of `(cotangents, operands)`" in said


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (jvp("return np.sum(dx)"), "`cube.jvp` gives f32 as the tangent of result 0, not f32[n]"),
        (jvp("return dx.astype(np.float64)"), "gives f64[n] as the tangent of result 0"),
        (jvp("return dx, dx"), "gives (f32[n], f32[n]) as its tangents, not a tuple of 1"),
        (jvp("return 'dx'"), "gives 'dx' as the tangent of result 0, not f32[n]"),
    ],
)
def test_a_derivative_of_another_type_is_refused(rule: str, message: str) -> None:
    (said,) = found(rule, GRADIENT)
    assert message in said
    assert said.endswith(" 14")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (batch("return operands[0]"), "gives f32[b n] as its result, not a pair"),
        (batch("return operands[0], 1"), "gives 1 as `batched`, not a bool for each result"),
        (batch("return operands[0], False"), "gives f32[b n] as result 0, not f32[n]"),
        (batch("return None, True"), "gives None as a result, not an array"),
    ],
)
def test_a_batch_of_another_type_is_refused(rule: str, message: str) -> None:
    (said,) = found(rule, BATCH)
    assert message in said


def test_a_transpose_of_another_type_is_refused() -> None:
    rule = _rule("transpose(cotangents, operands)", "return np.sum(cotangents[0])")
    (said,) = found(jvp("return cube(dx)"), rule, GRADIENT)
    assert "`cube.transpose` gives f32 as the cotangent of operand 0, not f32[n]" in said
    rule = _rule("transpose(cotangents, operands)", "return operands[0] * cotangents[0]")
    (said,) = found(jvp("return cube(dx)"), rule, GRADIENT)
    assert "the operand in which it is linear, of type f32[n]" in said


def test_zero_tangents() -> None:
    assert found(jvp("return None"), GRADIENT) == []
    assert found(jvp("return 0.0 * dx"), GRADIENT) == []


def test_mistakes_in_a_rule_are_found_where_they_are() -> None:
    (said,) = found(jvp("return 3 * x * x * dy"), GRADIENT)
    assert "`dy`" in said
    assert said.endswith(" 14")
    (said,) = found(jvp("return np.tanh(dx)"), GRADIENT)
    assert "`tanh` is not linear" in said
    assert said.endswith(" 14")


def test_a_rule_that_needs_itself_is_refused() -> None:
    (said,) = found(jvp("return psc.grad(lambda x: np.sum(cube(x)))(x) * dx"), GRADIENT)
    assert "`cube.jvp`" in said


def test_a_rule_is_registered_in_the_module_of_its_primitive(tmp_path: Path) -> None:
    lib = HEAD + jvp("return 3 * x * x * dx")
    use = HEAD.partition("@psc.primitive")[0] + "from lib import cube as third_power\n" + GRADIENT
    files = {"lib.py": lib, "use.py": use.replace("np.sum(cube", "np.sum(third_power")}
    assert projects.codes(projects.check(tmp_path, files)) == []


def test_a_primitive_of_another_name_has_other_rules() -> None:
    other = HEAD.partition("@psc.primitive")[2].replace("cube", "other")
    text = "\n@psc.primitive" + other + jvp("return dx").replace("@cube", "@other")
    (said,) = found(text, GRADIENT)
    assert "`cube` has no rule for a derivative" in said
