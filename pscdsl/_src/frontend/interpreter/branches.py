"""Branches on traced values: both are elaborated, and their results are joined.

`fork` elaborates two pieces of program from the same state, each in a separate block, and binds one
`Switch`, whose results are the differences between the two: names, the contents of cells, returned
values, and the next code that runs. Values that cannot be joined are refused where they are read.

A name to which two paths give two arrays refers to a new cell: it may be written only if nothing
else refers to either of the two, else all of them are frozen.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar, overload

from pscdsl._src.frontend.combinators import bind_branches
from pscdsl._src.frontend.interpreter.containers import (
    Container,
    Content,
    adopt,
    container_of,
)
from pscdsl._src.frontend.interpreter.counters import note_truth, said
from pscdsl._src.frontend.interpreter.frames import BLOCK_STEPS, Binding, Frame, Session, Unjoined
from pscdsl._src.frontend.interpreter.places import (
    Cell,
    Frozen,
    Located,
    Ref,
    held_in,
    load,
)
from pscdsl._src.frontend.interpreter.python_numbers import computed
from pscdsl._src.frontend.interpreter.state import (
    MISSING,
    Key,
    Missing,
    State,
    alike,
    holders,
    is_held_once,
    is_whole,
    live_frames,
)
from pscdsl._src.frontend.purity import is_set, parts
from pscdsl._src.frontend.size_numbers import Number
from pscdsl._src.frontend.text.bindings import uses
from pscdsl._src.frontend.trees import at, bool_scalar, condition, flatten, unflatten
from pscdsl._src.frontend.values import (
    POISON,
    AnyValue,
    Array,
    Place,
    Undecided,
    is_poisoned,
    is_traced,
)
from pscdsl._src.ir.builder import (
    Builder,
    Program,
    PythonNumber,
    Site,
    Value,
    Weak,
    may_be_array,
    note_array,
    reachable,
)
from pscdsl._src.primitives import elementwise as e
from pscdsl._src.primitives.random import unused_key
from pscdsl.numpy.shorthand import where
from pscdsl.typing.array_types import ArrayType, TupleType, Type, same_structure
from pscdsl.typing.codes.control import ValuesDiffer
from pscdsl.typing.diagnostics import Diagnostic, Failure
from pscdsl.typing.dtypes import BOOL, C128, F64, I32, I64, KEY, DType, Kind, accepts_weak
from pscdsl.typing.python_containers import is_dict, is_sequence
from pscdsl.typing.unify import array_difference

# The outcomes of statements.


class Return:
    """The function has returned."""

    __slots__ = ("node", "value")

    def __init__(self, value: Place, node: ast.AST) -> None:
        self.value = value
        self.node = node


class Jump:
    """`break` or `continue`."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind


ON, BREAK, CONTINUE, RETURN = 0, 1, 2, 3
"""The codes of an outcome, which the program computes."""
CODES: Final = {"break": BREAK, "continue": CONTINUE}


class Maybe:
    """The outcome is known only at run time."""

    __slots__ = ("code", "kinds", "node", "value")

    def __init__(self, code: Value, kinds: frozenset[int], value: Place, node: ast.AST) -> None:
        self.code = code
        self.kinds = kinds
        """The possible codes."""
        self.value = value
        """The returned value, for the code `RETURN`."""
        self.node = node


Outcome: TypeAlias = "Return | Jump | Maybe | None"


@dataclass(frozen=True)
class Gives:
    """The value of an expression in a branch."""

    value: Place
    node: ast.expr


T = TypeVar("T")
Pair: TypeAlias = tuple[Callable[[], T], Callable[[], T]]
"""Two pieces of program, of which one runs."""


def kinds_of(outcome: Outcome | Gives) -> frozenset[int]:
    """Return the possible codes of an outcome."""
    match outcome:
        case None | Gives():
            return frozenset((ON,))
        case Return():
            return frozenset((RETURN,))
        case Jump():
            return frozenset((CODES[outcome.kind],))
        case Maybe():
            return outcome.kinds


