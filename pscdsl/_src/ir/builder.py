"""Building the typed program: values that know their program, and the rules of their promotion.

A `Value` is a traced array. A `Weak` is an array whose dtype is still open: it is computed in the
dtype of the array that it meets, so nothing is ever computed in one precision and rounded to
another. Python scalars and symbolic sizes are lifted to literals and `size` equations.

All equations are appended at `Program.current`, the innermost block under construction; a value of
an enclosing block that is used there is captured: it becomes a parameter of the block.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeAlias, TypeVar

import numpy as np

from pscdsl._src.ir import numpy_dtypes
from pscdsl._src.ir.broadcasting import broadcast_shapes, broadcast_to
from pscdsl._src.ir.jax_promotion import JaxPromotion
from pscdsl._src.ir.program import (
    Atom,
    Block,
    Equation,
    Literal,
    Origin,
    Scalar,
    Var,
    acts,
    fit,
    kind_of,
)
from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.assumptions import Assumptions, Fact
from pscdsl.typing.codes.element_types import DtypesDiffer, ScalarDoesNotFit
from pscdsl.typing.codes.language import BadArguments
from pscdsl.typing.codes.limits import RevealedType
from pscdsl.typing.counters import Counter
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Failure, Span
from pscdsl.typing.dims import Dim, Size, name
from pscdsl.typing.dtypes import BOOL, I64, KEY, PYTHON, DType, Kind, accepts_weak, widens

if TYPE_CHECKING:
    from pscdsl._src.ir.primitive import Primitive
    from pscdsl._src.primitives.pointwise import Elementwise

MOST_AXES: Final = 64
"""NumPy's arrays have no more."""


@dataclass(frozen=True, slots=True)
class Basis:
    """The primitives that building itself needs: Python's operators, numbers, shapes.

    This room comes before all primitives. The room of primitives gives them to the builders, in its
    `__init__`, so that they exist wherever a primitive does.
    """

    constant: Callable[[Any, DType], Primitive]
    """An array that is captured."""
    size: Callable[[Size, DType], Primitive]
    """A size as a number."""
    broadcast: Callable[[Shape, tuple[int, ...]], Primitive]
    """Axis i of the operand becomes axis `dims[i]` of the shape."""
    reshape: Callable[[Shape], Primitive]
    sum: Callable[[tuple[int, ...]], Primitive]
    """Sums along axes: the transpose of a broadcast."""
    convert: Callable[[DType], Primitive]
    seed_key: Callable[[], Primitive]
    """A random key of an integer."""
    add: Elementwise
    subtract: Elementwise
    multiply: Elementwise
    divide: Elementwise
    negative: Elementwise
    bitwise_and: Elementwise
    bitwise_or: Elementwise
    bitwise_xor: Elementwise
    invert: Elementwise
    less: Elementwise
    less_equal: Elementwise
    greater: Elementwise
    greater_equal: Elementwise


Site: TypeAlias = tuple[Span, str, str]
"""A place where an array without a dtype gets one: its span, its calls, and its role there."""
MET: Final = (NOWHERE, "", "")
"""The site of an array without a dtype that has met one of fewer bits than nothing decides."""


class Decided(Exception):
    """A dtype was decided by the arrays that it met: elaborate the function once more."""

    def __init__(self, dtypes: Mapping[Site, DType]) -> None:
        super().__init__(dtypes)
        self.dtypes = dtypes


