"""Functions of JAX for each of our rules of derivatives, and gradients as jax computes them."""

from __future__ import annotations

import ast
import random
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from pscdsl._src.checker.check import deep_stack, quiet
from pscdsl._src.checker.jax_functions import annotated_functions, is_annotated
from pscdsl._src.checker.jax_gradients import gradient_findings
from pscdsl._src.dialects.jax.definitions import JaxDefinition
from pscdsl._src.dialects.jax.derivatives import Cotangent, Pullback, Unknown
from pscdsl._src.dialects.jax.differentiated import Differentiation, differentiations
from pscdsl._src.dialects.jax.modules import Modules
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.modules.files import files_below
from pscdsl._src.frontend.modules.scope import Project, StaticModule
from pscdsl._src.ir.program import Block, Equation, Function, Var
from pscdsl._src.primitives.pointwise import Elementwise
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.numerics import GradientNotFinite
from pscdsl.typing.dtypes import F32
from tests.interop.jax_law import HEAD, annotation, parameters, rows
from tests.interop.jax_law_rows import TABLES

FUNCTIONS: Final[Mapping[str, str]] = {
    "add": "lax.add",
    "subtract": "lax.sub",
    "multiply": "lax.mul",
    "divide": "lax.div",
    "floor_divide": "jnp.floor_divide",
    "remainder": "jnp.remainder",
    "fmod": "lax.rem",
    "power": "lax.pow",
    "atan2": "lax.atan2",
    "maximum": "lax.max",
    "minimum": "lax.min",
    "negative": "lax.neg",
    "absolute": "lax.abs",
    "sign": "lax.sign",
    "exp": "lax.exp",
    "expm1": "lax.expm1",
    "log": "lax.log",
    "log1p": "lax.log1p",
    "logistic": "lax.logistic",
    "sqrt": "lax.sqrt",
    "rsqrt": "lax.rsqrt",
    "cbrt": "lax.cbrt",
    "sin": "lax.sin",
    "cos": "lax.cos",
    "tan": "lax.tan",
    "asin": "lax.asin",
    "acos": "lax.acos",
    "atan": "lax.atan",
    "sinh": "lax.sinh",
    "cosh": "lax.cosh",
    "tanh": "lax.tanh",
    "asinh": "lax.asinh",
    "acosh": "lax.acosh",
    "atanh": "lax.atanh",
    "erf": "lax.erf",
    "erf_inv": "lax.erf_inv",
    "floor": "lax.floor",
    "ceil": "lax.ceil",
    "round_even": "jnp.rint",
    "truncate": "jnp.trunc",
    "xlogy": "jax.scipy.special.xlogy",
    "xlog1py": "jax.scipy.special.xlog1py",
    "entr": "jax.scipy.special.entr",
}
"""What jax calls the function of each rule, by our name."""
SPECIAL: Final = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 0.5, 2.0, -2.5, np.nan, 1e-40, 1e-30)
COTANGENTS: Final = (1.0, 0.0, np.inf)


def named(name: str) -> Callable[..., Any]:
    """Return a function of jax."""
    jax: Any = pytest.importorskip("jax")
    pytest.importorskip("jax.scipy.special")
    names = {"jax": jax, "jnp": jax.numpy, "lax": jax.lax}
    found: Callable[..., Any] = eval(FUNCTIONS[name], names)
    return found


def ours(
    primitive: Elementwise, operands: Sequence[float], cotangent: float
) -> list[np.ndarray[Any, Any] | None] | None:
    """Return the cotangents of the operands by our rules; None if they are not known."""
    params = tuple([Var(ArrayType(F32)) for _ in operands])
    output = Var(ArrayType(F32))
    block = Block(params, (Equation(primitive, params, (output,)),), (output,))
    given = [np.asarray(each, np.float32) for each in operands]
    run = Pullback({}, Assumptions(), [0])
    with np.errstate(all="ignore"):
        try:
            found = run.pull(
                block, given, [True] * len(given), [Cotangent(np.asarray(cotangent, np.float32))]
            )
        except Unknown:
            return None
    return [None if each is None else each.value for each in found]


def theirs(
    function: Callable[..., Any], operands: Sequence[float], cotangent: float
) -> list[np.ndarray[Any, Any]]:
    """Return the cotangents of the operands as jax computes them."""
    jax: Any = pytest.importorskip("jax")
    given = [jax.numpy.asarray(each, jax.numpy.float32) for each in operands]
    _, pull = jax.vjp(function, *given)
    return [np.asarray(each) for each in pull(jax.numpy.asarray(cotangent, jax.numpy.float32))]


# Files with a function that is differentiated, checked by us and run by jax.


CASES: Final = Path(__file__).parents[1] / "conformance/jax/gradients.md"


def cases() -> list[tuple[str, str]]:
    """Return the title and the program of each conformance case."""
    head, *sections = CASES.read_text().split("\n## ")
    first = "".join(re.findall(r"```py\n(.*?)```", head, re.S))
    return [
        (each.partition("\n")[0], first + "".join(re.findall(r"```py\n(.*?)```", each, re.S)))
        for each in sections
    ]