def of_kind(kinds: frozenset[int], code: Value | None, value: Place, node: ast.AST) -> Outcome:
    """Return the outcome with these codes."""
    if len(kinds) > 1:
        assert code is not None
        return Maybe(code, kinds, value, node)
    (kind,) = kinds
    if kind == RETURN:
        return Return(value, node)
    return None if kind == ON else Jump("break" if kind == BREAK else "continue")


# Conditions.


def is_condition(value: Place) -> bool:
    """Return whether a traced value can decide a branch: a number or a bool without axes."""
    return is_traced(value) and not value.ndim and not isinstance(value, Number)


def predicate_of(here: Builder, value: AnyValue, construct: str) -> Value:
    """Return the truth of a traced value as Python defines it: whether it differs from zero."""
    if isinstance(value, Undecided):
        return condition(here, value)
    if isinstance(value, bool):
        return here.literal(value, BOOL)
    array = value.default() if isinstance(value, Weak) else value
    if isinstance(array, Value) and not array.ndim and array.dtype.is_number:
        truth = here.program.current.elementwise(e.not_equal, [array, 0])
        assert isinstance(truth, Value)
        note_truth(here.program, value, truth)
        return truth
    return bool_scalar(here, array, construct)


def joined(value: Binding) -> Place:
    """Return the joined value of two expressions; a Failure if they cannot be joined."""
    if isinstance(value, Unjoined):
        raise Failure(*value.why)
    return value


# Both paths, and the join of their results.


@dataclass(eq=False)
class Path:
    """One of the two pieces of program, and the state at its end."""

    block: Builder
    outcome: Outcome | Gives
    names: dict[Key, Binding | Missing]
    cells: dict[Cell, tuple[Array, int]]
    containers: dict[Container, Content]
    frozen: list[tuple[Cell | Container, Frozen]]
    held: Counter[Cell | Container] | None
    """The number of names that refer to each cell and container at its end."""

    @property
    def kinds(self) -> frozenset[int]:
        """The possible codes of the outcome."""
        return kinds_of(self.outcome)

    @property
    def goes_on(self) -> bool:
        """Return whether the function continues with the names of this path."""
        return self.kinds != frozenset((RETURN,))

    def at_end(self, read: Callable[[], T]) -> T:
        """Return the result of `read` in its block, with the cells as at the end of this path."""
        program = self.block.program
        outer, program.current = program.current, self.block
        before = [(cell, cell.content, cell.stamp) for cell in self.cells]
        held = [(each, each.content()) for each in self.containers]
        for cell, (array, stamp) in self.cells.items():
            cell.content, cell.stamp = array, stamp
        for container, content in self.containers.items():
            container.fill(content)
        try:
            return read()
        finally:
            for container, content in held:
                container.fill(content)
            for cell, array, stamp in before:
                cell.content, cell.stamp = array, stamp
            program.current = outer


@overload
def fork(frame: Frame, node: ast.AST, predicate: Value, thunks: Pair[Gives]) -> Binding: ...
@overload
def fork(frame: Frame, node: ast.AST, predicate: Value, thunks: Pair[Outcome]) -> Outcome: ...
def fork(
    frame: Frame, node: ast.AST, predicate: Value, thunks: Pair[Outcome | Gives]
) -> Outcome | Binding:
    """Return the outcome of one of two pieces of program: the first if a predicate holds.

    For two expressions the result is the value.
    """
    session, program = frame.session, frame.program
    assert program is not None
    here, known, span = program.current, program.facts, frame.span(node)
    outside = session.branches
    state = State(session)
    paths: list[Path] = []
    for thunk, facts in zip(thunks, said(program, predicate), strict=True):
        try:
            with program.inside() as block:
                session.step(BLOCK_STEPS)
                program.facts = known.assume(*facts)
                session.branches += 1
                outcome = thunk()
            paths.append(
                Path(
                    block,
                    outcome,
                    state.renamed(),
                    state.written(),
                    state.changed(),
                    state.frozen(),
                    holders(session),
                )
            )
        finally:
            session.branches = outside
            program.facts = known
            state.restore()
    program.span = span
    return _Join(frame, here, state, paths, node).outcome(predicate)


