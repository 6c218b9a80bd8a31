"""The carries of loops: names and containers, leaf by leaf, with their dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pscdsl._src.frontend.interpreter.branches import (
    CARRIERS,
    ON,
    are_given,
    placeholder,
)
from pscdsl._src.frontend.interpreter.containers import Container, Content, adopt_all
from pscdsl._src.frontend.interpreter.frames import Binding, Session, Unjoined
from pscdsl._src.frontend.interpreter.loop_lists import (
    Appended,
    values_of,
)
from pscdsl._src.frontend.interpreter.places import (
    Cell,
    Frozen,
    Located,
    Ref,
    load,
)
from pscdsl._src.frontend.interpreter.python_numbers import computed
from pscdsl._src.frontend.interpreter.state import MISSING, Key, Missing
from pscdsl._src.frontend.trees import at, flatten, unflatten
from pscdsl._src.frontend.values import POISON, Array, Place, Poison, value_kind
from pscdsl._src.ir.builder import Builder, Site, Value, Weak, may_be_array, note_array
from pscdsl._src.ir.program import Atom
from pscdsl.typing.array_types import (
    NONE,
    ArrayType,
    Type,
    type_parts,
)
from pscdsl.typing.codes.language import NotStatic
from pscdsl.typing.diagnostics import Diagnostic, Failure, Span
from pscdsl.typing.dtypes import I64, DType, Kind, accepts_weak
from pscdsl.typing.python_containers import is_dict, is_sequence


def rebuilt(value: Any, tree: Type, leaves: Iterator[Any], array: Callable[[Any], Any]) -> Any:
    """Return a value of the same structure from other leaves; `array` makes its references."""
    if isinstance(value, Located):
        return array(next(leaves))
    if not (is_sequence(value) or is_dict(value)):  # others hold no references
        return unflatten(tree, leaves)
    kind = value_kind(value)
    assert kind is not None
    parts, keys = kind.apart(value)
    pairs = zip(parts, type_parts(tree), strict=True)
    return kind.made(keys, [rebuilt(each, item, leaves, array) for each, item in pairs])


@dataclass(eq=False)
class Leaf:
    """A carried array and its dtype."""

    start: Array
    """Its value before the loop."""
    dtype: DType | None
    """Its dtype; None for a Python number, which adapts to other operands."""
    kind: Kind
    settled: bool = True
    """Whether its dtype is final, and not only that of its start."""
    expected: bool = False
    """Whether its dtype is from an earlier elaboration, and not confirmed yet."""
    given: bool = False
    """Whether it is computed from numbers that the kernel is given."""
    is_array: bool = False
    """Whether it may be an array without axes, and not a scalar."""
    sites: frozenset[Site] = frozenset()
    """The sites where its dtype was chosen, if it was."""

    @classmethod
    def of(cls, start: Array, site: Site) -> Leaf:
        """Return the leaf with this start; at `site` a dtype is chosen if the start has none."""
        program = start.builder.program
        if isinstance(start, Value):
            return cls(start, start.dtype, start.dtype.kind, sites=program.sites(start))
        if not start.ndim:
            return cls(start, None, start.kind, given=are_given([start]))
        dtype = program.choose(site, start.kind)
        settled = program.decided is not None and site in program.decided
        return cls(start, dtype, start.kind, settled, sites=frozenset([site]))

    @classmethod
    def from_zeros(cls, end: Array, site: Site) -> Leaf:
        """Return a leaf of the type of a step's result, whose initial value is never read."""
        leaf = cls.of(end, site)
        builder, kind, shape = end.builder, leaf.kind, end.type.shape

        def at(dtype: DType) -> Value:
            return placeholder(builder.program.current, ArrayType(dtype, shape))

        leaf.start = Weak(builder, kind, shape, at, scalar=True, dtype=leaf.carrier)
        return leaf

    @property
    def carrier(self) -> DType:
        """The dtype in which it is carried."""
        return CARRIERS[self.kind] if self.dtype is None else self.dtype

    @property
    def type(self) -> ArrayType:
        """The type in which it is carried."""
        return ArrayType(self.carrier, self.start.type.shape)

    def initial(self) -> Value:
        """Return the initial carry."""
        return at(self.start, self.carrier)

    def shown(self, param: Value, wanted: dict[int, DType]) -> Array:
        """Return the leaf as the body sees it; an array with an open dtype notes the wanted one."""
        if self.dtype is None or self.settled:
            return self.after(param)
        block, own, shape = param.builder, self.dtype, self.start.type.shape

        def at(dtype: DType) -> Value:
            if dtype is own:
                return param.builder.program.mark(param, self.sites)
            wanted[id(self)] = dtype
            return block.parameter(ArrayType(dtype, shape))  # this round is discarded

        return Weak(block, self.kind, shape, at, whole=I64)

    def after(self, result: Value, end: Atom | None = None) -> Array:
        """Return the leaf as the body sees it, or after a loop whose steps end with `end`."""
        program = result.builder.program
        if self.dtype is None:
            array: Array = computed(result, self.kind, given=self.given)
        else:
            sites = self.sites if end is None else self.sites | program.sites_of(end)
            array = program.mark(result, sites)
        return note_array(array) if self.is_array or may_be_array(self.start) else array

    def learn(self, end: Array, wanted: DType | None) -> bool:
        """Take the dtype from a step's result; return whether anything changed."""
        if may_be_array(end) and not self.is_array:
            self.is_array = True
            self.learn(end, wanted)
            return True
        if isinstance(self.start, Value):
            return False
        if self.expected:
            self._confirm(end)
        if self.dtype is None and isinstance(end, Weak):
            before = self.kind, self.given
            self.kind, self.given = max(self.kind, end.kind), self.given or are_given([end])
            return (self.kind, self.given) != before
        if self.settled and self.dtype is not None:
            return False
        found = end.dtype if isinstance(end, Value) else wanted
        if found is None or not accepts_weak(found, self.kind):
            found = self.dtype
        changed = found is not self.dtype or not self.settled
        self.dtype, self.settled = found, True
        return changed

    def expect(self, dtype: DType | None, kind: Kind, given: bool) -> None:
        """Start with the dtype of an earlier elaboration."""
        if not isinstance(self.start, Value) and not (self.settled and self.dtype is not None):
            self.expected = (self.dtype, self.kind, self.given) != (dtype, kind, given)
            self.dtype, self.kind, self.given, self.settled = dtype, kind, given, True

    def _confirm(self, end: Array) -> None:
        """Check that a step's result has the expected dtype; Mistaken if not."""
        same = isinstance(end, Weak) and end.kind is self.kind and are_given([end]) == self.given
        if end.dtype is not self.dtype if isinstance(end, Value) else self.dtype or not same:
            raise Mistaken


