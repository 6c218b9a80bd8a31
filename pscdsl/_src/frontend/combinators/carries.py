"""The carry of a loop: what is given, what the body returns, and that they agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pscdsl._src.frontend.interpreter.frames import inner_block
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.trees.pytrees import flatten, unflatten
from pscdsl._src.frontend.trees.tracing import MAX_ROUNDS, Attempt, at, strong
from pscdsl._src.frontend.values.values import Applicable, Poisoned
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.ir.program import Block
from pscdsl.typing.array_types import (
    ArrayType,
    TupleType,
    Type,
    children,
    map_leaves,
    paths,
    same_structure,
    show_shape,
)
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.control import COMBINING, CarryMismatch
from pscdsl.typing.diagnostics import Failure, Label
from pscdsl.typing.dtypes import I32, DType, accepts_weak
from pscdsl.typing.tree_differences import (
    Difference,
    array_difference,
    repair,
    structure_differences,
)


@dataclass
class Carry:
    """A loop's carry: its initial leaves, some of them weak until the body decides."""

    loop: str
    leaves: list[Value | Weak]
    tree: Type
    dtypes: list[DType]
    body: Applicable | None = None
    """The function whose result is the next carry."""

    @classmethod
    def of(cls, here: Builder, loop: str, init: Any, body: Applicable) -> Carry:
        """The carry with this initial value."""
        leaves, tree = flatten(here, init, f"the initial carry of `{loop}`")
        return cls(loop, leaves, tree, [each.dtype for each in leaves], body)

    def initial_types(self) -> list[ArrayType]:
        """The types of the initial leaves in the dtypes found so far."""
        return [each.type.with_dtype(d) for each, d in zip(self.leaves, self.dtypes, strict=True)]

    def initial(self) -> list[Value]:
        """The initial leaves in the dtypes found so far."""
        return [at(each, dtype) for each, dtype in zip(self.leaves, self.dtypes, strict=True)]

    def settle(
        self, facts: Assumptions, returned: Sequence[Value | Weak], tree: Type
    ) -> list[Value] | None:
        """What the body returned as the next carry; None if a weak leaf changes dtype first."""
        initial = self.initial_types()
        remaining = iter(initial)
        own = map_leaves(self.tree, lambda _: next(remaining))
        differences = list(structure_differences(tree, own))
        if differences:
            raise Failure(*(self.other_structure(own, tree, each) for each in differences))
        changed = False
        values: list[Value] = []
        problems: list[CarryMismatch] = []
        places = [path for path, _ in paths(own)]
        for index, (path, start, each) in enumerate(zip(places, initial, returned, strict=True)):
            value = at(each, start.dtype)
            if value.dtype is not start.dtype and isinstance(self.leaves[index], Weak):
                if accepts_weak(value.dtype, self.leaves[index].kind):  # type: ignore[union-attr]
                    self.dtypes[index] = value.dtype
                    changed = True
                    continue
            values.append(value)
            found = self.mismatch(facts, path, start, value.type)
            if found is not None:
                problems.append(found)
        if changed:
            return None
        if problems:
            raise Failure(*problems)
        return values

    def other_structure(self, given: Type, returned: Type, place: Difference) -> CarryMismatch:
        """How the structure of a part differs."""
        rewrite = "return what the carry starts as, or start with what is returned"
        pair = isinstance(returned, TupleType) and len(returned.items) == 2
        if self.loop in COMBINING:
            rewrite = "return one tree of the structure of each of the two that are combined"
        elif pair and self.loop != "psc.scan" and same_structure(children(returned)[0][1], given):
            rewrite = "return the carry alone: only the body of `psc.scan` has a second result"
        return CarryMismatch(
            loop=self.loop,
            path=place.path,
            given=str(place.wanted),
            returned=str(place.found),
            why=place.why,
            rewrite=rewrite,
        )

    def mismatch(
        self, facts: Assumptions, path: str, given: ArrayType, returned: ArrayType
    ) -> CarryMismatch | None:
        """How one leaf differs."""
        why = array_difference(facts, returned, given)
        if why is None:
            return None
        rewrite = repair(facts, returned, given, "return it")
        what = "combine rows" if self.loop in COMBINING else "start with a carry"
        if given.shape == returned.shape:
            rewrite = f"{what} of dtype {returned.dtype}, or {rewrite}"
        elif given.rank != returned.rank:
            start = f"{what} of shape [{show_shape(returned.shape)}]"
            rewrite = f"{rewrite}, or {start}" if rewrite else start
        return CarryMismatch(
            loop=self.loop,
            path=path,
            given=str(given),
            returned=str(returned),
            why=why,
            rewrite=rewrite,
        )


