"""Gradients of typed programs as JAX computes them, at one point, by JAX's derivative rules.

Our rules are right where those of JAX are NaN or infinite: a norm has the gradient 0 at 0. So a
program is run in NumPy, and cotangents are pulled back through its equations by the rules of
`RULES`. What is not known to be as in JAX raises `Unknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pscdsl._src.interpreters.replay import closed, has_tangent
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.numpy_dtypes import finfo, from_numpy
from pscdsl._src.ir.primitive import NDArray
from pscdsl._src.ir.program import Atom, Block, Equation, Evaluator, Literal, Var, literal_array
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives import special as s
from pscdsl._src.primitives.contractions import DotGeneral
from pscdsl._src.primitives.control import Call, Checkpoint, Lanes, Switch
from pscdsl._src.primitives.custom_derivatives import CustomJvp, CustomVjp
from pscdsl._src.primitives.indexing import DynamicSlice, Gather
from pscdsl._src.primitives.pointwise import Elementwise, WithoutTangents
from pscdsl._src.primitives.reductions import Cumulative, Reduce
from pscdsl._src.primitives.scan import Rows, Scan
from pscdsl._src.primitives.shaping import Broadcast, Shaping
from pscdsl._src.primitives.spectra import Eigh, Svd
from pscdsl._src.primitives.windows import Convolution
from pscdsl._src.transforms.linearize import linearize
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.diagnostics import Failure

Rule: TypeAlias = Callable[..., Any]
"""The cotangent of an operand, from that of the result, the result and the operands."""
MOST_EQUATIONS: Final = 100_000
"""A program is not followed further when so many equations were run."""


class Unknown(Exception):
    """What JAX computes is not known."""


@dataclass(frozen=True)
class Fault:
    """The equation that makes a cotangent NaN or infinite from finite ones."""

    equation: Equation
    operands: tuple[NDArray, ...]


@dataclass(frozen=True)
class Cotangent:
    """A cotangent, and the equation that made it NaN or infinite, if it is."""

    value: NDArray
    fault: Fault | None = None

    def __add__(self, other: Cotangent) -> Cotangent:
        return Cotangent(np.asarray(self.value + other.value), self.fault or other.fault)


# The rules of functions of elements, as in `jax._src.lax.lax`.


def _none(g: NDArray, z: NDArray, *xs: NDArray) -> None:
    return None


def _unchanged(g: NDArray, z: NDArray, *xs: NDArray) -> NDArray:
    return g


def _where(condition: ArrayLike, one: ArrayLike, other: ArrayLike) -> NDArray:
    return np.asarray(np.where(condition, one, other))


def _share(x: NDArray, z: NDArray, y: NDArray) -> NDArray:
    """Return 1 where x is the result, half of it where y is, too."""
    return np.asarray(_where(x == z, np.ones_like(z), 0) / _where(y == z, 2 * np.ones_like(z), 1))


def _by_denominator(g: NDArray, z: NDArray, x: NDArray, y: NDArray) -> Any:
    return (-g * x) * (1 / (y * y))


def _by_base(g: NDArray, z: NDArray, x: NDArray, y: NDArray) -> Any:
    """Return the cotangent of the base; at the power 0 that depends on the exponent's dtype."""
    slope = y * np.power(x, y - 1)
    if np.any((y == 0) & ~np.isfinite(slope)):
        raise Unknown
    return g * slope


def _by_exponent(g: NDArray, z: NDArray, x: NDArray, y: NDArray) -> Any:
    return g * (np.log(_nonzero(x)) * z)


def _nonzero(x: NDArray) -> NDArray:
    return _where(x == 0, np.ones_like(x), x)


def _by_divisor(g: NDArray, z: NDArray, x: NDArray, y: NDArray) -> Any:
    quotient = x / y
    return -g * (np.sign(quotient) * np.floor(np.abs(quotient)))


def _by_modulus(g: NDArray, z: NDArray, x: NDArray, y: NDArray) -> Any:
    rest = np.fmod(x, y)
    moved = (rest != 0) & ((rest < 0) != (y < 0))
    return _by_divisor(g, z, x, y) + _where(moved, g, np.zeros_like(g))


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _one(rule: Callable[[Any, Any, Any], Any]) -> tuple[Rule, ...]:
    """Return the rules of a function of one operand."""
    return (rule,)


