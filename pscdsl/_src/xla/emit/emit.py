"""From the typed program to StableHLO, with numbers in place of sizes.

One private function of the module for each (function, sizes) that is called, however often; it
may be another one in loops, where some operations are better done in another way.
Emission is hot: operations are made in their generic form with result types given, and types,
attributes and places are remembered (`context`).
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from pscdsl._src.ir.primitive import Primitive, Types
from pscdsl._src.ir.program import Block, Function
from pscdsl._src.primitives.pointwise import Key as PrimitiveKey
from pscdsl._src.primitives.pointwise import key_of
from pscdsl._src.xla import exponentials, signed_zeros
from pscdsl._src.xla.emit import context as c
from pscdsl._src.xla.emit.facts import ANY, APART, Bounds, Made, content
from pscdsl._src.xla.emit.operations import Operations
from pscdsl._src.xla.lapack import Routines
from pscdsl.typing.array_types import ArrayType
from pscdsl.typing.diagnostics import Span
from pscdsl.typing.dims import Size, evaluate

H: TypeAlias = Any
Key: TypeAlias = tuple[Function, tuple[tuple[str, int], ...], bool, bool]
Callee: TypeAlias = tuple[Any, list[Any]]


class Translation(Protocol):
    """How a primitive is emitted on a target."""

    @property
    def rule(self) -> Callable[[Any, Any, Sequence[H], Types, Types], Sequence[H] | None]:
        """The results of the primitive, given emitter, operands and types; None if not so here."""
        ...


class Lowering(Protocol):
    """What a target makes of programs before and while they are emitted."""

    @property
    def translations(self) -> Mapping[PrimitiveKey, Sequence[Translation]]:
        """What comes before the primitives' own rules."""
        ...

    @property
    def routines(self) -> Routines:
        """How the target calls LAPACK's routines."""
        ...

    def prepared(
        self, function: Function, sizes: Mapping[str, int], *, in_loop: bool, nested: bool
    ) -> Block:
        """The body of a function that is called there, with numbers for its sizes."""
        ...


def emit_module(
    function: Function, sizes: Mapping[str, int], lowering: Lowering, donate: Sequence[int] = ()
) -> Any:
    """A module whose public `main` is the function at these sizes.

    The memory of the parameters in `donate` may be reused for results.
    """
    module = ModuleEmitter(lowering).lower(function, dict(sizes), donate)
    if function.fast_math:
        c.set_fast(module)
    else:
        signed_zeros.keep(module)
    return module


def alone(block: Block, bounds: Sequence[Bounds], module: ModuleEmitter) -> Made:
    """A block as a function of its own in a module, of numbers within bounds."""
    return Emitter(module, {}, in_loop=False, nested=False).function(block, "alone", bounds)


def module_text(module: Any, *, places: bool = False) -> str:
    """A module as text, with source locations if asked for."""
    return str(module.operation.get_asm(enable_debug_info=places))


