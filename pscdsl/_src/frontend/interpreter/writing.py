"""Kernels that write to their arguments: `@psc.kernel(writes=("A", "B"))`.

In the body a written parameter is a separate array, which takes stores. Nothing else can see it
while the body runs, since calls with overlapping arguments are refused; but the caller holds it, so
it is never treated as an array with a single holder. Its final content is a further result.

Another kernel that calls such a kernel stores these results into the arrays that it passed. Code
that is unaware of writes calls `apply`, which refuses: no store is ever omitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeVar

from pscdsl._src.frontend.interpreter.frames import Session, session_of
from pscdsl._src.frontend.interpreter.places import (
    WHOLE,
    Cell,
    Frozen,
    Located,
    Ref,
    freeze,
    load_arguments,
    with_cells,
)
from pscdsl._src.frontend.interpreter.state import may_hold
from pscdsl._src.frontend.values import (
    AnyValue,
    Applicable,
    Place,
    Poisoned,
    describe,
    is_poisoned,
    is_traced,
)
from pscdsl._src.ir.builder import Builder, Program, Value
from pscdsl._src.ir.program import Function
from pscdsl._src.language.writes import split
from pscdsl.typing.array_types import ArrayType, TupleType, Type, leaves
from pscdsl.typing.codes.language import NoSuchAttribute, Unsupported
from pscdsl.typing.codes.limits import InternalError
from pscdsl.typing.codes.performance import WritesNothing
from pscdsl.typing.codes.purity import Mutation
from pscdsl.typing.diagnostics import NOWHERE, Diagnostic, Failure
from pscdsl.typing.signatures import Signature

if TYPE_CHECKING:
    from pscdsl._src.frontend.definitions import Definition
    from pscdsl._src.frontend.interpreter.records import RecordClass


T = TypeVar("T")

# In the body of the kernel.


def written_cells(
    session: Session, names: Sequence[str], arguments: dict[str, Place]
) -> Mapping[str, Cell]:
    """Make the named arguments arrays that take stores; return the cells that hold them."""
    cells: dict[str, Cell] = {}
    for name in names:
        content = arguments[name]
        assert is_traced(content)
        cells[name] = Cell(session, content)
        arguments[name] = Ref(cells[name])
    session.caller_holds = tuple(cells.values())
    return cells


def final_contents(
    program: Program, cells: Mapping[str, Cell], declared: Mapping[str, Type]
) -> list[Value]:
    """Return the final contents of written arrays, in the types of the kernel's parameters."""
    contents: list[Value] = []
    for name, cell in cells.items():
        content, wanted = cell.content, declared[name]
        assert isinstance(wanted, ArrayType)
        if not isinstance(content, Value) or not _same(program, content.type, wanted):
            raise Failure(InternalError(what=f"`{name}` ends as {content.type}, not {wanted}"))
        contents.append(content)
    return contents


def _same(program: Program, one: ArrayType, other: ArrayType) -> bool:
    if one.dtype is not other.dtype or one.rank != other.rank:
        return False
    return all(map(program.facts.equal, one.shape, other.shape))


def with_written(result: Type | None, contents: Sequence[Type]) -> Type:
    """Return the type of all results: the returned value, if any, and the written arrays."""
    if result is not None:
        return TupleType((result, *contents))
    return contents[0] if len(contents) == 1 else TupleType(tuple(contents))


def shows_arguments(session: Session, cells: Mapping[str, Cell]) -> bool:
    """Return whether the result, or a record in it, may show an argument after a call."""
    shown = session.result_cells
    if shown is None or any(cell.frozen is not None for cell in cells.values()):
        return True
    return any(cell.frozen is not None or cell in session.caller_holds for cell in shown)