class Program:
    """The common state of one function under construction: facts, the span, warnings.

    Arrays without a dtype get one where it has to be known: where a loop carries them, two branches
    leave them, or a function settles them. `defaults` gives it, unless an earlier elaboration has
    found the dtype that the array meets later. `chosen` records the variables with such a dtype.
    """

    def __init__(
        self,
        facts: Assumptions | None = None,
        defaults: Mapping[Kind, DType] = PYTHON,
        decided: Mapping[Site, DType] | None = None,
        jax: JaxPromotion | None = None,
    ) -> None:
        self.facts = facts if facts is not None else Assumptions()
        self.jax = jax
        """JAX's promotion, if that is how its operands meet."""
        self.defaults = defaults
        """The dtype of each kind where nothing decides."""
        self.decided = decided
        """The dtypes that earlier elaborations came to; None if this one is the only one."""
        self.found: dict[Site, DType] = {}
        """The dtypes that this one has come to: its result is of no use if there are any."""
        self.chosen: dict[Atom, frozenset[Site]] = {}
        """The sites at which the dtype of a variable or a number was chosen."""
        self.span: Span = NOWHERE
        self.findings: list[Diagnostic] = []
        self.revealed: list[RevealedType] = []
        """Lines and types that `reveal_type` was asked for."""
        self.names: dict[Var, str] = {}
        """The first name of each variable in the code."""
        self.origins: dict[Equation, Origin] = {}
        """The origins of derivatives and batches, by their first equations."""
        self.return_span: Span | None = None
        """The span of the returned value."""
        self.places = False
        """Whether it asks for a placement along axes of a mesh."""
        self.cut: tuple[tuple[Size, tuple[str, ...]], ...] | None = None
        """The sizes of parameters that are cut along axes of a mesh, with these axes; None if it
        runs on one device."""
        self.devices: dict[str, Size] = {}
        """The numbers of devices along axes of a mesh that it asks for, by the axes' names."""
        self.lanes: dict[str, Value] = {}
        """The place of this device along each axis of a mesh for which one device's part is run."""
        self.transformed = 0
        """The number of transformed functions called so far."""
        self.counters: dict[Var, Counter] = {}
        """The counters of loops that are sizes, by the parameters of the loops' bodies."""
        self.every_step: dict[str, tuple[Counter, int]] = {}
        """The counters of loops that no step leaves, and the depths of their bodies, by name."""
        self.loops = 0
        """The number of counters so far."""
        self.conditions: dict[Var, tuple[tuple[Fact, ...], tuple[Fact, ...]]] = {}
        """The facts about counters that a truth value implies: if it holds, and if not."""
        self.arrays_without_axes: dict[int, object] = {}
        """Variables without axes that may be arrays, which `+=` writes to, by their addresses."""
        self.path = ""
        """The calls of functions that led here, by their places."""
        self.session: object = None
        """The front end's state for this program."""
        self.current = Builder(self, None)
        self.entry = self.current
        """The outermost block."""
        self.unknowns: list[Value] = []
        """Arrays that are known by their types alone: results of functions without a body."""
        self.outside: list[str] = []
        """The functions of other libraries that a JAX program calls."""

    def unknown(self, type: ArrayType) -> Value:  # noqa: A002
        """Return an array of which only the type is known, as a further parameter."""
        made = self.entry.parameter(type)
        self.unknowns.append(made)
        return made

    def along(self, axis: str) -> Size:
        """Return the number of devices along an axis of a mesh, a size of the program."""
        count = self.devices[axis] = name(axis)
        facts = [Fact("==", size % count, 0) for size, along in self.cut or () if axis in along]
        missing = [fact for fact in facts if fact not in self.facts.facts]
        if missing:
            self.facts = self.facts.assume(*missing)
        return count

    def site(self, which: str, span: Span | None = None) -> Site:
        """Return a place where a dtype is chosen, here or at a span."""
        return span or self.span, self.path, which

    def choose(self, site: Site, kind: Kind) -> DType:
        """Return the dtype of a kind at a site."""
        found = self.decided.get(site) if self.decided else None
        if found is None or found.is_inexact != (kind >= Kind.FLOAT) or kind is Kind.BOOL:
            return self.defaults[kind]
        return found.complex if kind is Kind.COMPLEX else found

    def sites(self, value: Value | Weak) -> frozenset[Site]:
        """Return the sites at which the dtype of a value was chosen."""
        return self.sites_of(value.atom) if isinstance(value, Value) else _NONE

    def sites_of(self, atom: Atom) -> frozenset[Site]:
        """Return the sites at which the dtype of an atom was chosen."""
        return self.chosen.get(atom, _NONE)

    def mark(self, value: Value, sites: frozenset[Site]) -> Value:
        """Note that the dtype of a value was chosen at sites, and nowhere else."""
        if self.decided is not None:
            if sites:
                self.chosen[value.atom] = sites
            else:
                self.chosen.pop(value.atom, None)
        return value

    def mark_also(self, value: Value, site: Site) -> Value:
        """Note that the dtype of a value was chosen at one more site."""
        return self.mark(value, self.sites(value) | {site})

    def want(self, value: Value | Weak, dtype: DType) -> None:
        """See that a value has a dtype; Decided if it has another one by choice."""
        if self.chosen and isinstance(value, Value) and value.dtype is not dtype:
            if _are_comparable(value.dtype, dtype) and value.dtype.real is not dtype.real:
                open_ = self._undecided(value)
                if open_:
                    raise Decided({**self.found, **dict.fromkeys(open_, dtype.real)})

    def agree(self, values: Iterable[Value | Weak]) -> None:
        """Check that values of one kind have one precision; raise Decided if a dtype changes.

        A dtype that was not chosen decides, or the widest if all were chosen.
        """
        decided = self._agreeing(values)
        if decided:
            raise Decided({**self.found, **decided})

    def _agreeing(self, values: Iterable[Value | Weak]) -> dict[Site, DType]:
        """Return the dtypes that would give values of one kind one precision."""
        if not self.chosen:
            return {}
        strong = [each for each in values if isinstance(each, Value)]
        for group in (
            [each for each in strong if each.dtype.is_inexact],
            [each for each in strong if each.dtype.is_integer],
        ):
            if len({each.dtype.real for each in group}) > 1:
                open_ = [self._undecided(each) for each in group]
                firm = {x.dtype.real for x, sites in zip(group, open_, strict=True) if not sites}
                if len(firm) > 1:
                    continue
                widest = max((each.dtype.real for each in group), key=lambda dtype: dtype.bits)
                wanted = firm.pop() if firm else widest
                return {
                    site: wanted
                    for each, sites in zip(group, open_, strict=True)
                    if each.dtype.real is not wanted
                    for site in sites
                }
        return {}

    def met(self, values: Sequence[Value]) -> DType | None:
        """Return the dtype of values once chosen dtypes have changed; None if none would.

        The elaboration goes on, to find further decisions.
        """
        decided = self._agreeing(values)
        if not decided:
            return None
        self.found.update(decided)
        (wanted, *others) = dict.fromkeys(decided.values())
        complex_ = any(each.dtype.is_complex for each in values)
        return None if others else wanted.complex if complex_ else wanted

    def _undecided(self, value: Value) -> frozenset[Site]:
        """Return the sites of a value at which the dtype may still be another one."""
        decided = self.decided or {}
        sites = self.sites(value)
        return frozenset([site for site in sites if site is not MET and site not in decided])

    def named(self, name: str, value: object) -> None:
        """Note that the code calls a value so."""
        if isinstance(value, Value) and isinstance(value.atom, Var):
            self.names.setdefault(value.atom, name)

    @contextmanager
    def without_jax(self) -> Generator[None]:
        """Let operands meet, and keep their bits, as in kernels while the context lasts."""
        jax, self.jax = self.jax, None
        try:
            yield
        finally:
            self.jax = jax

    def built(self, at: Callable[[DType], Value], dtype: DType) -> Value:
        """Return a weak array as it is built in a dtype, no part of it narrowed on the way."""
        if self.jax is None:
            return at(dtype)
        with self.without_jax():
            return at(dtype)

    @contextmanager
    def inside(self) -> Generator[Builder]:
        """A new innermost block while the context lasts."""
        outer = self.current
        self.current = Builder(self, outer)
        try:
            yield self.current
        finally:
            self.current = outer