Build: TypeAlias = Callable[[Sequence[Value]], T]
"""Makes a joined value from the results of the `Switch`."""


@dataclass(frozen=True, eq=False)
class Column:
    """One result of the `Switch`."""

    type: ArrayType
    ends: tuple[Array | None, ...]
    """The value of each path; None for a path on which the function has returned."""


@dataclass(eq=False)
class _Join:
    """The results of two paths, joined into one program."""

    frame: Frame
    here: Builder
    state: State
    paths: list[Path]
    node: ast.AST
    columns: list[Column] = field(default_factory=list[Column])
    """The results of the `Switch`."""
    shared: list[tuple[Cell | Container, Frozen]] = field(
        default_factory=list[tuple[Cell | Container, Frozen]]
    )
    """The cells that a joined name may refer to."""

    @property
    def session(self) -> Session:
        return self.frame.session

    def outcome(self, predicate: Value) -> Outcome | Binding:
        """Join everything, bind the `Switch`, and return the joined outcome."""
        going = [path for path in self.paths if path.goes_on]
        names = {key: self._name(key, going) for path in going for key in path.names}
        cells = {
            cell: self._array(
                [path.cells.get(cell, (cell.content, 0))[0] for path in self.paths], self.paths
            )
            for path in self.paths  # also of a returning path: the caller may hold the cell
            for cell in path.cells
            if self.state.existed(cell)
        }
        contents = {
            container: self._content(container)
            for path in self.paths
            for container in path.containers
        }
        giving = [path for path in self.paths if isinstance(path.outcome, Gives)]
        given = None
        if giving:
            given = self._value([_value_of(path.outcome) for path in giving], giving, None)
        returning = [path for path in self.paths if RETURN in path.kinds]
        returned = None
        if returning:
            column = [_value_of(path.outcome) for path in returning]
            returned = self._value(column, returning, None)
        kinds = self.paths[0].kinds | self.paths[1].kinds
        code = self._code() if len(kinds) > 1 else None
        results = self._bound(predicate)
        for (frame, name), build in names.items():
            value = build(results)
            if isinstance(value, Missing):
                frame.names.pop(name, None)
            else:
                frame.names[name] = value
        for cell, array in cells.items():
            cell.replace(array(results))
        for container, content in contents.items():
            container.replace(content(results))
        frozen = [pair for path in self.paths for pair in path.frozen]
        for holder, why in (*self.shared, *frozen):
            holder.freeze(why)
        if given is not None:
            return given(results)
        value = None if returned is None else joined(returned(results))
        outcomes = [path.outcome for path in self.paths]
        node = next((o.node for o in outcomes if isinstance(o, Return | Maybe)), self.node)
        return of_kind(kinds, None if code is None else code(results), value, node)

    # Joins of columns of values.

    def _content(self, container: Container) -> Build[Content]:
        """Join the content of a list, a dict or a set."""
        paths = self.paths
        if not self._outlives(container):
            paths = [path for path in paths if path.goes_on]
        column = [path.containers.get(container, container.content()) for path in paths]
        why = lengths_differ(column)
        name = named_container(self.session, container)
        span = self.frame.span(self.node)
        if why is not None:
            silence(self.session, container)
            raise Failure(self._placed(ValuesDiffer.of([*why]), name).at(span))
        if not column or isinstance(container.value, set):
            first = column[0] if column else container.content()
            return lambda results: first
        try:
            return self._items(column, paths)
        except Failure as failure:
            findings = [self._placed(each, f"an item of {name}") for each in failure.diagnostics]
            raise Failure(*findings).at(span) from None

    def _outlives(self, container: Container) -> bool:
        """Return whether the caller of a function that returns on a path may read a container."""
        if all(path.goes_on for path in self.paths) or container.serial <= self.frame.began:
            return True
        outcomes = [path.outcome for path in self.paths]
        returned = [each.value for each in outcomes if isinstance(each, Return | Maybe | Gives)]
        held = holders(self.session, self.frame, returned)
        return held is None or container in held

    def _items(self, column: Sequence[Place], paths: Sequence[Path]) -> Build[Content]:
        """Join lists or tuples of one length into a list, or dicts of the same keys, by item."""
        dicts = [value for value in column if is_dict(value)]
        if dicts:
            entries = {k: self._item([value[k] for value in dicts], paths) for k in dicts[0]}
            return lambda results: {k: item(results) for k, item in entries.items()}
        lists = [value for value in column if is_sequence(value)]
        items = [self._item(items, paths) for items in zip(*lists, strict=True)]
        return lambda results: [item(results) for item in items]

    def _name(self, key: Key, going: Sequence[Path]) -> Build[Binding | Missing]:
        column: list[Place] = []
        unjoined: list[Unjoined] = []
        for path in going:
            value = path.names.get(key, self.state.before(key))
            if isinstance(value, Missing):
                return lambda results: MISSING
            if isinstance(value, Unjoined):
                unjoined.append(value)
            else:
                column.append(value)
        if unjoined:
            return lambda results: unjoined[0]
        return self._value(column, going, key)

    def _value(
        self, column: Sequence[Place], paths: Sequence[Path], key: Key | None
    ) -> Build[Binding]:
        """Join the values of a name, an expression or a function; Unjoined if impossible."""
        first = column[0]
        if any(map(is_poisoned, column)):
            return lambda results: POISON
        if all(alike(first, each) for each in column) and self._is_outside(first):
            return lambda results: first
        known = len(self.columns)
        try:
            return self._joined(column, paths, key, alone=True)
        except Failure as failure:
            del self.columns[known:]
            for value in column:
                self._share(value)
            name = f"`{key[1]}`" if key is not None else self._unnamed(paths)
            span = self.frame.span(self.node)
            findings = [self._placed(each, name).at(span) for each in failure.diagnostics]
            return lambda results: Unjoined(findings)

    def _unnamed(self, paths: Sequence[Path]) -> str:
        """Name the result of the paths for messages."""
        if any(isinstance(path.outcome, Gives) for path in paths):
            parent = uses(self.frame.source).parents.get(self.node)
            if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
                return f"`{parent.targets[0].id}`"
            return "the value"
        closure = self.frame.closure
        return "what is returned" if closure is None else f"what `{closure.name}` returns"

    def _placed(self, finding: Diagnostic, name: str) -> Diagnostic:
        return finding.replaced(names=name) if isinstance(finding, ValuesDiffer) else finding

    def _is_outside(self, value: Binding) -> bool:
        """Return whether a value can be used after the branches."""
        match value:
            case Located():
                if not all(self.state.existed(cell) for cell in value.cells()):
                    return False
                # An index of a view may be computed in a branch: then it cannot be read here.
                inner = value.indices() if isinstance(value, Ref) else (value.seen(),)
                return all(map(self._is_outside, inner))
            case Weak():
                return value.builder.depth <= self.here.depth
            case Value():
                return reachable(value, self.here)
            case _:
                return all(map(self._is_outside, parts(value)))

    def _joined(
        self, column: Sequence[Place], paths: Sequence[Path], key: Key | None, *, alone: bool
    ) -> Build[Place]:
        kinds = {value.__class__ for value in column}
        if kinds in ({tuple}, {list}, {dict}):
            now = [_at_end(self.session, *pair) for pair in zip(column, paths, strict=True)]
            why = lengths_differ(now)
            if why is None:
                items = self._items(now, paths)
                if kinds == {tuple}:
                    return lambda results: tuple(items(results))
                return self._container(column, paths, key, items)
            if kinds != {tuple}:
                raise Failure(ValuesDiffer.of([*why]))
        if kinds == {set}:
            raise Failure(ValuesDiffer.of(["one set", "another"]))
        located = [value for value in column if isinstance(value, Located)]
        if len(located) == len(column):
            return self._reference(located, paths, key, alone=alone)
        return self._tree(column, paths)

    def _container(
        self,
        column: Sequence[Place],
        paths: Sequence[Path],
        key: Key | None,
        items: Build[Content],
    ) -> Build[Content]:
        """Join lists or dicts into a new one, which may be changed if nothing else holds them."""
        session = self.session
        containers = [container_of(session, value) for value in column]
        if key is not None and all(
            each is not None
            and each.frozen is None
            and not self.state.existed(each)
            and not isinstance(path.outcome, Gives)
            and path.held is not None
            and path.held[each] == 1
            and all(each is not frozen for frozen, _ in path.frozen)
            for each, path in zip(containers, paths, strict=True)
        ):
            return lambda results: adopt(session, items(results))
        frozen = self._frozen("" if key is None else key[1])
        for value in column:
            self._share(value)
        return lambda results: adopt(session, items(results), frozen)

    def _item(self, column: Sequence[Place], paths: Sequence[Path]) -> Build[Place]:
        """Join an item of a container: only the container is known to hold its arrays."""
        first = column[0]
        if all(alike(first, each) for each in column) and self._is_outside(first):
            return lambda results: first
        return self._joined(column, paths, None, alone=False)

    def _reference(
        self, column: Sequence[Located], paths: Sequence[Path], key: Key | None, *, alone: bool
    ) -> Build[Ref]:
        """Join several arrays into a new cell."""
        content = self._array(
            [path.at_end(value.load) for value, path in zip(column, paths, strict=True)], paths
        )
        pairs = list(zip(column, paths, strict=True))
        owned = alone and all(self._is_owned(value, path, key) for value, path in pairs)
        in_c_order = all(
            isinstance(value, Ref) and not value.steps and value.cell.in_c_order for value in column
        )
        frozen = None
        if not owned:
            frozen = self._frozen("" if key is None else key[1])
            for value in column:
                self._share(value)
        session = self.session
        return lambda results: Ref(Cell(session, content(results), frozen, in_c_order))

    def _is_owned(self, value: Located, path: Path, key: Key | None) -> bool:
        """Return whether only the joined name or expression refers to an array after a path.

        Within an expression, waiting operands may refer to arrays without a name.
        """
        if any(cell in value.cells() for cell, _ in path.frozen):
            return False
        if not isinstance(path.outcome, Gives):
            return key is not None and is_held_once(value, path.held)
        if key is not None or path.held is None or not is_whole(value):
            return False
        return not self.state.existed(value.cell) and path.held[value.cell] == 0

    def _frozen(self, name: str) -> Frozen:
        which = (
            f"is one of several that `{name}` may stand for" if name else "may be one of several"
        )
        return Frozen(f"{which}, by this condition", self.frame.span(self.node))

    def _share(self, value: Place) -> None:
        for cell in held_in(self.session, value):
            self.shared.append((cell, self._frozen("")))

    def _tree(self, column: Sequence[Place], paths: Sequence[Path]) -> Build[AnyValue]:
        """Join numbers, records and trees of them, leaf by leaf."""
        leaves: list[list[Array]] = []
        trees: list[Type] = []
        for value, path in zip(column, paths, strict=True):
            self._share(value)

            def flat(value: Place = value, path: Path = path) -> tuple[list[Array], Type]:
                return flatten(path.block, load(value), "what a branch leaves")

            arrays, tree = path.at_end(flat)
            leaves.append(arrays)
            trees.append(tree)
        if not all(same_structure(tree, trees[0]) for tree in trees):
            raise Failure(ValuesDiffer.of(trees))
        builds = [
            self._array([arrays[place] for arrays in leaves], paths)
            for place in range(len(leaves[0]))
        ]
        return lambda results: unflatten(trees[0], iter([build(results) for build in builds]))

    def _array(self, column: Sequence[Array], paths: Sequence[Path]) -> Build[Array]:
        """Join arrays into one; a Failure if their types differ."""
        number = is_python_number(column)
        kind = kind_of(column)
        program, place = self.here.program, len(self.columns)
        site = program.site(str(place), self.frame.span(self.node))
        program.agree(column)
        dtype = CARRIERS[kind] if number else joined_dtype(program, column, site)
        types = [each.type.with_dtype(dtype) for each in column]
        for other in types[1:]:
            why = array_difference(self.here.facts, other, types[0])
            if why is not None:
                raise Failure(ValuesDiffer.of([column[0].type, other], why))
        ends = dict(zip(paths, column, strict=True))
        sites = frozenset[Site]().union(*map(program.sites, column))
        if all(isinstance(each, Weak) for each in column):
            sites |= {site}
        self.columns.append(Column(types[0], tuple([ends.get(path) for path in self.paths])))
        given = are_given(column)
        is_array = any(map(may_be_array, column))

        def build(results: Sequence[Value]) -> Array:
            result = results[place]
            array = computed(result, kind, given=given) if number else program.mark(result, sites)
            return note_array(array) if is_array else array

        return build

    def _code(self) -> Build[Value]:
        """Join the codes of the outcomes."""
        codes = [
            path.outcome.code
            if isinstance(path.outcome, Maybe)
            else self.here.literal(min(path.kinds), I32)
            for path in self.paths
        ]
        place = len(self.columns)
        self.columns.append(Column(ArrayType(I32, ()), tuple(codes)))
        return lambda results: results[place]

    def _bound(self, predicate: Value) -> Sequence[Value]:
        """Bind the `Switch` and return its results."""
        if not self.columns and not any(path.block.has_effects() for path in self.paths):
            return ()
        traced: list[tuple[Builder, list[Array], Type]] = []
        for number, path in enumerate(self.paths):

            def leaves(number: int = number, path: Path = path) -> list[Array]:
                arrays: list[Array] = []
                for column in self.columns:
                    end, wanted = column.ends[number], column.type
                    if end is None:  # the value is never read
                        end = placeholder(path.block, wanted)
                    arrays.append(at(end, wanted.dtype))
                return arrays

            tree = TupleType(tuple([column.type for column in self.columns]))
            traced.append((path.block, path.at_end(leaves), tree))
        return bind_branches(self.here, predicate, traced[::-1])


