"""Where two trees of arrays differ, why, and what would make one the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pscdsl.typing.array_types import (
    ArrayType,
    MapType,
    NoneType,
    RecordType,
    Shape,
    StaticType,
    TupleType,
    Type,
    VectorType,
    children,
    paths,
    size_of,
    static_text,
)
from pscdsl.typing.assumptions import Assumptions, sufficient_bound
from pscdsl.typing.codes.control import TreeArgumentsDiffer
from pscdsl.typing.codes.shapes import disagreement
from pscdsl.typing.dims import Dim, Size
from pscdsl.typing.facts import Fact
from pscdsl.typing.signatures import TreeSpec


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the tree that was found is not the one that is wanted."""

    path: str
    """The text that selects it, empty for the whole."""
    found: Type
    wanted: Type
    why: str


def structure_differences(found: Type, wanted: Type, path: str = "") -> Iterator[Difference]:
    """The outermost places where the structures differ, whatever the arrays are."""
    if isinstance(found, ArrayType) and isinstance(wanted, ArrayType):
        return
    why = _structure(found, wanted)
    if why is not None:
        yield Difference(path, found, wanted, why)
        return
    for (step, mine), (_, other) in zip(children(found), children(wanted), strict=True):
        yield from structure_differences(mine, other, path + step)


def _structure(found: Type, wanted: Type) -> str | None:
    """Why two nodes are not of one kind, their children left aside."""
    if type(found) is not type(wanted):
        return f"{kind(found)}, not {kind(wanted)}"
    if isinstance(found, NoneType):
        return None
    if isinstance(found, StaticType):
        return None if found == wanted else f"{found}, not {wanted}"
    if isinstance(found, RecordType) and isinstance(wanted, RecordType):
        if found.record != wanted.record:
            return f"{kind(found)}, not {kind(wanted)}"
    mine, others = [step for step, _ in children(found)], [step for step, _ in children(wanted)]
    if mine == others:
        return None
    if isinstance(found, TupleType | VectorType):
        return f"{kind(found)}, not {len(others)}"
    missing = [f"without {step}" for step in others if step not in mine]
    extra = [f"with {step} too" for step in mine if step not in others]
    return ", ".join(missing + extra) or "in another order"


def kind(tree: Type) -> str:
    """What a node is, in words."""
    match tree:
        case ArrayType():
            return "an array"
        case TupleType():
            return f"a tuple of {len(tree.items)}"
        case VectorType():
            return f"a vector of {len(tree.items)}"
        case RecordType():
            return f"a `{tree.record.name}`"
        case MapType():
            return "a map"
        case NoneType():
            return "None"
        case StaticType():
            return f"the static value {static_text(tree.value)}"


def array_difference(facts: Assumptions, found: ArrayType, wanted: ArrayType) -> str | None:
    """Why two types differ, in words; None if they are the same for all sizes."""
    if found.rank != wanted.rank:
        return f"{found.rank} axes, not {wanted.rank}"
    for mine, other in zip(found.shape, wanted.shape, strict=True):
        if not facts.equal(mine, other):
            return disagreement(facts, mine, other)
    if found.dtype is not wanted.dtype:
        return f"dtype {found.dtype}, not {wanted.dtype}"
    return None


def conversion(facts: Assumptions, found: ArrayType, wanted: ArrayType) -> str:
    """What is written behind an array to make it the other; empty if nothing does for all sizes.

    A dtype is cast; a shape is brought about by what moves elements and leaves them as they are.
    """
    cast = "" if found.dtype is wanted.dtype else f".astype(psc.{wanted.dtype})"
    if _equal(facts, found.shape, wanted.shape):
        return cast
    moved = _moved(facts, found.shape, wanted.shape)
    return moved + cast if moved else ""


def _moved(facts: Assumptions, found: Shape, wanted: Shape) -> str:
    if len(found) >= 2 and _equal(facts, found[::-1], wanted):
        return ".T"
    longer, shorter, sign = (found, wanted, "0")
    if len(found) < len(wanted):
        longer, shorter, sign = (wanted, found, "None")
    ones = _surplus_ones(facts, longer, shorter)
    if ones:
        parts = [sign if axis in ones else ":" for axis in range(max(ones) + 1)]
        return f"[{', '.join(parts)}]"
    if facts.equal(size_of(found), size_of(wanted)):
        return f".reshape({', '.join(map(str, wanted))})"
    return ""