class Builder:
    """One block under construction."""

    __slots__ = ("captured", "depth", "equations", "forgotten", "outer", "program")
    basis: ClassVar[Basis]
    """The primitives that are used here; the room of primitives sets it."""

    def __init__(self, program: Program, outer: Builder | None) -> None:
        self.program = program
        self.outer = outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.equations: list[Equation] = []
        self.captured: dict[Var, Var] = {}
        """Variables of the enclosing block, and the parameters that capture them here."""
        self.forgotten: set[Atom] = set()
        """The results of equations that were removed."""

    @property
    def facts(self) -> Assumptions:
        """Return the known facts about sizes."""
        return self.program.facts

    def parameter(self, type: ArrayType, hint: str = "") -> Value:  # noqa: A002
        """Return a new variable that this block will take as a parameter."""
        return Value(self, Var(type, hint))

    def parameter_for(self, value: Value, type: ArrayType | None = None) -> Value:  # noqa: A002
        """Make a parameter for a value, or for a part of it, with the sites of its chosen dtype."""
        program = self.program
        return program.mark(self.parameter(type or value.type), program.sites(value))

    def forget(self, known: int) -> None:
        """Remove all equations but the first ones; no value of theirs is used again."""
        self.forgotten.update(*[at.outputs for at in self.equations[known:]])
        del self.equations[known:]

    def bind(self, primitive: Primitive, operands: Sequence[Value]) -> tuple[Value, ...]:
        """Append an equation to the innermost block."""
        program = self.program
        here = program.current
        atoms = tuple([v.atom if v.builder is here else here.atom(v) for v in operands])
        types = primitive.type_rule(program.facts, *[atom.type for atom in atoms])
        for each in types:
            if len(each.shape) > MOST_AXES:
                problem = f"makes an array of {len(each.shape)} axes; there are {MOST_AXES} at most"
                raise Failure(BadArguments(function=primitive.name, problem=problem))
        if len(types) == 1:  # nearly always
            var = Var(types[0])
            here.equations.append(Equation(primitive, atoms, (var,), program.span))
            if program.chosen:
                _inherit(program.chosen, primitive, atoms, (var,))
            return (Value(here, var),)
        outputs = tuple([Var(t) for t in types])
        here.equations.append(Equation(primitive, atoms, outputs, program.span))
        if program.chosen:
            _inherit(program.chosen, primitive, atoms, outputs)
        return tuple([Value(here, var) for var in outputs])

    def atom(self, value: Value) -> Atom:
        """Return a value's atom in this block, captured from outside if necessary."""
        owner, atom = value.builder, value.atom
        if owner is self or isinstance(atom, Literal):
            return atom
        if self.outer is None or owner.depth >= self.depth:
            raise AssertionError("a value has left the block that defines it")
        outside = self.outer.atom(value)
        assert isinstance(outside, Var)
        inside = self.captured.get(outside)
        if inside is None:
            inside = self.captured[outside] = Var(outside.type, outside.hint)
            sites = self.program.chosen.get(outside)
            if sites is not None:
                self.program.chosen[inside] = sites
        return inside

    def finish(
        self, params: Sequence[Value], results: Sequence[Value]
    ) -> tuple[Block, tuple[Value, ...]]:
        """Return the block, whose first parameters are its captures, and the captured values."""
        atoms = tuple(self.atom(v) for v in results)
        own = tuple(v.atom for v in params)
        block = Block((*self.captured.values(), *own), tuple(self.equations), atoms)  # type: ignore[arg-type]
        outer = self.outer
        captured = () if outer is None else tuple(Value(outer, var) for var in self.captured)
        return block, captured

    def has_effects(self) -> bool:
        """Return whether the block has effects so far, in it or in what it calls."""
        return any(map(acts, self.equations))

    def elementwise(self, primitive: Elementwise, operands: Sequence[Operand]) -> Value | Weak:
        """Apply an elementwise primitive with NumPy's broadcasting and strict promotion."""
        known = [x.atom.type for x in operands if type(x) is Value]
        if len(known) == len(operands) and known.count(known[0]) == len(known):
            return self.bind(primitive, operands)[0]  # type: ignore[arg-type]
        values = promote(*operands, weak_ok=True)
        if values is None:
            return _elementwise_weak(self, primitive, operands)
        shapes = [value.shape for value in values if value.shape]
        if shapes.count(shapes[0] if shapes else ()) != len(shapes):
            shape = broadcast_shapes(self.facts, *shapes)
            values = tuple(v if not v.shape else broadcast_to(v, shape) for v in values)
        return self.bind(primitive, values)[0]

    def literal(self, value: Scalar, dtype: DType) -> Value:
        """Return a scalar constant; raise a Failure if the dtype cannot hold it."""
        return Value(self.program.current, Literal(fit(value, dtype), dtype))

    def constant(self, array: Any) -> Value:
        """Return an array constant, captured by value."""
        array = np.asarray(array)
        dtype = numpy_dtypes.from_numpy(array.dtype)
        if array.ndim == 0:
            return self.literal(array.item(), dtype)
        return self.bind(self.basis.constant(array, dtype), ())[0]

    def size(self, size: Size, dtype: DType) -> Value:
        """Return a size as a number in the program."""
        if isinstance(size, int):
            return self.literal(size, dtype)
        return self.bind(self.basis.size(size, dtype), ())[0]

    def full(self, value: Scalar | Value, shape: Shape, dtype: DType) -> Value:
        """Return an array with the same number everywhere."""
        scalar = value if isinstance(value, Value) else self.literal(value, dtype)
        return self.spread(scalar, shape, ()) if shape else scalar

    def spread(self, value: Value, shape: Shape, dims: tuple[int, ...]) -> Value:
        """Return a value repeated along new axes: axis i becomes axis `dims[i]` of the shape."""
        return self.bind(self.basis.broadcast(shape, dims), (value,))[0]

    def reshape(self, value: Value, shape: Shape) -> Value:
        """Return the elements of a value in another shape."""
        return self.bind(self.basis.reshape(shape), (value,))[0]

    def total(self, value: Value, axes: tuple[int, ...]) -> Value:
        """Return the sum of a value along axes."""
        return self.bind(self.basis.sum(axes), (value,))[0]

    def weak(self, operand: Scalar | Size) -> Weak:
        """Return a Python scalar or a size as a weak operand."""
        if isinstance(operand, Dim):
            return Weak(self, Kind.INT, (), lambda dtype: self.size(operand, dtype), scalar=True)
        value, kind = operand, kind_of(operand)
        return Weak(self, kind, (), lambda dtype: self.literal(value, dtype), scalar=True)

    def weak_of(self, operand: Value | Weak | Scalar | Size) -> Weak:
        """Return an operand as a weak one; integers beside a weak float become weak in JAX."""
        if isinstance(operand, Value):
            value, convert = operand, self.basis.convert

            def at(dtype: DType) -> Value:
                return value if value.dtype is dtype else convert(dtype)(value)

            return Weak(self, value.dtype.kind, value.shape, at, scalar=True, dtype=value.dtype)
        return operand if isinstance(operand, Weak) else self.weak(operand)


