"""`check_grads`: the derivatives of a function compared with differences of its values.

For authors of rules (`custom_jvp`, `custom_vjp`, `primitive`), and for functions with doubtful
derivatives. The function is compiled, run at four points along a random direction, and the
difference quotient of the fourth order (Abramowitz and Stegun, 25.3.6) is compared with the result
of the rules. Higher orders do the same with the derivatives as functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

import numpy as np

from pscdsl._src.calls.errors import ArgumentError, CheckError
from pscdsl._src.interop.array_programs import Mode, Subject
from pscdsl._src.interpreters.replay import has_tangent
from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.program import Block
from pscdsl._src.kernels.directional import CompiledBySizes, KernelPoint
from pscdsl._src.kernels.transformations import as_kernel
from pscdsl._src.support.tracebacks import public
from pscdsl.typing.codes.derivatives import NoForwardMode
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dtypes import KEY

NDArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Run: TypeAlias = Callable[[Sequence[NDArray]], list[NDArray]]
MOST_TRIED = 256
"""The largest array in which the wrong element is searched for."""
WORDS = {"fwd": "forward mode", "rev": "reverse mode"}


@dataclass(frozen=True)
class Precision:
    """The distance of the points, and the tolerances."""

    eps: float
    atol: float
    rtol: float


DEFAULTS = {64: Precision(1e-3, 1e-6, 1e-6), 32: Precision(2e-2, 1e-2, 1e-2)}
"""The defaults by the bits of the narrowest reals: the step balances truncation and rounding."""


@public
def check_grads(
    fun: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Mode | Sequence[Mode] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Compare derivatives of a function with finite differences.

    Args:
        fun: A kernel, a typed function, a function with rules of its own (`custom_jvp`,
            `custom_vjp`), or a primitive of your own. f16 and bf16 are refused, since they have too
            few digits for differences.
        args: The arguments, trees of arrays. Choose them away from kinks, ties and poles. Integers,
            bools and keys are not varied.
        order: The highest order. Order 2 checks the derivatives of the derivatives, too.
        modes: "fwd" (`jvp`), "rev" (`vjp`) or both. A `custom_vjp` has the second only.
        atol: Absolute tolerance.
        rtol: Relative tolerance. Numbers may differ by `atol + rtol * scale`, where the scale is
            that of the array they are in.
        eps: The distance of the points, at `eps` and `2 * eps` on both sides, along a direction
            whose elements are between 1/2 and 1 in size. The default is 1e-3 for f64, with
            tolerances of 1e-6, and 2e-2 with f32, with tolerances of 1e-2.

    Raises:
        AssertionError: Derivatives differ. The message names the mode, the order, the argument and
            the result, and shows both numbers.
        CheckError: The function is not accepted.

    Examples:
        >>> @psc.kernel
        ... def smooth(x: f64["n"]) -> f64:
        ...     return np.sum(np.sin(x) ** 2)
        >>> psc.check_grads(smooth, (np.array([0.3, 2.0]),))
    """
    wanted = _modes(modes)
    if order < 1:
        raise ValueError(f"psc.check_grads: order is {order}; it is at least 1")
    kernel = as_kernel(fun, "check_grads")
    point = KernelPoint(kernel, args)
    try:
        function = kernel.definition.instance(point.choice)
        subject = Subject.of(function)
        chosen = _precision(kernel.name, function.body, atol, rtol, eps)
        values = [
            np.asarray(x) if t.dtype is KEY else np.asarray(x, to_numpy(t.dtype))
            for x, t in zip(point.arrays, function.body.in_types, strict=True)
        ]
        _Check(kernel.name, point.sizes, wanted, chosen).run(subject, values, order)
    except Failure as failure:
        besides = 'or check reverse mode alone: `modes="rev"`'
        raise CheckError(
            tuple(
                d.replaced(besides=besides) if isinstance(d, NoForwardMode) else d
                for d in failure.diagnostics
            )
        ) from None


def _modes(modes: Mode | Sequence[Mode]) -> tuple[Mode, ...]:
    found = (modes,) if isinstance(modes, str) else tuple(modes)
    known = get_args(Mode)
    if not found or any(each not in known for each in found):
        raise ValueError(
            f"psc.check_grads: modes are {' and '.join(map(repr, known))}, not {modes!r}"
        )
    return found