def _at_end(session: Session, value: Place, path: Path) -> Place:
    """Return a list, a dict or a tuple as at the end of a path."""
    container = container_of(session, value)
    return value if container is None else path.containers.get(container, value)


def lengths_differ(column: Sequence[Place]) -> tuple[str, str] | None:
    """Describe how two contents of one kind differ that cannot be joined; None if they can."""
    for other in column[1:]:
        first = column[0]
        if is_dict(first) and is_dict(other):
            if [*first] != [*other]:
                return keys_of(first), keys_of(other)
        elif is_set(first) and is_set(other):
            if first != other:
                return f"a set of {counted(len(first))}", f"another of {len(other)}"
        elif is_sequence(first) and is_sequence(other) and len(first) != len(other):
            kind = first.__class__.__name__
            return f"a {kind} of {counted(len(first))}", f"one of {len(other)}"
    return None


def counted(number: int) -> str:
    """Describe a number of items."""
    return f"{number} item" if number == 1 else f"{number} items"


def keys_of(value: dict[Any, Any]) -> str:
    """Describe a dict by its keys."""
    return f"a dict of {', '.join(map(repr, value))}" if value else "an empty dict"


def named_container(session: Session, container: Container) -> str:
    """Return one of a container's names for messages, else its kind."""
    for frame in live_frames(session):
        for name, value in frame.names.items():
            if value is container.value:
                return f"`{name}`" if name.isidentifier() else "a comprehension"
    return f"a {container.value.__class__.__name__}"