_NONE: Final[frozenset[Site]] = frozenset()


def _are_comparable(one: DType, other: DType) -> bool:
    return (one.is_inexact and other.is_inexact) or (one.is_integer and other.is_integer)


def _inherit(
    chosen: dict[Atom, frozenset[Site]],
    primitive: Primitive,
    operands: Sequence[Atom],
    results: Sequence[Var],
) -> None:
    """Record that results have the dtype of operands, with the sites at which it was chosen."""
    if primitive.__class__ is Builder.basis.convert:
        return  # a cast decides its dtype itself
    blocks = primitive.blocks()
    if blocks:
        pairs = [
            pair
            for each in blocks
            for pair in zip(each.results, results, strict=False)
            if len(each.results) == len(results)
        ]
    else:
        pairs = [(atom, each) for atom in operands if atom in chosen for each in results]
    for atom, each in pairs:
        sites = chosen.get(atom)
        if sites is not None and each.type.dtype.real is atom.type.dtype.real:
            chosen[each] = sites | chosen.get(each, _NONE)


R = TypeVar("R", covariant=True)


class Operators(Generic[R]):
    """Python's operators with NumPy's meanings, for values and weak values; each gives an `R`."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy operands defer to us

    def __add__(self, other: Operand) -> R:
        return Builder.basis.add(self, other)

    def __radd__(self, other: Plain) -> R:
        return Builder.basis.add(other, self)

    def __sub__(self, other: Operand) -> R:
        return Builder.basis.subtract(self, other)

    def __rsub__(self, other: Plain) -> R:
        return Builder.basis.subtract(other, self)

    def __mul__(self, other: Operand) -> R:
        return Builder.basis.multiply(self, other)

    def __rmul__(self, other: Plain) -> R:
        return Builder.basis.multiply(other, self)

    def __truediv__(self, other: Operand) -> R:
        return Builder.basis.divide(self, other)

    def __rtruediv__(self, other: Plain) -> R:
        return Builder.basis.divide(other, self)

    def __neg__(self) -> R:
        return Builder.basis.negative(self)

    def __and__(self, other: Operand) -> R:
        return Builder.basis.bitwise_and(self, other)

    def __or__(self, other: Operand) -> R:
        return Builder.basis.bitwise_or(self, other)

    def __xor__(self, other: Operand) -> R:
        return Builder.basis.bitwise_xor(self, other)

    def __invert__(self) -> R:
        return Builder.basis.invert(self)

    def __lt__(self, other: Operand) -> R:
        return Builder.basis.less(self, other)

    def __le__(self, other: Operand) -> R:
        return Builder.basis.less_equal(self, other)

    def __gt__(self, other: Operand) -> R:
        return Builder.basis.greater(self, other)

    def __ge__(self, other: Operand) -> R:
        return Builder.basis.greater_equal(self, other)

    def __bool__(self) -> bool:
        raise TypeError("a traced value has no truth value while the program is built")


class Value(Operators["Value"]):
    """A traced array: an atom of the block that defines it."""

    __slots__ = ("atom", "builder")

    def __init__(self, builder: Builder, atom: Atom) -> None:
        self.builder = builder
        self.atom = atom

    @property
    def type(self) -> ArrayType:
        """Dtype and shape."""
        return self.atom.type

    @property
    def shape(self) -> Shape:
        """The sizes of the axes."""
        return self.atom.type.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.atom.type.dtype

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self.atom.type.shape)

    def __repr__(self) -> str:
        return f"Value({self.atom!r})"


class Weak(Operators["Value | Weak"]):
    """An array whose dtype its context decides; `at` builds it once for each dtype."""

    made_of_sizes = False
    """Whether it is a number that Python computes from sizes."""
    __slots__ = ("_at", "_built", "_open", "_scalar", "_whole", "builder", "kind", "known", "shape")

    def __init__(
        self,
        builder: Builder,
        kind: Kind,
        shape: Shape,
        at: Callable[[DType], Value],
        scalar: bool = False,
        whole: DType = I64,
        dtype: DType | None = None,
        known: NDArray | Size | None = None,
    ) -> None:
        self.builder = builder
        self.kind = kind
        self.shape = shape
        self.known = known
        """Its numbers if they are known while checking, or the size that it is."""
        self._at = at
        self._scalar = scalar  # a Python scalar or a size: exact in every dtype
        self._whole = whole  # the dtype of integers before conversion
        self._open = builder.program.defaults[kind] if dtype is None else dtype
        self._built: dict[DType, Value] = {}

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> DType:
        """The dtype that it has where nothing decides."""
        return self._open

    @property
    def type(self) -> ArrayType:
        """The type that it has where nothing decides."""
        return ArrayType(self.dtype, self.shape)

    def at(self, dtype: DType) -> Value:
        """This array in a dtype; a Failure if the dtype is of a lower kind."""
        found = self._built.get(dtype)
        # A value built inside a block that is finished by now is out of reach: build it again.
        if found is None or not reachable(found, self.builder.program.current):
            if not accepts_weak(dtype, self.kind):
                raise Failure(ScalarDoesNotFit(scalar=f"a weak {self.dtype}", dtype=dtype))
            natural = dtype if self._scalar else self._natural(dtype)
            if natural is dtype:
                found = self.builder.program.built(self._at, dtype)
            else:
                found = Builder.basis.convert(dtype)(self.at(natural))
            self._built[dtype] = found
            program = self.builder.program
            if self.shape and dtype.real.bits < program.defaults[self.kind].real.bits:
                program.mark_also(found, MET)
        return found

    def _natural(self, dtype: DType) -> DType:
        """Return the dtype in which NumPy computes it before conversion to a higher kind."""
        if self.kind is dtype.kind:
            return dtype
        if self.kind is Kind.INT:
            return self._whole
        return dtype.real if self.kind is Kind.FLOAT else BOOL

    def remember(self, built: Value) -> None:
        """Record a value that `at` has given."""
        self._built[built.dtype] = built

    def default(self, which: str = "") -> Value:
        """This array in the dtype that it has where nothing decides here."""
        program = self.builder.program
        if program.decided is None:
            own = self.dtype
            return self.at(own if program.jax is None else program.jax.canonical(own))
        site = program.site(which)
        dtype = program.decided.get(site)
        if dtype is None or not accepts_weak(dtype, self.kind):
            return program.mark_also(self.at(self.dtype), site)
        dtype = dtype.complex if self.kind is Kind.COMPLEX else dtype
        return program.mark_also(self.at(dtype), site)

    def __repr__(self) -> str:
        return f"Weak({self.type})"


class PythonNumber(Weak):
    """A Python number that is known only at run time: an argument, or computed from arguments.

    As in Python and NumPy, arithmetic of such numbers is done in f64 and i64, and the result is
    converted to the dtype of the array that it meets.
    """

    __slots__ = ("adapts", "is_array", "value")

    def __init__(self, value: Value, *, is_array: bool = False, adapts: bool = False) -> None:
        self.value = value
        self.is_array = is_array
        """Whether NumPy has made a scalar of it, which has attributes."""
        self.adapts = adapts
        """Whether it adapts to narrow integers; a number computed from arguments may not fit
        them."""
        super().__init__(
            value.builder, value.dtype.kind, (), self._convert, scalar=True, dtype=value.dtype
        )

    def description(self) -> str:
        """Return its description for messages."""
        kind = {Kind.BOOL: "bool", Kind.INT: "int", Kind.FLOAT: "float", Kind.COMPLEX: "complex"}
        if self.is_array:
            return str(self.type)
        name = kind[self.kind]
        return f"a computed `{name}`"

    def as_array(self) -> PythonNumber:
        """Return the scalar that NumPy makes of the number."""
        return PythonNumber(self.value, is_array=True, adapts=self.adapts)

    @classmethod
    def of(cls, value: Value, operands: Iterable[object]) -> PythonNumber:
        """Return the number that is made of others, which adapts if all of them do."""
        given = any(isinstance(each, PythonNumber) and not each.adapts for each in operands)
        return cls(value, adapts=not given)

    def _convert(self, dtype: DType) -> Value:
        own = self.value.dtype
        if dtype is own:
            return self.value
        if own.is_integer and dtype.is_integer and not self.adapts:
            remedy = f"`psc.{dtype}(…)` casts it; declare a parameter as `psc.{dtype}`, or static"
            scalar = "an `int` that is known when the program runs"
            if self.value.builder.outer is not None or any(
                self.value.atom in each.outputs for each in self.value.builder.equations
            ):
                remedy = "declare `psc.i64`, or cast what it meets with `.astype(psc.i64)`"
            raise Failure(ScalarDoesNotFit(scalar=scalar, dtype=dtype, remedy=remedy))
        return Builder.basis.convert(dtype)(self.value)


Plain: TypeAlias = "Scalar | Dim | np.generic | NDArray"
"""Operands that belong to no program."""
Operand: TypeAlias = "Value | Weak | Plain"
NDArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def _identity(array: Value | Weak) -> Any:
    return array.atom if isinstance(array, Value) and isinstance(array.atom, Var) else array


def note_array(array: Value | Weak) -> Value | Weak:
    """Note that a value without axes may be an array, which is written in its place; return it."""
    if not array.ndim:
        known = _identity(array)
        array.builder.program.arrays_without_axes[id(known)] = known
    return array


def may_be_array(value: Any) -> bool:
    """Return whether a value without axes may be an array rather than a scalar."""
    if not isinstance(value, (Value, Weak)) or value.ndim:
        return False
    return id(_identity(value)) in value.builder.program.arrays_without_axes


def reachable(value: Value, here: Builder) -> bool:
    """Return whether a block can use a value: it belongs to that block, or to an enclosing one."""
    block: Builder | None = here
    while block is not None and block.depth >= value.builder.depth:
        if block is value.builder:
            return value.atom not in block.forgotten
        block = block.outer
    return isinstance(value.atom, Literal)


def builder_of(operands: Sequence[object]) -> Builder:
    """Return the program that the operands belong to."""
    for operand in operands:
        if isinstance(operand, (Value, Weak)):
            return operand.builder
    raise TypeError("no operand belongs to a program")


def promote(
    *operands: Operand, weak_ok: bool = False, raising: bool = False, widening: bool = False
) -> tuple[Value, ...] | None:
    """Return the operands as values of one dtype.

    Arrays must agree; weak operands take the arrays' dtype. If all are weak the result is None with
    `weak_ok`, else they meet at the default dtype of the highest kind. With `raising`, a number of
    a higher kind raises the arrays' dtype, as in NumPy's ufuncs. With `widening`, arrays may also
    have the dtype of one of them if NumPy promotes them to it, and floats raise integers to f64.
    """
    here = builder_of(operands)
    strong: Value | None = None
    mixed = False
    values: list[Value | Weak | int | float] = []
    for operand in operands:
        if type(operand) is float or type(operand) is int:
            values.append(operand)
            continue
        if isinstance(operand, (np.generic, np.ndarray)):
            operand = here.constant(operand)
        elif not isinstance(operand, (Value, Weak)):
            operand = here.weak(operand)
        if isinstance(operand, Value):
            if strong is None:
                strong = operand
            elif strong.dtype is not operand.dtype:
                mixed = True
        values.append(operand)
    jax = here.program.jax
    if jax is not None and (strong is None or strong.dtype is not KEY):
        met = jax.met([_node(each) for each in values])
        if not isinstance(met, DType):
            if weak_ok:
                return None
            met = meeting([here.weak_of(x) for x in values])
        dtype = met
    elif strong is not None:
        dtype = _widest(here, values, widening) if mixed else strong.dtype
        number = _number_meeting(values) if widening and not dtype.is_inexact else None
        if number is not None:
            dtype = number
        elif raising and (dtype is BOOL or dtype.is_float):
            dtype = _raised_dtype(here, dtype, values)
    elif weak_ok:
        return None
    else:
        dtype = meeting([here.weak_of(x) for x in values])
    return tuple([_in_dtype(here, value, dtype) for value in values])


def _node(operand: Value | Weak | int | float) -> DType | Kind:
    """Return the node of an operand in JAX's lattice."""
    if isinstance(operand, Value):
        return operand.dtype
    return operand.kind if isinstance(operand, Weak) else kind_of(operand)


