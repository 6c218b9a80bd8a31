"""What must hold of the derivatives and batches of every typed program.

Derivatives forward and backward are adjoint, also at kinks; where values change smoothly they are
the limits of differences; second derivatives are symmetric; batches are loops, also of
derivatives, and the derivative of a batch is the batch of derivatives.  Every program that is made
is verified with its sizes as symbols, simplified and verified again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from pscdsl._src.analysis.verify import verify
from pscdsl._src.interpreters.replay import (
    Mask,
    batch_block,
    closed,
    has_tangent,
    jvp,
    jvp_block,
    over_batch,
    zeros,
)
from pscdsl._src.ir.builder import Builder, Value
from pscdsl._src.ir.program import Block, Function, evaluate
from pscdsl._src.transforms.linearize import linearize
from pscdsl._src.transforms.simplify import simplify
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.dims import name
from tests.fuzz.laws import Broken

NDArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Run: TypeAlias = Callable[[Sequence[NDArray]], list[NDArray]]
LANES = 3
STEP = 1e-5
LARGE = 1e12
"""Programs with larger numbers somewhere say nothing: rounding hides everything."""


@dataclass
class Examination:
    """A program in f64 at some point, and how often each law was tried on it."""

    function: Function
    sizes: Mapping[str, int]
    operands: Sequence[NDArray]
    rng: np.random.Generator
    smooth: bool
    """Whether the operands are away from ties and kinks, so that differences have limits."""
    compiling: bool
    """Whether the programs are run by XLA too."""
    tried: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        body = self.function.body
        self.active: Mask = tuple(map(has_tangent, body.in_types))
        self.wanted: Mask = tuple(map(has_tangent, body.out_types))

    # Programs that are made, and runs of them.

    def made(
        self,
        types: Sequence[ArrayType],
        build: Callable[[Builder, list[Value]], Sequence[Value]],
        batched: bool = False,
    ) -> Run:
        """A program of some parameters, verified before and after simplification, to be run."""
        facts = self.function.facts
        return self.run_of(closed(facts, types, build), batched)

    def run_of(self, block: Block, batched: bool = False) -> Run:
        """The same for a block."""
        extra = ("batch",) if batched else ()
        sizes = {**self.sizes, **({"batch": LANES} if batched else {})}
        facts = self.function.facts
        function = Function("derived", (*self.function.dims, *extra), facts, block)
        verify(function)
        simple = simplify(function)
        verify(simple)

        def run(operands: Sequence[NDArray]) -> list[NDArray]:
            with np.errstate(all="ignore"):
                plain = [np.asarray(x) for x in evaluate(function, sizes, operands)]
                found = [np.asarray(x) for x in evaluate(simple, sizes, operands)]
            self.same("simplification", found, plain)
            return plain

        return self.compiled(run, simple, sizes) if self.compiling else run

    def compiled(self, run: Run, function: Function, sizes: Mapping[str, int]) -> Run:
        """A run that is done by XLA as well, the first time."""
        from pscdsl._src.targets.pipeline import lower_module
        from pscdsl._src.xla.compilation import compile_module

        done: list[bool] = []

        def both(operands: Sequence[NDArray]) -> list[NDArray]:
            plain = run(operands)
            if not done:
                done.append(True)
                found = compile_module(lower_module(function, sizes)).run(list(operands))
                if finite(plain):
                    self.same("compilation", [np.asarray(x) for x in found], plain, 1e-7)
            return plain

        return both

    # Numbers.

    def like(self, arrays: Sequence[NDArray], mask: Mask) -> list[NDArray]:
        """Random numbers for those of the arrays that the mask names."""
        found: list[NDArray] = []
        for each, wanted in zip(arrays, mask, strict=True):
            if wanted:
                made = np.asarray(self.rng.uniform(-1, 1, np.shape(each)))
                if each.dtype.kind == "c":
                    made = made + 1j * self.rng.uniform(-1, 1, np.shape(each))
                found.append(np.asarray(made, each.dtype))
        return found

    def same(
        self,
        law: str,
        found: Sequence[NDArray],
        wanted: Sequence[NDArray],
        tolerance: float = 1e-9,
    ) -> None:
        """Equal up to rounding, up to the largest number there is."""
        self.tried[law] = self.tried.get(law, 0) + 1
        scale = max([1.0, *[magnitude(x) for x in wanted]])
        for one, other in zip(found, wanted, strict=True):
            if one.shape != other.shape or one.dtype != other.dtype:
                raise Broken(f"{law}: {one.dtype} {one.shape} is not {other.dtype} {other.shape}")
            with np.errstate(all="ignore"):
                near = np.abs(one.astype(complex) - other.astype(complex)) <= tolerance * scale
            alike = near | (one == other) | ((one != one) & (other != other))
            if not np.all(alike):
                raise Broken(f"{law} at {dict(self.sizes)}:\n{one}\nis not\n{other}")

    def paired(
        self,
        law: str,
        one: tuple[Sequence[NDArray], Sequence[NDArray]],
        other: tuple[Sequence[NDArray], Sequence[NDArray]],
    ) -> None:
        """Equal pairings of cotangents and tangents."""
        self.tried[law] = self.tried.get(law, 0) + 1
        scale = max(magnitude(a) * magnitude(b) for pair in (one, other) for a, b in zip(*pair))  # noqa: B905
        first, second = (pairing(*pair) for pair in (one, other))
        if not abs(first - second) <= 1e-9 * max(1.0, scale):
            raise Broken(f"{law} at {dict(self.sizes)}: {first} is not {second}")


def magnitude(array: NDArray) -> float:
    """The largest absolute value."""
    if array.dtype.kind not in "fc":
        return 0.0
    finite = np.abs(array[np.isfinite(array)])
    return float(np.max(finite, initial=0.0))


def pairing(one: Sequence[NDArray], other: Sequence[NDArray]) -> float:
    """The real part of the sum of products: what cotangents do to tangents."""
    products = [np.sum(a * b) for a, b in zip(one, other, strict=True)]
    return float(sum(np.real(each) for each in products))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def finite(arrays: Sequence[NDArray]) -> bool:
    """Whether all numbers are finite, and not too large."""
    return all(
        bool(np.all(np.isfinite(x))) and magnitude(x) < LARGE
        for x in arrays
        if x.dtype.kind in "fc"
    )


def chosen(items: Sequence[Any], mask: Mask) -> list[Any]:
    """The items that a mask names."""
    return [x for x, keeps in zip(items, mask, strict=True) if keeps]


def moved(
    arrays: Sequence[NDArray], mask: Mask, directions: Sequence[NDArray], by: float
) -> list[NDArray]:
    """The arrays that a mask names moved along directions."""
    remaining = iter(directions)
    return [x + by * next(remaining) if m else x for x, m in zip(arrays, mask, strict=True)]


def examine(
    function: Function,
    sizes: Mapping[str, int],
    operands: Sequence[NDArray],
    rng: np.random.Generator,
    smooth: bool = True,
    compiling: bool = False,
) -> dict[str, int]:
    """Try the laws on a program in f64; how often each was tried, a Broken if one fails.

    `smooth` says that the operands are away from ties and kinks; with `compiling` every program
    that is made is run by XLA too.
    """
    this = Examination(function, sizes, operands, rng, smooth, compiling)
    if not any(this.active) or not any(this.wanted):
        return this.tried
    block = function.body
    values = this.run_of(block)(operands)
    backward = _first_order(this, block, values)
    _second_order(this, block, values, backward)
    _batches(this, block)
    return this.tried


Build: TypeAlias = Callable[[Builder, list[Value]], Sequence[Value]]


def _pull(this: Examination, block: Block) -> tuple[list[ArrayType], Build]:
    """A builder of the pull-back of a block, and the types of what it takes."""
    count = len(block.params)
    inexact = Block(block.params, block.equations, tuple(chosen(block.results, this.wanted)))

    def build(here: Builder, params: list[Value]) -> list[Value]:
        _, linear = linearize(here, inexact, params[:count], this.active)
        return linear.backward(here, params[count:])

    return [*block.in_types, *inexact.out_types], build


def _first_order(this: Examination, block: Block, values: list[NDArray]) -> Run:
    facts = this.function.facts
    wanted = chosen(block.out_types, this.wanted)
    tangent_types = chosen(block.in_types, this.active)
    pushed, kept = jvp_block(facts, block, this.active, this.wanted)
    assert kept == this.wanted
    forward = this.run_of(pushed)
    types, build = _pull(this, block)
    backward = this.made(types, build)

    def twice(here: Builder, params: list[Value]) -> list[Value]:
        primals, ts = params[: len(this.active)], params[len(this.active) :]
        results, linear = linearize(here, block, primals, this.active)
        return [*results, *linear.forward(here, ts)]

    linearized = this.made([*block.in_types, *tangent_types], twice)
    t = this.like(this.operands, this.active)
    c = this.like(values, this.wanted)
    together = forward([*this.operands, *t])
    this.same("the values beside the tangents", together[: len(values)], values, 0)
    tangents = together[len(values) :]
    assert len(tangents) == len(wanted)
    back = backward([*this.operands, *c])
    again = linearized([*this.operands, *t])
    if finite([*values, *tangents, *back]):
        this.same("linearize", again, together)
        this.paired("adjoint", (c, tangents), (back, t))
        _smooth(this, "first derivatives", this.run_of(block), this.operands, t, tangents)
    return backward


def _smooth(
    this: Examination,
    law: str,
    run: Run,
    operands: Sequence[NDArray],
    directions: Sequence[NDArray],
    found: Sequence[NDArray],
) -> None:
    """Compare with differences where these do not depend on the side and the length of the step."""
    if not this.smooth:
        return
    mask = (*this.active, *[False] * (len(operands) - len(this.active)))
    rows = [run(moved(operands, mask, directions, by * STEP)) for by in (-2, -1, 0, 1, 2)]
    inexact = [[x for x in row if x.dtype.kind in "fc"] for row in rows]
    for index, tangent in enumerate(found):
        a, b, mid, c, d = (row[index] for row in inexact)
        with np.errstate(all="ignore"):
            near, far = (c - b) / (2 * STEP), (d - a) / (4 * STEP)
            left, right = (mid - b) / STEP, (c - mid) / STEP
        scale = 1 + max(magnitude(near), magnitude(tangent))
        bent = max(magnitude(left - right), magnitude(near - far))
        if not finite([near, far, left, right]) or bent > 1e-4 * scale:
            continue
        noise = 1e-15 * magnitude(mid) / STEP
        limit = (4 * near - far) / 3
        this.tried[law] = this.tried.get(law, 0) + 1
        if not magnitude(limit - tangent) <= 1e-3 * scale + 100 * noise:
            raise Broken(f"{law} at {dict(this.sizes)}:\n{tangent}\nis not\n{limit}")


def _second_order(this: Examination, block: Block, values: list[NDArray], backward: Run) -> None:
    """Forward mode over reverse mode."""
    types, pull = _pull(this, block)
    inner = closed(this.function.facts, types, pull)
    moving = (*this.active, *[False] * sum(this.wanted))
    rows = chosen(block.in_types, this.active)

    def build(here: Builder, params: list[Value]) -> list[Value]:
        primals, es = params[: len(types)], iter(params[len(types) :])
        tangents = [next(es) if moves else None for moves in moving]
        _, found = jvp(here, inner, primals, tangents)
        return [zeros(here, each) if x is None else x for x, each in zip(found, rows, strict=True)]

    second = this.made([*types, *rows], build)
    c = this.like(values, this.wanted)
    e, other = (this.like(this.operands, this.active) for _ in range(2))
    back = backward([*this.operands, *c])
    found = second([*this.operands, *c, *e])
    swapped = second([*this.operands, *c, *other])
    if finite([*values, *back, *found, *swapped]):
        this.paired("symmetric", (found, other), (swapped, e))
        _smooth(this, "second derivatives", backward, [*this.operands, *c], e, found)


def _batches(this: Examination, block: Block) -> None:
    """A batch is a loop; so is a batch of pull-backs, and the pull-back of a batch."""
    facts, size = this.function.facts, name("batch")
    for _ in range(2):
        batched = tuple(bool(x) for x in this.rng.integers(0, 2, len(block.params)))
        if any(batched):
            _batch(this, block, batched)
    lanes = _lanes(this, this.active)
    over, _ = batch_block(facts, block, this.active, size, this.wanted)
    rows = this.run_of(over, True)(_stacked(this, lanes, this.active))
    types, pull = _pull(this, block)
    inner = closed(facts, types, pull)
    cs = this.like(rows, this.wanted)
    mask = (*this.active, *[True] * len(cs))
    each, flags = batch_block(facts, inner, mask, size, (True,) * sum(this.active))
    assert all(flags)
    found = this.run_of(each, True)([*_stacked(this, lanes, this.active), *cs])
    types_over, pull_over = _pull(this, over)
    whole = this.made(types_over, pull_over, True)
    together = whole([*_stacked(this, lanes, this.active), *cs])
    one = this.run_of(inner)
    loop = [one([*lane, *[c[at] for c in cs]]) for at, lane in enumerate(lanes)]
    wanted = [np.stack(each) for each in zip(*loop, strict=True)]
    if finite(wanted):
        this.same("a batch of pull-backs", found, wanted)
        this.same("the pull-back of a batch", together, wanted)


def _lanes(this: Examination, batched: Mask) -> list[list[NDArray]]:
    """Operands for each lane of a batch."""
    found: list[list[NDArray]] = []
    for lane in range(LANES):
        row: list[NDArray] = []
        for x, many in zip(this.operands, batched, strict=True):
            if not many or not lane:
                row.append(x)
            elif x.dtype.kind == "b":
                row.append(np.asarray(this.rng.integers(0, 2, x.shape), x.dtype))
            elif x.dtype.kind in "iu":
                row.append(np.asarray(this.rng.integers(0, 4, x.shape), x.dtype))
            else:
                row.append(np.asarray(x + this.like([x], (True,))[0], x.dtype))
        found.append(row)
    return found


def _stacked(this: Examination, lanes: list[list[NDArray]], batched: Mask) -> list[NDArray]:
    return [
        np.stack([lane[at] for lane in lanes]) if many else this.operands[at]
        for at, many in enumerate(batched)
    ]


def _batch(this: Examination, block: Block, batched: Mask) -> None:
    over, kept = batch_block(this.function.facts, block, batched, name("batch"))
    types = [over_batch(t, name("batch")) if b else t for t, b in zip(block.in_types, batched)]  # noqa: B905
    assert [v.type for v in over.params] == types
    lanes = _lanes(this, batched)
    found = this.run_of(over, True)(_stacked(this, lanes, batched))
    run = this.run_of(block)
    loop = [run(lane) for lane in lanes]
    rows = [
        np.stack([lane[at] for lane in loop]) if many else loop[0][at]
        for at, many in enumerate(kept)
    ]
    this.same("a batch", found, rows)