class Checked:
    """A program of JAX in a file: our findings, and its functions as jax runs them."""

    def __init__(self, path: Path, text: str) -> None:
        self.text = text
        path.write_text(text)
        files = files_below([str(path)])
        with deep_stack(), quiet():
            self.module: StaticModule = Project(files=files).at(files.given[0])
            found = list(annotated_functions(self.module))
            self.unknown = [each.name for each in found if each.unknown or each.found]
            self.findings = [
                each
                for each in gradient_findings(self.module, found)
                if isinstance(each, GradientNotFinite)
            ]

    def names(self) -> dict[str, Any]:
        """Return the names of the program, run by jax."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("jaxtyping", "chex", "equinox"):
                patch.setitem(sys.modules, name, _stub(name))
            names: dict[str, Any] = {}
            exec(self.text, names)
        return names

    def programs(self) -> Iterator[tuple[str, Function, list[Differentiation]]]:
        """Yield the functions that are differentiated, or that differentiate."""
        program = self.module.project.files.analysis(Modules).program(self.module)
        asked = list(differentiations(program))
        for node in self.module.source.tree.body:
            if not isinstance(node, ast.FunctionDef) or not is_annotated(node):
                continue
            with deep_stack(), quiet():
                closure = self.module.function(node)
                assert isinstance(closure, Closure)
                definition = JaxDefinition(closure)
                choices = definition.signature.choices()
                assert choices is not None
                function = definition.instance(choices[0])
            own = [each for each in asked if each.scope.node is node]
            if own or any(each.active for each in function.origins.values()) or function.origins:
                yield node.name, function, own


def _stub(name: str) -> types.ModuleType:
    """Return what programs need of a package that is not installed."""
    made = types.ModuleType(name)
    module: Any = made
    if name == "jaxtyping":
        for each in ("Array", "Bool", "Float", "Int"):
            setattr(module, each, _Annotation)
    module.error_if = _error_if
    module.assert_scalar_positive = _positive
    return made


class _Annotation:
    def __class_getitem__(cls, item: object) -> type:
        return cls


def _error_if(x: Any, pred: Any, msg: str) -> Any:
    if pred.any():
        raise FloatingPointError(msg)
    return x


def _positive(x: Any) -> None:
    _error_if(x, x <= 0, "not positive")


def at(inputs: Sequence[str]) -> list[Any]:
    """Return inputs as they are written in a finding."""
    jax: Any = pytest.importorskip("jax")
    jnp = jax.numpy
    found = [eval(each, {"jnp": jnp}) for each in inputs]
    return [
        jnp.asarray(x, jnp.float32 if "." in text or _is_float(x) else None)
        for x, text in zip(found, inputs, strict=True)
    ]


def _is_float(x: Any) -> bool:
    return np.asarray(x).dtype.kind != "b"


def gradients(function: Any, arguments: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return whether a value is finite, and its gradients in all arguments."""
    jax: Any = pytest.importorskip("jax")
    jnp = jax.numpy
    moving = [place for place, x in enumerate(arguments) if x.dtype.kind == "f"]

    def of(*given: Any) -> Any:
        full = list(arguments)
        for place, x in zip(moving, given, strict=True):
            full[place] = x
        result: Any = function(*full)
        return jax.tree.leaves(result)[0]

    value, pull = jax.vjp(of, *[arguments[place] for place in moving])
    found: list[Any] = [np.zeros(())] * len(arguments)
    for place, each in zip(moving, pull(jnp.ones_like(value)), strict=True):
        found[place] = each
    return jnp.all(jnp.isfinite(value)), found


def all_finite(tree: Any) -> bool:
    """Return whether all leaves are finite."""
    jax: Any = pytest.importorskip("jax")
    return all(bool(np.all(np.isfinite(np.asarray(x)))) for x in jax.tree.leaves(tree))


# Random programs with functions whose derivatives end somewhere.