def _widest(here: Builder, operands: Sequence[object], widening: bool) -> DType:
    """Return the dtype of one array that the others fit; raise a Failure if there is none.

    Integers with a chosen dtype take that of floats, as those without a dtype do.
    """
    arrays = [each for each in operands if isinstance(each, Value)]
    program = here.program
    chosen = [bool(program.sites(each)) for each in arrays]
    wide = _promoted_dtype(arrays, chosen) if widening else None
    if wide is not None and (wide.is_inexact or not any(chosen)):
        return wide
    met = program.met(arrays)
    if met is not None and all(each.dtype.kind <= met.kind for each in arrays):
        return met
    if wide is not None:
        return wide
    right = next(each for each in arrays if each.dtype is not arrays[0].dtype)
    raise _differ(here, arrays, arrays[0], right)


def _promoted_dtype(arrays: Sequence[Value], chosen: Sequence[bool]) -> DType | None:
    """Return the dtype of one array to which the others are promoted; None if there is none."""
    for wide in arrays:
        if all(
            widens(each.dtype, wide.dtype)
            or (wide.dtype.is_inexact and each.dtype.is_integer and is_chosen)
            for each, is_chosen in zip(arrays, chosen, strict=True)
        ):
            return wide.dtype
    return None


def _differ(here: Builder, values: Sequence[object], left: Value, right: Value) -> Failure:
    """Why arrays do not meet; Decided if the dtypes of some were chosen, and may be others."""
    program = here.program
    program.agree([each for each in (*values, right) if isinstance(each, Value)])
    open_ = any(program.sites(each) for each in (left, right))
    return Failure(DtypesDiffer(left=left.type, right=right.type, open=open_))