def silence(session: Session, container: Container) -> None:
    """Poison the names of a container: its error was reported."""
    for frame in live_frames(session):
        for name, value in frame.names.items():
            if value is container.value:
                frame.names[name] = POISON


def _value_of(outcome: Outcome | Gives) -> Place:
    """Return the value of an expression in a branch, or of a `return`."""
    assert isinstance(outcome, Gives | Return | Maybe)
    return outcome.value


def placeholder(here: Builder, type: ArrayType) -> Value:  # noqa: A002
    """Return an array that is never read."""
    dtype = type.dtype
    if dtype is not KEY:
        zero = {Kind.BOOL: False, Kind.INT: 0, Kind.COMPLEX: 0j}.get(dtype.kind, 0.0)
        return here.full(zero, type.shape, dtype)
    key = unused_key(here)
    return here.spread(key, type.shape, ()) if type.shape else key


def joined_dtype(program: Program, column: Sequence[Array], site: Site) -> DType:
    """Return the common dtype of several arrays; a Failure if there is none.

    If no array has a dtype, it is chosen for the site.
    """
    known = list(dict.fromkeys(each.dtype for each in column if isinstance(each, Value)))
    if len(known) > 1:
        raise Failure(ValuesDiffer.of([each.type for each in column]))
    if known:
        if any(isinstance(x, Weak) and not accepts_weak(known[0], x.kind) for x in column):
            raise Failure(ValuesDiffer.of([each.type for each in column]))
        return known[0]
    return program.choose(site, kind_of(column))


