"""`cond` and `switch`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pscdsl._src.frontend.interpreter.frames import inner_block
from pscdsl._src.frontend.interpreter.functions import Closure
from pscdsl._src.frontend.interpreter.iteration import items_of
from pscdsl._src.frontend.trees.pytrees import (
    MAX_ROUNDS,
    Attempt,
    applicable,
    at,
    bool_scalar,
    flatten,
    unflatten,
)
from pscdsl._src.frontend.values.values import Applicable, describe
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.ir.program import Block
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.control import Switch
from pscdsl.typing.array_types import NoneType, Type, paths
from pscdsl.typing.assumptions import Assumptions
from pscdsl.typing.codes.control import BadBody, BranchMismatch
from pscdsl.typing.diagnostics import Failure, Label
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import I32, DType, accepts_weak
from pscdsl.typing.tree_differences import (
    Difference,
    array_difference,
    repair,
    structure_differences,
)


def cond(here: Builder, pred: Any, true_fun: Any, false_fun: Any, *operands: Any) -> Any:
    """`true_fun(*operands)` if `pred` else `false_fun(*operands)`; one of them is run."""
    branches = [applicable(each, "psc.cond") for each in (false_fun, true_fun)]
    if isinstance(pred, bool):
        return branches[pred].apply(here, operands, {})
    predicate = bool_scalar(here, pred, "psc.cond")
    names = ("the false branch", "the true branch")
    return _branches(here, "psc.cond", predicate, branches, operands, names)


def switch(here: Builder, index: Any, branches: Any, *operands: Any) -> Any:
    """`branches[index](*operands)`, the index clamped to the branches there are."""
    functions = [applicable(each, "psc.switch") for each in items_of(branches)]
    if not functions:
        raise Failure(BadBody(combinator="psc.switch", needs="at least one branch", found="none"))
    if isinstance(index, int):
        return functions[min(max(index, 0), len(functions) - 1)].apply(here, operands, {})
    if isinstance(index, Weak | Dim):
        index = here.size(index, I32) if isinstance(index, Dim) else index.default()
    if not isinstance(index, Value) or index.ndim or not index.dtype.is_integer:
        raise Failure(
            BadBody(
                combinator="psc.switch", needs="an integer scalar as index", found=describe(index)
            )
        )
    names = tuple(f"branch {number}" for number in range(len(functions)))
    number = _as_i32(index, len(functions))
    return _branches(here, "psc.switch", number, functions, operands, names)


def _as_i32(index: Value, count: int) -> Value:
    if index.dtype is I32:
        return index
    low, high = index.dtype.range
    here = index.builder
    top = here.literal(min(count - 1, high), index.dtype)
    bottom = here.literal(max(0, low), index.dtype)
    return e.Convert(I32)(e.Clamp()(bottom, index, top))


def _branches(
    here: Builder,
    construct: str,
    index: Value,
    functions: Sequence[Applicable],
    operands: Sequence[Any],
    names: Sequence[str],
) -> Any:
    program = here.program
    wanted: list[DType] | None = None
    traced: list[tuple[Builder, list[Value | Weak], Type]] = []
    for _ in range(MAX_ROUNDS):
        attempt = Attempt(program)
        traced = []
        for function in functions:
            with inner_block(here) as inner:
                result = function.apply(inner, operands, {})
                found, tree = flatten(inner, result, f"a branch of `{construct}`")
                leaves: list[Value | Weak] = found
                if wanted is not None:
                    leaves = [at(v, d) for v, d in zip(found, wanted, strict=True)]
                traced.append((inner, leaves, tree))
        try:
            joined = join_branches(here.facts, construct, traced, names)
        except Failure as failure:
            labels = (_place(here, f, n) for f, n in zip(functions, names, strict=True))
            raise failure.labelled(*(label for label in labels if label is not None)) from None
        if wanted is not None or all(
            isinstance(v, Value) for _, leaves, _ in traced for v in leaves
        ):
            break
        wanted = joined
        attempt.forget()
    return _bind_branches(here, index, traced)


def _place(here: Builder, function: Applicable, name: str) -> Label | None:
    """Where a branch is written."""
    if not isinstance(function, Closure):
        return None
    span = function.source.span(function.node)
    if span.line != span.end_line:  # a `def`: its first line says which
        span = span.head(len("def"))
    return Label(span.within(here.program.span.call_site), name)


def join_branches(
    facts: Assumptions,
    construct: str,
    traced: Sequence[tuple[Builder, list[Value | Weak], Type]],
    names: Sequence[str],
) -> list[DType]:
    """The dtype of each result leaf; a Failure where branches differ."""
    tree = traced[0][2]
    for number, (_, _, other) in enumerate(traced[1:], 1):
        differences = structure_differences(other, tree)
        found = [
            BranchMismatch(
                construct=construct,
                path=difference.path,
                first=str(difference.wanted),
                other=str(difference.found),
                names=(names[0], names[number]),
                why=difference.why,
                rewrite=_same_structure(difference),
            )
            for difference in differences
        ]
        if found:
            raise Failure(*found)
    dtypes: list[DType] = []
    problems: list[BranchMismatch] = []
    for position, (path, _) in enumerate(paths(tree)):
        column = [leaves[position] for _, leaves, _ in traced]
        decided = next((v.dtype for v in column if isinstance(v, Value)), None)
        if decided is None:
            top = max(column, key=lambda v: v.dtype.kind)
            decided = top.dtype
        dtypes.append(decided)
        types = [
            v.type.with_dtype(decided)
            if isinstance(v, Weak) and accepts_weak(decided, v.kind)
            else v.type
            for v in column
        ]
        for number, other_type in enumerate(types[1:], 1):
            why = array_difference(facts, other_type, types[0])
            if why is not None:
                rewrite = repair(
                    facts, other_type, types[0], f"let {names[number]} return its result"
                )
                problems.append(
                    BranchMismatch(
                        construct=construct,
                        path=path,
                        first=str(types[0]),
                        other=str(other_type),
                        names=(names[0], names[number]),
                        why=why,
                        rewrite=rewrite,
                    )
                )
                break
    if problems:
        raise Failure(*problems)
    return dtypes


def _same_structure(place: Difference) -> str:
    """What to return where the structures differ."""
    if isinstance(place.found, NoneType) or isinstance(place.wanted, NoneType):
        return "where a branch has nothing to return, let it return zeros of the other's types"
    return "let all branches return the same tuples and records"


def _bind_branches(
    here: Builder, index: Value, traced: Sequence[tuple[Builder, list[Value | Weak], Type]]
) -> Any:
    """Make every branch take the same captured values, then append the equation."""
    finished: list[tuple[Builder, list[Value]]] = []
    for inner, leaves, _ in traced:
        values = [v for v in leaves if isinstance(v, Value)]
        assert len(values) == len(leaves)
        for value in values:
            inner.atom(value)
        finished.append((inner, values))
    captured = list(dict.fromkeys(var for inner, _ in finished for var in inner.captured))
    blocks: list[Block] = []
    for inner, values in finished:
        for var in captured:
            inner.atom(Value(here, var))
        inner.captured = {var: inner.captured[var] for var in captured}
        block, _ = inner.finish([], values)
        blocks.append(block)
    results = here.bind(Switch(tuple(blocks)), (index, *(Value(here, var) for var in captured)))
    return unflatten(traced[0][2], iter(results))