def never_written(
    signature: Signature, program: Function, cells: Mapping[str, Cell]
) -> Iterator[Diagnostic]:
    """Yield a finding for each parameter that is declared to be written, and never is."""
    if signature.combinations() > 1:
        return  # another choice may write them
    params = iter(program.body.params)
    first = {name: [next(params) for _ in leaves(tree)] for name, tree in program.parameters}
    contents = program.body.results[-len(signature.writes) :]
    for name, content in zip(signature.writes, contents, strict=True):
        if content is first[name][0]:
            place = next(each.span for each in signature.parameters if each.name == name)
            span = program.span if place is NOWHERE else place
            others = tuple(each for each in signature.writes if each != name)
            stored = cells[name].stamp > 0
            yield WritesNothing(parameter=name, stored=stored, others=others, span=span)


# In the body of another kernel.


@dataclass(frozen=True, eq=False)
class WritingKernel(Applicable):
    """A kernel that writes to its arguments, as seen in another kernel."""

    definition: Definition
    """The kernel as a pure function: its functional form."""

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self.definition.name

    def description(self) -> str:
        """Describe the kernel for messages."""
        return f"the kernel `{self.name}`, which writes to its arguments"

    def of_class(self, cls: RecordClass) -> WritingKernel:
        """Return the method as it is in `cls`, which may derive from the class of the method."""
        return WritingKernel(self.definition.of_class(cls))

    def lookup_attribute(self, name: str) -> Definition:
        """Return `kernel.functional`, which returns new arrays and writes to none."""
        if name == "functional":
            return self.definition
        raise Failure(NoSuchAttribute(owner=self.description(), attribute=name))

    def apply(self, here: Builder, args: Sequence[Place], kwargs: Mapping[str, Place]) -> NoReturn:
        """Raise a Failure: a caller of this method does not store into arrays."""
        raise self.refusal()

    def refusal(self) -> Failure:
        """Return the refusal of a use that would omit the stores."""
        rewrite = f"`{self.name}.functional` returns the new arrays after its result, and is pure"
        return Failure(
            Unsupported(what=f"{self.description()}, where it is not called", rewrite=rewrite)
        )

    def call(self, here: Builder, args: Sequence[Place], kwargs: Mapping[str, Place]) -> Place:
        """Call the kernel with arguments that may be references, and store its results there."""
        definition = self.definition
        names = definition.signature.writes
        bound = definition.closure.bind(args, kwargs)
        targets: dict[str, Located] = {}
        for name in names:
            target = bound[name]
            if is_poisoned(target):
                raise Poisoned
            if not isinstance(target, Located):
                raise Failure(
                    Mutation(
                        what=f"`{self.name}` writes to `{name}`, and {describe(target)} for it",
                        rewrite="pass an array that the function made, or one that it may write",
                    )
                )
            targets[name] = target
        self._refuse_overlap(session_of(here), bound, targets)
        result: AnyValue
        returned, shows = definition.called(here, *load_arguments(args, kwargs))
        result, contents = split(returned, len(names))
        for target, content in zip(targets.values(), contents, strict=True):
            target.store(here, WHOLE, content)
        frozen = None
        if shows:
            why = f"is given to `{self.name}`, which returns it or a part of it"
            frozen = Frozen(why, here.program.span)
            for value in bound.values():
                freeze(session_of(here), value, frozen)
        return with_cells(session_of(here), result, frozen)

    def _refuse_overlap(
        self, session: Session, bound: Mapping[str, Place], targets: Mapping[str, Located]
    ) -> None:
        """Refuse a call if a written array may be, or show, an array of another argument."""
        for name, target in targets.items():
            cells = set(target.cells())
            for other, value in bound.items():
                if other != name and may_hold(session, value, cells):
                    raise Failure(
                        Mutation(
                            what=f"`{self.name}` writes to `{name}`, and",
                            why=f"it is given as `{other}`, too",
                            rewrite=f"pass a copy, `.copy()`, for one of `{name}` and `{other}`",
                        )
                    )


def as_called(definition: Definition) -> Definition | WritingKernel:
    """Return a kernel as seen in another kernel."""
    return WritingKernel(definition) if definition.writes else definition


def definition_in(value: T) -> T | Definition:
    """Return the definition of a kernel that writes; any other value as given."""
    return value.definition if isinstance(value, WritingKernel) else value