def _two(
    first: Callable[[Any, Any, Any, Any], Any], second: Callable[[Any, Any, Any, Any], Any]
) -> tuple[Rule, ...]:
    """Return the rules of a function of two operands."""
    return first, second


RULES: Final[Mapping[Elementwise, tuple[Rule, ...]]] = {
    e.add: _two(_unchanged, _unchanged),
    e.subtract: _two(_unchanged, lambda g, z, x, y: -g),
    e.multiply: _two(lambda g, z, x, y: g * y, lambda g, z, x, y: x * g),
    e.divide: _two(lambda g, z, x, y: g / y, _by_denominator),
    e.floor_divide: _two(_none, _none),
    e.remainder: _two(_unchanged, _by_modulus),
    e.fmod: _two(_unchanged, _by_divisor),
    e.power: _two(_by_base, _by_exponent),
    e.atan2: _two(
        lambda g, z, y, x: g * (x / (x * x + y * y)),
        lambda g, z, y, x: g * (-y / (x * x + y * y)),
    ),
    e.maximum: _two(lambda g, z, x, y: g * _share(x, z, y), lambda g, z, x, y: g * _share(y, z, x)),
    e.minimum: _two(lambda g, z, x, y: g * _share(x, z, y), lambda g, z, x, y: g * _share(y, z, x)),
    e.negative: _one(lambda g, z, x: -g),
    e.absolute: _one(lambda g, z, x: _where(x >= 0, g, -g)),
    e.sign: _one(_none),
    e.bend: _one(_none),
    e.exp: _one(lambda g, z, x: g * z),
    e.expm1: _one(lambda g, z, x: g * (z + 1)),
    e.log: _one(lambda g, z, x: g / x),
    e.log1p: _one(lambda g, z, x: g / (x + 1)),
    e.logistic: _one(lambda g, z, x: g * (z * (1 - z))),
    e.sqrt: _one(lambda g, z, x: g * (0.5 / z)),
    e.rsqrt: _one(lambda g, z, x: g * (-0.5 * (z / x))),
    e.cbrt: _one(lambda g, z, x: g * ((1 / 3) * (1 / (z * z)))),
    e.sin: _one(lambda g, z, x: g * np.cos(x)),
    e.cos: _one(lambda g, z, x: -(g * np.sin(x))),
    e.tan: _one(lambda g, z, x: g * (1 + z * z)),
    e.asin: _one(lambda g, z, x: g * _rsqrt(1 - x * x)),
    e.acos: _one(lambda g, z, x: g * -_rsqrt(1 - x * x)),
    e.atan: _one(lambda g, z, x: g / (1 + x * x)),
    e.sinh: _one(lambda g, z, x: g * np.cosh(x)),
    e.cosh: _one(lambda g, z, x: g * np.sinh(x)),
    e.tanh: _one(lambda g, z, x: (g + g * z) * (1 - z)),
    e.asinh: _one(lambda g, z, x: g * _rsqrt(x * x + 1)),
    e.acosh: _one(lambda g, z, x: g * _rsqrt(x * x - 1)),
    e.atanh: _one(lambda g, z, x: (1 / (1 + x)) * (g / (1 - x))),
    e.erf: _one(lambda g, z, x: g * (2 / sqrt(pi)) * np.exp(-(x * x))),
    e.erf_inv: _one(lambda g, z, x: g * (sqrt(pi) / 2) * np.exp(z * z)),
    e.floor: _one(_none),
    e.ceil: _one(_none),
    e.round_even: _one(_none),
    e.truncate: _one(_none),
    s.xlogy: _two(lambda g, z, x, y: g * np.log(y), lambda g, z, x, y: g * (x / y)),
    s.xlog1py: _two(lambda g, z, x, y: g * np.log1p(y), lambda g, z, x, y: g * (x / (1 + y))),
    s.entr: _one(lambda g, z, x: g * (-np.log(x) - 1)),
}
"""JAX's rules where the result is a real number, one for each operand."""

_MOVING: Final = (Shaping, Gather, DynamicSlice, DotGeneral, Convolution)
"""Linear primitives whose transposes are those of JAX also where a cotangent is not finite."""