_UNARY: Final = (
    "jnp.sqrt({a})", "jnp.log({a})", "jnp.log1p({a})", "jnp.exp({a})", "jnp.abs({a})", "({a}) ** 2",
    "({a}) ** 3", "jnp.square({a})", "jnp.sqrt(jnp.abs({a}))", "jnp.cbrt({a})", "-({a})",
    "jnp.tanh({a})", "jnp.arcsin({a})", "jnp.arccos({a})", "jnp.arctan({a})", "1 / ({a})",
    "jax.nn.relu({a})", "jax.nn.softplus({a})", "jax.nn.sigmoid({a})", "jax.nn.silu({a})",
    "jax.nn.elu({a})", "jax.nn.leaky_relu({a})", "jax.nn.softmax({a})", "jax.nn.log_softmax({a})",
    "jnp.clip({a}, -1, 1)", "jnp.maximum({a}, 0)", "jnp.maximum({a}, 1e-3)", "jnp.minimum({a}, 1)",
    "jnp.abs({a}) ** 0.5", "jnp.abs({a}) ** 1.5", "lax.rsqrt({a})", "jnp.sin({a})", "jnp.sinc({a})",
    "lax.stop_gradient({a})", "lax.clamp(0.0, {a}, 1.0)", "jnp.cumsum({a})", "jnp.sort({a})",
    "({a}) - jnp.mean({a})", "({a}) / (jnp.sum(jnp.abs({a})) + 1)", "jnp.flip({a})",
    "jnp.expm1({a})", "jnp.log(jax.nn.sigmoid({a}))", "jnp.nan_to_num({a})", "jnp.arctanh({a})",
    "({a})[::-1]", "jnp.roll({a}, 1)", "jnp.arccosh({a})", "jnp.arcsinh({a})",
    "jnp.square({a}) + 1",
)  # fmt: skip
_BINARY: Final = (
    "({a}) + ({b})", "({a}) - ({b})", "({a}) * ({b})", "({a}) / ({b})", "jnp.maximum({a}, {b})",
    "jnp.minimum({a}, {b})", "jnp.arctan2({a}, {b})", "jnp.logaddexp({a}, {b})",
    "jnp.hypot({a}, {b})", "jnp.where(x > 0, {a}, {b})", "jnp.where(y > x, {a}, {b})",
    "jnp.where(x == 0, 0, {a})", "jnp.where({a} > 0, {b}, 0)", "xlogy({a}, {b})",
    "jnp.where(jnp.abs(x) > 1, {a}, {b})", "jnp.where(y != 0, {a}, 1.0)",
    "lax.cond(s > 0, lambda: {a}, lambda: {b})", "s * ({a})", "jnp.abs({a}) ** jnp.abs({b})",
)  # fmt: skip
_REDUCED: Final = (
    "jnp.sum({a})", "jnp.mean({a})", "jnp.max({a})", "jnp.min({a})", "jnp.linalg.norm({a})",
    "jnp.std({a})", "jnp.var({a})", "logsumexp({a})", "jnp.sqrt(jnp.sum(({a}) ** 2))",
    "jnp.sqrt(jnp.sum(({a}) ** 2) + 1e-3)", "jnp.sum(({a}) * ({b}))", "jnp.dot({a}, {b})",
    "jnp.linalg.norm(({a}) - ({b}))", "jnp.sum({a}) / jnp.linalg.norm({b})", "jnp.prod({a})",
    "jnp.linalg.norm({a}, ord=1)", "jnp.sum({a}) ** 2 / jnp.sum(jnp.abs({b}))", "jnp.median({a})",
    "jnp.linalg.norm({a}) ** 2", "jnp.where(jnp.sum({a}) > 0, jnp.log(jnp.sum({a})), 0.0)",
)  # fmt: skip
RANDOM_HEAD: Final = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import logsumexp, xlogy
from jaxtyping import Array, Float
"""


def random_program(seed: int) -> str:
    """Return a function of two vectors and a number, and its gradient."""
    chance = random.Random(seed)

    def vector(depth: int) -> str:
        if not depth or chance.random() < 0.15:
            return chance.choice(("x", "y", "x", "y", "x - y", "x * s"))
        if chance.random() < 0.6:
            return chance.choice(_UNARY).format(a=vector(depth - 1))
        return chance.choice(_BINARY).format(a=vector(depth - 1), b=vector(depth - 1))

    result = chance.choice(_REDUCED).format(a=vector(3), b=vector(1))
    types = 'x: Float[Array, "n"], y: Float[Array, "n"], s: Float[Array, ""]'
    return (
        f'{RANDOM_HEAD}\n\ndef loss({types}) -> Float[Array, ""]:\n    return {result}\n\n\n'
        "step = jax.grad(loss, argnums=(0, 1, 2))\n"
    )


# Functions of the packages, in the expressions that compare their values.


_FLOATS: Final = frozenset("s x y pos unit p tie m w t sq pd tri v one".split())
_PACKAGES: Final = ("jax.numpy", "jax.nn", "jax.lax", "jax.scipy")
_MOST_ROWS: Final = 2


def differentiable_rows() -> list[tuple[str, str]]:
    """Return names of the packages, with expressions of floats; two for each name."""
    found: dict[tuple[str, str], list[str]] = {}
    tables = {each: text for each, text in TABLES.items() if each.startswith(_PACKAGES)}
    for module, table in tables.items():
        for name, expression in rows(table):
            used = parameters(expression.lstrip("~?#"))
            own = found.setdefault((module, name), [])
            is_float = used and _FLOATS.issuperset(used) and expression[0] not in "~?#"
            if is_float and len(own) < _MOST_ROWS:
                own.append(expression)
    return [(name, each) for (_, name), own in found.items() for each in own]


def program_of_row(expression: str) -> str:
    """Return a function that adds all results of an expression, and its gradient."""
    used = parameters(expression)
    types = "from jaxtyping import Array, Float, Float as Float32"
    head = HEAD.format(types=types, more="")
    given = ", ".join(f"{name}: {annotation(name)}" for name in used)
    return f"""{head}

def loss({given}) -> Float[Array, ""]:
    results = jax.tree_util.tree_leaves({expression})
    floats = [jnp.sum(z) for z in results if jnp.issubdtype(z.dtype, jnp.floating)]
    return sum(floats, jnp.zeros(()))


step = jax.grad(loss, argnums={tuple(range(len(used)))})
"""