def module_bytecode(module: Any) -> bytes:
    """A module as bytecode."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


class ModuleEmitter:
    """A module while it is being filled: the functions made, and those whose body is due."""

    def __init__(self, lowering: Lowering) -> None:
        c.context()
        self.lowering = lowering
        self.translations = lowering.translations
        self.module = c.mlir.Module.create(c.unknown())
        self.holds_nan = False
        """Whether some constant does; see `exponentials`."""
        self._callees: dict[Key, Callee] = {}
        self._places: dict[int, Any] = {}
        self._names: set[str] = {"main"}
        self._apart: dict[Hashable, tuple[Any, Made]] = {}
        self._due: list[tuple[Function, Emitter, Any]] = []

    def lower(self, function: Function, sizes: dict[str, int], donate: Sequence[int]) -> Any:
        """The whole module."""
        self._declare(function, sizes, "main", "public", donate)
        while self._due:
            callee, emitter, entry = self._due.pop()
            body = self.lowering.prepared(
                callee, emitter.sizes, in_loop=emitter.in_loop, nested=emitter.nested
            )
            emitter.fill(body, entry, self.place(callee.span))
        exponentials.guard(self.module, self.holds_nan, not function.fast_math)
        return self.module

    def place(self, span: Span) -> Any:
        """A span as a location; spans live as long as the functions that hold them."""
        cached = self._places.get(id(span))
        if cached is None:
            cached = self._places[id(span)] = c.place(span)
        return cached

    def callee(
        self, function: Function, sizes: dict[str, int], in_loop: bool, nested: bool
    ) -> Callee:
        """The symbol of a function at certain sizes, and its result types."""
        key = (function, tuple(sorted(sizes.items())), in_loop, nested)
        cached = self._callees.get(key)
        if cached is None:
            name = self._named(re.sub(r"\W", "_", function.name, flags=re.ASCII) or "function")
            results = self._declare(function, sizes, name, "private", (), in_loop, nested)
            symbol = c.mlir.FlatSymbolRefAttr.get(name, c.context())
            cached = self._callees[key] = (symbol, results)
        return cached

    def apart(self, block: Block, operands: Sequence[H], here: Emitter) -> tuple[Any, Made]:
        """The symbol of a function that computes a block of operands like these, and that itself.

        For blocks that compute the same it is the same.
        """
        bounds = tuple([here.bounds(x) for x in operands])
        key = content(block, here.tensor), bounds, here.in_loop, here.nested
        cached = self._apart.get(key)
        if cached is None:
            name = self._named("part")
            made = here.inner().function(block, name, bounds)
            cached = self._apart[key] = c.mlir.FlatSymbolRefAttr.get(name, c.context()), made
        return cached

    def _named(self, base: str) -> str:
        """A name that no other function has."""
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
    """What the translation rules of primitives get: one function being emitted at given sizes."""

    def __init__(
        self, module: ModuleEmitter, sizes: dict[str, int], in_loop: bool, nested: bool
    ) -> None:
        super().__init__(in_loop, nested)
        self._module = module
        self._sizes = sizes
        self._types: dict[int, tuple[ArrayType, Any]] = {}

    @property
    def sizes(self) -> Mapping[str, int]:
        """The numbers that names of sizes stand for."""
        return self._sizes

    @property
    def routines(self) -> Routines:
        """How the target calls LAPACK's routines."""
        return self._module.lowering.routines

    def note_nan(self) -> None:
        """Receives each constant in which there is a NaN."""
        self._module.holds_nan = True

    def size(self, size: Size) -> int:
        """The number a size stands for."""
        return size if type(size) is int else evaluate(size, self._sizes)

    def shape(self, shape: Sequence[Size]) -> tuple[int, ...]:
        """The numbers a shape stands for."""
        return tuple([size if type(size) is int else evaluate(size, self._sizes) for size in shape])

    def tensor(self, type: ArrayType) -> Any:  # noqa: A002
        """The tensor type of an array type."""
        found = self._types.get(id(type))  # identity is faster; the entry keeps the type alive
        if found is None:
            found = (type, c.tensor(type.dtype.name, self.shape(type.shape)))
            self._types[id(type)] = found
        return found[1]

    def inner(self) -> Emitter:
        """For a function that is called here."""
        return Emitter(self._module, self._sizes, self.in_loop, self.nested)

    def function(self, block: Block, name: str, bounds: Sequence[Bounds]) -> Made:
        """Emit a block as a function of its own, of numbers within bounds."""
        inputs, outputs = (
            [self.tensor(type_) for type_ in types] for types in (block.in_types, block.out_types)
        )
        place = self._module.place(block.equations[-1].span)
        entry = c.function(self._module.module, name, inputs, outputs, place)
        for x, known in zip(entry.arguments, bounds, strict=True):
            if known != ANY:
                self.tell_bounds(x, *known)
        results = self.fill(block, entry, place)
        told = [self.bounds(x) for x in results]
        return Made(entry.operations, results, told, self._module.module)

    def fill(self, block: Block, entry: Any, place: Any) -> tuple[H, ...]:
        """Emit a function with this body; its results."""
        self._ip, self._place = c.mlir.InsertionPoint(entry), place
        results = self.block(block, tuple(entry.arguments))
        self._create("func.return", [], results, loc=self._place, ip=self._ip)
        return results

    def block(self, block: Block, operands: Sequence[H]) -> tuple[H, ...]:
        """The results of a block, emitted here with the operands as its parameters."""
        values: dict[Any, H] = dict(zip(block.params, operands, strict=True))
        outer, place = self._place, self._module.place
        for equation in block.equations:
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
        """The results of a primitive as the target has it, else by its own rule."""
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
        """The results of another function, called at these sizes."""
        env = {name: self.size(size) for name, size in dict(sizes).items()}
        symbol, results = self._module.callee(function, env, self.in_loop, self.nested)
        return self.op("func.call", operands, results, {"callee": symbol})

    def apart(self, block: Block, operands: Sequence[H]) -> tuple[H, ...]:
        """The results of a block that XLA computes apart from all else."""
        symbol, made = self._module.apart(block, operands, self)
        types = [x.type for x in made.results]
        results = self.op("func.call", operands, types, {"callee": symbol, **APART})
        for x, (low, high) in zip(results, made.bounds, strict=True):
            self.tell_bounds(x, low, high)
        return results