def is_finite(x: NDArray) -> bool:
    """Return whether all elements are finite; those that are no floats are."""
    return not from_numpy(x.dtype).is_inexact or bool(np.all(np.isfinite(x)))


def _is_flushed(x: NDArray) -> bool:
    """Return whether an element is a subnormal number, which XLA takes for zero."""
    dtype = from_numpy(x.dtype)
    if not dtype.is_float:
        return False
    least = float(finfo(dtype).smallest_normal)
    return bool(np.any((x != 0) & (np.abs(x) < least)))


class Bounded(Evaluator):
    """Run programs at given sizes, with a bound on the equations that are run."""

    def __init__(self, sizes: Mapping[str, int], spent: list[int]) -> None:
        super().__init__(sizes)
        self.spent = spent
        """The number of equations that were run."""

    def results(self, equation: Equation, inputs: Sequence[NDArray]) -> Sequence[NDArray]:
        self.spent[0] += 1
        if self.spent[0] > MOST_EQUATIONS:
            raise Unknown
        return super().results(equation, inputs)


class Pullback(Bounded):
    """Run programs at given sizes, and pull cotangents back through them."""

    def __init__(self, sizes: Mapping[str, int], facts: Assumptions, spent: list[int]) -> None:
        super().__init__(sizes, spent)
        self.facts = facts

    def results(self, equation: Equation, inputs: Sequence[NDArray]) -> Sequence[NDArray]:
        found = super().results(equation, inputs)
        if any(map(_is_flushed, found)):
            raise Unknown
        return found

    def at(self, sizes: Mapping[str, int]) -> Pullback:
        return Pullback(sizes, self.facts, self.spent)

    def forward(
        self, block: Block, operands: Sequence[NDArray]
    ) -> tuple[dict[Atom, NDArray], list[NDArray]]:
        """Return the values of all variables of a block, and its results."""
        if any(map(_is_flushed, operands)):
            raise Unknown
        values: dict[Atom, NDArray] = dict(zip(block.params, operands, strict=True))
        for equation in block.equations:
            given = [_value(values, atom) for atom in equation.inputs]
            values.update(zip(equation.outputs, self.results(equation, given), strict=True))
        return values, [_value(values, atom) for atom in block.results]

    def pull(
        self,
        block: Block,
        operands: Sequence[NDArray],
        active: Sequence[bool],
        cotangents: Sequence[Cotangent | None],
    ) -> list[Cotangent | None]:
        """Return the cotangents of the active operands of a block; None is zero."""
        values, _ = self.forward(block, operands)
        moving = {
            var for var, moves in zip(block.params, active, strict=True) if moves and _varies(var)
        }
        for equation in block.equations:
            if not moving.isdisjoint(equation.inputs):
                moving.update(filter(_varies, equation.outputs))
        sums: dict[Atom, Cotangent] = {}

        def add(atom: Atom, cotangent: Cotangent | None) -> None:
            if cotangent is not None and isinstance(atom, Var) and atom in moving:
                sums[atom] = sums[atom] + cotangent if atom in sums else cotangent

        for atom, cotangent in zip(block.results, cotangents, strict=True):
            add(atom, cotangent)
        for equation in reversed(block.equations):
            given = [sums.pop(var, None) for var in equation.outputs]
            if all(each is None for each in given):
                continue
            inputs = tuple([_value(values, atom) for atom in equation.inputs])
            outputs = [values[var] for var in equation.outputs]
            flags = [atom in moving for atom in equation.inputs]
            found = self._through(equation, inputs, outputs, flags, given)
            fault = next((x.fault for x in given if x is not None and x.fault), None)
            for atom, each in zip(equation.inputs, found, strict=True):
                if each is not None and not each.fault and not is_finite(each.value):
                    each = Cotangent(each.value, fault or _fault(block, values, equation))
                add(atom, each)
        return [sums.get(var) for var in block.params]

    def _through(
        self,
        equation: Equation,
        inputs: tuple[NDArray, ...],
        outputs: list[NDArray],
        moving: list[bool],
        given: list[Cotangent | None],
    ) -> Sequence[Cotangent | None]:
        """Return the cotangents of the operands of an equation."""
        primitive = equation.primitive
        match primitive:
            case Call():
                inner = self.at({name: self.size(size) for name, size in primitive.sizes})
                inner.facts = primitive.function.facts
                return inner.pull(primitive.function.body, inputs, moving, given)
            case Checkpoint():
                return self.pull(primitive.body, inputs, moving, given)
            case Switch():
                chosen = min(max(int(inputs[0]), 0), len(primitive.branches) - 1)
                branch = primitive.branches[chosen]
                return [None, *self.pull(branch, inputs[1:], moving[1:], given)]
            case Rows():
                raise Unknown
            case Scan():
                return self._through_scan(primitive, inputs, moving, given)
            case CustomJvp():
                return self._through_jvp(primitive, inputs, given)
            case CustomVjp():
                return self._through_vjp(primitive, inputs, given)
            case WithoutTangents():
                return [None] * len(inputs)
            case _:
                known = [None if each is None else each.value for each in given]
                return [
                    None if each is None else Cotangent(np.asarray(each))
                    for each in self._pulled(equation, inputs, outputs, moving, known)
                ]

    def _pulled(
        self,
        equation: Equation,
        inputs: tuple[NDArray, ...],
        outputs: list[NDArray],
        moving: list[bool],
        given: list[NDArray | None],
    ) -> Sequence[NDArray | None]:
        """Return the cotangents of the operands of an equation without blocks."""
        primitive = equation.primitive
        g = next(each for each in given if each is not None)
        if g.dtype.kind == "c":
            raise Unknown
        match primitive:
            case Elementwise():
                return _through_elements(primitive, inputs, outputs[0], moving, g)
            case e.Select():
                zero = np.zeros_like(g)
                parts = (None, np.where(inputs[0], g, zero), np.where(inputs[0], zero, g))
                return [
                    _gathered(part, x) if moves and part is not None else None
                    for part, x, moves in zip(parts, inputs, moving, strict=True)
                ]
            case e.Convert():
                return [g.astype(inputs[0].dtype) if moving[0] else None]
            case Lanes():
                which = inputs[0].reshape((*inputs[0].shape, *(1,) * (g.ndim - inputs[0].ndim)))
                return [None, np.where(which, g, np.zeros_like(g))]
            case Reduce("maximum" | "minimum", axes) if axes:
                (x,) = inputs
                chosen = (x == np.expand_dims(outputs[0], axes)).astype(g.dtype)
                share = np.asarray(g / np.sum(chosen, axis=axes))
                return [np.expand_dims(share, axes) * chosen]
            case Eigh() if primitive.vectors:
                return [_through_eigh(inputs[0], outputs, given)]
            case Svd() if _is_square(inputs[0]) and primitive.vectors:
                return [_through_svd(inputs[0], outputs, given)]
            case _:
                return self._transposed(equation, inputs, moving, given)

    def _transposed(
        self,
        equation: Equation,
        inputs: tuple[NDArray, ...],
        moving: list[bool],
        given: list[NDArray | None],
    ) -> Sequence[NDArray | None]:
        """Return the cotangents by our own rules, where these are known to be as in JAX.

        Elsewhere only finite ones are known.
        """
        primitive = equation.primitive
        is_sum = isinstance(primitive, Reduce | Cumulative) and primitive.kind == "sum"
        is_known = is_sum or isinstance(primitive, _MOVING) or isinstance(primitive, Broadcast)
        present = [each for each in given if each is not None]
        if not is_known and not all(map(is_finite, present)):
            raise Unknown
        count = len(inputs)
        types = [atom.type for atom in equation.inputs]
        taken = [var.type for var, x in zip(equation.outputs, given, strict=True) if x is not None]

        def build(here: Builder, params: list[Value]) -> list[Value]:
            block = _alone(equation)
            wanted = iter(params[count:])
            _, linear = linearize(here, block, params[:count], tuple(moving))
            cotangents = [
                here.full(0.0, var.type.shape, var.type.dtype) if x is None else next(wanted)
                for var, x in zip(equation.outputs, given, strict=True)
                if has_tangent(var.type)
            ]
            return linear.backward(here, cotangents)

        try:
            made = closed(self.facts, [*types, *taken], build)
        except Failure:
            raise Unknown from None
        with np.errstate(all="ignore"):
            found = iter(Evaluator(self.sizes).block(made, [*inputs, *present]))
        results = [next(found) if moves else None for moves in moving]
        if not is_known and not all(is_finite(x) for x in results if x is not None):
            raise Unknown
        return results

    def _through_scan(
        self,
        scan: Scan,
        inputs: tuple[NDArray, ...],
        moving: list[bool],
        given: list[Cotangent | None],
    ) -> Sequence[Cotangent | None]:
        """Pull cotangents back through the steps of a loop, the last one first."""
        captured, carry, arrays = scan.roles(inputs)
        flags = scan.roles(moving)
        length = self.size(scan.length)
        steps = range(min(max(int(captured[0]), 0), length) if scan.counted else length)
        order = list(reversed(steps) if scan.reverse else steps)
        starts: list[list[NDArray]] = []
        for step in order:
            starts.append(list(carry))
            _, results = self.forward(scan.body, [*captured, *carry, *(x[step] for x in arrays)])
            carry = results[: scan.carried]
        count, first = scan.carried, scan.captured
        back = list(given[:count])
        stacked = given[count:]
        of_captured: list[Cotangent | None] = [None] * first
        of_arrays: list[Cotangent | None] = [None] * len(arrays)
        types = scan.body.in_types[first : first + count]
        active = [*flags[0], *map(has_tangent, types), *flags[2]]
        for step, start in zip(reversed(order), reversed(starts), strict=True):
            rows = [None if x is None else Cotangent(x.value[step], x.fault) for x in stacked]
            operands = [*captured, *start, *(x[step] for x in arrays)]
            found = self.pull(scan.body, operands, active, [*back, *rows])
            back = found[first : first + count]
            for at, each in enumerate(found[:first]):
                of_captured[at] = _sum(of_captured[at], each)
            for at, each in enumerate(found[first + count :]):
                if each is not None:
                    whole = np.zeros_like(arrays[at])
                    whole[step] = each.value
                    of_arrays[at] = _sum(of_arrays[at], Cotangent(whole, each.fault))
        return [*of_captured, *back, *of_arrays]

    def _through_jvp(
        self, primitive: CustomJvp, inputs: tuple[NDArray, ...], given: list[Cotangent | None]
    ) -> Sequence[Cotangent | None]:
        """Pull cotangents back through the rule of an author, which is linear in the tangents."""
        _, arguments = primitive.own(inputs)
        known = [*primitive.of_block(1, inputs), *arguments]
        block = primitive.rule.block
        has = [x.dtype.kind in "fV" for x in arguments]
        tangents = [np.zeros_like(x) for x, moves in zip(arguments, has, strict=True) if moves]
        count = len(primitive.body.results)
        types = primitive.body.out_types
        wanted = [each for each, type_ in zip(given, types, strict=True) if has_tangent(type_)]
        active = [*[False] * len(known), *[True] * len(tangents)]
        found = self.pull(block, [*known, *tangents], active, [*[None] * count, *wanted])
        remaining = iter(found[len(known) :])
        moved = [next(remaining) if moves else None for moves in has]
        return [*[None] * sum(primitive.captured), *moved]

    def _through_vjp(
        self, primitive: CustomVjp, inputs: tuple[NDArray, ...], given: list[Cotangent | None]
    ) -> Sequence[Cotangent | None]:
        """Pull cotangents back by the rule of an author."""
        _, arguments = primitive.own(inputs)
        _, results = self.forward(
            primitive.forward.block, [*primitive.of_block(1, inputs), *arguments]
        )
        count = len(primitive.body.results)
        cotangents = [
            np.zeros_like(x) if each is None else each.value
            for x, each in zip(results[:count], given, strict=True)
            if x.dtype.kind in "fV"
        ]
        saved = [*primitive.of_block(2, inputs), *results[count:]]
        _, back = self.forward(primitive.backward.block, [*saved, *cotangents])
        fault = next((x.fault for x in given if x is not None and x.fault), None)
        moved = iter([Cotangent(x, None if is_finite(x) else fault) for x in back])
        has = [x.dtype.kind in "fV" for x in arguments]
        return [
            *[None] * sum(primitive.captured),
            *[next(moved) if moves else None for moves in has],
        ]


