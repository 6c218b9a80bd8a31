"""From the typed program to StableHLO, with numbers in place of sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, Protocol, TypeAlias

import numpy as np

from pscdsl._src.ir.numpy_dtypes import to_numpy
from pscdsl._src.ir.primitive import Primitive, Types
from pscdsl._src.ir.program import Block, Function, has_effects
from pscdsl._src.primitives.effects import Effect, effects_of
from pscdsl._src.primitives.pointwise import Key as PrimitiveKey
from pscdsl._src.primitives.pointwise import key_of
from pscdsl._src.xla import exactness, lapack
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.facts import (
    ANY,
    APART,
    Bounds,
    EmittedFunction,
    bounds,
    content,
    effort,
    flushed,
    is_flat,
)
from pscdsl._src.xla.lapack import Routines
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.codes.limits import NotSupported
from pscdsl.typing.diagnostics import NOWHERE, Failure, Span
from pscdsl.typing.dims import Size, evaluate
from pscdsl.typing.dtypes import BOOL, I32, KEY, DType

# The operations that translation rules emit, independent of the surrounding program.


H: TypeAlias = Any
"""A value of the module."""
Body: TypeAlias = Callable[[Sequence[H]], Sequence[H]]

_REPEATING = ("stablehlo.broadcast_in_dim", "stablehlo.reshape")
"""Operations whose elements are all elements of the operand."""


_IN_ORDER = ("stablehlo.while", "stablehlo.case")
"""Operations whose regions run as often as the program says, one after another."""


class FutureRegion:
    """A future region: the types of its arguments, and the function that fills it."""

    __slots__ = ("arguments", "body")

    def __init__(self, arguments: Sequence[Any], body: Body) -> None:
        self.arguments = arguments
        self.body = body


def _ignore_arguments(branch: Callable[[], Sequence[H]]) -> Body:
    return lambda arguments: branch()


class Operations:
    """Appends operations at an insertion point; subclasses know the sizes."""

    _ip: Any
    _place: Any

    def __init__(self, in_loop: bool = False, nested: bool = False) -> None:
        self.in_loop = in_loop
        """Whether operations are appended to the body of a loop."""
        self.nested = nested
        """Whether operations are appended to the body of a loop, or to a branch."""
        self._create: Any = c.mlir.Operation.create
        self._fulls: dict[tuple[Any, Any], Any] = {}
        self._here: dict[Any, H] = {}
        """The constants of one number that the block has, and their repetitions."""
        self._scalars: set[H] = set()
        """Constants without axes."""
        self._told: dict[Any, tuple[float, float]] = {}

    def tensor(self, type: ArrayType) -> Any:  # noqa: A002
        """Return the tensor type of an array type."""
        raise NotImplementedError

    @property
    def routines(self) -> Routines:
        """Return the target's way to call LAPACK's routines."""
        raise NotImplementedError

    # Types.

    def tensor_of(self, dtype: DType | str, shape: Sequence[int]) -> Any:
        """Return the tensor type of a dtype (or its name) and a shape of numbers."""
        return c.tensor(dtype if isinstance(dtype, str) else dtype.name, tuple(shape))

    def type_of(self, value: H) -> Any:
        """Return the tensor type of a value; it has a `shape`."""
        return value.type

    def shape_of(self, value: H) -> tuple[int, ...]:
        """Return the shape of a value."""
        return c.facts(value.type).shape

    def dtype_of(self, value: H) -> DType:
        """Return the dtype of a value; a key is the u32 array that it is stored as."""
        return c.facts(value.type).dtype

    def _tensors(self, given: Sequence[Any]) -> list[Any]:
        return [self.tensor(t) if type(t) is ArrayType else t for t in given]

    # Operations in general.

    def op(
        self,
        name: str,
        operands: Sequence[H],
        results: Sequence[Any],
        attributes: Mapping[str, object] | None = None,
        regions: Sequence[FutureRegion] = (),
    ) -> tuple[H, ...]:
        """Emit any operation: its name (StableHLO's without prefix), operands and result types."""
        if attributes is not None:
            attributes = {key: c.attribute(value) for key, value in attributes.items()}
        made = self._create(
            name if "." in name else "stablehlo." + name,
            [self.tensor(t) if type(t) is ArrayType else t for t in results],
            operands,
            attributes,
            regions=len(regions),
            loc=self._place,
            ip=self._ip,
        )
        if regions:
            for region, inner in zip(regions, made.regions, strict=True):
                self._fill(region, inner)
        return (made.result,) if len(results) == 1 else tuple(made.results)

    def _fill(self, region: FutureRegion, inner: Any) -> None:
        types = self._tensors(region.arguments)
        block = inner.blocks.append(*types, arg_locs=[self._place] * len(types))
        outer = self._ip, self._here
        self._ip, self._here = c.mlir.InsertionPoint(block), {}
        try:
            results = region.body(tuple(block.arguments))
            self._create("stablehlo.return", [], list(results), loc=self._place, ip=self._ip)
        finally:
            self._ip, self._here = outer

    def region(self, arguments: Sequence[Any], body: Body) -> FutureRegion:
        """Return a region for `op`; its body is emitted when the operation is."""
        return FutureRegion(arguments, body)

    def custom_call(
        self, target: str, operands: Sequence[H], results: Sequence[Any], **attributes: object
    ) -> tuple[H, ...]:
        """Emit a routine outside of StableHLO.

        `operand_layouts` and `result_layouts` are lists with, for each tensor, its axes from the
        fastest varying on.
        """
        if target.startswith(lapack.PREFIX):
            lapack.ON_CPU.register()
        given: dict[str, Any] = {"api_version": 4, **attributes, "call_target_name": target}
        given["api_version"] = self.parse_attribute(f"{given['api_version']} : i32")
        for name in ("operand_layouts", "result_layouts"):
            if name in given:
                given[name] = [c.layout(axes) for axes in given[name]]
        return self.op("custom_call", operands, results, given)

    def lapack(
        self, routine: str, operands: Sequence[H], results: Sequence[Any], **options: str
    ) -> tuple[H, ...]:
        """Emit a routine of LAPACK on matrices in the last two axes, named without its letter."""
        dtype = c.facts(operands[0].type).dtype
        types = self._tensors(results)
        shapes = [self.shape_of(x) for x in operands], [c.facts(t).shape for t in types]
        self.routines.register()
        call = self.routines.call(routine, dtype, options)
        said = lapack.attributes(routine, *shapes, call)
        return self.op("custom_call", operands, types, said)

    # Attributes.

    def i64_array(self, values: Sequence[int]) -> Any:
        """Numbers, as most attributes want them."""
        return c.i64_array(tuple(values))

    def bool_array(self, values: Sequence[bool]) -> Any:
        """Truth values."""
        return c.mlir.DenseBoolArrayAttr.get(list(values), c.context())

    def i64_elements(self, values: Any) -> Any:
        """Return a constant tensor of numbers, as padding and replica groups want it."""
        array = np.asarray(values, np.int64)
        with c.unknown():
            return c.mlir.DenseElementsAttr.get(array, type=c.i64(), shape=array.shape)

    def parse_attribute(self, text: str) -> Any:
        """Return any attribute, in MLIR's text form."""
        return c.parsed(text)

    # Constants.

    def note_nan(self) -> None:
        """Note that some constant contains a NaN."""

    def constant(self, array: Any, type: ArrayType) -> H:  # noqa: A002
        """Emit a known array."""
        tensor = self.tensor(type)
        value = np.asarray(array, to_numpy(type.dtype))
        if type.dtype.is_inexact and (value != value).any():
            self.note_nan()
        return self._constant(tensor, c.dense(value, type.dtype.name, tuple(tensor.shape)))

    def full(self, value: Any, type: ArrayType) -> H:  # noqa: A002
        """Emit one number everywhere; one operation for each block that it is used in."""
        tensor = self.tensor(type)
        key = (repr(value), tensor)  # not the value: 0.0 equals -0.0 and 1 equals True
        made = self._here.get(key)
        if made is None:
            found = self._fulls.get(key)
            if found is None:
                if value != value:
                    self.note_nan()
                array = np.asarray(value, to_numpy(type.dtype))
                found = c.dense(array, type.dtype.name, tuple(tensor.shape))
                self._fulls[key] = found
            made = self._here[key] = self._constant(tensor, found)
            if not type.shape:
                self._scalars.add(made)
        return made

    def _constant(self, tensor: Any, elements: Any) -> H:
        return self._create(
            "stablehlo.constant",
            [tensor],
            [],
            {"value": elements},
            loc=self._place,
            ip=self._ip,
        ).result

    def everywhere(self, x: H) -> int | float | None:
        """Return the real number that fills a constant; None if x is not such a constant."""
        owner = x.owner
        while (name := getattr(owner, "name", None)) in _REPEATING:
            owner = owner.operands[0].owner
        if name != "stablehlo.constant" or c.facts(x.type).dtype.is_complex:
            return None
        elements = owner.attributes["value"]
        if not elements.is_splat:
            return None
        found: int | float = elements.get_splat_value().value
        return found

    def bounds(self, x: H) -> tuple[float, float]:
        """Return known bounds of the elements that are not NaN; they may be infinite."""
        return bounds(x, self._told)

    def tell_bounds(self, x: H, low: float, high: float) -> None:
        """Tell `bounds` what it cannot infer from the operations that compute a value."""
        self._told[x] = (low, high)

    def flushed(self, x: H) -> bool:
        """Return whether x certainly has no subnormal numbers, as a result of arithmetic."""
        return flushed(x)

    def effort(self, x: H, enough: int) -> int:
        """About how many operations an element of x takes, if they are fewer than `enough`."""
        return effort(x, enough)

    def is_flat(self, x: H) -> bool:
        """Return whether x is computed from numbers, and arrays with its elements in order."""
        return is_flat(x)

    # Note [Expensive]
    # XLA fuses elementwise computations into their readers, even into those that read an element
    # many times, unless the last operation counts as expensive. A quotient does. LLVM sees that the
    # clamped number can only be 1, XLA does not: there is no division in the end.

    def kept_apart(self, x: H) -> H:
        """Return the same real numbers in a form that XLA does not fuse into repeated readers."""
        known = c.facts(x.type)
        integers, one = c.tensor("i32", known.shape), self.full(1, ArrayType(I32, ()))
        found = self.op("convert", (x,), (integers,))[0]
        found = self.op("clamp", (one, found, one), (integers,))[0]
        return self.binary("divide", x, self.op("convert", (found,), (x.type,))[0])

    # Elementwise operations and shapes.

    def unary(self, name: str, x: H) -> H:
        """Emit an operation whose result has the type of its operand."""
        return self.op(name, (x,), (x.type,))[0]

    def binary(self, name: str, x: H, y: H) -> H:
        """Emit an operation whose result has the type of its operands."""
        return self.op(name, (x, y), (x.type,))[0]

    def compare(self, direction: str, x: H, y: H, *, total: bool = False) -> H:
        """EQ, NE, LT, LE, GT or GE; `total` orders NaN and signed zeros too."""
        known = c.facts(x.type)
        if known.dtype.is_inexact:
            kind = "TOTALORDER" if total else "FLOAT"
        else:
            kind = "SIGNED" if known.dtype.signed else "UNSIGNED"
        attributes = {
            "comparison_direction": c.parsed(f"#stablehlo<comparison_direction {direction}>"),
            "compare_type": c.parsed(f"#stablehlo<comparison_type {kind}>"),
        }
        return self.op("compare", (x, y), (c.tensor(BOOL.name, known.shape),), attributes)[0]

    def select(self, predicate: H, x: H, y: H) -> H:
        """Choose by element, or, by a scalar, the whole; a key is chosen as a whole."""
        chosen, wanted = c.facts(predicate.type).shape, c.facts(x.type).shape
        if chosen and len(chosen) == len(wanted) - 1:
            predicate = self.op(
                "broadcast_in_dim",
                (predicate,),
                (c.tensor(BOOL.name, wanted),),
                {"broadcast_dimensions": c.i64_array(tuple(range(len(chosen))))},
            )[0]
        return self.op("select", (predicate, x, y), (x.type,))[0]

    def convert(self, x: H, to: ArrayType) -> H:
        """Cast the elements."""
        type = self.tensor(to)  # noqa: A001
        return x if x.type == type else self.op("convert", (x,), (type,))[0]

    def reshape(self, x: H, to: ArrayType) -> H:
        """Reshape x to a type's shape."""
        type = self.tensor(to)  # noqa: A001
        return x if x.type == type else self.op("reshape", (x,), (type,))[0]

    def slice(self, x: H, start: Sequence[int], limit: Sequence[int]) -> H:
        """Emit the elements from `start` up to, not including, `limit` along each axis."""
        attributes = {
            "start_indices": c.i64_array(tuple(start)),
            "limit_indices": c.i64_array(tuple(limit)),
            "strides": c.i64_array((1,) * len(start)),
        }
        shape = tuple([high - low for low, high in zip(start, limit, strict=True)])
        return self.op("slice", (x,), (c.tensor(c.facts(x.type).dtype.name, shape),), attributes)[0]

    def pad(
        self,
        x: H,
        value: H,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int] | None = None,
    ) -> H:
        """`x` with scalars added before, after and between the elements along each axis.

        If `low` or `high` is negative, there are fewer elements: these are sliced off, for XLA on
        CPUs has no code for them, and only its simplifier, which is switched off, takes them away.
        """
        between = (0,) * len(low) if interior is None else tuple(interior)
        more = [max(0, each) for each in low], [max(0, each) for each in high]
        attributes = {
            "edge_padding_low": c.i64_array(tuple(more[0])),
            "edge_padding_high": c.i64_array(tuple(more[1])),
            "interior_padding": c.i64_array(between),
        }
        facts = c.facts(x.type)
        spread = [n + max(0, n - 1) * gap for n, gap in zip(facts.shape, between, strict=True)]
        shape = tuple([sum(each) for each in zip(more[0], spread, more[1], strict=True)])
        made = self.op("pad", (x, value), (c.tensor(facts.dtype.name, shape),), attributes)[0]
        if min((0, *low, *high)) == 0:
            return made
        ends = [size + min(0, each) for size, each in zip(shape, high, strict=True)]
        return self.slice(made, [max(0, -each) for each in low], ends)

    def broadcast(self, x: H, to: ArrayType, dims: Sequence[int]) -> H:
        """Put the axes of `x` at `dims` of the result and repeat it along the others."""
        type = self.tensor(to)  # noqa: A001
        if x.type == type:
            return x
        repeated = (x, type)
        if repeated in self._here:
            return self._here[repeated]
        axes = (*dims, len(to.shape)) if to.dtype is KEY else tuple(dims)
        attributes = {"broadcast_dimensions": c.i64_array(axes)}
        made = self.op("broadcast_in_dim", (x,), (type,), attributes)[0]
        if x in self._scalars:
            self._here[repeated] = made
        return made

    # Operations with regions.

    def scalar_of(self, value: H) -> Any:
        """Return the scalar tensor type with the dtype of a value."""
        return c.tensor(c.facts(value.type).dtype.name, ())

    def reduce(
        self,
        operands: Sequence[H],
        inits: Sequence[H],
        axes: Sequence[int],
        outputs: Sequence[Any],
        body: Callable[[Sequence[H], Sequence[H]], Sequence[H]],
    ) -> tuple[H, ...]:
        """Combine the elements along axes; the body gets accumulators and elements, all scalars."""
        count = len(operands)
        region = FutureRegion(
            [self.scalar_of(x) for x in operands] * 2,
            lambda arguments: body(arguments[:count], arguments[count:]),
        )
        attributes = {"dimensions": c.i64_array(tuple(axes))}
        return self.op("reduce", [*operands, *inits], outputs, attributes, (region,))

    def while_loop(
        self, inits: Sequence[H], cond: Callable[[Sequence[H]], H], body: Body
    ) -> tuple[H, ...]:
        """Repeat the body while the condition holds."""
        types = [x.type for x in inits]
        regions = (
            FutureRegion(types, lambda arguments: (cond(arguments),)),
            FutureRegion(types, body),
        )
        outer = self.in_loop, self.nested
        self.in_loop = self.nested = True
        try:
            return self.op("while", inits, types, None, regions)
        finally:
            self.in_loop, self.nested = outer

    def case(
        self, index: H, branches: Sequence[Callable[[], Sequence[H]]], outputs: Sequence[Any]
    ) -> tuple[H, ...]:
        """Emit one of the branches, by a scalar i32 (the last, if out of range) or a bool."""
        if c.facts(index.type).dtype is BOOL:
            index = self.op("convert", (index,), (c.tensor("i32", ()),))[0]
        regions = [FutureRegion((), _ignore_arguments(branch)) for branch in branches]
        outer, self.nested = self.nested, True
        try:
            return self.op("case", (index,), outputs, None, regions)
        finally:
            self.nested = outer

    def sort(
        self,
        operands: Sequence[H],
        axis: int,
        stable: bool,
        comparator: Callable[[Sequence[H]], H],
    ) -> tuple[H, ...]:
        """Sort together along an axis; the comparator gets x0, y0, x1, y1, …, all scalars."""
        region = FutureRegion(
            [self.scalar_of(x) for x in operands for _ in range(2)],
            lambda arguments: (comparator(arguments),),
        )
        attributes = {"dimension": axis, "is_stable": stable}
        return self.op("sort", operands, [x.type for x in operands], attributes, (region,))