def _number_meeting(operands: Sequence[Value | Weak | int | float]) -> DType | None:
    """Return NumPy's dtype of integers or truth values with Python's floats or complex numbers."""
    kind = Kind.BOOL
    for each in operands:
        if isinstance(each, Value):
            if each.dtype.kind is Kind.KEY:
                return None
        else:
            kind = max(kind, each.kind if isinstance(each, Weak) else kind_of(each))
    return PYTHON[kind] if kind in (Kind.FLOAT, Kind.COMPLEX) else None


def _raised_dtype(
    here: Builder, dtype: DType, operands: Sequence[Value | Weak | int | float]
) -> DType:
    """Return NumPy's dtype of arrays with a number of a higher kind, if it can hold both.

    Truth values become integers, and floats become complex numbers of the same precision.
    """
    if not dtype.is_float and all(isinstance(each, Value) for each in operands):
        return dtype
    weak = [
        each if isinstance(each, Weak) else here.weak(each)
        for each in operands
        if not isinstance(each, Value | float)
    ]
    kind = max((each.kind for each in weak), default=Kind.BOOL)
    if dtype.is_float:
        return dtype.complex if kind is Kind.COMPLEX else dtype
    if kind is not Kind.INT or any(isinstance(each, float) for each in operands):
        return dtype
    return meeting(weak) if any(each.shape for each in weak) else I64