def _fault(block: Block, values: Mapping[Atom, NDArray], equation: Equation) -> Fault:
    """Return the fault of an equation: that which made its operands, if these are not finite."""
    made = {var: each for each in block.equations for var in each.outputs}
    while True:
        operands = tuple([_value(values, atom) for atom in equation.inputs])
        before = (
            made.get(atom)
            for atom, x in zip(equation.inputs, operands, strict=True)
            if isinstance(atom, Var) and not is_finite(x)
        )
        earlier = next(filter(None, before), None)
        if earlier is None:
            return Fault(equation, operands)
        equation = earlier


def _value(values: Mapping[Atom, NDArray], atom: Atom) -> NDArray:
    return literal_array(atom) if isinstance(atom, Literal) else values[atom]


def _varies(var: Var) -> bool:
    return has_tangent(var.type)


def _sum(one: Cotangent | None, other: Cotangent | None) -> Cotangent | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _alone(equation: Equation) -> Block:
    """Return an equation as a block of all its operands."""
    params = tuple([Var(atom.type) for atom in equation.inputs])
    outputs = tuple([Var(var.type) for var in equation.outputs])
    again = Equation(equation.primitive, params, outputs, equation.span)
    return Block(params, (again,), outputs)


def _gathered(cotangent: NDArray, operand: NDArray) -> NDArray:
    """Return a cotangent summed where the operand has rank 0."""
    return np.asarray(cotangent if operand.ndim else np.sum(cotangent, dtype=cotangent.dtype))