# From the typed program to StableHLO, with numbers in place of sizes.
#
# One private function of the module for each (function, sizes) that is called, however often; it
# may be another one in loops, where some operations are better done in another way.
# Emission is hot: operations are made in their generic form with result types given, and types,
# attributes and places are remembered (`context`).


Key: TypeAlias = tuple[Function, tuple[tuple[str, int], ...], bool, bool]
Callee: TypeAlias = tuple[Any, list[Any]]


class Translation(Protocol):
    """A rule that emits a primitive on a target."""

    @property
    def rule(self) -> Callable[[Any, Any, Sequence[H], Types, Types], Sequence[H] | None]:
        """The results of the primitive, given emitter, operands and types; None if not so here."""
        ...


class Lowering(Protocol):
    """A target's rules for programs before and while they are emitted."""

    @property
    def translations(self) -> Mapping[PrimitiveKey, Sequence[Translation]]:
        """Return the rules that are tried before the primitives' own."""
        ...

    @property
    def routines(self) -> Routines:
        """Return the target's way to call LAPACK's routines."""
        ...

    @property
    def host_calls(self) -> str:
        """Return the custom call that runs a function on the host."""
        ...

    def prepared(
        self, function: Function, sizes: Mapping[str, int], *, in_loop: bool, nested: bool
    ) -> Block:
        """Return the body of a function that is called there, with numbers for its sizes."""
        ...


