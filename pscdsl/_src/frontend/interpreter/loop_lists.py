"""Lists to which the body of a rolled loop appends: the appended items are stacked.

A list to which each step appends, and which it does not read, grows by the same number of items in
each step. These are stacked: after the loop the list is a `Stacked`, with a length that is the
number of steps.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pscdsl._src.frontend.interpreter.branches import CARRIERS, counted, keys_of
from pscdsl._src.frontend.interpreter.containers import Container, Content, adopt
from pscdsl._src.frontend.interpreter.frames import Frame, Session
from pscdsl._src.frontend.interpreter.iteration import Iterated, Long, Step, row_of, rows_of
from pscdsl._src.frontend.interpreter.places import Cell, Frozen, Ref, apply_numpy, load
from pscdsl._src.frontend.interpreter.python_numbers import computed
from pscdsl._src.frontend.trees import at, flatten
from pscdsl._src.frontend.values import AnyValue, Array, Place, describe
from pscdsl._src.ir.builder import Builder, Site, Value, Weak, may_be_array, note_array
from pscdsl._src.ir.program import Scalar, kind_of
from pscdsl.numpy.calling import as_count
from pscdsl.numpy.indexing import getitem
from pscdsl.numpy.shorthand import cast
from pscdsl.typing.array_types import ArrayType, Shape
from pscdsl.typing.codes.control import LoopChangesType
from pscdsl.typing.codes.language import NotStatic
from pscdsl.typing.codes.language_evaluation import NoSuchItem
from pscdsl.typing.diagnostics import Failure, Span
from pscdsl.typing.dims import Size
from pscdsl.typing.dtypes import DType, Kind
from pscdsl.typing.python_containers import is_dict, is_slice

FEW_ITEMS: Final = 64
"""The limit on the items of a list that is a Python list after a loop, too."""


def values_of(content: Content | tuple[Place, ...]) -> tuple[Place, ...]:
    """Return the items of a list, or the values of a dict, in order."""
    return tuple(content.values()) if is_dict(content) else tuple(content)


def sized(content: Content | tuple[Place, ...]) -> str:
    """Describe a list or a dict with its size."""
    if is_dict(content):
        return keys_of(content)
    kind = content.__class__.__name__
    return f"a {kind} of {counted(len(content))}"


def appended_name(frame: Frame, loop: ast.stmt, container: Container) -> str | None:
    """Return the name of a list to which a loop only appends.

    None if something in the loop, or a function that it may call, reads the list.
    """
    function = None if frame.closure is None else frame.closure.node
    names = [name for name, value in frame.names.items() if value is container.value]
    if function is None or len(names) != 1 or not isinstance(container.value, list):
        return None
    (name,) = names
    appending = {*map(_receiver, ast.walk(loop))}
    inner = [
        node
        for node in ast.walk(function)
        if node is not function
        and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef)
    ]
    if any(_mentions(node, name) for node in inner):
        return None
    read = any(
        isinstance(node, ast.Name) and node.id == name and node not in appending
        for node in ast.walk(loop)
    )
    return None if read else name


def _receiver(node: ast.AST) -> ast.expr | None:
    """Return `items` of the statement `items.append(…)`; None for other nodes."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr="append"))):
            return owner
        case _:
            return None


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))


