"""What `psc.tree` means in kernels: trees are static, so every function of them is unrolled."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

from pscdsl._src.frontend.interpreter.records import RecordClass
from pscdsl._src.frontend.trees.pytrees import applicable, at, leaf
from pscdsl._src.frontend.trees.walks import Flat, Node, flattened, rebuilt, same_shapes, together
from pscdsl._src.frontend.values.purity import external_value
from pscdsl._src.frontend.values.values import (
    External,
    MapValue,
    Poisoned,
    RecordValue,
    StaticFunction,
    VectorValue,
    describe,
    is_poisoned,
    is_traced,
)
from pscdsl._src.ir.builder import Builder, Value, Weak
from pscdsl._src.language.meanings import MEANINGS
from pscdsl._src.primitives import elementwise as e
from pscdsl.numpy.linear_algebra import root, squares
from pscdsl.numpy.shorthand import cast, joined, part, raveled, reshaped, wide
from pscdsl.typing.array_types import (
    NONE,
    ArrayType,
    MapType,
    RecordType,
    Shape,
    StaticType,
    TupleType,
    Type,
    VectorType,
    paths,
    size_of,
)
from pscdsl.typing.codes.control import NotATree
from pscdsl.typing.codes.element_types import DtypeNotAccepted, DtypesDiffer
from pscdsl.typing.diagnostics import Failure
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import F32, DType
from pscdsl.typing.python_containers import is_dict, is_sequence

# How trees are taken apart in kernels: tuples, records, maps and vectors of traced arrays.


class Inside:
    """How trees of the values of a kernel are taken apart."""

    def __init__(self, here: Builder, name: str) -> None:
        self.here = here
        self.name = name

    def array(self, value: Any) -> ArrayType:
        """The type of an array or number of the program."""
        found = leaf(self.here, value)
        if found is not None:
            return found.type
        if isinstance(value, External):
            raise Failure(external_value(value))
        what = f"a tree of `{self.name}`"
        rewrite = "use a `psc.Record`, or `pyrsistent.pmap`, in its place" if is_dict(value) else ""
        raise Failure(NotATree(what=what, found=describe(value), rewrite=rewrite))

    def node(self, value: Any) -> Node | None:
        """What a tuple, list, record, map or vector holds."""
        if value is None:
            return Node((), lambda _: NONE, lambda _: None)
        if is_sequence(value):
            return Node(value, TupleType, list if isinstance(value, list) else tuple)
        if isinstance(value, RecordValue):
            return self._record(value)
        if isinstance(value, MapValue):
            keys = sorted(value.items)
            return Node(
                [value.items[key] for key in keys],
                lambda types: MapType(tuple(zip(keys, types, strict=True))),
                lambda items: MapValue(dict(zip(keys, items, strict=True))),
            )
        if isinstance(value, VectorValue):
            return Node(value.items, VectorType, lambda items: VectorValue(tuple(items)))
        if isinstance(value, str):
            return Node((), lambda _: StaticType(value), lambda _: value)
        return None

    def _record(self, value: RecordValue) -> Node:
        # An annotation may call these.
        from pscdsl._src.frontend.specs.annotations import static_fields

        cls, fields = value.cls, value.fields
        static = {
            name
            for name in static_fields(cls)
            if isinstance(fields[name], Hashable) and not is_traced(fields[name])
        }

        def made(items: list[Any]) -> RecordValue:
            return RecordValue(cls, dict(zip(fields, items, strict=True)))

        return record_node(cls, fields, static, made)


def record_node(
    cls: RecordClass,
    fields: Mapping[str, Any],
    static: Collection[str],
    made: Callable[[list[Any]], Any],
) -> Node:
    """A record: static fields belong to its structure, the others are its parts."""

    def type_of(types: tuple[Type, ...]) -> Type:
        rest = iter(types)
        known = ((n, StaticType(v) if n in static else next(rest)) for n, v in fields.items())
        return RecordType(cls.name, tuple(known))

    def filled(items: list[Any]) -> Any:
        rest = iter(items)
        return made([v if n in static else next(rest) for n, v in fields.items()])

    return Node([v for n, v in fields.items() if n not in static], type_of, filled)


def _flat(here: Builder, name: str, tree: Any) -> Flat:
    if is_poisoned(tree):
        raise Poisoned
    return flattened(Inside(here, name), tree)


def map_(here: Builder, f: Any, tree: Any, *rest: Any) -> Any:
    """A tree of what a function makes of the leaves of trees."""
    name = "psc.tree.map"
    function = applicable(f, name)
    flat = [_flat(here, name, each) for each in (tree, *rest)]
    rows = together(name, flat, absent=True)
    mapped = [function.apply(here, row, {}) for row in rows]
    return rebuilt(Inside(here, name), tree, iter(mapped))


def leaves(here: Builder, tree: Any) -> tuple[Any, ...]:
    """The arrays of a tree in order."""
    return tuple(_flat(here, "psc.tree.leaves", tree).leaves)


def reduce(here: Builder, f: Any, tree: Any, initial: Any) -> Any:
    """`f(value, leaf)` for each leaf in order."""
    name = "psc.tree.reduce"
    function = applicable(f, name)
    value = initial
    for each in _flat(here, name, tree).leaves:
        value = function.apply(here, (value, each), {})
    return value


def size(here: Builder, tree: Any) -> Size:
    """How many elements all arrays have."""
    found: Size = 0
    for _, each in paths(_flat(here, "psc.tree.size", tree).type):
        found = found + size_of(each.shape)
    return found


def zeros_like(here: Builder, tree: Any, dtype: Any = None) -> Any:
    """Zeros in place of each array."""
    name = "psc.tree.zeros_like"
    zeros: Any = MEANINGS["numpy.zeros_like"]
    made = [zeros.apply(here, (each, dtype), {}) for each in _flat(here, name, tree).leaves]
    return rebuilt(Inside(here, name), tree, iter(made))


def dot(here: Builder, a: Any, b: Any) -> Value | Weak:
    """The sum of the products of all elements, those of `a` conjugated."""
    name = "psc.tree.dot"
    flat = [_flat(here, name, each) for each in (a, b)]
    pairs = together(name, flat)
    same_shapes(name, here.facts, flat[0].type, flat[1].type)
    vdot: Any = MEANINGS["numpy.vdot"]
    products = [
        vdot.apply(here, tuple(_accumulating(here, name, each) for each in pair), {})
        for pair in pairs
    ]
    return _summed(here, products)


def norm(here: Builder, tree: Any) -> Value | Weak:
    """The Euclidean norm of all elements together."""
    name = "psc.tree.norm"
    parts = [_accumulating(here, name, each) for each in _flat(here, name, tree).leaves]
    strong = [each.default() if isinstance(each, Weak) else each for each in parts]
    sums = [squares(each, tuple(range(each.ndim)), False) for each in strong]
    total = _summed(here, sums)
    return root(total, 0.5) if isinstance(total, Value) else total


def _accumulating(here: Builder, name: str, value: Any) -> Value | Weak:
    """A leaf in the dtype in which sums over it are taken."""
    found = leaf(here, value)
    assert found is not None
    if isinstance(found, Weak):
        return found
    if not found.dtype.is_inexact:
        accepts = "floating or complex"
        raise Failure(DtypeNotAccepted(function=name, given=found.type, accepts=accepts))
    return cast(found, wide(found.dtype))


def _summed(here: Builder, terms: Sequence[Value | Weak]) -> Value | Weak:
    """The sum of scalars in the widest of their dtypes."""
    dtypes = [each.dtype for each in terms if isinstance(each, Value)]
    widest = _widest(dtypes) if dtypes else None
    total: Value | Weak = here.weak(0.0)
    for index, each in enumerate(terms):
        if isinstance(each, Value):
            term: Value | Weak = each if widest is None else cast(each, widest)
        else:
            term = each if widest is None else each.at(widest)
        total = e.add(total, term) if index else term
    return total


def _widest(dtypes: Sequence[DType]) -> DType:
    """The narrowest dtype that holds all of these, which have at least 32 bits."""
    real = max((each.real for each in dtypes), key=lambda dtype: dtype.bits)
    return real.complex if any(each.is_complex for each in dtypes) else real


def ravel(here: Builder, tree: Any) -> tuple[Value, StaticFunction]:
    """All elements as one vector, and the function that makes a tree of such a vector."""
    name = "psc.tree.ravel"
    flat = _flat(here, name, tree)
    found = [each for each in (leaf(here, x) for x in flat.leaves) if each is not None]
    dtype = _one_dtype(found)
    arrays = [at(each, dtype) for each in found]
    shapes = [array.shape for array in arrays]
    pieces = [raveled(array) for array in arrays]
    vector = joined(pieces, 0) if pieces else here.full(0.0, (0,), dtype)

    def unravel(here: Builder, vector: Any) -> Any:
        given = leaf(here, vector)
        if given is None:
            raise Failure(NotATree(what=f"the vector of `{name}`", found=describe(vector)))
        pieces = _pieces(given.default() if isinstance(given, Weak) else given, shapes)
        return rebuilt(Inside(here, name), tree, pieces)

    return vector, StaticFunction("unravel", unravel)


def _one_dtype(found: Sequence[Value | Weak]) -> DType:
    """The dtype that all arrays have; f32 where there is none."""
    strong = [each for each in found if isinstance(each, Value)]
    for each in strong[1:]:
        if each.dtype is not strong[0].dtype:
            raise Failure(DtypesDiffer(left=strong[0].type, right=each.type))
    return strong[0].dtype if strong else F32


def _pieces(vector: Value, shapes: Sequence[Shape]) -> Iterator[Value]:
    """Arrays of these shapes from the elements of a vector, one after the other."""
    total: Size = 0
    for shape in shapes:
        total = total + size_of(shape)
    reshape: Any = MEANINGS["numpy.reshape"]
    vector = reshape.apply(vector.builder, (vector, (total,)), {})
    start: Size = 0
    for shape in shapes:
        stop = start + size_of(shape)
        yield reshaped(part(vector, 0, start, stop), shape)
        start = stop


def register() -> None:
    """Give the functions their names."""
    functions: dict[str, Callable[..., Any]] = {
        "map": map_,
        "leaves": leaves,
        "reduce": reduce,
        "size": size,
        "zeros_like": zeros_like,
        "dot": dot,
        "norm": norm,
        "ravel": ravel,
    }
    for name, body in functions.items():
        MEANINGS[f"pscdsl.tree.{name}"] = StaticFunction(f"psc.tree.{name}", body)