def emit_module(
    function: Function, sizes: Mapping[str, int], lowering: Lowering, donate: Sequence[int] = ()
) -> Any:
    """Return a module whose public `main` is the function at these sizes.

    Results may reuse the memory of the parameters in `donate`.
    """
    emitter = ModuleEmitter(lowering)
    module = emitter.lower(function, dict(sizes), donate)
    if function.fast_math:
        c.set_fast(module)
        return module
    if emitter.library_matters and exactness.may_sum_products(module):
        module = ModuleEmitter(lowering, has_library=False).lower(function, dict(sizes), donate)
    exactness.keep(module)
    return module


class ModuleEmitter:
    """A module under construction: the functions made, and those whose body is pending."""

    def __init__(self, lowering: Lowering, has_library: bool = True) -> None:
        c.context()
        self.lowering = lowering
        self.has_library = has_library
        """Whether XLA may give reductions of floats to its library."""
        self.library_matters = False
        """Whether the module would be another one without the library."""
        self.translations = lowering.translations
        self.module = c.mlir.Module.create(c.unknown())
        self.holds_nan = False
        """Whether some constant contains a NaN; see `exactness`."""
        self._callees: dict[Key, Callee] = {}
        self._places: dict[int, Any] = {}
        self._names: set[str] = {"main"}
        self._apart: dict[Hashable, tuple[Any, EmittedFunction]] = {}
        self._due: list[tuple[Function, Emitter, Any]] = []
        self.effects: dict[Effect, int] = {}
        """The effects of the program, which run the host functions of these numbers."""

    def lower(self, function: Function, sizes: dict[str, int], donate: Sequence[int]) -> Any:
        """Return the whole module."""
        self.effects = {effect: at for at, effect in enumerate(effects_of(function))}
        self._declare(function, sizes, "main", "public", donate)
        while self._due:
            callee, emitter, entry = self._due.pop()
            body = self.prepared(callee, emitter.sizes, emitter)
            emitter.fill(body, entry, self.place(callee.span))
        exactness.guard(self.module, self.holds_nan, not function.fast_math)
        return self.module

    def prepared(self, function: Function, sizes: Mapping[str, int], here: Emitter) -> Block:
        """Return the body of a function at certain sizes, after all steps before emission."""
        return self.lowering.prepared(function, sizes, in_loop=here.in_loop, nested=here.nested)

    def place(self, span: Span) -> Any:
        """Return a span as a location; spans live as long as the functions that hold them."""
        cached = self._places.get(id(span))
        if cached is None:
            cached = self._places[id(span)] = c.place(span)
        return cached

    def callee(
        self, function: Function, sizes: dict[str, int], in_loop: bool, nested: bool
    ) -> Callee:
        """Return the symbol of a function at certain sizes, and its result types."""
        key = (function, tuple(sorted(sizes.items())), in_loop, nested)
        cached = self._callees.get(key)
        if cached is None:
            name = self._fresh_name(re.sub(r"\W", "_", function.name, flags=re.ASCII) or "function")
            results = self._declare(function, sizes, name, "private", (), in_loop, nested)
            symbol = c.mlir.FlatSymbolRefAttr.get(name, c.context())
            cached = self._callees[key] = (symbol, results)
        return cached

    def apart(
        self, block: Block, operands: Sequence[H], here: Emitter
    ) -> tuple[Any, EmittedFunction]:
        """Return the symbol and the emission of a function that computes a block for such operands.

        Blocks with the same computation share one function.
        """
        bounds = tuple([here.bounds(x) for x in operands])
        key = content(block, here.tensor), bounds, here.in_loop, here.nested
        cached = self._apart.get(key)
        if cached is None:
            name = self._fresh_name("part")
            made = here.inner().function(block, name, bounds)
            cached = self._apart[key] = c.mlir.FlatSymbolRefAttr.get(name, c.context()), made
        return cached

    def _fresh_name(self, base: str) -> str:
        """Return a name that no other function has."""
        name, count = base, 1
        while name in self._names:
            count += 1
            name = f"{base}_{count}"
        self._names.add(name)
        return name

    def _declare(
        self,
        function: Function,
        sizes: dict[str, int],
        name: str,
        visibility: str,
        donate: Sequence[int] = (),
        in_loop: bool = False,
        nested: bool = False,
    ) -> list[Any]:
        from pscdsl._src.xla.counting import require_countable  # a loaded artefact does without

        here = Emitter(self, sizes, in_loop, nested)
        require_countable(function, here.size)
        params = [here.tensor(type_) for type_ in function.body.in_types]
        results = [here.tensor(type_) for type_ in function.body.out_types]
        attributes: dict[str, object] = {}
        if donate:
            attributes["arg_attrs"] = [
                {"jax.buffer_donor": True} if i in donate else {} for i in range(len(params))
            ]
        place = self.place(function.span)
        entry = c.function(self.module, name, params, results, place, visibility, attributes)
        self._due.append((function, here, entry))
        return results


