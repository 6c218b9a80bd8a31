"""Rolled loops: the changes of a body become the carry of a `Scan` or a `While`.

A body is elaborated as one step, from a state in which everything that it changes is carried: names
that were bound before the loop, and cells that existed. The changes, their dtypes, and the arrays
that the body may write are learnt by elaborating it, until another round learns nothing new; the
learnt facts only grow.

The body may write to a name's array if no other name or container held it before the loop, and the
same is true at the end of a step. Everything else that is carried is a snapshot.
"""

from __future__ import annotations

import ast
from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

from pscdsl._src.frontend.interpreter.branches import (
    ON,
    RETURN,
    Maybe,
    Outcome,
    Return,
    after_step,
    kinds_of,
    lengths_differ,
    named_container,
    of_kind,
    silence,
)
from pscdsl._src.frontend.interpreter.carries import (
    CarriedItems,
    Carry,
    Leaf,
    Learnt,
    Mistaken,
    Slot,
    rebuilt,
)
from pscdsl._src.frontend.interpreter.containers import Container, same_order
from pscdsl._src.frontend.interpreter.counters import depends_on_counter, new_counter
from pscdsl._src.frontend.interpreter.frames import BLOCK_STEPS, Binding, Frame, Session, Unjoined
from pscdsl._src.frontend.interpreter.functions import number_of_steps
from pscdsl._src.frontend.interpreter.iteration import Count, Long, Position
from pscdsl._src.frontend.interpreter.loop_lists import (
    Appended,
    appended_name,
    sized,
    values_of,
)
from pscdsl._src.frontend.interpreter.padding import padded
from pscdsl._src.frontend.interpreter.places import (
    Cell,
    Frozen,
    Ref,
    held_in,
    load,
    located_in,
)
from pscdsl._src.frontend.interpreter.state import (
    MISSING,
    Key,
    Missing,
    State,
    Trial,
    holders,
    is_held_once,
)
from pscdsl._src.frontend.trees import Attempt, at, flatten
from pscdsl._src.frontend.values import (
    POISON,
    Array,
    Place,
    Poison,
    Poisoned,
    describe,
    is_poisoned,
)
from pscdsl._src.ir.builder import Builder, Program, Value, Weak
from pscdsl._src.ir.program import Atom, Block, Var
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.scan import Scan
from pscdsl._src.primitives.while_loop import While
from pscdsl.typing.array_types import ArrayType, Type, same_structure
from pscdsl.typing.assumptions import Fact
from pscdsl.typing.codes.control import EndlessLoop, LoopChangesType, UnboundAfterLoop
from pscdsl.typing.counters import Counter, InLoop, in_loop
from pscdsl.typing.diagnostics import Diagnostic, Failure, Span, plainly
from pscdsl.typing.dims import Dim, Size, names
from pscdsl.typing.dtypes import I32, I64, DType, accepts_weak
from pscdsl.typing.python_containers import is_dict, is_sequence
from pscdsl.typing.unify import array_difference

MOST_ROUNDS: Final = 40
"""The limit on rounds; all facts about a body are learnt in fewer rounds, or never."""


@dataclass(eq=False)
class LoopStep:
    """An elaborated step: a block with the carry as parameters, and the values that it captures."""

    block: Block
    captured: tuple[Value, ...]


_LEAVING: Final = (ast.Break, ast.Return)
"""The statements that end a loop before its last step."""


class TestChanges(Exception):
    """The test of a loop changes a value that it reads."""


class Again(Exception):
    """A round learnt something: the body is elaborated again."""


def _cells_of(value: Binding | Missing) -> list[Cell]:
    return [cell for located in located_in(value) for cell in located.cells()]


_GROWING: Final = (
    "an array has one size in a loop: append to a list, and put its items together once, "
    "`np.array(items)` or `np.concatenate(items)` after the loop; or store into an array, "
    "`np.zeros(…)`"
)