def _through_elements(
    primitive: Elementwise,
    inputs: tuple[NDArray, ...],
    output: NDArray,
    moving: list[bool],
    g: NDArray,
) -> list[NDArray | None]:
    rules = RULES.get(primitive)
    if rules is None:
        raise Unknown
    found: list[NDArray | None] = []
    for rule, x, moves in zip(rules, inputs, moving, strict=True):
        with np.errstate(all="ignore"):
            each = rule(g, output, *inputs) if moves else None
        if each is not None:
            each = _gathered(np.broadcast_to(each, output.shape), x).astype(x.dtype)
        found.append(each)
    return found


def _through_eigh(
    a: NDArray, outputs: Sequence[NDArray], given: Sequence[NDArray | None]
) -> NDArray:
    """Return the cotangent of a symmetric matrix; equal eigenvalues have no eigenvectors."""
    w, v = outputs
    back = np.swapaxes(v, -1, -2)
    inner = np.zeros_like(a)
    if given[1] is not None:
        unit = np.eye(w.shape[-1], dtype=a.dtype)
        with np.errstate(all="ignore"):
            gaps = 1 / (unit + w[..., None, :] - w[..., :, None]) - unit
            inner = inner + gaps * (back @ given[1])
    if given[0] is not None:
        inner = inner + given[0][..., None] * np.eye(w.shape[-1], dtype=a.dtype)
    with np.errstate(all="ignore"):
        return np.asarray(v @ inner @ back)


def _is_square(a: NDArray) -> bool:
    return bool(a.shape[-1] == a.shape[-2])


def _through_svd(
    a: NDArray, outputs: Sequence[NDArray], given: Sequence[NDArray | None]
) -> NDArray:
    """Return the cotangent of a square matrix; equal singular values have no vectors."""
    u, s, vh = outputs
    unit = np.eye(s.shape[-1], dtype=a.dtype)
    row, column = s[..., None, :], s[..., :, None]
    inner = np.zeros_like(a)
    with np.errstate(all="ignore"):
        gaps = 1 / ((row + column) * (row - column) + unit) - unit
        if given[0] is not None:
            left = np.swapaxes(u, -1, -2) @ given[0]
            both = gaps * left
            inner = inner + row * (both + np.swapaxes(both, -1, -2))
        if given[2] is not None:
            both = gaps * (vh @ np.swapaxes(given[2], -1, -2))
            inner = inner + column * (both + np.swapaxes(both, -1, -2))
        if given[1] is not None:
            inner = inner + given[1][..., None] * unit
        return np.asarray(u @ inner @ vh)