def kind_of(column: Sequence[Array]) -> Kind:
    """Return the highest kind of several arrays."""
    return max(each.dtype.kind if isinstance(each, Value) else each.kind for each in column)


CARRIERS: Final = {Kind.BOOL: BOOL, Kind.INT: I64, Kind.FLOAT: F64, Kind.COMPLEX: C128}
"""The dtypes in which Python numbers are computed."""


def is_python_number(column: Sequence[Array]) -> bool:
    """Return whether all are Python numbers, which adapt to other operands."""
    return all(isinstance(each, Weak) and not each.ndim for each in column)


def are_given(column: Sequence[Array]) -> bool:
    """Return whether any of the numbers is, or was computed from, an argument of the kernel."""
    return any(isinstance(each, PythonNumber) and not each.adapts for each in column)


# The outcomes after a statement, a step of a loop, and a loop.


def resumed(frame: Frame, node: ast.AST, outcome: Maybe, rest: Callable[[], Outcome]) -> Outcome:
    """Continue with the rest if the outcome's code says so, else leave as it says."""
    assert frame.program is not None
    kinds = outcome.kinds - {ON}

    def stopped() -> Outcome:
        return of_kind(kinds, outcome.code, outcome.value, outcome.node)

    here = frame.here(node)
    code = outcome.code
    (on,) = here.bind(e.equal, (code, here.literal(ON, code.dtype)))
    return fork(frame, node, on, (rest, stopped))