def returned_by(here: Builder, body: Applicable | None) -> tuple[Label, ...]:
    """The place of what a loop's body returns."""
    place = body.returned if isinstance(body, Closure) else None
    if place is None:
        return ()
    return (Label(place.within(here.program.span.call_site), "the body returns this"),)


Run = Callable[[Builder, Any, list[Value]], tuple[Any, list[Value | Weak]]]
"""`run(inner, carry, extra)` gives the next carry and further results."""


@dataclass(frozen=True)
class TracedBody:
    """A loop body: its block takes what it captures, the carry, then the extra parameters."""

    block: Block
    captured: tuple[Value, ...]
    carry: list[Value]


def trace_carry(
    here: Builder, carry: Carry, extra: Sequence[ArrayType], run: Run, pairs: bool = False
) -> TracedBody:
    """Elaborate a loop body until the dtypes of the weak leaves of its carry are settled.

    Most bodies do with the default dtypes.  Where they do not, the body is elaborated once with a
    carry that is weak itself, to see what it makes of it.  With `pairs` the body is given another
    one like the carry, as the last of its extra parameters.
    """
    program = here.program
    discovered = not any(isinstance(each, Weak) for each in carry.leaves)
    for _ in range(MAX_ROUNDS):
        attempt = Attempt(program)
        traced: TracedBody | None = None
        try:
            traced = _trace(here, carry, extra, run, pairs)
        except Poisoned:
            if discovered:
                raise
        except Failure as failure:
            if discovered:
                raise failure.labelled(*returned_by(here, carry.body)) from None
        if traced is not None and (discovered or not attempt.failed()):
            return traced
        attempt.forget()
        if not discovered:
            discovered = True
            _discover(here, carry, extra, run, pairs)
    raise Failure(
        CarryMismatch(
            loop=carry.loop,
            path="",
            given="of one dtype",
            returned="another one each time",
            why="the dtypes do not settle",
        )
    )


def _trace(
    here: Builder, carry: Carry, extra: Sequence[ArrayType], run: Run, pairs: bool
) -> TracedBody | None:
    with inner_block(here) as inner:
        params = [inner.parameter(t) for t in carry.initial_types()]
        again = carry.initial_types() if pairs else []
        more = [inner.parameter(t) for t in (*extra, *again)]
        next_carry, results = run(inner, unflatten(carry.tree, iter(params)), more)
        leaves, tree = flatten(inner, next_carry, f"the carry that `{carry.loop}` returns")
        settled = carry.settle(here.facts, leaves, tree)
        if settled is None:
            return None
        block, captured = inner.finish([*params, *more], [*settled, *strong(results)])
        return TracedBody(block, captured, settled)


def _discover(
    here: Builder, carry: Carry, extra: Sequence[ArrayType], run: Run, pairs: bool
) -> None:
    """Note the dtypes that the body gives to the weak leaves of its carry, or wants them in."""
    program = here.program
    attempt = Attempt(program)
    wanted: dict[int, DType] = {}
    with inner_block(here) as inner:
        params = [_open(inner, each, wanted, at) for at, each in enumerate(carry.leaves)]
        more: list[Any] = [inner.parameter(t) for t in extra]
        if pairs:
            more += [_open(inner, each, wanted, at) for at, each in enumerate(carry.leaves)]
        try:
            next_carry, _ = run(inner, unflatten(carry.tree, iter(params)), more)
            leaves, _ = flatten(inner, next_carry, "")
        except (Failure, Poisoned):
            leaves = []
    attempt.forget()
    if len(leaves) != len(carry.leaves):
        return  # the next round reports what is wrong
    for index, (start, found) in enumerate(zip(carry.leaves, leaves, strict=True)):
        dtype = wanted.get(index, found.dtype) if isinstance(found, Weak) else found.dtype
        if isinstance(start, Weak) and accepts_weak(dtype, start.kind):
            carry.dtypes[index] = dtype


def _open(inner: Builder, leaf: Value | Weak, wanted: dict[int, DType], index: int) -> Value | Weak:
    """A parameter for a leaf of the carry, weak where the leaf is.

    What dtype a weak one is taken in, if not in its default, is noted.
    """
    if isinstance(leaf, Value):
        return inner.parameter(leaf.type)
    default, shape = leaf.dtype, leaf.shape

    def at(dtype: DType) -> Value:
        if dtype is not default:
            wanted[index] = dtype
        return inner.parameter(ArrayType(dtype, shape))

    return Weak(inner, leaf.kind, shape, at, whole=I32)


def trace_counter(here: Builder, function: Applicable, carry: Carry, counter: DType) -> TracedBody:
    """The body of a counting loop; the counter is the last of the block's carry."""

    def run(inner: Builder, state: Any, more: list[Value]) -> tuple[Any, list[Value | Weak]]:
        (i,) = more
        return function.apply(inner, (i, state), {}), [i + 1]

    return trace_carry(here, carry, [ArrayType(counter)], run)
