"""Trees of arrays: taking values apart into leaves, and putting them together again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.values.purity import external_value
from pscdsl._src.frontend.values.values import (
    Applicable,
    External,
    MapValue,
    Poison,
    Poisoned,
    RecordValue,
    Undecided,
    VectorValue,
    describe,
    is_poisoned,
    is_traced,
)
from pscdsl._src.ir.broadcasting import squeeze
from pscdsl._src.ir.builder import Builder, Program, Value, Weak
from pscdsl._src.primitives import elementwise as e
from pscdsl.typing.array_types import (
    NONE,
    ArrayType,
    MapType,
    NoneType,
    RecordType,
    StaticType,
    TupleType,
    Type,
    VectorType,
    map_leaves,
)
from pscdsl.typing.codes.control import BadPredicate, NotATree
from pscdsl.typing.codes.language import NotCallable
from pscdsl.typing.diagnostics import Failure, Severity
from pscdsl.typing.dims import Dim
from pscdsl.typing.dtypes import BOOL, I32, DType, accepts_weak
from pscdsl.typing.python_containers import is_dict, is_sequence


def leaf(here: Builder, value: Any) -> Value | Weak | None:
    """A value as an array of the program, or None if it is not a number."""
    if isinstance(value, Value | Weak):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return here.constant(value)
    if isinstance(value, bool | int | float | complex | Dim):
        return here.weak(value)
    if isinstance(value, Undecided):
        return condition(here, value)
    return None


def condition(here: Builder, value: Undecided) -> Value:
    """A condition on sizes as a bool of the program."""
    joined = e.bitwise_or if value.any_of else e.bitwise_and
    table = {"==": e.equal, "!=": e.not_equal, "<=": e.less_equal, "<": e.less}
    result: Value | None = None
    for fact in value.facts:
        left, right = here.size(fact.left, I32), here.size(fact.right, I32)
        (each,) = here.bind(table[str(fact.relation)], (left, right))
        result = each if result is None else here.bind(joined, (result, each))[0]
    assert result is not None
    return result


def flatten(here: Builder, value: Any, what: str) -> tuple[list[Value | Weak], Type]:
    """The arrays of a tree, and its type; numbers count as weak arrays."""
    if is_poisoned(value):
        raise Poisoned
    leaves: list[Value | Weak] = []
    return leaves, _flatten(here, value, what, leaves)


def _flatten(here: Builder, value: Any, what: str, leaves: list[Value | Weak]) -> Type:
    found = leaf(here, value)
    if found is not None:
        leaves.append(found)
        return found.type
    if value is None:
        return NONE
    if is_sequence(value):
        return TupleType(tuple(_flatten(here, each, what, leaves) for each in value))
    if isinstance(value, RecordValue):
        return _flatten_record(here, value, what, leaves)
    if isinstance(value, MapValue):
        entries = sorted(value.items.items())
        return MapType(tuple((k, _flatten(here, v, what, leaves)) for k, v in entries))
    if isinstance(value, VectorValue):
        return VectorType(tuple(_flatten(here, item, what, leaves) for item in value.items))
    if isinstance(value, str):
        return StaticType(value)
    if isinstance(value, External):
        raise Failure(external_value(value))
    rewrite = "use a `psc.Record`, or `pyrsistent.pmap`, in its place" if is_dict(value) else ""
    raise Failure(NotATree(what=what, found=describe(value), rewrite=rewrite))


def _flatten_record(
    here: Builder, value: RecordValue, what: str, leaves: list[Value | Weak]
) -> RecordType:
    from pscdsl._src.frontend.specs.annotations import static_fields  # an annotation may call these

    static = static_fields(value.cls)
    fields: list[tuple[str, Type]] = []
    for name, item in value.fields.items():
        stays = name in static and isinstance(item, Hashable) and not is_traced(item)
        fields.append((name, StaticType(item) if stays else _flatten(here, item, what, leaves)))
    return RecordType(value.name, tuple(fields))


def unflatten(tree: Type, leaves: Iterator[Any], array: Callable[[Any], Any] | None = None) -> Any:
    """The value with this type and these leaves."""
    if isinstance(tree, ArrayType):
        each = next(leaves)
        return each if array is None else array(each)
    if isinstance(tree, NoneType):
        return None
    if isinstance(tree, StaticType):
        return tree.value
    if isinstance(tree, TupleType):
        return tuple(unflatten(item, leaves, array) for item in tree.items)
    if isinstance(tree, RecordType):
        cls = tree.record.definition
        assert isinstance(cls, RecordClass)
        return RecordValue(cls, {n: unflatten(each, leaves, array) for n, each in tree.fields})
    if isinstance(tree, MapType):
        return MapValue({key: unflatten(each, leaves, array) for key, each in tree.items})
    assert isinstance(tree, VectorType)
    return VectorValue(tuple(unflatten(item, leaves, array) for item in tree.items))


# What all combinators share: function arguments, trees of arrays, types that must agree.


MAX_ROUNDS = 4
"""How often a body is elaborated anew until the dtypes of its weak inputs are settled."""


def applicable(function: Any, combinator: str) -> Applicable:
    """A function argument; a Failure if it cannot be called."""
    if not isinstance(function, Applicable):
        instead = "give a function of the operands, for instance `lambda x: …`"
        if combinator in ("psc.cond", "psc.switch"):
            instead = "give functions, `lambda: …`, or choose between arrays with `np.where`"
        found = f"{describe(function)}, given to `{combinator}`,"
        raise Failure(NotCallable(found=found, instead=instead))
    return function


def strong(values: Sequence[Value | Weak]) -> list[Value]:
    """Weak arrays in their default dtypes."""
    return [value.default() if isinstance(value, Weak) else value for value in values]


def at(value: Value | Weak, dtype: DType) -> Value:
    """A value in a dtype, if it is weak and can take it; else as it is."""
    if isinstance(value, Value):
        return value
    return value.at(dtype) if accepts_weak(dtype, value.kind) else value.default()


def of_values(tree: Type, values: Sequence[Value]) -> Type:
    """A tree with the types of these values."""
    remaining = iter(values)
    return map_leaves(tree, lambda _: next(remaining).type)


class Attempt:
    """What a first try found and assumed, so that a second one starts as if it had not been."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.count = len(program.findings)
        self.revealed = len(program.revealed)
        self.facts = program.facts

    def failed(self) -> bool:
        """Whether errors were found since."""
        found = self.program.findings[self.count :]
        return any(each.severity is Severity.ERROR for each in found)

    def forget(self) -> None:
        """Drop what was found since, and what was assumed once its absence had been reported.

        Impurities stay: a second try does not find what the first has made unknown.
        """
        findings = self.program.findings
        findings[self.count :] = [d for d in findings[self.count :] if d.code[3] == "2"]
        del self.program.revealed[self.revealed :]
        self.program.facts = self.facts


def bool_scalar(here: Builder, value: Any, construct: str) -> Value:
    """A predicate as a bool scalar; a Failure if it is something else."""
    if isinstance(value, Poison):
        raise Poisoned
    found = leaf(here, value)
    if isinstance(found, Weak):
        found = found.default()
    if found is None or found.dtype is not BOOL or found.ndim:
        if found is not None and found.dtype is BOOL and all(size == 1 for size in found.shape):
            return squeeze(found, tuple(range(found.ndim)))
        raise Failure(BadPredicate(construct=construct, found=describe(value)))
    return found