@dataclass(eq=False)
class Appended:
    """A list to which each step appends."""

    local: str
    """Its only name."""
    name: str
    """Its name in messages."""
    count: int = 0
    """The number of items that a step appends."""
    kind: Kind | None = None
    """The kind of the items, if they are Python numbers."""
    dtype: DType | None = None
    shape: Shape = ()
    depth: int | None = None
    """The number of levels of nested lists in each item."""
    is_array: bool = False
    """Whether an item may be an array without axes, and not a scalar."""
    before: list[Place] = field(default_factory=list["Place"])
    """The content of the list before the loop."""
    site: Site | None = None
    """The site where the dtype was chosen, if the items have none."""

    def rows(self, here: Builder, items: Sequence[Place], span: Span) -> list[Value]:
        """Return the items that a step appends, in one dtype; a Failure if their types differ."""
        found = [self._leaf(here, each) for each in items]
        self.count = len(found)
        if not found:
            return []
        first = found[0]
        if all(isinstance(each, Weak) and not each.ndim for each in found):
            self.kind = max(each.kind for each in found if isinstance(each, Weak))
            self.dtype = CARRIERS[self.kind]
        elif isinstance(first, Value):
            self.dtype = first.dtype
        else:
            self.site = here.program.site(self.name, span)
            self.dtype = here.program.choose(self.site, first.kind)
        self.shape = first.type.shape
        here.program.agree(found)
        for each in found:
            self._require(each)
        return [at(each, self.dtype) for each in found]

    def _require(self, item: Array) -> None:
        assert self.dtype is not None
        number = isinstance(item, Weak) and not item.ndim
        same = isinstance(item, Weak) or item.dtype is self.dtype
        kinds = self.kind is None or (isinstance(item, Weak) and item.kind is self.kind)
        if item.type.shape == self.shape and same and number is (self.kind is not None) and kinds:
            return
        wanted = ArrayType(self.dtype, self.shape)
        raise Failure(
            LoopChangesType(
                name=f"an item of {self.name}",
                before=str(wanted) if self.kind is None else "a number of Python's",
                after="a number of Python's" if number else str(item.type),
                why="a list that a loop appends to has items of one type",
            )
        )

    def _leaf(self, here: Builder, item: Place) -> Array:
        depth = 0
        if isinstance(item, Stacked):
            if item.kind is not None:
                what = f"an item of {self.name}, a list of numbers of Python's that a loop made,"
                raise Failure(NotStatic(what=what, rewrite="append `np.array(…)` of it"))
            depth, item = item.depth + 1, item.rows
        if self.depth not in (None, depth):
            raise Failure(
                LoopChangesType(name=f"an item of {self.name}", before="a list", after="an array")
            )
        self.depth = depth
        found, tree = flatten(here, load(item), f"an item of {self.name}")
        if not isinstance(tree, ArrayType):
            what = f"an item of {self.name}, {describe(item)} that a rolled loop appends,"
            rewrite = "append arrays or numbers, to one list each"
            raise Failure(NotStatic(what=what, rewrite=rewrite))
        self.is_array |= may_be_array(found[0])
        return found[0]

    def after(
        self, session: Session, here: Builder, results: Sequence[Value], count: Size
    ) -> list[Place] | Stacked:
        """Return the list after the loop, with the items that the steps have appended."""
        if not results:
            before: list[Place] = adopt(session, [*self.before])
            return before
        assert self.dtype is not None
        program = here.program
        for result in results:
            if self.site is not None:
                program.mark_also(result, self.site)
        program.agree([results[0], *[self._leaf(here, each) for each in self.before]])
        rows: Array = results[0]
        if len(results) > 1:
            rows = apply_numpy(here, "stack", [*results], 1)
            rows = apply_numpy(here, "reshape", rows, (count * len(results), *self.shape))
        if self.before:
            first = [self._leaf(here, each) for each in self.before]
            for each in first:
                self._require(each)
            start = apply_numpy(here, "stack", [at(each, self.dtype) for each in first])
            rows = apply_numpy(here, "concatenate", [start, rows])
        frozen = Frozen(f"collects what a loop appended to {self.name}")
        stacked = Stacked(
            Ref(Cell(session, rows, frozen)), self.kind, self.depth or 0, is_array=self.is_array
        )
        length = stacked.length
        if isinstance(length, int) and length <= FEW_ITEMS:
            items: list[Place] = adopt(session, [stacked.item(at) for at in range(length)])
            return items
        return stacked


class Stacked(Long):
    """A list of items of one type, whose length is a loop's number of steps or another size."""

    def __init__(self, rows: Ref, kind: Kind | None, depth: int, *, is_array: bool = False) -> None:
        self.rows = rows
        """The items as the rows of an array."""
        self.kind = kind
        """The kind of the items, if they are Python numbers."""
        self.depth = depth
        """The number of levels of nested lists in each item."""
        self.is_array = is_array
        """Whether an item may be an array without axes, and not a scalar."""

    def description(self) -> str:
        """Describe the list for messages."""
        return f"a list of {self.length} items"

    @property
    def length(self) -> Size:
        """The number of items."""
        return self.rows.type.shape[0]

    def item(self, index: AnyValue) -> Place:
        """Return `items[index]`; a slice is another list."""
        if is_slice(index):
            cell = self.rows.cell
            rows = Ref(Cell(cell.session, getitem(self.rows.load(), index), cell.frozen))
            return Stacked(rows, self.kind, self.depth, is_array=self.is_array)
        if not isinstance(index, int) or isinstance(index, bool):
            reason = "which item of a list it is has to be known while checking"
            rewrite = "`np.array(items)` makes an array, which takes computed indices"
            found = describe(self)
            raise Failure(
                NoSuchItem(found=found, index=describe(index), reason=reason, rewrite=rewrite)
            )
        return self._of(row_of(self.rows, index))

    def _of(self, row: Ref | Array) -> Place:
        if isinstance(row, Ref):
            inner = self.depth - 1
            return row if inner < 0 else Stacked(row, None, inner, is_array=self.is_array)
        number = (
            row if self.kind is None or not isinstance(row, Value) else computed(row, self.kind)
        )
        return note_array(number) if self.is_array else number

    def array(self) -> Array:
        """Return the list as an array."""
        rows = self.rows.load()
        if self.kind is None or not isinstance(rows, Value):
            return rows
        return Weak(rows.builder, self.kind, rows.shape, lambda dtype: cast(rows, dtype))

    def iterated(self) -> Iterated:
        """Return the iterable of a loop over the list."""
        rows = rows_of(self.rows)

        def item(step: Step) -> Place:
            return self._of(row_of(self.rows, step))

        return replace(rows, kind="a list", item=item)


def repeated(session: Session, here: Builder, item: Scalar, count: Size) -> Stacked:
    """Return `[item] * count` for a Python number."""
    size = as_count(count, "[…] * n", here.facts)
    kind = kind_of(item)
    rows = here.full(item, (size,), CARRIERS[kind])
    frozen = Frozen("is a list of as many items as a size says")
    return Stacked(Ref(Cell(session, rows, frozen)), kind, 0)