class Emitter(Operations):
    """The emitter that translation rules get: one function being emitted at given sizes."""

    def __init__(
        self, module: ModuleEmitter, sizes: dict[str, int], in_loop: bool, nested: bool
    ) -> None:
        super().__init__(in_loop, nested)
        self._module = module
        self._token: H | None = None
        """The number that the effect before has returned, so that effects keep their order."""
        self._in_reduction = False
        """Whether operations are appended to a region that XLA runs as often as it likes."""
        self._sizes = sizes
        self._types: dict[int, tuple[ArrayType, Any]] = {}

    @property
    def sizes(self) -> Mapping[str, int]:
        """Return the numbers of the named sizes."""
        return self._sizes

    @property
    def routines(self) -> Routines:
        """Return the target's way to call LAPACK's routines."""
        return self._module.lowering.routines

    def has_library(self) -> bool:
        """Return whether XLA may give reductions of floats to its library; note that it matters."""
        self._module.library_matters = True
        return self._module.has_library

    def note_nan(self) -> None:
        """Note that some constant contains a NaN."""
        self._module.holds_nan = True

    def size(self, size: Size) -> int:
        """Return the number of a size."""
        return size if type(size) is int else evaluate(size, self._sizes)

    def shape(self, shape: Sequence[Size]) -> tuple[int, ...]:
        """Return the numbers of a shape."""
        return tuple([size if type(size) is int else evaluate(size, self._sizes) for size in shape])

    def tensor(self, type: ArrayType) -> Any:  # noqa: A002
        """Return the tensor type of an array type."""
        found = self._types.get(id(type))  # identity is faster; the entry keeps the type alive
        if found is None:
            found = (type, c.tensor(type.dtype.name, self.shape(type.shape)))
            self._types[id(type)] = found
        return found[1]

    def inner(self) -> Emitter:
        """For a function that is called here."""
        made = Emitter(self._module, self._sizes, self.in_loop, self.nested)
        made._place = self._place
        return made

    def function(self, block: Block, name: str, bounds: Sequence[Bounds]) -> EmittedFunction:
        """Emit a block as a separate function, for operands within bounds."""
        inputs, outputs = (
            [self.tensor(type_) for type_ in types] for types in (block.in_types, block.out_types)
        )
        span = block.equations[-1].span
        place = self._place if span is NOWHERE else self._module.place(span)
        entry = c.function(self._module.module, name, inputs, outputs, place)
        for x, known in zip(entry.arguments, bounds, strict=True):
            if known != ANY:
                self.tell_bounds(x, *known)
        results = self.fill(block, entry, place)
        told = [self.bounds(x) for x in results]
        return EmittedFunction(results, told)

    def fill(self, block: Block, entry: Any, place: Any) -> tuple[H, ...]:
        """Emit a function with this body; its results."""
        self._ip, self._place = c.mlir.InsertionPoint(entry), place
        results = self.block(block, tuple(entry.arguments))
        self._create("func.return", [], results, loc=self._place, ip=self._ip)
        return results

    def block(self, block: Block, operands: Sequence[H]) -> tuple[H, ...]:
        """Emit a block here with the operands as its parameters, and return its results."""
        values: dict[Any, H] = dict(zip(block.params, operands, strict=True))
        outer, place = self._place, self._module.place
        for equation in block.equations:
            if equation.span is not NOWHERE:
                self._place = place(equation.span)
            inputs = equation.inputs
            given = [values[a] if a in values else self._literal(a) for a in inputs]
            outputs = equation.outputs
            types = tuple([a.type for a in inputs])
            results = self.lower(equation.primitive, given, types, tuple([v.type for v in outputs]))
            if len(outputs) == 1:
                (values[outputs[0]],) = results
            else:
                values.update(zip(outputs, results, strict=True))
        self._place = outer
        return tuple([values[a] if a in values else self._literal(a) for a in block.results])

    def lower(
        self, primitive: Primitive, operands: Sequence[H], inputs: Types, outputs: Types
    ) -> Sequence[H]:
        """Emit the results of a primitive as the target has it, else by its own rule."""
        for each in self._module.translations.get(key_of(primitive), ()):
            results = each.rule(primitive, self, operands, inputs, outputs)
            if results is not None:
                return results
        return primitive.lower(self, operands, inputs, outputs)

    def _literal(self, atom: Any) -> H:
        return self.full(atom.value, atom.type)  # AttributeError: a Var from outside the block

    def call(
        self, function: Function, sizes: Mapping[str, Size], operands: Sequence[H]
    ) -> tuple[H, ...]:
        """Emit the results of another function, called at these sizes."""
        env = {name: self.size(size) for name, size in dict(sizes).items()}
        if has_effects(function.body):  # which are in the order of those around the call
            return self.block(self._module.prepared(function, env, self), operands)
        symbol, results = self._module.callee(function, env, self.in_loop, self.nested)
        return self.op("func.call", operands, results, {"callee": symbol})

    def _fill(self, region: FutureRegion, inner: Any) -> None:
        outer = self._in_reduction
        self._in_reduction = outer or inner.owner.name not in _IN_ORDER
        try:
            super()._fill(region, inner)
        finally:
            self._in_reduction = outer

    # Effects: each takes the number that the one before has returned, so that XLA keeps the order.
    # Loops carry the number, and branches return it.

    def host_call(self, effect: Primitive, operands: Sequence[H], unless: Sequence[H] = ()) -> None:
        """Emit the call of the host function of an effect."""
        number = self._module.effects.get(effect)  # type: ignore[call-overload]
        if number is None or self._in_reduction:
            what = f"`{effect.label}` in a function that combines elements or sorts them"
            raise Failure(NotSupported(what=what))
        before = self._order()

        def call() -> tuple[H, ...]:
            given = {
                "has_side_effect": True,
                "backend_config": self.parse_attribute(f"{{index = {number} : ui64}}"),
            }
            target = self._module.lowering.host_calls
            return self.custom_call(target, (before, *operands), (before.type,), **given)

        if not unless:
            (self._token,) = call()
            return
        holds = reduce(partial(self.binary, "and"), map(self._all, unless))
        (self._token,) = super().case(holds, (call, lambda: (before,)), (before.type,))

    def _all(self, truths: H) -> H:
        """Emit whether all elements of an array of bools are true."""
        return self.reduce(
            (truths,),
            (self.full(True, ArrayType(BOOL)),),
            range(len(self.shape_of(truths))),
            (c.tensor("bool", ()),),
            lambda a, b: self.op("and", (*a, *b), (a[0].type,)),
        )[0]

    def _order(self) -> H:
        """Return the number that the effect before has returned."""
        return self.full(0, ArrayType(I32)) if self._token is None else self._token

    def while_loop(
        self, inits: Sequence[H], cond: Callable[[Sequence[H]], H], body: Body
    ) -> tuple[H, ...]:
        """Repeat the body while the condition holds."""
        if not self._module.effects:
            return super().while_loop(inits, cond, body)

        def inner(carry: Sequence[H], function: Callable[[Sequence[H]], Any]) -> Any:
            *carry, self._token = carry
            return function(carry)

        *results, self._token = super().while_loop(
            (*inits, self._order()),
            lambda carry: inner(carry, cond),
            lambda carry: (*inner(carry, body), self._order()),
        )
        return tuple(results)

    def case(
        self, index: H, branches: Sequence[Callable[[], Sequence[H]]], outputs: Sequence[Any]
    ) -> tuple[H, ...]:
        """Emit one of the branches."""
        if not self._module.effects:
            return super().case(index, branches, outputs)
        before = self._order()

        def inner(branch: Callable[[], Sequence[H]]) -> tuple[H, ...]:
            self._token = before
            return (*branch(), self._order())

        ordered = [partial(inner, branch) for branch in branches]
        *results, self._token = super().case(index, ordered, (*outputs, before.type))
        return tuple(results)

    def apart(self, block: Block, operands: Sequence[H]) -> tuple[H, ...]:
        """Emit the results of a block that XLA computes apart from all else."""
        symbol, made = self._module.apart(block, operands, self)
        types = [x.type for x in made.results]
        results = self.op("func.call", operands, types, {"callee": symbol, **APART})
        for x, (low, high) in zip(results, made.bounds, strict=True):
            self.tell_bounds(x, low, high)
        return results