def _precision(
    name: str, body: Block, atol: float | None, rtol: float | None, eps: float | None
) -> Precision:
    """Return the step and the tolerances, by the narrowest dtype unless they are given."""
    real = {each.dtype.real for each in (*body.in_types, *body.out_types) if has_tangent(each)}
    if not any(map(has_tangent, body.in_types)) or not any(map(has_tangent, body.out_types)):
        raise ArgumentError(
            f"psc.check_grads: `{name}` has nothing to differentiate: "
            "no argument, or no result, is a float or a complex number"
        )
    narrow = min(real, key=lambda dtype: dtype.bits)
    if narrow.bits < 32:
        raise ArgumentError(
            f"psc.check_grads: {narrow} has too few digits for differences; "
            f"check `{name}` in f32 or f64"
        )
    usual = DEFAULTS[narrow.bits]
    return Precision(
        usual.eps if eps is None else eps,
        usual.atol if atol is None else atol,
        usual.rtol if rtol is None else rtol,
    )


class _Check:
    """One check: the function's name, its sizes, and how it is done."""

    def __init__(
        self,
        name: str,
        sizes: dict[str, int],
        modes: Sequence[Mode],
        precision: Precision,
    ) -> None:
        self.name = name
        self.sizes = sizes
        self.modes = modes
        self.precision = precision
        self.random = np.random.default_rng(20180215)

    def run(self, subject: Subject, values: list[NDArray], order: int) -> None:
        """Check a program's derivatives in each mode, and their derivatives up to the order."""
        plain = self._compiled(subject)
        for mode in self.modes:
            derived = subject.derived(mode)
            program = self._compiled(derived)
            if mode == "fwd":
                more = self._forward(subject, plain, program, values)
            else:
                more = self._backward(subject, plain, program, values)
            if order > 1:
                self.run(derived, [*values, *more], order - 1)

    def _compiled(self, subject: Subject) -> Run:
        compiled = CompiledBySizes(subject.function)
        return lambda arrays: [np.asarray(each) for each in compiled(self.sizes, arrays)]

    def _direction(self, value: NDArray) -> NDArray:
        """Return numbers of a size between 1/2 and 1, so that every element is moved."""

        def signed() -> NDArray:
            found: NDArray = self.random.uniform(-0.5, 0.5, shape)
            return np.asarray(found + np.copysign(0.5, found))

        shape: tuple[int, ...] = value.shape
        if np.iscomplexobj(value):
            return np.asarray(signed() + 1j * signed(), value.dtype)
        return np.asarray(signed(), value.dtype)

    def _directions(self, values: Sequence[NDArray], active: Sequence[bool]) -> list[NDArray]:
        pairs = zip(values, active, strict=True)
        return [self._direction(x) for x, moves in pairs if moves]

    def _forward(
        self, subject: Subject, plain: Run, program: Run, values: Sequence[NDArray]
    ) -> list[NDArray]:
        tangents = self._directions(values, subject.active)
        found = self._wrong_tangent(subject, plain, program, values, tangents)
        if found is not None:
            for name, alone in self._alone(subject, tangents):
                inner = self._wrong_tangent(subject, plain, program, values, alone)
                if inner is not None:
                    what, why = inner
                    raise AssertionError(self._text(subject, "fwd", f"{what} along {name}", why))
            what, why = found
            what = f"{what} along all arguments at once"
            raise AssertionError(self._text(subject, "fwd", what, why))
        return tangents

    def _wrong_tangent(
        self,
        subject: Subject,
        plain: Run,
        program: Run,
        values: Sequence[NDArray],
        tangents: Sequence[NDArray],
    ) -> tuple[str, str] | None:
        """Return the tangent that is furthest off, and its error; None if all are right."""
        steps = self._differences(subject, plain, values, tangents)
        given = program([*values, *tangents])[len(subject.results) :]
        names = [name for name, moves in zip(subject.results, subject.moving, strict=True) if moves]
        for name, step, own in zip(names, steps, given, strict=True):
            scale = float(np.max(np.abs(step[np.isfinite(step)]), initial=0))
            why = self._differ(step, own, scale)
            if why is not None:
                return f"the tangent of {name}", why
        return None

    def _backward(
        self, subject: Subject, plain: Run, program: Run, values: Sequence[NDArray]
    ) -> list[NDArray]:
        cotangents = self._directions(plain(values), subject.moving)
        given = program([*values, *cotangents])[len(subject.results) :]
        tangents = self._directions(values, subject.active)
        for at, (name, alone) in enumerate(self._alone(subject, tangents)):
            if self._wrong_pairing(subject, plain, values, cotangents, given, alone) is None:
                continue
            for index in _indices(given[at].shape):
                alone[at] = np.zeros_like(alone[at])
                alone[at][index] = 1
                why = self._wrong_pairing(subject, plain, values, cotangents, given, alone)
                if why is not None:
                    place = f" at {index}" if index else ""
                    what = f"the cotangent of {name}{place}"
                    raise AssertionError(self._text(subject, "rev", what, why))
            alone[at] = tangents[at]
            why = self._wrong_pairing(subject, plain, values, cotangents, given, alone)
            what = f"the cotangent of {name}, times a direction,"
            raise AssertionError(self._text(subject, "rev", what, why or ""))
        return cotangents

    def _wrong_pairing(
        self,
        subject: Subject,
        plain: Run,
        values: Sequence[NDArray],
        cotangents: Sequence[NDArray],
        given: Sequence[NDArray],
        tangents: Sequence[NDArray],
    ) -> str | None:
        """Compare the cotangents with differences along a direction; return None if they agree."""
        steps = self._differences(subject, plain, values, tangents)
        scale = sum(float(np.sum(np.abs(a * b))) for a, b in zip(cotangents, steps, strict=True))
        return self._differ(_pairing(cotangents, steps), _pairing(given, tangents), scale)

    def _alone(
        self, subject: Subject, tangents: Sequence[NDArray]
    ) -> Iterator[tuple[str, list[NDArray]]]:
        """Yield the direction of each parameter alone."""
        names = [name for name, moves in zip(subject.params, subject.active, strict=True) if moves]
        for at, name in enumerate(names):
            yield name, [x if i == at else np.zeros_like(x) for i, x in enumerate(tangents)]

    def _differences(
        self,
        subject: Subject,
        plain: Run,
        values: Sequence[NDArray],
        tangents: Sequence[NDArray],
    ) -> list[NDArray]:
        """Return the derivatives of the results along a direction, by values at four points."""
        eps = self.precision.eps
        rows: list[list[NDArray]] = []
        for by in (-2, -1, 1, 2):
            rest = iter(tangents)
            moved = [
                np.asarray(x + by * eps * next(rest), x.dtype) if moves else x
                for x, moves in zip(values, subject.active, strict=True)
            ]
            pairs = zip(plain(moved), subject.moving, strict=True)
            rows.append([_wide(x) for x, moves in pairs if moves])
        return [
            np.asarray((a - 8 * b + 8 * c - d) / (12 * eps))
            for a, b, c, d in zip(*rows, strict=True)
        ]

    def _differ(self, step: NDArray, own: NDArray, scale: float) -> str | None:
        """Return the largest difference beyond the tolerance, in words; None if there is none."""
        used = self.precision
        most = used.atol + used.rtol * scale
        off = np.abs(_wide(own) - step)
        off = np.where(np.isnan(off), np.inf, off)
        if np.all(off <= most):
            return None
        index = np.unravel_index(int(np.argmax(off)), off.shape)
        where = f" at {tuple(map(int, index))}" if off.ndim else ""
        numbers = (
            f"  by differences  {step[index]:.9g}{where}\n"
            f"  by the rules    {_wide(own)[index]:.9g}{where}\n"
        )
        if not np.isfinite(step[index]):
            near = "the function is not finite near by: choose other arguments, or a smaller eps"
            return f"{numbers}{near} (eps={used.eps:g})"
        return (
            f"{numbers}they differ by {off[index]:.2g}, more than {most:.2g}: "
            f"atol={used.atol:g}, and rtol={used.rtol:g} of {scale:.2g} (eps={used.eps:g})"
        )

    def _text(self, subject: Subject, mode: Mode, what: str, why: str) -> str:
        trail = (*subject.trail, mode)
        kind = " of ".join(WORDS[each] for each in reversed(trail))
        return (
            f"psc.check_grads: a derivative of `{self.name}` is wrong\n"
            f"order {len(trail)}, {kind}: {what} is not what differences give\n{why}"
        )


def _indices(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the places of an array, if they are not too many to try each."""
    return np.ndindex(shape) if np.prod(shape, dtype=int) <= MOST_TRIED else iter(())


def _wide(x: NDArray) -> NDArray:
    """Convert to double precision, so that subtracting adds no rounding."""
    return np.asarray(x, np.complex128 if np.iscomplexobj(x) else np.float64)


def _pairing(one: Sequence[NDArray], other: Sequence[NDArray]) -> NDArray:
    """Return the real part of the sum of products, which transposes preserve."""
    total = 0.0
    for a, b in zip(one, other, strict=True):
        total += complex(np.sum(_wide(a) * _wide(b))).real
    return np.asarray(total)