def _in_dtype(here: Builder, operand: Value | Weak | int | float, dtype: DType) -> Value:
    if isinstance(operand, Value):
        if operand.dtype is dtype:
            return operand
        return Builder.basis.convert(dtype)(operand)
    if isinstance(operand, Weak):
        return operand.at(dtype)
    if accepts_weak(dtype, kind_of(operand)):  # often: no weak value is needed in between
        return here.literal(operand, dtype)
    return here.weak(operand).at(dtype)


def _elementwise_weak(
    here: Builder, primitive: Elementwise, operands: Sequence[Operand]
) -> Value | Weak:
    weak = [here.weak_of(operand) for operand in operands]  # type: ignore[arg-type]
    kind = primitive.weak_kind(max(each.kind for each in weak))
    meets = meeting(weak)
    if are_numbers(weak):
        number = here.elementwise(primitive, [each.at(meets) for each in weak])
        assert isinstance(number, Value)
        return PythonNumber.of(number, weak)

    def at(dtype: DType) -> Value:
        result = here.elementwise(primitive, [each.at(dtype) for each in weak])
        assert isinstance(result, Value)
        return result

    return weakened(here, kind, at, meets if kind is meets.kind else None)


def are_numbers(operands: Sequence[Weak]) -> bool:
    """Return whether all are numbers, one of them a Python number known only at run time."""
    return any(isinstance(x, PythonNumber) for x in operands) and not any(x.shape for x in operands)


def meeting(operands: Sequence[Weak]) -> DType:
    """Return the dtype at which weak operands meet if no array decides.

    Integers whose values are known only at run time are not made narrower.
    """
    kind = max(each.kind for each in operands)
    if any(isinstance(each, PythonNumber) for each in operands):
        if kind is Kind.INT or are_numbers(operands):
            return PYTHON[kind]
    return operands[0].builder.program.defaults[kind]


def weakened(
    here: Builder, kind: Kind, at: Callable[[DType], Value], dtype: DType | None = None
) -> Value | Weak:
    """Return the result of a function of weak operands: weak itself, unless its dtype is fixed.

    Where nothing decides, it is in `dtype`.
    """
    meets = here.program.defaults[kind] if dtype is None else dtype
    first = here.program.built(at, meets)
    if first.dtype is not meets:
        return first
    result = Weak(here, kind, first.shape, at, dtype=meets)
    result.remember(first)
    return result