def _surplus_ones(facts: Assumptions, longer: Shape, shorter: Shape) -> list[int]:
    """The axes of size one without which the longer shape is the shorter; none if it is not."""
    ones: list[int] = []
    rest = list(shorter)
    for axis, size in enumerate(longer):
        if rest and facts.equal(size, rest[0]):
            rest.pop(0)
        elif facts.equal(size, 1):
            ones.append(axis)
        else:
            return []
    return [] if rest else ones


def surplus_axis(facts: Assumptions, found: Shape, wanted: Shape) -> int | None:
    """The one axis without which the shape that was found is the other."""
    if len(found) != len(wanted) + 1:
        return None
    for axis in range(len(found)):
        if _equal(facts, found[:axis] + found[axis + 1 :], wanted):
            return axis
    return None


def may_be_equal(facts: Assumptions, found: Shape, wanted: Shape) -> Fact | None:
    """The one equation between sizes under which the shapes are the same, if it can hold."""
    if len(found) != len(wanted):
        return None
    pairs = zip(found, wanted, strict=True)
    claims = {Fact("==", a, b): None for a, b in pairs if not facts.equal(a, b)}
    if len(claims) != 1:
        return None
    (claim,) = claims
    named = isinstance(claim.left, Dim) and isinstance(claim.right, Dim)
    named = named and "(" not in str(claim)  # nobody means that the ends of slices are one size
    return claim if named and facts.counterexample(claim.negated()) is not None else None


def enough_for(facts: Assumptions, found: Shape, wanted: Shape) -> Fact | None:
    """The least size from which on two shapes are the same, if there is one."""
    if len(found) != len(wanted):
        return None
    pairs = zip(found, wanted, strict=True)
    return sufficient_bound(facts, [Fact("==", a, b) for a, b in pairs if not facts.equal(a, b)])


def repair(facts: Assumptions, found: ArrayType, wanted: ArrayType, subject: str) -> str:
    """How to make one array the other, as a sentence about `subject`; empty if none is known."""
    written = conversion(facts, found, wanted)
    if written:
        return f"{subject} with `{written}`"
    axis = surplus_axis(facts, found.shape, wanted.shape)
    if axis is not None:
        return f"{subject} reduced along axis {axis}, for instance with `.sum(axis={axis})`"
    bound = enough_for(facts, found.shape, wanted.shape)
    if bound is not None:
        return f"add `assert {bound}`"
    claim = may_be_equal(facts, found.shape, wanted.shape)
    if claim is not None:
        return f"if they are one size, give it one name in the signature, or `assert {claim}`"
    if broadcasts(facts, found.shape, wanted.shape):
        return f"{subject} through `np.broadcast_to(…, {_written(wanted.shape)})`"
    return ""


def _written(shape: Shape) -> str:
    """A shape as Python writes it."""
    sizes = ", ".join(map(str, shape))
    return f"({sizes},)" if len(shape) == 1 else f"({sizes})"


def broadcasts(facts: Assumptions, found: Shape, wanted: Shape) -> bool:
    """Whether an array can be repeated to a shape."""
    return len(found) <= len(wanted) and all(
        facts.equal(a, 1) or facts.equal(a, b)
        for a, b in zip(found[::-1], wanted[::-1], strict=False)
    )


def _equal(facts: Assumptions, left: tuple[Size, ...], right: tuple[Size, ...]) -> bool:
    return len(left) == len(right) and all(
        facts.equal(a, b) for a, b in zip(left, right, strict=True)
    )


# Type variables: what one is bound to by its first argument, and how others differ from that.


@dataclass(frozen=True)
class Bound:
    """What a type variable stands for in one call."""

    where: str
    """The argument that says so."""
    tree: Type
    general: Type
    """The same with a name in place of each size."""


def differing(
    function: str, spec: TreeSpec, bound: Bound, given: Type, where: str, facts: Assumptions
) -> list[TreeArgumentsDiffer]:
    """Where an argument is not the tree that its type variable stands for."""

    def problem(path: str, found: object, wanted: object, why: str) -> TreeArgumentsDiffer:
        return TreeArgumentsDiffer(
            function=function,
            variable=spec.name,
            argument=where + path,
            given=str(found),
            other=bound.where + path,
            wanted=str(wanted),
            why=why,
        )

    differences = list(structure_differences(given, bound.tree))
    if differences:
        return [
            problem(difference.path, difference.found, difference.wanted, difference.why)
            for difference in differences
        ]
    found: list[TreeArgumentsDiffer] = []
    for (path, mine), (_, wanted) in zip(paths(given), paths(bound.tree), strict=True):
        why = array_difference(facts, mine, wanted)
        if why is not None:
            found.append(problem(path, mine, wanted, why))
    return found