def after_step(frame: Frame, outcome: Outcome) -> Outcome:
    """Return the outcome after a step: `continue` becomes the next step."""
    return _instead(frame, outcome, CONTINUE)


def after_loop(
    frame: Frame, node: ast.AST, outcome: Outcome, orelse: Callable[[], Outcome] | None
) -> Outcome:
    """Return the outcome after a loop: run its `else`, unless a `break` left it, and continue."""
    if outcome is None:
        return None if orelse is None else orelse()
    if orelse is not None and isinstance(outcome, Maybe) and ON in outcome.kinds:
        outcome = resumed(frame, node, outcome, orelse)
    return _instead(frame, outcome, BREAK)


def _instead(frame: Frame, outcome: Outcome, kind: int) -> Outcome:
    """Return the outcome with the code `ON` in place of a kind."""
    if isinstance(outcome, Jump) and CODES[outcome.kind] == kind:
        return None
    if not isinstance(outcome, Maybe) or kind not in outcome.kinds:
        return outcome
    kinds = outcome.kinds - {kind} | {ON}
    if len(kinds) == 1:
        return None
    here = frame.here(outcome.node)
    is_kind = here.elementwise(e.equal, [outcome.code, kind])
    assert isinstance(is_kind, Value)
    code = where(is_kind, here.literal(ON, I32), outcome.code)
    return Maybe(code, kinds, outcome.value, outcome.node)