@dataclass(eq=False)
class Slot:
    """A carried name."""

    key: Key
    before: Binding | Missing
    """Its value before the loop; MISSING if it is first bound in the body."""
    leaves: list[Leaf]
    tree: Type | None
    owned: bool
    """Whether the body may write to its array."""
    dropped: Sequence[Diagnostic] | None = None
    """The reason why it is not carried, if it is not: a step changes its type."""
    form: Place = None
    """A value with its structure."""

    def value(self, leaves: Iterator[Array], session: Session, frozen: Frozen | None) -> Place:
        """Return the name's value with these leaves."""
        assert self.tree is not None
        value: Place = rebuilt(
            self.form, self.tree, leaves, lambda leaf: Ref(Cell(session, leaf, frozen))
        )
        adopt_all(session, value, frozen or Frozen("is what a step of the loop left"))
        return value

    def left_out(self) -> Unjoined | Poison:
        """Return the name's value if it is not carried."""
        return Unjoined(self.dropped) if self.dropped else POISON


@dataclass(eq=False)
class CarriedItems:
    """The carried items of a list or a dict."""

    name: str
    session: Session
    form: list[Any] | dict[Any, Any]
    """Its content before the loop."""
    leaves: list[Leaf]
    tree: Type

    @classmethod
    def of(
        cls, session: Session, here: Builder, name: str, container: Container, span: Span
    ) -> CarriedItems:
        """Return the carried items of a container; a Failure if they cannot be carried."""
        form = container.content()
        if isinstance(form, set):
            raise Failure(NotStatic(what=f"{name}, a set that a step changes,")).at(span)
        try:
            arrays, tree = flatten(here, load(values_of(form)), name)
        except Failure as failure:
            raise failure.at(span) from None
        leaves = [
            Leaf.of(array, here.program.site(f"{name} {place}", span))
            for place, array in enumerate(arrays)
        ]
        return cls(name, session, form, leaves, tree)

    def content(self, leaves: Iterator[Array], frozen: Frozen) -> Content:
        """Return the content with these leaves."""
        session = self.session

        def array(leaf: Array) -> Ref:
            return Ref(Cell(session, leaf, frozen))

        values = rebuilt(values_of(self.form), self.tree, leaves, array)
        adopt_all(session, values, frozen)
        if is_dict(self.form):
            return dict(zip(self.form, values, strict=True))
        return list(values)


class Mistaken(Exception):
    """The body differs from its earlier elaboration."""


@dataclass(frozen=True)
class Learnt:
    """The facts about a loop's body from its elaboration in an earlier step of an outer loop.

    Without them each inner loop is elaborated twice for each elaboration of the outer loop. They
    are only a starting point: if the body differs, the loop is elaborated without them.
    """

    written: Sequence[tuple[str, int]]
    """The arrays that it writes, as a name and the number of a cell among those that it shows."""
    leaves: Mapping[str, Sequence[tuple[DType | None, Kind, bool]]]
    """For each name without a dtype at the start: dtypes, kinds, and whether it is given."""


@dataclass(eq=False)
class Carry:
    """The carry of a loop, as far as it is known."""

    slots: dict[Key, Slot] = field(default_factory=dict[Key, Slot])
    cells: dict[Cell, Leaf] = field(default_factory=dict[Cell, Leaf])
    contents: dict[Container, CarriedItems] = field(default_factory=dict[Container, CarriedItems])
    """Lists and dicts from before the loop whose items a step changes."""
    appended: dict[Container, Appended] = field(default_factory=dict[Container, Appended])
    """Lists from before the loop to which each step appends, and which it does not read."""
    frozen: dict[Cell | Container, Frozen] = field(default_factory=dict[Cell | Container, Frozen])
    """Cells and containers from before the loop that a step shares."""
    local: dict[Key, None] = field(default_factory=dict[Key, None])
    """Names that only the body binds."""
    kinds: frozenset[int] = frozenset((ON,))
    """The codes of an outcome after a step."""
    returned: list[Leaf] = field(default_factory=list[Leaf])
    returned_form: Place | Missing = MISSING
    returned_tree: Type = NONE

    @property
    def exits(self) -> bool:
        """Return whether a step may leave the loop."""
        return bool(self.kinds - {ON})

    def leaves(self) -> list[Leaf]:
        """Return the leaves of names, arrays, lists and dicts, in the order of the equation."""
        leaves = [leaf for slot in self.slots.values() for leaf in slot.leaves]
        leaves += self.cells.values()
        leaves += [leaf for items in self.contents.values() for leaf in items.leaves]
        return leaves