@dataclass(eq=False)
class Rolled:
    """A rolled loop, and the facts known about its body."""

    frame: Frame
    node: ast.For | ast.While
    enter: Callable[[Position], None]
    """Binds the names with which a step of a counter begins."""
    body: Callable[[], Outcome]
    count: Count | None
    """The number of steps; None if only the test decides it."""
    test: Callable[[], Value] | None = None
    """Computes whether there is another step."""
    read_later: Callable[[str], bool] = lambda name: False
    """Returns whether a name may be read after the loop."""
    rebound: frozenset[str] = frozenset()
    """Names that each step binds before it reads them."""
    line: tuple[Size, int] | None = None
    """The first item and the step, if the loop iterates over a range of sizes."""
    carry: Carry = field(default_factory=Carry)
    expected: Learnt | None = None
    """The facts from an earlier elaboration, unless the body contradicts them."""
    _pending: tuple[list[Key], list[Cell], list[Container]] = ([], [], [])
    """The additional changes of a step."""

    def __post_init__(self) -> None:
        """Record the state before the loop."""
        self.state = State(self.session)
        self.here = self.program.current
        self.held = holders(self.session)
        self.outside = self.program.facts
        self.heads: dict[Cell, Slot] = {}
        self.shown: dict[Cell, Frozen] = {}
        """Cells from before the loop that names show after it."""
        self.counter = self._as_size()
        """The counter as a size; None if it is only a number."""
        self.inside = self.outside
        """The facts about sizes in a step."""
        if self.counter is not None:
            self.inside = in_loop(self.outside, self.counter, self.session.barrier)

    @property
    def session(self) -> Session:
        return self.frame.session

    @property
    def program(self) -> Program:
        program = self.frame.program
        assert program is not None
        return program

    def run(self, names: Sequence[str]) -> Outcome:
        """Elaborate the loop; `names` are those that the body certainly binds."""
        place = self.frame.span(self.node)
        self.expected = self.session.learnt.get(place)
        if self.expected is not None:
            trial = Trial(self.session, self.program)
            try:
                return self._learnt_from(names)
            except (Mistaken, Failure):
                trial.forget()
                self.expected = None
                self.carry, self.heads, self.shown = Carry(), {}, {}
        outcome = self._learnt_from(names)
        self.session.learnt[place] = self._learnt()
        return outcome

    def _describe(self) -> None:
        count = self.count
        steps = f", {number_of_steps(count)}" if isinstance(count, int | Dim) else ""
        bound = [name for (_, name), slot in self.carry.slots.items() if slot.dropped is None]
        bound += [name for _, name, _ in self._written()]
        bound += [items.name.strip("`") for items in self.carry.contents.values()]
        shown = [name for name in dict.fromkeys(bound) if not name.startswith(" ")]
        dtypes = self._dtypes()
        carried = ", ".join(f"`{name}`{dtypes.get(name, '')}" for name in shown) or "nothing"
        place = self.frame.span(self.node).head(len("for"))
        self.session.loops[place] = plainly(f"rolled{steps}, carries {carried}")

    def _dtypes(self) -> dict[str, str]:
        """Return the dtypes of names that begin without one."""
        leaves = {name: slot.leaves for (_, name), slot in self.carry.slots.items()}
        for frame, name, place in self._written():
            cell = _cells_of(self.state.before((frame, name)))[place]
            leaves[name] = [self.carry.cells[cell]]
        return {
            name: " as " + ", ".join(dict.fromkeys(str(leaf.dtype) for leaf in each))
            for name, each in leaves.items()
            if any(isinstance(leaf.start, Weak) and leaf.dtype is not None for leaf in each)
        }

    def _written(self) -> Iterator[tuple[Frame, str, int]]:
        """Yield the names whose arrays the loop writes, and the number of the cell of each."""
        for frame, before in self.state.names:
            for name, value in before.items():
                for place, cell in enumerate(_cells_of(value)):
                    if cell in self.carry.cells:
                        yield frame, name, place

    def _learnt(self) -> Learnt:
        written = [(name, place) for frame, name, place in self._written() if frame is self.frame]
        leaves = {
            name: [(leaf.dtype, leaf.kind, leaf.given) for leaf in slot.leaves]
            for (frame, name), slot in self.carry.slots.items()
            if frame is self.frame and slot.dropped is None
        }
        return Learnt(written, leaves)

    def _learnt_from(self, names: Sequence[str]) -> Outcome:
        for name in names:
            if not isinstance(self.state.before((self.frame, name)), Missing):
                self._add((self.frame, name))
        if self.expected is not None:
            for name, place in self.expected.written:
                cells = _cells_of(self.state.before((self.frame, name)))
                if place >= len(cells) or cells[place].frozen is not None:
                    raise Mistaken
                cell = cells[place]
                self.carry.cells[cell] = self._leaf_of(cell)
        try:
            outcome = self._settled()
        except Failure:
            self._silence()
            raise
        self._describe()
        return outcome

    def _silence(self) -> None:
        """Poison the lists and dicts that a step changes: the error is reported."""
        for container in (*self.carry.contents, *self.carry.appended):
            silence(self.session, container)

    def _settled(self) -> Outcome:
        """Elaborate the body until a round learns nothing new, and bind the loop."""
        for _ in range(MOST_ROUNDS):
            attempt = Attempt(self.program)
            known = len(self.here.equations)
            try:
                step = self._step(attempt)
                test = self._tested()
            except Again:
                attempt.forget()
                self.here.forget(known)
                self._take_pending()
                continue
            finally:
                self.state.restore()
            if step is None:
                if self.expected is not None:
                    raise Mistaken
                return self._poisoned()
            return self._bound(step, test)
        raise Failure(
            LoopChangesType(name="what the loop carries", before="of one type", after="another")
        )

    def _as_size(self) -> Counter | None:
        """Return the counter as a size; None if it is only a number."""
        if self.count is None or isinstance(self.count, Value):
            return None
        name = self.node.target if isinstance(self.node, ast.For) else None
        return new_counter(self.program, self.session.barrier, name, self.count, self.line)

    def _poisoned(self) -> Outcome:
        """Return the outcome of a loop whose body has an error."""
        self._silence()
        for frame, name in self.carry.slots:
            frame.names[name] = POISON
        return Return(POISON, self.node) if RETURN in self.carry.kinds else None

    # One step.

    def _step(self, attempt: Attempt) -> LoopStep | None:
        """Return the body as a block; None if it has an error, Again if something was learnt."""
        session, program = self.session, self.program
        wanted: dict[int, DType] = {}
        with program.inside() as block:
            session.step(BLOCK_STEPS)
            try:
                params = self._begin(block, wanted)
                if self.count is not None:
                    self.enter(self._position())
                outcome = after_step(self.frame, self.body())
                self._learn_changes()
                ends = [
                    each for slot in self.carry.slots.values() for each in self._end(slot, wanted)
                ]
                ends += self._contents(wanted)
                ends += self._items(wanted)
                self._learn_owners(outcome)
                ends += self._exits(outcome)
                rows = self._rows()
            except Poisoned:
                return None
            finally:
                self._leave()
            if attempt.failed():
                return None
            if self.count is not None:
                (later,) = block.bind(e.add, (self._counter, block.literal(1, self._counter.dtype)))
                ends.append(later)
            return LoopStep(*block.finish(params, [*ends, *rows]))

    def _begin(self, block: Builder, wanted: dict[int, DType]) -> list[Value]:
        """Bind names and cells to the carry; return the parameters of the block."""
        self.state.restore()
        session = self.session
        params: list[Value] = []

        def shown(leaf: Leaf) -> Array:
            params.append(block.parameter(leaf.type))
            return leaf.shown(params[-1], wanted)

        for cell, why in self.carry.frozen.items():
            cell.freeze(why)
        self.heads = {}
        for slot in self.carry.slots.values():
            frame, name = slot.key
            leaves = [shown(leaf) for leaf in slot.leaves]
            if slot.dropped is not None:
                frame.names[name] = slot.left_out()
            elif not isinstance(slot.before, Missing):
                frozen = None if slot.owned else self._snapshot(name)
                value = slot.value(iter(leaves), session, frozen)
                frame.names[name] = value
                for each in located_in(value):
                    self.heads.update((cell, slot) for cell in each.cells())
        for cell, leaf in self.carry.cells.items():
            cell.replace(shown(leaf))
        self._stamps = {cell: cell.stamp for cell in self.carry.cells}
        for container, items in self.carry.contents.items():
            frozen = self._snapshot("an item")
            container.replace(items.content(iter([shown(x) for x in items.leaves]), frozen))
        for container in self.carry.appended:
            container.replace([])
        self._leaving = [block.parameter(ArrayType(I32, ()))] if self.carry.exits else []
        self._returned = [block.parameter(leaf.type) for leaf in self.carry.returned]
        params += [*self._leaving, *self._returned]
        if self.count is not None:
            dtype = I64 if isinstance(self.count, Value) else I32
            self._counter = block.parameter(ArrayType(dtype, ()), "step")
            params.append(self._counter)
        return params

    def _position(self) -> Position:
        """Return the counter of the step, and assume the facts about it during the step."""
        counter = self.counter
        if counter is None:
            return Position(self._counter)
        assert isinstance(self._counter.atom, Var)
        self.program.counters[self._counter.atom] = counter
        if not any(isinstance(each, _LEAVING) for each in ast.walk(self.node)):
            self.program.every_step[counter.name] = counter, self._counter.builder.depth
        self.program.facts = self.inside
        return Position(self._counter, counter.position)

    def _leave(self) -> None:
        facts = self.program.facts
        if self.counter is not None and isinstance(facts, InLoop):
            if self.counter.name in facts.counters:
                self.program.facts = facts.without(self.counter)

    def _names_counter(self, arrays: Sequence[Array]) -> bool:
        """Return whether a size of arrays names the counter."""
        counter = self.counter
        return counter is not None and any(
            counter.name in names(size) for each in arrays for size in each.shape
        )

    def _require_fixed(self, name: str, found: Sequence[Array]) -> bool:
        """Return whether arrays have sizes without the counter, and so outlive the step.

        If other arrays are read after a loop with a known number of steps, the loop is unrolled.
        """
        if not self._names_counter(found):
            return True
        if isinstance(self.count, int) and self.read_later(name):
            raise Failure(depends_on_counter(f"`{name}` after the loop"))
        return False

    def _snapshot(self, name: str) -> Frozen:
        why = f"is what a step of the loop left as `{name}`, which others may hold"
        return Frozen(why, self._span)

    @property
    def _span(self) -> Span:
        head = self.node.iter if isinstance(self.node, ast.For) else self.node.test
        return self.frame.span(head)

    # Facts learnt from a step.

    def _learn_changes(self) -> None:
        """Carry the additional changes of a step."""
        new: list[Key] = []
        local: dict[Key, None] = {}
        again = False
        for key, value in self.state.renamed().items():
            if key in self.carry.slots or self._is_hidden(key) or isinstance(value, Poison):
                continue
            if isinstance(self.state.before(key), Missing):
                local[key] = None
                again |= self._carry_out(key, value)
            elif isinstance(value, Long):
                raise self._another_length(f"`{key[1]}`", self.state.before(key), value.sized())
            else:
                new.append(key)
        cells = [
            cell
            for cell in self.state.written()
            if cell not in self.carry.cells and self.state.existed(cell)
        ]
        known = (*self.carry.contents, *self.carry.appended)
        containers = [each for each in self.state.changed() if each not in known]
        self.carry.local = local
        self._pending = (new, cells, containers)
        if new or cells or containers or again:
            raise Again

    def _leaf_of(self, cell: Cell) -> Leaf:
        """Return the leaf of a written array; its site is one of the names of the array."""
        names = [
            f"{name} {place}"
            for _, before in self.state.names
            for name, value in before.items()
            for place, each in enumerate(_cells_of(value))
            if each is cell
        ]
        return Leaf.of(
            cell.content, self.program.site(f"cell {min(names, default='')}", self._span)
        )

    def _take_pending(self) -> None:
        """Carry the additional changes, with their values from before the loop."""
        self.state.restore()
        new, cells, containers = self._pending
        self._pending = ([], [], [])
        for key in new:
            self._add(key)
        for cell in cells:
            self.carry.cells[cell] = self._leaf_of(cell)
        for container in containers:
            self._add_container(container)

    def _add_container(self, container: Container) -> None:
        """Carry the items of a list or a dict, or collect what each step appends to a list."""
        name = named_container(self.session, container)
        held = None if self.held is None else self.held[container]
        found = appended_name(self.frame, self.node, container)
        if held == 1 and found is not None:
            before = container.content()
            assert isinstance(before, list)
            self.carry.appended[container] = Appended(found, name, before=before)
            self._share(before, self._snapshot("an item"))
            return
        self.carry.contents[container] = CarriedItems.of(
            self.session, self.here, name, container, self._span
        )
        self._share(container.content(), self._snapshot("an item"))

    @property
    def _is_counted(self) -> bool:
        """Return whether the number of steps is known and all of them are executed."""
        return not (self.count is None or isinstance(self.count, Value) or self.carry.exits)

    def _another_length(self, name: str, value: Binding | Missing, after: str) -> Failure:
        before = sized(value) if is_sequence(value) or is_dict(value) else describe(value)
        why = "each step changes how many items there are"
        rewrite = (
            "one loop over an array or a `range`, without `break`, may append to a list that it "
            "does not read; else store into an array, `np.zeros(…)`"
        )
        return Failure(
            LoopChangesType(name=name, before=before, after=after, why=why, rewrite=rewrite).at(
                self._span
            )
        )

    def _items(self, wanted: dict[int, DType]) -> list[Value]:
        """Return the items of lists and dicts after a step; Again if their types were learnt."""
        found: list[Value] = []
        again = False
        for container, items in self.carry.contents.items():
            now = container.content()
            if is_poisoned(now):
                raise Poisoned
            if lengths_differ([items.form, now]) is not None:
                raise self._another_length(items.name, items.form, sized(now))
            if not same_order(items.form, now):
                raise Failure(self._changed(items.name, "a dict", "one of another order"))
            leaves, tree = flatten(self.program.current, load(values_of(now)), items.name)
            if not same_structure(tree, items.tree):
                raise Failure(self._changed(f"an item of {items.name}", items.tree, tree))
            pairs = list(zip(items.leaves, leaves, strict=True))
            again |= any([leaf.learn(each, wanted.get(id(leaf))) for leaf, each in pairs])
            again |= self._share(now, self._snapshot("an item"))
            if again:
                continue
            self._agree(pairs)
            for leaf, each in pairs:
                end = each.type.with_dtype(leaf.carrier) if isinstance(each, Weak) else each.type
                fits = leaf.dtype is not None or isinstance(each, Weak)
                if isinstance(each, Weak):
                    fits = fits and accepts_weak(leaf.carrier, each.kind)
                why = array_difference(self.program.facts, end, leaf.type)
                if why is not None or not fits:
                    name = f"an item of {items.name}"
                    raise Failure(self._changed(name, leaf.type, each.type, why or ""))
                found.append(at(each, leaf.carrier))
        if again:
            raise Again
        return found

    def _rows(self) -> list[Value]:
        """Return the items that a step appends to each list; a Failure if the count is open."""
        here = self.program.current
        for container, appended in self.carry.appended.items():
            if not self._is_counted:
                after = "another number of items"
                raise self._another_length(appended.name, container.value, after)
        found: list[Value] = []
        for container, appended in self.carry.appended.items():
            rows = appended.rows(here, values_of(container.value), self._span)
            if self._names_counter(rows):
                raise Failure(depends_on_counter(f"an item of {appended.name}"))
            found += rows
        return found

    def _is_hidden(self, key: Key) -> bool:
        return key[1].startswith(" ")

    def _add(self, key: Key) -> None:
        before = self.state.before(key)
        assert not isinstance(before, Missing)
        if isinstance(before, Unjoined):
            self.carry.slots[key] = Slot(key, before, [], None, owned=False, dropped=before.why)
            return
        slot = Slot(key, before, [], None, owned=False, form=before)
        self.carry.slots[key] = slot
        if is_poisoned(before):
            slot.dropped = ()
            return
        try:
            found, slot.tree = flatten(self.here, load(before), f"`{key[1]}`")
        except Failure as failure:
            slot.dropped = failure.at(self._span).diagnostics
            return
        slot.leaves = [
            Leaf.of(each, self.program.site(f"{key[1]} {place}", self._span))
            for place, each in enumerate(found)
        ]
        if self.expected is not None and key[0] is self.frame:
            expected = self.expected.leaves.get(key[1], ())
            if len(expected) == len(slot.leaves):
                for leaf, known in zip(slot.leaves, expected, strict=True):
                    leaf.expect(*known)
        slot.owned = is_held_once(before, self.held)
        if not slot.owned:
            self._share(before, self._snapshot(key[1]))

    def _share(self, value: Binding, why: Frozen, name: str = "") -> bool:
        """Freeze the cells from before the loop that a value shows; return whether any is new.

        A `name` that each step binds before it reads it can show these cells only after the loop.
        """
        new = False
        for cell in held_in(self.session, value):
            slot = self.heads.get(cell) if isinstance(cell, Cell) else None
            if slot is not None:
                new |= slot.owned
                slot.owned = False
            elif self.state.existed(cell) and cell.frozen is None and cell not in self.carry.frozen:
                if name in self.rebound and isinstance(cell, Cell):
                    if self.read_later(name):
                        self.shown[cell] = why
                    continue
                self.carry.frozen[cell] = why
                new = True
        return new

    def _carry_out(self, key: Key, value: Binding | Missing) -> bool:
        """Carry a name that only the body binds, if it is read later, and a step is certain."""
        if isinstance(value, Missing | Poison | Unjoined) or not self.read_later(key[1]):
            return False
        try:
            found, tree = flatten(self.program.current, load(value), f"`{key[1]}`")
        except (Failure, Poisoned):
            return False
        if not self._require_fixed(key[1], found):
            return False
        count = self.count
        certain = isinstance(count, int | Dim) and self.outside.proves(Fact("<=", 1, count))
        if not certain or self.carry.exits:
            return False
        slot = Slot(key, MISSING, [], tree, owned=False, form=value)
        slot.leaves = [
            Leaf.from_zeros(each, self.program.site(f"{key[1]} {place}", self._span))
            for place, each in enumerate(found)
        ]
        self.carry.slots[key] = slot
        return True

    def _end(self, slot: Slot, wanted: dict[int, DType]) -> list[Value]:
        """Return the leaves of a name at the end of a step; Again if their types were learnt."""
        frame, name = slot.key
        if slot.dropped is not None:
            return []
        value = frame.names.get(name, MISSING)
        if isinstance(value, Unjoined):
            self._drop(slot, value.why)
        if isinstance(value, Missing):
            self._drop(slot, [UnboundAfterLoop(name=name, span=self._span)])
        if is_poisoned(value):
            raise Poisoned
        try:
            found, tree = flatten(self.program.current, load(value), f"`{name}`")
        except Failure as failure:
            self._drop(slot, failure.at(self._span).diagnostics)
        self._require_fixed(name, found)
        assert slot.tree is not None
        if not same_structure(tree, slot.tree):
            self._drop(slot, [self._changed(name, slot.tree, tree)])
        if not same_order(slot.form, value):
            self._drop(slot, [self._changed(name, "a dict", "one of another order")])
        changed = [
            leaf.learn(each, wanted.get(id(leaf)))
            for leaf, each in zip(slot.leaves, found, strict=True)
        ]
        if any(changed):
            raise Again
        self._agree(zip(slot.leaves, found, strict=True))
        for leaf, each in zip(slot.leaves, found, strict=True):
            end = each.type.with_dtype(leaf.carrier) if isinstance(each, Weak) else each.type
            fits = isinstance(each, Value) or accepts_weak(leaf.carrier, each.kind)
            if leaf.dtype is None and isinstance(each, Value):
                fits = False
            why = array_difference(self.program.facts, end, leaf.type)
            if why is not None or not fits:
                self._drop(slot, [self._changed(name, leaf.type, each.type, why or "")])
        return [at(each, leaf.carrier) for leaf, each in zip(slot.leaves, found, strict=True)]

    def _contents(self, wanted: dict[int, DType]) -> list[Value]:
        """Return the content of cells at the end of a step; Again if their dtypes were learnt."""
        if self.expected is not None:
            if any(cell.stamp == self._stamps[cell] for cell in self.carry.cells):
                raise Mistaken
        changed = [
            leaf.learn(cell.content, wanted.get(id(leaf)))
            for cell, leaf in self.carry.cells.items()
        ]
        if any(changed):
            raise Again
        found: list[Value] = []
        self._agree([(leaf, cell.content) for cell, leaf in self.carry.cells.items()])
        for cell, leaf in self.carry.cells.items():
            content = at(cell.content, leaf.carrier)
            if content.type != leaf.type and array_difference(
                self.program.facts, content.type, leaf.type
            ):
                raise Failure(self._changed("an array", leaf.type, content.type))
            found.append(content)
        return found

    def _agree(self, pairs: Iterable[tuple[Leaf, Array]]) -> None:
        """Require that chosen dtypes at the start and the end of a step agree."""
        program = self.program
        for leaf, end in pairs:
            if isinstance(end, Value) and leaf.sites and leaf.dtype is not end.dtype:
                begun = Value(self.here, Var(leaf.type))
                program.agree([program.mark(begun, leaf.sites), end])
            elif isinstance(end, Value) and leaf.dtype is not None:
                program.want(end, leaf.dtype)

    def _changed(
        self, name: str, before: Type | str, after: Type | str, why: str = ""
    ) -> Diagnostic:
        return LoopChangesType(
            name=name if "`" in name else f"`{name}`",
            before=str(before),
            after=str(after),
            why=why,
            rewrite=_GROWING if self._grows(before, after) else "",
            span=self._span,
        )

    def _grows(self, before: Type | str, after: Type | str) -> bool:
        """Return whether a step makes an array longer."""
        if not isinstance(before, ArrayType) or not isinstance(after, ArrayType):
            return False
        pairs = [*zip(before.shape, after.shape, strict=False)]
        facts = self.program.facts
        longer = [facts.proves(Fact("<", one, other)) for one, other in pairs if one != other]
        return len(before.shape) == len(after.shape) and longer == [True]

    def _drop(self, slot: Slot, why: Sequence[Diagnostic]) -> NoReturn:
        """Stop carrying a name: a read of it before a step binds it is refused, with the reason."""
        if self.expected is not None:
            raise Mistaken
        slot.dropped, slot.leaves = why, []
        if not isinstance(slot.before, Missing):
            self._share(slot.before, self._snapshot(slot.key[1]))
        raise Again

    def _learn_owners(self, outcome: Outcome) -> None:
        """Withdraw the right to write from names whose arrays others hold at the end of a step."""
        again = False
        held = self._held_at_end()
        for cell, why in self.state.frozen():
            if self.state.existed(cell) and cell not in self.carry.frozen:
                self.carry.frozen[cell] = why
                again = True
            slot = self.heads.get(cell) if isinstance(cell, Cell) else None
            if slot is not None and slot.owned:
                slot.owned = False
                again = True
        for container in self.carry.appended:
            again |= self._share(container.content(), self._snapshot("an item"))
        for slot in self.carry.slots.values():
            frame, name = slot.key
            value = frame.names.get(name, MISSING)
            if slot.dropped is not None or isinstance(value, Missing | Unjoined | Poison):
                continue
            if slot.owned and is_held_once(value, held) and not self.state.existed(value.cell):
                continue
            if slot.owned:
                slot.owned = False
                again = True
            again |= self._share(value, self._snapshot(name), name if frame is self.frame else "")
        if isinstance(outcome, Return | Maybe):
            again |= self._share(outcome.value, self._snapshot("what is returned"))
        if again:
            raise Again

    def _held_at_end(self) -> Counts[Cell | Container] | None:
        """Count the names that refer to each cell, without those that end with the step."""
        gone = {
            key: value
            for key, value in self.state.renamed().items()
            if key not in self.carry.slots and not self._is_hidden(key)
        }
        for (frame, name), _ in gone.items():
            frame.names.pop(name, None)
        found = holders(self.session)
        for (frame, name), value in gone.items():
            if not isinstance(value, Missing):
                frame.names[name] = value
        return found

    def _exits(self, outcome: Outcome) -> list[Value]:
        """Return the exit code and the returned leaves; Again if a new kind of exit was found."""
        kinds = kinds_of(outcome)
        again = not kinds <= self.carry.kinds
        self.carry.kinds |= kinds
        here = self.program.current
        found: list[Array] = list(self._returned)
        if isinstance(outcome, Return | Maybe) and RETURN in kinds:
            if is_poisoned(outcome.value):
                raise Poisoned
            found, tree = flatten(here, load(outcome.value), "what is returned")
            if self._names_counter(found):
                raise Failure(depends_on_counter("what is returned"))
            if isinstance(self.carry.returned_form, Missing):
                self.carry.returned_form, self.carry.returned_tree, again = (
                    outcome.value,
                    tree,
                    True,
                )
                for place, each in enumerate(found):
                    site = self.program.site(f"return {place}", self._span)
                    self.carry.returned.append(Leaf.from_zeros(each, site))
        if again:
            raise Again
        if not self.carry.exits:
            return []
        code = outcome.code if isinstance(outcome, Maybe) else here.literal(min(kinds), I32)
        pairs = list(zip(self.carry.returned, found, strict=True))
        self._agree(pairs)
        return [code, *(at(each, leaf.carrier) for leaf, each in pairs)]

    # The whole loop.

    def _tested(self) -> LoopStep | None:
        """Return the test as a block; None if the loop only counts its steps."""
        counted = self.count is not None and not isinstance(self.count, Value)
        if counted and self.test is None and not self.carry.exits:
            return None
        with self.program.inside() as block:
            params = self._begin(block, {})
            tests: list[Value] = []
            if self.carry.exits:
                (code,) = self._leaving
                tests += block.bind(e.equal, (code, block.literal(ON, I32)))
            if self.test is not None:
                written = self.session.stores
                before = [(frame, dict(frame.names)) for frame, _ in self.state.names]
                tests.append(self.test())
                renamed = any(frame.names != names for frame, names in before)
                if renamed or self.session.stores != written:
                    raise TestChanges
            if self.count is not None:
                limit = self.count
                if not isinstance(limit, Value):
                    limit = block.size(limit, self._counter.dtype)
                tests += block.bind(e.less, (self._counter, limit))
            if not tests:
                raise Failure(EndlessLoop())
            whole = tests[0]
            for each in tests[1:]:
                (whole,) = block.bind(e.bitwise_and, (whole, each))
            return LoopStep(*block.finish(params, [whole]))

    def _bound(self, step: LoopStep, test: LoopStep | None) -> Outcome:
        """Bind the equation, and return the outcome of the loop."""
        ends = step.block.results
        if self.counter is not None and not isinstance(self.outside, InLoop):
            self.program.span = self._span
            step = LoopStep(*padded(self.program, step.block, step.captured))
        here = self.here
        initial = [leaf.initial() for leaf in self.carry.leaves()]
        if self.carry.exits:
            initial += [here.literal(ON, I32), *(leaf.initial() for leaf in self.carry.returned)]
        self.program.span = self._span
        results: Sequence[Value] = ()
        count = self.count
        if initial or self.carry.appended:
            if count is not None:
                initial.append(here.literal(0, I64 if isinstance(count, Value) else I32))
            if test is None:
                assert count is not None
                assert not isinstance(count, Value)
                scan = Scan(step.block, len(step.captured), len(initial), count, False)
                results = here.bind(scan, (*step.captured, *initial))
            else:
                bound = None if isinstance(count, Value) else count
                counts = len(test.captured), len(step.captured)
                loop = While(test.block, step.block, *counts, bound)
                results = here.bind(loop, (*test.captured, *step.captured, *initial))
        rows = iter(results[len(initial) :])
        for appended in self.carry.appended.values():
            assert count is not None
            assert not isinstance(count, Value)
            of_list = [next(rows) for _ in range(appended.count)]
            self.frame.names[appended.local] = appended.after(self.session, here, of_list, count)
        return self._left(results, ends)

    def _left(self, results: Sequence[Value], last: Sequence[Atom]) -> Outcome:
        """Bind names and cells to the results of the loop, and return its outcome."""
        remaining = iter(results)
        at_end = iter(last)
        session = self.session

        def after(leaf: Leaf) -> Array:
            return leaf.after(next(remaining), next(at_end))

        for slot in self.carry.slots.values():
            frame, name = slot.key
            leaves = [after(leaf) for leaf in slot.leaves]
            if slot.dropped is not None:
                frame.names[name] = slot.left_out()
            else:
                frozen = None if slot.owned else self._snapshot(name)
                frame.names[name] = slot.value(iter(leaves), session, frozen)
        for cell, leaf in self.carry.cells.items():
            cell.replace(after(leaf))
        for container, items in self.carry.contents.items():
            left = [after(leaf) for leaf in items.leaves]
            container.replace(items.content(iter(left), self._snapshot("an item")))
        for each, why in (*self.carry.frozen.items(), *self.shown.items()):
            each.freeze(why)
        for key in self.carry.local:
            frame, name = key
            frame.names[name] = Unjoined([UnboundAfterLoop(name=name, span=self._span)])
        if not self.carry.exits:
            return None
        code, _ = next(remaining), next(at_end)
        value: Place = None
        if not isinstance(self.carry.returned_form, Missing):
            frozen = self._snapshot("what is returned")
            returned = [after(leaf) for leaf in self.carry.returned]
            value = rebuilt(
                self.carry.returned_form,
                self.carry.returned_tree,
                iter(returned),
                lambda leaf: Ref(Cell(session, leaf, frozen)),
            )
        ends = self.count is not None or self.test is not None
        kinds = self.carry.kinds | {ON} if ends else self.carry.kinds - {ON}
        return of_kind(kinds, code, value, self.node)
